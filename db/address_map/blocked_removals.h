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
// hides, but that a reader still needs. The list stores the key and the
// sequence number of the hiding entry rather than the names of the hidden
// entries, because a compaction may give a value another name meanwhile.
//
//   Hide() when a flush is committed -> Apply() when readers have ended
//
// Invariant: If an entry of the map was older than a hiding entry when Hide()
// was called for the latter, then either the entry has left the map, or the
// list has its key with a sequence number greater than the entry's. So no entry
// stays in the map for longer than its readers exist.
//
// Memory: 32 bytes for each waiting entry of the map, and at most as much again
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
  // readers: the sequence numbers of all readers, ascending, followed by the
  // newest one that a new reader may have. Empty if there are no readers and
  // there will be none.
  // REQUIRES: there is a committed non-merge entry of the key at seq.
  size_t Hide(const MapKeyHash& key, SequenceNumber seq,
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
    // The sequence number of the newest hidden entry that remained in the map,
    // plus 1.
    SequenceNumber left_below;
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
