//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Checkpoints and backups of databases with several paths: the copy is in one
// directory, and has nothing to do with the directories of the original.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "db/path_layout/copy_into_directory.h"
#include "db/path_layout/path_copy_test_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

class PathCopyTest : public PathCopyTestBase {
 protected:
  PathCopyTest() : PathCopyTestBase("path_copy_test") {}

  // As the base class; and the copy has no path ids.
  void CheckNamesNoOther(const std::string& directory) {
    PathCopyTestBase::CheckNamesNoOther(directory);
    for (const std::string& name : Names(directory)) {
      if (name.rfind("OPTIONS", 0) == 0) {
        std::string contents;
        ASSERT_OK(ReadFileToString(env_, directory + "/" + name, &contents));
        EXPECT_EQ(contents.find("path_id"), std::string::npos) << name;
      }
    }
  }
  // Opens the copy for writing, compares its contents with the database's, and
  // works in it.
  void CheckCopy(const std::string& directory,
                 const std::vector<Options>& options) {
    CheckNamesNoOther(directory);
    std::vector<ColumnFamilyDescriptor> families;
    for (size_t i = 0; i < options.size(); ++i) {
      families.emplace_back(
          i == 0 ? kDefaultColumnFamilyName : "cf" + std::to_string(i),
          WithoutPaths(options[i]));
    }
    DBOptions db_options(options[0]);
    db_options.create_if_missing = false;
    std::unique_ptr<DB> copy;
    std::vector<ColumnFamilyHandle*> handles;
    ASSERT_OK(DB::Open(db_options, directory, families, &handles, &copy));
    for (size_t i = 0; i < handles.size(); ++i) {
      EXPECT_EQ(Entries(db_.get(), Handle(static_cast<int>(i))),
                Entries(copy.get(), handles[i]));
      ASSERT_OK(copy->Put(WriteOptions(), handles[i], "of the copy", "x"));
      ASSERT_OK(copy->Flush(FlushOptions(), handles[i]));
      CompactRangeOptions compact;
      compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
      ASSERT_OK(copy->CompactRange(compact, handles[i], nullptr, nullptr));
      // All files are in the directory of the copy.
      ColumnFamilyMetaData metadata;
      copy->GetColumnFamilyMetaData(handles[i], &metadata);
      for (const LevelMetaData& level : metadata.levels) {
        for (const SstFileMetaData& file : level.files) {
          EXPECT_EQ(file.directory, directory);
        }
      }
      for (const BlobMetaData& file : metadata.blob_files) {
        EXPECT_EQ(file.blob_file_path, directory);
      }
    }
    ASSERT_OK(copy->VerifyChecksum());
    for (ColumnFamilyHandle* handle : handles) {
      ASSERT_OK(copy->DestroyColumnFamilyHandle(handle));
    }
    ASSERT_OK(copy->Close());
  }
};

TEST_F(PathCopyTest, CheckpointIsInOneDirectory) {
  for (int feature = 0; feature < kNumFeatures; ++feature) {
    for (const bool wal : {false, true}) {
      SCOPED_TRACE(std::to_string(feature) + std::to_string(wal));
      DestroyAll();
      const std::vector<Options> options = {
          PlainOptions(),
          FeatureOptions(static_cast<Feature>(feature), "b", 3, {0, 1}, {2})};
      OpenNew(options);
      Fill(wal);
      const std::string directory = Directory("checkpoint");
      ASSERT_OK(MakeCheckpoint(directory, wal ? UINT64_MAX : 0));
      CheckCopy(directory, options);
      CheckOriginal(options);
    }
  }
}

TEST_F(PathCopyTest, BackupIsInOneDirectory) {
  for (int feature = 0; feature < kNumFeatures; ++feature) {
    SCOPED_TRACE(feature);
    DestroyAll();
    const std::vector<Options> options = {
        PlainOptions(),
        FeatureOptions(static_cast<Feature>(feature), "b", 3, {0, 1}, {2})};
    OpenNew(options);
    Fill(/*wal=*/false);
    const std::string directory = Directory("backup");
    const std::string restored = Directory("restored");
    const std::unique_ptr<BackupEngine> engine = OpenBackups(directory);
    ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
    // The second backup has new files alone beside those of the first one.
    PutRange(1, 3 * kKeys, 4 * kKeys);
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(1)));
    const size_t shared = Names(directory + "/shared_checksum").size();
    ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
    const size_t added = Names(directory + "/shared_checksum").size() - shared;
    EXPECT_GE(added, 1U);
    EXPECT_LE(added, 2U);
    ASSERT_OK(engine->VerifyBackup(2, /*verify_with_checksum=*/true));
    ASSERT_OK(engine->RestoreDBFromLatestBackup(restored, restored));
    CheckCopy(restored, options);
    CheckOriginal(options);
  }
}

// The copy has no path id, so that it can be opened with paths of its own.
TEST_F(PathCopyTest, PathsOfTheCopyAreItsOwn) {
  const Options options = PathOptions("a", 3, {1, 2}, {2, 0});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  const std::string directory = Directory("checkpoint");
  ASSERT_OK(MakeCheckpoint(directory));
  Close();
  Options other = WithoutPaths(options);
  other.cf_paths = {{directory, 0}, {Directory("second"), 0}};
  other.level_sst_path_ids = {1};
  other.create_if_missing = false;
  std::unique_ptr<DB> copy;
  ASSERT_OK(DB::Open(other, directory, &copy));
  std::string value;
  ASSERT_OK(copy->Get(ReadOptions(), KeyOf(1), &value));
  EXPECT_EQ(value, ValueOf(1, 0));
  ASSERT_OK(copy->Close());
}

// A database without a layout can have files on several paths, and one with a
// layout can have all files in one directory.
TEST_F(PathCopyTest, LayoutAndPathsDoNotNeedEachOther) {
  for (const bool has_layout : {false, true}) {
    SCOPED_TRACE(has_layout);
    DestroyAll();
    Options options = PathOptions("a", 2, {}, {});
    if (has_layout) {
      options.cf_paths[0].path = dbname_;
      options.level_sst_path_ids = {0};
      options.level_blob_path_ids = {0};
    } else {
      options.cf_paths[0].target_size = 0;
    }
    OpenNew({options});
    PutRange(0, 0, kKeys);
    ASSERT_OK(db_->Flush(FlushOptions()));
    const std::string directory = Directory("checkpoint");
    ASSERT_OK(MakeCheckpoint(directory));
    CheckCopy(directory, {options});
    CheckOriginal({options});
  }
}

// Files that were moved to one path keep their path ids, but not in a copy.
TEST_F(PathCopyTest, CopyHasNoPathIdsOfFilesThatWereMovedToOnePath) {
  const Options options = FeatureOptions(kMapAndDeltas, "a", 2, {1}, {1});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  Close();
  for (const std::string& name : Names(PathOf("a", 1))) {
    uint64_t number = 0;
    FileType type = kTempFile;
    if (ParseFileName(name, &number, &type)) {
      ASSERT_OK(env_->RenameFile(PathOf("a", 1) + "/" + name,
                                 PathOf("a", 0) + "/" + name));
    }
  }
  Options one_path = WithoutPaths(options);
  one_path.cf_paths = {options.cf_paths[0]};
  ASSERT_OK(Open({one_path}, /*create_families=*/false));
  const std::string directory = Directory("checkpoint");
  ASSERT_OK(MakeCheckpoint(directory));
  // A path id that the copy had kept would stand for the second path.
  Options two_paths = WithoutPaths(options);
  two_paths.create_if_missing = false;
  two_paths.cf_paths.emplace_back(directory, 1 << 30);
  two_paths.cf_paths.emplace_back(Directory("second"), 1 << 30);
  std::unique_ptr<DB> copy;
  ASSERT_OK(DB::Open(two_paths, directory, &copy));
  EXPECT_EQ(Entries(db_.get(), Handle(0)),
            Entries(copy.get(), copy->DefaultColumnFamily()));
  ASSERT_OK(copy->Close());
}

// The OPTIONS file of the copy can be used as it is: it does not lead to the
// directories of the original, nor to its WALs and info logs.
TEST_F(PathCopyTest, OptionsFileLeadsToTheCopy) {
  Options options = PathOptions("a", 2, {0}, {1});
  options.wal_dir = Directory("wals");
  options.db_log_dir = Directory("logs");
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  PutRange(0, kKeys, 2 * kKeys, 0, /*wal=*/true);
  const std::string directory = Directory("checkpoint");
  ASSERT_OK(MakeCheckpoint(directory, /*log_size_for_flush=*/UINT64_MAX));
  CheckNamesNoOther(directory);
  Close();

  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> families;
  ConfigOptions config;
  config.env = device_env_.get();
  ASSERT_OK(LoadLatestOptions(config, directory, &db_options, &families));
  EXPECT_EQ(db_options.wal_dir, "");
  EXPECT_EQ(db_options.db_log_dir, "");
  ASSERT_EQ(families.size(), 1U);
  EXPECT_TRUE(families[0].options.cf_paths.empty());
  std::unique_ptr<DB> copy;
  std::vector<ColumnFamilyHandle*> handles;
  ASSERT_OK(DB::Open(db_options, directory, families, &handles, &copy));
  for (int i = 0; i < 2 * kKeys; ++i) {
    std::string value;
    ASSERT_OK(copy->Get(ReadOptions(), handles[0], KeyOf(i), &value));
    EXPECT_EQ(value, ValueOf(i, 0));
  }
  ASSERT_OK(copy->DestroyColumnFamilyHandle(handles[0]));
  ASSERT_OK(copy->Close());
  ASSERT_OK(Open({options}, /*create_families=*/false));
  CheckOriginal({options});
}

// A read-only open with plain options does not know of the layout, but the
// OPTIONS file does.
TEST_F(PathCopyTest, ReadOnlyInstanceMayHaveOtherOptions) {
  Options options = PathOptions("a", 2, {0, 1}, {0, 1});
  options.cf_paths[0].path = dbname_;
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  Close();
  std::unique_ptr<DB> read_only;
  ASSERT_OK(DB::OpenForReadOnly(WithoutPaths(options), dbname_, &read_only));
  Checkpoint* created = nullptr;
  ASSERT_OK(Checkpoint::Create(read_only.get(), &created));
  const std::unique_ptr<Checkpoint> checkpoint(created);
  const std::string directory = Directory("checkpoint");
  ASSERT_OK(checkpoint->CreateCheckpoint(directory));
  ASSERT_OK(read_only->Close());
  ASSERT_OK(Open({options}, /*create_families=*/false));
  CheckCopy(directory, {options});
  CheckOriginal({options});
}

// A read-only instance ignores an incomplete end of the MANIFEST, and so does a
// copy that is made of it.
TEST_F(PathCopyTest, ReadOnlyInstanceIgnoresTheEndOfTheManifest) {
  for (const ManifestTail tail :
       {ManifestTail::kNone, ManifestTail::kTornRecord,
        ManifestTail::kIncompleteGroup}) {
    for (const Feature feature : {kBlobs, kMapAndDeltas}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(tail)) +
                   std::to_string(feature));
      DestroyAll();
      const std::vector<Options> options = {
          PlainOptions(), FeatureOptions(feature, "b", 3, {0, 1}, {2})};
      OpenNew(options);
      Fill(/*wal=*/false);
      Close();
      AppendToManifest(tail);
      std::unique_ptr<DB> read_only;
      ASSERT_OK(OpenReadOnly(options, &read_only));
      Checkpoint* created = nullptr;
      ASSERT_OK(Checkpoint::Create(read_only.get(), &created));
      const std::unique_ptr<Checkpoint> checkpoint(created);
      const std::string directory = Directory("checkpoint");
      ASSERT_OK(checkpoint->CreateCheckpoint(directory));
      const std::unique_ptr<BackupEngine> engine =
          OpenBackups(Directory("backup"));
      ASSERT_OK(engine->CreateNewBackup(read_only.get()));
      ASSERT_OK(read_only->Close());
      const std::string restored = Directory("restored");
      ASSERT_OK(engine->RestoreDBFromLatestBackup(restored, restored));
      ASSERT_OK(Open(options, /*create_families=*/false));
      CheckCopy(directory, options);
      CheckCopy(restored, options);
      CheckOriginal(options);
    }
  }
}

// Files of the device of the copy are linked, although those of other devices
// have to be copied.
TEST_F(PathCopyTest, FilesAreLinkedWhereTheDeviceIsTheSame) {
  Options options = PathOptions("a", 2, {1}, {0});
  options.cf_paths[0].path = dbname_;
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  const std::string directory = Directory("checkpoint");
  ASSERT_OK(MakeCheckpoint(directory));
  CheckLinks(directory, /*of_ssts=*/1, /*of_blobs=*/2);
  CheckCopy(directory, {options});
  CheckOriginal({options});
}

// A copy is complete when the call returns, also after a loss of power.
TEST_F(PathCopyTest, CheckpointSurvivesPowerLoss) {
  const Options options = FeatureOptions(kMapAndDeltas, "a", 3, {0, 1}, {2});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  ASSERT_OK(db_->Merge(WriteOptions(), KeyOf(3), "m"));
  Expect(0, KeyOf(3), ValueOf(3, 0) + ",m");
  ASSERT_OK(db_->Flush(FlushOptions()));
  const std::string directory = Directory("checkpoint");
  ASSERT_OK(MakeCheckpoint(directory));
  Crash();
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  CheckCopy(directory, {options});
  CheckOriginal({options});
}

// Jobs and SetOptions() run between the steps of a copy.
TEST_F(PathCopyTest, CopiesBesideJobsAndNewLayouts) {
  Options options = FeatureOptions(kMap, "a", 3, {0, 1}, {2});
  options.disable_auto_compactions = false;
  options.level0_file_num_compaction_trigger = 2;
  options.blob_gc_space_amp_limit = 1.1;
  OpenNew({options});
  CheckCopiesBesideJobs(/*with_merges=*/false, [&](int i) {
    // The file system of the test remembers files of a directory that was
    // deleted, such as one that an earlier copy has written.
    const std::string directory = Directory("checkpoint" + std::to_string(i));
    EXPECT_OK(MakeCheckpoint(directory, i % 2 == 0 ? 0 : UINT64_MAX));
    CheckNamesNoOther(directory);
    Options copied = WithoutPaths(options);
    copied.create_if_missing = false;
    std::unique_ptr<DB> copy;
    EXPECT_OK(DB::Open(copied, directory, &copy));
    return copy;
  });
}

TEST_F(PathCopyTest, DamagedManifestIsAnError) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  std::vector<std::string> live;
  uint64_t size = 0;
  ASSERT_OK(db_->GetLiveFiles(live, &size));
  for (const std::string& file : live) {
    if (file.rfind("/MANIFEST", 0) == 0) {
      std::string contents;
      ASSERT_OK(ReadFileToString(env_, dbname_ + file, &contents));
      contents[contents.size() / 2] ^= 1;
      ASSERT_OK(WriteStringToFile(env_, contents, dbname_ + file));
    }
  }
  const std::string directory = Directory("checkpoint");
  const Status s = MakeCheckpoint(directory);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find("MANIFEST"), std::string::npos) << s.ToString();
  EXPECT_TRUE(env_->FileExists(directory).IsNotFound());
  EXPECT_TRUE(env_->FileExists(directory + ".tmp").IsNotFound());
}

// An error with a file of an upper level is the result of the export, although
// files of other levels follow.
TEST_F(PathCopyTest, ErrorEndsAnExport) {
  Options options = PathOptions("a", 2, {0, 1}, {});
  options.enable_blob_files = false;
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  ASSERT_OK(
      db_->CompactRange(CompactRangeOptions(), Handle(0), nullptr, nullptr));
  PutRange(0, 0, kKeys, 1);
  ASSERT_OK(db_->Flush(FlushOptions()));
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(Handle(0), &metadata);
  ASSERT_EQ(metadata.levels[0].files.size(), 1U);
  const std::string lost =
      PathOf("a", 0) + "/" + metadata.levels[0].files[0].relative_filename;
  ASSERT_OK(env_->RenameFile(lost, lost + "_away"));
  const std::string directory = Directory("export");
  Checkpoint* created = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &created));
  const std::unique_ptr<Checkpoint> checkpoint(created);
  ExportImportFilesMetaData* exported = nullptr;
  EXPECT_NOK(checkpoint->ExportColumnFamily(Handle(0), directory, &exported));
  EXPECT_EQ(exported, nullptr);
  EXPECT_TRUE(env_->FileExists(directory).IsNotFound());
  ASSERT_OK(env_->RenameFile(lost + "_away", lost));
  ASSERT_OK(checkpoint->ExportColumnFamily(Handle(0), directory, &exported));
  delete exported;
}

// An export has no blob files, so the import would have keys without values.
// Following the message helps.
TEST_F(PathCopyTest, ExportOfSeparatedValuesIsRefused) {
  OpenNew({PathOptions("a", 2, {0}, {1})});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  Checkpoint* created = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &created));
  const std::unique_ptr<Checkpoint> checkpoint(created);
  const std::string directory = Directory("export");
  ExportImportFilesMetaData* exported = nullptr;
  const Status s =
      checkpoint->ExportColumnFamily(Handle(0), directory, &exported);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_NE(s.ToString().find("blob files"), std::string::npos) << s.ToString();
  EXPECT_EQ(exported, nullptr);
  EXPECT_TRUE(env_->FileExists(directory).IsNotFound());

  ASSERT_OK(db_->SetOptions(Handle(0), {{"enable_blob_files", "false"}}));
  CompactRangeOptions compact;
  compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  compact.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::kForce;
  compact.blob_garbage_collection_age_cutoff = 1;
  ASSERT_OK(db_->CompactRange(compact, Handle(0), nullptr, nullptr));
  ASSERT_OK(checkpoint->ExportColumnFamily(Handle(0), directory, &exported));
  Options target = PathOptions("b", 1, {}, {});
  target.enable_blob_files = false;
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_OK(db_->CreateColumnFamilyWithImport(
      target, "cf1", ImportColumnFamilyOptions(), *exported, &handle));
  delete exported;
  handles_.push_back(handle);
  for (int i = 0; i < kKeys; ++i) {
    Expect(1, KeyOf(i), ValueOf(i, 0));
  }
  ASSERT_OK(VerifyData());
}

TEST_F(PathCopyTest, PairsOfDirectoriesAreLinkableByThemselves) {
  LinkableDirectories linkable;
  EXPECT_TRUE(linkable.MayLink("/a"));
  EXPECT_TRUE(linkable.MayLink("/a", "/b"));
  linkable.Refuse("/a");
  linkable.Refuse("/a", "/b");
  EXPECT_FALSE(linkable.MayLink("/a"));
  EXPECT_TRUE(linkable.MayLink("/b"));
  EXPECT_FALSE(linkable.MayLink("/a", "/b"));
  EXPECT_TRUE(linkable.MayLink("/a", "/c"));
  EXPECT_TRUE(linkable.MayLink("/c", "/b"));
  EXPECT_TRUE(linkable.MayLink("/b", "/a"));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
