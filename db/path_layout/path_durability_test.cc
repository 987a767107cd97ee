//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of a power failure right after each kind of job, on a database whose
// families have several paths: all acknowledged data must survive. Every test
// also shows that it detects a missing fsync of a directory.

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "db/path_layout/path_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test_util/sync_point.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class PathDurabilityTest : public PathTestBase {
 public:
  PathDurabilityTest() : PathTestBase("path_durability_test") {}

  enum class Mode {
    kAsIs,
    // OutputDirectories::Sync() does nothing.
    kOwnSyncOff,
    // No directory of a path is ever synced.
    kAllSyncsOff,
  };

  struct Scenario {
    // The options of all families, also after the crash unless `reopen_with` is
    // set.
    std::vector<Options> options;
    std::vector<Options> reopen_with;
    // Runs before the syncs are switched off.
    std::function<void()> prepare = [] {};
    std::function<void()> job;
    // True if the job depends on OutputDirectories, false if RocksDB's own sync
    // is enough.
    bool needs_own_sync = true;
  };

  // Returns OK iff all data is readable after the crash.
  Status Run(const Scenario& scenario, Mode mode) {
    DestroyAll();
    OpenNew(scenario.options);
    scenario.prepare();
    if (mode == Mode::kAllSyncsOff) {
      fs_->LoseDirectorySyncs(true);
    }
    SyncPoint::GetInstance()->SetCallBack(
        "OutputDirectories::Sync", [&](void* path_ids) {
          if (mode == Mode::kOwnSyncOff) {
            *static_cast<uint8_t*>(path_ids) = 0;
          }
        });
    SyncPoint::GetInstance()->EnableProcessing();
    scenario.job();
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearCallBack("OutputDirectories::Sync");
    Crash();
    fs_->LoseDirectorySyncs(false);
    Status s = Open(
        scenario.reopen_with.empty() ? scenario.options : scenario.reopen_with,
        /*create_families=*/false);
    if (s.ok()) {
      s = VerifyData();
    }
    return s;
  }

  void Check(const Scenario& scenario) {
    ASSERT_OK(Run(scenario, Mode::kAsIs));
    for (size_t i = 0; i < scenario.options.size(); ++i) {
      CheckPlacement(static_cast<int>(i), scenario.reopen_with.empty()
                                              ? scenario.options[i]
                                              : scenario.reopen_with[i]);
    }
    EXPECT_NOK(Run(scenario, Mode::kAllSyncsOff));
    if (scenario.needs_own_sync) {
      EXPECT_NOK(Run(scenario, Mode::kOwnSyncOff));
    }
  }

  Status FlushFamily(int family) {
    return db_->Flush(FlushOptions(), Handle(family));
  }

  // Returns options of a family with delta files.
  Options DeltaPathOptions(const std::string& prefix, uint32_t num_paths,
                           const Ids& sst_ids, int32_t sorted_id) {
    Options options = PathOptions(prefix, num_paths, sst_ids, {});
    options.enable_blob_files = false;
    options.enable_delta_separation = true;
    options.delta_sorted_path_id = sorted_id;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    return options;
  }
  // Writes an operand of each key, and flushes.
  void MergeAndFlush(int begin, int end) {
    WriteOptions write_options;
    write_options.disableWAL = true;
    for (int i = begin; i < end; ++i) {
      ASSERT_OK(db_->Merge(write_options, Handle(0), KeyOf(i), "m"));
      Expect(0, KeyOf(i), "m");
    }
    ASSERT_OK(FlushFamily(0));
  }
};

TEST_F(PathDurabilityTest, FlushSurvivesPowerLoss) {
  const std::vector<std::pair<Ids, Ids>> layouts = {
      {{0}, {1}}, {{1}, {0}}, {{1}, {2}}, {{2}, {2}}, {{1}, {}}, {{}, {1}}};
  for (const auto& layout : layouts) {
    Scenario scenario;
    scenario.options = {PathOptions("a", 3, layout.first, layout.second)};
    scenario.job = [&] {
      PutRange(0, 0, 20);
      ASSERT_OK(FlushFamily(0));
    };
    scenario.needs_own_sync = (layout.first.empty() ? 0 : layout.first[0]) !=
                              (layout.second.empty() ? 0 : layout.second[0]);
    Check(scenario);
  }
}

TEST_F(PathDurabilityTest, AtomicFlushSurvivesPowerLoss) {
  Scenario scenario;
  scenario.options = {PathOptions("a", 2, {0}, {1}),
                      PathOptions("b", 3, {1}, {2}),
                      PathOptions("c", 1, {}, {})};
  for (Options& options : scenario.options) {
    options.atomic_flush = true;
  }
  scenario.job = [&] {
    for (int family = 0; family < 3; ++family) {
      PutRange(family, 0, 20, family);
    }
    ASSERT_OK(db_->Flush(FlushOptions(), handles_));
  };
  Check(scenario);
}

// Level 0 and level 1 share no path, so the compaction moves keys and values.
TEST_F(PathDurabilityTest, SubcompactionsSurvivePowerLoss) {
  Options options = PathOptions("a", 4, {0, 2}, {1, 3});
  options.max_subcompactions = 4;
  // The SST files have only keys and are small.
  options.target_file_size_base = 1 << 10;
  options.max_compaction_bytes = 1 << 30;
  Scenario scenario;
  scenario.options = {options};
  std::atomic<int> subcompactions{0};
  scenario.prepare = [&] {
    for (int i = 0; i < 4; ++i) {
      PutRange(0, i * 100, (i + 1) * 100);
      ASSERT_OK(FlushFamily(0));
    }
  };
  scenario.job = [&] {
    subcompactions = 0;
    SyncPoint::GetInstance()->SetCallBack(
        "CompactionJob::ProcessKeyValueCompaction()::Processing",
        [&](void* /*arg*/) { ++subcompactions; });
    ASSERT_OK(
        db_->CompactRange(CompactRangeOptions(), Handle(0), nullptr, nullptr));
    SyncPoint::GetInstance()->ClearCallBack(
        "CompactionJob::ProcessKeyValueCompaction()::Processing");
  };
  Check(scenario);
  EXPECT_GT(subcompactions, 1);
}

TEST_F(PathDurabilityTest, CompactFilesSurvivesPowerLoss) {
  Scenario scenario;
  scenario.options = {PathOptions("a", 3, {0, 1, 1, 2}, {0, 1, 1, 2})};
  scenario.prepare = [&] {
    PutRange(0, 0, 50);
    ASSERT_OK(FlushFamily(0));
    PutRange(0, 20, 70, 1);
    ASSERT_OK(FlushFamily(0));
  };
  scenario.job = [&] {
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(Handle(0), &metadata);
    std::vector<std::string> inputs;
    for (const auto& file : metadata.levels[0].files) {
      inputs.push_back(file.name);
    }
    ASSERT_OK(db_->CompactFiles(CompactionOptions(), Handle(0), inputs, 3));
  };
  Check(scenario);
}

TEST_F(PathDurabilityTest, RecoveryFlushSurvivesPowerLoss) {
  Scenario scenario;
  scenario.options = {PathOptions("a", 2, {0}, {1}),
                      PathOptions("b", 3, {2}, {1})};
  scenario.prepare = [&] {
    PutRange(0, 0, 20, 0, /*wal=*/true);
    PutRange(1, 0, 20, 1, /*wal=*/true);
  };
  scenario.job = [&] {
    // The first crash keeps the WAL. Opening flushes the WAL and deletes it.
    Crash();
    ASSERT_OK(Open(scenario.options, /*create_families=*/false));
    EXPECT_EQ(SstPathIds(0, scenario.options[0], 0),
              std::multiset<uint32_t>{0});
    EXPECT_EQ(SstPathIds(1, scenario.options[1], 0),
              std::multiset<uint32_t>{2});
  };
  Check(scenario);
}

TEST_F(PathDurabilityTest, DirectWriteSurvivesPowerLoss) {
  Options options = PathOptions("a", 3, {0}, {1});
  options.enable_blob_direct_write = true;
  options.allow_concurrent_memtable_write = false;
  Scenario scenario;
  scenario.options = {options};
  scenario.job = [&] {
    PutRange(0, 0, 20);
    ASSERT_OK(FlushFamily(0));
  };
  Check(scenario);
}

// The direct-write manager opened its file in the directory of the old layout.
// The flush must sync that directory and not only the new one.
TEST_F(PathDurabilityTest, DirectWriteAcrossSetOptionsSurvivesPowerLoss) {
  Options options = PathOptions("a", 4, {0}, {1});
  options.enable_blob_direct_write = true;
  options.allow_concurrent_memtable_write = false;
  Options changed = options;
  changed.level_sst_path_ids = {3};
  changed.level_blob_path_ids = {2};
  Scenario scenario;
  scenario.options = {options};
  scenario.reopen_with = {changed};
  scenario.job = [&] {
    PutRange(0, 0, 20);
    ASSERT_OK(db_->SetOptions(Handle(0), {{"level_sst_path_ids", "3"},
                                          {"level_blob_path_ids", "2"}}));
    PutRange(0, 20, 40);
    ASSERT_OK(FlushFamily(0));
    EXPECT_TRUE(BlobPathIds(0, options).count(1) > 0);
  };
  Check(scenario);
}

TEST_F(PathDurabilityTest, SetOptionsBetweenJobsSurvivesPowerLoss) {
  Options options = PathOptions("a", 4, {0}, {1});
  Options changed = options;
  changed.level_sst_path_ids = {2, 3};
  changed.level_blob_path_ids = {3, 0};
  Scenario scenario;
  scenario.options = {options};
  scenario.reopen_with = {changed};
  scenario.job = [&] {
    PutRange(0, 0, 30);
    ASSERT_OK(FlushFamily(0));
    ASSERT_OK(db_->SetOptions(Handle(0), {{"level_sst_path_ids", "2:3"},
                                          {"level_blob_path_ids", "3:0"}}));
    PutRange(0, 20, 60, 1);
    ASSERT_OK(FlushFamily(0));
    ASSERT_OK(
        db_->CompactRange(CompactRangeOptions(), Handle(0), nullptr, nullptr));
  };
  Check(scenario);
}

TEST_F(PathDurabilityTest, MovesOfDeltaFilesSurvivePowerLoss) {
  Scenario scenario;
  scenario.options = {DeltaPathOptions("a", 4, {0}, /*sorted_id=*/1)};
  scenario.reopen_with = {DeltaPathOptions("a", 4, {3}, /*sorted_id=*/2)};
  scenario.prepare = [&] {
    MergeAndFlush(0, 20);
    ASSERT_OK(
        db_->CompactRange(CompactRangeOptions(), Handle(0), nullptr, nullptr));
    MergeAndFlush(20, 30);
  };
  scenario.job = [&] {
    ASSERT_OK(db_->SetOptions(Handle(0), {{"level_sst_path_ids", "3"},
                                          {"delta_sorted_path_id", "2"}}));
    ASSERT_OK(
        db_->CompactRange(CompactRangeOptions(), Handle(0), nullptr, nullptr));
  };
  // Jobs of delta files have a sync of their own.
  scenario.needs_own_sync = false;
  Check(scenario);
}

class PathIngestionDurabilityTest : public PathDurabilityTest {
 public:
  // Writes an external file into `directory`, which is synced.
  std::string ExternalFile(const Options& options, const std::string& directory,
                           int begin, int end) {
    const std::string path =
        directory + "/" + std::to_string(begin) + ".external";
    SstFileWriter writer(EnvOptions(), options);
    EXPECT_OK(writer.Open(path));
    for (int i = begin; i < end; ++i) {
      EXPECT_OK(writer.Put(KeyOf(i), ValueOf(i, 0)));
    }
    EXPECT_OK(writer.Finish());
    std::unique_ptr<FSDirectory> handle;
    EXPECT_OK(fs_->NewDirectory(directory, IOOptions(), &handle, nullptr));
    EXPECT_OK(handle->Fsync(IOOptions(), nullptr));
    return path;
  }

  // Makes a file for each of the first two levels, in the directory to which it
  // will be linked. Other directories are other devices.
  // target: has the path ids {0, 1}, with the prefix "b".
  ExportImportFilesMetaData FilesToLink(const Options& target) {
    ExportImportFilesMetaData result;
    result.db_comparator_name = target.comparator->Name();
    for (int level = 0; level < 2; ++level) {
      const std::string directory = PathOf("b", level);
      EXPECT_OK(device_env_->CreateDirIfMissing(directory));
      const std::string fname =
          ExternalFile(target, directory, level * 10, level * 10 + 10);
      LiveFileMetaData file;
      file.name = fname.substr(directory.size() + 1);
      file.db_path = directory;
      file.level = level;
      file.smallest_seqno = 0;
      file.largest_seqno = 0;
      result.files.push_back(file);
    }
    return result;
  }

  // Imports the files as the family "cf1", by links.
  Status Import(const Options& target, const ExportImportFilesMetaData& files) {
    ImportColumnFamilyOptions options;
    options.move_files = true;
    ColumnFamilyHandle* handle = nullptr;
    Status s = db_->CreateColumnFamilyWithImport(target, "cf1", options, files,
                                                 &handle);
    if (handle != nullptr) {
      handles_.push_back(handle);
    }
    return s;
  }

  // Returns the paths of the SST files of the directory.
  std::vector<std::string> TablesIn(const std::string& directory) {
    std::vector<std::string> result;
    std::vector<std::string> children;
    EXPECT_OK(device_env_->GetChildren(directory, &children));
    for (const std::string& child : children) {
      if (child.ends_with(".sst")) {
        result.push_back(directory + "/" + child);
      }
    }
    return result;
  }
};

// Without a layout, too: the directory is one of the column family, which the
// database need not have among its own.
TEST_F(PathIngestionDurabilityTest, IngestionSurvivesPowerLoss) {
  for (const bool has_layout : {false, true}) {
    const Options options = has_layout ? PathOptions("a", 3, {1, 2}, {0})
                                       : PathOptions("a", 3, {}, {});
    for (const bool move : {false, true}) {
      for (const bool same_device : {false, true}) {
        SCOPED_TRACE(std::to_string(has_layout) + std::to_string(move) +
                     std::to_string(same_device));
        Scenario scenario;
        scenario.options = {options};
        std::string file;
        scenario.prepare = [&] {
          const std::string directory = same_device
                                            ? PathOf("a", has_layout ? 1 : 0)
                                            : PathOf("external", 0);
          ASSERT_OK(device_env_->CreateDirIfMissing(directory));
          file = ExternalFile(options, directory, 0, 20);
        };
        scenario.job = [&] {
          IngestExternalFileOptions ingestion;
          ingestion.move_files = move;
          ASSERT_OK(db_->IngestExternalFile(Handle(0), {file}, ingestion));
          for (int i = 0; i < 20; ++i) {
            Expect(0, KeyOf(i), ValueOf(i, 0));
          }
        };
        scenario.needs_own_sync = false;
        ASSERT_OK(Run(scenario, Mode::kAsIs));
        EXPECT_NOK(Run(scenario, Mode::kAllSyncsOff));
      }
    }
  }
}

// The file goes to the path of the last level, and its anchors, which hide
// operands, to that of recent delta files.
TEST_F(PathIngestionDurabilityTest, AnchorsOnAnotherPathSurvivePowerLoss) {
  Scenario scenario;
  scenario.options = {DeltaPathOptions("a", 2, {0, 1}, /*sorted_id=*/-1)};
  std::string file;
  scenario.prepare = [&] {
    MergeAndFlush(0, 20);
    const std::string directory = PathOf("external", 0);
    ASSERT_OK(device_env_->CreateDirIfMissing(directory));
    file = ExternalFile(scenario.options[0], directory, 0, 20);
  };
  scenario.job = [&] {
    IngestExternalFileOptions ingestion;
    ingestion.fail_if_not_bottommost_level = true;
    ASSERT_OK(db_->IngestExternalFile(Handle(0), {file}, ingestion));
    for (int i = 0; i < 20; ++i) {
      Expect(0, KeyOf(i), ValueOf(i, 0));
    }
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(Handle(0), &metadata);
    ASSERT_EQ(metadata.delta_files.size(), 2);
    for (const auto& delta : metadata.delta_files) {
      EXPECT_EQ(delta.directory, PathOf("a", 0));
    }
    EXPECT_EQ(SstPathIds(0, scenario.options[0], 3),
              std::multiset<uint32_t>{1});
  };
  scenario.needs_own_sync = false;
  ASSERT_OK(Run(scenario, Mode::kAsIs));
  EXPECT_NOK(Run(scenario, Mode::kAllSyncsOff));
}

TEST_F(PathIngestionDurabilityTest, ImportSurvivesPowerLoss) {
  Options source = PathOptions("a", 2, {0, 1}, {});
  source.enable_blob_files = false;
  for (const bool has_layout : {false, true}) {
    Options target =
        PathOptions("b", 4, has_layout ? Ids{3, 2, 1, 0} : Ids{}, {});
    target.enable_blob_files = false;
    for (const bool move : {false, true}) {
      for (const Mode mode :
           {Mode::kAsIs, Mode::kOwnSyncOff, Mode::kAllSyncsOff}) {
        Scenario scenario;
        scenario.options = {source};
        // Both families are opened after the crash.
        scenario.reopen_with = {source, target};
        ExportImportFilesMetaData* exported = nullptr;
        const std::string export_dir = PathOf("exports", 0) + "/cf";
        scenario.prepare = [&] {
          PutRange(0, 0, 20);
          ASSERT_OK(FlushFamily(0));
          ASSERT_OK(db_->CompactRange(CompactRangeOptions(), Handle(0), nullptr,
                                      nullptr));
          PutRange(0, 10, 30, 1);
          ASSERT_OK(FlushFamily(0));
          ASSERT_OK(device_env_->CreateDirIfMissing(PathOf("exports", 0)));
          Checkpoint* checkpoint = nullptr;
          ASSERT_OK(Checkpoint::Create(db_.get(), &checkpoint));
          ASSERT_OK(
              checkpoint->ExportColumnFamily(Handle(0), export_dir, &exported));
          delete checkpoint;
        };
        scenario.job = [&] {
          ImportColumnFamilyOptions import;
          import.move_files = move;
          ColumnFamilyHandle* handle = nullptr;
          ASSERT_OK(db_->CreateColumnFamilyWithImport(target, "cf1", import,
                                                      *exported, &handle));
          handles_.push_back(handle);
          for (int i = 0; i < 30; ++i) {
            Expect(1, KeyOf(i), ValueOf(i, i < 10 ? 0 : 1));
          }
          delete exported;
        };
        const Status s = Run(scenario, mode);
        if (mode == Mode::kAsIs) {
          ASSERT_OK(s);
          CheckPlacement(1, target);
          EXPECT_EQ(SstPathIds(1, target, 0),
                    std::multiset<uint32_t>{has_layout ? 3u : 0u});
        } else {
          EXPECT_NOK(s);
        }
      }
    }
  }
}

// Files that are linked are synced, since the program that has written them
// need not have done that, and then each directory with a link.
TEST_F(PathIngestionDurabilityTest, ImportSyncsWhatItLinks) {
  Options source = PathOptions("a", 1, {}, {});
  Options target = PathOptions("b", 2, {0, 1}, {});
  target.enable_blob_files = false;
  for (const Mode mode : {Mode::kAsIs, Mode::kOwnSyncOff, Mode::kAllSyncsOff}) {
    Scenario scenario;
    scenario.options = {source};
    // Both families are opened after the crash.
    scenario.reopen_with = {source, target};
    ExportImportFilesMetaData files;
    scenario.prepare = [&] { files = FilesToLink(target); };
    scenario.job = [&] {
      fs_->TakeSteps();
      fs_->TakeLinkCount();
      ASSERT_OK(Import(target, files));
      EXPECT_EQ(fs_->TakeLinkCount(), 2);
      for (int i = 0; i < 20; ++i) {
        Expect(1, KeyOf(i), ValueOf(i, 0));
      }
      const std::vector<std::string> steps = fs_->TakeSteps();
      for (uint32_t id = 0; mode == Mode::kAsIs && id < 2; ++id) {
        const std::vector<std::string> names = TablesIn(PathOf("b", id));
        ASSERT_EQ(names.size(), 1);
        auto at = steps.begin();
        for (const std::string& step :
             {"link " + files.files[id].db_path + "/" + files.files[id].name +
                  " " + names[0],
              "syncfile " + names[0], "sync " + PathOf("b", id)}) {
          at = std::find(at, steps.end(), step);
          EXPECT_TRUE(at != steps.end()) << step;
        }
      }
    };
    const Status s = Run(scenario, mode);
    if (mode == Mode::kAsIs) {
      ASSERT_OK(s);
      CheckPlacement(1, target);
    } else {
      EXPECT_NOK(s);
    }
  }
}

// A linked file that cannot be opened for a sync, as it may be read-only, is
// copied.
TEST_F(PathIngestionDurabilityTest, ImportCopiesWhatItCannotSync) {
  const Options source = PathOptions("a", 1, {}, {});
  Options target = PathOptions("b", 2, {0, 1}, {});
  target.enable_blob_files = false;
  for (const int fails_at : {0, 1}) {
    Scenario scenario;
    scenario.options = {source};
    // Both families are opened after the crash.
    scenario.reopen_with = {source, target};
    ExportImportFilesMetaData files;
    scenario.prepare = [&] { files = FilesToLink(target); };
    scenario.job = [&] {
      int calls_left = fails_at;
      SyncPoint::GetInstance()->SetCallBack(
          "FileSystem::SyncFile:Open", [&](void* s) {
            if (calls_left-- == 0) {
              *static_cast<IOStatus*>(s) = IOStatus::IOError("injected");
            }
          });
      SyncPoint::GetInstance()->EnableProcessing();
      ASSERT_OK(Import(target, files));
      SyncPoint::GetInstance()->DisableProcessing();
      SyncPoint::GetInstance()->ClearCallBack("FileSystem::SyncFile:Open");
      EXPECT_LT(calls_left, 0);
      for (int i = 0; i < 20; ++i) {
        Expect(1, KeyOf(i), ValueOf(i, 0));
      }
      for (uint32_t id = 0; id < 2; ++id) {
        EXPECT_EQ(TablesIn(PathOf("b", id)).size(), 1);
        EXPECT_TRUE(device_env_
                        ->FileExists(files.files[id].db_path + "/" +
                                     files.files[id].name)
                        .IsNotFound());
      }
    };
    ASSERT_OK(Run(scenario, Mode::kAsIs));
    CheckPlacement(1, target);
  }
}

// If a linked file can neither be synced nor copied, the import fails, leaves
// no link and keeps the original. A file system that has no syncs does not fail
// it.
TEST_F(PathIngestionDurabilityTest, ImportFailsIfALinkedFileCannotBeSynced) {
  const Options source = PathOptions("a", 1, {}, {});
  Options target = PathOptions("b", 2, {0, 1}, {});
  target.enable_blob_files = false;
  OpenNew({source});
  const ExportImportFilesMetaData files = FilesToLink(target);
  int calls_left = 0;
  int fails_after = 0;
  IOStatus injected = IOStatus::IOError("injected");
  SyncPoint::GetInstance()->SetCallBack(
      "FileSystem::SyncFile:Open", [&](void* s) {
        if (calls_left-- == 0) {
          *static_cast<IOStatus*>(s) = injected;
          fs_->FailAfter(fails_after);
        }
      });
  SyncPoint::GetInstance()->EnableProcessing();
  for (const int fails_at : {0, 1}) {
    // The link cannot be deleted, or the copy cannot be created.
    for (fails_after = 0; fails_after < 2; ++fails_after) {
      calls_left = fails_at;
      EXPECT_NOK(Import(target, files));
      EXPECT_TRUE(fs_->HasFailed());
      for (uint32_t id = 0; id < 2; ++id) {
        EXPECT_OK(device_env_->FileExists(files.files[id].db_path + "/" +
                                          files.files[id].name));
        EXPECT_EQ(TablesIn(PathOf("b", id)), std::vector<std::string>());
      }
    }
  }
  injected = IOStatus::NotSupported("injected");
  fails_after = -1;
  calls_left = 0;
  ASSERT_OK(Import(target, files));
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearCallBack("FileSystem::SyncFile:Open");
  for (int i = 0; i < 20; ++i) {
    Expect(1, KeyOf(i), ValueOf(i, 0));
  }
  ASSERT_OK(VerifyData());
  CheckPlacement(1, target);
}

// Without a layout the directory fsyncs are RocksDB's: their number and their
// directories are the same as in stock RocksDB 11.8.1, except that an ingestion
// syncs the directory that gets the file.
TEST_F(PathDurabilityTest, DirectorySyncsWithoutLayoutAreThoseOfRocksDB) {
  for (const bool atomic_flush : {false, true}) {
    DestroyAll();
    Options a = PathOptions("a", 2, {}, {});
    a.atomic_flush = atomic_flush;
    Options b = PathOptions("b", 1, {}, {});
    b.cf_paths[0].path = PathOf("a", 0);
    b.atomic_flush = atomic_flush;
    OpenNew({a, b});
    const auto counts = [&] {
      std::map<std::string, int> all = fs_->TakeSyncCounts();
      all.erase(dbname_);
      return all;
    };
    const std::map<std::string, int> path0{{PathOf("a", 0), 1}};
    counts();

    PutRange(0, 0, 20, 0, /*wal=*/true);
    PutRange(1, 0, 20, 0, /*wal=*/true);
    if (atomic_flush) {
      ASSERT_OK(db_->Flush(FlushOptions(), handles_));
      EXPECT_EQ(counts(), path0);
    } else {
      ASSERT_OK(FlushFamily(0));
      EXPECT_EQ(counts(), path0);
      ASSERT_OK(FlushFamily(1));
      EXPECT_EQ(counts(), path0);
    }

    PutRange(0, 10, 30, 1, /*wal=*/true);
    ASSERT_OK(FlushFamily(0));
    counts();
    CompactRangeOptions compact;
    compact.bottommost_level_compaction =
        BottommostLevelCompaction::kForceOptimized;
    ASSERT_OK(db_->CompactRange(compact, Handle(0), nullptr, nullptr));
    EXPECT_EQ(counts(), path0);
    compact.change_level = true;
    compact.target_level = 1;
    compact.target_path_id = 1;
    PutRange(0, 0, 5, 2, /*wal=*/true);
    ASSERT_OK(FlushFamily(0));
    counts();
    ASSERT_OK(db_->CompactRange(compact, Handle(0), nullptr, nullptr));
    EXPECT_EQ(counts()[PathOf("a", 1)], 1);

    ASSERT_OK(device_env_->CreateDirIfMissing(PathOf("external", 0)));
    const std::string external = PathOf("external", 0) + "/file";
    SstFileWriter writer(EnvOptions(), a);
    ASSERT_OK(writer.Open(external));
    ASSERT_OK(writer.Put(KeyOf(100), ValueOf(100, 0)));
    ASSERT_OK(writer.Finish());
    Expect(0, KeyOf(100), ValueOf(100, 0));
    fs_->TakeSyncCounts();
    ASSERT_OK(db_->IngestExternalFile(Handle(0), {external},
                                      IngestExternalFileOptions()));
    EXPECT_EQ(fs_->TakeSyncCounts(), path0);

    PutRange(1, 0, 20, 3, /*wal=*/true);
    Crash();
    counts();
    ASSERT_OK(Open({a, b}, /*create_families=*/false));
    // There is one recovery flush.
    EXPECT_EQ(counts(), path0);
    ASSERT_OK(VerifyData());
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
