//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilySet;
class DB;
struct ColumnFamilyMetaData;
struct LiveFileStorageInfo;

// Notes what a DB knows about its paths while a thread requests its live files
// for a copy in one directory. It is neither an option of that call, because
// those options are a public struct, nor asked of DB::GetRootDB(), because a
// backup of a DB that is not a DBImpl does not have that.
//
// Used by one thread.
class CopyPaths {
 public:
  CopyPaths() : outer_(current_) { current_ = this; }
  ~CopyPaths() { current_ = outer_; }
  CopyPaths(const CopyPaths&) = delete;
  CopyPaths& operator=(const CopyPaths&) = delete;

  // Called by the DB when it has captured its live files; does nothing if no
  // copy is being made.
  // is_read_only: the OPTIONS file may differ from the options of the DB.
  // REQUIRES: DB mutex held
  static void Note(ColumnFamilySet& families, bool is_read_only);

  // A column family has several paths.
  bool has_several() const { return has_several_; }
  // The OPTIONS file may name paths.
  bool may_be_in_options() const { return may_be_in_options_; }

 private:
  static thread_local CopyPaths* current_;

  CopyPaths* const outer_;
  bool has_several_ = false;
  bool may_be_in_options_ = false;
};

// Prepares the live files of `db` for a copy in one directory, as Checkpoint
// and BackupEngine make it. If files are in other directories than that of the
// DB, or the OPTIONS file names such directories, the copy needs another
// MANIFEST, in which all files are on path 0, and another OPTIONS file
// (OptionsFileCopy). They are the replacement contents of their entries in
// *files then. For a DB without paths no file is read.
//
// paths: existed when *files was requested.
// keeps_wal_dir: whether the copy is a backup (OptionsFileCopy).
// files: the result of GetLiveFilesStorageInfo().
// REQUIRES: file deletions are disabled since before *files was requested.
Status PrepareCopyInOneDirectory(DB* db, const CopyPaths& paths,
                                 bool keeps_wal_dir,
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

  // The same for files that go to several directories: each pair of directories
  // counts by itself.
  // from, to: names of a file with their directories.
  bool MayLinkFile(const std::string& from, const std::string& to) const {
    return MayLink(DirectoriesOf(from, to));
  }
  void RefuseFile(const std::string& from, const std::string& to) {
    Refuse(DirectoriesOf(from, to));
  }

 private:
  static std::string DirectoriesOf(const std::string& from,
                                   const std::string& to);

  // A directory, or two with a zero byte between them.
  std::unordered_set<std::string> refused_;
};

// Returns OK if a column family with these files can be exported by its SST
// files alone, as ExportColumnFamily() does it. Returns NotSupported if there
// are delta files, or if an SST file refers to values in blob files.
Status CheckExportable(const ColumnFamilyMetaData& family);

}  // namespace ROCKSDB_NAMESPACE
