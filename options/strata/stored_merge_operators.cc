//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/stored_merge_operators.h"

#include <unordered_map>

#include "options/options_parser.h"
#include "rocksdb/customizable.h"
#include "rocksdb/env.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/options.h"
#include "rocksdb/utilities/options_type.h"
#include "rocksdb/utilities/options_util.h"
#include "utilities/strata/unknown_merge_operator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns false for an operator that contains another one, such as that of
// DBWithTTL, and lacks it: so the loader of OPTIONS files makes it if it does
// not know the other one.
bool IsComplete(const MergeOperator& merge_operator) {
  return merge_operator.ValidateOptions(DBOptions(), ColumnFamilyOptions())
      .ok();
}

}  // namespace

Status StoredMergeOperators::Load(const ConfigOptions& config_options,
                                  const std::string& dbname) {
  found_ = false;
  operators_.clear();
  std::string file;
  Status s = GetLatestOptionsFileName(dbname, config_options.env, &file);
  if (s.IsNotFound()) {
    return Status::OK();
  }
  RocksDBOptionsParser parser;
  if (s.ok()) {
    s = parser.Parse(config_options, dbname + "/" + file,
                     config_options.env->GetFileSystem().get());
  }
  if (!s.ok()) {
    return s;
  }
  found_ = true;
  const auto& names = *parser.cf_names();
  const auto& maps = *parser.cf_opt_maps();
  for (size_t i = 0; s.ok() && i < names.size() && i < maps.size(); ++i) {
    const auto option = maps[i].find("merge_operator");
    if (option == maps[i].end()) {
      continue;
    }
    Stored stored;
    stored.text = OptionTypeInfo::StripOuterBraces(option->second);
    std::unordered_map<std::string, std::string> properties;
    s = Customizable::GetOptionsMap(config_options, /*custom=*/nullptr,
                                    stored.text, &stored.name, &properties);
    if (s.ok() && !stored.name.empty()) {
      operators_.emplace(names[i], std::move(stored));
    }
  }
  return s;
}

std::string StoredMergeOperators::NameOf(
    const std::string& column_family) const {
  const auto found = operators_.find(column_family);
  return found == operators_.end() ? "" : found->second.name;
}

std::shared_ptr<MergeOperator> StoredMergeOperators::Make(
    const ConfigOptions& config_options, const std::string& column_family,
    const std::vector<std::shared_ptr<MergeOperator>>& known) const {
  const auto found = operators_.find(column_family);
  if (found == operators_.end()) {
    return nullptr;
  }
  const Stored& stored = found->second;
  for (const std::shared_ptr<MergeOperator>& one : known) {
    if (one != nullptr && one->IsInstanceOf(stored.name) && IsComplete(*one)) {
      return one;
    }
  }
  ConfigOptions strict = config_options;
  strict.ignore_unsupported_options = false;
  std::shared_ptr<MergeOperator> result;
  if (MergeOperator::CreateFromString(strict, stored.text, &result).ok() &&
      result != nullptr && IsComplete(*result)) {
    return result;
  }
  return std::make_shared<UnknownMergeOperator>(stored.name, stored.text);
}

void UseUnknownMergeOperators(Env* env, const std::string& dbname,
                              std::vector<ColumnFamilyDescriptor>* families) {
  StoredMergeOperators stored;
  bool loaded = false;
  for (ColumnFamilyDescriptor& family : *families) {
    if (family.options.merge_operator != nullptr ||
        !(family.options.enable_delta_separation ||
          family.options.enable_merged_value_cache ||
          family.options.enable_blob_address_map)) {
      continue;
    }
    if (!loaded) {
      ConfigOptions config_options;
      config_options.env = env;
      config_options.ignore_unknown_options = true;
      // The name is only used in a message, so an OPTIONS file that cannot be
      // read is treated as missing.
      stored.Load(config_options, dbname).PermitUncheckedError();
      loaded = true;
    }
    const std::string name = stored.NameOf(family.name);
    family.options.merge_operator = std::make_shared<UnknownMergeOperator>(
        name.empty() ? "unknown" : name, name);
  }
}

}  // namespace ROCKSDB_NAMESPACE
