//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>

#include "db/dbformat.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// The bottommost SST files of a column family with an undecided entry.
//
// An entry is *undecided* if its sequence number is not above the earliest
// snapshot of the job that has written the file, but the entry is not known to
// be visible in that snapshot: the transaction is not over, or it was committed
// after the snapshot was taken. The job keeps the version below such an entry.
// Once the entry is decided, another compaction of the file drops that version.
// Until then it would change nothing, so the file must not be marked for it,
// although all sequence numbers in it are older than all snapshots.
//
// Invariant: A file is in the list from before the edit that adds it until its
// first undecided entry is decided, or until the edit has failed.
//
// REQUIRES: DB mutex held during each call.
class UndecidedFiles {
 public:
  UndecidedFiles() = default;
  UndecidedFiles(const UndecidedFiles&) = delete;
  UndecidedFiles& operator=(const UndecidedFiles&) = delete;

  // first: the smallest sequence number of an undecided entry of the file.
  void Add(uint64_t file_number, SequenceNumber first) {
    files_[file_number] = first;
  }
  // Does nothing if the file is not in the list.
  void Remove(uint64_t file_number) { files_.erase(file_number); }
  // Removes the files whose first undecided entry is decided now. Returns true
  // if there were any: their Version then has to find the files to mark again.
  // is_decided: returns true if the sequence number is visible in the oldest
  //     snapshot.
  bool RemoveDecided(const std::function<bool(SequenceNumber)>& is_decided) {
    return std::erase_if(files_, [&is_decided](const auto& file) {
             return is_decided(file.second);
           }) > 0;
  }

  bool empty() const { return files_.empty(); }
  bool Has(uint64_t file_number) const {
    return files_.find(file_number) != files_.end();
  }
  // The smallest sequence number of an undecided entry, kMaxSequenceNumber if
  // there is no file. While it is not below the oldest snapshot,
  // RemoveDecided() finds nothing.
  SequenceNumber First() const {
    SequenceNumber first = kMaxSequenceNumber;
    for (const auto& file : files_) {
      first = std::min(first, file.second);
    }
    return first;
  }

 private:
  std::map<uint64_t, SequenceNumber> files_;
};

}  // namespace ROCKSDB_NAMESPACE
