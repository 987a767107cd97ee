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

// Garbage collection of blob files with an address map: the flag
// --collect_blob_garbage_one_in (StressTest::MaybeCollectBlobGarbage()), and
// what DbStressListener does for flushes and compactions.

// With the map: adds a listener that has faults injected into the jobs in the
// background, as far as the flags say so, and checks that no two jobs have the
// same file.
// fs: nullptr without faults.
void AddStressBlobGcListener(
    const std::shared_ptr<FaultInjectionTestFS>& fs,
    std::vector<std::shared_ptr<EventListener>>* listeners);

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
