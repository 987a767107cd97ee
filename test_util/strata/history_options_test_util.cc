//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_options_test_util.h"

#include <cassert>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "rocksdb/convenience.h"
#include "rocksdb/utilities/options_type.h"
#include "test_util/strata/history_words_test_util.h"
#include "util/string_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Adds the options of a layout. Returns false if there is no such layout.
bool AddLayout(const std::string& layout, HistoryOptionList* options) {
  static const std::map<std::string, std::pair<const char*, const char*>>
      kLayouts = {{"none", {"", ""}},
                  {"vertical", {"0", "1"}},
                  {"horizontal", {"0:1", "0:1"}},
                  {"selective", {"0:1", "0:1"}}};
  const auto it = kLayouts.find(layout);
  if (it == kLayouts.end()) {
    return false;
  }
  HistoryOptions::Set("level_sst_path_ids", it->second.first, options);
  HistoryOptions::Set("level_blob_path_ids", it->second.second, options);
  if (layout == "selective") {
    HistoryOptions::Set("blob_file_starting_level", "1", options);
  }
  return true;
}

// Adds the options for blob files with values of this size at least, or for
// none.
void AddBlobs(const std::string& min_size, HistoryOptionList* options) {
  if (min_size == "off") {
    HistoryOptions::Set("enable_blob_files", "false", options);
    HistoryOptions::Set("enable_blob_direct_write", "false", options);
  } else {
    HistoryOptions::Set("enable_blob_files", "true", options);
    HistoryOptions::Set("min_blob_size", min_size, options);
  }
}

// Returns the directories that "paths=2" or "paths=name,name" means.
std::vector<std::string> PathList(const std::string& root,
                                  const std::string& value) {
  std::vector<std::string> paths;
  uint64_t count = 0;
  if (HistoryArguments::ParseNumber(value, &count)) {
    for (uint64_t i = 0; i < count; ++i) {
      paths.push_back(
          i == 0 ? root + "/db"
                 : std::string(root).append("/p").append(std::to_string(i)));
    }
    return paths;
  }
  for (const std::string& name : StringSplit(value, ',')) {
    paths.push_back(root + "/" + name);
  }
  return paths;
}

// Sets the options that steps rely on: the DB does nothing that they do not
// request.
void SetBasicOptions(Env* env, Options* options) {
  options->create_if_missing = true;
  options->env = env;
  options->disable_auto_compactions = true;
  options->level_compaction_dynamic_level_bytes = false;
  options->compression = kNoCompression;
  options->merge_operator = MergeOperators::CreateStringAppendOperator();
  options->max_bgerror_resume_count = 0;
  options->stats_dump_period_sec = 0;
  options->stats_persist_period_sec = 0;
  options->write_buffer_size = 64 << 20;
  options->target_file_size_base = 64 << 20;
  // Scripts show where each value lies, which garbage collection would change.
  // With variants only the results of reads are compared.
  options->blob_gc_space_amp_limit = 0;
}

}  // namespace

void HistoryOptions::Set(const std::string& name, const std::string& value,
                         HistoryOptionList* options) {
  for (auto& option : *options) {
    if (option.first == name) {
      option.second = value;
      return;
    }
  }
  options->emplace_back(name, value);
}

bool HistoryOptions::Add(const std::string& name, const std::string& value,
                         HistoryOptionList* options) {
  if (name == "layout") {
    return AddLayout(value, options);
  }
  if (name == "blobs") {
    AddBlobs(value, options);
  } else {
    Set(name, value, options);
  }
  return true;
}

const std::string* HistoryOptions::Find(const HistoryOptionList& options,
                                        const std::string& name) {
  for (const auto& option : options) {
    if (option.first == name) {
      return &option.second;
    }
  }
  return nullptr;
}

std::string HistoryOptions::MergeOperator(const HistoryOptionList& options) {
  const std::string* const name = Find(options, "merge_operator");
  return name == nullptr ? "" : *name;
}

Status HistoryOptions::Make(const HistoryOptionList& own,
                            const HistoryOptionList* overrides,
                            const std::string& root, Env* env, Options* options,
                            std::vector<std::string>* paths) {
  HistoryOptionList list = own;
  if (overrides != nullptr) {
    for (const auto& option : *overrides) {
      const bool is_valid = Add(option.first, option.second, &list);
      assert(is_valid);
      (void)is_valid;
    }
  }
  SetBasicOptions(env, options);
  *paths = {root + "/db"};
  options->cf_paths.clear();
  const std::string* const path_list = Find(list, "paths");
  if (path_list != nullptr) {
    *paths = PathList(root, *path_list);
    for (const std::string& path : *paths) {
      options->cf_paths.emplace_back(path, UINT64_MAX);
    }
  }
  std::erase_if(list, [](const auto& option) {
    return option.first == "paths" || option.first == "db";
  });
  return SetHistoryOptions(list, env, options);
}

Status SetHistoryOptions(const HistoryOptionList& list, Env* env,
                         Options* options) {
  ConfigOptions config_options;
  config_options.env = env;
  config_options.ignore_unknown_options = false;
  config_options.input_strings_escaped = false;

  // Each option belongs to the DB or to the column family, and is passed to the
  // parser for that. An unknown option is an error of the second parser.
  std::unordered_map<std::string, std::string> map;
  for (const auto& option : list) {
    if (!option.second.empty()) {
      map[option.first] = option.second;
    }
  }
  DBOptions db_options(*options);
  for (auto it = map.begin(); it != map.end();) {
    DBOptions changed;
    if (GetDBOptionsFromMap(config_options, db_options, {*it}, &changed).ok()) {
      db_options = changed;
      it = map.erase(it);
    } else {
      ++it;
    }
  }
  ColumnFamilyOptions cf_options;
  const Status s = GetColumnFamilyOptionsFromMap(
      config_options, ColumnFamilyOptions(*options), map, &cf_options);
  if (s.ok()) {
    *options = Options(db_options, cf_options);
  }
  return s;
}
}  // namespace ROCKSDB_NAMESPACE
