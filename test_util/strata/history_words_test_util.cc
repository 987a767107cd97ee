//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_words_test_util.h"

#include <algorithm>
#include <cstdlib>

namespace ROCKSDB_NAMESPACE {

bool HistoryArguments::ParseNumber(const std::string& text, uint64_t* number) {
  if (text.empty() || text.size() > 18 ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    return false;
  }
  *number = std::strtoull(text.c_str(), nullptr, 10);
  return true;
}

bool HistoryArguments::TakeNamed(HistoryWords* words, const std::string& name,
                                 std::string* value) {
  for (auto it = words->begin(); it != words->end(); ++it) {
    if (it->compare(0, name.size() + 1, name + "=") == 0) {
      *value = it->substr(name.size() + 1);
      words->erase(it);
      return true;
    }
  }
  return false;
}

bool HistoryArguments::TakeWord(HistoryWords* words, const std::string& word) {
  const auto it = std::find(words->begin(), words->end(), word);
  if (it == words->end()) {
    return false;
  }
  words->erase(it);
  return true;
}

void HistoryArguments::TakeFamily(HistoryWords* words, std::string* cf) {
  if (!words->empty() && words->front().compare(0, 3, "cf=") == 0) {
    *cf = words->front().substr(3);
    words->erase(words->begin());
  }
}

std::vector<HistoryWords> HistoryArguments::SplitAtSemicolons(
    const HistoryWords& words) {
  std::vector<HistoryWords> parts(1);
  for (const std::string& word : words) {
    if (word == ";") {
      parts.emplace_back();
    } else {
      parts.back().push_back(word);
    }
  }
  return parts;
}

}  // namespace ROCKSDB_NAMESPACE
