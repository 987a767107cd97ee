//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Decodes arbitrary bytes, and damaged values, as the properties of tables that
// are ours: strata.delta and strata.mapped.entries.
//
// The promise: what is decoded keeps the rules of docs/formats.md, and is the
// same after encoding and decoding it again. A malformed property of mapped
// entries is read as that of a table whose filter cannot be used.

#include <cstddef>
#include <cstdint>
#include <string>

#include "db/address_map/mapped_table_property.h"
#include "db/delta/delta_file_properties.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "rocksdb/table_properties.h"
#include "table/sst_file_writer_collectors.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;
using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

std::string Encode(const DeltaFileProperties& properties) {
  std::string encoded;
  properties.EncodeTo(&encoded);
  return encoded;
}

DeltaFileProperties MakeDeltaProperties(FuzzInput* input) {
  DeltaFileProperties properties;
  const uint8_t shape = input->Byte();
  properties.kind = shape % 2 == 0 ? Kind::kOperands : Kind::kAnchors;
  properties.tier = static_cast<Tier>(shape / 2 % 3);
  if (properties.tier == Tier::kSorted) {
    for (size_t n = input->Byte() % 8; n > 0; --n) {
      DeltaFileProperties::Bucket bucket;
      // Differs from the bound before it.
      bucket.lower_bound =
          std::string(1, static_cast<char>(n)) + input->String(8);
      bucket.floor_epoch = input->Number();
      properties.buckets.push_back(bucket);
    }
    if (!properties.buckets.empty() && input->Bool()) {
      properties.end = properties.buckets.back().lower_bound + "x";
    }
  } else {
    properties.first_epoch = input->Number() >> 1;
    properties.last_epoch = properties.first_epoch == 0
                                ? 0
                                : properties.first_epoch + input->Byte();
  }
  if (properties.HasOperandsNumber()) {
    properties.operands_number = input->Number();
  }
  return properties;
}

// Reads the property as that of a table without and with a global sequence
// number.
void CheckEpochs(const std::string& encoded,
                 const DeltaFileProperties& properties) {
  const bool has_epochs = properties.first_epoch > 0;
  TableProperties table;
  UserCollectedProperties& all = table.user_collected_properties;
  all[DeltaFileProperties::kPropertyName] = encoded;
  DeltaFileProperties read;
  Require(DeltaFileProperties::Read(table, &read).ok() ==
          (has_epochs || properties.tier == Tier::kSorted));
  PutFixed32(&all[ExternalSstFilePropertyNames::kVersion], 2);
  Require(DeltaFileProperties::Read(table, &read).ok() ==
          (!has_epochs && properties.kind == Kind::kAnchors &&
           properties.tier == Tier::kFlushed));
}

void DecodeDelta(const std::string& encoded) {
  DeltaFileProperties properties;
  const Status s = properties.DecodeFrom(encoded);
  if (!s.ok()) {
    Require(s.IsCorruption() || s.IsNotSupported());
    return;
  }
  Require(properties.first_epoch <= properties.last_epoch);
  Require(properties.first_epoch > 0 || properties.last_epoch == 0);
  Require(properties.tier == Tier::kSorted || properties.buckets.empty());
  Require(properties.tier != Tier::kSorted || properties.last_epoch == 0);
  Require(!properties.end.has_value() || !properties.buckets.empty());
  Require(properties.HasOperandsNumber() || properties.operands_number == 0);
  for (size_t i = 1; i < properties.buckets.size(); ++i) {
    Require(!properties.buckets[i].lower_bound.empty());
    Require(properties.buckets[i].lower_bound !=
            properties.buckets[i - 1].lower_bound);
  }
  Require(!properties.end.has_value() ||
          (!properties.end->empty() &&
           *properties.end != properties.buckets.back().lower_bound));
  CheckEpochs(encoded, properties);
  DeltaFileProperties again;
  Require(again.DecodeFrom(Encode(properties)).ok());
  Require(again == properties);
  Require(again.ToString() == properties.ToString());
}

void RoundTripDelta(FuzzInput* input) {
  const DeltaFileProperties properties = MakeDeltaProperties(input);
  std::string encoded = Encode(properties);
  // An object that has been used before has nothing left of that.
  DeltaFileProperties decoded = MakeDeltaProperties(input);
  Require(decoded.DecodeFrom(encoded).ok());
  Require(decoded == properties);
  fuzz::Damage(input, /*may_resize=*/true, &encoded);
  DecodeDelta(encoded);
}

void FuzzMapped(FuzzInput* input) {
  std::string encoded;
  const bool is_whole = input->Bool();
  const uint64_t direct = input->Number();
  const uint64_t versioned = input->Number();
  PutVarint64(&encoded, is_whole ? 1 : 0);
  PutVarint64(&encoded, direct);
  PutVarint64(&encoded, versioned);
  UserCollectedProperties properties;
  properties[MappedTableProperty::kName] = encoded;
  MappedTableProperty property(/*whole_keys=*/!is_whole);
  Require(property.ReadFrom(properties));
  Require(property.whole_keys() == is_whole);
  Require(property.direct() == direct);
  Require(property.versioned() == versioned);

  fuzz::Damage(input, /*may_resize=*/true, &encoded);
  properties[MappedTableProperty::kName] = encoded;
  Require(property.ReadFrom(properties));
  Require(!MappedTableProperty::Describe(properties).empty());
  if (property.Any()) {
    UserCollectedProperties written;
    property.AddTo(&written);
    MappedTableProperty again;
    Require(again.ReadFrom(written));
    Require(again.whole_keys() == property.whole_keys());
    Require(again.direct() == property.direct());
    Require(again.versioned() == property.versioned());
  }
  Require(!property.ReadFrom(UserCollectedProperties()));
  Require(!property.Any() && !property.whole_keys());
}

void FuzzTableProperty(FuzzInput* input) {
  switch (input->Byte() % 3) {
    case 0:
      DecodeDelta(input->Rest());
      break;
    case 1:
      RoundTripDelta(input);
      break;
    default:
      FuzzMapped(input);
      break;
  }
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(table_property, ROCKSDB_NAMESPACE::FuzzTableProperty)
