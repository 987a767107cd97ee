//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// DB::Properties::kStrataPrometheus: reads the numbers of the DB and of its
// column families. FamilyMetrics and StatisticsMetrics write them.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob_heat/blob_heat.h"
#include "db/column_family.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/internal_stats.h"
#include "db/path_layout/directory_names.h"
#include "db/path_layout/misplaced_bytes.h"
#include "db/path_layout/obsolete_bytes.h"
#include "db/strata/background_job.h"
#include "db/strata/db_strata.h"
#include "db/strata/family_metrics.h"
#include "db/table_cache.h"
#include "db/version_set.h"
#include "file/sst_file_manager_impl.h"
#include "file/strata/path_faults.h"
#include "monitoring/strata/prometheus_text.h"
#include "monitoring/strata/statistics_metrics.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Type = PrometheusText::Type;

// Integer properties of the whole DB.
const std::vector<IntPropertyMetric>& DbProperties() {
  static const std::vector<IntPropertyMetric> kTable = {
      {&DB::Properties::kIsWriteStopped, "rocksdb_is_write_stopped",
       Type::kGauge, "1 while writes are stopped."},
      {&DB::Properties::kActualDelayedWriteRate,
       "rocksdb_actual_delayed_write_rate", Type::kGauge,
       "Bytes a second that writes are slowed down to, or 0."},
      {&DB::Properties::kNumRunningFlushes, "rocksdb_num_running_flushes",
       Type::kGauge, "Flushes that run."},
      {&DB::Properties::kNumRunningCompactions,
       "rocksdb_num_running_compactions", Type::kGauge,
       "Compactions that run."},
      {&DB::Properties::kNumSnapshots, "rocksdb_num_snapshots", Type::kGauge,
       "Snapshots that are not released."},
      {&DB::Properties::kOldestSnapshotTime,
       "rocksdb_oldest_snapshot_time_seconds", Type::kGauge,
       "Unix time of the oldest snapshot, or 0."},
      {&DB::Properties::kIsFileDeletionsEnabled,
       "rocksdb_is_file_deletions_enabled", Type::kGauge,
       "0 while DisableFileDeletions() is in effect."},
      {&DB::Properties::kObsoleteSstFilesSize,
       "rocksdb_obsolete_sst_files_size", Type::kGauge,
       "Bytes of SST files that are not deleted yet, of no version."},
  };
  return kTable;
}

constexpr std::pair<BackgroundJob::Kind, const char*> kJobKinds[] = {
    {BackgroundJob::Kind::kBlobGc, "blob_gc"},
    {BackgroundJob::Kind::kRangeSweep, "range_sweep"},
    {BackgroundJob::Kind::kMapRemovals, "map_removals"},
    {BackgroundJob::Kind::kDelta, "delta"},
};

// Adds those of the properties that the DB mutex protects, or, with a Version,
// those that are read without it.
void ReadProperties(const std::vector<IntPropertyMetric>& rows,
                    ColumnFamilyData* cfd, DBImpl* db, Version* version,
                    std::map<const IntPropertyMetric*, uint64_t>* values) {
  InternalStats* const stats = cfd->internal_stats();
  for (const IntPropertyMetric& row : rows) {
    const DBPropertyInfo* const info = GetPropertyInfo(*row.property);
    assert(info != nullptr && info->handle_int != nullptr);
    if (info->need_out_of_mutex != (version != nullptr)) {
      continue;
    }
    uint64_t value = 0;
    const bool exists =
        version != nullptr
            ? stats->GetIntPropertyOutOfMutex(*info, version, &value)
            : stats->GetIntProperty(*info, &value, db);
    if (exists) {
      values->emplace(&row, value);
    }
  }
}

void ReadPaths(const SuperVersion& sv, ColumnFamilyData* cfd,
               FamilyNumbers* numbers) {
  const VersionStorageInfo& files = *sv.current->storage_info();
  const std::vector<DbPath>& cf_paths = cfd->ioptions().cf_paths;
  const AddressMapStore* const map = cfd->address_map_store();
  const PathReadStats* const reads =
      cfd->table_cache()->path_read_stats().get();
  std::vector<PathStats> paths =
      PathStats::Collect(files, cf_paths, reads, map);
  if (reads != nullptr) {
    // Without an option that names paths, too: these are mere counts.
    PathStats::AddJobs(reads->jobs(), &paths);
    if (reads->times() != nullptr) {
      PathStats::AddTimes(*reads->times(), &paths);
    }
  }
  PathStats::AddMisplaced(
      sv.mutable_cf_options,
      MisplacedBytes::Of(files, sv.mutable_cf_options, paths.size(), map),
      &paths);
  for (PathStats& path : paths) {
    numbers->paths.emplace_back().stats = std::move(path);
  }
}

// Reads what the DB mutex does not protect. REQUIRES: it is not held
void ReadFiles(const SuperVersion& sv, ColumnFamilyData* cfd, DBImpl* db,
               FamilyNumbers* numbers) {
  const VersionStorageInfo& files = *sv.current->storage_info();
  ReadProperties(FamilyMetrics::Properties(), cfd, db, sv.current,
                 &numbers->properties);
  for (int level = 0; level < files.num_levels(); ++level) {
    LevelNumbers& sum = numbers->levels.emplace_back();
    for (const FileMetaData* file : files.LevelFiles(level)) {
      ++sum.files;
      sum.bytes += file->fd.GetFileSize();
    }
  }
  ReadPaths(sv, cfd, numbers);
  const MergedValueCache* const merged_values = cfd->merged_values();
  if (merged_values != nullptr) {
    numbers->merged_values.emplace();
    numbers->merged_values->capacity = merged_values->capacity();
    numbers->merged_values->stats = merged_values->GetStats();
  }
  const DeltaStore* const store = cfd->delta_store();
  const DeltaVersion* const delta = files.delta().get();
  if (store != nullptr || delta != nullptr) {
    DeltaNumbers& deltas = numbers->deltas.emplace();
    if (delta != nullptr) {
      deltas.stats = DeltaStoreStats::Collect(
          *delta, DeltaPicker::Paths::By(sv.mutable_cf_options,
                                         cfd->ioptions().num_levels));
    }
    if (store != nullptr) {
      deltas.cache_capacity = store->CacheCapacity();
      deltas.cache = store->CacheStats();
    }
  }
}

// Reads the rest. REQUIRES: DB mutex held, and ReadFiles() was called
void ReadState(ColumnFamilyData* cfd, DBImpl* db,
               const std::set<std::string>& faults, FamilyNumbers* numbers) {
  ReadProperties(FamilyMetrics::Properties(), cfd, db, /*version=*/nullptr,
                 &numbers->properties);
  const VersionStorageInfo& files = *cfd->current()->storage_info();
  const AddressMapStore* const blobs = cfd->address_map_store();
  if (blobs != nullptr) {
    AddressMapNumbers& map = numbers->map.emplace();
    map.stats = AddressMapStats::Collect(*blobs, files);
    map.slows_writes = blobs->gc()->slows_down();
    map.hot_budget = blobs->heat()->budget();
    if (blobs->enabled()) {
      numbers->space_amp_limit =
          cfd->GetLatestMutableCFOptions().blob_gc_space_amp_limit;
    }
  }
  const DeltaStore* const store = cfd->delta_store();
  if (numbers->deltas.has_value() && store != nullptr &&
      files.delta() != nullptr) {
    DeltaNumbers& deltas = *numbers->deltas;
    deltas.debt = DeltaPicker::Debt(*files.delta(), store->jobs());
    deltas.is_draining = !cfd->ioptions().enable_delta_separation;
    if (deltas.is_draining) {
      deltas.drain_waiting_files = DeltaStoreStats::NumWaitingForDrain(*store);
    }
  }
  const std::vector<uint64_t> obsolete =
      ObsoleteBytes(cfd, numbers->paths.size());
  for (size_t i = 0; i < numbers->paths.size(); ++i) {
    PathNumbers& path = numbers->paths[i];
    path.obsolete_bytes = obsolete[i];
    path.has_fault = faults.count(CleanDirectoryName(
                         /*fs=*/nullptr, path.stats.directory)) > 0;
  }
}

}  // namespace

void DBStrata::AddDbMetrics(size_t num_faults, PrometheusText* text) {
  std::map<const IntPropertyMetric*, uint64_t> properties;
  int severity = 0;
  std::vector<std::pair<const char*, int>> jobs;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    ReadProperties(DbProperties(),
                   db_->versions_->GetColumnFamilySet()->GetDefault(), db_,
                   /*version=*/nullptr, &properties);
    severity = static_cast<int>(db_->error_handler_.GetBGError().severity());
    for (const auto& [kind, name] : kJobKinds) {
      jobs.emplace_back(name, scheduler_.NumJobs(kind));
    }
  }
  const PrometheusText::Labels none;
  for (const IntPropertyMetric& row : DbProperties()) {
    const size_t metric = text->Define(row.name, row.type, row.help);
    const auto found = properties.find(&row);
    if (found != properties.end()) {
      text->Add(metric, none, static_cast<double>(found->second));
    }
  }
  text->Add(text->Define("rocksdb_background_error_severity", Type::kGauge,
                         "The background error: 0 none, 1 soft, 2 hard, 3 "
                         "fatal, 4 unrecoverable."),
            none, severity);
  text->Add(text->Define("rocksdb_path_faults", Type::kGauge,
                         "Directories in which no files can be made."),
            none, static_cast<double>(num_faults));
  text->Add(text->Define("rocksdb_wal_buffer_capacity_bytes", Type::kGauge,
                         "Bytes of the WAL buffer, or 0 without one."),
            none,
            wal_buffer_ == nullptr
                ? 0.0
                : static_cast<double>(
                      db_->immutable_db_options_.wal_mmap_buffer_size));
  const size_t metric =
      text->Define("rocksdb_num_strata_jobs", Type::kGauge,
                   "Jobs of the kind that run or wait for a thread.");
  for (const auto& [name, number] : jobs) {
    text->Add(metric, PrometheusText::Labels().Add("kind", name), number);
  }
}

void DBStrata::WriteMetrics(std::string* result) {
  PrometheusText text;
  if (db_->immutable_db_options_.stats != nullptr) {
    StatisticsMetrics::Add(*db_->immutable_db_options_.stats, &text);
  }
  std::set<std::string> faults;
  if (FileManager() != nullptr) {
    for (std::string& directory : FileManager()->path_faults()->Of(this)) {
      faults.insert(std::move(directory));
    }
  }
  AddDbMetrics(faults.size(), &text);
  FamilyMetrics metrics(&text);
  // A column family can be dropped, and another one of its name created, while
  // the mutex is released. Two samples with the same labels would make the
  // whole text invalid.
  std::set<std::string> names;
  InstrumentedMutexLock lock(&db_->mutex_);
  for (ColumnFamilyData* cfd : db_->versions_->GetRefedColumnFamilySet()) {
    if (cfd->IsDropped() || !cfd->initialized() ||
        !names.insert(cfd->GetName()).second) {
      continue;
    }
    FamilyNumbers numbers;
    numbers.name = cfd->GetName();
    db_->mutex_.Unlock();
    TEST_SYNC_POINT("DBStrata::WriteMetrics:Family");
    SuperVersion* const sv = db_->GetAndRefSuperVersion(cfd);
    ReadFiles(*sv, cfd, db_, &numbers);
    db_->ReturnAndCleanupSuperVersion(cfd, sv);
    db_->mutex_.Lock();
    ReadState(cfd, db_, faults, &numbers);
    // Writes do not wait for the text.
    db_->mutex_.Unlock();
    metrics.Add(numbers);
    db_->mutex_.Lock();
  }
  *result = text.ToString();
}

//======== DBImpl

bool DBImpl::GetPropertyHandlePrometheus(std::string* value) {
  strata_->WriteMetrics(value);
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
