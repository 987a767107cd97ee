//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_flush.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <utility>

#include "db/column_family.h"
#include "db/compaction/compaction_iteration_stats.h"
#include "db/delta/delta_output_check.h"
#include "db/delta/delta_version.h"
#include "db/memtable.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "logging/event_logger.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "rocksdb/comparator.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

std::unique_ptr<DeltaFlush> DeltaFlush::Begin(
    ColumnFamilyData* cfd, const Version& base, const FileDescriptor& sst_file,
    const MemTables& memtables, bool any_order, VersionSet* versions) {
  if (cfd->delta_store() == nullptr || any_order) {
    return nullptr;
  }
  Job job;
  for (ReadOnlyMemTable* memtable : memtables) {
    const SequenceNumber first = memtable->GetFirstSequenceNumber();
    // An empty memtable has none.
    if (first != 0 && (job.first_seq == 0 || first < job.first_seq)) {
      job.first_seq = first;
    }
  }
  return New(cfd, base, sst_file, versions, std::move(job));
}

std::unique_ptr<DeltaFlush> DeltaFlush::BeginRecovery(
    ColumnFamilyData* cfd, const Version& base, const FileDescriptor& sst_file,
    SequenceNumber first_seq, bool any_order, VersionSet* versions,
    const std::vector<std::unique_ptr<DeltaFlush>>& earlier) {
  if (cfd->delta_store() == nullptr || any_order) {
    return nullptr;
  }
  Job job;
  job.keeps_readers = true;
  job.first_seq = first_seq;
  for (const auto& flush : earlier) {
    if (flush->store() != cfd->delta_store()) {
      continue;
    }
    for (const auto& reader : flush->readers()) {
      if (reader->description().kind == Kind::kOperands) {
        job.earlier.push_back(reader);
      }
    }
  }
  return New(cfd, base, sst_file, versions, std::move(job));
}

std::unique_ptr<DeltaFlush> DeltaFlush::New(ColumnFamilyData* cfd,
                                            const Version& base,
                                            const FileDescriptor& sst_file,
                                            VersionSet* versions, Job job) {
  job.store = cfd->delta_store();
  job.base = base.storage_info()->delta().get();
  // As long as there are delta files, operands of keys that have operands there
  // must not go to an SST file: readers take operands in SST files for older
  // ones. (Buckets alone, without a file, do not matter.)
  job.old_keys_only = !cfd->ioptions().enable_delta_separation;
  if (job.old_keys_only && job.earlier.empty() &&
      (job.base == nullptr || job.base->GetTotals().num_files == 0)) {
    return nullptr;
  }
  job.epoch = sst_file.GetNumber();
  job.path_id = sst_file.GetPathId();
  job.new_file_number = [versions] { return versions->NewFileNumber(); };
  return std::make_unique<DeltaFlush>(std::move(job));
}

DeltaFlush::DeltaFlush(Job job) : job_(std::move(job)) {
  job_.store->OnFlushBegin(job_.epoch);
}

DeltaFlush::~DeltaFlush() { Close(); }

void DeltaFlush::Close() { job_.store->OnFlushEnd(job_.epoch); }

void DeltaFlush::Start(Output output) {
  assert(membership_ == nullptr && files_.empty());
  output_ = std::move(output);
  membership_ = std::make_unique<DeltaKeyFilter>(
      job_.store, job_.base, job_.earlier, output_.read_options);
}

Status DeltaFlush::Add(const ParsedInternalKey& key, const Slice& internal_key,
                       const Slice& value, bool* taken) {
  assert(membership_ != nullptr);
  const bool is_operand = key.type == kTypeMerge;
  NoteSeq(key.sequence);
  Status s;
  if (!has_key_ || key.user_key != Slice(key_)) {
    s = FinishKey();
    key_.assign(key.user_key.data(), key.user_key.size());
    has_key_ = true;
  }
  // *taken is the same for all operands of the key.
  *taken = is_operand && (!job_.old_keys_only || MayHaveOlder());
  if (!is_operand) {
    // Whether it needs an anchor is known after all older entries were added.
    bases_.push_back(key.sequence);
  } else if (*taken && s.ok()) {
    s = AddOperand(key, internal_key, value);
  }
  return s;
}

bool DeltaFlush::MayHaveOlder() {
  if (!may_have_older_.has_value()) {
    may_have_older_ = membership_->MayHoldOperand(key_);
  }
  return *may_have_older_;
}

Status DeltaFlush::AddOperand(const ParsedInternalKey& key,
                              const Slice& internal_key, const Slice& value) {
  DeltaFileBuilder* builder = nullptr;
  Status s = GetBuilder(&operands_, &builder);
  if (s.ok()) {
    s = builder->AddOperand(internal_key, value);
  }
  if (s.ok() && operands_.validator != nullptr) {
    s = operands_.validator->Add(internal_key, value);
  }
  if (!has_operands_) {
    first_operand_key_ = key_;
    has_operands_ = true;
  }
  oldest_of_key_ = key.sequence;
  oldest_operand_ = std::min(oldest_operand_, key.sequence);
  operand_bytes_ += internal_key.size() + value.size();
  return s;
}

Status DeltaFlush::FinishKey() {
  Status s;
  if (!bases_.empty()) {
    // The last base is the oldest one. If it needs an anchor for an operand of
    // this flush, so do all.
    const bool all = oldest_of_key_ < bases_.back() || MayHaveOlder();
    for (SequenceNumber base : bases_) {
      if (!all && oldest_of_key_ >= base) {
        break;
      }
      DeltaFileBuilder* builder = nullptr;
      s = GetBuilder(&anchors_, &builder);
      if (s.ok()) {
        s = builder->AddAnchor(key_, base);
      }
      if (s.ok() && anchors_.validator != nullptr) {
        s = anchors_.validator->Add(
            InternalKey(key_, base, kTypeDeletion).Encode(), Slice());
      }
      if (!s.ok()) {
        break;
      }
    }
    bases_.clear();
  }
  if (oldest_of_key_ != kMaxSequenceNumber) {
    last_operand_key_ = key_;
    oldest_of_key_ = kMaxSequenceNumber;
  }
  may_have_older_.reset();
  return s;
}

Status DeltaFlush::AddRange(const RangeTombstone& range) {
  assert(membership_ != nullptr);
  NoteSeq(range.seq_);
  Status s = FinishKey();
  if (s.ok() && MayHideOperands(range)) {
    DeltaFileBuilder* builder = nullptr;
    s = GetBuilder(&anchors_, &builder);
    if (s.ok()) {
      s = builder->AddRangeAnchor(range.start_key_, range.end_key_, range.seq_);
    }
  }
  return s;
}

void DeltaFlush::NoteSeq(SequenceNumber seq) {
  smallest_seq_ = std::min(smallest_seq_, seq);
  largest_seq_ = std::max(largest_seq_, seq);
}

bool DeltaFlush::MayHideOperands(const RangeTombstone& range) const {
  const auto settings = tables().settings();
  const Comparator* const ucmp = settings->ucmp();
  return (has_operands_ && oldest_operand_ < range.seq_ &&
          ucmp->Compare(first_operand_key_, range.end_key_) < 0 &&
          ucmp->Compare(last_operand_key_, range.start_key_) >= 0) ||
         membership_->OverlapsRange(range.start_key_, range.end_key_);
}

Status DeltaFlush::GetBuilder(File* file, DeltaFileBuilder** builder) {
  Status s;
  if (file->builder == nullptr) {
    DeltaFileBuilder::Options options;
    // Not the number of the SST file: cache keys are derived from numbers.
    options.number = job_.new_file_number();
    options.path_id = job_.path_id;
    options.kind = file->kind;
    options.first_epoch = job_.epoch;
    options.last_epoch = job_.epoch;
    options.db_id = output_.db_id;
    options.job_id = output_.job_id;
    options.reason = output_.reason;
    options.file_options = output_.file_options;
    options.write_options = output_.write_options;
    options.write_hint = output_.write_hint;
    s = DeltaFileBuilder::Create(tables(), options, &file->builder);
    if (s.ok() && output_.verify_contents) {
      // The comparator belongs to the store and outlives these settings.
      file->validator = std::make_unique<OutputValidator>(
          tables().settings()->icmp(), /*enable_hash=*/true);
    }
  }
  *builder = file->builder.get();
  return s;
}

Status DeltaFlush::Publish() {
  assert(membership_ != nullptr);
  Status s = FinishKey();
  membership_.reset();
  TEST_SYNC_POINT_CALLBACK("DeltaFlush::Publish:BeforeFiles", &s);
  for (File* file : {&operands_, &anchors_}) {
    if (s.ok()) {
      s = FinishFile(file);
    }
  }
  if (!s.ok()) {
    return s;
  }
  Statistics* const stats = tables().settings()->ioptions().stats;
  for (const DeltaFileDescription& file : files_) {
    RecordTick(stats,
               file.kind == Kind::kOperands ? DELTA_OPERANDS_FLUSHED
                                            : DELTA_ANCHORS_FLUSHED,
               file.num_entries + file.num_range_anchors);
    RecordTick(stats, DELTA_FLUSH_BYTES, file.size);
    LogFile(file);
  }
  return s;
}

Status DeltaFlush::FinishFile(File* file) {
  if (file->builder == nullptr) {
    return Status::OK();
  }
  DeltaFileDescription description;
  Status s;
  const SequenceNumber first_seq = std::min(job_.first_seq, smallest_seq_);
  if (file->kind == Kind::kOperands && first_seq != 0) {
    s = file->builder->SetFlushSeqs(first_seq, largest_seq_);
  }
  if (s.ok()) {
    s = file->builder->Finish(&description);
  }
  std::shared_ptr<DeltaFileReader> reader;
  if (s.ok()) {
    TEST_SYNC_POINT("DeltaFlush::FinishFile:Verify");
    DeltaOutputChecks checks;
    checks.entries = output_.verify_contents;
    s = CheckDeltaOutput(file->builder->file_name(), tables(),
                         output_.read_options, TableReaderCaller::kFlush,
                         checks, file->validator.get(), &description, &reader);
  }
  if (s.ok()) {
    files_.push_back(std::move(description));
    if (job_.keeps_readers) {
      readers_.push_back(std::move(reader));
    }
  }
  return s;
}

void DeltaFlush::LogFile(const DeltaFileDescription& description) const {
  if (output_.event_logger == nullptr) {
    return;
  }
  output_.event_logger->Log()
      << "job" << output_.job_id << "event"
      << "delta_file_creation"
      << "cf_name" << tables().settings()->family->name << "file_number"
      << description.number << "kind"
      << (description.kind == Kind::kOperands ? "operands" : "anchors")
      << "epoch" << description.last_epoch << "file_size" << description.size
      << "num_entries" << description.num_entries << "num_range_anchors"
      << description.num_range_anchors << "raw_bytes" << description.raw_bytes
      << "file_checksum"
      << Slice(description.file_checksum).ToString(/*hex=*/true)
      << "file_checksum_func_name" << description.file_checksum_func_name;
}

void DeltaFlush::Abandon() {
  membership_.reset();
  files_.clear();
  readers_.clear();
  for (File* file : {&operands_, &anchors_}) {
    if (file->builder != nullptr) {
      file->builder->Abandon();
      file->builder.reset();
    }
  }
}

void DeltaFlush::AbandonForRepetition(InstrumentedMutex* mutex) {
  mutex->AssertHeld();
  if (HasFiles()) {
    mutex->Unlock();
    Abandon();
    mutex->Lock();
  }
}

void DeltaFlush::AddTo(VersionEdit* edit) const {
  assert(membership_ == nullptr);
  if (!files_.empty()) {
    edit->AddDeltaFiles(files_);
  }
}

void DeltaFlush::CountPayload(const CompactionIterationStats& stats,
                              uint64_t* payload, uint64_t* garbage) const {
  const uint64_t input =
      stats.total_input_raw_key_bytes + stats.total_input_raw_value_bytes;
  // The result of merging operands may be longer than the operands.
  if (operand_bytes_ > 0 && operand_bytes_ <= input && payload != nullptr &&
      garbage != nullptr) {
    *payload = input;
    *garbage = input - operand_bytes_;
  }
}

uint64_t DeltaFlush::bytes_written() const {
  uint64_t bytes = 0;
  for (const DeltaFileDescription& file : files_) {
    bytes += file.size;
  }
  return bytes;
}

}  // namespace ROCKSDB_NAMESPACE
