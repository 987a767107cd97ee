//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/overlap_values_test_util.h"

namespace ROCKSDB_NAMESPACE {

// All versions of a key that a reader may still find. The steps of a writer
// number its writes.
//
// Thread-safe, but only one thread writes the key.
class OverlapKeyHistory {
 public:
  struct Version {
    uint64_t step = 0;
    OverlapValue value;
    bool may_be_filtered = false;
    OverlapValue filtered;
    // A reader has found the filtered form, so later readers must find it, too.
    bool was_filtered = false;

    // Returns true if `found` is a correct result for a reader of this version.
    bool Fits(const OverlapValue& found) const {
      return OverlapValues::Equal(value, found) ||
             (may_be_filtered && OverlapValues::Equal(filtered, found));
    }
    // Returns what fits, for messages.
    std::string Describe() const;
  };

  // The oldest version that a reader may find.
  struct Floor {
    uint64_t step = 0;
    bool was_filtered = false;
  };

  // The steps [from, to) during which the key had the value.
  using Interval = std::pair<uint64_t, uint64_t>;

  // The key has no value.
  OverlapKeyHistory() { versions_.emplace_back(); }

  // The write of a version begins: readers may find it from now on.
  void Begin(const Version& version);

  // The write with this step has ended: readers that begin from now on must not
  // find an older version.
  void Acknowledge(uint64_t step);

  Floor GetFloor() const;

  // Returns the version that a view of this moment shows.
  // REQUIRES: no write of the key is going on
  Version Latest() const;

  // Returns true if `found` is a correct result for a reader that began at
  // `floor`, and then adds the intervals of each version that it may be.
  // Otherwise sets *expected to what would be correct.
  bool Check(const Floor& floor, const OverlapValue& found,
             std::vector<Interval>* intervals, std::string* expected);

 private:
  // Returns a text of all versions.
  // REQUIRES: mutex_ is held
  std::string DescribeAll(const Floor& floor) const;

  mutable std::mutex mutex_;
  // The members below are guarded by mutex_.
  std::deque<Version> versions_;
  uint64_t floor_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
