//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/mapped_blob_writer.h"
#include "db/blob/blob_file_addition.h"
#include "db/blob_gc/blob_copy_job.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/blob_heat/hot_mark.h"
#include "db/blob_v2/blob_format_v2.h"
#include "rocksdb/compression_type.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileBuilder;
class Decompressor;

// Writes the blob files of a job that copies values.
//
// The bytes of a value are written unchanged if they are compressed as the
// column family compresses values; otherwise the value is recompressed.
//
// Invariants:
// 1. sources() has one address for each record of the files, in their order.
// 2. After Abandon() no file is left, unless its deletion has failed: then it
//    is an unreferenced file.
//
// Memory: 12 bytes for each copied value, or 16 if there is a blob cache.
//
// Not thread-safe.
class BlobCopyWriter {
 public:
  // Upper bounds, in bytes, of what a file has beside keys and values: for each
  // record, its header and its entry in the record index; and header, footer
  // and the unused part of the last block of the index.
  static constexpr uint64_t kMaxBytesPerRecord = BlobRecordV2::kHeaderSize + 40;
  static constexpr uint64_t kMaxBytesPerFile =
      BlobHeaderV2::kSize + BlobFooterV2::kSize + 64;

  // A value to copy.
  struct Value {
    Slice key;
    MapName name;
    bool is_direct = false;
    MapAddress from;
    // The value as it is stored in its file, and the checksum of its record,
    // which was verified.
    Slice stored;
    uint32_t blob_crc = 0;
    CompressionType compression = kNoCompression;
    // Decompresses the value; nullptr if it is stored as the column family
    // stores values.
    Decompressor* decompressor = nullptr;
    // Limit, in bytes, of the key and the value as they are stored. If the
    // value is compressed for that, the largest possible size counts.
    uint64_t max_size = UINT64_MAX;
  };

  // path_id: the path of the files. hot: their mark.
  // REQUIRES: context outlives this object.
  BlobCopyWriter(const BlobCopyContext& context, uint32_t path_id,
                 HotMark hot = HotMark());
  ~BlobCopyWriter();
  BlobCopyWriter(const BlobCopyWriter&) = delete;
  BlobCopyWriter& operator=(const BlobCopyWriter&) = delete;

  // Returns true if values with this compression are copied unchanged.
  bool IsStoredForm(CompressionType compression) const {
    return compression == compression_;
  }
  // Returns the decompressor for the values of a file, or nullptr if they are
  // not compressed or can be copied unchanged.
  std::shared_ptr<Decompressor> DecompressorFor(
      CompressionType compression) const;

  enum class Outcome : uint8_t {
    kAdded,
    kTooLarge,  // when recompressed; the value stays where it is
    kNoRoom,    // beyond Value::max_size; the value stays where it is
    kDamaged,   // the value cannot be decompressed
    kFailed,    // the file could not be written
  };
  // Adds a value.
  // outcome: kAdded, kTooLarge or kNoRoom if the status is OK. The status of a
  // damaged value does not name the file. REQUIRES: in the order of the keys,
  // and newest version first; Abandon() was not called.
  Status Add(const Value& value, Outcome* outcome);
  // Returns the size in bytes that Value::max_size was compared with last.
  uint64_t last_size() const { return last_size_; }
  // Returns the summed size in bytes of the keys and values that were added,
  // the values in the form in which they were passed to the builder.
  uint64_t bytes_copied() const { return bytes_copied_; }
  // Returns the summed size in bytes of the same keys and values in the files:
  // compressed, which may be more.
  uint64_t bytes_stored() const { return bytes_stored_; }
  // Returns the number of files, including the one that is being written.
  uint64_t num_files() const { return paths_.size(); }
  // Returns true if all files that were begun are complete.
  bool IsBetweenFiles() const { return paths_.size() == additions_.size(); }
  // Returns the size in bytes of the keys and values in the file that is being
  // written.
  uint64_t OpenFileBytes() const {
    return IsBetweenFiles() ? 0 : bytes_copied_ - bytes_before_file_;
  }
  // Completes and syncs the file that is being written, if there is one. The
  // next value goes to another file.
  Status Finish();
  // Deletes all files.
  void Abandon(const Status& s);

  const std::vector<BlobFileAddition>& additions() const { return additions_; }
  std::vector<MappedBlobFile> TakeOutputs();
  std::vector<MapAddress> TakeSources() { return std::move(sources_); }
  std::vector<uint32_t> TakeKeySizes() { return std::move(key_sizes_); }
  // Returns the keys of each file.
  std::vector<BlobGcPicker::KeyRange> TakeKeyRanges() {
    return std::move(key_ranges_);
  }
  // Returns the size in bytes of all complete files.
  uint64_t BytesWritten() const;

 private:
  class Sink;

  Env::WriteLifeTimeHint WriteHint() const;
  // Returns the largest size in bytes that a value may have in the file.
  // size: bytes of the value in the form that is passed to the builder.
  uint64_t MaxStoredSize(const Value& value, uint64_t size) const;
  // Sets *bytes to the value in the form that is passed to the builder.
  Status Convert(const Value& value, Slice* bytes);

  const BlobCopyContext& context_;
  MutableCFOptions cf_options_;
  const HotMark hot_;
  const CompressionType compression_;
  const WriteOptions write_options_;
  const std::unique_ptr<Sink> sink_;
  std::vector<std::string> paths_;
  std::vector<BlobFileAddition> additions_;
  std::unique_ptr<BlobFileBuilder> builder_;
  uint64_t last_size_ = 0;
  uint64_t bytes_copied_ = 0;
  uint64_t bytes_stored_ = 0;
  uint64_t bytes_before_file_ = 0;  // bytes_copied_ when the file was begun
  std::vector<MapAddress> sources_;
  std::vector<uint32_t> key_sizes_;
  std::vector<BlobGcPicker::KeyRange> key_ranges_;
  std::string uncompressed_;
  std::string index_;
};

}  // namespace ROCKSDB_NAMESPACE
