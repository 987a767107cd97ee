//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_value_iterator.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/blob/blob_index.h"
#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/pinned_iterators_manager.h"
#include "test_util/sync_point.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A blob index that every decoder rejects as unknown.
constexpr char kUndecodable[] = {0x7f};

}  // namespace

MapValueIterator::MapValueIterator(ColumnFamilyData* cfd,
                                   const ReadOptions& read_options,
                                   const SliceTransform* prefix_extractor,
                                   InternalIterator* child, bool in_arena)
    : PassThroughIterator(child, in_arena),
      cfd_(cfd),
      read_options_(read_options),
      suspects_(SuspectsOf(read_options, prefix_extractor)),
      scope_(prefix_extractor) {
  source_.iter = this;
}

MapValueIterator::Suspects MapValueIterator::SuspectsOf(
    const ReadOptions& read_options, const SliceTransform* prefix_extractor) {
  if (read_options.ignore_range_deletions || read_options.table_filter) {
    return Suspects::kAll;
  }
  // With auto_prefix_mode, filters are used only where they do not affect the
  // entries that the scan sees.
  if (prefix_extractor == nullptr || read_options.total_order_seek ||
      read_options.auto_prefix_mode) {
    return Suspects::kNone;
  }
  return read_options.tailing ? Suspects::kAll : Suspects::kOutsidePrefix;
}

MapValueIterator::Source* MapValueIterator::SourceOf(const Slice& value) {
  assert(IsBound(value));
  Source* source = nullptr;
  memcpy(&source, value.data() + 1, sizeof(source));
  return source;
}

Status MapValueIterator::Decode(const Slice& value, BlobIndex* blob_index) {
  assert(IsBound(value));
  Slice index = value;
  index.remove_prefix(kBoundPrefix);
  const Status s = blob_index->DecodeFrom(index);
  blob_index->BindSequence(DecodeFixed64(value.data() + kSequenceOffset));
  return s;
}

AddressMap::Lookup MapValueIterator::TakeKept(std::string* value) {
  Source* const source = SourceOf(*value);
  Source* const lasting = &source->iter->source_;
  memcpy(value->data() + 1, &lasting, sizeof(lasting));
  return std::exchange(source->kept, AddressMap::Lookup());
}

Status MapValueIterator::Fetch(const Slice& user_key, const Slice& value,
                               PinnableSlice* result) {
  BlobIndex blob_index;
  Status s = Decode(value, &blob_index);
  if (!s.ok()) {
    return s;
  }
  const Source& source = *SourceOf(value);
  const MapValueIterator& iter = *source.iter;
  const AddressMapStore& blobs = *iter.cfd_->address_map_store();
  // The value of an entry that is not kept may be requested after the iterator
  // has moved, so `kept` may belong to another entry.
  const MapName& kept = source.kept.entry.name;
  s = source.kept.found && kept.key == blobs.HashOf(user_key) &&
              kept.seq == blob_index.sequence() &&
              kept.birth == blob_index.mapped().birth
          ? blobs.FetchFound(iter.cfd_->blob_source(), iter.read_options_,
                             user_key, blob_index.sequence(),
                             blob_index.mapped(), source.kept, result,
                             /*bytes_read=*/nullptr)
          : blobs.Fetch(iter.cfd_->blob_source(), iter.read_options_, user_key,
                        blob_index.sequence(), blob_index.mapped(), result,
                        /*bytes_read=*/nullptr);
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
  scope_.OnSeekToEnd(/*forward=*/true);
  child()->SeekToFirst();
  SkipDead(/*forward=*/true);
}

void MapValueIterator::SeekToLast() {
  Moved();
  scope_.OnSeekToEnd(/*forward=*/false);
  child()->SeekToLast();
  SkipDead(/*forward=*/false);
}

void MapValueIterator::Seek(const Slice& target) {
  Moved();
  if (suspects_ == Suspects::kOutsidePrefix) {
    scope_.OnSeek(ExtractUserKey(target), /*forward=*/true);
  }
  child()->Seek(target);
  SkipDead(/*forward=*/true);
}

void MapValueIterator::SeekForPrev(const Slice& target) {
  Moved();
  if (suspects_ == Suspects::kOutsidePrefix) {
    scope_.OnSeek(ExtractUserKey(target), /*forward=*/false);
  }
  child()->SeekForPrev(target);
  SkipDead(/*forward=*/false);
}

void MapValueIterator::Next() {
  Moved();
  BeforeStep(/*forward=*/true);
  child()->Next();
  SkipDead(/*forward=*/true);
}

bool MapValueIterator::NextAndGetResult(IterateResult* result) {
  if (suspects_ == Suspects::kNone) {
    Moved();
    return child()->NextAndGetResult(result);
  }
  Next();
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
  BeforeStep(/*forward=*/false);
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
      PinnedBound* const copy = new PinnedBound;
      copy->source = std::exchange(source_, Source{this});
      bound_ = Slice(copy->bytes, Bind(value, &copy->source, copy->bytes));
      bound_is_pinned_ = true;
      pinned_iters_mgr_->PinPtr(
          copy, [](void* bound) { delete static_cast<PinnedBound*>(bound); });
    } else {
      bound_ = Slice(buffer_, Bind(value, &source_, buffer_));
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

void MapValueIterator::BeforeStep(bool forward) {
  if (suspects_ == Suspects::kOutsidePrefix) {
    scope_.OnStep(child()->user_key(), forward);
  }
}

bool MapValueIterator::IsSuspect(const Slice& user_key) const {
  return suspects_ == Suspects::kAll || !scope_.Covers(user_key);
}

bool MapValueIterator::OnDead() {
  ParsedInternalKey key;
  if (!ParseInternalKey(child()->key(), &key, /*log_err_key=*/false).ok() ||
      key.type != kTypeBlobIndex || !IsSuspect(key.user_key)) {
    return false;
  }
  if (!child()->PrepareValue()) {
    failed_ = true;
    return false;
  }
  MappedBlobIndex index;
  if (!index.DecodeFrom(child()->value()).ok()) {
    return false;
  }
  const AddressMapStore* const blobs = cfd_->address_map_store();
  source_.kept = blobs->map()->FindByName(
      MapName{blobs->HashOf(key.user_key), key.sequence, index.birth},
      /*pin=*/true);
  if (source_.kept.found) {
    TEST_SYNC_POINT("MapValueIterator::Kept");
  }
  return !source_.kept.found;
}

void MapValueIterator::SkipDead(bool forward) {
  if (suspects_ == Suspects::kNone) {
    return;
  }
  while (Valid() && OnDead()) {
    if (forward) {
      child()->Next();
    } else {
      child()->Prev();
    }
  }
}

size_t MapValueIterator::Bind(const Slice& value, Source* source,
                              char* buffer) const {
  buffer[0] = kBound;
  memcpy(buffer + 1, &source, sizeof(source));
  EncodeFixed64(buffer + kSequenceOffset, GetInternalKeySeqno(child()->key()));
  const size_t size = std::min(value.size(), kMaxBound - kBoundPrefix);
  memcpy(buffer + kBoundPrefix, value.data(), size);
  return kBoundPrefix + size;
}

}  // namespace ROCKSDB_NAMESPACE
