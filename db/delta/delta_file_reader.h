//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "db/delta/delta_file_description.h"
#include "db/delta/delta_operands.h"
#include "db/delta/delta_table_factory.h"
#include "db/lookup_key.h"
#include "db/range_tombstone_fragmenter.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/table_reader_caller.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class Arena;
class GetContext;
class OverlappedReadFile;
class OverlappedReads;
class TableReader;

// Reads one delta file: see docs/formats.md.
//
// Of a point lookup first ask MayHaveKey(): most keys have no operands, and it
// needs no I/O, as filter and index stay in memory while the reader lives. What
// is damaged is Corruption and names the file.
//
// What it gives out must not outlive it: iterators, and pinned operands. It may
// outlive the column family.
//
// Thread-safe.
class DeltaFileReader {
 public:
  // Corruption also if the file is not the one that is described: by its size,
  // its unique id (verify_sst_unique_id_in_manifest) or what it says of itself.
  static Status Open(const DeltaTableFactory& tables,
                     const ReadOptions& read_options,
                     const DeltaFileDescription& description,
                     std::unique_ptr<DeltaFileReader>* reader);
  // The same of a file that has another name than it will have. REQUIRES: it
  // keeps that name while the reader lives.
  static Status OpenAs(const std::string& file_name,
                       const DeltaTableFactory& tables,
                       const ReadOptions& read_options,
                       const DeltaFileDescription& description,
                       std::unique_ptr<DeltaFileReader>* reader);
  ~DeltaFileReader();
  DeltaFileReader(const DeltaFileReader&) = delete;
  DeltaFileReader& operator=(const DeltaFileReader&) = delete;

  const DeltaFileDescription& description() const { return description_; }
  const std::string& file_name() const { return file_name_; }

  // False only if the file has no entry of the key (ranges do not count). True
  // also if the filter is missing or cannot be read.
  bool MayHaveKey(const ReadOptions& read_options, const LookupKey& key) const;
  bool MayHaveKey(const ReadOptions& read_options,
                  const Slice& user_key) const {
    return MayHaveKey(read_options, LookupKey(user_key, kMaxSequenceNumber));
  }

  // Its filter could not be read when it was opened, for want of room in the
  // block cache maybe. So there is none while this lives.
  bool LacksFilter() const;

  // Adds the operands of the key with a sequence number of that of `key`
  // (read_seq) or below, newest first. Does not ask the filter. On failure
  // *operands is what it was: Incomplete if that needs I/O and the read tier
  // does not allow it.
  // REQUIRES: a file of operands.
  Status CollectOperands(const ReadOptions& read_options, const LookupKey& key,
                         DeltaOperands* operands) const;
  Status CollectOperands(const ReadOptions& read_options, const Slice& user_key,
                         SequenceNumber read_seq,
                         DeltaOperands* operands) const {
    return CollectOperands(read_options, LookupKey(user_key, read_seq),
                           operands);
  }

  // The newest anchor of the key, of ranges too, with a sequence number of that
  // of `key` (read_seq) or below; 0: there is none.
  // REQUIRES: a file of anchors.
  Status NewestAnchor(const ReadOptions& read_options, const LookupKey& key,
                      SequenceNumber* seq) const;
  Status NewestAnchor(const ReadOptions& read_options, const Slice& user_key,
                      SequenceNumber read_seq, SequenceNumber* seq) const {
    return NewestAnchor(read_options, LookupKey(user_key, read_seq), seq);
  }

  // Begins to read what a lookup of the key reads first, if that is not in the
  // block cache. False: nothing was begun. Does not ask the filter.
  // REQUIRES: *reads is gone before this is.
  bool BeginRead(const ReadOptions& read_options, const LookupKey& key,
                 OverlappedReads* reads) const;

  // All entries but ranges. read_options has to outlive the iterator. With an
  // arena, destroy it without delete.
  InternalIterator* NewIterator(const ReadOptions& read_options,
                                TableReaderCaller caller,
                                Arena* arena = nullptr,
                                size_t compaction_readahead_size = 0) const;

  // The range anchors with a sequence number of read_seq or below, fragmented;
  // nullptr: the file has none.
  std::unique_ptr<FragmentedRangeTombstoneIterator> NewRangeAnchorIterator(
      SequenceNumber read_seq) const;

  // About how many bytes of the file come before the entries of the key. To be
  // compared with each other: a block is the unit. Ranges do not count.
  uint64_t ApproximateOffsetOf(const ReadOptions& read_options,
                               const Slice& user_key) const;

  // Of every block.
  Status VerifyChecksum(const ReadOptions& read_options) const;

  std::shared_ptr<const TableProperties> GetTableProperties() const;
  size_t ApproximateMemoryUsage() const;

  // The file is going to be deleted: what the block cache has of it leaves with
  // the reader, see uncache_aggressiveness.
  void MarkObsolete(uint32_t uncache_aggressiveness);

 private:
  DeltaFileReader(std::shared_ptr<const DeltaTableSettings> settings,
                  const DeltaFileDescription& description,
                  const std::string& file_name);

  Status OpenTable(const ReadOptions& read_options);
  Status CheckProperties() const;
  // Shows the context the entries of the key, as of an SST file.
  Status Get(const ReadOptions& read_options, const LookupKey& key,
             GetContext* get_context) const;
  // Sees to it that a failure names the file.
  Status Named(const Status& s) const;
  Status Corrupt(const char* what) const;

  // The table has references to these.
  const std::shared_ptr<const DeltaTableSettings> settings_;
  const DeltaFileDescription description_;
  const std::string file_name_;
  std::unique_ptr<TableReader> table_;
  // The table's. nullptr: reads cannot be begun ahead of time.
  const OverlappedReadFile* file_ = nullptr;
};

}  // namespace ROCKSDB_NAMESPACE
