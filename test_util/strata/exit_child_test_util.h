//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Ends a child process of a test by _exit(), because destructors of static
// objects and functions of atexit() belong to the parent.
//
// In the build of "make coverage", the library writes its counts at exit(), and
// so not at _exit(). This function writes them first, so that the code that
// only child processes run counts as tested.
[[noreturn]] void ExitChild(int code);

}  // namespace ROCKSDB_NAMESPACE
