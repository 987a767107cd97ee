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

// Interface through which a CompactionIterator queries the address map about
// mapped entries and decides how they are output. Used by one thread.
class CompactionValueMapper {
 public:
  // flow: outlives this object; need not have been constructed yet.
  explicit CompactionValueMapper(MappedEntryMeter* flow) : flow_(flow) {}
  virtual ~CompactionValueMapper() = default;

  // The meter to which the iterator reports its input and the hidden entries.
  MappedEntryMeter* flow() const { return flow_; }

  // False if mapped entries are to be converted to ordinary ones.
  virtual bool keeps_mapped() const = 0;

  // For a value that was not found: returns true if the entry is not dead, so
  // that the value is lost.
  virtual bool IsLost(const Slice& user_key, const BlobIndex& index) const = 0;

  // Sets *path_id to the path of the file that has the value of a mapped entry;
  // for a hot value (blob_hot_bytes), to the path where it belongs otherwise.
  // Returns false if no file has it.
  virtual bool FindPath(const Slice& user_key, const BlobIndex& index,
                        uint32_t* path_id) = 0;

  // Returns true if the map finds a value by this key alone. If so, an entry of
  // the key that the job has produced from other entries must keep its sequence
  // number: an entry that it was produced from may still be in the map when the
  // output is read, and would hide it.
  virtual bool HasDirect(const Slice& user_key) const = 0;

  // Called when the sequence number of an entry that the map does not name is
  // set to zero.
  // seq: the previous sequence number of the entry.
  virtual void OnSequenceZeroed(const Slice& user_key, SequenceNumber seq) = 0;

  // Decides how the mapped entry (user_key, seq) is output.
  // value: encoded MappedBlobIndex of the input entry.
  // index: receives the encoded MappedBlobIndex of the output entry.
  virtual Status Place(const Slice& user_key, SequenceNumber seq,
                       const Slice& value, std::string* index) = 0;

 private:
  MappedEntryMeter* const flow_;
};

}  // namespace ROCKSDB_NAMESPACE
