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
// Point lookups should call MayHaveKey() first: most keys have no operands, and
// the call needs no I/O, as filter and index stay in memory while the reader
// lives. Damaged data is reported as Corruption with the name of the file.
//
// Iterators and pinned operands must not outlive the reader. The reader may
// outlive the column family.
//
// Thread-safe.
class DeltaFileReader {
 public:
  // Opens the file under its own name. Also returns Corruption if the file is
  // not the one that is described, according to its size, its unique id
  // (verify_sst_unique_id_in_manifest) or its properties.
  static Status Open(const DeltaTableFactory& tables,
                     const ReadOptions& read_options,
                     const DeltaFileDescription& description,
                     std::unique_ptr<DeltaFileReader>* reader);
  // Opens a file that still has a temporary name.
  // REQUIRES: the file is not renamed while the reader exists.
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

  // Returns false only if the file has no point entry of the key. Returns true
  // if the filter is missing or cannot be read.
  bool MayHaveKey(const ReadOptions& read_options, const LookupKey& key) const;
  bool MayHaveKey(const ReadOptions& read_options,
                  const Slice& user_key) const {
    return MayHaveKey(read_options, LookupKey(user_key, kMaxSequenceNumber));
  }

  // Returns true if the filter could not be read when the file was opened, for
  // example because the block cache had no room. The reader then never has a
  // filter.
  bool LacksFilter() const;

  // Appends the operands of the key with sequence numbers up to that of `key`
  // (read_seq) to *operands, newest first. Does not ask the filter. On failure
  // *operands is unchanged. Returns Incomplete if I/O is needed and the read
  // tier does not allow it.
  // REQUIRES: the file is a file of operands.
  Status CollectOperands(const ReadOptions& read_options, const LookupKey& key,
                         DeltaOperands* operands) const;
  Status CollectOperands(const ReadOptions& read_options, const Slice& user_key,
                         SequenceNumber read_seq,
                         DeltaOperands* operands) const {
    return CollectOperands(read_options, LookupKey(user_key, read_seq),
                           operands);
  }

  // Sets *seq to the newest anchor of the key (point or range) with a sequence
  // number up to that of `key` (read_seq); 0 if there is none.
  // REQUIRES: the file is a file of anchors.
  Status NewestAnchor(const ReadOptions& read_options, const LookupKey& key,
                      SequenceNumber* seq) const;
  Status NewestAnchor(const ReadOptions& read_options, const Slice& user_key,
                      SequenceNumber read_seq, SequenceNumber* seq) const {
    return NewestAnchor(read_options, LookupKey(user_key, read_seq), seq);
  }

  // Begins to read the block that a lookup of the key reads first, unless it is
  // in the block cache. Returns false if no read was begun. Does not ask the
  // filter.
  // REQUIRES: *reads is destroyed before this object.
  bool BeginRead(const ReadOptions& read_options, const LookupKey& key,
                 OverlappedReads* reads) const;

  // Returns an iterator over all point entries. read_options must outlive the
  // iterator. An iterator in an arena is destroyed without delete.
  InternalIterator* NewIterator(const ReadOptions& read_options,
                                TableReaderCaller caller,
                                Arena* arena = nullptr,
                                size_t compaction_readahead_size = 0) const;

  // Returns the range anchors with sequence numbers up to read_seq, fragmented;
  // nullptr if the file has no range anchors.
  std::unique_ptr<FragmentedRangeTombstoneIterator> NewRangeAnchorIterator(
      SequenceNumber read_seq) const;

  // Returns approximately how many bytes of the file precede the entries of the
  // key. Only differences of results are meaningful, with the granularity of a
  // block. Ranges do not count.
  uint64_t ApproximateOffsetOf(
      const ReadOptions& read_options, const Slice& user_key,
      TableReaderCaller caller = TableReaderCaller::kCompaction) const;

  // Verifies the checksums of all blocks.
  // meta_blocks_only: leaves out the blocks with entries.
  Status VerifyChecksum(const ReadOptions& read_options,
                        bool meta_blocks_only = false) const;

  std::shared_ptr<const TableProperties> GetTableProperties() const;
  size_t ApproximateMemoryUsage() const;

  // To be called before the file is deleted: the file's blocks are evicted from
  // the block cache together with the reader, see uncache_aggressiveness.
  void MarkObsolete(uint32_t uncache_aggressiveness);

 private:
  DeltaFileReader(std::shared_ptr<const DeltaTableSettings> settings,
                  const DeltaFileDescription& description,
                  const std::string& file_name);

  Status OpenTable(const ReadOptions& read_options);
  Status CheckProperties() const;
  // Passes the entries of the key to the context, like those of an SST file.
  Status Get(const ReadOptions& read_options, const LookupKey& key,
             GetContext* get_context) const;
  // Returns s; if it is Corruption or NotSupported, with the name of the file.
  Status Named(const Status& s) const;
  Status Corrupt(const char* what) const;

  // The table refers to these members.
  const std::shared_ptr<const DeltaTableSettings> settings_;
  const DeltaFileDescription description_;
  const std::string file_name_;
  std::unique_ptr<TableReader> table_;
  // The table's file; nullptr: reads cannot be begun ahead of time.
  const OverlappedReadFile* file_ = nullptr;
};

}  // namespace ROCKSDB_NAMESPACE
