//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "db/blob_gc/blob_copy_job.h"
#include "db/blob_gc/blob_copy_writers.h"
#include "db/blob_gc/blob_gc_storage.h"
#include "db/blob_gc/blob_live_records.h"
#include "db/blob_heat/blob_heat_picker.h"
#include "db/blob_heat/hot_mark.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class BlobHeat;
class Decompressor;
class RandomAccessFileReader;

// Copies the live values of a hot blob file to new files, in key order: values
// with many reads to a hot file again, the others to their home path.
//
// How many reads are enough is determined before, from the record index alone
// (BlobHeatPicker::LeastKept()). If nearly all values would stay, nothing
// is copied. Values that stay hot may take
// more space than in the file, as the compression of the column family has
// changed: beyond the size of the file, they go to their home path, too.
//
// Memory: that of BlobLiveRecords, and of two BlobCopyWriters.
class BlobDemotionJob : public BlobCopyJob {
 public:
  // Nothing is copied if less than this part of the records' bytes would leave
  // the hot path. So each copy makes progress, and copies of copies end.
  static constexpr uint64_t kMinGainedPart = 8;

  struct Context : public BlobCopyContext {
    uint64_t file_size = 0;  // bytes
    uint32_t path_id = 0;
    HotMark hot;
    // All values go to the home path.
    bool is_drain = false;
  };

  // file: is hot.
  // REQUIRES: a BlobGcStorage has pinned the file; the objects that context
  // refers to outlive this object.
  BlobDemotionJob(const Context& context, const BlobGcStorage::File& file);
  ~BlobDemotionJob() override;

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
  bool reached_limit() const override { return false; }
  const std::set<uint64_t>& failed_files() const override {
    return failed_files_;
  }
  uint64_t unreadable_file() const override { return unreadable_file_; }

  // The smallest estimate with which a value has stayed hot.
  uint32_t least_kept() const { return least_kept_; }

 private:
  Status OpenFile();
  // Decides which values stay hot. Sets *is_worth_it to false if too few do
  // not.
  Status ChooseKept(bool* is_worth_it);
  Status CopyAll();
  // Returns how many bytes the key and the value of the next record that stays
  // hot may have.
  uint64_t RoomLeft(const BlobCopyWriter& hot) const;
  // Copies the current record.
  Status Copy(const BlobLiveRecords& records);
  // Returns s, an error of the file.
  Status Unreadable(const Status& s);

  const Context context_;
  const BlobGcStorage::File file_;
  const BlobHeat* const heat_;
  const uint32_t home_path_id_;
  BlobCopyWriters writers_;
  BlobLiveRecords::Options read_options_;
  std::unique_ptr<RandomAccessFileReader> reader_;
  BlobFileLayoutV2 layout_;
  std::shared_ptr<Decompressor> decompressor_;
  uint32_t least_kept_ = 0;
  uint64_t num_kept_ = 0;
  Stats stats_;
  std::set<uint64_t> failed_files_;
  uint64_t unreadable_file_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
