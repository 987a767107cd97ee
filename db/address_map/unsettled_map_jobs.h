//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>

#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The jobs of one column family that have removed direct values from the SST
// files, or are about to do so, while the address map still finds these values
// by the key alone: a merge has consumed a direct value, a filter has dropped
// or changed it, or its file is deleted. Such a job is *unsettled* from before
// its edit can be committed until the names of these values were demoted. Other
// jobs wait for it from the beginning of its commit, as none builds on its edit
// before.
//
// Why it matters: While a job is unsettled, a reader that sees its edit still
// finds the old direct value by the key. The reader's result is correct
// nevertheless, as every entry that the job has put above the value keeps its
// sequence number. Other jobs take no such care: if the next job set that
// sequence number to zero, dropped a tombstone over the value, made another
// value of the key direct, or gave an ingested file the sequence number zero,
// readers would return the old value.
//
// Invariants:
// 1. A compaction, ingestion or deletion of files that builds on an edit begins
//    only after the job of that edit is settled
//    (DBStrata::WaitForSettledMap()).
// 2. If the names of a job could not be demoted, no such job succeeds until the
//    DB is reopened and its map is rebuilt from the files. failure() returns
//    the reason.
// 3. Between BeginCommit() and its end, a job neither calls the application nor
//    waits for the write thread: the application may start one of the jobs that
//    wait, and an ingestion waits while no thread can write.
//
// Thread-safe.
class UnsettledMapJobs {
 public:
  UnsettledMapJobs() = default;
  UnsettledMapJobs(const UnsettledMapJobs&) = delete;
  UnsettledMapJobs& operator=(const UnsettledMapJobs&) = delete;

  // An unsettled job. Its lifetime is the time for which the job is unsettled.
  class Job {
   public:
    // From now on, readers do not cache their results.
    // REQUIRES: jobs outlives this object.
    explicit Job(UnsettledMapJobs* jobs) : jobs_(jobs), id_(jobs->Begin()) {}
    // The caller must then wake the threads that wait in
    // DBStrata::WaitForSettledMap().
    ~Job() { jobs_->End(id_); }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    // From now on, other jobs wait for this one.
    // REQUIRES: called once, before the edit of the job is passed to
    // VersionSet::LogAndApply().
    void BeginCommit() { jobs_->BeginCommit(id_); }

   private:
    UnsettledMapJobs* const jobs_;
    const uint64_t id_;
  };

  // Returns the number of jobs that have begun, which is the id of the last
  // one.
  uint64_t NumBegun() const { return num_begun_.load(); }
  // Returns true if one of the first `n` jobs has begun its commit and is
  // unsettled.
  bool HasAnyOfFirst(uint64_t n) const;

  // Returns true if no job is unsettled. For readers that cache their results
  // for other readers. Lock-free.
  // as_of: receives the argument for WasSettledSince().
  bool IsSettled(uint64_t* as_of) const {
    const uint64_t ended = num_ended_.load();
    *as_of = num_begun_.load();
    return *as_of == ended;
  }
  // Returns true if no job has begun since the call of IsSettled() that
  // returned `as_of`.
  bool WasSettledSince(uint64_t as_of) const { return NumBegun() == as_of; }

  // Records that the names of a job could not be demoted. Only the first
  // failure is kept.
  void Fail(const Status& s);
  Status failure() const;

 private:
  uint64_t Begin();
  void BeginCommit(uint64_t id);
  void End(uint64_t id);

  std::atomic<uint64_t> num_begun_{0};
  std::atomic<uint64_t> num_ended_{0};
  mutable std::mutex mutex_;
  // Unsettled jobs that have begun their commits.
  std::set<uint64_t> committing_;
  Status failure_;
};

}  // namespace ROCKSDB_NAMESPACE
