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

// A user-collected property of block-based tables that describes their mapped
// entries (see MappedEntryStats). A table has the property iff it has a mapped
// entry.
//
// The keys of direct entries are omitted from the filter of the table, which
// makes it a *bypass filter*. A reader that does not support bypass filters
// would take such a key for absent. So the table's regular properties state
// that its filter has no whole keys, and this property tells readers that
// support bypass filters what the filter really contains.
class MappedTableProperty {
 public:
  static const std::string kName;

  // whole_keys: BlockBasedTableOptions::whole_key_filtering of the builder.
  explicit MappedTableProperty(bool whole_keys = false)
      : whole_keys_(whole_keys) {}

  // ---- For the builder.

  // Counts a point entry. Returns true if its key must be omitted from the
  // filter.
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

  // The value of the regular whole_key_filtering property, for readers that do
  // not support bypass filters.
  bool PlainWholeKeyFiltering() const { return whole_keys_ && direct_ == 0; }

  // Adds the property if there is a mapped entry.
  void AddTo(UserCollectedProperties* properties) const;

  // ---- For readers.

  // Returns false if the table does not have the property. A malformed property
  // is read as that of a table whose filter cannot be used for whole keys.
  bool ReadFrom(const UserCollectedProperties& properties);

  // True if the filter has the whole keys of all entries except direct ones.
  bool whole_keys() const { return whole_keys_; }
  uint64_t direct() const { return direct_; }
  uint64_t versioned() const { return versioned_; }

  std::string DebugString() const;
  // Returns a line for sst_dump, empty if the table does not have the property.
  static std::string Describe(const UserCollectedProperties& properties);

  // Returns the error of ingestion and import for a table that has the
  // property.
  // file: name of the table file.
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
