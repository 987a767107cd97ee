//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// Merges a list of operands in pairs, and pairs of pairs. It is for operands of
// which any two adjacent ones may be merged first, such as those of an
// AssociativeMergeOperator, and all for which PartialMerge() succeeds.
//
// A merge from the first operand to the last copies the result so far in each
// step. If the result grows with the operands, the cost is quadratic: for
// 50,000 operands that are appended, 25,000 times the final result is copied.
// In pairs, each byte is copied as often as the number of operands can be
// halved.
//
// The number of merges is the same in both orders. See Pays() for when the
// order is worth it.
class PairwiseMerge {
 public:
  PairwiseMerge() = delete;

  // Operands are merged sequentially if that copies fewer bytes than this, by
  // an estimate for results that grow with the operands. Whether they grow
  // cannot be known in advance.
  static constexpr uint64_t kMinBytesCopied = uint64_t{1} << 20;
  static constexpr size_t kMinOperands = 16;

  // Returns true if Combine() is likely to be cheaper than sequential merges.
  // base: the value that the operands are merged with; may be nullptr.
  template <typename Operands>
  static bool Pays(const Slice* base, const Operands& operands) {
    if (operands.size() < kMinOperands) {
      return false;
    }
    uint64_t bytes = 0;
    for (const Slice& operand : operands) {
      bytes += operand.size();
    }
    const uint64_t mean = (base != nullptr ? base->size() : 0) + bytes / 2;
    return mean >= kMinBytesCopied / operands.size();
  }

  // Merges the operands into *result. Returns false if a merge fails; *result
  // is then undefined.
  // merge(left, right, &result): merges two adjacent operands or results;
  //     returns false on failure.
  // REQUIRES: there is at least one operand
  template <typename Operands, typename Merge>
  static bool Combine(const Operands& operands, Merge merge,
                      std::string* result) {
    std::vector<Part> parts;
    for (const Slice& operand : operands) {
      parts.emplace_back(operand);
      while (parts.size() > 1 &&
             parts[parts.size() - 2].rank == parts.back().rank) {
        if (!MergeLast(&parts, merge)) {
          return false;
        }
      }
    }
    while (parts.size() > 1) {
      if (!MergeLast(&parts, merge)) {
        return false;
      }
    }
    if (parts.front().is_operand) {
      result->assign(parts.front().operand.data(),
                     parts.front().operand.size());
    } else {
      result->swap(parts.front().merged);
    }
    return true;
  }

 private:
  struct Part {
    explicit Part(const Slice& _operand) : operand(_operand) {}

    Slice Get() const { return is_operand ? operand : Slice(merged); }

    bool is_operand = true;
    Slice operand;
    std::string merged;
    // The part is the result of 2^rank operands, or fewer at the end.
    int rank = 0;
  };

  template <typename Merge>
  static bool MergeLast(std::vector<Part>* parts, Merge& merge) {
    Part& left = (*parts)[parts->size() - 2];
    std::string merged;
    if (!merge(left.Get(), parts->back().Get(), &merged)) {
      return false;
    }
    left.is_operand = false;
    left.merged = std::move(merged);
    ++left.rank;
    parts->pop_back();
    return true;
  }
};

}  // namespace ROCKSDB_NAMESPACE
