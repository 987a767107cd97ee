//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Returns an error if a DB cannot have a column family with these options; the
// message names the option and the reason. Returns OK without the map.
Status ValidateAddressMapOptions(const DBOptions& db_options,
                                 const ColumnFamilyOptions& cf_options);

// Like ValidateAddressMapOptions(), for a column family whose map has values
// already, whether or not its options enable the map. With invalid options such
// values would be lost, or deleted ones would reappear.
Status ValidateOptionsOfMappedValues(const DBOptions& db_options,
                                     const ColumnFamilyOptions& cf_options);

// For secondary and follower instances. Returns NotSupported if a column family
// enables the map.
Status ValidateAddressMapOptionsOfSecondary(
    const std::vector<ColumnFamilyDescriptor>& column_families);

#ifndef NDEBUG
// For running upstream's tests with the map. Enables the map for the column
// family if the environment variable STRATA_FORCE_ADDRESS_MAP is set (its value
// is the min_blob_size) and the options allow it. Options with blob files are
// not changed. With STRATA_FORCE_BLOB_FILES the same column families get blob
// files without a map, to distinguish test failures caused by blob files from
// those caused by the map.
void ForceAddressMapForTests(const DBOptions& db_options,
                             ColumnFamilyOptions* cf_options);
#endif  // !NDEBUG

}  // namespace ROCKSDB_NAMESPACE
