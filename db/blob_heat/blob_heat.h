//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "db/address_map/blob_file_slot_table.h"
#include "db/address_map/map_name.h"
#include "db/blob_heat/frequency_sketch.h"
#include "db/blob_heat/promotion_queue.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

class Statistics;

// The hot values of a column family with an address map (blob_hot_bytes): how
// often values are read, which of them wait for a place on the hot path, and
// what the jobs that give and take places have in common.
//
//   a point read -> OnRead() -> FrequencySketch -> PromotionQueue -> on_due
//   on_due -> a job takes the queue, or makes room first (BlobHeatPicker)
//
// Admission: a value on another path is queued when its key was read
// threshold() times lately. While there is room, kMinReads times are enough. A
// job for which there is none demotes the values that are read least, and
// raises the threshold above their reads. So a value never takes the place of
// one with more reads.
//
// Invariants:
// 1. IsOn() is the one question that a read asks while the option is off.
// 2. A sketch that a reader may use is never freed: there is at most one of
//    each size, and a later one of that size is the same.
// 3. The sum of the sizes of the hot blob files of the newest Version is at
// most
//    the budget, except after the budget was reduced, until jobs have made up
//    for it. No edit makes the sum larger than the budget: the job that would
//    write such an edit fails (Reserve()).
//
// Thread-safety: a declaration says "any thread", or the DB mutex is required.
class BlobHeat {
 public:
  // The least number of reads for which a value gets a place.
  static constexpr uint32_t kMinReads = 2;
  // A job takes at least this part of the budget, but at most kMaxBatch bytes.
  static constexpr uint64_t kBatchesOfBudget = 64;
  static constexpr uint64_t kMaxBatch = uint64_t{16} << 20;
  // A larger part of the budget than this is not given to one value.
  static constexpr uint64_t kMinValuesOfBudget = 8;
  // A smaller budget may have no room for a file with one value, and none gets
  // a place.
  static constexpr uint64_t kLeastBudget = 1024;

  // num_paths: the number of the column family's cf_paths.
  BlobHeat(size_t num_paths, Statistics* stats);
  ~BlobHeat();
  BlobHeat(const BlobHeat&) = delete;
  BlobHeat& operator=(const BlobHeat&) = delete;

  // Sets the function to be called when the queue becomes due.
  // on_due: called by reading threads, without a lock of this object.
  // REQUIRES: no other thread uses this object yet.
  void SetOnDue(std::function<void()> on_due) { on_due_ = std::move(on_due); }

  // budget: blob_hot_bytes. path_id: blob_hot_path_id.
  // REQUIRES: DB mutex held.
  void Configure(uint64_t budget, uint32_t path_id);
  // REQUIRES: DB mutex held, for both.
  uint64_t budget() const { return budget_; }
  uint32_t path_id() const { return path_id_.load(std::memory_order_relaxed); }

  // True if reads are counted. Any thread; one load.
  bool IsOn() const {
    return sketch_.load(std::memory_order_acquire) != nullptr;
  }
  // Counts a read of a value from a blob file. Any thread without the DB mutex.
  // place: that of the file. size: bytes, of the record.
  void OnRead(const Slice& user_key, const MapName& name,
              const BlobFileSlotTable::Place& place, uint64_t size);
  // Returns how often the key was read lately; 0 if reads are not counted. Any
  // thread.
  uint32_t Estimate(const MapKeyHash& key) const {
    const FrequencySketch* const sketch =
        sketch_.load(std::memory_order_acquire);
    return sketch == nullptr ? 0 : sketch->Estimate(key);
  }

  // Any thread.
  uint32_t threshold() const {
    return threshold_.load(std::memory_order_relaxed);
  }
  void SetThreshold(uint32_t threshold) {
    threshold_.store(threshold, std::memory_order_relaxed);
  }
  // Returns the largest size, in bytes, of a value that gets a place. Any
  // thread.
  uint64_t max_value() const {
    return max_value_.load(std::memory_order_relaxed);
  }
  PromotionQueue* queue() { return &queue_; }

  // ---- Jobs. REQUIRES: DB mutex held.

  // Set while a job copies values to the hot path, or makes room for them.
  // There is one such job at a time.
  void SetBusy(bool busy) { is_busy_ = busy; }
  bool is_busy() const { return is_busy_; }

  // The number of the last file of whose values a job that was to make room
  // found too few to demote. Files with smaller numbers had their turn, too.
  void SetHand(uint64_t file_number) { hand_ = file_number; }
  uint64_t hand() const { return hand_; }
  // Set when a job of this object was scheduled, and cleared when one that
  // collects garbage was: the two take turns, as there may be one thread.
  void SetHadTurn(bool had_turn) { had_turn_ = had_turn; }
  bool had_turn() const { return had_turn_; }
  // Set after a job that promotes had not enough room, until another one has
  // made some.
  void SetLacksRoom(bool lacks_room) { lacks_room_ = lacks_room; }
  bool lacks_room() const { return lacks_room_; }
  // Called if no hot file has values to demote: the values that wait are given
  // up, and others have to be read often.
  void GiveUpWaiting();

  // Decides whether an edit may add hot files of `added` bytes, and accounts
  // for them until EndReserve(added) if it may. before, after: bytes of the hot
  // files of the newest Version without and with the edit.
  bool Reserve(uint64_t added, uint64_t before, uint64_t after);
  // To be called when the outcome of the edit is known.
  void EndReserve(uint64_t added) { reserved_ -= added; }
  // Bytes of hot files that edits are adding.
  uint64_t reserved() const { return reserved_; }

  // Bytes of all sketches.
  size_t MemoryUsage() const;

 private:
  const size_t num_paths_;
  Statistics* const stats_;
  std::function<void()> on_due_;

  std::atomic<FrequencySketch*> sketch_{nullptr};
  std::atomic<uint32_t> path_id_{0};
  std::atomic<uint32_t> threshold_{kMinReads};
  std::atomic<uint64_t> max_value_{0};  // bytes, of a record
  PromotionQueue queue_;

  // Protected by the DB mutex.
  uint64_t budget_ = 0;
  bool is_busy_ = false;
  uint64_t hand_ = 0;
  bool lacks_room_ = false;
  bool had_turn_ = false;
  uint64_t reserved_ = 0;
  // By size.
  std::array<std::unique_ptr<FrequencySketch>, FrequencySketch::kNumSizes>
      sketches_;
};

}  // namespace ROCKSDB_NAMESPACE
