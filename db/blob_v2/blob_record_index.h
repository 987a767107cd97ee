//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/blob_v2/blob_format_v2.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class RandomAccessFileReader;
class WritableFileWriter;

// The record index of a blob file of version 2: the name, place and size of
// each of its records, so that recovery and garbage collection need not read
// the records. See docs/formats.md for the bytes.
//
// The index is cut into blocks of kBlockSize bytes; only the last one may be
// shorter. A block lists as many records as fit. So
// * every block can be found and read while others are damaged, and
// * a block can be restored, bit by bit, from the records that it lists.
// Records lie one after another without gaps, so of each only the size is
// stored; a block begins with the offset of its first record.
struct RecordIndexFormat {
  static constexpr size_t kBlockSize = 4096;
  static constexpr size_t kChecksumSize = 4;
  static constexpr size_t kHashSize = 12;
  // Hash, sequence number, size: one byte at least for each of the latter two.
  static constexpr size_t kMinEntrySize = kHashSize + 2;
  static constexpr size_t kMaxBlockRecords = kBlockSize / kMinEntrySize;
  // All records of the block have the same birth, which is stored once.
  static constexpr unsigned char kOneBirth = 1;
};

// Builds the index of one file while its records are written. What it has
// encoded is also the list from which the file's records go into the address
// map (RecordIndexReader reads it from memory).
//
// Invariant: EncodedSize() is the exact size of the index that Finish() would
// give now.
//
// Not thread-safe.
class RecordIndexBuilder {
 public:
  // The index is in memory until the file is complete, so a file is closed
  // when its index has this size: 3 to 4 million records.
  static constexpr uint64_t kMaxEncodedSize = 64 << 20;

  explicit RecordIndexBuilder(uint64_t first_offset = BlobHeaderV2::kSize)
      : end_offset_(first_offset) {}
  RecordIndexBuilder(const RecordIndexBuilder&) = delete;
  RecordIndexBuilder& operator=(const RecordIndexBuilder&) = delete;

  // Adds the record that follows the last one in the file. record_size
  // includes its header. InvalidArgument, and no change, if an address cannot
  // stand for the record: call it before the record is written.
  // REQUIRES: Finish() was not called.
  Status Add(const MapName& name, uint64_t record_size, bool direct);

  // True if the file should get no more records, because of the size of the
  // index or of the records.
  bool ShouldClose() const {
    return EncodedSize() >= kMaxEncodedSize ||
           end_offset_ > kMaxBlobRecordOffset;
  }

  uint64_t EncodedSize() const { return contents_.size() + block_size_; }
  uint64_t NumRecords() const { return num_records_; }
  // Where the last record ends.
  uint64_t EndOffset() const { return end_offset_; }

  // Completes the index.
  // REQUIRES: Finish() was not called.
  void Finish();

  // REQUIRES of the following: Finish() was called.
  const std::string& contents() const { return contents_; }
  // For a job that needs the index longer than the builder.
  std::string ReleaseContents() { return std::move(contents_); }
  BlobFooterV2 footer() const;
  // Appends the index to the file, behind the last record.
  // REQUIRES: ReleaseContents() was not called.
  Status AppendTo(const IOOptions& options, WritableFileWriter* file) const;

 private:
  // False, and no change, if the block has no room.
  bool AddToBlock(const MapName& name, uint64_t size_and_mode);
  void CloseBlock(bool last);

  std::string contents_;  // complete blocks
  uint32_t checksum_ = 0;
  uint64_t index_size_ = 0;  // once finished
  uint64_t num_records_ = 0;
  uint64_t end_offset_;
  bool finished_ = false;

  // The open block.
  size_t block_records_ = 0;
  size_t block_size_ = 0;  // if it were closed now, as the last one
  uint64_t block_offset_ = 0;
  SequenceNumber last_seq_ = 0;
  uint64_t first_birth_ = 0;
  bool one_birth_ = true;
  std::string entries_;
  std::string births_;
};

// Reads an index, checks all of it, and yields the records in the order of
// the file. A damaged block of a file is restored from the records, whose
// headers have checksums of their own; the checksum in the footer then tells
// whether the result is what was written.
//
// Memory: a buffer of 256 KiB, and less than 100 KiB while a block is
// restored (a record with a longer key takes a buffer for that key). Numbers
// in the index are never used to allocate memory.
//
// Not thread-safe.
class RecordIndexReader {
 public:
  // Next yields at most this many records at a time.
  static constexpr size_t kMaxRecords = 1024;

  // Reads an index that is in memory. Damage is Corruption, there is nothing
  // to restore it from. file_name is for messages.
  // REQUIRES: index outlives the reader.
  RecordIndexReader(const Slice& index, const BlobFooterV2& footer,
                    uint64_t index_offset, std::string file_name);

  // Reads the index of a file.
  // REQUIRES: layout is what BlobFileLayoutV2::Read said of the file; file
  // outlives the reader.
  RecordIndexReader(const RandomAccessFileReader* file,
                    const IOOptions& options, const BlobFileLayoutV2& layout);

  RecordIndexReader(const RecordIndexReader&) = delete;
  RecordIndexReader& operator=(const RecordIndexReader&) = delete;

  // Replaces *records by the next ones of the file. OK without records is the
  // end, and only then is the index as a whole verified: what is done with the
  // records before must be harmless, or undone, if a later call fails. A
  // status that is not OK is final and comes without records.
  Status Next(std::vector<AddressMap::Record>* records);

  // Next() then leaves out what is damaged and cannot be restored, and goes on
  // with the next block. Of a damaged block it yields the records before the
  // first damaged one. A read that fails still ends the reader. REQUIRES: the
  // reader was made with a file; Next() was not called.
  void SkipLostBlocks() { skips_lost_ = true; }

  // How many blocks were restored, and what was wrong with the first one. For
  // the log.
  uint64_t NumRestoredBlocks() const { return num_restored_; }
  const Status& FirstDamage() const { return first_damage_; }
  // OK if nothing was left out; else the first damage that was skipped.
  const Status& FirstLoss() const { return first_loss_; }

 private:
  Status ReadBlock(std::vector<AddressMap::Record>* records);
  Status FetchBlock(Slice* block);
  const char* DecodeBlock(const Slice& block,
                          std::vector<AddressMap::Record>* records,
                          uint64_t* end_offset) const;
  Status RestoreBlock(size_t block_size,
                      std::vector<AddressMap::Record>* records,
                      uint64_t* end_offset, char* checksum) const;
  Status CheckEnd() const;
  void SkipBlock(size_t block_size, const Status& loss);
  Status Corrupt(const Slice& what) const;

  const RandomAccessFileReader* const file_;  // nullptr: index in memory
  const IOOptions options_;
  const std::string file_name_;
  const BlobFooterV2 footer_;
  const uint64_t index_offset_;
  const uint64_t hash_seed_;

  std::unique_ptr<char[]> buffer_;
  Slice fetched_;          // whole blocks, read from the file already
  uint64_t position_ = 0;  // in the index, of the next block
  uint64_t next_record_ = BlobHeaderV2::kSize;
  uint64_t num_records_ = 0;
  uint32_t checksum_ = 0;
  uint64_t num_restored_ = 0;
  Status first_damage_;
  bool at_end_ = false;
  Status status_;
  bool skips_lost_ = false;
  Status first_loss_;
  // The block before was left out: where its records end is not known.
  bool after_loss_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
