//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_edit.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

// The functions of this file make edits, and parts of edits, for tests.

using DeltaKind = DeltaFileDescription::Kind;
using DeltaTier = DeltaFileDescription::Tier;

// Returns a valid file. Each state accepts it if its number and epochs fit.
inline DeltaFileDescription MakeDeltaFile(uint64_t number, DeltaKind kind,
                                          DeltaTier tier,
                                          uint64_t first_epoch = 0,
                                          uint64_t last_epoch = 0,
                                          std::string smallest = "a",
                                          std::string largest = "z") {
  DeltaFileDescription file;
  file.number = number;
  file.size = 1000 + number;
  file.kind = kind;
  file.tier = tier;
  file.first_epoch = first_epoch;
  file.last_epoch = last_epoch == 0 ? first_epoch : last_epoch;
  file.smallest = std::move(smallest);
  file.largest = std::move(largest);
  file.smallest_seq = 10 * number;
  file.largest_seq = 10 * number + 9;
  file.num_entries = 10;
  file.raw_bytes = 100;
  return file;
}

inline std::string RandomDeltaKey(Random* rnd) {
  // Short keys are often equal, or prefixes of each other.
  std::string key = rnd->RandomString(1 + rnd->Uniform(4));
  return rnd->OneIn(20) ? rnd->RandomBinaryString(rnd->Uniform(300)) + "x"
                        : key;
}

// Returns a file that is valid by itself; a state need not accept it.
inline DeltaFileDescription RandomDeltaFile(Random* rnd) {
  DeltaFileDescription file;
  const auto number = [rnd] {
    return rnd->OneIn(10) ? (uint64_t{1} << 62) - 1 - rnd->Uniform(100)
                          : 1 + rnd->Skewed(20);
  };
  const auto count = [rnd] {
    return rnd->OneIn(10) ? (uint64_t{1} << 56) - 1 : rnd->Skewed(20);
  };
  file.number = number();
  file.path_id = rnd->Uniform(4);
  file.size = 1 + rnd->Skewed(20);
  file.kind = rnd->OneIn(2) ? DeltaKind::kOperands : DeltaKind::kAnchors;
  file.tier = static_cast<DeltaTier>(rnd->Uniform(3));
  if (file.tier != DeltaTier::kSorted) {
    file.first_epoch = file.last_epoch = number();
    if (file.tier == DeltaTier::kMerged) {
      file.last_epoch = std::max(file.last_epoch, number());
    }
  }
  file.smallest = RandomDeltaKey(rnd);
  file.largest = RandomDeltaKey(rnd);
  file.smallest_seq = rnd->Skewed(20);
  file.largest_seq = file.smallest_seq + rnd->Skewed(20);
  file.num_entries = 1 + rnd->Skewed(20);
  file.raw_bytes = count();
  if (file.kind == DeltaKind::kAnchors) {
    file.num_range_anchors = rnd->Uniform(3);
    if (file.tier == DeltaTier::kFlushed && rnd->OneIn(2)) {
      file.has_global_seq = true;
      file.smallest_seq = file.largest_seq;
    }
  }
  if (rnd->OneIn(2)) {
    file.unique_id = {{rnd->Next64(), 1 + rnd->Next64() / 2}};
  }
  if (rnd->OneIn(2)) {
    file.file_checksum = rnd->RandomBinaryString(4);
    file.file_checksum_func_name = "FileChecksumCrc32c";
  }
  return file;
}

inline DeltaBucketState RandomDeltaBucketState(Random* rnd) {
  DeltaBucketState state;
  state.floor = rnd->Skewed(20);
  if (rnd->OneIn(2)) {
    state.extent_number = 1 + rnd->Skewed(20);
    state.extent_bytes = rnd->Skewed(20);
  }
  if (rnd->OneIn(4)) {
    state.anchors_number = 1 + rnd->Skewed(20);
  }
  return state;
}

inline std::vector<DeltaBucket> RandomDeltaBuckets(std::string begin,
                                                   Random* rnd) {
  std::vector<DeltaBucket> buckets;
  buckets.push_back({std::move(begin), RandomDeltaBucketState(rnd)});
  for (int n = rnd->Uniform(5); n > 0; --n) {
    buckets.push_back({RandomDeltaKey(rnd), RandomDeltaBucketState(rnd)});
  }
  return buckets;
}

inline DeltaEdit::KeyRange RandomDeltaRange(Random* rnd) {
  DeltaEdit::KeyRange range;
  if (!rnd->OneIn(3)) {
    range.begin = RandomDeltaKey(rnd);
  }
  if (!rnd->OneIn(3)) {
    range.end = range.begin + "x";
  }
  return range;
}

// Returns an edit that is valid by itself; a state need not accept it.
inline DeltaEdit RandomDeltaEdit(Random* rnd) {
  DeltaEdit edit;
  for (int n = rnd->Uniform(4); n > 0; --n) {
    edit.AddFile(RandomDeltaFile(rnd));
  }
  if (rnd->OneIn(4)) {
    DeltaEdit::SnapshotPiece piece;
    piece.index = rnd->Uniform(1000);
    piece.is_last = rnd->OneIn(2);
    if (rnd->OneIn(2)) {
      piece.buckets =
          RandomDeltaBuckets(rnd->OneIn(2) ? "" : RandomDeltaKey(rnd), rnd);
    }
    edit.SetSnapshotPiece(std::move(piece));
    return edit;
  }
  if (rnd->OneIn(3)) {
    edit.SetMergeRecent({1 + rnd->Skewed(30), 1 + rnd->Uniform(10)});
  }
  for (int n = rnd->Uniform(3); n > 0; --n) {
    DeltaEdit::ReplaceBuckets replace;
    replace.range = RandomDeltaRange(rnd);
    replace.buckets = RandomDeltaBuckets(replace.range.begin, rnd);
    edit.AddReplaceBuckets(std::move(replace));
  }
  for (int n = rnd->Uniform(3); n > 0; --n) {
    edit.AddRaiseFloors({RandomDeltaRange(rnd), 1 + rnd->Skewed(30)});
  }
  if (rnd->OneIn(4) || edit.Empty()) {
    edit.SetDropUnusedBuckets();
  }
  return edit;
}

}  // namespace ROCKSDB_NAMESPACE
