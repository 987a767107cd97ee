//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of ldb commands on databases whose column families have paths.

#include <memory>
#include <string>
#include <vector>

#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/db.h"
#include "test_util/strata/ldb_call_test_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "tools/strata/ldb_path_flags.h"

namespace ROCKSDB_NAMESPACE {

// The default column family has its files in the directory of the database. The
// other one has a layout over two paths.
class LdbPathsTest : public testing::Test {
 protected:
  LdbPathsTest()
      : dbname_(test::PerThreadDBPath("ldb_paths_test")), env_(Env::Default()) {
    DestroyAll();
    EXPECT_OK(env_->CreateDirIfMissing(dbname_));
    for (Options* options : {&plain_, &tiered_}) {
      options->create_if_missing = true;
      options->create_missing_column_families = true;
      options->disable_auto_compactions = true;
    }
    tiered_.cf_paths = {{PathOf("old", 0), 1 << 30},
                        {PathOf("old", 1), 1 << 30}};
    tiered_.level_sst_path_ids = {1};
  }
  ~LdbPathsTest() override {
    Close();
    DestroyAll();
  }

  std::string PathOf(const std::string& name, int path_id) const {
    return dbname_ + "_" + name + std::to_string(path_id);
  }

  void DestroyAll() {
    EXPECT_OK(DestroyDir(env_, dbname_));
    for (const char* name : {"old", "new"}) {
      for (int i = 0; i < 2; ++i) {
        EXPECT_OK(DestroyDir(env_, PathOf(name, i)));
      }
    }
  }

  void Open() {
    const std::vector<ColumnFamilyDescriptor> families = {
        {kDefaultColumnFamilyName, plain_}, {"tiered", tiered_}};
    ASSERT_OK(DB::Open(plain_, dbname_, families, &handles_, &db_));
  }

  void Close() {
    for (ColumnFamilyHandle* handle : handles_) {
      EXPECT_OK(db_->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    db_.reset();
  }

  // Writes a key with the name of its column family into an SST file of each.
  void Fill() {
    Open();
    for (ColumnFamilyHandle* handle : handles_) {
      ASSERT_OK(
          db_->Put(WriteOptions(), handle, "key", "of " + handle->GetName()));
      ASSERT_OK(db_->Flush(FlushOptions(), handle));
    }
    Close();
    ASSERT_EQ(NumTables(dbname_), 1u);
    ASSERT_EQ(NumTables(PathOf("old", 1)), 1u);
  }

  void MovePaths() {
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(env_->RenameFile(PathOf("old", i), PathOf("new", i)));
      tiered_.cf_paths[i].path = PathOf("new", i);
    }
  }

  size_t NumTables(const std::string& directory) {
    std::vector<std::string> names;
    env_->GetChildren(directory, &names).PermitUncheckedError();
    size_t n = 0;
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type = kTempFile;
      n += ParseFileName(name, &number, &type) && type == kTableFile ? 1 : 0;
    }
    return n;
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

  const std::string dbname_;
  Env* const env_;
  Options plain_;
  Options tiered_;
  std::vector<ColumnFamilyHandle*> handles_;
  std::unique_ptr<DB> db_;
  std::string output_;
};

// --cf_paths says where the paths of a layout are now. A column family without
// a layout stays where it is, also if the command is about that family.
TEST_F(LdbPathsTest, CfPathsLeaveFamiliesWithoutALayout) {
  Fill();
  MovePaths();
  const std::string paths =
      "--cf_paths=" + PathOf("new", 0) + "," + PathOf("new", 1);
  ASSERT_EQ(0, Run({paths, "get", "key"})) << output_;
  EXPECT_TRUE(Printed("of default")) << output_;
  ASSERT_EQ(0, Run({paths, "--column_family=tiered", "get", "key"})) << output_;
  EXPECT_TRUE(Printed("of tiered")) << output_;

  // The open of the second command flushes what the first one has written.
  ASSERT_EQ(0, Run({paths, "put", "more", "written by ldb"})) << output_;
  ASSERT_EQ(0, Run({paths, "compact"})) << output_;
  EXPECT_GE(NumTables(dbname_), 1u);
  EXPECT_EQ(NumTables(PathOf("new", 0)), 0u);
  EXPECT_EQ(NumTables(PathOf("new", 1)), 1u);
  Open();
  std::string value;
  ASSERT_OK(db_->Get(ReadOptions(), handles_[0], "more", &value));
  EXPECT_EQ(value, "written by ldb");
  ASSERT_OK(db_->Get(ReadOptions(), handles_[1], "key", &value));
  EXPECT_EQ(value, "of tiered");
}

// Without a layout in the OPTIONS file, --cf_paths can only be meant for the
// column family of the command: RocksDB does not store its paths.
TEST_F(LdbPathsTest, CfPathsAreThoseOfTheFamilyIfNoneHasALayout) {
  tiered_.level_sst_path_ids.clear();
  tiered_.cf_paths = {{PathOf("old", 0), 1 << 30}};
  Open();
  ASSERT_OK(db_->Put(WriteOptions(), handles_[1], "key", "of tiered"));
  ASSERT_OK(db_->Flush(FlushOptions(), handles_[1]));
  Close();
  const std::string paths = "--cf_paths=" + PathOf("old", 0);
  ASSERT_EQ(0, Run({paths, "--column_family=tiered", "get", "key"})) << output_;
  EXPECT_TRUE(Printed("of tiered")) << output_;
}

TEST_F(LdbPathsTest, ErrorNamesAMissingPath) {
  Fill();
  const std::string path = PathOf("old", 1);
  ASSERT_OK(env_->RenameFile(path, PathOf("new", 1)));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"get", "key"},
                                             {"put", "key", "value"}}) {
    std::vector<std::string> args = {"--column_family=tiered"};
    args.insert(args.end(), command.begin(), command.end());
    EXPECT_NE(0, Run(args));
    EXPECT_TRUE(
        Printed("Path id 1 of column family tiered is missing: the "
                "directory " +
                path + " does not exist. The MANIFEST has 1 SST file"))
        << output_;
    EXPECT_TRUE(env_->FileExists(path).IsNotFound());
  }
  ASSERT_OK(env_->RenameFile(PathOf("new", 1), path));
  ASSERT_EQ(0, Run({"--column_family=tiered", "get", "key"})) << output_;
  EXPECT_TRUE(Printed("of tiered")) << output_;
}

// The files of a column family are on its own paths, not on those of the DB.
TEST_F(LdbPathsTest, UpdateManifestFindsTheFilesOfAllPaths) {
  Fill();
  ASSERT_EQ(0, Run({"update_manifest", "--update_temperatures"})) << output_;
  Open();
  for (ColumnFamilyHandle* handle : handles_) {
    std::string value;
    ASSERT_OK(db_->Get(ReadOptions(), handle, "key", &value));
    EXPECT_EQ(value, "of " + handle->GetName());
  }
}

// These commands read the MANIFEST without opening the database.
TEST_F(LdbPathsTest, CommandsOfTheManifestFindTheFilesOfAllPaths) {
  Fill();
  ASSERT_EQ(0, Run({"file_checksum_dump"})) << output_;
  EXPECT_TRUE(Printed("information finished")) << output_;
  MovePaths();
  const std::string paths =
      "--cf_paths=" + PathOf("new", 0) + "," + PathOf("new", 1);
  ASSERT_EQ(0, Run({paths, "file_checksum_dump"})) << output_;
  EXPECT_TRUE(Printed("information finished")) << output_;

  // This one knows the default column family only.
  DestroyAll();
  ASSERT_OK(env_->CreateDirIfMissing(dbname_));
  ASSERT_OK(DB::Open(tiered_, dbname_, &db_));
  ASSERT_OK(db_->Put(WriteOptions(), "key", "value"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  Close();
  ASSERT_EQ(0, Run({"reduce_levels", "--new_levels=7", "--print_old_levels"}))
      << output_;
  EXPECT_TRUE(Printed("levels in use is 1")) << output_;
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
