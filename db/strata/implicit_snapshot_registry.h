//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cassert>
#include <functional>
#include <utility>
#include <vector>

#include "db/dbformat.h"
#include "port/port.h"
#include "util/core_local.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

// The sequence numbers at which iterators read, and point reads that were
// restarted too often. A job that drops old versions of a key (flush,
// compaction, blob garbage collection) treats each of them as a snapshot. Such
// a bound costs a fraction of a real snapshot, which takes the DB mutex.
//
// Invariants:
// * A listed bound is exact: it is the sequence number that its owner reads at,
//   not a lower one. With a lower one, a job could drop a version between the
//   two that the reader needs.
// * A job misses no bound that matters. The sequence number is read while the
//   lock of the bound's shard is held, and a job takes the locks of all shards.
//   So a bound is either seen by the job, or it was read after the job had
//   released that lock. Then it is no older than what was published when the
//   job asked, hence no older than the inputs of the job.
// * Renew changes a listed bound in place. There is no moment at which neither
//   the old nor the new one is listed.
//
// A reader registers first and takes its SuperVersion afterwards. The other way
// round, a flush in between could drop what the reader needs from memtables
// that the SuperVersion no longer holds.
//
// Thread-safe. One ReadBound belongs to one thread at a time. No other lock is
// taken under a shard's lock, but those of shards with a higher index.
class ImplicitSnapshotRegistry {
 private:
  struct Node {
    Node* prev = nullptr;
    Node* next = nullptr;
    SequenceNumber sequence = 0;
  };

  struct ALIGN_AS(CACHE_LINE_SIZE) Shard {
    Shard() { head.prev = head.next = &head; }

    port::Mutex mutex;
    Node head;
  };

 public:
  // Keeps one sequence number in the registry for as long as it lives. It
  // holds its own list node, so registering allocates nothing. The destructor,
  // Release and Renew may run the registry's callback: the caller holds no
  // lock that the callback takes.
  class ReadBound {
   public:
    ReadBound() = default;
    ReadBound(ReadBound&& other) noexcept { TakeOver(&other); }
    ReadBound& operator=(ReadBound&& other) noexcept {
      if (this != &other) {
        Release();
        TakeOver(&other);
      }
      return *this;
    }
    ReadBound(const ReadBound&) = delete;
    ReadBound& operator=(const ReadBound&) = delete;
    ~ReadBound() { Release(); }

    bool registered() const { return shard_ != nullptr; }

    // REQUIRES: registered()
    SequenceNumber sequence() const {
      assert(registered());
      return node_.sequence;
    }

    // Does nothing if not registered.
    void Release();

    // Moves the bound to another sequence number and returns that. The bound
    // stays in the shard where it is, whatever core runs this.
    // REQUIRES: registered(), and what Register requires of `read_sequence`
    template <typename ReadSequence>
    SequenceNumber Renew(const ReadSequence& read_sequence) {
      assert(registered());
      const SequenceNumber before = node_.sequence;
      {
        MutexLock lock(&shard_->mutex);
        node_.sequence = read_sequence();
        assert(node_.sequence < kMaxSequenceNumber);
      }
      if (before < node_.sequence) {
        registry_->AfterRemoval(before);
      }
      return node_.sequence;
    }

    // REQUIRES: registered(), and what RegisterAt requires of `sequence`
    SequenceNumber RenewAt(SequenceNumber sequence) {
      return Renew([sequence] { return sequence; });
    }

   private:
    friend class ImplicitSnapshotRegistry;

    // As a constructor, so that Register returns without a move.
    template <typename ReadSequence>
    ReadBound(ImplicitSnapshotRegistry* registry,
              const ReadSequence& read_sequence)
        : registry_(registry), shard_(registry->PickShard()) {
      MutexLock lock(&shard_->mutex);
      node_.sequence = read_sequence();
      assert(node_.sequence < kMaxSequenceNumber);
      node_.prev = shard_->head.prev;
      node_.next = &shard_->head;
      node_.prev->next = &node_;
      node_.next->prev = &node_;
    }

    // REQUIRES: !registered()
    void TakeOver(ReadBound* other) noexcept;

    ImplicitSnapshotRegistry* registry_ = nullptr;
    Shard* shard_ = nullptr;
    // The owner may read the sequence number without the lock: it alone writes
    // it. The links change under the shard's lock only.
    Node node_;
  };

  // `on_clear` is what NotifyWhenNoneBelow asks for. It runs on the thread
  // that gave a bound up, with no lock of the registry held.
  explicit ImplicitSnapshotRegistry(std::function<void()> on_clear = nullptr);

  // REQUIRES: no bound is left
  ~ImplicitSnapshotRegistry();

  // Replaces the callback of the constructor.
  // REQUIRES: there is no bound and no request yet
  void SetOnClear(std::function<void()> on_clear) {
    assert(!HasAny());
    on_clear_ = std::move(on_clear);
  }

  ImplicitSnapshotRegistry(const ImplicitSnapshotRegistry&) = delete;
  ImplicitSnapshotRegistry& operator=(const ImplicitSnapshotRegistry&) = delete;

  // Lists the sequence number that `read_sequence` returns.
  // REQUIRES: `read_sequence` reads the newest sequence number that is visible
  // to readers, which never goes down. It takes no lock.
  template <typename ReadSequence>
  ReadBound Register(const ReadSequence& read_sequence) {
    return ReadBound(this, read_sequence);
  }

  // Lists a sequence number that may be old.
  // REQUIRES: until this returns, a snapshot or another bound protects
  // `sequence`; sequence < kMaxSequenceNumber
  ReadBound RegisterAt(SequenceNumber sequence) {
    return Register([sequence] { return sequence; });
  }

  // Adds every bound to a job's list of snapshots, which stays ascending and
  // free of duplicates.
  // REQUIRES: `snapshots` is so already. The live snapshots, and the published
  // sequence number if the job uses it, were read *before* this call: a bound
  // may replace a snapshot that is released meanwhile, and a bound that this
  // call misses is not below what was published before it.
  void MergeInto(std::vector<SequenceNumber>* snapshots) const;

  // The oldest bound, kMaxSequenceNumber if there is none.
  SequenceNumber Min() const;

  bool HasAny() const { return AnyBelow(kMaxSequenceNumber); }

  // For work that waits until nobody reads below `limit`. Returns false if
  // that is so now. Otherwise returns true, and the callback runs once no bound
  // below `limit` is left. A request is answered once and several may share
  // one answer, which comes when the lowest limit is met: the callback looks
  // at all that waits and asks again for the rest. It may find an older bound
  // that was registered meanwhile. No answer is lost: a bound that is given up
  // while this runs counts either as gone or as one that will answer.
  // REQUIRES: a callback was given; limit > 0
  bool NotifyWhenNoneBelow(SequenceNumber limit);

 private:
  Shard* PickShard();

  // Of one moment: a bound that one reader gives up when another one lists the
  // same number, in another shard, must not be missed. So all shards are
  // locked.
  template <typename Fn>
  void ForEach(const Fn& fn) const;

  bool AnyBelow(SequenceNumber limit) const;

  // Called after a bound at `sequence` has left the registry, no lock held.
  void AfterRemoval(SequenceNumber sequence) {
    // Relaxed is enough: the bound that keeps a request open was seen under its
    // shard's lock after the limit was set, and that lock has passed to this
    // thread since.
    if (sequence < notify_limit_.load(std::memory_order_relaxed)) {
      NotifyIfClear();
    }
  }

  void NotifyIfClear();

  std::function<void()> on_clear_;
  CoreLocalArray<Shard> shards_;

  // Orders requests and answers. Shard locks are taken under it, not it under
  // them.
  port::Mutex notify_mutex_;
  // Zero if no answer is due. If it is not zero and notify_mutex_ is free, then
  // a bound below it is listed, or one has left and its thread is yet to call
  // NotifyIfClear.
  std::atomic<SequenceNumber> notify_limit_{0};
};

}  // namespace ROCKSDB_NAMESPACE
