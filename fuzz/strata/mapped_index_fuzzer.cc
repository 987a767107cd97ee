//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Decodes arbitrary bytes as what stands for a separated value whose address is
// in the map: the index in an SST entry, its form in memory, the name of a
// record, and the statistics of a file's entries in the MANIFEST.
//
// The promise: an index is decoded only from its one encoding, by itself and as
// a BlobIndex. A bound index has the sequence number and is decoded like the
// index in it. A name has the parts that it was made of. Statistics are decoded
// only if they are possible for the file, and are the same after encoding and
// decoding them again.

#include <algorithm>
#include <cstdint>
#include <string>

#include "db/address_map/bound_blob_index.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/address_map/mapped_entry_stats.h"
#include "db/address_map/mapped_record_name.h"
#include "db/blob/blob_index.h"
#include "db/dbformat.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;

std::string Encode(const MappedBlobIndex& index) {
  std::string encoded;
  index.EncodeTo(&encoded);
  return encoded;
}

void FuzzIndex(FuzzInput* input) {
  std::string value = input->String(16);
  if (!value.empty() && input->Bool()) {
    value[0] = static_cast<char>(0x10 + input->Byte() % 4);
  }
  const SequenceNumber sequence = input->Number();

  MappedBlobIndex index;
  const Status s = index.DecodeFrom(value);
  Require(s.ok() || s.IsCorruption());
  if (s.ok()) {
    Require(MappedBlobIndex::IsMapped(value));
    Require(MappedBlobIndex::IsDirect(value) ==
            (index.mode == MappedBlobIndex::Mode::kDirect));
    Require(Encode(index) == value);
    Require(!index.DebugString().empty());
  }

  char buffer[BoundBlobIndex::kMaxSize];
  const Slice bound(buffer, BoundBlobIndex::Encode(sequence, value, buffer));
  if (value.empty()) {
    // BlobIndex decodes no empty value.
    Require(!BoundBlobIndex::IsBound(bound));
    return;
  }

  // BlobIndex decodes indices of RocksDB, too.
  BlobIndex any_index;
  const Status any = any_index.DecodeFrom(value);
  if (MappedBlobIndex::IsMapped(value)) {
    Require(any.ok() == s.ok());
    Require(any_index.IsMapped());
    if (any.ok()) {
      Require(Encode(any_index.mapped()) == value);
    }
  } else {
    Require(!any.ok() || !any_index.IsMapped());
  }

  Require(BoundBlobIndex::IsBound(bound));
  BlobIndex bound_index;
  const Status decoded = BoundBlobIndex::Decode(bound, &bound_index);
  if (MappedBlobIndex::IsMapped(value)) {
    Require(decoded.ok() == s.ok());
    if (decoded.ok()) {
      Require(bound_index.sequence() == sequence);
      Require(Encode(bound_index.mapped()) == value);
    }
  }
  // No other decoder takes a bound index for something else.
  Require(!MappedBlobIndex::IsMapped(bound));
  BlobIndex not_bound;
  Require(!not_bound.DecodeFrom(bound).ok());
}

void FuzzName(FuzzInput* input) {
  const std::string key = input->String(40);
  const SequenceNumber seq = input->Number();
  const uint64_t birth = input->Number();
  std::string name;
  MappedRecordName::Encode(key, seq, birth, &name);
  Require(MappedRecordName::IsName(name));
  Require(MappedRecordName::UserKey(name) == Slice(key));
  Require(MappedRecordName::Seq(name) == seq);
  Require(MappedRecordName::Birth(name) == birth);

  const std::string bytes = input->Rest();
  if (MappedRecordName::IsName(bytes)) {
    std::string again;
    MappedRecordName::Encode(MappedRecordName::UserKey(bytes),
                             MappedRecordName::Seq(bytes),
                             MappedRecordName::Birth(bytes), &again);
    Require(again == bytes);
  } else {
    Require(bytes.size() < 2 * sizeof(uint64_t));
  }
}

void FuzzStats(FuzzInput* input) {
  const SequenceNumber largest = input->Number() & kMaxSequenceNumber;
  std::string encoded;
  if (input->Bool()) {
    encoded = input->Rest();
  } else {
    PutVarint64(&encoded, 0);  // the flags
    for (int n = input->Byte() % 12; n > 0; --n) {
      PutVarint64(&encoded, input->Number());
    }
  }
  MappedEntryStats stats;
  stats.direct = 5;
  const MappedEntryStats before = stats;
  const Status s = stats.DecodeFrom(encoded, largest);
  if (!s.ok()) {
    Require(s.IsCorruption());
    Require(stats == before);
    return;
  }
  Require(stats.Any());
  Require(std::max({stats.largest_versioned, stats.largest_unmapped,
                    stats.largest_range_del, stats.largest_reclaimable}) <=
          largest);
  Require(stats.versioned > 0 || stats.largest_versioned == 0);
  Require(stats.unmapped > 0 || stats.largest_unmapped == 0);
  Require(stats.range_dels > 0 || stats.largest_range_del == 0);
  Require(stats.PointCeiling(largest) <= stats.LsmCeiling(largest));
  Require(stats.LsmCeiling(largest) <= largest + 1);
  std::string again;
  stats.EncodeTo(&again);
  MappedEntryStats same;
  Require(same.DecodeFrom(again, largest).ok());
  Require(same == stats);
  Require(same.DebugString() == stats.DebugString());
}

void FuzzMappedIndex(FuzzInput* input) {
  switch (input->Byte() % 3) {
    case 0:
      FuzzIndex(input);
      break;
    case 1:
      FuzzName(input);
      break;
    default:
      FuzzStats(input);
      break;
  }
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(mapped_index, ROCKSDB_NAMESPACE::FuzzMappedIndex)
