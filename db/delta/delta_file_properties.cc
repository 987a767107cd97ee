//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_properties.h"

#include <utility>

#include "rocksdb/comparator.h"
#include "table/sst_file_writer_collectors.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

constexpr uint32_t kVersion = 1;
// At least a byte for the length of the lower bound and one for the floor.
constexpr size_t kMinBucketSize = 2;

constexpr char kCollectorName[] = "strata.DeltaFileProperties";

Status CorruptProperty(const char* what) {
  return Status::Corruption("Table property strata.delta", what);
}

bool GetByte(Slice* input, uint8_t* byte) {
  if (input->empty()) {
    return false;
  }
  *byte = static_cast<uint8_t>((*input)[0]);
  input->remove_prefix(1);
  return true;
}

// Decodes as many buckets as *buckets has. Returns nullptr, or a description of
// the damage.
const char* TakeBuckets(Slice* input,
                        std::vector<DeltaFileProperties::Bucket>* buckets) {
  for (DeltaFileProperties::Bucket& bucket : *buckets) {
    Slice lower_bound;
    if (!GetLengthPrefixedSlice(input, &lower_bound) ||
        !GetVarint64(input, &bucket.floor_epoch)) {
      return "too short";
    }
    bucket.lower_bound = lower_bound.ToString();
  }
  for (size_t i = 1; i < buckets->size(); ++i) {
    if ((*buckets)[i].lower_bound.empty()) {
      return "a bucket without a lower bound behind another one";
    }
    if ((*buckets)[i].lower_bound == (*buckets)[i - 1].lower_bound) {
      return "two buckets with one lower bound";
    }
  }
  return nullptr;
}

// Decodes the end of the last bucket. Returns nullptr, or a description of the
// damage.
const char* TakeEnd(const DeltaFileProperties::Bucket& last, Slice* input,
                    std::optional<std::string>* end) {
  uint8_t has_end = 0;
  if (!GetByte(input, &has_end)) {
    return "too short";
  }
  if (has_end > 1) {
    return "bad flag of the end";
  }
  if (has_end == 1) {
    Slice key;
    if (!GetLengthPrefixedSlice(input, &key)) {
      return "too short";
    }
    if (key.empty() || key == Slice(last.lower_bound)) {
      return "an empty bucket";
    }
    *end = key.ToString();
  }
  return nullptr;
}

class Collector : public InternalTblPropColl {
 public:
  explicit Collector(const DeltaFileProperties* properties)
      : properties_(properties) {}

  Status InternalAdd(const Slice& /*key*/, const Slice& /*value*/,
                     uint64_t /*file_size*/) override {
    return Status::OK();
  }

  void BlockAdd(uint64_t /*block_uncomp_bytes*/,
                uint64_t /*block_compressed_bytes_fast*/,
                uint64_t /*block_compressed_bytes_slow*/) override {}

  Status Finish(UserCollectedProperties* properties) override {
    std::string encoded;
    properties_->EncodeTo(&encoded);
    (*properties)[DeltaFileProperties::kPropertyName] = std::move(encoded);
    if (properties_->last_seq != 0) {
      std::string flush;
      properties_->EncodeFlushTo(&flush);
      (*properties)[DeltaFileProperties::kFlushPropertyName] = std::move(flush);
    }
    return Status::OK();
  }

  const char* Name() const override { return kCollectorName; }

  UserCollectedProperties GetReadableProperties() const override {
    return {{DeltaFileProperties::kPropertyName, properties_->ToString()}};
  }

 private:
  const DeltaFileProperties* const properties_;
};

}  // namespace

const std::string DeltaFileProperties::kPropertyName = "strata.delta";
const std::string DeltaFileProperties::kFlushPropertyName =
    "strata.delta.flush";

void DeltaFileProperties::EncodeTo(std::string* dst) const {
  PutVarint32(dst, kVersion);
  dst->push_back(static_cast<char>(kind));
  dst->push_back(static_cast<char>(tier));
  PutVarint64(dst, first_epoch);
  PutVarint64(dst, last_epoch);
  PutVarint32(dst, static_cast<uint32_t>(buckets.size()));
  for (const Bucket& bucket : buckets) {
    PutLengthPrefixedSlice(dst, bucket.lower_bound);
    PutVarint64(dst, bucket.floor_epoch);
  }
  if (!buckets.empty()) {
    dst->push_back(end.has_value() ? 1 : 0);
    if (end.has_value()) {
      PutLengthPrefixedSlice(dst, *end);
    }
  }
  if (HasOperandsNumber()) {
    PutVarint64(dst, operands_number);
  }
}

Status DeltaFileProperties::DecodeFrom(Slice input) {
  buckets.clear();
  end.reset();
  operands_number = 0;
  first_seq = 0;
  last_seq = 0;
  uint32_t version = 0;
  if (!GetVarint32(&input, &version)) {
    return CorruptProperty("no version");
  }
  if (version != kVersion) {
    return Status::NotSupported("Table property strata.delta of version",
                                std::to_string(version));
  }
  uint8_t kind_byte = 0;
  uint8_t tier_byte = 0;
  if (!GetByte(&input, &kind_byte) || !GetByte(&input, &tier_byte)) {
    return CorruptProperty("too short");
  }
  if (kind_byte != static_cast<uint8_t>(Kind::kOperands) &&
      kind_byte != static_cast<uint8_t>(Kind::kAnchors)) {
    return CorruptProperty("unknown kind");
  }
  if (tier_byte > static_cast<uint8_t>(Tier::kSorted)) {
    return CorruptProperty("unknown tier");
  }
  kind = static_cast<Kind>(kind_byte);
  tier = static_cast<Tier>(tier_byte);
  uint32_t num_buckets = 0;
  if (!GetVarint64(&input, &first_epoch) || !GetVarint64(&input, &last_epoch) ||
      !GetVarint32(&input, &num_buckets)) {
    return CorruptProperty("too short");
  }
  if (first_epoch > last_epoch || (first_epoch == 0 && last_epoch != 0)) {
    return CorruptProperty("epochs out of order");
  }
  if (tier == Tier::kSorted ? last_epoch != 0 : num_buckets != 0) {
    return CorruptProperty("epochs and buckets do not fit the tier");
  }
  // Checked before memory is allocated for them.
  if (num_buckets > input.size() / kMinBucketSize) {
    return CorruptProperty("more buckets than bytes");
  }
  buckets.resize(num_buckets);
  const char* damage = TakeBuckets(&input, &buckets);
  if (damage == nullptr && !buckets.empty()) {
    damage = TakeEnd(buckets.back(), &input, &end);
  }
  if (damage != nullptr) {
    return CorruptProperty(damage);
  }
  if (HasOperandsNumber() && !GetVarint64(&input, &operands_number)) {
    return CorruptProperty("too short");
  }
  return input.empty() ? Status::OK() : CorruptProperty("bytes are left");
}

void DeltaFileProperties::EncodeFlushTo(std::string* dst) const {
  PutVarint64(dst, first_seq);
  PutVarint64(dst, last_seq);
}

Status DeltaFileProperties::DecodeFlushFrom(Slice input) {
  const char* damage = nullptr;
  if (!MayHaveFlushSeqs()) {
    damage = "not a file of flushed operands";
  } else if (!GetVarint64(&input, &first_seq) ||
             !GetVarint64(&input, &last_seq)) {
    damage = "too short";
  } else if (first_seq == 0 || first_seq > last_seq) {
    damage = "bad sequence numbers";
  } else if (!input.empty()) {
    damage = "bytes are left";
  }
  return damage == nullptr
             ? Status::OK()
             : Status::Corruption("Table property strata.delta.flush", damage);
}

Status DeltaFileProperties::Read(const TableProperties& table_properties,
                                 DeltaFileProperties* properties) {
  const UserCollectedProperties& all =
      table_properties.user_collected_properties;
  const auto it = all.find(kPropertyName);
  if (it == all.end()) {
    return CorruptProperty("missing");
  }
  Status s = properties->DecodeFrom(it->second);
  const auto flush = all.find(kFlushPropertyName);
  if (s.ok() && flush != all.end()) {
    s = properties->DecodeFlushFrom(flush->second);
  }
  if (!s.ok()) {
    return s;
  }
  const bool has_global_seq = HasGlobalSeq(table_properties);
  if (has_global_seq && (properties->kind != Kind::kAnchors ||
                         properties->tier != Tier::kFlushed)) {
    return CorruptProperty(
        "only flushed anchors have a global sequence number");
  }
  const bool has_epochs = properties->first_epoch != 0;
  if (properties->tier != Tier::kSorted && has_epochs == has_global_seq) {
    return CorruptProperty(has_epochs
                               ? "epochs beside a global sequence number"
                               : "neither epochs nor a global sequence number");
  }
  return s;
}

bool DeltaFileProperties::HasGlobalSeq(
    const TableProperties& table_properties) {
  return table_properties.user_collected_properties.count(
             ExternalSstFilePropertyNames::kVersion) != 0;
}

bool DeltaFileProperties::BucketsAreInOrder(const Comparator& ucmp) const {
  for (size_t i = 0; i < buckets.size(); ++i) {
    const std::string* const next = i + 1 < buckets.size()
                                        ? &buckets[i + 1].lower_bound
                                    : end.has_value() ? &*end
                                                      : nullptr;
    if (next == nullptr) {
      continue;
    }
    const std::string& bound = buckets[i].lower_bound;
    const bool has_bound = i > 0 || !bound.empty();
    if (next->empty() || (has_bound && ucmp.Compare(bound, *next) >= 0)) {
      return false;
    }
  }
  return true;
}

std::string DeltaFileProperties::ToString() const {
  std::string result = kind == Kind::kOperands ? "operands" : "anchors";
  switch (tier) {
    case Tier::kFlushed:
      result += ", flushed";
      break;
    case Tier::kMerged:
      result += ", merged";
      break;
    case Tier::kSorted:
      result += ", sorted, buckets " + std::to_string(buckets.size());
      return result;
  }
  result += ", epochs " + std::to_string(first_epoch) + " to " +
            std::to_string(last_epoch);
  if (last_seq != 0) {
    result += ", flush of " + std::to_string(first_seq) + " to " +
              std::to_string(last_seq);
  }
  return result;
}

InternalTblPropColl*
DeltaFilePropertiesCollectorFactory::CreateInternalTblPropColl(
    uint32_t /*column_family_id*/, int /*level_at_creation*/,
    int /*num_levels*/,
    SequenceNumber /*last_level_inclusive_max_seqno_threshold*/) {
  return new Collector(properties_);
}

const char* DeltaFilePropertiesCollectorFactory::Name() const {
  return kCollectorName;
}

}  // namespace ROCKSDB_NAMESPACE
