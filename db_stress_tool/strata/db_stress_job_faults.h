//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#ifdef GFLAGS

#include <cstdint>
#include <memory>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class FaultInjectionTestFS;

// Faults of background jobs, by the flags --read_fault_one_in etc.
//
// Thread-safe.
class StressJobFaults {
 public:
  StressJobFaults() = delete;

  // Returns true if the job is one of the two of three that get faults. A job
  // that does thousands of operations would otherwise fail each time that it is
  // tried again, and writes that wait for it would wait until the end of the
  // test.
  static bool AreFor(int job_id);

  // Returns a seed for the faults of a job. It depends on the job's number, as
  // the faults of all jobs would be at the same places otherwise.
  static uint32_t Seed(int job_id);

  // Injects faults into the operations of this thread until End(), if the job
  // gets any.
  static void Begin(FaultInjectionTestFS* fs, int job_id);
  static void End(FaultInjectionTestFS* fs);

  // Injects faults into the background jobs that have no events: all of
  // BackgroundJobScheduler but collections of blob garbage. Has no effect in a
  // release build.
  // fs: the DB's; nullptr: no faults.
  static void InjectIntoScheduledJobs(
      const std::shared_ptr<FaultInjectionTestFS>& fs);
};

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
