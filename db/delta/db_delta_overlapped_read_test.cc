//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests point reads that read delta files asynchronously while they search for
// the value. Results and counters are the same as without asynchronous reads.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/delta/delta_async_reads.h"
#include "db/delta/delta_read_ahead_test_util.h"
#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/snapshot.h"
#include "test_util/strata/deferred_read_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "util/random.h"

// RocksDB uses io_uring only if the application defines this function.
extern "C" bool RocksDbIOUringEnable() { return true; }

namespace ROCKSDB_NAMESPACE {

class DBDeltaOverlappedReadTest : public DeltaReadAheadTestBase {
 protected:
  using Trouble = DeferredReadFileSystem::Trouble;

  DBDeltaOverlappedReadTest()
      : DBDeltaOverlappedReadTest(std::make_shared<DeferredReadFileSystem>()) {}
  explicit DBDeltaOverlappedReadTest(std::shared_ptr<DeferredReadFileSystem> fs)
      : DeltaReadAheadTestBase("db_delta_overlapped_read_test", fs), fs_(fs) {}
  ~DBDeltaOverlappedReadTest() override {
    Close();
    EXPECT_EQ(0, fs_->under_way);
    EXPECT_EQ(0, fs_->handles);
  }

  // Returns the requests that `read` makes to files with these endings while
  // the block cache is empty.
  std::string EventsOf(const std::vector<std::string>& endings,
                       const std::function<void()>& read) {
    EmptyCache();
    fs_->events.clear();
    read();
    return fs_->EventsOf(endings);
  }

  const std::shared_ptr<DeferredReadFileSystem> fs_;
};

// A Get begins to read the delta files before it reads the value.
TEST_F(DBDeltaOverlappedReadTest, DeltaFilesAreReadBesideTheValue) {
  DestroyAndReopen(DeltaOptions());
  Load(3);
  const std::vector<std::string> endings = {".delta", ".sst"};
  const uint64_t before = ParallelReads();
  ASSERT_EQ(
      "begin.delta begin.delta read.sst end.delta end.delta",
      EventsOf(endings, [this] { ASSERT_EQ(ValueOf(0), Get(KeyOf(0))); }));
  ASSERT_EQ(before + 1, ParallelReads());
  // Nothing is read if the blocks are in memory.
  fs_->events.clear();
  ASSERT_EQ(ValueOf(0), Get(KeyOf(0)));
  ASSERT_EQ("", fs_->EventsOf(endings));
  ASSERT_EQ(before + 1, ParallelReads());
  ASSERT_EQ("", EventsOf(endings,
                         [this] { ASSERT_EQ("NOT_FOUND", Get("nothing")); }));

  // A MultiGet begins the reads for all of its keys before it reads anything
  // else.
  const std::vector<std::string> keys = {KeyOf(0), KeyOf(1), "nothing",
                                         KeyOf(2)};
  ASSERT_EQ(
      "begin.delta begin.delta begin.delta begin.delta begin.delta begin.delta "
      "read.sst end.delta end.delta end.delta end.delta end.delta end.delta",
      EventsOf(endings, [&] {
        ASSERT_EQ((std::vector<std::string>{ValueOf(0), ValueOf(1), "NOT_FOUND",
                                            ValueOf(2)}),
                  MultiGet(keys, /*snapshot=*/nullptr));
      }));
}

// The file system is told the caller's id of a request also with the reads that
// begin before the table reader asks for their blocks.
TEST_F(DBDeltaOverlappedReadTest, RequestIdsReachTheFileSystem) {
  DestroyAndReopen(DeltaOptions());
  Load(1);
  const std::string request_id = "request 1";
  ReadOptions read_options;
  read_options.request_id = &request_id;
  const auto get = [&] {
    std::string value;
    ASSERT_OK(db_->Get(read_options, KeyOf(0), &value));
    ASSERT_EQ(ValueOf(0), value);
  };
  ASSERT_EQ("begin.delta begin.delta end.delta end.delta",
            EventsOf({".delta"}, get));
  ASSERT_EQ(std::vector<std::string>(2, request_id), fs_->request_ids);
  read_options.request_id = nullptr;
  ASSERT_EQ("begin.delta begin.delta end.delta end.delta",
            EventsOf({".delta"}, get));
  ASSERT_EQ(2u, fs_->request_ids.size());
}

TEST_F(DBDeltaOverlappedReadTest, DeltaFilesAreReadBesideBlobs) {
  for (const bool has_map : {false, true}) {
    SCOPED_TRACE(has_map);
    Options options = DeltaOptions();
    options.enable_blob_files = true;
    options.min_blob_size = 0;
    options.enable_blob_address_map = has_map;
    DestroyAndReopen(options);
    Load(1);
    const std::string events = EventsOf(
        {".delta", ".blob"}, [this] { ASSERT_EQ(ValueOf(0), Get(KeyOf(0))); });
    ASSERT_EQ(0u, events.find("begin.delta begin.delta read.blob"));
    ASSERT_EQ(events.size() - 19, events.rfind("end.delta end.delta"));
    EmptyCache();
    CheckMergeOperands(0);
  }
}

// No read is begun for operands that are known to be hidden by a newer value.
TEST_F(DBDeltaOverlappedReadTest, NoReadBeginsForHiddenOperands) {
  DestroyAndReopen(DeltaOptions());
  Load(2);
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Put(KeyOf(0), "new"));
  ASSERT_OK(Flush());
  // This also holds if the file with the anchor has to be opened first.
  fs_->events.clear();
  ASSERT_EQ("new", Get(KeyOf(0)));
  ASSERT_EQ(std::string::npos, fs_->EventsOf({".delta"}).find("begin"));
  ASSERT_EQ("",
            EventsOf({".delta"}, [this] { ASSERT_EQ("new", Get(KeyOf(0))); }));
  ASSERT_EQ(
      "begin.delta begin.delta end.delta end.delta",
      EventsOf({".delta"}, [this] { ASSERT_EQ(ValueOf(1), Get(KeyOf(1))); }));
  // The anchor is not visible at the snapshot.
  ASSERT_EQ("begin.delta begin.delta end.delta end.delta",
            EventsOf({".delta"},
                     [&] { ASSERT_EQ(ValueOf(0), Get(KeyOf(0), snapshot)); }));
  db_->ReleaseSnapshot(snapshot);

  // With a newer operand, two reads begin: of its file, and of the file with
  // the anchor that hides the older operands.
  ASSERT_OK(Merge(KeyOf(0), "z"));
  ASSERT_OK(Flush());
  Get(KeyOf(0));
  ASSERT_EQ(
      "begin.delta begin.delta end.delta end.delta",
      EventsOf({".delta"}, [this] { ASSERT_EQ("new,z", Get(KeyOf(0))); }));

  // A range deletion in the memtable hides all operands.
  ASSERT_OK(
      db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "a", "z"));
  ASSERT_EQ("", EventsOf({".delta"},
                         [this] { ASSERT_EQ("NOT_FOUND", Get(KeyOf(0))); }));
}

// If a read fails that was begun early, the Get fails, or
// FaultInjectionIgnoreError tells tests with injected faults that the result
// does not depend on that read.
TEST_F(DBDeltaOverlappedReadTest, FailedEarlyReadFailsTheGetOrIsIgnored) {
  bool is_ignored = false;
  bool was_ignored = false;
  EnableCallBack("FaultInjectionIgnoreError",
                 [&](void*) { is_ignored = true; });
  for (const bool hides : {true, false}) {
    // Ends when no further read fails.
    for (int failures = 1;; ++failures) {
      SCOPED_TRACE(failures);
      ASSERT_LT(failures, 20);
      const Options options = DeltaOptions();
      DestroyAndReopen(options);
      Load(2);
      ASSERT_OK(Put(KeyOf(hides ? 0 : 1), "new"));
      ASSERT_OK(Flush());
      // The flush has opened the file with the anchor. This read of the other
      // key opens only the files with the operands.
      Reopen(options);
      ASSERT_EQ(ValueOf(hides ? 1 : 0), Get(KeyOf(hides ? 1 : 0)));
      EmptyCache();
      is_ignored = false;
      fs_->delta_reads_to_fail = failures;
      std::string value;
      const Status s = db_->Get(ReadOptions(), KeyOf(0), &value);
      const int failed = failures - fs_->delta_reads_to_fail;
      fs_->delta_reads_to_fail = 0;
      if (s.ok()) {
        ASSERT_EQ(hides ? "new" : ValueOf(0), value);
        ASSERT_TRUE(failed == 0 || is_ignored);
        was_ignored |= failed > 0;
      } else {
        ASSERT_TRUE(s.IsIOError()) << s.ToString();
      }
      ASSERT_EQ(hides ? "new" : ValueOf(0), Get(KeyOf(0)));
      if (failed < failures) {
        break;
      }
    }
  }
  ASSERT_TRUE(was_ignored);
  DisableCallBacks();
}

// A Get that fails waits for the reads that it has begun, so that their memory
// can be freed.
TEST_F(DBDeltaOverlappedReadTest, FailedGetWaitsForItsBegunReads) {
  DestroyAndReopen(DeltaOptions());
  Load(1);
  EmptyCache();
  EnableCallBack("OverlappedReads::Begin:Begun",
                 [this](void*) { fs_->trouble = Trouble::kReadFails; });
  fs_->events.clear();
  std::string value;
  const Status s = db_->Get(ReadOptions(), KeyOf(0), &value);
  DisableCallBacks();
  ASSERT_TRUE(s.IsIOError()) << s.ToString();
  ASSERT_EQ("begin.delta begin.delta read.sst end.delta end.delta",
            fs_->EventsOf({".delta", ".sst"}));
  ASSERT_EQ(0, fs_->under_way);
  fs_->trouble = Trouble::kNone;
  ASSERT_EQ(ValueOf(0), Get(KeyOf(0)));
}

// Get and MultiGet return the right values if asynchronous reads are refused or
// fail, and an error if the data is corrupt.
TEST_F(DBDeltaOverlappedReadTest, ReadsSucceedWithoutAsynchronousOnes) {
  for (const Trouble trouble :
       {Trouble::kNotSupported, Trouble::kRefused, Trouble::kAtOnce,
        Trouble::kFailed, Trouble::kShort, Trouble::kOwnMemory,
        Trouble::kPollFails}) {
    SCOPED_TRACE(static_cast<int>(trouble));
    fs_->trouble = trouble;
    DestroyAndReopen(DeltaOptions());
    Load(3);
    EmptyCache();
    ASSERT_EQ(ValueOf(0), Get(KeyOf(0)));
    EmptyCache();
    ASSERT_EQ((std::vector<std::string>{ValueOf(0), ValueOf(1), ValueOf(2)}),
              MultiGet({KeyOf(0), KeyOf(1), KeyOf(2)}, /*snapshot=*/nullptr));
    ASSERT_EQ(0, fs_->under_way);
    for (int i = 0; i < DeltaAsyncReads::kMaxNotAsync; ++i) {
      EmptyCache();
      ASSERT_EQ(ValueOf(2), Get(KeyOf(2)));
    }
    // A file system that does not read asynchronously is not asked any more
    // after some attempts.
    const bool is_asked =
        trouble == Trouble::kFailed || trouble == Trouble::kShort ||
        trouble == Trouble::kOwnMemory || trouble == Trouble::kPollFails;
    ASSERT_EQ(is_asked, EventsOf({".delta"}, [this] {
                          ASSERT_EQ(ValueOf(1), Get(KeyOf(1)));
                        }).find("begin") != std::string::npos);
  }
  // Corrupt data has the same effect as for any other read: the table reader
  // may read once more (verify_and_reconstruct_read), and returns an error if
  // the data is still corrupt.
  fs_->trouble = Trouble::kNone;
  DestroyAndReopen(DeltaOptions());
  Load(1);
  fs_->trouble = Trouble::kCorrupt;
  EmptyCache();
  std::string value;
  const Status s = db_->Get(ReadOptions(), KeyOf(0), &value);
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  ASSERT_NE(std::string::npos, s.ToString().find(".delta")) << s.ToString();
  fs_->trouble = Trouble::kNone;
  EmptyCache();
  ASSERT_EQ(ValueOf(0), Get(KeyOf(0)));
}

TEST_F(DBDeltaOverlappedReadTest, ReadOptionsApplyToBegunReads) {
  DestroyAndReopen(DeltaOptions());
  Load(1);
  const auto events = [this](const ReadOptions& read_options) {
    return EventsOf({".delta"}, [&] {
      std::string value;
      const Status s = db_->Get(read_options, KeyOf(0), &value);
      if (read_options.read_tier == kBlockCacheTier) {
        ASSERT_TRUE(s.IsIncomplete()) << s.ToString();
      } else {
        ASSERT_OK(s);
        ASSERT_EQ(ValueOf(0), value);
      }
    });
  };
  ReadOptions read_options;
  read_options.verify_checksums = false;
  read_options.fill_cache = false;
  ASSERT_EQ("begin.delta begin.delta end.delta end.delta",
            events(read_options));
  // Nothing was added to the block cache.
  ASSERT_EQ("begin.delta begin.delta end.delta end.delta",
            events(read_options));
  read_options.rate_limiter_priority = Env::IO_USER;
  ASSERT_EQ("read.delta read.delta", events(read_options));
  read_options = ReadOptions();
  read_options.read_tier = kBlockCacheTier;
  ASSERT_EQ("", events(read_options));
}

TEST_F(DBDeltaOverlappedReadTest, CountersAreTheSameWithBegunReads) {
  for (const bool has_map : {false, true}) {
    std::string counts[2];
    uint64_t bytes[2] = {0, 0};
    for (const bool is_overlapped : {false, true}) {
      fs_->trouble = is_overlapped ? Trouble::kNone : Trouble::kNotSupported;
      Options options = DeltaOptions();
      options.enable_blob_files = has_map;
      options.min_blob_size = 0;
      options.enable_blob_address_map = has_map;
      // Garbage collection would move the values that are read.
      options.blob_gc_space_amp_limit = 0;
      DestroyAndReopen(options);
      Load(100);
      for (int i = 0; i < 100; i += 3) {
        ASSERT_OK(Put(KeyOf(i), "v"));
      }
      ASSERT_OK(Flush());
      for (int i = 0; i < 100; i += 6) {
        ASSERT_OK(Merge(KeyOf(i), "z"));
      }
      ASSERT_OK(Flush());
      for (int i = 0; i < 100; ++i) {
        Get(KeyOf(i));
      }
      get_perf_context()->EnablePerLevelPerfContext();
      const uint64_t before = ParallelReads();
      // Some of these keys have anchors. Key 3 is left out: its value is newer
      // than all of its operands, so its anchor is looked up needlessly, but
      // only if reads begin early.
      for (const int i : {0, 1, 50, 98}) {
        counts[is_overlapped] += Counts([&] { Get(KeyOf(i)); });
        bytes[is_overlapped] += bytes_of_blocks_;
      }
      ASSERT_EQ(before + (is_overlapped ? 4 : 0), ParallelReads());
      get_perf_context()->ClearPerLevelPerfContext();
    }
    ASSERT_EQ(counts[0], counts[1]);
    ExpectSameBlocks(bytes[0], bytes[1], 20);
  }
}

// With io_uring, where it is available, concurrent readers get right values
// while delta files are merged and collected.
TEST_F(DBDeltaOverlappedReadTest, ConcurrentReadsOfRealFilesAreRight) {
  if (!CheckFSFeatureSupport(FileSystem::Default().get(),
                             FSSupportedOps::kAsyncIO)) {
    ROCKSDB_GTEST_SKIP("No io_uring here");
    return;
  }
  for (const bool is_direct : {false, true}) {
    SCOPED_TRACE(is_direct);
    Options options = DeltaOptions();
    options.env = env_;
    options.use_direct_reads = is_direct;
    options.disable_auto_compactions = false;
    options.delta_bucket_size = 16 << 10;
    options.write_buffer_size = 64 << 10;
    Destroy(last_options_);
    const Status opened = TryReopen(options);
    if (is_direct && opened.IsInvalidArgument()) {
      ROCKSDB_GTEST_SKIP("No direct I/O here");
      return;
    }
    ASSERT_OK(opened);
    constexpr int kNumKeys = 2000;
    constexpr int kNumWriters = 2;
    // Each writer has its own keys, and each operand is the number of its
    // round.
    for (int i = 0; i < kNumKeys; ++i) {
      ASSERT_OK(Put(KeyOf(i), "0"));
    }
    ASSERT_OK(Flush());
    std::atomic<int> writers{kNumWriters};
    std::vector<std::thread> threads;
    for (int w = 0; w < kNumWriters; ++w) {
      threads.emplace_back([&, w] {
        for (int round = 1; round <= 8; ++round) {
          for (int i = w; i < kNumKeys; i += kNumWriters) {
            ASSERT_OK(Merge(KeyOf(i), std::to_string(round)));
          }
        }
        --writers;
      });
    }
    for (int r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        Random rnd(301 + r);
        int last_round = 0;
        while (writers > 0 || last_round++ < 2) {
          if (rnd.OneIn(20)) {
            EmptyCache();
          }
          std::vector<std::string> keys;
          for (int i = 0; i < 5; ++i) {
            keys.push_back(KeyOf(static_cast<int>(rnd.Uniform(kNumKeys))));
          }
          std::vector<std::string> values{Get(keys[0])};
          for (std::string& value : MultiGet(keys, /*snapshot=*/nullptr)) {
            values.push_back(std::move(value));
          }
          for (const std::string& value : values) {
            ASSERT_EQ(0u, std::string("0,1,2,3,4,5,6,7,8").find(value))
                << value;
          }
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    ASSERT_LT(0u, ParallelReads());
    for (int i = 0; i < kNumKeys; ++i) {
      ASSERT_EQ("0,1,2,3,4,5,6,7,8", Get(KeyOf(i)));
    }
    Close();
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
