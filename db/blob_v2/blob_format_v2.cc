//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_format_v2.h"

#include <cassert>
#include <cstring>
#include <memory>

#include "db/dbformat.h"
#include "file/random_access_file_reader.h"
#include "test_util/sync_point.h"
#include "util/coding.h"
#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Offsets in the header.
constexpr size_t kVersionAt = 4;
constexpr size_t kColumnFamilyAt = 8;
constexpr size_t kFlagsAt = 12;
constexpr size_t kCompressionAt = 13;
constexpr size_t kSeedAt = 14;
constexpr size_t kIndexFormatAt = 22;
constexpr size_t kHeaderCrcAt = 26;
static_assert(kHeaderCrcAt + sizeof(uint32_t) == BlobHeaderV2::kSize);

// Offsets in the header of a record.
constexpr size_t kValueSizeAt = 4;
constexpr size_t kSeqAt = 8;
constexpr size_t kBirthAt = 16;
constexpr size_t kRecordCrcAt = 24;
constexpr size_t kBlobCrcAt = 28;
static_assert(kBlobCrcAt + sizeof(uint32_t) == BlobRecordV2::kHeaderSize);

constexpr uint64_t kDirectFlag = 1;

uint32_t MaskedCrc(const char* data, size_t n) {
  return crc32c::Mask(crc32c::Value(data, n));
}

uint32_t MaskedBlobCrc(const Slice& key, const Slice& value) {
  const uint32_t crc = crc32c::Value(key.data(), key.size());
  return crc32c::Mask(crc32c::Extend(crc, value.data(), value.size()));
}

// Reads and decodes the header or the footer of a file.
template <typename Part>
Status ReadPart(const RandomAccessFileReader* file, const IOOptions& options,
                uint64_t offset, Part* part) {
  char scratch[Part::kSize];
  Slice encoded;
  const Status s =
      ReadBlobFile(file, options, offset, Part::kSize, scratch, &encoded);
  return s.ok() ? NameBlobFile(part->DecodeFrom(encoded), file->file_name(),
                               offset)
                : s;
}

// Reads the first bytes of a file, up to a header. Returns false if the file
// cannot be read.
// start: may refer to scratch.
bool ReadStart(FileSystem* fs, const std::string& fname,
               const FileOptions& file_options, const IOOptions& io_options,
               char (&scratch)[BlobHeaderV2::kSize], Slice* start) {
  FileOptions options = file_options;
  options.use_direct_reads = false;  // the buffer is not aligned
  std::unique_ptr<FSRandomAccessFile> file;
  if (!fs->NewRandomAccessFile(fname, options, &file, nullptr).ok() ||
      !file->Read(0, sizeof(scratch), io_options, start, scratch, nullptr)
           .ok()) {
    return false;
  }
  if (start->data() != scratch && !start->empty()) {
    // The bytes may belong to the file object.
    memmove(scratch, start->data(), start->size());
    *start = Slice(scratch, start->size());
  }
  return true;
}

}  // namespace

bool IsSeparable(const Slice& user_key, const Slice& value) {
  uint64_t max_size = kMaxSeparableSize;
  TEST_SYNC_POINT_CALLBACK("IsSeparable:MaxSize", &max_size);
  // Keys count, too: merges can make records of large keys that RocksDB stores.
  return user_key.size() + value.size() <= max_size;
}

BlobLogHeader BlobHeaderV2::ToLogHeader() const {
  constexpr bool has_ttl = false;
  BlobLogHeader log(column_family_id, compression, has_ttl,
                    ExpirationRange(hash_seed, kIndexFormat));
  log.version = kBlobFileVersion2;
  std::string encoded;
  log.EncodeTo(&encoded);
  const uint64_t crc = MaskedCrc(encoded.data(), kHeaderCrcAt);
  log.expiration_range.second |= crc << 32;
  return log;
}

void BlobHeaderV2::EncodeTo(std::string* dst) const {
  ToLogHeader().EncodeTo(dst);
}

Status BlobHeaderV2::DecodeFrom(const Slice& src) {
  constexpr char part[] = "header";
  if (src.size() != kSize) {
    return Status::Corruption(part, "wrong size");
  }
  if (!IsBlobFileV2(src)) {
    return Status::Corruption(part, "not a blob file of version 2");
  }
  const char* const p = src.data();
  if (DecodeFixed32(p + kHeaderCrcAt) != MaskedCrc(p, kHeaderCrcAt)) {
    return Status::Corruption(part, "checksum mismatch");
  }
  if (p[kFlagsAt] != 0) {
    return Status::Corruption(part, "unknown flags");
  }
  if (DecodeFixed32(p + kIndexFormatAt) != kIndexFormat) {
    return Status::NotSupported(part, "unknown format of the record index");
  }
  column_family_id = DecodeFixed32(p + kColumnFamilyAt);
  compression = static_cast<CompressionType>(p[kCompressionAt]);
  hash_seed = DecodeFixed64(p + kSeedAt);
  return Status::OK();
}

bool IsBlobFileV2(const Slice& start) {
  return start.size() >= kVersionAt + sizeof(uint32_t) &&
         DecodeFixed32(start.data()) == kMagicNumber &&
         DecodeFixed32(start.data() + kVersionAt) == kBlobFileVersion2;
}

bool StartsAsBlobFileV2(FileSystem* fs, const std::string& fname,
                        const FileOptions& file_options,
                        const IOOptions& io_options) {
  char scratch[BlobHeaderV2::kSize];
  Slice start;
  return ReadStart(fs, fname, file_options, io_options, scratch, &start) &&
         IsBlobFileV2(start);
}

bool StartsAsNoBlobFile(FileSystem* fs, const std::string& fname,
                        const FileOptions& file_options,
                        const IOOptions& io_options) {
  char scratch[BlobHeaderV2::kSize];
  Slice start;
  return ReadStart(fs, fname, file_options, io_options, scratch, &start) &&
         (start.size() < kVersionAt ||
          DecodeFixed32(start.data()) != kMagicNumber);
}

void BlobRecordV2::EncodeHeaderTo(const Slice& key, const Slice& value,
                                  std::string* dst,
                                  const uint32_t* known_blob_crc) {
  assert(kHeaderSize + key.size() + value.size() <= kMaxBlobRecordSize);
  assert(seq <= kMaxSequenceNumber);
  key_size = static_cast<uint32_t>(key.size());
  value_size = static_cast<uint32_t>(value.size());
  blob_crc =
      known_blob_crc != nullptr ? *known_blob_crc : MaskedBlobCrc(key, value);
  assert(known_blob_crc == nullptr || CheckBlob(key, value).ok());
  dst->clear();
  PutFixed32(dst, key_size);
  PutFixed32(dst, value_size);
  PutFixed64(dst, seq << 8 | (direct ? kDirectFlag : 0));
  PutFixed64(dst, birth);
  PutFixed32(dst, MaskedCrc(dst->data(), dst->size()));
  PutFixed32(dst, blob_crc);
}

Status BlobRecordV2::DecodeHeaderFrom(const Slice& src) {
  constexpr char part[] = "record header";
  if (src.size() != kHeaderSize) {
    return Status::Corruption(part, "wrong size");
  }
  const char* const p = src.data();
  if (DecodeFixed32(p + kRecordCrcAt) != MaskedCrc(p, kRecordCrcAt)) {
    return Status::Corruption(part, "checksum mismatch");
  }
  const uint64_t seq_and_flags = DecodeFixed64(p + kSeqAt);
  if ((seq_and_flags & 0xff) > kDirectFlag) {
    return Status::Corruption(part, "unknown flags");
  }
  key_size = DecodeFixed32(p);
  value_size = DecodeFixed32(p + kValueSizeAt);
  seq = seq_and_flags >> 8;
  direct = (seq_and_flags & kDirectFlag) != 0;
  birth = DecodeFixed64(p + kBirthAt);
  blob_crc = DecodeFixed32(p + kBlobCrcAt);
  if (record_size() > kMaxBlobRecordSize) {
    return Status::Corruption(part, "record too long");
  }
  return Status::OK();
}

Status BlobRecordV2::CheckBlob(const Slice& key, const Slice& value) const {
  return MaskedBlobCrc(key, value) == blob_crc
             ? Status::OK()
             : Status::Corruption("record", "checksum mismatch");
}

BlobLogFooter BlobFooterV2::ToLogFooter() const {
  BlobLogFooter log;
  log.blob_count = blob_count;
  log.expiration_range = ExpirationRange(index_size, index_checksum);
  return log;
}

void BlobFooterV2::EncodeTo(std::string* dst) const {
  ToLogFooter().EncodeTo(dst);
}

Status BlobFooterV2::DecodeFrom(const Slice& src) {
  BlobLogFooter log;
  const Status s = log.DecodeFrom(src);
  if (!s.ok()) {
    return s;
  }
  if (log.expiration_range.second > std::numeric_limits<uint32_t>::max()) {
    return Status::Corruption("footer", "reserved bytes are not zero");
  }
  blob_count = log.blob_count;
  index_size = log.expiration_range.first;
  index_checksum = static_cast<uint32_t>(log.expiration_range.second);
  return Status::OK();
}

Status BlobFileLayoutV2::Read(const RandomAccessFileReader* file,
                              const IOOptions& options, uint64_t file_size,
                              BlobFileLayoutV2* layout) {
  if (file_size < BlobHeaderV2::kSize + BlobFooterV2::kSize) {
    return CorruptBlobFile(file->file_name(), file_size, "file too short");
  }
  Status s = ReadPart(file, options, 0, &layout->header);
  const uint64_t footer_offset = file_size - BlobFooterV2::kSize;
  if (s.ok()) {
    s = ReadPart(file, options, footer_offset, &layout->footer);
  }
  if (!s.ok()) {
    return s;
  }

  const uint64_t middle = footer_offset - BlobHeaderV2::kSize;
  const uint64_t index_size = layout->footer.index_size;
  if (index_size > middle ||
      layout->footer.blob_count >
          (middle - index_size) / BlobRecordV2::kHeaderSize) {
    return CorruptBlobFile(file->file_name(), footer_offset,
                           "footer does not fit the size of the file");
  }
  layout->index_offset = footer_offset - index_size;
  return Status::OK();
}

void PutBlobIndexSizeField(std::string* dst, uint64_t index_size) {
  std::string value;
  PutVarint64(&value, index_size);
  PutVarint32(dst, kBlobIndexSizeField);
  PutLengthPrefixedSlice(dst, value);
}

Status DecodeBlobIndexSizeField(Slice value, uint64_t* index_size) {
  // A file without records is never committed, so 0 is invalid, too.
  if (!GetVarint64(&value, index_size) || !value.empty() || *index_size == 0) {
    return Status::Corruption("BlobFileAddition", "Invalid index size");
  }
  return Status::OK();
}

Status CorruptBlobFile(const std::string& file_name, uint64_t offset,
                       const Slice& what) {
  return Status::Corruption(
      "Blob file " + file_name + " at offset " + std::to_string(offset), what);
}

Status NameBlobFile(const Status& s, const std::string& file_name,
                    uint64_t offset) {
  const Slice what = s.getState() != nullptr ? s.getState() : "damaged";
  if (s.IsCorruption()) {
    return CorruptBlobFile(file_name, offset, what);
  }
  return s.IsNotSupported()
             ? Status::NotSupported("Blob file " + file_name, what)
             : s;
}

Status ReadBlobFile(const RandomAccessFileReader* file,
                    const IOOptions& options, uint64_t offset, size_t n,
                    char* scratch, Slice* result) {
  const IOStatus s = file->Read(options, offset, n, result, scratch);
  if (!s.ok()) {
    return s;
  }
  if (result->size() != n) {
    return CorruptBlobFile(file->file_name(), offset, "file is truncated");
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
