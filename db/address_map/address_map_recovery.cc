//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/address_map_recovery.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/address_map/mapped_key_scan.h"
#include "db/blob_v2/blob_record_index.h"
#include "db/blob_v2/blob_record_walker.h"
#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/path_layout/path_layout.h"
#include "db/version_set.h"
#include "file/random_access_file_reader.h"
#include "logging/logging.h"
#include "util/strata/key_for_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kBatch = 1024;
// Interval between progress lines in the LOG, in microseconds.
constexpr uint64_t kProgressMicros = 5 * 1000 * 1000;
// Maximum number of lost keys in an error message.
constexpr size_t kMaxNamedKeys = 20;
// Maximum number of damaged files in an error message.
constexpr size_t kMaxNamedFiles = 5;

IOOptions OpenIoOptions() {
  IOOptions options;
  options.io_activity = Env::IOActivity::kDBOpen;
  return options;
}

struct LessByName {
  bool operator()(const MapName& a, const MapName& b) const {
    return !(a.key == b.key)
               ? a.key < b.key
               : std::tie(a.seq, a.birth) < std::tie(b.seq, b.birth);
  }
};

}  // namespace

bool AddressMapRecovery::HasMapped(ColumnFamilyData& cfd) {
  const VersionStorageInfo& files = *cfd.current()->storage_info();
  bool has_mapped = files.strata().mapped_stats().num_mapped > 0;
  for (const auto& meta : files.GetBlobFiles()) {
    has_mapped |= meta->IsMapped();
  }
  return has_mapped;
}

Status AddressMapRecovery::Recover(ColumnFamilyData* cfd,
                                   const Options& options, Stats* stats) {
  *stats = Stats();
  if (!HasMapped(*cfd)) {
    if (cfd->address_map_store() != nullptr) {
      cfd->address_map_store()->SetReady();
    }
    return Status::OK();
  }
  if (cfd->address_map_store() == nullptr) {
    cfd->strata()->CreateAddressMapStore();
  }
  const uint64_t began = cfd->ioptions().clock->NowMicros();
  AddressMapRecovery recovery(cfd, options, stats);
  const Status s = recovery.Run();
  stats->micros = cfd->ioptions().clock->NowMicros() - began;
  ROCKS_LOG_INFO(cfd->ioptions().logger,
                 "[%s] Address map rebuilt: %" PRIu64 " values of %" PRIu64
                 " SST entries and %" PRIu64
                 " records in %zu blob files, "
                 "%" PRIu64 " damaged, %" PRIu64 " values lost, %" PRIu64
                 " index blocks restored, %" PRIu64 " ms: %s",
                 cfd->GetName().c_str(), stats->live_values, stats->entries,
                 stats->records, recovery.files_.size(), stats->damaged_files,
                 stats->lost_values, stats->restored_blocks,
                 stats->micros / 1000, s.ToString().c_str());
  return s;
}

AddressMapRecovery::AddressMapRecovery(ColumnFamilyData* cfd,
                                       const Options& options, Stats* stats)
    : cfd_(cfd),
      version_(cfd->current()),
      blobs_(cfd->address_map_store()),
      options_(options),
      stats_(stats),
      next_progress_(cfd->ioptions().clock->NowMicros() + kProgressMicros) {
  const VersionStorageInfo& files = *version_->storage_info();
  for (int level = 0; level < files.num_non_empty_levels(); ++level) {
    for (const FileMetaData* file : files.LevelFiles(level)) {
      num_entries_ += file->num_entries;
    }
  }
}

void AddressMapRecovery::LogProgress(uint64_t done, uint64_t total,
                                     const char* what) {
  const uint64_t now = cfd_->ioptions().clock->NowMicros();
  uint64_t next = next_progress_.load(std::memory_order_relaxed);
  if (now < next ||
      !next_progress_.compare_exchange_strong(next, now + kProgressMicros)) {
    return;
  }
  ROCKS_LOG_INFO(cfd_->ioptions().logger,
                 "[%s] Rebuilding the address map: %" PRIu64 " of %" PRIu64
                 " %s",
                 cfd_->GetName().c_str(), done, total, what);
}

Status AddressMapRecovery::Run() {
  blobs_->map()->Expect(
      version_->storage_info()->strata()->mapped_stats().num_mapped);
  Status s = ReadLayouts();
  if (s.ok()) {
    s = JoinSstFiles();
  }
  if (s.ok()) {
    s = JoinRecordIndexes();
  }
  // If there are damaged files, a name without an address may belong to a lost
  // value.
  if (s.ok() && options_.all_versions && !HasDamagedFiles()) {
    s = ForgetDead();
  }
  stats_->records = records_;
  stats_->restored_blocks = restored_blocks_;
  stats_->live_values = blobs_->map()->NumEntries();
  if (s.ok()) {
    s = CheckLost();
  }
  if (s.ok()) {
    SettleDamagedFiles();
    blobs_->SetReady();
  }
  return s;
}

Status AddressMapRecovery::OpenBlobFile(
    const BlobFile& file,
    std::unique_ptr<RandomAccessFileReader>* reader) const {
  const ImmutableOptions& ioptions = cfd_->ioptions();
  std::unique_ptr<FSRandomAccessFile> opened;
  const Status s = ioptions.fs->NewRandomAccessFile(
      file.name, options_.file_options, &opened, nullptr);
  if (s.ok()) {
    *reader = std::make_unique<RandomAccessFileReader>(
        std::move(opened), file.name, ioptions.clock, nullptr, ioptions.stats);
  }
  return s;
}

Status AddressMapRecovery::ReadLayout(const BlobFileMetaData& meta,
                                      BlobFile* file) const {
  std::unique_ptr<RandomAccessFileReader> reader;
  Status s = OpenBlobFile(*file, &reader);
  uint64_t size = 0;
  if (s.ok()) {
    s = cfd_->ioptions().fs->GetFileSize(file->name, OpenIoOptions(), &size,
                                         nullptr);
  }
  const uint64_t expected = meta.GetSharedMeta()->GetBlobFileSize();
  if (s.ok() && size != expected) {
    s = Status::Corruption("Blob file " + file->name + " has " +
                           std::to_string(size) + " bytes instead of " +
                           std::to_string(expected));
  }
  if (s.ok()) {
    s = BlobFileLayoutV2::Read(reader.get(), OpenIoOptions(), size,
                               &file->layout);
    file->has_layout = s.ok();
  }
  return s;
}

bool AddressMapRecovery::IsDamage(const Status& s) const {
  return s.IsCorruption() || s.IsNotFound() || s.IsPathNotFound();
}

Status AddressMapRecovery::ReadLayouts() {
  bool has_seed = false;
  for (const auto& meta : version_->storage_info()->GetBlobFiles()) {
    if (!meta->IsMapped()) {
      continue;
    }
    BlobFile file;
    file.number = meta->GetBlobFileNumber();
    file.name = PathLayout::BlobFileName(cfd_->ioptions().cf_paths, file.number,
                                         meta->GetPathId());
    file.damage = ReadLayout(*meta, &file);
    if (!file.damage.ok() && !IsDamage(file.damage)) {
      return file.damage;
    }
    if (file.has_layout && !has_seed) {
      blobs_->SetHashSeed(file.layout.header.hash_seed);
      has_seed = true;
    }
    file.slot = blobs_->AddLiveFile(file.number, meta->GetPathId(),
                                    file.layout.header.compression,
                                    meta->GetSharedMeta()->GetBlobFileSize());
    if (file.slot == BlobFileSlotTable::kLostSlot) {
      return Status::Aborted("The address map has no room for a blob file");
    }
    files_.push_back(std::move(file));
  }
  return Status::OK();
}

Status AddressMapRecovery::JoinSstFiles() {
  // Inserts the names into the map, without addresses.
  class Joiner : public MappedKeyScan::Visitor {
   public:
    Joiner(AddressMapStore* blobs, std::function<void()> progress)
        : blobs_(blobs), progress_(std::move(progress)) {}

    Status Visit(const ParsedInternalKey& key,
                 const MappedBlobIndex& index) override {
      AddressMap::Record record;
      record.name =
          MapName{blobs_->HashOf(key.user_key), key.sequence, index.birth};
      record.direct = index.mode == MappedBlobIndex::Mode::kDirect;
      batch_.push_back(record);
      return batch_.size() < kBatch ? Status::OK() : Flush();
    }
    Status FinishRange() override { return Flush(); }

   private:
    Status Flush() {
      const Status s = blobs_->map()->InsertBatch(BlobFileSlotTable::kLostSlot,
                                                  batch_.data(), batch_.size());
      batch_.clear();
      progress_();
      return s;
    }

    AddressMapStore* const blobs_;
    const std::function<void()> progress_;
    std::vector<AddressMap::Record> batch_;
  };
  MappedKeyScan scan(cfd_, version_, options_.file_options,
                     Env::IOActivity::kDBOpen, options_.num_threads,
                     options_.all_versions);
  const Status s = scan.Run([&] {
    return std::make_unique<Joiner>(blobs_, [&] {
      LogProgress(scan.NumEntries(), num_entries_, "SST entries");
    });
  });
  stats_->entries = scan.NumEntries();
  return s;
}

Status AddressMapRecovery::JoinRecordIndexes() {
  return MappedKeyScan::ForEach(
      files_.size(), options_.num_threads,
      [this, done = std::make_shared<std::atomic<uint64_t>>(0)](size_t i) {
        Status s;
        if (files_[i].has_layout) {
          s = JoinRecordIndex(&files_[i]);
        }
        LogProgress(++*done, files_.size(), "record indexes");
        return s;
      });
}

Status AddressMapRecovery::JoinRecordIndex(BlobFile* file) {
  std::unique_ptr<RandomAccessFileReader> opened;
  Status s = OpenBlobFile(*file, &opened);
  uint64_t records = 0;
  if (!s.ok()) {
    // The error is handled below.
  } else if (file->layout.header.hash_seed != blobs_->hash_seed()) {
    BlobRecordWalker walker(opened.get(), OpenIoOptions(), blobs_->hash_seed(),
                            BlobHeaderV2::kSize, file->layout.index_offset);
    while (s.ok() && !walker.AtEnd()) {
      AddressMap::Record record;
      s = walker.Next(&record);
      if (s.ok()) {
        SetAddress(record, *file);
        ++records;
      }
    }
  } else {
    RecordIndexReader reader(opened.get(), OpenIoOptions(), file->layout);
    reader.SkipLostBlocks();
    std::vector<AddressMap::Record> batch;
    do {
      s = reader.Next(&batch);
      for (const AddressMap::Record& record : batch) {
        SetAddress(record, *file);
      }
      records += batch.size();
    } while (s.ok() && !batch.empty());
    if (reader.NumRestoredBlocks() > 0) {
      restored_blocks_ += reader.NumRestoredBlocks();
      ROCKS_LOG_WARN(cfd_->ioptions().logger,
                     "[%s] %" PRIu64
                     " damaged blocks of a record index were restored from the "
                     "records: %s",
                     cfd_->GetName().c_str(), reader.NumRestoredBlocks(),
                     reader.FirstDamage().ToString().c_str());
    }
    if (s.ok()) {
      s = reader.FirstLoss();
    }
  }
  records_ += records;
  if (IsDamage(s)) {
    file->damage = std::move(s);
    s = Status::OK();
  }
  return s;
}

void AddressMapRecovery::SetAddress(const AddressMap::Record& record,
                                    const BlobFile& file) {
  AddressMap* const map = blobs_->map();
  const MapAddress address{file.slot, record.offset, record.size};
  MapAddress old;  // the address of a lost value
  while (!map->SwapAddress(record.name, old, address)) {
    const AddressMap::Lookup found = map->FindByName(record.name, false);
    if (!found.found ||
        blobs_->files()->Number(found.entry.address.slot) >= file.number) {
      return;
    }
    old = found.entry.address;
  }
}

Status AddressMapRecovery::ForgetDead() {
  // Names without an address, except the newest one of each key.
  std::set<MapName, LessByName> dead;
  for (uint32_t part = 0; part < AddressMap::kNumParts; ++part) {
    blobs_->map()->ForEachInPart(part, [&](const AddressMap::Entry& entry) {
      if (entry.address.slot == BlobFileSlotTable::kLostSlot) {
        dead.insert(entry.name);
      }
    });
  }
  if (dead.empty()) {
    return Status::OK();
  }
  class Newest : public MappedKeyScan::Visitor {
   public:
    Newest(const AddressMapStore* blobs, std::set<MapName, LessByName>* names)
        : blobs_(blobs), names_(names) {}
    Status Visit(const ParsedInternalKey& key,
                 const MappedBlobIndex& index) override {
      names_->erase(
          MapName{blobs_->HashOf(key.user_key), key.sequence, index.birth});
      return Status::OK();
    }
    Status FinishRange() override { return Status::OK(); }

   private:
    const AddressMapStore* const blobs_;
    std::set<MapName, LessByName>* const names_;
  };
  MappedKeyScan scan(cfd_, version_, options_.file_options,
                     Env::IOActivity::kDBOpen, /*num_threads=*/1);
  const Status s =
      scan.Run([&] { return std::make_unique<Newest>(blobs_, &dead); });
  if (s.ok()) {
    for (const MapName& name : dead) {
      blobs_->map()->Remove(name);
    }
  }
  return s;
}

bool AddressMapRecovery::HasDamagedFiles() const {
  return std::any_of(files_.begin(), files_.end(),
                     [](const BlobFile& file) { return !file.damage.ok(); });
}

std::string AddressMapRecovery::DescribeDamage() const {
  size_t damaged = 0;
  std::string result;
  for (const BlobFile& file : files_) {
    if (!file.damage.ok() && ++damaged <= kMaxNamedFiles) {
      result += (damaged == 1 ? " Damaged blob files: " : "; ") + file.name +
                " (" + file.damage.ToString() + ")";
    }
  }
  if (damaged > kMaxNamedFiles) {
    result += "; and " + std::to_string(damaged - kMaxNamedFiles) + " more";
  }
  return damaged == 0 ? result : result + ".";
}

void AddressMapRecovery::SettleDamagedFiles() {
  for (const BlobFile& file : files_) {
    if (file.damage.ok()) {
      continue;
    }
    ++stats_->damaged_files;
    ROCKS_LOG_ERROR(cfd_->ioptions().logger,
                    "[%s] Damaged blob file %s: %s. %s",
                    cfd_->GetName().c_str(), file.name.c_str(),
                    file.damage.ToString().c_str(),
                    stats_->lost_values > 0
                        ? "Reads of keys whose values were not found return "
                          "Corruption. The file is kept"
                        : "All needed values were found");
    if (stats_->lost_values > 0) {
      blobs_->KeepDamagedFile(file.number);
    }
  }
}

Status AddressMapRecovery::CheckLost() {
  // Compares the counters first: nearly always no value is lost.
  uint64_t with_address = 0;
  for (const BlobFile& file : files_) {
    with_address += blobs_->files()->LiveCount(file.slot);
  }
  stats_->lost_values = blobs_->map()->NumEntries() - with_address;
  if (stats_->lost_values == 0 || options_.allow_lost_values) {
    return Status::OK();
  }
  // Collects the keys for the error message, if it may have them.
  class Collector : public MappedKeyScan::Visitor {
   public:
    Collector(const AddressMapStore* blobs, std::string* keys)
        : blobs_(blobs), keys_(keys) {}

    Status Visit(const ParsedInternalKey& key,
                 const MappedBlobIndex& index) override {
      const AddressMap::Lookup found = blobs_->map()->FindByName(
          MapName{blobs_->HashOf(key.user_key), key.sequence, index.birth},
          false);
      if (found.found &&
          found.entry.address.slot == BlobFileSlotTable::kLostSlot) {
        *keys_ += " " + key.user_key.ToString(/*hex=*/true) + "@" +
                  std::to_string(key.sequence);
        ++named_;
      }
      return named_ < kMaxNamedKeys ? Status::OK() : Status::Incomplete();
    }
    Status FinishRange() override { return Status::OK(); }

   private:
    const AddressMapStore* const blobs_;
    std::string* const keys_;
    size_t named_ = 0;
  };
  std::string keys;
  if (cfd_->ioptions().allow_data_in_errors) {
    MappedKeyScan scan(cfd_, version_, options_.file_options,
                       Env::IOActivity::kDBOpen, /*num_threads=*/1);
    scan.Run([&] { return std::make_unique<Collector>(blobs_, &keys); })
        .PermitUncheckedError();
  } else {
    keys = std::string(" ") + kRedactedKey;
  }
  return Status::Corruption(
      "Column family " + cfd_->GetName() +
      ": no blob file contains the values of " +
      std::to_string(stats_->lost_values) + " keys." + DescribeDamage() +
      " Restore the blob files if there is a copy. Without them, open the "
      "database with paranoid_checks = false: reads of these keys then return "
      "Corruption, and all other keys can be read. Deleting or overwriting the "
      "keys, which ldb verify_address_map lists, ends the damage. RepairDB() "
      "is only needed if the MANIFEST or SST files are damaged as well; it "
      "does not restore values. The first keys:" +
      keys);
}

}  // namespace ROCKSDB_NAMESPACE
