//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_stats.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "db/db_test_util.h"
#include "db/path_layout/path_cost.h"
#include "file/random_access_file_reader.h"
#include "port/stack_trace.h"
#include "rocksdb/statistics.h"

namespace ROCKSDB_NAMESPACE {

class PathStatsTest : public DBTestBase {
 public:
  PathStatsTest() : DBTestBase("path_stats_test", /*env_do_fsync=*/false) {}
  ~PathStatsTest() override {
    Close();
    EXPECT_OK(DestroyDir(env_, dbname_ + "_1"));
  }

  // SST files are on path 0, blob files on path 1.
  Options VerticalOptions() {
    Options options = CurrentOptions();
    options.cf_paths = {{dbname_, 1 << 30}, {dbname_ + "_1", 1 << 30}};
    options.level_sst_path_ids = {0};
    options.level_blob_path_ids = {1};
    options.enable_blob_files = true;
    options.min_blob_size = 100;
    options.disable_auto_compactions = true;
    options.compression = kNoCompression;
    options.statistics = CreateDBStatistics();
    BlockBasedTableOptions table_options;
    table_options.no_block_cache = true;
    options.table_factory.reset(NewBlockBasedTableFactory(table_options));
    return options;
  }

  std::map<std::string, std::string> Map(ColumnFamilyHandle* cf = nullptr) {
    std::map<std::string, std::string> values;
    EXPECT_TRUE(
        db_->GetMapProperty(cf != nullptr ? cf : db_->DefaultColumnFamily(),
                            DB::Properties::kPathStats, &values));
    return values;
  }

  uint64_t Value(const std::string& key) {
    const auto values = Map();
    const auto it = values.find(key);
    EXPECT_NE(it, values.end()) << key;
    return it == values.end() ? 0 : std::stoull(it->second);
  }
};

TEST_F(PathStatsTest, CountsFilesAndGarbageOfEachPath) {
  DestroyAndReopen(VerticalOptions());
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put(Key(i), std::string(1000, 'v')));
  }
  ASSERT_OK(Flush());
  ASSERT_EQ(Value("path0.sst-files"), 1);
  ASSERT_GT(Value("path0.sst-bytes"), 0);
  ASSERT_EQ(Value("path0.blob-files"), 0);
  ASSERT_EQ(Value("path1.sst-files"), 0);
  ASSERT_EQ(Value("path1.sst-bytes"), 0);
  ASSERT_EQ(Value("path1.blob-files"), 1);
  const uint64_t blob_bytes = Value("path1.blob-bytes");
  ASSERT_GT(blob_bytes, 10 * 1000);
  ASSERT_EQ(Value("path1.blob-garbage-bytes"), 0);
  ASSERT_EQ(Value("path1.blob-live-bytes"), blob_bytes);

  std::string total;
  ASSERT_TRUE(db_->GetProperty(DB::Properties::kLiveBlobFileSize, &total));
  ASSERT_EQ(std::to_string(blob_bytes), total);

  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(Delete(Key(i)));
  }
  ASSERT_OK(Flush());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  const uint64_t garbage = Value("path1.blob-garbage-bytes");
  ASSERT_GT(garbage, 5 * 1000);
  ASSERT_LT(garbage, 6 * 1000);
  ASSERT_EQ(Value("path1.blob-live-bytes"), blob_bytes - garbage);

  std::string text;
  ASSERT_TRUE(db_->GetProperty(DB::Properties::kPathStats, &text));
  ASSERT_NE(text.find("blob-garbage-bytes"), std::string::npos);
  ASSERT_NE(text.find(std::to_string(garbage)), std::string::npos);
  ASSERT_NE(text.find(dbname_ + "_1\n"), std::string::npos);
  ASSERT_EQ(Map()["path1.directory"], dbname_ + "_1");
}

TEST_F(PathStatsTest, ReadsAreCountedOnceWhereTheyHappen) {
  const Options options = VerticalOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put(Key(i), std::string(1000, 'v')));
  }
  ASSERT_OK(Flush());
  // The first read also opens the blob file.
  ASSERT_EQ(Get(Key(0)).size(), 1000);

  const uint64_t sst_reads = Value("path0.sst-reads");
  const uint64_t sst_bytes = Value("path0.sst-read-bytes");
  const uint64_t blob_reads = Value("path1.blob-reads");
  const uint64_t blob_bytes = Value("path1.blob-read-bytes");
  ASSERT_GT(sst_reads, 0);
  ASSERT_GT(blob_reads, 0);
  for (int i = 1; i < 4; ++i) {
    ASSERT_EQ(Get(Key(i)).size(), 1000);
  }
  // Each Get() reads one data block and one blob.
  ASSERT_EQ(Value("path0.sst-reads"), sst_reads + 3);
  ASSERT_GT(Value("path0.sst-read-bytes"), sst_bytes);
  ASSERT_EQ(Value("path1.blob-reads"), blob_reads + 3);
  ASSERT_GE(Value("path1.blob-read-bytes"), blob_bytes + 3 * 1000);

  // MultiGet() reads several blobs at once (MultiRead).
  const std::vector<std::string> keys = {Key(5), Key(6), Key(7)};
  const std::vector<std::string> values = MultiGet(keys);
  ASSERT_EQ(values[2].size(), 1000);
  ASSERT_EQ(Value("path1.blob-reads"), blob_reads + 6);

  // Path 0 has no blob files, and path 1 has no SST files.
  ASSERT_EQ(Value("path0.blob-reads"), 0);
  ASSERT_EQ(Value("path1.sst-reads"), 0);
  ASSERT_EQ(Value("path1.sst-read-bytes"), 0);

  // The counts start at 0 when the DB is opened.
  Reopen(options);
  ASSERT_LT(Value("path1.blob-reads"), blob_reads);
}

// The counts agree with the statistics of the same reads, which include
// asynchronous reads of an iterator.
TEST_F(PathStatsTest, CountsAgreeWithStatistics) {
  Options options = VerticalOptions();
  options.enable_blob_files = false;
  options.level_sst_path_ids = {0, 1};
  options.level_blob_path_ids.clear();
  DestroyAndReopen(options);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_OK(Put(Key(i), std::string(500, 'v')));
  }
  ASSERT_OK(Flush());
  CompactRangeOptions compact_options;
  compact_options.bottommost_level_compaction =
      BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(compact_options, nullptr, nullptr));
  for (int i = 0; i < 500; ++i) {
    ASSERT_OK(Put(Key(i), std::string(500, 'w')));
  }
  ASSERT_OK(Flush());

  const auto sum = [&](const char* what) {
    return Value(std::string("path0.") + what) +
           Value(std::string("path1.") + what);
  };
  const auto bytes_in_statistics = [&]() {
    return options.statistics->getTickerCount(LAST_LEVEL_READ_BYTES) +
           options.statistics->getTickerCount(NON_LAST_LEVEL_READ_BYTES);
  };
  const uint64_t before = sum("sst-read-bytes");
  const uint64_t statistics_before = bytes_in_statistics();
  const uint64_t path0_before = Value("path0.sst-read-bytes");
  const uint64_t path1_before = Value("path1.sst-read-bytes");
  for (const bool async_io : {false, true}) {
    ReadOptions read_options;
    read_options.async_io = async_io;
    read_options.readahead_size = 16 << 10;
    std::unique_ptr<Iterator> it(db_->NewIterator(read_options));
    int count = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      ++count;
    }
    ASSERT_OK(it->status());
    ASSERT_EQ(count, 1000);
  }
  ASSERT_GT(Value("path0.sst-read-bytes"), path0_before);
  ASSERT_GT(Value("path1.sst-read-bytes"), path1_before);
  ASSERT_EQ(sum("sst-read-bytes") - before,
            bytes_in_statistics() - statistics_before);
}

TEST_F(PathStatsTest, OnePathIsNotCounted) {
  Options options = CurrentOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", "1"));
  ASSERT_OK(Flush());
  ASSERT_EQ(Get("a"), "1");
  const auto values = Map();
  ASSERT_EQ(values.at("path0.sst-files"), "1");
  ASSERT_EQ(values.count("path0.sst-reads"), 0);
  ASSERT_EQ(values.count("path1.sst-files"), 0);
  std::string text;
  ASSERT_TRUE(db_->GetProperty(DB::Properties::kPathStats, &text));
  ASSERT_EQ(text.find("sst-reads"), std::string::npos);
}

// Without an option that depends on the paths, the property is that of two
// paths without a layout.
TEST_F(PathStatsTest, NoLayoutAndNoPricesShowNeitherJobsNorCosts) {
  Options options = VerticalOptions();
  options.level_sst_path_ids.clear();
  options.level_blob_path_ids.clear();
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", std::string(1000, 'v')));
  ASSERT_OK(Flush());
  for (const auto& [key, value] : Map()) {
    EXPECT_EQ(key.find("written"), std::string::npos) << key;
    EXPECT_EQ(key.find("price"), std::string::npos) << key;
    EXPECT_EQ(key.find("cost"), std::string::npos) << key;
  }
  std::string text;
  ASSERT_TRUE(db_->GetProperty(DB::Properties::kPathStats, &text));
  // Two tables, of files and of times, each with a header and two paths.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6) << text;

  // With a layout there are jobs, but no costs.
  ASSERT_OK(dbfull()->SetOptions({{"level_sst_path_ids", "0"}}));
  EXPECT_GT(Value("path0.flush-written-bytes"), 0);
  EXPECT_EQ(Map().count("cost.sum"), 0);
  ASSERT_OK(dbfull()->SetOptions({{"level_sst_path_ids", ""}}));
  EXPECT_EQ(Map().count("path0.flush-written-bytes"), 0);
}

TEST_F(PathStatsTest, JobsCountWhatTheyWriteAndRead) {
  DestroyAndReopen(VerticalOptions());
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put(Key(i), std::string(1000, 'v')));
  }
  ASSERT_OK(Flush());
  const uint64_t sst_bytes = Value("path0.sst-bytes");
  const uint64_t blob_bytes = Value("path1.blob-bytes");
  EXPECT_EQ(Value("path0.flush-written-bytes"), sst_bytes);
  EXPECT_EQ(Value("path1.flush-written-bytes"), blob_bytes);
  EXPECT_EQ(Value("path0.compaction-written-bytes"), 0);
  EXPECT_EQ(Value("path1.compaction-written-bytes"), 0);
  EXPECT_EQ(Value("path0.compaction-job-read-bytes"), 0);

  // Reads of the application are not those of a job.
  const uint64_t read_before = Value("path1.blob-read-bytes");
  ASSERT_EQ(Get(Key(3)).size(), 1000);
  EXPECT_GT(Value("path1.blob-read-bytes"), read_before);
  EXPECT_EQ(Value("path1.compaction-job-read-bytes"), 0);

  CompactRangeOptions compact_options;
  compact_options.bottommost_level_compaction =
      BottommostLevelCompaction::kForce;
  compact_options.blob_garbage_collection_policy =
      BlobGarbageCollectionPolicy::kForce;
  compact_options.blob_garbage_collection_age_cutoff = 1;
  ASSERT_OK(db_->CompactRange(compact_options, nullptr, nullptr));
  EXPECT_EQ(Value("path0.flush-written-bytes"), sst_bytes);
  EXPECT_EQ(Value("path0.compaction-written-bytes"), Value("path0.sst-bytes"));
  EXPECT_EQ(Value("path1.compaction-written-bytes"), Value("path1.blob-bytes"));
  EXPECT_GT(Value("path0.compaction-job-read-bytes"), 0);
  EXPECT_GT(Value("path1.compaction-job-read-bytes"), 10 * 1000);
  EXPECT_EQ(Map()["path1.gc-written-bytes"], "0");
  EXPECT_EQ(Map()["path1.gc-written-share"], "0");

  // A flush during recovery counts, too.
  Options options = VerticalOptions();
  options.avoid_flush_during_shutdown = true;
  ASSERT_OK(Put(Key(11), std::string(1000, 'w')));
  Reopen(options);
  EXPECT_GT(Value("path0.flush-written-bytes"), 0);
  EXPECT_GT(Value("path1.flush-written-bytes"), 1000);
  EXPECT_EQ(Value("path0.compaction-written-bytes"), 0);
}

TEST_F(PathStatsTest, PricesShowTheCost) {
  Options options = VerticalOptions();
  options.path_prices = {1024, 256};
  DestroyAndReopen(options);
  const auto cost = [&](uint64_t on_path0, uint64_t on_path1) {
    return PathCost::Text(PathCost::Of(on_path0, 1024) +
                          PathCost::Of(on_path1, 256));
  };
  EXPECT_EQ(Map()["cost.sum"], "0");
  EXPECT_EQ(Map().count("cost.ratio"), 0);
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put(Key(i), std::string(1000, 'v')));
  }
  ASSERT_OK(Flush());
  const uint64_t sst = Value("path0.sst-bytes");
  const uint64_t blob = Value("path1.blob-bytes");
  auto values = Map();
  EXPECT_EQ(values["path0.price"], "1024");
  EXPECT_EQ(values["path0.live-file-bytes"], std::to_string(sst));
  EXPECT_EQ(values["path0.live-file-cost"], cost(sst, 0));
  EXPECT_EQ(values["path0.obsolete-bytes"], "0");
  EXPECT_EQ(values["path1.cost"], cost(0, blob));
  EXPECT_EQ(values["cost.bytes"], std::to_string(sst + blob));
  EXPECT_EQ(values["cost.sum"], cost(sst, blob));
  EXPECT_EQ(values["cost.dearest-path"], "0");
  EXPECT_EQ(values["cost.on-dearest"], cost(sst + blob, 0));
  const double ratio = std::stod(values["cost.ratio"]);
  EXPECT_GT(ratio, 0.25);
  EXPECT_LT(ratio, 0.5);

  // Files that an iterator keeps on disk cost, too.
  std::unique_ptr<Iterator> iterator(db_->NewIterator(ReadOptions()));
  CompactRangeOptions compact_options;
  compact_options.bottommost_level_compaction =
      BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(compact_options, nullptr, nullptr));
  values = Map();
  EXPECT_EQ(values["path0.obsolete-bytes"], std::to_string(sst));
  EXPECT_EQ(values["path0.obsolete-cost"], cost(sst, 0));
  EXPECT_EQ(values["path1.obsolete-bytes"], "0");
  EXPECT_EQ(values["cost.sum"],
            cost(sst + Value("path0.live-file-bytes"), blob));
  iterator.reset();
  ASSERT_OK(dbfull()->TEST_WaitForPurge());
  EXPECT_EQ(Map()["path0.obsolete-bytes"], "0");

  std::string text;
  ASSERT_TRUE(db_->GetProperty(DB::Properties::kPathStats, &text));
  EXPECT_NE(text.find("live-file-cost"), std::string::npos) << text;
  EXPECT_NE(text.find("all on path 0, the dearest: "), std::string::npos)
      << text;

  // Prices change while the DB is open.
  ASSERT_OK(dbfull()->SetOptions({{"path_prices", "0.5:1"}}));
  EXPECT_EQ(Map()["path1.price"], "1");
  EXPECT_EQ(Map()["cost.dearest-path"], "1");
  for (const char* wrong : {"1", "1:2:3", "1:-2", "nan:1", "1:inf", "x"}) {
    const Status s = dbfull()->SetOptions({{"path_prices", wrong}});
    EXPECT_TRUE(s.IsInvalidArgument()) << wrong << ": " << s.ToString();
    EXPECT_NE(s.ToString().find("path_prices"), std::string::npos)
        << s.ToString();
  }
  EXPECT_EQ(Map()["path1.price"], "1");
  ASSERT_OK(dbfull()->SetOptions({{"path_prices", ""}}));
  EXPECT_EQ(Map().count("cost.sum"), 0);
}

TEST_F(PathStatsTest, WrongPricesAreRefusedAtOpen) {
  Options options = VerticalOptions();
  DestroyAndReopen(options);
  for (const std::vector<double>& wrong : std::vector<std::vector<double>>{
           {1},
           {1, 2, 3},
           {1, -1},
           {1, std::numeric_limits<double>::quiet_NaN()}}) {
    options.path_prices = wrong;
    const Status s = TryReopen(options);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_NE(s.ToString().find("path_prices"), std::string::npos)
        << s.ToString();
  }
  // One path has one price, without a layout.
  Options single = CurrentOptions();
  single.path_prices = {0.5};
  DestroyAndReopen(single);
  ASSERT_OK(Put("a", "1"));
  ASSERT_OK(Flush());
  EXPECT_EQ(Map()["cost.ratio"], "1");
  EXPECT_EQ(Map().count("path0.flush-written-bytes"), 0);
}

// Each column family has counts of its own.
TEST_F(PathStatsTest, ColumnFamiliesAreCountedSeparately) {
  const Options options = VerticalOptions();
  DestroyAndReopen(options);
  CreateColumnFamilies({"one"}, options);
  ReopenWithColumnFamilies({kDefaultColumnFamilyName, "one"}, options);
  ASSERT_OK(Put(1, "a", std::string(1000, 'v')));
  ASSERT_OK(Flush(1));
  ASSERT_EQ(Get(1, "a").size(), 1000);
  ASSERT_EQ(Map(handles_[1])["path1.blob-files"], "1");
  ASSERT_NE(Map(handles_[1])["path1.blob-reads"], "0");
  ASSERT_EQ(Map(handles_[0])["path1.blob-files"], "0");
  ASSERT_EQ(Map(handles_[0])["path1.blob-reads"], "0");
}

// A reader may outlive the owner of the counters.
TEST_F(PathStatsTest, ReaderOutlivesOwner) {
  ASSERT_OK(WriteStringToFile(env_, "0123456789", dbname_ + "/file"));
  std::unique_ptr<RandomAccessFileReader> reader;
  ASSERT_OK(RandomAccessFileReader::Create(env_->GetFileSystem(),
                                           dbname_ + "/file", FileOptions(),
                                           &reader, nullptr));
  auto stats = std::make_shared<PathReadStats>();
  std::weak_ptr<PathReadStats> watch = stats;
  reader->SetPathReadStats(
      stats, PathReadStats::Slot(PathReadStats::FileKind::kBlob, 3));
  char scratch[10];
  Slice result;
  ASSERT_OK(reader->Read(IOOptions(), 2, 5, &result, scratch));
  ASSERT_EQ(stats->Get(PathReadStats::FileKind::kBlob, 3).reads, 1);
  ASSERT_EQ(stats->Get(PathReadStats::FileKind::kBlob, 3).bytes, 5);
  ASSERT_EQ(stats->Get(PathReadStats::FileKind::kSst, 3).reads, 0);
  // A read past the end is not counted.
  ASSERT_OK(reader->Read(IOOptions(), 10, 5, &result, scratch));
  ASSERT_EQ(stats->Get(PathReadStats::FileKind::kBlob, 3).reads, 1);
  stats.reset();
  ASSERT_FALSE(watch.expired());
  ASSERT_OK(reader->Read(IOOptions(), 0, 5, &result, scratch));
  reader.reset();
  ASSERT_TRUE(watch.expired());
  ASSERT_OK(env_->DeleteFile(dbname_ + "/file"));
}

TEST(PathReadStatsTest, ConcurrentCountsAreExact) {
  PathReadStats stats;
  std::vector<std::thread> threads;
  for (uint32_t path = 0; path < PathReadStats::kMaxPaths; ++path) {
    threads.emplace_back([&stats, path]() {
      for (int i = 0; i < 1000; ++i) {
        stats.Add(PathReadStats::Slot(PathReadStats::FileKind::kSst, path), 3);
        stats.Add(PathReadStats::Slot(PathReadStats::FileKind::kBlob, 0), 2);
        stats.Add(PathReadStats::Slot(PathReadStats::FileKind::kDelta, path),
                  5);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (uint32_t path = 0; path < PathReadStats::kMaxPaths; ++path) {
    ASSERT_EQ(stats.Get(PathReadStats::FileKind::kSst, path).reads, 1000);
    ASSERT_EQ(stats.Get(PathReadStats::FileKind::kSst, path).bytes, 3000);
    ASSERT_EQ(stats.Get(PathReadStats::FileKind::kDelta, path).reads, 1000);
    ASSERT_EQ(stats.Get(PathReadStats::FileKind::kDelta, path).bytes, 5000);
  }
  ASSERT_EQ(stats.Get(PathReadStats::FileKind::kBlob, 0).reads, 4000);
  ASSERT_EQ(stats.Get(PathReadStats::FileKind::kBlob, 0).bytes, 8000);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
