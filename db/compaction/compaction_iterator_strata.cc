//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The part of CompactionIterator that handles mapped entries.

#include "db/blob/blob_fetcher.h"
#include "db/blob/blob_file_builder.h"
#include "db/blob_gc/blob_relocation.h"
#include "db/compaction/compaction_iterator.h"
#include "db/snapshot_checker.h"
#include "util/strata/key_for_message.h"

namespace ROCKSDB_NAMESPACE {

bool CompactionIterator::ConvertsBlobs() const {
  return mapping_ != nullptr && blob_file_builder_ != nullptr &&
         blob_file_builder_->is_mapped();
}

bool CompactionIterator::IsUndecided() const {
  return snapshot_checker_ != nullptr && !is_range_del_ && ikey_.sequence > 0 &&
         ikey_.sequence <= earliest_snapshot_ &&
         !DataIsDefinitelyInSnapshot(ikey_.sequence, earliest_snapshot_,
                                     snapshot_checker_);
}

bool CompactionIterator::KeepsSequence() const {
  if (mapping_ == nullptr) {
    return false;
  }
  // The sequence number is part of the name of a mapped entry. An entry that
  // the job has created from others must stay above a direct value that it was
  // created from, because that value is demoted only after the edit.
  if ((ikey_.type == kTypeBlobIndex && MappedBlobIndex::IsMapped(value_)) ||
      ((value_changed_ || ikey_.type == kTypeWideColumnEntity) &&
       mapping_->HasDirect(ikey_.user_key))) {
    return true;
  }
  mapping_->OnSequenceZeroed(ikey_.user_key, ikey_.sequence);
  return false;
}

Status CompactionIterator::FetchMapped(BlobIndex* index) {
  Status s = index->DecodeFrom(value_);
  if (!s.ok()) {
    return s;
  }
  index->BindSequence(ikey_.sequence);
  uint64_t bytes_read = 0;
  s = blob_fetcher_->FetchBlob(user_key(), *index, /*prefetch_buffer=*/nullptr,
                               &blob_value_, &bytes_read);
  if (s.ok()) {
    ++iter_stats_.num_blobs_read;
    iter_stats_.total_blob_bytes_read += bytes_read;
  }
  return s;
}

void CompactionIterator::StoreFetched() {
  value_ = blob_value_;
  if (!ExtractLargeValueIfNeededImpl() && status_.ok()) {
    ikey_.type = kTypeValue;
    current_key_.UpdateInternalKey(ikey_.sequence, ikey_.type);
  }
}

Status CompactionIterator::MoveMapped(bool* moved) {
  BlobIndex index;
  Status s = index.DecodeFrom(value_);
  if (!s.ok()) {
    return s;
  }
  index.BindSequence(ikey_.sequence);
  uint32_t path_id = 0;
  if (!mapping_->FindPath(user_key(), index, &path_id) ||
      path_id == blob_relocation_->path_id()) {
    return s;
  }
  s = FetchMapped(&index);
  if (s.IsNotFound()) {
    // A newer entry or range deletion has hidden this entry meanwhile.
    return Status::OK();
  }
  if (s.ok()) {
    ++iter_stats_.num_blobs_relocated;
    iter_stats_.total_blob_bytes_relocated += blob_value_.size();
    StoreFetched();
    *moved = true;
  }
  return s;
}

void CompactionIterator::PlaceMapped() {
  Status s;
  if (mapping_ == nullptr) {
    s = Status::Corruption("Mapped blob index without an address map");
  } else if (mapping_->keeps_mapped()) {
    bool moved = false;
    if (UNLIKELY(blob_relocation_ != nullptr)) {
      s = MoveMapped(&moved);
    }
    if (s.ok() && !moved) {
      s = mapping_->Place(user_key(), ikey_.sequence, value_, &blob_index_);
      value_ = blob_index_;
    }
  } else {
    BlobIndex index;
    s = FetchMapped(&index);
    if (s.IsNotFound() && mapping_->IsLost(user_key(), index)) {
      s = Status::Corruption("The value of key " +
                             KeyForMessage(user_key(), allow_data_in_errors_) +
                             " is lost and cannot be moved out of the map");
    }
    if (s.IsNotFound()) {
      // A newer committed entry or range deletion hides this entry from all
      // readers. A tombstone in its place would break the contract of a
      // SingleDelete() that hides it.
      is_dead_ = true;
      validity_info_.Invalidate();
      return;
    } else if (s.ok()) {
      StoreFetched();
    }
  }
  if (!s.ok()) {
    status_ = s;
    validity_info_.Invalidate();
  }
}

void CompactionIterator::SkipDead() {
  while (is_dead_) {
    // The entry came from the input, not from the merge output.
    assert(!merge_out_iter_.Valid());
    if (!at_next_) {
      AdvanceInputIter();
    }
    NextFromInput();
    has_outputted_key_ |= Valid();
    PrepareOutput();
  }
}

void CompactionIterator::RemoveInRange() {
  ikey_.type = kTypeDeletion;
  current_key_.UpdateInternalKey(ikey_.sequence, kTypeDeletion);
  value_.clear();
  ++iter_stats_.num_record_drop_user;
}

}  // namespace ROCKSDB_NAMESPACE
