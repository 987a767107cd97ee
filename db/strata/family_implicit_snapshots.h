//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "db/dbformat.h"
#include "db/strata/implicit_snapshot_registry.h"

namespace ROCKSDB_NAMESPACE {

// The bounds that jobs of one column family respect: the bounds of the
// family's own readers, and the bounds of readers of several families, which
// need one sequence number that is valid in all of them.
//
// Invariant: a reader that moves from the shared registry to the family's own
// one lists its sequence number there before it gives the shared bound up, and
// no reader moves the other way. So the functions here ask the shared registry
// first: a reader that has left it by then is found in the family's own one.
//
// A value of two pointers. Thread-safe, as the registries are.
class FamilyImplicitSnapshots {
 public:
  // shared: of the DB; own: of the column family, nullptr if the readers of
  // the family have no bounds of their own. Both outlive this.
  FamilyImplicitSnapshots(ImplicitSnapshotRegistry* shared,
                          ImplicitSnapshotRegistry* own)
      : shared_(shared), own_(own) {}

  // ImplicitSnapshotRegistry::MergeInto() of both.
  // REQUIRES: as there
  void MergeInto(std::vector<SequenceNumber>* snapshots) const;

  // The oldest bound; kMaxSequenceNumber if there is none.
  SequenceNumber Min() const;

  enum class Blocker { kNone, kShared, kOwn };
  // ImplicitSnapshotRegistry::NotifyWhenNoneBelow() of the first registry that
  // has a bound below `limit`, which is the result: the callback of that
  // registry runs once it has none. The caller must then ask again. REQUIRES:
  // as there
  Blocker NotifyWhenNoneBelow(SequenceNumber limit) const;

 private:
  ImplicitSnapshotRegistry* const shared_;
  ImplicitSnapshotRegistry* const own_;
};

}  // namespace ROCKSDB_NAMESPACE
