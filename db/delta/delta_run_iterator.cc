//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_run_iterator.h"

#include <cassert>

#include "db/dbformat.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_read.h"
#include "db/delta/delta_store.h"
#include "rocksdb/table_reader_caller.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Sets *key to an internal key before all entries of the user key.
void SetBefore(const Slice& user_key, IterKey* key) {
  key->SetInternalKey(user_key, kMaxSequenceNumber, kValueTypeForSeek);
}

}  // namespace

DeltaRunIterator::DeltaRunIterator(const DeltaVersion& version,
                                   const DeltaStore& store,
                                   const ReadOptions& read_options,
                                   const DeltaFileMeta* recent)
    : version_(version),
      store_(store),
      read_options_(read_options),
      ucmp_(version.user_comparator()),
      recent_(recent) {
  assert(recent_ != nullptr || !buckets().empty());
  assert(!read_options_.async_io);
}

void DeltaRunIterator::SetPinnedItersMgr(
    PinnedIteratorsManager* pinned_iters_mgr) {
  pinned_iters_mgr_ = pinned_iters_mgr;
  if (iter_ != nullptr) {
    iter_->SetPinnedItersMgr(pinned_iters_mgr);
  }
}

//======== Buckets and files

DeltaRunIterator::Position DeltaRunIterator::NextSeeing(Position from) const {
  return recent_ != nullptr
             ? buckets().NextBelow(from, recent_->description().last_epoch)
             : buckets().NextWithExtent(from);
}

DeltaRunIterator::Position DeltaRunIterator::PrevSeeing(Position from) const {
  return recent_ != nullptr
             ? buckets().PrevBelow(from, recent_->description().last_epoch)
             : buckets().PrevWithExtent(from);
}

const DeltaFileMeta* DeltaRunIterator::FileOf(Position bucket) const {
  if (recent_ != nullptr) {
    return recent_;
  }
  const DeltaFileMeta* const file =
      FindSortedDeltaFile(version_, buckets().State(bucket).extent_number);
  assert(file != nullptr);
  return file;
}

void DeltaRunIterator::Reset() {
  valid_ = false;
  status_ = Status::OK();
}

bool DeltaRunIterator::Enter(Position bucket) {
  bucket_ = bucket;
  lower_ = buckets().LowerBound(bucket);
  const Position next = buckets().Next(bucket);
  has_upper_ = next != buckets().End();
  upper_ = has_upper_ ? buckets().LowerBound(next) : Slice();
  return Open(FileOf(bucket));
}

bool DeltaRunIterator::EnterAll() { return Open(recent_); }

bool DeltaRunIterator::Open(const DeltaFileMeta* file) {
  if (file == file_) {
    return true;
  }
  ReleaseIterator();
  DeltaFileReader* reader = nullptr;
  status_ = store_.GetReader(read_options_, *file, &reader);
  if (!status_.ok()) {
    return false;
  }
  iter_.reset(
      reader->NewIterator(read_options_, TableReaderCaller::kUserIterator));
  iter_->SetPinnedItersMgr(pinned_iters_mgr_);
  file_ = file;
  reader_ = reader;
  return true;
}

void DeltaRunIterator::ReleaseIterator() {
  if (iter_ != nullptr && IsPinning()) {
    // Keys and values that were returned may point into its blocks.
    pinned_iters_mgr_->PinIterator(iter_.release());
  }
  iter_.reset();
  file_ = nullptr;
  reader_ = nullptr;
}

void DeltaRunIterator::SeekToBegin() {
  if (lower_.empty()) {
    iter_->SeekToFirst();
  } else {
    IterKey target;
    SetBefore(lower_, &target);
    iter_->Seek(target.GetInternalKey());
  }
}

void DeltaRunIterator::SeekToEnd() {
  if (!has_upper_) {
    iter_->SeekToLast();
  } else {
    IterKey target;
    SetBefore(upper_, &target);
    iter_->SeekForPrev(target.GetInternalKey());
  }
}

//======== Movements

void DeltaRunIterator::SeekToFirst() {
  Reset();
  if (buckets().empty()) {
    if (!EnterAll()) {
      return;
    }
  } else {
    const Position bucket = NextSeeing(buckets().Begin());
    if (bucket == buckets().End() || !Enter(bucket)) {
      return;
    }
  }
  SeekToBegin();
  FindForward();
}

void DeltaRunIterator::SeekToLast() {
  Reset();
  if (buckets().empty()) {
    if (!EnterAll()) {
      return;
    }
  } else {
    const Position bucket = PrevSeeing(buckets().Prev(buckets().End()));
    if (bucket == buckets().End() || !Enter(bucket)) {
      return;
    }
  }
  SeekToEnd();
  FindBackward();
}

void DeltaRunIterator::Seek(const Slice& target) {
  Reset();
  const Slice user_key = ExtractUserKey(target);
  if (recent_ != nullptr &&
      ucmp_->Compare(user_key, recent_->description().largest) > 0) {
    return;
  }
  bool is_in_bucket = true;
  if (buckets().empty()) {
    if (!EnterAll()) {
      return;
    }
  } else {
    const Position of_key = buckets().Find(user_key, ucmp_);
    const Position bucket = NextSeeing(of_key);
    if (bucket == buckets().End() || !Enter(bucket)) {
      return;
    }
    is_in_bucket = bucket == of_key;
  }
  if (is_in_bucket) {
    iter_->Seek(target);
  } else {
    SeekToBegin();
  }
  FindForward();
}

void DeltaRunIterator::SeekForPrev(const Slice& target) {
  Reset();
  const Slice user_key = ExtractUserKey(target);
  if (recent_ != nullptr &&
      ucmp_->Compare(user_key, recent_->description().smallest) < 0) {
    return;
  }
  bool is_in_bucket = true;
  if (buckets().empty()) {
    if (!EnterAll()) {
      return;
    }
  } else {
    const Position of_key = buckets().Find(user_key, ucmp_);
    const Position bucket = PrevSeeing(of_key);
    if (bucket == buckets().End() || !Enter(bucket)) {
      return;
    }
    is_in_bucket = bucket == of_key;
  }
  if (is_in_bucket) {
    iter_->SeekForPrev(target);
  } else {
    SeekToEnd();
  }
  FindBackward();
}

void DeltaRunIterator::Next() {
  assert(valid_);
  valid_ = false;
  iter_->Next();
  FindForward();
}

void DeltaRunIterator::Prev() {
  assert(valid_);
  valid_ = false;
  iter_->Prev();
  FindBackward();
}

void DeltaRunIterator::FindForward() {
  for (;;) {
    if (iter_->Valid()) {
      const Slice user_key = iter_->user_key();
      if (!has_upper_ || ucmp_->Compare(user_key, upper_) < 0) {
        Take();
        return;
      }
      if (!LeaveForward(&user_key)) {
        return;
      }
    } else {
      status_ = iter_->status();
      if (!status_.ok() || !LeaveForward(nullptr)) {
        return;
      }
    }
  }
}

void DeltaRunIterator::FindBackward() {
  for (;;) {
    if (iter_->Valid()) {
      const Slice user_key = iter_->user_key();
      if (lower_.empty() || ucmp_->Compare(user_key, lower_) >= 0) {
        Take();
        return;
      }
      if (!LeaveBackward(&user_key)) {
        return;
      }
    } else {
      status_ = iter_->status();
      if (!status_.ok() || !LeaveBackward(nullptr)) {
        return;
      }
    }
  }
}

bool DeltaRunIterator::LeaveForward(const Slice* key) {
  if (recent_ != nullptr && key == nullptr) {
    return false;
  }
  assert(!buckets().empty());
  Position next = buckets().Next(bucket_);
  if (recent_ != nullptr) {
    // The buckets in between have none of its entries, and may be many.
    next = buckets().Find(*key, ucmp_);
    assert(bucket_ < next);
  }
  next = NextSeeing(next);
  if (next == buckets().End() ||
      // Beyond the bound all extents would be searched without result.
      (read_options_.iterate_upper_bound != nullptr &&
       ucmp_->Compare(buckets().LowerBound(next),
                      *read_options_.iterate_upper_bound) >= 0)) {
    return false;
  }
  const bool is_same_file = key != nullptr && FileOf(next) == file_;
  if (!Enter(next)) {
    return false;
  }
  if (!is_same_file || ucmp_->Compare(*key, lower_) < 0) {
    SeekToBegin();
  }
  return true;
}

bool DeltaRunIterator::LeaveBackward(const Slice* key) {
  if ((recent_ != nullptr && key == nullptr) || buckets().empty() ||
      bucket_ == buckets().Begin()) {
    return false;
  }
  Position prev = buckets().Prev(bucket_);
  if (recent_ != nullptr) {
    prev = buckets().Find(*key, ucmp_);
    assert(prev < bucket_);
  }
  prev = PrevSeeing(prev);
  if (prev == buckets().End() ||
      (read_options_.iterate_lower_bound != nullptr &&
       ucmp_->Compare(buckets().LowerBound(buckets().Next(prev)),
                      *read_options_.iterate_lower_bound) <= 0)) {
    return false;
  }
  const bool is_same_file = key != nullptr && FileOf(prev) == file_;
  if (!Enter(prev)) {
    return false;
  }
  if (!is_same_file || ucmp_->Compare(*key, upper_) >= 0) {
    SeekToEnd();
  }
  return true;
}

void DeltaRunIterator::Take() {
  if (ExtractValueType(iter_->key()) != kTypeMerge) {
    status_ = Status::Corruption(reader_->file_name(), "not an operand");
    return;
  }
  valid_ = true;
}

}  // namespace ROCKSDB_NAMESPACE
