//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/utilities/options_type.h"

namespace ROCKSDB_NAMESPACE {

// Returns the type info of an option that is not written to OPTIONS files while
// it has its default. So the OPTIONS file of a DB that does not use the option
// is byte for byte what RocksDB writes, and RocksDB can load it. Empty text
// means the default, too.
//
// type: a type that OptionTypeInfo can parse.
// default_text: the default value as it is serialized.
OptionTypeInfo OmittedAtDefault(size_t offset, OptionType type,
                                OptionTypeFlags flags,
                                const std::string& default_text);

// Like OmittedAtDefault(), for a double. RocksDB's own serialization of doubles
// does not preserve the exact value.
OptionTypeInfo DoubleOmittedAtDefault(size_t offset, OptionTypeFlags flags,
                                      double default_value);

// Returns the shortest text that parses to exactly this number.
std::string ShortestDouble(double number);

}  // namespace ROCKSDB_NAMESPACE
