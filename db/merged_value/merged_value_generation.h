//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>

#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// Part of a Version: which merged values (MergedValueCache) belong to it.
//
// What flushes and compactions do to the files of a column family changes no
// merged value. Ingestion, deletion of files, and compaction filters that
// changed something do: the Version of such an edit begins a new generation. It
// belongs to the Version, not to the column family, as another thread may
// install the Version with its own edit.
//
// Invariant: a reader of a Version at as_of or later sees all that the edits of
// its generation and of those before have brought in.
class MergedValueGeneration {
 public:
  uint64_t number() const { return number_; }
  // Entries may be filled by readers of this sequence number or a later one.
  SequenceNumber as_of() const { return as_of_; }

  // The Version gets an edit that changes merged values. largest_seq: of the
  // files that come in with it, 0 if there are none.
  void OnChange(SequenceNumber largest_seq) {
    ++number_;
    as_of_ = std::max(as_of_, largest_seq);
  }

  // The Version takes the place of another one: to be called once, after all
  // OnChange().
  void Follow(const MergedValueGeneration& current) {
    number_ += current.number_;
    as_of_ = std::max(as_of_, current.as_of_);
  }

 private:
  uint64_t number_ = 0;
  SequenceNumber as_of_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
