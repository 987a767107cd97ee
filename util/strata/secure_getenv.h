//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Returns the value of an environment variable; empty: it is not set, it is
// empty, or the process has rights that its caller does not have (set-user-ID,
// set-group-ID, file capabilities). The caller chooses the environment of such
// a process, so a variable must not direct what the process does with files.
//
// Thread-safe as long as no other thread changes the environment.
std::string SecureGetenv(const char* name);

}  // namespace ROCKSDB_NAMESPACE
