//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/unmapped_blob_gc.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/version_set.h"
#include "options/cf_options.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

std::vector<uint64_t> UnmappedBlobGc::PickSsts(
    const std::vector<BlobFile>& blob_files, double limit) {
  double size = 0;
  double live_size = 0;
  for (const BlobFile& file : blob_files) {
    size += static_cast<double>(file.size);
    live_size += static_cast<double>(file.live_size);
  }
  // Values that are copied to files of the map take as much space there as they
  // count in live_size.
  double excess = size - limit * live_size;
  std::vector<uint64_t> numbers;
  for (const BlobFile& file : blob_files) {
    if (excess <= 0) {
      break;
    }
    numbers.insert(numbers.end(), file.linked_ssts->begin(),
                   file.linked_ssts->end());
    excess -= static_cast<double>(file.size - file.live_size);
  }
  return numbers;
}

UnmappedBlobGc::Files UnmappedBlobGc::Pick(const VersionStorageInfo& vstorage,
                                           const MutableCFOptions& options,
                                           double limit, bool also_busy) {
  Files result;
  if (limit == 0 || !options.enable_blob_files) {
    return result;
  }
  std::vector<BlobFile> blob_files;
  for (const auto& meta : vstorage.GetBlobFiles()) {
    if (meta->IsMapped()) {
      continue;
    }
    BlobFile& file = blob_files.emplace_back();
    file.size = meta->GetBlobFileSize();
    const uint64_t total = std::max(uint64_t{1}, meta->GetTotalBlobBytes());
    const uint64_t live = total - std::min(total, meta->GetGarbageBlobBytes());
    file.live_size = std::min(
        file.size, static_cast<uint64_t>(static_cast<double>(file.size) *
                                         static_cast<double>(live) /
                                         static_cast<double>(total)));
    file.linked_ssts = &meta->GetLinkedSsts();
  }
  std::vector<std::pair<int, size_t>> places;
  for (const uint64_t number : PickSsts(blob_files, limit)) {
    const auto location = vstorage.GetFileLocation(number);
    if (location.IsValid() &&
        location.GetLevel() >= options.blob_file_starting_level) {
      places.emplace_back(location.GetLevel(), location.GetPosition());
    }
  }
  std::sort(places.begin(), places.end());
  for (const auto& [level, position] : places) {
    FileMetaData* const file = vstorage.LevelFiles(level)[position];
    if (also_busy || !file->being_compacted) {
      result.emplace_back(level, file);
    }
  }
  return result;
}

Status UnmappedBlobGc::Collect(DBImpl* db, ColumnFamilyData* cfd,
                               const CollectBlobGarbageOptions& options) {
  CompactRangeOptions compact;
  compact.exclusive_manual_compaction = false;
  compact.canceled = options.canceled;
  // The SST files that were compacted. Each is compacted once at most, so that
  // the loop ends.
  std::set<uint64_t> done;
  for (;;) {
    int level = -1;
    std::string smallest;
    std::string largest;
    {
      InstrumentedMutexLock lock(db->mutex());
      const FileMetaData* last = nullptr;
      for (const auto& [file_level, file] :
           Pick(*cfd->current()->storage_info(),
                cfd->GetLatestMutableCFOptions(), options.space_amp_limit,
                /*also_busy=*/true)) {
        const auto& files =
            cfd->current()->storage_info()->LevelFiles(file_level);
        if (last == nullptr) {
          if (!done.insert(file->fd.GetNumber()).second) {
            continue;
          }
          level = file_level;
          smallest = file->smallest.user_key().ToString();
        } else {
          // Consecutive files of a level are compacted together.
          const auto at = std::find(files.begin(), files.end(), file);
          if (level == 0 || file_level != level || at == files.begin() ||
              *(at - 1) != last || !done.insert(file->fd.GetNumber()).second) {
            break;
          }
        }
        largest = file->largest.user_key().ToString();
        last = file;
      }
    }
    if (level < 0) {
      return Status::OK();
    }
    TEST_SYNC_POINT("UnmappedBlobGc::Collect:Compact");
    const Slice begin(smallest);
    const Slice end(largest);
    const Status s = db->RunManualCompaction(
        cfd, level, level, compact, &begin, &end,
        compact.exclusive_manual_compaction, /*disallow_trivial_move=*/true,
        std::numeric_limits<uint64_t>::max(), /*trim_ts=*/"");
    if (!s.ok()) {
      return s;
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
