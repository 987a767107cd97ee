//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// After a background error, Resume() restarts the work that the error stopped,
// and a recovery does not hang.

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/column_family.h"
#include "db/db_test_util.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_store.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/file_system.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "util/cast_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A file system with a directory on a device that can be full or return
// retryable errors. Opening or syncing this directory, and writes to MANIFESTs
// and WALs, can be made to fail as well.
class FullDeviceFS : public FileSystemWrapper {
 public:
  FullDeviceFS(const std::shared_ptr<FileSystem>& base, std::string directory)
      : FileSystemWrapper(base), directory_(std::move(directory)) {}

  static const char* kClassName() { return "FullDeviceFS"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    if (full && name.compare(0, directory_.size(), directory_) == 0) {
      ++refused;
      if (retryable) {
        return RetryableError();
      }
      return IOStatus::NoSpace("No space left on device");
    }
    IOStatus s = FileSystemWrapper::NewWritableFile(name, options, result, dbg);
    if (s.ok() && name.find("MANIFEST") != std::string::npos) {
      *result =
          std::make_unique<FailingFile>(std::move(*result), &manifest_fails);
    } else if (s.ok() && name.find(".log") != std::string::npos) {
      *result = std::make_unique<FailingFile>(std::move(*result), &wal_fails);
    }
    return s;
  }

  IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                        std::unique_ptr<FSDirectory>* result,
                        IODebugContext* dbg) override {
    const bool is_ours =
        (name + "/").compare(0, directory_.size(), directory_) == 0;
    if (is_ours && directory_opens_fail) {
      return RetryableError();
    }
    IOStatus s = FileSystemWrapper::NewDirectory(name, options, result, dbg);
    if (s.ok() && is_ours) {
      *result = std::make_unique<FailingDirectory>(std::move(*result),
                                                   &directory_syncs_fail);
    }
    return s;
  }

  std::atomic<bool> full{false};
  std::atomic<bool> directory_opens_fail{false};
  std::atomic<bool> directory_syncs_fail{false};
  bool retryable = false;
  std::atomic<bool> manifest_fails{false};
  std::atomic<bool> wal_fails{false};
  std::atomic<int> refused{0};

 private:
  class FailingFile : public FSWritableFileOwnerWrapper {
   public:
    FailingFile(std::unique_ptr<FSWritableFile>&& file,
                const std::atomic<bool>* fails)
        : FSWritableFileOwnerWrapper(std::move(file)), fails_(fails) {}
    using FSWritableFileOwnerWrapper::Append;
    IOStatus Append(const Slice& data, const IOOptions& options,
                    IODebugContext* dbg) override {
      if (*fails_) {
        return RetryableError();
      }
      return target()->Append(data, options, dbg);
    }

   private:
    const std::atomic<bool>* const fails_;
  };

  class FailingDirectory : public FSDirectoryWrapper {
   public:
    FailingDirectory(std::unique_ptr<FSDirectory>&& directory,
                     const std::atomic<bool>* fails)
        : FSDirectoryWrapper(std::move(directory)), fails_(fails) {}
    IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg,
                                 const DirFsyncOptions& dir_options) override {
      if (*fails_) {
        return RetryableError();
      }
      return FSDirectoryWrapper::FsyncWithDirOptions(options, dbg, dir_options);
    }

   private:
    const std::atomic<bool>* const fails_;
  };

  const std::string directory_;
};

}  // namespace

class DBResumeTest : public DBTestBase {
 protected:
  DBResumeTest() : DBTestBase("db_resume_test", /*env_do_fsync=*/false) {}
  ~DBResumeTest() override { Close(); }

  // Level 0 is on the first path, the other levels are on the second one, if
  // there is a layout.
  void OpenOnTwoDevices(bool with_layout) {
    second_ = dbname_ + "_second/";
    ASSERT_OK(env_->CreateDirIfMissing(second_));
    // The environment of the previous DB is replaced below, so the DB is closed
    // first.
    Close();
    last_options_.env = env_;
    fs_ = std::make_shared<FullDeviceFS>(env_->GetFileSystem(), second_);
    device_env_ = NewCompositeEnv(fs_);
    options_ = CurrentOptions();
    options_.env = device_env_.get();
    options_.create_if_missing = true;
    options_.level0_file_num_compaction_trigger = 2;
    options_.level0_slowdown_writes_trigger = 3;
    options_.level0_stop_writes_trigger = 4;
    options_.max_write_buffer_number = 2;
    options_.max_subcompactions = 1;
    if (with_layout) {
      options_.cf_paths = {{dbname_, 0}, {second_, 0}};
      options_.level_sst_path_ids = {0, 1};
    } else {
      // Bytes beyond the target size of the first path go to the second one.
      options_.cf_paths = {{dbname_, 1}, {second_, uint64_t{1} << 40}};
    }
    DestroyAndReopen(options_);
  }

  // While there is a background error, Flush() may return it.
  void WriteFile(int number, bool may_fail = false) {
    WriteOptions write_options;
    write_options.no_slowdown = true;
    for (int i = 0; i < 10; ++i) {
      ASSERT_OK(db_->Put(write_options, Key(i),
                         std::to_string(number) + std::string(100, 'v')));
    }
    FlushOptions flush_options;
    flush_options.allow_write_stall = true;
    const Status s = db_->Flush(flush_options);
    ASSERT_TRUE(s.ok() || (may_fail && s.IsNoSpace())) << s.ToString();
  }

  void CompactAfterFullDevice(bool with_layout) {
    OpenOnTwoDevices(with_layout);
    WriteFile(0);
    WriteFile(1);
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    if (with_layout) {
      ASSERT_EQ(FilesPerLevel().substr(0, 2), "0,");
    }
    fs_->full = true;
    fs_->refused = 0;
    WriteFile(2, /*may_fail=*/true);
    WriteFile(3, /*may_fail=*/true);
    for (int i = 0;
         i < 100 && (fs_->refused == 0 || dbfull()->TEST_GetBGError().ok());
         ++i) {
      env_->SleepForMicroseconds(50000);
    }
    ASSERT_GT(fs_->refused, 0);
    ASSERT_TRUE(dbfull()->TEST_GetBGError().IsNoSpace());
    // A memtable waits, too, not only the compaction.
    WriteOptions write_options;
    write_options.no_slowdown = true;
    ASSERT_OK(db_->Put(write_options, "waits", "value"));
    FlushOptions flush_options;
    flush_options.wait = false;
    flush_options.allow_write_stall = true;
    db_->Flush(flush_options).PermitUncheckedError();

    // The failed job ends after a pause and schedules further jobs if it may.
    std::string property;
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(
          db_->GetProperty("rocksdb.num-running-compactions", &property));
      if (property == "0") {
        break;
      }
      env_->SleepForMicroseconds(50000);
    }
    ASSERT_EQ(property, "0");

    // The device has space again. Nothing is written before the checks, so no
    // write can schedule the jobs.
    fs_->full = false;
    ASSERT_OK(db_->Resume());
    for (int i = 0; i < 200 && NumTableFilesAtLevel(0) > 1; ++i) {
      env_->SleepForMicroseconds(50000);
    }
    EXPECT_LE(NumTableFilesAtLevel(0), 1);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(
          db_->GetProperty("rocksdb.num-immutable-mem-table", &property));
      if (property == "0") {
        break;
      }
      env_->SleepForMicroseconds(50000);
    }
    EXPECT_EQ(property, "0");
    for (int number = 4; number < 10; ++number) {
      WriteFile(number);
      ASSERT_OK(dbfull()->TEST_WaitForCompact());
    }
    EXPECT_EQ(Get("waits"), "value");
  }

  static void Await(const std::atomic<bool>* flag) {
    for (int i = 0; i < 1000 && !*flag; ++i) {
      Env::Default()->SleepForMicroseconds(10000);
    }
    EXPECT_TRUE(*flag);
  }

  // Writes "a" and "b" into memtables whose flushes are queued, and then "c" in
  // another thread. Returns the status of the write of "c".
  Status PutBehindTwoMemtables() {
    FlushOptions flush_options;
    flush_options.wait = false;
    flush_options.allow_write_stall = true;
    for (const char* key : {"a", "b"}) {
      EXPECT_OK(Put(key, "value"));
      EXPECT_OK(db_->Flush(flush_options));
    }
    std::atomic<bool> returned{false};
    Status written;
    port::Thread writer([&] {
      written = Put("c", "value");
      returned = true;
    });
    Await(&returned);
    if (!returned) {
      CancelAllBackgroundWork(db_.get(), /*wait=*/false);
    }
    writer.join();
    return written;
  }

  void CheckAfterStall(bool has_c) {
    for (int i = 0; i < 1000 && !dbfull()->TEST_GetBGError().ok(); ++i) {
      Env::Default()->SleepForMicroseconds(10000);
    }
    DisableCallBacks();
    ASSERT_OK(dbfull()->TEST_GetBGError());
    ASSERT_OK(Put("d", "value"));
    EXPECT_EQ(Get("c"), has_c ? "value" : "NOT_FOUND");
    for (const char* key : {"a", "b", "d"}) {
      EXPECT_EQ(Get(key), "value");
    }
    ASSERT_OK(db_->Flush(FlushOptions()));
  }

  // Leaves a DB whose background work is stopped because its device is full,
  // with the key "stopped" in a memtable.
  void StopByAFullDevice(bool atomic_flush) {
    OpenOnTwoDevices(/*with_layout=*/true);
    options_.level_sst_path_ids = {1, 0};
    options_.atomic_flush = atomic_flush;
    // The DB must not recover before the test calls Resume().
    options_.max_bgerror_resume_count = 0;
    DestroyAndReopen(options_);
    ASSERT_OK(Put("stopped", "value"));
    fs_->full = true;
    ASSERT_NOK(db_->Flush(FlushOptions()));
    ASSERT_NOK(dbfull()->TEST_GetBGError());
  }

  // Leaves a DB with a soft error, because a flush could not create its file,
  // and then a hard one, because a write to the WAL has failed. The devices are
  // intact again.
  void FailFlushAndWal(int max_resume_count) {
    OpenOnTwoDevices(/*with_layout=*/true);
    options_.level_sst_path_ids = {1, 0};
    options_.max_bgerror_resume_count = max_resume_count;
    options_.bgerror_resume_retry_interval = 1000;
    DestroyAndReopen(options_);
    ASSERT_OK(Put("flushed", "value"));
    fs_->retryable = true;
    fs_->full = true;
    ASSERT_NOK(db_->Flush(FlushOptions()));
    ASSERT_EQ(dbfull()->TEST_GetBGError().severity(),
              Status::Severity::kSoftError);
    ASSERT_OK(Put("in_memtable", "value"));
    fs_->wal_fails = true;
    ASSERT_NOK(Put("failed", "value"));
    ASSERT_EQ(dbfull()->TEST_GetBGError().severity(),
              Status::Severity::kHardError);
    fs_->wal_fails = false;
    fs_->full = false;
  }

  void CheckAfterFailedWal() {
    ASSERT_OK(dbfull()->TEST_GetBGError());
    ASSERT_OK(Put("later", "value"));
    for (const bool reopened : {false, true}) {
      for (const char* key : {"flushed", "in_memtable", "later"}) {
        EXPECT_EQ(Get(key), "value") << key << reopened;
      }
      EXPECT_EQ(Get("failed"), "NOT_FOUND") << reopened;
      Reopen(options_);
    }
  }

  // Leaves a DB in which an atomic flush of two families has failed, because
  // the directory of the SST files (or of the blob files) could not be synced.
  void FailDirectorySync(bool of_blob_files, int max_resume_count) {
    OpenOnTwoDevices(/*with_layout=*/true);
    options_.atomic_flush = true;
    options_.max_bgerror_resume_count = max_resume_count;
    options_.bgerror_resume_retry_interval = 1000;
    if (of_blob_files) {
      options_.enable_blob_files = true;
      options_.level_sst_path_ids = {0};
      options_.level_blob_path_ids = {1};
    } else {
      options_.level_sst_path_ids = {1, 0};
    }
    DestroyAndReopen(options_);
    CreateAndReopenWithCF({"other"}, options_);
    ASSERT_OK(Put(0, "a", "value"));
    ASSERT_OK(Put(1, "a", "value"));
    fs_->directory_syncs_fail = true;
    ASSERT_NOK(db_->Flush(FlushOptions(), handles_));
    ASSERT_NOK(dbfull()->TEST_GetBGError());
    fs_->directory_syncs_fail = false;
  }

  void CheckAfterDirectorySync() {
    ASSERT_OK(dbfull()->TEST_GetBGError());
    ASSERT_OK(Put(1, "b", "value"));
    ASSERT_OK(db_->Flush(FlushOptions(), handles_));
    for (const bool reopened : {false, true}) {
      EXPECT_EQ(Get(0, "a"), "value") << reopened;
      EXPECT_EQ(Get(1, "a"), "value") << reopened;
      EXPECT_EQ(Get(1, "b"), "value") << reopened;
      ReopenWithColumnFamilies({kDefaultColumnFamilyName, "other"}, options_);
    }
  }

  // Leaves a DB with delta files, which are drained when automatic compactions
  // are turned on.
  void OpenWithDeltasToDrain() {
    options_ = CurrentOptions();
    options_.merge_operator = MergeOperators::CreateStringAppendOperator();
    options_.enable_delta_separation = true;
    options_.disable_auto_compactions = true;
    // The DB must not recover before the test calls Resume().
    options_.max_bgerror_resume_count = 0;
    DestroyAndReopen(options_);
    ASSERT_OK(Put("drained", "1"));
    ASSERT_OK(db_->Flush(FlushOptions()));
    ASSERT_OK(Merge("drained", "2"));
    ASSERT_OK(db_->Flush(FlushOptions()));
    options_.enable_delta_separation = false;
    Reopen(options_);
    ASSERT_NE(NumDeltaFiles(), "0");
  }

  std::string NumDeltaFiles() {
    std::map<std::string, std::string> deltas;
    db_->GetMapProperty(DB::Properties::kDeltaStore, &deltas);
    const std::string& files = deltas["files"];
    return files.empty() ? "0" : files;
  }

  // Leaves a soft error, which stops background work.
  void FailFlushSoftly() {
    EnableCallBackOnce("FlushJob::WriteLevel0Table:s", [](void* status) {
      *static_cast<Status*>(status) = RetryableError();
    });
    ASSERT_OK(Put("flushed", "value"));
    ASSERT_NOK(db_->Flush(FlushOptions()));
    ASSERT_EQ(dbfull()->TEST_GetBGError().severity(),
              Status::Severity::kSoftError);
  }

  // Waits until Resume() lets background work go on.
  void AwaitRecovery() {
    EXPECT_TRUE(
        WaitUntil([this] { return dbfull()->TEST_IsRecoveryInProgress(); }));
  }

  // Calls Resume() and fails if it does not return. Then the test cannot go on.
  void ResumeWithin(int seconds) {
    std::atomic<bool> returned{false};
    Status resumed;
    port::Thread resume([&] {
      resumed = db_->Resume();
      returned = true;
    });
    for (int i = 0; i < seconds * 100 && !returned; ++i) {
      Env::Default()->SleepForMicroseconds(10000);
    }
    EXPECT_TRUE(returned);
    if (!returned) {
      CancelAllBackgroundWork(db_.get(), /*wait=*/false);
    }
    resume.join();
    EXPECT_OK(resumed);
  }

  std::string second_;
  std::shared_ptr<FullDeviceFS> fs_;
  std::unique_ptr<Env> device_env_;
  Options options_;
};

TEST_F(DBResumeTest, ResumeRestartsJobsAfterAFullDeviceOfALayout) {
  CompactAfterFullDevice(/*with_layout=*/true);
}

TEST_F(DBResumeTest, ResumeRestartsJobsAfterAFullDeviceOfCfPaths) {
  CompactAfterFullDevice(/*with_layout=*/false);
}

// A compaction of one column family fails while background work is stopped
// because a flush of another one has failed. The recovery repeats only the
// flush; the compaction is queued again although its column family has nothing
// to flush.
TEST_F(DBResumeTest, ResumeRestartsACompactionOfAnotherFamily) {
  OpenOnTwoDevices(/*with_layout=*/true);
  // The DB must not recover before the test calls Resume().
  options_.max_bgerror_resume_count = 0;
  // The flushes of Close() do not wait for a compaction.
  options_.level0_slowdown_writes_trigger = 100;
  options_.level0_stop_writes_trigger = 100;
  DestroyAndReopen(options_);
  CreateColumnFamilies({"other"}, options_);
  options_.level_sst_path_ids = {1, 0};
  CreateColumnFamilies({"flushed_to_second"}, options_);
  // Without a WAL, a flush that may be repeated is no hard error.
  WriteOptions write_options;
  write_options.disableWAL = true;
  std::atomic<bool> stopped{false};
  std::atomic<bool> compacting{false};
  EnableCallBackOnce("CompactionJob::Run():Start", [&](void*) {
    compacting = true;
    Await(&stopped);
  });
  for (const char* value : {"1", "2"}) {
    ASSERT_OK(db_->Put(write_options, handles_[0], "k", value));
    ASSERT_OK(db_->Flush(FlushOptions(), handles_[0]));
  }
  Await(&compacting);
  fs_->retryable = true;
  fs_->full = true;
  ASSERT_OK(db_->Put(write_options, handles_[1], "k", "3"));
  EXPECT_NOK(db_->Flush(FlushOptions(), handles_[1]));
  fs_->refused = 0;
  stopped = true;
  std::string property;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(db_->GetProperty(handles_[0], "rocksdb.num-running-compactions",
                                 &property));
    if (property == "0") {
      break;
    }
    env_->SleepForMicroseconds(10000);
  }
  ASSERT_EQ(property, "0");
  ASSERT_GT(fs_->refused, 0);
  EXPECT_EQ(NumTableFilesAtLevel(0, handles_[0], db_.get()), 2);

  fs_->full = false;
  ASSERT_OK(db_->Resume());
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  DisableCallBacks();
  EXPECT_EQ(NumTableFilesAtLevel(0, handles_[0], db_.get()), 0);
  std::string value;
  ASSERT_OK(db_->Get(ReadOptions(), handles_[0], "k", &value));
  EXPECT_EQ(value, "2");
  ASSERT_OK(db_->Get(ReadOptions(), handles_[1], "k", &value));
  EXPECT_EQ(value, "3");
}

// A flush fails, which is a soft error, and a write to the WAL fails before the
// DB has recovered from that. The recovery must replace the WAL. RocksDB only
// repeats the flush, and no write succeeds before the DB is opened again.
TEST_F(DBResumeTest, ResumeReplacesAWalThatFailedAfterAFlush) {
  FailFlushAndWal(/*max_resume_count=*/0);
  ASSERT_OK(db_->Resume());
  CheckAfterFailedWal();
}

TEST_F(DBResumeTest, RecoveryReplacesAWalThatFailedAfterAFlush) {
  FailFlushAndWal(/*max_resume_count=*/INT_MAX);
  for (int i = 0; i < 1000 && !dbfull()->TEST_GetBGError().ok(); ++i) {
    Env::Default()->SleepForMicroseconds(10000);
  }
  CheckAfterFailedWal();
}

// The memtables of an atomic flush are flushed again after the sync of a
// directory has failed. In RocksDB they stay in progress, and the recovery
// waits for them forever.
TEST_F(DBResumeTest, ResumeRepeatsAFlushWhoseDirectoryWasNotSynced) {
  for (const bool of_blob_files : {false, true}) {
    SCOPED_TRACE(of_blob_files);
    ASSERT_NO_FATAL_FAILURE(
        FailDirectorySync(of_blob_files, /*max_resume_count=*/0));
    ASSERT_NO_FATAL_FAILURE(ResumeWithin(20));
    CheckAfterDirectorySync();
  }
}

TEST_F(DBResumeTest, RecoveryRepeatsAFlushWhoseDirectoryWasNotSynced) {
  for (const bool of_blob_files : {false, true}) {
    SCOPED_TRACE(of_blob_files);
    ASSERT_NO_FATAL_FAILURE(
        FailDirectorySync(of_blob_files, /*max_resume_count=*/INT_MAX));
    for (int i = 0; i < 1000 && !dbfull()->TEST_GetBGError().ok(); ++i) {
      Env::Default()->SleepForMicroseconds(10000);
    }
    CheckAfterDirectorySync();
  }
}

// A compaction fails to write the MANIFEST, which is a hard error with an
// automatic recovery. The recovery's flush enters the write thread, where a
// writer has been stalled since before the error. The stall ends with
// Incomplete for the writer; in RocksDB the writer and the recovery wait for
// each other forever.
TEST_F(DBResumeTest, RecoveryFlushEndsTheStallOfAWriter) {
  for (const bool atomic_flush : {false, true}) {
    SCOPED_TRACE(atomic_flush);
    OpenOnTwoDevices(/*with_layout=*/true);
    options_.atomic_flush = atomic_flush;
    options_.disable_auto_compactions = true;
    options_.level0_slowdown_writes_trigger = 100;
    options_.level0_stop_writes_trigger = 100;
    options_.bgerror_resume_retry_interval = 1000;
    DestroyAndReopen(options_);
    WriteFile(0);
    WriteFile(1);
    std::atomic<bool> stalled{false};
    std::atomic<bool> recovering{false};
    // A flush that ran before the recovery would end the stall.
    SyncPoint::GetInstance()->SetCallBack("DBImpl::BackgroundCallFlush:start",
                                          [&](void*) { Await(&recovering); });
    std::atomic<bool> compacting{false};
    SyncPoint::GetInstance()->SetCallBack("CompactionJob::Run():Start",
                                          [&](void*) {
                                            compacting = true;
                                            Await(&stalled);
                                            fs_->manifest_fails = true;
                                          });
    SyncPoint::GetInstance()->SetCallBack("DBImpl::DelayWrite:Wait",
                                          [&](void*) { stalled = true; });
    SyncPoint::GetInstance()->SetCallBack(
        "RecoverFromRetryableBGIOError:BeforeStart", [&](void*) {
          fs_->manifest_fails = false;
          recovering = true;
        });
    SyncPoint::GetInstance()->EnableProcessing();
    Status compacted;
    port::Thread compaction([&] {
      compacted = db_->CompactRange(CompactRangeOptions(), nullptr, nullptr);
    });
    Await(&compacting);
    const Status written = PutBehindTwoMemtables();
    compaction.join();
    EXPECT_TRUE(compacted.IsIOError()) << compacted.ToString();
    EXPECT_TRUE(written.IsIncomplete()) << written.ToString();
    CheckAfterStall(/*has_c=*/false);
  }
}

// A flush fails with a retryable error of its SST file. The recovery's flush
// enters the write thread only if there are two write queues, and then ends the
// stall of a writer. With one queue the recovery flushes outside of the write
// thread, and the writer succeeds when the flush has ended the stall.
TEST_F(DBResumeTest, RecoveryFromAFailedFlushEndsTheStallOfAWriter) {
  for (const bool atomic_flush : {false, true}) {
    for (const bool two_write_queues : {false, true}) {
      SCOPED_TRACE(std::to_string(atomic_flush) +
                   std::to_string(two_write_queues));
      OpenOnTwoDevices(/*with_layout=*/true);
      options_.level_sst_path_ids = {1, 0};
      options_.atomic_flush = atomic_flush;
      options_.two_write_queues = two_write_queues;
      options_.enable_pipelined_write = false;
      options_.bgerror_resume_retry_interval = 1000;
      DestroyAndReopen(options_);
      fs_->full = true;
      fs_->retryable = true;
      fs_->refused = 0;
      std::atomic<bool> stalled{false};
      SyncPoint::GetInstance()->SetCallBack("DBImpl::BackgroundCallFlush:start",
                                            [&](void*) { Await(&stalled); });
      SyncPoint::GetInstance()->SetCallBack("DBImpl::DelayWrite:Wait",
                                            [&](void*) { stalled = true; });
      SyncPoint::GetInstance()->SetCallBack(
          "RecoverFromRetryableBGIOError:BeforeStart",
          [&](void*) { fs_->full = false; });
      SyncPoint::GetInstance()->EnableProcessing();
      const Status written = PutBehindTwoMemtables();
      EXPECT_GT(fs_->refused, 0);
      EXPECT_EQ(two_write_queues, written.IsIncomplete()) << written.ToString();
      EXPECT_EQ(!two_write_queues, written.ok()) << written.ToString();
      CheckAfterStall(/*has_c=*/written.ok());
    }
  }
}

// Flushes that were requested while background work was stopped do not hold a
// recovery up. In RocksDB, Resume() waits forever for its own flush, which is
// not queued because the column family has a request already, and a background
// thread refuses that request; with atomic_flush, threads refuse the requests
// one a second.
TEST_F(DBResumeTest, ResumeIsNotHeldUpByQueuedFlushes) {
  for (const bool atomic_flush : {false, true}) {
    SCOPED_TRACE(atomic_flush);
    StopByAFullDevice(atomic_flush);
    FlushOptions flush_options;
    flush_options.wait = false;
    flush_options.allow_write_stall = true;
    for (int i = 0; i < 30; ++i) {
      db_->Flush(flush_options).PermitUncheckedError();
    }
    fs_->full = false;
    const uint64_t begin = Env::Default()->NowMicros();
    ResumeWithin(/*seconds=*/20);
    // Thirty requests that are refused take 30 s.
    EXPECT_LT(Env::Default()->NowMicros() - begin, 20u * 1000000);
    EXPECT_EQ(Get("stopped"), "value");
    ASSERT_OK(Put("after", "value"));
    ASSERT_OK(db_->Flush(FlushOptions()));
  }
}

// The DB mutex is free while listeners hear of the end of a recovery. The flush
// that fails meanwhile begins another recovery, and waits for the thread of the
// first one. That thread must not take a further error for one of its own and
// resume again: it would wait for the flush.
TEST_F(DBResumeTest, ErrorsAfterARecoveryAreLeftToTheNextOne) {
  struct Listener : public EventListener {
    void OnErrorRecoveryEnd(const BackgroundErrorRecoveryInfo&) override {
      if (!is_told.exchange(true)) {
        Await(&may_return);
      }
    }
    std::atomic<bool> is_told{false};
    std::atomic<bool> may_return{false};
  };
  const auto listener = std::make_shared<Listener>();
  OpenOnTwoDevices(/*with_layout=*/true);
  options_.level_sst_path_ids = {1, 0};
  options_.bgerror_resume_retry_interval = 1000;
  options_.listeners.push_back(listener);
  DestroyAndReopen(options_);
  fs_->retryable = true;
  EnableCallBack("RecoverFromRetryableBGIOError:BeforeStart",
                 [&](void*) { fs_->full = false; });
  std::atomic<bool> waits{false};
  EnableCallBack(
      "StartRecoverFromRetryableBGIOError:BeforeWaitingForOtherThread",
      [&](void*) { waits = true; });

  fs_->full = true;
  ASSERT_OK(Put("a", "value"));
  db_->Flush(FlushOptions()).PermitUncheckedError();
  Await(&listener->is_told);
  fs_->full = true;
  FlushOptions flush_options;
  flush_options.wait = false;
  ASSERT_OK(Put("b", "value"));
  ASSERT_OK(db_->Flush(flush_options));
  Await(&waits);
  fs_->wal_fails = true;
  ASSERT_NOK(Put("c", "value"));
  fs_->wal_fails = false;
  listener->may_return = true;

  Status s;
  for (int i = 0; i < 2000; ++i) {
    s = Put("d", "value");
    if (s.ok()) {
      break;
    }
    Env::Default()->SleepForMicroseconds(10000);
  }
  if (!s.ok()) {
    // Close() would wait forever, too.
    fprintf(stderr, "The DB did not recover: %s\n", s.ToString().c_str());
    std::_Exit(1);
  }
  DisableCallBacks();
  ASSERT_OK(db_->Flush(FlushOptions()));
  for (const char* key : {"a", "b", "d"}) {
    EXPECT_EQ(Get(key), "value");
  }
}

// The thread of a failed flush ends when Resume() waits for it, and schedules
// the jobs of a drain. These cannot fold before the recovery, which waits for
// their end. The drain goes on by itself afterwards.
TEST_F(DBResumeTest, ResumeEndsBesideADrain) {
  ASSERT_NO_FATAL_FAILURE(OpenWithDeltasToDrain());
  const auto has_ended =
      EnableCallBackOnce("DBImpl::BackgroundCallFlush:FilesFound",
                         [this](void*) { AwaitRecovery(); });
  ASSERT_NO_FATAL_FAILURE(FailFlushSoftly());
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  ResumeWithin(/*seconds=*/20);
  DisableCallBacks();
  EXPECT_TRUE(*has_ended);
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(NumDeltaFiles(), "0");
  EXPECT_EQ(Get("drained"), "1,2");
  EXPECT_EQ(Get("flushed"), "value");
}

// A fold that is about to begin its commit when Resume() is called is given up.
// It was no interference of other jobs, so later folds need not wait.
TEST_F(DBResumeTest, ResumeDoesNotWaitForAFold) {
  ASSERT_NO_FATAL_FAILURE(OpenWithDeltasToDrain());
  EnableCallBack("DBStrata::EnterDeltaFold:MaxWait", [](void* micros) {
    *static_cast<uint64_t*>(micros) = uint64_t{3600} * 1000 * 1000;
  });
  const auto folds = EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
      [this](void*) { AwaitRecovery(); });
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  Await(folds.get());
  ASSERT_NO_FATAL_FAILURE(FailFlushSoftly());
  ResumeWithin(/*seconds=*/20);
  DisableCallBacks();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(NumDeltaFiles(), "0");
  EXPECT_EQ(Get("drained"), "1,2");
  const InstrumentedMutexLock lock(dbfull()->mutex());
  EXPECT_TRUE(
      static_cast_with_check<ColumnFamilyHandleImpl>(db_->DefaultColumnFamily())
          ->cfd()
          ->delta_store()
          ->jobs()
          .MayFold());
}

// An atomic flush has to wait for the memtable of an earlier one, which has
// failed and is flushed again by the recovery. It gives up, as the recovery
// waits for its end. The error is not reported a second time: the recovery
// would take it for one of its own, and fail.
TEST_F(DBResumeTest, ResumeDoesNotWaitForAnAtomicFlushThatWaits) {
  options_ = CurrentOptions();
  options_.atomic_flush = true;
  // There are threads for two flushes.
  options_.max_background_jobs = 8;
  options_.max_write_buffer_number = 8;
  // The DB must not recover before the test calls Resume().
  options_.max_bgerror_resume_count = 0;
  DestroyAndReopen(options_);
  std::atomic<int> num_flushes{0};
  std::atomic<bool> has_second_begun{false};
  EnableCallBack("FlushJob::WriteLevel0Table:s", [&](void* status) {
    const int number = ++num_flushes;
    if (number == 1) {
      FlushOptions flush_options;
      flush_options.wait = false;
      flush_options.allow_write_stall = true;
      EXPECT_OK(Put("b", "value"));
      EXPECT_OK(db_->Flush(flush_options));
      Await(&has_second_begun);
      *static_cast<Status*>(status) = RetryableError();
    } else if (number == 2) {
      has_second_begun = true;
      AwaitRecovery();
    }
  });
  std::atomic<bool> has_waited{false};
  EnableCallBack("DBImpl::AtomicFlushMemTablesToOutputFiles:WaitCV",
                 [&](void*) { has_waited = true; });
  ASSERT_OK(Put("a", "value"));
  EXPECT_NOK(db_->Flush(FlushOptions()));
  EXPECT_EQ(dbfull()->TEST_GetBGError().severity(),
            Status::Severity::kSoftError);
  ResumeWithin(/*seconds=*/20);
  DisableCallBacks();
  EXPECT_TRUE(has_waited);
  ASSERT_OK(dbfull()->TEST_GetBGError());
  ASSERT_OK(Put("c", "value"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  for (const bool reopened : {false, true}) {
    for (const char* key : {"a", "b", "c"}) {
      EXPECT_EQ(Get(key), "value") << key << reopened;
    }
    Reopen(options_);
  }
}

// The MANIFEST has the column family, but the process has no more than half of
// it.
TEST_F(DBResumeTest, FamilyWhoseCreationHasFailedIsLeftAlone) {
  OpenOnTwoDevices(/*with_layout=*/false);
  options_.enable_blob_files = true;
  options_.enable_blob_address_map = true;
  DestroyAndReopen(options_);
  SyncPoint::GetInstance()->SetCallBack(
      "VersionSet::LogAndApply:WriteManifestDone",
      [this](void* /*arg*/) { fs_->directory_opens_fail = true; });
  SyncPoint::GetInstance()->EnableProcessing();
  ColumnFamilyHandle* handle = nullptr;
  const Status s = db_->CreateColumnFamily(options_, "other", &handle);
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  fs_->directory_opens_fail = false;
  ASSERT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_TRUE(
      db_->SetOptions({{"write_buffer_size", "x"}}).IsInvalidArgument());
  WriteFile(0);
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  // The next open has all of it.
  ReopenWithColumnFamilies({"default", "other"}, options_);
  ASSERT_OK(Put(1, "k", "v"));
  ASSERT_OK(Flush(1));
  EXPECT_EQ(Get(1, "k"), "v");
  EXPECT_EQ(Get(0, Key(9)), "0" + std::string(100, 'v'));
}

// A flush is requested between the beginning of the recovery and its own
// request: the queued request becomes the recovery's.
TEST_F(DBResumeTest, FlushRequestedDuringARecoveryIsPartOfIt) {
  StopByAFullDevice(/*atomic_flush=*/false);
  std::atomic<bool> requested{false};
  std::atomic<bool> raised{false};
  // No thread refuses the request before the recovery finds it in the queue.
  SyncPoint::GetInstance()->SetCallBack("DBImpl::BackgroundCallFlush:start",
                                        [&](void*) { Await(&raised); });
  SyncPoint::GetInstance()->SetCallBack("DBStrata::RaiseQueuedFlush:Raised",
                                        [&](void*) { raised = true; });
  SyncPoint::GetInstance()->SetCallBack(
      "DBImpl::FlushAllColumnFamilies:BeforeFlushMemTable", [&](void*) {
        if (!requested.exchange(true)) {
          port::Thread other([&] {
            FlushOptions flush_options;
            flush_options.wait = false;
            flush_options.allow_write_stall = true;
            db_->Flush(flush_options).PermitUncheckedError();
          });
          other.join();
        }
      });
  SyncPoint::GetInstance()->EnableProcessing();
  fs_->full = false;
  ResumeWithin(/*seconds=*/20);
  DisableCallBacks();
  EXPECT_TRUE(requested);
  EXPECT_TRUE(raised);
  EXPECT_EQ(Get("stopped"), "value");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
