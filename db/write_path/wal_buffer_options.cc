//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/write_path/wal_buffer_options.h"

#include "db/write_path/wal_buffer_format.h"
#include "options/strata/strata_option_table.h"

namespace ROCKSDB_NAMESPACE {

Status ValidateWalBuffer(const DBOptions& db_options) {
  static_assert(WalBufferFormat::kMinSize == option_bounds::kMinWalBufferSize);
  static_assert(WalBufferFormat::kMaxSize == option_bounds::kMaxWalBufferSize);
  if (db_options.wal_mmap_buffer_size == 0) {
    return Status::OK();
  }
  if (db_options.recycle_log_file_num > 0) {
    return Status::InvalidArgument(
        "wal_mmap_buffer_size is incompatible with recycle_log_file_num: "
        "recovery cannot tell from the size of a recycled WAL which bytes it "
        "already has");
  }
  if (db_options.manual_wal_flush) {
    return Status::InvalidArgument(
        "wal_mmap_buffer_size is incompatible with manual_wal_flush, which "
        "keeps written data in the memory of the process until FlushWAL()");
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
