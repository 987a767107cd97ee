//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Returns true if a WritableFileWriter has returned the status because an
// earlier operation on the file has failed. The status says neither which file
// it is nor what happened: the caller of that operation got the error.
bool IsEarlierWriteError(const IOStatus& s);

}  // namespace ROCKSDB_NAMESPACE
