//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class BlobReadGroup;

// Limits the memory of the values that all scans together have read ahead
// (MapPrefetchIterator), so that many iterators in the middle of a scan do not
// take many times the memory of one.
//
// Each scan queries its share before it reads ahead: most of the limit, divided
// by the number of scans that hold groups. If the limit is exceeded
// nevertheless, because the number of scans has increased, the groups that have
// waited longest, which are those of idle iterators, free their results. Their
// scans read these groups again when they reach them.
//
// Thread-safe. Lock order: the budget's mutex is taken before that of a group.
class ReadAheadBudget {
 public:
  // In bytes. The limit for all databases of the process.
  static constexpr uint64_t kLimit = uint64_t{32} << 20;
  // In bytes. The minimum share of a scan.
  static constexpr uint64_t kMinShare = uint64_t{128} << 10;

  // The part of one iterator in the budget. It must exist for as long as its
  // groups are held.
  struct Scan {
    size_t groups = 0;  // protected by the budget's mutex
  };

  explicit ReadAheadBudget(uint64_t limit) : limit_(limit) {}
  ReadAheadBudget(const ReadAheadBudget&) = delete;
  ReadAheadBudget& operator=(const ReadAheadBudget&) = delete;

  // Returns the budget of the process. It is never destroyed, as an iterator
  // may be used while the process exits.
  static ReadAheadBudget* OfProcess();

  // Returns the number of bytes that the scan may hold, at most `most`.
  uint64_t Share(const Scan& scan, uint64_t most) const;

  // Holds the groups for the scan until each of them is cancelled. If the limit
  // is exceeded, other groups free their results.
  void Hold(Scan* scan,
            const std::vector<std::shared_ptr<BlobReadGroup>>& groups);

  uint64_t TEST_Held() const;

 private:
  friend class BlobReadGroup;

  struct Entry {
    std::shared_ptr<BlobReadGroup> group;
    uint64_t bytes;
    Scan* scan;
  };
  using Entries = std::list<Entry>;

  // Holds a group that its owner is about to read: its results were freed, or
  // it was not read ahead.
  void HoldOne(const std::shared_ptr<BlobReadGroup>& group, Scan* scan);
  void Release(BlobReadGroup* group);

  // REQUIRES: mutex_ held.
  void Add(const std::shared_ptr<BlobReadGroup>& group, Scan* scan);
  // REQUIRES: mutex_ held.
  void Erase(Entries::iterator entry);
  // Makes groups free their results while the limit is exceeded, except those
  // of the last `keep` entries.
  // REQUIRES: mutex_ held.
  void Limit(size_t keep);

  const uint64_t limit_;
  mutable std::mutex mutex_;
  Entries entries_;    // the entry that has waited longest comes first
  uint64_t held_ = 0;  // bytes
  size_t scans_ = 0;   // number of scans that hold groups
};

}  // namespace ROCKSDB_NAMESPACE
