//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/unlisted_path_check.h"

#include <string>
#include <vector>

#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

class UnlistedPathCheckTest : public testing::Test {
 protected:
  UnlistedPathCheckTest() {
    const std::string name = test::PerThreadDBPath("unlisted_path_check_test");
    paths_ = {{name + "_0", 0}, {name + "_1", 0}};
    for (const DbPath& path : paths_) {
      EXPECT_OK(env_->CreateDirIfMissing(path.path));
    }
  }
  ~UnlistedPathCheckTest() override {
    for (const DbPath& path : paths_) {
      EXPECT_OK(DestroyDir(env_, path.path));
    }
  }

  void Miss(uint64_t number, uint32_t path_id) {
    check_.OnMissingFile(env_->GetFileSystem().get(), paths_, "family",
                         kTableFile, number, path_id);
  }
  bool Names(uint64_t number) {
    const Status& s = check_.status();
    return s.IsInvalidArgument() &&
           s.ToString().find("table file #" + std::to_string(number) +
                             " of column family family on path id 2") !=
               std::string::npos;
  }

  Env* const env_ = Env::Default();
  std::vector<DbPath> paths_;
  UnlistedPathCheck check_;
};

TEST_F(UnlistedPathCheckTest, FilesOfListedPathsAreGone) {
  ASSERT_OK(check_.status());
  Miss(7, 0);
  Miss(8, 1);
  ASSERT_OK(check_.status());
}

TEST_F(UnlistedPathCheckTest, NamesTheFirstFileOfAnUnlistedPath) {
  Miss(7, 1);
  Miss(8, 2);
  Miss(9, 2);
  Miss(10, 0);
  EXPECT_TRUE(Names(8)) << check_.status().ToString();
}

TEST_F(UnlistedPathCheckTest, ACompleteStateNeedsNoOlderFiles) {
  Miss(8, 2);
  check_.OnCompleteState();
  ASSERT_OK(check_.status());
  Miss(9, 2);
  EXPECT_TRUE(Names(9)) << check_.status().ToString();
}

// Such a file is damaged.
TEST_F(UnlistedPathCheckTest, AFileOnTheLastPathIsNotMissing) {
  ASSERT_OK(WriteStringToFile(env_, "x", TableFileName(paths_, 8, 2)));
  Miss(8, 2);
  ASSERT_OK(check_.status());
}

TEST(UnlistedPathCheckExemptTest, EachPathIdMeansWhatItMeant) {
  DBOptions db_options;
  ColumnFamilyOptions options;
  const auto directories = [&] {
    UnlistedPathCheck::Exempt("/db", db_options, &options);
    std::vector<std::string> result;
    for (const DbPath& path : options.cf_paths) {
      result.push_back(path.path);
    }
    return result;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(directories(), Names({"/db", "/db", "/db", "/db"}));
  options.cf_paths.clear();
  db_options.db_paths = {{"/a", 0}, {"/b", 0}};
  EXPECT_EQ(directories(), Names({"/a", "/b", "/b", "/b"}));
  options.cf_paths = {{"/c", 0}};
  EXPECT_EQ(directories(), Names({"/c", "/c", "/c", "/c"}));
  options.cf_paths = {{"/c", 0}, {"/d", 0}, {"/e", 0}, {"/f", 0}};
  EXPECT_EQ(directories(), Names({"/c", "/d", "/e", "/f"}));
  options.cf_paths = {{"/c", 0}};
  options.compaction_style = kCompactionStyleFIFO;
  EXPECT_EQ(directories(), Names({"/c"}));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
