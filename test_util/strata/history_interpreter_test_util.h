//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/history_call_test_util.h"
#include "test_util/strata/history_db_test_util.h"
#include "test_util/strata/history_findings_test_util.h"
#include "test_util/strata/history_options_test_util.h"
#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Runs the steps of a history, one by one, on a DB of its own and compares
// every result of a read with a HistoryModel. The steps come from a script (see
// HistoryRunner), or from a program, which can look at the model to choose the
// next one. docs/history-scripts.md lists the steps.
//
// Not thread-safe.
class HistoryInterpreter {
 public:
  struct Output {
    HistoryOutputKind kind = HistoryOutputKind::kSame;
    // Lines, each ending with '\n'; empty if there is no output.
    std::string text;
  };

  // Returns all steps, by name. Thread-safe.
  static const std::map<std::string, HistoryStep>& Steps();

  // root: a directory that Start() creates and the destructor removes.
  // overrides: options that replace those of the steps, see HistoryVariant;
  // empty if there are none.
  HistoryInterpreter(const std::string& root,
                     const std::vector<HistoryOptionList>& overrides);
  HistoryInterpreter(const HistoryInterpreter&) = delete;
  HistoryInterpreter& operator=(const HistoryInterpreter&) = delete;

  // REQUIRES: this is called once, before all others
  Status Start() { return db_.CreateRoot(); }

  // Runs a step. Errors of the DB are part of the output; a mistake in the step
  // is returned by findings().
  // words: optionally "cf=NAME", the step's name, and its arguments.
  // place: stands ahead of what is found wrong, such as "name:line: ".
  // REQUIRES: !words.empty()
  void Run(const HistoryWords& words, const std::string& place, Output* output);

  // Verifies all contents, and again after a reopen; nothing if the DB is
  // closed. Operations on files do not fail any more.
  void Finish(const std::string& place);

  const HistoryFindings& findings() const { return findings_; }
  // For programs that add findings of their own, or allow errors.
  HistoryFindings* mutable_findings() { return &findings_; }
  HistoryDb& db() { return db_; }

 private:
  HistoryDb db_;
  HistoryFindings findings_;
};

}  // namespace ROCKSDB_NAMESPACE
