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

// What level_sst_path_ids and level_blob_path_ids mean: which of a column
// family's cf_paths a file belongs to. All placement decisions ask this class,
// so that "where a file is written" and "whether it lies there" cannot differ.
//
// The options are mutable. A job asks with the MutableCFOptions it was started
// with; a file that was placed by older ones is *misplaced* and compaction
// moves it.
//
// Stateless; safe to call from any thread.
class PathLayout {
 public:
  // The MANIFEST and FileDescriptor keep a path id in two bits.
  static constexpr uint32_t kMaxPaths = 4;

  // Is the placement of SST files by level? If not, it is RocksDB's own
  // (target_size of the paths).
  static bool HasSstLayout(const MutableCFOptions& options);
  static bool HasBlobLayout(const MutableCFOptions& options);
  static bool IsSet(const MutableCFOptions& options) {
    return HasSstLayout(options) || HasBlobLayout(options);
  }

  // The path of the SST files of `level`.
  // REQUIRES: HasSstLayout(options), level >= 0
  static uint32_t SstPathId(const MutableCFOptions& options, int level);

  // The path of the SST files of `level`, or `otherwise` without a layout.
  // REQUIRES: level >= 0
  static uint32_t SstPathIdOr(const MutableCFOptions& options, int level,
                              uint32_t otherwise);

  // The path of blob files written for entries that go to `level`; 0 without a
  // layout.
  // REQUIRES: level >= 0
  static uint32_t BlobPathId(const MutableCFOptions& options, int level);

  // What a manual compaction that asks for `target_path_id` gets for SST files
  // of `level`: 0 stands for the layout's choice if there is one.
  // REQUIRES: level >= 0
  static uint32_t ManualPathId(const MutableCFOptions& options, int level,
                               uint32_t target_path_id) {
    return target_path_id != 0 ? target_path_id
                               : SstPathIdOr(options, level, 0);
  }

  // Is there a layout, or do blob files lie where only a layout puts them?
  static bool IsInUse(const MutableCFOptions& options,
                      const VersionStorageInfo& storage_info);

  // Does `file` refer to separated values?
  static bool HasBlobs(const FileMetaData& file);

  // Notes in `file`, which is complete otherwise, that all blobs it refers to
  // (if any) are on one path.
  static void SetBlobPath(uint32_t path_id, FileMetaData* file);

  // The paths on which `file` may refer to blobs, one bit each; 0 if it refers
  // to none.
  static uint8_t BlobPathMask(const FileMetaData& file);

  // Do the values that `file` refers to lie where values of `to_level` belong?
  static bool BlobsCanMove(const MutableCFOptions& options,
                           const FileMetaData& file, int to_level);

  // The one rule for moves without rewriting: may `file` become a file of
  // `to_level` as it is? True iff it lies on the path of that level's SST files
  // (any path without an SST layout) and BlobsCanMove(). A compaction, whose
  // output path may be somebody's explicit wish, asks
  // Compaction::InputsCanMove(), which applies the same rule to that path.
  static bool CanMove(const MutableCFOptions& options, const FileMetaData& file,
                      int to_level);

  // Does `file` of `level` lie, or refer to blobs that lie, elsewhere than the
  // layout asks for? Without an SST layout no SST file is misplaced; without a
  // blob layout blobs belong to path 0.
  static bool IsMisplaced(const MutableCFOptions& options,
                          const FileMetaData& file, int level) {
    return !CanMove(options, file, level);
  }

  // InvalidArgument naming option, level and id if an id has no path, or is
  // beyond kMaxPaths.
  static Status Validate(const std::vector<uint32_t>& level_sst_path_ids,
                         const std::vector<uint32_t>& level_blob_path_ids,
                         size_t num_paths);

  // InvalidArgument if the output_path_id of CompactFiles() names no path.
  static Status ValidateOutputPath(int output_path_id, size_t num_paths);

  // The index of a file's path in a list of `num_paths` paths. A path id beyond
  // the list stands for the last path, as in TableFileName(): a database whose
  // files were moved to fewer paths keeps its path ids. A path id that comes
  // from a file is used as an index only after this function. REQUIRES:
  // num_paths > 0
  static size_t IndexOf(size_t path_id, size_t num_paths) {
    return path_id < num_paths ? path_id : num_paths - 1;
  }

  // The directory of a path id, by IndexOf().
  // REQUIRES: !cf_paths.empty()
  static const std::string& Directory(const std::vector<DbPath>& cf_paths,
                                      uint32_t path_id);
  static std::string BlobFileName(const std::vector<DbPath>& cf_paths,
                                  uint64_t number, uint32_t path_id);
};

}  // namespace ROCKSDB_NAMESPACE
