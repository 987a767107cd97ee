//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "options/strata/omitted_at_default.h"
#include "options/strata/path_prices.h"
#include "rocksdb/rocksdb_namespace.h"
#include "util/strata/path_list.h"

namespace ROCKSDB_NAMESPACE {

// Returns the value of an option of strata_option_table.h as it stands in
// option strings.
template <typename T>
std::string OptionText(const T& value) {
  if constexpr (std::is_same_v<T, std::vector<uint32_t>>) {
    return PathIdsToString(value);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    return PathPricesToString(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, double>) {
    return ShortestDouble(value);
  } else {
    return std::to_string(value);
  }
}

// Returns true if this value of an option turns a feature on.
template <typename T>
bool TurnsOn(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value != T{};
  } else {
    return !value.empty();
  }
}

}  // namespace ROCKSDB_NAMESPACE
