//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/cleanable.h"
#include "rocksdb/slice.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// Merge operands of one key with their sequence numbers, as read from delta
// files: file by file, and newest first within each file.
//
// Values point into the blocks that they were read from if these can be pinned,
// otherwise into copies. pins() holds both.
//
// Not thread-safe.
//
// REQUIRES: the block cache outlives the pins.
class DeltaOperands {
 public:
  struct Operand {
    SequenceNumber seq = 0;
    // Last epoch of the operand's file; 0 for a sorted file, and until it is
    // set.
    uint64_t epoch = 0;
    Slice value;
  };

  DeltaOperands() = default;
  DeltaOperands(const DeltaOperands&) = delete;
  DeltaOperands& operator=(const DeltaOperands&) = delete;

  bool empty() const { return operands_.empty(); }
  size_t size() const { return operands_.size(); }
  const Operand& operator[](size_t i) const { return operands_[i]; }
  std::vector<Operand>::const_iterator begin() const {
    return operands_.begin();
  }
  std::vector<Operand>::const_iterator end() const { return operands_.end(); }

  // Returns the Cleanable that keeps the values in memory until its cleanups
  // run. They may be delegated, so that the values outlive this object.
  Cleanable* pins() { return &pins_; }

  void Clear() {
    operands_.clear();
    pins_.Reset();
  }

  // ---- For the code that collects operands.

  // Appends an operand.
  // pinner: its cleanups keep the value in memory and are moved to pins().
  // nullptr: the value is temporary, and is copied.
  void Add(SequenceNumber seq, const Slice& value, Cleanable* pinner) {
    Operand operand{seq, /*epoch=*/0, value};
    if (pinner != nullptr) {
      pinner->DelegateCleanupsTo(&pins_);
    } else {
      auto* const copy = new std::string(value.data(), value.size());
      pins_.RegisterCleanup(&DeleteCopy, copy, nullptr);
      operand.value = *copy;
    }
    operands_.push_back(operand);
  }
  // Appends an operand whose value pins() keeps in memory.
  void AddPinned(const Operand& operand) { operands_.push_back(operand); }
  void SetEpoch(size_t i, uint64_t epoch) { operands_[i].epoch = epoch; }
  // Removes all operands but the first `size` ones.
  void Truncate(size_t size) {
    assert(size <= operands_.size());
    operands_.resize(size);
  }

 private:
  static void DeleteCopy(void* copy, void* /*unused*/) {
    delete static_cast<std::string*>(copy);
  }

  std::vector<Operand> operands_;
  Cleanable pins_;
};

}  // namespace ROCKSDB_NAMESPACE
