//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_io_times.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/db_test_util.h"
#include "db/path_layout/path_job_stats.h"
#include "db/path_layout/path_read_stats.h"
#include "file/read_write_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/system_clock.h"
#include "test_util/mock_time_env.h"
#include "test_util/strata/line_logger_test_util.h"
#include "test_util/strata/sync_point_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kSecond = 1000 * 1000;

// A file whose operations take the time of a mock clock.
class SlowFile : public FSWritableFileOwnerWrapper {
 public:
  SlowFile(std::unique_ptr<FSWritableFile>&& file, MockSystemClock* clock)
      : FSWritableFileOwnerWrapper(std::move(file)), clock_(clock) {}

  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    clock_->SleepForMicroseconds(3);
    return target()->Append(data, options, dbg);
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const DataVerificationInfo& verification_info,
                  IODebugContext* dbg) override {
    clock_->SleepForMicroseconds(4);
    return target()->Append(data, options, verification_info, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    clock_->SleepForMicroseconds(5);
    return target()->PositionedAppend(data, offset, options, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            const DataVerificationInfo& verification_info,
                            IODebugContext* dbg) override {
    clock_->SleepForMicroseconds(6);
    return target()->PositionedAppend(data, offset, options, verification_info,
                                      dbg);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    clock_->SleepForMicroseconds(2 * kSecond);
    return target()->Sync(options, dbg);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    clock_->SleepForMicroseconds(30);
    return target()->Fsync(options, dbg);
  }
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options,
                     IODebugContext* dbg) override {
    clock_->SleepForMicroseconds(7);
    return target()->RangeSync(offset, bytes, options, dbg);
  }

 private:
  MockSystemClock* const clock_;
};

// A file in memory that can be written at a position.
class PositionedFile : public FSWritableFile {
 public:
  explicit PositionedFile(std::string* contents) : contents_(contents) {}

  IOStatus Append(const Slice& data, const IOOptions&,
                  IODebugContext*) override {
    contents_->append(data.data(), data.size());
    return IOStatus::OK();
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const DataVerificationInfo&, IODebugContext* dbg) override {
    return Append(data, options, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    EXPECT_EQ(offset, contents_->size());
    return Append(data, options, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            const DataVerificationInfo&,
                            IODebugContext* dbg) override {
    return PositionedAppend(data, offset, options, dbg);
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&,
                     IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
    return contents_->size();
  }

 private:
  std::string* const contents_;
};

}  // namespace

class PathIoTimesTest : public testing::Test {
 protected:
  PathIoTimesTest()
      : clock_(std::make_shared<MockSystemClock>(SystemClock::Default())) {
    clock_->SetCurrentTime(1000);
  }

  size_t NumLines() { return logger_.Count("is slow: "); }

  const std::shared_ptr<MockSystemClock> clock_;
  LineLogger logger_;
  PathIoTimes times_{{{"/a", 0}, {"/a/b/", 0}}, clock_.get(), &logger_};
};

TEST_F(PathIoTimesTest, CountsByKindAndPath) {
  times_.Add(PathIo::kWrite, 0, 5, "/a/000012.sst");
  times_.Add(PathIo::kWrite, 0, 7, "/a/000012.sst");
  times_.Add(PathIo::kWrite, 0, 6, "/a/000012.sst");
  times_.Add(PathIo::kSync, 1, 9, "/a/b/000013.sst");
  const PathIoTimes::Counts writes = times_.Get(PathIo::kWrite, 0);
  EXPECT_EQ(writes.operations, 3);
  EXPECT_EQ(writes.micros, 18);
  EXPECT_EQ(writes.max_micros, 7);
  EXPECT_EQ(times_.Get(PathIo::kWrite, 1).operations, 0);
  EXPECT_EQ(times_.Get(PathIo::kSync, 1).max_micros, 9);
  EXPECT_EQ(times_.Get(PathIo::kRead, 0).operations, 0);
  EXPECT_EQ(times_.NumSlow(0), 0);
  EXPECT_EQ(NumLines(), 0);
}

TEST_F(PathIoTimesTest, LogHasALineAMinuteForEachPath) {
  times_.Add(PathIo::kSync, 0, kSecond - 1, "/a/000012.sst");
  EXPECT_EQ(NumLines(), 0);
  times_.Add(PathIo::kSync, 0, kSecond, "/a/000012.sst");
  EXPECT_EQ(NumLines(), 1);
  EXPECT_TRUE(logger_.Has(
      "The device of path id 0 is slow: a sync of /a/000012.sst by a "
      "background job took 1000 ms. Operations of a second or longer since the "
      "last such line: 1"));
  times_.Add(PathIo::kWrite, 0, 3 * kSecond, "/a/000012.sst");
  times_.Add(PathIo::kRead, 0, 3 * kSecond, "/a/000012.sst");
  EXPECT_EQ(NumLines(), 1);
  // The other path has a line of its own.
  times_.Add(PathIo::kRead, 1, 3 * kSecond, "/a/b/000013.blob");
  EXPECT_EQ(NumLines(), 2);
  EXPECT_TRUE(logger_.Has("path id 1 is slow: a read of /a/b/000013.blob"));
  clock_->SleepForMicroseconds(60 * kSecond);
  times_.Add(PathIo::kWrite, 0, 4 * kSecond, "/a/000014.sst");
  EXPECT_EQ(NumLines(), 3);
  EXPECT_TRUE(
      logger_.Has("a write of /a/000014.sst by a background job took "
                  "4000 ms",
                  "since the last such line: 3"));
  EXPECT_EQ(times_.NumSlow(0), 4);
  EXPECT_EQ(times_.NumSlow(1), 1);
}

TEST_F(PathIoTimesTest, MeasuresFilesOfItsPathsAlone) {
  const std::string directory = test::PerThreadDBPath("path_io_times_test");
  Env* const env = Env::Default();
  EXPECT_OK(DestroyDir(env, directory));
  ASSERT_OK(env->CreateDir(directory));
  ASSERT_OK(env->CreateDir(directory + "/sub"));
  PathIoTimes times({{directory + "/", 0}}, clock_.get(), &logger_);
  for (const std::string& name :
       {directory + "/000012.sst", directory + "//000013.sst",
        directory + "/sub/000014.sst", directory + "/MANIFEST-000015",
        directory + "/000016.log", directory + "/000017.dbtmp"}) {
    std::unique_ptr<FSWritableFile> file;
    ASSERT_OK(FileSystem::Default()->NewWritableFile(name, FileOptions(), &file,
                                                     nullptr));
    file = std::make_unique<SlowFile>(std::move(file), clock_.get());
    times.Measure(name, &file);
    ASSERT_OK(file->Append("1", IOOptions(), nullptr));
    ASSERT_OK(file->Append("2", IOOptions(), nullptr));
    ASSERT_OK(file->Sync(IOOptions(), nullptr));
    ASSERT_OK(file->Close(IOOptions(), nullptr));
    std::string contents;
    ASSERT_OK(ReadFileToString(env, name, &contents));
    EXPECT_EQ(contents, "12");
  }
  // Neither the directory below nor the files that outlive a job count.
  EXPECT_EQ(times.Get(PathIo::kWrite, 0).operations, 4);
  EXPECT_EQ(times.Get(PathIo::kWrite, 0).micros, 12);
  EXPECT_EQ(times.Get(PathIo::kSync, 0).operations, 2);
  EXPECT_EQ(times.Get(PathIo::kSync, 0).max_micros, 2 * kSecond);
  EXPECT_EQ(times.NumSlow(0), 2);
  EXPECT_EQ(NumLines(), 1);
  EXPECT_OK(DestroyDir(env, directory));
}

// Each way to write to a file counts, and each way to sync it. With direct I/O
// there are positions, and with checks of what is written, checksums.
TEST_F(PathIoTimesTest, MeasuresAllWaysToWriteAndSync) {
  std::string contents;
  std::unique_ptr<FSWritableFile> file =
      std::make_unique<PositionedFile>(&contents);
  file = std::make_unique<SlowFile>(std::move(file), clock_.get());
  times_.Measure("/a/000012.sst", &file);
  const auto check = [this](uint64_t writes, uint64_t write_micros,
                            uint64_t syncs, uint64_t sync_micros) {
    EXPECT_EQ(times_.Get(PathIo::kWrite, 0).operations, writes);
    EXPECT_EQ(times_.Get(PathIo::kWrite, 0).micros, write_micros);
    EXPECT_EQ(times_.Get(PathIo::kSync, 0).operations, syncs);
    EXPECT_EQ(times_.Get(PathIo::kSync, 0).micros, sync_micros);
  };
  const DataVerificationInfo no_info;
  ASSERT_OK(file->Append("1", IOOptions(), nullptr));
  check(1, 3, 0, 0);
  ASSERT_OK(file->Append("2", IOOptions(), no_info, nullptr));
  check(2, 7, 0, 0);
  ASSERT_OK(file->PositionedAppend("3", 2, IOOptions(), nullptr));
  check(3, 12, 0, 0);
  ASSERT_OK(file->PositionedAppend("4", 3, IOOptions(), no_info, nullptr));
  check(4, 18, 0, 0);
  ASSERT_OK(file->RangeSync(0, 2, IOOptions(), nullptr));
  check(4, 18, 1, 7);
  ASSERT_OK(file->Fsync(IOOptions(), nullptr));
  check(4, 18, 2, 37);
  ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_EQ(contents, "1234");
}

// Times in the property of a DB.
class DBPathIoTimesTest : public DBTestBase {
 protected:
  DBPathIoTimesTest()
      : DBTestBase("db_path_io_times_test", /*env_do_fsync=*/false) {}
  ~DBPathIoTimesTest() override {
    Close();
    DisableCallBacks();
    EXPECT_OK(DestroyDir(env_, dbname_ + "_1"));
  }

  uint64_t Value(const std::string& key) {
    std::map<std::string, std::string> values;
    EXPECT_TRUE(db_->GetMapProperty(DB::Properties::kPathStats, &values));
    const auto it = values.find(key);
    EXPECT_NE(it, values.end()) << key;
    return it == values.end() ? 0 : std::stoull(it->second);
  }
};

TEST_F(DBPathIoTimesTest, PathStatsHaveTheTimesOfEachPath) {
  Options options = CurrentOptions();
  options.cf_paths = {{dbname_, 1 << 30}, {dbname_ + "_1", 1 << 30}};
  options.level_sst_path_ids = {0};
  options.level_blob_path_ids = {1};
  options.enable_blob_files = true;
  options.min_blob_size = 100;
  options.disable_auto_compactions = true;
  const auto logger = std::make_shared<LineLogger>();
  options.info_log = logger;
  // Every operation takes this long.
  constexpr uint64_t kMicros = 1500 * 1000;
  EnableCallBack("PathIoTimes::Add:Micros", [](void* micros) {
    *static_cast<uint64_t*>(micros) = kMicros;
  });
  DestroyAndReopen(options);
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put(Key(i), std::string(1000, 'v')));
  }
  EXPECT_EQ(Value("path1.job-writes"), 0);
  ASSERT_OK(Flush());
  for (const std::string& path : std::vector<std::string>{"path0.", "path1."}) {
    SCOPED_TRACE(path);
    EXPECT_GT(Value(path + "job-writes"), 0);
    EXPECT_EQ(Value(path + "job-write-micros"),
              Value(path + "job-writes") * kMicros);
    EXPECT_EQ(Value(path + "max-job-write-micros"), kMicros);
    EXPECT_GT(Value(path + "job-syncs"), 0);
    EXPECT_EQ(Value(path + "max-job-sync-micros"), kMicros);
    EXPECT_GE(Value(path + "slow-job-ios"),
              Value(path + "job-writes") + Value(path + "job-syncs"));
  }
  EXPECT_EQ(logger->Count("The device of path id 0 is slow: "), 1);
  EXPECT_EQ(logger->Count("The device of path id 1 is slow: "), 1);

  const uint64_t reads = Value("path1.timed-reads");
  EXPECT_EQ(Value("path1.max-job-read-micros"), 0);
  EXPECT_EQ(Get(Key(3)), std::string(1000, 'v'));
  EXPECT_GT(Value("path1.timed-reads"), reads);
  EXPECT_EQ(Value("path1.max-job-read-micros"), 0);
  std::string text;
  ASSERT_TRUE(db_->GetProperty(DB::Properties::kPathStats, &text));
  EXPECT_NE(text.find("max-job-sync-micros"), std::string::npos) << text;

  // Nothing is measured with one path.
  Destroy(options);
  Reopen(CurrentOptions());
  std::map<std::string, std::string> values;
  db_->GetMapProperty(DB::Properties::kPathStats, &values);
  EXPECT_EQ(values.count("path0.timed-reads"), 0);
}

// Puts a value into another column family from within a job of "x".
class WritingListener : public EventListener {
 public:
  void OnTableFileCreated(const TableFileCreationInfo& info) override {
    if (info.cf_name == "x" && db != nullptr) {
      EXPECT_OK(db->Put(WriteOptions(), "a", std::string(1000, 'v')));
      ++num_writes;
    }
  }

  DB* db = nullptr;
  int num_writes = 0;
};

// A file of blob direct write that a listener's write begins in a job outlives
// the column family of the job.
TEST_F(DBPathIoTimesTest, BlobDirectWriteInAJobIsNotMeasured) {
  const auto listener = std::make_shared<WritingListener>();
  Options options = CurrentOptions();
  options.cf_paths = {{dbname_, 1 << 30}, {dbname_ + "_1", 1 << 30}};
  options.disable_auto_compactions = true;
  options.listeners.push_back(listener);
  options.allow_concurrent_memtable_write = false;
  Options direct = options;
  direct.enable_blob_files = true;
  direct.enable_blob_direct_write = true;
  direct.blob_direct_write_partitions = 1;
  direct.min_blob_size = 100;
  DestroyAndReopen(direct);
  CreateColumnFamilies({"x"}, options);
  ColumnFamilyHandle* const x = handles_[0];
  ASSERT_OK(db_->Put(WriteOptions(), x, "a", "1"));
  listener->db = db_.get();
  ASSERT_OK(db_->Flush(FlushOptions(), x));
  ASSERT_EQ(listener->num_writes, 1);
  listener->db = nullptr;

  const auto num_writes = [&] {
    std::map<std::string, std::string> values;
    EXPECT_TRUE(db_->GetMapProperty(x, DB::Properties::kPathStats, &values));
    return std::stoull(values["path0.job-writes"]);
  };
  const uint64_t before = num_writes();
  EXPECT_GT(before, 0);
  ASSERT_OK(Put("b", std::string(1000, 'v')));
  ASSERT_OK(Flush());  // completes the file
  EXPECT_EQ(num_writes(), before);
  EXPECT_EQ(Get("a"), std::string(1000, 'v'));
  ASSERT_OK(db_->DropColumnFamily(x));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(x));
  handles_.clear();
}

// The MANIFEST that a job begins outlives the column family of the job.
TEST_F(DBPathIoTimesTest, ManifestOfAJobOutlivesItsColumnFamily) {
  Options options = CurrentOptions();
  options.cf_paths = {{dbname_, 1 << 30}, {dbname_ + "_1", 1 << 30}};
  options.enable_blob_files = true;
  options.min_blob_size = 100;
  options.enable_blob_address_map = true;
  options.blob_gc_space_amp_limit = 0;
  options.disable_auto_compactions = true;
  DestroyAndReopen(options);
  CreateColumnFamilies({"x"}, options);
  ColumnFamilyHandle* const x = handles_[0];
  for (const int step : {1, 2}) {
    for (int i = 0; i < 20; i += step) {
      ASSERT_OK(db_->Put(WriteOptions(), x, Key(i), std::string(1000, 'v')));
    }
    ASSERT_OK(db_->Flush(FlushOptions(), x));
  }
  WaitForCompactOptions wait;
  wait.wait_for_purge = true;
  ASSERT_OK(db_->WaitForCompact(wait));
  ASSERT_OK(dbfull()->SetDBOptions(
      {{"max_manifest_file_size", "1"}, {"max_manifest_space_amp_pct", "0"}}));
  const uint64_t manifest = dbfull()->TEST_Current_Manifest_FileNo();
  ASSERT_OK(db_->CollectBlobGarbage(CollectBlobGarbageOptions(), x));
  ASSERT_NE(dbfull()->TEST_Current_Manifest_FileNo(), manifest);

  ASSERT_OK(dbfull()->SetDBOptions({{"max_manifest_file_size", "1073741824"}}));
  ASSERT_OK(db_->DropColumnFamily(x));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(x));
  handles_.clear();
  ASSERT_OK(Put("a", "1"));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("a"), "1");
}

TEST(PathReadTimerTest, MeasuresIfThereAreTimes) {
  MockSystemClock clock(SystemClock::Default());
  clock.SetCurrentTime(1000);
  PathReadStats stats(std::make_unique<PathIoTimes>(
      std::vector<DbPath>{{"/a", 0}, {"/b", 0}}, &clock, /*logger=*/nullptr));
  PathReadStats unmeasured;
  const uint32_t slot = PathReadStats::Slot(PathReadStats::FileKind::kBlob, 1);
  const std::string name = "/b/000012.blob";
  const auto read = [&](PathReadStats* of) {
    const PathReadTimer timer(of, slot, name);
    clock.SleepForMicroseconds(5);
  };
  read(&stats);
  read(&unmeasured);
  read(nullptr);
  PathReadStats::Counts counts = stats.Get(PathReadStats::FileKind::kBlob, 1);
  EXPECT_EQ(counts.timed_reads, 1);
  EXPECT_EQ(counts.nanos, 5000);
  EXPECT_EQ(stats.times()->Get(PathIo::kRead, 1).operations, 0);
  {
    const PathJobScope job(PathJob::kCompaction);
    read(&stats);
  }
  counts = stats.Get(PathReadStats::FileKind::kBlob, 1);
  EXPECT_EQ(counts.timed_reads, 2);
  EXPECT_EQ(stats.times()->Get(PathIo::kRead, 1).operations, 1);
  EXPECT_EQ(stats.times()->Get(PathIo::kRead, 1).max_micros, 5);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
