//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

// Forwards every call to its child. It is a base class for iterators that
// change a single aspect.
class PassThroughIterator : public InternalIterator {
 public:
  // Takes ownership of the child. in_arena: whether the child's memory belongs
  // to an arena.
  PassThroughIterator(InternalIterator* child, bool in_arena)
      : child_(child), in_arena_(in_arena) {}
  ~PassThroughIterator() override {
    if (in_arena_) {
      child_->~InternalIteratorBase<Slice>();
    } else {
      delete child_;
    }
  }

  void SetRangeDelReadSeqno(SequenceNumber read_seqno) override {
    child_->SetRangeDelReadSeqno(read_seqno);
  }
  bool Valid() const override { return child_->Valid(); }
  void SeekToFirst() override { child_->SeekToFirst(); }
  void SeekToLast() override { child_->SeekToLast(); }
  void Seek(const Slice& target) override { child_->Seek(target); }
  void SeekForPrev(const Slice& target) override {
    child_->SeekForPrev(target);
  }
  void Next() override { child_->Next(); }
  bool NextAndGetResult(IterateResult* result) override {
    return child_->NextAndGetResult(result);
  }
  void Prev() override { child_->Prev(); }
  Slice key() const override { return child_->key(); }
  uint64_t write_unix_time() const override {
    return child_->write_unix_time();
  }
  Slice user_key() const override { return child_->user_key(); }
  Slice value() const override { return child_->value(); }
  Status status() const override { return child_->status(); }
  bool PrepareValue() override { return child_->PrepareValue(); }
  bool MayBeOutOfLowerBound() override {
    return child_->MayBeOutOfLowerBound();
  }
  IterBoundCheck UpperBoundCheckResult() override {
    return child_->UpperBoundCheckResult();
  }
  void SetPinnedItersMgr(PinnedIteratorsManager* pinned_iters_mgr) override {
    child_->SetPinnedItersMgr(pinned_iters_mgr);
  }
  bool IsKeyPinned() const override { return child_->IsKeyPinned(); }
  bool IsValuePinned() const override { return child_->IsValuePinned(); }
  Status GetProperty(std::string name, std::string* value) override {
    return child_->GetProperty(std::move(name), value);
  }
  void GetReadaheadState(ReadaheadFileInfo* info) override {
    child_->GetReadaheadState(info);
  }
  void SetReadaheadState(ReadaheadFileInfo* info) override {
    child_->SetReadaheadState(info);
  }
  bool IsDeleteRangeSentinelKey() const override {
    return child_->IsDeleteRangeSentinelKey();
  }
  void Prepare(const MultiScanArgs* scan_opts) override {
    child_->Prepare(scan_opts);
  }
  const Version* current_version() const override {
    return child_->current_version();
  }

 protected:
  InternalIterator* child() const { return child_; }

 private:
  InternalIterator* const child_;
  const bool in_arena_;
};

}  // namespace ROCKSDB_NAMESPACE
