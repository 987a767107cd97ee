//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_key_history_test_util.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kMaxVersions = 64;

}  // namespace

std::string OverlapKeyHistory::Version::Describe() const {
  return OverlapValues::Describe(value) +
         (may_be_filtered ? " or " + OverlapValues::Describe(filtered) : "");
}

void OverlapKeyHistory::Begin(const Version& version) {
  std::lock_guard<std::mutex> lock(mutex_);
  versions_.push_back(version);
  if (versions_.size() > kMaxVersions) {
    versions_.pop_front();
  }
}

void OverlapKeyHistory::Acknowledge(uint64_t step) {
  std::lock_guard<std::mutex> lock(mutex_);
  floor_ = std::max(floor_, step);
}

OverlapKeyHistory::Floor OverlapKeyHistory::GetFloor() const {
  std::lock_guard<std::mutex> lock(mutex_);
  Floor floor;
  floor.step = floor_;
  for (const Version& version : versions_) {
    if (version.step == floor_) {
      floor.was_filtered = version.was_filtered;
    }
  }
  return floor;
}

OverlapKeyHistory::Version OverlapKeyHistory::Latest() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return versions_.back();
}

bool OverlapKeyHistory::Check(const Floor& floor, const OverlapValue& found,
                              std::vector<Interval>* intervals,
                              std::string* expected) {
  constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();
  std::lock_guard<std::mutex> lock(mutex_);
  if (versions_.front().step > floor.step) {
    // The reader slept so long that the version is not in the history.
    intervals->emplace_back(0, kEnd);
    return true;
  }
  bool is_filtered = false;
  size_t num_matches = 0;
  Version* last = nullptr;
  for (size_t i = 0; i < versions_.size(); ++i) {
    Version& version = versions_[i];
    if (version.step < floor.step) {
      continue;
    }
    const bool same = OverlapValues::Equal(version.value, found);
    const bool filtered = version.may_be_filtered &&
                          OverlapValues::Equal(version.filtered, found);
    const bool must_be_filtered =
        floor.was_filtered && version.step == floor.step;
    if ((same && !must_be_filtered) || filtered) {
      intervals->emplace_back(version.step, i + 1 < versions_.size()
                                                ? versions_[i + 1].step
                                                : kEnd);
      if (num_matches == 0) {
        floor_ = std::max(floor_, version.step);
      }
      ++num_matches;
      is_filtered = filtered;
      last = &version;
    }
  }
  // The version was certainly filtered only if no other version has the same
  // value.
  if (num_matches == 1 && is_filtered) {
    last->was_filtered = true;
  }
  if (num_matches == 0) {
    *expected = DescribeAll(floor);
  }
  return num_matches > 0;
}

std::string OverlapKeyHistory::DescribeAll(const Floor& floor) const {
  std::string text;
  for (const Version& version : versions_) {
    text.append(version.step == floor.step ? " [floor] " : " ");
    text.append(OverlapValues::Describe(version.value));
    if (version.may_be_filtered) {
      text.append("/filtered:")
          .append(OverlapValues::Describe(version.filtered));
    }
  }
  return text;
}

}  // namespace ROCKSDB_NAMESPACE
