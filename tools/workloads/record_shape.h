// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// What the records of a family of workloads look like: YCSB's (keys of one
// size, a number of fields of one length) or those of UP2X (keys and values
// whose sizes follow normal distributions, one field).
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

  // An error names the flag.
  virtual Status Validate() const = 0;

  // Each replaces the contents of its output.
  virtual void Key(uint64_t record, std::string* key) const = 0;
  virtual void Value(uint64_t record, Random64* rnd,
                     std::string* value) const = 0;

  // An operand for the FieldUpdate merge operator: one field, new contents.
  virtual void Delta(uint64_t record, Random64* rnd,
                     std::string* delta) const = 0;

  // Does to a value what Delta and a merge would do.
  virtual Status Update(uint64_t record, Random64* rnd,
                        std::string* value) const = 0;

  // Which record a key is; false if it is none of this shape.
  virtual bool RecordOf(const Slice& key, uint64_t* record) const = 0;

  // Corruption, naming record, field and offset, if the value is not one that
  // was written for this record. `partial` allows fields that are absent, as
  // after a merge without a base.
  virtual Status Check(uint64_t record, const Slice& value,
                       bool partial) const = 0;

  // The first key at or after `position` / 2^64 of the key space: keys lie
  // scattered evenly over it, in an order that has nothing to do with their
  // numbers.
  virtual void KeyAt(uint64_t position, std::string* key) const = 0;

  // The position at which KeyAt gives this record's key.
  virtual uint64_t PositionOf(uint64_t record) const = 0;

  // Average bytes of a key and of a value as loaded.
  virtual double MeanKeySize() const = 0;
  virtual double MeanValueSize() const = 0;
};

std::unique_ptr<RecordShape> NewYcsbShape(const WorkloadOptions& options);
std::unique_ptr<RecordShape> NewUp2xShape(const WorkloadOptions& options);

// The shape that fits the keys from the iterator's position on, as far as it
// takes to tell; nullptr if none does. Moves the iterator.
std::unique_ptr<RecordShape> NewShapeOfKeys(const WorkloadOptions& options,
                                            Iterator* iter);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
