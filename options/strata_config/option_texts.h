//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <string>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Options as texts that a person reads: name -> value. Two sets of options are
// compared by them. The names are those of OPTIONS files; those of the table
// factory begin with "table_factory.".
//
// Beside what OPTIONS files have, there are our own options with default
// values, paths, caches and the rate limiter. Other options that OPTIONS files
// do not have are missing.
using OptionTexts = std::map<std::string, std::string>;

OptionTexts TextsOf(const DBOptions& options);
OptionTexts TextsOf(const ColumnFamilyOptions& options);

}  // namespace ROCKSDB_NAMESPACE
