//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/db_strata.h"

#include "db/address_map/flush_mapping.h"
#include "db/delta/delta_flush.h"
#include "db/strata/range_conversion.h"
#include "db/write_path/wal_buffer_options.h"
#include "db/write_path/write_group_combiner.h"
#include "options/options_helper.h"
#include "options/strata/strata_cf_options.h"

namespace ROCKSDB_NAMESPACE {

Status DBStrata::ValidateOptions(const DBOptions& db_options) {
  Status s = ValidateStrataRanges(db_options);
  if (s.ok()) {
    s = ValidateWriteLeadership(db_options);
  }
  if (s.ok()) {
    s = ValidateWalBuffer(db_options);
  }
  return s;
}

Status DBStrata::ValidateOpen(
    const DBOptions& db_options,
    const std::vector<ColumnFamilyDescriptor>& column_families) {
  for (const ColumnFamilyDescriptor& family : column_families) {
    const Status s =
        ROCKSDB_NAMESPACE::ValidateOptions(db_options, family.options);
    if (!s.ok()) {
      return s;
    }
  }
  return DBImpl::ValidateOptions(db_options, column_families);
}

DBStrata::DBStrata(DBImpl* db) : db_(db) {}

DBStrata::~DBStrata() = default;

void DBStrata::EndRecoveryDeltas() { recovery_delta_flushes_.clear(); }

void DBStrata::EndRecovery() {
  db_->mutex_.AssertHeld();
  SettleRecoveryMappings();
  EndRecoveryDeltas();
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    if (cfd->initialized()) {
      RangeConversion::OnRecovered(cfd, db_->versions_->LastSequence());
    }
  }
}

//======== DBImpl

DBImpl::DBStrataPtr DBImpl::NewDBStrata(DBImpl* db) {
  return DBStrataPtr(new DBStrata(db), [](DBStrata* strata) { delete strata; });
}

Status DBImpl::RecoverAddressMaps() { return strata_->RecoverAddressMaps(); }

Status DBImpl::CollectBlobGarbage(const CollectBlobGarbageOptions& options,
                                  ColumnFamilyHandle* column_family) {
  return strata_->CollectBlobGarbage(options, column_family);
}

}  // namespace ROCKSDB_NAMESPACE
