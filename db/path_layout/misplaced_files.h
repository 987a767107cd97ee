//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

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

// Files that lie, or refer to values that lie, elsewhere than the path layout
// asks for (see PathLayout::IsMisplaced()), and what brings them home: a
// compaction of the file with its own level as output.
//
// Files become misplaced when the layout changes, or when a move without
// rewriting takes them to a level of another path although
// PathLayout::CanMove() forbids it:
//   - Compactions (level style from any level, universal) are written instead.
//   - The move-down at open, for level_compaction_dynamic_level_bytes, leaves
//     the files where they are; compaction takes them down.
//   - ReFitLevel() and PromoteL0() were asked for by the user and do it. The
//     files keep their path and are misplaced at the new level. CompactRange()
//     with change_level rewrites those of its range before it returns.
// Which of them are left is compaction's business (kMisplacedFiles), behind
// all other reasons: the data is correct wherever it lies.
//
// A compaction of this reason cannot leave its output misplaced: the paths of
// its outputs come from the same options that judge them, and it relocates all
// values that are not on the output's blob path. Only another change of the
// layout can ask for the same file again.
class MisplacedFiles {
 public:
  // Universal style (level style has a list of reasons to pick a file for). A
  // sorted run is rewritten file by file: an L0 file on its own, a file of a
  // level with those that share a user key with it. Both keep their place in
  // the order of runs. Null if no file can be compacted now.
  // files: what is to be rewritten, with levels: misplaced files, or others
  // that a compaction in place helps, as `reason` says.
  static Compaction* PickUniversal(
      const std::string& cf_name, const ImmutableOptions& ioptions,
      const MutableCFOptions& options, const MutableDBOptions& db_options,
      VersionStorageInfo* vstorage, CompactionPicker* picker, double score,
      const autovector<std::pair<int, FileMetaData*>>& files,
      CompactionReason reason,
      const std::function<bool(int level)>& may_output_to_level);

  // The last step of CompactRange(): rewrites in place the files that overlap
  // [begin, end] (null: unbounded) and are misplaced, also those of the
  // bottommost level that it skipped. Does nothing if the caller chose a path
  // (target_path_id) or to leave the bottommost level alone (kSkip).
  //
  // REQUIRES: DB mutex not held
  static Status CompactRange(DBImpl* db, ColumnFamilyData* cfd,
                             const CompactRangeOptions& options,
                             const Slice* begin, const Slice* end,
                             const std::string& trim_ts);

  // A compaction that did not come about leaves a score computed with its own
  // options. The layout may have changed since.
  //
  // REQUIRES: DB mutex held
  static void FindAfterFailure(ColumnFamilyData* cfd);

  // How many of `files` would be misplaced at `level`.
  static size_t CountAt(const MutableCFOptions& options,
                        const std::vector<FileMetaData*>& files, int level);
};

}  // namespace ROCKSDB_NAMESPACE
