//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/compaction/level0_merge.h"

#include <algorithm>
#include <cstdint>

#include "db/version_edit.h"
#include "options/cf_options.h"

namespace ROCKSDB_NAMESPACE {

double Level0Merge::BaseRatio(const std::vector<FileMetaData*>& files,
                              const MutableCFOptions& options) {
  uint64_t all = 0;
  uint64_t largest = 0;
  for (const FileMetaData* file : files) {
    all += file->compensated_file_size;
    largest = std::max(largest, file->compensated_file_size);
  }
  if (options.level0_file_num_compaction_trigger < 2 ||
      all > options.max_bytes_for_level_base / 2 ||
      all > options.max_compaction_bytes) {
    return kNever;
  }
  const uint64_t added = std::max(all - largest, uint64_t{1});
  // Into a base level that is smaller than level 0 it goes at once.
  return std::max(static_cast<double>(all) / (2 * static_cast<double>(added)),
                  1.0);
}

}  // namespace ROCKSDB_NAMESPACE
