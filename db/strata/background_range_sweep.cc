//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/background_range_sweep.h"

#include <cinttypes>
#include <iterator>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/range_deletion_queue.h"
#include "db/address_map/range_deletion_sweep.h"
#include "db/column_family.h"
#include "db/job_context.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Limit of the entries and ranges that a job looks at, which takes a few
// seconds. Then the job releases its Version and drops empty files.
constexpr uint64_t kMaxSweepSteps = uint64_t{1} << 22;
// See RangeDeletionSweep::Run().
constexpr uint64_t kMinSweepSteps = 2;
// Time until the next sweep after a file could not be read.
constexpr uint64_t kRetryMicros = 600 * 1000 * 1000;

bool HasFailed(const Status& s) {
  return !s.ok() && !s.IsShutdownInProgress() && !s.IsColumnFamilyDropped();
}

// Sweeps the deletions, those first with which earlier sweeps have not come to
// an end. The others are swept together, with the steps that are left. The
// deletions that were not processed stay in `deletions`.
Status SweepOldestFirst(uint64_t max_steps, RangeDeletionSweep* sweep,
                        std::vector<CommittedRangeDeletion>* deletions) {
  std::vector<CommittedRangeDeletion> oldest =
      RangeDeletionQueue::TakeOldest(deletions);
  const uint64_t num_oldest = oldest.size();
  Status s = sweep->Run(max_steps, &oldest);
  const uint64_t steps = num_oldest + sweep->entries_read();
  // Ranges that cannot be read do not keep others from being swept.
  if (!deletions->empty() && (s.ok() || HasFailed(s)) &&
      steps + kMinSweepSteps <= max_steps) {
    s.UpdateIfOk(sweep->Run(max_steps - steps, deletions));
  }
  deletions->insert(deletions->end(), std::make_move_iterator(oldest.begin()),
                    std::make_move_iterator(oldest.end()));
  return s;
}

}  // namespace

Status DBStrata::BackgroundRangeSweep::Run(JobContext* job_context) {
  DBImpl* const db = strata_->db_;
  db->mutex_.AssertHeld();
  if (strata_->scheduler_.CheckToStop(*this).ok()) {
    Sweep(job_context);
  }
  db->FindObsoleteFiles(job_context, /*force=*/false);
  return Status::OK();
}

void DBStrata::BackgroundRangeSweep::Sweep(JobContext* job_context) {
  DBImpl* const db = strata_->db_;
  AddressMapStore* const blobs = cfd()->address_map_store();
  const SequenceNumber earliest = strata_->EarliestReader(*cfd());
  db->mutex_.Unlock();
  std::vector<CommittedRangeDeletion> deletions =
      blobs->range_deletions()->Take(earliest);
  const size_t num_deletions = deletions.size();
  db->mutex_.Lock();
  // The Version is taken after the deletions, so it has what they were
  // committed with.
  Version* const version = cfd()->current();
  version->Ref();
  const FileOptions file_options = db->fs_->OptimizeForCompactionTableRead(
      db->file_options_for_compaction_, db->immutable_db_options_);
  db->mutex_.Unlock();

  TEST_SYNC_POINT("DBStrata::BackgroundRangeSweep::Sweep:Begin");
  SystemClock* const clock = db->immutable_db_options_.clock;
  const uint64_t started = clock->NowMicros();
  RangeDeletionSweep sweep(cfd(), version, file_options, [this] {
    return strata_->scheduler_.CheckToStop(*this);
  });
  uint64_t max_steps = kMaxSweepSteps;
  TEST_SYNC_POINT_CALLBACK("DBStrata::BackgroundRangeSweep::Sweep:MaxSteps",
                           &max_steps);
  const Status s = SweepOldestFirst(max_steps, &sweep, &deletions);
  TEST_SYNC_POINT("DBStrata::BackgroundRangeSweep::Sweep:End");
  const uint64_t now = clock->NowMicros();
  const bool failed = HasFailed(s);
  RecordTick(db->stats_, BLOB_MAP_RANGE_DELETED, sweep.values_removed());
  ROCKS_LOG_INFO(
      db->immutable_db_options_.info_log,
      "[%s] [JOB %d] Freed the values under %zu range deletions: read "
      "%" PRIu64 " keys, %" PRIu64 " values, %" PRIu64 " ms; %zu are left: %s",
      cfd()->GetName().c_str(), job_context->job_id, num_deletions,
      sweep.entries_read(), sweep.values_removed(), (now - started) / 1000,
      deletions.size(), s.ToString().c_str());
  if (!deletions.empty()) {
    blobs->range_deletions()->PutBack(std::move(deletions),
                                      failed ? now + kRetryMicros : 0);
  }

  db->mutex_.Lock();
  version->Unref();
  strata_->DropEmptyBlobFiles(cfd(), Env::IOActivity::kCompaction,
                              job_context->superversion_contexts.data());
}

void DBStrata::BackgroundRangeSweep::GiveBack(bool /*has_run*/) {
  // Deletions may be left.
  cfd()->address_map_store()->SignalWork();
}

void DBStrata::BackgroundRangeSweep::OnEnd(const Status& /*s*/) {
  // Deletions may be left, or may have come.
  strata_->ScheduleMapRemovals();
  strata_->SetBlobGcDue();
  strata_->db_->MaybeScheduleFlushOrCompaction();
}

}  // namespace ROCKSDB_NAMESPACE
