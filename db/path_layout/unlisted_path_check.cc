//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/unlisted_path_check.h"

#include "db/path_layout/path_check.h"
#include "db/path_layout/path_layout.h"

namespace ROCKSDB_NAMESPACE {

void UnlistedPathCheck::Exempt(const std::string& dbname,
                               const DBOptions& db_options,
                               ColumnFamilyOptions* options) {
  // RocksDB has no several paths with other styles.
  if (options->compaction_style != kCompactionStyleLevel &&
      options->compaction_style != kCompactionStyleUniversal) {
    return;
  }
  std::vector<DbPath>& paths = options->cf_paths;
  if (paths.empty()) {
    paths = db_options.db_paths;
  }
  if (paths.empty()) {
    paths.emplace_back(dbname, UINT64_MAX);
  }
  if (paths.size() < PathLayout::kMaxPaths) {
    const DbPath last = paths.back();
    paths.resize(PathLayout::kMaxPaths, last);
  }
}

bool UnlistedPathCheck::IsExempt(const std::vector<DbPath>& cf_paths) {
  const size_t n = cf_paths.size();
  return n == PathLayout::kMaxPaths &&
         cf_paths[n - 1].path == cf_paths[n - 2].path;
}

void UnlistedPathCheck::OnMissingFile(FileSystem* fs,
                                      const std::vector<DbPath>& cf_paths,
                                      const std::string& family, FileType type,
                                      uint64_t number, uint32_t path_id) {
  if (!CheckPathOfFile(fs, cf_paths, family, type, number, path_id).ok()) {
    fs_ = fs;
    cf_paths_ = &cf_paths;
    family_ = family;
    files_[number] = {type, path_id};
  }
}

const Status& UnlistedPathCheck::OnState(const IsNeeded& is_needed,
                                         const IsValidWith& is_valid_with) {
  if (!status_.ok() && is_needed(named_)) {
    return status_;
  }
  std::set<uint64_t> needed;
  for (auto it = files_.begin(); it != files_.end();) {
    if (is_needed(it->first)) {
      needed.insert(it->first);
    } else if (it->second.type == kTableFile) {
      // Another edit that adds the table file notes it again.
      it = files_.erase(it);
      continue;
    }
    ++it;
  }
  if (needed.empty()) {
    if (!status_.ok() && is_valid_with(needed)) {
      status_ = Status::OK();
    }
  } else if (is_valid_with(needed)) {
    named_ = *needed.begin();
    const File& file = files_.at(named_);
    status_ = CheckPathOfFile(fs_, *cf_paths_, family_, file.type, named_,
                              file.path_id);
  }
  return status_;
}

}  // namespace ROCKSDB_NAMESPACE
