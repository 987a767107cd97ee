//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>

#include "db/dbformat.h"
#include "db/merged_value/merged_value_cache.h"
#include "memory/arena.h"
#include "table/pass_through_iterator.h"

namespace ROCKSDB_NAMESPACE {

// Stands under the iterator of a flush and notes each entry that comes by, as
// what the flush makes of them may hide sequence numbers, or whole keys.
class FlushedKeysIterator final : public PassThroughIterator {
 public:
  // flushed: may be nullptr, then the child is what is returned.
  static InternalIterator* Wrap(MergedValueCache::Flushed* flushed,
                                InternalIterator* child, Arena* arena) {
    return flushed == nullptr
               ? child
               : new (arena->AllocateAligned(sizeof(FlushedKeysIterator)))
                     FlushedKeysIterator(flushed, child);
  }

  void SeekToFirst() override {
    child()->SeekToFirst();
    Note();
  }
  void Seek(const Slice& target) override {
    child()->Seek(target);
    Note();
  }
  void Next() override {
    child()->Next();
    Note();
  }
  bool NextAndGetResult(IterateResult* result) override {
    const bool is_valid = child()->NextAndGetResult(result);
    Note();
    return is_valid;
  }

 private:
  FlushedKeysIterator(MergedValueCache::Flushed* flushed,
                      InternalIterator* child)
      : PassThroughIterator(child, /*in_arena=*/true), flushed_(flushed) {}

  void Note() {
    if (child()->Valid()) {
      const Slice key = child()->key();
      flushed_->OnKey(ExtractUserKey(key), GetInternalKeySeqno(key));
    }
  }

  MergedValueCache::Flushed* const flushed_;
};

}  // namespace ROCKSDB_NAMESPACE
