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

// What an SST file holds, as far as it decides whether a reader must open the
// file. Kept in FileMetaData and in the MANIFEST.
//
// A *mapped* entry is a separated value whose address is in the address map.
// It is *direct* if the map finds it by the key alone, else *versioned*. Other
// point entries are *unmapped*; they and the versioned ones are non-direct:
// only the file knows about them.
//
// Invariants:
// * Without a mapped entry the struct says nothing (Any() is false) and the
//   file counts as wholly non-direct, as a file of RocksDB does.
// * With one, every point entry and every range tombstone of the file was
//   counted.
struct MappedEntryStats {
  uint64_t direct = 0;
  uint64_t versioned = 0;
  uint64_t unmapped = 0;
  uint64_t range_dels = 0;

  // 0 if there are none of the kind.
  SequenceNumber largest_versioned = 0;
  SequenceNumber largest_unmapped = 0;
  SequenceNumber largest_range_del = 0;

  // The largest sequence number that keeps something of a mapped entry which
  // a compaction without older snapshots would not keep: that of a versioned
  // entry (it would become direct) and that of an entry which has an older
  // version of its key in the file (which would be dropped).
  SequenceNumber largest_reclaimable = 0;

  // What SettleReclaimable() was told. Not in the MANIFEST: after a reopen, a
  // file is compacted once more in vain.
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

  // The entry added last has the same user key as the one before, whose
  // sequence number is `newer`.
  void AddOlderVersion(SequenceNumber newer) {
    largest_reclaimable = std::max(largest_reclaimable, newer);
  }

  void AddRangeDel(SequenceNumber seq) {
    ++range_dels;
    largest_range_del = std::max(largest_range_del, seq);
  }

  // The file is the output of a compaction that saw everything below it and
  // kept nothing for snapshots older than `earliest_snapshot` alone: what is
  // still there of entries up to that number, no later compaction can reclaim.
  void SettleReclaimable(SequenceNumber earliest_snapshot) {
    settled = earliest_snapshot;
    if (largest_reclaimable <= earliest_snapshot) {
      largest_reclaimable = 0;
    }
  }

  // One more than the largest sequence number of a non-direct point entry, 0
  // without one: a reader that needs only point entries of at least this
  // number finds none here. `file_largest` is that of the file.
  SequenceNumber PointCeiling(SequenceNumber file_largest) const {
    if (!Any()) {
      return file_largest + 1;
    }
    return versioned + unmapped == 0
               ? 0
               : std::max(largest_versioned, largest_unmapped) + 1;
  }

  // The same with range tombstones.
  SequenceNumber LsmCeiling(SequenceNumber file_largest) const {
    if (!Any()) {
      return file_largest + 1;
    }
    return std::max(PointCeiling(file_largest),
                    range_dels == 0 ? 0 : largest_range_del + 1);
  }

  // The largest sequence number for which it pays to compact a bottommost file
  // again once all snapshots are newer; 0 if it never does.
  SequenceNumber LargestReclaimable(SequenceNumber file_largest) const {
    if (!Any()) {
      return file_largest;
    }
    const SequenceNumber largest =
        std::max({largest_unmapped, largest_range_del, largest_reclaimable});
    return largest <= settled ? 0 : largest;
  }

  // REQUIRES: Any().
  void EncodeTo(std::string* dst) const;
  // Corruption for anything that EncodeTo does not write for a file whose
  // largest sequence number is `file_largest`.
  Status DecodeFrom(Slice input, SequenceNumber file_largest);

  // Empty if !Any().
  std::string DebugString() const;

  // Without `settled`.
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

// NotSupported if the edit adds a file with mapped entries or their values: for
// secondary and follower instances, which have no map.
Status RefuseMapped(const VersionEdit& edit);

}  // namespace ROCKSDB_NAMESPACE
