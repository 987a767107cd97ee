//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Names and values of options. A name occurs once.
using HistoryOptionList = std::vector<std::pair<std::string, std::string>>;

// Makes the options of a DB from names and values, as the step "open" has them.
//
// Thread-safe: the class has no state.
class HistoryOptions {
 public:
  // Sets an option in the list. Does not expand the names of sets of options.
  static void Set(const std::string& name, const std::string& value,
                  HistoryOptionList* options);

  // Sets an option in the list, or the options that a short name stands for:
  // "layout=..." or "blobs=...". Returns false if a short name has no such
  // value.
  static bool Add(const std::string& name, const std::string& value,
                  HistoryOptionList* options);

  // Returns the value, or nullptr if the list does not have the option.
  static const std::string* Find(const HistoryOptionList& options,
                                 const std::string& name);

  // Returns RocksDB's name of the merge operator; empty for the usual one.
  static std::string MergeOperator(const HistoryOptionList& options);

  // Makes the options of a column family, and of the DB, whose directory is
  // "db" below `root`. The DB does nothing that steps do not request.
  // own: as Add() makes it, and maybe with "paths", and with "db", which has no
  // effect here (see HistoryDbKind).
  // overrides: arguments of Add() that replace those of `own`; nullptr if there
  // are none.
  // *paths: set to the directories of the SST files.
  static Status Make(const HistoryOptionList& own,
                     const HistoryOptionList* overrides,
                     const std::string& root, Env* env, Options* options,
                     std::vector<std::string>* paths);
};

// Sets options as "open" in scripts does, without named sets and "paths".
// Options that are not listed, or have an empty value, are not changed.
Status SetHistoryOptions(const HistoryOptionList& list, Env* env,
                         Options* options);

}  // namespace ROCKSDB_NAMESPACE
