//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_gc_picker.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "rocksdb/comparator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the number of bytes of garbage that the limit allows.
double Slack(const BlobGcPicker::Options& options,
             const BlobGcPicker::Space& space) {
  assert(options.space_amp_limit >= 1.0);
  return (options.space_amp_limit - 1.0) * static_cast<double>(space.live);
}

// Returns the number of bytes that the copies of jobs and the flushes beside
// them may need.
double Reserve(const BlobGcPicker::Options& options,
               const BlobGcPicker::Space& space, size_t num_files) {
  const double slack = Slack(options, space);
  // A job copies at least one file.
  const double copied = static_cast<double>(
      std::max(BlobGcPicker::MaxCopied(options, space),
               space.live / std::max<size_t>(1, num_files)));
  return std::min(options.max_jobs * copied, slack / 4) +
         std::min(static_cast<double>(options.flush_size), slack / 4);
}

}  // namespace

double BlobGcPicker::Space::Amplification() const {
  if (live == 0) {
    return on_disk == 0 ? 1.0 : std::numeric_limits<double>::infinity();
  }
  return static_cast<double>(on_disk) / static_cast<double>(live);
}

BlobGcPicker::Space BlobGcPicker::SpaceOf(const std::vector<File>& files,
                                          uint64_t copies) {
  Space space;
  space.on_disk = copies;
  for (const File& file : files) {
    assert(file.live_size <= file.size);
    space.on_disk += file.size;
    space.live += file.live_size;
  }
  return space;
}

uint64_t BlobGcPicker::MaxCopied(const Options& options, const Space& space) {
  const int parts = 8 * std::max(options.max_jobs, 2);
  return std::min(
      options.max_copied,
      std::max(options.min_copied,
               static_cast<uint64_t>(Slack(options, space) / parts)));
}

uint64_t BlobGcPicker::Excess(const Options& options,
                              const std::vector<File>& files) {
  const Space space = SpaceOf(files, 0);
  uint64_t garbage = 0;
  for (const File& file : files) {
    if (!file.is_busy) {
      garbage += file.size - file.live_size;
    }
  }
  const double allowed =
      std::max(Slack(options, space) - Reserve(options, space, files.size()) -
                   static_cast<double>(options.wanted_room),
               0.0);
  return garbage - std::min(garbage, static_cast<uint64_t>(allowed));
}

uint64_t BlobGcPicker::SortRoom(const Options& options,
                                const std::vector<File>& files) {
  const Space space = SpaceOf(files, 0);
  const double room = Slack(options, space) -
                      Reserve(options, space, files.size()) -
                      static_cast<double>(space.on_disk - space.live);
  return std::min(options.max_copied,
                  static_cast<uint64_t>(std::max(room, 0.0)));
}

uint64_t BlobGcPicker::WantedSortRoom(const Options& options,
                                      const std::vector<File>& files) {
  const double slack = Slack(options, SpaceOf(files, 0));
  return std::min(options.max_copied, static_cast<uint64_t>(slack / 4));
}

double BlobGcPicker::Score(const File& file, uint64_t next_file_number) {
  const double live = static_cast<double>(file.live_size);
  const double size = static_cast<double>(file.size);
  const uint64_t age =
      1 + next_file_number - std::min(next_file_number, file.number);
  return (size - live) / (size + live) * std::sqrt(static_cast<double>(age));
}

bool BlobGcPicker::Overlap(const Comparator* comparator, const File& a,
                           const File& b) {
  return a.keys == nullptr || b.keys == nullptr ||
         (comparator->Compare(a.keys->smallest, b.keys->largest) <= 0 &&
          comparator->Compare(b.keys->smallest, a.keys->largest) <= 0);
}

uint64_t BlobGcPicker::NumPieces(uint64_t live_size, uint64_t file_size) {
  static_assert(kPieces <= kSmallPart);
  const uint64_t min_size = std::clamp(
      live_size / kPieces, file_size / kSmallPart + 1, file_size / kPieces + 1);
  return std::max(live_size / min_size, uint64_t{1});
}

BlobGcPicker::Job BlobGcPicker::Pick(const Options& options,
                                     const std::vector<File>& files) {
  Job job;
  if (Excess(options, files) == 0) {
    return job;
  }
  struct Candidate {
    double score;
    const File* file;
  };
  std::vector<Candidate> candidates;
  for (const File& file : files) {
    if (!file.is_busy && file.live_size < file.size) {
      candidates.push_back(
          Candidate{Score(file, options.next_file_number), &file});
    }
  }
  if (candidates.empty()) {
    return job;
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) {
              return a.score != b.score ? a.score > b.score
                                        : a.file->number < b.file->number;
            });
  // The values of one job go to files of one kind, and values that are copied
  // together are stored in key order. So more files per job are better for
  // scans, but the score of each file must be at least half of the best score.
  const File& first = *candidates.front().file;
  const double min_score = candidates.front().score / 2;
  const auto end =
      std::find_if(candidates.begin(), candidates.end(),
                   [&](const Candidate& one) { return one.score < min_score; });
  std::stable_partition(candidates.begin(), end, [&](const Candidate& one) {
    return Overlap(options.comparator, first, *one.file);
  });
  const uint64_t max_copied = MaxCopied(options, SpaceOf(files, 0));
  job.path_id = first.path_id;
  job.hot = first.hot;
  for (auto it = candidates.begin(); it != end; ++it) {
    const File& file = *it->file;
    if (job.files.size() == kMaxFiles) {
      break;
    }
    if (file.path_id != first.path_id || !(file.hot == first.hot) ||
        file.is_survivor != first.is_survivor ||
        (!job.files.empty() && job.live_size + file.live_size > max_copied)) {
      continue;
    }
    job.files.push_back(file.number);
    job.size += file.size;
    job.live_size += file.live_size;
  }
  return job;
}

BlobGcPicker::Job BlobGcPicker::PickWide(const std::vector<File>& files,
                                         uint64_t max_bytes) {
  std::map<uint32_t, std::vector<const File*>> by_path;
  for (const File& file : files) {
    if (!file.is_busy && !file.is_survivor && file.live_size > 0) {
      by_path[file.path_id].push_back(&file);
    }
  }
  Job job;
  for (auto& [path_id, wide] : by_path) {
    std::sort(wide.begin(), wide.end(), [](const File* a, const File* b) {
      return a->number < b->number;
    });
    job = Job();
    job.path_id = path_id;
    for (const File* file : wide) {
      if (job.files.size() == kMaxFiles ||
          job.live_size + file->live_size > max_bytes) {
        break;
      }
      job.files.push_back(file->number);
      job.size += file->size;
      job.live_size += file->live_size;
    }
    if (job.files.size() >= kMinWide) {
      return job;
    }
  }
  return Job();
}

BlobGcPicker::Job BlobGcPicker::PickSmall(const Options& options,
                                          const std::vector<File>& files) {
  Job job;
  // A file that reaches a limit of the format can never grow to file_size. Two
  // small files fit into one, even if the merged index is twice as large as
  // both.
  static_assert(2 * 2 <= kSmallPart);
  const uint64_t small_size =
      std::min(options.file_size, kMaxBlobRecordOffset) / kSmallPart;
  constexpr uint64_t kSmallIndex =
      RecordIndexBuilder::kMaxEncodedSize / kSmallPart;
  // Garbage has priority: above the limit there is no space for more copies.
  if (small_size == 0 ||
      (!options.merge_all_small && Excess(options, files) > 0)) {
    return job;
  }
  // Files of one job are on one path and, unless all small files are to be
  // merged, of one kind.
  using Tier = std::tuple<uint32_t, HotMark, bool, int>;
  std::map<Tier, std::vector<const File*>> tiers;
  for (const File& file : files) {
    if (file.is_busy || file.live_size == 0 || file.size >= small_size ||
        file.index_size >= kSmallIndex ||
        (options.merge_all_small && file.hot.is_hot())) {
      continue;
    }
    int tier = 0;
    for (uint64_t size = file.size; size >= kTierFactor; size /= kTierFactor) {
      ++tier;
    }
    tiers[options.merge_all_small
              ? Tier(file.path_id, file.hot, false, 0)
              : Tier(file.path_id, file.hot, file.is_survivor, tier)]
        .push_back(&file);
  }
  // The tiers with the most files are the first.
  std::vector<std::vector<const File*>*> full;
  for (auto& [tier, members] : tiers) {
    if (members.size() >= (options.merge_all_small ? 2 : kTierFactor)) {
      full.push_back(&members);
    }
  }
  std::stable_sort(full.begin(), full.end(), [](const auto* a, const auto* b) {
    return a->size() > b->size();
  });
  // Jobs that run out of disk space reduce options.max_copied, and only a job
  // that succeeds raises it. So it must not prevent the smallest merge.
  Options without_limit = options;
  without_limit.max_copied = std::numeric_limits<uint64_t>::max();
  const Space space = SpaceOf(files, 0);
  const auto most_copied = [&space](const Options& of) {
    return std::max(std::min(of.flush_size, of.max_copied),
                    MaxCopied(of, space));
  };
  const uint64_t max_copied = most_copied(options);
  const uint64_t max_smallest = most_copied(without_limit);
  for (std::vector<const File*>* members : full) {
    // Prefer the oldest files: their remaining values will live long.
    std::sort(
        members->begin(), members->end(),
        [](const File* a, const File* b) { return a->number < b->number; });
    job = Job();
    job.path_id = members->front()->path_id;
    job.hot = members->front()->hot;
    const auto is_enough = [&] {
      return options.merge_all_small || job.files.size() >= kMinMerged ||
             job.live_size >= small_size;
    };
    for (const File* file : *members) {
      if (job.files.size() == kMaxFiles ||
          (job.files.size() >= 2 &&
           job.live_size + file->live_size >
               (is_enough() ? max_copied : max_smallest))) {
        break;
      }
      job.files.push_back(file->number);
      job.size += file->size;
      job.live_size += file->live_size;
    }
    if (is_enough()) {
      return job;
    }
  }
  return Job();
}

}  // namespace ROCKSDB_NAMESPACE
