//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_merge_pass.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <deque>
#include <limits>
#include <utility>

#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_table_factory.h"
#include "db/range_tombstone_fragmenter.h"
#include "monitoring/perf_context_imp.h"
#include "monitoring/statistics_impl.h"
#include "rocksdb/comparator.h"
#include "rocksdb/merge_operator.h"
#include "table/internal_iterator.h"
#include "test_util/sync_point.h"
#include "util/heap.h"
#include "util/stop_watch.h"
#include "util/strata/status_message.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;

Status Named(const Status& s, const std::string& file_name) {
  const char* const message = s.getState();
  if (!s.IsCorruption() ||
      (message != nullptr && strstr(message, file_name.c_str()) != nullptr)) {
    return s;
  }
  return message == nullptr ? Status::Corruption(file_name, "damaged")
                            : AppendMessage(s, " in ", file_name);
}

// Returns true if the file may have entries in the range of the input.
bool Overlaps(const DeltaFileDescription& file,
              const DeltaMergePass::Input& input, const Comparator* ucmp) {
  return (!input.has_begin || ucmp->Compare(file.largest, input.begin) >= 0) &&
         (!input.has_end || ucmp->Compare(file.smallest, input.end) < 0);
}

}  // namespace

//======== DeltaMergePass::Merger

// Merges the point entries of several files of one kind in the order of
// internal keys, restricted to the range of the Input.
class DeltaMergePass::Merger {
 public:
  // REQUIRES: all arguments outlive this object.
  Merger(const DeltaMergePass& pass, const Input& input, Kind kind)
      : pass_(pass),
        input_(input),
        kind_(kind),
        icmp_(pass.settings_->icmp()),
        read_options_(pass.context_.read_options),
        end_(input.end),
        heap_(IsAfter{&icmp_}) {
    read_options_.iterate_lower_bound = nullptr;
    read_options_.iterate_upper_bound = input.has_end ? &end_ : nullptr;
    read_options_.total_order_seek = true;
    read_options_.async_io = false;
  }
  Merger(const Merger&) = delete;
  Merger& operator=(const Merger&) = delete;

  // Opens the files and moves to the first entry.
  Status Open() {
    size_t total_readahead = 0;
    for (const DeltaVersion::FilePtr& file :
         kind_ == Kind::kOperands ? input_.operands : input_.anchors) {
      const DeltaFileDescription& description = file->description();
      assert(description.kind == kind_);
      if (!MayHaveSome(description)) {
        continue;
      }
      auto source = std::make_unique<Source>();
      DeltaFileReader* reader = nullptr;
      Status s = pass_.context_.store->GetReader(read_options_, *file, &reader);
      if (!s.ok()) {
        return s;
      }
      source->reader = reader;
      source->readahead = Readahead(*reader, description.size);
      total_readahead += source->readahead;
      sources_.push_back(std::move(source));
    }
    size_t most = read_options_.readahead_size;
    if (total_readahead > most) {
      most = std::min(most, std::max(kMinReadahead, most / sources_.size()));
    }
    for (const std::unique_ptr<Source>& source : sources_) {
      source->iter.reset(source->reader->NewIterator(
          read_options_, TableReaderCaller::kCompaction, /*arena=*/nullptr,
          std::min(most, source->readahead)));
      if (input_.has_begin) {
        const InternalKey target(input_.begin, kMaxSequenceNumber,
                                 kValueTypeForSeek);
        source->iter->Seek(target.Encode());
      } else {
        source->iter->SeekToFirst();
      }
      Status s = Push(source.get());
      if (!s.ok()) {
        return s;
      }
    }
    return Settle();
  }

  bool Valid() const { return !heap_.empty(); }
  // REQUIRES: Valid()
  const ParsedInternalKey& key() const { return key_; }
  // REQUIRES: Valid()
  Slice value() const { return heap_.top()->iter->value(); }

  Status Next() {
    RememberKey();
    Source* const source = heap_.top();
    source->iter->Next();
    Status s = CheckSource(source);
    if (s.ok() && IsInRange(*source)) {
      heap_.replace_top(source);
    } else {
      heap_.pop();
    }
    return s.ok() ? Settle() : s;
  }

  // Moves to the first entry of that key or a greater one.
  // REQUIRES: the key is not less than the current one.
  Status Seek(const Slice& user_key) {
    RememberKey();
    const InternalKey target(user_key, kMaxSequenceNumber, kValueTypeForSeek);
    while (Valid() &&
           pass_.ucmp_->Compare(heap_.top()->iter->user_key(), user_key) < 0) {
      Source* const source = heap_.top();
      source->iter->Seek(target.Encode());
      Status s = CheckSource(source);
      if (s.ok() && IsInRange(*source)) {
        heap_.replace_top(source);
      } else {
        heap_.pop();
      }
      if (!s.ok()) {
        return s;
      }
    }
    return Settle();
  }

 private:
  // Returns true if the file may have point entries in the range of the Input.
  bool MayHaveSome(const DeltaFileDescription& description) const {
    return description.num_entries != 0 &&
           Overlaps(description, input_, pass_.ucmp_);
  }

  // Returns the readahead for the range of the Input, in bytes. The range is a
  // small part of most files and is read once, so reads beyond it are wasted.
  size_t Readahead(const DeltaFileReader& reader, uint64_t file_size) const {
    const size_t most = read_options_.readahead_size;
    if (!input_.has_begin && !input_.has_end) {
      // The buffer has this size, so it should not exceed the file.
      return static_cast<size_t>(std::min<uint64_t>(most, file_size));
    }
    const uint64_t begin = input_.has_begin ? reader.ApproximateOffsetOf(
                                                  read_options_, input_.begin)
                                            : 0;
    const uint64_t end =
        input_.has_end ? reader.ApproximateOffsetOf(read_options_, input_.end)
                       : file_size;
    // The block with `end` must be read, too, and the offsets are estimates.
    const uint64_t bytes =
        (end > begin ? end - begin : 0) + 2 * DeltaTableFactory::kBlockSize;
    return static_cast<size_t>(std::min<uint64_t>(most, bytes));
  }

  struct Source {
    const DeltaFileReader* reader = nullptr;
    size_t readahead = 0;  // bytes, if it were the only file
    std::unique_ptr<InternalIterator> iter;
  };
  // Order of the heap, of which the greatest element is at the top.
  struct IsAfter {
    const InternalKeyComparator* icmp;
    bool operator()(const Source* a, const Source* b) const {
      return icmp->Compare(a->iter->key(), b->iter->key()) > 0;
    }
  };

  Status Push(Source* source) {
    Status s = CheckSource(source);
    if (s.ok() && IsInRange(*source)) {
      heap_.push(source);
    }
    return s;
  }
  static Status CheckSource(const Source* source) {
    if (source->iter->Valid()) {
      // Checked before keys are compared.
      return source->iter->key().size() >= kNumInternalBytes
                 ? Status::OK()
                 : Corrupt(*source, "has an entry without an internal key");
    }
    return Named(source->iter->status(), source->reader->file_name());
  }
  bool IsInRange(const Source& source) const {
    return source.iter->Valid() &&
           (!input_.has_end ||
            pass_.ucmp_->Compare(source.iter->user_key(), input_.end) < 0);
  }
  static Status Corrupt(const Source& source, const char* what) {
    return Status::Corruption(source.reader->file_name(), what);
  }

  void RememberKey() {
    assert(Valid());
    const Slice key = heap_.top()->iter->key();
    last_key_.assign(key.data(), key.size());
  }

  // Makes the entry at the top of the heap the current entry.
  Status Settle() {
    if (!Valid()) {
      return Status::OK();
    }
    const Source& source = *heap_.top();
    const Slice key = source.iter->key();
    if (!ParseInternalKey(key, &key_, /*log_err_key=*/false).ok() ||
        key_.type != (kind_ == Kind::kOperands ? kTypeMerge : kTypeDeletion)) {
      return Corrupt(source, kind_ == Kind::kOperands ? "not an operand"
                                                      : "not an anchor");
    }
    if (!last_key_.empty()) {
      // An anchor may be in several files, with the same meaning in all of
      // them.
      const int order = icmp_.Compare(Slice(last_key_), key);
      if (order > 0 || (order == 0 && kind_ == Kind::kOperands)) {
        return Corrupt(source, "has an entry out of order");
      }
    }
    return Status::OK();
  }

  const DeltaMergePass& pass_;
  const Input& input_;
  const Kind kind_;
  const InternalKeyComparator& icmp_;
  ReadOptions read_options_;
  const Slice end_;
  std::vector<std::unique_ptr<Source>> sources_;
  BinaryHeap<Source*, IsAfter> heap_;
  ParsedInternalKey key_;
  std::string last_key_;  // internal key of the previous entry; empty: none
};

//======== DeltaMergePass

DeltaMergePass::DeltaMergePass(const Context& context)
    : context_(context),
      settings_(context.store->tables().settings()),
      ucmp_(settings_->ucmp()),
      merge_operator_(context.ioptions->merge_operator.get()),
      latest_snapshot_(context.snapshots.empty()
                           ? 0
                           : std::min(context.snapshots.back(),
                                      context.latest_listed_snapshot)) {
  assert(context_.snapshot_checker == nullptr);
  assert(std::is_sorted(context_.snapshots.begin(), context_.snapshots.end()));
}

DeltaMergePass::~DeltaMergePass() = default;

Status DeltaMergePass::CheckNow() {
  Status s;
  if (context_.shutting_down != nullptr &&
      context_.shutting_down->load(std::memory_order_relaxed)) {
    s = Status::ShutdownInProgress();
  } else if (context_.check) {
    s = context_.check();
  }
  TEST_SYNC_POINT_CALLBACK("DeltaMergePass::CheckNow", &s);
  return s;
}

size_t DeltaMergePass::StripeOf(SequenceNumber seq) const {
  const auto& snapshots = context_.snapshots;
  return static_cast<size_t>(
      std::lower_bound(snapshots.begin(), snapshots.end(), seq) -
      snapshots.begin());
}

Status DeltaMergePass::Run(const Input& input, Sink* sink) {
  TEST_SYNC_POINT_CALLBACK("DeltaMergePass::Run", const_cast<Input*>(&input));
  Merger operands(*this, input, Kind::kOperands);
  Merger anchors(*this, input, Kind::kAnchors);
  Status s = CheckNow();
  if (s.ok()) {
    s = operands.Open();
  }
  // If anchors only matter for operands and there are none, nothing is to be
  // done.
  if (s.ok() && (operands.Valid() || !input.has_all_older)) {
    s = LoadRangeAnchors(input);
    if (s.ok()) {
      s = anchors.Open();
    }
  }
  if (s.ok() && !input.has_all_older) {
    s = AddRangeAnchors(sink);
  }
  while (s.ok()) {
    if (operands.Valid() && has_skip_until_ &&
        ucmp_->Compare(operands.key().user_key, skip_until_) < 0) {
      ++stats_.operands_read;
      ++stats_.operands_filtered;
      s = operands.Seek(skip_until_);
      continue;
    }
    const bool at_anchor =
        !input.has_all_older && anchors.Valid() &&
        (!operands.Valid() ||
         ucmp_->Compare(anchors.key().user_key, operands.key().user_key) < 0);
    if (!at_anchor && !operands.Valid()) {
      break;
    }
    const Slice key =
        at_anchor ? anchors.key().user_key : operands.key().user_key;
    key_.assign(key.data(), key.size());
    oldest_kept_ = kMaxSequenceNumber;
    s = FindAnchors(&anchors);
    if (s.ok() && !at_anchor) {
      s = ProcessOperands(&operands, sink);
    }
    if (s.ok()) {
      s = AddAnchorsOfKey(input.has_all_older, sink);
    }
  }
  ranges_.reset();
  next_range_ = 0;
  if (filter_nanos_ > 0) {
    RecordTick(context_.ioptions->stats, FILTER_OPERATION_TOTAL_TIME,
               filter_nanos_);
    filter_nanos_ = 0;
  }
  return s;
}

//======== Anchors

Status DeltaMergePass::LoadRangeAnchors(const Input& input) {
  std::vector<std::string> keys;
  std::vector<std::string> ends;
  for (const DeltaVersion::FilePtr& file : input.anchors) {
    const DeltaFileDescription& description = file->description();
    // A file outside the range may be damaged.
    if (description.num_range_anchors == 0 ||
        !Overlaps(description, input, ucmp_)) {
      continue;
    }
    DeltaFileReader* reader = nullptr;
    Status s = context_.store->GetReader(context_.read_options, *file, &reader);
    if (!s.ok()) {
      return s;
    }
    const std::unique_ptr<FragmentedRangeTombstoneIterator> iter =
        reader->NewRangeAnchorIterator(kMaxSequenceNumber);
    if (iter == nullptr) {
      return Status::Corruption(reader->file_name(),
                                "its range anchors are missing");
    }
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      s = Check();
      if (!s.ok()) {
        return s;
      }
      Slice start = iter->start_key();
      Slice end = iter->end_key();
      if (input.has_end && ucmp_->Compare(start, input.end) >= 0) {
        break;
      }
      if (input.has_begin && ucmp_->Compare(end, input.begin) <= 0) {
        continue;
      }
      if (input.has_begin && ucmp_->Compare(start, input.begin) < 0) {
        start = input.begin;
      }
      if (input.has_end && ucmp_->Compare(end, input.end) > 0) {
        end = input.end;
      }
      ++stats_.anchors_read;
      keys.push_back(InternalKey(start, iter->seq(), kTypeRangeDeletion)
                         .Encode()
                         .ToString());
      ends.push_back(end.ToString());
    }
  }
  if (!keys.empty()) {
    // Keeps the newest range anchor of each stripe.
    const InternalKeyComparator& icmp = settings_->icmp();
    ranges_ = std::make_unique<FragmentedRangeTombstoneList>(
        std::make_unique<VectorIterator>(std::move(keys), std::move(ends),
                                         &icmp),
        icmp, /*for_compaction=*/true, context_.snapshots);
  }
  return Status::OK();
}

Status DeltaMergePass::AddRangeAnchors(Sink* sink) {
  Status s;
  if (ranges_ == nullptr) {
    return s;
  }
  for (const auto& stack : *ranges_) {
    const auto end = ranges_->seq_iter(stack.seq_end_idx);
    for (auto seq = ranges_->seq_iter(stack.seq_start_idx); seq != end; ++seq) {
      s = Check();
      if (s.ok() && *seq > 0) {
        s = sink->AddRangeAnchor(stack.start_key, stack.end_key, *seq);
        ++stats_.anchors_kept;
      }
      if (!s.ok()) {
        return s;
      }
    }
  }
  return s;
}

Status DeltaMergePass::FindAnchors(Merger* anchors) {
  // Maximum number of other keys' anchors that are skipped one by one.
  constexpr int kMaxSteps = 8;
  key_anchors_.clear();
  for (int steps = 0; anchors->Valid(); ++steps) {
    const ParsedInternalKey& anchor = anchors->key();
    const int order = ucmp_->Compare(anchor.user_key, key_);
    if (order > 0) {
      break;
    }
    Status s = Check();
    if (!s.ok()) {
      return s;
    }
    if (order == 0) {
      const size_t stripe = StripeOf(anchor.sequence);
      if (key_anchors_.empty() || key_anchors_.back().stripe != stripe) {
        key_anchors_.push_back({anchor.sequence, stripe, /*is_point=*/true});
      }
    }
    ++stats_.anchors_read;
    s = order < 0 && steps >= kMaxSteps ? anchors->Seek(key_) : anchors->Next();
    if (!s.ok()) {
      return s;
    }
  }
  if (ranges_ == nullptr) {
    return Status::OK();
  }

  const auto num_ranges =
      static_cast<size_t>(ranges_->end() - ranges_->begin());
  while (next_range_ < num_ranges &&
         ucmp_->Compare((ranges_->begin() + next_range_)->end_key, key_) <= 0) {
    ++next_range_;
  }
  if (next_range_ == num_ranges ||
      ucmp_->Compare((ranges_->begin() + next_range_)->start_key, key_) > 0) {
    return Status::OK();
  }
  const auto& stack = *(ranges_->begin() + next_range_);
  const auto end = ranges_->seq_iter(stack.seq_end_idx);
  for (auto seq = ranges_->seq_iter(stack.seq_start_idx); seq != end; ++seq) {
    key_anchors_.push_back({*seq, StripeOf(*seq), /*is_point=*/false});
  }
  std::sort(key_anchors_.begin(), key_anchors_.end(),
            [](const KeyAnchor& a, const KeyAnchor& b) {
              // A range anchor precedes a point anchor with the same number, as
              // it is kept anyway.
              return a.seq != b.seq ? a.seq > b.seq : !a.is_point && b.is_point;
            });
  key_anchors_.erase(std::unique(key_anchors_.begin(), key_anchors_.end(),
                                 [](const KeyAnchor& a, const KeyAnchor& b) {
                                   return a.stripe == b.stripe;
                                 }),
                     key_anchors_.end());
  return Status::OK();
}

Status DeltaMergePass::AddAnchorsOfKey(bool has_all_older, Sink* sink) {
  for (const KeyAnchor& anchor : key_anchors_) {
    // Tells whether the anchor can still hide something. Older operands in
    // other files are also hidden by a range anchor, which is kept. An anchor
    // with sequence number 0 hides nothing.
    const bool is_needed =
        has_all_older ? anchor.seq >= oldest_kept_ : anchor.is_point;
    if (is_needed && anchor.seq > 0) {
      ++stats_.anchors_kept;
      Status s = sink->AddAnchor(key_, anchor.seq);
      if (!s.ok()) {
        return s;
      }
    }
  }
  return Status::OK();
}

//======== Operands

Status DeltaMergePass::ProcessOperands(Merger* operands, Sink* sink) {
  ClearPending();
  size_t anchor = 0;
  Status s;
  for (; s.ok() && operands->Valid() && operands->key().user_key == Slice(key_);
       s = operands->Next()) {
    s = Check();
    if (!s.ok()) {
      return s;
    }
    const SequenceNumber seq = operands->key().sequence;
    Slice value = operands->value();
    ++stats_.operands_read;
    stats_.bytes_read += key_.size() + value.size();
    const size_t stripe = StripeOf(seq);
    while (anchor < key_anchors_.size() &&
           key_anchors_[anchor].stripe > stripe) {
      ++anchor;
    }
    if (anchor < key_anchors_.size() && key_anchors_[anchor].stripe == stripe &&
        key_anchors_[anchor].seq >= seq) {
      ++stats_.operands_hidden;
      continue;
    }
    const CompactionFilter::Decision decision =
        seq <= latest_snapshot_ ? CompactionFilter::Decision::kKeep
                                : Filter(&value);
    if (decision == CompactionFilter::Decision::kRemoveAndSkipUntil) {
      // Operands of the key that were passed to the sink stay, as when a
      // compaction reaches another stripe. Run() continues after the skipped
      // range.
      stats_.operands_filtered += batch_.size() + 1;
      stats_.filter_changed = true;
      ClearPending();
      skip_until_ = filter_skip_until_;
      has_skip_until_ = true;
      return operands->Next();
    }
    if (decision == CompactionFilter::Decision::kChangeValue) {
      stats_.filter_changed = true;
    } else if (decision != CompactionFilter::Decision::kKeep) {
      stats_.filter_changed = true;
      ++stats_.operands_filtered;
      continue;
    }
    if (!batch_.empty() && stripe != batch_stripe_) {
      s = CombinePending();
      if (s.ok()) {
        s = EmitPending(sink);
      }
    }
    batch_stripe_ = stripe;
    if (s.ok()) {
      s = AddPending(seq, value, sink);
    }
    if (!s.ok()) {
      return s;
    }
  }
  if (s.ok()) {
    s = CombinePending();
  }
  return s.ok() ? EmitPending(sink) : s;
}

CompactionFilter::Decision DeltaMergePass::Filter(Slice* value) {
  using Decision = CompactionFilter::Decision;
  if (context_.filter == nullptr) {
    return Decision::kKeep;
  }
  Statistics* const stats = context_.ioptions->stats;
  const bool is_timed =
      stats != nullptr && stats->get_stats_level() > kExceptDetailedTimers;
  StopWatchNano<> timer(context_.ioptions->clock, /*auto_start=*/is_timed);
  filter_value_.clear();
  filter_skip_until_.clear();
  Decision decision = context_.filter->FilterV4(
      /*level=*/0, key_, CompactionFilter::ValueType::kMergeOperand, value,
      /*existing_columns=*/nullptr, &filter_value_, /*new_columns=*/nullptr,
      &filter_skip_until_, /*blob_resolver=*/nullptr);
  if (is_timed) {
    filter_nanos_ += timer.ElapsedNanosSafe();
  }
  if (decision == Decision::kRemoveAndSkipUntil &&
      ucmp_->Compare(filter_skip_until_, key_) <= 0) {
    decision = Decision::kKeep;  // skip_until is not after the key
  }
  if (decision == Decision::kChangeValue) {
    *value = filter_value_;
  }
  return decision;
}

Status DeltaMergePass::AddPending(SequenceNumber seq, const Slice& value,
                                  Sink* sink) {
  if (!batch_.empty() && batch_values_.size() + value.size() +
                                 (batch_.size() + 1) * kPendingOverhead >
                             context_.max_batch_bytes) {
    Status s = CombinePending();
    // If combining has saved little, combining the result again would save
    // little for more work.
    if (s.ok() && (batch_.size() > 1 ||
                   batch_values_.size() > context_.max_batch_bytes / 2)) {
      s = EmitPending(sink);
    }
    if (!s.ok()) {
      return s;
    }
  }
  batch_.push_back({seq, batch_values_.size(), value.size()});
  batch_values_.append(value.data(), value.size());
  batch_is_combined_ = false;
  return Status::OK();
}

Status DeltaMergePass::CombinePending() {
  if (batch_.empty() || merge_operator_ == nullptr || batch_is_combined_ ||
      (batch_.size() == 1 && !merge_operator_->AllowSingleOperand())) {
    return Status::OK();
  }
  Status s = CheckNow();
  if (!s.ok()) {
    return s;
  }
  // Oldest first.
  std::deque<Slice> operands;
  for (const Pending& pending : batch_) {
    operands.emplace_front(batch_values_.data() + pending.begin, pending.size);
  }
  combined_value_.clear();
  bool is_combined = false;
  {
    Statistics* const stats = context_.ioptions->stats;
    StopWatchNano<> timer(context_.ioptions->clock, stats != nullptr);
    PERF_TIMER_GUARD(merge_operator_time_nanos);
    is_combined = merge_operator_->PartialMergeMulti(
        key_, operands, &combined_value_, context_.info_log);
    RecordTick(stats, MERGE_OPERATION_TOTAL_TIME,
               stats != nullptr ? timer.ElapsedNanosSafe() : 0);
  }
  // A longer value could not be written.
  if (is_combined &&
      combined_value_.size() <= std::numeric_limits<uint32_t>::max()) {
    stats_.operands_combined += batch_.size() - 1;
    batch_.resize(1);
    batch_.front().begin = 0;
    batch_.front().size = combined_value_.size();
    batch_values_.swap(combined_value_);
    batch_is_combined_ = true;
  }
  return s;
}

Status DeltaMergePass::EmitPending(Sink* sink) {
  for (const Pending& pending : batch_) {
    const ParsedInternalKey key(key_, pending.seq, kTypeMerge);
    internal_key_.clear();
    AppendInternalKey(&internal_key_, key);
    ++stats_.operands_kept;
    stats_.bytes_kept += key_.size() + pending.size;
    oldest_kept_ = pending.seq;
    Status s = sink->AddOperand(
        key, internal_key_,
        Slice(batch_values_.data() + pending.begin, pending.size));
    if (!s.ok()) {
      return s;
    }
  }
  ClearPending();
  return Status::OK();
}

void DeltaMergePass::ClearPending() {
  batch_.clear();
  batch_values_.clear();
  batch_is_combined_ = false;
}

}  // namespace ROCKSDB_NAMESPACE
