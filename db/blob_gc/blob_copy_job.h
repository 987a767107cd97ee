//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/address_map/map_name.h"
#include "db/address_map/mapped_blob_writer.h"
#include "db/blob/blob_file_addition.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "logging/event_logger.h"
#include "options/cf_options.h"
#include "options/db_options.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"
#include "trace_replay/io_tracer.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileCompletionCallback;
class ColumnFamilyData;
class VersionSet;

// The parts of its DB that a job needs to copy values to new blob files.
struct BlobCopyContext {
  ColumnFamilyData* cfd = nullptr;
  VersionSet* versions = nullptr;
  const ImmutableDBOptions* db_options = nullptr;
  std::string dbname;
  // Options of the column family at the time when the job was created.
  MutableCFOptions mutable_cf_options;
  FileOptions read_file_options;
  FileOptions write_file_options;
  std::string db_id;
  std::string db_session_id;
  int job_id = 0;
  // For deletions of complete files when the job fails; may be nullptr.
  EventLogger* event_logger = nullptr;
  std::shared_ptr<IOTracer> io_tracer;
  BlobFileCompletionCallback* blob_callback = nullptr;
  Env::IOPriority io_priority = Env::IO_LOW;
  // Called often, must be cheap. If the status is not OK, the job ends with
  // this status.
  std::function<Status()> check;
};

// Copies values of an address map to new blob files, in key order.
//
// A value keeps its name and mode; only its address changes. The results of the
// job are the arguments for BlobGcStorage, which changes the addresses.
//
// Not thread-safe; runs without the DB mutex.
class BlobCopyJob {
 public:
  struct Stats {
    uint64_t files_read = 0;
    uint64_t bytes_read = 0;
    uint64_t values_copied = 0;
    // Values that were not copied because they are too large when recompressed.
    uint64_t values_left = 0;
    uint64_t bytes_written = 0;  // complete files
  };

  BlobCopyJob() = default;
  virtual ~BlobCopyJob() = default;
  BlobCopyJob(const BlobCopyJob&) = delete;
  BlobCopyJob& operator=(const BlobCopyJob&) = delete;

  // Writes and syncs the outputs, but does not sync their directory. After an
  // error the outputs are deleted.
  // REQUIRES: called once.
  virtual Status Run() = 0;

  // The additions of the outputs to the MANIFEST. Empty if no value was copied.
  virtual const std::vector<BlobFileAddition>& additions() const = 0;
  // Return the arguments for BlobGcStorage::Publish().
  virtual std::vector<MappedBlobFile> TakeOutputs() = 0;
  virtual std::vector<MapAddress> TakeSources() = 0;
  // Returns the argument for BlobGcStorage::MoveCached(). Empty without a blob
  // cache.
  virtual std::vector<uint32_t> TakeKeySizes() = 0;
  // Returns the keys of the outputs, in the order of additions().
  virtual std::vector<BlobGcPicker::KeyRange> TakeKeyRanges() = 0;

  virtual const Stats& stats() const = 0;
  // True if the job ended before it had copied all that it was asked to.
  virtual bool reached_limit() const = 0;
  // Numbers of the files that could not be read or have values that were not
  // copied (Stats::values_left).
  virtual const std::set<uint64_t>& failed_files() const = 0;
  // Number of the input file that made Run() fail because it could not be read
  // or a value in it is damaged. 0 if Run() succeeded or failed for another
  // reason.
  virtual uint64_t unreadable_file() const = 0;
  // True if Run() failed because the keys of the values could not be read from
  // SST files.
  virtual bool has_unreadable_keys() const { return false; }
};

}  // namespace ROCKSDB_NAMESPACE
