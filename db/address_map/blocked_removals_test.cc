//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/blocked_removals.h"

#include <map>
#include <set>

#include "db/address_map/blob_file_slot_table.h"
#include "test_util/strata/map_memory_charge_test_util.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class BlockedRemovalsTest : public testing::Test {
 protected:
  BlockedRemovalsTest() : map_({}, &files_) {
    slot_ = files_.Add(10, 0, kNoCompression);
  }

  static MapKeyHash KeyOf(uint64_t i) {
    return MapKeyHash{i * 0x9E3779B97F4A7C15u, static_cast<uint32_t>(i)};
  }
  void Insert(uint64_t key, SequenceNumber seq, bool direct = false,
              uint64_t birth = 0) {
    AddressMap::Record record;
    record.name = MapName{KeyOf(key), seq, birth};
    record.size = 100;
    record.direct = direct;
    ASSERT_OK(map_.InsertBatch(slot_, &record, 1));
  }
  bool Has(uint64_t key, SequenceNumber seq, uint64_t birth = 0) {
    return map_.FindByName(MapName{KeyOf(key), seq, birth}, /*pin=*/false)
        .found;
  }

  BlobFileSlotTable files_;
  AddressMap map_;
  uint32_t slot_ = 0;
};

TEST_F(BlockedRemovalsTest, VersionWithoutAReaderIsRemovedAtOnce) {
  BlockedRemovals blocked(&map_, /*charge=*/nullptr);
  Insert(1, 5, /*direct=*/true);
  Insert(1, 20);
  Insert(1, 30);
  // A reader at 10 needs version 5. No reader needs version 20.
  ASSERT_EQ(1u, blocked.Hide(KeyOf(1), 30, kMaxBirth, {10, 30}));
  ASSERT_TRUE(Has(1, 5));
  ASSERT_FALSE(Has(1, 20));
  ASSERT_TRUE(Has(1, 30));
  ASSERT_EQ(1u, blocked.Count());
  ASSERT_EQ(30u, blocked.BlockedUntil());
  ASSERT_EQ(0u, blocked.Apply(29, 100));
  ASSERT_EQ(1u, blocked.Apply(30, 100));
  ASSERT_FALSE(Has(1, 5));
  ASSERT_TRUE(Has(1, 30));
  ASSERT_EQ(0u, blocked.Count());
  ASSERT_EQ(kMaxSequenceNumber, blocked.BlockedUntil());
}

// Compactions and ingestions give values the sequence number zero.
TEST_F(BlockedRemovalsTest, VersionZeroIsRemoved) {
  BlockedRemovals blocked(&map_, /*charge=*/nullptr);
  for (uint64_t key = 1; key <= 4; ++key) {
    Insert(key, 0, /*direct=*/key % 2 == 0);
    Insert(key, 10);
  }
  ASSERT_EQ(1u, blocked.Hide(KeyOf(1), 10, kMaxBirth, {}));
  ASSERT_FALSE(Has(1, 0));
  ASSERT_TRUE(Has(1, 10));
  ASSERT_EQ(1u, blocked.Hide(KeyOf(2), 10, kMaxBirth, {10}));
  ASSERT_FALSE(Has(2, 0));
  ASSERT_EQ(0u, blocked.Count());
  // A reader at 5 needs it.
  ASSERT_EQ(0u, blocked.Hide(KeyOf(3), 10, kMaxBirth, {5, 10}));
  ASSERT_TRUE(Has(3, 0));
  // New readers may need it.
  ASSERT_EQ(0u, blocked.Hide(KeyOf(4), 10, kMaxBirth, {9}));
  ASSERT_TRUE(Has(4, 0));
  ASSERT_EQ(2u, blocked.Count());
  ASSERT_EQ(2u, blocked.Apply(10, 100));
  ASSERT_FALSE(Has(3, 0));
  ASSERT_FALSE(Has(4, 0));
  ASSERT_TRUE(Has(4, 10));
}

TEST_F(BlockedRemovalsTest, EachVersionWaitsForItsOwnReader) {
  BlockedRemovals blocked(&map_, /*charge=*/nullptr);
  Insert(1, 5);
  Insert(1, 20);
  ASSERT_EQ(0u, blocked.Hide(KeyOf(1), 20, kMaxBirth, {10, 20}));
  Insert(1, 40);
  ASSERT_EQ(0u, blocked.Hide(KeyOf(1), 40, kMaxBirth, {10, 30, 40}));
  // The reader at 10 ends, and the reader at 30 stays.
  ASSERT_EQ(1u, blocked.Apply(30, 100));
  ASSERT_FALSE(Has(1, 5));
  ASSERT_TRUE(Has(1, 20));
  ASSERT_EQ(1u, blocked.Apply(40, 100));
  ASSERT_FALSE(Has(1, 20));
  ASSERT_TRUE(Has(1, 40));
}

TEST_F(BlockedRemovalsTest, RemovalWaitsUntilNewReadersSeeTheHidingEntry) {
  BlockedRemovals blocked(&map_, /*charge=*/nullptr);
  Insert(1, 5);
  // New readers may read at 8, and the tombstone at 9 is not published yet.
  ASSERT_EQ(0u, blocked.Hide(KeyOf(1), 9, kMaxBirth, {8}));
  ASSERT_TRUE(Has(1, 5));
  ASSERT_EQ(1u, blocked.Apply(9, 100));
  // There are no readers.
  Insert(2, 5);
  ASSERT_EQ(1u, blocked.Hide(KeyOf(2), 9, kMaxBirth, {}));
}

// The list of readers was made when new readers read at 6. A reader may have
// begun at 8 since, before the hiding entry at 9 was published.
TEST_F(BlockedRemovalsTest, ReaderThatBeganAfterTheListFindsItsVersion) {
  BlockedRemovals blocked(&map_, /*charge=*/nullptr);
  Insert(1, 5);
  Insert(1, 8);
  Insert(1, 9);
  ASSERT_EQ(0u, blocked.Hide(KeyOf(1), 9, kMaxBirth, {6}));
  ASSERT_TRUE(Has(1, 5));
  ASSERT_TRUE(Has(1, 8));
  ASSERT_EQ(2u, blocked.Apply(9, 100));
  ASSERT_TRUE(Has(1, 9));
}

TEST_F(BlockedRemovalsTest, MemoryIsBoundedByTheWaitingRemovals) {
  TestMapCharge charge;
  {
    BlockedRemovals blocked(&map_, &charge);
    constexpr uint64_t kKeys = 20000;
    SequenceNumber seq = 1;
    for (uint64_t key = 0; key < kKeys; ++key) {
      Insert(key, seq++);
    }
    const SequenceNumber reader = seq - 1;
    for (int round = 0; round < 20; ++round) {
      for (uint64_t key = 0; key < kKeys; ++key) {
        Insert(key, seq);
        ASSERT_EQ(round == 0 ? 0u : 1u,
                  blocked.Hide(KeyOf(key), seq, kMaxBirth, {reader, seq}));
        ++seq;
      }
      ASSERT_LE(blocked.Count(), size_t{64} << 10);
    }
    ASSERT_EQ(2 * kKeys, map_.NumEntries());
    ASSERT_GE(charge.charged, blocked.MemoryUsage());
    ASSERT_GT(charge.charged, 0u);
    // Each Apply() is limited to 1000 removals.
    while (blocked.BlockedUntil() != kMaxSequenceNumber) {
      ASSERT_LE(blocked.Apply(seq, 1000), 1000u);
    }
    ASSERT_EQ(kKeys, map_.NumEntries());
    ASSERT_LT(blocked.MemoryUsage(), size_t{64} << 10);
  }
  ASSERT_EQ(0u, charge.charged);
  ASSERT_OK(map_.TEST_Check());
}

// An item is redundant only if an older item of its key removes the newest
// entry that it stands for. Here, that entry is the one that the older item
// hides others with.
TEST_F(BlockedRemovalsTest, SortedListKeepsWhatNoOtherItemRemoves) {
  BlockedRemovals blocked(&map_, /*charge=*/nullptr);
  constexpr uint64_t kKeys = (uint64_t{64} << 10) / 2 + 100;
  for (uint64_t key = 0; key < kKeys; ++key) {
    for (const SequenceNumber seq : {5, 10, 15}) {
      Insert(key, seq);
    }
    ASSERT_EQ(0u, blocked.Hide(KeyOf(key), 10, kMaxBirth, {7, 10}));
    ASSERT_EQ(0u, blocked.Hide(KeyOf(key), 15, kMaxBirth, {7, 12, 15}));
  }
  ASSERT_EQ(2 * kKeys, blocked.Count());
  ASSERT_EQ(2 * kKeys, blocked.Apply(15, 2 * kKeys));
  ASSERT_EQ(kKeys, map_.NumEntries());
  ASSERT_EQ(0u, blocked.Count());
}

// When a removal is carried out, the hiding entry may have left the tree, and
// newer values with smaller sequence numbers may be in the map.
TEST_F(BlockedRemovalsTest, ValueThatIsBornLaterStays) {
  for (const bool direct : {false, true}) {
    BlockedRemovals blocked(&map_, /*charge=*/nullptr);
    // The value is there before the flush of the hiding entry is settled.
    Insert(1, 0, direct, /*birth=*/30);
    Insert(1, 4, /*direct=*/false, /*birth=*/29);
    ASSERT_EQ(1u, blocked.Hide(KeyOf(1), 9, /*born_before=*/30, {9}));
    ASSERT_TRUE(Has(1, 0, 30));
    ASSERT_EQ(0u, blocked.Count());
    // It comes later.
    Insert(2, 5);
    ASSERT_EQ(0u, blocked.Hide(KeyOf(2), 9, /*born_before=*/30, {6, 9}));
    Insert(2, 3, direct, /*birth=*/30);
    ASSERT_EQ(1u, blocked.Count());
    ASSERT_EQ(1u, blocked.Apply(9, 100));
    ASSERT_FALSE(Has(2, 5));
    ASSERT_TRUE(Has(2, 3, 30));
    ASSERT_EQ(2u, map_.NumEntries());
    ASSERT_TRUE(map_.Remove(MapName{KeyOf(1), 0, 30}));
    ASSERT_TRUE(map_.Remove(MapName{KeyOf(2), 3, 30}));
    ASSERT_OK(map_.TEST_Check());
  }
}

// An item does not stand for a later one of its key if the entries of the
// latter were born too late for it.
TEST_F(BlockedRemovalsTest, SortedListKeepsLimitsOfBirths) {
  BlockedRemovals blocked(&map_, /*charge=*/nullptr);
  constexpr uint64_t kKeys = (uint64_t{64} << 10) / 2 + 100;
  for (uint64_t key = 0; key < kKeys; ++key) {
    Insert(key, 5);
    ASSERT_EQ(0u, blocked.Hide(KeyOf(key), 9, /*born_before=*/30, {7, 9}));
    Insert(key, 3, /*direct=*/false, /*birth=*/30);
    Insert(key, 12);
    ASSERT_EQ(0u, blocked.Hide(KeyOf(key), 12, /*born_before=*/31, {7, 12}));
  }
  ASSERT_EQ(2 * kKeys, blocked.Count());
  ASSERT_EQ(kKeys, blocked.Apply(9, 2 * kKeys));
  ASSERT_EQ(2 * kKeys, map_.NumEntries());
  ASSERT_EQ(kKeys, blocked.Apply(12, 2 * kKeys));
  ASSERT_EQ(kKeys, map_.NumEntries());
}

// At each step of a random history, the version that each reader sees is in the
// map. In the end the map has the newest version of each key only.
TEST_F(BlockedRemovalsTest, EachReaderFindsItsVersion) {
  BlockedRemovals blocked(&map_, /*charge=*/nullptr);
  Random rnd(301);
  std::map<uint64_t, std::set<SequenceNumber>> written;
  std::multiset<SequenceNumber> readers;
  SequenceNumber seq = 1;
  for (int step = 0; step < 20000; ++step) {
    const uint64_t key = rnd.Uniform(20);
    if (rnd.OneIn(10)) {
      readers.insert(seq - 1);
    } else if (rnd.OneIn(9) && !readers.empty()) {
      auto it = readers.begin();
      std::advance(
          it, rnd.OneIn(2) ? 0 : rnd.Uniform(static_cast<int>(readers.size())));
      readers.erase(it);
      blocked.Apply(readers.empty() ? seq - 1 : *readers.begin(),
                    1 + rnd.Uniform(50));
    } else {
      Insert(key, seq);
      written[key].insert(seq);
      std::set<SequenceNumber> now(readers.begin(), readers.end());
      now.insert(seq);
      blocked.Hide(KeyOf(key), seq, kMaxBirth,
                   std::vector<SequenceNumber>(now.begin(), now.end()));
      ++seq;
    }
    for (const SequenceNumber reader : readers) {
      const auto& versions = written[key];
      auto seen = versions.upper_bound(reader);
      if (seen != versions.begin()) {
        ASSERT_TRUE(Has(key, *--seen)) << step;
      }
    }
  }
  blocked.Apply(seq, SIZE_MAX);
  uint64_t keys = 0;
  for (const auto& [key, versions] : written) {
    keys += versions.empty() ? 0 : 1;
    ASSERT_TRUE(Has(key, *versions.rbegin()));
  }
  ASSERT_EQ(keys, map_.NumEntries());
  ASSERT_OK(map_.TEST_Check());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
