//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/point_read.h"

#include <cassert>
#include <string>

#include "db/address_map/address_map_store.h"
#include "db/delta/delta_operands.h"
#include "db/strata/continue_once_per_operand.h"
#include "db/version_set.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/wide_columns.h"
#include "table/get_context.h"
#include "util/strata/key_for_message.h"

namespace ROCKSDB_NAMESPACE {

PointRead::PointRead(ColumnFamilyData* cfd, const Slice& user_key,
                     const ReadOptions& read_options, bool registers)
    : cfd_(cfd), user_key_(user_key), read_options_(&read_options) {
  if (AddressMapStore* const map = cfd->address_map_store(); map != nullptr) {
    map_.emplace(cfd, user_key, read_options,
                 registers ? map->read_bounds() : nullptr);
  }
}

PointRead::PointRead(DeltaOperands* operands) : operands_(operands) {}

PointRead::~PointRead() = default;

void PointRead::AskOncePerOperand(GetMergeOperandsOptions* options) {
  if (map_.has_value()) {
    map_->BoundFromTheStart();
    continue_once_ = std::make_unique<ContinueOncePerOperand>(*options);
  }
}

void PointRead::Attach(const SuperVersion* super_version,
                       SequenceNumber sequence, ReadCallback* callback,
                       bool uses_cache, MergeContext* merge_context,
                       const SequenceNumber* covering) {
  assert(deltas_ == nullptr);
  if (map_.has_value()) {
    map_->Attach(super_version, sequence, callback, covering);
  }
  merged_.reset();
  if (cfd_->merged_values() != nullptr && uses_cache &&
      MergedValueRead::Allows(*read_options_, callback)) {
    merged_.emplace(cfd_, super_version, user_key_, sequence,
                    /*has_snapshot=*/read_options_->snapshot != nullptr ||
                        HasFixedSequence(),
                    read_options_->fill_cache, merge_context);
  }
  merge_context->point_read = this;
  if (UNLIKELY(continue_once_ != nullptr)) {
    merge_context->get_merge_operands_options = continue_once_->StartAttempt();
  }
}

void PointRead::FindNewest(SequenceNumber* newest, MergeContext* merge_context,
                           const SequenceNumber* covering) {
  assert(map_.has_value());
  map_->FindNewest(newest, covering);
  merge_context->point_read = this;
}

bool PointRead::AfterMemTables(SequenceNumber covering, Status* status,
                               PinnableSlice* value,
                               PinnableWideColumns* columns) {
  if (!merged_.has_value() ||
      !merged_->Finish(covering, status,
                       value != nullptr ? value->GetSelf() : nullptr,
                       columns)) {
    return false;
  }
  if (value != nullptr) {
    value->PinSelf();
  }
  return true;
}

void PointRead::FileSearch::Begin(const Version& version,
                                  const DeltaVersion& delta,
                                  const ReadOptions& read_options,
                                  const LookupKey& key, bool wants_value,
                                  SequenceNumber covering,
                                  MergeContext* merge_context) {
  if (point_read_ == nullptr) {
    own_ = std::make_unique<PointRead>(/*operands=*/nullptr);
    own_merge_context_ = merge_context;
    point_read_ = merge_context->point_read = own_.get();
  }
  deltas_.emplace(delta, *version.cfd()->delta_store(), read_options, key,
                  version.strata().merged_values().number());
  point_read_->BeginDeltas(&*deltas_);
  if (wants_value) {
    deltas_->ReadAhead(covering);
  }
}

void PointRead::FileSearch::End() {
  point_read_->EndDeltas();
  if (own_merge_context_ != nullptr) {
    own_merge_context_->point_read = nullptr;
  }
}

bool PointRead::AfterFilesOfMap(GetContext* get_context, Status* status) {
  if (!map_.has_value()) {
    return false;
  }
  if (!map_->stopped()) {
    if (map_->floor() == 0) {
      if (map_->ConfirmAbsence()) {
        return false;
      }
    } else {
      // Operands, if there are any, are in get_context.
      *status = Status::OK();
      if (map_->TakeDirect() == MapPointRead::Action::kReplaced) {
        bool matched = false;
        get_context->SaveReplacement(&matched, status);
      }
    }
  }
  if (map_->stopped()) {
    *status = map_->StoppedStatus();
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
      *status = Status::Corruption(
          "corrupted key for ",
          KeyForMessage(user_key_, cfd_->ioptions().allow_data_in_errors));
  }
  return true;
}

bool PointRead::AfterFilesOfDeltas(GetContext* get_context, Status* status) {
  if (deltas_ == nullptr) {
    return false;
  }
  Status s;
  if (get_context->SaveDeltas(/*above=*/0, &s)) {
    return false;
  }
  // Every failure is reported in the status.
  assert(!s.ok() || get_context->State() == GetContext::kFound);
  *status = s;
  return true;
}

bool PointRead::TakeBlobAhead(PinnableSlice* blob) {
  if (blob_ahead_ == nullptr) {
    return false;
  }
  *blob = std::move(*blob_ahead_);
  blob_ahead_.reset();
  return true;
}

bool PointRead::TakesOperand(SequenceNumber seq, const Slice& value,
                             Cleanable* pinner) {
  if (operands_ == nullptr) {
    return false;
  }
  operands_->Add(seq, value, pinner);
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
