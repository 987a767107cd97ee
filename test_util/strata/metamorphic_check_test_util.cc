//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/metamorphic_check_test_util.h"

#include <algorithm>

#include "test_util/strata/metamorphic_state_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Finding = MetamorphicFinding;

std::string TextOf(const HistoryWords& words) {
  std::string text;
  for (const std::string& word : words) {
    text.append(text.empty() ? "" : " ").append(word);
  }
  return text;
}

}  // namespace

std::optional<Finding> MetamorphicCheck::Judge(
    const HistoryVariant& set, const MetamorphicOutcome& outcome) {
  ++num_runs_;
  num_steps_ += outcome.outputs.size();
  if (!outcome.mistake.empty()) {
    return Finding{Finding::Kind::kMistake, set, outcome.mistake,
                   outcome.schedule_seed};
  }
  // An answer that was wrong before the process died is the better hint.
  if (!outcome.disagreements.empty()) {
    return Finding{Finding::Kind::kWrong, set, outcome.disagreements[0],
                   outcome.schedule_seed};
  }
  if (outcome.end != MetamorphicOutcome::End::kFinished) {
    return Finding{outcome.end == MetamorphicOutcome::End::kHung
                       ? Finding::Kind::kHung
                       : Finding::Kind::kDied,
                   set,
                   "after step " + std::to_string(outcome.outputs.size()) +
                       ": " + outcome.last_words,
                   outcome.schedule_seed};
  }
  return std::nullopt;
}

std::optional<Finding> MetamorphicCheck::RunOwn(
    const std::vector<HistoryWords>& steps) {
  MetamorphicOutcome outcome = runner_(steps, {});
  std::optional<Finding> finding = Judge({"own options", {}}, outcome);
  own_outputs_ = std::move(outcome.outputs);
  return finding;
}

std::optional<Finding> MetamorphicCheck::RunSet(
    const std::vector<HistoryWords>& steps, const HistoryVariant& set) {
  const MetamorphicOutcome outcome = runner_(steps, set.lists);
  std::optional<Finding> finding = Judge(set, outcome);
  if (finding.has_value()) {
    return finding;
  }
  const size_t num_comparable =
      std::min({MetamorphicState::NumComparable(steps), outcome.outputs.size(),
                own_outputs_.size()});
  for (size_t i = 0; i < num_comparable; ++i) {
    if (own_outputs_[i].kind == HistoryOutputKind::kUndecided ||
        outcome.outputs[i].kind == HistoryOutputKind::kUndecided) {
      break;
    }
    if (own_outputs_[i].kind == HistoryOutputKind::kSame &&
        outcome.outputs[i].text != own_outputs_[i].text) {
      return Finding{Finding::Kind::kWrong, set,
                     "step " + std::to_string(i) + ": " + TextOf(steps[i]) +
                         "\n" + outcome.outputs[i].text +
                         "but with the history's own options:\n" +
                         own_outputs_[i].text,
                     outcome.schedule_seed};
    }
  }
  return std::nullopt;
}

}  // namespace ROCKSDB_NAMESPACE
