//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/mapped_blob_writer.h"
#include "db/blob/blob_file_addition.h"
#include "db/blob_gc/blob_gc_storage.h"
#include "db/blob_gc/blob_live_records.h"
#include "db/blob_v2/blob_format_v2.h"
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
// keys: the old files are sorted runs, alone or several in a row, and are
// merged.
//
// A value stays what it is, name and mode; only its address changes. It is
// written as it is in the old file if that has the compression that the column
// family asks for now, else anew.
//
// Memory: for each run a buffer of BlobLiveRecords::Options::read_size, or less
// if there are many (Context::max_read_memory), and what 1,024 records of an
// index take, and 12 bytes for each value copied, with a blob cache 16.
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
    // Files that follow each other in the order of keys, without an overlap. A
    // file that is in none of these is a run of its own.
    std::vector<std::vector<uint64_t>> runs;
    // Which of them go on beyond the files of this job. When all of such a run
    // is copied the job ends: what follows must not come after greater keys.
    std::vector<bool> goes_on;
    // The job ends, when a file is full, once it has copied so many bytes: the
    // rest stays where it is. 0: it copies all.
    uint64_t max_copied = 0;
    // Of the buffers of all runs, but for a minimum of 64 KB each and records
    // that are longer.
    size_t max_read_memory = size_t{64} << 20;
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
  BlobGcJob(const Context& context,
            const std::vector<BlobGcStorage::File>& files, uint32_t path_id);
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

  // Opens a file as a job does, within the limit for background I/O.
  // REQUIRES: it is pinned; ioptions outlives the reader.
  static Status OpenFile(const ImmutableOptions& ioptions,
                         const FileOptions& file_options,
                         const IOOptions& io_options,
                         const std::shared_ptr<IOTracer>& io_tracer,
                         uint64_t number, uint32_t path_id,
                         std::unique_ptr<RandomAccessFileReader>* reader,
                         BlobFileLayoutV2* layout);

  // The job ended early: Context::max_copied or Context::goes_on.
  bool reached_limit() const { return reached_limit_; }
  // What could not be read, and files with values_left.
  const std::set<uint64_t>& failed_files() const { return failed_files_; }
  // The input that Run() has failed for: it could not be read, or a value in it
  // is damaged. 0 if Run() was OK or has failed for another reason.
  uint64_t unreadable_file() const { return unreadable_file_; }

 private:
  class Sink;
  struct Input;

  // One for each run.
  void MakeInputs();
  // Opens the next file of the run.
  Status OpenNext(Input* input);
  // Goes to the next live record of the run; none: *valid is false.
  Status Next(Input* input, bool* valid);
  Status Merge();
  // An error of the file that the input is at.
  void NoteUnreadable(const Input& input);
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
  bool reached_limit_ = false;
  std::set<uint64_t> failed_files_;
  uint64_t unreadable_file_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
