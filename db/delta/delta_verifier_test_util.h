//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_verifier.h"
#include "db/version_set.h"
#include "rocksdb/db.h"
#include "rocksdb/rocksdb_namespace.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

// Returns the errors in the delta files of a column family that DeltaVerifier
// and DeltaVersion::CheckConsistency() find.
inline std::vector<std::string> DeltaErrors(DB* db,
                                            ColumnFamilyHandle* handle) {
  std::vector<std::string> errors;
  DBImpl* const impl = static_cast_with_check<DBImpl>(db->GetRootDB());
  ColumnFamilyData* const cfd =
      static_cast_with_check<ColumnFamilyHandleImpl>(handle)->cfd();
  SuperVersion* const sv = cfd->GetReferencedSuperVersion(impl);
  const DeltaVersion* const delta = sv->current->storage_info()->delta().get();
  if (delta != nullptr) {
    const Status s = delta->CheckConsistency();
    if (!s.ok()) {
      errors.push_back(s.ToString());
    }
    DeltaTableFamily family(cfd->ioptions());
    family.id = cfd->GetID();
    family.name = cfd->GetName();
    family.file_options = FileOptions(impl->GetDBOptions());
    const auto tables = NewUncachedDeltaTables(family, sv->mutable_cf_options);
    DeltaVerifier::Result result;
    DeltaVerifier::Verify(
        *tables, *delta, DeltaVerifier::Options(),
        [&](const std::string& line) { errors.push_back(line); }, &result);
  }
  impl->CleanupSuperVersion(sv);
  return errors;
}

}  // namespace ROCKSDB_NAMESPACE
