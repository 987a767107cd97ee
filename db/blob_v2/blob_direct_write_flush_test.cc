//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Which blob files of direct write a flush commits, while another flush of the
// same column family runs, and after a failure.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "db/blob/blob_file_partition_manager.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "rocksdb/listener.h"
#include "rocksdb/metadata.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A place in the code at which the first thread that comes has to wait.
class Gate {
 public:
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (has_arrival_) {
      return;
    }
    has_arrival_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, kTestPatience, [this] { return is_open_; });
  }

  bool WaitForArrival() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kTestPatience,
                             [this] { return has_arrival_; });
  }

  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_arrival_ = false;
  bool is_open_ = false;
};

bool IsBlobFile(const std::string& path) {
  uint64_t number = 0;
  FileType type = kWalFile;
  return ParseFileName(path.substr(path.find_last_of('/') + 1), &number,
                       &type) &&
         type == kBlobFile;
}

// A file system whose blob files cannot be synced, and so not be sealed, while
// `fails` is set.
class UnsealableFileSystem : public FileSystemWrapper {
 public:
  explicit UnsealableFileSystem(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}

  const char* Name() const override { return "UnsealableFileSystem"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    IOStatus s = target()->NewWritableFile(name, options, result, dbg);
    if (s.ok() && IsBlobFile(name)) {
      *result = std::make_unique<File>(std::move(*result), &fails);
    }
    return s;
  }

  std::atomic<bool> fails{false};

 private:
  class File : public FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<FSWritableFile>&& target,
         const std::atomic<bool>* sync_fails)
        : FSWritableFileOwnerWrapper(std::move(target)), fails_(sync_fails) {}

    IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
      return fails_->load() ? RetryableError() : target()->Sync(options, dbg);
    }
    IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
      return fails_->load() ? RetryableError() : target()->Fsync(options, dbg);
    }

   private:
    const std::atomic<bool>* const fails_;
  };
};

// Holds the first flush after it has chosen its memtables and before it asks
// for their blob files, and records which blob files each flush has committed.
class CommitListener : public EventListener {
 public:
  struct Commit {
    uint64_t oldest_blob_file_number = 0;
    std::vector<uint64_t> added_blob_files;
  };

  explicit CommitListener(Gate* gate) : gate_(gate) {}

  void OnFlushBegin(DB* /*db*/, const FlushJobInfo& /*info*/) override {
    gate_->Pass();
  }

  void OnFlushCompleted(DB* /*db*/, const FlushJobInfo& info) override {
    Commit commit;
    commit.oldest_blob_file_number = info.oldest_blob_file_number;
    for (const auto& addition : info.blob_file_addition_infos) {
      commit.added_blob_files.push_back(addition.blob_file_number);
    }
    std::lock_guard<std::mutex> lock(mutex_);
    commits_.push_back(commit);
  }

  std::vector<Commit> commits() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return commits_;
  }

 private:
  Gate* const gate_;
  mutable std::mutex mutex_;
  std::vector<Commit> commits_;
};

}  // namespace

class BlobDirectWriteFlushTest : public StrataDBTestBase {
 public:
  BlobDirectWriteFlushTest()
      : StrataDBTestBase("blob_direct_write_flush_test"),
        file_system_(
            std::make_shared<UnsealableFileSystem>(env_->GetFileSystem())),
        unsealable_env_(NewCompositeEnv(file_system_)) {}

  ~BlobDirectWriteFlushTest() override { Close(); }

  void TearDown() override {
    gate_.Open();
    StrataDBTestBase::TearDown();
  }

 protected:
  Options DirectWriteOptions() {
    Options options = CurrentOptions();
    options.enable_blob_files = true;
    options.enable_blob_direct_write = true;
    options.min_blob_size = 32;
    options.allow_concurrent_memtable_write = false;
    options.disable_auto_compactions = true;
    options.max_background_flushes = 2;
    options.max_write_buffer_number = 8;
    // Only Resume() recovers from an error.
    options.max_bgerror_resume_count = 0;
    return options;
  }

  // From here on, `gate_` holds the first thread at the sync point `place`, if
  // it is not nullptr, and the ends of flush jobs are counted.
  void BeginSchedule(const char* place) {
    SyncPoint* const sync_point = SyncPoint::GetInstance();
    if (place != nullptr) {
      sync_point->SetCallBack(place, [this](void*) { gate_.Pass(); });
    }
    sync_point->SetCallBack("DBImpl::BackgroundCallFlush:ContextCleanedUp",
                            [this](void*) { finished_.Add(); });
    sync_point->SetCallBack("DBImpl::AtomicFlushMemTablesToOutputFiles:WaitCV",
                            [this](void*) { waiting_to_install_.Add(); });
    sync_point->EnableProcessing();
  }

  // Makes an immutable memtable of what was written and queues its flush.
  Status StartFlush() {
    FlushOptions flush_options;
    flush_options.wait = false;
    flush_options.allow_write_stall = true;
    return db_->Flush(flush_options);
  }

  // Flushes a memtable with "older" and then one with "younger". The gate holds
  // the first flush until the second one has ended.
  // place: see BeginSchedule().
  // older_fails: sets fails_once_ for the rest of the first flush.
  void FlushYoungerFirst(const char* place, bool older_fails) {
    BeginSchedule(place);
    ASSERT_OK(Put("older", older_value_));
    ASSERT_OK(StartFlush());
    ASSERT_TRUE(gate_.WaitForArrival());
    ASSERT_OK(Put("younger", younger_value_));
    ASSERT_OK(StartFlush());
    ASSERT_TRUE(finished_.WaitFor(1));
    fails_once_ = older_fails;
    gate_.Open();
    ASSERT_TRUE(finished_.WaitFor(2));
    DisableCallBacks();
  }

  // Makes the older of two flushes fail at a sync point, whose argument is a
  // StatusType, after the younger one has ended. Expects that Resume() flushes
  // both.
  template <typename StatusType>
  void CheckFailureOfOlderFlush(const char* sync_point) {
    const Options options = DirectWriteOptions();
    DestroyAndReopen(options);
    SyncPoint::GetInstance()->SetCallBack(sync_point, [this](void* arg) {
      if (fails_once_.exchange(false)) {
        *static_cast<StatusType*>(arg) = RetryableError();
      }
    });
    ASSERT_NO_FATAL_FAILURE(FlushYoungerFirst("FlushJob::WriteLevel0Table",
                                              /*older_fails=*/true));
    ASSERT_FALSE(fails_once_);

    ASSERT_OK(db_->Resume());
    CheckFlushed(options,
                 {{"older", older_value_}, {"younger", younger_value_}}, 2);
  }

  // Compares the DB with `values`, now and after it is opened again. Its blob
  // files must be `num_blob_files` ones that the MANIFEST has.
  void CheckFlushed(const Options& options,
                    const std::map<std::string, std::string>& values,
                    size_t num_blob_files) {
    for (const bool reopen : {false, true}) {
      SCOPED_TRACE(reopen ? "opened again" : "still open");
      if (reopen) {
        ASSERT_OK(TryReopen(options));
      }
      ColumnFamilyMetaData meta;
      db_->GetColumnFamilyMetaData(&meta);
      EXPECT_EQ(meta.blob_files.size(), num_blob_files);
      uint64_t num_unflushed = 0;
      ASSERT_TRUE(db_->GetIntProperty(DB::Properties::kNumImmutableMemTable,
                                      &num_unflushed));
      EXPECT_EQ(num_unflushed, 0U);
      for (const auto& [key, value] : values) {
        EXPECT_EQ(Get(key), value) << key;
      }
    }
    EXPECT_EQ(FilesOnDisk(kBlobFile).size(), num_blob_files);
  }

  BlobFilePartitionManager* Manager() {
    return Family()->blob_partition_manager();
  }

  const std::string older_value_ = std::string(1000, 'o');
  const std::string younger_value_ = std::string(1000, 'y');
  Gate gate_;
  EventCount finished_;
  EventCount waiting_to_install_;
  // Whether the next step of the older flush, of which each test says what it
  // is, fails.
  std::atomic<bool> fails_once_{false};
  const std::shared_ptr<UnsealableFileSystem> file_system_;
  const std::unique_ptr<Env> unsealable_env_;
};

// The parameters say whether flushes are atomic, and whether the older memtable
// has a value in a blob file.
class BlobDirectWriteConcurrentFlushTest
    : public BlobDirectWriteFlushTest,
      public ::testing::WithParamInterface<std::tuple<bool, bool>> {};

INSTANTIATE_TEST_CASE_P(AllModes, BlobDirectWriteConcurrentFlushTest,
                        ::testing::Combine(::testing::Bool(),
                                           ::testing::Bool()));

// The flush of the older memtable writes its file when that of the younger one
// begins, and the latter is ready first. If it took the oldest blob files, the
// MANIFEST would get those of the older memtable twice, and would never get
// those of the younger one. The next open would delete what it does not name.
TEST_P(BlobDirectWriteConcurrentFlushTest, YoungerFlushCommitsItsOwnBlobFiles) {
  const auto [is_atomic, older_has_blob] = GetParam();
  Options options = DirectWriteOptions();
  options.atomic_flush = is_atomic;
  // A blob file has one value.
  options.blob_file_size = younger_value_.size() + 200;
  DestroyAndReopen(options);
  BeginSchedule("FlushJob::WriteLevel0Table");

  const std::string older_value = older_has_blob ? older_value_ : "small";
  ASSERT_OK(Put("older", older_value));
  ASSERT_OK(StartFlush());
  ASSERT_TRUE(gate_.WaitForArrival());
  ASSERT_OK(Put("younger", younger_value_));
  ASSERT_OK(Put("youngest", younger_value_));
  ASSERT_OK(StartFlush());
  // An atomic flush waits for the older one. Any other ends, and leaves its
  // commit to the older one.
  ASSERT_TRUE(is_atomic ? waiting_to_install_.WaitFor(1)
                        : finished_.WaitFor(1));
  gate_.Open();
  ASSERT_TRUE(finished_.WaitFor(2));
  DisableCallBacks();

  CheckFlushed(options,
               {{"older", older_value},
                {"younger", younger_value_},
                {"youngest", younger_value_}},
               older_has_blob ? 3 : 2);
}

// The older flush has chosen its memtable, and asks for its blob files only
// after the younger flush. If each took the oldest files that are left, each
// would commit the files of the other. The version builder refuses that,
// because the links between SST files and blob files are inconsistent then.
TEST_F(BlobDirectWriteFlushTest, FlushThatAsksLateCommitsItsOwnBlobFiles) {
  Options options = DirectWriteOptions();
  const auto listener = std::make_shared<CommitListener>(&gate_);
  options.listeners.push_back(listener);
  DestroyAndReopen(options);
  ASSERT_NO_FATAL_FAILURE(
      FlushYoungerFirst(/*place=*/nullptr, /*older_fails=*/false));

  const std::vector<CommitListener::Commit> commits = listener->commits();
  ASSERT_EQ(commits.size(), 2U);
  for (const CommitListener::Commit& commit : commits) {
    // The SST file of a flush refers to nothing but the blob file of its
    // memtable.
    EXPECT_EQ(commit.added_blob_files,
              std::vector<uint64_t>{commit.oldest_blob_file_number});
  }
  CheckFlushed(options, {{"older", older_value_}, {"younger", younger_value_}},
               2);
}

// The older flush fails after the younger one has ended. Both memtables must be
// flushed again, so the manager must still have the blob files of both.
TEST_F(BlobDirectWriteFlushTest, BlobFilesOutliveAFailedOlderFlush) {
  CheckFailureOfOlderFlush<Status>("FlushJob::Run:PostBuildTable");
}

// As above, but the older flush fails to write the MANIFEST, for both.
TEST_F(BlobDirectWriteFlushTest, BlobFilesOutliveAFailedCommit) {
  CheckFailureOfOlderFlush<IOStatus>(
      "VersionSet::ProcessManifestWrites:AfterSyncManifest");
}

TEST_F(BlobDirectWriteFlushTest, GenerationsAreNamedByMemTable) {
  const Options options = DirectWriteOptions();
  DestroyAndReopen(options);
  std::vector<uint64_t> ids;
  for (const auto& [key, value] : {std::make_pair("older", older_value_),
                                   std::make_pair("younger", younger_value_)}) {
    ASSERT_OK(Put(key, value));
    ASSERT_OK(dbfull()->TEST_SwitchMemtable());
    ids.push_back(
        Family()->imm()->GetLatestMemTableID(/*for_atomic_flush=*/false));
  }
  ASSERT_LT(ids[0], ids[1]);

  std::vector<BlobFileAddition> younger;
  std::vector<BlobFileAddition> both;
  std::vector<BlobFileGarbage> garbage;
  std::vector<std::vector<uint64_t>> numbers;
  ASSERT_OK(Manager()->PrepareFlushAdditions(WriteOptions(), {ids[1]}, &younger,
                                             &garbage, &numbers));
  ASSERT_EQ(younger.size(), 1U);
  const uint64_t younger_file = younger[0].GetBlobFileNumber();
  ASSERT_EQ(numbers, std::vector<std::vector<uint64_t>>({{younger_file}}));
  ASSERT_OK(Manager()->PrepareFlushAdditions(WriteOptions(), ids, &both,
                                             &garbage, &numbers));
  ASSERT_EQ(both.size(), 2U);
  const uint64_t older_file = both[0].GetBlobFileNumber();
  ASSERT_LT(older_file, younger_file);
  ASSERT_EQ(numbers,
            std::vector<std::vector<uint64_t>>({{older_file}, {younger_file}}));
  ASSERT_TRUE(Manager()
                  ->PrepareFlushAdditions(WriteOptions(), {ids[1] + 1000},
                                          &both, &garbage)
                  .IsCorruption());
  ASSERT_TRUE(garbage.empty());

  // Nothing is committed yet, so this changes nothing.
  Manager()->ReleaseFlushedGenerations(ids[0]);
  ASSERT_TRUE(Manager()->IsTrackedBlobFileNumber(older_file));
  ASSERT_TRUE(Manager()->IsTrackedBlobFileNumber(younger_file));

  ASSERT_OK(Flush());
  for (const uint64_t id : ids) {
    ASSERT_TRUE(
        Manager()
            ->PrepareFlushAdditions(WriteOptions(), {id}, &both, &garbage)
            .IsCorruption());
  }
  UnorderedSet<uint64_t> active;
  Manager()->GetActiveBlobFileNumbers(&active);
  ASSERT_TRUE(active.empty());
  CheckFlushed(options, {{"older", older_value_}, {"younger", younger_value_}},
               2);
}

// The parameter says whether flushes are atomic.
class BlobDirectWriteSealTest : public BlobDirectWriteFlushTest,
                                public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_CASE_P(AllModes, BlobDirectWriteSealTest, ::testing::Bool());

// No later flush may commit the memtable, because none can register the file.
// If the memtable were not given back, a thread that waits for its flush would
// wait forever.
TEST_P(BlobDirectWriteSealTest, MemTableOutlivesAFlushThatCannotSeal) {
  Options options = DirectWriteOptions();
  options.env = unsealable_env_.get();
  options.atomic_flush = GetParam();
  DestroyAndReopen(options);
  BeginSchedule(/*place=*/nullptr);

  ASSERT_OK(Put("k", older_value_));
  file_system_->fails = true;
  ASSERT_OK(StartFlush());
  ASSERT_TRUE(finished_.WaitFor(1));
  file_system_->fails = false;
  DisableCallBacks();

  uint64_t is_pending = 0;
  ASSERT_TRUE(
      db_->GetIntProperty(DB::Properties::kMemTableFlushPending, &is_pending));
  ASSERT_EQ(is_pending, 1U);
  ASSERT_NOK(db_->Resume());
  ASSERT_EQ(Get("k"), older_value_);
}

// A write that finds its blob file full cannot seal it. The file has a value
// that was written before, so the memtable with that value may not be
// committed.
TEST_P(BlobDirectWriteSealTest, MemTableOutlivesAWriteThatCannotSeal) {
  Options options = DirectWriteOptions();
  options.env = unsealable_env_.get();
  options.atomic_flush = GetParam();
  options.blob_file_size = older_value_.size() + 200;
  DestroyAndReopen(options);

  ASSERT_OK(Put("k", older_value_));
  file_system_->fails = true;
  ASSERT_NOK(Put("l", younger_value_));
  file_system_->fails = false;

  Status s = db_->Resume();
  if (s.ok()) {
    s = Flush();
  }
  EXPECT_NOK(s);
  ASSERT_EQ(Get("k"), older_value_);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
