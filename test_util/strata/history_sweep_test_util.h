//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_script_test_util.h"
#include "test_util/strata/history_sweep_judge_test_util.h"
#include "test_util/strata/history_sweep_kind_test_util.h"
#include "test_util/strata/history_sweep_report_test_util.h"
#include "test_util/strata/history_sweep_run_test_util.h"
#include "test_util/strata/history_variants_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Which points a sweep runs.
struct HistorySweepOptions {
  // All points of all variants; otherwise some of one variant, at random.
  bool all = false;
  // The number of points if not all of them are run.
  size_t num_points = 4;
  uint32_t seed = 1;
  // Only this script, variant ("own" for the script's own options), kind of
  // fault, and point "KIND:N"; any if empty. `after` is the point behind which
  // a sweep of all points goes on.
  std::string script;
  std::string variant;
  std::string kind;
  std::string point;
  std::string after;

  // Sets the options that environment variables STRATA_SWEEP... say; see
  // docs/fault-sweeps.md. Returns false and sets *error if one is malformed.
  static bool FromEnvironment(HistorySweepOptions* options, std::string* error);
};

// Runs a script again and again, each time with a fault at another operation on
// files, and judges what the DB does.
//
// Not thread-safe.
class HistorySweep {
 public:
  // root: a directory that the runs create and remove.
  // REQUIRES: *totals and *watch outlive this
  HistorySweep(const HistorySweepOptions& options, std::string root,
               HistorySweepTotals* totals, HistorySweepWatch* watch);
  HistorySweep(const HistorySweep&) = delete;
  HistorySweep& operator=(const HistorySweep&) = delete;

  // name: of the script, as in `script` of the options.
  void Run(const std::string& name, const HistoryScript& script);

  // Returns what is wrong. Each finding has the command that repeats it.
  const std::vector<std::string>& findings() const { return findings_; }

 private:
  // nullptr stands for the script's own options.
  using Variant = const HistoryVariant*;

  std::vector<Variant> ChooseVariants(const std::string& name,
                                      const HistoryScript& script) const;
  void RunVariant(const std::string& name, const HistoryScript& script,
                  Variant variant);
  // Returns false if the script does not run without a fault.
  bool MakeTrace(const std::string& name, const HistoryScript& script,
                 Variant variant, HistorySweepTrace* trace);
  std::vector<HistorySweepPoint> ChoosePoints(
      const std::string& name, const HistorySweepTrace& trace) const;
  void RunPoint(const std::string& name, const HistoryScript& script,
                Variant variant, const HistorySweepTrace& trace,
                const HistorySweepPoint& point);
  // Runs the script with the fault and judges.
  // *at: set to the operation or the byte.
  HistorySweepOutcome RunAndJudge(HistorySweepRun* run,
                                  const HistorySweepTrace& trace,
                                  const HistorySweepPoint& point,
                                  std::string* at) const;
  // Returns the shell command that repeats a point.
  std::string Command(const std::string& name, Variant variant,
                      const std::string& point) const;
  void AddFindings(const HistoryFindings& findings, const std::string& command,
                   const std::string& at);

  const HistorySweepOptions options_;
  const std::string root_;
  HistorySweepTotals& totals_;
  HistorySweepWatch& watch_;
  std::vector<std::string> findings_;
};

}  // namespace ROCKSDB_NAMESPACE
