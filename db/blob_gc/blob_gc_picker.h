//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Decides whether blob files of a column family with an address map are to be
// collected, and which: whose live values are copied to a new file, so that the
// garbage beside them goes with the old ones.
//
// When. The space amplification is what the files take up over what they would
// take up without garbage. A job needs room for its copies while the old files
// are still there, and flushes go on meanwhile: so it begins as far below the
// limit as that takes.
//
// Which. Copying the live part u of a file gives the rest back, at the cost of
// reading and writing it. A file that is old and still has live values will
// keep most of them, so what is freed there stays free for long: the score is
// (1 - u) / (1 + u) * sqrt(age), after the cost-benefit policy of the
// log-structured file system (Rosenblum and Ousterhout, 1992), whose plain age
// would wait too long for young files under uniform overwrites. The age is
// counted in file numbers. What was copied once goes to other files than what
// was flushed (survivors): the two have garbage at different rates.
//
// Invariant: whatever Pick() picks takes up less space afterwards.
//
// Small files. Many flushes of little leave many files, each of which costs an
// open file, memory and a record in the MANIFEST. Files that are far smaller
// than a full one are merged, garbage or not. They are sorted into tiers by
// size, a tier for each factor of kTierFactor; a tier is merged when it has as
// many files. So a value is copied once for each tier at most, and values that
// are overwritten soon are dead before their file's turn comes.
//
// No state, no locks: a function of what it is told.
class BlobGcPicker {
 public:
  struct File {
    uint64_t number = 0;
    uint64_t size = 0;  // on disk
    // What it would be without garbage: 0 if there is no live value.
    uint64_t live_size = 0;
    uint32_t path_id = 0;
    // It was written by a collection.
    bool is_survivor = false;
    // A job has it already, or it must not be touched now.
    bool is_busy = false;
  };

  struct Options {
    // From 1 to kMaxLimit.
    double space_amp_limit = 1.0;
    // What one flush brings, about: it may come while a job runs.
    uint64_t flush_size = 0;
    // Jobs do not copy more than this at a time, but one file at least.
    uint64_t max_copied = 0;
    // And this much, whatever the limit.
    uint64_t min_copied = 0;
    // As many may run at a time.
    int max_jobs = 1;
    // The next file number of the DB.
    uint64_t next_file_number = 0;
    // The size of a full file. 0: none is small.
    uint64_t file_size = 0;
    // Small files are merged as soon as there are two, whatever their sizes and
    // whatever the limit.
    bool merge_all_small = false;
  };

  struct Space {
    uint64_t on_disk = 0;
    uint64_t live = 0;

    // 1 without garbage, also if there is nothing; infinity if there is nothing
    // else.
    double Amplification() const;
  };

  struct Job {
    std::vector<uint64_t> files;  // none: nothing to do
    uint64_t size = 0;
    uint64_t live_size = 0;
    uint32_t path_id = 0;
  };

  BlobGcPicker() = delete;

  // copies: what jobs have written of the files that they will add.
  static Space SpaceOf(const std::vector<File>& files, uint64_t copies);

  // How much one job copies at most: a sixteenth of what the limit leaves for
  // garbage, and all jobs together an eighth, for until a job is over the
  // values are there twice.
  static uint64_t MaxCopied(const Options& options, const Space& space);

  // How many bytes of garbage there are above what the limit, less the room
  // that is needed meanwhile, allows. 0: nothing is to be done. Files that are
  // busy count as collected already.
  static uint64_t Excess(const Options& options,
                         const std::vector<File>& files);

  // The best files for one job, if Excess() says that there is something to do.
  static Job Pick(const Options& options, const std::vector<File>& files);

  // The small files for one job that merges them, if there are enough.
  static Job PickSmall(const Options& options, const std::vector<File>& files);

  static constexpr size_t kMaxFiles = 32;
  // A file below this part of a full one is small.
  static constexpr uint64_t kSmallPart = 8;
  // The sizes of files in one tier differ by less than this factor, and a tier
  // with this many files is merged.
  static constexpr uint64_t kTierFactor = 16;
  // A job that has room for fewer files than this waits, unless its output is
  // no small file.
  static constexpr size_t kMinMerged = 4;
  // Of Options::space_amp_limit.
  static constexpr double kMaxLimit = 1000.0;

 private:
  static double Score(const File& file, uint64_t next_file_number);
};

}  // namespace ROCKSDB_NAMESPACE
