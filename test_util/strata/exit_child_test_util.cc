//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/exit_child_test_util.h"

#include <unistd.h>

#include "rocksdb/rocksdb_namespace.h"

// A function of libgcov, which only a library that is built for coverage has.
// In other builds the address is nullptr.
extern "C" [[gnu::weak]] void __gcov_dump();

namespace ROCKSDB_NAMESPACE {

void ExitChild(int code) {
  if (__gcov_dump != nullptr) {
    __gcov_dump();
  }
  _exit(code);
}

}  // namespace ROCKSDB_NAMESPACE
