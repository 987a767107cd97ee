//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "db/strata/background_job.h"
#include "db/strata/db_strata.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Frees values that committed range deletions cover, in a column family with an
// address map (RangeDeletionSweep), for a few seconds at most. It puts back the
// deletions that are left.
//
// Invariants:
// 1. There is one sweep at a time, as compactions want their threads.
// 2. The Version that it reads has what the deletions were committed with: they
//    are taken before it.
//
// The class is a part of DBStrata, and reaches DBImpl as DBStrata does: it
// reads a Version, and drops blob files that became empty with an edit.
class DBStrata::BackgroundRangeSweep : public BackgroundJob {
 public:
  BackgroundRangeSweep(DBStrata* strata, ColumnFamilyData* cfd)
      : BackgroundJob(Kind::kRangeSweep, cfd), strata_(strata) {}

  Status Run(JobContext* job_context) override;
  void GiveBack(bool has_run) override;
  void OnEnd(const Status& s) override;

 private:
  // Sweeps, and drops files that became empty.
  // REQUIRES: DB mutex held; it is released meanwhile.
  void Sweep(JobContext* job_context);

  DBStrata* const strata_;
};

}  // namespace ROCKSDB_NAMESPACE
