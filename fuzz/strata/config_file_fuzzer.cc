//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Parses arbitrary text as a file of STRATA_CONFIG, and applies what was
// parsed.
//
// The promise: a text that is refused gives InvalidArgument with the number of
// a line, and changes nothing. What was parsed is the same after it was written
// as text and parsed again. Patterns can be compared with any name. Lines of
// our own options are applied, or refused with their line; applied again, they
// change nothing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "options/strata/own_option_lines.h"
#include "options/strata_config/config_applier.h"
#include "options/strata_config/config_directories.h"
#include "options/strata_config/config_file.h"
#include "options/strata_config/option_texts.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;

// What files are made of, besides arbitrary bytes.
const char* const kPieces[] = {
    "\n",
    "[DBOptions \"*\"]\n",
    "[DBOptions \"/a/*\"]\n",
    "[DBOptions \"/a\"]\n",
    "[CFOptions \"*\" \"*\"]\n",
    "[CFOptions \"/a/b\" \"d[ef]?\\*\"]\n",
    "[CFOptions",
    "\"",
    "]",
    "#",
    "\\",
    "# strata: ",
    "=",
    "{db}",
    "/a",
    ",",
    "wal_mmap_buffer_size = 64k\n",
    "max_write_groups_per_leader=",
    "db_paths = {dir}:1g, /s/{db}\n",
    "cf_paths=/f,/s\n",
    "level_sst_path_ids = 0:1\n",
    "enable_blob_address_map=true\n",
    "blob_gc_space_amp_limit=",
    "delta_bucket_size = ",
    "wal_dir=/w\n",
    "1",
    "9",
    "true",
    " ",
};

std::string MakeText(FuzzInput* input) {
  std::string text;
  for (int n = input->Byte() % 24; n > 0; --n) {
    const uint8_t which = input->Byte();
    if (which % 8 == 0) {
      text += input->String(16);
    } else {
      text += kPieces[which % (sizeof(kPieces) / sizeof(kPieces[0]))];
    }
  }
  return text;
}

std::string Write(const ConfigFile& file) {
  std::string text;
  for (const ConfigFile::Section& section : file.sections()) {
    text += section.kind == ConfigFile::Section::kDB
                ? "[DBOptions \"" + section.db.text()
                : "[CFOptions \"" + section.db.text() + "\" \"" +
                      section.family.text();
    text += "\"]\n";
    for (const ConfigFile::Line& line : section.lines) {
      text += line.name + "=" + line.value + "\n";
    }
  }
  return text;
}

void RequireSame(const ConfigFile& a, const ConfigFile& b) {
  Require(a.sections().size() == b.sections().size());
  for (size_t i = 0; i < a.sections().size(); ++i) {
    const ConfigFile::Section& x = a.sections()[i];
    const ConfigFile::Section& y = b.sections()[i];
    Require(x.kind == y.kind);
    Require(x.db.text() == y.db.text());
    Require(x.family.text() == y.family.text());
    Require(x.lines.size() == y.lines.size());
    for (size_t j = 0; j < x.lines.size(); ++j) {
      Require(x.lines[j].name == y.lines[j].name);
      Require(x.lines[j].value == y.lines[j].value);
    }
  }
}

void CheckNumbers(const ConfigFile& file, const std::string& text) {
  size_t last = 0;
  for (const ConfigFile::Section& section : file.sections()) {
    Require(section.number > last);
    last = section.number;
    for (const ConfigFile::Line& line : section.lines) {
      Require(line.number > last);
      last = line.number;
    }
  }
  Require(last <=
          1 + static_cast<size_t>(std::count(text.begin(), text.end(), '\n')));
}

void FuzzMatches(const ConfigFile& file, FuzzInput* input) {
  const std::string name = "/" + input->String(16);
  for (const ConfigFile::Section& section : file.sections()) {
    for (const ConfigGlob* glob : {&section.db, &section.family}) {
      bool matches = false;
      Require(glob->Match(name, &matches).ok());
      Require(matches || !glob->MatchesAll());
      if (glob->is_literal() && !glob->text().empty()) {
        Require(matches == (glob->literal() == name));
        Require(glob->Match(glob->literal(), &matches).ok());
        Require(matches);
      }
    }
  }
}

bool HasOnlyOwnOptions(const ConfigFile& file) {
  constexpr size_t kMaxLines = 8;
  size_t num_lines = 0;
  for (const ConfigFile::Section& section : file.sections()) {
    num_lines += section.lines.size();
    for (const ConfigFile::Line& line : section.lines) {
      if (!OwnOptionLines::IsOwn(line.name) &&
          !ConfigDirectories::IsPathList(line.name)) {
        return false;
      }
    }
  }
  return num_lines <= kMaxLines;
}

template <typename Apply, typename Options>
void FuzzApply(const Apply& apply, Options options) {
  const OptionTexts before = TextsOf(options);
  std::vector<ConfigChange> changes;
  const Status s = apply(&options, &changes);
  if (!s.ok()) {
    Require(s.IsInvalidArgument());
    Require(s.ToString().find("/c.ini:") != std::string::npos);
    Require(TextsOf(options) == before);
    Require(changes.empty());
    return;
  }
  const OptionTexts after = TextsOf(options);
  changes.clear();
  Require(apply(&options, &changes).ok());
  Require(TextsOf(options) == after);
}

void FuzzApplier(const ConfigFile& file) {
  ConfigApplier applier(&file, Env::Default(), "/a/b");
  const Status s = applier.CheckAll();
  Require(s.ok() || s.IsInvalidArgument());
  FuzzApply(
      [&](DBOptions* options, std::vector<ConfigChange>* changes) {
        return applier.Apply(options, changes);
      },
      DBOptions());
  FuzzApply(
      [&](ColumnFamilyOptions* options, std::vector<ConfigChange>* changes) {
        return applier.Apply("default", options, changes);
      },
      ColumnFamilyOptions());
}

void FuzzConfigFile(FuzzInput* input) {
  const bool applies = input->Byte() % 4 == 0;
  std::string text = MakeText(input);
  const std::string name = input->String(16);
  text += input->Rest();
  ConfigFile file;
  Require(ConfigFile::Parse("before", "[DBOptions \"/x\"]", &file).ok());
  const Status s = ConfigFile::Parse("/c.ini", text, &file);
  if (!s.ok()) {
    Require(s.IsInvalidArgument());
    Require(s.ToString().find("/c.ini:") != std::string::npos);
    Require(file.name() == "before" && file.sections().size() == 1);
    return;
  }
  CheckNumbers(file, text);
  ConfigFile again;
  Require(ConfigFile::Parse("/c.ini", Write(file), &again).ok());
  RequireSame(again, file);
  FuzzInput rest(reinterpret_cast<const uint8_t*>(name.data()), name.size());
  FuzzMatches(file, &rest);
  if (applies && HasOnlyOwnOptions(file)) {
    FuzzApplier(file);
  }
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(config_file, ROCKSDB_NAMESPACE::FuzzConfigFile)
