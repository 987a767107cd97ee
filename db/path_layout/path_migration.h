//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "db/path_layout/migration_pacer.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/path_migration.h"

namespace ROCKSDB_NAMESPACE {

// The part of MigratePaths() that knows no DB: runs jobs that move misplaced
// files, one after the other and at a limited rate, until none is left, and
// reports the progress.
//
// It asks what is left again after each job, and from time to time while it
// waits, so it need not know what else happens: jobs of others may move files,
// too, and jobs that began with the former layout may add misplaced ones. It
// does not end before these have ended, and it looks once more afterwards.
//
// Not thread-safe.
class PathMigration {
 public:
  // The files that are left to move.
  struct Left {
    uint64_t files = 0;
    uint64_t bytes = 0;
    // No job is needed any more.
    bool is_done = false;
  };

  struct Job {
    uint64_t bytes_written = 0;
    // There was no job: other jobs have all files that it might have moved. The
    // next attempt is made after a pause.
    bool is_busy = false;
    // Why there are misplaced files that neither this job nor one that follows
    // it can move for now; OK if there are none.
    Status stuck;
  };

  // The interface to the DB. The thread of Run() makes all calls.
  class Host {
   public:
    virtual ~Host() = default;

    virtual uint64_t NowMicros() = 0;
    // Waits for a moment, or until something may have changed.
    virtual void WaitAMoment() = 0;
    virtual Left Look() = 0;
    // Returns true if a job that began before the layout was set is running: it
    // may add files by the former one.
    virtual bool HasOlderJobs() = 0;
    // Returns true while no job may begin, because work in the background is
    // paused.
    virtual bool IsPaused() = 0;
    // Returns an error if the migration has to stop.
    virtual Status CheckToGoOn() = 0;
    // Runs one job that moves misplaced files, and waits for its end.
    virtual Status RunJob(Job* job) = 0;
    // Returns where the misplaced files are, for messages.
    virtual std::string LeftText() = 0;
    virtual void OnProgress(const MigratePathsProgress& progress) = 0;
  };

  // max_bytes_per_second: see MigratePathsOptions.
  // REQUIRES: host outlives this object.
  PathMigration(Host* host, uint64_t max_bytes_per_second);
  PathMigration(const PathMigration&) = delete;
  PathMigration& operator=(const PathMigration&) = delete;

  // Runs until nothing is left, or until it has to stop. An error says how much
  // is left. To be called once.
  Status Run();

  const MigratePathsProgress& progress() const { return progress_; }

 private:
  enum class Next { kDone, kWait, kJob };

  // Begins the count.
  void Start();
  // Decides what to do.
  Next NextStep();
  // Waits for a moment. Other jobs move files meanwhile, so it asks from time
  // to time what is left.
  void Wait();
  Status RunJob();
  // Asks what is left, and computes the progress.
  void Update();
  // Returns `s` with what is left in its message.
  Status WithRest(const Status& s);

  Host* const host_;
  MigrationPacer pacer_;
  MigratePathsProgress progress_;
  uint64_t start_micros_ = 0;
  bool is_done_ = false;
  // Job::is_busy of the last job; false when it is time for the next attempt.
  bool is_busy_ = false;
  // The last job was stuck although no older one ran after it.
  bool was_stuck_alone_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
