//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_prefetch_iterator.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/address_map/map_value_iterator.h"
#include "db/column_family.h"
#include "rocksdb/slice_transform.h"

namespace ROCKSDB_NAMESPACE {

bool MapPrefetchIterator::IsWanted(const ReadOptions& read_options) {
  return read_options.blob_prefetch_count > 0 &&
         !read_options.allow_unprepared_value &&
         read_options.read_tier == kReadAllTier;
}

MapPrefetchIterator::MapPrefetchIterator(ColumnFamilyData* cfd,
                                         const ReadOptions& read_options,
                                         SequenceNumber sequence,
                                         const SliceTransform* prefix_extractor,
                                         uint64_t max_skipped_versions,
                                         MapValueIterator* child)
    : PassThroughIterator(child, /*in_arena=*/true),
      values_(child),
      cfd_(cfd),
      read_options_(read_options),
      sequence_(sequence),
      prefix_extractor_(prefix_extractor),
      max_skipped_versions_(max_skipped_versions),
      max_window_(read_options.blob_prefetch_count ==
                          ReadOptions::kAutoBlobPrefetchCount
                      ? kAutoWindow
                      : read_options.blob_prefetch_count),
      lengths_(read_options.blob_prefetch_count ==
                       ReadOptions::kAutoBlobPrefetchCount
                   ? cfd->address_map_store()->scan_lengths()
                   : nullptr),
      queue_(cfd, read_options, child,
             lengths_ != nullptr ? cfd->address_map_store()->read_ahead_gauge()
                                 : nullptr) {}

MapPrefetchIterator::~MapPrefetchIterator() { NoteLength(); }

Status MapPrefetchIterator::FetchMappedValue(const Slice& user_key,
                                             const Slice& value,
                                             PinnableSlice* result) {
  Status s;
  return queue_.Fetch(user_key, value, result, &s)
             ? s
             : values_->FetchMappedValue(user_key, value, result);
}

void MapPrefetchIterator::NoteLength() {
  if (lengths_ == nullptr || !began_on_mapped_) {
    return;
  }
  // If the queue was not begun, the entry that the iterator stands on may not
  // belong to the scan. It is not counted then, unless it is the first one.
  const size_t last = queue_.HasTaken() ? 1 : 0;
  lengths_->Add(std::max(steps_ + last, size_t{1}));
}

void MapPrefetchIterator::Restart() {
  NoteLength();
  DropQueue();
  is_forward_ = true;
  began_on_mapped_ = false;
  steps_ = 0;
  window_ = 0;
  has_settled_key_ = false;
  num_versions_ = 0;
  prefix_.clear();
  has_seek_key_ = false;
}

void MapPrefetchIterator::DropQueue() {
  queue_.Clear();
  num_unguessed_ = 0;
  candidate_ = nullptr;
  at_end_ = false;
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
  Begin(/*forward=*/true, /*target=*/nullptr);
}

void MapPrefetchIterator::Begin(bool forward, const Slice* target) {
  is_forward_ = forward;
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
  Begin(/*forward=*/false, /*target=*/nullptr);
}

void MapPrefetchIterator::Seek(const Slice& target) {
  if (IsWithinBackwardMove()) {
    steps_ += queue_.HasTaken() ? 1 : 0;
    DropQueue();
    child()->Seek(target);
    return;
  }
  const Slice user_key = ExtractUserKey(target);
  if (!queue_.empty() && is_forward_ && IsFilledFor(user_key) &&
      SeekInQueue(target)) {
    return;
  }
  const bool goes_on = queue_.empty() && is_forward_ && began_on_mapped_ &&
                       child()->Valid() && IsOnward(child()->key(), target);
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
  Begin(/*forward=*/true, &user_key);
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
    began_on_mapped_ = false;
  }
  if (!queue_.empty()) {
    FillIfLow();
    began_on_mapped_ |= !goes_on && queue_.front().group != nullptr;
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
  const Slice user_key = ExtractUserKey(target);
  Restart();
  child()->SeekForPrev(target);
  Begin(/*forward=*/false, &user_key);
}

void MapPrefetchIterator::SetRangeDelReadSeqno(SequenceNumber read_seqno) {
  Restart();
  sequence_ = read_seqno;
  child()->SetRangeDelReadSeqno(read_seqno);
}

void MapPrefetchIterator::Prepare(const MultiScanArgs* scan_opts) {
  // A seek that the queue served would leave the child where Prepare() has left
  // it, which is nowhere.
  Restart();
  child()->Prepare(scan_opts);
}

bool MapPrefetchIterator::IsWithinBackwardMove() const {
  return !is_forward_ && !read_options_.pin_data && queue_.PinningEnabled();
}

void MapPrefetchIterator::Next() {
  assert(Valid());
  if (is_forward_) {
    if (queue_.empty()) {
      PlainStep();
      if (steps_ >= kPlainSteps && child()->Valid()) {
        Fill();
      }
      return;
    }
    PopFront();
    FillIfLow();
  } else if (IsWithinBackwardMove() && queue_.empty()) {
    child()->Next();
  } else {
    Turn();
  }
}

void MapPrefetchIterator::Prev() {
  assert(Valid());
  if (is_forward_) {
    Turn();
    return;
  }
  // DBIter leaves an entry before the user sees its value.
  if (queue_.empty() && steps_ >= kPlainSteps) {
    Fill();
  }
  if (queue_.empty()) {
    PlainStep();
    return;
  }
  PopFront();
  FillIfLow();
}

void MapPrefetchIterator::Turn() {
  const bool forward = !is_forward_;
  std::string key;
  if (!queue_.empty()) {
    key = queue_.front().key.ToString();
  }
  Restart();
  is_forward_ = forward;
  if (!key.empty()) {
    if (forward) {
      child()->Seek(key);
    } else {
      child()->SeekForPrev(key);
    }
    // The value of the entry may have been freed meanwhile. The child has
    // passed the entry then.
    if (!child()->Valid() || child()->key() != Slice(key)) {
      return;
    }
  }
  MoveChild();
}

void MapPrefetchIterator::PlainStep() {
  NotePrefix();
  if (is_forward_) {
    steps_ += StandsOnMapped() ? 1 : 0;
    child()->Next();
    return;
  }
  if (!StandsOnMapped()) {
    child()->Prev();
    return;
  }
  // The versions of a key count once.
  const std::string user_key = child()->user_key().ToString();
  child()->Prev();
  steps_ += child()->Valid() && child()->user_key() == Slice(user_key) ? 0 : 1;
}

void MapPrefetchIterator::MoveChild() {
  if (is_forward_) {
    child()->Next();
  } else {
    child()->Prev();
  }
}

void MapPrefetchIterator::PopFront() {
  if (candidate_ == &queue_.front()) {
    candidate_ = nullptr;
  }
  steps_ += queue_.PopFront(/*keeps_left=*/!is_forward_) ? 1 : 0;
  num_unguessed_ = std::min(num_unguessed_, queue_.size());
}

void MapPrefetchIterator::FillIfLow() {
  // If bytes are the limit, the number of reads never reaches the window.
  if (queue_.reads() <= window_ / 2 &&
      (queue_.value_bytes() <= max_bytes_ / 2 || queue_.reads() <= 1) &&
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

bool MapPrefetchIterator::StandsOnMapped() const {
  return ExtractValueType(child()->key()) == kTypeBlobIndex;
}

size_t MapPrefetchIterator::NextWindow() const {
  const size_t used = steps_ + (queue_.HasLeft() ? 1 : 0);
  const size_t more = lengths_ != nullptr ? lengths_->More(used) : 0;
  return more > 0 ? std::min(more, kKnownWindow)
                  : std::min(std::max(window_ * 2, kFirstWindow), max_window_);
}

void MapPrefetchIterator::Fill() {
  if ((at_end_ || !child()->Valid()) && candidate_ == nullptr &&
      num_unguessed_ == 0) {
    return;
  }
  if (queue_.empty()) {
    NoteUpperBound();
    if (num_versions_ > 0 &&
        !(child()->Valid() && child()->user_key() == Slice(settled_key_))) {
      num_versions_ = 0;
    }
  }
  const size_t window = NextWindow();
  max_bytes_ = queue_.Share(kMaxBytes);
  size_t unread = 0;
  size_t inline_bytes = 0;
  // The candidate counts as a read.
  while (queue_.reads() + (candidate_ != nullptr ? 1 : 0) < window &&
         queue_.value_bytes() < max_bytes_ && unread < kMaxUnread &&
         num_versions_ <= max_skipped_versions_) {
    const size_t reads = queue_.reads();
    const size_t lookups = is_forward_ ? std::min(window - reads, kLookups) : 1;
    // The limit of inline values ends the copying, not the guesses: the entries
    // in the queue are those that the scan needs next.
    if (num_unguessed_ < lookups && inline_bytes < kMaxInlineBytes &&
        AppendNext()) {
      const MapPrefetchQueue::Slot& last = *queue_.FromBack(0);
      inline_bytes += queue_.IsBound(last) ? 0 : last.value.size();
      ++num_unguessed_;
      if (num_unguessed_ < lookups) {
        continue;
      }
    }
    if (num_unguessed_ == 0) {
      break;
    }
    MapPrefetchQueue::Slot* const slot = queue_.FromBack(--num_unguessed_);
    if (is_forward_) {
      Guess(slot);
    } else {
      GuessBackward(slot);
    }
    unread = queue_.reads() > reads ? 0 : unread + 1;
  }
  if (candidate_ != nullptr && queue_.value_bytes() < max_bytes_ &&
      IsLastVersion()) {
    ReadCandidate();
  }
  if (!queue_.empty()) {
    // status() returns the error when the queue is used up.
    IGNORE_STATUS_IF_ERROR(child()->status());
  }
  if (queue_.StartReads()) {
    window_ = window;
  }
}

bool MapPrefetchIterator::AppendNext() {
  if (at_end_ || !child()->Valid() || !IsInRange(child()->user_key())) {
    // An entry that is not in the range stays in the child, which has not
    // prepared its value.
    at_end_ = true;
    return false;
  }
  if (!child()->PrepareValue()) {
    return false;
  }
  queue_.Append();
  MoveChild();
  return true;
}

void MapPrefetchIterator::Guess(MapPrefetchQueue::Slot* slot) {
  ParsedInternalKey key;
  if (!ParseInternalKey(slot->key, &key, /*log_err_key=*/false).ok() ||
      key.sequence > sequence_ ||
      (has_settled_key_ && key.user_key == Slice(settled_key_))) {
    return;
  }
  if (key.type != kTypeMerge) {
    // Older entries of the key are hidden.
    settled_key_.assign(key.user_key.data(), key.user_key.size());
    has_settled_key_ = true;
  }
  if (key.type == kTypeBlobIndex) {
    queue_.AddRead(slot);
  }
}

void MapPrefetchIterator::GuessBackward(MapPrefetchQueue::Slot* slot) {
  ParsedInternalKey key;
  if (!ParseInternalKey(slot->key, &key, /*log_err_key=*/false).ok()) {
    return;
  }
  if (num_versions_ > 0 && key.user_key == Slice(settled_key_)) {
    ++num_versions_;
  } else {
    num_versions_ = 1;
    settled_key_.assign(key.user_key.data(), key.user_key.size());
    if (candidate_ != nullptr) {
      ReadCandidate();
    }
  }
  if (num_versions_ > max_skipped_versions_) {
    candidate_ = nullptr;
    return;
  }
  if (key.sequence <= sequence_ && key.type != kTypeMerge) {
    // It hides the older entries of the key, which came before.
    candidate_ = key.type == kTypeBlobIndex ? slot : nullptr;
  }
}

void MapPrefetchIterator::ReadCandidate() {
  queue_.AddRead(candidate_);
  candidate_ = nullptr;
}

bool MapPrefetchIterator::IsLastVersion() const {
  return at_end_ || (child()->Valid() ? child()->user_key() !=
                                            ExtractUserKey(candidate_->key)
                                      : child()->status().ok());
}

bool MapPrefetchIterator::IsInRange(const Slice& user_key) const {
  const Slice* const bound = is_forward_ ? read_options_.iterate_upper_bound
                                         : read_options_.iterate_lower_bound;
  if (bound != nullptr) {
    const int order = cfd_->user_comparator()->Compare(user_key, *bound);
    if (is_forward_ ? order >= 0 : order < 0) {
      return false;
    }
  }
  return !read_options_.prefix_same_as_start || prefix_extractor_ == nullptr ||
         prefix_.empty() ||
         (prefix_extractor_->InDomain(user_key) &&
          prefix_extractor_->Transform(user_key) == Slice(prefix_));
}

Slice MapPrefetchIterator::key() const {
  return queue_.empty() ? child()->key() : queue_.front().key;
}

Slice MapPrefetchIterator::value() const {
  return queue_.empty() ? child()->value() : queue_.front().value;
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

bool MapPrefetchIterator::MayBeOutOfLowerBound() {
  return !queue_.empty() || child()->MayBeOutOfLowerBound();
}

IterBoundCheck MapPrefetchIterator::UpperBoundCheckResult() {
  return queue_.empty() ? child()->UpperBoundCheckResult()
                        : queue_.front().bound_check;
}

void MapPrefetchIterator::SetPinnedItersMgr(
    PinnedIteratorsManager* pinned_iters_mgr) {
  queue_.SetPinnedItersMgr(pinned_iters_mgr);
  child()->SetPinnedItersMgr(pinned_iters_mgr);
}

bool MapPrefetchIterator::IsKeyPinned() const {
  return queue_.empty() ? child()->IsKeyPinned() : queue_.PinningEnabled();
}

bool MapPrefetchIterator::IsValuePinned() const {
  return queue_.empty() ? child()->IsValuePinned() : queue_.PinningEnabled();
}

}  // namespace ROCKSDB_NAMESPACE
