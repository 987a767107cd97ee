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

// The memory of what scans have read ahead (MapPrefetchIterator), over all
// scans: many iterators in the middle of a scan must not take many times what
// one takes.
//
// Each scan asks for its share before it reads ahead: most of the limit,
// divided by the scans that hold something. What is held nevertheless beyond
// the limit, because there are more scans than before, is given back by the
// groups that have waited longest, which are those of idle iterators. Their
// scans read these groups again when they come to them.
//
// Thread-safe. Locks: the budget's mutex is taken before that of a group.
class ReadAheadBudget {
 public:
  // bytes: the limit for all databases of the process.
  static constexpr uint64_t kLimit = uint64_t{32} << 20;
  // bytes: a scan may always have so much.
  static constexpr uint64_t kMinShare = uint64_t{128} << 10;

  // One iterator's part in it. REQUIRES: it lives longer than its groups are
  // held.
  struct Scan {
    size_t groups = 0;  // by the budget's mutex
  };

  explicit ReadAheadBudget(uint64_t limit) : limit_(limit) {}
  ReadAheadBudget(const ReadAheadBudget&) = delete;
  ReadAheadBudget& operator=(const ReadAheadBudget&) = delete;

  // The one of the process. Never destroyed: an iterator may be used while the
  // process ends.
  static ReadAheadBudget* OfProcess();

  // How many bytes the scan may hold now, not more than `most`.
  uint64_t Share(const Scan& scan, uint64_t most) const;

  // Holds the groups for the scan until each is cancelled. If that is more than
  // the limit, others give back what they have read.
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

  // For groups that were held before. `group` has given back what it had read,
  // and reads it again.
  void HoldAgain(const std::shared_ptr<BlobReadGroup>& group, Scan* scan);
  void Release(BlobReadGroup* group);

  // REQUIRES of the following: mutex_ held.
  void Add(const std::shared_ptr<BlobReadGroup>& group, Scan* scan);
  void Erase(Entries::iterator entry);
  // Keeps the last `keep` entries.
  void Limit(size_t keep);

  const uint64_t limit_;
  mutable std::mutex mutex_;
  Entries entries_;  // the one that has waited longest comes first
  uint64_t held_ = 0;
  size_t scans_ = 0;  // that hold something
};

}  // namespace ROCKSDB_NAMESPACE
