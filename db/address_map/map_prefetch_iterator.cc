//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_prefetch_iterator.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/address_map/bound_blob_index.h"
#include "db/address_map/map_value_iterator.h"
#include "db/address_map/mapped_record_name.h"
#include "db/blob/blob_index.h"
#include "db/column_family.h"
#include "db/pinned_iterators_manager.h"
#include "monitoring/statistics_impl.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/system_clock.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

bool MapPrefetchIterator::IsWanted(const ReadOptions& read_options) {
  return read_options.blob_prefetch_count > 0 && !read_options.pin_data &&
         !read_options.allow_unprepared_value &&
         read_options.read_tier == kReadAllTier;
}

MapPrefetchIterator::MapPrefetchIterator(ColumnFamilyData* cfd,
                                         const ReadOptions& read_options,
                                         SequenceNumber sequence,
                                         const SliceTransform* prefix_extractor,
                                         MapValueIterator* child)
    : PassThroughIterator(child, /*in_arena=*/true),
      values_(child),
      cfd_(cfd),
      blobs_(cfd->address_map_store()),
      read_options_(read_options),
      sequence_(sequence),
      prefix_extractor_(prefix_extractor),
      max_window_(read_options.blob_prefetch_count ==
                          ReadOptions::kAutoBlobPrefetchCount
                      ? kAutoWindow
                      : read_options.blob_prefetch_count),
      lengths_(read_options.blob_prefetch_count ==
                       ReadOptions::kAutoBlobPrefetchCount
                   ? blobs_->scan_lengths()
                   : nullptr),
      gauge_(lengths_ != nullptr ? blobs_->read_ahead_gauge() : nullptr) {}

MapPrefetchIterator::~MapPrefetchIterator() {
  NoteLength();
  DropQueue();
}

bool MapPrefetchIterator::IsFront(const Slice& user_key,
                                  const Slice& value) const {
  // A bound index and the user key are the whole name of a value.
  return !queue_.empty() && value == queue_.front().value() &&
         user_key == ExtractUserKey(queue_.front().key);
}

Status MapPrefetchIterator::FetchMappedValue(const Slice& user_key,
                                             const Slice& value,
                                             PinnableSlice* result) {
  if (IsFront(user_key, value)) {
    Slot& front = queue_.front();
    if (front.group != nullptr && !front.taken) {
      front.taken = true;
      if (values_->meter()->is_on() && !front.was_cached) {
        const BlobReadGroup::Item& item = front.group->items()[front.item];
        values_->meter()->OnValue(user_key, item.file_number, item.offset,
                                  item.size);
      }
      ReadFront();
      return front.group->Take(front.item, result);
    }
    if (front.kept.found) {
      return values_->FetchKept(user_key, value, front.kept, result);
    }
  }
  return values_->FetchMappedValue(user_key, value, result);
}

void MapPrefetchIterator::ReadFront() {
  BlobReadGroup* const group = queue_.front().group.get();
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

void MapPrefetchIterator::Submit(
    const std::vector<std::shared_ptr<BlobReadGroup>>& groups,
    const std::vector<Slot*>& slots) {
  std::vector<std::shared_ptr<BlobReadGroup>> submitted;
  for (const auto& group : groups) {
    if (gauge_ == nullptr || gauge_->HandsOver()) {
      submitted.push_back(group);
    }
  }
  if (submitted.empty()) {
    return;
  }
  size_t num_values = 0;
  for (Slot* const slot : slots) {
    slot->was_submitted = submitted.size() == groups.size() ||
                          std::find(submitted.begin(), submitted.end(),
                                    slot->group) != submitted.end();
    num_values += slot->was_submitted ? 1 : 0;
  }
  RecordTick(cfd_->ioptions().stats, BLOB_MAP_PREFETCH_READ, num_values);
  BlobReadPool::Submit(submitted, read_options_, cfd_->ioptions());
}

void MapPrefetchIterator::DropQueue() {
  if (queue_.empty()) {
    return;
  }
  PinFrontValue();
  uint64_t wasted = 0;
  for (Slot& slot : queue_) {
    wasted += IsWasted(slot) ? 1 : 0;
    if (slot.group != nullptr) {
      slot.group->LetGo();
    }
  }
  RecordTick(cfd_->ioptions().stats, BLOB_MAP_PREFETCH_WASTED, wasted);
  queue_.clear();
  reads_ = 0;
  bytes_ = 0;
}

void MapPrefetchIterator::NoteLength() {
  if (lengths_ == nullptr || !began_on_mapped_) {
    return;
  }
  // If the queue was not begun, the entry that the iterator stands on may not
  // belong to the scan. It is not counted then, unless it is the first one.
  const size_t last = !queue_.empty() && queue_.front().taken ? 1 : 0;
  lengths_->Add(std::max(steps_ + last, size_t{1}));
}

void MapPrefetchIterator::Restart() {
  NoteLength();
  DropQueue();
  began_on_mapped_ = false;
  steps_ = 0;
  window_ = 0;
  has_settled_key_ = false;
  prefix_.clear();
  at_end_ = false;
  has_seek_key_ = false;
}

bool MapPrefetchIterator::UsesPrefixFilters() const {
  // With auto_prefix_mode, the upper bound determines where prefix filters are
  // used, and the queue ends at the upper bound.
  return prefix_extractor_ != nullptr && !read_options_.total_order_seek &&
         !read_options_.auto_prefix_mode;
}

bool MapPrefetchIterator::IsFilledFor(const Slice& user_key) const {
  const Slice* const upper_bound = read_options_.iterate_upper_bound;
  if ((upper_bound != nullptr) != has_upper_bound_ ||
      (upper_bound != nullptr && *upper_bound != Slice(upper_bound_))) {
    return false;
  }
  if (!UsesPrefixFilters()) {
    return true;
  }
  if (!has_seek_key_) {
    return false;
  }
  return !prefix_extractor_->InDomain(seek_key_) ||
         (prefix_extractor_->InDomain(user_key) &&
          prefix_extractor_->Transform(user_key) ==
              prefix_extractor_->Transform(seek_key_));
}

void MapPrefetchIterator::NoteUpperBound() {
  const Slice* const upper_bound = read_options_.iterate_upper_bound;
  has_upper_bound_ = upper_bound != nullptr;
  if (has_upper_bound_) {
    upper_bound_.assign(upper_bound->data(), upper_bound->size());
  }
}

void MapPrefetchIterator::SeekToFirst() {
  Restart();
  child()->SeekToFirst();
  Begin(/*target=*/nullptr);
}

void MapPrefetchIterator::Begin(const Slice* target) {
  if (lengths_ == nullptr || !child()->Valid()) {
    return;
  }
  began_on_mapped_ = StandsOnMapped();
  if (!began_on_mapped_ || lengths_->More(steps_) <= kPlainSteps) {
    return;
  }
  if (target != nullptr) {
    NotePrefixOf(*target);
  } else {
    NotePrefix();
  }
  Fill();
}

void MapPrefetchIterator::SeekToLast() {
  Restart();
  child()->SeekToLast();
}

void MapPrefetchIterator::Seek(const Slice& target) {
  const Slice user_key = ExtractUserKey(target);
  if (!queue_.empty() && IsFilledFor(user_key) && SeekInQueue(target)) {
    return;
  }
  const bool goes_on = queue_.empty() && began_on_mapped_ && child()->Valid() &&
                       IsOnward(child()->key(), target);
  const size_t steps = goes_on ? steps_ : 0;
  if (goes_on) {
    began_on_mapped_ = false;  // the scan goes on: no length to record yet
  }
  Restart();
  steps_ = steps;
  if (UsesPrefixFilters()) {
    seek_key_.assign(user_key.data(), user_key.size());
    has_seek_key_ = true;
  }
  child()->Seek(target);
  Begin(&user_key);
  began_on_mapped_ |= goes_on;
}

bool MapPrefetchIterator::IsOnward(const Slice& key,
                                   const Slice& target) const {
  return ExtractUserKey(key) == ExtractUserKey(target) &&
         (GetInternalKeySeqno(target) == 0 ||
          GetInternalKeySeqno(key) > sequence_);
}

bool MapPrefetchIterator::SeekInQueue(const Slice& target) {
  const InternalKeyComparator& icmp = cfd_->internal_comparator();
  if (icmp.Compare(queue_.front().key, target) > 0) {
    return false;
  }
  // Otherwise a new scan begins, although its values have been read already.
  const bool goes_on = IsOnward(queue_.front().key, target);
  if (!goes_on) {
    NoteLength();
    values_->meter()->EndScan();
  }
  while (!queue_.empty() && icmp.Compare(queue_.front().key, target) < 0) {
    PopFront();
  }
  if (!goes_on) {
    steps_ = 0;
    began_on_mapped_ = !queue_.empty() && queue_.front().group != nullptr;
  }
  if (!queue_.empty()) {
    FillIfLow();
    return true;
  }
  // The child may have reached the target already. It must not be moved back: a
  // child that was prepared for several ranges only moves forward.
  if (at_end_ || !child()->Valid() ||
      icmp.Compare(child()->key(), target) < 0) {
    return false;
  }
  prefix_.clear();  // a scan of another prefix may begin here
  return true;
}

void MapPrefetchIterator::SeekForPrev(const Slice& target) {
  Restart();
  child()->SeekForPrev(target);
}

void MapPrefetchIterator::SetRangeDelReadSeqno(SequenceNumber read_seqno) {
  Restart();
  sequence_ = read_seqno;
  child()->SetRangeDelReadSeqno(read_seqno);
}

void MapPrefetchIterator::Next() {
  assert(Valid());
  if (queue_.empty()) {
    NotePrefix();
    steps_ += StandsOnMapped() ? 1 : 0;
    child()->Next();
    if (steps_ >= kPlainSteps && child()->Valid()) {
      Fill();
    }
    return;
  }
  PopFront();
  FillIfLow();
}

void MapPrefetchIterator::PopFront() {
  Slot& front = queue_.front();
  if (front.group != nullptr) {
    --reads_;
    bytes_ -= front.bytes;
    if (front.taken) {
      ++steps_;
    } else if (IsWasted(front)) {
      RecordTick(cfd_->ioptions().stats, BLOB_MAP_PREFETCH_WASTED);
    }
    front.group->LetGo();
  }
  PinFrontValue();
  queue_.pop_front();
}

void MapPrefetchIterator::PinFrontValue() {
  if (UNLIKELY(pinned_iters_mgr_ != nullptr &&
               pinned_iters_mgr_->PinningEnabled())) {
    pinned_iters_mgr_->PinPtr(
        queue_.front().value_bytes.release(),
        [](void* bytes) { delete[] static_cast<char*>(bytes); });
  }
}

void MapPrefetchIterator::FillIfLow() {
  // If bytes are the limit, the number of reads never reaches the window.
  if (reads_ <= window_ / 2 && (bytes_ <= max_bytes_ / 2 || reads_ <= 1) &&
      queue_.size() < kMaxUnread) {
    Fill();
  }
}

void MapPrefetchIterator::NotePrefixOf(const Slice& user_key) {
  if (read_options_.prefix_same_as_start && prefix_extractor_ != nullptr &&
      prefix_extractor_->InDomain(user_key)) {
    const Slice prefix = prefix_extractor_->Transform(user_key);
    prefix_.assign(prefix.data(), prefix.size());
  }
}

void MapPrefetchIterator::NotePrefix() {
  if (!prefix_.empty()) {
    return;
  }
  NotePrefixOf(child()->user_key());
}

bool MapPrefetchIterator::NextAndGetResult(IterateResult* result) {
  Next();
  if (!Valid()) {
    return false;
  }
  result->key = key();
  result->bound_check_result = UpperBoundCheckResult();
  result->value_prepared = !queue_.empty();
  return true;
}

void MapPrefetchIterator::Prev() {
  assert(Valid());
  if (!queue_.empty()) {
    const std::string key = queue_.front().key;
    Restart();
    child()->Seek(key);
    if (!child()->Valid()) {
      return;  // status() has the reason
    }
  }
  Restart();
  child()->Prev();
}

bool MapPrefetchIterator::StandsOnMapped() const {
  return ExtractValueType(child()->key()) == kTypeBlobIndex;
}

size_t MapPrefetchIterator::NextWindow() const {
  const size_t more = lengths_ != nullptr ? lengths_->More(steps_) : 0;
  return more > 0 ? std::min(more, kKnownWindow)
                  : std::min(std::max(window_ * 2, kFirstWindow), max_window_);
}

void MapPrefetchIterator::Fill() {
  if (at_end_ || !child()->Valid() ||
      (pinned_iters_mgr_ != nullptr && pinned_iters_mgr_->PinningEnabled() &&
       queue_.empty())) {
    return;
  }
  if (queue_.empty()) {
    NoteUpperBound();
  }
  const size_t window = NextWindow();
  max_bytes_ = budget_->Share(in_budget_, kMaxBytes);
  std::vector<BlobReadGroup::Item> items;
  std::vector<Slot*> slots;
  size_t unread = 0;
  size_t unread_bytes = 0;
  while (reads_ < window && bytes_ < max_bytes_ && unread < kMaxUnread &&
         unread_bytes < kMaxUnreadBytes) {
    if (!child()->Valid()) {
      at_end_ = true;
      break;
    }
    if (!IsInRange(child()->user_key())) {
      // The entry stays in the child, which has not prepared its value.
      at_end_ = true;
      break;
    }
    if (!child()->PrepareValue()) {
      break;
    }
    BlobReadGroup::Item item;
    if (Append(&item)) {
      Slot& slot = queue_.back();
      slot.bytes = item.size;
      bytes_ += item.size;
      ++reads_;
      items.push_back(std::move(item));
      slots.push_back(&slot);
      unread = 0;
    } else {
      ++unread;
      unread_bytes += queue_.back().value_size;
    }
    child()->Next();
  }
  if (!queue_.empty()) {
    // status() returns the error when the queue is used up.
    IGNORE_STATUS_IF_ERROR(child()->status());
  }
  if (items.empty()) {
    return;
  }
  window_ = window;
  std::vector<size_t> group_of;
  std::vector<size_t> index_of;
  const auto groups =
      BlobReadGroup::Divide(std::move(items), read_options_, cfd_->ioptions(),
                            cfd_->blob_source(), &group_of, &index_of);
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i]->group = groups[group_of[i]];
    slots[i]->item = index_of[i];
  }
  budget_->Hold(&in_budget_, groups);
  Submit(groups, slots);
}

bool MapPrefetchIterator::Append(BlobReadGroup::Item* item) {
  queue_.emplace_back();
  Slot& slot = queue_.back();
  const Slice key = child()->key();
  const Slice value = child()->value();
  slot.value_size = value.size();
  slot.value_bytes.reset(new char[value.size()]);
  std::copy(value.data(), value.data() + value.size(), slot.value_bytes.get());
  slot.key.assign(key.data(), key.size());
  // Values of other types may begin with the same byte.
  const bool is_bound = ExtractValueType(slot.key) == kTypeBlobIndex &&
                        BoundBlobIndex::IsBound(slot.value());
  AddressMap::Lookup found;
  if (is_bound) {
    // Takes over the entry's lookup: the child moves on, and data that it pins
    // may be released before the queue.
    found = values_->TakeKept();
  }
  slot.write_unix_time = child()->write_unix_time();
  slot.bound_check = child()->UpperBoundCheckResult();
  ParsedInternalKey parsed;
  if (!ParseInternalKey(slot.key, &parsed, /*log_err_key=*/false).ok() ||
      !IsWantedEntry(parsed) || !is_bound) {
    slot.kept = std::move(found);
    return false;
  }
  BlobIndex index;
  if (!BoundBlobIndex::Decode(slot.value(), &index).ok()) {
    return false;
  }
  if (!found.found) {
    found = blobs_->map()->FindByName(
        MapName{blobs_->HashOf(parsed.user_key), parsed.sequence,
                index.mapped().birth},
        /*pin=*/true);
  }
  if (!found.found ||
      found.entry.address.slot == BlobFileSlotTable::kLostSlot) {
    return false;
  }
  MappedRecordName::Encode(parsed.user_key, parsed.sequence,
                           index.mapped().birth, &item->record_name);
  slot.was_cached = values_->meter()->is_on() &&
                    values_->IsCached(found, parsed.user_key.size());
  std::string address;
  blobs_->ToBlobIndex(found, parsed.user_key.size(), &address);
  BlobIndex ordinary;
  [[maybe_unused]] const Status s = ordinary.DecodeFrom(address);
  assert(s.ok());
  item->file_number = ordinary.file_number();
  item->offset = ordinary.offset();
  item->size = ordinary.size();
  item->compression = ordinary.compression();
  item->pin = std::move(found.pin);
  return true;
}

bool MapPrefetchIterator::IsInRange(const Slice& user_key) const {
  if (read_options_.iterate_upper_bound != nullptr &&
      cfd_->user_comparator()->Compare(
          user_key, *read_options_.iterate_upper_bound) >= 0) {
    return false;
  }
  return !read_options_.prefix_same_as_start || prefix_extractor_ == nullptr ||
         prefix_.empty() ||
         (prefix_extractor_->InDomain(user_key) &&
          prefix_extractor_->Transform(user_key) == Slice(prefix_));
}

bool MapPrefetchIterator::IsWantedEntry(const ParsedInternalKey& key) {
  if (key.sequence > sequence_ ||
      (has_settled_key_ && key.user_key == Slice(settled_key_))) {
    return false;
  }
  if (key.type != kTypeMerge) {
    // Older entries of the key are hidden.
    settled_key_.assign(key.user_key.data(), key.user_key.size());
    has_settled_key_ = true;
  }
  return key.type == kTypeBlobIndex;
}

Slice MapPrefetchIterator::key() const {
  return queue_.empty() ? child()->key() : Slice(queue_.front().key);
}

Slice MapPrefetchIterator::value() const {
  return queue_.empty() ? child()->value() : queue_.front().value();
}

uint64_t MapPrefetchIterator::write_unix_time() const {
  return queue_.empty() ? child()->write_unix_time()
                        : queue_.front().write_unix_time;
}

Status MapPrefetchIterator::status() const {
  return queue_.empty() ? child()->status() : Status::OK();
}

bool MapPrefetchIterator::PrepareValue() {
  return !queue_.empty() || child()->PrepareValue();
}

IterBoundCheck MapPrefetchIterator::UpperBoundCheckResult() {
  return queue_.empty() ? child()->UpperBoundCheckResult()
                        : queue_.front().bound_check;
}

void MapPrefetchIterator::SetPinnedItersMgr(
    PinnedIteratorsManager* pinned_iters_mgr) {
  pinned_iters_mgr_ = pinned_iters_mgr;
  child()->SetPinnedItersMgr(pinned_iters_mgr);
}

bool MapPrefetchIterator::IsKeyPinned() const {
  return queue_.empty() && child()->IsKeyPinned();
}

bool MapPrefetchIterator::IsValuePinned() const {
  return queue_.empty() && child()->IsValuePinned();
}

}  // namespace ROCKSDB_NAMESPACE
