//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_transaction.h"

#include <cassert>
#include <cinttypes>
#include <memory>
#include <string>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_gc_job.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "db/version_set.h"
#include "file/random_access_file_reader.h"
#include "logging/logging.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

MapTransaction::MapTransaction(AddressMapStore* blobs, uint64_t sst_number,
                               bool when_present, Env::IOActivity activity)
    : blobs_(blobs),
      sst_number_(sst_number),
      when_present_(when_present),
      activity_(activity) {
  blobs_->AddPending(this);
}

MapTransaction::~MapTransaction() {
  assert(files_.empty());
  Close();
}

void MapTransaction::Close() {
  if (is_open_) {
    blobs_->RemovePending(this);
    is_open_ = false;
  }
}

void MapTransaction::LimitIndex(MappedBlobFile* file) {
  size_t limit = kMaxIndexBytes;
  TEST_SYNC_POINT_CALLBACK("MapTransaction::LimitIndex", &limit);
  const size_t size = file->index.size();
  if (index_bytes_.fetch_add(size, std::memory_order_relaxed) + size > limit) {
    index_bytes_.fetch_sub(size, std::memory_order_relaxed);
    std::string().swap(file->index);
  }
}

Status MapTransaction::Publish(std::vector<MappedBlobFile>&& files) {
  assert(files_.empty());
  AddressMap* const map = blobs_->map();
  Status s;
  for (MappedBlobFile& file : files) {
    const uint32_t slot = blobs_->AddPendingFile(file);
    if (slot == BlobFileSlotTable::kLostSlot) {
      return Status::Busy("The address map has no room for another blob file");
    }
    files_.push_back(File{slot, std::move(file)});
    if (!files_.back().file.has_index()) {
      // The slot stands for the file, which is on disk, until Settle() ends.
      files_.back().is_pinned = blobs_->files()->PinForJob(slot);
      assert(files_.back().is_pinned);
    }
    s = ForEachBatch(files_.back(), [&](const Records& records) {
      return map->InsertBatch(slot, records.data(), records.size());
    });
    if (!s.ok()) {
      break;
    }
  }
  TEST_SYNC_POINT("MapTransaction::Publish:Inserted");
  return s;
}

void MapTransaction::OnVersionAppended(const VersionStorageInfo& version) {
  const bool present = version.GetFileLocation(sst_number_).IsValid();
  if (committed_ || present != when_present_) {
    return;
  }
  // The edit is committed after Publish() has returned, so files_ is complete.
  committed_ = true;
  born_before_ = blobs_->next_file_number();
  for (const File& file : files_) {
    // The edit of the SST file also added these blob files, and a mapped file
    // does not leave the Version before its slot is live.
    assert(version.GetBlobFileMetaData(file.file.number) != nullptr);
    blobs_->files()->Commit(file.slot);
  }
}

void MapTransaction::Settle(bool keep_superseded) {
  TEST_SYNC_POINT("MapTransaction::Settle");
  assert(!is_open_);
  AddressMap* const map = blobs_->map();
  for (const File& file : files_) {
    Status s;
    if (!committed_) {
      s = ForEachBatch(file, [&](const Records& records) {
        map->UndoBatch(file.slot, records.data(), records.size());
        return Status::OK();
      });
    } else if (!keep_superseded) {
      s = ForEachBatch(file, [&](const Records& records) {
        map->CommitBatch(records.data(), records.size(), born_before_);
        return Status::OK();
      });
    }
    if (!s.ok()) {
      ROCKS_LOG_WARN(blobs_->ioptions().logger,
                     "The index of blob file %" PRIu64
                     " cannot be read at the end of a job, which looks at all "
                     "entries of the address map instead: %s",
                     file.file.number, s.ToString().c_str());
      SettleByMap(file);
    }
    if (!committed_) {
      blobs_->AbandonFile(file.slot);
    }
    if (file.is_pinned) {
      blobs_->files()->UnpinForJob(file.slot);
    }
  }
  files_.clear();
}

void MapTransaction::SettleByMap(const File& file) {
  AddressMap* const map = blobs_->map();
  if (!committed_) {
    map->Forget({file.slot});
    return;
  }
  // If garbage collection has moved an entry meanwhile, the entries below it
  // stay, and keep their files, until an open rebuilds the map.
  blobs_->SetInexact();
  for (uint32_t part = 0; part < AddressMap::kNumParts; ++part) {
    map->ForEachInPart(part, [&](const AddressMap::Entry& entry) {
      if (entry.address.slot == file.slot &&
          entry.mode != MapMode::kVersioned) {
        AddressMap::Record record;
        record.name = entry.name;
        record.direct = true;
        map->CommitBatch(&record, 1, born_before_);
      }
    });
  }
}

Status MapTransaction::ForEachBatch(
    const File& file, const std::function<Status(const Records&)>& fn) const {
  const MappedBlobFile& f = file.file;
  if (f.has_index()) {
    RecordIndexReader reader(f.index, f.footer,
                             f.size - BlobFooterV2::kSize - f.footer.index_size,
                             "blob file " + std::to_string(f.number));
    return ForEachBatchOf(&reader, fn);
  }
  IOOptions io_options;
  io_options.io_activity = activity_;
  std::unique_ptr<RandomAccessFileReader> opened;
  BlobFileLayoutV2 layout;
  Status s = BlobGcJob::OpenFile(blobs_->ioptions(), FileOptions(), io_options,
                                 /*io_tracer=*/nullptr, f.number, f.path_id,
                                 &opened, &layout);
  TEST_SYNC_POINT_CALLBACK("MapTransaction::ForEachBatch:Opened", &s);
  if (!s.ok()) {
    return s;
  }
  RecordIndexReader reader(opened.get(), io_options, layout);
  return ForEachBatchOf(&reader, fn);
}

Status MapTransaction::ForEachBatchOf(
    RecordIndexReader* reader,
    const std::function<Status(const Records&)>& fn) {
  Records records;
  Status s;
  do {
    s = reader->Next(&records);
    if (s.ok() && !records.empty()) {
      s = fn(records);
    }
  } while (s.ok() && !records.empty());
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
