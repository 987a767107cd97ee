// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// "ycsbload" and "up2xload": put every record once, in the order of record
// numbers, which is a random order of keys. The records are divided among the
// threads.

#pragma once

#include <memory>
#include <string>

#include "tools/workloads/workload.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

std::unique_ptr<Workload> NewLoadWorkload(const std::string& name,
                                          const WorkloadOptions& options);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
