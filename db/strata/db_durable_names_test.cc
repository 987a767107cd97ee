//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Each job syncs the directories of its files before the MANIFEST names them.
// Crashes show that only if no other job has synced the directory meanwhile.

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "env/composite_env_wrapper.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/metadata.h"
#include "rocksdb/sst_file_manager.h"
#include "rocksdb/sst_file_writer.h"
#include "test_util/strata/delta_fold_db_test_util.h"
#include "test_util/strata/durable_names_fs_test_util.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"

namespace ROCKSDB_NAMESPACE {

class DBDurableNamesTest : public DeltaFoldDBTestBase {
 public:
  DBDurableNamesTest()
      : DeltaFoldDBTestBase("db_durable_names_test"),
        fs_(std::make_shared<DurableNamesFS>(env_->GetFileSystem())),
        names_env_(NewCompositeEnv(fs_)) {}

  void TearDown() override {
    DeltaFoldDBTestBase::TearDown();
    Close();
    last_options_.env = env_;
  }

 protected:
  // Opens a new DB. Its blob files have a directory of their own.
  void Open() {
    Options options = DeltaOptions();
    options.env = names_env_.get();
    options.blob_gc_space_amp_limit = 0;
    if (options.enable_blob_files) {
      options.cf_paths = {{dbname_, 0}, {dbname_ + "_2", 0}};
      options.level_blob_path_ids = {1};
    }
    DestroyAndReopen(options);
  }

  // Checks the names of the files that `job` makes, which are at least
  // `min_files`.
  void CheckNames(const std::function<void()>& job, int min_files) {
    fs_->TakeEarly();
    fs_->TakeNumDurable();
    job();
    EXPECT_EQ(std::set<std::string>(), fs_->TakeEarly());
    EXPECT_LE(min_files, fs_->TakeNumDurable());
  }

  bool HasBlobs() const { return GetParam() != Values::kInline; }

  const std::shared_ptr<DurableNamesFS> fs_;
  const std::unique_ptr<Env> names_env_;
};

INSTANTIATE_TEST_CASE_P(DBDurableNamesTest, DBDurableNamesTest,
                        testing::Values(delta_test::ValuePlace::kInline,
                                        delta_test::ValuePlace::kBlobs,
                                        delta_test::ValuePlace::kMap,
                                        delta_test::ValuePlace::kMapVersioned));

TEST_P(DBDurableNamesTest, FlushesAndCompactions) {
  Open();
  CheckNames([this] { WriteFoldable(); }, /*min_files=*/4);
}

TEST_P(DBDurableNamesTest, MergesAndCollectionsOfDeltas) {
  Open();
  WriteFoldable();
  CheckNames(
      [this] {
        ASSERT_OK(Collect());
        EXPECT_GT(Stat("buckets"), 0);
      },
      /*min_files=*/2);
}

TEST_P(DBDurableNamesTest, Folds) {
  Open();
  WriteFoldable();
  ASSERT_OK(Collect());
  DoMerge("c", "3");
  ASSERT_OK(Flush());
  ForceFolds();
  CheckNames(
      [this] {
        ASSERT_OK(Collect());
        CheckNoOperands();
      },
      /*min_files=*/HasBlobs() ? 3 : 2);
}

TEST_P(DBDurableNamesTest, DeletionsOfFiles) {
  Open();
  WriteFoldable();
  CheckNames(
      [this] {
        ASSERT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(),
                                     nullptr, nullptr));
        CheckNoOperands();
      },
      /*min_files=*/1);
}

// The ingestion finds operands that it must hide when it prepares its files, or
// only when it commits them.
TEST_P(DBDurableNamesTest, Ingestions) {
  for (const bool is_late : {false, true}) {
    SCOPED_TRACE(is_late);
    expected_.clear();
    all_keys_.clear();
    Open();
    WriteBases();
    if (!is_late) {
      WriteOperands();
    } else {
      EnableCallBackOnce("DBImpl::AddFile:Start", [this](void*) {
        DoMerge("c", "1");
        ASSERT_OK(Flush());
      });
    }
    const std::string path = dbname_ + "_external.sst";
    SstFileWriter writer(EnvOptions(), CurrentOptions());
    ASSERT_OK(writer.Open(path));
    ASSERT_OK(writer.Put("c", "ingested"));
    ASSERT_OK(writer.Finish());
    CheckNames(
        [&] {
          ASSERT_OK(db_->IngestExternalFile(db_->DefaultColumnFamily(), {path},
                                            IngestExternalFileOptions()));
        },
        /*min_files=*/2);
    DisableCallBacks();
    expected_["c"] = "ingested";
    Check();
    ASSERT_OK(env_->DeleteFile(path));
  }
}

TEST_P(DBDurableNamesTest, AnchorsOfARepair) {
  Open();
  ASSERT_OK(Put("a", Long("1,2")));
  ASSERT_OK(Flush());
  // These operands are hidden, but there is no anchor.
  const SequenceNumber seq = db_->GetLatestSequenceNumber();
  Deltas().Flush({{"a", seq, "2"}});
  const Options options = last_options_;
  LoseManifest();
  CheckNames([&] { ASSERT_OK(RepairDB(dbname_, options)); }, /*min_files=*/1);
  Reopen(options);
  EXPECT_EQ(0, NumOperands("a"));
  EXPECT_EQ(Long("1,2"), Get("a"));
}

TEST_P(DBDurableNamesTest, CollectionsOfBlobGarbage) {
  Open();
  if (!last_options_.enable_blob_address_map) {
    ROCKSDB_GTEST_SKIP("There is no address map");
    return;
  }
  for (const char* keys : {"abcdefgh", "aceg"}) {
    for (const char* key = keys; *key != '\0'; ++key) {
      ASSERT_OK(Put(std::string(1, *key), std::string(1000, *key)));
    }
    ASSERT_OK(Flush());
  }
  DeleteObsoleteFiles();
  CollectBlobGarbageOptions collect;
  collect.space_amp_limit = 1.0;
  CheckNames([&] { ASSERT_OK(db_->CollectBlobGarbage(collect)); },
             /*min_files=*/1);
}

// FIFO compaction copies a file to change its temperature.
class DBDurableCopiesTest : public StrataDBTestBase {
 public:
  DBDurableCopiesTest()
      : StrataDBTestBase("db_durable_copies_test"),
        fs_(std::make_shared<DurableNamesFS>(env_->GetFileSystem())),
        names_env_(std::make_unique<CompositeEnvWrapper>(env_, fs_)) {}

  void TearDown() override {
    StrataDBTestBase::TearDown();
    Close();
    last_options_.env = env_;
    last_options_.sst_file_manager.reset();
  }

 protected:
  // Files become cold after 1000 seconds.
  Options FifoOptions() const {
    Options options = CurrentOptions();
    options.env = names_env_.get();
    options.compaction_style = kCompactionStyleFIFO;
    options.num_levels = 1;
    options.max_open_files = -1;
    options.level0_file_num_compaction_trigger = 2;
    CompactionOptionsFIFO& fifo = options.compaction_options_fifo;
    fifo.file_temperature_age_thresholds = {{Temperature::kCold, 1000}};
    fifo.max_table_files_size = uint64_t{1} << 30;
    fifo.allow_trivial_copy_when_change_temperature = true;
    options.sst_file_manager.reset(NewSstFileManager(names_env_.get()));
    return options;
  }

  // Writes three files, of which the first two are old.
  void WriteOldFiles() {
    ASSERT_OK(Put("a", "1"));
    env_->MockSleepForSeconds(800);
    ASSERT_OK(Put("b", "1"));
    ASSERT_OK(Flush());
    ASSERT_OK(Put("a", "2"));
    ASSERT_OK(Put("b", "2"));
    ASSERT_OK(Flush());
    ASSERT_OK(Put("a", "3"));
    env_->MockSleepForSeconds(1200);
    ASSERT_OK(Put("b", "3"));
    ASSERT_OK(Flush());
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
  }

  uint64_t SizeOnDisk() {
    uint64_t total = 0;
    for (const std::string& name : FilesIn(dbname_, kTableFile)) {
      uint64_t size = 0;
      EXPECT_OK(env_->GetFileSize(dbname_ + "/" + name, &size));
      total += size;
    }
    return total;
  }

  const std::shared_ptr<DurableNamesFS> fs_;
  const std::unique_ptr<Env> names_env_;
};

TEST_F(DBDurableCopiesTest, CopiesOfAnotherTemperature) {
  env_->SetMockSleep();
  DestroyAndReopen(FifoOptions());
  fs_->TakeEarly();
  fs_->TakeNumDurable();
  ASSERT_NO_FATAL_FAILURE(WriteOldFiles());
  EXPECT_EQ(std::set<std::string>(), fs_->TakeEarly());
  // Three files and two copies.
  EXPECT_EQ(5, fs_->TakeNumDurable());
  ColumnFamilyMetaData meta;
  db_->GetColumnFamilyMetaData(&meta);
  ASSERT_EQ(3u, meta.levels[0].files.size());
  EXPECT_EQ(Temperature::kCold, meta.levels[0].files[1].temperature);
  EXPECT_EQ(Temperature::kCold, meta.levels[0].files[2].temperature);
  EXPECT_EQ(SizeOnDisk(), last_options_.sst_file_manager->GetTotalSize());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
