//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "db/dbformat.h"
#include "db/strata/implicit_snapshot_registry.h"

namespace ROCKSDB_NAMESPACE {

// The implicit snapshots that jobs of one column family respect: those of the
// family's own readers, and those of readers of several families, which need
// one sequence number that is valid in all of them.
//
// Invariant: a reader that moves from the shared registry to the family's own
// one registers there before it releases its shared implicit snapshot, and no
// reader moves the other way. So the functions here ask the shared registry
// first: a reader that has left it by then is found in the family's own one.
//
// A value type: two pointers. Thread-safe, as the registries are.
class FamilyImplicitSnapshots {
 public:
  // shared: the registry of the DB. own: the registry of the column family,
  // nullptr if readers of the family only register in the shared one.
  // REQUIRES: both outlive this.
  FamilyImplicitSnapshots(ImplicitSnapshotRegistry* shared,
                          ImplicitSnapshotRegistry* own)
      : shared_(shared), own_(own) {}

  // Calls ImplicitSnapshotRegistry::MergeInto() of both registries.
  // REQUIRES: as for ImplicitSnapshotRegistry::MergeInto().
  void MergeInto(std::vector<SequenceNumber>* snapshots) const;

  // Returns the oldest implicit snapshot; kMaxSequenceNumber if there is none.
  SequenceNumber Min() const;

  enum class Blocker { kNone, kShared, kOwn };
  // Returns the first registry that has an implicit snapshot below `limit`, and
  // calls its ImplicitSnapshotRegistry::NotifyWhenNoneBelow(): the callback of
  // that registry runs once it has none, and the caller must then ask again.
  // Returns kNone if there is no such registry.
  // REQUIRES: as for ImplicitSnapshotRegistry::NotifyWhenNoneBelow().
  Blocker NotifyWhenNoneBelow(SequenceNumber limit) const;

 private:
  ImplicitSnapshotRegistry* const shared_;
  ImplicitSnapshotRegistry* const own_;
};

}  // namespace ROCKSDB_NAMESPACE
