//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rocksdb/memory_allocator.h"

namespace ROCKSDB_NAMESPACE {

// The allocator of a block cache. It overwrites a block when the block is
// freed, and keeps the memory, so that a reader of a freed block always finds
// other bytes than those of the block.
class OverwritingAllocator final : public MemoryAllocator {
 public:
  // The bytes of a freed block.
  static constexpr char kFreed = '#';

  const char* Name() const override { return "OverwritingAllocator"; }

  void* Allocate(size_t size) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto block = std::make_unique<char[]>(size);
    char* const memory = block.get();
    blocks_[memory] = {std::move(block), size};
    return memory;
  }
  void Deallocate(void* memory) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blocks_.find(memory);
    memset(memory, kFreed, found->second.second);
    freed_.push_back(std::move(found->second.first));
    blocks_.erase(found);
  }

  size_t NumFreed() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return freed_.size();
  }

 private:
  using Memory = std::unique_ptr<char[]>;

  mutable std::mutex mutex_;
  std::unordered_map<void*, std::pair<Memory, size_t>> blocks_;
  std::vector<Memory> freed_;
};

}  // namespace ROCKSDB_NAMESPACE
