//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/refused_records.h"

#include "db/blob/blob_file_meta.h"
#include "db/version_edit.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

FeatureSet FeaturesRefusedByRocksDB(const VersionStorageInfo& storage) {
  FeatureSet features;
  if (storage.delta() != nullptr) {
    features.Add(FeatureSet::kDeltas);
  }
  for (const auto& file : storage.GetBlobFiles()) {
    if (file->GetPathId() != 0) {
      features.Add(FeatureSet::kLayouts);
    }
    if (file->IsMapped()) {
      features.Add(FeatureSet::kMap);
    }
  }
  for (int level = 0; level < storage.num_levels(); ++level) {
    for (const FileMetaData* file : storage.LevelFiles(level)) {
      if (file->blob_refs.mapped.Any()) {
        features.Add(FeatureSet::kMap);
      }
    }
  }
  return features;
}

bool IsRefusedByRocksDB(const VersionStorageInfo& storage) {
  return !FeaturesRefusedByRocksDB(storage).IsEmpty();
}

}  // namespace ROCKSDB_NAMESPACE
