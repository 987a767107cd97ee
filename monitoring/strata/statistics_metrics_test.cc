//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "monitoring/strata/statistics_metrics.h"

#include <memory>
#include <set>
#include <string>

#include "monitoring/strata/prometheus_text.h"
#include "port/stack_trace.h"
#include "rocksdb/statistics.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string TextOf(const Statistics& statistics) {
  PrometheusText text;
  StatisticsMetrics::Add(statistics, &text);
  return text.ToString();
}

bool Has(const std::string& text, const std::string& lines) {
  return text.find("\n" + lines) != std::string::npos;
}

}  // namespace

TEST(StatisticsMetricsTest, Names) {
  EXPECT_EQ(StatisticsMetrics::TickerName("rocksdb.compaction.key.drop.new"),
            "rocksdb_compaction_key_drop_new_total");
  EXPECT_EQ(StatisticsMetrics::TickerName("rocksdb.number.rate_limiter.drains"),
            "rocksdb_number_rate_limiter_drains_total");
  EXPECT_EQ(StatisticsMetrics::HistogramName("rocksdb.db.get.micros"),
            "rocksdb_db_get_micros");
  EXPECT_EQ(StatisticsMetrics::HistogramName("other.name"),
            "rocksdb_other_name");
}

TEST(StatisticsMetricsTest, NoTwoSamplesHaveTheSameName) {
  std::set<std::string> names;
  const auto add = [&names](const std::string& name) {
    EXPECT_TRUE(PrometheusText::IsName(name)) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(Slice(name).starts_with("rocksdb_cf_")) << name;
  };
  for (const auto& [ticker, name] : TickersNameMap) {
    add(StatisticsMetrics::TickerName(name));
  }
  for (const auto& [histogram, name] : HistogramsNameMap) {
    const std::string summary = StatisticsMetrics::HistogramName(name);
    add(summary);
    add(summary + "_sum");
    add(summary + "_count");
  }
  EXPECT_EQ(names.size(),
            size_t{TICKER_ENUM_MAX} + size_t{3} * HISTOGRAM_ENUM_MAX);
}

TEST(StatisticsMetricsTest, TickersAndHistograms) {
  const std::shared_ptr<Statistics> statistics = CreateDBStatistics();
  statistics->recordTick(BLOB_MAP_GC_FILES, 7);
  for (uint64_t value : {1, 1, 1, 5000}) {
    statistics->recordInHistogram(DB_GET, value);
  }
  const std::string text = TextOf(*statistics);
  EXPECT_TRUE(Has(text,
                  "# HELP rocksdb_blob_map_gc_files_total The ticker "
                  "rocksdb.blob.map.gc.files.\n"
                  "# TYPE rocksdb_blob_map_gc_files_total counter\n"
                  "rocksdb_blob_map_gc_files_total 7\n"))
      << text;
  EXPECT_TRUE(Has(text, "rocksdb_blob_map_gc_values_total 0\n")) << text;
  EXPECT_TRUE(Has(text,
                  "# TYPE rocksdb_db_get_micros summary\n"
                  "rocksdb_db_get_micros{quantile=\"0.5\"} "))
      << text;
  EXPECT_TRUE(Has(text,
                  "rocksdb_db_get_micros{quantile=\"1\"} 5000\n"
                  "rocksdb_db_get_micros_sum 5003\n"
                  "rocksdb_db_get_micros_count 4\n"))
      << text;
  EXPECT_TRUE(Has(text,
                  "rocksdb_db_write_micros{quantile=\"0.5\"} NaN\n"
                  "rocksdb_db_write_micros{quantile=\"0.95\"} NaN\n"
                  "rocksdb_db_write_micros{quantile=\"0.99\"} NaN\n"
                  "rocksdb_db_write_micros{quantile=\"1\"} NaN\n"
                  "rocksdb_db_write_micros_sum 0\n"
                  "rocksdb_db_write_micros_count 0\n"))
      << text;

  // A reset starts again at 0, as a restart of the process does.
  ASSERT_OK(statistics->Reset());
  EXPECT_TRUE(Has(TextOf(*statistics), "rocksdb_blob_map_gc_files_total 0\n"));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
