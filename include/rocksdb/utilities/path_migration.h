//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyHandle;
class DB;

// The progress of a call of MigratePaths(). The property
// "rocksdb.path-migration" has the same numbers.
struct MigratePathsProgress {
  // The files that lay on other paths than the layout says when the call began,
  // and their bytes, counted as in the property "rocksdb.misplaced-bytes".
  uint64_t files_at_start = 0;
  uint64_t bytes_at_start = 0;
  // The sum of all decreases of bytes_left. Never decreases. It differs from
  // bytes_at_start - bytes_left if jobs that began with the former layout add
  // files, or if the layout is changed once more.
  uint64_t bytes_moved = 0;
  uint64_t files_left = 0;
  uint64_t bytes_left = 0;
  // Bytes that the jobs of the call have written: less than bytes_moved if they
  // drop what is overwritten or deleted, and more if files that share keys with
  // misplaced ones are rewritten, too.
  uint64_t bytes_written = 0;
  // The number of jobs that have written something.
  uint64_t jobs = 0;
  // The time since the call began.
  uint64_t micros = 0;

  // Returns bytes_moved for each second of the call.
  uint64_t BytesPerSecond() const;
  // Returns how many seconds the rest takes at this rate; UINT64_MAX if that is
  // unknown, because nothing was moved yet.
  uint64_t SecondsLeft() const;
};

struct MigratePathsOptions {
  // The new layout: the options with these names, which the call sets as
  // DB::SetOptions() does, so that they are also in the OPTIONS file.
  // Default: none of them; the options stay as they are
  std::optional<std::vector<uint32_t>> level_sst_path_ids;
  std::optional<std::vector<uint32_t>> level_blob_path_ids;
  std::optional<int32_t> delta_sorted_path_id;

  // The bytes that the jobs of the call may write in a second, on average. A
  // job begins when what the jobs before it have written has been paid for at
  // this rate. A job itself, which is about one SST file with the values that
  // it refers to, or 32 MiB of delta files, runs at the speed that
  // DBOptions::rate_limiter allows: jobs are compactions for it.
  // Default: 0, no limit
  uint64_t max_bytes_per_second = 0;

  // Ends the call soon after it has become true, also in the middle of a job.
  // As with CompactRangeOptions::canceled, all that ends manual compactions may
  // set it, too: DB::DisableManualCompaction(), DB::AbortAllCompactions(),
  // DB::Close(), and DB::CompactRange() with change_level. It must be false
  // again for the next call.
  // Default: nullptr
  std::atomic<bool>* canceled = nullptr;

  // Called by the thread of the call: when the call begins, after each job,
  // from time to time while the call waits, and at the end. It must not call
  // DB::Close(), DB::DisableManualCompaction(), DB::AbortAllCompactions() or
  // DB::CompactRange() with change_level: they wait for the end of the call,
  // which waits for them then. To end the call, set `canceled`. A slow callback
  // delays these calls of other threads. MigratePaths() of the same column
  // family is Busy.
  // Default: none
  std::function<void(const MigratePathsProgress&)> on_progress;
};

// Moves all files of the column family that lie on other paths than its layout
// (level_sst_path_ids, level_blob_path_ids, delta_sorted_path_id) says, and
// nothing else: SST files with the values that they refer to, one after the
// other, hot blob files that blob_hot_bytes or blob_hot_path_id no longer keeps
// where they are, and delta files. It returns when no file is left to move. It
// works with disable_auto_compactions, too.
//
// All data can be read at any time, by iterators and snapshots from before as
// well. A file that was replaced stays on its old path until its last reader
// has let go of it; so do blob files with garbage alone.
//
// While the call runs, automatic compactions and other jobs in the background
// do not move files of the column family for the sake of the layout; what they
// rewrite for other reasons goes where it belongs, as do flushes. After the
// call they move what it has left, unless disable_auto_compactions is set. If
// the process ends before the call does, nothing is lost: the layout is in the
// OPTIONS file, and either the background or another call goes on.
//
// Memtables are not flushed: their data will be written where it belongs.
//
// The call waits
// * for jobs that began before the layout was set and may write by the former
//   one, at its end. Jobs of all column families count, as it is not known for
//   which one a file number was taken. An ingestion that was prepared is not
//   waited for: its files are moved after its commit, by the background or by
//   another call. While there are such ingestions, as many other jobs that
//   began before may be overlooked as ingestions were prepared since.
// * while other compactions have all misplaced files, or an exclusive
//   DB::CompactRange() waits for its turn;
// * while DB::PauseBackgroundWork() is in force.
//
// Errors:
// * InvalidArgument: the column family has, and would get, no layout; or the
//   layout is not valid, as in DB::SetOptions(). Nothing has changed.
// * NotSupported: a read-only or secondary instance; FIFO compaction or
//   kCompactionStyleNone. Nothing has changed.
// * Busy: another call for the column family is running. Nothing has changed.
// * Incomplete: it was canceled; DB::DisableManualCompaction(),
//   DB::AbortAllCompactions() or DB::CompactRange() with change_level was
//   called; delta files of a column family that no longer separates deltas
//   wait for snapshots, or have operands that cannot be merged; or hot blob
//   files have damaged values. What was moved stays moved, and the layout stays
//   set. The message says how much is left.
// * ShutdownInProgress, ColumnFamilyDropped: the DB is being closed, or the
//   column family was dropped.
// * other errors: a job has failed. The message says what is left, and where.
//
// progress: the result, also after an error; may be nullptr.
Status MigratePaths(DB* db, ColumnFamilyHandle* column_family,
                    const MigratePathsOptions& options,
                    MigratePathsProgress* progress = nullptr);

}  // namespace ROCKSDB_NAMESPACE
