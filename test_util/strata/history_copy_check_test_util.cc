//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_copy_check_test_util.h"

#include <cstddef>
#include <cstdint>
#include <set>

#include "db/path_layout/directory_names.h"
#include "file/filename.h"
#include "rocksdb/metadata.h"
#include "rocksdb/utilities/options_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the layout of a column family; nullptr if it has no paths.
const CopyLayout::ColumnFamily* LayoutOf(const CopyLayout* layout,
                                         const std::string& family) {
  if (layout == nullptr) {
    return nullptr;
  }
  const auto found = layout->column_families.find(family);
  const CopyLayout::ColumnFamily& result =
      found == layout->column_families.end() ? layout->all : found->second;
  return result.cf_paths.empty() ? nullptr : &result;
}

std::vector<std::string> CleanNames(const std::vector<DbPath>& paths) {
  std::vector<std::string> names;
  for (const DbPath& path : paths) {
    names.push_back(CleanDirectoryName(nullptr, path.path));
  }
  return names;
}

}  // namespace

void HistoryCopyCheck::SetPaths(const CopyLayout* layout,
                                const std::string& family,
                                ColumnFamilyOptions* options) {
  const CopyLayout::ColumnFamily none;
  const CopyLayout::ColumnFamily* const found = LayoutOf(layout, family);
  const CopyLayout::ColumnFamily& from = found == nullptr ? none : *found;
  options->cf_paths = from.cf_paths;
  options->level_sst_path_ids = from.level_sst_path_ids;
  options->level_blob_path_ids = from.level_blob_path_ids;
  options->delta_sorted_path_id = from.delta_sorted_path_id;
}

Status HistoryCopyCheck::StoredLayout(Env* env, const std::string& directory,
                                      const CopyLayout& layout) {
  ConfigOptions config;
  config.env = env;
  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> families;
  const Status s = LoadLatestOptions(config, directory, &db_options, &families);
  if (!s.ok()) {
    return s;
  }
  for (const ColumnFamilyDescriptor& family : families) {
    ColumnFamilyOptions expected;
    SetPaths(&layout, family.name, &expected);
    const ColumnFamilyOptions& stored = family.options;
    if (CleanNames(stored.cf_paths) != CleanNames(expected.cf_paths) ||
        stored.level_sst_path_ids != expected.level_sst_path_ids ||
        stored.level_blob_path_ids != expected.level_blob_path_ids ||
        stored.delta_sorted_path_id != expected.delta_sorted_path_id) {
      return Status::Corruption(
          "the OPTIONS file of the copy has another layout of family " +
          family.name);
    }
  }
  return s;
}

Status HistoryCopyCheck::Places(DB* db, ColumnFamilyHandle* family,
                                const std::string& directory,
                                const CopyLayout* layout) {
  std::set<std::string> allowed = {CleanDirectoryName(nullptr, directory)};
  if (const CopyLayout::ColumnFamily* const found =
          LayoutOf(layout, family->GetName())) {
    const std::vector<std::string> names = CleanNames(found->cf_paths);
    allowed = std::set<std::string>(names.begin(), names.end());
  }
  Status s;
  const auto check = [&](const std::string& place, const std::string& name) {
    if (allowed.count(CleanDirectoryName(nullptr, place)) == 0) {
      s = Status::Corruption("a file of the copy is in " + place, name);
    }
  };
  ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(family, &metadata);
  for (const LevelMetaData& level : metadata.levels) {
    for (const SstFileMetaData& file : level.files) {
      check(file.directory, file.relative_filename);
    }
  }
  for (const BlobMetaData& file : metadata.blob_files) {
    check(file.blob_file_path, file.blob_file_name);
  }
  for (const DeltaMetaData& file : metadata.delta_files) {
    check(file.directory, file.relative_filename);
  }
  return s;
}

Status HistoryCopyCheck::PointReads(DB* db, ColumnFamilyHandle* family,
                                    const HistoryModel::Contents& contents) {
  for (const auto& [key, columns] : contents) {
    std::string value;
    const Status s = db->Get(ReadOptions(), family, key, &value);
    if (!s.ok() && !s.IsNotFound()) {
      return s;
    }
    if (s.IsNotFound() || value != HistoryModel::DefaultColumn(columns)) {
      return Status::Corruption(
          "Get() of the copy differs from its iterator: key", key);
    }
  }
  return Status::OK();
}

Status HistoryCopyCheck::ShowFiles(Env* env, const std::string& root,
                                   const std::vector<std::string>& directories,
                                   std::string* out) {
  for (const std::string& directory : directories) {
    std::vector<std::string> names;
    const Status s = env->GetChildren(directory, &names);
    if (!s.ok()) {
      return s;
    }
    size_t num_ssts = 0;
    size_t num_blobs = 0;
    size_t num_deltas = 0;
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(name, &number, &type)) {
        num_ssts += type == kTableFile ? 1 : 0;
        num_blobs += type == kBlobFile ? 1 : 0;
        num_deltas += type == kDeltaFile ? 1 : 0;
      }
    }
    out->append(directory.substr(root.size() + 1))
        .append(" sst=" + std::to_string(num_ssts))
        .append(" blob=" + std::to_string(num_blobs))
        .append(" delta=" + std::to_string(num_deltas))
        .append("\n");
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
