//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/dbformat.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// The list of the entries of an address map that a committed entry of their key
// hides, but that a reader still needs. For each hiding entry the list stores
// its key, its sequence number, and a limit that the births of all hidden
// entries are below.
//
//   Hide() when a flush is committed -> Apply() when readers have ended
//
// Invariants:
// 1. If an entry of the map was older than a hiding entry when Hide() was
//    called for the latter, then either the entry has left the map, or the list
//    has its key with a sequence number greater than the entry's and a limit of
//    births above the entry's. So no entry stays in the map for longer than its
//    readers exist.
// 2. No entry is removed that was born at or after the flush's
//    MapTransaction::born_before(). Such an entry may be newer than the hiding
//    one although its sequence number is smaller: Apply() may come long after
//    the flush, when compactions have dropped the hiding entry and written a
//    newer value. An entry that a compaction has given another birth is left to
//    compactions.
//
// Memory: 40 bytes for each waiting entry of the map, and at most as much again
// before the list is sorted. The memory is charged.
//
// Thread-safe.
class BlockedRemovals {
 public:
  // charge: may be nullptr.
  // REQUIRES: map and charge outlive this object.
  BlockedRemovals(AddressMap* map, MapMemoryCharge* charge)
      : map_(map), charge_(charge) {}
  ~BlockedRemovals();
  BlockedRemovals(const BlockedRemovals&) = delete;
  BlockedRemovals& operator=(const BlockedRemovals&) = delete;

  // Called when an entry of the key at seq hides the older entries. Removes the
  // hidden entries that no reader needs from the map, and adds the key to the
  // list if others remain. Returns the number of removed entries.
  // born_before: file number; entries that were born at it or later stay.
  // readers: the sequence numbers of all readers, ascending, followed by the
  // newest one that a new reader may have. Empty if there are no readers and
  // there will be none.
  // REQUIRES: there was a committed non-merge entry of the key at seq, and it
  // hid all older entries that were born before `born_before`.
  size_t Hide(const MapKeyHash& key, SequenceNumber seq, uint64_t born_before,
              const std::vector<SequenceNumber>& readers);

  // Removes listed entries that no reader needs from the map, for at most
  // max_keys keys. Returns the number of removed entries.
  // earliest_reader: sequence number; no reader reads or will read at a smaller
  // one.
  size_t Apply(SequenceNumber earliest_reader, size_t max_keys);

  // Returns the smallest earliest_reader for which Apply() has entries to
  // remove, or kMaxSequenceNumber if the list is empty.
  SequenceNumber BlockedUntil() const {
    return blocked_until_.load(std::memory_order_relaxed);
  }
  uint64_t Count() const;
  size_t MemoryUsage() const { return memory_.load(std::memory_order_relaxed); }

 private:
  struct Item {
    MapKeyHash key;
    SequenceNumber seq;
    // The hidden entries that remained in the map.
    AddressMap::LeftEntries left;
    // Order for a min-heap by sequence number.
    bool operator<(const Item& other) const { return seq > other.seq; }
  };

  // Drops items whose entries are covered by other items.
  // REQUIRES: mutex_ held.
  void Prune();
  // REQUIRES: mutex_ held.
  void OnChange();

  static constexpr size_t kMinPruned = size_t{64} << 10;
  static constexpr size_t kChargeStep = size_t{256} << 10;

  AddressMap* const map_;
  MapMemoryCharge* const charge_;
  mutable std::mutex mutex_;
  std::vector<Item> items_;
  size_t prune_at_ = kMinPruned;
  size_t charged_ = 0;
  std::atomic<size_t> memory_{0};
  std::atomic<SequenceNumber> blocked_until_{kMaxSequenceNumber};
};

}  // namespace ROCKSDB_NAMESPACE
