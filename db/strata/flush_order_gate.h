//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "rocksdb/listener.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;

// At most one flush job runs per column family whose flushes need an order.
// With an address map, its undo and removals are only right in the order of the
// flushes, and the test whether a value may be stored direct needs to know that
// no older memtable is on its way to a file. With a delta store, a flush asks
// its Version which of its entries need an anchor, so all that is older must be
// there.
//
// A flush request is held back (parked) when a thread has taken it from the
// flush queue and would start a job for a family that is being flushed. The
// family is busy from before the job takes its list of snapshots until the job
// is over and has settled its entries in the map, whether it succeeded or not.
//
// Invariants:
// * Something is parked only while some family is busy. So nothing is left
//   behind when the last job ends, and a parked request needs no thread.
// * A parked request is not in the flush queue, and does not count as queued
//   for its family. If it did, the request of an error recovery would be
//   refused as a duplicate of one that is dropped later, and the recovery
//   would wait for ever.
// * Atomic requests start in the order in which they were queued, also those
//   that share no busy family with a parked one. A later one would otherwise
//   flush memtables that belong to an earlier group, without the rest of that
//   group.
// * Each family of a parked request keeps the reference that the request holds.
//
// Only families that the job would really flush are waited for. An atomic job
// may wait, while it runs, for older memtables of a family that needs no order
// and that a failed job has given back. The request that flushes them often
// names the families of the waiting job, too, with nothing new in them.
//
// A fold (DeltaFoldCommit) is something between: it writes a file of level 0
// that must have its place between the flushes before and after it. It makes
// its family busy like a job, so flushes are parked until it is over. It does
// not wait for flushes here, nor goes before one that waits.
//
// Column families are opaque here. Not thread-safe: everything happens under
// the DB mutex, and nothing here releases it.
class FlushOrderGate {
 public:
  struct Request {
    FlushReason flush_reason = FlushReason::kOthers;
    bool atomic_flush = false;
    // Each with the largest memtable ID to flush.
    std::unordered_map<ColumnFamilyData*, uint64_t> families;
  };

  // What the gate needs of the DB.
  class Host {
   public:
    virtual ~Host() = default;

    // The answer must not change while a job flushes the family.
    virtual bool NeedsOrder(ColumnFamilyData* cfd) const = 0;

    // Whether a job that started now would flush the family: it is not dropped
    // and a flush is pending for it.
    virtual bool WouldFlush(ColumnFamilyData* cfd) const = 0;

    virtual bool IsBackgroundWorkStopped() const = 0;

    // Queues a request that is not atomic, as a new one: it takes a reference
    // of its own, and is refused if the family is queued already or needs no
    // flush.
    virtual void Enqueue(const Request& request) = 0;

    // Puts an atomic request at the front of the queue, to be scheduled like a
    // new one. The request keeps its references.
    virtual void EnqueueFront(Request&& request) = 0;

    virtual void Unref(ColumnFamilyData* cfd) = 0;
  };

  explicit FlushOrderGate(Host* host) : host_(host) {}

  // REQUIRES: Idle()
  ~FlushOrderGate();

  FlushOrderGate(const FlushOrderGate&) = delete;
  FlushOrderGate& operator=(const FlushOrderGate&) = delete;

  // Returns true if the request has to wait. The gate then has its references
  // and the caller forgets it. Otherwise the caller goes on to Enter, or drops
  // the request, before the DB mutex is released.
  // REQUIRES: the request was just taken from the front of the queue and is not
  // one to be dropped because of a background error
  bool Park(const Request& request);

  // A job begins for the `cfd_` of each of `args`.
  template <typename Args>
  void Enter(const Args& args) {
    for (const auto& arg : args) {
      EnterFamily(arg.cfd_);
    }
  }

  // The job is over and has settled its entries in the map. Queues what has
  // become possible.
  // REQUIRES: Enter(args) was called; the job still has its references
  template <typename Args>
  void Leave(const Args& args) {
    for (const auto& arg : args) {
      busy_.erase(arg.cfd_);
    }
    Unpark();
  }

  // A fold begins for the family, unless a job runs for it or a request of it
  // is parked: then false, and nothing has changed.
  // REQUIRES: the family needs an order
  bool EnterForFold(ColumnFamilyData* cfd);

  // The fold is over, one way or the other. Queues what has become possible.
  // REQUIRES: EnterForFold(cfd) was true; the fold still has its reference
  void LeaveForFold(ColumnFamilyData* cfd) {
    busy_.erase(cfd);
    Unpark();
  }

  // Nothing runs and nothing is parked.
  bool Idle() const {
    return busy_.empty() && parked_.empty() && parked_atomic_.empty();
  }

 private:
  bool MustWait(const Request& request) const;
  void EnterFamily(ColumnFamilyData* cfd);
  void Unpark();

  Host* const host_;
  // Families that need an order and that a job is flushing, or a fold is for.
  std::unordered_set<ColumnFamilyData*> busy_;
  // Requests that are not atomic: one per family is enough, because its job
  // flushes all there is.
  std::unordered_map<ColumnFamilyData*, Request> parked_;
  // In the order in which they were queued.
  std::deque<Request> parked_atomic_;
};

}  // namespace ROCKSDB_NAMESPACE
