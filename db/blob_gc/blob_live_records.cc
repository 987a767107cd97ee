//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_live_records.h"

#include <algorithm>
#include <cassert>
#include <utility>

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
  if (status_.ok() && position_ == batch_.records.size()) {
    position_ = 0;
    if (has_next_) {
      has_next_ = false;
      std::swap(batch_, next_);
      status_ = next_status_;
      if (next_.buffer_size > options_.read_size) {
        next_ = Batch();  // a long record
      }
    } else {
      status_ = ReadBatch(&batch_);
    }
  }
  if (status_.ok() && position_ < batch_.records.size()) {
    status_ = ParseRecord();
    if (status_.ok()) {
      ++position_;
      valid_ = true;
    }
  }
  return status_;
}

void BlobLiveRecords::ReadAhead() {
  if (!has_next_) {
    has_next_ = true;
    next_status_ = ReadBatch(&next_);
  }
}

Status BlobLiveRecords::ReadBatch(Batch* batch) {
  batch->records.clear();
  if (next_live_ == live_.size()) {
    const Status s = FetchLive();
    if (!s.ok() || live_.empty()) {
      return s;
    }
  }
  const auto first = live_.begin() + static_cast<ptrdiff_t>(next_live_);
  const uint64_t begin = first->offset;
  uint64_t end = begin + first->size;
  auto last = first + 1;
  for (; last != live_.end(); ++last) {
    const uint64_t next_end = uint64_t{last->offset} + last->size;
    if (last->offset - end > options_.max_gap ||
        next_end - begin > options_.read_size) {
      break;
    }
    end = next_end;
  }
  const size_t size = static_cast<size_t>(end - begin);
  if (batch->buffer_size < size) {
    batch->buffer_size = std::max(size, std::min(options_.read_size, 2 * size));
    batch->buffer.reset(new char[batch->buffer_size]);
  }
  const Status s = ReadBlobFile(file_, options_.io_options, begin, size,
                                batch->buffer.get(), &batch->bytes);
  if (s.ok()) {
    batch->records.assign(first, last);
    batch->offset = begin;
    next_live_ = static_cast<size_t>(last - live_.begin());
    bytes_read_ += size;
  }
  return s;
}

Status BlobLiveRecords::FetchLive() {
  live_.clear();
  next_live_ = 0;
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

Status BlobLiveRecords::ParseRecord() {
  current_ = batch_.records[position_];
  const Slice record(batch_.bytes.data() + (current_.offset - batch_.offset),
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
