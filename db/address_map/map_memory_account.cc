// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_memory_account.h"

#include <cassert>

namespace ROCKSDB_NAMESPACE {

MapMemoryAccount::~MapMemoryAccount() {
  if (charge_ != nullptr && charged_ != 0) {
    charge_->SetCharged(0).PermitUncheckedError();
  }
}

Status MapMemoryAccount::Add(size_t bytes, bool force) {
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t total = (used_ + bytes + kStep - 1) / kStep * kStep;
  if (total > charged_ && charge_ != nullptr) {
    Status s = charge_->SetCharged(total);
    if (!s.ok() && !force) {
      charge_->SetCharged(charged_).PermitUncheckedError();
      return s;
    }
    s.PermitUncheckedError();
    charged_ = total;
  }
  used_ += bytes;
  return Status::OK();
}

void MapMemoryAccount::Sub(size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  assert(used_ >= bytes);
  used_ -= bytes;
  const size_t total = (used_ + kStep - 1) / kStep * kStep;
  if (total < charged_) {
    charge_->SetCharged(total).PermitUncheckedError();
    charged_ = total;
  }
}

size_t MapMemoryAccount::Used() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return used_;
}

}  // namespace ROCKSDB_NAMESPACE
