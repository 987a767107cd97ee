//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/checkpoint_paths.h"

#include <set>
#include <string>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/path_layout/path_check.h"
#include "db/version_set.h"
#include "rocksdb/db.h"
#include "rocksdb/metadata.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

Status CheckOneDirectory(DB* db,
                         const std::vector<LiveFileStorageInfo>& files) {
  std::set<std::string> directories;
  for (const LiveFileStorageInfo& file : files) {
    if (file.file_type != kWalFile) {
      directories.insert(file.directory);
    }
  }
  if (directories.size() <= 1) {
    return Status::OK();
  }
  const std::string refusal = CopyIntoOneDirectory::kRefusal;
  DBImpl* impl = static_cast_with_check<DBImpl>(db->GetRootDB());
  InstrumentedMutexLock lock(impl->mutex());
  for (ColumnFamilyData* cfd : *impl->GetVersionSet()->GetColumnFamilySet()) {
    for (const DbPath& path : cfd->ioptions().cf_paths) {
      if (path.path != impl->GetName() && directories.count(path.path) > 0) {
        return Status::NotSupported(refusal + "column family \"" +
                                    cfd->GetName() + "\" has files in " +
                                    path.path);
      }
    }
  }
  // The family was dropped meanwhile, so it cannot be named.
  return Status::NotSupported(refusal + std::to_string(directories.size()) +
                              " directories have files");
}

Status CheckExportable(const ColumnFamilyMetaData& family) {
  if (family.delta_files.empty()) {
    return Status::OK();
  }
  return Status::NotSupported(
      "Export of column family \"" + family.name + "\", which has " +
      std::to_string(family.delta_files.size()) +
      " delta files (enable_delta_separation): their merge operands are not in "
      "its SST files");
}

}  // namespace ROCKSDB_NAMESPACE
