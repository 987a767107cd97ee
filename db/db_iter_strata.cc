//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The part of DBIter that reads blob files on behalf of a tailing iterator.

#include "db/db_iter.h"

namespace ROCKSDB_NAMESPACE {

// Each fetch is for the entry at which iter_ is. The Version of iter_ has the
// blob file of this entry, and exists until iter_ moves. A value that has been
// fetched does not need the Version any more.
void DBIter::FollowTailingVersion() {
  // The iterators of some databases ignore ReadOptions::tailing and keep their
  // Version. These return nullptr.
  const Version* const version = iter_.iter()->current_version();
  if (version != nullptr) {
    blob_state_.mut()->reader.SetVersion(version);
    value_columns_state_.mut()->entity_blob_resolver().SetVersion(version);
  }
}

}  // namespace ROCKSDB_NAMESPACE
