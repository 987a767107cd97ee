//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_migration.h"

#include <string>

namespace ROCKSDB_NAMESPACE {

namespace {

// While no job may begin, Run() asks what is left when so much time has passed,
// and tries again if other jobs had all files. A look takes the time that the
// list of all files takes, and an attempt writes to LOG.
constexpr uint64_t kLookIntervalMicros = MigrationPacer::kMicrosPerSecond;

}  // namespace

uint64_t MigratePathsProgress::BytesPerSecond() const {
  if (micros == 0) {
    return 0;
  }
  return static_cast<uint64_t>(
      static_cast<double>(bytes_moved) *
      static_cast<double>(MigrationPacer::kMicrosPerSecond) /
      static_cast<double>(micros));
}

uint64_t MigratePathsProgress::SecondsLeft() const {
  if (bytes_left == 0) {
    return 0;
  }
  const uint64_t rate = BytesPerSecond();
  return rate == 0 ? UINT64_MAX : (bytes_left - 1) / rate + 1;
}

PathMigration::PathMigration(Host* host, uint64_t max_bytes_per_second)
    : host_(host), pacer_(max_bytes_per_second) {}

Status PathMigration::Run() {
  Start();
  for (;;) {
    Status s = host_->CheckToGoOn();
    if (!s.ok()) {
      return WithRest(s);
    }
    switch (NextStep()) {
      case Next::kDone:
        host_->OnProgress(progress_);
        return s;
      case Next::kWait:
        Wait();
        break;
      case Next::kJob:
        s = RunJob();
        if (!s.ok()) {
          return WithRest(s);
        }
        break;
    }
  }
}

void PathMigration::Start() {
  start_micros_ = host_->NowMicros();
  const Left left = host_->Look();
  progress_.files_at_start = left.files;
  progress_.bytes_at_start = left.bytes;
  progress_.bytes_left = left.bytes;
  Update();
  host_->OnProgress(progress_);
}

PathMigration::Next PathMigration::NextStep() {
  if (is_done_) {
    if (host_->HasOlderJobs()) {
      return Next::kWait;
    }
    // The last of them may have added files and ended since the last look.
    Update();
    if (is_done_) {
      return Next::kDone;
    }
  }
  return is_busy_ || host_->IsPaused() || pacer_.MustWait(host_->NowMicros())
             ? Next::kWait
             : Next::kJob;
}

void PathMigration::Wait() {
  host_->WaitAMoment();
  if (host_->NowMicros() - start_micros_ >=
      progress_.micros + kLookIntervalMicros) {
    is_busy_ = false;
    Update();
    host_->OnProgress(progress_);
  }
}

Status PathMigration::RunJob() {
  const uint64_t start = host_->NowMicros();
  Job job;
  Status s = host_->RunJob(&job);
  pacer_.Charge(job.bytes_written, start);
  progress_.jobs += job.bytes_written > 0 ? 1 : 0;
  progress_.bytes_written += job.bytes_written;
  is_busy_ = job.is_busy;
  Update();
  host_->OnProgress(progress_);
  job.stuck.PermitUncheckedError();
  if (!s.ok()) {
    // A job that had to stop need not say why.
    const Status stop = host_->CheckToGoOn();
    return stop.ok() ? s : stop;
  }
  const bool is_stuck = !job.stuck.ok() && !is_done_;
  const bool has_older_jobs = is_stuck && host_->HasOlderJobs();
  // An obstacle may be a file that an older job has added, or is about to add.
  // Such a job may have ended since this one looked.
  if (is_stuck && !has_older_jobs && was_stuck_alone_) {
    return job.stuck;
  }
  was_stuck_alone_ = is_stuck && !has_older_jobs;
  if (has_older_jobs) {
    host_->WaitAMoment();
  }
  return s;
}

void PathMigration::Update() {
  const Left left = host_->Look();
  if (left.bytes < progress_.bytes_left) {
    progress_.bytes_moved += progress_.bytes_left - left.bytes;
  }
  progress_.files_left = left.files;
  progress_.bytes_left = left.bytes;
  progress_.micros = host_->NowMicros() - start_micros_;
  is_done_ = left.is_done;
}

Status PathMigration::WithRest(const Status& s) {
  Update();
  host_->OnProgress(progress_);
  std::string text = s.getState() == nullptr ? "" : s.getState();
  text.append(text.empty() ? "" : "; ");
  text.append("the migration of paths has ended: ")
      .append(std::to_string(progress_.bytes_left))
      .append(" bytes are left to move")
      .append(host_->LeftText());
  return Status(s.code(), s.subcode(), s.severity(), text);
}

}  // namespace ROCKSDB_NAMESPACE
