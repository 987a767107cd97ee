//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

struct ImmutableCFOptions;
struct MutableCFOptions;

// Returns an error if a DB cannot have a column family with these options; the
// message names the option and the reason. Returns OK without the cache.
Status ValidateMergedValueOptions(const DBOptions& db_options,
                                  const ColumnFamilyOptions& cf_options);

// For secondary and follower instances. Returns NotSupported if a column family
// enables the cache.
Status RefuseMergedValueCacheOfSecondary(
    const std::vector<ColumnFamilyDescriptor>& column_families);
// For write-prepared and write-unprepared transactions, whose writes become
// visible later than they are made. Returns NotSupported if a column family
// enables the cache.
Status RefuseMergedValueCacheOfTransactions(
    const std::vector<ColumnFamilyDescriptor>& column_families);

// Returns true if a compaction filter of this column family may change values.
bool MayFilterChangeValues(const ImmutableCFOptions& options);

// Returns merged_value_cache_size in bytes, with its default resolved for these
// options.
size_t MergedValueCacheSize(const MutableCFOptions& options);

#ifndef NDEBUG
// For running upstream's tests with the cache. Enables it for the column family
// if the environment variable STRATA_FORCE_MERGED_VALUES is set (its value is
// the size in bytes) and the options allow it. Ignores refusals that do not
// depend on the options (secondary instances, write-prepared transactions).
void ForceMergedValueCacheForTests(const DBOptions& db_options,
                                   ColumnFamilyOptions* cf_options);
#endif  // !NDEBUG

}  // namespace ROCKSDB_NAMESPACE
