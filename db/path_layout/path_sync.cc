//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_sync.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "db/blob/blob_file_addition.h"
#include "db/column_family.h"
#include "db/compaction/compaction_state.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

IOStatus SyncDirectory(const ColumnFamilyData& cfd, uint32_t path_id,
                       const std::string& path, const IOOptions& options) {
  FSDirectory* directory = cfd.GetDataDir(path_id);
  std::unique_ptr<FSDirectory> opened;
  if (directory == nullptr) {
    // The family's directories may not be open, for example in a Repairer.
    IOStatus s =
        cfd.ioptions().fs->NewDirectory(path, options, &opened, nullptr);
    if (!s.ok()) {
      return s;
    }
    directory = opened.get();
  }
  return directory->FsyncWithDirOptions(
      options, nullptr,
      DirFsyncOptions(DirFsyncOptions::FsyncReason::kNewFileSynced));
}

}  // namespace

void OutputDirectories::Add(const std::vector<BlobFileAddition>& blob_files) {
  for (const BlobFileAddition& blob_file : blob_files) {
    Add(blob_file.GetPathId());
  }
}

void OutputDirectories::AddOutputs(const VersionEdit& edit) {
  for (const auto& new_file : edit.GetNewFiles()) {
    Add(new_file.second.fd.GetPathId());
  }
  Add(edit.GetBlobFileAdditions());
}

void OutputDirectories::AddOutputs(CompactionState& compaction) {
  for (SubcompactionState& state : compaction.sub_compact_states) {
    for (const auto& output : state.GetOutputs()) {
      Add(output.meta.fd.GetPathId());
    }
    // This includes the blob files of a second output level.
    Add(state.Outputs(/*is_proximal_level=*/false)->GetBlobFileAdditions());
  }
}

IOStatus OutputDirectories::Sync(const ColumnFamilyData& cfd,
                                 const IOOptions& options,
                                 autovector<std::string>* synced) const {
  uint8_t path_ids = path_ids_;
  TEST_SYNC_POINT_CALLBACK("OutputDirectories::Sync", &path_ids);
  const std::vector<DbPath>& cf_paths = cfd.ioptions().cf_paths;
  for (uint32_t i = 0; i < PathLayout::kMaxPaths; ++i) {
    if ((path_ids & (1u << i)) == 0) {
      continue;
    }
    const std::string& path = PathLayout::Directory(cf_paths, i);
    if (std::find(synced->begin(), synced->end(), path) != synced->end()) {
      continue;
    }
    IOStatus s = SyncDirectory(cfd, i, path, options);
    if (!s.ok()) {
      return s;
    }
    synced->push_back(path);
  }
  return IOStatus::OK();
}

uint8_t FlushedBlobPathMask(const FileMetaData& file,
                            const std::vector<BlobFileAddition>& own,
                            const std::vector<BlobFileAddition>& external,
                            const VersionStorageInfo& before) {
  if (!PathLayout::HasBlobs(file)) {
    return 0;
  }
  uint32_t mask = 0;
  uint64_t oldest_added = std::numeric_limits<uint64_t>::max();
  for (const auto* additions : {&own, &external}) {
    for (const BlobFileAddition& addition : *additions) {
      mask |= 1u << addition.GetPathId();
      oldest_added = std::min(oldest_added, addition.GetBlobFileNumber());
    }
  }
  if (file.oldest_blob_file_number != kInvalidBlobFileNumber &&
      file.oldest_blob_file_number < oldest_added) {
    // It is unknown to which of the earlier blob files the file refers.
    for (const auto& blob_file : before.GetBlobFiles()) {
      mask |= 1u << blob_file->GetPathId();
    }
  }
  return mask == 1 ? 0 : static_cast<uint8_t>(mask);
}

}  // namespace ROCKSDB_NAMESPACE
