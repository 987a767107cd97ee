//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_range_sort_job.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/address_map/mapped_key_scan.h"
#include "db/blob/blob_file_reader.h"
#include "db/blob/blob_source.h"
#include "db/blob_gc/blob_copy_writer.h"
#include "db/blob_gc/blob_copy_writers.h"
#include "db/blob_gc/blob_gc_storage.h"
#include "db/blob_gc/mapped_blob_record.h"
#include "db/blob_v2/blob_read_group.h"
#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/path_layout/path_layout.h"
#include "file/random_access_file_reader.h"
#include "test_util/sync_point.h"
#include "util/compression.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Number of entries of SST files after which the job looks whether it has to
// end.
constexpr uint64_t kEntriesPerCheck = 1024;
// The same for reads.
constexpr size_t kReadsPerCheck = 16;

}  // namespace

class BlobRangeSortJob::Visitor : public MappedKeyScan::Visitor {
 public:
  explicit Visitor(BlobRangeSortJob* job) : job_(job) {}
  Status Visit(const ParsedInternalKey& key,
               const MappedBlobIndex& index) override {
    return job_->AddEntry(key, index);
  }
  Status FinishRange() override { return job_->CopyChunk(); }

 private:
  BlobRangeSortJob* const job_;
};

BlobRangeSortJob::BlobRangeSortJob(const Context& context)
    : context_(context),
      writers_(std::make_unique<BlobCopyWriters>(context_)) {}

BlobRangeSortJob::~BlobRangeSortJob() = default;

const std::vector<BlobFileAddition>& BlobRangeSortJob::additions() const {
  return writers_->additions();
}

std::vector<MappedBlobFile> BlobRangeSortJob::TakeOutputs() {
  return writers_->TakeOutputs();
}

std::vector<MapAddress> BlobRangeSortJob::TakeSources() {
  return writers_->TakeSources();
}

std::vector<BlobGcPicker::KeyRange> BlobRangeSortJob::TakeKeyRanges() {
  return writers_->TakeKeyRanges();
}

std::vector<uint32_t> BlobRangeSortJob::TakeKeySizes() {
  return writers_->TakeKeySizes();
}

Status BlobRangeSortJob::Run() {
  MappedKeyScan scan(context_.cfd, context_.version, context_.read_file_options,
                     Env::IOActivity::kCompaction, /*num_threads=*/1,
                     /*all_versions=*/true, /*readahead_size=*/0);
  Visitor visitor(this);
  Status s =
      scan.RunRange(context_.has_begin ? &context_.begin : nullptr,
                    context_.has_end ? &context_.end : nullptr, &visitor);
  has_unreadable_keys_ = !s.ok() && copy_status_.ok() && !reached_limit_;
  if (reached_limit_) {
    s = Status::OK();
  }
  TEST_SYNC_POINT_CALLBACK("BlobRangeSortJob::Run:BeforeFinish", &s);
  s = writers_->Finish(s);
  stats_.bytes_written = writers_->BytesWritten();
  return s;
}

bool BlobRangeSortJob::Find(const MapName& name, AddressMap::Lookup* found) {
  const AddressMap* const map = context_.cfd->address_map_store()->map();
  for (;;) {
    *found = map->FindByName(name, /*pin=*/false);
    if (!found->found ||
        found->entry.address.slot == BlobFileSlotTable::kLostSlot) {
      return false;
    }
    const auto file = files_.find(found->entry.address.slot);
    if (file != files_.end()) {
      return file->second.is_used;
    }
    // The slot may belong to another file by now. From here on it does not
    // change, so the next lookup says what is in it.
    AddFile(found->entry.address.slot);
  }
}

void BlobRangeSortJob::AddFile(uint32_t slot) {
  File& file = files_[slot];
  BlobFileSlotTable::Info info;
  // Values that another job has just copied stay: its outputs may be abandoned.
  file.is_used = context_.storage->PinSource(slot, &info) &&
                 info.state == BlobFileSlotTable::State::kLive &&
                 !info.hot.is_hot() &&
                 context_.excluded.count(info.number) == 0;
  file.number = info.number;
  // Copies get the id of an existing path.
  file.path_id = static_cast<uint32_t>(PathLayout::IndexOf(
      info.path_id, context_.cfd->ioptions().cf_paths.size()));
  stats_.files_read += file.is_used ? 1 : 0;
  if (!file.is_used) {
    context_.storage->UnpinSource(slot);
  }
}

void BlobRangeSortJob::UnpinUnused() {
  for (auto it = files_.begin(); it != files_.end();) {
    if (it->second.has_copied) {
      ++it;
    } else {
      // Another file may get the slot from here on.
      context_.storage->UnpinSource(it->first);
      it = files_.erase(it);
    }
  }
}

Status BlobRangeSortJob::AddEntry(const ParsedInternalKey& key,
                                  const MappedBlobIndex& index) {
  const AddressMapStore* const blobs = context_.cfd->address_map_store();
  if (++entries_seen_ % kEntriesPerCheck == 0) {
    const Status s = context_.check();
    if (!s.ok()) {
      copy_status_ = s;
      return s;
    }
  }
  const MapName name{blobs->HashOf(key.user_key), key.sequence, index.birth};
  AddressMap::Lookup found;
  if (!Find(name, &found)) {
    return Status::OK();
  }
  if (!entries_.empty() &&
      chunk_bytes_ + found.entry.address.size > context_.max_chunk) {
    const Status s = CopyChunk();
    if (!s.ok()) {
      return s;
    }
    if (context_.max_copied != 0 &&
        writers_->BytesCopied() >= context_.max_copied) {
      reached_limit_ = true;
      return Status::Incomplete();
    }
    // The file may have been unpinned with those of the chunk.
    if (!Find(name, &found)) {
      return s;
    }
  }
  Entry& entry = entries_.emplace_back();
  entry.key_offset = keys_.size();
  entry.key_size = key.user_key.size();
  keys_.append(key.user_key.data(), key.user_key.size());
  entry.name = found.entry.name;
  entry.from = found.entry.address;
  entry.is_direct = found.entry.mode != MapMode::kVersioned;
  chunk_bytes_ += sizeof(Entry) + entry.key_size + entry.from.size;
  return Status::OK();
}

Status BlobRangeSortJob::CopyChunk() {
  Status s = context_.check();
  if (s.ok() && !entries_.empty()) {
    MarkKept();
    s = ReadChunk();
  }
  TEST_SYNC_POINT_CALLBACK("BlobRangeSortJob::CopyChunk:Read", &s);
  if (s.ok()) {
    s = WriteChunk();
  }
  entries_.clear();
  keys_.clear();
  chunk_bytes_ = 0;
  UnpinUnused();
  copy_status_ = s;
  return s;
}

void BlobRangeSortJob::MarkKept() {
  size_t begin = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    bytes += entries_[i].from.size;
    if (bytes >= kStretch || i + 1 == entries_.size()) {
      MarkKept(begin, i + 1);
      begin = i + 1;
      bytes = 0;
    }
  }
}

void BlobRangeSortJob::MarkKept(size_t begin, size_t end) {
  struct Part {
    uint64_t bytes = 0;
    uint64_t first = 0;  // offset of the first record
    uint64_t last = 0;   // offset where the last record ends
  };
  std::unordered_map<uint32_t, Part> parts;       // by slot
  std::unordered_map<uint32_t, uint64_t> totals;  // by path
  for (size_t i = begin; i < end; ++i) {
    const MapAddress& from = entries_[i].from;
    Part& part = parts[from.slot];
    const uint64_t last = uint64_t{from.offset} + from.size;
    part.first = part.bytes == 0 ? from.offset
                                 : std::min<uint64_t>(part.first, from.offset);
    part.last = std::max(part.last, last);
    part.bytes += from.size;
    totals[files_.at(from.slot).path_id] += from.size;
  }
  const auto is_dense = [this](const Part& part) {
    return part.last - part.first <= kMaxSpread * part.bytes + context_.max_gap;
  };
  // Values in order may be in several files, if these are small.
  const size_t num_small = static_cast<size_t>(
      kStretch /
      std::max(context_.mutable_cf_options.blob_file_size, uint64_t{1}));
  const bool is_sorted =
      parts.size() <= (kMaxParts + num_small) * totals.size() &&
      std::all_of(parts.begin(), parts.end(),
                  [&](const auto& part) { return is_dense(part.second); });
  for (size_t i = begin; i < end; ++i) {
    const Part& part = parts[entries_[i].from.slot];
    const uint64_t total = totals[files_.at(entries_[i].from.slot).path_id];
    entries_[i].is_kept =
        is_sorted || (part.bytes >= total - part.bytes && is_dense(part));
  }
}

Status BlobRangeSortJob::ReadChunk() {
  std::vector<FileRead> reads = FindReads();
  Status s;
  for (size_t begin = 0; s.ok() && begin < reads.size();
       begin += kReadsPerCheck) {
    const size_t n = std::min(kReadsPerCheck, reads.size() - begin);
    s = context_.check();
    for (size_t i = 0; s.ok() && i < n; ++i) {
      s = OpenFileOf(reads[begin + i]);
    }
    if (!s.ok()) {
      break;
    }
    BlobReadPool::RunAll(
        context_.cfd->ioptions().clock, n,
        [&](size_t i) { Execute(&reads[begin + i]); }, context_.max_reads - 1);
    for (size_t i = 0; i < n; ++i) {
      const FileRead& read = reads[begin + i];
      const MapAddress& first = entries_[read.entries.front()].from;
      File& file = files_.at(first.slot);
      stats_.bytes_read += read.bytes_read;
      if (!read.status.ok() && s.ok()) {
        s = Unreadable(file, first.offset, read.status);
      }
      file.reader.Reset();
    }
  }
  // After an error, some reads have not taken place.
  for (const FileRead& read : reads) {
    read.status.PermitUncheckedError();
  }
  return s;
}

std::vector<BlobRangeSortJob::FileRead> BlobRangeSortJob::FindReads() {
  std::vector<size_t> order;
  size_t size = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].is_kept) {
      entries_[i].record_offset = size;
      size += entries_[i].from.size;
      order.push_back(i);
    }
  }
  if (records_capacity_ < size) {
    records_.reset(new char[size]);
    records_capacity_ = size;
  }
  std::sort(order.begin(), order.end(), [this](size_t a, size_t b) {
    const MapAddress& x = entries_[a].from;
    const MapAddress& y = entries_[b].from;
    return x.slot != y.slot ? x.slot < y.slot : x.offset < y.offset;
  });
  std::vector<FileRead> reads;
  for (const size_t entry : order) {
    const MapAddress& next = entries_[entry].from;
    const uint64_t next_end = uint64_t{next.offset} + next.size;
    bool is_neighbor = false;
    if (!reads.empty()) {
      const MapAddress& first = entries_[reads.back().entries.front()].from;
      const MapAddress& last = entries_[reads.back().entries.back()].from;
      is_neighbor =
          next.slot == first.slot &&
          next.offset <= uint64_t{last.offset} + last.size + context_.max_gap &&
          next_end - first.offset <= context_.read_size;
    }
    if (!is_neighbor) {
      reads.emplace_back();
    }
    reads.back().entries.push_back(entry);
  }
  return reads;
}

Status BlobRangeSortJob::OpenFileOf(const FileRead& read) {
  const MapAddress& first = entries_[read.entries.front()].from;
  File& file = files_.at(first.slot);
  if (!file.reader.IsEmpty()) {
    return Status::OK();
  }
  ReadOptions read_options(Env::IOActivity::kCompaction);
  read_options.rate_limiter_priority = context_.io_priority;
  const Status s = context_.cfd->blob_source()->GetBlobFileReader(
      read_options, file.number, &file.reader);
  if (!s.ok()) {
    return Unreadable(file, first.offset, s);
  }
  file.compression = file.reader.GetValue()->GetCompressionType();
  file.decompressor =
      writers_->Of(file.path_id)->DecompressorFor(file.compression);
  return s;
}

void BlobRangeSortJob::Execute(FileRead* read) {
  const MapAddress& first = entries_[read->entries.front()].from;
  const MapAddress& last = entries_[read->entries.back()].from;
  const size_t size =
      static_cast<size_t>(uint64_t{last.offset} + last.size - first.offset);
  IOOptions io_options;
  io_options.rate_limiter_priority = context_.io_priority;
  io_options.io_activity = Env::IOActivity::kCompaction;
  std::unique_ptr<char[]> buffer = TakeBuffer(size);
  Slice bytes;
  read->status =
      ReadBlobFile(files_.at(first.slot).reader.GetValue()->file_reader(),
                   io_options, first.offset, size, buffer.get(), &bytes);
  if (read->status.ok()) {
    read->bytes_read = size;
    for (const size_t i : read->entries) {
      const Entry& entry = entries_[i];
      memcpy(records_.get() + entry.record_offset,
             bytes.data() + (entry.from.offset - first.offset),
             entry.from.size);
    }
  }
  if (size <= context_.read_size) {
    std::lock_guard<std::mutex> lock(buffers_mutex_);
    buffers_.push_back(std::move(buffer));
  }
}

std::unique_ptr<char[]> BlobRangeSortJob::TakeBuffer(size_t size) {
  if (size <= context_.read_size) {
    std::lock_guard<std::mutex> lock(buffers_mutex_);
    if (!buffers_.empty()) {
      std::unique_ptr<char[]> buffer = std::move(buffers_.back());
      buffers_.pop_back();
      return buffer;
    }
  }
  return std::unique_ptr<char[]>(new char[std::max(size, context_.read_size)]);
}

Status BlobRangeSortJob::Unreadable(const File& file, uint64_t offset,
                                    const Status& s) {
  unreadable_file_ = file.number;
  failed_files_.insert(file.number);
  return s.IsCorruption()
             ? CorruptBlobFile(
                   PathLayout::BlobFileName(context_.cfd->ioptions().cf_paths,
                                            file.number, file.path_id),
                   offset, s.getState())
             : s;
}

Status BlobRangeSortJob::WriteChunk() {
  Status s;
  for (const Entry& entry : entries_) {
    if (entry.is_kept) {
      continue;
    }
    s = context_.check();
    if (!s.ok()) {
      break;
    }
    File& file = files_.at(entry.from.slot);
    file.has_copied = true;
    BlobCopyWriter::Value value;
    value.key = Slice(keys_.data() + entry.key_offset, entry.key_size);
    MappedBlobRecord record;
    s = record.Parse(
        Slice(records_.get() + entry.record_offset, entry.from.size),
        entry.name);
    if (s.ok() && record.key != value.key) {
      s = Status::Corruption("key does not match that of the SST file");
    }
    if (!s.ok()) {
      return Unreadable(file, entry.from.offset, s);
    }
    value.name = entry.name;
    value.is_direct = entry.is_direct;
    value.from = entry.from;
    value.stored = record.value;
    value.blob_crc = record.header.blob_crc;
    value.compression = file.compression;
    value.decompressor = file.decompressor.get();
    BlobCopyWriter::Outcome outcome;
    s = writers_->Of(file.path_id)->Add(value, &outcome);
    switch (outcome) {
      case BlobCopyWriter::Outcome::kAdded:
        ++stats_.values_copied;
        break;
      case BlobCopyWriter::Outcome::kTooLarge:
      case BlobCopyWriter::Outcome::kNoRoom:
        ++stats_.values_left;
        break;
      case BlobCopyWriter::Outcome::kDamaged:
        return Unreadable(file, entry.from.offset, s);
      case BlobCopyWriter::Outcome::kFailed:
        return s;
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
