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

// The MergedValueRead objects of a MultiGet batch, whose keys may belong to
// several column families.
//
// Used by one thread at a time.
class MergedValueMultiGet {
 public:
  using Keys = autovector<KeyContext*, MultiGetContext::MAX_BATCH_SIZE>;

  // REQUIRES: both arguments outlive this.
  MergedValueMultiGet(const ReadOptions& read_options, const Keys& keys)
      : read_options_(read_options), keys_(keys) {}
  ~MergedValueMultiGet();
  MergedValueMultiGet(const MergedValueMultiGet&) = delete;
  MergedValueMultiGet& operator=(const MergedValueMultiGet&) = delete;

  // Begins the lookups of the n keys from index `first` on, which belong to one
  // column family. May be called again if they are looked up again. Does
  // nothing, at little cost, if the column family has no cache.
  void Attach(size_t first, size_t n, const SuperVersion* super_version,
              SequenceNumber sequence, const ReadCallback* callback);

  // To be called after the memtables were read. Marks the keys that have their
  // result as done.
  static void Finish(MultiGetContext::Range* range);

 private:
  const ReadOptions& read_options_;
  const Keys& keys_;
  // A deque, so that its elements do not move. nullptr, so that no memory is
  // used, if no column family of the batch has a cache.
  std::unique_ptr<std::deque<MergedValueRead>> reads_;
};

}  // namespace ROCKSDB_NAMESPACE
