//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_open_steps_test_util.h"

#include <string>
#include <unordered_map>

#include "test_util/strata/history_verifier_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns false and records a mistake if the model does not know the merge
// operator.
bool KnowsMergeOperator(HistoryCall& c, const HistoryOptionList& options) {
  HistoryModel::MergeKind kind;
  const std::string name = HistoryOptions::MergeOperator(options);
  if (!HistoryModel::ParseMergeKind(name, &kind)) {
    c.Mistake("the model has no merge operator \"" + name + "\"");
    return false;
  }
  return true;
}

// Adds the arguments to the family's options, opens the DB, and checks what it
// contains.
void OpenWithArguments(HistoryCall& c, bool is_crash) {
  HistoryDb& state = c.state();
  if (!c.TakeOptions(c.args(), &c.family().options) ||
      !KnowsMergeOperator(c, c.family().options)) {
    return;
  }
  c.model().CreateFamily(c.cf(),
                         HistoryOptions::MergeOperator(c.family().options));
  if (c.Report(state.Open())) {
    HistoryVerifier(&state, &c.findings()).CheckRecovered(is_crash);
  }
}

void Open(HistoryCall& c) {
  if (c.state().is_open()) {
    c.Mistake("the DB is open");
    return;
  }
  c.state().families()[c.cf()].options.clear();
  OpenWithArguments(c, /*is_crash=*/false);
}

// Returns false and records a mistake if there has been no "open".
bool HasBeenOpened(HistoryCall& c) {
  if (c.state().families().count(c.cf()) == 0) {
    c.Mistake("\"open\" comes first");
    return false;
  }
  return true;
}

void Reopen(HistoryCall& c) {
  if (HasBeenOpened(c)) {
    c.state().Close();
    OpenWithArguments(c, /*is_crash=*/false);
  }
}

void Crash(HistoryCall& c) {
  if (!HasBeenOpened(c)) {
    return;
  }
  const Status s = c.state().Crash();
  if (!s.ok()) {
    c.Disagree("simulating the crash: " + s.ToString());
  } else {
    OpenWithArguments(c, /*is_crash=*/true);
  }
}

void Close(HistoryCall& c) {
  if (!c.args().empty()) {
    c.Usage();
    return;
  }
  c.state().Close();
}

void Destroy(HistoryCall& c) {
  if (!c.args().empty() || c.state().families().empty()) {
    c.Usage();
    return;
  }
  c.Report(c.state().Destroy());
}

void ChangeFamily(HistoryCall& c) {
  if (c.args().size() < 2) {
    c.Usage();
    return;
  }
  const std::string action = c.args()[0];
  const std::string name = c.args()[1];
  const bool exists = c.state().families().count(name) != 0;
  if (action == "create" && !exists) {
    HistoryOptionList options;
    if (!c.TakeOptions(HistoryWords(c.args().begin() + 2, c.args().end()),
                       &options) ||
        !KnowsMergeOperator(c, options)) {
      return;
    }
    if (c.Report(c.state().CreateFamily(name, options))) {
      c.model().CreateFamily(name, HistoryOptions::MergeOperator(options));
    } else {
      c.state().DoubtFamily(name, options);
    }
  } else if (action == "drop" && name != kDefaultColumnFamilyName && exists) {
    if (c.Report(c.state().DropFamily(name))) {
      c.model().DropFamily(name);
    } else {
      c.state().DoubtFamily(name, c.state().families().at(name).options);
    }
  } else {
    c.Usage();
  }
}

void SetOptions(HistoryCall& c) {
  HistoryOptionList list;
  if (c.args().empty() || !c.TakeOptions(c.args(), &list)) {
    c.Usage();
    return;
  }
  HistoryOptionList fixed;
  if (c.state().overrides() != nullptr) {
    for (const auto& option : *c.state().overrides()) {
      HistoryOptions::Add(option.first, option.second, &fixed);
    }
  }
  std::unordered_map<std::string, std::string> map;
  for (const auto& option : list) {
    if (HistoryOptions::Find(fixed, option.first) == nullptr) {
      map[option.first] = option.second;
    }
  }
  if (map.empty() || c.Report(c.db()->SetOptions(c.handle(), map))) {
    for (const auto& option : list) {
      HistoryOptions::Set(option.first, option.second, &c.family().options);
    }
  }
}

}  // namespace

const std::vector<HistoryStep>& HistoryOpenSteps() {
  static const std::vector<HistoryStep> kSteps = {
      {"open", Open, false, false, "open [option=value...]"},
      {"reopen", Reopen, false, false, "reopen [option=value...]"},
      {"crash", Crash, false, false, "crash [option=value...]"},
      {"close", Close, false, true, "close"},
      {"destroy", Destroy, false, false, "destroy"},
      {"family", ChangeFamily, false, true,
       "family create NAME [option=value...] | family drop NAME"},
      {"setoptions", SetOptions, false, true, "setoptions option=value..."},
  };
  return kSteps;
}

}  // namespace ROCKSDB_NAMESPACE
