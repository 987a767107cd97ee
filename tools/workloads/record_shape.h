// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// The format of the records of a family of workloads: those of YCSB (keys of
// one size, a number of fields of one length) or of UP2X (keys and values whose
// sizes follow normal distributions, one field).
//
// Keys and values can be checked against the record number alone; see
// record.h. Thread safety: immutable, safe to share.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "tools/workloads/workload_options.h"

namespace ROCKSDB_NAMESPACE {

class Iterator;
class Random64;

namespace bench {

class RecordShape {
 public:
  virtual ~RecordShape() = default;

  // Returns an error, naming the flag, if the options are invalid.
  virtual Status Validate() const = 0;

  // Set *key or *value to a key or value of the record.
  virtual void Key(uint64_t record, std::string* key) const = 0;
  virtual void Value(uint64_t record, Random64* rnd,
                     std::string* value) const = 0;

  // Sets *delta to an operand for the FieldUpdate merge operator that changes
  // one field.
  virtual void Delta(uint64_t record, Random64* rnd,
                     std::string* delta) const = 0;

  // Changes a value like a merge of the result of Delta().
  virtual Status Update(uint64_t record, Random64* rnd,
                        std::string* value) const = 0;

  // Returns the record of a key in *record; false if the key is not of this
  // shape.
  virtual bool RecordOf(const Slice& key, uint64_t* record) const = 0;

  // Returns Corruption, naming record, field and offset, if the value was not
  // written for this record. `partial` allows absent fields, as after a merge
  // without a base value.
  virtual Status Check(uint64_t record, const Slice& value,
                       bool partial) const = 0;

  // Sets *key to the first key at or after `position` / 2^64 of the key space.
  // Keys are distributed evenly over it, in an order that is unrelated to their
  // numbers.
  virtual void KeyAt(uint64_t position, std::string* key) const = 0;

  // Returns the position at which KeyAt() returns this record's key.
  virtual uint64_t PositionOf(uint64_t record) const = 0;

  // Average bytes of a key and of a value as loaded.
  virtual double MeanKeySize() const = 0;
  virtual double MeanValueSize() const = 0;
};

std::unique_ptr<RecordShape> NewYcsbShape(const WorkloadOptions& options);
std::unique_ptr<RecordShape> NewUp2xShape(const WorkloadOptions& options);

// Returns the shape of the keys from the iterator's position on; nullptr if
// none fits. Reads only as many keys as are needed to decide. Moves the
// iterator.
std::unique_ptr<RecordShape> NewShapeOfKeys(const WorkloadOptions& options,
                                            Iterator* iter);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
