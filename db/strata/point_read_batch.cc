//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/point_read_batch.h"

#include <algorithm>
#include <cassert>

#include "db/column_family.h"
#include "db/version_set.h"
#include "rocksdb/wide_columns.h"
#include "util/strata/io_uring_batch.h"

namespace ROCKSDB_NAMESPACE {

namespace {

ColumnFamilyData* FamilyOf(const KeyContext& key) {
  return static_cast<ColumnFamilyHandleImpl*>(key.column_family)->cfd();
}

// Undoes what a lookup has put into its results.
void ResetResults(KeyContext* key) {
  if (key->value != nullptr) {
    key->value->Reset();
  }
  if (key->columns != nullptr) {
    key->columns->Reset();
  }
  if (key->timestamp != nullptr) {
    key->timestamp->clear();
  }
  key->merge_context.Clear();
  key->max_covering_tombstone_seq = 0;
  key->key_exists = false;
  key->is_blob_index = false;
  key->get_context = nullptr;
  // A failed key is read again, and the read may succeed.
  IGNORE_STATUS_IF_ERROR((*key->s));
  *key->s = Status::OK();
}

}  // namespace

PointReadBatch::PointReadBatch(const ReadOptions& read_options,
                               ImplicitSnapshotRegistry* registry,
                               const Keys& keys)
    : keys_(keys), snapshot_(read_options, registry) {
  // Keys of one column family stand together.
  const ColumnFamilyHandle* featureless = nullptr;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (LIKELY(keys[i]->column_family == featureless)) {
      continue;
    }
    ColumnFamilyData* const cfd = FamilyOf(*keys[i]);
    if (!PointRead::IsNeeded(*cfd)) {
      featureless = keys[i]->column_family;
      continue;
    }
    if (reads_.empty()) {
      reads_ = std::vector<std::optional<PointRead>>(keys.size());
    }
    reads_[i].emplace(cfd, *keys[i]->key, read_options, /*registers=*/false);
    has_maps_ |= reads_[i]->map() != nullptr;
  }
}

PointReadBatch::~PointReadBatch() {
  if (active()) {
    for (KeyContext* key : keys_) {
      key->merge_context.point_read = nullptr;
    }
  }
}

void PointReadBatch::StartAll() {
  for (auto& read : reads_) {
    if (read.has_value()) {
      read->BeginCounted(/*is_bounded=*/snapshot_.taken());
    }
  }
}

void PointReadBatch::Attach(size_t first, size_t n,
                            const SuperVersion* super_version,
                            SequenceNumber sequence, ReadCallback* callback) {
  for (size_t i = first; i < std::min(first + n, reads_.size()); ++i) {
    if (reads_[i].has_value()) {
      KeyContext* const key = keys_[i];
      reads_[i]->Attach(super_version, sequence, callback, /*uses_cache=*/true,
                        &key->merge_context, &key->max_covering_tombstone_seq);
    }
  }
}

bool PointReadBatch::Again(const Status& status) {
  bool again = false;
  for (size_t i = 0; i < reads_.size(); ++i) {
    if (reads_[i].has_value() && reads_[i]->NeedsRestart()) {
      again = true;
      if (!status.ok()) {
        *keys_[i]->s = status;
      }
    }
  }
  if (!again || !status.ok()) {
    return false;
  }
  for (KeyContext* key : keys_) {
    ResetResults(key);
  }
  return true;
}

void PointReadBatch::AfterMemTables(const ReadOptions& read_options,
                                    MultiGetContext::Range* range) {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    PointRead* const read = iter->merge_context.point_read;
    if (read == nullptr || (!iter->s->ok() && !iter->s->IsMergeInProgress()) ||
        !read->AfterMemTables(iter->max_covering_tombstone_seq, iter->s,
                              iter->value, iter->columns)) {
      continue;
    }
    if (iter->value != nullptr) {
      range->AddValueSize(iter->value->size());
    } else if (iter->columns != nullptr) {
      range->AddValueSize(iter->columns->payload_size());
    }
    range->MarkKeyDone(iter);
    if (range->GetValueSize() > read_options.value_size_soft_limit) {
      Abort(range);
      return;
    }
  }
}

void PointReadBatch::Abort(MultiGetContext::Range* range) {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    *iter->s = Status::Aborted();
    range->MarkKeyDone(iter);
  }
}

void PointReadBatch::FileSearch::Begin(const Version& version,
                                       const DeltaVersion& delta,
                                       const ReadOptions& read_options,
                                       const MultiGetContext::Range& range) {
  reads_ = std::make_unique<KeyRead[]>(static_cast<size_t>(range.KeysLeft()));
  IOUringBatch batch;
  for (auto iter = range.begin(); iter != range.end(); ++iter) {
    KeyRead& read = reads_[num_reads_++];
    read.point_read = iter->merge_context.point_read;
    assert(read.point_read != nullptr);
    read.deltas.emplace(delta, *version.cfd()->delta_store(), read_options,
                        *iter->lkey, version.strata().merged_values().number());
    read.point_read->BeginDeltas(&*read.deltas);
    read.deltas->ReadAhead(iter->max_covering_tombstone_seq);
  }
}

void PointReadBatch::FileSearch::End() {
  for (size_t i = 0; i < num_reads_; ++i) {
    reads_[i].point_read->EndDeltas();
  }
}

}  // namespace ROCKSDB_NAMESPACE
