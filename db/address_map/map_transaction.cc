//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_transaction.h"

#include <cassert>

#include "db/address_map/address_map_store.h"
#include "db/blob_v2/blob_record_index.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

MapTransaction::MapTransaction(AddressMapStore* blobs, uint64_t sst_number,
                               bool when_present)
    : blobs_(blobs), sst_number_(sst_number), when_present_(when_present) {
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

void MapTransaction::Settle() {
  TEST_SYNC_POINT("MapTransaction::Settle");
  assert(!is_open_);
  AddressMap* const map = blobs_->map();
  for (const File& file : files_) {
    // Publish() has read this index without an error up to some point, and has
    // inserted nothing that comes after it. So errors can be ignored.
    ForEachBatch(file, [&](const Records& records) {
      if (committed_) {
        map->CommitBatch(records.data(), records.size(), born_before_);
      } else {
        map->UndoBatch(file.slot, records.data(), records.size());
      }
      return Status::OK();
    }).PermitUncheckedError();
    if (!committed_) {
      blobs_->AbandonFile(file.slot);
    }
  }
  files_.clear();
}

Status MapTransaction::ForEachBatch(
    const File& file, const std::function<Status(const Records&)>& fn) const {
  const MappedBlobFile& f = file.file;
  RecordIndexReader reader(f.index, f.footer,
                           f.size - BlobFooterV2::kSize - f.footer.index_size,
                           "blob file " + std::to_string(f.number));
  Records records;
  Status s;
  do {
    s = reader.Next(&records);
    if (s.ok() && !records.empty()) {
      s = fn(records);
    }
  } while (s.ok() && !records.empty());
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
