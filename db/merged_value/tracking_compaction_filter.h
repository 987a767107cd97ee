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

// A compaction filter that does what another one does, and notes whether that
// has ever decided on anything but to keep what it was shown: then merged
// values (MergedValueCache) of before are not those of after.
//
// Thread-safe if the other one is.
class TrackingCompactionFilter final : public CompactionFilter {
 public:
  // Puts one around *filter, or does nothing if that is nullptr.
  // owned: of *filter if it is the caller's own, else empty; of the new one
  // afterwards.
  // REQUIRES: the flag outlives it, and *filter if that is not owned.
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
    // The value stays the same wherever it lies.
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
    // Mostly it is set already, or nothing changes.
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
