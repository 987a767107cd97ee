//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Gives out memory that was freed before it asks malloc for more.
//
// For what is made by one thread and freed by another all the time, and stays
// in between: entries of a cache that readers fill and flushes replace. A
// malloc with heaps of their own for threads gives a piece back to the heap
// that it came from, so each heap grows to the most that its thread ever had in
// use, and the process to the sum of these. If a new piece is made of one that
// has just been freed, pieces stay where they are and heaps do not grow.
//
// Sizes are rounded up, and a piece is given out again for the same rounded
// size only. What is kept is bounded; when it is too much, pieces of other
// sizes than the newest one's are given back to malloc, or that one if no
// others are found at a glance.
//
// Thread-safe.
class FreeListArena {
 public:
  // Keeps max_kept bytes at most.
  explicit FreeListArena(size_t max_kept) : max_kept_(max_kept) {}
  ~FreeListArena();
  FreeListArena(const FreeListArena&) = delete;
  FreeListArena& operator=(const FreeListArena&) = delete;

  // One for the process, for pieces that may outlive those who made them. With
  // address or thread sanitizers, and valgrind, it keeps nothing, so that these
  // see what is done with freed memory; without, it is never destroyed.
  static FreeListArena* Process();

  // What a piece for that many bytes takes up: up to 15 bytes more, or a 64th.
  static constexpr size_t RoundUp(size_t size) {
    if (size > kMaxSize) {
      return size;
    }
    const size_t step = StepOf(size);
    return (size + step - 1) / step * step;
  }

  // Aligned as by malloc.
  // REQUIRES: size > 0
  char* Allocate(size_t size);
  // REQUIRES: Allocate() gave it out for that size, here.
  void Free(char* memory, size_t size);

  // Bytes.
  size_t kept() const { return kept_.load(std::memory_order_relaxed); }

 private:
  // Up to this size in steps of 16 bytes, which is 64 sizes, then 64 sizes from
  // each power of two to the next.
  static constexpr size_t kFineSize = size_t{1} << 10;
  static constexpr size_t kSizesPerPower = 64;
  static constexpr size_t kMinStep = kFineSize / kSizesPerPower;
  static constexpr size_t kNumPowers = 6;
  static constexpr size_t kNumSizes = (1 + kNumPowers) * kSizesPerPower;
  // Larger ones are not kept: malloc takes most of them from the system.
  static constexpr size_t kMaxSize = kFineSize << kNumPowers;
  static constexpr size_t kMaxProcessKept = size_t{1} << 20;
  // To give way to another one, each time.
  static constexpr size_t kSizesToLookAt = 8;

  // In place of a freed piece.
  struct Piece {
    Piece* next;
  };

  // REQUIRES: kMaxSize at most.
  static constexpr size_t StepOf(size_t size) {
    size_t step = kMinStep;
    while (2 * kSizesPerPower * step < size) {
      step *= 2;
    }
    return step;
  }
  // REQUIRES: rounded, and kMaxSize at most.
  static size_t IndexOf(size_t rounded);
  static size_t SizeAt(size_t index);

  const size_t max_kept_;
  std::atomic<size_t> kept_{0};  // changes with mutex_ held only
  port::Mutex mutex_;
  // By rounded size, as lists.
  std::array<Piece*, kNumSizes> pieces_{};
  size_t hand_ = 0;  // the size that gives way next
};

}  // namespace ROCKSDB_NAMESPACE
