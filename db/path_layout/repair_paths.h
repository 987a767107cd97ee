//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "db/dbformat.h"
#include "options/cf_options.h"
#include "rocksdb/cache.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class Env;
class TableCache;
class VersionEdit;
struct FileMetaData;

// The directories of a database under repair, and which file is in which.
//
// A Repairer finds files before it knows their column family, while path ids
// mean something within a family only. So it reads each file through a
// TableCache whose only path is the file's directory, with path id 0, and
// translates the directory into the family's path id once the family is known.
//
// Blob files are recovered, too: their header names the column family and their
// footer says that they are complete. Without them in the MANIFEST the next
// open would delete them. How much of them is garbage is not known and starts
// at 0; but an address map, which the next open builds from the tables and the
// record indexes, knows.
//
// Not thread-safe.
class RepairPaths {
 public:
  // `options`, `file_options` and `cache` must outlive this object.
  RepairPaths(const ImmutableOptions& options, const FileOptions& file_options,
              Cache* cache, const std::string& db_session_id);
  ~RepairPaths();

  // These add the directories that are not there yet.
  void Add(const std::vector<DbPath>& db_paths) {
    Add(db_paths, /*required=*/true);
  }
  // Of a family without a layout the cf_paths need not exist: RocksDB's repair
  // does not look at them. With a layout, what is missing holds files.
  void Add(const ColumnFamilyOptions& options);
  // In the order of Add().
  const std::vector<std::string>& directories() const { return directories_; }
  // `index` may be beyond directories().
  bool MayBeMissing(size_t index) const {
    return index < directories_.size() &&
           optional_directories_.count(directories_[index]) != 0;
  }

  void FoundTable(uint64_t number, const std::string& directory) {
    table_directories_[number] = directory;
  }
  void FoundBlobFile(uint64_t number, const std::string& directory) {
    blob_directories_[number] = directory;
  }

  // REQUIRES: FoundTable(number, ...)
  std::string TableName(uint64_t number) const;
  // Reads table `number` under path id 0.
  // REQUIRES: FoundTable(number, ...)
  TableCache* CacheOf(uint64_t number);
  // The points of a table of `cfd`. AssignPathId() may have been called for it.
  // REQUIRES: as of CacheOf(); read_options outlives the iterator.
  std::unique_ptr<InternalIterator> NewPointIterator(
      const ReadOptions& read_options, const ColumnFamilyData& cfd,
      const FileMetaData& table);

  // Is each file in a directory of its family? InvalidArgument if not. Reads
  // only, so that a repair with wrong paths ends before it has changed
  // anything. `options_of` is nullptr for a family that the repair gives up.
  // What cannot be read is left for later to judge.
  Status Check(
      const InternalKeyComparator& comparator,
      const MutableCFOptions& mutable_options,
      const std::function<const ColumnFamilyOptions*(const std::string&)>&
          options_of);

  // InvalidArgument if the latest OPTIONS file of the database gives a column
  // family more directories than the options of the repair do, and one of those
  // that the repair does not search has files. The repair would not find them,
  // and the next open with the right options would delete them. Reads only.
  // options_of: as of Check().
  Status CheckOptionsFile(
      const std::string& dbname, Env* env,
      const std::function<const ColumnFamilyOptions*(const std::string&)>&
          options_of) const;

  // Sets the path id of `table`, which is otherwise complete, to that of its
  // directory in `cfd`. InvalidArgument, kept in status(), if it is none of the
  // family's paths.
  Status AssignPathId(const ColumnFamilyData& cfd, FileMetaData* table);
  // Notes the blob files that an entry of table `number` refers to.
  Status AddBlobReferences(uint64_t number, ValueType type, const Slice& value);
  // BlobReferenceInfo::path_mask by what AddBlobReferences() was told.
  // REQUIRES: FoundBlobFile() was called for all files.
  uint8_t BlobPathMask(const ColumnFamilyData& cfd,
                       const FileMetaData& table) const;
  // Adds the blob files of `cfd` to `edit`, which has all its tables. A file
  // that cannot be read or was never finished is skipped if none of the tables
  // refers to it. Else it is an error: the file may be readable next time,
  // while the next open would delete what the MANIFEST does not name.
  Status AddBlobFiles(const ColumnFamilyData& cfd, VersionEdit* edit) const;

  // The blob files that AddBlobFiles() added to no edit. The next open would
  // delete them.
  // REQUIRES: AddBlobFiles() was called for all column families.
  std::vector<std::string> UnusedBlobFiles() const;

  // The path id of `directory` in a column family with these paths.
  // InvalidArgument, naming the file by its title, if it is none of them.
  static Status FindPathId(const std::vector<DbPath>& cf_paths,
                           const std::string& family, const std::string& title,
                           const std::string& directory, uint32_t* path_id);

  // The first error of AssignPathId(). A repair that went on would drop what
  // these files hold.
  const Status& status() const { return status_; }

 private:
  struct Reader;

  void Add(const std::vector<DbPath>& paths, bool required);

  const ImmutableOptions& options_;
  const FileOptions& file_options_;
  Cache* const cache_;
  const std::string db_session_id_;

  std::vector<std::string> directories_;
  std::set<std::string> optional_directories_;
  std::map<uint64_t, std::string> table_directories_;
  std::map<uint64_t, std::string> blob_directories_;
  // Blob files that are in an edit.
  mutable std::set<uint64_t> used_blob_files_;
  // table -> blob files it refers to
  std::unordered_map<uint64_t, std::set<uint64_t>> blob_references_;
  // Tables with mapped values (MappedEntryStats).
  std::set<uint64_t> mapped_tables_;
  std::map<std::string, std::unique_ptr<Reader>> readers_;
  Status status_;
};

// Keeps a database closed that is only half repaired.
//
// Until a repair is through, CURRENT would name a MANIFEST that lacks files,
// and an open would delete these. Therefore CURRENT names none in that time,
// which fails every open, also one with create_if_missing, until a later repair
// succeeds. It survives a crash; only best_efforts_recovery, which reads any
// MANIFEST there is, is refused after an error alone.
//
// Not thread-safe.
class RepairGuard {
 public:
  // `fs` must outlive this object.
  RepairGuard(FileSystem* fs, const std::string& dbname)
      : fs_(fs), dbname_(dbname) {}

  // To be called before anything is changed, and again after each step that
  // may have set CURRENT.
  Status Hold();
  // The end of a repair with `status`, which is returned if it is an error.
  // Else CURRENT is set to MANIFEST `manifest_number`.
  Status Finish(const Status& status, uint64_t manifest_number);

 private:
  // Replaces `file` by a text that is neither a CURRENT nor a MANIFEST.
  Status Invalidate(const std::string& file);

  FileSystem* const fs_;
  const std::string dbname_;
  bool holding_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
