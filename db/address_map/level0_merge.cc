//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/level0_merge.h"

#include <algorithm>
#include <limits>

#include "db/path_layout/path_layout.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "options/cf_options.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the number of files in level 0 from which on they are merged.
size_t MaxFiles(const MutableCFOptions& options, size_t trigger) {
  size_t most = std::numeric_limits<size_t>::max();
  // A negative trigger disables the slowdown.
  if (const int slowdown = options.level0_slowdown_writes_trigger;
      slowdown >= 0) {
    most = static_cast<size_t>(slowdown) / 4 * 3;
  }
  // Only a compaction ends a stop of writes. DB::Flush() waits for one with
  // one file less than the stop trigger. SetOptions() accepts a stop trigger
  // below the slowdown trigger.
  if (const int stop = options.level0_stop_writes_trigger; stop > 0) {
    most = std::min(most, static_cast<size_t>(stop) - 1);
  }
  return std::max(trigger, most);
}

}  // namespace

Level0Merge::Decision Level0Merge::Decide(
    const std::vector<FileMetaData*>& files, uint64_t base_size,
    const MutableCFOptions& options, bool is_paid) {
  const size_t n = static_cast<size_t>(
      std::find_if(files.begin(), files.end(),
                   [](const FileMetaData* f) { return f->being_compacted; }) -
      files.begin());
  if (is_paid && n > 0 && n == files.size()) {
    Decision decision;
    decision.action = Action::kDown;
    decision.num_files = n;
    return decision;
  }
  return DecideNewest(files, n, base_size, options);
}

bool Level0Merge::IsDue(const std::vector<FileMetaData*>& files,
                        uint64_t base_size, const MutableCFOptions& options) {
  return DecideNewest(files, files.size(), base_size, options).action !=
         Action::kWait;
}

Level0Merge::Decision Level0Merge::DecideNewest(
    const std::vector<FileMetaData*>& files, size_t n, uint64_t base_size,
    const MutableCFOptions& options) {
  const size_t trigger = static_cast<size_t>(
      std::max(1, options.level0_file_num_compaction_trigger));
  Decision decision;
  if (n < trigger) {
    return decision;
  }
  uint64_t all = 0;
  for (size_t i = 0; i < n; ++i) {
    all += files[i]->compensated_file_size;
  }
  // With a trigger of 1, the output of a merge within level 0 would be picked
  // again at once.
  if (trigger < 2 || all >= base_size ||
      all > options.max_bytes_for_level_base / 2 ||
      all > options.max_compaction_bytes) {
    if (n == files.size()) {
      decision.action = Action::kDown;
      decision.num_files = n;
    }
    return decision;
  }
  // The cost is the number of bytes written per file by which level 0 shrinks.
  // It falls as long as the next file is not much larger than the files before
  // it.
  size_t run = 1;
  double least = std::numeric_limits<double>::max();
  double sum = static_cast<double>(files[0]->compensated_file_size);
  for (; run < n; ++run) {
    sum += static_cast<double>(files[run]->compensated_file_size);
    const double cost = sum / static_cast<double>(run);
    if (cost > least) {
      break;
    }
    least = cost;
  }
  if (run >= trigger || n >= MaxFiles(options, trigger)) {
    decision.action = Action::kMerge;
    decision.num_files = std::max(run, trigger);
  }
  return decision;
}

int Level0Merge::SortedRuns(const std::vector<FileMetaData*>& files,
                            int num_runs, uint64_t base_size,
                            const MutableCFOptions& options, bool is_paid) {
  if (Decide(files, base_size, options, is_paid).action == Action::kWait) {
    return 0;
  }
  return is_paid
             ? std::max(num_runs, options.level0_file_num_compaction_trigger)
             : num_runs;
}

uint64_t Level0Merge::PriceOf(const VersionStorageInfo& files,
                              const MutableCFOptions& options,
                              uint64_t value_size) {
  const int base_level = files.base_level();
  if (base_level <= 0) {
    return 2 * files.NumLevelBytes(0);
  }
  uint64_t moved = 0;
  for (const int level : {0, base_level}) {
    for (const FileMetaData* file : files.LevelFiles(level)) {
      if (!PathLayout::BlobsCanMove(options, *file, base_level)) {
        const MappedEntryStats& entries = file->blob_refs.mapped;
        moved += (entries.direct + entries.versioned) * value_size;
      }
    }
  }
  return 2 * (files.NumLevelBytes(0) + files.NumLevelBytes(base_level) + moved);
}

}  // namespace ROCKSDB_NAMESPACE
