//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/options_file_copy.h"

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "options/strata/own_option_lines.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kSpaces = " \t\r\n";

// A line "name=value" or "# strata: name=value".
struct OptionLine {
  std::string name;  // empty: the line is no option
  std::string value;
};

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  return begin == std::string::npos
             ? ""
             : text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

OptionLine Parse(const std::string& line) {
  OptionLine result;
  const std::string revealed = Trim(OwnOptionLines::Reveal(line));
  const size_t equals = revealed.find('=');
  if (!revealed.empty() && revealed[0] != '#' && revealed[0] != '[' &&
      equals != std::string::npos) {
    result.name = Trim(revealed.substr(0, equals));
    result.value = Trim(revealed.substr(equals + 1));
  }
  return result;
}

enum class Section { kDB, kColumnFamily, kOther };

Section SectionOf(const std::string& line) {
  const std::string trimmed = Trim(line);
  if (trimmed.rfind("[DBOptions", 0) == 0) {
    return Section::kDB;
  }
  return trimmed.rfind("[CFOptions", 0) == 0 ? Section::kColumnFamily
                                             : Section::kOther;
}

// Calls fn(section, line) for each line of the text, which has its line break.
void ForEachLine(
    const std::string& text,
    const std::function<void(Section, const std::string& line)>& fn) {
  Section section = Section::kOther;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    if (Trim(line).rfind('[', 0) == 0) {
      section = SectionOf(line);
    }
    fn(section, line);
    begin = end;
  }
}

bool IsOneOf(const std::string& name, std::initializer_list<const char*> list) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

std::string OptionsFileCopy::IntoOneDirectory(const std::string& text,
                                              bool keeps_wal_dir) {
  std::string result;
  ForEachLine(text, [&](Section section, const std::string& line) {
    const OptionLine option = Parse(line);
    if (section == Section::kColumnFamily &&
        IsOneOf(option.name, {"cf_paths", "level_sst_path_ids",
                              "level_blob_path_ids", "delta_sorted_path_id"})) {
      return;
    }
    if (!keeps_wal_dir && section == Section::kDB && !option.value.empty() &&
        IsOneOf(option.name, {"wal_dir", "db_log_dir"})) {
      result += line.substr(0, line.find('=') + 1) + "\n";
      return;
    }
    result += line;
  });
  return result;
}

bool OptionsFileCopy::HasPaths(const std::string& text) {
  bool has_paths = false;
  ForEachLine(text, [&](Section section, const std::string& line) {
    const OptionLine option = Parse(line);
    has_paths =
        has_paths || (section == Section::kColumnFamily &&
                      option.name == "cf_paths" && !option.value.empty());
  });
  return has_paths;
}

}  // namespace ROCKSDB_NAMESPACE
