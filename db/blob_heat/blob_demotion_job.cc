//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_heat/blob_demotion_job.h"

#include <algorithm>
#include <cassert>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_gc_job.h"
#include "db/blob_heat/blob_heat.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "db/column_family.h"
#include "db/path_layout/path_layout.h"
#include "db/path_layout/path_read_stats.h"
#include "db/table_cache.h"
#include "file/random_access_file_reader.h"
#include "test_util/sync_point.h"
#include "util/compression.h"

namespace ROCKSDB_NAMESPACE {

BlobDemotionJob::BlobDemotionJob(const Context& context,
                                 const BlobGcStorage::File& file)
    : context_(context),
      file_(file),
      heat_(context.cfd->address_map_store()->heat()),
      home_path_id_(static_cast<uint32_t>(PathLayout::IndexOf(
          context.hot.home(), context.cfd->ioptions().cf_paths.size()))),
      writers_(context_) {
  read_options_.io_options.rate_limiter_priority = context_.io_priority;
  read_options_.io_options.io_activity = Env::IOActivity::kCompaction;
}

BlobDemotionJob::~BlobDemotionJob() = default;

Status BlobDemotionJob::Run() {
  bool is_worth_it = true;
  Status s = OpenFile();
  if (s.ok()) {
    s = ChooseKept(&is_worth_it);
  }
  if (s.ok() && is_worth_it) {
    s = CopyAll();
  }
  TEST_SYNC_POINT_CALLBACK("BlobDemotionJob::Run:BeforeFinish", &s);
  s = writers_.Finish(s);
  stats_.bytes_written = writers_.BytesWritten();
  return s;
}

Status BlobDemotionJob::OpenFile() {
  const Status s =
      BlobGcJob::OpenFile(context_.cfd->ioptions(), context_.read_file_options,
                          read_options_.io_options, context_.io_tracer,
                          file_.number, context_.path_id, &reader_, &layout_);
  if (!s.ok()) {
    return Unreadable(s);
  }
  reader_->SetPathReadStats(
      context_.cfd->table_cache()->path_read_stats(),
      PathReadStats::Slot(PathReadStats::FileKind::kBlob, context_.path_id));
  decompressor_ =
      writers_.Of(home_path_id_)->DecompressorFor(layout_.header.compression);
  return s;
}

Status BlobDemotionJob::ChooseKept(bool* is_worth_it) {
  if (context_.is_drain) {
    least_kept_ = FrequencySketch::kMaxEstimate + 1;
    return Status::OK();
  }
  const AddressMap* const map = context_.cfd->address_map_store()->map();
  BlobHeatPicker::Histogram bytes{};
  uint64_t all = 0;
  uint64_t live = 0;
  RecordIndexReader index(reader_.get(), read_options_.io_options, layout_);
  std::vector<AddressMap::Record> records;
  do {
    Status s = context_.check();
    if (s.ok()) {
      s = index.Next(&records);
      if (!s.ok()) {
        s = Unreadable(s);
      }
    }
    if (!s.ok()) {
      return s;
    }
    for (const AddressMap::Record& record : records) {
      all += record.size;
      const AddressMap::Lookup found =
          map->FindByName(record.name, /*pin=*/false);
      if (found.found &&
          found.entry.address ==
              MapAddress{file_.slot, record.offset, record.size}) {
        bytes[heat_->Estimate(record.name.key)] += record.size;
        live += record.size;
      }
    }
  } while (!records.empty());
  // Garbage leaves the hot path, too. The header, the index and the footer do
  // not count: a file of values that stay needs them, too, and the copy of a
  // file of small values would be copied again for their sake, without end.
  bytes[0] += all - live;
  least_kept_ = BlobHeatPicker::LeastKept(bytes);
  uint64_t gained = 0;
  for (uint32_t i = 0; i < least_kept_; ++i) {
    gained += bytes[i];
  }
  *is_worth_it = gained > 0 && gained >= all / kMinGainedPart;
  return Status::OK();
}

Status BlobDemotionJob::CopyAll() {
  const AddressMapStore* const blobs = context_.cfd->address_map_store();
  if (context_.mutable_cf_options.blob_compaction_readahead_size > 0) {
    read_options_.read_size =
        context_.mutable_cf_options.blob_compaction_readahead_size;
  }
  BlobLiveRecords records(blobs->map(), blobs->hash_seed(), file_.slot,
                          reader_.get(), layout_, read_options_);
  Status s;
  for (;;) {
    s = context_.check();
    if (!s.ok()) {
      break;
    }
    s = records.Next();
    if (!s.ok()) {
      s = Unreadable(s);
      break;
    }
    if (!records.Valid()) {
      break;
    }
    s = Copy(records);
    if (!s.ok()) {
      break;
    }
  }
  ++stats_.files_read;
  stats_.bytes_read += records.bytes_read();
  return s;
}

uint64_t BlobDemotionJob::RoomLeft(const BlobCopyWriter& hot) const {
  if (hot.IsStoredForm(layout_.header.compression)) {
    return UINT64_MAX;
  }
  // The next value may be the first one of a file.
  const uint64_t used =
      hot.bytes_stored() +
      (num_kept_ + 1) * BlobCopyWriter::kMaxBytesPerRecord +
      (hot.num_files() + 1) * BlobCopyWriter::kMaxBytesPerFile;
  return context_.file_size - std::min(context_.file_size, used);
}

Status BlobDemotionJob::Copy(const BlobLiveRecords& records) {
  BlobCopyWriter::Value value;
  value.key = records.key();
  value.name = records.name();
  value.is_direct = records.is_direct();
  value.from = records.address();
  value.stored = records.value();
  value.blob_crc = records.blob_crc();
  value.compression = layout_.header.compression;
  value.decompressor = decompressor_.get();
  bool stays =
      !context_.is_drain && heat_->Estimate(value.name.key) >= least_kept_;
  BlobCopyWriter::Outcome outcome = BlobCopyWriter::Outcome::kNoRoom;
  Status s;
  if (stays) {
    BlobCopyWriter* const hot = writers_.Of(context_.path_id, context_.hot);
    value.max_size = RoomLeft(*hot);
    s = hot->Add(value, &outcome);
  }
  if (outcome == BlobCopyWriter::Outcome::kNoRoom) {
    stays = false;
    value.max_size = UINT64_MAX;
    s = writers_.Of(home_path_id_)->Add(value, &outcome);
  }
  switch (outcome) {
    case BlobCopyWriter::Outcome::kAdded:
      ++stats_.values_copied;
      num_kept_ += stays ? 1 : 0;
      break;
    case BlobCopyWriter::Outcome::kTooLarge:
    case BlobCopyWriter::Outcome::kNoRoom:
      ++stats_.values_left;
      failed_files_.insert(file_.number);
      break;
    case BlobCopyWriter::Outcome::kDamaged:
      return Unreadable(CorruptBlobFile(reader_->file_name(), value.from.offset,
                                        s.getState()));
    case BlobCopyWriter::Outcome::kFailed:
      break;
  }
  return s;
}

Status BlobDemotionJob::Unreadable(const Status& s) {
  unreadable_file_ = file_.number;
  failed_files_.insert(file_.number);
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
