//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <cassert>

#include "db/column_family.h"
#include "db/delta/delta_read.h"
#include "db/delta/delta_store_iterator.h"
#include "db/delta/delta_version.h"
#include "db/version_set.h"
#include "memory/arena.h"
#include "rocksdb/wide_columns.h"
#include "table/get_context.h"

namespace ROCKSDB_NAMESPACE {

bool Version::FinishDeltaRead(GetContext* get_context, Status* status) {
  Status s;
  if (get_context->DrainDeltas(/*above=*/0, &s)) {
    return false;
  }
  // What fails says so in the status.
  assert(!s.ok() || get_context->State() == GetContext::kFound);
  *status = s;
  return true;
}

Status Version::FinishDeltaReads(const ReadOptions& read_options,
                                 MultiGetRange* range) {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    if (!FinishDeltaRead(iter->get_context, iter->s)) {
      continue;
    }
    // MultiGet() does it for those that are left.
    iter->get_context->ReportCounters();
    range->MarkKeyDone(iter);
    if (!iter->s->ok()) {
      continue;
    }
    range->AddValueSize(iter->value != nullptr ? iter->value->size()
                                               : iter->columns->payload_size());
    if (range->GetValueSize() > read_options.value_size_soft_limit) {
      return Status::Aborted();
    }
  }
  return Status::OK();
}

Status Version::NewestDelta(const ReadOptions& read_options,
                            const LookupKey& key, SequenceNumber* seq) const {
  *seq = 0;
  Status s;
  if (storage_info_.delta() != nullptr) {
    DeltaRead read(*storage_info_.delta(), *cfd_->delta_store(), read_options,
                   key, /*merge_context=*/nullptr, merged_values_.number());
    DeltaRead::Operand newest;
    if (read.Next(/*above=*/0, &newest, &s)) {
      *seq = newest.seq;
    }
  }
  return s;
}

InternalIterator* Version::NewDeltaIterator(const ReadOptions& read_options,
                                            SequenceNumber read_seq,
                                            Arena* arena) const {
  if (storage_info_.delta() == nullptr) {
    return nullptr;
  }
  assert(cfd_->delta_store() != nullptr);
  void* const memory = arena->AllocateAligned(sizeof(DeltaStoreIterator));
  return new (memory) DeltaStoreIterator(
      *storage_info_.delta(), *cfd_->delta_store(),
      cfd_->internal_comparator(), read_options, read_seq);
}

}  // namespace ROCKSDB_NAMESPACE
