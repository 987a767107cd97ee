//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/misplaced_files.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <utility>

#include "db/column_family.h"
#include "db/compaction/compaction.h"
#include "db/compaction/compaction_picker.h"
#include "db/db_impl/db_impl.h"
#include "db/path_layout/path_layout.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The range of user keys of adjacent misplaced files of one level.
struct Run {
  int level;
  std::string smallest;
  std::string largest;
};

// REQUIRES: DB mutex held
std::vector<Run> FindRuns(const VersionStorageInfo& vstorage,
                          const MutableCFOptions& options, const Slice* begin,
                          const Slice* end) {
  std::vector<Run> runs;
  const Comparator* ucmp = vstorage.user_comparator();
  const auto is_outside = [&](const FileMetaData& file) {
    return (begin != nullptr && ucmp->CompareWithoutTimestamp(
                                    file.largest.user_key(), *begin) < 0) ||
           (end != nullptr &&
            ucmp->CompareWithoutTimestamp(file.smallest.user_key(), *end) > 0);
  };
  for (int level = 0; level < vstorage.num_non_empty_levels(); ++level) {
    bool extend = false;
    for (const FileMetaData* file : vstorage.LevelFiles(level)) {
      if (is_outside(*file) ||
          !PathLayout::IsMisplaced(options, *file, level)) {
        extend = false;
        continue;
      }
      if (extend) {
        runs.back().largest = file->largest.user_key().ToString();
        continue;
      }
      runs.push_back({level, file->smallest.user_key().ToString(),
                      file->largest.user_key().ToString()});
      extend = level > 0;  // only there files are in key order
    }
  }
  return runs;
}

// Returns a compaction that rewrites the file at its level: an L0 file by
// itself, a file of another level together with those that share a user key
// with it. Returns nullptr if it cannot be compacted at the moment.
Compaction* RewriteInPlace(const std::string& cf_name,
                           const ImmutableOptions& ioptions,
                           const MutableCFOptions& options,
                           const MutableDBOptions& db_options,
                           VersionStorageInfo* vstorage,
                           CompactionPicker* picker, double score, int level,
                           FileMetaData* file, CompactionReason reason) {
  if (file->being_compacted) {
    return nullptr;
  }
  CompactionInputFiles input;
  input.level = level;
  input.files = {file};
  if (!picker->ExpandInputsToCleanCut(cf_name, vstorage, &input)) {
    return nullptr;
  }
  std::vector<CompactionInputFiles> inputs{std::move(input)};
  if (level != 0 && picker->FilesRangeOverlapWithCompaction(
                        inputs, level,
                        Compaction::EvaluateProximalLevel(
                            vstorage, options, ioptions, level, level))) {
    return nullptr;
  }
  const bool is_level_style =
      ioptions.compaction_style == kCompactionStyleLevel;
  const int base_level = is_level_style ? vstorage->base_level() : 1;
  std::vector<FileMetaData*> grandparents;
  if (is_level_style && level != 0) {
    CompactionInputFiles none;
    none.level = level;
    picker->GetGrandparents(vstorage, inputs[0], none, &grandparents);
  }
  return new Compaction(
      vstorage, ioptions, options, db_options, std::move(inputs), level,
      is_level_style
          ? MaxFileSizeForLevel(options, level, kCompactionStyleLevel,
                                base_level,
                                ioptions.level_compaction_dynamic_level_bytes)
          : MaxFileSizeForLevel(options, level, kCompactionStyleUniversal),
      is_level_style ? options.max_compaction_bytes
                     : std::numeric_limits<uint64_t>::max(),
      file->fd.GetPathId(),
      GetCompressionType(vstorage, options, level, base_level),
      GetCompressionOptions(options, vstorage, level), Temperature::kUnknown,
      /* max_subcompactions */ 0, std::move(grandparents),
      /* earliest_snapshot */ std::nullopt, /* snapshot_checker */ nullptr,
      reason, /* trim_ts */ "", score,
      /* l0_files_might_overlap */ true);
}

// Compacts each of the runs.
// REQUIRES: DB mutex not held; within a manual call (BeginManualCall()).
Status CompactRuns(DBImpl* db, ColumnFamilyData* cfd,
                   const CompactRangeOptions& options,
                   const std::string& trim_ts, std::vector<Run> runs) {
  if (cfd->ioptions().compaction_style == kCompactionStyleUniversal) {
    // In this case a manual compaction compacts the whole level.
    const auto same_level = [](const Run& a, const Run& b) {
      return a.level == b.level;
    };
    runs.erase(std::unique(runs.begin(), runs.end(), same_level), runs.end());
  }
  // Each run is compacted once, regardless of concurrent changes, so that the
  // loop ends.
  for (const Run& run : runs) {
    TEST_SYNC_POINT("MisplacedFiles::CompactRuns:BeforeCompaction");
    const Slice smallest = run.smallest;
    const Slice largest = run.largest;
    const Status s = db->RunManualCompaction(
        cfd, run.level, run.level, options, &smallest, &largest,
        options.exclusive_manual_compaction, /* disallow_trivial_move */ true,
        std::numeric_limits<uint64_t>::max(), trim_ts);
    if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

}  // namespace

Compaction* MisplacedFiles::PickUniversal(
    const std::string& cf_name, const ImmutableOptions& ioptions,
    const MutableCFOptions& options, const MutableDBOptions& db_options,
    VersionStorageInfo* vstorage, CompactionPicker* picker, double score,
    const autovector<std::pair<int, FileMetaData*>>& files,
    CompactionReason reason,
    const std::function<bool(int level)>& may_output_to_level) {
  for (const auto& level_and_file : files) {
    const int level = level_and_file.first;
    Compaction* const compaction =
        may_output_to_level(level)
            ? RewriteInPlace(cf_name, ioptions, options, db_options, vstorage,
                             picker, score, level, level_and_file.second,
                             reason)
            : nullptr;
    if (compaction != nullptr) {
      return compaction;
    }
  }
  return nullptr;
}

Compaction* MisplacedFiles::PickOne(ColumnFamilyData* cfd,
                                    const MutableDBOptions& db_options) {
  VersionStorageInfo* const vstorage = cfd->current()->storage_info();
  const ImmutableOptions& ioptions = cfd->ioptions();
  const MutableCFOptions& options = cfd->GetLatestMutableCFOptions();
  CompactionPicker* const picker = cfd->compaction_picker();
  // Level style has one compaction of level 0 at a time.
  const bool is_level0_busy =
      ioptions.compaction_style == kCompactionStyleLevel &&
      !picker->level0_compactions_in_progress()->empty();
  for (const auto& [level, file] :
       VersionStorageStrata::ListMisplacedFiles(*vstorage, options)) {
    if (level == 0 && is_level0_busy) {
      continue;
    }
    Compaction* const compaction = RewriteInPlace(
        cfd->GetName(), ioptions, options, db_options, vstorage, picker,
        /*score=*/-1, level, file, CompactionReason::kMisplacedFiles);
    if (compaction != nullptr) {
      picker->RegisterCompaction(compaction);
      // The score depends on which files are being compacted.
      vstorage->ComputeCompactionScore(ioptions, options,
                                       cfd->GetFullHistoryTsLow());
      compaction->FinalizeInputInfo(cfd->current());
      return compaction;
    }
  }
  return nullptr;
}

Status MisplacedFiles::CompactOne(DBImpl* db, ColumnFamilyData* cfd,
                                  std::atomic<bool>* canceled) {
  CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.canceled = canceled;
  return db->RunManualCompaction(
      cfd, kInputLevel, kInputLevel, options, /*begin=*/nullptr,
      /*end=*/nullptr, options.exclusive_manual_compaction,
      /*disallow_trivial_move=*/true, std::numeric_limits<uint64_t>::max(),
      /*trim_ts=*/"");
}

bool MisplacedFiles::MayCompactRange(const ColumnFamilyData& cfd,
                                     const CompactRangeOptions& options) {
  return cfd.ioptions().cf_paths.size() > 1 && options.target_path_id == 0 &&
         options.bottommost_level_compaction !=
             BottommostLevelCompaction::kSkip;
}

Status MisplacedFiles::CompactRange(DBImpl* db, ColumnFamilyData* cfd,
                                    const CompactRangeOptions& options,
                                    const Slice* begin, const Slice* end,
                                    const std::string& trim_ts) {
  std::vector<Run> runs;
  {
    InstrumentedMutexLock l(db->mutex());
    // Close() may begin between two compactions.
    const Status s = db->strata()->BeginManualCall(cfd);
    if (!s.ok()) {
      return s;
    }
    const VersionStorageInfo& vstorage = *cfd->current()->storage_info();
    const MutableCFOptions& mutable_options = cfd->GetLatestMutableCFOptions();
    if (PathLayout::IsInUse(mutable_options, vstorage)) {
      runs = FindRuns(vstorage, mutable_options, begin, end);
    }
  }
  const Status s = CompactRuns(db, cfd, options, trim_ts, std::move(runs));
  InstrumentedMutexLock l(db->mutex());
  db->strata()->EndManualCall(cfd);
  return s;
}

bool MisplacedFiles::FindAfterFailure(ColumnFamilyData* cfd) {
  if (cfd->ioptions().cf_paths.size() == 1) {
    return false;
  }
  VersionStorageInfo* const files = cfd->current()->storage_info();
  files->strata()->FindMisplacedFiles(*files, cfd->GetLatestMutableCFOptions());
  return !files->strata()->MisplacedFiles().empty();
}

size_t MisplacedFiles::CountAt(const MutableCFOptions& options,
                               const std::vector<FileMetaData*>& files,
                               int level) {
  return static_cast<size_t>(
      std::count_if(files.begin(), files.end(), [&](const FileMetaData* file) {
        return PathLayout::IsMisplaced(options, *file, level);
      }));
}

}  // namespace ROCKSDB_NAMESPACE
