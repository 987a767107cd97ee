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

// Looks up many keys in delta files, in ascending order, as whoever goes
// through a table does. There is one iterator for each file whose range the
// keys are in, and it goes forward only: a block is read once, and it takes the
// memory of a block for each of these files.
//
// Ranges do not count, only entries of keys.
//
// Not thread-safe.
class DeltaAscendingLookup {
 public:
  // readers: of one column family, in any order. They outlive this object, and
  // so does the comparator.
  DeltaAscendingLookup(const InternalKeyComparator* icmp,
                       std::vector<const DeltaFileReader*> readers);
  ~DeltaAscendingLookup();
  DeltaAscendingLookup(const DeltaAscendingLookup&) = delete;
  DeltaAscendingLookup& operator=(const DeltaAscendingLookup&) = delete;

  // The newest entry of the key with that sequence number or a smaller one; 0:
  // there is none. After a failure nothing may follow.
  // REQUIRES: the key is larger than those of all calls before.
  Status FindNewest(const Slice& user_key, SequenceNumber seq,
                    SequenceNumber* newest);

  // No file has an entry of a key that is larger than those that were looked up
  // and smaller than *user_key, which is valid until the next call of
  // FindNewest(). False: there is no such key, or it is not known.
  bool GetNextKey(Slice* user_key) const;
  // No file has an entry of a larger key.
  bool IsAtEnd() const {
    return cursors_.empty() && next_reader_ == readers_.size();
  }

 private:
  struct Cursor {
    const DeltaFileReader* reader;
    std::unique_ptr<InternalIterator> iter;
  };

  // To the first entry at or behind the key. False: the file has none of the
  // key, and it was not worth going that far.
  bool Advance(const LookupKey& key, Cursor* cursor) const;
  void NoteNextKey(const Slice& user_key);

  const InternalKeyComparator* const icmp_;
  const Comparator* const ucmp_;
  // The iterators have references to it.
  ReadOptions read_options_;
  // By their smallest keys.
  std::vector<const DeltaFileReader*> readers_;
  // The first one that all keys so far were before.
  size_t next_reader_ = 0;
  std::vector<Cursor> cursors_;
  bool has_next_key_ = false;
  Slice next_key_;  // a cursor's, or a reader's
};

}  // namespace ROCKSDB_NAMESPACE
