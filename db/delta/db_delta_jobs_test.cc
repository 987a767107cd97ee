//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests merges and collections of delta files in real databases: when they run,
// what they leave, and that readers always get the same answers.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/db_delta_model_test_util.h"
#include "db/delta/delta_gc_job.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/iostats_context.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/sst_file_writer.h"
#include "test_util/strata/created_files_fs_test_util.h"
#include "test_util/strata/delta_db_test_util.h"
#include "test_util/strata/drop_before_edit_test_util.h"
#include "test_util/strata/held_point_test_util.h"
#include "test_util/strata/job_pressure_test_util.h"
#include "test_util/strata/paused_call_test_util.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "util/defer.h"
#include "util/random.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::ModelDBTest;

namespace {

// Notes how many threads the LOW pool is asked for.
class ThreadCountEnv : public EnvWrapper {
 public:
  explicit ThreadCountEnv(Env* base) : EnvWrapper(base) {}

  static const char* kClassName() { return "ThreadCountEnv"; }
  const char* Name() const override { return kClassName(); }

  void IncBackgroundThreadsIfNeeded(int number, Priority pool) override {
    if (pool == Priority::LOW) {
      num_low_ = std::max(num_low_, number);
    }
    EnvWrapper::IncBackgroundThreadsIfNeeded(number, pool);
  }

  // Returns the largest number since the last call.
  int TakeNumLow() { return std::exchange(num_low_, 0); }

 private:
  int num_low_ = 0;
};

// Keeps everything, and counts what it is asked about.
class CountingFilter : public CompactionFilter {
 public:
  Decision FilterV2(int /*level*/, const Slice& /*key*/, ValueType /*type*/,
                    const Slice& /*value*/, std::string* /*new_value*/,
                    std::string* /*skip_until*/) const override {
    ++num_calls_;
    return Decision::kKeep;
  }
  const char* Name() const override { return "CountingFilter"; }
  int num_calls() const { return num_calls_; }

 private:
  mutable std::atomic<int> num_calls_{0};
};

}  // namespace

class DBDeltaJobsTest : public ModelDBTest {
 protected:
  DBDeltaJobsTest() : ModelDBTest("db_delta_jobs_test") {}
  Options DeltaOptions() const {
    Options options = ModelDBTest::DeltaOptions();
    // Tests call Resume() on their own.
    options.max_bgerror_resume_count = 0;
    return options;
  }

  // Returns options with which jobs run when they are due.
  Options AutoOptions() const {
    Options options = DeltaOptions();
    options.disable_auto_compactions = false;
    return options;
  }

  void FlushOperands(uint32_t first, uint32_t last, size_t size = 10) {
    ModelDBTest::FlushOperands(first, last, size);
  }
  // Opens a new DB with a column family besides the default one. Jobs have work
  // in both.
  void OpenWithOtherFamily(const Options& options,
                           ColumnFamilyHandle** handle) {
    DestroyAndReopen(options);
    state_.clear();
    FlushOperands(0, 10);
    ASSERT_OK(db_->CreateColumnFamily(options, "other", handle));
    for (int flush = 0; flush < 2; ++flush) {
      for (uint32_t i = 0; i < 100; ++i) {
        ASSERT_OK(db_->Merge(WriteOptions(), *handle, KeyOf(i), "value"));
      }
      ASSERT_OK(db_->Flush(FlushOptions(), *handle));
    }
  }
  // Flushes operands of these keys so many times, and runs what is due each
  // time.
  void FlushAndRunJobs(size_t times, uint32_t first, uint32_t last,
                       size_t size = 10) {
    for (; times > 0; --times) {
      FlushOperands(first, last, size);
      ASSERT_OK(dbfull()->TEST_WaitForCompact());
    }
  }
  // Makes an empty DB, and two flushed files in it, of which CompactRange()
  // makes a merged file and then buckets.
  void MakeTwoFlushes(const Options& options) {
    DestroyAndReopen(options);
    state_.clear();
    FlushOperands(0, 100, /*size=*/100);
    FlushOperands(0, 100);
  }
  // Makes an empty DB, and buckets of kBucketKeys keys in it, whose operands
  // are in one file. Returns the number of buckets.
  uint64_t MakeBuckets(const Options& options, uint64_t min_buckets) {
    DestroyAndReopen(options);
    FlushOperands(0, kBucketKeys, /*size=*/100);
    EXPECT_OK(CompactAll());
    const uint64_t num_buckets = Stat("buckets");
    EXPECT_LE(min_buckets, num_buckets);
    return num_buckets;
  }
  // Collects everything, and checks the contents.
  void CompactAllAndCheck() {
    ASSERT_OK(CompactAll());
    EXPECT_EQ(0, Stat("merged-files"));
    Check();
  }
  uint64_t Stat(const std::string& name) {
    std::map<std::string, std::string> values;
    EXPECT_TRUE(db_->GetMapProperty(DB::Properties::kDeltaStore, &values));
    EXPECT_NE(values.find(name), values.end()) << name;
    return ModelDBTest::Stat(name);
  }
  // Checks that the files on disk are those of the Version, after obsolete ones
  // have been deleted.
  void CheckFiles() { EXPECT_EQ(Stat("files"), NumFilesOnDisk()); }
  bool JobsAreIdle() {
    InstrumentedMutexLock lock(dbfull()->mutex());
    return Family()->delta_store()->jobs().IsIdle();
  }

  // ---- Failures.

  // Each job that reaches the point fails, and is counted.
  static void FailJobsAt(const std::string& point,
                         std::atomic<uint64_t>* failures) {
    EnableCallBack(point, [failures](void* arg) {
      ++*failures;
      *static_cast<Status*>(arg) = Status::NoSpace("injected");
    });
  }

  // Returns options of a DB whose file system can be made to fail.
  Options FaultOptions() {
    fault_fs_ = std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
    fault_env_ = NewCompositeEnv(fault_fs_);
    Options options = DeltaOptions();
    options.env = fault_env_.get();
    return options;
  }
  void FailFileSystem() {
    fault_fs_->SetFilesystemActive(false, RetryableError());
  }
  void RepairFileSystem() { fault_fs_->SetFilesystemActive(true); }
  // To be called at the end of a test that uses FaultOptions().
  void LeaveFaultyFileSystem() {
    Close();
    last_options_.env = env_;
  }

  // ---- Damaged files.

  // A flush makes one file of each kind. A block of it has operands of a few
  // buckets.
  Options DamageOptions() const {
    Options options = DeltaOptions();
    options.write_buffer_size = 64 << 20;
    return options;
  }
  // Returns the path of the oldest delta file.
  std::string FirstDeltaFile() {
    const std::vector<std::string> names = FilesIn(dbname_, kDeltaFile);
    EXPECT_FALSE(names.empty());
    return names.empty() ? "" : dbname_ + "/" + names.front();
  }
  // Closes the DB and changes a byte at each of these offsets. Returns what the
  // file had before.
  std::string Damage(const std::string& path,
                     const std::vector<size_t>& offsets) {
    Close();
    std::string contents;
    EXPECT_OK(ReadFileToString(env_, path, &contents));
    std::string changed = contents;
    for (const size_t offset : offsets) {
      EXPECT_LT(offset, changed.size());
      changed[offset] ^= 1;
    }
    EXPECT_OK(WriteStringToFile(env_, changed, path));
    return contents;
  }
  // Checks that CompactRange() fails because of that file.
  void CheckCompactionTells(const std::string& path) {
    const Status s = CompactAll();
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_NE(std::string::npos, s.ToString().find(path)) << s.ToString();
  }
  void CheckWritesAreNotSlowedDown() {
    uint64_t value = 1;
    ASSERT_TRUE(
        db_->GetIntProperty(DB::Properties::kActualDelayedWriteRate, &value));
    EXPECT_EQ(0, value);
  }
  // Undoes the damage. Then nothing is missing.
  void RestoreAndCheck(Options options, const std::string& path,
                       const std::string& contents) {
    Close();
    ASSERT_OK(WriteStringToFile(env_, contents, path));
    options.disable_auto_compactions = true;
    Reopen(options);
    Check();
    CompactAllAndCheck();
    const InstrumentedMutexLock lock(dbfull()->mutex());
    const DeltaJobState& jobs = Family()->delta_store()->jobs();
    EXPECT_TRUE(jobs.damage().empty());
    EXPECT_FALSE(jobs.is_partition_damaged());
  }
  // Returns how many buckets have at least so many merged files of operands to
  // take in.
  size_t NumBucketsWithAtLeast(size_t num_files) {
    std::shared_ptr<const DeltaVersion> deltas = Deltas().State();
    std::vector<uint64_t> epochs;
    for (const DeltaVersion::FilePtr& file :
         deltas->RecentFiles(DeltaFileDescription::Kind::kOperands)) {
      if (file->description().tier == DeltaFileDescription::Tier::kMerged) {
        epochs.push_back(file->description().last_epoch);
      }
    }
    size_t num_buckets = 0;
    const DeltaBucketTable& table = deltas->Buckets();
    for (auto p = table.Begin(); p != table.End(); p = table.Next(p)) {
      const uint64_t floor = table.State(p).floor;
      const auto num_above =
          std::count_if(epochs.begin(), epochs.end(),
                        [floor](uint64_t epoch) { return epoch > floor; });
      num_buckets += static_cast<size_t>(num_above) >= num_files ? 1 : 0;
    }
    // Dropping the last reference needs the mutex.
    const InstrumentedMutexLock lock(dbfull()->mutex());
    deltas.reset();
    return num_buckets;
  }

  Status SetAutoJobs(bool on) {
    return db_->SetOptions(
        {{"disable_auto_compactions", on ? "false" : "true"}});
  }

  static constexpr uint32_t kBucketKeys = 400;

  // The points before the edit of a job.
  static constexpr const char* kBeforeMergeEdit =
      "DBStrata::BackgroundDeltaMerge::RunMarked:BeforeEdit";
  static constexpr const char* kBeforeCollectionEdit =
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit";

  std::shared_ptr<FaultInjectionTestFS> fault_fs_;
  std::unique_ptr<Env> fault_env_;
};

TEST_F(DBDeltaJobsTest, FourFlushedFilesAreMerged) {
  Options options = AutoOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 3; ++i) {
    FlushOperands(0, 10);
  }
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(3, Stat("flushed-files"));
  EXPECT_EQ(0, Ticker(DELTA_MERGES));
  FlushOperands(0, 10);
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(0, Stat("flushed-files"));
  EXPECT_EQ(1, Stat("merged-files"));
  // The merge has combined the operands of each key.
  EXPECT_EQ(10, Stat("operands"));
  EXPECT_EQ(1, Ticker(DELTA_MERGES));
  EXPECT_EQ(40, Ticker(DELTA_GC_OPERANDS_READ));
  EXPECT_EQ(30, Ticker(DELTA_GC_OPERANDS_DROPPED));
  EXPECT_GT(Ticker(DELTA_GC_BYTES_READ), 0);
  EXPECT_GT(Ticker(DELTA_GC_BYTES_WRITTEN), 0);
  EXPECT_EQ(0, Ticker(DELTA_GC_FAILED));
  CheckFiles();
  Check();
  Reopen(options);
  EXPECT_EQ(1, Stat("merged-files"));
  Check();
}

// Delta files are created with the temperature of the options, whichever job
// writes them. The MANIFEST does not have it, so reads count for
// default_temperature.
TEST_F(DBDeltaJobsTest, FilesHaveTheTemperatureOfTheOptions) {
  const auto fs =
      std::make_shared<CreatedFilesFS>(env_->GetFileSystem(), ".delta");
  const std::unique_ptr<Env> env = NewCompositeEnv(fs);
  Options options = DeltaOptions();
  options.env = env.get();
  options.default_write_temperature = Temperature::kCold;
  options.default_temperature = Temperature::kHot;
  const auto check_created = [&fs](size_t at_least) {
    const std::vector<FileOptions> created = fs->TakeCreated();
    EXPECT_GE(created.size(), at_least);
    for (const FileOptions& file : created) {
      EXPECT_EQ(file.temperature, Temperature::kCold);
    }
  };
  MakeTwoFlushes(options);
  check_created(2);
  ASSERT_OK(CompactAll());  // a merge and a collection
  check_created(2);
  const std::string ingested = dbname_ + "/ingested.sst";
  SstFileWriter writer(EnvOptions(), options);
  ASSERT_OK(writer.Open(ingested));
  ASSERT_OK(writer.Put(KeyOf(1), "value"));
  ASSERT_OK(writer.Finish());
  ASSERT_OK(db_->IngestExternalFile({ingested}, IngestExternalFileOptions()));
  check_created(1);
  Reopen(options);
  get_iostats_context()->Reset();
  EXPECT_GE(NumOperands(KeyOf(0)), 1);
  EXPECT_GT(
      get_iostats_context()->file_io_stats_by_temperature.hot_file_bytes_read,
      0);
  Close();
}

// Listeners hear of a slowdown at the end of a flush, and of its end when the
// merges have ended, without another flush or a compaction.
TEST_F(DBDeltaJobsTest, ListenersHearOfSlowdowns) {
  const auto listener = std::make_shared<JobPressureListener>();
  for (const bool automatic : {true, false}) {
    SCOPED_TRACE(automatic);
    Options options = automatic ? AutoOptions() : DeltaOptions();
    options.listeners.push_back(listener);
    DestroyAndReopen(options);
    state_.clear();
    listener->Forget();
    HeldPoint held("BackgroundJobScheduler::Work:Delta");
    for (int flush = 0; flush < 12; ++flush) {
      FlushOperands(0, 10);
    }
    EXPECT_FALSE(listener->HasSlowdown());
    for (int flush = 0; flush < 3; ++flush) {
      FlushOperands(0, 10);
    }
    if (automatic) {
      EXPECT_TRUE(WaitUntil([&] { return listener->HasSlowdown(); }));
      listener->Forget();
      held.Release();
      ASSERT_OK(dbfull()->TEST_WaitForCompact());
      EXPECT_TRUE(listener->HasNoSlowdown());
    } else {
      // Without automatic jobs, files of flushes slow no write down.
      ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
      EXPECT_FALSE(listener->HasSlowdown());
    }
    CheckWritesAreNotSlowedDown();
    Check();
  }
}

TEST_F(DBDeltaJobsTest, MergedFilesAreCollectedIntoBuckets) {
  Options options = AutoOptions();
  DestroyAndReopen(options);
  FlushAndRunJobs(16, 0, 100, /*size=*/50);
  EXPECT_GT(Stat("buckets"), 1);
  EXPECT_EQ(0, Stat("flushed-files"));
  EXPECT_LT(Stat("merged-files"), 4);
  EXPECT_GT(Ticker(DELTA_BUCKETS_COLLECTED), 0);
  CheckFiles();
  Check();
  Reopen(options);
  Check();
  for (int i = 0; i < 16; ++i) {
    FlushOperands(50, 60, /*size=*/500);
  }
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckFiles();
  Check();
}

// The job that writes a file also opens it, so its first reader need not.
TEST_F(DBDeltaJobsTest, FilesAreOpenWhenTheyAreCommitted) {
  const auto check = [&](const char* which, size_t num_expected) {
    EXPECT_EQ(num_expected,
              Deltas().CountOpened([&](const DeltaFileMeta& file) {
                ADD_FAILURE() << which << file.description().ToString();
              }));
  };
  const Options options = DeltaOptions();
  DestroyAndReopen(options);
  FlushOperands(0, 50, /*size=*/30);
  DoPut(KeyOf(3), "put");
  FlushOperands(0, 50, /*size=*/30);
  // The second flush has also written an anchor file.
  check("flushed ", 3);
  ASSERT_OK(SetAutoJobs(true));
  FlushOperands(0, 50, /*size=*/30);
  FlushOperands(0, 50, /*size=*/30);
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_GT(Stat("merged-files"), 0);
  check("merged ", Stat("files"));
  ASSERT_OK(SetAutoJobs(false));
  ASSERT_OK(CompactAll());
  EXPECT_EQ(0, Stat("merged-files"));
  EXPECT_GT(Stat("buckets"), 1);
  check("sorted ", Stat("files"));
  Check();
  // A flush at recovery opens its file as well. Older files are opened when
  // they are first read.
  DoMerge(KeyOf(60), "in the WAL");
  Reopen(options);
  EXPECT_EQ(1, Deltas().CountOpened([](const auto&) {}));
  Check();
}

TEST_F(DBDeltaJobsTest, CompactRangeCollectsEverything) {
  Options options = DeltaOptions();
  DestroyAndReopen(options);
  FlushOperands(0, 150, /*size=*/100);
  FlushOperands(0, 50);
  DoPut(KeyOf(3), "put");
  DoDelete(KeyOf(4));
  DoDeleteRange(KeyOf(10), KeyOf(20));
  DoMerge(KeyOf(11), "again");
  // A compaction of a part of the keys only compacts SST files.
  const std::string begin = KeyOf(0);
  const Slice begin_slice = begin;
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), &begin_slice, nullptr));
  EXPECT_GT(Stat("flushed-files"), 0);
  ASSERT_OK(CompactAll());
  EXPECT_EQ(0, Stat("flushed-files"));
  EXPECT_EQ(0, Stat("merged-files"));
  EXPECT_GT(Stat("buckets"), 1);
  EXPECT_EQ(0, Stat("anchors"));
  EXPECT_EQ(150 - 2 - 9, Stat("operands"));
  CheckFiles();
  Check();
  // A second call finds nothing to do.
  const uint64_t merges = Ticker(DELTA_MERGES);
  const uint64_t buckets = Ticker(DELTA_BUCKETS_COLLECTED);
  ASSERT_OK(CompactAll());
  EXPECT_EQ(merges, Ticker(DELTA_MERGES));
  EXPECT_EQ(buckets, Ticker(DELTA_BUCKETS_COLLECTED));
  EXPECT_TRUE(JobsAreIdle());
  Reopen(options);
  Check();
}

TEST_F(DBDeltaJobsTest, AnchorsStayWhileASnapshotNeedsThem) {
  Options options = DeltaOptions();
  DestroyAndReopen(options);
  FlushOperands(0, 50);
  DoSnapshot();
  DoPut(KeyOf(7), "put");
  DoDeleteRange(KeyOf(20), KeyOf(30));
  FlushOperands(0, 5);
  DoSnapshot();
  FlushOperands(0, 50);
  ASSERT_OK(CompactAll());
  Check();
  // The first snapshot sees entries below the value and the range deletion.
  EXPECT_GT(Stat("anchors"), 0);
  CheckFiles();
  ReleaseSnapshots();
  ASSERT_OK(CompactAll());
  EXPECT_EQ(0, Stat("anchors"));
  Check();
}

TEST_F(DBDeltaJobsTest, RandomJobsChangeNoValue) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    Random rnd(301 + seed);
    Options options = DeltaOptions();
    options.disable_auto_compactions = rnd.OneIn(3);
    options.delta_max_buckets = rnd.OneIn(2) ? 6 : 64;
    options.paranoid_file_checks = rnd.OneIn(2);
    if (rnd.OneIn(2)) {
      options.verify_output_flags = VerifyOutputFlags::kVerifyAll;
      options.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
    }
    DestroyAndReopen(options);
    state_.clear();
    for (int round = 0; round < 30; ++round) {
      RandomWrites(1 + static_cast<int>(rnd.Uniform(300)), &rnd);
      if (rnd.OneIn(3)) {
        DoSnapshot();
      }
      if (rnd.OneIn(6)) {
        ReleaseSnapshots();
      }
      if (!rnd.OneIn(4)) {
        ASSERT_OK(Flush());
      }
      if (rnd.OneIn(6)) {
        ASSERT_OK(CompactAll());
      }
      if (rnd.OneIn(10)) {
        ReleaseSnapshots();
        Reopen(options);
      }
      Check();
    }
    ReleaseSnapshots();
    ASSERT_OK(CompactAll());
    EXPECT_EQ(0, Stat("merged-files"));
    CheckFiles();
    Check();
    EXPECT_EQ(0, Ticker(DELTA_GC_FAILED));
  }
}

// Writers, flushes and readers run beside jobs, whose edits share the MANIFEST
// with those of flushes.
TEST_F(DBDeltaJobsTest, JobsRunBesideWritersAndReaders) {
  Options options = AutoOptions();
  options.max_background_jobs = 8;
  DestroyAndReopen(options);
  constexpr int kThreads = 3;
  constexpr uint32_t kKeys = 50;
  constexpr int kRounds = 40;
  // Each key has these values one after the other. No two are the same.
  std::vector<std::string> history;
  std::unordered_map<std::string, int> round_of;
  const auto is_put = [](int round) { return round % 13 == 12; };
  const auto put_of = [](int round) { return "put" + std::to_string(round); };
  for (int round = 0; round < kRounds; ++round) {
    history.push_back(is_put(round) ? put_of(round)
                      : round == 0
                          ? std::to_string(round)
                          : history.back() + "," + std::to_string(round));
    round_of[history.back()] = round;
  }
  ASSERT_EQ(kRounds, round_of.size());
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  // Each thread appends numbers to its own keys.
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      // The other threads also end if this one fails.
      const Defer end([&running] { --running; });
      for (int round = 0; round < kRounds; ++round) {
        for (uint32_t i = 0; i < kKeys; ++i) {
          const std::string key =
              KeyOf(i * kThreads + static_cast<uint32_t>(t));
          ASSERT_OK(is_put(round) ? db_->Put(WriteOptions(), key, put_of(round))
                                  : db_->Merge(WriteOptions(), key,
                                               std::to_string(round)));
        }
        ASSERT_OK(db_->Flush(FlushOptions()));
      }
    });
  }
  threads.emplace_back([&] {
    while (running > 0) {
      ASSERT_OK(CompactAll());
    }
  });
  threads.emplace_back([&] {
    // Returns the round after which a key has the value; -1 if it never has.
    const auto find_round = [&round_of](const std::string& value) {
      const auto found = round_of.find(value);
      return found == round_of.end() ? -1 : found->second;
    };
    bool is_last = false;
    while (!is_last) {
      is_last = running == 0;
      // Every read finds a value of its key while jobs replace files. A Get
      // finds no older value than the iterator, which is older than the Get.
      const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
      size_t keys = 0;
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        ++keys;
        const std::string of_iter = iter->value().ToString();
        const int round = find_round(of_iter);
        ASSERT_GE(round, is_last ? kRounds - 1 : 0)
            << iter->key().ToString() << " " << of_iter;
        std::string value;
        ASSERT_OK(db_->Get(ReadOptions(), iter->key(), &value));
        ASSERT_GE(find_round(value), round)
            << iter->key().ToString() << " " << value;
      }
      ASSERT_OK(iter->status());
      if (is_last) {
        ASSERT_EQ(kKeys * kThreads, keys);
      }
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (uint32_t i = 0; i < kKeys * kThreads; ++i) {
    state_[KeyOf(i)] = history.back();
  }
  Check();
  ASSERT_OK(CompactAll());
  CheckFiles();
  Check();
  EXPECT_EQ(0, Ticker(DELTA_GC_FAILED));
  Reopen(options);
  Check();
}

TEST_F(DBDeltaJobsTest, FilterRemovesOperands) {
  const XFilter filter;
  Options options = DeltaOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  DoMerge(KeyOf(1), "a");
  DoMerge(KeyOf(2), "b");
  ASSERT_OK(Flush());
  ASSERT_OK(Merge(KeyOf(1), "x1"));
  DoMerge(KeyOf(2), "c");
  ASSERT_OK(Merge(KeyOf(3), "x2"));
  ASSERT_OK(Flush());
  ASSERT_OK(CompactAll());
  Check();
  CheckFiles();
}

// A job that fails changes nothing, and can be repeated.
TEST_F(DBDeltaJobsTest, FailedJobChangesNothing) {
  for (const char* point :
       {"DeltaMergeJob::Run:Merged", kBeforeMergeEdit, kBeforeCollectionEdit}) {
    SCOPED_TRACE(point);
    const Options options = DeltaOptions();
    MakeTwoFlushes(options);
    DoPut(KeyOf(1), "put");
    std::atomic<uint64_t> failures{0};
    FailJobsAt(point, &failures);
    ASSERT_TRUE(CompactAll().IsNoSpace());
    DisableCallBacks();
    EXPECT_EQ(1, failures);
    EXPECT_EQ(1, Ticker(DELTA_GC_FAILED));
    EXPECT_TRUE(JobsAreIdle());
    CheckFiles();
    Check();
    CompactAllAndCheck();
    CheckFiles();
    Reopen(options);
    Check();
  }
}

// A background job that fails is tried again after a while, and no writer waits
// for it.
TEST_F(DBDeltaJobsTest, FailedBackgroundJobIsTriedAgainLater) {
  Options options = AutoOptions();
  DestroyAndReopen(options);
  std::atomic<uint64_t> failures{0};
  FailJobsAt(kBeforeMergeEdit, &failures);
  for (int i = 0; i < 6; ++i) {
    FlushOperands(0, 10);
  }
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_GT(failures, 0);
  EXPECT_EQ(6, Stat("flushed-files"));
  Check();
  DisableCallBacks();
  ASSERT_OK(CompactAll());
  EXPECT_EQ(0, Stat("flushed-files"));
  // After a success, the next job runs without a delay.
  for (int i = 0; i < 4; ++i) {
    FlushOperands(0, 10);
  }
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(0, Stat("flushed-files"));
  Check();
}

// While the first partition fails, flushed files are merged without a delay.
TEST_F(DBDeltaJobsTest, FailedCollectionHoldsNoMergeBack) {
  Options options = AutoOptions();
  DestroyAndReopen(options);
  std::atomic<uint64_t> failures{0};
  FailJobsAt(kBeforeCollectionEdit, &failures);
  // The merged file is large enough for the first partition.
  FlushAndRunJobs(DeltaPicker::kMaxFlushed, 0, 100, /*size=*/50);
  ASSERT_LT(0, failures);
  FlushAndRunJobs(2 * DeltaPicker::kMaxFlushed, 0, 10);
  EXPECT_EQ(0, Stat("flushed-files"));
  EXPECT_EQ(3, Stat("merged-files"));
  EXPECT_EQ(3, Ticker(DELTA_MERGES));
  EXPECT_EQ(0, Stat("buckets"));
  EXPECT_EQ(failures, Ticker(DELTA_GC_FAILED));
  CheckFiles();
  Check();
  DisableCallBacks();
  CompactAllAndCheck();
}

// While merges fail, merged files are collected without a delay.
TEST_F(DBDeltaJobsTest, FailedMergeHoldsNoCollectionBack) {
  Options options = AutoOptions();
  options.delta_max_buckets = 4096;  // so that no collection is due at first
  DestroyAndReopen(options);
  FlushAndRunJobs(DeltaPicker::kMaxFlushed, 0, 100, /*size=*/50);
  ASSERT_EQ(1, Stat("merged-files"));
  ASSERT_EQ(0, Stat("buckets"));
  std::atomic<uint64_t> failures{0};
  FailJobsAt(kBeforeMergeEdit, &failures);
  FlushAndRunJobs(DeltaPicker::kMaxFlushed, 0, 10);
  ASSERT_LT(0, failures);
  ASSERT_OK(db_->SetOptions({{"delta_max_buckets", "8"}}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(DeltaPicker::kMaxFlushed, Stat("flushed-files"));
  EXPECT_EQ(0, Stat("merged-files"));
  EXPECT_LT(0, Stat("buckets"));
  EXPECT_EQ(failures, Ticker(DELTA_GC_FAILED));
  CheckFiles();
  Check();
  DisableCallBacks();
  ASSERT_OK(CompactAll());
  EXPECT_EQ(0, Stat("flushed-files"));
  Check();
}

// A damaged block stops the collections of its own bucket only, and slows no
// write down.
TEST_F(DBDeltaJobsTest, DamagedBlockStopsOnlyItsBucket) {
  Options options = DamageOptions();
  options.soft_pending_compaction_bytes_limit = 1 << 20;
  const uint64_t num_buckets = MakeBuckets(options, /*min_buckets=*/4);
  // The file with the lowest number has the first bucket.
  const std::string damaged = FirstDeltaFile();
  const std::string contents = Damage(damaged, {20});
  options.disable_auto_compactions = false;
  options.statistics = CreateDBStatistics();
  std::atomic<bool> first_is_picked{false};
  EnableCallBack("DBStrata::BackgroundDeltaCollection::Write:Begin",
                 [&](void* arg) {
                   const auto* plan = static_cast<DeltaGcJob::Plan*>(arg);
                   if (plan->begin.empty()) {
                     first_is_picked = true;
                   }
                 });
  Reopen(options);
  uint64_t failed = 0;
  for (int i = 0; i < 120; ++i) {
    FlushOperands(0, kBucketKeys, /*size=*/30);
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    if (i == 20) {
      ASSERT_TRUE(first_is_picked);
      failed = Ticker(DELTA_GC_FAILED);
      first_is_picked = false;
    }
  }
  // The run of buckets, then the bucket itself. The block may have operands of
  // more than one bucket.
  EXPECT_LE(1, failed);
  EXPECT_EQ(failed, Ticker(DELTA_GC_FAILED));
  EXPECT_FALSE(first_is_picked);
  EXPECT_LT(10 * num_buckets, Ticker(DELTA_BUCKETS_COLLECTED));
  // Files pile up for the damaged bucket.
  EXPECT_LT(DeltaPicker::kSlowdownMerged, Stat("merged-files"));
  CheckWritesAreNotSlowedDown();
  // CompactRange() tries all buckets, and says what it cannot read.
  CheckCompactionTells(damaged);
  RestoreAndCheck(options, damaged, contents);
}

// Two damaged buckets are both found, and jobs go on to collect the others.
TEST_F(DBDeltaJobsTest, DamagedBlocksStopOnlyTheirBuckets) {
  Options options = DamageOptions();
  const uint64_t num_buckets = MakeBuckets(options, /*min_buckets=*/12);
  const std::string damaged = FirstDeltaFile();
  const std::string contents = Damage(damaged, {20, 25000});
  options.disable_auto_compactions = false;
  options.statistics = CreateDBStatistics();
  Reopen(options);
  uint64_t failed = 0;
  for (int i = 0; i < 60; ++i) {
    FlushOperands(0, kBucketKeys, /*size=*/30);
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    if (i == 30) {
      failed = Ticker(DELTA_GC_FAILED);
    }
  }
  EXPECT_LE(2, failed);
  EXPECT_EQ(failed, Ticker(DELTA_GC_FAILED));
  const size_t num_left = NumBucketsWithAtLeast(5);
  EXPECT_LE(2, num_left);
  EXPECT_LE(num_left, num_buckets / 2);
  RestoreAndCheck(options, damaged, contents);
}

// A bucket that writes seldom reach takes files in although another one keeps
// them.
TEST_F(DBDeltaJobsTest, ColdBucketsAreCollectedBesideADamagedOne) {
  Options options = DamageOptions();
  options.soft_pending_compaction_bytes_limit = 1 << 20;
  MakeBuckets(options, /*min_buckets=*/1);
  const std::string damaged = FirstDeltaFile();
  const std::string contents = Damage(damaged, {20});
  options.disable_auto_compactions = false;
  Reopen(options);
  for (int i = 0; i < 240; ++i) {
    DoMerge(KeyOf(0), "x");
    FlushOperands(kBucketKeys - 50, kBucketKeys, /*size=*/30);
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
  }
  EXPECT_LT(DeltaPicker::kSlowdownMerged, Stat("merged-files"));
  const size_t num_left = NumBucketsWithAtLeast(DeltaPicker::kMaxMerged + 1);
  EXPECT_LE(1, num_left);
  EXPECT_LE(num_left, 4);
  CheckWritesAreNotSlowedDown();
  RestoreAndCheck(options, damaged, contents);
}

// CompactRange() collects all that it can, and then says what it cannot read.
TEST_F(DBDeltaJobsTest, CompactRangeGoesOnBehindDamage) {
  Options options = DamageOptions();
  const uint64_t num_buckets = MakeBuckets(options, /*min_buckets=*/12);
  const std::string damaged = FirstDeltaFile();
  const std::string contents = Damage(damaged, {20, 25000});
  options.statistics = CreateDBStatistics();
  Reopen(options);
  FlushOperands(0, kBucketKeys, /*size=*/30);
  for (int i = 0; i < 2; ++i) {
    CheckCompactionTells(damaged);
    EXPECT_TRUE(JobsAreIdle());
    EXPECT_EQ(0, Stat("flushed-files"));
    EXPECT_EQ(1, Stat("merged-files"));
    const size_t num_left = NumBucketsWithAtLeast(1);
    EXPECT_LE(2, num_left);
    EXPECT_LE(num_left, num_buckets / 2);
  }
  RestoreAndCheck(options, damaged, contents);
}

// A merged file that cannot be opened stops the buckets that need it, without a
// job that fails. The jobs of other buckets do not open it.
TEST_F(DBDeltaJobsTest, UnreadableFileStopsOnlyItsBuckets) {
  Options options = DamageOptions();
  const uint64_t num_buckets = MakeBuckets(options, /*min_buckets=*/12);
  ASSERT_OK(SetAutoJobs(true));
  FlushAndRunJobs(DeltaPicker::kMaxFlushed, 0, kBucketKeys / 4, /*size=*/1);
  ASSERT_EQ(1, Stat("merged-files"));
  const size_t num_overlapped = NumBucketsWithAtLeast(1);
  // Hardly a bucket has taken it in.
  ASSERT_LE(num_buckets - 2, num_overlapped);
  std::string unreadable;
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    Family()->current()->storage_info()->delta()->ForEachFile(
        [&](const DeltaVersion::FilePtr& file) {
          if (file->description().tier == DeltaFileDescription::Tier::kMerged) {
            unreadable = DeltaFileName(dbname_, file->number());
          }
        });
  }
  uint64_t size = 0;
  ASSERT_OK(env_->GetFileSize(unreadable, &size));
  const std::string contents =
      Damage(unreadable, {static_cast<size_t>(size) - 1});
  options.statistics = CreateDBStatistics();
  Reopen(options);
  FlushOperands(0, kBucketKeys, /*size=*/30);
  for (int i = 0; i < 2; ++i) {
    CheckCompactionTells(unreadable);
    const size_t num_left = NumBucketsWithAtLeast(1);
    EXPECT_LE(2, num_left);
    EXPECT_LT(num_left, num_buckets / 2);
  }
  EXPECT_EQ(0, Ticker(DELTA_GC_FAILED));
  RestoreAndCheck(options, unreadable, contents);
}

// The first partition takes all merged files, so a damaged one stops it. That
// holds no merge back, and slows no write down.
TEST_F(DBDeltaJobsTest, DamageBeforeTheFirstPartition) {
  constexpr uint32_t kKeys = 100;
  Options options = DamageOptions();
  options.soft_pending_compaction_bytes_limit = 1 << 20;
  options.delta_max_buckets = 4096;  // so that it is not due at once
  options.disable_auto_compactions = false;
  DestroyAndReopen(options);
  FlushAndRunJobs(DeltaPicker::kMaxFlushed, 0, kKeys, /*size=*/30);
  ASSERT_EQ(1, Stat("merged-files"));
  ASSERT_EQ(0, Stat("buckets"));
  const std::string damaged =
      dbname_ + "/" + FilesIn(dbname_, kDeltaFile).back();
  const std::string contents = Damage(damaged, {20});
  options.statistics = CreateDBStatistics();
  Reopen(options);
  FlushAndRunJobs(120, 0, kKeys, /*size=*/30);
  EXPECT_LE(1, Ticker(DELTA_GC_FAILED));
  EXPECT_EQ(0, Stat("buckets"));
  EXPECT_LT(DeltaPicker::kSlowdownMerged, Stat("merged-files"));
  CheckWritesAreNotSlowedDown();
  {
    const InstrumentedMutexLock lock(dbfull()->mutex());
    const DeltaJobState& jobs = Family()->delta_store()->jobs();
    EXPECT_TRUE(jobs.is_partition_damaged());
    EXPECT_TRUE(jobs.damage().empty());
  }
  CheckCompactionTells(damaged);
  RestoreAndCheck(options, damaged, contents);
}

// With verify_output_flags a job reads what it has written, as compactions do.
// If that is damaged, the job fails, and its inputs stay.
TEST_F(DBDeltaJobsTest, VerifyOutputFlagsKeepDamagedFilesOut) {
  using Flags = VerifyOutputFlags;
  for (const char* point : {"DeltaMergeJob::Finish:Verify",
                            "DeltaGcJob::Writer::FinishFile:Verify"}) {
    for (const Flags flag :
         {Flags::kVerifyBlockChecksum, Flags::kVerifyIteration,
          Flags::kVerifyFileChecksum}) {
      SCOPED_TRACE(point);
      SCOPED_TRACE(static_cast<uint32_t>(flag));
      Options options = DeltaOptions();
      options.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
      MakeTwoFlushes(options);
      ASSERT_OK(
          db_->SetOptions({{"verify_output_flags",
                            std::to_string(static_cast<uint32_t>(
                                flag | Flags::kEnableForLocalCompaction))}}));
      std::atomic<int> num_damaged{0};
      EnableCallBack(point, [&](void* arg) {
        const std::string& path = *static_cast<std::string*>(arg);
        std::string contents;
        ASSERT_OK(ReadFileToString(env_, path, &contents));
        contents[2] ^= 1;
        ASSERT_OK(WriteStringToFile(env_, contents, path));
        ++num_damaged;
      });
      const Status s = CompactAll();
      EXPECT_TRUE(s.IsCorruption()) << s.ToString();
      DisableCallBacks();
      EXPECT_LT(0, num_damaged);
      Check();
      CompactAllAndCheck();
      CheckFiles();
    }
  }
}

TEST_F(DBDeltaJobsTest, JobsSucceedAfterFailedFileWrites) {
  const Options options = FaultOptions();
  for (const char* point : {"DBStrata::BackgroundDeltaMerge::Write:Begin",
                            "DeltaMergeJob::Finish:Verify", kBeforeMergeEdit,
                            "DBStrata::BackgroundDeltaCollection::Write:Begin",
                            kBeforeCollectionEdit}) {
    SCOPED_TRACE(point);
    MakeTwoFlushes(options);
    EnableCallBack(point, [&](void*) { FailFileSystem(); });
    ASSERT_NOK(CompactAll());
    DisableCallBacks();
    RepairFileSystem();
    ASSERT_OK(dbfull()->Resume());
    Check();
    CompactAllAndCheck();
    Reopen(options);
    CheckFiles();
    Check();
  }
  LeaveFaultyFileSystem();
}

// After a failed write the MANIFEST may or may not have the edit of the job.
// Either way nothing is lost, and the next job succeeds.
TEST_F(DBDeltaJobsTest, JobsSucceedAfterFailedManifestWrites) {
  const Options options = FaultOptions();
  for (const bool is_merge : {true, false}) {
    for (const bool reopens : {true, false}) {
      SCOPED_TRACE(is_merge);
      SCOPED_TRACE(reopens);
      MakeTwoFlushes(options);
      EnableCallBack(is_merge ? kBeforeMergeEdit : kBeforeCollectionEdit,
                     [&](void*) {
                       SyncPoint::GetInstance()->SetCallBack(
                           "VersionSet::LogAndApply:WriteManifest",
                           [&](void*) { FailFileSystem(); });
                     });
      ASSERT_NOK(CompactAll());
      DisableCallBacks();
      EXPECT_GT(dbfull()->TEST_GetFilesToQuarantine().size(), 0);
      RepairFileSystem();
      // Nothing is written until the MANIFEST is known to be good.
      EXPECT_NOK(Put(KeyOf(0), "refused"));
      if (!reopens) {
        ASSERT_OK(dbfull()->Resume());
        Check();
        CompactAllAndCheck();
      }
      Reopen(options);
      CheckFiles();
      Check();
    }
  }
  LeaveFaultyFileSystem();
}

TEST_F(DBDeltaJobsTest, CanceledJobChangesNothing) {
  for (const char* point : {kBeforeMergeEdit, kBeforeCollectionEdit}) {
    SCOPED_TRACE(point);
    MakeTwoFlushes(DeltaOptions());
    std::atomic<bool> canceled{false};
    CompactRangeOptions options;
    options.canceled = &canceled;
    EnableCallBack(point, [&](void*) { canceled = true; });
    EXPECT_TRUE(CompactAll(options).IsManualCompactionPaused());
    DisableCallBacks();
    EXPECT_TRUE(JobsAreIdle());
    EXPECT_EQ(0, Ticker(DELTA_GC_FAILED));
    CheckFiles();
    Check();

    // DisableManualCompaction() cancels all manual jobs.
    std::thread disabling;
    EnableCallBack(point, [&](void*) {
      disabling = std::thread([this] { dbfull()->DisableManualCompaction(); });
      while (!CompactAll().IsManualCompactionPaused()) {
        std::this_thread::yield();
      }
    });
    EXPECT_TRUE(CompactAll().IsManualCompactionPaused());
    disabling.join();
    DisableCallBacks();
    dbfull()->EnableManualCompaction();
    CompactAllAndCheck();
    CheckFiles();
  }
}

TEST_F(DBDeltaJobsTest, NoJobStartsDuringAPause) {
  DestroyAndReopen(DeltaOptions());
  for (int i = 0; i < 4; ++i) {
    FlushOperands(0, 10);
  }
  std::atomic<int> jobs{0};
  EnableCallBack("DBStrata::StartDeltaJob", [&](void*) { ++jobs; });
  ASSERT_OK(dbfull()->PauseBackgroundWork());
  // A merge is due. Without the pause this call would start it before it
  // returns, as ContinueBackgroundWork() does.
  ASSERT_OK(SetAutoJobs(true));
  EXPECT_EQ(0, jobs);
  EXPECT_EQ(4, Stat("flushed-files"));
  ASSERT_OK(dbfull()->ContinueBackgroundWork());
  EXPECT_GT(jobs, 0);
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(0, Stat("flushed-files"));
  Check();
}

// The thread that has paused background work compacts all keys, with and
// without delta files, and also if another pause has come. No other job begins.
TEST_F(DBDeltaJobsTest, CompactRangeRunsDuringAPause) {
  MakeTwoFlushes(DeltaOptions());
  std::atomic<int> jobs{0};
  EnableCallBack("DBStrata::StartDeltaJob", [&](void*) { ++jobs; });
  CallDuringAPause(db_.get(), [this] {
    EXPECT_OK(CompactAll());
    EXPECT_EQ(0, Stat("flushed-files"));
    EXPECT_EQ(0, Stat("merged-files"));
    EXPECT_OK(CompactAll());
    EXPECT_OK(db_->PauseBackgroundWork());
    EXPECT_OK(CompactAll());
    EXPECT_OK(db_->ContinueBackgroundWork());
    EXPECT_OK(CompactAll());
  });
  EXPECT_EQ(0, jobs);
  DisableCallBacks();
  Check();
  CheckFiles();
  // There are no delta files.
  DestroyAndReopen(DeltaOptions());
  state_.clear();
  DoPut(KeyOf(0), "value");
  ASSERT_OK(Flush());
  CallDuringAPause(db_.get(), [this] { EXPECT_OK(CompactAll()); });
  Check();
}

// PauseBackgroundWork() waits for the job that is running.
TEST_F(DBDeltaJobsTest, PauseWaitsForARunningJob) {
  Options options = AutoOptions();
  DestroyAndReopen(options);
  SyncPoint::GetInstance()->LoadDependency(
      {{"DBStrata::BackgroundDeltaMerge::Write:Begin",
        "DBDeltaJobsTest::PauseWaits"}});
  SyncPoint::GetInstance()->EnableProcessing();
  for (int i = 0; i < 4; ++i) {
    FlushOperands(0, 10);
  }
  TEST_SYNC_POINT("DBDeltaJobsTest::PauseWaits");
  ASSERT_OK(dbfull()->PauseBackgroundWork());
  EXPECT_TRUE(JobsAreIdle());
  EXPECT_EQ(0, Stat("flushed-files"));
  ASSERT_OK(dbfull()->ContinueBackgroundWork());
  Check();
}

// PauseBackgroundWork() waits for a job that CompactRange() is running. The
// call goes on during the pause.
TEST_F(DBDeltaJobsTest, PauseWaitsForARunningManualJob) {
  MakeTwoFlushes(DeltaOptions());
  std::atomic<bool> waits{false};
  std::atomic<bool> is_paused{false};
  std::thread compacting;
  std::thread pausing;
  {
    HeldPoint job("DBStrata::BackgroundDeltaMerge::Write:Begin");
    EnableCallBack("DBStrata::HasUnpausedWork:Waits",
                   [&](void*) { waits = true; });
    compacting = std::thread([this] { EXPECT_OK(CompactAll()); });
    EXPECT_TRUE(job.WaitUntilReached());
    pausing = std::thread([&] {
      EXPECT_OK(db_->PauseBackgroundWork());
      is_paused = true;
    });
    EXPECT_TRUE(WaitUntil([&] { return waits || is_paused; }));
    EXPECT_FALSE(is_paused);
  }
  pausing.join();
  compacting.join();
  EXPECT_EQ(0, Stat("flushed-files"));
  EXPECT_EQ(0, Stat("merged-files"));
  ASSERT_OK(db_->ContinueBackgroundWork());
  Check();
}

// AbortAllCompactions() waits for a job of the background, which ends without
// an edit. Afterwards no filter is asked, and no Version changes, until the
// last of the calls of ResumeAllCompactions().
TEST_F(DBDeltaJobsTest, AbortWaitsForAJobOfTheBackground) {
  for (const char* const point :
       {"DBStrata::BackgroundDeltaMerge::Write:Begin",
        "DBStrata::BackgroundDeltaMerge::RunMarked:BeforeEdit"}) {
    SCOPED_TRACE(point);
    CountingFilter filter;
    Options options = AutoOptions();
    options.compaction_filter = &filter;
    DestroyAndReopen(options);
    state_.clear();
    std::atomic<bool> waits{false};
    std::atomic<bool> is_over{false};
    {
      HeldPoint job(point);
      EnableCallBack("DBStrata::HasAbortedJobs:Waits",
                     [&](void*) { waits = true; });
      for (int i = 0; i < 4; ++i) {
        FlushOperands(0, 10);
      }
      ASSERT_TRUE(job.WaitUntilReached());
      std::thread aborting([&] {
        db_->AbortAllCompactions();
        is_over = true;
      });
      EXPECT_TRUE(WaitUntil([&] { return waits || is_over; }));
      EXPECT_FALSE(is_over);
      job.Release();
      aborting.join();
    }
    const auto version_number = [this] {
      InstrumentedMutexLock lock(dbfull()->mutex());
      return Family()->current()->GetVersionNumber();
    };
    const int num_calls = filter.num_calls();
    const uint64_t number = version_number();
    db_->AbortAllCompactions();
    db_->ResumeAllCompactions();
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
    EXPECT_EQ(num_calls, filter.num_calls());
    EXPECT_EQ(number, version_number());
    EXPECT_EQ(4, Stat("flushed-files"));
    db_->ResumeAllCompactions();
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    EXPECT_EQ(0, Stat("flushed-files"));
    Check();
    Close();  // while there is the filter
  }
}

// While a collection has all buckets, other calls of CompactRange() look once
// for something to do, and then sleep until it ends. They do not wake each
// other.
TEST_F(DBDeltaJobsTest, CompactRangesSleepWhileACollectionRuns) {
  MakeTwoFlushes(DeltaOptions());
  std::atomic<int> picks{0};
  EnableCallBack("DBStrata::BackgroundDeltaCollection::Pick:Begin",
                 [&](void*) { ++picks; });
  std::atomic<bool> may_go_on{false};
  const auto is_running =
      EnableCallBackOnce("DBStrata::BackgroundDeltaCollection::Write:Begin",
                         [&](void*) { may_go_on.wait(false); });
  std::vector<std::thread> threads;
  const auto start = [&] {
    threads.emplace_back([this] { EXPECT_OK(CompactAll()); });
  };
  start();
  while (!is_running->load()) {
    std::this_thread::yield();
  }
  start();
  start();
  while (picks < 3) {
    std::this_thread::yield();
  }
  Env::Default()->SleepForMicroseconds(300 * 1000);
  EXPECT_EQ(3, picks);
  may_go_on = true;
  may_go_on.notify_all();
  for (std::thread& thread : threads) {
    thread.join();
  }
  DisableCallBacks();
  EXPECT_TRUE(JobsAreIdle());
  EXPECT_EQ(0, Stat("merged-files"));
  CheckFiles();
  Check();
}

// CompactRange() leaves operands that come after it has begun to other jobs,
// and does not wait for these: there may always be one.
TEST_F(DBDeltaJobsTest, CompactRangeEndsBesideJobsOfLaterOperands) {
  Options options = DeltaOptions();
  options.max_background_jobs = 8;
  DestroyAndReopen(options);
  FlushOperands(0, 100, /*size=*/100);
  ASSERT_OK(CompactAll());
  FlushOperands(0, 100);
  std::atomic<bool> holds_next{false};
  std::atomic<bool> is_held{false};
  std::atomic<bool> may_go_on{false};
  EnableCallBack("DBStrata::BackgroundDeltaCollection::Write:Begin",
                 [&](void*) {
                   if (holds_next.exchange(false)) {
                     is_held = true;
                     may_go_on.wait(false);
                   }
                 });
  EnableCallBackOnce("DBStrata::BackgroundDeltaCollection::RunMarked:AfterEdit",
                     [&](void*) {
                       for (int i = 0; i < 4; ++i) {
                         FlushOperands(0, 100, /*size=*/100);
                       }
                       holds_next = true;
                       EXPECT_OK(SetAutoJobs(true));
                       EXPECT_TRUE(WaitUntil([&] { return is_held.load(); }));
                     });
  std::atomic<bool> is_over{false};
  std::thread compaction([&] {
    EXPECT_OK(CompactAll());
    is_over = true;
  });
  EXPECT_TRUE(WaitUntil([&] { return is_over.load(); }));
  EXPECT_TRUE(is_held);
  may_go_on = true;
  may_go_on.notify_all();
  compaction.join();
  DisableCallBacks();
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  CheckFiles();
  Check();
}

// A collection that takes the last operands leaves the buckets to a collection
// that runs beside it.
TEST_F(DBDeltaJobsTest, BucketsOfAnotherCollectionAreNotDropped) {
  DestroyAndReopen(DeltaOptions());
  FlushOperands(0, 100, /*size=*/100);
  ASSERT_OK(CompactAll());
  EXPECT_GT(Stat("buckets"), 1);
  DoDeleteRange(KeyOf(0), KeyOf(kNumKeys));
  ASSERT_OK(Flush());
  DeltaJobState& jobs = Family()->delta_store()->jobs();
  DeltaJobState::Handle other;
  const auto has_begun = EnableCallBackOnce(kBeforeCollectionEdit, [&](void*) {
    const InstrumentedMutexLock lock(dbfull()->mutex());
    other = jobs.BeginCollection(DeltaJobState::Collection());
  });
  const auto has_ended = EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:AfterEdit", [&](void*) {
        EXPECT_EQ(0, Stat("operands"));
        EXPECT_GT(Stat("buckets"), 1);
        const InstrumentedMutexLock lock(dbfull()->mutex());
        jobs.EndCollection(other);
      });
  ASSERT_OK(CompactAll());
  EXPECT_TRUE(*has_begun && *has_ended);
  DisableCallBacks();
  // The next collection was alone.
  EXPECT_EQ(0, Stat("buckets"));
  CheckFiles();
  Check();
}

TEST_F(DBDeltaJobsTest, CloseEndsARunningJob) {
  for (const bool is_merge : {true, false}) {
    SCOPED_TRACE(is_merge);
    Options options = DeltaOptions();
    DestroyAndReopen(options);
    state_.clear();
    for (int i = 0; i < 4; ++i) {
      FlushOperands(0, 100, /*size=*/100);
    }
    if (!is_merge) {
      // The flushed files are merged, and the collection is given up.
      EnableCallBack(kBeforeCollectionEdit, [](void* arg) {
        *static_cast<Status*>(arg) = Status::Incomplete("test");
      });
      ASSERT_TRUE(CompactAll().IsIncomplete());
      DisableCallBacks();
      ASSERT_EQ(1, Stat("merged-files"));
    }
    // The job continues when the DB is being closed.
    const char* const begin =
        is_merge ? "DBStrata::BackgroundDeltaMerge::Write:Begin"
                 : "DBStrata::BackgroundDeltaCollection::Write:Begin";
    SyncPoint::GetInstance()->LoadDependency(
        {{"BackgroundJobScheduler::Work:Delta", "DBDeltaJobsTest::Close"},
         {"DBImpl::~DBImpl:WaitJob", begin}});
    SyncPoint::GetInstance()->EnableProcessing();
    ASSERT_OK(SetAutoJobs(true));
    TEST_SYNC_POINT("DBDeltaJobsTest::Close");
    Close();
    DisableCallBacks();
    Reopen(options);
    Check();
    CompactAllAndCheck();
    CheckFiles();
  }
}

TEST_F(DBDeltaJobsTest, JobOfADroppedFamilyEnds) {
  for (const char* point : {kBeforeMergeEdit, kBeforeCollectionEdit}) {
    SCOPED_TRACE(point);
    const Options options = DeltaOptions();
    ColumnFamilyHandle* handle = nullptr;
    ASSERT_NO_FATAL_FAILURE(OpenWithOtherFamily(options, &handle));
    EnableCallBack(point,
                   [&](void*) { ASSERT_OK(db_->DropColumnFamily(handle)); });
    EXPECT_TRUE(
        db_->CompactRange(CompactRangeOptions(), handle, nullptr, nullptr)
            .IsColumnFamilyDropped());
    DisableCallBacks();
    // The family can be read as long as there is a handle.
    std::string value;
    ASSERT_OK(db_->Get(ReadOptions(), handle, KeyOf(1), &value));
    EXPECT_EQ("value,value", value);
    ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
    CheckFiles();
    Check();
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    Reopen(options);
    Check();
  }
}

// The application may let go of a family that it has dropped, and close the DB,
// while another thread is in CompactRange().
TEST_F(DBDeltaJobsTest, CallOutlivesTheHandleOfADroppedFamily) {
  for (const char* point : {kBeforeMergeEdit, kBeforeCollectionEdit}) {
    SCOPED_TRACE(point);
    const Options options = DeltaOptions();
    ColumnFamilyHandle* handle = nullptr;
    ASSERT_NO_FATAL_FAILURE(OpenWithOtherFamily(options, &handle));
    EnableCallBack(point, [&](void*) {
      ASSERT_OK(db_->DropColumnFamily(handle));
      ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
    });
    EXPECT_TRUE(
        db_->CompactRange(CompactRangeOptions(), handle, nullptr, nullptr)
            .IsColumnFamilyDropped());
    DisableCallBacks();
    // The end of the call has deleted the files.
    CheckFiles();
    Check();
  }
}

// The files of a job are deleted at its end if the family is dropped while the
// edit is in the queue for the MANIFEST.
TEST_F(DBDeltaJobsTest, FilesWithoutAnEditOfADroppedFamilyAreDeleted) {
  for (const bool is_merge : {false, true}) {
    for (const bool in_group : {false, true}) {
      SCOPED_TRACE(is_merge);
      SCOPED_TRACE(in_group);
      const Options options = DeltaOptions();
      ColumnFamilyHandle* handle = nullptr;
      ASSERT_NO_FATAL_FAILURE(OpenWithOtherFamily(options, &handle));
      DropBeforeEdit drop(db_.get(), handle,
                          is_merge ? kBeforeMergeEdit : kBeforeCollectionEdit,
                          in_group);
      std::set<uint64_t> before;
      EnableCallBackOnce(
          is_merge ? "DBStrata::BackgroundDeltaMerge::Write:Begin"
                   : "DBStrata::BackgroundDeltaCollection::Write:Begin",
          [&](void*) { before = FilesOnDisk(kDeltaFile); });
      EXPECT_TRUE(
          db_->CompactRange(CompactRangeOptions(), handle, nullptr, nullptr)
              .IsColumnFamilyDropped());
      EXPECT_TRUE(drop.End());
      const std::set<uint64_t> after = FilesOnDisk(kDeltaFile);
      EXPECT_TRUE(std::includes(before.begin(), before.end(), after.begin(),
                                after.end()));
      std::string value;
      EXPECT_OK(db_->Get(ReadOptions(), handle, KeyOf(1), &value));
      EXPECT_EQ("value,value", value);
      ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
      CheckFiles();
      Check();
    }
  }
}

// With the smallest number of jobs, a merge of one family does not keep another
// one from collecting.
TEST_F(DBDeltaJobsTest, CollectionBeginsBesideAMergeOfAnotherFamily) {
  Options options = DeltaOptions();
  options.max_background_jobs = 2;
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_NO_FATAL_FAILURE(OpenWithOtherFamily(options, &handle));
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), handle, nullptr, nullptr));
  for (size_t i = 1; i < DeltaPicker::kMaxFlushed; ++i) {
    FlushOperands(0, 10);
  }
  {
    HeldPoint merge("DBStrata::BackgroundDeltaMerge::Write:Begin");
    std::atomic<int> num_collections{0};
    EnableCallBack("DBStrata::BackgroundDeltaCollection::TrySchedule",
                   [&](void*) { ++num_collections; });
    ASSERT_OK(SetAutoJobs(true));
    ASSERT_TRUE(merge.WaitUntilReached());
    EXPECT_EQ(0, num_collections);
    ASSERT_OK(db_->SetOptions(handle, {{"disable_auto_compactions", "false"}}));
    EXPECT_EQ(1, num_collections);
    merge.Release();
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
  }
  EXPECT_EQ(0, Stat("flushed-files"));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  Check();
}

// A family whose collections are always due leaves a turn to the others.
TEST_F(DBDeltaJobsTest, FamiliesTakeTurnsWithCollections) {
  Options options = DeltaOptions();
  options.max_background_jobs = 2;
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_NO_FATAL_FAILURE(OpenWithOtherFamily(options, &handle));
  ASSERT_OK(CompactAll());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), handle, nullptr, nullptr));
  std::vector<std::string> turns;  // guarded by the DB mutex
  {
    HeldPoint pick("DBStrata::BackgroundDeltaCollection::Pick:Begin");
    EnableCallBack(
        "DBStrata::BackgroundDeltaCollection::TrySchedule", [&](void* arg) {
          turns.push_back(static_cast<ColumnFamilyData*>(arg)->GetName());
        });
    ASSERT_OK(SetAutoJobs(true));
    ASSERT_TRUE(pick.WaitUntilReached());
    // Collections of both families are due when this one ends.
    ASSERT_OK(db_->SetOptions(handle, {{"disable_auto_compactions", "false"}}));
    ASSERT_OK(SetAutoJobs(true));
    pick.Release();
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
  }
  ASSERT_LE(3, turns.size());
  turns.resize(3);
  EXPECT_EQ((std::vector<std::string>{kDefaultColumnFamilyName, "other",
                                      kDefaultColumnFamilyName}),
            turns);
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  Check();
}

// A merge does not include files that are flushed while it runs.
TEST_F(DBDeltaJobsTest, MergeLeavesOutLaterFlushes) {
  Options options = AutoOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 3; ++i) {
    FlushOperands(0, 10);
  }
  std::atomic<bool> is_first{true};
  EnableCallBack("DBStrata::BackgroundDeltaMerge::Write:Begin", [&](void*) {
    if (is_first.exchange(false)) {
      std::thread([this] { FlushOperands(0, 10); }).join();
    }
  });
  FlushOperands(5, 15);
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  DisableCallBacks();
  EXPECT_EQ(1, Stat("flushed-files"));
  EXPECT_EQ(1, Stat("merged-files"));
  Check();
  ASSERT_OK(CompactAll());
  Check();
  Reopen(options);
  Check();
}

// If there are as many buckets as allowed, some are joined, and operands are
// folded into values.
TEST_F(DBDeltaJobsTest, BucketsOverTheLimitAreJoinedAndFolded) {
  Options options = DeltaOptions();
  options.delta_max_buckets = 4;
  DestroyAndReopen(options);
  std::atomic<int> folds{0};
  EnableCallBack("DBStrata::BackgroundDeltaCollection::Write:Begin",
                 [&](void* arg) {
                   folds += static_cast<DeltaGcJob::Plan*>(arg)->fold ? 1 : 0;
                 });
  for (int i = 0; i < 10; ++i) {
    FlushOperands(0, 150, /*size=*/100);
    ASSERT_OK(CompactAll());
    EXPECT_LE(Stat("buckets"), 4);
    Check();
  }
  EXPECT_GT(folds, 0);
  EXPECT_GT(Ticker(DELTA_OPERANDS_FOLDED), 0);
  CheckFiles();
  Reopen(options);
  Check();
}

// While the buckets have room, operands that are small compared with their
// values are not folded.
TEST_F(DBDeltaJobsTest, SmallOperandsOfLargeValuesAreNotFolded) {
  for (const uint64_t cache_size : {uint64_t{0}, uint64_t{1} << 20}) {
    Options options = DeltaOptions();
    options.delta_max_buckets = 4;
    options.delta_cache_size = cache_size;
    DestroyAndReopen(options);
    state_.clear();
    for (uint32_t i = 0; i < 150; ++i) {
      DoPut(KeyOf(i), std::string(4000, 'v'));
    }
    ASSERT_OK(Flush());
    std::atomic<int> folds_of_all{0};
    std::atomic<int> folds{0};
    EnableCallBack(
        "DBStrata::BackgroundDeltaCollection::Write:Begin", [&](void* arg) {
          const auto* const plan = static_cast<DeltaGcJob::Plan*>(arg);
          if (plan->fold) {
            ++(plan->min_fold_bytes == 0 ? folds_of_all : folds);
          }
        });
    uint64_t written = 0;
    for (uint32_t i = 0; i < 15; ++i) {
      FlushOperands(0, 150, /*size=*/20);
      // A few keys have more operand bytes.
      FlushOperands(i * 10, i * 10 + 10, /*size=*/200);
      written += 160;
      DoSnapshot();
      ASSERT_OK(CompactAll());
      Check();
      if (i % 4 == 3) {
        ReleaseSnapshots();
      }
    }
    ReleaseSnapshots();
    FlushOperands(0, 150, /*size=*/20);
    ASSERT_OK(CompactAll());
    Check();
    EXPECT_GT(folds_of_all, 0);
    EXPECT_GT(folds, 0);
    EXPECT_LE(Stat("buckets"), 4);
    EXPECT_GT(Stat("operands"), 0);
    EXPECT_GT(Ticker(DELTA_OPERANDS_FOLDED), 0);
    EXPECT_LT(Ticker(DELTA_OPERANDS_FOLDED), written);
    EXPECT_EQ(cache_size > 0, Ticker(DELTA_CACHE_HIT) > 0);
    CheckFiles();
    Reopen(options);
    Check();
  }
}

// Jobs have threads beside those of as many compactions as may ever run, and
// not only of the one that runs while none is behind.
TEST_F(DBDeltaJobsTest, JobsHaveThreadsBesideThoseOfCompactions) {
  ThreadCountEnv env(env_);
  const Defer close([this] {
    Close();
    last_options_.env = env_;
  });
  for (const bool has_map : {false, true}) {
    for (const bool has_deltas : {false, true}) {
      SCOPED_TRACE(testing::Message() << has_map << " " << has_deltas);
      Options options = DeltaOptions();
      options.env = &env;
      options.max_background_jobs = 8;
      options.enable_delta_separation = has_deltas;
      options.enable_blob_files = has_map;
      options.enable_blob_address_map = has_map;
      env.TakeNumLow();
      DestroyAndReopen(options);
      EXPECT_EQ(6 + (has_map ? 6 + 1 : 0) + (has_deltas ? 4 : 0),
                env.TakeNumLow());
      ASSERT_OK(db_->SetDBOptions({{"max_background_jobs", "16"}}));
      EXPECT_EQ(12 + (has_map ? 12 + 1 : 0) + (has_deltas ? 8 : 0),
                env.TakeNumLow());
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
