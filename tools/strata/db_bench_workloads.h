// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// What connects db_bench with the workloads of tools/bench/ and with the
// reports: their flags.

#pragma once

#include <memory>
#include <string>

#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "tools/workloads/active_clock.h"
#include "tools/workloads/report.h"
#include "tools/workloads/workload.h"
#include "tools/workloads/workload_thread.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// What the flag --stopped_nanos_file asks for, done to the env of db_bench;
// ends the process with a message if the file cannot be used. REQUIRES: no
// other thread is there.
Env* ApplyClockFlag(Env* env);

// From the flags; ends the process with a message if a file cannot be opened.
std::unique_ptr<BenchmarkReport> NewReportFromFlags();

// From the flags; nullptr if no workload has that name. "verify" is a workload
// unless --truth_db is given.
std::unique_ptr<Workload> NewWorkloadFromFlags(const std::string& name);

// Checks that db_bench runs in a mode that workloads know (one database, one
// column family, no timestamps), then Workload::Prepare.
Status PrepareWorkload(Workload* workload, DB* db, int threads);

// Gives *options what the flags of Strata's own options and of the workloads
// say, among them the merge operator that a workload in --benchmarks needs.
// REQUIRES: the other flags were applied before.
Status ApplyBenchFlags(Options* options);
// The same for options of reads.
void ApplyReadFlags(ReadOptions* options);
// And of the benchmark `compact`.
void ApplyCompactFlags(CompactRangeOptions* options);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
