//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_runner_test_util.h"

namespace ROCKSDB_NAMESPACE {

HistoryRunner::HistoryRunner(const HistoryScript& script,
                             const HistoryVariant& variant,
                             const std::string& root)
    : script_(script), interpreter_(root, variant.lists) {}

Status HistoryRunner::Run(std::vector<Outputs>* outputs) {
  outputs->clear();
  Status s = interpreter_.Start();
  int line = 0;
  for (const HistoryBlock& block : script_.blocks()) {
    outputs->emplace_back();
    for (const HistoryCommand& command : block.commands) {
      if (!s.ok()) {
        return s;
      }
      outputs->back().emplace_back();
      Output& output = outputs->back().back();
      output.command = &command;
      line = command.line;
      interpreter_.Run(command.words, script_.Where(line), &output);
      s = interpreter_.findings().mistake();
    }
  }
  if (s.ok()) {
    interpreter_.Finish(script_.Where(line));
  }
  return s;
}

std::string HistoryRunner::Text(const Outputs& outputs) {
  std::string text;
  for (const Output& output : outputs) {
    text.append(output.text);
  }
  return text.empty() ? "ok\n" : text;
}

}  // namespace ROCKSDB_NAMESPACE
