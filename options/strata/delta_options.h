//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

struct ImmutableCFOptions;
struct MutableCFOptions;

// Returns an error if a DB cannot have a column family with these options; the
// message names the option and the reason. Returns OK without delta separation.
Status ValidateDeltaOptions(const DBOptions& db_options,
                            const ColumnFamilyOptions& cf_options);

// Like ValidateDeltaOptions(), for a column family that has delta files
// already, whether or not its options enable delta separation. With invalid
// options, operands would be lost, or deleted ones would reappear.
Status ValidateOptionsOfDeltas(const DBOptions& db_options,
                               const ColumnFamilyOptions& cf_options);

// For secondary and follower instances. Returns NotSupported if a column family
// enables delta separation.
Status RefuseDeltaSeparationOfSecondary(
    const std::vector<ColumnFamilyDescriptor>& column_families);
// For write-prepared and write-unprepared transactions, whose writes become
// visible later than they are made. Returns NotSupported if a column family
// enables delta separation.
Status RefuseDeltaSeparationOfTransactions(
    const std::vector<ColumnFamilyDescriptor>& column_families);

// Returns the error for such transactions if `column_family` has delta files.
Status DeltasOfTransactions(const std::string& column_family);
// Returns the error for a comparator with timestamps if there are delta files.
Status DeltasOfTimestamps();

// Returns delta_cache_size in bytes, with its default resolved for these
// options.
size_t DeltaCacheSize(const ImmutableCFOptions& ioptions,
                      const MutableCFOptions& options);

#ifndef NDEBUG
// For running upstream's tests with delta separation. Enables it for the column
// family if the environment variable STRATA_FORCE_DELTA_SEPARATION is set (its
// value is the delta_bucket_size, or 0 for the default) and the options allow
// it.
void ForceDeltaSeparationForTests(const DBOptions& db_options,
                                  ColumnFamilyOptions* cf_options);
#endif  // !NDEBUG

}  // namespace ROCKSDB_NAMESPACE
