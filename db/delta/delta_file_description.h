//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/types.h"
#include "table/unique_id_impl.h"

namespace ROCKSDB_NAMESPACE {

class DeltaFileReader;

// What the MANIFEST says of a delta file: see docs/formats.md.
//
// Operands and anchors lie in files of their own: a reader asks for anchors
// only of keys of which a filter says that there may be operands, and a flush
// leaves anchors only for such keys; in one filter, anchors would breed
// anchors.
struct DeltaFileDescription {
  enum class Kind : uint8_t {
    kOperands = 1,  // merge operands with their sequence numbers
    kAnchors = 2,  // (key, seq) and (range, seq): operands up to seq are hidden
  };
  // Which runs a file may still be merged with.
  enum class Tier : uint8_t {
    kFlushed = 0,  // by one flush, recovery or ingestion
    kMerged = 1,   // several of the former; only buckets take it in
    kSorted = 2,   // extents that buckets name
  };

  uint64_t number = 0;
  uint32_t path_id = 0;
  uint64_t size = 0;  // of the file
  Kind kind = Kind::kOperands;
  Tier tier = Tier::kFlushed;

  // The flushes that it comes from. An epoch is the number of the SST file that
  // a flush reserves when it picks its memtables, or a number taken in the same
  // way under the mutex. Of kSorted: 0, as the buckets have floors.
  uint64_t first_epoch = 0;
  uint64_t last_epoch = 0;

  // User keys. Of a file with range anchors `largest` may be the end of a
  // range, which is not in it.
  std::string smallest;
  std::string largest;
  SequenceNumber smallest_seq = 0;
  SequenceNumber largest_seq = 0;
  // Entries, point anchors or operands; and fragments of range anchors.
  uint64_t num_entries = 0;
  uint64_t num_range_anchors = 0;
  // Of keys and operands before compression.
  uint64_t raw_bytes = 0;

  // All entries have largest_seq, whatever the file says: the anchors of an
  // ingested file, written before its sequence number was known.
  bool has_global_seq = false;

  UniqueId64x2 unique_id = kNullUniqueId64x2;
  std::string file_checksum;
  std::string file_checksum_func_name;

  // Of a file that a job has just written: the reader that it has checked it
  // with, for the DeltaFileMeta that is made of this or of one of its copies,
  // the first one. Not in the MANIFEST, and nothing to be equal in.
  struct Opened {
    std::shared_ptr<DeltaFileReader> reader;
  };
  std::shared_ptr<Opened> opened;

  bool operator==(const DeltaFileDescription& other) const;
  bool operator!=(const DeltaFileDescription& other) const {
    return !(*this == other);
  }
  // For LOG lines and messages.
  std::string ToString() const;
};

}  // namespace ROCKSDB_NAMESPACE
