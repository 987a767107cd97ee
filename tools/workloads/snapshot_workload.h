// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Any workload beside a reader that keeps what was there when it began, as a
// backup or a long analysis does.

#pragma once

#include <memory>

#include "tools/workloads/workload.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// Takes a snapshot before the workload's threads start and releases it when
// they are done.
std::unique_ptr<Workload> NewSnapshotWorkload(
    std::unique_ptr<Workload>&& workload);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
