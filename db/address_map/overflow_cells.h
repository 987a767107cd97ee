// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Cells of three words, for what does not fit into an entry of AddressMap. An
// entry that needs one holds its index.
//
// Invariant: memory of cells is never returned before the store dies, and all
// words are atomic. So a reader may follow an outdated index; it must then
// find out (by the version counter of its shard) that it did. Free cells are
// used again.
//
// Thread-safe: Allocate and Free have a mutex. The words of a cell belong to
// the shard whose entry holds its index.
class OverflowCells {
 public:
  struct Cell {
    std::atomic<uint64_t> word[3];
  };

  static constexpr uint32_t kNone = ~uint32_t{0};

  OverflowCells() = default;
  ~OverflowCells();
  OverflowCells(const OverflowCells&) = delete;
  OverflowCells& operator=(const OverflowCells&) = delete;

  // The words are arbitrary. Adds to *new_bytes what the store grew by.
  uint32_t Allocate(size_t* new_bytes);
  void Free(uint32_t index);

  // nullptr if the index was never handed out.
  Cell* Get(uint32_t index) const;

  size_t NumUsed() const;

 private:
  // Chunk c has 2^(c + kFirstChunkBits) cells.
  static constexpr uint32_t kFirstChunkBits = 5;
  static constexpr uint32_t kNumChunks = 26;

  mutable std::mutex mutex_;
  std::atomic<Cell*> chunks_[kNumChunks] = {};  // published once, in order
  uint32_t num_cells_ = 0;
  uint32_t first_free_ = kNone;  // a list through word[0]
  size_t num_used_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
