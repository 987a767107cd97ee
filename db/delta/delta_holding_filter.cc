//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_holding_filter.h"

#include <cassert>

#include "db/column_family.h"
#include "db/compaction/compaction.h"
#include "db/delta/delta_read.h"
#include "db/delta/delta_store.h"
#include "db/lookup_key.h"
#include "db/version_set.h"
#include "rocksdb/comparator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

ReadOptions OptionsOfLookups() {
  ReadOptions options(Env::IOActivity::kCompaction);
  options.verify_checksums = true;
  options.rate_limiter_priority = Env::IO_LOW;
  // Keys come in order, so the next key often needs the same block.
  options.fill_cache = true;
  return options;
}

}  // namespace

void DeltaHoldingFilter::Wrap(const Compaction& compaction,
                              const CompactionFilter** filter,
                              std::unique_ptr<CompactionFilter>* owned) {
  assert(*owned == nullptr || owned->get() == *filter);
  DeltaStore* const store = compaction.column_family_data()->delta_store();
  const DeltaVersion* const version =
      compaction.input_version()->storage_info()->delta().get();
  // (Stacked BlobDB has no merges.)
  if (*filter == nullptr || store == nullptr || version == nullptr ||
      (*filter)->IsStackedBlobDbInternalCompactionFilter()) {
    return;
  }
  owned->reset(new DeltaHoldingFilter(*store, *version, store->holds(), *filter,
                                      std::move(*owned)));
  *filter = owned->get();
}

DeltaHoldingFilter::DeltaHoldingFilter(const DeltaStore& store,
                                       const DeltaVersion& version,
                                       DeltaHolds* holds,
                                       const CompactionFilter* filter,
                                       std::unique_ptr<CompactionFilter> owned)
    : store_(store),
      version_(version),
      holds_(holds),
      filter_(filter),
      owned_(std::move(owned)),
      ucmp_(version.user_comparator()),
      read_options_(OptionsOfLookups()) {}

DeltaHoldingFilter::~DeltaHoldingFilter() {
  if (!wishes_.empty()) {
    holds_->Add(wishes_, ucmp_);
  }
}

CompactionFilter::Decision DeltaHoldingFilter::FilterV4(
    int level, const Slice& key, ValueType value_type,
    const Slice* existing_value, const WideColumns* existing_columns,
    std::string* new_value,
    std::vector<std::pair<std::string, std::string>>* new_columns,
    std::string* skip_until, WideColumnBlobResolver* blob_resolver) const {
  if (IsInRemovedRange(key)) {
    return Held(key, Decision::kRemove);
  }
  const Decision decision = filter_->FilterV4(
      level, key, value_type, existing_value, existing_columns, new_value,
      new_columns, skip_until, blob_resolver);
  if (decision == Decision::kRemoveAndSkipUntil) {
    return BeginRemovedRange(key, *skip_until) ? Held(key, Decision::kRemove)
                                               : decision;
  }
  // The decision about an operand affects only this operand.
  return value_type == ValueType::kMergeOperand ? decision
                                                : Held(key, decision);
}

CompactionFilter::Decision DeltaHoldingFilter::FilterBlobByKey(
    int level, const Slice& key, std::string* new_value,
    std::string* skip_until) const {
  if (IsInRemovedRange(key)) {
    return Held(key, Decision::kRemove);
  }
  const Decision decision =
      filter_->FilterBlobByKey(level, key, new_value, skip_until);
  if (decision == Decision::kRemoveAndSkipUntil) {
    return BeginRemovedRange(key, *skip_until) ? Held(key, Decision::kRemove)
                                               : decision;
  }
  return Held(key, decision);
}

bool DeltaHoldingFilter::BeginRemovedRange(
    const Slice& key, const std::string& skip_until) const {
  if (ucmp_->Compare(skip_until, key) <= 0) {
    return false;  // the caller treats it as kKeep
  }
  const Slice end(skip_until);
  if (!version_.OverlapsRange(&key, &end)) {
    return false;
  }
  removed_until_ = skip_until;
  has_removed_range_ = true;
  return true;
}

bool DeltaHoldingFilter::IsInRemovedRange(const Slice& key) const {
  if (!has_removed_range_) {
    return false;
  }
  // Keys ascend.
  has_removed_range_ = ucmp_->Compare(key, removed_until_) < 0;
  return has_removed_range_;
}

CompactionFilter::Decision DeltaHoldingFilter::Held(const Slice& key,
                                                    Decision decision) const {
  switch (decision) {
    case Decision::kKeep:
    case Decision::kUndetermined:
    case Decision::kIOError:
      return decision;
    default:
      break;
  }
  if (!HasOperands(key)) {
    return decision;
  }
  wishes_.Add(key, ucmp_);
  return Decision::kKeep;
}

bool DeltaHoldingFilter::HasOperands(const Slice& key) const {
  const LookupKey lookup_key(key, kMaxSequenceNumber);
  DeltaRead read(version_, store_, read_options_, lookup_key);
  DeltaRead::Operand operand;
  Status s;
  // On an error there may be operands. Readers of the operands report the
  // error.
  return read.Next(/*above=*/0, &operand, &s) || !s.ok();
}

}  // namespace ROCKSDB_NAMESPACE
