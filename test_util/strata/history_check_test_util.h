//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/history_runner_test_util.h"
#include "test_util/strata/history_script_test_util.h"
#include "test_util/strata/history_variants_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Tests a script: runs it with its own options and compares the outputs with
// the expected ones, then runs it with the variants and compares the results of
// reads.
//
// Not thread-safe.
class HistoryCheck {
 public:
  // root: a directory that the runs create and remove.
  // REQUIRES: script outlives this
  HistoryCheck(const HistoryScript& script, std::string root);
  HistoryCheck(const HistoryCheck&) = delete;
  HistoryCheck& operator=(const HistoryCheck&) = delete;

  // REQUIRES: this is called once
  void Run();

  // Returns the errors; none if the test passed.
  const std::vector<std::string>& complaints() const { return complaints_; }

  // Returns the text of the script with the actual outputs, or an empty text if
  // the outputs are the expected ones.
  const std::string& rewritten() const { return rewritten_; }

 private:
  // Runs the script with its own options. Returns false if it has a mistake.
  bool RunOwn();
  void CompareWithExpected();
  void RunVariant(const HistoryVariant& variant);
  // under: what is added to complaints about the other outputs.
  void CompareWithOwn(const std::vector<HistoryRunner::Outputs>& others,
                      const std::string& under);

  const HistoryScript& script_;
  const std::string root_;
  // The outputs with the script's own options, one element per block.
  std::vector<HistoryRunner::Outputs> own_;
  std::vector<std::string> complaints_;
  std::string rewritten_;
};

// Returns the variants that the script has, and its line "overrides:" as one
// more. A variant that the file system does not support is left out.
// root: a directory that is created.
// *complaints: gets a line for each variant that does not exist.
std::vector<HistoryVariant> ChooseHistoryVariants(
    const HistoryScript& script, const std::string& root,
    std::vector<std::string>* complaints);

// Returns the complaints of a HistoryCheck. *rewritten is set to its rewritten
// text.
std::vector<std::string> CheckHistoryScript(const HistoryScript& script,
                                            const std::string& root,
                                            std::string* rewritten);

// Returns the directory "testdata/history" of the project: below
// $STRATA_TESTDATA if that is set, otherwise below the closest parent directory
// of the test binary, or of the current directory, that has it. Empty if there
// is none.
std::string FindHistoryScripts();

// Returns the sorted names of the scripts in that directory, without ".txt".
std::vector<std::string> HistoryScriptNames();

// Reads a script by its name.
Status ReadHistoryScript(const std::string& name, HistoryScript* script);

}  // namespace ROCKSDB_NAMESPACE
