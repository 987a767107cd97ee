//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Databases with enable_blob_address_map: flushes that are undone, and jobs,
// reads and drops of blob files that overtake each other at each of their
// steps. All tests run with and without a filter policy, because bypass filters
// exist only with one.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/db_impl/db_impl.h"
#include "env/composite_env_wrapper.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/io_status.h"
#include "rocksdb/listener.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/system_clock.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/impatient_clock_test_util.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const std::string kNotFound = "NOT_FOUND";

// Callbacks at sync points that are removed at the end of the block.
class Callbacks {
 public:
  using Fn = std::function<void(void*)>;

  Callbacks() = default;
  ~Callbacks() { Clear(); }
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  void Always(const std::string& point, const Fn& fn) {
    EnableCallBack(point, fn);
  }

  // Calls fn only the first time, because fn itself may reach the point. The
  // result becomes true when the point is reached.
  std::shared_ptr<std::atomic<bool>> Once(const std::string& point,
                                          const Fn& fn) {
    return EnableCallBackOnce(point, fn);
  }

  void Clear() { DisableCallBacks(); }
};

// Threads wait in Pass() until they are let through one by one.
class Turnstile {
 public:
  // Returns the number of the thread: 0 is the first one that arrived.
  size_t Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    const size_t number = arrived_++;
    changed_.notify_all();
    changed_.wait_for(lock, kTestPatience,
                      [&] { return open_ || let_.count(number) > 0; });
    return number;
  }

  bool WaitForArrivals(size_t n) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kTestPatience,
                             [&] { return arrived_ >= n; });
  }

  void Let(size_t number) {
    std::lock_guard<std::mutex> lock(mutex_);
    let_.insert(number);
    changed_.notify_all();
  }

  // Lets all threads through, now and later.
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t arrived_ = 0;
  bool open_ = false;
  std::set<size_t> let_;
};

enum class Fate { kOk, kTableFails, kManifestFails };

thread_local Fate this_flush = Fate::kOk;

// Holds flush jobs at their beginning. Each job has the fate of its position in
// the order of their beginnings; jobs beyond the list succeed.
class FlushControl {
 public:
  FlushControl(FaultInjectionTestFS* fs, const std::vector<Fate>& fates) {
    callbacks_.Always(
        "FlushJob::WriteLevel0Table:num_memtables", [this, fates](void*) {
          const size_t number = turnstile_.Pass();
          this_flush = number < fates.size() ? fates[number] : Fate::kOk;
        });
    callbacks_.Always("FlushJob::WriteLevel0Table:s", [](void* status) {
      if (this_flush == Fate::kTableFails) {
        *static_cast<Status*>(status) = RetryableError();
      }
    });
    // Only the write of this thread fails: all other threads are held.
    callbacks_.Always("VersionSet::LogAndApply:WriteManifest", [fs](void*) {
      if (this_flush == Fate::kManifestFails) {
        fs->SetFilesystemActive(false, RetryableError());
      }
    });
    callbacks_.Always("VersionSet::LogAndApply:WriteManifestDone", [fs](void*) {
      if (this_flush == Fate::kManifestFails) {
        fs->SetFilesystemActive(true);
        this_flush = Fate::kOk;
      }
    });
    callbacks_.Always("FlushOrderGate::Park:Parked",
                      [this](void*) { parked_.Add(); });
    callbacks_.Always("FlushOrderGate::Unpark:End", [this](void*) {
      this_flush = Fate::kOk;
      left_.Add();
    });
  }
  ~FlushControl() {
    turnstile_.Open();
    callbacks_.Clear();
  }

  Turnstile& turnstile() { return turnstile_; }
  // Requests that wait for the running job of their column family.
  EventCount& parked() { return parked_; }
  // Jobs that have ended and are settled.
  EventCount& left() { return left_; }

 private:
  Turnstile turnstile_;
  EventCount parked_;
  EventCount left_;
  Callbacks callbacks_;
};

// Makes a call when the first compaction is about to commit.
class CommitListener : public EventListener {
 public:
  explicit CommitListener(std::shared_ptr<BoundedCall> call)
      : call_(std::move(call)) {}
  void OnCompactionPreCommit(DB* /*db*/,
                             const CompactionJobInfo& /*info*/) override {
    call_->RunOnce();
  }

 private:
  const std::shared_ptr<BoundedCall> call_;
};

// How a compaction, or a deletion of files, changes a key.
enum class Change {
  kRename,
  kTombstone,
  kRangeTombstone,
  kMerge,
  kFilterChanges,
  kFilterRemoves,
  kFilterShortens,
  kSwitchOff,
  kDeleteFiles,
};

constexpr Change kChanges[] = {
    Change::kRename,         Change::kTombstone,     Change::kRangeTombstone,
    Change::kMerge,          Change::kFilterChanges, Change::kFilterRemoves,
    Change::kFilterShortens, Change::kSwitchOff,     Change::kDeleteFiles,
};

// How a flush fails after it has published its values.
enum class Failure {
  kManifest,
  kAfterInsertion,
  kManifestAcknowledgement,  // the edit is on disk, but reported as failed
};

// The state of a key when a read of it begins.
enum class Origin { kAbsent, kInMemtable, kVersioned, kDeleted, kOperand };

}  // namespace

class DBAddressMapRaceTest : public AddressMapDBTestBase,
                             public testing::WithParamInterface<bool> {
 public:
  struct Expected {
    std::string name;
    std::string key;
    std::set<std::string> during;  // results that a read may have
    std::string after;
    uint64_t entries = 0;  // entries of the map in the end, with that of "a"
  };

  using ReadKey =
      std::function<std::string(const std::string& key, const Snapshot*)>;

  DBAddressMapRaceTest()
      : AddressMapDBTestBase("db_address_map_race_test"),
        fs_(std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem())),
        fault_env_(std::make_unique<CompositeEnvWrapper>(
            env_, fs_,
            std::make_shared<ImpatientClock>(SystemClock::Default()))) {
    // Some flushes are held while others must continue.
    env_->SetBackgroundThreads(6, Env::HIGH);
  }

  ~DBAddressMapRaceTest() override {
    ReleaseHeld();
    Close();  // before its Env is destroyed
  }

  Options MapOptions() {
    anon::OptionsOverride overrides;
    if (GetParam()) {
      overrides.filter_policy.reset(NewBloomFilterPolicy(10));
    }
    Options options =
        AddressMapDBTestBase::MapOptions(/*min_blob_size=*/0, overrides);
    options.env = fault_env_.get();
    options.max_background_flushes = 4;
    options.max_write_buffer_number = 8;
    // The tests call Resume() themselves.
    options.max_bgerror_resume_count = 0;
    return options;
  }

  // Returns 0 if there is no direct entry.
  SequenceNumber DirectSeqOf(const std::string& key) {
    SequenceNumber seq = 0;
    return Blobs()->map()->DirectSeq(Blobs()->HashOf(key), &seq) ? seq : 0;
  }

  bool OnDisk(const BlobMetaData& file) {
    return env_->FileExists(dbname_ + "/" + file.blob_file_name).ok();
  }

  // ---- Jobs.

  // Gives the DB an occasion to do pending work, for example drops after an
  // error.
  void Settle() {
    for (int i = 0; i < 2; ++i) {
      db_->ReleaseSnapshot(db_->GetSnapshot());
      WaitForJobs();
    }
  }

  void StartFlush(const std::vector<int>& families) {
    FlushOptions options;
    options.wait = false;
    options.allow_write_stall = true;
    std::vector<ColumnFamilyHandle*> handles;
    for (const int cf : families) {
      handles.push_back(Handle(cf));
    }
    ASSERT_OK(db_->Flush(options, handles));
  }

  void Hold() { held_.push_back(db_->GetSnapshot()); }
  void ReleaseHeld() {
    for (const Snapshot* snapshot : held_) {
      db_->ReleaseSnapshot(snapshot);
    }
    held_.clear();
  }

  // ---- Errors.

  // All writes fail until Repair() is called.
  void Break() { fs_->SetFilesystemActive(false, RetryableError()); }
  void Repair() {
    // Waits until the failed jobs have cleaned up.
    dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
    fs_->SetFilesystemActive(true);
  }

  // inserted: set to the number of map entries after the flush has published
  // its values.
  void FailFlush(Failure failure, Callbacks* callbacks, uint64_t* inserted) {
    callbacks->Once("MapTransaction::Publish:Inserted",
                    [this, failure, inserted](void*) {
                      *inserted = Blobs()->map()->NumEntries();
                      if (failure == Failure::kAfterInsertion) {
                        Break();
                      }
                    });
    if (failure == Failure::kManifest) {
      callbacks->Once("VersionSet::LogAndApply:WriteManifest",
                      [this](void*) { Break(); });
    } else if (failure == Failure::kManifestAcknowledgement) {
      callbacks->Once("VersionSet::ProcessManifestWrites:AfterSyncManifest",
                      [](void* status) {
                        *static_cast<IOStatus*>(status) = RetryableError();
                      });
    }
  }

  // Calls Resume() repeatedly, because a recovery may fail, too.
  void ResumeUntilHealthy() {
    Status s;
    for (int i = 0; i < 10; ++i) {
      s = dbfull()->TEST_WaitForBackgroundWork();
      if (s.ok()) {
        break;
      }
      db_->Resume().PermitUncheckedError();
    }
    ASSERT_OK(s);
  }

  // ---- Reads.

  static WriteOptions NoWal() {
    WriteOptions options;
    options.disableWAL = true;
    return options;
  }

  // Reads without memtables, after a write with NoWal().
  std::string GetPersisted(const std::string& key, int cf = 0) {
    ReadOptions options;
    options.read_tier = kPersistedTier;
    std::string value;
    const Status s = db_->Get(options, Handle(cf), key, &value);
    return s.ok() ? value : s.IsNotFound() ? kNotFound : s.ToString();
  }

  static std::string Find(Iterator* iter, const std::string& key) {
    iter->Seek(key);
    if (iter->Valid() && iter->key().ToString() == key) {
      return iter->value().ToString();
    }
    return iter->status().ok() ? kNotFound : iter->status().ToString();
  }

  std::string MultiGetOne(const std::string& key, const Snapshot* snapshot) {
    const std::vector<std::string> values =
        MultiGet(std::vector<std::string>{"a", key, "z"}, snapshot);
    EXPECT_EQ(values[2], kNotFound);
    return values[1];
  }

  // Checks that all ways to read the key give one of the allowed results.
  void ExpectReads(const std::string& key, const Snapshot* snapshot,
                   const std::set<std::string>& allowed) {
    ReadOptions options;
    options.snapshot = snapshot;
    const std::unique_ptr<Iterator> iter(db_->NewIterator(options));
    const std::vector<std::string> all = {
        Get(key, snapshot), MultiGetOne(key, snapshot), Find(iter.get(), key)};
    for (const std::string& got : all) {
      EXPECT_EQ(allowed.count(got), 1u) << got;
    }
  }

  // ---- Changes of the files. They leave another key, "a", unchanged.

  static Expected ExpectedOf(Change change) {
    switch (change) {
      case Change::kRename:
        return {"rename", "k", {Value(2)}, Value(2), 2};
      case Change::kTombstone:
        return {"tombstone", "k", {kNotFound}, kNotFound, 1};
      case Change::kRangeTombstone:
        return {"range tombstone", "k", {kNotFound}, kNotFound, 1};
      case Change::kMerge:
        return {"merge", "k", {"a,b"}, "a,b", 2};
      case Change::kFilterChanges:
        return {"filter changes",
                "change1",
                {Value(1), "changed " + Value(1)},
                "changed " + Value(1),
                2};
      case Change::kFilterRemoves:
        return {
            "filter removes", "remove1", {Value(1), kNotFound}, kNotFound, 1};
      case Change::kFilterShortens:
        return {"filter shortens", "short1", {Value(1), "s"}, "s", 1};
      case Change::kSwitchOff:
        return {"switch off", "k", {Value(1)}, Value(1), 0};
      case Change::kDeleteFiles:
        return {"delete files", "k", {Value(1), kNotFound}, kNotFound, 1};
    }
    return Expected();
  }

  void Prepare(Change change) {
    const std::string key = ExpectedOf(change).key;
    const bool filtered = change == Change::kFilterChanges ||
                          change == Change::kFilterRemoves ||
                          change == Change::kFilterShortens;
    Options options = MapOptions();
    options.num_levels = 4;
    if (filtered) {
      options.compaction_filter = &filter_;
      options.min_blob_size = 20;
    }
    DestroyAndReopen(options);
    ASSERT_OK(Put("a", Value(7)));
    ASSERT_OK(Flush());
    ASSERT_OK(Put(key, change == Change::kMerge ? "a" : Value(1)));
    if (change == Change::kRename) {
      Hold();
      ASSERT_OK(Put(key, Value(2)));
    }
    ASSERT_OK(Flush());
    switch (change) {
      case Change::kTombstone:
        Hold();
        ASSERT_OK(Delete(key));
        ASSERT_OK(Flush());
        break;
      case Change::kRangeTombstone:
        ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                                   "k", "l"));
        ASSERT_OK(Flush());
        break;
      case Change::kMerge:
        ASSERT_OK(db_->Merge(WriteOptions(), key, "b"));
        ASSERT_OK(Flush());
        break;
      case Change::kSwitchOff:
        options.enable_blob_address_map = false;
        Reopen(options);
        break;
      case Change::kDeleteFiles:
        MoveFilesToLevel(3);
        break;
      default:
        break;
    }
    WaitForJobs();
  }

  void Apply(Change change) {
    ReleaseHeld();
    if (change != Change::kDeleteFiles) {
      ASSERT_OK(ForceCompaction());
      return;
    }
    const Slice begin("b");
    const Slice end("z");
    ASSERT_OK(ROCKSDB_NAMESPACE::DeleteFilesInRange(
        db_.get(), db_->DefaultColumnFamily(), &begin, &end));
  }

  void CheckAfter(Change change) {
    const Expected expected = ExpectedOf(change);
    Compact();
    Settle();
    ExpectReads(expected.key, nullptr, {expected.after});
    EXPECT_EQ(Get("a"), Value(7));
    CheckMap(expected.entries);
  }

  // Makes each change while a read has stopped at each of the points.
  void RaceReads(const std::vector<std::string>& points, bool at_snapshot,
                 const ReadKey& read_key) {
    std::map<std::string, int> counts;
    for (const Change change : kChanges) {
      const Expected expected = ExpectedOf(change);
      for (const std::string& point : points) {
        SCOPED_TRACE(expected.name + " at " + point);
        Prepare(change);
        ASSERT_FALSE(HasFatalFailure());
        const Snapshot* const snapshot =
            at_snapshot ? db_->GetSnapshot() : nullptr;
        std::string got;
        bool met = false;
        {
          Callbacks callbacks;
          const auto reached = callbacks.Once(point, [&](void*) {
            OnAnotherThread([&] {
              Apply(change);
              WaitForJobs();
            });
          });
          got = read_key(expected.key, snapshot);
          met = reached->load();
        }
        db_->ReleaseSnapshot(snapshot);
        EXPECT_EQ(expected.during.count(got), 1u) << got;
        counts[point] += met ? 1 : 0;
        if (!met) {
          Apply(change);
        }
        CheckAfter(change);
        ASSERT_FALSE(HasFatalFailure());
      }
    }
    for (const std::string& point : points) {
      EXPECT_GT(counts[point], 0) << point;
    }
  }

  // ---- A key "k" beside a key "x".

  // Returns the result of a read of k.
  std::string Start(Origin origin) {
    DestroyAndReopen(MapOptions());
    EXPECT_OK(Put("x", Value(0)));
    EXPECT_OK(Flush());
    std::string result = kNotFound;
    switch (origin) {
      case Origin::kAbsent:
        break;
      case Origin::kInMemtable:
        EXPECT_OK(Put("k", Value(1)));
        result = Value(1);
        break;
      case Origin::kVersioned:
        Hold();
        EXPECT_OK(Put("k", Value(1)));
        EXPECT_OK(Flush());
        ReleaseHeld();
        EXPECT_EQ(DirectSeqOf("k"), 0u);
        result = Value(1);
        break;
      case Origin::kDeleted:
        EXPECT_OK(Put("k", Value(1)));
        EXPECT_OK(Flush());
        EXPECT_OK(Delete("k"));
        EXPECT_OK(Flush());
        break;
      case Origin::kOperand:
        EXPECT_OK(db_->Merge(WriteOptions(), "k", "b"));
        result = "b";
        break;
    }
    WaitForJobs();
    return result;
  }

  // Writes and flushes k. switch_first: the memtable is switched before, so k
  // is in a new one.
  void InsertDirect(Origin origin, bool switch_first) {
    if (origin == Origin::kVersioned) {
      Compact();  // a value over a versioned entry would be versioned
    }
    if (switch_first) {
      ASSERT_OK(Put("x", Value(3)));
      ASSERT_OK(Flush());
    }
    ASSERT_OK(Put("k", Value(2)));
    ASSERT_OK(Flush());
    WaitForJobs();
  }

 protected:
  const std::shared_ptr<FaultInjectionTestFS> fs_;
  const std::unique_ptr<Env> fault_env_;
  ActingFilter filter_;
  std::vector<const Snapshot*> held_;
};

// ---- Flushes that fail after they have published their values.

// After a failed flush the map is as it was before the flush, for all kinds of
// readers, until the memtable is flushed again.
TEST_P(DBAddressMapRaceTest, UndoneFlushRestoresTheMap) {
  enum Reader { kNobody, kSnapshot, kIterator };
  for (const Failure failure : {Failure::kManifest, Failure::kAfterInsertion,
                                Failure::kManifestAcknowledgement}) {
    for (const Reader reader : {kNobody, kSnapshot, kIterator}) {
      SCOPED_TRACE("failure " + std::to_string(static_cast<int>(failure)) +
                   ", reader " + std::to_string(reader));
      const Options options = MapOptions();
      DestroyAndReopen(options);
      ASSERT_OK(Put("k", Value(1)));
      ASSERT_OK(Put("l", Value(1)));
      ASSERT_OK(Flush());
      WaitForJobs();
      const SequenceNumber old_seq = DirectSeqOf("k");
      EXPECT_GT(old_seq, 0u);
      const Snapshot* const snapshot =
          reader == kSnapshot ? db_->GetSnapshot() : nullptr;
      std::unique_ptr<Iterator> iter;
      if (reader == kIterator) {
        iter.reset(db_->NewIterator(ReadOptions()));
      }
      const auto check_reader = [&] {
        if (snapshot != nullptr) {
          ExpectReads("k", snapshot, {Value(1)});
          ExpectReads("l", snapshot, {Value(1)});
        }
        if (iter != nullptr) {
          EXPECT_EQ(Scan(iter.get()), "k=" + Value(1) + ";l=" + Value(1) + ";");
        }
      };

      ASSERT_OK(Put("k", Value(2), NoWal()));
      ASSERT_OK(db_->Delete(NoWal(), "l"));
      uint64_t inserted = 0;
      {
        Callbacks callbacks;
        FailFlush(failure, &callbacks, &inserted);
        EXPECT_NOK(Flush());
        Repair();
      }
      EXPECT_EQ(inserted, 3u);
      EXPECT_EQ(GetPersisted("k"), Value(1));
      EXPECT_EQ(GetPersisted("l"), Value(1));
      check_reader();
      ExpectReads("k", nullptr, {Value(2)});
      ExpectReads("l", nullptr, {kNotFound});
      EXPECT_EQ(DirectSeqOf("k"), old_seq);
      CheckMap(2);
      EXPECT_EQ(BlobFiles().size(), 1u);

      ASSERT_OK(db_->Resume());
      WaitForJobs();
      EXPECT_EQ(GetPersisted("k"), Value(2));
      EXPECT_EQ(GetPersisted("l"), kNotFound);
      check_reader();
      CheckMap(reader == kNobody ? 1 : 3);

      db_->ReleaseSnapshot(snapshot);
      iter.reset();
      Settle();
      // The file of the failed flush is gone, too.
      dbfull()->TEST_DeleteObsoleteFiles();
      EXPECT_EQ(FilesOnDisk(kBlobFile).size(), 1u);
      for (int round = 0; round < 3; ++round) {
        ExpectReads("k", nullptr, {Value(2)});
        ExpectReads("l", nullptr, {kNotFound});
        CheckMap(1);
        EXPECT_EQ(BlobFiles().size(), 1u);
        Reopen(options);
      }
    }
  }
}

// If the flush of one of two families fails, or the commit of both, the values
// that any of them has published are removed from its map.
TEST_P(DBAddressMapRaceTest, UndoneAtomicFlushRestoresBothMaps) {
  constexpr int kManifestFails = 2;
  for (int failure = 0; failure <= kManifestFails; ++failure) {
    SCOPED_TRACE(failure);
    Options options = MapOptions();
    options.atomic_flush = true;
    DestroyAndReopen(options);
    CreateAndReopenWithCF({"other"}, options);
    for (const int cf : {0, 1}) {
      ASSERT_OK(Put(cf, "k", Value(1)));
      ASSERT_OK(Put(cf, "l", Value(1)));
    }
    ASSERT_OK(Flush(std::vector<int>{0, 1}));
    WaitForJobs();
    for (const int cf : {0, 1}) {
      ASSERT_OK(Put(cf, "k", Value(2), NoWal()));
      ASSERT_OK(db_->Delete(NoWal(), Handle(cf), "l"));
    }
    std::atomic<int> jobs{0};
    std::atomic<int> told{0};
    {
      Callbacks callbacks;
      callbacks.Always("FlushJob::WriteLevel0Table:s", [&](void* status) {
        if (jobs++ == failure) {
          *static_cast<Status*>(status) = RetryableError();
        }
      });
      callbacks.Always("MapTransaction::Publish:Inserted",
                       [&](void*) { ++told; });
      if (failure == kManifestFails) {
        callbacks.Once("VersionSet::LogAndApply:WriteManifest",
                       [this](void*) { Break(); });
      }
      EXPECT_NOK(Flush(std::vector<int>{0, 1}));
      Repair();
    }
    EXPECT_EQ(jobs.load(), 2);
    EXPECT_EQ(told.load(), failure == kManifestFails ? 2 : 1);
    for (const int cf : {0, 1}) {
      EXPECT_EQ(GetPersisted("k", cf), Value(1));
      EXPECT_EQ(GetPersisted("l", cf), Value(1));
      EXPECT_EQ(Get(cf, "k"), Value(2));
      EXPECT_EQ(Get(cf, "l"), kNotFound);
      CheckMap(2, cf);
      EXPECT_EQ(BlobFiles(cf).size(), 1u);
    }
    ASSERT_OK(db_->Resume());
    Settle();
    for (int round = 0; round < 2; ++round) {
      for (const int cf : {0, 1}) {
        EXPECT_EQ(Get(cf, "k"), Value(2));
        EXPECT_EQ(Get(cf, "l"), kNotFound);
        CheckMap(1, cf);
        EXPECT_EQ(BlobFiles(cf).size(), 1u);
      }
      ReopenWithColumnFamilies({kDefaultColumnFamilyName, "other"}, options);
    }
  }
}

// Two flushes of one column family, the second of which has to wait, run beside
// flushes of another family with a map and of one without. They continue in
// several orders and fail in several ways. In the end each family has its
// newest values, and its map has no others.
TEST_P(DBAddressMapRaceTest, FlushesInEveryOrderKeepTheNewestValues) {
  constexpr Fate kOk = Fate::kOk;
  constexpr Fate kTable = Fate::kTableFails;
  constexpr Fate kManifest = Fate::kManifestFails;
  // The fates of the first flush of each family, and of the next one that
  // starts: the second flush of the first family, or the first flush of the
  // recovery.
  const std::vector<std::vector<Fate>> all_fates = {
      {kOk, kOk, kOk, kOk},          {kTable, kOk, kOk, kOk},
      {kManifest, kOk, kOk, kOk},    {kOk, kOk, kOk, kTable},
      {kOk, kOk, kOk, kManifest},    {kOk, kManifest, kOk, kOk},
      {kTable, kOk, kOk, kManifest}, {kManifest, kManifest, kOk, kOk},
  };
  const std::vector<std::vector<size_t>> orders = {
      {0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}};
  const std::vector<std::string> families = {kDefaultColumnFamilyName, "mapped",
                                             "plain"};
  for (size_t f = 0; f < all_fates.size(); ++f) {
    for (size_t o = 0; o < orders.size(); ++o) {
      if (all_fates[f][0] != kOk && all_fates[f][3] != kOk &&
          orders[o].back() != 0) {
        // The first of several flushes of the recovery would fail. RocksDB may
        // then forget the others, and the next Resume() would wait for them.
        continue;
      }
      SCOPED_TRACE("fates " + std::to_string(f) + ", order " +
                   std::to_string(o));
      const Options options = MapOptions();
      Options plain = options;
      plain.enable_blob_address_map = false;
      const std::vector<Options> all_options = {options, options, plain};
      DestroyAndReopen(options);
      CreateColumnFamilies({families[1]}, options);
      CreateColumnFamilies({families[2]}, plain);
      ReopenWithColumnFamilies(families, all_options);
      for (const int cf : {0, 1, 2}) {
        ASSERT_OK(Put(cf, "k", Value(1)));
        ASSERT_OK(Put(cf, "l", Value(1)));
        ASSERT_OK(Flush(cf));
      }
      WaitForJobs();
      {
        FlushControl control(fs_.get(), all_fates[f]);
        for (const int cf : {0, 1, 2}) {
          ASSERT_OK(Put(cf, "k", Value(2)));
          ASSERT_OK(Delete(cf, "l"));
          StartFlush({cf});
          EXPECT_TRUE(
              control.turnstile().WaitForArrivals(static_cast<size_t>(cf) + 1));
        }
        ASSERT_OK(Put(0, "k", Value(3)));
        ASSERT_OK(Put(0, "m", Value(3)));
        StartFlush({0});
        EXPECT_TRUE(control.parked().WaitFor(1));
        bool is_healthy = true;
        for (size_t i = 0; i < orders[o].size(); ++i) {
          const size_t flush = orders[o][i];
          is_healthy = is_healthy && all_fates[f][flush] == kOk;
          control.turnstile().Let(flush);
          EXPECT_TRUE(control.left().WaitFor(i + 1));
          if (flush == 0 && is_healthy) {
            // When an error occurs, RocksDB forgets a flush that was scheduled
            // but has not begun, and Resume() would wait for it.
            EXPECT_TRUE(control.turnstile().WaitForArrivals(4));
          }
        }
        control.turnstile().Open();
        ResumeUntilHealthy();
        for (const int cf : {0, 1, 2}) {
          ASSERT_OK(Flush(cf));
        }
        Settle();
      }
      EXPECT_EQ(Blobs(2), nullptr);
      for (int round = 0; round < 2; ++round) {
        for (const int cf : {0, 1, 2}) {
          EXPECT_EQ(Get(cf, "k"), Value(cf == 0 ? 3 : 2)) << cf;
          EXPECT_EQ(Get(cf, "l"), kNotFound) << cf;
        }
        EXPECT_EQ(Get(0, "m"), Value(3));
        CheckMap(2, 0);
        CheckMap(1, 1);
        EXPECT_EQ(BlobFiles(0).size(), 1u);
        EXPECT_EQ(BlobFiles(1).size(), 1u);
        ReopenWithColumnFamilies(families, all_options);
      }
    }
  }
}

// Atomic flushes of two families run one after the other: the second group
// waits for the first. In the end both families have their newest values.
TEST_P(DBAddressMapRaceTest, AtomicFlushesKeepTheNewestValues) {
  constexpr Fate kOk = Fate::kOk;
  constexpr Fate kTable = Fate::kTableFails;
  constexpr Fate kManifest = Fate::kManifestFails;
  // The edit of a group is written after its last job.
  const std::vector<std::vector<Fate>> all_fates = {
      {kOk, kOk, kOk, kOk},          {kTable, kOk, kOk, kOk},
      {kOk, kTable, kOk, kOk},       {kOk, kManifest, kOk, kOk},
      {kOk, kOk, kTable, kOk},       {kOk, kOk, kOk, kManifest},
      {kTable, kOk, kOk, kManifest},
  };
  for (size_t f = 0; f < all_fates.size(); ++f) {
    SCOPED_TRACE("fates " + std::to_string(f));
    Options options = MapOptions();
    options.atomic_flush = true;
    DestroyAndReopen(options);
    CreateAndReopenWithCF({"other"}, options);
    for (const int cf : {0, 1}) {
      ASSERT_OK(Put(cf, "k", Value(1)));
      ASSERT_OK(Put(cf, "l", Value(1)));
    }
    ASSERT_OK(Flush(std::vector<int>{0, 1}));
    WaitForJobs();
    {
      FlushControl control(fs_.get(), all_fates[f]);
      for (const int cf : {0, 1}) {
        ASSERT_OK(Put(cf, "k", Value(2)));
        ASSERT_OK(Delete(cf, "l"));
      }
      StartFlush({0, 1});
      EXPECT_TRUE(control.turnstile().WaitForArrivals(1));
      for (const int cf : {0, 1}) {
        ASSERT_OK(Put(cf, "k", Value(3)));
      }
      StartFlush({0, 1});
      EXPECT_TRUE(control.parked().WaitFor(1));
      control.turnstile().Let(0);
      control.turnstile().Let(1);
      EXPECT_TRUE(control.left().WaitFor(1));
      control.turnstile().Open();
      ResumeUntilHealthy();
      ASSERT_OK(Flush(std::vector<int>{0, 1}));
      Settle();
    }
    for (int round = 0; round < 2; ++round) {
      for (const int cf : {0, 1}) {
        EXPECT_EQ(Get(cf, "k"), Value(3)) << cf;
        EXPECT_EQ(Get(cf, "l"), kNotFound) << cf;
        CheckMap(1, cf);
        EXPECT_EQ(BlobFiles(cf).size(), 1u) << cf;
      }
      ReopenWithColumnFamilies({kDefaultColumnFamilyName, "other"}, options);
    }
  }
}

// ---- Reads during which a compaction runs.

TEST_P(DBAddressMapRaceTest, GetIsRightBesideACompaction) {
  RaceReads({"MapPointRead::Start", "DBImpl::GetImpl:AfterAcquireSv",
             "DBImpl::GetImpl:PostMemTableGet:0", "MapPointRead::TakeNamed",
             "MapPointRead::TakeDirect", "MapPointRead::ConfirmAbsence",
             "MapPointRead::Replace:Pinned"},
            /*at_snapshot=*/false,
            [this](const std::string& key, const Snapshot* snapshot) {
              const std::string result = Get(key, snapshot);
              EXPECT_EQ(Get("z", snapshot), kNotFound);
              EXPECT_EQ(Get("a", snapshot), Value(7));
              return result;
            });
}

TEST_P(DBAddressMapRaceTest, GetAtSnapshotIsRightBesideACompaction) {
  RaceReads({"MapPointRead::Start", "DBImpl::GetImpl:PostMemTableGet:0",
             "MapPointRead::TakeNamed", "MapPointRead::TakeDirect",
             "MapPointRead::ConfirmAbsence"},
            /*at_snapshot=*/true,
            [this](const std::string& key, const Snapshot* snapshot) {
              const std::string result = Get(key, snapshot);
              EXPECT_EQ(Get("z", snapshot), kNotFound);
              EXPECT_EQ(Get("a", snapshot), Value(7));
              return result;
            });
}

TEST_P(DBAddressMapRaceTest, MultiGetIsRightBesideACompaction) {
  RaceReads({"MapPointRead::Start", "DBImpl::MultiCFSnapshot:AfterGetSeqNum1",
             "MapPointRead::TakeNamed", "MapPointRead::TakeDirect",
             "MapPointRead::ConfirmAbsence", "MapPointRead::Replace:Pinned"},
            /*at_snapshot=*/false,
            [this](const std::string& key, const Snapshot* snapshot) {
              const std::vector<std::string> values =
                  MultiGet(std::vector<std::string>{"a", key, "z"}, snapshot);
              EXPECT_EQ(values[0], Value(7));
              EXPECT_EQ(values[2], kNotFound);
              return values[1];
            });
}

// A compaction runs before the iterator has an implicit snapshot, or before it
// has read a sequence number. The results of the iterator do not change
// afterwards.
TEST_P(DBAddressMapRaceTest, NewIteratorIsRightBesideACompaction) {
  for (const bool at_snapshot : {false, true}) {
    RaceReads(
        {"ImplicitSnapshotRegistry::PickShard:Core", "DBImpl::NewIterator:1"},
        at_snapshot, [this](const std::string& key, const Snapshot* snapshot) {
          ReadOptions options;
          options.snapshot = snapshot;
          const std::unique_ptr<Iterator> iter(db_->NewIterator(options));
          const std::string result = Find(iter.get(), key);
          EXPECT_EQ(Find(iter.get(), "a"), Value(7));
          EXPECT_EQ(Find(iter.get(), key), result);
          return result;
        });
  }
}

// ---- Reads in the middle of a job.

// A snapshot and an iterator that are taken at any step of a compaction give
// the same results afterwards. Filters and deletions of files are exceptions:
// they remove values from all readers.
TEST_P(DBAddressMapRaceTest, ReadsAreRightAtEachStepOfACompaction) {
  const std::vector<std::string> points = {
      "CompactionJob::Run:BeforeVerify",
      "CompactionMapping::Publish",
      "MapTransaction::Publish:Inserted",
      "MappedFileRemoval::Publish:Demoted",
      "VersionSet::LogAndApply:WriteManifest",
      "VersionSet::LogAndApply:WriteManifestDone",
      "CompactionMapping::Settle",
      "MapTransaction::Settle",
      "BackgroundJobScheduler::Work:MapRemovals"};
  std::map<std::string, int> counts;
  for (const Change change : kChanges) {
    const Expected expected = ExpectedOf(change);
    for (const std::string& point : points) {
      SCOPED_TRACE(expected.name + " at " + point);
      Prepare(change);
      ASSERT_FALSE(HasFatalFailure());
      const Snapshot* const before = db_->GetSnapshot();
      const Snapshot* during = nullptr;
      std::unique_ptr<Iterator> iter;
      std::string seen;
      bool met = false;
      {
        Callbacks callbacks;
        const auto reached = callbacks.Once(point, [&](void*) {
          OnAnotherThread([&] {
            during = db_->GetSnapshot();
            iter.reset(db_->NewIterator(ReadOptions()));
            seen = Find(iter.get(), expected.key);
            ExpectReads(expected.key, nullptr, expected.during);
            ExpectReads(expected.key, before, expected.during);
            ExpectReads(expected.key, during, expected.during);
            EXPECT_EQ(Get("a"), Value(7));
          });
        });
        Apply(change);
        WaitForJobs();
        met = reached->load();
      }
      counts[point] += met ? 1 : 0;
      if (met) {
        EXPECT_EQ(expected.during.count(seen), 1u) << seen;
        EXPECT_EQ(Find(iter.get(), expected.key), seen);
        ExpectReads(expected.key, during, expected.during);
      }
      ExpectReads(expected.key, before, expected.during);
      ExpectReads(expected.key, nullptr, {expected.after});
      iter.reset();
      db_->ReleaseSnapshot(during);
      db_->ReleaseSnapshot(before);
      CheckAfter(change);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
  for (const std::string& point : points) {
    EXPECT_GT(counts[point], 0) << point;
  }
}

// While a compaction changes a key, the key is written or deleted, and flushed.
// The flush does not wait for the compaction, and no step of the compaction
// hides or frees the newer entry.
TEST_P(DBAddressMapRaceTest, FlushOverTheKeyAtEachStepOfACompaction) {
  // A flush would wait for a compaction that is writing the MANIFEST.
  const std::vector<std::string> points = {"MapTransaction::Publish:Inserted",
                                           "CompactionMapping::Settle",
                                           "MapTransaction::Settle"};
  std::map<std::string, int> counts;
  for (const Change change : kChanges) {
    if (change == Change::kDeleteFiles) {
      continue;  // it is no compaction
    }
    const Expected expected = ExpectedOf(change);
    for (const std::string& point : points) {
      for (const bool deleted : {false, true}) {
        SCOPED_TRACE(expected.name + " at " + point +
                     (deleted ? ", deleted" : ""));
        Prepare(change);
        ASSERT_FALSE(HasFatalFailure());
        const std::string newest = deleted ? kNotFound : Value(50);
        // What filters make of the newest value.
        std::string after = newest;
        uint64_t entries = deleted || change == Change::kFilterRemoves ||
                                   change == Change::kFilterShortens
                               ? 1
                               : 2;
        if (change == Change::kSwitchOff) {
          entries = 0;
        } else if (deleted) {
          // No filter sees it.
        } else if (change == Change::kFilterChanges) {
          after = "changed " + newest;
        } else if (change == Change::kFilterRemoves) {
          after = kNotFound;
        } else if (change == Change::kFilterShortens) {
          after = "s";
        }
        const Snapshot* const before = db_->GetSnapshot();
        const auto write = [&] {
          ASSERT_OK(deleted ? Delete(expected.key) : Put(expected.key, newest));
          ASSERT_OK(Flush());
          ExpectReads(expected.key, nullptr, {newest});
          ExpectReads(expected.key, before, expected.during);
          EXPECT_EQ(Get("a"), Value(7));
        };
        bool met = false;
        {
          Callbacks callbacks;
          const auto reached =
              callbacks.Once(point, [&](void*) { OnAnotherThread(write); });
          Apply(change);
          WaitForJobs();
          met = reached->load();
        }
        counts[point] += met ? 1 : 0;
        if (!met) {
          write();
        }
        // A later step of the compaction may have filtered the newest value.
        ExpectReads(expected.key, nullptr, {newest, after});
        ExpectReads(expected.key, before, expected.during);
        db_->ReleaseSnapshot(before);
        Compact();
        Settle();
        ExpectReads(expected.key, nullptr, {after});
        EXPECT_EQ(Get("a"), Value(7));
        CheckMap(entries);
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }
  for (const std::string& point : points) {
    EXPECT_GT(counts[point], 0) << point;
  }
}

// Reads are right at each step of a flush, also at snapshots that are taken
// during the flush, below a write that is made during the flush.
TEST_P(DBAddressMapRaceTest, ReadsAreRightAtEachStepOfAFlush) {
  struct Mutation {
    const char* name;
    std::string after;
    std::function<Status()> apply;
  };
  const std::vector<Mutation> mutations = {
      {"put", Value(2), [this] { return Put("k", Value(2)); }},
      {"delete", kNotFound, [this] { return Delete("k"); }},
      {"delete range", kNotFound,
       [this] {
         return db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                                 "b", "z");
       }},
      {"merge", Value(1) + ",m",
       [this] { return db_->Merge(WriteOptions(), "k", "m"); }}};
  for (const Mutation& mutation : mutations) {
    for (const char* point :
         {"FlushJob::WriteLevel0Table:num_memtables", "FlushMapping::Publish",
          "MapTransaction::Publish:Inserted",
          "VersionSet::LogAndApply:WriteManifest",
          "VersionSet::LogAndApply:WriteManifestDone", "FlushMapping::Settle",
          "MapTransaction::Settle"}) {
      for (const bool with_old : {false, true}) {
        SCOPED_TRACE(std::string(mutation.name) + " at " + point +
                     (with_old ? ", with an old snapshot" : ""));
        DestroyAndReopen(MapOptions());
        ASSERT_OK(Put("k", Value(1)));
        ASSERT_OK(Flush());
        WaitForJobs();
        const Snapshot* const old = with_old ? db_->GetSnapshot() : nullptr;
        ASSERT_OK(mutation.apply());
        const Snapshot* first = nullptr;
        const Snapshot* second = nullptr;
        std::unique_ptr<Iterator> iter;
        {
          Callbacks callbacks;
          const auto reached = callbacks.Once(point, [&](void*) {
            OnAnotherThread([&] {
              ExpectReads("k", nullptr, {mutation.after});
              if (old != nullptr) {
                ExpectReads("k", old, {Value(1)});
              }
              first = db_->GetSnapshot();
              ASSERT_OK(Put("k", Value(5)));
              second = db_->GetSnapshot();
              iter.reset(db_->NewIterator(ReadOptions()));
              ExpectReads("k", first, {mutation.after});
              ExpectReads("k", nullptr, {Value(5)});
            });
          });
          ASSERT_OK(Flush());
          WaitForJobs();
          EXPECT_TRUE(reached->load());
        }
        const auto check = [&] {
          if (old != nullptr) {
            ExpectReads("k", old, {Value(1)});
          }
          ExpectReads("k", first, {mutation.after});
          ExpectReads("k", second, {Value(5)});
          EXPECT_EQ(Find(iter.get(), "k"), Value(5));
        };
        ASSERT_TRUE(iter != nullptr);
        check();
        ASSERT_OK(Put("k", Value(9)));
        ASSERT_OK(Flush());
        WaitForJobs();
        check();
        Compact();
        check();
        ExpectReads("k", nullptr, {Value(9)});
        iter.reset();
        db_->ReleaseSnapshot(second);
        db_->ReleaseSnapshot(first);
        db_->ReleaseSnapshot(old);
        Compact();
        Settle();
        ExpectReads("k", nullptr, {Value(9)});
        CheckMap(1);
      }
    }
  }
}

// ---- Entries that appear during a read.

// A key has no direct entry when a read begins, and one before it ends. The
// read starts again, unless it has a snapshot, which does not see the new
// entry.
TEST_P(DBAddressMapRaceTest, ReadIsRightWhenADirectEntryAppears) {
  struct Reader {
    const char* name;
    std::vector<std::string> points;
    ReadKey read_key;
  };
  const std::vector<Reader> readers = {
      {"Get",
       {"MapPointRead::Start", "DBImpl::GetImpl:AfterAcquireSv",
        "DBImpl::GetImpl:3", "DBImpl::GetImpl:PostMemTableGet:0",
        "MapPointRead::TakeNamed", "MapPointRead::ConfirmAbsence",
        "MapPointRead::Replace:Pinned"},
       [this](const std::string& key, const Snapshot* snapshot) {
         return Get(key, snapshot);
       }},
      {"MultiGet",
       {"MapPointRead::Start", "DBImpl::MultiCFSnapshot:AfterGetSeqNum1",
        "MapPointRead::TakeNamed", "MapPointRead::ConfirmAbsence",
        "MapPointRead::Replace:Pinned"},
       [this](const std::string& key, const Snapshot* snapshot) {
         return MultiGet(std::vector<std::string>{key}, snapshot)[0];
       }}};
  const std::vector<std::pair<Origin, bool>> origins = {
      {Origin::kAbsent, false},     {Origin::kAbsent, true},
      {Origin::kInMemtable, false}, {Origin::kVersioned, false},
      {Origin::kDeleted, false},    {Origin::kOperand, false}};
  for (const Reader& reader : readers) {
    std::map<std::string, int> counts;
    for (const std::pair<Origin, bool>& variant : origins) {
      const Origin origin = variant.first;
      const bool switch_first = variant.second;
      for (const std::string& point : reader.points) {
        for (const bool at_snapshot : {false, true}) {
          SCOPED_TRACE(std::string(reader.name) + ", origin " +
                       std::to_string(static_cast<int>(origin)) +
                       (switch_first ? ", new memtable" : "") + ", " + point +
                       (at_snapshot ? ", at a snapshot" : ""));
          const std::string initial = Start(origin);
          const Snapshot* const snapshot =
              at_snapshot ? db_->GetSnapshot() : nullptr;
          std::string got;
          bool met = false;
          {
            Callbacks callbacks;
            const auto reached = callbacks.Once(point, [&](void*) {
              OnAnotherThread([&] { InsertDirect(origin, switch_first); });
            });
            got = reader.read_key("k", snapshot);
            met = reached->load();
          }
          counts[point] += met ? 1 : 0;
          if (!met) {
            InsertDirect(origin, switch_first);
          }
          EXPECT_TRUE(got == initial || (got == Value(2) && !at_snapshot))
              << got;
          if (origin == Origin::kAbsent) {
            EXPECT_EQ(DirectSeqOf("k") > 0, !at_snapshot);
            if (at_snapshot) {
              EXPECT_EQ(Ticker(BLOB_MAP_READ_RESTART), 0u);
            } else if (switch_first &&
                       point == "DBImpl::GetImpl:AfterAcquireSv") {
              // k is visible, but in none of the memtables and files of the
              // read.
              EXPECT_EQ(got, Value(2));
              EXPECT_GT(Ticker(BLOB_MAP_READ_RESTART), 0u);
            }
          }
          if (at_snapshot) {
            ExpectReads("k", snapshot, {initial});
          }
          db_->ReleaseSnapshot(snapshot);
          Compact();
          Settle();
          ExpectReads("k", nullptr, {Value(2)});
          CheckMap(2);
        }
      }
    }
    for (const std::string& point : reader.points) {
      EXPECT_GT(counts[point], 0) << reader.name << " at " << point;
    }
  }
}

// A batch of one column family is read at one moment, even if it has more keys
// than are looked up at once, and after several restarts.
TEST_P(DBAddressMapRaceTest, MultiGetOfOneFamilyReadsAtOneMoment) {
  constexpr int kKeys = 40;
  enum Way { kPlain, kAtSnapshot, kSorted, kEntities, kSoftLimit };
  for (const Way way : {kPlain, kAtSnapshot, kSorted, kEntities, kSoftLimit}) {
    SCOPED_TRACE(static_cast<int>(way));
    DestroyAndReopen(MapOptions());
    std::vector<std::string> names;
    for (int i = 0; i < kKeys; ++i) {
      names.push_back(Key(way == kSorted ? i : kKeys - 1 - i));
    }
    const std::vector<Slice> keys(names.begin(), names.end());
    const auto write_all = [&](int version) {
      for (const std::string& name : names) {
        ASSERT_OK(Put(name, Value(version)));
      }
      ASSERT_OK(Flush());
      WaitForJobs();
    };
    write_all(1);
    ReadOptions read_options;
    if (way == kAtSnapshot) {
      read_options.snapshot = db_->GetSnapshot();
    }
    if (way == kSoftLimit) {
      read_options.value_size_soft_limit = 3 * Value(1).size();
    }
    std::atomic<int> attempts{0};
    std::vector<Status> statuses(kKeys);
    std::vector<std::string> got(kKeys);
    {
      Callbacks callbacks;
      callbacks.Always("DBImpl::MultiCFSnapshot:AfterGetSeqNum1", [&](void*) {
        const int attempt = attempts++;
        if (attempt < 5) {
          OnAnotherThread([&] { write_all(10 + attempt); });
        }
      });
      if (way == kEntities) {
        std::vector<PinnableWideColumns> columns(kKeys);
        db_->MultiGetEntity(read_options, db_->DefaultColumnFamily(), kKeys,
                            keys.data(), columns.data(), statuses.data());
        for (int i = 0; i < kKeys; ++i) {
          if (statuses[i].ok()) {
            ASSERT_EQ(columns[i].columns().size(), 1u);
            got[i] = columns[i].columns()[0].value().ToString();
          }
        }
      } else {
        std::vector<PinnableSlice> values(kKeys);
        db_->MultiGet(read_options, db_->DefaultColumnFamily(), kKeys,
                      keys.data(), values.data(), statuses.data(),
                      /*sorted_input=*/way == kSorted);
        for (int i = 0; i < kKeys; ++i) {
          got[i] = values[i].ToString();
        }
      }
    }
    std::set<std::string> different;
    int found = 0;
    for (int i = 0; i < kKeys; ++i) {
      if (statuses[i].ok()) {
        ++found;
        different.insert(got[i]);
      } else {
        EXPECT_TRUE(statuses[i].IsAborted()) << statuses[i].ToString();
      }
    }
    ASSERT_EQ(different.size(), 1u);
    if (way == kSoftLimit) {
      EXPECT_GT(found, 0);
      EXPECT_LT(found, kKeys);
    } else {
      EXPECT_EQ(found, kKeys);
    }
    if (way == kAtSnapshot) {
      EXPECT_EQ(*different.begin(), Value(1));
    } else {
      EXPECT_NE(*different.begin(), Value(1));
      EXPECT_GT(attempts.load(), 1);
      EXPECT_GT(Ticker(BLOB_MAP_READ_RESTART), 0u);
    }
    const int last = 9 + std::min(attempts.load(), 5);
    db_->ReleaseSnapshot(read_options.snapshot);
    Compact();
    Settle();
    for (const std::string& name : names) {
      EXPECT_EQ(Get(name), Value(last));
    }
    CheckMap(kKeys);
  }
}

// ---- Drops of blob files.

// If a file leaves the Version after a read has pinned it and before the read
// opens it, the file stays on disk for the read, and is deleted when the read
// has ended.
TEST_P(DBAddressMapRaceTest, DroppedFileStaysForAReadThatPinnedIt) {
  using Keys = std::vector<std::string>;
  struct Case {
    const char* name;
    size_t num_keys;
    bool one_file;
    std::function<Keys(const Keys&)> read_keys;
  };
  const auto get = [this](const Keys& keys) { return Keys{Get(keys[0])}; };
  const auto get_entity = [this](const Keys& keys) {
    PinnableWideColumns columns;
    EXPECT_OK(db_->GetEntity(ReadOptions(), db_->DefaultColumnFamily(), keys[0],
                             &columns));
    Keys result;
    for (const WideColumn& column : columns.columns()) {
      result.push_back(column.value().ToString());
    }
    return result;
  };
  const auto get_merge_operands = [this](const Keys& keys) {
    GetMergeOperandsOptions options;
    options.expected_max_number_of_operands = 1;
    PinnableSlice operand;
    int n = 0;
    EXPECT_OK(db_->GetMergeOperands(ReadOptions(), db_->DefaultColumnFamily(),
                                    keys[0], &operand, &options, &n));
    EXPECT_EQ(n, 1);
    return Keys{operand.ToString()};
  };
  const auto multi_get = [this](const Keys& keys) { return MultiGet(keys); };
  const std::vector<Case> cases = {
      {"Get", 1, true, get},
      {"GetEntity", 1, true, get_entity},
      {"GetMergeOperands", 1, true, get_merge_operands},
      {"MultiGet of one key", 1, true, multi_get},
      {"MultiGet of one file", 3, true, multi_get},
      {"MultiGet of three files", 3, false, multi_get}};
  for (const Case& c : cases) {
    for (const bool versioned : {false, true}) {
      SCOPED_TRACE(std::string(c.name) + (versioned ? ", versioned" : ""));
      Options options = MapOptions();
      options.enable_lsm_bypass = !versioned;
      DestroyAndReopen(options);
      Keys keys;
      Keys expected;
      for (size_t i = 0; i < c.num_keys; ++i) {
        keys.push_back(Key(static_cast<int>(i)));
        expected.push_back(Value(static_cast<int>(i)));
        ASSERT_OK(Put(keys[i], expected[i]));
        if (!c.one_file || i + 1 == c.num_keys) {
          ASSERT_OK(Flush());
        }
      }
      WaitForJobs();
      const std::vector<BlobMetaData> files = BlobFiles();
      ASSERT_EQ(files.size(), c.one_file ? size_t{1} : c.num_keys);
      std::atomic<size_t> pins{0};
      Keys got;
      {
        Callbacks callbacks;
        callbacks.Always("MapPointRead::Replace:Pinned", [&](void*) {
          if (++pins != c.num_keys) {
            return;
          }
          OnAnotherThread([&] {
            for (const std::string& key : keys) {
              ASSERT_OK(Put(key, Value(100)));
            }
            ASSERT_OK(Flush());
            Compact();
            EXPECT_EQ(BlobFiles().size(), 1u);
            for (const BlobMetaData& file : files) {
              EXPECT_TRUE(OnDisk(file));
            }
          });
        });
        got = c.read_keys(keys);
      }
      EXPECT_EQ(got, expected);
      EXPECT_GE(pins.load(), c.num_keys);
      // The read has announced the files. The release looks at the news.
      db_->ReleaseSnapshot(db_->GetSnapshot());
      WaitForJobs();
      for (const BlobMetaData& file : files) {
        EXPECT_FALSE(OnDisk(file));
      }
      for (const std::string& key : keys) {
        EXPECT_EQ(Get(key), Value(100));
      }
      CheckMap(c.num_keys);
    }
  }
}

// Files are dropped between the insertions of a flush and its commit. The old
// value, the last one of its file, is superseded. The file must stay, because
// the value is current again if the flush fails.
TEST_P(DBAddressMapRaceTest, UncommittedFlushKeepsTheSupersededFile) {
  for (const bool fail : {false, true}) {
    SCOPED_TRACE(fail);
    const Options options = MapOptions();
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", Value(1)));
    ASSERT_OK(Flush());
    WaitForJobs();
    ASSERT_EQ(BlobFiles().size(), 1u);
    const BlobMetaData file = BlobFiles()[0];
    ASSERT_OK(Put("k", Value(2), NoWal()));
    {
      Callbacks callbacks;
      const auto reached =
          callbacks.Once("MapTransaction::Publish:Inserted", [&](void*) {
            OnAnotherThread([&] {
              {
                // The release of the pin causes another check of the file.
                const AddressMapStore::FilePin pin(Blobs(),
                                                   file.blob_file_number);
                EXPECT_TRUE(pin.pinned());
              }
              EXPECT_TRUE(Blobs()->HasDroppableFiles());
              db_->ReleaseSnapshot(db_->GetSnapshot());
              EXPECT_OK(dbfull()->TEST_WaitForPurge());
              EXPECT_FALSE(Blobs()->HasDroppableFiles());
              EXPECT_EQ(BlobFiles().size(), 1u);
              EXPECT_TRUE(OnDisk(file));
            });
            if (fail) {
              Break();
            }
          });
      EXPECT_EQ(Flush().ok(), !fail);
      EXPECT_TRUE(reached->load());
      if (fail) {
        Repair();
      }
    }
    if (fail) {
      EXPECT_EQ(GetPersisted("k"), Value(1));
      CheckMap(1);
      EXPECT_TRUE(OnDisk(file));
      EXPECT_EQ(Ticker(BLOB_MAP_FILES_DROPPED), 0u);
      ASSERT_OK(db_->Resume());
    }
    Settle();
    EXPECT_FALSE(OnDisk(file));
    EXPECT_EQ(Ticker(BLOB_MAP_FILES_DROPPED), 1u);
    for (int round = 0; round < 2; ++round) {
      ExpectReads("k", nullptr, {Value(2)});
      CheckMap(1);
      EXPECT_EQ(BlobFiles().size(), 1u);
      Reopen(options);
    }
  }
}

// A compaction whose edit fails has renamed nothing that counts; the one that
// repeats it has.
TEST_P(DBAddressMapRaceTest, RenamesCountOnceIfTheEditFailsFirst) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", Value(1)));
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  db_->ReleaseSnapshot(snapshot);
  Settle();
  {
    Callbacks callbacks;
    callbacks.Once("VersionSet::LogAndApply:WriteManifest",
                   [this](void*) { Break(); });
    EXPECT_NOK(ForceCompaction());
    Repair();
  }
  EXPECT_EQ(Ticker(BLOB_MAP_RENAMED), 0u);
  ResumeUntilHealthy();
  ASSERT_OK(ForceCompaction());
  WaitForJobs();
  EXPECT_EQ(Ticker(BLOB_MAP_RENAMED), 1u);
  ExpectReads("k", nullptr, {Value(2)});
}

// A removal that has waited for a snapshot and a compaction that renames the
// other entry of the key empty the same file. That file is dropped once, and
// the file of the renamed entry is not dropped.
TEST_P(DBAddressMapRaceTest, RenameDropsTheOtherFileOnce) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  WaitForJobs();
  CheckMap(2);
  const std::vector<BlobMetaData> files = BlobFiles();
  ASSERT_EQ(files.size(), 2u);
  const SequenceNumber old_seq = DirectSeqOf("k");
  {
    Callbacks callbacks;
    const auto reached =
        callbacks.Once("BackgroundJobScheduler::Work:MapRemovals", [&](void*) {
          // Must not wait for removals, as this is one.
          OnAnotherThread([&] { ASSERT_OK(ForceCompaction()); });
        });
    db_->ReleaseSnapshot(snapshot);
    WaitForJobs();
    EXPECT_TRUE(reached->load());
  }
  Settle();
  EXPECT_EQ(Ticker(BLOB_MAP_RENAMED), 1u);
  EXPECT_EQ(Ticker(BLOB_MAP_FILES_DROPPED), 1u);
  EXPECT_GT(DirectSeqOf("k"), old_seq);
  EXPECT_EQ(std::count_if(files.begin(), files.end(),
                          [&](const BlobMetaData& f) { return OnDisk(f); }),
            1);
  for (int round = 0; round < 2; ++round) {
    ExpectReads("k", nullptr, {Value(2)});
    CheckMap(1);
    EXPECT_EQ(BlobFiles().size(), 1u);
    Reopen(options);
  }
}

// If the edit that drops a file fails, the file stays and is dropped later.
TEST_P(DBAddressMapRaceTest, FailedDropIsTriedAgain) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  WaitForJobs();
  ASSERT_EQ(BlobFiles().size(), 1u);
  const BlobMetaData file = BlobFiles()[0];
  ASSERT_OK(Put("k", Value(2)));
  {
    Callbacks callbacks;
    // The DB mutex is held here.
    const auto reached = callbacks.Once(
        "DBStrata::DropEmptyBlobFiles:BeforeEdit", [this](void*) { Break(); });
    // The flush is committed, but returns the later error.
    Flush().PermitUncheckedError();
    EXPECT_NOK(dbfull()->TEST_WaitForBackgroundWork());
    EXPECT_TRUE(reached->load());
    Repair();
  }
  EXPECT_EQ(BlobFiles().size(), 2u);
  EXPECT_TRUE(OnDisk(file));
  EXPECT_EQ(Ticker(BLOB_MAP_FILES_DROPPED), 0u);
  ExpectReads("k", nullptr, {Value(2)});
  CheckMap(1);
  ASSERT_OK(db_->Resume());
  Settle();
  EXPECT_FALSE(OnDisk(file));
  EXPECT_EQ(Ticker(BLOB_MAP_FILES_DROPPED), 1u);
  for (int round = 0; round < 2; ++round) {
    ExpectReads("k", nullptr, {Value(2)});
    CheckMap(1);
    EXPECT_EQ(BlobFiles().size(), 1u);
    Reopen(options);
  }
}

// ---- Filters.

// An old iterator still reads values that a filter has removed, and all other
// reads do not find them any more.
TEST_P(DBAddressMapRaceTest, OldIteratorReadsFilteredValues) {
  Options options = MapOptions();
  options.min_blob_size = 20;
  options.compaction_filter = &filter_;
  DestroyAndReopen(options);
  const std::vector<std::string> keys = {"change1", "keep1",  "operand1",
                                         "remove1", "short1", "skip1",
                                         "skip3",   "skip5"};
  std::string before;
  for (const std::string& key : keys) {
    ASSERT_OK(Put(key, Value(1)));
    before += key + "=" + Value(1) + (key == "operand1" ? ",m" : "") + ";";
  }
  ASSERT_OK(Flush());
  ASSERT_OK(db_->Merge(WriteOptions(), "operand1", "m"));
  ASSERT_OK(Flush());
  WaitForJobs();
  const std::string after = "change1=changed " + Value(1) +
                            ";keep1=" + Value(1) + ";operand1=" + Value(1) +
                            ";short1=s;skip5=" + Value(1) + ";";
  std::unique_ptr<Iterator> old(db_->NewIterator(ReadOptions()));
  EXPECT_EQ(Scan(old.get()), before);
  ASSERT_OK(ForceCompaction());
  for (int step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    {
      const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
      EXPECT_EQ(Scan(iter.get()), after);
    }
    EXPECT_EQ(Get("change1"), "changed " + Value(1));
    EXPECT_EQ(Get("keep1"), Value(1));
    EXPECT_EQ(Get("operand1"), Value(1));
    EXPECT_EQ(Get("short1"), "s");
    EXPECT_EQ(
        MultiGet(
            std::vector<std::string>{"remove1", "skip1", "skip3", "skip5"}),
        (std::vector<std::string>{kNotFound, kNotFound, kNotFound, Value(1)}));
    if (step == 0) {
      EXPECT_EQ(Scan(old.get()), before);
      old.reset();
      Settle();
    } else if (step == 1) {
      Compact();
      Settle();
    } else if (step == 2) {
      CheckMap(4);
      Reopen(options);
    }
  }
  EXPECT_GT(filter_.operands.load(), 0);
  CheckMap(4);
}

// Between the edit of a compaction and its changes to the map, readers may use
// the old values. Results that are merged with these must not be cached for
// later reads.
TEST_P(DBAddressMapRaceTest, FilteredBasesAreNotCachedAsMergedValues) {
  Options options = MapOptions();
  options.min_blob_size = 20;
  options.compaction_filter = &filter_;
  options.enable_merged_value_cache = true;
  DestroyAndReopen(options);
  const std::vector<std::string> keys = {"change1", "remove1", "short1"};
  for (const std::string& key : keys) {
    ASSERT_OK(Put(key, Value(1)));
  }
  ASSERT_OK(Flush());
  WaitForJobs();
  for (const std::string& key : keys) {
    EXPECT_GT(DirectSeqOf(key), 0u);
    ASSERT_OK(db_->Merge(WriteOptions(), key, "m"));
  }
  const std::vector<std::string> after = {"changed " + Value(1) + ",m", "m",
                                          "s,m"};
  std::vector<std::string> between;
  EnableCallBack("CompactionMapping::Settle", [&](void*) {
    for (const std::string& key : keys) {
      between.push_back(Get(key));
    }
  });
  // Compacts only the flushed file.
  ASSERT_OK(dbfull()->TEST_CompactRange(/*level=*/0, nullptr, nullptr));
  DisableCallBacks();
  ASSERT_EQ(between.size(), keys.size());
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(Get(keys[i]), after[i]) << keys[i] << " " << between[i];
    }
  }
  EXPECT_GT(options.statistics->getTickerCount(MERGED_VALUE_CACHE_HIT), 0u);
}

// A listener that is told of a commit starts jobs that wait for the commits
// before them, and writes. The compaction has a value to take out of the map.
TEST_P(DBAddressMapRaceTest, ListenerOfACommitMayDeleteAndIngestFiles) {
  for (const bool ingests : {false, true}) {
    SCOPED_TRACE(ingests);
    Options options = MapOptions();
    options.compaction_filter = &filter_;
    options.min_blob_size = 20;
    const std::string file =
        dbname_ + "/ingested" + std::to_string(ingests) + ".sst";
    const auto call = std::make_shared<BoundedCall>([&] {
      if (ingests) {
        EXPECT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
      } else {
        const Slice begin("a");
        const Slice end("z");
        EXPECT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(),
                                     &begin, &end));
      }
      EXPECT_OK(Put("written", "value"));
    });
    options.listeners = {std::make_shared<CommitListener>(call)};
    DestroyAndReopen(options);
    {
      SstFileWriter writer(EnvOptions(), options);
      ASSERT_OK(writer.Open(file));
      ASSERT_OK(writer.Put("remove1", "new"));
      ASSERT_OK(writer.Finish());
    }
    ASSERT_OK(Put("a", Value(7)));
    ASSERT_OK(Put("remove1", Value(1)));
    ASSERT_OK(Flush());
    WaitForJobs();
    ASSERT_GT(DirectSeqOf("remove1"), 0u);
    ASSERT_OK(dbfull()->TEST_CompactRange(/*level=*/0, nullptr, nullptr));
    ASSERT_TRUE(call->Join());
    WaitForJobs();
    EXPECT_EQ(DirectSeqOf("remove1"), 0u);
    for (const bool reopen : {false, true}) {
      if (reopen) {
        Reopen(options);
      }
      ExpectReads("remove1", /*snapshot=*/nullptr,
                  {ingests ? "new" : kNotFound});
      EXPECT_EQ(Get("a"), Value(7));
      EXPECT_EQ(Get("written"), "value");
    }
  }
}

INSTANTIATE_TEST_CASE_P(Filter, DBAddressMapRaceTest, testing::Bool());

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
