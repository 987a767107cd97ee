//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_fold_commit.h"

#include <algorithm>
#include <cassert>
#include <unordered_set>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/address_map/flush_mapping.h"
#include "db/blob/blob_file_completion_callback.h"
#include "db/builder.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_output_check.h"
#include "db/delta/delta_store.h"
#include "db/event_helpers.h"
#include "db/path_layout/path_layout.h"
#include "db/path_layout/path_sync.h"
#include "db/range_tombstone_fragmenter.h"
#include "db/table_cache.h"
#include "db/version_set.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "table/table_builder.h"
#include "test_util/sync_point.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

DeltaFoldCommit::DeltaFoldCommit(Context context, DeltaValueFolder* folder)
    : context_(std::move(context)),
      folder_(folder),
      options_(context_.cfd->GetLatestMutableCFOptions()),
      stats_(CompactionReason::kUnknown, /*c=*/1) {}

DeltaFoldCommit::~DeltaFoldCommit() { assert(version_ == nullptr); }

Status DeltaFoldCommit::Recheck() const {
  if (context_.cfd->IsDropped()) {
    return Status::ColumnFamilyDropped();
  }
  // Numbers of files that are removed by edits that will be committed before
  // that of the fold.
  std::unordered_set<uint64_t> leaving;
  bool has_changes =
      context_.cfd->current()->strata()->merged_values().number() !=
      folder_->generation();
  context_.versions->ForEachQueuedEdit(
      context_.cfd, [&](const VersionEdit& edit) {
        if (edit.ChangesMergedValues()) {
          has_changes = true;
          for (const auto& [level, number] : edit.GetDeletedFiles()) {
            leaving.insert(number);
          }
        }
      });
  if (!has_changes) {
    return Status::OK();
  }
  const VersionStorageInfo& now = *context_.cfd->current()->storage_info();
  for (const uint64_t number : folder_->sources()) {
    if (!now.GetFileLocation(number).IsValid() || leaving.count(number) > 0) {
      return Status::TryAgain(
          "Entries that a fold has read may have been filtered or deleted");
    }
  }
  return Status::OK();
}

Status DeltaFoldCommit::Begin(std::vector<SequenceNumber> snapshots) {
  Status s = Recheck();
  if (!s.ok()) {
    return s;
  }
  ColumnFamilyData* const cfd = context_.cfd;
  snapshots_ = std::move(snapshots);
  assert(std::is_sorted(snapshots_.begin(), snapshots_.end()));
  version_ = cfd->current();
  version_->Ref();
  seqno_to_time_ = cfd->GetSuperVersion()->ShareSeqnoToTimeMapping();
  write_hint_ = version_->storage_info()->CalculateSSTWriteHint(
      /*level=*/0, context_.db_options->calculate_sst_write_lifetime_hint_set);
  meta_.fd = FileDescriptor(context_.versions->NewFileNumber(),
                            context_.path_id, /*_file_size=*/0);
  meta_.epoch_number = cfd->NewEpochNumber();
  meta_.temperature = options_.default_write_temperature;
  if (cfd->address_map_store() != nullptr) {
    cfd->address_map_store()->folded_versions()->Begin();
    mapping_ = FlushMapping::BeginFold(cfd, version_, meta_.fd.GetNumber());
  }
  return s;
}

Status DeltaFoldCommit::Write() {
  TEST_SYNC_POINT("DeltaFoldCommit::Write");
  Status s = Validate();
  TEST_SYNC_POINT_CALLBACK("DeltaFoldCommit::Write:Validated", &s);
  if (s.ok() && !folder_->values()->empty()) {
    s = Build();
    if (s.ok() && has_file()) {
      s = CheckFile();
    }
    TEST_SYNC_POINT_CALLBACK("DeltaFoldCommit::Write:Built", &s);
  }
  return s;
}

Status DeltaFoldCommit::Publish() {
  Status s;
  if (has_file()) {
    s = Sync();
    TEST_SYNC_POINT_CALLBACK("DeltaFoldCommit::Publish:Synced", &s);
  }
  if (s.ok()) {
    s = context_.job.publish();
    TEST_SYNC_POINT_CALLBACK("DeltaFoldCommit::Publish:Published", &s);
  }
  if (s.ok() && has_file() && mapping_ != nullptr) {
    s = mapping_->Publish();
  }
  return s;
}

Status DeltaFoldCommit::Validate() {
  const DeltaVersion* const now = version_->storage_info()->delta().get();
  if (now == nullptr) {
    // No other job removes the buckets of a running job, so the edit would be
    // refused.
    return Status::TryAgain("Delta files were removed during a fold");
  }
  ReadOptions read_options(Env::IOActivity::kCompaction);
  read_options.fill_cache = false;
  read_options.rate_limiter_priority = context_.io_priority;
  const DeltaAnchorLookup anchors(
      context_.cfd->delta_store(), context_.cfd->user_comparator(),
      read_options,
      DeltaAnchorLookup::FilesAbove(*now, folder_->floor(),
                                    folder_->deltas().get()));
  return DropHidden(anchors, snapshots_, folder_->values(), &num_hidden_);
}

Status DeltaFoldCommit::DropHidden(const DeltaAnchorLookup& anchors,
                                   const std::vector<SequenceNumber>& snapshots,
                                   FoldedValues* values, size_t* num_dropped) {
  *num_dropped = 0;
  if (anchors.empty()) {
    return Status::OK();
  }
  size_t kept = 0;
  for (size_t i = 0; i < values->size(); ++i) {
    const Slice user_key = ExtractUserKey(values->keys[i]);
    const SequenceNumber seq = GetInternalKeySeqno(values->keys[i]);
    SequenceNumber anchor = 0;
    Status s = anchors.Newest(user_key, kMaxSequenceNumber, seq - 1, &anchor);
    if (s.ok() && anchor >= seq) {
      // Readers at the anchor or above do not see the operand. Check the other
      // snapshots.
      for (auto it = std::lower_bound(snapshots.begin(), snapshots.end(), seq);
           s.ok() && it != snapshots.end() && *it < anchor; ++it) {
        SequenceNumber visible = 0;
        s = anchors.Newest(user_key, *it, seq - 1, &visible);
        if (s.ok() && visible < seq) {
          s = Status::TryAgain(
              "A snapshot needs operands that a fold has consumed");
        }
      }
    }
    if (!s.ok()) {
      return s;
    }
    if (anchor >= seq) {
      ++*num_dropped;
      continue;
    }
    if (kept != i) {
      values->keys[kept] = std::move(values->keys[i]);
      values->values[kept] = std::move(values->values[i]);
    }
    ++kept;
  }
  values->keys.resize(kept);
  values->values.resize(kept);
  return Status::OK();
}

Status DeltaFoldCommit::Build() {
  ColumnFamilyData* const cfd = context_.cfd;
  FoldedValues* const values = folder_->values();
  const size_t num_values = values->size();
  VectorIterator input(std::move(values->keys), std::move(values->values),
                       &cfd->internal_comparator());
  values->keys.clear();
  values->values.clear();

  int64_t now = 0;
  // On failure the file has no time, as in a flush.
  context_.db_options->clock->GetCurrentTime(&now).PermitUncheckedError();
  const auto current_time = static_cast<uint64_t>(now);
  meta_.oldest_ancester_time = current_time;
  meta_.file_creation_time = current_time;

  const ReadOptions read_options(Env::IOActivity::kCompaction);
  const WriteOptions write_options(context_.io_priority,
                                   Env::IOActivity::kCompaction);
  FileOptions file_options = context_.file_options;
  file_options.temperature = meta_.temperature;
  TableBuilderOptions builder_options(
      cfd->ioptions(), options_, read_options, write_options,
      cfd->internal_comparator(), cfd->internal_tbl_prop_coll_factories(),
      GetCompressionFlush(cfd->ioptions(), options_), options_.compression_opts,
      cfd->GetID(), cfd->GetName(), /*_level=*/0,
      /*_newest_key_time=*/now, /*_is_bottommost=*/false,
      TableFileCreationReason::kMisc, /*_oldest_key_time=*/now, current_time,
      context_.db_id, context_.db_session_id, /*_target_file_size=*/0,
      meta_.fd.GetNumber());
  builder_options.flush_mapping = mapping_.get();
  builder_options.filter_changed_values = &filter_changed_values_;
  IOStatus io_status;
  // There is one entry per key, so snapshots do not matter.
  Status s = BuildTable(
      context_.dbname, context_.versions, *context_.db_options, builder_options,
      file_options, cfd->table_cache(), &input,
      /*range_del_iters=*/{}, &meta_, &blob_files_, /*snapshots=*/{},
      /*earliest_snapshot=*/kMaxSequenceNumber,
      /*earliest_write_conflict_snapshot=*/kMaxSequenceNumber,
      /*job_snapshot=*/kMaxSequenceNumber, /*snapshot_checker=*/nullptr,
      /*paranoid_file_checks=*/DeltaOutputChecks::OfJobs(options_).entries,
      cfd->internal_stats(), &io_status, context_.io_tracer,
      BlobFileCreationReason::kCompaction, seqno_to_time_.get(),
      context_.event_logger, context_.job_id,
      /*table_properties=*/nullptr, write_hint_,
      /*full_history_ts_low=*/nullptr, context_.blob_callback,
      /*version=*/nullptr, /*memtable_payload_bytes=*/nullptr,
      /*memtable_garbage_bytes=*/nullptr, &stats_,
      /*blob_file_garbages=*/nullptr, context_.fast_sst_open);
  if (s.ok() && !io_status.ok()) {
    s = io_status;
  }
  if (s.ok() && stats_.num_output_records != num_values &&
      !filter_changed_values_) {
    s = Status::Corruption(
        "A fold has made " + std::to_string(num_values) + " values, but " +
        std::to_string(stats_.num_output_records) + " were written");
  }
  if (s.ok() && has_file()) {
    stats_.bytes_written = meta_.fd.GetFileSize();
    stats_.num_output_files = 1;
    for (const BlobFileAddition& file : blob_files_) {
      stats_.bytes_written_blob += file.GetTotalBlobBytes();
    }
    stats_.num_output_files_blob = static_cast<int>(blob_files_.size());
    meta_.blob_refs.path_mask = FlushedBlobPathMask(
        meta_, blob_files_, /*external=*/{}, *version_->storage_info());
  }
  return s;
}

Status DeltaFoldCommit::CheckFile() {
  ColumnFamilyData* const cfd = context_.cfd;
  const DeltaOutputChecks checks = DeltaOutputChecks::OfJobs(options_);
  ReadOptions read_options(Env::IOActivity::kCompaction);
  read_options.verify_checksums = true;
  read_options.rate_limiter_priority = context_.io_priority;
  Status s;
  if (checks.block_checksums) {
    TableReader* table = nullptr;
    // Keeps the reader in the table cache.
    const std::unique_ptr<InternalIterator> iter(
        cfd->table_cache()->NewIterator(
            read_options, context_.file_options, cfd->internal_comparator(),
            meta_,
            /*range_del_agg=*/nullptr, options_, &table,
            cfd->internal_stats()->GetFileReadHist(0),
            TableReaderCaller::kCompactionRefill, /*arena=*/nullptr,
            /*skip_filters=*/false, /*level=*/0,
            MaxFileSizeForL0MetaPin(options_),
            /*smallest_compaction_key=*/nullptr,
            /*largest_compaction_key=*/nullptr,
            /*allow_unprepared_value=*/false));
    s = iter->status();
    if (s.ok()) {
      // Build() has read the blocks with entries if it has checked these.
      s = table->VerifyChecksum(read_options, TableReaderCaller::kCompaction,
                                /*meta_blocks_only=*/checks.entries);
    }
  }
  if (s.ok() && checks.file_checksum) {
    s = CheckOutputFileChecksum(
        TableFileName(cfd->ioptions().cf_paths, meta_.fd.GetNumber(),
                      meta_.fd.GetPathId()),
        meta_.file_checksum, meta_.file_checksum_func_name, cfd->ioptions(),
        context_.file_options, context_.io_tracer, read_options);
  }
  return s;
}

Status DeltaFoldCommit::Sync() {
  Status s;
  if (context_.directory != nullptr) {
    s = context_.directory->FsyncWithDirOptions(
        IOOptions(), nullptr,
        DirFsyncOptions(DirFsyncOptions::FsyncReason::kNewFileSynced));
  }
  if (s.ok()) {
    OutputDirectories blob_directories;
    blob_directories.Add(blob_files_);
    autovector<std::string> synced{PathLayout::Directory(
        context_.cfd->ioptions().cf_paths, meta_.fd.GetPathId())};
    s = blob_directories.Sync(*context_.cfd, IOOptions(), &synced);
  }
  return s;
}

void DeltaFoldCommit::AddTo(VersionEdit* edit) {
  is_in_edit_ = true;
  if (filter_changed_values_) {
    // Also if no entry is left.
    edit->ChangeMergedValues();
  }
  if (!has_file()) {
    return;
  }
  edit->AddFile(/*level=*/0, meta_);
  for (const BlobFileAddition& file : blob_files_) {
    edit->AddBlobFile(file);
  }
}

void DeltaFoldCommit::Close(const Status& status) {
  if (version_ == nullptr) {
    return;  // Begin() was not called or has failed
  }
  ColumnFamilyData* const cfd = context_.cfd;
  committed_ = status.ok();
  if (status.IsColumnFamilyDropped()) {
    is_in_edit_ = false;  // the edit was not written
  }
  if (mapping_ != nullptr) {
    mapping_->Close();
    if (has_file()) {
      committed_ = mapping_->committed();
    }
  }
  if (cfd->address_map_store() != nullptr) {
    cfd->address_map_store()->folded_versions()->End(
        committed_ && has_file() ? cfd->current()->GetVersionNumber() : 0);
  }
  if (committed_ && has_file()) {
    cfd->internal_stats()->AddCompactionStats(/*level=*/0, Env::Priority::LOW,
                                              stats_);
  } else if (has_file()) {
    // No Version has the file, so it must be removed from the table cache here.
    TableCache::ReleaseObsolete(cfd->table_cache()->get_cache().get(),
                                meta_.fd.GetNumber(), /*handle=*/nullptr,
                                options_.uncache_aggressiveness);
  }
  version_->Unref();
  version_ = nullptr;
}

void DeltaFoldCommit::Settle() {
  if (mapping_ != nullptr) {
    mapping_->Settle(/*readers=*/{});  // hides no entries
  }
  if (is_in_edit_) {
    return;
  }
  const bool is_withdrawn = context_.job.withdraw();
  if (has_file()) {
    keeps_files_ = !is_withdrawn;
    if (is_withdrawn) {
      DeleteFiles();
    }
  }
}

std::vector<uint64_t> DeltaFoldCommit::FilesToKeep() const {
  std::vector<uint64_t> numbers;
  if (keeps_files_) {
    numbers.push_back(meta_.fd.GetNumber());
    for (const BlobFileAddition& file : blob_files_) {
      numbers.push_back(file.GetBlobFileNumber());
    }
  }
  return numbers;
}

void DeltaFoldCommit::DeleteFiles() {
  // As in BuildTable(): files that cannot be deleted are left to the next full
  // scan. Listeners were told that the files were created.
  const ImmutableDBOptions& db_options = *context_.db_options;
  const auto& paths = context_.cfd->ioptions().cf_paths;
  const uint64_t number = meta_.fd.GetNumber();
  const std::string sst = TableFileName(paths, number, meta_.fd.GetPathId());
  Status s = db_options.fs->DeleteFile(sst, IOOptions(), /*dbg=*/nullptr);
  if (s.ok()) {
    EventHelpers::LogAndNotifyTableFileDeletion(
        context_.event_logger, context_.job_id, number, sst, s, context_.dbname,
        db_options.listeners);
  }
  for (const BlobFileAddition& file : blob_files_) {
    const std::string path =
        BlobFileName(PathLayout::Directory(paths, file.GetPathId()),
                     file.GetBlobFileNumber());
    s = DeleteDBFile(&db_options, path, context_.dbname, /*force_bg=*/false,
                     /*force_fg=*/false);
    if (s.ok()) {
      EventHelpers::LogAndNotifyBlobFileDeletion(
          context_.event_logger, db_options.listeners, context_.job_id,
          file.GetBlobFileNumber(), path, s, context_.dbname);
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
