//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class Logger;
struct ImmutableCFOptions;
struct MutableCFOptions;

// Returns an error if a DB cannot have a column family with these options; the
// message names the option and the reason. Returns OK without the map.
Status ValidateAddressMapOptions(const DBOptions& db_options,
                                 const ColumnFamilyOptions& cf_options);

// Like ValidateAddressMapOptions(), for a column family whose map has values
// already, whether or not its options enable the map. With invalid options such
// values would be lost, or deleted ones would reappear.
Status ValidateOptionsOfMappedValues(const DBOptions& db_options,
                                     const ColumnFamilyOptions& cf_options);

// Returns true if compactions collect the garbage of blob files because of
// enable_blob_garbage_collection. With the map they do not: jobs of its own
// keep all blob files within blob_gc_space_amp_limit, those that were written
// before the map was enabled, too.
bool CompactionsCollectBlobGarbage(const ImmutableCFOptions& ioptions,
                                   const MutableCFOptions& options);

// Writes to the LOG what stands in for options of RocksDB that have no effect
// with the map.
void ReportOptionsWithoutEffect(Logger* log, const std::string& cf_name,
                                const MutableCFOptions& options);

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
