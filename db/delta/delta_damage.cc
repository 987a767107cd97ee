//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_damage.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace ROCKSDB_NAMESPACE {

std::pair<size_t, size_t> DeltaDamage::Overlapped(
    const KeyRange& range, const Comparator* ucmp) const {
  const auto first = std::partition_point(
      ranges_.begin(), ranges_.end(),
      [&](const Range& other) { return other.range.EndsBefore(range, ucmp); });
  const auto last = std::partition_point(
      first, ranges_.end(),
      [&](const Range& other) { return !range.EndsBefore(other.range, ucmp); });
  return {static_cast<size_t>(first - ranges_.begin()),
          static_cast<size_t>(last - ranges_.begin())};
}

void DeltaDamage::Add(const KeyRange& range, size_t num_buckets,
                      const Status& error, const Comparator* ucmp) {
  assert(num_buckets > 0 && !error.ok());
  if (ranges_.empty()) {
    error_ = error;
  }
  const State state = num_buckets > 1 ? State::kSuspect : State::kDamaged;
  if (state == State::kDamaged) {
    // The culprit of the suspected ranges was found.
    const auto [first, last] = Overlapped(range, ucmp);
    const auto begin =
        std::next(ranges_.begin(), static_cast<ptrdiff_t>(first));
    const auto end = std::next(ranges_.begin(), static_cast<ptrdiff_t>(last));
    ranges_.erase(std::remove_if(begin, end,
                                 [](const Range& other) {
                                   return other.state == State::kSuspect;
                                 }),
                  end);
  }
  const size_t index = Cut(range, ucmp);
  ranges_.insert(std::next(ranges_.begin(), static_cast<ptrdiff_t>(index)),
                 {range, state});
  if (state == State::kDamaged) {
    ++num_damaged_;
    JoinBefore(index + 1, ucmp);
    JoinBefore(index, ucmp);
  }
}

void DeltaDamage::Remove(const KeyRange& range, const Comparator* ucmp) {
  if (ranges_.empty()) {
    return;
  }
  Cut(range, ucmp);
  if (ranges_.empty()) {
    Clear();
  }
}

void DeltaDamage::Clear() {
  ranges_.clear();
  num_damaged_ = 0;
  error_ = Status::OK();
}

size_t DeltaDamage::Cut(const KeyRange& range, const Comparator* ucmp) {
  const auto [first, last] = Overlapped(range, ucmp);
  // The parts of the first and the last range that are outside.
  std::vector<Range> rest;
  size_t index = first;
  for (size_t i = first; i < last; ++i) {
    const Range& other = ranges_[i];
    if (!range.begin.empty() &&
        (other.range.begin.empty() ||
         ucmp->Compare(other.range.begin, range.begin) < 0)) {
      rest.push_back({{other.range.begin, range.begin}, other.state});
      ++index;
    }
    if (range.end.has_value() &&
        (!other.range.end.has_value() ||
         ucmp->Compare(*range.end, *other.range.end) < 0)) {
      rest.push_back({{*range.end, other.range.end}, other.state});
    }
    num_damaged_ -= other.state == State::kDamaged ? 1 : 0;
  }
  for (const Range& part : rest) {
    num_damaged_ += part.state == State::kDamaged ? 1 : 0;
  }
  const auto at =
      ranges_.erase(std::next(ranges_.begin(), static_cast<ptrdiff_t>(first)),
                    std::next(ranges_.begin(), static_cast<ptrdiff_t>(last)));
  ranges_.insert(at, rest.begin(), rest.end());
  return index;
}

void DeltaDamage::JoinBefore(size_t index, const Comparator* ucmp) {
  if (index == 0 || index >= ranges_.size()) {
    return;
  }
  Range& before = ranges_[index - 1];
  Range& after = ranges_[index];
  if (before.state == State::kDamaged && after.state == State::kDamaged &&
      ucmp->Equal(*before.range.end, after.range.begin)) {
    before.range.end = std::move(after.range.end);
    ranges_.erase(std::next(ranges_.begin(), static_cast<ptrdiff_t>(index)));
    --num_damaged_;
  }
}

DeltaDamage::State DeltaDamage::StateOf(const KeyRange& range,
                                        const Comparator* ucmp) const {
  State state = State::kSound;
  if (!ranges_.empty()) {
    const auto [first, last] = Overlapped(range, ucmp);
    for (size_t i = first; i < last; ++i) {
      state = std::max(state, ranges_[i].state);
    }
  }
  return state;
}

}  // namespace ROCKSDB_NAMESPACE
