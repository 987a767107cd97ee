//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "db/address_map/mapped_entry_stats.h"

namespace ROCKSDB_NAMESPACE {

// The metadata of an SST file about separated values, except for the oldest
// blob file. If the file moves to another level, all of it is copied.
struct BlobReferenceInfo {
  // Bit i is set if the file may refer to blobs in cf_paths[i]; 0 stands for
  // path 0 alone. Undefined if the file has no oldest blob file. Read it by
  // PathLayout::BlobPathMask().
  uint8_t path_mask = 0;

  MappedEntryStats mapped;
};

}  // namespace ROCKSDB_NAMESPACE
