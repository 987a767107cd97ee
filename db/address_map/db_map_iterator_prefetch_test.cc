//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Which values the iterators of a column family with an address map read ahead,
// and when, and which they take from the blob cache.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "env/composite_env_wrapper.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/table.h"
#include "test_util/strata/deferred_read_test_util.h"
#include "test_util/strata/map_iterator_db_test_util.h"
#include "test_util/strata/prefixed_keys_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"

// The file system calls this before it reads asynchronously.
extern "C" bool RocksDbIOUringEnable() { return true; }

namespace ROCKSDB_NAMESPACE {

class DBMapIteratorPrefetchTest : public MapIteratorDBTestBase {
 public:
  DBMapIteratorPrefetchTest()
      : MapIteratorDBTestBase("db_map_iterator_prefetch_test") {
    // Reads are handed to other threads although they come from the page cache.
    EnableCallBack("ReadAheadGauge::OnRead:Micros", [](void* micros) {
      *static_cast<uint64_t*>(micros) = 1000000;
    });
  }
  ~DBMapIteratorPrefetchTest() override { DisableCallBacks(); }

 protected:
  // The present limit according to the comment in ReadOptions.
  static constexpr uint64_t kAutoWindow = 64;

  // Scans from the last key to the first, and returns what Scan() returns.
  static std::string ScanBackward(Iterator* iter) {
    std::string result;
    for (iter->SeekToLast(); iter->Valid(); iter->Prev()) {
      result.insert(
          0, iter->key().ToString() + "=" + iter->value().ToString() + ";");
    }
    EXPECT_OK(iter->status());
    return result;
  }
};

// As the option's comment says, reading ahead begins at the third value of a
// scan, with two reads at a time, and doubles their number up to the limit.
TEST_F(DBMapIteratorPrefetchTest, WindowDoublesUpToItsLimit) {
  constexpr int kKeys = 300;
  struct Case {
    size_t prefetch;
    uint64_t limit;
    // The number of reads that were running or unused after each start of new
    // reads.
    std::vector<uint64_t> windows;
  };
  const std::vector<Case> cases = {
      {1, 1, {1, 1, 1, 1}},
      {3, 3, {2, 3, 3, 3}},
      {7, 7, {2, 4, 7, 7, 7}},
      {kAuto, kAutoWindow, {2, 4, 8, 16, 32, 64, 64}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.prefetch);
    DestroyAndReopen(MapOptions());
    PutAndFlush(kKeys);
    ReadOptions read_options;
    read_options.blob_prefetch_count = one.prefetch;
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    std::vector<uint64_t> windows;
    uint64_t before = 0;
    int n = 0;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++n) {
      ASSERT_EQ(iter->key(), Key(n));
      ASSERT_EQ(iter->value(), Value(n));
      const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
      if (n < 2) {
        ASSERT_EQ(begun, 0);
        continue;
      }
      const uint64_t left_behind = static_cast<uint64_t>(n - 2);
      ASSERT_GT(begun, left_behind);
      ASSERT_LE(begun - left_behind, one.limit);
      if (begun != before) {
        windows.push_back(begun - left_behind);
      }
      before = begun;
    }
    ASSERT_OK(iter->status());
    EXPECT_EQ(n, kKeys);
    ASSERT_GE(windows.size(), one.windows.size());
    windows.resize(one.windows.size());
    EXPECT_EQ(windows, one.windows);
    iter.reset();
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), kKeys - 2);
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
  }
}

// If most scans end after the same number of values, a scan begins with that
// number of reads and stops there.
TEST_F(DBMapIteratorPrefetchTest, WindowBeginsWithTheUsualScanLength) {
  constexpr int kKeys = 300;
  DestroyAndReopen(MapOptions());
  PutAndFlush(kKeys);
  const auto scan = [&](Iterator* iter, int from, int n) {
    iter->Seek(Key(from));
    for (int i = from; i < from + n; ++i) {
      ASSERT_TRUE(iter->Valid());
      ASSERT_EQ(iter->key(), Key(i));
      ASSERT_EQ(iter->value(), Value(i));
      if (i + 1 < from + n) {
        iter->Next();
      }
    }
  };
  const auto read_and_wasted = [&](int from, int n, bool same_iterator) {
    const uint64_t read = Ticker(BLOB_MAP_PREFETCH_READ);
    const uint64_t wasted = Ticker(BLOB_MAP_PREFETCH_WASTED);
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    for (int i = 0; i < (same_iterator ? 20 : 1); ++i) {
      scan(iter.get(), from, n);
    }
    iter.reset();
    return std::make_pair(Ticker(BLOB_MAP_PREFETCH_READ) - read,
                          Ticker(BLOB_MAP_PREFETCH_WASTED) - wasted);
  };
  using Reads = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(read_and_wasted(0, 50, false), Reads(95, 47));
  for (int i = 0; i < 20; ++i) {
    read_and_wasted(i, 50, false);
  }
  // Lengths 48 to 51 are in one bucket of ScanLengthHistogram.
  EXPECT_EQ(read_and_wasted(20, 50, false), Reads(51, 1));
  EXPECT_EQ(read_and_wasted(20, 50, true), Reads(20 * 51, 20));
  // Longer scans are not harmed.
  EXPECT_EQ(read_and_wasted(0, kKeys, false), Reads(kKeys, 0));
  // With an explicit limit the usual scan length is not used.
  ReadOptions limited;
  limited.blob_prefetch_count = 64;
  std::unique_ptr<Iterator> iter(db_->NewIterator(limited));
  const uint64_t read = Ticker(BLOB_MAP_PREFETCH_READ);
  scan(iter.get(), 0, 2);
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), read);
  iter.reset();
  // After enough seeks for one value each, nothing is read ahead.
  for (int i = 0; i < 200; ++i) {
    read_and_wasted(i, 1, false);
  }
  EXPECT_EQ(read_and_wasted(0, 1, true), Reads(0, 0));
}

// A scan waits for the first value that is read ahead, anyway. So its thread
// reads the first values, all at the same time, unless they are large, or the
// scan is at an inline value.
TEST_F(DBMapIteratorPrefetchTest, ScanningThreadReadsTheFirstSmallValues) {
  constexpr int kKeys = 100;
  constexpr int kLength = 50;
  const auto fs =
      std::make_shared<DeferredReadFileSystem>(env_->GetFileSystem());
  const std::unique_ptr<Env> env(new CompositeEnvWrapper(env_, fs));
  enum class Case { kSmall, kLarge, kInlineFirst };
  for (const Case c : {Case::kSmall, Case::kLarge, Case::kInlineFirst}) {
    SCOPED_TRACE(static_cast<int>(c));
    Options options = MapOptions();
    options.env = env.get();
    DestroyAndReopen(options);
    const auto value_of = [&](int i) {
      return c == Case::kInlineFirst && i == 2
                 ? "inline"
                 : Value(i) + std::string(c == Case::kLarge ? 8000 : 100, 'v');
    };
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_OK(Put(Key(i), value_of(i)));
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    for (int i = 0; i < 100; ++i) {
      Blobs()->scan_lengths()->Add(kLength);
    }
    std::atomic<int> num_own{0};
    const std::thread::id own = std::this_thread::get_id();
    EnableCallBack("BlobReadGroup::BeginAsync", [&](void*) {
      num_own += std::this_thread::get_id() == own ? 1 : 0;
    });
    ReadOptions read_options;
    if (c == Case::kInlineFirst) {
      read_options.blob_prefetch_count = 64;  // from the third value on
    }
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    iter->Seek(Key(0));
    for (int i = 0; i < kLength; ++i) {
      ASSERT_TRUE(iter->Valid());
      ASSERT_EQ(iter->value(), value_of(i));
      if (i + 1 < kLength) {
        iter->Next();
      }
    }
    iter.reset();
    EXPECT_EQ(num_own, c == Case::kSmall ? 2 : 0);
  }
  DisableCallBacks();
  Close();
}

TEST_F(DBMapIteratorPrefetchTest, NothingIsReadAheadIfNotUseful) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(100);
  const auto scan = [&](const ReadOptions& read_options) {
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    int n = 0;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++n) {
      ASSERT_TRUE(iter->PrepareValue());
      ASSERT_EQ(iter->value(), Value(n));
    }
    ASSERT_OK(iter->status());
    ASSERT_EQ(n, 100);
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 0);
  };
  ReadOptions off;
  off.blob_prefetch_count = 0;
  scan(off);
  ReadOptions unprepared;
  unprepared.allow_unprepared_value = true;
  scan(unprepared);
  ReadOptions tailing;
  tailing.tailing = true;
  scan(tailing);
  // Scans of two values read nothing ahead.
  const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  for (int i = 0; i < 50; ++i) {
    iter->Seek(Key(i));
    ASSERT_TRUE(iter->Valid());
    iter->Next();
    ASSERT_TRUE(iter->Valid());
    ASSERT_EQ(iter->value(), Value(i + 1));
    iter->SeekForPrev(Key(i + 1));
    ASSERT_TRUE(iter->Valid());
    iter->Prev();
    ASSERT_TRUE(iter->Valid());
    ASSERT_EQ(iter->value(), Value(i));
  }
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 0);
}

// With pin_data, a scan reads ahead in both directions, also after a turn, and
// all keys that it has returned stay where they are.
TEST_F(DBMapIteratorPrefetchTest, ScansWithPinnedDataReadAhead) {
  constexpr int kKeys = 100;
  for (const size_t limit : {size_t{3}, kAuto}) {
    SCOPED_TRACE(limit);
    Options options = MapOptions();
    // Keys of blocks can be pinned.
    BlockBasedTableOptions table_options;
    table_options.use_delta_encoding = false;
    options.table_factory.reset(NewBlockBasedTableFactory(table_options));
    DestroyAndReopen(options);
    PutAndFlush(kKeys);
    ReadOptions read_options;
    read_options.pin_data = true;
    read_options.blob_prefetch_count = limit;
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    std::vector<std::pair<int, Slice>> keys;
    const auto visit = [&](int n) {
      ASSERT_TRUE(iter->Valid());
      ASSERT_EQ(iter->key(), Key(n));
      ASSERT_EQ(iter->value(), Value(n));
      std::string pinned;
      ASSERT_OK(iter->GetProperty("rocksdb.iterator.is-key-pinned", &pinned));
      ASSERT_EQ(pinned, "1");
      keys.emplace_back(n, iter->key());
    };
    for (int round = 0; round < 2; ++round) {
      uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
      iter->SeekToFirst();
      for (int n = 0; n < kKeys; ++n, iter->Next()) {
        ASSERT_NO_FATAL_FAILURE(visit(n));
      }
      ASSERT_FALSE(iter->Valid());
      EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ), begun + kKeys - 2);
      begun = Ticker(BLOB_MAP_PREFETCH_READ);
      iter->SeekToLast();
      for (int n = kKeys - 1; n >= 0; --n, iter->Prev()) {
        ASSERT_NO_FATAL_FAILURE(visit(n));
      }
      ASSERT_FALSE(iter->Valid());
      EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ), begun + kKeys - 2);
      // A seek after a backward scan, and a turn within the scan.
      begun = Ticker(BLOB_MAP_PREFETCH_READ);
      iter->Seek(Key(50));
      for (int n = 50; n < 60; ++n, iter->Next()) {
        ASSERT_NO_FATAL_FAILURE(visit(n));
      }
      EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ), begun + 8);
      for (int n = 60; n > 30; --n, iter->Prev()) {
        ASSERT_NO_FATAL_FAILURE(visit(n));
      }
    }
    ASSERT_OK(iter->status());
    for (const auto& [n, key] : keys) {
      ASSERT_EQ(key, Key(n));
    }
  }
}

// Backward scans read ahead as forward ones do.
TEST_F(DBMapIteratorPrefetchTest, BackwardScansReadAhead) {
  constexpr int kKeys = 300;
  for (const size_t limit : {size_t{1}, size_t{3}, kAuto}) {
    SCOPED_TRACE(limit);
    DestroyAndReopen(MapOptions());
    PutAndFlush(kKeys);
    ReadOptions read_options;
    read_options.blob_prefetch_count = limit;
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    uint64_t most = 0;
    int n = 0;
    for (iter->SeekToLast(); iter->Valid(); iter->Prev(), ++n) {
      ASSERT_EQ(iter->key(), Key(kKeys - 1 - n));
      ASSERT_EQ(iter->value(), Value(kKeys - 1 - n));
      const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
      ASSERT_EQ(begun > 0, n >= 2);
      if (n >= 2) {
        // DBIter has left the entry of the value.
        most = std::max(most, begun - static_cast<uint64_t>(n - 1));
      }
    }
    ASSERT_OK(iter->status());
    EXPECT_EQ(n, kKeys);
    EXPECT_EQ(most, limit == kAuto ? kAutoWindow : limit);
    iter.reset();
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), kKeys - 2);
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
  }
}

// A backward scan begins with the usual number of values, and does not read
// beyond it.
TEST_F(DBMapIteratorPrefetchTest, BackwardScansHaveTheUsualLength) {
  constexpr int kKeys = 300;
  DestroyAndReopen(MapOptions());
  PutAndFlush(kKeys);
  const auto scan = [&](int from, int n) {
    const uint64_t read = Ticker(BLOB_MAP_PREFETCH_READ);
    const uint64_t wasted = Ticker(BLOB_MAP_PREFETCH_WASTED);
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    iter->SeekForPrev(Key(from));
    for (int i = 0; i < n; ++i) {
      EXPECT_TRUE(iter->Valid());
      EXPECT_EQ(iter->key(), Key(from - i));
      EXPECT_EQ(iter->value(), Value(from - i));
      if (i + 1 < n) {
        iter->Prev();
      }
    }
    iter.reset();
    return std::make_pair(Ticker(BLOB_MAP_PREFETCH_READ) - read,
                          Ticker(BLOB_MAP_PREFETCH_WASTED) - wasted);
  };
  using Reads = std::pair<uint64_t, uint64_t>;
  for (int i = 0; i < 20; ++i) {
    scan(200 + i, 50);
  }
  // Lengths 48 to 51 are in one bucket of ScanLengthHistogram.
  EXPECT_EQ(scan(220, 50), Reads(51, 1));
  for (int i = 0; i < 200; ++i) {
    scan(50 + i, 1);
  }
  EXPECT_EQ(scan(220, 1), Reads(0, 0));
}

// DBIter seeks a key of many versions, visible or not, when it moves backward.
// No read is lost by that, and the versions of a key count as one value.
TEST_F(DBMapIteratorPrefetchTest, BackwardScansPassKeysOfManyVersions) {
  constexpr int kKeys = 200;
  constexpr int kVersions = 12;
  for (const bool is_flushed : {false, true}) {
    for (const int num_visible : {0, 5, kVersions}) {
      SCOPED_TRACE(is_flushed * 100 + num_visible);
      Options options = MapOptions();
      options.max_sequential_skip_in_iterations = 4;
      DestroyAndReopen(options);
      PutAndFlush(kKeys);
      std::vector<std::unique_ptr<ManagedSnapshot>> snapshots;
      for (int version = 0; version <= kVersions; ++version) {
        for (int i = 50; i < kKeys && version > 0; i += 50) {
          ASSERT_OK(Put(Key(i), Value(1000 * version + i)));
        }
        snapshots.push_back(std::make_unique<ManagedSnapshot>(db_.get()));
      }
      if (is_flushed) {
        ASSERT_OK(Flush());
      }
      ReadOptions read_options;
      read_options.snapshot = snapshots[num_visible]->snapshot();
      const uint64_t read = Ticker(BLOB_MAP_PREFETCH_READ);
      const uint64_t wasted = Ticker(BLOB_MAP_PREFETCH_WASTED);
      std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      int n = kKeys;
      for (iter->SeekToLast(); iter->Valid(); iter->Prev()) {
        --n;
        ASSERT_EQ(iter->key(), Key(n));
        ASSERT_EQ(iter->value(),
                  Value(n > 0 && n % 50 == 0 ? 1000 * num_visible + n : n));
      }
      ASSERT_OK(iter->status());
      EXPECT_EQ(n, 0);
      iter.reset();
      EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ) - read, kKeys - 20);
      EXPECT_LE(Ticker(BLOB_MAP_PREFETCH_READ) - read, kKeys - 2);
      EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED) - wasted, 0);
      // A value for each seek: the versions are not values of a long scan.
      for (int i = 0; i < 50; ++i) {
        iter.reset(db_->NewIterator(read_options));
        iter->SeekForPrev(Key(50));
        ASSERT_TRUE(iter->Valid());
      }
      const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
      iter.reset(db_->NewIterator(read_options));
      iter->SeekForPrev(Key(20));
      ASSERT_EQ(iter->value(), Value(20));
      EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), begun);
    }
  }
}

// An entry at which a scan turns is gone, as nothing needed its value any more:
// the child sought it because it had been ahead.
TEST_F(DBMapIteratorPrefetchTest, ScanTurnsAtAnEntryThatIsGone) {
  for (const bool forward : {false, true}) {
    SCOPED_TRACE(forward);
    DestroyAndReopen(MapOptions());
    PutAndFlush(10);
    const int edge = forward ? 9 : 0;
    ASSERT_OK(db_->DeleteRange(WriteOptions(), Key(edge), Key(edge + 1)));
    ASSERT_OK(Flush());
    ReadOptions read_options;
    read_options.ignore_range_deletions = true;
    read_options.blob_prefetch_count = 7;
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    if (forward) {
      for (iter->SeekToFirst(); iter->key() != Key(8); iter->Next()) {
        ASSERT_TRUE(iter->Valid());
      }
    } else {
      for (iter->SeekToLast(); iter->key() != Key(1); iter->Prev()) {
        ASSERT_TRUE(iter->Valid());
      }
    }
    ASSERT_OK(ForceCompaction());
    WaitForJobs();
    if (forward) {
      iter->Prev();
    } else {
      iter->Next();
    }
    ASSERT_TRUE(iter->Valid()) << iter->status().ToString();
    EXPECT_EQ(iter->key(), Key(forward ? 7 : 2));
    EXPECT_EQ(iter->value(), Value(forward ? 7 : 2));
  }
}

// A scan may turn at any key.
TEST_F(DBMapIteratorPrefetchTest, ScansTurnBetweenReads) {
  constexpr int kKeys = 200;
  DestroyAndReopen(MapOptions());
  PutAndFlush(kKeys);
  for (int turn = 1; turn < 30; ++turn) {
    SCOPED_TRACE(turn);
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    int at = 100;
    if (turn % 2 == 0) {
      iter->Seek(Key(at));
    } else {
      iter->SeekForPrev(Key(at));
    }
    for (int leg = 0; leg < 5; ++leg) {
      const bool forward = (leg + turn) % 2 == 0;
      for (int i = 0; i < turn + leg; ++i) {
        ASSERT_TRUE(iter->Valid());
        ASSERT_EQ(iter->key(), Key(at));
        ASSERT_EQ(iter->value(), Value(at));
        if (forward) {
          iter->Next();
          ++at;
        } else {
          iter->Prev();
          --at;
        }
      }
    }
    ASSERT_TRUE(iter->Valid());
    ASSERT_EQ(iter->key(), Key(at));
    ASSERT_EQ(iter->value(), Value(at));
  }
}

// At most 4 MiB of values are read ahead.
TEST_F(DBMapIteratorPrefetchTest, WindowHasAtMost4MiB) {
  constexpr int kKeys = 20;
  constexpr size_t kSize = 1 << 20;
  Options options = MapOptions();
  options.write_buffer_size = 100 << 20;
  DestroyAndReopen(options);
  WriteOptions no_wal;
  no_wal.disableWAL = true;
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(
        Put(Key(i), std::string(kSize, static_cast<char>('a' + i)), no_wal));
  }
  ASSERT_OK(Flush());
  for (const bool forward : {true, false}) {
    SCOPED_TRACE(forward);
    const uint64_t before = Ticker(BLOB_MAP_PREFETCH_READ);
    const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    uint64_t most = 0;
    int n = 0;
    for (forward ? iter->SeekToFirst() : iter->SeekToLast(); iter->Valid();
         forward ? iter->Next() : iter->Prev(), ++n) {
      const int key = forward ? n : kKeys - 1 - n;
      ASSERT_EQ(iter->value(),
                std::string(kSize, static_cast<char>('a' + key)));
      const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ) - before;
      // DBIter has left the entry of a value if it moves backward.
      const int left = forward ? n - 2 : n - 1;
      if (n >= 2) {
        most = std::max(most, begun - static_cast<uint64_t>(left));
      }
    }
    ASSERT_OK(iter->status());
    EXPECT_EQ(n, kKeys);
    EXPECT_EQ(most, (4 << 20) / kSize);
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
  }
}

// The queue holds copies of the inline values between those that are read.
TEST_F(DBMapIteratorPrefetchTest, ManyLargeInlineValuesEndTheReadAhead) {
  constexpr int kBegin = 3;
  constexpr size_t kLarge = 70 << 10;
  ReadOptions read_options;
  read_options.blob_prefetch_count = 64;
  for (const size_t size : {size_t{100}, size_t{60} << 10}) {
    Options options = MapOptions();
    options.min_blob_size = 64 << 10;
    DestroyAndReopen(options);
    const auto is_inline = [&](int i) { return i >= kBegin && i < 23; };
    for (int i = 0; i < 30; ++i) {
      ASSERT_OK(Put(Key(i), std::string(is_inline(i) ? size : kLarge, 'v')));
    }
    ASSERT_OK(Flush());
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    iter->SeekToFirst();
    iter->Next();
    iter->Next();
    ASSERT_TRUE(iter->Valid());
    // The value at which the scan is, and the one behind the inline values.
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), size > 1000 ? 1 : 2) << size;
    int n = 2;
    for (; iter->Valid(); iter->Next(), ++n) {
      ASSERT_EQ(iter->key(), Key(n));
      ASSERT_EQ(iter->value().size(), is_inline(n) ? size : kLarge);
    }
    ASSERT_OK(iter->status());
    EXPECT_EQ(n, 30);
  }
}

// The limit of inline values does not keep back the reads of the values before
// them.
TEST_F(DBMapIteratorPrefetchTest, ValuesBeforeLargeInlineValuesAreRead) {
  constexpr int kKeys = 30;
  Options options = MapOptions();
  options.min_blob_size = 64 << 10;
  DestroyAndReopen(options);
  for (int i = 0; i < kKeys; ++i) {
    const int size = i % 10 < 2 ? 70 : 60;  // KiB
    ASSERT_OK(Put(Key(i), std::string(size << 10, 'v')));
  }
  ASSERT_OK(Flush());
  for (int i = 0; i < 100; ++i) {
    Blobs()->scan_lengths()->Add(50);
  }
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  iter->Seek(Key(0));
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 2);
  int n = 0;
  for (; iter->Valid(); iter->Next(), ++n) {
    ASSERT_EQ(iter->key(), Key(n));
    ASSERT_EQ(iter->value().size(), (n % 10 < 2 ? 70 : 60) << 10);
  }
  ASSERT_OK(iter->status());
  EXPECT_EQ(n, kKeys);
  iter.reset();
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 6);
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
}

// The limit of 4 MiB leaves entries in the queue whose values were not looked
// up. A scan that moves to them, past them or away from them goes on with the
// right entries.
TEST_F(DBMapIteratorPrefetchTest, ScansMoveAmongEntriesBehindTheLimit) {
  constexpr int kKeys = 20;
  constexpr size_t kSize = 1 << 20;
  Options options = MapOptions();
  options.write_buffer_size = 100 << 20;
  DestroyAndReopen(options);
  WriteOptions no_wal;
  no_wal.disableWAL = true;
  const auto value_of = [&](int i) {
    return std::string(kSize, static_cast<char>('a' + i));
  };
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(db_->Put(no_wal, Key(i), value_of(i)));
  }
  ASSERT_OK(Flush());
  for (int i = 0; i < 100; ++i) {
    Blobs()->scan_lengths()->Add(50);
  }
  const auto check = [&](Iterator* iter, int from) {
    int n = from;
    for (; iter->Valid(); iter->Next(), ++n) {
      ASSERT_EQ(iter->key(), Key(n));
      ASSERT_EQ(iter->value(), value_of(n));
    }
    ASSERT_OK(iter->status());
    ASSERT_EQ(n, kKeys);
  };
  for (const int target : {0, 3, 5, 9, 14, kKeys}) {
    for (const int from : {0, 2}) {
      SCOPED_TRACE(std::to_string(from) + " " + std::to_string(target));
      std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
      iter->Seek(Key(from));
      ASSERT_EQ(iter->value(), value_of(from));
      iter->Seek(Key(target));
      check(iter.get(), target);
      iter->Seek(Key(from));
      iter->SeekForPrev(Key(target));
      const int last = std::min(target, kKeys - 1);
      ASSERT_EQ(iter->value(), value_of(last));
      check(iter.get(), last);
      iter->Seek(Key(from + 1));
      iter->Prev();
      ASSERT_EQ(iter->value(), value_of(from));
      check(iter.get(), from);
    }
  }
}

// Each value that was read ahead and is not used is counted once.
TEST_F(DBMapIteratorPrefetchTest, WastedReadsAreCountedOnce) {
  constexpr int kSteps = 20;
  for (const char* how :
       {"seek", "seek back", "seek for prev", "first", "last", "prev",
        "refresh", "refresh with a new SuperVersion", "delete"}) {
    SCOPED_TRACE(how);
    const std::string what = how;
    DestroyAndReopen(MapOptions());
    PutAndFlush(300);
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    iter->SeekToFirst();
    for (int i = 0; i < kSteps; ++i) {
      ASSERT_TRUE(iter->Valid());
      iter->Next();
    }
    ASSERT_TRUE(iter->Valid());
    EXPECT_EQ(iter->value(), Value(kSteps));
    // All values that the scan has reached, except for the first two.
    constexpr uint64_t kUsed = kSteps - 1;
    const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
    ASSERT_GT(begun, kUsed);
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
    if (what == "seek") {
      iter->Seek(Key(200));
      EXPECT_EQ(iter->value(), Value(200));
    } else if (what == "seek back") {
      iter->Seek(Key(kSteps - 5));
      EXPECT_EQ(iter->value(), Value(kSteps - 5));
    } else if (what == "seek for prev") {
      iter->SeekForPrev(Key(kSteps + 1));
      EXPECT_EQ(iter->value(), Value(kSteps + 1));
    } else if (what == "first") {
      iter->SeekToFirst();
      EXPECT_EQ(iter->value(), Value(0));
    } else if (what == "last") {
      iter->SeekToLast();
      EXPECT_EQ(iter->value(), Value(299));
    } else if (what == "prev") {
      iter->Prev();
      EXPECT_EQ(iter->value(), Value(kSteps - 1));
    } else if (what == "refresh") {
      ASSERT_OK(iter->Refresh());
    } else if (what == "refresh with a new SuperVersion") {
      ASSERT_OK(Put("new", "value"));
      ASSERT_OK(Flush());
      ASSERT_OK(iter->Refresh());
    } else {
      iter.reset();
    }
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), begun - kUsed);
    iter.reset();
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED),
              Ticker(BLOB_MAP_PREFETCH_READ) - kUsed);
  }
}

// No value behind the end of the scan is read if the options say where the end
// is.
TEST_F(DBMapIteratorPrefetchTest, ReadAheadEndsWithTheRange) {
  Options options = MapOptions();
  options.prefix_extractor.reset(
      NewFixedPrefixTransform(PrefixedKeys::kPrefixSize));
  for (const int variant : {0, 1, 2, 3}) {
    const bool by_prefix = variant % 2 == 1;
    const bool forward = variant < 2;
    SCOPED_TRACE(variant);
    options.statistics = CreateDBStatistics();
    DestroyAndReopen(options);
    for (int prefix = 0; prefix < 20; ++prefix) {
      for (int i = 0; i < 10; ++i) {
        ASSERT_OK(Put(PrefixedKeys::Of(prefix, i), Value(100 * prefix + i)));
      }
    }
    ASSERT_OK(Flush());
    const std::string begin = PrefixedKeys::Of(5, 0);
    const std::string end = PrefixedKeys::Of(6, 0);
    const Slice lower = begin;
    const Slice upper = end;
    ReadOptions read_options;
    if (by_prefix) {
      read_options.prefix_same_as_start = true;
    } else {
      read_options.total_order_seek = true;
      read_options.iterate_lower_bound = &lower;
      read_options.iterate_upper_bound = &upper;
    }
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    uint64_t begun = 0;
    for (int first = 0; first < 10; ++first) {
      SCOPED_TRACE(first);
      if (by_prefix && first == 8) {
        continue;  // see ShortPrefixNeedsNoReadAhead
      }
      int i = first;
      if (forward) {
        for (iter->Seek(PrefixedKeys::Of(5, first)); iter->Valid();
             iter->Next(), ++i) {
          ASSERT_EQ(iter->key(), PrefixedKeys::Of(5, i));
          ASSERT_EQ(iter->value(), Value(500 + i));
        }
      } else {
        for (iter->SeekForPrev(PrefixedKeys::Of(5, 9 - first)); iter->Valid();
             iter->Prev(), ++i) {
          ASSERT_EQ(iter->key(), PrefixedKeys::Of(5, 9 - i));
          ASSERT_EQ(iter->value(), Value(509 - i));
        }
      }
      ASSERT_OK(iter->status());
      EXPECT_EQ(i, 10);
      // The first two values are not read ahead.
      begun += static_cast<uint64_t>(std::max(0, 10 - first - 2));
      EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), begun);
      EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
    }
    iter.reset();
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
  }
}

// A scan of a prefix with two values is over when reading ahead would begin.
TEST_F(DBMapIteratorPrefetchTest, ShortPrefixNeedsNoReadAhead) {
  Options options = MapOptions();
  options.prefix_extractor.reset(
      NewFixedPrefixTransform(PrefixedKeys::kPrefixSize));
  DestroyAndReopen(options);
  for (int prefix = 0; prefix < 20; ++prefix) {
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(Put(PrefixedKeys::Of(prefix, i), Value(100 * prefix + i)));
    }
  }
  ASSERT_OK(Flush());
  ReadOptions read_options;
  read_options.prefix_same_as_start = true;
  const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  for (int prefix = 0; prefix < 19; ++prefix) {
    int i = 0;
    for (iter->Seek(PrefixedKeys::Of(prefix, 0)); iter->Valid();
         iter->Next(), ++i) {
      ASSERT_EQ(iter->value(), Value(100 * prefix + i));
    }
    ASSERT_OK(iter->status());
    ASSERT_EQ(i, 2);
  }
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 0);
}

// A seek does not use values that were read ahead up to another upper bound, or
// from files that were chosen for another prefix.
TEST_F(DBMapIteratorPrefetchTest, SeekIntoAnotherRangeUsesNoEarlierReads) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(100);
  ASSERT_FALSE(HasFatalFailure());
  std::string end = Key(10);
  Slice upper = end;
  ReadOptions bounded;
  bounded.iterate_upper_bound = &upper;
  std::unique_ptr<Iterator> iter(db_->NewIterator(bounded));
  iter->Seek(Key(0));
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(iter->Valid());
    iter->Next();
  }
  // All values up to the bound have been read.
  ASSERT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 8);
  end = Key(50);
  upper = end;
  int n = 7;
  for (iter->Seek(Key(n)); iter->Valid(); iter->Next(), ++n) {
    ASSERT_EQ(iter->key(), Key(n));
    ASSERT_EQ(iter->value(), Value(n));
  }
  ASSERT_OK(iter->status());
  EXPECT_EQ(n, 50);
  iter.reset();

  Options options = MapOptions();
  options.prefix_extractor.reset(
      NewFixedPrefixTransform(PrefixedKeys::kPrefixSize));
  BlockBasedTableOptions table;
  table.filter_policy.reset(NewBloomFilterPolicy(10));
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  DestroyAndReopen(options);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(Put(PrefixedKeys::Of(5, i), Value(i)));
  }
  for (int i = 1; i < 10; i += 2) {
    ASSERT_OK(Put(PrefixedKeys::Of(6, i), Value(i)));
  }
  ASSERT_OK(Flush());
  for (int i = 0; i < 10; i += 2) {
    ASSERT_OK(Put(PrefixedKeys::Of(6, i), Value(i)));
  }
  ASSERT_OK(Flush());
  iter.reset(db_->NewIterator(ReadOptions()));
  iter->Seek(PrefixedKeys::Of(5, 0));
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(iter->Valid());
    iter->Next();
  }
  ASSERT_GT(Ticker(BLOB_MAP_PREFETCH_READ), 0);
  n = 0;
  for (iter->Seek(PrefixedKeys::Of(6, 0)); iter->Valid(); iter->Next(), ++n) {
    ASSERT_EQ(iter->key(), PrefixedKeys::Of(6, n));
    ASSERT_EQ(iter->value(), Value(n));
  }
  ASSERT_OK(iter->status());
  EXPECT_EQ(n, 10);
}

// The values that a scan reads ahead are moved to another blob file after the
// scan has looked them up and before they are read. The file stays until they
// are read.
TEST_F(DBMapIteratorPrefetchTest, ReadAheadKeepsABlobFileThatIsCollected) {
  constexpr int kKeys = 20;
  DestroyAndReopen(MapOptions());
  PutAndFlush(kKeys);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<BlobMetaData> files = BlobFiles();
  ASSERT_EQ(files.size(), 1);
  ASSERT_OK(Delete(Key(kKeys - 1)));
  ASSERT_OK(Flush());
  WaitForJobs();
  ReadOptions read_options;
  read_options.blob_prefetch_count = 64;
  std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  iter->SeekToFirst();
  int n = 0;
  for (; n < 2; ++n) {
    ASSERT_TRUE(iter->Valid());
    EXPECT_EQ(iter->value(), Value(n));
    iter->Next();
  }
  // Two values are read ahead. The next step begins a second read, which waits.
  EventCount moved;
  for (const char* point :
       {"BlobReadGroup::Read", "BlobReadGroup::BeginAsync"}) {
    EnableCallBack(point, [&](void*) { EXPECT_TRUE(moved.WaitFor(1)); });
  }
  iter->Next();
  ++n;
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 5);
  EXPECT_OK(db_->CollectBlobGarbage(CollectBlobGarbageOptions()));
  WaitForJobs();
  ASSERT_EQ(BlobFiles().size(), 1);
  EXPECT_NE(BlobFiles()[0].blob_file_number, files[0].blob_file_number);
  EXPECT_EQ(FilesOnDisk(kBlobFile).count(files[0].blob_file_number), 1);
  moved.Add();
  for (; iter->Valid(); iter->Next(), ++n) {
    EXPECT_EQ(iter->key(), Key(n));
    EXPECT_EQ(iter->value(), Value(n));
  }
  EXPECT_OK(iter->status());
  EXPECT_EQ(n, kKeys - 1);
  iter.reset();
  DisableCallBacks();
}

// Values that the scan does not see are not read ahead.
TEST_F(DBMapIteratorPrefetchTest, HiddenValuesAreNotReadAhead) {
  constexpr int kKeys = 200;
  DestroyAndReopen(MapOptions());
  PutAndFlush(kKeys);
  std::string before;
  for (int i = 0; i < kKeys; ++i) {
    before += Key(i) + "=" + Value(i) + ";";
  }
  ManagedSnapshot snapshot(db_.get());
  // The memtable overwrites some values, deletes others, and covers a range.
  std::string after;
  ASSERT_OK(db_->DeleteRange(WriteOptions(), Key(100), Key(120)));
  uint64_t visible_in_files = 0;
  for (int i = 0; i < kKeys; ++i) {
    if (i % 4 == 1) {
      ASSERT_OK(Put(Key(i), Value(1000 + i)));
      after += Key(i) + "=" + Value(1000 + i) + ";";
    } else if (i % 4 == 3) {
      ASSERT_OK(Delete(Key(i)));
    } else if (i < 100 || i >= 120) {
      after += Key(i) + "=" + Value(i) + ";";
      ++visible_in_files;
    }
  }
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  EXPECT_EQ(Scan(iter.get()), after);
  iter.reset();
  EXPECT_LE(Ticker(BLOB_MAP_PREFETCH_READ), visible_in_files);
  EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ), visible_in_files - 3);
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
  uint64_t forward = Ticker(BLOB_MAP_PREFETCH_READ);
  iter.reset(db_->NewIterator(ReadOptions()));
  EXPECT_EQ(ScanBackward(iter.get()), after);
  iter.reset();
  EXPECT_LE(Ticker(BLOB_MAP_PREFETCH_READ) - forward, visible_in_files);
  EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ) - forward, visible_in_files - 3);
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);

  // At the snapshot only the first versions are read; the others are too new.
  ASSERT_OK(Flush());
  const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
  ReadOptions read_options;
  read_options.snapshot = snapshot.snapshot();
  iter.reset(db_->NewIterator(read_options));
  EXPECT_EQ(Scan(iter.get()), before);
  iter.reset();
  EXPECT_LE(Ticker(BLOB_MAP_PREFETCH_READ) - begun, uint64_t{kKeys});
  EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ) - begun, uint64_t{kKeys} - 3);
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
  forward = Ticker(BLOB_MAP_PREFETCH_READ);
  iter.reset(db_->NewIterator(read_options));
  EXPECT_EQ(ScanBackward(iter.get()), before);
  iter.reset();
  EXPECT_LE(Ticker(BLOB_MAP_PREFETCH_READ) - forward, uint64_t{kKeys});
  EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ) - forward, uint64_t{kKeys} - 3);
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
}

// The base of a merge is read ahead, too, and the read is used.
TEST_F(DBMapIteratorPrefetchTest, BasesOfMergesAreReadAhead) {
  constexpr int kKeys = 200;
  DestroyAndReopen(MapOptions());
  PutAndFlush(kKeys);
  std::string expected;
  for (int i = 0; i < kKeys; ++i) {
    expected += Key(i) + "=" + Value(i);
    if (i % 2 == 1) {
      ASSERT_OK(Merge(Key(i), "one"));
      ASSERT_OK(Merge(Key(i), "two"));
      expected += ",one,two";
    }
    expected += ";";
  }
  for (int step = 0; step < 2; ++step) {
    SCOPED_TRACE(step);
    const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
    const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    EXPECT_EQ(Scan(iter.get()), expected);
    EXPECT_LE(Ticker(BLOB_MAP_PREFETCH_READ) - begun, uint64_t{kKeys});
    EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ) - begun, uint64_t{kKeys} / 2);
    const uint64_t forward = Ticker(BLOB_MAP_PREFETCH_READ);
    EXPECT_EQ(ScanBackward(iter.get()), expected);
    EXPECT_LE(Ticker(BLOB_MAP_PREFETCH_READ) - forward, uint64_t{kKeys});
    EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ) - forward, uint64_t{kKeys} / 2);
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
    ASSERT_OK(Flush());
  }
}

TEST_F(DBMapIteratorPrefetchTest, BlobCacheIsFilledAndReadByScans) {
  constexpr int kKeys = 50;
  for (const size_t prefetch : {size_t{0}, kAuto}) {
    SCOPED_TRACE(prefetch);
    Options options = MapOptions();
    options.blob_cache = NewLRUCache(8 << 20);
    // This block cache keeps its contents, even if the default one of the tests
    // is tiny.
    BlockBasedTableOptions table;
    table.block_cache = NewLRUCache(8 << 20);
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    DestroyAndReopen(options);
    PutAndFlush(kKeys);
    std::string expected;
    for (int i = 0; i < kKeys; ++i) {
      expected += Key(i) + "=" + Value(i) + ";";
    }
    ReadOptions no_io;
    no_io.read_tier = kBlockCacheTier;
    no_io.blob_prefetch_count = prefetch;
    std::unique_ptr<Iterator> iter(db_->NewIterator(no_io));
    iter->SeekToFirst();
    EXPECT_FALSE(iter->Valid());
    EXPECT_TRUE(iter->status().IsIncomplete()) << iter->status().ToString();

    ReadOptions no_fill;
    no_fill.fill_cache = false;
    no_fill.blob_prefetch_count = prefetch;
    iter.reset(db_->NewIterator(no_fill));
    EXPECT_EQ(Scan(iter.get()), expected);
    EXPECT_EQ(Ticker(BLOB_DB_CACHE_ADD), 0);

    ReadOptions fill;
    fill.blob_prefetch_count = prefetch;
    iter.reset(db_->NewIterator(fill));
    EXPECT_EQ(Scan(iter.get()), expected);
    EXPECT_EQ(Ticker(BLOB_DB_CACHE_ADD), kKeys);

    iter.reset(db_->NewIterator(no_io));
    EXPECT_EQ(Scan(iter.get()), expected);
    EXPECT_EQ(Ticker(BLOB_DB_CACHE_ADD), kKeys);
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
