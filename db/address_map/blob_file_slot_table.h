// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "db/blob_heat/hot_mark.h"
#include "rocksdb/compression_type.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The table of the blob files that an address map points into. Each file has a
// *slot*, a small number that stands for the file in every map entry, so that
// pinning the file of an entry is one array access.
//
// States of a slot:
//   building -> pending or copies -> live -> dead -> handed over -> free
//       \________\-> abandoned -> free
//
//   building     A job is writing the file. The map does not name it.
//   pending      The map may name the file. No committed MANIFEST edit does.
//   copies       Like pending, but the file's entries were committed earlier,
//                in files that still exist (garbage collection).
//   live         The current Version names the file.
//   dead         The file has left the current Version.
//   handed over  The deletion of the file was requested. It has no readers.
//   abandoned    The edit of the file failed, and its entries were removed.
//
// Invariants:
// 1. LiveCount() and LiveBytes() equal the number and the size of the map
//    entries in the slot.
// 2. A slot becomes free only when it has no live entry, no validated pin and
//    no job pin. So the slot of an entry always stands for the file that the
//    entry was made for.
// 3. The memory of a slot is freed only with the table. A reader that holds an
//    outdated slot number may safely access the slot's pin counter.
//
// Why a validated pin is safe: A reader adds the pin with a read-modify-write
// and *then* checks that the entry is unchanged (AddressMap). The collector
// sees the live count at zero (so the removal of the last entry happened
// before) and *then* reads the pins, also with a read-modify-write. Both
// operations act on one counter. Either the collector's operation comes second
// and sees the pin, or the reader's comes second, synchronizes with the
// collector's, and the reader's check sees the removal.
//
// Thread-safe. Counters and pins are lock-free; the states have a mutex.
class BlobFileSlotTable {
 public:
  enum class State : uint8_t {
    kFree = 0,
    kBuilding,
    kPending,
    kCopies,
    kLive,
    kDead,
    kHandedOver,
    kAbandoned,
  };

  struct Info {
    uint32_t slot = 0;
    uint64_t number = 0;
    uint64_t size = 0;  // bytes
    uint32_t path_id = 0;
    HotMark hot;
    CompressionType compression = kNoCompression;
    State state = State::kFree;
    uint64_t live_count = 0;
    uint64_t live_bytes = 0;
    uint64_t pins = 0;
    uint64_t job_pins = 0;
  };

  // Where a file lies, and where its values belong.
  struct Place {
    uint32_t path_id = 0;
    HotMark hot;
  };

  // Means "the record is lost" in an address. Never the slot of a file.
  static constexpr uint32_t kLostSlot = 0;
  static constexpr uint32_t kMaxSlots = uint32_t{1} << 24;

  BlobFileSlotTable();
  ~BlobFileSlotTable();
  BlobFileSlotTable(const BlobFileSlotTable&) = delete;
  BlobFileSlotTable& operator=(const BlobFileSlotTable&) = delete;

  // Assigns a slot to the file. Returns kLostSlot if all slots are taken.
  // size: bytes.
  // REQUIRES: number is not in the table; state is building or live (live is
  // for files that the MANIFEST names when the database is opened).
  uint32_t Add(uint64_t number, uint32_t path_id, CompressionType compression,
               State state = State::kBuilding, uint64_t size = 0);

  // Marks the slot's file as having hot values, or not. A file is not hot after
  // Add().
  // REQUIRES: the file is building, or no other thread uses the table yet.
  void SetHot(uint32_t slot, HotMark hot);

  // Returns the file's slot, or kLostSlot if the file is not in the table.
  uint32_t Find(uint64_t number) const;
  // Returns false if the slot is free or out of range.
  bool GetInfo(uint32_t slot, Info* info) const;
  std::vector<Info> GetAll() const;

  // State transitions. Each returns false and does nothing if the slot is in
  // another state than the ones given. size: bytes.
  bool Publish(uint32_t slot, uint64_t size);        // building -> pending
  bool PublishCopies(uint32_t slot, uint64_t size);  // building -> copies
  bool Commit(uint32_t slot);                        // pending, copies -> live
  bool Drop(uint32_t slot);                          // live -> dead
  bool Abandon(uint32_t slot);  // building, pending, copies -> abandoned

  // Returns true if the file is in the table and is dead or handed over:
  // Versions that still contain it must not keep it on disk.
  bool IsReleased(uint64_t number) const;
  // Returns true if the entries of the slot's file are not committed, that is
  // if the slot is building, pending or abandoned. One load.
  bool IsPending(uint32_t slot) const;

  // Returns the live files that have no entry and no job pin, which the next
  // edit may drop. Readers may still have pinned them.
  std::vector<Info> GetDroppable() const;
  // Returns true if there may be a droppable file. False positives occur, false
  // negatives do not.
  bool HasDroppable() const {
    return maybe_droppable_.load(std::memory_order_acquire);
  }

  // Sets the function to be called after an event that may have made a file
  // droppable, or a dead one collectable.
  // on_droppable: called by any thread, with locks of the table and the map
  // held; must not take any of these locks.
  // REQUIRES: no other thread uses the table yet.
  void SetOnDroppable(std::function<void()> on_droppable) {
    on_droppable_ = std::move(on_droppable);
  }

  // Returns true if there is a file that was dropped and not collected. One
  // load.
  bool HasDead() const { return num_dead_.load(std::memory_order_relaxed) > 0; }
  // Returns true if a reader's last pin on a dead file was released since
  // CollectDead(), which may have found the file pinned. Two loads.
  bool HasReleasedDead() const {
    return HasDead() && released_dead_.load(std::memory_order_acquire);
  }
  // Changes dead files that have no map entries and no pins to handed over and
  // returns them. The caller must delete them.
  std::vector<Info> CollectDead();
  // Frees the slot of a handed over or abandoned file. Returns false and does
  // nothing if the slot is in another state, if entries or job pins remain, or,
  // for an abandoned file only, if a reader's pin is seen.
  bool Free(uint32_t slot);

  // Counts a new entry of the map in the slot.
  // bytes: size of the entry's record.
  // REQUIRES: the mutex of the entry's shard is held.
  void AddLive(uint32_t slot, uint64_t bytes);
  // Counts the removal of an entry.
  // REQUIRES: the mutex of the entry's shard is held; the entry is already
  // invisible to new readers, as the version counter of its shard was changed.
  void SubLive(uint32_t slot, uint64_t bytes);
  uint64_t LiveCount(uint32_t slot) const;
  uint64_t LiveBytes(uint32_t slot) const;
  // Finds the live entries of a file, whose slot may not become free meanwhile.
  // Returns false if the file is not in the table.
  bool FindLive(uint64_t number, uint64_t* count, uint64_t* bytes) const;
  // Returns the number of the slot's file, 0 for kLostSlot.
  // REQUIRES: an entry names the slot.
  uint64_t Number(uint32_t slot) const;
  // Returns the compression type of the slot's file.
  // REQUIRES: the slot is pinned.
  CompressionType Compression(uint32_t slot) const;
  // Returns the place of the slot's file. Two loads.
  // REQUIRES: the slot is pinned.
  Place PlaceOf(uint32_t slot) const;

  // Pins the slot's file for a reader. Returns false, without a pin, only if
  // the slot never existed (a torn read of the map). The pin protects the file
  // only if the caller then finds the entry that named the slot unchanged.
  bool Pin(uint32_t slot);
  void Unpin(uint32_t slot);
  // Pins the slot's file for a job, which keeps it from being dropped and
  // collected. Returns false if the slot is free, handed over or abandoned.
  bool PinForJob(uint32_t slot);
  // Pins the file in the same way if it is in the table. Returns its slot, or
  // kLostSlot if the file was not pinned.
  uint32_t PinFileForJob(uint64_t number);
  void UnpinForJob(uint32_t slot);

 private:
  // Chunk c has 2^(c + kFirstChunkBits) slots.
  static constexpr uint32_t kFirstChunkBits = 4;
  static constexpr uint32_t kNumChunks = 24 - kFirstChunkBits + 1;

  static uint32_t ChunkSlots(uint32_t chunk) {
    return uint32_t{1} << (chunk + kFirstChunkBits);
  }

  struct alignas(64) Slot {
    // Read and written without the mutex.
    std::atomic<uint64_t> pins{0};
    std::atomic<uint64_t> live_count{0};
    std::atomic<uint64_t> live_bytes{0};
    std::atomic<uint64_t> number{0};
    std::atomic<State> state{State::kFree};  // written under the mutex
    // The code of the HotMark; written like path_id before the file's entries.
    std::atomic<uint8_t> hot{0};
    std::atomic<uint32_t> path_id{0};
    // Protected by the mutex.
    CompressionType compression = kNoCompression;
    uint64_t size = 0;  // bytes
    uint64_t job_pins = 0;
  };

  Slot* Get(uint32_t slot) const;
  void Fill(uint32_t slot, const Slot& s, Info* info) const;
  bool Change(uint32_t slot, State from, State to);
  bool IsDroppable(const Slot& s) const;
  // REQUIRES: mutex_ held.
  bool PinForJobLocked(uint32_t slot);
  void SetMaybeDroppable();

  mutable std::mutex mutex_;
  std::atomic<Slot*> chunks_[kNumChunks] = {};  // published once, in order
  uint32_t num_slots_ = 1;
  std::vector<uint32_t> free_slots_;
  std::unordered_map<uint64_t, uint32_t> by_number_;
  std::atomic<uint32_t> num_dead_{0};  // changed under the mutex
  // Set when a live count falls to zero, a file becomes live or a file loses
  // its last job pin. Cleared by GetDroppable() if it finds no droppable file.
  mutable std::atomic<bool> maybe_droppable_{false};
  // Set when a dead file loses its last reader's pin. Cleared by CollectDead().
  std::atomic<bool> released_dead_{false};
  std::function<void()> on_droppable_;
};

// Owns one reader's pin. Not thread-safe, but may be moved to another thread.
class MapFilePin {
 public:
  MapFilePin() = default;
  // Takes over a pin that the caller owns.
  MapFilePin(BlobFileSlotTable* table, uint32_t slot)
      : table_(table), slot_(slot) {}
  MapFilePin(MapFilePin&& other) noexcept
      : table_(other.table_), slot_(other.slot_) {
    other.table_ = nullptr;
  }
  MapFilePin& operator=(MapFilePin&& other) noexcept {
    if (this != &other) {
      Reset();
      table_ = other.table_;
      slot_ = other.slot_;
      other.table_ = nullptr;
    }
    return *this;
  }
  MapFilePin(const MapFilePin&) = delete;
  MapFilePin& operator=(const MapFilePin&) = delete;
  ~MapFilePin() { Reset(); }

  void Reset() {
    if (table_ != nullptr) {
      table_->Unpin(slot_);
      table_ = nullptr;
    }
  }
  bool pinned() const { return table_ != nullptr; }
  uint32_t slot() const { return slot_; }

 private:
  BlobFileSlotTable* table_ = nullptr;
  uint32_t slot_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
