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

// Looks for table, blob and delta files on disk that no column family has. See
// the flag --verify_no_leaked_files.
//
// What is compared are the directories and the current Versions, so whatever
// may rightly have other files has to be over: the background jobs are paused
// meanwhile, for the rest see the constructor. What is being deleted gets some
// time to go.
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

  // fs: reads what the DB wrote, without faults.
  // with_blob_files: false if memtables have blob files (blob direct write).
  // REQUIRES: nobody else uses the DB, nobody has an iterator, and file
  // deletions are enabled; db and handles outlive this.
  LeakCheck(DB* db, const std::vector<ColumnFamilyHandle*>& handles,
            const std::shared_ptr<FileSystem>& fs, bool with_blob_files);

  // An error says that it could not be found out.
  Status Run();

  // Of what nobody knows: still there although the DB has looked into its
  // directories again.
  const std::vector<File>& leaked() const { return leaked_; }
  // It was there until then. The DB looks by itself when it is opened, after a
  // job has failed, and every few hours.
  const std::vector<File>& left_to_scan() const { return left_to_scan_; }
  // RocksDB takes unfinished blob files for those of a blob direct write that
  // it does not know yet, and keeps them.
  const std::vector<File>& unfinished() const { return unfinished_; }

  // Size, start and what LOG says about it; for a person.
  std::string Describe(const File& file) const;
  // What the DB says about itself.
  std::string DescribeDb() const;

 private:
  // By (type, number, directory).
  using Known = std::set<std::tuple<FileType, uint64_t, std::string>>;

  Known FilesOfVersions() const;
  // Fills *unknown, and unfinished_.
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
