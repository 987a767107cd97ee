//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>

#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The jobs of one column family that have changed, or are about to change, what
// its SST files say, and have yet to change what the address map finds by a key
// alone: a merge has consumed a direct value, a filter has dropped or changed
// it, or its file is deleted. Such a job is *unsettled* from before its edit
// can be committed until the names of these values were demoted.
//
// Why it matters. While a job is unsettled, a reader of its edit still finds
// the old direct value by the key. The reader is right nonetheless, as every
// entry that the job has put above the value keeps its sequence number. The
// next job has no such care: if it set that number to zero, dropped a tombstone
// that stands over the value, made another value of the key direct, or gave an
// ingested file the sequence number zero, the old value would be read.
//
// Invariants:
// * A compaction, an ingestion or a deletion of files that builds on an edit
//   begins only after the job of that edit is settled
//   (DBImpl::WaitForSettledMap()).
// * If the names of a job could not be demoted, no such job succeeds any more:
//   failure() says why, until the DB is opened again and its map is built from
//   the files.
//
// Thread-safe.
class UnsettledMapJobs {
 public:
  UnsettledMapJobs() = default;
  UnsettledMapJobs(const UnsettledMapJobs&) = delete;
  UnsettledMapJobs& operator=(const UnsettledMapJobs&) = delete;

  // Is unsettled for as long as it lives.
  class Job {
   public:
    // jobs: outlives this.
    // REQUIRES: the edit of the job is not committed, and not yet handed to
    // VersionSet::LogAndApply().
    explicit Job(UnsettledMapJobs* jobs) : jobs_(jobs), id_(jobs->Begin()) {}
    // Threads that wait in DBImpl::WaitForSettledMap() are woken by the caller.
    ~Job() { jobs_->End(id_); }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

   private:
    UnsettledMapJobs* const jobs_;
    const uint64_t id_;
  };

  // The number of jobs that have begun, which is the id of the last one.
  uint64_t NumBegun() const { return num_begun_.load(); }
  // Is one of the first `n` jobs unsettled?
  bool HasAnyOfFirst(uint64_t n) const;

  // For readers that keep what they have read for others: true if no job is
  // unsettled. *as_of: what WasSettledSince() wants. Takes no lock.
  bool IsSettled(uint64_t* as_of) const {
    const uint64_t ended = num_ended_.load();
    *as_of = num_begun_.load();
    return *as_of == ended;
  }
  // True if no job has begun since the call of IsSettled() that gave `as_of`.
  bool WasSettledSince(uint64_t as_of) const { return NumBegun() == as_of; }

  // The names of a job could not be demoted. The first failure counts.
  void Fail(const Status& s);
  Status failure() const;

 private:
  uint64_t Begin();
  void End(uint64_t id);

  std::atomic<uint64_t> num_begun_{0};
  std::atomic<uint64_t> num_ended_{0};
  mutable std::mutex mutex_;
  std::set<uint64_t> unsettled_;
  Status failure_;
};

}  // namespace ROCKSDB_NAMESPACE
