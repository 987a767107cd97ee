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

// May a value be stored in direct mode, i.e. so that the map finds it by the
// key alone (isDirectModeSafe of "KV-Tandem")?
//
// Invariant: true only if no reader needs an older version of the key, and no
// older SST file has a non-direct entry of it. A filter's false positive or an
// error gives false, which costs later reads a search of the LSM-tree.
//
// Not thread-safe.
class DirectModeCheck {
 public:
  // earliest_reader: the smallest sequence number that somebody may read at.
  // is_older: whether a file of the Version may hold entries that are older
  // than the job's; called once for each file of it.
  // REQUIRES: the Version outlives this.
  DirectModeCheck(
      SequenceNumber earliest_reader, Version* version,
      const ReadOptions& read_options,
      const std::function<bool(int level, const FileMetaData&)>& is_older);

  // REQUIRES: keys are given in the order of the comparator; equal ones follow
  // each other.
  bool IsSafe(const Slice& user_key, SequenceNumber seq);

 private:
  // Files whose ranges do not overlap, in order: those of a level, or a single
  // one of level 0.
  struct Run {
    std::vector<const FileMetaData*> files;
    size_t next = 0;  // the first that does not lie wholly before the key
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
