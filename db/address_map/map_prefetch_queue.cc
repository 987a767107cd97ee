//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_prefetch_queue.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/address_map/bound_blob_index.h"
#include "db/address_map/map_value_iterator.h"
#include "db/address_map/mapped_record_name.h"
#include "db/blob/blob_index.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/read_ahead_gauge.h"
#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/pinned_iterators_manager.h"
#include "monitoring/perf_context_imp.h"
#include "monitoring/statistics_impl.h"
#include "rocksdb/options.h"
#include "rocksdb/system_clock.h"

namespace ROCKSDB_NAMESPACE {

MapPrefetchQueue::MapPrefetchQueue(ColumnFamilyData* cfd,
                                   const ReadOptions& read_options,
                                   MapValueIterator* values,
                                   ReadAheadGauge* gauge)
    : values_(values),
      cfd_(cfd),
      blobs_(cfd->address_map_store()),
      read_options_(read_options),
      gauge_(gauge) {}

bool MapPrefetchQueue::PinningEnabled() const {
  return pinned_iters_mgr_ != nullptr && pinned_iters_mgr_->PinningEnabled();
}

MapPrefetchQueue::Slot* MapPrefetchQueue::Append() {
  Slot& slot = *slots_.AddBack();
  const Slice key = values_->key();
  const Slice value = values_->value();
  char* const bytes = bytes_.Allocate(key.size() + value.size(), &slot.bytes);
  std::copy(key.data(), key.data() + key.size(), bytes);
  std::copy(value.data(), value.data() + value.size(), bytes + key.size());
  slot.key = Slice(bytes, key.size());
  slot.value = Slice(bytes + key.size(), value.size());
  if (IsBound(slot)) {
    // Takes over the entry's lookup: the iterator moves on, and data that it
    // pins may be released before the queue.
    slot.kept = values_->TakeKept();
    slot.hash = blobs_->HashOf(ExtractUserKey(slot.key));
    if (!slot.kept.found) {
      blobs_->map()->Prefetch(slot.hash);
    }
  }
  slot.write_unix_time = values_->write_unix_time();
  slot.bound_check = values_->UpperBoundCheckResult();
  return &slot;
}

bool MapPrefetchQueue::IsBound(const Slot& slot) {
  // Values of other types may begin with the same byte.
  return ExtractValueType(slot.key) == kTypeBlobIndex &&
         BoundBlobIndex::IsBound(slot.value);
}

bool MapPrefetchQueue::AddRead(Slot* slot) {
  assert(slot->group == nullptr);
  ParsedInternalKey key;
  BlobIndex index;
  if (!IsBound(*slot) ||
      !ParseInternalKey(slot->key, &key, /*log_err_key=*/false).ok() ||
      !BoundBlobIndex::Decode(slot->value, &index).ok()) {
    return false;
  }
  AddressMap::Lookup found = std::exchange(slot->kept, AddressMap::Lookup());
  if (!found.found) {
    found = blobs_->map()->FindByName(
        MapName{slot->hash, key.sequence, index.mapped().birth},
        /*pin=*/true);
  }
  if (!found.found ||
      found.entry.address.slot == BlobFileSlotTable::kLostSlot) {
    return false;
  }
  new_items_.emplace_back();
  BlobReadGroup::Item& item = new_items_.back();
  const size_t name_size = MappedRecordName::Size(key.user_key);
  new_names_.emplace_back();
  char* const name = bytes_.Allocate(name_size, &new_names_.back());
  MappedRecordName::Encode(key.user_key, key.sequence, index.mapped().birth,
                           name);
  item.record_name = Slice(name, name_size);
  slot->was_cached = values_->meter()->is_on() &&
                     values_->IsCached(found, key.user_key.size());
  const MapAddress& address = found.entry.address;
  const uint64_t before_value = BlobRecordV2::ValueOffset(key.user_key.size());
  assert(address.size >= before_value);
  item.file_number = blobs_->file_table().Number(address.slot);
  item.offset = address.offset + before_value;
  item.size = address.size - before_value;
  item.compression = blobs_->file_table().Compression(address.slot);
  item.pin = std::move(found.pin);

  slot->value_size = item.size;
  value_bytes_ += item.size;
  ++reads_;
  new_slots_.push_back(slot);
  return true;
}

bool MapPrefetchQueue::StartReads() {
  if (new_items_.empty()) {
    return false;
  }
  std::vector<size_t> group_of;
  std::vector<size_t> index_of;
  const auto groups = BlobReadGroup::Divide(
      std::move(new_items_), read_options_, cfd_->ioptions(),
      cfd_->blob_source(), &group_of, &index_of);
  new_items_.clear();
  new_names_.clear();
  for (size_t i = 0; i < new_slots_.size(); ++i) {
    new_slots_[i]->group = groups[group_of[i]];
    new_slots_[i]->item = index_of[i];
  }
  Submit(groups);
  new_slots_.clear();
  return true;
}

bool MapPrefetchQueue::NeedsFirstRead() const {
  // The value of the front's key may be that of another entry of the key.
  return reads_ == new_slots_.size() &&
         ExtractUserKey(new_slots_.front()->key) ==
             ExtractUserKey(slots_.front().key);
}

void MapPrefetchQueue::Submit(
    const std::vector<std::shared_ptr<BlobReadGroup>>& groups) {
  std::vector<std::shared_ptr<BlobReadGroup>> submitted;
  uint64_t size = 0;
  for (const auto& group : groups) {
    if (gauge_ == nullptr || gauge_->HandsOver()) {
      submitted.push_back(group);
      size += group->Span();
    } else if (group->items().size() > 1) {
      // It takes no memory before the scan reaches it. A single value is taken
      // as soon as it is read.
      group->HoldWhenRead(budget_, &in_budget_);
    }
  }
  if (submitted.empty()) {
    return;
  }
  budget_->Hold(&in_budget_, submitted);
  size_t num_values = 0;
  for (Slot* const slot : new_slots_) {
    slot->was_submitted = submitted.size() == groups.size() ||
                          std::find(submitted.begin(), submitted.end(),
                                    slot->group) != submitted.end();
    num_values += slot->was_submitted ? 1 : 0;
  }
  RecordTick(cfd_->ioptions().stats, BLOB_MAP_PREFETCH_READ, num_values);
  if (size <= kMaxAtOnce && NeedsFirstRead() &&
      BlobReadGroup::AllowsAsync(read_options_, cfd_->ioptions())) {
    PERF_TIMER_GUARD(blob_read_time);
    BlobReadPool::RunAsync(submitted);
  } else {
    BlobReadPool::Submit(submitted, read_options_, cfd_->ioptions());
  }
}

void MapPrefetchQueue::PinFrontBytes() {
  if (UNLIKELY(PinningEnabled())) {
    pinned_iters_mgr_->PinPtr(
        new SharedBytes::Ref(slots_.front().bytes),
        [](void* ref) { delete static_cast<SharedBytes::Ref*>(ref); });
  }
}

bool MapPrefetchQueue::LetGo(const Slot& slot) {
  if (slot.group == nullptr) {
    return false;
  }
  if (IsWasted(slot)) {
    RecordTick(cfd_->ioptions().stats, BLOB_MAP_PREFETCH_WASTED);
  }
  slot.group->LetGo();
  return slot.taken;
}

bool MapPrefetchQueue::LeaveLeft() {
  if (!left_.has_value()) {
    return false;
  }
  const bool was_taken = LetGo(*left_);
  left_.reset();
  return was_taken;
}

bool MapPrefetchQueue::PopFront(bool keeps_left) {
  assert(new_slots_.empty());
  Slot& front = slots_.front();
  bool was_taken = false;
  if (front.group != nullptr) {
    --reads_;
    value_bytes_ -= front.value_size;
  }
  PinFrontBytes();
  if (keeps_left && (front.group != nullptr || front.kept.found)) {
    was_taken = LeaveLeft();
    left_ = std::move(front);
  } else {
    was_taken = LetGo(front);
  }
  slots_.PopFront();
  return was_taken;
}

void MapPrefetchQueue::Clear() {
  assert(new_slots_.empty());
  LeaveLeft();
  if (slots_.empty()) {
    return;
  }
  PinFrontBytes();
  for (size_t i = 0; i < slots_.size(); ++i) {
    LetGo(slots_[i]);
  }
  slots_.Clear();
  reads_ = 0;
  value_bytes_ = 0;
}

bool MapPrefetchQueue::Has(const Slot& slot, const Slice& user_key,
                           const Slice& value) {
  return value == slot.value && user_key == ExtractUserKey(slot.key);
}

bool MapPrefetchQueue::Fetch(const Slice& user_key, const Slice& value,
                             PinnableSlice* result, Status* s) {
  Slot* slot = nullptr;
  if (!slots_.empty() && Has(slots_.front(), user_key, value)) {
    slot = &slots_.front();
  } else if (left_.has_value() && Has(*left_, user_key, value)) {
    slot = &*left_;
  }
  if (slot == nullptr ||
      !(slot->kept.found || (slot->group != nullptr && !slot->taken))) {
    return false;
  }
  *s = FetchSlot(slot, user_key, value, result);
  return true;
}

Status MapPrefetchQueue::FetchSlot(Slot* slot, const Slice& user_key,
                                   const Slice& value, PinnableSlice* result) {
  if (slot->kept.found) {
    return values_->FetchKept(user_key, value, slot->kept, result);
  }
  slot->taken = true;
  if (values_->meter()->is_on() && !slot->was_cached) {
    const BlobReadGroup::Item& item = slot->group->items()[slot->item];
    values_->meter()->OnValue(user_key, item.file_number, item.offset,
                              item.size);
  }
  Read(*slot);
  return slot->group->Take(slot->item, result);
}

void MapPrefetchQueue::Read(const Slot& slot) {
  BlobReadGroup* const group = slot.group.get();
  if (group->HasResults()) {
    return;
  }
  if (gauge_ == nullptr) {
    group->RunAndWait();
    return;
  }
  SystemClock* const clock = cfd_->ioptions().clock;
  const uint64_t began = clock->NowMicros();
  if (group->RunAndWait()) {
    gauge_->OnRead(group->Span(), clock->NowMicros() - began);
  }
}

}  // namespace ROCKSDB_NAMESPACE
