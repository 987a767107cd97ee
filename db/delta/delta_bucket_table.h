//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// What a bucket is, apart from its keys.
struct DeltaBucketState {
  // Recent files whose last epoch is above it belong to the bucket.
  uint64_t floor = 0;
  // The delta file that has the bucket's operands up to the floor, and about
  // how many bytes of it they take. If there are no operands: 0 bytes, and the
  // file that says so, or none.
  uint64_t extent_number = 0;
  uint64_t extent_bytes = 0;
  // The delta file that has the anchors which snapshots still need, or, if the
  // bucket's job left no operands at all, the one that says so; 0: none.
  uint64_t anchors_number = 0;

  // Has the extent any?
  bool HasOperands() const { return extent_bytes != 0; }

  bool operator==(const DeltaBucketState&) const = default;
};

// A bucket as an edit names it. Its upper bound is the lower bound of the next.
struct DeltaBucket {
  // User key. Empty: there is no bound. An empty key is no bound, as it is the
  // smallest one of some comparators and the largest one of others.
  std::string lower_bound;
  DeltaBucketState state;

  bool operator==(const DeltaBucket&) const = default;
};

// The buckets of a delta store: a sorted array that shares what it has in
// common with its copies.
//
// Buckets lie in chunks. A copy is a vector of pointers to them, and a change
// copies only the chunks that it touches: at most two if it replaces one
// bucket. A chunk that no one else can see is changed in place, so that a
// MANIFEST can be replayed without a copy per edit.
//
// Invariants (see Check()):
// * The first bucket has no lower bound, the others ascend.
// * Chunks have kMinChunk to kMaxChunk buckets, except if there is only one.
//
// Thread-safety: a table that is frozen can be read by all threads, and so can
// its copies. Until then, a table and its copies belong to one thread. A frozen
// table can be copied and the copy changed.
class DeltaBucketTable {
 public:
  static constexpr size_t kMinChunk = 64;
  static constexpr size_t kMaxChunk = 256;

  // A place in the array. Any change of the table invalidates it.
  struct Position {
    size_t chunk = 0;
    size_t index = 0;

    bool operator==(const Position&) const = default;
    bool operator<(const Position& other) const {
      return chunk != other.chunk ? chunk < other.chunk : index < other.index;
    }
  };

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  Position Begin() const { return {}; }
  Position End() const { return {chunks_.size(), 0}; }
  // REQUIRES: position is not End()
  Position Next(Position position) const {
    if (++position.index == ChunkAt(position).size()) {
      position = {position.chunk + 1, 0};
    }
    return position;
  }
  // REQUIRES: position is not Begin()
  Position Prev(Position position) const {
    if (position.index > 0) {
      --position.index;
    } else {
      --position.chunk;
      position.index = ChunkAt(position).size() - 1;
    }
    return position;
  }

  // REQUIRES: position is not End(). The slice is good until the table changes.
  Slice LowerBound(Position position) const {
    return ChunkAt(position).Key(position.index);
  }
  const DeltaBucketState& State(Position position) const {
    return ChunkAt(position).states[position.index];
  }

  // The bucket of the key.
  // REQUIRES: !empty()
  Position Find(const Slice& user_key, const Comparator* ucmp) const;
  // The bucket with that lower bound, End() if there is none.
  Position FindBound(const Slice& lower_bound, const Comparator* ucmp) const;

  // The first bucket from `from` on, and the last one up to it, whose floor is
  // below `epoch`, or which has an extent. End() if there is none.
  // REQUIRES of those that go back: from is not End()
  Position NextBelow(Position from, uint64_t epoch) const;
  Position PrevBelow(Position from, uint64_t epoch) const;
  Position NextWithExtent(Position from) const;
  Position PrevWithExtent(Position from) const;

  // Of the buckets [first, last); 0 and 0 if there are none.
  uint64_t MinFloor(Position first, Position last) const;
  uint64_t MaxFloor(Position first, Position last) const;
  uint64_t MinFloor() const { return MinFloor(Begin(), End()); }
  uint64_t MaxFloor() const { return MaxFloor(Begin(), End()); }
  // Has any of the buckets [first, last) an extent?
  bool HasExtent(Position first, Position last) const;

  // Puts `buckets` in the place of [first, last).
  // REQUIRES: keeps the invariants; last is not before first.
  void ReplaceRange(Position first, Position last,
                    const std::vector<DeltaBucket>& buckets);
  void Append(const std::vector<DeltaBucket>& buckets) {
    ReplaceRange(End(), End(), buckets);
  }
  // Sets the floors of the buckets [first, last).
  void SetFloors(Position first, Position last, uint64_t floor);
  void Clear();

  // To be called before another thread may see the table or a copy of it. What
  // is shared with frozen tables is left alone.
  void Freeze() const;

  size_t ApproximateMemoryUsage() const;
  // Corruption if an invariant does not hold.
  Status Check(const Comparator* ucmp) const;

  // How many chunks two tables have in common.
  size_t TEST_SharedChunks(const DeltaBucketTable& other) const;
  size_t TEST_NumChunks() const { return chunks_.size(); }

 private:
  struct Chunk {
    std::string keys;          // one after the other
    std::vector<size_t> ends;  // of each in `keys`
    std::vector<DeltaBucketState> states;
    // Of `states`.
    uint64_t min_floor = 0;
    uint64_t max_floor = 0;
    size_t num_extents = 0;
    // Other threads may see it. Set once; never true of a chunk that changes.
    bool frozen = false;

    size_t size() const { return states.size(); }
    size_t KeyBegin(size_t index) const {
      return index == 0 ? 0 : ends[index - 1];
    }
    Slice Key(size_t index) const {
      assert(index < size());
      const size_t begin = KeyBegin(index);
      return Slice(keys.data() + begin, ends[index] - begin);
    }
    void Add(const Slice& lower_bound, const DeltaBucketState& state);
    void Splice(size_t first, size_t last,
                const std::vector<DeltaBucket>& buckets);
    void Summarise();
  };
  // The first key is repeated here, as a look-up compares with many of them. It
  // points into the chunk, which stays where it is on the heap.
  struct Entry {
    explicit Entry(std::shared_ptr<Chunk> c)
        : chunk(std::move(c)), first_key(chunk->Key(0)) {}

    std::shared_ptr<Chunk> chunk;
    Slice first_key;
  };
  // Distributes buckets evenly among new chunks.
  class ChunkWriter;

  const Chunk& ChunkAt(Position position) const {
    assert(position.chunk < chunks_.size());
    return *chunks_[position.chunk].chunk;
  }

  // The chunk, or a copy that takes its place, to change it. Where its keys
  // change, its entry must be made anew.
  Chunk* Mutable(size_t chunk);
  // Calls fn(chunk, first, last) for each chunk that has buckets of [first,
  // last), until it returns false.
  template <typename Fn>
  void ForEachChunk(Position first, Position last, Fn fn) const;
  // The first bucket from `from` on, the last one up to it, for which
  // is_wanted(state) holds, in a chunk for which may_have(chunk) does. End() if
  // there is none.
  template <typename MayHave, typename IsWanted>
  Position FindNext(Position from, MayHave may_have, IsWanted is_wanted) const;
  template <typename MayHave, typename IsWanted>
  Position FindPrev(Position from, MayHave may_have, IsWanted is_wanted) const;

  std::vector<Entry> chunks_;
  size_t size_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
