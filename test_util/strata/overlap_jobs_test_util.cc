//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_jobs_test_util.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "rocksdb/metadata.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "test_util/strata/overlap_db_test_util.h"
#include "test_util/strata/overlap_values_test_util.h"

namespace ROCKSDB_NAMESPACE {

void OverlapJobs::RunCompactions(uint64_t seed) {
  OverlapDice dice(seed);
  const OverlapStressOptions& options = state_.options();
  while (!state_.IsRoundOver()) {
    dice.Rest(600);
    CompactRangeOptions compact;
    compact.exclusive_manual_compaction = false;
    compact.bottommost_level_compaction =
        dice.OneIn(2) ? BottommostLevelCompaction::kForce
                      : BottommostLevelCompaction::kForceOptimized;
    compact.max_subcompactions = static_cast<uint32_t>(dice.Below(3));
    const size_t writer = dice.Below(options.writers);
    const size_t from = dice.Below(options.keys);
    const std::string begin = OverlapValues::KeyName(writer, from);
    const std::string end =
        OverlapValues::KeyName(writer, from + dice.Below(options.keys));
    const Slice begin_slice(begin);
    const Slice end_slice(end);
    const bool is_whole = dice.OneIn(6);
    const size_t family = dice.Below(OverlapDb::kNumFamilies);
    ++state_.counts().jobs;
    state_.findings().Must(
        state_.db()->CompactRange(compact, state_.db().family(family),
                                  is_whole ? nullptr : &begin_slice,
                                  is_whole ? nullptr : &end_slice),
        "CompactRange()");
  }
}

void OverlapJobs::RunOvertakingCompactions(uint64_t seed) {
  OverlapDice dice(seed);
  std::array<uint64_t, OverlapDb::kNumFamilies> newest{};
  while (!state_.IsRoundOver()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    for (size_t f = 0; f < OverlapDb::kNumFamilies; ++f) {
      Overtake(f, &dice, &newest[f]);
    }
  }
}

void OverlapJobs::Overtake(size_t family, OverlapDice* dice, uint64_t* newest) {
  std::vector<File> fresh;
  uint64_t highest = *newest;
  for (const File& file : Files(family)) {
    if (file.number > *newest) {
      fresh.push_back(file);
      highest = std::max(highest, file.number);
    }
  }
  *newest = highest;
  if (!fresh.empty() && dice->OneIn(3)) {
    CompactFresh(family, dice, fresh);
  } else if (dice->OneIn(100)) {
    CompactSomeFile(family, dice);
  }
}

std::vector<OverlapJobs::File> OverlapJobs::Files(size_t family) {
  ColumnFamilyMetaData meta;
  state_.db()->GetColumnFamilyMetaData(state_.db().family(family), &meta);
  std::vector<File> files;
  for (const LevelMetaData& level : meta.levels) {
    for (const SstFileMetaData& file : level.files) {
      files.push_back(
          {file.file_number, file.db_path + "/" + file.name, level.level});
    }
  }
  return files;
}

void OverlapJobs::CompactFresh(size_t family, OverlapDice* dice,
                               const std::vector<File>& fresh) {
  const File& file = fresh[dice->Below(fresh.size())];
  std::vector<std::string> inputs{file.name};
  for (const File& other : fresh) {
    if (other.number != file.number && other.level == file.level &&
        dice->OneIn(2)) {
      inputs.push_back(other.name);
    }
  }
  Compact(family, dice, file.level, inputs);
}

void OverlapJobs::CompactSomeFile(size_t family, OverlapDice* dice) {
  const std::vector<File> files = Files(family);
  if (files.empty()) {
    return;
  }
  const File* file = &files[dice->Below(files.size())];
  if (dice->OneIn(2)) {
    for (const File& other : files) {
      if (other.number < file->number) {
        file = &other;
      }
    }
  }
  Compact(family, dice, file->level, {file->name});
}

void OverlapJobs::Compact(size_t family, OverlapDice* dice, int level,
                          const std::vector<std::string>& inputs) {
  const Options& options = state_.db().options();
  const int last = options.num_levels - 1;
  const int to = level == 0 || dice->OneIn(3)
                     ? (dice->OneIn(2) ? last : std::min(last, level + 1))
                     : level;
  CompactionOptions compact;
  compact.compression = kNoCompression;
  compact.output_file_size_limit = options.target_file_size_base;
  ++state_.counts().jobs;
  const Status s = state_.db()->CompactFiles(
      compact, state_.db().family(family), inputs, std::max(to, 1));
  // These errors mean that other jobs have taken or removed the files, or that
  // a deeper file overlaps.
  if (!s.ok() && !s.IsAborted() && !s.IsInvalidArgument() &&
      !s.IsIncomplete() && !s.IsNotSupported()) {
    state_.findings().Must(s, "CompactFiles()");
  }
}

void OverlapJobs::RunFlushes(uint64_t seed) {
  OverlapDice dice(seed);
  while (!state_.IsRoundOver()) {
    dice.Rest(200);
    if (dice.OneIn(4)) {
      Flush({0, 1}, !dice.OneIn(3));
    } else {
      Flush({dice.Below(OverlapDb::kNumFamilies)}, !dice.OneIn(3));
    }
  }
}

void OverlapJobs::Flush(const std::vector<size_t>& families, bool wait) {
  FlushOptions flush;
  flush.wait = wait;
  flush.allow_write_stall = true;
  std::vector<ColumnFamilyHandle*> handles;
  for (const size_t family : families) {
    handles.push_back(state_.db().family(family));
  }
  ++state_.counts().jobs;
  const Status s = state_.db()->Flush(flush, handles);
  if (!s.IsTryAgain()) {  // writes are stopped
    state_.findings().Must(s, "Flush()");
  }
}

void OverlapJobs::RunGarbageCollections(uint64_t seed) {
  OverlapDice dice(seed);
  while (!state_.IsRoundOver()) {
    dice.Rest(1500);
    CollectBlobGarbageOptions collect;
    collect.space_amp_limit = dice.OneIn(2) ? 1.0 : 1.2;
    collect.max_sorted_runs = static_cast<uint32_t>(dice.Below(3));
    const size_t family = dice.Below(OverlapDb::kNumFamilies);
    ++state_.counts().jobs;
    const Status s =
        state_.db()->CollectBlobGarbage(collect, state_.db().family(family));
    if (!s.IsIncomplete()) {
      state_.findings().Must(s, "CollectBlobGarbage()");
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
