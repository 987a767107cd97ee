//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Costs of address maps: the memory of small maps, and reads of files that have
// range deletions.

#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/perf_level.h"
#include "test_util/strata/address_map_db_test_util.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapCostTest : public AddressMapDBTestBase {
 public:
  DBAddressMapCostTest() : AddressMapDBTestBase("db_address_map_cost_test") {}

  // with_map: the default column family has a map, too.
  void Open(int families, bool with_map) {
    Options options = MapOptions(/*min_blob_size=*/50);
    options.enable_blob_address_map = with_map;
    DestroyAndReopen(options);
    options.enable_blob_address_map = true;
    std::vector<std::string> names;
    for (int i = 0; i < families; ++i) {
      names.push_back("family" + std::to_string(i));
    }
    CreateColumnFamilies(names, options);
    // Waits until the files of the creation are removed.
    WaitForJobs();
  }

  void TearDown() override {
    for (ColumnFamilyHandle* handle : handles_) {
      ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    AddressMapDBTestBase::TearDown();
  }

  // Flush(0) would flush the default column family.
  Status FlushFamily(int family) {
    return db_->Flush(FlushOptions(), handles_[family]);
  }

  void PutAndFlush(int family, const std::string& key, int i) {
    ASSERT_OK(Put(family, key, std::to_string(i) + std::string(100, 'x')));
    ASSERT_OK(FlushFamily(family));
  }
};

// Files of direct values and range deletions have no filter. Reads use their
// range deletions, and read no block.
TEST_F(DBAddressMapCostTest, ReadsPastRangeDeletionsNeedNoBlocks) {
  constexpr int kFiles = 6;
  Open(/*families=*/1, /*with_map=*/true);
  const auto key = [](int file, int i) {
    return "k" + std::to_string(i * kFiles + file);
  };
  for (int file = 0; file < kFiles; ++file) {
    for (int i = 0; i < 50; ++i) {
      ASSERT_OK(Put(0, key(file, i), std::string(100, 'v')));
    }
    ASSERT_OK(db_->DeleteRange(WriteOptions(), handles_[0],
                               "z" + std::to_string(file),
                               "z" + std::to_string(file) + "z"));
    ASSERT_OK(FlushFamily(0));
  }
  const std::string late = "k" + std::to_string(kFiles);
  // One key is covered by a range deletion in a file of its own.
  ASSERT_OK(db_->DeleteRange(WriteOptions(), handles_[0], late,
                             late + std::string(1, char{0})));
  PutAndFlush(0, "y", 0);
  WaitForJobs();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  std::vector<std::string> keys;
  std::vector<Slice> slices;
  for (int file = 0; file < kFiles; ++file) {
    for (int i = 0; i < 50; i += 7) {
      keys.push_back(key(file, i));
    }
  }
  keys.push_back("absent");
  for (const std::string& k : keys) {
    slices.emplace_back(k);
  }
  SetPerfLevel(PerfLevel::kEnableCount);
  for (const bool batch : {false, true}) {
    std::vector<PinnableSlice> values(keys.size());
    std::vector<Status> statuses(keys.size());
    get_perf_context()->Reset();
    if (batch) {
      db_->MultiGet(ReadOptions(), handles_[0], keys.size(), slices.data(),
                    values.data(), statuses.data());
    } else {
      for (size_t i = 0; i < keys.size(); ++i) {
        statuses[i] =
            db_->Get(ReadOptions(), handles_[0], slices[i], &values[i]);
      }
    }
    EXPECT_EQ(get_perf_context()->block_read_count +
                  get_perf_context()->block_cache_hit_count,
              0);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == late || keys[i] == "absent") {
        EXPECT_TRUE(statuses[i].IsNotFound()) << keys[i];
      } else {
        ASSERT_OK(statuses[i]);
        EXPECT_EQ(values[i], std::string(100, 'v'));
      }
    }
  }
  SetPerfLevel(PerfLevel::kDisable);
  EXPECT_EQ(Get(0, late), "NOT_FOUND");
}

// The memory of a map is proportional to its entries: at most 60 bytes for each
// of them, and a fixed 24 KiB.
TEST_F(DBAddressMapCostTest, SmallMapsTakeTensOfKilobytes) {
  constexpr int kFamilies = 3;
  Open(kFamilies, /*with_map=*/true);
  for (int family = 0; family < kFamilies; ++family) {
    const int keys = family == 0 ? 0 : family == 1 ? 1000 : 3000;
    for (int i = 0; i < keys; ++i) {
      ASSERT_OK(Put(family, Key(i), std::string(60, 'v')));
    }
    ASSERT_OK(FlushFamily(family));
    uint64_t memory = 0;
    ASSERT_TRUE(db_->GetIntProperty(
        handles_[family], DB::Properties::kBlobAddressMapMemory, &memory));
    EXPECT_LE(memory, uint64_t{60} * keys + (24 << 10)) << keys;
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
