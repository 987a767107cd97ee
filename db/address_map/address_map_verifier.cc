//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/address_map_verifier.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/blob_file_slot_table.h"
#include "db/address_map/mapped_key_scan.h"
#include "db/blob_gc/blob_gc_job.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "file/random_access_file_reader.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns what the table knows of the slot, for a message.
// REQUIRES: the slot is pinned, or another file may have it by now.
std::string DescribeSlot(const BlobFileSlotTable& files, uint32_t slot) {
  BlobFileSlotTable::Info info;
  if (!files.GetInfo(slot, &info)) {
    return " (slot " + std::to_string(slot) + ", which is free)";
  }
  return " (slot " + std::to_string(slot) + " of blob file #" +
         std::to_string(info.number) + ": " + std::to_string(info.live_count) +
         " live values of " + std::to_string(info.live_bytes) + " bytes)";
}

class Checker : public MappedKeyScan::Visitor {
 public:
  Checker(ColumnFamilyData* cfd, bool read_values, std::mutex* report_mutex,
          const AddressMapVerifier::Report* report,
          AddressMapVerifier::Result* result)
      : cfd_(cfd),
        blobs_(cfd->address_map_store()),
        read_values_(read_values),
        report_mutex_(report_mutex),
        report_(report),
        result_(result) {
    read_options_.fill_cache = false;
    read_options_.verify_checksums = true;
  }

  Status Visit(const ParsedInternalKey& key,
               const MappedBlobIndex& index) override {
    AddressMap::Lookup found;
    const Status s = Check(key, index, &found);
    result_->values.fetch_add(1, std::memory_order_relaxed);
    if (!s.ok()) {
      result_->errors.fetch_add(1, std::memory_order_relaxed);
      std::string line = "[" + cfd_->GetName() + "] key 0x" +
                         key.user_key.ToString(/*hex=*/true) + " sequence " +
                         std::to_string(key.sequence) + " birth " +
                         std::to_string(index.birth) + ": " + s.ToString();
      if (found.pin.pinned() &&
          found.pin.slot() != BlobFileSlotTable::kLostSlot) {
        line += DescribeSlot(blobs_->file_table(), found.pin.slot());
      }
      std::lock_guard<std::mutex> lock(*report_mutex_);
      (*report_)(line);
    }
    return Status::OK();
  }
  Status FinishRange() override { return Status::OK(); }

 private:
  // *found: set to what the map has for the value, with a pin of the blob file
  //     that should have the value.
  Status Check(const ParsedInternalKey& key, const MappedBlobIndex& index,
               AddressMap::Lookup* found) {
    *found = blobs_->map()->FindByName(
        MapName{blobs_->HashOf(key.user_key), key.sequence, index.birth},
        /*pin=*/true);
    if (!found->found) {
      return Status::Corruption("The address map has no entry for it");
    }
    if (found->entry.address.slot == BlobFileSlotTable::kLostSlot) {
      return Status::Corruption("No blob file contains the value");
    }
    if (!read_values_) {
      return Status::OK();
    }
    uint64_t bytes_read = 0;
    const Status s =
        blobs_->Fetch(cfd_->blob_source(), read_options_, key.user_key,
                      key.sequence, index, &value_, &bytes_read);
    if (s.ok()) {
      result_->bytes.fetch_add(value_.size(), std::memory_order_relaxed);
    }
    return s;
  }

  ColumnFamilyData* const cfd_;
  AddressMapStore* const blobs_;
  const bool read_values_;
  std::mutex* const report_mutex_;
  const AddressMapVerifier::Report* const report_;
  AddressMapVerifier::Result* const result_;
  ReadOptions read_options_;
  PinnableSlice value_;
};

// Returns the first damage of the blob file's record index.
Status CheckRecordIndex(const ImmutableOptions& ioptions,
                        const FileOptions& file_options,
                        const BlobFileMetaData& meta) {
  const IOOptions io_options;
  BlobFileLayoutV2 layout;
  std::unique_ptr<RandomAccessFileReader> file;
  const Status s = BlobGcJob::OpenFile(
      ioptions, file_options, io_options, /*io_tracer=*/nullptr,
      meta.GetBlobFileNumber(), meta.GetPathId(), &file, &layout);
  return s.ok() ? RecordIndexReader::Verify(file.get(), io_options, layout) : s;
}

}  // namespace

Status AddressMapVerifier::Verify(ColumnFamilyData* cfd, Version* version,
                                  const Options& options, const Report& report,
                                  Result* result) {
  if (cfd->address_map_store() == nullptr) {
    return Status::OK();
  }
  std::mutex report_mutex;
  std::vector<std::shared_ptr<BlobFileMetaData>> blob_files;
  for (const auto& meta : version->storage_info()->GetBlobFiles()) {
    if (meta->IsMapped()) {
      blob_files.push_back(meta);
    }
  }
  const Status indexes = MappedKeyScan::ForEach(
      blob_files.size(), options.num_threads, [&](size_t i) {
        const AddressMapStore::FilePin pin(cfd->address_map_store(),
                                           blob_files[i]->GetBlobFileNumber());
        if (!pin.pinned()) {
          // A job has dropped it since the Version was current. Versions do not
          // keep blob files of a map.
          return Status::OK();
        }
        const Status s = CheckRecordIndex(cfd->ioptions(), options.file_options,
                                          *blob_files[i]);
        if (!s.ok()) {
          ++result->damaged_indexes;
          std::lock_guard<std::mutex> lock(report_mutex);
          const uint64_t number = blob_files[i]->GetBlobFileNumber();
          const BlobFileSlotTable& files =
              cfd->address_map_store()->file_table();
          report("[" + cfd->GetName() + "] record index of blob file #" +
                 std::to_string(number) + ": " + s.ToString() +
                 DescribeSlot(files, files.Find(number)));
        }
        return Status::OK();
      });
  if (!indexes.ok()) {
    return indexes;
  }
  MappedKeyScan scan(cfd, version, options.file_options,
                     Env::IOActivity::kUnknown, options.num_threads);
  return scan.Run([&] {
    return std::make_unique<Checker>(cfd, options.read_values, &report_mutex,
                                     &report, result);
  });
}

}  // namespace ROCKSDB_NAMESPACE
