//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The check of a transaction for conflicts, when the newest entry of the key is
// a merge operand in an SST file: the operands are not merged for it, as the
// check wants no value.

#include <memory>
#include <string>

#include "db/db_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

// The parameter is the entry below the operand.
class TransactionValidationTest : public testing::TestWithParam<const char*> {
 public:
  TransactionValidationTest()
      : path_(test::PerThreadDBPath("transaction_validation_test")) {}
  ~TransactionValidationTest() override {
    txn_db_.reset();
    EXPECT_OK(DestroyDB(path_, Options()));
  }

 protected:
  void Open(TxnDBWritePolicy write_policy) {
    txn_db_.reset();
    Options options;
    options.create_if_missing = true;
    options.disable_auto_compactions = true;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    // The last memtable that was flushed is kept, and no other.
    options.max_write_buffer_size_to_maintain = 1;
    options.enable_blob_files = GetParam() == std::string("blob");
    TransactionDBOptions txn_db_options;
    txn_db_options.write_policy = write_policy;
    ASSERT_OK(DestroyDB(path_, options));
    TransactionDB* db = nullptr;
    ASSERT_OK(TransactionDB::Open(options, txn_db_options, path_, &db));
    txn_db_.reset(db);
  }

  // Writes the parameter's entry of the key.
  void PutBase(const std::string& key) {
    const std::string base = GetParam();
    if (base == "entity") {
      ASSERT_OK(txn_db_->PutEntity(write_options_,
                                   txn_db_->DefaultColumnFamily(), key,
                                   WideColumns{{"c", "base"}}));
    } else if (base != "none") {
      ASSERT_OK(txn_db_->Put(write_options_, key, "base"));
    }
    if (base == "deletion") {
      ASSERT_OK(txn_db_->Delete(write_options_, key));
    }
  }

  void Flush() { ASSERT_OK(txn_db_->Flush(FlushOptions())); }

  const std::string path_;
  const WriteOptions write_options_;
  std::unique_ptr<TransactionDB> txn_db_;
};

TEST_P(TransactionValidationTest, OperandsInFiles) {
  for (const TxnDBWritePolicy policy : {WRITE_COMMITTED, WRITE_PREPARED}) {
    for (const bool in_one_file : {true, false}) {
      SCOPED_TRACE(testing::Message() << policy << in_one_file);
      Open(policy);
      // A snapshot keeps the entries apart in one file.
      PutBase("old");
      PutBase("new");
      const Snapshot* const apart = txn_db_->GetSnapshot();
      if (!in_one_file) {
        ASSERT_OK(txn_db_->Put(write_options_, "other", ""));
        Flush();
      }
      ASSERT_OK(txn_db_->Merge(write_options_, "old", "operand"));
      const std::unique_ptr<Transaction> txn(
          txn_db_->BeginTransaction(write_options_));
      txn->SetSnapshot();
      ASSERT_OK(txn_db_->Merge(write_options_, "new", "operand"));
      Flush();
      // The memtables do not reach back to the snapshot, so the check reads SST
      // files.
      ASSERT_OK(txn_db_->Put(write_options_, "other", ""));
      Flush();
      ASSERT_OK(txn->Put("old", "v"));
      ASSERT_TRUE(txn->Put("new", "v").IsBusy());
      ASSERT_OK(txn->Commit());
      txn_db_->ReleaseSnapshot(apart);
    }
  }
}

INSTANTIATE_TEST_CASE_P(Bases, TransactionValidationTest,
                        testing::Values("none", "plain", "deletion", "entity",
                                        "blob"));

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
