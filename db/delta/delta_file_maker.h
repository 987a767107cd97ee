//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "db/delta/delta_version.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class VersionSet;
struct ImmutableCFOptions;

// Makes the files of a column family's DeltaVersions. When the last one that
// has a file is gone the file is on the VersionSet's list of obsolete ones; so
// are files of edits that were given up.
//
// The DB mutex must be held, or nobody else know the VersionSet yet, when the
// last reference to such a file is dropped. The column family need not exist
// any more.
//
// version_set and cfd may be nullptr, in tests: nothing becomes of files then.
DeltaVersion::FileMaker MakeDeltaFiles(VersionSet* version_set,
                                       const ImmutableCFOptions* ioptions,
                                       const ColumnFamilyData* cfd);

}  // namespace ROCKSDB_NAMESPACE
