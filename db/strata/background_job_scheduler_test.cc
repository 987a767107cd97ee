//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/background_job_scheduler.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/job_context.h"
#include "port/stack_trace.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using Kind = BackgroundJob::Kind;
using Readiness = BackgroundJob::Readiness;

static const std::vector<Kind> kAllKinds = {Kind::kBlobGc, Kind::kRangeSweep,
                                            Kind::kMapRemovals, Kind::kDelta};

// Returns a pointer that stands for family i. The scheduler never dereferences
// it.
static ColumnFamilyData* FamilyAt(size_t i) {
  return reinterpret_cast<ColumnFamilyData*>((i + 1) << 8);
}

static std::string IndexOf(ColumnFamilyData* cfd) {
  return std::to_string((reinterpret_cast<uintptr_t>(cfd) >> 8) - 1);
}

// A clock that stands still and reports sleeps. At 0, where it begins, a wait
// with a time limit ends at once, since the limit is in the past.
class FakeClock : public SystemClockWrapper {
 public:
  explicit FakeClock(std::function<void(uint64_t)> on_sleep)
      : SystemClockWrapper(SystemClock::Default()),
        on_sleep_(std::move(on_sleep)) {}
  const char* Name() const override { return "FakeClock"; }
  uint64_t NowMicros() override { return now_.load(); }
  // Makes waits with a time limit end by a signal only.
  void GoToFuture() { now_.store(target_->NowMicros() + kFuture); }
  void SleepForMicroseconds(int micros) override {
    on_sleep_(static_cast<uint64_t>(micros));
  }

 private:
  static constexpr uint64_t kFuture = uint64_t{24} * 3600 * 1000 * 1000;

  const std::function<void(uint64_t)> on_sleep_;
  std::atomic<uint64_t> now_{0};
};

// Stands for the DB and for a pool whose thread runs when the test calls
// RunThread().
class BackgroundJobSchedulerTest : public testing::Test,
                                   public BackgroundJobScheduler::Host {
 protected:
  // A job that writes its steps to the log of the test.
  class Job : public BackgroundJob {
   public:
    Job(BackgroundJobSchedulerTest* test, Kind kind, ColumnFamilyData* cfd)
        : BackgroundJob(kind, cfd), test_(test) {}
    // Makes a manual job.
    Job(BackgroundJobSchedulerTest* test, Kind kind, ColumnFamilyData* cfd,
        const std::atomic<bool>* canceled)
        : BackgroundJob(kind, cfd, /*is_manual=*/true, canceled), test_(test) {}
    ~Job() override { test_->Log("gone"); }

    Status Run(JobContext* job_context) override {
      test_->mutex_.AssertHeld();
      test_->Log("run " + std::to_string(job_context->job_id));
      // Another thread may have the mutex meanwhile.
      test_->mutex_.Unlock();
      test_->mutex_.Lock();
      if (leaves_file) {
        job_context->manifest_delete_files.emplace_back("file");
      }
      Status s = on_run ? on_run() : Status::OK();
      return s;
    }
    void GiveBack(bool has_run) override {
      test_->mutex_.AssertHeld();
      test_->Log(has_run ? "give back" : "give back unused");
    }
    void AfterRun() override {
      test_->mutex_.AssertHeld();
      test_->Log("after run, " +
                 std::to_string(test_->scheduler_.NumJobs(kind())));
    }
    void AfterPurge() override {
      test_->Log("after purge");
      if (on_purged) {
        on_purged();
      }
    }
    void OnEnd(const Status& s) override {
      test_->mutex_.AssertHeld();
      test_->Log("end" + std::string(s.ok() ? "" : " failed") + ", " +
                 std::to_string(test_->scheduler_.NumJobs(kind())));
    }
    Readiness Prepare() override {
      test_->mutex_.AssertHeld();
      test_->Log("prepare");
      return readiness;
    }
    bool OnManualEnd(const Status& s) override {
      test_->mutex_.AssertHeld();
      test_->Log("manual end" + std::string(s.ok() ? "" : " failed") + ", " +
                 std::to_string(test_->scheduler_.NumJobs(kind())));
      return waits;
    }
    bool MayFindMore() const override {
      test_->mutex_.AssertHeld();
      test_->Log("may find more");
      if (num_finding_nothing == 0) {
        return true;
      }
      --num_finding_nothing;
      return false;
    }

    // Called by Run() with the mutex held.
    std::function<Status()> on_run;
    // Called by AfterPurge().
    std::function<void()> on_purged;
    bool leaves_file = false;
    Readiness readiness = Readiness::kReady;
    bool waits = false;
    // The number of answers of MayFindMore() that are false.
    mutable int num_finding_nothing = 0;

   private:
    BackgroundJobSchedulerTest* const test_;
  };

  // BackgroundJobScheduler::Host
  InstrumentedMutex* mutex() override { return &mutex_; }
  InstrumentedCondVar* cv() override { return &cv_; }
  SystemClock* clock() override { return &clock_; }
  bool IsOpen() const override { return is_open_; }
  bool IsWorkPaused() const override { return work_paused_; }
  bool AreCompactionsPaused() const override { return compactions_paused_; }
  bool RefusesNewJobs() const override { return refuses_new_jobs_; }
  Status StoppingError() const override {
    return stopped_ ? Status::IOError("stopped") : Status::OK();
  }
  bool IsShuttingDown() const override { return shutting_down_; }
  bool AreManualJobsPaused() const override { return manual_paused_; }
  bool AreCompactionsAborted() const override { return aborted_; }
  bool IsDropped(ColumnFamilyData* cfd) const override {
    return dropped_ == cfd;
  }
  void Ref(ColumnFamilyData* cfd) override {
    mutex_.AssertHeld();
    ++refs_[cfd];
    Log("ref " + IndexOf(cfd));
  }
  bool Unref(ColumnFamilyData* cfd) override {
    mutex_.AssertHeld();
    --refs_[cfd];
    Log("unref " + IndexOf(cfd));
    return refs_[cfd] == 0 && dropped_ == cfd;
  }
  int NewJobId() override { return ++last_job_id_; }
  void StartThread(Env::Priority pool, void (*work)(void*), void* job,
                   void (*unschedule)(void*)) override {
    mutex_.AssertHeld();
    queue_.push_back({pool, work, job, unschedule});
  }
  void FindObsoleteFiles(JobContext* job_context) override {
    mutex_.AssertHeld();
    Log("find files");
    job_context->manifest_delete_files.emplace_back("file of a family");
  }
  void PurgeObsoleteFiles(JobContext* job_context) override {
    Log("purge " + std::to_string(job_context->manifest_delete_files.size()));
  }
  Status Run(BackgroundJob* job, JobContext* job_context) override {
    mutex_.AssertHeld();
    return job->Run(job_context);
  }

  struct Queued {
    Env::Priority pool;
    void (*work)(void*);
    void* job;
    void (*unschedule)(void*);
  };

  std::unique_ptr<Job> NewJob(Kind kind, size_t family = 0) {
    return std::make_unique<Job>(
        this, kind, kind == Kind::kMapRemovals ? nullptr : FamilyAt(family));
  }
  Job* Schedule(std::unique_ptr<Job> job,
                Env::Priority pool = Env::Priority::LOW) {
    Job* const result = job.get();
    InstrumentedMutexLock lock(&mutex_);
    EXPECT_TRUE(scheduler_.MayStart(job->kind()));
    scheduler_.Schedule(std::move(job), pool);
    return result;
  }
  bool MayStart(Kind kind) {
    InstrumentedMutexLock lock(&mutex_);
    return scheduler_.MayStart(kind);
  }
  int NumJobs(Kind kind) {
    InstrumentedMutexLock lock(&mutex_);
    return scheduler_.NumJobs(kind);
  }
  bool HasJobs() {
    InstrumentedMutexLock lock(&mutex_);
    return scheduler_.HasJobs();
  }
  bool HasUnpausedJobs() {
    InstrumentedMutexLock lock(&mutex_);
    return scheduler_.HasUnpausedJobs();
  }
  bool HasAbortedJobs() {
    InstrumentedMutexLock lock(&mutex_);
    return scheduler_.HasAbortedJobs();
  }
  // Has a thread of a pool run the first job.
  void RunThread() {
    ASSERT_FALSE(queue_.empty());
    const Queued first = queue_.front();
    queue_.pop_front();
    first.work(first.job);
  }
  // Closes the DB: Env::UnSchedule() is called, and the pool runs the rest.
  void Close() {
    {
      InstrumentedMutexLock lock(&mutex_);
      shutting_down_ = true;
      std::deque<Queued> left;
      for (const Queued& queued : queue_) {
        if (queued.unschedule != nullptr) {
          queued.unschedule(queued.job);
        } else {
          left.push_back(queued);
        }
      }
      queue_ = left;
    }
    while (!queue_.empty()) {
      RunThread();
    }
  }

  void Log(const std::string& what) { log_ += what + "; "; }
  std::string TakeLog() { return std::exchange(log_, ""); }

  InstrumentedMutex mutex_;
  InstrumentedCondVar cv_{&mutex_};
  FakeClock clock_{[this](uint64_t micros) {
    // A thread that backs off lets others have the mutex.
    InstrumentedMutexLock lock(&mutex_);
    Log("sleep " + std::to_string(micros));
  }};
  bool is_open_ = true;
  bool work_paused_ = false;
  bool compactions_paused_ = false;
  bool refuses_new_jobs_ = false;
  bool stopped_ = false;
  bool shutting_down_ = false;
  bool manual_paused_ = false;
  bool aborted_ = false;
  ColumnFamilyData* dropped_ = nullptr;
  std::map<ColumnFamilyData*, int> refs_;
  std::deque<Queued> queue_;
  std::atomic<int> last_job_id_{0};
  std::string log_;
  BackgroundJobScheduler scheduler_{this};
};

TEST_F(BackgroundJobSchedulerTest, StepsOfEachKind) {
  Schedule(NewJob(Kind::kBlobGc, 1));
  ASSERT_EQ("ref 1; ", TakeLog());
  RunThread();
  EXPECT_EQ(
      "run 1; give back; unref 1; after run, 1; after purge; end, 0; gone; ",
      TakeLog());

  // The column family stays until the end.
  Schedule(NewJob(Kind::kRangeSweep, 1));
  RunThread();
  EXPECT_EQ(
      "ref 1; run 2; after run, 1; after purge; give back; unref 1; end, 0; "
      "gone; ",
      TakeLog());

  // The next job may be scheduled before the end.
  Schedule(NewJob(Kind::kMapRemovals), Env::Priority::HIGH);
  ASSERT_EQ(Env::Priority::HIGH, queue_.front().pool);
  RunThread();
  EXPECT_EQ("run 3; give back; after run, 0; after purge; end, 0; gone; ",
            TakeLog());

  Schedule(NewJob(Kind::kDelta, 1));
  RunThread();
  EXPECT_EQ(
      "ref 1; run 4; give back; unref 1; after run, 1; after purge; end, 0; "
      "gone; ",
      TakeLog());
}

TEST_F(BackgroundJobSchedulerTest, FilesAreDeletedWithoutTheMutex) {
  auto job = NewJob(Kind::kDelta);
  job->leaves_file = true;
  Schedule(std::move(job));
  RunThread();
  EXPECT_EQ(
      "ref 0; run 1; give back; unref 0; after run, 1; purge 1; after purge; "
      "end, 0; gone; ",
      TakeLog());
}

TEST_F(BackgroundJobSchedulerTest, CountsAreThoseOfAKind) {
  EXPECT_FALSE(HasJobs());
  Schedule(NewJob(Kind::kBlobGc));
  Schedule(NewJob(Kind::kBlobGc, 1));
  Schedule(NewJob(Kind::kDelta));
  EXPECT_EQ(2, NumJobs(Kind::kBlobGc));
  EXPECT_EQ(0, NumJobs(Kind::kRangeSweep));
  EXPECT_EQ(1, NumJobs(Kind::kDelta));
  EXPECT_TRUE(HasAbortedJobs());
  RunThread();
  EXPECT_EQ(1, NumJobs(Kind::kBlobGc));
  EXPECT_TRUE(HasJobs());
  RunThread();
  EXPECT_TRUE(HasAbortedJobs());
  RunThread();
  EXPECT_FALSE(HasJobs());
  EXPECT_FALSE(HasAbortedJobs());
  // Only those of delta files are aborted with compactions.
  for (const Kind kind : {Kind::kBlobGc, Kind::kRangeSweep}) {
    Schedule(NewJob(kind));
    EXPECT_FALSE(HasAbortedJobs());
    RunThread();
  }
  // The owner counts map removals itself.
  Schedule(NewJob(Kind::kMapRemovals));
  EXPECT_EQ(1, NumJobs(Kind::kMapRemovals));
  EXPECT_FALSE(HasJobs());
  EXPECT_TRUE(HasUnpausedJobs());
  RunThread();
  EXPECT_EQ(0, NumJobs(Kind::kMapRemovals));
  EXPECT_FALSE(HasUnpausedJobs());
}

// A thread that waits until there is no job is woken when removals count no
// more, and does not wait for the rest of the job.
TEST_F(BackgroundJobSchedulerTest, EndOfMapRemovalsIsSignalledEarly) {
  std::atomic<bool> waits{false};
  std::atomic<bool> is_over{false};
  auto job = NewJob(Kind::kMapRemovals);
  job->on_purged = [&] {
    EXPECT_TRUE(WaitUntil([&] { return is_over.load(); }));
  };
  Schedule(std::move(job));
  std::thread pausing([&] {
    InstrumentedMutexLock lock(&mutex_);
    while (scheduler_.HasUnpausedJobs()) {
      waits = true;
      cv_.Wait();
    }
    is_over = true;
  });
  EXPECT_TRUE(WaitUntil([&] { return waits.load(); }));
  RunThread();
  pausing.join();
}

// A manual job takes no thread from those of the background.
TEST_F(BackgroundJobSchedulerTest, ManualJobsAreOutsideOfTheLimitOfThreads) {
  Schedule(NewJob(Kind::kBlobGc));
  Job job(this, Kind::kBlobGc, FamilyAt(0), /*canceled=*/nullptr);
  job.on_run = [&] {
    EXPECT_EQ(2, scheduler_.NumJobs(Kind::kBlobGc));
    EXPECT_EQ(1, scheduler_.NumInBackground(Kind::kBlobGc));
    return Status::OK();
  };
  ASSERT_OK(scheduler_.RunManual(&job));
  EXPECT_EQ(1, NumJobs(Kind::kBlobGc));
  RunThread();
}

TEST_F(BackgroundJobSchedulerTest, JobsStartOnlyIfBackgroundWorkMayRun) {
  const std::vector<bool*> all = {&work_paused_, &compactions_paused_,
                                  &stopped_, &shutting_down_};
  for (const Kind kind : kAllKinds) {
    ASSERT_TRUE(MayStart(kind));
    is_open_ = false;
    EXPECT_FALSE(MayStart(kind));
    is_open_ = true;
    for (bool* const state : all) {
      *state = true;
      EXPECT_FALSE(MayStart(kind));
      *state = false;
    }
    // Removals are no compactions.
    refuses_new_jobs_ = true;
    EXPECT_EQ(kind == Kind::kMapRemovals, MayStart(kind));
    refuses_new_jobs_ = false;
    aborted_ = true;
    EXPECT_EQ(kind != Kind::kDelta, MayStart(kind));
    aborted_ = false;
  }
}

TEST_F(BackgroundJobSchedulerTest, JobsHaveToStop) {
  for (const Kind kind : kAllKinds) {
    const auto background = NewJob(kind);
    std::atomic<bool> canceled{false};
    const Job manual(this, kind, FamilyAt(0), &canceled);
    ASSERT_OK(scheduler_.CheckToStop(*background));
    ASSERT_OK(scheduler_.CheckToStop(manual));

    manual_paused_ = true;
    EXPECT_OK(scheduler_.CheckToStop(*background));
    EXPECT_EQ(Status::SubCode::kManualCompactionPaused,
              scheduler_.CheckToStop(manual).subcode());
    manual_paused_ = false;
    canceled = true;
    EXPECT_OK(scheduler_.CheckToStop(*background));
    EXPECT_EQ(Status::SubCode::kManualCompactionPaused,
              scheduler_.CheckToStop(manual).subcode());
    canceled = false;

    aborted_ = true;
    EXPECT_EQ(kind == Kind::kDelta,
              scheduler_.CheckToStop(*background).IsIncomplete());
    EXPECT_EQ(Status::SubCode::kCompactionAborted,
              scheduler_.CheckToStop(manual).subcode());
    dropped_ = FamilyAt(0);
    // One without a column family goes on.
    EXPECT_EQ(kind != Kind::kMapRemovals,
              scheduler_.CheckToStop(*background).IsColumnFamilyDropped());
    EXPECT_TRUE(scheduler_.CheckToStop(manual).IsColumnFamilyDropped());
    shutting_down_ = true;
    EXPECT_TRUE(scheduler_.CheckToStop(*background).IsShutdownInProgress());
    EXPECT_TRUE(scheduler_.CheckToStop(manual).IsShutdownInProgress());
    aborted_ = shutting_down_ = false;
    dropped_ = nullptr;

    // A running job goes on after a background error. None begins.
    stopped_ = true;
    EXPECT_OK(scheduler_.CheckToStop(*background));
    {
      InstrumentedMutexLock lock(&mutex_);
      EXPECT_TRUE(scheduler_.CheckToStart(*background).IsIOError());
    }
    stopped_ = false;
  }
}

TEST_F(BackgroundJobSchedulerTest, OnlyBlobGcBacksOffAfterAFailure) {
  for (const Kind kind : kAllKinds) {
    auto job = NewJob(kind);
    job->on_run = [] { return Status::IOError("failed"); };
    Schedule(std::move(job));
    RunThread();
    const std::string log = TakeLog();
    EXPECT_NE(std::string::npos, log.find("end failed, 0")) << log;
    const size_t sleep = log.find("sleep 1000000");
    if (kind == Kind::kBlobGc) {
      // The job has given its files back, and counts.
      EXPECT_LT(log.find("unref 0"), sleep) << log;
      EXPECT_LT(sleep, log.find("after run, 1")) << log;
    } else {
      EXPECT_EQ(std::string::npos, sleep) << log;
    }
  }
  // Nothing was wrong.
  for (const Status& s :
       {Status::ShutdownInProgress(), Status::ColumnFamilyDropped()}) {
    auto job = NewJob(Kind::kBlobGc);
    job->on_run = [&] { return s; };
    Schedule(std::move(job));
    RunThread();
    EXPECT_EQ(std::string::npos, TakeLog().find("sleep"));
  }
}

TEST_F(BackgroundJobSchedulerTest, DroppedFamilyIsReleased) {
  for (const Kind kind : {Kind::kBlobGc, Kind::kRangeSweep, Kind::kDelta}) {
    auto owned = NewJob(kind, 3);
    Job* const job = owned.get();
    job->on_run = [&] { return scheduler_.CheckToStart(*job); };
    Schedule(std::move(owned));
    ASSERT_EQ(1, refs_[FamilyAt(3)]);
    dropped_ = FamilyAt(3);
    RunThread();
    EXPECT_EQ(0, refs_[FamilyAt(3)]);
    // Its files are obsolete from then on, and are deleted before the DB may be
    // closed.
    const std::string log = TakeLog();
    const size_t released = log.find("unref 3; ");
    const size_t purged = log.find("find files; purge 1; end failed, 0");
    EXPECT_NE(std::string::npos, purged) << log;
    EXPECT_LT(released, purged) << log;
    EXPECT_EQ(0, NumJobs(kind));
    dropped_ = nullptr;
  }
}

TEST_F(BackgroundJobSchedulerTest, CloseGivesWaitingJobsBack) {
  Schedule(NewJob(Kind::kBlobGc, 0));
  Schedule(NewJob(Kind::kRangeSweep, 1));
  Schedule(NewJob(Kind::kMapRemovals));
  Schedule(NewJob(Kind::kDelta, 2));
  TakeLog();
  Close();
  // Map removals run nevertheless.
  EXPECT_EQ(
      "give back unused; unref 0; gone; give back unused; unref 1; gone; "
      "give back unused; unref 2; gone; "
      "run 1; give back; after run, 0; after purge; end, 0; gone; ",
      TakeLog());
  for (const Kind kind : kAllKinds) {
    EXPECT_EQ(0, NumJobs(kind));
  }
  for (const auto& [cfd, refs] : refs_) {
    EXPECT_EQ(0, refs);
  }
}

TEST_F(BackgroundJobSchedulerTest, JobsScheduleTheNextOne) {
  auto first = NewJob(Kind::kBlobGc);
  first->on_run = [this] {
    scheduler_.Schedule(NewJob(Kind::kDelta, 1));
    return Status::OK();
  };
  Schedule(std::move(first));
  RunThread();
  ASSERT_EQ(1u, queue_.size());
  EXPECT_EQ(1, NumJobs(Kind::kDelta));
  RunThread();
  EXPECT_FALSE(HasJobs());
}

TEST_F(BackgroundJobSchedulerTest, StepsOfAManualJob) {
  Job job(this, Kind::kBlobGc, FamilyAt(0), /*canceled=*/nullptr);
  job.leaves_file = true;
  ASSERT_OK(scheduler_.RunManual(&job));
  EXPECT_EQ("prepare; run 1; manual end, 0; purge 1; ", TakeLog());
  job.waits = true;
  job.num_finding_nothing = 2;
  ASSERT_OK(scheduler_.RunManual(&job));
  EXPECT_EQ(
      "prepare; run 2; manual end, 0; may find more; may find more; "
      "may find more; purge 1; ",
      TakeLog());
  job.waits = false;
  job.on_run = [] { return Status::IOError("failed"); };
  ASSERT_TRUE(scheduler_.RunManual(&job).IsIOError());
  EXPECT_EQ("prepare; run 3; manual end failed, 0; purge 1; ", TakeLog());
  for (const Readiness readiness :
       {Readiness::kOthersFirst, Readiness::kNothingToDo}) {
    job.readiness = readiness;
    ASSERT_OK(scheduler_.RunManual(&job));
    EXPECT_EQ("prepare; ", TakeLog());
  }
  EXPECT_EQ(0, NumJobs(Kind::kBlobGc));
}

// Buckets that a job in the background has, and manual jobs that want them.
class BackgroundJobSchedulerSeekerTest : public BackgroundJobSchedulerTest {
 protected:
  // Finds nothing before the buckets are free.
  class Seeker : public BackgroundJob {
   public:
    explicit Seeker(BackgroundJobSchedulerSeekerTest* test)
        : BackgroundJob(Kind::kDelta, FamilyAt(0), /*is_manual=*/true),
          test_(test) {}

    Readiness Prepare() override {
      num_ended_ = test_->num_ended_;
      return Readiness::kReady;
    }
    Status Run(JobContext* /*job_context*/) override {
      ++num_turns;
      test_->mutex_.Unlock();
      test_->mutex_.Lock();
      return Status::OK();
    }
    bool OnManualEnd(const Status& /*s*/) override {
      is_done = test_->are_free_;
      return !is_done;
    }
    bool MayFindMore() const override {
      ++num_looks;
      return test_->num_ended_ != num_ended_;
    }

    // Guarded by the mutex.
    int num_turns = 0;
    mutable int num_looks = 0;
    bool is_done = false;

   private:
    BackgroundJobSchedulerSeekerTest* const test_;
    int num_ended_ = 0;
  };

  // As CompactRange() does it.
  void RunToTheEnd(Seeker* job) {
    for (bool is_done = false; !is_done;) {
      EXPECT_OK(scheduler_.RunManual(job));
      InstrumentedMutexLock lock(&mutex_);
      is_done = job->is_done;
    }
  }
  // Waits until all jobs have looked at least n times whether there is more.
  void WaitForLooks(const std::vector<Seeker*>& jobs, int n) {
    for (bool have_looked = false; !have_looked; std::this_thread::yield()) {
      InstrumentedMutexLock lock(&mutex_);
      have_looked =
          std::all_of(jobs.begin(), jobs.end(),
                      [n](const Seeker* job) { return job->num_looks >= n; });
    }
  }
  // Wakes all waiting threads.
  void Signal() {
    InstrumentedMutexLock lock(&mutex_);
    cv_.SignalAll();
  }

  // Guarded by the mutex.
  bool are_free_ = false;
  int num_ended_ = 0;
};

// Jobs that find nothing do not make each other look again: each takes one turn
// before, and one turn after, what they wait for has happened. As no wait ends
// without a signal, the test hangs if one gets lost.
TEST_F(BackgroundJobSchedulerSeekerTest, JobsThatFindNothingSleep) {
  clock_.GoToFuture();
  Seeker a(this);
  Seeker b(this);
  const std::vector<Seeker*> jobs = {&a, &b};
  std::vector<std::thread> threads;
  for (Seeker* const job : jobs) {
    threads.emplace_back([this, job] { RunToTheEnd(job); });
  }
  WaitForLooks(jobs, 1);
  // Other jobs end that have nothing to do with the buckets.
  for (int looks = 2; looks <= 10; ++looks) {
    const auto have_looked = [&] {
      InstrumentedMutexLock lock(&mutex_);
      return a.num_looks >= looks && b.num_looks >= looks;
    };
    while (!have_looked()) {
      Signal();
      std::this_thread::yield();
    }
  }
  {
    InstrumentedMutexLock lock(&mutex_);
    EXPECT_EQ(1, a.num_turns);
    EXPECT_EQ(1, b.num_turns);
    are_free_ = true;
    ++num_ended_;
    cv_.SignalAll();
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const Seeker* const job : jobs) {
    EXPECT_TRUE(job->is_done);
    EXPECT_EQ(2, job->num_turns);
  }
}

// What happens while a job looks is not missed.
TEST_F(BackgroundJobSchedulerSeekerTest, ChangeDuringATurnIsSeen) {
  clock_.GoToFuture();
  class EndsOther : public Seeker {
   public:
    explicit EndsOther(BackgroundJobSchedulerSeekerTest* test, int* num_ended)
        : Seeker(test), count_(num_ended) {}
    Status Run(JobContext* job_context) override {
      *count_ = 1;
      return Seeker::Run(job_context);
    }

   private:
    int* const count_;
  };
  EndsOther job(this, &num_ended_);
  ASSERT_OK(scheduler_.RunManual(&job));
  EXPECT_EQ(1, job.num_turns);
  EXPECT_EQ(1, job.num_looks);
}

// A job that waits for others ends if it has to stop, for which there is no
// signal.
TEST_F(BackgroundJobSchedulerSeekerTest, WaitingJobStops) {
  for (const bool has_error : {false, true}) {
    Seeker job(this);
    std::thread thread([&] { EXPECT_OK(scheduler_.RunManual(&job)); });
    WaitForLooks({&job}, 3);
    {
      InstrumentedMutexLock lock(&mutex_);
      (has_error ? stopped_ : manual_paused_) = true;
    }
    thread.join();
    EXPECT_EQ(1, job.num_turns);
    EXPECT_NOK(scheduler_.RunManual(&job));
    EXPECT_EQ(1, job.num_turns);
    stopped_ = manual_paused_ = false;
  }
}

TEST_F(BackgroundJobSchedulerTest, ManualJobIsCanceled) {
  std::atomic<bool> canceled{false};
  for (const Kind kind : {Kind::kBlobGc, Kind::kDelta}) {
    Job job(this, kind, FamilyAt(0), &canceled);
    job.on_run = [&] {
      canceled = true;  // while it runs
      return scheduler_.CheckToStop(job);
    };
    EXPECT_TRUE(scheduler_.RunManual(&job).IsIncomplete());
    EXPECT_NE(std::string::npos, TakeLog().find("manual end failed, 0"));
    // Before it runs.
    EXPECT_TRUE(scheduler_.RunManual(&job).IsIncomplete());
    EXPECT_EQ("", TakeLog());
    canceled = false;
    shutting_down_ = true;
    EXPECT_TRUE(scheduler_.RunManual(&job).IsShutdownInProgress());
    EXPECT_EQ("", TakeLog());
    shutting_down_ = false;
  }
}

// The thread that has paused background work may be that of the manual job.
TEST_F(BackgroundJobSchedulerTest, ManualJobsRunDuringAPause) {
  int waits = 0;
  EnableCallBack("InstrumentedCondVar::TimedWaitInternal",
                 [&](void*) { ++waits; });
  compactions_paused_ = work_paused_ = true;
  for (const Kind kind : {Kind::kBlobGc, Kind::kDelta}) {
    Job job(this, kind, FamilyAt(0), /*canceled=*/nullptr);
    ASSERT_OK(scheduler_.RunManual(&job));
    EXPECT_NE(std::string::npos, TakeLog().find("prepare; run "));
    job.readiness = Readiness::kNothingToDo;
    ASSERT_OK(scheduler_.RunManual(&job));
    EXPECT_EQ("prepare; ", TakeLog());
  }
  EXPECT_EQ(0, waits);
  DisableCallBacks();
}

// A pause waits for the manual job that is running when it begins, and not for
// the next one of the same call. Close() waits for both.
TEST_F(BackgroundJobSchedulerTest, PauseWaitsForNoLaterManualJob) {
  for (const Kind kind : {Kind::kBlobGc, Kind::kDelta}) {
    compactions_paused_ = false;
    std::atomic<bool> canceled{false};
    Job job(this, kind, FamilyAt(0), &canceled);
    bool waits = false;
    job.on_run = [&] {
      compactions_paused_ = true;
      waits = scheduler_.HasUnpausedJobs();
      EXPECT_TRUE(scheduler_.HasJobs());
      return Status::OK();
    };
    ASSERT_OK(scheduler_.RunManual(&job));
    EXPECT_TRUE(waits);
    EXPECT_FALSE(HasUnpausedJobs());
    EXPECT_NE(std::string::npos, TakeLog().find("prepare; run "));

    ASSERT_OK(scheduler_.RunManual(&job));
    EXPECT_FALSE(waits);
    EXPECT_FALSE(HasUnpausedJobs());
    EXPECT_NE(std::string::npos, TakeLog().find("prepare; run "));

    // A job of the background that has begun before counts all the same.
    compactions_paused_ = false;
    Schedule(NewJob(kind));
    ASSERT_OK(scheduler_.RunManual(&job));
    EXPECT_TRUE(waits);
    RunThread();
    EXPECT_FALSE(HasUnpausedJobs());
    TakeLog();
    canceled = true;
    EXPECT_TRUE(scheduler_.RunManual(&job).IsIncomplete());
    EXPECT_EQ("", TakeLog());
  }
}

// A manual job of delta files asks for a background error before it looks for
// work; a collection of blob files asks when it runs.
TEST_F(BackgroundJobSchedulerTest, ManualJobAsksForTheBackgroundError) {
  stopped_ = true;
  Job deltas(this, Kind::kDelta, FamilyAt(0), /*canceled=*/nullptr);
  EXPECT_TRUE(scheduler_.RunManual(&deltas).IsIOError());
  EXPECT_EQ("", TakeLog());
  Job blobs(this, Kind::kBlobGc, FamilyAt(0), /*canceled=*/nullptr);
  blobs.on_run = [&] { return scheduler_.CheckToStart(blobs); };
  EXPECT_TRUE(scheduler_.RunManual(&blobs).IsIOError());
  EXPECT_EQ("prepare; run 2; manual end failed, 0; ", TakeLog());
}

TEST_F(BackgroundJobSchedulerTest, ManualCallsKeepTheFamily) {
  InstrumentedMutexLock lock(&mutex_);
  EXPECT_FALSE(scheduler_.HasManualCalls());
  scheduler_.BeginManualCall(FamilyAt(0));
  scheduler_.BeginManualCall(FamilyAt(1));
  EXPECT_EQ(1, refs_[FamilyAt(0)]);
  EXPECT_TRUE(scheduler_.HasManualCalls());
  scheduler_.EndManualCall(FamilyAt(0));
  EXPECT_EQ(0, refs_[FamilyAt(0)]);
  EXPECT_TRUE(scheduler_.HasManualCalls());
  scheduler_.EndManualCall(FamilyAt(1));
  EXPECT_FALSE(scheduler_.HasManualCalls());
  EXPECT_EQ("ref 0; ref 1; unref 0; unref 1; ", TakeLog());
  // The last reference to a family that was dropped. Close() waits until the
  // files are deleted.
  scheduler_.BeginManualCall(FamilyAt(1));
  dropped_ = FamilyAt(1);
  scheduler_.EndManualCall(FamilyAt(1));
  EXPECT_EQ("ref 1; unref 1; find files; purge 1; ", TakeLog());
  EXPECT_FALSE(scheduler_.HasManualCalls());
  // A call is no job.
  EXPECT_FALSE(scheduler_.HasJobs());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
