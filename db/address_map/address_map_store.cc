//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/address_map_store.h"

#include <algorithm>
#include <cassert>
#include <random>
#include <utility>

#include "db/address_map/map_commit_observer.h"
#include "db/address_map/map_work_queue.h"
#include "db/address_map/mapped_record_name.h"
#include "db/blob/blob_file_cache.h"
#include "db/blob/blob_index.h"
#include "db/blob/blob_source.h"
#include "db/blob_heat/blob_heat.h"
#include "db/column_family.h"
#include "db/path_layout/path_layout.h"
#include "db/scan_sort/scan_debts.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

uint64_t RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

AddressMapStore::AddressMapStore(uint32_t column_family_id,
                                 const ImmutableOptions& ioptions,
                                 const TableFactory& table_factory,
                                 BlobFileCache* blob_file_cache)
    : column_family_id_(column_family_id),
      ioptions_(ioptions),
      blob_file_cache_(blob_file_cache),
      row_cache_(ioptions.row_cache == nullptr
                     ? nullptr
                     : std::make_unique<MappedRowCache>(ioptions.row_cache,
                                                        ioptions.stats)),
      scan_debts_(std::make_unique<ScanDebts>(ioptions.user_comparator)),
      heat_(
          std::make_unique<BlobHeat>(ioptions.cf_paths.size(), ioptions.stats)),
      hash_seed_(RandomSeed()),
      charge_(MapMemoryReservation::Create(&table_factory, ioptions.logger)),
      map_(AddressMap::Options{/*expected_entries=*/0, charge_.get()}, &files_),
      blocked_charge_(
          MapMemoryReservation::Create(&table_factory, ioptions.logger)),
      blocked_removals_(&map_, blocked_charge_.get()),
      range_deletions_(ioptions.user_comparator),
      gc_(ioptions.clock, ioptions.logger) {}

AddressMapStore::~AddressMapStore() { assert(pending_.empty()); }

bool AddressMapStore::Any(ColumnFamilySet* column_families) {
  for (ColumnFamilyData* cfd : *column_families) {
    if (cfd->address_map_store() != nullptr) {
      return true;
    }
  }
  return false;
}

void AddressMapStore::ToBlobIndex(const AddressMap::Lookup& found,
                                  size_t user_key_size,
                                  std::string* blob_index) const {
  const MapAddress& address = found.entry.address;
  const uint64_t before_value = BlobRecordV2::ValueOffset(user_key_size);
  assert(found.found && found.pin.pinned());
  assert(address.size >= before_value);
  BlobIndex::EncodeBlob(
      blob_index, files_.Number(address.slot), address.offset + before_value,
      address.size - before_value, files_.Compression(address.slot));
}

Status AddressMapStore::Fetch(BlobSource* source,
                              const ReadOptions& read_options,
                              const Slice& user_key, SequenceNumber seq,
                              const MappedBlobIndex& index,
                              PinnableSlice* value,
                              uint64_t* bytes_read) const {
  const AddressMap::Lookup found = map_.FindByName(
      MapName{HashOf(user_key), seq, index.birth}, /*pin=*/true);
  return found.found ? FetchFound(source, read_options, user_key, seq, index,
                                  found, value, bytes_read)
                     : Status::NotFound();
}

Status AddressMapStore::FetchFound(BlobSource* source,
                                   const ReadOptions& read_options,
                                   const Slice& user_key, SequenceNumber seq,
                                   const MappedBlobIndex& index,
                                   const AddressMap::Lookup& found,
                                   PinnableSlice* value,
                                   uint64_t* bytes_read) const {
  if (found.entry.address.slot == BlobFileSlotTable::kLostSlot) {
    return Status::NotFound("The value is lost");
  }
  std::string encoded;
  ToBlobIndex(found, user_key.size(), &encoded);
  BlobIndex address;
  const Status s = address.DecodeFrom(encoded);
  if (!s.ok()) {
    return s;
  }
  std::string name;
  MappedRecordName::Encode(user_key, seq, index.birth, &name);
  value->Reset();
  return source->GetBlob(read_options, name, address.file_number(),
                         address.offset(), /*file_size=*/0, address.size(),
                         address.compression(), /*prefetch_buffer=*/nullptr,
                         value, bytes_read);
}

void AddressMapStore::AdoptLoadedFiles() {
  for (const BlobFileSlotTable::Info& file : files_.GetAll()) {
    blob_file_cache_->paths().Register(file.number, file.path_id);
  }
  SetReady();
}

AddressMapStore::FilePin::FilePin(AddressMapStore* blobs, uint64_t number)
    : blobs_(blobs) {
  if (blobs == nullptr) {
    return;
  }
  slot_ = blobs->files_.PinFileForJob(number);
  if (pinned()) {
    TEST_SYNC_POINT("AddressMapStore::FilePin:Pinned");
  }
}

AddressMapStore::FilePin::~FilePin() {
  if (pinned()) {
    blobs_->files_.UnpinForJob(slot_);
  }
}

uint64_t AddressMapStore::GarbageCount(const BlobFileMetaData& meta) const {
  uint64_t count = 0;
  uint64_t bytes = 0;
  if (!files_.FindLive(meta.GetBlobFileNumber(), &count, &bytes)) {
    return 0;
  }
  const uint64_t used = count + meta.GetGarbageBlobCount();
  return meta.GetTotalBlobCount() - std::min(used, meta.GetTotalBlobCount());
}

uint64_t AddressMapStore::GarbageBytes(const BlobFileMetaData& meta) const {
  uint64_t count = 0;
  uint64_t bytes = 0;
  if (!files_.FindLive(meta.GetBlobFileNumber(), &count, &bytes)) {
    return 0;
  }
  const uint64_t used = bytes + meta.GetGarbageBlobBytes();
  return meta.GetTotalBlobBytes() - std::min(used, meta.GetTotalBlobBytes());
}

uint32_t AddressMapStore::AddLiveFile(uint64_t number, uint32_t path_id,
                                      CompressionType compression,
                                      uint64_t size) {
  blob_file_cache_->paths().Register(number, path_id);
  return files_.Add(number, path_id, compression,
                    BlobFileSlotTable::State::kLive, size);
}

void AddressMapStore::MarkHotFiles(const VersionStorageInfo& version) {
  for (const auto& meta : version.GetBlobFiles()) {
    const uint32_t slot = meta->hot().is_hot()
                              ? files_.Find(meta->GetBlobFileNumber())
                              : BlobFileSlotTable::kLostSlot;
    if (slot != BlobFileSlotTable::kLostSlot) {
      files_.SetHot(slot, meta->hot());
    }
  }
}

void AddressMapStore::KeepDamagedFile(uint64_t number) {
  const uint32_t slot = files_.Find(number);
  [[maybe_unused]] const bool pinned = files_.PinForJob(slot);
  assert(pinned);
  gc_.Keep(number);
  SetInexact();
}

void AddressMapStore::SetWorkQueue(MapWorkQueue* queue,
                                   std::function<void()> on_bounds_released) {
  work_queue_ = queue;
  files_.SetOnDroppable([this] { SignalWork(); });
  read_bounds_.SetOnClear(std::move(on_bounds_released));
}

void AddressMapStore::SignalWork() {
  if (work_queue_ != nullptr) {
    work_queue_->Signal(column_family_id_);
  }
}

void AddressMapStore::AddPending(MapCommitObserver* job) {
  pending_.push_back(job);
}

void AddressMapStore::RemovePending(MapCommitObserver* job) {
  const auto found = std::find(pending_.begin(), pending_.end(), job);
  assert(found != pending_.end());
  pending_.erase(found);
}

void AddressMapStore::OnVersionAppended(Version& appended) {
  next_file_number_ = appended.version_set()->current_next_file_number();
  appended_version_.store(appended.GetVersionNumber(),
                          std::memory_order_release);
  const VersionStorageInfo& version = *appended.storage_info();
  for (MapCommitObserver* job : pending_) {
    job->OnVersionAppended(version);
  }
  // Only the edits that drop these files remove files of the map from the
  // Version.
  for (uint64_t number : dropping_) {
    if (version.GetBlobFileMetaData(number) == nullptr) {
      files_.Drop(files_.Find(number));
    }
  }
#ifndef NDEBUG
  for (const BlobFileSlotTable::Info& file : files_.GetAll()) {
    assert(file.state != BlobFileSlotTable::State::kLive ||
           version.GetBlobFileMetaData(file.number) != nullptr);
  }
#endif  // !NDEBUG
}

void AddressMapStore::Retire(std::unique_ptr<DeferredRemovals>&& removals,
                             uint64_t version_number) {
  // Whether names were dropped is asked when the others are removed.
  assert(removals->complete() || removals->Count() > 0);
  if (removals->Count() > 0) {
    retired_removals_.Add(std::move(removals), version_number);
    SignalWork();
  }
}

void AddressMapStore::RefuseReads(const Status& s) {
  assert(!s.ok());
  std::lock_guard<std::mutex> lock(read_refusal_mutex_);
  if (read_refusal_.ok()) {
    read_refusal_ = s;
  }
  SetInexact();
  refuses_reads_.store(true, std::memory_order_release);
}

Status AddressMapStore::read_refusal() const {
  std::lock_guard<std::mutex> lock(read_refusal_mutex_);
  return read_refusal_;
}

DeferredRemovals::NewSpillFile AddressMapStore::SpillFiles(
    Version* version, const std::string& dbname) {
  return [this, dbname,
          versions = version->version_set()](std::unique_ptr<SpillFile>* file) {
    return spill_files_.Create(ioptions_.fs.get(), dbname,
                               versions->NewFileNumber(), file);
  };
}

std::vector<BlobGcPicker::File> AddressMapStore::FilesForGc(
    const VersionStorageInfo& version, bool also_failed) const {
  std::vector<BlobGcPicker::File> files;
  for (const auto& meta : version.GetBlobFiles()) {
    if (!meta->IsMapped()) {
      continue;
    }
    BlobGcPicker::File& file = files.emplace_back();
    file.number = meta->GetBlobFileNumber();
    file.size = meta->GetBlobFileSize();
    file.index_size = meta->GetIndexBytes();
    // Maps the path id to an existing path: files whose path ids stand for the
    // same path belong together, and copies get the id of an existing path.
    file.path_id = static_cast<uint32_t>(
        PathLayout::IndexOf(meta->GetPathId(), ioptions_.cf_paths.size()));
    file.hot = meta->hot();
    file.is_survivor = meta->IsCollected();
    const uint64_t records = meta->GetTotalBlobBytes();
    const uint64_t live = records - std::min(records, GarbageBytes(*meta));
    file.live_size =
        live == records
            ? file.size
            : std::min(file.size,
                       static_cast<uint64_t>(static_cast<double>(file.size) *
                                             static_cast<double>(live) /
                                             static_cast<double>(records)));
    // A file without live values needs no job.
    file.is_busy = live == 0;
  }
  gc_.MarkBusy(&files, also_failed);
  // A promotion has no files of its own. Its copies count until the outcome of
  // the edit is known.
  if (gc_.HasJobs() || gc_.HasCopies() || gc_.is_sorting() ||
      heat_->is_busy()) {
    for (const BlobFileSlotTable::Info& info : files_.GetAll()) {
      if (info.state == BlobFileSlotTable::State::kCopies) {
        BlobGcPicker::File& file = files.emplace_back();
        file.number = info.number;
        file.size = file.live_size = info.size;
        file.path_id = info.path_id;
        file.hot = info.hot;
        file.is_survivor = file.is_busy = true;
      }
    }
  }
  return files;
}

uint64_t AddressMapStore::AddGcDebt(uint64_t compaction_needed_bytes,
                                    const VersionStorageInfo& version,
                                    const MutableCFOptions& options) {
  const double limit = options.blob_gc_space_amp_limit;
  const uint64_t soft = options.soft_pending_compaction_bytes_limit;
  if (!enabled() || !ready_ || !gc_.allowed() || limit == 0 || soft == 0) {
    gc_.EndSlowdown();
    return compaction_needed_bytes;
  }
  return gc_.AddDebt(compaction_needed_bytes, FilesForGc(version), limit, soft,
                     options.hard_pending_compaction_bytes_limit);
}

uint32_t AddressMapStore::AddBuildingFile(const MappedBlobFile& file) {
  blob_file_cache_->paths().Register(file.number, file.path_id);
  const uint32_t slot = files_.Add(file.number, file.path_id, file.compression);
  if (slot == BlobFileSlotTable::kLostSlot) {
    blob_file_cache_->paths().Unregister(file.number);
  } else {
    files_.SetHot(slot, file.hot);
  }
  return slot;
}

uint32_t AddressMapStore::AddPendingFile(const MappedBlobFile& file) {
  const uint32_t slot = AddBuildingFile(file);
  if (slot != BlobFileSlotTable::kLostSlot) {
    files_.Publish(slot, file.size);
  }
  return slot;
}

uint32_t AddressMapStore::AddFileOfCopies(const MappedBlobFile& file) {
  const uint32_t slot = AddBuildingFile(file);
  if (slot != BlobFileSlotTable::kLostSlot) {
    files_.PublishCopies(slot, file.size);
  }
  return slot;
}

void AddressMapStore::AbandonFile(uint32_t slot) { files_.Abandon(slot); }

std::vector<uint64_t> AddressMapStore::AddDrops(
    const VersionStorageInfo& version, VersionEdit* edit,
    const std::vector<uint32_t>& own) {
  std::vector<BlobFileSlotTable::Info> files = files_.GetDroppable();
  for (const uint32_t slot : own) {
    BlobFileSlotTable::Info info;
    if (files_.GetInfo(slot, &info) &&
        info.state == BlobFileSlotTable::State::kLive && info.live_count == 0 &&
        info.job_pins == 1) {
      files.push_back(info);
    }
  }
  std::vector<uint64_t> numbers;
  for (const BlobFileSlotTable::Info& file : files) {
    const auto meta = version.GetBlobFileMetaData(file.number);
    if (meta != nullptr && dropping_.insert(file.number).second) {
      edit->AddBlobFileGarbage(file.number, meta->GetTotalBlobCount(),
                               meta->GetTotalBlobBytes());
      numbers.push_back(file.number);
    }
  }
  return numbers;
}

void AddressMapStore::FinishDrops(const std::vector<uint64_t>& numbers) {
  for (uint64_t number : numbers) {
    dropping_.erase(number);
  }
}

void AddressMapStore::CollectObsoleteFiles(VersionSet* versions,
                                           UnorderedSet<uint64_t>* keep) {
  if (files_.HasDead()) {
    for (const BlobFileSlotTable::Info& file : files_.CollectDead()) {
      HandOver(file, versions);
      files_.Free(file.slot);
    }
  }
  if (keep == nullptr) {
    return;
  }
  for (const BlobFileSlotTable::Info& file : files_.GetAll()) {
    // An abandoned file is kept while a MANIFEST whose last write failed may
    // name it. After that it is deleted like any unknown file.
    if (file.state == BlobFileSlotTable::State::kAbandoned &&
        versions->io_status().ok() && files_.Free(file.slot)) {
      Forget(file);
    } else {
      keep->insert(file.number);
    }
  }
  spill_files_.AddTo(keep);
}

void AddressMapStore::ReleaseAll(VersionSet* versions) {
  for (const BlobFileSlotTable::Info& file : files_.GetAll()) {
    HandOver(file, versions);
  }
}

void AddressMapStore::HandOver(const BlobFileSlotTable::Info& file,
                               VersionSet* versions) {
  Forget(file);
  versions->AddObsoleteBlobFile(
      file.number, PathLayout::Directory(ioptions_.cf_paths, file.path_id));
  ObsoleteBlobFileInfo& added = versions->obsolete_blob_files().back();
  added.column_family_id = column_family_id_;
  added.path_id = file.path_id;
  added.file_size = file.size;
}

bool AddressMapStore::Keeps(uint64_t number) const {
  return !ready_ || files_.Find(number) != BlobFileSlotTable::kLostSlot;
}

void AddressMapStore::Forget(const BlobFileSlotTable::Info& file) {
  gc_.Forget(file.number);
  blob_file_cache_->Evict(file.number);
  blob_file_cache_->paths().Unregister(file.number);
}

}  // namespace ROCKSDB_NAMESPACE
