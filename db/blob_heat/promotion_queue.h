//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "db/address_map/map_name.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// The values that wait to be copied to the hot path, because they are read
// often.
//
// The queue is *due* when a job should take its values: when they are
// batch_bytes, or when reads have asked again for values that wait, on average
// kRepeatsPerValue times for each, and kMinRepeats times in all. The latter
// stands for "after a while", without a clock.
//
// Values that a job could not copy, and would not be able to copy for a while,
// are *refused*: the queue does not take them until kMinPause reads have asked
// for such values, and twice as many each time. Otherwise jobs that copy
// nothing would follow each other as long as the values are read.
//
// Invariants:
// 1. A key is in the queue at most once, with the name that was pushed last.
// 2. The queue has at most kMaxCandidates values, and at most kMaxBatches *
//    batch_bytes bytes of records, or less than batch_bytes beside the largest
//    one: a value of any size is taken as long as no batch waits. Others are
//    dropped: the next reads push them again.
// 3. Push() returns true once between two calls of Take(), Clear(),
//    ForgetDue() or AskAgain().
// 4. At most kMaxCandidates values are refused.
//
// Thread-safe. A reader never waits: if another thread uses the queue, the
// value is dropped.
class PromotionQueue {
 public:
  struct Candidate {
    std::string key;  // user key
    MapName name;
    uint64_t size = 0;  // bytes, approximate size of the record
  };

  static constexpr size_t kMaxCandidates = size_t{64} << 10;
  static constexpr uint64_t kMaxBatches = 4;
  static constexpr uint64_t kMinRepeats = 64;
  static constexpr uint64_t kRepeatsPerValue = 8;
  static constexpr uint64_t kMinPause = 1024;
  static constexpr uint64_t kMaxPause = uint64_t{1} << 20;

  PromotionQueue() = default;
  PromotionQueue(const PromotionQueue&) = delete;
  PromotionQueue& operator=(const PromotionQueue&) = delete;

  void SetBatch(uint64_t bytes) {
    batch_bytes_.store(bytes, std::memory_order_relaxed);
  }

  // Adds a value. Returns true if the queue is due from now on.
  bool Push(const Slice& key, const MapName& name, uint64_t size);

  // Cheap.
  bool IsDue() const { return is_due_.load(std::memory_order_acquire); }
  // Has a later Push() return true again. To be called when no job takes the
  // values for now.
  void ForgetDue();
  // Has Push() return true again after kMinPause calls, if the queue is still
  // due then. To be called when there is no job for a while that could take the
  // values.
  void AskAgain() { ask_again_.store(kMinPause, std::memory_order_relaxed); }
  // Removes and returns all values, in no order. The queue is not due then.
  std::vector<Candidate> Take();
  void Clear() { Take(); }

  // To be called at the end of a job that has taken the values.
  // keys: those of the values that the job has refused.
  void Refuse(const std::vector<MapKeyHash>& keys);
  // Takes all values again.
  void ForgetRefused();

  size_t Count() const;
  // Returns the summed size of the records in bytes.
  uint64_t Bytes() const;

 private:
  // REQUIRES: the mutex is held, for both.
  bool MustBeDue() const;
  // Returns true if a value with this part of its key's hash is refused now.
  bool IsRefused(uint64_t hash);

  std::atomic<uint64_t> batch_bytes_{0};
  std::atomic<bool> is_due_{false};
  // Calls of Push() until one returns true, though the queue is due already.
  // None if it is not positive.
  std::atomic<int64_t> ask_again_{0};
  // No value fits any more. Readers look at it before they take the mutex.
  std::atomic<bool> is_full_{false};

  mutable std::mutex mutex_;
  // Protected by the mutex.
  std::vector<Candidate> candidates_;
  // From a part of a key's hash to an index in candidates_. If two keys have
  // the same part, the last one stays.
  std::unordered_map<uint64_t, size_t> by_hash_;
  uint64_t bytes_ = 0;
  // Pushes of values that waited already, since Take() or ForgetDue().
  uint64_t repeats_ = 0;
  // Parts of the hashes of the keys whose values are refused.
  std::unordered_set<uint64_t> refused_;
  // Pushes of them that were ignored, and the number that ends the refusal.
  uint64_t ignored_ = 0;
  uint64_t pause_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
