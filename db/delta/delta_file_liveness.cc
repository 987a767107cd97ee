//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_liveness.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

bool IsOperands(const DeltaFileProbe& file) {
  return file.description.kind == Kind::kOperands;
}

Status Refuse(const DeltaFileProbe& file, const std::string& why) {
  return Status::NotSupported(
      file.Name() + ": " + why +
      ". To repair without what it holds, move it elsewhere");
}

class Resolver {
 public:
  Resolver(const std::vector<const DeltaFileProbe*>& files,
           const Comparator* ucmp, DeltaFileLiveness* lineage)
      : ucmp_(ucmp), files_(files), lineage_(lineage) {
    std::sort(files_.begin(), files_.end(),
              [](const DeltaFileProbe* a, const DeltaFileProbe* b) {
                return a->description.number < b->description.number;
              });
  }

  Status Run() {
    *lineage_ = DeltaFileLiveness();
    for (const DeltaFileProbe* file : files_) {
      if (file->description.has_global_seq) {
        return Refuse(*file,
                      "only the MANIFEST knew the sequence number of these "
                      "anchors of an ingested file, or of "
                      "DeleteFilesInRanges(), and whether they count");
      }
    }
    Status s = ReplaySortedFiles();
    if (s.ok()) {
      s = CheckSegments();
    }
    if (s.ok()) {
      s = SelectMerged();
    }
    if (s.ok()) {
      s = SelectFlushed();
    }
    if (s.ok()) {
      Assemble();
    }
    return s;
  }

 private:
  // A bucket under construction. Bounds are as in DeltaFileProperties.
  struct Segment {
    std::string begin;  // empty: none
    std::optional<std::string> end;
    uint64_t floor = 0;
    // A file of the job that made the bucket.
    const DeltaFileProbe* job = nullptr;
    // Bytes of the bucket in that file.
    uint64_t extent_bytes = 0;
    // The file of a job that replaced a part of the bucket.
    const DeltaFileProbe* cut_by = nullptr;
  };

  // Returns true if the upper bound of a range is at or before the lower bound
  // of another one.
  bool EndsBefore(const std::optional<std::string>& end,
                  const std::string& begin) const {
    return end.has_value() && !begin.empty() &&
           ucmp_->Compare(*end, begin) <= 0;
  }

  static std::vector<Segment> SegmentsOf(const DeltaFileProbe& file) {
    const DeltaFileProperties& properties = file.properties;
    std::vector<Segment> segments(properties.buckets.size());
    for (size_t i = 0; i < segments.size(); ++i) {
      Segment& segment = segments[i];
      segment.begin = properties.buckets[i].lower_bound;
      segment.end = i + 1 < segments.size()
                        ? std::optional<std::string>(
                              properties.buckets[i + 1].lower_bound)
                        : properties.end;
      segment.floor = properties.buckets[i].floor_epoch;
      segment.job = &file;
      if (IsOperands(file)) {
        segment.extent_bytes = file.bucket_bytes[i];
      }
    }
    return segments;
  }

  // Replays the jobs in the order in which they ran.
  Status ReplaySortedFiles() {
    for (const DeltaFileProbe* file : files_) {
      // A file of anchors stands for its job only if there is no file of
      // operands.
      if (file->description.tier != Tier::kSorted ||
          file->properties.operands_number != 0) {
        continue;
      }
      std::vector<Segment> job = SegmentsOf(*file);
      if (job.empty()) {
        return Refuse(*file, "it does not record which buckets it is for");
      }
      for (const Segment& segment : job) {
        max_floor_ = std::max(max_floor_, segment.floor);
      }
      Replay(std::move(job));
    }
    return Status::OK();
  }

  void Replay(std::vector<Segment> job) {
    const std::string begin = job.front().begin;
    const std::optional<std::string> end = job.back().end;
    const auto first = std::find_if(
        segments_.begin(), segments_.end(),
        [&](const Segment& s) { return !EndsBefore(s.end, begin); });
    const auto last = std::find_if(
        first, segments_.end(),
        [&](const Segment& s) { return EndsBefore(end, s.begin); });
    const DeltaFileProbe* const by = job.front().job;
    std::vector<Segment> result(segments_.begin(), first);
    for (auto old = first; old != last; ++old) {
      if (Below(old->begin, begin)) {
        Segment& rest = result.emplace_back(*old);
        rest.end = begin;
        rest.cut_by = by;
      }
    }
    result.insert(result.end(), job.begin(), job.end());
    for (auto old = first; old != last; ++old) {
      if (end.has_value() &&
          (!old->end.has_value() || ucmp_->Compare(*end, *old->end) < 0)) {
        Segment& rest = result.emplace_back(*old);
        rest.begin = *end;
        rest.cut_by = by;
      }
    }
    result.insert(result.end(), last, segments_.end());
    segments_ = std::move(result);
  }

  // Compares two lower bounds.
  bool Below(const std::string& a, const std::string& b) const {
    return !b.empty() && (a.empty() || ucmp_->Compare(a, b) < 0);
  }

  // Checks that buckets are adjacent without gaps, and that none was replaced
  // in part.
  Status CheckSegments() const {
    for (size_t i = 0; i < segments_.size(); ++i) {
      const Segment& segment = segments_[i];
      if (segment.cut_by != nullptr) {
        const std::string by = segment.cut_by->Name();
        return Refuse(*segment.job,
                      by +
                          " has the replacement of a part of one of its "
                          "buckets only. If a crash has ended the job that "
                          "wrote " +
                          by + ", move " + by +
                          " elsewhere: the other files have what it holds. "
                          "Otherwise the file of the other part is missing");
      }
      const bool has_gap = i == 0 ? !segment.begin.empty()
                                  : segments_[i - 1].end != segment.begin;
      if (has_gap) {
        return Refuse(*segment.job,
                      "no file has the bucket before the buckets that it was "
                      "written for");
      }
    }
    if (!segments_.empty() && segments_.back().end.has_value()) {
      return Refuse(*segments_.back().job,
                    "no file has the bucket after the buckets that it was "
                    "written for");
    }
    return Status::OK();
  }

  // Sets merged_ to the merged files of operands that some bucket may see.
  Status SelectMerged() {
    uint64_t min_floor = segments_.empty() ? 0 : UINT64_MAX;
    for (const Segment& segment : segments_) {
      min_floor = std::min(min_floor, segment.floor);
    }
    // The newest first: a repeated job has taken in at least as many files.
    for (auto it = files_.rbegin(); it != files_.rend(); ++it) {
      const DeltaFileProbe* const file = *it;
      const DeltaFileDescription& description = file->description;
      if (description.tier != Tier::kMerged) {
        continue;
      }
      max_merged_ = std::max(max_merged_, description.last_epoch);
      if (!IsOperands(*file) || description.last_epoch <= min_floor) {
        continue;
      }
      // A newer file with some of its epochs must have all of them.
      bool overlaps = false;
      bool has_first = false;
      bool has_last = false;
      for (const DeltaFileProbe* other : merged_) {
        const uint64_t first = other->description.first_epoch;
        const uint64_t last = other->description.last_epoch;
        overlaps |=
            first <= description.last_epoch && description.first_epoch <= last;
        has_first |=
            first <= description.first_epoch && description.first_epoch <= last;
        has_last |=
            first <= description.last_epoch && description.last_epoch <= last;
      }
      if (!overlaps) {
        merged_.push_back(file);
      } else if (!has_first || !has_last) {
        return Refuse(*file,
                      "another file was merged from some, but not all, of the "
                      "flushes that it was merged from");
      }
    }
    for (const Segment& segment : segments_) {
      for (const DeltaFileProbe* file : merged_) {
        if (file->description.first_epoch <= segment.floor &&
            segment.floor < file->description.last_epoch) {
          return Refuse(*file,
                        "some, but not all, of the flushes that it was "
                        "merged from are in buckets");
        }
      }
    }
    return Status::OK();
  }

  // Returns true if the file is of a flush that was not merged.
  bool IsRecent(const DeltaFileProbe& file) const {
    // Files of flushes up to this epoch were merged.
    const uint64_t last_merged = std::max(max_merged_, max_floor_);
    return file.description.tier == Tier::kFlushed &&
           file.description.last_epoch > last_merged;
  }

  // The sequence numbers of what a flush has read, as far as known.
  static SequenceNumber FirstSeq(const DeltaFileProbe& file) {
    const SequenceNumber smallest = file.description.smallest_seq;
    return file.properties.last_seq == 0
               ? smallest
               : std::min(smallest, file.properties.first_seq);
  }
  static SequenceNumber LastSeq(const DeltaFileProbe& file) {
    return std::max(file.description.largest_seq, file.properties.last_seq);
  }

  // Sets flushed_ to the recent files of operands, without those of flushes of
  // which another one has read everything.
  Status SelectFlushed() {
    std::vector<const DeltaFileProbe*> files;
    for (const DeltaFileProbe* file : files_) {
      if (IsOperands(*file) && IsRecent(*file)) {
        files.push_back(file);
      }
    }
    // A flush comes before those that it contains. If two have read the same,
    // the later one does: it is the one that may have been committed.
    std::sort(files.begin(), files.end(),
              [](const DeltaFileProbe* a, const DeltaFileProbe* b) {
                if (FirstSeq(*a) != FirstSeq(*b)) {
                  return FirstSeq(*a) < FirstSeq(*b);
                }
                if (LastSeq(*a) != LastSeq(*b)) {
                  return LastSeq(*a) > LastSeq(*b);
                }
                return a->description.number > b->description.number;
              });
    const DeltaFileProbe* last = nullptr;
    for (const DeltaFileProbe* file : files) {
      if (last == nullptr || FirstSeq(*file) > LastSeq(*last)) {
        flushed_.insert(file);
        last = file;
      } else if (LastSeq(*file) > LastSeq(*last)) {
        const bool is_older =
            file->description.number < last->description.number;
        return Refuse(is_older ? *file : *last,
                      "another file (" + (is_older ? *last : *file).Name() +
                          ") is of a flush that has repeated a part of the "
                          "flush that wrote this one, but not all");
      }
    }
    return Status::OK();
  }

  void Assemble() {
    std::set<const DeltaFileProbe*> jobs;
    bool has_operands = !merged_.empty();
    for (const Segment& segment : segments_) {
      jobs.insert(segment.job);
      has_operands |= segment.extent_bytes > 0;
    }
    for (const DeltaFileProbe* file : files_) {
      if (!IsOperands(*file)) {
        // Those of a flush that was repeated are true as well.
        (IsRecent(*file) || jobs.count(file) > 0 ? lineage_->anchors
                                                 : lineage_->anchors_to_copy)
            .push_back(file);
      } else if (flushed_.count(file) > 0 || jobs.count(file) > 0 ||
                 std::find(merged_.begin(), merged_.end(), file) !=
                     merged_.end()) {
        has_operands |= flushed_.count(file) > 0;
        lineage_->operands.push_back(file);
      } else {
        lineage_->superseded.push_back(file);
      }
    }
    if (!has_operands) {
      *lineage_ = DeltaFileLiveness();
      lineage_->superseded = files_;
      return;
    }

    for (const Segment& segment : segments_) {
      DeltaBucket& bucket = lineage_->buckets.emplace_back();
      bucket.lower_bound = segment.begin;
      (IsOperands(*segment.job) ? bucket.state.extent_number
                                : bucket.state.anchors_number) =
          segment.job->description.number;
      bucket.state.extent_bytes = segment.extent_bytes;
      // The merged file that ended at the floor may be gone. The previous one
      // is equivalent, as there is none in between.
      for (const DeltaFileProbe* file : merged_) {
        const uint64_t epoch = file->description.last_epoch;
        if (epoch <= segment.floor) {
          bucket.state.floor = std::max(bucket.state.floor, epoch);
        }
      }
    }
  }

  const Comparator* const ucmp_;
  std::vector<const DeltaFileProbe*> files_;  // by number
  DeltaFileLiveness* const lineage_;
  std::vector<Segment> segments_;  // in the order of keys
  std::vector<const DeltaFileProbe*> merged_;
  std::set<const DeltaFileProbe*> flushed_;
  uint64_t max_floor_ = 0;
  uint64_t max_merged_ = 0;
};

}  // namespace

Status DeltaFileLiveness::Resolve(
    const std::vector<const DeltaFileProbe*>& files, const Comparator* ucmp,
    DeltaFileLiveness* lineage) {
  return Resolver(files, ucmp, lineage).Run();
}

}  // namespace ROCKSDB_NAMESPACE
