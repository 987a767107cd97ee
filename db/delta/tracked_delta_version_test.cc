//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/tracked_delta_version.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "db/delta/delta_edit_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

class TrackedDeltaVersionTest : public testing::Test {
 public:
  static DeltaEdit Flush(uint64_t number) {
    DeltaEdit edit;
    edit.AddFile(MakeDeltaFile(number, DeltaKind::kOperands,
                               DeltaTier::kFlushed, number));
    return edit;
  }

  static DeltaVersion::FilePtr MakeFile(const DeltaFileDescription& file) {
    return DeltaFileMeta::Create(file, /*on_release=*/nullptr);
  }

  Status Apply(const DeltaEdit& edit) {
    return tracked_.Apply(
        edit, BytewiseComparator(), MakeFile,
        /*family=*/"", [this](const DeltaFileDescription& file) {
          ++asked_;
          return gone_.count(file.number) == 0 ? Status::OK() : answer_;
        });
  }

  TrackedDeltaVersion tracked_;
  std::set<uint64_t> gone_;
  Status answer_ = Status::PathNotFound();
  int asked_ = 0;
};

TEST_F(TrackedDeltaVersionTest, EmptyStateHasAllFiles) {
  EXPECT_TRUE(tracked_.AllFilesAreThere());
  EXPECT_EQ(tracked_.Current(), nullptr);
}

TEST_F(TrackedDeltaVersionTest, NoticesAMissingFile) {
  ASSERT_OK(Apply(Flush(10)));
  EXPECT_EQ(asked_, 1);
  EXPECT_TRUE(tracked_.AllFilesAreThere());
  gone_ = {11};
  for (const Status& answer :
       {Status::PathNotFound(), Status::NotFound(), Status::Corruption()}) {
    answer_ = answer;
    const TrackedDeltaVersion before = tracked_;
    ASSERT_OK(Apply(Flush(11)));
    EXPECT_FALSE(tracked_.AllFilesAreThere());
    ASSERT_OK(Apply(Flush(12)));
    EXPECT_FALSE(tracked_.AllFilesAreThere());
    // The state before the edit has all its files.
    tracked_ = before;
    EXPECT_TRUE(tracked_.AllFilesAreThere());
  }
}

TEST_F(TrackedDeltaVersionTest, ForgetsAMissingFile) {
  gone_ = {11, 12};
  for (uint64_t number : {10, 11, 12}) {
    ASSERT_OK(Apply(Flush(number)));
  }
  EXPECT_FALSE(tracked_.IsMissing(10));
  EXPECT_TRUE(tracked_.IsMissing(11));
  const TrackedDeltaVersion before = tracked_;
  tracked_.Forget({11});
  EXPECT_FALSE(tracked_.IsMissing(11));
  EXPECT_FALSE(tracked_.AllFilesAreThere());
  tracked_.Forget({10, 12});
  EXPECT_TRUE(tracked_.AllFilesAreThere());
  // Copies are independent.
  tracked_ = before;
  EXPECT_TRUE(tracked_.IsMissing(11));
}

// A file that a later edit removes need not exist.
TEST_F(TrackedDeltaVersionTest, RemovedFileMayBeMissing) {
  gone_ = {11};
  ASSERT_OK(Apply(Flush(11)));
  EXPECT_FALSE(tracked_.AllFilesAreThere());
  DeltaEdit merge;
  merge.AddFile(
      MakeDeltaFile(12, DeltaKind::kOperands, DeltaTier::kMerged, 11));
  merge.SetMergeRecent({11, 1});
  ASSERT_OK(Apply(merge));
  ASSERT_EQ(tracked_.Current()->GetFile(11), nullptr);
  EXPECT_TRUE(tracked_.AllFilesAreThere());
}

// Two files are missing, and a later edit removes the second of them. The first
// one is still missing.
TEST_F(TrackedDeltaVersionTest, RemovalOfOneMissingFileLeavesTheOther) {
  const auto merge = [](uint64_t number, uint64_t epoch) {
    DeltaEdit edit;
    edit.AddFile(
        MakeDeltaFile(number, DeltaKind::kOperands, DeltaTier::kMerged, epoch));
    edit.SetMergeRecent({epoch, 1});
    return edit;
  };
  gone_ = {12, 13};
  ASSERT_OK(Apply(Flush(11)));
  ASSERT_OK(Apply(merge(12, 11)));
  ASSERT_OK(Apply(Flush(13)));
  ASSERT_OK(Apply(merge(14, 13)));
  ASSERT_NE(tracked_.Current()->GetFile(12), nullptr);
  ASSERT_EQ(tracked_.Current()->GetFile(13), nullptr);
  EXPECT_FALSE(tracked_.AllFilesAreThere());
}

TEST_F(TrackedDeltaVersionTest, ErrorOfTheCheckFailsTheEdit) {
  gone_ = {11};
  answer_ = Status::IOError("injected");
  EXPECT_TRUE(Apply(Flush(11)).IsIOError());
}

TEST_F(TrackedDeltaVersionTest, WithoutACheckAllFilesAreThere) {
  ASSERT_OK(tracked_.Apply(Flush(11), BytewiseComparator(), MakeFile,
                           /*family=*/"", /*verify=*/nullptr));
  EXPECT_TRUE(tracked_.AllFilesAreThere());
}

TEST_F(TrackedDeltaVersionTest, RefusedComparatorIsThatOfTheColumnFamily) {
  const std::string text =
      "Not implemented: Merge operands in delta files "
      "(enable_delta_separation) cannot be combined with user-defined "
      "timestamps: a key has operands for each timestamp";
  const auto error = [](const DeltaEdit& edit, const Comparator* ucmp,
                        const std::string& family) {
    return TrackedDeltaVersion()
        .Apply(edit, ucmp, MakeFile, family, /*verify=*/nullptr)
        .ToString();
  };
  const Comparator* const ucmp = test::BytewiseComparatorWithU64TsWrapper();
  EXPECT_EQ(error(Flush(11), ucmp, "f"), text + " (column family f)");
  EXPECT_EQ(error(Flush(11), ucmp, ""), text);
  // Other errors are not about options.
  const std::string damaged = error(DeltaEdit(), BytewiseComparator(), "f");
  EXPECT_EQ(damaged.rfind("Corruption", 0), 0) << damaged;
  EXPECT_EQ(damaged.find("column family"), std::string::npos) << damaged;
}

TEST_F(TrackedDeltaVersionTest, IncompleteSnapshotLacksFiles) {
  DeltaEdit edit;
  DeltaEdit::SnapshotPiece piece;
  piece.index = 0;
  piece.is_last = false;
  edit.SetSnapshotPiece(std::move(piece));
  ASSERT_OK(Apply(edit));
  EXPECT_FALSE(tracked_.AllFilesAreThere());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
