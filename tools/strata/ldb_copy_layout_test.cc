//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_copy_layout.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/db.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/strata/ldb_call_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class LdbCopyLayoutTest : public testing::Test {
 protected:
  LdbCopyLayoutTest() {
    options_.create_if_missing = true;
    options_.enable_blob_files = true;
    options_.min_blob_size = 0;
    options_.cf_paths = {{Directory("db"), 0}, {Directory("blobs"), 0}};
    options_.level_sst_path_ids = {0};
    options_.level_blob_path_ids = {1};
  }
  ~LdbCopyLayoutTest() override {
    for (const std::string& directory : directories_) {
      EXPECT_OK(DestroyDir(env_, directory));
    }
  }

  // Returns a directory that does not exist.
  std::string Directory(const std::string& name) {
    const std::string directory =
        test::PerThreadDBPath("ldb_copy_layout_test_" + name);
    EXPECT_OK(DestroyDir(env_, directory));
    directories_.push_back(directory);
    return directory;
  }
  // Returns the directory of the database, which has one SST file and one blob
  // file.
  std::string MakeDB() {
    const std::string dbname = options_.cf_paths[0].path;
    std::unique_ptr<DB> db;
    EXPECT_OK(DB::Open(options_, dbname, &db));
    EXPECT_OK(db->Put(WriteOptions(), "key", "value"));
    EXPECT_OK(db->Flush(FlushOptions()));
    EXPECT_OK(db->Close());
    return dbname;
  }

  // Returns the exit code, and stores what the command prints in output_.
  int Run(const std::vector<std::string>& args) {
    return RunLdb(args, Options(), &output_);
  }

  size_t Count(const std::string& directory, FileType type) {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(directory, &names));
    size_t count = 0;
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType found = kTempFile;
      count += ParseFileName(name, &number, &found) && found == type ? 1 : 0;
    }
    return count;
  }
  void CheckCopy(const std::string& directory) {
    DBOptions db_options;
    std::vector<ColumnFamilyDescriptor> families;
    ASSERT_OK(
        LoadLatestOptions(ConfigOptions(), directory, &db_options, &families));
    std::unique_ptr<DB> db;
    std::vector<ColumnFamilyHandle*> handles;
    ASSERT_OK(DB::Open(db_options, directory, families, &handles, &db));
    std::string value;
    EXPECT_OK(db->Get(ReadOptions(), "key", &value));
    EXPECT_EQ(value, "value");
    for (ColumnFamilyHandle* handle : handles) {
      EXPECT_OK(db->DestroyColumnFamilyHandle(handle));
    }
    EXPECT_OK(db->Close());
  }

  Env* const env_ = Env::Default();
  Options options_;
  std::vector<std::string> directories_;
  std::string output_;
};

TEST_F(LdbCopyLayoutTest, Flags) {
  std::map<std::string, std::string> flags;
  const LdbCopyLayout copy(flags, "checkpoint_");
  std::shared_ptr<const CopyLayout> layout;
  ASSERT_OK(copy.Make(&layout));
  EXPECT_EQ(layout, nullptr);
  // A flag of the database is none of the copy.
  flags["cf_paths"] = "/a,/b";
  ASSERT_OK(copy.Make(&layout));
  EXPECT_EQ(layout, nullptr);
  flags["checkpoint_cf_paths"] = "/c:5,/d";
  flags["checkpoint_level_blob_path_ids"] = "1,0";
  ASSERT_OK(copy.Make(&layout));
  ASSERT_NE(layout, nullptr);
  ASSERT_EQ(layout->all.cf_paths.size(), 2U);
  EXPECT_EQ(layout->all.cf_paths[0].path, "/c");
  EXPECT_EQ(layout->all.cf_paths[0].target_size, 5U);
  EXPECT_TRUE(layout->all.level_sst_path_ids.empty());
  EXPECT_EQ(layout->all.level_blob_path_ids, (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(layout->all.delta_sorted_path_id, -1);
  flags["checkpoint_delta_sorted_path_id"] = "1";
  ASSERT_OK(copy.Make(&layout));
  EXPECT_EQ(layout->all.delta_sorted_path_id, 1);
  for (const char* const name :
       {"checkpoint_level_sst_path_ids", "checkpoint_delta_sorted_path_id"}) {
    std::map<std::string, std::string> wrong = flags;
    wrong[name] = "x";
    const Status s = LdbCopyLayout(wrong, "checkpoint_").Make(&layout);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_EQ(layout, nullptr);
  }
  EXPECT_EQ(LdbCopyLayout::Names("x_", {"other"}),
            (std::vector<std::string>{
                "other", "x_cf_paths", "x_level_sst_path_ids",
                "x_level_blob_path_ids", "x_delta_sorted_path_id"}));
}

TEST_F(LdbCopyLayoutTest, Checkpoint) {
  const std::string dbname = MakeDB();
  const std::string copy = Directory("copy");
  const std::string second = Directory("second");
  // The layout of the database, on other paths.
  ASSERT_EQ(Run({"--db=" + dbname, "--try_load_options", "checkpoint",
                 "--checkpoint_dir=" + copy,
                 "--checkpoint_cf_paths=" + copy + "," + second}),
            0)
      << output_;
  EXPECT_EQ(Count(copy, kTableFile), 1U);
  EXPECT_EQ(Count(copy, kBlobFile), 0U);
  EXPECT_EQ(Count(second, kBlobFile), 1U);
  CheckCopy(copy);

  // Another layout.
  const std::string other = Directory("other");
  const std::string third = Directory("third");
  ASSERT_EQ(Run({"--db=" + dbname, "--try_load_options", "checkpoint",
                 "--checkpoint_dir=" + other,
                 "--checkpoint_cf_paths=" + other + "," + third,
                 "--checkpoint_level_sst_path_ids=1"}),
            0)
      << output_;
  EXPECT_EQ(Count(other, kBlobFile), 1U);
  EXPECT_EQ(Count(third, kTableFile), 1U);
  CheckCopy(other);

  // A directory that exists.
  EXPECT_NE(Run({"--db=" + dbname, "--try_load_options", "checkpoint",
                 "--checkpoint_dir=" + Directory("new"),
                 "--checkpoint_cf_paths=" + copy + "," + second}),
            0);
  // Without flags the copy is in one directory.
  const std::string one = Directory("one");
  ASSERT_EQ(Run({"--db=" + dbname, "--try_load_options", "checkpoint",
                 "--checkpoint_dir=" + one}),
            0)
      << output_;
  EXPECT_EQ(Count(one, kTableFile), 1U);
  EXPECT_EQ(Count(one, kBlobFile), 1U);
  CheckCopy(one);
}

TEST_F(LdbCopyLayoutTest, CheckpointOfADatabaseWithoutLayoutNeedsIds) {
  options_.cf_paths.clear();
  options_.level_sst_path_ids.clear();
  options_.level_blob_path_ids.clear();
  options_.cf_paths = {{Directory("db"), 0}};
  const std::string dbname = MakeDB();
  const std::string copy = Directory("copy");
  EXPECT_NE(Run({"--db=" + dbname, "--try_load_options", "checkpoint",
                 "--checkpoint_dir=" + copy,
                 "--checkpoint_cf_paths=" + copy + "," + Directory("second")}),
            0);
  EXPECT_NE(output_.find("checkpoint_level_sst_path_ids"), std::string::npos)
      << output_;
}

TEST_F(LdbCopyLayoutTest, APathOfSortedDeltaFilesIsKept) {
  options_.level_sst_path_ids.clear();
  options_.level_blob_path_ids.clear();
  options_.delta_sorted_path_id = 1;
  const std::string dbname = MakeDB();
  const std::string copy = Directory("copy");
  const std::string second = Directory("second");
  ASSERT_EQ(Run({"--db=" + dbname, "--try_load_options", "checkpoint",
                 "--checkpoint_dir=" + copy,
                 "--checkpoint_cf_paths=" + copy + "," + second}),
            0)
      << output_;
  EXPECT_EQ(Count(copy, kTableFile), 1U);
  EXPECT_EQ(Count(copy, kBlobFile), 1U);
  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> families;
  ASSERT_OK(LoadLatestOptions(ConfigOptions(), copy, &db_options, &families));
  EXPECT_EQ(families[0].options.delta_sorted_path_id, 1);
  ASSERT_EQ(families[0].options.cf_paths.size(), 2U);
  EXPECT_EQ(families[0].options.cf_paths[1].path, second);
  CheckCopy(copy);
}

TEST_F(LdbCopyLayoutTest, Restore) {
  const std::string dbname = MakeDB();
  const std::string backups = Directory("backups");
  ASSERT_EQ(Run({"--db=" + dbname, "--try_load_options", "backup",
                 "--backup_dir=" + backups}),
            0)
      << output_;
  const std::string copy = Directory("copy");
  const std::string second = Directory("second");
  ASSERT_EQ(
      Run({"--db=" + copy, "restore", "--backup_dir=" + backups,
           "--cf_paths=" + copy + "," + second, "--level_sst_path_ids=1"}),
      0)
      << output_;
  EXPECT_EQ(Count(copy, kBlobFile), 1U);
  EXPECT_EQ(Count(second, kTableFile), 1U);
  CheckCopy(copy);
  EXPECT_NE(Run({"--db=" + copy, "restore", "--backup_dir=" + backups,
                 "--cf_paths=" + copy + "," + second}),
            0);
}

TEST_F(LdbCopyLayoutTest, HelpNamesTheFlags) {
  ASSERT_EQ(Run({"--help"}), 0);
  EXPECT_NE(output_.find("[--checkpoint_cf_paths=<path>,...] "
                         "[--checkpoint_level_sst_path_ids=<ids,e.g.:0,1>] "
                         "[--checkpoint_level_blob_path_ids=<ids,e.g.:0,1>] "
                         "[--checkpoint_delta_sorted_path_id=<id,e.g.:1>]"),
            std::string::npos)
      << output_;
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
