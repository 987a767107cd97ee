//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "db/blob/blob_constants.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Returns true if a version needs the blob file, as some of its values may be
// live.
//
// A MANIFEST keeps the record of a file without live values until it is
// rewritten. No version has such a file, and the file may be deleted.
//
// Meta: BlobFileMetaData, or what VersionBuilder has instead while it applies
// edits.
// oldest_linked: number of the oldest blob file that SST files refer to;
// kInvalidBlobFileNumber: none. An older file has no live values, unless it is
// in an address map: SST files do not refer to the blob files in a map.
template <typename Meta>
bool IsNeededBlobFile(const Meta& meta, uint64_t oldest_linked) {
  const auto& shared = *meta.GetSharedMeta();
  const bool is_mapped = shared.GetIndexBytes() > 0;
  if (!is_mapped && (oldest_linked == kInvalidBlobFileNumber ||
                     shared.GetBlobFileNumber() < oldest_linked)) {
    return false;
  }
  return !meta.GetLinkedSsts().empty() ||
         meta.GetGarbageBlobCount() < shared.GetTotalBlobCount();
}

}  // namespace ROCKSDB_NAMESPACE
