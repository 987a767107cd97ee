//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/range_conversion.h"

#include <cassert>
#include <vector>

#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/version_set.h"
#include "options/cf_options.h"
#include "rocksdb/memtablerep.h"
#include "util/user_comparator_wrapper.h"

namespace ROCKSDB_NAMESPACE {

bool RangeConversion::IsPossible(const ReadOptions& read_options,
                                 bool is_total_order,
                                 const ImmutableOptions& ioptions,
                                 const ReadCallback* read_callback,
                                 ColumnFamilyData* cfd) {
  if (read_options.read_tier == kMemtableTier) {
    return false;  // It does not see the live keys in files.
  }
  if (ioptions.unordered_write && read_callback == nullptr) {
    // The last sequence number is published before the memtable has the
    // entries. The callback of a transaction knows the smallest uncommitted
    // one, which is compared before each conversion.
    return false;
  }
  if (ioptions.allow_ingest_behind || ioptions.cf_allow_ingest_behind) {
    return false;  // Keys may be added below all others at any time.
  }
  if (ioptions.row_cache != nullptr ||
      (cfd != nullptr && !cfd->is_delete_range_supported())) {
    return false;  // DeleteRange() is refused, too.
  }
  // Without total order, other memtables than the skip list look at one bucket
  // of keys, or at none after SeekToFirst() and SeekToLast().
  return is_total_order ||
         ioptions.memtable_factory->IsInstanceOf(SkipListFactory::kClassName());
}

bool RangeConversion::SeesAllPrefixes(const ReadOptions& read_options,
                                      bool is_total_order,
                                      const MutableCFOptions& cf_options) {
  // Memtables ask their filters with prefix_same_as_start, in total order, too.
  // They keep the filters that they were made with when
  // memtable_prefix_bloom_size_ratio changes.
  return cf_options.prefix_extractor == nullptr ||
         (is_total_order && !read_options.prefix_same_as_start);
}

bool RangeConversion::IsInScanRange(const MultiScanArgs& scans,
                                    size_t num_started,
                                    const UserComparatorWrapper& ucmp,
                                    const Slice& first, const Slice& end) {
  if (!scans.HasBoundedScanRanges()) {
    return true;  // Nothing is left out.
  }
  if (num_started == 0) {
    return false;
  }
  const std::vector<ScanOptions>& ranges = scans.GetScanRanges();
  assert(num_started <= ranges.size());
  const RangeOpt& range = ranges[num_started - 1].range;
  return ucmp.CompareWithoutTimestamp(first, /*a_has_ts=*/true, *range.start,
                                      /*b_has_ts=*/false) >= 0 &&
         ucmp.CompareWithoutTimestamp(end, /*a_has_ts=*/true, *range.limit,
                                      /*b_has_ts=*/false) <= 0;
}

void RangeConversion::OnRecovered(ColumnFamilyData* cfd,
                                  SequenceNumber last_sequence) {
  const VersionStorageInfo& files = *cfd->current()->storage_info();
  for (int level = 0; level < files.num_non_empty_levels(); ++level) {
    for (const FileMetaData* file : files.LevelFiles(level)) {
      // The number of tombstones is not in the MANIFEST, and unknown if the
      // open has not read the properties of the file.
      if ((file->num_range_deletions > 0 || !file->init_stats_from_file) &&
          file->fd.largest_seqno == last_sequence) {
        cfd->mem()->BumpIngestSeqnoBarrier(last_sequence);
        return;
      }
    }
  }
}

void RangeConversion::AddTimestamp(const UserComparatorWrapper& ucmp,
                                   const Slice& timestamp,
                                   std::string* newest) {
  if (newest->empty() || ucmp.CompareTimestamp(timestamp, *newest) > 0) {
    newest->assign(timestamp.data(), timestamp.size());
  }
}

void RangeConversion::SetTimestamp(const Slice& timestamp, IterKey* user_key) {
  std::string key =
      StripTimestampFromUserKey(user_key->GetUserKey(), timestamp.size())
          .ToString();
  key.append(timestamp.data(), timestamp.size());
  user_key->SetUserKey(key, /*copy=*/true);
}

}  // namespace ROCKSDB_NAMESPACE
