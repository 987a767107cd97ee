//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/history_interpreter_test_util.h"
#include "test_util/strata/history_script_test_util.h"
#include "test_util/strata/history_variants_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Runs a history script (see HistoryScript) with a HistoryInterpreter.
//
// Not thread-safe.
class HistoryRunner {
 public:
  struct Output : public HistoryInterpreter::Output {
    const HistoryCommand* command = nullptr;
  };
  // The outputs of one block.
  using Outputs = std::vector<Output>;

  // variant: replaces the script's options; without lists for its own options.
  // root: a directory that the runner creates and removes.
  // REQUIRES: script outlives this.
  HistoryRunner(const HistoryScript& script, const HistoryVariant& variant,
                const std::string& root);
  HistoryRunner(const HistoryRunner&) = delete;
  HistoryRunner& operator=(const HistoryRunner&) = delete;

  // Runs the whole script and adds one element to *outputs per block. Returns
  // an error only for a mistake in the script (the message names the line);
  // errors of the DB are part of the output. After the last block all contents
  // are verified, and again after a reopen.
  // REQUIRES: this is called once
  Status Run(std::vector<Outputs>* outputs);

  // Returns the results that contradict the model, each as "name:line: ...".
  const std::vector<std::string>& disagreements() const {
    return interpreter_.findings().disagreements();
  }

  // Returns the text of the outputs of a block, as in the script's file.
  static std::string Text(const Outputs& outputs);

 private:
  const HistoryScript& script_;
  HistoryInterpreter interpreter_;
};

}  // namespace ROCKSDB_NAMESPACE
