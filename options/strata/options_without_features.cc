//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/options_without_features.h"

#include "options/strata/options_file_copy.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the column families with an option in the text that names paths, as
// PathLayout::NamesPaths().
std::set<std::string> FamiliesThatNamePaths(const std::string& text) {
  std::set<std::string> families;
  for (const OptionsFileCopy::OwnOption& option :
       OptionsFileCopy::OwnOptions(text)) {
    const std::string& name = option.name;
    const std::string& value = option.value;
    if (((name == "level_sst_path_ids" || name == "level_blob_path_ids" ||
          name == "path_prices") &&
         !value.empty() && value != "{}") ||
        (name == "delta_sorted_path_id" && value != "-1") ||
        (name == "blob_hot_bytes" && value != "0")) {
      families.insert(option.family);
    }
  }
  return families;
}

}  // namespace

OptionsWithoutFeatures::OptionsWithoutFeatures(const std::string& text,
                                               const FeatureSet& features)
    : without_options_(OptionsFileCopy::WithoutOwnOptions(
          text, [&](const std::string& name) {
            return features.Intersects(FeatureSet::OfOption(name));
          })) {
  for (const OptionsFileCopy::OwnOption& option :
       OptionsFileCopy::OwnOptions(text)) {
    features_.Add(features.Intersection(FeatureSet::OfOption(option.name)));
  }
  const std::set<std::string> before = FamiliesThatNamePaths(text);
  const std::set<std::string> after = FamiliesThatNamePaths(without_options_);
  for (const OptionsFileCopy::OwnOption& option :
       OptionsFileCopy::OwnOptions(without_options_)) {
    if (option.name == "cf_paths" && !option.value.empty() &&
        before.count(option.family) > 0 && after.count(option.family) == 0) {
      families_losing_paths_.insert(option.family);
    }
  }
}

std::string OptionsWithoutFeatures::Text(
    const std::function<bool(const std::string& family)>& can_name_paths)
    const {
  std::set<std::string> families;
  for (const std::string& family : families_losing_paths_) {
    if (can_name_paths(family)) {
      families.insert(family);
    }
  }
  return OptionsFileCopy::WithOwnOption(without_options_, families,
                                        "level_blob_path_ids", "0");
}

}  // namespace ROCKSDB_NAMESPACE
