//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class PrometheusText;
class Statistics;

// The tickers and histograms of a Statistics as metrics.
//
// Each ticker is a counter: it only grows, except that it starts again at 0
// when it is reset, which the readers of counters expect. Each histogram is a
// summary. Its quantiles are of all that was measured since the Statistics was
// made or reset, and are NaN if that is nothing.
//
// Invariant: a name is that of one ticker or histogram only, and begins with
// neither of the prefixes of other metrics (FamilyMetrics).
class StatisticsMetrics {
 public:
  StatisticsMetrics() = delete;

  // Return the name of the metric of a ticker ("rocksdb.block.cache.hit" ->
  // "rocksdb_block_cache_hit_total") and of a histogram
  // ("rocksdb.db.get.micros"
  // -> "rocksdb_db_get_micros").
  static std::string TickerName(const std::string& ticker);
  static std::string HistogramName(const std::string& histogram);

  // Defines and adds the metrics. Cost: proportional to the number of cores
  // times that of the buckets of all histograms.
  static void Add(const Statistics& statistics, PrometheusText* text);
};

}  // namespace ROCKSDB_NAMESPACE
