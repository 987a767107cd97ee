//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The function of WritableFileWriter that takes bytes back.

#include <cassert>

#include "file/writable_file_writer.h"

namespace ROCKSDB_NAMESPACE {

IOStatus WritableFileWriter::CutBack(const IOOptions& opts, uint64_t size) {
  assert(!use_direct_io());
  assert(size <= GetFileSize());
  // These bytes were appended behind `size`.
  buf_.Size(0);
  buffered_data_crc32c_checksum_ = 0;
  filesize_.store(size, std::memory_order_release);
  flushed_size_.store(size, std::memory_order_release);
  // The next RangeSync() must not begin behind the end of the file. It costs
  // little that it begins before what was synced.
  last_sync_size_ = 0;
  // The new end is to be synced, too.
  pending_sync_ = true;
  return writable_file_->Truncate(size, FinalizeIOOptions(opts), nullptr);
}

}  // namespace ROCKSDB_NAMESPACE
