//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "db/address_map/version_mapped_stats.h"
#include "rocksdb/types.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

class DeltaVersion;
class UndecidedFiles;
class Version;
class VersionStorageInfo;
struct FileMetaData;
struct ImmutableOptions;
struct MutableCFOptions;

// What Strata adds to a VersionStorageInfo, which has one as a member: what is
// known of the files of one Version.
//
// Thread-safety: what belongs to the files is set before the Version is
// appended, and may be read by all threads afterwards. What is computed for
// compactions is guarded by the DB mutex.
class VersionStorageStrata {
 public:
  using LevelFiles = autovector<std::pair<int, FileMetaData*>>;

  VersionStorageStrata() = default;
  VersionStorageStrata(const VersionStorageStrata&) = delete;
  VersionStorageStrata& operator=(const VersionStorageStrata&) = delete;

  // ---- The files.

  // Called by VersionBuilder::SaveTo().
  void SetDelta(std::shared_ptr<const DeltaVersion> delta) {
    delta_ = std::move(delta);
  }
  // The delta files and their buckets; nullptr if there are none.
  const std::shared_ptr<const DeltaVersion>& delta() const { return delta_; }
  // Entries of SST files whose table properties are known.
  struct SampledEntries {
    uint64_t num_files = 0;
    uint64_t num_deletions = 0;
    uint64_t num_others = 0;
  };
  // Returns an estimate of the number of keys in SST files and delta files:
  // VersionStorageInfo::GetEstimatedActiveKeys() if there are delta files.
  // REQUIRES: delta() is not nullptr.
  uint64_t EstimateKeys(const VersionStorageInfo& files,
                        const SampledEntries& sampled) const;
  // Does the same with numbers. An operand counts for one key, wherever it is.
  // A deletion counts for one key less, and may be one of a key that only delta
  // files have. The result is at least 0, and at most UINT64_MAX.
  // num_files: of SST files. What is sampled stands for all of them.
  static uint64_t EstimateKeys(const SampledEntries& sampled,
                               uint64_t num_files, uint64_t num_operands);
  // Called by VersionStorageInfo::PrepareForVersionAppend().
  void SetMappedStats(const VersionMappedStats& stats) {
    mapped_stats_ = stats;
  }
  const VersionMappedStats& mapped_stats() const { return mapped_stats_; }

  // ---- The state of compactions. REQUIRES: DB mutex held.

  // Returns the number of sorted runs in level 0 that count for its score, and
  // decides whether level 0 waits.
  // REQUIRES: the column family has an address map and level compaction style.
  int ScoreLevel0(const VersionStorageInfo& files,
                  const MutableCFOptions& options, int num_sorted_runs);
  // True if the number of files in level 0 is no debt, see
  // Level0Merge::IsDue().
  bool level0_waits() const { return level0_waits_; }
  // Scans have paid for a compaction of the files of level 0 (Level0Debt).
  void SetLevel0Paid(const VersionStorageInfo& files);
  // True until these files have left level 0, in this Version and those that
  // follow it.
  bool level0_is_paid() const { return level0_is_paid_; }
  // Called before the Version of the files becomes current.
  // before: the current Version, or nullptr.
  static void Follow(const Version* before, VersionStorageInfo* files);
  // Called if the address map was made, or made again, when the Version was
  // current already. files: nullptr, or outlives the Version.
  void SetUndecidedFiles(const UndecidedFiles* files) {
    undecided_files_ = files;
  }
  const UndecidedFiles* undecided_files() const { return undecided_files_; }
  // Returns FileMetaData::LargestReclaimable(), or 0 while a compaction of the
  // bottommost file would change nothing, see UndecidedFiles.
  SequenceNumber LargestReclaimable(const FileMetaData& file) const;
  // Returns the files that lie, or whose values lie, on another path than the
  // layout in force specifies, with their levels. This is the only such list.
  static LevelFiles ListMisplacedFiles(const VersionStorageInfo& files,
                                       const MutableCFOptions& options);
  // Finds those of them that automatic compactions may move: no compaction has
  // them, and they are not left to a migration.
  void FindMisplacedFiles(const VersionStorageInfo& files,
                          const MutableCFOptions& options);
  // A call of MigratePaths() moves the misplaced files, at its own rate.
  // Automatic compactions leave them alone, in this Version and in those that
  // follow it. To be followed by FindMisplacedFiles().
  void LeaveMisplacedFiles(bool leave) { leaves_misplaced_files_ = leave; }
  bool leaves_misplaced_files() const { return leaves_misplaced_files_; }
  // The result of the last FindMisplacedFiles(): levels and files.
  const LevelFiles& MisplacedFiles() const { return misplaced_files_; }

 private:
  VersionMappedStats mapped_stats_;
  std::shared_ptr<const DeltaVersion> delta_;
  // nullptr if the column family has no address map.
  const UndecidedFiles* undecided_files_ = nullptr;
  LevelFiles misplaced_files_;
  bool leaves_misplaced_files_ = false;
  bool level0_waits_ = false;
  bool level0_is_paid_ = false;
  uint64_t paid_level0_file_ = 0;  // the largest number of the paid files
};

}  // namespace ROCKSDB_NAMESPACE
