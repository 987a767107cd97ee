//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Scans of several ranges of a column family with an address map.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/multi_scan.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/table.h"
#include "test_util/strata/map_iterator_db_test_util.h"
#include "test_util/strata/map_iterator_writer_test_util.h"
#include "test_util/strata/prefixed_keys_test_util.h"

// The file system calls this before it reads asynchronously.
extern "C" bool RocksDbIOUringEnable() { return true; }

namespace ROCKSDB_NAMESPACE {

class DBMapIteratorMultiScanTest : public MapIteratorDBTestBase {
 public:
  DBMapIteratorMultiScanTest()
      : MapIteratorDBTestBase("db_map_iterator_multi_scan_test") {}

 protected:
  // Returns the entries of the ranges, with a bar after each range.
  std::string ScanRanges(const ReadOptions& read_options,
                         const MultiScanArgs& args) {
    std::string result;
    const std::unique_ptr<MultiScan> scans =
        db_->NewMultiScan(read_options, db_->DefaultColumnFamily(), args);
    try {
      for (auto& scan : *scans) {
        for (auto& entry : scan) {
          result +=
              entry.first.ToString() + "=" + entry.second.ToString() + ";";
        }
        result += "|";
      }
    } catch (MultiScanException& e) {
      result += e.status().ToString();
    } catch (std::logic_error& e) {
      result += e.what();
    }
    return result;
  }

  static std::string ModelRange(const Contents& model, const std::string& begin,
                                const std::string& end) {
    std::string result;
    for (auto it = model.lower_bound(begin);
         it != model.end() && it->first < end; ++it) {
      result += it->first + "=" + it->second + ";";
    }
    return result + "|";
  }
};

TEST_F(DBMapIteratorMultiScanTest, MultiScanMatchesTheModel) {
  for (const size_t prefetch : {size_t{0}, size_t{1}, size_t{7}, kAuto}) {
    SCOPED_TRACE(prefetch);
    Options options = SmallFiles();
    // MultiScanFindsKeysWithManyVersions tests these seeks.
    options.max_sequential_skip_in_iterations = 1000;
    DestroyAndReopen(options);
    RandomWriter writer(db_.get(), db_->DefaultColumnFamily(), 31,
                        /*range_deletions=*/false);
    ReadOptions read_options;
    read_options.blob_prefetch_count = prefetch;
    for (int round = 0; round < 10; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      writer.WriteMany(80);
      RunJob(&rnd_, db_->DefaultColumnFamily());
      ASSERT_FALSE(HasFatalFailure());
      for (int trial = 0; trial < 5; ++trial) {
        std::vector<std::string> limits;
        const size_t num_limits = 2 * (1 + rnd_.Uniform(4));
        while (limits.size() < num_limits) {
          limits.push_back(PrefixedKeys::Random(&rnd_));
          std::sort(limits.begin(), limits.end());
          limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
        }
        MultiScanArgs args(BytewiseComparator());
        std::string expected;
        for (size_t i = 0; i < limits.size(); i += 2) {
          args.insert(limits[i], limits[i + 1]);
          expected += ModelRange(writer.model(), limits[i], limits[i + 1]);
        }
        ASSERT_EQ(ScanRanges(read_options, args), expected);
      }
      // The second range has no end, so there is an iterator for each range.
      const std::vector<std::string> limits = {PrefixedKeys::Of(2, 3),
                                               PrefixedKeys::Of(4, 5),
                                               PrefixedKeys::Random(&rnd_)};
      MultiScanArgs args(BytewiseComparator());
      args.insert(limits[0], limits[1]);
      args.insert(limits[2]);
      ASSERT_EQ(ScanRanges(read_options, args),
                ModelRange(writer.model(), limits[0], limits[1]) +
                    ModelRange(writer.model(), limits[2], "zzz"));
    }
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ) > 0, prefetch > 0);
  }
}

TEST_F(DBMapIteratorMultiScanTest, BackwardMultiScanReadsAhead) {
  DestroyAndReopen(SmallFiles());
  PutAndFlush(300);
  ASSERT_OK(ForceCompaction());
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<std::string> limits = {Key(10),  Key(30),  Key(100),
                                           Key(150), Key(220), Key(300)};
  MultiScanArgs args(BytewiseComparator());
  args.reverse = true;
  std::string expected;
  for (size_t i = 0; i < limits.size(); i += 2) {
    args.insert(limits[i], limits[i + 1]);
    for (int k = IdFromKey(limits[i + 1]) - 1; k >= IdFromKey(limits[i]); --k) {
      expected += Key(k) + "=" + Value(k) + ";";
    }
    expected += "|";
  }
  ReadOptions read_options;
  read_options.blob_prefetch_count = 7;
  EXPECT_EQ(ScanRanges(read_options, args), expected);
  // The first two values of each range are not read ahead.
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 20 + 50 + 80 - 3 * 2);
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
}

// DBIter seeks when it has to skip many versions of a key. By then the position
// of the scan may be far ahead, and a file that was prepared for a range does
// not go back. The scan must find all keys nevertheless.
TEST_F(DBMapIteratorMultiScanTest, MultiScanFindsKeysWithManyVersions) {
  constexpr int kKeys = 60;
  for (const size_t prefetch : {size_t{0}, size_t{7}, kAuto}) {
    SCOPED_TRACE(prefetch);
    Options options = MapOptions();
    options.max_sequential_skip_in_iterations = 3;
    BlockBasedTableOptions table;
    table.block_size = 64;
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    DestroyAndReopen(options);
    std::vector<std::unique_ptr<ManagedSnapshot>> snapshots;
    Contents model;
    for (int i = 0; i < kKeys; ++i) {
      const int versions = i % 20 == 10 ? 10 : 1;
      for (int version = 1; version <= versions; ++version) {
        model[Key(i)] = Value(100 * i + version);
        ASSERT_OK(Put(Key(i), model[Key(i)]));
        if (versions > 1) {
          snapshots.push_back(std::make_unique<ManagedSnapshot>(db_.get()));
        }
      }
    }
    ASSERT_OK(Flush());
    ReadOptions read_options;
    read_options.blob_prefetch_count = prefetch;
    MultiScanArgs args(BytewiseComparator());
    const std::vector<std::string> limits = {Key(2), Key(25), Key(26),
                                             Key(kKeys)};
    args.insert(limits[0], limits[1]);
    args.insert(limits[2], limits[3]);
    EXPECT_EQ(ScanRanges(read_options, args),
              ModelRange(model, limits[0], limits[1]) +
                  ModelRange(model, limits[2], limits[3]));
    snapshots.clear();
  }
}

// Prepare() takes the positions of the iterators of files. Entries from before
// the call, which were read ahead, must not serve the seeks after it.
TEST_F(DBMapIteratorMultiScanTest, PrepareEndsTheScanOfAnIteratorInUse) {
  constexpr int kKeys = 60;
  const std::vector<std::string> limits = {Key(7), Key(45), Key(50),
                                           Key(kKeys)};
  for (const bool two_files : {false, true}) {
    SCOPED_TRACE(two_files);
    for (const size_t prefetch : {size_t{16}, kAuto}) {
      SCOPED_TRACE(prefetch);
      Options options = MapOptions();
      // In debug builds RocksDB can prepare an iterator of a file that is in
      // use only if it has not read the block at which it is. So each key has a
      // block of its own, and the index has the keys.
      BlockBasedTableOptions table;
      table.block_size = 1;
      table.index_type = BlockBasedTableOptions::kBinarySearchWithFirstKey;
      options.table_factory.reset(NewBlockBasedTableFactory(table));
      DestroyAndReopen(options);
      PutAndFlush(kKeys);
      Contents model;
      for (int i = 0; i < kKeys; ++i) {
        model[Key(i)] = Value(i);
      }
      if (two_files) {
        for (const int i : {15, 52}) {
          model[Key(i)] = Value(100 + i);
          ASSERT_OK(Put(Key(i), model[Key(i)]));
        }
        model.erase(Key(16));
        ASSERT_OK(Delete(Key(16)));
        ASSERT_OK(Flush());
        WaitForJobs();
      }
      Slice upper_bound = limits[1];
      ReadOptions read_options;
      read_options.blob_prefetch_count = prefetch;
      read_options.iterate_upper_bound = &upper_bound;
      // Otherwise the iterator of a file looks for blocks ahead, and reads them
      // at once.
      read_options.auto_readahead_size = false;
      const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      iter->Seek(Key(0));
      for (int i = 0; i < 6; ++i) {
        ASSERT_TRUE(iter->Valid());
        iter->Next();
      }
      ASSERT_TRUE(iter->Valid());
      ASSERT_EQ(iter->key(), Key(6));
      if (prefetch != kAuto) {
        // The value of the key that is sought next was read ahead.
        ASSERT_GE(Ticker(BLOB_MAP_PREFETCH_READ), 6u);
      }
      MultiScanArgs args(BytewiseComparator());
      args.insert(limits[0], limits[1]);
      args.insert(limits[2], limits[3]);
      iter->Prepare(args);
      for (size_t i = 0; i < limits.size(); i += 2) {
        SCOPED_TRACE(limits[i]);
        upper_bound = limits[i + 1];
        std::string found;
        for (iter->Seek(limits[i]); iter->Valid(); iter->Next()) {
          found +=
              iter->key().ToString() + "=" + iter->value().ToString() + ";";
        }
        ASSERT_OK(iter->status());
        EXPECT_EQ(found + "|", ModelRange(model, limits[i], limits[i + 1]));
      }
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
