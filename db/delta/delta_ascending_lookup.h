//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "db/dbformat.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class DeltaFileReader;
class LookupKey;

// Looks up many keys in delta files in ascending order, for callers that scan a
// table. There is one iterator for each file whose range has the current key,
// and it moves forward only: a block is read once, and memory is needed for one
// block of each of these files.
//
// Only point entries count, ranges do not.
//
// Not thread-safe.
class DeltaAscendingLookup {
 public:
  // readers: readers of one column family, in any order.
  // REQUIRES: the readers and the comparator outlive this object.
  DeltaAscendingLookup(const InternalKeyComparator* icmp,
                       std::vector<const DeltaFileReader*> readers);
  ~DeltaAscendingLookup();
  DeltaAscendingLookup(const DeltaAscendingLookup&) = delete;
  DeltaAscendingLookup& operator=(const DeltaAscendingLookup&) = delete;

  // Sets *newest to the sequence number of the key's newest entry that is not
  // above seq; 0 if there is none. After a failure no other function may be
  // called.
  // REQUIRES: the key is larger than those of all earlier calls.
  Status FindNewest(const Slice& user_key, SequenceNumber seq,
                    SequenceNumber* newest);

  // Returns a lower bound of the keys that follow: no file has an entry of a
  // key between the last key that was looked up and *user_key, which is valid
  // until the next FindNewest(). Returns false if there is no such key, or if
  // it is not known.
  bool GetNextKey(Slice* user_key) const;
  // Returns true if no file has an entry of a larger key.
  bool IsAtEnd() const {
    return cursors_.empty() && next_reader_ == readers_.size();
  }

 private:
  struct Cursor {
    const DeltaFileReader* reader;
    std::unique_ptr<InternalIterator> iter;
  };

  // Moves the cursor to the first entry at or after the key. Returns false if
  // the file has no entry of the key and moving the cursor was not worth the
  // cost.
  bool Advance(const LookupKey& key, Cursor* cursor) const;
  void NoteNextKey(const Slice& user_key);

  const InternalKeyComparator* const icmp_;
  const Comparator* const ucmp_;
  // The iterators refer to it.
  ReadOptions read_options_;
  // Sorted by smallest key.
  std::vector<const DeltaFileReader*> readers_;
  // Index of the first reader whose range is after all keys so far.
  size_t next_reader_ = 0;
  std::vector<Cursor> cursors_;
  bool has_next_key_ = false;
  Slice next_key_;  // points into a cursor or a reader
};

}  // namespace ROCKSDB_NAMESPACE
