//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#ifdef GFLAGS

#include "rocksdb/env.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Applies the flag --path_devices of db_stress to the env and returns the env
// to use, which is never deleted. Ends the process with a message if the flag
// is invalid.
// REQUIRES: the env outlives the process's threads; called at most once.
Env* ApplyStressDeviceFlag(Env* env);

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
