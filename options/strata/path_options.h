//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

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

// How level_sst_path_ids, level_blob_path_ids and, while one of them is set,
// cf_paths appear in OPTIONS files and option strings. They are registered as
// option sets of their own, beside RocksDB's: the order of the lines in an
// OPTIONS file follows from the members of a set, and the file of a DB without
// a layout is to stay what it was to the byte. An option that is empty is not
// written at all, so RocksDB can load that file.

// The set of the two layout options. The options object is MutableCFOptions.
struct PathLayoutOptions {
  static const char* kName() { return "PathLayoutOptions"; }
  static const std::unordered_map<std::string, OptionTypeInfo>* TypeInfo();
};

// The set of cf_paths, which RocksDB does not serialise. The layout decides
// whether they are, hence this object, which is to live where the two live.
// Option comparisons ignore them: a DB may be moved.
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

// May a DB, or a read-only or secondary instance, have this layout? The status
// says which option is at fault and why. OK without a layout.
Status ValidatePathOptions(const DBOptions& db_options,
                           const ColumnFamilyOptions& cf_options);
// The first error among column families, naming the family.
Status ValidatePathOptions(
    const DBOptions& db_options,
    const std::vector<ColumnFamilyDescriptor>& column_families);

// NotSupported for a follower if a column family has a layout.
Status ValidatePathOptionsOfFollower(
    const std::vector<ColumnFamilyDescriptor>& column_families);

// One line for each layout option that is set, none otherwise.
void DumpPathOptions(Logger* log, const MutableCFOptions& options);
void DumpPathOptions(Logger* log, const ColumnFamilyOptions& options);

// level_compaction_dynamic_level_bytes leaves the levels between 0 and
// base_level empty. Says in LOG which of them name another path than the base
// level does, since somebody may expect data there.
void ReportSkippedLevels(Logger* log, const std::string& cf_name,
                         const MutableCFOptions& options, int base_level);

}  // namespace ROCKSDB_NAMESPACE
