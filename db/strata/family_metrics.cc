//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/family_metrics.h"

#include <limits>
#include <utility>

#include "db/path_layout/path_job_stats.h"
#include "rocksdb/db.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Labels = PrometheusText::Labels;
using Type = PrometheusText::Type;

template <typename T>
struct Row {
  const char* name;
  Type type;
  const char* help;
  double (*get)(const T&);
};

double Number(uint64_t number) { return static_cast<double>(number); }

using Family = FamilyNumbers;

constexpr Row<Family> kFamilyRows[] = {
    {"rocksdb_cf_live_sst_files_size", Type::kGauge,
     "Bytes of the SST files of the current version.",
     [](const Family& f) { return Number(f.SstBytes()); }},
    {"rocksdb_cf_live_blob_file_size", Type::kGauge,
     "Bytes of the blob files of the current version.",
     [](const Family& f) { return Number(f.BlobBytes()); }},
    {"rocksdb_cf_live_blob_file_garbage_size", Type::kGauge,
     "Bytes of garbage in the blob files of the current version.",
     [](const Family& f) { return Number(f.BlobGarbageBytes()); }},
    {"rocksdb_cf_blob_space_amplification", Type::kGauge,
     "Bytes of the blob files divided by their bytes without garbage.",
     [](const Family& f) { return f.BlobSpaceAmp(); }},
    {"rocksdb_cf_blob_gc_space_amp_limit", Type::kGauge,
     "The option blob_gc_space_amp_limit, or 0 without an address map.",
     [](const Family& f) { return f.space_amp_limit; }},
};

constexpr Row<LevelNumbers> kLevelRows[] = {
    {"rocksdb_cf_num_files_at_level", Type::kGauge, "SST files of the level.",
     [](const LevelNumbers& l) { return Number(l.files); }},
    {"rocksdb_cf_bytes_at_level", Type::kGauge,
     "Bytes of the SST files of the level.",
     [](const LevelNumbers& l) { return Number(l.bytes); }},
};

using Map = AddressMapNumbers;

constexpr Row<Map> kMapRows[] = {
    {"rocksdb_cf_address_map_entries", Type::kGauge,
     "Values in the address map.",
     [](const Map& m) { return Number(m.stats.entries); }},
    {"rocksdb_cf_address_map_memory_bytes", Type::kGauge,
     "Bytes of memory of the address map.",
     [](const Map& m) { return Number(m.stats.memory); }},
    {"rocksdb_cf_address_map_files", Type::kGauge,
     "Blob files in the table of the address map.",
     [](const Map& m) { return Number(m.stats.files); }},
    {"rocksdb_cf_address_map_pinned_files", Type::kGauge,
     "Blob files of the address map that readers or jobs hold.",
     [](const Map& m) { return Number(m.stats.pinned_files); }},
    {"rocksdb_cf_address_map_live_bytes", Type::kGauge,
     "Bytes of the records that the address map names.",
     [](const Map& m) { return Number(m.stats.live_bytes); }},
    {"rocksdb_cf_address_map_lost_values", Type::kGauge,
     "Values of the address map whose blob file is missing.",
     [](const Map& m) { return Number(m.stats.lost_values); }},
    {"rocksdb_cf_address_map_damaged_files", Type::kGauge,
     "Blob files that garbage collection could not read.",
     [](const Map& m) { return Number(m.stats.damaged_files); }},
    {"rocksdb_cf_address_map_blocked_removals", Type::kGauge,
     "Removals from the address map that wait for readers.",
     [](const Map& m) { return Number(m.stats.blocked_removals); }},
    {"rocksdb_cf_address_map_pending_range_deletions", Type::kGauge,
     "Range deletions whose values are not freed yet.",
     [](const Map& m) { return Number(m.stats.pending_range_deletions); }},
    {"rocksdb_cf_address_map_retired_removals", Type::kGauge,
     "Names that leave the address map when old versions are gone.",
     [](const Map& m) { return Number(m.stats.retired_removals); }},
    {"rocksdb_cf_blob_gc_slows_writes", Type::kGauge,
     "1 while writes are slowed down until garbage is collected.",
     [](const Map& m) { return m.slows_writes ? 1.0 : 0.0; }},
    {"rocksdb_cf_scan_sort_debt_bytes", Type::kGauge,
     "Bytes that scans have lost to values that are not in key order.",
     [](const Map& m) { return Number(m.stats.scan_debt); }},
    {"rocksdb_cf_scan_sort_level0_debt_bytes", Type::kGauge,
     "Bytes that scans have lost to the files of level 0.",
     [](const Map& m) { return Number(m.stats.level0_scan_debt); }},
    {"rocksdb_cf_scan_sort_ranges", Type::kGauge,
     "Key ranges with a debt of scans.",
     [](const Map& m) { return Number(m.stats.scan_ranges); }},
    {"rocksdb_cf_hot_files", Type::kGauge, "Blob files with hot values.",
     [](const Map& m) { return Number(m.stats.hot_files); }},
    {"rocksdb_cf_hot_bytes", Type::kGauge,
     "Bytes of the blob files with hot values.",
     [](const Map& m) { return Number(m.stats.hot_bytes); }},
    {"rocksdb_cf_hot_budget_bytes", Type::kGauge, "The option blob_hot_bytes.",
     [](const Map& m) { return Number(m.hot_budget); }},
    {"rocksdb_cf_hot_candidates", Type::kGauge,
     "Values that wait for a place on the hot path.",
     [](const Map& m) { return Number(m.stats.hot_candidates); }},
    {"rocksdb_cf_hot_threshold", Type::kGauge,
     "Recent reads that a value needs for a place on the hot path.",
     [](const Map& m) { return Number(m.stats.hot_threshold); }},
    {"rocksdb_cf_hot_sketch_memory_bytes", Type::kGauge,
     "Bytes of memory of the counts of reads.",
     [](const Map& m) { return Number(m.stats.hot_sketch_memory); }},
};

using Merged = MergedValueNumbers;

constexpr Row<Merged> kMergedRows[] = {
    {"rocksdb_cf_merged_value_cache_capacity_bytes", Type::kGauge,
     "Bytes that the merged-value cache may take.",
     [](const Merged& m) { return Number(m.capacity); }},
    {"rocksdb_cf_merged_value_cache_entries", Type::kGauge,
     "Values in the merged-value cache.",
     [](const Merged& m) { return Number(m.stats.entries); }},
    {"rocksdb_cf_merged_value_cache_bytes", Type::kGauge,
     "Bytes of the merged-value cache.",
     [](const Merged& m) { return Number(m.stats.bytes); }},
    {"rocksdb_cf_merged_value_cache_charged_bytes", Type::kGauge,
     "Bytes of the merged-value cache that the block cache counts.",
     [](const Merged& m) { return Number(m.stats.charged); }},
    {"rocksdb_cf_merged_value_cache_large_entries", Type::kGauge,
     "Large values in the merged-value cache.",
     [](const Merged& m) { return Number(m.stats.large); }},
    {"rocksdb_cf_merged_value_cache_evicted_total", Type::kCounter,
     "Values that the merged-value cache has evicted.",
     [](const Merged& m) { return Number(m.stats.evicted); }},
    {"rocksdb_cf_merged_value_cache_carried_total", Type::kCounter,
     "Values that flushes have merged operands into.",
     [](const Merged& m) { return Number(m.stats.carried); }},
    {"rocksdb_cf_merged_value_cache_too_large_total", Type::kCounter,
     "Values that were too large for the merged-value cache.",
     [](const Merged& m) { return Number(m.stats.too_large); }},
};

using Deltas = DeltaNumbers;

constexpr Row<Deltas> kDeltaRows[] = {
    {"rocksdb_cf_delta_operands", Type::kGauge, "Operands in delta files.",
     [](const Deltas& d) { return Number(d.stats.num_operands); }},
    {"rocksdb_cf_delta_anchors", Type::kGauge, "Anchors in delta files.",
     [](const Deltas& d) { return Number(d.stats.num_anchors); }},
    {"rocksdb_cf_delta_buckets", Type::kGauge, "Buckets of the delta store.",
     [](const Deltas& d) { return Number(d.stats.num_buckets); }},
    {"rocksdb_cf_delta_debt_bytes", Type::kGauge,
     "Bytes of delta files beyond the numbers that slow writes down.",
     [](const Deltas& d) { return Number(d.debt); }},
    {"rocksdb_cf_delta_misplaced_files", Type::kGauge,
     "Delta files that are on another path than the options say.",
     [](const Deltas& d) { return Number(d.stats.misplaced.files); }},
    {"rocksdb_cf_delta_misplaced_bytes", Type::kGauge,
     "Bytes of the delta files that are on another path.",
     [](const Deltas& d) { return Number(d.stats.misplaced.bytes); }},
    {"rocksdb_cf_delta_open_files", Type::kGauge, "Delta files that are open.",
     [](const Deltas& d) { return Number(d.stats.open_files); }},
    {"rocksdb_cf_delta_reader_memory_bytes", Type::kGauge,
     "Bytes of memory of the readers of delta files.",
     [](const Deltas& d) { return Number(d.stats.reader_memory); }},
    {"rocksdb_cf_delta_version_memory_bytes", Type::kGauge,
     "Bytes of memory of the list of delta files and buckets.",
     [](const Deltas& d) { return Number(d.stats.version_memory); }},
    {"rocksdb_cf_delta_draining", Type::kGauge,
     "1 while the delta files are drained.",
     [](const Deltas& d) { return d.is_draining ? 1.0 : 0.0; }},
    {"rocksdb_cf_delta_drain_waiting_files", Type::kGauge,
     "Delta files for which the drain has to wait.",
     [](const Deltas& d) { return Number(d.drain_waiting_files); }},
    {"rocksdb_cf_delta_cache_capacity_bytes", Type::kGauge,
     "Bytes that the delta cache may take.",
     [](const Deltas& d) { return Number(d.cache_capacity); }},
    {"rocksdb_cf_delta_cache_entries", Type::kGauge, "Keys in the delta cache.",
     [](const Deltas& d) { return Number(d.cache.entries); }},
    {"rocksdb_cf_delta_cache_bytes", Type::kGauge, "Bytes of the delta cache.",
     [](const Deltas& d) { return Number(d.cache.bytes); }},
    {"rocksdb_cf_delta_cache_charged_bytes", Type::kGauge,
     "Bytes of the delta cache that the block cache counts.",
     [](const Deltas& d) { return Number(d.cache.charged); }},
    {"rocksdb_cf_delta_cache_evicted_total", Type::kCounter,
     "Keys that the delta cache has evicted.",
     [](const Deltas& d) { return Number(d.cache.evicted); }},
};

using Sum = DeltaStoreStats::Sum;

constexpr Row<Sum> kDeltaTierRows[] = {
    {"rocksdb_cf_delta_files", Type::kGauge, "Delta files of the tier.",
     [](const Sum& s) { return Number(s.files); }},
    {"rocksdb_cf_delta_bytes", Type::kGauge,
     "Bytes of the delta files of the tier.",
     [](const Sum& s) { return Number(s.bytes); }},
};

using Path = PathNumbers;

constexpr Row<Path> kPathRows[] = {
    {"rocksdb_cf_path_sst_files", Type::kGauge, "SST files on the path.",
     [](const Path& p) { return Number(p.stats.sst_files); }},
    {"rocksdb_cf_path_sst_bytes", Type::kGauge,
     "Bytes of the SST files on the path.",
     [](const Path& p) { return Number(p.stats.sst_bytes); }},
    {"rocksdb_cf_path_blob_files", Type::kGauge, "Blob files on the path.",
     [](const Path& p) { return Number(p.stats.blob_files); }},
    {"rocksdb_cf_path_blob_bytes", Type::kGauge,
     "Bytes of the blob files on the path.",
     [](const Path& p) { return Number(p.stats.blob_bytes); }},
    {"rocksdb_cf_path_blob_garbage_bytes", Type::kGauge,
     "Bytes of garbage in the blob files on the path.",
     [](const Path& p) { return Number(p.stats.blob_garbage_bytes); }},
    {"rocksdb_cf_path_hot_bytes", Type::kGauge,
     "Bytes of the blob files with hot values on the path.",
     [](const Path& p) { return Number(p.stats.hot_bytes); }},
    {"rocksdb_cf_path_delta_files", Type::kGauge, "Delta files on the path.",
     [](const Path& p) { return Number(p.stats.delta_files); }},
    {"rocksdb_cf_path_delta_bytes", Type::kGauge,
     "Bytes of the delta files on the path.",
     [](const Path& p) { return Number(p.stats.delta_bytes); }},
    {"rocksdb_cf_path_misplaced_files", Type::kGauge,
     "Files on the path that belong to another one.",
     [](const Path& p) { return Number(p.stats.misplaced_files); }},
    {"rocksdb_cf_path_misplaced_bytes", Type::kGauge,
     "Bytes on the path that belong to another one.",
     [](const Path& p) { return Number(p.stats.misplaced_bytes); }},
    {"rocksdb_cf_path_obsolete_bytes", Type::kGauge,
     "Bytes on the path of files that the current version does not have.",
     [](const Path& p) { return Number(p.obsolete_bytes); }},
    {"rocksdb_cf_path_fault", Type::kGauge,
     "1 while no files can be made on the path.",
     [](const Path& p) { return p.has_fault ? 1.0 : 0.0; }},
    {"rocksdb_cf_path_slow_job_ios_total", Type::kCounter,
     "Reads, writes and syncs of jobs that took a second or longer.",
     [](const Path& p) { return Number(p.stats.slow_ios); }},
};

constexpr Row<PathReadStats::Counts> kPathReadRows[] = {
    {"rocksdb_cf_path_reads_total", Type::kCounter,
     "Reads from files of the kind on the path.",
     [](const PathReadStats::Counts& c) { return Number(c.reads); }},
    {"rocksdb_cf_path_read_bytes_total", Type::kCounter,
     "Bytes read from files of the kind on the path.",
     [](const PathReadStats::Counts& c) { return Number(c.bytes); }},
    {"rocksdb_cf_path_timed_reads_total", Type::kCounter,
     "Reads from files of the kind that were measured.",
     [](const PathReadStats::Counts& c) { return Number(c.timed_reads); }},
    {"rocksdb_cf_path_read_seconds_total", Type::kCounter,
     "Seconds that the measured reads have taken.",
     [](const PathReadStats::Counts& c) { return Number(c.nanos) / 1e9; }},
};

constexpr Row<PathJobStats::Counts> kPathJobRows[] = {
    {"rocksdb_cf_path_job_read_bytes_total", Type::kCounter,
     "Bytes that jobs of the kind have read from the path.",
     [](const PathJobStats::Counts& c) { return Number(c.read); }},
    {"rocksdb_cf_path_job_written_bytes_total", Type::kCounter,
     "Bytes that jobs of the kind have written to the path.",
     [](const PathJobStats::Counts& c) { return Number(c.written); }},
};

constexpr std::pair<PathJob, const char*> kJobNames[] = {
    {PathJob::kFlush, "flush"},
    {PathJob::kCompaction, "compaction"},
    {PathJob::kBlobGc, "blob_gc"},
    {PathJob::kDelta, "delta"},
};

}  // namespace

uint64_t FamilyNumbers::SstBytes() const {
  uint64_t bytes = 0;
  for (const Path& path : paths) {
    bytes += path.stats.sst_bytes;
  }
  return bytes;
}

uint64_t FamilyNumbers::BlobBytes() const {
  uint64_t bytes = 0;
  for (const Path& path : paths) {
    bytes += path.stats.blob_bytes;
  }
  return bytes;
}

uint64_t FamilyNumbers::BlobGarbageBytes() const {
  uint64_t bytes = 0;
  for (const Path& path : paths) {
    bytes += path.stats.blob_garbage_bytes;
  }
  return bytes;
}

double FamilyNumbers::BlobSpaceAmp() const {
  const uint64_t bytes = BlobBytes();
  const uint64_t garbage = BlobGarbageBytes();
  if (bytes == 0) {
    return 1;
  }
  return bytes <= garbage ? std::numeric_limits<double>::infinity()
                          : Number(bytes) / Number(bytes - garbage);
}

const std::vector<IntPropertyMetric>& FamilyMetrics::Properties() {
  static const std::vector<IntPropertyMetric> kTable = {
      {&DB::Properties::kBackgroundErrors, "rocksdb_cf_background_errors_total",
       Type::kCounter, "Errors of background jobs."},
      {&DB::Properties::kNumImmutableMemTable,
       "rocksdb_cf_num_immutable_mem_table", Type::kGauge,
       "Immutable memtables that are not flushed."},
      {&DB::Properties::kMemTableFlushPending,
       "rocksdb_cf_mem_table_flush_pending", Type::kGauge,
       "1 if a flush is pending."},
      {&DB::Properties::kCompactionPending, "rocksdb_cf_compaction_pending",
       Type::kGauge, "1 if a compaction is pending."},
      {&DB::Properties::kEstimatePendingCompactionBytes,
       "rocksdb_cf_estimate_pending_compaction_bytes", Type::kGauge,
       "Estimate of the bytes that compactions have to rewrite."},
      {&DB::Properties::kCurSizeActiveMemTable,
       "rocksdb_cf_cur_size_active_mem_table", Type::kGauge,
       "Bytes of the active memtable."},
      {&DB::Properties::kCurSizeAllMemTables,
       "rocksdb_cf_cur_size_all_mem_tables", Type::kGauge,
       "Bytes of the active and of unflushed immutable memtables."},
      {&DB::Properties::kSizeAllMemTables, "rocksdb_cf_size_all_mem_tables",
       Type::kGauge, "Bytes of all memtables, also of pinned ones."},
      {&DB::Properties::kNumEntriesActiveMemTable,
       "rocksdb_cf_num_entries_active_mem_table", Type::kGauge,
       "Entries in the active memtable."},
      {&DB::Properties::kNumEntriesImmMemTables,
       "rocksdb_cf_num_entries_imm_mem_tables", Type::kGauge,
       "Entries in unflushed immutable memtables."},
      {&DB::Properties::kEstimateNumKeys, "rocksdb_cf_estimate_num_keys",
       Type::kGauge, "Estimate of the number of keys."},
      {&DB::Properties::kEstimateTableReadersMem,
       "rocksdb_cf_estimate_table_readers_mem", Type::kGauge,
       "Bytes of memory of table readers outside of the block cache."},
      {&DB::Properties::kNumLiveVersions, "rocksdb_cf_num_live_versions",
       Type::kGauge, "Versions that are current or in use."},
      {&DB::Properties::kTotalBlobFileSize, "rocksdb_cf_total_blob_file_size",
       Type::kGauge, "Bytes of the blob files of all versions."},
      {&DB::Properties::kBlockCacheCapacity, "rocksdb_cf_block_cache_capacity",
       Type::kGauge,
       "Bytes that the block cache may take. A shared one counts for each "
       "column family."},
      {&DB::Properties::kBlockCacheUsage, "rocksdb_cf_block_cache_usage",
       Type::kGauge,
       "Bytes of the block cache. A shared one counts for each column family."},
      {&DB::Properties::kBlockCachePinnedUsage,
       "rocksdb_cf_block_cache_pinned_usage", Type::kGauge,
       "Bytes of entries of the block cache that are in use."},
      {&DB::Properties::kBlobCacheCapacity, "rocksdb_cf_blob_cache_capacity",
       Type::kGauge, "Bytes that the blob cache may take."},
      {&DB::Properties::kBlobCacheUsage, "rocksdb_cf_blob_cache_usage",
       Type::kGauge, "Bytes of the blob cache."},
      {&DB::Properties::kBlobCachePinnedUsage,
       "rocksdb_cf_blob_cache_pinned_usage", Type::kGauge,
       "Bytes of entries of the blob cache that are in use."},
  };
  return kTable;
}

FamilyMetrics::FamilyMetrics(PrometheusText* text) : text_(text) {
  Define(kProperties, Properties());
  Define(kFamily, kFamilyRows);
  Define(kLevels, kLevelRows);
  Define(kMap, kMapRows);
  Define(kMergedValues, kMergedRows);
  Define(kDeltas, kDeltaRows);
  Define(kDeltaTiers, kDeltaTierRows);
  Define(kPaths, kPathRows);
  Define(kPathReads, kPathReadRows);
  Define(kPathJobs, kPathJobRows);
}

template <typename Rows>
void FamilyMetrics::Define(Group group, const Rows& rows) {
  bool is_first = true;
  for (const auto& row : rows) {
    const size_t metric = text_->Define(row.name, row.type, row.help);
    if (is_first) {
      first_[group] = metric;
      is_first = false;
    }
  }
}

template <typename Rows, typename Source>
void FamilyMetrics::AddGroup(Group group, const Rows& rows,
                             const PrometheusText::Labels& labels,
                             const Source& source) {
  size_t metric = first_[group];
  for (const auto& row : rows) {
    text_->Add(metric++, labels, row.get(source));
  }
}

void FamilyMetrics::Add(const FamilyNumbers& numbers) {
  const Labels family = Labels().Add("cf", numbers.name);
  size_t metric = first_[kProperties];
  for (const IntPropertyMetric& row : Properties()) {
    const auto found = numbers.properties.find(&row);
    if (found != numbers.properties.end()) {
      text_->Add(metric, family, Number(found->second));
    }
    ++metric;
  }
  AddGroup(kFamily, kFamilyRows, family, numbers);
  for (size_t i = 0; i < numbers.levels.size(); ++i) {
    AddGroup(kLevels, kLevelRows,
             Labels(family).Add("level", std::to_string(i)), numbers.levels[i]);
  }
  if (numbers.map.has_value()) {
    AddGroup(kMap, kMapRows, family, *numbers.map);
  }
  if (numbers.merged_values.has_value()) {
    AddGroup(kMergedValues, kMergedRows, family, *numbers.merged_values);
  }
  if (numbers.deltas.has_value()) {
    const DeltaStoreStats& stats = numbers.deltas->stats;
    AddGroup(kDeltas, kDeltaRows, family, *numbers.deltas);
    for (const auto& [tier, sum] : {std::make_pair("flushed", &stats.flushed),
                                    std::make_pair("merged", &stats.merged),
                                    std::make_pair("sorted", &stats.sorted)}) {
      AddGroup(kDeltaTiers, kDeltaTierRows, Labels(family).Add("tier", tier),
               *sum);
    }
  }
  for (size_t i = 0; i < numbers.paths.size(); ++i) {
    AddPath(family, i, numbers.paths[i]);
  }
}

void FamilyMetrics::AddPath(const PrometheusText::Labels& family, size_t id,
                            const PathNumbers& path) {
  const Labels labels = Labels(family)
                            .Add("path_id", std::to_string(id))
                            .Add("path", path.stats.directory);
  AddGroup(kPaths, kPathRows, labels, path);
  if (path.stats.has_reads) {
    for (const auto& [kind, counts] :
         {std::make_pair("sst", &path.stats.sst_reads),
          std::make_pair("blob", &path.stats.blob_reads),
          std::make_pair("delta", &path.stats.delta_reads)}) {
      AddGroup(kPathReads, kPathReadRows, Labels(labels).Add("kind", kind),
               *counts);
    }
  }
  if (path.stats.has_jobs) {
    for (const auto& [job, name] : kJobNames) {
      AddGroup(kPathJobs, kPathJobRows, Labels(labels).Add("job", name),
               path.stats.Job(job));
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
