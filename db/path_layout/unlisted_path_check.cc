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

void UnlistedPathCheck::OnMissingFile(FileSystem* fs,
                                      const std::vector<DbPath>& cf_paths,
                                      const std::string& family, FileType type,
                                      uint64_t number, uint32_t path_id) {
  if (status_.ok()) {
    status_ = CheckPathOfFile(fs, cf_paths, family, type, number, path_id);
  }
}

}  // namespace ROCKSDB_NAMESPACE
