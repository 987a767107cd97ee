//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_copy_writer.h"

#include <cassert>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/blob/blob_file_builder.h"
#include "db/column_family.h"
#include "db/event_helpers.h"
#include "db/path_layout/path_read_stats.h"
#include "db/table_cache.h"
#include "db/version_set.h"
#include "file/file_util.h"
#include "test_util/sync_point.h"
#include "util/compression.h"

namespace ROCKSDB_NAMESPACE {

// Makes the builder keep the names of the records.
class BlobCopyWriter::Sink : public MappedBlobSink {
 public:
  // stats: counts the files; may be nullptr.
  Sink(uint64_t seed, HotMark hot, std::shared_ptr<PathReadStats> stats)
      : hash_seed_(seed), hot_(hot), stats_(std::move(stats)) {}

  uint64_t hash_seed() const override { return hash_seed_; }
  MappedBlobIndex NameOf(const Slice& /*user_key*/, SequenceNumber /*seq*/,
                         uint64_t /*file_number*/,
                         bool /*value_changed*/) override {
    return next_;
  }
  bool IsStoredForm() const override { return is_stored_form_; }
  uint32_t StoredBlobCrc() const override { return blob_crc_; }
  void OnRecord(uint64_t value_size) override { last_value_size_ = value_size; }
  void OnFileClosed(MappedBlobFile&& file) override {
    if (stats_ != nullptr) {
      stats_->jobs().AddWritten(file.path_id, file.size);
    }
    file.hot = hot_;
    files_.push_back(std::move(file));
  }

  void SetNext(bool is_direct, uint64_t birth, bool is_stored_form,
               uint32_t blob_crc) {
    next_.mode = is_direct ? MappedBlobIndex::Mode::kDirect
                           : MappedBlobIndex::Mode::kVersioned;
    next_.birth = birth;
    is_stored_form_ = is_stored_form;
    blob_crc_ = blob_crc;
  }
  std::vector<MappedBlobFile>* files() { return &files_; }
  // Returns the size in bytes of the value that was written last.
  uint64_t last_value_size() const { return last_value_size_; }

 private:
  const uint64_t hash_seed_;
  const HotMark hot_;
  const std::shared_ptr<PathReadStats> stats_;
  MappedBlobIndex next_;
  bool is_stored_form_ = false;
  uint32_t blob_crc_ = 0;
  uint64_t last_value_size_ = 0;
  std::vector<MappedBlobFile> files_;
};

BlobCopyWriter::BlobCopyWriter(const BlobCopyContext& context, uint32_t path_id,
                               HotMark hot)
    : context_(context),
      cf_options_(context.mutable_cf_options),
      hot_(hot),
      compression_(cf_options_.blob_compression_type),
      write_options_(context.io_priority, Env::IOActivity::kCompaction),
      sink_(std::make_unique<Sink>(
          context.cfd->address_map_store()->hash_seed(), hot,
          context.cfd->table_cache()->path_read_stats())) {
  // Separated values must stay separated, whatever their size.
  cf_options_.min_blob_size = 0;
  const ImmutableOptions& ioptions = context_.cfd->ioptions();
  builder_ = std::make_unique<BlobFileBuilder>(
      context_.versions, ioptions.fs.get(), &ioptions, &cf_options_,
      &context_.write_file_options, &write_options_, context_.db_id,
      context_.db_session_id, context_.job_id, context_.cfd->GetID(),
      context_.cfd->GetName(), WriteHint(), context_.io_tracer,
      context_.blob_callback, BlobFileCreationReason::kGarbageCollection,
      &paths_, &additions_, path_id);
  builder_->SetMappedSink(sink_.get());
}

BlobCopyWriter::~BlobCopyWriter() = default;

Env::WriteLifeTimeHint BlobCopyWriter::WriteHint() const {
  // Values that have outlived a collection are likely to live long.
  return context_.db_options->calculate_sst_write_lifetime_hint_set.Contains(
             context_.cfd->ioptions().compaction_style)
             ? Env::WLTH_LONG
             : Env::WLTH_NOT_SET;
}

std::shared_ptr<Decompressor> BlobCopyWriter::DecompressorFor(
    CompressionType compression) const {
  if (compression == kNoCompression || IsStoredForm(compression)) {
    return nullptr;
  }
  return GetBuiltinV2CompressionManager()->GetDecompressorOptimizeFor(
      compression);
}

Status BlobCopyWriter::Add(const Value& value, Outcome* outcome) {
  Slice bytes;
  Status s = Convert(value, &bytes);
  if (!s.ok()) {
    *outcome = Outcome::kDamaged;
    return s;
  }
  last_size_ = value.key.size() + MaxStoredSize(value, bytes.size());
  if (last_size_ > value.max_size) {
    *outcome = Outcome::kNoRoom;
    return s;
  }
  sink_->SetNext(
      value.is_direct, value.name.birth,
      value.decompressor == nullptr && IsStoredForm(value.compression),
      value.blob_crc);
  const uint64_t size = value.key.size() + bytes.size();
  TEST_SYNC_POINT_CALLBACK("BlobCopyWriter::Add:Converted", &bytes);
  index_.clear();
  if (IsBetweenFiles()) {
    bytes_before_file_ = bytes_copied_;
  }
  s = builder_->Add(value.key, bytes, &index_, value.name.seq,
                    /*value_changed=*/false);
  if (!s.ok()) {
    *outcome = Outcome::kFailed;
    return s;
  }
  if (index_.empty()) {
    *outcome = Outcome::kTooLarge;
    return s;
  }
  *outcome = Outcome::kAdded;
  bytes_copied_ += size;
  bytes_stored_ += value.key.size() + sink_->last_value_size();
  sources_.push_back(value.from);
  if (key_ranges_.size() < paths_.size()) {
    key_ranges_.emplace_back().smallest = value.key.ToString();
  }
  key_ranges_.back().largest.assign(value.key.data(), value.key.size());
  if (context_.cfd->ioptions().blob_cache != nullptr) {
    key_sizes_.push_back(static_cast<uint32_t>(value.key.size()));
  }
  return s;
}

uint64_t BlobCopyWriter::MaxStoredSize(const Value& value,
                                       uint64_t size) const {
  if (compression_ == kNoCompression || IsStoredForm(value.compression)) {
    return size;
  }
  // The builder stores the compressed form even if it is larger.
  switch (compression_) {
    case kLZ4Compression:
    case kLZ4HCCompression:
    case kZSTD:
      return size + size / 240 + 128;
    default:
      // The bound of LegacyForceBuiltinCompression().
      return size + size * 3 / 16 + 604;
  }
}

Status BlobCopyWriter::Convert(const Value& value, Slice* bytes) {
  *bytes = value.stored;
  if (value.decompressor == nullptr) {
    return Status::OK();
  }
  Decompressor::Args args;
  args.compression_type = value.compression;
  args.compressed_data = value.stored;
  Status s = value.decompressor->ExtractUncompressedSize(args);
  if (s.ok()) {
    uncompressed_.resize(args.uncompressed_size);
    s = value.decompressor->DecompressBlock(args, uncompressed_.data());
  }
  if (s.ok()) {
    *bytes = uncompressed_;
  }
  return s;
}

// The builder begins another file if it gets another value.
Status BlobCopyWriter::Finish() {
  const Status s = builder_->Finish();
  for (BlobFileAddition& addition : additions_) {
    addition.SetHot(hot_);
  }
  return s;
}

void BlobCopyWriter::Abandon(const Status& s) {
  builder_->Abandon(s);
  for (size_t i = 0; i < paths_.size(); ++i) {
    // If this fails, the file is deleted later as an unreferenced file.
    const Status deletion =
        DeleteDBFile(context_.db_options, paths_[i], context_.dbname,
                     /*force_bg=*/false, /*force_fg=*/false);
    // Listeners were told that these files are complete.
    if (deletion.ok() && i < additions_.size() &&
        context_.event_logger != nullptr) {
      EventHelpers::LogAndNotifyBlobFileDeletion(
          context_.event_logger, context_.db_options->listeners,
          context_.job_id, additions_[i].GetBlobFileNumber(), paths_[i],
          deletion, context_.dbname);
    }
  }
  paths_.clear();
  additions_.clear();
  sources_.clear();
  key_sizes_.clear();
  key_ranges_.clear();
  sink_->files()->clear();
}

std::vector<MappedBlobFile> BlobCopyWriter::TakeOutputs() {
  return std::move(*sink_->files());
}

uint64_t BlobCopyWriter::BytesWritten() const {
  uint64_t bytes = 0;
  for (const MappedBlobFile& file : *sink_->files()) {
    bytes += file.size;
  }
  return bytes;
}

}  // namespace ROCKSDB_NAMESPACE
