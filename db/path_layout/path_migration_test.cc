//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_migration.h"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "db/path_layout/migration_pacer.h"
#include "db/path_layout/path_migration_state.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kSecond = 1000000;

// A source of jobs with a clock of its own. A job moves the first of the files,
// and writes as many bytes.
class FakeHost : public PathMigration::Host {
 public:
  explicit FakeHost(std::deque<uint64_t> files) : files_(std::move(files)) {}
  ~FakeHost() override {
    stop_.PermitUncheckedError();
    fail_.PermitUncheckedError();
    stuck_.PermitUncheckedError();
  }

  uint64_t NowMicros() override { return now_; }
  void WaitAMoment() override {
    ++num_waits_;
    now_ += kSecond / 10;
    if (num_waits_ == waits_of_other_job_) {
      files_.clear();
    }
    if (num_waits_ == waits_of_pause_) {
      is_paused_ = false;
    }
    if (num_waits_ == waits_of_older_job_) {
      has_older_job_ = false;
      files_.insert(files_.end(), of_older_job_.begin(), of_older_job_.end());
    }
  }
  PathMigration::Left Look() override {
    PathMigration::Left left;
    for (const uint64_t size : files_) {
      ++left.files;
      left.bytes += size;
    }
    left.is_done = files_.empty();
    return left;
  }
  bool HasOlderJobs() override {
    if (ends_when_asked_) {
      ends_when_asked_ = false;
      stuck_ = Status::OK();
      files_.insert(files_.end(), of_older_job_.begin(), of_older_job_.end());
    }
    return has_older_job_;
  }
  bool IsPaused() override { return is_paused_; }
  Status CheckToGoOn() override { return stop_; }
  Status RunJob(PathMigration::Job* job) override {
    EXPECT_FALSE(is_paused_);
    // Earlier writes have been paid for.
    if (rate_ > 0) {
      EXPECT_LE(written_ * kSecond, rate_ * now_);
    }
    now_ += job_micros_;
    if (!fail_.ok()) {
      return fail_;
    }
    if (num_waits_ < waits_while_busy_) {
      ++num_busy_;
      job->is_busy = true;
      return Status::OK();
    }
    if (!stuck_.ok()) {
      job->stuck = stuck_;
      return Status::OK();
    }
    job->bytes_written = files_.front();
    written_ += files_.front();
    files_.pop_front();
    if (files_.size() == stop_at_) {
      stop_ = Status::ShutdownInProgress();
    }
    return Status::OK();
  }
  std::string LeftText() override { return " somewhere"; }
  void OnProgress(const MigratePathsProgress& progress) override {
    EXPECT_GE(progress.bytes_moved, last_.bytes_moved);
    EXPECT_GE(progress.micros, last_.micros);
    EXPECT_EQ(progress.bytes_left, Look().bytes);
    last_ = progress;
    ++num_reports_;
  }

  std::deque<uint64_t> files_;
  std::vector<uint64_t> of_older_job_;
  uint64_t rate_ = 0;
  uint64_t now_ = 0;
  uint64_t job_micros_ = 0;
  uint64_t written_ = 0;
  int num_waits_ = 0;
  // When a job of others has moved all files.
  int waits_of_other_job_ = 0;
  // Until then jobs of others have all files.
  int waits_while_busy_ = 0;
  int num_busy_ = 0;
  int waits_of_pause_ = 0;
  int waits_of_older_job_ = 0;
  bool is_paused_ = false;
  bool has_older_job_ = false;
  // An older job ends right before the migration asks for one.
  bool ends_when_asked_ = false;
  size_t stop_at_ = SIZE_MAX;
  Status stop_;
  Status fail_;
  Status stuck_;
  MigratePathsProgress last_;
  int num_reports_ = 0;
};

}  // namespace

TEST(MigrationPacerTest, JobsArePaidForBeforeTheNextOneBegins) {
  MigrationPacer pacer(1000);
  EXPECT_FALSE(pacer.MustWait(0));
  pacer.Charge(500, /*start=*/0);
  EXPECT_TRUE(pacer.MustWait(kSecond / 2 - 1));
  EXPECT_FALSE(pacer.MustWait(kSecond / 2));
  // Idle time earns nothing.
  pacer.Charge(1000, /*start=*/10 * kSecond);
  EXPECT_TRUE(pacer.MustWait(11 * kSecond - 1));
  EXPECT_FALSE(pacer.MustWait(11 * kSecond));
  // A job that was slower than the limit has been paid for when it ends.
  pacer.Charge(1000, /*start=*/20 * kSecond);
  EXPECT_FALSE(pacer.MustWait(22 * kSecond));
}

TEST(MigrationPacerTest, Extremes) {
  MigrationPacer unlimited(0);
  unlimited.Charge(UINT64_MAX, 1);
  EXPECT_FALSE(unlimited.MustWait(0));
  MigrationPacer slow(1);
  slow.Charge(UINT64_MAX, 1);
  EXPECT_TRUE(slow.MustWait(uint64_t{1} << 60));
  MigrationPacer fast(UINT64_MAX);
  fast.Charge(1, 7);
  EXPECT_FALSE(fast.MustWait(7));
}

TEST(PathMigrationTest, NothingToDo) {
  FakeHost host({});
  PathMigration migration(&host, 0);
  ASSERT_OK(migration.Run());
  EXPECT_EQ(0, migration.progress().jobs);
  EXPECT_EQ(0, migration.progress().bytes_at_start);
  EXPECT_GT(host.num_reports_, 0);
}

TEST(PathMigrationTest, RunsJobsUntilNothingIsLeft) {
  FakeHost host({10, 20, 30});
  host.job_micros_ = kSecond;
  PathMigration migration(&host, 0);
  ASSERT_OK(migration.Run());
  const MigratePathsProgress& progress = migration.progress();
  EXPECT_EQ(3, progress.files_at_start);
  EXPECT_EQ(60, progress.bytes_at_start);
  EXPECT_EQ(60, progress.bytes_moved);
  EXPECT_EQ(60, progress.bytes_written);
  EXPECT_EQ(0, progress.bytes_left);
  EXPECT_EQ(0, progress.files_left);
  EXPECT_EQ(3, progress.jobs);
  EXPECT_EQ(3 * kSecond, progress.micros);
  EXPECT_EQ(20, progress.BytesPerSecond());
  EXPECT_EQ(0, progress.SecondsLeft());
  EXPECT_EQ(0, host.num_waits_);
}

// The host checks that no job begins before the bytes of all jobs before it are
// granted.
TEST(PathMigrationTest, RateIsKept) {
  FakeHost host({1000, 10, 3000, 500, 500});
  host.rate_ = 1000;
  host.job_micros_ = kSecond / 4;
  PathMigration migration(&host, host.rate_);
  ASSERT_OK(migration.Run());
  EXPECT_EQ(5010, host.written_);
  // It waits no longer than it must, except for the end of a moment.
  EXPECT_LE(host.now_, 6 * kSecond);
}

TEST(PathMigrationTest, WaitsOutAPause) {
  FakeHost host({10});
  host.is_paused_ = true;
  host.waits_of_pause_ = 3;
  PathMigration migration(&host, 0);
  ASSERT_OK(migration.Run());
  EXPECT_EQ(3, host.num_waits_);
  EXPECT_EQ(1, migration.progress().jobs);
}

TEST(PathMigrationTest, MovesWhatOlderJobsAdd) {
  FakeHost host({10});
  host.has_older_job_ = true;
  host.waits_of_older_job_ = 2;
  host.of_older_job_ = {5, 7};
  PathMigration migration(&host, 0);
  ASSERT_OK(migration.Run());
  EXPECT_EQ(10, migration.progress().bytes_at_start);
  EXPECT_EQ(22, migration.progress().bytes_moved);
  EXPECT_EQ(3, migration.progress().jobs);
  EXPECT_EQ(22, host.last_.bytes_moved);
}

TEST(PathMigrationTest, MovesWhatAnOlderJobAddsAfterTheLastLook) {
  FakeHost host({10});
  host.ends_when_asked_ = true;
  host.of_older_job_ = {5, 7};
  PathMigration migration(&host, 0);
  ASSERT_OK(migration.Run());
  EXPECT_EQ(22, migration.progress().bytes_moved);
  EXPECT_EQ(0, migration.progress().bytes_left);
}

TEST(PathMigrationTest, SeesWhatOtherJobsMoveWhileItWaits) {
  FakeHost host({10, 20});
  host.rate_ = 1;
  host.waits_of_other_job_ = 2;
  PathMigration migration(&host, host.rate_);
  ASSERT_OK(migration.Run());
  // The first job alone has to be paid for in ten seconds.
  EXPECT_LE(host.now_, 2 * kSecond);
  EXPECT_EQ(1, migration.progress().jobs);
  EXPECT_EQ(10, migration.progress().bytes_written);
  EXPECT_EQ(30, migration.progress().bytes_moved);
}

// It does not try all the time.
TEST(PathMigrationTest, WaitsWhileOtherJobsHaveAllFiles) {
  FakeHost host({10, 20});
  host.waits_while_busy_ = 35;
  PathMigration migration(&host, 0);
  ASSERT_OK(migration.Run());
  EXPECT_GT(host.num_busy_, 1);
  EXPECT_LE(host.num_busy_, 5);
  EXPECT_LE(host.now_, 5 * kSecond);
  EXPECT_EQ(2, migration.progress().jobs);
}

TEST(PathMigrationTest, ReportsWhileItWaits) {
  FakeHost host({10, 20});
  host.rate_ = 1;
  PathMigration migration(&host, host.rate_);
  ASSERT_OK(migration.Run());
  EXPECT_GE(host.num_reports_, 10);
}

TEST(PathMigrationTest, StopsBetweenJobs) {
  FakeHost host({10, 20, 30});
  host.stop_at_ = 1;
  PathMigration migration(&host, 0);
  const Status s = migration.Run();
  EXPECT_TRUE(s.IsShutdownInProgress()) << s.ToString();
  EXPECT_NE(s.ToString().find("30 bytes are left to move somewhere"),
            std::string::npos)
      << s.ToString();
  EXPECT_EQ(30, migration.progress().bytes_moved);
  EXPECT_EQ(1, migration.progress().files_left);
}

TEST(PathMigrationTest, StopsWhileItWaits) {
  FakeHost host({10, 20});
  host.stop_ = Status::Incomplete(Status::SubCode::kManualCompactionPaused);
  host.is_paused_ = true;
  PathMigration migration(&host, 0);
  const Status s = migration.Run();
  // The subcode stays.
  EXPECT_TRUE(s.IsManualCompactionPaused()) << s.ToString();
  EXPECT_NE(s.ToString().find("30 bytes"), std::string::npos) << s.ToString();
  EXPECT_EQ(0, host.written_);
}

TEST(PathMigrationTest, ReturnsTheErrorOfAJob) {
  FakeHost host({10, 20});
  host.fail_ = Status::IOError("no device", "/slow");
  PathMigration migration(&host, 0);
  Status s = migration.Run();
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(s.ToString().find("no device: /slow; "), std::string::npos)
      << s.ToString();
  EXPECT_NE(s.ToString().find("30 bytes"), std::string::npos) << s.ToString();
}

TEST(PathMigrationTest, StuckJobsEndIt) {
  FakeHost host({10});
  host.stuck_ = Status::Incomplete("snapshots");
  // As long as older jobs run, they may be the reason.
  host.has_older_job_ = true;
  host.waits_of_older_job_ = 2;
  PathMigration migration(&host, 0);
  const Status s = migration.Run();
  EXPECT_TRUE(s.IsIncomplete()) << s.ToString();
  EXPECT_NE(s.ToString().find("snapshots"), std::string::npos) << s.ToString();
  EXPECT_EQ(2, host.num_waits_);
  EXPECT_EQ(0, migration.progress().jobs);
}

// The obstacle of the job is gone when the migration asks for older jobs.
TEST(PathMigrationTest, StuckJobsAreRepeatedOnce) {
  FakeHost host({10});
  host.stuck_ = Status::Incomplete("a flush");
  host.ends_when_asked_ = true;
  PathMigration migration(&host, 0);
  ASSERT_OK(migration.Run());
  EXPECT_EQ(1, migration.progress().jobs);
  EXPECT_EQ(10, migration.progress().bytes_moved);
}

TEST(PathMigrationStateTest, Values) {
  PathMigrationState state;
  std::map<std::string, std::string> values = state.ToMap(/*now_nanos=*/0);
  EXPECT_EQ("0", values["running"]);
  EXPECT_EQ("0", values["bytes-left"]);
  EXPECT_EQ("0", values["seconds-left"]);
  state.is_running = true;
  state.progress.bytes_at_start = 100;
  state.progress.bytes_left = 41;
  values = state.ToMap(/*now_nanos=*/0);
  EXPECT_EQ("1", values["running"]);
  EXPECT_EQ("100", values["bytes-at-start"]);
  EXPECT_EQ("41", values["bytes-left"]);
  // Nothing was moved yet.
  EXPECT_EQ(0, values.count("seconds-left"));
  state.progress.bytes_moved = 60;
  state.progress.micros = 3 * kSecond;
  values = state.ToMap(/*now_nanos=*/0);
  EXPECT_EQ("20", values["bytes-per-second"]);
  EXPECT_EQ("3", values["seconds"]);
  EXPECT_EQ("3", values["seconds-left"]);
}

// A job that runs makes no report.
TEST(PathMigrationStateTest, TimeGoesOnWithinAJob) {
  constexpr uint64_t kNanosPerSecond = 1000 * kSecond;
  PathMigrationState state;
  state.is_running = true;
  state.progress.bytes_moved = 60;
  state.progress.bytes_left = 41;
  state.progress.micros = 3 * kSecond;
  state.report_nanos = 500 * kNanosPerSecond;
  std::map<std::string, std::string> values =
      state.ToMap(527 * kNanosPerSecond);
  EXPECT_EQ("30", values["seconds"]);
  EXPECT_EQ("2", values["bytes-per-second"]);
  EXPECT_EQ("21", values["seconds-left"]);
  EXPECT_EQ("41", values["bytes-left"]);
  // The call has ended.
  state.is_running = false;
  state.report_nanos.reset();
  values = state.ToMap(600 * kNanosPerSecond);
  EXPECT_EQ("3", values["seconds"]);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
