//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#ifdef GFLAGS

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// Searches for table, blob and delta files on disk that belong to no column
// family. See the flag --verify_no_leaked_files.
//
// The directories are compared with the current Versions, so other legitimate
// users of files must not exist during the check: it pauses the background
// jobs; for the rest see the constructor. It waits for files that are being
// deleted.
//
// Not thread-safe.
class LeakCheck {
 public:
  struct File {
    std::string directory;
    std::string name;
    uint64_t number = 0;
    FileType type = kTableFile;  // or kBlobFile or kDeltaFile
    uint64_t size = 0;

    std::string Path() const { return directory + "/" + name; }
  };

  // fs: reads the DB's files, without faults.
  // with_blob_files: false if memtables have blob files (blob direct write).
  // REQUIRES: no other thread uses the DB, there is no iterator, and file
  // deletions are enabled; db and handles outlive this.
  LeakCheck(DB* db, const std::vector<ColumnFamilyHandle*>& handles,
            const std::shared_ptr<FileSystem>& fs, bool with_blob_files);

  // Runs the check. Returns an error if it could not be completed.
  Status Run();

  // Returns the unknown files that exist even after the DB has scanned its
  // directories again.
  const std::vector<File>& leaked() const { return leaked_; }
  // Returns the unknown files that existed until that scan. The DB scans by
  // itself when it is opened, after a job has failed, and every few hours.
  const std::vector<File>& left_to_scan() const { return left_to_scan_; }
  // Returns the unfinished blob files. RocksDB treats them as files of a blob
  // direct write that is not in a Version yet, and keeps them.
  const std::vector<File>& unfinished() const { return unfinished_; }

  // Returns the size, the first bytes and the lines in LOG of a file, in
  // human-readable form.
  std::string Describe(const File& file) const;
  // Returns properties of the DB, in human-readable form.
  std::string DescribeDb() const;

 private:
  // Files as (type, number, directory).
  using Known = std::set<std::tuple<FileType, uint64_t, std::string>>;

  Known FilesOfVersions() const;
  // Sets *unknown to the unknown files, and unfinished_.
  Status FindUnknown(std::vector<File>* unknown);
  Status Wait();
  Status ScanDirectories();
  bool IsKeptUnfinished(const File& file) const;
  std::string Read(const File& file, uint64_t offset, size_t n) const;
  void AppendLogLines(uint64_t number, std::string* result) const;

  DB* const db_;
  const std::vector<ColumnFamilyHandle*> handles_;
  const std::shared_ptr<FileSystem> fs_;
  const bool with_blob_files_;
  std::set<std::string> directories_;
  std::vector<File> leaked_;
  std::vector<File> left_to_scan_;
  std::vector<File> unfinished_;
};

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
