//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Leaders that write more than one group (max_write_groups_per_leader): which
// writers lead, and which are led. Writes, their errors and their order are
// those of RocksDB.

#include "db/write_path/write_group_combiner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "db/db_test_util.h"
#include "db/write_batch_internal.h"
#include "db/write_callback.h"
#include "db/write_thread.h"
#include "rocksdb/convenience.h"
#include "rocksdb/rate_limiter.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/write_buffer_manager.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "util/defer.h"
#include "util/random.h"
#include "utilities/fault_injection_env.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

struct FakeWriter {
  WriteGroupCombiner<FakeWriter> leadership;
};

TEST(WriteGroupCombinerTest, KeepsAtMostTheMaximumOfGroups) {
  const auto lead = [](bool* handed_back) {
    EXPECT_FALSE(*handed_back);
    *handed_back = true;
    return Status::Aborted("led");
  };
  FakeWriter one, two, three;
  for (FakeWriter* writer : {&one, &two, &three}) {
    ASSERT_FALSE(writer->leadership.CanBeLed());
    ASSERT_EQ(writer->leadership.TakeNext(), nullptr);
    writer->leadership.SetLead(&lead, 2);
    ASSERT_TRUE(writer->leadership.CanBeLed());
  }
  bool handed_back = false;
  ASSERT_TRUE(two.leadership.Lead(&handed_back).IsAborted());
  ASSERT_TRUE(handed_back);
  // Without Offer() no group is kept, since a member that leaves the group on
  // behalf of the leader does not offer.
  ASSERT_FALSE(one.leadership.Keep(&two));
  ASSERT_EQ(one.leadership.TakeNext(), nullptr);
  one.leadership.Offer();
  ASSERT_TRUE(one.leadership.Keep(&two));
  ASSERT_EQ(one.leadership.TakeNext(), &two);
  ASSERT_EQ(one.leadership.TakeNext(), nullptr);
  // The leader may write two groups, and that of the second writer is the last.
  two.leadership.Offer();
  ASSERT_FALSE(two.leadership.Keep(&three));
  ASSERT_EQ(two.leadership.TakeNext(), nullptr);
  // After a hand-back the writer's own thread has all of its groups left.
  two.leadership.OnHandBack();
  ASSERT_TRUE(two.leadership.Keep(&three));
}

TEST(WriteGroupCombinerTest, KeepsNoWriterThatCannotBeLed) {
  const auto lead = [](bool*) { return Status::OK(); };
  FakeWriter one, two;
  one.leadership.SetLead(&lead, 64);
  two.leadership.SetLead(static_cast<decltype(&lead)>(nullptr), 64);
  one.leadership.Offer();
  ASSERT_FALSE(one.leadership.Keep(&two));
}

TEST(WriteGroupCombinerTest, KeepsNoWriterByDefault) {
  const auto lead = [](bool*) { return Status::OK(); };
  FakeWriter one, two;
  two.leadership.SetLead(&lead, 1);
  one.leadership.Offer();
  ASSERT_FALSE(one.leadership.Keep(&two));
}

TEST(WriteGroupCombinerTest, ValidationFindsConflicts) {
  DBOptions options;
  ASSERT_EQ(options.max_write_groups_per_leader, 1);
  ASSERT_OK(ValidateWriteLeadership(options));
  options.max_write_groups_per_leader = 64;
  for (bool* other :
       {&options.enable_pipelined_write, &options.unordered_write}) {
    *other = true;
    ASSERT_TRUE(ValidateWriteLeadership(options).IsInvalidArgument());
    options.max_write_groups_per_leader = 1;
    ASSERT_OK(ValidateWriteLeadership(options));
    options.max_write_groups_per_leader = 64;
    *other = false;
  }
}

class DBWriteLeadershipTest : public DBTestBase {
 public:
  DBWriteLeadershipTest()
      : DBTestBase("db_write_leadership_test", /*env_do_fsync=*/false) {}

  ~DBWriteLeadershipTest() override {
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
  }

 protected:
  Options MakeOptions(uint32_t max_groups) {
    Options options = CurrentOptions();
    options.max_write_groups_per_leader = max_groups;
    options.statistics = CreateDBStatistics();
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    return options;
  }

  uint64_t Kept() {
    return TestGetTickerCount(last_options_, WRITE_GROUPS_KEPT);
  }

  // Runs each write in its own thread. The first write is alone in its group,
  // which ends when all others wait, in their order. Needs sync points.
  void RunInOrder(const std::vector<std::function<void()>>& writes) {
    std::atomic<size_t> num_waiting{0};
    std::atomic<bool> first_has_group{false};
    std::atomic<int> groups{0};
    SyncPoint::GetInstance()->SetCallBack(
        "WriteThread::JoinBatchGroup:BeganWaiting",
        [&](void*) { ++num_waiting; });
    SyncPoint::GetInstance()->SetCallBack(
        "WriteThread::ExitAsBatchGroupLeader:Start", [&](void*) {
          if (groups.fetch_add(1) == 0) {
            first_has_group = true;
            EXPECT_TRUE(
                WaitUntil([&] { return num_waiting >= writes.size() - 1; }));
          }
        });
    SyncPoint::GetInstance()->EnableProcessing();
    std::vector<port::Thread> threads;
    for (size_t i = 0; i < writes.size(); ++i) {
      threads.emplace_back(writes[i]);
      EXPECT_TRUE(WaitUntil(
          [&] { return i == 0 ? first_has_group.load() : num_waiting >= i; }));
    }
    for (auto& thread : threads) {
      thread.join();
    }
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
  }
};

// The tests of this fixture determine the order of threads.
class DBWriteLeadershipOrderTest : public DBWriteLeadershipTest {
 protected:
  void SetUp() override {
#ifdef NDEBUG
    GTEST_SKIP() << "Needs sync points";
#endif  // NDEBUG
  }
};

TEST_F(DBWriteLeadershipOrderTest, LeadsNextGroup) {
  for (const uint32_t max_groups : {1, 2, 64}) {
    DestroyAndReopen(MakeOptions(max_groups));
    std::vector<std::function<void()>> writes;
    writes.emplace_back([&] { ASSERT_OK(Put("a", "1")); });
    writes.emplace_back([&] { ASSERT_OK(Put("b", "2")); });
    // This write joins the group of the write before.
    writes.emplace_back([&] { ASSERT_OK(Put("c", "3")); });
    RunInOrder(writes);
    ASSERT_EQ(Kept(), max_groups == 1 ? 0 : 1);
    ASSERT_EQ(Get("a") + Get("b") + Get("c"), "123");
    ASSERT_EQ(dbfull()->GetLatestSequenceNumber(), 3);
    Reopen(MakeOptions(max_groups));
    ASSERT_EQ(Get("a") + Get("b") + Get("c"), "123");
  }
}

// No two of the waiting writes can be in one group.
TEST_F(DBWriteLeadershipOrderTest, LeaderWritesAtMostTheMaximumOfGroups) {
  constexpr int kGroups = 5;
  for (const uint32_t max_groups : {1, 2, 3, 4, 5, 64}) {
    DestroyAndReopen(MakeOptions(max_groups));
    std::vector<std::function<void()>> writes;
    for (int i = 0; i < kGroups; ++i) {
      writes.emplace_back([this, i] {
        WriteOptions options;
        options.disableWAL = i % 2 == 1;
        options.protection_bytes_per_key = i % 4 >= 2 ? 8 : 0;
        WriteBatch batch;
        ASSERT_OK(batch.Merge("k", std::to_string(i)));
        ASSERT_OK(db_->Write(options, &batch));
      });
    }
    RunInOrder(writes);
    const uint64_t leaders = (kGroups + max_groups - 1) / max_groups;
    ASSERT_EQ(Kept(), kGroups - leaders) << max_groups;
    ASSERT_EQ(dbfull()->GetLatestSequenceNumber(), kGroups);
    ASSERT_EQ(Get("k"), "0,1,2,3,4");
  }
}

TEST_F(DBWriteLeadershipOrderTest, SyncAndRateLimitedWritesAreNotLed) {
  Options options = MakeOptions(64);
  DestroyAndReopen(options);
  std::vector<std::function<void()>> writes;
  writes.emplace_back([&] { ASSERT_OK(Put("a", "1")); });
  writes.emplace_back([&] {
    WriteOptions sync;
    sync.sync = true;
    ASSERT_OK(db_->Put(sync, "b", "2"));
  });
  RunInOrder(writes);
  ASSERT_EQ(Kept(), 0);
  writes.resize(1);
  writes.emplace_back([&] {
    WriteOptions limited;
    limited.rate_limiter_priority = Env::IO_USER;
    ASSERT_OK(db_->Put(limited, "c", "3"));
  });
  RunInOrder(writes);
  ASSERT_EQ(Kept(), 0);
  // A sync write may lead others.
  std::swap(writes[0], writes[1]);
  writes.front() = [&] {
    WriteOptions sync;
    sync.sync = true;
    ASSERT_OK(db_->Put(sync, "d", "4"));
  };
  RunInOrder(writes);
  ASSERT_EQ(Kept(), 1);
  ASSERT_EQ(Get("a") + Get("b") + Get("c") + Get("d"), "1234");
}

// A no_slowdown writer must not block, so it never leads for others.
TEST_F(DBWriteLeadershipOrderTest, NoSlowdownWriterIsLedButDoesNotLead) {
  DestroyAndReopen(MakeOptions(64));
  WriteOptions no_slowdown;
  no_slowdown.no_slowdown = true;
  RunInOrder({[&] { ASSERT_OK(db_->Put(no_slowdown, "a", "1")); },
              [&] { ASSERT_OK(Put("b", "2")); }});
  ASSERT_EQ(Kept(), 0);
  RunInOrder({[&] { ASSERT_OK(Put("c", "3")); },
              [&] { ASSERT_OK(db_->Put(no_slowdown, "d", "4")); }});
  ASSERT_EQ(Kept(), 1);
  ASSERT_EQ(Get("a") + Get("b") + Get("c") + Get("d"), "1234");
}

// A flush waits in the queue of writers, too, and cannot be led.
TEST_F(DBWriteLeadershipTest, NoWriteIsLostBesideFlushes) {
  DestroyAndReopen(MakeOptions(64));
  std::atomic<int> writers{0};
  StoppableThreads threads;
  for (int t = 0; t < 4; ++t) {
    threads.Start([&, t] {
      for (int i = 0; !threads.stopped() || i < 2000; ++i) {
        ASSERT_OK(Put("key" + std::to_string(t) + "." + std::to_string(i % 500),
                      std::to_string(i)));
        ++writers;
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(Flush());
  }
  ASSERT_TRUE(WaitUntil([this] { return Kept() > 0; }));
  threads.Stop();
  ASSERT_EQ(dbfull()->GetLatestSequenceNumber(),
            static_cast<SequenceNumber>(writers));
}

class FailingCallback : public WriteCallback {
 public:
  FailingCallback(Status s, bool batching)
      : s_(std::move(s)), batching_(batching) {}
  Status Callback(DB*) override {
    thread_ = std::this_thread::get_id();
    return s_;
  }
  bool AllowWriteBatching() override { return batching_; }
  std::thread::id thread() const { return thread_; }

 private:
  const Status s_;
  const bool batching_;
  std::thread::id thread_;
};

TEST_F(DBWriteLeadershipOrderTest, CallbackRunsInTheLeaderIfItAllowsBatching) {
  for (const bool batching : {false, true}) {
    for (const bool fails : {false, true}) {
      DestroyAndReopen(MakeOptions(64));
      FailingCallback callback(fails ? Status::Busy("no") : Status::OK(),
                               batching);
      std::thread::id first, second;
      Status s;
      RunInOrder({[&] {
                    first = std::this_thread::get_id();
                    ASSERT_OK(Put("a", "1"));
                  },
                  [&] {
                    second = std::this_thread::get_id();
                    WriteBatch batch;
                    ASSERT_OK(batch.Put("b", "2"));
                    s = dbfull()->WriteWithCallback(WriteOptions(), &batch,
                                                    &callback);
                  }});
      ASSERT_EQ(s.IsBusy(), fails) << s.ToString();
      ASSERT_EQ(s.ok(), !fails);
      ASSERT_EQ(Kept(), batching ? 1 : 0);
      ASSERT_EQ(callback.thread(), batching ? first : second);
      ASSERT_EQ(Get("b"), fails ? "NOT_FOUND" : "2");
      ASSERT_EQ(dbfull()->GetLatestSequenceNumber(), fails ? 1 : 2);
      ASSERT_OK(Put("c", "3"));
    }
  }
}

// An error in a group that is led fails its writers only.
TEST_F(DBWriteLeadershipOrderTest, ErrorOfALedGroupFailsItsWritersOnly) {
  const auto fault_env = std::make_unique<FaultInjectionTestEnv>(env_);
  // The DB is closed before the Env is destroyed, also if an assertion fails.
  const Defer close([this] { Close(); });
  Options options = MakeOptions(64);
  options.env = fault_env.get();
  DestroyAndReopen(options);
  Status first, second, third;
  SyncPoint::GetInstance()->SetCallBack(
      "WriteThread::LeadKeptGroups:Lead",
      [&](void*) { fault_env->SetFilesystemActive(false); });
  RunInOrder({[&] { first = Put("a", "1"); }, [&] { second = Put("b", "2"); },
              [&] { third = Put("c", "3"); }});
  ASSERT_OK(first);
  ASSERT_NOK(second);
  ASSERT_NOK(third);
  ASSERT_NOK(Put("d", "4"));
  fault_env->SetFilesystemActive(true);
  Reopen(options);
  ASSERT_EQ(Get("a"), "1");
  ASSERT_EQ(Get("b"), "NOT_FOUND");
  ASSERT_OK(Put("d", "4"));
}

// The leader writes the blobs of the groups that it leads, and the batches
// refer to them.
TEST_F(DBWriteLeadershipOrderTest, LeaderWritesBlobsOfLedGroups) {
  Options options = MakeOptions(64);
  options.enable_blob_files = true;
  options.enable_blob_direct_write = true;
  options.allow_concurrent_memtable_write = false;
  options.min_blob_size = 32;
  DestroyAndReopen(options);
  const auto value = [](int i) { return std::string(100 + i, 'a' + i); };
  constexpr int kGroups = 4;
  std::vector<std::function<void()>> writes;
  for (int i = 0; i < kGroups; ++i) {
    writes.emplace_back([this, i, &value] {
      WriteOptions write_options;
      write_options.disableWAL = i % 2 == 1;
      write_options.protection_bytes_per_key = i % 4 >= 2 ? 8 : 0;
      WriteBatch batch;
      ASSERT_OK(batch.Put("large" + std::to_string(i), value(i)));
      ASSERT_OK(batch.Put("small" + std::to_string(i), "s"));
      ASSERT_OK(db_->Write(write_options, &batch));
    });
  }
  // This write joins the group of the second write.
  writes.emplace_back([this, &value] {
    WriteOptions write_options;
    write_options.disableWAL = true;
    ASSERT_OK(db_->Put(write_options, "large4", value(4)));
  });
  RunInOrder(writes);
  ASSERT_EQ(Kept(), kGroups - 1);
  for (const bool flushed : {false, true}) {
    for (int i = 0; i < kGroups; ++i) {
      ASSERT_EQ(Get("large" + std::to_string(i)), value(i)) << flushed;
      ASSERT_EQ(Get("small" + std::to_string(i)), "s") << flushed;
    }
    ASSERT_EQ(Get("large4"), value(4));
    if (!flushed) {
      ASSERT_OK(Flush());
      Reopen(options);
    }
  }
}

// The WAL of a Prepare() stays if another thread has led the Prepare()'s group.
TEST_F(DBWriteLeadershipOrderTest, WalOfALedPrepareStays) {
  Options options = MakeOptions(64);
  options.create_if_missing = true;
  Close();
  const std::string name = dbname_ + "_txn";
  ASSERT_OK(DestroyDB(name, options));
  std::unique_ptr<TransactionDB> txn_db;
  const auto open = [&] {
    txn_db.reset();
    TransactionDB* db = nullptr;
    ASSERT_OK(TransactionDB::Open(options, TransactionDBOptions(), name, &db));
    txn_db.reset(db);
  };
  open();
  for (const bool leads : {false, true}) {
    // The WAL of the transaction is not the first one.
    ASSERT_OK(txn_db->Put(WriteOptions(), "x", "1"));
    ASSERT_OK(txn_db->Flush(FlushOptions()));
    std::unique_ptr<Transaction> txn(txn_db->BeginTransaction(WriteOptions()));
    ASSERT_OK(txn->SetName("prepared"));
    ASSERT_OK(txn->Put("a", leads ? "1" : "0"));
    ASSERT_OK(txn->Merge("m", "x"));
    const uint64_t kept = TestGetTickerCount(options, WRITE_GROUPS_KEPT);
    WriteOptions without_wal;
    without_wal.disableWAL = true;
    const auto prepare = [&] { ASSERT_OK(txn->Prepare()); };
    const auto put = [&] {
      std::unique_ptr<Transaction> other(txn_db->BeginTransaction(without_wal));
      ASSERT_OK(other->Put("b", "2"));
      ASSERT_OK(other->Commit());
    };
    if (leads) {
      RunInOrder({prepare, put});
    } else {
      RunInOrder({put, prepare});
    }
    ASSERT_EQ(TestGetTickerCount(options, WRITE_GROUPS_KEPT), kept + 1);
    const uint64_t log = txn->GetLogNumber();
    ASSERT_NE(log, 0);
    // No other data needs that WAL.
    ASSERT_OK(txn_db->Flush(FlushOptions()));
    ASSERT_OK(txn_db->Put(WriteOptions(), "x", "2"));
    ASSERT_OK(txn_db->Flush(FlushOptions()));
    VectorWalPtr wals;
    ASSERT_OK(txn_db->GetSortedWalFiles(wals));
    ASSERT_TRUE(std::any_of(wals.begin(), wals.end(), [&](const auto& wal) {
      return wal->LogNumber() == log;
    }));
    txn.reset();
    open();
    std::vector<Transaction*> prepared;
    txn_db->GetAllPreparedTransactions(&prepared);
    ASSERT_EQ(prepared.size(), 1);
    txn.reset(prepared[0]);
    ASSERT_OK(txn->Commit());
    txn.reset();
    std::string value;
    ASSERT_OK(txn_db->Get(ReadOptions(), "a", &value));
    ASSERT_EQ(value, leads ? "1" : "0");
    ASSERT_OK(txn_db->Get(ReadOptions(), "m", &value));
    ASSERT_EQ(value, leads ? "x,x" : "x");
  }
  txn_db.reset();
  ASSERT_OK(DestroyDB(name, options));
}

// All writes succeed in the end if a WriteBufferManager stops writes.
TEST_F(DBWriteLeadershipTest, WritesEndIfAWriteBufferManagerStallsThem) {
  Options options = MakeOptions(64);
  // No other limit stops writes.
  options.max_write_buffer_number = 100;
  options.arena_block_size = 32 << 10;
  options.level0_slowdown_writes_trigger = 1000;
  options.level0_stop_writes_trigger = 1000;
  options.write_buffer_manager = std::make_shared<WriteBufferManager>(
      2 << 20, /*cache=*/nullptr, /*allow_stall=*/true);
  DestroyAndReopen(options);
  constexpr int kThreads = 4;
  constexpr int kMinWrites = 2000;
  // The number of writes of each thread.
  std::array<int, kThreads> num_writes{};
  StoppableThreads threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.Start([&, t] {
      const std::string value(4000, 'a' + t);
      for (int& i = num_writes[t]; i < kMinWrites || !threads.stopped(); ++i) {
        ASSERT_OK(Put(std::to_string(t) + "." + std::to_string(i), value));
      }
    });
  }
  // The threads write until writes were stopped and a group was led.
  const std::string num_stops = WriteStallStatsMapKeys::CauseConditionCount(
      WriteStallCause::kWriteBufferManagerLimit, WriteStallCondition::kStopped);
  ASSERT_TRUE(WaitUntil([&] {
    std::map<std::string, std::string> stalls;
    EXPECT_TRUE(
        db_->GetMapProperty(DB::Properties::kDBWriteStallStats, &stalls));
    const auto stops = stalls.find(num_stops);
    return stops != stalls.end() && stops->second != "0" && Kept() > 0;
  }));
  threads.Stop();
  ASSERT_EQ(dbfull()->GetLatestSequenceNumber(),
            static_cast<SequenceNumber>(
                std::accumulate(num_writes.begin(), num_writes.end(), 0)));
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < num_writes[t]; ++i) {
      ASSERT_EQ(Get(std::to_string(t) + "." + std::to_string(i)),
                std::string(4000, 'a' + t));
    }
  }
}

// While writes are delayed, each writer waits in its own thread.
TEST_F(DBWriteLeadershipOrderTest, DelayedWritersAreNotLed) {
  DestroyAndReopen(MakeOptions(64));
  std::unique_ptr<WriteControllerToken> token =
      dbfull()->TEST_write_controler().GetDelayToken(1 << 30);
  RunInOrder(
      {[&] { ASSERT_OK(Put("a", "1")); }, [&] { ASSERT_OK(Put("b", "2")); }});
  ASSERT_EQ(Kept(), 0);
  token.reset();
  RunInOrder(
      {[&] { ASSERT_OK(Put("a", "1")); }, [&] { ASSERT_OK(Put("b", "2")); }});
  ASSERT_EQ(Kept(), 1);
}

// A leader that has switched a memtable has memory to free and listeners to
// notify. It does not lead, because another writer would wait for that.
TEST_F(DBWriteLeadershipOrderTest, LeaderThatSwitchedAMemtableDoesNotLead) {
  Options options = MakeOptions(64);
  options.write_buffer_size = 64 << 10;
  DestroyAndReopen(options);
  ASSERT_OK(Put("large", std::string(256 << 10, 'x')));
  RunInOrder(
      {[&] { ASSERT_OK(Put("a", "1")); }, [&] { ASSERT_OK(Put("b", "2")); }});
  ASSERT_EQ(Kept(), 0);
  RunInOrder(
      {[&] { ASSERT_OK(Put("a", "1")); }, [&] { ASSERT_OK(Put("b", "2")); }});
  ASSERT_EQ(Kept(), 1);
}

TEST_F(DBWriteLeadershipOrderTest, WriterThatSwitchesTheWalIsNotLed) {
  Options options = MakeOptions(64);
  options.max_total_wal_size = 1000;
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  RunInOrder({[&] { ASSERT_OK(Put("a", std::string(2000, 'x'))); },
              [&] { ASSERT_OK(Put("b", "2")); }});
  // The second write switches the WAL.
  ASSERT_EQ(Kept(), 0);
}

// With one column family the size of the WAL switches nothing.
TEST_F(DBWriteLeadershipOrderTest, LargeWalOfOneFamilyDoesNotMatter) {
  Options options = MakeOptions(64);
  options.max_total_wal_size = 1000;
  DestroyAndReopen(options);
  const auto write = [&] {
    const uint64_t before = Kept();
    RunInOrder({[&] { ASSERT_OK(Put("a", std::string(2000, 'x'))); },
                [&] { ASSERT_OK(Put("b", "2")); }});
    return Kept() - before;
  };
  ASSERT_EQ(write(), 1);
  ASSERT_EQ(write(), 1);
  CreateColumnFamilies({"other"}, options);
  ASSERT_EQ(write(), 0);
  ASSERT_OK(dbfull()->TEST_WaitForFlushMemTable());
  ASSERT_OK(db_->DropColumnFamily(handles_[0]));
  ASSERT_EQ(write(), 1);
}

// If a delay or a stop begins between the offer and the next group, the leader
// hands that group back.
TEST_F(DBWriteLeadershipOrderTest, HandsBackAGroupThatWouldWait) {
  for (const char* when : {"WriteThread::LeadKeptGroups:Lead",
                           "DBStrata::PreprocessLedWrite:BeforeRest"}) {
    DestroyAndReopen(MakeOptions(64));
    std::unique_ptr<WriteControllerToken> token;
    // A delayed write waits in its own thread, and a no_slowdown write fails.
    SyncPoint::GetInstance()->SetCallBack(when, [&](void*) {
      token = dbfull()->TEST_write_controler().GetDelayToken(/*rate=*/1);
    });
    RunInOrder({[&] {
                  ASSERT_OK(Put("a", "1"));
                  ASSERT_NE(token, nullptr);
                  token.reset();
                },
                [&] { ASSERT_OK(Put("b", "2")); },
                [&] { ASSERT_OK(Put("c", "3")); }});
    ASSERT_EQ(Kept(), 0);
    SyncPoint::GetInstance()->SetCallBack(when, [&](void*) {
      token = dbfull()->TEST_write_controler().GetStopToken();
    });
    WriteOptions no_slowdown;
    no_slowdown.no_slowdown = true;
    RunInOrder(
        {[&] { ASSERT_OK(Put("d", "4")); },
         [&] { ASSERT_TRUE(db_->Put(no_slowdown, "e", "5").IsIncomplete()); }});
    token.reset();
    ASSERT_EQ(Get("a") + Get("b") + Get("c") + Get("d"), "1234");
    ASSERT_EQ(Get("e"), "NOT_FOUND");
    // Groups are combined again after the hand-backs.
    RunInOrder(
        {[&] { ASSERT_OK(Put("a", "1")); }, [&] { ASSERT_OK(Put("b", "2")); }});
    ASSERT_GE(Kept(), 1);
  }
}

TEST_F(DBWriteLeadershipOrderTest, HandsBackAGroupThatSwitchesMemtables) {
  Options options = MakeOptions(64);
  options.write_buffer_manager = std::make_shared<WriteBufferManager>(64 << 20);
  DestroyAndReopen(options);
  ASSERT_OK(Put("x", std::string(100 << 10, 'x')));
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::PreprocessLedWrite:BeforeRest",
      [&](void*) { options.write_buffer_manager->SetBufferSize(64 << 10); });
  RunInOrder(
      {[&] { ASSERT_OK(Put("a", "1")); }, [&] { ASSERT_OK(Put("b", "2")); }});
  options.write_buffer_manager->SetBufferSize(64 << 20);
  ASSERT_EQ(Kept(), 0);
  ASSERT_OK(dbfull()->TEST_WaitForFlushMemTable());
  ASSERT_EQ(NumTableFilesAtLevel(0), 1);
  ASSERT_EQ(Get("a") + Get("b"), "12");
}

// For each writer of a group that is led, its own options apply and errors are
// reported, as if several threads had inserted the group.
TEST_F(DBWriteLeadershipOrderTest, LedGroupKeepsOptionsAndErrorsOfEachWriter) {
  const auto put_nowhere = [this](bool ignore) {
    WriteOptions options;
    options.ignore_missing_column_families = ignore;
    WriteBatch batch;
    EXPECT_OK(WriteBatchInternal::Put(&batch, /*cf_id=*/77, "x", "y"));
    EXPECT_OK(batch.Put("after", "x"));
    return db_->Write(options, &batch);
  };
  for (const bool leader_ignores : {false, true}) {
    DestroyAndReopen(MakeOptions(64));
    WriteOptions options;
    options.ignore_missing_column_families = leader_ignores;
    Status leader, other, last;
    RunInOrder({[&] { ASSERT_OK(Put("a", "1")); },
                [&] { leader = db_->Put(options, "b", "2"); },
                [&] { other = put_nowhere(!leader_ignores); },
                [&] { last = Put("c", "3"); }});
    ASSERT_EQ(Kept(), 1);
    ASSERT_EQ(last, leader);
    ASSERT_EQ(Get("a"), "1");
    if (leader_ignores) {
      // No write of the group is visible, and each writer got an error.
      ASSERT_TRUE(other.IsInvalidArgument()) << other.ToString();
      ASSERT_NOK(leader);
      ASSERT_EQ(dbfull()->GetLatestSequenceNumber(), 1);
      ASSERT_NOK(Put("d", "4"));
    } else {
      ASSERT_OK(leader);
      ASSERT_OK(other);
      ASSERT_EQ(Get("b") + Get("after") + Get("c"), "2x3");
      ASSERT_OK(Put("d", "4"));
    }
  }
}

// If writes of all kinds run at the same time, no write is lost, no thread
// waits forever, each thread reads what it wrote, and a recovery finds the
// same.
TEST_F(DBWriteLeadershipTest, NoWriteOfManyThreadsIsLost) {
  for (const bool concurrent : {false, true}) {
    Options options = MakeOptions(8);
    options.allow_concurrent_memtable_write = concurrent;
    options.write_buffer_size = 256 << 10;
    DestroyAndReopen(options);
    constexpr int kThreads = 6;
    constexpr int kMinWrites = 3000;
    // The number of writes of each thread.
    std::array<int, kThreads> num_writes{};
    StoppableThreads threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.Start([&, t] {
        Random rnd(301 + t);
        const std::string prefix = "t" + std::to_string(t) + ".";
        for (int& i = num_writes[t]; i < kMinWrites || !threads.stopped();
             ++i) {
          WriteOptions write_options;
          write_options.sync = rnd.OneIn(50);
          write_options.no_slowdown = rnd.OneIn(20);
          const std::string key = prefix + std::to_string(i);
          WriteBatch batch;
          ASSERT_OK(batch.Put(key, std::string(1 + rnd.Uniform(200), 'x')));
          if (i % 3 == 0) {
            // Groups without merges may be written by several threads.
            ASSERT_OK(batch.Merge("counter" + std::to_string(t), "m"));
          }
          Status s;
          do {
            s = db_->Write(write_options, &batch);
            write_options.no_slowdown = false;
          } while (s.IsIncomplete());
          ASSERT_OK(s);
          std::string value;
          ASSERT_OK(db_->Get(ReadOptions(), key, &value));
        }
      });
    }
    ASSERT_TRUE(WaitUntil([this] { return Kept() > 0; }));
    threads.Stop();
    std::array<int, kThreads> num_merges{};
    SequenceNumber num_entries = 0;
    for (int t = 0; t < kThreads; ++t) {
      num_merges[t] = (num_writes[t] + 2) / 3;
      num_entries += num_writes[t] + num_merges[t];
    }
    ASSERT_EQ(dbfull()->GetLatestSequenceNumber(), num_entries);
    for (int round = 0; round < 2; ++round) {
      for (int t = 0; t < kThreads; ++t) {
        ASSERT_EQ(Get("counter" + std::to_string(t)).size(),
                  2 * num_merges[t] - 1);
      }
      Reopen(options);
    }
  }
}

TEST_F(DBWriteLeadershipTest, TransactionsOfManyThreadsKeepTheirOrder) {
  for (const TxnDBWritePolicy policy : {WRITE_COMMITTED, WRITE_PREPARED}) {
    for (const bool two_write_queues : {false, true}) {
      Options options = MakeOptions(64);
      options.two_write_queues = two_write_queues;
      Destroy(options);
      Close();
      TransactionDBOptions txn_options;
      txn_options.write_policy = policy;
      TransactionDB* txn_db = nullptr;
      const std::string name = dbname_ + "_txn";
      ASSERT_OK(DestroyDB(name, options));
      options.create_if_missing = true;
      ASSERT_OK(TransactionDB::Open(options, txn_options, name, &txn_db));
      constexpr int kThreads = 4;
      constexpr int kTransactions = 300;
      StoppableThreads threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.Start([&, t] {
          for (int i = 0; i < kTransactions; ++i) {
            const std::string key =
                std::to_string(t) + "." + std::to_string(i % 100);
            std::unique_ptr<Transaction> txn(
                txn_db->BeginTransaction(WriteOptions()));
            ASSERT_OK(txn->SetName(key + "." + std::to_string(i)));
            ASSERT_OK(txn->Put(key, std::to_string(i)));
            ASSERT_OK(txn->Merge("m" + key, "x"));
            if (i % 3 == 0) {
              ASSERT_OK(txn->Prepare());
            }
            if (i % 7 == 6) {
              ASSERT_OK(txn->Rollback());
            } else {
              ASSERT_OK(txn->Commit());
              std::string value;
              ASSERT_OK(txn_db->Get(ReadOptions(), key, &value));
              ASSERT_EQ(value, std::to_string(i));
            }
          }
          while (!threads.stopped()) {
            ASSERT_OK(
                txn_db->Put(WriteOptions(), "last" + std::to_string(t), "x"));
          }
        });
      }
      if (policy == WRITE_COMMITTED && !two_write_queues) {
        EXPECT_TRUE(WaitUntil([this, &options] {
          return TestGetTickerCount(options, WRITE_GROUPS_KEPT) > 0;
        }));
      }
      threads.Stop();
      delete txn_db;
      ASSERT_OK(TransactionDB::Open(options, txn_options, name, &txn_db));
      for (int t = 0; t < kThreads; ++t) {
        for (int k = 0; k < 100; ++k) {
          int last = -1;
          for (int i = k; i < kTransactions; i += 100) {
            last = i % 7 == 6 ? last : i;
          }
          std::string value;
          ASSERT_OK(txn_db->Get(ReadOptions(),
                                std::to_string(t) + "." + std::to_string(k),
                                &value));
          ASSERT_EQ(value, std::to_string(last));
        }
      }
      delete txn_db;
      ASSERT_OK(DestroyDB(name, options));
    }
  }
}

TEST_F(DBWriteLeadershipTest, OptionStringHasTheValueIfItIsNotTheDefault) {
  DBOptions options, read;
  ConfigOptions config;
  std::string text;
  ASSERT_OK(GetStringFromDBOptions(config, options, &text));
  ASSERT_EQ(text.find("max_write_groups_per_leader"), std::string::npos);
  options.max_write_groups_per_leader = 17;
  ASSERT_OK(GetStringFromDBOptions(config, options, &text));
  ASSERT_OK(GetDBOptionsFromString(config, DBOptions(), text, &read));
  ASSERT_EQ(read.max_write_groups_per_leader, 17);
}

TEST_F(DBWriteLeadershipTest, PipelinedAndUnorderedWritesAreRefused) {
  for (const bool pipelined : {false, true}) {
    Options options = MakeOptions(64);
    options.enable_pipelined_write = pipelined;
    options.unordered_write = !pipelined;
    const Status s = TryReopen(options);
    ASSERT_TRUE(s.IsInvalidArgument());
    ASSERT_NE(s.ToString().find("enable_pipelined_write"), std::string::npos);
    ASSERT_NE(s.ToString().find("set both to false"), std::string::npos);
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
