//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "env/composite_env_wrapper.h"
#include "rocksdb/advanced_cache.h"
#include "rocksdb/file_system.h"
#include "rocksdb/iostats_context.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/table.h"
#include "test_util/strata/delta_db_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Base of tests whose point reads read delta files while they look for the
// value. The DB is on a file system of the test.
class DeltaReadAheadTestBase : public DeltaDBTestBase {
 protected:
  DeltaReadAheadTestBase(const std::string& path,
                         const std::shared_ptr<FileSystem>& fs)
      : DeltaDBTestBase(path),
        wrapped_env_(std::make_unique<CompositeEnvWrapper>(env_, fs)) {}
  ~DeltaReadAheadTestBase() override { Close(); }

  Options DeltaOptions() {
    Options options = DeltaDBTestBase::DeltaOptions();
    options.env = wrapped_env_.get();
    // The cache would have what was read once.
    options.delta_cache_size = 0;
    options.compression = kNoCompression;
    cache_ = NewLRUCache(size_t{8} << 20, /*num_shard_bits=*/0);
    BlockBasedTableOptions table_options;
    table_options.block_cache = cache_;
    options.table_factory.reset(NewBlockBasedTableFactory(table_options));
    return options;
  }

  static std::string KeyOf(int i) { return "key" + std::to_string(1000 + i); }

  // Writes keys [0, n), each with a value, and with operands in two delta
  // files.
  void Load(int n) {
    for (int i = 0; i < n; ++i) {
      ASSERT_OK(Put(KeyOf(i), "base" + std::to_string(i)));
    }
    ASSERT_OK(Flush());
    for (const char* operand : {"x", "y"}) {
      for (int i = 0; i < n; ++i) {
        ASSERT_OK(Merge(KeyOf(i), operand));
      }
      ASSERT_OK(Flush());
    }
    // These reads open all files.
    for (int i = 0; i < n; ++i) {
      ASSERT_EQ(ValueOf(i), Get(KeyOf(i)));
    }
  }
  static std::string ValueOf(int i) {
    return "base" + std::to_string(i) + ",x,y";
  }

  // Checks that GetMergeOperands() returns the parts of ValueOf(i).
  void CheckMergeOperands(int i) {
    std::vector<PinnableSlice> operands(10);
    GetMergeOperandsOptions merge_options;
    merge_options.expected_max_number_of_operands = 10;
    int num_operands = 0;
    ASSERT_OK(db_->GetMergeOperands(ReadOptions(), db_->DefaultColumnFamily(),
                                    KeyOf(i), operands.data(), &merge_options,
                                    &num_operands));
    ASSERT_EQ(3, num_operands);
    ASSERT_EQ("base" + std::to_string(i), operands[0].ToString());
    ASSERT_EQ("x", operands[1].ToString());
    ASSERT_EQ("y", operands[2].ToString());
  }

  // Empties the cache except for indexes and filters of open files, which are
  // in use.
  void EmptyCache() { cache_->EraseUnRefEntries(); }

  uint64_t ParallelReads() const { return Ticker(DELTA_PARALLEL_READS); }

  // Returns all counts of the thread and of the DB that `read` changes, except
  // for times and for the memory of blocks. The latter depends on the
  // allocator: a block of the same size may have a few bytes more or less in
  // the memory of another thread or at another time. Sets bytes_of_blocks_ for
  // ExpectSameBlocks().
  std::string Counts(const std::function<void()>& read) {
    // Background work would count its writes and deletions.
    EXPECT_OK(dbfull()->TEST_WaitForBackgroundWork());
    EmptyCache();
    std::map<std::string, uint64_t> before;
    EXPECT_TRUE(last_options_.statistics->getTickerMap(&before));
    get_perf_context()->Reset();
    get_iostats_context()->Reset();
    read();
    bytes_of_blocks_ = get_perf_context()->block_cache_read_byte;
    get_perf_context()->block_cache_read_byte = 0;
    std::string counts =
        get_perf_context()->ToString(/*exclude_zero_counters=*/true) + "; " +
        get_iostats_context()->ToString(/*exclude_zero_counters=*/true);
    std::map<std::string, uint64_t> after;
    EXPECT_TRUE(last_options_.statistics->getTickerMap(&after));
    for (const auto& [name, count] : after) {
      if (count != before[name] && name != "rocksdb.delta.parallel.reads" &&
          name.find(".nanos") == std::string::npos &&
          name.find(".bytes.write") == std::string::npos &&
          name.find(".bytes.insert") == std::string::npos &&
          name != "rocksdb.block.cache.bytes.read") {
        counts += "\n" + name + " " + std::to_string(count - before[name]);
      }
    }
    return counts;
  }

  // Expects that two reads took the same `count` blocks, of a kilobyte or more
  // each, out of the cache.
  static void ExpectSameBlocks(uint64_t one, uint64_t other, uint64_t count) {
    EXPECT_NEAR(static_cast<double>(one), static_cast<double>(other),
                64.0 * static_cast<double>(count));
  }

  const std::unique_ptr<Env> wrapped_env_;
  std::shared_ptr<Cache> cache_;
  uint64_t bytes_of_blocks_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
