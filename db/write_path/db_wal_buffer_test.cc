//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// WALs whose last bytes are in a mapped file (wal_mmap_buffer_size) keep all
// writes after the process has ended, and every reader of WALs finds all
// writes.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "db/db_test_util.h"
#include "db/log_reader.h"
#include "db/version_edit.h"
#include "db/version_util.h"
#include "db/write_path/wal_buffer_format.h"
#include "db/write_path/wal_buffer_options.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "file/sequence_file_reader.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/env_encryption.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test_util/strata/history_fault_fs_test_util.h"
#include "util/coding.h"
#include "util/crc32c.h"
#include "util/defer.h"
#include "util/random.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* self = nullptr;

std::string KeyOf(int i) {
  char key[16];
  snprintf(key, sizeof(key), "key%08d", i);
  return key;
}

Options ChildOptions() {
  Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10;
  options.wal_mmap_buffer_size = 16 << 10;
  options.max_write_groups_per_leader = 8;
  return options;
}

constexpr int kChildThreads = 3;

// Writes until the process is killed. Reports each write that has returned on
// standard output, as its thread and number.
int RunChild(const std::string& dbname, const std::string& round) {
  std::unique_ptr<DB> db;
  Status s = DB::Open(ChildOptions(), dbname, &db);
  if (!s.ok()) {
    fprintf(stderr, "%s\n", s.ToString().c_str());
    return 1;
  }
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kChildThreads; ++thread) {
    threads.emplace_back([&db, &round, thread] {
      Random rnd(301 + thread);
      for (int i = 0;; ++i) {
        const Status written =
            db->Put(WriteOptions(), std::to_string(thread) + KeyOf(i),
                    round + ":" + std::to_string(i) + ":" +
                        rnd.RandomString(rnd.Uniform(300)));
        if (!written.ok()) {
          fprintf(stderr, "%s\n", written.ToString().c_str());
          _exit(1);
        }
        const int32_t report[2] = {thread, i};
        if (write(STDOUT_FILENO, report, sizeof(report)) !=
            static_cast<ssize_t>(sizeof(report))) {
          _exit(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}

// A file system that lets a test write between the steps of a listing of WALs.
class WalListingFS : public FileSystemWrapper {
 public:
  explicit WalListingFS(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "WalListingFS"; }

  // Has the next listing of a directory call before_listing() first, and the
  // first query of a file's size after it call after_size().
  void Arm(std::function<void()> before_listing,
           std::function<void()> after_size) {
    before_listing_ = std::move(before_listing);
    after_size_ = std::move(after_size);
  }

  // Returns the names in their order, so that older WALs come first.
  IOStatus GetChildren(const std::string& dir, const IOOptions& options,
                       std::vector<std::string>* names,
                       IODebugContext* dbg) override {
    is_listed_ = before_listing_ != nullptr;
    Call(&before_listing_);
    const IOStatus s = target()->GetChildren(dir, options, names, dbg);
    std::sort(names->begin(), names->end());
    return s;
  }
  IOStatus GetFileSize(const std::string& fname, const IOOptions& options,
                       uint64_t* size, IODebugContext* dbg) override {
    const IOStatus s = target()->GetFileSize(fname, options, size, dbg);
    if (is_listed_) {
      Call(&after_size_);
    }
    return s;
  }

 private:
  static void Call(std::function<void()>* fn) {
    if (*fn != nullptr) {
      std::exchange(*fn, nullptr)();
    }
  }

  std::function<void()> before_listing_;
  std::function<void()> after_size_;
  bool is_listed_ = false;
};

}  // namespace

class DBWalBufferTest : public DBTestBase {
 protected:
  DBWalBufferTest()
      : DBTestBase("db_wal_buffer_test", /*env_do_fsync=*/false) {}
  ~DBWalBufferTest() override {
    Close();
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    EXPECT_OK(DestroyDir(env_, Copy()));
  }

  Options BufferOptions() {
    Options options = CurrentOptions();
    options.wal_mmap_buffer_size = 64 << 10;
    options.statistics = CreateDBStatistics();
    // Recovery must not flush, so that a DB that is opened still has its WAL.
    options.avoid_flush_during_recovery = true;
    options.avoid_flush_during_shutdown = true;
    return options;
  }

  std::string Copy() const { return dbname_ + "_copy"; }

  // Waits until the WALs of flushes that have returned are deleted. They are
  // deleted in the background, and the files in dbname_ must not be listed
  // before.
  void WaitForDeletions() {
    if (db_ != nullptr) {
      // With a background error nothing is deleted.
      dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
      dbfull()->TEST_WaitForPurge().PermitUncheckedError();
    }
  }

  // Copies the files that the process would leave if it were killed now.
  // REQUIRES: no thread writes.
  void CopyFiles() {
    WaitForDeletions();
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

  static std::string GetOf(DB* db, const std::string& key) {
    std::string value;
    const Status s = db->Get(ReadOptions(), key, &value);
    return s.ok() ? value : s.ToString();
  }

  // Checks that the DB has the keys [0, count), with i as the value of key i,
  // and not the key `count`.
  void CheckKeys(DB* db, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(std::to_string(i), GetOf(db, KeyOf(i)));
    }
    ASSERT_EQ("NotFound: ", GetOf(db, KeyOf(count)));
  }
  void CheckCopy(const Options& options, int count) {
    std::unique_ptr<DB> db;
    // The first two opens are read-only, and must not change the files.
    const bool has_buffer = HasBuffer(Copy());
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(DB::OpenForReadOnly(options, Copy(), &db));
      CheckKeys(db.get(), count);
      db.reset();
      ASSERT_EQ(has_buffer, HasBuffer(Copy()));
    }
    ASSERT_OK(DB::Open(options, Copy(), &db));
    CheckKeys(db.get(), count);
    ASSERT_OK(db->Close());
  }

  void PutKeys(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      ASSERT_OK(Put(KeyOf(i), std::to_string(i)));
    }
  }

  // Creates a DB in Copy() on `fault_env` that has keys [0, 10), and leaves it
  // open.
  void MakeCopyWithFaults(Env* fault_env, std::unique_ptr<DB>* db) {
    Options options = BufferOptions();
    options.env = fault_env;
    options.create_if_missing = true;
    ASSERT_OK(DB::Open(options, Copy(), db));
    for (int i = 0; i < 10; ++i) {
      ASSERT_OK((*db)->Put(WriteOptions(), KeyOf(i), std::to_string(i)));
    }
  }

  std::vector<std::string> WalsIn(const std::string& dir) {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(dir, &names));
    std::vector<std::string> wals;
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(name, &number, &type) && type == kWalFile) {
        wals.push_back(name);
      }
    }
    return wals;
  }
  uint64_t SizeOfWals() {
    WaitForDeletions();
    uint64_t all = 0;
    for (const std::string& name : WalsIn(dbname_)) {
      uint64_t size = 0;
      EXPECT_OK(env_->GetFileSize(dbname_ + "/" + name, &size));
      all += size;
    }
    return all;
  }

  bool HasBuffer(const std::string& dir) {
    return env_->FileExists(WalBufferFileName(dir)).ok();
  }

  // Returns true if an edit of the current MANIFEST says that there may be a
  // buffer.
  bool HasMark(const std::string& dir) {
    std::string current;
    EXPECT_OK(ReadFileToString(env_, CurrentFileName(dir), &current));
    EXPECT_FALSE(current.empty());
    current.pop_back();
    std::unique_ptr<FSSequentialFile> file;
    EXPECT_OK(env_->GetFileSystem()->NewSequentialFile(
        dir + "/" + current, FileOptions(), &file, nullptr));
    log::Reader reader(/*info_log=*/nullptr,
                       std::make_unique<SequentialFileReader>(
                           std::move(file), current, /*io_tracer=*/nullptr),
                       /*reporter=*/nullptr, /*checksum=*/true,
                       /*log_num=*/0);
    bool has_mark = false;
    Slice record;
    std::string scratch;
    while (reader.ReadRecord(&record, &scratch)) {
      VersionEdit edit;
      EXPECT_OK(edit.DecodeFrom(record));
      has_mark |= edit.HasWalBuffer();
    }
    return has_mark;
  }

  int NumManifests(const std::string& dir) {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(dir, &names));
    return static_cast<int>(
        std::count_if(names.begin(), names.end(), [](const std::string& name) {
          return name.compare(0, 9, "MANIFEST-") == 0;
        }));
  }
};

TEST_F(DBWalBufferTest, OptionIsCheckedAndRoundedUpToPages) {
  DBOptions options;
  ASSERT_OK(ValidateWalBuffer(options));
  options.wal_mmap_buffer_size = 1 << 20;
  ASSERT_OK(ValidateWalBuffer(options));
  options.recycle_log_file_num = 1;
  Status s = ValidateWalBuffer(options);
  ASSERT_TRUE(s.IsInvalidArgument());
  ASSERT_NE(std::string::npos, s.ToString().find("recycle_log_file_num"));
  options.recycle_log_file_num = 0;
  options.manual_wal_flush = true;
  s = ValidateWalBuffer(options);
  ASSERT_TRUE(s.IsInvalidArgument());
  ASSERT_NE(std::string::npos, s.ToString().find("manual_wal_flush"));

  Options db_options = BufferOptions();
  db_options.manual_wal_flush = true;
  ASSERT_TRUE(TryReopen(db_options).IsInvalidArgument());
  // The range is that of the table of options.
  db_options = BufferOptions();
  db_options.wal_mmap_buffer_size = WalBufferFormat::kMinSize - 1;
  ASSERT_TRUE(TryReopen(db_options).IsInvalidArgument());
  // 5000 bytes are rounded up to whole pages.
  db_options = BufferOptions();
  db_options.wal_mmap_buffer_size = 5000;
  Reopen(db_options);
  uint64_t size = 0;
  ASSERT_OK(env_->GetFileSize(WalBufferFileName(dbname_), &size));
  ASSERT_EQ(8192, size);
}

TEST_F(DBWalBufferTest, EncryptedFilesAreRefused) {
  std::shared_ptr<EncryptionProvider> provider;
  ASSERT_OK(EncryptionProvider::CreateFromString(ConfigOptions(), "CTR://test",
                                                 &provider));
  const std::unique_ptr<Env> encrypted(
      NewEncryptedEnv(Env::Default(), provider));
  Options options = BufferOptions();
  options.env = encrypted.get();
  options.create_if_missing = true;
  std::unique_ptr<DB> db;
  const Status s = DB::Open(options, Copy(), &db);
  ASSERT_TRUE(s.IsNotSupported()) << s.ToString();
  ASSERT_FALSE(HasBuffer(Copy()));
}

TEST_F(DBWalBufferTest, NoWriteIsLostIfTheProcessIsKilled) {
  const Options options = BufferOptions();
  Options without = options;
  without.wal_mmap_buffer_size = 0;
  Reopen(options);
  ASSERT_TRUE(HasBuffer(dbname_));
  // Without these writes a DB that is opened read-only might have no WAL at
  // all.
  ASSERT_OK(Put(KeyOf(0), "old"));
  ASSERT_OK(Flush());
  PutKeys(0, 1);
  // The first bytes of the WAL are in its file.
  const uint64_t first = SizeOfWals();
  ASSERT_LT(0, first);
  PutKeys(1, 100);
  ASSERT_EQ(first, SizeOfWals());
  for (const Options& opened_with : {options, without}) {
    CopyFiles();
    ASSERT_TRUE(HasBuffer(Copy()));
    CheckCopy(opened_with, 100);
    ASSERT_FALSE(HasBuffer(Copy()));
    CheckCopy(opened_with, 100);
  }
  // These writes need much more space than the buffer has.
  PutKeys(100, 5000);
  ASSERT_LT(first, SizeOfWals());
  ASSERT_LT(0, options.statistics->getTickerCount(WAL_BUFFER_WRITES));
  CopyFiles();
  CheckCopy(options, 5000);
  // The buffer has the end of another WAL.
  ASSERT_OK(Flush());
  PutKeys(5000, 5010);
  CopyFiles();
  CheckCopy(options, 5010);
  // A clean close deletes the buffer.
  Reopen(without);
  ASSERT_FALSE(HasBuffer(dbname_));
  CheckKeys(db_.get(), 5010);
}

// A loss of power may lose writes that were not synced, but no write that is
// older than one that survives.
TEST_F(DBWalBufferTest, PowerLossKeepsAPrefixWithAllSyncedWrites) {
  for (const int num_synced : {0, 5, 10, 15}) {
    const Options options = BufferOptions();
    DestroyAndReopen(options);
    // Maps each WAL to its size after a loss of power: its size when it was
    // synced, or 0.
    std::map<std::string, uint64_t> durable;
    const auto put = [&](int begin, int end) {
      for (int i = begin; i < end; ++i) {
        PutKeys(i, i + 1);
        if (i + 1 == num_synced) {
          ASSERT_OK(db_->SyncWAL());
          for (const std::string& name : WalsIn(dbname_)) {
            ASSERT_OK(env_->GetFileSize(dbname_ + "/" + name, &durable[name]));
          }
        }
      }
    };
    put(0, 10);
    ASSERT_OK(dbfull()->TEST_SwitchMemtable());
    put(10, 20);
    CopyFiles();
    ASSERT_EQ(2u, WalsIn(Copy()).size());
    for (const std::string& name : WalsIn(Copy())) {
      const std::string fname = Copy() + "/" + name;
      std::string contents;
      ASSERT_OK(ReadFileToString(env_, fname, &contents));
      ASSERT_LE(durable[name], contents.size());
      contents.resize(durable[name]);
      ASSERT_OK(WriteStringToFile(env_, contents, fname));
    }
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options, Copy(), &db));
    int num = 0;
    while (num < 20 && GetOf(db.get(), KeyOf(num)) == std::to_string(num)) {
      ++num;
    }
    ASSERT_LE(num_synced, num);
    for (int i = num; i < 20; ++i) {
      ASSERT_EQ("NotFound: ", GetOf(db.get(), KeyOf(i))) << num_synced;
    }
    ASSERT_OK(db->Close());
  }
}

TEST_F(DBWalBufferTest, FailedRecoveryKeepsTheBuffer) {
  Options options = BufferOptions();
  Reopen(options);
  PutKeys(0, 10);
  for (const bool paranoid_checks : {true, false}) {
    options.paranoid_checks = paranoid_checks;
    CopyFiles();
    bool fails = true;
    SyncPoint::GetInstance()->SetCallBack(
        "WalBufferRecovery::Write:Opened", [&](void* arg) {
          if (fails) {
            *static_cast<IOStatus*>(arg) = IOStatus::IOError("by the test");
          }
        });
    SyncPoint::GetInstance()->EnableProcessing();
    std::unique_ptr<DB> db;
    const Status s = DB::Open(options, Copy(), &db);
    ASSERT_TRUE(s.IsIOError()) << s.ToString();
    ASSERT_TRUE(HasBuffer(Copy()));
    fails = false;
    CheckCopy(options, 10);
    SyncPoint::GetInstance()->DisableProcessing();

    // A buffer of a newer version is not supported.
    CopyFiles();
    std::string buffer;
    ASSERT_OK(ReadFileToString(env_, WalBufferFileName(Copy()), &buffer));
    EncodeFixed32(buffer.data() + 8, 2);
    EncodeFixed32(buffer.data() + 40,
                  crc32c::Mask(crc32c::Value(buffer.data(), 40)));
    ASSERT_OK(WriteStringToFile(env_, buffer, WalBufferFileName(Copy())));
    ASSERT_TRUE(DB::Open(options, Copy(), &db).IsNotSupported());
    ASSERT_TRUE(HasBuffer(Copy()));

    // Nothing can be recovered from this buffer.
    ASSERT_OK(WriteStringToFile(env_, std::string(5000, 'x'),
                                WalBufferFileName(Copy())));
    ASSERT_EQ(paranoid_checks, DB::Open(options, Copy(), &db).IsCorruption());
  }
}

// Best-efforts recovery reads no WALs, but leaves them to the next open.
TEST_F(DBWalBufferTest, BestEffortsRecoveryLeavesWalsToTheNextOpen) {
  const Options options = BufferOptions();
  Options best_efforts = options;
  best_efforts.best_efforts_recovery = true;
  Reopen(options);
  PutKeys(0, 10);
  CopyFiles();
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(best_efforts, Copy(), &db));
  ASSERT_OK(db->Close());
  db.reset();
  CheckCopy(options, 10);
}

TEST_F(DBWalBufferTest, NoWriteIsLostIfTheProcessIsKilledTwice) {
  const Options options = BufferOptions();
  Reopen(options);
  PutKeys(0, 10);
  CopyFiles();
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, Copy(), &db));
  // The WAL that the DB was recovered from still exists, and the buffer belongs
  // to another WAL.
  ASSERT_OK(db->Put(WriteOptions(), KeyOf(10), "10"));
  Close();
  ASSERT_OK(DestroyDB(dbname_, options));
  ASSERT_OK(env_->CreateDirIfMissing(dbname_));
  std::vector<std::string> names;
  ASSERT_OK(env_->GetChildren(Copy(), &names));
  for (const std::string& name : names) {
    if (name != "LOCK" && name != "archive") {
      CopyFile(Copy() + "/" + name, dbname_ + "/" + name);
    }
  }
  Reopen(options);
  CheckKeys(db_.get(), 11);
}

TEST_F(DBWalBufferTest, NoWriteOfAnyFamilyIsLostIfTheProcessIsKilled) {
  const Options options = BufferOptions();
  CreateAndReopenWithCF({"one"}, options);
  ASSERT_OK(Put(0, "a", "1"));
  ASSERT_OK(Put(1, "a", "2"));
  ASSERT_OK(Flush(0));
  ASSERT_OK(Put(1, "b", "3"));
  CopyFiles();
  std::vector<ColumnFamilyHandle*> handles;
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, Copy(),
                     {{kDefaultColumnFamilyName, options}, {"one", options}},
                     &handles, &db));
  std::string value;
  for (const auto& [cf, key, expected] :
       std::vector<std::tuple<int, std::string, std::string>>{
           {0, "a", "1"}, {1, "a", "2"}, {1, "b", "3"}}) {
    ASSERT_OK(db->Get(ReadOptions(), handles[cf], key, &value));
    ASSERT_EQ(expected, value);
  }
  for (ColumnFamilyHandle* handle : handles) {
    ASSERT_OK(db->DestroyColumnFamilyHandle(handle));
  }
  ASSERT_OK(db->Close());
}

TEST_F(DBWalBufferTest, ReadersOfWalsFindAllWrites) {
  const Options options = BufferOptions();
  Reopen(options);
  PutKeys(0, 10);
  VectorWalPtr files;
  ASSERT_OK(db_->GetSortedWalFiles(files));
  ASSERT_EQ(1, files.size());
  ASSERT_EQ(SizeOfWals(), files[0]->SizeFileBytes());
  ASSERT_LT(10 * 20, SizeOfWals());

  PutKeys(10, 20);
  std::unique_ptr<WalFile> file;
  ASSERT_OK(db_->GetCurrentWalFile(&file));
  ASSERT_LT(files[0]->SizeFileBytes(), file->SizeFileBytes());

  PutKeys(20, 30);
  std::unique_ptr<TransactionLogIterator> iter;
  ASSERT_OK(db_->GetUpdatesSince(1, &iter));
  int found = 0;
  for (; iter->Valid(); iter->Next()) {
    ++found;
  }
  ASSERT_OK(iter->status());
  ASSERT_EQ(30, found);
  // The iterator says that there is more, as at the end of a WAL that is
  // continued elsewhere.
  PutKeys(30, 40);
  iter->Next();
  ASSERT_FALSE(iter->Valid());
  ASSERT_TRUE(iter->status().IsTryAgain());
  ASSERT_OK(db_->GetUpdatesSince(31, &iter));
  ASSERT_TRUE(iter->Valid());
  ASSERT_EQ(31, iter->GetBatch().sequence);

  // After LockWAL(), FlushWAL(), SyncWAL() and a sync write, the files of the
  // WALs are complete without the buffer.
  PutKeys(40, 50);
  ASSERT_OK(db_->LockWAL());
  CopyFiles();
  ASSERT_OK(env_->DeleteFile(WalBufferFileName(Copy())));
  ASSERT_OK(db_->UnlockWAL());
  CheckCopy(options, 50);

  PutKeys(50, 60);
  ASSERT_OK(db_->FlushWAL(/*sync=*/false));
  CopyFiles();
  ASSERT_OK(env_->DeleteFile(WalBufferFileName(Copy())));
  CheckCopy(options, 60);

  PutKeys(60, 70);
  ASSERT_OK(db_->SyncWAL());
  CopyFiles();
  ASSERT_OK(env_->DeleteFile(WalBufferFileName(Copy())));
  CheckCopy(options, 70);

  WriteOptions sync;
  sync.sync = true;
  ASSERT_OK(db_->Put(sync, KeyOf(70), "70"));
  CopyFiles();
  ASSERT_OK(env_->DeleteFile(WalBufferFileName(Copy())));
  CheckCopy(options, 71);
}

// While the WALs are listed, a WAL gets more bytes, and then a newer WAL its
// first.
TEST_F(DBWalBufferTest, ListedWalHasAllWritesBeforeANewerWal) {
  const auto fs = std::make_shared<WalListingFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> env = NewCompositeEnv(fs);
  // The DB is closed before its Env is deleted.
  const Defer close([this] { Close(); });
  Options options = BufferOptions();
  options.env = env.get();
  Reopen(options);
  PutKeys(0, 10);
  fs->Arm(
      [this] {
        // The file of the WAL lacks these keys, as long as the next WAL is
        // empty.
        PutKeys(10, 20);
        ASSERT_OK(dbfull()->TEST_SwitchMemtable());
      },
      [this] { PutKeys(20, 21); });
  VectorWalPtr files;
  ASSERT_OK(db_->GetSortedWalFiles(files));
  ASSERT_EQ(2, files.size());
  uint64_t size = 0;
  ASSERT_OK(env_->GetFileSize(dbname_ + files[0]->PathName(), &size));
  ASSERT_EQ(size, files[0]->SizeFileBytes());

  // A copy of the listed parts has all writes up to one of them.
  CopyFiles();
  ASSERT_OK(env_->DeleteFile(WalBufferFileName(Copy())));
  for (const std::unique_ptr<WalFile>& file : files) {
    CopyFile(dbname_ + file->PathName(), Copy() + file->PathName(),
             file->SizeFileBytes());
  }
  options.env = env_;
  CheckCopy(options, 21);
}

TEST_F(DBWalBufferTest, CheckpointAndBackupHaveAllWrites) {
  const Options options = BufferOptions();
  Reopen(options);
  PutKeys(0, 10);
  std::unique_ptr<Checkpoint> checkpoint;
  {
    Checkpoint* created = nullptr;
    ASSERT_OK(Checkpoint::Create(db_.get(), &created));
    checkpoint.reset(created);
  }
  // The checkpoint does not flush memtables.
  ASSERT_OK(checkpoint->CreateCheckpoint(Copy(), UINT64_MAX));
  ASSERT_FALSE(HasBuffer(Copy()));
  CheckCopy(options, 10);

  PutKeys(10, 20);
  ASSERT_OK(DestroyDir(env_, Copy()));
  const std::string backup_dir = dbname_ + "_backup";
  ASSERT_OK(DestroyDir(env_, backup_dir));
  {
    std::unique_ptr<BackupEngine> engine;
    BackupEngine* opened = nullptr;
    ASSERT_OK(
        BackupEngine::Open(env_, BackupEngineOptions(backup_dir), &opened));
    engine.reset(opened);
    ASSERT_OK(engine->CreateNewBackup(db_.get()));
    // The backup is restored into a directory with the buffer of another DB.
    CopyFiles();
    ASSERT_OK(engine->RestoreDBFromLatestBackup(Copy(), Copy()));
    CheckCopy(options, 20);
    // The backup is restored beside WALs that continue those of the backup.
    PutKeys(20, 30);
    CopyFiles();
    RestoreOptions restore;
    restore.keep_log_files = true;
    ASSERT_OK(engine->RestoreDBFromLatestBackup(restore, Copy(), Copy()));
    CheckCopy(options, 30);
  }
  ASSERT_OK(DestroyDir(env_, backup_dir));
}

// A read-only DB has the end of its WAL in memory only, so it cannot list its
// WAL files.
TEST_F(DBWalBufferTest, ReadOnlyDbWithABufferRefusesToListWals) {
  const Options options = BufferOptions();
  Reopen(options);
  PutKeys(0, 10);
  CopyFiles();
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::OpenForReadOnly(options, Copy(), &db));
  VectorWalPtr files;
  const Status s = db->GetSortedWalFiles(files);
  ASSERT_TRUE(s.IsNotSupported()) << s.ToString();
  ASSERT_NE(std::string::npos, s.ToString().find("WALBUFFER"));
  std::vector<LiveFileStorageInfo> infos;
  ASSERT_TRUE(db->GetLiveFilesStorageInfo(LiveFilesStorageInfoOptions(), &infos)
                  .IsNotSupported());
  std::unique_ptr<TransactionLogIterator> iter;
  ASSERT_TRUE(db->GetUpdatesSince(0, &iter).IsNotSupported());
  db.reset();
  CheckCopy(options, 10);
  ASSERT_OK(DB::OpenForReadOnly(options, Copy(), &db));
  ASSERT_OK(db->GetSortedWalFiles(files));
}

// While another DB writes, the buffer has the end of the WAL, too.
TEST_F(DBWalBufferTest, ReadOnlyDbBesideAWriterListsWalsAfterFlushWal) {
  const Options options = BufferOptions();
  Reopen(options);
  PutKeys(0, 10);
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::OpenForReadOnly(options, dbname_, &db));
  ASSERT_EQ("9", GetOf(db.get(), KeyOf(9)));
  VectorWalPtr files;
  std::unique_ptr<WalFile> file;
  std::vector<LiveFileStorageInfo> infos;
  std::unique_ptr<TransactionLogIterator> iter;
  for (const Status& s :
       {db->GetSortedWalFiles(files), db->GetCurrentWalFile(&file),
        db->GetLiveFilesStorageInfo(LiveFilesStorageInfoOptions(), &infos),
        db->GetUpdatesSince(0, &iter)}) {
    EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
    EXPECT_NE(s.ToString().find("call its FlushWAL()"), std::string::npos)
        << s.ToString();
  }
  // It stays so until the DB is opened again.
  ASSERT_OK(db_->FlushWAL(/*sync=*/false));
  ASSERT_TRUE(db->GetSortedWalFiles(files).IsNotSupported());
  db.reset();
  ASSERT_OK(DB::OpenForReadOnly(options, dbname_, &db));
  ASSERT_OK(db->GetSortedWalFiles(files));
  ASSERT_FALSE(files.empty());
}

// A buffer that belongs to none of the WALs is deleted. Otherwise it could be
// applied to later WALs that look like those it was for.
TEST_F(DBWalBufferTest, StaleBufferIsDeleted) {
  Options options = BufferOptions();
  Reopen(options);
  PutKeys(0, 10);
  CopyFiles();
  std::string buffer;
  ASSERT_OK(ReadFileToString(env_, WalBufferFileName(Copy()), &buffer));
  ASSERT_OK(DestroyDir(env_, Copy()));
  ASSERT_OK(env_->CreateDir(Copy()));
  ASSERT_OK(WriteStringToFile(env_, buffer, WalBufferFileName(Copy())));
  options.wal_mmap_buffer_size = 0;
  options.create_if_missing = true;
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, Copy(), &db));
  ASSERT_FALSE(HasBuffer(Copy()));
  ASSERT_EQ("NotFound: ", GetOf(db.get(), KeyOf(0)));
  ASSERT_OK(db->Close());
}

// If the end of a WAL cannot be written at the close, Close() fails and the
// buffer stays.
TEST_F(DBWalBufferTest, FailedCloseKeepsBufferAndMark) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env(NewCompositeEnv(fault_fs));
  std::unique_ptr<DB> db;
  MakeCopyWithFaults(fault_env.get(), &db);
  fault_fs->SetFilesystemActive(false, IOStatus::IOError("the device is gone"));
  ASSERT_NOK(db->Close());
  db.reset();
  fault_fs->SetFilesystemActive(true);
  ASSERT_TRUE(HasBuffer(Copy()));
  ASSERT_TRUE(HasMark(Copy()));
  CheckCopy(BufferOptions(), 10);
  ASSERT_FALSE(HasMark(Copy()));
}

// A tool that writes a MANIFEST offline keeps the mark: the end of the WAL is
// still in the buffer alone.
TEST_F(DBWalBufferTest, OfflineManifestWriterKeepsTheMark) {
  DestroyAndReopen(BufferOptions());
  PutKeys(0, 40);
  // The process is killed.
  CopyFiles();
  Options without = BufferOptions();
  without.wal_mmap_buffer_size = 0;
  {
    OfflineManifestWriter writer(without, Copy());
    ASSERT_OK(writer.Recover({{kDefaultColumnFamilyName, without}}));
    ColumnFamilyData* const cfd =
        writer.Versions().GetColumnFamilySet()->GetDefault();
    std::unique_ptr<FSDirectory> directory;
    ASSERT_OK(env_->GetFileSystem()->NewDirectory(Copy(), IOOptions(),
                                                  &directory, nullptr));
    VersionEdit edit;
    ASSERT_OK(writer.LogAndApply(ReadOptions(), WriteOptions(), cfd, &edit,
                                 directory.get()));
  }
  ASSERT_TRUE(HasMark(Copy()));
  CheckCopy(without, 40);
  ASSERT_FALSE(HasMark(Copy()));
}

// The MANIFEST has the mark while there is a buffer, so that RocksDB refuses
// the DB instead of losing the end of its WAL.
TEST_F(DBWalBufferTest, ManifestHasTheMarkWhileThereIsABuffer) {
  for (const bool reuse_manifest : {false, true}) {
    SCOPED_TRACE(reuse_manifest);
    Options options = BufferOptions();
    options.reuse_manifest_on_open = reuse_manifest;
    Options without = options;
    without.wal_mmap_buffer_size = 0;
    DestroyAndReopen(without);
    ASSERT_FALSE(HasMark(dbname_));
    // The mark is written at the open, before the first write.
    Reopen(options);
    ASSERT_TRUE(HasMark(dbname_));
    PutKeys(0, 10);
    // Each new MANIFEST has the mark.
    const uint64_t manifest = dbfull()->TEST_Current_Manifest_FileNo();
    ASSERT_OK(db_->SetDBOptions({{"max_manifest_file_size", "1"},
                                 {"max_manifest_space_amp_pct", "0"}}));
    for (int i = 0; i < 20; ++i) {
      PutKeys(10 + i, 11 + i);
      ASSERT_OK(Flush());
    }
    ASSERT_LT(manifest, dbfull()->TEST_Current_Manifest_FileNo());
    ASSERT_TRUE(HasMark(dbname_));
    PutKeys(30, 40);
    // The process is killed.
    CopyFiles();
    ASSERT_TRUE(HasMark(Copy()));
    CheckCopy(without, 40);
    ASSERT_FALSE(HasMark(Copy()));
    CopyFiles();
    CheckCopy(options, 40);
    ASSERT_FALSE(HasMark(Copy()));
    ASSERT_EQ(NumManifests(Copy()), 1);
    // The DB is closed.
    Close();
    ASSERT_FALSE(HasMark(dbname_));
    ASSERT_EQ(NumManifests(dbname_), 1);
    Reopen(without);
    ASSERT_FALSE(HasMark(dbname_));
    CheckKeys(db_.get(), 40);
    // A read-only open accepts the mark and keeps it.
    Reopen(options);
    CopyFiles();
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::OpenForReadOnly(without, Copy(), &db));
    db.reset();
    ASSERT_TRUE(HasMark(Copy()));
  }
}

// If the creation of a new MANIFEST fails at the close, the old MANIFEST keeps
// the mark, and the next open finds all writes.
TEST_F(DBWalBufferTest, FailedNewManifestAtCloseKeepsTheMark) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env(NewCompositeEnv(fault_fs));
  std::unique_ptr<DB> db;
  MakeCopyWithFaults(fault_env.get(), &db);
  int removed = 0;
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::RemoveWalBuffer:Removed", [&](void*) {
        ++removed;
        fault_fs->SetFilesystemActive(false,
                                      IOStatus::IOError("the device is gone"));
      });
  SyncPoint::GetInstance()->EnableProcessing();
  db->Close().PermitUncheckedError();
  db.reset();
  SyncPoint::GetInstance()->DisableProcessing();
  fault_fs->SetFilesystemActive(true);
  ASSERT_EQ(removed, 1);
  ASSERT_FALSE(HasBuffer(Copy()));
  ASSERT_TRUE(HasMark(Copy()));
  CheckCopy(BufferOptions(), 10);
  ASSERT_FALSE(HasMark(Copy()));
}

TEST_F(DBWalBufferTest, RepairAppliesTheBufferOrSetsItAside) {
  const Options options = BufferOptions();
  Reopen(options);
  PutKeys(0, 10);
  ASSERT_OK(Flush());
  PutKeys(10, 20);
  CopyFiles();
  ASSERT_OK(RepairDB(Copy(), options));
  ASSERT_FALSE(HasBuffer(Copy()));
  CheckCopy(options, 20);
  // A damaged buffer is set aside.
  CopyFiles();
  ASSERT_OK(WriteStringToFile(env_, std::string(5000, 'x'),
                              WalBufferFileName(Copy())));
  std::unique_ptr<DB> db;
  ASSERT_TRUE(DB::Open(options, Copy(), &db).IsCorruption());
  ASSERT_OK(RepairDB(Copy(), options));
  ASSERT_FALSE(HasBuffer(Copy()));
  ASSERT_TRUE(HasBuffer(Copy() + "/lost"));
  // The first write after the flush is in the file of the WAL.
  CheckCopy(options, 11);
}

TEST_F(DBWalBufferTest, DestroyDBDeletesTheBuffer) {
  for (const bool has_wal_dir : {false, true}) {
    Options options = BufferOptions();
    options.create_if_missing = true;
    if (has_wal_dir) {
      options.wal_dir = Copy() + "_wal";
    }
    const std::string dir = has_wal_dir ? options.wal_dir : Copy();
    {
      std::unique_ptr<DB> db;
      ASSERT_OK(DB::Open(options, Copy(), &db));
      ASSERT_OK(db->Put(WriteOptions(), "a", "b"));
      ASSERT_TRUE(HasBuffer(dir));
      std::string buffer;
      ASSERT_OK(ReadFileToString(env_, WalBufferFileName(dir), &buffer));
      ASSERT_OK(db->Close());
      db.reset();
      ASSERT_OK(WriteStringToFile(env_, buffer, WalBufferFileName(dir)));
    }
    ASSERT_OK(DestroyDB(Copy(), options));
    ASSERT_TRUE(env_->FileExists(dir).IsNotFound());
    ASSERT_TRUE(env_->FileExists(Copy()).IsNotFound());
  }
}

// An error of the device loses no write that has returned.
TEST_F(DBWalBufferTest, DeviceErrorLosesNoReturnedWrite) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env(NewCompositeEnv(fault_fs));
  for (const bool is_retryable : {false, true}) {
    Options options = BufferOptions();
    options.env = fault_env.get();
    options.max_bgerror_resume_count = 0;
    DestroyAndReopen(options);
    PutKeys(0, 100);
    IOStatus error = IOStatus::IOError("the device is gone");
    error.SetRetryable(is_retryable);
    fault_fs->SetFilesystemActive(false, error);
    // These writes go to the buffer and need no device.
    PutKeys(100, 110);
    WriteOptions sync;
    sync.sync = true;
    ASSERT_NOK(db_->Put(sync, "sync", "1"));
    ASSERT_NOK(db_->Put(WriteOptions(), "after", "1"));
    CheckKeys(db_.get(), 110);
    fault_fs->SetFilesystemActive(true);
    CopyFiles();
    const Options other = BufferOptions();
    CheckCopy(other, 110);
    ASSERT_EQ(is_retryable, db_->Resume().ok());
    if (is_retryable) {
      PutKeys(110, 120);
    }
    CopyFiles();
    CheckCopy(other, is_retryable ? 120 : 110);
  }
  Destroy(last_options_);
}

// The buffer has the end of an older WAL, whose file could not be written. The
// first record of the next WAL tells the size of the older one, the buffer
// included.
TEST_F(DBWalBufferTest, ReadOnlyOpenReadsWalsBehindTheBuffer) {
  const auto fault_fs =
      std::make_shared<HistoryFaultFS>(env_->GetFileSystem(), dbname_);
  const std::unique_ptr<Env> fault_env(NewCompositeEnv(fault_fs));
  for (const bool verifies : {false, true}) {
    SCOPED_TRACE(verifies);
    Options options = BufferOptions();
    options.track_and_verify_wals = verifies;
    options.env = fault_env.get();
    DestroyAndReopen(options);
    PutKeys(0, 10);
    HistoryFaultFS::Rule rule;
    rule.op = HistoryFileOp::kWrite;
    rule.pattern = LogFileName("", dbfull()->TEST_LogfileNumber()).substr(1);
    fault_fs->AddRule(rule);
    ASSERT_OK(dbfull()->TEST_SwitchMemtable());
    PutKeys(10, 20);
    CopyFiles();
    fault_fs->ClearRules();
    options.env = env_;
    CheckCopy(options, 20);
  }
  Destroy(last_options_);
  Close();
}

TEST_F(DBWalBufferTest, PreparedTransactionIsRecovered) {
  Options options = BufferOptions();
  options.create_if_missing = true;
  Close();
  ASSERT_OK(DestroyDB(dbname_, options));
  TransactionDB* opened = nullptr;
  ASSERT_OK(
      TransactionDB::Open(options, TransactionDBOptions(), dbname_, &opened));
  std::unique_ptr<TransactionDB> db(opened);
  std::unique_ptr<Transaction> txn(
      db->BeginTransaction(WriteOptions(), TransactionOptions()));
  ASSERT_OK(txn->SetName("prepared"));
  ASSERT_OK(txn->Put("a", "1"));
  ASSERT_OK(txn->Prepare());
  ASSERT_OK(db->Put(WriteOptions(), "b", "2"));
  CopyFiles();
  ASSERT_OK(txn->Rollback());
  txn.reset();
  db.reset();
  ASSERT_OK(
      TransactionDB::Open(options, TransactionDBOptions(), Copy(), &opened));
  db.reset(opened);
  ASSERT_EQ("2", GetOf(db.get(), "b"));
  txn.reset(db->GetTransactionByName("prepared"));
  ASSERT_NE(nullptr, txn);
  ASSERT_OK(txn->Commit());
  ASSERT_EQ("1", GetOf(db.get(), "a"));
  txn.reset();
  db.reset();
}

// A process that is killed while it writes loses no write that has returned.
TEST_F(DBWalBufferTest, KilledWriterLosesNoReturnedWrite) {
  const auto seed = static_cast<uint32_t>(env_->NowMicros());
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random rnd(seed);
  Close();
  ASSERT_OK(DestroyDB(dbname_, ChildOptions()));
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    int pipes[2];
    ASSERT_EQ(0, pipe(pipes));
    const pid_t child = fork();
    ASSERT_LE(0, child);
    if (child == 0) {
      dup2(pipes[1], STDOUT_FILENO);
      close(pipes[0]);
      close(pipes[1]);
      execl(self, self, "--write-until-killed", dbname_.c_str(),
            std::to_string(round).c_str(), nullptr);
      _exit(1);
    }
    close(pipes[1]);
    int last[kChildThreads] = {-1, -1, -1};
    const int wanted = 1 + rnd.Uniform(3000);
    int seen = 0;
    int32_t report[2];
    bool is_killed = false;
    for (;;) {
      const ssize_t size = read(pipes[0], report, sizeof(report));
      if (size != static_cast<ssize_t>(sizeof(report))) {
        break;
      }
      last[report[0]] = report[1];
      if (++seen == wanted) {
        is_killed = true;
        ASSERT_EQ(0, kill(child, SIGKILL));
      }
    }
    close(pipes[0]);
    int status = 0;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    ASSERT_TRUE(is_killed);
    ASSERT_TRUE(WIFSIGNALED(status));
    Options options = ChildOptions();
    if (rnd.OneIn(3)) {
      options.wal_mmap_buffer_size = 0;
    }
    std::unique_ptr<DB> db;
    if (rnd.OneIn(3)) {
      ASSERT_OK(DB::OpenForReadOnly(options, dbname_, &db));
    } else {
      ASSERT_OK(DB::Open(options, dbname_, &db));
    }
    for (int thread = 0; thread < kChildThreads; ++thread) {
      for (int i = 0; i <= last[thread]; ++i) {
        const std::string value =
            GetOf(db.get(), std::to_string(thread) + KeyOf(i));
        ASSERT_TRUE(Slice(value).starts_with(std::to_string(round) + ":" +
                                             std::to_string(i) + ":"))
            << thread << " " << i << " " << value;
      }
    }
    db->Close().PermitUncheckedError();
  }
  ASSERT_OK(DestroyDB(dbname_, ChildOptions()));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--write-until-killed") {
    return ROCKSDB_NAMESPACE::RunChild(argv[2], argv[3]);
  }
  ROCKSDB_NAMESPACE::self = argv[0];
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
