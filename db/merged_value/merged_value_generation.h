//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>

#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// The generation of merged values (MergedValueCache) that belongs to a Version.
//
// Flushes and compactions normally change no merged value. Ingestions,
// deletions of files, and compaction filters that changed an entry do: the
// Version of such an edit begins a new generation. The generation belongs to
// the Version and not to the column family, because another thread may install
// the Version together with its own edit.
//
// Invariant: a reader of a Version at sequence number as_of() or later sees all
// entries that the edits of this generation and of earlier ones have added.
class MergedValueGeneration {
 public:
  uint64_t number() const { return number_; }
  // Only readers at this sequence number or a later one may fill cache entries.
  SequenceNumber as_of() const { return as_of_; }

  // Records that an edit of the Version changes merged values.
  // largest_seq: largest sequence number of the files that the edit adds, 0 if
  // it adds none.
  void OnChange(SequenceNumber largest_seq) {
    ++number_;
    as_of_ = std::max(as_of_, largest_seq);
  }

  // Records that the Version replaces that of `current`. To be called once,
  // after all calls of OnChange().
  void Follow(const MergedValueGeneration& current) {
    number_ += current.number_;
    as_of_ = std::max(as_of_, current.as_of_);
  }

 private:
  uint64_t number_ = 0;
  SequenceNumber as_of_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
