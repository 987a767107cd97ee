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
#include "file/file_util.h"
#include "file/random_access_file_reader.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A file whose reads obey the deadline and the io_timeout of ReadOptions, and
// carry the request id. The readers of a blob file keep one IOOptions for all
// reads, but each read has less time left than the one before.
class LimitedReadFile final : public FSRandomAccessFileWrapper {
 public:
  // REQUIRES: the arguments outlive this object.
  LimitedReadFile(FSRandomAccessFile* file, const ReadOptions& read_options,
                  SystemClock* clock)
      : FSRandomAccessFileWrapper(file),
        read_options_(read_options),
        clock_(clock) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    IODebugContext own;
    if (dbg == nullptr) {
      dbg = &own;
    }
    IOOptions limited = options;
    const IOStatus s =
        PrepareIOFromReadOptions(read_options_, clock_, limited, dbg);
    return s.ok() ? target()->Read(offset, n, limited, result, scratch, dbg)
                  : s;
  }

 private:
  const ReadOptions& read_options_;
  SystemClock* const clock_;
};

}  // namespace

Status DBStrata::VerifyAddressMapBlobs(const ReadOptions& read_options,
                                       const SuperVersion& sv) {
  ColumnFamilyData* const cfd = sv.cfd;
  AddressMapStore* const blobs = cfd->address_map_store();
  const ImmutableOptions& ioptions = cfd->ioptions();
  Status s;
  for (const auto& meta : sv.current->storage_info()->GetBlobFiles()) {
    const uint64_t number = meta->GetBlobFileNumber();
    const AddressMapStore::FilePin pin(blobs, number);
    if (!meta->IsMapped() || !pin.pinned()) {
      continue;  // not of the map, or dropped meanwhile
    }
    BlobLiveRecords::Options options;
    s = PrepareIOFromReadOptions(read_options, ioptions.clock,
                                 options.io_options);
    std::unique_ptr<RandomAccessFileReader> opened;
    BlobFileLayoutV2 layout;
    if (s.ok()) {
      s = BlobGcJob::OpenFile(ioptions, db_->file_options_, options.io_options,
                              db_->io_tracer_, number, meta->GetPathId(),
                              &opened, &layout);
    }
    if (!s.ok()) {
      return s;
    }
    const RandomAccessFileReader reader(
        std::make_unique<LimitedReadFile>(opened->file(), read_options,
                                          ioptions.clock),
        opened->file_name(), ioptions.clock, /*io_tracer=*/nullptr,
        ioptions.stats, Histograms::BLOB_DB_BLOB_FILE_READ_MICROS,
        /*file_read_hist=*/nullptr, ioptions.rate_limiter.get(),
        ioptions.listeners);
    s = RecordIndexReader::Verify(&reader, options.io_options, layout);
    if (s.ok()) {
      BlobLiveRecords records(blobs->map(), blobs->hash_seed(),
                              blobs->files()->Find(number), &reader, layout,
                              options);
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
