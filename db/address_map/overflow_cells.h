// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// A store of cells of three words, for data that do not fit into an entry of
// AddressMap. An entry that needs a cell contains the cell's index.
//
// Invariant: The memory of cells is not released before the store is destroyed,
// and all words are atomic. So a reader may follow an outdated index, but must
// then detect, by the version counter of its shard, that it did so. Free cells
// are reused.
//
// Thread-safe: Allocate() and Free() use a mutex. The words of a cell are
// protected like the shard whose entry contains the cell's index.
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

  // Returns the index of a cell whose words are arbitrary. Adds the number of
  // bytes by which the store grew to *new_bytes.
  uint32_t Allocate(size_t* new_bytes);
  void Free(uint32_t index);

  // Returns nullptr if the index was never allocated.
  Cell* Get(uint32_t index) const;

  size_t NumUsed() const;

 private:
  // Chunk c has 2^(c + kFirstChunkBits) cells.
  static constexpr uint32_t kFirstChunkBits = 5;
  static constexpr uint32_t kNumChunks = 26;

  mutable std::mutex mutex_;
  std::atomic<Cell*> chunks_[kNumChunks] = {};  // published once, in order
  uint32_t num_cells_ = 0;
  uint32_t first_free_ = kNone;  // head of a list linked through word[0]
  size_t num_used_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
