//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The functions of log::Writer that take records back.

#include "db/write_path/wal_position.h"

#include <cassert>

#include "db/log_writer.h"
#include "file/writable_file_writer.h"

namespace ROCKSDB_NAMESPACE::log {

WalPosition Writer::GetPosition() const {
  WalPosition position;
  position.offset = dest_->GetFileSize();
  position.block_offset = block_offset_;
  position.last_seqno = last_seqno_recorded_;
  position.num_timestamp_sizes = timestamp_size_families_.size();
  return position;
}

IOStatus Writer::CutBack(const WriteOptions& write_options,
                         const WalPosition& position) {
  assert(position.num_timestamp_sizes <= timestamp_size_families_.size());
  block_offset_ = position.block_offset;
  last_seqno_recorded_ = position.last_seqno;
  // The next record of these families needs a record of the size before it.
  while (timestamp_size_families_.size() > position.num_timestamp_sizes) {
    recorded_cf_to_ts_sz_.erase(timestamp_size_families_.back());
    timestamp_size_families_.pop_back();
  }
  // A compressed record does not depend on the ones before.
  IOOptions opts;
  IOStatus s = WritableFileWriter::PrepareIOOptions(write_options, opts);
  if (s.ok()) {
    s = dest_->CutBack(opts, position.offset);
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE::log
