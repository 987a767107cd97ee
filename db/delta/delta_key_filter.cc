//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_key_filter.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "logging/logging.h"
#include "rocksdb/comparator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;

}  // namespace

DeltaKeyFilter::DeltaKeyFilter(
    const DeltaStore* store, const DeltaVersion* version,
    std::vector<std::shared_ptr<DeltaFileReader>> earlier,
    const ReadOptions& read_options)
    : store_(store),
      version_(version),
      settings_(store->tables().settings()),
      ucmp_(settings_->ucmp()),
      earlier_(std::move(earlier)),
      read_options_(read_options) {
  if (version_ != nullptr && version_->Buckets().empty()) {
    // The same for all keys.
    recent_ = version_->RecentFilesAbove(Kind::kOperands, /*floor=*/0);
  }
}

bool DeltaKeyFilter::MayHoldOperand(const Slice& user_key) {
  for (const auto& reader : earlier_) {
    if (IsInRange(reader->description(), user_key) &&
        reader->MayHaveKey(read_options_, user_key)) {
      return true;
    }
  }
  if (version_ == nullptr) {
    return false;
  }
  EnterBucketOf(user_key);
  return (extent_ != nullptr && MayHave(*extent_, user_key)) ||
         std::any_of(recent_.begin(), recent_.end(),
                     [&](const DeltaVersion::FilePtr& file) {
                       return MayHave(*file, user_key);
                     });
}

bool DeltaKeyFilter::OverlapsRange(const Slice& start, const Slice& end) const {
  return std::any_of(earlier_.begin(), earlier_.end(),
                     [&](const auto& reader) {
                       const DeltaFileDescription& file = reader->description();
                       return ucmp_->Compare(file.smallest, end) <= 0 &&
                              ucmp_->Compare(file.largest, start) >= 0;
                     }) ||
         (version_ != nullptr && version_->OverlapsRange(&start, &end));
}

void DeltaKeyFilter::EnterBucketOf(const Slice& user_key) {
  const DeltaBucketTable& buckets = version_->Buckets();
  if (buckets.empty()) {
    return;
  }
  if (has_bucket_) {
    // Check whether the key is in the same bucket.
    const DeltaBucketTable::Position next = buckets.Next(bucket_);
    if ((bucket_ == buckets.Begin() ||
         ucmp_->Compare(buckets.LowerBound(bucket_), user_key) <= 0) &&
        (next == buckets.End() ||
         ucmp_->Compare(user_key, buckets.LowerBound(next)) < 0)) {
      return;
    }
  }
  bucket_ = buckets.Find(user_key, ucmp_);
  has_bucket_ = true;
  const DeltaBucketState& state = buckets.State(bucket_);
  recent_ = version_->RecentFilesAbove(Kind::kOperands, state.floor);
  // The Version owns the file.
  extent_ = state.HasOperands() ? version_->GetFile(state.extent_number).get()
                                : nullptr;
}

bool DeltaKeyFilter::IsInRange(const DeltaFileDescription& file,
                               const Slice& user_key) const {
  return ucmp_->Compare(file.smallest, user_key) <= 0 &&
         ucmp_->Compare(user_key, file.largest) <= 0;
}

bool DeltaKeyFilter::MayHave(const DeltaFileMeta& file, const Slice& user_key) {
  if (!IsInRange(file.description(), user_key)) {
    return false;
  }
  DeltaFileReader* reader = file.OpenedReader();
  if (reader == nullptr) {
    if (unreadable_.count(file.number()) > 0) {
      return true;
    }
    const Status s = store_->GetReader(read_options_, file, &reader);
    if (!s.ok()) {
      unreadable_.insert(file.number());
      ROCKS_LOG_WARN(settings_->ioptions().logger,
                     "[%s] Delta file #%" PRIu64
                     " cannot be opened, all keys in its range get anchors: %s",
                     settings_->family->name.c_str(), file.number(),
                     s.ToString().c_str());
      return true;
    }
  }
  return reader->MayHaveKey(read_options_, user_key);
}

}  // namespace ROCKSDB_NAMESPACE
