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

// Divides blob files into sorted runs, and decides which runs to merge so that
// values are stored in key order.
//
// Each blob file is sorted. Consecutive files without an overlap form a run.
// The values of neighboring keys are in as many places as there are runs. The
// smallest runs are merged first, so that a value is rewritten a number of
// times that is logarithmic in the number of runs, and large runs are not
// merged if several runs are allowed.
//
// Invariant: The files of a run do not overlap, are in key order, and are all
// on one path.
//
// No I/O, no locks; not thread-safe.
class BlobRunMerger {
 public:
  struct File {
    uint64_t number = 0;
    uint64_t size = 0;          // approximate bytes of the live values
    uint64_t size_on_disk = 0;  // bytes
    uint32_t path_id = 0;
    BlobKeyBounds bounds;
  };

  struct Merge {
    // The file numbers of each run. Empty if there is nothing to do.
    std::vector<std::vector<uint64_t>> runs;
    uint32_t path_id = 0;
  };

  struct Limits {
    // Maximum number of runs on each path after all merges. At least 1.
    size_t max_runs = 1;
    // Maximum number of runs in one merge. At least 2.
    size_t max_merged = 2;
    // Upper bound on the summed size in bytes of the largest file of each
    // merged run, except that two runs may always be merged: during a merge
    // there is one partly copied file of each run.
    uint64_t max_open_bytes = 0;
  };

  // Divides the files into the smallest possible number of runs.
  // REQUIRES: comparator compares user keys and outlives this object.
  BlobRunMerger(const Comparator* comparator, std::vector<File> files);

  // Removes and returns the runs to merge next, at least two.
  Merge PickMerge(const Limits& limits);
  // Removes and returns one run, to be rewritten alone, whose files are larger
  // than max_space_amp times the size of its live values.
  Merge PickGarbage(double max_space_amp);
  // Adds the run that resulted from the last merge that was picked.
  // live_size: approximate bytes of the live values of the run.
  // max_file_size: bytes, size of the largest file of the run.
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
