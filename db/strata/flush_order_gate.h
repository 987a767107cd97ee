//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "rocksdb/listener.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;

// Serializes the flush jobs of each column family whose flushes must be in
// order. With an address map, its undo records and removals are only correct in
// the order of the flushes, and a value may be stored direct only if no older
// memtable is being written to a file. With a delta store, a flush asks its
// Version which of its entries need an anchor, so the Version must have all
// older entries.
//
// A flush request is held back (parked) when a thread has taken it from the
// flush queue and would start a job for a family that is being flushed. The
// family is busy from before the job takes its list of snapshots until the job
// has settled its entries in the map, whether it succeeded or not. Listeners
// are told of the end of a flush when its family is not busy any more: they may
// wait for the next flush, which another thread runs, as in RocksDB.
//
// Invariants:
// 1. Requests are parked only while some family is busy. So no request is left
//    behind when the last job ends, and a parked request needs no thread.
// 2. A parked request is not in the flush queue, and does not count as queued
//    for its family. If it did, the request of an error recovery would be
//    refused as a duplicate of one that is dropped later, and the recovery
//    would wait forever.
// 3. Atomic requests start in the order in which they were queued, even if they
//    share no busy family with a parked one. A later one would otherwise flush
//    memtables that belong to an earlier group without the rest of that group.
// 4. Each family of a parked request keeps the reference that the request
//    holds.
//
// A request waits only for families that its job would really flush. An atomic
// job may wait, while it runs, for older memtables of a family that needs no
// order and that a failed job has given back. The request that flushes those
// often names the families of the waiting job, too, although they have nothing
// to flush.
//
// A fold (DeltaFoldCommit) writes a file of level 0 that must have its place
// between the flushes before and after it. It makes its family busy like a job,
// so flushes are parked until it is over. It neither waits for flushes here nor
// overtakes one that waits.
//
// Column families are opaque here.
// Not thread-safe. REQUIRES: the DB mutex is held during every call; no
// function here releases it.
class FlushOrderGate {
 public:
  struct Request {
    FlushReason flush_reason = FlushReason::kOthers;
    bool atomic_flush = false;
    // Maps each family to the largest memtable ID to flush.
    std::unordered_map<ColumnFamilyData*, uint64_t> families;
  };

  // The interface of the DB that the gate uses.
  class Host {
   public:
    virtual ~Host() = default;

    // Returns true if the flushes of the family must be in order. The answer
    // must not change while a job flushes the family.
    virtual bool NeedsOrder(ColumnFamilyData* cfd) const = 0;

    // Returns true if a job that started at this moment would flush the family:
    // the family is not dropped and a flush is pending for it.
    virtual bool WouldFlush(ColumnFamilyData* cfd) const = 0;

    virtual bool IsBackgroundWorkStopped() const = 0;

    // Queues a non-atomic request as if it were new: it takes its own
    // reference, and is refused if the family is queued already or needs no
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

  // Parks the request and returns true if it has to wait. The gate then owns
  // its references and the caller discards the request. If this returns false,
  // the caller calls Enter(), or drops the request, before it releases the DB
  // mutex.
  // REQUIRES: the request was just taken from the front of the queue, and is
  // not to be dropped because of a background error
  bool Park(const Request& request);

  // Marks the family `cfd_` of each of `args` as busy: a job for them begins.
  template <typename Args>
  void Enter(const Args& args) {
    for (const auto& arg : args) {
      EnterFamily(arg.cfd_);
    }
  }

  // Marks the family as not busy: the job has succeeded or failed and has
  // settled its entries in the map. Queues parked requests that can start.
  // Returns true if the family was busy, i.e. needs an order.
  // REQUIRES: the job has entered the family and still has its reference
  bool Leave(ColumnFamilyData* cfd) {
    const bool was_busy = busy_.erase(cfd) > 0;
    Unpark();
    return was_busy;
  }

  // The same for all families of an atomic job.
  // REQUIRES: Enter(args) was called; the job still has its references
  template <typename Args>
  bool Leave(const Args& args) {
    size_t num_left = 0;
    for (const auto& arg : args) {
      num_left += busy_.erase(arg.cfd_);
    }
    Unpark();
    return num_left > 0;
  }

  // Marks the family as busy for a fold. Returns false, and changes nothing, if
  // a job runs for the family or one of its requests is parked.
  // REQUIRES: the family needs an order
  bool EnterForFold(ColumnFamilyData* cfd);

  // Marks the family as not busy: the fold has succeeded or failed. Queues
  // parked requests that can start.
  // REQUIRES: EnterForFold(cfd) was true; the fold still has its reference
  void LeaveForFold(ColumnFamilyData* cfd) { Leave(cfd); }

  // Returns true if no family is busy and no request is parked.
  bool Idle() const {
    return busy_.empty() && parked_.empty() && parked_atomic_.empty();
  }

 private:
  bool MustWait(const Request& request) const;
  void EnterFamily(ColumnFamilyData* cfd);
  void Unpark();

  Host* const host_;
  // Families that need an order and for which a job or a fold runs.
  std::unordered_set<ColumnFamilyData*> busy_;
  // Non-atomic requests. One per family is enough, because its job flushes all
  // memtables of the family.
  std::unordered_map<ColumnFamilyData*, Request> parked_;
  // Atomic requests, in the order in which they were queued.
  std::deque<Request> parked_atomic_;
};

}  // namespace ROCKSDB_NAMESPACE
