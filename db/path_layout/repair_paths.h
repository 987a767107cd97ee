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
class FragmentedRangeTombstoneIterator;
class TableCache;
class VersionEdit;
struct FileMetaData;

// The directories of a database under repair, and the files in each of them.
//
// A Repairer finds files before it knows their column family, but path ids are
// only defined within a family. So it reads each file through a TableCache
// whose only path is the file's directory, with path id 0, and translates the
// directory into the family's path id once the family is known.
//
// Blob files are recovered, too: their header has the column family, and their
// footer shows that they are complete. If they were not in the MANIFEST, the
// next open would delete them. The amount of garbage in them is unknown and
// starts at 0, except with an address map, which the next open builds from the
// tables and the record indexes.
//
// A file that a repair does not find is gone after the next open. So it ends
// before it has changed anything if a directory seems to be missing in its
// options (CheckDirectories()).
//
// Not thread-safe.
class RepairPaths {
 public:
  // `options`, `file_options` and `cache` must outlive this object.
  RepairPaths(const ImmutableOptions& options, const FileOptions& file_options,
              Cache* cache, const std::string& db_session_id);
  ~RepairPaths();

  // Adds those directories of db_paths that have not been added yet.
  void Add(const std::vector<DbPath>& db_paths) {
    Add(db_paths, /*required=*/true);
  }
  // Adds those cf_paths of a family that have not been added yet. They need not
  // exist if the family has no layout, since RocksDB's repair does not search
  // them. With a layout they must exist, because they have files. Without one
  // CheckDirectories() refuses a missing path that has files.
  void Add(const ColumnFamilyOptions& options);
  // Returns the directories in the order in which they were added.
  const std::vector<std::string>& directories() const { return directories_; }
  // Returns true if the directory need not exist. `index` may be beyond
  // directories().
  bool MayBeMissing(size_t index) const {
    return index < directories_.size() &&
           optional_directories_.count(directories_[index]) != 0;
  }

  // A file that two directories have makes Check() fail.
  void FoundTable(uint64_t number, const std::string& directory);
  void FoundBlobFile(uint64_t number, const std::string& directory);

  // REQUIRES: FoundTable(number, ...)
  std::string TableName(uint64_t number) const;
  // Returns a TableCache that reads table `number` with path id 0.
  // REQUIRES: FoundTable(number, ...)
  TableCache* CacheOf(uint64_t number);
  // Returns an iterator over the point entries of a table of `cfd`.
  // AssignPathId() may have been called for the table.
  // REQUIRES: FoundTable() was called for the table; read_options outlives the
  // iterator.
  std::unique_ptr<InternalIterator> NewPointIterator(
      const ReadOptions& read_options, const ColumnFamilyData& cfd,
      const FileMetaData& table);

  // Sets *iter to an iterator over the range deletions of the table; nullptr if
  // it has none.
  // REQUIRES: as for NewPointIterator().
  Status NewRangeDeletionIterator(
      const ReadOptions& read_options, const ColumnFamilyData& cfd,
      const FileMetaData& table,
      std::unique_ptr<FragmentedRangeTombstoneIterator>* iter);

  // Returns InvalidArgument if a file is in two directories, or not in a
  // directory of its family. Only
  // reads, so that a repair with wrong paths ends before it has changed
  // anything. Files that cannot be read are ignored here.
  // options_of: returns the options of a family; nullptr for a family that the
  //     repair drops.
  Status Check(
      const InternalKeyComparator& comparator,
      const MutableCFOptions& mutable_options,
      const std::function<const ColumnFamilyOptions*(const std::string&)>&
          options_of);

  // Returns InvalidArgument if there are signs that a directory of the database
  // is missing in the options of the repair. The repair would not find the
  // files in it, and the next open with the right options would delete them.
  // Also returns InvalidArgument if the WALs are elsewhere
  // (CheckRepairWalDir()). The signs are:
  // 1. The latest OPTIONS file gives a column family more directories than the
  //    options of the repair, and one that is not searched has files.
  // 2. The MANIFEST has a file on a path id for which the options of the repair
  //    have no path, and the file is in no directory that is searched. An
  //    OPTIONS file names no paths if the layout was taken away.
  // 3. The MANIFEST has a file on a path that cannot be read, although the path
  //    need not exist (Add()), and the file is in no directory that is
  //    searched.
  // 4. A column family has a layout, or delta_sorted_path_id, in the OPTIONS
  //    file, and none of its files
  //    is in a directory that is searched. An OPTIONS file does not name a
  //    single path.
  // Only reads. What cannot be read is not checked, and LOG says so.
  // fs: that of the database, not that of RepairEnv.
  // env: the same, to read the OPTIONS file.
  // options_of: as for Check().
  Status CheckDirectories(
      const std::string& dbname, FileSystem* fs, Env* env,
      const std::function<const ColumnFamilyOptions*(const std::string&)>&
          options_of) const;

  // Sets the path id of `table`, which is otherwise complete, to that of its
  // directory in `cfd`. Returns InvalidArgument, and stores it in status(), if
  // the directory is not among the family's paths.
  Status AssignPathId(const ColumnFamilyData& cfd, FileMetaData* table);
  // Records the blob files that an entry of table `number` refers to.
  Status AddBlobReferences(uint64_t number, ValueType type, const Slice& value);
  // Returns BlobReferenceInfo::path_mask of the table, by the entries that were
  // passed to AddBlobReferences().
  // REQUIRES: FoundBlobFile() was called for all files.
  uint8_t BlobPathMask(const ColumnFamilyData& cfd,
                       const FileMetaData& table) const;
  // Adds the blob files of `cfd` to `edit`, which has all of its tables. A file
  // that cannot be read or was never finished is skipped if none of the tables
  // refers to it. Otherwise an error is returned: the file may be readable the
  // next time, but the next open would delete it if it is not in the MANIFEST.
  Status AddBlobFiles(const ColumnFamilyData& cfd, VersionEdit* edit) const;

  // Returns the blob files that AddBlobFiles() added to no edit. The next open
  // would delete them.
  // REQUIRES: AddBlobFiles() was called for all column families.
  std::vector<std::string> UnusedBlobFiles() const;

  // Returns the path id of `directory` in a column family with these paths in
  // *path_id. Returns InvalidArgument if the directory is not among them.
  // title: names the file in the error message.
  static Status FindPathId(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                           const std::string& family, const std::string& title,
                           const std::string& directory, uint32_t* path_id);

  // Returns the first error of FoundTable(), FoundBlobFile(), AssignPathId() or
  // Fail(). A repair that
  // continued after it would drop the data of these files.
  const Status& status() const { return status_; }
  // Records an error that is not one of the file that is being read.
  // REQUIRES: !s.ok()
  void Fail(const Status& s);

 private:
  struct Reader;
  using OptionsOf =
      std::function<const ColumnFamilyOptions*(const std::string&)>;

  void Add(const std::vector<DbPath>& paths, bool required);
  // Sets *place to the directory in which the file has been found. Stores an
  // error in status_ if it was found in another one before.
  void FoundIn(const std::string& directory, const std::string& title,
               std::string* place);

  // Returns the paths of a family with these options.
  const std::vector<DbPath>& PathsOf(const ColumnFamilyOptions& options) const {
    return options.cf_paths.empty() ? options_.db_paths : options.cf_paths;
  }
  // Returns true if one of the directories has a file with this name.
  bool IsFound(FileSystem* fs, const std::string& name) const;
  // The first sign of CheckDirectories(), and the others.
  // stored: the column families of the OPTIONS file.
  Status CheckOptionsFile(Env* env,
                          const std::vector<ColumnFamilyDescriptor>& stored,
                          const OptionsOf& options_of) const;
  Status CheckManifest(const std::string& dbname, FileSystem* fs,
                       const std::vector<ColumnFamilyDescriptor>& stored,
                       const OptionsOf& options_of) const;

  const ImmutableOptions& options_;
  const FileOptions& file_options_;
  Cache* const cache_;
  const std::string db_session_id_;

  std::vector<std::string> directories_;
  std::set<std::string> optional_directories_;
  std::map<uint64_t, std::string> table_directories_;
  std::map<uint64_t, std::string> blob_directories_;
  // Blob files that were added to an edit.
  mutable std::set<uint64_t> used_blob_files_;
  // table -> blob files it refers to
  std::unordered_map<uint64_t, std::set<uint64_t>> blob_references_;
  // Tables with mapped values (MappedEntryStats).
  std::set<uint64_t> mapped_tables_;
  std::map<std::string, std::unique_ptr<Reader>> readers_;
  Status status_;
};

// Prevents opens of a database whose repair is not complete.
//
// Until a repair is complete, CURRENT would name a MANIFEST that lacks files,
// and an open would delete these files. Therefore CURRENT names no MANIFEST
// from Hold() to Finish(): the steps between them use RepairEnv. Every open
// fails then, even one with create_if_missing, until a repair succeeds. This
// survives a crash, with an exception: opens with best_efforts_recovery, which
// reads any MANIFEST that exists, are prevented only after an error, not after
// a crash.
//
// Not thread-safe.
class RepairGuard {
 public:
  // `fs` must outlive this object. It is not that of RepairEnv.
  RepairGuard(FileSystem* fs, const std::string& dbname)
      : fs_(fs), dbname_(dbname) {}

  // Makes CURRENT invalid. To be called before anything is changed.
  Status Hold();
  // To be called when the MANIFESTs of the database have been moved away.
  // Returns an error, naming the file, if one of them is still there: it would
  // be taken for one of the repair.
  // REQUIRES: Hold() has succeeded.
  Status CheckMoved(const std::vector<std::string>& manifests);
  // To be called at the end of a repair. Returns `status` if it is an error.
  // Otherwise sets CURRENT to MANIFEST `manifest_number`.
  Status Finish(const Status& status, uint64_t manifest_number);

 private:
  // Replaces the contents of `file` by a text that is valid neither as a
  // CURRENT nor as a MANIFEST.
  Status Invalidate(const std::string& file);

  FileSystem* const fs_;
  const std::string dbname_;
  bool holding_ = false;
  bool has_moved_ = false;  // CheckMoved() has succeeded
};

}  // namespace ROCKSDB_NAMESPACE
