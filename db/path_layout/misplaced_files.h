//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/listener.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class Compaction;
class CompactionPicker;
class DBImpl;
struct FileMetaData;
struct ImmutableOptions;
struct MutableCFOptions;
struct MutableDBOptions;
class VersionStorageInfo;

// Picks and runs compactions for misplaced files: files that lie, or refer to
// values that lie, on other paths than the path layout specifies (see
// PathLayout::IsMisplaced()). The compaction rewrites the file with its own
// level as output.
//
// Files become misplaced when the layout changes, or when a move without
// rewriting takes them to a level of another path although
// PathLayout::CanMove() forbids it:
//   - A compaction (level style from any level, universal) rewrites the files
//     instead of moving them.
//   - The move-down at open, for level_compaction_dynamic_level_bytes, leaves
//     the files where they are; compaction takes them down.
//   - ReFitLevel() and PromoteL0() are requested by the user and do move files.
//     The files keep their path and are misplaced at the new level.
//     CompactRange() with change_level rewrites those of its range before it
//     returns.
// The remaining misplaced files are compacted in the background
// (kMisplacedFiles), with lower priority than all other reasons, since the data
// is correct regardless of its path; or, while MigratePaths() runs, by its jobs
// alone (VersionStorageStrata::LeaveMisplacedFiles()).
//
// Invariant: a compaction for this reason never leaves its output misplaced.
// The paths of its outputs are determined by the same options that decide
// whether they are misplaced, and it relocates all values that are not on the
// output's blob path. So the same file is compacted again only after another
// change of the layout.
class MisplacedFiles {
 public:
  // Picks a compaction of misplaced files for universal style. (Level style has
  // a list of reasons to pick a file for.) A sorted run is rewritten file by
  // file: an L0 file by itself, a file of another level together with those
  // that share a user key with it. Both keep their place in the order of runs.
  // Returns nullptr if no file can be compacted at the moment.
  // files: files to rewrite, with their levels. By `reason` these are misplaced
  //     files, or others for which a compaction in place is useful.
  static Compaction* PickUniversal(
      const std::string& cf_name, const ImmutableOptions& ioptions,
      const MutableCFOptions& options, const MutableDBOptions& db_options,
      VersionStorageInfo* vstorage, CompactionPicker* picker, double score,
      const autovector<std::pair<int, FileMetaData*>>& files,
      CompactionReason reason,
      const std::function<bool(int level)>& may_output_to_level);

  // The input level of a manual compaction of one misplaced file, with the
  // files that must go with it (PickOne()).
  static constexpr int kInputLevel = -3;

  // Picks a compaction of one misplaced file, for ColumnFamilyData's part of a
  // manual compaction with kInputLevel, and registers it. Returns nullptr if
  // there is none, or if other jobs have all of them. The manual compaction
  // ends in both cases: if it waited for these jobs, it would need a signal,
  // which not all of them give, and automatic compactions would wait for it.
  // REQUIRES: DB mutex held; level or universal style.
  static Compaction* PickOne(ColumnFamilyData* cfd,
                             const MutableDBOptions& db_options);

  // Runs the compaction that PickOne() picks, in a background thread, and waits
  // for its end. Works without automatic compactions, too. OK, with nothing
  // done, if there is no misplaced file, or if other jobs have all of them.
  // canceled: as CompactRangeOptions::canceled; may be nullptr.
  // REQUIRES: DB mutex not held; level or universal style.
  static Status CompactOne(DBImpl* db, ColumnFamilyData* cfd,
                           std::atomic<bool>* canceled);

  // Returns true if DB::CompactRange() has CompactRange() as its last step: the
  // column family has several paths, and the caller chose neither a path
  // (target_path_id) nor to skip the bottommost level (kSkip). To be called
  // before the compactions: after them, Close() may have deleted the family.
  static bool MayCompactRange(const ColumnFamilyData& cfd,
                              const CompactRangeOptions& options);
  // The last step of DB::CompactRange(): rewrites in place the misplaced files
  // that overlap [begin, end] (nullptr: unbounded), including those of the
  // bottommost level that the previous steps skipped. Returns
  // ShutdownInProgress, and does not touch the family, if the DB is being
  // closed.
  //
  // REQUIRES: DB mutex not held; MayCompactRange() was true.
  static Status CompactRange(DBImpl* db, ColumnFamilyData* cfd,
                             const CompactRangeOptions& options,
                             const Slice* begin, const Slice* end,
                             const std::string& trim_ts);

  // Computes the misplaced files again after a compaction that failed or did
  // not start. Such a compaction leaves a score that was computed with its own
  // options, and the layout may have changed since. Or it leaves one that was
  // computed while it held its inputs. Returns true if there are misplaced
  // files, so that the column family needs a compaction.
  //
  // REQUIRES: DB mutex held
  static bool FindAfterFailure(ColumnFamilyData* cfd);

  // Returns how many of `files` would be misplaced at `level`.
  static size_t CountAt(const MutableCFOptions& options,
                        const std::vector<FileMetaData*>& files, int level);
};

}  // namespace ROCKSDB_NAMESPACE
