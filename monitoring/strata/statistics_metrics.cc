//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "monitoring/strata/statistics_metrics.h"

#include <cstddef>
#include <limits>

#include "monitoring/strata/prometheus_text.h"
#include "rocksdb/slice.h"
#include "rocksdb/statistics.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string NameOf(const std::string& statistic) {
  constexpr char kPrefix[] = "rocksdb.";
  Slice rest = statistic;
  if (rest.starts_with(kPrefix)) {
    rest.remove_prefix(sizeof(kPrefix) - 1);
  }
  return "rocksdb_" + PrometheusText::ToName(rest.ToString());
}

}  // namespace

std::string StatisticsMetrics::TickerName(const std::string& ticker) {
  return NameOf(ticker) + "_total";
}

std::string StatisticsMetrics::HistogramName(const std::string& histogram) {
  return NameOf(histogram);
}

void StatisticsMetrics::Add(const Statistics& statistics,
                            PrometheusText* text) {
  const PrometheusText::Labels none;
  for (const auto& [ticker, name] : TickersNameMap) {
    const size_t metric =
        text->Define(TickerName(name), PrometheusText::Type::kCounter,
                     "The ticker " + name + ".");
    text->Add(metric, none,
              static_cast<double>(statistics.getTickerCount(ticker)));
  }
  for (const auto& [histogram, name] : HistogramsNameMap) {
    const size_t metric =
        text->Define(HistogramName(name), PrometheusText::Type::kSummary,
                     "The histogram " + name + ".");
    HistogramData data{};
    statistics.histogramData(histogram, &data);
    const auto quantile = [&data](double value) {
      return data.count == 0 ? std::numeric_limits<double>::quiet_NaN() : value;
    };
    text->AddSummary(metric, none,
                     {{"0.5", quantile(data.median)},
                      {"0.95", quantile(data.percentile95)},
                      {"0.99", quantile(data.percentile99)},
                      {"1", quantile(data.max)}},
                     static_cast<double>(data.sum),
                     static_cast<double>(data.count));
  }
}

}  // namespace ROCKSDB_NAMESPACE
