//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// A place between two records of a WAL, with the state that its log::Writer has
// there. The writer can go back to it: log::Writer::CutBack().
struct WalPosition {
  // Offset in the WAL, in bytes.
  uint64_t offset = 0;
  // Offset in the current block, in bytes.
  size_t block_offset = 0;
  SequenceNumber last_seqno = 0;
  // Number of column families whose timestamp size the WAL has.
  size_t num_timestamp_sizes = 0;
};

// The records that a write group has added to a WAL.
struct WalExtent {
  uint64_t wal_number = 0;
  WalPosition begin;
  // Offset in the WAL, in bytes.
  uint64_t end = 0;
};

}  // namespace ROCKSDB_NAMESPACE
