//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Which column families a replay of WALs would concern.

#include "db/column_family.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

bool DBStrata::IsWalOfAFamily(uint64_t wal_number) {
  InstrumentedMutexLock lock(&db_->mutex_);
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    if (cfd->IsDropped() || !cfd->initialized()) {
      continue;
    }
    if (cfd->GetLogNumber() <= wal_number) {
      return true;
    }
  }
  return false;
}

}  // namespace ROCKSDB_NAMESPACE
