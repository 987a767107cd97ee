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

// The statistics of the property "rocksdb.path-stats": the files that a column
// family has on each of its paths, and the reads from there since it was
// opened.
struct PathStats {
  std::string directory;
  uint64_t sst_files = 0;
  uint64_t sst_bytes = 0;
  uint64_t blob_files = 0;
  uint64_t blob_bytes = 0;
  // The part of blob_bytes to which no SST file refers.
  uint64_t blob_garbage_bytes = 0;
  // Delta files. Not reported if no path has, or has had, one.
  uint64_t delta_files = 0;
  uint64_t delta_bytes = 0;
  // False for a family with one path, whose reads are not counted.
  bool has_reads = false;
  PathReadStats::Counts sst_reads;
  PathReadStats::Counts blob_reads;
  // Not reported without delta files, as above.
  PathReadStats::Counts delta_reads;

  uint64_t BlobLiveBytes() const { return blob_bytes - blob_garbage_bytes; }

  // Returns one element per path. Files are those of `vstorage`; `reads` and
  // `mapped` may be nullptr.
  // REQUIRES: !cf_paths.empty()
  static std::vector<PathStats> Collect(
      const VersionStorageInfo& vstorage, const std::vector<DbPath>& cf_paths,
      const PathReadStats* reads, const AddressMapStore* mapped = nullptr);

  // Returns a table with a line per path.
  static std::string ToString(const std::vector<PathStats>& paths);

  // Adds the statistics by keys such as "path1.blob-bytes".
  static void ToMap(const std::vector<PathStats>& paths,
                    std::map<std::string, std::string>* values);
};

}  // namespace ROCKSDB_NAMESPACE
