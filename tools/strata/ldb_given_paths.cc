//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_given_paths.h"

#include <cstddef>

#include "db/path_layout/missing_file.h"
#include "tools/strata/ldb_path_flags.h"
#include "util/strata/path_list.h"

namespace ROCKSDB_NAMESPACE {

void LdbGivenPaths::Give(const LdbPathFlags& flags,
                         std::vector<ColumnFamilyDescriptor>* families,
                         LDBCommandExecuteResult* result) {
  const std::vector<ColumnFamilyDescriptor> before = *families;
  flags.GiveToAll(families, result);
  for (size_t i = 0; i < before.size(); ++i) {
    const std::vector<DbPath>& former = before[i].options.cf_paths;
    if (PathListToString((*families)[i].options.cf_paths) !=
        PathListToString(former)) {
      former_[before[i].name] = former;
    }
  }
}

bool LdbGivenPaths::Take(FileSystem* fs,
                         const std::vector<ManifestFamily::File>& files,
                         const std::vector<DbPath>& db_paths,
                         ColumnFamilyDescriptor* family) {
  const auto found = former_.find(family->name);
  if (found == former_.end()) {
    return false;
  }
  const std::vector<DbPath> former = found->second;
  former_.erase(found);
  if (files.empty()) {
    families_without_files_.insert(family->name);
    family->options.cf_paths = former;
    return false;
  }
  if (FirstMissingFile(fs, files, family->options.cf_paths).empty() ||
      !FirstMissingFile(fs, files, former.empty() ? db_paths : former)
           .empty()) {
    return false;
  }
  family->options.cf_paths = former;
  return true;
}

Status LdbGivenPaths::CheckWals(bool has_records) const {
  if (!NeedsEmptyWals() || !has_records) {
    return Status::OK();
  }
  std::string names;
  for (const std::string& name : families_without_files_) {
    names += (names.empty() ? "[" : ", [") + name + "]";
  }
  return Status::InvalidArgument(
      names,
      "has no files, so nothing tells whether --cf_paths are its paths, and "
      "the WALs have records, perhaps of it. Flush all column families with "
      "the program first (DB::Flush()), and close the database");
}

}  // namespace ROCKSDB_NAMESPACE
