//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// With a WAL buffer, a write that has failed is in no WAL after the DB has
// recovered from the error.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "db/db_test_util.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "port/port.h"
#include "port/stack_trace.h"
#include "rocksdb/listener.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test_util/sync_point.h"
#include "util/cast_util.h"
#include "util/compression.h"
#include "util/mutexlock.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// How the device of the WALs fails.
struct Fault {
  // Appends write so many bytes, or all that they have, and fail.
  bool appends = false;
  size_t written = 0;
  bool syncs = false;
  // The errors of appends and syncs are retryable.
  bool is_retryable = false;
  bool truncates = false;
  // Truncations do nothing, and return OK.
  bool ignores_truncates = false;
  // Writes to MANIFESTs fail, with a retryable error.
  bool manifests = false;
};

constexpr size_t kWhole = SIZE_MAX;

// The last two leave the bytes of a failed write in the file until the device
// works again.
constexpr Fault kFaults[] = {
    {.appends = true},
    {.appends = true, .written = 10},
    {.appends = true, .written = kWhole},
    {.syncs = true},
    {.appends = true, .written = 10, .truncates = true},
    {.syncs = true, .truncates = true},
};

// A file system whose WALs and MANIFESTs are on a device of their own.
class WalDeviceFS final : public FileSystemWrapper {
 public:
  explicit WalDeviceFS(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "WalDeviceFS"; }

  void Break(const Fault& fault) {
    written_ = fault.written;
    syncs_fail_ = fault.syncs;
    is_retryable_ = fault.is_retryable;
    truncates_fail_ = fault.truncates;
    ignores_truncates_ = fault.ignores_truncates;
    appends_fail_ = fault.appends;
    manifests_fail_ = fault.manifests;
  }
  void Repair() { Break(Fault()); }

  // Called once, at the beginning of the next sync of a WAL.
  std::function<void()> on_sync;
  // Called once, at the end of the next append to a WAL that fails.
  std::function<void()> on_failed_append;

  IOStatus NewWritableFile(const std::string& fname, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    IOStatus s = target()->NewWritableFile(fname, options, result, dbg);
    if (s.ok() && fname.ends_with(".log")) {
      *result = std::make_unique<File>(std::move(*result), this);
    } else if (s.ok() && fname.find("/MANIFEST-") != std::string::npos) {
      *result = std::make_unique<Manifest>(std::move(*result), this);
    }
    return s;
  }

 private:
  class File final : public FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<FSWritableFile>&& target, WalDeviceFS* fs)
        : FSWritableFileOwnerWrapper(std::move(target)), fs_(fs) {}
    using FSWritableFileOwnerWrapper::Append;
    IOStatus Append(const Slice& data, const IOOptions& options,
                    IODebugContext* dbg) override {
      if (!fs_->appends_fail_) {
        return target()->Append(data, options, dbg);
      }
      const size_t size = std::min(fs_->written_.load(), data.size());
      EXPECT_OK(target()->Append(Slice(data.data(), size), options, dbg));
      if (fs_->on_failed_append != nullptr) {
        std::exchange(fs_->on_failed_append, nullptr)();
      }
      return fs_->Error();
    }
    IOStatus Truncate(uint64_t size, const IOOptions& options,
                      IODebugContext* dbg) override {
      if (fs_->truncates_fail_) {
        return NoSpace();
      }
      return fs_->ignores_truncates_ ? IOStatus::OK()
                                     : target()->Truncate(size, options, dbg);
    }
    IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
      if (fs_->on_sync != nullptr) {
        std::exchange(fs_->on_sync, nullptr)();
      }
      return fs_->syncs_fail_ ? fs_->Error() : target()->Sync(options, dbg);
    }
    IOStatus RangeSync(uint64_t offset, uint64_t size, const IOOptions& options,
                       IODebugContext* dbg) override {
      return fs_->syncs_fail_ ? fs_->Error()
                              : target()->RangeSync(offset, size, options, dbg);
    }

   private:
    WalDeviceFS* const fs_;
  };

  class Manifest final : public FSWritableFileOwnerWrapper {
   public:
    Manifest(std::unique_ptr<FSWritableFile>&& target, WalDeviceFS* fs)
        : FSWritableFileOwnerWrapper(std::move(target)), fs_(fs) {}
    using FSWritableFileOwnerWrapper::Append;
    IOStatus Append(const Slice& data, const IOOptions& options,
                    IODebugContext* dbg) override {
      if (!fs_->manifests_fail_) {
        return target()->Append(data, options, dbg);
      }
      return Retryable();
    }

   private:
    WalDeviceFS* const fs_;
  };

  static IOStatus NoSpace() { return IOStatus::NoSpace("by the test"); }
  static IOStatus Retryable() {
    IOStatus s = IOStatus::IOError("by the test");
    s.SetRetryable(true);
    return s;
  }
  IOStatus Error() const { return is_retryable_ ? Retryable() : NoSpace(); }

  std::atomic<size_t> written_{0};
  std::atomic<bool> appends_fail_{false};
  std::atomic<bool> syncs_fail_{false};
  std::atomic<bool> is_retryable_{false};
  std::atomic<bool> truncates_fail_{false};
  std::atomic<bool> ignores_truncates_{false};
  std::atomic<bool> manifests_fail_{false};
};

// Forbids automatic recoveries, and calls a function after a flush.
class Listener final : public EventListener {
 public:
  void OnErrorRecoveryBegin(BackgroundErrorReason /*reason*/, Status /*error*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
  void OnFlushCompleted(DB* /*db*/, const FlushJobInfo& /*info*/) override {
    if (on_flush != nullptr) {
      std::exchange(on_flush, nullptr)();
    }
  }

  // Called once, after the next flush.
  std::function<void()> on_flush;
};

// Waits for the end of an automatic recovery.
class RecoveryWaiter final : public EventListener {
 public:
  void OnErrorRecoveryEnd(const BackgroundErrorRecoveryInfo& info) override {
    MutexLock lock(&mutex_);
    result_ = info.new_bg_error;
    has_ended_ = true;
    ended_.SignalAll();
  }

  // Returns the error that the DB has after the recovery.
  Status Wait() {
    MutexLock lock(&mutex_);
    while (!has_ended_) {
      ended_.Wait();
    }
    return result_;
  }

 private:
  port::Mutex mutex_;
  port::CondVar ended_{&mutex_};
  Status result_;
  bool has_ended_ = false;
};

// Collects the keys of write batches.
class KeyCollector final : public WriteBatch::Handler {
 public:
  Status PutCF(uint32_t /*family*/, const Slice& key,
               const Slice& /*value*/) override {
    keys.push_back(key.ToString());
    return Status::OK();
  }

  std::vector<std::string> keys;
};

}  // namespace

class DBWalCutTest : public DBTestBase {
 protected:
  DBWalCutTest()
      : DBTestBase("db_wal_cut_test", /*env_do_fsync=*/false),
        fs_(std::make_shared<WalDeviceFS>(env_->GetFileSystem())),
        device_env_(NewCompositeEnv(fs_)),
        power_fs_(
            std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem())),
        power_device_(std::make_shared<WalDeviceFS>(power_fs_)),
        power_env_(NewCompositeEnv(power_device_)),
        listener_(std::make_shared<Listener>()) {
    sync_.sync = true;
  }
  ~DBWalCutTest() override {
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    fs_->Repair();
    power_device_->Repair();
    Close();
    last_options_ = Options();
    last_options_.env = env_;
    EXPECT_OK(DestroyDir(env_, Copy()));
  }

  // The options of copies.
  Options BufferOptions() {
    Options options = CurrentOptions();
    options.create_if_missing = true;
    options.disable_auto_compactions = true;
    options.wal_mmap_buffer_size = 64 << 10;
    options.avoid_flush_during_recovery = true;
    options.avoid_flush_during_shutdown = true;
    // The default of RocksDB, but not of its tests.
    options.wal_recovery_mode = WALRecoveryMode::kPointInTimeRecovery;
    return options;
  }
  Options DeviceOptions() {
    Options options = BufferOptions();
    options.env = device_env_.get();
    options.listeners.push_back(listener_);
    options.max_bgerror_resume_count = 0;
    return options;
  }

  std::string Copy() const { return dbname_ + "_copy"; }

  // Copies the files that the process would leave if it were killed now.
  // REQUIRES: no thread changes them.
  void CopyFiles() {
    ASSERT_OK(DestroyDir(env_, Copy()));
    ASSERT_OK(env_->CreateDir(Copy()));
    std::vector<std::string> names;
    ASSERT_OK(env_->GetChildren(dbname_, &names));
    for (const std::string& name : names) {
      bool is_dir = false;
      ASSERT_OK(env_->IsDirectory(dbname_ + "/" + name, &is_dir));
      if (!is_dir && name != "LOCK") {
        CopyFile(dbname_ + "/" + name, Copy() + "/" + name);
      }
    }
  }
  // The same after all background work.
  void CopyFilesOf(DB* db) {
    WaitForBackgroundWork(db);
    CopyFiles();
  }
  static void WaitForBackgroundWork(DB* db) {
    DBImpl* const impl = Impl(db);
    impl->TEST_WaitForBackgroundWork().PermitUncheckedError();
    impl->TEST_WaitForPurge().PermitUncheckedError();
  }
  static DBImpl* Impl(DB* db) {
    return static_cast_with_check<DBImpl>(db->GetRootDB());
  }

  static std::string GetOf(DB* db, const std::string& key) {
    std::string value;
    const Status s = db->Get(ReadOptions(), key, &value);
    return s.ok() ? value : s.IsNotFound() ? "none" : s.ToString();
  }

  // Checks that a copy of the files has these keys, with value 1, and not the
  // others.
  void CheckCopyOf(DB* db, const std::vector<std::string>& present,
                   const std::vector<std::string>& absent) {
    CopyFilesOf(db);
    std::unique_ptr<DB> copy;
    ASSERT_OK(DB::Open(BufferOptions(), Copy(), &copy));
    for (const std::string& key : present) {
      ASSERT_EQ("1", GetOf(copy.get(), key)) << key;
    }
    for (const std::string& key : absent) {
      ASSERT_EQ("none", GetOf(copy.get(), key)) << key;
    }
    ASSERT_OK(copy->Close());
  }

  // Returns true if the file of a WAL has the text, also an archived one.
  bool IsInAnyWal(const std::string& text) {
    bool is_found = false;
    for (const std::string& dir : {dbname_, ArchivalDirectory(dbname_)}) {
      std::vector<std::string> names;
      env_->GetChildren(dir, &names).PermitUncheckedError();
      for (const std::string& name : names) {
        if (name.ends_with(".log")) {
          std::string contents;
          EXPECT_OK(ReadFileToString(env_, dir + "/" + name, &contents));
          is_found |= contents.find(text) != std::string::npos;
        }
      }
    }
    return is_found;
  }

  // Makes an empty DB for transactions in the place of db_.
  void OpenTransactionDB(const Options& options,
                         std::unique_ptr<TransactionDB>* db,
                         TxnDBWritePolicy policy = WRITE_COMMITTED) {
    db->reset();
    Close();
    Options plain = BufferOptions();
    ASSERT_OK(DestroyDB(dbname_, plain));
    TransactionDBOptions db_options;
    db_options.write_policy = policy;
    TransactionDB* opened = nullptr;
    ASSERT_OK(TransactionDB::Open(options, db_options, dbname_, &opened));
    db->reset(opened);
  }
  // Opens the copy. Returns its prepared transactions.
  void OpenTransactionCopy(Options options, std::unique_ptr<TransactionDB>* db,
                           std::vector<std::unique_ptr<Transaction>>* prepared,
                           TxnDBWritePolicy policy = WRITE_COMMITTED) {
    options.env = env_;
    options.listeners.clear();
    TransactionDBOptions db_options;
    db_options.write_policy = policy;
    TransactionDB* opened = nullptr;
    ASSERT_OK(TransactionDB::Open(options, db_options, Copy(), &opened));
    db->reset(opened);
    std::vector<Transaction*> found;
    opened->GetAllPreparedTransactions(&found);
    for (Transaction* const txn : found) {
      prepared->emplace_back(txn);
    }
  }
  // Fails a Prepare() whose record has another write behind it in the WAL when
  // it is to be synced.
  void FailPrepareBeforeAnotherWrite(TransactionDB* db, Transaction* txn,
                                     const Fault& fault) {
    bool is_first = true;
    SyncPoint::GetInstance()->SetCallBack("DBImpl::SyncWAL:Begin", [&](void*) {
      if (std::exchange(is_first, false)) {
        ASSERT_OK(db->Put(WriteOptions(), "behind", "1"));
      }
    });
    SyncPoint::GetInstance()->EnableProcessing();
    fs_->Break(fault);
    ASSERT_NOK(txn->Prepare());
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearCallBack("DBImpl::SyncWAL:Begin");
    fs_->Repair();
    ASSERT_FALSE(is_first);
  }
  // Begins a transaction that sets the key of its own name to 1.
  std::unique_ptr<Transaction> Begin(TransactionDB* db,
                                     const std::string& name) {
    std::unique_ptr<Transaction> txn(
        db->BeginTransaction(sync_, TransactionOptions()));
    EXPECT_OK(txn->SetName(name));
    EXPECT_OK(txn->Put(name, "1"));
    return txn;
  }

  // Calls test() for each fault, with one queue of writers and with two, and
  // with WALs that tell the size of the one before.
  void ForTransactions(
      const std::function<void(const Options&, const Fault&)>& test) {
    for (size_t i = 0; i < std::size(kFaults); ++i) {
      for (const bool two_queues : {false, true}) {
        for (const bool verifies : {false, true}) {
          SCOPED_TRACE(testing::Message() << "fault " << i << " queues "
                                          << two_queues << " " << verifies);
          Options options = DeviceOptions();
          options.two_write_queues = two_queues;
          options.track_and_verify_wals = verifies;
          test(options, kFaults[i]);
        }
      }
    }
  }

  WriteOptions sync_;
  const std::shared_ptr<WalDeviceFS> fs_;
  const std::unique_ptr<Env> device_env_;
  // The same with a device that can lose power. Unsynced data is in no file.
  const std::shared_ptr<FaultInjectionTestFS> power_fs_;
  const std::shared_ptr<WalDeviceFS> power_device_;
  const std::unique_ptr<Env> power_env_;
  const std::shared_ptr<Listener> listener_;
};

// The WAL of a prepared transaction outlives the recovery. A commit there would
// end the transaction, although none of its writes is applied.
TEST_F(DBWalCutTest, FailedCommitLeavesThePreparedTransaction) {
  ForTransactions([this](const Options& options, const Fault& fault) {
    std::unique_ptr<TransactionDB> db;
    OpenTransactionDB(options, &db);
    ASSERT_OK(db->Put(sync_, "a", "1"));
    std::unique_ptr<Transaction> txn = Begin(db.get(), "txn");
    ASSERT_OK(txn->Prepare());
    ASSERT_OK(db->Put(WriteOptions(), "b", "1"));
    fs_->Break(fault);
    ASSERT_NOK(txn->Commit());
    fs_->Repair();
    ASSERT_OK(db->Resume());
    ASSERT_OK(db->Put(WriteOptions(), "c", "1"));
    CopyFilesOf(db.get());
    txn.reset();
    db.reset();

    std::vector<std::unique_ptr<Transaction>> prepared;
    OpenTransactionCopy(options, &db, &prepared);
    for (const char* key : {"a", "b", "c"}) {
      ASSERT_EQ("1", GetOf(db.get(), key)) << key;
    }
    ASSERT_EQ("none", GetOf(db.get(), "txn"));
    ASSERT_EQ(1, prepared.size());
    ASSERT_EQ("txn", prepared[0]->GetName());
    ASSERT_OK(prepared[0]->Commit());
    ASSERT_EQ("1", GetOf(db.get(), "txn"));
    prepared.clear();
    db.reset();
  });
}

// The transaction would come back as a prepared one, and hold its locks.
// Another transaction keeps the WAL.
TEST_F(DBWalCutTest, FailedPrepareDoesNotComeBack) {
  ForTransactions([this](const Options& options, const Fault& fault) {
    std::unique_ptr<TransactionDB> db;
    OpenTransactionDB(options, &db);
    ASSERT_OK(db->Put(sync_, "a", "1"));
    std::unique_ptr<Transaction> keeper = Begin(db.get(), "keeper");
    ASSERT_OK(keeper->Prepare());
    ASSERT_OK(db->Put(WriteOptions(), "b", "1"));
    std::unique_ptr<Transaction> txn = Begin(db.get(), "txn");
    fs_->Break(fault);
    ASSERT_NOK(txn->Prepare());
    fs_->Repair();
    ASSERT_OK(db->Resume());
    ASSERT_OK(db->Put(WriteOptions(), "c", "1"));
    CopyFilesOf(db.get());
    keeper.reset();
    txn.reset();
    db.reset();

    std::vector<std::unique_ptr<Transaction>> prepared;
    OpenTransactionCopy(options, &db, &prepared);
    for (const char* key : {"a", "b", "c"}) {
      ASSERT_EQ("1", GetOf(db.get(), key)) << key;
    }
    ASSERT_EQ(1, prepared.size());
    ASSERT_EQ("keeper", prepared[0]->GetName());
    prepared.clear();
    db.reset();
  });
}

// The WAL of a prepared transaction outlives the recovery also without a
// buffer. An open that finds a part of the failed write there goes on with the
// next WAL, which begins with the same sequence number. If the WAL has all of
// the write, the next WAL must begin behind it.
TEST_F(DBWalCutTest, WritesBehindAFailedOneSurviveWithoutABuffer) {
  constexpr Fault kFaultsOfFiles[] = {
      {.appends = true},
      {.appends = true, .written = 10},
      {.appends = true, .written = kWhole},
      {.syncs = true},
      {.appends = true, .written = 10, .truncates = true},
  };
  for (size_t i = 0; i < 2 * std::size(kFaultsOfFiles); ++i) {
    const Fault& fault = kFaultsOfFiles[i / 2];
    const bool two_queues = i % 2 == 1;
    if (two_queues && fault.truncates) {
      continue;  // see below
    }
    for (const bool has_tables : {false, true}) {
      SCOPED_TRACE(testing::Message() << "fault " << i / 2 << " queues "
                                      << two_queues << " " << has_tables);
      Options options = DeviceOptions();
      options.wal_mmap_buffer_size = 0;
      options.two_write_queues = two_queues;
      std::unique_ptr<TransactionDB> db;
      OpenTransactionDB(options, &db);
      if (has_tables) {
        ASSERT_OK(db->Put(sync_, "a", "1"));
        ASSERT_OK(db->Flush(FlushOptions()));
      }
      std::unique_ptr<Transaction> keeper = Begin(db.get(), "keeper");
      ASSERT_OK(keeper->Prepare());
      WriteBatch batch;
      for (const char* key : {"failed1", "failed2", "failed3"}) {
        ASSERT_OK(batch.Put(key, "1"));
      }
      fs_->Break(fault);
      ASSERT_NOK(db->Write(sync_, &batch));
      fs_->Repair();
      ASSERT_OK(db->Resume());
      ASSERT_OK(db->Put(sync_, "behind1", "1"));
      ASSERT_OK(db->Put(sync_, "behind2", "1"));
      CopyFilesOf(db.get());
      ASSERT_OK(keeper->Rollback());
      keeper.reset();
      db.reset();

      std::vector<std::unique_ptr<Transaction>> prepared;
      OpenTransactionCopy(options, &db, &prepared);
      ASSERT_EQ("1", GetOf(db.get(), "behind1"));
      ASSERT_EQ("1", GetOf(db.get(), "behind2"));
      if (has_tables) {
        ASSERT_EQ("1", GetOf(db.get(), "a"));
      }
      // A write whose sync has failed stays in the WAL, as in RocksDB, where
      // a column family may skip it.
      const std::string failed = GetOf(db.get(), "failed1");
      if (!fault.syncs) {
        ASSERT_EQ("none", failed);
      }
      ASSERT_EQ(failed, GetOf(db.get(), "failed3"));
      ASSERT_EQ(1, prepared.size());
      ASSERT_EQ("keeper", prepared[0]->GetName());
      ASSERT_OK(prepared[0]->Rollback());
      prepared.clear();
      db.reset();
    }
  }
}

// What stays in the WAL of a write that has failed could be all of it. Then the
// next write would have sequence numbers of which the WAL has records, or, in
// the same WAL, would be behind other bytes than its writer has counted. With
// two queues, a part does as much harm: an open stops at it, as the next WAL
// does not begin with the sequence number of the write.
TEST_F(DBWalCutTest, WriteThatCannotBeCutOffWithoutABufferIsFatal) {
  struct Case {
    Fault fault;
    bool two_queues = false;
    bool paranoid = true;
  };
  const Case kCases[] = {
      {.fault = {.appends = true, .written = kWhole, .truncates = true}},
      {.fault = {.appends = true,
                 .written = kWhole,
                 .ignores_truncates = true}},
      {.fault = {.appends = true, .written = 10, .truncates = true},
       .paranoid = false},
      {.fault = {.appends = true, .written = 10, .ignores_truncates = true},
       .paranoid = false},
      {.fault = {.appends = true, .written = 10, .truncates = true},
       .two_queues = true},
      {.fault = {.appends = true, .written = 10, .ignores_truncates = true},
       .two_queues = true},
      {.fault = {.appends = true, .written = kWhole, .truncates = true},
       .two_queues = true},
  };
  for (size_t i = 0; i < std::size(kCases); ++i) {
    SCOPED_TRACE(i);
    Options options = DeviceOptions();
    options.wal_mmap_buffer_size = 0;
    options.two_write_queues = kCases[i].two_queues;
    options.paranoid_checks = kCases[i].paranoid;
    std::unique_ptr<TransactionDB> db;
    OpenTransactionDB(options, &db);
    ASSERT_OK(db->Put(sync_, "a", "1"));
    std::unique_ptr<Transaction> keeper = Begin(db.get(), "keeper");
    ASSERT_OK(keeper->Prepare());
    fs_->Break(kCases[i].fault);
    ASSERT_NOK(db->Put(sync_, "failed", std::string(1000, '1')));
    fs_->Repair();
    const Status error = Impl(db.get())->TEST_GetBGError();
    ASSERT_EQ(Status::Severity::kFatalError, error.severity());
    ASSERT_NE(error.ToString().find("cannot be cut off"), std::string::npos)
        << error.ToString();
    ASSERT_NOK(db->Resume());
    ASSERT_NOK(db->Put(sync_, "behind", "1"));
    CopyFilesOf(db.get());
    keeper.reset();
    db.reset();

    std::vector<std::unique_ptr<Transaction>> prepared;
    OpenTransactionCopy(options, &db, &prepared);
    ASSERT_EQ("1", GetOf(db.get(), "a"));
    ASSERT_EQ("none", GetOf(db.get(), "behind"));
    ASSERT_EQ(1, prepared.size());
    ASSERT_OK(prepared[0]->Commit());
    ASSERT_EQ("1", GetOf(db.get(), "keeper"));
    prepared.clear();
    db.reset();
  }
}

// The recovery writes the state of the last commit-time batch to the memtable:
// that of the last commit that has not failed.
TEST_F(DBWalCutTest, FailedCommitDoesNotReplaceTheState) {
  ForTransactions([this](const Options& options, const Fault& fault) {
    std::unique_ptr<TransactionDB> db;
    OpenTransactionDB(options, &db, WRITE_PREPARED);
    TransactionOptions txn_options;
    txn_options.use_only_the_last_commit_time_batch_for_recovery = true;
    std::vector<std::unique_ptr<Transaction>> txns;
    for (const std::string state : {"1", "2"}) {
      txns.emplace_back(db->BeginTransaction(sync_, txn_options));
      ASSERT_OK(txns.back()->SetName("txn" + state));
      ASSERT_OK(txns.back()->Put("key" + state, "1"));
      ASSERT_OK(txns.back()->GetCommitTimeWriteBatch()->Put("state", state));
      ASSERT_OK(txns.back()->Prepare());
    }
    ASSERT_OK(txns[0]->Commit());
    fs_->Break(fault);
    ASSERT_NOK(txns[1]->Commit());
    fs_->Repair();
    ASSERT_OK(db->Resume());
    ASSERT_EQ("1", GetOf(db.get(), "state"));
    CopyFilesOf(db.get());
    ASSERT_OK(txns[1]->Rollback());
    txns.clear();
    db.reset();

    std::vector<std::unique_ptr<Transaction>> prepared;
    OpenTransactionCopy(options, &db, &prepared, WRITE_PREPARED);
    ASSERT_EQ("1", GetOf(db.get(), "state"));
    ASSERT_EQ("1", GetOf(db.get(), "key1"));
    ASSERT_EQ("none", GetOf(db.get(), "key2"));
    ASSERT_EQ(1, prepared.size());
    ASSERT_EQ("txn2", prepared[0]->GetName());
    ASSERT_OK(prepared[0]->Rollback());
    prepared.clear();
    db.reset();
  });
}

// A crash of the process between the flushes of a recovery does not apply a
// part of the batch that has failed.
TEST_F(DBWalCutTest, FailedBatchIsInNoFamily) {
  for (size_t i = 0; i < std::size(kFaults); ++i) {
    SCOPED_TRACE(i);
    const Options options = DeviceOptions();
    DestroyAndReopen(options);
    CreateAndReopenWithCF({"one"}, options);
    for (int family = 0; family < 2; ++family) {
      ASSERT_OK(Put(family, "a", "1"));
    }
    WriteBatch batch;
    ASSERT_OK(batch.Put(handles_[0], "batch", "1"));
    ASSERT_OK(batch.Put(handles_[1], "batch", "1"));
    fs_->Break(kFaults[i]);
    ASSERT_NOK(db_->Write(sync_, &batch));
    fs_->Repair();
    listener_->on_flush = [this] { CopyFiles(); };
    ASSERT_OK(db_->Resume());
    ASSERT_TRUE(listener_->on_flush == nullptr);

    std::vector<ColumnFamilyHandle*> handles;
    std::unique_ptr<DB> copy;
    const Options copied = BufferOptions();
    ASSERT_OK(DB::Open(copied, Copy(),
                       {{kDefaultColumnFamilyName, copied}, {"one", copied}},
                       &handles, &copy));
    for (ColumnFamilyHandle* const handle : handles) {
      std::string value;
      ASSERT_OK(copy->Get(ReadOptions(), handle, "a", &value));
      ASSERT_EQ("1", value);
      ASSERT_TRUE(
          copy->Get(ReadOptions(), handle, "batch", &value).IsNotFound());
      ASSERT_OK(copy->DestroyColumnFamilyHandle(handle));
    }
    ASSERT_OK(copy->Close());
  }
}

// The write after the recovery has the sequence number of the one that has
// failed.
TEST_F(DBWalCutTest, UpdatesHaveNoFailedWrite) {
  for (size_t i = 0; i < std::size(kFaults); ++i) {
    SCOPED_TRACE(i);
    Options options = DeviceOptions();
    options.WAL_ttl_seconds = 1000;
    DestroyAndReopen(options);
    ASSERT_OK(Put("a", "1"));
    fs_->Break(kFaults[i]);
    ASSERT_NOK(db_->Put(sync_, "failed", "1"));
    fs_->Repair();
    ASSERT_OK(db_->Resume());
    ASSERT_OK(Put("b", "1"));
    ASSERT_OK(Put("c", "1"));
    WaitForBackgroundWork(db_.get());
    std::unique_ptr<TransactionLogIterator> iter;
    ASSERT_OK(db_->GetUpdatesSince(1, &iter));
    KeyCollector collector;
    SequenceNumber sequence = 0;
    for (; iter->Valid(); iter->Next()) {
      const BatchResult batch = iter->GetBatch();
      ASSERT_EQ(++sequence, batch.sequence);
      ASSERT_OK(batch.writeBatchPtr->Iterate(&collector));
    }
    ASSERT_OK(iter->status());
    ASSERT_EQ(std::vector<std::string>({"a", "b", "c"}), collector.keys);
  }
}

// An iterator that has read the failed write ahead does not return it in the
// place of the next one.
TEST_F(DBWalCutTest, OlderIteratorDoesNotReturnAFailedWrite) {
  for (const bool has_buffer : {true, false}) {
    SCOPED_TRACE(has_buffer);
    Options options = DeviceOptions();
    options.paranoid_checks = false;
    if (!has_buffer) {
      options.wal_mmap_buffer_size = 0;
      options.allow_2pc = true;
    }
    DestroyAndReopen(options);
    ASSERT_OK(Put("a", "1"));
    std::unique_ptr<TransactionLogIterator> iter;
    const auto make = [&] { ASSERT_OK(db_->GetUpdatesSince(1, &iter)); };
    if (has_buffer) {
      fs_->on_sync = make;
      fs_->Break({.syncs = true});
    } else {
      // A failed sync leaves the write in the WAL.
      fs_->on_failed_append = make;
      fs_->Break({.appends = true, .written = kWhole});
    }
    ASSERT_NOK(db_->Put(sync_, "failed", "1"));
    fs_->Repair();
    ASSERT_TRUE(iter != nullptr);
    ASSERT_OK(Put("b", "1"));
    ASSERT_TRUE(iter->Valid());
    iter->Next();
    ASSERT_FALSE(iter->Valid());
    ASSERT_TRUE(iter->status().IsTryAgain());

    ASSERT_OK(db_->GetUpdatesSince(2, &iter));
    KeyCollector collector;
    ASSERT_TRUE(iter->Valid());
    ASSERT_OK(iter->GetBatch().writeBatchPtr->Iterate(&collector));
    ASSERT_EQ(std::vector<std::string>({"b"}), collector.keys);
  }
}

// The cut does not sync the newest WAL before the older ones: a loss of power
// would leave a write without those before it.
TEST_F(DBWalCutTest, PowerLossAfterACutLeavesNoGap) {
  Options options = DeviceOptions();
  options.env = power_env_.get();
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", "1"));
  ASSERT_OK(dbfull()->TEST_SwitchMemtable());
  ASSERT_OK(Put("b", "1"));
  power_device_->Break({.appends = true, .written = 10});
  ASSERT_NOK(Put("failed", std::string(100 << 10, 'v')));
  power_device_->Repair();
  power_fs_->SetFilesystemActive(false);
  Close();
  ASSERT_OK(power_fs_->DropUnsyncedFileData());
  power_fs_->SetFilesystemActive(true);
  Reopen(options);
  ASSERT_TRUE(Get("a") == "1" || Get("b") == "NOT_FOUND");
  ASSERT_EQ("NOT_FOUND", Get("failed"));
  Close();
}

// Without paranoid_checks the next write goes on in the same WAL, with the
// sequence numbers of the write that has failed.
TEST_F(DBWalCutTest, WritesGoOnBehindAFailedOneThatWasTakenBack) {
  std::vector<CompressionType> compressions = {kNoCompression};
  if (StreamingCompressionTypeSupported(kZSTD)) {
    compressions.push_back(kZSTD);
  }
  for (const CompressionType compression : compressions) {
    for (size_t i = 0; i < std::size(kFaults); ++i) {
      SCOPED_TRACE(i);
      Options options = DeviceOptions();
      options.paranoid_checks = false;
      options.wal_compression = compression;
      DestroyAndReopen(options);
      std::vector<std::string> present;
      std::vector<std::string> absent;
      // The first failure is at the beginning of the WAL.
      for (int round = 0; round < 3; ++round) {
        WriteBatch batch;
        for (int j = 0; j < 5; ++j) {
          absent.push_back("failed" + std::to_string(round * 5 + j));
          ASSERT_OK(batch.Put(absent.back(), std::string(10000, 'v')));
        }
        fs_->Break(kFaults[i]);
        ASSERT_NOK(db_->Write(sync_, &batch));
        fs_->Repair();
        for (int j = 0; j < 3; ++j) {
          present.push_back("key" + std::to_string(round * 3 + j));
          ASSERT_OK(Put(present.back(), "1"));
        }
        CheckCopyOf(db_.get(), present, absent);
      }
      ASSERT_OK(db_->SyncWAL());
      CheckCopyOf(db_.get(), present, absent);
    }
  }
}

// A write that is not synced fails, too, if the WAL is synced bit by bit. Its
// record is complete by then.
TEST_F(DBWalCutTest, WriteWhoseRangeSyncFailsIsTakenBack) {
  Options options = DeviceOptions();
  options.paranoid_checks = false;
  options.wal_bytes_per_sync = 4096;
  DestroyAndReopen(options);
  // The last MiB of a WAL is not synced.
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(Put("large" + std::to_string(i), std::string(100000, 'v')));
  }
  ASSERT_OK(Put("a", "1"));
  fs_->Break({.syncs = true});
  ASSERT_NOK(Put("failed", std::string(8192, 'v')));
  fs_->Repair();
  ASSERT_OK(Put("b", "1"));
  ASSERT_OK(Put("large", std::string(100000, 'v')));
  ASSERT_OK(Put("c", "1"));
  CheckCopyOf(db_.get(), {"a", "b", "c"}, {"failed"});
}

// The ways in which a DB can write to WALs.
TEST_F(DBWalCutTest, FailedWriteIsInNoWalAfterResume) {
  const std::vector<std::function<void(Options*)>> modes = {
      [](Options*) {},
      [](Options* options) { options->enable_pipelined_write = true; },
      [](Options* options) { options->unordered_write = true; },
      [](Options* options) { options->two_write_queues = true; },
      [](Options* options) { options->max_write_groups_per_leader = 8; },
      [](Options* options) { options->atomic_flush = true; }};
  for (size_t mode = 0; mode < modes.size(); ++mode) {
    for (size_t i = 0; i < std::size(kFaults); ++i) {
      SCOPED_TRACE(testing::Message() << "mode " << mode << " fault " << i);
      Options options = DeviceOptions();
      options.WAL_ttl_seconds = 1000;
      modes[mode](&options);
      DestroyAndReopen(options);
      ASSERT_OK(Put("before", "1"));
      ASSERT_OK(Put("buffered", "1"));
      fs_->Break(kFaults[i]);
      ASSERT_NOK(db_->Put(sync_, "failed", "1"));
      fs_->Repair();
      ASSERT_OK(db_->Resume());
      ASSERT_OK(db_->Put(sync_, "after", "1"));
      ASSERT_EQ("NOT_FOUND", Get("failed"));
      WaitForBackgroundWork(db_.get());
      for (const char* key : {"before", "buffered", "after"}) {
        ASSERT_TRUE(IsInAnyWal(key)) << key;
      }
      ASSERT_FALSE(IsInAnyWal("failed"));
      CheckCopyOf(db_.get(), {"before", "buffered", "after"}, {"failed"});
    }
  }
}

// With two queues, a write of the other one may be in the WAL behind a write
// whose sync fails. Neither can be taken back then, so the DB does not recover
// without a new open.
TEST_F(DBWalCutTest, FailedSyncBeforeAnotherWriteIsFatal) {
  Options options = DeviceOptions();
  options.two_write_queues = true;
  std::unique_ptr<TransactionDB> db;
  OpenTransactionDB(options, &db);
  ASSERT_OK(db->Put(WriteOptions(), "a", "1"));
  std::unique_ptr<Transaction> txn = Begin(db.get(), "txn");
  FailPrepareBeforeAnotherWrite(db.get(), txn.get(), {.appends = true});
  ASSERT_EQ(Status::Severity::kFatalError,
            Impl(db.get())->TEST_GetBGError().severity());
  ASSERT_NOK(db->Resume());
  CopyFilesOf(db.get());
  txn.reset();
  db.reset();

  std::vector<std::unique_ptr<Transaction>> prepared;
  OpenTransactionCopy(options, &db, &prepared);
  ASSERT_EQ("1", GetOf(db.get(), "a"));
  ASSERT_EQ("1", GetOf(db.get(), "behind"));
  for (const auto& found : prepared) {
    ASSERT_OK(found->Rollback());
  }
  prepared.clear();
  db.reset();
}

// If the WAL was synced, and only the MANIFEST could not be written, the write
// stays in the WAL. So those behind it do no harm, and the DB recovers.
TEST_F(DBWalCutTest, FailedManifestWriteAfterTheSyncIsNotFatal) {
  Options options = DeviceOptions();
  options.two_write_queues = true;
  options.track_and_verify_wals_in_manifest = true;
  std::unique_ptr<TransactionDB> db;
  OpenTransactionDB(options, &db);
  ASSERT_OK(db->Put(WriteOptions(), "a", "1"));
  // The MANIFEST gets the sizes of WALs that are not the newest.
  ASSERT_OK(Impl(db.get())->TEST_SwitchMemtable());
  ASSERT_OK(db->Put(WriteOptions(), "b", "1"));
  std::unique_ptr<Transaction> txn = Begin(db.get(), "txn");
  FailPrepareBeforeAnotherWrite(db.get(), txn.get(), {.manifests = true});
  ASSERT_EQ(Status::Severity::kHardError,
            Impl(db.get())->TEST_GetBGError().severity());
  ASSERT_OK(db->Resume());
  ASSERT_OK(db->Put(sync_, "c", "1"));
  for (const char* key : {"a", "b", "behind", "c"}) {
    ASSERT_EQ("1", GetOf(db.get(), key)) << key;
  }
  txn.reset();
  db.reset();
}

// Without paranoid_checks there is no background error, also if something
// wants to switch memtables while the file of the WAL cannot be cut.
TEST_F(DBWalCutTest, SwitchBeforeTheWalIsCutIsNotFatal) {
  for (const bool is_atomic : {false, true}) {
    SCOPED_TRACE(is_atomic);
    Options options = DeviceOptions();
    options.paranoid_checks = false;
    options.atomic_flush = is_atomic;
    DestroyAndReopen(options);
    CreateAndReopenWithCF({"one"}, options);
    ASSERT_OK(Put(0, "a", "1"));
    ASSERT_OK(Put(1, "a", "1"));
    fs_->Break({.appends = true, .written = 10, .truncates = true});
    ASSERT_NOK(db_->Put(sync_, handles_[0], "failed", "1"));
    fs_->Break({.truncates = true});
    ASSERT_NOK(db_->Flush(FlushOptions(), handles_));
    // This switches memtables, too.
    db_->SetDBOptions({{"max_total_wal_size", "1"}}).PermitUncheckedError();
    ASSERT_NOK(db_->Put(WriteOptions(), handles_[0], "failed", "1"));
    ASSERT_OK(dbfull()->TEST_GetBGError());
    fs_->Repair();
    ASSERT_OK(Put(0, "b", "1"));
    ASSERT_OK(db_->Flush(FlushOptions(), handles_));
    for (const char* key : {"a", "b"}) {
      ASSERT_EQ("1", Get(0, key)) << key;
    }
    ASSERT_EQ("NOT_FOUND", Get(0, "failed"));
    WaitForBackgroundWork(db_.get());
  }
}

// While the file of the WAL cannot be cut, no newer WAL takes its place.
TEST_F(DBWalCutTest, ResumeFailsIfTheWalCannotBeCut) {
  for (const bool verifies : {false, true}) {
    SCOPED_TRACE(verifies);
    Options options = DeviceOptions();
    options.track_and_verify_wals = verifies;
    DestroyAndReopen(options);
    ASSERT_OK(Put("a", "1"));
    ASSERT_OK(Put("b", "1"));
    const uint64_t wal = dbfull()->TEST_LogfileNumber();
    fs_->Break({.appends = true, .written = 30, .truncates = true});
    ASSERT_NOK(db_->Put(sync_, "failed", "1"));
    fs_->Break({.truncates = true});
    ASSERT_NOK(db_->Resume());
    ASSERT_EQ(wal, dbfull()->TEST_LogfileNumber());
    fs_->Repair();
    CheckCopyOf(db_.get(), {"a", "b"}, {});
    Reopen(options);
    ASSERT_EQ("1", Get("a"));
    ASSERT_EQ("1", Get("b"));
  }
}

// An automatic recovery outlasts a device that is still away at its first
// attempt, whatever error the cut of the WAL has.
TEST_F(DBWalCutTest, AutomaticRecoveryWaitsUntilTheWalCanBeCut) {
  for (const bool is_atomic : {false, true}) {
    SCOPED_TRACE(is_atomic);
    const auto waiter = std::make_shared<RecoveryWaiter>();
    Options options = DeviceOptions();
    options.atomic_flush = is_atomic;
    options.listeners = {waiter};
    options.max_bgerror_resume_count = 100;
    options.bgerror_resume_retry_interval = 1;
    DestroyAndReopen(options);
    ASSERT_OK(Put("a", "1"));
    int num_failed_attempts = 0;
    SyncPoint::GetInstance()->SetCallBack(
        "RecoverFromRetryableBGIOError:BeforeWait0", [&](void*) {
          if (++num_failed_attempts == 2) {
            fs_->Repair();
          }
        });
    SyncPoint::GetInstance()->EnableProcessing();
    fs_->Break({.syncs = true, .is_retryable = true, .truncates = true});
    ASSERT_NOK(db_->Put(sync_, "failed", "1"));
    ASSERT_OK(waiter->Wait());
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    ASSERT_EQ(2, num_failed_attempts);
    ASSERT_OK(db_->Put(sync_, "b", "1"));
    ASSERT_EQ("NOT_FOUND", Get("failed"));
    CheckCopyOf(db_.get(), {"a", "b"}, {"failed"});
  }
}

// No write of its own has failed with SyncWAL() and FlushWAL(), so they take
// nothing back.
TEST_F(DBWalCutTest, FailedSyncOfTheWalKeepsAllWrites) {
  for (const bool syncs : {false, true}) {
    for (size_t i = 0; i < std::size(kFaults); ++i) {
      SCOPED_TRACE(i);
      Options options = DeviceOptions();
      options.paranoid_checks = false;
      DestroyAndReopen(options);
      ASSERT_OK(Put("a", "1"));
      ASSERT_OK(Put("b", "1"));
      fs_->Break(kFaults[i]);
      ASSERT_EQ(kFaults[i].appends || syncs, !db_->FlushWAL(syncs).ok());
      CheckCopyOf(db_.get(), {"a", "b"}, {});
      fs_->Repair();
      ASSERT_OK(Put("c", "1"));
      ASSERT_OK(db_->SyncWAL());
      CheckCopyOf(db_.get(), {"a", "b", "c"}, {});
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
