//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>

#include "rocksdb/merge_operator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {
namespace delta_test {

// Joins operands, so that a result shows which operands it was made of and in
// which order.
class JoinOperator : public MergeOperator {
 public:
  enum class Mode { kJoin, kNever, kNotWithB };

  explicit JoinOperator(Mode mode) : mode_(mode) {}

  bool PartialMergeMulti(const Slice& key, const std::deque<Slice>& operands,
                         std::string* result, Logger*) const override {
    ++calls_;
    if (mode_ == Mode::kNever || (mode_ == Mode::kNotWithB && key == "b")) {
      // A failed merge may leave anything in the result.
      *result = "failed";
      return false;
    }
    size_t size = 0;
    for (const Slice& operand : operands) {
      if (!result->empty()) {
        result->push_back(',');
      }
      result->append(operand.data(), operand.size());
      size += operand.size();
    }
    max_size_ = std::max(max_size_, size);
    return true;
  }
  bool AllowSingleOperand() const override { return allow_single_; }
  const char* Name() const override { return "JoinOperator"; }

  const Mode mode_;
  bool allow_single_ = false;
  mutable size_t calls_ = 0;
  mutable size_t max_size_ = 0;  // of the operands of one call
};

}  // namespace delta_test
}  // namespace ROCKSDB_NAMESPACE
