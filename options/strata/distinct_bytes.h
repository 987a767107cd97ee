//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The second half of an error of an option that needs a comparator which never
// calls keys with different bytes equal.
// why: why the option needs it.
// Returns `why` and what the owner of a suitable comparator has to do.
inline std::string NeedsDistinctBytes(const std::string& why) {
  return why +
         ". If the comparator never calls keys with different bytes equal, "
         "override Comparator::CanKeysWithDifferentByteContentsBeEqual() to "
         "return false, or call "
         "rocksdb_comparator_set_different_bytes_never_equal() in C";
}

}  // namespace ROCKSDB_NAMESPACE
