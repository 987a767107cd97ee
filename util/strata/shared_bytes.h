//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Memory for many short strings that are freed about in the order in which they
// were allocated. Strings share blocks, and a block is freed with the last
// reference to a string in it, which may be after this object is destroyed.
//
// Not thread-safe, nor are the references of one object and copies of them.
class SharedBytes {
 private:
  struct Block {
    explicit Block(size_t _size) : bytes(new char[_size]), size(_size) {}

    const std::unique_ptr<char[]> bytes;
    const size_t size;
    size_t used = 0;
    uint64_t refs = 0;
  };

 public:
  // Bytes of a block, unless a string needs more.
  static constexpr size_t kBlockSize = 4 << 10;

  // Keeps the memory of a string.
  class Ref {
   public:
    Ref() = default;
    Ref(const Ref& other) : Ref(other.block_) {}
    Ref(Ref&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
      std::swap(block_, other.block_);
      return *this;
    }
    ~Ref() {
      if (block_ != nullptr && --block_->refs == 0) {
        delete block_;
      }
    }

   private:
    friend class SharedBytes;
    explicit Ref(Block* block) : block_(block) {
      if (block_ != nullptr) {
        ++block_->refs;
      }
    }

    Block* block_ = nullptr;
  };

  SharedBytes() = default;
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;

  // Returns memory without alignment that exists as long as *ref or a copy of
  // it.
  // size: bytes.
  char* Allocate(size_t size, Ref* ref) {
    if (current_.block_ == nullptr ||
        size > current_.block_->size - current_.block_->used) {
      current_ = Ref(new Block(std::max(size, kBlockSize)));
    }
    Block* const block = current_.block_;
    char* const result = block->bytes.get() + block->used;
    block->used += size;
    *ref = current_;
    return result;
  }

 private:
  Ref current_;
};

}  // namespace ROCKSDB_NAMESPACE
