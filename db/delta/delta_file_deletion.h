//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/dbformat.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_description.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class DeltaStore;
class DeltaVersion;
class VersionEdit;

// Bounds of the operands of a DeltaVersion, according to the descriptions of
// its files: all keys are in [smallest, largest], both included, and all
// sequence numbers are at most largest_seq.
struct DeltaOperandBounds {
  bool has_operands = false;
  std::string smallest;
  std::string largest;
  SequenceNumber largest_seq = 0;

  // version may be nullptr.
  static DeltaOperandBounds Of(const DeltaVersion* version);
};

// The bounds of a column family's keys for ClipColumnFamily(): those of its SST
// files, which may be gone when the bounds are used, and those of operands.
class DeltaClipBounds {
 public:
  // Extends the bounds by those of operands and makes *smallest and *largest
  // point to keys that this object owns.
  // smallest, largest: bounds of the SST files; both empty if there are none.
  // REQUIRES: DB mutex held
  void Extend(const DeltaVersion* version, bool has_sst_files,
              const Comparator* ucmp, Slice* smallest, Slice* largest);

 private:
  std::string smallest_;
  std::string largest_;
};

// Handles operands in delta files for DeleteFilesInRanges(). The deleted files
// have values that operands belong to, and tombstones that no longer hide
// operands; so the operands are deleted as well: anchors for the ranges, in the
// same edit, hide them.
//
//   Begin() -> Publish() -> AddTo(edit) -> the edit -> Close()
//
// docs/architecture.md, section 11, describes these steps for all jobs.
//
// Invariants:
// * The anchors are true only if the edit is committed, unlike those of a
// flush.
//   So the file has a global sequence number: a repair without a MANIFEST does
//   not take it.
// * The anchors' sequence number is that of the newest operand in delta files
//   at Begin(). Operands in memtables are newer, and stay, like values in
//   memtables: flushes write memtables in order.
// * As in the LSM-tree, the deletion may be incomplete or excessive: a value in
//   level 0, or in a file that extends beyond the range, stays, but not its
//   operands. DeleteFilesInRanges() does not promise otherwise.
// * No flush of another thread runs at Begin(). Its operands would be newer
//   than the anchors, and its epoch older: then jobs that know the anchors'
//   file by its epoch could combine these operands with older ones. (A flush of
//   the same thread, which calls OnFlushBegin() of a listener, cannot be waited
//   for.)
// * Between Begin() and Close() the epoch counts as that of a running flush, so
//   that the file is not added too late (see DeltaStore).
//
// Not thread-safe.
class DeltaFileDeletion {
 public:
  // Keys, and ranges [start, end). Both are sorted, and ranges neither overlap
  // nor touch each other.
  struct Cover {
    std::vector<std::string> keys;
    std::vector<std::pair<std::string, std::string>> ranges;

    bool operator==(const Cover&) const = default;
  };
  // Returns the part of [smallest, largest], both included, that is in the
  // ranges. The ends of the ranges are included if include_end.
  static Cover CoverOf(const std::vector<UserKeyRangeOpt>& ranges,
                       bool include_end, const Slice& smallest,
                       const Slice& largest, const Comparator* ucmp);

  // How the file is written.
  struct Output {
    std::string db_id;
    int job_id = 0;
    uint32_t path_id = 0;
    FileOptions file_options;
    WriteOptions write_options;
    FSDirectory* directory = nullptr;  // of path_id
  };

  // Begins the deletion. Returns nullptr if there are no operands in the
  // ranges.
  // version: may be nullptr.
  // on_end: called by Close().
  // REQUIRES: DB mutex held; new_file_number allocates file numbers of the DB;
  // !store->IsFlushedByOthers().
  static std::unique_ptr<DeltaFileDeletion> Begin(
      DeltaStore* store, const DeltaVersion* version,
      const std::vector<UserKeyRangeOpt>& ranges, bool include_end,
      const std::function<uint64_t()>& new_file_number,
      std::function<void()> on_end);

  // REQUIRES: DB mutex held
  ~DeltaFileDeletion();
  DeltaFileDeletion(const DeltaFileDeletion&) = delete;
  DeltaFileDeletion& operator=(const DeltaFileDeletion&) = delete;

  // Writes the file. On success it is complete, synced with its directory, and
  // can be opened. On failure there is no file.
  // REQUIRES: DB mutex not held
  Status Publish(const Output& output);

  // Adds the file to the edit, which owns it from then on: if the edit may have
  // been written although it has failed, the next full scan finds the file.
  // REQUIRES: Publish() was successful.
  void AddTo(VersionEdit* edit) const;

  // Deletes the file. On failure the next full scan finds it.
  // REQUIRES: Publish() was successful; the edit was certainly not written; DB
  // mutex not held
  void Abandon();

  // Ends the deletion: its file is in the Version, or will never be. The
  // destructor calls it if the caller has not.
  // REQUIRES: DB mutex held
  void Close();

  const DeltaFileDescription& file() const { return file_; }

 private:
  DeltaFileDeletion(DeltaStore* store, Cover cover, SequenceNumber seq,
                    uint64_t epoch, uint64_t number,
                    std::function<void()> on_end);

  Status AddAnchors(DeltaFileBuilder* builder) const;

  DeltaStore* const store_;
  const Cover cover_;
  const SequenceNumber seq_;
  const uint64_t epoch_;
  const uint64_t number_;
  const std::function<void()> on_end_;
  std::unique_ptr<DeltaFileBuilder> builder_;  // exists from Publish() on
  DeltaFileDescription file_;
  bool is_closed_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
