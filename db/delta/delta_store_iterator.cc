//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_store_iterator.h"

#include <cassert>
#include <vector>

#include "db/delta/delta_read.h"
#include "db/delta/delta_run_iterator.h"
#include "db/lookup_key.h"
#include "table/merging_iterator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;

ReadOptions OptionsOf(const ReadOptions& read_options) {
  ReadOptions result = read_options;
  // With async_io a child must be sought again when its block has been read,
  // and the merging iterator does not expect that of children that are not SST
  // files.
  result.async_io = false;
  // The snapshot may be released before the iterator, and is not needed here.
  result.snapshot = nullptr;
  return result;
}

}  // namespace

DeltaStoreIterator::DeltaStoreIterator(const DeltaVersion& version,
                                       const DeltaStore& store,
                                       const InternalKeyComparator& icmp,
                                       const ReadOptions& read_options,
                                       SequenceNumber read_seq)
    : version_(version),
      store_(store),
      ucmp_(version.user_comparator()),
      read_options_(OptionsOf(read_options)),
      read_seq_(read_seq) {
  std::vector<InternalIterator*> runs;
  for (const DeltaVersion::FilePtr& file :
       version.RecentFiles(Kind::kOperands)) {
    runs.push_back(
        new DeltaRunIterator(version, store, read_options_, file.get()));
  }
  const DeltaBucketTable& buckets = version.Buckets();
  if (buckets.NextWithExtent(buckets.Begin()) != buckets.End()) {
    runs.push_back(new DeltaRunIterator(version, store, read_options_,
                                        /*recent=*/nullptr));
  }
  merged_.reset(
      NewMergingIterator(&icmp, runs.data(), static_cast<int>(runs.size())));
}

DeltaStoreIterator::~DeltaStoreIterator() = default;

void DeltaStoreIterator::SetRangeDelReadSeqno(SequenceNumber read_seq) {
  read_seq_ = read_seq;
  has_key_ = false;
}

void DeltaStoreIterator::Reset() {
  valid_ = false;
  status_ = Status::OK();
}

void DeltaStoreIterator::SeekToFirst() {
  Reset();
  merged_->SeekToFirst();
  FindForward();
}

void DeltaStoreIterator::SeekToLast() {
  Reset();
  merged_->SeekToLast();
  FindBackward();
}

void DeltaStoreIterator::Seek(const Slice& target) {
  Reset();
  merged_->Seek(target);
  FindForward();
}

void DeltaStoreIterator::SeekForPrev(const Slice& target) {
  Reset();
  merged_->SeekForPrev(target);
  FindBackward();
}

void DeltaStoreIterator::Next() {
  assert(valid_);
  valid_ = false;
  merged_->Next();
  FindForward();
}

void DeltaStoreIterator::Prev() {
  assert(valid_);
  valid_ = false;
  merged_->Prev();
  FindBackward();
}

void DeltaStoreIterator::FindForward() {
  for (int steps = 0; merged_->Valid();) {
    const Slice user_key = ExtractUserKey(merged_->key());
    const SequenceNumber seq = GetInternalKeySeqno(merged_->key());
    const bool is_too_new = seq > read_seq_;
    if (!is_too_new) {
      if (!EnterKey(user_key)) {
        return;
      }
      if (seq > anchor_) {
        valid_ = true;
        return;
      }
    }
    if (++steps <= kMaxSteps) {
      merged_->Next();
    } else {
      steps = 0;
      // Operands of the key after a hidden one are hidden, too.
      merged_->Seek(is_too_new ? Target(user_key, read_seq_, kValueTypeForSeek)
                               : Target(user_key, /*seq=*/0, kTypeDeletion));
    }
  }
  status_ = merged_->status();
}

void DeltaStoreIterator::FindBackward() {
  for (int steps = 0; merged_->Valid();) {
    const Slice user_key = ExtractUserKey(merged_->key());
    const SequenceNumber seq = GetInternalKeySeqno(merged_->key());
    const bool is_too_new = seq > read_seq_;
    if (!is_too_new) {
      if (!EnterKey(user_key)) {
        return;
      }
      if (seq > anchor_) {
        valid_ = true;
        return;
      }
    }
    if (++steps <= kMaxSteps) {
      merged_->Prev();
    } else {
      steps = 0;
      // Operands of the key before one that is too new are too new, as well.
      merged_->SeekForPrev(Target(user_key,
                                  is_too_new ? kMaxSequenceNumber : anchor_,
                                  kValueTypeForSeek));
    }
  }
  status_ = merged_->status();
}

bool DeltaStoreIterator::EnterKey(const Slice& user_key) {
  if (has_key_ && ucmp_->Equal(user_key, user_key_.GetUserKey())) {
    return true;
  }
  user_key_.SetUserKey(user_key);
  const LookupKey key(user_key_.GetUserKey(), read_seq_);
  status_ = DeltaKeyView(version_, user_key_.GetUserKey())
                .NewestAnchor(store_, read_options_, key, &anchor_);
  has_key_ = status_.ok();
  return has_key_;
}

Slice DeltaStoreIterator::Target(const Slice& user_key, SequenceNumber seq,
                                 ValueType type) {
  target_.SetInternalKey(user_key, seq, type);
  return target_.GetInternalKey();
}

}  // namespace ROCKSDB_NAMESPACE
