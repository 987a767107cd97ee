//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/history_file_op_test_util.h"
#include "test_util/strata/history_flips_test_util.h"
#include "test_util/strata/history_interpreter_test_util.h"
#include "test_util/strata/history_script_test_util.h"
#include "test_util/strata/history_sweep_kind_test_util.h"
#include "test_util/strata/history_variants_test_util.h"

namespace ROCKSDB_NAMESPACE {

// What a run of a script without a fault has shown.
struct HistorySweepTrace {
  // For each step, whether the DB was open after it.
  std::vector<bool> is_open;
  // For each step, the number of steps before it that have printed an error.
  std::vector<size_t> errors_before;
  // The number of operations of each kind.
  uint64_t counts[kNumHistoryFileOps] = {};
  // The number of bytes that HistoryFlips has found in the closed DB.
  uint64_t num_flips = 0;
  // The number of steps that have printed an error.
  size_t num_errors = 0;
  // The script leaves a DB that can be opened.
  bool ends_openable = false;

  // Returns the number of points of this kind.
  uint64_t NumPoints(const HistorySweepKind& kind) const;
};

// Runs the steps of a script, one of whose operations on files has a fault. The
// outputs are not compared with the expected ones, as they may be errors;
// answers are compared with the model. Where the script needs an open DB, and
// an open has failed because of the fault, the DB is opened again. After a
// fault with an odd number, a DB that has stopped is resumed, or reopened if it
// cannot resume, so that the rest of the script works on it. Otherwise the rest
// works on the DB that has stopped.
//
// At the end of the script the DB is reopened, read and written to, so that
// these operations can have faults, too.
//
// Not thread-safe.
class HistorySweepRun {
 public:
  enum class End {
    kDone,     // all steps have run
    kCrashed,  // the DB must crash now, or has done so
    kRefused,  // the DB could not be opened again, see refusal()
  };

  // variant: nullptr for the script's own options.
  // root: a directory that Start() creates and the destructor removes.
  // REQUIRES: script and *variant outlive this
  HistorySweepRun(const HistoryScript& script, const HistoryVariant* variant,
                  const std::string& root);
  ~HistorySweepRun() { refusal_.PermitUncheckedError(); }
  HistorySweepRun(const HistorySweepRun&) = delete;
  HistorySweepRun& operator=(const HistorySweepRun&) = delete;

  // REQUIRES: this is called once, before one of the next two
  Status Start() { return interpreter_.Start(); }

  // Runs all steps without a fault, and closes the DB.
  HistorySweepTrace RunWithoutFault();
  // Runs the steps until the end or the crash. For a flip, all steps run, the
  // DB is closed, and nothing is changed.
  // trace: what RunWithoutFault() of the same script and variant has returned.
  End RunWithFault(const HistorySweepTrace& trace,
                   const HistorySweepPoint& point);

  HistoryInterpreter& interpreter() { return interpreter_; }
  HistoryDb& db() { return interpreter_.db(); }
  // Returns the number of steps that have printed an error.
  size_t num_errors() const { return num_errors_; }
  // Returns true if the DB has been resumed, or opened again.
  bool has_resumed() const { return has_resumed_; }
  bool has_reopened() const { return has_reopened_; }
  // Returns why the DB could not be opened again.
  const Status& refusal() const { return refusal_; }
  // Returns the index of the last step that has run.
  size_t last_step() const { return last_step_; }
  // Returns true if the last step destroys the DB.
  bool is_destroying() const;

 private:
  struct Step {
    HistoryWords words;
    std::string place;
  };

  void RunStep(size_t index);
  // Repeats the open, or the destruction, that has failed. Returns false if it
  // fails again.
  bool Repeat(size_t index, bool must_be_open);
  // Opens the DB, and checks what it contains. Returns false if it does not
  // open.
  bool Open();
  // A script may take a path away after a step that moves the files of the
  // path, and the fault may have made that step fail. Gives the column families
  // from which the last step has taken a path the paths that they had before,
  // with which the DB must open. Returns false if there are none, or no step
  // before has failed because of the fault.
  bool GiveBackPaths();
  // Returns the directories that a value of the option "paths" means.
  std::vector<std::string> Directories(const std::string& paths);
  // Resumes or reopens a DB that has stopped. Returns false if it does not
  // open.
  bool Revive();

  HistoryInterpreter interpreter_;
  std::vector<Step> steps_;
  size_t num_script_steps_ = 0;
  size_t num_errors_ = 0;
  size_t last_step_ = 0;
  // More of the steps before the last one have printed an error than without a
  // fault.
  bool has_failed_before_ = false;
  bool has_resumed_ = false;
  bool has_reopened_ = false;
  Status refusal_;
  // Column family -> its option "paths" before the last step; empty: none.
  std::map<std::string, std::string> paths_before_;
};

}  // namespace ROCKSDB_NAMESPACE
