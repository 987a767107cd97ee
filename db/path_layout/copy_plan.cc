//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/copy_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "db/path_layout/directory_names.h"
#include "db/path_layout/path_layout.h"
#include "options/cf_options.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Layout = CopyLayout::ColumnFamily;

// Stands for the number of levels of a column family, which a MANIFEST does not
// have: with it the last level is that of the last entry of a layout.
constexpr int kManyLevels = std::numeric_limits<int>::max();

bool HasIds(const Layout& layout) {
  return !layout.level_sst_path_ids.empty() ||
         !layout.level_blob_path_ids.empty() ||
         layout.delta_sorted_path_id >= 0;
}

// Returns the options that a column family with this layout has.
MutableCFOptions OptionsOf(const Layout& layout) {
  MutableCFOptions options;
  options.level_sst_path_ids = layout.level_sst_path_ids;
  options.level_blob_path_ids = layout.level_blob_path_ids;
  options.delta_sorted_path_id = layout.delta_sorted_path_id;
  return options;
}

// Returns the path id of an SST or delta file.
uint32_t PathIdOf(const MutableCFOptions& options, const FileInManifest& file) {
  if (file.type == kTableFile) {
    return PathLayout::SstPathIdOr(options, file.level, /*otherwise=*/0);
  }
  return file.is_sorted ? PathLayout::SortedDeltaPathId(options, kManyLevels)
                        : PathLayout::RecentDeltaPathId(options);
}

// Determines the levels by which blob files are placed: see CopyLayout.
class BlobLevels {
 public:
  explicit BlobLevels(const ManifestColumnFamily& family) {
    for (const auto& [number, file] : family.files) {
      for (uint32_t id = 0; id < PathLayout::kMaxPaths; ++id) {
        if (file.type == kTableFile && (file.blob_path_mask >> id & 1) != 0) {
          Levels& levels = by_oldest_[id][file.oldest_blob_file];
          levels.of_oldest = std::max(levels.of_oldest, file.level);
        }
      }
    }
    for (auto& by_oldest : by_oldest_) {
      int deepest = 0;
      for (auto& [number, levels] : by_oldest) {
        deepest = std::max(deepest, levels.of_oldest);
        levels.deepest = deepest;
      }
    }
  }

  // Returns the level of a blob file of this path; 0 if no SST file refers to
  // it.
  int Of(uint64_t number, uint32_t path_id) const {
    const auto& by_oldest = by_oldest_[path_id];
    auto found = by_oldest.upper_bound(number);
    if (found == by_oldest.begin()) {
      return 0;
    }
    --found;
    return found->first == number ? found->second.of_oldest
                                  : found->second.deepest;
  }

 private:
  struct Levels {
    // The deepest level of the SST files with this oldest blob file.
    int of_oldest = 0;
    // The deepest level of these and of SST files with an older one.
    int deepest = 0;
  };

  // path id -> number of the oldest blob file of SST files -> their levels
  std::array<std::map<uint64_t, Levels>, PathLayout::kMaxPaths> by_oldest_;
};

Status ValidateLayout(const Layout& layout) {
  const size_t num_paths = layout.cf_paths.size();
  if (num_paths == 0) {
    return !HasIds(layout) && layout.path_map.empty()
               ? Status::OK()
               : Status::InvalidArgument("there are path ids, but no cf_paths");
  }
  if (num_paths < 2 || num_paths > PathLayout::kMaxPaths) {
    return Status::InvalidArgument("cf_paths has " + std::to_string(num_paths) +
                                   " paths instead of 2 to " +
                                   std::to_string(PathLayout::kMaxPaths));
  }
  if (!HasIds(layout)) {
    return Status::InvalidArgument(
        "cf_paths without level_sst_path_ids, level_blob_path_ids or "
        "delta_sorted_path_id would not be in later OPTIONS files");
  }
  if (layout.delta_sorted_path_id < -1) {
    return Status::InvalidArgument("delta_sorted_path_id " +
                                   std::to_string(layout.delta_sorted_path_id) +
                                   " is neither a path id nor -1");
  }
  for (const DbPath& path : layout.cf_paths) {
    if (path.path.empty()) {
      return Status::InvalidArgument("a path in cf_paths is empty");
    }
  }
  if (layout.path_map.size() > PathLayout::kMaxPaths) {
    return Status::InvalidArgument("path_map has more than " +
                                   std::to_string(PathLayout::kMaxPaths) +
                                   " entries");
  }
  for (const uint32_t id : layout.path_map) {
    if (id >= num_paths) {
      return Status::InvalidArgument("path_map: path id " + std::to_string(id) +
                                     " names no path: cf_paths has " +
                                     std::to_string(num_paths));
    }
  }
  return PathLayout::Validate(layout.level_sst_path_ids,
                              layout.level_blob_path_ids,
                              layout.delta_sorted_path_id, num_paths);
}

}  // namespace

CopyPlan::CopyPlan(const CopyLayout& layout, const std::string& directory,
                   FileSystem* fs)
    : layout_(layout), fs_(fs), directory_(CleanDirectoryName(fs, directory)) {
  std::set<std::string> directories;
  const auto add = [&](Layout* family) {
    for (DbPath& path : family->cf_paths) {
      // Validate() refuses an empty one.
      if (!path.path.empty()) {
        path.path = CleanDirectoryName(fs_, path.path);
        directories.insert(path.path);
      }
    }
  };
  add(&layout_.all);
  for (auto& [name, family] : layout_.column_families) {
    add(&family);
  }
  directories.erase(directory_);
  other_directories_.assign(directories.begin(), directories.end());
}

Status CopyPlan::Validate() const {
  Status s = ValidateLayout(layout_.all);
  if (!s.ok()) {
    return AppendMessage(s, " in the layout of all ",
                         "column families of a copy");
  }
  for (const auto& [name, family] : layout_.column_families) {
    s = ValidateLayout(family);
    if (!s.ok()) {
      return AppendMessage(s, " in the layout of a copy for column family ",
                           name);
    }
  }
  for (size_t i = 0; i < other_directories_.size(); ++i) {
    const std::string& one = other_directories_[i];
    for (size_t j = 0; j <= i; ++j) {
      const std::string& other = j == i ? directory_ : other_directories_[j];
      if (DirectoriesOverlap(one, other)) {
        return Status::InvalidArgument(
            "Directories of a copy must not be inside one another: " + one,
            other);
      }
    }
  }
  return Status::OK();
}

const Layout* CopyPlan::LayoutOf(const std::string& family) const {
  const auto found = layout_.column_families.find(family);
  const Layout& layout =
      found == layout_.column_families.end() ? layout_.all : found->second;
  return layout.cf_paths.empty() ? nullptr : &layout;
}

Status CopyPlan::Make(const ManifestColumnFamilies& families) {
  path_ids_.clear();
  directories_.clear();
  std::set<std::string> names;
  for (const auto& [id, family] : families) {
    names.insert(family.name);
    PathIdMap& ids = path_ids_[id];
    if (const Layout* const layout = LayoutOf(family.name)) {
      Plan(family, *layout, &ids);
    } else {
      for (const auto& [number, file] : family.files) {
        directories_[number].clear();
      }
    }
  }
  for (const auto& [name, layout] : layout_.column_families) {
    if (names.count(name) == 0) {
      return Status::InvalidArgument(
          "The layout of a copy has a column family that the database does not "
          "have",
          name);
    }
  }
  return Status::OK();
}

void CopyPlan::Plan(const ManifestColumnFamily& family, const Layout& layout,
                    PathIdMap* ids) {
  std::vector<std::string> directories;
  for (const DbPath& path : layout.cf_paths) {
    std::string directory = CleanDirectoryName(fs_, path.path);
    if (directory == directory_) {
      directory.clear();
    }
    directories.push_back(std::move(directory));
  }
  const MutableCFOptions options = OptionsOf(layout);
  for (uint32_t from = 0; from < PathLayout::kMaxPaths; ++from) {
    ids->Set(from, from < layout.path_map.size()
                       ? layout.path_map[from]
                       : PathLayout::BlobPathId(options, /*level=*/0));
  }
  const BlobLevels blob_levels(family);
  for (const auto& [number, file] : family.files) {
    if (file.type == kBlobFile) {
      const uint32_t from = file.hot.HomeOr(file.path_id);
      PlanBlobFile(
          number, file, layout,
          PathLayout::BlobPathId(options, blob_levels.Of(number, from)), ids);
    } else {
      ids->SetFile(number, file.path_id < layout.path_map.size()
                               ? layout.path_map[file.path_id]
                               : PathIdOf(options, file));
    }
    directories_[number] = directories[ids->OfFile(number, file.path_id)];
  }
}

void CopyPlan::PlanBlobFile(uint64_t number, const FileInManifest& file,
                            const Layout& layout, uint32_t by_level,
                            PathIdMap* ids) {
  const auto place = [&](uint32_t path_id) {
    return path_id < layout.path_map.size() ? layout.path_map[path_id]
                                            : by_level;
  };
  if (file.hot.is_hot()) {
    // Without an entry for its path and for its home, the file goes home.
    ids->SetHotFile(number, file.hot.home(), place(file.hot.home()),
                    place(file.path_id));
  } else {
    ids->SetBlobFile(number, file.path_id, place(file.path_id));
  }
}

const PathIdMap& CopyPlan::PathIdsOf(uint32_t family_id) const {
  // A column family that was dropped has records in the MANIFEST.
  static const PathIdMap* const kDropped = new PathIdMap();
  const auto found = path_ids_.find(family_id);
  return found == path_ids_.end() ? *kDropped : found->second;
}

const std::string& CopyPlan::DirectoryOf(uint64_t number) const {
  static const std::string* const kOfTheCopy = new std::string();
  const auto found = directories_.find(number);
  return found == directories_.end() ? *kOfTheCopy : found->second;
}

}  // namespace ROCKSDB_NAMESPACE
