//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilySet;
class FileSystem;

// Called by recovery: checks that the options have the path of a file that is
// in the MANIFEST.
//
// A path id beyond the list means the last path, as in RocksDB, so that a
// database whose files were all moved there can be opened with fewer paths. If
// the file is not on the last path either, the list is wrong, and this returns
// InvalidArgument. Otherwise a later read would fail to find the file.
//
// REQUIRES: type is kTableFile, kBlobFile or kDeltaFile
Status CheckPathOfFile(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                       FileType type, uint64_t number, uint32_t path_id);

// Marks a scope in which the thread requests the live files of a DB in order to
// copy them into one directory, as Checkpoint and BackupEngine do.
//
// Both copy MANIFEST and OPTIONS files unchanged. So a path id in the copied
// MANIFEST would refer to a path that does not exist. And an OPTIONS file with
// cf_paths, which it has if a family has a layout, would cause the copy to
// purge files of the source. Therefore the DB returns an error in such a scope
// if it has a layout. The scope is not an option of the call, because those
// options are a public struct, and not accessed by DB::GetRootDB(), because a
// backup of a DB that is not a DBImpl does not have that.
//
// Used by one thread.
class CopyIntoOneDirectory {
 public:
  CopyIntoOneDirectory() : outer_(in_progress_) { in_progress_ = true; }
  ~CopyIntoOneDirectory() { in_progress_ = outer_; }
  CopyIntoOneDirectory(const CopyIntoOneDirectory&) = delete;
  CopyIntoOneDirectory& operator=(const CopyIntoOneDirectory&) = delete;

  // Returns OK outside such a scope. Inside, returns NotSupported, naming the
  // column family, if one of `families` has a layout and several paths.
  //
  // REQUIRES: DB mutex held
  static Status Check(ColumnFamilySet& families);
  // The beginning of the error messages of Check() and of its callers.
  static const char kRefusal[];

 private:
  static thread_local bool in_progress_;

  const bool outer_;
};

}  // namespace ROCKSDB_NAMESPACE
