//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_variants_test_util.h"
#include "test_util/strata/history_words_test_util.h"
#include "test_util/strata/metamorphic_check_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Makes a history that goes wrong shorter, as long as it goes wrong in the same
// way: takes away steps, then options, then makes values small.
//
// Source: delta debugging (Zeller, Hildebrandt: "Simplifying and Isolating
// Failure-Inducing Input", TSE 2002).
//
// Not thread-safe.
class MetamorphicShrinker {
 public:
  struct Case {
    std::vector<HistoryWords> steps;
    MetamorphicFinding finding;
  };
  using BeginTry = std::function<void(const Case& best, int number)>;

  // check: runs histories.
  // may_go_on: asked before each run; false ends the search.
  // num_tries: a history is run up to this many times until it goes wrong, as
  // jobs in the background can change what happens.
  // begin_try: called ahead of each of these runs, with the best case so far
  // and the number of the try, from 0; nullptr if there is nothing to do.
  // REQUIRES: *check outlives this
  MetamorphicShrinker(MetamorphicCheck* check, std::function<bool()> may_go_on,
                      int num_tries, BeginTry begin_try = nullptr)
      : check_(*check),
        may_go_on_(std::move(may_go_on)),
        num_tries_(num_tries),
        begin_try_(std::move(begin_try)) {}
  MetamorphicShrinker(const MetamorphicShrinker&) = delete;
  MetamorphicShrinker& operator=(const MetamorphicShrinker&) = delete;

  // Returns the shortest case that was found; the argument if it does not go
  // wrong again.
  // *is_repeatable: set to false in the latter case.
  Case Shrink(Case found, bool* is_repeatable);

 private:
  // Returns true, and sets *best, if the history goes wrong in the same way.
  bool Try(std::vector<HistoryWords> steps, const HistoryVariant& set,
           Case* best);
  void ShrinkSteps(Case* best);
  void ShrinkOptions(Case* best);
  void ShrinkValues(Case* best);

  MetamorphicCheck& check_;
  const std::function<bool()> may_go_on_;
  const int num_tries_;
  const BeginTry begin_try_;
};

}  // namespace ROCKSDB_NAMESPACE
