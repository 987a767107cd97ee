//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "db/delta/delta_version.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class VersionSet;
struct ImmutableCFOptions;

// Returns a function that makes the files of a column family's DeltaVersions.
// When the last DeltaVersion with a file is destroyed, the file is put on the
// VersionSet's list of obsolete files; the same applies to files of edits that
// were given up.
//
// When the last reference to such a file is dropped, the DB mutex must be held,
// or no other thread may know the VersionSet yet. The column family may be gone
// by then.
//
// version_set and cfd may be nullptr, in tests: then released files are
// ignored.
DeltaVersion::FileMaker MakeDeltaFiles(VersionSet* version_set,
                                       const ImmutableCFOptions* ioptions,
                                       const ColumnFamilyData* cfd);

}  // namespace ROCKSDB_NAMESPACE
