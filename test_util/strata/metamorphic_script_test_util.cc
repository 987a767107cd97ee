//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/metamorphic_script_test_util.h"

#include <cstddef>

namespace ROCKSDB_NAMESPACE {

std::string MetamorphicScript(
    const std::vector<std::string>& head,
    const std::vector<HistoryWords>& steps, const HistoryVariant& set,
    const std::vector<HistoryInterpreter::Output>& outputs) {
  std::string text;
  for (const std::string& line : head) {
    text.append("# ").append(line).append("\n");
  }
  text.append("variants: none\n");
  for (size_t i = 0; i < set.lists.size(); ++i) {
    text.append(i == 0 ? "overrides:" : " |");
    for (const auto& option : set.lists[i]) {
      text.append(" ").append(option.first).append("=").append(option.second);
    }
  }
  text.append(set.lists.empty() ? "" : "\n");
  std::string expected;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (size_t j = 0; j < steps[i].size(); ++j) {
      text.append(j == 0 ? "" : " ").append(steps[i][j]);
    }
    text.append("\n");
    if (i < outputs.size()) {
      expected.append(outputs[i].text);
    }
  }
  if (expected.empty()) {
    expected = "ok\n";
  }
  return text.append("----\n").append(expected);
}

std::vector<HistoryWords> MetamorphicSteps(const HistoryScript& script) {
  std::vector<HistoryWords> steps;
  for (const HistoryBlock& block : script.blocks()) {
    for (const HistoryCommand& command : block.commands) {
      steps.push_back(command.words);
    }
  }
  return steps;
}

}  // namespace ROCKSDB_NAMESPACE
