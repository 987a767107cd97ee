//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_tailing_reads_test_util.h"

#include <algorithm>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "test_util/strata/overlap_key_history_test_util.h"
#include "test_util/strata/overlap_values_test_util.h"
#include "test_util/strata/overlap_walk_test_util.h"

namespace ROCKSDB_NAMESPACE {

void OverlapTailingReads::Read(OverlapDice* dice) {
  // RocksDB's tailing iterators do not support range deletions.
  if (state_.options().range_deletions) {
    return;
  }
  const size_t family = dice->Below(OverlapDb::kNumFamilies);
  auto& iterator = iterators_[family];
  if (iterator == nullptr || dice->OneIn(50)) {
    ReadOptions read_options;
    read_options.tailing = true;
    iterator.reset(
        state_.db()->NewIterator(read_options, state_.db().family(family)));
  }
  const std::vector<OverlapKeyHistory::Version> expected =
      state_.Latest(family, writer_);
  const size_t from = state_.PickIndex(dice);
  const size_t to = std::min(expected.size(), from + 1 + dice->Below(10));
  OverlapWalk walk(&state_.findings(), family, writer_, expected);
  const size_t wrong = walk.Run("tailing iterator", iterator.get(), from, to,
                                OverlapWalk::Direction::kForward);
  if (wrong < to) {
    Explain(iterator.get(), family, from, wrong);
  }
}

void OverlapTailingReads::Explain(Iterator* iterator, size_t family,
                                  size_t from, size_t wrong) {
  ColumnFamilyHandle* const handle = state_.db().family(family);
  const std::string key = OverlapValues::KeyName(writer_, wrong);
  const auto shown = [&key](Iterator* iter) {
    std::string number;
    iter->GetProperty("rocksdb.iterator.super-version-number", &number)
        .PermitUncheckedError();
    iter->Seek(key);
    return (iter->Valid() && iter->key() == key
                ? OverlapValues::Describe(
                      std::make_shared<std::string>(iter->value().ToString()))
                : "nothing") +
           ", SuperVersion " + number;
  };
  std::string value;
  const Status s = state_.db()->Get(ReadOptions(), handle, key, &value);
  std::string text = "The iterator began at " +
                     OverlapState::Name(family, writer_, from) +
                     ". Get(): " + s.ToString() + " " + value.substr(0, 40);
  text += "; the same iterator after a Seek(): " + shown(iterator);
  for (const bool tailing : {true, false}) {
    ReadOptions read_options;
    read_options.tailing = tailing;
    const std::unique_ptr<Iterator> other(
        state_.db()->NewIterator(read_options, handle));
    text += std::string(tailing ? "; a new tailing iterator: "
                                : "; a new iterator: ") +
            shown(other.get());
  }
  state_.findings().Report(text);
}

}  // namespace ROCKSDB_NAMESPACE
