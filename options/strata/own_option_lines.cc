//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/own_option_lines.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "options/strata/path_options.h"
#include "options/strata/strata_cf_options.h"
#include "rocksdb/utilities/options_type.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kMark = "# strata: ";
const char* const kBlanks = " \t\r";

std::unordered_set<std::string> OwnNames() {
  std::unordered_set<std::string> names;
  for (const auto* infos :
       {StrataImmutableCFOptions::TypeInfo(),
        StrataMutableCFOptions::TypeInfo(),
        StrataImmutableDBOptions::TypeInfo(), CfPathsOption::TypeInfo()}) {
    for (const auto& option : *infos) {
      names.insert(option.first);
    }
  }
  return names;
}

}  // namespace

bool OwnOptionLines::IsOwn(const std::string& name) {
  static const auto* const names =
      new std::unordered_set<std::string>(OwnNames());
  return names->count(name) > 0;
}

std::string OwnOptionLines::Hide(const std::string& section) {
  std::string result;
  size_t begin = 0;
  while (begin < section.size()) {
    const size_t end =
        std::min(section.find('\n', begin), section.size() - 1) + 1;
    const std::string line = section.substr(begin, end - begin);
    const size_t name = line.find_first_not_of(kBlanks);
    const size_t equals = line.find('=');
    if (name != std::string::npos && equals != std::string::npos &&
        name < equals && IsOwn(line.substr(name, equals - name))) {
      result += line.substr(0, name) + kMark + line.substr(name);
    } else {
      result += line;
    }
    begin = end;
  }
  return result;
}

std::string OwnOptionLines::Reveal(const std::string& line) {
  const std::string mark = kMark;
  const size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string::npos ||
      line.compare(begin, mark.size(), mark) != 0) {
    return line;
  }
  return line.substr(begin + mark.size());
}

}  // namespace ROCKSDB_NAMESPACE
