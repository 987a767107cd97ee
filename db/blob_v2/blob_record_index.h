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

// The format of the record index of a blob file of version 2. The index lists
// the name, position and size of each record of the file, so that recovery and
// garbage collection need not read the records. See docs/formats.md for the
// bytes.
//
// The index is divided into blocks of kBlockSize bytes; only the last one may
// be shorter. A block lists as many records as fit. So
// 1. every block can be found and read even if others are damaged, and
// 2. a block can be restored, bit by bit, from the records that it lists.
// The records are contiguous, so only their sizes are stored. A block begins
// with the offset of its first record.
struct RecordIndexFormat {
  static constexpr size_t kBlockSize = 4096;
  static constexpr size_t kChecksumSize = 4;
  static constexpr size_t kHashSize = 12;
  // Hash, sequence number and size; the latter two take at least one byte each.
  static constexpr size_t kMinEntrySize = kHashSize + 2;
  static constexpr size_t kMaxBlockRecords = kBlockSize / kMinEntrySize;
  // Flag: all records of the block have the same birth, which is stored once.
  static constexpr unsigned char kOneBirth = 1;
};

// Builds the index of one file while its records are written. The encoded index
// also serves as the list from which the file's records are inserted into the
// address map (RecordIndexReader reads it from memory).
//
// Invariant: EncodedSize() is the exact size of the index that a call of
// Finish() would produce.
//
// Not thread-safe.
class RecordIndexBuilder {
 public:
  // In bytes. The index is kept in memory until the file is complete, so a file
  // is closed when its index reaches this size, after 3 to 4 million records.
  static constexpr uint64_t kMaxEncodedSize = 64 << 20;

  explicit RecordIndexBuilder(uint64_t first_offset = BlobHeaderV2::kSize)
      : end_offset_(first_offset) {}
  RecordIndexBuilder(const RecordIndexBuilder&) = delete;
  RecordIndexBuilder& operator=(const RecordIndexBuilder&) = delete;

  // Adds the record that follows the last one in the file. Returns
  // InvalidArgument and changes nothing if the record does not fit into an
  // address.
  // record_size: bytes, including the record's header.
  // REQUIRES: Finish() was not called; the record is not written yet.
  Status Add(const MapName& name, uint64_t record_size, bool direct);

  // True if the file should get no more records, because of the size of the
  // index or of the records.
  bool ShouldClose() const {
    return EncodedSize() >= kMaxEncodedSize ||
           end_offset_ > kMaxBlobRecordOffset;
  }

  uint64_t EncodedSize() const { return contents_.size() + block_size_; }
  uint64_t NumRecords() const { return num_records_; }
  // Returns the offset in bytes at which the last record ends.
  uint64_t EndOffset() const { return end_offset_; }

  // Completes the index.
  // REQUIRES: Finish() was not called.
  void Finish();

  // REQUIRES: Finish() was called.
  const std::string& contents() const { return contents_; }
  // Moves the index out, for a job that needs it longer than the builder.
  // REQUIRES: Finish() was called.
  std::string ReleaseContents() { return std::move(contents_); }
  // REQUIRES: Finish() was called.
  BlobFooterV2 footer() const;
  // Appends the index to the file, after the last record.
  // REQUIRES: Finish() was called; ReleaseContents() was not called.
  Status AppendTo(const IOOptions& options, WritableFileWriter* file) const;

 private:
  // Returns false and changes nothing if the block has no room.
  bool AddToBlock(const MapName& name, uint64_t size_and_mode);
  void CloseBlock(bool last);

  std::string contents_;  // complete blocks
  uint32_t checksum_ = 0;
  uint64_t index_size_ = 0;  // set by Finish()
  uint64_t num_records_ = 0;
  uint64_t end_offset_;
  bool finished_ = false;

  // The open block.
  size_t block_records_ = 0;
  size_t block_size_ = 0;  // size if it were closed as the last block
  uint64_t block_offset_ = 0;
  SequenceNumber last_seq_ = 0;
  uint64_t first_birth_ = 0;
  bool one_birth_ = true;
  std::string entries_;
  std::string births_;
};

// Reads an index, verifies all of it, and yields the records in file order. A
// damaged block in a file is restored from the records, whose headers have
// their own checksums. The checksum in the footer then shows whether the result
// equals the block that was written.
//
// Memory: A buffer of 256 KiB, and less than 100 KiB while a block is restored
// (plus a buffer for a record with a longer key). The sizes of allocations
// never depend on numbers in the index.
//
// Not thread-safe.
class RecordIndexReader {
 public:
  // Next() yields at most this many records at a time.
  static constexpr size_t kMaxRecords = 1024;

  // Reads an index that is in memory. Damage is reported as Corruption, since
  // the index cannot be restored without the file.
  // index_offset: bytes, position of the index in the file.
  // file_name: for messages.
  // REQUIRES: index outlives the reader.
  RecordIndexReader(const Slice& index, const BlobFooterV2& footer,
                    uint64_t index_offset, std::string file_name);

  // Reads the index of a file.
  // REQUIRES: layout was read from the file by BlobFileLayoutV2::Read(); file
  // outlives the reader.
  RecordIndexReader(const RandomAccessFileReader* file,
                    const IOOptions& options, const BlobFileLayoutV2& layout);

  RecordIndexReader(const RecordIndexReader&) = delete;
  RecordIndexReader& operator=(const RecordIndexReader&) = delete;

  // Replaces *records with the next records of the file. OK without records
  // means that the end was reached. Only then has the index as a whole been
  // verified, so the effects of using the earlier records must be harmless or
  // be undone if a later call fails. A status that is not OK is final, and
  // *records is empty then.
  Status Next(std::vector<AddressMap::Record>* records);

  // Makes Next() skip records that are damaged and cannot be restored, and
  // continue with the next block. Of a damaged block, Next() yields the records
  // before the first damaged one. A failed read still ends the reader. Once
  // records were skipped, the checksum of the whole index is not verified.
  // REQUIRES: the reader was created with a file; Next() was not called.
  void SkipLostBlocks() { skips_lost_ = true; }

  // Reads all of the index of a file and returns the first damage, also if it
  // could be restored from the records.
  // REQUIRES: layout was read from the file by BlobFileLayoutV2::Read().
  static Status Verify(const RandomAccessFileReader* file,
                       const IOOptions& options,
                       const BlobFileLayoutV2& layout);

  // Returns the number of restored blocks. For the log.
  uint64_t NumRestoredBlocks() const { return num_restored_; }
  // Returns the damage of the first restored block. For the log.
  const Status& FirstDamage() const { return first_damage_; }
  // Returns the first damage that was skipped, or OK if nothing was skipped.
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

  const RandomAccessFileReader* const file_;  // nullptr if index is in memory
  const IOOptions options_;
  const std::string file_name_;
  const BlobFooterV2 footer_;
  const uint64_t index_offset_;
  const uint64_t hash_seed_;

  std::unique_ptr<char[]> buffer_;
  Slice fetched_;          // whole blocks that were read from the file
  uint64_t position_ = 0;  // of the next block in the index, in bytes
  uint64_t next_record_ = BlobHeaderV2::kSize;
  uint64_t num_records_ = 0;
  uint32_t checksum_ = 0;
  uint64_t num_restored_ = 0;
  Status first_damage_;
  bool at_end_ = false;
  Status status_;
  bool skips_lost_ = false;
  Status first_loss_;
  // True if the previous block was skipped, so that the end of its records is
  // unknown.
  bool after_loss_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
