//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// DB properties of column families with an address map.
// All handlers run with the DB mutex held.

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

bool InternalStats::HandleAddressMapMap(
    std::map<std::string, std::string>* values, Slice /*suffix*/) {
  const AddressMapStore* const blobs = cfd_->address_map_store();
  if (blobs == nullptr) {
    return false;
  }
  uint64_t files = 0;
  uint64_t live_bytes = 0;
  uint64_t pinned_files = 0;
  for (const BlobFileSlotTable::Info& file : blobs->file_table().GetAll()) {
    ++files;
    live_bytes += file.live_bytes;
    pinned_files += file.pins > 0 ? 1 : 0;
  }
  const uint64_t entries = blobs->map()->NumEntries();
  const size_t memory = blobs->map()->MemoryUsage();
  const auto put = [values](const char* name, uint64_t value) {
    (*values)[name] = std::to_string(value);
  };
  put("entries", entries);
  put("memory", memory);
  std::ostringstream per_entry;
  per_entry << std::fixed << std::setprecision(1)
            << (entries == 0 ? 0.0
                             : static_cast<double>(memory) /
                                   static_cast<double>(entries));
  (*values)["memory-per-entry"] = per_entry.str();
  put("files", files);
  put("pinned-files", pinned_files);
  put("live-bytes", live_bytes);
  put("lost-values",
      blobs->file_table().LiveCount(BlobFileSlotTable::kLostSlot));
  put("damaged-files", blobs->gc()->NumDamaged());
  put("blocked-removals", blobs->NumBlockedRemovals());
  put("pending-range-deletions", blobs->range_deletions().Count());
  put("retired-removals", blobs->retired_removals().NumNames());
  uint64_t scan_debt = 0;
  size_t scan_ranges = 0;
  blobs->scan_debts()->GetTotals(&scan_debt, &scan_ranges);
  put("scan-debt", scan_debt);
  put("level0-scan-debt", blobs->scan_debts()->level0()->debt());
  put("scan-ranges", scan_ranges);
  uint64_t hot_files = 0;
  uint64_t hot_bytes = 0;
  for (const auto& meta : cfd_->current()->storage_info()->GetBlobFiles()) {
    if (meta->hot().is_hot()) {
      ++hot_files;
      hot_bytes += meta->GetBlobFileSize();
    }
  }
  put("hot-files", hot_files);
  put("hot-bytes", hot_bytes);
  put("hot-candidates", blobs->heat()->queue()->Count());
  put("hot-threshold", blobs->heat()->threshold());
  put("hot-sketch-memory", blobs->heat()->MemoryUsage());
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
