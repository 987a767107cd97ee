//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_holding_filter.h"

#include <cassert>

#include "db/column_family.h"
#include "db/compaction/compaction.h"
#include "db/dbformat.h"
#include "db/delta/delta_file_description.h"
#include "db/delta/delta_file_meta.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_operands.h"
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

bool DeltaHoldingFilter::IsUsed(const Compaction* compaction,
                                const CompactionFilter& filter) {
  // (Stacked BlobDB has no merges.)
  return compaction != nullptr &&
         compaction->column_family_data()->delta_store() != nullptr &&
         compaction->input_version()->storage_info()->delta() != nullptr &&
         !filter.IsStackedBlobDbInternalCompactionFilter();
}

void DeltaHoldingFilter::Wrap(const Compaction& compaction,
                              bool leaves_tombstones,
                              const CompactionFilter** filter,
                              std::unique_ptr<CompactionFilter>* owned) {
  assert(*owned == nullptr || owned->get() == *filter);
  if (*filter == nullptr || !IsUsed(&compaction, **filter)) {
    return;
  }
  DeltaStore* const store = compaction.column_family_data()->delta_store();
  owned->reset(new DeltaHoldingFilter(
      *store, *compaction.input_version()->storage_info()->delta(),
      leaves_tombstones, store->holds(), *filter, std::move(*owned)));
  *filter = owned->get();
}

CompactionFilter::Decision DeltaHoldingFilter::DecideOnTimedPut(
    const Compaction* compaction, const CompactionFilter& filter, int level,
    const Slice& key) {
  if (!IsUsed(compaction, filter)) {
    return Decision::kKeep;
  }
  std::string new_value;
  std::string skip_until;
  // A filter around the DeltaHoldingFilter gets to know of the decision.
  return filter.FilterV4(level, key, ValueType::kValue,
                         /*existing_value=*/nullptr,
                         /*existing_columns=*/nullptr, &new_value,
                         /*new_columns=*/nullptr, &skip_until,
                         /*blob_resolver=*/nullptr);
}

Slice DeltaHoldingFilter::LastKeyOf(const Slice& user_key,
                                    InternalKey* buffer) {
  buffer->Set(user_key, /*s=*/0, kTypeDeletion);
  return buffer->Encode();
}

DeltaHoldingFilter::DeltaHoldingFilter(const DeltaStore& store,
                                       const DeltaVersion& version,
                                       bool leaves_tombstones,
                                       DeltaHolds* holds,
                                       const CompactionFilter* filter,
                                       std::unique_ptr<CompactionFilter> owned)
    : store_(store),
      version_(version),
      leaves_tombstones_(leaves_tombstones),
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
  const bool is_operand = value_type == ValueType::kMergeOperand;
  if (IsInRemovedRange(key)) {
    return RemoveInRange(key, is_operand, skip_until);
  }
  if (existing_value == nullptr && existing_columns == nullptr) {
    return Decision::kKeep;
  }
  const Decision decision = filter_->FilterV4(
      level, key, value_type, existing_value, existing_columns, new_value,
      new_columns, skip_until, blob_resolver);
  if (decision == Decision::kRemoveAndSkipUntil) {
    return BeginRemovedRange(key, is_operand, skip_until);
  }
  // The decision about an operand affects only this operand.
  return is_operand ? decision : Held(key, decision);
}

CompactionFilter::Decision DeltaHoldingFilter::FilterBlobByKey(
    int level, const Slice& key, std::string* new_value,
    std::string* skip_until) const {
  if (IsInRemovedRange(key)) {
    return RemoveInRange(key, /*is_operand=*/false, skip_until);
  }
  const Decision decision =
      filter_->FilterBlobByKey(level, key, new_value, skip_until);
  return decision == Decision::kRemoveAndSkipUntil
             ? BeginRemovedRange(key, /*is_operand=*/false, skip_until)
             : Held(key, decision);
}

CompactionFilter::Decision DeltaHoldingFilter::BeginRemovedRange(
    const Slice& key, bool is_operand, std::string* skip_until) const {
  if (ucmp_->Compare(*skip_until, key) <= 0) {
    return Decision::kKeep;  // as in RocksDB
  }
  const Slice end(*skip_until);
  if (!version_.OverlapsRange(&key, &end)) {
    return Decision::kRemoveAndSkipUntil;
  }
  removed_until_ = *skip_until;
  has_removed_range_ = true;
  return RemoveInRange(key, is_operand, skip_until);
}

CompactionFilter::Decision DeltaHoldingFilter::RemoveInRange(
    const Slice& key, bool is_operand, std::string* skip_until) const {
  if (is_operand || leaves_tombstones_ || HasAnyOperands(key)) {
    return Held(key, Decision::kRemove);
  }
  skip_until->assign(key.data(), key.size());
  return Decision::kRemoveAndSkipUntil;
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

bool DeltaHoldingFilter::HasAnyOperands(const Slice& key) const {
  constexpr auto kOperands = DeltaKeyView::Kind::kOperands;
  const LookupKey lookup_key(key, kMaxSequenceNumber);
  const DeltaKeyView view(version_, key);
  for (const DeltaVersion::FilePtr& file : view.RecentFiles(kOperands)) {
    if (HasAnyOperandsIn(*file, lookup_key)) {
      return true;
    }
  }
  const DeltaFileMeta* const sorted = view.SortedFile(kOperands);
  return sorted != nullptr && HasAnyOperandsIn(*sorted, lookup_key);
}

bool DeltaHoldingFilter::HasAnyOperandsIn(const DeltaFileMeta& file,
                                          const LookupKey& key) const {
  const DeltaFileDescription& description = file.description();
  if (ucmp_->Compare(key.user_key(), description.smallest) < 0 ||
      ucmp_->Compare(key.user_key(), description.largest) > 0) {
    return false;
  }
  DeltaFileReader* reader = nullptr;
  DeltaOperands operands;
  Status s = store_.GetReader(read_options_, file, &reader);
  if (s.ok() && reader->MayHaveKey(read_options_, key)) {
    s = reader->CollectOperands(read_options_, key, &operands);
  }
  // On an error there may be operands, as above.
  return !s.ok() || !operands.empty();
}

}  // namespace ROCKSDB_NAMESPACE
