//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/options_file_copy.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <vector>

#include "options/strata/own_option_lines.h"
#include "util/strata/path_list.h"
#include "util/string_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A line "name=value" or "# strata: name=value".
struct OptionLine {
  std::string name;  // empty: the line is no option
  std::string value;
};

OptionLine Parse(const std::string& line) {
  OptionLine result;
  const std::string revealed = trim(OwnOptionLines::Reveal(line));
  const size_t equals = revealed.find('=');
  if (!revealed.empty() && revealed[0] != '#' && revealed[0] != '[' &&
      equals != std::string::npos) {
    result.name = trim(revealed.substr(0, equals));
    result.value = trim(revealed.substr(equals + 1));
  }
  return result;
}

struct Section {
  enum Kind { kDB, kColumnFamily, kOther };

  Kind kind = kOther;
  std::string name;  // empty: the section is not about a column family
};

Section ParseSection(const std::string& header) {
  Section section;
  if (header.rfind("[DBOptions", 0) == 0) {
    section.kind = Section::kDB;
  } else if (header.rfind("[CFOptions", 0) == 0) {
    section.kind = Section::kColumnFamily;
  }
  if (section.kind == Section::kColumnFamily ||
      header.rfind("[TableOptions/", 0) == 0) {
    const size_t begin = header.find('"');
    const size_t end = header.rfind('"');
    if (begin < end) {
      section.name =
          UnescapeOptionString(header.substr(begin + 1, end - begin - 1));
    }
  }
  return section;
}

bool IsHeader(const std::string& line) { return trim(line).rfind('[', 0) == 0; }

// Calls fn(section, line) for each line of the text, which has its line break.
// The header of a section is its first line.
void ForEachLine(const std::string& text,
                 const std::function<void(const Section& section,
                                          const std::string& line)>& fn) {
  Section section;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    if (IsHeader(line)) {
      section = ParseSection(trim(line));
    }
    fn(section, line);
    begin = end;
  }
}

bool IsOneOf(const std::string& name, std::initializer_list<const char*> list) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Returns the line of one of the options that RocksDB does not have.
std::string LineOf(const char* name, const std::string& value) {
  return OwnOptionLines::Hide(std::string("  ") + name + "=" + value) + "\n";
}

// Returns the lines of an OPTIONS file for a layout.
std::string LinesOf(const CopyLayout::ColumnFamily& layout) {
  std::string lines;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      lines += LineOf(name, value);
    }
  };
  add("level_sst_path_ids", PathIdsToString(layout.level_sst_path_ids));
  add("level_blob_path_ids", PathIdsToString(layout.level_blob_path_ids));
  if (layout.delta_sorted_path_id >= 0) {
    add("delta_sorted_path_id", std::to_string(layout.delta_sorted_path_id));
  }
  add("cf_paths", PathListToString(layout.cf_paths));
  return lines;
}

// Returns true if the line has cf_paths that are not empty.
bool IsPaths(const Section& section, const OptionLine& option) {
  return section.kind == Section::kColumnFamily && option.name == "cf_paths" &&
         !option.value.empty();
}

// Returns true if the line has an option that RocksDB does not have.
bool IsOwnOption(const Section& section, const OptionLine& option) {
  return section.kind != Section::kOther && OwnOptionLines::IsOwn(option.name);
}

// Calls fn(value) for each cf_paths in the text that is not empty.
void ForEachPaths(const std::string& text,
                  const std::function<void(const std::string& value)>& fn) {
  ForEachLine(text, [&](const Section& section, const std::string& line) {
    const OptionLine option = Parse(line);
    if (IsPaths(section, option)) {
      fn(option.value);
    }
  });
}

}  // namespace

std::string OptionsFileCopy::IntoOneDirectory(const std::string& text,
                                              bool keeps_wal_dir) {
  std::set<std::string> families;
  std::string result;
  IntoLayout(
      text, keeps_wal_dir, [](const std::string&) { return nullptr; },
      &families, &result)
      .PermitUncheckedError();  // No layout is wrong.
  return result;
}

Status OptionsFileCopy::IntoLayout(const std::string& text, bool keeps_wal_dir,
                                   const LayoutOfFamily& layout_of,
                                   std::set<std::string>* families,
                                   std::string* result) {
  families->clear();
  result->clear();
  Status s;
  ForEachLine(text, [&](const Section& section, const std::string& line) {
    const bool is_family = section.kind == Section::kColumnFamily;
    const OptionLine option = Parse(line);
    if (is_family &&
        IsOneOf(option.name,
                {"cf_paths", "level_sst_path_ids", "level_blob_path_ids",
                 "delta_sorted_path_id", "path_prices", "blob_hot_bytes",
                 "blob_hot_path_id"})) {
      return;
    }
    if (!keeps_wal_dir && section.kind == Section::kDB &&
        !option.value.empty() &&
        IsOneOf(option.name, {"wal_dir", "db_log_dir"})) {
      *result += line.substr(0, line.find('=') + 1) + "\n";
      return;
    }
    *result += line;
    if (!is_family) {
      return;
    }
    const CopyLayout::ColumnFamily* const layout = layout_of(section.name);
    if (IsHeader(line)) {
      families->insert(section.name);
      if (layout != nullptr) {
        *result += line.back() == '\n' ? "" : "\n";
        *result += LinesOf(*layout);
      }
    } else if (layout != nullptr && option.name == "compaction_style" &&
               IsOneOf(option.value,
                       {"kCompactionStyleFIFO", "kCompactionStyleNone"}) &&
               s.ok()) {
      s = Status::NotSupported("A copy of column family \"" + section.name +
                               "\" cannot have several paths: it has " +
                               option.value);
    }
  });
  return s;
}

std::string OptionsFileCopy::OnlyFamilies(
    const std::string& text, const std::set<std::string>& families) {
  std::string result;
  ForEachLine(text, [&](const Section& section, const std::string& line) {
    if (section.name.empty() || families.count(section.name) > 0) {
      result += line;
    }
  });
  return result;
}

bool OptionsFileCopy::HasPaths(const std::string& text) {
  bool has_paths = false;
  ForEachPaths(text, [&](const std::string&) { has_paths = true; });
  return has_paths;
}

std::string OptionsFileCopy::ReplacePaths(const std::string& text,
                                          const PathsOfFamily& paths_of,
                                          std::set<std::string>* families) {
  families->clear();
  std::string result;
  ForEachLine(text, [&](const Section& section, const std::string& line) {
    const std::vector<DbPath>* paths = nullptr;
    if (IsPaths(section, Parse(line))) {
      families->insert(section.name);
      paths = paths_of(section.name);
    }
    result +=
        paths == nullptr ? line : LineOf("cf_paths", PathListToString(*paths));
  });
  return result;
}

std::vector<OptionsFileCopy::OwnOption> OptionsFileCopy::OwnOptions(
    const std::string& text) {
  std::vector<OwnOption> options;
  ForEachLine(text, [&](const Section& section, const std::string& line) {
    const OptionLine option = Parse(line);
    if (IsOwnOption(section, option)) {
      options.push_back({section.name, option.name, option.value});
    }
  });
  return options;
}

std::string OptionsFileCopy::WithoutOwnOptions(
    const std::string& text,
    const std::function<bool(const std::string& name)>& drops) {
  std::string result;
  ForEachLine(text, [&](const Section& section, const std::string& line) {
    const OptionLine option = Parse(line);
    if (!IsOwnOption(section, option) || !drops(option.name)) {
      result += line;
    }
  });
  return result;
}

std::string OptionsFileCopy::WithOwnOptionsOf(const std::string& text,
                                              const std::string& other) {
  // Lines by section; that of the database has no name.
  std::map<std::string, std::string> lines;
  ForEachLine(other, [&](const Section& section, const std::string& line) {
    if (IsOwnOption(section, Parse(line))) {
      lines[section.name] += line;
      lines[section.name] += line.back() == '\n' ? "" : "\n";
    }
  });
  std::string result;
  ForEachLine(text, [&](const Section& section, const std::string& line) {
    if (!IsOwnOption(section, Parse(line))) {
      result += line;
    }
    if (section.kind != Section::kOther && IsHeader(line)) {
      result += line.back() == '\n' ? "" : "\n";
      result += lines[section.name];
    }
  });
  return result;
}

std::string OptionsFileCopy::WithOwnOption(
    const std::string& text, const std::set<std::string>& families,
    const std::string& name, const std::string& value) {
  std::string result;
  ForEachLine(text, [&](const Section& section, const std::string& line) {
    result += line;
    if (section.kind == Section::kColumnFamily && IsHeader(line) &&
        families.count(section.name) > 0) {
      result += line.back() == '\n' ? "" : "\n";
      result += LineOf(name.c_str(), value);
    }
  });
  return result;
}

Status OptionsFileCopy::AddPaths(const std::string& text,
                                 std::set<std::string>* directories) {
  Status s;
  ForEachPaths(text, [&](const std::string& value) {
    std::vector<DbPath> paths;
    if (s.ok()) {
      s = ParsePathList(value, &paths);
    }
    for (const DbPath& path : paths) {
      directories->insert(path.path);
    }
  });
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
