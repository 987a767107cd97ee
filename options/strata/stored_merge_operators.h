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

// The merge operators that the latest OPTIONS file of a database names, by
// column family. The loader of OPTIONS files drops the name of an operator that
// it cannot make; this does not.
class StoredMergeOperators {
 public:
  // Reads the names. Without an OPTIONS file there are none, and found() is
  // false.
  Status Load(const ConfigOptions& config_options, const std::string& dbname);

  // Whether an OPTIONS file was there.
  bool found() const { return found_; }

  // The name of the operator of the column family, or "" if it has none.
  std::string NameOf(const std::string& column_family) const;

  // The operator of the column family: one of `known` with its name, or else
  // what the registry makes of its text, or else an UnknownMergeOperator with
  // its name. nullptr if the column family has none.
  // known: may contain nullptr.
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

// For an open that is read-only: gives an operator that merges nothing to each
// column family with enable_delta_separation, enable_merged_value_cache or
// enable_blob_address_map whose options have none, so that all that needs no
// merge can be read. (Without an operator the read of a merge operand above a
// value ends the process, as in RocksDB.)
void UseUnknownMergeOperators(Env* env, const std::string& dbname,
                              std::vector<ColumnFamilyDescriptor>* families);

}  // namespace ROCKSDB_NAMESPACE
