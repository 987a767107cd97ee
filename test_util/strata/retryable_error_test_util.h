//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/io_status.h"

namespace ROCKSDB_NAMESPACE {

// Returns the error of a file system that may work again. After this error a DB
// continues once Resume() is called.
inline IOStatus RetryableError() {
  IOStatus s = IOStatus::IOError("injected");
  s.SetRetryable(true);
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
