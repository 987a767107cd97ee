//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// DB properties of column families with an address map.
// All handlers run with the DB mutex held.

#include "db/address_map/address_map_stats.h"

#include <iomanip>
#include <map>
#include <sstream>
#include <string>

#include "db/address_map/address_map_store.h"
#include "db/blob_heat/blob_heat.h"
#include "db/column_family.h"
#include "db/internal_stats.h"
#include "db/scan_sort/scan_debts.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

VersionStorageInfo::BlobStats InternalStats::GetBlobStats(
    const VersionStorageInfo& vstorage) const {
  VersionStorageInfo::BlobStats stats = vstorage.GetBlobStats();
  const AddressMapStore* const blobs = cfd_->address_map_store();
  if (blobs == nullptr) {
    return stats;
  }
  for (const auto& meta : vstorage.GetBlobFiles()) {
    stats.total_garbage_size += blobs->GarbageBytes(*meta);
  }
  stats.space_amp = stats.total_file_size > stats.total_garbage_size
                        ? static_cast<double>(stats.total_file_size) /
                              static_cast<double>(stats.total_file_size -
                                                  stats.total_garbage_size)
                        : 0.0;
  return stats;
}

AddressMapStats AddressMapStats::Collect(const AddressMapStore& blobs,
                                         const VersionStorageInfo& version) {
  AddressMapStats stats;
  for (const BlobFileSlotTable::Info& file : blobs.file_table().GetAll()) {
    ++stats.files;
    stats.live_bytes += file.live_bytes;
    stats.pinned_files += file.pins > 0 || file.job_pins > 0 ? 1 : 0;
  }
  stats.entries = blobs.map()->NumEntries();
  stats.memory = blobs.map()->MemoryUsage();
  stats.lost_values =
      blobs.file_table().LiveCount(BlobFileSlotTable::kLostSlot);
  stats.damaged_files = blobs.gc()->NumDamaged();
  stats.blocked_removals = blobs.NumBlockedRemovals();
  stats.pending_range_deletions = blobs.range_deletions().Count();
  stats.retired_removals = blobs.retired_removals().NumNames();
  size_t scan_ranges = 0;
  blobs.scan_debts()->GetTotals(&stats.scan_debt, &scan_ranges);
  stats.scan_ranges = scan_ranges;
  stats.level0_scan_debt = blobs.scan_debts()->level0()->debt();
  for (const auto& meta : version.GetBlobFiles()) {
    if (meta->hot().is_hot()) {
      ++stats.hot_files;
      stats.hot_bytes += meta->GetBlobFileSize();
    }
  }
  stats.hot_candidates = blobs.heat()->queue()->Count();
  stats.hot_threshold = blobs.heat()->threshold();
  stats.hot_sketch_memory = blobs.heat()->MemoryUsage();
  return stats;
}

bool InternalStats::HandleAddressMapMap(
    std::map<std::string, std::string>* values, Slice /*suffix*/) {
  const AddressMapStore* const blobs = cfd_->address_map_store();
  if (blobs == nullptr) {
    return false;
  }
  const AddressMapStats stats =
      AddressMapStats::Collect(*blobs, *cfd_->current()->storage_info());
  const auto put = [values](const char* name, uint64_t value) {
    (*values)[name] = std::to_string(value);
  };
  put("entries", stats.entries);
  put("memory", stats.memory);
  std::ostringstream per_entry;
  per_entry << std::fixed << std::setprecision(1)
            << (stats.entries == 0 ? 0.0
                                   : static_cast<double>(stats.memory) /
                                         static_cast<double>(stats.entries));
  (*values)["memory-per-entry"] = per_entry.str();
  put("files", stats.files);
  put("pinned-files", stats.pinned_files);
  put("live-bytes", stats.live_bytes);
  put("lost-values", stats.lost_values);
  put("damaged-files", stats.damaged_files);
  put("blocked-removals", stats.blocked_removals);
  put("pending-range-deletions", stats.pending_range_deletions);
  put("retired-removals", stats.retired_removals);
  put("scan-debt", stats.scan_debt);
  put("level0-scan-debt", stats.level0_scan_debt);
  put("scan-ranges", stats.scan_ranges);
  put("hot-files", stats.hot_files);
  put("hot-bytes", stats.hot_bytes);
  put("hot-candidates", stats.hot_candidates);
  put("hot-threshold", stats.hot_threshold);
  put("hot-sketch-memory", stats.hot_sketch_memory);
  return true;
}

bool InternalStats::HandleAddressMap(std::string* value, Slice suffix) {
  std::map<std::string, std::string> values;
  if (!HandleAddressMapMap(&values, suffix)) {
    return false;
  }
  for (const auto& [name, number] : values) {
    value->append(name).append(": ").append(number).append("\n");
  }
  return true;
}

bool InternalStats::HandleAddressMapEntries(uint64_t* value, DBImpl* /*db*/,
                                            Version* /*version*/) {
  const AddressMapStore* const blobs = cfd_->address_map_store();
  *value = blobs == nullptr ? 0 : blobs->map()->NumEntries();
  return true;
}

bool InternalStats::HandleAddressMapMemory(uint64_t* value, DBImpl* /*db*/,
                                           Version* /*version*/) {
  const AddressMapStore* const blobs = cfd_->address_map_store();
  *value = blobs == nullptr ? 0 : blobs->map()->MemoryUsage();
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
