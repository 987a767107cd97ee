//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of the job alone: it reads the files of a DB, but its outputs are never
// added to the DB.

#include "db/blob_gc/blob_range_sort_job.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_gc_storage.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/comparator.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class BlobRangeSortJobTest : public AddressMapDBTestBase {
 protected:
  static constexpr int kValueSize = 1000;

  BlobRangeSortJobTest()
      : AddressMapDBTestBase("blob_range_sort_job_test"), rnd_(301) {}

  struct Result {
    Status status;
    std::vector<MapAddress> sources;
    std::vector<MappedBlobFile> outputs;
    std::vector<uint32_t> key_sizes;
    std::vector<BlobGcPicker::KeyRange> key_ranges;
    BlobCopyJob::Stats stats;
    bool reached_limit = false;
    bool has_unreadable_keys = false;
    uint64_t unreadable_file = 0;
    size_t num_additions = 0;
  };

  Options SortOptions() const {
    Options options = MapOptions(/*min_blob_size=*/100);
    options.blob_file_size = 64 << 20;
    return options;
  }

  // Writes the keys for which the function returns true to a blob file of their
  // own.
  void FlushKeys(int begin, int end,
                 const std::function<bool(int)>& is_wanted) {
    for (int i = begin; i < end; ++i) {
      if (is_wanted(i)) {
        ASSERT_OK(Put(Key(i), rnd_.RandomString(kValueSize)));
      }
    }
    ASSERT_OK(Flush());
    WaitForJobs();
  }
  static std::function<bool(int)> Each(int step, int rest) {
    return [step, rest](int i) { return i % step == rest; };
  }

  BlobRangeSortJob::Context NewContext() {
    BlobRangeSortJob::Context context;
    context.cfd = Family();
    context.versions = dbfull()->GetVersionSet();
    context.db_options = &dbfull()->immutable_db_options();
    context.dbname = dbname_;
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      context.mutable_cf_options = Family()->GetLatestMutableCFOptions();
    }
    context.check = [] { return Status::OK(); };
    return context;
  }
  // Runs the job, and deletes what it has written.
  Result Run(BlobRangeSortJob::Context context) {
    Result result;
    std::unique_ptr<BlobGcStorage> storage;
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      storage =
          std::make_unique<BlobGcStorage>(Blobs(), std::vector<uint64_t>());
      context.version = Family()->current();
      context.version->Ref();
    }
    context.storage = storage.get();
    const std::set<uint64_t> before = FilesOnDisk(kBlobFile);
    {
      BlobRangeSortJob job(context);
      result.status = job.Run();
      result.sources = job.TakeSources();
      result.outputs = job.TakeOutputs();
      result.key_sizes = job.TakeKeySizes();
      result.key_ranges = job.TakeKeyRanges();
      result.stats = job.stats();
      result.reached_limit = job.reached_limit();
      result.has_unreadable_keys = job.has_unreadable_keys();
      result.unreadable_file = job.unreadable_file();
      result.num_additions = job.additions().size();
    }
    for (const uint64_t number : FilesOnDisk(kBlobFile)) {
      if (before.count(number) == 0) {
        EXPECT_OK(result.status);
        EXPECT_OK(env_->DeleteFile(BlobFileName(dbname_, number)));
      }
    }
    EXPECT_EQ(result.outputs.size(), result.num_additions);
    if (result.status.ok()) {
      EXPECT_EQ(result.sources.size(), result.stats.values_copied);
    }
    InstrumentedMutexLock lock(dbfull()->mutex());
    storage.reset();
    context.version->Unref();
    return result;
  }
  Result Run() { return Run(NewContext()); }

  MapAddress AddressOf(int i) {
    const AddressMap::Lookup found =
        Blobs()->map()->FindDirect(Blobs()->HashOf(Key(i)), /*pin=*/false);
    EXPECT_TRUE(found.found) << i;
    return found.entry.address;
  }
  // Checks that the job has copied these keys, in order.
  void ExpectCopied(const Result& result, const std::vector<int>& keys) {
    ASSERT_OK(result.status);
    ASSERT_EQ(result.sources.size(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_TRUE(result.sources[i] == AddressOf(keys[i])) << keys[i];
    }
    uint64_t records = 0;
    uint64_t bytes = 0;
    for (const MappedBlobFile& output : result.outputs) {
      records += output.footer.blob_count;
      bytes += output.size;
    }
    ASSERT_EQ(records, keys.size());
    ASSERT_EQ(bytes, result.stats.bytes_written);
  }
  static std::vector<int> Range(int begin, int end, int step = 1) {
    std::vector<int> keys;
    for (int i = begin; i < end; i += step) {
      keys.push_back(i);
    }
    return keys;
  }

  Random rnd_;
};

TEST_F(BlobRangeSortJobTest, CopiesTheRangeInKeyOrder) {
  Options options = SortOptions();
  options.blob_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  for (int rest = 0; rest < 5; ++rest) {
    FlushKeys(0, 1000, Each(5, rest));
  }
  ExpectCopied(Run(), Range(0, 1000));
  BlobRangeSortJob::Context context = NewContext();
  context.begin = Key(100);
  context.has_begin = true;
  ExpectCopied(Run(context), Range(100, 1000));
  context.has_end = true;
  context.end = Key(700);
  const Result result = Run(context);
  ExpectCopied(result, Range(100, 700));
  EXPECT_EQ(result.stats.files_read, 5U);
  EXPECT_EQ(result.key_sizes.size(), 600U);
  ASSERT_EQ(result.key_ranges.size(), result.outputs.size());
  EXPECT_EQ(result.key_ranges.front().smallest, Key(100));
  EXPECT_EQ(result.key_ranges.back().largest, Key(699));
  EXPECT_GE(result.stats.bytes_read, 600U * kValueSize);
  EXPECT_LE(result.stats.bytes_read, 600U * (kValueSize + 100));
  context.has_begin = false;
  ExpectCopied(Run(context), Range(0, 700));
  // A range without keys.
  context.begin = Key(5000);
  context.has_begin = true;
  context.end = Key(6000);
  ExpectCopied(Run(context), {});
}

// The empty key is the last one in reverse order. A range that begins with it
// does not begin with the first key.
TEST_F(BlobRangeSortJobTest, RangeOfTheEmptyKey) {
  Options options = SortOptions();
  options.comparator = ReverseBytewiseComparator();
  DestroyAndReopen(options);
  ASSERT_OK(Put("", rnd_.RandomString(kValueSize)));
  for (int rest = 0; rest < 5; ++rest) {
    FlushKeys(0, 1000, Each(5, rest));
  }
  BlobRangeSortJob::Context context = NewContext();
  const Result all = Run(context);
  ASSERT_OK(all.status);
  EXPECT_GE(all.sources.size(), 1000U);
  context.has_begin = true;
  const Result last = Run(context);
  ASSERT_OK(last.status);
  EXPECT_LE(last.sources.size(), 1U);
}

TEST_F(BlobRangeSortJobTest, ChunksAndLimits) {
  DestroyAndReopen(SortOptions());
  for (int rest = 0; rest < 5; ++rest) {
    FlushKeys(0, 1000, Each(5, rest));
  }
  BlobRangeSortJob::Context context = NewContext();
  for (const size_t chunk : {1, 10000, 300000}) {
    SCOPED_TRACE(chunk);
    context.max_chunk = chunk;
    context.max_copied = 0;
    const Result all = Run(context);
    EXPECT_FALSE(all.reached_limit);
    // A stretch of one value is in one place.
    ExpectCopied(all, chunk == 1 ? std::vector<int>() : Range(0, 1000));
    context.max_copied = 250000;
    const Result part = Run(context);
    EXPECT_EQ(part.reached_limit, chunk != 1);
    if (part.reached_limit) {
      const int n = static_cast<int>(part.sources.size());
      EXPECT_GE(n * kValueSize, 240000);
      EXPECT_LE(static_cast<size_t>(n) * kValueSize, 250000 + chunk);
      ExpectCopied(part, Range(0, n));
    }
  }
}

TEST_F(BlobRangeSortJobTest, ValuesInFewPartsStay) {
  DestroyAndReopen(SortOptions());
  constexpr int kFew = BlobRangeSortJob::kMaxParts;
  for (int rest = 0; rest < kFew; ++rest) {
    FlushKeys(0, 600, Each(kFew, rest));
  }
  ExpectCopied(Run(), {});
  // Another part in the first stretch, of which none has half of the values.
  FlushKeys(0, 100, Each(10, 0));
  const Result result = Run();
  ASSERT_OK(result.status);
  EXPECT_GE(result.sources.size(), 240U);
  EXPECT_LE(result.sources.size(), 270U);
}

TEST_F(BlobRangeSortJobTest, HalfOfAStretchStays) {
  DestroyAndReopen(SortOptions());
  FlushKeys(0, 1000, Each(1, 0));
  ExpectCopied(Run(), {});
  for (int rest = 0; rest < 5; ++rest) {
    FlushKeys(0, 1000, Each(20, rest));
  }
  std::vector<int> keys;
  for (int i = 0; i < 1000; ++i) {
    if (i % 20 < 5) {
      keys.push_back(i);
    }
  }
  ExpectCopied(Run(), keys);
  // With more than half of the values overwritten, all are copied.
  for (int rest = 5; rest < 11; ++rest) {
    FlushKeys(0, 1000, Each(20, rest));
  }
  ExpectCopied(Run(), Range(0, 1000));
}

TEST_F(BlobRangeSortJobTest, ValuesFarFromEachOtherAreCopied) {
  DestroyAndReopen(SortOptions());
  FlushKeys(0, 1000, Each(1, 0));
  for (int i = 0; i < 1000; ++i) {
    if (i % 10 != 0) {
      ASSERT_OK(Delete(Key(i)));
    }
  }
  ASSERT_OK(Flush());
  WaitForJobs();
  ExpectCopied(Run(), Range(0, 1000, 10));
}

TEST_F(BlobRangeSortJobTest, ExcludedFilesStay) {
  DestroyAndReopen(SortOptions());
  for (int rest = 0; rest < 5; ++rest) {
    FlushKeys(0, 500, Each(5, rest));
  }
  BlobRangeSortJob::Context context = NewContext();
  context.excluded.insert(Blobs()->file_table().Number(AddressOf(2).slot));
  std::vector<int> keys;
  for (int i = 0; i < 500; ++i) {
    if (i % 5 != 2) {
      keys.push_back(i);
    }
  }
  ExpectCopied(Run(context), keys);
}

TEST_F(BlobRangeSortJobTest, FilesAreUnpinnedIfNothingWasCopied) {
  DestroyAndReopen(SortOptions());
  FlushKeys(0, 300, Each(1, 0));
  for (int rest = 0; rest < 5; ++rest) {
    FlushKeys(300, 600, Each(5, rest));
  }
  const auto job_pins = [this](int key) {
    BlobFileSlotTable::Info info;
    EXPECT_TRUE(Blobs()->file_table().GetInfo(AddressOf(key).slot, &info));
    return info.job_pins;
  };
  BlobRangeSortJob::Context context = NewContext();
  context.max_chunk = 30000;
  std::vector<uint64_t> first;
  std::vector<uint64_t> second;
  EnableCallBack("BlobRangeSortJob::CopyChunk:Read", [&](void*) {
    first.push_back(job_pins(0));
    second.push_back(job_pins(599));
  });
  const Result result = Run(context);
  DisableCallBacks();
  ASSERT_OK(result.status);
  EXPECT_GE(result.sources.size(), 270U);
  ASSERT_GE(first.size(), 15U);
  EXPECT_EQ(first.front(), 1U);
  EXPECT_EQ(first.back(), 0U);
  EXPECT_EQ(second.front(), 0U);
  EXPECT_EQ(second.back(), 1U);
  EXPECT_EQ(job_pins(599), 0U);
}

TEST_F(BlobRangeSortJobTest, OldVersionsAreCopiedBehindNewOnes) {
  DestroyAndReopen(SortOptions());
  FlushKeys(0, 300, Each(1, 0));
  const Snapshot* const snapshot = db_->GetSnapshot();
  for (int rest = 0; rest < 5; ++rest) {
    FlushKeys(0, 300, Each(5, rest));
  }
  const Result result = Run();
  ASSERT_OK(result.status);
  // The old version of each key is in the same file, and has half of the bytes.
  EXPECT_EQ(result.sources.size(), 300U);
  BlobRangeSortJob::Context context = NewContext();
  context.excluded.clear();
  FlushKeys(0, 300, Each(1, 0));
  const Snapshot* const second = db_->GetSnapshot();
  for (int rest = 0; rest < 5; ++rest) {
    FlushKeys(0, 300, Each(5, rest));
  }
  ASSERT_OK(Run(context).status);
  EXPECT_GE(Run(context).sources.size(), 900U);
  db_->ReleaseSnapshot(snapshot);
  db_->ReleaseSnapshot(second);
}

TEST_F(BlobRangeSortJobTest, CheckStopsTheJob) {
  DestroyAndReopen(SortOptions());
  for (int rest = 0; rest < 5; ++rest) {
    FlushKeys(0, 100, Each(5, rest));
  }
  int num_checks = 0;
  BlobRangeSortJob::Context context = NewContext();
  context.check = [&] {
    ++num_checks;
    return Status::OK();
  };
  ExpectCopied(Run(context), Range(0, 100));
  const int all = num_checks;
  EXPECT_GE(all, 100);
  for (int last = 0; last < all; last += 7) {
    num_checks = 0;
    context.check = [&] {
      return num_checks++ < last ? Status::OK() : Status::ShutdownInProgress();
    };
    const Result result = Run(context);
    ASSERT_TRUE(result.status.IsShutdownInProgress());
    ASSERT_TRUE(result.outputs.empty());
    ASSERT_FALSE(result.has_unreadable_keys);
  }
}

TEST_F(BlobRangeSortJobTest, DamagedValueFailsTheJob) {
  DestroyAndReopen(SortOptions());
  for (int rest = 0; rest < 5; ++rest) {
    FlushKeys(0, 100, Each(5, rest));
  }
  const MapAddress address = AddressOf(42);
  const uint64_t number = Blobs()->file_table().Number(address.slot);
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, BlobFileName(dbname_, number), &contents));
  contents[address.offset + address.size - 10] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, contents, BlobFileName(dbname_, number)));
  Reopen(SortOptions());
  const Result result = Run();
  ASSERT_TRUE(result.status.IsCorruption()) << result.status.ToString();
  EXPECT_NE(result.status.ToString().find("offset " +
                                          std::to_string(AddressOf(42).offset)),
            std::string::npos)
      << result.status.ToString();
  EXPECT_EQ(result.unreadable_file, number);
  EXPECT_FALSE(result.has_unreadable_keys);
  EXPECT_TRUE(result.outputs.empty());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
