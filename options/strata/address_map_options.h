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

// How enable_blob_address_map and enable_lsm_bypass appear in OPTIONS files and
// option strings: as a set of their own beside RocksDB's, which writes nothing
// for an option at its default. So the file of a DB without the map stays what
// it was to the byte, and RocksDB can load it. The options object is
// ImmutableCFOptions.
struct AddressMapOptions {
  static const char* kName() { return "AddressMapOptions"; }
  static const std::unordered_map<std::string, OptionTypeInfo>* TypeInfo();
};

// The same for save_blob_address_map and blob_gc_space_amp_limit. The options
// object is MutableCFOptions.
struct BlobGcOptions {
  static const char* kName() { return "BlobGcOptions"; }
  static const std::unordered_map<std::string, OptionTypeInfo>* TypeInfo();
};

// May a DB have a column family with these options? The status says which
// option is at fault and why. OK without the map.
Status ValidateAddressMapOptions(const DBOptions& db_options,
                                 const ColumnFamilyOptions& cf_options);

// The same for a column family that has values in a map from before, whether or
// not its options ask for one: they would be lost, or come back.
Status ValidateOptionsOfMappedValues(const DBOptions& db_options,
                                     const ColumnFamilyOptions& cf_options);

// NotSupported if a column family asks for the map: for secondary and follower
// instances.
Status ValidateAddressMapOptionsOfSecondary(
    const std::vector<ColumnFamilyDescriptor>& column_families);

#ifndef NDEBUG
// For runs of tests that know nothing of the map: gives the column family one
// if the environment has STRATA_FORCE_ADDRESS_MAP, which is the min_blob_size,
// and the options allow it. Leaves options with blob files alone. With
// STRATA_FORCE_BLOB_FILES it gives the same column families blob files and no
// map, to tell what a test says of blob files from what it says of the map.
void ForceAddressMapForTests(const DBOptions& db_options,
                             ColumnFamilyOptions* cf_options);
#endif  // !NDEBUG

// Nothing without the map.
void DumpAddressMapOptions(Logger* log, const ColumnFamilyOptions& options);

// Nothing at the default.
void DumpBlobGcOptions(Logger* log, const MutableCFOptions& options);

}  // namespace ROCKSDB_NAMESPACE
