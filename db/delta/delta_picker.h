//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "db/delta/delta_bucket_intake.h"
#include "db/delta/delta_damage.h"
#include "db/delta/delta_file_description.h"
#include "db/delta/delta_gc_job.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_version.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

struct MutableCFOptions;

// Decides which merge, collection or fold a column family's delta files need
// next.
//
// Merges. A reader asks every recent file, so flushed files are merged when
// there are kMaxFlushed of a kind, or when they are a large share of all delta
// files. All flushed files are merged at once, so each operand is merged once.
//
// Collections. Rewriting a bucket costs the same for few new operands as for
// many, so a bucket is collected when its new operands are half as large as its
// extent, or fill a bucket. All buckets are collected some time after there are
// kMaxMerged merged epochs: the oldest merged file goes when no bucket needs
// it. Adjacent buckets are collected together, up to kMaxCollected bytes,
// including buckets in between that have little to take in: a file per bucket
// would be too many. Buckets are also collected if
// * their file has become mostly garbage because other buckets in it were
//   rewritten: a file stays as long as one bucket names it;
// * they had to keep something for a snapshot that is gone.
// If there are nearly as many buckets as allowed, the smallest two adjacent
// buckets that fit into one are joined first, together with small buckets
// beside them.
//
// Folds. Operands of a bucket are merged into values (folded) if the bucket
// must not be split although it is too large, or if there are many operands per
// key; but only if the bucket is to be collected anyway. Otherwise operands
// that a fold must leave because of snapshots would make the bucket eligible
// again at once.
//
// Wishes. Buckets with keys that a compaction filter waits for
// (DeltaFoldWishes) are collected and folded. Before that, flushed files that
// may have operands of these keys are merged, however few files there are.
//
// Requests. CompactRange() forces what has come before the call
// (Options::force_below). So that the call ends beside writers, its picks take
// what is forced and what is wished for, and leave what is due because of later
// files to jobs in the background.
//
// The drain. If the column family no longer separates deltas, all operands are
// to become values: every flushed file is merged, and every bucket that is not
// empty is collected with a fold. Operands that a fold has left are tried again
// when that may succeed (DeltaJobState::Leftover). While it is not known when
// some leftover can be folded, the drain cannot finish, so the buckets of such
// leftovers and merges use the normal thresholds.
//
// Paths. A file that lies on another path than the options say is misplaced,
// and is moved by being rewritten: misplaced flushed files are merged, however
// few there are; all buckets take in misplaced merged files; and buckets with a
// misplaced sorted file are rewritten. A collection for this reason comes after
// collections for all other reasons, since the data is right on any path. A job
// writes to the paths for which its files were picked, so the same file is
// moved again only after another change of the options.
//
// Damage. A collection that has failed with Corruption would be the best one
// again. Its buckets are collected one by one, and the one that fails alone is
// left alone, so that a damaged block stops the jobs of its own bucket only
// (DeltaDamage). The others go on as if the merged files that only damaged
// buckets need did not exist. There is no debt that jobs cannot pay.
//
// Has no state and takes no locks: each function depends on its arguments only.
class DeltaPicker {
 public:
  using FilePtr = DeltaVersion::FilePtr;

  // The path ids of the files of each tier.
  struct Paths {
    uint32_t recent = 0;  // kFlushed and kMerged
    uint32_t sorted = 0;

    // Returns the paths by these options.
    // num_levels: the number of levels of the column family.
    static Paths By(const MutableCFOptions& options, int num_levels);
    bool IsMisplaced(const DeltaFileDescription& file) const {
      return file.path_id != (file.tier == DeltaFileDescription::Tier::kSorted
                                  ? sorted
                                  : recent);
    }
    bool operator==(const Paths&) const = default;
  };

  struct Options {
    uint64_t bucket_size = uint64_t{256} << 10;
    uint32_t max_buckets = 32768;
    double split_ratio = 0.8;
    // DeltaStore::OldestRunningFlush()
    uint64_t oldest_running_flush = UINT64_MAX;
    // Flushed files whose first epoch is below it are merged, and taken in by
    // all buckets like merged files, whatever the cost: all files that existed
    // when the next file number was this one. A pick then leaves all buckets
    // but those that must take in such a file, whose rewrite a file below this
    // number causes, or that have wishes. 0: no file is forced, and the pick
    // considers all buckets.
    uint64_t force_below = 0;
    // All readers see entries with sequence numbers up to it.
    SequenceNumber earliest_snapshot = 0;
    bool can_fold = false;
    // True if the column family is drained, see above.
    bool drain = false;
    DeltaJobState::Leftovers leftovers;
    // Maximum input of a collection, and of one that folds, in bytes.
    uint64_t max_collected = kMaxCollected;
    uint64_t max_folded = kMaxCollected;
    // See DeltaGcJob::Plan. Ignored by a drain.
    uint64_t min_fold_bytes = 0;
    // Buckets to leave alone, or to collect one by one.
    DeltaDamage damage;
    // Keys to fold; nullptr: none. See DeltaJobState.
    std::shared_ptr<const DeltaFoldWishes> wishes;
    uint64_t wishes_below = 0;
    // Where files belong; nullopt: on any path.
    std::optional<Paths> paths;
    // Misplaced files are no reason for a job: a call of MigratePaths() moves
    // them, at its own rate.
    bool leaves_misplaced = false;
    // For a request: it moves misplaced sorted files whatever their numbers. A
    // job that began before the options changed may have written one whose
    // number is not below force_below.
    bool moves_all = false;

    // True for a drain if no leftover is waiting, so that the drain can finish.
    bool DrainsAll() const;
    bool IsMisplaced(const DeltaFileDescription& file) const {
      return !leaves_misplaced && paths.has_value() && paths->IsMisplaced(file);
    }
  };

  struct Merge {
    // All flushed files up to last_epoch; empty if there is nothing to do.
    std::vector<FilePtr> inputs;
    uint64_t last_epoch = 0;
    uint64_t bytes = 0;
    // The only reason is that files are misplaced.
    bool moves_files = false;
  };

  struct Collection {
    bool found = false;
    DeltaGcJob::Plan plan;
    // Number of buckets, and the bytes of their extents and of what they take
    // in.
    size_t num_buckets = 0;
    uint64_t bytes = 0;
    // By how much the number of buckets may decrease.
    uint32_t fewer_buckets = 0;
    // The only reason is that files are misplaced.
    bool moves_files = false;
    // It reads all that there is: the first partition, and the removal of
    // unused buckets. A failure says nothing about single buckets.
    bool takes_all = false;
    // Nothing was found, but a collection that is running has something that
    // would have been picked otherwise.
    bool waits_for_others = false;
  };

  DeltaPicker() = delete;

  // Returns the merge that is due; without inputs if none is.
  static Merge PickMerge(const Options& options, const DeltaVersion& version);
  // Returns false if there is certainly nothing to collect, because there are
  // neither merged files nor buckets. Cheap.
  static bool MayCollect(const DeltaVersion& version);
  // Returns the best collection that is due; `found` is false if none is.
  // slices: intake of the buckets of `version`.
  // running: collections that are running, whose ranges are left alone.
  static Collection PickCollection(
      const Options& options, const DeltaVersion& version,
      const DeltaBucketIntake& slices,
      const std::vector<DeltaJobState::Collection>& running);

  // Returns true if a collection can fulfil wishes: there are some, folds are
  // possible, and no flushed file that may have their operands is left to
  // merge.
  static bool CanFulfil(const Options& options, const DeltaVersion& version);

  // Returns true if there are flushed files that force_below applies to, or
  // that must be merged before wishes are fulfilled, including files that
  // cannot be merged yet.
  static bool HasForcedMerge(const Options& options,
                             const DeltaVersion& version);

  // Returns the Options::force_below of a request (with moves_all) that moves
  // the misplaced files, and forces nothing else that it does not need for
  // that: 1 if all of them are sorted; 0 if there are none.
  static uint64_t ForceBelowToMove(const Paths& paths,
                                   const DeltaVersion& version);

  // Returns the debt of delta jobs: the bytes of recent files beyond the
  // numbers of files above which writes are slowed down (kSlowdownFlushed,
  // kSlowdownMerged). Files that pile up because of damage do not count.
  // jobs: has the damage.
  // REQUIRES: DB mutex held.
  static uint64_t Debt(const DeltaVersion& version, const DeltaJobState& jobs);
  // Returns compaction_needed_bytes, increased by the debt of delta jobs: if
  // readers have to ask more than about twice as many files as they should,
  // writes are slowed down, but never stopped.
  // version: may be nullptr.
  // jobs: has the damage.
  // REQUIRES: DB mutex held.
  static uint64_t AddDebt(uint64_t compaction_needed_bytes,
                          const DeltaVersion* version,
                          const DeltaJobState& jobs,
                          const MutableCFOptions& options);

  // Flushed files of one kind (operands or anchors) that are merged.
  static constexpr size_t kMaxFlushed = 4;
  // Flushed files of at least kMinMerged bytes are merged if they are at least
  // 1 / kFlushedDivisor of all delta files.
  static constexpr uint64_t kMinMerged = uint64_t{64} << 20;
  static constexpr uint64_t kFlushedDivisor = 8;
  // The first partition is due if merged files have 1 / kFirstPartitionDivisor
  // of the capacity (bucket_size * max_buckets) or kFirstPartitionMerged
  // epochs.
  static constexpr uint64_t kFirstPartitionDivisor = 20;
  static constexpr size_t kFirstPartitionMerged = 4;
  static constexpr size_t kMaxMerged = 12;
  // A bucket is collected if it takes in 1 / kSliceDivisor of its extent's
  // bytes.
  static constexpr uint64_t kSliceDivisor = 2;
  // An intake below bucket_size / kMinSliceDivisor is not worth a collection.
  static constexpr uint64_t kMinSliceDivisor = 16;
  static constexpr uint64_t kMaxCollected = uint64_t{32} << 20;
  // Maximum bytes of other buckets between overdue ones that are collected with
  // them, as a multiple of bucket_size.
  static constexpr uint64_t kMaxGap = 4;
  // Numbers of files of a kind above which writes are slowed down.
  static constexpr size_t kSlowdownFlushed = 3 * kMaxFlushed;
  static constexpr size_t kSlowdownMerged = 2 * kMaxMerged;

 private:
  class CollectionPicker;

  // Returns the bytes of recent files beyond the limits of their number.
  // min_epoch: merged files up to this epoch do not count.
  static uint64_t Excess(const DeltaVersion& version, bool counts_flushed,
                         bool counts_merged, uint64_t min_epoch);
};

}  // namespace ROCKSDB_NAMESPACE
