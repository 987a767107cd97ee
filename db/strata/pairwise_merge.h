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

// Merges operands of which any two that follow one another may be merged first,
// as those of an AssociativeMergeOperator, and all for which PartialMerge() is
// true.
//
// From the first to the last, each step would copy what the steps before have
// made of all operands so far, if that grows with them: of 50,000 operands that
// are appended, 25,000 times the result. In pairs, and pairs of pairs, each
// byte is copied as often as the number of operands can be halved.
//
// The merges are as many, and they are the same for less than that is worth.
class PairwiseMerge {
 public:
  PairwiseMerge() = delete;

  // Operands whose merges, one after the other, may copy less than this are
  // left to those: what results do not grow by cannot be told in advance.
  static constexpr uint64_t kMinBytesCopied = uint64_t{1} << 20;
  static constexpr size_t kMinOperands = 16;

  // base: what they are merged with; may be nullptr.
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

  // merge(left, right, &result): of any two that follow one another; false if
  // it fails. Then so does this, and *result may be anything. REQUIRES: there
  // is an operand
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
    // It is made of 2^rank operands.
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
