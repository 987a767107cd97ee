//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_writer_test_util.h"

#include <algorithm>
#include <set>
#include <utility>

#include "test_util/strata/overlap_values_test_util.h"
#include "test_util/strata/overlap_write_test_util.h"

namespace ROCKSDB_NAMESPACE {

OverlapWriter::OverlapWriter(OverlapState* state, size_t writer, uint64_t seed)
    : state_(*state),
      writer_(writer),
      dice_(seed),
      jobs_(state),
      point_reads_(state),
      tailing_reads_(state, writer) {}

void OverlapWriter::Run() {
  while (!state_.IsRoundOver()) {
    for (uint64_t n = dice_.Below(20); n > 0; --n) {
      WriteSomething();
    }
    DoSomethingElse();
  }
  views_.EndAll(&dice_);
}

void OverlapWriter::DoSomethingElse() {
  switch (dice_.Below(8)) {
    case 0:
    case 1:
    case 2:
      point_reads_.ReadSome(writer_, &dice_);
      break;
    case 3:
      tailing_reads_.Read(&dice_);
      break;
    case 4:
      if (views_.size() < state_.max_views() && dice_.OneIn(4)) {
        views_.Add(NewView());
      }
      break;
    case 5:
      views_.Tend(&dice_);
      break;
    case 6:
      dice_.Rest(3);
      break;
    default:
      if (dice_.OneIn(8)) {
        RemoveUnderReader();
      }
      break;
  }
}

void OverlapWriter::WriteSomething() {
  const OverlapStressOptions& options = state_.options();
  const size_t family = dice_.Below(OverlapDb::kNumFamilies);
  if (options.range_deletions && dice_.OneIn(150)) {
    const size_t from = state_.PickIndex(&dice_);
    const size_t to =
        from + 1 + dice_.Below(dice_.OneIn(4) ? options.keys : 12);
    if (dice_.OneIn(2)) {
      ReplaceRange(family, from, std::min<size_t>(to, options.keys));
    } else {
      DeleteRange(family, from, std::min<size_t>(to, options.keys));
    }
  } else if (dice_.OneIn(10)) {
    WriteSeveral();
  } else {
    WriteKey(family, state_.PickIndex(&dice_));
  }
}

void OverlapWriter::WriteSeveral() {
  std::set<size_t> indexes;
  for (uint64_t n = 1 + dice_.Below(4); n > 0; --n) {
    indexes.insert(state_.PickIndex(&dice_));
  }
  OverlapWrite write(&state_, writer_);
  for (const size_t index : indexes) {
    for (size_t f = 0; f < OverlapDb::kNumFamilies; ++f) {
      write.AddRandom(f, index, &dice_);
    }
  }
  write.Commit();
}

void OverlapWriter::WriteKey(size_t family, size_t index) {
  OverlapWrite write(&state_, writer_);
  write.AddRandom(family, index, &dice_);
  write.Commit();
}

void OverlapWriter::DeleteRange(size_t family, size_t from, size_t to) {
  OverlapWrite write(&state_, writer_);
  write.AddDeleteRange(family, from, to);
  write.Commit();
}

void OverlapWriter::ReplaceRange(size_t family, size_t from, size_t to) {
  OverlapWrite write(&state_, writer_);
  write.AddReplaceRange(family, from, to, &dice_);
  write.Commit();
  if (dice_.OneIn(2)) {
    jobs_.Flush({family}, /*wait=*/true);
  }
}

void OverlapWriter::DeleteKeys(size_t family, size_t from, size_t to) {
  if (state_.options().range_deletions && dice_.OneIn(2)) {
    DeleteRange(family, from, to);
    return;
  }
  for (size_t i = from; i < to; ++i) {
    if (OverlapValues::UseOf(i) != OverlapKeyUse::kSingleDelete) {
      OverlapWrite write(&state_, writer_);
      write.AddDelete(family, i);
      write.Commit();
    }
  }
}

std::unique_ptr<OverlapView> OverlapWriter::NewView() {
  return std::make_unique<OverlapView>(&state_, &dice_, writer_, writer_ + 1);
}

void OverlapWriter::RemoveUnderReader() {
  const size_t family = dice_.Below(OverlapDb::kNumFamilies);
  const size_t from = state_.PickIndex(&dice_);
  const size_t to =
      std::min<size_t>(from + 1 + dice_.Below(12), state_.options().keys);
  std::unique_ptr<OverlapView> view;
  if (dice_.OneIn(2)) {
    view = NewView();
  }
  for (size_t i = from; i < to; ++i) {
    WriteKey(family, i);
  }
  if (dice_.OneIn(2)) {
    jobs_.Flush({family}, /*wait=*/true);
  }
  if (view == nullptr) {
    view = NewView();
  } else if (dice_.OneIn(2)) {
    view->End();
  }
  DeleteKeys(family, from, to);
  if (!dice_.OneIn(4)) {
    jobs_.Flush({family}, /*wait=*/true);
  }
  view->Check(&dice_);
  if (dice_.OneIn(2)) {
    view->End();
  } else {
    views_.Add(std::move(view));
  }
  if (dice_.OneIn(2)) {
    jobs_.CompactSomeFile(family, &dice_);
  }
  dice_.Rest(dice_.OneIn(2) ? 5 : 300);
  for (size_t i = from; i < to; ++i) {
    if (!dice_.OneIn(4)) {
      WriteKey(family, i);
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
