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

// Recovery's check that the options still name the path of a file that the
// MANIFEST names.
//
// A path id beyond the list has always stood for the last path, so that a
// database whose files were all moved there opens with fewer paths. When the
// file is not there either, the list is wrong: InvalidArgument says so, where
// a later read would merely not find the file.
//
// REQUIRES: type is kTableFile, kBlobFile or kDeltaFile
Status CheckPathOfFile(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                       FileType type, uint64_t number, uint32_t path_id);

// While it lives, its thread asks a DB for its live files in order to copy them
// into one directory, as Checkpoint and BackupEngine do.
//
// They copy MANIFEST and OPTIONS files as they are. So a path id in that
// MANIFEST would lead nowhere, and an OPTIONS file with cf_paths, as a family
// with a layout has it, would let the copy purge the source's files. Therefore
// a DB that is asked so refuses a layout. Kept beside the call rather than in
// its options, which are a public struct, or behind DB::GetRootDB(), which
// those who back up something else than a DBImpl do not have.
class CopyIntoOneDirectory {
 public:
  CopyIntoOneDirectory() : outer_(in_progress_) { in_progress_ = true; }
  ~CopyIntoOneDirectory() { in_progress_ = outer_; }
  CopyIntoOneDirectory(const CopyIntoOneDirectory&) = delete;
  CopyIntoOneDirectory& operator=(const CopyIntoOneDirectory&) = delete;

  // OK if this thread makes no such copy; else NotSupported, naming the column
  // family, if one of `families` has a layout and several paths.
  //
  // REQUIRES: DB mutex held
  static Status Check(ColumnFamilySet& families);
  // What its error and that of the callers begin with.
  static const char kRefusal[];

 private:
  static thread_local bool in_progress_;

  const bool outer_;
};

}  // namespace ROCKSDB_NAMESPACE
