//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/metamorphic_shrinker_test_util.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "test_util/strata/metamorphic_state_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns a word with a smaller value in it, or the word itself: "@5000:A7"
// becomes "@60:A7", and that becomes "A7".
std::string Smaller(const std::string& word) {
  const size_t at = word.find('@');
  const size_t colon = word.find(':', at);
  // "@NAME" is a snapshot.
  if (at == std::string::npos || colon == std::string::npos ||
      word.find_first_of("0123456789", at) != at + 1) {
    return word;
  }
  if (colon - at <= 3) {
    return word.substr(0, at) + word.substr(colon + 1);
  }
  return word.substr(0, at) + "@60" + word.substr(colon);
}

// Options that do not fit together, or an open without one that the DB needs.
bool IsRefusal(const MetamorphicFinding& finding) {
  return finding.what.find("error: Invalid argument") != std::string::npos;
}

// Returns true if the finding can be what an earlier one has become with fewer
// steps and options. A refusal is what every history becomes once an option is
// left out that others need.
bool IsLike(const MetamorphicFinding& finding,
            const MetamorphicFinding& earlier) {
  return finding.kind == earlier.kind &&
         finding.set.lists.empty() == earlier.set.lists.empty() &&
         (!IsRefusal(finding) || IsRefusal(earlier));
}

}  // namespace

bool MetamorphicShrinker::Try(std::vector<HistoryWords> steps,
                              const HistoryVariant& set, Case* best) {
  steps = MetamorphicState::Valid(steps);
  for (int i = 0; i < num_tries_ && may_go_on_(); ++i) {
    if (begin_try_) {
      begin_try_(*best, i);
    }
    std::optional<MetamorphicFinding> finding = check_.RunOwn(steps);
    if (!finding.has_value() && !set.lists.empty()) {
      finding = check_.RunSet(steps, set);
    }
    if (finding.has_value() && IsLike(*finding, best->finding)) {
      best->steps = std::move(steps);
      best->finding = std::move(*finding);
      return true;
    }
  }
  return false;
}

void MetamorphicShrinker::ShrinkSteps(Case* best) {
  size_t chunk = std::max<size_t>(best->steps.size() / 2, 1);
  while (may_go_on_()) {
    bool is_shorter = false;
    // From the end, since later steps depend on earlier ones.
    for (size_t end = best->steps.size(); end > 1 && may_go_on_();) {
      const size_t begin = end > chunk + 1 ? end - chunk : 1;
      std::vector<HistoryWords> steps = best->steps;
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(begin),
                  steps.begin() + static_cast<std::ptrdiff_t>(end));
      if (Try(std::move(steps), best->finding.set, best)) {
        is_shorter = true;
      }
      end = std::min(begin, best->steps.size());
    }
    if (chunk > 1) {
      chunk /= 2;
    } else if (!is_shorter) {
      break;
    }
  }
}

void MetamorphicShrinker::ShrinkOptions(Case* best) {
  // Fewer lists first.
  for (size_t i = 0; best->finding.set.lists.size() > 1 &&
                     i < best->finding.set.lists.size();) {
    HistoryVariant set = best->finding.set;
    set.lists.erase(set.lists.begin() + static_cast<std::ptrdiff_t>(i));
    if (!Try(best->steps, set, best)) {
      ++i;
    }
  }
  for (size_t i = 0; i < best->finding.set.lists.size(); ++i) {
    for (size_t j = best->finding.set.lists[i].size(); j-- > 0;) {
      HistoryVariant set = best->finding.set;
      set.lists[i].erase(set.lists[i].begin() + static_cast<std::ptrdiff_t>(j));
      Try(best->steps, set, best);
    }
  }
}

void MetamorphicShrinker::ShrinkValues(Case* best) {
  for (size_t i = 0; i < best->steps.size(); ++i) {
    for (size_t j = 1; j < best->steps[i].size(); ++j) {
      while (may_go_on_()) {
        std::vector<HistoryWords> steps = best->steps;
        steps[i][j] = Smaller(steps[i][j]);
        if (steps[i][j] == best->steps[i][j] ||
            !Try(std::move(steps), best->finding.set, best)) {
          break;
        }
      }
    }
  }
}

MetamorphicShrinker::Case MetamorphicShrinker::Shrink(Case found,
                                                      bool* is_repeatable) {
  Case best = found;
  *is_repeatable = Try(best.steps, best.finding.set, &best);
  if (!*is_repeatable) {
    return found;
  }
  ShrinkSteps(&best);
  ShrinkOptions(&best);
  ShrinkSteps(&best);
  ShrinkValues(&best);
  return best;
}

}  // namespace ROCKSDB_NAMESPACE
