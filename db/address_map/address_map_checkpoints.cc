//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/address_map_checkpoints.h"

#include <atomic>
#include <cassert>
#include <cinttypes>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/column_family.h"
#include "db/manifest_ops.h"
#include "db/path_layout/path_layout.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "logging/logging.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::atomic<bool> use_images{true};

}  // namespace

void AddressMapCheckpoints::UseInThisProcess(bool use) { use_images = use; }

AddressMapCheckpoints::AddressMapCheckpoints(const AddressMapCheckpoint::Io& io,
                                             const std::string& dbname,
                                             Logger* logger)
    : io_(io), dbname_(dbname), logger_(logger) {}

Status AddressMapCheckpoints::ReadManifest() {
  if (has_manifest_) {
    return Status::OK();
  }
  std::string path;
  Status s = GetCurrentManifestPath(dbname_, io_.fs, /*is_retry=*/false, &path,
                                    &manifest_.manifest_number);
  if (s.ok()) {
    s = AddressMapCheckpoint::HashManifest(io_, path, &manifest_);
  }
  has_manifest_ = s.ok();
  return s;
}

AddressMapCheckpoint::Identity AddressMapCheckpoints::IdentityOf(
    uint32_t column_family_id, uint64_t hash_seed) const {
  AddressMapCheckpoint::Identity identity = manifest_;
  identity.column_family_id = column_family_id;
  identity.hash_seed = hash_seed;
  return identity;
}

void AddressMapCheckpoints::Find(uint64_t manifest_number,
                                 uint64_t manifest_size) {
  TEST_SYNC_POINT_CALLBACK("AddressMapCheckpoints::Find:Number",
                           &manifest_number);
  TEST_SYNC_POINT_CALLBACK("AddressMapCheckpoints::Find:Size", &manifest_size);
  if (!use_images) {
    return;
  }
  std::vector<std::string> names;
  Status s = io_.fs->GetChildren(dbname_, io_.io_options, &names, nullptr);
  for (const std::string& name : names) {
    uint64_t number = 0;
    FileType type;
    if (!ParseFileName(name, &number, &type) || type != kTempFile) {
      continue;
    }
    Image image;
    image.path = TempFileName(dbname_, number);
    s = AddressMapCheckpoint::ReadHeader(io_, image.path, &image.header);
    if (!s.ok()) {
      // Most temporary files are not images of an address map.
      if (!s.IsExpired()) {
        ROCKS_LOG_WARN(logger_,
                       "Images of address maps: a temporary file cannot be "
                       "read: %s",
                       s.ToString().c_str());
      }
      s = Status::OK();
      continue;
    }
    s = ReadManifest();
    if (s.ok() && (manifest_.manifest_number != manifest_number ||
                   manifest_.manifest_size != manifest_size)) {
      s = Status::TryAgain("the MANIFEST has changed since it was read");
    }
    if (!s.ok()) {
      break;
    }
    const uint32_t column_family_id = image.header.identity.column_family_id;
    if (image.header.identity ==
        IdentityOf(column_family_id, image.header.identity.hash_seed)) {
      images_[column_family_id] = std::move(image);
    } else {
      ROCKS_LOG_INFO(logger_,
                     "%s is an image of an address map for another state of "
                     "the MANIFEST and is not used",
                     image.path.c_str());
    }
  }
  if (!s.ok()) {
    images_.clear();
    ROCKS_LOG_WARN(logger_, "Images of address maps cannot be used: %s",
                   s.ToString().c_str());
  }
}

Status AddressMapCheckpoints::CheckBlobFiles(ColumnFamilyData& cfd) const {
  for (const auto& meta : cfd.current()->storage_info()->GetBlobFiles()) {
    if (!meta->IsMapped()) {
      continue;
    }
    const std::string name = PathLayout::BlobFileName(
        cfd.ioptions().cf_paths, meta->GetBlobFileNumber(), meta->GetPathId());
    uint64_t size = 0;
    const Status s = io_.fs->GetFileSize(name, io_.io_options, &size, nullptr);
    if (!s.ok()) {
      return s;
    }
    if (size != meta->GetBlobFileSize()) {
      return Status::Corruption(name + " has " + std::to_string(size) +
                                " bytes instead of " +
                                std::to_string(meta->GetBlobFileSize()));
    }
  }
  return Status::OK();
}

// The image and the MANIFEST were written one after the other, so they can only
// differ if one of them is wrong.
Status AddressMapCheckpoints::CompareBlobFiles(ColumnFamilyData& cfd,
                                               const std::string& image) {
  const BlobFileSlotTable& files = cfd.address_map_store()->file_table();
  size_t num_mapped = 0;
  for (const auto& meta : cfd.current()->storage_info()->GetBlobFiles()) {
    if (!meta->IsMapped()) {
      continue;
    }
    ++num_mapped;
    BlobFileSlotTable::Info info;
    if (!files.GetInfo(files.Find(meta->GetBlobFileNumber()), &info) ||
        info.size != meta->GetBlobFileSize() ||
        info.path_id != meta->GetPathId()) {
      return Status::Corruption(image,
                                "does not have blob file " +
                                    std::to_string(meta->GetBlobFileNumber()) +
                                    " as it is in the MANIFEST");
    }
  }
  const size_t num_files = files.GetAll().size();
  if (num_files != num_mapped) {
    return Status::Corruption(image, "has " + std::to_string(num_files) +
                                         " blob files, and the MANIFEST " +
                                         std::to_string(num_mapped));
  }
  return Status::OK();
}

bool AddressMapCheckpoints::Load(ColumnFamilyData* cfd, int num_threads) {
  const auto found = images_.find(cfd->GetID());
  if (found == images_.end()) {
    return false;
  }
  // Reports missing blob files at once, instead of only when the map has to be
  // rebuilt after a crash.
  if (const Status s = CheckBlobFiles(*cfd); !s.ok()) {
    ROCKS_LOG_WARN(logger_,
                   "[%s] Image of the address map not used, as a blob file is "
                   "missing or damaged: %s",
                   cfd->GetName().c_str(), s.ToString().c_str());
    return false;
  }
  const Image& image = found->second;
  const AddressMapCheckpoint::Identity expected =
      IdentityOf(cfd->GetID(), image.header.identity.hash_seed);
  if (cfd->address_map_store() == nullptr) {
    cfd->strata()->CreateAddressMapStore();
  }
  const uint64_t began = cfd->ioptions().clock->NowMicros();
  AddressMapStore* const blobs = cfd->address_map_store();
  blobs->SetHashSeed(expected.hash_seed);
  blobs->map()->Expect(image.header.num_entries);
  Status s = AddressMapCheckpoint::Load(io_, image.path, expected, num_threads,
                                        blobs->map());
  if (s.ok()) {
    s = CompareBlobFiles(*cfd, image.path);
  }
  if (s.ok()) {
    blobs->AdoptLoadedFiles();
    TEST_SYNC_POINT("AddressMapCheckpoints::Load:Loaded");
    ROCKS_LOG_INFO(
        logger_, "[%s] Address map loaded: %" PRIu64 " values, %" PRIu64 " ms",
        cfd->GetName().c_str(), blobs->map()->NumEntries(),
        (cfd->ioptions().clock->NowMicros() - began) / 1000);
    return true;
  }
  ROCKS_LOG_WARN(logger_, "[%s] Image of the address map not used: %s",
                 cfd->GetName().c_str(), s.ToString().c_str());
  cfd->strata()->CreateAddressMapStore();
  return false;
}

bool AddressMapCheckpoints::IsWorthSaving(const ColumnFamilyData& cfd) const {
  const AddressMapStore& blobs = *cfd.address_map_store();
  return blobs.ready() && blobs.IsExact() && blobs.map()->NumEntries() > 0;
}

Status AddressMapCheckpoints::Save(ColumnFamilyData* cfd, uint64_t unfinished,
                                   uint64_t number) {
  assert(IsWorthSaving(*cfd));
  TEST_SYNC_POINT("AddressMapCheckpoints::Save:Begin");
  AddressMapStore* const blobs = cfd->address_map_store();
  const uint64_t began = cfd->ioptions().clock->NowMicros();
  Status s = ReadManifest();
  if (s.ok()) {
    s = AddressMapCheckpoint::Write(
        io_, TempFileName(dbname_, unfinished), TempFileName(dbname_, number),
        /*directory=*/nullptr, IdentityOf(cfd->GetID(), blobs->hash_seed()),
        *blobs->map());
  }
  ROCKS_LOG_INFO(
      logger_, "[%s] Address map saved: %" PRIu64 " values, %" PRIu64 " ms: %s",
      cfd->GetName().c_str(), blobs->map()->NumEntries(),
      (cfd->ioptions().clock->NowMicros() - began) / 1000,
      s.ToString().c_str());
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
