//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/delta/delta_file_description.h"
#include "db/table_properties_collector.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class Comparator;

// The table property `strata.delta` of a delta file: see docs/formats.md. It
// has the data that is in the MANIFEST and not in the entries, so that a reader
// can tell whether the file is the one that the MANIFEST names, and a repair
// can rebuild the record in the MANIFEST. The property `strata.delta.flush`,
// which only flushed operands have, is for repairs alone.
//
// Not thread-safe.
struct DeltaFileProperties {
  // A bucket that a sorted file was written for.
  struct Bucket {
    std::string lower_bound;
    uint64_t floor_epoch = 0;

    bool operator==(const Bucket& other) const {
      return lower_bound == other.lower_bound &&
             floor_epoch == other.floor_epoch;
    }
  };

  static const std::string kPropertyName;
  static const std::string kFlushPropertyName;

  DeltaFileDescription::Kind kind = DeltaFileDescription::Kind::kOperands;
  DeltaFileDescription::Tier tier = DeltaFileDescription::Tier::kFlushed;
  // Both are 0 if the tier is kSorted, or if the file has a global sequence
  // number.
  uint64_t first_epoch = 0;
  uint64_t last_epoch = 0;
  // For kSorted: the buckets in the order of their lower bounds, without gaps.
  std::vector<Bucket> buckets;
  // User key at which the last bucket ends; nullopt: it is unbounded, or there
  // are no buckets.
  std::optional<std::string> end;
  // For merged and sorted anchors: number of the file of operands that the same
  // job has written before; 0: it left no operands.
  uint64_t operands_number = 0;
  // For flushed operands: the first and the last sequence number of all entries
  // that the flush has read, of which the operands in the file may be a part.
  // Two flushes of a column family have no sequence number in common, unless
  // one of them repeats the other. Both are 0 if they are not known.
  SequenceNumber first_seq = 0;
  SequenceNumber last_seq = 0;

  // Encodes `strata.delta`: all but first_seq and last_seq.
  void EncodeTo(std::string* dst) const;
  // Decodes the property into this object. On failure the contents are
  // undefined: Corruption, or NotSupported if a newer Strata has written the
  // property.
  Status DecodeFrom(Slice input);
  // The same for `strata.delta.flush`: first_seq and last_seq.
  // REQUIRES: DecodeFrom() was successful.
  void EncodeFlushTo(std::string* dst) const;
  Status DecodeFlushFrom(Slice input);

  // Decodes the properties of a table. Returns Corruption if the table has no
  // `strata.delta`, or neither epochs nor a global sequence number, which takes
  // their place, or both.
  static Status Read(const TableProperties& table_properties,
                     DeltaFileProperties* properties);
  // Returns true if the table has a global sequence number.
  static bool HasGlobalSeq(const TableProperties& table_properties);

  // Returns true if the buckets follow one another, up to their end. Only the
  // lower bound of the first one may be empty, as it is none.
  bool BucketsAreInOrder(const Comparator& ucmp) const;

  // Returns true if files of this kind and tier have operands_number.
  bool HasOperandsNumber() const {
    return kind == DeltaFileDescription::Kind::kAnchors &&
           tier != DeltaFileDescription::Tier::kFlushed;
  }

  // Returns true if files of this kind and tier may have first_seq and
  // last_seq.
  bool MayHaveFlushSeqs() const {
    return kind == DeltaFileDescription::Kind::kOperands &&
           tier == DeltaFileDescription::Tier::kFlushed;
  }

  // For messages and sst_dump.
  std::string ToString() const;

  bool operator==(const DeltaFileProperties& other) const {
    return kind == other.kind && tier == other.tier &&
           first_epoch == other.first_epoch && last_epoch == other.last_epoch &&
           buckets == other.buckets && end == other.end &&
           operands_number == other.operands_number &&
           first_seq == other.first_seq && last_seq == other.last_seq;
  }
};

// Makes the table builder of one delta file write the properties, with the
// values that they have when the table is finished.
//
// The factory may be destroyed once the table builder is made.
//
// Thread-safe, like its base class.
class DeltaFilePropertiesCollectorFactory : public InternalTblPropCollFactory {
 public:
  // REQUIRES: the properties outlive the table builder and do not change while
  // it is finished.
  explicit DeltaFilePropertiesCollectorFactory(
      const DeltaFileProperties* properties)
      : properties_(properties) {}

  InternalTblPropColl* CreateInternalTblPropColl(
      uint32_t column_family_id, int level_at_creation, int num_levels,
      SequenceNumber last_level_inclusive_max_seqno_threshold) override;
  const char* Name() const override;

 private:
  const DeltaFileProperties* const properties_;
};

}  // namespace ROCKSDB_NAMESPACE
