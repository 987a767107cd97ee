//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// An allocator with free lists: it reuses freed memory before it calls malloc.
//
// It is for objects that are always allocated by one thread and freed by
// another one after a while, such as the entries of a cache that readers fill
// and flushes replace. A malloc with per-thread heaps returns a block to the
// heap that it came from. So each heap grows to the maximum that its thread
// ever had in use, and the process to the sum of these. If a new object reuses
// a block that has just been freed, heaps do not grow.
//
// Sizes are rounded up, and a block is reused only for the same rounded size.
// The free lists are bounded. If a block is freed and they are full, blocks of
// other sizes are returned to malloc, or the block itself if a short search
// finds no others.
//
// Thread-safe.
class FreeListArena {
 public:
  // max_kept: maximum bytes in the free lists.
  explicit FreeListArena(size_t max_kept) : max_kept_(max_kept) {}
  ~FreeListArena();
  FreeListArena(const FreeListArena&) = delete;
  FreeListArena& operator=(const FreeListArena&) = delete;

  // Returns the arena of the process, for blocks that may outlive the object
  // that allocated them. Under address or thread sanitizers, and valgrind, its
  // free lists stay empty, so that these tools see uses of freed memory.
  // Otherwise it is never destroyed.
  static FreeListArena* Process();

  // Returns the size of a block for `size` bytes, which is larger by at most 15
  // bytes or 1/64.
  static constexpr size_t RoundUp(size_t size) {
    if (size > kMaxSize) {
      return size;
    }
    const size_t step = StepOf(size);
    return (size + step - 1) / step * step;
  }

  // Returns memory that is aligned as by malloc.
  // REQUIRES: size > 0
  char* Allocate(size_t size);
  // Frees the memory.
  // REQUIRES: Allocate(size) of this arena returned it.
  void Free(char* memory, size_t size);

  // Bytes in the free lists.
  size_t kept() const { return kept_.load(std::memory_order_relaxed); }

 private:
  // Up to this many bytes there are 64 block sizes, in steps of 16 bytes; above
  // it there are 64 sizes from each power of two to the next.
  static constexpr size_t kFineSize = size_t{1} << 10;
  static constexpr size_t kSizesPerPower = 64;
  static constexpr size_t kMinStep = kFineSize / kSizesPerPower;
  static constexpr size_t kNumPowers = 6;
  static constexpr size_t kNumSizes = (1 + kNumPowers) * kSizesPerPower;
  // Larger blocks are not kept: malloc takes most of them from the system.
  static constexpr size_t kMaxSize = kFineSize << kNumPowers;
  static constexpr size_t kMaxProcessKept = size_t{1} << 20;
  // Number of sizes that are searched for blocks to return to malloc.
  static constexpr size_t kSizesToLookAt = 8;

  // Written into a freed block.
  struct Piece {
    Piece* next;
  };

  // Returns the distance between block sizes at this size.
  // REQUIRES: size <= kMaxSize.
  static constexpr size_t StepOf(size_t size) {
    size_t step = kMinStep;
    while (2 * kSizesPerPower * step < size) {
      step *= 2;
    }
    return step;
  }
  // REQUIRES: `rounded` is a result of RoundUp(), and at most kMaxSize.
  static size_t IndexOf(size_t rounded);
  static size_t SizeAt(size_t index);

  const size_t max_kept_;
  std::atomic<size_t> kept_{0};  // written only with mutex_ held
  port::Mutex mutex_;
  // The free list of each rounded size.
  std::array<Piece*, kNumSizes> pieces_{};
  size_t hand_ = 0;  // index of the size of which blocks are returned next
};

}  // namespace ROCKSDB_NAMESPACE
