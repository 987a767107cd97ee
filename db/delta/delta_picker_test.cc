//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_picker.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/delta/delta_edit_test_util.h"
#include "options/cf_options.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class DeltaPickerTest : public testing::Test {
 protected:
  using Paths = DeltaPicker::Paths;
  struct Bucket {
    std::string lower;
    uint64_t bytes = 0;
  };

  static constexpr uint64_t kBucket = 1000;

  DeltaPickerTest() {
    options_.bucket_size = kBucket;
    options_.max_buckets = 1000;
    options_.split_ratio = 0.8;
  }

  void Apply(const DeltaEdit& edit) {
    ASSERT_OK(DeltaVersion::Apply(
        version_, edit, BytewiseComparator(),
        [](const DeltaFileDescription& file) {
          return DeltaFileMeta::Create(file, /*on_release=*/nullptr);
        },
        &version_));
    ASSERT_OK(version_->CheckConsistency());
  }

  uint64_t NewNumber() { return ++last_number_; }

  // Adds a flushed file and returns its epoch.
  uint64_t Flush(DeltaKind kind = DeltaKind::kOperands, uint64_t size = 1000) {
    const uint64_t epoch = NewNumber();
    DeltaFileDescription file =
        MakeDeltaFile(NewNumber(), kind, DeltaTier::kFlushed, epoch);
    file.size = size;
    file.path_id = path_id_;
    DeltaEdit edit;
    edit.AddFile(file);
    Apply(edit);
    flushed_.push_back(epoch);
    return epoch;
  }

  // Merges all flushed files into one and returns its last epoch.
  uint64_t Merge(uint64_t raw_bytes = 100) {
    DeltaFileDescription file =
        MakeDeltaFile(NewNumber(), DeltaKind::kOperands, DeltaTier::kMerged,
                      flushed_.front(), flushed_.back());
    file.raw_bytes = raw_bytes;
    file.path_id = path_id_;
    DeltaEdit edit;
    edit.AddFile(file);
    edit.SetMergeRecent(
        {flushed_.back(), static_cast<uint32_t>(flushed_.size())});
    const uint64_t last = flushed_.back();
    flushed_.clear();
    Apply(edit);
    return last;
  }
  uint64_t FlushAndMerge(uint64_t raw_bytes = 100) {
    Flush();
    return Merge(raw_bytes);
  }

  // Replaces the buckets of the range, by default all, with these buckets and a
  // new file.
  // anchors_seq: if not 0, each bucket also names a new file of anchors up to
  // this sequence number.
  void Collect(const std::vector<Bucket>& buckets, uint64_t floor,
               DeltaEdit::KeyRange range = {}, SequenceNumber anchors_seq = 0) {
    DeltaFileDescription file =
        MakeDeltaFile(NewNumber(), DeltaKind::kOperands, DeltaTier::kSorted);
    file.raw_bytes = 0;
    file.path_id = path_id_;
    DeltaFileDescription anchors =
        MakeDeltaFile(NewNumber(), DeltaKind::kAnchors, DeltaTier::kSorted);
    anchors.smallest_seq = anchors.largest_seq = anchors_seq;
    anchors.path_id = path_id_;
    DeltaEdit::ReplaceBuckets replace;
    replace.range = std::move(range);
    for (const Bucket& bucket : buckets) {
      DeltaBucketState state;
      state.floor = floor;
      if (bucket.bytes > 0) {
        state.extent_number = file.number;
        state.extent_bytes = bucket.bytes;
        file.raw_bytes += bucket.bytes;
      }
      if (anchors_seq > 0) {
        state.anchors_number = anchors.number;
      }
      replace.buckets.push_back({bucket.lower, state});
    }
    DeltaEdit edit;
    if (file.raw_bytes > 0) {
      edit.AddFile(file);
    }
    if (anchors_seq > 0) {
      edit.AddFile(anchors);
    }
    edit.AddReplaceBuckets(std::move(replace));
    Apply(edit);
  }

  // Sets the bytes that each bucket has in the newest merged file.
  void SetSlices(const std::vector<uint64_t>& sizes) {
    ASSERT_EQ(version_->Buckets().size(), sizes.size());
    DeltaBucketIntake::File file;
    file.last_epoch = UINT64_MAX;
    file.offsets.push_back(0);
    for (uint64_t size : sizes) {
      file.offsets.push_back(file.offsets.back() + size);
    }
    slices_ = DeltaBucketIntake(version_->Buckets(), {file});
  }

  DeltaPicker::Merge PickMerge() {
    return DeltaPicker::PickMerge(options_, *version_);
  }
  DeltaPicker::Collection PickCollection() {
    return DeltaPicker::PickCollection(options_, *version_, slices_, running_);
  }
  // Returns "begin-end", followed by words for what is to be done, or "none".
  static std::string Text(const DeltaPicker::Collection& collection) {
    if (!collection.found) {
      return "none";
    }
    const DeltaGcJob::Plan& plan = collection.plan;
    std::string text = plan.begin + "-" + plan.end.value_or("");
    text += plan.fold ? " fold" : "";
    text += plan.merge_neighbours ? " merge" : "";
    text += plan.rewrite_all ? " rewrite" : "";
    return text;
  }
  std::string Pick() { return Text(PickCollection()); }

  // Notes the failed collection of a run of buckets, or of one bucket.
  void Suspect(const DeltaEdit::KeyRange& range) {
    options_.damage.Add(range, /*num_buckets=*/2, Status::Corruption("run"),
                        BytewiseComparator());
  }
  void Damage(const DeltaEdit::KeyRange& range) {
    options_.damage.Add(range, /*num_buckets=*/1, Status::Corruption("bucket"),
                        BytewiseComparator());
  }
  uint64_t AddDebt(uint64_t bytes) const {
    return DeltaPicker::AddDebt(bytes, version_.get(), jobs_, cf_options_);
  }

  DeltaPicker::Options options_;
  DeltaJobState jobs_;
  MutableCFOptions cf_options_;
  std::shared_ptr<const DeltaVersion> version_;
  DeltaBucketIntake slices_;
  std::vector<DeltaJobState::Collection> running_;
  uint64_t last_number_ = 10;
  // The path of the files that are added.
  uint32_t path_id_ = 0;
  std::vector<uint64_t> flushed_;
};

TEST_F(DeltaPickerTest, MergesAfterFourFilesOfAKind) {
  for (int i = 0; i < 3; ++i) {
    Flush();
    Flush(DeltaKind::kAnchors);
    EXPECT_TRUE(PickMerge().inputs.empty());
  }
  const uint64_t last = Flush(DeltaKind::kAnchors);
  const DeltaPicker::Merge merge = PickMerge();
  EXPECT_EQ(7, merge.inputs.size());
  EXPECT_EQ(last, merge.last_epoch);
  EXPECT_EQ(7000, merge.bytes);

  Merge();
  EXPECT_TRUE(PickMerge().inputs.empty());
}

TEST_F(DeltaPickerTest, MergeLeavesFilesAboveARunningFlush) {
  std::vector<uint64_t> epochs;
  for (int i = 0; i < 5; ++i) {
    epochs.push_back(Flush());
  }
  // Files may be above a running flush, as an ingestion may commit a higher
  // epoch before the flush is committed.
  options_.oldest_running_flush = epochs[4] - 1;
  EXPECT_EQ(4, PickMerge().inputs.size());
  EXPECT_EQ(epochs[3], PickMerge().last_epoch);
  options_.oldest_running_flush = epochs[3] - 1;
  EXPECT_TRUE(PickMerge().inputs.empty());
  options_.force_below = epochs[4] + 1;
  EXPECT_EQ(epochs[2], PickMerge().last_epoch);
  EXPECT_TRUE(DeltaPicker::HasForcedMerge(options_, *version_));
  options_.oldest_running_flush = epochs[0];
  EXPECT_TRUE(PickMerge().inputs.empty());
  EXPECT_TRUE(DeltaPicker::HasForcedMerge(options_, *version_));
  options_.force_below = epochs[0];
  EXPECT_FALSE(DeltaPicker::HasForcedMerge(options_, *version_));
  // Wishes need the operands of all files from before.
  options_.wishes_below = epochs[0] + 1;
  EXPECT_FALSE(DeltaPicker::HasForcedMerge(options_, *version_));
  options_.wishes = std::make_shared<const DeltaFoldWishes>();
  EXPECT_TRUE(DeltaPicker::HasForcedMerge(options_, *version_));
  options_.wishes_below = epochs[0];
  EXPECT_FALSE(DeltaPicker::HasForcedMerge(options_, *version_));
}

TEST_F(DeltaPickerTest, MergesFilesThatAreALargeShare) {
  Flush(DeltaKind::kOperands, DeltaPicker::kMinMerged);
  EXPECT_TRUE(PickMerge().inputs.empty());  // one file needs no merge
  Flush();
  EXPECT_EQ(2, PickMerge().inputs.size());
  Merge();
  Flush(DeltaKind::kOperands, DeltaPicker::kMinMerged / 2);
  Flush(DeltaKind::kOperands, DeltaPicker::kMinMerged / 2 - 1);
  EXPECT_TRUE(PickMerge().inputs.empty());
}

TEST_F(DeltaPickerTest, FirstPartitionIsDueAfterFourMergedFiles) {
  for (int i = 0; i < 3; ++i) {
    FlushAndMerge();
    EXPECT_TRUE(DeltaPicker::MayCollect(*version_));
    EXPECT_EQ("none", Pick());
  }
  const uint64_t last = FlushAndMerge();
  const DeltaPicker::Collection all = PickCollection();
  EXPECT_EQ("-", Text(all));
  EXPECT_EQ(last, all.plan.floor);
  EXPECT_EQ(options_.max_buckets - 3, all.plan.max_new_buckets);
  EXPECT_EQ(400, all.bytes);
  DeltaJobState::Collection running;
  running_.push_back(running);
  EXPECT_EQ("none", Pick());
}

TEST_F(DeltaPickerTest, FirstPartitionIsDueAtAShareOfTheCapacity) {
  const uint64_t enough = kBucket * options_.max_buckets / 20;
  FlushAndMerge(enough - 1);
  EXPECT_EQ("none", Pick());
  FlushAndMerge(1);
  EXPECT_EQ("-", Pick());
}

TEST_F(DeltaPickerTest, ForcedFilesMakeTheFirstPartitionDue) {
  FlushAndMerge();
  options_.force_below = last_number_ + 1;
  EXPECT_EQ("-", Pick());
  options_.force_below = 1;
  EXPECT_EQ("none", Pick());
}

TEST_F(DeltaPickerTest, CollectsBucketsWithLargeSlices) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 350}, {"b", 200}, {"c", 0}, {"d", 0}, {"e", 350}}, floor);
  const uint64_t last = FlushAndMerge();
  SetSlices({174, 99, 61, 62, 174});
  const DeltaPicker::Collection first = PickCollection();
  EXPECT_EQ("d-e", Text(first));
  EXPECT_EQ(last, first.plan.floor);
  EXPECT_EQ(1, first.num_buckets);
  EXPECT_EQ(62, first.bytes);
  EXPECT_EQ(0, first.plan.max_new_buckets);
  // The run of buckets that takes in the most bytes is picked.
  SetSlices({175, 99, 61, 62, 174});
  EXPECT_EQ("-b", Pick());
  SetSlices({175, 99, 61, 62, 176});
  EXPECT_EQ("d-", Pick());
  SetSlices({175, 100, 0, 0, 0});
  EXPECT_EQ("-c", Pick());
}

TEST_F(DeltaPickerTest, CollectsSmallGapsBetweenBuckets) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 350}, {"b", 200}, {"c", 350}, {"d", 350}, {"e", 350}}, floor);
  FlushAndMerge();
  // A bucket with nothing to take in costs nothing.
  SetSlices({200, 0, 200, 0, 0});
  EXPECT_EQ("-d", Pick());
  EXPECT_EQ(1100, PickCollection().bytes);
  SetSlices({200, 1, 200, 0, 0});
  EXPECT_EQ("-d", Pick());
  // The gap costs more than half of the bucket before it.
  SetSlices({200, 76, 201, 0, 0});
  EXPECT_EQ("c-d", Pick());
  SetSlices({200, 0, 0, 0, 200});
  EXPECT_EQ("-", Pick());
}

TEST_F(DeltaPickerTest, CollectionsAreLimitedInSize) {
  const uint64_t size = DeltaPicker::kMaxCollected / 4;
  options_.bucket_size = size;
  const uint64_t floor = FlushAndMerge();
  Collect({{"", size / 2},
           {"b", size / 2},
           {"c", size / 2},
           {"d", size / 2},
           {"e", size / 2}},
          floor);
  FlushAndMerge();
  SetSlices({size / 2, size / 2, size / 2, size / 2, size / 2});
  EXPECT_EQ("-e", Pick());
  // One bucket may always be collected, whatever its size.
  SetSlices({0, 0, 10 * size, size, 0});
  EXPECT_EQ("c-d", Pick());
}

TEST_F(DeltaPickerTest, LeavesBucketsOfRunningCollections) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}, {"c", 400}, {"d", 400}}, floor);
  FlushAndMerge();
  SetSlices({200, 300, 200, 200});
  EXPECT_EQ("-", Pick());
  DeltaJobState::Collection running;
  running.range = {"b", "c"};
  running_.push_back(running);
  EXPECT_EQ("c-", Pick());
  running.range = {"c", std::nullopt};
  running_.push_back(running);
  EXPECT_EQ("-b", Pick());
  // A running collection has replaced its buckets since, so the version does
  // not have them.
  running.range = {"x", std::nullopt};
  running_.push_back(running);
  EXPECT_EQ("none", Pick());
}

TEST_F(DeltaPickerTest, LeavesDamagedBuckets) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}, {"c", 400}, {"d", 400}}, floor);
  FlushAndMerge();
  SetSlices({200, 300, 200, 200});
  EXPECT_EQ("-", Pick());
  // One bucket of a suspected range at a time.
  Suspect({"b", "d"});
  EXPECT_EQ("b-c", Pick());
  SetSlices({200, 10, 200, 200});
  EXPECT_EQ("-b", Pick());
  SetSlices({10, 10, 200, 200});
  EXPECT_EQ("c-d", Pick());
  // A range that has become a part of a bucket marks the bucket.
  options_.damage.Clear();
  Damage({"bb", "bc"});
  Suspect({"d", std::nullopt});
  SetSlices({200, 300, 100, 100});
  EXPECT_EQ("-b", Pick());
  SetSlices({10, 300, 200, 10});
  EXPECT_EQ("c-d", Pick());
  Damage({"", std::nullopt});
  EXPECT_EQ("none", Pick());
}

// CompactRange() goes on behind damaged buckets, and does not wait for them.
TEST_F(DeltaPickerTest, RequestsLeaveDamagedBuckets) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}, {"c", 400}, {"d", 400}}, floor);
  FlushAndMerge();
  SetSlices({10, 10, 10, 10});
  options_.force_below = last_number_ + 1;
  EXPECT_EQ("-", Pick());
  Damage({"b", "c"});
  EXPECT_EQ("c-", Pick());
  Damage({"c", std::nullopt});
  EXPECT_EQ("-b", Pick());
  Damage({"", "b"});
  EXPECT_EQ("none", Pick());
  EXPECT_FALSE(PickCollection().waits_for_others);
  // Another collection may still succeed.
  options_.damage.Clear();
  Damage({"", "d"});
  DeltaJobState::Collection running;
  running.range = {"d", std::nullopt};
  running_.push_back(running);
  EXPECT_EQ("none", Pick());
  EXPECT_TRUE(PickCollection().waits_for_others);
}

TEST_F(DeltaPickerTest, DrainLeavesDamagedBuckets) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}, {"c", 400}}, floor);
  FlushAndMerge();
  SetSlices({10, 10, 10});
  options_.drain = true;
  options_.can_fold = true;
  EXPECT_EQ("- fold", Pick());
  Suspect({"", std::nullopt});
  EXPECT_EQ("-b fold", Pick());
  Damage({"", "b"});
  EXPECT_EQ("b- fold", Pick());
  Damage({"b", std::nullopt});
  EXPECT_EQ("none", Pick());
}

// A failed collection of all buckets does not show which bucket is damaged, so
// the picker marks such collections.
TEST_F(DeltaPickerTest, SomeCollectionsTakeAll) {
  for (size_t i = 0; i < DeltaPicker::kFirstPartitionMerged; ++i) {
    FlushAndMerge();
  }
  EXPECT_TRUE(PickCollection().found);
  EXPECT_TRUE(PickCollection().takes_all);
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}}, floor);
  const uint64_t last = FlushAndMerge();
  SetSlices({300, 300});
  EXPECT_TRUE(PickCollection().found);
  EXPECT_FALSE(PickCollection().takes_all);
  // All buckets are empty.
  Collect({{"", 0}, {"b", 0}}, last, {}, /*anchors_seq=*/1);
  SetSlices({0, 0});
  EXPECT_EQ("- rewrite", Pick());
  EXPECT_TRUE(PickCollection().takes_all);
}

// A damaged bucket keeps old merged files. Others are still collected after
// kMaxMerged files of their own.
TEST_F(DeltaPickerTest, CollectsHealthyBucketsAfterTwelveMergedFiles) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 500}, {"b", 500}, {"c", 500}}, floor);
  Damage({"b", "c"});
  uint64_t newest = floor;
  for (size_t round = 0; round < 3; ++round) {
    for (size_t i = 0; i < DeltaPicker::kMaxMerged; ++i) {
      SetSlices({1, 1, 1});
      EXPECT_EQ("none", Pick());
      newest = FlushAndMerge();
    }
    EXPECT_EQ("-b", Pick());
    EXPECT_EQ(newest, PickCollection().plan.floor);
    Collect({{"", 500}}, newest, {"", "b"});
    EXPECT_EQ("c-", Pick());
    Collect({{"c", 500}}, newest, {"c", std::nullopt});
    EXPECT_EQ("none", Pick());
  }
  EXPECT_EQ(3 * DeltaPicker::kMaxMerged,
            version_->RecentFiles(DeltaKind::kOperands).size());
  // A part of a bucket damages all of it, wherever it is.
  options_.damage.Clear();
  Damage({"ba", "bb"});
  Damage({"bc", "bd"});
  EXPECT_EQ("none", Pick());
  options_.damage.Clear();
  Damage({"bb", "c"});
  EXPECT_EQ("none", Pick());
  options_.damage.Clear();
  EXPECT_EQ("b-c rewrite", Pick());
  // There is no other bucket.
  Damage({"", std::nullopt});
  EXPECT_EQ("none", Pick());
}

TEST_F(DeltaPickerTest, JoinsNoDamagedBuckets) {
  options_.max_buckets = 5;
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 10}, {"b", 10}, {"c", 10}, {"d", 900}}, floor);
  FlushAndMerge();
  SetSlices({0, 0, 0, 0});
  EXPECT_EQ("-d merge", Pick());
  Damage({"", "b"});
  EXPECT_EQ("b-d merge", Pick());
  options_.damage.Clear();
  Damage({"b", "c"});
  EXPECT_EQ("none", Pick());
  options_.damage.Clear();
  Suspect({"", "b"});
  EXPECT_EQ("b-d merge", Pick());
  options_.damage.Clear();
  Suspect({"b", "c"});
  EXPECT_EQ("none", Pick());
}

TEST_F(DeltaPickerTest, CollectsAllBucketsAfterTwelveMergedFiles) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 500}, {"b", 500}, {"c", 500}}, floor);
  std::vector<uint64_t> epochs;
  for (size_t i = 0; i < DeltaPicker::kMaxMerged; ++i) {
    SetSlices({0, 10, 0});
    EXPECT_EQ("none", Pick());
    epochs.push_back(FlushAndMerge());
  }
  SetSlices({0, 10, 0});
  EXPECT_EQ("-", Pick());
  EXPECT_EQ(510, PickCollection().bytes);
  EXPECT_EQ(epochs.back(), PickCollection().plan.floor);
  // A bucket that has taken in the oldest file is collected only in a small
  // gap.
  Collect({{"b", 510}}, epochs[0], {"b", "c"});
  SetSlices({0, 10, 0});
  EXPECT_EQ("-", Pick());
  Collect({{"b", 5000}}, epochs[1], {"b", "c"});
  SetSlices({0, 10, 5});
  EXPECT_EQ("c-", Pick());
}

TEST_F(DeltaPickerTest, ForcedFilesAreTakenInByAllBuckets) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 500}, {"b", 500}}, floor);
  const uint64_t last = FlushAndMerge();
  SetSlices({1, 1});
  EXPECT_EQ("none", Pick());
  options_.force_below = floor + 1;
  EXPECT_EQ("none", Pick());
  options_.force_below = last + 1;
  EXPECT_EQ("-", Pick());
  Collect({{"", 501}}, last, {"", "b"});
  EXPECT_EQ("b-", Pick());
  Collect({{"b", 501}}, last, {"b", std::nullopt});
  SetSlices({0, 0});
  EXPECT_EQ("none", Pick());
}

// CompactRange() leaves files from after the call to other jobs, so that the
// call ends.
TEST_F(DeltaPickerTest, RequestsLeaveLaterFilesToOtherJobs) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}, {"c", 400}}, floor);
  const uint64_t request = last_number_ + 1;
  FlushAndMerge();
  SetSlices({0, 0, 2000});
  EXPECT_EQ("c-", Pick());
  options_.force_below = request;
  EXPECT_EQ("none", Pick());
  EXPECT_FALSE(PickCollection().waits_for_others);

  // A file that is sparse because of a later collection.
  Collect({{"", 400}}, floor, {"", "b"});
  Collect({{"b", 400}}, floor, {"b", "c"});
  EXPECT_EQ("c- rewrite", Pick());
  Collect({{"b", 400}, {"c", 800}}, floor, {"b", std::nullopt});
  Collect({{"c", 400}}, floor, {"c", std::nullopt});
  SetSlices({0, 0, 0});
  EXPECT_EQ("none", Pick());
  EXPECT_FALSE(PickCollection().waits_for_others);
  options_.force_below = 0;
  EXPECT_EQ("b-c rewrite", Pick());
  // Anchors of a later collection.
  Collect({{"b", 400}, {"c", 400}}, floor, {"b", std::nullopt},
          /*anchors_seq=*/50);
  options_.earliest_snapshot = 50;
  options_.force_below = request;
  EXPECT_EQ("none", Pick());
  options_.force_below = 0;
  EXPECT_EQ("b- rewrite", Pick());

  for (int i = 0; i < 12; ++i) {
    FlushAndMerge();
  }
  options_.force_below = request;
  EXPECT_EQ("none", Pick());
  options_.max_buckets = 5;
  EXPECT_EQ("none", Pick());
  options_.force_below = 0;
  EXPECT_NE("none", Pick());
}

TEST_F(DeltaPickerTest, RequestsWaitForWhatOthersCollect) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}}, floor);
  const uint64_t last = FlushAndMerge();
  options_.force_below = last_number_ + 1;
  SetSlices({1, 1});
  DeltaJobState::Collection running;
  running.range = {"b", std::nullopt};
  running_.push_back(running);
  EXPECT_EQ("-b", Pick());
  EXPECT_FALSE(PickCollection().waits_for_others);
  Collect({{"", 401}}, last, {"", "b"});
  SetSlices({0, 1});
  EXPECT_EQ("none", Pick());
  EXPECT_TRUE(PickCollection().waits_for_others);
  // The other collection has failed, or has ended.
  running_.clear();
  EXPECT_EQ("b-", Pick());
  Collect({{"b", 401}}, last, {"b", std::nullopt});
  SetSlices({0, 0});
  EXPECT_EQ("none", Pick());
  EXPECT_FALSE(PickCollection().waits_for_others);
}

TEST_F(DeltaPickerTest, LimitsTheNumberOfNewBuckets) {
  options_.max_buckets = 10;
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 700}, {"b", 700}, {"c", 700}}, floor);
  FlushAndMerge();
  SetSlices({100, 900, 0});
  EXPECT_EQ("b-c", Pick());
  EXPECT_EQ(3, PickCollection().plan.max_new_buckets);  // 1600 / 800, and one
  DeltaJobState::Collection running;
  running.range = {"c", std::nullopt};
  running.more_buckets = 4;
  running_.push_back(running);
  EXPECT_EQ("b-c", Pick());
  EXPECT_EQ(3, PickCollection().plan.max_new_buckets);
}

TEST_F(DeltaPickerTest, FoldsWithoutRoomForMoreBuckets) {
  options_.max_buckets = 4;
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 700}, {"b", 700}, {"c", 700}, {"d", 700}}, floor);
  FlushAndMerge();
  SetSlices({350, 450, 0, 0});
  EXPECT_EQ("-c", Pick());
  EXPECT_EQ(0, PickCollection().plan.max_new_buckets);
  options_.can_fold = true;
  EXPECT_EQ("-c fold", Pick());
  EXPECT_EQ(0, PickCollection().plan.min_fold_bytes);
  options_.min_fold_bytes = 33;
  EXPECT_EQ(33, PickCollection().plan.min_fold_bytes);
  // A drain folds all keys.
  options_.drain = true;
  EXPECT_TRUE(PickCollection().plan.fold);
  EXPECT_EQ(0, PickCollection().plan.min_fold_bytes);
  options_.drain = false;
  // A fold takes at most max_folded bytes, but at least one bucket.
  options_.max_folded = 2199;
  EXPECT_EQ("b-c fold", Pick());
  options_.max_folded = 2200;
  EXPECT_EQ("-c fold", Pick());
  options_.max_folded = 1;
  EXPECT_EQ("b-c fold", Pick());
  options_.max_buckets = 5;
  EXPECT_EQ("-c", Pick());
}

// A bucket that is larger than bucket_size could not be split, because the
// operands of one key stay together.
TEST_F(DeltaPickerTest, FoldsBucketsThatCouldNotBeSplit) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 1000}, {"b", 1001}, {"c", 700}}, floor);
  FlushAndMerge();
  SetSlices({1000, 1000, 1000});
  EXPECT_EQ("-", Pick());
  options_.can_fold = true;
  options_.min_fold_bytes = 33;
  SetSlices({0, 1000, 0});
  EXPECT_EQ("b-c fold", Pick());
  EXPECT_EQ(33, PickCollection().plan.min_fold_bytes);
  SetSlices({1000, 0, 1000});
  EXPECT_EQ("-", Pick());
}

// A compaction filter waits for the wished keys, so their buckets are folded.
TEST_F(DeltaPickerTest, WishesFoldTheBucketsOfTheirKeys) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 100}, {"b", 100}, {"c", 700}, {"d", 0}}, floor);
  SetSlices({0, 0, 0, 0});
  options_.can_fold = true;
  options_.min_fold_bytes = 33;
  EXPECT_EQ("none", Pick());
  DeltaFoldWishes wishes;
  wishes.Add("bx", BytewiseComparator());
  wishes.Add("dx", BytewiseComparator());  // the bucket is empty
  const auto set_wishes = [&] {
    options_.wishes = std::make_shared<DeltaFoldWishes>(wishes);
    options_.wishes_below = NewNumber();
  };
  set_wishes();
  EXPECT_EQ("b-c fold", Pick());
  // The job folds no other keys.
  EXPECT_EQ(options_.wishes, PickCollection().plan.wishes);
  EXPECT_EQ(UINT64_MAX, PickCollection().plan.min_fold_bytes);
  running_.push_back({{"b", "c"}, 0, 0, true});
  EXPECT_EQ("none", Pick());
  running_.clear();
  options_.can_fold = false;
  EXPECT_FALSE(DeltaPicker::CanFulfil(options_, *version_));
  EXPECT_EQ("none", Pick());
  options_.can_fold = true;

  // Flushed files may have operands of these keys, so they are merged first.
  Flush();
  EXPECT_TRUE(DeltaPicker::CanFulfil(options_, *version_));
  EXPECT_TRUE(PickMerge().inputs.empty());
  set_wishes();
  EXPECT_FALSE(DeltaPicker::CanFulfil(options_, *version_));
  EXPECT_EQ("none", Pick());
  EXPECT_EQ(1, PickMerge().inputs.size());
  const uint64_t merged = Merge();
  SetSlices({0, 0, 0, 0});
  EXPECT_EQ("b-c fold", Pick());

  // Keys that are to be folded for other reasons are folded as well.
  Collect({{"", 100}, {"b", 1001}, {"c", 700}, {"d", 0}}, merged);
  SetSlices({0, 1000, 0, 0});
  EXPECT_EQ("b-c fold", Pick());
  EXPECT_EQ(33, PickCollection().plan.min_fold_bytes);
  EXPECT_EQ(options_.wishes, PickCollection().plan.wishes);
  SetSlices({0, 0, 0, 0});
  wishes.AddAll();
  set_wishes();
  EXPECT_EQ("-d fold", Pick());
  // A drain folds everything.
  options_.drain = true;
  EXPECT_EQ(nullptr, PickCollection().plan.wishes);
}

// The estimate of the intake counts a block for one bucket, but other buckets
// may have keys in it.
TEST_F(DeltaPickerTest, WishesFoldBucketsWhoseIntakeIsNotEstimated) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 100}, {"b", 0}, {"c", 700}, {"zz", 0}}, floor);
  SetSlices({0, 0, 0, 0});
  options_.can_fold = true;
  DeltaFoldWishes wishes;
  wishes.Add("bx", BytewiseComparator());
  wishes.Add("zzx", BytewiseComparator());
  options_.wishes = std::make_shared<DeltaFoldWishes>(wishes);
  // The buckets have taken in all files.
  EXPECT_EQ("none", Pick());
  FlushAndMerge();
  SetSlices({0, 0, 10, 0});
  EXPECT_EQ("b-c fold", Pick());
  // The keys of the file end at "z".
  running_.push_back({{"b", "c"}, 0, 0, false});
  EXPECT_EQ("none", Pick());
}

// Without buckets, wishes make the first partition due.
TEST_F(DeltaPickerTest, WishesMakeTheFirstPartitionDue) {
  FlushAndMerge();
  options_.can_fold = true;
  EXPECT_EQ("none", Pick());
  DeltaFoldWishes wishes;
  wishes.Add("a", BytewiseComparator());
  options_.wishes = std::make_shared<DeltaFoldWishes>(wishes);
  options_.wishes_below = NewNumber();
  EXPECT_EQ("- fold", Pick());
  EXPECT_EQ(UINT64_MAX, PickCollection().plan.min_fold_bytes);
  EXPECT_EQ(options_.wishes, PickCollection().plan.wishes);
  // The operands are too large for one fold.
  options_.max_folded = 99;
  EXPECT_EQ("-", Pick());
}

TEST_F(DeltaPickerTest, JoinsNeighboursIfThereAreTooManyBuckets) {
  options_.max_buckets = 6;
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 300}, {"b", 300}, {"c", 200}, {"d", 700}}, floor);
  const uint64_t last = FlushAndMerge();
  SetSlices({10, 0, 0, 500});
  const DeltaPicker::Collection merge = PickCollection();
  EXPECT_EQ("b-d merge", Text(merge));
  EXPECT_EQ(last, merge.plan.floor);
  EXPECT_EQ(1, merge.fewer_buckets);
  EXPECT_EQ(500, merge.bytes);
  // A running join will make enough room.
  DeltaJobState::Collection running;
  running.range = {"b", "d"};
  running.fewer_buckets = 1;
  running_.push_back(running);
  EXPECT_EQ("d-", Pick());
  running_.clear();
  // The joined buckets must fit into one.
  SetSlices({501, 0, 301, 0});
  EXPECT_EQ("-d", Pick());
  options_.max_buckets = 7;
  SetSlices({10, 0, 0, 500});
  EXPECT_EQ("d-", Pick());
}

TEST_F(DeltaPickerTest, JoinsSmallBucketsBesideTheNeighbours) {
  options_.max_buckets = 7;
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 20}, {"b", 30}, {"c", 0}, {"d", 0}, {"e", 350}, {"f", 700}},
          floor);
  FlushAndMerge();
  SetSlices({0, 0, 0, 0, 0, 0});
  DeltaPicker::Collection merge = PickCollection();
  EXPECT_EQ("-f merge", Text(merge));  // half of 800, no more
  EXPECT_EQ(4, merge.fewer_buckets);
  EXPECT_EQ(400, merge.bytes);
  SetSlices({0, 1, 0, 0, 0, 0});
  merge = PickCollection();
  EXPECT_EQ("-e merge", Text(merge));
  EXPECT_EQ(3, merge.fewer_buckets);
  EXPECT_EQ(51, merge.bytes);
  // The join does not extend beyond a running collection.
  DeltaJobState::Collection running;
  running.range = {"b", "c"};
  running_.push_back(running);
  SetSlices({0, 0, 0, 0, 0, 0});
  merge = PickCollection();
  EXPECT_EQ("c-f merge", Text(merge));
  EXPECT_EQ(2, merge.fewer_buckets);
}

TEST_F(DeltaPickerTest, RewritesSparseFiles) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}, {"c", 400}, {"d", 400}}, floor);
  SetSlices({0, 0, 0, 0});
  EXPECT_EQ("none", Pick());
  Collect({{"b", 400}, {"c", 400}}, floor, {"b", "d"});
  EXPECT_EQ("none", Pick());
  Collect({{"", 300}}, floor, {"", "b"});
  EXPECT_EQ("d- rewrite", Pick());
  EXPECT_EQ(400, PickCollection().bytes);
  Collect({{"d", 400}}, floor, {"d", std::nullopt});
  EXPECT_EQ("none", Pick());
}

TEST_F(DeltaPickerTest, RewritesBucketsWhoseSnapshotIsGone) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}}, floor);
  Collect({{"b", 300}}, floor, {"b", std::nullopt}, /*anchors_seq=*/50);
  SetSlices({0, 0});
  options_.earliest_snapshot = 49;
  EXPECT_EQ("none", Pick());
  options_.earliest_snapshot = 50;
  EXPECT_EQ("b- rewrite", Pick());
}

// A file that records that buckets have no operands is not worth a job, unless
// no bucket has operands.
TEST_F(DeltaPickerTest, BucketsWithoutOperandsAreRewrittenOnlyTogether) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}, {"c", 400}}, floor);
  Collect({{"b", 0}, {"c", 0}}, floor, {"b", std::nullopt}, /*anchors_seq=*/1);
  SetSlices({0, 0, 0});
  options_.earliest_snapshot = 50;
  EXPECT_EQ("-b rewrite", Pick());  // its file is sparse
  Collect({{"", 300}}, floor, {"", "b"});
  EXPECT_EQ("none", Pick());
  DeltaJobState::Collection running;
  running.range = {"", "b"};
  running_.push_back(running);
  Collect({{"", 0}}, floor, {"", "b"}, /*anchors_seq=*/1);
  EXPECT_EQ("none", Pick());
  running_.clear();
  EXPECT_EQ("- rewrite", Pick());
}

TEST_F(DeltaPickerTest, DrainFoldsAllBuckets) {
  options_.drain = true;
  options_.can_fold = true;
  options_.earliest_snapshot = 100;
  Flush();
  EXPECT_EQ(1, PickMerge().inputs.size());
  // The first partition folds if it is small enough; otherwise it only makes
  // buckets.
  Merge(/*raw_bytes=*/500);
  EXPECT_EQ("- fold", Pick());
  options_.max_collected = 499;
  EXPECT_EQ("-", Pick());
  options_.max_collected = 1000;

  const uint64_t floor = version_->RecentFiles(DeltaKind::kOperands)
                             .front()
                             ->description()
                             .last_epoch;
  Collect({{"", 400}, {"b", 400}, {"c", 400}, {"d", 0}}, floor);
  EXPECT_EQ("-c fold", Pick());
  // Only one fold may run at a time.
  options_.can_fold = false;
  EXPECT_EQ("none", Pick());
  options_.can_fold = true;
  // A fold has left the operands of the file.
  const uint64_t file = version_->SortedFiles().front().file->number();
  DeltaJobState::Leftover leftover;
  options_.leftovers[file] = leftover;
  EXPECT_EQ("none", Pick());
  EXPECT_TRUE(options_.DrainsAll());
  // All new operands are taken in, also by buckets that may have none.
  FlushAndMerge();
  SetSlices({0, 1, 0, 0});
  EXPECT_EQ("b-c fold", Pick());
  SetSlices({0, 0, 0, 0});
  EXPECT_EQ("-", Pick());

  // Operands are left because of a snapshot, so the drain cannot finish, and
  // the normal thresholds apply.
  leftover.is_for_snapshots = true;
  leftover.earliest_snapshot = 100;
  options_.leftovers[file] = leftover;
  EXPECT_FALSE(options_.DrainsAll());
  EXPECT_EQ("none", Pick());
  SetSlices({0, 1, 0, 1});
  EXPECT_EQ("d- fold", Pick());  // has no leftover
  SetSlices({0, 200, 0, 0});
  EXPECT_EQ("b-c fold", Pick());
  Flush();
  EXPECT_TRUE(PickMerge().inputs.empty());
  // The snapshot is gone.
  options_.earliest_snapshot = 101;
  EXPECT_TRUE(options_.DrainsAll());
  EXPECT_EQ(1, PickMerge().inputs.size());
  SetSlices({0, 0, 0, 0});
  EXPECT_EQ("-c fold", Pick());
  // A merge has failed.
  leftover.is_for_snapshots = false;
  leftover.has_failed = true;
  options_.leftovers[file] = leftover;
  EXPECT_FALSE(options_.DrainsAll());
  EXPECT_EQ("none", Pick());
}

TEST_F(DeltaPickerTest, PathsFollowFromTheOptions) {
  MutableCFOptions options{ColumnFamilyOptions()};
  EXPECT_EQ((Paths{0, 0}), Paths::By(options, 7));
  options.level_sst_path_ids = {1, 2, 3};
  EXPECT_EQ((Paths{1, 3}), Paths::By(options, 7));
  EXPECT_EQ((Paths{1, 2}), Paths::By(options, 2));
  EXPECT_EQ((Paths{1, 1}), Paths::By(options, 1));
  options.delta_sorted_path_id = 0;
  EXPECT_EQ((Paths{1, 0}), Paths::By(options, 7));
  options.level_sst_path_ids.clear();
  options.delta_sorted_path_id = 2;
  EXPECT_EQ((Paths{0, 2}), Paths::By(options, 7));
}

TEST_F(DeltaPickerTest, MergesMisplacedFlushedFiles) {
  const uint64_t epoch = Flush();
  EXPECT_TRUE(PickMerge().inputs.empty());
  options_.paths = Paths{/*recent=*/0, /*sorted=*/1};
  EXPECT_TRUE(PickMerge().inputs.empty());
  options_.paths = Paths{/*recent=*/1, /*sorted=*/1};
  EXPECT_EQ(1, PickMerge().inputs.size());
  EXPECT_TRUE(PickMerge().moves_files);
  options_.force_below = epoch + 1;
  EXPECT_FALSE(PickMerge().moves_files);
  options_.force_below = 0;
  // A request merges what has come before the call, and only that.
  EXPECT_FALSE(DeltaPicker::HasForcedMerge(options_, *version_));
  // Files of the running flush would come too late.
  options_.oldest_running_flush = epoch;
  EXPECT_TRUE(PickMerge().inputs.empty());
  options_.oldest_running_flush = UINT64_MAX;
  // All flushed files are merged, whatever their paths.
  path_id_ = 1;
  Flush(DeltaKind::kAnchors);
  EXPECT_EQ(2, PickMerge().inputs.size());
  Merge();
  EXPECT_TRUE(PickMerge().inputs.empty());
  EXPECT_EQ("none", Pick());
}

TEST_F(DeltaPickerTest, BucketsTakeInMisplacedMergedFiles) {
  FlushAndMerge();
  EXPECT_EQ("none", Pick());
  options_.paths = Paths{/*recent=*/1, /*sorted=*/0};
  // The first partition.
  EXPECT_EQ("-", Pick());
  const uint64_t floor = version_->RecentFiles(DeltaKind::kOperands)
                             .front()
                             ->description()
                             .last_epoch;
  Collect({{"", 400}, {"c", 400}}, floor);
  EXPECT_EQ("none", Pick());

  const uint64_t misplaced = FlushAndMerge();
  SetSlices({0, 0});
  EXPECT_EQ("-", Pick());
  EXPECT_TRUE(PickCollection().moves_files);
  EXPECT_EQ(misplaced, PickCollection().plan.floor);
  path_id_ = 1;
  FlushAndMerge();
  SetSlices({0, 0});
  EXPECT_EQ("-", Pick());
  // The bucket has taken in the misplaced file, not the newer one.
  path_id_ = 0;
  Collect({{"", 400}}, misplaced, {"", "c"});
  SetSlices({0, 0});
  EXPECT_EQ("c-", Pick());
  // A request leaves files of later flushes to jobs in the background.
  options_.force_below = 1;
  options_.moves_all = true;
  EXPECT_EQ("none", Pick());
  EXPECT_FALSE(PickCollection().waits_for_others);
}

TEST_F(DeltaPickerTest, MisplacedFilesAreLeftToMigrations) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}}, floor);
  Flush();
  SetSlices({0, 0});
  options_.paths = Paths{/*recent=*/1, /*sorted=*/1};
  EXPECT_FALSE(PickMerge().inputs.empty());
  EXPECT_EQ("- rewrite", Pick());
  options_.leaves_misplaced = true;
  EXPECT_TRUE(PickMerge().inputs.empty());
  EXPECT_EQ("none", Pick());
}

// A request with the result moves misplaced files, and leaves what lies where
// it belongs.
TEST_F(DeltaPickerTest, ForcesWhatIsNeededToMoveFiles) {
  const auto force_below = [this](const Paths& paths) {
    return DeltaPicker::ForceBelowToMove(paths, *version_);
  };
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}}, floor);
  SetSlices({0, 0});
  EXPECT_EQ(0, force_below({/*recent=*/0, /*sorted=*/0}));
  EXPECT_EQ(1, force_below({/*recent=*/0, /*sorted=*/1}));

  // Only buckets are rewritten.
  Flush();
  options_.paths = Paths{/*recent=*/0, /*sorted=*/1};
  options_.force_below = force_below(*options_.paths);
  options_.moves_all = true;
  EXPECT_EQ(1, options_.force_below);
  EXPECT_FALSE(DeltaPicker::HasForcedMerge(options_, *version_));
  EXPECT_EQ("- rewrite", Pick());

  // Flushed files come first: they are merged.
  options_.paths = Paths{/*recent=*/1, /*sorted=*/0};
  options_.force_below = force_below(*options_.paths);
  EXPECT_TRUE(DeltaPicker::HasForcedMerge(options_, *version_));
  EXPECT_EQ(1, PickMerge().inputs.size());

  // All buckets take in misplaced merged files. Newer ones may stay.
  const uint64_t misplaced = Merge();
  path_id_ = 1;
  FlushAndMerge();
  SetSlices({0, 0});
  options_.force_below = force_below(*options_.paths);
  EXPECT_FALSE(DeltaPicker::HasForcedMerge(options_, *version_));
  EXPECT_EQ("-", Pick());
  path_id_ = 0;
  Collect({{"", 400}, {"b", 400}}, misplaced);
  EXPECT_EQ(0, force_below(*options_.paths));
}

TEST_F(DeltaPickerTest, RewritesBucketsWithMisplacedFiles) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}, {"c", 0}, {"d", 400}}, floor);
  SetSlices({0, 0, 0, 0});
  options_.paths = Paths{/*recent=*/0, /*sorted=*/0};
  EXPECT_EQ("none", Pick());
  options_.paths = Paths{/*recent=*/0, /*sorted=*/1};
  EXPECT_EQ("- rewrite", Pick());
  EXPECT_TRUE(PickCollection().moves_files);
  options_.max_collected = 500;
  EXPECT_EQ("-b rewrite", Pick());
  options_.max_collected = DeltaPicker::kMaxCollected;

  // The output of a job is not misplaced.
  path_id_ = 1;
  Collect({{"", 400}, {"b", 400}}, floor, {"", "c"});
  EXPECT_EQ("d- rewrite", Pick());
  Collect({{"d", 400}}, floor, {"d", std::nullopt});
  EXPECT_EQ("none", Pick());
  // Anchors count, too, also of a bucket without operands.
  path_id_ = 2;
  Collect({{"c", 0}}, floor, {"c", "d"}, /*anchors_seq=*/100);
  EXPECT_EQ("c-d rewrite", Pick());
  path_id_ = 1;
  Collect({{"c", 0}}, floor, {"c", "d"}, /*anchors_seq=*/100);
  EXPECT_EQ("none", Pick());
}

TEST_F(DeltaPickerTest, MovesFilesWhenNothingElseIsToDo) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 900}, {"b", 900}, {"c", 100}}, floor);
  FlushAndMerge();
  SetSlices({0, 0, 100});
  options_.paths = Paths{/*recent=*/0, /*sorted=*/1};
  // The gain of the others would be larger.
  EXPECT_EQ("c-", Pick());
  EXPECT_FALSE(PickCollection().moves_files);
  SetSlices({0, 0, 1});
  EXPECT_EQ("- rewrite", Pick());
  EXPECT_TRUE(PickCollection().moves_files);
}

TEST_F(DeltaPickerTest, LeavesMisplacedFilesOfRunningAndDamagedBuckets) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}, {"c", 400}}, floor);
  SetSlices({0, 0, 0});
  options_.paths = Paths{/*recent=*/0, /*sorted=*/1};
  DeltaJobState::Collection running;
  running.range = {"b", "c"};
  running.path_id = 1;
  running_.push_back(running);
  EXPECT_EQ("-b rewrite", Pick());
  Damage({"", "b"});
  EXPECT_EQ("c- rewrite", Pick());
  Damage({"c", std::nullopt});
  EXPECT_EQ("none", Pick());
}

TEST_F(DeltaPickerTest, RequestsMoveAllFilesThatExisted) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}}, floor);
  SetSlices({0, 0});
  const uint64_t request = last_number_ + 1;
  options_.force_below = request;
  options_.paths = Paths{/*recent=*/0, /*sorted=*/1};
  EXPECT_EQ("- rewrite", Pick());
  // A job that began with the old options has written it after the call began.
  Collect({{"", 400}}, floor, {"", "b"});
  EXPECT_EQ("b- rewrite", Pick());
  options_.moves_all = true;
  EXPECT_EQ("- rewrite", Pick());
  path_id_ = 1;
  Collect({{"", 400}, {"b", 400}}, floor);
  EXPECT_EQ("none", Pick());
  EXPECT_FALSE(PickCollection().waits_for_others);

  // It waits for a job that leaves misplaced files, and for no other.
  DeltaJobState::Collection running;
  running.range = {"b", std::nullopt};
  running.path_id = 1;
  running_.push_back(running);
  EXPECT_FALSE(PickCollection().waits_for_others);
  running_.back().path_id = 0;
  EXPECT_TRUE(PickCollection().waits_for_others);
  // The options have changed during the call, which must end.
  options_.moves_all = false;
  options_.paths = Paths{/*recent=*/0, /*sorted=*/2};
  EXPECT_EQ("none", Pick());
  EXPECT_FALSE(PickCollection().waits_for_others);
}

// Also a CompactRange() of a drain ends although options change meanwhile.
TEST_F(DeltaPickerTest, RequestsOfADrainLeaveLaterMisplacedFiles) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}}, floor);
  SetSlices({0, 0});
  options_.drain = true;
  options_.can_fold = true;
  DeltaJobState::Leftover leftover;
  leftover.has_failed = true;
  const uint64_t file =
      version_->Buckets().State(version_->Buckets().Begin()).extent_number;
  options_.leftovers[file] = leftover;
  options_.paths = Paths{/*recent=*/1, /*sorted=*/1};
  EXPECT_EQ("- rewrite", Pick());
  options_.force_below = file;
  EXPECT_EQ("none", Pick());
  options_.moves_all = true;
  EXPECT_EQ("- rewrite", Pick());
  options_.moves_all = false;
  options_.force_below = file + 1;
  EXPECT_EQ("- rewrite", Pick());
  // A merged file that came later.
  options_.force_below = file;
  FlushAndMerge();
  EXPECT_EQ("none", Pick());
  options_.force_below = 0;
  EXPECT_EQ("- rewrite", Pick());
}

TEST_F(DeltaPickerTest, DrainMovesWhatItCannotFoldYet) {
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}}, floor);
  SetSlices({0, 0});
  options_.drain = true;
  options_.can_fold = false;
  options_.paths = Paths{/*recent=*/0, /*sorted=*/1};
  // A fold will rewrite the buckets, and once is enough.
  EXPECT_EQ("none", Pick());
  options_.can_fold = true;
  EXPECT_EQ("- fold", Pick());
  EXPECT_FALSE(PickCollection().moves_files);
  // The operands wait for a snapshot.
  DeltaJobState::Leftover leftover;
  leftover.is_for_snapshots = true;
  leftover.earliest_snapshot = 100;
  options_.earliest_snapshot = 100;
  const uint64_t file =
      version_->Buckets().State(version_->Buckets().Begin()).extent_number;
  options_.leftovers[file] = leftover;
  EXPECT_EQ("- rewrite", Pick());
  EXPECT_TRUE(PickCollection().moves_files);
  options_.paths = Paths{/*recent=*/0, /*sorted=*/0};
  EXPECT_EQ("none", Pick());
}

TEST_F(DeltaPickerTest, DebtSlowsWritesButNeverStopsThem) {
  cf_options_.soft_pending_compaction_bytes_limit = 10000;
  cf_options_.hard_pending_compaction_bytes_limit = 20000;
  EXPECT_EQ(5, DeltaPicker::AddDebt(5, nullptr, jobs_, cf_options_));
  for (size_t i = 0; i < DeltaPicker::kSlowdownFlushed; ++i) {
    Flush();
    EXPECT_EQ(5, AddDebt(5));
  }
  Flush();
  EXPECT_EQ(11000, AddDebt(5));
  EXPECT_EQ(15000, AddDebt(15000));
  // Writes are not stopped.
  for (int i = 0; i < 20; ++i) {
    Flush();
  }
  EXPECT_EQ(19999, AddDebt(5));
  cf_options_.hard_pending_compaction_bytes_limit = 0;
  EXPECT_EQ(31000, AddDebt(5));
  cf_options_.soft_pending_compaction_bytes_limit = 0;
  EXPECT_EQ(5, AddDebt(5));

  cf_options_.soft_pending_compaction_bytes_limit = 10000;
  Merge();
  EXPECT_EQ(5, AddDebt(5));
  for (size_t i = 1; i < DeltaPicker::kSlowdownMerged; ++i) {
    FlushAndMerge();
  }
  EXPECT_EQ(5, AddDebt(5));
  FlushAndMerge();
  EXPECT_LT(10000, AddDebt(5));
}

TEST_F(DeltaPickerTest, DamageOfAllFilesIsNoDebt) {
  cf_options_.soft_pending_compaction_bytes_limit = 10000;
  cf_options_.hard_pending_compaction_bytes_limit = 0;
  const uint64_t oldest = FlushAndMerge();
  for (size_t i = 0; i < DeltaPicker::kSlowdownMerged + 2; ++i) {
    FlushAndMerge();
  }
  const uint64_t merged_debt = AddDebt(5);
  EXPECT_LT(10000, merged_debt);
  for (size_t i = 0; i < DeltaPicker::kSlowdownFlushed + 2; ++i) {
    Flush();
  }
  EXPECT_EQ(merged_debt + 2000, AddDebt(5));
  // A merge takes all flushed files.
  jobs_.SetMergeDamaged(true);
  EXPECT_EQ(merged_debt, AddDebt(5));
  // The first partition takes all merged files.
  jobs_.SetPartitionDamaged(true);
  EXPECT_EQ(5, AddDebt(5));
  jobs_.SetMergeDamaged(false);
  EXPECT_EQ(12000, AddDebt(5));
  // There are buckets, so it was not the first partition that has failed.
  Collect({{"", 400}, {"b", 400}}, oldest);
  EXPECT_LT(12000, AddDebt(5));
}

TEST_F(DeltaPickerTest, FilesOfDamagedBucketsAreNoDebt) {
  cf_options_.soft_pending_compaction_bytes_limit = 10000;
  const uint64_t floor = FlushAndMerge();
  Collect({{"", 400}, {"b", 400}, {"c", 400}}, floor);
  const auto damage = [&](const DeltaEdit::KeyRange& range) {
    jobs_.damage().Add(range, /*num_buckets=*/1, Status::Corruption("bucket"),
                       BytewiseComparator());
  };
  uint64_t newest = 0;
  for (size_t i = 0; i < DeltaPicker::kSlowdownMerged; ++i) {
    newest = FlushAndMerge();
  }
  EXPECT_EQ(5, AddDebt(5));
  FlushAndMerge();
  EXPECT_LT(10000, AddDebt(5));
  // The others need the same files.
  damage({"b", "c"});
  EXPECT_LT(10000, AddDebt(5));
  Collect({{"", 400}}, newest, {"", "b"});
  EXPECT_LT(10000, AddDebt(5));
  Collect({{"c", 400}}, newest, {"c", std::nullopt});
  EXPECT_EQ(5, AddDebt(5));
  // They count their own files.
  for (size_t i = 1; i < DeltaPicker::kSlowdownMerged; ++i) {
    FlushAndMerge();
  }
  EXPECT_EQ(5, AddDebt(5));
  FlushAndMerge();
  EXPECT_LT(10000, AddDebt(5));
  // A suspected bucket will be collected.
  jobs_.damage().Clear();
  EXPECT_LT(10000, AddDebt(5));
  jobs_.damage().Add({"", std::nullopt}, /*num_buckets=*/3,
                     Status::Corruption("run"), BytewiseComparator());
  EXPECT_LT(10000, AddDebt(5));
  // All buckets are damaged.
  damage({"", std::nullopt});
  EXPECT_EQ(5, AddDebt(5));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
