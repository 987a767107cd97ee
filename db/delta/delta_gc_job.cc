//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_gc_job.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_fold_queue.h"
#include "db/delta/delta_folder.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_table_factory.h"
#include "db/output_validator.h"
#include "db/range_tombstone_fragmenter.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"
#include "table/internal_iterator.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Tier = DeltaFileDescription::Tier;

// A bucket has this number of pieces and may be cut where a piece ends.
constexpr uint64_t kPiecesPerBucket = 16;
// Maximum size, in full buckets, of a gap of buckets between two buckets that
// are rewritten. The buckets of a smaller gap are rewritten, too, to avoid many
// small files.
constexpr uint64_t kMaxGap = 4;
// Memory for the queued operands of a bucket if not all keys are folded, as a
// multiple of bucket_size. A small operand takes three times its size, and a
// bucket may be larger than it should be. If the memory is too small, or larger
// than max_queued, keys are chosen from one part of the bucket after the other,
// without regard to the rest.
constexpr uint64_t kQueuedPerBucketSize = 8;
constexpr uint64_t kMinQueued = uint64_t{8} << 20;
// Number of folds between checks whether the job should end.
constexpr uint64_t kFoldCheckInterval = 64;

uint64_t CeilDivide(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

}  // namespace

//======== DeltaGcJob::Probe

// Tells whether merged files have entries for a bucket. Buckets are passed in
// order, so buckets in a long range of keys without entries cost no I/O.
class DeltaGcJob::Probe {
 public:
  // REQUIRES: the job outlives this object.
  explicit Probe(const DeltaGcJob& job)
      : job_(job), read_options_(job.context_.pass.read_options) {
    read_options_.iterate_lower_bound = nullptr;
    read_options_.iterate_upper_bound = nullptr;
    read_options_.total_order_seek = true;
    read_options_.async_io = false;
  }

  // Opens the merged files that some bucket has still to take in. Others may be
  // damaged, and must not fail the job.
  Status Open() {
    for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      for (FilePtr& file : job_.FilesOf(kind, DeltaBucketState())) {
        if (!IsNeeded(file->description())) {
          continue;
        }
        Source source;
        DeltaFileReader* reader = nullptr;
        Status s =
            job_.context_.pass.store->GetReader(read_options_, *file, &reader);
        if (!s.ok()) {
          return s;
        }
        if (file->description().num_entries > 0) {
          source.points.reset(reader->NewIterator(
              read_options_, TableReaderCaller::kCompaction));
        }
        source.ranges = reader->NewRangeAnchorIterator(kMaxSequenceNumber);
        if (source.ranges != nullptr) {
          source.ranges->SeekToTopFirst();
        }
        source.file = std::move(file);
        sources_.push_back(std::move(source));
      }
    }
    return Status::OK();
  }

  // Sets *has_operand and *has_anchor to whether there are operands and anchors
  // in [bucket.lower, upper).
  Status Look(const OldBucket& bucket, const std::optional<std::string>& upper,
              bool* has_operand, bool* has_anchor) {
    *has_operand = false;
    *has_anchor = false;
    for (Source& source : sources_) {
      const DeltaFileDescription& file = source.file->description();
      bool* const found =
          file.kind == Kind::kOperands ? has_operand : has_anchor;
      if (*found || file.last_epoch <= bucket.state.floor) {
        continue;
      }
      Status s = LookAtPoints(&source, bucket.lower, upper, found);
      if (!s.ok()) {
        return s;
      }
      if (!*found) {
        LookAtRanges(&source, bucket.lower, upper, found);
      }
    }
    return Status::OK();
  }

 private:
  struct Source {
    FilePtr file;
    std::unique_ptr<InternalIterator> points;  // nullptr: there are none
    bool is_placed = false;
    std::unique_ptr<FragmentedRangeTombstoneIterator> ranges;  // likewise
  };

  bool IsBelow(const Slice& key,
               const std::optional<std::string>& upper) const {
    return !upper.has_value() || job_.ucmp_->Compare(key, *upper) < 0;
  }
  // Returns true if a bucket with that lower bound begins above the key.
  bool IsBehind(const Slice& key, const std::string& lower) const {
    return !lower.empty() && job_.ucmp_->Compare(key, lower) < 0;
  }

  // Returns true if the key range of the file overlaps a bucket whose floor is
  // below the file.
  bool IsNeeded(const DeltaFileDescription& file) const {
    const std::vector<OldBucket>& buckets = job_.buckets_;
    if (!IsBelow(file.smallest, job_.end_)) {
      return false;
    }
    // Returns the first bucket that begins above the key.
    const auto first_above = [&](const std::string& key) {
      return std::partition_point(buckets.begin(), buckets.end(),
                                  [&](const OldBucket& bucket) {
                                    return !IsBehind(key, bucket.lower);
                                  });
    };
    auto first = first_above(file.smallest);
    if (first != buckets.begin()) {
      --first;  // has the smallest key
    }
    const auto last = first_above(file.largest);
    return first < last &&
           std::any_of(first, last, [&](const OldBucket& bucket) {
             return bucket.state.floor < file.last_epoch;
           });
  }

  Status LookAtPoints(Source* source, const std::string& lower,
                      const std::optional<std::string>& upper, bool* found) {
    InternalIterator* const iter = source->points.get();
    const DeltaFileDescription& file = source->file->description();
    if (iter == nullptr || !IsBelow(file.smallest, upper) ||
        IsBehind(file.largest, lower)) {
      return Status::OK();
    }
    if (!source->is_placed ||
        (iter->Valid() && !lower.empty() &&
         job_.ucmp_->Compare(iter->user_key(), lower) < 0)) {
      if (lower.empty()) {
        iter->SeekToFirst();
      } else {
        iter->Seek(
            InternalKey(lower, kMaxSequenceNumber, kValueTypeForSeek).Encode());
      }
      source->is_placed = true;
    }
    *found = iter->Valid() && IsBelow(iter->user_key(), upper);
    return iter->status();
  }

  void LookAtRanges(Source* source, const std::string& lower,
                    const std::optional<std::string>& upper, bool* found) {
    FragmentedRangeTombstoneIterator* const ranges = source->ranges.get();
    if (ranges == nullptr) {
      return;
    }
    while (ranges->Valid() && !lower.empty() &&
           job_.ucmp_->Compare(ranges->end_key(), lower) <= 0) {
      ranges->TopNext();
    }
    *found = ranges->Valid() && IsBelow(ranges->start_key(), upper);
  }

  const DeltaGcJob& job_;
  ReadOptions read_options_;
  std::vector<Source> sources_;
};

//======== DeltaGcJob::Writer

// Writes the remaining entries of adjacent buckets to files, and decides where
// new buckets begin.
//
// A *unit* becomes one bucket unless it is too large: it is an old bucket, or
// several that are joined. Where it is cut is decided after all of its entries
// were added, so that the parts have equal sizes. For this the sizes of its
// *pieces* are recorded. A unit that would make its file too large ends early
// if there may be one more bucket.
class DeltaGcJob::Writer final : public DeltaMergePass::Sink {
 public:
  // units: keys at which the units begin, in order.
  // folder: nullptr to fold nothing.
  Writer(DeltaGcJob* job, DeltaFolder* folder, const Plan& plan,
         std::vector<std::string> units)
      : job_(*job),
        folder_(folder),
        min_fold_bytes_(plan.min_fold_bytes),
        wishes_(plan.wishes.get()),
        max_queued_(
            std::min(std::max(kQueuedPerBucketSize * job->context_.bucket_size,
                              kMinQueued),
                     job->context_.max_queued)),
        units_(std::move(units)) {
    StartUnit(units_.front());
    next_unit_ = 1;
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Status AddOperand(const ParsedInternalKey& key, const Slice& internal_key,
                    const Slice& value) override {
    return folder_ == nullptr ? WriteOperand(key.user_key, internal_key, value)
                              : OfferOperand(key, value);
  }
  Status AddAnchor(const Slice& user_key, SequenceNumber seq) override {
    if (folder_ != nullptr) {
      assert(!queue_.empty() && user_key == queue_.LastKey());
      queue_.AddAnchor(seq);
      return Status::OK();
    }
    return WriteAnchor(user_key, seq);
  }
  Status AddRangeAnchor(const Slice&, const Slice&, SequenceNumber) override {
    assert(false);  // the input has all older operands
    return Status::NotSupported("A range anchor in a bucket");
  }

  // To be called after the last entry.
  // end: end of the last unit.
  // marker: any key; if nothing was written, an anchor of this key is written.
  Status Finish(const std::optional<std::string>& end,
                const std::string* marker) {
    Status s = EmptyQueue();
    if (!s.ok()) {
      return s;
    }
    FinishUnit();
    while (next_unit_ < units_.size()) {
      StartUnit(units_[next_unit_++]);
      FinishUnit();
    }
    if (marker != nullptr && operands_.builder == nullptr &&
        anchors_.builder == nullptr) {
      // As nothing was written, no file has been finished, and buckets_ still
      // has all buckets.
      s = WriteMarker(*marker);
    }
    return s.ok() ? FinishFiles(end) : s;
  }

  std::vector<DeltaBucket> TakeBuckets() { return std::move(buckets_); }

 private:
  struct File {
    DeltaFileBuilder* builder = nullptr;  // nullptr: nothing was written
    uint64_t number = 0;
    std::unique_ptr<OutputValidator> validator;
  };
  struct Piece {
    std::string begin;
    uint64_t bytes = 0;
    bool has_operands = false;
    bool has_anchors = false;
  };

  //======== Operands on their way to the folder

  // All operands of a key are queued, however large they are: the merge
  // operator gets them together, as with readers.
  Status OfferOperand(const ParsedInternalKey& key, const Slice& value) {
    Status s;
    if (!queue_.empty() && key.user_key != queue_.LastKey() &&
        IsQueueComplete(key.user_key)) {
      s = EmptyQueue();
    }
    if (s.ok() && queue_.empty()) {
      GoToUnitOf(key.user_key);
    }
    if (s.ok()) {
      queue_.AddOperand(key.user_key, key.sequence, value);
    }
    return s;
  }

  // Returns true if keys must be chosen from the queue before the next key is
  // added.
  bool IsQueueComplete(const Slice& next_key) const {
    return min_fold_bytes_ == 0 || queue_.Memory() >= max_queued_ ||
           (next_unit_ < units_.size() &&
            job_.ucmp_->Compare(next_key, units_[next_unit_]) >= 0);
  }

  // Chooses keys of the unit, or of a part of it.
  void Choose() {
    if (min_fold_bytes_ == 0) {
      queue_.ChooseAll();
      return;
    }
    const SequenceNumber earliest_snapshot =
        job_.context_.pass.earliest_snapshot;
    queue_.ChooseFrom(kManyOperandsPerKey, min_fold_bytes_, earliest_snapshot);
    if (wishes_ != nullptr) {
      queue_.ChooseIf(
          [this](const Slice& user_key) {
            return wishes_->Contains(user_key, job_.ucmp_);
          },
          earliest_snapshot);
    }
    const uint64_t room = HasRoomForBound(queue_.LastKey()) ? job_.room_ : 0;
    const uint64_t limit = job_.max_bucket_size_ * (room + 1);
    if (kept_of_unit_ + queue_.BytesLeft() > limit) {
      const uint64_t max_left = limit / 4 * 3;
      queue_.ChooseLargest(
          max_left > kept_of_unit_ ? max_left - kept_of_unit_ : 0,
          earliest_snapshot);
    }
  }

  Status EmptyQueue() {
    if (queue_.empty()) {
      return Status::OK();
    }
    Choose();
    Status s;
    for (const DeltaFoldQueue::Key& key : queue_.keys()) {
      s = TakeFromQueue(key);
      if (!s.ok()) {
        break;
      }
    }
    queue_.Clear();
    return s;
  }

  Status TakeFromQueue(const DeltaFoldQueue::Key& key) {
    const Slice user_key = queue_.UserKey(key);
    queue_.GetOperands(key, &fold_operands_);
    Status s;
    if (key.is_chosen()) {
      bool taken = false;
      if (++num_folds_ % kFoldCheckInterval == 0 && job_.context_.pass.check) {
        s = job_.context_.pass.check();
      }
      if (s.ok()) {
        s = folder_->Fold(user_key, fold_operands_,
                          /*hidden_from_none=*/!key.has_anchors(), &taken);
      }
      if (s.ok() && taken) {
        // Otherwise readers that see the anchor would not see the operands that
        // it hides from newer readers.
        assert(!key.has_anchors());
        job_.stats_.operands_folded += fold_operands_.size();
        return s;
      }
    }
    for (const auto& [seq, value] : fold_operands_) {
      if (s.ok()) {
        s = WriteOperand(
            user_key, InternalKey(user_key, seq, kTypeMerge).Encode(), value);
      }
    }
    size_t num_anchors = 0;
    const SequenceNumber* const anchors = queue_.Anchors(key, &num_anchors);
    for (size_t i = 0; s.ok() && i < num_anchors; ++i) {
      s = WriteAnchor(user_key, anchors[i]);
    }
    kept_of_unit_ += key.bytes();
    return s;
  }

  //======== Entries

  Status WriteOperand(const Slice& user_key, const Slice& internal_key,
                      const Slice& value) {
    Status s;
    if (!has_key_ || user_key != Slice(key_)) {
      s = StartKey(user_key);
      if (!s.ok()) {
        return s;
      }
    }
    s = GetBuilder(Kind::kOperands, &operands_);
    if (s.ok()) {
      s = operands_.builder->AddOperand(internal_key, value);
    }
    if (s.ok() && operands_.validator != nullptr) {
      s = operands_.validator->Add(internal_key, value);
    }
    pieces_.back().bytes += user_key.size() + value.size();
    pieces_.back().has_operands = true;
    return s;
  }

  Status WriteAnchor(const Slice& user_key, SequenceNumber seq) {
    // It hides an operand that was just written.
    assert(has_key_ && user_key == Slice(key_));
    Status s = GetBuilder(Kind::kAnchors, &anchors_);
    if (s.ok()) {
      s = anchors_.builder->AddAnchor(user_key, seq);
    }
    if (s.ok() && anchors_.validator != nullptr) {
      s = anchors_.validator->Add(
          InternalKey(user_key, seq, kTypeDeletion).Encode(), Slice());
    }
    pieces_.back().has_anchors = true;
    return s;
  }

  Status WriteMarker(const std::string& key) {
    Status s = GetBuilder(Kind::kAnchors, &anchors_);
    if (s.ok()) {
      s = anchors_.builder->AddAnchor(key, /*seq=*/0);
    }
    if (s.ok() && anchors_.validator != nullptr) {
      s = anchors_.validator->Add(InternalKey(key, 0, kTypeDeletion).Encode(),
                                  Slice());
    }
    return s;
  }

  // To be called before the first operand of a key is written.
  Status StartKey(const Slice& user_key) {
    GoToUnitOf(user_key);
    Status s;
    // An empty key cannot be a bound.
    const bool can_cut =
        job_.room_ > 0 && !user_key.empty() && HasRoomForBound(user_key);
    const bool unit_is_empty = !pieces_.back().has_operands;
    if (operands_.builder != nullptr &&
        operands_.builder->FileSize() >= job_.context_.max_file_size) {
      if (unit_is_empty) {
        s = FinishFiles(pieces_.front().begin);
      } else if (can_cut && !job_.joins_) {
        --job_.room_;
        job_.bound_bytes_ += user_key.size();
        FinishUnit();
        s = FinishFiles(user_key.ToString());
        StartUnit(user_key.ToString());
      }
    }
    if (can_cut &&
        pieces_.back().bytes >=
            std::max<uint64_t>(job_.max_bucket_size_ / kPiecesPerBucket, 1)) {
      pieces_.emplace_back();
      pieces_.back().begin = user_key.ToString();
      piece_bound_bytes_ += user_key.size();
    }
    key_.assign(user_key.data(), user_key.size());
    has_key_ = true;
    return s;
  }

  //======== Buckets

  void StartUnit(const std::string& begin) {
    pieces_.clear();
    pieces_.emplace_back();
    pieces_.back().begin = begin;
    piece_bound_bytes_ = 0;
    kept_of_unit_ = 0;
  }

  // REQUIRES: all keys below it have been written.
  void GoToUnitOf(const Slice& user_key) {
    while (next_unit_ < units_.size() &&
           job_.ucmp_->Compare(user_key, units_[next_unit_]) >= 0) {
      FinishUnit();
      StartUnit(units_[next_unit_++]);
    }
  }

  // Returns true if the key may be the lower bound of one more bucket, and all
  // pieces of the unit may become buckets.
  bool HasRoomForBound(const Slice& user_key) const {
    return job_.bound_bytes_ + piece_bound_bytes_ + user_key.size() <=
           job_.context_.max_bound_bytes;
  }

  // Returns the number of parts into which a unit of that size is cut.
  uint64_t NumParts(uint64_t bytes) const {
    const uint64_t max_size = job_.max_bucket_size_;
    uint64_t num_parts = 1;
    if (job_.is_first_partition_) {
      num_parts = (bytes + job_.part_size_ / 2) / job_.part_size_;
    } else if (bytes > max_size) {
      // A part may be one or two pieces larger than its target.
      num_parts = CeilDivide(
          bytes,
          std::max<uint64_t>(max_size - 2 * (max_size / kPiecesPerBucket), 1));
    }
    return std::clamp<uint64_t>(num_parts, 1, job_.room_ + 1);
  }

  void FinishUnit() {
    uint64_t rest = 0;
    for (const Piece& piece : pieces_) {
      rest += piece.bytes;
    }
    uint64_t num_parts = NumParts(rest);
    const uint64_t even = rest / num_parts;
    for (size_t first = 0, last = 0; first < pieces_.size(); first = last) {
      uint64_t bytes = pieces_[last++].bytes;
      // Later parts compensate for a part that is too large or too small, but
      // they need not be tiny after a huge key.
      const uint64_t target = std::max(rest / num_parts, even / 4 * 3);
      while (last < pieces_.size() &&
             (num_parts == 1 || bytes + pieces_[last].bytes / 2 < target)) {
        bytes += pieces_[last++].bytes;
      }
      rest -= bytes;
      if (rest < even / 2 && bytes + rest <= job_.max_bucket_size_) {
        last = pieces_.size();
      }
      if (first > 0) {
        job_.bound_bytes_ += pieces_[first].begin.size();
      }
      AddBucket(first, last);
      if (first > 0) {
        assert(job_.room_ > 0);
        --job_.room_;
      }
      num_parts -= num_parts > 1;
    }
    pieces_.clear();
  }

  // Adds a bucket with the pieces [first, last).
  void AddBucket(size_t first, size_t last) {
    DeltaBucket& bucket = buckets_.emplace_back();
    bucket.lower_bound = std::move(pieces_[first].begin);
    bucket.state.floor = job_.floor_;
    for (size_t i = first; i < last; ++i) {
      const Piece& piece = pieces_[i];
      if (piece.has_operands) {
        bucket.state.extent_number = operands_.number;
        // At least 1: operands of an empty key may have 0 bytes, but 0 means
        // that there are no operands.
        bucket.state.extent_bytes =
            std::max<uint64_t>(bucket.state.extent_bytes + piece.bytes, 1);
      }
      if (piece.has_anchors) {
        bucket.state.anchors_number = anchors_.number;
      }
    }
  }

  //======== Files

  Status GetBuilder(Kind kind, File* file) {
    if (file->builder != nullptr) {
      return Status::OK();
    }
    const Context& context = job_.context_;
    DeltaFileBuilder::Options options = context.output;
    options.number = context.new_file_number();
    options.kind = kind;
    options.tier = Tier::kSorted;
    options.first_epoch = 0;
    options.last_epoch = 0;
    options.has_global_seq = false;
    options.publish_later = folder_ != nullptr;
    // Except for a marker, each anchor follows an operand.
    options.operands_number = kind == Kind::kAnchors ? operands_.number : 0;
    std::unique_ptr<DeltaFileBuilder> builder;
    Status s = DeltaFileBuilder::Create(context.pass.store->tables(), options,
                                        &builder);
    if (!s.ok()) {
      return s;
    }
    if (context.checks.entries) {
      icmp_settings_ = context.pass.store->tables().settings();
      file->validator = std::make_unique<OutputValidator>(
          icmp_settings_->icmp(), /*enable_hash=*/true);
    }
    file->number = options.number;
    file->builder = builder.get();
    job_.builders_.push_back(std::move(builder));
    return s;
  }

  // Finishes the current files, which are for the buckets that were added since
  // the last call and end at `end`.
  Status FinishFiles(const std::optional<std::string>& end) {
    std::vector<DeltaFileProperties::Bucket> buckets;
    for (; num_finished_ < buckets_.size(); ++num_finished_) {
      DeltaBucket& bucket = buckets_[num_finished_];
      buckets.push_back({bucket.lower_bound, bucket.state.floor});
      // The file that records that there are no operands stays as long as the
      // bucket.
      if (operands_.builder == nullptr) {
        bucket.state.anchors_number = anchors_.number;
      } else if (!bucket.state.HasOperands()) {
        bucket.state.extent_number = operands_.number;
      }
    }
    Status s = FinishFile(&operands_, buckets, end);
    if (s.ok()) {
      s = FinishFile(&anchors_, buckets, end);
    }
    return s;
  }

  Status FinishFile(File* file,
                    const std::vector<DeltaFileProperties::Bucket>& buckets,
                    const std::optional<std::string>& end) {
    if (file->builder == nullptr) {
      return Status::OK();
    }
    Status s = file->builder->SetBuckets(buckets, end);
    TEST_SYNC_POINT_CALLBACK("DeltaGcJob::Writer::FinishFile", &s);
    DeltaFileDescription description;
    if (s.ok()) {
      s = file->builder->Finish(&description);
    }
    if (s.ok()) {
      const DeltaMergePass::Context& context = job_.context_.pass;
      std::string name = file->builder->file_name();
      TEST_SYNC_POINT_CALLBACK("DeltaGcJob::Writer::FinishFile:Verify", &name);
      s = CheckDeltaOutput(name, context.store->tables(), context.read_options,
                           TableReaderCaller::kCompaction, job_.context_.checks,
                           file->validator.get(), &description);
    }
    if (s.ok()) {
      ++job_.stats_.files_written;
      job_.stats_.bytes_written += description.size;
      job_.files_.push_back(std::move(description));
      *file = File();
    }
    return s;
  }

  DeltaGcJob& job_;
  DeltaFolder* const folder_;  // nullptr: nothing is folded
  const uint64_t min_fold_bytes_;
  const DeltaFoldWishes* const wishes_;  // may be nullptr
  // Maximum memory of the queue, in bytes.
  const uint64_t max_queued_;
  const std::vector<std::string> units_;
  size_t next_unit_ = 0;

  // Keeps the comparator of the validators alive.
  std::shared_ptr<const DeltaTableSettings> icmp_settings_;
  File operands_;
  File anchors_;

  // The key of the last operand that was written.
  std::string key_;
  bool has_key_ = false;
  std::vector<Piece> pieces_;  // of the current unit
  // Size in bytes of the keys at which pieces begin, without the first one.
  uint64_t piece_bound_bytes_ = 0;
  std::vector<DeltaBucket> buckets_;
  size_t num_finished_ = 0;  // buckets whose files are finished

  // Used with a folder.
  DeltaFoldQueue queue_;
  // Bytes of the unit that left the queue without being folded.
  uint64_t kept_of_unit_ = 0;
  uint64_t num_folds_ = 0;
  std::vector<DeltaFolder::Operand> fold_operands_;
};

//======== DeltaGcJob

DeltaGcJob::DeltaGcJob(Context context)
    : context_(std::move(context)),
      ucmp_(context_.version->user_comparator()),
      max_bucket_size_(std::max<uint64_t>(
          static_cast<uint64_t>(static_cast<double>(context_.bucket_size) *
                                context_.split_ratio),
          1)) {}

DeltaGcJob::~DeltaGcJob() { io_status_.PermitUncheckedError(); }

Status DeltaGcJob::Run(const Plan& plan) {
  TEST_SYNC_POINT("DeltaGcJob::Run:Start");
  Status s = RunPlan(plan);
  TEST_SYNC_POINT_CALLBACK("DeltaGcJob::Run:End", &s);
  if (!s.ok()) {
    for (const auto& builder : builders_) {
      if (io_status_.ok()) {
        io_status_ = builder->io_status();
      }
    }
    Abandon();
  }
  return s;
}

Status DeltaGcJob::RunPlan(const Plan& plan) {
  Status s = FindBuckets(plan);
  if (s.ok()) {
    s = SelectBuckets(plan);
  }
  if (!s.ok()) {
    return s;
  }
  DeltaMergePass pass(context_.pass);
  for (size_t first = 0, last = 0; s.ok() && first < buckets_.size();
       first = last) {
    for (last = first + 1;
         last < buckets_.size() &&
         buckets_[last].is_written == buckets_[first].is_written;) {
      ++last;
    }
    if (buckets_[first].is_written) {
      s = Rewrite(plan, first, last, &pass);
    } else {
      RaiseFloors(first, last);
    }
  }
  stats_.pass = pass.stats();
  return s;
}

Status DeltaGcJob::FindBuckets(const Plan& plan) {
  const DeltaBucketTable& table = context_.version->Buckets();
  room_ = plan.max_new_buckets;
  bound_bytes_ = table.BoundBytes();
  floor_ = plan.floor;
  end_ = plan.end;
  is_first_partition_ = table.empty();
  if (is_first_partition_) {
    if (!plan.begin.empty() || plan.end.has_value() || plan.floor == 0) {
      return Status::InvalidArgument("The plan is not for a first partition");
    }
    buckets_.emplace_back();
    // The first bucket counts as a new one.
    room_ -= room_ > 0;
    uint64_t bytes = 0;
    for (const FilePtr& file : FilesOf(Kind::kOperands, DeltaBucketState())) {
      bytes += file->description().raw_bytes;
    }
    part_size_ = std::max<uint64_t>(
        {max_bucket_size_ / 2, CeilDivide(bytes, room_ + 1), 1});
    return Status::OK();
  }
  const auto first = table.FindBound(plan.begin, ucmp_);
  const auto last =
      plan.end.has_value() ? table.FindBound(*plan.end, ucmp_) : table.End();
  if (first == table.End() || (plan.end.has_value() && last == table.End()) ||
      !(first < last)) {
    return Status::InvalidArgument("The buckets of the plan do not exist");
  }
  for (auto p = first; p != last; p = table.Next(p)) {
    OldBucket& bucket = buckets_.emplace_back();
    bucket.lower = table.LowerBound(p).ToString();
    bucket.state = table.State(p);
    // Floors must not fall, and several buckets may be joined.
    floor_ = std::max(floor_, bucket.state.floor);
  }
  joins_ = plan.merge_neighbours;
  if (joins_) {
    room_ += buckets_.size() - 1;
  }
  return Status::OK();
}

Status DeltaGcJob::SelectBuckets(const Plan& plan) {
  if (is_first_partition_ || plan.merge_neighbours || plan.fold ||
      plan.rewrite_all) {
    for (OldBucket& bucket : buckets_) {
      bucket.is_written = true;
    }
    return Status::OK();
  }
  Probe probe(*this);
  Status s = probe.Open();
  // The buckets between the last one that is rewritten and this one.
  size_t gap_begin = 0;
  uint64_t gap_bytes = 0;
  bool has_written = false;
  for (size_t i = 0; s.ok() && i < buckets_.size(); ++i) {
    OldBucket& bucket = buckets_[i];
    bool has_operand = false;
    bool has_anchor = false;
    s = context_.pass.check ? context_.pass.check() : Status::OK();
    if (s.ok()) {
      s = probe.Look(bucket, UpperBound(i), &has_operand, &has_anchor);
    }
    // An anchor can only hide operands of the extent.
    bucket.is_written =
        has_operand || (has_anchor && bucket.state.HasOperands());
    if (!bucket.is_written) {
      gap_bytes += bucket.state.extent_bytes;
      continue;
    }
    if (has_written && gap_bytes <= kMaxGap * context_.bucket_size) {
      for (size_t j = gap_begin; j < i; ++j) {
        buckets_[j].is_written = true;
      }
    }
    has_written = true;
    gap_begin = i + 1;
    gap_bytes = 0;
  }
  return s;
}

std::vector<DeltaVersion::FilePtr> DeltaGcJob::FilesOf(
    Kind kind, const DeltaBucketState& bucket) const {
  std::vector<FilePtr> files;
  for (const FilePtr& file :
       context_.version->RecentFilesAbove(kind, bucket.floor)) {
    if (file->description().tier == Tier::kMerged &&
        file->description().last_epoch <= floor_) {
      files.push_back(file);
    }
  }
  const uint64_t sorted =
      kind == Kind::kOperands ? bucket.extent_number : bucket.anchors_number;
  if (sorted != 0) {
    FilePtr file = context_.version->GetFile(sorted);
    assert(file != nullptr);
    files.push_back(std::move(file));
  }
  return files;
}

Status DeltaGcJob::Rewrite(const Plan& plan, size_t first, size_t last,
                           DeltaMergePass* pass) {
  DeltaEdit::ReplaceBuckets replace;
  replace.range.begin = buckets_[first].lower;
  replace.range.end = UpperBound(last - 1);

  std::vector<std::string> units;
  for (size_t i = first; i < (plan.merge_neighbours ? first + 1 : last); ++i) {
    units.push_back(buckets_[i].lower);
  }
  Writer writer(this, plan.fold ? context_.folder : nullptr, plan,
                std::move(units));
  // Set to some key if there were, or may have been, operands.
  std::optional<std::string> some_key;
  Status s;
  for (size_t i = first, next = first; s.ok() && i < last; i = next) {
    // Buckets with the same files are read together.
    for (next = i + 1; next < last &&
                       buckets_[next].state.floor == buckets_[i].state.floor &&
                       buckets_[next].state.extent_number ==
                           buckets_[i].state.extent_number &&
                       buckets_[next].state.anchors_number ==
                           buckets_[i].state.anchors_number;) {
      ++next;
    }
    DeltaMergePass::Input input;
    input.begin = buckets_[i].lower;
    input.has_begin = !input.begin.empty();
    const std::optional<std::string> end = UpperBound(next - 1);
    input.has_end = end.has_value();
    input.end = end.value_or(std::string());
    input.operands = FilesOf(Kind::kOperands, buckets_[i].state);
    input.anchors = FilesOf(Kind::kAnchors, buckets_[i].state);
    input.has_all_older = true;
    if (!input.operands.empty()) {
      some_key = input.operands.front()->description().smallest;
    } else if (buckets_[i].state.anchors_number != 0) {
      some_key = context_.version->GetFile(buckets_[i].state.anchors_number)
                     ->description()
                     .smallest;
    }
    s = pass->Run(input, &writer);
  }
  if (s.ok()) {
    if (some_key.has_value() && !replace.range.begin.empty()) {
      some_key = replace.range.begin;
    }
    s = writer.Finish(replace.range.end,
                      some_key.has_value() ? &*some_key : nullptr);
  }
  if (!s.ok()) {
    return s;
  }
  replace.buckets = writer.TakeBuckets();
  stats_.buckets_read += is_first_partition_ ? 0 : last - first;
  stats_.buckets_written += replace.buckets.size();
  replaced_.push_back(std::move(replace));
  return s;
}

void DeltaGcJob::RaiseFloors(size_t first, size_t last) {
  for (size_t i = first; i < last; ++i) {
    if (buckets_[i].state.floor == floor_) {
      continue;
    }
    ++stats_.buckets_raised;
    if (i > first && buckets_[i - 1].state.floor != floor_) {
      raised_.back().range.end = UpperBound(i);
    } else {
      raised_.push_back({{buckets_[i].lower, UpperBound(i)}, floor_});
    }
  }
}

void DeltaGcJob::AddTo(DeltaEdit* edit, bool drop_unused_buckets) const {
  for (const DeltaFileDescription& file : files_) {
    edit->AddFile(file);
  }
  for (const DeltaEdit::ReplaceBuckets& replace : replaced_) {
    edit->AddReplaceBuckets(replace);
  }
  for (const DeltaEdit::RaiseFloors& raise : raised_) {
    edit->AddRaiseFloors(raise);
  }
  if (drop_unused_buckets) {
    edit->SetDropUnusedBuckets();
  }
}

Status DeltaGcJob::Publish(FSDirectory* directory) {
  Status s = PublishFiles(directory);
  if (s.ok()) {
    for (const DeltaFileDescription& file : files_) {
      OpenDeltaOutput(context_.pass.store->tables(), context_.pass.read_options,
                      file);
    }
  }
  return s;
}

Status DeltaGcJob::PublishFiles(FSDirectory* directory) {
  Status s;
  for (const auto& builder : builders_) {
    s = builder->Publish();
    if (!s.ok()) {
      io_status_ = builder->io_status();
      break;
    }
  }
  if (!s.ok() || directory == nullptr) {
    return s;
  }
  // The sync must be requested for the right reason: for a new file btrfs may
  // skip it, as new files are durable with their contents, but then a rename is
  // not durable.
  IOStatus io_s;
  bool some_are_new = false;
  for (const auto& builder : builders_) {
    if (!builder->MayBeRenamed()) {
      some_are_new = true;
    } else if (io_s.ok()) {
      io_s = directory->FsyncWithDirOptions(
          IOOptions(), /*dbg=*/nullptr, DirFsyncOptions(builder->file_name()));
    }
  }
  if (io_s.ok() && some_are_new) {
    io_s = directory->FsyncWithDirOptions(
        IOOptions(), /*dbg=*/nullptr,
        DirFsyncOptions(DirFsyncOptions::FsyncReason::kNewFileSynced));
  }
  if (!io_s.ok()) {
    io_status_ = io_s;
  }
  return io_s;
}

bool DeltaGcJob::Abandon(FSDirectory* directory) {
  for (const DeltaFileDescription& file : files_) {
    // An edit that failed may have copies of the description.
    CloseDeltaOutput(file);
  }
  files_.clear();
  bool is_gone = true;
  bool some_may_be_renamed = false;
  for (const auto& builder : builders_) {
    some_may_be_renamed |= builder->MayBeRenamed();
    is_gone &= builder->Abandon();
  }
  if (is_gone && some_may_be_renamed && directory != nullptr) {
    is_gone =
        directory
            ->FsyncWithDirOptions(
                IOOptions(), /*dbg=*/nullptr,
                DirFsyncOptions(DirFsyncOptions::FsyncReason::kFileDeleted))
            .ok();
  }
  if (is_gone) {
    builders_.clear();
  }
  replaced_.clear();
  raised_.clear();
  return is_gone;
}

}  // namespace ROCKSDB_NAMESPACE
