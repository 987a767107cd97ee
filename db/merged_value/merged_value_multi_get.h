//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "db/merged_value/merged_value_read.h"
#include "rocksdb/types.h"
#include "table/multiget_context.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

class ReadCallback;
struct ReadOptions;
struct SuperVersion;

// The MergedValueMultiGet of a batch of keys, of one or several column
// families.
//
// Used by one thread at a time.
class MergedValueMultiGet {
 public:
  using Keys = autovector<KeyContext*, MultiGetContext::MAX_BATCH_SIZE>;

  // REQUIRES: all outlive this.
  MergedValueMultiGet(const ReadOptions& read_options, const Keys& keys)
      : read_options_(read_options), keys_(keys) {}
  ~MergedValueMultiGet();
  MergedValueMultiGet(const MergedValueMultiGet&) = delete;
  MergedValueMultiGet& operator=(const MergedValueMultiGet&) = delete;

  // For n keys of one column family, from `first` on; also again, when they are
  // looked up anew. Does nothing, and costs little, without a cache.
  void Attach(size_t first, size_t n, const SuperVersion* super_version,
              SequenceNumber sequence, const ReadCallback* callback);

  // After the memtables: those of the keys that have their result are done.
  static void Finish(MultiGetContext::Range* range);

 private:
  const ReadOptions& read_options_;
  const Keys& keys_;
  // Which does not move them. Without a cache there is none, and no memory is
  // taken for it.
  std::unique_ptr<std::deque<MergedValueRead>> reads_;
};

}  // namespace ROCKSDB_NAMESPACE
