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

namespace ROCKSDB_NAMESPACE {

// The table property `strata.delta` of a delta file: see docs/formats.md. It
// says what the entries do not say and the MANIFEST does, so that a reader can
// tell whether it has the file that the MANIFEST means, and a repair can make
// its record again.
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

  DeltaFileDescription::Kind kind = DeltaFileDescription::Kind::kOperands;
  DeltaFileDescription::Tier tier = DeltaFileDescription::Tier::kFlushed;
  // Both are 0 if the tier is kSorted, or if they were not known.
  uint64_t first_epoch = 0;
  uint64_t last_epoch = 0;
  // Of kSorted, in order of their lower bounds: a range of keys without gaps.
  std::vector<Bucket> buckets;
  // User key at which the last bucket ends; none: it has no end. Without
  // buckets there is none.
  std::optional<std::string> end;
  // Of merged and sorted anchors: the file of operands that the same job had
  // written before; 0: it left no operands.
  uint64_t operands_number = 0;

  void EncodeTo(std::string* dst) const;
  // Replaces all. On failure nothing is said of the contents: Corruption, or
  // NotSupported if it was written by a newer Strata.
  Status DecodeFrom(Slice input);

  // From what a table has. Corruption if there is none.
  static Status Read(const TableProperties& table_properties,
                     DeltaFileProperties* properties);

  // Does a file like this have operands_number?
  bool HasOperandsNumber() const {
    return kind == DeltaFileDescription::Kind::kAnchors &&
           tier != DeltaFileDescription::Tier::kFlushed;
  }

  // For messages and sst_dump.
  std::string ToString() const;

  bool operator==(const DeltaFileProperties& other) const {
    return kind == other.kind && tier == other.tier &&
           first_epoch == other.first_epoch &&
           last_epoch == other.last_epoch && buckets == other.buckets &&
           end == other.end && operands_number == other.operands_number;
  }
};

// Makes the table builder of one delta file write the property, as it is when
// the table is finished.
//
// The factory may be gone once the table builder is made.
// Thread-safe, like its base.
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
