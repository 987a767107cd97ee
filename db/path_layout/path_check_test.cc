//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of an open after a path was removed from cf_paths: the error says what
// to do, and doing it works.

#include "db/path_layout/path_check.h"

#include <set>
#include <string>
#include <vector>

#include "db/db_test_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class PathCheckTest : public DBTestBase {
 protected:
  static constexpr int kKeys = 50;

  PathCheckTest() : DBTestBase("path_check_test", /*env_do_fsync=*/false) {
    second_ = dbname_ + "_second";
  }
  ~PathCheckTest() override {
    Close();
    DestroyDir(env_, second_).PermitUncheckedError();
  }

  Options PathOptions(int num_paths, uint32_t layout, bool deltas) {
    Options options = CurrentOptions();
    options.cf_paths = {{dbname_, 0}};
    if (num_paths == 2) {
      options.cf_paths.emplace_back(second_, 0);
    }
    options.level_sst_path_ids = {layout};
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.enable_delta_separation = deltas;
    options.disable_auto_compactions = true;
    return options;
  }

  void MergeAll(const std::string& operand) {
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_OK(Merge(Key(i), operand));
    }
    ASSERT_OK(Flush());
  }
  void CheckAll(const std::string& value) {
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_EQ(Get(Key(i)), value);
    }
  }
  void CompactAll() {
    CompactRangeOptions options;
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
    WaitForCompactOptions wait;
    wait.wait_for_purge = true;
    ASSERT_OK(db_->WaitForCompact(wait));
  }
  size_t NumFilesOnSecond(FileType wanted) {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(second_, &names));
    size_t n = 0;
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type;
      n += ParseFileName(name, &number, &type) && type == wanted ? 1 : 0;
    }
    return n;
  }

  std::string second_;
};

TEST_F(PathCheckTest, DeltaFilesLeaveARemovedPath) {
  DestroyAndReopen(PathOptions(2, 1, /*deltas=*/true));
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(Put(Key(i), "base"));
  }
  ASSERT_OK(Flush());
  MergeAll("x");
  MergeAll("y");
  CompactAll();  // the operands are collected into buckets
  ASSERT_GT(NumFilesOnSecond(kDeltaFile), 0);
  const Status s = TryReopen(PathOptions(1, 0, /*deltas=*/true));
  ASSERT_TRUE(s.IsInvalidArgument()) << s.ToString();
  for (const char* part :
       {"path id 1", "delta_sorted_path_id", "CompactRange() of all keys",
        "kForce", "move the files"}) {
    EXPECT_NE(s.ToString().find(part), std::string::npos) << s.ToString();
  }

  // Follow the instructions of the message.
  Reopen(PathOptions(2, 0, /*deltas=*/true));
  CheckAll("base,x,y");
  CompactAll();
  EXPECT_EQ(NumFilesOnSecond(kTableFile), 0);
  EXPECT_EQ(NumFilesOnSecond(kDeltaFile), 0);
  Reopen(PathOptions(1, 0, /*deltas=*/true));
  CheckAll("base,x,y");
  MergeAll("w");
  CheckAll("base,x,y,w");
  // The database has left the id, so it may stand for another path.
  Reopen(PathOptions(2, 0, /*deltas=*/true));
  CheckAll("base,x,y,w");
}

// SST files have left the path, but delta_sorted_path_id still names it.
TEST_F(PathCheckTest, SortedDeltaFilesStayWhereTheirOptionSays) {
  DestroyAndReopen(PathOptions(2, 0, /*deltas=*/true));
  MergeAll("x");
  ASSERT_OK(dbfull()->SetOptions({{"delta_sorted_path_id", "1"}}));
  CompactAll();
  ASSERT_GT(NumFilesOnSecond(kDeltaFile), 0);
  const Status s = TryReopen(PathOptions(1, 0, /*deltas=*/true));
  ASSERT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find("delta file #"), std::string::npos)
      << s.ToString();
  Reopen(PathOptions(2, 0, /*deltas=*/true));
  CompactAll();
  EXPECT_EQ(NumFilesOnSecond(kDeltaFile), 0);
  Reopen(PathOptions(1, 0, /*deltas=*/true));
  CheckAll("x");
}

// A drain leaves the path, too.
TEST_F(PathCheckTest, DeltaFilesOnARemovedPathCanBeDrained) {
  DestroyAndReopen(PathOptions(2, 1, /*deltas=*/true));
  MergeAll("x");
  CompactAll();
  ASSERT_GT(NumFilesOnSecond(kDeltaFile), 0);
  Reopen(PathOptions(2, 0, /*deltas=*/false));
  CheckAll("x");
  CompactAll();
  EXPECT_EQ(NumFilesOnSecond(kDeltaFile), 0);
  Reopen(PathOptions(1, 0, /*deltas=*/false));
  CheckAll("x");
}

// An open also works if the files were moved to the last remaining path.
TEST_F(PathCheckTest, FilesOfARemovedPathCanBeMoved) {
  DestroyAndReopen(PathOptions(2, 1, /*deltas=*/true));
  MergeAll("x");
  MergeAll("y");
  Close();
  const Status s = TryReopen(PathOptions(1, 0, /*deltas=*/true));
  ASSERT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find("move the files of that path into " + dbname_),
            std::string::npos)
      << s.ToString();
  std::vector<std::string> names;
  ASSERT_OK(env_->GetChildren(second_, &names));
  for (const std::string& name : names) {
    uint64_t number = 0;
    FileType type;
    if (ParseFileName(name, &number, &type)) {
      ASSERT_OK(env_->RenameFile(second_ + "/" + name, dbname_ + "/" + name));
    }
  }
  Reopen(PathOptions(1, 0, /*deltas=*/true));
  CheckAll("x,y");
  ASSERT_OK(db_->VerifyChecksum());
  CompactAll();
  CheckAll("x,y");
}

// The MANIFEST that an open reads still has the records of blob files that were
// on a removed path. No version has these files any more, so they are not
// looked for.
TEST_F(PathCheckTest, BlobFilesWithoutLiveValuesMayBeMissing) {
  for (const bool is_mapped : {false, true}) {
    for (const bool keeps_values : {false, true}) {
      SCOPED_TRACE(std::to_string(is_mapped) + std::to_string(keeps_values));
      const auto blob_options = [&](int num_paths) {
        Options options = PathOptions(num_paths, 0, /*deltas=*/false);
        options.enable_blob_files = true;
        options.enable_blob_address_map = is_mapped;
        return options;
      };
      Options options = blob_options(2);
      options.level_blob_path_ids = {1};
      DestroyAndReopen(options);
      for (int i = 0; i < kKeys; ++i) {
        ASSERT_OK(Put(Key(i), "value"));
      }
      ASSERT_OK(Flush());
      ASSERT_EQ(NumFilesOnSecond(kBlobFile), 1);
      for (int i = 0; i < kKeys && !keeps_values; ++i) {
        ASSERT_OK(Delete(Key(i)));
      }
      ASSERT_OK(dbfull()->SetOptions({{"level_blob_path_ids", ""}}));
      CompactAll();
      ASSERT_EQ(NumFilesOnSecond(kBlobFile), 0);
      Reopen(blob_options(1));
      CheckAll(keeps_values ? "value" : "NOT_FOUND");
      ASSERT_OK(db_->VerifyChecksum());
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
