//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class IterKey;
class ReadCallback;
class UserComparatorWrapper;
struct ImmutableOptions;
struct MutableCFOptions;

// min_tombstones_for_range_conversion: an iterator at sequence number s that
// meets a run of point tombstones writes a range tombstone [first, end) at s
// into the memtable. It is meant to hide nothing but what the point tombstones
// hide. But readers do not look below a range tombstone: it hides all of
// [first, end) in older memtables and in files, whatever its sequence number
// is, and in its own memtable all that has a sequence number below s. So the
// iterator must have seen
//  - all that is in the range, in memtables and in files,
//  - up to s, with nothing still to be written at or below s, and
//  - with nothing to be added below the memtable later.
// These functions tell which iterators have. What ingestion adds while an
// iterator exists is the matter of the memtable's ingest barriers.
//
// All functions are thread-safe.
class RangeConversion {
 public:
  // Returns false if the iterator may never convert. cfd may be null.
  static bool IsPossible(const ReadOptions& read_options, bool is_total_order,
                         const ImmutableOptions& ioptions,
                         const ReadCallback* read_callback,
                         ColumnFamilyData* cfd);

  // Returns false if filters may hide keys from the iterator that do not have
  // the prefix of its seek key. A change of direction and a skip over many
  // versions seek with the current key, whatever the user's key was.
  static bool SeesAllPrefixes(const ReadOptions& read_options,
                              bool is_total_order,
                              const MutableCFOptions& cf_options);

  // Prepare() leaves out memtables and files that no scan range overlaps.
  // Returns true if the iterator sees all keys in [first, end) nevertheless.
  // num_started is the number of ranges whose start was sought. The keys have
  // timestamps if the column family has.
  static bool IsInScanRange(const MultiScanArgs& scans, size_t num_started,
                            const UserComparatorWrapper& ucmp,
                            const Slice& first, const Slice& end);

  // The iterator's sequence number may be that of an ingested file, which may
  // have a range tombstone from the same key on, and merging iterators rely on
  // different sequence numbers. So iterators do not convert before the first
  // write after an ingestion. This tells the memtable after a recovery if the
  // last sequence number is that of a file with range tombstones.
  // REQUIRES: DB mutex held
  static void OnRecovered(ColumnFamilyData* cfd, SequenceNumber last_sequence);

  // A reader at a timestamp between two tombstones of a run sees what the newer
  // one deletes. So the range tombstone has the newest timestamp of the run.
  // Makes *newest the newer one of the two; it is empty before the first.
  static void AddTimestamp(const UserComparatorWrapper& ucmp,
                           const Slice& timestamp, std::string* newest);
  // Replaces the timestamp of the user key. Both keys of a range tombstone have
  // to have the timestamp: readers take that of the end.
  static void SetTimestamp(const Slice& timestamp, IterKey* user_key);
};

}  // namespace ROCKSDB_NAMESPACE
