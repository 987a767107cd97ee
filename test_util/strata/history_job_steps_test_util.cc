//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_job_steps_test_util.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "db/db_impl/db_impl.h"
#include "rocksdb/metadata.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

void Flush(HistoryCall& c) {
  const bool all = HistoryArguments::TakeWord(&c.args(), "all");
  if (!c.args().empty()) {
    c.Usage();
    return;
  }
  std::vector<ColumnFamilyHandle*> handles;
  for (const auto& family : c.state().families()) {
    if (all || family.first == c.cf()) {
      handles.push_back(family.second.handle);
    }
  }
  if (!c.Report(c.db()->Flush(FlushOptions(), handles))) {
    return;
  }
  // The flush of one family of several syncs the WALs before it. A flush of all
  // families leaves nothing in memory. There is no sync if a family has nothing
  // to flush.
  if (all || c.state().families().size() == 1) {
    c.model().MarkDurable();
  }
}

bool IsUniversal(HistoryCall& c) {
  return c.db()->GetOptions(c.handle()).compaction_style ==
         kCompactionStyleUniversal;
}

void Compact(HistoryCall& c) {
  CompactRangeOptions options;
  std::string value;
  uint64_t number = 0;
  bool is_valid = true;
  if (HistoryArguments::TakeNamed(&c.args(), "bottommost", &value)) {
    options.bottommost_level_compaction =
        value == "force"       ? BottommostLevelCompaction::kForce
        : value == "optimized" ? BottommostLevelCompaction::kForceOptimized
                               : BottommostLevelCompaction::kSkip;
    is_valid = value == "force" || value == "optimized" || value == "skip";
  }
  if (HistoryArguments::TakeNamed(&c.args(), "gc", &value)) {
    options.blob_garbage_collection_policy =
        value == "force" ? BlobGarbageCollectionPolicy::kForce
                         : BlobGarbageCollectionPolicy::kDisable;
    options.blob_garbage_collection_age_cutoff = 1.0;
    is_valid = is_valid && (value == "force" || value == "off");
  }
  if (HistoryArguments::TakeNamed(&c.args(), "to", &value)) {
    is_valid = is_valid && HistoryArguments::ParseNumber(value, &number);
    options.change_level = !IsUniversal(c);
    options.target_level = static_cast<int>(number);
  }
  if (HistoryArguments::TakeNamed(&c.args(), "path", &value)) {
    is_valid = is_valid && HistoryArguments::ParseNumber(value, &number);
    const size_t num_paths = c.family().paths.size();
    options.target_path_id =
        static_cast<uint32_t>(c.state().overrides() == nullptr
                                  ? number
                                  : std::min<size_t>(number, num_paths - 1));
  }
  if (!is_valid || (!c.args().empty() && c.args().size() != 2)) {
    c.Usage();
    return;
  }
  Slice from;
  Slice to;
  if (!c.args().empty()) {
    from = c.args()[0];
    to = c.args()[1];
  }
  c.Report(c.db()->CompactRange(options, c.handle(),
                                c.args().empty() ? nullptr : &from,
                                c.args().empty() ? nullptr : &to));
}

// Compacts all files, in place of chosen ones that may not exist.
void CompactAll(HistoryCall& c) {
  c.Report(c.db()->CompactRange(CompactRangeOptions(), c.handle(), nullptr,
                                nullptr));
}

// Returns the DB's names of the files "F1" and so on in the arguments, and
// removes these.
std::vector<std::string> TakeFiles(HistoryCall& c) {
  ColumnFamilyMetaData meta;
  c.db()->GetColumnFamilyMetaData(c.handle(), &meta);
  std::vector<std::string> names;
  for (const LevelMetaData& level : meta.levels) {
    for (const SstFileMetaData& file : level.files) {
      const std::string name =
          c.state().names().FindFileName('F', file.file_number);
      if (!name.empty() && HistoryArguments::TakeWord(&c.args(), name)) {
        names.push_back(file.name);
      }
    }
  }
  return names;
}

void CompactFiles(HistoryCall& c) {
  std::string value;
  uint64_t level = 0;
  uint64_t path = 0;
  int path_id = -1;
  if (!HistoryArguments::TakeNamed(&c.args(), "to", &value) ||
      !HistoryArguments::ParseNumber(value, &level)) {
    c.Usage();
    return;
  }
  if (HistoryArguments::TakeNamed(&c.args(), "path", &value)) {
    if (!HistoryArguments::ParseNumber(value, &path)) {
      c.Usage();
      return;
    }
    path_id = static_cast<int>(path);
  }
  CompactionOptions options;
  options.allow_trivial_move = HistoryArguments::TakeWord(&c.args(), "move");
  if (c.args().empty()) {
    c.Usage();
    return;
  }
  if (c.state().overrides() != nullptr) {
    // With a variant the files are different.
    CompactAll(c);
    return;
  }
  const std::vector<std::string> names = TakeFiles(c);
  if (!c.args().empty()) {
    c.Mistake("no such file: " + c.args()[0]);
    return;
  }
  c.Report(c.db()->CompactFiles(options, c.handle(), names,
                                static_cast<int>(level), path_id));
}

// Returns the DB's names of all files of the levels `from` to `to`.
std::vector<std::string> FilesOfLevels(HistoryCall& c, uint64_t from,
                                       uint64_t to) {
  ColumnFamilyMetaData meta;
  c.db()->GetColumnFamilyMetaData(c.handle(), &meta);
  std::vector<std::string> names;
  for (const LevelMetaData& level : meta.levels) {
    if (static_cast<uint64_t>(level.level) >= from &&
        static_cast<uint64_t>(level.level) <= to) {
      for (const SstFileMetaData& file : level.files) {
        names.push_back(file.name);
      }
    }
  }
  return names;
}

void CompactLevel(HistoryCall& c) {
  const bool no_move = HistoryArguments::TakeWord(&c.args(), "nomove");
  uint64_t from = 0;
  uint64_t to = 0;
  if (c.args().empty() || c.args().size() > 2 ||
      !HistoryArguments::ParseNumber(c.args()[0], &from) ||
      (c.args().size() == 2 &&
       !HistoryArguments::ParseNumber(c.args()[1], &to))) {
    c.Usage();
    return;
  }
  const bool is_dynamic =
      c.db()->GetOptions(c.handle()).level_compaction_dynamic_level_bytes;
  if (IsUniversal(c) || (c.state().overrides() != nullptr && is_dynamic)) {
    CompactAll(c);
    return;
  }
  if (c.args().size() == 1) {
    c.Report(static_cast_with_check<DBImpl>(c.db()->GetRootDB())
                 ->TEST_CompactRange(static_cast<int>(from), nullptr, nullptr,
                                     c.handle(), no_move));
    return;
  }
  const std::vector<std::string> names = FilesOfLevels(c, from, to);
  if (!names.empty()) {
    CompactionOptions options;
    options.allow_trivial_move = !no_move;
    c.Report(
        c.db()->CompactFiles(options, c.handle(), names, static_cast<int>(to)));
  }
}

// Collects the garbage in blob files. A family without a map has no such job.
void Collect(HistoryCall& c) {
  CollectBlobGarbageOptions options;
  std::string value;
  uint64_t number = 0;
  if (HistoryArguments::TakeNamed(&c.args(), "runs", &value)) {
    if (!HistoryArguments::ParseNumber(value, &number)) {
      c.Usage();
      return;
    }
    options.max_sorted_runs = static_cast<uint32_t>(number);
  }
  if (!c.args().empty()) {
    c.Usage();
    return;
  }
  if (c.db()->GetOptions(c.handle()).enable_blob_address_map) {
    c.Report(c.db()->CollectBlobGarbage(options, c.handle()));
  }
}

void Wait(HistoryCall& c) {
  c.Report(c.db()->WaitForCompact(WaitForCompactOptions()));
}

}  // namespace

const std::vector<HistoryStep>& HistoryJobSteps() {
  static const std::vector<HistoryStep> kSteps = {
      {"flush", Flush, false, true, "flush [all]"},
      {"compact", Compact, false, true,
       "compact [FROM TO] [bottommost=force|optimized|skip] [to=LEVEL] "
       "[path=ID] [gc=force|off]"},
      {"compactfiles", CompactFiles, true, true,
       "compactfiles FILE... to=LEVEL [path=ID] [move]"},
      {"compactlevel", CompactLevel, true, true,
       "compactlevel FROM [TO] [nomove]"},
      {"collect", Collect, false, true, "collect [runs=N]"},
      {"wait", Wait, false, true, "wait"},
  };
  return kSteps;
}

}  // namespace ROCKSDB_NAMESPACE
