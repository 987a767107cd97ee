//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Restores of backups into several directories.

#include "db/path_layout/layout_restore.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/path_layout/path_copy_test_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"

namespace ROCKSDB_NAMESPACE {

class LayoutRestoreTest : public PathCopyTestBase {
 protected:
  using Mode = RestoreOptions::Mode;

  LayoutRestoreTest() : PathCopyTestBase("layout_restore_test") {}

  static RestoreOptions Into(const CopyLayout& layout,
                             Mode mode = Mode::kPurgeAllFiles) {
    RestoreOptions options(/*_keep_log_files=*/false, mode);
    options.layout = std::make_shared<CopyLayout>(layout);
    return options;
  }
  static bool IsOnPath(FileType type) {
    return type == kTableFile || type == kBlobFile || type == kDeltaFile;
  }
  // Makes a hard link to each SST, blob and delta file. A restore that writes a
  // file again creates a file without such a link.
  void LinkAll(const std::string& directory) {
    for (const std::string& name : Names(directory)) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(name, &number, &type) && IsOnPath(type)) {
        ASSERT_OK(env_->LinkFile(directory + "/" + name,
                                 links_ + "/" + std::to_string(next_link_++)));
      }
    }
  }
  // Returns the number of SST, blob and delta files that have been there since
  // LinkAll() (kept) or not (new).
  void CountKept(const std::string& directory, size_t* kept, size_t* added) {
    for (const std::string& name : Names(directory)) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(name, &number, &type) && IsOnPath(type)) {
        uint64_t links = 0;
        ASSERT_OK(env_->NumFileLinks(directory + "/" + name, &links));
        ++*(links > 1 ? kept : added);
      }
    }
  }
  void UseLinks(const std::string& directory) {
    links_ = directory;
    ASSERT_OK(env_->CreateDir(links_));
  }

  std::string links_;
  int next_link_ = 0;
};

TEST_F(LayoutRestoreTest, FilesAreOnThePathOfTheirLevel) {
  for (int feature = 0; feature < kNumFeatures; ++feature) {
    for (const bool wal : {false, true}) {
      SCOPED_TRACE(std::to_string(feature) + std::to_string(wal));
      DestroyAll();
      const std::vector<Options> options = {
          PlainOptions(),
          FeatureOptions(static_cast<Feature>(feature), "b", 3, {0, 1}, {2})};
      OpenNew(options);
      Fill(wal);
      const std::unique_ptr<BackupEngine> engine =
          OpenBackups(Directory("backups"));
      ASSERT_OK(engine->CreateNewBackup(db_.get(),
                                        /*flush_before_backup=*/!wal));
      const std::string main = Directory("main");
      CopyLayout layout =
          LayoutOf({Directory("first"), Directory("second")}, {0, 1}, {1});
      layout.column_families["default"] =
          LayoutOf({main, Directory("third")}, {1}, {0}).all;
      ASSERT_OK(engine->RestoreDBFromLatestBackup(Into(layout), main, main));
      CheckLayoutCopy(main, {&layout.column_families["default"], &layout.all});
      CheckOriginal(options);
      // The same backup in one directory.
      const std::string one = Directory("one");
      ASSERT_OK(engine->RestoreDBFromLatestBackup(one, one));
      CheckLayoutCopy(one, {nullptr, nullptr});
    }
  }
}

// All modes restore over what a restore with another layout has left, and over
// damage; files that are the user's stay.
TEST_F(LayoutRestoreTest, AllModesRestoreOverOtherFiles) {
  for (const Mode mode : {Mode::kPurgeAllFiles, Mode::kVerifyChecksum,
                          Mode::kKeepLatestDbSessionIdFiles}) {
    SCOPED_TRACE(mode);
    DestroyAll();
    const std::vector<Options> options = {
        PlainOptions(), FeatureOptions(kMapAndDeltas, "b", 3, {0, 1}, {2})};
    OpenNew(options);
    Fill(/*wal=*/false);
    const std::unique_ptr<BackupEngine> engine =
        OpenBackups(Directory("backups"));
    ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
    const std::string main = Directory("main");
    const std::string first = Directory("first");
    const std::string second = Directory("second");
    const std::vector<std::string> all = {main, first, second};
    const CopyLayout layout = LayoutOf({first, second}, {0, 1}, {1});
    ASSERT_OK(env_->CreateDir(first));
    ASSERT_OK(WriteStringToFile(env_, "mine", first + "/mine.txt"));
    ASSERT_OK(WriteStringToFile(env_, "mine", first + "/LOG"));
    ASSERT_OK(WriteStringToFile(env_, "old", first + "/999999.sst"));
    ASSERT_OK(
        engine->RestoreDBFromLatestBackup(Into(layout, mode), main, main));
    EXPECT_FALSE(env_->FileExists(first + "/999999.sst").ok());
    CheckLayoutCopy(main, {&layout.all, &layout.all});

    // Over the files of the database that CheckLayoutCopy() has worked in.
    ASSERT_OK(
        engine->RestoreDBFromLatestBackup(Into(layout, mode), main, main));
    // Over itself: what is in its place stays, except when all is purged.
    UseLinks(Directory("links"));
    for (const std::string& directory : all) {
      LinkAll(directory);
    }
    ASSERT_OK(
        engine->RestoreDBFromLatestBackup(Into(layout, mode), main, main));
    size_t kept = 0;
    size_t added = 0;
    for (const std::string& directory : all) {
      CountKept(directory, &kept, &added);
    }
    if (mode == Mode::kPurgeAllFiles) {
      EXPECT_EQ(kept, 0U);
    } else if (mode == Mode::kVerifyChecksum) {
      EXPECT_EQ(added, 0U);
    } else {
      // Blob files are always restored.
      EXPECT_GE(kept, 2U);
    }
    EXPECT_EQ(kept + added, static_cast<size_t>(next_link_));

    // A file that changed without a change of its size.
    if (mode == Mode::kVerifyChecksum) {
      std::string damaged;
      for (const std::string& name : Names(second)) {
        if (Slice(name).ends_with(".blob")) {
          damaged = second + "/" + name;
        }
      }
      ASSERT_NE(damaged, "");
      std::string contents;
      ASSERT_OK(ReadFileToString(env_, damaged, &contents));
      contents[contents.size() / 2] ^= 1;
      ASSERT_OK(env_->DeleteFile(damaged));
      ASSERT_OK(WriteStringToFile(env_, contents, damaged));
      ASSERT_OK(
          engine->RestoreDBFromLatestBackup(Into(layout, mode), main, main));
    }

    // Each path has the files of the other one.
    const CopyLayout swapped = LayoutOf({second, first}, {0, 1}, {1});
    ASSERT_OK(
        engine->RestoreDBFromLatestBackup(Into(swapped, mode), main, main));
    size_t files = 0;
    for (const std::string& directory : all) {
      CountKept(directory, &files, &files);
    }
    EXPECT_EQ(files, static_cast<size_t>(next_link_));
    CheckLayoutCopy(main, {&swapped.all, &swapped.all});
    std::string mine;
    ASSERT_OK(ReadFileToString(env_, first + "/mine.txt", &mine));
    EXPECT_EQ(mine, "mine");
    ASSERT_OK(ReadFileToString(env_, first + "/LOG", &mine));
    EXPECT_EQ(mine, "mine");
    CheckOriginal(options);
    next_link_ = 0;
  }
}

TEST_F(LayoutRestoreTest, SortedDeltaFilesHaveAPathOfTheirOwn) {
  Options options = FeatureOptions(kDeltas, "a", 2, {0, 1}, {});
  options.delta_sorted_path_id = 0;
  OpenNew({options});
  PutRange(0, 0, kKeys);
  FillDeltas();
  const std::unique_ptr<BackupEngine> engine =
      OpenBackups(Directory("backups"));
  ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  CopyLayout layout = LayoutOf({main, second}, {0}, {});
  layout.all.delta_sorted_path_id = 1;
  ASSERT_OK(engine->RestoreDBFromLatestBackup(Into(layout), main, main));
  EXPECT_GE(Count(main, kDeltaFile), 1U);
  EXPECT_GE(Count(second, kDeltaFile), 1U);
  EXPECT_EQ(Count(second, kTableFile), 0U);
  CheckLayoutCopy(main, {&layout.all});
  // The same backup in one directory.
  const std::string one = Directory("one");
  ASSERT_OK(engine->RestoreDBFromLatestBackup(one, one));
  CheckLayoutCopy(one, {nullptr});
  CheckOriginal({options});
}

// The database itself is restored, over its own paths.
TEST_F(LayoutRestoreTest, DatabaseIsRestoredInPlace) {
  const Options options = FeatureOptions(kBlobs, "a", 3, {0, 1}, {2});
  OpenNew({options});
  FillTwoLevels();
  const std::unique_ptr<BackupEngine> engine =
      OpenBackups(Directory("backups"));
  ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  ASSERT_OK(db_->Put(WriteOptions(), KeyOf(1), "of later"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  Close();
  CopyLayout layout;
  layout.all.cf_paths = options.cf_paths;
  layout.all.level_sst_path_ids = options.level_sst_path_ids;
  layout.all.level_blob_path_ids = options.level_blob_path_ids;
  ASSERT_OK(engine->RestoreDBFromLatestBackup(
      Into(layout, Mode::kKeepLatestDbSessionIdFiles), dbname_, dbname_));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  CheckPlacement(0, options);
}

// Files of a backup are the same whatever the layout of the database was, so a
// later backup copies what is new, and nothing else.
TEST_F(LayoutRestoreTest, BackupsAreIncrementalAcrossLayouts) {
  Options options = FeatureOptions(kBlobs, "a", 3, {0, 1}, {2});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  const std::string backups = Directory("backups");
  const std::unique_ptr<BackupEngine> engine = OpenBackups(backups);
  ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  const std::string shared = backups + "/shared_checksum";
  const size_t before = Names(shared).size();

  // Other options over the same files.
  ASSERT_OK(db_->SetOptions(
      {{"level_sst_path_ids", "2"}, {"level_blob_path_ids", "0"}}));
  ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  EXPECT_EQ(Names(shared).size(), before);

  // A copy of the database with the files on other paths.
  const std::string main = Directory("main");
  const CopyLayout layout = LayoutOf({main, Directory("second")}, {1}, {0});
  ASSERT_OK(engine->RestoreDBFromLatestBackup(Into(layout), main, main));
  Options other = options;
  other.create_if_missing = false;
  other.cf_paths = layout.all.cf_paths;
  other.level_sst_path_ids = layout.all.level_sst_path_ids;
  other.level_blob_path_ids = layout.all.level_blob_path_ids;
  std::unique_ptr<DB> copy;
  ASSERT_OK(DB::Open(other, main, &copy));
  ASSERT_OK(engine->CreateNewBackup(copy.get(), /*flush_before_backup=*/true));
  EXPECT_EQ(Names(shared).size(), before);
  ASSERT_OK(copy->Put(WriteOptions(), "k", "small"));
  ASSERT_OK(engine->CreateNewBackup(copy.get(), /*flush_before_backup=*/true));
  EXPECT_EQ(Names(shared).size(), before + 1);
  ASSERT_OK(copy->Close());

  // The second backup still is the database as it was.
  const std::string restored = Directory("restored");
  const CopyLayout third = LayoutOf({Directory("third"), restored}, {0}, {1});
  ASSERT_OK(engine->RestoreDBFromBackup(Into(third), 2, restored, restored));
  CheckLayoutCopy(restored, {&third.all});
  CheckOriginal({options});
}

TEST_F(LayoutRestoreTest, WrongLayoutsAreRefused) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  const std::string backups = Directory("backups");
  const std::unique_ptr<BackupEngine> engine = OpenBackups(backups);
  ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  const std::string main = Directory("main");
  const std::string wals = Directory("wals");
  const std::string second = Directory("second");
  ASSERT_OK(env_->CreateDir(main));
  ASSERT_OK(WriteStringToFile(env_, "old", main + "/000099.sst"));
  CopyLayout unknown;
  unknown.column_families["unknown"] = LayoutOf({main, second}, {0}, {}).all;
  for (const CopyLayout& layout :
       {LayoutOf({main}, {0}, {}), LayoutOf({main, second}, {}, {}),
        LayoutOf({main, second}, {2}, {}),
        LayoutOf({main, second}, {0}, {}, {0, 1}),
        LayoutOf({main, main + "/a"}, {0}, {}),
        LayoutOf({second, second + "/a"}, {0}, {}),
        LayoutOf({main, wals}, {0}, {}), LayoutOf({main, wals + "/a"}, {0}, {}),
        LayoutOf({main, backups}, {0}, {}),
        LayoutOf({main, backups + "/a"}, {0}, {}), unknown}) {
    const Status s =
        engine->RestoreDBFromLatestBackup(Into(layout), main, wals);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    // Nothing was changed.
    EXPECT_OK(env_->FileExists(main + "/000099.sst"));
    EXPECT_TRUE(env_->FileExists(second).IsNotFound());
  }
  // The WALs may be in the directory of the DB.
  const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
  ASSERT_OK(engine->RestoreDBFromLatestBackup(Into(layout), main, main));
  CheckLayoutCopy(main, {&layout.all});
}

// The backups may be in another Env, whose files are in the same file system,
// and files may come from other backups.
TEST_F(LayoutRestoreTest, DirectoriesOfAllBackupsAreProtected) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  const std::string backups = Directory("backups");
  const std::string alternate = Directory("alternate");
  BackupEngineOptions engine_options(backups, env_);
  std::unique_ptr<BackupEngine> engine;
  BackupEngine* opened = nullptr;
  ASSERT_OK(BackupEngine::Open(device_env_.get(), engine_options, &opened));
  engine.reset(opened);
  ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  const std::unique_ptr<BackupEngine> other = OpenBackups(alternate);
  const std::string main = Directory("main");
  for (const std::string& directory : {backups, alternate}) {
    RestoreOptions restore =
        Into(LayoutOf({main, directory + "/shared_checksum"}, {0}, {1}));
    restore.alternate_dirs = {other.get()};
    const Status s = engine->RestoreDBFromLatestBackup(restore, main, main);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_NE(s.ToString().find(directory), std::string::npos) << s.ToString();
  }
}

// CURRENT and MANIFEST are gone for good before a file that they name is.
TEST_F(LayoutRestoreTest, DirectoryOfTheDBIsSyncedBeforeFilesOfPathsAreGone) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  const std::unique_ptr<BackupEngine> engine =
      OpenBackups(Directory("backups"));
  ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
  ASSERT_OK(engine->RestoreDBFromLatestBackup(Into(layout), main, main));
  fs_->TakeSteps();
  ASSERT_OK(engine->RestoreDBFromLatestBackup(Into(layout), main, main));
  bool is_current_deleted = false;
  bool is_synced = false;
  bool is_file_deleted = false;
  for (const std::string& step : fs_->TakeSteps()) {
    is_current_deleted |= step == "delete " + CurrentFileName(main);
    is_synced |= is_current_deleted && step == "sync " + main;
    if (step.rfind("delete " + second + "/", 0) == 0) {
      is_file_deleted = true;
      EXPECT_TRUE(is_synced) << step;
    }
  }
  EXPECT_TRUE(is_file_deleted);
}

TEST_F(LayoutRestoreTest, DamagedBackupIsAnError) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  const std::string backups = Directory("backups");
  std::unique_ptr<BackupEngine> engine = OpenBackups(backups);
  const CopyLayout layout =
      LayoutOf({Directory("first"), Directory("second")}, {0}, {1});
  for (const bool is_manifest : {true, false}) {
    const std::string prefix = is_manifest ? "MANIFEST" : "OPTIONS";
    ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
    const std::string directory =
        backups + "/private/" + (is_manifest ? "1" : "2");
    for (const std::string& name : Names(directory)) {
      if (name.rfind(prefix, 0) == 0) {
        std::string contents;
        ASSERT_OK(ReadFileToString(env_, directory + "/" + name, &contents));
        contents[contents.size() / 2] ^= 1;
        ASSERT_OK(WriteStringToFile(env_, contents, directory + "/" + name));
      }
    }
    const std::string main = Directory("main");
    const Status s =
        engine->RestoreDBFromLatestBackup(Into(layout), main, main);
    EXPECT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_NE(s.ToString().find(prefix), std::string::npos) << s.ToString();
  }
}

// A backup of a read-only instance has the MANIFEST as it is, unless it has to
// be changed. An incomplete end was ignored by the instance.
TEST_F(LayoutRestoreTest, IncompleteEndOfTheManifestIsIgnored) {
  for (const ManifestTail tail :
       {ManifestTail::kTornRecord, ManifestTail::kIncompleteGroup}) {
    SCOPED_TRACE(static_cast<int>(tail));
    DestroyAll();
    const Options options = PlainOptions();
    OpenNew({options});
    PutRange(0, 0, kKeys);
    ASSERT_OK(db_->Flush(FlushOptions()));
    Close();
    AppendToManifest(tail);
    std::unique_ptr<DB> read_only;
    ASSERT_OK(OpenReadOnly({options}, &read_only));
    const std::unique_ptr<BackupEngine> engine =
        OpenBackups(Directory("backups"));
    ASSERT_OK(engine->CreateNewBackup(read_only.get()));
    ASSERT_OK(read_only->Close());
    const std::string main = Directory("main");
    const CopyLayout layout = LayoutOf({main, Directory("second")}, {0}, {1});
    ASSERT_OK(engine->RestoreDBFromLatestBackup(Into(layout), main, main));
    ASSERT_OK(Open({options}, /*create_families=*/false));
    CheckLayoutCopy(main, {&layout.all});
  }
}

// Power fails between any two steps of a restore. Afterwards the database is
// complete, or it has no CURRENT and a restore makes it complete.
TEST_F(LayoutRestoreTest, SurvivesPowerLossAtEachStep) {
  const Options options = FeatureOptions(kBlobs, "a", 2, {0, 1}, {0, 1});
  OpenNew({options});
  FillTwoLevels();
  const std::unique_ptr<BackupEngine> engine =
      OpenBackups(Directory("backups"));
  ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  // The backup counts as durable.
  Close();
  fs_->ResetState();
  ASSERT_OK(Open({options}, /*create_families=*/false));
  int steps = 0;
  bool was_complete = false;
  for (bool has_failed = true; has_failed; ++steps) {
    SCOPED_TRACE(steps);
    ASSERT_LT(steps, 200);
    const std::string number = std::to_string(steps);
    const std::string main = Directory("main" + number);
    const CopyLayout layout =
        LayoutOf({Directory("first" + number), Directory("second" + number)},
                 {0, 1}, {0, 1});
    fs_->PowerOffAfter(steps);
    const Status s =
        engine->RestoreDBFromLatestBackup(Into(layout), main, main);
    has_failed = fs_->HasFailed();
    fs_->PowerOffAfter(-1);
    EXPECT_EQ(s.ok(), !has_failed) << s.ToString();
    Crash();
    ASSERT_OK(Open({options}, /*create_families=*/false));
    if (env_->FileExists(CurrentFileName(main)).ok()) {
      was_complete = was_complete || has_failed;
    } else {
      ASSERT_FALSE(s.ok());
      ASSERT_OK(engine->RestoreDBFromLatestBackup(Into(layout), main, main));
    }
    CheckLayoutCopy(main, {&layout.all});
  }
  EXPECT_TRUE(was_complete);
  EXPECT_GE(steps, 10);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
