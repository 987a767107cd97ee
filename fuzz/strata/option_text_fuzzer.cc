//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Parses arbitrary text as what users write about our options: lists of paths
// and path ids, option strings, and lines of an OPTIONS file.
//
// The promise: what is parsed is the same after it was written as text and
// parsed again. A text that is refused changes nothing, and the error is
// InvalidArgument. In an OPTIONS file RocksDB sees no line of an option that
// it does not have, and we see all of them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "options/options_parser.h"
#include "options/strata/option_text.h"
#include "options/strata/own_option_lines.h"
#include "options/strata/strata_cf_options.h"
#include "options/strata/strata_option_table.h"
#include "rocksdb/convenience.h"
#include "rocksdb/options.h"
#include "util/strata/path_list.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;

#define FUZZ_OPTION_NAME(kind, name, ...) #name,

const char* const kFamilyOptions[] = {
    STRATA_IMMUTABLE_CF_OPTIONS(FUZZ_OPTION_NAME)
        STRATA_MUTABLE_CF_OPTIONS(FUZZ_OPTION_NAME) "cf_paths",
    "delta_parallel_reads", "no_such_option"};
const char* const kDBOptions[] = {
    STRATA_IMMUTABLE_DB_OPTIONS(FUZZ_OPTION_NAME) "no_such_option"};

#undef FUZZ_OPTION_NAME

// What values are made of, besides arbitrary bytes.
const char* const kWords[] = {"true",  "false", "0",     "1",   "64k",  "1.5",
                              "0.7",   "-1",    "1e300", "nan", "0:1",  "/a",
                              "/b:1g", ",",     ":",     "{",   "}",    "%3A",
                              "%",     " ",     "\\",    "#",   "1000", "4096"};

template <size_t n>
std::string OneOf(const char* const (&texts)[n], FuzzInput* input) {
  return texts[input->Byte() % n];
}

// Returns the text up to its first zero byte: flags and lines have none.
std::string UpToZero(const std::string& text) { return text.c_str(); }

std::string MakeValue(FuzzInput* input) {
  std::string value;
  for (int n = input->Byte() % 4; n > 0; --n) {
    value += input->Byte() % 4 != 0 ? OneOf(kWords, input)
                                    : UpToZero(input->String(12));
  }
  return value;
}

bool SamePaths(const std::vector<DbPath>& a, const std::vector<DbPath>& b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].path != b[i].path || a[i].target_size != b[i].target_size) {
      return false;
    }
  }
  return true;
}

// ---- Lists.

void CheckPaths(const std::vector<DbPath>& paths) {
  const std::string text = PathListToString(paths);
  // Neither a comment nor an escape or a separator of an OPTIONS file.
  Require(text.find_first_of("#\\;={} \t\r\n") == std::string::npos);
  std::vector<DbPath> again;
  Require(ParsePathList(text, &again).ok());
  Require(SamePaths(again, paths));
}

void FuzzPaths(FuzzInput* input) {
  std::string text = MakeValue(input);
  text += UpToZero(input->Rest());
  const std::vector<DbPath> before = {{"/before", 1}};
  std::vector<DbPath> paths = before;
  const Status s = ParsePathList(text, &paths);
  if (s.ok()) {
    for (const DbPath& path : paths) {
      Require(!path.path.empty());
    }
    CheckPaths(paths);
  } else {
    Require(s.IsInvalidArgument());
    Require(SamePaths(paths, before));
  }

  // A zero byte is refused wherever it is.
  text.insert(text.size() / 2, 1, '\0');
  paths = before;
  Require(ParsePathList(text, &paths).IsInvalidArgument());
  Require(SamePaths(paths, before));

  // Any path can be written.
  std::vector<DbPath> any;
  while (!input->empty()) {
    const std::string path = UpToZero(input->String(20));
    if (!path.empty()) {
      any.emplace_back(path, input->Number());
    }
  }
  CheckPaths(any);
}

void FuzzIds(FuzzInput* input) {
  std::string text = MakeValue(input);
  text += UpToZero(input->String(200));
  const std::vector<uint32_t> before = {7};
  std::vector<uint32_t> ids = before;
  const Status s = ParsePathIds(text, &ids);
  if (s.ok()) {
    std::vector<uint32_t> again;
    Require(ParsePathIds(PathIdsToString(ids), &again).ok());
    Require(again == ids);
  } else {
    Require(s.IsInvalidArgument());
    Require(ids == before);
  }

  // The same lists as flags of a tool.
  ColumnFamilyOptions options;
  const std::string paths_text = MakeValue(input);
  std::vector<DbPath> paths;
  const Status paths_status = ParsePathList(paths_text, &paths);
  const Status flags = ApplyPathFlags(paths_text, /*level_sst_path_ids=*/text,
                                      /*level_blob_path_ids=*/"", &options);
  Require(flags.ok() == (s.ok() && paths_status.ok()));
  Require(flags.ok() || flags.ToString().find("--") != std::string::npos);
  Require(options.level_blob_path_ids.empty());
  Require(
      SamePaths(options.cf_paths, flags.ok() ? paths : std::vector<DbPath>()));
  Require(options.level_sst_path_ids ==
          (flags.ok() ? ids : std::vector<uint32_t>()));
}

// ---- Option strings.

#define FUZZ_SAME_OPTION(kind, name, ...) \
  Require(OptionText(a.name) == OptionText(b.name));

void RequireSame(const ColumnFamilyOptions& a, const ColumnFamilyOptions& b) {
  STRATA_IMMUTABLE_CF_OPTIONS(FUZZ_SAME_OPTION)
  STRATA_MUTABLE_CF_OPTIONS(FUZZ_SAME_OPTION)
}

void RequireSame(const DBOptions& a, const DBOptions& b) {
  STRATA_IMMUTABLE_DB_OPTIONS(FUZZ_SAME_OPTION)
}

#undef FUZZ_SAME_OPTION

// Returns an option string. A semicolon in a value would begin an option of
// RocksDB.
template <size_t n>
std::string MakeOptions(const char* const (&names)[n], FuzzInput* input) {
  std::string text;
  for (int i = 1 + input->Byte() % 4; i > 0; --i) {
    std::string value = OneOf(names, input) + "=";
    value += MakeValue(input);
    for (char& c : value) {
      c = c == ';' ? ',' : c;
    }
    text += value + ";";
  }
  return text;
}

void FuzzFamilyOptions(FuzzInput* input) {
  const std::string text = MakeOptions(kFamilyOptions, input);
  ColumnFamilyOptions base;
  base.level_sst_path_ids = {0, 1};
  base.cf_paths = {{"/fast", 1000}, {"/slow", 2000}};
  ColumnFamilyOptions options;
  const ConfigOptions config;
  const Status s =
      GetColumnFamilyOptionsFromString(config, base, text, &options);
  if (!s.ok()) {
    Require(s.IsInvalidArgument());
    RequireSame(options, base);
    Require(SamePaths(options.cf_paths, base.cf_paths));
    return;
  }
  if (!ValidateStrataRanges(options).ok()) {
    return;  // no database has them
  }
  std::string written;
  Require(GetStringFromColumnFamilyOptions(config, options, &written).ok());
  ColumnFamilyOptions again;
  Require(GetColumnFamilyOptionsFromString(config, ColumnFamilyOptions(),
                                           written, &again)
              .ok());
  RequireSame(again, options);
  // Paths are only written for options that name them, and a single one is not.
  if ((!options.level_sst_path_ids.empty() ||
       !options.level_blob_path_ids.empty() ||
       options.delta_sorted_path_id >= 0 || !options.path_prices.empty()) &&
      options.cf_paths.size() > 1) {
    Require(SamePaths(again.cf_paths, options.cf_paths));
  }
}

void FuzzDBOptions(FuzzInput* input) {
  const std::string text = MakeOptions(kDBOptions, input);
  const DBOptions base;
  DBOptions options;
  const ConfigOptions config;
  const Status s = GetDBOptionsFromString(config, base, text, &options);
  if (!s.ok()) {
    Require(s.IsInvalidArgument());
    RequireSame(options, base);
    return;
  }
  if (!ValidateStrataRanges(options).ok()) {
    return;
  }
  std::string written;
  Require(GetStringFromDBOptions(config, options, &written).ok());
  DBOptions again;
  Require(GetDBOptionsFromString(config, base, written, &again).ok());
  RequireSame(again, options);
}

// ---- Lines of an OPTIONS file.

void FuzzLines(FuzzInput* input) {
  std::string section;
  std::string hidden;
  for (int n = input->Byte() % 8; n > 0; --n) {
    const uint8_t how = input->Byte();
    std::string line = how % 2 == 0 ? "  " : "";
    line += how % 4 < 2 ? OneOf(kFamilyOptions, input) + "="
                        : input->String(20) + "=";
    line += MakeValue(input);
    for (char& c : line) {
      c = c == '\n' ? ' ' : c;
    }
    const std::string hidden_line = OwnOptionLines::Hide(line);
    const size_t name = line.find_first_not_of(" \t\r");
    const size_t equals = line.find('=');
    const bool is_own = name < equals &&
                        OwnOptionLines::IsOwn(line.substr(name, equals - name));
    if (is_own) {
      Require(OwnOptionLines::Reveal(hidden_line) == line.substr(name));
      Require(RocksDBOptionsParser::TrimAndRemoveComment(hidden_line).empty());
    } else {
      Require(hidden_line == line);
    }
    section += line + "\n";
    hidden += hidden_line + "\n";
  }
  Require(OwnOptionLines::Hide(section) == hidden);
  const std::string rest = input->Rest();
  Require(OwnOptionLines::Hide(OwnOptionLines::Hide(rest)) ==
          OwnOptionLines::Hide(rest));
  Require(OwnOptionLines::Reveal(rest).size() <= rest.size());
}

void FuzzOptionText(FuzzInput* input) {
  switch (input->Byte() % 8) {
    case 0:
    case 1:
      FuzzPaths(input);
      break;
    case 2:
    case 3:
      FuzzIds(input);
      break;
    case 4:
      FuzzFamilyOptions(input);
      break;
    case 5:
      FuzzDBOptions(input);
      break;
    default:
      FuzzLines(input);
      break;
  }
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(option_text, ROCKSDB_NAMESPACE::FuzzOptionText)
