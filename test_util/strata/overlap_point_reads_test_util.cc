//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_point_reads_test_util.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "rocksdb/options.h"
#include "test_util/strata/overlap_lookup_test_util.h"

namespace ROCKSDB_NAMESPACE {

void OverlapPointReads::ReadSome(size_t writer, OverlapDice* dice) {
  const uint64_t kind = dice->Below(6);
  const size_t n = kind < 3 ? 1 : 2 + dice->Below(12);
  const size_t family = dice->Below(OverlapDb::kNumFamilies);
  OverlapLookup lookup(&state_, dice, n, family, writer,
                       /*is_cross=*/kind == 5);
  std::vector<Answer> answers(n);
  for (size_t i = 0; i < n; ++i) {
    const OverlapLookup::Key& key = lookup.keys()[i];
    answers[i].family = key.family;
    answers[i].writer = writer;
    answers[i].index = key.index;
    answers[i].floor = state_.history(key.family, writer, key.index).GetFloor();
  }
  const ReadOptions read_options = OverlapLookup::RandomOptions(dice);
  if (n == 1 && dice->OneIn(8)) {
    lookup.RunEntity(read_options);
  } else if (n == 1 && state_.options().merges && dice->OneIn(8)) {
    lookup.RunOperands(read_options, /*counts=*/dice->OneIn(2));
  } else {
    lookup.Run(read_options);
  }
  for (size_t i = 0; i < n; ++i) {
    answers[i].status = lookup.keys()[i].status;
    answers[i].found = lookup.keys()[i].found;
  }
  Check(lookup.what(), answers);
}

void OverlapPointReads::ReadAll(size_t family, size_t writer,
                                const std::string& when) {
  std::vector<Answer> answers(state_.options().keys);
  for (size_t i = 0; i < answers.size(); ++i) {
    Answer& answer = answers[i];
    answer.family = family;
    answer.writer = writer;
    answer.index = i;
    answer.floor = state_.history(family, writer, i).GetFloor();
    std::string value;
    answer.status = state_.db()->Get(ReadOptions(), state_.db().family(family),
                                     OverlapValues::KeyName(writer, i), &value);
    if (answer.status.ok()) {
      answer.found = std::make_shared<std::string>(value);
    }
  }
  Check("Get() " + when, answers);
}

bool OverlapPointReads::CheckOne(const std::string& what, const Answer& answer,
                                 Intervals* intervals) {
  const std::string name =
      OverlapState::Name(answer.family, answer.writer, answer.index);
  if (!answer.status.ok() && !answer.status.IsNotFound()) {
    state_.findings().Must(answer.status, what + " of " + name);
    return false;
  }
  std::string expected;
  if (!state_.history(answer.family, answer.writer, answer.index)
           .Check(answer.floor, answer.found, intervals, &expected)) {
    state_.findings().Report(
        "WRONG " + what + " of " + name + " from step " +
        std::to_string(answer.floor.step) +
        (answer.floor.was_filtered ? " (filtered)" : "") + ": found " +
        OverlapValues::Describe(answer.found) + "; history:" + expected);
    return false;
  }
  return true;
}

void OverlapPointReads::Check(const std::string& what,
                              const std::vector<Answer>& answers) {
  state_.counts().reads += answers.size();
  std::vector<Intervals> all(answers.size());
  bool is_right = true;
  for (size_t i = 0; i < answers.size(); ++i) {
    is_right = CheckOne(what, answers[i], &all[i]) && is_right;
  }
  if (is_right && answers.size() > 1 && !HaveCommonStep(all)) {
    std::string text = "WRONG " + what + ": the answers are not of one moment:";
    for (size_t i = 0; i < answers.size(); ++i) {
      const Answer& answer = answers[i];
      text += " " +
              OverlapState::Name(answer.family, answer.writer, answer.index) +
              "=" + OverlapValues::Describe(answer.found) + " in steps";
      for (const OverlapKeyHistory::Interval& interval : all[i]) {
        text += " [" + std::to_string(interval.first) + ", " +
                (interval.second == std::numeric_limits<uint64_t>::max()
                     ? "now"
                     : std::to_string(interval.second)) +
                ")";
      }
      text += ";";
    }
    state_.findings().Report(text);
  }
}

bool OverlapPointReads::HaveCommonStep(const std::vector<Intervals>& all) {
  std::set<uint64_t> steps;
  for (const Intervals& intervals : all) {
    for (const auto& interval : intervals) {
      steps.insert(interval.first);
    }
  }
  return std::any_of(steps.begin(), steps.end(), [&all](uint64_t step) {
    return std::all_of(
        all.begin(), all.end(), [step](const Intervals& intervals) {
          return std::any_of(intervals.begin(), intervals.end(),
                             [step](const OverlapKeyHistory::Interval& i) {
                               return i.first <= step && step < i.second;
                             });
        });
  });
}

}  // namespace ROCKSDB_NAMESPACE
