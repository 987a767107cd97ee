//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
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

// How enable_delta_separation and delta_bucket_size appear in OPTIONS files and
// option strings. The options object is ImmutableCFOptions.
struct DeltaOptions {
  static const char* kName() { return "DeltaOptions"; }
  static const std::unordered_map<std::string, OptionTypeInfo>* TypeInfo();
};

// The same for delta_max_buckets, delta_bucket_split_ratio and
// delta_cache_size, and MutableCFOptions.
struct DeltaBucketOptions {
  static const char* kName() { return "DeltaBucketOptions"; }
  static const std::unordered_map<std::string, OptionTypeInfo>* TypeInfo();
};

// May a DB have a column family with these options? The status says which
// option is at fault and why. OK without delta separation, if the other options
// of it are within their ranges.
Status ValidateDeltaOptions(const DBOptions& db_options,
                            const ColumnFamilyOptions& cf_options);

// The same for a column family that has delta files from before, whether or not
// its options ask for them: operands would come back, or be lost.
Status ValidateOptionsOfDeltas(const DBOptions& db_options,
                               const ColumnFamilyOptions& cf_options);

// NotSupported if a column family asks for delta separation: for secondary and
// follower instances, and for transactions whose writes become visible later
// than they are made.
Status RefuseDeltaSeparationOfSecondary(
    const std::vector<ColumnFamilyDescriptor>& column_families);
Status RefuseDeltaSeparationOfTransactions(
    const std::vector<ColumnFamilyDescriptor>& column_families);

// The second one for a column family that has delta files.
Status DeltasOfTransactions(const std::string& column_family);

// delta_cache_size, or what its default is for these options.
size_t DeltaCacheSize(const ImmutableCFOptions& ioptions,
                      const MutableCFOptions& options);

#ifndef NDEBUG
// For test suites: gives column families delta separation whose options allow
// it, if the environment has STRATA_FORCE_DELTA_SEPARATION, which is the
// delta_bucket_size, or 0 for the default.
void ForceDeltaSeparationForTests(const DBOptions& db_options,
                                  ColumnFamilyOptions* cf_options);
#endif  // !NDEBUG

// Nothing without delta separation.
void DumpDeltaOptions(Logger* log, const ColumnFamilyOptions& options);

// Nothing at the defaults.
void DumpDeltaBucketOptions(Logger* log, const MutableCFOptions& options);

}  // namespace ROCKSDB_NAMESPACE
