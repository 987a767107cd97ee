//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of the paths to which flush, recovery, ingestion and import write files
// of column families with several paths, and of the functions that must find
// the files there.

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "db/path_layout/path_test_util.h"
#include "file/filename.h"
#include "file/sst_file_manager_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/listener.h"
#include "rocksdb/sst_file_manager.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Checks that every file that an event names exists.
class ExistingFiles : public EventListener {
 public:
  explicit ExistingFiles(Env* env) : env_(env) {}

  void OnFlushCompleted(DB* /*db*/, const FlushJobInfo& info) override {
    Expect(info.file_path);
    for (const auto& blob : info.blob_file_addition_infos) {
      Expect(blob.blob_file_path);
    }
  }
  void OnTableFileCreated(const TableFileCreationInfo& info) override {
    if (info.status.ok()) {
      Expect(info.file_path);
    }
  }
  void OnTableFileDeleted(const TableFileDeletionInfo& info) override {
    EXPECT_OK(info.status);
    std::lock_guard<std::mutex> lock(mutex_);
    deleted_.push_back(info.file_path);
  }
  std::vector<std::string> Deleted() {
    std::lock_guard<std::mutex> lock(mutex_);
    return deleted_;
  }

 private:
  void Expect(const std::string& path) {
    EXPECT_OK(env_->FileExists(path)) << path;
  }

  Env* const env_;
  std::mutex mutex_;
  std::vector<std::string> deleted_;
};

}  // namespace

class PathPlacementTest : public PathTestBase {
 public:
  PathPlacementTest() : PathTestBase("path_placement_test") {}

  Status FlushFamily(int family) {
    return db_->Flush(FlushOptions(), Handle(family));
  }
  void CompactAll(int family) {
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), Handle(family), nullptr,
                                nullptr));
  }
  using SstIds = std::multiset<uint32_t>;
  using BlobIds = std::set<uint32_t>;
};

TEST_F(PathPlacementTest, FlushPlacesFilesOfSeveralFamilies) {
  const std::vector<Options> options = {
      PathOptions("a", 2, {0}, {1}),           // vertical
      PathOptions("b", 2, {0, 1}, {0, 1}),     // horizontal
      PathOptions("c", 3, {1}, {2}),           //
      PathOptions("d", 4, {3, 2, 1}, {2, 3}),  //
      PathOptions("e", 2, {}, {}),             // none
  };
  const std::vector<uint32_t> sst = {0, 0, 1, 3, 0};
  const std::vector<uint32_t> blob = {1, 0, 2, 2, 0};
  for (const bool atomic_flush : {false, true}) {
    DestroyAll();
    std::vector<Options> opened = options;
    auto listener = std::make_shared<ExistingFiles>(device_env_.get());
    for (Options& o : opened) {
      o.atomic_flush = atomic_flush;
      o.listeners = {listener};
    }
    OpenNew(opened);
    for (int family = 0; family < 5; ++family) {
      PutRange(family, 0, 20, family);
    }
    if (atomic_flush) {
      ASSERT_OK(db_->Flush(FlushOptions(), handles_));
    } else {
      for (int family = 0; family < 5; ++family) {
        ASSERT_OK(FlushFamily(family));
      }
    }
    for (int family = 0; family < 5; ++family) {
      CheckPlacement(family, options[family]);
      EXPECT_EQ(SstPathIds(family, options[family], 0), SstIds{sst[family]});
      EXPECT_EQ(BlobPathIds(family, options[family]), BlobIds{blob[family]});
    }
    ASSERT_OK(VerifyData());
    ASSERT_OK(Open(opened, /*create_families=*/false));
    ASSERT_OK(VerifyData());
    ASSERT_OK(db_->VerifyChecksum());
  }
}

// The files of a failed flush are deleted from their paths.
TEST_F(PathPlacementTest, FailedFlushIsPurgedOnItsPaths) {
  Options options = PathOptions("a", 3, {1}, {2});
  OpenNew({options});
  PutRange(0, 0, 20, 0, /*wal=*/true);
  SyncPoint::GetInstance()->SetCallBack(
      "FlushJob::WriteLevel0Table:s",
      [&](void* s) { *static_cast<Status*>(s) = Status::Aborted("injected"); });
  SyncPoint::GetInstance()->EnableProcessing();
  EXPECT_NOK(FlushFamily(0));
  Close();
  SyncPoint::GetInstance()->DisableProcessing();
  ASSERT_OK(Open({options}, /*create_families=*/false));
  CheckPlacement(0, options);
  EXPECT_EQ(SstPathIds(0, options, 0), SstIds{1});
  EXPECT_EQ(BlobPathIds(0, options), BlobIds{2});
  ASSERT_OK(VerifyData());
}

// If BuildTable() fails after both files were created, it deletes both at once.
TEST_F(PathPlacementTest, FailedBuildDeletesBothFiles) {
  Options options = PathOptions("a", 3, {1}, {2});
  OpenNew({options});
  PutRange(0, 0, 20);
  SyncPoint::GetInstance()->SetCallBack(
      "BuildTable:BeforeOutputValidation", [&](void* /*arg*/) {
        for (uint32_t i = 1; i <= 2; ++i) {
          std::vector<std::string> children;
          EXPECT_OK(env_->GetChildren(PathOf("a", i), &children));
          EXPECT_EQ(children.size(), 1u);
        }
        fs_->PowerOff();
      });
  SyncPoint::GetInstance()->SetCallBack(
      "BuildTable:BeforeDeleteFile",
      [&](void* /*arg*/) { fs_->SetFilesystemActive(true); });
  SyncPoint::GetInstance()->EnableProcessing();
  EXPECT_NOK(FlushFamily(0));
  SyncPoint::GetInstance()->DisableProcessing();
  for (uint32_t i = 0; i < 3; ++i) {
    std::vector<std::string> children;
    EXPECT_OK(env_->GetChildren(PathOf("a", i), &children));
    EXPECT_TRUE(children.empty()) << i;
  }
}

TEST_F(PathPlacementTest, IngestedFilesReachThePathOfTheirLevel) {
  Options options = PathOptions("a", 3, {1, 1, 1, 2}, {0});
  options.level_compaction_dynamic_level_bytes = false;
  for (const bool last_level : {false, true}) {
    for (const bool move : {false, true}) {
      for (const bool same_device : {false, true}) {
        DestroyAll();
        OpenNew({options});
        const uint32_t path_id = last_level ? 2 : 1;
        const std::string directory =
            same_device ? PathOf("a", path_id) : PathOf("external", 0);
        ASSERT_OK(device_env_->CreateDirIfMissing(directory));
        const std::string file = directory + "/file.external";
        SstFileWriter writer(EnvOptions(), options);
        ASSERT_OK(writer.Open(file));
        for (int i = 0; i < 20; ++i) {
          ASSERT_OK(writer.Put(KeyOf(i), ValueOf(i, 0)));
          Expect(0, KeyOf(i), ValueOf(i, 0));
        }
        ASSERT_OK(writer.Finish());
        IngestExternalFileOptions ingestion;
        ingestion.move_files = move;
        ingestion.fail_if_not_bottommost_level = last_level;
        if (!same_device) {
          // A link is impossible here, and a copy is not allowed.
          ingestion.failed_move_fall_back_to_copy = false;
          Status s = db_->IngestExternalFile(Handle(0), {file}, ingestion);
          EXPECT_EQ(s.ok(), !move) << s.ToString();
          ingestion.failed_move_fall_back_to_copy = true;
        }
        if (same_device || move) {
          ASSERT_OK(db_->IngestExternalFile(Handle(0), {file}, ingestion));
        }
        EXPECT_EQ(device_env_->FileExists(file).ok(), !move);
        // The file goes to the last level in all cases, because nothing
        // overlaps there.
        EXPECT_EQ(SstPathIds(0, options, 3), SstIds{path_id});
        ASSERT_OK(VerifyData());
        ASSERT_OK(Open({options}, /*create_families=*/false));
        ASSERT_OK(VerifyData());
        if (!last_level) {
          // The file is misplaced, and compaction moves it.
          CompactRangeOptions compact;
          compact.bottommost_level_compaction =
              BottommostLevelCompaction::kForce;
          ASSERT_OK(db_->CompactRange(compact, Handle(0), nullptr, nullptr));
        }
        CheckPlacement(0, options);
        ASSERT_OK(VerifyData());
      }
    }
  }
}

// Files are ingested to the paths of each family, even if the path ids are
// beyond the DB's own list of paths.
TEST_F(PathPlacementTest, IngestionUsesThePathsOfEachFamily) {
  const std::vector<Options> options = {PathOptions("a", 1, {}, {}),
                                        PathOptions("b", 4, {3}, {0}),
                                        PathOptions("c", 3, {2}, {0})};
  OpenNew(options);
  const std::string directory = PathOf("external", 0);
  ASSERT_OK(device_env_->CreateDirIfMissing(directory));
  std::vector<IngestExternalFileArg> args(3);
  for (int family = 0; family < 3; ++family) {
    const std::string file = directory + "/" + std::to_string(family) + ".sst";
    SstFileWriter writer(EnvOptions(), options[family]);
    ASSERT_OK(writer.Open(file));
    ASSERT_OK(writer.Put(KeyOf(family), ValueOf(family, 7)));
    ASSERT_OK(writer.Finish());
    Expect(family, KeyOf(family), ValueOf(family, 7));
    args[family].column_family = Handle(family);
    args[family].external_files = {file};
  }
  ASSERT_OK(db_->IngestExternalFiles(args));
  EXPECT_EQ(SstPathIds(0, options[0], 3), SstIds{0});
  EXPECT_EQ(SstPathIds(1, options[1], 3), SstIds{3});
  EXPECT_EQ(SstPathIds(2, options[2], 3), SstIds{2});
  ASSERT_OK(VerifyData());
}

TEST_F(PathPlacementTest, ImportedFilesAreOnThePathsOfTheirLevels) {
  Options source = PathOptions("a", 3, {0, 1, 2}, {});
  source.enable_blob_files = false;
  Options target = PathOptions("b", 4, {3, 2, 1, 0}, {});
  target.enable_blob_files = false;
  for (const bool move : {false, true}) {
    DestroyAll();
    OpenNew({source});
    PutRange(0, 0, 20);
    ASSERT_OK(FlushFamily(0));
    CompactAll(0);
    PutRange(0, 10, 30, 1);
    ASSERT_OK(FlushFamily(0));
    EXPECT_EQ(SstPathIds(0, source, 0), SstIds{0});
    EXPECT_EQ(SstPathIds(0, source, 1), SstIds{1});

    // The files are on two devices, from which no link is possible.
    ASSERT_OK(device_env_->CreateDirIfMissing(PathOf("exports", 0)));
    const std::string export_dir = PathOf("exports", 0) + "/cf";
    Checkpoint* checkpoint = nullptr;
    ExportImportFilesMetaData* exported = nullptr;
    ASSERT_OK(Checkpoint::Create(db_.get(), &checkpoint));
    ASSERT_OK(checkpoint->ExportColumnFamily(Handle(0), export_dir, &exported));
    delete checkpoint;
    EXPECT_EQ(exported->files.size(), 2u);

    ImportColumnFamilyOptions import;
    import.move_files = move;
    ColumnFamilyHandle* handle = nullptr;
    ASSERT_OK(db_->CreateColumnFamilyWithImport(target, "cf1", import,
                                                *exported, &handle));
    delete exported;
    handles_.push_back(handle);
    for (int i = 0; i < 30; ++i) {
      Expect(1, KeyOf(i), ValueOf(i, i < 10 ? 0 : 1));
    }
    CheckPlacement(1, target);
    EXPECT_EQ(SstPathIds(1, target, 0), SstIds{3});
    EXPECT_EQ(SstPathIds(1, target, 1), SstIds{2});
    ASSERT_OK(VerifyData());
    ASSERT_OK(Open({source, target}, /*create_families=*/false));
    ASSERT_OK(VerifyData());
    CheckPlacement(1, target);
  }
}

// One of the two paths is on the device of the exported files. The file that
// goes to the other one has to be copied; this one is linked nevertheless.
TEST_F(PathPlacementTest, ImportLinksFilesOfTheSameDevice) {
  Options source = PathOptions("a", 2, {0, 1}, {});
  source.enable_blob_files = false;
  Options target = PathOptions("b", 2, {0, 1}, {});
  target.enable_blob_files = false;
  const std::string exports = dbname_ + "_exports";
  target.cf_paths[1].path = exports + "/path1";
  OpenNew({source});
  PutRange(0, 0, 20);
  ASSERT_OK(FlushFamily(0));
  CompactAll(0);
  PutRange(0, 10, 30, 1);
  ASSERT_OK(FlushFamily(0));
  ASSERT_OK(DestroyDir(env_, exports));
  ASSERT_OK(device_env_->CreateDirIfMissing(exports));
  Checkpoint* checkpoint = nullptr;
  ExportImportFilesMetaData* exported = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &checkpoint));
  ASSERT_OK(
      checkpoint->ExportColumnFamily(Handle(0), exports + "/cf", &exported));
  delete checkpoint;
  ASSERT_EQ(exported->files.size(), 2u);

  fs_->TakeLinkCount();
  ImportColumnFamilyOptions import;
  import.move_files = true;
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_OK(db_->CreateColumnFamilyWithImport(target, "cf1", import, *exported,
                                              &handle));
  delete exported;
  handles_.push_back(handle);
  EXPECT_EQ(fs_->TakeLinkCount(), 1);
  for (int i = 0; i < 30; ++i) {
    Expect(1, KeyOf(i), ValueOf(i, i < 10 ? 0 : 1));
  }
  CheckPlacement(1, target);
  ASSERT_OK(VerifyData());
  Close();
  ASSERT_OK(DestroyDir(env_, exports));
}

TEST_F(PathPlacementTest, DestroyDBDeletesDirectoriesInsideOfOthers) {
  Options options = PathOptions("a", 2, {0, 1}, {});
  options.cf_paths[0].path = dbname_ + "/fast";
  options.cf_paths[1].path = dbname_ + "/fast/slow";
  OpenNew({options});
  PutRange(0, 0, 20);
  ASSERT_OK(FlushFamily(0));
  CompactAll(0);
  Close();
  ASSERT_OK(DestroyDB(dbname_, options));
  EXPECT_TRUE(env_->FileExists(dbname_).IsNotFound());
}

TEST_F(PathPlacementTest, ObsoleteFilesAreDeletedWhereTheyLie) {
  Options options = PathOptions("a", 4, {0, 1, 2, 3}, {3, 2, 1, 0});
  auto listener = std::make_shared<ExistingFiles>(device_env_.get());
  options.listeners = {listener};
  OpenNew({options});
  for (int level = 0; level < 3; ++level) {
    for (int round = 0; round < 2; ++round) {
      PutRange(0, 0, 20, level * 2 + round);
      ASSERT_OK(FlushFamily(0));
      CheckPlacement(0, options);
    }
    CompactRangeOptions compact;
    compact.change_level = false;
    ASSERT_OK(db_->CompactRange(compact, Handle(0), nullptr, nullptr));
    CheckPlacement(0, options);
  }
  ASSERT_OK(VerifyData());
  ASSERT_FALSE(listener->Deleted().empty());
}

TEST_F(PathPlacementTest, SstFileManagerTracksEveryPathOnce) {
  Options options = PathOptions("a", 4, {1, 2}, {3, 0});
  const auto on_disk = [&] {
    std::map<std::string, uint64_t> files;
    for (const DbPath& path : options.cf_paths) {
      std::vector<std::string> children;
      EXPECT_OK(device_env_->GetChildren(path.path, &children));
      for (const std::string& child : children) {
        const std::string file = path.path + "/" + child;
        EXPECT_OK(device_env_->GetFileSize(file, &files[file]));
      }
    }
    return files;
  };
  const auto tracked = [&] {
    std::map<std::string, uint64_t> files;
    for (const auto& file : options.sst_file_manager->GetTrackedFiles()) {
      files.insert(file);
    }
    return files;
  };
  const auto check = [&] {
    // A job deletes its inputs after it has notified the threads that wait for
    // it.
    WaitForCompactOptions wait;
    wait.wait_for_purge = true;
    EXPECT_OK(db_->WaitForCompact(wait));
    EXPECT_EQ(tracked(), on_disk());
    EXPECT_GT(options.sst_file_manager->GetTotalSize(), 0);
  };
  // A path may be spelled with more slashes than it needs.
  for (const char* slashes : {"/", "//"}) {
    for (const char* end : {"", "/"}) {
      SCOPED_TRACE(slashes + std::string("*") + end);
      DestroyAll();
      options.cf_paths = PathOptions("a", 4, {}, {}).cf_paths;
      for (DbPath& path : options.cf_paths) {
        path.path.replace(path.path.rfind('/'), 1, slashes);
        path.path += end;
      }
      options.sst_file_manager.reset(NewSstFileManager(device_env_.get()));
      OpenNew({options});
      for (int round = 0; round < 3; ++round) {
        PutRange(0, 0, 30, round);
        ASSERT_OK(FlushFamily(0));
        check();
      }
      CompactAll(0);
      check();
      PutRange(0, 0, 10, 3);
      ASSERT_OK(FlushFamily(0));
      ASSERT_OK(Open({options}, /*create_families=*/false));
      check();
      Close();
      EXPECT_TRUE(tracked().empty());
      EXPECT_EQ(options.sst_file_manager->GetTotalSize(), 0);
    }
  }
}

// The database is opened by another name of the directory that is its first
// path.
TEST_F(PathPlacementTest, SstFileManagerTracksTheDirectoryOfTheDatabaseOnce) {
  Options options = PathOptions("a", 2, {0}, {1});
  options.cf_paths[0].path = dbname_;
  OpenNew({options});
  PutRange(0, 0, 30);
  ASSERT_OK(FlushFamily(0));
  Close();
  options.sst_file_manager.reset(NewSstFileManager(device_env_.get()));
  options.env = device_env_.get();
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, dbname_ + "/.", &db));
  ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(&metadata);
  EXPECT_EQ(metadata.blob_files.size(), 1u);
  EXPECT_EQ(options.sst_file_manager->GetTotalSize(),
            metadata.size + metadata.blob_file_size);
  EXPECT_EQ(options.sst_file_manager->GetTrackedFiles().size(), 2u);
}

// Files that an SstFileManager has not deleted yet are trash, which only an
// open for writing deletes. The process that reads may be another one than the
// one that deletes them, at a rate of its own.
TEST_F(PathPlacementTest, ReadOnlyOpensLeaveTrash) {
  for (const bool has_manager : {false, true}) {
    SCOPED_TRACE(has_manager);
    DestroyAll();
    Options options = PathOptions("a", 2, {0, 1}, {1});
    options.wal_dir = PathOf("wals", 0);
    OpenNew({options});
    PutRange(0, 0, 20);
    ASSERT_OK(FlushFamily(0));
    Close();
    const std::vector<std::string> trash = {
        dbname_ + "/000900.sst.trash", PathOf("a", 0) + "/000901.sst.trash",
        PathOf("a", 1) + "/000902.blob.trash",
        options.wal_dir + "/000903.log.trash"};
    for (const std::string& file : trash) {
      ASSERT_OK(WriteStringToFile(env_, "trash", file, /*should_sync=*/false));
    }
    const auto wait = [&options] {
      if (options.sst_file_manager != nullptr) {
        static_cast<SstFileManagerImpl*>(options.sst_file_manager.get())
            ->WaitForEmptyTrash();
      }
    };
    if (has_manager) {
      options.sst_file_manager.reset(NewSstFileManager(device_env_.get()));
    }

    const auto check = [&](const std::unique_ptr<DB>& db) {
      std::string value;
      EXPECT_OK(db->Get(ReadOptions(), KeyOf(7), &value));
      EXPECT_EQ(value, ValueOf(7, 0));
    };
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::OpenForReadOnly(options, dbname_, &db));
    check(db);
    db.reset();
    Options secondary = options;
    secondary.max_open_files = -1;
    ASSERT_OK(
        DB::OpenAsSecondary(secondary, dbname_, PathOf("secondary", 0), &db));
    check(db);
    ASSERT_OK(db->TryCatchUpWithPrimary());
    db.reset();
    std::vector<std::string> families;
    ASSERT_OK(DB::ListColumnFamilies(options, dbname_, &families));
    wait();
    for (const std::string& file : trash) {
      EXPECT_OK(env_->FileExists(file)) << file;
    }

    ASSERT_OK(Open({options}, /*create_families=*/false));
    ASSERT_OK(VerifyData());
    wait();
    for (const std::string& file : trash) {
      EXPECT_TRUE(env_->FileExists(file).IsNotFound()) << file;
    }
    Close();
  }
}

TEST_F(PathPlacementTest, LiveFilesChecksumsAndDestroyFindEveryPath) {
  const std::vector<Options> options = {PathOptions("a", 3, {1, 2}, {0}),
                                        PathOptions("b", 4, {3}, {2})};
  OpenNew(options);
  for (int family = 0; family < 2; ++family) {
    PutRange(family, 0, 20);
    ASSERT_OK(FlushFamily(family));
    CompactAll(family);
    PutRange(family, 0, 20, 1);
    ASSERT_OK(FlushFamily(family));
  }
  std::vector<LiveFileStorageInfo> files;
  ASSERT_OK(
      db_->GetLiveFilesStorageInfo(LiveFilesStorageInfoOptions(), &files));
  std::set<std::string> directories;
  for (const LiveFileStorageInfo& file : files) {
    if (file.file_type == kTableFile || file.file_type == kBlobFile) {
      uint64_t size = 0;
      ASSERT_OK(device_env_->GetFileSize(
          file.directory + "/" + file.relative_filename, &size));
      EXPECT_EQ(size, file.size);
      directories.insert(file.directory);
    }
  }
  EXPECT_EQ(directories, (std::set<std::string>{PathOf("a", 0), PathOf("a", 1),
                                                PathOf("a", 2), PathOf("b", 2),
                                                PathOf("b", 3)}));
  ASSERT_OK(db_->VerifyChecksum());

  // VerifyChecksum() finds a damaged table on another path.
  for (const LiveFileStorageInfo& file : files) {
    if (file.file_type == kTableFile && file.directory == PathOf("b", 3)) {
      ASSERT_OK(test::CorruptFile(env_,
                                  file.directory + "/" + file.relative_filename,
                                  0, 10, /*verify_checksum=*/false));
      break;
    }
  }
  ASSERT_OK(Open(options, /*create_families=*/false));
  EXPECT_TRUE(db_->VerifyChecksum().IsCorruption());

  Close();
  ASSERT_OK(
      DestroyDB(dbname_, options[0],
                {{kDefaultColumnFamilyName, options[0]}, {"cf1", options[1]}}));
  for (const char* prefix : {"a", "b"}) {
    for (uint32_t i = 0; i < (prefix[0] == 'a' ? 3u : 4u); ++i) {
      std::vector<std::string> children;
      Status s = env_->GetChildren(PathOf(prefix, i), &children);
      EXPECT_TRUE(s.IsNotFound() || children.empty()) << PathOf(prefix, i);
    }
  }
}

TEST_F(PathPlacementTest, OpenWithFewerPathsNamesTheMissingFile) {
  for (const bool blob : {false, true}) {
    DestroyAll();
    Options options = PathOptions("a", 3, {blob ? 0u : 2u}, {blob ? 2u : 0u});
    OpenNew({options});
    PutRange(0, 0, 20);
    ASSERT_OK(FlushFamily(0));
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(Handle(0), &metadata);
    const uint64_t number = blob ? metadata.blob_files[0].blob_file_number
                                 : metadata.levels[0].files[0].file_number;
    Options fewer = options;
    fewer.cf_paths.resize(2);
    fewer.level_sst_path_ids.clear();
    fewer.level_blob_path_ids.clear();
    for (const bool async : {false, true}) {
      fewer.open_files_async = async;
      fewer.skip_stats_update_on_db_open = async;
      Status s = Open({fewer}, /*create_families=*/false);
      EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
      for (const std::string& part :
           {"#" + std::to_string(number), std::string("path id 2"),
            std::string("2 paths"), std::string(blob ? "blob" : "table")}) {
        EXPECT_NE(s.ToString().find(part), std::string::npos)
            << s.ToString() << " lacks " << part;
      }
    }
    // If it was moved to a path that is not the last one, the error says where
    // it is and where it belongs.
    const auto name = [&](uint32_t path_id) {
      return blob ? BlobFileName(PathOf("a", path_id), number)
                  : MakeTableFileName(PathOf("a", path_id), number);
    };
    ASSERT_OK(env_->RenameFile(name(2), name(0)));
    const Status s = Open({fewer}, /*create_families=*/false);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    for (const std::string& part :
         {"on another one: " + name(0), "move the file to " + name(1)}) {
      EXPECT_NE(s.ToString().find(part), std::string::npos)
          << s.ToString() << " lacks " << part;
    }
    // After it was moved to the last remaining path, the file is found, as in
    // RocksDB.
    ASSERT_OK(env_->RenameFile(name(0), name(1)));
    fewer.open_files_async = false;
    fewer.skip_stats_update_on_db_open = false;
    ASSERT_OK(Open({fewer}, /*create_families=*/false));
    ASSERT_OK(VerifyData());
    CompactRangeOptions compact;
    compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(compact, Handle(0), nullptr, nullptr));
    ASSERT_OK(VerifyData());
    CheckPlacement(0, fewer);
  }
}

TEST_F(PathPlacementTest, BestEffortsRecoveryFindsEveryPath) {
  Options options = PathOptions("a", 3, {0, 1}, {2});
  options.best_efforts_recovery = true;
  OpenNew({options});
  PutRange(0, 0, 20);
  ASSERT_OK(FlushFamily(0));
  CompactAll(0);
  EXPECT_EQ(SstPathIds(0, options, 1), SstIds{1});
  PutRange(0, 10, 30, 1);
  ASSERT_OK(FlushFamily(0));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  CheckPlacement(0, options);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
