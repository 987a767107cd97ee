//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/iterator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/overlap_findings_test_util.h"
#include "test_util/strata/overlap_key_history_test_util.h"
#include "test_util/strata/overlap_values_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Checks what iterators show of the keys of one writer in one family.
//
// Not thread-safe.
class OverlapWalk {
 public:
  enum class Direction { kForward, kBackward };

  // expected: the versions that must be shown, by index.
  // REQUIRES: findings and expected outlive this
  OverlapWalk(OverlapFindings* findings, size_t family, size_t writer,
              const std::vector<OverlapKeyHistory::Version>& expected)
      : findings_(*findings),
        family_(family),
        writer_(writer),
        expected_(expected) {}
  OverlapWalk(const OverlapWalk&) = delete;
  OverlapWalk& operator=(const OverlapWalk&) = delete;

  // Moves the iterator over the keys from `from` to `to` - 1. Returns the index
  // of the key that is wrong, or `to`.
  // what: the kind of iterator, for messages.
  // REQUIRES: from < to, and to is at most the number of keys
  size_t Run(const std::string& what, Iterator* iterator, size_t from,
             size_t to, Direction direction);

  // Walks over all keys.
  void RunAll(const std::string& what, Iterator* iterator,
              Direction direction) {
    Run(what, iterator, 0, expected_.size(), direction);
  }

 private:
  // By the name of the key.
  using Found = std::map<std::string, OverlapValue>;

  // Adds the entry at which the iterator is.
  void Take(const std::string& what, const Iterator& iterator, Found* found);

  OverlapFindings& findings_;
  const size_t family_;
  const size_t writer_;
  const std::vector<OverlapKeyHistory::Version>& expected_;
};

}  // namespace ROCKSDB_NAMESPACE
