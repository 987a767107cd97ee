//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The merge operators of the column families as named in the latest OPTIONS
// file of a database. The loader of OPTIONS files drops the name of an operator
// that it cannot create; this class keeps it.
class StoredMergeOperators {
 public:
  // Reads the names. Returns OK if there is no OPTIONS file; found() is then
  // false.
  Status Load(const ConfigOptions& config_options, const std::string& dbname);

  // Returns true if Load() found an OPTIONS file.
  bool found() const { return found_; }

  // Returns the name of the column family's operator, or "" if it has none.
  std::string NameOf(const std::string& column_family) const;

  // Returns the operator of the column family: one of `known` with its name, or
  // else the one that the object registry creates from its text, or else an
  // UnknownMergeOperator with its name. nullptr if the column family has none.
  // An operator that lacks one which it contains is none of `known`.
  // known: operators of the program; may contain nullptr.
  std::shared_ptr<MergeOperator> Make(
      const ConfigOptions& config_options, const std::string& column_family,
      const std::vector<std::shared_ptr<MergeOperator>>& known) const;

 private:
  struct Stored {
    std::string name;
    std::string text;
  };

  bool found_ = false;
  std::map<std::string, Stored> operators_;
};

// For read-only opens. Sets an UnknownMergeOperator for each column family with
// enable_delta_separation, enable_merged_value_cache or enable_blob_address_map
// whose options have no merge operator, so that all keys that need no merge can
// be read. (Without an operator, reading a merge operand above a value ends the
// process, as in RocksDB.)
void UseUnknownMergeOperators(Env* env, const std::string& dbname,
                              std::vector<ColumnFamilyDescriptor>* families);

}  // namespace ROCKSDB_NAMESPACE
