//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>

#include "db/address_map/mapped_blob_index.h"
#include "db/dbformat.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// Statistics of the entries of an SST file from which readers decide whether
// they must open the file. Stored in FileMetaData and in the MANIFEST.
//
// A *mapped* entry is a separated value whose address is in the address map.
// It is *direct* if the map finds it by the key alone, else *versioned*. Other
// point entries are *unmapped*. Unmapped and versioned entries are non-direct:
// they can be found only through the file.
//
// Invariants:
// 1. If the file has no mapped entry, the statistics are empty (Any() is false)
//    and all entries of the file count as non-direct, as in RocksDB's files.
// 2. Otherwise every point entry and every range tombstone of the file was
//    counted.
struct MappedEntryStats {
  uint64_t direct = 0;
  uint64_t versioned = 0;
  uint64_t unmapped = 0;
  uint64_t range_dels = 0;

  // Largest sequence number of an entry of each kind; 0 if there is none.
  SequenceNumber largest_versioned = 0;
  SequenceNumber largest_unmapped = 0;
  SequenceNumber largest_range_del = 0;

  // The largest sequence number of an entry that a compaction without older
  // snapshots would improve: a versioned entry (it would become direct) or an
  // entry with an older version of its key in the file (that version would be
  // dropped).
  SequenceNumber largest_reclaimable = 0;

  // The argument of SettleReclaimable(). Not stored in the MANIFEST, so after a
  // reopen a file is compacted once more without benefit.
  SequenceNumber settled = 0;

  bool Any() const { return direct + versioned > 0; }

  void Add(ValueType type, SequenceNumber seq, const Slice& value) {
    if (type == kTypeBlobIndex && MappedBlobIndex::IsMapped(value)) {
      if (MappedBlobIndex::IsDirect(value)) {
        ++direct;
      } else {
        ++versioned;
        largest_versioned = std::max(largest_versioned, seq);
        largest_reclaimable = std::max(largest_reclaimable, seq);
      }
    } else {
      ++unmapped;
      largest_unmapped = std::max(largest_unmapped, seq);
    }
  }

  // Called if the entry added last has the same user key as the entry before
  // it, whose sequence number is `newer`.
  void AddOlderVersion(SequenceNumber newer) {
    largest_reclaimable = std::max(largest_reclaimable, newer);
  }

  void AddRangeDel(SequenceNumber seq) {
    ++range_dels;
    largest_range_del = std::max(largest_range_del, seq);
  }

  // Called if the file is the output of a compaction that had all older data as
  // input and kept no entry only for snapshots older than `earliest_snapshot`.
  // So no later compaction can reclaim any entry up to that sequence number.
  // Even a file without mapped entries may have entries that stay: merge
  // operands whose base is no longer in the map, because an entry of an upper
  // level hides it. They stay until that entry comes down.
  // REQUIRES: the column family has an address map.
  void SettleReclaimable(SequenceNumber earliest_snapshot) {
    settled = earliest_snapshot;
    if (largest_reclaimable <= earliest_snapshot) {
      largest_reclaimable = 0;
    }
  }

  // Returns the largest sequence number of a non-direct point entry plus one, 0
  // if there is no such entry. A reader that needs only point entries with at
  // least this sequence number finds none in the file.
  // file_largest: largest sequence number of the file.
  SequenceNumber PointCeiling(SequenceNumber file_largest) const {
    if (!Any()) {
      return file_largest + 1;
    }
    return versioned + unmapped == 0
               ? 0
               : std::max(largest_versioned, largest_unmapped) + 1;
  }

  // Like PointCeiling(), but takes range tombstones into account, too.
  SequenceNumber LsmCeiling(SequenceNumber file_largest) const {
    if (!Any()) {
      return file_largest + 1;
    }
    return std::max(PointCeiling(file_largest),
                    range_dels == 0 ? 0 : largest_range_del + 1);
  }

  // Returns a sequence number such that it is worthwhile to compact a
  // bottommost file again once all snapshots are newer than it; 0 if that is
  // never worthwhile.
  // file_largest: largest sequence number of the file.
  SequenceNumber LargestReclaimable(SequenceNumber file_largest) const {
    if (!Any()) {
      return file_largest <= settled ? 0 : file_largest;
    }
    const SequenceNumber largest =
        std::max({largest_unmapped, largest_range_del, largest_reclaimable});
    return largest <= settled ? 0 : largest;
  }

  // REQUIRES: Any().
  void EncodeTo(std::string* dst) const;
  // Returns Corruption for any input that EncodeTo() does not write for a file
  // whose largest sequence number is `file_largest`.
  Status DecodeFrom(Slice input, SequenceNumber file_largest);

  // Returns an empty string if !Any().
  std::string DebugString() const;

  // Does not compare `settled`.
  bool operator==(const MappedEntryStats& other) const {
    return std::tie(direct, versioned, unmapped, range_dels, largest_versioned,
                    largest_unmapped, largest_range_del, largest_reclaimable) ==
           std::tie(other.direct, other.versioned, other.unmapped,
                    other.range_dels, other.largest_versioned,
                    other.largest_unmapped, other.largest_range_del,
                    other.largest_reclaimable);
  }
};

class VersionEdit;

// Returns NotSupported if the edit adds a file with mapped entries or with
// their values. For secondary and follower instances, which have no map.
Status RefuseMapped(const VersionEdit& edit);

}  // namespace ROCKSDB_NAMESPACE
