//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/unlisted_path_check.h"

#include "db/path_layout/path_check.h"

namespace ROCKSDB_NAMESPACE {

void UnlistedPathCheck::OnMissingFile(FileSystem* fs,
                                      const std::vector<DbPath>& cf_paths,
                                      const std::string& family, FileType type,
                                      uint64_t number, uint32_t path_id) {
  if (status_.ok()) {
    status_ = CheckPathOfFile(fs, cf_paths, family, type, number, path_id);
  }
}

}  // namespace ROCKSDB_NAMESPACE
