//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_builder.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <utility>

#include "db/dbformat.h"
#include "db/path_layout/path_layout.h"
#include "db/range_tombstone_fragmenter.h"
#include "file/filename.h"
#include "file/read_write_util.h"
#include "file/sst_file_manager_impl.h"
#include "file/writable_file_writer.h"
#include "logging/logging.h"
#include "table/sst_file_writer_collectors.h"
#include "table/table_builder.h"
#include "table/unique_id_impl.h"
#include "test_util/sync_point.h"
#include "util/stop_watch.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

// The version that SstFileWriter writes.
constexpr int32_t kExternalFileVersion = 2;

std::string NameOf(const std::vector<DbPath>& paths,
                   const DeltaFileBuilder::Options& options) {
  return options.publish_later
             ? TempFileName(PathLayout::Directory(paths, options.path_id),
                            options.number)
             : DeltaFileName(paths, options.number, options.path_id);
}

}  // namespace

Status DeltaFileBuilder::Create(const DeltaTableFactory& tables,
                                const Options& options,
                                std::unique_ptr<DeltaFileBuilder>* builder) {
  std::unique_ptr<DeltaFileBuilder> result(
      new DeltaFileBuilder(tables.settings(), options));
  Status s = result->CheckOptions();
  if (s.ok()) {
    *builder = std::move(result);
  }
  return s;
}

DeltaFileBuilder::DeltaFileBuilder(
    std::shared_ptr<const DeltaTableSettings> settings, const Options& options)
    : settings_(std::move(settings)),
      options_(options),
      file_name_(options.number == 0
                     ? std::string()
                     : NameOf(settings_->ioptions().cf_paths, options)) {
  properties_.kind = options.kind;
  properties_.tier = options.tier;
  properties_.first_epoch = options.first_epoch;
  properties_.last_epoch = options.last_epoch;
  properties_.operands_number = options.operands_number;
  collector_factories_.push_back(
      std::make_unique<DeltaFilePropertiesCollectorFactory>(&properties_));
  if (options.has_global_seq) {
    collector_factories_.push_back(
        std::make_unique<SstFileWriterPropertiesCollectorFactory>(
            kExternalFileVersion, /*global_seqno=*/0));
  }
}

DeltaFileBuilder::~DeltaFileBuilder() {
  if (!is_finished_) {
    Abandon();
  }
  status_.PermitUncheckedError();
  io_status_.PermitUncheckedError();
}

Status DeltaFileBuilder::CheckOptions() const {
  if (settings_->ucmp()->timestamp_size() != 0) {
    return Status::NotSupported(
        "Delta files do not have user-defined timestamps");
  }
  if (options_.number == 0) {
    return Status::InvalidArgument("A delta file needs a number");
  }
  if (options_.has_global_seq &&
      (options_.kind != Kind::kAnchors || options_.tier != Tier::kFlushed)) {
    return Status::InvalidArgument(
        "Only flushed anchors have a global sequence number", file_name_);
  }
  const bool has_epochs =
      options_.tier != Tier::kSorted && !options_.has_global_seq;
  if (has_epochs ? options_.first_epoch == 0 ||
                       options_.first_epoch > options_.last_epoch
                 : options_.first_epoch != 0 || options_.last_epoch != 0) {
    return Status::InvalidArgument("Epochs do not fit the tier", file_name_);
  }
  if (options_.operands_number != 0 && !properties_.HasOperandsNumber()) {
    return Status::InvalidArgument(
        "Only merged or sorted anchors belong to a file of operands",
        file_name_);
  }
  return Status::OK();
}

Status DeltaFileBuilder::CheckKind(Kind kind) const {
  if (options_.kind != kind) {
    return Status::InvalidArgument("An entry of the wrong kind", file_name_);
  }
  if (is_finished_) {
    return Status::InvalidArgument("The delta file is finished", file_name_);
  }
  return Status::OK();
}

Status DeltaFileBuilder::Open() {
  if (table_ != nullptr) {
    return Status::OK();
  }
  const ImmutableOptions& ioptions = settings_->ioptions();
  FileOptions file_options = options_.file_options;
  file_options.open_contract = FileOpenContract::kNoReopenForWrite |
                               FileOpenContract::kNoReadersWhileOpenForWrite;
  file_options.write_hint = options_.write_hint;
  std::unique_ptr<FSWritableFile> file;
  // The file may exist even on failure.
  file_exists_ = true;
  IOStatus io_s =
      NewWritableFile(ioptions.fs.get(), file_name_, &file, file_options);
  TEST_SYNC_POINT_CALLBACK("DeltaFileBuilder::Open:NewWritableFile", &io_s);
  if (!io_s.ok()) {
    return FailIO(io_s);
  }
  file->SetIOPriority(options_.write_options.rate_limiter_priority);
  file->SetWriteLifeTimeHint(options_.write_hint);
  if (options_.expected_size != 0) {
    file->SetPreallocationBlockSize(
        static_cast<size_t>(options_.expected_size));
  }
  file_ = std::make_unique<WritableFileWriter>(
      std::move(file), file_name_, options_.file_options, ioptions.clock,
      settings_->family->io_tracer, ioptions.stats,
      Histograms::SST_WRITE_MICROS, ioptions.listeners,
      ioptions.file_checksum_gen_factory.get(),
      ioptions.checksum_handoff_file_types.Contains(FileType::kDeltaFile),
      /*buffered_data_with_checksum=*/false);

  int64_t now = 0;
  ioptions.clock->GetCurrentTime(&now).PermitUncheckedError();
  const uint64_t creation_time = static_cast<uint64_t>(now);
  const TableBuilderOptions table_options(
      ioptions, settings_->options, read_options_, options_.write_options,
      settings_->icmp(), &collector_factories_, settings_->compression,
      settings_->options.compression_opts, settings_->family->id,
      settings_->family->name, /*_level=*/0, /*_newest_key_time=*/now,
      /*_is_bottommost=*/false, options_.reason, /*_oldest_key_time=*/now,
      creation_time, options_.db_id, settings_->family->db_session_id,
      /*_target_file_size=*/0, options_.number);
  table_.reset(settings_->options.table_factory->NewTableBuilder(table_options,
                                                                 file_.get()));
  return Fail(table_->status());
}

Status DeltaFileBuilder::AddOperand(const Slice& internal_key,
                                    const Slice& value) {
  Status s = CheckKind(Kind::kOperands);
  if (!s.ok()) {
    return Fail(s);
  }
  ParsedInternalKey parsed;
  s = ParseInternalKey(internal_key, &parsed, /*log_err_key=*/false);
  if (!s.ok()) {
    return Fail(Corrupt("an operand without an internal key"));
  }
  if (parsed.type != kTypeMerge) {
    return Fail(Status::InvalidArgument("Not an operand", file_name_));
  }
  return AddPoint(internal_key, parsed.user_key, parsed.sequence, value);
}

Status DeltaFileBuilder::AddAnchor(const Slice& user_key, SequenceNumber seq) {
  Status s = CheckKind(Kind::kAnchors);
  if (s.ok() &&
      (seq > kMaxSequenceNumber || (options_.has_global_seq && seq != 0))) {
    s = Status::InvalidArgument("Bad sequence number of an anchor", file_name_);
  }
  if (!s.ok()) {
    return Fail(s);
  }
  const InternalKey internal_key(user_key, seq, kTypeDeletion);
  return AddPoint(internal_key.Encode(), user_key, seq, Slice());
}

Status DeltaFileBuilder::AddPoint(const Slice& internal_key,
                                  const Slice& user_key, SequenceNumber seq,
                                  const Slice& value) {
  if (!status_.ok()) {
    return status_;
  }
  if (num_entries_ != 0 &&
      settings_->icmp().Compare(last_key_, internal_key) >= 0) {
    return Fail(Corrupt("entries out of order"));
  }
  Status s = Open();
  if (!s.ok()) {
    return s;
  }
  table_->Add(internal_key, value);
  s = table_->status();
  if (!s.ok()) {
    const IOStatus io_s = table_->io_status();
    return io_s.ok() ? Fail(s) : FailIO(io_s);
  }
  if (num_entries_ == 0) {
    smallest_key_.assign(user_key.data(), user_key.size());
  }
  last_key_.assign(internal_key.data(), internal_key.size());
  ++num_entries_;
  raw_bytes_ += user_key.size() + value.size();
  NoteSeq(seq);
  return s;
}

Status DeltaFileBuilder::AddRangeAnchor(const Slice& start, const Slice& end,
                                        SequenceNumber seq) {
  Status s = CheckKind(Kind::kAnchors);
  if (s.ok() &&
      (seq > kMaxSequenceNumber || (options_.has_global_seq && seq != 0))) {
    s = Status::InvalidArgument("Bad sequence number of an anchor", file_name_);
  }
  if (s.ok() && settings_->ucmp()->Compare(start, end) >= 0) {
    s = Status::InvalidArgument("An empty range", file_name_);
  }
  if (!s.ok()) {
    return Fail(s);
  }
  if (!status_.ok()) {
    return status_;
  }
  const InternalKey internal_start(start, seq, kTypeRangeDeletion);
  if (num_range_anchors_ != 0 &&
      settings_->icmp().Compare(last_start_, internal_start.Encode()) >= 0) {
    return Fail(Corrupt("ranges out of order"));
  }
  s = Open();
  if (!s.ok()) {
    return s;
  }
  table_->Add(internal_start.Encode(), end);
  s = table_->status();
  if (!s.ok()) {
    const IOStatus io_s = table_->io_status();
    return io_s.ok() ? Fail(s) : FailIO(io_s);
  }
  if (num_range_anchors_ == 0) {
    smallest_start_ = start.ToString();
  }
  if (num_range_anchors_ == 0 ||
      settings_->ucmp()->Compare(largest_end_, end) < 0) {
    largest_end_ = end.ToString();
  }
  last_start_ = internal_start.Encode().ToString();
  ++num_range_anchors_;
  raw_bytes_ += start.size() + end.size();
  NoteSeq(seq);
  return s;
}

void DeltaFileBuilder::NoteSeq(SequenceNumber seq) {
  smallest_seq_ = std::min(smallest_seq_, seq);
  largest_seq_ = std::max(largest_seq_, seq);
}

Status DeltaFileBuilder::SetBuckets(
    const std::vector<DeltaFileProperties::Bucket>& buckets,
    const std::optional<std::string>& end) {
  if (options_.tier != Tier::kSorted || is_finished_ ||
      (buckets.empty() && end.has_value())) {
    return Fail(Status::InvalidArgument("Not a file of buckets", file_name_));
  }
  properties_.buckets = buckets;
  properties_.end = end;
  if (!properties_.BucketsAreInOrder(*settings_->ucmp())) {
    return Fail(Corrupt("buckets out of order"));
  }
  return status_;
}

Status DeltaFileBuilder::SetOperandsNumber(uint64_t number) {
  if (!properties_.HasOperandsNumber() || is_finished_) {
    return Fail(Status::InvalidArgument(
        "Only merged or sorted anchors belong to a file of operands",
        file_name_));
  }
  properties_.operands_number = number;
  return status_;
}

Status DeltaFileBuilder::SetFlushSeqs(SequenceNumber first,
                                      SequenceNumber last) {
  if (!properties_.MayHaveFlushSeqs() || is_finished_ || first == 0 ||
      first > last) {
    return Fail(Status::InvalidArgument(
        "Bad sequence numbers of a flush of operands", file_name_));
  }
  properties_.first_seq = first;
  properties_.last_seq = last;
  return status_;
}

uint64_t DeltaFileBuilder::FileSize() const {
  return table_ != nullptr ? table_->EstimatedFileSize() : file_size_;
}

Status DeltaFileBuilder::Finish(DeltaFileDescription* description) {
  *description = DeltaFileDescription();
  if (is_finished_) {
    return Status::InvalidArgument("The delta file is finished", file_name_);
  }
  if (status_.ok() && !IsEmpty()) {
    Fail(FinishFile()).PermitUncheckedError();
  }
  if (!status_.ok()) {
    Abandon();
    return status_;
  }
  is_finished_ = true;
  if (IsEmpty()) {
    return status_;
  }
  Describe(description);
  const auto& path_stats = settings_->family->path_read_stats;
  if (path_stats != nullptr) {
    path_stats->jobs().AddWritten(options_.path_id, file_size_);
  }
  const ImmutableOptions& ioptions = settings_->ioptions();
  // Keys are omitted, as they may be confidential.
  ROCKS_LOG_INFO(ioptions.logger,
                 "[%s] [JOB %d] Generated delta file #%" PRIu64 ": %s, %" PRIu64
                 " entries, %" PRIu64 " ranges, %" PRIu64 " bytes",
                 settings_->family->name.c_str(), options_.job_id,
                 options_.number, properties_.ToString().c_str(), num_entries_,
                 num_range_anchors_, file_size_);
  const auto sst_file_manager =
      static_cast<SstFileManagerImpl*>(ioptions.sst_file_manager.get());
  if (sst_file_manager != nullptr) {
    sst_file_manager->OnAddFile(file_name_, file_size_).PermitUncheckedError();
    is_reported_ = true;
  }
  return status_;
}

Status DeltaFileBuilder::FinishFile() {
  const ImmutableOptions& ioptions = settings_->ioptions();
  Status s = table_->Finish();
  IOStatus io_s = table_->io_status();
  file_size_ = table_->FileSize();
  table_.reset();
  IOOptions io_options;
  if (s.ok() && io_s.ok()) {
    io_s = WritableFileWriter::PrepareIOOptions(options_.write_options,
                                                io_options);
  }
  TEST_SYNC_POINT_CALLBACK("DeltaFileBuilder::FinishFile:BeforeSync", &io_s);
  if (s.ok() && io_s.ok()) {
    StopWatch watch(ioptions.clock, ioptions.stats, TABLE_SYNC_MICROS);
    io_s = file_->Sync(io_options, ioptions.use_fsync);
  }
  if (s.ok() && io_s.ok()) {
    io_s = file_->Close(io_options);
  }
  TEST_SYNC_POINT_CALLBACK("DeltaFileBuilder::FinishFile:AfterClose", &io_s);
  if (!io_s.ok()) {
    return FailIO(io_s);
  }
  if (s.ok()) {
    file_checksum_ = file_->GetFileChecksum();
    file_checksum_func_name_ = file_->GetFileChecksumFuncName();
    file_.reset();
  }
  return s;
}

void DeltaFileBuilder::Describe(DeltaFileDescription* description) const {
  const Comparator* const ucmp = settings_->ucmp();
  description->number = options_.number;
  description->path_id = options_.path_id;
  description->size = file_size_;
  description->kind = options_.kind;
  description->tier = options_.tier;
  description->first_epoch = options_.first_epoch;
  description->last_epoch = options_.last_epoch;
  if (num_entries_ != 0) {
    description->smallest = smallest_key_;
    description->largest = ExtractUserKey(last_key_).ToString();
  }
  if (num_range_anchors_ != 0) {
    if (num_entries_ == 0 ||
        ucmp->Compare(smallest_start_, description->smallest) < 0) {
      description->smallest = smallest_start_;
    }
    if (num_entries_ == 0 ||
        ucmp->Compare(largest_end_, description->largest) > 0) {
      description->largest = largest_end_;
    }
  }
  description->smallest_seq = smallest_seq_;
  description->largest_seq = largest_seq_;
  description->num_entries = num_entries_;
  description->num_range_anchors = num_range_anchors_;
  description->raw_bytes = raw_bytes_;
  description->has_global_seq = options_.has_global_seq;
  if (!GetSstInternalUniqueId(options_.db_id, settings_->family->db_session_id,
                              options_.number, &description->unique_id)
           .ok()) {
    // As for SST files: without an id nothing is checked.
    description->unique_id = kNullUniqueId64x2;
  }
  description->file_checksum = file_checksum_;
  description->file_checksum_func_name = file_checksum_func_name_;
}

Status DeltaFileBuilder::Publish() {
  assert(is_finished_);
  if (!status_.ok() || !options_.publish_later || !file_exists_) {
    return status_;
  }
  const ImmutableOptions& ioptions = settings_->ioptions();
  std::string name = OwnName();
  if (file_name_ == name) {
    return status_;
  }
  IOOptions io_options;
  IOStatus io_s =
      WritableFileWriter::PrepareIOOptions(options_.write_options, io_options);
  TEST_SYNC_POINT_CALLBACK("DeltaFileBuilder::Publish:BeforeRename", &io_s);
  if (io_s.ok()) {
    may_be_renamed_ = true;
    io_s = ioptions.fs->RenameFile(file_name_, name, io_options,
                                   /*dbg=*/nullptr);
  }
  if (!io_s.ok()) {
    return FailIO(io_s);
  }
  if (is_reported_) {
    static_cast<SstFileManagerImpl*>(ioptions.sst_file_manager.get())
        ->OnMoveFile(file_name_, name)
        .PermitUncheckedError();
  }
  file_name_ = std::move(name);
  return status_;
}

bool DeltaFileBuilder::Abandon() {
  is_finished_ = true;
  if (table_ != nullptr) {
    table_->Abandon();
    table_.reset();
  }
  file_.reset();
  if (!file_exists_) {
    return true;
  }
  bool is_gone = Delete(file_name_);
  const std::string own_name = OwnName();
  if (may_be_renamed_ && file_name_ != own_name) {
    is_gone &= Delete(own_name);
  }
  file_exists_ = !is_gone;
  auto* const manager = static_cast<SstFileManagerImpl*>(
      settings_->ioptions().sst_file_manager.get());
  if (is_gone) {
    if (is_reported_) {
      manager->OnDeleteFile(file_name_).PermitUncheckedError();
      is_reported_ = false;
    }
  } else if (file_name_ != own_name) {
    if (may_be_renamed_ &&
        settings_->ioptions()
            .fs->FileExists(own_name, IOOptions(), /*dbg=*/nullptr)
            .ok()) {
      if (is_reported_) {
        manager->OnMoveFile(file_name_, own_name).PermitUncheckedError();
      }
      file_name_ = own_name;
    } else if (is_reported_) {
      // The deletion of temporary files is not reported to the manager.
      manager->OnUntrackFile(file_name_).PermitUncheckedError();
      is_reported_ = false;
    }
  }
  return is_gone;
}

std::string DeltaFileBuilder::OwnName() const {
  return DeltaFileName(settings_->ioptions().cf_paths, options_.number,
                       options_.path_id);
}

bool DeltaFileBuilder::Delete(const std::string& file_name) const {
  const ImmutableOptions& ioptions = settings_->ioptions();
  IOOptions io_options;
  IOStatus io_s =
      WritableFileWriter::PrepareIOOptions(options_.write_options, io_options);
  if (io_s.ok()) {
    io_s = ioptions.fs->DeleteFile(file_name, io_options, /*dbg=*/nullptr);
  }
  // It was not created, or has another name.
  if (io_s.ok() || io_s.IsNotFound() || io_s.IsPathNotFound()) {
    return true;
  }
  ROCKS_LOG_WARN(ioptions.logger, "[%s] [JOB %d] Could not delete %s: %s",
                 settings_->family->name.c_str(), options_.job_id,
                 file_name.c_str(), io_s.ToString().c_str());
  return false;
}

Status DeltaFileBuilder::Fail(const Status& s) {
  if (status_.ok() && !s.ok()) {
    status_ = s;
  }
  return status_;
}

Status DeltaFileBuilder::FailIO(const IOStatus& s) {
  if (io_status_.ok()) {
    io_status_ = s;
  }
  return Fail(s);
}

Status DeltaFileBuilder::Corrupt(const char* what) const {
  return Status::Corruption(file_name_, what);
}

Status DeltaFileBuilder::BuildAnchorsOf(
    const DeltaTableFactory& tables, const Options& options,
    InternalIterator* points, FragmentedRangeTombstoneIterator* ranges,
    DeltaFileDescription* description) {
  *description = DeltaFileDescription();
  if (!options.has_global_seq) {
    return Status::InvalidArgument(
        "Anchors of a file to be ingested have a global sequence number");
  }
  std::unique_ptr<DeltaFileBuilder> builder;
  Status s = Create(tables, options, &builder);
  if (!s.ok()) {
    return s;
  }
  const Comparator* const ucmp = builder->settings_->ucmp();
  std::string last_key;
  bool has_last_key = false;
  for (points->SeekToFirst(); s.ok() && points->Valid(); points->Next()) {
    ParsedInternalKey parsed;
    s = ParseInternalKey(points->key(), &parsed, /*log_err_key=*/false);
    if (s.ok() && parsed.type == kTypeMerge) {
      s = Status::NotSupported(
          "A file that is ingested over merge operands in delta files "
          "(enable_delta_separation) has operands that its property "
          "rocksdb.merge.operands does not count: it was written by an old "
          "version of RocksDB");
    }
    if (!s.ok() || (has_last_key && ucmp->Equal(parsed.user_key, last_key))) {
      continue;
    }
    last_key.assign(parsed.user_key.data(), parsed.user_key.size());
    has_last_key = true;
    s = builder->AddAnchor(last_key, /*seq=*/0);
  }
  if (s.ok()) {
    s = points->status();
  }
  if (s.ok() && ranges != nullptr) {
    // Once for each fragment, regardless of its sequence numbers.
    for (ranges->SeekToTopFirst(); s.ok() && ranges->Valid();
         ranges->TopNext()) {
      s = builder->AddRangeAnchor(ranges->start_key(), ranges->end_key(),
                                  /*seq=*/0);
    }
  }
  return s.ok() ? builder->Finish(description) : s;
}

void DeltaFileBuilder::AssignGlobalSeq(SequenceNumber seq, uint64_t epoch,
                                       DeltaFileDescription* description) {
  assert(description->has_global_seq);
  description->smallest_seq = seq;
  description->largest_seq = seq;
  description->first_epoch = epoch;
  description->last_epoch = epoch;
}

}  // namespace ROCKSDB_NAMESPACE
