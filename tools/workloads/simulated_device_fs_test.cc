// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/simulated_device_fs.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/mock_time_env.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

// Remembers the file that it has opened last.
class RememberingFs : public FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "RememberingFs"; }
  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    IOStatus s = target()->NewRandomAccessFile(name, options, result, dbg);
    last_file = result->get();
    return s;
  }
  Status RegisterDbPaths(const std::vector<std::string>& paths) override {
    registered = paths;
    return Status::OK();
  }
  Status UnregisterDbPaths(const std::vector<std::string>& paths) override {
    unregistered = paths;
    return Status::OK();
  }
  FSRandomAccessFile* last_file = nullptr;
  std::vector<std::string> registered;
  std::vector<std::string> unregistered;
};

}  // namespace

class SimulatedDeviceFsTest : public testing::Test {
 public:
  SimulatedDeviceFsTest()
      : clock_(SystemClock::Default()),
        dir_(test::PerThreadDBPath("simulated_device_fs_test")),
        base_(std::make_shared<RememberingFs>(FileSystem::Default())) {
    EXPECT_OK(DestroyDir(Env::Default(), dir_));
    EXPECT_OK(Env::Default()->CreateDirIfMissing(dir_));
    for (const char* name : {"/fast", "/fast2", "/fast/slow", "/other"}) {
      EXPECT_OK(Env::Default()->CreateDirIfMissing(dir_ + name));
    }
  }
  ~SimulatedDeviceFsTest() override {
    fs_.reset();
    EXPECT_OK(DestroyDir(Env::Default(), dir_));
  }

 protected:
  // devices: paths below the test's directory, and devices, in the text form.
  void Open(const std::vector<std::string>& devices) {
    std::string text;
    for (const std::string& device : devices) {
      text += (text.empty() ? "" : ",") + dir_ + device;
    }
    std::vector<PathDevice> parsed;
    ASSERT_OK(ParsePathDevices(text, &parsed));
    fs_ = std::make_unique<SimulatedDeviceFileSystem>(base_, parsed, &clock_);
  }

  std::string Path(const std::string& name) const { return dir_ + name; }

  void MakeFile(const std::string& name) {
    ASSERT_OK(WriteStringToFile(Env::Default(), "contents", Path(name)));
  }

  bool Exists(const std::string& name) {
    return Env::Default()->FileExists(Path(name)).ok();
  }

  // Reads a file through the file system. name: a whole path.
  void Read(const std::string& name) {
    std::unique_ptr<FSRandomAccessFile> file;
    ASSERT_OK(fs_->NewRandomAccessFile(name, FileOptions(), &file, nullptr));
    char scratch[8];
    Slice result;
    ASSERT_OK(file->Read(0, sizeof(scratch), io_, &result, scratch, nullptr));
    EXPECT_EQ(result.ToString(), "contents");
  }

  // Returns the microseconds since the last call.
  uint64_t Elapsed() {
    const uint64_t now = clock_.NowMicros();
    return now - std::exchange(last_, now);
  }

  SimulatedDevice::Stats Stats(size_t device) const {
    return fs_->GetReports()[device].stats;
  }

  MockSystemClock clock_;
  const std::string dir_;
  std::shared_ptr<RememberingFs> base_;
  std::unique_ptr<SimulatedDeviceFileSystem> fs_;
  uint64_t last_ = 0;
  const IOOptions io_;
};

TEST_F(SimulatedDeviceFsTest, TheLongestPathDecides) {
  Open({"/fast:10:0:0", "/fast/slow:100:0:0"});
  for (const char* name :
       {"/fast/a", "/fast/slow/a", "/fast/slower", "/fast2/a", "/other/a"}) {
    MakeFile(name);
  }
  Read(Path("/fast/a"));
  EXPECT_EQ(Elapsed(), 10u);
  Read(Path("/fast/slow/a"));
  EXPECT_EQ(Elapsed(), 100u);
  // A name that only begins like a directory is not in it.
  Read(Path("/fast/slower"));
  EXPECT_EQ(Elapsed(), 10u);
  Read(Path("/fast2/a"));
  EXPECT_EQ(Elapsed(), 0u);
  Read(Path("/other/a"));
  EXPECT_EQ(Elapsed(), 0u);
  EXPECT_EQ(Stats(0).reads, 2u);
  EXPECT_EQ(Stats(1).reads, 1u);
}

TEST_F(SimulatedDeviceFsTest, PathsAreResolvedAsText) {
  Open({"/fast//./:10:0:0"});
  MakeFile("/fast/a");
  MakeFile("/other/a");
  Read(dir_ + "//fast/./slow/../a");
  EXPECT_EQ(Elapsed(), 10u);
  Read(dir_ + "/other/../fast/a");
  EXPECT_EQ(Elapsed(), 10u);
  Read(dir_ + "/fast/../other/a");
  EXPECT_EQ(Elapsed(), 0u);
  EXPECT_EQ(fs_->GetReports()[0].path, dir_ + "/fast//./");
}

TEST_F(SimulatedDeviceFsTest, RelativePathsBeginInTheWorkingDirectory) {
  std::string here;
  ASSERT_OK(FileSystem::Default()->GetAbsolutePath(".", io_, &here, nullptr));
  SimulatedDeviceFileSystem relative(
      base_, {{"no_such_directory", DeviceProfile{0, 7, 0, 0, 0, 0, 1, 0}}},
      &clock_);
  for (const std::string& name :
       {std::string("no_such_directory/a"), here + "/no_such_directory/a"}) {
    EXPECT_NOK(relative.DeleteFile(name, io_, nullptr));
    EXPECT_EQ(Elapsed(), 7u) << name;
  }
  EXPECT_NOK(relative.DeleteFile("no_such_file", io_, nullptr));
  EXPECT_EQ(Elapsed(), 0u);
}

TEST_F(SimulatedDeviceFsTest, TheRootHasAllFiles) {
  SimulatedDeviceFileSystem fs(
      base_, {{"/", DeviceProfile{0, 7, 0, 0, 0, 0, 1, 0}}}, &clock_);
  MakeFile("/other/a");
  ASSERT_OK(fs.DeleteFile(Path("/other/a"), io_, nullptr));
  EXPECT_EQ(Elapsed(), 7u);
}

TEST_F(SimulatedDeviceFsTest, OtherFilesAreThoseOfTheBase) {
  Open({"/fast:10:0:0"});
  MakeFile("/fast/a");
  MakeFile("/other/a");
  std::unique_ptr<FSRandomAccessFile> file;
  ASSERT_OK(fs_->NewRandomAccessFile(Path("/other/a"), FileOptions(), &file,
                                     nullptr));
  EXPECT_EQ(file.get(), base_->last_file);
  ASSERT_OK(
      fs_->NewRandomAccessFile(Path("/fast/a"), FileOptions(), &file, nullptr));
  EXPECT_NE(file.get(), base_->last_file);
}

TEST_F(SimulatedDeviceFsTest, ChangesOfNamesTakeALatency) {
  Open({"/fast:100/10:1000:0:4:30"});
  std::unique_ptr<FSWritableFile> file;
  ASSERT_OK(
      fs_->NewWritableFile(Path("/fast/a"), FileOptions(), &file, nullptr));
  EXPECT_EQ(Elapsed(), 10u);
  ASSERT_OK(file->Append("contents", io_, nullptr));
  ASSERT_OK(file->Sync(io_, nullptr));
  EXPECT_EQ(Elapsed(), 10u + 1 + 30);
  ASSERT_OK(file->Close(io_, nullptr));
  ASSERT_OK(
      fs_->ReopenWritableFile(Path("/fast/a"), FileOptions(), &file, nullptr));
  EXPECT_EQ(Elapsed(), 10u);
  ASSERT_OK(file->Append("more", io_, nullptr));
  ASSERT_OK(file->Close(io_, nullptr));
  EXPECT_EQ(Elapsed(), 11u);
  ASSERT_OK(fs_->RenameFile(Path("/fast/a"), Path("/fast/b"), io_, nullptr));
  EXPECT_EQ(Elapsed(), 10u);
  ASSERT_OK(fs_->LinkFile(Path("/fast/b"), Path("/fast/c"), io_, nullptr));
  EXPECT_EQ(Elapsed(), 10u);
  // Not by the base.
  EXPECT_TRUE(fs_->Truncate(Path("/fast/b"), 8, io_, nullptr).IsNotSupported());
  EXPECT_EQ(Elapsed(), 10u);
  Read(Path("/fast/c"));
  EXPECT_EQ(Elapsed(), 101u);
  ASSERT_OK(fs_->SyncFile(Path("/fast/c"), FileOptions(), io_, false, nullptr));
  EXPECT_EQ(Elapsed(), 30u);
  ASSERT_OK(fs_->ReuseWritableFile(Path("/fast/d"), Path("/fast/c"),
                                   FileOptions(), &file, nullptr));
  EXPECT_EQ(Elapsed(), 10u);
  ASSERT_OK(file->Close(io_, nullptr));
  ASSERT_OK(fs_->CreateDir(Path("/fast/new"), io_, nullptr));
  EXPECT_EQ(Elapsed(), 10u);
  ASSERT_OK(fs_->CreateDirIfMissing(Path("/fast/new"), io_, nullptr));
  EXPECT_EQ(Elapsed(), 10u);
  ASSERT_OK(fs_->DeleteDir(Path("/fast/new"), io_, nullptr));
  EXPECT_EQ(Elapsed(), 10u);
  ASSERT_OK(fs_->DeleteFile(Path("/fast/d"), io_, nullptr));
  EXPECT_EQ(Elapsed(), 10u);
  EXPECT_FALSE(Exists("/fast/d"));
  EXPECT_EQ(Stats(0).write_bytes, 12u);
}

TEST_F(SimulatedDeviceFsTest, WhatOnlyAsksTakesNoTime) {
  Open({"/fast:100:0:0"});
  MakeFile("/fast/a");
  std::unique_ptr<FSRandomAccessFile> random;
  ASSERT_OK(fs_->NewRandomAccessFile(Path("/fast/a"), FileOptions(), &random,
                                     nullptr));
  std::unique_ptr<FSSequentialFile> sequential;
  ASSERT_OK(fs_->NewSequentialFile(Path("/fast/a"), FileOptions(), &sequential,
                                   nullptr));
  std::unique_ptr<FSRandomRWFile> rw;
  ASSERT_OK(fs_->NewRandomRWFile(Path("/fast/a"), FileOptions(), &rw, nullptr));
  ASSERT_OK(fs_->FileExists(Path("/fast/a"), io_, nullptr));
  uint64_t size = 0;
  ASSERT_OK(fs_->GetFileSize(Path("/fast/a"), io_, &size, nullptr));
  EXPECT_EQ(size, 8u);
  std::vector<std::string> children;
  ASSERT_OK(fs_->GetChildren(Path("/fast"), io_, &children, nullptr));
  EXPECT_EQ(Elapsed(), 0u);
  EXPECT_EQ(Stats(0).requests(), 0u);
}

TEST_F(SimulatedDeviceFsTest, ErrorsAreThoseOfTheBase) {
  Open({"/fast:10:0:0"});
  const std::string missing = Path("/fast/missing");
  std::unique_ptr<FSRandomAccessFile> random;
  const IOStatus expected =
      base_->NewRandomAccessFile(missing, FileOptions(), &random, nullptr);
  EXPECT_NOK(expected);
  const IOStatus s =
      fs_->NewRandomAccessFile(missing, FileOptions(), &random, nullptr);
  EXPECT_EQ(s.ToString(), expected.ToString());
  EXPECT_EQ(random, nullptr);
  std::unique_ptr<FSWritableFile> writable;
  EXPECT_NOK(fs_->NewWritableFile(Path("/fast/no/file"), FileOptions(),
                                  &writable, nullptr));
  EXPECT_EQ(writable, nullptr);
  EXPECT_EQ(Elapsed(), 10u);
  EXPECT_NOK(fs_->DeleteFile(missing, io_, nullptr));
  EXPECT_EQ(Elapsed(), 10u);
}

TEST_F(SimulatedDeviceFsTest, NamesOnTwoDevicesAreRefused) {
  Open({"/fast:10:0:0", "/fast/slow:100:0:0"});
  MakeFile("/fast/a");
  MakeFile("/other/a");
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{
           {"/fast/a", "/fast/slow/b"},
           {"/fast/a", "/other/b"},
           {"/other/a", "/fast/b"}}) {
    EXPECT_TRUE(
        fs_->LinkFile(Path(from), Path(to), io_, nullptr).IsNotSupported());
    EXPECT_TRUE(
        fs_->RenameFile(Path(from), Path(to), io_, nullptr).IsIOError());
    std::unique_ptr<FSWritableFile> file;
    EXPECT_TRUE(fs_->ReuseWritableFile(Path(to), Path(from), FileOptions(),
                                       &file, nullptr)
                    .IsIOError());
    EXPECT_TRUE(Exists(from));
    EXPECT_FALSE(Exists(to));
  }
  ASSERT_OK(fs_->LinkFile(Path("/other/a"), Path("/other/b"), io_, nullptr));
  ASSERT_OK(fs_->RenameFile(Path("/other/a"), Path("/other/c"), io_, nullptr));
  EXPECT_EQ(Elapsed(), 0u);
}

TEST_F(SimulatedDeviceFsTest, PathsOfDatabasesArePassedOn) {
  Open({"/fast:10:0:0"});
  ASSERT_OK(fs_->RegisterDbPaths({"a", "b"}));
  ASSERT_OK(fs_->UnregisterDbPaths({"b"}));
  EXPECT_EQ(base_->registered, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(base_->unregistered, std::vector<std::string>{"b"});
}

TEST_F(SimulatedDeviceFsTest, ReportsSayWhatADeviceHasDone) {
  Open({"/fast:100/10:1000:0:4:30", "/other:hdd"});
  MakeFile("/fast/a");
  Read(Path("/fast/a"));
  const std::vector<DeviceReport> reports = fs_->GetReports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].ToString(),
            Path("/fast") +
                " (100/10:1000:0:4:30): 1 reads of 0.000 MB, 0 writes of 0.000 "
                "MB, 0 syncs; busy 0.000 s, queued 0.000 s, served 0.000 s; 0 "
                "late by 0.000 s, overslept 0.000 s");
  EXPECT_EQ(reports[1].stats.requests(), 0u);
  EXPECT_EQ(reports[1].profile.read_mb_per_second, 261u);
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
