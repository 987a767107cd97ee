//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/compaction_filter.h"

namespace ROCKSDB_NAMESPACE {

// Forwards to another compaction filter, and records whether that has ever
// changed or removed an entry: the merged values (MergedValueCache) computed
// before are then not valid afterwards.
//
// Thread-safe if the other filter is.
class TrackingCompactionFilter final : public CompactionFilter {
 public:
  // Replaces *filter by a TrackingCompactionFilter for it. Does nothing if
  // *filter is nullptr.
  // owned: owns *filter if the caller does, else empty. Afterwards it owns the
  //     new filter, which owns the old one if *owned did.
  // REQUIRES: *has_changed outlives the new filter, and so does the old filter
  // unless *owned owned it.
  static void Wrap(std::atomic<bool>* has_changed,
                   const CompactionFilter** filter,
                   std::unique_ptr<CompactionFilter>* owned);

  const char* Name() const override { return filter_->Name(); }
  bool Filter(int level, const Slice& key, const Slice& existing_value,
              std::string* new_value, bool* value_changed) const override;
  bool FilterMergeOperand(int level, const Slice& key,
                          const Slice& operand) const override;
  Decision FilterV2(int level, const Slice& key, ValueType value_type,
                    const Slice& existing_value, std::string* new_value,
                    std::string* skip_until) const override;
  Decision FilterV3(
      int level, const Slice& key, ValueType value_type,
      const Slice* existing_value, const WideColumns* existing_columns,
      std::string* new_value,
      std::vector<std::pair<std::string, std::string>>* new_columns,
      std::string* skip_until) const override;
  Decision FilterV4(
      int level, const Slice& key, ValueType value_type,
      const Slice* existing_value, const WideColumns* existing_columns,
      std::string* new_value,
      std::vector<std::pair<std::string, std::string>>* new_columns,
      std::string* skip_until,
      WideColumnBlobResolver* blob_resolver) const override;
  bool SupportsFilterV4() const override { return filter_->SupportsFilterV4(); }
  BlobDecision PrepareBlobOutput(const Slice& key, const Slice& existing_value,
                                 std::string* new_value) const override {
    // The decision is only about where the value is stored.
    return filter_->PrepareBlobOutput(key, existing_value, new_value);
  }
  bool IgnoreSnapshots() const override { return filter_->IgnoreSnapshots(); }
  bool IsStackedBlobDbInternalCompactionFilter() const override {
    return filter_->IsStackedBlobDbInternalCompactionFilter();
  }
  Decision FilterBlobByKey(int level, const Slice& key, std::string* new_value,
                           std::string* skip_until) const override;

 private:
  TrackingCompactionFilter(std::atomic<bool>* has_changed,
                           const CompactionFilter* filter,
                           std::unique_ptr<CompactionFilter> owned)
      : has_changed_(has_changed), filter_(filter), owned_(std::move(owned)) {}

  void Note(bool changes) const {
    // Avoids writes to a shared cache line: the flag is usually set already.
    if (changes && !has_changed_->load(std::memory_order_relaxed)) {
      has_changed_->store(true, std::memory_order_relaxed);
    }
  }
  Decision Noted(Decision decision) const {
    Note(decision != Decision::kKeep && decision != Decision::kUndetermined);
    return decision;
  }

  std::atomic<bool>* const has_changed_;
  const CompactionFilter* const filter_;
  const std::unique_ptr<CompactionFilter> owned_;
};

}  // namespace ROCKSDB_NAMESPACE
