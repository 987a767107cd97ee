//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#ifdef GFLAGS

#include <string>
#include <unordered_map>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The flags of db_stress that have the names of Strata's options (but see
// db_stress_path_flags.h), and --max_background_jobs.

// Sets the options whose flags were given, and the flags that were not given to
// the values of their options: with --options_file, these are those of the
// file.
void ApplyStressOptionFlags(Options* options);
void ApplyStressOptionFlags(ReadOptions* options);

// Returns true if a write that could not be written to the WAL may be there
// after a crash, because a buffer has it.
bool MayFindFailedWrites();

// Returns true if an optimistic transaction may end with this status although
// no other write has changed its keys: a range deletion into which an iterator
// has converted tombstones (min_tombstones_for_range_conversion) has the
// sequence number of the iterator, and so is a newer change of these keys.
bool MayConflictAlone(const Status& s);

// Adapts the options that SetOptions() tries to each enabled feature: removes
// values that it would refuse, and adds values of the feature's own options.
void AdaptOptionsToFeatures(
    std::unordered_map<std::string, std::vector<std::string>>* options_table);

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
