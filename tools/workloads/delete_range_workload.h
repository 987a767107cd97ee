// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// "deleterandomrange": DeleteRange over random ranges of the key space, each of
// --delete_range_width records on average. Run "verify" with
// --ycsb_allow_missing after it.

#pragma once

#include <memory>
#include <string>

#include "tools/workloads/workload.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

std::unique_ptr<Workload> NewDeleteRangeWorkload(
    const std::string& name, const WorkloadOptions& options);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
