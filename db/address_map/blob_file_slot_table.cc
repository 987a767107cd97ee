// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/blob_file_slot_table.h"

#include <cassert>

#include "util/math.h"

namespace ROCKSDB_NAMESPACE {

BlobFileSlotTable::BlobFileSlotTable() {
  // Allocates the chunk of kLostSlot, so that counting in it needs no special
  // case.
  chunks_[0].store(new Slot[ChunkSlots(0)], std::memory_order_release);
}

BlobFileSlotTable::~BlobFileSlotTable() {
  for (uint32_t i = 0; i < kNumChunks; ++i) {
    Slot* chunk = chunks_[i].load(std::memory_order_relaxed);
    if (chunk == nullptr) {
      break;  // chunks are allocated in order
    }
    delete[] chunk;
  }
}

BlobFileSlotTable::Slot* BlobFileSlotTable::Get(uint32_t slot) const {
  if (slot >= kMaxSlots) {
    return nullptr;
  }
  const uint32_t shifted = slot + ChunkSlots(0);
  const uint32_t c = FloorLog2(shifted) - kFirstChunkBits;
  Slot* const chunk = chunks_[c].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : chunk + (shifted - ChunkSlots(c));
}

uint32_t BlobFileSlotTable::Add(uint64_t number, uint32_t path_id,
                                CompressionType compression, State state,
                                uint64_t size) {
  assert(state == State::kBuilding || state == State::kLive);
  std::lock_guard<std::mutex> lock(mutex_);
  assert(by_number_.count(number) == 0);
  uint32_t slot;
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
  } else if (num_slots_ < kMaxSlots) {
    slot = num_slots_++;
    if (Get(slot) == nullptr) {
      const uint32_t c = FloorLog2(slot + ChunkSlots(0)) - kFirstChunkBits;
      chunks_[c].store(new Slot[ChunkSlots(c)], std::memory_order_release);
    }
  } else {
    return kLostSlot;
  }
  Slot* const s = Get(slot);
  assert(s->state.load() == State::kFree);
  assert(s->live_count.load() == 0 && s->live_bytes.load() == 0);
  assert(s->job_pins == 0);
  s->number.store(number, std::memory_order_relaxed);
  s->path_id.store(path_id, std::memory_order_relaxed);
  s->hot.store(0, std::memory_order_relaxed);
  s->compression = compression;
  s->size = size;
  s->state.store(state, std::memory_order_release);
  by_number_[number] = slot;
  if (state == State::kLive) {
    SetMaybeDroppable();
  }
  return slot;
}

void BlobFileSlotTable::SetHot(uint32_t slot, HotMark hot) {
  Slot* const s = Get(slot);
  assert(s != nullptr && s->state.load() != State::kFree);
  s->hot.store(hot.code(), std::memory_order_relaxed);
}

uint32_t BlobFileSlotTable::Find(uint64_t number) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = by_number_.find(number);
  return it == by_number_.end() ? kLostSlot : it->second;
}

bool BlobFileSlotTable::FindLive(uint64_t number, uint64_t* count,
                                 uint64_t* bytes) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = by_number_.find(number);
  if (it == by_number_.end()) {
    return false;
  }
  *count = LiveCount(it->second);
  *bytes = LiveBytes(it->second);
  return true;
}

void BlobFileSlotTable::Fill(uint32_t slot, const Slot& s, Info* info) const {
  info->slot = slot;
  info->number = s.number.load(std::memory_order_relaxed);
  info->size = s.size;
  info->path_id = s.path_id.load(std::memory_order_relaxed);
  info->hot = HotMark::FromCode(s.hot.load(std::memory_order_relaxed));
  info->compression = s.compression;
  info->state = s.state.load(std::memory_order_relaxed);
  info->live_count = s.live_count.load(std::memory_order_acquire);
  info->live_bytes = s.live_bytes.load(std::memory_order_acquire);
  info->pins = s.pins.load(std::memory_order_acquire);
  info->job_pins = s.job_pins;
}

bool BlobFileSlotTable::GetInfo(uint32_t slot, Info* info) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const Slot* const s = Get(slot);
  if (s == nullptr || s->state.load() == State::kFree) {
    return false;
  }
  Fill(slot, *s, info);
  return true;
}

std::vector<BlobFileSlotTable::Info> BlobFileSlotTable::GetAll() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Info> all;
  all.reserve(by_number_.size());
  for (uint32_t slot = 1; slot < num_slots_; ++slot) {
    const Slot* const s = Get(slot);
    if (s->state.load() != State::kFree) {
      Fill(slot, *s, &all.emplace_back());
    }
  }
  return all;
}

bool BlobFileSlotTable::Change(uint32_t slot, State from, State to) {
  Slot* const s = Get(slot);
  if (s == nullptr || slot == kLostSlot || s->state.load() != from) {
    return false;
  }
  s->state.store(to, std::memory_order_release);
  return true;
}

bool BlobFileSlotTable::Publish(uint32_t slot, uint64_t size) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!Change(slot, State::kBuilding, State::kPending)) {
    return false;
  }
  Get(slot)->size = size;
  return true;
}

bool BlobFileSlotTable::PublishCopies(uint32_t slot, uint64_t size) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!Change(slot, State::kBuilding, State::kCopies)) {
    return false;
  }
  Get(slot)->size = size;
  return true;
}

bool BlobFileSlotTable::Commit(uint32_t slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!Change(slot, State::kPending, State::kLive) &&
      !Change(slot, State::kCopies, State::kLive)) {
    return false;
  }
  // All entries of the file may have been removed while it was pending.
  SetMaybeDroppable();
  return true;
}

bool BlobFileSlotTable::Drop(uint32_t slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!Change(slot, State::kLive, State::kDead)) {
    return false;
  }
  num_dead_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool BlobFileSlotTable::Abandon(uint32_t slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  return Change(slot, State::kBuilding, State::kAbandoned) ||
         Change(slot, State::kPending, State::kAbandoned) ||
         Change(slot, State::kCopies, State::kAbandoned);
}

bool BlobFileSlotTable::IsReleased(uint64_t number) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = by_number_.find(number);
  if (it == by_number_.end()) {
    return false;
  }
  const State state = Get(it->second)->state.load();
  return state == State::kDead || state == State::kHandedOver;
}

bool BlobFileSlotTable::IsPending(uint32_t slot) const {
  const Slot* const s = Get(slot);
  if (s == nullptr || slot == kLostSlot) {
    return false;
  }
  const State state = s->state.load(std::memory_order_acquire);
  return state == State::kBuilding || state == State::kPending ||
         state == State::kAbandoned;
}

bool BlobFileSlotTable::IsDroppable(const Slot& s) const {
  return s.state.load() == State::kLive && s.job_pins == 0 &&
         s.live_count.load(std::memory_order_acquire) == 0;
}

void BlobFileSlotTable::SetMaybeDroppable() {
  maybe_droppable_.exchange(true, std::memory_order_acq_rel);
  if (on_droppable_ != nullptr) {
    on_droppable_();
  }
}

std::vector<BlobFileSlotTable::Info> BlobFileSlotTable::GetDroppable() const {
  std::lock_guard<std::mutex> lock(mutex_);
  // Clears the flag before looking at the counts: a count that drops to zero
  // meanwhile sets it again.
  maybe_droppable_.exchange(false, std::memory_order_acq_rel);
  std::vector<Info> files;
  for (uint32_t slot = 1; slot < num_slots_; ++slot) {
    const Slot* const s = Get(slot);
    if (IsDroppable(*s)) {
      Fill(slot, *s, &files.emplace_back());
    }
  }
  if (!files.empty()) {
    maybe_droppable_.store(true, std::memory_order_release);
  }
  return files;
}

std::vector<BlobFileSlotTable::Info> BlobFileSlotTable::CollectDead() {
  std::lock_guard<std::mutex> lock(mutex_);
  // Before looking at the pins: a pin that is released meanwhile sets it again.
  released_dead_.exchange(false, std::memory_order_acq_rel);
  std::vector<Info> files;
  for (uint32_t slot = 1; slot < num_slots_; ++slot) {
    Slot* const s = Get(slot);
    if (s->state.load() != State::kDead || s->job_pins != 0 ||
        s->live_count.load(std::memory_order_acquire) != 0) {
      continue;
    }
    // This must be a read-modify-write; see the class comment.
    if (s->pins.fetch_add(0, std::memory_order_acq_rel) != 0) {
      continue;
    }
    s->state.store(State::kHandedOver, std::memory_order_release);
    num_dead_.fetch_sub(1, std::memory_order_relaxed);
    Fill(slot, *s, &files.emplace_back());
  }
  return files;
}

bool BlobFileSlotTable::Free(uint32_t slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  Slot* const s = Get(slot);
  if (s == nullptr || slot == kLostSlot || s->job_pins != 0 ||
      s->live_count.load(std::memory_order_acquire) != 0) {
    return false;
  }
  const State state = s->state.load();
  if (state == State::kAbandoned) {
    if (s->pins.fetch_add(0, std::memory_order_acq_rel) != 0) {
      return false;
    }
  } else if (state != State::kHandedOver) {
    return false;
  }
  by_number_.erase(s->number.load(std::memory_order_relaxed));
  s->state.store(State::kFree, std::memory_order_release);
  free_slots_.push_back(slot);
  return true;
}

void BlobFileSlotTable::AddLive(uint32_t slot, uint64_t bytes) {
  Slot* const s = Get(slot);
  assert(s != nullptr);
  s->live_bytes.fetch_add(bytes, std::memory_order_relaxed);
  s->live_count.fetch_add(1, std::memory_order_relaxed);
}

void BlobFileSlotTable::SubLive(uint32_t slot, uint64_t bytes) {
  Slot* const s = Get(slot);
  assert(s != nullptr);
  assert(s->live_count.load() > 0 && s->live_bytes.load() >= bytes);
  s->live_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  // Other threads test the count. The release makes the removal of the entry
  // visible to any thread that observes zero.
  if (s->live_count.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    SetMaybeDroppable();
  }
}

uint64_t BlobFileSlotTable::LiveCount(uint32_t slot) const {
  const Slot* const s = Get(slot);
  return s == nullptr ? 0 : s->live_count.load(std::memory_order_acquire);
}

uint64_t BlobFileSlotTable::LiveBytes(uint32_t slot) const {
  const Slot* const s = Get(slot);
  return s == nullptr ? 0 : s->live_bytes.load(std::memory_order_acquire);
}

uint64_t BlobFileSlotTable::Number(uint32_t slot) const {
  const Slot* const s = Get(slot);
  return s == nullptr ? 0 : s->number.load(std::memory_order_relaxed);
}

CompressionType BlobFileSlotTable::Compression(uint32_t slot) const {
  const Slot* const s = Get(slot);
  return s == nullptr ? kNoCompression : s->compression;
}

BlobFileSlotTable::Place BlobFileSlotTable::PlaceOf(uint32_t slot) const {
  const Slot* const s = Get(slot);
  assert(s != nullptr);
  return Place{s->path_id.load(std::memory_order_relaxed),
               HotMark::FromCode(s->hot.load(std::memory_order_relaxed))};
}

bool BlobFileSlotTable::Pin(uint32_t slot) {
  Slot* const s = Get(slot);
  if (s == nullptr) {
    return false;
  }
  s->pins.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

void BlobFileSlotTable::Unpin(uint32_t slot) {
  Slot* const s = Get(slot);
  assert(s != nullptr && s->pins.load() > 0);
  // If the collector has seen the pin, it wrote the state before.
  if (s->pins.fetch_sub(1, std::memory_order_acq_rel) == 1 &&
      s->state.load(std::memory_order_acquire) == State::kDead) {
    released_dead_.store(true, std::memory_order_release);
    if (on_droppable_ != nullptr) {
      on_droppable_();
    }
  }
}

bool BlobFileSlotTable::PinForJob(uint32_t slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  return PinForJobLocked(slot);
}

uint32_t BlobFileSlotTable::PinFileForJob(uint64_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = by_number_.find(number);
  return it != by_number_.end() && PinForJobLocked(it->second) ? it->second
                                                               : kLostSlot;
}

bool BlobFileSlotTable::PinForJobLocked(uint32_t slot) {
  Slot* const s = Get(slot);
  if (s == nullptr || slot == kLostSlot) {
    return false;
  }
  const State state = s->state.load();
  if (state == State::kFree || state == State::kHandedOver ||
      state == State::kAbandoned) {
    return false;
  }
  ++s->job_pins;
  return true;
}

void BlobFileSlotTable::UnpinForJob(uint32_t slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  Slot* const s = Get(slot);
  assert(s != nullptr && s->job_pins > 0);
  if (--s->job_pins == 0) {
    SetMaybeDroppable();
  }
}

}  // namespace ROCKSDB_NAMESPACE
