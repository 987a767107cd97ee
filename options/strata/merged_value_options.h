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
struct ImmutableCFOptions;
struct MutableCFOptions;

// How enable_merged_value_cache appears in OPTIONS files and option strings.
// The options object is ImmutableCFOptions.
struct MergedValueOptions {
  static const char* kName() { return "MergedValueOptions"; }
  static const std::unordered_map<std::string, OptionTypeInfo>* TypeInfo();
};

// The same for merged_value_cache_size, and MutableCFOptions.
struct MergedValueSizeOption {
  static const char* kName() { return "MergedValueSizeOption"; }
  static const std::unordered_map<std::string, OptionTypeInfo>* TypeInfo();
};

// May a DB have a column family with these options? The status says which
// option is at fault and why. OK without the cache.
Status ValidateMergedValueOptions(const DBOptions& db_options,
                                  const ColumnFamilyOptions& cf_options);

// NotSupported if a column family asks for the cache: for secondary and
// follower instances, and for transactions whose writes become visible later
// than they are made.
Status RefuseMergedValueCacheOfSecondary(
    const std::vector<ColumnFamilyDescriptor>& column_families);
Status RefuseMergedValueCacheOfTransactions(
    const std::vector<ColumnFamilyDescriptor>& column_families);

// May a compaction of this column family change values?
bool MayFilterChangeValues(const ImmutableCFOptions& options);

// merged_value_cache_size, or what its default is for these options.
size_t MergedValueCacheSize(const MutableCFOptions& options);

#ifndef NDEBUG
// For test suites: gives column families the cache whose options allow it, if
// the environment has STRATA_FORCE_MERGED_VALUES, which is its size in bytes.
// Also where it would be refused otherwise than by options: secondary instances
// and write-prepared transactions.
void ForceMergedValueCacheForTests(const DBOptions& db_options,
                                   ColumnFamilyOptions* cf_options);
#endif  // !NDEBUG

// Nothing without the cache.
void DumpMergedValueOptions(Logger* log, const ColumnFamilyOptions& options);

// Nothing at the default.
void DumpMergedValueSize(Logger* log, const MutableCFOptions& options);

}  // namespace ROCKSDB_NAMESPACE
