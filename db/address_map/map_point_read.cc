//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_point_read.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/address_map/mapped_record_name.h"
#include "db/blob/blob_source.h"
#include "db/blob_heat/blob_heat.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/column_family.h"
#include "db/read_callback.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "monitoring/perf_context_imp.h"
#include "monitoring/statistics_impl.h"
#include "test_util/sync_point.h"
#include "util/strata/key_for_message.h"

namespace ROCKSDB_NAMESPACE {

MapPointRead::MapPointRead(ColumnFamilyData* cfd, const Slice& user_key,
                           const ReadOptions& read_options,
                           ImplicitSnapshotRegistry* bounds)
    : cfd_(cfd),
      blobs_(cfd->address_map_store()),
      user_key_(user_key),
      read_options_(read_options),
      can_register_(bounds != nullptr),
      implicit_snapshot_(read_options, bounds) {
  durable_ = read_options.read_tier == kPersistedTier;
  hash_ = blobs_->HashOf(user_key);
}

void MapPointRead::Start() {
  TEST_SYNC_POINT("MapPointRead::Start");
  floor_ = 0;
  asked_ = false;
  stopped_ = false;
  status_ = Status::OK();
  replaced_ = false;
  pin_.Reset();
  cached_value_.Reset();
  is_cached_ = false;
  has_direct_ = FindDirectSeq(&direct_seq_);
  if (UNLIKELY(blobs_->refuses_reads())) {
    StopWithoutValue(blobs_->read_refusal());
  }
  TEST_SYNC_POINT("MapPointRead::Start:LookedUp");
}

bool MapPointRead::FindDirectSeq(SequenceNumber* seq) const {
  if (!durable_) {
    return blobs_->map()->DirectSeq(hash_, seq);
  }
  const AddressMap::Lookup found =
      blobs_->map()->FindDurableDirect(hash_, /*pin=*/false);
  *seq = found.entry.name.seq;
  return found.found;
}

bool MapPointRead::HasVisibleDirectFrom(SequenceNumber seq) const {
  SequenceNumber direct = 0;
  return FindDirectSeq(&direct) && direct >= seq && IsVisible(direct);
}

void MapPointRead::Attach(const SuperVersion* super_version,
                          SequenceNumber sequence, ReadCallback* callback,
                          const SequenceNumber* max_covering_tombstone_seq) {
  super_version_ = super_version;
  sequence_ = sequence;
  callback_ = callback;
  max_covering_tombstone_seq_ = max_covering_tombstone_seq;
  // Jobs with a snapshot checker ignore bounds, so a read with a callback is
  // not protected.
  protected_ =
      callback == nullptr && (is_bounded_ || implicit_snapshot_.taken() ||
                              read_options_.snapshot != nullptr);
  if (has_direct_ && IsVisible(direct_seq_)) {
    floor_ = direct_seq_ + 1;
  }
}

void MapPointRead::FindNewest(
    SequenceNumber* newest, const SequenceNumber* max_covering_tombstone_seq) {
  newest_ = newest;
  max_covering_tombstone_seq_ = max_covering_tombstone_seq;
}

bool MapPointRead::Skips(const FdWithKeyRange& file) {
  const bool skips = file.lsm_ceiling <= floor_;
  asked_ |= !skips;
  return skips;
}

MapPointRead::Action MapPointRead::OnEntry(const ParsedInternalKey& entry,
                                           const Slice& value) {
  if (newest_ != nullptr) {
    *newest_ = std::max(entry.sequence, *max_covering_tombstone_seq_);
    return Stop(Status::OK());
  }
  assert(!replaced_);
  if (UNLIKELY(stopped_)) {
    return Action::kStop;  // stopped before the search began
  }
  if (entry.sequence < floor_) {
    return TakeDirect();
  }
  const bool is_covered = *max_covering_tombstone_seq_ > entry.sequence;
  if (is_covered || entry.type != kTypeBlobIndex ||
      !MappedBlobIndex::IsMapped(value)) {
    // A merge operand does not end the search.
    return entry.type == kTypeMerge && !is_covered
               ? Action::kAsIs
               : EndAsIs(is_covered ? *max_covering_tombstone_seq_
                                    : entry.sequence + 1);
  }
  return TakeNamed(entry.sequence, value);
}

MapPointRead::Action MapPointRead::EndAsIs(SequenceNumber first_above) {
  TEST_SYNC_POINT("MapPointRead::EndAsIs");
  return HasVisibleDirectFrom(first_above) ? Restart() : Action::kAsIs;
}

MapPointRead::Action MapPointRead::TakeDirect() {
  assert(floor_ > 0 && !replaced_);
  TEST_SYNC_POINT("MapPointRead::TakeDirect");
  AddressMap::Lookup found =
      durable_ ? blobs_->map()->FindDurableDirect(hash_, /*pin=*/true)
               : blobs_->map()->FindDirect(hash_, /*pin=*/true);
  if (!found.found || found.entry.name.seq != direct_seq_) {
    return Restart();
  }
  RecordTick(cfd_->ioptions().stats, BLOB_MAP_DIRECT_READ);
  PERF_COUNTER_ADD(blob_map_direct_count, 1);
  if (!asked_) {
    RecordTick(cfd_->ioptions().stats, BLOB_MAP_BYPASS);
    PERF_COUNTER_ADD(blob_map_bypass_count, 1);
  }
  return Replace(std::move(found));
}

MapPointRead::Action MapPointRead::TakeNamed(SequenceNumber seq,
                                             const Slice& value) {
  MappedBlobIndex index;
  Status s = index.DecodeFrom(value);
  if (!s.ok()) {
    return Stop(std::move(s));
  }
  TEST_SYNC_POINT("MapPointRead::TakeNamed");
  AddressMap::Lookup found =
      blobs_->map()->FindByName(MapName{hash_, seq, index.birth}, /*pin=*/true);
  if (durable_ ? HasVisibleDirectFrom(seq + 1)
               : found.has_direct && found.direct_seq > seq &&
                     IsVisible(found.direct_seq)) {
    return Restart();
  }
  if (found.found) {
    RecordTick(cfd_->ioptions().stats, BLOB_MAP_NAMED_READ);
    PERF_COUNTER_ADD(blob_map_named_count, 1);
    return Replace(std::move(found));
  }
  if (!IsCurrent()) {
    return Restart();
  }
  if (read_options_.ignore_range_deletions) {
    // The value is gone because a range deletion hides the entry, which this
    // read ignores. Operands above the entry are live.
    return ReplaceByDeletion(seq);
  }
  return StopWithoutValue(Status::Corruption(
      "No address for the value of key " + KeyText() + " at sequence number " +
      std::to_string(seq) + ", birth " + std::to_string(index.birth)));
}

std::string MapPointRead::KeyText() const {
  return KeyForMessage(user_key_, cfd_->ioptions().allow_data_in_errors);
}

bool MapPointRead::ConfirmAbsence() {
  assert(floor_ == 0 && !replaced_);
  if (newest_ != nullptr) {
    Stop(Status::OK());
    return false;
  }
  TEST_SYNC_POINT("MapPointRead::ConfirmAbsence");
  if (blobs_->versioned_only()) {
    return true;
  }
  if (HasVisibleDirectFrom(*max_covering_tombstone_seq_) ||
      // Evaluated after the lookup in the map.
      (!IsProtected() && !IsCurrent())) {
    Restart();
    return false;
  }
  return true;
}

MapPointRead::Action MapPointRead::Replace(AddressMap::Lookup&& found) {
  const MapName& name = found.entry.name;
  if (found.entry.address.slot == BlobFileSlotTable::kLostSlot) {
    return StopWithoutValue(Status::Corruption(
        "The value of key " + KeyText() + " at sequence number " +
        std::to_string(name.seq) + " is lost"));
  }
  MappedRecordName::Encode(user_key_, name.seq, name.birth, &record_name_);
  record_name_slice_ = record_name_;
  replaced_ = true;
  const MappedRowCache* const row_cache = blobs_->row_cache();
  if (row_cache != nullptr &&
      row_cache->Lookup(user_key_, name.seq, name.birth, &cached_value_)) {
    key_ = ParsedInternalKey(user_key_, name.seq, kTypeValue);
    is_cached_ = true;
    return Action::kReplaced;
  }
  if (UNLIKELY(blobs_->heat()->IsOn())) {
    CountRead(found);
  }
  blobs_->ToBlobIndex(found, user_key_.size(), &blob_index_);
  key_ = ParsedInternalKey(user_key_, name.seq, kTypeBlobIndex);
  pin_ = std::move(found.pin);
  TEST_SYNC_POINT("MapPointRead::Replace:Pinned");
  return Action::kReplaced;
}

MapPointRead::Action MapPointRead::ReplaceByDeletion(SequenceNumber seq) {
  replaced_ = true;
  blob_index_.clear();
  key_ = ParsedInternalKey(user_key_, seq, kTypeDeletion);
  return Action::kReplaced;
}

void MapPointRead::CountRead(const AddressMap::Lookup& found) const {
  const MapAddress& address = found.entry.address;
  const BlobFileSlotTable& files = blobs_->file_table();
  if (read_options_.read_tier == kBlockCacheTier ||
      cfd_->blob_source()->IsInMemory(
          files.Number(address.slot),
          address.offset + BlobRecordV2::ValueOffset(user_key_.size()))) {
    return;
  }
  blobs_->heat()->OnRead(user_key_, found.entry.name,
                         files.PlaceOf(address.slot), address.size);
}

void MapPointRead::FillRowCache(const Slice& value) const {
  // A value that was read at a snapshot may be old, and would replace the
  // newest one.
  if (blobs_->row_cache() != nullptr && replaced_ && !value.empty() &&
      read_options_.fill_cache && read_options_.snapshot == nullptr) {
    blobs_->row_cache()->Insert(user_key_, MappedRecordName::Seq(record_name_),
                                MappedRecordName::Birth(record_name_), value);
  }
}

MapPointRead::Action MapPointRead::Restart() {
  RecordTick(cfd_->ioptions().stats, BLOB_MAP_READ_RESTART);
  PERF_COUNTER_ADD(blob_map_restart_count, 1);
  return Stop(Status::OK());
}

MapPointRead::Action MapPointRead::StopWithoutValue(Status s) {
  return Stop(read_options_.read_tier == kBlockCacheTier
                  ? Status::Incomplete("Value not in memory", s.ToString())
                  : std::move(s));
}

MapPointRead::Action MapPointRead::Stop(Status s) {
  stopped_ = true;
  status_ = std::move(s);
  return Action::kStop;
}

bool MapPointRead::IsVisible(SequenceNumber seq) const {
  return seq <= sequence_ &&
         (callback_ == nullptr || callback_->IsVisible(seq));
}

bool MapPointRead::IsProtected() const {
  if (!protected_) {
    return false;
  }
  const uint64_t version = super_version_->current->GetVersionNumber();
  return !blobs_->folded_versions()->IsBefore(version) &&
         !blobs_->HasReplacedSince(version);
}

bool MapPointRead::IsCurrent() const {
  // Between the commit of an edit and the installation of its SuperVersion,
  // compactions of the new Version may already remove entries that the edit
  // hides.
  return cfd_->GetSuperVersionNumber() == super_version_->version_number &&
         blobs_->appended_version() ==
             super_version_->current->GetVersionNumber();
}

}  // namespace ROCKSDB_NAMESPACE
