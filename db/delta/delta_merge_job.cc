//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_merge_job.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "db/delta/delta_store.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

// Passes point entries and ranges to their builders as they come: each kind of
// entry is in order.
class DeltaMergeJob::Sink final : public DeltaMergePass::Sink {
 public:
  explicit Sink(DeltaMergeJob* job) : job_(*job) {}

  Status AddOperand(const ParsedInternalKey& /*key*/, const Slice& internal_key,
                    const Slice& value) override {
    Output& output = job_.operands_;
    Status s = job_.GetBuilder(&output);
    if (s.ok()) {
      s = output.builder->AddOperand(internal_key, value);
    }
    if (s.ok() && output.validator != nullptr) {
      s = output.validator->Add(internal_key, value);
    }
    return job_.Note(s, output);
  }
  Status AddAnchor(const Slice& user_key, SequenceNumber seq) override {
    return job_.AddAnchor(user_key, seq);
  }
  Status AddRangeAnchor(const Slice& start, const Slice& end,
                        SequenceNumber seq) override {
    Output& output = job_.anchors_;
    Status s = job_.GetBuilder(&output);
    if (s.ok()) {
      s = output.builder->AddRangeAnchor(start, end, seq);
    }
    return job_.Note(s, output);
  }

 private:
  DeltaMergeJob& job_;
};

DeltaMergeJob::DeltaMergeJob(Context context, std::vector<FilePtr> inputs)
    : context_(std::move(context)),
      inputs_(std::move(inputs)),
      pass_(context_.pass) {
  assert(!inputs_.empty());
  for (const FilePtr& file : inputs_) {
    const DeltaFileDescription& description = file->description();
    assert(description.tier == DeltaFileDescription::Tier::kFlushed);
    first_epoch_ = std::min(first_epoch_, description.first_epoch);
    last_epoch_ = std::max(last_epoch_, description.last_epoch);
  }
}

DeltaMergeJob::~DeltaMergeJob() { io_status_.PermitUncheckedError(); }

Status DeltaMergeJob::Run() {
  assert(files_.empty());
  Status s = RunPass();
  TEST_SYNC_POINT_CALLBACK("DeltaMergeJob::Run:Merged", &s);
  if (s.ok() && operands_.IsEmpty() && anchors_.IsEmpty()) {
    s = AddAnchor(inputs_.front()->description().smallest, /*seq=*/0);
  }
  // Operands first: the file of anchors names this file.
  if (s.ok()) {
    s = Finish(&operands_);
  }
  if (s.ok() && !anchors_.IsEmpty() && !files_.empty()) {
    s = anchors_.builder->SetOperandsNumber(files_.front().number);
  }
  if (s.ok()) {
    s = Finish(&anchors_);
  }
  if (s.ok() && context_.pass.check) {
    s = context_.pass.check();
  }
  if (!s.ok()) {
    Abandon();
  }
  return s;
}

Status DeltaMergeJob::RunPass() {
  DeltaMergePass::Input input;
  for (const FilePtr& file : inputs_) {
    (file->description().kind == Kind::kOperands ? input.operands
                                                 : input.anchors)
        .push_back(file);
  }
  Sink sink(this);
  return pass_.Run(input, &sink);
}

Status DeltaMergeJob::GetBuilder(Output* output) {
  if (output->builder != nullptr) {
    return Status::OK();
  }
  DeltaFileBuilder::Options options = context_.output;
  options.number = context_.new_file_number();
  options.kind = output->kind;
  options.tier = DeltaFileDescription::Tier::kMerged;
  options.first_epoch = first_epoch_;
  options.last_epoch = last_epoch_;
  options.operands_number = 0;
  const DeltaTableFactory& tables = context_.pass.store->tables();
  if (context_.checks.entries) {
    // The comparator belongs to the store and outlives these settings.
    output->validator = std::make_unique<OutputValidator>(
        tables.settings()->icmp(), /*enable_hash=*/true);
  }
  return DeltaFileBuilder::Create(tables, options, &output->builder);
}

Status DeltaMergeJob::AddAnchor(const Slice& user_key, SequenceNumber seq) {
  Status s = GetBuilder(&anchors_);
  if (s.ok()) {
    s = anchors_.builder->AddAnchor(user_key, seq);
  }
  if (s.ok() && anchors_.validator != nullptr) {
    s = anchors_.validator->Add(
        InternalKey(user_key, seq, kTypeDeletion).Encode(), Slice());
  }
  return Note(s, anchors_);
}

Status DeltaMergeJob::Note(const Status& s, const Output& output) {
  if (!s.ok() && output.builder != nullptr && io_status_.ok()) {
    io_status_ = output.builder->io_status();
  }
  return s;
}

Status DeltaMergeJob::Finish(Output* output) {
  if (output->IsEmpty()) {
    return Status::OK();
  }
  DeltaFileDescription description;
  Status s = Note(output->builder->Finish(&description), *output);
  if (s.ok()) {
    std::string name = output->builder->file_name();
    TEST_SYNC_POINT_CALLBACK("DeltaMergeJob::Finish:Verify", &name);
    s = CheckDeltaOutput(name, context_.pass.store->tables(),
                         context_.pass.read_options,
                         TableReaderCaller::kCompaction, context_.checks,
                         output->validator.get(), &description);
  }
  if (s.ok()) {
    files_.push_back(std::move(description));
  }
  return s;
}

Status DeltaMergeJob::Publish(FSDirectory* directory) {
  return directory->FsyncWithDirOptions(
      IOOptions(), /*dbg=*/nullptr,
      DirFsyncOptions(DirFsyncOptions::FsyncReason::kNewFileSynced));
}

void DeltaMergeJob::AddTo(DeltaEdit* edit) const {
  assert(!files_.empty());
  for (const DeltaFileDescription& file : files_) {
    edit->AddFile(file);
  }
  edit->SetMergeRecent({last_epoch_, static_cast<uint32_t>(inputs_.size())});
}

void DeltaMergeJob::Abandon() {
  files_.clear();
  for (Output* output : {&operands_, &anchors_}) {
    if (output->builder != nullptr) {
      output->builder->Abandon();
      output->builder.reset();
    }
  }
}

uint64_t DeltaMergeJob::bytes_read() const {
  uint64_t bytes = 0;
  for (const FilePtr& file : inputs_) {
    bytes += file->description().size;
  }
  return bytes;
}

uint64_t DeltaMergeJob::bytes_written() const {
  uint64_t bytes = 0;
  for (const DeltaFileDescription& file : files_) {
    bytes += file.size;
  }
  return bytes;
}

}  // namespace ROCKSDB_NAMESPACE
