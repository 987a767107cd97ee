//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/job_space.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "db/compaction/compaction.h"
#include "db/path_layout/path_layout.h"
#include "db/version_set.h"
#include "file/strata/space_needs.h"
#include "options/cf_options.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using OutputBytes = std::map<std::string, uint64_t>;

// Returns the bytes of values in blob files for each byte of the SST files that
// refer to them.
double ValuesPerByte(const VersionStorageInfo& files) {
  uint64_t keys = 0;
  for (int level = 0; level < files.num_levels(); ++level) {
    for (const FileMetaData* file : files.LevelFiles(level)) {
      if (PathLayout::HasBlobs(*file)) {
        keys += file->fd.GetFileSize();
      }
    }
  }
  const VersionStorageInfo::BlobStats blobs = files.GetBlobStats();
  if (keys == 0 || blobs.total_file_size <= blobs.total_garbage_size) {
    return 0;
  }
  return static_cast<double>(blobs.total_file_size - blobs.total_garbage_size) /
         static_cast<double>(keys);
}

// Returns the bytes of each directory if `level` gets all outputs.
OutputBytes BytesOfLevel(const Compaction& compaction, int level) {
  const VersionStorageInfo& files = *compaction.input_version()->storage_info();
  const uint32_t blob_path_id = compaction.OutputBlobPathId(level);
  CompactionSpace space(compaction.mutable_cf_options(), level, blob_path_id,
                        compaction.enable_blob_garbage_collection()
                            ? compaction.blob_garbage_collection_age_cutoff()
                            : 0,
                        [&files] { return ValuesPerByte(files); });
  for (size_t i = 0; i < compaction.num_input_levels(); ++i) {
    for (const FileMetaData* file : *compaction.inputs(i)) {
      space.AddInput(compaction.level(i), file->fd.GetFileSize(),
                     PathLayout::BlobPathMask(*file));
    }
  }
  const std::vector<DbPath>& cf_paths = compaction.immutable_options().cf_paths;
  OutputBytes result;
  result[PathLayout::Directory(cf_paths, compaction.OutputPathId(level))] +=
      space.sst_bytes();
  if (space.blob_bytes() > 0) {
    result[PathLayout::Directory(cf_paths, blob_path_id)] += space.blob_bytes();
  }
  return result;
}

}  // namespace

void FlushSpace::Add(const std::vector<DbPath>& cf_paths,
                     const MutableCFOptions& options, uint64_t unflushed,
                     bool writes_blobs_directly) {
  // Recent delta files have the path of the SST files.
  std::set<std::string> names = {PathLayout::Directory(
      cf_paths, PathLayout::SstPathIdOr(options, /*level=*/0,
                                        /*otherwise=*/0))};
  if (options.enable_blob_files &&
      (options.blob_file_starting_level <= 0 || writes_blobs_directly)) {
    names.insert(PathLayout::Directory(
        cf_paths, PathLayout::BlobPathId(options, /*level=*/0)));
  }
  for (const std::string& name : names) {
    Directory& directory = directories_[name];
    directory.write_buffer =
        std::max(directory.write_buffer, uint64_t{options.write_buffer_size});
    directory.unflushed += unflushed;
  }
  write_buffer_ = std::max(write_buffer_, uint64_t{options.write_buffer_size});
  unflushed_ += unflushed;
}

void FlushSpace::AddTo(bool are_required, SpaceNeeds* needs) const {
  for (const auto& [name, directory] : directories_) {
    needs->Reserve(name, std::max(directory.write_buffer, directory.unflushed));
    if (are_required) {
      needs->Require(name);
    }
  }
}

CompactionSpace::CompactionSpace(const MutableCFOptions& options,
                                 int output_level, uint32_t blob_path_id,
                                 double gc_cutoff,
                                 std::function<double()> values_per_byte)
    : output_level_(output_level),
      blob_path_id_(blob_path_id),
      gc_cutoff_(gc_cutoff),
      starting_level_(options.enable_blob_files
                          ? options.blob_file_starting_level
                          : std::numeric_limits<int>::max()),
      values_per_byte_(std::move(values_per_byte)) {}

void CompactionSpace::AddInput(int level, uint64_t size,
                               uint8_t blob_path_mask) {
  sst_bytes_ += size;
  const bool separates = output_level_ >= starting_level_;
  if (separates && level < starting_level_) {
    // Values of the SST file go to blob files.
    blob_bytes_ += size;
  }
  const bool are_elsewhere = (blob_path_mask & ~(1u << blob_path_id_)) != 0;
  const double rewritten = are_elsewhere ? 1 : gc_cutoff_;
  if (blob_path_mask != 0 && rewritten > 0) {
    const uint64_t values = static_cast<uint64_t>(
        static_cast<double>(size) * rewritten * values_per_byte_());
    // Without blob files, values that are rewritten become part of SST files.
    (separates ? blob_bytes_ : sst_bytes_) += values;
  }
}

std::set<std::string> LayoutDirectories(const std::vector<DbPath>& cf_paths,
                                        const MutableCFOptions& options,
                                        int num_levels) {
  std::set<std::string> result;
  if (!PathLayout::HasSstLayout(options)) {
    for (const DbPath& path : cf_paths) {
      result.insert(path.path);
    }
  }
  for (int level = 0; level < num_levels; ++level) {
    result.insert(PathLayout::Directory(
        cf_paths, PathLayout::SstPathIdOr(options, level, /*otherwise=*/0)));
    if (options.enable_blob_files &&
        level >= options.blob_file_starting_level) {
      result.insert(PathLayout::Directory(
          cf_paths, PathLayout::BlobPathId(options, level)));
    }
  }
  return result;
}

std::map<std::string, uint64_t> CompactionOutputBytes(
    const Compaction& compaction) {
  if (compaction.deletion_compaction()) {
    return {};
  }
  OutputBytes result = BytesOfLevel(compaction, compaction.output_level());
  if (compaction.SupportsPerKeyPlacement()) {
    // Each entry goes to one of the two levels.
    for (const auto& [name, bytes] :
         BytesOfLevel(compaction, compaction.GetProximalLevel())) {
      result[name] = std::max(result[name], bytes);
    }
  }
  return result;
}

}  // namespace ROCKSDB_NAMESPACE
