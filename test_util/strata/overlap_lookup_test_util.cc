//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_lookup_test_util.h"

#include <cassert>
#include <memory>

#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/wide_columns.h"

namespace ROCKSDB_NAMESPACE {

OverlapLookup::OverlapLookup(OverlapState* state, OverlapDice* dice,
                             size_t num_keys, size_t family, size_t writer,
                             bool is_cross)
    : state_(*state), writer_(writer), is_cross_(is_cross), keys_(num_keys) {
  for (Key& key : keys_) {
    key.family = is_cross ? dice->Below(OverlapDb::kNumFamilies) : family;
    key.index = state_.PickIndex(dice);
  }
}

ReadOptions OverlapLookup::RandomOptions(OverlapDice* dice) {
  ReadOptions read_options;
  read_options.fill_cache = !dice->OneIn(4);
  return read_options;
}

void OverlapLookup::Run(const ReadOptions& read_options) {
  if (keys_.size() > 1) {
    RunMultiGet(read_options);
    return;
  }
  what_ = "Get()";
  Key& key = keys_.front();
  PinnableSlice value;
  key.status =
      state_.db()->Get(read_options, state_.db().family(key.family),
                       OverlapValues::KeyName(writer_, key.index), &value);
  if (key.status.ok()) {
    key.found = std::make_shared<std::string>(value.ToString());
  }
}

void OverlapLookup::RunEntity(const ReadOptions& read_options) {
  assert(keys_.size() == 1);
  what_ = "GetEntity()";
  Key& key = keys_.front();
  PinnableWideColumns columns;
  key.status = state_.db()->GetEntity(
      read_options, state_.db().family(key.family),
      OverlapValues::KeyName(writer_, key.index), &columns);
  if (key.status.ok()) {
    key.found =
        std::make_shared<std::string>(columns.columns()[0].value().ToString());
  }
}

void OverlapLookup::RunOperands(const ReadOptions& read_options, bool counts) {
  assert(keys_.size() == 1);
  what_ = counts ? "GetMergeOperands() with a callback" : "GetMergeOperands()";
  Key& key = keys_.front();
  const std::string name = OverlapValues::KeyName(writer_, key.index);
  GetMergeOperandsOptions operands_options;
  if (counts) {
    operands_options.continue_cb = [](const Slice&) { return true; };
  }
  std::vector<PinnableSlice> operands;
  int count = 16;
  do {
    operands = std::vector<PinnableSlice>(static_cast<size_t>(count));
    operands_options.expected_max_number_of_operands = count;
    key.status = state_.db()->GetMergeOperands(
        read_options, state_.db().family(key.family), name, operands.data(),
        &operands_options, &count);
  } while (key.status.IsIncomplete());
  if (!key.status.ok() || count == 0) {
    return;
  }
  // Operands are written over values only, so the first one is a value.
  std::string value = operands[0].ToString();
  for (size_t i = 1; i < static_cast<size_t>(count); ++i) {
    const Slice existing(value);
    value = OverlapValues::Apply(name, &existing, operands[i]);
  }
  key.found = std::make_shared<std::string>(std::move(value));
}

void OverlapLookup::RunMultiGet(const ReadOptions& read_options) {
  const size_t n = keys_.size();
  std::vector<std::string> names(n);
  std::vector<Slice> slices(n);
  std::vector<ColumnFamilyHandle*> handles(n);
  std::vector<PinnableSlice> values(n);
  std::vector<Status> statuses(n);
  for (size_t i = 0; i < n; ++i) {
    names[i] = OverlapValues::KeyName(writer_, keys_[i].index);
    slices[i] = names[i];
    handles[i] = state_.db().family(keys_[i].family);
  }
  if (is_cross_) {
    what_ = "MultiGet() of two families";
    state_.db()->MultiGet(read_options, n, handles.data(), slices.data(),
                          values.data(), statuses.data());
  } else {
    what_ = "MultiGet()";
    state_.db()->MultiGet(read_options, handles[0], n, slices.data(),
                          values.data(), statuses.data());
  }
  for (size_t i = 0; i < n; ++i) {
    keys_[i].status = statuses[i];
    if (statuses[i].ok()) {
      keys_[i].found = std::make_shared<std::string>(values[i].ToString());
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
