//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/options_type.h"

namespace ROCKSDB_NAMESPACE {

class Logger;
struct ImmutableCFOptions;
struct MutableCFOptions;

// Returns the type info of level_sst_path_ids and level_blob_path_ids for
// OPTIONS files and option strings. An empty option is not written.
// offset: offset of the member in its options struct, in bytes.
OptionTypeInfo PathIdsTypeInfo(size_t offset);

// Serializes cf_paths, which RocksDB does not do. They are serialized only with
// an option that names paths by their ids (PathLayout::NamesPaths()), which is
// among the mutable options; hence this object with pointers to both structs.
// Option comparisons ignore cf_paths, because a DB may be moved.
// REQUIRES: both structs outlive the object.
struct CfPathsOption {
  CfPathsOption(ImmutableCFOptions* immutable_options,
                const MutableCFOptions* mutable_options)
      : immutable_cf_options(immutable_options),
        mutable_cf_options(mutable_options) {}

  static const char* kName() { return "CfPathsOption"; }
  static const std::unordered_map<std::string, OptionTypeInfo>* TypeInfo();

  ImmutableCFOptions* const immutable_cf_options;
  const MutableCFOptions* const mutable_cf_options;
};

// Returns an error if a DB, or a read-only or secondary instance, cannot have
// this path layout, this delta_sorted_path_id or these path_prices; the message
// names the option and the reason. Without any of them there is one limit: the
// number of cf_paths.
Status ValidatePathOptions(const DBOptions& db_options,
                           const ColumnFamilyOptions& cf_options);
// Returns the first error among the column families; the message names the
// family.
Status ValidatePathOptions(
    const DBOptions& db_options,
    const std::vector<ColumnFamilyDescriptor>& column_families);

// For followers. Returns NotSupported if a column family has a layout.
Status ValidatePathOptionsOfFollower(
    const std::vector<ColumnFamilyDescriptor>& column_families);

// Writes cf_paths to LOG if an option names them by number.
void DumpPathsOfLayout(Logger* log, const ColumnFamilyOptions& options);

// Writes to the LOG which levels between 0 and base_level have another path
// than the base level. level_compaction_dynamic_level_bytes leaves those levels
// empty, although the user may expect data in their paths.
void ReportSkippedLevels(Logger* log, const std::string& cf_name,
                         const MutableCFOptions& options, int base_level);

}  // namespace ROCKSDB_NAMESPACE
