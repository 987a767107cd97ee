//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>

#include "db/dbformat.h"
#include "db/delta/delta_version.h"
#include "rocksdb/comparator.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class DeltaStore;
class PinnedIteratorsManager;

// Iterates over the operands of a DeltaVersion that a reader at sequence number
// r sees: for each key those in (a, r], where a is the key's newest anchor up
// to r. It does for all keys, in the order of internal keys, what DeltaRead
// does for one key.
//
// As a child of a merging iterator it stands after the memtables and before the
// SST files. Tombstones of memtables hide its operands, rightly, as all of
// these are older. Tombstones of SST files do not, as the merging iterator does
// not compare sequence numbers: this iterator applies range anchors itself. For
// the same reason it must not pass range anchors to the merging iterator, which
// would hide newer entries of SST files. Range anchors also count with
// ignore_range_deletions: the bases that they stand for may be gone
// permanently, as after DeleteFilesInRanges().
//
// Anchors are looked up key by key, and only for keys that have operands. They
// are never returned: an anchor would be a second entry at the position of its
// base.
//
// Not thread-safe.
class DeltaStoreIterator final : public InternalIterator {
 public:
  // Does not open files yet. The options are copied, but not the bounds that
  // they point to.
  // REQUIRES: all arguments but the options outlive this object, and a Version
  // that has `version` is pinned.
  DeltaStoreIterator(const DeltaVersion& version, const DeltaStore& store,
                     const InternalKeyComparator& icmp,
                     const ReadOptions& read_options, SequenceNumber read_seq);
  ~DeltaStoreIterator() override;

  // The next Seek*() uses read_seq as the reader's sequence number.
  void SetRangeDelReadSeqno(SequenceNumber read_seq) override;

  bool Valid() const override { return valid_; }
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(const Slice& target) override;
  void SeekForPrev(const Slice& target) override;
  void Next() override;
  void Prev() override;
  Slice key() const override { return merged_->key(); }
  Slice value() const override { return merged_->value(); }
  Status status() const override { return status_; }
  void SetPinnedItersMgr(PinnedIteratorsManager* pinned_iters_mgr) override {
    merged_->SetPinnedItersMgr(pinned_iters_mgr);
  }
  bool IsKeyPinned() const override { return merged_->IsKeyPinned(); }
  bool IsValuePinned() const override { return merged_->IsValuePinned(); }

 private:
  // Maximum number of invisible operands that are skipped one by one before a
  // seek.
  static constexpr int kMaxSteps = 8;

  void Reset();
  // Move merged_ forward or backward to the next visible operand, which may be
  // the current one.
  void FindForward();
  void FindBackward();
  // Sets user_key_ and anchor_ for the key. Returns false on failure.
  bool EnterKey(const Slice& user_key);
  // Sets target_ to the internal key, and returns it.
  Slice Target(const Slice& user_key, SequenceNumber seq, ValueType type);

  const DeltaVersion& version_;
  const DeltaStore& store_;
  const Comparator* const ucmp_;
  const ReadOptions read_options_;
  SequenceNumber read_seq_;

  std::unique_ptr<InternalIterator> merged_;
  bool valid_ = false;
  Status status_;

  // The key of which anchor_ is the anchor, if has_key_.
  bool has_key_ = false;
  IterKey user_key_;
  SequenceNumber anchor_ = 0;
  IterKey target_;
};

}  // namespace ROCKSDB_NAMESPACE
