//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/feature_removal.h"

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/strata/refused_records.h"
#include "db/version_set.h"
#include "rocksdb/db.h"
#include "rocksdb/metadata.h"
#include "rocksdb/options.h"
#include "rocksdb/utilities/path_migration.h"
#include "test_util/sync_point.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

Status FeatureRemoval::Move(ColumnFamilyHandle* family) {
  // MigratePaths() leaves what memtables refer to.
  const Status s = db_->Flush(FlushOptions(), family);
  if (!s.ok()) {
    return s;
  }
  MigratePathsOptions options;
  uint64_t reported = 0;
  options.on_progress = [&](const MigratePathsProgress& progress) {
    if (progress.jobs > reported) {
      reported = progress.jobs;
      report_("[" + family->GetName() + "] " +
              std::to_string(progress.bytes_moved) + " of " +
              std::to_string(progress.bytes_at_start) + " bytes moved, " +
              std::to_string(progress.files_left) + " files left");
    }
  };
  return MigratePaths(db_, family, options);
}

bool FeatureRemoval::NeedsMoveOfDeltas(ColumnFamilyHandle* family) const {
  if (!features_.Has(FeatureSet::kLayouts) ||
      features_.Has(FeatureSet::kDeltas)) {
    return false;
  }
  ColumnFamilyDescriptor descriptor;
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(family, &metadata);
  return !metadata.delta_files.empty() &&
         family->GetDescriptor(&descriptor).ok() &&
         descriptor.options.cf_paths.size() > 1;
}

Status FeatureRemoval::Compact(ColumnFamilyHandle* family,
                               FeaturePlan::Work work,
                               uint32_t target_path_id) {
  CompactRangeOptions options;
  options.max_subcompactions = num_threads_;
  options.target_path_id = target_path_id;
  if (work == FeaturePlan::Work::kRewrite) {
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  }
  return db_->CompactRange(options, family, nullptr, nullptr);
}

Status FeatureRemoval::RewriteAll(ColumnFamilyHandle* family,
                                  uint32_t target_path_id) {
  CompactRangeOptions options;
  options.max_subcompactions = num_threads_;
  options.target_path_id = target_path_id;
  options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  options.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::kForce;
  options.blob_garbage_collection_age_cutoff = 1.0;
  return db_->CompactRange(options, family, nullptr, nullptr);
}

Status FeatureRemoval::WaitForObsoleteFiles() {
  WaitForCompactOptions options;
  options.wait_for_purge = true;
  return db_->WaitForCompact(options);
}

bool FeatureRemoval::NeedsRewrite(ColumnFamilyHandle* family) const {
  DBImpl* const db = static_cast_with_check<DBImpl>(db_->GetRootDB());
  ColumnFamilyData* const cfd =
      static_cast_with_check<ColumnFamilyHandleImpl>(family)->cfd();
  InstrumentedMutexLock lock(db->mutex());
  const VersionStorageInfo& files = *cfd->current()->storage_info();
  return (features_.Has(FeatureSet::kMap) &&
          files.strata().mapped_stats().num_mapped > 0) ||
         (features_.Has(FeatureSet::kLayouts) &&
          FeaturesRefusedByRocksDB(files).Has(FeatureSet::kLayouts));
}

Status FeatureRemoval::Run(ColumnFamilyHandle* family, FeaturePlan::Work work,
                           uint32_t target_path_id) {
  if (work == FeaturePlan::Work::kNone) {
    return Status::OK();
  }
  Status s = work == FeaturePlan::Work::kMove
                 ? Move(family)
                 : Compact(family, work, target_path_id);
  TEST_SYNC_POINT("FeatureRemoval::Run:Done");
  if (s.ok()) {
    s = WaitForObsoleteFiles();
  }
  if (s.ok() && NeedsRewrite(family)) {
    // For example a file that a compaction has moved to the last level as it
    // was, or blob files with values that count as live and that no file names.
    report_("[" + family->GetName() +
            "] something is left: all files and values are rewritten");
    s = RewriteAll(family, target_path_id);
    if (s.ok()) {
      s = WaitForObsoleteFiles();
    }
  }
  if (s.ok() && work != FeaturePlan::Work::kMove && NeedsMoveOfDeltas(family)) {
    s = Move(family);
    if (s.ok()) {
      s = WaitForObsoleteFiles();
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
