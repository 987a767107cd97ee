//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_bucket_table.h"

#include <algorithm>
#include <utility>

namespace ROCKSDB_NAMESPACE {

void DeltaBucketTable::Chunk::Add(const Slice& lower_bound,
                                  const DeltaBucketState& state) {
  keys.append(lower_bound.data(), lower_bound.size());
  ends.push_back(keys.size());
  states.push_back(state);
}

void DeltaBucketTable::Chunk::Splice(size_t first, size_t last,
                                     const std::vector<DeltaBucket>& buckets) {
  assert(first <= last && last <= size());
  assert(!frozen);
  const size_t keys_begin = KeyBegin(first);
  const size_t old_keys_size = KeyBegin(last) - keys_begin;

  std::string new_keys;
  std::vector<size_t> new_ends;
  std::vector<DeltaBucketState> new_states;
  new_ends.reserve(buckets.size());
  new_states.reserve(buckets.size());
  for (const DeltaBucket& bucket : buckets) {
    new_keys += bucket.lower_bound;
    new_ends.push_back(keys_begin + new_keys.size());
    new_states.push_back(bucket.state);
  }
  for (size_t i = last; i < ends.size(); ++i) {
    ends[i] = ends[i] - old_keys_size + new_keys.size();
  }
  keys.replace(keys_begin, old_keys_size, new_keys);
  ends.erase(ends.begin() + first, ends.begin() + last);
  ends.insert(ends.begin() + first, new_ends.begin(), new_ends.end());
  states.erase(states.begin() + first, states.begin() + last);
  states.insert(states.begin() + first, new_states.begin(), new_states.end());
  Summarise();
}

void DeltaBucketTable::Chunk::Summarise() {
  assert(!states.empty());
  min_floor = max_floor = states.front().floor;
  num_extents = 0;
  for (const DeltaBucketState& state : states) {
    min_floor = std::min(min_floor, state.floor);
    max_floor = std::max(max_floor, state.floor);
    num_extents += state.HasOperands();
  }
}

class DeltaBucketTable::ChunkWriter {
 public:
  // REQUIRES: exactly `total` calls of Add() follow; total > 0.
  explicit ChunkWriter(size_t total)
      : total_(total), parts_((total + kMaxChunk - 1) / kMaxChunk) {
    chunks_.reserve(parts_);
  }

  void Add(const Slice& lower_bound, const DeltaBucketState& state) {
    if (chunk_ == nullptr) {
      chunk_ = std::make_shared<Chunk>();
      chunk_->ends.reserve(total_ / parts_ + 1);
      chunk_->states.reserve(total_ / parts_ + 1);
    }
    chunk_->Add(lower_bound, state);
    ++added_;
    // The sizes of parts differ by at most one bucket, and two parts together
    // have more than kMaxChunk buckets, so no part is too small.
    if (added_ == total_ * (chunks_.size() + 1) / parts_) {
      chunk_->keys.shrink_to_fit();
      chunk_->Summarise();
      chunks_.emplace_back(std::move(chunk_));
      chunk_ = nullptr;
    }
  }
  void Add(const Chunk& chunk, size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      Add(chunk.Key(i), chunk.states[i]);
    }
  }

  std::vector<Entry> Finish() {
    assert(added_ == total_);
    return std::move(chunks_);
  }

 private:
  const size_t total_;
  const size_t parts_;
  size_t added_ = 0;
  std::shared_ptr<Chunk> chunk_;
  std::vector<Entry> chunks_;
};

template <typename Fn>
void DeltaBucketTable::ForEachChunk(Position first, Position last,
                                    Fn fn) const {
  assert(!(last < first));
  for (size_t c = first.chunk; c < chunks_.size() && c <= last.chunk; ++c) {
    const Chunk& chunk = *chunks_[c].chunk;
    const size_t begin = c == first.chunk ? first.index : 0;
    const size_t end = c == last.chunk ? last.index : chunk.size();
    if (begin < end && !fn(c, begin, end)) {
      return;
    }
  }
}

DeltaBucketTable::Position DeltaBucketTable::Find(
    const Slice& user_key, const Comparator* ucmp) const {
  assert(!empty());
  // The first bucket has no bound to compare with.
  const auto after =
      std::upper_bound(chunks_.begin() + 1, chunks_.end(), user_key,
                       [ucmp](const Slice& key, const Entry& entry) {
                         return ucmp->Compare(key, entry.first_key) < 0;
                       });
  Position position;
  position.chunk = static_cast<size_t>(after - chunks_.begin()) - 1;
  const Chunk& chunk = ChunkAt(position);
  // The last bucket whose bound is not above the key; this holds for the first
  // one.
  size_t low = 0;
  size_t high = chunk.size();
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (ucmp->Compare(user_key, chunk.Key(middle)) < 0) {
      high = middle;
    } else {
      low = middle;
    }
  }
  position.index = low;
  return position;
}

DeltaBucketTable::Position DeltaBucketTable::FindBound(
    const Slice& lower_bound, const Comparator* ucmp) const {
  if (empty()) {
    return End();
  }
  if (lower_bound.empty()) {
    return Begin();
  }
  const Position position = Find(lower_bound, ucmp);
  return position == Begin() ||
                 ucmp->Compare(LowerBound(position), lower_bound) != 0
             ? End()
             : position;
}

template <typename MayHave, typename IsWanted>
DeltaBucketTable::Position DeltaBucketTable::FindNext(
    Position from, MayHave may_have, IsWanted is_wanted) const {
  for (; from.chunk < chunks_.size(); from = {from.chunk + 1, 0}) {
    const Chunk& chunk = ChunkAt(from);
    if (!may_have(chunk)) {
      continue;
    }
    for (; from.index < chunk.size(); ++from.index) {
      if (is_wanted(chunk.states[from.index])) {
        return from;
      }
    }
  }
  return End();
}

template <typename MayHave, typename IsWanted>
DeltaBucketTable::Position DeltaBucketTable::FindPrev(
    Position from, MayHave may_have, IsWanted is_wanted) const {
  for (size_t left = from.index + 1;;) {
    const Chunk& chunk = ChunkAt({from.chunk, 0});
    if (may_have(chunk)) {
      while (left > 0) {
        if (is_wanted(chunk.states[--left])) {
          return {from.chunk, left};
        }
      }
    }
    if (from.chunk == 0) {
      return End();
    }
    --from.chunk;
    left = ChunkAt({from.chunk, 0}).size();
  }
}

DeltaBucketTable::Position DeltaBucketTable::NextBelow(Position from,
                                                       uint64_t epoch) const {
  return FindNext(
      from, [epoch](const Chunk& chunk) { return chunk.min_floor < epoch; },
      [epoch](const DeltaBucketState& s) { return s.floor < epoch; });
}

DeltaBucketTable::Position DeltaBucketTable::PrevBelow(Position from,
                                                       uint64_t epoch) const {
  return FindPrev(
      from, [epoch](const Chunk& chunk) { return chunk.min_floor < epoch; },
      [epoch](const DeltaBucketState& s) { return s.floor < epoch; });
}

DeltaBucketTable::Position DeltaBucketTable::NextWithExtent(
    Position from) const {
  return FindNext(
      from, [](const Chunk& chunk) { return chunk.num_extents > 0; },
      [](const DeltaBucketState& s) { return s.HasOperands(); });
}

DeltaBucketTable::Position DeltaBucketTable::PrevWithExtent(
    Position from) const {
  return FindPrev(
      from, [](const Chunk& chunk) { return chunk.num_extents > 0; },
      [](const DeltaBucketState& s) { return s.HasOperands(); });
}

uint64_t DeltaBucketTable::MinFloor(Position first, Position last) const {
  uint64_t result = UINT64_MAX;
  ForEachChunk(first, last, [&](size_t c, size_t begin, size_t end) {
    const Chunk& chunk = *chunks_[c].chunk;
    if (end - begin == chunk.size()) {
      result = std::min(result, chunk.min_floor);
    } else {
      for (size_t i = begin; i < end; ++i) {
        result = std::min(result, chunk.states[i].floor);
      }
    }
    return true;
  });
  return result == UINT64_MAX ? 0 : result;
}

uint64_t DeltaBucketTable::MaxFloor(Position first, Position last) const {
  uint64_t result = 0;
  ForEachChunk(first, last, [&](size_t c, size_t begin, size_t end) {
    const Chunk& chunk = *chunks_[c].chunk;
    if (end - begin == chunk.size()) {
      result = std::max(result, chunk.max_floor);
    } else {
      for (size_t i = begin; i < end; ++i) {
        result = std::max(result, chunk.states[i].floor);
      }
    }
    return true;
  });
  return result;
}

bool DeltaBucketTable::HasExtent(Position first, Position last) const {
  bool result = false;
  ForEachChunk(first, last, [&](size_t c, size_t begin, size_t end) {
    const Chunk& chunk = *chunks_[c].chunk;
    if (chunk.num_extents > 0) {
      result = std::any_of(
          chunk.states.begin() + begin, chunk.states.begin() + end,
          [](const DeltaBucketState& s) { return s.HasOperands(); });
    }
    return !result;
  });
  return result;
}

DeltaBucketTable::Chunk* DeltaBucketTable::Mutable(size_t chunk) {
  std::shared_ptr<Chunk>& pointer = chunks_[chunk].chunk;
  // A chunk that is not frozen was made by this thread and has been seen only
  // by tables of this thread: no other thread can read it or change its
  // reference count, so the count is exact. The count alone would not be
  // sufficient: if another thread has dropped the last other reference, its
  // earlier accesses need not be ordered before ours.
  if (pointer->frozen || pointer.use_count() > 1) {
    auto copy = std::make_shared<Chunk>(*pointer);
    copy->frozen = false;
    chunks_[chunk] = Entry(std::move(copy));
  }
  return pointer.get();
}

void DeltaBucketTable::ReplaceRange(Position first, Position last,
                                    const std::vector<DeltaBucket>& buckets) {
  assert(!(last < first));
  const size_t old_size = size_;
  size_t removed = 0;
  ForEachChunk(first, last, [&](size_t, size_t begin, size_t end) {
    removed += end - begin;
    return true;
  });
  size_ = old_size - removed + buckets.size();
  if (size_ == 0) {
    Clear();
    return;
  }
  if (old_size == 0) {
    ChunkWriter writer(buckets.size());
    for (const DeltaBucket& bucket : buckets) {
      writer.Add(bucket.lower_bound, bucket.state);
    }
    chunks_ = writer.Finish();
    return;
  }

  // Split the range into the end of one chunk, whole chunks, and the start of
  // another one.
  const auto size_of = [this](size_t c) { return chunks_[c].chunk->size(); };
  if (first.chunk == chunks_.size()) {
    first = {first.chunk - 1, size_of(first.chunk - 1)};
  }
  if (last.index == 0 && last.chunk > first.chunk) {
    last = {last.chunk - 1, size_of(last.chunk - 1)};
  }
  const size_t total =
      first.index + buckets.size() + size_of(last.chunk) - last.index;

  if (first.chunk == last.chunk && total <= kMaxChunk &&
      (total >= kMinChunk || chunks_.size() == 1)) {
    Mutable(first.chunk)->Splice(first.index, last.index, buckets);
    Entry& entry = chunks_[first.chunk];
    entry = Entry(std::move(entry.chunk));
    return;
  }

  RebuildChunks(first, last, buckets, total);
}

void DeltaBucketTable::RebuildChunks(Position first, Position last,
                                     const std::vector<DeltaBucket>& buckets,
                                     size_t total) {
  const auto size_of = [this](size_t c) { return chunks_[c].chunk->size(); };
  // Too few buckets are joined with a neighboring chunk.
  size_t begin = first.chunk;
  size_t end = last.chunk + 1;
  if (total < kMinChunk) {
    if (end < chunks_.size()) {
      total += size_of(end++);
    } else if (begin > 0) {
      total += size_of(--begin);
    }
  }
  ChunkWriter writer(total);
  if (begin < first.chunk) {
    writer.Add(*chunks_[begin].chunk, 0, size_of(begin));
  }
  writer.Add(*chunks_[first.chunk].chunk, 0, first.index);
  for (const DeltaBucket& bucket : buckets) {
    writer.Add(bucket.lower_bound, bucket.state);
  }
  writer.Add(*chunks_[last.chunk].chunk, last.index, size_of(last.chunk));
  if (last.chunk + 1 < end) {
    writer.Add(*chunks_[last.chunk + 1].chunk, 0, size_of(last.chunk + 1));
  }
  std::vector<Entry> chunks = writer.Finish();
  chunks_.erase(chunks_.begin() + begin, chunks_.begin() + end);
  chunks_.insert(chunks_.begin() + begin,
                 std::make_move_iterator(chunks.begin()),
                 std::make_move_iterator(chunks.end()));
}

void DeltaBucketTable::SetFloors(Position first, Position last,
                                 uint64_t floor) {
  ForEachChunk(first, last, [&](size_t c, size_t begin, size_t end) {
    const Chunk& old = *chunks_[c].chunk;
    if (old.min_floor != floor || old.max_floor != floor) {
      Chunk* const chunk = Mutable(c);
      for (size_t i = begin; i < end; ++i) {
        chunk->states[i].floor = floor;
      }
      chunk->Summarise();
    }
    return true;
  });
}

void DeltaBucketTable::Clear() {
  chunks_.clear();
  size_ = 0;
}

void DeltaBucketTable::Freeze() const {
  for (const Entry& entry : chunks_) {
    // Other threads may be reading frozen chunks, which must not be written to.
    if (!entry.chunk->frozen) {
      entry.chunk->frozen = true;
    }
  }
}

size_t DeltaBucketTable::ApproximateMemoryUsage() const {
  size_t usage = sizeof(*this) + chunks_.capacity() * sizeof(Entry);
  for (const Entry& entry : chunks_) {
    const Chunk& chunk = *entry.chunk;
    usage += sizeof(chunk) + chunk.keys.capacity() +
             chunk.ends.capacity() * sizeof(chunk.ends[0]) +
             chunk.states.capacity() * sizeof(chunk.states[0]);
  }
  return usage;
}

size_t DeltaBucketTable::BoundBytes() const {
  size_t bytes = 0;
  for (const Entry& entry : chunks_) {
    bytes += entry.chunk->keys.size();
  }
  return bytes;
}

Status DeltaBucketTable::Check(const Comparator* ucmp) const {
  size_t count = 0;
  for (const Entry& entry : chunks_) {
    const Chunk& chunk = *entry.chunk;
    count += chunk.size();
    if (chunk.size() == 0 || chunk.size() > kMaxChunk ||
        (chunk.size() < kMinChunk && chunks_.size() > 1) ||
        chunk.ends.size() != chunk.size() ||
        chunk.ends.back() != chunk.keys.size() ||
        entry.first_key != chunk.Key(0)) {
      return Status::Corruption("Delta buckets", "malformed chunk");
    }
    Chunk summary;
    summary.states = chunk.states;
    summary.Summarise();
    if (summary.min_floor != chunk.min_floor ||
        summary.max_floor != chunk.max_floor ||
        summary.num_extents != chunk.num_extents) {
      return Status::Corruption("Delta buckets", "wrong summary of a chunk");
    }
  }
  if (count != size_) {
    return Status::Corruption("Delta buckets", "wrong number of buckets");
  }
  Slice previous;
  for (Position p = Begin(); p != End(); p = Next(p)) {
    const Slice bound = LowerBound(p);
    if (bound.empty() != (p == Begin())) {
      return Status::Corruption("Delta buckets",
                                "the first one alone has no lower bound");
    }
    if (!previous.empty() && ucmp->Compare(previous, bound) >= 0) {
      return Status::Corruption("Delta buckets", "out of order");
    }
    previous = bound;
  }
  return Status::OK();
}

size_t DeltaBucketTable::TEST_SharedChunks(
    const DeltaBucketTable& other) const {
  return static_cast<size_t>(std::count_if(
      chunks_.begin(), chunks_.end(), [&other](const Entry& entry) {
        return std::any_of(
            other.chunks_.begin(), other.chunks_.end(),
            [&entry](const Entry& e) { return e.chunk == entry.chunk; });
      }));
}

}  // namespace ROCKSDB_NAMESPACE
