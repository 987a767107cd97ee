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

class BlobFileBuilder;
class BlobFileCompletionCallback;
class ColumnFamilyData;
class Decompressor;
class VersionSet;

// Copies the live values of some blob files to new files, in key order. The old
// files form sorted runs of one or more files, which are merged.
//
// A value keeps its name and mode; only its address changes. Its bytes are
// copied unchanged if the old file has the compression type that the column
// family uses; otherwise the value is recompressed.
//
// Memory: For each run, a buffer of BlobLiveRecords::Options::read_size bytes,
// or less if there are many runs (Context::max_read_memory), and the memory of
// 1,024 index records. For each copied value, 12 bytes, or 16 if there is a
// blob cache.
//
// Not thread-safe; runs without the DB mutex.
class BlobGcJob {
 public:
  struct Context {
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
    std::shared_ptr<IOTracer> io_tracer;
    BlobFileCompletionCallback* blob_callback = nullptr;
    Env::IOPriority io_priority = Env::IO_LOW;
    // Called often, must be cheap. If the status is not OK, the job ends with
    // this status.
    std::function<Status()> check;
    // Numbers of the files of each run, in key order, without overlap. A file
    // that is not listed is a run of its own.
    std::vector<std::vector<uint64_t>> runs;
    // For each run, whether it continues beyond the files of this job. When all
    // files of such a run have been copied, the job ends, because the rest of
    // the run must not be written after greater keys.
    std::vector<bool> goes_on;
    // Once the job has copied this many bytes, it ends as soon as an output
    // file is full; the other values stay where they are. 0 means no limit.
    uint64_t max_copied = 0;
    // Limit, in bytes, of the buffers of all runs together. A run has at least
    // 64 KB, and more for a longer record.
    size_t max_read_memory = size_t{64} << 20;
  };

  struct Stats {
    uint64_t files_read = 0;
    uint64_t bytes_read = 0;
    uint64_t values_copied = 0;
    // Values that were not copied because they are too large when recompressed.
    uint64_t values_left = 0;
    uint64_t bytes_written = 0;  // complete files
  };

  // path_id: the path of all files and of the outputs.
  // REQUIRES: a BlobGcStorage has pinned the files; the objects that context
  // refers to outlive this object.
  BlobGcJob(const Context& context,
            const std::vector<BlobGcStorage::File>& files, uint32_t path_id);
  ~BlobGcJob();
  BlobGcJob(const BlobGcJob&) = delete;
  BlobGcJob& operator=(const BlobGcJob&) = delete;

  // Writes and syncs the outputs, but does not sync their directory. After an
  // error the outputs are deleted.
  // REQUIRES: called once.
  Status Run();

  // The additions of the outputs to the MANIFEST. Empty if there were no live
  // values.
  const std::vector<BlobFileAddition>& additions() const { return additions_; }
  // Return the arguments for BlobGcStorage::Publish().
  std::vector<MappedBlobFile> TakeOutputs();
  std::vector<MapAddress> TakeSources() { return std::move(sources_); }
  // Returns the argument for BlobGcStorage::MoveCached(). Empty without a blob
  // cache.
  std::vector<uint32_t> TakeKeySizes() { return std::move(key_sizes_); }

  const Stats& stats() const { return stats_; }

  // Opens a blob file in the way a job does, subject to the rate limit of
  // background I/O.
  // REQUIRES: the file is pinned; ioptions outlives the reader.
  static Status OpenFile(const ImmutableOptions& ioptions,
                         const FileOptions& file_options,
                         const IOOptions& io_options,
                         const std::shared_ptr<IOTracer>& io_tracer,
                         uint64_t number, uint32_t path_id,
                         std::unique_ptr<RandomAccessFileReader>* reader,
                         BlobFileLayoutV2* layout);

  // True if the job ended early because of Context::max_copied or
  // Context::goes_on.
  bool reached_limit() const { return reached_limit_; }
  // Numbers of the files that could not be read or have values that were not
  // copied (Stats::values_left).
  const std::set<uint64_t>& failed_files() const { return failed_files_; }
  // Number of the input file that made Run() fail because it could not be read
  // or a value in it is damaged. 0 if Run() succeeded or failed for another
  // reason.
  uint64_t unreadable_file() const { return unreadable_file_; }

 private:
  class Sink;
  struct Input;

  // Creates an Input for each run.
  void MakeInputs();
  // Opens the next file of the run.
  Status OpenNext(Input* input);
  // Moves to the next live record of the run. Sets *valid to false if there is
  // none.
  Status Next(Input* input, bool* valid);
  // Moves the inputs to their first live records. Appends the inputs that have
  // one to *started.
  Status StartInputs(std::vector<Input*>* started);
  // Adds the input's current record to the output, or leaves it in its file if
  // the value has become too large.
  // index: working memory.
  // copied: receives the bytes that were added.
  Status Copy(Input* input, BlobFileBuilder* builder, std::string* index,
              uint64_t* copied);
  Status Merge();
  // Records an error of the file that the input is at.
  void NoteUnreadable(const Input& input);
  // Sets *value to the value of the input's current record in the form that is
  // passed to the output.
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
