//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_call_test_util.h"

#include <cstddef>

namespace ROCKSDB_NAMESPACE {

bool HistoryCall::Report(const Status& s) {
  if (!s.ok()) {
    out_.append("error: ")
        .append(state_.names().Mask(s.ToString()))
        .append("\n");
  }
  return s.ok();
}

bool HistoryCall::TakeOptions(const HistoryWords& words,
                              HistoryOptionList* options) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      Mistake("not an option: \"" + word + "\"");
      return false;
    }
    if (!HistoryOptions::Add(word.substr(0, equals), word.substr(equals + 1),
                             options)) {
      Mistake("no such value: \"" + word + "\"");
      return false;
    }
  }
  return true;
}

bool HistoryCall::TakeView(HistoryDb::View* view) {
  view->position = model().Position();
  for (auto it = args_.begin(); it != args_.end(); ++it) {
    if ((*it)[0] != '@') {
      continue;
    }
    const auto named = state_.snapshots().find(it->substr(1));
    if (named == state_.snapshots().end()) {
      Mistake("no snapshot \"" + it->substr(1) + "\"");
      return false;
    }
    *view = named->second;
    args_.erase(it);
    break;
  }
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
