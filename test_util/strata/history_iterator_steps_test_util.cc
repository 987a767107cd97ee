//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_iterator_steps_test_util.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "test_util/strata/history_iterator_test_util.h"
#include "test_util/strata/history_read_options_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

void Create(HistoryCall& c) {
  HistoryDb::View view;
  ReadOptions read_options;
  if (!c.TakeView(&view)) {
    return;
  }
  if (!HistoryReadOptions::Take(&c.args(), &read_options)) {
    c.Usage();
    return;
  }
  const HistoryWords& args = c.args();
  auto& iterators = c.state().iterators();
  if ((args.size() != 1 && args.size() != 3) || iterators.count(args[0]) != 0) {
    c.Usage();
    return;
  }
  read_options.snapshot = view.snapshot;
  iterators[args[0]] = std::make_unique<HistoryIterator>(
      c.db(), c.handle(), read_options, &c.model(), view.position,
      HistoryWords(args.begin() + 1, args.end()));
}

void End(HistoryCall& c) {
  if (c.args().size() != 1 || c.state().iterators().erase(c.args()[0]) == 0) {
    c.Usage();
  }
}

// Returns the iterator that the first argument names. Returns nullptr and
// records a mistake if there is none, or the number of arguments is wrong.
HistoryIterator* Find(HistoryCall& c, size_t min_args, size_t max_args) {
  const auto& iterators = c.state().iterators();
  const auto it =
      c.args().empty() ? iterators.end() : iterators.find(c.args()[0]);
  if (it == iterators.end()) {
    c.Mistake("no such iterator");
    return nullptr;
  }
  if (c.args().size() < min_args || c.args().size() > max_args) {
    c.Usage();
    return nullptr;
  }
  return it->second.get();
}

// Prints where the iterator is, and checks it. Prints nothing if it may be at
// several positions, as the choice can depend on the options of the DB.
void Show(HistoryCall& c, HistoryIterator* iterator) {
  if (!c.Report(iterator->status()) || !iterator->is_known()) {
    return;
  }
  c.out().append(iterator->Show()).append("\n");
  const std::string correction = iterator->Correction();
  if (!correction.empty()) {
    c.Disagree("the iterator must be at " + correction);
  }
}

void Seek(HistoryCall& c) {
  if (HistoryIterator* const iterator = Find(c, 2, 2)) {
    iterator->Seek(c.args()[1]);
    Show(c, iterator);
  }
}

void SeekForPrev(HistoryCall& c) {
  if (HistoryIterator* const iterator = Find(c, 2, 2)) {
    iterator->SeekForPrev(c.args()[1]);
    Show(c, iterator);
  }
}

void SeekToFirst(HistoryCall& c) {
  if (HistoryIterator* const iterator = Find(c, 1, 1)) {
    iterator->SeekToFirst();
    Show(c, iterator);
  }
}

void SeekToLast(HistoryCall& c) {
  if (HistoryIterator* const iterator = Find(c, 1, 1)) {
    iterator->SeekToLast();
    Show(c, iterator);
  }
}

// Moves the iterator as often as the arguments say and shows each position.
void Move(HistoryCall& c, void (HistoryIterator::*move)()) {
  HistoryIterator* const iterator = Find(c, 1, 2);
  if (iterator == nullptr) {
    return;
  }
  uint64_t count = 1;
  if (c.args().size() == 2 &&
      !HistoryArguments::ParseNumber(c.args()[1], &count)) {
    c.Usage();
    return;
  }
  for (; count > 0 && iterator->Valid(); --count) {
    (iterator->*move)();
    Show(c, iterator);
  }
}

void Refresh(HistoryCall& c) {
  HistoryDb::View view;
  if (!c.TakeView(&view)) {
    return;
  }
  if (HistoryIterator* const iterator = Find(c, 1, 1)) {
    c.Report(iterator->Refresh(view.snapshot, view.position));
  }
}

void Next(HistoryCall& c) { Move(c, &HistoryIterator::Next); }

void Prev(HistoryCall& c) { Move(c, &HistoryIterator::Prev); }

}  // namespace

const std::vector<HistoryStep>& HistoryIteratorSteps() {
  static const std::vector<HistoryStep> kSteps = {
      {"iter", Create, false, true,
       "iter NAME [@SNAPSHOT] [FROM TO] [+OPTION...]"},
      {"seek", Seek, false, true, "seek NAME KEY"},
      {"seekforprev", SeekForPrev, false, true, "seekforprev NAME KEY"},
      {"first", SeekToFirst, false, true, "first NAME"},
      {"last", SeekToLast, false, true, "last NAME"},
      {"next", Next, false, true, "next NAME [COUNT]"},
      {"prev", Prev, false, true, "prev NAME [COUNT]"},
      {"refresh", Refresh, false, true, "refresh NAME [@SNAPSHOT]"},
      {"close-iter", End, false, true, "close-iter NAME"},
  };
  return kSteps;
}

}  // namespace ROCKSDB_NAMESPACE
