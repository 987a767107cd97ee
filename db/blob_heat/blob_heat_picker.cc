//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_heat/blob_heat_picker.h"

#include <algorithm>
#include <numeric>

namespace ROCKSDB_NAMESPACE {

bool BlobHeatPicker::MustDrain(const Options& options, const File& file) {
  return file.hot.is_hot() &&
         (options.budget == 0 || file.path_id != options.path_id);
}

uint64_t BlobHeatPicker::HotBytes(const std::vector<File>& files) {
  uint64_t bytes = 0;
  for (const File& file : files) {
    bytes += file.hot.is_hot() ? file.size : 0;
  }
  return bytes;
}

BlobHeatPicker::Job BlobHeatPicker::Pick(const Options& options,
                                         const std::vector<File>& files) {
  const auto oldest = [&files](const auto& matches) {
    const File* found = nullptr;
    for (const File& file : files) {
      if (file.hot.is_hot() && !file.is_busy && matches(file) &&
          (found == nullptr || file.number < found->number)) {
        found = &file;
      }
    }
    return found;
  };
  const auto job_of = [](Kind kind, const File* file) {
    Job job;
    if (file != nullptr) {
      job.kind = kind;
      job.file = *file;
    }
    return job;
  };
  Job job = job_of(Kind::kDrain, oldest([&options](const File& file) {
                     return MustDrain(options, file);
                   }));
  if (job.kind != Kind::kNone) {
    return job;
  }
  const auto any = [](const File& /*file*/) { return true; };
  const uint64_t used = HotBytes(files);
  uint64_t busy = 0;
  for (const File& file : files) {
    busy += file.hot.is_hot() && file.is_busy ? file.size : 0;
  }
  if (used - busy > options.budget) {
    // The budget was reduced. Files that jobs have may be gone soon.
    return job_of(Kind::kDrain, oldest(any));
  }
  if (options.wanted == 0 || used > options.budget) {
    return job;
  }
  const uint64_t room = options.budget - used;
  if (options.lacks_room ||
      room < std::min(options.wanted,
                      std::max(options.budget / kMinRoomPart, uint64_t{1}))) {
    job = job_of(Kind::kDemote, oldest([&options](const File& file) {
                   return file.number > options.hand;
                 }));
    if (job.kind == Kind::kNone) {
      job.kind = Kind::kGiveUp;
    }
    return job;
  }
  job.kind = Kind::kPromote;
  job.room = room;
  return job;
}

uint32_t BlobHeatPicker::LeastKept(const Histogram& bytes) {
  const uint64_t all = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  uint64_t demoted = bytes[0];
  uint32_t least = 1;
  while (least < FrequencySketch::kMaxEstimate &&
         demoted < all / kMinDemotedPart) {
    demoted += bytes[least];
    ++least;
  }
  return least;
}

}  // namespace ROCKSDB_NAMESPACE
