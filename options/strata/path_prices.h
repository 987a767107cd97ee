//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/options_type.h"

namespace ROCKSDB_NAMESPACE {

// The option path_prices in its text form, which is the same in OPTIONS files,
// option strings and the flags of all tools:
//
//   <price>,... or <price>:...              0.25,0.02
//
// Invariant: a price that was parsed is a finite number that is not negative.

// Parses a list of prices; a blank text is an empty list. Returns
// InvalidArgument, which names the item, if one is no price. On failure *prices
// is unchanged.
Status ParsePathPrices(const std::string& text, std::vector<double>* prices);

// Returns the text form, which parses to exactly the same numbers.
std::string PathPricesToString(const std::vector<double>& prices);

// Returns InvalidArgument if the list is not empty and has not one price for
// each path, or if one of them is negative, infinite or NaN.
// name: of the option or flag, for the message.
// num_paths: the number of paths of the column family.
Status CheckPathPrices(const std::string& name,
                       const std::vector<double>& prices, size_t num_paths);

// Sets path_prices of *options to the value of the flag --path_prices; an empty
// text changes nothing. On failure *options is unchanged, and the error names
// the flag.
Status ApplyPathPricesFlag(const std::string& text,
                           ColumnFamilyOptions* options);

// Returns the type info of path_prices. An empty option is not written.
// offset: bytes, the offset of the member in its options struct.
OptionTypeInfo PathPricesTypeInfo(size_t offset);

}  // namespace ROCKSDB_NAMESPACE
