//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <atomic>
#include <cassert>

#include "db/write_batch_internal.h"
#include "rocksdb/write_batch.h"

namespace ROCKSDB_NAMESPACE {

SavePoint WriteBatchInternal::End(const WriteBatch& wb) {
  return SavePoint(wb.GetDataSize(), wb.Count(),
                   wb.content_flags_.load(std::memory_order_relaxed));
}

void WriteBatchInternal::TruncateTo(WriteBatch* wb, const SavePoint& end) {
  assert(end.size >= kHeader);
  assert(end.size <= wb->rep_.size());
  assert(end.count <= wb->Count());
  wb->rep_.resize(end.size);
  SetCount(wb, end.count);
  if (wb->prot_info_ != nullptr) {
    wb->prot_info_->entries_.resize(end.count);
  }
  wb->content_flags_.store(end.content_flags, std::memory_order_relaxed);
  wb->wal_term_point_.clear();
  wb->is_latest_persistent_state_ = false;
}

}  // namespace ROCKSDB_NAMESPACE
