//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// Takes the place of a user key in a message that must not have it.
inline constexpr char kRedactedKey[] = "<redacted; see allow_data_in_errors>";

// Returns the text of a user key for LOG or for the message of a Status: the
// key in hexadecimal, or kRedactedKey. Users may send both to others. The
// output of tools that list keys does not need this.
// allow_data_in_errors: the option of the DB.
inline std::string KeyForMessage(const Slice& user_key,
                                 bool allow_data_in_errors) {
  return allow_data_in_errors ? user_key.ToString(/*hex=*/true) : kRedactedKey;
}

}  // namespace ROCKSDB_NAMESPACE
