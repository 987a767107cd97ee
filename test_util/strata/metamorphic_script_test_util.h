//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_interpreter_test_util.h"
#include "test_util/strata/history_script_test_util.h"
#include "test_util/strata/history_variants_test_util.h"
#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Returns a history as a history script, which runs with its own options and
// with those of the set. The expected output is that with its own options.
// head: comment lines without "# ".
// outputs: for each step; missing ones count as empty.
std::string MetamorphicScript(
    const std::vector<std::string>& head,
    const std::vector<HistoryWords>& steps, const HistoryVariant& set,
    const std::vector<HistoryInterpreter::Output>& outputs);

// Returns the steps of all blocks of the script.
std::vector<HistoryWords> MetamorphicSteps(const HistoryScript& script);

}  // namespace ROCKSDB_NAMESPACE
