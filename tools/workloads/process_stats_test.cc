// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/process_stats.h"

#ifdef OS_LINUX
#include <sys/mman.h>
#endif

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "file/file_util.h"
#include "port/port.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

class ProcessStatsTest : public testing::Test {
 public:
  ProcessStatsTest()
      : env_(Env::Default()),
        fs_(env_->GetFileSystem()),
        dir_(test::PerThreadDBPath("process_stats_test")) {
    EXPECT_OK(DestroyDir(env_, dir_));
    EXPECT_OK(env_->CreateDirIfMissing(dir_));
  }
  ~ProcessStatsTest() override { EXPECT_OK(DestroyDir(env_, dir_)); }

 protected:
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  void MakeDir(const std::string& name) {
    ASSERT_OK(env_->CreateDirIfMissing(Path(name)));
  }

  void MakeFile(const std::string& name, size_t size) {
    ASSERT_OK(WriteStringToFile(env_, std::string(size, 'x'), Path(name)));
  }

  Env* env_;
  std::shared_ptr<FileSystem> fs_;
  std::string dir_;
};

TEST_F(ProcessStatsTest, ParsesIo) {
  ProcessStats stats;
  stats.ParseIo(
      "rchar: 1\nwchar: 18446744073709551615\nsyscr: 3\nsyscw: 4\n"
      "read_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 7\n");
  EXPECT_EQ(1u, stats.rchar);
  EXPECT_EQ(UINT64_MAX, stats.wchar);
  EXPECT_EQ(3u, stats.syscr);
  EXPECT_EQ(4u, stats.syscw);
  EXPECT_EQ(4096u, stats.read_bytes);
  // This is not the number of cancelled_write_bytes, whose name ends alike.
  EXPECT_EQ(8192u, stats.write_bytes);
  EXPECT_EQ(7u, stats.cancelled_write_bytes);
  EXPECT_FALSE(stats.rss_bytes);

  stats.ParseIo("cancelled_write_bytes: 9\nrchar: none\nwchar:");
  EXPECT_FALSE(stats.rchar);
  EXPECT_FALSE(stats.wchar);
  EXPECT_FALSE(stats.write_bytes);
  EXPECT_EQ(9u, stats.cancelled_write_bytes);
}

TEST_F(ProcessStatsTest, ParsesStatus) {
  ProcessStats stats;
  stats.ParseStatus("Name:\tVmRSS:\nVmHWM:\t   20 kB\nVmRSS:\t   3 kB\n");
  EXPECT_EQ(20u * 1024, stats.peak_rss_bytes);
  EXPECT_EQ(3u * 1024, stats.rss_bytes);
  stats.ParseStatus("");
  EXPECT_FALSE(stats.peak_rss_bytes);
  EXPECT_FALSE(stats.rss_bytes);
}

TEST_F(ProcessStatsTest, SinceReturnsDifferences) {
  ProcessStats earlier;
  earlier.rchar = 10;
  earlier.write_bytes = 100;
  earlier.cpu_user_seconds = 1.5;
  earlier.rss_bytes = 1000;
  ProcessStats now = earlier;
  now.rchar = 15;
  now.write_bytes = 90;
  now.wchar = 7;
  now.cpu_user_seconds = 4.0;
  now.rss_bytes = 400;
  const ProcessStats used = now.Since(earlier);
  EXPECT_EQ(5u, used.rchar);
  EXPECT_EQ(0u, used.write_bytes);  // never a huge number
  EXPECT_FALSE(used.wchar);         // not known before
  EXPECT_FALSE(used.syscr);
  EXPECT_DOUBLE_EQ(2.5, *used.cpu_user_seconds);
  EXPECT_FALSE(used.cpu_system_seconds);
  EXPECT_EQ(400u, used.rss_bytes);
}

#ifdef OS_LINUX
TEST_F(ProcessStatsTest, DeviceWriteBytesExcludeCancelledOnes) {
  ProcessStats stats;
  EXPECT_FALSE(stats.device_write_bytes().has_value());
  stats.write_bytes = 100;
  EXPECT_FALSE(stats.device_write_bytes().has_value());
  stats.cancelled_write_bytes = 30;
  EXPECT_EQ(70u, stats.device_write_bytes());
  stats.cancelled_write_bytes = 130;
  EXPECT_EQ(0u, stats.device_write_bytes());
}

TEST_F(ProcessStatsTest, NowCountsReadsWritesAndCpuTime) {
  const ProcessStats before = ProcessStats::Now();
  ASSERT_TRUE(before.wchar);
  ASSERT_TRUE(before.cancelled_write_bytes);
  ASSERT_TRUE(before.rss_bytes);
  MakeFile("file", 3000000);
  std::string content;
  ASSERT_OK(ReadFileToString(env_, Path("file"), &content));
  // The loop waits for CPU time instead of elapsed time, as the machine may be
  // busy.
  volatile uint64_t sink = 0;
  ProcessStats now;
  do {
    for (int i = 0; i < 1000000; ++i) {
      sink = sink + i;
    }
    now = ProcessStats::Now();
  } while (*now.Since(before).cpu_user_seconds < 0.02);
  const ProcessStats used = now.Since(before);
  EXPECT_GE(*used.rchar, 3000000u);
  EXPECT_GE(*used.wchar, 3000000u);
  EXPECT_LT(*used.wchar, 4000000u);
  EXPECT_GE(*used.syscr, 1u);
  EXPECT_GE(*used.syscw, 1u);
  EXPECT_LT(*used.cpu_user_seconds, 60);
  EXPECT_GE(*used.cpu_system_seconds, 0);
  EXPECT_GE(*now.peak_rss_bytes, *now.rss_bytes / 2);
}

TEST_F(ProcessStatsTest, ResetsPeakMemory) {
  constexpr size_t kSize = size_t{64} << 20;
  const uint64_t before = *ProcessStats::Now().rss_bytes;
  // The memory does not come from the allocator, which may keep what is freed.
  void* const memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  memset(memory, 'x', kSize);
  EXPECT_GE(*ProcessStats::Now().rss_bytes, before + kSize / 2);
  ASSERT_EQ(0, munmap(memory, kSize));
  EXPECT_GE(*ProcessStats::Now().peak_rss_bytes, before + kSize / 2);
  if (!ProcessStats::ResetPeakRss()) {
    ROCKSDB_GTEST_BYPASS("The system does not let us reset the peak");
    return;
  }
  EXPECT_LT(*ProcessStats::Now().peak_rss_bytes, before + kSize / 2);
}
#endif  // OS_LINUX

TEST_F(ProcessStatsTest, SortsFilesByKind) {
  MakeDir("db");
  MakeDir("db/archive");
  MakeDir("cold");
  MakeFile("db/000001.sst", 1);
  MakeFile("db/000002.ldb", 20);
  MakeFile("cold/000003.sst", 300);
  MakeFile("db/000004.blob", 4000);
  MakeFile("cold/000005.blob", 50000);
  MakeFile("db/000006.log", 7);
  MakeFile("db/archive/000007.log", 80);
  MakeFile("db/MANIFEST-000008", 11);
  MakeFile("db/CURRENT", 22);
  MakeFile("db/LOG", 44);
  MakeFile("db/000009.sst.trash", 88);
  DirectorySize size;
  ASSERT_OK(size.Measure(fs_.get(), {Path("db"), Path("db/archive"),
                                     Path("cold"), Path("absent")}));
  EXPECT_EQ(321u, size.sst_bytes);
  EXPECT_EQ(54000u, size.blob_bytes);
  EXPECT_EQ(87u, size.wal_bytes);
  EXPECT_EQ(165u, size.other_bytes);
  EXPECT_EQ(321u + 54000 + 87 + 165, size.total_bytes());

  // A second measurement starts from zero.
  ASSERT_OK(size.Measure(fs_.get(), {Path("cold")}));
  EXPECT_EQ(300u, size.sst_bytes);
  EXPECT_EQ(0u, size.wal_bytes);
  EXPECT_EQ(50300u, size.total_bytes());
}

namespace {

// Lists files some of which cannot be measured any more.
class ForgetfulFileSystem : public FileSystemWrapper {
 public:
  explicit ForgetfulFileSystem(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "ForgetfulFileSystem"; }

  IOStatus GetChildren(const std::string& dir, const IOOptions& options,
                       std::vector<std::string>* names,
                       IODebugContext* dbg) override {
    IOStatus s = target()->GetChildren(dir, options, names, dbg);
    names->push_back("000099.sst");  // deleted since
    names->push_back("OPTIONS-000098.dbtmp");
    return s;
  }

  IOStatus GetFileSize(const std::string& path, const IOOptions& options,
                       uint64_t* size, IODebugContext* dbg) override {
    if (broken_ && path.find("000002") != std::string::npos) {
      return IOStatus::IOError("bad disk");
    }
    if (vague_ && target()->FileExists(path, options, dbg).IsNotFound()) {
      return IOStatus::IOError("something");
    }
    return target()->GetFileSize(path, options, size, dbg);
  }

  bool broken_ = false;
  bool vague_ = false;
};

}  // namespace

TEST_F(ProcessStatsTest, ToleratesVanishingFiles) {
  MakeFile("000001.sst", 10);
  MakeFile("000002.sst", 20);
  MakeFile("000003.sst", 30);
  ForgetfulFileSystem fs(fs_);
  DirectorySize size;
  ASSERT_OK(size.Measure(&fs, {dir_}));
  EXPECT_EQ(60u, size.total_bytes());
  fs.vague_ = true;
  ASSERT_OK(size.Measure(&fs, {dir_}));
  EXPECT_EQ(60u, size.total_bytes());
  // Another error is returned, and does not hide the other files.
  fs.broken_ = true;
  const Status s = size.Measure(&fs, {dir_});
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(std::string::npos, s.ToString().find("bad disk"));
  EXPECT_EQ(40u, size.total_bytes());
}

TEST_F(ProcessStatsTest, MeasuresWhileFilesComeAndGo) {
  MakeFile("000001.sst", 1000);
  std::atomic<bool> stop{false};
  port::Thread churn([&] {
    for (int i = 0; !stop.load(); i = (i + 1) % 50) {
      const std::string name = Path("0001" + std::to_string(10 + i) + ".blob");
      EXPECT_OK(WriteStringToFile(env_, std::string(100, 'b'), name));
      if (i % 10 == 9) {
        for (int j = i - 9; j <= i; ++j) {
          EXPECT_OK(env_->DeleteFile(
              Path("0001" + std::to_string(10 + j) + ".blob")));
        }
      }
    }
  });
  DirectorySize size;
  for (int i = 0; i < 300; ++i) {
    EXPECT_OK(size.Measure(fs_.get(), {dir_}));
    EXPECT_EQ(1000u, size.sst_bytes);
    EXPECT_LE(size.blob_bytes, 5000u);
  }
  stop.store(true);
  churn.join();
}

TEST_F(ProcessStatsTest, DirectoriesOfDBAreListedOnce) {
  Options options;
  options.create_if_missing = true;
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, Path("plain"), &db));
  EXPECT_EQ(
      (std::vector<std::string>{Path("plain"), Path("plain") + "/archive"}),
      DirectorySize::DirectoriesOf(db.get()));
  ASSERT_OK(db->Close());
  db.reset();

  // One directory has several names, and another one several uses.
  ASSERT_OK(env_->CreateDirIfMissing(Path("db")));
  options.wal_dir = Path("wal");
  options.db_paths = {{Path("db"), 1 << 20},
                      {dir_ + "/./cold", 1 << 20},
                      {Path("cold2"), 1 << 30}};
  options.cf_paths = {{Path("cold") + "/", 1 << 20},
                      {dir_ + "//warm", 1 << 20},
                      {Path("wal"), 1 << 30}};
  ASSERT_OK(DB::Open(options, Path("db"), &db));
  const auto directories = DirectorySize::DirectoriesOf(db.get());
  EXPECT_EQ((std::vector<std::string>{
                Path("db"), Path("wal"), Path("wal") + "/archive",
                dir_ + "/./cold", Path("cold2"), dir_ + "//warm"}),
            directories);

  ASSERT_OK(db->Put(WriteOptions(), "key", std::string(10000, 'v')));
  DirectorySize size;
  ASSERT_OK(size.Measure(fs_.get(), directories));
  EXPECT_EQ(0u, size.sst_bytes);
  EXPECT_GT(size.wal_bytes, 10000u);
  EXPECT_GT(size.other_bytes, 0u);
  ASSERT_OK(db->Flush(FlushOptions()));
  ASSERT_OK(size.Measure(fs_.get(), directories));
  uint64_t sst_bytes = 0;
  ASSERT_TRUE(
      db->GetIntProperty(DB::Properties::kTotalSstFilesSize, &sst_bytes));
  EXPECT_GT(sst_bytes, 0u);
  EXPECT_EQ(sst_bytes, size.sst_bytes);
  ASSERT_OK(db->Close());
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
