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

#include "rocksdb/compression_type.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The blob files that an address map points into. A file has a *slot*: a
// small number that stands for it in every map entry, so that pinning the
// file of an entry is one array access.
//
// Life of a slot:
//   building -> pending or copies -> live -> dead -> handed over -> free
//       \________\-> abandoned -> free
// building: the job still writes the file; the map does not name it.
// pending: the map may name it, no committed MANIFEST edit does.
// copies: the same, but its entries were committed before, in files that are
// still there (garbage collection).
// live: the current Version names it. dead: it left the current Version.
// handed over: its deletion was requested; nobody reads it any more.
// abandoned: its edit failed and its entries are gone.
//
// Invariants:
// * LiveCount and LiveBytes are exactly the entries of the map in this slot.
// * A slot becomes free only with no live entry, no pin that was validated,
//   and no job pin. So an entry's slot always means the file that the entry
//   was made for.
// * The memory of a slot lives as long as the table: a reader that holds an
//   outdated slot number may touch its pin counter, harmlessly.
//
// Why a validated pin is safe. A reader adds the pin with a read-modify-write
// and *then* checks that the entry is unchanged (AddressMap). The collector
// sees the live count at zero (so the removal of the last entry happened
// before) and *then* reads the pins, also with a read-modify-write. Both act
// on one counter: either the collector's comes second and sees the pin, or
// the reader's comes second, synchronizes with the collector's, and its check
// sees the removal.
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
    uint64_t size = 0;
    uint32_t path_id = 0;
    CompressionType compression = kNoCompression;
    State state = State::kFree;
    uint64_t live_count = 0;
    uint64_t live_bytes = 0;
    uint64_t pins = 0;
    uint64_t job_pins = 0;
  };

  // Stands for "the record is lost" in an address; never a file.
  static constexpr uint32_t kLostSlot = 0;
  static constexpr uint32_t kMaxSlots = uint32_t{1} << 24;

  BlobFileSlotTable();
  ~BlobFileSlotTable();
  BlobFileSlotTable(const BlobFileSlotTable&) = delete;
  BlobFileSlotTable& operator=(const BlobFileSlotTable&) = delete;

  // Gives the file a slot; kLostSlot if all are taken.
  // REQUIRES: number is not in the table; state is building or live (the
  // latter for files that the MANIFEST names when the database is opened).
  uint32_t Add(uint64_t number, uint32_t path_id, CompressionType compression,
               State state = State::kBuilding, uint64_t size = 0);

  // kLostSlot if the file is not in the table.
  uint32_t Find(uint64_t number) const;
  // False if the slot is free or out of range.
  bool GetInfo(uint32_t slot, Info* info) const;
  std::vector<Info> GetAll() const;

  // Transitions. Each returns false, and does nothing, from another state.
  bool Publish(uint32_t slot, uint64_t size);        // building -> pending
  bool PublishCopies(uint32_t slot, uint64_t size);  // building -> copies
  bool Commit(uint32_t slot);                        // pending, copies -> live
  bool Drop(uint32_t slot);                          // live -> dead
  bool Abandon(uint32_t slot);  // building, pending, copies -> abandoned

  // True if the table has the file and it is dead or handed over: Versions
  // that still list it must not keep it on disk.
  bool IsReleased(uint64_t number) const;
  // True if the entries of the slot's file are not committed yet. One load.
  bool IsPending(uint32_t slot) const;

  // Live files without entry and without job pin: the next edit may drop
  // them. Says nothing about pins of readers.
  std::vector<Info> GetDroppable() const;
  // May be true without need, is never false without it.
  bool HasDroppable() const {
    return maybe_droppable_.load(std::memory_order_acquire);
  }

  // on_droppable: called by any thread, under locks of the table and the map,
  // after an event that may have made a file droppable. It takes none of these
  // locks.
  // REQUIRES: no other thread uses the table yet.
  void SetOnDroppable(std::function<void()> on_droppable) {
    on_droppable_ = std::move(on_droppable);
  }

  // Is there a file that was dropped and not collected? One load.
  bool HasDead() const { return num_dead_.load(std::memory_order_relaxed) > 0; }
  // Moves the dead files that nobody names or pins to handed over and
  // returns them: the caller deletes them.
  std::vector<Info> CollectDead();
  // Frees the slot of a handed over or abandoned file. Returns false, and
  // does nothing, in another state, or if entries or job pins remain, or
  // (abandoned only) while a reader's pin is seen.
  bool Free(uint32_t slot);

  // For the address map, under the mutex of the entry's shard.
  void AddLive(uint32_t slot, uint64_t bytes);
  // REQUIRES: the entry is already invisible to new readers: the version
  // counter of its shard was changed.
  void SubLive(uint32_t slot, uint64_t bytes);
  uint64_t LiveCount(uint32_t slot) const;
  uint64_t LiveBytes(uint32_t slot) const;
  // Valid while an entry names the slot; 0 for kLostSlot.
  uint64_t Number(uint32_t slot) const;
  // Valid while the slot is pinned.
  CompressionType Compression(uint32_t slot) const;

  // A pin of a reader. False, without a pin, only if the slot never existed
  // (a torn read of the map). The pin protects the file only if the caller
  // then finds the entry that named the slot unchanged.
  bool Pin(uint32_t slot);
  void Unpin(uint32_t slot);
  // A pin of a job. Keeps the file from being dropped and collected.
  // False if the slot is free, handed over or abandoned.
  bool PinForJob(uint32_t slot);
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
    // Under the mutex.
    CompressionType compression = kNoCompression;
    uint32_t path_id = 0;
    uint64_t size = 0;
    uint64_t job_pins = 0;
  };

  Slot* Get(uint32_t slot) const;
  void Fill(uint32_t slot, const Slot& s, Info* info) const;
  bool Change(uint32_t slot, State from, State to);
  bool IsDroppable(const Slot& s) const;
  void SetMaybeDroppable();

  mutable std::mutex mutex_;
  std::atomic<Slot*> chunks_[kNumChunks] = {};  // published once, in order
  uint32_t num_slots_ = 1;
  std::vector<uint32_t> free_slots_;
  std::unordered_map<uint64_t, uint32_t> by_number_;
  std::atomic<uint32_t> num_dead_{0};  // changed under the mutex
  // Set when a count falls to zero or a file becomes live or loses its job
  // pin; cleared by GetDroppable when it finds none.
  mutable std::atomic<bool> maybe_droppable_{false};
  std::function<void()> on_droppable_;
};

// Owns one reader's pin. Not thread-safe; may move to another thread.
class MapFilePin {
 public:
  MapFilePin() = default;
  // Takes over a pin that the caller has.
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
