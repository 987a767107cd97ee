//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/options_type.h"

namespace ROCKSDB_NAMESPACE {

class Logger;
struct MutableCFOptions;

// Returns an error if a DB cannot have a column family with these options; the
// message names the option and the reason. Without the map only the ranges of
// its options are checked.
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

// Writes the options of the map to the LOG, if it is enabled.
void DumpAddressMapOptions(Logger* log, const ColumnFamilyOptions& options);

// Writes the options of blob garbage collection to the LOG, unless they have
// their defaults.
void DumpBlobGcOptions(Logger* log, const MutableCFOptions& options);

}  // namespace ROCKSDB_NAMESPACE
