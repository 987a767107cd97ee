//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "options/strata/option_text.h"
#include "options/strata/strata_option_table.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/strata_options.h"

namespace ROCKSDB_NAMESPACE {

// For tests that go through the rows of strata_option_table.h.

// Returns a value of the type that differs from `value`. It may be out of the
// option's range.
template <typename T>
T OtherOptionValue(const T& value) {
  if constexpr (std::is_same_v<T, std::vector<uint32_t>>) {
    return value.empty() ? T{0, 1} : T{};
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    return value.empty() ? T{0.25, 0.1} : T{};
  } else if constexpr (std::is_same_v<T, bool>) {
    return !value;
  } else if constexpr (std::is_same_v<T, double>) {
    return value + 0.25;
  } else {
    return value + 1;
  }
}

// Returns "name=value;" for each column family option, with values that are not
// the defaults.
inline std::string OtherStrataCFOptions() {
  const StrataColumnFamilyOptions defaults;
  std::string text;
#define STRATA_APPEND(kind, name, ...) \
  text += std::string(#name) + "=" +   \
          OptionText(OtherOptionValue(defaults.name)) + ";";
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_APPEND)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_APPEND)
  return text;
}

// The same for the DB options.
inline std::string OtherStrataDBOptions() {
  const StrataDBOptions defaults;
  std::string text;
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_APPEND)
#undef STRATA_APPEND
  return text;
}

}  // namespace ROCKSDB_NAMESPACE
