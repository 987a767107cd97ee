//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/manifest_file_places.h"

#include <utility>

#include "db/delta/delta_edit.h"
#include "db/path_layout/manifest_records.h"
#include "db/path_layout/path_layout.h"
#include "db/version_edit.h"
#include "rocksdb/db.h"

namespace ROCKSDB_NAMESPACE {

namespace {

FileInManifest SstFile(int level, const FileMetaData& file) {
  FileInManifest result;
  result.type = kTableFile;
  result.path_id = file.fd.GetPathId();
  result.level = level;
  result.blob_path_mask = PathLayout::BlobPathMask(file);
  // Mapped entries may be in any blob file.
  result.oldest_blob_file =
      file.blob_refs.mapped.Any() ? 0 : file.oldest_blob_file_number;
  return result;
}

FileInManifest OtherFile(FileType type, uint32_t path_id) {
  FileInManifest result;
  result.type = type;
  result.path_id = path_id;
  return result;
}

// Applies the edit of a column family. A file that moves to another level is
// deleted and added by the same edit.
void Apply(const VersionEdit& edit, ManifestColumnFamily* family) {
  for (const auto& [level, number] : edit.GetDeletedFiles()) {
    const auto found = family->files.find(number);
    if (found != family->files.end() && found->second.level == level) {
      family->files.erase(found);
    }
  }
  for (const auto& [level, file] : edit.GetNewFiles()) {
    family->files[file.fd.GetNumber()] = SstFile(level, file);
  }
  for (const BlobFileAddition& file : edit.GetBlobFileAdditions()) {
    FileInManifest& added = family->files[file.GetBlobFileNumber()];
    added = OtherFile(kBlobFile, file.GetPathId());
    added.hot = file.hot();
  }
  if (const DeltaEdit* const deltas = edit.GetDeltaEdit()) {
    for (const DeltaFileDescription& file : deltas->files()) {
      FileInManifest& added = family->files[file.number];
      added = OtherFile(kDeltaFile, file.path_id);
      added.is_sorted = file.tier == DeltaFileDescription::Tier::kSorted;
    }
  }
}

}  // namespace

Status ReadManifestFilePlaces(FileSystem* fs, const std::string& fname,
                              uint64_t size, ManifestColumnFamilies* families) {
  families->clear();
  // A MANIFEST has no record that adds this family.
  (*families)[0].name = kDefaultColumnFamilyName;
  return ForEachManifestRecord(fs, fname, size, [&](const Slice& record) {
    VersionEdit edit;
    const Status s = edit.DecodeFrom(record);
    if (!s.ok()) {
      return s;
    }
    const uint32_t id = edit.GetColumnFamily();
    if (edit.IsColumnFamilyAdd()) {
      (*families)[id].name = edit.GetColumnFamilyName();
    } else if (edit.IsColumnFamilyDrop()) {
      families->erase(id);
    }
    const auto family = families->find(id);
    if (family != families->end()) {
      Apply(edit, &family->second);
    }
    return s;
  });
}

}  // namespace ROCKSDB_NAMESPACE
