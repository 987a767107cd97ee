//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_memory_reservation.h"

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class MapMemoryReservationTest : public testing::Test {
 protected:
  static std::shared_ptr<Cache> NewCache(bool strict) {
    LRUCacheOptions options;
    options.capacity = 4 << 20;
    options.num_shard_bits = 0;
    options.strict_capacity_limit = strict;
    return options.MakeSharedCache();
  }
};

TEST_F(MapMemoryReservationTest, FollowsTheTotal) {
  const std::shared_ptr<Cache> cache = NewCache(/*strict=*/true);
  {
    MapMemoryReservation charge(cache, /*logger=*/nullptr);
    ASSERT_OK(charge.SetCharged(1 << 20));
    ASSERT_EQ(charge.GetCharged(), 1 << 20);
    ASSERT_GE(cache->GetPinnedUsage(), 1 << 20);
    ASSERT_OK(charge.SetCharged(256 << 10));
    ASSERT_EQ(charge.GetCharged(), 256 << 10);
    ASSERT_LT(cache->GetPinnedUsage(), 512 << 10);
  }
  ASSERT_EQ(cache->GetPinnedUsage(), 0);
}

TEST_F(MapMemoryReservationTest, GrowsBeyondAFullCache) {
  const std::shared_ptr<Cache> cache = NewCache(/*strict=*/true);
  MapMemoryReservation charge(cache, /*logger=*/nullptr);
  ASSERT_OK(charge.SetCharged(8 << 20));
  ASSERT_LE(cache->GetUsage(), cache->GetCapacity());
  ASSERT_GT(charge.GetCharged(), 3 << 20);
  ASSERT_OK(charge.SetCharged(1 << 20));
  ASSERT_EQ(charge.GetCharged(), 1 << 20);
}

TEST_F(MapMemoryReservationTest, CreatedOnlyIfTheBlockCacheIsCharged) {
  BlockBasedTableOptions options;
  options.block_cache = NewCache(/*strict=*/false);
  const auto charges = [&options] {
    const std::unique_ptr<TableFactory> factory(
        NewBlockBasedTableFactory(options));
    return MapMemoryReservation::Create(factory.get(), nullptr) != nullptr;
  };
  ASSERT_TRUE(charges());
  options.cache_usage_options.options_overrides[CacheEntryRole::kBlobAddressMap]
      .charged = CacheEntryRoleOptions::Decision::kDisabled;
  ASSERT_FALSE(charges());
  options.cache_usage_options.options_overrides.clear();
  options.block_cache = nullptr;
  options.no_block_cache = true;
  ASSERT_FALSE(charges());

  const std::unique_ptr<TableFactory> plain(NewPlainTableFactory());
  ASSERT_EQ(MapMemoryReservation::Create(plain.get(), nullptr), nullptr);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
