//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/scan_sort/scan_meter.h"

#include "monitoring/statistics_impl.h"

namespace ROCKSDB_NAMESPACE {

void ScanMeter::OnValue(const Slice& user_key, uint64_t file_number,
                        uint64_t offset, uint64_t size) {
  if (!is_on_) {
    return;
  }
  if (values_ % kBatch == 0) {
    Charge();
    batch_key_.assign(user_key.data(), user_key.size());
  }
  ++values_;
  bytes_ += size;
  places_ += where_.Add(file_number, offset, size) ? 1 : 0;
}

void ScanMeter::Charge() {
  const uint64_t sorted = 1 + bytes_ / kSortedBytes;
  if (places_ > sorted + charged_) {
    const uint64_t extra = places_ - sorted - charged_;
    charged_ += extra;
    debts_->Charge(&reader_, batch_key_, extra);
  }
}

void ScanMeter::EndScan() {
  is_on_ = debts_->budget() > 0;
  if (values_ == 0) {
    return;
  }
  if (values_ > 1) {
    Charge();
    RecordInHistogram(statistics_, BLOB_MAP_SCAN_PLACES, places_);
  }
  where_.Clear();
  values_ = 0;
  places_ = bytes_ = charged_ = 0;
}

}  // namespace ROCKSDB_NAMESPACE
