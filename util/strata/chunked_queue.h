//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <deque>
#include <memory>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// A queue of large elements, which stay at their addresses until they are
// removed. It allocates memory for kChunk elements at a time; std::deque does
// so for each element that is larger than a few hundred bytes.
//
// Not thread-safe.
template <typename T, size_t kChunk = 16>
class ChunkedQueue {
 public:
  ChunkedQueue() = default;
  ChunkedQueue(const ChunkedQueue&) = delete;
  ChunkedQueue& operator=(const ChunkedQueue&) = delete;

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // index: number of elements between the front and the result.
  // REQUIRES: index < size().
  T& operator[](size_t index) {
    assert(index < size_);
    const size_t at = begin_ + index;
    return (*chunks_[at / kChunk])[at % kChunk];
  }
  const T& operator[](size_t index) const {
    return const_cast<ChunkedQueue&>(*this)[index];
  }
  // REQUIRES: !empty().
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }

  // Adds an element in the state that T's default constructor creates.
  T* AddBack() {
    if (begin_ + size_ == chunks_.size() * kChunk) {
      chunks_.push_back(std::make_unique<Chunk>());
    }
    ++size_;
    return &(*this)[size_ - 1];
  }

  // REQUIRES: !empty().
  void PopFront() {
    assert(size_ > 0);
    --size_;
    if (++begin_ == kChunk) {
      chunks_.pop_front();
      begin_ = 0;
    } else {
      // Frees what the element owns; no element is stored there again.
      (*chunks_.front())[begin_ - 1] = T();
    }
  }

  void Clear() {
    chunks_.clear();
    begin_ = 0;
    size_ = 0;
  }

 private:
  using Chunk = std::array<T, kChunk>;

  std::deque<std::unique_ptr<Chunk>> chunks_;
  size_t begin_ = 0;  // index of the front in the first chunk
  size_t size_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
