//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The parts of BackgroundBlobGc for jobs that move values to the hot path or
// from there.

#include <algorithm>
#include <cinttypes>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob/blob_log_format.h"
#include "db/blob_heat/blob_demotion_job.h"
#include "db/blob_heat/blob_heat.h"
#include "db/blob_heat/blob_promotion_job.h"
#include "db/column_family.h"
#include "db/strata/background_blob_gc.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

bool DBStrata::BackgroundBlobGc::MakePromotionJob(int job_id) {
  db_->mutex_.AssertHeld();
  BlobPromotionJob::Context context;
  FillContext(job_id, &context);
  context.candidates = blobs_->heat()->queue()->Take();
  context.storage = storage_.get();
  context.excluded = blobs_->gc()->Avoided();
  context.path_id = plan_.job.path_id;
  context.room = plan_.hot_room;
  if (context.candidates.empty()) {
    return false;
  }
  auto job = std::make_unique<BlobPromotionJob>(std::move(context));
  promotion_ = job.get();
  job_ = std::move(job);
  return true;
}

bool DBStrata::BackgroundBlobGc::MakeDemotionJob(int job_id) {
  db_->mutex_.AssertHeld();
  BlobDemotionJob::Context context;
  FillContext(job_id, &context);
  context.file_size = plan_.job.size;
  context.path_id = plan_.job.path_id;
  context.hot = plan_.job.hot;
  context.is_drain = plan_.heat == BlobHeatPicker::Kind::kDrain;
  auto job =
      std::make_unique<BlobDemotionJob>(context, storage_->files().front());
  demotion_ = job.get();
  job_ = std::move(job);
  return true;
}

void DBStrata::BackgroundBlobGc::LogHeatBegin(int job_id) {
  if (plan_.heat == BlobHeatPicker::Kind::kPromote) {
    ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                   "[%s] [JOB %d] Promoting values to path %" PRIu32
                   ": about %" PRIu64 " bytes, room for %" PRIu64,
                   cfd()->GetName().c_str(), job_id, plan_.job.path_id,
                   plan_.job.size, plan_.hot_room);
    return;
  }
  ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                 "[%s] [JOB %d] Demoting %s of hot blob file #%" PRIu64
                 ": %" PRIu64 " bytes, %" PRIu64 " of them live",
                 cfd()->GetName().c_str(), job_id,
                 plan_.heat == BlobHeatPicker::Kind::kDrain
                     ? "all values"
                     : "the least read values",
                 plan_.job.files.front(), plan_.job.size, plan_.job.live_size);
}

Status DBStrata::BackgroundBlobGc::ReserveHotBytes(
    const std::vector<uint64_t>& drops, uint64_t* added) {
  db_->mutex_.AssertHeld();
  *added = 0;
  for (const BlobFileAddition& file : job_->additions()) {
    if (file.hot().is_hot()) {
      *added += BlobLogHeader::kSize + file.GetTotalBlobBytes() +
                file.GetIndexBytes() + BlobLogFooter::kSize;
    }
  }
  if (*added == 0) {
    return Status::OK();
  }
  uint64_t before = 0;
  uint64_t dropped = 0;
  for (const auto& meta : cfd()->current()->storage_info()->GetBlobFiles()) {
    if (meta->hot().is_hot()) {
      before += meta->GetBlobFileSize();
      if (std::find(drops.begin(), drops.end(), meta->GetBlobFileNumber()) !=
          drops.end()) {
        dropped += meta->GetBlobFileSize();
      }
    }
  }
  if (!blobs_->heat()->Reserve(*added, before, before - dropped + *added)) {
    *added = 0;
    lacked_hot_room_ = true;
    return Status::Incomplete(
        "The hot values would take more space than blob_hot_bytes allows");
  }
  TEST_SYNC_POINT("DBStrata::BackgroundBlobGc::ReserveHotBytes:Reserved");
  return Status::OK();
}

void DBStrata::BackgroundBlobGc::CountHeat() {
  if (plan_.heat == BlobHeatPicker::Kind::kPromote) {
    RecordTick(db_->stats_, BLOB_MAP_HOT_PROMOTED, storage_->num_moved());
    RecordTick(db_->stats_, BLOB_MAP_HOT_BYTES_PROMOTED,
               storage_->bytes_moved());
  } else if (plan_.job.hot.is_hot()) {
    // A collection of garbage in hot files may demote values, too.
    RecordTick(db_->stats_, BLOB_MAP_HOT_DEMOTED, storage_->num_moved_home());
    RecordTick(db_->stats_, BLOB_MAP_HOT_BYTES_DEMOTED,
               storage_->bytes_moved_home());
  }
}

void DBStrata::BackgroundBlobGc::EndHeat(const Status& s) {
  db_->mutex_.AssertHeld();
  BlobHeat* const heat = blobs_->heat();
  if (lacked_hot_room_ && !is_manual()) {
    // The next such job would fail for the same reason.
    if (plan_.heat == BlobHeatPicker::Kind::kPromote) {
      heat->SetLacksRoom(true);
    } else {
      blobs_->gc()->OnFailed({plan_.job.files.begin(), plan_.job.files.end()});
    }
  }
  if (!s.ok()) {
    return;
  }
  if (plan_.heat == BlobHeatPicker::Kind::kPromote) {
    heat->SetLacksRoom(job_->reached_limit());
    heat->queue()->Refuse(promotion_->refused());
  } else if (plan_.heat == BlobHeatPicker::Kind::kDemote) {
    if (job_->additions().empty()) {
      heat->SetHand(plan_.job.files.front());
      return;
    }
    heat->SetLacksRoom(false);
    // A value that is read less than those that have stayed must not take the
    // place of one that has gone.
    heat->SetThreshold(
        std::max(BlobHeat::kMinReads,
                 std::min(demotion_->least_kept(),
                          uint32_t{FrequencySketch::kMaxEstimate})));
  }
}

}  // namespace ROCKSDB_NAMESPACE
