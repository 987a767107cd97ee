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
#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class JSONWriter;
class PathIdMap;
class VersionEdit;

// A change of a column family's delta files and buckets: the part of a
// VersionEdit that is applied to the DeltaVersion. Its encoding is in
// docs/formats.md.
//
// An edit has several operations, applied in this order:
//
//  1. Files are added. Those of tier kMerged are kept back for the next step.
//  2. MergeRecent: all flushed files up to an epoch are replaced by the merged
//     files of the edit. There may be none: no entry was left.
//  3. ReplaceBuckets, in the order in which they were added.
//  4. RaiseFloors, in the order in which they were added.
//  5. DropUnusedBuckets: if there are no recent files and no bucket has
//     operands, all buckets and files are removed.
//
// No operation removes individual files, since two jobs that replace the last
// buckets of a file do not know of each other: removal follows from the state.
// See DeltaVersion.
//
// Instead of 2 to 5, a *snapshot piece* appends buckets. Pieces, which only
// DeltaVersion::SplitForSnapshot() makes, build a state from nothing: a new
// MANIFEST starts with them, in order, and the state is complete after the last
// one.
//
// Not thread-safe.
class DeltaEdit {
 public:
  // From a lower bound of a bucket (included) to another one (excluded).
  struct KeyRange {
    // Empty: from the first bucket.
    std::string begin;
    // nullopt: to the last bucket.
    std::optional<std::string> end;

    bool operator==(const KeyRange&) const = default;
    // Returns true if this range ends before the other one begins. Ranges that
    // touch have nothing in common.
    bool EndsBefore(const KeyRange& other, const Comparator* ucmp) const;
  };
  struct MergeRecent {
    uint64_t last_epoch = 0;
    // The number of files that are replaced: to check that the edit is applied
    // to the state that it was made for.
    uint32_t num_files = 0;

    bool operator==(const MergeRecent&) const = default;
  };
  struct ReplaceBuckets {
    KeyRange range;
    // The first bucket begins where the range begins.
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
    // May be empty.
    std::vector<DeltaBucket> buckets;

    bool operator==(const SnapshotPiece&) const = default;
  };

  void AddFile(DeltaFileDescription file) { files_.push_back(std::move(file)); }
  // REQUIRES: called at most once.
  void SetMergeRecent(MergeRecent merge) { merge_recent_ = merge; }
  void AddReplaceBuckets(ReplaceBuckets replace) {
    replace_buckets_.push_back(std::move(replace));
  }
  void AddRaiseFloors(RaiseFloors raise) {
    raise_floors_.push_back(std::move(raise));
  }
  // Gives the added files other path ids. Returns false if all have the ids
  // that they had.
  bool MapPathIds(const PathIdMap& ids);
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
  // Returns the largest sequence number of the added files; 0 if there are
  // none. A VersionEdit with these files must raise the last sequence number to
  // it at least: entries that were flushed are no longer in a WAL.
  SequenceNumber LargestSequence() const;

  // Returns Corruption if the edit is invalid for every state and every
  // comparator.
  Status Validate() const;

  // REQUIRES: Validate().ok()
  void EncodeTo(std::string* dst) const;
  // Replaces the contents. On failure they are unchanged: NotSupported for an
  // encoding that a newer version may have written, else Corruption. Decoded
  // contents are valid, or empty if there were only fields to skip.
  Status DecodeFrom(Slice src);

  std::string DebugString(bool hex = false) const;
  // Adds keys and values to the open JSON object.
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

// Returns NotSupported if the edit has a DeltaEdit: for secondary and follower
// instances, which do not read delta files.
Status RefuseDelta(const VersionEdit& edit);

}  // namespace ROCKSDB_NAMESPACE
