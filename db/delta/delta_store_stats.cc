//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The DB property of column families with delta separation. The handlers run
// with the DB mutex held.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "db/column_family.h"
#include "db/delta/delta_cache.h"
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

// Totals of the files of one kind and tier, or of all.
struct Sum {
  uint64_t files = 0;
  uint64_t bytes = 0;

  void Add(const DeltaFileDescription& file) {
    ++files;
    bytes += file.size;
  }
  void Put(const std::string& name,
           std::map<std::string, std::string>* values) const {
    (*values)[name + "-files"] = std::to_string(files);
    (*values)[name + "-bytes"] = std::to_string(bytes);
  }
};

void PutStats(const DeltaVersion& delta, const DeltaPicker::Paths& paths,
              std::map<std::string, std::string>* values) {
  const auto put = [values](const char* name, uint64_t number) {
    (*values)[name] = std::to_string(number);
  };

  Sum flushed;
  Sum merged;
  Sum sorted;
  Sum anchors;
  Sum misplaced;
  uint64_t num_operands = 0;
  uint64_t num_anchors = 0;
  uint64_t oldest_epoch = UINT64_MAX;
  uint64_t newest_epoch = 0;
  uint64_t open_files = 0;
  uint64_t reader_memory = 0;
  delta.ForEachFile([&](const DeltaVersion::FilePtr& ptr) {
    const DeltaFileDescription& file = ptr->description();
    switch (file.tier) {
      case Tier::kFlushed:
        flushed.Add(file);
        break;
      case Tier::kMerged:
        merged.Add(file);
        break;
      case Tier::kSorted:
        sorted.Add(file);
        break;
    }
    if (paths.IsMisplaced(file)) {
      misplaced.Add(file);
    }
    if (file.kind == Kind::kAnchors) {
      anchors.Add(file);
      num_anchors += file.num_entries + file.num_range_anchors;
    } else {
      num_operands += file.num_entries;
    }
    if (file.tier != Tier::kSorted) {
      oldest_epoch = std::min(oldest_epoch, file.first_epoch);
      newest_epoch = std::max(newest_epoch, file.last_epoch);
    }
    const DeltaFileReader* const reader = ptr->OpenedReader();
    if (reader != nullptr) {
      ++open_files;
      reader_memory += reader->ApproximateMemoryUsage();
    }
  });
  put("files", delta.GetTotals().num_files);
  put("bytes", delta.GetTotals().bytes);
  put("raw-bytes", delta.GetTotals().raw_bytes);
  put("operands", num_operands);
  put("anchors", num_anchors);
  flushed.Put("flushed", values);
  merged.Put("merged", values);
  sorted.Put("sorted", values);
  anchors.Put("anchor", values);
  misplaced.Put("misplaced", values);
  put("oldest-epoch", newest_epoch == 0 ? 0 : oldest_epoch);
  put("newest-epoch", newest_epoch);
  put("buckets", delta.Buckets().size());
  put("min-floor", delta.Buckets().MinFloor());
  put("max-floor", delta.Buckets().MaxFloor());
  put("largest-sequence", delta.LargestSequence());
  put("open-files", open_files);
  put("reader-memory", reader_memory);
  put("version-memory", delta.ApproximateMemoryUsage());
}

// All 0 without a cache.
void PutCacheStats(const DeltaStore* store,
                   std::map<std::string, std::string>* values) {
  const DeltaCache* const cache = store != nullptr ? store->cache() : nullptr;
  const SieveTable::Stats stats =
      cache != nullptr ? cache->GetStats() : SieveTable::Stats();
  (*values)["cache-capacity"] =
      std::to_string(cache != nullptr ? cache->capacity() : 0);
  (*values)["cache-entries"] = std::to_string(stats.entries);
  (*values)["cache-bytes"] = std::to_string(stats.bytes);
  (*values)["cache-charged-bytes"] = std::to_string(stats.charged);
  (*values)["cache-evicted"] = std::to_string(stats.evicted);
}

}  // namespace

bool InternalStats::HandleDeltaStoreMap(
    std::map<std::string, std::string>* values, Slice /*suffix*/) {
  const auto& delta = cfd_->current()->storage_info()->delta();
  if (delta == nullptr && cfd_->delta_store() == nullptr) {
    return false;
  }
  const DeltaVersion empty;
  PutStats(delta == nullptr ? empty : *delta,
           DeltaPicker::Paths::By(cfd_->GetLatestMutableCFOptions(),
                                  cfd_->ioptions().num_levels),
           values);
  // The numbers of files and bytes show the progress of a drain. Here it is
  // reported how many files wait for snapshots to be released, or have operands
  // that cannot be merged.
  const DeltaStore* const store = cfd_->delta_store();
  const bool is_draining =
      delta != nullptr && !cfd_->ioptions().enable_delta_separation;
  size_t num_waiting = 0;
  if (is_draining && store != nullptr) {
    for (const auto& [file, leftover] : store->jobs().leftovers()) {
      num_waiting += leftover.is_for_snapshots || leftover.has_failed;
    }
  }
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
