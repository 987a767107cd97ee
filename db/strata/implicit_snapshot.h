//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <optional>

#include "db/snapshot_impl.h"
#include "db/strata/implicit_snapshot_registry.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

// Provides an implicit snapshot as the snapshot of ReadOptions, for code that
// reads several column families at one sequence number. The snapshot object is
// in no SnapshotList; it is registered in an ImplicitSnapshotRegistry.
//
// Used by one thread at a time.
class ImplicitSnapshot {
 public:
  // REQUIRES: both outlive this
  ImplicitSnapshot(const ReadOptions& read_options,
                   ImplicitSnapshotRegistry* bounds)
      : read_options_(read_options), bounds_(bounds) {}
  ImplicitSnapshot(const ImplicitSnapshot&) = delete;
  ImplicitSnapshot& operator=(const ImplicitSnapshot&) = delete;

  // Registers the implicit snapshot. Does nothing if the caller's ReadOptions
  // have a snapshot, or if it is registered already.
  // REQUIRES: as for ImplicitSnapshotRegistry::Register().
  template <typename LastSequence>
  void Take(const LastSequence& last_sequence) {
    if (read_options_.snapshot == nullptr && !bound_.registered()) {
      bound_ = bounds_->Register(last_sequence);
      snapshot_.number_ = bound_.sequence();
      bounded_options_ = read_options_;
      bounded_options_->snapshot = &snapshot_;
    }
  }

  bool taken() const { return bound_.registered(); }

  // Returns the caller's ReadOptions, with the implicit snapshot if it was
  // taken.
  const ReadOptions& options() const {
    return bounded_options_.has_value() ? *bounded_options_ : read_options_;
  }

 private:
  const ReadOptions& read_options_;
  ImplicitSnapshotRegistry* const bounds_;
  ImplicitSnapshotRegistry::ReadBound bound_;
  SnapshotImpl snapshot_;
  std::optional<ReadOptions> bounded_options_;
};

}  // namespace ROCKSDB_NAMESPACE
