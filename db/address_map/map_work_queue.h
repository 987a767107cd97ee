//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "db/dbformat.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// The column families, by id, whose address map has work for a background job,
// or will have it when readers have gone. DBImpl asks at each release of a
// snapshot and at each cleanup of a SuperVersion, with its mutex held, so the
// answer must not take longer with more families.
//
//   Signal(), or the release of a snapshot or a bound
//     -> news: DBImpl examines the family
//     -> due (removals, a sweep), or waiting (for snapshots, for bounds)
//
// Invariant: a family with work to do is in the news, due, in a job, waits for
// a sequence number that no snapshot is below, or waits for a bound of its own
// or of several families; so an event that makes the work possible makes it
// news. A family may be listed without need, and after it was dropped.
//
// Signal() is thread-safe; everything else REQUIRES the DB mutex.
class MapWorkQueue {
 public:
  // ---- News.

  // The family may have something to do. Takes no lock but the queue's own.
  void Signal(uint32_t id);

  // earliest_snapshot: no snapshot is below, and the published sequence number
  // is not.
  bool HasNews(SequenceNumber earliest_snapshot) const {
    return has_signals_.load(std::memory_order_acquire) ||
           (!by_sequence_.empty() &&
            by_sequence_.begin()->first <= earliest_snapshot);
  }
  // The families that were signaled or have waited for a sequence number up to
  // earliest_snapshot, ascending. They leave these lists.
  std::vector<uint32_t> TakeNews(SequenceNumber earliest_snapshot);

  // ---- Waiting.

  // The family is news when no snapshot is below `sequence`. A family waits for
  // one sequence number, the last one given.
  void WaitForSnapshots(uint32_t id, SequenceNumber sequence);
  // It is news after OnSharedBoundsReleased().
  void WaitForSharedBounds(uint32_t id) { shared_waits_.insert(id); }

  // Bounds of the family that a request was for were released.
  void OnBoundsReleased(uint32_t id);
  // Bounds of readers of several families were released.
  void OnSharedBoundsReleased();

  // ---- Marking of files for compaction (DBImpl::LimitMarking()).

  // Files of the family are not marked for the sake of a bound, which the
  // caller has asked for.
  void WaitForMarking(uint32_t id) { marking_waits_.insert(id); }
  bool WaitsForMarking(uint32_t id) const {
    return marking_waits_.count(id) > 0;
  }
  // The bound was released. The family does not wait any more.
  bool HasMarkingDue() const { return !marking_due_.empty(); }
  std::set<uint32_t> TakeMarkingDue();

  // ---- Due.

  void SetRemovalsDue(uint32_t id) { removals_due_.insert(id); }
  bool HasRemovalsDue() const { return !removals_due_.empty(); }
  std::set<uint32_t> TakeRemovalsDue();

  // sequence: the oldest range deletion that is due.
  void SetSweepDue(uint32_t id, SequenceNumber sequence) {
    sweeps_due_[id] = sequence;
  }
  bool HasSweepDue() const { return !sweeps_due_.empty(); }
  // The family with the smallest sequence number.
  // REQUIRES: HasSweepDue()
  uint32_t TakeSweepDue();

 private:
  void EraseWait(uint32_t id);

  std::mutex mutex_;
  std::set<uint32_t> signals_;  // by mutex_
  std::atomic<bool> has_signals_{false};

  // The same pairs twice.
  std::unordered_map<uint32_t, SequenceNumber> waits_;
  std::set<std::pair<SequenceNumber, uint32_t>> by_sequence_;

  std::set<uint32_t> shared_waits_;
  std::set<uint32_t> marking_waits_;
  std::set<uint32_t> marking_due_;
  std::set<uint32_t> removals_due_;
  std::map<uint32_t, SequenceNumber> sweeps_due_;
};

}  // namespace ROCKSDB_NAMESPACE
