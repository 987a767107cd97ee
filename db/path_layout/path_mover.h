//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/path_layout/path_move_mark.h"
#include "db/path_layout/path_move_plan.h"
#include "db/path_layout/path_move_survey.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class CheckedFileCopy;
class Comparator;
class FileChecksumGenFactory;
class FileLock;
class FileSystem;
class RateLimiter;
class SystemClock;

// Moves the SST, blob and delta files of a closed database from directories
// among its paths to others (PathMovePlan), and changes the cf_paths in its
// OPTIONS file.
//
// The steps, each of which is durable before the next one begins:
// 1. The mark (PathMoveMark) names the files.
// 2. Each file gets a second name in the destination by a hard link. If the
//    destination is on another device, the file is copied under a temporary
//    name, and renamed when the copy is synced and verified.
// 3. A new OPTIONS file replaces the newest one, under the same name: a later
//    number could be that of a file which the database is going to write.
// 4. The old files are deleted, and so is the mark.
//
// Invariants:
// 1. Before step 4 the database has all files in its old paths, and from step 3
//    on in its new ones. So it opens with one of them after a crash at any
//    point, and another Run() finishes the move, also if the database was open
//    in between.
// 2. A file with its final name in the destination is complete. No file is
//    overwritten. A file is deleted only if the destination has it, or if the
//    mark names it and the MANIFEST does not. The mark names only files that
//    were in the source.
// 3. The MANIFEST, the WALs and all other files stay as they are.
//
// Not thread-safe.
class PathMover {
 public:
  struct MoveOptions {
    std::vector<PathMoveRequest> requests;
    // Limit for the bytes that are copied; 0: none.
    uint64_t bytes_per_second = 0;
    // Whether each copy is compared with its source, and the source with its
    // checksum in the MANIFEST. Sizes are always compared.
    bool verifies = true;
    // True: say what would be moved, and change nothing.
    bool is_dry_run = false;
    // Seconds between two lines about the progress.
    uint64_t seconds_between_reports = 5;
    // Receives lines, without line breaks, for the user.
    std::function<void(const std::string& line)> report =
        [](const std::string&) {};
  };

  // How a column family is opened before the move.
  struct Family {
    // Empty: no paths are given.
    std::vector<DbPath> paths;
    // nullptr: unknown.
    const Comparator* comparator = nullptr;
  };
  using FamilyOf = std::function<Family(const std::string& name)>;

  struct Summary {
    uint64_t linked_files = 0;
    uint64_t copied_files = 0;
    // Linked and copied ones.
    uint64_t bytes = 0;
    // Old files, also those of an earlier attempt.
    uint64_t deleted_files = 0;
  };

  // REQUIRES: *fs and *clock live longer.
  PathMover(FileSystem* fs, SystemClock* clock, const std::string& dbname,
            MoveOptions options);
  ~PathMover();
  PathMover(const PathMover&) = delete;
  PathMover& operator=(const PathMover&) = delete;

  // Locks the database until this object is destroyed. Returns an error if the
  // database is open, NotFound if there is none.
  Status Lock();

  // Moves the files. Returns InvalidArgument, NoSpace or Corruption, and leaves
  // everything as it was, if they cannot be moved.
  // family_of: returns the paths of a column family of the MANIFEST.
  // wal_dir: empty: the directory of the database.
  // checksums: makes the functions of the checksums in the MANIFEST; nullptr
  //     stands for RocksDB's crc32c. It is no member of MoveOptions because the
  //     OPTIONS file, which must be read under the lock, may name it.
  // REQUIRES: Lock() returned OK; called once
  Status Run(const FamilyOf& family_of, const std::string& wal_dir,
             std::shared_ptr<FileChecksumGenFactory> checksums);

  const Summary& summary() const { return summary_; }

 private:
  // Functions that find out what is to be done.
  Status ReadMark();
  Status MakePlan(const FamilyOf& family_of, const std::string& wal_dir);
  Status ReadFamilies(const FamilyOf& family_of,
                      std::vector<PathMovePlan::Family>* families) const;
  Status ReadOptionsFile();
  bool IsComplete() const;
  // Returns true if the old paths have all files.
  bool KeepsOldPaths() const;
  // Returns true if the mark of an earlier attempt names the file.
  // index: of the move.
  bool IsMarked(size_t index, const std::string& name) const;

  // Functions that put no file into a destination.
  Status WriteMark();
  Status Prepare();
  Status PrepareDestination(const PathMoveSurvey::Move& move, size_t index);
  Status TryLink(const PathMoveSurvey::Move& move, size_t index);
  Status CheckSpace() const;
  // Returns true if WriteMark() and Prepare() were undone: there is nothing for
  // another Run() to go on with.
  bool UndoPreparation();

  // Functions for the steps after the mark that the comment of the class
  // describes.
  Status Execute();
  Status Transfer(PathMoveSurvey::Move* move, bool can_link);
  Status TransferFile(const PathMoveSurvey::Move& move,
                      PathMoveSurvey::File* file, bool can_link);
  Status CompareTwins(const PathMoveSurvey::Move& move,
                      const PathMoveSurvey::File& file) const;
  Status WriteOptionsFile();
  Status DeleteOld(const PathMoveSurvey::Move& move);
  // Deletes a file that may have been deleted already.
  Status DeleteIfExists(const std::string& fname) const;

  void Report(const std::string& line) const { options_.report(line); }
  void ReportPlan() const;
  void ReportProgress();
  void ReportEnd(uint64_t start_micros) const;
  // Returns "12 files (3456 bytes) of path id 1 of column family default from
  // /a to /b".
  static std::string TextOf(const PathMoveSurvey::Move& move);

  FileSystem* const fs_;
  SystemClock* const clock_;
  const std::string dbname_;
  MoveOptions options_;
  FileLock* lock_ = nullptr;

  std::unique_ptr<RateLimiter> limiter_;
  std::unique_ptr<CheckedFileCopy> copy_;
  std::unique_ptr<PathMovePlan> plan_;
  PathMoveSurvey survey_;
  bool has_mark_ = false;
  PathMoveMark mark_;

  // The newest OPTIONS file; 0: there is none.
  uint64_t options_number_ = 0;
  std::string old_options_;
  std::string new_options_;
  // The column families whose paths are in the OPTIONS file.
  std::set<std::string> stored_;

  // For each move of survey_, whether files can be linked.
  std::vector<bool> can_link_;
  std::vector<std::string> created_directories_;
  // True: a destination has a file that only the mark explains.
  bool keeps_mark_ = false;
  bool is_deleting_ = false;
  Summary summary_;
  uint64_t pending_files_ = 0;
  uint64_t pending_bytes_ = 0;
  uint64_t done_files_ = 0;
  uint64_t done_bytes_ = 0;
  uint64_t last_report_micros_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
