//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_version.h"

#include <algorithm>
#include <cassert>

#include "options/strata/delta_options.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using FilePtr = DeltaVersion::FilePtr;
using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

Status CorruptVersion(const std::string& what) {
  return Status::Corruption("Delta version", what);
}

std::string FileText(uint64_t number) {
  return "delta file #" + std::to_string(number);
}

bool IsNewer(const FilePtr& a, const FilePtr& b) {
  const uint64_t a_epoch = a->description().last_epoch;
  const uint64_t b_epoch = b->description().last_epoch;
  return a_epoch != b_epoch ? a_epoch > b_epoch : a->number() > b->number();
}

void Count(const DeltaFileDescription& file, bool add,
           DeltaVersion::Totals* totals) {
  const auto count = [add](uint64_t n, uint64_t* total) {
    *total = add ? *total + n : *total - n;
  };
  count(1, &totals->num_files);
  count(file.size, &totals->bytes);
  count(file.num_entries + file.num_range_anchors, &totals->num_entries);
  if (file.kind == DeltaFileDescription::Kind::kOperands) {
    count(file.num_entries, &totals->num_operands);
  }
  count(file.raw_bytes, &totals->raw_bytes);
}

}  // namespace

//======== DeltaVersion

Status DeltaVersion::Apply(const std::shared_ptr<const DeltaVersion>& base,
                           const DeltaEdit& edit, const Comparator* ucmp,
                           const FileMaker& make_file,
                           std::shared_ptr<const DeltaVersion>* result) {
  DeltaVersionBuilder builder(base);
  Status s = builder.Apply(edit, ucmp, make_file);
  if (s.ok()) {
    *result = builder.Freeze();
  }
  return s;
}

std::vector<DeltaVersion::SortedFile>::const_iterator DeltaVersion::LowerBound(
    uint64_t number) const {
  return std::lower_bound(sorted_.begin(), sorted_.end(), number,
                          [](const SortedFile& sorted, uint64_t n) {
                            return sorted.file->number() < n;
                          });
}

FilePtr DeltaVersion::GetFile(uint64_t number) const {
  const auto sorted = LowerBound(number);
  if (sorted != sorted_.end() && sorted->file->number() == number) {
    return sorted->file;
  }
  for (const auto* files : {&recent_operands_, &recent_anchors_}) {
    for (const FilePtr& file : *files) {
      if (file->number() == number) {
        return file;
      }
    }
  }
  return nullptr;
}

DeltaVersion::Files DeltaVersion::RecentFilesAbove(Kind kind,
                                                   uint64_t floor) const {
  const std::vector<FilePtr>& files = RecentFiles(kind);
  const FilePtr* const begin = files.data();
  const FilePtr* end = begin + files.size();
  while (end != begin && (*(end - 1))->description().last_epoch <= floor) {
    --end;
  }
  return Files(begin, end);
}

bool DeltaVersion::OverlapsRange(const Slice* begin, const Slice* end) const {
  const auto first_bucket = [this](const Slice* key) {
    return key == nullptr ? buckets_.Begin() : buckets_.Find(*key, ucmp_);
  };
  const auto after_bucket = [this](const Slice* key) {
    return key == nullptr ? buckets_.End()
                          : buckets_.Next(buckets_.Find(*key, ucmp_));
  };
  if (begin != nullptr && end != nullptr && ucmp_->Compare(*begin, *end) > 0) {
    return false;
  }
  if (!buckets_.empty() &&
      buckets_.HasExtent(first_bucket(begin), after_bucket(end))) {
    return true;
  }
  for (const FilePtr& file : recent_operands_) {
    const Slice smallest = file->description().smallest;
    const Slice largest = file->description().largest;
    if ((begin != nullptr && ucmp_->Compare(largest, *begin) < 0) ||
        (end != nullptr && ucmp_->Compare(smallest, *end) > 0)) {
      continue;
    }
    if (buckets_.empty()) {
      return true;
    }
    // The file counts if a bucket in the intersection of both ranges sees it.
    const Slice* const low =
        begin == nullptr || ucmp_->Compare(*begin, smallest) < 0 ? &smallest
                                                                 : begin;
    const Slice* const high =
        end == nullptr || ucmp_->Compare(*end, largest) > 0 ? &largest : end;
    if (buckets_.MinFloor(first_bucket(low), after_bucket(high)) <
        file->description().last_epoch) {
      return true;
    }
  }
  return false;
}

SequenceNumber DeltaVersion::LargestSequence() const {
  SequenceNumber largest = 0;
  ForEachFile([&largest](const FilePtr& file) {
    largest = std::max(largest, file->description().largest_seq);
  });
  return largest;
}

bool DeltaVersion::IsMergedEpoch(uint64_t epoch) const {
  for (const auto* files : {&recent_operands_, &recent_anchors_}) {
    for (const FilePtr& file : *files) {
      if (file->description().tier == Tier::kMerged &&
          file->description().last_epoch == epoch) {
        return true;
      }
    }
  }
  return false;
}

uint64_t DeltaVersion::MaxMergedEpoch() const {
  uint64_t max = 0;
  for (const auto* files : {&recent_operands_, &recent_anchors_}) {
    for (const FilePtr& file : *files) {
      if (file->description().tier == Tier::kMerged) {
        max = std::max(max, file->description().last_epoch);
      }
    }
  }
  return max;
}

std::vector<DeltaEdit> DeltaVersion::SplitForSnapshot(size_t max_size) const {
  assert(!IsLoading());
  // Maximum encoded sizes, without strings.
  constexpr size_t kMaxFileSize = 128;
  constexpr size_t kMaxBucketSize = 40;

  std::vector<DeltaEdit> edits;
  DeltaEdit edit;
  DeltaEdit::SnapshotPiece piece;
  size_t size = 0;
  const auto finish_piece = [&](bool is_last) {
    piece.index = static_cast<uint32_t>(edits.size());
    piece.is_last = is_last;
    edit.SetSnapshotPiece(std::move(piece));
    edits.push_back(std::move(edit));
    edit = DeltaEdit();
    piece = DeltaEdit::SnapshotPiece();
    size = 0;
  };
  const auto make_room = [&](size_t needed) {
    if (size > 0 && size + needed > max_size) {
      finish_piece(/*is_last=*/false);
    }
    size += needed;
  };
  ForEachFile([&](const FilePtr& ptr) {
    const DeltaFileDescription& file = ptr->description();
    make_room(kMaxFileSize + file.smallest.size() + file.largest.size() +
              file.file_checksum.size() + file.file_checksum_func_name.size());
    edit.AddFile(file);
  });
  for (auto p = buckets_.Begin(); p != buckets_.End(); p = buckets_.Next(p)) {
    const Slice lower_bound = buckets_.LowerBound(p);
    make_room(kMaxBucketSize + lower_bound.size());
    piece.buckets.push_back({lower_bound.ToString(), buckets_.State(p)});
  }
  finish_piece(/*is_last=*/true);
  return edits;
}

Status DeltaVersion::CheckConsistency() const {
  if (IsLoading()) {
    return CorruptVersion("pieces of the snapshot in the MANIFEST are missing");
  }
  Status s = buckets_.Check(ucmp_);
  if (!s.ok()) {
    return s;
  }

  std::vector<std::pair<uint64_t, uint64_t>> merged;
  s = CheckEpochs(&merged);
  std::vector<uint32_t> num_buckets(sorted_.size());
  if (s.ok()) {
    s = CheckBuckets(merged, &num_buckets);
  }
  if (s.ok()) {
    s = CheckSortedFiles(num_buckets);
  }
  return s.ok() ? CheckTotals() : s;
}

Status DeltaVersion::CheckEpochs(
    std::vector<std::pair<uint64_t, uint64_t>>* merged_epochs) const {
  std::vector<std::pair<uint64_t, uint64_t>>& merged = *merged_epochs;
  const uint64_t min_floor = buckets_.MinFloor();
  uint64_t min_flushed = UINT64_MAX;
  for (Kind kind : {Kind::kOperands, Kind::kAnchors}) {
    const std::vector<FilePtr>& files = RecentFiles(kind);
    for (size_t i = 0; i < files.size(); ++i) {
      const DeltaFileDescription& file = files[i]->description();
      if (file.kind != kind || file.tier == Tier::kSorted ||
          (i > 0 && !IsNewer(files[i - 1], files[i]))) {
        return CorruptVersion(FileText(file.number) + " is out of place");
      }
      if (file.tier == Tier::kMerged) {
        merged.emplace_back(file.first_epoch, file.last_epoch);
      } else {
        min_flushed = std::min(min_flushed, file.first_epoch);
      }
      // Invariant 3.
      if (!buckets_.empty() && file.last_epoch <= min_floor) {
        return CorruptVersion(FileText(file.number) + " is below all floors");
      }
    }
  }
  std::sort(merged.begin(), merged.end());
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  for (size_t i = 1; i < merged.size(); ++i) {
    if (merged[i - 1].second >= merged[i].first) {
      return CorruptVersion("epochs of merged files overlap");
    }
  }
  const uint64_t max_merged = merged.empty() ? 0 : merged.back().second;
  if (min_flushed <= std::max(max_merged, buckets_.MaxFloor())) {
    return CorruptVersion("a flushed file of epoch " +
                          std::to_string(min_flushed) +
                          " is not above merged files and floors");
  }
  return Status::OK();
}

Status DeltaVersion::CheckBuckets(
    const std::vector<std::pair<uint64_t, uint64_t>>& merged,
    std::vector<uint32_t>* num_buckets) const {
  const uint64_t min_floor = buckets_.MinFloor();
  if (!merged.empty() && merged.front().first <= min_floor) {
    return CorruptVersion("a floor is inside the epochs of a merged file");
  }
  for (auto p = buckets_.Begin(); p != buckets_.End(); p = buckets_.Next(p)) {
    const DeltaBucketState& bucket = buckets_.State(p);
    if (bucket.floor != min_floor &&
        std::none_of(merged.begin(), merged.end(), [&](const auto& epochs) {
          return epochs.second == bucket.floor;
        })) {
      return CorruptVersion("no merged file ends at the floor " +
                            std::to_string(bucket.floor));
    }
    for (const auto& [number, kind] :
         {std::make_pair(bucket.extent_number, Kind::kOperands),
          std::make_pair(bucket.anchors_number, Kind::kAnchors)}) {
      if (number == 0) {
        continue;
      }
      const auto sorted = LowerBound(number);
      if (sorted == sorted_.end() || sorted->file->number() != number ||
          sorted->file->description().kind != kind) {
        return CorruptVersion("a bucket names " + FileText(number) +
                              ", which is not there");
      }
      ++(*num_buckets)[sorted - sorted_.begin()];
    }
  }
  return Status::OK();
}

Status DeltaVersion::CheckSortedFiles(
    const std::vector<uint32_t>& num_buckets) const {
  for (size_t i = 0; i < sorted_.size(); ++i) {
    const DeltaFileDescription& file = sorted_[i].file->description();
    if (file.tier != Tier::kSorted ||
        (i > 0 && sorted_[i - 1].file->number() >= file.number)) {
      return CorruptVersion(FileText(file.number) + " is out of place");
    }
    if (num_buckets[i] == 0) {
      return CorruptVersion("no bucket names " + FileText(file.number));
    }
    if (num_buckets[i] != sorted_[i].num_buckets) {
      return CorruptVersion("wrong number of buckets of " +
                            FileText(file.number));
    }
  }
  return Status::OK();
}

Status DeltaVersion::CheckTotals() const {
  Totals totals;
  std::vector<uint64_t> numbers;
  ForEachFile([&](const FilePtr& file) {
    numbers.push_back(file->number());
    Count(file->description(), /*add=*/true, &totals);
  });
  std::sort(numbers.begin(), numbers.end());
  if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) {
    return CorruptVersion("the same file twice");
  }
  if (totals != totals_) {
    return CorruptVersion("wrong totals");
  }
  return Status::OK();
}

size_t DeltaVersion::ApproximateMemoryUsage() const {
  size_t usage = sizeof(*this) - sizeof(buckets_) +
                 buckets_.ApproximateMemoryUsage() +
                 recent_operands_.capacity() * sizeof(FilePtr) +
                 recent_anchors_.capacity() * sizeof(FilePtr) +
                 sorted_.capacity() * sizeof(SortedFile);
  ForEachFile([&usage](const FilePtr& file) {
    usage += file->ApproximateMemoryUsage();
  });
  return usage;
}

std::string DeltaVersion::DebugString(bool hex) const {
  std::string text;
  if (IsLoading()) {
    text += " loading, next piece " + std::to_string(next_piece_) + "\n";
  }
  for (const auto* files : {&recent_operands_, &recent_anchors_}) {
    for (const FilePtr& file : *files) {
      text += " " + file->description().ToString() + "\n";
    }
  }
  for (const SortedFile& sorted : sorted_) {
    text += " " + sorted.file->description().ToString() + " buckets " +
            std::to_string(sorted.num_buckets) + "\n";
  }
  for (auto p = buckets_.Begin(); p != buckets_.End(); p = buckets_.Next(p)) {
    const DeltaBucketState& bucket = buckets_.State(p);
    text += " bucket '" + buckets_.LowerBound(p).ToString(hex) + "' floor " +
            std::to_string(bucket.floor) + " extent #" +
            std::to_string(bucket.extent_number) + " bytes " +
            std::to_string(bucket.extent_bytes) + " anchors #" +
            std::to_string(bucket.anchors_number) + "\n";
  }
  return text;
}

//======== DeltaVersionBuilder::Applier

// Applies one edit to a version. If that fails, the version must not be used.
class DeltaVersionBuilder::Applier {
 public:
  Applier(DeltaVersion* version, const DeltaEdit& edit,
          const DeltaVersion::FileMaker& make_file)
      : v_(*version),
        ucmp_(version->ucmp_),
        edit_(edit),
        make_file_(make_file) {}

  Status Run() {
    if (edit_.snapshot_piece().has_value()) {
      return ApplyPiece(*edit_.snapshot_piece());
    }
    if (v_.IsLoading()) {
      return CorruptVersion("an edit amid the pieces of a snapshot");
    }
    Status s;
    for (const DeltaFileDescription& file : edit_.files()) {
      if (file.tier != Tier::kMerged) {
        s = AddFile(file);
        if (!s.ok()) {
          return s;
        }
      }
    }
    s = ApplyMerge();
    for (const DeltaEdit::ReplaceBuckets& replace : edit_.replace_buckets()) {
      if (!s.ok()) {
        return s;
      }
      s = ApplyReplace(replace);
    }
    for (const DeltaEdit::RaiseFloors& raise : edit_.raise_floors()) {
      if (!s.ok()) {
        return s;
      }
      s = ApplyRaise(raise);
    }
    if (s.ok()) {
      s = DropDeadFiles();
    }
    if (s.ok() && edit_.drop_unused_buckets()) {
      DropUnusedBuckets();
    }
    return s;
  }

 private:
  using Position = DeltaBucketTable::Position;
  using SortedFile = DeltaVersion::SortedFile;

  Status ApplyPiece(const DeltaEdit::SnapshotPiece& piece) {
    if (piece.index != v_.next_piece_ || (piece.index == 0 && !v_.IsEmpty())) {
      return CorruptVersion("piece " + std::to_string(piece.index) +
                            " of a snapshot is out of order");
    }
    ++v_.next_piece_;
    for (const DeltaFileDescription& file : edit_.files()) {
      Status s = AddFile(file);
      if (!s.ok()) {
        return s;
      }
    }
    for (const DeltaBucket& bucket : piece.buckets) {
      Status s = CountBucket(bucket.state, /*change=*/1);
      if (!s.ok()) {
        return s;
      }
    }
    v_.buckets_.Append(piece.buckets);
    if (!piece.is_last) {
      return Status::OK();
    }
    // Checks that need the complete state.
    v_.next_piece_ = 0;
    return v_.CheckConsistency();
  }

  std::vector<FilePtr>* RecentFiles(Kind kind) {
    return kind == Kind::kOperands ? &v_.recent_operands_ : &v_.recent_anchors_;
  }

  Status AddFile(const DeltaFileDescription& file) {
    if (v_.GetFile(file.number) != nullptr) {
      return CorruptVersion(FileText(file.number) + " is there already");
    }
    if (ucmp_->Compare(file.smallest, file.largest) > 0) {
      return CorruptVersion("keys of " + FileText(file.number) +
                            " are out of order");
    }
    // A file with an epoch that was merged or is below a floor is too late: no
    // reader would see it.
    if (file.tier == Tier::kFlushed && !v_.IsLoading() &&
        file.first_epoch <=
            std::max(v_.MaxMergedEpoch(), v_.buckets_.MaxFloor())) {
      return CorruptVersion("epoch " + std::to_string(file.first_epoch) +
                            " of " + FileText(file.number) + " is over");
    }
    // Made only after the checks: if a file is made and then given up, it
    // counts as obsolete, which must not happen to an existing file.
    FilePtr ptr = make_file_(file);
    assert(ptr != nullptr);
    Count(file, /*add=*/true, &v_.totals_);
    if (file.tier == Tier::kSorted) {
      v_.sorted_.insert(v_.LowerBound(file.number),
                        SortedFile{std::move(ptr), 0});
    } else {
      std::vector<FilePtr>* const files = RecentFiles(file.kind);
      const auto position =
          std::lower_bound(files->begin(), files->end(), ptr, IsNewer);
      files->insert(position, std::move(ptr));
    }
    return Status::OK();
  }

  Status ApplyMerge() {
    const DeltaFileDescription* output = nullptr;
    for (const DeltaFileDescription& file : edit_.files()) {
      if (file.tier != Tier::kMerged) {
        continue;
      }
      if (!edit_.merge_recent().has_value()) {
        return CorruptVersion(FileText(file.number) + " is merged of nothing");
      }
      if (output != nullptr && (output->first_epoch != file.first_epoch ||
                                output->last_epoch != file.last_epoch)) {
        return CorruptVersion("epochs of the merged files differ");
      }
      output = &file;
    }
    if (!edit_.merge_recent().has_value()) {
      return Status::OK();
    }

    const DeltaEdit::MergeRecent& merge = *edit_.merge_recent();
    const auto is_input = [&merge](const FilePtr& file) {
      return file->description().tier == Tier::kFlushed &&
             file->description().last_epoch <= merge.last_epoch;
    };
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    size_t num_files = 0;
    for (Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      for (const FilePtr& file : *RecentFiles(kind)) {
        if (is_input(file)) {
          first = std::min(first, file->description().first_epoch);
          last = std::max(last, file->description().last_epoch);
          ++num_files;
        }
      }
    }
    if (num_files != merge.num_files) {
      return CorruptVersion(
          "a merge up to epoch " + std::to_string(merge.last_epoch) +
          " is of " + std::to_string(merge.num_files) +
          " files, but there are " + std::to_string(num_files));
    }
    if (output != nullptr &&
        (output->first_epoch != first || output->last_epoch < last ||
         output->last_epoch > merge.last_epoch)) {
      return CorruptVersion(FileText(output->number) +
                            " has not the epochs that it is merged of");
    }
    for (Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      std::erase_if(*RecentFiles(kind), [&](const FilePtr& file) {
        if (is_input(file)) {
          Count(file->description(), /*add=*/false, &v_.totals_);
          return true;
        }
        return false;
      });
    }
    for (const DeltaFileDescription& file : edit_.files()) {
      if (file.tier == Tier::kMerged) {
        Status s = AddFile(file);
        if (!s.ok()) {
          return s;
        }
      }
    }
    return Status::OK();
  }

  // REQUIRES: there are buckets
  Status FindRange(const DeltaEdit::KeyRange& range, Position* first,
                   Position* last) const {
    const DeltaBucketTable& buckets = v_.buckets_;
    *first = buckets.FindBound(range.begin, ucmp_);
    *last = range.end.has_value() ? buckets.FindBound(*range.end, ucmp_)
                                  : buckets.End();
    if (*first == buckets.End() ||
        (range.end.has_value() && *last == buckets.End())) {
      return CorruptVersion(
          "no bucket begins where a range of buckets begins or ends");
    }
    return *first < *last ? Status::OK()
                          : CorruptVersion("empty range of buckets");
  }

  Status ApplyReplace(const DeltaEdit::ReplaceBuckets& replace) {
    const std::vector<DeltaBucket>& buckets = replace.buckets;
    Position first = v_.buckets_.End();
    Position last = first;
    Status s;
    if (!v_.buckets_.empty()) {
      s = FindRange(replace.range, &first, &last);
    } else if (!replace.range.begin.empty() || replace.range.end.has_value()) {
      s = CorruptVersion("the first buckets do not cover all keys");
    }
    if (!s.ok()) {
      return s;
    }
    for (size_t i = 1; i < buckets.size(); ++i) {
      // The first bucket of all has no bound, which is below all bounds.
      if (!buckets[i - 1].lower_bound.empty() &&
          ucmp_->Compare(buckets[i - 1].lower_bound, buckets[i].lower_bound) >=
              0) {
        return CorruptVersion("new buckets are out of order");
      }
    }
    if (replace.range.end.has_value() && buckets.size() > 1 &&
        ucmp_->Compare(buckets.back().lower_bound, *replace.range.end) >= 0) {
      return CorruptVersion("new buckets are not within their range");
    }
    s = CheckNewFloors(first, last, buckets);
    if (!s.ok()) {
      return s;
    }
    for (Position p = first; p != last; p = v_.buckets_.Next(p)) {
      s = CountBucket(v_.buckets_.State(p), /*change=*/-1);
      if (!s.ok()) {
        return s;
      }
    }
    for (const DeltaBucket& bucket : buckets) {
      s = CountBucket(bucket.state, /*change=*/1);
      if (!s.ok()) {
        return s;
      }
    }
    v_.buckets_.ReplaceRange(first, last, buckets);
    return s;
  }

  // Checks the floors of `buckets`, which are to replace [first, last). A floor
  // may stay unchanged, or rise to the last epoch of a merged file. It does not
  // matter whether that file was dropped before: it is dropped when all floors
  // have reached its last epoch, and then no floor can rise to this epoch.
  Status CheckNewFloors(Position first, Position last,
                        const std::vector<DeltaBucket>& buckets) const {
    Position old = first;
    for (size_t i = 0; i < buckets.size(); ++i) {
      // The largest floor of the old buckets that overlap this one. `old` is
      // the one in which it begins.
      uint64_t max_old = 0;
      while (old != last) {
        max_old = std::max(max_old, v_.buckets_.State(old).floor);
        const Position next = v_.buckets_.Next(old);
        if (i + 1 < buckets.size()) {
          const int order = next == last
                                ? 1
                                : ucmp_->Compare(v_.buckets_.LowerBound(next),
                                                 buckets[i + 1].lower_bound);
          if (order > 0) {
            break;
          }
          old = next;
          if (order == 0) {
            break;
          }
        } else {
          old = next;
        }
      }
      Status s = CheckNewFloor(max_old, buckets[i].state.floor);
      if (!s.ok()) {
        return s;
      }
    }
    return Status::OK();
  }

  Status CheckNewFloor(uint64_t old, uint64_t floor) const {
    if (floor < old) {
      return CorruptVersion("a floor falls from " + std::to_string(old) +
                            " to " + std::to_string(floor));
    }
    if (floor > old && !v_.IsMergedEpoch(floor)) {
      return CorruptVersion("no merged file ends at the new floor " +
                            std::to_string(floor));
    }
    return Status::OK();
  }

  Status ApplyRaise(const DeltaEdit::RaiseFloors& raise) {
    if (v_.buckets_.empty()) {
      return CorruptVersion("floors are raised, but there are no buckets");
    }
    Position first;
    Position last;
    Status s = FindRange(raise.range, &first, &last);
    if (s.ok()) {
      s = CheckNewFloor(v_.buckets_.MinFloor(first, last), raise.epoch);
    }
    if (s.ok()) {
      s = CheckNewFloor(v_.buckets_.MaxFloor(first, last), raise.epoch);
    }
    if (s.ok()) {
      v_.buckets_.SetFloors(first, last, raise.epoch);
    }
    return s;
  }

  // Adds `change` to the number of buckets of the files that the bucket names.
  Status CountBucket(const DeltaBucketState& bucket, int change) {
    for (const auto& [number, kind] :
         {std::make_pair(bucket.extent_number, Kind::kOperands),
          std::make_pair(bucket.anchors_number, Kind::kAnchors)}) {
      if (number == 0) {
        continue;
      }
      const auto position = v_.LowerBound(number);
      if (position == v_.sorted_.end() || position->file->number() != number) {
        return CorruptVersion("a bucket names " + FileText(number) +
                              ", which is not there");
      }
      if (position->file->description().kind != kind) {
        return CorruptVersion("a bucket names " + FileText(number) +
                              ", which is of another kind");
      }
      SortedFile& sorted = v_.sorted_[position - v_.sorted_.begin()];
      assert(change > 0 || sorted.num_buckets > 0);
      sorted.num_buckets += change;
    }
    return Status::OK();
  }

  // Drops all buckets, and all files, if no bucket has operands and there are
  // no recent files. Files that still exist then only record that buckets are
  // empty.
  void DropUnusedBuckets() {
    if (!v_.recent_operands_.empty() || !v_.recent_anchors_.empty() ||
        v_.buckets_.NextWithExtent(v_.buckets_.Begin()) != v_.buckets_.End()) {
      return;
    }
    for (const SortedFile& sorted : v_.sorted_) {
      Count(sorted.file->description(), /*add=*/false, &v_.totals_);
    }
    v_.sorted_.clear();
    v_.buckets_.Clear();
  }

  Status DropDeadFiles() {
    for (const DeltaFileDescription& file : edit_.files()) {
      if (file.tier == Tier::kSorted &&
          v_.LowerBound(file.number)->num_buckets == 0) {
        // A later edit could not name it, as it would be gone by then.
        return CorruptVersion("no bucket names the new " +
                              FileText(file.number));
      }
    }
    if (edit_.replace_buckets().empty() && edit_.raise_floors().empty()) {
      return Status::OK();
    }
    std::erase_if(v_.sorted_, [this](const SortedFile& sorted) {
      if (sorted.num_buckets == 0) {
        Count(sorted.file->description(), /*add=*/false, &v_.totals_);
        return true;
      }
      return false;
    });
    const uint64_t min_floor = v_.buckets_.MinFloor();
    for (Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      std::vector<FilePtr>* const files = RecentFiles(kind);
      while (!files->empty() &&
             files->back()->description().last_epoch <= min_floor) {
        Count(files->back()->description(), /*add=*/false, &v_.totals_);
        files->pop_back();
      }
    }
    return Status::OK();
  }

  DeltaVersion& v_;
  const Comparator* const ucmp_;
  const DeltaEdit& edit_;
  const DeltaVersion::FileMaker& make_file_;
};

//======== DeltaVersionBuilder

Status DeltaVersionBuilder::Apply(const DeltaEdit& edit, const Comparator* ucmp,
                                  const DeltaVersion::FileMaker& make_file) {
  if (failed_) {
    return CorruptVersion("an edit before this one was refused");
  }
  Status s = edit.Validate();
  if (s.ok() && ucmp->timestamp_size() > 0) {
    s = DeltasOfTimestamps();
  }
  if (s.ok()) {
    DeltaVersion* const version = Mutable();
    version->ucmp_ = ucmp;
    s = Applier(version, edit, make_file).Run();
  }
  failed_ = !s.ok();
  return s;
}

DeltaVersion* DeltaVersionBuilder::Mutable() {
  // A version that is not frozen is known only to builders of this thread: see
  // DeltaBucketTable::Mutable().
  if (own_ == nullptr || own_->frozen_ || own_.use_count() > 1) {
    const DeltaVersion* const current = Current();
    auto copy = current == nullptr ? std::make_shared<DeltaVersion>()
                                   : std::make_shared<DeltaVersion>(*current);
    copy->frozen_ = false;
    own_ = std::move(copy);
    base_.reset();
  }
  return own_.get();
}

std::shared_ptr<const DeltaVersion> DeltaVersionBuilder::Freeze() const {
  if (own_ == nullptr) {
    return base_;
  }
  if (own_->IsEmpty() && !own_->IsLoading()) {
    return nullptr;
  }
  if (!own_->frozen_) {
    assert(own_->IsLoading() || own_->CheckConsistency().ok());
    own_->buckets_.Freeze();
    own_->frozen_ = true;
  }
  return own_;
}

Status DeltaVersionBuilder::Finish(
    std::shared_ptr<const DeltaVersion>* result) const {
  if (failed_) {
    return CorruptVersion("an edit was refused");
  }
  if (Current() != nullptr && Current()->IsLoading()) {
    return CorruptVersion("pieces of the snapshot in the MANIFEST are missing");
  }
  *result = Freeze();
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
