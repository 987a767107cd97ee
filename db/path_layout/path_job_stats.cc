//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_job_stats.h"

#include "db/blob/blob_file_addition.h"
#include "db/blob/blob_log_format.h"
#include "db/column_family.h"
#include "db/compaction/compaction_state.h"
#include "db/path_layout/path_read_stats.h"
#include "db/table_cache.h"
#include "db/version_edit.h"

namespace ROCKSDB_NAMESPACE {

namespace {

thread_local PathJob current_job = PathJob::kNone;
thread_local PathIoTimes* current_times = nullptr;

PathIoTimes* TimesOf(const ColumnFamilyData* cfd) {
  if (cfd == nullptr || cfd->table_cache() == nullptr) {
    return nullptr;
  }
  const auto& stats = cfd->table_cache()->path_read_stats();
  return stats == nullptr ? nullptr : stats->times();
}

}  // namespace

PathJobScope::PathJobScope(PathJob job, const ColumnFamilyData* cfd)
    : before_(current_job), times_before_(current_times) {
  current_job = job;
  current_times = TimesOf(cfd);
}

PathJobScope::~PathJobScope() {
  current_job = before_;
  current_times = times_before_;
}

PathJob PathJobScope::Current() { return current_job; }

PathIoTimes* PathJobScope::CurrentTimes() { return current_times; }

void PathJobStats::AddWritten(const BlobFileAddition& file) {
  AddWritten(file.GetPathId(), BlobLogHeader::kSize + file.GetTotalBlobBytes() +
                                   file.GetIndexBytes() + BlobLogFooter::kSize);
}

PathJobStats::Counts PathJobStats::Get(PathJob job, uint32_t path_id) const {
  const Counter& counter =
      counters_[static_cast<size_t>(job)][path_id % kMaxPaths];
  Counts counts;
  counts.read = counter.read.load(std::memory_order_relaxed);
  counts.written = counter.written.load(std::memory_order_relaxed);
  return counts;
}

void CountPathOutputs(const TableCache* table_cache, const FileMetaData& file,
                      const std::vector<BlobFileAddition>* blob_files) {
  if (table_cache == nullptr || table_cache->path_read_stats() == nullptr) {
    return;
  }
  PathJobStats& stats = table_cache->path_read_stats()->jobs();
  stats.AddWritten(file.fd.GetPathId(), file.fd.GetFileSize());
  if (blob_files != nullptr) {
    for (const BlobFileAddition& blob_file : *blob_files) {
      stats.AddWritten(blob_file);
    }
  }
}

void CountPathOutputs(CompactionState& compaction) {
  const auto& read_stats = compaction.compaction->column_family_data()
                               ->table_cache()
                               ->path_read_stats();
  if (read_stats == nullptr) {
    return;
  }
  PathJobStats& stats = read_stats->jobs();
  for (SubcompactionState& state : compaction.sub_compact_states) {
    for (const auto& output : state.GetOutputs()) {
      stats.AddWritten(output.meta.fd.GetPathId(),
                       output.meta.fd.GetFileSize());
    }
    // This includes the blob files of a second output level.
    for (const BlobFileAddition& blob_file :
         state.Outputs(/*is_proximal_level=*/false)->GetBlobFileAdditions()) {
      stats.AddWritten(blob_file);
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
