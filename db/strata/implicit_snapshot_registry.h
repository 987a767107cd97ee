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

// The implicit snapshots of readers: the sequence numbers at which iterators
// read, and point reads that were restarted too often. A job that drops old
// versions of a key (flush, compaction, blob garbage collection) treats each of
// them as a snapshot. An implicit snapshot costs a fraction of a real one, for
// which the DB mutex is taken.
//
// Invariants:
// 1. A registered implicit snapshot is exact: it is the sequence number at
//    which its owner reads, not a lower one. If it were lower, a job could drop
//    a version between the two that the reader needs.
// 2. A job misses no implicit snapshot that matters. The sequence number is
//    read while the lock of the implicit snapshot's shard is held, and a job
//    takes the locks of all shards. So the job either sees the implicit
//    snapshot, or the sequence number was read after the job had released that
//    lock. In the latter case it is no older than what was published when the
//    job asked, hence no older than the inputs of the job.
// 3. Renew() changes a registered implicit snapshot in place. At every moment
//    the old or the new sequence number is registered.
//
// A reader registers first and takes its SuperVersion afterwards. In the other
// order, a flush in between could drop versions that the reader needs and that
// its SuperVersion does not have.
//
// Thread-safe, but a ReadBound is used by one thread at a time. While a shard's
// lock is held, no locks are taken except those of shards with a higher index.
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
  // An implicit snapshot: keeps one sequence number in the registry during its
  // lifetime. It contains its own list node, so that registering allocates no
  // memory. The destructor, Release() and Renew() may run the registry's
  // callback.
  // REQUIRES: the caller of these holds no lock that the callback takes.
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

    // Removes the implicit snapshot from the registry. Does nothing if it is
    // not registered.
    void Release();

    // Changes the implicit snapshot to the sequence number that `read_sequence`
    // returns, and returns that. It stays in its shard, regardless of the core
    // that runs this.
    // REQUIRES: registered(), and `read_sequence` as for Register().
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

    // Changes the implicit snapshot to `sequence`, and returns that.
    // REQUIRES: registered(), and `sequence` as for RegisterAt().
    SequenceNumber RenewAt(SequenceNumber sequence) {
      return Renew([sequence] { return sequence; });
    }

   private:
    friend class ImplicitSnapshotRegistry;

    // Registers an implicit snapshot. This is a constructor so that Register()
    // can return the object without a move.
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

    // Moves the implicit snapshot of `other` to this object.
    // REQUIRES: !registered()
    void TakeOver(ReadBound* other) noexcept;

    ImplicitSnapshotRegistry* registry_ = nullptr;
    Shard* shard_ = nullptr;
    // The owner may read the sequence number without the lock, since only the
    // owner writes it. The links are guarded by the shard's lock.
    Node node_;
  };

  // on_clear: callback that NotifyWhenNoneBelow() requests. It runs in the
  // thread that released or renewed an implicit snapshot, with no lock of the
  // registry held.
  explicit ImplicitSnapshotRegistry(std::function<void()> on_clear = nullptr);

  // REQUIRES: no implicit snapshot is registered
  ~ImplicitSnapshotRegistry();

  // Replaces the callback of the constructor.
  // REQUIRES: there is no implicit snapshot and no request for a callback yet
  void SetOnClear(std::function<void()> on_clear) {
    assert(!HasAny());
    on_clear_ = std::move(on_clear);
  }

  ImplicitSnapshotRegistry(const ImplicitSnapshotRegistry&) = delete;
  ImplicitSnapshotRegistry& operator=(const ImplicitSnapshotRegistry&) = delete;

  // Registers the sequence number that `read_sequence` returns.
  // REQUIRES: `read_sequence` returns the newest sequence number that is
  // visible to readers, which never decreases, and takes no lock.
  template <typename ReadSequence>
  ReadBound Register(const ReadSequence& read_sequence) {
    return ReadBound(this, read_sequence);
  }

  // Registers a sequence number that may be old.
  // REQUIRES: until this returns, a snapshot or another implicit snapshot
  // protects `sequence`; sequence < kMaxSequenceNumber
  ReadBound RegisterAt(SequenceNumber sequence) {
    return Register([sequence] { return sequence; });
  }

  // Adds all implicit snapshots to a job's list of snapshots, which stays
  // ascending and free of duplicates.
  // REQUIRES: `snapshots` is ascending and free of duplicates. The live
  // snapshots, and the published sequence number if the job uses it, were read
  // *before* this call: an implicit snapshot may replace a snapshot that is
  // released meanwhile, and one that this call misses is not below what was
  // published before the call.
  void MergeInto(std::vector<SequenceNumber>* snapshots) const;

  // Returns the oldest implicit snapshot, kMaxSequenceNumber if there is none.
  SequenceNumber Min() const;

  bool HasAny() const { return AnyBelow(kMaxSequenceNumber); }

  // For work that waits until there is no reader below `limit`. Returns false
  // if there is none. Otherwise returns true, and the callback runs once no
  // implicit snapshot below `limit` is left.
  //
  // The callback runs once per request; several requests may share one run,
  // which happens when the lowest of their limits is met. So the callback must
  // check all work that waits, and request another run for the rest. It may
  // find an older implicit snapshot that was registered meanwhile. No run is
  // lost: an implicit snapshot that is released during this call is either
  // ignored here, or its release runs the callback.
  // REQUIRES: a callback was given; limit > 0
  bool NotifyWhenNoneBelow(SequenceNumber limit);

 private:
  Shard* PickShard();

  // Calls fn with each registered sequence number. All shards are locked at
  // once, so that the result is that of one moment: if one reader releases a
  // sequence number when another one has registered it in another shard, it
  // must not be missed.
  template <typename Fn>
  void ForEach(const Fn& fn) const;

  bool AnyBelow(SequenceNumber limit) const;

  // Runs the callback if it is due. To be called after an implicit snapshot at
  // `sequence` was removed from the registry.
  // REQUIRES: no lock is held
  void AfterRemoval(SequenceNumber sequence) {
    // Relaxed is enough: the implicit snapshot that keeps a request open was
    // seen under its shard's lock after the limit was set, and this thread has
    // taken that lock since.
    if (sequence < notify_limit_.load(std::memory_order_relaxed)) {
      NotifyIfClear();
    }
  }

  void NotifyIfClear();

  std::function<void()> on_clear_;
  CoreLocalArray<Shard> shards_;

  // Serializes requests and decisions to run the callback. Shard locks are
  // taken while it is held, never the reverse.
  port::Mutex notify_mutex_;
  // The lowest limit of the open requests, zero if there is none. If it is not
  // zero and notify_mutex_ is free, then an implicit snapshot below it is
  // registered, or one was removed and its thread has yet to call
  // NotifyIfClear().
  std::atomic<SequenceNumber> notify_limit_{0};
};

}  // namespace ROCKSDB_NAMESPACE
