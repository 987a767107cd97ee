//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_gc_state.h"

#include <iterator>

#include "logging/logging.h"
#include "rocksdb/env.h"
#include "rocksdb/system_clock.h"

namespace ROCKSDB_NAMESPACE {

void BlobGcState::OnDamaged(uint64_t number) {
  Damaged& damaged = damaged_[number];
  damaged.pause = damaged.pause == 0
                      ? kRetryMicros
                      : std::min(2 * damaged.pause, kMaxRetryMicros);
  damaged.retry_at = clock_->NowMicros() + damaged.pause;
}

void BlobGcState::OnFailed(const std::set<uint64_t>& files) {
  const uint64_t now = clock_->NowMicros();
  for (auto it = retry_at_.begin(); it != retry_at_.end();) {
    it = it->second <= now ? retry_at_.erase(it) : std::next(it);
  }
  for (const uint64_t number : files) {
    retry_at_[number] = now + kRetryMicros;
  }
}

std::set<uint64_t> BlobGcState::Avoided() const {
  const uint64_t now = clock_->NowMicros();
  std::set<uint64_t> files;
  for (const auto& [number, damaged] : damaged_) {
    if (damaged.is_kept || damaged.retry_at > now) {
      files.insert(number);
    }
  }
  for (const auto& [number, retry_at] : retry_at_) {
    if (retry_at > now) {
      files.insert(number);
    }
  }
  return files;
}

uint64_t BlobGcState::TakeFlushed(
    const std::vector<BlobGcPicker::File>& files) {
  uint64_t newest = newest_file_;
  uint64_t bytes = 0;
  for (const BlobGcPicker::File& file : files) {
    if (file.is_survivor) {
      continue;
    }
    if (has_newest_file_ && file.number > newest_file_) {
      bytes += file.size;
    }
    newest = std::max(newest, file.number);
  }
  newest_file_ = newest;
  has_newest_file_ = true;
  return bytes;
}

void BlobGcState::MarkBusy(std::vector<BlobGcPicker::File>* files,
                           bool also_failed) const {
  const uint64_t now =
      retry_at_.empty() || also_failed ? 0 : clock_->NowMicros();
  for (BlobGcPicker::File& file : *files) {
    const bool has_live = !file.is_busy;
    file.is_busy = !has_live || collecting_.count(file.number) > 0;
    const auto damaged = damaged_.find(file.number);
    if (damaged != damaged_.end() &&
        (damaged->second.is_kept ||
         (has_live && !also_failed &&
          damaged->second.retry_at > clock_->NowMicros()))) {
      file.live_size = file.size;
      file.is_busy = true;
    }
    if (now > 0 && !file.is_busy) {
      const auto failed = retry_at_.find(file.number);
      file.is_busy = failed != retry_at_.end() && failed->second > now;
    }
  }
}

void BlobGcState::AddKeyRanges(std::vector<BlobGcPicker::File>* files) const {
  for (BlobGcPicker::File& file : *files) {
    const auto keys = key_ranges_.find(file.number);
    file.keys = keys != key_ranges_.end() ? &keys->second : nullptr;
  }
}

uint64_t BlobGcState::AddDebt(uint64_t compaction_needed_bytes,
                              const std::vector<BlobGcPicker::File>& files,
                              double space_amp_limit, uint64_t soft_limit,
                              uint64_t hard_limit) {
  assert(space_amp_limit != 0 && soft_limit != 0);
  BlobGcPicker::Space space = BlobGcPicker::SpaceOf(files, copying_);
  for (const BlobGcPicker::File& file : files) {
    if (IsPaused(file)) {
      space.on_disk -= file.size - file.live_size;
    }
  }
  const double on_disk = static_cast<double>(
      space.on_disk - std::min(space.on_disk, merge_space_));
  const double allowed = space_amp_limit * static_cast<double>(space.live);
  const double excess = std::min(
      on_disk - static_cast<double>(copying_) - kLeastStallFactor * allowed,
      on_disk - kStallFactor * allowed);
  // Files without live values are dropped, not collected.
  if (excess <= 0 || space.live == 0) {
    EndSlowdown();
    return compaction_needed_bytes;
  }
  uint64_t debt = soft_limit + static_cast<uint64_t>(excess);
  if (hard_limit > 0) {
    debt = std::min(debt, hard_limit - 1);
  }
  if (!slows_down_) {
    slows_down_ = true;
    ROCKS_LOG_INFO(logger_,
                   "Slowing down writes: blob files are %.3f times as large as "
                   "their live data, the limit is %.3f",
                   space.Amplification(), space_amp_limit);
  }
  return std::max(compaction_needed_bytes, debt);
}

void BlobGcState::EndSlowdown() {
  if (slows_down_) {
    slows_down_ = false;
    ROCKS_LOG_INFO(logger_, "Garbage in blob files slows down writes no more");
  }
}

}  // namespace ROCKSDB_NAMESPACE
