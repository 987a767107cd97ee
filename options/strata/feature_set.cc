//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/feature_set.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "options/strata/strata_option_table.h"

namespace ROCKSDB_NAMESPACE {

namespace {

struct NamedFeature {
  const char* name;
  FeatureSet::Feature feature;
};

constexpr NamedFeature kFeatures[] = {
    {"map", FeatureSet::kMap},
    {"deltas", FeatureSet::kDeltas},
    {"layouts", FeatureSet::kLayouts},
    {"wal_buffer", FeatureSet::kWalBuffer},
    {"merged_values", FeatureSet::kMergedValues},
    {"write_groups", FeatureSet::kWriteGroups},
};

// The options in the column "feature" of strata_option_table.h.
constexpr NamedFeature kFeatureOptions[] = {
    {"enable_blob_address_map", FeatureSet::kMap},
    {"enable_delta_separation", FeatureSet::kDeltas},
    {"level_sst_path_ids", FeatureSet::kLayouts},
    {"level_blob_path_ids", FeatureSet::kLayouts},
    {"path_prices", FeatureSet::kLayouts},
    {"wal_mmap_buffer_size", FeatureSet::kWalBuffer},
    {"enable_merged_value_cache", FeatureSet::kMergedValues},
    {"max_write_groups_per_leader", FeatureSet::kWriteGroups},
};

// Options that belong to one more feature, or that are in no table.
constexpr NamedFeature kMoreOptions[] = {
    {"blob_hot_bytes", FeatureSet::kLayouts},
    {"blob_hot_path_id", FeatureSet::kLayouts},
    {"delta_sorted_path_id", FeatureSet::kLayouts},
    {"cf_paths", FeatureSet::kLayouts},
    {"delta_parallel_reads", FeatureSet::kDeltas},
};

using FeaturesOfOptions = std::unordered_map<std::string, FeatureSet>;

// feature: the value in the column "feature" of the option's row.
void AddOption(const char* name, const std::string& feature,
               FeaturesOfOptions* options) {
  for (const NamedFeature& option : kFeatureOptions) {
    if (feature == option.name) {
      (*options)[name].Add(option.feature);
    }
  }
}

#define STRATA_FEATURE(kind, name, feature, ...) \
  AddOption(#name, #feature, options);

const FeaturesOfOptions& AllOptions() {
  static const FeaturesOfOptions* const all = [] {
    auto* const options = new FeaturesOfOptions();
    STRATA_IMMUTABLE_CF_OPTIONS(STRATA_FEATURE)
    STRATA_MUTABLE_CF_OPTIONS(STRATA_FEATURE)
    STRATA_IMMUTABLE_DB_OPTIONS(STRATA_FEATURE)
    for (const NamedFeature& option : kMoreOptions) {
      (*options)[option.name].Add(option.feature);
    }
    return options;
  }();
  return *all;
}

#undef STRATA_FEATURE

}  // namespace

FeatureSet FeatureSet::All() {
  FeatureSet all;
  for (const NamedFeature& named : kFeatures) {
    all.Add(named.feature);
  }
  return all;
}

Status FeatureSet::Parse(const std::string& text, FeatureSet* features) {
  FeatureSet parsed;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    const auto* const found =
        std::find_if(std::begin(kFeatures), std::end(kFeatures),
                     [&](const auto& named) { return name == named.name; });
    if (found == std::end(kFeatures)) {
      return Status::InvalidArgument(
          "'" + name + "' is no feature; there are " + All().ToString());
    }
    parsed.Add(found->feature);
    begin = end + 1;
  }
  *features = parsed;
  return Status::OK();
}

std::string FeatureSet::ToString() const {
  std::string text;
  for (const NamedFeature& named : kFeatures) {
    if (Has(named.feature)) {
      text += (text.empty() ? "" : ", ") + std::string(named.name);
    }
  }
  return text;
}

FeatureSet FeatureSet::OfOption(const std::string& name) {
  const auto found = AllOptions().find(name);
  return found == AllOptions().end() ? FeatureSet() : found->second;
}

#define STRATA_RESET(kind, name, ...) \
  if (Intersects(OfOption(#name))) {  \
    options->name = defaults.name;    \
  }

void FeatureSet::ResetOptions(StrataColumnFamilyOptions* options) const {
  const StrataColumnFamilyOptions defaults;
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_RESET)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_RESET)
}

void FeatureSet::ResetOptions(StrataDBOptions* options) const {
  const StrataDBOptions defaults;
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_RESET)
}

#undef STRATA_RESET

#define STRATA_DIFFERS(kind, name, ...)                  \
  if (Intersects(OfOption(#name)) && a.name != b.name) { \
    return #name;                                        \
  }

std::string FeatureSet::DifferentOption(
    const StrataColumnFamilyOptions& a,
    const StrataColumnFamilyOptions& b) const {
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_DIFFERS)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_DIFFERS)
  return "";
}

std::string FeatureSet::DifferentOption(const StrataDBOptions& a,
                                        const StrataDBOptions& b) const {
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_DIFFERS)
  return "";
}

#undef STRATA_DIFFERS

}  // namespace ROCKSDB_NAMESPACE
