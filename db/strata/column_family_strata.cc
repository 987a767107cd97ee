//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/column_family_strata.h"

#include <utility>

#include "db/address_map/address_map_recovery.h"
#include "db/address_map/address_map_store.h"
#include "db/blob_heat/blob_heat.h"
#include "db/column_family.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_table_factory.h"
#include "db/merged_value/merged_value_cache.h"
#include "db/scan_sort/scan_debts.h"
#include "db/table_cache.h"
#include "db/version_set.h"
#include "options/options_helper.h"
#include "options/strata/address_map_options.h"
#include "options/strata/delta_options.h"
#include "options/strata/merged_value_options.h"
#include "options/strata/path_options.h"
#include "options/strata/strata_cf_options.h"

namespace ROCKSDB_NAMESPACE {

Status ColumnFamilyStrata::ValidateOptions(
    const DBOptions& db_options, const ColumnFamilyOptions& cf_options) {
  Status s = ValidateStrataRanges(cf_options);
  if (s.ok()) {
    s = ValidatePathOptions(db_options, cf_options);
  }
  if (s.ok()) {
    s = ValidateAddressMapOptions(db_options, cf_options);
  }
  if (s.ok()) {
    s = ValidateMergedValueOptions(db_options, cf_options);
  }
  if (s.ok()) {
    s = ValidateDeltaOptions(db_options, cf_options);
  }
  return s;
}

#ifndef NDEBUG
void ColumnFamilyStrata::ForceFeaturesForTests(
    const ImmutableDBOptions& db_options, ColumnFamilyOptions* cf_options) {
  const DBOptions options = BuildDBOptions(db_options, MutableDBOptions());
  ForceAddressMapForTests(options, cf_options);
  ForceMergedValueCacheForTests(options, cf_options);
  ForceDeltaSeparationForTests(options, cf_options);
}
#endif  // !NDEBUG

ColumnFamilyStrata::ColumnFamilyStrata(ColumnFamilyData* cfd) : cfd_(cfd) {}

ColumnFamilyStrata::~ColumnFamilyStrata() = default;

void ColumnFamilyStrata::CreateFeatures() {
  const ImmutableOptions& ioptions = cfd_->ioptions();
  const MutableCFOptions& options = cfd_->GetLatestMutableCFOptions();
  if (ioptions.enable_blob_address_map) {
    CreateAddressMapStore();
  }
  if (ioptions.enable_merged_value_cache) {
    merged_values_ = MergedValueCache::Create(options);
    needs_point_read_ = true;
    merged_value_cache_size_ = options.merged_value_cache_size;
  }
  if (ioptions.enable_delta_separation) {
    CreateDeltaStore();
  }
}

void ColumnFamilyStrata::CreateAddressMapStore() {
  address_map_store_ = std::make_unique<AddressMapStore>(
      cfd_->GetID(), cfd_->ioptions(),
      *cfd_->GetLatestMutableCFOptions().table_factory,
      cfd_->blob_file_cache());
  needs_point_read_ = true;
  ReportOptionsWithoutEffect(cfd_->ioptions().logger, cfd_->GetName(),
                             cfd_->GetLatestMutableCFOptions());
  if (cfd_->current() != nullptr) {
    address_map_store_->OnVersionAppended(*cfd_->current());
    // The Version may still refer to a map that was replaced just now.
    cfd_->current()->storage_info()->strata()->SetUndecidedFiles(
        address_map_store_->undecided_files());
  }
}

void ColumnFamilyStrata::CreateDeltaStore() {
  const ColumnFamilySet& families = *cfd_->column_family_set_;
  DeltaTableFamily family(cfd_->ioptions());
  family.id = cfd_->GetID();
  family.name = cfd_->GetName();
  family.file_options = *cfd_->soptions();
  family.db_session_id = families.db_session_id_;
  family.io_tracer = families.io_tracer_;
  family.block_cache_tracer = families.block_cache_tracer_;
  family.path_read_stats = cfd_->table_cache()->path_read_stats();
  delta_store_ = std::make_unique<DeltaStore>(
      std::move(family), cfd_->GetLatestMutableCFOptions());
  needs_point_read_ = true;
}

uint64_t ColumnFamilyStrata::AddDebt(uint64_t compaction_bytes,
                                     const VersionStorageInfo& version,
                                     const MutableCFOptions& options) {
  uint64_t debt = compaction_bytes;
  if (address_map_store_ != nullptr) {
    debt = address_map_store_->AddGcDebt(debt, version, options);
  }
  if (delta_store_ != nullptr) {
    debt = DeltaPicker::AddDebt(debt, version.delta().get(),
                                delta_store_->jobs(), options);
  }
  // With disable_auto_compactions, RocksDB slows down no write by this number.
  last_debt_ =
      debt > compaction_bytes && !options.disable_auto_compactions ? debt : 0;
  return debt;
}

Status ColumnFamilyStrata::CheckNewOptions(
    const DBOptions& db_options, const ColumnFamilyOptions& cf_options) const {
  Status s;
  if (address_map_store_ != nullptr && AddressMapRecovery::HasMapped(*cfd_)) {
    s = ValidateOptionsOfMappedValues(db_options, cf_options);
  }
  // A flush that began while there were delta files adds one, although all
  // others may have been removed since.
  if (s.ok() && delta_store_ != nullptr &&
      (cfd_->current()->storage_info()->delta() != nullptr ||
       delta_store_->OldestRunningFlush() != UINT64_MAX)) {
    s = ValidateOptionsOfDeltas(db_options, cf_options);
  }
  return s;
}

void ColumnFamilyStrata::UpdateOptions(const MutableCFOptions& options) {
  if (merged_values_ != nullptr &&
      options.merged_value_cache_size != merged_value_cache_size_) {
    merged_values_->LimitCapacity(MergedValueCacheSize(options));
    merged_value_cache_size_ = options.merged_value_cache_size;
  }
  if (delta_store_ != nullptr) {
    delta_store_->Update(options);
  }
  if (address_map_store_ != nullptr && address_map_store_->enabled()) {
    address_map_store_->heat()->Configure(options.blob_hot_bytes,
                                          options.blob_hot_path_id);
    // Scans are charged also while no job may be scheduled.
    address_map_store_->scan_debts()->SetBudget(options.blob_scan_sort_budget);
  }
}

void ColumnFamilyStrata::TrimCaches() {
  if (merged_values_ != nullptr) {
    merged_values_->Trim();
  }
  if (delta_store_ != nullptr) {
    delta_store_->TrimCache();
  }
}

void ColumnFamilyStrata::ReleaseDropped(VersionSet* versions) {
  if (address_map_store_ != nullptr) {
    address_map_store_->ReleaseAll(versions);
  }
}

}  // namespace ROCKSDB_NAMESPACE
