//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/merged_value/merged_value_iteration.h"

#include "db/column_family.h"
#include "db/merged_value/merged_value_read.h"
#include "db/version_set.h"
#include "monitoring/statistics_impl.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

void MergedValueIteration::Start(const ColumnFamilyData* cfd,
                                 const Version* version,
                                 uint64_t super_version_number,
                                 const ReadOptions& read_options,
                                 SequenceNumber sequence,
                                 const ReadCallback* callback) {
  cfd_ = nullptr;
  if (cfd == nullptr || cfd->merged_values() == nullptr || version == nullptr ||
      !MergedValueRead::Allows(read_options, callback) ||
      read_options.table_filter || read_options.tailing ||
      read_options.timestamp != nullptr ||
      read_options.iter_start_ts != nullptr) {
    return;
  }
  // The sequence number was read after the SuperVersion was taken. What was
  // written in between may be in a memtable that the iterator does not have.
  if (read_options.snapshot == nullptr &&
      cfd->GetSuperVersionNumber() != super_version_number) {
    return;
  }
  cfd_ = cfd;
  generation_ = version->merged_values().number();
  sequence_ = sequence;
}

MergedValueCache::Ref MergedValueIteration::Find(const Slice& user_key) const {
  MergedValueCache::Ref ref;
  const MergedValueCache::Result result =
      cfd_->merged_values()->Lookup(user_key, sequence_, generation_, &ref);
  Statistics* const statistics = cfd_->ioptions().stats;
  if (result == MergedValueCache::Result::kMiss) {
    RecordTick(statistics, MERGED_VALUE_CACHE_MISS);
  } else if (result == MergedValueCache::Result::kStale) {
    RecordTick(statistics, MERGED_VALUE_CACHE_STALE);
  }
  return ref;
}

void MergedValueIteration::OnUse() const {
  RecordTick(cfd_->ioptions().stats, MERGED_VALUE_CACHE_HIT);
}

}  // namespace ROCKSDB_NAMESPACE
