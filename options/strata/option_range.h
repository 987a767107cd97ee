//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "options/strata/omitted_at_default.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The values that an option may have: a column of strata_option_table.h.
class OptionRange {
 public:
  static constexpr OptionRange Any() { return OptionRange(); }
  static constexpr OptionRange From(double min, double max) {
    return OptionRange(min, max, /*has_zero=*/false);
  }
  // For options where 0 turns something off.
  static constexpr OptionRange ZeroOrFrom(double min, double max) {
    return OptionRange(min, max, /*has_zero=*/true);
  }

  // Returns InvalidArgument if the option has another value; the message has
  // the name and the range. Options that are no numbers have no range.
  template <typename T>
  Status Check(const char* name, const T& value) const {
    if constexpr (std::is_arithmetic_v<T>) {
      if (!Contains(static_cast<double>(value))) {
        return Status::InvalidArgument(std::string(name) + " must be " +
                                       (has_zero_ ? "0 or from " : "from ") +
                                       ShortestDouble(min_) + " to " +
                                       ShortestDouble(max_));
      }
    }
    return Status::OK();
  }

 private:
  constexpr OptionRange() = default;
  constexpr OptionRange(double min, double max, bool has_zero)
      : is_limited_(true), has_zero_(has_zero), min_(min), max_(max) {}

  // The condition is written so that NaN is rejected, too.
  constexpr bool Contains(double value) const {
    return !is_limited_ || (has_zero_ && value == 0) ||
           (value >= min_ && value <= max_);
  }

  bool is_limited_ = false;
  bool has_zero_ = false;
  double min_ = 0;
  double max_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
