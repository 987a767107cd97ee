//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_check.h"

#include <cassert>

#include "db/path_layout/path_layout.h"
#include "file/filename.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

Status CheckPathOfFile(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                       FileType type, uint64_t number, uint32_t path_id) {
  if (path_id < cf_paths.size()) {
    return Status::OK();
  }
  const char* name = "table";
  std::string fallback;
  if (type == kBlobFile) {
    name = "blob";
    fallback = PathLayout::BlobFileName(cf_paths, number, path_id);
  } else if (type == kDeltaFile) {
    name = "delta";
    fallback = DeltaFileName(cf_paths, number, path_id);
  } else {
    assert(type == kTableFile);
    fallback = TableFileName(cf_paths, number, path_id);
  }
  // Any other error is reported by a read of the file.
  if (!fs->FileExists(fallback, IOOptions(), nullptr).IsNotFound()) {
    return Status::OK();
  }
  return Status::InvalidArgument(
      std::string("The MANIFEST has ") + name + " file #" +
      std::to_string(number) + " on path id " + std::to_string(path_id) +
      ", but cf_paths (or db_paths) names only " +
      std::to_string(cf_paths.size()) +
      (cf_paths.size() == 1 ? " path" : " paths") +
      ", and the file is not in the last one either: " + fallback +
      ". Open the database with the paths that it had. To give up the last "
      "path, first take it out of level_sst_path_ids and level_blob_path_ids "
      "and "
      "call CompactRange() with BottommostLevelCompaction::kForce" +
      (type == kDeltaFile
           ? std::string(
                 "; delta files that get no new operands stay where they are, "
                 "so reopen with enable_delta_separation = false and call it "
                 "until the property rocksdb.delta-store has files: 0")
           : std::string()) +
      ". Or close the database and move the files of that path into " +
      cf_paths.back().path);
}

}  // namespace ROCKSDB_NAMESPACE
