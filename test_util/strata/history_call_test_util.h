//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <utility>

#include "rocksdb/db.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/history_db_test_util.h"
#include "test_util/strata/history_findings_test_util.h"
#include "test_util/strata/history_options_test_util.h"
#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

class HistoryCall;

// How the output of a step compares with that of the same step under other
// options.
enum class HistoryOutputKind {
  kSame,        // the outputs must be equal
  kStructural,  // the output depends on the options
  // RocksDB may give another answer under other options, and later answers
  // follow from it.
  kUndecided,
};

// A kind of step. docs/history-scripts.md explains the steps.
struct HistoryStep {
  const char* name;
  void (*run)(HistoryCall& call);
  // The output depends on the options of the DB, so it is not compared between
  // variants.
  bool is_structural;
  // The step needs an open DB that has the column family.
  bool needs_db;
  // The name and the arguments.
  const char* usage;
};

// One run of a step: its arguments, what it works on, and its output.
//
// Not thread-safe.
class HistoryCall {
 public:
  // REQUIRES: all that is passed by pointer outlives this
  HistoryCall(const HistoryStep* step, std::string cf, HistoryWords args,
              HistoryDb* state, HistoryFindings* findings)
      : step_(*step),
        cf_(std::move(cf)),
        args_(std::move(args)),
        state_(*state),
        findings_(*findings) {}
  HistoryCall(const HistoryCall&) = delete;
  HistoryCall& operator=(const HistoryCall&) = delete;

  const HistoryStep& step() const { return step_; }
  const std::string& cf() const { return cf_; }
  // Steps remove those that they have understood.
  HistoryWords& args() { return args_; }
  HistoryDb& state() { return state_; }
  HistoryFindings& findings() { return findings_; }
  HistoryModel& model() { return state_.model(); }
  // REQUIRES: the step needs a DB. This holds for the next three functions.
  DB* db() { return state_.db(); }
  HistoryDb::Family& family() { return state_.families().at(cf_); }
  ColumnFamilyHandle* handle() { return family().handle; }

  // Lines that end with '\n'; empty if there is no output.
  std::string& out() { return out_; }

  // Records that the output is HistoryOutputKind::kUndecided.
  void SetUndecided() { is_undecided_ = true; }
  // Records that the output is HistoryOutputKind::kStructural, because of the
  // arguments.
  void SetStructural() { is_structural_ = true; }
  HistoryOutputKind output_kind() const {
    return is_undecided_ ? HistoryOutputKind::kUndecided
           : step_.is_structural || is_structural_
               ? HistoryOutputKind::kStructural
               : HistoryOutputKind::kSame;
  }

  // Records that the arguments are wrong.
  void Usage() { Mistake(std::string("usage: ") + step_.usage); }
  void Mistake(const std::string& what) { findings_.Mistake(what); }
  void Disagree(const std::string& what) { findings_.Disagree(what); }

  // Prints an error; nothing if OK. Returns s.ok().
  bool Report(const Status& s);

  // Adds the words "name=value" to the options. Returns false and records a
  // mistake if one is malformed.
  bool TakeOptions(const HistoryWords& words, HistoryOptionList* options);

  // Removes "@SNAPSHOT" from the arguments. *view: what the snapshot shows, or
  // what the DB shows at this moment if there is no such argument. Returns
  // false and records a mistake if there is no such snapshot.
  bool TakeView(HistoryDb::View* view);

 private:
  const HistoryStep& step_;
  const std::string cf_;
  HistoryWords args_;
  HistoryDb& state_;
  HistoryFindings& findings_;
  std::string out_;
  bool is_undecided_ = false;
  bool is_structural_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
