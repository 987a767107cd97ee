//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/ldb_cmd_execute_result.h"

namespace ROCKSDB_NAMESPACE {

// The merge operators with which ldb opens a database: those that its OPTIONS
// file names, whatever --try_load_options says. A command that merged operands
// with another one would destroy their keys.
class LdbMergeOperators {
 public:
  // Gives each column family its operator, an UnknownMergeOperator if ldb
  // cannot make it. A column family that has none in the OPTIONS file gets
  // RocksDB's stand-in, StringAppendOperator, only where that cannot be
  // written: in a command that only reads, or in a new database.
  //
  // reads_only: whether the command leaves the database as it is.
  // options: those of the only column family if *families is empty.
  // Returns the names of the operators that ldb cannot make, with their column
  // families, for Refusal(); "" if there are none.
  static std::string Apply(const ConfigOptions& config_options,
                           const std::string& db_path, bool reads_only,
                           Options* options,
                           std::vector<ColumnFamilyDescriptor>* families);

  // What a command that writes says of them.
  static LDBCommandExecuteResult Refusal(const std::string& unknown);
};

// What `ldb repair` does: RepairDB() with the database's own options.
// families: from the OPTIONS file; empty if the flags alone are to tell.
Status RepairWithOwnOptions(const std::string& db_path, const Options& options,
                            const std::vector<ColumnFamilyDescriptor>& families,
                            bool needs_options_file);

}  // namespace ROCKSDB_NAMESPACE
