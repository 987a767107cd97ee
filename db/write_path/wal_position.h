//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class WriteBatch;

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
  // The write has failed, and a part of the group may stay in the WAL.
  bool stays = false;
  // The WAL was synced behind the group.
  bool is_synced = false;
  // What DBImpl::cached_recoverable_state_ was before the group; nullptr if the
  // group has not replaced it.
  std::unique_ptr<WriteBatch> replaced_state;
};

}  // namespace ROCKSDB_NAMESPACE
