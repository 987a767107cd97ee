// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// "verify": reads the whole database twice and fails at the first error. Get
// and MultiGet must find every record of --ycsb_records with a value that was
// written for it (with --ycsb_allow_missing records may be missing). Iterators
// at one snapshot, forward and backward, must find keys in order, each of which
// is that of a record and has such a value; and they must find the same records
// as Get and MultiGet.
//
// REQUIRES: the database was written by the workloads alone, and there is no
// concurrent writer.

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
