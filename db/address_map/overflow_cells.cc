// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/overflow_cells.h"

#include <cassert>

#include "util/math.h"

namespace ROCKSDB_NAMESPACE {

OverflowCells::~OverflowCells() {
  for (auto& c : chunks_) {
    delete[] c.load(std::memory_order_relaxed);
  }
}

OverflowCells::Cell* OverflowCells::Get(uint32_t index) const {
  const uint64_t shifted = uint64_t{index} + (1 << kFirstChunkBits);
  const uint32_t c = FloorLog2(shifted) - kFirstChunkBits;
  if (c >= kNumChunks) {
    return nullptr;
  }
  Cell* const chunk = chunks_[c].load(std::memory_order_acquire);
  return chunk == nullptr
             ? nullptr
             : chunk + (shifted - (uint64_t{1} << (c + kFirstChunkBits)));
}

uint32_t OverflowCells::Allocate(size_t* new_bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++num_used_;
  if (first_free_ != kNone) {
    const uint32_t index = first_free_;
    first_free_ = static_cast<uint32_t>(
        Get(index)->word[0].load(std::memory_order_relaxed));
    return index;
  }
  const uint32_t index = num_cells_++;
  if (Get(index) == nullptr) {
    const uint32_t c =
        FloorLog2(uint64_t{index} + (1 << kFirstChunkBits)) - kFirstChunkBits;
    assert(c < kNumChunks);
    const size_t cells = size_t{1} << (c + kFirstChunkBits);
    chunks_[c].store(new Cell[cells], std::memory_order_release);
    *new_bytes += cells * sizeof(Cell);
  }
  return index;
}

// The old owner frees the cell inside its write section, so the version counter
// of its shard is already odd. The mutex orders this before the stores of the
// next owner. A reader of the old entry that observes these stores therefore
// observes the changed counter as well, provided that the next owner puts a
// release fence between the mutex and its stores (see
// MapEntries::PlaceInCell()).
void OverflowCells::Free(uint32_t index) {
  std::lock_guard<std::mutex> lock(mutex_);
  assert(num_used_ > 0);
  --num_used_;
  Get(index)->word[0].store(first_free_, std::memory_order_relaxed);
  first_free_ = index;
}

size_t OverflowCells::NumUsed() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return num_used_;
}

}  // namespace ROCKSDB_NAMESPACE
