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

// Merge operands of one key with their sequence numbers, as delta files gave
// them: those of one file newest first, file after file.
//
// Values lie in the blocks that they came from where these can be pinned, else
// in copies. pins() holds both.
//
// REQUIRES: the block cache outlives the pins.
// Not thread-safe.
class DeltaOperands {
 public:
  struct Operand {
    SequenceNumber seq = 0;
    // The last one of the file that it was in; 0 of a sorted file, and before
    // it is set.
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

  // The values are good as long as its cleanups have not run. They may be
  // delegated, so that values outlive this.
  Cleanable* pins() { return &pins_; }

  void Clear() {
    operands_.clear();
    pins_.Reset();
  }

  // ---- For who fills it.

  // pinner: its cleanups, which are taken, keep the value in memory. nullptr:
  // the value goes away, and is copied.
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
  // The same of one whose value pins() keep in memory.
  void AddPinned(const Operand& operand) { operands_.push_back(operand); }
  void SetEpoch(size_t i, uint64_t epoch) { operands_[i].epoch = epoch; }
  // Takes back all but the first ones.
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
