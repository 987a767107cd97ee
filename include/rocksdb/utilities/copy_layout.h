//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The directories of a copy of a DB: of a checkpoint
// (CreateCheckpointOptions::layout) or of a restored backup
// (RestoreOptions::layout). Without a layout a copy is in one directory.
//
// MANIFEST, WALs, OPTIONS and CURRENT are in the directory of the copy, which
// is an argument of the call, and so are the files of a column family without
// cf_paths here. The OPTIONS file of the copy has the paths and the ids, so a
// DB::Open() with the result of LoadLatestOptions() finds all files.
//
// No directory may be inside another one, and none of a checkpoint may be
// inside or around one of the source: InvalidArgument. Directories are compared
// by name; symbolic links are not resolved.
struct CopyLayout {
  struct ColumnFamily {
    // Directories, as in ColumnFamilyOptions::cf_paths: none, or 2 to 4. One of
    // them may be the directory of the copy. With paths, level_sst_path_ids,
    // level_blob_path_ids or delta_sorted_path_id must be set, too: they are
    // the reason for which an OPTIONS file has cf_paths.
    // Default: none; the files are in the directory of the copy
    std::vector<DbPath> cf_paths;

    // The options with these names in the copy. They say to which path a file
    // goes:
    // * an SST file by its level, a recent delta file by level 0. Without
    //   level_sst_path_ids, all go to path 0;
    // * a sorted delta file to delta_sorted_path_id; with -1, to the path of
    //   the last entry of level_sst_path_ids;
    // * a blob file by the deepest level with an SST file whose oldest blob
    //   file it is, or, if there is none, by the deepest level with an SST file
    //   that may refer to it. Without level_blob_path_ids, all go to path 0.
    //   A hot blob file (blob_hot_bytes) goes by the levels of its home, the
    //   path from which its values came.
    // Compaction later moves files that lie on another path than this says. The
    // copy has no blob_hot_bytes.
    std::vector<uint32_t> level_sst_path_ids;
    std::vector<uint32_t> level_blob_path_ids;
    int32_t delta_sorted_path_id = -1;

    // Entry i is the path in the copy of the files that are on path i of the
    // source, whatever their level is. With {0, 1}, the copy of a DB with two
    // paths has each file on the path with the same index. Files of a path
    // without entry are placed by level.
    // For checkpoints alone: a backup does not know on which path a file was.
    // Default: none; all files are placed by level
    std::vector<uint32_t> path_map;
  };

  // For each column family that is not in column_families.
  ColumnFamily all;

  // By name. A name that the DB does not have is InvalidArgument.
  std::map<std::string, ColumnFamily> column_families;
};

}  // namespace ROCKSDB_NAMESPACE
