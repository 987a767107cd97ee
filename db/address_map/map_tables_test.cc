// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_tables.h"

#include <atomic>
#include <cstdint>
#include <thread>

#include "port/stack_trace.h"
#include "test_util/strata/map_memory_charge_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class MapTablesTest : public testing::Test {
 protected:
  static MapKeyHash KeyOf(uint64_t i) {
    return MapKeyHash{i * 0x9E3779B97F4A7C15u, static_cast<uint32_t>(i)};
  }

  // Adds a direct entry of the key that has no other content.
  static Status Add(MapTables* tables, const MapKeyHash& key) {
    MapTable* table = nullptr;
    MapShard* shard = nullptr;
    MapTables::Lock lock;
    Status s = tables->LockWithRoom(key, &table, &shard, &lock);
    if (s.ok()) {
      const MapShardView view = table->ViewOf(shard);
      shard->BeginWrite();
      uint32_t i = 0;
      MapBucket* const b =
          view.TakePlace(key, view.BucketOf(view.LocOf(key)), &i);
      shard->SetHigh(static_cast<uint32_t>(b - view.base), i, key);
      b->StoreEntry(i, MapBucket::IdWord(key), MapBucket::Id16(key),
                    /*loc_word=*/0, MapBucket::Id6(key) << 4);
      shard->SetCount(shard->Count() + 1);
      tables->EndWrite(shard);
    }
    return s;
  }

  // Returns true if a reader finds an entry of the key.
  static bool Has(const MapTables& tables, const MapKeyHash& key) {
    bool found = false;
    tables.Read(
        key,
        [&](const MapShardView& view) {
          for (uint32_t n = 0; n < view.num_buckets; ++n) {
            view.base[n].ForEach([&](uint32_t i) {
              found |= view.base[n].Id(i) == MapBucket::IdWord(key);
            });
          }
        },
        [&] { found = false; });
    return found;
  }
};

TEST_F(MapTablesTest, FirstTableHasRoomForTheExpectedEntries) {
  MapMemoryAccount memory(/*charge=*/nullptr);
  MapTables tables(&memory, /*expected_entries=*/0);
  MapTable* table = nullptr;
  MapTables::Lock lock;
  ASSERT_EQ(nullptr, tables.LockShard(KeyOf(1), &table, &lock));
  ASSERT_FALSE(Has(tables, KeyOf(1)));
  ASSERT_EQ(0u, tables.NumTables());

  tables.Expect(3000000);
  ASSERT_OK(Add(&tables, KeyOf(1)));
  ASSERT_TRUE(Has(tables, KeyOf(1)));
  ASSERT_EQ(1u, tables.NumTables());
  ASSERT_FALSE(tables.Current()->IsSmall());
  ASSERT_GE(tables.Current()->NumShards() *
                MapTables::Capacity(tables.Current()->stride),
            3000000u);
}

TEST_F(MapTablesTest, EntriesFollowTheirShardsToLaterTables) {
  MapMemoryAccount memory(/*charge=*/nullptr);
  MapTables tables(&memory, /*expected_entries=*/0);
  constexpr uint64_t kNum = 20000;
  for (uint64_t i = 0; i < kNum; ++i) {
    ASSERT_OK(Add(&tables, KeyOf(i)));
    if (i % 64 == 0) {
      tables.HelpMove();
    }
  }
  ASSERT_GT(tables.NumTables(), 2u);
  ASSERT_EQ(kNum, tables.NumEntries());
  for (uint64_t i = 0; i < kNum; i += 7) {
    ASSERT_TRUE(Has(tables, KeyOf(i)));
  }
}

TEST_F(MapTablesTest, SparseShardGivesMemoryBack) {
  MapMemoryAccount memory(/*charge=*/nullptr);
  MapTables tables(&memory, /*expected_entries=*/0);
  for (uint64_t i = 0; i < 4000; ++i) {
    ASSERT_OK(Add(&tables, KeyOf(i)));
  }
  ASSERT_EQ(1u, tables.NumTables());
  const size_t before = memory.Used();
  MapTable* table = nullptr;
  MapTables::Lock lock;
  MapShard* const shard = tables.LockShard(KeyOf(0), &table, &lock);
  const MapShardView view = table->ViewOf(shard);
  shard->BeginWrite();
  for (uint32_t n = 0; n < view.num_buckets; ++n) {
    view.base[n].Clear();
  }
  shard->SetCount(0);
  tables.EndWrite(shard);
  tables.ShrinkIfSparse(table, shard);
  ASSERT_LT(shard->NumBuckets(), view.num_buckets);
  ASSERT_LT(memory.Used(), before);
}

// A reader that has the address of the old memory looks at it when a resize has
// cleared it. It must notice that, and look at the copy.
TEST_F(MapTablesTest, ReaderOfClearedMemoryReadsTheCopy) {
  MapMemoryAccount memory(/*charge=*/nullptr);
  MapTables tables(&memory, /*expected_entries=*/0);
  ASSERT_OK(Add(&tables, KeyOf(0)));
  const MapShard* const shard = tables.Current()->Of(KeyOf(0));
  std::atomic<bool> has_address{false};
  std::atomic<bool> is_cleared{false};
  std::atomic<bool> has_read{false};
  int looks = 0;
  bool found = false;
  std::thread reader;
  const auto read = [&] {
    tables.Read(
        KeyOf(0),
        [&](const MapShardView& view) {
          has_address = true;
          while (!is_cleared) {
            std::this_thread::yield();
          }
          ++looks;
          for (uint32_t n = 0; n < view.num_buckets; ++n) {
            view.base[n].ForEach([&](uint32_t i) {
              found |= view.base[n].Id(i) == MapBucket::IdWord(KeyOf(0));
            });
          }
        },
        [&] { found = false; });
    has_read = true;
  };
  EnableCallBack("MapTables::ResizeShard:Begin", [&](void* resized) {
    if (resized == shard && !has_address) {
      reader = std::thread(read);
      while (!has_address) {
        std::this_thread::yield();
      }
    }
  });
  EnableCallBack("MapTables::ResizeShard:Cleared", [&](void*) {
    is_cleared = has_address.load();
    while (has_address && !has_read) {
      std::this_thread::yield();
    }
  });
  // Fill the shard until it is resized.
  for (uint64_t i = 1; !has_read; ++i) {
    ASSERT_LT(i, 1000000u);
    if (tables.Current()->Of(KeyOf(i)) == shard) {
      ASSERT_OK(Add(&tables, KeyOf(i)));
    }
  }
  reader.join();
  DisableCallBacks();
  EXPECT_TRUE(found);
  EXPECT_EQ(looks, 2);
}

TEST_F(MapTablesTest, RefusedMemoryLeavesTheTablesAsTheyAre) {
  TestMapCharge charge;
  charge.limit = 0;
  MapMemoryAccount memory(&charge);
  MapTables tables(&memory, /*expected_entries=*/0);
  ASSERT_TRUE(Add(&tables, KeyOf(1)).IsMemoryLimit());
  ASSERT_EQ(0u, tables.NumTables());
  ASSERT_EQ(0u, memory.Used());

  charge.limit = 1 << 20;
  Status s;
  uint64_t num = 0;
  while ((s = Add(&tables, KeyOf(num))).ok()) {
    ++num;
  }
  ASSERT_TRUE(s.IsMemoryLimit());
  ASSERT_EQ(num, tables.NumEntries());
  for (uint64_t i = 0; i < num; i += 7) {
    ASSERT_TRUE(Has(tables, KeyOf(i)));
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
