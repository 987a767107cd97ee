//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_gc_storage.h"

#include <cassert>
#include <string>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/blob/blob_source.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Number of lookups whose memory accesses are in flight at the same time.
constexpr size_t kPrefetchDistance = 8;

}  // namespace

BlobGcStorage::BlobGcStorage(AddressMapStore* blobs,
                             const std::vector<uint64_t>& files)
    : blobs_(blobs) {
  for (const uint64_t number : files) {
    const uint32_t slot = blobs_->files()->Find(number);
    BlobFileSlotTable::Info info;
    if (slot != BlobFileSlotTable::kLostSlot &&
        blobs_->files()->GetInfo(slot, &info) &&
        info.state == BlobFileSlotTable::State::kLive &&
        blobs_->files()->PinForJob(slot)) {
      files_.push_back(File{number, slot});
      blobs_->gc()->Begin(number);
    }
  }
  blobs_->AddPending(this);
}

BlobGcStorage::~BlobGcStorage() {
  assert(outputs_.empty());
  Close();
  for (const File& file : files_) {
    blobs_->files()->UnpinForJob(file.slot);
    blobs_->gc()->End(file.number);
  }
  for (const uint32_t slot : sources_) {
    blobs_->files()->UnpinForJob(slot);
  }
}

bool BlobGcStorage::PinSource(uint32_t slot, BlobFileSlotTable::Info* info) {
  assert(outputs_.empty());
  if (!blobs_->files()->PinForJob(slot)) {
    return false;
  }
  sources_.insert(slot);
  return blobs_->files()->GetInfo(slot, info);
}

void BlobGcStorage::UnpinSource(uint32_t slot) {
  assert(outputs_.empty());
  if (sources_.erase(slot) > 0) {
    blobs_->files()->UnpinForJob(slot);
  }
}

void BlobGcStorage::Close() {
  if (is_open_) {
    blobs_->RemovePending(this);
    is_open_ = false;
  }
}

void BlobGcStorage::MoveCached(const BlobSource* source,
                               std::vector<uint32_t>&& key_sizes) {
  blob_source_ = source;
  key_sizes_ = std::move(key_sizes);
}

Status BlobGcStorage::Publish(std::vector<MappedBlobFile>&& outputs,
                              std::vector<MapAddress>&& from) {
  assert(outputs_.empty() && !outputs.empty());
  from_ = std::move(from);
  for (MappedBlobFile& file : outputs) {
    const uint32_t slot = blobs_->AddFileOfCopies(file);
    if (slot == BlobFileSlotTable::kLostSlot) {
      return Status::Busy("The address map has no room for another blob file");
    }
    outputs_.push_back(Output{slot, std::move(file)});
  }
  has_outputs_.store(true, std::memory_order_release);
  TEST_SYNC_POINT("BlobGcStorage::Publish:BeforeSwap");
  const Status s = SwapAll(/*back=*/false);
  TEST_SYNC_POINT("BlobGcStorage::Publish:Swapped");
  return s;
}

std::vector<uint64_t> BlobGcStorage::AddDrops(const VersionStorageInfo& version,
                                              VersionEdit* edit) {
  std::vector<uint32_t> slots(sources_.begin(), sources_.end());
  for (const File& file : files_) {
    slots.push_back(file.slot);
  }
  return blobs_->AddDrops(version, edit, slots);
}

void BlobGcStorage::OnVersionAppended(const VersionStorageInfo& version) {
  if (committed_ || !has_outputs_.load(std::memory_order_acquire) ||
      version.GetBlobFileMetaData(outputs_.front().file.number) == nullptr) {
    return;
  }
  committed_ = true;
  for (const Output& output : outputs_) {
    assert(version.GetBlobFileMetaData(output.file.number) != nullptr);
    blobs_->files()->Commit(output.slot);
  }
}

void BlobGcStorage::Settle() {
  TEST_SYNC_POINT("BlobGcStorage::Settle");
  assert(!is_open_);
  if (!committed_) {
    // The parts of the indexes that Publish() read without an error can be read
    // again.
    SwapAll(/*back=*/true).PermitUncheckedError();
    for (const Output& output : outputs_) {
      assert(blobs_->files()->LiveCount(output.slot) == 0);
      blobs_->AbandonFile(output.slot);
    }
    num_moved_ = bytes_moved_ = 0;
    num_moved_home_ = bytes_moved_home_ = 0;
  }
  outputs_.clear();
  from_.clear();
}

Status BlobGcStorage::SwapAll(bool back) {
  AddressMap* const map = blobs_->map();
  std::vector<AddressMap::Record> records;
  size_t i = 0;
  for (const Output& output : outputs_) {
    const MappedBlobFile& file = output.file;
    RecordIndexReader reader(
        file.index, file.footer,
        file.size - BlobFooterV2::kSize - file.footer.index_size,
        "blob file " + std::to_string(file.number));
    do {
      const Status s = reader.Next(&records);
      if (!s.ok()) {
        return s;
      }
      for (size_t n = 0; n < records.size(); ++n) {
        if (n + kPrefetchDistance < records.size()) {
          map->Prefetch(records[n + kPrefetchDistance].name.key);
        }
        const AddressMap::Record& record = records[n];
        if (i == from_.size()) {
          return Status::Corruption("Blob file " + std::to_string(file.number) +
                                    " has more records than were copied");
        }
        const MapAddress copy{output.slot, record.offset, record.size};
        const MapAddress from = back ? copy : from_[i];
        const MapAddress to = back ? from_[i] : copy;
        if (map->SwapAddress(record.name, from, to)) {
          if (blob_source_ != nullptr) {
            MoveCachedValue(i, from, to);
          }
          if (!back) {
            ++num_moved_;
            bytes_moved_ += record.size;
            if (!file.hot.is_hot()) {
              ++num_moved_home_;
              bytes_moved_home_ += from.size;
            }
          }
        }
        ++i;
      }
    } while (!records.empty());
  }
  if (i != from_.size()) {
    return Status::Corruption("Blob files have fewer records than were copied");
  }
  return Status::OK();
}

void BlobGcStorage::MoveCachedValue(size_t i, const MapAddress& from,
                                    const MapAddress& to) {
  assert(i < key_sizes_.size());
  // The cache key contains the offset of the value, not that of its record.
  const uint64_t before_value = BlobRecordV2::ValueOffset(key_sizes_[i]);
  blob_source_->MoveCached(
      blobs_->files()->Number(from.slot), from.offset + before_value,
      blobs_->files()->Number(to.slot), to.offset + before_value);
}

}  // namespace ROCKSDB_NAMESPACE
