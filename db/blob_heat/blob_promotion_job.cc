//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_heat/blob_promotion_job.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/blob/blob_source.h"
#include "db/blob_gc/blob_gc_storage.h"
#include "db/blob_gc/mapped_blob_record.h"
#include "db/blob_heat/blob_heat.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_read_group.h"
#include "db/column_family.h"
#include "db/path_layout/path_layout.h"
#include "file/random_access_file_reader.h"
#include "rocksdb/comparator.h"
#include "test_util/sync_point.h"
#include "util/compression.h"

namespace ROCKSDB_NAMESPACE {

BlobPromotionJob::BlobPromotionJob(Context context)
    : context_(std::move(context)),
      heat_(context_.cfd->address_map_store()->heat()),
      writers_(context_) {}

BlobPromotionJob::~BlobPromotionJob() = default;

Status BlobPromotionJob::Run() {
  const Comparator* const comparator = context_.cfd->user_comparator();
  std::sort(context_.candidates.begin(), context_.candidates.end(),
            [comparator](const PromotionQueue::Candidate& a,
                         const PromotionQueue::Candidate& b) {
              return comparator->Compare(a.key, b.key) < 0;
            });
  Status s;
  while (s.ok() && !reached_limit_ && next_ < context_.candidates.size()) {
    s = context_.check();
    std::vector<Entry> entries;
    if (s.ok()) {
      entries = FindNext();
      s = Read(&entries);
    }
    if (s.ok()) {
      s = Write(entries);
    }
    // After an error, the status of a read may not have been looked at.
    for (const Entry& entry : entries) {
      entry.read.PermitUncheckedError();
    }
    for (auto& file : files_) {
      file.second.reader.Reset();
    }
  }
  TEST_SYNC_POINT_CALLBACK("BlobPromotionJob::Run:BeforeFinish", &s);
  s = writers_.Finish(s);
  stats_.bytes_written = writers_.BytesWritten();
  return s;
}

std::vector<BlobPromotionJob::Entry> BlobPromotionJob::FindNext() {
  std::vector<Entry> entries;
  for (; next_ < context_.candidates.size() && entries.size() < kReads;
       ++next_) {
    const PromotionQueue::Candidate& candidate = context_.candidates[next_];
    AddressMap::Lookup found;
    if (heat_->Estimate(candidate.name.key) < heat_->threshold() ||
        !Find(candidate.name, &found)) {
      continue;
    }
    Entry& entry = entries.emplace_back();
    entry.candidate = &candidate;
    entry.file = &files_.at(found.entry.address.slot);
    entry.from = found.entry.address;
    entry.is_direct = found.entry.mode != MapMode::kVersioned;
  }
  return entries;
}

bool BlobPromotionJob::Find(const MapName& name, AddressMap::Lookup* found) {
  const AddressMap* const map = context_.cfd->address_map_store()->map();
  for (;;) {
    *found = map->FindByName(name, /*pin=*/false);
    if (!found->found ||
        found->entry.address.slot == BlobFileSlotTable::kLostSlot) {
      return false;
    }
    const auto file = files_.find(found->entry.address.slot);
    if (file != files_.end()) {
      if (file->second.is_avoided) {
        refused_.push_back(name.key);
      }
      return file->second.is_used;
    }
    // The slot may belong to another file by now. From here on it does not
    // change, so the next lookup says what is in it.
    AddFile(found->entry.address.slot);
  }
}

void BlobPromotionJob::AddFile(uint32_t slot) {
  File& file = files_[slot];
  BlobFileSlotTable::Info info;
  const bool is_pinned = context_.storage->PinSource(slot, &info);
  if (is_pinned) {
    file.number = info.number;
    file.path_id = static_cast<uint32_t>(PathLayout::IndexOf(
        info.path_id, context_.cfd->ioptions().cf_paths.size()));
  }
  file.is_avoided = is_pinned && context_.excluded.count(info.number) > 0;
  // Values that another job has just copied stay: its outputs may be abandoned.
  // So do those of a hot file on another path, which has to be drained: their
  // home is not the path of the file.
  file.is_used = is_pinned && info.state == BlobFileSlotTable::State::kLive &&
                 !info.hot.is_hot() && file.path_id != context_.path_id &&
                 !file.is_avoided;
  stats_.files_read += file.is_used ? 1 : 0;
  if (is_pinned && !file.is_used) {
    // Another job may drop the file. If a later file gets its slot, its values
    // stay, too.
    context_.storage->UnpinSource(slot);
  }
}

uint64_t BlobPromotionJob::RoomLeft() const {
  const uint64_t num_files = std::min(
      stats_.values_copied + 1,
      PathLayout::kMaxPaths +
          context_.room / std::max(context_.mutable_cf_options.blob_file_size,
                                   uint64_t{1}));
  const uint64_t used =
      writers_.BytesStored() +
      (stats_.values_copied + 1) * BlobCopyWriter::kMaxBytesPerRecord +
      num_files * BlobCopyWriter::kMaxBytesPerFile;
  return context_.room - std::min(context_.room, used);
}

Status BlobPromotionJob::Read(std::vector<Entry>* entries) {
  for (const Entry& entry : *entries) {
    const Status s = OpenFile(entry.file, entry);
    if (!s.ok()) {
      return s;
    }
  }
  IOOptions io_options;
  io_options.rate_limiter_priority = context_.io_priority;
  io_options.io_activity = Env::IOActivity::kCompaction;
  BlobReadPool::RunAll(
      context_.cfd->ioptions().clock, entries->size(),
      [entries, &io_options](size_t i) {
        Entry& entry = (*entries)[i];
        entry.buffer.reset(new char[entry.from.size]);
        entry.read =
            ReadBlobFile(entry.file->reader.GetValue()->file_reader(),
                         io_options, entry.from.offset, entry.from.size,
                         entry.buffer.get(), &entry.record);
      },
      kMaxReads - 1);
  for (const Entry& entry : *entries) {
    if (!entry.read.ok()) {
      return Unreadable(entry, entry.read);
    }
    stats_.bytes_read += entry.from.size;
  }
  return Status::OK();
}

Status BlobPromotionJob::OpenFile(File* file, const Entry& entry) {
  if (!file->reader.IsEmpty()) {
    return Status::OK();
  }
  ReadOptions read_options(Env::IOActivity::kCompaction);
  read_options.rate_limiter_priority = context_.io_priority;
  const Status s = context_.cfd->blob_source()->GetBlobFileReader(
      read_options, file->number, &file->reader);
  if (!s.ok()) {
    return Unreadable(entry, s);
  }
  file->compression = file->reader.GetValue()->GetCompressionType();
  file->decompressor =
      writers_.Of(context_.path_id, HotMark::WithHome(file->path_id))
          ->DecompressorFor(file->compression);
  return s;
}

Status BlobPromotionJob::Write(const std::vector<Entry>& entries) {
  Status s;
  for (auto entry = entries.begin();
       s.ok() && !reached_limit_ && entry != entries.end(); ++entry) {
    s = Copy(*entry);
  }
  return s;
}

Status BlobPromotionJob::Copy(const Entry& entry) {
  BlobCopyWriter::Value value;
  value.key = entry.candidate->key;
  MappedBlobRecord record;
  Status s = record.Parse(entry.record, entry.candidate->name);
  if (s.ok() && record.key != value.key) {
    s = Status::Corruption("key does not match that of the address map");
  }
  if (!s.ok()) {
    return Unreadable(entry, s);
  }
  value.name = entry.candidate->name;
  value.is_direct = entry.is_direct;
  value.from = entry.from;
  value.stored = record.value;
  value.blob_crc = record.header.blob_crc;
  value.compression = entry.file->compression;
  value.decompressor = entry.file->decompressor.get();
  // The old size does not say how large the value is in the new file, which may
  // be compressed in another way.
  const uint64_t max_value = heat_->max_value();
  value.max_size = std::min(RoomLeft(), max_value);
  BlobCopyWriter* const writer =
      writers_.Of(context_.path_id, HotMark::WithHome(entry.file->path_id));
  BlobCopyWriter::Outcome outcome;
  s = writer->Add(value, &outcome);
  switch (outcome) {
    case BlobCopyWriter::Outcome::kAdded:
      ++stats_.values_copied;
      break;
    case BlobCopyWriter::Outcome::kTooLarge:
      ++stats_.values_left;
      refused_.push_back(value.name.key);
      break;
    case BlobCopyWriter::Outcome::kNoRoom:
      if (writer->last_size() > max_value) {
        // No demotion could make room for it.
        ++stats_.values_left;
        refused_.push_back(value.name.key);
      } else {
        reached_limit_ = true;
      }
      break;
    case BlobCopyWriter::Outcome::kDamaged:
      return Unreadable(entry, s);
    case BlobCopyWriter::Outcome::kFailed:
      break;
  }
  return s;
}

Status BlobPromotionJob::Unreadable(const Entry& entry, const Status& s) {
  unreadable_file_ = entry.file->number;
  failed_files_.insert(entry.file->number);
  return s.IsCorruption()
             ? CorruptBlobFile(PathLayout::BlobFileName(
                                   context_.cfd->ioptions().cf_paths,
                                   entry.file->number, entry.file->path_id),
                               entry.from.offset, s.getState())
             : s;
}

}  // namespace ROCKSDB_NAMESPACE
