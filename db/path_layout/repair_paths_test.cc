//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/repair_paths.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "db/blob/blob_log_format.h"
#include "db/column_family.h"
#include "db/path_layout/path_test_util.h"
#include "db/path_layout/repair_env.h"
#include "db/version_set.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/db.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class RepairPathsTest : public PathTestBase {
 public:
  RepairPathsTest() : PathTestBase("repair_paths_test") {}

  Status FlushFamily(int family) {
    return db_->Flush(FlushOptions(), Handle(family));
  }

  Status Repair(const std::vector<Options>& options) {
    std::vector<ColumnFamilyDescriptor> families;
    for (size_t i = 0; i < options.size(); ++i) {
      families.emplace_back(
          i == 0 ? kDefaultColumnFamilyName : "cf" + std::to_string(i),
          options[i]);
    }
    return RepairDB(dbname_, DBOptions(options[0]), families);
  }

  // Returns BlobReferenceInfo::path_mask of all SST files of `family`.
  std::multiset<uint32_t> BlobPathMasks(int family) {
    const VersionStorageInfo& files =
        *static_cast<ColumnFamilyHandleImpl*>(Handle(family))
             ->cfd()
             ->current()
             ->storage_info();
    std::multiset<uint32_t> masks;
    for (int level = 0; level < files.num_levels(); ++level) {
      for (const FileMetaData* file : files.LevelFiles(level)) {
        masks.insert(file->blob_refs.path_mask);
      }
    }
    return masks;
  }

  // Returns the part of a name behind its last slash.
  static std::string Base(const std::string& name) {
    return name.substr(name.rfind('/') + 1);
  }

  // Returns the only blob file of `directory`.
  std::string BlobFileIn(const std::string& directory) {
    std::vector<std::string> children;
    EXPECT_OK(env_->GetChildren(directory, &children));
    std::string found;
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kWalFile;
      if (ParseFileName(child, &number, &type) && type == kBlobFile) {
        EXPECT_EQ(found, "");
        found = directory + "/" + child;
      }
    }
    EXPECT_NE(found, "");
    return found;
  }

  // Checks that no open mode accepts the database as empty or complete.
  void ExpectRefused(const std::vector<Options>& options) {
    for (bool create_if_missing : {false, true}) {
      for (bool best_efforts_recovery : {false, true}) {
        std::vector<Options> refused = options;
        refused[0].create_if_missing = create_if_missing;
        refused[0].best_efforts_recovery = best_efforts_recovery;
        EXPECT_NOK(Open(refused, /*create_families=*/false))
            << create_if_missing << best_efforts_recovery;
      }
    }
  }

  void LoseManifest() {
    std::vector<std::string> children;
    ASSERT_OK(env_->GetChildren(dbname_, &children));
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kWalFile;
      if (ParseFileName(child, &number, &type) && type == kDescriptorFile) {
        ASSERT_OK(env_->DeleteFile(dbname_ + "/" + child));
      }
    }
  }

  // Opens a new database with twenty flushed keys in each of its two families.
  void OpenFilled(const Options& a, const Options& b) {
    OpenNew({a, b});
    for (int family = 0; family < 2; ++family) {
      PutRange(family, 0, 20, family);
      ASSERT_OK(FlushFamily(family));
    }
  }

  // Leaves a closed database of one SST file and its blobs without a MANIFEST.
  void LoadAndLoseManifest(const Options& options) {
    OpenNew({options});
    PutRange(0, 0, 20);
    ASSERT_OK(FlushFamily(0));
    Close();
    LoseManifest();
  }
};

// Repair recovers three families that together have more paths than a path id
// can count, with SST files on several levels, blob files and a WAL.
TEST_F(RepairPathsTest, RecoversSeveralFamilies) {
  const std::vector<Options> options = {PathOptions("a", 2, {0}, {1}),
                                        PathOptions("b", 4, {3, 2}, {1, 0}),
                                        PathOptions("c", 3, {2}, {0})};
  OpenNew(options);
  for (int family = 0; family < 3; ++family) {
    PutRange(family, 0, 20, family);
    ASSERT_OK(FlushFamily(family));
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), Handle(family), nullptr,
                                nullptr));
    PutRange(family, 10, 30, family + 10);
    ASSERT_OK(FlushFamily(family));
  }
  // The flushes of the other families must not make these entries obsolete.
  PutRange(1, 25, 40, 99, /*wal=*/true);
  Crash();
  LoseManifest();

  ASSERT_OK(Repair(options));
  ASSERT_OK(Open(options, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  EXPECT_EQ(BlobPathIds(0, options[0]), std::set<uint32_t>{1});
  EXPECT_EQ(BlobPathIds(1, options[1]), (std::set<uint32_t>{0, 1}));
  EXPECT_EQ(BlobPathIds(2, options[2]), std::set<uint32_t>{0});
  EXPECT_EQ(BlobPathMasks(0), (std::multiset<uint32_t>{2, 2}));
  // The compacted file has its blobs on path 0, the flushed one on path 1. The
  // file from the WAL has no blobs.
  EXPECT_EQ(BlobPathMasks(1), (std::multiset<uint32_t>{0, 0, 2}));
  EXPECT_EQ(BlobPathMasks(2), (std::multiset<uint32_t>{0, 0}));

  // Repair puts all files on level 0; compaction moves everything to its path.
  for (int family = 0; family < 3; ++family) {
    CompactRangeOptions compact;
    compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(compact, Handle(family), nullptr, nullptr));
    CheckPlacement(family, options[family]);
  }
  ASSERT_OK(VerifyData());
  ASSERT_OK(Open(options, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// Repair keeps blob files of a database without a layout, too.
TEST_F(RepairPathsTest, KeepsBlobFilesWithoutLayout) {
  const Options options = PathOptions("a", 0, {}, {});
  LoadAndLoseManifest(options);
  ASSERT_OK(Repair({options}));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// An unfinished blob file is not used, and is moved to "lost", so that the next
// open does not delete it.
TEST_F(RepairPathsTest, MovesUnfinishedBlobFilesAway) {
  const Options options = PathOptions("a", 2, {0}, {1});
  LoadAndLoseManifest(options);
  ASSERT_OK(WriteStringToFile(env_, "short", BlobFileName(PathOf("a", 1), 900),
                              /*should_sync=*/false));
  ASSERT_OK(WriteStringToFile(env_, std::string(500, 'x'),
                              BlobFileName(PathOf("a", 1), 901),
                              /*should_sync=*/false));
  ASSERT_OK(Repair({options}));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(Handle(0), &metadata);
  EXPECT_EQ(metadata.blob_files.size(), 1u);
  for (uint64_t number : {900, 901}) {
    EXPECT_OK(env_->FileExists(BlobFileName(PathOf("a", 1) + "/lost", number)))
        << number;
  }
}

// The name of the database and its first path are two names of one directory.
// The files in it are found once.
TEST_F(RepairPathsTest, DirectoryOfTheDatabaseMayHaveTwoNames) {
  Options options = PathOptions("a", 2, {0}, {1});
  options.cf_paths[0].path = dbname_;
  const std::string link = dbname_ + "_link";
  for (const std::string& name :
       {dbname_ + "/.", dbname_ + "/../" + Base(dbname_), link}) {
    SCOPED_TRACE(name);
    DestroyAll();
    ASSERT_NO_FATAL_FAILURE(LoadAndLoseManifest(options));
    ASSERT_TRUE(unlink(link.c_str()) == 0 || errno == ENOENT);
    ASSERT_EQ(symlink(dbname_.c_str(), link.c_str()), 0);
    EXPECT_OK(RepairDB(name, DBOptions(options),
                       {{kDefaultColumnFamilyName, options}}));
    ASSERT_EQ(unlink(link.c_str()), 0);
    ASSERT_OK(Open({options}, /*create_families=*/false));
    ASSERT_OK(VerifyData());
  }
}

// Two directories have files of one number, for example because a move of files
// was interrupted. The repair ends before it has changed anything.
TEST_F(RepairPathsTest, RefusesFilesThatTwoDirectoriesHave) {
  const Options options = PathOptions("a", 2, {0}, {0});
  for (const bool of_blob_file : {false, true}) {
    SCOPED_TRACE(of_blob_file);
    DestroyAll();
    OpenNew({options});
    PutRange(0, 0, 20);
    ASSERT_OK(FlushFamily(0));
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(Handle(0), &metadata);
    Close();
    ASSERT_EQ(metadata.levels[0].files.size(), 1u);
    ASSERT_EQ(metadata.blob_files.size(), 1u);
    const std::string name =
        of_blob_file
            ? BlobFileName(metadata.blob_files[0].blob_file_number)
            : MakeTableFileName(metadata.levels[0].files[0].file_number);
    const std::string copy = PathOf("a", 1) + "/" + Base(name);
    ASSERT_OK(ROCKSDB_NAMESPACE::CopyFile(
        FileSystem::Default().get(), PathOf("a", 0) + "/" + Base(name),
        Temperature::kUnknown, copy, Temperature::kUnknown, /*size=*/0,
        /*use_fsync=*/false, /*io_tracer=*/nullptr));
    const Status s = Repair({options});
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    for (const std::string& directory : {PathOf("a", 0), PathOf("a", 1)}) {
      EXPECT_NE(s.ToString().find(directory), std::string::npos)
          << s.ToString();
    }
    ASSERT_OK(env_->DeleteFile(copy));
    // It has changed nothing: the database opens without a repair.
    ASSERT_OK(Open({options}, /*create_families=*/false));
    ASSERT_OK(VerifyData());
    Close();
  }
}

// Options without the directories that the OPTIONS file names are refused:
// repair would find nothing, and the next open would delete everything.
TEST_F(RepairPathsTest, RefusesFewerPathsThanTheOptionsFileHas) {
  const Options options = PathOptions("a", 2, {1}, {1});
  LoadAndLoseManifest(options);
  Options without = options;
  without.cf_paths.clear();
  without.level_sst_path_ids.clear();
  without.level_blob_path_ids.clear();
  for (const Status& s : {Repair({without}), RepairDB(dbname_, without)}) {
    ASSERT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_NE(s.ToString().find(PathOf("a", 1)), std::string::npos)
        << s.ToString();
  }
  ASSERT_OK(Repair({options}));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// An OPTIONS file forgets the paths when the layout is taken away, although
// files are on them. The MANIFEST knows their path ids.
TEST_F(RepairPathsTest, RefusesFewerPathsThanTheManifestHas) {
  for (const auto& [sst_ids, blob_ids] :
       std::vector<std::pair<Ids, Ids>>{{{1}, {}}, {{0}, {1}}}) {
    SCOPED_TRACE(sst_ids[0]);
    DestroyAll();
    Options options = PathOptions("a", 2, sst_ids, blob_ids);
    OpenNew({options});
    PutRange(0, 0, 20);
    ASSERT_OK(FlushFamily(0));
    ASSERT_OK(db_->SetOptions(
        Handle(0), {{"level_sst_path_ids", ""}, {"level_blob_path_ids", ""}}));
    Close();
    options.level_sst_path_ids.clear();
    options.level_blob_path_ids.clear();
    Options fewer = options;
    fewer.cf_paths.resize(1);
    for (const Status& s : {Repair({fewer}), RepairDB(dbname_, fewer)}) {
      EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
      for (const char* part : {"\"default\"", "path id 1", "only 1 path"}) {
        EXPECT_NE(s.ToString().find(part), std::string::npos) << s.ToString();
      }
    }
    ASSERT_OK(Repair({options}));
    ASSERT_OK(Open({options}, /*create_families=*/false));
    ASSERT_OK(VerifyData());

    // Nothing is missing when the files are where the repair looks for them.
    Close();
    std::vector<std::string> children;
    ASSERT_OK(env_->GetChildren(PathOf("a", 1), &children));
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kWalFile;
      if (ParseFileName(child, &number, &type)) {
        ASSERT_OK(env_->RenameFile(PathOf("a", 1) + "/" + child,
                                   PathOf("a", 0) + "/" + child));
      }
    }
    ASSERT_OK(Repair({fewer}));
    ASSERT_OK(Open({fewer}, /*create_families=*/false));
    ASSERT_OK(VerifyData());
  }
}

// Delta files do not follow a changed layout, so they may be the only files of
// a path.
TEST_F(RepairPathsTest, RefusesFewerPathsThanDeltaFilesHave) {
  Options options = PathOptions("a", 2, {1}, {});
  options.enable_blob_files = false;
  options.enable_delta_separation = true;
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  OpenNew({options});
  PutRange(0, 0, 20);
  ASSERT_OK(FlushFamily(0));
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(db_->Merge(WriteOptions(), Handle(0), KeyOf(i), "m"));
    Expect(0, KeyOf(i), ValueOf(i, 0) + ",m");
  }
  ASSERT_OK(FlushFamily(0));
  ASSERT_OK(db_->SetOptions(Handle(0), {{"level_sst_path_ids", ""}}));
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(Handle(0), &metadata);
  ASSERT_FALSE(metadata.delta_files.empty());
  ASSERT_EQ(metadata.delta_files[0].directory, PathOf("a", 1));
  const std::string name = metadata.delta_files[0].relative_filename;
  Close();
  // The SST files are not on the path any more.
  std::vector<std::string> children;
  ASSERT_OK(env_->GetChildren(PathOf("a", 1), &children));
  for (const std::string& child : children) {
    uint64_t number = 0;
    FileType type = kWalFile;
    if (ParseFileName(child, &number, &type) && type == kTableFile) {
      ASSERT_OK(env_->RenameFile(PathOf("a", 1) + "/" + child,
                                 PathOf("a", 0) + "/" + child));
    }
  }
  options.level_sst_path_ids.clear();
  Options fewer = options;
  fewer.cf_paths.resize(1);
  const Status s = Repair({fewer});
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find(".delta"), std::string::npos) << s.ToString();
  EXPECT_NE(s.ToString().find("path id 1"), std::string::npos) << s.ToString();
  ASSERT_OK(Repair({options}));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// An OPTIONS file does not name a single path. So if none of the files of a
// layout is found, the directory is a wrong one.
TEST_F(RepairPathsTest, RefusesDirectoriesWithoutAnyFileOfALayout) {
  for (const bool has_layout : {true, false}) {
    SCOPED_TRACE(has_layout);
    DestroyAll();
    Options options = has_layout ? PathOptions("a", 1, {0}, {0})
                                 : PathOptions("a", 1, {}, {});
    // It names paths, too.
    options.delta_sorted_path_id = has_layout ? -1 : 0;
    OpenNew({options});
    PutRange(0, 0, 20);
    ASSERT_OK(FlushFamily(0));
    Close();
    Options without = options;
    without.cf_paths.clear();
    Options elsewhere = options;
    elsewhere.cf_paths[0].path = PathOf("b", 0);
    ASSERT_OK(env_->CreateDirIfMissing(PathOf("b", 0)));
    for (const Status& s :
         {Repair({without}), RepairDB(dbname_, without), Repair({elsewhere})}) {
      EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
      EXPECT_NE(s.ToString().find("none of them is in a directory"),
                std::string::npos)
          << s.ToString();
    }
    ASSERT_OK(Repair({options}));
    ASSERT_OK(Open({options}, /*create_families=*/false));
    ASSERT_OK(VerifyData());
  }
}

// If a file is in a directory that its family does not have, the error names
// the family and the directory, and the database is unchanged.
TEST_F(RepairPathsTest, RefusesFilesOnPathsOfOtherFamilies) {
  const Options a = PathOptions("a", 2, {1}, {0});
  const Options b = PathOptions("b", 2, {1}, {0});
  OpenFilled(a, b);
  PutRange(1, 20, 40, 5, /*wal=*/true);
  Crash();

  // Each path of "b" is passed as a path of the default family alone: first
  // that of its SST files, then that of its blob files.
  for (uint32_t path_id : {1, 0}) {
    Options wrong_a = a;
    wrong_a.cf_paths.push_back(b.cf_paths[path_id]);
    Options wrong_b = b;
    wrong_b.cf_paths.erase(wrong_b.cf_paths.begin() + path_id);
    wrong_b.level_sst_path_ids = {0};
    const Status s = Repair({wrong_a, wrong_b});
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_NE(s.ToString().find("\"cf1\""), std::string::npos) << s.ToString();
    EXPECT_NE(s.ToString().find(PathOf("b", path_id)), std::string::npos)
        << s.ToString();
  }
  ASSERT_OK(Open({a, b}, /*create_families=*/false));
  ASSERT_OK(VerifyData());

  Close();
  LoseManifest();
  ASSERT_OK(Repair({a, b}));
  ASSERT_OK(Open({a, b}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// Without a layout, a path that does not exist is ignored. A missing path of a
// layout is an error, because it may be a device that is not mounted.
TEST_F(RepairPathsTest, RefusesMissingPathsOfALayout) {
  const Options a = PathOptions("a", 0, {}, {});
  Options b = PathOptions("b", 2, {}, {});
  OpenFilled(a, b);
  Close();
  LoseManifest();
  ASSERT_OK(DestroyDir(env_, PathOf("b", 1)));
  ASSERT_OK(Repair({a, b}));
  ASSERT_OK(Open({a, b}, /*create_families=*/false));
  ASSERT_OK(VerifyData());

  b.level_sst_path_ids = {0, 1};
  ASSERT_OK(Open({a, b}, /*create_families=*/false));
  ASSERT_OK(
      db_->CompactRange(CompactRangeOptions(), Handle(1), nullptr, nullptr));
  Close();
  ASSERT_OK(env_->RenameFile(PathOf("b", 1), PathOf("away", 0)));
  const Status s = Repair({a, b});
  EXPECT_NOK(s);
  EXPECT_NE(s.ToString().find(PathOf("b", 1)), std::string::npos)
      << s.ToString();
  ASSERT_OK(env_->RenameFile(PathOf("away", 0), PathOf("b", 1)));
  ASSERT_OK(Open({a, b}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// A layout that was taken away leaves its files on the paths. So a missing path
// may be a device that is not mounted. The MANIFEST shows whether it has files.
TEST_F(RepairPathsTest, RefusesMissingPathsWithFilesOfTheManifest) {
  Options options = PathOptions("b", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, 20);
  ASSERT_OK(FlushFamily(0));
  ASSERT_OK(db_->SetOptions(
      Handle(0), {{"level_sst_path_ids", ""}, {"level_blob_path_ids", ""}}));
  Close();
  options.level_sst_path_ids.clear();
  options.level_blob_path_ids.clear();
  ASSERT_OK(env_->RenameFile(PathOf("b", 1), PathOf("away", 0)));
  const Status s = Repair({options});
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find(PathOf("b", 1)), std::string::npos)
      << s.ToString();
  ASSERT_OK(env_->RenameFile(PathOf("away", 0), PathOf("b", 1)));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// If a repair fails after it has written a MANIFEST and used up the WAL, the
// database refuses to open, and the next repair recovers all data.
TEST_F(RepairPathsTest, UnreadableBlobFileFailsRepairWithoutLoss) {
  const Options a = PathOptions("a", 2, {0}, {0});
  const Options b = PathOptions("b", 2, {1}, {1});
  OpenFilled(a, b);
  PutRange(1, 20, 40, 5, /*wal=*/true);
  Crash();

  // Replace the file by a directory, which cannot be read.
  const std::string broken = BlobFileIn(PathOf("b", 1));
  ASSERT_OK(env_->RenameFile(broken, PathOf("b", 1) + "/away"));
  ASSERT_OK(env_->CreateDir(broken));
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status s = Repair({a, b});
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_NE(s.ToString().find(PathOf("b", 1)), std::string::npos)
        << s.ToString();
    ExpectRefused({a, b});
  }
  ASSERT_OK(env_->DeleteDir(broken));
  ASSERT_OK(env_->RenameFile(PathOf("b", 1) + "/away", broken));
  ASSERT_OK(Repair({a, b}));
  ASSERT_OK(Open({a, b}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// If power fails during a repair, the database refuses to open, and the next
// repair recovers all data.
TEST_F(RepairPathsTest, CrashDuringRepairLosesNothing) {
  const Options a = PathOptions("a", 2, {0}, {0});
  const Options b = PathOptions("b", 2, {1}, {1});
  OpenFilled(a, b);
  Close();
  // The crash comes before the first change, with the MANIFEST of an empty
  // database, or with that of "cf1". It ends the process alone, or the power is
  // lost.
  for (int point = 0; point <= 2; ++point) {
    for (const bool loses_power : {true, false}) {
      SCOPED_TRACE(std::to_string(point) + std::to_string(loses_power));
      int passed = 0;
      SyncPoint::GetInstance()->SetCallBack(
          point == 0 ? "RepairGuard::Hold:End" : "SetCurrentFile:AfterRename",
          [&](void* /*arg*/) {
            if (++passed == std::max(point, 1)) {
              fs_->PowerOff();
            }
          });
      SyncPoint::GetInstance()->EnableProcessing();
      EXPECT_NOK(Repair({a, b}));
      SyncPoint::GetInstance()->DisableProcessing();
      SyncPoint::GetInstance()->ClearAllCallBacks();
      EXPECT_GE(passed, std::max(point, 1));
      if (loses_power) {
        ASSERT_OK(fs_->PowerOn());
      } else {
        fs_->SetFilesystemActive(true);
      }
      Options creates = a;
      creates.create_missing_column_families = true;
      EXPECT_NOK(Open({creates, b}, /*create_families=*/false));
      EXPECT_NOK(Open({creates}, /*create_families=*/false));
    }
  }
  ASSERT_OK(Repair({a, b}));
  ASSERT_OK(Open({a, b}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// A step of a repair fails after it has set CURRENT. The database refuses to
// open, because the step may have left a part of the database out, and the next
// repair recovers all data.
TEST_F(RepairPathsTest, ErrorAfterCurrentIsSetLosesNothing) {
  const Options options = PathOptions("a", 2, {0}, {1});
  LoadAndLoseManifest(options);
  // CURRENT is set for a new and empty database, for the recovered one, and
  // when the repair ends.
  for (int point = 1; point <= 2; ++point) {
    SCOPED_TRACE(point);
    int count = 0;
    SyncPoint::GetInstance()->SetCallBack(
        "SetCurrentFile:AfterRename", [&](void* arg) {
          if (++count == point) {
            *static_cast<IOStatus*>(arg) = IOStatus::IOError("injected");
          }
        });
    SyncPoint::GetInstance()->EnableProcessing();
    EXPECT_TRUE(Repair({options}).IsIOError());
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    EXPECT_EQ(count, point);
    std::string current;
    ASSERT_OK(ReadFileToString(env_, CurrentFileName(dbname_), &current));
    EXPECT_EQ(current.find("MANIFEST"), std::string::npos) << current;
    ExpectRefused({options});
  }
  ASSERT_OK(Repair({options}));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// A family cannot be added because of an error of the device. Its SST files are
// not at fault, so they stay where they are.
TEST_F(RepairPathsTest, ErrorOfANewFamilyMovesNoFile) {
  const Options a = PathOptions("a", 2, {0}, {0});
  const Options b = PathOptions("b", 2, {1}, {1});
  OpenFilled(a, b);
  Close();
  int count = 0;
  SyncPoint::GetInstance()->SetCallBack(
      "SetCurrentFile:AfterRename", [&](void* arg) {
        if (++count == 2) {
          *static_cast<IOStatus*>(arg) = IOStatus::IOError("injected");
        }
      });
  SyncPoint::GetInstance()->EnableProcessing();
  EXPECT_TRUE(Repair({a, b}).IsIOError());
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  EXPECT_GE(count, 2);
  for (const Options& options : {a, b}) {
    for (const DbPath& path : options.cf_paths) {
      EXPECT_TRUE(env_->FileExists(path.path + "/lost").IsNotFound());
    }
  }
  ExpectRefused({a, b});
  ASSERT_OK(Repair({a, b}));
  ASSERT_OK(Open({a, b}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// A MANIFEST that cannot be moved away ends the repair and stays what it is.
TEST_F(RepairPathsTest, ManifestThatCannotBeMovedIsKept) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, 20);
  ASSERT_OK(FlushFamily(0));
  std::vector<std::string> live;
  uint64_t size = 0;
  ASSERT_OK(db_->GetLiveFiles(live, &size));
  std::string manifest;
  for (const std::string& file : live) {
    if (file.rfind("/MANIFEST", 0) == 0) {
      manifest = dbname_ + file;
    }
  }
  Close();
  std::string before;
  ASSERT_OK(ReadFileToString(env_, manifest, &before));
  // A file is where the directory ought to be.
  ASSERT_OK(WriteStringToFile(env_, "", dbname_ + "/lost"));
  const Status s = Repair({options});
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(s.ToString().find("MANIFEST"), std::string::npos) << s.ToString();
  std::string after;
  ASSERT_OK(ReadFileToString(env_, manifest, &after));
  EXPECT_EQ(before, after);

  ASSERT_OK(env_->DeleteFile(dbname_ + "/lost"));
  ASSERT_OK(Repair({options}));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  EXPECT_TRUE(
      env_->FileExists(RepairEnv::SubstituteOfCurrent(dbname_)).IsNotFound());
}

// Repair fails if an SST file refers to an unfinished blob file, and says which
// part of it is missing.
TEST_F(RepairPathsTest, TruncatedLiveBlobFileFailsRepair) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, 20);
  ASSERT_OK(FlushFamily(0));
  Close();
  const std::string whole = BlobFileIn(PathOf("a", 1));
  const std::string away = PathOf("a", 1) + "/away";
  ASSERT_OK(env_->RenameFile(whole, away));
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, away, &contents));
  // offset: that of the damaged part.
  const auto expect_corruption_at = [&](size_t offset) {
    const Status s = Repair({options});
    EXPECT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_NE(s.ToString().find("Blob file " + whole + " at offset " +
                                std::to_string(offset) + ":"),
              std::string::npos)
        << s.ToString();
  };
  std::string bad_header = contents;
  bad_header[0] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, bad_header, whole, /*should_sync=*/false));
  expect_corruption_at(0);
  ASSERT_OK(WriteStringToFile(env_, contents.substr(0, 20), whole,
                              /*should_sync=*/false));
  expect_corruption_at(0);
  ASSERT_OK(WriteStringToFile(env_, contents.substr(0, contents.size() - 1),
                              whole, /*should_sync=*/false));
  expect_corruption_at(contents.size() - BlobLogFooter::kSize);
  ExpectRefused({options});

  // If the user removes the file, repair succeeds, without the values of the
  // file.
  ASSERT_OK(env_->DeleteFile(whole));
  ASSERT_OK(Repair({options}));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  std::string value;
  EXPECT_NOK(db_->Get(ReadOptions(), KeyOf(0), &value));
  Close();

  ASSERT_OK(env_->RenameFile(away, whole));
  ASSERT_OK(Repair({options}));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// The values of an address map may be in any blob file, so the repair records
// all paths that have blob files for each SST file. It fails if it cannot read
// a blob file, as the map may need it.
TEST_F(RepairPathsTest, MappedValuesMayBeInAnyBlobFile) {
  Options options = PathOptions("a", 2, {0}, {1});
  options.enable_blob_address_map = true;
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  LoadAndLoseManifest(options);
  const std::string unreadable = BlobFileIn(PathOf("a", 1));
  const std::string away = PathOf("a", 1) + "/away";
  ASSERT_OK(env_->RenameFile(unreadable, away));
  ASSERT_OK(env_->CreateDir(unreadable));
  const Status s = Repair({options});
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(s.ToString().find(unreadable), std::string::npos) << s.ToString();
  ExpectRefused({options});

  ASSERT_OK(env_->DeleteDir(unreadable));
  ASSERT_OK(env_->RenameFile(away, unreadable));
  ASSERT_OK(Repair({options}));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  EXPECT_EQ(BlobPathMasks(0), std::multiset<uint32_t>{2});
  // The record index of the file is known, too.
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(Handle(0), &metadata);
  ASSERT_EQ(metadata.blob_files.size(), 1u);
  uint64_t size = 0;
  ASSERT_OK(env_->GetFileSize(unreadable, &size));
  EXPECT_EQ(metadata.blob_files[0].blob_file_size, size);
}

// An unreadable blob file without references does not fail the repair.
TEST_F(RepairPathsTest, UnreadableGarbageDoesNotFailRepair) {
  const Options options = PathOptions("a", 2, {0}, {1});
  LoadAndLoseManifest(options);
  ASSERT_OK(env_->CreateDir(BlobFileName(PathOf("a", 1), 900)));
  ASSERT_OK(Repair({options}));
  ASSERT_OK(env_->DeleteDir(BlobFileName(PathOf("a", 1) + "/lost", 900)));
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
