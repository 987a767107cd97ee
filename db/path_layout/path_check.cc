//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_check.h"

#include <cassert>

#include "db/path_layout/path_layout.h"
#include "file/filename.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string FileNameOn(const std::vector<DbPath>& cf_paths, FileType type,
                       uint64_t number, uint32_t path_id) {
  if (type == kBlobFile) {
    return PathLayout::BlobFileName(cf_paths, number, path_id);
  }
  if (type == kDeltaFile) {
    return DeltaFileName(cf_paths, number, path_id);
  }
  assert(type == kTableFile);
  return TableFileName(cf_paths, number, path_id);
}

// Returns the name of the file on the first path that has it; empty: none has.
std::string FindOnOtherPaths(FileSystem* fs,
                             const std::vector<DbPath>& cf_paths, FileType type,
                             uint64_t number) {
  for (uint32_t i = 0; i < cf_paths.size(); ++i) {
    std::string name = FileNameOn(cf_paths, type, number, i);
    if (fs->FileExists(name, IOOptions(), nullptr).ok()) {
      return name;
    }
  }
  return "";
}

}  // namespace

Status CheckPathOfFile(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                       const std::string& family, FileType type,
                       uint64_t number, uint32_t path_id) {
  if (path_id < cf_paths.size()) {
    return Status::OK();
  }
  const std::string fallback = FileNameOn(cf_paths, type, number, path_id);
  // Any other error is reported by a read of the file.
  if (!fs->FileExists(fallback, IOOptions(), nullptr).IsNotFound()) {
    return Status::OK();
  }
  const char* const name = type == kBlobFile    ? "blob"
                           : type == kDeltaFile ? "delta"
                                                : "table";
  const std::string subject = std::string("The MANIFEST has ") + name +
                              " file #" + std::to_string(number) +
                              " of column family " + family + " on path id " +
                              std::to_string(path_id);
  const std::string elsewhere = FindOnOtherPaths(fs, cf_paths, type, number);
  if (!elsewhere.empty()) {
    return Status::InvalidArgument(
        subject + ", which means the last one of the " +
        std::to_string(cf_paths.size()) +
        " cf_paths (or db_paths). But the file is on another one: " +
        elsewhere + ". Close the database and move the file to " + fallback +
        ", or open the database with the paths that it had");
  }
  return Status::InvalidArgument(
      subject + ", but cf_paths (or db_paths) names only " +
      std::to_string(cf_paths.size()) +
      (cf_paths.size() == 1 ? " path" : " paths") +
      ", and the file is not in the last one either: " + fallback +
      ". Open the database with the paths that it had, also if a file of "
      "STRATA_CONFIG had given them. To give up the last "
      "path, first take it out of level_sst_path_ids, level_blob_path_ids and "
      "delta_sorted_path_id, and call CompactRange() of all keys with "
      "BottommostLevelCompaction::kForce. Or close the database and move the "
      "files of that path into " +
      cf_paths.back().path);
}

}  // namespace ROCKSDB_NAMESPACE
