//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_gc_job.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/blob/blob_file_builder.h"
#include "db/column_family.h"
#include "db/path_layout/path_layout.h"
#include "db/version_set.h"
#include "file/file_util.h"
#include "rocksdb/comparator.h"
#include "test_util/sync_point.h"
#include "util/compression.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kMinReadSize = size_t{64} << 10;

}  // namespace

// Makes the builder keep the names of the records.
class BlobGcJob::Sink : public MappedBlobSink {
 public:
  explicit Sink(uint64_t seed) : hash_seed_(seed) {}

  uint64_t hash_seed() const override { return hash_seed_; }
  MappedBlobIndex NameOf(const Slice& /*user_key*/, SequenceNumber /*seq*/,
                         uint64_t /*file_number*/,
                         bool /*value_changed*/) override {
    return next_;
  }
  bool IsStoredForm() const override { return is_stored_form_; }
  uint32_t StoredBlobCrc() const override { return blob_crc_; }
  void OnFileClosed(MappedBlobFile&& file) override {
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

 private:
  const uint64_t hash_seed_;
  MappedBlobIndex next_;
  bool is_stored_form_ = false;
  uint32_t blob_crc_ = 0;
  std::vector<MappedBlobFile> files_;
};

struct BlobGcJob::Input {
  std::vector<BlobGcStorage::File> files;
  size_t next = 0;  // index in files of the file to open next
  bool goes_on = false;
  // The members below belong to the open file, files[next - 1].
  std::unique_ptr<RandomAccessFileReader> reader;
  CompressionType compression = kNoCompression;
  std::shared_ptr<Decompressor> decompressor;
  std::unique_ptr<BlobLiveRecords> records;
};

BlobGcJob::BlobGcJob(const Context& context,
                     const std::vector<BlobGcStorage::File>& files,
                     uint32_t path_id)
    : context_([&] {
        Context c = context;
        // Separated values must stay separated, whatever their size.
        c.mutable_cf_options.min_blob_size = 0;
        return c;
      }()),
      files_(files),
      path_id_(path_id),
      compression_(context.mutable_cf_options.blob_compression_type),
      sink_(new Sink(context.cfd->address_map_store()->hash_seed())) {}

BlobGcJob::~BlobGcJob() = default;

Status BlobGcJob::Run() {
  MakeInputs();
  Status s = Merge();
  for (const auto& input : inputs_) {
    if (input->records != nullptr) {
      stats_.bytes_read += input->records->bytes_read();
    }
  }
  inputs_.clear();
  if (s.ok()) {
    for (const MappedBlobFile& file : *sink_->files()) {
      stats_.bytes_written += file.size;
    }
  } else {
    DeleteOutputs();
  }
  return s;
}

void BlobGcJob::MakeInputs() {
  std::map<uint64_t, BlobGcStorage::File> left;
  for (const BlobGcStorage::File& file : files_) {
    left.emplace(file.number, file);
  }
  for (size_t i = 0; i < context_.runs.size(); ++i) {
    auto input = std::make_unique<Input>();
    input->goes_on = i < context_.goes_on.size() && context_.goes_on[i];
    for (const uint64_t number : context_.runs[i]) {
      const auto file = left.find(number);
      if (file != left.end()) {
        input->files.push_back(file->second);
        left.erase(file);
      }
    }
    if (!input->files.empty()) {
      inputs_.push_back(std::move(input));
    }
  }
  for (const auto& file : left) {
    auto input = std::make_unique<Input>();
    input->files.push_back(file.second);
    inputs_.push_back(std::move(input));
  }
}

Status BlobGcJob::Next(Input* input, bool* valid) {
  *valid = false;
  for (;;) {
    if (input->records != nullptr) {
      const Status s = input->records->Next();
      if (!s.ok()) {
        NoteUnreadable(*input);
        return s;
      }
      if (input->records->Valid()) {
        *valid = true;
        return s;
      }
      stats_.bytes_read += input->records->bytes_read();
      input->records.reset();
    }
    if (input->next == input->files.size()) {
      reached_limit_ |= input->goes_on;
      return Status::OK();
    }
    const Status s = OpenNext(input);
    if (!s.ok()) {
      NoteUnreadable(*input);
      return s;
    }
    ++stats_.files_read;
  }
}

std::vector<MappedBlobFile> BlobGcJob::TakeOutputs() {
  return std::move(*sink_->files());
}

Status BlobGcJob::OpenFile(const ImmutableOptions& ioptions,
                           const FileOptions& file_options,
                           const IOOptions& io_options,
                           const std::shared_ptr<IOTracer>& io_tracer,
                           uint64_t number, uint32_t path_id,
                           std::unique_ptr<RandomAccessFileReader>* reader,
                           BlobFileLayoutV2* layout) {
  const std::string name =
      PathLayout::BlobFileName(ioptions.cf_paths, number, path_id);
  std::unique_ptr<FSRandomAccessFile> file;
  Status s =
      ioptions.fs->NewRandomAccessFile(name, file_options, &file, nullptr);
  uint64_t size = 0;
  if (s.ok()) {
    s = ioptions.fs->GetFileSize(name, io_options, &size, nullptr);
  }
  if (!s.ok()) {
    return s;
  }
  *reader = std::make_unique<RandomAccessFileReader>(
      std::move(file), name, ioptions.clock, io_tracer, ioptions.stats,
      Histograms::BLOB_DB_BLOB_FILE_READ_MICROS, /*file_read_hist=*/nullptr,
      ioptions.rate_limiter.get(), ioptions.listeners);
  return BlobFileLayoutV2::Read(reader->get(), io_options, size, layout);
}

Status BlobGcJob::OpenNext(Input* input) {
  const BlobGcStorage::File& file = input->files[input->next++];
  const ImmutableOptions& ioptions = context_.cfd->ioptions();
  const AddressMapStore* const blobs = context_.cfd->address_map_store();
  BlobLiveRecords::Options options;
  if (context_.mutable_cf_options.blob_compaction_readahead_size > 0) {
    options.read_size =
        context_.mutable_cf_options.blob_compaction_readahead_size;
  }
  options.read_size = std::min(
      options.read_size,
      std::max(context_.max_read_memory / inputs_.size(), kMinReadSize));
  options.io_options.rate_limiter_priority = context_.io_priority;
  options.io_options.io_activity = Env::IOActivity::kCompaction;
  BlobFileLayoutV2 layout;
  const Status s = OpenFile(ioptions, context_.read_file_options,
                            options.io_options, context_.io_tracer, file.number,
                            path_id_, &input->reader, &layout);
  if (!s.ok()) {
    return s;
  }
  input->compression = layout.header.compression;
  input->decompressor.reset();
  if (input->compression != kNoCompression &&
      input->compression != compression_) {
    input->decompressor =
        GetBuiltinV2CompressionManager()->GetDecompressorOptimizeFor(
            input->compression);
  }
  input->records = std::make_unique<BlobLiveRecords>(
      blobs->map(), blobs->hash_seed(), file.slot, input->reader.get(), layout,
      options);
  return s;
}

Status BlobGcJob::StartInputs(std::vector<Input*>* started) {
  for (const auto& input : inputs_) {
    bool valid = false;
    Status s = context_.check();
    if (s.ok()) {
      s = Next(input.get(), &valid);
    }
    if (!s.ok()) {
      return s;
    }
    if (valid) {
      started->push_back(input.get());
    }
  }
  return Status::OK();
}

Status BlobGcJob::Copy(Input* input, BlobFileBuilder* builder,
                       std::string* index, uint64_t* copied) {
  BlobLiveRecords* const records = input->records.get();
  Slice value;
  Status s = Convert(input, &value);
  if (!s.ok()) {
    NoteUnreadable(*input);
    return s;
  }
  sink_->SetNext(
      records->is_direct(), records->name().birth,
      input->decompressor == nullptr && input->compression == compression_,
      records->blob_crc());
  TEST_SYNC_POINT_CALLBACK("BlobGcJob::Copy:Converted", &value);
  index->clear();
  s = builder->Add(records->key(), value, index, records->name().seq,
                   /*value_changed=*/false);
  if (!s.ok()) {
    return s;
  }
  // An empty index means that the recompressed value is too large. It stays in
  // the old file.
  if (index->empty()) {
    ++stats_.values_left;
    failed_files_.insert(input->files[input->next - 1].number);
    return s;
  }
  *copied += records->key().size() + value.size();
  sources_.push_back(records->address());
  if (context_.cfd->ioptions().blob_cache != nullptr) {
    key_sizes_.push_back(static_cast<uint32_t>(records->key().size()));
  }
  ++stats_.values_copied;
  return s;
}

Status BlobGcJob::Merge() {
  const ImmutableOptions& ioptions = context_.cfd->ioptions();
  const Comparator* const comparator = ioptions.user_comparator;
  const WriteOptions write_options(context_.io_priority,
                                   Env::IOActivity::kCompaction);
  BlobFileBuilder builder(
      context_.versions, ioptions.fs.get(), &ioptions,
      &context_.mutable_cf_options, &context_.write_file_options,
      &write_options, context_.db_id, context_.db_session_id, context_.job_id,
      context_.cfd->GetID(), context_.cfd->GetName(),
      Env::WriteLifeTimeHint::WLTH_LONG, context_.io_tracer,
      context_.blob_callback, BlobFileCreationReason::kGarbageCollection,
      &paths_, &additions_, path_id_);
  builder.SetMappedSink(sink_.get());

  // Order for a min-heap (those of std:: are max-heaps). The newest version of
  // a key comes first, as in SST files.
  const auto after = [&](const Input* a, const Input* b) {
    const int order = comparator->Compare(a->records->key(), b->records->key());
    return order != 0 ? order > 0
                      : a->records->name().seq < b->records->name().seq;
  };
  std::vector<Input*> heap;
  Status s = StartInputs(&heap);
  std::make_heap(heap.begin(), heap.end(), after);
  bool valid = false;
  uint64_t copied = 0;
  std::string index;
  while (s.ok() && !heap.empty()) {
    // An output file that is open is filled first.
    if (context_.max_copied != 0 && copied >= context_.max_copied &&
        paths_.size() == additions_.size()) {
      reached_limit_ = true;
    }
    if (reached_limit_) {
      break;
    }
    s = context_.check();
    if (!s.ok()) {
      break;
    }
    std::pop_heap(heap.begin(), heap.end(), after);
    Input* const input = heap.back();
    s = Copy(input, &builder, &index, &copied);
    if (s.ok()) {
      s = Next(input, &valid);
    }
    if (s.ok() && valid) {
      std::push_heap(heap.begin(), heap.end(), after);
    } else {
      heap.pop_back();
    }
  }
  TEST_SYNC_POINT_CALLBACK("BlobGcJob::Merge:BeforeFinish", &s);
  if (s.ok()) {
    s = builder.Finish();
  }
  if (!s.ok()) {
    builder.Abandon(s);
  }
  return s;
}

void BlobGcJob::NoteUnreadable(const Input& input) {
  unreadable_file_ = input.files[input.next - 1].number;
  failed_files_.insert(unreadable_file_);
}

Status BlobGcJob::Convert(Input* input, Slice* value) {
  *value = input->records->value();
  if (input->decompressor == nullptr) {
    return Status::OK();
  }
  Decompressor::Args args;
  args.compression_type = input->compression;
  args.compressed_data = *value;
  Status s = input->decompressor->ExtractUncompressedSize(args);
  if (s.ok()) {
    uncompressed_.resize(args.uncompressed_size);
    s = input->decompressor->DecompressBlock(args, uncompressed_.data());
  }
  if (!s.ok()) {
    return CorruptBlobFile(input->reader->file_name(),
                           input->records->address().offset, s.getState());
  }
  *value = uncompressed_;
  return s;
}

void BlobGcJob::DeleteOutputs() {
  for (const std::string& path : paths_) {
    // If this fails, the file is deleted later as an unreferenced file.
    DeleteDBFile(context_.db_options, path, context_.dbname,
                 /*force_bg=*/false, /*force_fg=*/false)
        .PermitUncheckedError();
  }
  paths_.clear();
  additions_.clear();
  sources_.clear();
  key_sizes_.clear();
  sink_->files()->clear();
}

}  // namespace ROCKSDB_NAMESPACE
