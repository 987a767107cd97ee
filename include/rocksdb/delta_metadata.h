//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// The metadata that describes a delta file: see enable_delta_separation in
// rocksdb/strata_options.h.
struct DeltaMetaData {
  enum class Kind : uint8_t {
    kOperands,  // merge operands
    kAnchors,   // notes that hide older operands
  };
  enum class Tier : uint8_t {
    kFlushed,  // operands or anchors of one flush
    kMerged,   // operands or anchors of several flushes
    kSorted,   // operands or anchors of buckets
  };

  uint64_t file_number = 0;
  // The name in its directory.
  std::string relative_filename;
  std::string directory;
  uint64_t size = 0;
  Kind kind = Kind::kOperands;
  Tier tier = Tier::kFlushed;

  // The epochs of the flushes that the file comes from; 0 if the tier is
  // kSorted. A later flush has a larger epoch.
  uint64_t first_epoch = 0;
  uint64_t last_epoch = 0;

  // User keys. With ranges `largestkey` may be the end of one, which is not in
  // it.
  std::string smallestkey;
  std::string largestkey;
  SequenceNumber smallest_seqno = 0;
  SequenceNumber largest_seqno = 0;
  // Entries of keys; and of ranges of keys, which only anchors have.
  uint64_t num_entries = 0;
  uint64_t num_ranges = 0;

  // As in FileStorageInfo.
  std::string file_checksum;
  std::string file_checksum_func_name;
};

}  // namespace ROCKSDB_NAMESPACE
