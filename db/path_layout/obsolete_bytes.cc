//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/obsolete_bytes.h"

#include <unordered_set>

#include "db/address_map/address_map_store.h"
#include "db/column_family.h"
#include "db/delta/delta_version.h"
#include "db/path_layout/path_layout.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Calls fn(number, path id, size in bytes) for each file of a Version. Blob
// files of an address map are left out if has_mapped is false.
template <typename Fn>
void ForEachFile(const VersionStorageInfo& files, bool has_mapped, Fn fn) {
  for (int level = 0; level < files.num_levels(); ++level) {
    for (const FileMetaData* file : files.LevelFiles(level)) {
      fn(file->fd.GetNumber(), file->fd.GetPathId(), file->fd.GetFileSize());
    }
  }
  for (const auto& file : files.GetBlobFiles()) {
    if (has_mapped || !file->IsMapped()) {
      fn(file->GetBlobFileNumber(), file->GetPathId(), file->GetBlobFileSize());
    }
  }
  if (files.delta() != nullptr) {
    files.delta()->ForEachFile([&fn](const DeltaVersion::FilePtr& file) {
      fn(file->number(), file->description().path_id, file->description().size);
    });
  }
}

}  // namespace

std::vector<uint64_t> ObsoleteBytes(ColumnFamilyData* cfd, size_t num_paths) {
  std::vector<uint64_t> bytes(num_paths);
  // The numbers of the files that were counted or that are not obsolete.
  std::unordered_set<uint64_t> known;
  const auto add = [&](uint64_t number, uint32_t path_id, uint64_t size) {
    if (known.insert(number).second) {
      bytes[PathLayout::IndexOf(path_id, num_paths)] += size;
    }
  };
  ForEachFile(*cfd->current()->storage_info(), /*has_mapped=*/true,
              [&known](uint64_t number, uint32_t /*path_id*/,
                       uint64_t /*size*/) { known.insert(number); });
  // Versions do not keep blob files of an address map on disk. The map does.
  const Version* const end = cfd->dummy_versions();
  for (const Version* version = end->Next(); version != end;
       version = version->Next()) {
    if (version != cfd->current()) {
      ForEachFile(*version->storage_info(), /*has_mapped=*/false, add);
    }
  }
  if (cfd->address_map_store() != nullptr) {
    for (const BlobFileSlotTable::Info& file :
         cfd->address_map_store()->files()->GetAll()) {
      if (file.state == BlobFileSlotTable::State::kDead ||
          file.state == BlobFileSlotTable::State::kAbandoned) {
        add(file.number, file.path_id, file.size);
      }
    }
  }
  VersionSet* const versions = cfd->current()->version_set();
  for (const ObsoleteFileInfo& file : versions->obsolete_files()) {
    if (file.column_family_id == cfd->GetID() && file.metadata != nullptr) {
      add(file.metadata->fd.GetNumber(), file.metadata->fd.GetPathId(),
          file.metadata->fd.GetFileSize());
    }
  }
  for (const ObsoleteBlobFileInfo& file : versions->obsolete_blob_files()) {
    if (file.column_family_id == cfd->GetID()) {
      add(file.GetBlobFileNumber(), file.path_id, file.file_size);
    }
  }
  for (const ObsoleteDeltaFile& file :
       versions->strata()->obsolete_delta_files()) {
    if (file.column_family_id == cfd->GetID()) {
      add(file.number, file.path_id, file.size);
    }
  }
  return bytes;
}

}  // namespace ROCKSDB_NAMESPACE
