//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/strata/manifest_features.h"
#include "options/strata/feature_set.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Decides how features of Strata are taken out of the column families of a
// database: with which options it is opened for that, what is to be rewritten,
// and how much space that needs. It looks at no file.
//
// Invariants:
// 1. With the options of a session, no job writes anything new that needs a
//    feature which is to go.
// 2. These options keep cf_paths in the OPTIONS file (PathLayout::NamesPaths())
//    if a family had them there. So an open by the OPTIONS file of the database
//    finds all files, after a crash at any moment, too.
// 3. Only options of Strata's change.
//
// Not thread-safe.
class FeaturePlan {
 public:
  // What is done with a column family; a later one does more than an earlier.
  enum class Work {
    kNone,
    // MigratePaths(): rewrites files on other paths than they belong to. Delta
    // files that are to stay are moved, too: the paths of the layout are no
    // longer in the OPTIONS file.
    kMove,
    // CompactRange(): also makes values of all operands in delta files.
    kCompact,
    // The same with BottommostLevelCompaction::kForce: rewrites all SST files,
    // and moves all values out of the address map.
    kRewrite,
  };

  struct Family {
    std::string name;
    Work work = Work::kNone;
    // About how many bytes the work writes.
    uint64_t bytes = 0;
    // CompactRangeOptions::target_path_id of compactions of all files: without
    // an SST layout they would put all of them on the first path, so it is the
    // path that has most of their bytes. 0: that path, or the layout's choice.
    uint32_t target_path_id = 0;
    // Directory -> bytes that may have to be free there during the work.
    std::map<std::string, uint64_t> needs;
  };

  // features: those that are to go.
  // into_first_path: whether SST files are moved to the first path, too. Blob
  //     files are in any case, with kLayouts: RocksDB reads them nowhere else.
  // REQUIRES: !into_first_path, or features has kLayouts
  FeaturePlan(const FeatureSet& features, bool into_first_path)
      : features_(features), into_first_path_(into_first_path) {}

  // Adds a column family. Returns an error, which names the family and what to
  // do, if its data cannot be converted with these options.
  // options: as loaded.
  // paths: where the files of the family are.
  // REQUIRES: !paths.empty()
  Status Add(const ManifestFeatures::Family& family,
             const ColumnFamilyOptions& options,
             const std::vector<DbPath>& paths);

  const std::vector<Family>& families() const { return families_; }
  bool HasWork() const;

  // Sets the options with which the database is opened. A second call changes
  // nothing.
  // paths: as for Add().
  void SetSessionOptions(const std::vector<DbPath>& paths,
                         ColumnFamilyOptions* options) const;

  // Returns NoSpace, which names the family, if a device lacks the room for its
  // work. The families are worked on one after the other.
  // wal_bytes: are in WALs, and are flushed first.
  Status CheckSpace(FileSystem* fs, uint64_t wal_bytes) const;

 private:
  Work WorkOn(const ManifestFeatures::Family& family, size_t num_paths) const;
  // Returns true if delta files of the family are to leave their paths.
  bool MovesDeltas(const ManifestFeatures::Family& family,
                   size_t num_paths) const;
  // Returns true if the session has an SST layout (SetSessionOptions()).
  bool HasSstLayout(const ColumnFamilyOptions& options, size_t num_paths) const;
  // Returns the path id to which compactions of all files write SST files.
  uint32_t SstPathId(const ManifestFeatures::Family& family,
                     const ColumnFamilyOptions& options,
                     size_t num_paths) const;
  static Status CheckWork(const ManifestFeatures::Family& family, Work work,
                          const ColumnFamilyOptions& options);
  // sst_path_id: SstPathId().
  void AddNeeds(const ManifestFeatures::Family& family,
                const std::vector<DbPath>& paths, uint32_t sst_path_id,
                Family* planned) const;
  // Returns true if the work rewrites the SST file.
  bool Rewrites(Work work, const ManifestFamily::File& file) const;

  const FeatureSet features_;
  const bool into_first_path_;
  std::vector<Family> families_;
};

}  // namespace ROCKSDB_NAMESPACE
