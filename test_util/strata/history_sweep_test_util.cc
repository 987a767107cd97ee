//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_sweep_test_util.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "test_util/strata/history_words_test_util.h"
#include "util/hash.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kOwn[] = "own";

// A point has few findings, and what follows from the first ones.
constexpr size_t kMaxFindings = 5;

std::string FromEnv(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool ParseSeed(const std::string& text, uint32_t* seed) {
  uint64_t number = 0;
  if (!HistoryArguments::ParseNumber(text, &number) || number > UINT32_MAX) {
    return false;
  }
  *seed = static_cast<uint32_t>(number);
  return true;
}

uint32_t SeedFor(const std::string& name, uint32_t seed) {
  return Hash(name.data(), name.size(), seed);
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

bool HistorySweepOptions::FromEnvironment(HistorySweepOptions* options,
                                          std::string* error) {
  const std::string which = FromEnv("STRATA_SWEEP");
  uint64_t number = 0;
  if (which == "all") {
    options->all = true;
  } else if (HistoryArguments::ParseNumber(which, &number)) {
    options->num_points = static_cast<size_t>(number);
  } else if (!which.empty()) {
    *error = "STRATA_SWEEP is neither \"all\" nor a number of points";
    return false;
  }
  const std::string seed = FromEnv("STRATA_SWEEP_SEED");
  if (!seed.empty() && !ParseSeed(seed, &options->seed)) {
    *error = "STRATA_SWEEP_SEED is no number of 32 bits";
    return false;
  }
  options->script = FromEnv("STRATA_SWEEP_SCRIPT");
  options->variant = FromEnv("STRATA_SWEEP_VARIANT");
  options->kind = FromEnv("STRATA_SWEEP_KIND");
  options->point = FromEnv("STRATA_SWEEP_POINT");
  options->after = FromEnv("STRATA_SWEEP_AFTER");
  HistorySweepPoint point;
  if (!options->kind.empty() &&
      !HistorySweepPoint::Parse(options->kind + ":1", &point)) {
    *error = "STRATA_SWEEP_KIND is no kind of fault";
    return false;
  }
  if (!options->point.empty() &&
      !HistorySweepPoint::Parse(options->point, &point)) {
    *error = "STRATA_SWEEP_POINT is not KIND:N";
    return false;
  }
  if (!options->after.empty() &&
      !HistorySweepPoint::Parse(options->after, &point)) {
    *error = "STRATA_SWEEP_AFTER is not KIND:N";
    return false;
  }
  return true;
}

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
  for (const HistorySweepPoint& point : ChoosePoints(name, trace)) {
    RunPoint(name, script, variant, trace, point);
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

std::vector<HistorySweepPoint> HistorySweep::ChoosePoints(
    const std::string& name, const HistorySweepTrace& trace) const {
  HistorySweepPoint chosen;
  if (HistorySweepPoint::Parse(options_.point, &chosen)) {
    return {chosen};
  }
  std::vector<const HistorySweepKind*> kinds;
  for (const HistorySweepKind& kind : HistorySweepKinds()) {
    if (trace.NumPoints(kind) > 0 &&
        (options_.kind.empty() || options_.kind == kind.name)) {
      kinds.push_back(&kind);
    }
  }
  std::vector<HistorySweepPoint> points;
  if (options_.all) {
    for (const HistorySweepKind* kind : kinds) {
      for (uint64_t n = 1; n <= trace.NumPoints(*kind); ++n) {
        points.push_back({kind, n});
      }
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
  Random rnd(SeedFor(name, options_.seed + 1));
  for (size_t i = 0; i < options_.num_points && !kinds.empty(); ++i) {
    const HistorySweepKind* const kind =
        kinds[rnd.Uniform(static_cast<int>(kinds.size()))];
    const int num_points = static_cast<int>(trace.NumPoints(*kind));
    points.push_back({kind, uint64_t{rnd.Uniform(num_points)} + 1});
  }
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
      outcome = RunAndJudge(&run, trace, point, &at);
    } else {
      findings.Disagree(s.ToString());
    }
    totals_.AddPoint(at.empty() ? HistorySweepOutcome::kNotReached : outcome,
                     run.num_errors() > trace.num_errors);
    AddFindings(findings, command, at);
  }
  watch_.End();
}

HistorySweepOutcome HistorySweep::RunAndJudge(HistorySweepRun* run,
                                              const HistorySweepTrace& trace,
                                              const HistorySweepPoint& point,
                                              std::string* at) const {
  const HistorySweepRun::End end = run->RunWithFault(trace, point);
  *at = run->db().faults().injector().fired_at();
  HistoryFindings& findings = *run->interpreter().mutable_findings();
  findings.SetPlace("after step " + std::to_string(run->last_step() + 1) +
                    ": ");
  HistorySweepJudge judge(&run->db(), &findings);
  if (point.kind->ending == HistorySweepKind::Ending::kFlip) {
    std::vector<HistoryFlip> flips;
    Status s = HistoryFlips::List(run->db(), &flips);
    if (s.ok() && point.n <= flips.size()) {
      const HistoryFlip& flip = flips[static_cast<size_t>(point.n - 1)];
      s = HistoryFlips::Apply(flip);
      *at = flip.ToString(run->db().root());
      if (s.ok()) {
        return judge.JudgeAfterFlip(flip);
      }
    }
    if (!s.ok()) {
      findings.Disagree("flipping a bit: " + s.ToString());
    }
    return HistorySweepOutcome::kNotReached;
  }
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
      return judge.JudgeAfterError(trace.ends_openable);
  }
  return HistorySweepOutcome::kNotReached;
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
