//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_layout.h"

#include <algorithm>
#include <cassert>

#include "db/compaction/compaction.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "options/cf_options.h"
#include "options/strata/strata_option_table.h"

namespace ROCKSDB_NAMESPACE {

static_assert(option_bounds::kMaxPathId + 1 == PathLayout::kMaxPaths,
              "The range of delta_sorted_path_id is that of path ids");

namespace {

// REQUIRES: !ids.empty(), level >= 0
uint32_t IdOfLevel(const std::vector<uint32_t>& ids, int level) {
  assert(!ids.empty());
  assert(level >= 0);
  return ids[std::min(static_cast<size_t>(level), ids.size() - 1)];
}

// entry: for the message; the option and the part of it that has the id.
Status ValidateId(const std::string& entry, uint32_t id, size_t num_paths) {
  if (id >= PathLayout::kMaxPaths) {
    return Status::InvalidArgument(entry +
                                   " is beyond the largest supported id " +
                                   std::to_string(PathLayout::kMaxPaths - 1));
  }
  if (id >= num_paths) {
    return Status::InvalidArgument(
        entry + " names no path: cf_paths (or db_paths) has " +
        std::to_string(num_paths));
  }
  return Status::OK();
}

Status ValidateIds(const char* option, const std::vector<uint32_t>& ids,
                   size_t num_paths) {
  for (size_t level = 0; level < ids.size(); ++level) {
    const Status s = ValidateId(std::string(option) + ": path id " +
                                    std::to_string(ids[level]) + " of level " +
                                    std::to_string(level),
                                ids[level], num_paths);
    if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

}  // namespace

bool PathLayout::HasSstLayout(const MutableCFOptions& options) {
  return !options.level_sst_path_ids.empty();
}

bool PathLayout::HasBlobLayout(const MutableCFOptions& options) {
  return !options.level_blob_path_ids.empty();
}

bool PathLayout::PlacesFiles(const MutableCFOptions& options) {
  return IsSet(options) || options.delta_sorted_path_id >= 0;
}

bool PathLayout::NamesPaths(const MutableCFOptions& options) {
  return PlacesFiles(options) || options.blob_hot_bytes > 0 ||
         !options.path_prices.empty();
}

uint32_t PathLayout::SstPathId(const MutableCFOptions& options, int level) {
  return IdOfLevel(options.level_sst_path_ids, level);
}

uint32_t PathLayout::SstPathIdOr(const MutableCFOptions& options, int level,
                                 uint32_t otherwise) {
  return HasSstLayout(options) ? SstPathId(options, level) : otherwise;
}

uint32_t PathLayout::BlobPathId(const MutableCFOptions& options, int level) {
  return HasBlobLayout(options) ? IdOfLevel(options.level_blob_path_ids, level)
                                : 0;
}

uint32_t PathLayout::RecentDeltaPathId(const MutableCFOptions& options) {
  return SstPathIdOr(options, /*level=*/0, /*otherwise=*/0);
}

uint32_t PathLayout::SortedDeltaPathId(const MutableCFOptions& options,
                                       int num_levels) {
  assert(num_levels > 0);
  return options.delta_sorted_path_id >= 0
             ? static_cast<uint32_t>(options.delta_sorted_path_id)
             : SstPathIdOr(options, num_levels - 1, /*otherwise=*/0);
}

bool PathLayout::IsInUse(const MutableCFOptions& options,
                         const VersionStorageInfo& storage_info) {
  const auto& files = storage_info.GetBlobFiles();
  return IsSet(options) ||
         std::any_of(files.begin(), files.end(),
                     [](const std::shared_ptr<BlobFileMetaData>& meta) {
                       return meta->GetPathId() != 0;
                     });
}

void PathLayout::SetBlobPath(uint32_t path_id, FileMetaData* file) {
  assert(path_id < kMaxPaths);
  file->blob_refs.path_mask =
      HasBlobs(*file) && path_id != 0 ? static_cast<uint8_t>(1u << path_id) : 0;
}

bool PathLayout::HasBlobs(const FileMetaData& file) {
  return file.oldest_blob_file_number != kInvalidBlobFileNumber ||
         file.blob_refs.mapped.Any();
}

uint8_t PathLayout::BlobPathMask(const FileMetaData& file) {
  if (!HasBlobs(file)) {
    return 0;
  }
  return file.blob_refs.path_mask != 0 ? file.blob_refs.path_mask : 1;
}

uint8_t PathLayout::MisplacedBlobMask(const MutableCFOptions& options,
                                      const FileMetaData& file, int level) {
  return static_cast<uint8_t>(BlobPathMask(file) &
                              ~(1u << BlobPathId(options, level)));
}

bool PathLayout::BlobsCanMove(const MutableCFOptions& options,
                              const FileMetaData& file, int to_level) {
  return MisplacedBlobMask(options, file, to_level) == 0;
}

bool PathLayout::IsOnPath(const MutableCFOptions& options,
                          const FileMetaData& file, int level) {
  return file.fd.GetPathId() ==
         SstPathIdOr(options, level, file.fd.GetPathId());
}

bool PathLayout::CanMove(const MutableCFOptions& options,
                         const FileMetaData& file, int to_level) {
  return IsOnPath(options, file, to_level) &&
         BlobsCanMove(options, file, to_level);
}

Status PathLayout::Validate(const std::vector<uint32_t>& level_sst_path_ids,
                            const std::vector<uint32_t>& level_blob_path_ids,
                            int32_t delta_sorted_path_id, size_t num_paths) {
  Status s = ValidateIds("level_sst_path_ids", level_sst_path_ids, num_paths);
  if (s.ok()) {
    s = ValidateIds("level_blob_path_ids", level_blob_path_ids, num_paths);
  }
  if (s.ok() && delta_sorted_path_id >= 0) {
    s = ValidateId(
        "delta_sorted_path_id: path id " + std::to_string(delta_sorted_path_id),
        static_cast<uint32_t>(delta_sorted_path_id), num_paths);
  }
  return s;
}

Status PathLayout::ValidateOutputPath(int output_path_id, size_t num_paths) {
  if (output_path_id >= 0 && static_cast<size_t>(output_path_id) < num_paths) {
    return Status::OK();
  }
  return Status::InvalidArgument(
      "CompactFiles: output_path_id " + std::to_string(output_path_id) +
      " names no path: the column family has " + std::to_string(num_paths));
}

const std::string& PathLayout::Directory(const std::vector<DbPath>& cf_paths,
                                         uint32_t path_id) {
  assert(!cf_paths.empty());
  return cf_paths[IndexOf(path_id, cf_paths.size())].path;
}

std::string PathLayout::BlobFileName(const std::vector<DbPath>& cf_paths,
                                     uint64_t number, uint32_t path_id) {
  return ROCKSDB_NAMESPACE::BlobFileName(Directory(cf_paths, path_id), number);
}

// The functions of Compaction that apply PathLayout.

uint32_t Compaction::OutputPathId(int level) const {
  // output_path_id_ already is that of the output level: it was determined by
  // the layout, by the picker or by the option of a manual compaction, which is
  // for all outputs.
  if (level == output_level_ || is_manual_path_) {
    return output_path_id_;
  }
  return PathLayout::SstPathIdOr(mutable_cf_options_, level, output_path_id_);
}

bool Compaction::InputsCanMove() const {
  // Without a layout, only the path of the first file is checked, as in
  // RocksDB.
  const bool path_of_each = PathLayout::HasSstLayout(mutable_cf_options_);
  for (const CompactionInputFiles& level_inputs : inputs_) {
    for (const FileMetaData* file : level_inputs.files) {
      const bool on_path = file->fd.GetPathId() == output_path_id_ ||
                           !(path_of_each || file == input(0, 0));
      if (!on_path || !PathLayout::BlobsCanMove(mutable_cf_options_, *file,
                                                output_level_)) {
        return false;
      }
    }
  }
  return true;
}

uint32_t Compaction::OutputBlobPathId(int level) const {
  return PathLayout::BlobPathId(mutable_cf_options_, level);
}

}  // namespace ROCKSDB_NAMESPACE
