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
// or will have work when readers have ended. DBImpl queries the queue at each
// release of a snapshot and each cleanup of a SuperVersion, with its mutex
// held, so the time of a query must not depend on the number of families.
//
//   Signal(), or the release of a snapshot or a bound
//     -> news: DBImpl examines the family
//     -> due (removals, a sweep), or waiting (for snapshots, for bounds)
//
// Invariant: A family with work to do is in the news, is due, is in a job,
// waits until no snapshot is below a sequence number, or waits for the release
// of an implicit snapshot of its own or of several families. Therefore an event
// that makes the work possible puts the family in the news. A family may be
// listed without need, and after it was dropped.
//
// Signal() is thread-safe. All other functions REQUIRE that the DB mutex is
// held.
class MapWorkQueue {
 public:
  // ---- News.

  // Reports that the family may have work. Takes no lock except the queue's
  // own.
  void Signal(uint32_t id);

  // Returns true if TakeNews() would return a family.
  // earliest_snapshot: sequence number; neither a snapshot nor the published
  // sequence number is below it.
  bool HasNews(SequenceNumber earliest_snapshot) const {
    return has_signals_.load(std::memory_order_acquire) ||
           (!by_sequence_.empty() &&
            by_sequence_.begin()->first <= earliest_snapshot);
  }
  // Removes and returns the families that were signaled or have waited for a
  // sequence number up to earliest_snapshot, in ascending order.
  std::vector<uint32_t> TakeNews(SequenceNumber earliest_snapshot);

  // ---- Waiting.

  // Puts the family in the news when no snapshot is below `sequence`. Replaces
  // the sequence number that the family waited for.
  void WaitForSnapshots(uint32_t id, SequenceNumber sequence);
  // Puts the family in the news at the next OnSharedBoundsReleased().
  void WaitForSharedBounds(uint32_t id) { shared_waits_.insert(id); }

  // Called when bounds of readers of this family alone, for whose release a
  // notification was requested, were released.
  void OnBoundsReleased(uint32_t id);
  // Called when bounds of readers of several families were released.
  void OnSharedBoundsReleased();

  // ---- Marking of files for compaction (DBStrata::LimitMarking()).

  // Records that files of the family are not marked because of a bound. The
  // caller has requested a notification of the bound's release.
  void WaitForMarking(uint32_t id) { marking_waits_.insert(id); }
  bool WaitsForMarking(uint32_t id) const {
    return marking_waits_.count(id) > 0;
  }
  // True if there are families that waited for marking and whose bound was
  // released.
  bool HasMarkingDue() const { return !marking_due_.empty(); }
  std::set<uint32_t> TakeMarkingDue();

  // ---- Due.

  void SetRemovalsDue(uint32_t id) { removals_due_.insert(id); }
  bool HasRemovalsDue() const { return !removals_due_.empty(); }
  std::set<uint32_t> TakeRemovalsDue();

  // sequence: sequence number of the oldest range deletion that is due.
  void SetSweepDue(uint32_t id, SequenceNumber sequence) {
    sweeps_due_[id] = sequence;
  }
  bool HasSweepDue() const { return !sweeps_due_.empty(); }
  // Removes and returns the family with the smallest sequence number.
  // REQUIRES: HasSweepDue().
  uint32_t TakeSweepDue();

 private:
  void EraseWait(uint32_t id);

  std::mutex mutex_;
  std::set<uint32_t> signals_;  // protected by mutex_
  std::atomic<bool> has_signals_{false};

  // Both hold the same pairs.
  std::unordered_map<uint32_t, SequenceNumber> waits_;
  std::set<std::pair<SequenceNumber, uint32_t>> by_sequence_;

  std::set<uint32_t> shared_waits_;
  std::set<uint32_t> marking_waits_;
  std::set<uint32_t> marking_due_;
  std::set<uint32_t> removals_due_;
  std::map<uint32_t, SequenceNumber> sweeps_due_;
};

}  // namespace ROCKSDB_NAMESPACE
