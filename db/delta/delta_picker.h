//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "db/delta/delta_bucket_intake.h"
#include "db/delta/delta_gc_job.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_version.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

struct MutableCFOptions;

// Decides what is to be done with the delta files of a column family.
//
// Merges. A reader asks every recent file, so flushed files are merged when
// there are kMaxFlushed of a kind, or when they are much of all there is. All
// of them are: each operand is merged once.
//
// Collections. Rewriting a bucket for a few new operands costs as much as for
// many, so it is done when they are half of what the bucket has, or fill
// it; and of all buckets, some time after, when there are kMaxMerged merges:
// the oldest goes when no bucket needs it. Buckets that follow one another are
// collected together, up to kMaxCollected bytes, with others in between if
// these have little: a file per bucket would be too many. So are
// * buckets whose file has become mostly garbage, as the others of it were
//   rewritten: it stays as long as one bucket names it;
// * buckets that had to keep something for a snapshot that is gone.
// When there are nearly as many buckets as there may be, the smallest two that
// follow one another and fit into one are put together first, and small ones
// beside them with them.
//
// Operands of a bucket are merged into values (folded) when the bucket may not
// be split although it is too large, or when there are many for each key; but
// only if it is to be collected anyway: what a fold has to leave alone, as
// snapshots need it, must not bring it back at once.
//
// Wishes. Buckets with keys that are to be folded, as a compaction filter waits
// for them (DeltaFoldWishes), are collected for their sake. Before that,
// flushed files that may have operands of them are merged, however few they
// are.
//
// The drain. If the column family does not separate deltas any more, all of
// them are to become values, so every flushed file is merged and every bucket
// is collected with a fold as soon as it has something. What a fold has left is
// tried again when it may succeed (DeltaJobState::Leftover). As long as there
// is something for which that is not known, files cannot come to an end, and
// those of its buckets, and merges, wait until there is enough, as ever.
//
// No state, no locks: a function of what it is told.
class DeltaPicker {
 public:
  using FilePtr = DeltaVersion::FilePtr;

  struct Options {
    uint64_t bucket_size = uint64_t{256} << 10;
    uint32_t max_buckets = 32768;
    double split_ratio = 0.8;
    // DeltaStore::OldestRunningFlush()
    uint64_t oldest_running_flush = UINT64_MAX;
    // Flushed files that begin below it are to be merged and, like merged ones,
    // to be taken in by all buckets, whatever it costs: all that was there when
    // the next file number was this. 0: nothing has to be.
    uint64_t force_below = 0;
    // What is not above it, all readers see.
    SequenceNumber earliest_snapshot = 0;
    bool can_fold = false;
    // See above.
    bool drain = false;
    DeltaJobState::Leftovers leftovers;
    // Of a job, and of one that folds.
    uint64_t max_collected = kMaxCollected;
    uint64_t max_folded = kMaxCollected;
    // See DeltaGcJob::Plan. Not of a drain.
    uint64_t min_fold_bytes = 0;
    // Keys that are to be folded; nullptr: none. See DeltaJobState.
    std::shared_ptr<const DeltaFoldWishes> wishes;
    uint64_t wishes_below = 0;

    // Nothing hinders the drain from coming to an end?
    bool DrainsAll() const;
  };

  struct Merge {
    // All flushed files up to last_epoch; none: nothing to do.
    std::vector<FilePtr> inputs;
    uint64_t last_epoch = 0;
    uint64_t bytes = 0;
  };

  struct Collection {
    bool found = false;
    DeltaGcJob::Plan plan;
    // Of the buckets, and of what they are to take in.
    size_t num_buckets = 0;
    uint64_t bytes = 0;
    // By how many buckets there may be fewer afterwards.
    uint32_t fewer_buckets = 0;
  };

  DeltaPicker() = delete;

  static Merge PickMerge(const Options& options, const DeltaVersion& version);
  // May there be something to collect? Cheap: no without merged files and
  // buckets.
  static bool MayCollect(const DeltaVersion& version);
  // slices: of the version. running: ranges that are to be left alone.
  static Collection PickCollection(
      const Options& options, const DeltaVersion& version,
      const DeltaBucketIntake& slices,
      const std::vector<DeltaJobState::Collection>& running);

  // Are there wishes that a collection can do something for now?
  static bool CanFulfil(const Options& options, const DeltaVersion& version);

  // Are there flushed files that force_below is about, perhaps some that cannot
  // be merged yet?
  static bool HasForcedMerge(const Options& options,
                             const DeltaVersion& version);

  // What compactions have to do, with what jobs are behind with: so much that
  // writes are slowed down, but never stopped, if readers have to ask twice as
  // many files as they should. version may be nullptr.
  static uint64_t AddDebt(uint64_t compaction_needed_bytes,
                          const DeltaVersion* version,
                          const MutableCFOptions& options);

  // Of one kind, operands or anchors.
  static constexpr size_t kMaxFlushed = 4;
  // Flushed files of at least so many bytes are merged if they are this share
  // of all.
  static constexpr uint64_t kMinMerged = uint64_t{64} << 20;
  static constexpr uint64_t kFlushedDivisor = 8;
  // The first partition: of the capacity, and epochs.
  static constexpr uint64_t kFirstPartitionDivisor = 20;
  static constexpr size_t kFirstPartitionMerged = 4;
  static constexpr size_t kMaxMerged = 12;
  // Of the bytes that a bucket has.
  static constexpr uint64_t kSliceDivisor = 2;
  // Of bucket_size: less is not worth a collection of its own.
  static constexpr uint64_t kMinSliceDivisor = 16;
  static constexpr uint64_t kMaxCollected = uint64_t{32} << 20;
  // Between buckets that have to be collected: times bucket_size.
  static constexpr uint64_t kMaxGap = 4;
  // Files above which writes are slowed down.
  static constexpr size_t kSlowdownFlushed = 3 * kMaxFlushed;
  static constexpr size_t kSlowdownMerged = 2 * kMaxMerged;

 private:
  class CollectionPicker;
};

}  // namespace ROCKSDB_NAMESPACE
