//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_given_paths.h"

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"
#include "tools/strata/ldb_path_flags.h"

namespace ROCKSDB_NAMESPACE {

class LdbGivenPathsTest : public testing::Test {
 public:
  LdbGivenPathsTest()
      : base_(test::PerThreadDBPath("ldb_given_paths_test")),
        env_(Env::Default()),
        db_paths_({{base_ + "/db", 1}}),
        flags_({{"cf_paths", base_ + "/given"}}) {
    EXPECT_OK(DestroyDir(env_, base_));
    EXPECT_OK(env_->CreateDir(base_));
    for (const char* const name : {"/db", "/given", "/own"}) {
      EXPECT_OK(env_->CreateDir(base_ + name));
    }
    families_ = {{"a", ColumnFamilyOptions()}, {"b", ColumnFamilyOptions()}};
    families_[1].options.cf_paths = {{base_ + "/own", 1}};
  }
  ~LdbGivenPathsTest() override { EXPECT_OK(DestroyDir(env_, base_)); }

  void Give() {
    LDBCommandExecuteResult result;
    paths_.Give(LdbPathFlags(flags_), &families_, &result);
    EXPECT_FALSE(result.IsFailed()) << result.ToString();
  }

  // number: of the only file of the family; 0: it has none.
  bool Take(int family, uint64_t number) {
    std::vector<ManifestFamily::File> files;
    if (number > 0) {
      files.push_back({kTableFile, number, 0, 1});
    }
    return paths_.Take(env_->GetFileSystem().get(), files, db_paths_,
                       &families_[family]);
  }

  void Create(const std::string& name) {
    ASSERT_OK(WriteStringToFile(env_, "x", base_ + name));
  }

  std::string PathOf(int family) {
    const std::vector<DbPath>& paths = families_[family].options.cf_paths;
    return paths.empty() ? "" : paths[0].path.substr(base_.size());
  }

  const std::string base_;
  Env* const env_;
  const std::vector<DbPath> db_paths_;
  const std::map<std::string, std::string> flags_;
  std::vector<ColumnFamilyDescriptor> families_;
  LdbGivenPaths paths_;
};

TEST_F(LdbGivenPathsTest, FilesDecide) {
  Create("/given/000007.sst");
  Create("/own/000008.sst");
  Give();
  EXPECT_EQ(PathOf(0), "/given");
  EXPECT_EQ(PathOf(1), "/given");
  EXPECT_FALSE(Take(0, 7));
  EXPECT_TRUE(Take(1, 8));
  EXPECT_EQ(PathOf(0), "/given");
  EXPECT_EQ(PathOf(1), "/own");
  ASSERT_OK(paths_.CheckWals(/*has_records=*/true));
  // It was decided.
  EXPECT_FALSE(Take(0, 0));
  EXPECT_EQ(PathOf(0), "/given");
}

TEST_F(LdbGivenPathsTest, FilesInTheDirectoryOfTheDatabase) {
  Create("/db/000007.sst");
  Give();
  EXPECT_TRUE(Take(0, 7));
  EXPECT_EQ(PathOf(0), "");
  // A file that is nowhere.
  EXPECT_FALSE(Take(1, 8));
  EXPECT_EQ(PathOf(1), "/given");
}

TEST_F(LdbGivenPathsTest, FamiliesWithoutFiles) {
  Give();
  EXPECT_FALSE(Take(0, 0));
  EXPECT_FALSE(Take(1, 0));
  EXPECT_EQ(PathOf(0), "");
  EXPECT_EQ(PathOf(1), "/own");
  EXPECT_TRUE(paths_.NeedsEmptyWals());
  ASSERT_OK(paths_.CheckWals(/*has_records=*/false));
  const Status s = paths_.CheckWals(/*has_records=*/true);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_NE(s.ToString().find("[a], [b]: has no files"), std::string::npos)
      << s.ToString();
}

// With a layout, the paths are for that family.
TEST_F(LdbGivenPathsTest, NoPathsAreGiven) {
  families_[1].options.level_blob_path_ids = {0};
  Give();
  EXPECT_EQ(PathOf(0), "");
  EXPECT_FALSE(Take(0, 0));
  ASSERT_OK(paths_.CheckWals(/*has_records=*/true));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
