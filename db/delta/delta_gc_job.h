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
#include "db/delta/delta_output_check.h"
#include "db/delta/delta_version.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class Comparator;
class DeltaFolder;
class FSDirectory;

// Collects a range of buckets: takes in the operands and anchors that merged
// files have for them, writes those that are still needed into new sorted
// files, splits buckets that have grown too large, and joins small ones.
//
//   Run() -> Publish() -> AddTo(edit) -> the edit
//   After a failure before the edit: Abandon()
//
// docs/architecture.md, section 11, describes these steps for all jobs. If the
// job folds, DeltaFoldCommit calls Publish() and, after a failure, Abandon().
//
// For each bucket:
// * The job takes in the merged files above the bucket's floor up to the new
//   floor, which is the plan's, or the highest floor of the buckets if that is
//   higher.
// * If these files have nothing for the bucket, it is not rewritten and its
//   floor is raised, unless it is small and lies between two buckets that are
//   rewritten: a file is for adjacent buckets, so a gap ends the file.
// * If the bucket is then larger than split_ratio * bucket_size, it is cut into
//   equal parts of at most that size, as far as keys and max_new_buckets allow:
//   all operands of a key stay in one bucket.
// The first partition makes one bucket of everything and cuts it into parts of
// about half that size.
//
// The sizes of buckets are those of keys and operands before compression.
//
// With a folder, the files have temporary names until Publish(): operands that
// were folded are missing in them, so their values must be durable first. See
// DeltaFileLiveness.
//
// The files meet the needs of DeltaFileLiveness: a bucket without operands
// names the operand file that was written with it. A job that leaves no
// operands at all writes a file with one anchor that hides nothing (its
// sequence number is 0) for all its buckets to name. Such files are removed
// when no operand of the column family is left.
//
// Not thread-safe; runs without the DB mutex.
class DeltaGcJob {
 public:
  // Which buckets to collect, and how. Made for a Version that stays pinned.
  struct Plan {
    // The buckets as a key range [begin, end); adjacent whole buckets of the
    // Version. For the first partition, when there are no buckets yet: all
    // keys.
    std::string begin;
    std::optional<std::string> end;
    // The last epoch of a merged file: merged files up to it are taken in. 0:
    // nothing is taken in.
    uint64_t floor = 0;
    // By how much the number of buckets may increase.
    uint32_t max_new_buckets = 0;
    // Join all buckets of the plan, and cut the result only if it is too large.
    bool merge_neighbours = false;
    // Offer the operands of each key to the folder.
    bool fold = false;
    // If not 0, offer only keys that have min_fold_bytes bytes of operands or
    // kManyOperandsPerKey operands. In addition, if a bucket would still be too
    // large and cannot be cut, offer its keys with the most bytes until a
    // quarter of the bucket is free.
    uint64_t min_fold_bytes = 0;
    // Keys that are always offered; may be nullptr.
    std::shared_ptr<const DeltaFoldWishes> wishes;
    // Also rewrite buckets that have nothing to take in, because the snapshots
    // for which they had to keep operands and anchors are gone.
    bool rewrite_all = false;
  };

  static constexpr size_t kManyOperandsPerKey = 8;

  struct Context {
    DeltaMergePass::Context pass;
    // How files are written: number, kind, tier, epochs and operands_number are
    // the job's.
    DeltaFileBuilder::Options output;
    // Allocates a file number of the DB. Must not require the DB mutex.
    std::function<uint64_t()> new_file_number;
    // Pinned while the job lives. The rules of DeltaVersion for dropping
    // references apply to destroying the job.
    std::shared_ptr<const DeltaVersion> version;
    uint64_t bucket_size = uint64_t{256} << 10;
    double split_ratio = 0.8;
    // Bytes. A file ends with the first bucket that makes it at least this
    // large.
    uint64_t max_file_size = uint64_t{64} << 20;
    // Bytes. Nothing is cut if the lower bounds of all buckets of the Version
    // and of those of the job would be longer: they are in memory, and those of
    // the job in one record of the MANIFEST, which must be below 4 GiB.
    uint64_t max_bound_bytes = uint64_t{256} << 20;
    // Used if Plan::fold is true.
    DeltaFolder* folder = nullptr;
    // Limit, in bytes, of the memory for entries that wait for the folder. (A
    // key with larger operands exceeds it.)
    uint64_t max_queued = uint64_t{64} << 20;
    DeltaOutputChecks checks;
  };

  struct Stats {
    DeltaMergePass::Stats pass;
    uint64_t operands_folded = 0;  // among those that the pass kept
    uint64_t files_written = 0;
    uint64_t bytes_written = 0;  // of files
    // Buckets that were replaced, and the buckets that replace them.
    uint64_t buckets_read = 0;
    uint64_t buckets_written = 0;
    // Buckets of which only the floor was raised.
    uint64_t buckets_raised = 0;
  };

  explicit DeltaGcJob(Context context);
  // Leaves the files in place if Run() was successful and Abandon() was not
  // called.
  ~DeltaGcJob();
  DeltaGcJob(const DeltaGcJob&) = delete;
  DeltaGcJob& operator=(const DeltaGcJob&) = delete;

  // Writes the files. On success they are complete, synced (but their directory
  // is not) and can be opened, under their temporary names if there is a
  // folder. On failure no files are left.
  // REQUIRES: called once.
  Status Run(const Plan& plan);

  // Gives the files their final names, durably.
  // directory: the directory of all files; nullptr: it is not synced.
  // REQUIRES: Run() was successful; the values that the folder made of operands
  // are durable in an SST file.
  Status Publish(FSDirectory* directory);

  // Adds the files and the changes of the buckets to the edit. With
  // drop_unused_buckets, the edit also drops all buckets if no operand is left;
  // pass false while another job may run, as that job's buckets would be gone.
  // REQUIRES: Run() was successful.
  void AddTo(DeltaEdit* edit, bool drop_unused_buckets = true) const;

  // Deletes the files, durably if one of them may have been renamed. Returns
  // false if files may be left or may come back after a crash; then Abandon()
  // may be called again.
  // directory: as passed to Publish(), if that was called.
  // REQUIRES: no edit that names the files has been, or may have been,
  // committed.
  bool Abandon(FSDirectory* directory = nullptr);

  const std::vector<DeltaFileDescription>& files() const { return files_; }
  const Stats& stats() const { return stats_; }
  // Returns the error of the file system, for error handlers that inspect it.
  const IOStatus& io_status() const { return io_status_; }

 private:
  using Kind = DeltaFileDescription::Kind;
  using FilePtr = DeltaVersion::FilePtr;

  // A bucket of the Version, or the range of all keys if there are no buckets.
  struct OldBucket {
    std::string lower;  // lower bound; empty: none
    DeltaBucketState state;
    // True if the bucket is replaced.
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
  // Renames the files; leaves readers alone.
  Status PublishFiles(FSDirectory* directory);

  // Returns the upper bound of the old bucket; nullopt: there is none.
  std::optional<std::string> UpperBound(size_t bucket) const {
    return bucket + 1 < buckets_.size()
               ? std::optional<std::string>(buckets_[bucket + 1].lower)
               : end_;
  }
  // Returns the files of that kind with entries of an old bucket: its sorted
  // file, and the merged files that are taken in.
  std::vector<FilePtr> FilesOf(Kind kind, const DeltaBucketState& bucket) const;

  const Context context_;
  const Comparator* const ucmp_;
  // Size above which a bucket is cut, in bytes.
  const uint64_t max_bucket_size_;
  bool is_first_partition_ = false;
  uint64_t floor_ = 0;
  std::vector<OldBucket> buckets_;
  std::optional<std::string> end_;
  // How many more buckets may be added.
  uint64_t room_ = 0;
  // Size of the lower bounds of all buckets, in bytes.
  uint64_t bound_bytes_ = 0;
  // The old buckets are put together. The new one is not cut where a file
  // becomes large: the same buckets would be put together again.
  bool joins_ = false;
  // Approximate size of the parts of the first partition, in bytes.
  uint64_t part_size_ = 0;

  // Builders of all files, for Abandon().
  std::vector<std::unique_ptr<DeltaFileBuilder>> builders_;
  std::vector<DeltaFileDescription> files_;
  std::vector<DeltaEdit::ReplaceBuckets> replaced_;
  std::vector<DeltaEdit::RaiseFloors> raised_;
  Stats stats_;
  IOStatus io_status_;
};

}  // namespace ROCKSDB_NAMESPACE
