//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "cache/cache_helpers.h"
#include "db/address_map/address_map.h"
#include "db/address_map/map_name.h"
#include "db/blob/blob_file_reader.h"
#include "db/blob_gc/blob_copy_job.h"
#include "db/blob_gc/blob_copy_writers.h"
#include "db/blob_heat/promotion_queue.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class BlobGcStorage;
class BlobHeat;
class Decompressor;

// Copies values that are read often to new blob files on the hot path, in key
// order. There is a file for each path from which values come, as that is their
// home.
//
// A value is left where it is if it was overwritten, deleted or moved to the
// hot path meanwhile, if it is in a hot file of another path, if it is not read
// often enough any more, or if another job has just copied it and has not
// committed that.
//
// The old files stay as they are: what was copied becomes garbage in them. They
// may be collected at the same time, as an address is changed only if it is
// still the one that was copied. The files from which values are copied are
// pinned until the end of the job: other jobs cannot drop them meanwhile.
//
// Memory: the values of kReads reads, and that of BlobCopyWriter.
class BlobPromotionJob : public BlobCopyJob {
 public:
  // Values that are read before they are written.
  static constexpr size_t kReads = 32;
  // Reads at the same time.
  static constexpr size_t kMaxReads = 4;

  struct Context : public BlobCopyContext {
    std::vector<PromotionQueue::Candidate> candidates;
    // Pins the files.
    BlobGcStorage* storage = nullptr;
    // Numbers of the blob files whose values stay where they are.
    std::set<uint64_t> excluded;
    // The hot path, and how many bytes the new files may have.
    uint32_t path_id = 0;
    uint64_t room = 0;
  };

  // REQUIRES: the objects that context refers to outlive this object.
  explicit BlobPromotionJob(Context context);
  ~BlobPromotionJob() override;

  Status Run() override;
  const std::vector<BlobFileAddition>& additions() const override {
    return writers_.additions();
  }
  std::vector<MappedBlobFile> TakeOutputs() override {
    return writers_.TakeOutputs();
  }
  std::vector<MapAddress> TakeSources() override {
    return writers_.TakeSources();
  }
  std::vector<uint32_t> TakeKeySizes() override {
    return writers_.TakeKeySizes();
  }
  std::vector<BlobGcPicker::KeyRange> TakeKeyRanges() override {
    return writers_.TakeKeyRanges();
  }
  const Stats& stats() const override { return stats_; }
  // True if the values did not all fit into the room.
  bool reached_limit() const override { return reached_limit_; }
  const std::set<uint64_t>& failed_files() const override {
    return failed_files_;
  }
  uint64_t unreadable_file() const override { return unreadable_file_; }

  // The keys of the values that could not be copied, and cannot be for a while.
  const std::vector<MapKeyHash>& refused() const { return refused_; }

 private:
  // A file whose slot is pinned for the job if it is used.
  struct File {
    uint64_t number = 0;
    uint32_t path_id = 0;
    bool is_used = false;                     // false if its values stay
    bool is_avoided = false;                  // one of Context::excluded
    CacheHandleGuard<BlobFileReader> reader;  // while the file is read
    CompressionType compression = kNoCompression;
    std::shared_ptr<Decompressor> decompressor;
  };
  struct Entry {
    const PromotionQueue::Candidate* candidate = nullptr;
    File* file = nullptr;
    MapAddress from;
    bool is_direct = false;
    std::unique_ptr<char[]> buffer;
    Slice record;  // refers to the buffer, or to memory of the file
    Status read;
  };

  // Finds the next values to copy, up to kReads.
  std::vector<Entry> FindNext();
  // Finds the value, and pins its file. Returns false if the value stays.
  bool Find(const MapName& name, AddressMap::Lookup* found);
  void AddFile(uint32_t slot);
  // Returns how many bytes the key and the value of the next record may have.
  uint64_t RoomLeft() const;
  Status Read(std::vector<Entry>* entries);
  Status OpenFile(File* file, const Entry& entry);
  Status Write(const std::vector<Entry>& entries);
  Status Copy(const Entry& entry);
  // Returns s, an error of the value, with the file and the offset.
  Status Unreadable(const Entry& entry, const Status& s);

  Context context_;
  BlobHeat* const heat_;
  BlobCopyWriters writers_;
  std::unordered_map<uint32_t, File> files_;  // by slot
  size_t next_ = 0;                           // index of a candidate
  Stats stats_;
  bool reached_limit_ = false;
  std::vector<MapKeyHash> refused_;
  std::set<uint64_t> failed_files_;
  uint64_t unreadable_file_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
