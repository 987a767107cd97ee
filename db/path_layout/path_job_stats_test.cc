//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_job_stats.h"

#include <memory>
#include <thread>
#include <vector>

#include "db/blob/blob_file_addition.h"
#include "db/blob/blob_log_format.h"
#include "db/path_layout/path_read_stats.h"
#include "db/version_edit.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(PathJobScopeTest, ScopesNestAndBelongToAThread) {
  EXPECT_EQ(PathJobScope::Current(), PathJob::kNone);
  {
    const PathJobScope outer(PathJob::kCompaction);
    EXPECT_EQ(PathJobScope::Current(), PathJob::kCompaction);
    {
      const PathJobScope inner(PathJob::kBlobGc);
      EXPECT_EQ(PathJobScope::Current(), PathJob::kBlobGc);
    }
    EXPECT_EQ(PathJobScope::Current(), PathJob::kCompaction);
    PathJob elsewhere = PathJob::kDelta;
    std::thread other([&] { elsewhere = PathJobScope::Current(); });
    other.join();
    EXPECT_EQ(elsewhere, PathJob::kNone);
  }
  EXPECT_EQ(PathJobScope::Current(), PathJob::kNone);
}

TEST(PathJobStatsTest, BytesCountForTheJobOfTheThread) {
  PathJobStats stats;
  stats.AddRead(0, 1);
  stats.AddWritten(0, 2);
  {
    const PathJobScope scope(PathJob::kFlush);
    stats.AddRead(1, 3);
    stats.AddWritten(1, 4);
    stats.AddWritten(3, 5);
  }
  // Reads of the application are those of PathReadStats.
  EXPECT_EQ(stats.Get(PathJob::kNone, 0).read, 0u);
  EXPECT_EQ(stats.Get(PathJob::kNone, 0).written, 2u);
  EXPECT_EQ(stats.Get(PathJob::kFlush, 1).read, 3u);
  EXPECT_EQ(stats.Get(PathJob::kFlush, 1).written, 4u);
  EXPECT_EQ(stats.Get(PathJob::kFlush, 3).written, 5u);
  EXPECT_EQ(stats.Get(PathJob::kFlush, 0).written, 0u);
  EXPECT_EQ(stats.Get(PathJob::kCompaction, 1).written, 0u);
}

TEST(PathJobStatsTest, BlobFilesCountWithHeaderIndexAndFooter) {
  PathJobStats stats;
  const PathJobScope scope(PathJob::kCompaction);
  stats.AddWritten(BlobFileAddition(7, 1, 1000, "", "", /*path_id=*/2,
                                    /*index_bytes=*/50));
  EXPECT_EQ(stats.Get(PathJob::kCompaction, 2).written,
            BlobLogHeader::kSize + 1000 + 50 + BlobLogFooter::kSize);
}

TEST(PathJobStatsTest, ReadsOfJobsAreAmongAllReads) {
  PathReadStats reads;
  const uint32_t slot =
      PathReadStats::Slot(PathReadStats::FileKind::kBlob, /*path_id=*/1);
  reads.Add(slot, 10);
  {
    const PathJobScope scope(PathJob::kBlobGc);
    reads.Add(slot, 20);
    reads.Add(slot, 0);
  }
  EXPECT_EQ(reads.Get(PathReadStats::FileKind::kBlob, 1).bytes, 30u);
  EXPECT_EQ(reads.jobs().Get(PathJob::kBlobGc, 1).read, 20u);
  EXPECT_EQ(reads.jobs().Get(PathJob::kBlobGc, 0).read, 0u);
}

TEST(PathJobStatsTest, CountsOfSeveralThreadsAreExact) {
  PathJobStats stats;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const PathJobScope scope(PathJob::kDelta);
      for (int j = 0; j < 1000; ++j) {
        stats.AddRead(1, 3);
        stats.AddWritten(2, 5);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(stats.Get(PathJob::kDelta, 1).read, 12000u);
  EXPECT_EQ(stats.Get(PathJob::kDelta, 2).written, 20000u);
}

// A column family without a table cache, in tests, is not counted.
TEST(PathJobStatsTest, NoTableCacheIsNoError) {
  CountPathOutputs(/*table_cache=*/nullptr, FileMetaData(), nullptr);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
