//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DB;
struct ColumnFamilyMetaData;
struct LiveFileStorageInfo;

// Prepares the live files of `db` for a copy in one directory, as Checkpoint
// and BackupEngine make it. If files are in other directories than that of the
// DB, or the OPTIONS file names such directories, the copy needs another
// MANIFEST, in which all files are on path 0, and another OPTIONS file
// (OptionsFileCopy). They are the replacement contents of their entries in
// *files then.
//
// keeps_wal_dir: whether the copy is a backup (OptionsFileCopy).
// files: the result of GetLiveFilesStorageInfo().
// REQUIRES: file deletions are disabled since before *files was requested.
Status PrepareCopyInOneDirectory(DB* db, bool keeps_wal_dir,
                                 std::vector<LiveFileStorageInfo>* files);

// Remembers the directories whose files cannot be linked, because the copy is
// on another device. Their files are copied, those of other directories are
// linked nevertheless.
//
// Not thread-safe.
class LinkableDirectories {
 public:
  bool MayLink(const std::string& directory) const {
    return refused_.count(directory) == 0;
  }
  void Refuse(const std::string& directory) { refused_.insert(directory); }

 private:
  std::unordered_set<std::string> refused_;
};

// Returns OK if a column family with these files can be exported by its SST
// files alone, as ExportColumnFamily() does it. Returns NotSupported if there
// are delta files.
Status CheckExportable(const ColumnFamilyMetaData& family);

}  // namespace ROCKSDB_NAMESPACE
