//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_sweep_test_util.h"

#include <algorithm>
#include <utility>

#include "test_util/strata/history_flips_test_util.h"
#include "test_util/strata/history_saved_db_test_util.h"
#include "util/hash.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kOwn[] = "own";

// A point has few findings, and what follows from the first ones.
constexpr size_t kMaxFindings = 5;

uint32_t SeedFor(const std::string& name, uint32_t seed) {
  return Hash(name.data(), name.size(), seed);
}

bool IsFlip(const HistorySweepKind& kind) {
  return kind.ending == HistorySweepKind::Ending::kFlip;
}

// Returns the variants of a sweep, each of which has other kinds of files.
std::vector<const HistoryVariant*> SweepVariants() {
  std::vector<const HistoryVariant*> chosen;
  for (const HistoryVariant& variant : HistoryVariants()) {
    for (const char* name : {"map", "deltas", "map-deltas", "map-tiers"}) {
      if (variant.name == name) {
        chosen.push_back(&variant);
      }
    }
  }
  return chosen;
}

}  // namespace

HistorySweep::HistorySweep(const HistorySweepOptions& options, std::string root,
                           HistorySweepTotals* totals, HistorySweepWatch* watch)
    : options_(options),
      root_(std::move(root)),
      totals_(*totals),
      watch_(*watch) {}

std::string HistorySweep::Command(const std::string& name, Variant variant,
                                  const std::string& point) const {
  std::string command = "STRATA_SWEEP_SEED=" + std::to_string(options_.seed);
  command.append(" STRATA_SWEEP_SCRIPT=").append(name);
  command.append(" STRATA_SWEEP_VARIANT=")
      .append(variant == nullptr ? kOwn : variant->name);
  if (!point.empty()) {
    command.append(" STRATA_SWEEP_POINT=").append(point);
  }
  return command.append(
      " build/debug/history_sweep_test --gtest_filter='Scripts*'");
}

std::vector<HistorySweep::Variant> HistorySweep::ChooseVariants(
    const std::string& name, const HistoryScript& script) const {
  std::vector<Variant> variants = {nullptr};
  for (const Variant variant : SweepVariants()) {
    if (script.all_variants() ||
        std::find(script.variants().begin(), script.variants().end(),
                  variant->name) != script.variants().end()) {
      variants.push_back(variant);
    }
  }
  if (!options_.variant.empty()) {
    std::erase_if(variants, [this](Variant variant) {
      return options_.variant !=
             (variant == nullptr ? kOwn : variant->name.c_str());
    });
  } else if (!options_.all) {
    Random rnd(SeedFor(name, options_.seed));
    variants = {variants[rnd.Uniform(static_cast<int>(variants.size()))]};
  }
  return variants;
}

void HistorySweep::Run(const std::string& name, const HistoryScript& script) {
  totals_.AddScript();
  for (const Variant variant : ChooseVariants(name, script)) {
    RunVariant(name, script, variant);
  }
}

void HistorySweep::RunVariant(const std::string& name,
                              const HistoryScript& script, Variant variant) {
  HistorySweepTrace trace;
  if (!MakeTrace(name, script, variant, &trace)) {
    return;
  }
  Points flips;
  for (const HistorySweepPoint& point : ChoosePoints(name, trace)) {
    if (IsFlip(*point.kind)) {
      flips.push_back(point);
    } else {
      RunPoint(name, script, variant, trace, point);
    }
  }
  if (!flips.empty()) {
    RunFlips(name, script, variant, trace, flips);
  }
}

bool HistorySweep::MakeTrace(const std::string& name,
                             const HistoryScript& script, Variant variant,
                             HistorySweepTrace* trace) {
  const std::string command = Command(name, variant, "");
  watch_.Begin(command);
  HistorySweepRun run(script, variant, root_);
  HistoryFindings& findings = *run.interpreter().mutable_findings();
  const Status s = run.Start();
  if (s.ok()) {
    *trace = run.RunWithoutFault();
  } else {
    findings.Disagree(s.ToString());
  }
  if (!findings.mistake().ok()) {
    findings.Disagree(findings.mistake().ToString());
  }
  watch_.End();
  AddFindings(findings, command, "no fault");
  return findings.disagreements().empty();
}

HistorySweep::Points HistorySweep::ChoosePoints(
    const std::string& name, const HistorySweepTrace& trace) const {
  HistorySweepPoint chosen;
  if (HistorySweepPoint::Parse(options_.point, &chosen)) {
    return {chosen};
  }
  Points points;
  if (options_.all) {
    for (const HistorySweepKind& kind : HistorySweepKinds()) {
      if (options_.kind.empty() || options_.kind == kind.name) {
        for (uint64_t n = 1; n <= trace.NumPoints(kind); ++n) {
          points.push_back({&kind, n});
        }
      }
    }
  } else {
    points = ChooseAnyPoints(name, trace);
  }
  const auto after = std::find_if(points.begin(), points.end(),
                                  [this](const HistorySweepPoint& point) {
                                    return point.ToString() == options_.after;
                                  });
  if (after != points.end()) {
    points.erase(points.begin(), after + 1);
  }
  return points;
}

HistorySweep::Points HistorySweep::ChooseAnyPoints(
    const std::string& name, const HistorySweepTrace& trace) const {
  std::vector<const HistorySweepKind*> kinds;
  for (const HistorySweepKind& kind : HistorySweepKinds()) {
    if (trace.NumPoints(kind) > 0 &&
        (options_.kind.empty() || options_.kind == kind.name)) {
      kinds.push_back(&kind);
    }
  }
  Points points;
  Random rnd(SeedFor(name, options_.seed + 1));
  for (size_t i = 0; i < options_.num_points && !kinds.empty(); ++i) {
    const HistorySweepKind* const kind =
        kinds[rnd.Uniform(static_cast<int>(kinds.size()))];
    const int num_points = static_cast<int>(trace.NumPoints(*kind));
    points.push_back({kind, uint64_t{rnd.Uniform(num_points)} + 1});
  }
  // Flips run together, so they come last.
  std::stable_partition(
      points.begin(), points.end(),
      [](const HistorySweepPoint& point) { return !IsFlip(*point.kind); });
  return points;
}

void HistorySweep::RunPoint(const std::string& name,
                            const HistoryScript& script, Variant variant,
                            const HistorySweepTrace& trace,
                            const HistorySweepPoint& point) {
  const std::string command = Command(name, variant, point.ToString());
  watch_.Begin(command);
  {
    HistorySweepRun run(script, variant, root_);
    HistoryFindings& findings = *run.interpreter().mutable_findings();
    HistorySweepOutcome outcome = HistorySweepOutcome::kNotReached;
    std::string at;
    const Status s = run.Start();
    if (s.ok()) {
      const HistorySweepRun::End end = run.RunWithFault(trace, point);
      at = run.db().faults().injector().fired_at();
      outcome = Judge(&run, end, trace, point);
    } else {
      findings.Disagree(s.ToString());
    }
    if (run.has_reopened()) {
      outcome = std::max(outcome, HistorySweepOutcome::kReopened);
    } else if (run.has_resumed()) {
      outcome = std::max(outcome, HistorySweepOutcome::kResumed);
    }
    totals_.AddPoint(at.empty() ? HistorySweepOutcome::kNotReached : outcome,
                     run.num_errors() > trace.num_errors);
    AddFindings(findings, command, at);
  }
  watch_.End();
}

HistorySweepOutcome HistorySweep::Judge(HistorySweepRun* run,
                                        HistorySweepRun::End end,
                                        const HistorySweepTrace& trace,
                                        const HistorySweepPoint& point) const {
  HistoryFindings& findings = *run->interpreter().mutable_findings();
  findings.SetPlace("after step " + std::to_string(run->last_step() + 1) +
                    ": ");
  HistorySweepJudge judge(&run->db(), &findings);
  switch (end) {
    case HistorySweepRun::End::kRefused:
      return judge.JudgeRefusal(run->refusal(), /*may_refuse=*/false);
    case HistorySweepRun::End::kCrashed: {
      HistorySweepKind kind = *point.kind;
      kind.crash.seed = options_.seed + static_cast<uint32_t>(point.n);
      return judge.JudgeAfterCrash(kind, run->is_destroying(),
                                   !trace.is_open[run->last_step()]);
    }
    case HistorySweepRun::End::kDone:
      break;
  }
  return judge.JudgeAfterError(trace.ends_openable);
}

void HistorySweep::RunFlips(const std::string& name,
                            const HistoryScript& script, Variant variant,
                            const HistorySweepTrace& trace,
                            const Points& points) {
  const std::string first = Command(name, variant, points[0].ToString());
  watch_.Begin(first);
  HistorySweepRun run(script, variant, root_);
  HistorySavedDb saved(&run.db());
  std::vector<HistoryFlip> flips;
  Status s = run.Start();
  if (s.ok()) {
    run.RunWithFault(trace, points[0]);
    s = HistoryFlips::List(run.db(), &flips);
  }
  if (s.ok()) {
    s = saved.Save();
  }
  AddFindings(run.interpreter().findings(), first, "no fault");
  for (const HistorySweepPoint& point : points) {
    const std::string command = Command(name, variant, point.ToString());
    watch_.Begin(command);
    HistoryFindings findings;
    HistorySweepOutcome outcome = HistorySweepOutcome::kNotReached;
    std::string at;
    if (s.ok() && point.n <= flips.size()) {
      const HistoryFlip& flip = flips[static_cast<size_t>(point.n - 1)];
      at = flip.ToString(run.db().root());
      s = HistoryFlips::Apply(flip);
      if (s.ok()) {
        outcome = HistorySweepJudge(&run.db(), &findings).JudgeAfterFlip(flip);
        s = saved.Restore();
      }
    }
    if (!s.ok()) {
      findings.Disagree("flipping a bit: " + s.ToString());
    }
    totals_.AddPoint(outcome, findings.num_errors() > 0);
    AddFindings(findings, command, at);
  }
  watch_.End();
}

void HistorySweep::AddFindings(const HistoryFindings& findings,
                               const std::string& command,
                               const std::string& at) {
  const std::vector<std::string>& all = findings.disagreements();
  if (all.empty()) {
    return;
  }
  std::string text = "repeat with: " + command + "\nat: " + at + "\n";
  for (size_t i = 0; i < std::min(all.size(), kMaxFindings); ++i) {
    text.append(all[i]).append("\n");
  }
  if (all.size() > kMaxFindings) {
    text.append("and ").append(std::to_string(all.size() - kMaxFindings));
    text.append(" more\n");
  }
  findings_.push_back(text);
  totals_.AddFinding();
}

}  // namespace ROCKSDB_NAMESPACE
