//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_path_flags.h"

#include <algorithm>
#include <cstdint>

#include "db/path_layout/path_layout.h"
#include "options/cf_options.h"
#include "rocksdb/utilities/cf_paths.h"
#include "util/strata/path_list.h"

namespace ROCKSDB_NAMESPACE {

namespace {
constexpr const char* kCfPaths = "cf_paths";
constexpr const char* kSstIds = "level_sst_path_ids";
constexpr const char* kBlobIds = "level_blob_path_ids";
constexpr const char* kDeltaId = "delta_sorted_path_id";

bool HasLayout(const std::vector<ColumnFamilyDescriptor>& cf_descs) {
  return std::any_of(
      cf_descs.begin(), cf_descs.end(),
      [](const ColumnFamilyDescriptor& family) {
        return PathLayout::NamesPaths(MutableCFOptions(family.options));
      });
}

}  // namespace

void LdbPathFlags::AppendNames(std::vector<std::string>* names) {
  for (const char* name : {kCfPaths, kSstIds, kBlobIds, kDeltaId}) {
    names->emplace_back(name);
  }
}

void LdbPathFlags::AppendHelp(std::string* help) {
  *help += std::string("  --") + kCfPaths +
           "=<path>[:<bytes>],... : Directories of the column family. With "
           "options loaded from the DB they replace those of every column "
           "family with a per-level layout, for a DB that was moved, and of no "
           "other one unless none has a layout.\n";
  *help += std::string("  --") + kSstIds + "=<ids,e.g.:0,1> and --" + kBlobIds +
           "=<ids,e.g.:0,1> : Which of them the SST files and the blob files "
           "of each level go to.\n";
  *help += std::string("  --") + kDeltaId +
           "=<id,e.g.:1> : Which of them sorted delta files go to; -1: as the "
           "SST files of the last level.\n";
}

std::string LdbPathFlags::Get(const char* name) const {
  const auto found = flags_.find(name);
  return found == flags_.end() ? "" : found->second;
}

void LdbPathFlags::Apply(ColumnFamilyOptions* options,
                         LDBCommandExecuteResult* result) const {
  Status s =
      ApplyPathFlags(Get(kCfPaths), Get(kSstIds), Get(kBlobIds), options);
  if (s.ok()) {
    s = ApplyDeltaFlag(Get(kDeltaId), options);
  }
  if (!s.ok()) {
    *result = LDBCommandExecuteResult::Failed(s.ToString());
  }
}

Status LdbPathFlags::ApplyDeltaFlag(const std::string& text,
                                    ColumnFamilyOptions* options) {
  if (text.empty()) {
    return Status::OK();
  }
  std::vector<uint32_t> ids;
  if (text == "-1") {
    options->delta_sorted_path_id = -1;
  } else if (ParsePathIds(text, &ids).ok() && ids.size() == 1 &&
             ids[0] < PathLayout::kMaxPaths) {
    options->delta_sorted_path_id = static_cast<int32_t>(ids[0]);
  } else {
    return Status::InvalidArgument(
        std::string("--") + kDeltaId,
        "'" + text + "' is neither a path id nor -1");
  }
  return Status::OK();
}

void LdbPathFlags::OverrideLoaded(std::vector<ColumnFamilyDescriptor>* cf_descs,
                                  LDBCommandExecuteResult* result) const {
  std::vector<DbPath> cf_paths;
  Status s = ParsePathList(Get(kCfPaths), &cf_paths);
  if (s.ok() && !cf_paths.empty()) {
    s = OverrideCfPaths(cf_paths, cf_descs);
  }
  if (!s.ok()) {
    *result = LDBCommandExecuteResult::Failed(std::string("--") + kCfPaths +
                                              ": " + s.ToString());
  }
}

void LdbPathFlags::GiveToAll(std::vector<ColumnFamilyDescriptor>* cf_descs,
                             LDBCommandExecuteResult* result) const {
  ColumnFamilyOptions given;
  Apply(&given, result);
  if (given.cf_paths.empty() || HasLayout(*cf_descs)) {
    return;
  }
  for (ColumnFamilyDescriptor& family : *cf_descs) {
    family.options.cf_paths = given.cf_paths;
  }
}

void LdbPathFlags::KeepLoaded(
    const std::vector<ColumnFamilyDescriptor>& cf_descs,
    const std::vector<DbPath>& before, ColumnFamilyOptions* options) {
  if (!PathLayout::NamesPaths(MutableCFOptions(*options)) &&
      HasLayout(cf_descs)) {
    options->cf_paths = before;
  }
}

void LdbPathFlags::SetLoaded(
    const std::vector<ColumnFamilyDescriptor>& cf_descs,
    const std::string& family, ColumnFamilyOptions* options) {
  for (const ColumnFamilyDescriptor& descriptor : cf_descs) {
    if (descriptor.name == family) {
      options->cf_paths = descriptor.options.cf_paths;
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
