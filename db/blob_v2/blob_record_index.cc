//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_record_index.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "db/blob_v2/blob_record_walker.h"
#include "db/dbformat.h"
#include "file/random_access_file_reader.h"
#include "file/writable_file_writer.h"
#include "util/coding.h"
#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {

using Format = RecordIndexFormat;

// ---- RecordIndexBuilder

Status RecordIndexBuilder::Add(const MapName& name, uint64_t record_size,
                               bool direct) {
  assert(!finished_);
  if (record_size < BlobRecordV2::kHeaderSize ||
      record_size > kMaxBlobRecordSize || end_offset_ > kMaxBlobRecordOffset ||
      name.seq > kMaxSequenceNumber) {
    return Status::InvalidArgument("Record does not fit the blob file format");
  }
  const uint64_t size_and_mode = record_size << 1 | (direct ? 1 : 0);
  if (!AddToBlock(name, size_and_mode)) {
    CloseBlock(/*last=*/false);
    const bool added = AddToBlock(name, size_and_mode);
    assert(added);
    (void)added;
  }
  ++num_records_;
  end_offset_ += record_size;
  return Status::OK();
}

bool RecordIndexBuilder::AddToBlock(const MapName& name,
                                    uint64_t size_and_mode) {
  if (block_records_ == 0) {
    block_offset_ = end_offset_;
    last_seq_ = 0;
    first_birth_ = name.birth;
    one_birth_ = true;
  }
  const size_t old_entries = entries_.size();
  const size_t old_births = births_.size();
  const bool old_one_birth = one_birth_;

  char entry[Format::kHashSize + 2 * kMaxVarint64Length];
  EncodeFixed64(entry, name.key.hi);
  EncodeFixed32(entry + sizeof(uint64_t), name.key.lo);
  // The difference from the previous record rather than from a base of the
  // block: for a sequential load it takes one byte, for random writes it takes
  // no more than the other, and its size is known at once.
  char* end =
      EncodeVarint64(entry + Format::kHashSize,
                     i64ToZigzag(static_cast<int64_t>(name.seq - last_seq_)));
  end = EncodeVarint64(end, size_and_mode);
  entries_.append(entry, static_cast<size_t>(end - entry));
  PutVarint64(&births_, name.birth);
  one_birth_ = one_birth_ && name.birth == first_birth_;
  ++block_records_;

  const size_t block_size =
      VarintLength(block_records_) + VarintLength(block_offset_) +
      sizeof(Format::kOneBirth) + entries_.size() +
      (one_birth_ ? VarintLength(first_birth_) : births_.size()) +
      Format::kChecksumSize;
  if (block_records_ > 1 && block_size > Format::kBlockSize) {
    entries_.resize(old_entries);
    births_.resize(old_births);
    one_birth_ = old_one_birth;
    --block_records_;
    return false;
  }
  last_seq_ = name.seq;
  block_size_ = block_size;
  return true;
}

void RecordIndexBuilder::CloseBlock(bool last) {
  const size_t begin = contents_.size();
  PutVarint64(&contents_, block_records_);
  PutVarint64(&contents_, block_offset_);
  contents_.push_back(static_cast<char>(one_birth_ ? Format::kOneBirth : 0));
  contents_.append(entries_);
  if (one_birth_) {
    PutVarint64(&contents_, first_birth_);
  } else {
    contents_.append(births_);
  }
  if (!last) {
    contents_.resize(begin + Format::kBlockSize - Format::kChecksumSize, '\0');
  }
  const char* const block = contents_.data() + begin;
  PutFixed32(&contents_,
             crc32c::Mask(crc32c::Value(block, contents_.size() - begin)));
  checksum_ = crc32c::Extend(
      checksum_, contents_.data() + contents_.size() - Format::kChecksumSize,
      Format::kChecksumSize);
  block_records_ = 0;
  block_size_ = 0;
  entries_.clear();
  births_.clear();
}

void RecordIndexBuilder::Finish() {
  assert(!finished_);
  if (block_records_ > 0) {
    CloseBlock(/*last=*/true);
  }
  index_size_ = contents_.size();
  finished_ = true;
}

BlobFooterV2 RecordIndexBuilder::footer() const {
  assert(finished_);
  BlobFooterV2 footer;
  footer.blob_count = num_records_;
  footer.index_size = index_size_;
  footer.index_checksum = crc32c::Mask(checksum_);
  return footer;
}

Status RecordIndexBuilder::AppendTo(const IOOptions& options,
                                    WritableFileWriter* file) const {
  assert(finished_);
  return file->Append(options, contents_);
}

// ---- RecordIndexReader

RecordIndexReader::RecordIndexReader(const Slice& index,
                                     const BlobFooterV2& footer,
                                     uint64_t index_offset,
                                     std::string file_name)
    : file_(nullptr),
      file_name_(std::move(file_name)),
      footer_(footer),
      index_offset_(index_offset),
      hash_seed_(0),
      fetched_(index) {
  if (index.size() != footer.index_size) {
    status_ = Corrupt("size does not match the footer");
  }
}

RecordIndexReader::RecordIndexReader(const RandomAccessFileReader* file,
                                     const IOOptions& options,
                                     const BlobFileLayoutV2& layout)
    : file_(file),
      options_(options),
      file_name_(file->file_name()),
      footer_(layout.footer),
      index_offset_(layout.index_offset),
      hash_seed_(layout.header.hash_seed) {}

Status RecordIndexReader::Next(std::vector<AddressMap::Record>* records) {
  records->clear();
  while (status_.ok() && !at_end_ &&
         records->size() + Format::kMaxBlockRecords <= kMaxRecords) {
    if (position_ < footer_.index_size) {
      status_ = ReadBlock(records);
    } else {
      status_ = first_loss_.ok() ? CheckEnd() : Status::OK();
      if (skips_lost_ && status_.IsCorruption()) {
        first_loss_ = status_;
        status_ = Status::OK();
      }
      at_end_ = true;
    }
  }
  if (!status_.ok()) {
    records->clear();
  }
  return status_;
}

Status RecordIndexReader::ReadBlock(std::vector<AddressMap::Record>* records) {
  Slice block;
  Status s = FetchBlock(&block);
  if (!s.ok()) {
    return s;
  }

  const size_t old_size = records->size();
  uint64_t end_offset = 0;
  char checksum[Format::kChecksumSize];
  const char* const damage = DecodeBlock(block, records, &end_offset);
  if (damage == nullptr) {
    memcpy(checksum, block.data() + block.size() - sizeof(checksum),
           sizeof(checksum));
  } else {
    records->resize(old_size);
    const Status damaged = Corrupt(damage);
    if (file_ == nullptr) {
      return damaged;
    }
    s = after_loss_
            ? Status::Corruption("the previous block is damaged, too")
            : RestoreBlock(block.size(), records, &end_offset, checksum);
    if (s.IsCorruption()) {
      s = Status::Corruption(
          damaged.getState(),
          std::string("cannot be restored: ") + s.getState());
      if (skips_lost_) {
        SkipBlock(block.size(), s);
        return Status::OK();
      }
    }
    if (!s.ok()) {
      return s;
    }
    if (num_restored_++ == 0) {
      first_damage_ = damaged;
    }
  }

  checksum_ = crc32c::Extend(checksum_, checksum, sizeof(checksum));
  position_ += block.size();
  next_record_ = end_offset;
  after_loss_ = false;
  num_records_ += records->size() - old_size;
  return Status::OK();
}

void RecordIndexReader::SkipBlock(size_t block_size, const Status& loss) {
  if (first_loss_.ok()) {
    first_loss_ = loss;
  }
  position_ += block_size;
  after_loss_ = true;
}

Status RecordIndexReader::FetchBlock(Slice* block) {
  if (fetched_.empty()) {
    // Reads whole blocks, so that no block is split between two reads.
    constexpr uint64_t kReadSize = 64 * Format::kBlockSize;
    const size_t n = static_cast<size_t>(
        std::min(kReadSize, footer_.index_size - position_));
    if (buffer_ == nullptr) {
      buffer_.reset(new char[n]);  // no later read is longer
    }
    const Status s = ReadBlobFile(file_, options_, index_offset_ + position_, n,
                                  buffer_.get(), &fetched_);
    if (!s.ok()) {
      return s;
    }
  }
  *block =
      Slice(fetched_.data(), std::min(fetched_.size(), Format::kBlockSize));
  fetched_.remove_prefix(block->size());
  return Status::OK();
}

namespace {

// Decodes a record, except its birth. Returns nullptr, or a description of the
// damage.
// index_offset: end of the records of the file.
// seq: sequence number of the record before, replaced by that of this one.
// offset: start of the record, replaced by its end.
const char* TakeRecord(Slice* rest, uint64_t index_offset, SequenceNumber* seq,
                       uint64_t* offset, AddressMap::Record* record) {
  if (rest->size() < Format::kHashSize) {
    return "entry too short";
  }
  record->name.key.hi = DecodeFixed64(rest->data());
  record->name.key.lo = DecodeFixed32(rest->data() + sizeof(uint64_t));
  rest->remove_prefix(Format::kHashSize);
  uint64_t seq_change = 0;
  uint64_t size_and_mode = 0;
  if (!GetVarint64(rest, &seq_change) || !GetVarint64(rest, &size_and_mode)) {
    return "entry too short";
  }
  // The sum cannot wrap around into the valid range, which ends at 2^56.
  *seq += static_cast<uint64_t>(zigzagToI64(seq_change));
  if (*seq > kMaxSequenceNumber) {
    return "impossible sequence number";
  }
  const uint64_t size = size_and_mode >> 1;
  if (size < BlobRecordV2::kHeaderSize || size > kMaxBlobRecordSize ||
      *offset > kMaxBlobRecordOffset || *offset > index_offset ||
      size > index_offset - *offset) {
    return "record outside of the records of the file";
  }
  record->name.seq = *seq;
  record->offset = static_cast<uint32_t>(*offset);
  record->size = static_cast<uint32_t>(size);
  record->direct = (size_and_mode & 1) != 0;
  *offset += size;
  return nullptr;
}

}  // namespace

// Appends the records of the block to *records. Returns nullptr, or a
// description of the damage if the block is damaged. Some records may have been
// appended in that case.
const char* RecordIndexReader::DecodeBlock(
    const Slice& block, std::vector<AddressMap::Record>* records,
    uint64_t* end_offset) const {
  if (block.size() < Format::kChecksumSize) {
    return "block too short";
  }
  Slice rest(block.data(), block.size() - Format::kChecksumSize);
  if (DecodeFixed32(rest.data() + rest.size()) !=
      crc32c::Mask(crc32c::Value(rest.data(), rest.size()))) {
    return "checksum mismatch";
  }

  uint64_t count = 0;
  uint64_t offset = 0;
  if (!GetVarint64(&rest, &count) || !GetVarint64(&rest, &offset) ||
      rest.empty()) {
    return "header of block too short";
  }
  const unsigned char flags = static_cast<unsigned char>(rest[0]);
  rest.remove_prefix(1);
  if (flags > Format::kOneBirth) {
    return "unknown flags";
  }
  if (count == 0 || count > rest.size() / Format::kMinEntrySize) {
    return "impossible number of records";
  }
  if (after_loss_ ? offset < next_record_ : offset != next_record_) {
    return "first record does not follow the one before";
  }

  const size_t begin = records->size();
  SequenceNumber seq = 0;
  for (uint64_t i = 0; i < count; ++i) {
    AddressMap::Record record;
    const char* const damage =
        TakeRecord(&rest, index_offset_, &seq, &offset, &record);
    if (damage != nullptr) {
      return damage;
    }
    records->push_back(record);
  }

  uint64_t birth = 0;
  for (size_t i = begin; i < records->size(); ++i) {
    if ((i == begin || flags != Format::kOneBirth) &&
        !GetVarint64(&rest, &birth)) {
      return "birth missing";
    }
    (*records)[i].name.birth = birth;
  }

  // Blocks are padded with zeros, except the last one.
  const bool last = position_ + block.size() == footer_.index_size;
  if (last ? !rest.empty()
           : !std::all_of(rest.data(), rest.data() + rest.size(),
                          [](char c) { return c == 0; })) {
    return "unknown data behind the last record";
  }
  *end_offset = offset;
  return nullptr;
}

// Reads the records from where the records of the previous block end. As a
// block lists as many records as fit, encoding them again shows where the block
// ends and what its checksum was. So the checksum of the whole index still
// shows whether the records are correct.
Status RecordIndexReader::RestoreBlock(size_t block_size,
                                       std::vector<AddressMap::Record>* records,
                                       uint64_t* end_offset,
                                       char* checksum) const {
  BlobRecordWalker walker(file_, options_, hash_seed_, next_record_,
                          index_offset_);
  RecordIndexBuilder builder(next_record_);
  *end_offset = next_record_;
  while (!walker.AtEnd()) {
    AddressMap::Record record;
    Status s = walker.Next(&record);
    if (s.ok()) {
      s = builder.Add(record.name, record.size, record.direct);
    }
    if (!s.ok()) {
      return s;
    }
    if (builder.EncodedSize() > Format::kBlockSize) {
      break;  // this record begins the next block
    }
    records->push_back(record);
    *end_offset = builder.EndOffset();
  }

  const bool last = position_ + block_size == footer_.index_size;
  builder.Finish();
  const std::string& contents = builder.contents();
  if (last ? contents.size() != block_size
           : contents.size() <= Format::kBlockSize) {
    return Corrupt("block does not end where its records do");
  }
  memcpy(checksum, contents.data() + block_size - Format::kChecksumSize,
         Format::kChecksumSize);
  return Status::OK();
}

Status RecordIndexReader::Verify(const RandomAccessFileReader* file,
                                 const IOOptions& options,
                                 const BlobFileLayoutV2& layout) {
  RecordIndexReader reader(file, options, layout);
  std::vector<AddressMap::Record> records;
  Status s;
  do {
    s = reader.Next(&records);
  } while (s.ok() && !records.empty());
  return s.ok() ? reader.FirstDamage() : s;
}

Status RecordIndexReader::CheckEnd() const {
  if (next_record_ != index_offset_) {
    return Corrupt("record index does not cover all records");
  }
  if (num_records_ != footer_.blob_count) {
    return Corrupt(
        "record index has another number of records than the "
        "footer says");
  }
  if (crc32c::Mask(checksum_) != footer_.index_checksum) {
    return Corrupt("checksum of the record index does not match the footer");
  }
  return Status::OK();
}

Status RecordIndexReader::Corrupt(const Slice& what) const {
  return CorruptBlobFile(file_name_, index_offset_ + position_,
                         "record index: " + what.ToString());
}

}  // namespace ROCKSDB_NAMESPACE
