//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Memory for many short strings that are freed about in the order in which they
// were allocated. Strings share blocks, and a block is freed with the last
// reference to a string in it, which may be after this object is destroyed. A
// string that is larger than a block has memory of its own, which is freed with
// the string.
//
// Not thread-safe, nor are the references of one object and copies of them.
class SharedBytes {
 private:
  struct Block {
    explicit Block(size_t size) : bytes(new char[size]) {}

    const std::unique_ptr<char[]> bytes;
    size_t used = 0;
    uint64_t refs = 0;
  };

 public:
  // Size of a block, in bytes.
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
    if (size > kBlockSize) {
      *ref = Ref(new Block(size));
    } else {
      if (current_.block_ == nullptr ||
          size > kBlockSize - current_.block_->used) {
        current_ = Ref(new Block(kBlockSize));
      }
      *ref = current_;
    }
    Block* const block = ref->block_;
    char* const result = block->bytes.get() + block->used;
    block->used += size;
    return result;
  }

 private:
  Ref current_;
};

}  // namespace ROCKSDB_NAMESPACE
