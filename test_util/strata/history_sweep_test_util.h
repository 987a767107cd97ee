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
#include "test_util/strata/history_sweep_options_test_util.h"
#include "test_util/strata/history_sweep_report_test_util.h"
#include "test_util/strata/history_sweep_run_test_util.h"
#include "test_util/strata/history_variants_test_util.h"

namespace ROCKSDB_NAMESPACE {

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
  using Points = std::vector<HistorySweepPoint>;

  std::vector<Variant> ChooseVariants(const std::string& name,
                                      const HistoryScript& script) const;
  void RunVariant(const std::string& name, const HistoryScript& script,
                  Variant variant);
  // Returns false if the script does not run without a fault.
  bool MakeTrace(const std::string& name, const HistoryScript& script,
                 Variant variant, HistorySweepTrace* trace);
  Points ChoosePoints(const std::string& name,
                      const HistorySweepTrace& trace) const;
  Points ChooseAnyPoints(const std::string& name,
                         const HistorySweepTrace& trace) const;
  void RunPoint(const std::string& name, const HistoryScript& script,
                Variant variant, const HistorySweepTrace& trace,
                const HistorySweepPoint& point);
  HistorySweepOutcome Judge(HistorySweepRun* run, HistorySweepRun::End end,
                            const HistorySweepTrace& trace,
                            const HistorySweepPoint& point) const;
  // Runs the script once, and puts the closed DB back after each point.
  void RunFlips(const std::string& name, const HistoryScript& script,
                Variant variant, const HistorySweepTrace& trace,
                const Points& points);
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
