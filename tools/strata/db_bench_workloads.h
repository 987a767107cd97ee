// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Connects db_bench with the workloads of tools/workloads/ and with the
// reports, by flags.

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

// Applies the flags --stopped_nanos_file and --path_devices to the env of
// db_bench and returns the env to use. Ends the process with a message if the
// file cannot be used or the devices cannot be parsed.
// REQUIRES: the process has no other thread; called at most once.
Env* ApplyEnvFlags(Env* env);

// Prints what each simulated device of --path_devices has done.
void PrintDevices();

// Returns the report that the flags specify. Ends the process with a message if
// a file cannot be opened.
std::unique_ptr<BenchmarkReport> NewReportFromFlags();

// Returns the workload of that name with the settings of the flags; nullptr if
// there is none. "verify" is a workload unless --truth_db is given.
std::unique_ptr<Workload> NewWorkloadFromFlags(const std::string& name);

// Checks that db_bench runs in a mode that workloads support (one database, one
// column family, no timestamps), then calls Workload::Prepare().
Status PrepareWorkload(Workload* workload, DB* db, int threads);

// Applies the flags of Strata's own options and of the workloads to *options,
// including the merge operator that a workload in --benchmarks needs.
// REQUIRES: the other flags were applied before.
Status ApplyBenchFlags(Options* options);
// Applies the flags of Strata's own read options.
void ApplyReadFlags(ReadOptions* options);
// Applies the flags of the benchmark `compact`.
void ApplyCompactFlags(CompactRangeOptions* options);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
