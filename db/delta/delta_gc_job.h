//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_description.h"
#include "db/delta/delta_fold_wishes.h"
#include "db/delta/delta_merge_pass.h"
#include "db/delta/delta_version.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class Comparator;
class DeltaFolder;
class FSDirectory;

// Collects some buckets: takes into them what merged files have for them,
// writes what is left into new sorted files, splits buckets that have grown too
// large, and puts small ones together.
//
//   Run() -> Publish() -> AddTo(edit), or Abandon()
//
// What it does with a bucket:
// * It takes in the merged files above the bucket's floor up to the new floor.
//   The new floor is the plan's, or the highest that one of the buckets has.
// * If there is nothing for it in them, it is left alone and its floor raised,
//   unless it lies between two others and is small: a file is for buckets that
//   follow one another, so a gap ends it.
// * If it is larger than split_ratio * bucket_size then, it is cut into equal
//   parts of at most that size, as far as keys and max_new_buckets allow: all
//   operands of a key stay in one bucket.
// The first partition makes one bucket of everything and cuts it into parts of
// about half that size.
//
// The sizes of buckets are those of keys and operands, before compression.
//
// With a folder the files have temporary names until Publish(), as they are
// without operands of which the values must be there first: see
// DeltaFileLiveness.
//
// Files are as DeltaFileLiveness needs them: a bucket without operands names
// the file of operands that was written with it. Where a job leaves no operands
// at all, it leaves a file of one anchor that hides nothing (its sequence
// number is 0) for all its buckets to name. They go when no operand of the
// column family is left.
//
// Not thread-safe; runs without the DB mutex.
class DeltaGcJob {
 public:
  // Which buckets. Made for a Version that stays pinned.
  struct Plan {
    // Adjacent buckets of the version, whole ones. Of the first partition: all
    // keys; there are no buckets yet.
    std::string begin;
    std::optional<std::string> end;
    // The last epoch of a merged file; 0: take in nothing.
    uint64_t floor = 0;
    // How many buckets more than before there may be.
    uint32_t max_new_buckets = 0;
    // Put all of them together, and cut the result only if it is too large.
    bool merge_neighbours = false;
    // Ask the folder about each key.
    bool fold = false;
    // If not 0, only about keys that have so many bytes of operands, or
    // kManyOperandsPerKey; and, of a bucket that would be too large then and
    // cannot be cut, those with the most bytes, until a quarter of it is free.
    uint64_t min_fold_bytes = 0;
    // About these keys in any case; may be nullptr.
    std::shared_ptr<const DeltaFoldWishes> wishes;
    // Also write those buckets anew for which there is nothing: snapshots which
    // they had to keep operands and anchors for are gone.
    bool rewrite_all = false;
  };

  static constexpr size_t kManyOperandsPerKey = 8;

  struct Context {
    DeltaMergePass::Context pass;
    // How files are written: number, kind, tier, epochs and operands_number are
    // the job's.
    DeltaFileBuilder::Options output;
    // New ones of the DB. Needs no mutex.
    std::function<uint64_t()> new_file_number;
    // Pinned as long as the job lives. Whoever destroys the job heeds what
    // DeltaVersion says of dropping references.
    std::shared_ptr<const DeltaVersion> version;
    uint64_t bucket_size = uint64_t{256} << 10;
    double split_ratio = 0.8;
    // A file ends with the first bucket by which it is that large.
    uint64_t max_file_size = uint64_t{64} << 20;
    // Asked with Plan::fold.
    DeltaFolder* folder = nullptr;
    // How much memory may be taken up by what waits for the folder. (It is
    // exceeded by a key whose operands are larger.)
    uint64_t max_queued = uint64_t{64} << 20;
    // Reads the files again and compares, see paranoid_file_checks.
    bool verify_contents = false;
  };

  struct Stats {
    DeltaMergePass::Stats pass;
    uint64_t operands_folded = 0;  // among those that the pass kept
    uint64_t files_written = 0;
    uint64_t bytes_written = 0;  // of files
    // That were replaced, and by how many.
    uint64_t buckets_read = 0;
    uint64_t buckets_written = 0;
    // Whose floor was raised, and nothing else.
    uint64_t buckets_raised = 0;
  };

  explicit DeltaGcJob(Context context);
  // The files stay if Run() was successful and Abandon() was not called.
  ~DeltaGcJob();
  DeltaGcJob(const DeltaGcJob&) = delete;
  DeltaGcJob& operator=(const DeltaGcJob&) = delete;

  // The files are complete, synced (their directory is not) and, but for their
  // names, can be opened. After a failure there are none.
  // REQUIRES: called once.
  Status Run(const Plan& plan);

  // The files have their names, durably.
  // directory: that of all files. nullptr: it is not synced.
  // REQUIRES: what the folder has made of operands is durable in an SST file.
  // Run() was successful.
  Status Publish(FSDirectory* directory);

  // Adds the files, what becomes of the buckets, and that buckets go if no
  // operand is left: not while there may be another job, which would not find
  // its buckets then.
  // REQUIRES: Run() was successful.
  void AddTo(DeltaEdit* edit, bool drop_unused_buckets = true) const;

  // Deletes the files; if one may have been renamed, durably. False: some may
  // be left, or come back. Then this may be called again.
  // directory: as of Publish(), if that was called.
  // REQUIRES: no edit that names them has been, or may have been, committed.
  bool Abandon(FSDirectory* directory = nullptr);

  const std::vector<DeltaFileDescription>& files() const { return files_; }
  const Stats& stats() const { return stats_; }
  // What came from the file system, for an error handler that looks at it.
  const IOStatus& io_status() const { return io_status_; }

 private:
  using Kind = DeltaFileDescription::Kind;
  using FilePtr = DeltaVersion::FilePtr;

  // A bucket of the version, or everything if there are none.
  struct OldBucket {
    std::string lower;  // empty: none
    DeltaBucketState state;
    // It is replaced.
    bool is_written = false;
  };
  class Probe;
  class Writer;

  Status RunPlan(const Plan& plan);
  Status FindBuckets(const Plan& plan);
  // Sets is_written.
  Status SelectBuckets(const Plan& plan);
  // Replaces the old buckets [first, last).
  Status Rewrite(const Plan& plan, size_t first, size_t last,
                 DeltaMergePass* pass);
  void RaiseFloors(size_t first, size_t last);
  // Publish(), but for the readers.
  Status PublishFiles(FSDirectory* directory);

  // Where the old bucket ends; none: it does not.
  std::optional<std::string> UpperBound(size_t bucket) const {
    return bucket + 1 < buckets_.size()
               ? std::optional<std::string>(buckets_[bucket + 1].lower)
               : end_;
  }
  // What an old bucket has of that kind: its sorted file, and merged ones.
  std::vector<FilePtr> FilesOf(Kind kind, const DeltaBucketState& bucket) const;

  const Context context_;
  const Comparator* const ucmp_;
  // How large a bucket may be.
  const uint64_t max_bucket_size_;
  bool is_first_partition_ = false;
  uint64_t floor_ = 0;
  std::vector<OldBucket> buckets_;
  std::optional<std::string> end_;
  // How many more new buckets there may be.
  uint64_t room_ = 0;
  // Of the parts of the first partition, about.
  uint64_t part_size_ = 0;

  // Of all files, for Abandon().
  std::vector<std::unique_ptr<DeltaFileBuilder>> builders_;
  std::vector<DeltaFileDescription> files_;
  std::vector<DeltaEdit::ReplaceBuckets> replaced_;
  std::vector<DeltaEdit::RaiseFloors> raised_;
  Stats stats_;
  IOStatus io_status_;
};

}  // namespace ROCKSDB_NAMESPACE
