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

// The delta files of a Version: *recent* ones, which flushes wrote and merges
// of such, and *sorted* ones, whose parts (extents) the buckets name.
//
// A bucket has a floor. All that recent files of epochs up to it hold for the
// bucket's keys is in its extent, so that recent files count for it only above.
//
// A file is live while it counts: a sorted file while a bucket names it, a
// recent one while its last epoch is above some bucket's floor, or there is no
// bucket. No edit says that a file goes; it is derived from the state after
// each edit. As floors do not fall and no edit names a file that is gone, what
// is dead stays so. Hence the state is a function of the sequence of edits:
// whether they are applied one by one, in groups, or to a state that was
// written to a MANIFEST in between, comes to the same.
//
// Invariants (see CheckConsistency()):
//  1. Epochs of merged files are ranges that are the same or disjoint, and
//     those of all flushed files are above them and above all floors.
//  2. Floors are 0, the last epoch of a merged file or, if that is gone, the
//     smallest of all floors. So all epochs of a recent file are on one side of
//     a floor: no operand is seen twice, and none is left out.
//  3. Each file is live.
// Flushed files are merged with each other, once; merged ones only go into
// buckets. Nothing else would keep 2.
//
// Thread-safety: immutable, so all threads may read it. Dropping the last
// reference to it drops those to its files: see DeltaFileMeta::Create().
class DeltaVersion {
 public:
  using Kind = DeltaFileDescription::Kind;
  using Tier = DeltaFileDescription::Tier;
  using FilePtr = std::shared_ptr<const DeltaFileMeta>;
  // Called for each file that an edit adds, once the file itself was found to
  // be acceptable. Not null.
  using FileMaker = std::function<FilePtr(const DeltaFileDescription&)>;

  struct SortedFile {
    FilePtr file;
    // How many buckets name it. A bucket counts once for each of its two files.
    uint32_t num_buckets = 0;
  };

  struct Totals {
    uint64_t num_files = 0;
    uint64_t bytes = 0;  // of files
    uint64_t num_entries = 0;
    uint64_t raw_bytes = 0;

    bool operator==(const Totals&) const = default;
  };

  // Recent files, the newest first.
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

  // The state after the edit. base and *result may be nullptr: no delta files
  // and no buckets. If not OK *result is as before: Corruption says what in the
  // edit does not go with the state, NotSupported that it cannot be understood.
  // REQUIRES: ucmp is the user comparator of the column family, always the
  // same.
  static Status Apply(const std::shared_ptr<const DeltaVersion>& base,
                      const DeltaEdit& edit, const Comparator* ucmp,
                      const FileMaker& make_file,
                      std::shared_ptr<const DeltaVersion>* result);

  // The newest first.
  const std::vector<FilePtr>& RecentFiles(Kind kind) const {
    return kind == Kind::kOperands ? recent_operands_ : recent_anchors_;
  }
  // By number.
  const std::vector<SortedFile>& SortedFiles() const { return sorted_; }
  const DeltaBucketTable& Buckets() const { return buckets_; }
  const Totals& GetTotals() const { return totals_; }
  const Comparator* user_comparator() const { return ucmp_; }

  // nullptr if there is none with that number.
  FilePtr GetFile(uint64_t number) const;
  // Calls fn(file) for each, recent ones first.
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

  // Recent files that a bucket with that floor sees. Without buckets: floor 0.
  Files RecentFilesAbove(Kind kind, uint64_t floor) const;
  // Recent files that the bucket of the key sees, some of which may not have
  // the key in their range.
  Files VisibleFiles(Kind kind, const Slice& user_key) const {
    return RecentFilesAbove(kind, FloorOf(user_key));
  }
  // Of the key's bucket; 0 without buckets.
  uint64_t FloorOf(const Slice& user_key) const {
    return buckets_.empty()
               ? 0
               : buckets_.State(buckets_.Find(user_key, ucmp_)).floor;
  }

  // May there be operands of keys from *begin to *end, both included? nullptr:
  // no bound. Says yes where ranges of files and buckets do, without I/O.
  bool OverlapsRange(const Slice* begin, const Slice* end) const;

  // Of all files; 0 if there are none.
  SequenceNumber LargestSequence() const;

  // Edits that build this state from nothing, if applied in order and nothing
  // else in between. They are of that encoded size at most, about, unless a
  // single file or bucket needs more.
  // REQUIRES: !IsLoading()
  std::vector<DeltaEdit> SplitForSnapshot(size_t max_size = 64 << 10) const;

  // Pieces of a snapshot are missing: it is of no use to readers yet.
  bool IsLoading() const { return next_piece_ != 0; }

  // Corruption if an invariant does not hold. O(buckets).
  Status CheckConsistency() const;

  size_t ApproximateMemoryUsage() const;
  // Everything, one line per file and bucket.
  std::string DebugString(bool hex = false) const;

 private:
  friend class DeltaVersionBuilder;

  // Position of a sorted file, or of the one that would follow it.
  std::vector<SortedFile>::const_iterator LowerBound(uint64_t number) const;

  bool IsEmpty() const { return totals_.num_files == 0 && buckets_.empty(); }
  // Has a merged file this epoch as its last?
  bool IsMergedEpoch(uint64_t epoch) const;
  uint64_t MaxMergedEpoch() const;

  std::vector<FilePtr> recent_operands_;
  std::vector<FilePtr> recent_anchors_;
  std::vector<SortedFile> sorted_;
  DeltaBucketTable buckets_;
  Totals totals_;
  const Comparator* ucmp_ = nullptr;
  // Of the snapshot that is being loaded; 0 if none is.
  uint32_t next_piece_ = 0;
  // Others may see it: it does not change any more. As in DeltaBucketTable.
  bool frozen_ = false;
};

// Applies many edits without a DeltaVersion for each.
//
// Copies are cheap and independent: to undo an edit, keep a copy from before
// it.
//
// Thread-safety: a builder and its copies belong to one thread. What Finish()
// gives does not change any more and may go to other threads.
class DeltaVersionBuilder {
 public:
  DeltaVersionBuilder() = default;
  // base may be nullptr.
  explicit DeltaVersionBuilder(std::shared_ptr<const DeltaVersion> base)
      : base_(std::move(base)) {}

  // See DeltaVersion::Apply(). After an error the builder refuses everything.
  Status Apply(const DeltaEdit& edit, const Comparator* ucmp,
               const DeltaVersion::FileMaker& make_file);

  // What has been built so far, nullptr if nothing. It may change with the next
  // edit.
  const DeltaVersion* Current() const {
    return own_ != nullptr ? own_.get() : base_.get();
  }

  // The result: nullptr if there are neither files nor buckets. Corruption if
  // an edit was refused, or pieces of a snapshot are missing. Further edits may
  // follow.
  Status Finish(std::shared_ptr<const DeltaVersion>* result) const;

 private:
  friend class DeltaVersion;
  class Applier;

  // Finish() without its checks.
  std::shared_ptr<const DeltaVersion> Freeze() const;
  DeltaVersion* Mutable();

  std::shared_ptr<const DeltaVersion> base_;
  // Takes the place of base_ once there was an edit.
  std::shared_ptr<DeltaVersion> own_;
  bool failed_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
