//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_parallel_reads.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "db/delta/delta_tables.h"
#include "monitoring/statistics_impl.h"
#include "rocksdb/options.h"
#include "rocksdb/system_clock.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

//======== DeltaParallelReads

DeltaParallelReads::DeltaParallelReads(const DeltaTableFamily& family)
    : fs_(family.ioptions.fs.get()),
      clock_(family.ioptions.clock),
      statistics_(family.ioptions.stats),
      overlaps_(family.overlaps_reads) {}

bool DeltaParallelReads::Overlaps(const ReadOptions& read_options) const {
  // What waits for a rate limiter is no better for having been read before.
  return overlaps_.load(std::memory_order_relaxed) &&
         read_options.read_tier != kBlockCacheTier &&
         read_options.rate_limiter_priority == Env::IO_TOTAL;
}

void DeltaParallelReads::OnOverlap() {
  RecordTick(statistics_, DELTA_PARALLEL_READS);
}

void DeltaParallelReads::OnTried(bool is_async) {
  if (!is_async) {
    if (not_async_.fetch_add(1, std::memory_order_relaxed) + 1 >=
        kMaxNotAsync) {
      overlaps_.store(false, std::memory_order_relaxed);
    }
  } else if (not_async_.load(std::memory_order_relaxed) != 0) {
    not_async_.store(0, std::memory_order_relaxed);
  }
}

bool DeltaParallelReads::IsWanted(const ReadOptions& read_options,
                                  uint32_t max_threads, bool may_wait) const {
  bool is_wanted = max_threads > 0 &&
                   read_options.read_tier != kBlockCacheTier &&
                   (may_wait || helpers_.HasRoom(max_threads)) &&
                   policy_.Tries();
  TEST_SYNC_POINT_CALLBACK("DeltaParallelReads::IsWanted", &is_wanted);
  return is_wanted;
}

std::unique_ptr<DeltaReadAhead> DeltaParallelReads::Start(
    std::function<Status()> read, uint32_t max_threads, bool may_wait) {
  bool starts = policy_.OnIO(clock_->NowMicros());
  TEST_SYNC_POINT_CALLBACK("DeltaParallelReads::Start", &starts);
  if (!starts) {
    return nullptr;
  }
  auto ahead = std::make_unique<DeltaReadAhead>(this, std::move(read));
  if (!helpers_.Give(ahead.get(), max_threads, may_wait)) {
    return nullptr;
  }
  ahead->is_away_ = true;
  return ahead;
}

//======== DeltaReadAhead

DeltaReadAhead::~DeltaReadAhead() {
  if (is_away_ && Take()) {
    // In vain.
    parallel_->policy_.OnGain(0);
  }
  status_.PermitUncheckedError();
}

bool DeltaReadAhead::Finish(Status* status) {
  assert(is_away_);
  const uint64_t needed_at = parallel_->clock_->NowMicros();
  TEST_SYNC_POINT("DeltaReadAhead::Finish");
  if (!Take()) {
    parallel_->policy_.OnGain(0);
    return false;
  }
  RecordTick(parallel_->statistics_, DELTA_PARALLEL_READS);
  // What was over by the time it was needed. Clocks may go back.
  const auto begun = static_cast<int64_t>(begun_at_);
  parallel_->policy_.OnGain(
      std::min(static_cast<int64_t>(done_at_),
               static_cast<int64_t>(needed_at)) -
      begun);
  *status = std::move(status_);
  return true;
}

bool DeltaReadAhead::Withdraw() {
  if (!is_away_ || !parallel_->helpers_.Withdraw(this)) {
    return false;
  }
  is_away_ = false;
  return true;
}

bool DeltaReadAhead::Take() {
  is_away_ = false;
  if (!parallel_->helpers_.Take(this)) {
    return false;
  }
  counts_.AddToThread();
  return true;
}

void DeltaReadAhead::Run() {
  begun_at_ = parallel_->clock_->NowMicros();
  counts_.Begin();
  status_ = read_();
  counts_.End();
  done_at_ = parallel_->clock_->NowMicros();
}

}  // namespace ROCKSDB_NAMESPACE
