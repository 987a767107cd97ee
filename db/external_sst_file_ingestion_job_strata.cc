//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The part of ExternalSstFileIngestionJob that handles operands in delta files
// (see DeltaIngestion), and files that a failed ingestion leaves.

#include <cassert>
#include <memory>
#include <set>
#include <unordered_set>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_ingestion.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/external_sst_file_ingestion_job.h"
#include "db/path_layout/path_layout.h"
#include "db/range_tombstone_fragmenter.h"
#include "db/version_set.h"
#include "table/table_reader.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

FSDirectory* ExternalSstFileIngestionJob::DataDirectory(size_t path_id) const {
  FSDirectory* const directory = cfd_->GetDataDir(path_id);
  return directory != nullptr ? directory : directories_->GetDataDir(path_id);
}

DeltaIngestion::Source ExternalSstFileIngestionJob::DeltaSourceOf(
    const IngestedFileInfo& file) const {
  DeltaIngestion::Source source;
  source.name = file.external_file_path;
  source.smallest = file.start_ukey;
  source.largest = file.limit_ukey;
  source.num_operands = file.table_properties.num_merge_operands;
  source.keeps_seqs = ingestion_options_.allow_db_generated_files;
  source.may_have_seq = ingestion_options_.allow_global_seqno;
  TEST_SYNC_POINT_CALLBACK("ExternalSstFileIngestionJob::DeltaSourceOf",
                           &source);
  return source;
}

bool ExternalSstFileIngestionJob::LacksDeltaAnchors(
    const IngestedFileInfo& file) const {
  return cfd_->delta_store() != nullptr && !file.delta_anchors.are_written &&
         DeltaIngestion::NeedsAnchors(DeltaSourceOf(file));
}

bool ExternalSstFileIngestionJob::LacksDeltaAnchors() const {
  const DeltaVersion* const version =
      cfd_->current()->storage_info()->delta().get();
  for (const IngestedFileInfo& file : files_to_ingest_) {
    if (LacksDeltaAnchors(file) &&
        DeltaIngestion::IsOverOperands(version, DeltaSourceOf(file))) {
      return true;
    }
  }
  return false;
}

Status ExternalSstFileIngestionJob::MaybeWriteDeltaAnchors(
    SuperVersion* sv, IngestedFileInfo* file) {
  if (!LacksDeltaAnchors(*file)) {
    return Status::OK();
  }
  Status s;
  bool over_operands = DeltaIngestion::IsOverOperands(
      sv->current->storage_info()->delta().get(), DeltaSourceOf(*file));
  if (!over_operands) {
    // Operands in memtables are flushed before the file is ingested.
    autovector<UserKeyRange> ranges;
    ranges.emplace_back(file->start_ukey, file->limit_ukey);
    s = cfd_->RangesOverlapWithMemtables(
        ranges, sv, db_options_.allow_data_in_errors, &over_operands);
  }
  return s.ok() && over_operands ? WriteDeltaAnchors(sv, file) : s;
}

Status ExternalSstFileIngestionJob::WriteMissingDeltaAnchors(SuperVersion* sv,
                                                             bool all) {
  std::set<uint32_t> path_ids;
  for (IngestedFileInfo& file : files_to_ingest_) {
    if (!LacksDeltaAnchors(file)) {
      continue;
    }
    const Status s =
        all ? WriteDeltaAnchors(sv, &file) : MaybeWriteDeltaAnchors(sv, &file);
    if (!s.ok()) {
      return s;
    }
    if (file.delta_anchors.file.number != 0) {
      path_ids.insert(file.delta_anchors.file.path_id);
    }
  }
  for (uint32_t path_id : path_ids) {
    const IOStatus io_s = DataDirectory(path_id)->FsyncWithDirOptions(
        IOOptions(), /*dbg=*/nullptr,
        DirFsyncOptions(DirFsyncOptions::FsyncReason::kNewFileSynced));
    if (!io_s.ok()) {
      return io_s;
    }
  }
  return Status::OK();
}

Status ExternalSstFileIngestionJob::WriteDeltaAnchors(SuperVersion* sv,
                                                      IngestedFileInfo* file) {
  std::unique_ptr<TableReader> reader;
  Status s = ResetTableReader(file->internal_file_path, file->fd.GetNumber(),
                              file->user_defined_timestamps_persisted, sv, file,
                              &reader);
  if (!s.ok()) {
    return s;
  }
  ReadOptions read_options;
  read_options.fill_cache = ingestion_options_.fill_cache;
  read_options.readahead_size =
      ingestion_options_.verify_checksums_readahead_size;
  read_options.total_order_seek = true;
  const std::unique_ptr<InternalIterator> points(reader->NewIterator(
      read_options, /*prefix_extractor=*/nullptr, /*arena=*/nullptr,
      /*skip_filters=*/true, TableReaderCaller::kExternalSSTIngestion,
      /*compaction_readahead_size=*/0,
      /*allow_unprepared_value=*/true));
  const std::unique_ptr<FragmentedRangeTombstoneIterator> ranges(
      reader->NewRangeTombstoneIterator(read_options));

  DeltaFileBuilder::Options options;
  options.number = versions_->NewFileNumber();
  options.path_id = PathLayout::RecentDeltaPathId(sv->mutable_cf_options);
  options.kind = DeltaFileDescription::Kind::kAnchors;
  options.tier = DeltaFileDescription::Tier::kFlushed;
  options.has_global_seq = true;
  options.db_id = db_id_;
  options.reason = TableFileCreationReason::kMisc;
  options.file_options = fs_->OptimizeForCompactionTableWrite(
      FileOptions(env_options_), db_options_);
  options.file_options.temperature =
      sv->mutable_cf_options.default_write_temperature;
  s = DeltaIngestion::WriteAnchors(*cfd_->delta_store()->tables(), options,
                                   points.get(), ranges.get(),
                                   &file->delta_anchors);
  TEST_SYNC_POINT("ExternalSstFileIngestionJob::WriteDeltaAnchors:Done");
  return s;
}

Status ExternalSstFileIngestionJob::CheckDeltas() {
  const DeltaVersion* const version =
      cfd_->current()->storage_info()->delta().get();
  Status s;
  for (IngestedFileInfo& file : files_to_ingest_) {
    bool over_operands = false;
    s = DeltaIngestion::Check(version, DeltaSourceOf(file), &over_operands);
    file.delta_anchors.are_needed =
        over_operands && file.delta_anchors.file.number != 0;
    if (s.ok() && over_operands && !file.delta_anchors.are_written) {
      assert(false);
      s = Status::TryAgain("Ingested files now lie over operands");
    }
    if (!s.ok()) {
      break;
    }
  }
  return s;
}

void ExternalSstFileIngestionJob::AddDeltaAnchors() {
  std::vector<DeltaFileDescription> all;
  // files_to_ingest_ is in the order of sequence numbers.
  for (IngestedFileInfo& file : files_to_ingest_) {
    if (!file.delta_anchors.are_needed) {
      continue;
    }
    assert(file.delta_anchors.file.number != 0);
    assert(file.assigned_seqno > 0);
    DeltaFileBuilder::AssignGlobalSeq(file.assigned_seqno,
                                      /*epoch=*/versions_->NewFileNumber(),
                                      &file.delta_anchors.file);
    all.push_back(file.delta_anchors.file);
  }
  if (!all.empty()) {
    edit_.AddDeltaFiles(all);
  }
}

bool ExternalSstFileIngestionJob::LeaveFiles(
    const std::unordered_set<uint64_t>& numbers) {
  bool has_left = false;
  for (IngestedFileInfo& file : files_to_ingest_) {
    if (numbers.count(file.fd.GetNumber()) > 0) {
      file.internal_file_path.clear();
      has_left = true;
    }
    if (numbers.count(file.delta_anchors.file.number) > 0) {
      file.delta_anchors = IngestedDeltaAnchors();
      has_left = true;
    }
  }
  return has_left;
}

void ExternalSstFileIngestionJob::DeleteDeltaAnchors(bool committed) {
  for (IngestedFileInfo& file : files_to_ingest_) {
    if (!committed || !file.delta_anchors.are_needed) {
      DeltaIngestion::Delete(fs_.get(), db_options_.sst_file_manager.get(),
                             db_options_.info_log.get(), &file.delta_anchors);
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
