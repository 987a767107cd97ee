//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "db/path_layout/manifest_file_places.h"
#include "db/path_layout/path_id_map.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/copy_layout.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Determines where each file of a copy with a CopyLayout is.
//
// Invariant: the path id that PathIdsOf() gives a file and the directory that
// DirectoryOf() returns for it are the same path of its column family.
class CopyPlan {
 public:
  // directory: of the copy.
  // fs: resolves relative names.
  CopyPlan(const CopyLayout& layout, const std::string& directory,
           FileSystem* fs);

  // Returns InvalidArgument, naming the column family, if a copy cannot have
  // this layout whatever its files are: the ids or the number of the paths are
  // wrong, or a directory is inside another one.
  Status Validate() const;

  // Plans for all files of a MANIFEST. Returns InvalidArgument if the layout
  // names a column family that is not in it.
  // REQUIRES: Validate() returned OK
  Status Make(const ManifestColumnFamilies& families);

  // The directories besides that of the copy, sorted by name; results of
  // CleanDirectoryName().
  const std::vector<std::string>& other_directories() const {
    return other_directories_;
  }

  // Returns the layout of a column family; nullptr if its files are in the
  // directory of the copy. CleanDirectoryName() has made the paths absolute, so
  // a change of the current directory does not matter.
  const CopyLayout::ColumnFamily* LayoutOf(const std::string& family) const;

  // Returns the path ids of a column family in the copy.
  const PathIdMap& PathIdsOf(uint32_t family_id) const;

  // Returns the directory of an SST, blob or delta file: one of
  // other_directories(), or an empty name, which stands for the directory of
  // the copy. Files that the MANIFEST does not name belong there, too.
  const std::string& DirectoryOf(uint64_t number) const;

  // Returns true if the MANIFEST has this SST, blob or delta file.
  bool Has(uint64_t number) const { return directories_.count(number) > 0; }

 private:
  void Plan(const ManifestColumnFamily& family,
            const CopyLayout::ColumnFamily& layout, PathIdMap* ids);
  // by_level: the path id of a blob file that the map does not place.
  static void PlanBlobFile(uint64_t number, const FileInManifest& file,
                           const CopyLayout::ColumnFamily& layout,
                           uint32_t by_level, PathIdMap* ids);

  CopyLayout layout_;
  FileSystem* const fs_;
  const std::string directory_;
  std::vector<std::string> other_directories_;
  std::map<uint32_t, PathIdMap> path_ids_;
  std::unordered_map<uint64_t, std::string> directories_;
};

}  // namespace ROCKSDB_NAMESPACE
