//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_fold_wishes.h"
#include "db/delta/delta_version.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

class Comparator;
class Compaction;
class DeltaStore;

// Wraps the compaction filter of a compaction in a column family with delta
// files. A decision of the user's filter about a value is executed only if
// delta files have no operands that readers would merge with the value.
// Otherwise the value is kept: without it, readers would get another result
// from the operands alone, permanently. In RocksDB such operands lie above the
// value, and a compaction of both merges them before it asks the filter about
// the result. So the key is added to the keys to fold (DeltaFoldWishes), and
// the next compaction asks the filter about the complete value.
//
// kRemoveAndSkipUntil is replaced by a decision for each key of the range if
// delta files have anything in the range.
//
// Operands that are added after the Version of the compaction's inputs are
// treated like files that are added to level 0 after a compaction of RocksDB
// has begun.
//
// Not thread-safe.
class DeltaHoldingFilter final : public CompactionFilter {
 public:
  // Replaces *filter by a DeltaHoldingFilter around it. Does nothing if *filter
  // is nullptr, or if there are no delta files.
  // owned: owner of *filter if the caller owns it, else empty; owner of the new
  // filter afterwards.
  // REQUIRES: the compaction outlives the new filter, and so does the old
  // *filter if it is not owned.
  static void Wrap(const Compaction& compaction,
                   const CompactionFilter** filter,
                   std::unique_ptr<CompactionFilter>* owned);

  // REQUIRES: all arguments outlive this object, and a Version that has
  // `version` is pinned.
  DeltaHoldingFilter(const DeltaStore& store, const DeltaVersion& version,
                     DeltaHolds* holds, const CompactionFilter* filter,
                     std::unique_ptr<CompactionFilter> owned);
  ~DeltaHoldingFilter() override;

  const char* Name() const override { return filter_->Name(); }
  // All decisions are made by FilterV4() and FilterBlobByKey().
  Decision FilterV4(
      int level, const Slice& key, ValueType value_type,
      const Slice* existing_value, const WideColumns* existing_columns,
      std::string* new_value,
      std::vector<std::pair<std::string, std::string>>* new_columns,
      std::string* skip_until,
      WideColumnBlobResolver* blob_resolver) const override;
  Decision FilterBlobByKey(int level, const Slice& key, std::string* new_value,
                           std::string* skip_until) const override;
  bool SupportsFilterV4() const override { return filter_->SupportsFilterV4(); }
  BlobDecision PrepareBlobOutput(const Slice& key, const Slice& existing_value,
                                 std::string* new_value) const override {
    // The value does not depend on where it is stored.
    return filter_->PrepareBlobOutput(key, existing_value, new_value);
  }
  bool IgnoreSnapshots() const override { return filter_->IgnoreSnapshots(); }

 private:
  // Begins a range [key, skip_until) that the filter removes. Returns true if
  // the range must be removed key by key.
  bool BeginRemovedRange(const Slice& key, const std::string& skip_until) const;
  bool IsInRemovedRange(const Slice& key) const;
  // Returns the decision to execute instead of `decision` about a value, or
  // about an operand that is removed together with newer entries.
  Decision Held(const Slice& key, Decision decision) const;
  bool HasOperands(const Slice& key) const;

  const DeltaStore& store_;
  const DeltaVersion& version_;
  DeltaHolds* const holds_;
  const CompactionFilter* const filter_;
  const std::unique_ptr<CompactionFilter> owned_;
  const Comparator* const ucmp_;
  const ReadOptions read_options_;

  // Mutable as the functions of filters are const.
  mutable DeltaFoldWishes wishes_;
  mutable std::string removed_until_;
  mutable bool has_removed_range_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
