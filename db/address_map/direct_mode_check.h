//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class Comparator;
class Version;
struct FileMetaData;

// Decides whether a value may be stored in direct mode, i.e. so that the map
// finds it by the key alone (isDirectModeSafe of "KV-Tandem").
//
// Invariant: The answer is true only if no reader needs an older version of the
// key and no older SST file has a non-direct entry of the key. After a filter's
// false positive or an error the answer is false, which makes later reads
// search the LSM-tree.
//
// Not thread-safe.
class DirectModeCheck {
 public:
  // earliest_reader: the smallest sequence number that a reader may read at.
  // is_older: returns true if a file of the Version may hold entries that are
  // older than the job's. Called once for each file of the Version.
  // REQUIRES: the Version outlives this object.
  DirectModeCheck(
      SequenceNumber earliest_reader, Version* version,
      const ReadOptions& read_options,
      const std::function<bool(int level, const FileMetaData&)>& is_older);

  // Returns true if the value of (user_key, seq) may be direct.
  // REQUIRES: keys are passed in comparator order; equal keys are adjacent.
  bool IsSafe(const Slice& user_key, SequenceNumber seq);

 private:
  // Files whose ranges do not overlap, in key order: the files of a level, or a
  // single file of level 0.
  struct Run {
    std::vector<const FileMetaData*> files;
    size_t next = 0;  // the first file that does not end before the key
  };

  bool MayHaveOlderNonDirect(const Slice& user_key);

  const SequenceNumber earliest_reader_;
  Version* const version_;
  const ReadOptions read_options_;
  const Comparator* const comparator_;
  std::vector<Run> runs_;
  // The answer for the last key.
  std::string last_key_;
  bool has_last_ = false;
  bool last_answer_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
