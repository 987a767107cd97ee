//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// After a background error: Resume() starts again what had stopped.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "db/db_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A file system with a directory on a device that can be full.
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
      return IOStatus::NoSpace("No space left on device");
    }
    return FileSystemWrapper::NewWritableFile(name, options, result, dbg);
  }

  std::atomic<bool> full{false};
  std::atomic<int> refused{0};

 private:
  const std::string directory_;
};

}  // namespace

class DBResumeTest : public DBTestBase {
 protected:
  DBResumeTest() : DBTestBase("db_resume_test", /*env_do_fsync=*/false) {}
  ~DBResumeTest() override { Close(); }

  // Level 0 is on the first path, the others are on the second.
  void OpenOnTwoDevices(bool with_layout) {
    second_ = dbname_ + "_second/";
    ASSERT_OK(env_->CreateDirIfMissing(second_));
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
      // Bytes beyond the target go to the second one.
      options_.cf_paths = {{dbname_, 1}, {second_, uint64_t{1} << 40}};
    }
    DestroyAndReopen(options_);
  }

  // While there is a background error, Flush() may return that.
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
    // Not only the compaction waits, but a memtable, too.
    WriteOptions write_options;
    write_options.no_slowdown = true;
    ASSERT_OK(db_->Put(write_options, "waits", "value"));
    FlushOptions flush_options;
    flush_options.wait = false;
    flush_options.allow_write_stall = true;
    db_->Flush(flush_options).PermitUncheckedError();

    // The failed job ends after a pause, and schedules what it may.
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

    // Room is made. Nothing is written meanwhile.
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

  std::string second_;
  std::shared_ptr<FullDeviceFS> fs_;
  std::unique_ptr<Env> device_env_;
  Options options_;
};

TEST_F(DBResumeTest, FullDeviceOfALayout) {
  CompactAfterFullDevice(/*with_layout=*/true);
}

TEST_F(DBResumeTest, FullDeviceOfCfPaths) {
  CompactAfterFullDevice(/*with_layout=*/false);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
