// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "db/address_map/blob_file_slot_table.h"
#include "rocksdb/slice.h"
#include "rocksdb/types.h"
#include "util/hash.h"

namespace ROCKSDB_NAMESPACE {

// 96 bits of a seeded hash of a user key, which identify the key in the map.
// Each column family has a random seed, so that keys cannot be chosen to
// collide.
struct MapKeyHash {
  uint64_t hi = 0;
  uint32_t lo = 0;

  static MapKeyHash Of(const Slice& user_key, uint64_t seed) {
    uint64_t high = 0;
    uint64_t low = 0;
    Hash2x64(user_key.data(), user_key.size(), seed, &high, &low);
    return MapKeyHash{high, static_cast<uint32_t>(low)};
  }
  bool operator==(const MapKeyHash& o) const {
    return hi == o.hi && lo == o.lo;
  }
  bool operator<(const MapKeyHash& o) const {
    return hi != o.hi ? hi < o.hi : lo < o.lo;
  }
};

// The name of a separated value. The names of one key are ordered by sequence
// number, then by birth. A birth is a file number, so of two values with the
// same sequence number the later one has the higher birth.
//
// A newer value of a key can have a smaller sequence number than an entry that
// it has replaced: ingested values and values at the bottom of the tree have
// the number zero, and a TimedPut gets a number of the past. So a removal that
// comes later than the commit of the entry which hides the removed ones also
// compares births, see MapTransaction::born_before().
struct MapName {
  MapKeyHash key;
  SequenceNumber seq = 0;
  uint64_t birth = 0;

  bool operator==(const MapName& o) const {
    return key == o.key && seq == o.seq && birth == o.birth;
  }
};

// Every birth is smaller.
constexpr uint64_t kMaxBirth = UINT64_MAX;

struct MapNameLess {
  bool operator()(const MapName& a, const MapName& b) const {
    if (!(a.key == b.key)) {
      return a.key < b.key;
    }
    return a.seq != b.seq ? a.seq < b.seq : a.birth < b.birth;
  }
};

struct MapAddress {
  uint32_t slot = BlobFileSlotTable::kLostSlot;  // in the BlobFileSlotTable
  uint32_t offset = 0;                           // bytes, start of the record
  uint32_t size = 0;                             // bytes, the whole record

  bool operator==(const MapAddress& o) const {
    return slot == o.slot && offset == o.offset && size == o.size;
  }
};

enum class MapMode : uint8_t {
  kDirect = 0,      // the newest direct entry of its key
  kVersioned = 1,   // found only by its whole name
  kSuperseded = 2,  // an older direct entry; a newer one is not committed yet
};

}  // namespace ROCKSDB_NAMESPACE
