//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_read_group.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/mapped_record_name.h"
#include "db/blob/blob_index.h"
#include "db/path_layout/path_job_stats.h"
#include "env/composite_env_wrapper.h"
#include "options/cf_options.h"
#include "port/stack_trace.h"
#include "rocksdb/system_clock.h"
#include "test_util/mock_time_env.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/deferred_read_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class BlobReadGroupTest : public testing::Test {
 protected:
  static BlobReadGroup::Item At(uint64_t file_number, uint64_t offset,
                                uint64_t size) {
    BlobReadGroup::Item item;
    item.file_number = file_number;
    item.offset = offset;
    item.size = size;
    return item;
  }

  // Divides the items, returns the groups as lists of item numbers, and cancels
  // the groups.
  std::vector<std::vector<size_t>> Divide(
      std::vector<BlobReadGroup::Item>&& items) {
    const size_t n = items.size();
    std::vector<size_t> group_of;
    std::vector<size_t> index_of;
    const auto groups =
        BlobReadGroup::Divide(std::move(items), read_options_, ioptions_,
                              /*source=*/nullptr, &group_of, &index_of);
    std::vector<std::vector<size_t>> result(groups.size());
    for (size_t g = 0; g < groups.size(); ++g) {
      result[g].resize(groups[g]->items().size());
    }
    for (size_t i = 0; i < n; ++i) {
      result[group_of[i]][index_of[i]] = i;
    }
    for (size_t i = 0; i < n; ++i) {
      groups[group_of[i]]->LetGo();
    }
    for (const auto& group : groups) {
      EXPECT_TRUE(group->items().empty());
    }
    return result;
  }

  const ReadOptions read_options_;
  const ImmutableOptions ioptions_;
};

TEST_F(BlobReadGroupTest, DividesByDistanceAndSize) {
  using Groups = std::vector<std::vector<size_t>>;
  EXPECT_EQ(Divide({}), Groups());
  std::vector<BlobReadGroup::Item> items;
  // Groups are in the order of their first items, items in a group are in the
  // order of their offsets.
  items.push_back(At(8, 2000, 1000));
  items.push_back(At(7, 5000, 1000));
  items.push_back(At(8, 1000, 1000));
  EXPECT_EQ(Divide(std::move(items)), Groups({{2, 0}, {1}}));

  // The last item is too far from the previous one.
  items.clear();
  items.push_back(At(7, 0, 1000));
  items.push_back(At(7, 1000 + BlobReadGroup::kMaxGap, 1000));
  items.push_back(At(7, 2001 + 2 * BlobReadGroup::kMaxGap, 1000));
  EXPECT_EQ(Divide(std::move(items)), Groups({{0, 1}, {2}}));

  // The three items have too many bytes for one group.
  items.clear();
  items.push_back(At(7, 0, BlobReadGroup::kMaxSpan / 2));
  items.push_back(
      At(7, BlobReadGroup::kMaxSpan / 2, BlobReadGroup::kMaxSpan / 2));
  items.push_back(At(7, BlobReadGroup::kMaxSpan, 1));
  EXPECT_EQ(Divide(std::move(items)), Groups({{0, 1}, {2}}));

  // The group would have too many items.
  items.clear();
  for (uint64_t i = 0; i < 33; ++i) {
    items.push_back(At(7, 100 * i, 100));
  }
  const Groups groups = Divide(std::move(items));
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].size(), 32);
}

// A group of all values of a blob file, whose file system ends an asynchronous
// read when it is waited for.
class BlobReadGroupFileTest : public AddressMapDBTestBase {
 protected:
  using Begun = BlobReadGroup::Begun;
  using Trouble = DeferredReadFileSystem::Trouble;

  static constexpr size_t kItems = 3;

  BlobReadGroupFileTest()
      : AddressMapDBTestBase("blob_read_group_file_test"),
        fs_(std::make_shared<DeferredReadFileSystem>(env_->GetFileSystem())),
        deferring_env_(std::make_unique<CompositeEnvWrapper>(env_, fs_)) {
    Load(MapOptions());
  }
  ~BlobReadGroupFileTest() override {
    Close();
    EXPECT_EQ(fs_->under_way, 0);
    EXPECT_EQ(fs_->handles, 0);
  }

  void Load(Options options) {
    options.env = deferring_env_.get();
    DestroyAndReopen(options);
    for (size_t i = 0; i < kItems; ++i) {
      EXPECT_OK(Put(KeyOf(i), ValueOf(i)));
    }
    EXPECT_OK(Flush());
    WaitForJobs();
    // The file is open from now on.
    EXPECT_EQ(Get(KeyOf(0)), ValueOf(0));
  }

  static std::string KeyOf(size_t i) { return Key(static_cast<int>(i)); }
  static std::string ValueOf(size_t i) { return Value(static_cast<int>(i)); }

  std::vector<BlobReadGroup::Item> Items() {
    std::vector<BlobReadGroup::Item> items(kItems);
    for (size_t i = 0; i < kItems; ++i) {
      const std::string key = KeyOf(i);
      AddressMap::Lookup found =
          Blobs()->map()->FindDirect(Blobs()->HashOf(key), /*pin=*/true);
      EXPECT_TRUE(found.found);
      std::string encoded;
      Blobs()->ToBlobIndex(found, key.size(), &encoded);
      BlobIndex index;
      EXPECT_OK(index.DecodeFrom(encoded));
      names_.emplace_back();
      MappedRecordName::Encode(key, found.entry.name.seq,
                               found.entry.name.birth, &names_.back());
      items[i].record_name = names_.back();
      items[i].file_number = index.file_number();
      items[i].offset = index.offset();
      items[i].size = index.size();
      items[i].compression = index.compression();
      items[i].pin = std::move(found.pin);
    }
    return items;
  }
  std::shared_ptr<BlobReadGroup> GroupOf(
      std::vector<BlobReadGroup::Item>&& items) {
    std::vector<size_t> group_of;
    std::vector<size_t> index_of;
    auto groups = BlobReadGroup::Divide(
        std::move(items), read_options_, Family()->ioptions(),
        Family()->blob_source(), &group_of, &index_of);
    for (std::string& name : names_) {
      name.assign(name.size(), 'x');
    }
    names_.clear();
    EXPECT_EQ(groups.size(), 1u);
    fs_->events.clear();
    return groups[0];
  }
  // Returns a group that was read asynchronously.
  std::shared_ptr<BlobReadGroup> ReadGroup(
      std::vector<BlobReadGroup::Item>&& items) {
    auto group = GroupOf(std::move(items));
    EXPECT_EQ(group->BeginAsync(), Begun::kYes);
    group->EndAsync();
    return group;
  }
  // Ends the life of a group.
  static void Drop(const std::shared_ptr<BlobReadGroup>& group) {
    for (size_t i = 0; i < kItems; ++i) {
      group->LetGo();
    }
  }
  static void CheckValue(BlobReadGroup* group, size_t i) {
    PinnableSlice value;
    EXPECT_OK(group->Take(i, &value));
    EXPECT_EQ(value.ToString(), ValueOf(i));
  }
  // Checks that all values but the second one can be taken.
  static void CheckSecondIsCorrupt(BlobReadGroup* group) {
    CheckValue(group, 0);
    PinnableSlice value;
    const Status s = group->Take(1, &value);
    EXPECT_TRUE(s.IsCorruption()) << s.ToString();
    CheckValue(group, 2);
  }
  // Returns the requests to the blob file since the last call.
  std::string Events() {
    std::string events = fs_->EventsOf({".blob"});
    fs_->events.clear();
    return events;
  }

  const ReadOptions read_options_;
  // The items of the last Items() refer to these names of their records.
  std::deque<std::string> names_;
  const std::shared_ptr<DeferredReadFileSystem> fs_;
  const std::unique_ptr<Env> deferring_env_;
};

TEST_F(BlobReadGroupFileTest, OneAsynchronousReadGetsAllValues) {
  const auto group = GroupOf(Items());
  ASSERT_EQ(group->BeginAsync(), Begun::kYes);
  EXPECT_EQ(Events(), "begin.blob");
  EXPECT_EQ(group->BeginAsync(), Begun::kNo);
  group->EndAsync();
  EXPECT_GT(group->TEST_Bytes(),
            group->Span());  // the header of the first record
  for (size_t i = 0; i < kItems; ++i) {
    CheckValue(group.get(), i);
  }
  EXPECT_EQ(Events(), "end.blob");
  Drop(group);
}

TEST_F(BlobReadGroupFileTest, OneReadGetsAllValues) {
  const auto group = GroupOf(Items());
  EXPECT_TRUE(group->Run());
  EXPECT_EQ(Events(), "read.blob");
  EXPECT_GT(group->TEST_Bytes(),
            group->Span());  // the header of the first record
  for (size_t i = 0; i < kItems; ++i) {
    CheckValue(group.get(), i);
  }
  EXPECT_EQ(Events(), "");
  // It can be read again.
  EXPECT_TRUE(group->GiveBack());
  CheckValue(group.get(), 1);
  EXPECT_EQ(Events(), "read.blob");
  Drop(group);
}

// A value keeps the memory of the read.
TEST_F(BlobReadGroupFileTest, ValuesOutliveTheGroup) {
  auto group = ReadGroup(Items());
  PinnableSlice values[kItems];
  for (size_t i = 0; i < kItems; ++i) {
    ASSERT_OK(group->Take(i, &values[i]));
    EXPECT_TRUE(values[i].IsPinned());
  }
  // Between two values there is the header of a record, in the same memory.
  EXPECT_LT(values[0].data(), values[1].data());
  EXPECT_LT(values[1].data(), values[0].data() + values[0].size() + 200);
  Drop(group);
  group.reset();
  values[0].Reset();
  for (size_t i = 1; i < kItems; ++i) {
    EXPECT_EQ(values[i].ToString(), ValueOf(i));
  }
}

TEST_F(BlobReadGroupFileTest, CompressedValuesAreDecompressed) {
  if (!LZ4_Supported()) {
    ROCKSDB_GTEST_SKIP("LZ4 is not linked in");
    return;
  }
  Options options = MapOptions();
  options.blob_compression_type = kLZ4Compression;
  Load(options);
  const auto group = ReadGroup(Items());
  for (size_t i = 0; i < kItems; ++i) {
    CheckValue(group.get(), i);
  }
  EXPECT_EQ(Events(), "begin.blob end.blob");
  Drop(group);
}

TEST_F(BlobReadGroupFileTest, ValuesFillTheBlobCache) {
  Options options = MapOptions();
  options.blob_cache = NewLRUCache(1 << 20);
  Load(options);
  const uint64_t added = Ticker(BLOB_DB_CACHE_ADD);
  const auto group = ReadGroup(Items());
  for (size_t i = 0; i < kItems; ++i) {
    CheckValue(group.get(), i);
  }
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_ADD) - added, kItems - 1);  // Load() reads one
  Drop(group);
}

TEST_F(BlobReadGroupFileTest, DamagedValueIsCorruption) {
  std::vector<BlobReadGroup::Item> items = Items();
  const std::string path = BlobFileName(dbname_, items[0].file_number);
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, path, &contents));
  contents[items[1].offset + items[1].size / 2] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, contents, path));
  const auto group = ReadGroup(std::move(items));
  CheckSecondIsCorrupt(group.get());
  Drop(group);
}

// What an asynchronous read does not return whole is read again, and a read
// that does not end is aborted before its buffer is freed.
TEST_F(BlobReadGroupFileTest, ValuesOfAFailedReadAreReadAgain) {
  struct Case {
    Trouble trouble;
    const char* events;
  };
  for (const Case& c : {Case{Trouble::kFailed, "begin.blob end.blob"},
                        Case{Trouble::kShort, "begin.blob end.blob"},
                        Case{Trouble::kOwnMemory, "begin.blob end.blob"},
                        Case{Trouble::kPollFails, "begin.blob abort.blob"}}) {
    SCOPED_TRACE(static_cast<int>(c.trouble));
    const auto group = GroupOf(Items());
    fs_->trouble = c.trouble;
    ASSERT_EQ(group->BeginAsync(), Begun::kYes);
    group->EndAsync();
    EXPECT_EQ(Events(), c.events);
    EXPECT_EQ(fs_->under_way, 0);
    EXPECT_EQ(group->TEST_Bytes(), 0u);
    for (size_t i = 0; i < kItems; ++i) {
      CheckValue(group.get(), i);
      EXPECT_EQ(Events(), "read.blob");
    }
    Drop(group);
    fs_->trouble = Trouble::kNone;
  }
}

// Results are freed neither while they are read nor while a value is taken, and
// are read again after they were freed.
TEST_F(BlobReadGroupFileTest, OnlyResultsThatAreNotInUseAreGivenBack) {
  const auto group = GroupOf(Items());
  EXPECT_FALSE(group->GiveBack());
  ASSERT_EQ(group->BeginAsync(), Begun::kYes);
  EXPECT_FALSE(group->GiveBack());
  group->EndAsync();
  EXPECT_GT(group->TEST_Bytes(), 0u);
  EXPECT_TRUE(group->GiveBack());
  EXPECT_EQ(group->TEST_Bytes(), 0u);
  EXPECT_FALSE(group->TEST_HasBegun());
  EXPECT_FALSE(group->GiveBack());
  // The value is read again while it is taken.
  fs_->trouble = Trouble::kShort;
  ASSERT_EQ(group->BeginAsync(), Begun::kYes);
  group->EndAsync();
  const auto reached =
      EnableCallBackOnce("BlobFileReader::GetBlob:ReadFromFile",
                         [&](void*) { EXPECT_FALSE(group->GiveBack()); });
  CheckValue(group.get(), 0);
  EXPECT_TRUE(*reached);
  EXPECT_TRUE(group->GiveBack());
  // The other way to read the group.
  for (size_t i = 1; i < kItems; ++i) {
    CheckValue(group.get(), i);
  }
  EXPECT_TRUE(group->GiveBack());
  Drop(group);
  EXPECT_FALSE(group->GiveBack());
}

// A value whose compression type is not that of its file is refused, as by a
// read of this value alone.
TEST_F(BlobReadGroupFileTest, OtherCompressionTypeIsCorruption) {
  for (const bool is_async : {false, true}) {
    SCOPED_TRACE(is_async);
    std::vector<BlobReadGroup::Item> items = Items();
    items[1].compression = kZSTD;
    const auto group = GroupOf(std::move(items));
    if (is_async) {
      ASSERT_EQ(group->BeginAsync(), Begun::kYes);
      group->EndAsync();
    }
    CheckSecondIsCorrupt(group.get());
    Drop(group);
  }
}

class BlobReadPoolTest : public testing::Test {
 protected:
  MockSystemClock clock_{SystemClock::Default()};
};

TEST_F(BlobReadPoolTest, RunAllStaysOnThisThreadWhileReadsAreFast) {
  std::vector<size_t> order;
  const auto here = std::this_thread::get_id();
  BlobReadPool::RunAll(&clock_, 10, [&](size_t i) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    order.push_back(i);
  });
  EXPECT_EQ(order, std::vector<size_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(BlobReadPoolTest, RunAllUsesOtherThreadsAfterASlowRead) {
  std::atomic<size_t> running{0};
  std::vector<std::atomic<int>> calls(8);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  BlobReadPool::RunAll(&clock_, calls.size(), [&](size_t i) {
    ++calls[i];
    if (i == 0) {
      clock_.SleepForMicroseconds(ReadAheadGauge::kCachedMicros + 1);
      return;
    }
    // All other calls wait for each other, so they must run at the same time.
    ++running;
    while (running < calls.size() - 1 &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now(), deadline)
      << "The calls did not run at the same time";
  for (const auto& n : calls) {
    EXPECT_EQ(n, 1);
  }
}

// Otherwise the reads of garbage collections would count as those of users.
TEST_F(BlobReadPoolTest, ThreadsWorkForTheJobOfTheCaller) {
  for (const PathJob job : {PathJob::kBlobGc, PathJob::kNone}) {
    constexpr size_t kCalls = 4;
    const PathJobScope scope(job);
    std::vector<PathJob> jobs(kCalls, PathJob::kFlush);
    std::atomic<size_t> running{0};
    BlobReadPool::RunAll(&clock_, kCalls, [&](size_t i) {
      jobs[i] = PathJobScope::Current();
      if (i == 0) {
        clock_.SleepForMicroseconds(ReadAheadGauge::kCachedMicros + 1);
        return;
      }
      // Each of the other calls has a thread of its own.
      ++running;
      EXPECT_TRUE(WaitUntil([&] { return running == kCalls - 1; }));
    });
    EXPECT_EQ(jobs, std::vector<PathJob>(kCalls, job));
  }
}

TEST_F(BlobReadPoolTest, RunAllUsesAsManyThreadsAsItMay) {
  for (const size_t max_threads : {0, 1, 3}) {
    SCOPED_TRACE(max_threads);
    std::atomic<size_t> running{0};
    std::atomic<size_t> most{0};
    BlobReadPool::RunAll(
        &clock_, 50,
        [&](size_t) {
          const size_t n = ++running;
          for (size_t m = most; m < n && !most.compare_exchange_weak(m, n);) {
          }
          clock_.SleepForMicroseconds(ReadAheadGauge::kCachedMicros + 1);
          SystemClock::Default()->SleepForMicroseconds(1000);
          --running;
        },
        max_threads);
    EXPECT_LE(most, max_threads + 1);
  }
}

TEST_F(BlobReadPoolTest, ConcurrentRunAllsMakeEachCallOnce) {
  constexpr size_t kThreads = 8;
  constexpr size_t kRounds = 200;
  std::vector<std::thread> threads;
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> expected{0};
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t round = 0; round < kRounds; ++round) {
        const size_t n = (t + round) % 40;
        std::vector<size_t> done(n);
        BlobReadPool::RunAll(SystemClock::Default().get(), n, [&](size_t i) {
          if (i == 0) {
            SystemClock::Default()->SleepForMicroseconds(30);
          }
          done[i] += i + 1;
          ++calls;
        });
        expected += n;
        // A call that ran after the end of RunAll() would write to freed
        // memory.
        for (size_t i = 0; i < n; ++i) {
          EXPECT_EQ(done[i], i + 1);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(calls, expected);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
