//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#ifdef GFLAGS

#include <memory>
#include <vector>

#include "rocksdb/listener.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class FaultInjectionTestFS;

// Stress tests of the garbage collection of blob files with an address map: the
// flag --collect_blob_garbage_one_in (StressTest::MaybeCollectBlobGarbage()),
// and a listener that does for these jobs what DbStressListener does for
// flushes and compactions.

// With the map, adds a listener that injects faults into background jobs
// according to the flags, and checks that no two jobs have the same file.
// fs: nullptr without faults.
void AddStressBlobGcListener(
    const std::shared_ptr<FaultInjectionTestFS>& fs,
    std::vector<std::shared_ptr<EventListener>>* listeners);

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
