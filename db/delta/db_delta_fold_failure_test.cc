//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Folds of merge operands into values that fail or crash: no operand is lost,
// and none is applied twice, also after a repair.

#include <atomic>
#include <memory>
#include <set>
#include <string>

#include "db/db_impl/db_impl.h"
#include "db/delta/db_delta_model_test_util.h"
#include "db/delta/delta_name_fs_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_checksum.h"
#include "test_util/strata/delta_fold_db_test_util.h"
#include "test_util/strata/listed_files_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

class DBDeltaFoldFailureTest : public DeltaFoldDBTestBase {
 public:
  DBDeltaFoldFailureTest()
      : DeltaFoldDBTestBase("db_delta_fold_failure_test") {}

 protected:
  // Opens a new DB with operands that are ready to be folded.
  Options OpenFoldable(Env* env) {
    expected_.clear();
    all_keys_.clear();
    no_more_folds_ = false;
    Options options = DeltaOptions();
    options.env = env;
    DestroyAndReopen(options);
    WriteFoldable();
    // Tests watch which files are deleted, and in which order.
    WaitForCompactOptions wait_options;
    wait_options.wait_for_purge = true;
    EXPECT_OK(db_->WaitForCompact(wait_options));
    return options;
  }
};

INSTANTIATE_TEST_CASE_P(DBDeltaFoldFailureTest, DBDeltaFoldFailureTest,
                        testing::Values(delta_test::ValuePlace::kInline,
                                        delta_test::ValuePlace::kBlobs,
                                        delta_test::ValuePlace::kMap,
                                        delta_test::ValuePlace::kMapVersioned));

// A fold that fails at any step loses nothing, and the next fold succeeds.
TEST_P(DBDeltaFoldFailureTest, FoldSucceedsAfterAFailureAtAnyStep) {
  for (const char* step :
       {"DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
        "DeltaFoldCommit::Write:Validated", "DeltaFoldCommit::Write:Built",
        "DeltaFoldCommit::Publish:Synced",
        "DeltaFoldCommit::Publish:Published"}) {
    for (const bool try_again : {false, true}) {
      SCOPED_TRACE(std::string(step) + (try_again ? ", try again" : ""));
      no_more_folds_ = false;
      expected_.clear();
      all_keys_.clear();
      Options options = DeltaOptions();
      const auto listed = std::make_shared<ListedFiles>();
      options.listeners.push_back(listed);
      DestroyAndReopen(options);
      WriteFoldable();
      ForceFolds();
      std::atomic<int> num_failures{0};
      SyncPoint::GetInstance()->SetCallBack(step, [&](void* arg) {
        if (num_failures.fetch_add(1) == 0) {
          no_more_folds_ = true;
          *static_cast<Status*>(arg) = try_again ? Status::TryAgain("Injected")
                                                 : Status::IOError("Injected");
        }
      });
      const Status s = Collect();
      EXPECT_EQ(try_again, s.ok()) << s.ToString();
      EXPECT_LE(1, num_failures);
      EXPECT_EQ(0, NumFolded());
      Check();
      DisableCallBacks();
      Restart();
      Check();
      CheckFiles();
      // Listeners were told that the files of the fold are deleted.
      EXPECT_EQ(FilesOnDisk(kTableFile), listed->Numbers(kTableFile));
      EXPECT_EQ(FilesOnDisk(kBlobFile), listed->Numbers(kBlobFile));
      no_more_folds_ = false;
      // With TryAgain, the bucket has been collected without a fold. The bucket
      // needs something to take in to be collected again.
      DoMerge("b", "3");
      ASSERT_OK(Flush());
      ForceFolds();
      ASSERT_OK(Collect());
      Check();
      CheckNoOperands();
      GoOn();
    }
  }
}

// With verify_output_flags a fold reads the SST file that it has written. If
// the file is damaged, the fold fails, and the operands stay.
TEST_P(DBDeltaFoldFailureTest, VerifyOutputFlagsKeepADamagedFileOut) {
  using Flags = VerifyOutputFlags;
  for (const Flags flag : {Flags::kVerifyBlockChecksum, Flags::kVerifyIteration,
                           Flags::kVerifyFileChecksum}) {
    SCOPED_TRACE(static_cast<uint32_t>(flag));
    expected_.clear();
    all_keys_.clear();
    Options options = DeltaOptions();
    options.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
    options.verify_output_flags = flag | Flags::kEnableForLocalCompaction;
    DestroyAndReopen(options);
    WriteFoldable();
    ForceFolds();
    std::atomic<int> num_damaged{0};
    EnableCallBack("BuildTable:BeforeOutputValidation", [&](void*) {
      // The file of the fold is the newest one.
      const std::string path =
          MakeTableFileName(dbname_, *FilesOnDisk(kTableFile).rbegin());
      std::string contents;
      ASSERT_OK(ReadFileToString(env_, path, &contents));
      contents[2] ^= 1;
      ASSERT_OK(WriteStringToFile(env_, contents, path));
      ++num_damaged;
    });
    const Status s = Collect();
    EXPECT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_LE(1, num_damaged);
    EXPECT_EQ(0, NumFolded());
    Check();
    DisableCallBacks();
    Restart();
    Check();
    CheckFiles();
    ForceFolds();
    ASSERT_OK(Collect());
    Check();
    CheckNoOperands();
    GoOn();
  }
}

// A fold that comes after an error has stopped background work is given up. It
// does not report the error as its own.
TEST_P(DBDeltaFoldFailureTest, FoldReportsNoErrorOfOthers) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env(NewCompositeEnv(fault_fs));
  OpenFoldable(fault_env.get());
  ForceFolds();
  uint64_t num_errors = 0;
  const auto has_failed = EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
        fault_fs->SetFilesystemActive(false, IOStatus::IOError("injected"));
        EXPECT_NOK(Put("a", "not written"));
        fault_fs->SetFilesystemActive(true);
        num_errors = Ticker(ERROR_HANDLER_BG_ERROR_COUNT);
        EXPECT_LT(0, num_errors);
      });
  const Status s = Collect();
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_TRUE(*has_failed);
  EXPECT_EQ(0, NumFolded());
  EXPECT_EQ(num_errors, Ticker(ERROR_HANDLER_BG_ERROR_COUNT));
  EXPECT_EQ(0, Ticker(DELTA_GC_FAILED));
  Check();
  DisableCallBacks();
  Restart();
  GoOn();
  Close();
  last_options_.env = env_;
}

TEST_P(DBDeltaFoldFailureTest, CrashAtAnyStepLosesNothing) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env(NewCompositeEnv(fault_fs));
  for (const char* step :
       {"DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
        "DBStrata::BeginDeltaFold:Entered", "DeltaFoldCommit::Write:Built",
        "DeltaFoldCommit::Publish:Synced",
        "VersionSet::LogAndApply:WriteManifest",
        "VersionSet::LogAndApply:WriteManifestDone",
        "DBStrata::EndDeltaFold:BeforeSettle",
        "DBStrata::BackgroundDeltaCollection::RunMarked:AfterEdit"}) {
    SCOPED_TRACE(step);
    expected_.clear();
    all_keys_.clear();
    Options options = DeltaOptions();
    options.env = fault_env.get();
    DestroyAndReopen(options);
    WriteFoldable();
    ForceFolds();
    // The crash must come after the fold has begun, as merges write the
    // MANIFEST as well.
    EnableCallBackOnce("DeltaValueFolder::Fold", [&](void*) {
      EnableCallBackOnce(step,
                         [&](void*) { fault_fs->SetFilesystemActive(false); });
    });
    Collect().PermitUncheckedError();
    DisableCallBacks();
    EXPECT_FALSE(fault_fs->IsFilesystemActive());
    Close();
    ASSERT_OK(fault_fs->DropUnsyncedFileData());
    fault_fs->ResetState();
    fault_fs->SetFilesystemActive(true);
    Reopen(options);
    Check();
    ASSERT_OK(Collect());
    GoOn();
    Close();
  }
  last_options_.env = env_;
}

// After a crash at any step of a fold, a repair finds each operand exactly
// once, in a value or as an operand, and later compactions do not change this.
TEST_P(DBDeltaFoldFailureTest, RepairAfterACrashFindsEachOperandOnce) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env(NewCompositeEnv(fault_fs));
  struct Step {
    const char* point;
    int call;
  };
  for (const Step& step :
       {Step{"DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", 1},
        Step{"DeltaFoldCommit::Write:Built", 1},
        Step{"DeltaFoldCommit::Publish:Synced", 1},
        Step{"DeltaFileBuilder::Publish:BeforeRename", 1},
        Step{"DeltaFileBuilder::Publish:BeforeRename", 2},
        Step{"DeltaFoldCommit::Publish:Published", 1},
        Step{"DBStrata::BeginDeltaFold:BeforeEdit", 1},
        Step{"VersionSet::LogAndApply:WriteManifest", 1},
        Step{"VersionSet::LogAndApply:WriteManifestDone", 1},
        Step{"DBStrata::EndDeltaFold:BeforeSettle", 1}}) {
    // Some operands stay in delta files, or none. Files that were not synced
    // exist after the crash, or do not.
    for (const bool some_stay : {false, true}) {
      for (const bool files_vanish : {false, true}) {
        if (step.call == 2 && !some_stay) {
          continue;  // only one file is renamed
        }
        SCOPED_TRACE(std::string(step.point) + " " + std::to_string(step.call) +
                     (some_stay ? " some stay" : "") +
                     (files_vanish ? " files vanish" : ""));
        expected_.clear();
        all_keys_.clear();
        Options options = DeltaOptions();
        options.env = fault_env.get();
        DestroyAndReopen(options);
        WriteFoldable();
        ASSERT_OK(Collect());
        EXPECT_LT(0, NumOperands("b"));
        DoMerge("b", "3");
        ASSERT_OK(Flush());
        const Snapshot* snapshot = nullptr;
        if (some_stay) {
          // The snapshot keeps operands of "c" and an anchor of "x". A repair
          // puts all tables into level 0, in the order of their largest
          // sequence numbers. Therefore "x" has a table of its own: if the
          // table had older entries of other keys as well, point reads would
          // find those before newer entries in other tables.
          all_keys_.emplace_back("x");
          DoMerge("x", "1");
          snapshot = db_->GetSnapshot();
          DoMerge("c", "3");
          DoPut("x", Long("over"));
          ASSERT_OK(Flush());
        }
        // A repair would also use obsolete files.
        CheckFiles();
        ForceFolds();
        const auto calls = std::make_shared<std::atomic<int>>(0);
        EnableCallBackOnce("DeltaValueFolder::Fold", [&, calls](void*) {
          SyncPoint::GetInstance()->SetCallBack(step.point, [&, calls](void*) {
            if (calls->fetch_add(1) + 1 == step.call) {
              fault_fs->SetFilesystemActive(false);
            }
          });
        });
        Collect().PermitUncheckedError();
        DisableCallBacks();
        ASSERT_FALSE(fault_fs->IsFilesystemActive());
        if (snapshot != nullptr) {
          db_->ReleaseSnapshot(snapshot);
        }
        Close();
        ASSERT_OK(fault_fs->DropUnsyncedFileData());
        fault_fs->SetFilesystemActive(true);
        if (files_vanish) {
          ASSERT_OK(fault_fs->DeleteFilesCreatedAfterLastDirSync(IOOptions(),
                                                                 nullptr));
        }
        fault_fs->ResetState();
        LoseManifest();
        ASSERT_OK(RepairDB(dbname_, options));
        Reopen(options);
        CheckAndCompact();
        GoOn();
        Close();
      }
    }
  }
  last_options_.env = env_;
}

// The directory is synced after delta files are renamed and before the edit.
// Some file systems may skip an fsync of a directory with new files, since new
// files are durable anyway; this does not hold for renamed files.
TEST_P(DBDeltaFoldFailureTest, NamesAreDurableBeforeTheEdit) {
  const auto name_fs =
      std::make_shared<delta_test::DeltaNameFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> name_env(NewCompositeEnv(name_fs));
  OpenFoldable(name_env.get());
  // Some operands stay, so the job writes files of operands and of anchors.
  const Snapshot* const snapshot = db_->GetSnapshot();
  DoMerge("c", "3");
  ASSERT_OK(Flush());
  ForceFolds();
  name_fs->TakeEvents();
  ASSERT_OK(Collect());
  EXPECT_LT(0, NumFolded());
  std::set<std::string> not_durable;
  int num_renamed = 0;
  const std::string renamed = "rename ";
  const std::string synced = "sync renamed ";
  for (const std::string& event : name_fs->TakeEvents()) {
    if (Slice(event).starts_with(renamed)) {
      not_durable.insert(event.substr(renamed.size()));
      ++num_renamed;
    } else if (Slice(event).starts_with(synced)) {
      not_durable.erase(event.substr(synced.size()));
    } else if (event == "sync all") {
      not_durable.clear();
    } else if (event == "write MANIFEST") {
      EXPECT_EQ(std::set<std::string>(), not_durable);
    }
  }
  EXPECT_LT(0, num_renamed);
  EXPECT_EQ(std::set<std::string>(), not_durable);
  db_->ReleaseSnapshot(snapshot);
  GoOn();
  Close();
  last_options_.env = env_;
}

// If a fold is given up, its SST file is deleted only after the deletion of all
// of its delta files is durable. This also holds if a rename was done but
// reported as an error.
TEST_P(DBDeltaFoldFailureTest, WithdrawsDeltaFilesBeforeTheirValues) {
  const auto name_fs =
      std::make_shared<delta_test::DeltaNameFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> name_env(NewCompositeEnv(name_fs));
  for (const bool denies_renames : {false, true}) {
    SCOPED_TRACE(denies_renames ? "denies renames" : "fails after them");
    OpenFoldable(name_env.get());
    ForceFolds();
    name_fs->denies_renames = denies_renames;
    SyncPoint::GetInstance()->SetCallBack(
        "DeltaFoldCommit::Publish:Published", [&](void* arg) {
          Status* const s = static_cast<Status*>(arg);
          EXPECT_EQ(denies_renames, s->IsIOError()) << s->ToString();
          *s = Status::IOError("Injected");
        });
    name_fs->TakeEvents();
    EXPECT_NOK(Collect());
    name_fs->denies_renames = false;
    std::set<std::string> published;
    // State since the first rename.
    bool all_gone = true;
    bool sst_is_gone = false;
    const std::string renamed = "rename ";
    const std::string deleted = "delete ";
    for (const std::string& event : name_fs->TakeEvents()) {
      if (Slice(event).starts_with(renamed)) {
        published.insert(event.substr(renamed.size()));
        all_gone = false;
        sst_is_gone = false;
      } else if (event == "sync deleted" || event == "sync all") {
        all_gone = published.empty();
      } else if (Slice(event).starts_with(deleted)) {
        published.erase(event.substr(deleted.size()));
        if (Slice(event).ends_with(".sst")) {
          EXPECT_TRUE(all_gone) << event;
          sst_is_gone = true;
        }
      }
    }
    EXPECT_EQ(std::set<std::string>(), published);
    EXPECT_TRUE(all_gone);
    EXPECT_TRUE(sst_is_gone);
    dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
    EXPECT_EQ(0, NumUnknownTables());
    Check();
    DisableCallBacks();
    Restart();
    GoOn();
    Close();
  }
  last_options_.env = env_;
}

// If published delta files of a fold cannot be deleted, the SST file with the
// values stays as well, because a repair would take these delta files for the
// newest ones.
TEST_P(DBDeltaFoldFailureTest, ValuesStayWithDeltaFilesThatStay) {
  const auto name_fs =
      std::make_shared<delta_test::DeltaNameFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> name_env(NewCompositeEnv(name_fs));
  for (const bool try_again : {false, true}) {
    SCOPED_TRACE(try_again ? "try again" : "error");
    const Options options = OpenFoldable(name_env.get());
    CheckFiles();
    ForceFolds();
    std::atomic<int> num_failures{0};
    SyncPoint::GetInstance()->SetCallBack(
        "DeltaFoldCommit::Publish:Published", [&](void* arg) {
          if (num_failures.fetch_add(1) == 0) {
            no_more_folds_ = true;
            name_fs->keeps_delta_files = true;
            *static_cast<Status*>(arg) = try_again
                                             ? Status::TryAgain("Injected")
                                             : Status::IOError("Injected");
          }
        });
    const Status s = Collect();
    EXPECT_EQ(try_again, s.ok()) << s.ToString();
    EXPECT_EQ(1, num_failures);
    EXPECT_EQ(0, NumFolded());
    Check();
    // A scan for obsolete files does not delete it either.
    dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
    dbfull()->TEST_DeleteObsoleteFiles();
    EXPECT_EQ(1, NumUnknownTables());
    DisableCallBacks();
    LoseManifest();
    name_fs->keeps_delta_files = false;
    ASSERT_OK(RepairDB(dbname_, options));
    Reopen(options);
    CheckAndCompact();
    GoOn();
    Close();
  }
  last_options_.env = env_;
}

// The next open deletes the SST file that stayed with undeletable delta files.
TEST_P(DBDeltaFoldFailureTest, NextOpenDeletesWhatHasStayed) {
  const auto name_fs =
      std::make_shared<delta_test::DeltaNameFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> name_env(NewCompositeEnv(name_fs));
  const Options options = OpenFoldable(name_env.get());
  ForceFolds();
  SyncPoint::GetInstance()->SetCallBack(
      "DeltaFoldCommit::Publish:Published", [&](void* arg) {
        name_fs->keeps_delta_files = true;
        *static_cast<Status*>(arg) = Status::IOError("Injected");
      });
  EXPECT_NOK(Collect());
  dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
  EXPECT_EQ(1, NumUnknownTables());
  DisableCallBacks();
  Close();
  name_fs->keeps_delta_files = false;
  Reopen(options);
  CheckFiles();
  GoOn();
  Close();
  last_options_.env = env_;
}

// A repair applies a folded operand once, although the WAL with the operand
// still exists because another column family needs it. No delta file has
// anything of the key.
TEST_P(DBDeltaFoldFailureTest, RepairAppliesFoldedOperandsOfAWalOnce) {
  const Options options = DeltaOptions();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  all_keys_ = {"k", "s"};
  ASSERT_OK(Put(1, "a", "v"));
  ASSERT_OK(Flush(1));
  DoPut("k", Long("k"));
  DoPut("s", Long("s"));
  ASSERT_OK(Flush(0));
  ASSERT_OK(Put(1, "b", "not flushed"));
  DoMerge("k", "1");
  DoMerge("s", "1");
  ASSERT_OK(Flush(0));
  // The snapshot prevents a fold of the operands of "s".
  const Snapshot* const snapshot = db_->GetSnapshot();
  DoMerge("s", "2");
  ASSERT_OK(Flush(0));
  ForceFolds();
  ASSERT_OK(Collect());
  DisableCallBacks();
  EXPECT_EQ(1, NumFolded());
  EXPECT_EQ(0, NumOperands("k"));
  EXPECT_EQ(2, NumOperands("s"));
  db_->ReleaseSnapshot(snapshot);
  Check();
  CheckFiles();
  LoseManifest();
  ASSERT_OK(
      RepairDB(dbname_, options,
               {{kDefaultColumnFamilyName, options}, {"other", options}}));
  ReopenWithColumnFamilies({"default", "other"}, options);
  EXPECT_EQ("v", Get(1, "a"));
  EXPECT_EQ("not flushed", Get(1, "b"));
  CheckAndCompact();
  ReopenWithColumnFamilies({"default", "other"}, options);
  Check();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
