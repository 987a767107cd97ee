//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The parts of BackgroundBlobGc for jobs that sort the values of a range for
// which scans have paid.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_range_sort_job.h"
#include "db/column_family.h"
#include "db/strata/background_blob_gc.h"
#include "db/table_cache.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "table/table_reader.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A job that sorts pins the files that it copies from, so it must not take
// long.
constexpr uint64_t kMaxSortBytes = uint64_t{256} << 20;

}  // namespace

void DBStrata::BackgroundBlobGc::PickForScans(
    const BlobGcPicker::Options& options,
    const std::vector<BlobGcPicker::File>& files, const ScanDebts& debts,
    Plan* plan) {
  uint64_t room = BlobGcPicker::SortRoom(options, files);
  room -= std::min(room, debts.job_bytes());
  if (room == 0 || room < options.wanted_room) {
    return;
  }
  // Values that were sorted range by range are garbage in files that have
  // values of all ranges, until all ranges are sorted. If there is no room for
  // that, such files are merged first, and their values are written to files of
  // few ranges.
  // How much one job may copy does not matter here.
  BlobGcPicker::Options unlimited = options;
  unlimited.max_copied = std::numeric_limits<uint64_t>::max();
  if (debts.DueBytes() > BlobGcPicker::SortRoom(unlimited, files)) {
    plan->job = BlobGcPicker::PickWide(files, room);
    plan->is_scan_merge = !plan->job.files.empty();
  }
  if (!plan->is_scan_merge) {
    plan->is_scan_sort = true;
    plan->max_copied = std::min(room, kMaxSortBytes);
  }
}

bool DBStrata::BackgroundBlobGc::MakeSortJob(int job_id) {
  db_->mutex_.AssertHeld();
  version_ = cfd()->current();
  version_->Ref();
  const BlobGcPicker::Space space = BlobGcPicker::SpaceOf(
      blobs_->FilesForGc(*version_->storage_info()), /*copies=*/0);
  BlobRangeSortJob::Context context;
  FillContext(job_id, &context);
  context.version = version_;
  context.storage = storage_.get();
  context.excluded = blobs_->gc()->Avoided();
  context.max_copied = plan_.max_copied;

  db_->mutex_.Unlock();
  UpdateRanges(space.live);
  const bool is_due = blobs_->scan_debts()->Pick(plan_.max_copied, &range_);
  TEST_SYNC_POINT("DBStrata::BackgroundBlobGc::MakeSortJob:Picked");
  db_->mutex_.Lock();
  if (!is_due) {
    version_->Unref();
    version_ = nullptr;
    return false;
  }
  context.max_copied =
      std::min(context.max_copied, blobs_->scan_debts()->MaxCopied(range_));
  // The limit is looked at between chunks.
  context.max_chunk = static_cast<size_t>(
      std::min<uint64_t>(context.max_chunk, context.max_copied));
  plan_.job.size = plan_.job.live_size = range_.bytes;
  context.begin = range_.begin;
  context.has_begin = range_.has_begin;
  context.end = range_.end;
  context.has_end = range_.has_end;
  job_ = std::make_unique<BlobRangeSortJob>(context);
  return true;
}

void DBStrata::BackgroundBlobGc::UpdateRanges(uint64_t live_bytes) {
  ScanDebts* const debts = blobs_->scan_debts();
  if (!debts->NeedsRanges(live_bytes)) {
    return;
  }
  const size_t num_ranges = std::clamp<size_t>(
      live_bytes / ScanDebts::kMinRange, 1, ScanDebts::kMaxRanges);
  debts->SetRanges(Bounds(num_ranges), live_bytes);
}

std::vector<std::string> DBStrata::BackgroundBlobGc::Bounds(size_t num_ranges) {
  const Comparator* const ucmp = cfd()->user_comparator();
  const VersionStorageInfo& files = *version_->storage_info();
  const MutableCFOptions& cf_options = version_->GetMutableCFOptions();
  ReadOptions read_options(Env::IOActivity::kCompaction);
  std::vector<TableReader::Anchor> anchors;
  uint64_t total = 0;
  for (int level = 0; level < files.num_non_empty_levels(); ++level) {
    for (const FileMetaData* file : files.LevelFiles(level)) {
      if (!strata_->scheduler_.CheckToStop(*this).ok()) {
        return {};  // the job will end, too
      }
      std::vector<TableReader::Anchor> of_file;
      const Status s = cfd()->table_cache()->ApproximateKeyAnchors(
          read_options, cfd()->internal_comparator(), *file, cf_options,
          of_file);
      if (!s.ok() || of_file.empty()) {
        // Other table formats have no anchors.
        of_file.clear();
        of_file.emplace_back(file->largest.user_key(), file->fd.GetFileSize());
      }
      for (TableReader::Anchor& anchor : of_file) {
        total += anchor.range_size;
        anchors.push_back(std::move(anchor));
      }
    }
  }
  std::sort(anchors.begin(), anchors.end(),
            [ucmp](const TableReader::Anchor& a, const TableReader::Anchor& b) {
              return ucmp->CompareWithoutTimestamp(a.user_key, b.user_key) < 0;
            });
  std::vector<std::string> bounds;
  uint64_t before = 0;
  for (const TableReader::Anchor& anchor : anchors) {
    before += anchor.range_size;
    if (before * num_ranges >= total * (bounds.size() + 1) &&
        bounds.size() + 1 < num_ranges &&
        (bounds.empty() ||
         ucmp->CompareWithoutTimestamp(bounds.back(), anchor.user_key) < 0)) {
      bounds.push_back(anchor.user_key);
    }
  }
  return bounds;
}

void DBStrata::BackgroundBlobGc::EndSort(const Status& s) {
  db_->mutex_.AssertHeld();
  if (plan_.is_scan_merge && s.ok()) {
    blobs_->scan_debts()->Pay(job_->stats().bytes_written);
  }
  if (!plan_.is_scan_sort) {
    return;
  }
  ScanDebts::Outcome outcome = ScanDebts::Outcome::kUnchanged;
  if (s.ok() && storage_->num_moved() > 0) {
    outcome = job_->reached_limit() ? ScanDebts::Outcome::kPartlySorted
                                    : ScanDebts::Outcome::kSorted;
  }
  blobs_->scan_debts()->Settle(range_, outcome, job_->stats().bytes_written);
  version_->Unref();
  version_ = nullptr;
}

}  // namespace ROCKSDB_NAMESPACE
