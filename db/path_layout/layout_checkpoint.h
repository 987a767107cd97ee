//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/path_layout/checkpoint_staging.h"
#include "db/path_layout/copy_plan.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class CopyPaths;
struct CheckpointMark;
class DB;
class FileSystem;
class Logger;
struct LiveFileStorageInfo;

// The directories of a checkpoint: its main directory, which the caller names,
// and, with a CopyLayout, others.
//
// The checkpoint is written to staging directories (CheckpointStaging), whose
// names no other attempt has. Commit() syncs all of them. It renames the others
// first and the main one last. A checkpoint without a layout has RocksDB's
// staging directory, the main one with ".tmp" behind.
//
// Invariant: if the main directory exists, all others are complete and durable.
// A crash during Commit() can leave others without the main directory. Each of
// them, and each staging directory before a file is put there, has a mark
// (CheckpointMark) with the same random text. The next checkpoint with the same
// directories recognizes them by the mark, deletes them, and leaves any other
// directory alone. A checkpoint with the same main directory and other ones
// leaves them alone, too, and names them in LOG. A directory that has only the
// mark of an attempt that has ended is deleted by any checkpoint with it.
//
// A checkpoint takes the staging directory of another one that is running for
// one that a crash has left, and deletes it. Before that it renames the
// directory, so that the other one can neither write there nor commit it, and
// fails. The directory of a checkpoint that is complete is not taken away.
//
// Not thread-safe.
class LayoutCheckpoint {
 public:
  // directory, staging: the main directory, and the same with ".tmp" behind.
  // layout: nullptr means that there is one directory.
  // REQUIRES: *db and *layout live longer.
  LayoutCheckpoint(DB* db, const std::string& directory,
                   const std::string& staging, const CopyLayout* layout);

  bool has_layout() const { return plan_ != nullptr; }
  // The staging directory of the main one.
  const std::string& staging() const { return staging_; }

  // Checks the directories and deletes what earlier attempts have left. Returns
  // InvalidArgument if the layout is wrong, a directory exists that is not
  // empty, or one is inside or around another one or one of the DB. Nothing was
  // changed then, unless the directory was made during the call. A failed call
  // leaves nothing behind that it has created.
  Status Begin();

  // Creates the staging directories of the others, with marks, and makes the
  // plan for the live files of the DB. MANIFEST and OPTIONS file get their new
  // contents. Returns TryAgain if the OPTIONS file does not have a new column
  // family yet.
  // paths: existed when *files was requested.
  // files: the result of GetLiveFilesStorageInfo().
  // REQUIRES: has_layout(); Begin() returned OK; the caller has created
  //     staging(); file deletions are disabled since before *files was
  //     requested.
  Status Prepare(const CopyPaths& paths,
                 std::vector<LiveFileStorageInfo>* files);

  // Returns the staging directory of a file.
  // name: without directory.
  const std::string& StagingDirectoryOf(const std::string& name) const;

  // Renames the staging directories. Returns Aborted if another checkpoint has
  // taken one of them away, or has made one of the directories.
  // REQUIRES: all files are complete and synced.
  Status Commit();

  // Deletes what this attempt has made, unless Commit() renamed the main
  // directory. Without a layout it does nothing.
  // error: the reason.
  // Returns it, or Aborted if its cause is that another checkpoint has taken a
  // staging directory away.
  Status Abandon(const Status& error);

 private:
  // A directory besides the main one.
  struct Other {
    std::string directory;
    std::string staging;
    std::set<std::string> files;
    // Whether this attempt has created `staging` and renamed it.
    bool is_created = false;
    bool is_renamed = false;
  };

  // Returns InvalidArgument if directories of the checkpoint, or their staging
  // directories, are inside or around one another or one of `of_db`.
  Status CheckDirectories(const std::set<std::string>& of_db) const;
  // Returns the directories of the DB.
  std::set<std::string> DirectoriesOfDB(const CopyPaths& paths) const;
  Status DeleteLeftovers() const;
  // Finds the staging directories of earlier attempts, but for directories with
  // foreign files.
  // attempts: gets the attempts of the marks in them.
  Status FindMainLeftovers(std::vector<CheckpointStaging>* found,
                           std::set<std::string>* attempts) const;
  Status FindLeftovers(const Other& other,
                       std::vector<CheckpointStaging>* found) const;
  // Returns true if a directory has no files apart from those of the mark, and
  // the mark.
  bool HasOnlyFilesOf(const CheckpointMark& mark,
                      const std::string& directory) const;
  // Writes to LOG which directories an earlier attempt with this main directory
  // has left that this one does not have.
  // name: the staging directory of the attempt.
  void ReportForgotten(const std::string& name) const;
  // Returns InvalidArgument if `directory`, one besides the main one, is not
  // that of an earlier attempt, and NotFound if it does not exist.
  // attempts: those with this main directory that are not complete.
  // attempt: gets that of the mark; empty if there is no file.
  Status CheckLeftover(const std::string& directory,
                       const std::set<std::string>& attempts,
                       std::string* attempt) const;
  // Returns true if the attempt with this mark, which is in `directory`, one
  // besides the main one, has ended without a complete checkpoint that has this
  // directory.
  bool HasEnded(const CheckpointMark& mark, const std::string& directory) const;
  // Returns true if an OPTIONS file of the DB in `name` has `directory` among
  // its paths, or cannot be read. A DB need not exist.
  bool NamesPath(const std::string& name, const std::string& directory) const;
  // Gives a staging directory of any attempt the name of one that is being
  // deleted.
  // is_taken: gets false if the directory does not exist any more.
  Status TakeAway(const CheckpointStaging& staging, bool* is_taken) const;
  // Deletes a directory that Commit() of an attempt has renamed. Returns
  // Aborted if the directory is one of another attempt. attempt:
  // CheckpointMark::attempt
  Status DeleteRenamed(const std::string& directory,
                       const std::string& attempt) const;
  // REQUIRES: no attempt can write to the directory or rename it, apart from
  //     this one.
  Status DeleteDirectory(const std::string& directory) const;
  // Makes the plan. Gives MANIFEST and OPTIONS file their new contents.
  Status MakePlan(const CopyPaths& paths,
                  std::vector<LiveFileStorageInfo>* files);
  // Returns an error if the MANIFEST and the list name different files, or if
  // the DB was opened without a column family of the MANIFEST.
  Status CheckFiles(const CopyPaths& paths,
                    const ManifestColumnFamilies& families,
                    const std::vector<LiveFileStorageInfo>& files) const;
  Status ChangeOptions(const ManifestColumnFamilies& families,
                       LiveFileStorageInfo* options) const;
  Status WriteMarks();
  // Returns Aborted if the directory is not of this attempt, or does not have
  // these files and no others.
  // files: nullptr means that only the mark is checked.
  Status CheckOwn(const std::string& directory,
                  const std::set<std::string>* files) const;
  // Returns Aborted if `staging` does not exist any more, or if `directory`
  // exists.
  Status Rename(const std::string& staging, const std::string& directory) const;
  void DeleteMarks() const;
  Status Sync(const std::set<std::string>& directories) const;

  DB* const db_;
  FileSystem* const fs_;
  Logger* const logger_;
  const std::string directory_;
  // The staging directory of checkpoints without a layout.
  const std::string plain_staging_;
  // plain_staging_ without ".tmp": directory_ without slashes at the end.
  const std::string base_;
  std::string staging_;
  std::unique_ptr<CopyPlan> plan_;
  std::vector<Other> others_;
  // CheckpointMark::attempt; empty without a layout.
  std::string attempt_;
  // Prepare() was called.
  bool is_prepared_ = false;
  bool is_committed_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
