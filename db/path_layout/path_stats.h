//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/path_layout/path_io_times.h"
#include "db/path_layout/path_job_stats.h"
#include "db/path_layout/path_read_stats.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class AddressMapStore;
class ColumnFamilyData;
class MisplacedBytes;
class VersionStorageInfo;
struct MutableCFOptions;

// The statistics of the property "rocksdb.path-stats": the files that a column
// family has on each of its paths, the reads from there since it was opened,
// the bytes that jobs have read and written there, and the cost of the files.
//
// Invariant: a column family without an option that depends on its paths
// (PathLayout::NamesPaths()) has neither jobs nor costs in its statistics.
struct PathStats {
  std::string directory;
  uint64_t sst_files = 0;
  uint64_t sst_bytes = 0;
  uint64_t blob_files = 0;
  uint64_t blob_bytes = 0;
  // The part of blob_bytes to which no SST file refers.
  uint64_t blob_garbage_bytes = 0;
  // The part of blob_files and blob_bytes that has hot values (blob_hot_bytes).
  // Not reported if no path has such a file.
  uint64_t hot_files = 0;
  uint64_t hot_bytes = 0;
  // Delta files. Not reported if no path has one, or has reads of one.
  uint64_t delta_files = 0;
  uint64_t delta_bytes = 0;
  // Files that belong to other paths (MisplacedBytes). Not reported without a
  // layout or delta_sorted_path_id, unless there are some.
  bool has_misplaced = false;
  uint64_t misplaced_files = 0;
  uint64_t misplaced_bytes = 0;
  // False for a family with one path, whose reads are not counted.
  bool has_reads = false;
  PathReadStats::Counts sst_reads;
  PathReadStats::Counts blob_reads;
  // Not reported without delta files, as above.
  PathReadStats::Counts delta_reads;
  // The times of reads and writes, with has_times; the latter by PathIo, of
  // jobs alone.
  bool has_times = false;
  std::array<PathIoTimes::Counts, kNumPathIos> job_ios;
  uint64_t slow_ios = 0;
  // The bytes that jobs have read and written; by PathJob.
  bool has_jobs = false;
  std::array<PathJobStats::Counts, kNumPathJobs> jobs;
  // The price of a GiB, and the bytes of ObsoleteBytes().
  bool has_price = false;
  double price = 0;
  uint64_t obsolete_bytes = 0;

  uint64_t BlobLiveBytes() const { return blob_bytes - blob_garbage_bytes; }
  // Returns the bytes of the files of the current Version.
  uint64_t LiveFileBytes() const {
    return sst_bytes + blob_bytes + delta_bytes;
  }
  // Returns the bytes that all requests have read.
  uint64_t ReadBytes() const {
    return sst_reads.bytes + blob_reads.bytes + delta_reads.bytes;
  }
  // Returns the bytes that all jobs have written.
  uint64_t WrittenBytes() const;
  // Returns the reads that were measured, and what they took.
  uint64_t TimedReads() const {
    return sst_reads.timed_reads + blob_reads.timed_reads +
           delta_reads.timed_reads;
  }
  uint64_t ReadMicros() const {
    return (sst_reads.nanos + blob_reads.nanos + delta_reads.nanos) / 1000;
  }
  const PathIoTimes::Counts& JobIo(PathIo io) const {
    return job_ios[static_cast<size_t>(io)];
  }
  const PathJobStats::Counts& Job(PathJob job) const {
    return jobs[static_cast<size_t>(job)];
  }

  // Returns all statistics of a column family.
  // REQUIRES: DB mutex held
  static std::vector<PathStats> CollectAll(ColumnFamilyData* cfd);

  // Returns one element per path. Files are those of `vstorage`; `reads` and
  // `mapped` may be nullptr.
  // REQUIRES: !cf_paths.empty()
  static std::vector<PathStats> Collect(
      const VersionStorageInfo& vstorage, const std::vector<DbPath>& cf_paths,
      const PathReadStats* reads, const AddressMapStore* mapped = nullptr);
  // Add to the result of Collect().
  // REQUIRES: prices, obsolete_bytes and misplaced have one item for each path.
  static void AddJobs(const PathJobStats& jobs, std::vector<PathStats>* paths);
  static void AddTimes(const PathIoTimes& times, std::vector<PathStats>* paths);
  // options: by which the files are misplaced.
  static void AddMisplaced(const MutableCFOptions& options,
                           const MisplacedBytes& misplaced,
                           std::vector<PathStats>* paths);
  static void AddCosts(const std::vector<double>& prices,
                       const std::vector<uint64_t>& obsolete_bytes,
                       std::vector<PathStats>* paths);

  // Returns a table with a line per path; with times, jobs and costs three more
  // tables.
  static std::string ToString(const std::vector<PathStats>& paths);

  // Adds the statistics by keys such as "path1.blob-bytes" and "cost.sum".
  static void ToMap(const std::vector<PathStats>& paths,
                    std::map<std::string, std::string>* values);
};

}  // namespace ROCKSDB_NAMESPACE
