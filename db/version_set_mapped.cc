//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob/map_point_read.h"
#include "db/version_set.h"
#include "table/get_context.h"

namespace ROCKSDB_NAMESPACE {

bool Version::EndMapSearch(MapPointRead* map_read, GetContext* get_context,
                           Status* status) const {
  if (!map_read->stopped()) {
    if (map_read->floor() == 0) {
      if (map_read->ConfirmAbsence()) {
        return false;
      }
    } else {
      // Operands, if there are any, are in get_context.
      *status = Status::OK();
      if (map_read->TakeDirect() == MapPointRead::Action::kReplaced) {
        bool matched = false;
        get_context->SaveReplacement(&matched, status);
      }
    }
  }
  if (map_read->stopped()) {
    *status = map_read->StoppedStatus();
    return true;
  }
  if (!status->ok()) {
    return true;
  }
  switch (get_context->State()) {
    case GetContext::kFound:
      break;
    case GetContext::kDeleted:
      *status = Status::NotFound();
      break;
    case GetContext::kMergeOperatorFailed:
      *status = Status::Corruption(Status::SubCode::kMergeOperatorFailed);
      break;
    case GetContext::kUnexpectedBlobIndex:
      *status = Status::NotSupported("Encounter unexpected blob index.");
      break;
    default:
      *status =
          Status::Corruption("corrupted key for ", map_read->key().user_key);
  }
  return true;
}

bool Version::FinishMapRead(const ReadOptions& read_options,
                            MapPointRead* map_read, GetContext* get_context,
                            bool resolve_blob, const bool& is_blob_index,
                            PinnableSlice* value, PinnableWideColumns* columns,
                            Status* status, bool* key_exists) {
  if (!EndMapSearch(map_read, get_context, status)) {
    return false;
  }
  if (status->IsNotFound() && key_exists != nullptr && map_read->stopped()) {
    *key_exists = false;
  }
  if (status->ok() && resolve_blob && is_blob_index &&
      (value != nullptr || columns != nullptr)) {
    const Slice blob_index = map_read->value();
    PinnableSlice result;
    *status = GetBlob(read_options, map_read->record_name(), blob_index,
                      /*prefetch_buffer=*/nullptr, &result,
                      /*bytes_read=*/nullptr);
    if (status->IsIncomplete()) {
      get_context->MarkKeyMayExist();
    } else if (status->ok()) {
      map_read->FillRowCache(result);
      if (value != nullptr) {
        *value = std::move(result);
      } else {
        columns->SetPlainValue(std::move(result));
      }
    }
  }
  return true;
}

void Version::SkipDirectKeys(const FdWithKeyRange& file,
                             MultiGetRange* range) const {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    MapPointRead* const map_read = iter->merge_context.map_read;
    if (map_read != nullptr && map_read->Skips(file)) {
      range->SkipKey(iter);
    }
  }
}

Status Version::FinishMapReads(
    const ReadOptions& read_options, bool before_files, MultiGetRange* range,
    std::unordered_map<uint64_t, BlobReadContexts>* blob_ctxs) const {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    MapPointRead* const map_read = iter->merge_context.map_read;
    assert(map_read != nullptr);
    if (before_files &&
        (map_read->floor() == 0 ||
         map_read->floor() < storage_info_.mapped_summary().lsm_ceiling)) {
      continue;
    }
    Status* const status = iter->s;
    if (!EndMapSearch(map_read, iter->get_context, status)) {
      continue;
    }
    range->MarkKeyDone(iter);
    if (!status->ok()) {
      continue;
    }
    if (iter->is_blob_index) {
      BlobIndex blob_index;
      *status = blob_index.DecodeFrom(map_read->value());
      if (status->ok()) {
        (*blob_ctxs)[blob_index.file_number()].emplace_back(blob_index,
                                                            &*iter);
      }
      continue;
    }
    range->AddValueSize(iter->value != nullptr ? iter->value->size()
                                               : iter->columns->payload_size());
    // Those before the files count, but do not end the batch.
    if (!before_files &&
        range->GetValueSize() > read_options.value_size_soft_limit) {
      return Status::Aborted();
    }
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
