//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_merge_operators.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/db.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/strata/ldb_call_test_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "utilities/merge_operators.h"
#include "utilities/ttl/db_ttl_impl.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// An operator of an application, which ldb cannot create. Its results differ
// from those of StringAppend.
class OwnOperator : public AssociativeMergeOperator {
 public:
  const char* Name() const override { return "application.Own"; }
  bool Merge(const Slice& /*key*/, const Slice* existing, const Slice& value,
             std::string* result, Logger* /*logger*/) const override {
    *result = (existing == nullptr ? "" : existing->ToString() + "+") +
              value.ToString();
    return true;
  }
};

constexpr int kKeys = 30;

}  // namespace

class LdbMergeOperatorsTest : public testing::Test {
 protected:
  LdbMergeOperatorsTest()
      : dbname_(test::PerThreadDBPath("ldb_merge_operators_test")),
        second_(dbname_ + "_second"),
        env_(Env::Default()) {
    EXPECT_OK(DestroyDir(env_, dbname_));
    EXPECT_OK(DestroyDir(env_, second_));
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.disable_auto_compactions = true;
    options_.merge_operator = std::make_shared<OwnOperator>();
  }
  ~LdbMergeOperatorsTest() override {
    Close();
    EXPECT_OK(DestroyDir(env_, dbname_));
    EXPECT_OK(DestroyDir(env_, second_));
  }

  void Open() {
    const std::vector<ColumnFamilyDescriptor> families = {
        {kDefaultColumnFamilyName, options_}, {"two", options_}};
    ASSERT_OK(DB::Open(options_, dbname_, families, &handles_, &db_));
  }

  void Close() {
    for (ColumnFamilyHandle* handle : handles_) {
      EXPECT_OK(db_->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    db_.reset();
  }

  static std::string Key(int i) { return "k" + std::to_string(100 + i); }

  // Writes values, merges over values, and merges alone, to several files and
  // to the WAL.
  void Fill() {
    Open();
    for (int round = 0; round < 4; ++round) {
      for (ColumnFamilyHandle* handle : handles_) {
        for (int i = 0; i < kKeys; ++i) {
          if (round == 0 && i % 3 < 2) {
            ASSERT_OK(db_->Put(WriteOptions(), handle, Key(i),
                               std::string(50, static_cast<char>('a' + i))));
          } else if (round > 0 && i % 3 > 0) {
            ASSERT_OK(db_->Merge(WriteOptions(), handle, Key(i),
                                 std::to_string(round)));
          }
        }
      }
      if (round < 3) {
        ASSERT_OK(db_->Flush(FlushOptions(), handles_));
      }
    }
    Close();
  }

  void Check() {
    Open();
    for (ColumnFamilyHandle* handle : handles_) {
      for (int i = 0; i < kKeys; ++i) {
        const std::string base =
            i % 3 < 2 ? std::string(50, static_cast<char>('a' + i)) : "";
        const std::string expected = i % 3 == 0   ? base
                                     : i % 3 == 1 ? base + "+1+2+3"
                                                  : "1+2+3";
        std::string value;
        ASSERT_OK(db_->Get(ReadOptions(), handle, Key(i), &value));
        ASSERT_EQ(value, expected) << Key(i);
      }
    }
    Close();
  }

  int Run(const std::vector<std::string>& args,
          const Options& options = Options()) {
    std::vector<std::string> all = {"--db=" + dbname_};
    all.insert(all.end(), args.begin(), args.end());
    return RunLdb(all, options, &output_);
  }

  bool Printed(const std::string& text) {
    return output_.find(text) != std::string::npos;
  }

  void ExpectRefused(const std::vector<std::string>& args) {
    EXPECT_NE(0, Run(args)) << args[0];
    EXPECT_TRUE(Printed("\"application.Own\" of column family \"two\""))
        << args[0] << ": " << output_;
    EXPECT_TRUE(Printed("disable_address_map")) << output_;
  }

  void LoseManifest() {
    std::vector<std::string> children;
    ASSERT_OK(env_->GetChildren(dbname_, &children));
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kWalFile;
      if (ParseFileName(child, &number, &type) && type == kDescriptorFile) {
        ASSERT_OK(env_->DeleteFile(dbname_ + "/" + child));
      }
    }
  }

  const std::string dbname_;
  const std::string second_;
  Env* const env_;
  Options options_;
  std::vector<ColumnFamilyHandle*> handles_;
  std::unique_ptr<DB> db_;
  std::string output_;
};

TEST_F(LdbMergeOperatorsTest, CommandsThatWriteRefuseAnUnknownOperator) {
  options_.enable_blob_files = true;
  options_.enable_blob_address_map = true;
  Fill();
  ExpectRefused({"compact"});
  ExpectRefused({"compact", "--try_load_options=false"});
  ExpectRefused({"--column_family=two", "compact"});
  ExpectRefused({"put", "k1", "v"});
  ExpectRefused({"put", "k1", "v", "--create_if_missing"});
  ExpectRefused({"batchput", "k1", "v"});
  ExpectRefused({"delete", "k1"});
  ExpectRefused({"singledelete", "k1"});
  ExpectRefused({"deleterange", "k1", "k2"});
  ExpectRefused({"query"});
  ExpectRefused({"collect_blob_garbage"});
  ExpectRefused({"change_compaction_style", "--old_compaction_style=0",
                 "--new_compaction_style=1"});
  ExpectRefused({"create_column_family", "three"});
  ExpectRefused({"drop_column_family", "two"});
  Check();
}

TEST_F(LdbMergeOperatorsTest, DisableAddressMapNeedsNoOperator) {
  options_.enable_blob_files = true;
  options_.enable_blob_address_map = true;
  Fill();
  ASSERT_EQ(0, Run({"disable_address_map"})) << output_;
  EXPECT_TRUE(Printed("OK: no value is in an address map")) << output_;
  options_.enable_blob_address_map = false;
  // The name of the operator is still in the DB.
  ExpectRefused({"compact"});
  Check();
  ASSERT_EQ(0, Run({"disable_address_map"})) << output_;
  Check();
}

TEST_F(LdbMergeOperatorsTest, DisableAddressMapNeedsNoOperatorForDeltas) {
  options_.enable_blob_files = true;
  options_.enable_blob_address_map = true;
  options_.enable_delta_separation = true;
  options_.enable_merged_value_cache = true;
  options_.delta_bucket_size = 4096;
  Fill();
  ExpectRefused({"compact"});
  ASSERT_EQ(0, Run({"disable_address_map"})) << output_;
  options_.enable_blob_address_map = false;
  Check();
}

TEST_F(LdbMergeOperatorsTest, ReadsNameTheMissingOperator) {
  for (bool own : {false, true}) {
    options_.enable_delta_separation = own;
    options_.enable_merged_value_cache = own;
    Fill();
    ASSERT_EQ(0, Run({"get", Key(0)})) << output_;
    EXPECT_TRUE(Printed(std::string(50, 'a'))) << output_;
    EXPECT_NE(0, Run({"get", Key(1)}));
    EXPECT_TRUE(Printed("\"application.Own\"")) << output_;
    EXPECT_EQ(0, Run({"list_column_families"})) << output_;
    Run({"scan"});
    EXPECT_TRUE(Printed("\"application.Own\"")) << output_;

    if (!own) {
      Check();
      ASSERT_OK(DestroyDir(env_, dbname_));
      continue;
    }
    // An application opens the DB to inspect it.
    Options loaded;
    std::vector<ColumnFamilyDescriptor> families;
    ASSERT_OK(LoadLatestOptions(ConfigOptions(), dbname_, &loaded, &families));
    ASSERT_EQ(families.size(), 2u);
    EXPECT_EQ(families[0].options.merge_operator, nullptr);
    ASSERT_OK(DB::OpenForReadOnly(loaded, dbname_, families, &handles_, &db_));
    for (ColumnFamilyHandle* handle : handles_) {
      std::string value;
      EXPECT_OK(db_->Get(ReadOptions(), handle, Key(0), &value));
      Status s = db_->Get(ReadOptions(), handle, Key(1), &value);
      EXPECT_NE(s.ToString().find("\"application.Own\""), std::string::npos)
          << s.ToString();
      PinnableSlice pinned;
      const std::string text = Key(2);
      const Slice key = text;
      db_->MultiGet(ReadOptions(), handle, 1, &key, &pinned, &s);
      EXPECT_NE(s.ToString().find("\"application.Own\""), std::string::npos)
          << s.ToString();
    }
    Close();
    Check();
    ASSERT_OK(DestroyDir(env_, dbname_));
  }
}

TEST_F(LdbMergeOperatorsTest, OperatorOfTheProgramIsUsed) {
  Fill();
  Options program;
  program.merge_operator = std::make_shared<OwnOperator>();
  ASSERT_EQ(0, Run({"compact"}, program)) << output_;
  ASSERT_EQ(0, Run({"compact", "--try_load_options=false"}, program))
      << output_;
  ASSERT_EQ(0, Run({"get", Key(1)}, program)) << output_;
  Check();
  // Another operator is not accepted.
  program.merge_operator = MergeOperators::CreateUInt64AddOperator();
  EXPECT_NE(0, Run({"compact"}, program));
  EXPECT_NE(0, Run({"compact", "--try_load_options=false"}, program));
  Check();
}

// An operator that ldb knows is used, whatever the flags say.
TEST_F(LdbMergeOperatorsTest, OperatorOfTheRegistryIsUsed) {
  options_.merge_operator = MergeOperators::CreateStringAppendOperator('|');
  Open();
  for (const char* operand : {"a", "b", "c"}) {
    ASSERT_OK(db_->Merge(WriteOptions(), "k", operand));
    ASSERT_OK(db_->Flush(FlushOptions()));
  }
  Close();
  for (const char* flag : {"--try_load_options=false", "--try_load_options"}) {
    ASSERT_EQ(0, Run({"compact", flag})) << output_;
    Open();
    std::string value;
    ASSERT_OK(db_->Get(ReadOptions(), "k", &value));
    EXPECT_EQ(value, "a|b|c");
    Close();
  }
}

// The operator of a DBWithTTL contains that of the application.
TEST_F(LdbMergeOperatorsTest, OperatorOfADatabaseWithTtl) {
  const std::string time(DBWithTTLImpl::kTSLength, '\1');
  const auto make = [&](const std::shared_ptr<MergeOperator>& contained) {
    options_.merge_operator = std::make_shared<TtlMergeOperator>(
        contained, env_->GetSystemClock().get());
    ASSERT_OK(DestroyDir(env_, dbname_));
    Open();
    for (const char* operand : {"a", "b", "c"}) {
      ASSERT_OK(db_->Merge(WriteOptions(), handles_[1], "k", operand + time));
      ASSERT_OK(db_->Flush(FlushOptions(), handles_[1]));
    }
    Close();
  };
  make(MergeOperators::CreateStringAppendOperator('|'));
  ASSERT_EQ(0, Run({"--column_family=two", "compact"})) << output_;
  Open();
  std::string value;
  ASSERT_OK(db_->Get(ReadOptions(), handles_[1], "k", &value));
  EXPECT_EQ(value.size(), 5 + time.size());
  EXPECT_EQ(value.substr(0, 5), "a|b|c");
  Close();

  // The loader of the OPTIONS file makes it without the contained one.
  make(std::make_shared<OwnOperator>());
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(0, Run({"compact"}));
    EXPECT_TRUE(Printed("\"TtlMergeOperator\" of column family \"two\""))
        << output_;
  }
}

// A DB without an operator stays without one, because the stand-in of ldb is
// for reads only.
TEST_F(LdbMergeOperatorsTest, DbWithoutAnOperatorStaysWithoutOne) {
  options_.merge_operator = nullptr;
  Open();
  ASSERT_OK(db_->Put(WriteOptions(), "k", "v"));
  Close();
  ASSERT_EQ(0, Run({"put", "l", "w"})) << output_;
  Options loaded;
  std::vector<ColumnFamilyDescriptor> families;
  ConfigOptions strict;
  ASSERT_OK(LoadLatestOptions(strict, dbname_, &loaded, &families));
  EXPECT_EQ(families[0].options.merge_operator, nullptr);
  ASSERT_EQ(0, Run({"get", "l"})) << output_;
}

TEST_F(LdbMergeOperatorsTest, RepairLoadsOptionsOfStrata) {
  options_.enable_blob_files = true;
  options_.cf_paths = {{dbname_, 1 << 30}, {second_, 1 << 30}};
  options_.level_sst_path_ids = {1};
  options_.level_blob_path_ids = {1};
  for (bool lose_manifest : {false, true}) {
    Fill();
    if (lose_manifest) {
      LoseManifest();
    }
    ASSERT_EQ(0, Run({"repair"})) << output_;
    EXPECT_TRUE(Printed("OK")) << output_;
    Check();
    ASSERT_OK(DestroyDir(env_, dbname_));
    ASSERT_OK(DestroyDir(env_, second_));
  }
}

// The repair has the WALs of the database, or is refused.
TEST_F(LdbMergeOperatorsTest, RepairTakesTheWalDirOfTheOptionsFile) {
  options_.wal_dir = second_;
  Fill();
  EXPECT_NE(0, Run({"repair", "--try_load_options=false"}));
  EXPECT_TRUE(Printed("has its WALs in " + second_)) << output_;
  Check();
  ASSERT_OK(DestroyDir(env_, dbname_));
  ASSERT_OK(DestroyDir(env_, second_));
  Fill();
  ASSERT_EQ(0, Run({"repair"})) << output_;
  Check();
}

TEST_F(LdbMergeOperatorsTest, RepairWithoutTheOptionsFileIsRefused) {
  options_.cf_paths = {{dbname_, 1 << 30}, {second_, 1 << 30}};
  options_.level_sst_path_ids = {1};
  Fill();
  // The options are not loaded, but the OPTIONS file is there to compare with.
  EXPECT_NE(0, Run({"repair", "--try_load_options=false"}));
  EXPECT_TRUE(Printed(second_)) << output_;
  std::vector<std::string> children;
  ASSERT_OK(env_->GetChildren(dbname_, &children));
  std::map<std::string, std::string> files;
  for (const std::string& child : children) {
    uint64_t number = 0;
    FileType type = kWalFile;
    if (ParseFileName(child, &number, &type) && type == kOptionsFile) {
      const std::string name = dbname_ + "/" + child;
      ASSERT_OK(ReadFileToString(env_, name, &files[name]));
      ASSERT_OK(env_->DeleteFile(name));
    }
  }
  EXPECT_NE(0, Run({"repair"}));
  EXPECT_TRUE(Printed("no readable OPTIONS file")) << output_;
  for (const auto& [name, text] : files) {
    ASSERT_OK(WriteStringToFile(env_, text, name));
  }
  Check();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
