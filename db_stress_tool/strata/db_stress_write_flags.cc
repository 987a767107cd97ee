//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/strata/db_stress_write_flags.h"

#include "util/gflags_compat.h"

DEFINE_uint32(max_write_groups_per_leader, 1,
              "Maximum number of consecutive write groups of one thread");
DEFINE_uint64(wal_mmap_buffer_size, 0,
              "Size in bytes of the memory-mapped file that buffers writes to "
              "WALs; 0: none");

namespace ROCKSDB_NAMESPACE {

void ApplyStressWriteFlags(Options* options) {
  options->max_write_groups_per_leader = FLAGS_max_write_groups_per_leader;
  options->wal_mmap_buffer_size =
      static_cast<size_t>(FLAGS_wal_mmap_buffer_size);
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
