//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The DB property of column families with delta separation. The handlers run
// with the DB mutex held.

#include "db/delta/delta_store_stats.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "db/column_family.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/internal_stats.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

void PutSum(const std::string& name, const DeltaStoreStats::Sum& sum,
            std::map<std::string, std::string>* values) {
  (*values)[name + "-files"] = std::to_string(sum.files);
  (*values)[name + "-bytes"] = std::to_string(sum.bytes);
}

void PutStats(const DeltaVersion& delta, const DeltaStoreStats& stats,
              std::map<std::string, std::string>* values) {
  const auto put = [values](const char* name, uint64_t number) {
    (*values)[name] = std::to_string(number);
  };
  put("files", delta.GetTotals().num_files);
  put("bytes", delta.GetTotals().bytes);
  put("raw-bytes", delta.GetTotals().raw_bytes);
  put("operands", stats.num_operands);
  put("anchors", stats.num_anchors);
  PutSum("flushed", stats.flushed, values);
  PutSum("merged", stats.merged, values);
  PutSum("sorted", stats.sorted, values);
  PutSum("anchor", stats.anchors, values);
  PutSum("misplaced", stats.misplaced, values);
  put("oldest-epoch", stats.newest_epoch == 0 ? 0 : stats.oldest_epoch);
  put("newest-epoch", stats.newest_epoch);
  put("buckets", stats.num_buckets);
  put("min-floor", delta.Buckets().MinFloor());
  put("max-floor", delta.Buckets().MaxFloor());
  put("largest-sequence", delta.LargestSequence());
  put("open-files", stats.open_files);
  put("reader-memory", stats.reader_memory);
  put("version-memory", stats.version_memory);
}

// All 0 without deltas.
void PutCacheStats(const DeltaStore* store,
                   std::map<std::string, std::string>* values) {
  const SieveTable::Stats stats =
      store != nullptr ? store->CacheStats() : SieveTable::Stats();
  (*values)["cache-capacity"] =
      std::to_string(store != nullptr ? store->CacheCapacity() : 0);
  (*values)["cache-entries"] = std::to_string(stats.entries);
  (*values)["cache-bytes"] = std::to_string(stats.bytes);
  (*values)["cache-charged-bytes"] = std::to_string(stats.charged);
  (*values)["cache-evicted"] = std::to_string(stats.evicted);
}

}  // namespace

void DeltaStoreStats::Sum::Add(const DeltaFileDescription& file) {
  ++files;
  bytes += file.size;
}

DeltaStoreStats DeltaStoreStats::Collect(const DeltaVersion& delta,
                                         const DeltaPicker::Paths& paths) {
  DeltaStoreStats stats;
  delta.ForEachFile([&](const DeltaVersion::FilePtr& ptr) {
    const DeltaFileDescription& file = ptr->description();
    switch (file.tier) {
      case Tier::kFlushed:
        stats.flushed.Add(file);
        break;
      case Tier::kMerged:
        stats.merged.Add(file);
        break;
      case Tier::kSorted:
        stats.sorted.Add(file);
        break;
    }
    if (paths.IsMisplaced(file)) {
      stats.misplaced.Add(file);
    }
    if (file.kind == Kind::kAnchors) {
      stats.anchors.Add(file);
      stats.num_anchors += file.num_entries + file.num_range_anchors;
    } else {
      stats.num_operands += file.num_entries;
    }
    if (file.tier != Tier::kSorted) {
      stats.oldest_epoch = std::min(stats.oldest_epoch, file.first_epoch);
      stats.newest_epoch = std::max(stats.newest_epoch, file.last_epoch);
    }
    const DeltaFileReader* const reader = ptr->OpenedReader();
    if (reader != nullptr) {
      ++stats.open_files;
      stats.reader_memory += reader->ApproximateMemoryUsage();
    }
  });
  stats.num_buckets = delta.Buckets().size();
  stats.version_memory = delta.ApproximateMemoryUsage();
  return stats;
}

size_t DeltaStoreStats::NumWaitingForDrain(const DeltaStore& store) {
  size_t num_waiting = 0;
  for (const auto& [file, leftover] : store.jobs().leftovers()) {
    num_waiting += leftover.is_for_snapshots || leftover.has_failed;
  }
  return num_waiting;
}

bool InternalStats::HandleDeltaStoreMap(
    std::map<std::string, std::string>* values, Slice /*suffix*/) {
  const auto& delta = cfd_->current()->storage_info()->delta();
  if (delta == nullptr && cfd_->delta_store() == nullptr) {
    return false;
  }
  const DeltaVersion empty;
  const DeltaVersion& files = delta == nullptr ? empty : *delta;
  PutStats(files,
           DeltaStoreStats::Collect(
               files, DeltaPicker::Paths::By(cfd_->GetLatestMutableCFOptions(),
                                             cfd_->ioptions().num_levels)),
           values);
  // The numbers of files and bytes show the progress of a drain. Here it is
  // reported how many files wait for snapshots to be released, or have operands
  // that cannot be merged.
  const DeltaStore* const store = cfd_->delta_store();
  const bool is_draining =
      delta != nullptr && !cfd_->ioptions().enable_delta_separation;
  const size_t num_waiting = is_draining && store != nullptr
                                 ? DeltaStoreStats::NumWaitingForDrain(*store)
                                 : 0;
  (*values)["draining"] = is_draining ? "1" : "0";
  (*values)["drain-waiting-files"] = std::to_string(num_waiting);
  PutCacheStats(store, values);
  return true;
}

bool InternalStats::HandleDeltaStore(std::string* value, Slice suffix) {
  std::map<std::string, std::string> values;
  if (!HandleDeltaStoreMap(&values, suffix)) {
    return false;
  }
  for (const auto& [name, number] : values) {
    value->append(name).append(": ").append(number).append("\n");
  }
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
