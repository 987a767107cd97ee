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

// Entries of an address map that a committed entry of their key hides, and that
// a reader still needs. The list has their key and the sequence number of the
// hiding entry, not their names, as a compaction may have given a value another
// name meanwhile.
//
//   Hide() when a flush is committed -> Apply() when readers have gone
//
// Invariant: an entry of the map that was older than a hidden entry when Hide()
// was called for that entry is either gone, or one of the list's numbers of its
// key is greater than its own. So none stays in the map for longer than its
// readers live.
//
// Memory: 32 bytes for each entry of the map that waits, and before the list is
// sorted at most as much again; charged.
//
// Thread-safe.
class BlockedRemovals {
 public:
  // charge: may be nullptr; outlives this, as the map does.
  BlockedRemovals(AddressMap* map, MapMemoryCharge* charge)
      : map_(map), charge_(charge) {}
  ~BlockedRemovals();
  BlockedRemovals(const BlockedRemovals&) = delete;
  BlockedRemovals& operator=(const BlockedRemovals&) = delete;

  // An entry of the key at seq hides what is older: takes out of the map what
  // no reader needs, and lists the key if something is left. Returns how many
  // entries were taken out.
  // readers: the sequence numbers of all readers, ascending, and the newest one
  // that a new reader may have. It is empty if there are no readers and there
  // will be none.
  // REQUIRES: a committed non-merge entry of the key at seq.
  size_t Hide(const MapKeyHash& key, SequenceNumber seq,
              const std::vector<SequenceNumber>& readers);

  // Takes out the entries that no reader needs, for at most max_keys keys.
  // Returns how many entries it took out.
  // earliest_reader: no reader is, or will be, at a smaller sequence number.
  size_t Apply(SequenceNumber earliest_reader, size_t max_keys);

  // The smallest sequence number that Apply() has something to do with;
  // kMaxSequenceNumber if the list is empty.
  SequenceNumber BlockedUntil() const {
    return blocked_until_.load(std::memory_order_relaxed);
  }
  uint64_t Count() const;
  size_t MemoryUsage() const { return memory_.load(std::memory_order_relaxed); }

 private:
  struct Item {
    MapKeyHash key;
    SequenceNumber seq;
    // The sequence number of the newest entry of the key that was left.
    SequenceNumber left;
    // The order of a min-heap by sequence number.
    bool operator<(const Item& other) const { return seq > other.seq; }
  };

  // REQUIRES of the following: mutex_ held.
  // Drops items whose entries others cover.
  void Prune();
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
