//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/flush_order_gate.h"

#include <cassert>
#include <utility>

#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns true if flushes for this reason run while background work is stopped.
// All others are dropped then, and the recovery requests them again.
bool IsPartOfRecovery(FlushReason reason) {
  return reason == FlushReason::kErrorRecovery ||
         reason == FlushReason::kErrorRecoveryRetryFlush;
}

}  // namespace

FlushOrderGate::~FlushOrderGate() { assert(Idle()); }

bool FlushOrderGate::MustWait(const Request& request) const {
  for (const auto& [cfd, max_memtable_id] : request.families) {
    if (busy_.count(cfd) > 0 && host_->WouldFlush(cfd)) {
      return true;
    }
  }
  return false;
}

bool FlushOrderGate::Park(const Request& request) {
  if (request.atomic_flush) {
    if (parked_atomic_.empty() && !MustWait(request)) {
      return false;
    }
    parked_atomic_.push_back(request);
  } else {
    assert(request.families.size() == 1);
    if (!MustWait(request)) {
      return false;
    }
    ColumnFamilyData* const cfd = request.families.begin()->first;
    const auto [parked, inserted] = parked_.try_emplace(cfd, request);
    if (!inserted) {
      if (!IsPartOfRecovery(parked->second.flush_reason)) {
        parked->second = request;
      }
      host_->Unref(cfd);
    }
  }
  TEST_SYNC_POINT("FlushOrderGate::Park:Parked");
  return true;
}

void FlushOrderGate::EnterFamily(ColumnFamilyData* cfd) {
  if (host_->NeedsOrder(cfd)) {
    [[maybe_unused]] const bool inserted = busy_.insert(cfd).second;
    assert(inserted);
  }
}

bool FlushOrderGate::EnterForFold(ColumnFamilyData* cfd) {
  assert(host_->NeedsOrder(cfd));
  if (busy_.count(cfd) > 0 || parked_.count(cfd) > 0) {
    return false;
  }
  // A parked atomic request that waits for another family would find this
  // family busy when it starts.
  for (const Request& request : parked_atomic_) {
    if (request.families.count(cfd) > 0) {
      return false;
    }
  }
  busy_.insert(cfd);
  return true;
}

void FlushOrderGate::Unpark() {
  for (auto it = parked_.begin(); it != parked_.end();) {
    if (busy_.count(it->first) > 0) {
      ++it;
      continue;
    }
    const Request request = std::move(it->second);
    ColumnFamilyData* const cfd = it->first;
    it = parked_.erase(it);
    // A request that will be dropped must not be in the queue, because the
    // request of the recovery would then be refused as a duplicate.
    if (!host_->IsBackgroundWorkStopped() ||
        IsPartOfRecovery(request.flush_reason)) {
      host_->Enqueue(request);
    }
    host_->Unref(cfd);
  }
  if (!parked_atomic_.empty() && !MustWait(parked_atomic_.front())) {
    // All atomic requests are queued; otherwise later requests would overtake
    // the remaining ones. Those that cannot start yet are parked again in the
    // same order.
    while (!parked_atomic_.empty()) {
      host_->EnqueueFront(std::move(parked_atomic_.back()));
      parked_atomic_.pop_back();
    }
  }
  assert(!busy_.empty() || Idle());
  TEST_SYNC_POINT("FlushOrderGate::Unpark:End");
}

}  // namespace ROCKSDB_NAMESPACE
