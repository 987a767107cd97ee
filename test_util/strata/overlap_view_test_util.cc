//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_view_test_util.h"

#include <algorithm>
#include <cstdint>

#include "test_util/strata/overlap_lookup_test_util.h"
#include "test_util/strata/overlap_walk_test_util.h"

namespace ROCKSDB_NAMESPACE {

OverlapView::OverlapView(OverlapState* state, OverlapDice* dice,
                         size_t first_writer, size_t last_writer)
    : state_(*state),
      first_writer_(first_writer),
      last_writer_(last_writer),
      until_(std::chrono::steady_clock::now() +
             std::chrono::milliseconds(500 + dice->Below(1500))) {
  if (dice->OneIn(3)) {
    what_ = "snapshot";
    snapshot_ = state_.db()->GetSnapshot();
  } else {
    what_ = "iterator";
    for (size_t f = 0; f < OverlapDb::kNumFamilies; ++f) {
      iterators_[f].reset(state_.db()->NewIterator(IteratorOptions(dice),
                                                   state_.db().family(f)));
    }
  }
  Record();
}

ReadOptions OverlapView::IteratorOptions(OverlapDice* dice) {
  ReadOptions read_options = OverlapLookup::RandomOptions(dice);
  read_options.pin_data = dice->OneIn(6);
  if (dice->OneIn(3)) {
    read_options.blob_prefetch_count = dice->OneIn(2) ? 0 : 16;
  }
  if (dice->OneIn(4)) {
    read_options.readahead_size = 4096;
  }
  return read_options;
}

void OverlapView::Record() {
  for (size_t f = 0; f < OverlapDb::kNumFamilies; ++f) {
    expected_[f].clear();
    expected_[f].resize(state_.options().writers);
    for (size_t w = first_writer_; w < last_writer_; ++w) {
      expected_[f][w] = state_.Latest(f, w);
    }
  }
}

void OverlapView::MaybeRefresh(OverlapDice* dice) {
  if (iterators_[0] != nullptr && dice->OneIn(6) &&
      last_writer_ == first_writer_ + 1) {
    for (auto& iterator : iterators_) {
      state_.findings().Must(iterator->Refresh(), "refresh");
    }
    Record();
  }
}

void OverlapView::End() {
  for (auto& iterator : iterators_) {
    iterator.reset();
  }
  if (snapshot_ != nullptr) {
    state_.db()->ReleaseSnapshot(snapshot_);
    snapshot_ = nullptr;
  }
  has_ended_ = true;
}

void OverlapView::Check(OverlapDice* dice) {
  if (has_ended_) {
    return;
  }
  ++state_.counts().views;
  const uint64_t before = state_.findings().count();
  Read(dice);
  if (state_.findings().count() != before) {
    // Prevents repetitions of the finding.
    until_ = std::chrono::steady_clock::now();
  }
}

void OverlapView::Read(OverlapDice* dice) {
  const size_t family = dice->Below(OverlapDb::kNumFamilies);
  const size_t writer =
      first_writer_ + dice->Below(last_writer_ - first_writer_);
  if (snapshot_ == nullptr) {
    ReadByIterator(family, writer, iterators_[family].get(), dice);
  } else if (dice->OneIn(2)) {
    ReadAtSnapshot(family, writer, dice);
  } else {
    ReadOptions read_options = IteratorOptions(dice);
    read_options.snapshot = snapshot_;
    const std::unique_ptr<Iterator> iterator(
        state_.db()->NewIterator(read_options, state_.db().family(family)));
    ReadByIterator(family, writer, iterator.get(), dice);
  }
}

void OverlapView::ReadByIterator(size_t family, size_t writer,
                                 Iterator* iterator, OverlapDice* dice) {
  using Direction = OverlapWalk::Direction;
  const Versions& expected = expected_[family][writer];
  OverlapWalk walk(&state_.findings(), family, writer, expected);
  switch (dice->Below(4)) {
    case 0:
      walk.RunAll(what_ + ", forward", iterator, Direction::kForward);
      break;
    case 1:
      walk.RunAll(what_ + ", backward", iterator, Direction::kBackward);
      break;
    default: {
      const size_t from = state_.PickIndex(dice);
      const size_t n = 1 + dice->Below(10);
      if (dice->OneIn(2)) {
        walk.Run(what_ + ", Seek()", iterator, from,
                 std::min(expected.size(), from + n), Direction::kForward);
      } else {
        walk.Run(what_ + ", SeekForPrev()", iterator, from < n ? 0 : from - n,
                 from + 1, Direction::kBackward);
      }
      break;
    }
  }
}

void OverlapView::ReadAtSnapshot(size_t family, size_t writer,
                                 OverlapDice* dice) {
  ReadOptions read_options = OverlapLookup::RandomOptions(dice);
  read_options.snapshot = snapshot_;
  const size_t n = dice->OneIn(2) ? 1 : 2 + dice->Below(16);
  OverlapLookup lookup(&state_, dice, n, family, writer,
                       /*is_cross=*/dice->OneIn(2));
  lookup.Run(read_options);
  for (const OverlapLookup::Key& key : lookup.keys()) {
    const std::string what = lookup.what() + " at a snapshot of " +
                             OverlapState::Name(key.family, writer, key.index);
    const OverlapKeyHistory::Version& version =
        expected_[key.family][writer][key.index];
    if (!key.status.ok() && !key.status.IsNotFound()) {
      state_.findings().Must(key.status, what);
    } else if (!version.Fits(key.found)) {
      state_.findings().Report("WRONG " + what + ": found " +
                               OverlapValues::Describe(key.found) +
                               " instead of " + version.Describe());
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
