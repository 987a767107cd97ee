//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Finds out whether a WAL in the directory has a record of a write. A record
// that is damaged counts. What WALs say about themselves, for example their
// compression, does not, nor does a WAL that is deleted meanwhile.
// min_number: WALs with smaller numbers do not count. Obsolete ones may stay
//     with their records, for example to be recycled, so it should be
//     ManifestFeatures::MinWalNumber().
// found: on success, whether there is one. On failure it is unchanged.
Status FindWalRecord(FileSystem* fs, const std::string& directory,
                     uint64_t min_number, bool* found);

}  // namespace ROCKSDB_NAMESPACE
