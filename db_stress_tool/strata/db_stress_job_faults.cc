//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/strata/db_stress_job_faults.h"

#include <atomic>

#include "db/strata/background_job.h"
#include "db_stress_tool/db_stress_common.h"
#include "test_util/sync_point.h"
#include "util/gflags_compat.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

namespace {

void Inject(FaultInjectionTestFS* fs, FaultInjectionIOType type, uint32_t seed,
            int one_in) {
  fs->SetThreadLocalErrorContext(
      type, seed, one_in, FLAGS_inject_error_severity == 1 /* retryable */,
      FLAGS_inject_error_severity == 2 /* has_data_loss */);
  fs->EnableThreadLocalErrorInjection(type);
}

}  // namespace

bool StressJobFaults::AreFor(int job_id) {
  return Random(Seed(job_id)).Next() % 3 != 0;
}

uint32_t StressJobFaults::Seed(int job_id) {
  return static_cast<uint32_t>(FLAGS_seed) + static_cast<uint32_t>(job_id);
}

void StressJobFaults::Begin(FaultInjectionTestFS* fs, int job_id) {
  if (!AreFor(job_id)) {
    return;
  }
  const uint32_t seed = Seed(job_id);
  Inject(fs, FaultInjectionIOType::kRead, seed, FLAGS_read_fault_one_in);
  Inject(fs, FaultInjectionIOType::kWrite, seed, FLAGS_write_fault_one_in);
  Inject(fs, FaultInjectionIOType::kMetadataRead, seed,
         FLAGS_metadata_read_fault_one_in);
  Inject(fs, FaultInjectionIOType::kMetadataWrite, seed,
         FLAGS_metadata_write_fault_one_in);
}

void StressJobFaults::End(FaultInjectionTestFS* fs) {
  fs->DisableAllThreadLocalErrorInjection();
}

void StressJobFaults::InjectIntoScheduledJobs(
    const std::shared_ptr<FaultInjectionTestFS>& fs) {
#ifdef NDEBUG
  (void)fs;
#else
  if (fs == nullptr) {
    return;
  }
  // Collections of blob garbage tell their listeners.
  const auto has_events = [](void* job) {
    return static_cast<BackgroundJob*>(job)->kind() ==
           BackgroundJob::Kind::kBlobGc;
  };
  static std::atomic<int> num_jobs{0};
  SyncPoint* const points = SyncPoint::GetInstance();
  points->SetCallBack("BackgroundJobScheduler::RunInBackground:BeforeRun",
                      [fs, has_events](void* job) {
                        if (!has_events(job)) {
                          Begin(fs.get(), ++num_jobs);
                        }
                      });
  points->SetCallBack("BackgroundJobScheduler::RunInBackground:AfterRun",
                      [fs, has_events](void* job) {
                        if (!has_events(job)) {
                          End(fs.get());
                        }
                      });
  points->EnableProcessing();
#endif
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
