//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/path_layout/path_read_stats.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class AddressMapStore;
class VersionStorageInfo;

// What the "rocksdb.path-stats" property reports: what a column family has on
// each of its paths now, and what was read from there since it was opened.
struct PathStats {
  std::string directory;
  uint64_t sst_files = 0;
  uint64_t sst_bytes = 0;
  uint64_t blob_files = 0;
  uint64_t blob_bytes = 0;
  // The part of blob_bytes that no SST file refers to any more.
  uint64_t blob_garbage_bytes = 0;
  // Delta files. Not reported if no path has any.
  uint64_t delta_files = 0;
  uint64_t delta_bytes = 0;
  // Reads of a family with one path are not counted. Those of delta files are
  // among those of SST files.
  bool has_reads = false;
  PathReadStats::Counts sst_reads;
  PathReadStats::Counts blob_reads;

  uint64_t BlobLiveBytes() const { return blob_bytes - blob_garbage_bytes; }

  // One element per path. Files are those of `vstorage`; `reads` and `mapped`
  // may be null.
  // REQUIRES: !cf_paths.empty()
  static std::vector<PathStats> Collect(
      const VersionStorageInfo& vstorage, const std::vector<DbPath>& cf_paths,
      const PathReadStats* reads, const AddressMapStore* mapped = nullptr);

  // A table with a line per path.
  static std::string ToString(const std::vector<PathStats>& paths);

  // Keys "path<i>.<what>", for example "path1.blob-bytes".
  static void ToMap(const std::vector<PathStats>& paths,
                    std::map<std::string, std::string>* values);
};

}  // namespace ROCKSDB_NAMESPACE
