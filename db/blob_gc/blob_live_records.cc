//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_live_records.h"

#include <algorithm>
#include <cassert>

#include "db/blob_gc/mapped_blob_record.h"
#include "file/random_access_file_reader.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Number of lookups whose memory accesses are in flight at the same time.
constexpr size_t kAskedAhead = 8;

}  // namespace

BlobLiveRecords::BlobLiveRecords(const AddressMap* map, uint64_t hash_seed,
                                 uint32_t slot,
                                 const RandomAccessFileReader* file,
                                 const BlobFileLayoutV2& layout,
                                 const Options& options)
    : map_(map),
      hash_seed_(hash_seed),
      slot_(slot),
      file_(file),
      options_(options),
      file_hash_seed_(layout.header.hash_seed),
      index_(file, options_.io_options, layout) {
  if (file_hash_seed_ != hash_seed) {
    walker_ = std::make_unique<BlobRecordWalker>(file, options_.io_options,
                                                 hash_seed, BlobHeaderV2::kSize,
                                                 layout.index_offset);
  }
}

Status BlobLiveRecords::Next() {
  valid_ = false;
  if (status_.ok() && position_ == live_.size()) {
    status_ = FetchLive();
  }
  if (status_.ok() && position_ < live_.size()) {
    status_ = FetchRecord();
    if (status_.ok()) {
      status_ = ParseRecord();
    }
    if (status_.ok()) {
      ++position_;
      valid_ = true;
    }
  }
  return status_;
}

Status BlobLiveRecords::FetchLive() {
  live_.clear();
  position_ = 0;
  while (live_.empty()) {
    const Status s = NextFromIndex(&records_);
    if (!s.ok() || records_.empty()) {
      return s;
    }
    for (size_t i = 0; i < records_.size(); ++i) {
      if (i + kAskedAhead < records_.size()) {
        map_->Prefetch(records_[i + kAskedAhead].name.key);
      }
      AddressMap::Record& record = records_[i];
      const AddressMap::Lookup found =
          map_->FindByName(record.name, /*pin=*/false);
      if (found.found && found.entry.address ==
                             MapAddress{slot_, record.offset, record.size}) {
        record.direct = found.entry.mode != MapMode::kVersioned;
        live_.push_back(record);
      }
    }
  }
  return Status::OK();
}

Status BlobLiveRecords::NextFromIndex(
    std::vector<AddressMap::Record>* records) {
  Status s = index_.Next(records);
  if (walker_ != nullptr) {
    for (AddressMap::Record& record : *records) {
      s = Rehash(&record);
      if (!s.ok()) {
        break;
      }
    }
  }
  return s;
}

Status BlobLiveRecords::Rehash(AddressMap::Record* record) {
  AddressMap::Record found;
  const Status s = walker_->Next(&found);
  if (!s.ok()) {
    return s;
  }
  assert(found.offset == record->offset);
  // The checksum of the key covers the value, too, which was not read. So the
  // key can only be compared with its hash in the index.
  if (found.size != record->size || found.name.seq != record->name.seq ||
      found.name.birth != record->name.birth ||
      !(MapKeyHash::Of(walker_->key(), file_hash_seed_) == record->name.key)) {
    return Corrupt(record->offset, "record does not match the record index");
  }
  record->name.key = found.name.key;
  return s;
}

Status BlobLiveRecords::FetchRecord() {
  const AddressMap::Record& record = live_[position_];
  const auto is_in_window = [&] {
    return record.offset >= window_offset_ &&
           record.offset - window_offset_ + uint64_t{record.size} <=
               window_.size();
  };
  if (is_in_window()) {
    return Status::OK();
  }
  const uint64_t begin = record.offset;
  uint64_t end = begin + record.size;
  for (size_t i = position_ + 1; i < live_.size(); ++i) {
    const uint64_t next_end = uint64_t{live_[i].offset} + live_[i].size;
    if (live_[i].offset - end > options_.max_gap ||
        next_end - begin > options_.read_size) {
      break;
    }
    end = next_end;
  }
  const size_t size = static_cast<size_t>(end - begin);
  if (buffer_size_ < size) {
    buffer_size_ = std::max(size, std::min(options_.read_size, 2 * size));
    buffer_.reset(new char[buffer_size_]);
  }
  window_.clear();
  const Status s = ReadBlobFile(file_, options_.io_options, begin, size,
                                buffer_.get(), &window_);
  if (!s.ok()) {
    window_.clear();
    return s;
  }
  window_offset_ = begin;
  bytes_read_ += size;
  assert(is_in_window());
  return s;
}

Status BlobLiveRecords::ParseRecord() {
  current_ = live_[position_];
  const Slice record(window_.data() + (current_.offset - window_offset_),
                     current_.size);
  const auto corrupt = [&](const Slice& what) {
    return Corrupt(current_.offset, what);
  };
  MappedBlobRecord parsed;
  const Status s = parsed.Parse(record, current_.name);
  if (!s.ok()) {
    return corrupt(s.getState());
  }
  key_ = parsed.key;
  value_ = parsed.value;
  blob_crc_ = parsed.header.blob_crc;
  if (!(MapKeyHash::Of(key_, hash_seed_) == current_.name.key)) {
    return corrupt("key does not match the record index");
  }
  return s;
}

Status BlobLiveRecords::Corrupt(uint64_t offset, const Slice& what) const {
  return CorruptBlobFile(file_->file_name(), offset, what);
}

}  // namespace ROCKSDB_NAMESPACE
