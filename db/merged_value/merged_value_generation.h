//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// The generation of a Version of a column family: it tells whether a result of
// one Version (a merged value, a list of operands, a fold) is still right for
// another one.
//
// Flushes, compactions and the jobs of delta files normally change the value of
// no key. Some edits do: ingestions and imports, deletions of files, and any of
// these jobs in which a compaction filter has changed an entry
// (VersionEdit::ChangesMergedValues()). Each of them begins a new generation.
// The generation is part of the Version, and not of the column family, as a
// reader has to compare with the Version that it reads, and as the thread that
// installs the Version may have put the edits of other threads into it, too.
//
// The life of the object is that of its Version:
//   made -> OnChange() for each such edit -> Follow() -> the Version is current
// Until then the Version is known to the thread that writes its edits to the
// MANIFEST only. If that fails, the Version is deleted, and the next one may
// get its number.
//
// Invariants, for the Versions of a column family that have been current since
// the DB was opened:
// 1. The numbers never decrease from one Version to the next. Two Versions have
//    the same number iff no edit between them changes merged values. Hence they
//    differ only in entries that flushes or folds have added, in hidden or
//    combined entries that jobs have dropped, and in how entries are stored.
// 2. Versions with the same number have the same as_of(), which never decreases
//    from one Version to the next, either.
// 3. as_of() is not below the sequence number of any entry that an edit has
//    added with which this generation or an earlier one began. Hence each
//    reader of the Version at as_of() or later sees all of these entries. An
//    earlier reader may miss some, so its result must not be cached: it is not
//    right for all readers of the generation.
//
// Nothing of it is on disk: the first Version after an open has the number 0,
// and no cache outlives the DB.
//
// Not thread-safe while the Version is made. It does not change once the
// Version is current, so any thread that has a reference to the Version may
// then call the const functions, without the DB mutex.
class MergedValueGeneration {
 public:
  // Returns the number of changes since the DB was opened.
  uint64_t number() const { return number_; }
  // Returns the sequence number from which on a reader may cache what it
  // computes from the Version.
  SequenceNumber as_of() const { return as_of_; }

  // Records that an edit of the Version changes merged values.
  // largest_seq: the largest sequence number of the entries that the edit adds
  // to SST files and delta files, 0 if it adds none.
  // REQUIRES: DB mutex held; the Version is not current yet, and Follow() was
  // not called.
  void OnChange(SequenceNumber largest_seq) {
    ++number_;
    as_of_ = std::max(as_of_, largest_seq);
  }

  // Records that the Version takes the place of the one with `current`, whose
  // generation goes on unless OnChange() was called.
  // REQUIRES: DB mutex held; called at most once, after all calls of OnChange()
  // and just before the Version becomes current; the other Version is the
  // current one of the same column family.
  void Follow(const MergedValueGeneration& current) {
    number_ += current.number_;
    as_of_ = std::max(as_of_, current.as_of_);
  }

 private:
  // Before Follow(): the number of edits of this Version that change values.
  uint64_t number_ = 0;
  SequenceNumber as_of_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
