//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/family_metrics.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

FamilyNumbers WithBlobs(uint64_t bytes, uint64_t garbage) {
  FamilyNumbers numbers;
  numbers.name = "blobs";
  numbers.paths.resize(2);
  numbers.paths[1].stats.directory = "/hdd";
  numbers.paths[1].stats.blob_bytes = bytes;
  numbers.paths[1].stats.blob_garbage_bytes = garbage;
  return numbers;
}

std::string TextOf(const std::vector<FamilyNumbers>& families) {
  PrometheusText text;
  FamilyMetrics metrics(&text);
  for (const FamilyNumbers& family : families) {
    metrics.Add(family);
  }
  return text.ToString();
}

bool Has(const std::string& text, const std::string& lines) {
  return text.find("\n" + lines) != std::string::npos;
}

}  // namespace

TEST(FamilyMetricsTest, SpaceAmplification) {
  EXPECT_EQ(WithBlobs(0, 0).BlobSpaceAmp(), 1);
  EXPECT_EQ(WithBlobs(100, 0).BlobSpaceAmp(), 1);
  EXPECT_EQ(WithBlobs(100, 50).BlobSpaceAmp(), 2);
  EXPECT_TRUE(std::isinf(WithBlobs(100, 100).BlobSpaceAmp()));
  EXPECT_TRUE(Has(TextOf({WithBlobs(100, 100)}),
                  "rocksdb_cf_blob_space_amplification{cf=\"blobs\"} +Inf\n"));
}

TEST(FamilyMetricsTest, SamplesOfAMetricStandTogether) {
  FamilyNumbers first = WithBlobs(100, 20);
  first.levels = {{3, 30}, {4, 40}};
  first.properties[&FamilyMetrics::Properties()[0]] = 5;
  FamilyNumbers second;
  second.name = "q\"b\\n\n";
  second.levels = {{1, 10}};
  second.paths.resize(1);
  second.paths[0].has_fault = true;
  const std::string text = TextOf({first, second});
  EXPECT_TRUE(Has(text,
                  "# TYPE rocksdb_cf_num_files_at_level gauge\n"
                  "rocksdb_cf_num_files_at_level{cf=\"blobs\",level=\"0\"} 3\n"
                  "rocksdb_cf_num_files_at_level{cf=\"blobs\",level=\"1\"} 4\n"
                  "rocksdb_cf_num_files_at_level{cf=\"q\\\"b\\\\n\\n\",level="
                  "\"0\"} 1\n"
                  "# HELP "))
      << text;
  EXPECT_TRUE(Has(text,
                  "rocksdb_cf_path_fault{cf=\"blobs\",path_id=\"1\",path="
                  "\"/hdd\"} 0\n"
                  "rocksdb_cf_path_fault{cf=\"q\\\"b\\\\n\\n\",path_id=\"0\","
                  "path=\"\"} 1\n"))
      << text;
  // Only the first column family has the property.
  EXPECT_NE(text.find("rocksdb_cf_background_errors_total{cf=\"blobs\"} 5\n"
                      "# HELP "),
            std::string::npos)
      << text;
  // Neither of them has the features.
  EXPECT_EQ(text.find("address_map"), std::string::npos);
  EXPECT_EQ(text.find("merged_value"), std::string::npos);
  EXPECT_EQ(text.find("rocksdb_cf_delta_"), std::string::npos);
  EXPECT_EQ(text.find("rocksdb_cf_path_reads_total"), std::string::npos);
}

TEST(FamilyMetricsTest, DeltasByTierAndPathsByKind) {
  FamilyNumbers numbers = WithBlobs(0, 0);
  DeltaNumbers& deltas = numbers.deltas.emplace();
  deltas.stats.flushed = {1, 10};
  deltas.stats.merged = {2, 20};
  deltas.stats.sorted = {3, 30};
  deltas.debt = 77;
  PathStats& path = numbers.paths[1].stats;
  path.has_reads = true;
  path.delta_reads.reads = 8;
  path.delta_reads.nanos = 1500000000;
  path.has_jobs = true;
  path.jobs[static_cast<size_t>(PathJob::kBlobGc)].written = 9;
  const std::string text = TextOf({numbers});
  EXPECT_TRUE(Has(text,
                  "rocksdb_cf_delta_bytes{cf=\"blobs\",tier=\"flushed\"} 10\n"
                  "rocksdb_cf_delta_bytes{cf=\"blobs\",tier=\"merged\"} 20\n"
                  "rocksdb_cf_delta_bytes{cf=\"blobs\",tier=\"sorted\"} 30\n"))
      << text;
  EXPECT_TRUE(Has(text, "rocksdb_cf_delta_debt_bytes{cf=\"blobs\"} 77\n"));
  const std::string labels = "{cf=\"blobs\",path_id=\"1\",path=\"/hdd\",";
  EXPECT_TRUE(
      Has(text, "rocksdb_cf_path_reads_total" + labels + "kind=\"delta\"} 8\n"))
      << text;
  EXPECT_TRUE(Has(text, "rocksdb_cf_path_read_seconds_total" + labels +
                            "kind=\"delta\"} 1.5\n"))
      << text;
  EXPECT_TRUE(Has(text, "rocksdb_cf_path_job_written_bytes_total" + labels +
                            "job=\"blob_gc\"} 9\n"))
      << text;
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
