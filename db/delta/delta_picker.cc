//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_picker.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_read.h"
#include "db/path_layout/path_layout.h"
#include "options/cf_options.h"
#include "rocksdb/table_properties.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using FilePtr = DeltaVersion::FilePtr;
using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;
using Position = DeltaBucketTable::Position;

template <typename Fn>
void ForEachOfTier(const DeltaVersion& version, Tier tier, Fn fn) {
  for (Kind kind : {Kind::kOperands, Kind::kAnchors}) {
    for (const FilePtr& file : version.RecentFiles(kind)) {
      if (file->description().tier == tier) {
        fn(file);
      }
    }
  }
}

// Returns the lowest floor of the buckets that are not damaged; UINT64_MAX if
// there is no such bucket, 0 if there is no damage.
uint64_t LowestFloor(const DeltaVersion& version, const DeltaDamage& damage) {
  const DeltaBucketTable& table = version.Buckets();
  if (!damage.HasDamaged() || table.empty()) {
    return 0;
  }
  const Comparator* const ucmp = version.user_comparator();
  uint64_t lowest = UINT64_MAX;
  // The buckets between two damaged ranges are [first, last).
  Position first = table.Begin();
  const auto look_until = [&](Position last) {
    if (first < last) {
      lowest = std::min(lowest, table.MinFloor(first, last));
    }
  };
  for (const DeltaDamage::Range& damaged : damage.ranges()) {
    if (damaged.state != DeltaDamage::State::kDamaged) {
      continue;
    }
    const auto& [begin, end] = damaged.range;
    look_until(begin.empty() ? table.Begin() : table.Find(begin, ucmp));
    if (!end.has_value()) {
      return lowest;
    }
    // A bucket of which a part is damaged is left alone as a whole.
    first = table.Find(*end, ucmp);
    if (table.LowerBound(first).empty() ||
        !ucmp->Equal(table.LowerBound(first), *end)) {
      first = table.Next(first);
    }
  }
  look_until(table.End());
  return lowest;
}

// Returns the average number of operands per key; 0 if it is not known.
uint64_t OperandsPerKey(const DeltaFileMeta& file) {
  const DeltaFileReader* const reader = file.OpenedReader();
  if (reader == nullptr) {
    return 0;
  }
  // A filter has each key once.
  const auto properties = reader->GetTableProperties();
  return properties == nullptr || properties->num_filter_entries == 0
             ? 0
             : file.description().num_entries / properties->num_filter_entries;
}

}  // namespace

DeltaPicker::Paths DeltaPicker::Paths::By(const MutableCFOptions& options,
                                          int num_levels) {
  return {PathLayout::RecentDeltaPathId(options),
          PathLayout::SortedDeltaPathId(options, num_levels)};
}

bool DeltaPicker::Options::DrainsAll() const {
  return drain &&
         std::none_of(leftovers.begin(), leftovers.end(),
                      [this](const auto& entry) {
                        return entry.second.IsWaiting(earliest_snapshot);
                      });
}

DeltaPicker::Merge DeltaPicker::PickMerge(const Options& options,
                                          const DeltaVersion& version) {
  Merge merge;
  size_t num_operands = 0;
  size_t num_anchors = 0;
  uint64_t first_epoch = UINT64_MAX;
  bool is_any_misplaced = false;
  ForEachOfTier(version, Tier::kFlushed, [&](const FilePtr& file) {
    const DeltaFileDescription& description = file->description();
    if (description.last_epoch >= options.oldest_running_flush) {
      // Files of the running flush would be added too late otherwise.
      return;
    }
    ++(description.kind == Kind::kOperands ? num_operands : num_anchors);
    first_epoch = std::min(first_epoch, description.first_epoch);
    merge.last_epoch = std::max(merge.last_epoch, description.last_epoch);
    merge.bytes += description.size;
    merge.inputs.push_back(file);
    is_any_misplaced |= options.IsMisplaced(description);
  });
  const bool is_large =
      first_epoch < merge.last_epoch && merge.bytes >= kMinMerged &&
      merge.bytes >= version.GetTotals().bytes / kFlushedDivisor;
  if (num_operands < kMaxFlushed && num_anchors < kMaxFlushed && !is_large &&
      first_epoch >= options.force_below && !options.DrainsAll() &&
      !(options.wishes != nullptr && first_epoch < options.wishes_below)) {
    merge.moves_files = is_any_misplaced;
    return is_any_misplaced ? merge : Merge();
  }
  return merge;
}

bool DeltaPicker::CanFulfil(const Options& options,
                            const DeltaVersion& version) {
  bool result = options.wishes != nullptr && options.can_fold;
  ForEachOfTier(version, Tier::kFlushed, [&](const FilePtr& file) {
    result &= file->description().first_epoch >= options.wishes_below;
  });
  return result;
}

bool DeltaPicker::HasForcedMerge(const Options& options,
                                 const DeltaVersion& version) {
  bool result = false;
  ForEachOfTier(version, Tier::kFlushed, [&](const FilePtr& file) {
    const uint64_t epoch = file->description().first_epoch;
    result |= epoch < options.force_below ||
              (options.wishes != nullptr && epoch < options.wishes_below);
  });
  return result;
}

uint64_t DeltaPicker::ForceBelowToMove(const Paths& paths,
                                       const DeltaVersion& version) {
  uint64_t flushed = 0;
  uint64_t merged = 0;
  bool is_any_misplaced = false;
  version.ForEachFile([&](const FilePtr& file) {
    const DeltaFileDescription& description = file->description();
    if (!paths.IsMisplaced(description)) {
      return;
    }
    is_any_misplaced = true;
    if (description.tier == Tier::kFlushed) {
      flushed = std::max(flushed, description.first_epoch + 1);
    } else if (description.tier == Tier::kMerged) {
      merged = std::max(merged, description.first_epoch + 1);
    }
  });
  // A merge moves flushed files; buckets need not take them in.
  if (flushed > 0) {
    return flushed;
  }
  return is_any_misplaced ? std::max(merged, uint64_t{1}) : 0;
}

bool DeltaPicker::MayCollect(const DeltaVersion& version) {
  bool result = !version.Buckets().empty();
  ForEachOfTier(version, Tier::kMerged,
                [&result](const FilePtr&) { result = true; });
  return result;
}

//======== DeltaPicker::CollectionPicker

class DeltaPicker::CollectionPicker {
 public:
  CollectionPicker(const Options& options, const DeltaVersion& version,
                   const DeltaBucketIntake& slices,
                   const std::vector<DeltaJobState::Collection>& running)
      : options_(options),
        version_(version),
        table_(version.Buckets()),
        slices_(slices),
        running_(running),
        wishes_(CanFulfil(options, version) ? options.wishes : nullptr),
        part_size_(std::max(
            uint64_t{1},
            static_cast<uint64_t>(options.split_ratio *
                                  static_cast<double>(options.bucket_size)))) {}

  Collection Pick() {
    FindEpochs();
    if (table_.empty()) {
      if (!IsFirstPartitionDue()) {
        return Collection();
      }
      return running_.empty() ? FirstPartition() : Later();
    }
    if (!FindRunning()) {
      return Later();
    }
    if (IsUnused()) {
      return running_.empty() ? DropAll() : Later();
    }
    FindBuckets();
    if (IsRequest()) {
      return PickForRequest();
    }
    Collection result = options_.drain ? Collection() : PickNeighbours();
    if (!result.found) {
      result = PickVictims();
    }
    return result;
  }

 private:
  struct Bucket {
    Position position;
    // Bytes of its extent, and bytes that it would take in.
    uint64_t extent = 0;
    uint64_t slice = 0;
    // It belongs to a running collection.
    bool is_running = false;
    // It is damaged, and no job takes it.
    bool is_left_alone = false;
    // No other bucket may be collected together with it.
    bool is_single = false;
    // It would be a victim if it were free.
    bool is_due = false;
    bool is_overdue = false;
    // Rewrite it even if it has nothing to take in.
    bool is_to_rewrite = false;
    // Its sorted files are misplaced, or one of them is.
    bool is_misplaced = false;
    // It has a misplaced merged file to take in.
    bool is_before_misplaced = false;
    bool is_victim = false;
    bool is_to_fold = false;
    // Fold only keys that are wished for.
    bool is_wish_only = false;

    // True if a collection may take it.
    bool is_free() const { return !is_running && !is_left_alone; }
    // True if a collection may take it together with others.
    bool may_join() const { return is_free() && !is_single; }
    uint64_t size() const { return extent + slice; }
    // Returns the bytes to rewrite if it is collected together with others.
    uint64_t Cost(bool rewrite) const {
      return slice > 0 || rewrite ? size() : 0;
    }
  };
  // Buckets [first, last) of buckets_.
  struct Run {
    size_t first = 0;
    size_t last = 0;
    uint64_t cost = 0;
    uint64_t cost_of_victims = 0;
    uint64_t gain = 0;
    bool has_overdue = false;
    bool has_rewrite = false;
    bool fold = false;
    bool fold_wishes_only = false;

    bool empty() const { return first == last; }
    bool IsBetterThan(const Run& other) const {
      if (empty() || other.empty()) {
        return !empty();
      }
      return has_overdue != other.has_overdue ? has_overdue : gain > other.gain;
    }
  };

  void FindEpochs() {
    ForEachOfTier(version_, Tier::kMerged, [&](const FilePtr& file) {
      const DeltaFileDescription& description = file->description();
      epochs_.push_back(description.last_epoch);
      if (description.first_epoch < options_.force_below) {
        forced_ = std::max(forced_, description.last_epoch);
      }
      // CompactRange() takes in what has come before the call in any case.
      if (!IsOfCall() && options_.IsMisplaced(description)) {
        misplaced_epoch_ = std::max(misplaced_epoch_, description.last_epoch);
      }
      merged_bytes_ += description.raw_bytes;
    });
    std::sort(epochs_.begin(), epochs_.end());
    epochs_.erase(std::unique(epochs_.begin(), epochs_.end()), epochs_.end());
  }
  // Returns true if the pick is one of CompactRange().
  bool IsOfCall() const { return options_.force_below > 0; }
  // Returns true if the pick takes only what is forced or wished for.
  bool IsRequest() const { return IsOfCall() && !options_.drain; }
  static Collection Later() {
    Collection result;
    result.waits_for_others = true;
    return result;
  }
  // Buckets are put together only to make room for the victims.
  Collection PickForRequest() {
    const bool is_any_due =
        std::any_of(buckets_.begin(), buckets_.end(), [](const Bucket& bucket) {
          return bucket.is_due && bucket.is_running;
        });
    Collection result = PickVictims();
    if (result.found) {
      const Collection neighbours = PickNeighbours();
      return neighbours.found ? neighbours : result;
    }
    // A fold must have ended before another one can fulfil wishes.
    result.waits_for_others =
        is_any_due || IsAnyWritingElsewhere() ||
        (options_.wishes != nullptr && wishes_ == nullptr &&
         std::any_of(running_.begin(), running_.end(),
                     [](const DeltaJobState::Collection& other) {
                       return other.is_folding;
                     }));
    return result;
  }

  // Returns true if a collection that began before the options changed will
  // leave misplaced files.
  bool IsAnyWritingElsewhere() const {
    return options_.moves_all && options_.paths.has_value() &&
           std::any_of(running_.begin(), running_.end(),
                       [this](const DeltaJobState::Collection& other) {
                         return other.path_id != options_.paths->sorted;
                       });
  }

  // Returns the last epoch of the merged files; 0 if there are none.
  uint64_t NewestEpoch() const { return epochs_.empty() ? 0 : epochs_.back(); }

  bool IsFirstPartitionDue() const {
    if (epochs_.empty()) {
      return false;
    }
    return forced_ > 0 || misplaced_epoch_ > 0 || options_.drain ||
           wishes_ != nullptr || epochs_.size() >= kFirstPartitionMerged ||
           merged_bytes_ >= options_.bucket_size * options_.max_buckets /
                                kFirstPartitionDivisor;
  }

  Collection FirstPartition() const {
    Collection result;
    result.found = true;
    result.takes_all = true;
    result.plan.floor = NewestEpoch();
    // One bucket is counted already, and two must be left for splits.
    result.plan.max_new_buckets =
        options_.max_buckets - std::min(options_.max_buckets, 3u);
    result.num_buckets = 1;
    result.bytes = merged_bytes_;
    // Large amounts are partitioned first, and then folded in parts.
    result.plan.fold = (options_.drain || wishes_ != nullptr) &&
                       options_.can_fold &&
                       merged_bytes_ <= MaxCost(/*fold=*/true);
    if (result.plan.fold && !options_.drain) {
      result.plan.wishes = wishes_;
      result.plan.min_fold_bytes = UINT64_MAX;
    }
    return result;
  }

  // Returns true if all buckets are empty and there are no recent files. That
  // is possible if jobs that ran concurrently took the last operands.
  bool IsUnused() const {
    return version_.RecentFiles(Kind::kOperands).empty() &&
           version_.RecentFiles(Kind::kAnchors).empty() &&
           table_.NextWithExtent(table_.Begin()) == table_.End();
  }
  Collection DropAll() const {
    Collection result;
    result.found = true;
    result.takes_all = true;
    result.plan.rewrite_all = true;
    result.num_buckets = table_.size();
    return result;
  }

  // Finds the buckets of running collections. Returns false if the version does
  // not have these buckets.
  bool FindRunning() {
    const Comparator* const ucmp = version_.user_comparator();
    for (const DeltaJobState::Collection& collection : running_) {
      const auto& [begin, end] = collection.range;
      const Position first = table_.FindBound(begin, ucmp);
      const Position last =
          end.has_value() ? table_.FindBound(*end, ucmp) : table_.End();
      if (first == table_.End() || (end.has_value() && last == table_.End())) {
        return false;
      }
      busy_.emplace_back(first, last);
      more_buckets_ += collection.more_buckets;
      fewer_buckets_ += collection.fewer_buckets;
    }
    return true;
  }

  bool IsRunning(Position position) const {
    return std::any_of(busy_.begin(), busy_.end(), [&](const auto& range) {
      return !(position < range.first) && position < range.second;
    });
  }

  uint64_t MaxCost(bool fold) const {
    return fold ? std::min(options_.max_folded, options_.max_collected)
                : options_.max_collected;
  }

  // Returns how many more buckets may be added.
  uint64_t Room() const {
    const uint64_t taken = table_.size() + more_buckets_;
    return taken < options_.max_buckets ? options_.max_buckets - taken : 0;
  }

  void FindSparseFiles() {
    std::unordered_map<uint64_t, uint64_t> live;
    for (Position p = table_.Begin(); p != table_.End(); p = table_.Next(p)) {
      const DeltaBucketState& state = table_.State(p);
      live[state.extent_number] += state.extent_bytes;
    }
    for (const DeltaVersion::SortedFile& sorted : version_.SortedFiles()) {
      const DeltaFileDescription& file = sorted.file->description();
      if (file.kind == Kind::kOperands &&
          live[file.number] < file.raw_bytes / 2) {
        sparse_.insert(file.number);
      }
    }
  }

  void FindMisplacedFiles() {
    for (const DeltaVersion::SortedFile& sorted : version_.SortedFiles()) {
      const DeltaFileDescription& file = sorted.file->description();
      if (options_.IsMisplaced(file) && (!IsOfCall() || options_.moves_all ||
                                         file.number < options_.force_below)) {
        misplaced_.insert(file.number);
      }
    }
  }
  bool IsMisplaced(const DeltaBucketState& state) const {
    return misplaced_.count(state.extent_number) > 0 ||
           misplaced_.count(state.anchors_number) > 0;
  }

  // Returns true if the file may be the reason to rewrite a bucket.
  bool MayBeReason(uint64_t file_number) const {
    return !IsRequest() || file_number < options_.force_below;
  }

  // Returns true if the bucket has anchors that were kept only for snapshots
  // that are gone.
  bool HasOldAnchors(const DeltaBucketState& state) const {
    // Without operands the file records that there are none, and must stay.
    if (state.anchors_number == 0 || !state.HasOperands()) {
      return false;
    }
    const DeltaFileMeta* const file =
        FindSortedDeltaFile(version_, state.anchors_number);
    return file != nullptr &&
           file->description().largest_seq <= options_.earliest_snapshot;
  }

  bool HasManyOperandsPerKey(uint64_t number) {
    if (number == 0) {
      return false;
    }
    const auto [it, is_new] = many_per_key_.emplace(number, false);
    if (is_new) {
      const DeltaFileMeta* const file = FindSortedDeltaFile(version_, number);
      it->second = file != nullptr &&
                   OperandsPerKey(*file) >= DeltaGcJob::kManyOperandsPerKey;
    }
    return it->second;
  }

  void FindBuckets() {
    FindSparseFiles();
    FindMisplacedFiles();
    const uint64_t min_slice =
        std::max(uint64_t{1}, options_.bucket_size / kMinSliceDivisor);
    // The oldest merged file goes when all buckets have taken it in.
    uint64_t needed = forced_;
    if (options_.DrainsAll()) {
      needed = NewestEpoch();
    } else if (!IsRequest()) {
      // A bucket that is left alone keeps files that the others do not need.
      const auto first =
          std::upper_bound(epochs_.begin(), epochs_.end(),
                           LowestFloor(version_, options_.damage));
      if (static_cast<size_t>(epochs_.end() - first) >= kMaxMerged) {
        needed = std::max(needed, *first);
      }
    }
    const bool has_room = Room() > 0;
    buckets_.reserve(table_.size());
    for (Position p = table_.Begin(); p != table_.End(); p = table_.Next(p)) {
      const DeltaBucketState& state = table_.State(p);
      Bucket& bucket = buckets_.emplace_back();
      bucket.position = p;
      bucket.extent = state.extent_bytes;
      bucket.slice = slices_.SizeOf(buckets_.size() - 1, state.floor);
      bucket.is_running = IsRunning(p);
      MarkDamage(&bucket);
      bucket.is_overdue = state.floor < needed;
      bucket.is_to_rewrite =
          (MayBeReason(state.extent_number) &&
           sparse_.count(state.extent_number) > 0) ||
          (MayBeReason(state.anchors_number) && HasOldAnchors(state));
      const bool is_full =
          !IsRequest() && (bucket.slice >= options_.bucket_size ||
                           (bucket.slice >= min_slice &&
                            bucket.slice >= bucket.extent / kSliceDivisor));
      const bool is_wished = IsWished(p);
      bucket.is_misplaced = IsMisplaced(state);
      bucket.is_before_misplaced = state.floor < misplaced_epoch_;
      bucket.is_due = is_full || bucket.is_overdue || bucket.is_to_rewrite ||
                      is_wished || bucket.is_misplaced ||
                      bucket.is_before_misplaced;
      bucket.is_victim = bucket.is_free() &&
                         (is_full || bucket.is_overdue || bucket.is_to_rewrite);
      if (options_.drain) {
        DrainBucket(state, &bucket);
        continue;
      }
      bucket.is_to_fold = bucket.is_victim && options_.can_fold &&
                          bucket.slice > 0 &&
                          ((!has_room && bucket.size() > part_size_) ||
                           bucket.extent > options_.bucket_size ||
                           HasManyOperandsPerKey(state.extent_number));
      if (bucket.is_free() && is_wished) {
        bucket.is_wish_only = !bucket.is_to_fold;
        bucket.is_victim = bucket.is_to_fold = true;
      }
    }
  }

  DeltaJobState::KeyRange RangeOf(Position position) const {
    DeltaJobState::KeyRange range;
    range.begin = table_.LowerBound(position).ToString();
    const Position next = table_.Next(position);
    if (next != table_.End()) {
      range.end = table_.LowerBound(next).ToString();
    }
    return range;
  }

  // Returns true if the bucket may have operands of keys that are wished for.
  bool IsWished(Position position) const {
    if (wishes_ == nullptr) {
      return false;
    }
    const DeltaJobState::KeyRange range = RangeOf(position);
    return wishes_->Overlaps(range, version_.user_comparator()) &&
           (table_.State(position).HasOperands() ||
            MayTakeInOperands(range, table_.State(position).floor));
  }

  // Returns true if a merged file may have operands for the bucket. The
  // estimate of its intake does not tell: it counts all bytes of a block for
  // one bucket.
  bool MayTakeInOperands(const DeltaJobState::KeyRange& range,
                         uint64_t floor) const {
    const Comparator* const ucmp = version_.user_comparator();
    const auto files = version_.RecentFilesAbove(Kind::kOperands, floor);
    return std::any_of(files.begin(), files.end(), [&](const FilePtr& meta) {
      const DeltaFileDescription& file = meta->description();
      return file.tier == Tier::kMerged &&
             (range.begin.empty() ||
              ucmp->Compare(file.largest, range.begin) >= 0) &&
             (!range.end.has_value() ||
              ucmp->Compare(file.smallest, *range.end) < 0);
    });
  }

  void MarkDamage(Bucket* bucket) const {
    if (options_.damage.empty()) {
      return;
    }
    const DeltaDamage::State state = options_.damage.StateOf(
        RangeOf(bucket->position), version_.user_comparator());
    bucket->is_single = state == DeltaDamage::State::kSuspect;
    bucket->is_left_alone = state == DeltaDamage::State::kDamaged;
  }

  void DrainBucket(const DeltaBucketState& state, Bucket* bucket) const {
    const auto leftover = options_.leftovers.find(state.extent_number);
    const bool is_left =
        state.HasOperands() && leftover != options_.leftovers.end();
    const bool is_waiting =
        is_left && leftover->second.IsWaiting(options_.earliest_snapshot);
    // Leftovers for snapshots that are gone are due, too. (Leftovers for other
    // reasons wait for anchors that are still to come.)
    const bool is_due =
        !is_waiting && (bucket->slice > 0 ||
                        (state.HasOperands() &&
                         (!is_left || leftover->second.is_for_snapshots)));
    if (options_.can_fold) {
      bucket->is_victim |= bucket->is_free() && is_due;
      bucket->is_to_fold = bucket->is_victim && (is_due || bucket->slice > 0);
    } else if (is_due) {
      // It is rewritten only once, by the fold.
      bucket->is_victim = false;
      bucket->is_misplaced = false;
      bucket->is_before_misplaced = false;
    }
  }

  // Makes victims of the buckets that have to do with misplaced files. To be
  // called if there are no other victims. Returns false if there are no such
  // buckets.
  bool SelectMisplaced() {
    bool is_any_found = false;
    for (Bucket& bucket : buckets_) {
      bucket.is_victim = bucket.is_free() &&
                         (bucket.is_misplaced || bucket.is_before_misplaced);
      bucket.is_to_rewrite = bucket.is_victim && bucket.is_misplaced;
      bucket.is_overdue = bucket.is_victim && bucket.is_before_misplaced;
      bucket.is_to_fold = bucket.is_victim && options_.drain &&
                          options_.can_fold && bucket.slice > 0;
      is_any_found |= bucket.is_victim;
    }
    return is_any_found;
  }

  // Picks the smallest two adjacent buckets if there are too many buckets and
  // the two fit into one; and buckets beside them, as long as the result is at
  // most half full.
  Collection PickNeighbours() const {
    const uint64_t count = table_.size() + more_buckets_;
    if (count < options_.max_buckets + fewer_buckets_ - 2 ||
        buckets_.size() < 2) {
      return Collection();
    }
    size_t best = SIZE_MAX;
    uint64_t best_size = part_size_;
    for (size_t i = 0; i + 1 < buckets_.size(); ++i) {
      const uint64_t size = buckets_[i].size() + buckets_[i + 1].size();
      if (buckets_[i].may_join() && buckets_[i + 1].may_join() &&
          (best == SIZE_MAX ? size <= best_size : size < best_size)) {
        best = i;
        best_size = size;
      }
    }
    if (best == SIZE_MAX) {
      return Collection();
    }
    size_t last = best + 2;
    const auto take = [&](size_t i) {
      if (!buckets_[i].may_join() ||
          best_size + buckets_[i].size() > part_size_ / 2) {
        return false;
      }
      best_size += buckets_[i].size();
      return true;
    };
    while (best > 0 && take(best - 1)) {
      --best;
    }
    while (last < buckets_.size() && take(last)) {
      ++last;
    }
    Collection result = Of(best, last);
    result.plan.merge_neighbours = true;
    result.fewer_buckets = static_cast<uint32_t>(result.num_buckets - 1);
    result.bytes = best_size;
    return result;
  }

  Collection PickVictims() {
    Run best = FindBestRun();
    const bool moves_files = best.empty() && SelectMisplaced();
    if (moves_files) {
      best = FindBestRun();
    }
    if (best.empty()) {
      return Collection();
    }
    Collection result = CollectionOf(best);
    result.moves_files = moves_files;
    return result;
  }

  // Returns the best run of victims; an empty one if there are no victims.
  Run FindBestRun() const {
    Run best;
    Run run;
    // Cost of the buckets after the run that are not victims.
    uint64_t gap = 0;
    const auto finish_run = [&] {
      if (run.IsBetterThan(best)) {
        best = run;
      }
      run = Run();
      gap = 0;
    };
    for (size_t i = 0; i < buckets_.size(); ++i) {
      const Bucket& bucket = buckets_[i];
      if (!bucket.may_join()) {
        finish_run();
        if (!bucket.is_victim) {
          continue;
        }
      }
      if (!bucket.is_victim) {
        gap += bucket.Cost(run.has_rewrite || run.fold);
        continue;
      }
      const bool is_rewritten = bucket.is_to_rewrite || bucket.is_to_fold;
      const uint64_t cost = bucket.Cost(is_rewritten);
      // Raising a floor costs only an edit, so a gap of some bytes is
      // acceptable for overdue buckets.
      const uint64_t max_gap =
          std::max(run.cost_of_victims / 2,
                   run.has_overdue ? kMaxGap * options_.bucket_size : 0);
      if (!run.empty() && (run.fold != bucket.is_to_fold || gap > max_gap ||
                           run.cost + gap + cost > MaxCost(run.fold))) {
        finish_run();
      }
      if (run.empty()) {
        run.first = i;
        run.fold = bucket.is_to_fold;
        run.fold_wishes_only = true;
        gap = 0;
      }
      run.last = i + 1;
      run.cost += gap + cost;
      run.cost_of_victims += cost;
      run.gain += bucket.slice + (is_rewritten ? bucket.extent : 0);
      run.has_overdue |= bucket.is_overdue;
      run.has_rewrite |= bucket.is_to_rewrite;
      run.fold_wishes_only &= bucket.is_wish_only;
      gap = 0;
      if (bucket.is_single) {
        finish_run();
      }
    }
    finish_run();
    return best;
  }

  Collection CollectionOf(const Run& best) const {
    Collection result = Of(best.first, best.last);
    result.plan.fold = best.fold;
    result.plan.min_fold_bytes =
        best.fold && !options_.drain ? options_.min_fold_bytes : 0;
    if (best.fold && !options_.drain && wishes_ != nullptr) {
      result.plan.wishes = wishes_;
      if (best.fold_wishes_only) {
        result.plan.min_fold_bytes = UINT64_MAX;
      }
    }
    result.plan.rewrite_all = best.has_rewrite;
    result.bytes = best.cost;
    // Only as many as may be needed, so that other collections may split, too.
    uint64_t needed = 0;
    for (size_t i = best.first; i < best.last; ++i) {
      if (buckets_[i].size() > part_size_) {
        needed += buckets_[i].size() / part_size_ + 1;
      }
    }
    result.plan.max_new_buckets =
        static_cast<uint32_t>(std::min(needed, Room()));
    return result;
  }

  Collection Of(size_t first, size_t last) const {
    Collection result;
    result.found = true;
    result.plan.begin = table_.LowerBound(buckets_[first].position).ToString();
    if (last < buckets_.size()) {
      result.plan.end = table_.LowerBound(buckets_[last].position).ToString();
    }
    result.plan.floor = NewestEpoch();
    result.num_buckets = last - first;
    return result;
  }

  const Options& options_;
  const DeltaVersion& version_;
  const DeltaBucketTable& table_;
  const DeltaBucketIntake& slices_;
  const std::vector<DeltaJobState::Collection>& running_;
  // Wishes that can be fulfilled; nullptr: none.
  const std::shared_ptr<const DeltaFoldWishes> wishes_;
  // A larger bucket is split. Bytes.
  const uint64_t part_size_;

  // Last epochs of merged files, ascending.
  std::vector<uint64_t> epochs_;
  // All buckets must take in files up to this epoch; 0: none.
  uint64_t forced_ = 0;
  // The last epoch of misplaced merged files; 0: there are none.
  uint64_t misplaced_epoch_ = 0;
  uint64_t merged_bytes_ = 0;

  std::vector<std::pair<Position, Position>> busy_;
  uint64_t more_buckets_ = 0;
  uint64_t fewer_buckets_ = 0;
  // Files of operands that are mostly garbage.
  std::unordered_set<uint64_t> sparse_;
  // Sorted files that are misplaced.
  std::unordered_set<uint64_t> misplaced_;
  std::unordered_map<uint64_t, bool> many_per_key_;
  std::vector<Bucket> buckets_;
};

DeltaPicker::Collection DeltaPicker::PickCollection(
    const Options& options, const DeltaVersion& version,
    const DeltaBucketIntake& slices,
    const std::vector<DeltaJobState::Collection>& running) {
  return CollectionPicker(options, version, slices, running).Pick();
}

uint64_t DeltaPicker::Excess(const DeltaVersion& version, bool counts_flushed,
                             bool counts_merged, uint64_t min_epoch) {
  uint64_t excess = 0;
  for (Kind kind : {Kind::kOperands, Kind::kAnchors}) {
    size_t num_flushed = 0;
    size_t num_merged = 0;
    const std::vector<FilePtr>& files = version.RecentFiles(kind);
    // The oldest first: files beyond the limits are the excess.
    for (auto it = files.rbegin(); it != files.rend(); ++it) {
      const DeltaFileDescription& file = (*it)->description();
      const bool is_flushed = file.tier == Tier::kFlushed;
      const bool counts = is_flushed
                              ? counts_flushed
                              : counts_merged && file.last_epoch > min_epoch;
      if (!counts) {
        continue;
      }
      const bool is_excess = is_flushed ? ++num_flushed > kSlowdownFlushed
                                        : ++num_merged > kSlowdownMerged;
      if (is_excess) {
        excess += file.size;
      }
    }
  }
  return excess;
}

uint64_t DeltaPicker::Debt(const DeltaVersion& version,
                           const DeltaJobState& jobs) {
  // Once there are buckets, the failure of the first partition is history.
  const bool counts_merged =
      !jobs.is_partition_damaged() || !version.Buckets().empty();
  return Excess(version, !jobs.is_merge_damaged(), counts_merged,
                LowestFloor(version, jobs.damage()));
}

uint64_t DeltaPicker::AddDebt(uint64_t compaction_needed_bytes,
                              const DeltaVersion* version,
                              const DeltaJobState& jobs,
                              const MutableCFOptions& options) {
  const uint64_t soft = options.soft_pending_compaction_bytes_limit;
  const uint64_t hard = options.hard_pending_compaction_bytes_limit;
  if (version == nullptr || soft == 0) {
    return compaction_needed_bytes;
  }
  const uint64_t excess = Debt(*version, jobs);
  if (excess == 0) {
    return compaction_needed_bytes;
  }
  uint64_t debt = soft + excess;
  if (hard > 0) {
    debt = std::min(debt, hard - 1);
  }
  return std::max(compaction_needed_bytes, debt);
}

}  // namespace ROCKSDB_NAMESPACE
