//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// When the last column family with records that RocksDB refuses is dropped,
// nothing of them is left in the MANIFEST.

#include "db/strata/refused_records.h"

#include <atomic>
#include <string>
#include <vector>

#include "db/column_family.h"
#include "db/path_layout/manifest_records.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "port/port.h"
#include "port/stack_trace.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/strata_db_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class RefusedRecordsTest : public StrataDBTestBase {
 protected:
  enum Kind { kPlain, kBlobs, kBlobPath, kMap, kDeltas, kNumKinds };

  RefusedRecordsTest() : StrataDBTestBase("refused_records_test") {
    second_ = dbname_ + "_second";
  }
  ~RefusedRecordsTest() override {
    Close();
    DestroyDir(env_, second_).PermitUncheckedError();
  }

  Options OptionsOf(Kind kind) {
    Options options = CurrentOptions();
    options.disable_auto_compactions = true;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.enable_blob_files = kind != kPlain && kind != kDeltas;
    options.enable_blob_address_map = kind == kMap;
    options.enable_delta_separation = kind == kDeltas;
    if (kind == kBlobPath) {
      options.cf_paths = {{dbname_, 0}, {second_, 0}};
      options.level_blob_path_ids = {1};
    }
    return options;
  }
  // Creates a column family with an entry of this kind.
  ColumnFamilyHandle* Create(Kind kind, const std::string& name) {
    ColumnFamilyHandle* handle = nullptr;
    EXPECT_OK(db_->CreateColumnFamily(OptionsOf(kind), name, &handle));
    if (kind == kDeltas) {
      EXPECT_OK(db_->Merge(WriteOptions(), handle, "key", "value"));
    } else {
      EXPECT_OK(db_->Put(WriteOptions(), handle, "key", "value"));
    }
    EXPECT_OK(db_->Flush(FlushOptions(), handle));
    return handle;
  }
  bool IsRefused(ColumnFamilyHandle* handle) {
    InstrumentedMutexLock lock(dbfull()->mutex());
    return IsRefusedByRocksDB(*FamilyOf(handle)->current()->storage_info());
  }
  FeatureSet FeaturesOf(ColumnFamilyHandle* handle) {
    InstrumentedMutexLock lock(dbfull()->mutex());
    return FeaturesRefusedByRocksDB(
        *FamilyOf(handle)->current()->storage_info());
  }
  std::string Manifest() {
    std::string name;
    EXPECT_OK(ReadFileToString(env_, CurrentFileName(dbname_), &name));
    EXPECT_FALSE(name.empty());
    name.pop_back();  // the newline
    return name;
  }
  // Returns the number of records that RocksDB refuses in the MANIFEST.
  int NumRefused() {
    const std::string name = dbname_ + "/" + Manifest();
    uint64_t size = 0;
    EXPECT_OK(env_->GetFileSize(name, &size));
    int num_refused = 0;
    EXPECT_OK(ForEachManifestRecord(
        env_->GetFileSystem().get(), name, size, [&](const Slice& record) {
          VersionEdit edit;
          const Status s = edit.DecodeFrom(record);
          bool is_refused = edit.GetDeltaEdit() != nullptr;
          for (const BlobFileAddition& file : edit.GetBlobFileAdditions()) {
            is_refused |= file.GetPathId() != 0 || file.GetIndexBytes() > 0;
          }
          for (const auto& [level, file] : edit.GetNewFiles()) {
            is_refused |= file.blob_refs.mapped.Any();
          }
          num_refused += is_refused ? 1 : 0;
          return s;
        }));
    return num_refused;
  }
  void Destroy(const std::vector<ColumnFamilyHandle*>& handles) {
    for (ColumnFamilyHandle* handle : handles) {
      ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
    }
  }

  std::string second_;
};

TEST_F(RefusedRecordsTest, FeaturesOfAState) {
  DestroyAndReopen(OptionsOf(kPlain));
  const std::vector<FeatureSet> expected = {
      FeatureSet(), FeatureSet(), FeatureSet::kLayouts, FeatureSet::kMap,
      FeatureSet::kDeltas};
  std::vector<ColumnFamilyHandle*> handles;
  for (int kind = kPlain; kind < kNumKinds; ++kind) {
    handles.push_back(
        Create(static_cast<Kind>(kind), "kind" + std::to_string(kind)));
    EXPECT_EQ(FeaturesOf(handles.back()).ToString(), expected[kind].ToString());
  }
  Destroy(handles);
}

TEST_F(RefusedRecordsTest, LastDropBeginsANewManifest) {
  for (int first = kPlain; first < kNumKinds; ++first) {
    for (int second = kPlain; second < kNumKinds; ++second) {
      SCOPED_TRACE(std::to_string(first) + std::to_string(second));
      DestroyAndReopen(OptionsOf(kPlain));
      ASSERT_OK(Put("key", "value"));
      ASSERT_OK(Flush());
      const bool is_first_refused = first > kBlobs;
      const bool is_second_refused = second > kBlobs;
      const std::vector<ColumnFamilyHandle*> handles = {
          Create(static_cast<Kind>(first), "first"),
          Create(static_cast<Kind>(second), "second")};
      EXPECT_EQ(IsRefused(handles[0]), is_first_refused);
      EXPECT_EQ(IsRefused(handles[1]), is_second_refused);
      EXPECT_EQ(NumRefused() > 0, is_first_refused || is_second_refused);
      // A drop begins a MANIFEST only if that helps.
      std::string manifest = Manifest();
      ASSERT_OK(db_->DropColumnFamily(handles[0]));
      EXPECT_EQ(Manifest() != manifest, is_first_refused && !is_second_refused);
      EXPECT_EQ(NumRefused() > 0, is_second_refused);
      manifest = Manifest();
      ASSERT_OK(db_->DropColumnFamily(handles[1]));
      EXPECT_EQ(Manifest() != manifest, is_second_refused);
      EXPECT_EQ(NumRefused(), 0);
      Destroy(handles);
      ASSERT_OK(Put("key", "other"));
      ASSERT_OK(Flush());
      EXPECT_EQ(NumRefused(), 0);
      Close();
      EXPECT_EQ(NumRefused(), 0);
      Reopen(OptionsOf(kPlain));
      EXPECT_EQ(Get("key"), "other");
    }
  }
}

// The family has no such file any more, but the MANIFEST has their records.
TEST_F(RefusedRecordsTest, FamilyIsEmptyWhenItIsDropped) {
  for (const Kind kind : {kBlobPath, kMap, kDeltas}) {
    SCOPED_TRACE(kind);
    DestroyAndReopen(OptionsOf(kPlain));
    ColumnFamilyHandle* const handle = Create(kind, "family");
    ASSERT_OK(db_->Delete(WriteOptions(), handle, "key"));
    ASSERT_OK(db_->Flush(FlushOptions(), handle));
    ASSERT_OK(ForceCompaction(db_.get(), handle));
    EXPECT_GT(NumRefused(), 0);
    ASSERT_OK(db_->DropColumnFamily(handle));
    EXPECT_EQ(NumRefused(), 0);
    Destroy({handle});
  }
}

// The path was given up before the drop.
TEST_F(RefusedRecordsTest, FamilyHasLeftThePathWhenItIsDropped) {
  DestroyAndReopen(OptionsOf(kPlain));
  ColumnFamilyHandle* const handle = Create(kBlobPath, "family");
  ASSERT_OK(db_->SetOptions(handle, {{"level_blob_path_ids", ""}}));
  ASSERT_OK(ForceCompaction(db_.get(), handle));
  std::string value;
  ASSERT_OK(db_->Get(ReadOptions(), handle, "key", &value));
  EXPECT_EQ(value, "value");
  EXPECT_FALSE(IsRefused(handle));
  EXPECT_GT(NumRefused(), 0);
  ASSERT_OK(db_->DropColumnFamily(handle));
  EXPECT_EQ(NumRefused(), 0);
  Destroy({handle});
}

// The next open makes up for a MANIFEST that could not be made, as it does
// after a crash between the two steps of a drop. It goes on with the old one if
// reuse_manifest_on_open is set. If the error may go away, a recovery makes up
// for it before.
TEST_F(RefusedRecordsTest, FailedManifestIsMadeByARecoveryOrTheNextOpen) {
  for (const Kind kind : {kBlobPath, kMap, kDeltas}) {
    for (const bool retryable : {false, true}) {
      SCOPED_TRACE(testing::Message() << kind << " " << retryable);
      Options options = OptionsOf(kPlain);
      options.max_bgerror_resume_count = 0;
      DestroyAndReopen(options);
      ASSERT_OK(Put("key", "other"));
      ColumnFamilyHandle* const handle = Create(kind, "family");
      std::atomic<int> num_rolls{0};
      EnableCallBack("DBStrata::RollManifestAndSchedule:Roll",
                     [&](void*) { ++num_rolls; });
      EnableCallBack("VersionSet::ProcessManifestWrites:AfterSyncManifest",
                     [&](void* status) {
                       if (num_rolls > 0) {
                         *static_cast<IOStatus*>(status) =
                             retryable ? RetryableError()
                                       : IOStatus::IOError("injected");
                       }
                     });
      ASSERT_OK(db_->DropColumnFamily(handle));
      DisableCallBacks();
      EXPECT_EQ(num_rolls.load(), 2);
      EXPECT_GT(NumRefused(), 0);
      const Status error = dbfull()->TEST_GetBGError();
      EXPECT_EQ(error.severity(), retryable ? Status::Severity::kHardError
                                            : Status::Severity::kFatalError);
      EXPECT_NOK(Put("key", "late"));
      EXPECT_EQ(db_->Resume().ok(), retryable);
      if (retryable) {
        EXPECT_EQ(NumRefused(), 0);
        ASSERT_OK(Put("key", "newer"));
        ASSERT_OK(Flush());
      }
      Destroy({handle});
      Reopen(options);
      EXPECT_EQ(NumRefused(), 0);
      EXPECT_EQ(Get("key"), retryable ? "newer" : "other");
    }
  }
}

// The edit for the new MANIFEST is first written behind that of another thread,
// so it adds a Version of the default family, but makes no MANIFEST. Then the
// MANIFEST cannot be made. Reads of the address map need a SuperVersion of this
// Version.
TEST_F(RefusedRecordsTest, FailedManifestLeavesNoVersionWithoutSuperVersion) {
  Options options = OptionsOf(kMap);
  options.max_bgerror_resume_count = 0;
  DestroyAndReopen(options);
  ASSERT_OK(Put("key", "value"));
  ColumnFamilyHandle* const other = Create(kPlain, "other");
  ColumnFamilyHandle* const handle = Create(kBlobPath, "family");
  const auto log = [&] {
    VersionEdit edit;
    edit.SetColumnFamily(FamilyOf(other)->GetID());
    InstrumentedMutexLock lock(dbfull()->mutex());
    EXPECT_OK(dbfull()->GetVersionSet()->LogAndApply(
        FamilyOf(other), ReadOptions(), WriteOptions(), &edit,
        dbfull()->mutex(), /*dir_contains_current_file=*/nullptr));
  };
  std::vector<port::Thread> threads;
  std::atomic<int> num_rolls{0};
  std::atomic<int> num_queued{0};
  std::atomic<int> num_synced{0};
  std::atomic<bool> is_writing{false};
  const auto wait_for_queued = [&](int num) {
    for (int queued = num_queued; queued < num; queued = num_queued) {
      num_queued.wait(queued);
    }
  };
  // One edit is being written, and another one waits, when that of the roll is
  // queued.
  EnableCallBack("DBStrata::RollManifestAndSchedule:Roll", [&](void*) {
    if (++num_rolls == 1) {
      dbfull()->mutex()->Unlock();
      threads.emplace_back(log);
      is_writing.wait(false);
      threads.emplace_back(log);
      wait_for_queued(2);
      dbfull()->mutex()->Lock();
    }
  });
  EnableCallBack("VersionSet::LogAndApply:BeforeWriterWaiting", [&](void*) {
    if (num_rolls > 0) {
      ++num_queued;
      num_queued.notify_all();
    }
  });
  EnableCallBack("VersionSet::LogAndApply:WriteManifest", [&](void*) {
    if (num_rolls > 0 && !is_writing.exchange(true)) {
      is_writing.notify_all();
      wait_for_queued(3);
    }
  });
  EnableCallBack("VersionSet::ProcessManifestWrites:AfterSyncManifest",
                 [&](void* status) {
                   if (num_rolls > 0 && ++num_synced > 2) {
                     *static_cast<IOStatus*>(status) = RetryableError();
                   }
                 });
  const std::string manifest = Manifest();
  ASSERT_OK(db_->DropColumnFamily(handle));
  for (port::Thread& thread : threads) {
    thread.join();
  }
  DisableCallBacks();
  EXPECT_EQ(num_rolls.load(), 2);
  EXPECT_EQ(num_queued.load(), 5);
  EXPECT_EQ(num_synced.load(), 4);
  EXPECT_EQ(Manifest(), manifest);
  EXPECT_NOK(dbfull()->TEST_GetBGError());
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    ASSERT_EQ(Family()->GetSuperVersion()->current, Family()->current());
  }
  EXPECT_EQ(Get("key"), "value");
  ASSERT_OK(db_->Resume());
  EXPECT_NE(Manifest(), manifest);
  Destroy({handle, other});
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
