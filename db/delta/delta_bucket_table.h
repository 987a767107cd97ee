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

// The state of a bucket, apart from its key range.
struct DeltaBucketState {
  // An epoch. The bucket sees recent files whose last epoch is above it.
  uint64_t floor = 0;
  // The delta file with the bucket's operands up to the floor, and the
  // approximate number of their bytes in it. If there are no operands: 0 bytes,
  // and the file that records this, or 0 for none.
  uint64_t extent_number = 0;
  uint64_t extent_bytes = 0;
  // The delta file with the anchors that snapshots still need or, if the
  // bucket's job left no operands at all, the file that records this; 0: none.
  uint64_t anchors_number = 0;

  // Returns true if the extent has operands.
  bool HasOperands() const { return extent_bytes != 0; }

  bool operator==(const DeltaBucketState&) const = default;
};

// A bucket as an edit names it. Its upper bound is the lower bound of the next.
struct DeltaBucket {
  // User key; empty: no bound. An empty key cannot be a bound, as it is the
  // smallest key of some comparators and the largest of others.
  std::string lower_bound;
  DeltaBucketState state;

  bool operator==(const DeltaBucket&) const = default;
};

// The buckets of a delta store: a sorted array that shares memory with its
// copies.
//
// Buckets are stored in chunks. A copy is a vector of pointers to the chunks,
// and a change copies only the chunks that it modifies: at most two if it
// replaces one bucket. A chunk that no other thread can see is changed in
// place, so that a MANIFEST can be replayed without a copy per edit.
//
// Invariants (see Check()):
// * The first bucket has no lower bound, and the bounds of the others ascend.
// * Chunks have kMinChunk to kMaxChunk buckets, unless there is only one chunk.
//
// Thread-safety: a frozen table and its copies can be read by all threads.
// Until it is frozen, a table and its copies belong to one thread. A frozen
// table can be copied and the copy changed.
class DeltaBucketTable {
 public:
  static constexpr size_t kMinChunk = 64;
  static constexpr size_t kMaxChunk = 256;

  // A position in the array. Any change of the table invalidates it.
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

  // Returns the lower bound of the bucket, valid until the table changes.
  // REQUIRES: position is not End()
  Slice LowerBound(Position position) const {
    return ChunkAt(position).Key(position.index);
  }
  // REQUIRES: position is not End()
  const DeltaBucketState& State(Position position) const {
    return ChunkAt(position).states[position.index];
  }

  // Returns the bucket of the key.
  // REQUIRES: !empty()
  Position Find(const Slice& user_key, const Comparator* ucmp) const;
  // Returns the bucket with that lower bound, End() if there is none.
  Position FindBound(const Slice& lower_bound, const Comparator* ucmp) const;

  // Returns the first bucket at or after `from` whose floor is below `epoch`,
  // or End().
  Position NextBelow(Position from, uint64_t epoch) const;
  // Returns the last bucket at or before `from` whose floor is below `epoch`,
  // or End().
  // REQUIRES: from is not End()
  Position PrevBelow(Position from, uint64_t epoch) const;
  // Returns the first bucket at or after `from` that has an extent, or End().
  Position NextWithExtent(Position from) const;
  // Returns the last bucket at or before `from` that has an extent, or End().
  // REQUIRES: from is not End()
  Position PrevWithExtent(Position from) const;

  // Return the smallest and the largest floor of the buckets [first, last); 0
  // if there are no buckets.
  uint64_t MinFloor(Position first, Position last) const;
  uint64_t MaxFloor(Position first, Position last) const;
  uint64_t MinFloor() const { return MinFloor(Begin(), End()); }
  uint64_t MaxFloor() const { return MaxFloor(Begin(), End()); }
  // Returns true if one of the buckets [first, last) has an extent.
  bool HasExtent(Position first, Position last) const;

  // Replaces the buckets [first, last) by `buckets`.
  // REQUIRES: the result meets the invariants; last is not before first.
  void ReplaceRange(Position first, Position last,
                    const std::vector<DeltaBucket>& buckets);
  void Append(const std::vector<DeltaBucket>& buckets) {
    ReplaceRange(End(), End(), buckets);
  }
  // Sets the floors of the buckets [first, last).
  void SetFloors(Position first, Position last, uint64_t floor);
  void Clear();

  // Freezes the table. To be called before another thread may see the table or
  // a copy of it. Chunks that are shared with frozen tables are not written to.
  void Freeze() const;

  size_t ApproximateMemoryUsage() const;
  // Returns the summed size of the lower bounds in bytes.
  size_t BoundBytes() const;
  // Returns Corruption if an invariant does not hold.
  Status Check(const Comparator* ucmp) const;

  // Returns the number of chunks that the two tables share.
  size_t TEST_SharedChunks(const DeltaBucketTable& other) const;
  size_t TEST_NumChunks() const { return chunks_.size(); }

 private:
  struct Chunk {
    std::string keys;          // concatenated
    std::vector<size_t> ends;  // end of each key in `keys`
    std::vector<DeltaBucketState> states;
    // Summary of `states`.
    uint64_t min_floor = 0;
    uint64_t max_floor = 0;
    size_t num_extents = 0;
    // True if other threads may see the chunk. Set once; a frozen chunk never
    // changes.
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
  // The first key of the chunk is repeated here, as a lookup compares with many
  // first keys. It points into the chunk, which never moves on the heap.
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

  // Returns the chunk for modification, after replacing it by a copy if it is
  // shared. If its keys change, its Entry must be rebuilt.
  Chunk* Mutable(size_t chunk);
  // Replaces the chunks of [first, last) by new ones, which have `buckets` in
  // place of that range.
  // total: number of buckets of the new chunks, before small ones are joined.
  void RebuildChunks(Position first, Position last,
                     const std::vector<DeltaBucket>& buckets, size_t total);
  // Calls fn(chunk, first, last) for each chunk that has buckets of [first,
  // last), until it returns false.
  template <typename Fn>
  void ForEachChunk(Position first, Position last, Fn fn) const;
  // Returns the first bucket at or after `from` for which is_wanted(state)
  // holds, among the chunks for which may_have(chunk) holds; End() if there is
  // none.
  template <typename MayHave, typename IsWanted>
  Position FindNext(Position from, MayHave may_have, IsWanted is_wanted) const;
  // Returns the last such bucket at or before `from`.
  template <typename MayHave, typename IsWanted>
  Position FindPrev(Position from, MayHave may_have, IsWanted is_wanted) const;

  std::vector<Entry> chunks_;
  size_t size_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
