//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "db/table_properties_collector.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {
namespace fuzz {

// Writes given properties into one table, whatever its entries are.
//
// Not thread-safe.
class GivenProperties : public InternalTblPropColl {
 public:
  explicit GivenProperties(const UserCollectedProperties& properties)
      : properties_(properties) {}
  Status InternalAdd(const Slice& /*key*/, const Slice& /*value*/,
                     uint64_t /*file_size*/) override {
    return Status::OK();
  }
  void BlockAdd(uint64_t /*block_uncomp_bytes*/,
                uint64_t /*block_compressed_bytes_fast*/,
                uint64_t /*block_compressed_bytes_slow*/) override {}
  Status Finish(UserCollectedProperties* properties) override {
    properties->insert(properties_.begin(), properties_.end());
    return Status::OK();
  }
  const char* Name() const override { return "GivenProperties"; }
  UserCollectedProperties GetReadableProperties() const override { return {}; }

 private:
  const UserCollectedProperties properties_;
};

// Makes a table builder write given properties.
//
// Thread-safe, like its base class.
class GivenPropertiesFactory : public InternalTblPropCollFactory {
 public:
  explicit GivenPropertiesFactory(const UserCollectedProperties& properties)
      : properties_(properties) {}
  InternalTblPropColl* CreateInternalTblPropColl(
      uint32_t /*column_family_id*/, int /*level_at_creation*/,
      int /*num_levels*/,
      SequenceNumber /*last_level_inclusive_max_seqno_threshold*/) override {
    return new GivenProperties(properties_);
  }
  const char* Name() const override { return "GivenPropertiesFactory"; }

 private:
  const UserCollectedProperties properties_;
};

}  // namespace fuzz
}  // namespace ROCKSDB_NAMESPACE
