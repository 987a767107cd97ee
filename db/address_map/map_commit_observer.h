//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class VersionStorageInfo;

// A job that is writing an edit to the MANIFEST and determines from the
// appended Versions whether the edit was committed. The status of the write
// does not tell: it may be an error although the edit was committed, and OK
// although it was not. See AddressMapStore::AddPending().
class MapCommitObserver {
 public:
  virtual ~MapCommitObserver() = default;

  // REQUIRES: DB mutex held.
  virtual void OnVersionAppended(const VersionStorageInfo& version) = 0;
};

}  // namespace ROCKSDB_NAMESPACE
