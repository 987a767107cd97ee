//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/dbformat.h"
#include "db/range_tombstone_fragmenter.h"
#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

// Finds the order in which a repair puts the tables of a column family on level
// 0, so that readers find the newest entry of each key first.
//
// RocksDB orders them by their largest sequence numbers. That is wrong for
// tables of lower levels: a table may have both the newest entry of one key and
// an old entry of another one. A point read ends at the first table that has
// the key or a range deletion that covers it. If column families have deltas,
// such a read becomes durable: a fold merges operands with what it has read.
//
// Algorithm: All tables are scanned side by side, in key order. For each key, a
// table with its newest entry must come before all other tables that have the
// key or cover it. A key whose newest entry is a merge operand needs this for
// each entry down to its base. Several tables may have the newest entry, as the
// tables that a repair makes of WALs repeat what was flushed before; the first
// one of them is sufficient. An entry whose sequence number was zeroed counts
// as equal to a newest entry with the same value.
// Tables are then taken one by one. The next table is the first one, in
// RocksDB's order, that has no requirement left.
//
// Invariant: order() meets all requirements unless num_contradictions() > 0.
//
// Not thread-safe.
class RepairTableOrder {
 public:
  struct Entries {
    std::unique_ptr<InternalIterator> points;
    // May be nullptr.
    std::unique_ptr<FragmentedRangeTombstoneIterator> range_deletions;
  };
  struct Table {
    // User keys. All entries and range deletions are between them, both
    // included.
    std::string smallest;
    std::string largest;
    std::function<Status(Entries*)> open;
  };

  // ucmp: compares user keys, which have no timestamps.
  // tables: in RocksDB's order, the newest one first.
  // REQUIRES: ucmp outlives this object.
  RepairTableOrder(const Comparator* ucmp, std::vector<Table> tables)
      : ucmp_(ucmp),
        tables_(std::move(tables)),
        requirements_(tables_.size()) {}

  // Returns the error of a table that cannot be read.
  Status Compute();

  // Returns indexes of `tables`, the newest table first.
  // REQUIRES: Compute() returned OK.
  const std::vector<size_t>& order() const { return order_; }
  // Returns the number of tables that were taken although a requirement was
  // left: requirements may contradict each other if sequence numbers were
  // zeroed.
  // REQUIRES: Compute() returned OK.
  size_t num_contradictions() const { return num_contradictions_; }

 private:
  struct Source;
  class Scan;
  // The newest entry that a table has of a key.
  struct Newest {
    size_t table = 0;
    SequenceNumber seq = 0;
    ValueType type = kTypeRangeDeletion;
    Slice value;
  };

  // Adds what the tables with entries of one key require of each other.
  void Require(std::vector<Newest>* newest);
  void Arrange();

  const Comparator* const ucmp_;
  const std::vector<Table> tables_;
  // Per table: sets of tables. One table of each set must come before it.
  std::vector<std::set<std::vector<size_t>>> requirements_;
  std::vector<size_t> order_;
  size_t num_contradictions_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
