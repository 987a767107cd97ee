//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_read.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "db/dbformat.h"
#include "db/delta/delta_async_reads.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_store.h"
#include "db/lookup_key.h"
#include "rocksdb/comparator.h"
#include "rocksdb/options.h"
#include "test_util/sync_point.h"
#include "util/strata/io_uring_batch.h"
#include "util/strata/saved_perf_counts.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns true if the file has the key in its range, and entries that the
// reader may see. The end of a range anchor is treated as included, so the
// result may be a false positive.
bool MayHold(const DeltaFileDescription& file, const LookupKey& key,
             const Comparator* ucmp) {
  const Slice user_key = key.user_key();
  return file.smallest_seq <= GetInternalKeySeqno(key.internal_key()) &&
         ucmp->Compare(file.smallest, user_key) <= 0 &&
         ucmp->Compare(user_key, file.largest) <= 0;
}

}  // namespace

const DeltaFileMeta* FindSortedDeltaFile(const DeltaVersion& version,
                                         uint64_t number) {
  const std::vector<DeltaVersion::SortedFile>& files = version.SortedFiles();
  const auto found =
      std::lower_bound(files.begin(), files.end(), number,
                       [](const DeltaVersion::SortedFile& sorted, uint64_t n) {
                         return sorted.file->number() < n;
                       });
  return found != files.end() && found->file->number() == number
             ? found->file.get()
             : nullptr;
}

//======== DeltaKeyView

DeltaKeyView::DeltaKeyView(const DeltaVersion& version, const Slice& user_key)
    : version_(&version) {
  const DeltaBucketTable& buckets = version.Buckets();
  if (!buckets.empty()) {
    bucket_ = buckets.State(buckets.Find(user_key, version.user_comparator()));
  }
}

const DeltaFileMeta* DeltaKeyView::SortedFile(Kind kind) const {
  const uint64_t number =
      kind == Kind::kOperands ? bucket_.extent_number : bucket_.anchors_number;
  if (number == 0) {
    return nullptr;
  }
  const DeltaFileMeta* const file = FindSortedDeltaFile(*version_, number);
  assert(file != nullptr);
  return file;
}

Status DeltaKeyView::NewestAnchor(const DeltaStore& store,
                                  const ReadOptions& read_options,
                                  const LookupKey& key, SequenceNumber* seq,
                                  uint64_t covered) const {
  *seq = 0;
  Status s;
  ForAnchorFiles(key, covered, [&](const DeltaFileMeta& file) {
    // Not all newer anchors are in newer files: DeleteFilesInRanges() writes
    // anchors with old sequence numbers to a new file.
    if (file.description().largest_seq <= *seq) {
      return true;
    }
    DeltaFileReader* reader = nullptr;
    SequenceNumber newest = 0;
    s = store.GetReader(read_options, file, &reader);
    if (s.ok()) {
      s = reader->NewestAnchor(read_options, key, &newest);
    }
    *seq = std::max(*seq, newest);
    return s.ok();
  });
  return s;
}

SequenceNumber DeltaKeyView::LikelyAnchor(const DeltaStore& store,
                                          const ReadOptions& read_options,
                                          const LookupKey& key,
                                          uint64_t covered) const {
  SequenceNumber likely = 0;
  ForAnchorFiles(key, covered, [&](const DeltaFileMeta& file) {
    DeltaFileReader* reader = nullptr;
    const Status s = store.GetReader(read_options, file, &reader);
    if (s.ok() && reader->MayHaveKey(read_options, key)) {
      likely = std::max(likely, file.description().smallest_seq);
    }
    // NewestAnchor() tries again if necessary.
    IGNORE_STATUS_IF_ERROR(s);
    s.PermitUncheckedError();
    return true;
  });
  return likely;
}

void DeltaKeyView::BeginNewestAnchor(const ReadOptions& read_options,
                                     const LookupKey& key, uint64_t covered,
                                     OverlappedReads* reads) const {
  ForAnchorFiles(key, covered, [&](const DeltaFileMeta& file) {
    DeltaFileReader* const reader = file.OpenedReader();
    if (reader != nullptr && reader->MayHaveKey(read_options, key)) {
      reader->BeginRead(read_options, key, reads);
    }
    return true;
  });
}

template <typename Fn>
void DeltaKeyView::ForAnchorFiles(const LookupKey& key, uint64_t covered,
                                  Fn fn) const {
  const auto may_hold = [&](const DeltaFileMeta& file) {
    return MayHold(file.description(), key, version_->user_comparator());
  };
  for (const DeltaVersion::FilePtr& file : RecentFiles(Kind::kAnchors)) {
    if (file->description().last_epoch <= covered) {
      break;  // all following files are covered, too
    }
    if (may_hold(*file) && !fn(*file)) {
      return;
    }
  }
  const DeltaFileMeta* const sorted = SortedFile(Kind::kAnchors);
  if (sorted != nullptr && covered == 0 && may_hold(*sorted)) {
    fn(*sorted);
  }
}

uint64_t DeltaKeyView::Horizon() const {
  // Anchors of ingested files have epochs that are not in the order of commits.
  const DeltaVersion::Files recent = RecentFiles(Kind::kOperands);
  return recent.empty() ? bucket_.floor
                        : (*recent.begin())->description().last_epoch;
}

uint64_t DeltaKeyView::Cut(uint64_t covered) const {
  uint64_t cut = UINT64_MAX;
  for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
    for (const DeltaVersion::FilePtr& file : RecentFiles(kind)) {
      if (file->description().last_epoch <= covered) {
        break;
      }
      cut = std::min(cut, file->description().first_epoch);
    }
  }
  return cut;
}

SequenceNumber DeltaKeyView::LargestSequence() const {
  SequenceNumber largest = 0;
  for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
    for (const DeltaVersion::FilePtr& file : RecentFiles(kind)) {
      largest = std::max(largest, file->description().largest_seq);
    }
    const DeltaFileMeta* const sorted = SortedFile(kind);
    if (sorted != nullptr) {
      largest = std::max(largest, sorted->description().largest_seq);
    }
  }
  return largest;
}

//======== DeltaRead

DeltaRead::DeltaRead(const DeltaVersion& version, const DeltaStore& store,
                     const ReadOptions& read_options, const LookupKey& key,
                     std::optional<uint64_t> generation)
    : version_(version),
      store_(store),
      read_options_(read_options),
      key_(key),
      cache_(generation.has_value() ? store.cache() : nullptr) {
  cache_view_.generation = generation.value_or(0);
}

DeltaRead::~DeltaRead() { ahead_status_.PermitUncheckedError(); }

void DeltaRead::ReadAhead(SequenceNumber above) {
  assert(!view_.has_value());
  if (!store_.async_reads()->IsWanted(read_options_)) {
    return;
  }
  Begin();
  if (!NeedsFile(above)) {
    return;
  }
  // Files whose blocks are in memory are read at once.
  ReadOptions cached = read_options_;
  cached.read_tier = kBlockCacheTier;
  ahead_status_ = ReadFiles(above, cached);
  if (ahead_status_.IsIncomplete()) {
    ahead_status_ = Status::OK();
    BeginReads(above);
  }
}

void DeltaRead::BeginReads(SequenceNumber above) {
  // Next() asks the filters again.
  SavedPerfCounts counts;
  IOUringBatch batch;
  overlapped_.emplace(store_.fs());
  OverlappedReads* const reads = &*overlapped_;
  const uint64_t covered = cached_.found() ? cached_.epoch() : 0;
  const SequenceNumber anchor =
      anchor_is_known_
          ? anchor_
          : view_->LikelyAnchor(store_, read_options_, key_, covered);
  const SequenceNumber bound = std::max(above, anchor);
  const auto begin = [&](const DeltaFileMeta& file, bool passed_filter) {
    if (file.description().largest_seq <= bound || IsCached(file) ||
        !MayHold(file.description(), key_, version_.user_comparator())) {
      return;
    }
    DeltaFileReader* const reader = file.OpenedReader();
    if (reader != nullptr &&
        (passed_filter || reader->MayHaveKey(read_options_, key_))) {
      reader->BeginRead(read_options_, key_, reads);
    }
  };
  begin(*file_, passed_filter_);
  for (const FilePtr* next = next_recent_; next != end_recent_; ++next) {
    begin(**next, /*passed_filter=*/false);
  }
  if (extent_ != nullptr) {
    begin(*extent_, /*passed_filter=*/false);
  }
  if (!reads->empty()) {
    if (!anchor_is_known_) {
      view_->BeginNewestAnchor(read_options_, key_, covered, reads);
    }
    store_.async_reads()->OnBegun();
  }
  if (!reads->empty() || !reads->is_async()) {
    store_.async_reads()->OnTried(reads->is_async());
  }
  counts.Restore();
}

bool DeltaRead::Next(SequenceNumber above, Operand* operand, Status* status) {
  *status = Status::OK();
  if (!view_.has_value()) {
    Begin();
  }
  for (;;) {
    const SequenceNumber bound = std::max(above, anchor_);
    if (next_operand_ < operands_.size()) {
      const Operand& next = operands_[next_operand_];
      if (next.seq <= bound) {
        return false;  // all following operands are below the bound, too
      }
      *operand = next;
      ++next_operand_;
      return true;
    }
    if (file_ == nullptr || file_->description().largest_seq <= bound) {
      ceiling_ = std::min(ceiling_, bound + 1);
      if (file_ != nullptr && file_->description().largest_seq <= anchor_) {
        // All following operands are hidden.
        SkipRest();
        KeepInCache();
      }
      return false;
    }
    if (ahead_status_.ok()) {
      OverlappedReads::Scope scope(overlapped_.has_value() ? &*overlapped_
                                                           : nullptr);
      *status = ReadNextFile(read_options_);
    } else {
      *status = ahead_status_;
    }
    if (!status->ok()) {
      return false;
    }
  }
}

void DeltaRead::Begin() {
  view_.emplace(version_, key_.user_key());
  const DeltaVersion::Files recent =
      view_->RecentFiles(DeltaKeyView::Kind::kOperands);
  next_recent_ = recent.begin();
  end_recent_ = recent.end();
  extent_ = view_->SortedFile(DeltaKeyView::Kind::kOperands);
  FindFile();
}

void DeltaRead::FindFile() {
  passed_filter_ = false;
  const auto may_have = [this](const DeltaFileMeta& file) {
    return MayHold(file.description(), key_, version_.user_comparator());
  };
  while (next_recent_ != end_recent_) {
    file_ = (next_recent_++)->get();
    if (may_have(*file_)) {
      return;
    }
  }
  file_ = extent_ != nullptr && may_have(*extent_) ? extent_ : nullptr;
  extent_ = nullptr;
}

void DeltaRead::SkipRest() {
  file_ = nullptr;
  next_recent_ = end_recent_;
  extent_ = nullptr;
}

template <typename Fn>
Status DeltaRead::Uncounted(const ReadOptions& options, Fn fn) {
  if (options.read_tier == read_options_.read_tier) {
    return fn();
  }
  SavedPerfCounts counts;
  const Status s = fn();
  if (s.IsIncomplete()) {
    counts.Restore();
  }
  return s;
}

bool DeltaRead::NeedsFile(SequenceNumber above) const {
  return file_ != nullptr &&
         file_->description().largest_seq > std::max(above, anchor_);
}

Status DeltaRead::ReadFiles(SequenceNumber above, const ReadOptions& options) {
  Status s;
  while (s.ok() && NeedsFile(above)) {
    s = ReadNextFile(options);
  }
  return s;
}

Status DeltaRead::ReadNextFile(const ReadOptions& options) {
  const Status s = ReadFile(*file_, options);
  if (s.ok()) {
    FindFile();
    if (file_ == nullptr) {
      KeepInCache();
    }
  }
  return s;
}

Status DeltaRead::ReadFile(const DeltaFileMeta& file,
                           const ReadOptions& options) {
  DeltaFileReader* reader = nullptr;
  Status s = store_.GetReader(options, file, &reader);
  if (!s.ok()) {
    return s;
  }
  if (!passed_filter_) {
    if (!reader->MayHaveKey(options, key_)) {
      return s;
    }
    passed_filter_ = true;
  }
  if (!anchor_is_known_) {
    s = FindAnchor(options);
    if (!s.ok()) {
      return s;
    }
  }
  if (file.description().largest_seq <= anchor_) {
    return s;
  }
  if (IsCached(file)) {
    TakeCached();
    return s;
  }
  const size_t old_size = operands_.size();
  s = Uncounted(options, [&] {
    return reader->CollectOperands(options, key_, &operands_);
  });
  for (size_t i = old_size; s.ok() && i < operands_.size(); ++i) {
    if (operands_[i].seq >= ceiling_) {
      s = Status::Corruption(reader->file_name(),
                             "has an operand out of order");
    }
    ceiling_ = operands_[i].seq;
    operands_.SetEpoch(i, file.description().last_epoch);
  }
  if (!s.ok()) {
    // Next() returns the operands of earlier files.
    operands_.Truncate(old_size);
  }
  return s;
}

Status DeltaRead::FindAnchor(const ReadOptions& options) {
  if (cache_ != nullptr && !has_asked_cache_) {
    has_asked_cache_ = true;
    cache_view_.read_seq = GetInternalKeySeqno(key_.internal_key());
    cache_view_.horizon = view_->Horizon();
    cache_view_.floor = view_->floor();
    cache_view_.bucket = view_->bucket();
    cached_ = cache_->Lookup(key_.user_key(), cache_view_);
  }
  const uint64_t covered = cached_.found() ? cached_.epoch() : 0;
  SequenceNumber anchor = 0;
  const Status s = Uncounted(options, [&] {
    return view_->NewestAnchor(store_, options, key_, &anchor, covered);
  });
  if (s.ok()) {
    anchor_ = cached_.found() ? std::max(anchor, cached_.anchor()) : anchor;
    anchor_is_known_ = true;
  }
  return s;
}

void DeltaRead::TakeCached() {
  const uint64_t cut = view_->Cut(cached_.epoch());
  took_cached_ = true;
  for (size_t i = 0; i < cached_.size(); ++i) {
    const Operand operand = cached_[i];
    if (operand.epoch >= cut) {
      took_cached_ = false;
      continue;
    }
    assert(operand.seq < ceiling_);
    operands_.AddPinned(operand);
    ceiling_ = operand.seq;
  }
  cached_.PinTo(operands_.pins());
  SkipRest();
}

void DeltaRead::KeepInCache() {
  if (cache_ == nullptr) {
    return;
  }
  const bool is_as_cached = took_cached_ &&
                            operands_.size() == cached_.size() &&
                            anchor_ == cached_.anchor();
  if (is_as_cached && cached_.IsUpToDate(cache_view_)) {
    return;
  }
  size_t count = operands_.size();
  while (count > 0 && operands_[count - 1].seq <= anchor_) {
    --count;
  }
  if (count == 0 || view_->LargestSequence() > cache_view_.read_seq) {
    return;
  }
  TEST_SYNC_POINT_CALLBACK("DeltaRead::KeepInCache", this);
  if (is_as_cached) {
    cached_.Confirm(cache_view_);
  } else if (read_options_.fill_cache) {
    cache_->Insert(key_.user_key(), cache_view_, anchor_, operands_, count);
  }
}

}  // namespace ROCKSDB_NAMESPACE
