//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_gc_job.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_copy_writer.h"
#include "db/blob_gc/blob_live_records.h"
#include "db/blob_v2/blob_read_group.h"
#include "db/column_family.h"
#include "db/path_layout/path_layout.h"
#include "db/path_layout/path_read_stats.h"
#include "db/table_cache.h"
#include "rocksdb/comparator.h"
#include "test_util/sync_point.h"
#include "util/compression.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kMinReadSize = size_t{64} << 10;

}  // namespace

struct BlobGcJob::Input {
  std::vector<BlobGcStorage::File> files;
  size_t next = 0;  // index in files of the file to open next
  bool goes_on = false;
  // The members below belong to the open file, files[next - 1].
  Status opened;
  std::unique_ptr<RandomAccessFileReader> reader;
  CompressionType compression = kNoCompression;
  std::shared_ptr<Decompressor> decompressor;
  std::unique_ptr<BlobLiveRecords> records;

  bool MayReadAhead() const {
    return opened.ok() &&
           (records == nullptr ? next < files.size() : records->MayReadAhead());
  }
  bool NeedsRead() const {
    return opened.ok() && (records == nullptr || records->NeedsRead());
  }
};

BlobGcJob::BlobGcJob(const Context& context,
                     const std::vector<BlobGcStorage::File>& files,
                     uint32_t path_id)
    : context_(context),
      files_(files),
      path_id_(path_id),
      writers_(context_),
      writer_(writers_.Of(path_id, context_.hot)) {}

BlobGcJob::~BlobGcJob() = default;

Status BlobGcJob::Run() {
  MakeInputs();
  bytes_to_copy_ = LiveBytes();
  Status s = Merge();
  for (const auto& input : inputs_) {
    input->opened.PermitUncheckedError();
    if (input->records != nullptr) {
      ++stats_.files_read;
      stats_.bytes_read += input->records->bytes_read();
    }
  }
  inputs_.clear();
  if (s.ok()) {
    stats_.bytes_written = writers_.BytesWritten();
  }
  return s;
}

uint64_t BlobGcJob::LiveBytes() const {
  const BlobFileSlotTable& table = *context_.cfd->address_map_store()->files();
  uint64_t bytes = 0;
  for (const BlobGcStorage::File& file : files_) {
    bytes += table.LiveBytes(file.slot);
  }
  return bytes;
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

void BlobGcJob::ReadAhead(Input* input) {
  std::vector<Input*> wanted{input};
  if (context_.max_reads > 1) {
    for (const auto& other : inputs_) {
      if (other.get() != input && other->MayReadAhead()) {
        wanted.push_back(other.get());
      }
    }
  }
  BlobReadPool::RunAll(
      context_.cfd->ioptions().clock, wanted.size(),
      [&](size_t i) {
        Input* const next = wanted[i];
        if (next->records == nullptr) {
          next->opened = OpenNext(next);
        }
        if (next->opened.ok() && context_.max_reads > 1) {
          next->records->ReadAhead();
        }
      },
      context_.max_reads - 1);
}

Status BlobGcJob::Next(Input* input, bool* valid) {
  *valid = false;
  for (;;) {
    if (input->opened.ok() && input->records == nullptr &&
        input->next == input->files.size()) {
      reached_limit_ |= input->goes_on;
      return Status::OK();
    }
    if (input->NeedsRead()) {
      ReadAhead(input);
    }
    const Status s =
        input->opened.ok() ? input->records->Next() : input->opened;
    if (!s.ok()) {
      NoteUnreadable(*input);
      return s;
    }
    if (input->records->Valid()) {
      *valid = true;
      return s;
    }
    ++stats_.files_read;
    stats_.bytes_read += input->records->bytes_read();
    input->records.reset();
  }
}

const std::vector<BlobFileAddition>& BlobGcJob::additions() const {
  return writers_.additions();
}

std::vector<MappedBlobFile> BlobGcJob::TakeOutputs() {
  return writers_.TakeOutputs();
}

std::vector<MapAddress> BlobGcJob::TakeSources() {
  return writers_.TakeSources();
}

std::vector<uint32_t> BlobGcJob::TakeKeySizes() {
  return writers_.TakeKeySizes();
}

std::vector<BlobGcPicker::KeyRange> BlobGcJob::TakeKeyRanges() {
  return writers_.TakeKeyRanges();
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
      options.read_size, std::max(context_.max_read_memory / inputs_.size() /
                                      (context_.max_reads > 1 ? 2 : 1),
                                  kMinReadSize));
  options.io_options.rate_limiter_priority = context_.io_priority;
  options.io_options.io_activity = Env::IOActivity::kCompaction;
  BlobFileLayoutV2 layout;
  const Status s = OpenFile(ioptions, context_.read_file_options,
                            options.io_options, context_.io_tracer, file.number,
                            path_id_, &input->reader, &layout);
  if (!s.ok()) {
    return s;
  }
  input->reader->SetPathReadStats(
      context_.cfd->table_cache()->path_read_stats(),
      PathReadStats::Slot(PathReadStats::FileKind::kBlob, path_id_));
  input->compression = layout.header.compression;
  input->decompressor = writer_->DecompressorFor(input->compression);
  if (!writer_->IsStoredForm(input->compression)) {
    hot_room_.fetch_add(layout.index_offset, std::memory_order_relaxed);
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

uint64_t BlobGcJob::HotRoomLeft() const {
  // The next value may be the first one of a file.
  const uint64_t used =
      hot_used_ + BlobCopyWriter::kMaxBytesPerRecord +
      (writer_->num_files() + 1) * BlobCopyWriter::kMaxBytesPerFile;
  const uint64_t room = hot_room_.load(std::memory_order_relaxed);
  return room - std::min(room, used);
}

Status BlobGcJob::Copy(Input* input) {
  const BlobLiveRecords& records = *input->records;
  BlobCopyWriter::Value value;
  value.key = records.key();
  value.name = records.name();
  value.is_direct = records.is_direct();
  value.from = records.address();
  value.stored = records.value();
  value.blob_crc = records.blob_crc();
  value.compression = input->compression;
  value.decompressor = input->decompressor.get();
  const bool is_limited =
      context_.hot.is_hot() && !writer_->IsStoredForm(value.compression);
  const uint64_t stored_before = writer_->bytes_stored();
  if (is_limited) {
    value.max_size = HotRoomLeft();
  }
  BlobCopyWriter::Outcome outcome;
  Status s = writer_->Add(value, &outcome);
  if (outcome == BlobCopyWriter::Outcome::kNoRoom) {
    value.max_size = UINT64_MAX;
    s = writers_
            .Of(static_cast<uint32_t>(PathLayout::IndexOf(
                context_.hot.home(), context_.cfd->ioptions().cf_paths.size())))
            ->Add(value, &outcome);
  } else if (is_limited && outcome == BlobCopyWriter::Outcome::kAdded) {
    hot_used_ += writer_->bytes_stored() - stored_before +
                 BlobCopyWriter::kMaxBytesPerRecord;
  }
  switch (outcome) {
    case BlobCopyWriter::Outcome::kAdded:
      ++stats_.values_copied;
      bytes_done_ += value.from.size;
      break;
    case BlobCopyWriter::Outcome::kTooLarge:
    case BlobCopyWriter::Outcome::kNoRoom:
      ++stats_.values_left;
      failed_files_.insert(input->files[input->next - 1].number);
      break;
    case BlobCopyWriter::Outcome::kDamaged:
      NoteUnreadable(*input);
      return CorruptBlobFile(input->reader->file_name(), value.from.offset,
                             s.getState());
    case BlobCopyWriter::Outcome::kFailed:
      break;
  }
  return s;
}

Status BlobGcJob::EndPiece(const Slice& next_key) {
  const Comparator* const comparator = context_.cfd->user_comparator();
  bool is_beyond = false;
  while (next_bound_ < context_.bounds.size() &&
         comparator->Compare(next_key, context_.bounds[next_bound_]) >= 0) {
    ++next_bound_;
    is_beyond = true;
  }
  if (writer_->IsBetweenFiles()) {
    return Status::OK();
  }
  const bool is_full =
      context_.num_pieces > 1 &&
      bytes_done_ - bytes_in_pieces_ >= bytes_to_copy_ / context_.num_pieces;
  if (is_full) {
    bytes_in_pieces_ += bytes_to_copy_ / context_.num_pieces;
  }
  return is_full ||
                 (is_beyond && writer_->OpenFileBytes() >= context_.min_piece)
             ? writer_->Finish()
             : Status::OK();
}

Status BlobGcJob::Merge() {
  const Comparator* const comparator = context_.cfd->user_comparator();
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
  while (s.ok() && !heap.empty()) {
    // An output file that is open is filled first.
    if (context_.max_copied != 0 &&
        writer_->bytes_copied() >= context_.max_copied &&
        writer_->IsBetweenFiles()) {
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
    s = EndPiece(input->records->key());
    if (s.ok()) {
      s = Copy(input);
    }
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
  return writers_.Finish(s);
}

void BlobGcJob::NoteUnreadable(const Input& input) {
  unreadable_file_ = input.files[input.next - 1].number;
  failed_files_.insert(unreadable_file_);
}

}  // namespace ROCKSDB_NAMESPACE
