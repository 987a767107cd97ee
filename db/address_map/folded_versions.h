//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The Versions of a column family that are older than a fold.
//
// A fold commits values over entries with which readers of older Versions merge
// operands, at whatever sequence number they read. The folded value does not
// hide those entries from such readers. While there may be such readers, a
// compaction that finds an entry hidden by a folded value must leave its
// removal from the map to DeferredRemovals, and must not make the folded value
// direct, which would have the same effect as an immediate removal.
//   Begin() -> the edit -> End()
//
// Invariant: IsBefore() is true for each Version that does not have the values
// of each fold that has begun.
//
// Thread-safety: as stated at the functions.
class FoldedVersions {
 public:
  FoldedVersions() = default;
  FoldedVersions(const FoldedVersions&) = delete;
  FoldedVersions& operator=(const FoldedVersions&) = delete;

  // Announces a fold that is about to commit.
  // REQUIRES: DB mutex held.
  void Begin() {
    ++num_folds_;
    Update();
  }
  // Ends what Begin() began.
  // first_version: number of a Version such that it and all later ones have the
  // folded values; 0 if no Version has them.
  // REQUIRES: DB mutex held.
  void End(uint64_t first_version) {
    --num_folds_;
    first_version_ = std::max(first_version_, first_version);
    Update();
  }
  // Returns true if the Version with this number is, or may be, older than a
  // fold that is or will be committed. Lock-free. The answer for a Version may
  // change from false to true at any time, but not after a compaction has built
  // on the fold.
  bool IsBefore(uint64_t version_number) const {
    return version_number < folded_version_.load(std::memory_order_acquire);
  }

 private:
  void Update() {
    folded_version_.store(num_folds_ > 0 ? UINT64_MAX : first_version_,
                          std::memory_order_release);
  }

  // Number of folds that are about to commit.
  int num_folds_ = 0;
  // This Version and all later ones have the values of the folds that ended.
  uint64_t first_version_ = 0;
  // All Versions with this number or a larger one have the values of all folds.
  std::atomic<uint64_t> folded_version_{0};
};

}  // namespace ROCKSDB_NAMESPACE
