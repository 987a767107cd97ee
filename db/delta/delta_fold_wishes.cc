//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_fold_wishes.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "db/delta/delta_job_state.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using KeyRange = DeltaFoldWishes::KeyRange;
using Keys = std::vector<std::string>;

// Returns the first key that is not below the bound.
template <typename Iterator>
Iterator LowerBound(Iterator begin, Iterator end, const Slice& bound,
                    const Comparator* ucmp) {
  return std::lower_bound(begin, end, bound,
                          [ucmp](const std::string& key, const Slice& b) {
                            return ucmp->Compare(key, b) < 0;
                          });
}

// The keys of a range.
template <typename Container>
auto KeysIn(Container& keys, const KeyRange& range, const Comparator* ucmp) {
  const auto first = range.begin.empty() ? keys.begin()
                                         : LowerBound(keys.begin(), keys.end(),
                                                      range.begin, ucmp);
  const auto last = range.end.has_value()
                        ? LowerBound(first, keys.end(), *range.end, ucmp)
                        : keys.end();
  return std::make_pair(first, last);
}

size_t SumOfSizes(Keys::const_iterator begin, Keys::const_iterator end) {
  return std::accumulate(
      begin, end, size_t{0},
      [](size_t sum, const std::string& key) { return sum + key.size(); });
}

}  // namespace

void DeltaFoldWishes::Add(const Slice& user_key, const Comparator* ucmp) {
  const auto at = keys_.empty() || ucmp->Compare(keys_.back(), user_key) < 0
                      ? keys_.end()  // keys usually ascend
                      : LowerBound(keys_.begin(), keys_.end(), user_key, ucmp);
  if (at == keys_.end() || !ucmp->Equal(*at, user_key)) {
    keys_.insert(at, user_key.ToString());
    key_bytes_ += user_key.size();
    Shrink(ucmp);
  }
}

void DeltaFoldWishes::AddRange(const KeyRange& range) {
  ranges_.push_back(range);
}

void DeltaFoldWishes::AddAllOf(const DeltaFoldWishes& other,
                               const Comparator* ucmp) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  const auto is_less = [ucmp](const std::string& a, const std::string& b) {
    return ucmp->Compare(a, b) < 0;
  };
  Keys all;
  std::set_union(keys_.begin(), keys_.end(), other.keys_.begin(),
                 other.keys_.end(), std::back_inserter(all), is_less);
  keys_ = std::move(all);
  key_bytes_ = SumOfSizes(keys_.begin(), keys_.end());
  Shrink(ucmp);
}

void DeltaFoldWishes::Shrink(const Comparator* ucmp) {
  // The last key is kept, as a range excludes its end. Earlier ranges are
  // united with the new one, as their number would grow otherwise.
  if (keys_.size() < 2 ||
      (keys_.size() <= kMaxKeys && key_bytes_ <= kMaxKeyBytes)) {
    return;
  }
  KeyRange range;
  range.begin = std::move(keys_.front());
  range.end = keys_.back();
  keys_.erase(keys_.begin(), std::prev(keys_.end()));
  key_bytes_ = keys_.back().size();
  for (const KeyRange& other : ranges_) {
    // An empty begin is no key: it may be the largest one in the comparator's
    // order.
    if (!range.begin.empty() &&
        (other.begin.empty() || ucmp->Compare(other.begin, range.begin) < 0)) {
      range.begin = other.begin;
    }
    if (!other.end.has_value() ||
        (range.end.has_value() && ucmp->Compare(*other.end, *range.end) > 0)) {
      range.end = other.end;
    }
    if (range.begin.empty() && !range.end.has_value()) {
      break;
    }
  }
  ranges_.assign(1, std::move(range));
}

bool DeltaFoldWishes::Contains(const Slice& user_key,
                               const Comparator* ucmp) const {
  const auto at = LowerBound(keys_.begin(), keys_.end(), user_key, ucmp);
  if (at != keys_.end() && ucmp->Equal(*at, user_key)) {
    return true;
  }
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const KeyRange& range) {
                       return (range.begin.empty() ||
                               ucmp->Compare(range.begin, user_key) <= 0) &&
                              (!range.end.has_value() ||
                               ucmp->Compare(user_key, *range.end) < 0);
                     });
}

bool DeltaFoldWishes::Overlaps(const KeyRange& range,
                               const Comparator* ucmp) const {
  const auto [first, last] = KeysIn(keys_, range, ucmp);
  return first != last ||
         std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const KeyRange& other) {
                       return DeltaJobState::Overlap(range, other, ucmp);
                     });
}

void DeltaFoldWishes::Remove(const KeyRange& range, const Comparator* ucmp) {
  const auto [first, last] = KeysIn(keys_, range, ucmp);
  key_bytes_ -= SumOfSizes(first, last);
  keys_.erase(first, last);
  std::vector<KeyRange> rest;
  for (KeyRange& other : ranges_) {
    if (!DeltaJobState::Overlap(range, other, ucmp)) {
      rest.push_back(std::move(other));
      continue;
    }
    // Keep the parts before and after the range.
    if (!range.begin.empty() &&
        (other.begin.empty() || ucmp->Compare(other.begin, range.begin) < 0)) {
      rest.push_back({other.begin, range.begin});
    }
    if (range.end.has_value() &&
        (!other.end.has_value() || ucmp->Compare(*range.end, *other.end) < 0)) {
      rest.push_back({*range.end, other.end});
    }
  }
  ranges_ = std::move(rest);
}

//======== DeltaHolds

void DeltaHolds::Add(const DeltaFoldWishes& wishes, const Comparator* ucmp) {
  MutexLock lock(&mutex_);
  wishes_.AddAllOf(wishes, ucmp);
}

DeltaFoldWishes DeltaHolds::Take() {
  MutexLock lock(&mutex_);
  DeltaFoldWishes taken;
  std::swap(taken, wishes_);
  return taken;
}

}  // namespace ROCKSDB_NAMESPACE
