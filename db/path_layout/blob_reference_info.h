//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "db/address_map/mapped_entry_stats.h"

namespace ROCKSDB_NAMESPACE {

// What the metadata of an SST file says about separated values, beside the
// oldest blob file. A file that moves to another level takes it along as a
// whole.
struct BlobReferenceInfo {
  // Bit i is set if the file may refer to blobs in cf_paths[i]; 0 stands for
  // path 0 alone. Means nothing without an oldest blob file. Use
  // PathLayout::BlobPathMask() to read it.
  uint8_t path_mask = 0;

  MappedEntryStats mapped;
};

}  // namespace ROCKSDB_NAMESPACE
