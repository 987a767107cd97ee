//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The stress test of MigratePaths(): the flag --migrate_paths_one_in.

#ifdef GFLAGS

#include <cstdio>
#include <vector>

#include "db_stress_tool/db_stress_common.h"
#include "db_stress_tool/db_stress_test_base.h"
#include "db_stress_tool/strata/db_stress_random_canceler.h"
#include "rocksdb/utilities/path_migration.h"
#include "util/gflags_compat.h"
#include "util/strata/path_list.h"

DECLARE_string(cf_paths);

DEFINE_int32(migrate_paths_one_in, 0,
             "Every how many operations to call MigratePaths() for a column "
             "family with several --cf_paths, on average; half of the calls "
             "have a random layout, and some are cancelled. 0: never");

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns 1 to 4 path ids.
std::vector<uint32_t> RandomMigrationIds(int num_paths, Random* rand) {
  std::vector<uint32_t> ids(1 + rand->Uniform(4));
  for (uint32_t& id : ids) {
    id = rand->Uniform(num_paths);
  }
  return ids;
}

MigratePathsOptions RandomMigration(int num_paths, Random* rand) {
  MigratePathsOptions options;
  if (rand->OneIn(2)) {
    options.level_sst_path_ids = RandomMigrationIds(num_paths, rand);
    options.level_blob_path_ids = RandomMigrationIds(num_paths, rand);
    options.delta_sorted_path_id =
        static_cast<int>(rand->Uniform(num_paths + 1)) - 1;
  }
  if (rand->OneIn(4)) {
    // From 1 to 128 MiB/s.
    options.max_bytes_per_second = uint64_t{1} << (20 + rand->Uniform(8));
  }
  return options;
}

// Returns true if a call that found these options may have this result.
bool IsExpectedOfMigration(const Status& s, const MigratePathsOptions& options,
                           bool canceled) {
  return s.ok() || s.IsBusy() ||
         // SetOptions() may have taken the layout away.
         (s.IsInvalidArgument() && !options.level_sst_path_ids.has_value()) ||
         (s.IsManualCompactionPaused() &&
          (canceled || FLAGS_disable_manual_compaction_one_in > 0 ||
           FLAGS_compact_range_one_in > 0)) ||
         (s.IsCompactionAborted() &&
          FLAGS_abort_and_resume_compactions_one_in > 0) ||
         // A drain of delta files waits for snapshots.
         (s.IsIncomplete() && s.subcode() == Status::SubCode::kNone) ||
         (s.IsColumnFamilyDropped() && FLAGS_clear_column_family_one_in > 0) ||
         StressTest::IsTolerableCompactionFailure(s) ||
         StressTest::IsErrorInjectedAndRetryable(s);
}

}  // namespace

void StressTest::MaybeMigratePaths(ThreadState* thread,
                                   ColumnFamilyHandle* column_family) {
  if (!thread->rand.OneInOpt(FLAGS_migrate_paths_one_in)) {
    return;
  }
  std::vector<DbPath> paths;
  ParsePathList(FLAGS_cf_paths, &paths).PermitUncheckedError();
  if (paths.size() < 2) {
    return;
  }
  MigratePathsOptions options =
      RandomMigration(static_cast<int>(paths.size()), &thread->rand);
  StressRandomCanceler canceler(&thread->rand);
  options.canceled = canceler.flag();
  uint64_t moved = 0;
  options.on_progress = [&](const MigratePathsProgress& progress) {
    if (progress.bytes_moved < moved) {
      fprintf(stderr, "The progress of MigratePaths() goes back\n");
      thread->shared->SetVerificationFailure();
    }
    moved = progress.bytes_moved;
  };
  const Status s = MigratePaths(db_, column_family, options);
  canceler.Join();
  MaybeVerifyCpuCorruption(thread, "migratepaths", s);
  if (!IsExpectedOfMigration(s, options, canceler.canceled())) {
    fprintf(stderr, "MigratePaths()%s: %s\n",
            canceler.canceled() ? ", cancelled" : "", s.ToString().c_str());
    thread->shared->SetVerificationFailure();
  }
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
