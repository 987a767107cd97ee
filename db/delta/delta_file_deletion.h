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

// Where the operands of a DeltaVersion are, as descriptions of its files tell:
// all lie between these keys, both included, and below or at the sequence
// number.
struct DeltaOperandBounds {
  bool has_operands = false;
  std::string smallest;
  std::string largest;
  SequenceNumber largest_seq = 0;

  // version may be nullptr.
  static DeltaOperandBounds Of(const DeltaVersion* version);
};

// The keys of a column family as ClipColumnFamily() has to know them: those of
// its SST files, which may be gone when it uses them, and those of operands.
class DeltaClipBounds {
 public:
  // smallest, largest: of the SST files; without any both are empty. From now
  // on they are keys of this object, those of operands included.
  // REQUIRES: DB mutex held
  void Extend(const DeltaVersion* version, bool has_sst_files,
              const Comparator* ucmp, Slice* smallest, Slice* largest);

 private:
  std::string smallest_;
  std::string largest_;
};

// What DeleteFilesInRanges() does about operands in delta files. The files that
// it deletes have values that operands belong to, and tombstones that hide
// operands no more; so the operands go as well: anchors of the ranges, in the
// same edit, hide them.
//
//   Begin() -> Write() -> AddTo(edit) -> the edit
//
// Invariants:
// * The anchors' sequence number is that of the newest operand in delta files
//   at Begin(). Those in memtables are newer, and stay, as values in memtables
//   do: flushes write memtables in their order.
// * As in the LSM-tree, more may stay and more may go than what belongs
//   together: a value in level 0 or in a file that reaches beyond the range
//   stays, but not its operands. DeleteFilesInRanges() promises nothing else.
// * No flush of another thread runs at Begin(). Its operands would be newer than
//   the anchors, and its epoch older: then jobs that know the anchors' file by
//   its epoch could put these operands together with older ones. (One of the same
//   thread, which calls OnFlushBegin() of a listener, cannot be waited for.)
// * Between Begin() and the destructor the epoch counts as that of a running
//   flush, so that the file is not late (see DeltaStore).
//
// Used by one thread.
class DeltaFileDeletion {
 public:
  // Keys, and ranges [start, end). Both ascend, and ranges do not touch each
  // other.
  struct Cover {
    std::vector<std::string> keys;
    std::vector<std::pair<std::string, std::string>> ranges;

    bool operator==(const Cover&) const = default;
  };
  // Of the keys from smallest to largest, both included, those in the ranges,
  // whose limits belong to them if include_end.
  static Cover CoverOf(const std::vector<UserKeyRangeOpt>& ranges,
                       bool include_end, const Slice& smallest,
                       const Slice& largest, const Comparator* ucmp);

  // How it writes the file.
  struct Output {
    std::string db_id;
    int job_id = 0;
    uint32_t path_id = 0;
    FileOptions file_options;
    WriteOptions write_options;
    FSDirectory* directory = nullptr;  // of path_id
  };

  // nullptr if there are no operands in the ranges. on_end: called by the
  // destructor. version may be nullptr.
  // REQUIRES: DB mutex held; new_file_number gives new ones of the DB;
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

  // The file is complete, synced with its directory, and opens; if that fails
  // there is none.
  // REQUIRES: DB mutex not held
  Status Write(const Output& output);

  // REQUIRES: Write() was successful. The file is the edit's from here on: if
  // that fails, the next full scan finds it.
  void AddTo(VersionEdit* edit) const;

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
  DeltaFileDescription file_;
};

}  // namespace ROCKSDB_NAMESPACE
