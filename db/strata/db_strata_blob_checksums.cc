//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The part of DB::VerifyChecksum() that is about blob files of address maps.

#include <memory>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_gc_job.h"
#include "db/blob_gc/blob_live_records.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "db/column_family.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "file/random_access_file_reader.h"

namespace ROCKSDB_NAMESPACE {

Status DBStrata::VerifyAddressMapBlobs(const ReadOptions& read_options,
                                       const SuperVersion& sv) {
  ColumnFamilyData* const cfd = sv.cfd;
  AddressMapStore* const blobs = cfd->address_map_store();
  IOOptions io_options;
  io_options.rate_limiter_priority = read_options.rate_limiter_priority;
  io_options.io_activity = read_options.io_activity;
  Status s;
  for (const auto& meta : sv.current->storage_info()->GetBlobFiles()) {
    const uint64_t number = meta->GetBlobFileNumber();
    const AddressMapStore::FilePin pin(blobs, number);
    if (!meta->IsMapped() || !pin.pinned()) {
      continue;  // not of the map, or dropped meanwhile
    }
    std::unique_ptr<RandomAccessFileReader> reader;
    BlobFileLayoutV2 layout;
    s = BlobGcJob::OpenFile(cfd->ioptions(), db_->file_options_, io_options,
                            db_->io_tracer_, number, meta->GetPathId(), &reader,
                            &layout);
    if (s.ok()) {
      s = RecordIndexReader::Verify(reader.get(), io_options, layout);
    }
    if (s.ok()) {
      BlobLiveRecords::Options options;
      options.io_options = io_options;
      BlobLiveRecords records(blobs->map(), blobs->hash_seed(),
                              blobs->files()->Find(number), reader.get(),
                              layout, options);
      do {
        s = records.Next();
      } while (s.ok() && records.Valid());
    }
    if (!s.ok()) {
      return s;
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
