//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// DB::Properties::kStrataPrometheus of whole databases.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "db/path_layout/directory_names.h"
#include "db/strata/db_strata.h"
#include "file/sst_file_manager_impl.h"
#include "file/strata/path_faults.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "test_util/strata/history_check_test_util.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/sync_point.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A text of the format, taken apart. The constructor checks the structure.
class Exposition {
 public:
  explicit Exposition(const std::string& text) {
    std::istringstream lines(text);
    std::string help;  // the metric of the last line "# HELP"
    std::string line;
    EXPECT_TRUE(Slice(text).ends_with("\n"));
    while (std::getline(lines, line)) {
      if (Slice(line).starts_with("# HELP ")) {
        comments_.push_back(line);
        help = WordOf(line.substr(7));
        EXPECT_TRUE(types_.count(help) == 0) << line;
      } else if (Slice(line).starts_with("# TYPE ")) {
        comments_.push_back(line);
        metric_ = WordOf(line.substr(7));
        EXPECT_EQ(metric_, help);
        EXPECT_TRUE(
            types_.emplace(metric_, line.substr(8 + metric_.size())).second)
            << line;
      } else {
        AddSample(line);
      }
    }
  }

  // The lines "# HELP" and "# TYPE".
  const std::vector<std::string>& comments() const { return comments_; }
  bool HasMetric(const std::string& name) const {
    return types_.count(name) > 0;
  }
  // Returns the value of a sample; "" if there is none.
  // sample: the name, with the labels in braces.
  std::string Value(const std::string& sample) const {
    const auto found = samples_.find(sample);
    return found == samples_.end() ? "" : found->second;
  }
  const std::map<std::string, std::string>& samples() const { return samples_; }

 private:
  static std::string WordOf(const std::string& text) {
    return text.substr(0, text.find(' '));
  }

  void AddSample(const std::string& line) {
    const size_t space = line.rfind(' ');
    ASSERT_NE(space, std::string::npos) << line;
    const std::string sample = line.substr(0, space);
    const std::string name = sample.substr(0, sample.find('{'));
    // A sample stands behind the lines of its metric.
    EXPECT_TRUE(name == metric_ ||
                (types_[metric_] == "summary" &&
                 (name == metric_ + "_sum" || name == metric_ + "_count")))
        << line;
    EXPECT_TRUE(samples_.emplace(sample, line.substr(space + 1)).second)
        << line;
  }

  std::vector<std::string> comments_;
  std::string metric_;
  std::map<std::string, std::string> types_;
  std::map<std::string, std::string> samples_;
};

}  // namespace

class DBMetricsTest : public StrataDBTestBase {
 protected:
  static constexpr int kValues = 20;
  static constexpr int kOperands = 5;
  // The name of the column family that has all features, as it is, and as the
  // format writes it.
  static constexpr char kFull[] = "a \"full\"\\family\n";
  static constexpr char kEscaped[] = "cf=\"a \\\"full\\\"\\\\family\\n\"";

  DBMetricsTest() : StrataDBTestBase("db_metrics_test") {}
  ~DBMetricsTest() override {
    CloseFull();
    Close();
    EXPECT_OK(DestroyDir(env_, SecondPath()));
  }

  std::string SecondPath() const { return dbname_ + "_second"; }

  Options PlainOptions() const {
    Options options = CurrentOptions();
    options.create_if_missing = true;
    options.disable_auto_compactions = true;
    options.wal_mmap_buffer_size = 64 << 10;
    options.statistics = CreateDBStatistics();
    return options;
  }
  ColumnFamilyOptions FullOptions() const {
    ColumnFamilyOptions options(PlainOptions());
    options.enable_blob_files = true;
    options.min_blob_size = 100;
    options.blob_cache = NewLRUCache(1 << 20);
    options.enable_blob_address_map = true;
    options.blob_gc_space_amp_limit = 1.5;
    options.blob_scan_sort_budget = 0;
    options.enable_merged_value_cache = true;
    options.enable_delta_separation = true;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.cf_paths = {{dbname_, UINT64_MAX}, {SecondPath(), UINT64_MAX}};
    options.level_sst_path_ids = {0};
    options.level_blob_path_ids = {1};
    options.blob_hot_bytes = uint64_t{1} << 20;
    return options;
  }

  // Opens a DB of two column families, and fills the one with all features.
  void MakeDb(const Options& options) {
    CloseFull();
    Close();
    DestroyDir(env_, SecondPath()).PermitUncheckedError();
    DestroyAndReopen(options);
    ASSERT_OK(db_->CreateColumnFamily(FullOptions(), kFull, &full_));
    for (int i = 0; i < kValues; ++i) {
      ASSERT_OK(db_->Put(WriteOptions(), full_, "v" + std::to_string(i),
                         std::string(1000, 'v')));
    }
    for (int i = 0; i < kOperands; ++i) {
      ASSERT_OK(
          db_->Merge(WriteOptions(), full_, "m" + std::to_string(i), "o"));
    }
    ASSERT_OK(db_->Flush(FlushOptions(), full_));
    ASSERT_OK(Put("key", "value"));
    std::string value;
    ASSERT_OK(db_->Get(ReadOptions(), full_, "v0", &value));
    ASSERT_OK(db_->Get(ReadOptions(), full_, "m0", &value));
    EXPECT_EQ(value, "o");
  }
  void CloseFull() {
    if (full_ != nullptr) {
      EXPECT_OK(db_->DestroyColumnFamilyHandle(full_));
      full_ = nullptr;
    }
  }

  Exposition Read(ColumnFamilyHandle* family = nullptr) {
    std::string text;
    EXPECT_TRUE(db_->GetProperty(
        family == nullptr ? db_->DefaultColumnFamily() : family,
        DB::Properties::kStrataPrometheus, &text));
    return Exposition(text);
  }
  // Returns a sample's name of the column family with all features.
  // labels: the other labels, with a comma before them.
  static std::string Full(const std::string& metric,
                          const std::string& labels = "") {
    return "rocksdb_cf_" + metric + "{" + kEscaped + labels + "}";
  }
  std::string LabelsOfPath(int id) const {
    return ",path_id=\"" + std::to_string(id) + "\",path=\"" +
           (id == 0 ? dbname_ : SecondPath()) + "\"";
  }

  ColumnFamilyHandle* full_ = nullptr;
};

// Dashboards and alerts use the names of the list (scripts/metrics_test.py).
// With STRATA_WRITE_METRICS=1 the test writes it.
TEST_F(DBMetricsTest, ListOfMetricsIsComplete) {
  MakeDb(PlainOptions());
  const Exposition exposition = Read();
  std::string text;
  for (const std::string& line : exposition.comments()) {
    text.append(line).append("\n");
  }
  const std::string file =
      FindHistoryScripts() + "/../../contrib/prometheus/metrics.txt";
  if (std::getenv("STRATA_WRITE_METRICS") != nullptr) {
    ASSERT_OK(WriteStringToFile(env_, text, file));
  }
  std::string listed;
  ASSERT_OK(ReadFileToString(env_, file, &listed));
  std::vector<std::string> lines;
  std::istringstream in(listed);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), exposition.comments().size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i], exposition.comments()[i]);
  }
}

TEST_F(DBMetricsTest, SamplesAreThoseOfTheOtherProperties) {
  const Options options = PlainOptions();
  MakeDb(options);
  const Exposition exposition = Read();
  EXPECT_EQ(
      exposition.Value("rocksdb_number_keys_written_total"),
      std::to_string(options.statistics->getTickerCount(NUMBER_KEYS_WRITTEN)));
  EXPECT_EQ(exposition.Value("rocksdb_background_error_severity"), "0");
  EXPECT_EQ(exposition.Value("rocksdb_path_faults"), "0");
  EXPECT_EQ(exposition.Value("rocksdb_wal_buffer_capacity_bytes"), "65536");
  EXPECT_EQ(exposition.Value("rocksdb_is_write_stopped"), "0");
  EXPECT_EQ(exposition.Value("rocksdb_is_file_deletions_enabled"), "1");
  EXPECT_EQ(exposition.Value("rocksdb_num_strata_jobs{kind=\"delta\"}"), "0");
  EXPECT_EQ(exposition.Value(
                "rocksdb_cf_num_entries_active_mem_table{cf=\"default\"}"),
            "1");

  EXPECT_EQ(exposition.Value(Full("num_files_at_level", ",level=\"0\"")), "1");
  EXPECT_EQ(exposition.Value(Full("address_map_entries")),
            std::to_string(kValues));
  EXPECT_EQ(exposition.Value(Full("blob_space_amplification")), "1");
  EXPECT_EQ(exposition.Value(Full("blob_gc_space_amp_limit")), "1.5");
  EXPECT_EQ(exposition.Value(Full("hot_budget_bytes")), "1048576");
  EXPECT_EQ(exposition.Value(Full("delta_operands")),
            std::to_string(kOperands));
  EXPECT_EQ(exposition.Value(Full("delta_debt_bytes")), "0");

  const auto expect_equal =
      [&](const std::string& property,
          const std::vector<std::pair<std::string, std::string>>& pairs) {
        std::map<std::string, std::string> values;
        ASSERT_TRUE(db_->GetMapProperty(full_, property, &values));
        for (const auto& [sample, key] : pairs) {
          EXPECT_EQ(exposition.Value(sample), values[key]) << sample;
        }
      };
  expect_equal(DB::Properties::kBlobAddressMap,
               {{Full("address_map_live_bytes"), "live-bytes"},
                {Full("address_map_files"), "files"},
                {Full("address_map_memory_bytes"), "memory"},
                {Full("hot_sketch_memory_bytes"), "hot-sketch-memory"}});
  expect_equal(DB::Properties::kMergedValueCache,
               {{Full("merged_value_cache_capacity_bytes"), "capacity"},
                {Full("merged_value_cache_entries"), "entries"}});
  expect_equal(DB::Properties::kDeltaStore,
               {{Full("delta_files", ",tier=\"flushed\""), "flushed-files"},
                {Full("delta_bytes", ",tier=\"flushed\""), "flushed-bytes"},
                {Full("delta_bytes", ",tier=\"sorted\""), "sorted-bytes"},
                {Full("delta_cache_capacity_bytes"), "cache-capacity"}});
  expect_equal(
      DB::Properties::kPathStats,
      {{Full("path_sst_bytes", LabelsOfPath(0)), "path0.sst-bytes"},
       {Full("path_blob_bytes", LabelsOfPath(0)), "path0.blob-bytes"},
       {Full("path_blob_bytes", LabelsOfPath(1)), "path1.blob-bytes"},
       {Full("path_delta_files", LabelsOfPath(0)), "path0.delta-files"},
       {Full("path_misplaced_bytes", LabelsOfPath(1)), "path1.misplaced-bytes"},
       {Full("path_reads_total", LabelsOfPath(1) + ",kind=\"blob\""),
        "path1.blob-reads"},
       {Full("path_job_written_bytes_total",
             LabelsOfPath(1) + ",job=\"flush\""),
        "path1.flush-written-bytes"}});
  for (const auto& [name, property] :
       {std::make_pair("live_sst_files_size",
                       &DB::Properties::kLiveSstFilesSize),
        std::make_pair("live_blob_file_size",
                       &DB::Properties::kLiveBlobFileSize),
        std::make_pair("live_blob_file_garbage_size",
                       &DB::Properties::kLiveBlobFileGarbageSize),
        std::make_pair("total_blob_file_size",
                       &DB::Properties::kTotalBlobFileSize),
        std::make_pair("estimate_num_keys",
                       &DB::Properties::kEstimateNumKeys)}) {
    uint64_t value = 0;
    ASSERT_TRUE(db_->GetIntProperty(full_, *property, &value)) << *property;
    EXPECT_EQ(exposition.Value(Full(name)), std::to_string(value)) << name;
  }
}

// Values go home after the layout was taken away: automatic compactions are
// disabled, so they stay misplaced here.
TEST_F(DBMetricsTest, MisplacedFilesWithoutALayout) {
  MakeDb(PlainOptions());
  ASSERT_OK(db_->SetOptions(full_, {{"level_sst_path_ids", ""},
                                    {"level_blob_path_ids", ""},
                                    {"blob_hot_bytes", "0"}}));
  uint64_t misplaced = 0;
  ASSERT_TRUE(
      db_->GetIntProperty(full_, DB::Properties::kMisplacedBytes, &misplaced));
  ASSERT_GT(misplaced, 0);
  const Exposition exposition = Read();
  std::map<std::string, std::string> stats;
  ASSERT_TRUE(db_->GetMapProperty(full_, DB::Properties::kPathStats, &stats));
  uint64_t metrics = 0;
  uint64_t columns = 0;
  for (const int id : {0, 1}) {
    metrics += std::stoull(
        exposition.Value(Full("path_misplaced_bytes", LabelsOfPath(id))));
    const std::string key = "path" + std::to_string(id) + ".misplaced-bytes";
    ASSERT_EQ(stats.count(key), 1) << key;
    columns += std::stoull(stats[key]);
  }
  EXPECT_EQ(metrics, misplaced);
  EXPECT_EQ(columns, misplaced);
  // A family without a layout and misplaced files has no such columns.
  stats.clear();
  ASSERT_TRUE(db_->GetMapProperty(DB::Properties::kPathStats, &stats));
  EXPECT_EQ(stats.count("path0.misplaced-bytes"), 0);
}

TEST_F(DBMetricsTest, StatisticsAreLeftOutIfThereAreNone) {
  MakeDb(PlainOptions());
  const Exposition with_statistics = Read();
  Options options = PlainOptions();
  options.statistics = nullptr;
  MakeDb(options);
  const Exposition exposition = Read();
  EXPECT_TRUE(with_statistics.HasMetric("rocksdb_block_cache_hit_total"));
  EXPECT_TRUE(with_statistics.HasMetric("rocksdb_db_get_micros"));
  EXPECT_FALSE(exposition.HasMetric("rocksdb_block_cache_hit_total"));
  EXPECT_FALSE(exposition.HasMetric("rocksdb_db_get_micros"));
  // All else is there.
  EXPECT_EQ(exposition.comments().size() +
                2 * (size_t{TICKER_ENUM_MAX} + HISTOGRAM_ENUM_MAX),
            with_statistics.comments().size());
  EXPECT_EQ(exposition.Value(Full("address_map_entries")),
            std::to_string(kValues));
}

TEST_F(DBMetricsTest, AnyFamilyMayBeAsked) {
  MakeDb(PlainOptions());
  const Exposition of_default = Read();
  const Exposition of_full = Read(full_);
  EXPECT_EQ(of_default.comments(), of_full.comments());
  ASSERT_EQ(of_default.samples().size(), of_full.samples().size());
  EXPECT_EQ(of_default.Value(Full("estimate_num_keys")),
            of_full.Value(Full("estimate_num_keys")));
  // It is neither an integer nor a map.
  uint64_t number = 0;
  EXPECT_FALSE(db_->GetIntProperty(DB::Properties::kStrataPrometheus, &number));
  std::map<std::string, std::string> values;
  EXPECT_FALSE(db_->GetMapProperty(DB::Properties::kStrataPrometheus, &values));
}

// A second sample with the same labels would make the whole text invalid, which
// Exposition checks.
TEST_F(DBMetricsTest, DroppedFamiliesAreLeftOut) {
  MakeDb(PlainOptions());
  const std::string sample = Full("num_live_versions");
  ASSERT_OK(db_->DropColumnFamily(full_));
  EXPECT_EQ(Read().Value(sample), "");
  // The handle keeps the dropped one alive.
  ColumnFamilyHandle* again = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(ColumnFamilyOptions(), kFull, &again));
  EXPECT_EQ(Read().Value(sample), "1");
  EXPECT_FALSE(Read().HasMetric("rocksdb_cf_address_map_entries"));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(again));
}

TEST_F(DBMetricsTest, FamilyMayBeReplacedMeanwhile) {
  MakeDb(PlainOptions());
  ColumnFamilyHandle* again = nullptr;
  int num_families = 0;
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::WriteMetrics:Family", [&](void* /*arg*/) {
        if (++num_families == 2) {
          ASSERT_OK(db_->DropColumnFamily(full_));
          ASSERT_OK(
              db_->CreateColumnFamily(ColumnFamilyOptions(), kFull, &again));
        }
      });
  SyncPoint::GetInstance()->EnableProcessing();
  const Exposition exposition = Read();
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  EXPECT_EQ(num_families, 2);
  EXPECT_EQ(exposition.Value(Full("address_map_entries")),
            std::to_string(kValues));
  ASSERT_NE(again, nullptr);
  ASSERT_OK(db_->DestroyColumnFamilyHandle(again));
}

TEST_F(DBMetricsTest, FaultsOfPaths) {
  MakeDb(PlainOptions());
  PathFaults* const faults =
      static_cast<SstFileManagerImpl*>(
          dbfull()->immutable_db_options().sst_file_manager.get())
          ->path_faults();
  const std::string directory =
      CleanDirectoryName(/*fs=*/nullptr, SecondPath());
  ASSERT_TRUE(faults->Add(dbfull()->strata(), directory));
  const Exposition exposition = Read();
  ASSERT_TRUE(faults->Remove(dbfull()->strata(), directory));
  EXPECT_EQ(exposition.Value("rocksdb_path_faults"), "1");
  EXPECT_EQ(exposition.Value(Full("path_fault", LabelsOfPath(0))), "0");
  EXPECT_EQ(exposition.Value(Full("path_fault", LabelsOfPath(1))), "1");
  EXPECT_EQ(Read().Value(Full("path_fault", LabelsOfPath(1))), "0");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
