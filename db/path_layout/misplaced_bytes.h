//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class AddressMapStore;
class BlobFileMetaData;
class ColumnFamilyData;
class VersionStorageInfo;
struct MutableCFOptions;

// How much of a Version lies on other paths than the layout says: what the
// property "rocksdb.misplaced-bytes" and the columns of "rocksdb.path-stats"
// show, and what MigratePaths() has left to do.
//
// There is one rule of what is misplaced, that of the jobs that move files:
// VersionStorageStrata::ListMisplacedFiles() for SST files and the values that
// they refer to, DeltaPicker::Paths for delta files. Counted are
// * an SST file on another path than that of its level, with all its bytes;
// * a delta file on another path than that of its tier, with all its bytes;
// * a blob file to which a misplaced SST file may refer, and that is not on the
//   path of values of its level, with its live bytes: garbage is not moved, but
//   deleted with the file. A hot file (blob_hot_bytes) counts as being on its
//   home path;
// * a hot file that must not stay (BlobHeatPicker::MustDrain()), with its live
//   bytes.
//
// Invariant: if nothing is to be moved (IsEmpty()), there are no files and no
// bytes.
class MisplacedBytes {
 public:
  struct Count {
    uint64_t files = 0;
    uint64_t bytes = 0;

    void Add(uint64_t size) {
      ++files;
      bytes += size;
    }
  };

  // REQUIRES: DB mutex held
  static MisplacedBytes Of(ColumnFamilyData* cfd);
  // num_paths: the number of paths, at least 1.
  // mapped: the address map, for the garbage in blob files; may be nullptr.
  static MisplacedBytes Of(const VersionStorageInfo& files,
                           const MutableCFOptions& options, size_t num_paths,
                           const AddressMapStore* mapped);

  // One element for each path.
  const std::vector<Count>& paths() const { return paths_; }
  Count Sum() const;
  // The number of SST files that have to be rewritten, of hot blob files that
  // have to be drained, and of delta files that have to be moved.
  size_t num_sst() const { return num_sst_; }
  size_t num_hot() const { return num_hot_; }
  size_t num_delta() const { return num_delta_; }
  bool IsEmpty() const {
    return num_sst_ == 0 && num_hot_ == 0 && num_delta_ == 0;
  }

 private:
  explicit MisplacedBytes(size_t num_paths) : paths_(num_paths) {}

  void AddSstAndBlobFiles(const VersionStorageInfo& files,
                          const MutableCFOptions& options,
                          const AddressMapStore* mapped);
  void AddDeltaFiles(const VersionStorageInfo& files,
                     const MutableCFOptions& options);
  bool MustDrain(const BlobFileMetaData& file, const MutableCFOptions& options,
                 const AddressMapStore* mapped) const;
  Count& CountOf(uint32_t path_id);

  std::vector<Count> paths_;
  size_t num_sst_ = 0;
  size_t num_hot_ = 0;
  size_t num_delta_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
