//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/compaction_filter.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// nullptr if there is no value.
using OverlapValue = std::shared_ptr<const std::string>;

// The use of a key, by its number. A SingleDelete() and a compaction filter are
// only defined for keys that are written in a certain way.
enum class OverlapKeyUse { kAny, kSingleDelete, kFiltered };

// Keys, values and merge operands of OverlapStress, and what becomes of values
// by operands and by the compaction filter.
//
// Thread-safe: the class has no state.
class OverlapValues {
 public:
  // A value: "<version>:<sum>:<key>|<payload>".
  struct Fields {
    uint64_t version = 0;
    int64_t sum = 0;
    std::string payload;
  };

  static OverlapKeyUse UseOf(size_t index);
  static std::string KeyName(size_t writer, size_t index);

  static std::string Render(const Slice& key, const Fields& fields);
  static Fields Parse(const Slice& value);

  // Returns the result of an operand. There are these operands:
  //   "A<version>|<bytes>"   the payload grows: large results of large values
  //   "C<version>:<n>|"      a counter without payload, so results are small
  //   "L<value>"             replaces the value, so results have any size
  // existing: nullptr if there is no value.
  static std::string Apply(const Slice& key, const Slice* existing,
                           const Slice& operand);

  // Values with a payload that begins with 'F' are meant for the compaction
  // filter. Returns false if `value` is none. *filtered: the result of the
  // filter, nullptr if it removes the value.
  static bool FilteredForm(const Slice& key, const Slice& value,
                           OverlapValue* filtered);

  static std::shared_ptr<MergeOperator> NewMergeOperator();
  static std::unique_ptr<CompactionFilter> NewCompactionFilter();

  static bool Equal(const OverlapValue& a, const OverlapValue& b) {
    return a == nullptr || b == nullptr ? a == b : *a == *b;
  }
  // Returns the beginning of the value and its size, for messages.
  static std::string Describe(const OverlapValue& value);
};

}  // namespace ROCKSDB_NAMESPACE
