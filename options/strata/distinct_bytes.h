//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Returns the second half of the error message of an option that needs a
// comparator for which keys with different bytes are never equal.
// why: the reason why the option needs it. It is followed by the advice for
//     users of a suitable comparator.
inline std::string NeedsDistinctBytes(const std::string& why) {
  return why +
         ". If the comparator never calls keys with different bytes equal, "
         "override Comparator::CanKeysWithDifferentByteContentsBeEqual() to "
         "return false, or call "
         "rocksdb_comparator_set_different_bytes_never_equal() in C";
}

}  // namespace ROCKSDB_NAMESPACE
