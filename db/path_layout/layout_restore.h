//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "db/path_layout/copy_plan.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// The directories into which a backup is restored: that of the DB and, with a
// CopyLayout, others.
//
// A backup has all files on path 0. Where a file belongs follows from the
// MANIFEST in the backup, which knows its type and its level. MANIFEST and
// OPTIONS file get new contents.
//
// Invariant: in other directories than that of the DB, nothing but SST, blob
// and delta files is written or deleted.
//
// Without a layout no function reads or changes anything.
//
// Not thread-safe.
class LayoutRestore {
 public:
  // layout: nullptr means that there is one directory.
  // fs: of the DB.
  // REQUIRES: *layout and *fs live longer.
  LayoutRestore(const CopyLayout* layout, FileSystem* fs,
                const std::string& db_dir);

  bool has_layout() const { return plan_ != nullptr; }

  // Adds a file of the backup.
  // fs, fname: where the backup has it.
  // name: of the restored file, without directory.
  // size: bytes.
  // checksum_hex: crc32c; empty if it is not known.
  void AddFile(FileSystem* fs, const std::string& fname,
               const std::string& name, uint64_t size,
               const std::string& checksum_hex);

  // Makes the plan and creates the other directories. Returns InvalidArgument,
  // before anything was changed, if the layout is wrong or if one of the other
  // directories is inside or around `wal_dir` or that of a backup; NotSupported
  // if the backup has no OPTIONS file.
  // wal_dir: may be the directory of the DB.
  IOStatus Begin(const std::string& wal_dir);

  // Adds a directory of backups, whatever Env it has: two Envs can be of the
  // same file system.
  // REQUIRES: Begin() was not called yet
  void AddBackupDirectory(const std::string& directory) {
    backup_directories_.push_back(directory);
  }

  // Returns the name, with directory, of a restored file that is not a WAL.
  std::string PathOf(const std::string& name) const;

  // Returns the contents of a restored file; nullptr means that it is a copy of
  // the file in the backup.
  const std::string* ContentsOf(const std::string& name) const;

  // Turns a list of the files in the directory of the DB into a list of all
  // files that are where they belong: files that belong elsewhere are removed,
  // and files in the other directories are added.
  void SelectInPlace(std::vector<std::string>* names) const;

  // Returns the files among these that belong in the directory of the DB.
  // numbers: of files.
  std::unordered_set<uint64_t> InDBDirectory(
      const std::unordered_set<uint64_t>& numbers) const;

  // Deletes all SST, blob and delta files in the other directories. The files
  // to keep stay if they are where they belong. Syncs the directory of the DB
  // first: a crash must not bring back a MANIFEST that names these files.
  IOStatus DeleteOthers(const std::unordered_set<uint64_t>& files_to_keep);

  // Syncs the other directories, and the directories that contain them.
  IOStatus Sync() const;

 private:
  // A file of the backup that gets new contents.
  struct Source {
    FileSystem* fs = nullptr;
    std::string fname;
    std::string name;
    uint64_t size = 0;
    std::string checksum_hex;
  };

  IOStatus SyncDirectory(const std::string& name) const;
  static Status Read(const Source& source, std::string* contents);
  Status CheckDirectory(const std::string& reserved) const;
  Status MakePlan();
  Status ChangeOptions(const ManifestColumnFamilies& families);

  FileSystem* const fs_;
  const std::string db_dir_;
  bool has_path_map_ = false;
  std::unique_ptr<CopyPlan> plan_;
  std::vector<std::string> backup_directories_;
  Source manifest_;
  Source options_;
  // name -> contents
  std::map<std::string, std::string> contents_;
};

}  // namespace ROCKSDB_NAMESPACE
