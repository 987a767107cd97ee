//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// DB::GetApproximateSizes() counts delta files, and the property
// "rocksdb.estimate-num-keys" counts their operands.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "db/delta/db_delta_model_test_util.h"
#include "db/delta/delta_version.h"
#include "db/strata/version_storage_strata.h"
#include "port/stack_trace.h"
#include "test_util/strata/delta_db_test_util.h"

namespace ROCKSDB_NAMESPACE {

class DBDeltaSizeTest : public delta_test::ModelDBTest {
 protected:
  DBDeltaSizeTest() : ModelDBTest("db_delta_size_test") {}

  uint64_t SizeOf(
      const std::string& start, const std::string& limit,
      const SizeApproximationOptions& options = SizeApproximationOptions()) {
    const Range range(start, limit);
    uint64_t size = 0;
    EXPECT_OK(db_->GetApproximateSizes(options, db_->DefaultColumnFamily(),
                                       &range, 1, &size));
    return size;
  }

  uint64_t SstBytes() {
    uint64_t bytes = 0;
    EXPECT_TRUE(db_->GetIntProperty(DB::Properties::kLiveSstFilesSize, &bytes));
    return bytes;
  }

  // Checks the sizes of ranges of the first `num_keys` keys. All others have no
  // entries.
  void CheckSizes(uint32_t num_keys) {
    const std::string begin = KeyOf(0);
    const std::string end = KeyOf(num_keys);
    const uint64_t bytes = Stat("bytes") + SstBytes();
    const uint64_t all = SizeOf(begin, end);
    EXPECT_GT(all, 0);
    EXPECT_NEAR(all, bytes, bytes / 10);
    EXPECT_EQ(SizeOf(end, "l"), 0);
    for (uint32_t i = 0; i < num_keys; i += 1 + num_keys / 20) {
      SCOPED_TRACE(i);
      EXPECT_EQ(SizeOf(KeyOf(i), KeyOf(i)), 0);
      EXPECT_NEAR(SizeOf(begin, KeyOf(i)) + SizeOf(KeyOf(i), end), all,
                  all / 100);
    }
    SizeApproximationOptions rough;
    rough.files_size_error_margin = 0.1;
    EXPECT_NEAR(SizeOf(begin, end, rough), bytes, bytes / 10);
  }

  uint64_t NumKeys() {
    uint64_t num_keys = 0;
    EXPECT_TRUE(
        db_->GetIntProperty(DB::Properties::kEstimateNumKeys, &num_keys));
    return num_keys;
  }

  // Returns the lower bounds of the buckets.
  std::vector<std::string> Bounds() {
    std::vector<std::string> bounds;
    std::shared_ptr<const DeltaVersion> deltas = Deltas().State();
    const DeltaBucketTable& table = deltas->Buckets();
    for (auto p = table.Begin(); p != table.End(); p = table.Next(p)) {
      bounds.push_back(table.LowerBound(p).ToString());
    }
    // Dropping the last reference needs the mutex.
    const InstrumentedMutexLock lock(dbfull()->mutex());
    deltas.reset();
    return bounds;
  }
};

// There is no SST file.
TEST_F(DBDeltaSizeTest, FlushedOperands) {
  constexpr uint32_t kKeys = 2500;
  DestroyAndReopen(DeltaOptions());
  for (int i = 0; i < 4; ++i) {
    for (uint32_t key = 0; key < kKeys; ++key) {
      DoMerge(KeyOf(key), std::string(30, static_cast<char>('a' + i)));
    }
  }
  SizeApproximationOptions memtables;
  memtables.include_memtables = true;
  memtables.include_files = false;
  EXPECT_GT(SizeOf(KeyOf(0), KeyOf(kKeys), memtables), 0);
  EXPECT_EQ(SizeOf(KeyOf(0), KeyOf(kKeys)), 0);
  ASSERT_OK(Flush());
  ASSERT_EQ(SstBytes(), 0);
  CheckSizes(kKeys);
  const uint64_t all = SizeOf(KeyOf(0), KeyOf(kKeys));
  EXPECT_NEAR(SizeOf(KeyOf(0), KeyOf(kKeys / 2)), all / 2, all / 10);
  EXPECT_NEAR(SizeOf(KeyOf(kKeys / 4), KeyOf(kKeys / 2)), all / 4, all / 10);
  // Memtables and blob files count apart from files.
  EXPECT_EQ(SizeOf(KeyOf(0), KeyOf(kKeys), memtables), 0);
  SizeApproximationOptions blobs;
  blobs.include_blob_files = true;
  EXPECT_EQ(SizeOf(KeyOf(0), KeyOf(kKeys), blobs), all);
  blobs.include_files = false;
  EXPECT_EQ(SizeOf(KeyOf(0), KeyOf(kKeys), blobs), 0);
  // The files are closed.
  Reopen(DeltaOptions());
  CheckSizes(kKeys);
}

TEST_F(DBDeltaSizeTest, Buckets) {
  constexpr uint32_t kKeys = 400;
  Options options = DeltaOptions();
  options.delta_bucket_size = 40 << 10;  // ten blocks
  DestroyAndReopen(options);
  FlushOperands(0, kKeys, /*size=*/1000);
  ASSERT_OK(CompactAll());
  CheckSizes(kKeys);
  const std::vector<std::string> bounds = Bounds();
  ASSERT_GE(bounds.size(), 4u);
  const uint64_t all = SizeOf(KeyOf(0), KeyOf(kKeys));
  for (size_t i = 1; i + 1 < bounds.size(); ++i) {
    const uint64_t size = SizeOf(bounds[i], bounds[i + 1]);
    EXPECT_GT(size, 0);
    EXPECT_LT(size, all / 2);
  }
  // New operands of one bucket.
  for (uint32_t i = 0; i < kKeys; ++i) {
    if (KeyOf(i) >= bounds[1] && KeyOf(i) < bounds[2]) {
      DoMerge(KeyOf(i), std::string(500, 'n'));
    }
  }
  const uint64_t before = SizeOf(bounds[1], bounds[2]);
  const uint64_t beside = SizeOf(bounds[2], KeyOf(kKeys));
  ASSERT_OK(Flush());
  EXPECT_GT(SizeOf(bounds[1], bounds[2]), before);
  EXPECT_EQ(SizeOf(bounds[2], KeyOf(kKeys)), beside);
  CheckSizes(kKeys);
}

// Anchors, operands that a snapshot needs, folds and a drain.
TEST_F(DBDeltaSizeTest, AfterJobsAndWhileDraining) {
  DestroyAndReopen(DeltaOptions());
  for (uint32_t i = 0; i < kNumKeys; i += 2) {
    DoPut(KeyOf(i), std::string(100, 'v'));
  }
  ASSERT_OK(Flush());
  FlushOperands(0, kNumKeys, /*size=*/100);
  CheckSizes(kNumKeys);
  DoSnapshot();
  DoPut(KeyOf(3), std::string(100, 'p'));
  DoDelete(KeyOf(4));
  DoDeleteRange(KeyOf(10), KeyOf(20));
  FlushOperands(20, 40, /*size=*/50);
  CheckSizes(kNumKeys);
  ASSERT_OK(CompactAll());
  EXPECT_GT(Stat("buckets"), 1);
  CheckSizes(kNumKeys);
  for (int i = 0; i < 4; ++i) {
    FlushOperands(30, 60, /*size=*/50);
  }
  CheckSizes(kNumKeys);
  ReleaseSnapshots();
  Options plain = DeltaOptions();
  plain.enable_delta_separation = false;
  Reopen(plain);
  ASSERT_EQ(Stat("draining"), 1);
  CheckSizes(kNumKeys);
  // The folds write values to SST files.
  ASSERT_OK(CompactAll());
  ASSERT_EQ(Stat("files"), 0);
  CheckSizes(kNumKeys);
  Check();
}

// Until a compaction, operands in delta files count as RocksDB counts those in
// SST files: each of them for a key, also above a value, and one less for each
// deletion.
TEST_F(DBDeltaSizeTest, NumberOfKeysIsEstimatedAsInSstFiles) {
  std::vector<uint64_t> plain;
  for (const bool separated : {false, true}) {
    SCOPED_TRACE(separated);
    Options options = DeltaOptions();
    options.enable_delta_separation = separated;
    DestroyAndReopen(options);
    std::vector<uint64_t> counts;
    const auto note = [&] { counts.push_back(NumKeys()); };
    const auto delete_keys = [&](uint32_t first, uint32_t last) {
      for (uint32_t i = first; i < last; ++i) {
        ASSERT_OK(Delete(KeyOf(i)));
      }
      note();
      ASSERT_OK(Flush());
      note();
    };
    FlushOperands(0, 30, /*size=*/10);
    note();
    EXPECT_EQ(counts.back(), 30);
    // With delta files, the SST files have only deletions then.
    delete_keys(0, 10);
    EXPECT_EQ(counts.back(), 20);
    // There are more deletions than operands.
    delete_keys(10, 45);
    EXPECT_EQ(counts.back(), 0);
    for (uint32_t i = 50; i < 100; ++i) {
      ASSERT_OK(Put(KeyOf(i), "v"));
    }
    ASSERT_OK(Flush());
    note();
    FlushOperands(40, 80, /*size=*/10);
    note();
    FlushOperands(60, 90, /*size=*/10);
    note();
    EXPECT_EQ(counts.back(), 30 - 45 + 50 + 40 + 30);
    ASSERT_OK(Merge(KeyOf(99), "m"));
    note();
    EXPECT_EQ(Stat("operands"), separated ? 100 : 0);
    if (!separated) {
      plain = counts;
      continue;
    }
    EXPECT_EQ(counts, plain);
    ASSERT_OK(Flush());
    options.enable_delta_separation = false;
    Reopen(options);
    ASSERT_EQ(Stat("draining"), 1);
    EXPECT_EQ(NumKeys(), plain.back());
    // The first compaction ends the drain. The second one combines values that
    // folds have written with the entries below them.
    ASSERT_OK(CompactAll());
    ASSERT_EQ(Stat("files"), 0);
    ASSERT_OK(CompactAll());
    EXPECT_EQ(NumKeys(), 60);
  }
}

// Without SST files, anchors and the operands of buckets.
TEST_F(DBDeltaSizeTest, NumberOfKeysIsThatOfOperands) {
  DestroyAndReopen(DeltaOptions());
  FlushOperands(0, 100, /*size=*/100);
  FlushOperands(50, 100, /*size=*/100);
  ASSERT_EQ(SstBytes(), 0);
  EXPECT_EQ(NumKeys(), 150);
  ASSERT_OK(CompactAll());
  ASSERT_GT(Stat("buckets"), 1);
  ASSERT_EQ(SstBytes(), 0);
  EXPECT_EQ(NumKeys(), Stat("operands"));
  EXPECT_GE(NumKeys(), 100);
  const uint64_t before = NumKeys();
  for (uint32_t i = 0; i < 10; ++i) {
    DoPut(KeyOf(i), "v");
  }
  ASSERT_OK(Flush());
  ASSERT_GT(Stat("anchors"), 0);
  EXPECT_EQ(NumKeys(), before + 10);
  // The files are closed.
  Reopen(DeltaOptions());
  EXPECT_EQ(NumKeys(), before + 10);
}

TEST_F(DBDeltaSizeTest, EstimateOfKeysStaysInItsRange) {
  const auto estimate = [](uint64_t num_sampled, uint64_t num_deletions,
                           uint64_t num_others, uint64_t num_files,
                           uint64_t num_operands) {
    return VersionStorageStrata::EstimateKeys(
        {num_sampled, num_deletions, num_others}, num_files, num_operands);
  };
  EXPECT_EQ(estimate(0, 0, 0, 0, 7), 7);
  EXPECT_EQ(estimate(0, 0, 0, 3, 7), 7);
  EXPECT_EQ(estimate(2, 10, 30, 2, 5), 25);
  EXPECT_EQ(estimate(2, 10, 30, 4, 5), 45);
  EXPECT_EQ(estimate(2, 10, 30, 1, 5), 25);
  EXPECT_EQ(estimate(1, 30, 10, 2, 50), 10);
  EXPECT_EQ(estimate(1, 30, 10, 2, 40), 0);
  EXPECT_EQ(estimate(1, 30, 10, 2, 39), 0);
  // UINT64_MAX has no double.
  EXPECT_EQ(estimate(1, 0, UINT64_MAX - 1, 1, 1), UINT64_MAX);
  EXPECT_EQ(estimate(1, 0, UINT64_MAX, 1, 1), UINT64_MAX);
  EXPECT_EQ(estimate(1, 0, UINT64_MAX, 2, 1), UINT64_MAX);
  EXPECT_EQ(estimate(1, 0, UINT64_MAX / 2, 3, 0), UINT64_MAX);
  EXPECT_EQ(estimate(1, UINT64_MAX, 0, 1, UINT64_MAX), 0);
  EXPECT_EQ(estimate(1, UINT64_MAX / 2, 0, 3, 5), 0);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
