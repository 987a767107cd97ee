//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/version_storage_strata.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/level0_merge.h"
#include "db/column_family.h"
#include "db/delta/delta_version.h"
#include "db/path_layout/path_layout.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

uint64_t VersionStorageStrata::EstimateKeys(
    const VersionStorageInfo& files, const SampledEntries& sampled) const {
  uint64_t num_files = 0;
  for (int level = 0; level < files.num_levels(); ++level) {
    num_files += files.LevelFiles(level).size();
  }
  return EstimateKeys(sampled, num_files, delta_->GetTotals().num_operands);
}

uint64_t VersionStorageStrata::EstimateKeys(const SampledEntries& sampled,
                                            uint64_t num_files,
                                            uint64_t num_operands) {
  const bool more_deletions = sampled.num_deletions > sampled.num_others;
  uint64_t difference = more_deletions
                            ? sampled.num_deletions - sampled.num_others
                            : sampled.num_others - sampled.num_deletions;
  if (sampled.num_files > 0 && sampled.num_files < num_files) {
    const double all = static_cast<double>(difference) *
                       static_cast<double>(num_files) /
                       static_cast<double>(sampled.num_files);
    difference = all < static_cast<double>(UINT64_MAX)
                     ? static_cast<uint64_t>(all)
                     : UINT64_MAX;
  }
  if (more_deletions) {
    return num_operands - std::min(num_operands, difference);
  }
  return num_operands + std::min(UINT64_MAX - num_operands, difference);
}

int VersionStorageStrata::ScoreLevel0(const VersionStorageInfo& files,
                                      const MutableCFOptions& options,
                                      int num_sorted_runs) {
  const int base_level = files.base_level();
  if (base_level <= 0) {
    return num_sorted_runs;
  }
  const std::vector<FileMetaData*>& level0 = files.LevelFiles(0);
  const uint64_t base_size = files.NumLevelBytes(base_level);
  level0_waits_ = !Level0Merge::IsDue(level0, base_size, options);
  return Level0Merge::SortedRuns(level0, num_sorted_runs, base_size, options,
                                 level0_is_paid_);
}

void VersionStorageStrata::SetLevel0Paid(const VersionStorageInfo& files) {
  for (const FileMetaData* file : files.LevelFiles(0)) {
    level0_is_paid_ = true;
    paid_level0_file_ = std::max(paid_level0_file_, file->fd.GetNumber());
  }
}

void VersionStorageStrata::Follow(const Version* before,
                                  VersionStorageInfo* files) {
  if (before == nullptr) {
    return;
  }
  const VersionStorageStrata& former = before->storage_info()->strata();
  VersionStorageStrata* const strata = files->strata();
  strata->leaves_misplaced_files_ = former.leaves_misplaced_files_;
  if (AddressMapStore* const blobs = before->cfd()->address_map_store();
      blobs != nullptr) {
    strata->SetUndecidedFiles(blobs->undecided_files());
  }
  if (!former.level0_is_paid()) {
    return;
  }
  strata->paid_level0_file_ = former.paid_level0_file_;
  const std::vector<FileMetaData*>& level0 = files->LevelFiles(0);
  strata->level0_is_paid_ =
      std::any_of(level0.begin(), level0.end(), [&](const FileMetaData* file) {
        return file->fd.GetNumber() <= strata->paid_level0_file_;
      });
}

SequenceNumber VersionStorageStrata::LargestReclaimable(
    const FileMetaData& file) const {
  return undecided_files_ != nullptr &&
                 undecided_files_->Has(file.fd.GetNumber())
             ? 0
             : file.LargestReclaimable();
}

VersionStorageStrata::LevelFiles VersionStorageStrata::ListMisplacedFiles(
    const VersionStorageInfo& files, const MutableCFOptions& options) {
  LevelFiles result;
  if (!PathLayout::IsInUse(options, files)) {
    return result;
  }
  for (int level = 0; level < files.num_levels(); ++level) {
    for (FileMetaData* const file : files.LevelFiles(level)) {
      if (PathLayout::IsMisplaced(options, *file, level)) {
        result.emplace_back(level, file);
      }
    }
  }
  return result;
}

void VersionStorageStrata::FindMisplacedFiles(const VersionStorageInfo& files,
                                              const MutableCFOptions& options) {
  misplaced_files_.clear();
  if (leaves_misplaced_files_) {
    return;
  }
  for (const auto& level_and_file : ListMisplacedFiles(files, options)) {
    if (!level_and_file.second->being_compacted) {
      misplaced_files_.push_back(level_and_file);
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
