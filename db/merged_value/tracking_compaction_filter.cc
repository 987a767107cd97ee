//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/merged_value/tracking_compaction_filter.h"

#include <cassert>

namespace ROCKSDB_NAMESPACE {

void TrackingCompactionFilter::Wrap(std::atomic<bool>* has_changed,
                                    const CompactionFilter** filter,
                                    std::unique_ptr<CompactionFilter>* owned) {
  assert(*owned == nullptr || owned->get() == *filter);
  if (*filter != nullptr) {
    owned->reset(
        new TrackingCompactionFilter(has_changed, *filter, std::move(*owned)));
    *filter = owned->get();
  }
}

bool TrackingCompactionFilter::Filter(int level, const Slice& key,
                                      const Slice& existing_value,
                                      std::string* new_value,
                                      bool* value_changed) const {
  const bool removes =
      filter_->Filter(level, key, existing_value, new_value, value_changed);
  Note(removes || *value_changed);
  return removes;
}

bool TrackingCompactionFilter::FilterMergeOperand(int level, const Slice& key,
                                                  const Slice& operand) const {
  const bool removes = filter_->FilterMergeOperand(level, key, operand);
  Note(removes);
  return removes;
}

CompactionFilter::Decision TrackingCompactionFilter::FilterV2(
    int level, const Slice& key, ValueType value_type,
    const Slice& existing_value, std::string* new_value,
    std::string* skip_until) const {
  return Noted(filter_->FilterV2(level, key, value_type, existing_value,
                                 new_value, skip_until));
}

CompactionFilter::Decision TrackingCompactionFilter::FilterV3(
    int level, const Slice& key, ValueType value_type,
    const Slice* existing_value, const WideColumns* existing_columns,
    std::string* new_value,
    std::vector<std::pair<std::string, std::string>>* new_columns,
    std::string* skip_until) const {
  return Noted(filter_->FilterV3(level, key, value_type, existing_value,
                                 existing_columns, new_value, new_columns,
                                 skip_until));
}

CompactionFilter::Decision TrackingCompactionFilter::FilterV4(
    int level, const Slice& key, ValueType value_type,
    const Slice* existing_value, const WideColumns* existing_columns,
    std::string* new_value,
    std::vector<std::pair<std::string, std::string>>* new_columns,
    std::string* skip_until, WideColumnBlobResolver* blob_resolver) const {
  return Noted(filter_->FilterV4(level, key, value_type, existing_value,
                                 existing_columns, new_value, new_columns,
                                 skip_until, blob_resolver));
}

CompactionFilter::Decision TrackingCompactionFilter::FilterBlobByKey(
    int level, const Slice& key, std::string* new_value,
    std::string* skip_until) const {
  return Noted(filter_->FilterBlobByKey(level, key, new_value, skip_until));
}

}  // namespace ROCKSDB_NAMESPACE
