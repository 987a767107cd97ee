//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/seeded_metamorphic_test_util.h"

#include <unistd.h>

#include <random>

#include "rocksdb/env.h"
#include "test_util/strata/history_interpreter_test_util.h"
#include "test_util/strata/history_script_test_util.h"
#include "test_util/strata/history_variants_test_util.h"
#include "test_util/strata/metamorphic_script_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The files that the process reads and writes besides those of the history.
std::string InputPath(const std::string& root) { return root + ".in"; }
std::string RecordPath(const std::string& root) { return root + ".out"; }

// Returns the part of the text that says how the process ended.
std::string SeededLastWords(const std::string& text) {
  constexpr size_t kMaxSize = 10000;
  // The report of a deadlock begins with the reason.
  const size_t report = text.find("SeededThreads: ");
  if (report != std::string::npos) {
    return text.substr(report, kMaxSize);
  }
  return text.substr(text.size() > kMaxSize ? text.size() - kMaxSize : 0);
}

}  // namespace

SeededThreads::Options SeededMetamorphicRunner::ThreadOptions(
    uint64_t schedule_seed) {
  SeededThreads::Options options = SeededOptions(schedule_seed);
  // Histories have from thousands to some hundred thousands of steps of their
  // threads. Change points must lie within the history to have an effect, so
  // the length that is expected varies over this range, by powers of two.
  constexpr uint64_t kShortest = 4096;
  constexpr uint64_t kDoublings = 8;
  options.schedule.expected_steps =
      kShortest << (std::mt19937_64(schedule_seed)() % kDoublings);
  // The longest histories have several hundred steps, and some of them read all
  // contents.
  options.max_steps = 50 * 1000 * 1000;
  return options;
}

SeededResult SeededMetamorphicRunner::RunHere(uint64_t /*schedule_seed*/,
                                              const std::string& root) {
  SeededResult result;
  std::string text;
  HistoryScript script;
  Status s = ReadFileToString(Env::Default(), InputPath(root), &text);
  if (s.ok()) {
    s = HistoryScript::Parse("history", text, &script);
  }
  if (!s.ok()) {
    result.complaints = s.ToString() + "\n";
    return result;
  }
  MetamorphicRun::RunHere(MetamorphicSteps(script), script.overrides(), root,
                          RecordPath(root),
                          [&](HistoryInterpreter* interpreter) {
                            interpreter->db().Close();
                            result.files = DescribeSeededFiles(root);
                          });
  return result;
}

MetamorphicOutcome SeededMetamorphicRunner::Run(
    const std::vector<HistoryWords>& steps,
    const std::vector<HistoryOptionList>& lists, uint64_t schedule_seed,
    unsigned timeout_seconds) {
  const std::string root = SeededRoot();
  const std::string input = InputPath(root);
  const std::string record = RecordPath(root);
  HistoryVariant set{"", lists};
  // A script cannot say that a single list has no options. Such a list replaces
  // nothing.
  if (lists.size() == 1 && lists[0].empty()) {
    set.lists.clear();
  }
  text_.clear();
  unlink(record.c_str());
  MetamorphicOutcome outcome;
  outcome.schedule_seed = schedule_seed;
  const Status s = WriteStringToFile(
      Env::Default(), MetamorphicScript({}, steps, set, {}), input);
  if (!s.ok()) {
    outcome.mistake = s.ToString();
    return outcome;
  }
  const SeededRun run = RunSeed(history_, schedule_seed, timeout_seconds);
  text_ = run.text;
  const bool has_end = MetamorphicRun::ReadRecord(record, &outcome);
  if (!has_end || !run.is_right) {
    outcome.end = run.has_hung ? MetamorphicOutcome::End::kHung
                               : MetamorphicOutcome::End::kDied;
    outcome.last_words = SeededLastWords(text_);
  }
  unlink(input.c_str());
  unlink(record.c_str());
  return outcome;
}

}  // namespace ROCKSDB_NAMESPACE
