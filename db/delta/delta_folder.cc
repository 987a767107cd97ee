//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_folder.h"

#include <algorithm>
#include <cassert>
#include <unordered_set>

#include "db/blob/blob_fetcher.h"
#include "db/column_family.h"
#include "db/compaction/compaction_iteration_stats.h"
#include "db/dbformat.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_store.h"
#include "db/lookup_key.h"
#include "db/version_set.h"
#include "options/cf_options.h"
#include "rocksdb/comparator.h"
#include "table/iterator_wrapper.h"
#include "table/merging_iterator.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

ReadOptions FoldReadOptions(Env::IOPriority io_priority) {
  ReadOptions options;
  options.io_activity = Env::IOActivity::kCompaction;
  options.rate_limiter_priority = io_priority;
  // Blocks that only the fold reads must not evict others.
  options.fill_cache = false;
  // The iterator must not skip entries because of prefix filters.
  options.total_order_seek = true;
  return options;
}

}  // namespace

//======== DeltaAnchorLookup

Status DeltaAnchorLookup::Newest(const Slice& user_key, SequenceNumber read_seq,
                                 SequenceNumber below,
                                 SequenceNumber* seq) const {
  *seq = 0;
  const LookupKey key(user_key, read_seq);
  for (const DeltaVersion::FilePtr& file : files_) {
    const DeltaFileDescription& description = file->description();
    if (description.largest_seq <= std::max(below, *seq) ||
        description.smallest_seq > read_seq ||
        ucmp_->Compare(user_key, description.smallest) < 0 ||
        ucmp_->Compare(user_key, description.largest) > 0) {
      continue;
    }
    DeltaFileReader* reader = nullptr;
    SequenceNumber newest = 0;
    Status s = store_->GetReader(read_options_, *file, &reader);
    if (s.ok()) {
      s = reader->NewestAnchor(read_options_, key, &newest);
    }
    if (!s.ok()) {
      return s;
    }
    *seq = std::max(*seq, newest);
  }
  return Status::OK();
}

std::vector<DeltaVersion::FilePtr> DeltaAnchorLookup::FilesAbove(
    const DeltaVersion& version, uint64_t floor, const DeltaVersion* without) {
  std::unordered_set<uint64_t> known;
  if (without != nullptr) {
    for (const DeltaVersion::FilePtr& file :
         without->RecentFiles(DeltaFileDescription::Kind::kAnchors)) {
      known.insert(file->number());
    }
  }
  std::vector<DeltaVersion::FilePtr> files;
  for (const DeltaVersion::FilePtr& file :
       version.RecentFilesAbove(DeltaFileDescription::Kind::kAnchors, floor)) {
    if (known.count(file->number()) == 0) {
      files.push_back(file);
    }
  }
  return files;
}

//======== DeltaValueFolder

// Iterates over the entries of one key: operands, then entries of the tree.
class DeltaValueFolder::KeyIterator final : public InternalIterator {
 public:
  // lsm: positioned at the key's first entry; nullptr if the tree has no entry.
  KeyIterator(const Slice& user_key, const std::vector<Operand>& operands,
              InternalIterator* lsm, const Comparator* ucmp)
      : user_key_(user_key), operands_(operands), lsm_(lsm), ucmp_(ucmp) {
    Update();
  }

  bool Valid() const override { return valid_; }
  void Next() override {
    if (IsOperand()) {
      ++next_operand_;
    } else {
      lsm_->Next();
    }
    Update();
  }
  Slice key() const override { return IsOperand() ? Slice(key_) : lsm_->key(); }
  Slice value() const override {
    return IsOperand() ? operands_[next_operand_].second : lsm_->value();
  }
  bool IsValuePinned() const override { return IsOperand(); }
  Status status() const override {
    return lsm_ == nullptr ? Status::OK() : lsm_->status();
  }

  void SeekToFirst() override { assert(false); }
  void SeekToLast() override { assert(false); }
  void Seek(const Slice& /*target*/) override { assert(false); }
  void SeekForPrev(const Slice& /*target*/) override { assert(false); }
  void Prev() override { assert(false); }

 private:
  bool IsOperand() const { return next_operand_ < operands_.size(); }
  void Update() {
    if (IsOperand()) {
      key_.clear();
      AppendInternalKey(
          &key_, ParsedInternalKey(user_key_, operands_[next_operand_].first,
                                   kTypeMerge));
      valid_ = true;
    } else {
      valid_ = lsm_ != nullptr && lsm_->Valid() &&
               ucmp_->Equal(ExtractUserKey(lsm_->key()), user_key_);
    }
  }

  const Slice user_key_;
  const std::vector<Operand>& operands_;
  InternalIterator* const lsm_;
  const Comparator* const ucmp_;
  size_t next_operand_ = 0;
  std::string key_;
  bool valid_ = false;
};

uint64_t DeltaValueFolder::MaxBytes(const MutableCFOptions& options) {
  return std::clamp(uint64_t{options.write_buffer_size}, kMinBytes, kMaxBytes);
}

DeltaValueFolder::DeltaValueFolder(const Context& context, Version* version)
    : context_(context),
      ucmp_(context.ioptions->user_comparator),
      version_(version),
      deltas_(version->storage_info()->delta()),
      generation_(version->strata()->merged_values().number()),
      read_options_(FoldReadOptions(context.io_priority)),
      anchors_(context.store, ucmp_, read_options_,
               DeltaAnchorLookup::FilesAbove(*deltas_, context.floor)),
      merge_(
          context.ioptions->env, ucmp_, context.ioptions->merge_operator.get(),
          /*compaction_filter=*/nullptr, context.ioptions->logger,
          /*assert_valid_internal_key=*/true, /*latest_snapshot=*/0,
          /*snapshot_checker=*/nullptr, /*level=*/0, context.ioptions->stats) {
  version_->Ref();
}

DeltaValueFolder::DeltaValueFolder(const Context& context,
                                   std::shared_ptr<const DeltaVersion> deltas,
                                   InternalIterator* lsm,
                                   const BlobFetcher* fetcher)
    : context_(context),
      ucmp_(context.ioptions->user_comparator),
      version_(nullptr),
      deltas_(std::move(deltas)),
      generation_(0),
      read_options_(FoldReadOptions(context.io_priority)),
      anchors_(context.store, ucmp_, read_options_,
               DeltaAnchorLookup::FilesAbove(*deltas_, context.floor)),
      merge_(
          context.ioptions->env, ucmp_, context.ioptions->merge_operator.get(),
          /*compaction_filter=*/nullptr, context.ioptions->logger,
          /*assert_valid_internal_key=*/true, /*latest_snapshot=*/0,
          /*snapshot_checker=*/nullptr, /*level=*/0, context.ioptions->stats),
      lsm_(lsm),
      fetcher_(fetcher) {}

DeltaValueFolder::~DeltaValueFolder() {
  Finish();
  last_failure_.PermitUncheckedError();
  if (version_ != nullptr) {
    version_->Unref();
  }
}

void DeltaValueFolder::Finish() {
  if (is_finished_) {
    return;
  }
  is_finished_ = true;
  FindSources();
  lsm_ = nullptr;
  fetcher_ = nullptr;
  own_lsm_.reset();
  own_fetcher_.reset();
}

void DeltaValueFolder::FindSources() {
  if (version_ == nullptr || values_.empty()) {
    return;
  }
  const VersionStorageInfo& version = *version_->storage_info();
  for (int level = 0; level < version.num_non_empty_levels(); ++level) {
    for (const FileMetaData* file : version.LevelFiles(level)) {
      const auto key = std::lower_bound(
          values_.keys.begin(), values_.keys.end(), file->smallest.user_key(),
          [this](const std::string& a, const Slice& b) {
            return ucmp_->Compare(ExtractUserKey(a), b) < 0;
          });
      if (key != values_.keys.end() &&
          ucmp_->Compare(ExtractUserKey(*key), file->largest.user_key()) <= 0) {
        sources_.push_back(file->fd.GetNumber());
      }
    }
  }
}

void DeltaValueFolder::OpenLsm() {
  if (lsm_ != nullptr) {
    return;
  }
  assert(version_ != nullptr);
  MergeIteratorBuilder builder(&context_.ioptions->internal_comparator,
                               &arena_);
  // NewInternalIterator() would add the delta files.
  version_->AddIterators(read_options_, context_.file_options, &builder,
                         /*allow_unprepared_value=*/false, kMaxSequenceNumber);
  InternalIterator* const lsm = builder.Finish();
  // There may be no SST files.
  own_lsm_.reset(lsm != nullptr ? lsm
                                : NewEmptyInternalIterator<Slice>(&arena_));
  lsm_ = own_lsm_.get();
  own_fetcher_ = std::make_unique<OwningVersionBlobFetcher>(
      version_, ReadOptions(read_options_));
  fetcher_ = own_fetcher_.get();
}

Status DeltaValueFolder::SeekLsm(const Slice& user_key) {
  bool must_seek = !lsm_is_placed_;
  for (int steps = 0; !must_seek && lsm_->Valid() &&
                      ucmp_->Compare(ExtractUserKey(lsm_->key()), user_key) < 0;
       ++steps) {
    if (steps == kMaxSteps) {
      must_seek = true;
    } else {
      lsm_->Next();
    }
  }
  if (must_seek) {
    lsm_->Seek(
        InternalKey(user_key, kMaxSequenceNumber, kValueTypeForSeek).Encode());
    lsm_is_placed_ = true;
  }
  return lsm_->status();
}

bool DeltaValueFolder::LsmIsAt(const Slice& user_key) const {
  return lsm_->Valid() && ucmp_->Equal(ExtractUserKey(lsm_->key()), user_key);
}

Status DeltaValueFolder::Fail(const Status& s) {
  ++stats_.merges_failed;
  if (lsm_is_broken_ && s.IsCorruption()) {
    // A damaged block has the values of some keys only. The next key is sought.
    lsm_is_broken_ = false;
    lsm_is_placed_ = false;
    stats_.damaged = true;
    if (!stats_.read_failed) {
      last_failure_ = s;
    }
  } else if (lsm_is_broken_ || s.IsIOError()) {
    stats_.read_failed = true;
    last_failure_ = s;
  } else if (!stats_.read_failed && !stats_.damaged) {
    last_failure_ = s;
  }
  return Status::OK();
}

Status DeltaValueFolder::Fold(const Slice& user_key,
                              const std::vector<Operand>& operands,
                              bool hidden_from_none, bool* taken) {
  assert(!operands.empty());
  *taken = false;
  if (context_.shutting_down != nullptr &&
      context_.shutting_down->load(std::memory_order_acquire)) {
    return Status::ShutdownInProgress();
  }
  if (stats_.full || lsm_is_broken_ || !merge_.HasOperator()) {
    return Status::OK();
  }
  const SequenceNumber newest = operands.front().first;
  if (!hidden_from_none || newest > context_.earliest_snapshot) {
    ++stats_.keys_left;
    ++stats_.keys_left_for_snapshots;
    return Status::OK();
  }
  // Checked before the tree is read: a base that no reader needs may be missing
  // in the tree, but then there is an anchor of the entry that hides it.
  SequenceNumber anchor = 0;
  Status s = anchors_.Newest(user_key, kMaxSequenceNumber, newest - 1, &anchor);
  if (!s.ok()) {
    return s;
  }
  if (anchor >= newest) {
    ++stats_.keys_left;
    return Status::OK();
  }
  OpenLsm();
  TEST_SYNC_POINT_CALLBACK("DeltaValueFolder::Fold",
                           const_cast<Slice*>(&user_key));
  std::string internal_key;
  std::string value;
  s = MergeKey(user_key, operands, &internal_key, &value);
  if (!s.ok()) {
    return Fail(s);
  }
  if (internal_key.empty()) {
    ++stats_.keys_left;
    return Status::OK();
  }
  *taken = true;
  ++stats_.keys_folded;
  stats_.operands_folded += operands.size();
  values_.Add(std::move(internal_key), std::move(value));
  stats_.bytes_folded = values_.bytes;
  stats_.full = values_.bytes >= context_.max_bytes;
  return Status::OK();
}

Status DeltaValueFolder::MergeKey(const Slice& user_key,
                                  const std::vector<Operand>& operands,
                                  std::string* internal_key,
                                  std::string* value) {
  Status s = SeekLsm(user_key);
  TEST_SYNC_POINT_CALLBACK("DeltaValueFolder::MergeKey:Sought", &s);
  if (!s.ok()) {
    lsm_is_broken_ = true;
    return s;
  }
  const bool has_older = LsmIsAt(user_key);
  if (has_older) {
    ParsedInternalKey newest;
    s = ParseInternalKey(lsm_->key(), &newest, /*log_err_key=*/false);
    if (!s.ok()) {
      return s;
    }
    // A newer entry has an anchor. Without one, readers still compare sequence
    // numbers.
    if (newest.sequence >= operands.back().first) {
      return Status::OK();
    }
  }
  KeyIterator iter(user_key, operands, has_older ? lsm_ : nullptr, ucmp_);
  CompactionIterationStats iteration_stats;
  s = merge_.MergeUntil(&iter, /*range_del_agg=*/nullptr, /*stop_before=*/0,
                        /*at_bottom=*/true, /*allow_data_in_errors=*/false,
                        fetcher_, /*full_history_ts_low=*/nullptr,
                        /*prefetch_buffers=*/nullptr, &iteration_stats);
  // The iterator may be at its end because of an error.
  if (!lsm_->status().ok()) {
    lsm_is_broken_ = true;
    return lsm_->status();
  }
  // MergeInProgress: the merge operator requires that the failure is ignored,
  // or the address map has lost the base to an entry that hides it.
  if (!s.ok()) {
    return s;
  }
  if (merge_.keys().size() != 1 ||
      ExtractValueType(merge_.keys().back()) == kTypeMerge) {
    return Status::Corruption("Merge operands could not be folded");
  }
  *internal_key = merge_.keys().back();
  *value = merge_.values().back().ToString();
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
