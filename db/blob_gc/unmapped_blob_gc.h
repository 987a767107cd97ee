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

// Garbage collection of unmapped blob files in a column family with an address
// map: those that were written before the map was turned on. The addresses of
// their values are in SST files, so no job beside compaction can move the
// values. But a compaction of such an SST file gives all its values to the map
// (CompactionIterator::ConvertsBlobs()), and when no SST file refers to a blob
// file any more, the blob file goes.
//
// Which. An SST file is linked to the oldest blob file that it refers to. So
// the garbage of the oldest blob files is free when the SST files that are
// linked to them were compacted. They are chosen, the oldest first, until the
// unmapped blob files that stay take up no more than the limit says. The files
// of the map are kept within the same limit by BlobGcPicker, so all together
// are.
//
// A compaction of an SST file that is chosen leaves it without a link to an
// unmapped blob file. So none is chosen twice.
class UnmappedBlobGc {
 public:
  struct BlobFile {
    uint64_t size = 0;       // on disk
    uint64_t live_size = 0;  // what it would be without garbage
    const std::unordered_set<uint64_t>* linked_ssts = nullptr;
  };
  // SST files with their levels.
  using Files = autovector<std::pair<int, FileMetaData*>>;

  UnmappedBlobGc() = delete;

  // The numbers of the SST files to compact; none if the limit is kept.
  // blob_files: the unmapped ones, the oldest first.
  // limit: multiple of the live size, at least 1.
  static std::vector<uint64_t> PickSsts(const std::vector<BlobFile>& blob_files,
                                        double limit);

  // The SST files to compact, each with its own level as output. Files of
  // levels above options.blob_file_starting_level are left out: there a
  // compaction would put the values into the SST files. limit: as of
  // PickSsts(), or 0 for none. also_busy: with those that a compaction has
  // already.
  static Files Pick(const VersionStorageInfo& vstorage,
                    const MutableCFOptions& options, double limit,
                    bool also_busy);

  // The part of DB::CollectBlobGarbage(): compacts what Pick() says.
  // REQUIRES: DB mutex not held; the column family has an address map, enabled.
  static Status Collect(DBImpl* db, ColumnFamilyData* cfd,
                        const CollectBlobGarbageOptions& options);
};

}  // namespace ROCKSDB_NAMESPACE
