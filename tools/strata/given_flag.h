//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cassert>

#include "rocksdb/rocksdb_namespace.h"
#include "util/gflags_compat.h"

namespace ROCKSDB_NAMESPACE {

// Returns true if the flag was given on the command line, also with its default
// value, or if the program has set it to another value than its default.
// REQUIRES: there is such a flag.
inline bool IsFlagGiven(const char* name) {
  GFLAGS_NAMESPACE::CommandLineFlagInfo info;
  const bool exists = GFLAGS_NAMESPACE::GetCommandLineFlagInfo(name, &info);
  assert(exists);
  return exists && !info.is_default;
}

}  // namespace ROCKSDB_NAMESPACE
