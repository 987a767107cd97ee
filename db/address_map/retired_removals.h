//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "db/address_map/deferred_removals.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The lists of names that committed jobs have dropped and that wait, until no
// older Version exists, for their removal from the address map.
//
// Invariants:
// 1. memory_ is the sum of the memory that the waiting lists had when they were
//    added.
// 2. No waiting list keeps a file open: as many lists may wait as compactions
//    end during the life of an iterator.
//
// Thread-safety: as stated at the functions.
class RetiredRemovals {
 public:
  // max_memory: bytes that the waiting lists may take.
  explicit RetiredRemovals(size_t max_memory = kMaxMemory)
      : max_memory_(max_memory) {}
  RetiredRemovals(const RetiredRemovals&) = delete;
  RetiredRemovals& operator=(const RetiredRemovals&) = delete;

  // Adds a list that waits until no Version older than `version_number` exists.
  // REQUIRES: DB mutex held; Limit() was called for the list.
  void Add(std::unique_ptr<DeferredRemovals>&& removals,
           uint64_t version_number);
  // Returns true if Take(oldest_version) would return a list.
  // REQUIRES: DB mutex held.
  bool Has(uint64_t oldest_version) const;
  // Returns lists of names that are to be removed from the map at once: all
  // that no longer wait for a Version, or the first of them up to and including
  // the one that brings the total to max_names.
  // oldest_version: number of the oldest Version that exists.
  // REQUIRES: DB mutex held.
  std::vector<std::unique_ptr<DeferredRemovals>> Take(uint64_t oldest_version,
                                                      size_t max_names);
  // Moves a list that is about to be added to its spill file if the waiting
  // lists take much memory, and closes the spill file. Thread-safe; best called
  // without the DB mutex.
  void Limit(DeferredRemovals* removals) const;
  // REQUIRES: DB mutex held.
  bool empty() const { return lists_.empty(); }
  // Returns the number of names in all lists.
  // REQUIRES: DB mutex held.
  uint64_t NumNames() const;

 private:
  static constexpr size_t kMaxMemory = size_t{64} << 20;

  struct List {
    uint64_t version_number;
    size_t memory;
    std::unique_ptr<DeferredRemovals> removals;
  };
  const size_t max_memory_;
  std::atomic<size_t> memory_{0};  // bytes
  std::vector<List> lists_;        // protected by the DB mutex
};

}  // namespace ROCKSDB_NAMESPACE
