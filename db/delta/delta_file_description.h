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

// The record of a delta file in the MANIFEST: see docs/formats.md.
//
// Operands and anchors are in separate files. A reader asks for anchors only if
// a filter says that there may be operands of the key, and a flush writes
// anchors only for such keys. With a common filter, anchors would cause more
// anchors.
struct DeltaFileDescription {
  enum class Kind : uint8_t {
    kOperands = 1,  // merge operands with their sequence numbers
    kAnchors = 2,  // (key, seq) and (range, seq): operands up to seq are hidden
  };
  // The runs that a file may still be merged with.
  enum class Tier : uint8_t {
    kFlushed = 0,  // written by one flush, recovery or ingestion
    kMerged = 1,   // merged from flushed files; only buckets take it in
    kSorted = 2,   // extents that buckets name
  };

  uint64_t number = 0;
  uint32_t path_id = 0;
  uint64_t size = 0;  // bytes, of the file
  Kind kind = Kind::kOperands;
  Tier tier = Tier::kFlushed;

  // The range of flushes that the file's entries come from. An epoch is the
  // number of the SST file that a flush reserves when it picks its memtables,
  // or a number allocated in the same way under the mutex. 0 for kSorted, as
  // buckets have floors.
  uint64_t first_epoch = 0;
  uint64_t last_epoch = 0;

  // User keys. In a file with range anchors, `largest` may be the (exclusive)
  // end of a range.
  std::string smallest;
  std::string largest;
  SequenceNumber smallest_seq = 0;
  SequenceNumber largest_seq = 0;
  // Number of operands or point anchors, and of fragments of range anchors.
  uint64_t num_entries = 0;
  uint64_t num_range_anchors = 0;
  // Bytes of keys and operands before compression.
  uint64_t raw_bytes = 0;

  // True if largest_seq is the sequence number of all entries, whatever the
  // file says: for the anchors of an ingested file, which were written before
  // its sequence number was known.
  bool has_global_seq = false;

  UniqueId64x2 unique_id = kNullUniqueId64x2;
  std::string file_checksum;
  std::string file_checksum_func_name;

  // Set for a file that a job has just written: the reader with which the job
  // has checked it. The first DeltaFileMeta that is made of this description or
  // of one of its copies takes the reader. Neither in the MANIFEST nor compared
  // by ==.
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
