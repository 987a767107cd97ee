//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/utilities/options_type.h"

namespace ROCKSDB_NAMESPACE {

// An option that OPTIONS files do not mention while it has its default: so the
// file of a DB that does not use it stays what RocksDB writes, to the byte, and
// RocksDB can load it. The empty text means the default, too.
//
// type: one that OptionTypeInfo knows how to parse. default_text: as it is
// serialized.
OptionTypeInfo OmittedAtDefault(size_t offset, OptionType type,
                                OptionTypeFlags flags,
                                const std::string& default_text);

// The same for a double, which RocksDB's own serialization would not give back
// as it was.
OptionTypeInfo DoubleOmittedAtDefault(size_t offset, OptionTypeFlags flags,
                                      double default_value);

// As few digits as give the same number back.
std::string ShortestDouble(double number);

}  // namespace ROCKSDB_NAMESPACE
