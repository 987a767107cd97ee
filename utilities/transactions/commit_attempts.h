//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The attempts to commit one prepared transaction. RocksDB keeps a transaction
// prepared if Commit() fails, so that it can be rolled back. Then it can also
// be committed again.
//
// Invariants:
// 1. A failed attempt leaves the commit-time batch, and the batch of the
//    transaction, with what they had before it. (A timestamp of the commit
//    stays in the keys; the next attempt replaces it.)
// 2. When WALs are replayed, a transaction whose last attempt has succeeded is
//    applied once to each column family that has not flushed it, whichever
//    records of failed attempts the WALs have. A transaction that was rolled
//    back after a recovery (DB::Resume()) is not applied.
//
// Why a commit marker is not always enough for the second invariant: its write
// can fail after the marker has reached the WAL, for example in the sync.
// Nothing is inserted into memtables then. The recovery from the error
// flushes all column families, which from then on skip that WAL in a replay. A
// replay takes the marker for the end of the transaction nevertheless, so it
// ignores a second one in a later WAL. The next attempt therefore writes the
// whole transaction: a rollback marker, for the case that the first commit
// marker is in no WAL, then the prepared section, and the commit marker. As
// long as a column family does not skip that WAL, this would apply the
// transaction twice there, and a second marker alone would be lost in the
// others as soon as they skip the WAL. So the attempt is refused until all of
// them skip it: the recovery is not over, or writes go on without one, for
// example without DBOptions::paranoid_checks. Log numbers only grow, so what
// was found is still true when the record is written.
//
// Not covered:
// * If the process ends after such a recovery, and before the next Commit() or
//   Rollback(), the replay neither applies the transaction nor leaves it
//   prepared, as in RocksDB.
// * Where writes go on without a recovery, a rollback does not undo a commit
//   marker that is in a WAL, and a column family without entries counts as one
//   that skips the WAL before the MANIFEST says so.
// * With blob direct write (DBImpl::HasAnyBlobDirectWriteColumnFamily()), whose
//   blob references a prepared section cannot have.
//
// Write-prepared and write-unprepared transactions need the first invariant
// alone: Prepare() has inserted their entries, so it does not matter how many
// commit markers there are.
//
// Not thread-safe.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "port/likely.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/write_batch_with_index.h"
#include "rocksdb/write_batch.h"

namespace ROCKSDB_NAMESPACE {

class DBImpl;

class CommitAttempts {
 public:
  CommitAttempts() = default;

  // Begins an attempt, which may append to the batch and mark it.
  void Begin(const WriteBatch& commit_time_batch);
  // Takes back what the attempt has appended and marked.
  // REQUIRES: Begin() was called with the batch.
  void Fail(WriteBatch* commit_time_batch);

  // For DBImpl::WriteImpl(), which sets it to the number of the WAL that may
  // have got the attempt's record. REQUIRES: Begin() was called.
  uint64_t* wal_used() { return &wal_used_; }

  // For write-committed transactions. Sets *writes_whole to whether the attempt
  // has to write the whole transaction. Aborted: not yet. Takes the DB mutex if
  // a failed attempt may be in a WAL, and costs one branch otherwise.
  // REQUIRES: Begin() was called, and the DB mutex is not held.
  Status Plan(DBImpl* db, const std::string& txn_name, bool* writes_whole) {
    if (LIKELY(failed_wal_ == 0)) {
      *writes_whole = false;
      return Status::OK();
    }
    return PlanRepetition(db, txn_name, writes_whole);
  }
  // Replaces what the attempt has appended to the commit-time batch by the
  // whole transaction, for the WAL and for memtables. prepared: the batch that
  // Prepare() has written. commit_ts: the timestamp of the commit, which the
  // keys in `prepared` have; nullptr: there is none.
  Status MakeWhole(WriteBatch* commit_time_batch, const WriteBatch& prepared,
                   const std::string& txn_name, const TxnTimestamp* commit_ts);

  // Gives a transaction the batch back that a failed write has got for a
  // memtable. Does nothing if a memtable has the batch: the error has made the
  // DB refuse writes until it is opened again, see
  // DBImpl::IngestWBWIAsMemtable. Such an open applies the transaction.
  static void TakeBack(std::shared_ptr<WriteBatchWithIndex> ingested,
                       WriteBatchWithIndex* batch);

 private:
  Status PlanRepetition(DBImpl* db, const std::string& txn_name,
                        bool* writes_whole);

  // Where the commit-time batch ended before the attempt.
  SavePoint end_;
  uint64_t wal_used_ = 0;
  // The last WAL that may have the record of a failed attempt; 0: none has.
  uint64_t failed_wal_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
