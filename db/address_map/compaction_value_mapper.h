//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class BlobIndex;
class MappedEntryMeter;

// What a CompactionIterator asks about the mapped entries that it meets. Used
// by one thread.
class CompactionValueMapper {
 public:
  // flow outlives this; it need not have been constructed yet.
  explicit CompactionValueMapper(MappedEntryMeter* flow) : flow_(flow) {}
  virtual ~CompactionValueMapper() = default;

  // Where the iterator reports what goes in and what is hidden.
  MappedEntryMeter* flow() const { return flow_; }

  // False if mapped entries are to become ordinary ones.
  virtual bool keeps_mapped() const = 0;

  // Is the value in no file, though the entry is not dead?
  virtual bool IsLost(const Slice& user_key, const BlobIndex& index) const = 0;

  // The path where the value of a mapped entry lies. False if it is in no file.
  virtual bool FindPath(const Slice& user_key, const BlobIndex& index,
                        uint32_t* path_id) = 0;

  // Does the map find a value by this key alone? Then an entry of the key that
  // the job has made of others keeps its sequence number: what it was made of
  // may still be in the map when the output is read, and would hide it.
  virtual bool HasDirect(const Slice& user_key) const = 0;

  // The sequence number of an entry of the key that the map does not name, seq
  // so far, is set to zero.
  virtual void OnSequenceZeroed(const Slice& user_key, SequenceNumber seq) = 0;

  // How the mapped entry (user_key, seq), whose index is `value`, is output.
  virtual Status Place(const Slice& user_key, SequenceNumber seq,
                       const Slice& value, std::string* index) = 0;

 private:
  MappedEntryMeter* const flow_;
};

}  // namespace ROCKSDB_NAMESPACE
