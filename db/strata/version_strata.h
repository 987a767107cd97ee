//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "db/merged_value/merged_value_generation.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"
#include "table/multiget_context.h"

namespace ROCKSDB_NAMESPACE {

class Arena;
class BlobFileMetaData;
class GetContext;
class LookupKey;
class PinnableSlice;
class PinnableWideColumns;
class PointRead;
class Version;
struct FdWithKeyRange;
struct ReadOptions;
struct SizeApproximationOptions;

// What Strata adds to a Version, which has one as a member: its part of reads
// in the address map and in delta files, and the generation of its merged
// values.
//
// Thread-safety: that of Version.
class VersionStrata {
 public:
  using MultiGetRange = MultiGetContext::Range;

  // REQUIRES: version outlives this object, which is a member of it.
  explicit VersionStrata(Version* version) : version_(version) {}
  VersionStrata(const VersionStrata&) = delete;
  VersionStrata& operator=(const VersionStrata&) = delete;

  // ---- Point reads.

  // The end of Version::Get(), after no file has decided. Returns false if
  // Get() ends as it does without a PointRead.
  // resolve_blob: is_blob_index belongs to Get(), which returns values only.
  bool FinishPointRead(const ReadOptions& read_options, PointRead* point_read,
                       GetContext* get_context, bool resolve_blob,
                       const bool& is_blob_index, PinnableSlice* value,
                       PinnableWideColumns* columns, Status* status,
                       bool* key_exists) const;
  // The same in MultiGet(), for each key that is left in the range: the part of
  // the map, then the part of delta files.
  // before_files: only for keys that no file can have.
  // blob_contexts: Version's BlobReadContexts by file number; gets the values
  //     that are in blob files.
  template <typename BlobContexts>
  Status FinishMapReads(const ReadOptions& read_options, bool before_files,
                        MultiGetRange* range,
                        BlobContexts* blob_contexts) const;
  static Status FinishDeltaReads(const ReadOptions& read_options,
                                 MultiGetRange* range);
  // Skips the keys of the range that the file cannot have.
  static void SkipDirectKeys(const FdWithKeyRange& file, MultiGetRange* range);

  // ---- Delta files.

  // Sets *seq to the sequence number of the newest operand of the key in delta
  // files, as a reader at the key's sequence number sees it; 0 if there is
  // none.
  Status NewestDelta(const ReadOptions& read_options, const LookupKey& key,
                     SequenceNumber* seq) const;
  // Returns an iterator over the operands in delta files, as a reader at
  // read_seq sees them: a child of a merging iterator, between memtables and
  // SST files, without range tombstones. Returns nullptr if there are no delta
  // files.
  InternalIterator* NewDeltaIterator(const ReadOptions& read_options,
                                     SequenceNumber read_seq,
                                     Arena* arena) const;
  // Returns about how many bytes of delta files the keys from `start` on and
  // before `limit` take up, see DeltaRangeSize.
  // start, limit: user keys.
  // REQUIRES: there are delta files; DB mutex not held.
  uint64_t DeltaBytes(const SizeApproximationOptions& options,
                      const ReadOptions& read_options, const Slice& start,
                      const Slice& limit) const;

  // ---- The rest.

  // Returns true unless the file belongs to an address map that does not need
  // it, see AddressMapStore::Keeps().
  bool KeepsBlobFile(const BlobFileMetaData& meta) const;

  // The generation of the values in the MergedValueCache.
  const MergedValueGeneration& merged_values() const { return merged_values_; }
  // REQUIRES: the Version was not appended.
  MergedValueGeneration* mutable_merged_values() { return &merged_values_; }

 private:
  Version* const version_;
  MergedValueGeneration merged_values_;
};

}  // namespace ROCKSDB_NAMESPACE
