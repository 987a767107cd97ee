//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/status.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class DBImpl;
class VersionStorageInfo;
struct FileMetaData;
struct MutableCFOptions;

// Garbage collection of the unmapped blob files of a column family with an
// address map, i.e. of the blob files that were written before the map was
// enabled. The addresses of their values are in SST files, so only compactions
// can move the values. A compaction of such an SST file moves all its values to
// the map (CompactionIterator::ConvertsBlobs()), and when no SST file refers to
// a blob file, the blob file is deleted.
//
// Which SST files: An SST file is linked to the oldest blob file that it refers
// to. So the garbage of the oldest blob files is freed when the SST files that
// are linked to them have been compacted. SST files are picked, those of the
// oldest blob files first, until the remaining unmapped blob files are within
// the limit. BlobGcPicker keeps the files of the map within the same limit, so
// all blob files together are within the limit.
//
// The outputs of the compaction of a picked SST file have no link to an
// unmapped blob file, so no data are picked twice.
class UnmappedBlobGc {
 public:
  struct BlobFile {
    uint64_t size = 0;       // bytes on disk
    uint64_t live_size = 0;  // bytes without garbage
    const std::unordered_set<uint64_t>* linked_ssts = nullptr;
  };
  // SST files with their levels.
  using Files = autovector<std::pair<int, FileMetaData*>>;

  UnmappedBlobGc() = delete;

  // Returns the numbers of the SST files to compact, none if the blob files are
  // within the limit.
  // blob_files: the unmapped blob files, oldest first.
  // limit: maximum size of the files as a multiple of the live size, at
  // least 1.
  static std::vector<uint64_t> PickSsts(const std::vector<BlobFile>& blob_files,
                                        double limit);

  // Returns the SST files to compact, each with its own level as output level.
  // Excludes files of levels above options.blob_file_starting_level, where a
  // compaction would put the values into the SST files.
  // limit: as for PickSsts(), or 0 for none.
  // also_busy: include files that are already being compacted.
  static Files Pick(const VersionStorageInfo& vstorage,
                    const MutableCFOptions& options, double limit,
                    bool also_busy);

  // Implements the part of DB::CollectBlobGarbage() for unmapped files:
  // compacts the files that Pick() returns.
  // REQUIRES: DB mutex not held; the column family has an enabled address map.
  static Status Collect(DBImpl* db, ColumnFamilyData* cfd,
                        const CollectBlobGarbageOptions& options);
};

}  // namespace ROCKSDB_NAMESPACE
