//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/flush_order_gate.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <functional>
#include <list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using Request = FlushOrderGate::Request;

// Returns a pointer that stands for family i. The gate never dereferences it.
static ColumnFamilyData* FamilyAt(size_t i) {
  return reinterpret_cast<ColumnFamilyData*>((i + 1) << 8);
}

static size_t IndexOf(ColumnFamilyData* cfd) {
  return (reinterpret_cast<uintptr_t>(cfd) >> 8) - 1;
}

struct Arg {
  ColumnFamilyData* cfd_;
};
using Args = std::vector<Arg>;

// The rules one by one.

class FlushOrderGateTest : public testing::Test, public FlushOrderGate::Host {
 protected:
  static constexpr size_t A = 0, B = 1, C = 2, kPlain = 7;

  bool NeedsOrder(ColumnFamilyData* cfd) const override {
    return IndexOf(cfd) != kPlain;
  }
  bool WouldFlush(ColumnFamilyData* cfd) const override {
    return not_pending_.count(IndexOf(cfd)) == 0;
  }
  bool IsBackgroundWorkStopped() const override { return stopped_; }
  void Enqueue(const Request& request) override {
    EXPECT_FALSE(request.atomic_flush);
    Log("back", request);
  }
  void EnqueueFront(Request&& request) override {
    EXPECT_TRUE(request.atomic_flush);
    Log("front", request);
  }
  void Unref(ColumnFamilyData* cfd) override {
    log_ += "unref " + std::to_string(IndexOf(cfd)) + "; ";
  }

  void Log(const std::string& what, const Request& request) {
    std::set<std::pair<size_t, uint64_t>> sorted;
    for (const auto& [cfd, id] : request.families) {
      sorted.emplace(IndexOf(cfd), id);
    }
    log_ += what;
    for (const auto& [index, id] : sorted) {
      log_ += " " + std::to_string(index) + "#" + std::to_string(id);
    }
    log_ += "; ";
  }

  std::string TakeLog() { return std::exchange(log_, ""); }

  static Request Single(size_t family, uint64_t id,
                        FlushReason reason = FlushReason::kWriteBufferFull) {
    Request r;
    r.flush_reason = reason;
    r.families[FamilyAt(family)] = id;
    return r;
  }

  static Request Atomic(const std::vector<size_t>& families, uint64_t id) {
    Request r;
    r.atomic_flush = true;
    for (size_t f : families) {
      r.families[FamilyAt(f)] = id;
    }
    return r;
  }

  static Args ArgsOf(const std::vector<size_t>& families) {
    Args args;
    for (size_t f : families) {
      args.push_back({FamilyAt(f)});
    }
    return args;
  }

  std::set<size_t> not_pending_;
  bool stopped_ = false;
  std::string log_;
  FlushOrderGate gate_{this};
};

TEST_F(FlushOrderGateTest, OneJobPerFamilyThatNeedsOrder) {
  ASSERT_FALSE(gate_.Park(Single(A, 1)));
  gate_.Enter(ArgsOf({A}));
  ASSERT_FALSE(gate_.Idle());
  ASSERT_TRUE(gate_.Park(Single(A, 2)));
  // Requests of other families are not parked.
  ASSERT_FALSE(gate_.Park(Single(B, 1)));
  gate_.Enter(ArgsOf({B}));
  for (int i = 0; i < 2; ++i) {
    ASSERT_FALSE(gate_.Park(Single(kPlain, 1)));
    gate_.Enter(ArgsOf({kPlain}));
  }
  gate_.Leave(ArgsOf({kPlain}));
  gate_.Leave(ArgsOf({kPlain}));
  gate_.Leave(ArgsOf({B}));
  ASSERT_EQ("", TakeLog());
  gate_.Leave(ArgsOf({A}));
  ASSERT_EQ("back 0#2; unref 0; ", TakeLog());
  ASSERT_TRUE(gate_.Idle());
}

TEST_F(FlushOrderGateTest, JobThatHasLeftHoldsNoOtherBack) {
  gate_.Enter(ArgsOf({A}));
  ASSERT_TRUE(gate_.Park(Single(A, 2)));
  ASSERT_TRUE(gate_.Leave(FamilyAt(A)));
  ASSERT_EQ("back 0#2; unref 0; ", TakeLog());
  ASSERT_TRUE(gate_.Idle());
  gate_.Enter(ArgsOf({A, B}));
  ASSERT_TRUE(gate_.Leave(ArgsOf({A, B})));
  // These families need no order.
  gate_.Enter(ArgsOf({kPlain}));
  ASSERT_FALSE(gate_.Leave(FamilyAt(kPlain)));
  ASSERT_FALSE(gate_.Leave(ArgsOf({kPlain})));
  ASSERT_EQ("", TakeLog());
}

TEST_F(FlushOrderGateTest, OneParkedRequestPerFamily) {
  gate_.Enter(ArgsOf({A, B}));
  ASSERT_TRUE(gate_.Park(Single(A, 2)));
  ASSERT_TRUE(gate_.Park(Single(A, 3)));
  ASSERT_EQ("unref 0; ", TakeLog());
  ASSERT_TRUE(gate_.Park(Single(A, 4, FlushReason::kErrorRecovery)));
  ASSERT_EQ("unref 0; ", TakeLog());
  // The request of an error recovery is not replaced by one that would be
  // dropped later.
  ASSERT_TRUE(gate_.Park(Single(A, 5)));
  ASSERT_EQ("unref 0; ", TakeLog());
  stopped_ = true;
  gate_.Leave(ArgsOf({A, B}));
  ASSERT_EQ("back 0#4; unref 0; ", TakeLog());
}

TEST_F(FlushOrderGateTest, FoldParksRequestsAsAJobDoes) {
  ASSERT_TRUE(gate_.EnterForFold(FamilyAt(A)));
  ASSERT_FALSE(gate_.Idle());
  // The family is busy, so a second fold cannot enter.
  ASSERT_FALSE(gate_.EnterForFold(FamilyAt(A)));
  ASSERT_TRUE(gate_.Park(Single(A, 2)));
  ASSERT_FALSE(gate_.Park(Single(B, 1)));
  // An atomic request does not wait for a family that needs no flush.
  not_pending_.insert(A);
  ASSERT_FALSE(gate_.Park(Atomic({A, B}, 1)));
  not_pending_.clear();
  ASSERT_EQ("", TakeLog());
  gate_.LeaveForFold(FamilyAt(A));
  ASSERT_EQ("back 0#2; unref 0; ", TakeLog());
  ASSERT_TRUE(gate_.Idle());
}

TEST_F(FlushOrderGateTest, FoldParksAtomicRequests) {
  ASSERT_TRUE(gate_.EnterForFold(FamilyAt(B)));
  ASSERT_TRUE(gate_.Park(Atomic({A, B}, 1)));
  ASSERT_TRUE(gate_.Park(Atomic({C}, 2)));
  gate_.LeaveForFold(FamilyAt(B));
  ASSERT_EQ("front 2#2; front 0#1 1#1; ", TakeLog());
  ASSERT_TRUE(gate_.Idle());
}

TEST_F(FlushOrderGateTest, FoldStartsOnlyIfNoFlushRunsOrWaits) {
  gate_.Enter(ArgsOf({A}));
  ASSERT_FALSE(gate_.EnterForFold(FamilyAt(A)));
  // A fold of another family may start.
  ASSERT_TRUE(gate_.EnterForFold(FamilyAt(B)));
  gate_.LeaveForFold(FamilyAt(B));
  // An atomic request waits for A and will need C.
  ASSERT_TRUE(gate_.Park(Atomic({A, C}, 1)));
  ASSERT_FALSE(gate_.EnterForFold(FamilyAt(C)));
  ASSERT_TRUE(gate_.EnterForFold(FamilyAt(B)));
  // The end of a fold releases no request that waits for another family.
  gate_.LeaveForFold(FamilyAt(B));
  ASSERT_EQ("", TakeLog());
  gate_.Leave(ArgsOf({A}));
  ASSERT_EQ("front 0#1 2#1; ", TakeLog());
  ASSERT_TRUE(gate_.EnterForFold(FamilyAt(C)));
  gate_.LeaveForFold(FamilyAt(C));
  ASSERT_TRUE(gate_.Idle());
}

TEST_F(FlushOrderGateTest, RecoveryIsQueuedWhenTheFoldEnds) {
  ASSERT_TRUE(gate_.EnterForFold(FamilyAt(A)));
  ASSERT_TRUE(gate_.Park(Single(A, 4, FlushReason::kErrorRecovery)));
  stopped_ = true;
  gate_.LeaveForFold(FamilyAt(A));
  ASSERT_EQ("back 0#4; unref 0; ", TakeLog());
  ASSERT_TRUE(gate_.Idle());
}

TEST_F(FlushOrderGateTest, StoppedBackgroundWorkDropsAllButTheRecovery) {
  const std::vector<std::pair<FlushReason, bool>> cases = {
      {FlushReason::kWriteBufferFull, false},
      {FlushReason::kManualFlush, false},
      {FlushReason::kCatchUpAfterErrorRecovery, false},
      {FlushReason::kErrorRecovery, true},
      {FlushReason::kErrorRecoveryRetryFlush, true},
  };
  for (const auto& [reason, kept] : cases) {
    stopped_ = false;
    gate_.Enter(ArgsOf({A}));
    ASSERT_TRUE(gate_.Park(Single(A, 2, reason)));
    stopped_ = true;
    gate_.Leave(ArgsOf({A}));
    ASSERT_EQ(kept ? "back 0#2; unref 0; " : "unref 0; ", TakeLog());
    ASSERT_TRUE(gate_.Idle());
  }
  // The error is looked at when the family becomes free, not before.
  gate_.Enter(ArgsOf({A}));
  gate_.Enter(ArgsOf({B}));
  ASSERT_TRUE(gate_.Park(Single(A, 2)));
  gate_.Leave(ArgsOf({B}));
  stopped_ = false;
  gate_.Leave(ArgsOf({A}));
  ASSERT_EQ("back 0#2; unref 0; ", TakeLog());
}

TEST_F(FlushOrderGateTest, AtomicRequestsKeepTheirOrder) {
  gate_.Enter(ArgsOf({A}));
  ASSERT_TRUE(gate_.Park(Atomic({A, B}, 2)));
  ASSERT_TRUE(gate_.Park(Atomic({B}, 3)));
  ASSERT_TRUE(gate_.Park(Atomic({C, kPlain}, 4)));
  gate_.Leave(ArgsOf({A}));
  // Each request goes to the front, so the last one in the log is the first one
  // in the queue.
  ASSERT_EQ("front 2#4 7#4; front 1#3; front 0#2 1#2; ", TakeLog());
  ASSERT_TRUE(gate_.Idle());

  // The requests are taken from the queue in that order.
  ASSERT_FALSE(gate_.Park(Atomic({A, B}, 2)));
  gate_.Enter(ArgsOf({A, B}));
  ASSERT_TRUE(gate_.Park(Atomic({B}, 3)));
  ASSERT_TRUE(gate_.Park(Atomic({C, kPlain}, 4)));
  gate_.Leave(ArgsOf({A, B}));
  ASSERT_EQ("front 2#4 7#4; front 1#3; ", TakeLog());
}

TEST_F(FlushOrderGateTest, AtomicRequestsStayWhileTheFirstCannotStart) {
  gate_.Enter(ArgsOf({A}));
  gate_.Enter(ArgsOf({B}));
  ASSERT_TRUE(gate_.Park(Atomic({A, B}, 2)));
  ASSERT_TRUE(gate_.Park(Atomic({B}, 3)));
  gate_.Leave(ArgsOf({B}));
  ASSERT_EQ("", TakeLog());
  stopped_ = true;
  gate_.Leave(ArgsOf({A}));
  // They are queued, and dropped like all other requests when they are taken
  // from the queue.
  ASSERT_EQ("front 1#3; front 0#2 1#2; ", TakeLog());
}

TEST_F(FlushOrderGateTest, WaitsOnlyForFamiliesThatTheJobWouldFlush) {
  gate_.Enter(ArgsOf({A}));
  not_pending_ = {A};
  ASSERT_FALSE(gate_.Park(Atomic({A, kPlain}, 2)));
  not_pending_ = {};
  ASSERT_TRUE(gate_.Park(Atomic({A, kPlain}, 3)));
  // The job of A has since taken all memtables of A.
  not_pending_ = {A};
  gate_.Enter(ArgsOf({B}));
  gate_.Leave(ArgsOf({B}));
  ASSERT_EQ("front 0#3 7#3; ", TakeLog());
  gate_.Leave(ArgsOf({A}));
  ASSERT_EQ("", TakeLog());
}

// A model of a DB that queues, schedules, runs, commits and rolls back flushes
// as DBImpl does, in all orders or in random ones.

// Makes the choices of one run: random ones, or such that repeated runs go
// through all combinations.
class Chooser {
 public:
  explicit Chooser(uint32_t seed) : rnd_(seed) {}
  Chooser() : rnd_(0), exhaustive_(true) {}

  size_t Choose(size_t n) {
    assert(n > 0);
    if (!exhaustive_) {
      return rnd_.Uniform(static_cast<int>(n));
    }
    if (depth_ == path_.size()) {
      path_.emplace_back(0, n);
    }
    EXPECT_EQ(path_[depth_].second, n);
    return path_[depth_++].first;
  }

  // Moves to the next combination. Returns false after the last one.
  bool Next() {
    while (!path_.empty() && path_.back().first + 1 == path_.back().second) {
      path_.pop_back();
    }
    depth_ = 0;
    if (path_.empty()) {
      return false;
    }
    ++path_.back().first;
    return true;
  }

 private:
  Random rnd_;
  const bool exhaustive_ = false;
  std::vector<std::pair<size_t, size_t>> path_;
  size_t depth_ = 0;
};

enum class FailureKind {
  // The memtables are given back and no background error is set.
  kSilent,
  // Background work stops until a recovery has flushed everything.
  kStopUntilRecovery,
};

struct Config {
  size_t families = 2;
  std::set<size_t> in_order = {0, 1};
  bool atomic = false;
  // If true, a job releases the DB mutex before it picks its memtables.
  bool late_pick = false;
  // If true, an atomic request names all families with data, as in RocksDB;
  // otherwise it names only the families that were just switched.
  bool select_all = true;
  int max_flushes = 2;
  int writes = 3;
  int drops = 0;
  int failures = 0;
  FailureKind failure_kind = FailureKind::kSilent;
};

class FakeDB : public FlushOrderGate::Host {
 public:
  FakeDB(const Config& config, Chooser* chooser)
      : config_(config),
        chooser_(chooser),
        families_(config.families),
        fail_budget_(config.failures),
        drop_budget_(config.drops) {}

  // Runs until no step is possible.
  void Run() {
    while (Step()) {
      CheckInvariants();
      if (testing::Test::HasFailure()) {
        return;
      }
    }
    // No thread waits forever and no request or memtable was left behind.
    EXPECT_TRUE(jobs_.empty()) << "deadlock";
    EXPECT_EQ(0, scheduled_);
    EXPECT_FALSE(recovering_);
    if (config_.failure_kind == FailureKind::kSilent) {
      // As in RocksDB, the memtables of a failed flush are flushed with the
      // next flush.
      fail_budget_ = 0;
      for (int round = 0; round < config_.writes; ++round) {
        RequestAll(FlushReason::kManualFlush);
        MaybeSchedule();
        while (Step() && !testing::Test::HasFailure()) {
          CheckInvariants();
        }
      }
    }
    EXPECT_TRUE(gate_.Idle());
    EXPECT_TRUE(queue_.empty());
    EXPECT_EQ(0, unscheduled_);
    for (const Family& f : families_) {
      EXPECT_TRUE(f.dropped || f.imm.empty()) << "a memtable was forgotten";
      EXPECT_EQ(f.dropped ? 0 : 1, f.refs);
    }
  }

  int parked() const { return parked_total_; }
  int failed() const { return failed_total_; }

  bool NeedsOrder(ColumnFamilyData* cfd) const override {
    EXPECT_GT(FamilyOf(cfd).refs, 0);
    return config_.in_order.count(IndexOf(cfd)) > 0;
  }
  bool WouldFlush(ColumnFamilyData* cfd) const override {
    EXPECT_GT(FamilyOf(cfd).refs, 0);
    return !FamilyOf(cfd).dropped && IsFlushPending(FamilyOf(cfd));
  }
  bool IsBackgroundWorkStopped() const override { return stopped_; }
  void Enqueue(const Request& request) override {
    EXPECT_FALSE(request.atomic_flush);
    EnqueuePendingFlush(request);
  }
  void EnqueueFront(Request&& request) override {
    EXPECT_TRUE(request.atomic_flush);
    ++unscheduled_;
    --parked_atomic_;
    queue_.push_front(std::move(request));
  }
  void Unref(ColumnFamilyData* cfd) override {
    EXPECT_GT(FamilyOf(cfd).refs, 0);
    --FamilyOf(cfd).refs;
  }

 private:
  struct Job;

  struct Memtable {
    uint64_t id;
    // Memtables with the same cut must be committed together.
    uint64_t cut;
    Job* picked_by;
    bool completed;
  };

  struct Family {
    std::list<Memtable> imm;  // Oldest first.
    uint64_t next_id = 1;
    int refs = 1;
    bool queued = false;
    bool dropped = false;
  };

  enum class Stage { kEntered, kPicked, kLeft };

  struct Job {
    Stage stage = Stage::kEntered;
    Request request;
    Args args;
    std::vector<ColumnFamilyData*> not_to_flush;
    bool for_recovery = false;
  };

  Family& FamilyOf(ColumnFamilyData* cfd) { return families_[IndexOf(cfd)]; }
  const Family& FamilyOf(ColumnFamilyData* cfd) const {
    return families_[IndexOf(cfd)];
  }

  static bool IsFlushPending(const Family& f) {
    return std::any_of(f.imm.begin(), f.imm.end(), [](const Memtable& m) {
      return m.picked_by == nullptr;
    });
  }

  static bool IsRecoveryReason(FlushReason reason) {
    return reason == FlushReason::kErrorRecovery ||
           reason == FlushReason::kErrorRecoveryRetryFlush;
  }

  // Requests.

  // Returns a memtable ID with the number of the request in its upper half.
  uint64_t MaxId(const Family& f) const {
    return (num_requests_ << 32) | (f.imm.empty() ? 0 : f.imm.back().id);
  }
  static uint64_t NumberOf(const Request& r) {
    return r.families.begin()->second >> 32;
  }
  static uint64_t MemtableId(uint64_t max_id) { return max_id & 0xffffffffu; }

  bool EnqueuePendingFlush(const Request& request) {
    if (request.families.empty()) {
      return false;
    }
    if (!request.atomic_flush) {
      Family& f = FamilyOf(request.families.begin()->first);
      EXPECT_GT(f.refs, 0);
      if (f.queued || !IsFlushPending(f)) {
        return false;
      }
      f.queued = true;
    }
    for (const auto& [cfd, id] : request.families) {
      ++FamilyOf(cfd).refs;
    }
    ++unscheduled_;
    queue_.push_back(request);
    return true;
  }

  void RequestSingle(size_t i, FlushReason reason) {
    if (families_[i].dropped) {
      return;
    }
    ++num_requests_;
    Request r;
    r.flush_reason = reason;
    r.atomic_flush = config_.atomic;
    r.families[FamilyAt(i)] = MaxId(families_[i]);
    EnqueuePendingFlush(r);
  }

  void RequestAll(FlushReason reason) {
    if (!config_.atomic) {
      for (size_t i = 0; i < families_.size(); ++i) {
        if (!families_[i].imm.empty()) {
          RequestSingle(i, reason);
        }
      }
      return;
    }
    ++num_requests_;
    Request r;
    r.flush_reason = reason;
    r.atomic_flush = true;
    for (size_t i = 0; i < families_.size(); ++i) {
      if (!families_[i].dropped && !families_[i].imm.empty()) {
        r.families[FamilyAt(i)] = MaxId(families_[i]);
      }
    }
    EnqueuePendingFlush(r);
  }

  void SwitchMemtable(size_t i) {
    Family& f = families_[i];
    f.imm.push_back({f.next_id++, num_cuts_, nullptr, false});
  }

  void Write() {
    ++num_cuts_;
    std::vector<size_t> live;
    for (size_t i = 0; i < families_.size(); ++i) {
      if (!families_[i].dropped) {
        live.push_back(i);
      }
    }
    if (live.empty()) {
      return;
    }
    if (!config_.atomic) {
      const size_t i = live[chooser_->Choose(live.size())];
      SwitchMemtable(i);
      RequestSingle(i, FlushReason::kWriteBufferFull);
    } else {
      // Any subset but the empty one is switched.
      const size_t subset = 1 + chooser_->Choose((1u << live.size()) - 1);
      for (size_t k = 0; k < live.size(); ++k) {
        if (subset & (1u << k)) {
          SwitchMemtable(live[k]);
        }
      }
      if (config_.select_all) {
        RequestAll(FlushReason::kWriteBufferFull);
      } else {
        ++num_requests_;
        Request r;
        r.atomic_flush = true;
        for (size_t k = 0; k < live.size(); ++k) {
          if (subset & (1u << k)) {
            r.families[FamilyAt(live[k])] = MaxId(families_[live[k]]);
          }
        }
        EnqueuePendingFlush(r);
      }
    }
    MaybeSchedule();
  }

  void MaybeSchedule() {
    if (stopped_ && !recovering_) {
      return;
    }
    while (unscheduled_ > 0 && scheduled_ < config_.max_flushes) {
      --unscheduled_;
      ++scheduled_;
      ++not_started_;
    }
  }

  // One background thread.

  // Runs a thread from its start to the point where the job releases the mutex.
  void StartThread() {
    --not_started_;
    if (stopped_ && !recovering_) {
      EndThread();
      return;
    }
    Job job;
    while (!queue_.empty()) {
      Request request = std::move(queue_.front());
      queue_.pop_front();
      if (!request.atomic_flush) {
        Family& f = FamilyOf(request.families.begin()->first);
        EXPECT_TRUE(f.queued);
        f.queued = false;
      }
      if (stopped_ && !IsRecoveryReason(request.flush_reason)) {
        for (const auto& [cfd, id] : request.families) {
          Unref(cfd);
        }
        break;
      }
      const bool must_wait = MustWait(request);
      if (gate_.Park(request)) {
        EXPECT_TRUE(must_wait) << "parked for no reason";
        parked_atomic_ += request.atomic_flush ? 1 : 0;
        ++parked_total_;
        continue;
      }
      EXPECT_FALSE(must_wait);
      for (const auto& [cfd, id] : request.families) {
        if (WouldFlush(cfd)) {
          job.args.push_back({cfd});
        } else {
          job.not_to_flush.push_back(cfd);
        }
      }
      job.request = std::move(request);
      break;
    }
    if (job.args.empty()) {
      for (ColumnFamilyData* cfd : job.not_to_flush) {
        Unref(cfd);
      }
      EndThread();
      return;
    }
    if (job.request.atomic_flush) {
      EXPECT_LT(last_atomic_started_, NumberOf(job.request)) << "out of order";
      last_atomic_started_ = NumberOf(job.request);
    }
    job.for_recovery = IsRecoveryReason(job.request.flush_reason);
    gate_.Enter(job.args);
    jobs_.push_back(std::move(job));
    if (!config_.late_pick) {
      Pick(&jobs_.back());
    }
  }

  // Computes what the gate must decide from the state of the model.
  bool MustWait(const Request& request) const {
    if (request.atomic_flush && parked_atomic_ > 0) {
      return true;
    }
    for (const auto& [cfd, id] : request.families) {
      if (config_.in_order.count(IndexOf(cfd)) > 0 && WouldFlush(cfd) &&
          NumJobs(cfd) > 0) {
        return true;
      }
    }
    return false;
  }

  int NumJobs(ColumnFamilyData* cfd) const {
    int n = 0;
    for (const Job& job : jobs_) {
      for (const Arg& arg : job.args) {
        n += job.stage != Stage::kLeft && arg.cfd_ == cfd;
      }
    }
    return n;
  }

  void Pick(Job* job) {
    job->stage = Stage::kPicked;
    if (stopped_ && !job->for_recovery) {
      return;
    }
    for (const Arg& arg : job->args) {
      bool any = false;
      for (Memtable& m : FamilyOf(arg.cfd_).imm) {
        if (job->request.atomic_flush &&
            m.id > MemtableId(job->request.families[arg.cfd_])) {
          break;
        }
        if (m.picked_by == nullptr) {
          m.picked_by = job;
          any = true;
        } else if (any) {
          break;
        }
      }
    }
  }

  // Returns true if an atomic job may commit, false if it has to wait for other
  // jobs.
  bool CanInstall(const Job& job) const {
    for (const Arg& arg : job.args) {
      const Family& f = FamilyOf(arg.cfd_);
      if (f.dropped || f.imm.empty()) {
        continue;
      }
      const Memtable& oldest = f.imm.front();
      const bool mine =
          std::any_of(f.imm.begin(), f.imm.end(),
                      [&](const Memtable& m) { return m.picked_by == &job; });
      if (mine ? oldest.picked_by != &job
               : oldest.id <= MemtableId(job.request.families.at(arg.cfd_))) {
        return false;
      }
    }
    return true;
  }

  void RollBack(Job* job) {
    for (const Arg& arg : job->args) {
      bool after_mine = false;
      for (Memtable& m : FamilyOf(arg.cfd_).imm) {
        const bool mine = m.picked_by == job;
        if (mine || (after_mine && !config_.atomic && m.completed)) {
          m.picked_by = nullptr;
          m.completed = false;
        }
        after_mine = after_mine || mine;
      }
    }
  }

  void Commit(Job* job) {
    std::set<uint64_t> cuts;
    for (const Arg& arg : job->args) {
      Family& f = FamilyOf(arg.cfd_);
      for (Memtable& m : f.imm) {
        m.completed = m.completed || m.picked_by == job;
      }
      if (f.dropped) {
        RollBackFamily(job, &f);
        continue;
      }
      while (!f.imm.empty() && f.imm.front().completed) {
        cuts.insert(f.imm.front().cut);
        f.imm.pop_front();
      }
    }
    if (!config_.atomic || (config_.late_pick && !AllHaveMaps()) ||
        !config_.select_all) {
      return;
    }
    // A group of memtables is committed as a whole.
    for (const Family& f : families_) {
      for (const Memtable& m : f.imm) {
        EXPECT_TRUE(f.dropped || cuts.count(m.cut) == 0)
            << "cut " << m.cut << " was committed in part";
      }
    }
  }

  static void RollBackFamily(const Job* job, Family* f) {
    for (Memtable& m : f->imm) {
      if (m.picked_by == job) {
        m.picked_by = nullptr;
        m.completed = false;
      }
    }
  }

  bool AllHaveMaps() const {
    return config_.in_order.size() == families_.size();
  }

  void Finish(Job* job, bool ok) {
    if (ok) {
      Commit(job);
    } else {
      RollBack(job);
    }
    gate_.Leave(job->args);
    job->stage = Stage::kLeft;
    for (const Arg& arg : job->args) {
      Unref(arg.cfd_);
    }
    for (ColumnFamilyData* cfd : job->not_to_flush) {
      Unref(cfd);
    }
  }

  void Fail(Job* job) {
    --fail_budget_;
    ++failed_total_;
    if (config_.failure_kind == FailureKind::kStopUntilRecovery) {
      stopped_ = true;
      recovering_ = true;
      if (job->for_recovery) {
        recovery_started_ = false;
      }
    }
    Finish(job, false);
  }

  void EndThread() {
    --scheduled_;
    MaybeSchedule();
  }

  // Recovery from an error.

  bool RecoveryIsDone() const {
    return std::all_of(families_.begin(), families_.end(), [](const Family& f) {
      return f.dropped || f.imm.empty();
    });
  }

  void StartRecovery() {
    recovery_started_ = true;
    RequestAll(FlushReason::kErrorRecoveryRetryFlush);
    MaybeSchedule();
  }

  void EndRecovery() {
    stopped_ = false;
    recovering_ = false;
    recovery_started_ = false;
    RequestAll(FlushReason::kCatchUpAfterErrorRecovery);
    MaybeSchedule();
  }

  // Makes one of all steps that are possible.

  bool Step() {
    std::vector<std::function<void()>> steps;
    if (writes_done_ < config_.writes && !stopped_) {
      steps.emplace_back([this] {
        ++writes_done_;
        Write();
      });
    }
    if (not_started_ > 0) {
      steps.emplace_back([this] { StartThread(); });
    }
    for (auto it = jobs_.begin(); it != jobs_.end(); ++it) {
      Job* job = &*it;
      switch (job->stage) {
        case Stage::kEntered:
          steps.emplace_back([this, job] { Pick(job); });
          break;
        case Stage::kPicked: {
          // After an error of another job, a job that does not belong to the
          // recovery gives up.
          const bool gives_up = stopped_ && !job->for_recovery;
          if (config_.atomic ? CanInstall(*job) : !gives_up) {
            steps.emplace_back([this, job] { Finish(job, true); });
          }
          if (gives_up) {
            steps.emplace_back([this, job] { Finish(job, false); });
          }
          if (fail_budget_ > 0) {
            steps.emplace_back([this, job] { Fail(job); });
          }
          break;
        }
        case Stage::kLeft:
          steps.emplace_back([this, it] {
            jobs_.erase(it);
            EndThread();
          });
          break;
      }
    }
    if (recovering_ && !recovery_started_ && scheduled_ == 0) {
      steps.emplace_back([this] { StartRecovery(); });
    }
    if (recovering_ && recovery_started_ && RecoveryIsDone()) {
      steps.emplace_back([this] { EndRecovery(); });
    }
    if (drop_budget_ > 0) {
      steps.emplace_back([this] {
        --drop_budget_;
        const size_t i = chooser_->Choose(families_.size());
        if (!families_[i].dropped) {
          families_[i].dropped = true;
          --families_[i].refs;
        }
      });
    }
    if (steps.empty()) {
      return false;
    }
    steps[chooser_->Choose(steps.size())]();
    return true;
  }

  void CheckInvariants() {
    int busy = 0;
    for (size_t i = 0; i < families_.size(); ++i) {
      const Family& f = families_[i];
      ColumnFamilyData* const cfd = FamilyAt(i);
      const int num_jobs = NumJobs(cfd);
      if (config_.in_order.count(i) > 0) {
        busy += num_jobs;
        EXPECT_LE(num_jobs, 1) << "two jobs flush one family";
      }
      // All references to the family are counted but those of parked requests.
      int refs = f.dropped ? 0 : 1;
      int in_queue = 0;
      for (const Request& r : queue_) {
        const int n = static_cast<int>(r.families.count(cfd));
        refs += n;
        in_queue += n;
      }
      for (const Job& job : jobs_) {
        if (job.stage != Stage::kLeft) {
          refs += static_cast<int>(job.request.families.count(cfd));
        }
      }
      const int parked = f.refs - refs;
      EXPECT_GE(parked, 0);
      if (!config_.atomic) {
        EXPECT_EQ(f.queued ? 1 : 0, in_queue);
        EXPECT_LE(parked, config_.in_order.count(i) > 0 ? num_jobs : 0)
            << "parked without need, or twice";
      } else {
        EXPECT_LE(parked, parked_atomic_);
      }
      EXPECT_TRUE(parked == 0 || !gate_.Idle());
    }
    EXPECT_EQ(busy == 0, gate_.Idle());
    // Every request in the queue has a thread, or will get one.
    EXPECT_LE(queue_.size(), static_cast<size_t>(unscheduled_ + not_started_));
  }

  const Config config_;
  Chooser* const chooser_;
  std::vector<Family> families_;
  std::deque<Request> queue_;
  std::list<Job> jobs_;
  uint64_t num_requests_ = 0;
  uint64_t num_cuts_ = 0;
  uint64_t last_atomic_started_ = 0;
  int unscheduled_ = 0;
  int scheduled_ = 0;
  int not_started_ = 0;
  int writes_done_ = 0;
  int fail_budget_;
  int drop_budget_;
  int parked_atomic_ = 0;
  int parked_total_ = 0;
  int failed_total_ = 0;
  bool stopped_ = false;
  bool recovering_ = false;
  bool recovery_started_ = false;
  FlushOrderGate gate_{this};
};

static std::string ToString(const Config& c) {
  std::string ordered;
  for (size_t i : c.in_order) {
    ordered += std::to_string(i);
  }
  return std::to_string(c.families) + " families, in order " + ordered +
         (c.atomic ? ", atomic" : "") + (c.late_pick ? ", late pick" : "") +
         (c.select_all ? "" : ", own families only") + ", drops " +
         std::to_string(c.drops) + ", failures " + std::to_string(c.failures) +
         ", kind " + std::to_string(static_cast<int>(c.failure_kind)) +
         ", max_flushes " + std::to_string(c.max_flushes);
}

// The invariants hold in all orders of a few small scenarios.
TEST(FlushOrderGateModelTest, InvariantsHoldInAllOrdersOfSmallScenarios) {
  std::vector<Config> configs;
  for (const bool atomic : {false, true}) {
    for (const std::set<size_t>& ordered :
         std::vector<std::set<size_t>>{{0}, {0, 1}}) {
      for (const FailureKind kind :
           {FailureKind::kSilent, FailureKind::kStopUntilRecovery}) {
        if (atomic && kind == FailureKind::kSilent && ordered.size() < 2) {
          // Jobs of families that need no order may then wait for each other
          // forever, with or without the gate.
          continue;
        }
        Config c;
        c.in_order = ordered;
        c.atomic = atomic;
        c.writes = 2;
        c.failures = 1;
        c.failure_kind = kind;
        configs.push_back(c);
        c.late_pick = true;
        configs.push_back(c);
        c.late_pick = false;
        c.failures = 0;
        c.writes = 3;
        c.max_flushes = 3;
        configs.push_back(c);
      }
    }
  }
  Config drops;
  drops.writes = 2;
  drops.drops = 1;
  drops.failures = 1;
  configs.push_back(drops);
  drops.atomic = true;
  drops.failure_kind = FailureKind::kStopUntilRecovery;
  configs.push_back(drops);

  for (const Config& config : configs) {
    SCOPED_TRACE(ToString(config));
    Chooser chooser;
    uint64_t runs = 0;
    int parked = 0;
    do {
      FakeDB db(config, &chooser);
      db.Run();
      parked += db.parked();
      ++runs;
    } while (!testing::Test::HasFailure() && chooser.Next());
    ASSERT_FALSE(testing::Test::HasFailure()) << "after " << runs << " runs";
    ASSERT_GT(parked, 0);
  }
}

// The invariants hold in random orders of larger scenarios.
TEST(FlushOrderGateModelTest, InvariantsHoldInRandomOrders) {
  int parked = 0;
  int failed = 0;
  for (uint32_t seed = 1; seed <= 30000; ++seed) {
    Random rnd(seed);
    Config c;
    c.families = 1 + rnd.Uniform(4);
    c.in_order.clear();
    for (size_t i = 0; i < c.families; ++i) {
      if (!rnd.OneIn(3)) {
        c.in_order.insert(i);
      }
    }
    c.atomic = rnd.OneIn(2);
    c.late_pick = rnd.OneIn(2);
    c.select_all = !rnd.OneIn(4);
    c.max_flushes = 1 + rnd.Uniform(4);
    c.writes = 1 + rnd.Uniform(20);
    c.drops = rnd.OneIn(4) ? 1 : 0;
    c.failures = rnd.Uniform(4);
    const bool may_be_silent = !c.atomic || c.in_order.size() == c.families;
    c.failure_kind = may_be_silent && rnd.OneIn(2)
                         ? FailureKind::kSilent
                         : FailureKind::kStopUntilRecovery;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + ToString(c));
    Chooser chooser(seed);
    FakeDB db(c, &chooser);
    db.Run();
    ASSERT_FALSE(testing::Test::HasFailure());
    parked += db.parked();
    failed += db.failed();
  }
  ASSERT_GT(parked, 30000);
  ASSERT_GT(failed, 10000);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
