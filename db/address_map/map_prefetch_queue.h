//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/blob_v2/blob_read_group.h"
#include "db/blob_v2/read_ahead_budget.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "table/internal_iterator.h"
#include "util/strata/chunked_queue.h"
#include "util/strata/shared_bytes.h"

namespace ROCKSDB_NAMESPACE {

class AddressMapStore;
class ColumnFamilyData;
class MapValueIterator;
class PinnableSlice;
class PinnedIteratorsManager;
class ReadAheadGauge;
struct ReadOptions;

// Holds entries of a MapValueIterator that is moved ahead of a scan, in the
// order in which the scan will reach them, and starts reads of their values.
// MapPrefetchIterator decides which values are read.
//
// A value is *read ahead* if its read was started. It is handed out once, and
// is read if it is asked for again. A forward scan asks for the value of the
// front. A backward scan has left the entry by then, and asks for the value of
// the newest version that it has left: the last popped entry that has a read,
// or that the iterator kept, is the *left* entry.
//
// Not thread-safe.
class MapPrefetchQueue {
 public:
  struct Slot {
    Slice key;
    Slice value;
    // This reference keeps the memory of the key and the value.
    SharedBytes::Ref bytes;
    // Append() sets this hash of the user key if the slot IsBound().
    MapKeyHash hash;
    uint64_t write_unix_time = 0;
    IterBoundCheck bound_check = IterBoundCheck::kUnknown;
    // Found if the iterator kept the entry and no read was started: DBIter may
    // ask for a value that the guess left out.
    AddressMap::Lookup kept;
    // Set if the value is read ahead.
    std::shared_ptr<BlobReadGroup> group;
    size_t item = 0;
    uint64_t value_size = 0;  // bytes, stored size of the value
    bool taken = false;
    bool was_cached = false;     // in the blob cache
    bool was_submitted = false;  // the read did not wait for Fetch()
  };

  // gauge: decides whether reads are handed to other threads; nullptr if all
  // are.
  // REQUIRES: all arguments outlive this object.
  MapPrefetchQueue(ColumnFamilyData* cfd, const ReadOptions& read_options,
                   MapValueIterator* values, ReadAheadGauge* gauge);
  ~MapPrefetchQueue() { Clear(); }
  MapPrefetchQueue(const MapPrefetchQueue&) = delete;
  MapPrefetchQueue& operator=(const MapPrefetchQueue&) = delete;

  // The entries whose bytes were returned stay in memory while pinning is
  // enabled, as those of blocks do: a merge operator may return the base value,
  // and DBIter moves on before the user reads it. With ReadOptions::pin_data,
  // that is as long as the user's iterator exists.
  void SetPinnedItersMgr(PinnedIteratorsManager* pinned_iters_mgr) {
    pinned_iters_mgr_ = pinned_iters_mgr;
  }
  bool PinningEnabled() const;

  bool empty() const { return slots_.empty(); }
  size_t size() const { return slots_.size(); }
  // REQUIRES: !empty().
  const Slot& front() const { return slots_.front(); }
  // Returns the slot that was appended `distance` calls before the last one.
  // REQUIRES: distance < size().
  Slot* FromBack(size_t distance) {
    return &slots_[slots_.size() - 1 - distance];
  }

  // Number and bytes of the values of the queue that are read ahead.
  size_t reads() const { return reads_; }
  uint64_t value_bytes() const { return value_bytes_; }
  // Returns true if there is a left entry.
  bool HasLeft() const { return left_.has_value(); }
  // Returns true if the scan has taken the value of the entry at which it is.
  bool HasTaken() const {
    return (left_.has_value() && left_->taken) ||
           (!slots_.empty() && slots_.front().taken);
  }
  // Returns the number of bytes that may be read ahead now.
  uint64_t Share(uint64_t most) const {
    return budget_->Share(in_budget_, most);
  }

  // Copies the current entry of the iterator to the end of the queue. The slot
  // stays where it is until it is popped. The memory in which AddRead() will
  // look the value up is prefetched.
  // REQUIRES: the iterator is valid and has prepared the value.
  Slot* Append();
  // Returns true if the slot has the bound index of a mapped value.
  static bool IsBound(const Slot& slot);
  // Adds the slot's value to those that StartReads() reads. Returns false if
  // there is none to be read.
  // REQUIRES: the slot is in the queue, and was not passed to this function
  // before.
  bool AddRead(Slot* slot);
  // Starts the reads of the values that were added. Returns false if there are
  // none. If the scan is about to ask for the first of them, and their records
  // are small, the calling thread reads all of them at once, which takes hardly
  // longer than to wait for another thread that reads the first.
  bool StartReads();

  // Removes the front. Returns true if the scan has left an entry whose value
  // it has taken.
  // keeps_left: the front becomes the left entry if its value may be asked for.
  // REQUIRES: !empty(); no value was added since the last StartReads().
  bool PopFront(bool keeps_left);
  void Clear();

  // Reads the value of the front or of the left entry, and waits for the read
  // if the value is read ahead. Returns false if the queue does not know the
  // value.
  bool Fetch(const Slice& user_key, const Slice& value, PinnableSlice* result,
             Status* s);

 private:
  // Maximum size in bytes of the groups that the scanning thread reads at once.
  static constexpr uint64_t kMaxAtOnce = 256 << 10;

  // A user key and a bound index are the whole name of a value.
  static bool Has(const Slot& slot, const Slice& user_key, const Slice& value);
  // Returns true if the slot's value was read ahead and is not needed.
  static bool IsWasted(const Slot& slot) {
    return slot.was_submitted && !slot.taken;
  }
  // Returns true if the scan is about to ask for the first value that was
  // added.
  bool NeedsFirstRead() const;
  // Starts the reads that are worth it.
  void Submit(const std::vector<std::shared_ptr<BlobReadGroup>>& groups);
  // Waits for the read of the slot's value, or does it.
  void Read(const Slot& slot);
  Status FetchSlot(Slot* slot, const Slice& user_key, const Slice& value,
                   PinnableSlice* result);
  void PinFrontBytes();
  // Ends the slot's part in its group. Returns true if its value was taken.
  bool LetGo(const Slot& slot);
  bool LeaveLeft();

  MapValueIterator* const values_;
  ColumnFamilyData* const cfd_;
  const AddressMapStore* const blobs_;
  const ReadOptions& read_options_;
  ReadAheadGauge* const gauge_;

  PinnedIteratorsManager* pinned_iters_mgr_ = nullptr;
  ReadAheadBudget* const budget_ = ReadAheadBudget::OfProcess();
  ReadAheadBudget::Scan in_budget_;
  SharedBytes bytes_;
  ChunkedQueue<Slot> slots_;
  std::optional<Slot> left_;
  size_t reads_ = 0;
  uint64_t value_bytes_ = 0;
  // What AddRead() has added.
  std::vector<BlobReadGroup::Item> new_items_;
  // These references keep the names of the records of new_items_.
  std::vector<SharedBytes::Ref> new_names_;
  std::vector<Slot*> new_slots_;
};

}  // namespace ROCKSDB_NAMESPACE
