//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class DB;
class VersionSet;
struct ColumnFamilyMetaData;
struct LiveFileStorageInfo;

// Notes what a DB knows about its paths while a thread requests its live files
// for a copy. The options of that call are a public struct, and a backup of a
// DB that is not a DBImpl cannot use DB::GetRootDB(), so this is an object of
// the thread.
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
  static void Note(VersionSet* versions, bool is_read_only);

  // A column family has several paths.
  bool has_several() const { return has_several_; }
  // The directories of all column families, also of dropped ones, as they are
  // in the options.
  const std::set<std::string>& directories() const { return directories_; }
  // The ids of all column families that the DB was opened with, also of dropped
  // ones.
  const std::set<uint32_t>& family_ids() const { return family_ids_; }
  // A file has another path id than 0. It may be on path 0 nevertheless
  // (PathLayout::IndexOf()).
  bool has_path_ids() const { return has_path_ids_; }
  // The OPTIONS file may name paths.
  bool may_be_in_options() const { return may_be_in_options_; }
  // Returns how many bytes of the MANIFEST the DB has read or written. An
  // instance that cannot write goes on with a MANIFEST whose last record, or
  // last atomic group, is incomplete: its writer has crashed or is just
  // appending it. The instance has ignored that end, and so must a reader of
  // the MANIFEST.
  // size: bytes, LiveFileStorageInfo::size of the MANIFEST, which includes it.
  uint64_t SizeOfManifest(uint64_t size) const {
    return std::min(size, end_of_manifest_);
  }

 private:
  static thread_local CopyPaths* current_;

  CopyPaths* const outer_;
  bool has_several_ = false;
  bool has_path_ids_ = false;
  bool may_be_in_options_ = false;
  uint64_t end_of_manifest_ = std::numeric_limits<uint64_t>::max();
  std::set<std::string> directories_;
  std::set<uint32_t> family_ids_;
};

// Prepares the live files of `db` for a copy in one directory, as Checkpoint
// and BackupEngine make it. If files are in other directories than that of the
// DB or have other path ids than 0, or the OPTIONS file names such directories,
// the copy needs another
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

// Remembers between which directories files cannot be linked, because they are
// on different devices. These files are copied, those of other pairs of
// directories are linked nevertheless.
// from: the directory of the original.
// to: the directory of the copy; empty if all copies go to one directory.
//
// Not thread-safe.
class LinkableDirectories {
 public:
  bool MayLink(const std::string& from, const std::string& to = "") const {
    return refused_.count({from, to}) == 0;
  }
  void Refuse(const std::string& from, const std::string& to = "") {
    refused_.insert({from, to});
  }

 private:
  std::set<std::pair<std::string, std::string>> refused_;
};

// Makes `contents` the contents that a copy has of a file.
void ReplaceContents(std::string&& contents, LiveFileStorageInfo* file);

// Returns the first file of this type; nullptr if there is none.
LiveFileStorageInfo* FindFile(FileType type,
                              std::vector<LiveFileStorageInfo>* files);

// Returns OK if a column family with these files can be exported by its SST
// files alone, as ExportColumnFamily() does it. Returns NotSupported if there
// are delta files, or if an SST file refers to values in blob files.
Status CheckExportable(const ColumnFamilyMetaData& family);

}  // namespace ROCKSDB_NAMESPACE
