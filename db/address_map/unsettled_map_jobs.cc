//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/unsettled_map_jobs.h"

#include <cassert>

namespace ROCKSDB_NAMESPACE {

bool UnsettledMapJobs::HasAnyOfFirst(uint64_t n) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return !committing_.empty() && *committing_.begin() <= n;
}

void UnsettledMapJobs::Fail(const Status& s) {
  assert(!s.ok());
  std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.ok()) {
    failure_ = s;
  }
}

Status UnsettledMapJobs::failure() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

uint64_t UnsettledMapJobs::Begin() {
  std::lock_guard<std::mutex> lock(mutex_);
  return num_begun_.fetch_add(1) + 1;
}

void UnsettledMapJobs::BeginCommit(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool inserted = committing_.insert(id).second;
  assert(inserted);
  (void)inserted;
}

void UnsettledMapJobs::End(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  committing_.erase(id);  // A job that has failed may not have come so far.
  num_ended_.fetch_add(1);
}

}  // namespace ROCKSDB_NAMESPACE
