//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_bucket_table.h"
#include "db/delta/delta_file_description.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class JSONWriter;
class VersionEdit;

// A change of a column family's delta files and buckets: the part of a
// VersionEdit that DeltaVersion understands. docs/formats.md has its encoding.
//
// An edit has several operations, applied in this order:
//
//  1. Files are added. Those of tier kMerged wait for the next step.
//  2. MergeRecent: all flushed files up to an epoch go, and the merged files of
//     the edit take their place. They may be none: nothing was left to keep.
//  3. ReplaceBuckets, in the order in which they were added.
//  4. RaiseFloors, likewise.
//  5. DropUnusedBuckets: if there are no recent files, and no bucket has
//     operands, there are no buckets any more, and no files.
//
// No operation removes files, since two jobs that take the last buckets away
// from a file cannot know of each other: that follows from the state. See
// DeltaVersion.
//
// Instead of 2 to 5, a *snapshot piece* appends buckets. Pieces, which only
// DeltaVersion::SplitForSnapshot() makes, build a state from nothing: a new
// MANIFEST starts with them, in order, and the state is whole after the last.
//
// Not thread-safe.
class DeltaEdit {
 public:
  // From a lower bound of a bucket (included) to another one (not included).
  struct KeyRange {
    // Empty: from the first bucket on.
    std::string begin;
    // None: to the last bucket.
    std::optional<std::string> end;

    bool operator==(const KeyRange&) const = default;
  };
  struct MergeRecent {
    uint64_t last_epoch = 0;
    // How many files that takes away: a check that the edit is applied to the
    // state that it was made for.
    uint32_t num_files = 0;

    bool operator==(const MergeRecent&) const = default;
  };
  struct ReplaceBuckets {
    KeyRange range;
    // The first one begins where the range does.
    std::vector<DeltaBucket> buckets;

    bool operator==(const ReplaceBuckets&) const = default;
  };
  struct RaiseFloors {
    KeyRange range;
    uint64_t epoch = 0;

    bool operator==(const RaiseFloors&) const = default;
  };
  struct SnapshotPiece {
    uint32_t index = 0;  // from 0
    bool is_last = false;
    // May be none.
    std::vector<DeltaBucket> buckets;

    bool operator==(const SnapshotPiece&) const = default;
  };

  void AddFile(DeltaFileDescription file) { files_.push_back(std::move(file)); }
  // Once for an edit.
  void SetMergeRecent(MergeRecent merge) { merge_recent_ = merge; }
  void AddReplaceBuckets(ReplaceBuckets replace) {
    replace_buckets_.push_back(std::move(replace));
  }
  void AddRaiseFloors(RaiseFloors raise) {
    raise_floors_.push_back(std::move(raise));
  }
  void SetDropUnusedBuckets() { drop_unused_buckets_ = true; }
  void SetSnapshotPiece(SnapshotPiece piece) {
    snapshot_piece_ = std::move(piece);
  }

  const std::vector<DeltaFileDescription>& files() const { return files_; }
  const std::optional<MergeRecent>& merge_recent() const {
    return merge_recent_;
  }
  const std::vector<ReplaceBuckets>& replace_buckets() const {
    return replace_buckets_;
  }
  const std::vector<RaiseFloors>& raise_floors() const { return raise_floors_; }
  bool drop_unused_buckets() const { return drop_unused_buckets_; }
  const std::optional<SnapshotPiece>& snapshot_piece() const {
    return snapshot_piece_;
  }

  bool Empty() const {
    return files_.empty() && !ChangesState() && !snapshot_piece_.has_value();
  }
  // Of the files added; 0 if there are none. A VersionEdit with them must raise
  // the last sequence number so far: what has been flushed is not in a WAL any
  // more.
  SequenceNumber LargestSequence() const;

  // Corruption if something is wrong that is so in every state and with every
  // comparator.
  Status Validate() const;

  // REQUIRES: Validate().ok()
  void EncodeTo(std::string* dst) const;
  // Replaces the contents. If not OK they are as before: NotSupported for what
  // a newer version may have written, else Corruption. What was decoded is
  // valid.
  Status DecodeFrom(Slice src);

  std::string DebugString(bool hex = false) const;
  // Adds keys and values to the object that is open.
  void AppendTo(JSONWriter* writer, bool hex = false) const;

  bool operator==(const DeltaEdit&) const = default;

 private:
  // Operations 2 to 5.
  bool ChangesState() const {
    return merge_recent_.has_value() || !replace_buckets_.empty() ||
           !raise_floors_.empty() || drop_unused_buckets_;
  }

  std::vector<DeltaFileDescription> files_;
  std::optional<MergeRecent> merge_recent_;
  std::vector<ReplaceBuckets> replace_buckets_;
  std::vector<RaiseFloors> raise_floors_;
  bool drop_unused_buckets_ = false;
  std::optional<SnapshotPiece> snapshot_piece_;
};

// NotSupported if the edit has a DeltaEdit: for secondary and follower
// instances, which read no delta files.
Status RefuseDelta(const VersionEdit& edit);

}  // namespace ROCKSDB_NAMESPACE
