//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

struct FileMetaData;
struct MutableCFOptions;
class VersionStorageInfo;

// Implements level_sst_path_ids, level_blob_path_ids and delta_sorted_path_id:
// determines which of a column family's cf_paths a file belongs to. All
// placement decisions use this class, so that the path to which a file is
// written and the path on which it is expected cannot differ.
//
// The options are mutable. A job uses the MutableCFOptions it was started with.
// A file that was placed by older options is *misplaced*, and compaction moves
// it; a delta file is moved by jobs of delta files.
//
// Stateless; safe to call from any thread.
class PathLayout {
 public:
  // The MANIFEST and FileDescriptor keep a path id in two bits.
  static constexpr uint32_t kMaxPaths = 4;

  // Returns true if SST files are placed by level. If not, they are placed as
  // in RocksDB (by the target_size of the paths).
  static bool HasSstLayout(const MutableCFOptions& options);
  static bool HasBlobLayout(const MutableCFOptions& options);
  static bool IsSet(const MutableCFOptions& options) {
    return HasSstLayout(options) || HasBlobLayout(options);
  }
  // Returns true if an option says where files belong: a layout, or
  // delta_sorted_path_id.
  static bool PlacesFiles(const MutableCFOptions& options);
  // Returns true if an option names paths by their ids, so that the meaning of
  // the options depends on cf_paths: PlacesFiles(), blob_hot_bytes, or
  // path_prices.
  static bool NamesPaths(const MutableCFOptions& options);

  // Returns the path id of the SST files of `level`.
  // REQUIRES: HasSstLayout(options), level >= 0
  static uint32_t SstPathId(const MutableCFOptions& options, int level);

  // Returns the path id of the SST files of `level`, or `otherwise` without a
  // layout.
  // REQUIRES: level >= 0
  static uint32_t SstPathIdOr(const MutableCFOptions& options, int level,
                              uint32_t otherwise);

  // Returns the path id of blob files that are written for entries of `level`;
  // 0 without a layout.
  // REQUIRES: level >= 0
  static uint32_t BlobPathId(const MutableCFOptions& options, int level);

  // Returns the path id of recent delta files (flushed and merged ones). It is
  // the same as for the SST files of level 0, because flushes write both.
  static uint32_t RecentDeltaPathId(const MutableCFOptions& options);

  // Returns the path id of sorted delta files.
  // num_levels: the number of levels of the column family, at least 1.
  static uint32_t SortedDeltaPathId(const MutableCFOptions& options,
                                    int num_levels);

  // Returns the path id of SST files of `level` for a manual compaction with
  // this `target_path_id`: 0 stands for the layout's choice if there is one.
  // REQUIRES: level >= 0
  static uint32_t ManualPathId(const MutableCFOptions& options, int level,
                               uint32_t target_path_id) {
    return target_path_id != 0 ? target_path_id
                               : SstPathIdOr(options, level, 0);
  }

  // Returns true if there is a layout, or if there are blob files on paths to
  // which only a layout can have written them.
  static bool IsInUse(const MutableCFOptions& options,
                      const VersionStorageInfo& storage_info);

  // Returns true if `file` refers to separated values.
  static bool HasBlobs(const FileMetaData& file);

  // Records in `file`, which is complete otherwise, that all blobs it refers to
  // (if any) are on this path.
  static void SetBlobPath(uint32_t path_id, FileMetaData* file);

  // Returns the paths on which `file` may refer to blobs, one bit each; 0 if it
  // refers to none.
  static uint8_t BlobPathMask(const FileMetaData& file);

  // Returns those of BlobPathMask() that are not the path where values of
  // `level` belong.
  static uint8_t MisplacedBlobMask(const MutableCFOptions& options,
                                   const FileMetaData& file, int level);

  // Returns true if all values that `file` refers to are on the path where
  // values of `to_level` belong.
  static bool BlobsCanMove(const MutableCFOptions& options,
                           const FileMetaData& file, int to_level);

  // Returns true if `file` lies on the path of the SST files of `level` (any
  // path without an SST layout).
  static bool IsOnPath(const MutableCFOptions& options,
                       const FileMetaData& file, int level);

  // Returns true if `file` may be moved to `to_level` without being rewritten.
  // That is the case iff IsOnPath() and BlobsCanMove(). This is the only rule
  // for such moves. A compaction, whose output path the user may have
  // specified, uses Compaction::InputsCanMove(), which applies the same rule to
  // that path.
  static bool CanMove(const MutableCFOptions& options, const FileMetaData& file,
                      int to_level);

  // Returns true if `file` of `level` lies, or refers to blobs that lie, on
  // another path than the layout specifies. Without an SST layout no SST file
  // is misplaced; without a blob layout blobs belong to path 0.
  static bool IsMisplaced(const MutableCFOptions& options,
                          const FileMetaData& file, int level) {
    return !CanMove(options, file, level);
  }

  // Returns InvalidArgument, naming option, level and id, if an id has no path,
  // or is not below kMaxPaths.
  // delta_sorted_path_id: a negative one stands for none.
  static Status Validate(const std::vector<uint32_t>& level_sst_path_ids,
                         const std::vector<uint32_t>& level_blob_path_ids,
                         int32_t delta_sorted_path_id, size_t num_paths);

  // Returns InvalidArgument if the output_path_id of CompactFiles() has no
  // path.
  static Status ValidateOutputPath(int output_path_id, size_t num_paths);

  // Returns the index of a path id in a list of `num_paths` paths. An id beyond
  // the list stands for the last path, as in TableFileName(): a database whose
  // files were moved to fewer paths keeps its path ids. A path id that comes
  // from a file is used as an index only after this function.
  // REQUIRES: num_paths > 0
  static size_t IndexOf(size_t path_id, size_t num_paths) {
    return path_id < num_paths ? path_id : num_paths - 1;
  }

  // Returns the directory of a path id, by IndexOf().
  // REQUIRES: !cf_paths.empty()
  static const std::string& Directory(const std::vector<DbPath>& cf_paths,
                                      uint32_t path_id);
  static std::string BlobFileName(const std::vector<DbPath>& cf_paths,
                                  uint64_t number, uint32_t path_id);
};

}  // namespace ROCKSDB_NAMESPACE
