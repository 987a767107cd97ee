//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// Writes metrics in the text format of Prometheus, version 0.0.4.
//
// All samples of a metric stand together, behind its lines "# HELP" and
// "# TYPE", in whatever order they were added: the metrics are in the order of
// their definitions, and the samples of each in the order of the calls. A
// metric without samples is left out.
//
// Invariant: no two metrics have a sample name in common. A summary has three:
// its own name, and the names with "_sum" and "_count".
//
// Not thread-safe.
class PrometheusText {
 public:
  enum class Type : uint8_t { kCounter, kGauge, kSummary };

  // The labels of a sample.
  class Labels {
   public:
    Labels() = default;

    // Adds a label. The format wants UTF-8, and its readers refuse a text with
    // anything else as a whole: a byte that is not UTF-8 becomes four
    // characters, such as "\xff".
    // name: [a-zA-Z_][a-zA-Z0-9_]*, another one than those before.
    // value: any bytes.
    Labels& Add(const Slice& name, const Slice& value);
    // Returns the labels as they stand between the braces.
    const std::string& text() const { return text_; }

   private:
    std::string text_;
  };

  struct Quantile {
    const char* quantile;  // such as "0.95"
    double value;
  };

  PrometheusText() = default;
  PrometheusText(const PrometheusText&) = delete;
  PrometheusText& operator=(const PrometheusText&) = delete;

  // Returns true if a metric may have the name: [a-zA-Z_][a-zA-Z0-9_]*. (The
  // format allows colons, too, for the rules of its readers.)
  static bool IsName(const Slice& name);
  // Returns the name with each other character than [a-zA-Z0-9_] replaced.
  static std::string ToName(const std::string& text);

  // Defines a metric, and returns its number for the functions below.
  // help: one sentence; a line break is escaped.
  // REQUIRES: IsName(name); the invariant holds with the metric.
  size_t Define(const std::string& name, Type type, const std::string& help);

  // Adds a sample. The labels must differ from those of the other samples of
  // the metric.
  // REQUIRES: the metric is no summary.
  void Add(size_t metric, const Labels& labels, double value);
  // REQUIRES: the metric is a summary.
  void AddSummary(size_t metric, const Labels& labels,
                  std::initializer_list<Quantile> quantiles, double sum,
                  double count);

  std::string ToString() const;

 private:
  struct Metric {
    std::string name;
    Type type;
    std::string help;  // escaped
    std::string samples;
  };

  static void AppendSample(const std::string& name, const Labels& labels,
                           double value, std::string* text);

  std::vector<Metric> metrics_;
  // The names of all samples.
  std::set<std::string> names_;
};

}  // namespace ROCKSDB_NAMESPACE
