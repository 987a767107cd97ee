//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "db/merged_value/merged_value_flush.h"
#include "memory/arena.h"
#include "util/strata/pass_through_iterator.h"

namespace ROCKSDB_NAMESPACE {

// Wraps the iterator over the memtables of a flush and passes each entry to
// MergedValueFlush. It is below the CompactionIterator, whose output may lack
// sequence numbers or whole keys.
class MergedValueFlushIterator final : public PassThroughIterator {
 public:
  // Returns an iterator over `child`, or `child` itself if `flush` is nullptr.
  static InternalIterator* Wrap(MergedValueFlush* flush,
                                InternalIterator* child, Arena* arena) {
    return flush == nullptr
               ? child
               : new (arena->AllocateAligned(sizeof(MergedValueFlushIterator)))
                     MergedValueFlushIterator(flush, child);
  }

  void SeekToFirst() override {
    child()->SeekToFirst();
    flush_->OnBegin();
    Show();
  }
  void Seek(const Slice& target) override {
    child()->Seek(target);
    flush_->OnSkip();
    Show();
  }
  void Next() override {
    child()->Next();
    Show();
  }
  bool NextAndGetResult(IterateResult* result) override {
    const bool is_valid = child()->NextAndGetResult(result);
    Show();
    return is_valid;
  }

 private:
  MergedValueFlushIterator(MergedValueFlush* flush, InternalIterator* child)
      : PassThroughIterator(child, /*in_arena=*/true), flush_(flush) {}

  void Show() {
    if (child()->Valid()) {
      flush_->OnEntry(*child());
    } else if (child()->status().ok()) {
      flush_->OnEnd();
    }
  }

  MergedValueFlush* const flush_;
};

}  // namespace ROCKSDB_NAMESPACE
