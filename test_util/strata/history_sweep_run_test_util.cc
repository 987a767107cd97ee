//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_sweep_run_test_util.h"

#include <algorithm>
#include <utility>

#include "db/db_impl/db_impl.h"
#include "test_util/strata/history_verifier_test_util.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Steps behind those of each script. The last one leaves something in the WAL.
const std::vector<HistoryWords>& LastSteps() {
  static const std::vector<HistoryWords> kSteps = {
      {"reopen"}, {"verify"}, {"put", "~last", "@20"}};
  return kSteps;
}

bool IsStep(HistoryWords words, const std::string& name) {
  std::string cf;
  HistoryArguments::TakeFamily(&words, &cf);
  return !words.empty() && words[0] == name;
}

}  // namespace

uint64_t HistorySweepTrace::NumPoints(const HistorySweepKind& kind) const {
  if (kind.ending == HistorySweepKind::Ending::kFlip) {
    return num_flips;
  }
  uint64_t points = 0;
  for (const HistoryFileOp op : kind.ops) {
    points += counts[static_cast<size_t>(op)];
  }
  return points;
}

HistorySweepRun::HistorySweepRun(const HistoryScript& script,
                                 const HistoryVariant* variant,
                                 const std::string& root)
    : interpreter_(root, variant == nullptr ? std::vector<HistoryOptionList>()
                                            : variant->lists) {
  for (const HistoryBlock& block : script.blocks()) {
    for (const HistoryCommand& command : block.commands) {
      steps_.push_back({command.words, script.Where(command.line)});
    }
  }
  num_script_steps_ = steps_.size();
  for (const HistoryWords& words : LastSteps()) {
    steps_.push_back({words, script.name() + ": after the last step: "});
  }
}

bool HistorySweepRun::is_destroying() const {
  return IsStep(steps_[last_step_].words, "destroy");
}

void HistorySweepRun::RunStep(size_t index) {
  paths_before_.clear();
  for (const auto& [name, family] : db().families()) {
    const std::string* const paths =
        HistoryOptions::Find(family.options, "paths");
    paths_before_[name] = paths == nullptr ? "" : *paths;
  }
  HistoryInterpreter::Output output;
  interpreter_.Run(steps_[index].words, steps_[index].place, &output);
  num_errors_ += output.text.find("error: ") != std::string::npos ? 1 : 0;
  last_step_ = index;
}

HistorySweepTrace HistorySweepRun::RunWithoutFault() {
  HistorySweepTrace trace;
  HistoryInjector& injector = db().faults().injector();
  HistoryFindings& findings = *interpreter_.mutable_findings();
  // The steps must do the same as in a run with a fault, or the numbers of the
  // operations differ.
  findings.AllowErrors(true);
  injector.Arm(HistoryInjector::Fault());
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (i == num_script_steps_) {
      if (!db().is_open()) {
        break;
      }
      db().faults().ClearRules();
    }
    trace.errors_before.push_back(num_errors_);
    RunStep(i);
    trace.is_open.push_back(db().is_open());
  }
  for (size_t i = 0; i < kNumHistoryFileOps; ++i) {
    trace.counts[i] = injector.count(static_cast<HistoryFileOp>(i));
  }
  db().Close();
  trace.num_errors = num_errors_;
  if (findings.num_errors() > 0) {
    findings.Disagree("reads fail without a fault");
  }
  db().faults().ClearRules();
  if (db().families().empty()) {
    return trace;
  }
  std::vector<HistoryFlip> flips;
  const Status listed = HistoryFlips::List(db(), &flips);
  if (!listed.ok()) {
    findings.Disagree("files: " + listed.ToString());
  }
  trace.ends_openable = db().Open().ok();
  trace.num_flips = trace.ends_openable ? flips.size() : 0;
  return trace;
}

HistorySweepRun::End HistorySweepRun::RunWithFault(
    const HistorySweepTrace& trace, const HistorySweepPoint& point) {
  const HistorySweepKind& kind = *point.kind;
  HistoryFindings& findings = *interpreter_.mutable_findings();
  HistoryInjector& injector = db().faults().injector();
  const bool is_flip = kind.ending == HistorySweepKind::Ending::kFlip;
  findings.AllowErrors(true);
  HistoryInjector::Fault fault;
  fault.ops = kind.ops;
  fault.effect = kind.effect;
  fault.n = is_flip ? 0 : point.n;
  injector.Arm(std::move(fault));
  const bool revives =
      kind.ending == HistorySweepKind::Ending::kGoesOn && point.n % 2 == 1;
  for (size_t i = 0; i < trace.is_open.size(); ++i) {
    if (i == num_script_steps_) {
      db().faults().ClearRules();
    }
    has_failed_before_ = num_errors_ > trace.errors_before[i];
    RunStep(i);
    if (kind.ending == HistorySweepKind::Ending::kCrash &&
        injector.has_fired()) {
      return End::kCrashed;
    }
    if (!Repeat(i, trace.is_open[i])) {
      return injector.is_crashed() ? End::kCrashed : End::kRefused;
    }
    // A rule of the script may be what stops the DB.
    if (revives && !has_resumed_ && injector.has_fired() &&
        !db().faults().has_rules() && !Revive()) {
      return End::kRefused;
    }
  }
  if (is_flip) {
    db().Close();
  }
  return End::kDone;
}

bool HistorySweepRun::Repeat(size_t index, bool must_be_open) {
  if (db().is_open() || db().families().empty()) {
    return true;
  }
  // A rule of the script may make these fail for longer.
  if (IsStep(steps_[index].words, "destroy")) {
    RunStep(index);
    if (!db().families().empty() && !db().faults().has_rules()) {
      interpreter_.mutable_findings()->Disagree(
          "the DB cannot be destroyed after the fault");
    }
    return true;
  }
  if (!must_be_open || db().faults().has_rules()) {
    return true;
  }
  return Open();
}

bool HistorySweepRun::Revive() {
  if (!db().is_open()) {
    return true;
  }
  DBImpl* const impl = static_cast_with_check<DBImpl>(db().db()->GetRootDB());
  if (impl->TEST_GetBGError().ok()) {
    return true;
  }
  has_resumed_ = true;
  if (impl->Resume().ok()) {
    return true;
  }
  db().Close();
  return Open();
}

std::vector<std::string> HistorySweepRun::Directories(
    const std::string& paths) {
  HistoryOptionList list;
  HistoryOptions::Set("paths", paths, &list);
  Options options;
  std::vector<std::string> directories;
  HistoryOptions::Make(list, /*overrides=*/nullptr, db().root(), db().env(),
                       &options, &directories)
      .PermitUncheckedError();
  return directories;
}

bool HistorySweepRun::GiveBackPaths() {
  if (!has_failed_before_) {
    return false;
  }
  bool is_changed = false;
  for (const auto& [name, paths] : paths_before_) {
    const auto family = db().families().find(name);
    if (paths.empty() || family == db().families().end()) {
      continue;
    }
    HistoryOptionList& options = family->second.options;
    const std::string* const now = HistoryOptions::Find(options, "paths");
    const std::vector<std::string> left =
        Directories(now == nullptr ? "1" : *now);
    const std::vector<std::string> before = Directories(paths);
    const bool has_lost_one = std::any_of(
        before.begin(), before.end(), [&](const std::string& directory) {
          return std::find(left.begin(), left.end(), directory) == left.end();
        });
    if (has_lost_one) {
      HistoryOptions::Set("paths", paths, &options);
      is_changed = true;
    }
  }
  return is_changed;
}

bool HistorySweepRun::Open() {
  has_reopened_ = true;
  refusal_ = db().Open();
  if (!refusal_.ok()) {
    // The first attempt may have been the one with the fault.
    refusal_ = db().Open();
  }
  if (refusal_.IsInvalidArgument() && GiveBackPaths()) {
    refusal_ = db().Open();
  }
  if (!refusal_.ok()) {
    return false;
  }
  HistoryVerifier(&db(), interpreter_.mutable_findings())
      .CheckRecovered(/*is_crash=*/false);
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
