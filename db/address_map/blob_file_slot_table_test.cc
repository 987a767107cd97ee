// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/blob_file_slot_table.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

using State = BlobFileSlotTable::State;

class BlobFileSlotTableTest : public testing::Test {
 protected:
  State StateOf(uint32_t slot) {
    BlobFileSlotTable::Info info;
    return files_.GetInfo(slot, &info) ? info.state : State::kFree;
  }

  BlobFileSlotTable files_;
};

TEST_F(BlobFileSlotTableTest, CopiesAreNotPendingAndCannotBeDropped) {
  // The values of copies were committed before, so the file is not pending. The
  // file itself is not committed, so it cannot be dropped.
  const uint32_t s = files_.Add(7, 2, kZSTD);
  ASSERT_TRUE(files_.PublishCopies(s, 12345));
  ASSERT_EQ(State::kCopies, StateOf(s));
  ASSERT_FALSE(files_.PublishCopies(s, 12345));
  ASSERT_FALSE(files_.Publish(s, 12345));
  ASSERT_FALSE(files_.IsPending(s));
  ASSERT_TRUE(files_.GetDroppable().empty());
  ASSERT_FALSE(files_.Drop(s));
  ASSERT_TRUE(files_.Commit(s));
  ASSERT_EQ(State::kLive, StateOf(s));
  ASSERT_EQ(1u, files_.GetDroppable().size());

  const uint32_t failed = files_.Add(8, 0, kNoCompression);
  ASSERT_TRUE(files_.PublishCopies(failed, 100));
  ASSERT_TRUE(files_.Abandon(failed));
  ASSERT_FALSE(files_.Commit(failed));
  ASSERT_TRUE(files_.Free(failed));
}

TEST_F(BlobFileSlotTableTest, FilesHaveAPlace) {
  const uint32_t s = files_.Add(7, 2, kZSTD);
  EXPECT_EQ(2u, files_.PlaceOf(s).path_id);
  EXPECT_FALSE(files_.PlaceOf(s).hot.is_hot());
  files_.SetHot(s, HotMark::WithHome(1));
  EXPECT_EQ(2u, files_.PlaceOf(s).path_id);
  EXPECT_EQ(1u, files_.PlaceOf(s).hot.home());
  BlobFileSlotTable::Info info;
  ASSERT_TRUE(files_.GetInfo(s, &info));
  EXPECT_TRUE(info.hot == HotMark::WithHome(1));
  // The next file in the slot is not hot.
  ASSERT_TRUE(files_.Abandon(s));
  ASSERT_TRUE(files_.Free(s));
  ASSERT_EQ(s, files_.Add(8, 0, kNoCompression));
  EXPECT_EQ(0u, files_.PlaceOf(s).path_id);
  EXPECT_FALSE(files_.PlaceOf(s).hot.is_hot());
}

TEST_F(BlobFileSlotTableTest, StatesFollowTheLifeOfAFile) {
  const uint32_t s = files_.Add(7, 2, kZSTD);
  ASSERT_NE(BlobFileSlotTable::kLostSlot, s);
  ASSERT_EQ(s, files_.Find(7));
  ASSERT_EQ(BlobFileSlotTable::kLostSlot, files_.Find(8));
  ASSERT_EQ(7u, files_.Number(s));
  ASSERT_TRUE(files_.IsPending(s));
  ASSERT_FALSE(files_.Commit(s));
  ASSERT_FALSE(files_.Drop(s));
  ASSERT_FALSE(files_.Free(s));
  ASSERT_TRUE(files_.Publish(s, 12345));
  ASSERT_FALSE(files_.Publish(s, 1));
  ASSERT_TRUE(files_.IsPending(s));
  files_.AddLive(s, 100);
  files_.AddLive(s, 50);
  ASSERT_TRUE(files_.Commit(s));
  ASSERT_FALSE(files_.IsPending(s));
  ASSERT_FALSE(files_.IsReleased(7));

  BlobFileSlotTable::Info info;
  ASSERT_TRUE(files_.GetInfo(s, &info));
  ASSERT_EQ(7u, info.number);
  ASSERT_EQ(12345u, info.size);
  ASSERT_EQ(2u, info.path_id);
  ASSERT_EQ(kZSTD, info.compression);
  ASSERT_EQ(State::kLive, info.state);
  ASSERT_EQ(2u, info.live_count);
  ASSERT_EQ(150u, info.live_bytes);

  ASSERT_TRUE(files_.GetDroppable().empty());
  ASSERT_FALSE(files_.HasDroppable());
  files_.SubLive(s, 100);
  ASSERT_FALSE(files_.HasDroppable());
  files_.SubLive(s, 50);
  ASSERT_TRUE(files_.HasDroppable());
  ASSERT_EQ(1u, files_.GetDroppable().size());
  ASSERT_TRUE(files_.HasDroppable());

  ASSERT_TRUE(files_.CollectDead().empty());
  ASSERT_TRUE(files_.Drop(s));
  ASSERT_TRUE(files_.IsReleased(7));
  ASSERT_TRUE(files_.GetDroppable().empty());
  const auto dead = files_.CollectDead();
  ASSERT_EQ(1u, dead.size());
  ASSERT_EQ(7u, dead[0].number);
  ASSERT_EQ(2u, dead[0].path_id);
  ASSERT_EQ(State::kHandedOver, StateOf(s));
  ASSERT_TRUE(files_.IsReleased(7));
  ASSERT_TRUE(files_.CollectDead().empty());
  ASSERT_TRUE(files_.Free(s));
  ASSERT_FALSE(files_.IsReleased(7));
  ASSERT_FALSE(files_.GetInfo(s, &info));
  ASSERT_EQ(BlobFileSlotTable::kLostSlot, files_.Find(7));
  // The free slot is assigned again.
  ASSERT_EQ(s, files_.Add(9, 0, kNoCompression));
}

// A search for droppable files does not find a pending file and forgets it, so
// the commit must announce a file that became empty before.
TEST_F(BlobFileSlotTableTest, CommitAnnouncesAFileEmptiedBefore) {
  const uint32_t s = files_.Add(7, 0, kNoCompression);
  ASSERT_TRUE(files_.Publish(s, 100));
  files_.AddLive(s, 50);
  files_.SubLive(s, 50);
  ASSERT_TRUE(files_.GetDroppable().empty());
  ASSERT_FALSE(files_.HasDroppable());
  int announced = 0;
  files_.SetOnDroppable([&announced] { ++announced; });
  ASSERT_TRUE(files_.Commit(s));
  ASSERT_EQ(1, announced);
  ASSERT_TRUE(files_.HasDroppable());
  ASSERT_EQ(1u, files_.GetDroppable().size());
}

TEST_F(BlobFileSlotTableTest, AbandonedSlotIsFreedOnceUnused) {
  const uint32_t a = files_.Add(1, 0, kNoCompression);
  ASSERT_TRUE(files_.Abandon(a));
  const uint32_t b = files_.Add(2, 0, kNoCompression);
  ASSERT_TRUE(files_.Publish(b, 1));
  ASSERT_TRUE(files_.Abandon(b));
  const uint32_t c = files_.Add(3, 0, kNoCompression, State::kLive, 10);
  ASSERT_FALSE(files_.Abandon(c));
  ASSERT_TRUE(files_.IsPending(b));
  ASSERT_FALSE(files_.IsReleased(2));
  ASSERT_TRUE(files_.CollectDead().empty());
  // An entry, a reader's pin and a job's pin each keep the slot from being
  // freed.
  files_.AddLive(b, 5);
  ASSERT_FALSE(files_.Free(b));
  files_.SubLive(b, 5);
  {
    ASSERT_TRUE(files_.Pin(b));
    MapFilePin pin(&files_, b);
    ASSERT_FALSE(files_.Free(b));
  }
  ASSERT_TRUE(files_.Free(b));
  ASSERT_TRUE(files_.Free(a));
  ASSERT_FALSE(files_.Free(a));
}

// A dead file whose last reader has ended is announced. Otherwise it would stay
// until another file is collected.
TEST_F(BlobFileSlotTableTest, LastPinOfADeadFileIsAnnounced) {
  const uint32_t s = files_.Add(1, 0, kNoCompression, State::kLive, 10);
  int announced = 0;
  files_.SetOnDroppable([&announced] { ++announced; });
  ASSERT_TRUE(files_.Pin(s));
  MapFilePin first(&files_, s);
  ASSERT_TRUE(files_.Pin(s));
  MapFilePin second(&files_, s);
  {
    // Readers of a live file announce nothing.
    const uint32_t live = files_.Add(2, 0, kNoCompression, State::kLive, 10);
    ASSERT_TRUE(files_.Pin(live));
    MapFilePin pin(&files_, live);
  }
  ASSERT_TRUE(files_.Drop(s));
  ASSERT_TRUE(files_.CollectDead().empty());
  announced = 0;
  first.Reset();
  ASSERT_EQ(0, announced);
  ASSERT_FALSE(files_.HasReleasedDead());
  second.Reset();
  ASSERT_EQ(1, announced);
  ASSERT_TRUE(files_.HasReleasedDead());
  ASSERT_EQ(1u, files_.CollectDead().size());
  ASSERT_FALSE(files_.HasReleasedDead());
  // A file that was handed over announces nothing.
  ASSERT_TRUE(files_.Pin(s));
  files_.Unpin(s);
  ASSERT_EQ(1, announced);
}

TEST_F(BlobFileSlotTableTest, PinsDelayCollection) {
  const uint32_t s = files_.Add(1, 0, kNoCompression, State::kLive, 10);
  ASSERT_TRUE(files_.Pin(s));
  MapFilePin pin(&files_, s);
  ASSERT_TRUE(files_.PinForJob(s));
  // A job's pin keeps the file from being dropped. A reader's pin does not.
  ASSERT_TRUE(files_.GetDroppable().empty());
  ASSERT_FALSE(files_.HasDroppable());
  files_.UnpinForJob(s);
  ASSERT_TRUE(files_.HasDroppable());
  ASSERT_EQ(1u, files_.GetDroppable().size());
  ASSERT_TRUE(files_.Drop(s));
  ASSERT_TRUE(files_.CollectDead().empty());
  MapFilePin moved(std::move(pin));
  ASSERT_FALSE(pin.pinned());  // NOLINT(bugprone-use-after-move)
  pin.Reset();
  ASSERT_TRUE(files_.CollectDead().empty());
  ASSERT_TRUE(files_.PinForJob(s));
  moved.Reset();
  ASSERT_TRUE(files_.CollectDead().empty());
  files_.UnpinForJob(s);
  ASSERT_EQ(1u, files_.CollectDead().size());
  ASSERT_FALSE(files_.PinForJob(s));
}

TEST_F(BlobFileSlotTableTest, JobPinsAFileByItsNumber) {
  const uint32_t first = files_.Add(1, 0, kNoCompression, State::kLive, 10);
  ASSERT_EQ(first, files_.PinFileForJob(1));
  ASSERT_TRUE(files_.GetDroppable().empty());
  files_.UnpinForJob(first);
  ASSERT_TRUE(files_.Drop(first));
  ASSERT_EQ(1u, files_.CollectDead().size());
  // It is handed over.
  ASSERT_EQ(BlobFileSlotTable::kLostSlot, files_.PinFileForJob(1));
  ASSERT_TRUE(files_.Free(first));
  // Another file has the slot now.
  ASSERT_EQ(first, files_.Add(2, 0, kNoCompression, State::kLive, 10));
  ASSERT_EQ(BlobFileSlotTable::kLostSlot, files_.PinFileForJob(1));
  ASSERT_EQ(first, files_.PinFileForJob(2));
  files_.UnpinForJob(first);
}

TEST_F(BlobFileSlotTableTest, UnknownSlotNumbersAreRefused) {
  ASSERT_FALSE(files_.Pin(BlobFileSlotTable::kMaxSlots));
  ASSERT_FALSE(files_.Pin(~uint32_t{0}));
  ASSERT_FALSE(files_.Pin(1000000));
  ASSERT_EQ(0u, files_.Number(1000000));
  ASSERT_EQ(0u, files_.LiveCount(~uint32_t{0}));
  ASSERT_FALSE(files_.PinForJob(BlobFileSlotTable::kLostSlot));
  ASSERT_FALSE(files_.Free(BlobFileSlotTable::kLostSlot));
  // Lost records are counted and pinned like others.
  files_.AddLive(BlobFileSlotTable::kLostSlot, 3);
  ASSERT_TRUE(files_.Pin(BlobFileSlotTable::kLostSlot));
  files_.Unpin(BlobFileSlotTable::kLostSlot);
  ASSERT_EQ(1u, files_.LiveCount(BlobFileSlotTable::kLostSlot));
  ASSERT_TRUE(files_.GetAll().empty());
}

TEST_F(BlobFileSlotTableTest, ManyFilesKeepTheirOwnCounts) {
  std::vector<uint32_t> slots;
  for (uint64_t n = 1; n <= 5000; ++n) {
    slots.push_back(files_.Add(n, 0, kNoCompression, State::kLive, n));
    files_.AddLive(slots.back(), n);
  }
  ASSERT_EQ(5000u, std::set<uint32_t>(slots.begin(), slots.end()).size());
  for (uint64_t n = 1; n <= 5000; ++n) {
    ASSERT_EQ(slots[n - 1], files_.Find(n));
    ASSERT_EQ(n, files_.LiveBytes(slots[n - 1]));
  }
  ASSERT_EQ(5000u, files_.GetAll().size());
}

// No count is lost and no slot moves while other threads add slots.
TEST_F(BlobFileSlotTableTest, ConcurrentChangesLoseNoCount) {
  std::vector<std::thread> threads;
  std::vector<uint32_t> slots;
  for (int i = 0; i < 4; ++i) {
    slots.push_back(files_.Add(i + 1, 0, kNoCompression, State::kLive));
  }
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20000; ++i) {
        const uint32_t s = slots[(t + i) % 4];
        files_.AddLive(s, 7);
        ASSERT_TRUE(files_.Pin(s));
        if (i % 100 == 0) {
          files_.Add(100 + t * 20000 + i, 0, kNoCompression);
          ASSERT_TRUE(files_.CollectDead().empty());
        }
        files_.Unpin(s);
        if (i % 2 == 0) {
          files_.SubLive(s, 7);
        }
      }
    });
  }
  for (auto& t : threads) {
    t.join();
  }
  uint64_t count = 0;
  uint64_t bytes = 0;
  for (const uint32_t s : slots) {
    BlobFileSlotTable::Info info;
    ASSERT_TRUE(files_.GetInfo(s, &info));
    ASSERT_EQ(0u, info.pins);
    count += info.live_count;
    bytes += info.live_bytes;
  }
  ASSERT_EQ(40000u, count);
  ASSERT_EQ(280000u, bytes);
}

// A file that a reader has pinned and then found still in use is not collected.
// `in_use` stands for the map's entry and its version counter.
TEST_F(BlobFileSlotTableTest, PinnedFileIsNeverCollected) {
  std::atomic<uint32_t> in_use{files_.Add(1, 0, kNoCompression, State::kLive)};
  std::atomic<uint64_t> pinned{0};
  files_.AddLive(in_use, 1);
  StoppableThreads readers;
  for (int t = 0; t < 3; ++t) {
    readers.Start([&] {
      while (!readers.stopped()) {
        const uint32_t s = in_use.load(std::memory_order_acquire);
        const uint64_t number = files_.Number(s);
        ASSERT_TRUE(files_.Pin(s));
        MapFilePin pin(&files_, s);
        if (in_use.load(std::memory_order_acquire) != s ||
            files_.Number(s) != number) {
          continue;
        }
        BlobFileSlotTable::Info info;
        ASSERT_TRUE(files_.GetInfo(s, &info));
        ASSERT_EQ(number, info.number);
        ASSERT_NE(State::kHandedOver, info.state);
        pinned.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  uint64_t number = 1;
  for (int i = 0; i < 1000000 && (i < 20000 || pinned.load() < 100); ++i) {
    const uint32_t old = in_use.load();
    const uint32_t s = files_.Add(++number, 0, kNoCompression, State::kLive);
    files_.AddLive(s, 1);
    in_use.store(s, std::memory_order_release);
    files_.SubLive(old, 1);
    ASSERT_TRUE(files_.Drop(old));
    for (const auto& f : files_.CollectDead()) {
      ASSERT_TRUE(files_.Free(f.slot));
    }
  }
  readers.Stop();
  ASSERT_GE(pinned.load(), 100u);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
