//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/refused_records.h"

#include "db/blob/blob_file_meta.h"
#include "db/version_edit.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

bool IsRefusedByRocksDB(const VersionStorageInfo& storage) {
  if (storage.delta() != nullptr) {
    return true;
  }
  for (const auto& file : storage.GetBlobFiles()) {
    if (file->GetPathId() != 0 || file->IsMapped()) {
      return true;
    }
  }
  for (int level = 0; level < storage.num_levels(); ++level) {
    for (const FileMetaData* file : storage.LevelFiles(level)) {
      if (file->blob_refs.mapped.Any()) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace ROCKSDB_NAMESPACE
