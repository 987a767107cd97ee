//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "db/scan_sort/scan_debts.h"
#include "db/scan_sort/scan_places.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

class Statistics;

// Counts the places that one scan visits for its values, and charges ScanDebts
// with those that sorted values would not need: of sorted values, one place
// gives kSortedBytes. Charges Level0Debt with the reads of seeks.
//
// Not thread-safe.
class ScanMeter {
 public:
  static constexpr uint64_t kSortedBytes = uint64_t{256} << 10;

  // What a seek for a key reads: a block of each file of level 0, and one of
  // each other level that has files.
  struct Runs {
    uint64_t level0_files = 0;
    uint64_t levels = 0;  // apart from level 0
  };

  // runs: of the files that the scan reads.
  // statistics: may be nullptr.
  // REQUIRES: debts and statistics outlive this object.
  ScanMeter(ScanDebts* debts, const Runs& runs, Statistics* statistics)
      : debts_(debts),
        runs_(runs),
        statistics_(statistics),
        is_on_(debts->budget() > 0) {}
  ~ScanMeter() { EndScan(); }
  ScanMeter(const ScanMeter&) = delete;
  ScanMeter& operator=(const ScanMeter&) = delete;

  // Returns false if nothing is counted in this scan, as the budget was 0 when
  // it began.
  bool is_on() const { return is_on_; }

  // Adds a seek for a key.
  // reads: number of reads of files by the seek. One read for each other level
  // is expected; the others are charged to level 0, one for each of its files
  // at most, as index and filter blocks may have been read, too.
  void OnSeek(uint64_t reads) {
    if (is_on_ && reads > runs_.levels && runs_.level0_files > 0) {
      debts_->level0()->Charge(
          std::min(runs_.level0_files, reads - runs_.levels));
    }
  }
  // Adds the next value that the scan has read.
  // offset, size: bytes, of the value in its file.
  void OnValue(const Slice& user_key, uint64_t file_number, uint64_t offset,
               uint64_t size);
  // Ends the scan. The next value is the first one of another scan.
  void EndScan();

 private:
  // Number of values after which the range of the current key is charged.
  static constexpr size_t kBatch = 64;

  void Charge();

  ScanDebts* const debts_;
  const Runs runs_;
  Statistics* const statistics_;
  bool is_on_;
  ScanDebts::Reader reader_;
  ScanPlaces where_;
  size_t values_ = 0;
  uint64_t places_ = 0;
  uint64_t bytes_ = 0;
  uint64_t charged_ = 0;   // places
  std::string batch_key_;  // first key of the batch
};

}  // namespace ROCKSDB_NAMESPACE
