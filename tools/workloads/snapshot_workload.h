// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Runs any workload while a reader holds a snapshot from its beginning, as a
// backup or a long analysis does.

#pragma once

#include <memory>

#include "tools/workloads/workload.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// Returns a workload that takes a snapshot before the threads of `workload`
// start, and releases it when they are done.
std::unique_ptr<Workload> NewSnapshotWorkload(
    std::unique_ptr<Workload>&& workload);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
