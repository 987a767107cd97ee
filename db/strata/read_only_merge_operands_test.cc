//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// GetMergeOperands() of read-only and secondary instances. Its operands are in
// blocks of SST files, which must not be freed before they are copied.

#include <memory>
#include <string>
#include <vector>

#include "db/db_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/table.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class ReadOnlyMergeOperandsTest : public DBTestBase {
 public:
  ReadOnlyMergeOperandsTest()
      : DBTestBase("read_only_merge_operands_test", /*env_do_fsync=*/false) {}

 protected:
  // An operand is too long for the memory of a std::string.
  static std::string Operand(int number) {
    return "operand " + std::to_string(number) + std::string(100, 'x');
  }
};

TEST_F(ReadOnlyMergeOperandsTest, OperandsAreCopiedBeforeTheirBlocksAreFreed) {
  Options options = CurrentOptions();
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  options.disable_auto_compactions = true;
  options.max_open_files = -1;
  BlockBasedTableOptions table_options;
  // A block is freed with the last reference to it.
  table_options.block_cache = NewLRUCache(1);
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  DestroyAndReopen(options);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(Merge("k", Operand(i)));
    ASSERT_OK(Flush());
  }
  Close();
  const std::string secondary_path = dbname_ + "_secondary";
  for (const bool is_secondary : {false, true}) {
    SCOPED_TRACE(is_secondary);
    std::unique_ptr<DB> db;
    ASSERT_OK(is_secondary
                  ? DB::OpenAsSecondary(options, dbname_, secondary_path, &db)
                  : DB::OpenForReadOnly(options, dbname_, &db));
    std::vector<PinnableSlice> operands(3);
    GetMergeOperandsOptions operands_options;
    operands_options.expected_max_number_of_operands = 3;
    int num_operands = 0;
    ASSERT_OK(db->GetMergeOperands(ReadOptions(), db->DefaultColumnFamily(),
                                   "k", operands.data(), &operands_options,
                                   &num_operands));
    ASSERT_EQ(num_operands, 3);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(operands[i].ToString(), Operand(i));
    }
    ASSERT_OK(db->Close());
  }
  ASSERT_OK(DestroyDir(env_, secondary_path));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
