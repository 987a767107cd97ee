//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob/map_value_iterator.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "db/blob/blob_index.h"
#include "db/blob/mapped_blob_index.h"
#include "db/blob/mapped_blobs.h"
#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/pinned_iterators_manager.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Any decoder says that it does not know this.
constexpr char kUndecodable[] = {0x7f};

}  // namespace

MapValueIterator::MapValueIterator(ColumnFamilyData* cfd,
                                   const ReadOptions& read_options,
                                   InternalIterator* child, bool in_arena)
    : PassThroughIterator(child, in_arena),
      cfd_(cfd),
      read_options_(read_options),
      dead_in_(read_options.ignore_range_deletions || read_options.table_filter
                   ? cfd->mapped_blobs()
                   : nullptr) {}

Status MapValueIterator::Decode(const Slice& value, BlobIndex* blob_index) {
  assert(IsBound(value));
  Slice index = value;
  index.remove_prefix(kBoundPrefix);
  const Status s = blob_index->DecodeFrom(index);
  blob_index->BindSequence(DecodeFixed64(value.data() + kSequenceOffset));
  return s;
}

Status MapValueIterator::Fetch(const Slice& user_key, const Slice& value,
                               PinnableSlice* result) {
  BlobIndex blob_index;
  Status s = Decode(value, &blob_index);
  if (!s.ok()) {
    return s;
  }
  const MapValueIterator* iter = nullptr;
  memcpy(&iter, value.data() + 1, sizeof(iter));
  s = iter->cfd_->mapped_blobs()->Fetch(
      iter->cfd_->blob_source(), iter->read_options_, user_key,
      blob_index.sequence(), blob_index.mapped(), result,
      /*bytes_read=*/nullptr);
  if (s.IsNotFound() && iter->dead_in_ != nullptr) {
    return Status::Aborted(
        "A value that something hides from other readers was freed meanwhile "
        "(ReadOptions::ignore_range_deletions, table_filter): seek again");
  }
  if (s.IsNotFound()) {
    return Status::Corruption(
        "No address for the value of key " + user_key.ToString(/*hex=*/true) +
        " at sequence number " + std::to_string(blob_index.sequence()) +
        ", birth " + std::to_string(blob_index.mapped().birth));
  }
  return s;
}

void MapValueIterator::SeekToFirst() {
  Moved();
  child()->SeekToFirst();
  SkipDead(/*forward=*/true);
}

void MapValueIterator::SeekToLast() {
  Moved();
  child()->SeekToLast();
  SkipDead(/*forward=*/false);
}

void MapValueIterator::Seek(const Slice& target) {
  Moved();
  child()->Seek(target);
  SkipDead(/*forward=*/true);
}

void MapValueIterator::SeekForPrev(const Slice& target) {
  Moved();
  child()->SeekForPrev(target);
  SkipDead(/*forward=*/false);
}

void MapValueIterator::Next() {
  Moved();
  child()->Next();
  SkipDead(/*forward=*/true);
}

bool MapValueIterator::NextAndGetResult(IterateResult* result) {
  Moved();
  if (dead_in_ == nullptr) {
    return child()->NextAndGetResult(result);
  }
  child()->Next();
  SkipDead(/*forward=*/true);
  if (!Valid()) {
    return false;
  }
  result->key = child()->key();
  result->bound_check_result = child()->UpperBoundCheckResult();
  result->value_prepared = false;
  return true;
}

void MapValueIterator::Prev() {
  Moved();
  child()->Prev();
  SkipDead(/*forward=*/false);
}

Slice MapValueIterator::value() const {
  const Slice replacement = Replacement();
  return replacement.empty() ? child()->value() : replacement;
}

bool MapValueIterator::IsValuePinned() const {
  if (Replacement().empty()) {
    return child()->IsValuePinned();
  }
  return bound_is_pinned_;
}

bool MapValueIterator::PinningEnabled() const {
  return pinned_iters_mgr_ != nullptr && pinned_iters_mgr_->PinningEnabled();
}

Slice MapValueIterator::Replacement() const {
  if (!bound_.empty() && (bound_is_pinned_ || !PinningEnabled())) {
    return bound_;
  }
  if (ExtractValueType(child()->key()) != kTypeBlobIndex) {
    return Slice();
  }
  const Slice value = child()->value();
  if (MappedBlobIndex::IsMapped(value)) {
    if (PinningEnabled()) {
      char* const copy = new char[kMaxBound];
      bound_ = Slice(copy, Bind(value, copy));
      bound_is_pinned_ = true;
      pinned_iters_mgr_->PinPtr(
          copy, [](void* memory) { delete[] static_cast<char*>(memory); });
    } else {
      bound_ = Slice(buffer_, Bind(value, buffer_));
      bound_is_pinned_ = false;
    }
  } else if (!value.empty() && static_cast<unsigned char>(value[0]) >= kBound) {
    bound_ = Slice(kUndecodable, sizeof(kUndecodable));
    bound_is_pinned_ = true;
  }
  return bound_;
}

void MapValueIterator::SetPinnedItersMgr(
    PinnedIteratorsManager* pinned_iters_mgr) {
  pinned_iters_mgr_ = pinned_iters_mgr;
  child()->SetPinnedItersMgr(pinned_iters_mgr);
}

bool MapValueIterator::OnDead() {
  ParsedInternalKey key;
  if (!ParseInternalKey(child()->key(), &key, /*log_err_key=*/false).ok() ||
      key.type != kTypeBlobIndex) {
    return false;
  }
  if (!child()->PrepareValue()) {
    failed_ = true;
    return false;
  }
  MappedBlobIndex index;
  return index.DecodeFrom(child()->value()).ok() &&
         !dead_in_->map()
              ->FindByName(MapName{dead_in_->HashOf(key.user_key),
                                   key.sequence, index.birth},
                           /*pin=*/false)
              .found;
}

void MapValueIterator::SkipDead(bool forward) {
  while (dead_in_ != nullptr && Valid() && OnDead()) {
    if (forward) {
      child()->Next();
    } else {
      child()->Prev();
    }
  }
}

size_t MapValueIterator::Bind(const Slice& value, char* buffer) const {
  const MapValueIterator* const self = this;
  buffer[0] = kBound;
  memcpy(buffer + 1, &self, sizeof(self));
  EncodeFixed64(buffer + kSequenceOffset, GetInternalKeySeqno(child()->key()));
  const size_t size = std::min(value.size(), kMaxBound - kBoundPrefix);
  memcpy(buffer + kBoundPrefix, value.data(), size);
  return kBoundPrefix + size;
}

}  // namespace ROCKSDB_NAMESPACE
