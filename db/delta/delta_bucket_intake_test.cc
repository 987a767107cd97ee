//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_bucket_intake.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/delta/delta_damage.h"
#include "db/delta/delta_store_test_util.h"
#include "port/stack_trace.h"

namespace ROCKSDB_NAMESPACE {

class DeltaBucketIntakeTest : public delta_test::DeltaStoreTestBase {
 protected:
  using Event = delta_test::Event;
  using Events = delta_test::Events;

  static std::string Key(int i) {
    std::string key = std::to_string(10000 + i);
    // Keys are long, so that a few of them fill a block.
    return key + std::string(500, 'k');
  }

  // Flushes an operand for each key and merges the flushed file.
  void FlushAndMerge(int first, int last) {
    Events events;
    for (int i = first; i < last; ++i) {
      Event event;
      event.key = Key(i);
      event.seq = ++last_seq_;
      events.push_back(std::move(event));
    }
    Flush(events);
    Merge(1);
  }

  std::shared_ptr<const DeltaBucketIntake> Estimate(
      const DeltaBucketIntake* old) {
    std::shared_ptr<const DeltaBucketIntake> slices;
    EXPECT_OK(DeltaBucketIntake::Estimate(*version_, *store_, ReadOptions(),
                                          old, &slices));
    return slices;
  }

  size_t NumOpen() const {
    size_t num = 0;
    version_->ForEachFile([&num](const DeltaVersion::FilePtr& file) {
      num += file->OpenedReader() != nullptr ? 1 : 0;
    });
    return num;
  }
};

TEST_F(DeltaBucketIntakeTest, NothingIsEstimatedWithoutBuckets) {
  FlushAndMerge(0, 10);
  const auto slices = Estimate(nullptr);
  EXPECT_TRUE(slices->files().empty());
  EXPECT_EQ(0, NumOpen());
}

TEST_F(DeltaBucketIntakeTest, SizesAreEstimatedPerBucketAndFloor) {
  FlushAndMerge(0, 1000);
  Collect(0, 1, 1, {"", Key(200), Key(400), Key(800)});
  EXPECT_TRUE(Estimate(nullptr)->files().empty());

  FlushAndMerge(0, 1000);
  FlushAndMerge(400, 600);
  const auto slices = Estimate(nullptr);
  ASSERT_EQ(2, slices->files().size());
  // Sizes are estimated by blocks. A key has about half a KiB and counts twice,
  // as its operand contains it.
  const uint64_t key = 2 * Key(0).size() + 5;
  const auto expect = [&](size_t bucket, uint64_t floor, uint64_t keys) {
    const auto size = static_cast<double>(slices->SizeOf(bucket, floor));
    EXPECT_NEAR(size, static_cast<double>(keys * key),
                static_cast<double>(20 * key))
        << bucket;
  };
  expect(0, 0, 200);
  expect(1, 0, 200);
  expect(2, 0, 600);
  expect(3, 0, 200);
  // Files are in descending order of their epochs.
  const uint64_t newest = slices->files()[0].last_epoch;
  const uint64_t oldest = slices->files()[1].last_epoch;
  ASSERT_LT(oldest, newest);
  expect(2, oldest, 200);
  EXPECT_EQ(0, slices->SizeOf(0, oldest));
  EXPECT_EQ(0, slices->SizeOf(3, oldest));
  EXPECT_EQ(0, slices->SizeOf(2, newest));
  EXPECT_GT(slices->ApproximateMemoryUsage(), 80);

  // Known sizes are taken over, so no file is read.
  ResetReaders();
  const auto again = Estimate(slices.get());
  EXPECT_EQ(0, NumOpen());
  for (size_t bucket = 0; bucket < 4; ++bucket) {
    EXPECT_EQ(slices->SizeOf(bucket, 0), again->SizeOf(bucket, 0));
  }

  // Some of the old bounds are gone, and one is new. The sizes between the
  // other bounds are kept.
  Collect(1, 4, 0, {Key(200), Key(500), Key(800)});
  const auto other = Estimate(slices.get());
  EXPECT_GT(NumOpen(), 0);
  EXPECT_EQ(slices->SizeOf(0, 0), other->SizeOf(0, 0));
  EXPECT_EQ(slices->SizeOf(3, 0), other->SizeOf(3, 0));
  EXPECT_EQ(slices->SizeOf(1, 0) + slices->SizeOf(2, 0),
            other->SizeOf(1, 0) + other->SizeOf(2, 0));
  EXPECT_NEAR(static_cast<double>(other->SizeOf(1, 0)),
              static_cast<double>(400 * key), static_cast<double>(20 * key));

  // A new file is added to the known ones.
  FlushAndMerge(0, 100);
  const auto more = Estimate(other.get());
  ASSERT_EQ(3, more->files().size());
  EXPECT_GT(more->SizeOf(0, 0), other->SizeOf(0, 0));
  EXPECT_EQ(more->SizeOf(1, 0), other->SizeOf(1, 0));
}

TEST_F(DeltaBucketIntakeTest, AnchorsCountAsTheirKeys) {
  FlushAndMerge(0, 10);
  Collect(0, 1, 1, {"", Key(5)});
  Events events;
  for (int i = 5; i < 10; ++i) {
    Event event;
    event.type = Event::Type::kAnchor;
    event.key = Key(i);
    event.seq = ++last_seq_;
    events.push_back(std::move(event));
  }
  Flush(events);
  Merge(1);
  const auto slices = Estimate(nullptr);
  EXPECT_EQ(0, slices->SizeOf(0, 0));
  EXPECT_EQ(5 * Key(0).size(), slices->SizeOf(1, 0));
}

TEST_F(DeltaBucketIntakeTest, RangesAloneAreCounted) {
  FlushAndMerge(0, 10);
  Collect(0, 1, 1, {"", Key(5)});
  Event event;
  event.type = Event::Type::kRangeAnchor;
  event.key = Key(2);
  event.end = Key(8);
  event.seq = ++last_seq_;
  Flush({event});
  Merge(1);
  const auto slices = Estimate(nullptr);
  // The bytes of the file count for one of the buckets, or for both.
  EXPECT_EQ(slices->files()[0].offsets.back(),
            slices->SizeOf(0, 0) + slices->SizeOf(1, 0));
}

TEST_F(DeltaBucketIntakeTest, MissingFileIsAnError) {
  FlushAndMerge(0, 10);
  Collect(0, 1, 1, {"", Key(5)});
  FlushAndMerge(0, 10);
  for (const auto& file : version_->RecentFiles(Kind::kOperands)) {
    ASSERT_OK(env_->DeleteFile(FileName(file->description())));
  }
  std::shared_ptr<const DeltaBucketIntake> slices;
  EXPECT_FALSE(DeltaBucketIntake::Estimate(*version_, *store_, ReadOptions(),
                                           nullptr, &slices)
                   .ok());
  EXPECT_EQ(nullptr, slices);
}

// The buckets that need the file are known without a job for each of them.
TEST_F(DeltaBucketIntakeTest, UnreadableFileDamagesTheBucketsThatNeedIt) {
  FlushAndMerge(0, 100);
  Collect(0, 1, 1, {"", Key(20), Key(40), Key(60), Key(80)});
  FlushAndMerge(25, 65);
  const DeltaFileDescription file =
      version_->RecentFiles(Kind::kOperands).front()->description();
  FlushAndMerge(0, 100);
  const std::string path = FileName(file);
  std::string contents;
  ASSERT_OK(ReadFileToString(env_.get(), path, &contents));
  std::string changed = contents;
  changed.back() ^= 1;
  ASSERT_OK(WriteStringToFile(env_.get(), changed, path));
  ResetReaders();

  const auto slices = Estimate(nullptr);
  ASSERT_EQ(2, slices->files().size());
  EXPECT_OK(slices->files()[0].error);
  const DeltaBucketIntake::File& unreadable = slices->files()[1];
  ASSERT_EQ(file.number, unreadable.number);
  ASSERT_TRUE(unreadable.error.IsCorruption());
  EXPECT_NE(std::string::npos, unreadable.error.ToString().find(path));
  EXPECT_EQ(1, unreadable.first_bucket);
  EXPECT_EQ(3, unreadable.last_bucket);
  DeltaDamage damage;
  EXPECT_TRUE(slices->AddUnreadableTo(&damage, ucmp()));
  ASSERT_EQ(1, damage.ranges().size());
  EXPECT_EQ(Key(20), damage.ranges()[0].range.begin);
  EXPECT_EQ(Key(80), damage.ranges()[0].range.end);
  EXPECT_EQ(DeltaDamage::State::kDamaged, damage.ranges()[0].state);
  EXPECT_EQ(unreadable.error.ToString(), damage.error().ToString());
  EXPECT_FALSE(slices->AddUnreadableTo(&damage, ucmp()));

  // A bucket has taken the file in before.
  Collect(2, 3, 1, {Key(40)});
  const auto later = Estimate(slices.get());
  ASSERT_TRUE(later->files()[1].error.IsCorruption());
  damage.Clear();
  EXPECT_TRUE(later->AddUnreadableTo(&damage, ucmp()));
  ASSERT_EQ(2, damage.ranges().size());
  EXPECT_EQ(Key(40), damage.ranges()[0].range.end);
  EXPECT_EQ(Key(60), damage.ranges()[1].range.begin);

  // The file can be read again.
  ASSERT_OK(WriteStringToFile(env_.get(), contents, path));
  const auto repaired = Estimate(later.get());
  EXPECT_OK(repaired->files()[1].error);
  damage.Clear();
  EXPECT_FALSE(repaired->AddUnreadableTo(&damage, ucmp()));
  EXPECT_TRUE(damage.empty());
  EXPECT_GT(repaired->SizeOf(1, 0), later->SizeOf(1, 0));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
