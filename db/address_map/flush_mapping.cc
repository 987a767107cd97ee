//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/flush_mapping.h"

#include <cinttypes>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A flush reads only filters, and most of them are cached.
ReadOptions FlushReadOptions(Env::IOActivity activity) {
  ReadOptions options;
  options.io_activity = activity;
  return options;
}

}  // namespace

std::unique_ptr<FlushMapping> FlushMapping::Begin(
    ColumnFamilyData* cfd, Version* base, SequenceNumber earliest_reader,
    bool any_order, uint64_t sst_number, Env::IOActivity activity) {
  const AddressMapStore* const blobs = cfd->address_map_store();
  if (blobs == nullptr) {
    return nullptr;
  }
  return std::unique_ptr<FlushMapping>(new FlushMapping(
      cfd, base, earliest_reader, any_order, sst_number, activity));
}

std::unique_ptr<FlushMapping> FlushMapping::BeginFold(ColumnFamilyData* cfd,
                                                      Version* base,
                                                      uint64_t sst_number) {
  auto mapping = Begin(cfd, base, /*earliest_reader=*/0, /*any_order=*/true,
                       sst_number, Env::IOActivity::kCompaction);
  if (mapping != nullptr) {
    mapping->values_are_new_ = true;
  }
  return mapping;
}

FlushMapping::FlushMapping(ColumnFamilyData* cfd, Version* base,
                           SequenceNumber earliest_reader, bool any_order,
                           uint64_t sst_number, Env::IOActivity activity)
    : blobs_(cfd->address_map_store()),
      cfd_(cfd),
      sst_number_(sst_number),
      any_order_(any_order),
      direct_mode_(earliest_reader, base, FlushReadOptions(activity),
                   [](int, const FileMetaData&) { return true; }),
      publication_(blobs_, sst_number, /*when_present=*/true, activity) {}

FlushMapping::~FlushMapping() = default;

uint64_t FlushMapping::hash_seed() const { return blobs_->hash_seed(); }

MappedBlobIndex FlushMapping::NameOf(const Slice& user_key, SequenceNumber seq,
                                     uint64_t file_number, bool value_changed) {
  MappedBlobIndex name;
  const bool direct =
      !any_order_ && blobs_->bypass() && direct_mode_.IsSafe(user_key, seq);
  name.mode = direct ? MappedBlobIndex::Mode::kDirect
                     : MappedBlobIndex::Mode::kVersioned;
  name.birth = value_changed || values_are_new_ ? file_number : 0;
  ++(direct ? num_direct_ : num_versioned_);
  return name;
}

void FlushMapping::OnValue(const Slice& user_key, SequenceNumber seq,
                           const Slice& blob_index, const Slice& value) {
  if (blobs_->row_cache() == nullptr ||
      (has_last_key_ && user_key == Slice(last_key_))) {
    return;
  }
  MappedBlobIndex index;
  if (index.DecodeFrom(blob_index).ok()) {
    blobs_->row_cache()->Update(user_key, seq, index.birth, value);
  }
}

void FlushMapping::OnFileClosed(MappedBlobFile&& file) {
  publication_.LimitIndex(&file);
  files_.push_back(std::move(file));
}

void FlushMapping::OnEntry(const ParsedInternalKey& key, const Slice& value) {
  if (blobs_->row_cache() != nullptr &&
      !(has_last_key_ && key.user_key == Slice(last_key_))) {
    if (key.type != kTypeMerge &&
        !(key.type == kTypeBlobIndex && MappedBlobIndex::IsMapped(value))) {
      blobs_->row_cache()->Erase(key.user_key);
    }
    last_key_.assign(key.user_key.data(), key.user_key.size());
    has_last_key_ = true;
  }
  if (any_order_ || key.type == kTypeMerge) {
    return;  // A merge operand hides nothing.
  }
  const bool is_mapped =
      key.type == kTypeBlobIndex && MappedBlobIndex::IsMapped(value);
  const bool is_direct = is_mapped && MappedBlobIndex::IsDirect(value);
  if (is_direct && last_.seq <= key.sequence) {
    return;  // The last entry is not a newer one of this key.
  }
  const MapKeyHash hash = blobs_->HashOf(key.user_key);
  if (is_mapped && last_.seq > key.sequence && last_.key == hash) {
    // A snapshot keeps both entries. The map does not contain this one yet.
    hiding_.push_back(last_);
  }
  if (is_direct) {
    // It supersedes older direct entries without further action, and there are
    // no other older entries.
    return;
  }
  last_ = Hiding{hash, key.sequence};
  if (blobs_->map()->MayHaveBelow(hash, key.sequence)) {
    hiding_.push_back(last_);
  }
}

void FlushMapping::OnRangeDeletion(const RangeTombstone& deletion) {
  if (!any_order_) {
    range_deletions_.push_back(CommittedRangeDeletion{
        deletion.start_key_.ToString(), deletion.end_key_.ToString(),
        /*seq=*/deletion.seq_, /*oldest=*/deletion.seq_});
  }
}

Status FlushMapping::Publish() {
  TEST_SYNC_POINT("FlushMapping::Publish");
  return publication_.Publish(std::move(files_));
}

void FlushMapping::Settle(const std::vector<SequenceNumber>& readers) {
  TEST_SYNC_POINT("FlushMapping::Settle");
  publication_.Settle(/*keep_superseded=*/false);
  if (publication_.committed()) {
    const ImmutableOptions& ioptions = cfd_->ioptions();
    RecordTick(ioptions.stats, BLOB_MAP_DIRECT_WRITTEN, num_direct_);
    RecordTick(ioptions.stats, BLOB_MAP_VERSIONED_WRITTEN, num_versioned_);
    ROCKS_LOG_INFO(ioptions.logger,
                   "[%s] Table #%" PRIu64 ": %" PRIu64 " direct, %" PRIu64
                   " versioned values into the address map, %zu keys may hide "
                   "older values",
                   cfd_->GetName().c_str(), sst_number_, num_direct_,
                   num_versioned_, hiding_.size());
    for (const Hiding& hiding : hiding_) {
      blobs_->blocked_removals()->Hide(hiding.key, hiding.seq,
                                       publication_.born_before(), readers);
    }
    for (CommittedRangeDeletion& deletion : range_deletions_) {
      deletion.born_before = publication_.born_before();
    }
    const size_t left_out =
        blobs_->range_deletions()->Add(std::move(range_deletions_));
    if (left_out > 0) {
      ROCKS_LOG_WARN(ioptions.logger,
                     "[%s] Table #%" PRIu64
                     ": too many range deletions are pending, "
                     "the values under %zu of them are left to compactions",
                     cfd_->GetName().c_str(), sst_number_, left_out);
    }
  }
  hiding_.clear();
  range_deletions_.clear();
}

}  // namespace ROCKSDB_NAMESPACE
