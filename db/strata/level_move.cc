//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/level_move.h"

#include <cassert>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/compaction/compaction.h"
#include "db/compaction/compaction_picker.h"
#include "db/version_set.h"
#include "options/cf_options.h"

namespace ROCKSDB_NAMESPACE {

namespace {

void ComputeScores(ColumnFamilyData* cfd) {
  cfd->current()->storage_info()->ComputeCompactionScore(
      cfd->ioptions(), cfd->GetLatestMutableCFOptions(),
      cfd->GetFullHistoryTsLow());
}

}  // namespace

Status LevelMove::Begin(ColumnFamilyData* cfd,
                        const MutableDBOptions& db_options, int level,
                        int new_level, std::unique_ptr<LevelMove>* move) {
  assert(level < new_level);
  VersionStorageInfo* const files = cfd->current()->storage_info();
  std::vector<CompactionInputFiles> inputs(1);
  inputs[0].level = level;
  inputs[0].files = files->LevelFiles(level);
  if (inputs[0].empty()) {
    return Status::OK();
  }
  // Another job may write older data than the files have, which must not come
  // to be above them.
  CompactionPicker* const picker = cfd->compaction_picker();
  for (int written = level; written <= new_level; ++written) {
    if (picker->FilesRangeOverlapWithCompaction(inputs, written,
                                                Compaction::kInvalidLevel)) {
      return Status::InvalidArgument(
          "The files of level " + std::to_string(level) +
          " cannot be moved to level " + std::to_string(new_level) +
          ": another job writes to their key range in level " +
          std::to_string(written));
    }
  }
  const MutableCFOptions& options = cfd->GetLatestMutableCFOptions();
  std::unique_ptr<Compaction> compaction(new Compaction(
      files, cfd->ioptions(), options, db_options, std::move(inputs), new_level,
      MaxFileSizeForLevel(options, new_level, cfd->ioptions().compaction_style),
      /*max_compaction_bytes=*/std::numeric_limits<uint64_t>::max(),
      /*output_path_id=*/0, options.compression, options.compression_opts,
      Temperature::kUnknown, /*max_subcompactions=*/0, /*grandparents=*/{},
      /*earliest_snapshot=*/std::nullopt, /*snapshot_checker=*/nullptr,
      CompactionReason::kRefitLevel, /*trim_ts=*/"", /*score=*/-1,
      /*l0_files_might_overlap=*/false));
  compaction->FinalizeInputInfo(cfd->current());
  picker->RegisterCompaction(compaction.get());
  ComputeScores(cfd);
  move->reset(new LevelMove(std::move(compaction)));
  return Status::OK();
}

LevelMove::LevelMove(std::unique_ptr<Compaction>&& compaction)
    : compaction_(std::move(compaction)) {}

LevelMove::~LevelMove() {
  compaction_->ReleaseCompactionFiles(Status::OK());
  ComputeScores(compaction_->column_family_data());
}

}  // namespace ROCKSDB_NAMESPACE
