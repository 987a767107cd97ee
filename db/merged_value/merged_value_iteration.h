//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "db/merged_value/merged_value_cache.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class ReadCallback;
class Version;
struct ReadOptions;

// What an iterator has of a MergedValueCache: for a key with operands, the
// value that they have made up to some sequence number s.
//
// An iterator comes by all entries of a key that it sees, in files as well, so
// nothing that is newer than s can escape it. If it comes to an entry at s or
// below, no range deletion above s covers the key, which would hide that entry;
// so the known value is the base of what was found above. And s is not above
// the iterator's own sequence number, nor is anything that it cannot see
// (Start()).
//
// It adds nothing to the cache: a scan would drive out what point reads need.
//
// Used by one thread.
class MergedValueIteration {
 public:
  // For an iterator with this Version, of the SuperVersion of that number.
  // Without a cache, or if the iterator cannot use it, is_on() stays false.
  void Start(const ColumnFamilyData* cfd, const Version* version,
             uint64_t super_version_number, const ReadOptions& read_options,
             SequenceNumber sequence, const ReadCallback* callback);

  bool is_on() const { return cfd_ != nullptr; }

  // Not found() if there is nothing.
  // REQUIRES: is_on()
  MergedValueCache::Ref Find(const Slice& user_key) const;
  // The value was used.
  void OnUse() const;

 private:
  const ColumnFamilyData* cfd_ = nullptr;
  uint64_t generation_ = 0;
  SequenceNumber sequence_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
