//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_applier.h"

#include <unordered_map>
#include <utility>

#include "options/strata_config/config_directories.h"
#include "options/strata_config/config_rules.h"
#include "rocksdb/advanced_cache.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/options_type.h"
#include "util/strata/path_list.h"
#include "util/strata/status_message.h"
#include "util/string_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = ConfigFile::Section::Kind;
using OptionMap = std::unordered_map<std::string, std::string>;

const char* const kDBPaths = "db_paths";

Status SetOptions(const ConfigOptions& config, const OptionMap& map,
                  const DBOptions& before, DBOptions* after) {
  return GetDBOptionsFromMap(config, before, map, after);
}

Status SetOptions(const ConfigOptions& config, const OptionMap& map,
                  const ColumnFamilyOptions& before,
                  ColumnFamilyOptions* after) {
  return GetColumnFamilyOptionsFromMap(config, before, map, after);
}

// The parser does not know db_paths, while cf_paths are an option of ours.
bool SetDBPaths(const std::string& value, DBOptions* options, Status* s) {
  *s = ParsePathList(OptionTypeInfo::StripOuterBraces(value),
                     &options->db_paths);
  return true;
}

bool SetDBPaths(const std::string& /*value*/, ColumnFamilyOptions* /*options*/,
                Status* /*s*/) {
  return false;
}

// Any table factory is right in a section that is only checked, so the options
// have none, which a line for any kind of factory makes then.
void PrepareToCheck(DBOptions* /*options*/) {}
void PrepareToCheck(ColumnFamilyOptions* options) {
  options->table_factory.reset();
}

// The parser needs a comparator, which a line can have taken away.
void AddComparator(DBOptions* /*options*/) {}
void AddComparator(ColumnFamilyOptions* options) {
  if (options->comparator == nullptr) {
    options->comparator = BytewiseComparator();
  }
}

// Returns where the option belongs if it is one of the other kind of sections.
template <typename Other>
std::string OtherSection(const ConfigOptions& config,
                         const ConfigFile::Line& line,
                         const char* other_section) {
  ConfigOptions lenient = config;
  lenient.ignore_unsupported_options = true;
  Other before;
  Other after;
  PrepareToCheck(&before);
  const bool is_other =
      SetOptions(lenient, {{line.name, line.value}}, before, &after).ok();
  return is_other
             ? std::string(". It is an option for a section ") + other_section
             : std::string();
}

std::string HintFor(const DBOptions& /*options*/, const ConfigOptions& config,
                    const ConfigFile::Line& line) {
  return OtherSection<ColumnFamilyOptions>(config, line, "[CFOptions]");
}

std::string HintFor(const ColumnFamilyOptions& /*options*/,
                    const ConfigOptions& config, const ConfigFile::Line& line) {
  return line.name == kDBPaths
             ? ". It is an option for a section [DBOptions]"
             : OtherSection<DBOptions>(config, line, "[DBOptions]");
}

// Calls add(option, from, to) for each difference.
template <typename Add>
void ForEachDifference(const OptionTexts& before, const OptionTexts& after,
                       const Add& add) {
  const std::string none;
  for (const auto& [option, text] : before) {
    const auto found = after.find(option);
    const std::string& to = found == after.end() ? none : found->second;
    if (to != text) {
      add(option, text, to);
    }
  }
  for (const auto& [option, text] : after) {
    if (before.count(option) == 0 && !text.empty()) {
      add(option, none, text);
    }
  }
}

void AddChanges(const ConfigFile::Line& line, const std::string* family,
                bool is_db, const OptionTexts& before, const OptionTexts& after,
                std::vector<ConfigChange>* changes) {
  ConfigChange change;
  change.line = line.number;
  change.is_db = is_db;
  change.family = family == nullptr ? "" : *family;
  const size_t size = changes->size();
  ForEachDifference(before, after,
                    [&](const std::string& option, const std::string& from,
                        const std::string& to) {
                      change.option = option;
                      change.from = from;
                      change.to = to;
                      changes->push_back(change);
                    });
  if (changes->size() > size) {
    return;
  }
  change.option = line.name;
  const auto found = after.find(line.name);
  if (found != after.end()) {
    change.from = change.to = found->second;
  }
  changes->push_back(change);
}

// Makes the changes of the option one, by the last line that has changed it:
// the program has kept its value.
void SetKept(const std::string& option, const std::string& value,
             std::vector<ConfigChange>* changes) {
  std::vector<ConfigChange> result;
  bool is_last = true;
  for (auto change = changes->rbegin(); change != changes->rend(); ++change) {
    if (change->option != option) {
      result.push_back(*change);
    } else if (is_last) {
      is_last = false;
      result.push_back(*change);
      result.back().is_kept = true;
      result.back().from = result.back().to = value;
    }
  }
  changes->assign(result.rbegin(), result.rend());
}

// Returns nullptr for a table factory of another kind.
const BlockBasedTableOptions* BlockOptions(const TableFactory* factory) {
  return factory == nullptr ||
                 Slice(factory->Name()) != TableFactory::kBlockBasedTableName()
             ? nullptr
             : factory->GetOptions<BlockBasedTableOptions>();
}

// table: may be options of the present factory.
void MakeTableFactory(const BlockBasedTableOptions& table,
                      ColumnFamilyOptions* options) {
  options->table_factory =
      std::shared_ptr<TableFactory>(NewBlockBasedTableFactory(table));
}

}  // namespace

std::string ConfigChange::ToString(const ConfigFile& file) const {
  const auto text = [](const std::string& value) {
    return value.empty() ? std::string("(empty)") : value;
  };
  std::string result = is_db ? "" : "[" + family + "] ";
  result += option;
  if (is_kept) {
    result += " stays " + text(to) + ", as the program needs it";
  } else if (has_effect()) {
    result += ": " + text(from) + " -> " + text(to);
  } else if (!to.empty()) {
    result += " is " + to + " already";
  } else {
    result += " leaves the options as they are already";
  }
  return result + " (" + file.At(line) + ")";
}

ConfigApplier::ConfigApplier(const ConfigFile* file, Env* env,
                             const std::string& database)
    : file_(file), database_(database) {
  config_.env = env;
  config_.ignore_unknown_options = false;
  config_.ignore_unsupported_options = false;
  // Otherwise errors of some options in tables are ignored. SetOption() takes
  // the escapes out.
  config_.input_strings_escaped = false;
}

template <typename T>
Status ConfigApplier::SetOption(const ConfigOptions& config,
                                const ConfigFile::Line& line, const T& before,
                                T* after) const {
  const std::string value = ConfigDirectories::Expand(
      line.name, UnescapeOptionString(line.value), database_);
  Status s;
  if (line.name == kDBPaths) {
    *after = before;
    if (SetDBPaths(value, after, &s)) {
      return s;
    }
  }
  return SetOptions(config, {{line.name, value}}, before, after);
}

template <typename T>
Status ConfigApplier::CheckSection(const ConfigFile::Section& section) const {
  ConfigOptions lenient = config_;
  lenient.ignore_unsupported_options = true;
  T options;
  PrepareToCheck(&options);
  for (const ConfigFile::Line& line : section.lines) {
    T after;
    const Status s = SetOption(lenient, line, options, &after);
    if (!s.ok()) {
      return AppendMessage(
          file_->Error(line.number, line.name + "=" + line.value, s),
          HintFor(options, config_, line), "");
    }
    options = std::move(after);
    AddComparator(&options);
  }
  return Status::OK();
}

Status ConfigApplier::CheckAll() const {
  for (const ConfigFile::Section& section : file_->sections()) {
    const Status s = section.kind == Kind::kDB
                         ? CheckSection<DBOptions>(section)
                         : CheckSection<ColumnFamilyOptions>(section);
    if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

Status ConfigApplier::Matches(const ConfigFile::Section& section, Kind kind,
                              const std::string* family, bool* matches) {
  *matches = false;
  if (section.kind != kind) {
    return Status::OK();
  }
  Status s = section.db.Match(database_, matches);
  if (s.ok() && *matches && kind == Kind::kColumnFamily) {
    if (family == nullptr) {
      *matches = section.family.MatchesAll();
    } else {
      s = section.family.Match(*family, matches);
    }
  }
  if (!s.ok()) {
    return file_->Error(section.number, s.getState());
  }
  if (*matches) {
    used_sections_.insert(section.number);
  }
  return s;
}

Status ConfigApplier::ErrorOf(const ConfigFile::Line& line,
                              const Status& s) const {
  return file_->Error(line.number, line.name + "=" + line.value, s);
}

template <typename T>
Status ConfigApplier::ApplyLine(const ConfigFile::Line& line, T* options) {
  T after;
  Status s = SetOption(config_, line, *options, &after);
  if (s.ok()) {
    s = CheckIsComplete(after);
  }
  if (!s.ok()) {
    return ErrorOf(line, s);
  }
  ShareCaches(line.number, *options, &after);
  *options = std::move(after);
  return s;
}

void ConfigApplier::KeepValues(const DBOptions& given, DBOptions* after,
                               std::vector<std::string>* kept) const {
  KeepProgramValues(given, after, kept);
}

void ConfigApplier::KeepValues(const ColumnFamilyOptions& given,
                               ColumnFamilyOptions* after,
                               std::vector<std::string>* kept) const {
  KeepProgramValues(given, has_2pc_, after, kept);
}

template <typename T>
Status ConfigApplier::ApplyRules(const T& given, const LastLines& lines,
                                 T* after,
                                 std::vector<ConfigChange>* changes) const {
  std::string option;
  Status s = KeepProgramObjects(given, after, &option);
  if (s.ok()) {
    s = CheckKeepsData(given, *after, &option);
  }
  if (s.ok()) {
    std::vector<std::string> kept;
    KeepValues(given, after, &kept);
    for (const std::string& name : kept) {
      SetKept(name, TextsOf(*after)[name], changes);
    }
    return s;
  }
  const auto found = lines.find(option);
  if (found != lines.end()) {
    return ErrorOf(*found->second, s);
  }
  // The name in the line is another one for the option.
  const ConfigFile::Line* last = lines.begin()->second;
  for (const auto& [name, line] : lines) {
    last = line->number > last->number ? line : last;
  }
  return ErrorOf(*last, s);
}

template <typename T>
Status ConfigApplier::ApplySections(Kind kind, const std::string* family,
                                    T* options,
                                    std::vector<ConfigChange>* changes) {
  std::vector<ConfigChange> result;
  T changed = *options;
  LastLines lines;
  OptionTexts before;
  for (const ConfigFile::Section& section : file_->sections()) {
    bool matches = false;
    Status s = Matches(section, kind, family, &matches);
    if (!s.ok()) {
      return s;
    }
    if (!matches) {
      continue;
    }
    for (const ConfigFile::Line& line : section.lines) {
      if (applies_only_directories_ &&
          !ConfigDirectories::NamesDirectories(line.name)) {
        continue;
      }
      if (lines.empty()) {
        before = TextsOf(changed);
      }
      lines[line.name] = &line;
      s = ApplyLine(line, &changed);
      if (!s.ok()) {
        return s;
      }
      OptionTexts after = TextsOf(changed);
      AddChanges(line, family, kind == Kind::kDB, before, after, &result);
      before = std::move(after);
    }
  }
  if (lines.empty()) {
    return Status::OK();
  }
  const Status s = ApplyRules(*options, lines, &changed, &result);
  if (s.ok()) {
    *options = std::move(changed);
    changes->insert(changes->end(), result.begin(), result.end());
  }
  return s;
}

Status ConfigApplier::Apply(DBOptions* options,
                            std::vector<ConfigChange>* changes) {
  has_2pc_ = options->allow_2pc;
  return ApplySections(Kind::kDB, /*family=*/nullptr, options, changes);
}

Status ConfigApplier::Apply(const std::string& family,
                            ColumnFamilyOptions* options,
                            std::vector<ConfigChange>* changes) {
  // RocksDB opens the hidden family with options of its own.
  if (family == kPersistentStatsColumnFamilyName) {
    return Status::OK();
  }
  return ApplySections(Kind::kColumnFamily, &family, options, changes);
}

Status ConfigApplier::ApplyToUnknownFamily(ColumnFamilyOptions* options,
                                           std::vector<ConfigChange>* changes) {
  return ApplySections(Kind::kColumnFamily, /*family=*/nullptr, options,
                       changes);
}

void ConfigApplier::ShareCaches(size_t line, const ColumnFamilyOptions& before,
                                ColumnFamilyOptions* after) {
  const auto share = [line](std::map<size_t, std::shared_ptr<Cache>>* caches,
                            std::shared_ptr<Cache>* cache) {
    std::shared_ptr<Cache>& shared = (*caches)[line];
    if (shared == nullptr) {
      shared = *cache;
    }
    *cache = shared;
  };
  if (after->blob_cache != nullptr && after->blob_cache != before.blob_cache) {
    share(&blob_caches_, &after->blob_cache);
  }
  if (after->table_factory == before.table_factory ||
      BlockOptions(after->table_factory.get()) == nullptr) {
    return;
  }
  // The parser has made a factory, but not prepared it: no_block_cache, for
  // example, has no effect yet.
  MakeTableFactory(*BlockOptions(after->table_factory.get()), after);
  BlockBasedTableOptions options = *BlockOptions(after->table_factory.get());
  const BlockBasedTableOptions* const given =
      BlockOptions(before.table_factory.get());
  if (options.block_cache != nullptr &&
      (given == nullptr || given->block_cache != options.block_cache)) {
    share(&block_caches_, &options.block_cache);
    MakeTableFactory(options, after);
  }
}

}  // namespace ROCKSDB_NAMESPACE
