//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_copy_layout.h"

#include <utility>

#include "rocksdb/db.h"
#include "tools/strata/ldb_path_flags.h"
#include "util/strata/path_list.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr const char* kCopyCfPaths = "cf_paths";
constexpr const char* kCopySstIds = "level_sst_path_ids";
constexpr const char* kCopyBlobIds = "level_blob_path_ids";
constexpr const char* kCopyDeltaId = "delta_sorted_path_id";

// Returns true if the options have ids of paths.
// Options: ColumnFamilyOptions or CopyLayout::ColumnFamily
template <typename Options>
bool HasIds(const Options& options) {
  return !options.level_sst_path_ids.empty() ||
         !options.level_blob_path_ids.empty() ||
         options.delta_sorted_path_id >= 0;
}

void CopyIds(const ColumnFamilyOptions& options,
             CopyLayout::ColumnFamily* family) {
  family->level_sst_path_ids = options.level_sst_path_ids;
  family->level_blob_path_ids = options.level_blob_path_ids;
  family->delta_sorted_path_id = options.delta_sorted_path_id;
}

}  // namespace

std::vector<std::string> LdbCopyLayout::Names(const std::string& prefix,
                                              std::vector<std::string> others) {
  for (const char* const name :
       {kCopyCfPaths, kCopySstIds, kCopyBlobIds, kCopyDeltaId}) {
    others.push_back(prefix + name);
  }
  return others;
}

void LdbCopyLayout::AppendHelp(const std::string& prefix, std::string* help) {
  const auto add = [&](const char* name, const char* value) {
    *help += " [--" + prefix + name + "=" + value + "]";
  };
  add(kCopyCfPaths, "<path>,...");
  add(kCopySstIds, "<ids,e.g.:0,1>");
  add(kCopyBlobIds, "<ids,e.g.:0,1>");
  add(kCopyDeltaId, "<id,e.g.:1>");
}

std::string LdbCopyLayout::Get(const std::string& name) const {
  const auto found = flags_.find(prefix_ + name);
  return found == flags_.end() ? "" : found->second;
}

Status LdbCopyLayout::Make(std::shared_ptr<const CopyLayout>* layout) const {
  layout->reset();
  ColumnFamilyOptions options;
  Status s = ApplyPathFlags(Get(kCopyCfPaths), Get(kCopySstIds),
                            Get(kCopyBlobIds), &options);
  if (s.ok()) {
    s = LdbPathFlags::ApplyDeltaFlag(Get(kCopyDeltaId), &options);
  }
  if (!s.ok() || (options.cf_paths.empty() && !HasIds(options))) {
    return s;
  }
  auto result = std::make_shared<CopyLayout>();
  result->all.cf_paths = options.cf_paths;
  CopyIds(options, &result->all);
  *layout = std::move(result);
  return s;
}

Status LdbCopyLayout::MakeFor(
    DB* db, const std::map<std::string, ColumnFamilyHandle*>& families,
    std::shared_ptr<const CopyLayout>* layout) const {
  const Status s = Make(layout);
  if (!s.ok() || *layout == nullptr || HasIds((*layout)->all)) {
    return s;
  }
  auto result = std::make_shared<CopyLayout>();
  std::map<std::string, ColumnFamilyHandle*> all = families;
  all[kDefaultColumnFamilyName] = db->DefaultColumnFamily();
  for (const auto& [name, handle] : all) {
    const Options options = db->GetOptions(handle);
    if (!HasIds(options)) {
      continue;
    }
    CopyLayout::ColumnFamily& family = result->column_families[name];
    family.cf_paths = (*layout)->all.cf_paths;
    CopyIds(options, &family);
    for (uint32_t id = 0; id < options.cf_paths.size(); ++id) {
      family.path_map.push_back(id);
    }
  }
  if (result->column_families.empty()) {
    return Status::InvalidArgument(
        "--" + prefix_ + kCopyCfPaths + " needs --" + prefix_ + kCopySstIds +
        ", --" + prefix_ + kCopyBlobIds + " or --" + prefix_ + kCopyDeltaId +
        ", because no column family of the database has one of these options");
  }
  *layout = std::move(result);
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
