//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "db/address_map/mapped_blob_index.h"
#include "db/dbformat.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/table_properties.h"

namespace ROCKSDB_NAMESPACE {

// What the builder of a block-based table tells its readers about mapped
// entries (see MappedEntryStats), as a user-collected table property. Present
// iff the table has one.
//
// The keys of direct entries are not in the table's filter: a *bypass filter*.
// A reader that does not know of bypass filters would take such a key for
// absent, so the table says that its filter holds no whole keys, and this
// property says the truth to those who know.
class MappedTableProperty {
 public:
  static const std::string kName;

  // whole_keys: BlockBasedTableOptions::whole_key_filtering of the builder.
  explicit MappedTableProperty(bool whole_keys = false)
      : whole_keys_(whole_keys) {}

  // ---- For the builder.

  // Counts a point entry. True if its key must stay out of the filter.
  bool Add(ValueType type, const Slice& value) {
    if (!IsMapped(type, value)) {
      return false;
    }
    const bool is_direct = MappedBlobIndex::IsDirect(value);
    ++(is_direct ? direct_ : versioned_);
    return is_direct;
  }

  static bool IsDirect(ValueType type, const Slice& value) {
    return IsMapped(type, value) && MappedBlobIndex::IsDirect(value);
  }

  bool Any() const { return direct_ + versioned_ > 0; }

  // What the table says to readers that do not know of bypass filters.
  bool PlainWholeKeyFiltering() const { return whole_keys_ && direct_ == 0; }

  // Adds the property if there is a mapped entry.
  void AddTo(UserCollectedProperties* properties) const;

  // ---- For readers.

  // False if the table does not have the property. A malformed one is taken
  // for one of a table whose filter cannot be used for whole keys.
  bool ReadFrom(const UserCollectedProperties& properties);

  // The filter holds the whole keys of all entries but direct ones.
  bool whole_keys() const { return whole_keys_; }
  uint64_t direct() const { return direct_; }
  uint64_t versioned() const { return versioned_; }

  std::string DebugString() const;
  // A line for sst_dump; empty if the table does not have the property.
  static std::string Describe(const UserCollectedProperties& properties);

  // What ingestion and import say of a table that has the property.
  static Status Refused(const std::string& file);

 private:
  static bool IsMapped(ValueType type, const Slice& value) {
    return type == kTypeBlobIndex && MappedBlobIndex::IsMapped(value);
  }

  bool whole_keys_;
  uint64_t direct_ = 0;
  uint64_t versioned_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
