//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Databases with several paths, the device of one of which becomes read-only or
// is lost while the database runs: what a user is told, what goes on meanwhile,
// and how the database goes on when the device is back.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/db_test_util.h"
#include "db/path_layout/directory_names.h"
#include "db/strata/db_strata.h"
#include "env/composite_env_wrapper.h"
#include "file/filename.h"
#include "file/sst_file_manager_impl.h"
#include "file/strata/path_faults.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "rocksdb/listener.h"
#include "rocksdb/sst_file_manager.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/path_migration.h"
#include "rocksdb/write_batch.h"
#include "test_util/strata/failing_devices_fs_test_util.h"
#include "test_util/strata/impatient_clock_test_util.h"
#include "test_util/strata/line_logger_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Earlier = FailingDevicesFS::Earlier;
using Fault = FailingDevicesFS::Fault;

// Returns what the error of an operation says of the fault.
std::string TextOf(Fault fault) {
  switch (fault) {
    case Fault::kReadOnly:
      return "Read-only file system";
    case Fault::kMissing:
      return "No such file or directory";
    default:
      return "Input/output error";
  }
}

// Counts compactions by output level.
class CompactionCounter : public EventListener {
 public:
  void OnCompactionBegin(DB* /*db*/, const CompactionJobInfo& info) override {
    ++begun[info.output_level];
  }
  std::atomic<int> begun[8] = {};
};

// A file system in which reads of SST files fail with a loss of data while it
// is told so. Open files fail, too.
class LossyReadsFS : public FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;

  static const char* kClassName() { return "LossyReadsFS"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    IOStatus s = target()->NewRandomAccessFile(name, options, result, dbg);
    if (s.ok() && name.ends_with(".sst")) {
      *result = std::make_unique<File>(std::move(*result), name, this);
    }
    return s;
  }

  std::atomic<bool> loses_data{false};

 private:
  class File : public FSRandomAccessFileOwnerWrapper {
   public:
    File(std::unique_ptr<FSRandomAccessFile>&& file, std::string name,
         const LossyReadsFS* fs)
        : FSRandomAccessFileOwnerWrapper(std::move(file)),
          name_(std::move(name)),
          fs_(fs) {}

    IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                  Slice* result, char* scratch,
                  IODebugContext* dbg) const override {
      return fs_->loses_data
                 ? Loss()
                 : target()->Read(offset, n, options, result, scratch, dbg);
    }
    IOStatus MultiRead(FSReadRequest* requests, size_t num_requests,
                       const IOOptions& options, IODebugContext* dbg) override {
      return fs_->loses_data
                 ? Loss()
                 : target()->MultiRead(requests, num_requests, options, dbg);
    }

   private:
    IOStatus Loss() const {
      IOStatus s =
          IOStatus::IOError("While pread: " + name_, "Input/output error");
      s.SetDataLoss(true);
      return s;
    }

    const std::string name_;
    const LossyReadsFS* const fs_;
  };
};

}  // namespace

class DBPathFaultTest : public DBTestBase {
 protected:
  DBPathFaultTest() : DBTestBase("db_path_fault_test", /*env_do_fsync=*/false) {
    Close();
    last_options_ = Options();
    last_options_.env = env_;
    EXPECT_OK(DestroyDB(dbname_, last_options_));
    fast_ = dbname_ + "_fast";
    slow_ = dbname_ + "_slow";
    third_ = dbname_ + "_third";
    fs_ = std::make_shared<FailingDevicesFS>(env_->GetFileSystem());
    fs_->SetFault(slow_, Fault::kNone);
    device_env_ = std::make_unique<CompositeEnvWrapper>(
        env_, fs_, std::make_shared<ImpatientClock>(SystemClock::Default()));
    EnableCallBack("SpaceRecovery::TryOne:Tried", [this](void* retry_micros) {
      *static_cast<uint64_t*>(retry_micros) = 1000;
      ++num_tries_;
    });
    EnableCallBack("DBStrata::ContinueAfterPathFault:End",
                   [this](void*) { ++num_searches_; });
    EnableCallBack("DBImpl::ResumeImpl:Start",
                   [this](void*) { ++num_resumes_; });
    options_ = CurrentOptions();
    options_.env = device_env_.get();
    options_.create_if_missing = true;
    options_.info_log = logger_;
    options_.compression = kNoCompression;
    options_.write_buffer_size = 1 << 20;
    options_.num_levels = 4;
    options_.level_compaction_dynamic_level_bytes = false;
    options_.disable_auto_compactions = true;
    options_.level0_slowdown_writes_trigger = 100;
    options_.level0_stop_writes_trigger = 100;
    options_.enable_blob_files = true;
    options_.min_blob_size = 100;
    options_.bgerror_resume_retry_interval = 1000;
    options_.sst_file_manager.reset(NewSstFileManager(device_env_.get()));
    UseLayout({0}, {1});
  }

  ~DBPathFaultTest() override {
    fs_->ClearFaults();
    Close();
    DisableCallBacks();
    options_ = Options();
    last_options_ = Options();
    last_options_.env = env_;
    for (const std::string& directory : {fast_, slow_, third_}) {
      EXPECT_OK(DestroyDir(env_, directory));
    }
  }

  void UseLayout(const std::vector<uint32_t>& sst_ids,
                 const std::vector<uint32_t>& blob_ids) {
    options_.cf_paths = {{fast_, 0}, {slow_, 0}, {third_, 0}};
    options_.level_sst_path_ids = sst_ids;
    options_.level_blob_path_ids = blob_ids;
  }
  void CompactTwoFiles() {
    options_.disable_auto_compactions = false;
    options_.level0_file_num_compaction_trigger = 2;
  }

  // Opens a new DB.
  void Open() {
    fs_->ClearFaults();
    Destroy(last_options_);
    for (const std::string& directory : {fast_, slow_, third_}) {
      ASSERT_OK(DestroyDir(env_, directory));
    }
    Reopen(options_);
  }

  // Makes a blob file on the slow path whose values are all deleted, so that a
  // compaction deletes it. Returns its name, or nothing after an error.
  std::string MakeDeadBlobFile() {
    PutValues(0, 10);
    EXPECT_OK(Flush());
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(slow_, &names));
    std::string file;
    for (const std::string& name : names) {
      if (name.ends_with(".blob")) {
        file = slow_ + "/" + name;
      }
    }
    for (int i = 0; i < 10; ++i) {
      EXPECT_OK(Delete(Key(i)));
    }
    EXPECT_OK(Flush());
    return file;
  }

  PathFaults* Faults() {
    return static_cast<SstFileManagerImpl*>(options_.sst_file_manager.get())
        ->path_faults();
  }
  bool IsWatched(const std::string& directory) {
    return Faults()->Has(CleanDirectoryName(/*fs=*/nullptr, directory));
  }

  static std::string ValueOf(int number) {
    return Key(number) + std::string(1000, 'v');
  }
  void PutValues(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      ASSERT_OK(Put(Key(i), ValueOf(i)));
    }
  }
  void ExpectValues(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      EXPECT_EQ(Get(Key(i)), ValueOf(i));
    }
  }

  Status BgError() { return dbfull()->TEST_GetBGError(); }
  void ExpectRecovery() {
    ASSERT_TRUE(WaitUntil([&] { return BgError().ok(); }));
  }
  // Waits until operations on the device have failed that were not there yet.
  void WaitForFailures(const std::string& directory) {
    const uint64_t before = fs_->NumFailed(directory);
    ASSERT_TRUE(
        WaitUntil([&] { return fs_->NumFailed(directory) >= before + 3; }));
  }

  // Checks that the error says which file, path and column family it is about.
  void ExpectPathInError(const Status& s, const std::string& directory,
                         uint32_t path_id, Fault fault) {
    const std::string text = s.ToString();
    EXPECT_TRUE(s.IsIOError()) << text;
    EXPECT_NE(text.find(directory + "/"), std::string::npos) << text;
    EXPECT_NE(text.find(TextOf(fault)), std::string::npos) << text;
    const std::string path = "(" + directory + " is path id " +
                             std::to_string(path_id) +
                             " of column family default)";
    const size_t begin = text.find(path);
    EXPECT_NE(begin, std::string::npos) << text;
    EXPECT_EQ(text.find(path, begin + 1), std::string::npos) << text;
  }

  // Checks that the error says that the path is another directory than the DB
  // has opened.
  void ExpectReplaced(const Status& s, const std::string& directory,
                      const std::string& user) {
    const std::string text = s.ToString();
    EXPECT_TRUE(s.IsIOError()) << text;
    for (const std::string& part :
         {"While fsync: " + directory + ": The directory is not the one that",
          std::string("Close the database and open it again"),
          "(" + directory + " is " + user + ")"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
  // Waits until the DB has given up for that reason.
  void WaitUntilReplaced(const std::string& directory,
                         const std::string& user) {
    ASSERT_TRUE(WaitUntil([&] {
      return BgError().severity() == Status::Severity::kFatalError &&
             !dbfull()->TEST_IsRecoveryInProgress();
    }));
    ExpectReplaced(BgError(), directory, user);
    ExpectReplaced(Put("refused", "value"), directory, user);
    ExpectReplaced(db_->Resume(), directory, user);
  }
  void WaitForTries(int number) {
    const int before = num_tries_;
    ASSERT_TRUE(WaitUntil([&] { return num_tries_ >= before + number; }));
  }

  // Checks that the error says that it is about the directory of the database.
  void ExpectDirectoryInError(const Status& s) {
    const std::string text = s.ToString();
    EXPECT_TRUE(s.IsIOError()) << text;
    EXPECT_NE(text.find(dbname_ + "/"), std::string::npos) << text;
    EXPECT_NE(text.find("(" + dbname_ + " is the directory of the database)"),
              std::string::npos)
        << text;
  }

  // Returns the number of files in the directory, whether its device works or
  // not.
  size_t NumFiles(const std::string& directory, const std::string& suffix) {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(directory, &names));
    size_t count = 0;
    for (const std::string& name : names) {
      count += name.ends_with(suffix) ? 1 : 0;
    }
    return count;
  }

  // Closes the DB. If this takes 20 seconds, it never ends, and neither would
  // the test.
  std::future<Status> BeginClose() {
    return std::async(std::launch::async, [this] { return db_->Close(); });
  }
  void CloseInTime() { EndCloseInTime(BeginClose()); }
  static void EndCloseInTime(std::future<Status> closed) {
    if (closed.wait_for(std::chrono::seconds(20)) !=
        std::future_status::ready) {
      fprintf(stderr, "Close() does not return\n");
      abort();
    }
    closed.get().PermitUncheckedError();
  }

  static constexpr const char* kSlowPath = "path id 1 of column family default";

  std::string fast_;
  std::string slow_;
  std::string third_;
  std::shared_ptr<FailingDevicesFS> fs_;
  std::unique_ptr<Env> device_env_;
  const std::shared_ptr<LineLogger> logger_ = std::make_shared<LineLogger>();
  Options options_;
  std::atomic<int> num_resumes_{0};
  // Tries of directories, and searches for obsolete files after them.
  std::atomic<int> num_tries_{0};
  std::atomic<int> num_searches_{0};
};

TEST_F(DBPathFaultTest, FlushStopsWritesUntilTheDeviceIsBack) {
  for (const Fault fault : {Fault::kReadOnly, Fault::kLost, Fault::kMissing}) {
    SCOPED_TRACE(TextOf(fault));
    Open();
    PutValues(0, 10);
    const size_t told =
        logger_->Count("The device of " + slow_ + " has failed: IO error");
    const int num_resumes = num_resumes_;
    fs_->SetFault(slow_, fault);
    const Status s = Flush();
    ExpectPathInError(s, slow_, 1, fault);
    EXPECT_EQ(s.severity(), Status::Severity::kHardError);
    ExpectPathInError(BgError(), slow_, 1, fault);
    ExpectPathInError(Put("refused", "value"), slow_, 1, fault);
    EXPECT_TRUE(logger_->Has("Background IO error IO error: ",
                             "(" + slow_ + " is path id 1 of column family "));
    // The DB is to recover by itself.
    EXPECT_TRUE(db_->Resume().IsBusy());
    ExpectValues(0, 10);

    // Only a small file is tried meanwhile.
    WaitForFailures(slow_);
    EXPECT_EQ(num_resumes_, num_resumes);
    EXPECT_EQ(
        logger_->Count("The device of " + slow_ + " has failed: IO error"),
        told + 1);
    EXPECT_FALSE(BgError().ok());

    fs_->SetFault(slow_, Fault::kNone);
    ExpectRecovery();
    EXPECT_FALSE(IsWatched(slow_));
    EXPECT_TRUE(logger_->Has("Files can be made in " + slow_ + " again"));
    ASSERT_OK(Put("accepted", "value"));
    ASSERT_OK(Flush());
    EXPECT_EQ(NumFiles(slow_, ".dbtmp"), 0);
    ExpectValues(0, 10);
    Reopen(options_);
    ExpectValues(0, 10);
    EXPECT_EQ(Get("refused"), "NOT_FOUND");
    EXPECT_EQ(Get("accepted"), "value");
  }
}

// A writer that is stalled when the device fails leads the write thread. If it
// waited for the device, all other writers would.
TEST_F(DBPathFaultTest, StalledWriterReturnsTheError) {
  options_.max_write_buffer_number = 2;
  Open();
  PutValues(0, 10);
  std::atomic<bool> may_flush{false};
  const auto is_flushing = EnableCallBackOnce(
      "FlushJob::WriteLevel0Table:num_memtables",
      [&](void*) { EXPECT_TRUE(WaitUntil([&] { return may_flush.load(); })); });
  FlushOptions no_wait;
  no_wait.wait = false;
  no_wait.allow_write_stall = true;
  ASSERT_OK(db_->Flush(no_wait));
  ASSERT_TRUE(WaitUntil([&] { return is_flushing->load(); }));
  PutValues(10, 20);
  ASSERT_OK(dbfull()->TEST_SwitchMemtable());
  const auto is_stalled =
      EnableCallBackOnce("DBImpl::DelayWrite:Wait", [](void*) {});
  std::future<Status> written = std::async(
      std::launch::async, [this] { return Put("stalled", "value"); });
  ASSERT_TRUE(WaitUntil([&] { return is_stalled->load(); }));
  fs_->SetFault(slow_, Fault::kReadOnly);
  may_flush = true;
  if (written.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
    fprintf(stderr, "the writer does not return\n");
    abort();
  }
  const Status s = written.get();
  EXPECT_TRUE(s.IsIncomplete() || s.IsIOError()) << s.ToString();
  EXPECT_NE(s.ToString().find(slow_), std::string::npos) << s.ToString();
  EXPECT_TRUE(IsWatched(slow_));
  fs_->SetFault(slow_, Fault::kNone);
  ExpectRecovery();
  ExpectValues(0, 20);
  EXPECT_EQ(Get("stalled"), "NOT_FOUND");
  ASSERT_OK(Put("accepted", "value"));
}

// Jobs would sync the directory of the mount that is gone, and files that are
// open are on that one, too.
TEST_F(DBPathFaultTest, AnotherMountNeedsAReopen) {
  for (const bool is_lost : {true, false}) {
    const Fault fault = is_lost ? Fault::kLost : Fault::kReadOnly;
    SCOPED_TRACE(TextOf(fault));
    Open();
    ASSERT_OK(Put("a1", "small"));
    PutValues(0, 10);
    ASSERT_OK(Flush());
    ExpectValues(0, 10);
    const std::string replaced =
        slow_ + " works again, but the database has opened another directory";
    const size_t told = logger_->Count(replaced);
    const int num_resumes = num_resumes_;
    PutValues(10, 20);
    fs_->SetFault(slow_, fault);
    ExpectPathInError(Flush(), slow_, 1, fault);
    fs_->MountAnother(slow_, is_lost ? Earlier::kLost : Earlier::kReadOnly);
    WaitUntilReplaced(slow_, kSlowPath);
    WaitForTries(3);
    EXPECT_EQ(logger_->Count(replaced), told + 1);
    EXPECT_TRUE(IsWatched(slow_));
    EXPECT_EQ(num_resumes_, num_resumes);

    // Reads of what is elsewhere go on.
    EXPECT_EQ(Get("a1"), "small");
    ExpectValues(10, 20);
    if (is_lost) {
      EXPECT_NE(Get(Key(0)), ValueOf(0));
    } else {
      ExpectValues(0, 10);
    }

    Reopen(options_);
    EXPECT_FALSE(IsWatched(slow_));
    EXPECT_EQ(Get("refused"), "NOT_FOUND");
    ExpectValues(0, 20);
    PutValues(20, 30);
    ASSERT_OK(Flush());
    Reopen(options_);
    EXPECT_EQ(Get("a1"), "small");
    ExpectValues(0, 30);
  }
}

// Not all file systems tell directories from each other.
TEST_F(DBPathFaultTest, DirectoryThatCannotBeSyncedIsNotBack) {
  fs_->SetKnowsIds(false);
  Open();
  PutValues(0, 10);
  const int num_resumes = num_resumes_;
  fs_->SetFault(slow_, Fault::kLost);
  ExpectPathInError(Flush(), slow_, 1, Fault::kLost);
  fs_->MountAnother(slow_, Earlier::kLost);
  WaitForFailures(slow_);
  WaitForTries(3);
  EXPECT_EQ(num_resumes_, num_resumes);
  EXPECT_EQ(logger_->Count(slow_ + " works again, but the database cannot "
                                   "sync the directory that it has opened"),
            1);
  EXPECT_EQ(BgError().severity(), Status::Severity::kHardError);
  EXPECT_TRUE(db_->Resume().IsBusy());
  Reopen(options_);
  ExpectValues(0, 10);
  PutValues(10, 20);
  ASSERT_OK(Flush());
}

// A sync of the directory of the mount that is gone succeeds, and does not
// reach the file.
TEST_F(DBPathFaultTest, FileOnAnotherMountIsNotDurable) {
  UseLayout({0, 1}, {0, 1});
  CompactTwoFiles();
  Open();
  fs_->SetFault(slow_, Fault::kReadOnly);
  for (int i = 0; i < 2; ++i) {
    PutValues(0, 10);
    ASSERT_OK(Flush());
  }
  ASSERT_TRUE(WaitUntil([&] { return IsWatched(slow_); }));
  fs_->MountAnother(slow_, Earlier::kReadOnly);
  ASSERT_TRUE(WaitUntil([&] {
    return logger_->Has(slow_ +
                        " works again, but the database has opened another");
  }));

  // What needs the path is not done, and all else goes on.
  EXPECT_OK(BgError());
  PutValues(10, 20);
  ASSERT_OK(Flush());
  const Status compacted =
      db_->CompactRange(CompactRangeOptions(), nullptr, nullptr);
  EXPECT_NE(compacted.ToString().find("The directory is not the one that"),
            std::string::npos)
      << compacted.ToString();
  EXPECT_EQ(NumTableFilesAtLevel(1), 0);
  EXPECT_OK(BgError());
  ExpectValues(0, 20);

  ASSERT_OK(db_->SetOptions(
      {{"level_sst_path_ids", "1"}, {"level_blob_path_ids", "1"}}));
  PutValues(20, 30);
  ExpectReplaced(Flush(), slow_, kSlowPath);
  WaitUntilReplaced(slow_, kSlowPath);
  ExpectValues(0, 30);
  Reopen(options_);
  ExpectValues(0, 30);
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ExpectValues(0, 30);
}

// Each write that is refused returns the background error, which is not a new
// one: neither LOG nor the recovery takes notice.
TEST_F(DBPathFaultTest, RefusedWritesDoNotDisturbTheRecovery) {
  for (const bool is_pipelined : {true, false}) {
    SCOPED_TRACE(is_pipelined);
    options_.enable_pipelined_write = is_pipelined;
    options_.unordered_write = !is_pipelined;
    Open();
    PutValues(0, 10);
    fs_->SetFault(slow_, Fault::kReadOnly);
    ExpectPathInError(Flush(), slow_, 1, Fault::kReadOnly);
    const size_t told = logger_->Count("Background IO error");
    for (int i = 0; i < 10; ++i) {
      ExpectPathInError(Put("refused", "value"), slow_, 1, Fault::kReadOnly);
    }
    EXPECT_EQ(logger_->Count("Background IO error"), told);

    // This write comes while the recovery flushes.
    Status refused;
    const auto was_refused = EnableCallBackOnce(
        "FlushJob::WriteLevel0Table",
        [&](void*) { refused = db_->Put(WriteOptions(), "refused", "value"); });
    const int num_resumes = num_resumes_;
    fs_->SetFault(slow_, Fault::kNone);
    ExpectRecovery();
    EXPECT_TRUE(*was_refused);
    ExpectPathInError(refused, slow_, 1, Fault::kReadOnly);
    EXPECT_EQ(num_resumes_, num_resumes + 1);
    ASSERT_OK(Put("accepted", "value"));
    ASSERT_OK(Flush());
    ExpectValues(0, 10);
    EXPECT_EQ(Get("refused"), "NOT_FOUND");
    EXPECT_EQ(Get("accepted"), "value");
  }
}

TEST_F(DBPathFaultTest, ResumeByHandWorksWhenTheDeviceIsBack) {
  options_.max_bgerror_resume_count = 0;
  for (const Fault fault : {Fault::kReadOnly, Fault::kLost}) {
    SCOPED_TRACE(TextOf(fault));
    Open();
    PutValues(0, 10);
    fs_->SetFault(slow_, fault);
    ExpectPathInError(Flush(), slow_, 1, fault);
    EXPECT_FALSE(dbfull()->TEST_IsRecoveryInProgress());
    EXPECT_NOK(db_->Resume());
    EXPECT_EQ(BgError().severity(), Status::Severity::kHardError);
    ExpectPathInError(Put("refused", "value"), slow_, 1, fault);

    fs_->SetFault(slow_, Fault::kNone);
    ASSERT_TRUE(WaitUntil([&] { return !IsWatched(slow_); }));
    EXPECT_NOK(BgError());
    ASSERT_OK(db_->Resume());
    ASSERT_OK(Put("accepted", "value"));
    ASSERT_OK(Flush());
    ExpectValues(0, 10);
  }
}

// A recovery by hand looks at the directories, too: the next WAL would be made
// in another one than the process that opens the DB next will look at.
TEST_F(DBPathFaultTest, ResumeByHandNoticesAnotherMount) {
  options_.max_bgerror_resume_count = 0;
  const std::string wals = dbname_ + "_wals";
  for (const bool is_wal_dir : {true, false}) {
    SCOPED_TRACE(is_wal_dir);
    options_.wal_dir = is_wal_dir ? wals : "";
    const std::string& replaced = is_wal_dir ? wals : slow_;
    Open();
    PutValues(0, 10);
    fs_->SetFault(replaced, Fault::kReadOnly);
    EXPECT_NOK(is_wal_dir ? Put("refused", "value") : Flush());
    EXPECT_EQ(BgError().severity(), Status::Severity::kHardError);
    fs_->MountAnother(replaced, Earlier::kReadOnly);
    const std::string user =
        is_wal_dir ? "the directory of WALs" : std::string(kSlowPath);
    ExpectReplaced(db_->Resume(), replaced, user);
    EXPECT_EQ(BgError().severity(), Status::Severity::kFatalError);
    ExpectReplaced(Put("refused", "value"), replaced, user);
    ExpectReplaced(db_->Resume(), replaced, user);
    Reopen(options_);
    ExpectValues(0, 10);
    EXPECT_EQ(Get("refused"), "NOT_FOUND");
    PutValues(20, 30);
    ASSERT_OK(Flush());
    Reopen(options_);
    ExpectValues(20, 30);
  }
}

// Without an SstFileManager of the application the DB has one of its own.
TEST_F(DBPathFaultTest, RecoversWithoutAnSstFileManager) {
  options_.sst_file_manager.reset();
  Open();
  PutValues(0, 10);
  fs_->SetFault(slow_, Fault::kReadOnly);
  ExpectPathInError(Flush(), slow_, 1, Fault::kReadOnly);
  WaitForFailures(slow_);
  fs_->SetFault(slow_, Fault::kNone);
  ExpectRecovery();
  ASSERT_OK(Flush());
  ExpectValues(0, 10);
}

// A read-only device that is full when it can be written again.
TEST_F(DBPathFaultTest, RecoveryWaitsForSpaceOfTheDevice) {
  for (const bool has_manager : {true, false}) {
    SCOPED_TRACE(has_manager);
    if (!has_manager) {
      options_.sst_file_manager.reset();
    }
    Open();
    PutValues(0, 10);
    fs_->SetFault(slow_, Fault::kReadOnly);
    ExpectPathInError(Flush(), slow_, 1, Fault::kReadOnly);
    const std::string refused = "Hit less severe background error";
    const size_t num_refused = logger_->Count(refused);
    const int num_resumes = num_resumes_;
    EnableCallBack("DBImpl::ResumeImpl:Start", [&](void*) {
      if (++num_resumes_ == num_resumes + 1) {
        fs_->SetFault(slow_, Fault::kFull);
      }
    });
    fs_->SetFault(slow_, Fault::kNone);
    // Later attempts wait for the device if the deletion of an output, which
    // fails too, has found that no file can be made there.
    EXPECT_TRUE(
        WaitUntil([&] { return logger_->Count(refused) > num_refused; }));
    EXPECT_GT(num_resumes_, num_resumes);
    EXPECT_NOK(BgError());
    EXPECT_TRUE(dbfull()->TEST_IsRecoveryInProgress());
    // SetCallBack() alone would not wait for the callback, which may run.
    SyncPoint::GetInstance()->ClearCallBack("DBImpl::ResumeImpl:Start");
    EnableCallBack("DBImpl::ResumeImpl:Start",
                   [this](void*) { ++num_resumes_; });
    fs_->SetFault(slow_, Fault::kNone);
    ExpectRecovery();
    ASSERT_OK(Flush());
    ExpectValues(0, 10);
  }
}

TEST_F(DBPathFaultTest, LayoutWithoutTheDeviceLetsTheDbRecover) {
  Open();
  PutValues(0, 10);
  fs_->SetFault(slow_, Fault::kLost);
  ExpectPathInError(Flush(), slow_, 1, Fault::kLost);
  WaitForFailures(slow_);
  ASSERT_OK(db_->SetOptions({{"level_blob_path_ids", "0"}}));
  ExpectRecovery();
  PutValues(10, 20);
  ASSERT_OK(Flush());
  ExpectValues(0, 20);
  EXPECT_TRUE(IsWatched(slow_));
}

TEST_F(DBPathFaultTest, AtomicFlushStopsWritesUntilTheDeviceIsBack) {
  options_.atomic_flush = true;
  Open();
  PutValues(0, 10);
  fs_->SetFault(slow_, Fault::kReadOnly);
  ExpectPathInError(Flush(), slow_, 1, Fault::kReadOnly);
  fs_->SetFault(slow_, Fault::kNone);
  ExpectRecovery();
  ASSERT_OK(Flush());
  ExpectValues(0, 10);
}

// WALs and MANIFEST are on the device.
TEST_F(DBPathFaultTest, DirectoryOfTheDatabaseComesBack) {
  for (const Fault fault : {Fault::kReadOnly, Fault::kLost}) {
    for (const bool has_wal : {true, false}) {
      SCOPED_TRACE(TextOf(fault) + (has_wal ? ", WAL" : ", MANIFEST"));
      options_.wal_dir = has_wal ? "" : fast_;
      Open();
      PutValues(0, 10);
      fs_->SetFault(dbname_, fault);
      if (has_wal) {
        EXPECT_NOK(Put("refused", "value"));
        // The WAL is the file that has failed.
        ExpectDirectoryInError(db_->SyncWAL());
        ExpectDirectoryInError(db_->FlushWAL(/*sync=*/true));
      } else {
        EXPECT_NOK(Flush());
        EXPECT_OK(db_->SyncWAL());
      }
      ExpectDirectoryInError(Put("refused", "value"));
      EXPECT_EQ(BgError().severity(), Status::Severity::kHardError);
      ExpectValues(0, 10);

      fs_->SetFault(dbname_, Fault::kNone);
      ExpectRecovery();
      PutValues(20, 30);
      Reopen(options_);
      ExpectValues(0, 10);
      ExpectValues(20, 30);
      EXPECT_EQ(Get("refused"), "NOT_FOUND");
    }
  }
}

TEST_F(DBPathFaultTest, DirectoryOfTheDatabaseOnAnotherMountNeedsAReopen) {
  for (const bool has_wal : {true, false}) {
    SCOPED_TRACE(has_wal ? "WAL" : "MANIFEST");
    options_.wal_dir = has_wal ? "" : fast_;
    Open();
    PutValues(0, 10);
    fs_->SetFault(dbname_, Fault::kReadOnly);
    EXPECT_NOK(has_wal ? Put("refused", "value") : Flush());
    fs_->MountAnother(dbname_, Earlier::kReadOnly);
    WaitUntilReplaced(dbname_, "the directory of the database");
    ExpectValues(0, 10);
    Reopen(options_);
    ExpectValues(0, 10);
    EXPECT_EQ(Get("refused"), "NOT_FOUND");
    PutValues(20, 30);
    ASSERT_OK(Flush());
    Reopen(options_);
    ExpectValues(0, 10);
    ExpectValues(20, 30);
  }
}

// The process has ended before it could delete the file.
TEST_F(DBPathFaultTest, FileOfAProbeIsDeletedByTheNextOpen) {
  const std::string wals = dbname_ + "_wals";
  options_.wal_dir = wals;
  Open();
  PutValues(0, 10);
  const auto leave = [&] {
    for (const std::string& directory : {dbname_, slow_, wals}) {
      ASSERT_OK(WriteStringToFile(env_, "", TempFileName(directory, 5)));
    }
  };
  leave();
  Reopen(options_);
  for (const std::string& directory : {dbname_, slow_, wals}) {
    EXPECT_TRUE(env_->FileExists(TempFileName(directory, 5)).IsNotFound())
        << directory;
  }
  ExpectValues(0, 10);
  Close();
  leave();
  ASSERT_OK(DestroyDB(dbname_, options_));
  EXPECT_TRUE(env_->FileExists(wals).IsNotFound());
}

// Prepared transactions are in the WAL alone.
TEST_F(DBPathFaultTest, ErrorOfTheWalStaysFatalWithTransactions) {
  options_.allow_2pc = true;
  Open();
  PutValues(0, 10);
  fs_->SetFault(slow_, Fault::kReadOnly);
  ExpectPathInError(Flush(), slow_, 1, Fault::kReadOnly);
  fs_->SetFault(slow_, Fault::kNone);
  ExpectRecovery();

  // A write that cannot be appended, and one that is appended, but not synced.
  for (const bool is_appended : {false, true}) {
    SCOPED_TRACE(is_appended);
    if (is_appended) {
      SyncPoint::GetInstance()->SetCallBack(
          "WritableFileWriter::SyncInternal:0",
          [&](void*) { fs_->SetFault(dbname_, Fault::kLost); });
      SyncPoint::GetInstance()->EnableProcessing();
    } else {
      fs_->SetFault(dbname_, Fault::kLost);
    }
    WriteOptions sync;
    sync.sync = true;
    EXPECT_NOK(db_->Put(sync, "refused", "value"));
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    fs_->SetFault(dbname_, Fault::kNone);
    EXPECT_EQ(BgError().severity(), Status::Severity::kFatalError);
    EXPECT_NOK(db_->Resume());
    Reopen(options_);
    ExpectValues(0, 10);
  }
}

// The first value of a batch is in the memtable when the second one cannot be
// read: neither may become visible alone.
TEST_F(DBPathFaultTest, ReadOfAWriteThatFailsIsFatal) {
  UseLayout({1}, {});
  options_.enable_blob_files = false;
  options_.allow_concurrent_memtable_write = false;
  options_.inplace_update_support = true;
  options_.inplace_callback = [](char* /*value*/, uint32_t* /*size*/,
                                 Slice delta, std::string* result) {
    result->assign(delta.data(), delta.size());
    return UpdateStatus::UPDATED;
  };
  BlockBasedTableOptions table_options;
  table_options.no_block_cache = true;
  options_.table_factory.reset(NewBlockBasedTableFactory(table_options));
  Open();
  ASSERT_OK(Put("b", "1"));
  ASSERT_OK(Flush());
  fs_->SetFault(slow_, Fault::kLost);
  WriteBatch batch;
  ASSERT_OK(batch.Put("a", "2"));
  ASSERT_OK(batch.Put("b", "2"));
  const Status s = db_->Write(WriteOptions(), &batch);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  ExpectPathInError(BgError(), slow_, 1, Fault::kLost);
  EXPECT_EQ(BgError().severity(), Status::Severity::kFatalError);
  EXPECT_FALSE(IsWatched(slow_));
  fs_->SetFault(slow_, Fault::kNone);
  EXPECT_NOK(db_->Resume());

  // RocksDB cannot recover a WAL with inplace_callback.
  options_.inplace_update_support = false;
  options_.inplace_callback = nullptr;
  Reopen(options_);
  const bool is_there = Get("b") == "2";
  EXPECT_EQ(Get("a"), is_there ? "2" : "NOT_FOUND");
  EXPECT_EQ(Get("b"), is_there ? "2" : "1");
}

// A compaction that fails because of a deep level's path loses nothing.
TEST_F(DBPathFaultTest, WritesGoOnIfCompactionsFail) {
  UseLayout({0, 1}, {0, 1});
  CompactTwoFiles();
  for (const Fault fault : {Fault::kReadOnly, Fault::kLost, Fault::kMissing}) {
    SCOPED_TRACE(TextOf(fault));
    const auto counter = std::make_shared<CompactionCounter>();
    options_.listeners = {counter};
    Open();
    const std::string works = "Files can be made in " + slow_;
    const size_t num_works = logger_->Count(works);
    fs_->SetFault(slow_, fault);
    PutValues(0, 40);
    ASSERT_OK(Flush());
    PutValues(40, 80);
    ASSERT_OK(Flush());
    ASSERT_TRUE(WaitUntil([&] { return IsWatched(slow_); }));
    EXPECT_TRUE(
        logger_->Has("Compaction error: IO error: ",
                     "(" + slow_ + " is path id 1 of column family default)"));

    // Writes, flushes and reads go on, and the compaction waits.
    WaitForFailures(slow_);
    EXPECT_TRUE(IsWatched(slow_));
    EXPECT_EQ(logger_->Count(works), num_works);
    for (int i = 1; i <= 3; ++i) {
      PutValues(100 * i, 100 * i + 20);
      ASSERT_OK(Flush());
      ASSERT_OK(dbfull()->TEST_WaitForCompact());
    }
    EXPECT_OK(BgError());
    EXPECT_EQ(counter->begun[1], 1);
    EXPECT_EQ(NumTableFilesAtLevel(1), 0);
    ExpectValues(0, 80);
    ExpectValues(300, 320);
    // One by hand is tried, and its caller gets the error.
    CompactRangeOptions by_hand;
    ExpectPathInError(db_->CompactRange(by_hand, nullptr, nullptr), slow_, 1,
                      fault);
    EXPECT_OK(BgError());

    fs_->SetFault(slow_, Fault::kNone);
    ASSERT_TRUE(WaitUntil([&] { return NumTableFilesAtLevel(1) > 0; }));
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    EXPECT_FALSE(IsWatched(slow_));
    EXPECT_GT(logger_->Count(works), num_works);
    EXPECT_EQ(NumFiles(slow_, ".dbtmp"), 0);
    ExpectValues(0, 80);
    Reopen(options_);
    ExpectValues(0, 80);
    ExpectValues(300, 320);
  }
}

// Level 1 has the higher score, and could keep level 0 from its turn.
TEST_F(DBPathFaultTest, CompactionsOnOtherDevicesGoOn) {
  UseLayout({0, 0, 1}, {});
  CompactTwoFiles();
  options_.enable_blob_files = false;
  options_.max_background_jobs = 1;
  options_.max_bytes_for_level_base = 20 << 10;
  options_.target_file_size_base = 10 << 20;
  Open();
  fs_->SetFault(slow_, Fault::kReadOnly);
  for (int i = 0; i < 2; ++i) {
    PutValues(0, 40);
    ASSERT_OK(Flush());
  }
  // The output of the first compaction is too large for level 1.
  ASSERT_TRUE(WaitUntil([&] { return IsWatched(slow_); }));
  for (int i = 0; i < 3; ++i) {
    PutValues(40 * i, 40 * i + 40);
    ASSERT_OK(Flush());
    PutValues(40 * i, 40 * i + 40);
    ASSERT_OK(Flush());
    ASSERT_TRUE(WaitUntil([&] { return NumTableFilesAtLevel(0) < 2; }));
  }
  EXPECT_EQ(NumTableFilesAtLevel(2), 0);
  EXPECT_OK(BgError());
  ExpectValues(0, 120);

  fs_->SetFault(slow_, Fault::kNone);
  ASSERT_TRUE(WaitUntil([&] { return NumTableFilesAtLevel(2) > 0; }));
  ExpectValues(0, 120);
}

// As in RocksDB: another attempt does not bring data back that its file system
// says is lost.
TEST_F(DBPathFaultTest, LossOfDataStaysUnrecoverable) {
  const auto lossy_fs = std::make_shared<LossyReadsFS>(fs_);
  const std::unique_ptr<Env> lossy_env = std::make_unique<CompositeEnvWrapper>(
      env_, lossy_fs, device_env_->GetSystemClock());
  options_.env = lossy_env.get();
  options_.level0_file_num_compaction_trigger = 2;
  Open();
  for (int i = 0; i < 2; ++i) {
    PutValues(0, 10);
    ASSERT_OK(Flush());
  }
  lossy_fs->loses_data = true;
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  EXPECT_TRUE(WaitUntil([&] { return !BgError().ok(); }));
  ExpectPathInError(BgError(), fast_, 0, Fault::kLost);
  EXPECT_EQ(BgError().severity(), Status::Severity::kUnrecoverableError);
  EXPECT_FALSE(IsWatched(fast_));
  EXPECT_NOK(db_->Resume());
  lossy_fs->loses_data = false;
  Close();
  options_.env = device_env_.get();
  Reopen(options_);
  ExpectValues(0, 10);
}

TEST_F(DBPathFaultTest, CompactionsBeginAgainWhileOtherDevicesFail) {
  UseLayout({0, 1}, {0, 1});
  CompactTwoFiles();
  Open();
  fs_->SetFault(slow_, Fault::kReadOnly);
  for (int i = 0; i < 2; ++i) {
    PutValues(0, 40);
    ASSERT_OK(Flush());
  }
  ASSERT_TRUE(WaitUntil([&] { return IsWatched(slow_); }));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(NumTableFilesAtLevel(1), 0);

  // The third device fails at the moment when the slow one is back.
  const std::string third = CleanDirectoryName(/*fs=*/nullptr, third_);
  const auto was_back =
      EnableCallBackOnce("DBStrata::ProbePaths:Removed", [&](void*) {
        fs_->SetFault(third_, Fault::kReadOnly);
        Faults()->Add(dbfull()->strata(), third);
      });
  fs_->SetFault(slow_, Fault::kNone);
  EXPECT_TRUE(WaitUntil([&] { return NumTableFilesAtLevel(1) > 0; }));
  EXPECT_TRUE(*was_back);
  EXPECT_TRUE(IsWatched(third_));
  EXPECT_FALSE(IsWatched(slow_));
  ExpectValues(0, 40);
}

// A compaction without space is a soft error, with which others go on.
TEST_F(DBPathFaultTest, CompactionsBeginAgainWhileAnotherDeviceIsFull) {
  UseLayout({0, 1}, {0, 1});
  CompactTwoFiles();
  Open();
  Options other_options = options_;
  other_options.cf_paths = {{fast_, 0}, {third_, 0}};
  CreateColumnFamilies({"other"}, other_options);
  fs_->SetFault(slow_, Fault::kReadOnly);
  for (int i = 0; i < 2; ++i) {
    PutValues(0, 40);
    ASSERT_OK(Flush());
  }
  ASSERT_TRUE(WaitUntil([&] { return IsWatched(slow_); }));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());

  fs_->SetFault(third_, Fault::kFull);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(db_->Put(WriteOptions(), handles_[0], Key(1), ValueOf(1)));
    ASSERT_OK(db_->Flush(FlushOptions(), handles_[0]));
  }
  ASSERT_TRUE(WaitUntil([&] { return BgError().IsNoSpace(); }));
  EXPECT_EQ(BgError().severity(), Status::Severity::kSoftError);
  EXPECT_EQ(NumTableFilesAtLevel(1), 0);

  fs_->SetFault(slow_, Fault::kNone);
  EXPECT_TRUE(WaitUntil([&] { return NumTableFilesAtLevel(1) > 0; }));
  EXPECT_TRUE(BgError().IsNoSpace());
  fs_->SetFault(third_, Fault::kNone);
  ExpectRecovery();
  ExpectValues(0, 40);
}

TEST_F(DBPathFaultTest, FilesThatCompactFilesCannotWriteNameThePath) {
  UseLayout({0, 1}, {0, 1});
  Open();
  PutValues(0, 10);
  ASSERT_OK(Flush());
  std::vector<LiveFileMetaData> live_files;
  db_->GetLiveFilesMetaData(&live_files);
  ASSERT_EQ(live_files.size(), 1);
  fs_->SetFault(slow_, Fault::kReadOnly);
  ExpectPathInError(
      db_->CompactFiles(CompactionOptions(), {live_files[0].name}, 1), slow_, 1,
      Fault::kReadOnly);
  EXPECT_OK(BgError());
  fs_->SetFault(slow_, Fault::kNone);
  ASSERT_OK(db_->CompactFiles(CompactionOptions(), {live_files[0].name}, 1));
  ExpectValues(0, 10);
}

// One file that is missing does not come back with its device.
TEST_F(DBPathFaultTest, MissingFileOfAWorkingDeviceIsFatal) {
  Open();
  PutValues(0, 10);
  ASSERT_OK(Flush());
  std::vector<LiveFileMetaData> live_files;
  db_->GetLiveFilesMetaData(&live_files);
  ASSERT_EQ(live_files.size(), 1);
  fs_->SetFault(fast_ + live_files[0].name, Fault::kMissing);
  CompactRangeOptions forced;
  forced.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ExpectPathInError(db_->CompactRange(forced, nullptr, nullptr), fast_, 0,
                    Fault::kMissing);
  EXPECT_EQ(BgError().severity(), Status::Severity::kFatalError);
  EXPECT_FALSE(IsWatched(fast_));
}

TEST_F(DBPathFaultTest, ReadsFailThatNeedTheDevice) {
  for (const Fault fault : {Fault::kLost, Fault::kMissing}) {
    SCOPED_TRACE(TextOf(fault));
    Open();
    // Small values stay with their keys on the fast path.
    ASSERT_OK(Put("a1", "small"));
    ASSERT_OK(Put("a2", "small"));
    PutValues(0, 10);
    ASSERT_OK(Flush());
    EXPECT_EQ(Get("a1"), "small");
    fs_->SetFault(slow_, fault);

    EXPECT_EQ(Get("a1"), "small");
    std::string value;
    const Status s = db_->Get(ReadOptions(), Key(3), &value);
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_NE(s.ToString().find(slow_ + "/"), std::string::npos)
        << s.ToString();
    std::vector<std::string> values;
    const std::vector<Status> statuses =
        db_->MultiGet(ReadOptions(), {"a1", Key(4), "a2"}, &values);
    EXPECT_OK(statuses[0]);
    EXPECT_TRUE(statuses[1].IsIOError()) << statuses[1].ToString();
    EXPECT_OK(statuses[2]);
    {
      const std::unique_ptr<Iterator> it(db_->NewIterator(ReadOptions()));
      it->Seek("a");
      ASSERT_TRUE(it->Valid());
      EXPECT_EQ(it->value(), "small");
      it->Next();
      ASSERT_TRUE(it->Valid());
      EXPECT_EQ(it->key(), "a2");
    }
    // Reads are no jobs, so writes go on.
    EXPECT_OK(BgError());
    ASSERT_OK(Put("a3", "small"));

    fs_->SetFault(slow_, Fault::kNone);
    ExpectValues(0, 10);
  }
}

TEST_F(DBPathFaultTest, ObsoleteFilesAreDeletedWhenTheDeviceIsBack) {
  for (const Fault fault : {Fault::kReadOnly, Fault::kLost, Fault::kMissing}) {
    SCOPED_TRACE(TextOf(fault));
    Open();
    PutValues(0, 10);
    ASSERT_OK(Flush());
    ASSERT_EQ(NumFiles(slow_, ".blob"), 1);
    for (int i = 0; i < 10; ++i) {
      ASSERT_OK(Delete(Key(i)));
    }
    ASSERT_OK(Flush());
    fs_->SetFault(slow_, fault);
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    ASSERT_TRUE(WaitUntil([&] { return IsWatched(slow_); }));
    WaitForFailures(slow_);
    EXPECT_EQ(NumFiles(slow_, ".blob"), 1);
    EXPECT_OK(BgError());
    // Flushes without large values do not need the device.
    ASSERT_OK(Put("a1", "small"));
    ASSERT_OK(Flush());

    fs_->SetFault(slow_, Fault::kNone);
    ASSERT_TRUE(WaitUntil([&] { return NumFiles(slow_, ".blob") == 0; }));
    EXPECT_EQ(Get("a1"), "small");
  }
}

TEST_F(DBPathFaultTest, ObsoleteFilesOfEachDeviceAreDeleted) {
  Open();
  PutValues(0, 10);
  ASSERT_OK(Flush());
  ASSERT_OK(db_->SetOptions({{"level_blob_path_ids", "2"}}));
  PutValues(10, 20);
  ASSERT_OK(Flush());
  ASSERT_EQ(NumFiles(slow_, ".blob"), 1);
  ASSERT_EQ(NumFiles(third_, ".blob"), 1);
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(Delete(Key(i)));
  }
  ASSERT_OK(Flush());
  fs_->SetFault(slow_, Fault::kLost);
  fs_->SetFault(third_, Fault::kLost);
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_TRUE(WaitUntil([&] { return IsWatched(slow_) && IsWatched(third_); }));

  // One after the other comes back.
  fs_->SetFault(third_, Fault::kNone);
  EXPECT_TRUE(WaitUntil([&] { return NumFiles(third_, ".blob") == 0; }));
  EXPECT_TRUE(IsWatched(slow_));
  EXPECT_EQ(NumFiles(slow_, ".blob"), 1);
  fs_->SetFault(slow_, Fault::kNone);
  EXPECT_TRUE(WaitUntil([&] { return NumFiles(slow_, ".blob") == 0; }));
}

TEST_F(DBPathFaultTest, FilesOfADroppedFamilyAreDeleted) {
  const std::string directory = dbname_ + "_dropped";
  ASSERT_OK(DestroyDir(env_, directory));
  Open();
  Options dropped_options = options_;
  dropped_options.cf_paths = {{directory, 0}};
  dropped_options.level_sst_path_ids.clear();
  dropped_options.level_blob_path_ids.clear();
  CreateColumnFamilies({"dropped"}, dropped_options);
  ASSERT_OK(db_->Put(WriteOptions(), handles_[0], Key(1), ValueOf(1)));
  ASSERT_OK(db_->Flush(FlushOptions(), handles_[0]));
  ASSERT_EQ(NumFiles(directory, ".sst"), 1);
  ASSERT_EQ(NumFiles(directory, ".blob"), 1);
  ASSERT_OK(db_->DropColumnFamily(handles_[0]));
  fs_->SetFault(directory, Fault::kReadOnly);
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[0]));
  handles_.clear();
  ASSERT_TRUE(WaitUntil([&] { return IsWatched(directory); }));
  WaitForFailures(directory);
  EXPECT_EQ(NumFiles(directory, ".sst"), 1);
  EXPECT_OK(BgError());

  fs_->SetFault(directory, Fault::kNone);
  EXPECT_TRUE(WaitUntil([&] {
    return NumFiles(directory, ".sst") + NumFiles(directory, ".blob") == 0;
  }));
  Close();
  EXPECT_OK(DestroyDir(env_, directory));
}

// A search leaves out files that another thread purges. The thread whose
// attempt has failed may be slow to end its purge.
TEST_F(DBPathFaultTest, FileWhoseFirstPurgeHasNotEndedIsTriedOnceMore) {
  class SlowListener : public EventListener {
   public:
    explicit SlowListener(std::function<void()> wait)
        : wait_(std::move(wait)) {}
    void OnBlobFileDeleted(const BlobFileDeletionInfo& info) override {
      if (!info.status.ok() && !called_.exchange(true)) {
        wait_();
      }
    }

   private:
    const std::function<void()> wait_;
    std::atomic<bool> called_{false};
  };
  std::string file;
  std::atomic<bool> tried_again{false};
  options_.listeners.push_back(std::make_shared<SlowListener>([&] {
    tried_again = WaitUntil([&] { return fs_->NumFailed(file) >= 2; });
  }));
  Open();
  file = MakeDeadBlobFile();
  ASSERT_FALSE(file.empty());
  fs_->SetFault(file, Fault::kReadOnly);
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  EXPECT_TRUE(WaitUntil([&] { return tried_again.load(); }));
  fs_->SetFault(file, Fault::kNone);
  Close();
}

// The device works, so it has not failed, and no search follows another.
TEST_F(DBPathFaultTest, FileThatCannotBeDeletedIsTriedOnceMore) {
  Open();
  const std::string file = MakeDeadBlobFile();
  ASSERT_FALSE(file.empty());
  const int num_searches = num_searches_;
  fs_->SetFault(file, Fault::kReadOnly);
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_TRUE(WaitUntil([&] { return num_searches_ > num_searches; }));
  // The search deletes the file after it was counted.
  ASSERT_TRUE(WaitUntil([&] { return fs_->NumFailed(file) >= 2; }));
  const uint64_t num_failed = fs_->NumFailed(file);

  // Another device is tried again and again, but not the file.
  fs_->SetFault(fast_, Fault::kReadOnly);
  PutValues(20, 30);
  EXPECT_NOK(Flush());
  ASSERT_TRUE(IsWatched(fast_));
  const int num_tries = num_tries_;
  ASSERT_TRUE(WaitUntil([&] { return num_tries_ >= num_tries + 5; }));
  // The flush that failed has looked for all obsolete files.
  EXPECT_LE(fs_->NumFailed(file), num_failed + 1);
  EXPECT_EQ(num_searches_, num_searches + 1);
  EXPECT_FALSE(IsWatched(slow_));
  EXPECT_FALSE(logger_->Has("The device of " + slow_ + " has failed"));

  fs_->SetFault(fast_, Fault::kNone);
  ExpectRecovery();
  ExpectValues(20, 30);
  // A fault of the device ends that.
  fs_->SetFault(slow_, Fault::kReadOnly);
  PutValues(30, 40);
  EXPECT_NOK(Flush());
  fs_->SetFault(file, Fault::kNone);
  fs_->SetFault(slow_, Fault::kNone);
  EXPECT_TRUE(WaitUntil([&] { return !env_->FileExists(file).ok(); }));
  ExpectRecovery();
}

TEST_F(DBPathFaultTest, CollectionOfBlobGarbageIsTriedAgain) {
  options_.enable_blob_address_map = true;
  options_.blob_gc_space_amp_limit = 0;
  Open();
  PutValues(0, 20);
  ASSERT_OK(Flush());
  for (int i = 0; i < 20; i += 2) {
    ASSERT_OK(Put(Key(i), ValueOf(i)));
  }
  ASSERT_OK(Flush());
  // The flush job removes the overwritten values after Flush() has returned.
  WaitForCompactOptions wait;
  wait.wait_for_purge = true;
  ASSERT_OK(db_->WaitForCompact(wait));
  fs_->SetFault(slow_, Fault::kReadOnly);
  const Status s = db_->CollectBlobGarbage(CollectBlobGarbageOptions());
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(s.ToString().find(slow_ + "/"), std::string::npos) << s.ToString();
  EXPECT_OK(BgError());
  EXPECT_TRUE(logger_->Has("Background IO error IO error: ",
                           "(" + slow_ + " is path id 1 of column family "));
  ASSERT_OK(Put("a1", "small"));
  ASSERT_OK(Flush());
  ExpectValues(0, 20);

  fs_->SetFault(slow_, Fault::kNone);
  ASSERT_OK(db_->CollectBlobGarbage(CollectBlobGarbageOptions()));
  ExpectValues(0, 20);
  Reopen(options_);
  ExpectValues(0, 20);
}

TEST_F(DBPathFaultTest, CollectionOfDeltaFilesIsTriedAgain) {
  UseLayout({0}, {});
  options_.enable_blob_files = false;
  options_.merge_operator = MergeOperators::CreateStringAppendOperator();
  options_.enable_delta_separation = true;
  options_.delta_sorted_path_id = 1;
  Open();
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Merge("b", "1"));
  ASSERT_OK(Flush());
  fs_->SetFault(slow_, Fault::kReadOnly);
  const Status s = db_->CompactRange(CompactRangeOptions(), nullptr, nullptr);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_OK(BgError());
  EXPECT_TRUE(IsWatched(slow_));
  // Recent delta files are on the other path.
  ASSERT_OK(Merge("a", "2"));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("a"), "1,2");

  fs_->SetFault(slow_, Fault::kNone);
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  EXPECT_GT(NumFiles(slow_, ".delta"), 0);
  EXPECT_EQ(Get("a"), "1,2");
  EXPECT_EQ(Get("b"), "1");
}

TEST_F(DBPathFaultTest, CheckpointFailsAlone) {
  Open();
  PutValues(0, 10);
  ASSERT_OK(Flush());
  Checkpoint* created = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &created));
  const std::unique_ptr<Checkpoint> checkpoint(created);
  const std::string copy = dbname_ + "_copy";
  EXPECT_OK(DestroyDir(env_, copy));
  fs_->SetFault(slow_, Fault::kLost);
  const Status s = checkpoint->CreateCheckpoint(copy);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(s.ToString().find(slow_ + "/"), std::string::npos) << s.ToString();
  EXPECT_OK(BgError());
  ASSERT_OK(Put("a1", "small"));
  fs_->SetFault(slow_, Fault::kNone);
  ASSERT_OK(checkpoint->CreateCheckpoint(copy));
  EXPECT_OK(DestroyDir(env_, copy));
}

TEST_F(DBPathFaultTest, MigrationFailsAlone) {
  UseLayout({0, 1}, {0, 1});
  Open();
  PutValues(0, 10);
  ASSERT_OK(Flush());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_GT(NumFiles(slow_, ".sst"), 0);
  ASSERT_OK(db_->SetOptions(
      {{"level_sst_path_ids", "0"}, {"level_blob_path_ids", "0"}}));
  fs_->SetFault(slow_, Fault::kLost);
  const Status s = MigratePaths(db_.get(), db_->DefaultColumnFamily(),
                                MigratePathsOptions());
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(s.ToString().find(slow_), std::string::npos) << s.ToString();
  EXPECT_OK(BgError());
  PutValues(10, 20);
  ASSERT_OK(Flush());

  // From a device that can be read, the files are moved, and deleted later.
  fs_->SetFault(slow_, Fault::kReadOnly);
  ASSERT_OK(MigratePaths(db_.get(), db_->DefaultColumnFamily(),
                         MigratePathsOptions()));
  ExpectValues(0, 20);
  EXPECT_GT(NumFiles(slow_, ".sst"), 0);
  fs_->SetFault(slow_, Fault::kNone);
  ASSERT_TRUE(WaitUntil([&] { return NumFiles(slow_, ".sst") == 0; }));
  ExpectValues(0, 20);
}

TEST_F(DBPathFaultTest, CloseDoesNotWaitForTheDevice) {
  for (const bool is_stopped : {true, false}) {
    SCOPED_TRACE(is_stopped);
    if (!is_stopped) {
      UseLayout({0, 1}, {0, 1});
      CompactTwoFiles();
    }
    Open();
    fs_->SetFault(slow_, Fault::kReadOnly);
    PutValues(0, 10);
    EXPECT_EQ(Flush().ok(), !is_stopped);
    if (!is_stopped) {
      PutValues(0, 10);
      ASSERT_OK(Flush());
    }
    ASSERT_TRUE(WaitUntil([&] { return IsWatched(slow_); }));
    CloseInTime();
    EXPECT_FALSE(Faults()->HasAny());
    fs_->SetFault(slow_, Fault::kNone);
    Reopen(options_);
    ExpectValues(0, 10);
  }
}

// Close() waits for the end of the recovery.
TEST_F(DBPathFaultTest, CloseBesideAFailedResumeReturns) {
  options_.max_bgerror_resume_count = 0;
  Open();
  fs_->SetFault(slow_, Fault::kReadOnly);
  PutValues(0, 10);
  EXPECT_NOK(Flush());
  std::future<Status> closed;
  const auto was_probed = EnableCallBackOnce(
      "DBStrata::ProbePathsBeforeRecovery:Probed", [&](void*) {
        closed = BeginClose();
        // Nothing tells when Close() waits. If it does not yet, the test passes
        // for another reason.
        env_->SleepForMicroseconds(200000);
      });
  EXPECT_NOK(db_->Resume());
  ASSERT_TRUE(was_probed->load());
  EndCloseInTime(std::move(closed));
  fs_->SetFault(slow_, Fault::kNone);
  Reopen(options_);
  ExpectValues(0, 10);
}

// With one path everything is as in RocksDB.
TEST_F(DBPathFaultTest, OnePathIsAsInRocksDB) {
  options_.cf_paths.clear();
  options_.level_sst_path_ids.clear();
  options_.level_blob_path_ids.clear();
  Open();
  PutValues(0, 10);
  fs_->SetFault(dbname_, Fault::kReadOnly);
  const Status s = Flush();
  fs_->SetFault(dbname_, Fault::kNone);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_EQ(s.ToString().find("path id"), std::string::npos) << s.ToString();
  EXPECT_EQ(BgError().severity(), Status::Severity::kFatalError);
  EXPECT_FALSE(Faults()->HasAny());
  EXPECT_NOK(db_->Resume());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
