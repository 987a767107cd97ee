//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_map_command.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/db.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/strata/ldb_call_test_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

class LdbMapCommandTest : public testing::Test {
 protected:
  LdbMapCommandTest()
      : dbname_(test::PerThreadDBPath("ldb_map_command_test")),
        env_(Env::Default()) {
    EXPECT_OK(DestroyDir(env_, dbname_));
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.enable_blob_files = true;
    options_.enable_blob_address_map = true;
  }
  ~LdbMapCommandTest() override {
    Close();
    EXPECT_OK(DestroyDir(env_, dbname_));
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

  void Fill() {
    Open();
    for (ColumnFamilyHandle* handle : handles_) {
      for (int i = 0; i < 20; ++i) {
        ASSERT_OK(db_->Put(WriteOptions(), handle, "k" + std::to_string(i),
                           std::string(100, static_cast<char>('a' + i))));
      }
      ASSERT_OK(db_->Flush(FlushOptions(), handle));
    }
    Close();
  }

  void Check() {
    for (ColumnFamilyHandle* handle : handles_) {
      for (int i = 0; i < 20; ++i) {
        std::string value;
        ASSERT_OK(
            db_->Get(ReadOptions(), handle, "k" + std::to_string(i), &value));
        ASSERT_EQ(value, std::string(100, static_cast<char>('a' + i)));
      }
    }
  }

  // Returns the exit code, and stores what the command prints in output_.
  int Run(const std::vector<std::string>& args) {
    std::vector<std::string> all = {"--db=" + dbname_};
    all.insert(all.end(), args.begin(), args.end());
    return RunLdb(all, Options(), &output_);
  }

  bool Printed(const std::string& text) {
    return output_.find(text) != std::string::npos;
  }

  std::vector<std::string> Files(FileType wanted) {
    std::vector<std::string> result;
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(dbname_, &names));
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type;
      if (ParseFileName(name, &number, &type) && type == wanted) {
        result.push_back(dbname_ + "/" + name);
      }
    }
    return result;
  }

  const std::string dbname_;
  Env* const env_;
  Options options_;
  std::vector<ColumnFamilyHandle*> handles_;
  std::unique_ptr<DB> db_;
  std::string output_;
};

TEST_F(LdbMapCommandTest, VerifyFindsDamagedAndMissingValues) {
  Fill();
  for (const std::string option : {"--threads=3", "--keys_only"}) {
    ASSERT_EQ(0, Run({"--try_load_options", "verify_address_map", option}))
        << output_;
    EXPECT_TRUE(Printed("[default] 20 values")) << output_;
    EXPECT_TRUE(Printed("[two] 20 values")) << output_;
    EXPECT_TRUE(Printed("OK")) << output_;
  }
  EXPECT_NE(0,
            Run({"--try_load_options", "verify_address_map", "--threads=0"}));
  EXPECT_TRUE(Printed("--threads must be at least 1")) << output_;
  EXPECT_NE(0, Run({"--try_load_options", "verify_address_map", "k1"}));
  EXPECT_TRUE(Printed("takes no parameters")) << output_;

  // One value cannot be read.
  const std::vector<std::string> blob_files = Files(kBlobFile);
  ASSERT_EQ(blob_files.size(), 2);
  ASSERT_OK(test::CorruptFile(env_, blob_files[0], 150, 4));
  EXPECT_NE(0, Run({"--try_load_options", "verify_address_map"}));
  EXPECT_TRUE(Printed("1 values are lost or damaged")) << output_;
  EXPECT_TRUE(Printed(blob_files[0])) << output_;
  // The address of the value is in the map, so the check of keys alone
  // succeeds.
  EXPECT_EQ(0, Run({"--try_load_options", "verify_address_map", "--keys_only"}))
      << output_;

  // A file is missing, although a checkpoint of the map has its values.
  ASSERT_EQ(Files(kTempFile).size(), 2);
  ASSERT_OK(env_->DeleteFile(blob_files[1]));
  EXPECT_NE(0,
            Run({"--try_load_options", "verify_address_map", "--keys_only"}));
}

TEST_F(LdbMapCommandTest, VerifyReadsTheRecordIndexes) {
  Fill();
  ASSERT_EQ(0, Run({"verify_address_map", "--keys_only"})) << output_;
  EXPECT_TRUE(Printed("0 lost or damaged; 0 damaged record indexes"))
      << output_;
  // A damaged block can be restored from the records. The DB opens with the
  // checkpoint of the map and does not need it.
  const std::string blob_file = Files(kBlobFile)[0];
  uint64_t size = 0;
  ASSERT_OK(env_->GetFileSize(blob_file, &size));
  ASSERT_OK(
      test::CorruptFile(env_, blob_file, static_cast<int>(size) - 100, 4));
  ASSERT_EQ(0, Run({"get", "k7"})) << output_;
  EXPECT_NE(0, Run({"verify_address_map", "--keys_only"}));
  EXPECT_TRUE(Printed("record index of blob file #")) << output_;
  EXPECT_TRUE(Printed(blob_file)) << output_;
  EXPECT_TRUE(
      Printed("0 values are lost or damaged; 1 record indexes are damaged"))
      << output_;
  // It cannot be restored if a record's header is damaged, too. Then the values
  // are lost as soon as the checkpoint is gone.
  ASSERT_OK(test::CorruptFile(env_, blob_file, 40, 4));
  ASSERT_EQ(0, Run({"get", "k7"})) << output_;
  EXPECT_NE(0, Run({"verify_address_map", "--keys_only"}));
  EXPECT_TRUE(Printed("20 values are lost or damaged; 1 record indexes"))
      << output_;
}

TEST_F(LdbMapCommandTest, CommandsAcceptAnEmptyDb) {
  Open();
  Close();
  EXPECT_EQ(0, Run({"verify_address_map"})) << output_;
  EXPECT_TRUE(Printed("[default] 0 values")) << output_;
  EXPECT_EQ(0, Run({"disable_address_map"})) << output_;
}

TEST_F(LdbMapCommandTest, OtherCommandsKeepTheMap) {
  Fill();
  ASSERT_EQ(0, Run({"put", "k7", std::string(100, 'z')})) << output_;
  ASSERT_EQ(0, Run({"compact"})) << output_;
  ASSERT_EQ(0, Run({"get", "k7"})) << output_;
  EXPECT_TRUE(Printed(std::string(100, 'z'))) << output_;
  ASSERT_EQ(0, Run({"put", "k7", std::string(100, 'a' + 7)})) << output_;
  ASSERT_EQ(0, Run({"verify_address_map"})) << output_;
  EXPECT_TRUE(Printed("[default] 2")) << output_;
  Open();
  Check();
  Close();
}

TEST_F(LdbMapCommandTest, CollectBlobGarbageRewritesFilesAboveTheLimit) {
  options_.blob_gc_space_amp_limit = 0;
  options_.blob_file_size = 4 << 10;  // no file is a small one
  Fill();
  EXPECT_NE(0, Run({"--try_load_options=false", "collect_blob_garbage"}));
  EXPECT_NE(0, Run({"collect_blob_garbage", "a"}));
  EXPECT_NE(0, Run({"collect_blob_garbage", "--space_amp_limit=0.9"}));
  EXPECT_NE(0, Run({"collect_blob_garbage", "--space_amp_limit=x"}));
  EXPECT_NE(0, Run({"collect_blob_garbage", "--max_sorted_runs=-1"}));
  EXPECT_NE(0, Run({"collect_blob_garbage", "--max_sorted_runs=x"}));
  // Half of the values of one family are overwritten.
  Open();
  for (int i = 0; i < 20; i += 2) {
    ASSERT_OK(db_->Put(WriteOptions(), handles_[1], "k" + std::to_string(i),
                       std::string(100, static_cast<char>('a' + i))));
  }
  ASSERT_OK(db_->Flush(FlushOptions(), handles_[1]));
  Close();
  const auto before = Files(kBlobFile);
  ASSERT_EQ(3u, before.size());
  // The default family has no garbage.
  EXPECT_EQ(0, Run({"collect_blob_garbage"})) << output_;
  EXPECT_EQ(before, Files(kBlobFile));
  EXPECT_EQ(0, Run({"--column_family=two", "collect_blob_garbage",
                    "--space_amp_limit=2"}))
      << output_;
  EXPECT_EQ(before, Files(kBlobFile));
  EXPECT_EQ(0, Run({"--column_family=two", "collect_blob_garbage"})) << output_;
  EXPECT_TRUE(Printed("OK")) << output_;
  EXPECT_EQ(3u, Files(kBlobFile).size());
  EXPECT_NE(before, Files(kBlobFile));
  EXPECT_EQ(0, Run({"verify_address_map"})) << output_;
  EXPECT_EQ(0, Run({"--column_family=two", "collect_blob_garbage",
                    "--max_sorted_runs=1"}))
      << output_;
  EXPECT_EQ(0, Run({"verify_address_map"})) << output_;
  Open();
  Check();
  Close();
}

TEST_F(LdbMapCommandTest, DisableMovesAllValuesOutOfTheMap) {
  options_.enable_lsm_bypass = false;
  options_.save_blob_address_map = false;
  options_.blob_gc_space_amp_limit = 2;
  options_.blob_scan_sort_budget = 0;
  Fill();
  EXPECT_NE(0, Run({"--try_load_options=false", "disable_address_map"}));
  EXPECT_TRUE(Printed("--try_load_options")) << output_;
  ASSERT_EQ(0,
            Run({"--try_load_options", "disable_address_map", "--threads=2"}))
      << output_;
  EXPECT_TRUE(Printed("[default] compacted")) << output_;
  EXPECT_TRUE(Printed("[two] compacted")) << output_;
  EXPECT_TRUE(Printed("OK: no value is in an address map")) << output_;
  // The OPTIONS file names no option of the map.
  std::string file;
  std::string text;
  ASSERT_OK(GetLatestOptionsFileName(dbname_, env_, &file));
  ASSERT_OK(ReadFileToString(env_, dbname_ + "/" + file, &text));
  EXPECT_EQ(text.find("address_map"), std::string::npos) << text;
  EXPECT_EQ(text.find("lsm_bypass"), std::string::npos) << text;
  EXPECT_EQ(text.find("# strata: "), std::string::npos) << text;

  options_.enable_blob_address_map = false;
  Open();
  Check();
  ASSERT_FALSE(HasFatalFailure());
  for (ColumnFamilyHandle* handle : handles_) {
    EXPECT_EQ(nullptr, static_cast_with_check<ColumnFamilyHandleImpl>(handle)
                           ->cfd()
                           ->address_map_store());
    // The values are in ordinary blob files.
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(handle, &metadata);
    EXPECT_EQ(metadata.blob_files.size(), 1);
  }
  Close();
  // The second run has nothing to do.
  EXPECT_EQ(0, Run({"--try_load_options", "disable_address_map"})) << output_;
}

// Other tools find the paths of the column families in the OPTIONS file.
TEST_F(LdbMapCommandTest, DisableKeepsThePathsOfHotValues) {
  options_.cf_paths = {{dbname_, 1 << 30}, {dbname_ + "/hot", 1 << 30}};
  options_.blob_hot_bytes = 1 << 20;
  options_.blob_hot_path_id = 1;
  Fill();
  ASSERT_EQ(0, Run({"--try_load_options", "disable_address_map"})) << output_;
  std::string file;
  std::string text;
  ASSERT_OK(GetLatestOptionsFileName(dbname_, env_, &file));
  ASSERT_OK(ReadFileToString(env_, dbname_ + "/" + file, &text));
  EXPECT_EQ(text.find("enable_blob_address_map"), std::string::npos) << text;
  EXPECT_NE(text.find("# strata: cf_paths="), std::string::npos) << text;
  EXPECT_NE(text.find("# strata: blob_hot_bytes=1048576"), std::string::npos)
      << text;
  options_.enable_blob_address_map = false;
  Open();
  Check();
}

// The values go to blob files also if the OPTIONS file has no map any more.
TEST_F(LdbMapCommandTest, DisableFinishesWhatOptionsBegan) {
  Fill();
  options_.enable_blob_address_map = false;
  Open();
  Close();
  ASSERT_EQ(0, Run({"--try_load_options", "disable_address_map"})) << output_;
  Open();
  Check();
  for (ColumnFamilyHandle* handle : handles_) {
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(handle, &metadata);
    EXPECT_EQ(metadata.blob_files.size(), 1) << metadata.name;
  }
}

// RocksDB reads all of a MANIFEST, also edits that were undone later.
TEST_F(LdbMapCommandTest, DisableWritesANewManifest) {
  options_.reuse_manifest_on_open = true;
  Fill();
  const std::vector<std::string> before = Files(kDescriptorFile);
  ASSERT_EQ(0, Run({"--try_load_options", "disable_address_map"})) << output_;
  const std::vector<std::string> after = Files(kDescriptorFile);
  for (const std::string& name : before) {
    EXPECT_EQ(std::count(after.begin(), after.end(), name), 0) << name;
  }
}

// A column family without a map has nothing to verify, collect or move.
TEST_F(LdbMapCommandTest, CommandsAcceptAFamilyWithoutAMap) {
  options_.enable_blob_address_map = false;
  Fill();
  EXPECT_EQ(0, Run({"verify_address_map"})) << output_;
  EXPECT_FALSE(Printed("[default]")) << output_;
  EXPECT_TRUE(Printed("OK")) << output_;
  EXPECT_NE(0, Run({"--try_load_options", "disable_address_map", "k1"}));
  EXPECT_TRUE(Printed("disable_address_map takes no parameters")) << output_;
  EXPECT_EQ(0, Run({"--try_load_options", "disable_address_map"})) << output_;
  EXPECT_TRUE(Printed("OK: no value is in an address map")) << output_;
  Open();
  Check();
  Close();
}

// A command that cannot open the database does nothing else.
TEST_F(LdbMapCommandTest, CommandsEndWithTheErrorOfTheOpen) {
  Fill();
  ASSERT_OK(env_->DeleteFile(CurrentFileName(dbname_)));
  for (const std::string command :
       {"verify_address_map", "disable_address_map", "collect_blob_garbage"}) {
    EXPECT_EQ(1, Run({command})) << command;
    EXPECT_TRUE(Printed("Failed: ")) << output_;
    EXPECT_TRUE(Printed(dbname_)) << output_;
  }
  // Without this option, ldb calls a command although the open has failed.
  EXPECT_EQ(1, Run({"verify_address_map", "--try_load_options=false"}));
  EXPECT_TRUE(Printed(dbname_)) << output_;
  EXPECT_FALSE(Printed("OK")) << output_;
}

TEST_F(LdbMapCommandTest, HelpNamesTheCommands) {
  ASSERT_EQ(0, RunLdb({"--help"}, Options(), &output_));
  EXPECT_TRUE(
      Printed("  verify_address_map [--threads=<int,e.g.:4>] [--keys_only]\n"))
      << output_;
  EXPECT_TRUE(
      Printed("  disable_address_map [--threads=<int,e.g.:4>]  (with "
              "--try_load_options)\n"))
      << output_;
  EXPECT_TRUE(
      Printed("  collect_blob_garbage [--space_amp_limit=<number,e.g.:1.1>] "
              "[--max_sorted_runs=<number,e.g.:1>]  (with "
              "--try_load_options)\n"))
      << output_;
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
