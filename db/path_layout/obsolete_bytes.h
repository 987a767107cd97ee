//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;

// Returns for each path the bytes of those files of a column family that its
// current Version does not have, but that are still on disk: files of older
// Versions, which iterators and jobs keep alive, blob files to which readers of
// the address map hold on, and files that nothing needs and that are to be
// deleted (DB::DisableFileDeletions()).
//
// Invariant: a file counts once, and a file of the current Version not at all.
//
// A file that a purge has taken from the lists of obsolete files is not
// counted, although it may still be on disk for a while (a *.trash file of an
// SstFileManager). Files that a running job writes are not counted either.
//
// Cost: proportional to the number of files of all Versions.
//
// num_paths: the number of paths of the column family, not 0.
// REQUIRES: DB mutex held
std::vector<uint64_t> ObsoleteBytes(ColumnFamilyData* cfd, size_t num_paths);

}  // namespace ROCKSDB_NAMESPACE
