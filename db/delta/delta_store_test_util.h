//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_test_util.h"
#include "db/delta/delta_read.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/lookup_key.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {
namespace delta_test {

// An entry that a flush adds to a delta store.
struct Event {
  enum class Type { kOperand, kAnchor, kRangeAnchor };

  Type type = Type::kOperand;
  std::string key;  // of a range: its start
  std::string end;
  SequenceNumber seq = 0;

  std::string Value() const { return key + "@" + std::to_string(seq); }
  bool Covers(const std::string& user_key) const {
    return type == Type::kRangeAnchor ? key <= user_key && user_key < end
                                      : key == user_key;
  }
};
using Events = std::vector<Event>;

// Returns the operands of the key among the events that a reader at read_seq
// sees, newest first.
inline Values VisibleOperands(const Events& events, const std::string& key,
                              SequenceNumber read_seq) {
  SequenceNumber anchor = 0;
  for (const Event& event : events) {
    if (event.type != Event::Type::kOperand && event.Covers(key) &&
        event.seq <= read_seq) {
      anchor = std::max(anchor, event.seq);
    }
  }
  Values values;
  for (const Event& event : events) {
    if (event.type == Event::Type::kOperand && event.key == key &&
        event.seq <= read_seq && event.seq > anchor) {
      values.emplace_back(event.seq, event.Value());
    }
  }
  std::sort(values.rbegin(), values.rend());
  return values;
}

// Provides a delta store in memory without a DB. Its history consists of
// flushes, merges and collections. For readers these are like those of a DB:
// each file has the right entries, and each bucket sees the right files. No
// entry is ever dropped or combined, so readers must find exactly the entries
// that were flushed.
class DeltaStoreTestBase : public DeltaFileTestBase {
 protected:
  DeltaStoreTestBase() { ResetStore(); }

  // True if the file system of the test reads asynchronously; set it before
  // ResetStore().
  bool reads_async_ = false;

  void TearDown() override {
    DeltaFileTestBase::TearDown();
    // These are destroyed before the store.
    version_.reset();
    metas_.clear();
  }

  // Makes a new store with the current table options.
  void ResetStore() {
    version_.reset();
    metas_.clear();
    DeltaTableFamily family = TableFamily();
    family.file_options = FileOptions(options_);
    store_ = std::make_unique<DeltaStore>(std::move(family),
                                          MutableCFOptions(options_));
    // MockEnv claims to read asynchronously, but does not.
    for (int i = 0; !reads_async_ && i < DeltaAsyncReads::kMaxNotAsync; ++i) {
      store_->async_reads()->OnTried(/*is_async=*/false);
    }
  }

  // Makes a new store without files and buckets.
  void ResetHistory() {
    ResetStore();
    events_.clear();
    last_seq_ = 0;
    flushed_.clear();
    merged_.clear();
    buckets_.clear();
  }

  // Keeps the state, but closes all files.
  void ResetReaders() {
    const std::vector<DeltaEdit> edits = version_->SplitForSnapshot();
    version_.reset();
    metas_.clear();
    for (const DeltaEdit& edit : edits) {
      Apply(edit);
    }
  }

  const Comparator* ucmp() const { return options_.comparator; }

  static Event OperandOf(const std::string& key, SequenceNumber seq) {
    return {Event::Type::kOperand, key, "", seq};
  }
  static Event AnchorOf(const std::string& key, SequenceNumber seq) {
    return {Event::Type::kAnchor, key, "", seq};
  }
  static Event RangeAnchorOf(const std::string& start, const std::string& end,
                             SequenceNumber seq) {
    return {Event::Type::kRangeAnchor, start, end, seq};
  }

  // Writes a file with the events of that kind. Returns nullopt if there are
  // none.
  std::optional<DeltaFileDescription> WriteFile(Kind kind, Tier tier,
                                                uint64_t first_epoch,
                                                uint64_t last_epoch,
                                                const Events& events) {
    DeltaFileBuilder::Options options = BuilderOptions(kind, tier);
    options.first_epoch = first_epoch;
    options.last_epoch = last_epoch;
    const auto builder = NewBuilder(options);
    for (const Event& event : Sorted(events, Event::Type::kOperand)) {
      if (kind == Kind::kOperands) {
        EXPECT_OK(
            Add(Operand{event.key, event.seq, event.Value()}, builder.get()));
      }
    }
    if (kind == Kind::kAnchors) {
      for (const Event& event : Sorted(events, Event::Type::kAnchor)) {
        EXPECT_OK(builder->AddAnchor(event.key, event.seq));
      }
      for (const Event& event : Sorted(events, Event::Type::kRangeAnchor)) {
        EXPECT_OK(builder->AddRangeAnchor(event.key, event.end, event.seq));
      }
    }
    DeltaFileDescription description;
    EXPECT_OK(builder->Finish(&description));
    return description.number == 0 ? std::optional<DeltaFileDescription>()
                                   : description;
  }

  // A file has one meta in all versions, so it is opened only once.
  DeltaVersion::FileMaker FileMaker() {
    return [this](const DeltaFileDescription& description) {
      DeltaVersion::FilePtr& meta = metas_[description.number];
      if (meta == nullptr) {
        meta = DeltaFileMeta::Create(description, /*on_release=*/nullptr);
      }
      return meta;
    };
  }

  void Apply(const DeltaEdit& edit) {
    EXPECT_OK(
        DeltaVersion::Apply(version_, edit, ucmp(), FileMaker(), &version_));
  }

  // ---- The history.

  // Flushes new events, at least one, in any order.
  void Flush(const Events& events) {
    Recent flush;
    flush.first_epoch = flush.last_epoch = ++last_number_;
    flush.events = events;
    DeltaEdit edit;
    for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      const auto file = WriteFile(kind, Tier::kFlushed, flush.first_epoch,
                                  flush.last_epoch, events);
      if (file.has_value()) {
        edit.AddFile(*file);
        ++flush.num_files;
      }
    }
    Apply(edit);
    flushed_.push_back(std::move(flush));
    events_.insert(events_.end(), events.begin(), events.end());
  }

  // Merges the `num` oldest flushes.
  void Merge(size_t num) {
    Recent merged;
    merged.first_epoch = flushed_.front().first_epoch;
    for (size_t i = 0; i < num; ++i) {
      const Recent& flush = flushed_[i];
      merged.last_epoch = flush.last_epoch;
      merged.num_files += flush.num_files;
      merged.events.insert(merged.events.end(), flush.events.begin(),
                           flush.events.end());
    }
    flushed_.erase(flushed_.begin(), flushed_.begin() + num);
    DeltaEdit edit;
    for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      const auto file = WriteFile(kind, Tier::kMerged, merged.first_epoch,
                                  merged.last_epoch, merged.events);
      if (file.has_value()) {
        edit.AddFile(*file);
      }
    }
    edit.SetMergeRecent({merged.last_epoch, merged.num_files});
    Apply(edit);
    merged_.push_back(std::move(merged));
  }

  // Collects the buckets [first, last). They take in the `num` oldest merged
  // files that one of them has not taken in, and are replaced by buckets with
  // these lower bounds. The first bound stays as it was.
  void Collect(size_t first, size_t last, size_t num,
               const std::vector<std::string>& bounds) {
    if (buckets_.empty()) {
      buckets_.emplace_back();
    }
    uint64_t floor = 0;
    for (size_t i = first; i < last; ++i) {
      floor = std::max(floor, buckets_[i].floor);
    }
    for (const Recent& merged : merged_) {
      if (merged.last_epoch > floor && num > 0) {
        floor = merged.last_epoch;
        --num;
      }
    }

    std::vector<Bucket> output(bounds.size());
    for (size_t b = 0; b < bounds.size(); ++b) {
      output[b].lower = bounds[b];
      output[b].floor = floor;
    }
    Events all;
    std::set<SequenceNumber> seqs;
    for (size_t i = first; i < last; ++i) {
      for (const Event& event : EventsOf(i, floor)) {
        if (!IsIn(event, buckets_[i].lower, LowerBound(i + 1))) {
          continue;
        }
        // A range that covers several of the old buckets is found in each of
        // them. It must be taken in only once: otherwise its copies would
        // multiply from one collection to the next.
        if (!seqs.insert(event.seq).second) {
          continue;
        }
        all.push_back(event);
        for (size_t b = 0; b < bounds.size(); ++b) {
          const std::string* const upper =
              b + 1 < bounds.size() ? &bounds[b + 1] : LowerBound(last);
          if (IsIn(event, output[b].lower, upper)) {
            output[b].events.push_back(event);
          }
        }
      }
    }

    DeltaEdit edit;
    std::map<Kind, uint64_t> numbers;
    for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      const auto file = WriteFile(kind, Tier::kSorted, 0, 0, all);
      if (file.has_value()) {
        edit.AddFile(*file);
        numbers[kind] = file->number;
      }
    }
    DeltaEdit::ReplaceBuckets replace;
    replace.range.begin = buckets_[first].lower;
    if (LowerBound(last) != nullptr) {
      replace.range.end = *LowerBound(last);
    }
    for (const Bucket& bucket : output) {
      DeltaBucketState state;
      state.floor = floor;
      for (const Event& event : bucket.events) {
        if (event.type == Event::Type::kOperand) {
          state.extent_number = numbers[Kind::kOperands];
          ++state.extent_bytes;
        } else {
          state.anchors_number = numbers[Kind::kAnchors];
        }
      }
      replace.buckets.push_back({bucket.lower, state});
    }
    edit.AddReplaceBuckets(std::move(replace));
    Apply(edit);

    buckets_.erase(buckets_.begin() + first, buckets_.begin() + last);
    buckets_.insert(buckets_.begin() + first, output.begin(), output.end());
    uint64_t min_floor = UINT64_MAX;
    for (const Bucket& bucket : buckets_) {
      min_floor = std::min(min_floor, bucket.floor);
    }
    std::erase_if(merged_, [min_floor](const Recent& merged) {
      return merged.last_epoch <= min_floor;
    });
  }

  // Flushes, merges or collects at random, with keys of `keys`, which are
  // sorted.
  void RandomStep(const std::vector<std::string>& keys, Random* rnd) {
    if (!flushed_.empty() && rnd->OneIn(3)) {
      Merge(1 + rnd->Uniform(static_cast<int>(flushed_.size())));
      return;
    }
    if (!merged_.empty() && rnd->OneIn(2)) {
      const size_t num_buckets = std::max<size_t>(buckets_.size(), 1);
      const size_t first = rnd->Uniform(static_cast<int>(num_buckets));
      const size_t last =
          first + 1 + rnd->Uniform(static_cast<int>(num_buckets - first));
      // The bounds are some new ones and some of the old ones.
      std::vector<std::string> bounds;
      for (const std::string& key : keys) {
        const bool is_old =
            std::any_of(buckets_.begin(), buckets_.end(),
                        [&key](const Bucket& b) { return b.lower == key; });
        if ((buckets_.empty() ||
             IsInRange(key, buckets_[first].lower, LowerBound(last))) &&
            rnd->OneIn(is_old ? 2 : 5)) {
          bounds.push_back(key);
        }
      }
      const std::string begin =
          buckets_.empty() ? std::string() : buckets_[first].lower;
      if (bounds.empty() || bounds.front() != begin) {
        bounds.insert(bounds.begin(), begin);
      }
      Collect(first, last, rnd->Uniform(3), bounds);
      return;
    }
    Events events;
    for (size_t i = 1 + rnd->Uniform(12); i > 0; --i) {
      Event event;
      event.key = keys[rnd->Uniform(static_cast<int>(keys.size()))];
      event.seq = ++last_seq_;
      if (rnd->OneIn(8)) {
        event.type = Event::Type::kAnchor;
      } else if (rnd->OneIn(10)) {
        event.type = Event::Type::kRangeAnchor;
        event.end = event.key + "x";
        const std::string& end =
            keys[rnd->Uniform(static_cast<int>(keys.size()))];
        if (end > event.key) {
          event.end = end;
        }
      }
      events.push_back(std::move(event));
    }
    Flush(events);
  }

  // ---- Readers.

  Values Expected(const std::string& key, SequenceNumber read_seq) const {
    return VisibleOperands(events_, key, read_seq);
  }

  Status Read(const std::string& key, SequenceNumber read_seq, Values* values,
              const ReadOptions& read_options = ReadOptions()) {
    values->clear();
    const LookupKey lookup_key(key, read_seq);
    DeltaRead read(*version_, *store_, read_options, lookup_key);
    DeltaRead::Operand operand;
    Status s;
    while (read.Next(/*above=*/0, &operand, &s)) {
      values->emplace_back(operand.seq, operand.value.ToString());
    }
    return s;
  }
  Values MustRead(const std::string& key, SequenceNumber read_seq) {
    Values values;
    EXPECT_OK(Read(key, read_seq, &values));
    return values;
  }

  std::unique_ptr<DeltaStore> store_;
  // nullptr: no files and no buckets.
  std::shared_ptr<const DeltaVersion> version_;
  SequenceNumber last_seq_ = 0;
  Events events_;  // all flushed events

 private:
  struct Recent {
    uint64_t first_epoch = 0;
    uint64_t last_epoch = 0;
    uint32_t num_files = 0;
    Events events;
  };
  struct Bucket {
    std::string lower;
    uint64_t floor = 0;
    Events events;  // up to the floor
  };

  static Events Sorted(const Events& events, Event::Type type) {
    Events result;
    for (const Event& event : events) {
      if (event.type == type) {
        result.push_back(event);
      }
    }
    std::sort(result.begin(), result.end(), [](const Event& a, const Event& b) {
      return a.key != b.key ? a.key < b.key : a.seq > b.seq;
    });
    return result;
  }

  static bool IsInRange(const std::string& key, const std::string& lower,
                        const std::string* upper) {
    return lower <= key && (upper == nullptr || key < *upper);
  }
  static bool IsIn(const Event& event, const std::string& lower,
                   const std::string* upper) {
    return event.type == Event::Type::kRangeAnchor
               ? lower < event.end && (upper == nullptr || event.key < *upper)
               : IsInRange(event.key, lower, upper);
  }
  // Returns nullptr after the last bucket.
  const std::string* LowerBound(size_t bucket) const {
    return bucket < buckets_.size() ? &buckets_[bucket].lower : nullptr;
  }
  // Returns the events of the bucket and of the merged files that it sees up to
  // the floor.
  Events EventsOf(size_t i, uint64_t floor) const {
    Events result = buckets_[i].events;
    for (const Recent& merged : merged_) {
      if (merged.last_epoch > buckets_[i].floor && merged.last_epoch <= floor) {
        result.insert(result.end(), merged.events.begin(), merged.events.end());
      }
    }
    return result;
  }

  std::map<uint64_t, DeltaVersion::FilePtr> metas_;
  std::vector<Recent> flushed_;  // the oldest first
  std::vector<Recent> merged_;
  std::vector<Bucket> buckets_;
};

}  // namespace delta_test
}  // namespace ROCKSDB_NAMESPACE
