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

// The compaction filter of a compaction in a column family with delta files.
// What the user's filter says of a value is done only if delta files have no
// operands that readers would merge with it. If they have, the value is kept:
// without it, readers would make something else of the operands alone, for
// ever. In RocksDB such operands lie above the value, and a compaction that has
// both merges them before the filter is asked about the result. So such a key
// becomes a wish to fold (DeltaFoldWishes), and the next compaction that comes
// by asks about a value that is whole.
//
// kRemoveAndSkipUntil becomes a decision of its own for each key of the range,
// as soon as delta files have anything there.
//
// What comes after the Version of the compaction's inputs is as what comes to
// level 0 after a compaction of RocksDB has begun.
//
// Used by one thread.
class DeltaHoldingFilter final : public CompactionFilter {
 public:
  // Puts one around *filter. Does nothing if that is nullptr, or if there are
  // no delta files. owned: of *filter if it is the caller's own, else empty; of
  // the new one afterwards. REQUIRES: the compaction outlives it, and *filter
  // if that is not owned.
  static void Wrap(const Compaction& compaction,
                   const CompactionFilter** filter,
                   std::unique_ptr<CompactionFilter>* owned);

  // REQUIRES: all outlive it, and a Version that has `version` is pinned.
  DeltaHoldingFilter(const DeltaStore& store, const DeltaVersion& version,
                     DeltaHolds* holds, const CompactionFilter* filter,
                     std::unique_ptr<CompactionFilter> owned);
  ~DeltaHoldingFilter() override;

  const char* Name() const override { return filter_->Name(); }
  // All that is asked comes through these two.
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
    // The value stays the same wherever it lies.
    return filter_->PrepareBlobOutput(key, existing_value, new_value);
  }
  bool IgnoreSnapshots() const override { return filter_->IgnoreSnapshots(); }

 private:
  // A range that the filter removes begins at `key`. True: it is removed key by
  // key.
  bool BeginRemovedRange(const Slice& key, const std::string& skip_until) const;
  bool IsInRemovedRange(const Slice& key) const;
  // What becomes of the decision about a value, or about an operand that goes
  // together with what is above it.
  Decision Held(const Slice& key, Decision decision) const;
  bool HasOperands(const Slice& key) const;

  const DeltaStore& store_;
  const DeltaVersion& version_;
  DeltaHolds* const holds_;
  const CompactionFilter* const filter_;
  const std::unique_ptr<CompactionFilter> owned_;
  const Comparator* const ucmp_;
  const ReadOptions read_options_;

  // Filters are const; this one is not.
  mutable DeltaFoldWishes wishes_;
  mutable std::string removed_until_;
  mutable bool has_removed_range_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
