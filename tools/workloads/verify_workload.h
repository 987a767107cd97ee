// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// "verify": reads the whole database twice and fails at the first thing wrong.
// By Get and MultiGet, every record of --ycsb_records must be there with a
// value that was written for it (--ycsb_allow_missing: or be gone). By an
// iterator at one snapshot, forward and backward, every key must be a record's,
// in order, with such a value; and the iterator must find what the gets found.
//
// It needs a database that only the workloads wrote, and no writer beside it.

#pragma once

#include <memory>
#include <string>

#include "tools/workloads/workload.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

std::unique_ptr<Workload> NewVerifyWorkload(const std::string& name,
                                            const WorkloadOptions& options);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
