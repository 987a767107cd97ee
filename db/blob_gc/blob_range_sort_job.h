//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/cache_helpers.h"
#include "db/address_map/address_map.h"
#include "db/address_map/mapped_blob_writer.h"
#include "db/blob/blob_file_addition.h"
#include "db/blob_gc/blob_copy_job.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class BlobCopyWriters;
class BlobFileReader;
class BlobGcStorage;
class Decompressor;
struct MappedBlobIndex;
struct ParsedInternalKey;
class Version;

// Copies the values of a range of keys to new blob files, in key order, so that
// a scan finds them in few places. Which values exist is read from the SST
// files, and where they are from the map, so only the parts of the blob files
// that are in the range are read.
//
// Values that a scan finds in few places already are not copied. The values of
// a stretch, which are kStretch bytes, stay if they are in kMaxParts parts of
// files, on each path; with files that are smaller than a stretch, in
// accordingly more. If they are in more parts, a part stays if it has half of
// the values of its path. So the
// new values of a range that was sorted before are sorted among themselves,
// until they are as many as the old ones.
//
// A value stays on its path: there are outputs on each path that has values.
// Hot values (blob_hot_bytes) stay where they are.
//
// A file is pinned while the chunk has values of it, and until the end of the
// job if values of it were copied: other jobs cannot drop it meanwhile.
//
// The files stay as they are: the copied values become garbage in them. They
// may be collected at the same time, as an address is changed only if it is
// still the one that was copied.
//
// Memory: max_chunk bytes; for reads, max_reads times read_size bytes, or up to
// max_chunk bytes if values are longer than that; and that of BlobCopyWriter.
class BlobRangeSortJob : public BlobCopyJob {
 public:
  static constexpr uint64_t kStretch = uint64_t{256} << 10;
  // A file's values of a stretch are one part if they take up at most this many
  // times their size in the file.
  static constexpr uint64_t kMaxSpread = 2;
  static constexpr size_t kMaxParts = 3;
  // Reads at the same time: scans wait for the job.
  static constexpr size_t kMaxReads = 8;

  struct Context : public BlobCopyContext {
    // The user keys where the range begins and ends; the latter is not part of
    // it. Without has_begin the range begins with the first key, and without
    // has_end it goes on to the last one. An empty key may be either.
    std::string begin;
    bool has_begin = false;
    std::string end;
    bool has_end = false;
    // The files that are read for the keys. Referenced during the job.
    Version* version = nullptr;
    // Pins the files.
    BlobGcStorage* storage = nullptr;
    // Numbers of the blob files whose values stay where they are.
    std::set<uint64_t> excluded;
    // Once the job has copied this many bytes, it ends at the end of a chunk.
    // 0 means no limit.
    uint64_t max_copied = 0;
    // Bytes of memory for values, keys and addresses, but at least one value.
    size_t max_chunk = size_t{16} << 20;
    // Bytes per read, and how many bytes between two values are read rather
    // than skipped.
    size_t read_size = size_t{256} << 10;
    size_t max_gap = size_t{16} << 10;
    // Maximum number of reads at the same time.
    size_t max_reads = kMaxReads;
  };

  // REQUIRES: the objects that context refers to outlive this object.
  explicit BlobRangeSortJob(const Context& context);
  ~BlobRangeSortJob() override;

  Status Run() override;
  const std::vector<BlobFileAddition>& additions() const override;
  std::vector<MappedBlobFile> TakeOutputs() override;
  std::vector<MapAddress> TakeSources() override;
  std::vector<uint32_t> TakeKeySizes() override;
  std::vector<BlobGcPicker::KeyRange> TakeKeyRanges() override;
  const Stats& stats() const override { return stats_; }
  // True if the job ended early because of Context::max_copied.
  bool reached_limit() const override { return reached_limit_; }
  const std::set<uint64_t>& failed_files() const override {
    return failed_files_;
  }
  uint64_t unreadable_file() const override { return unreadable_file_; }
  bool has_unreadable_keys() const override { return has_unreadable_keys_; }

 private:
  class Visitor;
  struct Entry {
    size_t key_offset = 0;  // in keys_
    size_t key_size = 0;
    size_t record_offset = 0;  // in records_
    MapName name;
    MapAddress from;
    bool is_direct = false;
    bool is_kept = false;
  };
  // A file whose slot is pinned for the job.
  struct File {
    uint64_t number = 0;
    uint32_t path_id = 0;
    bool is_used = false;                     // false if its values stay
    bool has_copied = false;                  // values of it were copied
    CacheHandleGuard<BlobFileReader> reader;  // while the file is read
    CompressionType compression = kNoCompression;
    std::shared_ptr<Decompressor> decompressor;
  };

  // Adds the entry of an SST file to the chunk, if it has a value that may be
  // copied. Copies the chunk before if it is full.
  Status AddEntry(const ParsedInternalKey& key, const MappedBlobIndex& index);
  // Finds the value, and pins its file. Returns false if there is none or it
  // stays.
  bool Find(const MapName& name, AddressMap::Lookup* found);
  // Pins the file of the slot.
  void AddFile(uint32_t slot);
  Status CopyChunk();
  // Marks the values of the chunk that stay.
  void MarkKept();
  void MarkKept(size_t begin, size_t end);
  Status ReadChunk();
  // A read of values that are neighbors in a file.
  struct FileRead {
    std::vector<size_t> entries;  // indexes in entries_, by address
    Status status;
    size_t bytes_read = 0;
  };
  // Finds the reads of all values to copy, and a place for each value in
  // records_.
  std::vector<FileRead> FindReads();
  // Opens the file if it is not open.
  Status OpenFileOf(const FileRead& read);
  // Reads the values into records_. Thread-safe.
  void Execute(FileRead* read);
  // Returns a buffer of at least this many bytes. Thread-safe.
  std::unique_ptr<char[]> TakeBuffer(size_t size);
  Status WriteChunk();
  // Unpins the files from which nothing was copied.
  void UnpinUnused();
  Status Unreadable(const File& file, uint64_t offset, const Status& s);

  const Context context_;
  const std::unique_ptr<BlobCopyWriters> writers_;
  std::unordered_map<uint32_t, File> files_;  // by slot
  // The chunk.
  std::vector<Entry> entries_;
  std::string keys_;
  uint64_t chunk_bytes_ = 0;
  std::unique_ptr<char[]> records_;
  size_t records_capacity_ = 0;
  // Buffers of read_size bytes that no read uses.
  std::mutex buffers_mutex_;
  std::vector<std::unique_ptr<char[]>> buffers_;

  uint64_t entries_seen_ = 0;
  Stats stats_;
  bool reached_limit_ = false;
  std::set<uint64_t> failed_files_;
  uint64_t unreadable_file_ = 0;
  Status copy_status_;  // not OK if a chunk could not be copied
  bool has_unreadable_keys_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
