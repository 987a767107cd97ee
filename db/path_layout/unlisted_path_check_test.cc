//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/unlisted_path_check.h"

#include <algorithm>
#include <set>
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
  // Comes to a state that needs these files, which were missing, and returns
  // the status. lost: those of them that keep the state from being valid. A
  // file that was missing on a listed path may be among them.
  Status Come(const std::set<uint64_t>& needed,
              const std::set<uint64_t>& lost) {
    return check_.OnState(
        [&](uint64_t number) { return needed.count(number) > 0; },
        [&](const std::set<uint64_t>& found) {
          return std::includes(found.begin(), found.end(), lost.begin(),
                               lost.end());
        });
  }
  bool Names(uint64_t number, const Status& s) {
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
  EXPECT_TRUE(check_.IsUnused());
  Miss(7, 0);
  Miss(8, 1);
  EXPECT_TRUE(check_.IsUnused());
  EXPECT_FALSE(check_.Has(8));
  EXPECT_OK(Come({7, 8}, {7, 8}));
}

TEST_F(UnlistedPathCheckTest, NamesTheFirstFileOfAnUnlistedPath) {
  Miss(7, 1);
  Miss(8, 2);
  Miss(9, 2);
  EXPECT_FALSE(check_.IsUnused());
  EXPECT_TRUE(check_.Has(8));
  EXPECT_OK(check_.status());
  EXPECT_TRUE(Names(8, Come({8, 9}, {8, 9})));
  EXPECT_TRUE(Names(9, Come({9}, {9})));
  EXPECT_TRUE(Names(9, check_.status()));
}

TEST_F(UnlistedPathCheckTest, ALaterStateNeedsNoOlderFiles) {
  Miss(8, 2);
  EXPECT_TRUE(Names(8, Come({8}, {8})));
  // No replay ends with this state, so it goes back to the one with #8.
  EXPECT_TRUE(Names(8, Come({}, {7})));
  EXPECT_OK(Come({}, {}));
  EXPECT_TRUE(check_.IsUnused());
  Miss(9, 2);
  EXPECT_TRUE(Names(9, Come({9}, {9})));
}

// A state without #8 is valid, but the one with it would be newer.
TEST_F(UnlistedPathCheckTest, ARecoveryMustNotDoWithoutTheFile) {
  Miss(8, 2);
  EXPECT_TRUE(Names(8, Come({8}, {})));
}

// With the right paths no replay would end with such a state, either.
TEST_F(UnlistedPathCheckTest, AStateThatAlsoLacksAFileOfAListedPath) {
  Miss(7, 1);
  Miss(8, 2);
  EXPECT_OK(Come({8}, {7, 8}));
  // The same after a state that would have been valid.
  EXPECT_TRUE(Names(8, Come({8}, {8})));
  Miss(9, 2);
  EXPECT_TRUE(Names(8, Come({9}, {7, 9})));
  EXPECT_OK(Come({}, {}));
}

// A blob file may be missing from a state that has it, but no value in it.
TEST_F(UnlistedPathCheckTest, KeepsBlobFiles) {
  check_.OnMissingFile(env_->GetFileSystem().get(), paths_, "family", kBlobFile,
                       8, 2);
  Miss(9, 2);
  EXPECT_OK(Come({}, {}));
  EXPECT_TRUE(check_.Has(8));
  EXPECT_FALSE(check_.Has(9));
}

// Such a file is damaged.
TEST_F(UnlistedPathCheckTest, AFileOnTheLastPathIsNotMissing) {
  ASSERT_OK(WriteStringToFile(env_, "x", TableFileName(paths_, 8, 2)));
  Miss(8, 2);
  EXPECT_TRUE(check_.IsUnused());
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
  const auto is_exempt = [&] {
    return UnlistedPathCheck::IsExempt(options.cf_paths);
  };
  EXPECT_FALSE(is_exempt());
  using Names = std::vector<std::string>;
  EXPECT_EQ(directories(), Names({"/db", "/db", "/db", "/db"}));
  options.cf_paths.clear();
  db_options.db_paths = {{"/a", 0}, {"/b", 0}};
  EXPECT_FALSE(UnlistedPathCheck::IsExempt(db_options.db_paths));
  EXPECT_EQ(directories(), Names({"/a", "/b", "/b", "/b"}));
  EXPECT_TRUE(is_exempt());
  options.cf_paths = {{"/c", 0}};
  EXPECT_EQ(directories(), Names({"/c", "/c", "/c", "/c"}));
  options.cf_paths = {{"/c", 0}, {"/d", 0}, {"/e", 0}, {"/f", 0}};
  EXPECT_EQ(directories(), Names({"/c", "/d", "/e", "/f"}));
  EXPECT_FALSE(is_exempt());
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
