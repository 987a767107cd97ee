//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class VersionStorageInfo;

// A job that has an edit on its way to the MANIFEST, and learns from the
// Versions that are appended whether it was committed: a status may be bad
// after a commit and good without one. See AddressMapStore::AddPending().
class MapCommitObserver {
 public:
  virtual ~MapCommitObserver() = default;

  // REQUIRES: DB mutex held.
  virtual void OnVersionAppended(const VersionStorageInfo& version) = 0;
};

}  // namespace ROCKSDB_NAMESPACE
