//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "db/blob_gc/blob_key_bounds.h"
#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Sorted runs of blob files, and which of them to merge so that values lie in
// the order of their keys.
//
// Each blob file is sorted. Files that follow each other without an overlap
// form a run; the values of neighbouring keys lie in as many places as there
// are runs. Runs are merged smallest first, so that a value is written as often
// as the logarithm of their number, and large runs are left alone where there
// may be several.
//
// Invariant: the files of a run do not overlap and are in the order of their
// keys; all are on one path.
//
// No I/O, no locks; not thread-safe.
class BlobRunMerger {
 public:
  struct File {
    uint64_t number = 0;
    uint64_t size = 0;  // of the live values, about
    uint64_t size_on_disk = 0;
    uint32_t path_id = 0;
    BlobKeyBounds bounds;
  };

  struct Merge {
    // Nothing to do if there are none.
    std::vector<std::vector<uint64_t>> runs;
    uint32_t path_id = 0;
  };

  struct Limits {
    // How many runs each path may have afterwards. 1 at least.
    size_t max_runs = 1;
    // A merge takes no more runs than this; 2 at least.
    size_t max_merged = 2;
    // And no more than such that the largest files of all of them are so large
    // together, but two in any case: while a merge goes on there is a file of
    // each run of which a part was copied.
    uint64_t max_open_bytes = 0;
  };

  // The fewest runs that the files can form.
  // REQUIRES: comparator is that of the user keys and outlives this.
  BlobRunMerger(const Comparator* comparator, std::vector<File> files);

  // What to merge next: two runs at least. They are taken out.
  Merge PickMerge(const Limits& limits);
  // A run, for a merge of its own, that takes up more than max_space_amp times
  // what its live values would. It is taken out.
  Merge PickGarbage(double max_space_amp);
  // What came of the last merge that was picked: one run.
  // live_size: of all of it, about.
  void AddMerged(uint32_t path_id, std::vector<uint64_t> files,
                 uint64_t live_size, uint64_t max_file_size);

  size_t NumRuns(uint32_t path_id) const;

 private:
  struct Run {
    std::vector<uint64_t> files;
    uint64_t size = 0;
    uint64_t size_on_disk = 0;
    uint64_t max_file_size = 0;
  };

  std::map<uint32_t, std::vector<Run>> runs_;  // by path
};

}  // namespace ROCKSDB_NAMESPACE
