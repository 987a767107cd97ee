//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_copy_check_test_util.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_version.h"
#include "db/path_layout/directory_names.h"
#include "db/path_layout/manifest_file_places.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "rocksdb/utilities/options_util.h"
#include "util/cast_util.h"

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

// Reads the MANIFEST of a closed DB, or of one that does not write to it.
Status ReadManifest(Env* env, const std::string& directory,
                    ManifestColumnFamilies* families) {
  std::string name;
  Status s = ReadFileToString(env, CurrentFileName(directory), &name);
  if (!s.ok()) {
    return s;
  }
  if (name.empty() || name.back() != '\n') {
    return Status::Corruption("CURRENT of the copy has no newline", name);
  }
  name.pop_back();
  name = directory + "/" + name;
  uint64_t size = 0;
  s = env->GetFileSize(name, &size);
  return s.ok() ? ReadManifestFilePlaces(env->GetFileSystem().get(), name, size,
                                         families)
                : s;
}

// Returns the path ids of the files of a column family, by file number.
std::map<uint64_t, uint32_t> PathIdsOf(DB* db, uint32_t family_id) {
  std::map<uint64_t, uint32_t> ids;
  DBImpl* const impl = static_cast_with_check<DBImpl>(db->GetRootDB());
  const InstrumentedMutexLock lock(impl->mutex());
  ColumnFamilyData* const cfd =
      impl->GetVersionSet()->GetColumnFamilySet()->GetColumnFamily(family_id);
  if (cfd == nullptr) {
    return ids;
  }
  const VersionStorageInfo& files = *cfd->current()->storage_info();
  for (int level = 0; level < files.num_levels(); ++level) {
    for (const FileMetaData* const file : files.LevelFiles(level)) {
      ids[file->fd.GetNumber()] = file->fd.GetPathId();
    }
  }
  for (const auto& file : files.GetBlobFiles()) {
    ids[file->GetBlobFileNumber()] = file->GetPathId();
  }
  if (files.delta() != nullptr) {
    files.delta()->ForEachFile([&](const DeltaVersion::FilePtr& file) {
      ids[file->number()] = file->description().path_id;
    });
  }
  return ids;
}

// The rules of CopyLayout, written down a second time.
class ExpectedPaths {
 public:
  // source_ids: the path ids in the source.
  // REQUIRES: all arguments outlive this
  ExpectedPaths(const ManifestColumnFamily& family,
                const CopyLayout::ColumnFamily& layout,
                const std::map<uint64_t, uint32_t>& source_ids)
      : family_(family), layout_(layout), source_ids_(source_ids) {}

  // Returns the ids of the paths on which the copy may have the file.
  std::set<uint32_t> Of(uint64_t number, const FileInManifest& file) const {
    const std::vector<uint32_t>& map = layout_.path_map;
    const auto in_source = source_ids_.find(number);
    if (in_source != source_ids_.end() && in_source->second < map.size()) {
      return {map[in_source->second]};
    }
    std::set<uint32_t> ids = ByLevel(number, file);
    if (in_source == source_ids_.end()) {
      // The source has deleted the file since, so its path is not known.
      ids.insert(map.begin(), map.end());
    }
    return ids;
  }

 private:
  static uint32_t IdOfLevel(const std::vector<uint32_t>& ids, int level) {
    return ids.empty()
               ? 0
               : ids[std::min(static_cast<size_t>(level), ids.size() - 1)];
  }

  std::set<uint32_t> ByLevel(uint64_t number,
                             const FileInManifest& file) const {
    const std::vector<uint32_t>& sst_ids = layout_.level_sst_path_ids;
    if (file.type == kBlobFile) {
      return OfBlobFile(number);
    }
    if (!file.is_sorted) {
      // The level of a delta file is 0.
      return {IdOfLevel(sst_ids, file.level)};
    }
    if (layout_.delta_sorted_path_id >= 0) {
      return {static_cast<uint32_t>(layout_.delta_sorted_path_id)};
    }
    return {sst_ids.empty() ? 0 : sst_ids.back()};
  }

  // If the blob file is the oldest one of SST files, the deepest of their
  // levels decides, else that of any SST file that may refer to it. An obsolete
  // blob file, which a MANIFEST may name, may be on the path of level 0.
  std::set<uint32_t> OfBlobFile(uint64_t number) const {
    const std::vector<uint32_t>& blob_ids = layout_.level_blob_path_ids;
    std::set<uint32_t> ids = {IdOfLevel(blob_ids, 0)};
    int deepest = -1;
    for (const auto& [sst_number, sst] : family_.files) {
      if (sst.type == kTableFile && sst.blob_path_mask != 0 &&
          sst.oldest_blob_file <= number) {
        ids.insert(IdOfLevel(blob_ids, sst.level));
        if (sst.oldest_blob_file == number) {
          deepest = std::max(deepest, sst.level);
        }
      }
    }
    return deepest < 0 ? ids : std::set<uint32_t>{IdOfLevel(blob_ids, deepest)};
  }

  const ManifestColumnFamily& family_;
  const CopyLayout::ColumnFamily& layout_;
  const std::map<uint64_t, uint32_t>& source_ids_;
};

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
  // A copy has no hot values.
  options->blob_hot_bytes = 0;
  options->blob_hot_path_id = 0;
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
        stored.delta_sorted_path_id != expected.delta_sorted_path_id ||
        stored.blob_hot_bytes != expected.blob_hot_bytes) {
      return Status::Corruption(
          "the OPTIONS file of the copy has another layout of family " +
          family.name);
    }
  }
  return s;
}

Status HistoryCopyCheck::Places(Env* env, const std::string& directory,
                                const CopyLayout& layout, DB* source) {
  ManifestColumnFamilies families;
  Status s = ReadManifest(env, directory, &families);
  if (!s.ok()) {
    return s;
  }
  for (const auto& [id, family] : families) {
    const CopyLayout::ColumnFamily none;
    const CopyLayout::ColumnFamily* const found =
        LayoutOf(&layout, family.name);
    const CopyLayout::ColumnFamily& from = found == nullptr ? none : *found;
    std::map<uint64_t, uint32_t> source_ids;
    if (source != nullptr && !from.path_map.empty()) {
      source_ids = PathIdsOf(source, id);
    }
    const ExpectedPaths expected(family, from, source_ids);
    for (const auto& [number, file] : family.files) {
      if (s.ok() && expected.Of(number, file).count(file.path_id) == 0) {
        s = Status::Corruption("file " + std::to_string(number) +
                                   " of the copy is on path " +
                                   std::to_string(file.path_id) + " of family",
                               family.name);
      }
      if (s.ok() && file.type == kTableFile) {
        s = env->FileExists(MakeTableFileName(
            found == nullptr ? directory : from.cf_paths[file.path_id].path,
            number));
        if (s.IsNotFound()) {
          s = Status::Corruption("an SST file is not where its path is",
                                 s.ToString());
        }
      }
    }
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
