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

// Determines the merge operators with which ldb opens a database: those in its
// OPTIONS file, regardless of --try_load_options. A command that merged
// operands with another operator would destroy the values of their keys.
class LdbMergeOperators {
 public:
  // Sets the operator of each column family; an UnknownMergeOperator if ldb
  // cannot create it. A column family without operator in the OPTIONS file gets
  // StringAppendOperator, as in RocksDB's ldb, but only if its results cannot
  // overwrite existing data: in a command that only reads, or in a new
  // database.
  //
  // reads_only: whether the command does not change the database.
  // options: options of the only column family if *families is empty.
  // Returns the names of the operators that ldb cannot create, with their
  // column families, for Refusal(); "" if there are none.
  static std::string Apply(const ConfigOptions& config_options,
                           const std::string& db_path, bool reads_only,
                           Options* options,
                           std::vector<ColumnFamilyDescriptor>* families);

  // Returns the error of a command that writes, for such operators.
  // unknown: result of Apply().
  static LDBCommandExecuteResult Refusal(const std::string& unknown);
};

// Implements `ldb repair`: RepairDB() with the database's own options.
// families: from the OPTIONS file; empty if only the flags are to be used.
Status RepairWithOwnOptions(const std::string& db_path, const Options& options,
                            const std::vector<ColumnFamilyDescriptor>& families,
                            bool needs_options_file);

}  // namespace ROCKSDB_NAMESPACE
