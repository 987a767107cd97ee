//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_bucket_table.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_description.h"
#include "db/delta/delta_file_meta.h"
#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// The delta files of a Version and the buckets that share them out. *Recent*
// files were written by flushes or by merges of flushed files. *Sorted* files
// were written by collections; the buckets name the parts of them (extents)
// that hold their operands.
//
// Each bucket has a floor, an epoch. The bucket's extent includes everything
// that recent files of epochs up to the floor hold for the bucket's keys, so a
// bucket sees only the recent files above its floor.
//
// A sorted file is live while a bucket names it. A recent file is live while
// its last epoch is above the floor of some bucket, or while there is no
// bucket. No edit deletes a file: liveness is derived from the state after each
// edit. Floors never fall and no edit names a file that is gone, so a dead file
// stays dead. Hence the state is a function of the sequence of edits: applying
// them one by one, in groups, or to a state that was written to a MANIFEST in
// between gives the same result.
//
// Invariants (see CheckConsistency()):
//  1. The epoch ranges of any two merged files are equal or disjoint. The
//     epochs of flushed files are above them and above all floors.
//  2. A floor is 0, the last epoch of a merged file or, if that file is gone,
//     the smallest of all floors. So all epochs of a recent file are on one
//     side of a floor: no operand is seen twice, and none is left out.
//  3. Each file is live.
// Flushed files are merged with each other, once; merged files only go into
// buckets. Invariant 2 depends on this.
//
// Thread-safety: immutable, so any thread may read it. Dropping the last
// reference to a DeltaVersion drops its references to the files: see
// DeltaFileMeta::Create().
class DeltaVersion {
 public:
  using Kind = DeltaFileDescription::Kind;
  using Tier = DeltaFileDescription::Tier;
  using FilePtr = std::shared_ptr<const DeltaFileMeta>;
  // Called for each file that an edit adds, after the description of the file
  // was found to be valid. Must not return nullptr.
  using FileMaker = std::function<FilePtr(const DeltaFileDescription&)>;

  struct SortedFile {
    FilePtr file;
    // Number of references that buckets have to the file. A bucket counts once
    // for each of its two files.
    uint32_t num_buckets = 0;
  };

  struct Totals {
    uint64_t num_files = 0;
    uint64_t bytes = 0;  // of files
    uint64_t num_entries = 0;
    uint64_t num_operands = 0;  // the entries that are no anchors
    uint64_t raw_bytes = 0;

    bool operator==(const Totals&) const = default;
  };

  // A range of recent files, newest first.
  class Files {
   public:
    Files(const FilePtr* begin, const FilePtr* end)
        : begin_(begin), end_(end) {}
    const FilePtr* begin() const { return begin_; }
    const FilePtr* end() const { return end_; }
    bool empty() const { return begin_ == end_; }
    size_t size() const { return static_cast<size_t>(end_ - begin_); }

   private:
    const FilePtr* begin_;
    const FilePtr* end_;
  };

  // Sets *result to the state after `edit` is applied to *base. base and
  // *result may be nullptr, which stands for no delta files and no buckets. On
  // failure *result is unchanged. Returns Corruption if the edit contradicts
  // the state (the message says where), NotSupported if the edit is not
  // understood.
  // REQUIRES: ucmp is the user comparator of the column family, the same one in
  // each call.
  static Status Apply(const std::shared_ptr<const DeltaVersion>& base,
                      const DeltaEdit& edit, const Comparator* ucmp,
                      const FileMaker& make_file,
                      std::shared_ptr<const DeltaVersion>* result);

  // Returns the recent files of that kind, newest first.
  const std::vector<FilePtr>& RecentFiles(Kind kind) const {
    return kind == Kind::kOperands ? recent_operands_ : recent_anchors_;
  }
  // Returns the sorted files in the order of their numbers.
  const std::vector<SortedFile>& SortedFiles() const { return sorted_; }
  const DeltaBucketTable& Buckets() const { return buckets_; }
  const Totals& GetTotals() const { return totals_; }
  const Comparator* user_comparator() const { return ucmp_; }

  // Returns the file with that number, or nullptr if there is none.
  FilePtr GetFile(uint64_t number) const;
  // Calls fn(file) for each file, recent files first.
  template <typename Fn>
  void ForEachFile(Fn fn) const {
    for (const auto* files : {&recent_operands_, &recent_anchors_}) {
      for (const FilePtr& file : *files) {
        fn(file);
      }
    }
    for (const SortedFile& sorted : sorted_) {
      fn(sorted.file);
    }
  }

  // Returns the recent files that a bucket with that floor sees. Without
  // buckets the floor is 0.
  Files RecentFilesAbove(Kind kind, uint64_t floor) const;
  // Returns the recent files that the key's bucket sees. The key may be outside
  // the range of some of them.
  Files VisibleFiles(Kind kind, const Slice& user_key) const {
    return RecentFilesAbove(kind, FloorOf(user_key));
  }
  // Returns the floor of the key's bucket, 0 if there are no buckets.
  uint64_t FloorOf(const Slice& user_key) const {
    return buckets_.empty()
               ? 0
               : buckets_.State(buckets_.Find(user_key, ucmp_)).floor;
  }

  // Returns false only if no delta file has operands of keys in [*begin, *end],
  // both ends included. nullptr stands for no bound. Compares with the ranges
  // of files and buckets only, without I/O.
  bool OverlapsRange(const Slice* begin, const Slice* end) const;

  // Returns the largest sequence number in any file, 0 if there are no files.
  SequenceNumber LargestSequence() const;

  // Returns edits that build this state from nothing if they are applied in
  // order without other edits in between.
  // max_size: bytes, approximate limit of the encoded size of each edit;
  // exceeded only if a single file or bucket needs more.
  // REQUIRES: !IsLoading()
  std::vector<DeltaEdit> SplitForSnapshot(size_t max_size = 64 << 10) const;

  // True while pieces of a snapshot are missing. Readers must not use such a
  // state.
  bool IsLoading() const { return next_piece_ != 0; }

  // Returns Corruption if an invariant does not hold. Takes O(buckets) time.
  Status CheckConsistency() const;

  size_t ApproximateMemoryUsage() const;
  // Returns the whole state as text, one line per file and bucket.
  std::string DebugString(bool hex = false) const;

 private:
  friend class DeltaVersionBuilder;

  // Returns the position of the sorted file with that number, or of the next
  // one if there is no such file.
  std::vector<SortedFile>::const_iterator LowerBound(uint64_t number) const;

  bool IsEmpty() const { return totals_.num_files == 0 && buckets_.empty(); }
  // Returns true if a merged file has this last epoch.
  bool IsMergedEpoch(uint64_t epoch) const;
  uint64_t MaxMergedEpoch() const;

  // Check parts of the invariants, in this order.
  // merged: receives the epoch ranges of merged files, in order.
  Status CheckEpochs(std::vector<std::pair<uint64_t, uint64_t>>* merged) const;
  // num_buckets: receives the number of buckets that name each sorted file.
  Status CheckBuckets(const std::vector<std::pair<uint64_t, uint64_t>>& merged,
                      std::vector<uint32_t>* num_buckets) const;
  Status CheckSortedFiles(const std::vector<uint32_t>& num_buckets) const;
  Status CheckTotals() const;

  std::vector<FilePtr> recent_operands_;
  std::vector<FilePtr> recent_anchors_;
  std::vector<SortedFile> sorted_;
  DeltaBucketTable buckets_;
  Totals totals_;
  const Comparator* ucmp_ = nullptr;
  // Index of the next piece of the snapshot that is being loaded; 0 if no
  // snapshot is being loaded.
  uint32_t next_piece_ = 0;
  // True if other threads may see this object, which then must not change (as
  // in DeltaBucketTable).
  bool frozen_ = false;
};

// Applies a sequence of edits without making a DeltaVersion for each of them.
//
// Copies are cheap and independent: to undo an edit, keep a copy from before
// it.
//
// Thread-safety: a builder and its copies belong to one thread. The result of
// Finish() is immutable and may be given to other threads.
class DeltaVersionBuilder {
 public:
  DeltaVersionBuilder() = default;
  // base may be nullptr.
  explicit DeltaVersionBuilder(std::shared_ptr<const DeltaVersion> base)
      : base_(std::move(base)) {}

  // Applies the edit, see DeltaVersion::Apply(). After an error, all further
  // edits are refused.
  Status Apply(const DeltaEdit& edit, const Comparator* ucmp,
               const DeltaVersion::FileMaker& make_file);

  // Returns the state that has been built so far, nullptr if there is none. The
  // next edit may change the object.
  const DeltaVersion* Current() const {
    return own_ != nullptr ? own_.get() : base_.get();
  }

  // Sets *result to the state that was built, nullptr if it has neither files
  // nor buckets. Returns Corruption if an edit was refused, or if pieces of a
  // snapshot are missing. Further edits may follow.
  Status Finish(std::shared_ptr<const DeltaVersion>* result) const;

 private:
  friend class DeltaVersion;
  class Applier;

  // Does what Finish() does, without its checks.
  std::shared_ptr<const DeltaVersion> Freeze() const;
  DeltaVersion* Mutable();

  std::shared_ptr<const DeltaVersion> base_;
  // Replaces base_ after the first edit.
  std::shared_ptr<DeltaVersion> own_;
  bool failed_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
