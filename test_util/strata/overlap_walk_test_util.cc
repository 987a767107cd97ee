//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_walk_test_util.h"

#include <memory>

#include "test_util/strata/overlap_state_test_util.h"

namespace ROCKSDB_NAMESPACE {

size_t OverlapWalk::Run(const std::string& what, Iterator* iterator,
                        size_t from, size_t to, Direction direction) {
  Found found;
  const std::string first = OverlapValues::KeyName(writer_, from);
  const std::string last = OverlapValues::KeyName(writer_, to - 1);
  if (direction == Direction::kForward) {
    for (iterator->Seek(first);
         iterator->Valid() && iterator->key().compare(last) <= 0;
         iterator->Next()) {
      Take(what, *iterator, &found);
    }
  } else {
    for (iterator->SeekForPrev(last);
         iterator->Valid() && iterator->key().compare(first) >= 0;
         iterator->Prev()) {
      Take(what, *iterator, &found);
    }
  }
  if (!iterator->status().ok()) {
    findings_.Must(iterator->status(),
                   what + " of " + OverlapState::Name(family_, writer_, from) +
                       " to " + OverlapState::Name(family_, writer_, to - 1));
    return to;
  }
  for (size_t i = from; i < to; ++i) {
    const auto it = found.find(OverlapValues::KeyName(writer_, i));
    const OverlapValue value = it == found.end() ? nullptr : it->second;
    if (!expected_[i].Fits(value)) {
      findings_.Report("WRONG " + what + " at " +
                       OverlapState::Name(family_, writer_, i) + ": found " +
                       OverlapValues::Describe(value) + " instead of " +
                       expected_[i].Describe());
      return i;
    }
  }
  return to;
}

void OverlapWalk::Take(const std::string& what, const Iterator& iterator,
                       Found* found) {
  const std::string key = iterator.key().ToString();
  const bool is_new =
      found
          ->emplace(key,
                    std::make_shared<std::string>(iterator.value().ToString()))
          .second;
  if (!is_new) {
    findings_.Report("WRONG " + what + " shows " + key + " twice");
  }
}

}  // namespace ROCKSDB_NAMESPACE
