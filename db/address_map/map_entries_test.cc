// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_entries.h"

#include <vector>

#include "db/address_map/map_invariant_check.h"
#include "db/address_map/map_memory_account.h"
#include "db/address_map/map_tables.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class MapEntriesTest : public testing::Test {
 protected:
  MapEntriesTest()
      : memory_(/*charge=*/nullptr),
        tables_(&memory_, /*expected_entries=*/0),
        entries_(&files_) {}

  static MapKeyHash KeyOf(uint64_t i) {
    return MapKeyHash{i * 0x9E3779B97F4A7C15u, static_cast<uint32_t>(i)};
  }
  static PlacedEntry EntryOf(SequenceNumber seq, uint64_t birth,
                             const MapAddress& address) {
    PlacedEntry entry;
    entry.seq = seq;
    entry.birth = birth;
    entry.address = address;
    return entry;
  }

  // Calls fn(shard, view) in a write section of the key's shard, which has room
  // for one more entry.
  template <typename Fn>
  void Write(const MapKeyHash& key, const Fn& fn) {
    MapTable* table = nullptr;
    MapShard* shard = nullptr;
    MapTables::Lock lock;
    ASSERT_OK(tables_.LockWithRoom(key, &table, &shard, &lock));
    shard->BeginWrite();
    fn(shard, table->ViewOf(shard));
    tables_.EndWrite(shard);
  }
  MapShardView ViewOf(const MapKeyHash& key) const {
    const MapTable* const table = tables_.Current();
    return table->ViewOf(table->Of(key));
  }
  void Check() { ASSERT_OK(MapInvariantCheck(tables_, entries_).Run()); }

  BlobFileSlotTable files_;
  MapMemoryAccount memory_;
  MapTables tables_;
  MapEntries entries_;
};

TEST_F(MapEntriesTest, EntriesOfAllFormsAreReadAsWritten) {
  const uint32_t slot = files_.Add(11, 0, kNoCompression);
  const std::vector<PlacedEntry> all = {
      EntryOf(5, 0, MapAddress{slot, 1000, 100}),
      EntryOf(5, 11, MapAddress{slot, ~uint32_t{0}, (1 << 18) - 1}),
      // These have a side cell: for the birth, the size, the slot, and the
      // sequence number.
      EntryOf(5, 10, MapAddress{slot, 1000, 100}),
      EntryOf(5, 0, MapAddress{slot, 1000, 1 << 18}),
      EntryOf(5, 0, MapAddress{1 << 20, 1000, 100}),
      EntryOf(uint64_t{1} << 48, 0, MapAddress{slot, 1000, 100}),
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const MapKeyHash key = KeyOf(i);
    Write(key, [&](MapShard* shard, const MapShardView& view) {
      entries_.Place(shard, view, key, all[i]);
    });
  }
  Check();
  ASSERT_EQ(4u, entries_.NumSideCells());
  for (size_t i = 0; i < all.size(); ++i) {
    const MapKeyHash key = KeyOf(i);
    PlacedEntry found;
    ASSERT_TRUE(entries_.FindTop(ViewOf(key), key, &found));
    ASSERT_EQ(all[i].seq, found.seq);
    ASSERT_EQ(all[i].birth, found.birth);
    ASSERT_TRUE(all[i].address == found.address);
    Write(key, [&](MapShard* shard, const MapShardView& view) {
      entries_.Erase(shard, view, key, found);
    });
    ASSERT_FALSE(entries_.FindTop(ViewOf(key), key, &found));
  }
  ASSERT_EQ(0u, entries_.NumSideCells());
  Check();
}

TEST_F(MapEntriesTest, FirstVersionedEntriesAreNearAndTheOthersFar) {
  const uint32_t slot = files_.Add(11, 0, kNoCompression);
  const MapKeyHash key = KeyOf(1);
  for (SequenceNumber seq = 1; seq <= MapEntries::kMaxNear + 3; ++seq) {
    PlacedEntry entry = EntryOf(seq, 11, MapAddress{slot, 0, 100});
    Write(key, [&](MapShard* shard, const MapShardView& view) {
      entries_.PlaceVersioned(shard, view, key, &entry);
    });
  }
  Check();
  ASSERT_EQ(3u, entries_.NumFarNames());
  for (SequenceNumber seq = 1; seq <= MapEntries::kMaxNear + 3; ++seq) {
    PlacedEntry found;
    ASSERT_TRUE(entries_.FindVersioned(ViewOf(key), key, seq, 11, &found));
    ASSERT_EQ(seq > MapEntries::kMaxNear, found.is_far);
    Write(key, [&](MapShard* shard, const MapShardView& view) {
      entries_.Erase(shard, view, key, found);
    });
    ASSERT_FALSE(entries_.FindVersioned(ViewOf(key), key, seq, 11, &found));
  }
  ASSERT_EQ(0u, entries_.NumFarNames());
  Check();
}

TEST_F(MapEntriesTest, ChainIsReadInTheOrderInWhichItWasStored) {
  const uint32_t slot = files_.Add(11, 0, kNoCompression);
  const MapKeyHash key = KeyOf(1);
  MapEntries::Chain chain;
  for (const SequenceNumber seq : {30, 20, 10}) {
    chain.push_back(EntryOf(seq, 11, MapAddress{slot, 0, 100}));
  }
  Write(key, [&](MapShard* shard, const MapShardView& view) {
    entries_.StoreChain(shard, view, key, /*old=*/{}, &chain);
  });
  Check();
  MapEntries::Chain loaded;
  entries_.LoadChain(ViewOf(key), key, &loaded);
  ASSERT_EQ(3u, loaded.size());
  ASSERT_EQ(30u, loaded[0].seq);
  ASSERT_EQ(MapMode::kDirect, loaded[0].mode);
  ASSERT_EQ(20u, loaded[1].seq);
  ASSERT_EQ(MapMode::kSuperseded, loaded[1].mode);
  ASSERT_EQ(10u, loaded[2].seq);
  ASSERT_FALSE(loaded[2].has_link);
  // The two entries with a link take two cells each.
  ASSERT_EQ(4u, entries_.NumSideCells());

  MapEntries::Chain none;
  Write(key, [&](MapShard* shard, const MapShardView& view) {
    entries_.StoreChain(shard, view, key, loaded, &none);
  });
  ASSERT_EQ(0u, entries_.NumSideCells());
  ASSERT_EQ(0u, tables_.NumEntries());
  Check();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
