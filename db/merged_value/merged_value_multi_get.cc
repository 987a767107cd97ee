//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/merged_value/merged_value_multi_get.h"

#include <algorithm>
#include <string>

#include "db/column_family.h"
#include "rocksdb/options.h"
#include "rocksdb/wide_columns.h"

namespace ROCKSDB_NAMESPACE {

MergedValueMultiGet::~MergedValueMultiGet() = default;

void MergedValueMultiGet::Attach(size_t first, size_t n,
                                 const SuperVersion* super_version,
                                 SequenceNumber sequence,
                                 const ReadCallback* callback) {
  const ColumnFamilyData* const cfd = super_version->cfd;
  if (cfd->merged_values() == nullptr ||
      !MergedValueRead::Allows(read_options_, callback)) {
    return;
  }
  if (reads_ == nullptr) {
    reads_ = std::make_unique<std::deque<MergedValueRead>>();
  }
  for (size_t i = first; i < std::min(first + n, keys_.size()); ++i) {
    KeyContext* const key = keys_[i];
    MergedValueRead* read = key->merge_context.merged_read;
    if (read == nullptr) {
      read = &reads_->emplace_back();
    }
    read->Attach(cfd, super_version, *key->key, sequence,
                 read_options_.snapshot != nullptr, read_options_.fill_cache,
                 &key->merge_context);
  }
}

void MergedValueMultiGet::Finish(MultiGetContext::Range* range) {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    MergedValueRead* const read = iter->merge_context.merged_read;
    if (read == nullptr || (!iter->s->ok() && !iter->s->IsMergeInProgress())) {
      continue;
    }
    std::string* const value =
        iter->value != nullptr ? iter->value->GetSelf() : nullptr;
    if (!read->Finish(iter->max_covering_tombstone_seq, iter->s, value,
                      iter->columns)) {
      continue;
    }
    if (iter->value != nullptr) {
      iter->value->PinSelf();
      range->AddValueSize(iter->value->size());
    } else if (iter->columns != nullptr) {
      range->AddValueSize(iter->columns->payload_size());
    }
    range->MarkKeyDone(iter);
  }
}

}  // namespace ROCKSDB_NAMESPACE
