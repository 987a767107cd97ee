//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/version_strata.h"

#include <cassert>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/blob/blob_file_meta.h"
#include "db/blob/blob_index.h"
#include "db/column_family.h"
#include "db/delta/delta_range_size.h"
#include "db/delta/delta_read.h"
#include "db/delta/delta_store_iterator.h"
#include "db/delta/delta_version.h"
#include "db/strata/point_read.h"
#include "db/strata/point_read_batch.h"
#include "db/version_set.h"
#include "memory/arena.h"
#include "rocksdb/wide_columns.h"
#include "table/get_context.h"

namespace ROCKSDB_NAMESPACE {

bool VersionStrata::FinishPointRead(const ReadOptions& read_options,
                                    PointRead* point_read,
                                    GetContext* get_context, bool resolve_blob,
                                    const bool& is_blob_index,
                                    PinnableSlice* value,
                                    PinnableWideColumns* columns,
                                    Status* status, bool* key_exists) const {
  if (!point_read->AfterFilesOfMap(get_context, status)) {
    return point_read->AfterFilesOfDeltas(get_context, status);
  }
  const MapPointRead& map = *point_read->map();
  if (status->IsNotFound() && key_exists != nullptr && map.stopped()) {
    *key_exists = false;
  }
  if (status->IsIncomplete() && map.stopped()) {
    get_context->MarkKeyMayExist();
  }
  if (status->ok() && resolve_blob && is_blob_index &&
      (value != nullptr || columns != nullptr)) {
    PinnableSlice result;
    *status = version_->GetBlob(
        read_options, map.record_name(), /*blob_index_slice=*/map.value(),
        /*prefetch_buffer=*/nullptr, &result, /*bytes_read=*/nullptr);
    if (status->IsIncomplete()) {
      get_context->MarkKeyMayExist();
    } else if (status->ok()) {
      map.FillRowCache(result);
      if (value != nullptr) {
        *value = std::move(result);
      } else {
        columns->SetPlainValue(std::move(result));
      }
    }
  }
  return true;
}

void VersionStrata::SkipDirectKeys(const FdWithKeyRange& file,
                                   MultiGetRange* range) {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    PointRead* const point_read = iter->merge_context.point_read;
    if (point_read != nullptr && point_read->Skips(file)) {
      range->SkipKey(iter);
    }
  }
}

template <typename BlobContexts>
Status VersionStrata::FinishMapReads(const ReadOptions& read_options,
                                     bool before_files, MultiGetRange* range,
                                     BlobContexts* blob_contexts) const {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    PointRead* const point_read = iter->merge_context.point_read;
    assert(point_read != nullptr && point_read->map() != nullptr);
    const MapPointRead& map = *point_read->map();
    if (before_files &&
        (map.floor() == 0 ||
         map.floor() <
             version_->storage_info()->strata()->mapped_stats().lsm_ceiling)) {
      continue;
    }
    Status* const status = iter->s;
    if (!point_read->AfterFilesOfMap(iter->get_context, status)) {
      continue;
    }
    range->MarkKeyDone(iter);
    if (!status->ok()) {
      continue;
    }
    if (iter->is_blob_index) {
      BlobIndex blob_index;
      *status = blob_index.DecodeFrom(map.value());
      if (status->ok()) {
        (*blob_contexts)[blob_index.file_number()].emplace_back(blob_index,
                                                                &*iter);
      }
      continue;
    }
    range->AddValueSize(iter->value != nullptr ? iter->value->size()
                                               : iter->columns->payload_size());
    if (range->GetValueSize() > read_options.value_size_soft_limit) {
      if (!before_files) {
        return Status::Aborted();
      }
      // MultiGet() forgets this status when it searches the files. Without keys
      // it searches none.
      PointReadBatch::Abort(range);
      break;
    }
  }
  return Status::OK();
}

template Status VersionStrata::FinishMapReads(
    const ReadOptions&, bool, MultiGetRange*,
    std::unordered_map<uint64_t, Version::BlobReadContexts>*) const;

Status VersionStrata::FinishDeltaReads(const ReadOptions& read_options,
                                       MultiGetRange* range) {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    if (!iter->merge_context.point_read->AfterFilesOfDeltas(iter->get_context,
                                                            iter->s)) {
      continue;
    }
    // MultiGet() reports the counters of the remaining keys.
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

Status VersionStrata::NewestDelta(const ReadOptions& read_options,
                                  const LookupKey& key,
                                  SequenceNumber* seq) const {
  *seq = 0;
  Status s;
  if (version_->storage_info()->delta() != nullptr) {
    DeltaRead read(*version_->storage_info()->delta(),
                   *version_->cfd()->delta_store(), read_options, key,
                   merged_values_.number());
    DeltaRead::Operand newest;
    if (read.Next(/*above=*/0, &newest, &s)) {
      *seq = newest.seq;
    }
  }
  return s;
}

InternalIterator* VersionStrata::NewDeltaIterator(
    const ReadOptions& read_options, SequenceNumber read_seq,
    Arena* arena) const {
  if (version_->storage_info()->delta() == nullptr) {
    return nullptr;
  }
  assert(version_->cfd()->delta_store() != nullptr);
  void* const memory = arena->AllocateAligned(sizeof(DeltaStoreIterator));
  return new (memory) DeltaStoreIterator(
      *version_->storage_info()->delta(), *version_->cfd()->delta_store(),
      version_->cfd()->internal_comparator(), read_options, read_seq);
}

uint64_t VersionStrata::DeltaBytes(const SizeApproximationOptions& options,
                                   const ReadOptions& read_options,
                                   const Slice& start,
                                   const Slice& limit) const {
  assert(version_->storage_info()->delta() != nullptr);
  assert(version_->cfd()->delta_store() != nullptr);
  return DeltaRangeSize(*version_->storage_info()->delta(),
                        *version_->cfd()->delta_store(), read_options)
      .Bytes(start, limit, options.files_size_error_margin);
}

bool VersionStrata::KeepsBlobFile(const BlobFileMetaData& meta) const {
  const AddressMapStore* const blobs = version_->cfd()->address_map_store();
  return !meta.IsMapped() || blobs == nullptr ||
         blobs->Keeps(meta.GetBlobFileNumber());
}

}  // namespace ROCKSDB_NAMESPACE
