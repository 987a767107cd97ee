//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "rocksdb/strata_abi.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/listener.h"
#include "rocksdb/metadata.h"
#include "rocksdb/options.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "rocksdb/thread_status.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/path_migration.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Says what to do if one of these tests fails.
constexpr char kAdvice[] =
    "The C++ interface has changed. If a release has had this "
    "STRATA_ABI_VERSION (rocksdb/strata_abi.h), raise it by one, so that "
    "programs that were compiled before are refused. In any case write the new "
    "numbers here.";

// Returns the position of a virtual function in the table of its class, counted
// from 0, in the ABI that GCC and Clang have in common (Itanium C++ ABI).
template <class Member>
size_t SlotOf(Member function) {
  uintptr_t words[2];
  static_assert(sizeof(function) == sizeof(words));
  memcpy(words, &function, sizeof(words));
  return (words[0] - 1) / sizeof(uintptr_t);
}

}  // namespace

// Strata's virtual functions come after all of RocksDB's, which have the
// positions that they have in RocksDB 11.8.1.
TEST(StrataAbiTest, VirtualFunctionsKeepTheirPositions) {
  EXPECT_EQ(SlotOf(&DB::TryCatchUpWithPrimary), 174);
  using Collect =
      Status (DB::*)(const CollectBlobGarbageOptions&, ColumnFamilyHandle*);
  EXPECT_EQ(SlotOf(static_cast<Collect>(&DB::CollectBlobGarbage)), 175)
      << kAdvice;

  EXPECT_EQ(SlotOf(&EventListener::OnDBShutdownBegin), 51);
  EXPECT_EQ(SlotOf(&EventListener::OnBlobGarbageCollectionBegin), 52)
      << kAdvice;
  EXPECT_EQ(SlotOf(&EventListener::OnBlobGarbageCollectionCompleted), 53)
      << kAdvice;
}

TEST(StrataAbiTest, EnumeratorsKeepTheirNumbers) {
  EXPECT_EQ(TICKER_ENUM_MAX, 308) << kAdvice;
  EXPECT_EQ(HISTOGRAM_ENUM_MAX, 81) << kAdvice;
  EXPECT_EQ(kNumCacheEntryRoles, 17) << kAdvice;
  EXPECT_EQ(static_cast<int>(CompactionReason::kNumOfReasons), 22) << kAdvice;
  EXPECT_EQ(static_cast<int>(ThreadStatus::NUM_OP_TYPES), 14) << kAdvice;
  EXPECT_EQ(static_cast<int>(kWalBufferFile), 13) << kAdvice;
}

// The sizes are those of one platform, since a change shows on all platforms.
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBCXX__) && \
    !defined(_GLIBCXX_DEBUG) && !defined(NPERF_CONTEXT) &&               \
    !defined(ROCKSDB_ASSERT_STATUS_CHECKED)
TEST(StrataAbiTest, StructsKeepTheirSizes) {
  static_assert(STRATA_ABI_VERSION == 1, "The sizes are those of version 1");
  EXPECT_EQ(sizeof(DBOptions), 776) << kAdvice;
  EXPECT_EQ(sizeof(AdvancedColumnFamilyOptions), 824) << kAdvice;
  EXPECT_EQ(sizeof(ColumnFamilyOptions), 1136) << kAdvice;
  EXPECT_EQ(sizeof(Options), 1912) << kAdvice;
  EXPECT_EQ(sizeof(ReadOptions), 200) << kAdvice;
  EXPECT_EQ(sizeof(WriteOptions), 32) << kAdvice;
  EXPECT_EQ(sizeof(FlushOptions), 4) << kAdvice;
  EXPECT_EQ(sizeof(CompactRangeOptions), 56) << kAdvice;
  EXPECT_EQ(sizeof(CollectBlobGarbageOptions), 24) << kAdvice;
  EXPECT_EQ(sizeof(MigratePathsOptions), 120) << kAdvice;
  EXPECT_EQ(sizeof(MigratePathsProgress), 64) << kAdvice;
  EXPECT_EQ(sizeof(BlockBasedTableOptions), 312) << kAdvice;
  EXPECT_EQ(sizeof(PerfContext), 1008) << kAdvice;
  EXPECT_EQ(sizeof(ColumnFamilyMetaData), 136) << kAdvice;
  EXPECT_EQ(sizeof(SstFileMetaData), 432) << kAdvice;
  EXPECT_EQ(sizeof(BlobMetaData), 176) << kAdvice;
  EXPECT_EQ(sizeof(DeltaMetaData), 264) << kAdvice;
  EXPECT_EQ(sizeof(LiveFileStorageInfo), 200) << kAdvice;
  EXPECT_EQ(sizeof(FlushJobInfo), 936) << kAdvice;
  EXPECT_EQ(sizeof(CompactionJobInfo), 616) << kAdvice;
  EXPECT_EQ(sizeof(BlobGarbageCollectionInfo), 152) << kAdvice;
  EXPECT_EQ(sizeof(CreateCheckpointOptions), 32) << kAdvice;
  EXPECT_EQ(sizeof(RestoreOptions), 40) << kAdvice;
}
#endif

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
