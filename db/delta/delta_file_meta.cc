//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_meta.h"

#include <cassert>

#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

std::shared_ptr<const DeltaFileMeta> DeltaFileMeta::Create(
    DeltaFileDescription description, OnRelease on_release) {
  std::shared_ptr<DeltaFileReader> opened;
  if (description.opened != nullptr) {
    opened = std::move(description.opened->reader);
    description.opened.reset();
  }
  return std::shared_ptr<const DeltaFileMeta>(
      new DeltaFileMeta(std::move(description), std::move(opened)),
      [on_release = std::move(on_release)](DeltaFileMeta* meta) {
        // No lock: this is the last reference.
        std::shared_ptr<DeltaFileReader> reader = std::move(meta->reader_);
        if (on_release) {
          on_release(meta->description_, std::move(reader));
        }
        delete meta;
      });
}

Status DeltaFileMeta::Open(const Opener& open, DeltaFileReader** reader) const {
  MutexLock lock(&mutex_);
  if (reader_ == nullptr) {
    std::shared_ptr<DeltaFileReader> opened;
    Status s = open(description_, &opened);
    if (!s.ok()) {
      return s;
    }
    assert(opened != nullptr);
    reader_ = std::move(opened);
    opened_.store(reader_.get(), std::memory_order_release);
  }
  *reader = reader_.get();
  return Status::OK();
}

size_t DeltaFileMeta::ApproximateMemoryUsage() const {
  return sizeof(*this) + description_.smallest.capacity() +
         description_.largest.capacity() +
         description_.file_checksum.capacity() +
         description_.file_checksum_func_name.capacity();
}

}  // namespace ROCKSDB_NAMESPACE
