//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_pauses_test_util.h"

#include <chrono>
#include <functional>
#include <thread>

#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

#ifndef NDEBUG

namespace {

// The sync points where threads sleep. Pauses are long where a job has
// committed and has not yet updated the map, and where a reader has read the
// map and not yet taken its SuperVersion.
struct Pause {
  const char* point;
  uint32_t per_mille;
  uint32_t max_millis;
};

constexpr Pause kPauses[] = {
    // Jobs
    {"CompactionMapping::Publish", 150, 60},
    {"CompactionMapping::Settle", 300, 500},
    {"MapTransaction::Publish:Inserted", 250, 60},
    {"MapTransaction::Settle", 150, 60},
    {"FlushMapping::Publish", 100, 30},
    {"FlushMapping::Settle", 200, 100},
    {"MappedFileRemoval::Publish:Demoted", 200, 60},
    {"BackgroundJobScheduler::Work:MapRemovals", 200, 100},
    {"BackgroundJobScheduler::Work:RangeSweep", 400, 800},
    {"DBStrata::BackgroundRangeSweep::Sweep:Begin", 200, 200},
    {"RangeDeletionSweep::Step:Check", 100, 20},
    {"DBStrata::DropEmptyBlobFiles:BeforeEdit", 200, 20},
    {"DBStrata::BeginDeltaFold:Entered", 200, 50},
    {"DBStrata::BeginDeltaFold:BeforeEdit", 200, 50},
    {"DBStrata::EndDeltaFold:BeforeSettle", 300, 200},
    {"DeltaFlush::FinishFile:Verify", 100, 30},
    {"DeltaMergeJob::Finish:Verify", 100, 30},
    {"DeltaGcJob::Run:Start", 100, 50},
    {"DeltaGcJob::Run:End", 100, 50},
    {"DBStrata::BackgroundDeltaCollection::RunMarked:AfterEdit", 200, 50},
    {"DBStrata::BackgroundDeltaMerge::RunMarked:AfterEdit", 200, 50},
    {"BlobGcStorage::Publish:BeforeSwap", 200, 50},
    {"BlobGcStorage::Publish:Swapped", 200, 50},
    {"BlobGcStorage::Settle", 200, 50},
    {"DBStrata::BackgroundBlobGc::WriteEdit:BeforeEdit", 200, 30},
    {"DBStrata::BackgroundBlobGc::Run:AfterEdit", 200, 50},
    {"DBStrata::BackgroundBlobGc::MakeSortJob:Picked", 300, 60},
    {"BlobRangeSortJob::CopyChunk:Read", 100, 50},
    {"BlobRangeSortJob::Run:BeforeFinish", 200, 50},
    {"FlushOrderGate::Park:Parked", 100, 10},
    // Readers
    {"MapPointRead::Start", 5, 30},
    {"MapPointRead::Start:LookedUp", 30, 150},
    {"MapPointRead::TakeDirect", 10, 60},
    {"MapPointRead::TakeNamed", 10, 60},
    {"MapPointRead::ConfirmAbsence", 10, 60},
    {"MapPointRead::EndAsIs", 5, 30},
    {"MapPointRead::Replace:Pinned", 5, 60},
    {"DBImpl::MultiCFSnapshot::BeforeCheckingSnapshot", 20, 100},
    {"DBImpl::MultiCFSnapshot::AfterRefSV", 20, 60},
    {"DBImpl::MultiCFSnapshot:AfterGetSeqNum1", 20, 60},
    {"DBStrata::RegisterReadBound:Registered", 20, 60},
    {"DBImpl::NewIterator:1", 20, 60},
    {"DBImpl::NewIterator:3", 20, 60},
    {"MapTailingIterator::Next:Return", 10, 30},
    {"MapValueIterator::OnDead:Kept", 5, 30},
};

}  // namespace

void OverlapPauses::Start() {
  for (const Pause& pause : kPauses) {
    SyncPoint::GetInstance()->SetCallBack(pause.point, [this, &pause](void*) {
      thread_local OverlapDice dice(
          seed_ + std::hash<std::thread::id>()(std::this_thread::get_id()));
      if (!is_suspended_ && dice.Below(1000) < pause.per_mille) {
        ++count_;
        std::this_thread::sleep_for(std::chrono::microseconds(
            dice.Below(uint64_t{pause.max_millis} * 1000)));
      }
    });
  }
  SyncPoint::GetInstance()->EnableProcessing();
}

void OverlapPauses::Stop() {
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
}

#else

void OverlapPauses::Start() { (void)seed_; }

void OverlapPauses::Stop() {}

#endif

}  // namespace ROCKSDB_NAMESPACE
