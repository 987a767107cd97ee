//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_copy_layout.h"

#include <utility>

#include "rocksdb/db.h"
#include "util/strata/path_list.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr const char* kCfPaths = "cf_paths";
constexpr const char* kSstIds = "level_sst_path_ids";
constexpr const char* kBlobIds = "level_blob_path_ids";

}  // namespace

std::vector<std::string> LdbCopyLayout::Names(const std::string& prefix,
                                              std::vector<std::string> others) {
  for (const char* const name : {kCfPaths, kSstIds, kBlobIds}) {
    others.push_back(prefix + name);
  }
  return others;
}

void LdbCopyLayout::AppendHelp(const std::string& prefix, std::string* help) {
  for (const char* const name : {kCfPaths, kSstIds, kBlobIds}) {
    *help += " [--" + prefix + name +
             (name == kCfPaths ? "=<path>,...]" : "=<ids,e.g.:0,1>]");
  }
}

std::string LdbCopyLayout::Get(const std::string& name) const {
  const auto found = flags_.find(prefix_ + name);
  return found == flags_.end() ? "" : found->second;
}

Status LdbCopyLayout::Make(std::shared_ptr<const CopyLayout>* layout) const {
  layout->reset();
  ColumnFamilyOptions options;
  const Status s =
      ApplyPathFlags(Get(kCfPaths), Get(kSstIds), Get(kBlobIds), &options);
  if (!s.ok()) {
    return s;
  }
  const bool has_ids = !options.level_sst_path_ids.empty() ||
                       !options.level_blob_path_ids.empty();
  if (options.cf_paths.empty() && !has_ids) {
    return s;
  }
  auto result = std::make_shared<CopyLayout>();
  result->all.cf_paths = std::move(options.cf_paths);
  result->all.level_sst_path_ids = std::move(options.level_sst_path_ids);
  result->all.level_blob_path_ids = std::move(options.level_blob_path_ids);
  *layout = std::move(result);
  return s;
}

Status LdbCopyLayout::MakeFor(
    DB* db, const std::map<std::string, ColumnFamilyHandle*>& families,
    std::shared_ptr<const CopyLayout>* layout) const {
  const Status s = Make(layout);
  if (!s.ok() || *layout == nullptr ||
      !(*layout)->all.level_sst_path_ids.empty() ||
      !(*layout)->all.level_blob_path_ids.empty()) {
    return s;
  }
  auto result = std::make_shared<CopyLayout>();
  std::map<std::string, ColumnFamilyHandle*> all = families;
  all[kDefaultColumnFamilyName] = db->DefaultColumnFamily();
  for (const auto& [name, handle] : all) {
    const Options options = db->GetOptions(handle);
    if (options.level_sst_path_ids.empty() &&
        options.level_blob_path_ids.empty()) {
      continue;
    }
    CopyLayout::ColumnFamily& family = result->column_families[name];
    family.cf_paths = (*layout)->all.cf_paths;
    family.level_sst_path_ids = options.level_sst_path_ids;
    family.level_blob_path_ids = options.level_blob_path_ids;
    for (uint32_t id = 0; id < options.cf_paths.size(); ++id) {
      family.path_map.push_back(id);
    }
  }
  if (result->column_families.empty()) {
    return Status::InvalidArgument(
        "--" + prefix_ + kCfPaths + " needs --" + prefix_ + kSstIds + " or --" +
        prefix_ + kBlobIds +
        ", because no column family of the database has a layout");
  }
  *layout = std::move(result);
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
