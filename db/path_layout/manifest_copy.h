//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "db/path_layout/path_id_map.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Returns the path ids that a copy of a column family has. The result must
// exist until the copy is made.
// column_family: id of the family.
using PathIdsOfFamily = std::function<const PathIdMap&(uint32_t column_family)>;

// Copies a MANIFEST with other path ids to *contents.
//
// Invariant: the copy has the records of the original in their order. A record
// has the same bytes unless it has a path id that changes.
//
// The MANIFEST may be the one that an open DB is appending records to: bytes
// behind the first `size` are not read.
//
// fname: the MANIFEST.
// size: bytes, the end of a record in the MANIFEST.
// is_changed: receives whether the copy differs from the original.
//
// Returns Corruption, naming file and offset, if a record cannot be read or
// `size` is not the end of one. Returns NotSupported if a record that has to
// change is one of a RocksDB version before 7.10: an open for writing replaces
// the MANIFEST.
Status CopyManifest(FileSystem* fs, const std::string& fname, uint64_t size,
                    const PathIdsOfFamily& path_ids, std::string* contents,
                    bool* is_changed);

}  // namespace ROCKSDB_NAMESPACE
