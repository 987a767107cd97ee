//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "options/strata/feature_set.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class VersionStorageInfo;

// Returns true if RocksDB 11.8.1 refuses a MANIFEST with the records of this
// state of a column family, since it could not read the data correctly: the
// state has delta files, blob files on another path than the first one or with
// a record index, or SST files with mapped entries. docs/formats.md describes
// the records.
//
// A column family without such a state adds nothing to a new MANIFEST that
// RocksDB refuses.
bool IsRefusedByRocksDB(const VersionStorageInfo& storage);

// Returns the features that have made such a state; none if RocksDB does not
// refuse it.
FeatureSet FeaturesRefusedByRocksDB(const VersionStorageInfo& storage);

}  // namespace ROCKSDB_NAMESPACE
