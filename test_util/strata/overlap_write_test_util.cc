//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_write_test_util.h"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "rocksdb/options.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/overlap_values_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kMaxPayload = 3000;  // Bytes; a writer appends no more.

}  // namespace

std::string OverlapWrite::Payload(OverlapDice* dice, bool is_large) {
  const size_t size = is_large ? 100 + dice->Below(dice->OneIn(8) ? 1500 : 300)
                               : dice->Below(40);
  return std::string(size, static_cast<char>('g' + dice->Below(20)));
}

std::string OverlapWrite::NewValue(const std::string& key,
                                   const std::string& payload) const {
  OverlapValues::Fields fields;
  fields.version = step_;
  fields.payload = payload;
  return OverlapValues::Render(key, fields);
}

void OverlapWrite::AddRandom(size_t family, size_t index, OverlapDice* dice) {
  const OverlapStressOptions& options = state_.options();
  const std::string key = OverlapValues::KeyName(writer_, index);
  const OverlapKeyUse use = OverlapValues::UseOf(index);
  const OverlapValue old =
      state_.history(family, writer_, index).Latest().value;
  Change change{family, index, {}};
  change.version.step = step_;
  Status s;
  if (use == OverlapKeyUse::kSingleDelete) {
    s = AddPutOrSingleDelete(family, key, old, dice, &change.version);
  } else if (use == OverlapKeyUse::kAny && options.merges && old != nullptr &&
             dice->Percent(options.delta_separation ? 80 : 55)) {
    s = AddMerge(family, key, old, dice, &change.version);
  } else if (dice->Percent(25)) {
    s = batch_.Delete(state_.db().family(family), key);
  } else {
    s = AddPut(family, index, key, dice, &change.version);
  }
  state_.findings().Must(s, "add to a batch");
  changes_.push_back(std::move(change));
}

Status OverlapWrite::AddPutOrSingleDelete(size_t family, const std::string& key,
                                          const OverlapValue& old,
                                          OverlapDice* dice, Version* version) {
  ColumnFamilyHandle* const handle = state_.db().family(family);
  if (old != nullptr) {
    return batch_.SingleDelete(handle, key);
  }
  version->value = std::make_shared<std::string>(
      NewValue(key, Payload(dice, !dice->OneIn(4))));
  return batch_.Put(handle, key, *version->value);
}

Status OverlapWrite::AddPut(size_t family, size_t index, const std::string& key,
                            OverlapDice* dice, Version* version) {
  ColumnFamilyHandle* const handle = state_.db().family(family);
  const OverlapKeyUse use = OverlapValues::UseOf(index);
  const bool has_filter = state_.options().compaction_filter;
  std::string payload = Payload(dice, !dice->OneIn(4));
  if (use == OverlapKeyUse::kFiltered && has_filter && dice->OneIn(2)) {
    payload.insert(0, "F");
  }
  version->value = std::make_shared<std::string>(NewValue(key, payload));
  if (has_filter) {
    version->may_be_filtered =
        OverlapValues::FilteredForm(key, *version->value, &version->filtered);
  }
  if (use == OverlapKeyUse::kAny && dice->OneIn(20)) {
    return batch_.PutEntity(
        handle, key,
        WideColumns{{kDefaultWideColumnName, *version->value}, {"x", "1"}});
  }
  return batch_.Put(handle, key, *version->value);
}

Status OverlapWrite::AddMerge(size_t family, const std::string& key,
                              const OverlapValue& old, OverlapDice* dice,
                              Version* version) {
  std::string operand;
  const uint64_t kind = dice->Below(10);
  if (kind < 5 && OverlapValues::Parse(*old).payload.size() < kMaxPayload) {
    operand = "A" + std::to_string(step_) + "|" + Payload(dice, dice->OneIn(3));
  } else if (kind < 8) {
    operand = "C" + std::to_string(step_) + ":" +
              std::to_string(1 + dice->Below(9)) + "|";
  } else {
    operand = "L" + NewValue(key, Payload(dice, dice->OneIn(2)));
  }
  const Slice existing(*old);
  version->value = std::make_shared<std::string>(
      OverlapValues::Apply(key, &existing, operand));
  return batch_.Merge(state_.db().family(family), key, operand);
}

void OverlapWrite::AddDelete(size_t family, size_t index) {
  state_.findings().Must(batch_.Delete(state_.db().family(family),
                                       OverlapValues::KeyName(writer_, index)),
                         "add to a batch");
  changes_.push_back({family, index, {}});
  changes_.back().version.step = step_;
}

void OverlapWrite::AddDeleteRange(size_t family, size_t from, size_t to) {
  state_.findings().Must(
      batch_.DeleteRange(state_.db().family(family),
                         OverlapValues::KeyName(writer_, from),
                         OverlapValues::KeyName(writer_, to)),
      "add to a batch");
  for (size_t i = from; i < to; ++i) {
    changes_.push_back({family, i, {}});
    changes_.back().version.step = step_;
  }
}

void OverlapWrite::AddReplaceRange(size_t family, size_t from, size_t to,
                                   OverlapDice* dice) {
  const size_t first = changes_.size();
  AddDeleteRange(family, from, to);
  for (size_t i = from; i < to; ++i) {
    if (dice->OneIn(4)) {
      continue;
    }
    const std::string key = OverlapValues::KeyName(writer_, i);
    Version* const version = &changes_[first + i - from].version;
    const Status s =
        OverlapValues::UseOf(i) == OverlapKeyUse::kSingleDelete
            ? AddPutOrSingleDelete(family, key, nullptr, dice, version)
            : AddPut(family, i, key, dice, version);
    state_.findings().Must(s, "add to a batch");
  }
}

void OverlapWrite::Commit() {
  std::shared_lock<std::shared_mutex> no_view(state_.views_mutex());
  for (const Change& change : changes_) {
    state_.history(change.family, writer_, change.index).Begin(change.version);
  }
  state_.findings().Must(state_.db()->Write(WriteOptions(), &batch_), "write");
  for (const Change& change : changes_) {
    state_.history(change.family, writer_, change.index)
        .Acknowledge(change.version.step);
  }
  ++state_.counts().writes;
}

}  // namespace ROCKSDB_NAMESPACE
