//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/db_stress_write_flags.h"

#include "util/gflags_compat.h"

DEFINE_uint32(max_write_groups_per_leader, 1,
              "How many write groups in a row one thread may write");

namespace ROCKSDB_NAMESPACE {

void ApplyStressWriteFlags(Options* options) {
  options->max_write_groups_per_leader = FLAGS_max_write_groups_per_leader;
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
