//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_value_iterator.h"

#include <cassert>
#include <string>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/blob/blob_index.h"
#include "db/blob/blob_source.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/pinned_iterators_manager.h"
#include "rocksdb/iostats_context.h"
#include "test_util/sync_point.h"
#include "util/strata/key_for_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Tells the meter how many reads of files took place in this thread during its
// lifetime. IOStatsContext counts them at every perf level.
class SeekReads {
 public:
  explicit SeekReads(ScanMeter* meter) : meter_(meter), before_(NumReads()) {}
  ~SeekReads() { meter_->OnSeek(NumReads() - before_); }
  SeekReads(const SeekReads&) = delete;
  SeekReads& operator=(const SeekReads&) = delete;

 private:
  // Each read has one temperature. Files without one are counted by whether
  // they are in the last level.
  static uint64_t NumReads() {
    const FileIOByTemperature& reads =
        get_iostats_context()->file_io_stats_by_temperature;
    return reads.hot_file_read_count + reads.warm_file_read_count +
           reads.cool_file_read_count + reads.cold_file_read_count +
           reads.ice_file_read_count + reads.unknown_last_level_read_count +
           reads.unknown_non_last_level_read_count;
  }

  ScanMeter* const meter_;
  const uint64_t before_;
};

// A blob index that every decoder rejects as unknown.
constexpr char kUndecodable[] = {0x7f};

Status NoAddress(const ColumnFamilyData& cfd, const Slice& user_key,
                 const BlobIndex& index) {
  return Status::Corruption(
      "No address for the value of key " +
      KeyForMessage(user_key, cfd.ioptions().allow_data_in_errors) +
      " at sequence number " + std::to_string(index.sequence()) + ", birth " +
      std::to_string(index.mapped().birth));
}

}  // namespace

// A pinned bound index, and the lookup of its entry if the entry is kept.
struct MapValueIterator::PinnedBound {
  explicit PinnedBound(std::shared_ptr<Pinned> all) : pinned(std::move(all)) {
    ++pinned->bounds;
    kept = pinned->kept.end();
  }
  ~PinnedBound() {
    assert(pinned->bounds > 0);
    --pinned->bounds;
    if (kept != pinned->kept.end()) {
      pinned->kept.erase(kept);
    }
  }

  const std::shared_ptr<Pinned> pinned;
  decltype(Pinned::kept)::iterator kept;
  char bytes[BoundBlobIndex::kMaxSize];
};

MapValueIterator::MapValueIterator(ColumnFamilyData* cfd,
                                   const ReadOptions& read_options,
                                   const ScanMeter::Runs& runs,
                                   const SliceTransform* prefix_extractor,
                                   InternalIterator* child, bool in_arena)
    : PassThroughIterator(child, in_arena),
      cfd_(cfd),
      read_options_(read_options),
      suspects_(SuspectsOf(read_options, prefix_extractor)),
      scope_(prefix_extractor),
      meter_(cfd->address_map_store()->scan_debts(), runs,
             cfd->ioptions().stats) {}

MapValueIterator::Suspects MapValueIterator::SuspectsOf(
    const ReadOptions& read_options, const SliceTransform* prefix_extractor) {
  if (read_options.ignore_range_deletions || read_options.table_filter) {
    return Suspects::kAll;
  }
  if (read_options.total_order_seek) {
    return Suspects::kNone;
  }
  if (read_options.tailing) {
    return Suspects::kAll;
  }
  if (prefix_extractor == nullptr) {
    return Suspects::kNone;
  }
  if (!read_options.auto_prefix_mode) {
    return Suspects::kOutsidePrefix;
  }
  // Filters are used only where they do not affect the entries that the scan
  // sees, apart from short keys.
  return read_options.iterate_upper_bound == nullptr ? Suspects::kNone
                                                     : Suspects::kShortKeys;
}

void MapValueIterator::LeaveKept() {
  assert(kept_.found);
  if (IsBoundValid() && bound_is_pinned_ && pinned_bound_ != nullptr) {
    const MapName name = kept_.entry.name;
    pinned_bound_->kept = pinned_->kept.emplace(name, std::move(kept_));
  }
  kept_ = AddressMap::Lookup();
}

const AddressMap::Lookup* MapValueIterator::FindKept(
    const Slice& user_key, const BlobIndex& index) const {
  if (!kept_.found && (pinned_ == nullptr || pinned_->kept.empty())) {
    return nullptr;
  }
  const MapName name{cfd_->address_map_store()->HashOf(user_key),
                     index.sequence(), index.mapped().birth};
  if (kept_.found && kept_.entry.name == name) {
    return &kept_;
  }
  if (pinned_ != nullptr) {
    const auto it = pinned_->kept.find(name);
    if (it != pinned_->kept.end()) {
      return &it->second;
    }
  }
  return nullptr;
}

Status MapValueIterator::FetchMappedValue(const Slice& user_key,
                                          const Slice& value,
                                          PinnableSlice* result) {
  BlobIndex blob_index;
  Status s = BoundBlobIndex::Decode(value, &blob_index);
  if (!s.ok()) {
    return s;
  }
  const AddressMap::Lookup* const kept = FindKept(user_key, blob_index);
  if (kept != nullptr) {
    return FetchFound(user_key, blob_index, *kept, result);
  }
  const AddressMapStore* const blobs = cfd_->address_map_store();
  const AddressMap::Lookup found = blobs->map()->FindByName(
      MapName{blobs->HashOf(user_key), blob_index.sequence(),
              blob_index.mapped().birth},
      /*pin=*/true);
  return found.found ? FetchFound(user_key, blob_index, found, result)
                     : NoAddress(*cfd_, user_key, blob_index);
}

bool MapValueIterator::IsCached(const AddressMap::Lookup& found,
                                size_t user_key_size) const {
  if (cfd_->ioptions().blob_cache == nullptr) {
    return false;
  }
  const MapAddress& address = found.entry.address;
  return cfd_->blob_source()->IsInMemory(
      cfd_->address_map_store()->file_table().Number(address.slot),
      address.offset + BlobRecordV2::ValueOffset(user_key_size));
}

Status MapValueIterator::FetchKept(const Slice& user_key, const Slice& value,
                                   const AddressMap::Lookup& kept,
                                   PinnableSlice* result) {
  assert(kept.found);
  BlobIndex blob_index;
  const Status s = BoundBlobIndex::Decode(value, &blob_index);
  return s.ok() ? FetchFound(user_key, blob_index, kept, result) : s;
}

Status MapValueIterator::FetchFound(const Slice& user_key,
                                    const BlobIndex& blob_index,
                                    const AddressMap::Lookup& found,
                                    PinnableSlice* result) {
  const AddressMapStore* const blobs = cfd_->address_map_store();
  const MapAddress& address = found.entry.address;
  if (meter_.is_on() && address.slot != BlobFileSlotTable::kLostSlot &&
      !IsCached(found, user_key.size())) {
    meter_.OnValue(user_key, blobs->file_table().Number(address.slot),
                   address.offset, address.size);
  }
  const Status s = blobs->FetchFound(
      cfd_->blob_source(), read_options_, user_key, blob_index.sequence(),
      blob_index.mapped(), found, result, /*bytes_read=*/nullptr);
  return s.IsNotFound() ? NoAddress(*cfd_, user_key, blob_index) : s;
}

void MapValueIterator::SeekToFirst() {
  Moved();
  meter_.EndScan();
  scope_.OnSeekToEnd(/*forward=*/true);
  {
    const SeekReads reads(&meter_);
    child()->SeekToFirst();
  }
  SkipDead(/*forward=*/true);
}

void MapValueIterator::SeekToLast() {
  Moved();
  meter_.EndScan();
  scope_.OnSeekToEnd(/*forward=*/false);
  {
    const SeekReads reads(&meter_);
    child()->SeekToLast();
  }
  SkipDead(/*forward=*/false);
}

void MapValueIterator::Seek(const Slice& target) {
  // DBIter also seeks to skip versions of the key that it is at.
  if (has_lost_place_ || !child()->Valid() ||
      child()->user_key() != ExtractUserKey(target)) {
    meter_.EndScan();
  }
  Moved();
  if (suspects_ == Suspects::kOutsidePrefix) {
    scope_.OnSeek(ExtractUserKey(target), /*forward=*/true);
  }
  {
    const SeekReads reads(&meter_);
    child()->Seek(target);
  }
  SkipDead(/*forward=*/true);
}

void MapValueIterator::SeekForPrev(const Slice& target) {
  Moved();
  meter_.EndScan();
  if (suspects_ == Suspects::kOutsidePrefix) {
    scope_.OnSeek(ExtractUserKey(target), /*forward=*/false);
  }
  {
    const SeekReads reads(&meter_);
    child()->SeekForPrev(target);
  }
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

char* MapValueIterator::NewBuffer() const {
  bound_is_pinned_ = PinningEnabled();
  if (!bound_is_pinned_) {
    return buffer_;
  }
  if (pinned_ == nullptr) {
    pinned_ = std::make_shared<Pinned>();
  }
  pinned_bound_ = new PinnedBound(pinned_);
  pinned_iters_mgr_->PinPtr(pinned_bound_, [](void* bound) {
    delete static_cast<PinnedBound*>(bound);
  });
  return pinned_bound_->bytes;
}

Slice MapValueIterator::Replacement() const {
  if (IsBoundValid()) {
    return bound_;
  }
  if (ExtractValueType(child()->key()) != kTypeBlobIndex) {
    return Slice();
  }
  const Slice value = child()->value();
  if (MappedBlobIndex::IsMapped(value)) {
    char* const bytes = NewBuffer();
    bound_ =
        Slice(bytes, BoundBlobIndex::Encode(GetInternalKeySeqno(child()->key()),
                                            value, bytes));
  } else if (!value.empty() &&
             static_cast<unsigned char>(value[0]) >= BoundBlobIndex::kType) {
    bound_ = Slice(kUndecodable, sizeof(kUndecodable));
    bound_is_pinned_ = true;
    pinned_bound_ = nullptr;
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
  switch (suspects_) {
    case Suspects::kNone:
      return false;
    case Suspects::kShortKeys:
      return IsShort(user_key);
    case Suspects::kOutsidePrefix:
      return !scope_.Covers(user_key) || IsShort(user_key);
    case Suspects::kAll:
      return true;
  }
  assert(false);
  return true;
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
  kept_ = blobs->map()->FindByName(
      MapName{blobs->HashOf(key.user_key), key.sequence, index.birth},
      /*pin=*/true);
  if (kept_.found) {
    TEST_SYNC_POINT("MapValueIterator::OnDead:Kept");
  }
  return !kept_.found;
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

}  // namespace ROCKSDB_NAMESPACE
