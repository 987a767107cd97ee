//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_interpreter_test_util.h"
#include "test_util/strata/history_options_test_util.h"
#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

// What happened when a history ran.
struct MetamorphicOutcome {
  enum class End {
    kFinished,
    kDied,  // the process ended by itself, by a signal or an assertion
    kHung,  // it did not end in time, and was stopped
  };

  End end = End::kFinished;
  // One for each step that was finished.
  std::vector<HistoryInterpreter::Output> outputs;
  // The results that contradict the model.
  std::vector<std::string> disagreements;
  // The steps are wrong; empty if they are not.
  std::string mistake;
  // If the process did not finish: how it ended, and the last that it printed.
  std::string last_words;
  // The seed of the schedule of the threads; 0 if the system chose it.
  uint64_t schedule_seed = 0;
};

// Runs histories, each in a process of its own, so that one that aborts or
// hangs is a result like others.
//
// Thread-safe: the class has no state.
class MetamorphicRun {
 public:
  // lists: replace the options of the steps, see HistoryVariant; empty
  // for the steps' own options.
  // root: a directory that is made and removed; files beside it, whose names
  // begin with it, too.
  // timeout_seconds: a run that takes longer has hung.
  // REQUIRES: each step is valid, and the process has one thread: no DB was
  // open in it, as background threads outlive their DB. With more threads the
  // outcome is a mistake.
  static MetamorphicOutcome Run(const std::vector<HistoryWords>& steps,
                                const std::vector<HistoryOptionList>& lists,
                                const std::string& root, int timeout_seconds);

  // Runs the history in this process, whose own process Run() or another caller
  // has made. The process may abort at any step, so what is known by then is in
  // a file.
  // lists, root: as for Run().
  // record: path of the file, which ReadRecord() reads.
  // at_end: called when the history is over, before its files are removed.
  // REQUIRES: each step is valid
  static void RunHere(
      const std::vector<HistoryWords>& steps,
      const std::vector<HistoryOptionList>& lists, const std::string& root,
      const std::string& record,
      const std::function<void(HistoryInterpreter* interpreter)>& at_end);

  // Adds what RunHere() has written to *outcome. Returns true if RunHere() came
  // to its end.
  static bool ReadRecord(const std::string& record,
                         MetamorphicOutcome* outcome);
};

}  // namespace ROCKSDB_NAMESPACE
