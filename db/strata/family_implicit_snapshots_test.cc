//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/family_implicit_snapshots.h"

#include <vector>

#include "port/stack_trace.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using ReadBound = ImplicitSnapshotRegistry::ReadBound;
using Sequences = std::vector<SequenceNumber>;
using Blocker = FamilyImplicitSnapshots::Blocker;

class FamilyImplicitSnapshotsTest : public testing::Test {
 protected:
  ~FamilyImplicitSnapshotsTest() override { DisableCallBacks(); }

  // Moves the reader from the shared registry to the family's own one at the
  // sync point.
  void MoveAt(const char* sync_point, ReadBound* bound) {
    EnableCallBack(sync_point, [this, bound](void*) {
      ReadBound own = own_.RegisterAt(bound->sequence());
      *bound = std::move(own);
    });
  }

  int shared_calls_ = 0;
  int own_calls_ = 0;
  ImplicitSnapshotRegistry shared_{[this] { ++shared_calls_; }};
  ImplicitSnapshotRegistry own_{[this] { ++own_calls_; }};
  ImplicitSnapshotRegistry other_;
  const FamilyImplicitSnapshots bounds_{&shared_, &own_};
};

TEST_F(FamilyImplicitSnapshotsTest, ReadersOfOtherFamiliesAreIgnored) {
  ReadBound other = other_.RegisterAt(1);
  EXPECT_EQ(bounds_.Min(), kMaxSequenceNumber);
  ReadBound own = own_.RegisterAt(20);
  EXPECT_EQ(bounds_.Min(), 20u);
  ReadBound shared = shared_.RegisterAt(10);
  EXPECT_EQ(bounds_.Min(), 10u);
  Sequences snapshots = {5, 20};
  bounds_.MergeInto(&snapshots);
  EXPECT_EQ(snapshots, (Sequences{5, 10, 20}));

  const FamilyImplicitSnapshots without_own(&shared_, nullptr);
  EXPECT_EQ(without_own.Min(), 10u);
  snapshots.clear();
  without_own.MergeInto(&snapshots);
  EXPECT_EQ(snapshots, (Sequences{10}));
}

TEST_F(FamilyImplicitSnapshotsTest, NotifiesForOneRegistryAfterTheOther) {
  ReadBound own = own_.RegisterAt(20);
  ReadBound shared = shared_.RegisterAt(10);
  EXPECT_EQ(bounds_.NotifyWhenNoneBelow(10), Blocker::kNone);
  EXPECT_EQ(bounds_.NotifyWhenNoneBelow(30), Blocker::kShared);
  shared.Release();
  EXPECT_EQ(shared_calls_, 1);
  EXPECT_EQ(bounds_.NotifyWhenNoneBelow(30), Blocker::kOwn);
  own.Release();
  EXPECT_EQ(own_calls_, 1);
  EXPECT_EQ(bounds_.NotifyWhenNoneBelow(30), Blocker::kNone);
}

TEST_F(FamilyImplicitSnapshotsTest, AReaderThatMovesIsSeen) {
  // In the first two cases the reader moves after the shared registry was read
  // and before the family's own one is.
  ReadBound bound = shared_.RegisterAt(10);
  MoveAt("FamilyImplicitSnapshots::MergeInto:Shared", &bound);
  Sequences snapshots;
  bounds_.MergeInto(&snapshots);
  EXPECT_EQ(snapshots, (Sequences{10}));

  bound = shared_.RegisterAt(10);
  MoveAt("FamilyImplicitSnapshots::Min:Shared", &bound);
  EXPECT_EQ(bounds_.Min(), 10u);

  bound = shared_.RegisterAt(10);
  EXPECT_EQ(bounds_.NotifyWhenNoneBelow(11), Blocker::kShared);
  // Here the reader moves after the notification was requested: the callback of
  // the shared registry runs, and the next request finds the reader in the
  // family's own registry.
  ReadBound moved = own_.RegisterAt(10);
  bound = std::move(moved);
  EXPECT_EQ(shared_calls_, 1);
  EXPECT_EQ(bounds_.NotifyWhenNoneBelow(11), Blocker::kOwn);
  bound.Release();
  EXPECT_EQ(own_calls_, 1);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
