//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/blob/address_map.h"
#include "db/blob/blob_file_addition.h"
#include "db/blob/blob_gc_storage.h"
#include "db/blob/blob_live_records.h"
#include "db/blob/mapped_blob_writer.h"
#include "file/random_access_file_reader.h"
#include "options/cf_options.h"
#include "options/db_options.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"
#include "trace_replay/io_tracer.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileCompletionCallback;
class ColumnFamilyData;
class Decompressor;
class VersionSet;

// Copies the live values of some blob files to new ones, in the order of their
// keys: the old files are sorted runs each, and are merged.
//
// A value stays what it is, name and mode; only its address changes. It is
// written as it is in the old file if that has the compression that the column
// family asks for now, else anew.
//
// Memory: for each old file a buffer of Options::read_size and what 1,024
// records of its index take, and 12 bytes for each value copied, with a blob
// cache 16.
//
// Not thread-safe; runs without the DB mutex.
class BlobGcJob {
 public:
  struct Context {
    ColumnFamilyData* cfd = nullptr;
    VersionSet* versions = nullptr;
    const ImmutableDBOptions* db_options = nullptr;
    std::string dbname;
    // Of the column family, when the job was made.
    MutableCFOptions mutable_cf_options;
    FileOptions read_file_options;
    FileOptions write_file_options;
    std::string db_id;
    std::string db_session_id;
    int job_id = 0;
    std::shared_ptr<IOTracer> io_tracer;
    BlobFileCompletionCallback* blob_callback = nullptr;
    Env::IOPriority io_priority = Env::IO_LOW;
    // Not OK: give up with this status. Asked often; cheap.
    std::function<Status()> check;
  };

  struct Stats {
    uint64_t files_read = 0;
    uint64_t bytes_read = 0;
    uint64_t values_copied = 0;
    // They are too large, now that they would be compressed otherwise.
    uint64_t values_left = 0;
    uint64_t bytes_written = 0;  // complete files
  };

  // The files are of one path, where the outputs go, too.
  // REQUIRES: storage has pinned them; all outlive this.
  BlobGcJob(const Context& context, const std::vector<BlobGcStorage::File>& files,
            uint32_t path_id);
  ~BlobGcJob();
  BlobGcJob(const BlobGcJob&) = delete;
  BlobGcJob& operator=(const BlobGcJob&) = delete;

  // Writes and syncs the outputs; their directory is not synced. After an error
  // they are deleted.
  // REQUIRES: called once.
  Status Run();

  // Of the outputs. None if nothing was alive.
  const std::vector<BlobFileAddition>& additions() const { return additions_; }
  // For BlobGcStorage::Publish().
  std::vector<MappedBlobFile> TakeOutputs();
  std::vector<MapAddress> TakeSources() { return std::move(sources_); }
  // For BlobGcStorage::MoveCached(). None without a blob cache.
  std::vector<uint32_t> TakeKeySizes() { return std::move(key_sizes_); }

  const Stats& stats() const { return stats_; }

 private:
  class Sink;
  struct Input;

  Status OpenInput(const BlobGcStorage::File& file,
                   std::unique_ptr<Input>* input) const;
  Status Merge();
  // The value of the input's current record, as the output has it.
  Status Convert(Input* input, Slice* value);
  void DeleteOutputs();

  const Context context_;
  const std::vector<BlobGcStorage::File> files_;
  const uint32_t path_id_;
  const CompressionType compression_;
  const std::unique_ptr<Sink> sink_;
  std::vector<std::unique_ptr<Input>> inputs_;
  std::vector<std::string> paths_;
  std::vector<BlobFileAddition> additions_;
  std::vector<MapAddress> sources_;
  std::vector<uint32_t> key_sizes_;
  std::string uncompressed_;
  Stats stats_;
};

}  // namespace ROCKSDB_NAMESPACE
