//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/free_list_arena.h"

#include <cassert>
#include <new>

#include "port/lang.h"
#include "util/math.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kKeepsNothing = true;
#else
constexpr bool kKeepsNothing = kMustFreeHeapAllocations;
#endif

}  // namespace

FreeListArena::~FreeListArena() {
  for (Piece* piece : pieces_) {
    while (piece != nullptr) {
      Piece* const next = piece->next;
      delete[] reinterpret_cast<char*>(piece);
      piece = next;
    }
  }
}

FreeListArena* FreeListArena::Process() {
  STATIC_AVOID_DESTRUCTION(FreeListArena, memory)
  (kKeepsNothing ? 0 : kMaxProcessKept);
  return &memory;
}

size_t FreeListArena::IndexOf(size_t rounded) {
  assert(rounded == RoundUp(rounded) && rounded <= kMaxSize);
  if (rounded <= kFineSize) {
    return rounded / kMinStep - 1;
  }
  // base < rounded <= 2 * base
  const size_t power = static_cast<size_t>(FloorLog2(rounded - 1));
  const size_t base = size_t{1} << power;
  const size_t first =
      kSizesPerPower * (1 + power - static_cast<size_t>(FloorLog2(kFineSize)));
  return first + (rounded - base) / StepOf(rounded) - 1;
}

size_t FreeListArena::SizeAt(size_t index) {
  const size_t power = index / kSizesPerPower;
  const size_t step = index % kSizesPerPower + 1;
  if (power == 0) {
    return step * kMinStep;
  }
  const size_t base = kFineSize << (power - 1);
  return base + step * (base / kSizesPerPower);
}

char* FreeListArena::Allocate(size_t size) {
  assert(size > 0);
  const size_t rounded = RoundUp(size);
  if (rounded <= kMaxSize && kept() > 0) {
    MutexLock lock(&mutex_);
    Piece*& first = pieces_[IndexOf(rounded)];
    if (first != nullptr) {
      Piece* const piece = first;
      first = piece->next;
      kept_.fetch_sub(rounded, std::memory_order_relaxed);
      return reinterpret_cast<char*>(piece);
    }
  }
  return new char[rounded];
}

void FreeListArena::Free(char* memory, size_t size) {
  const size_t rounded = RoundUp(size);
  if (rounded > kMaxSize || rounded > max_kept_) {
    delete[] memory;
    return;
  }
  const size_t index = IndexOf(rounded);
  Piece* surplus = nullptr;
  const auto move = [&surplus](Piece** first) {
    Piece* const piece = *first;
    *first = piece->next;
    piece->next = surplus;
    surplus = piece;
  };
  {
    MutexLock lock(&mutex_);
    size_t kept = kept_.load(std::memory_order_relaxed);
    for (size_t i = 0; i < kSizesToLookAt && kept + rounded > max_kept_;) {
      if (hand_ == index || pieces_[hand_] == nullptr) {
        hand_ = (hand_ + 1) % kNumSizes;
        ++i;
      } else {
        kept -= SizeAt(hand_);
        move(&pieces_[hand_]);
      }
    }
    pieces_[index] = new (memory) Piece{pieces_[index]};
    kept += rounded;
    if (kept > max_kept_) {
      kept -= rounded;
      move(&pieces_[index]);
    }
    kept_.store(kept, std::memory_order_relaxed);
  }
  while (surplus != nullptr) {
    Piece* const next = surplus->next;
    delete[] reinterpret_cast<char*>(surplus);
    surplus = next;
  }
}

}  // namespace ROCKSDB_NAMESPACE
