//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_table_property.h"

#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kWholeKeysFlag = 1;

}  // namespace

const std::string MappedTableProperty::kName = "strata.mapped.entries";

void MappedTableProperty::AddTo(UserCollectedProperties* properties) const {
  if (!Any()) {
    return;
  }
  std::string value;
  PutVarint64Varint64(&value, whole_keys_ ? kWholeKeysFlag : 0, direct_);
  PutVarint64(&value, versioned_);
  (*properties)[kName] = std::move(value);
}

bool MappedTableProperty::ReadFrom(const UserCollectedProperties& properties) {
  *this = MappedTableProperty();
  const auto found = properties.find(kName);
  if (found == properties.end()) {
    return false;
  }
  Slice input = found->second;
  uint64_t flags = 0;
  uint64_t direct = 0;
  uint64_t versioned = 0;
  if (GetVarint64(&input, &flags) && GetVarint64(&input, &direct) &&
      GetVarint64(&input, &versioned) && input.empty() &&
      (flags & ~kWholeKeysFlag) == 0) {
    whole_keys_ = (flags & kWholeKeysFlag) != 0;
    direct_ = direct;
    versioned_ = versioned;
  }
  return true;
}

std::string MappedTableProperty::DebugString() const {
  return "direct: " + std::to_string(direct_) +
         ", versioned: " + std::to_string(versioned_) +
         (whole_keys_ ? ", bypass filter" : "");
}

std::string MappedTableProperty::Describe(
    const UserCollectedProperties& properties) {
  MappedTableProperty property;
  return property.ReadFrom(properties)
             ? "  mapped entries: " + property.DebugString() + "\n"
             : "";
}

Status MappedTableProperty::Refused(const std::string& file) {
  return Status::NotSupported(
      file +
      " has values in the address map of another column family "
      "(enable_blob_address_map); they are not in the file");
}

}  // namespace ROCKSDB_NAMESPACE
