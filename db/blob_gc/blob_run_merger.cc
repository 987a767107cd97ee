//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_run_merger.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <iterator>
#include <limits>
#include <set>

namespace ROCKSDB_NAMESPACE {

BlobRunMerger::BlobRunMerger(const Comparator* comparator,
                             std::vector<File> files) {
  std::sort(files.begin(), files.end(), [&](const File& a, const File& b) {
    const int order = BlobKeyBounds::Compare(comparator, a.bounds.smallest,
                                             b.bounds.smallest);
    return order != 0 ? order < 0 : a.number < b.number;
  });
  // Each file is appended to a run of its path that ends before the file
  // begins. This gives the smallest possible number of runs, which is the
  // maximum number of files over one key. If there are several such runs, the
  // one that ends last is used, so that the files of an existing run stay
  // together.
  struct End {
    const BlobKeyBounds::Position* position;
    size_t run;
  };
  const auto ends_before = [comparator](const End& a, const End& b) {
    const int order =
        BlobKeyBounds::Compare(comparator, *a.position, *b.position);
    return order != 0 ? order < 0 : a.run < b.run;
  };
  using Ends = std::set<End, decltype(ends_before)>;
  std::map<uint32_t, Ends> ends;
  for (const File& file : files) {
    Ends& of_path = ends.try_emplace(file.path_id, ends_before).first->second;
    std::vector<Run>& runs = runs_[file.path_id];
    size_t run = runs.size();
    const auto after = of_path.upper_bound(
        End{&file.bounds.smallest, std::numeric_limits<size_t>::max()});
    if (after != of_path.begin()) {
      const auto before = std::prev(after);
      run = before->run;
      of_path.erase(before);
    } else {
      runs.emplace_back();
    }
    runs[run].files.push_back(file.number);
    runs[run].size += file.size;
    runs[run].size_on_disk += file.size_on_disk;
    runs[run].max_file_size = std::max(runs[run].max_file_size, file.size);
    of_path.insert(End{&file.bounds.largest, run});
  }
}

BlobRunMerger::Merge BlobRunMerger::PickMerge(const Limits& limits) {
  assert(limits.max_runs >= 1 && limits.max_merged >= 2);
  Merge merge;
  for (auto& [path_id, runs] : runs_) {
    if (runs.size() <= limits.max_runs) {
      continue;
    }
    std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
      return a.size < b.size;
    });
    // Merge no more runs than needed, as the others are larger.
    size_t wanted =
        std::min(limits.max_merged, runs.size() - limits.max_runs + 1);
    const size_t left = runs.size() - wanted + 1;
    if (left > limits.max_runs) {
      // Further merges are needed. All merges except the first one take
      // max_merged runs, which minimizes the amount of data that is merged most
      // often.
      const size_t surplus =
          (runs.size() - limits.max_runs) % (limits.max_merged - 1);
      if (surplus != 0) {
        wanted = surplus + 1;
      }
    }
    uint64_t open_bytes = 0;
    size_t n = 0;
    while (n < wanted) {
      open_bytes += runs[n].max_file_size;
      if (n >= 2 && open_bytes > limits.max_open_bytes) {
        break;
      }
      merge.runs.push_back(std::move(runs[n].files));
      ++n;
    }
    runs.erase(runs.begin(), runs.begin() + static_cast<ptrdiff_t>(n));
    merge.path_id = path_id;
    break;
  }
  return merge;
}

BlobRunMerger::Merge BlobRunMerger::PickGarbage(double max_space_amp) {
  Merge merge;
  for (auto& [path_id, runs] : runs_) {
    for (auto run = runs.begin(); run != runs.end(); ++run) {
      if (static_cast<double>(run->size_on_disk) >
          max_space_amp * static_cast<double>(run->size)) {
        merge.runs.push_back(std::move(run->files));
        merge.path_id = path_id;
        runs.erase(run);
        return merge;
      }
    }
  }
  return merge;
}

void BlobRunMerger::AddMerged(uint32_t path_id, std::vector<uint64_t> files,
                              uint64_t live_size, uint64_t max_file_size) {
  if (files.empty()) {
    return;
  }
  Run run;
  run.files = std::move(files);
  run.size = run.size_on_disk = live_size;
  run.max_file_size = max_file_size;
  runs_[path_id].push_back(std::move(run));
}

size_t BlobRunMerger::NumRuns(uint32_t path_id) const {
  const auto it = runs_.find(path_id);
  return it == runs_.end() ? 0 : it->second.size();
}

}  // namespace ROCKSDB_NAMESPACE
