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

// The operands of a DeltaVersion as a reader at a sequence number r sees them:
// of each key those in (a, r], where a is the key's newest anchor up to r. What
// DeltaRead finds of one key, this finds of all, in the order of internal keys.
//
// As a child of a merging iterator it comes after the memtables and before the
// SST files. Tombstones of memtables hide what it has, rightly, as all of it is
// older. Those of SST files do not, as the merging iterator does not look at
// sequence numbers: it hides that by itself, by range anchors. For the same
// reason it must not hand range anchors to the merging iterator, which would
// hide newer entries of SST files. Range anchors count with
// ignore_range_deletions, too: bases that they tell of may be gone for good, as
// after DeleteFilesInRanges().
//
// Anchors are looked up key by key, and only of keys that have operands. They
// are never returned: one would be a second entry at the position of its base.
//
// Not thread-safe.
class DeltaStoreIterator final : public InternalIterator {
 public:
  // Does not open files yet. The options are copied; bounds are not.
  // REQUIRES: all but the options outlive it, and a Version that has `version`
  // is pinned.
  DeltaStoreIterator(const DeltaVersion& version, const DeltaStore& store,
                     const InternalKeyComparator& icmp,
                     const ReadOptions& read_options, SequenceNumber read_seq);
  ~DeltaStoreIterator() override;

  // The next Seek*() sees the operands as they are at read_seq.
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
  // So many operands that are not visible are passed one by one.
  static constexpr int kMaxSteps = 8;

  void Reset();
  // From where merged_ is on, or back: to an operand that is visible.
  void FindForward();
  void FindBackward();
  // Makes user_key_ and anchor_ those of the key. False on failure.
  bool EnterKey(const Slice& user_key);
  // What target_ is set to.
  Slice Target(const Slice& user_key, SequenceNumber seq, ValueType type);

  const DeltaVersion& version_;
  const DeltaStore& store_;
  const Comparator* const ucmp_;
  const ReadOptions read_options_;
  SequenceNumber read_seq_;

  std::unique_ptr<InternalIterator> merged_;
  bool valid_ = false;
  Status status_;

  // The key whose anchor is known; not if !has_key_.
  bool has_key_ = false;
  IterKey user_key_;
  SequenceNumber anchor_ = 0;
  IterKey target_;
};

}  // namespace ROCKSDB_NAMESPACE
