//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/mapped_blob_writer.h"
#include "db/blob/blob_file_addition.h"
#include "db/blob_gc/blob_copy_job.h"
#include "db/blob_gc/blob_copy_writers.h"
#include "db/blob_gc/blob_gc_storage.h"
#include "db/blob_heat/hot_mark.h"
#include "db/blob_v2/blob_format_v2.h"
#include "file/random_access_file_reader.h"
#include "options/cf_options.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "trace_replay/io_tracer.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class Decompressor;

// Copies the live values of some blob files to new files, in key order. The old
// files form sorted runs of one or more files, which are merged.
//
// Hot values may become larger when they are copied, because the compression
// type of the column family has changed. Values for which the space of the old
// files is too small go to their home path, as in BlobDemotionJob. Otherwise
// the copies would exceed blob_hot_bytes, and the job would fail.
//
// Memory: For each run, that of BlobLiveRecords, whose read_size is smaller if
// there are many runs (Context::max_read_memory); and that of BlobCopyWriter.
class BlobGcJob : public BlobCopyJob {
 public:
  struct Context : public BlobCopyContext {
    // Numbers of the files of each run, in key order, without overlap. A file
    // that is not listed is a run of its own.
    std::vector<std::vector<uint64_t>> runs;
    // For each run, whether it continues beyond the files of this job. When all
    // files of such a run have been copied, the job ends, because the rest of
    // the run must not be written after greater keys.
    std::vector<bool> goes_on;
    // The mark of all files and of the outputs.
    HotMark hot;
    // Once the job has copied this many bytes, it ends as soon as an output
    // file is full; the other values stay where they are. 0 means no limit.
    uint64_t max_copied = 0;
    // User keys, in order, before which an output file ends if it has at least
    // min_piece bytes. The outputs of several jobs with the same bounds can
    // then be sorted range by range.
    std::vector<std::string> bounds;
    uint64_t min_piece = 0;
    // Number of output files, which get equal parts of the values. There are
    // more if the parts are larger than blob_file_size, or with bounds.
    uint64_t num_pieces = 1;
    // Limit, in bytes, of the buffers of all runs together. A run has at least
    // 64 KB, and more for a longer record.
    size_t max_read_memory = size_t{64} << 20;
    // Maximum number of reads at the same time, for a job that something waits
    // for. Reads and writes of the DB wait behind them at the device.
    size_t max_reads = 1;
  };

  // path_id: the path of all files and of the outputs.
  // REQUIRES: a BlobGcStorage has pinned the files; the objects that context
  // refers to outlive this object.
  BlobGcJob(const Context& context,
            const std::vector<BlobGcStorage::File>& files, uint32_t path_id);
  ~BlobGcJob() override;

  Status Run() override;
  const std::vector<BlobFileAddition>& additions() const override;
  std::vector<MappedBlobFile> TakeOutputs() override;
  std::vector<MapAddress> TakeSources() override;
  std::vector<uint32_t> TakeKeySizes() override;
  std::vector<BlobGcPicker::KeyRange> TakeKeyRanges() override;
  const Stats& stats() const override { return stats_; }
  // True if the job ended early because of Context::max_copied or
  // Context::goes_on.
  bool reached_limit() const override { return reached_limit_; }
  const std::set<uint64_t>& failed_files() const override {
    return failed_files_;
  }
  uint64_t unreadable_file() const override { return unreadable_file_; }

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

 private:
  struct Input;

  // Creates an Input for each run.
  void MakeInputs();
  // Opens the next file of the run.
  Status OpenNext(Input* input);
  // Reads what Next() needs for the input. If reads may be concurrent, reads
  // ahead for all other inputs for which that was not done.
  void ReadAhead(Input* input);
  // Moves to the next live record of the run. Sets *valid to false if there is
  // none.
  Status Next(Input* input, bool* valid);
  // Moves the inputs to their first live records. Appends the inputs that have
  // one to *started.
  Status StartInputs(std::vector<Input*>* started);
  // Adds the input's current record to the output, or leaves it in its file if
  // the value has become too large.
  Status Copy(Input* input);
  // Returns the largest size in bytes, of key and value together, with which
  // the next value may be compressed again and stay hot.
  uint64_t HotRoomLeft() const;
  // Ends the output file if the next key is beyond a bound, or if it has its
  // part of the values.
  Status EndPiece(const Slice& next_key);
  // Returns the size in bytes of all records that the job has to copy.
  uint64_t LiveBytes() const;
  Status Merge();
  // Records an error of the file that the input is at.
  void NoteUnreadable(const Input& input);

  const Context context_;
  const std::vector<BlobGcStorage::File> files_;
  const uint32_t path_id_;
  BlobCopyWriters writers_;
  BlobCopyWriter* const writer_;  // writes to the path of files_
  std::vector<std::unique_ptr<Input>> inputs_;
  size_t next_bound_ = 0;  // index in Context::bounds
  // These are sums of the sizes that records have in their old files, because
  // the size of all copies is not known in advance.
  uint64_t bytes_to_copy_ = 0;    // all records
  uint64_t bytes_done_ = 0;       // copied records
  uint64_t bytes_in_pieces_ = 0;  // equal parts for the complete pieces
  // These count only values that are compressed again. hot_room_: bytes of
  // their old records; several threads may open files. hot_used_: bytes of the
  // copies that have stayed hot.
  std::atomic<uint64_t> hot_room_{0};
  uint64_t hot_used_ = 0;
  Stats stats_;
  bool reached_limit_ = false;
  std::set<uint64_t> failed_files_;
  uint64_t unreadable_file_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
