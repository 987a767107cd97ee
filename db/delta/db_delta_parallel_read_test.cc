//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Point reads whose delta files other threads read (delta_parallel_reads): what
// they find and count is what they would without.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_read_ahead_test_util.h"
#include "db/delta/delta_store.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "rocksdb/snapshot.h"
#include "test_util/sync_point.h"
#include "util/cast_util.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Sees reads of files once they are open: what kind of file it is, and how.
class WatchedFileSystem final : public FileSystemWrapper {
 public:
  using OnRead =
      std::function<IOStatus(const std::string& fname, const IOOptions&)>;

  explicit WatchedFileSystem(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "WatchedFileSystem"; }

  // REQUIRES: nobody reads.
  void Watch(OnRead on_read) { on_read_ = std::move(on_read); }

  IOStatus NewRandomAccessFile(const std::string& fname,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    IOStatus s = target()->NewRandomAccessFile(fname, options, result, dbg);
    if (s.ok()) {
      *result = std::make_unique<File>(fname, std::move(*result), this);
    }
    return s;
  }

 private:
  class File final : public FSRandomAccessFileOwnerWrapper {
   public:
    File(const std::string& fname, std::unique_ptr<FSRandomAccessFile>&& target,
         WatchedFileSystem* fs)
        : FSRandomAccessFileOwnerWrapper(std::move(target)),
          fname_(fname),
          fs_(fs) {}
    IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                  Slice* result, char* scratch,
                  IODebugContext* dbg) const override {
      if (fs_->on_read_) {
        IOStatus s = fs_->on_read_(fname_, options);
        if (!s.ok()) {
          return s;
        }
      }
      return target()->Read(offset, n, options, result, scratch, dbg);
    }
    IOStatus MultiRead(FSReadRequest* requests, size_t num_requests,
                       const IOOptions& options, IODebugContext* dbg) override {
      if (fs_->on_read_) {
        IOStatus s = fs_->on_read_(fname_, options);
        if (!s.ok()) {
          return s;
        }
      }
      return target()->MultiRead(requests, num_requests, options, dbg);
    }

   private:
    const std::string fname_;
    WatchedFileSystem* const fs_;
  };

  OnRead on_read_;
};

bool IsDeltaFile(const std::string& fname) {
  return fname.size() > 6 && fname.compare(fname.size() - 6, 6, ".delta") == 0;
}

// Not for ever, so that a test fails rather than hangs.
bool Await(const std::function<bool()>& condition) {
  for (int i = 0; i < 20000; ++i) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

class DBDeltaParallelReadTest : public DeltaReadAheadTestBase {
 protected:
  DBDeltaParallelReadTest()
      : DBDeltaParallelReadTest(
            std::make_shared<WatchedFileSystem>(FileSystem::Default())) {}
  explicit DBDeltaParallelReadTest(std::shared_ptr<WatchedFileSystem> fs)
      : DeltaReadAheadTestBase("db_delta_parallel_read_test", fs), fs_(fs) {}
  ~DBDeltaParallelReadTest() override {
    Close();
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->LoadDependency({});
    SyncPoint::GetInstance()->ClearAllCallBacks();
  }

  // Whatever the policy says.
  static void AlwaysHandOver() {
    for (const char* point :
         {"DeltaParallelReads::IsWanted", "DeltaParallelReads::Start"}) {
      SyncPoint::GetInstance()->SetCallBack(
          point, [](void* arg) { *static_cast<bool*>(arg) = true; });
    }
    SyncPoint::GetInstance()->EnableProcessing();
  }

  // A read's result is not asked for before a thread has begun with it, or
  // with another one since begun_ was reset.
  void AwaitThreads() {
    SyncPoint::GetInstance()->SetCallBack("DeltaReadHelpers::Work:BeforeRun",
                                          [this](void*) { ++begun_; });
    SyncPoint::GetInstance()->SetCallBack(
        "DeltaReadAhead::Finish",
        [this](void*) { ASSERT_TRUE(Await([this] { return begun_ > 0; })); });
  }

  Options ParallelOptions() {
    Options options = DeltaOptions();
    options.delta_parallel_reads = 4;
    return options;
  }

  // A key with operands, and a value in a blob file.
  void LoadWithBlob(bool has_map) {
    Options options = ParallelOptions();
    options.enable_blob_files = true;
    options.min_blob_size = 0;
    options.enable_blob_address_map = has_map;
    DestroyAndReopen(options);
    Load(1);
    AlwaysHandOver();
    EmptyCache();
  }

  DeltaReadHelpers* Helpers() {
    return static_cast_with_check<ColumnFamilyHandleImpl>(
               db_->DefaultColumnFamily())
        ->cfd()
        ->delta_store()
        ->parallel_reads()
        ->helpers();
  }

  std::string Counts(const std::function<void()>& read) {
    begun_ = 0;
    return DeltaReadAheadTestBase::Counts(read);
  }

  const std::shared_ptr<WatchedFileSystem> fs_;
  std::atomic<int> begun_{0};
  std::atomic<bool> is_ignored_{false};
};

// The device has both reads at the same time: each waits for the other one to
// arrive there.
TEST_F(DBDeltaParallelReadTest, Overlap) {
  DestroyAndReopen(ParallelOptions());
  Load(1);
  AlwaysHandOver();
  for (const bool multi : {false, true}) {
    const uint64_t before = ParallelReads();
    EmptyCache();
    std::atomic<int> delta_reads{0};
    std::atomic<int> base_reads{0};
    std::atomic<bool> is_late{false};
    const std::thread::id reader = std::this_thread::get_id();
    std::atomic<bool> is_wrong_thread{false};
    fs_->Watch([&](const std::string& fname, const IOOptions&) {
      const bool is_delta = IsDeltaFile(fname);
      if (is_delta == (std::this_thread::get_id() == reader)) {
        is_wrong_thread = true;
      }
      ++(is_delta ? delta_reads : base_reads);
      if (!Await([&] { return delta_reads > 0 && base_reads > 0; })) {
        is_late = true;
      }
      return IOStatus::OK();
    });
    if (multi) {
      ASSERT_EQ((std::vector<std::string>{ValueOf(0)}),
                MultiGet({KeyOf(0)}, /*snapshot=*/nullptr));
    } else {
      ASSERT_EQ(ValueOf(0), Get(KeyOf(0)));
    }
    fs_->Watch(nullptr);
    ASSERT_FALSE(is_late.load());
    ASSERT_FALSE(is_wrong_thread.load());
    ASSERT_EQ(2, delta_reads.load());
    ASSERT_EQ(1, base_reads.load());
    ASSERT_EQ(before + 1, ParallelReads());
  }
}

// The same with values in blob files, with the address map and without.
TEST_F(DBDeltaParallelReadTest, OverlapWithBlobs) {
  for (const bool has_map : {false, true}) {
    LoadWithBlob(has_map);
    std::atomic<int> delta_reads{0};
    std::atomic<int> blob_reads{0};
    std::atomic<bool> is_late{false};
    fs_->Watch([&](const std::string& fname, const IOOptions&) {
      const bool is_delta = IsDeltaFile(fname);
      const bool is_blob = fname.find(".blob") != std::string::npos;
      if (is_delta || is_blob) {
        ++(is_delta ? delta_reads : blob_reads);
        if (!Await([&] { return delta_reads > 0 && blob_reads > 0; })) {
          is_late = true;
        }
      }
      return IOStatus::OK();
    });
    ASSERT_EQ(ValueOf(0), Get(KeyOf(0)));
    fs_->Watch(nullptr);
    ASSERT_FALSE(is_late.load()) << has_map;
    ASSERT_EQ(2, delta_reads.load());
    // Not twice, but perhaps in two parts.
    ASSERT_LE(blob_reads.load(), 2);
    EmptyCache();
    CheckMergeOperands(0);
    SyncPoint::GetInstance()->DisableProcessing();
  }
}

TEST_F(DBDeltaParallelReadTest, OnlyWhatIsNotInTheCache) {
  DestroyAndReopen(ParallelOptions());
  Load(100);
  SyncPoint::GetInstance()->SetCallBack(
      "DeltaParallelReads::Start",
      [](void* arg) { *static_cast<bool*>(arg) = true; });
  SyncPoint::GetInstance()->EnableProcessing();
  const uint64_t before = ParallelReads();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(ValueOf(i), Get(KeyOf(i)));
  }
  ASSERT_EQ(before, ParallelReads());
  ASSERT_EQ("NOT_FOUND", Get("key"));
  // No I/O is allowed.
  EmptyCache();
  ReadOptions memory_only;
  memory_only.read_tier = kBlockCacheTier;
  std::string value;
  ASSERT_TRUE(db_->Get(memory_only, KeyOf(7), &value).IsIncomplete());
  ASSERT_EQ(before, ParallelReads());
  // Values of memtables hide everything.
  ASSERT_OK(Put(KeyOf(7), "new"));
  ASSERT_EQ("new", Get(KeyOf(7)));
  ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                             KeyOf(8), KeyOf(9)));
  ASSERT_EQ("NOT_FOUND", Get(KeyOf(8)));
  ASSERT_EQ(before, ParallelReads());
}

TEST_F(DBDeltaParallelReadTest, NoThreadsIfOff) {
  Options options = ParallelOptions();
  options.delta_parallel_reads = 0;
  DestroyAndReopen(options);
  Load(10);
  AlwaysHandOver();
  EmptyCache();
  ASSERT_EQ(ValueOf(3), Get(KeyOf(3)));
  ASSERT_EQ(0, Helpers()->TEST_NumThreads());
  ASSERT_OK(db_->SetOptions({{"delta_parallel_reads", "2"}}));
  EmptyCache();
  ASSERT_EQ(ValueOf(3), Get(KeyOf(3)));
  ASSERT_EQ(1, Helpers()->TEST_NumThreads());
  const uint64_t before = ParallelReads();
  ASSERT_OK(db_->SetOptions({{"delta_parallel_reads", "0"}}));
  EmptyCache();
  ASSERT_EQ(ValueOf(3), Get(KeyOf(3)));
  ASSERT_EQ(before, ParallelReads());
  ASSERT_NOK(db_->SetOptions({{"delta_parallel_reads", "1000"}}));
}

TEST_F(DBDeltaParallelReadTest, Counts) {
  for (const bool has_levels : {false, true}) {
    DestroyAndReopen(ParallelOptions());
    Load(200);
    // Anchors, too: of keys with newer values, and newer operands again.
    for (int i = 0; i < 200; i += 3) {
      ASSERT_OK(Put(KeyOf(i), "v"));
    }
    ASSERT_OK(Flush());
    for (int i = 0; i < 200; i += 6) {
      ASSERT_OK(Merge(KeyOf(i), "z"));
    }
    ASSERT_OK(Flush());
    for (int i = 0; i < 200; ++i) {
      Get(KeyOf(i));  // opens the new files
    }
    AlwaysHandOver();
    AwaitThreads();
    if (has_levels) {
      get_perf_context()->EnablePerLevelPerfContext();
    }
    // Not 3, whose value is newer than all operands: that it was needless to
    // look for an anchor is not known before.
    for (const int i : {0, 1, 100, 150, 199}) {
      const auto read = [&] { Get(KeyOf(i)); };
      ASSERT_OK(db_->SetOptions({{"delta_parallel_reads", "0"}}));
      const std::string without = Counts(read);
      const uint64_t bytes_without = bytes_of_blocks_;
      ASSERT_OK(db_->SetOptions({{"delta_parallel_reads", "1"}}));
      const uint64_t before = ParallelReads();
      const std::string with = Counts(read);
      ASSERT_EQ(without, with) << i;
      ExpectSameBlocks(bytes_without, bytes_of_blocks_,
                       get_perf_context()->block_cache_hit_count);
      ASSERT_EQ(before + 1, ParallelReads());
      // From the cache, as far as it has it.
      const auto read_cached = [&] {
        Get(KeyOf(i));
        get_perf_context()->Reset();
        get_iostats_context()->Reset();
        Get(KeyOf(i));
        EXPECT_EQ(0, get_perf_context()->block_read_count);
      };
      ASSERT_OK(db_->SetOptions({{"delta_parallel_reads", "0"}}));
      const std::string cached_without = Counts(read_cached);
      const uint64_t cached_bytes_without = bytes_of_blocks_;
      ASSERT_OK(db_->SetOptions({{"delta_parallel_reads", "1"}}));
      ASSERT_EQ(cached_without, Counts(read_cached)) << i;
      ASSERT_LT(0, get_perf_context()->block_cache_hit_count);
      ExpectSameBlocks(cached_bytes_without, bytes_of_blocks_,
                       get_perf_context()->block_cache_hit_count);
    }
    get_perf_context()->ClearPerLevelPerfContext();
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
  }
}

// What the other thread meets is what the read says, if it needs it.
TEST_F(DBDeltaParallelReadTest, Errors) {
  DestroyAndReopen(ParallelOptions());
  Load(2);
  AlwaysHandOver();
  AwaitThreads();
  std::atomic<int> failed{0};
  EmptyCache();
  fs_->Watch([&](const std::string& fname, const IOOptions&) {
    if (IsDeltaFile(fname)) {
      ++failed;
      return IOStatus::IOError("the device is gone");
    }
    return IOStatus::OK();
  });
  std::string value;
  const Status s = db_->Get(ReadOptions(), KeyOf(0), &value);
  ASSERT_TRUE(s.IsIOError()) << s.ToString();
  ASSERT_NE(std::string::npos, s.ToString().find("the device is gone"));
  ASSERT_EQ(1, failed.load());
  ASSERT_EQ("NOT_FOUND", Get("key"));
  {
    std::vector<PinnableSlice> values(2);
    std::vector<Status> statuses(2);
    const std::string names[] = {KeyOf(0), KeyOf(1)};
    const Slice keys[] = {names[0], names[1]};
    db_->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), 2, keys,
                  values.data(), statuses.data());
    for (const Status& status : statuses) {
      ASSERT_TRUE(status.IsIOError()) << status.ToString();
    }
  }
  fs_->Watch(nullptr);
  ASSERT_EQ(ValueOf(0), Get(KeyOf(0)));
  ASSERT_EQ(ValueOf(1), Get(KeyOf(1)));
}

// A value that could not be read while the other thread read deltas is read
// again, and tests that inject the error are told so.
TEST_F(DBDeltaParallelReadTest, FailedReadOfBlob) {
  SyncPoint::GetInstance()->SetCallBack("FaultInjectionIgnoreError",
                                        [this](void*) { is_ignored_ = true; });
  for (const bool has_map : {false, true}) {
    LoadWithBlob(has_map);
    is_ignored_ = false;
    std::atomic<int> blob_reads{0};
    fs_->Watch([&](const std::string& fname, const IOOptions&) {
      if (fname.find(".blob") != std::string::npos && blob_reads++ == 0) {
        return IOStatus::IOError("the device is gone");
      }
      return IOStatus::OK();
    });
    ASSERT_EQ(ValueOf(0), Get(KeyOf(0)));
    fs_->Watch(nullptr);
    ASSERT_LT(1, blob_reads.load());
    ASSERT_TRUE(is_ignored_.load());
  }
}

// Options of the read are those of the other thread's, too.
TEST_F(DBDeltaParallelReadTest, ReadOptions) {
  DestroyAndReopen(ParallelOptions());
  Load(1);
  AlwaysHandOver();
  AwaitThreads();
  const uint64_t before = ParallelReads();
  std::atomic<int64_t> timeout{-1};
  std::atomic<int> priority{-1};
  EmptyCache();
  fs_->Watch([&](const std::string& fname, const IOOptions& io_options) {
    if (IsDeltaFile(fname)) {
      timeout = io_options.timeout.count();
      priority = io_options.rate_limiter_priority;
    }
    return IOStatus::OK();
  });
  ReadOptions read_options;
  read_options.io_timeout = std::chrono::microseconds(123456);
  read_options.fill_cache = false;
  PinnableSlice value;
  const auto get = [&] {
    value.Reset();
    begun_ = 0;
    return db_->Get(read_options, db_->DefaultColumnFamily(), KeyOf(0), &value);
  };
  ASSERT_OK(get());
  ASSERT_EQ(ValueOf(0), value.ToString());
  ASSERT_EQ(123456, timeout.load());
  ASSERT_EQ(Env::IO_TOTAL, priority.load());
  ASSERT_EQ(before + 1, ParallelReads());
  // Nothing is in the cache.
  ASSERT_OK(get());
  ASSERT_EQ(before + 2, ParallelReads());

  // The other thread begins after the deadline.
  read_options.io_timeout = std::chrono::microseconds(0);
  const uint64_t deadline = env_->NowMicros() + 500 * 1000;
  read_options.deadline = std::chrono::microseconds(deadline);
  SyncPoint::GetInstance()->SetCallBack(
      "DeltaReadHelpers::Work:BeforeRun", [&](void*) {
        ++begun_;
        Await([&] { return env_->NowMicros() > deadline + 1000; });
      });
  const Status s = get();
  ASSERT_TRUE(s.IsTimedOut()) << s.ToString();
}

TEST_F(DBDeltaParallelReadTest, Snapshots) {
  DestroyAndReopen(ParallelOptions());
  Load(3);
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Merge(KeyOf(1), "z"));
  ASSERT_OK(Flush());
  ASSERT_OK(Put(KeyOf(2), "new"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge(KeyOf(2), "newer"));
  ASSERT_EQ("new,newer", Get(KeyOf(2)));
  AlwaysHandOver();
  AwaitThreads();
  const auto empty = [this] {
    EmptyCache();
    begun_ = 0;
  };
  for (int round = 0; round < 2; ++round) {
    empty();
    ASSERT_EQ(ValueOf(1) + ",z", Get(KeyOf(1)));
    empty();
    ASSERT_EQ("new,newer", Get(KeyOf(2)));
    for (int i = 0; i < 3; ++i) {
      empty();
      ASSERT_EQ(ValueOf(i), Get(KeyOf(i), snapshot)) << i;
    }
  }
  ASSERT_GT(ParallelReads(), 0);
  db_->ReleaseSnapshot(snapshot);
}

// A read that does not need what another thread still reads for it waits before
// it returns: nothing goes on once the DB is closed.
TEST_F(DBDeltaParallelReadTest, NotNeededThenClosed) {
  DestroyAndReopen(ParallelOptions());
  Load(1);
  // Newer than all operands.
  ASSERT_OK(Put(KeyOf(0), "new"));
  ASSERT_OK(Flush());
  ASSERT_EQ("new", Get(KeyOf(0)));
  AlwaysHandOver();
  std::atomic<int> begun{0};
  std::atomic<int> done{0};
  std::atomic<int> ended{0};
  SyncPoint::GetInstance()->SetCallBack("DeltaReadHelpers::Work:BeforeRun",
                                        [&](void*) { ++begun; });
  SyncPoint::GetInstance()->SetCallBack("DeltaReadHelpers::Work:AfterRun",
                                        [&](void*) { ++done; });
  SyncPoint::GetInstance()->SetCallBack("DeltaReadHelpers::Work:End",
                                        [&](void*) { ++ended; });
  EmptyCache();
  std::atomic<int> anchor_reads{0};
  fs_->Watch([&](const std::string& fname, const IOOptions&) {
    if (IsDeltaFile(fname)) {
      ++anchor_reads;
      // Long enough for the reader to come to the end without it.
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    } else {
      Await([&] { return begun > 0; });
    }
    return IOStatus::OK();
  });
  ASSERT_EQ("new", Get(KeyOf(0)));
  ASSERT_EQ(1, begun.load());
  ASSERT_EQ(1, done.load());
  ASSERT_GE(anchor_reads.load(), 1);
  fs_->Watch(nullptr);
  Close();
  ASSERT_EQ(1, ended.load());
}

TEST_F(DBDeltaParallelReadTest, MultiGet) {
  Options options = ParallelOptions();
  options.delta_parallel_reads = 3;
  DestroyAndReopen(options);
  constexpr int kKeys = 3000;  // some blocks
  Load(kKeys);
  AlwaysHandOver();
  AwaitThreads();
  Random rnd(301);
  for (int round = 0; round < 30; ++round) {
    EmptyCache();
    begun_ = 0;
    std::vector<std::string> names;
    std::vector<std::string> expected;
    for (int i = 0; i < 60; ++i) {
      const int k = rnd.Uniform(kKeys + 50);
      names.push_back(KeyOf(k));
      expected.push_back(k < kKeys ? ValueOf(k) : "NOT_FOUND");
    }
    ASSERT_EQ(expected, MultiGet(names, /*snapshot=*/nullptr));
  }
  // One of each round at least.
  ASSERT_GE(ParallelReads(), 30);
  ASSERT_LE(Helpers()->TEST_NumThreads(), 3);
}

// Many readers, while operands are flushed, merged and collected. The value of
// a key is a list of numbers that only grows.
TEST_F(DBDeltaParallelReadTest, Concurrent) {
  for (const bool has_cache : {true, false}) {
    Options options = ParallelOptions();
    options.disable_auto_compactions = false;
    options.delta_bucket_size = 4096;
    options.delta_max_buckets = 16;
    options.write_buffer_size = 64 << 10;
    options.delta_parallel_reads = 2;
    BlockBasedTableOptions table_options;
    cache_ = NewLRUCache(64 << 10, /*num_shard_bits=*/0);
    table_options.block_cache = has_cache ? cache_ : nullptr;
    table_options.no_block_cache = !has_cache;
    options.table_factory.reset(NewBlockBasedTableFactory(table_options));
    DestroyAndReopen(options);
    AlwaysHandOver();
    begun_ = 0;
    AwaitThreads();
    constexpr int kKeys = 50;
    constexpr int kRounds = 60;
    std::vector<std::string> expected;
    std::string list;
    for (int i = 0; i <= kRounds; ++i) {
      list += (i == 0 ? "" : ",") + std::to_string(i);
      expected.push_back(list);
    }
    for (int k = 0; k < kKeys; ++k) {
      ASSERT_OK(Put(KeyOf(k), "0"));
    }
    ASSERT_OK(Flush());
    std::atomic<int> written{0};
    std::atomic<bool> is_over{false};
    std::vector<port::Thread> readers;
    for (int t = 0; t < 4; ++t) {
      readers.emplace_back([&, t] {
        Random rnd(301 + t);
        while (!is_over) {
          const int least = written;
          std::vector<std::string> names;
          for (int i = 0; i < (t % 2 == 0 ? 1 : 8); ++i) {
            names.push_back(KeyOf(rnd.Uniform(kKeys)));
          }
          std::vector<std::string> values;
          if (t % 2 == 0) {
            values.push_back(Get(names[0]));
          } else {
            values = MultiGet(names, /*snapshot=*/nullptr);
          }
          for (const std::string& value : values) {
            size_t at = static_cast<size_t>(least);
            while (at < expected.size() && expected[at] != value) {
              ++at;
            }
            ASSERT_LT(at, expected.size()) << value << " " << least;
          }
        }
      });
    }
    for (int round = 1; round <= kRounds; ++round) {
      for (int k = 0; k < kKeys; ++k) {
        ASSERT_OK(Merge(KeyOf(k), std::to_string(round)));
      }
      written = round;
      if (round % 3 == 0) {
        ASSERT_OK(Flush());
      }
      if (round == kRounds / 2) {
        ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
      }
    }
    is_over = true;
    for (port::Thread& reader : readers) {
      reader.join();
    }
    ASSERT_GT(ParallelReads(), 0);
    SyncPoint::GetInstance()->DisableProcessing();
  }
}

// A family that is dropped keeps its threads as long as somebody reads it.
TEST_F(DBDeltaParallelReadTest, DroppedFamily) {
  Options options = ParallelOptions();
  CreateAndReopenWithCF({"other"}, options);
  ASSERT_OK(Put(1, "k", "base"));
  ASSERT_OK(Flush(1));
  ASSERT_OK(Merge(1, "k", "x"));
  ASSERT_OK(Flush(1));
  ASSERT_EQ("base,x", Get(1, "k"));
  AlwaysHandOver();
  std::atomic<int> ended{0};
  SyncPoint::GetInstance()->SetCallBack("DeltaReadHelpers::Work:End",
                                        [&](void*) { ++ended; });
  EmptyCache();
  ASSERT_EQ("base,x", Get(1, "k"));
  ASSERT_OK(db_->DropColumnFamily(handles_[1]));
  EmptyCache();
  ASSERT_EQ("base,x", Get(1, "k"));
  ASSERT_EQ(0, ended.load());
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.resize(1);
  ASSERT_TRUE(Await([&] { return ended == 1; }));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
