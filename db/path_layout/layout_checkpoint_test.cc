//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Checkpoints in several directories.

#include "db/path_layout/layout_checkpoint.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "db/path_layout/checkpoint_mark.h"
#include "db/path_layout/checkpoint_staging.h"
#include "db/path_layout/path_copy_test_util.h"
#include "file/filename.h"
#include "port/port.h"
#include "port/stack_trace.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

// Keeps the lines of LOG. Thread-safe.
class LineLogger : public Logger {
 public:
  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    char line[1000];
    vsnprintf(line, sizeof(line), format, arguments);
    std::lock_guard<std::mutex> lock(mutex_);
    lines_.emplace_back(line);
  }
  // Returns true if a line has both texts.
  bool Has(const std::string& one, const std::string& other) {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(lines_.begin(), lines_.end(),
                       [&](const std::string& line) {
                         return line.find(one) != std::string::npos &&
                                line.find(other) != std::string::npos;
                       });
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

class LayoutCheckpointTest : public PathCopyTestBase {
 protected:
  LayoutCheckpointTest() : PathCopyTestBase("layout_checkpoint_test") {}

  // Attempts of tests.
  static constexpr const char* kOne = "0000000000000001";
  static constexpr const char* kTwo = "0000000000000002";

  bool Exists(const std::string& directory) {
    return env_->FileExists(directory).ok();
  }
  // Returns what stands beside a directory, which need not exist.
  // directory: a result of Directory().
  std::vector<std::string> Beside(const std::string& directory) {
    const std::string parent = directory.substr(0, directory.rfind('/'));
    std::vector<std::string> result;
    for (const std::string& name : Names(parent)) {
      if (parent + "/" + name != directory) {
        result.push_back(parent + "/" + name);
      }
    }
    return result;
  }
  // Makes one checkpoint until it is at `point`. Then another thread makes the
  // other one until that is at `other_point`, or ends. Then the first one ends,
  // and then the other one.
  void Interleave(const std::string& point, const std::function<Status()>& make,
                  const std::string& other_point,
                  const std::function<Status()>& make_other, Status* s,
                  Status* other_s) {
    const std::thread::id first = std::this_thread::get_id();
    bool is_begun = false;
    bool has_stopped = false;
    std::promise<void> stop;
    std::promise<void> go_on;
    port::Thread other;
    const auto at = [&](const std::string& name) {
      if (std::this_thread::get_id() != first) {
        if (name == other_point && !has_stopped) {
          has_stopped = true;
          stop.set_value();
          go_on.get_future().wait();
        }
      } else if (name == point && !is_begun) {
        is_begun = true;
        other = port::Thread([&] {
          *other_s = make_other();
          if (!has_stopped) {
            has_stopped = true;
            stop.set_value();
          }
        });
        stop.get_future().wait();
      }
    };
    for (const std::string& name : {point, other_point}) {
      SyncPoint::GetInstance()->SetCallBack(name,
                                            [&, name](void*) { at(name); });
    }
    SyncPoint::GetInstance()->EnableProcessing();
    *s = make();
    go_on.set_value();
    EXPECT_TRUE(is_begun);
    if (is_begun) {
      other.join();
    }
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
  }
  // Returns the number of live files of this type in a directory of the
  // database.
  size_t CountLive(const std::string& directory, FileType type) {
    LiveFilesStorageInfoOptions options;
    options.wal_size_for_flush = UINT64_MAX;
    std::vector<LiveFileStorageInfo> files;
    EXPECT_OK(db_->GetLiveFilesStorageInfo(options, &files));
    return static_cast<size_t>(std::count_if(
        files.begin(), files.end(), [&](const LiveFileStorageInfo& file) {
          return file.directory == directory && file.file_type == type;
        }));
  }
  void CheckRefused(const Status& s, const std::string& message) {
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_NE(s.ToString().find(message), std::string::npos) << s.ToString();
  }
  // Checks that a checkpoint is refused because of this file, which stays.
  void CheckLeftAlone(const std::string& main, const CopyLayout& layout,
                      const std::string& file) {
    CheckRefused(MakeCheckpoint(main, 0, &layout), "Directory exists");
    EXPECT_TRUE(Exists(file)) << file;
    EXPECT_FALSE(Exists(main));
  }
  // Checks that a checkpoint of an instance that does not have the column
  // family "cf1" is refused.
  void CheckNeedsFamily(DB* instance, const std::string& main,
                        const CopyLayout& layout) {
    const Status s = MakeCheckpointOf(instance, main, layout);
    EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
    EXPECT_NE(s.ToString().find("cf1"), std::string::npos) << s.ToString();
    EXPECT_FALSE(Exists(main));
  }
  // Makes a checkpoint of a database with one column family, and checks it.
  void CopyAndCheck(const std::string& main, const CopyLayout& layout) {
    ASSERT_OK(MakeCheckpoint(main, 0, &layout));
    CheckLayoutCopy(main,
                    {layout.all.cf_paths.empty() ? nullptr : &layout.all});
  }
};

TEST_F(LayoutCheckpointTest, FilesAreOnThePathOfTheirLevel) {
  const struct {
    size_t num_paths;
    Ids sst;
    Ids blob;
  } layouts[] = {{2, {0}, {1}}, {2, {0, 1}, {0, 1}}, {3, {2, 0}, {1}}};
  for (int feature = 0; feature < kNumFeatures; ++feature) {
    for (const auto& wanted : layouts) {
      for (const bool wal : {false, true}) {
        SCOPED_TRACE(std::to_string(feature) + std::to_string(wal) +
                     std::to_string(wanted.num_paths));
        DestroyAll();
        const std::vector<Options> options = {
            PlainOptions(),
            FeatureOptions(static_cast<Feature>(feature), "b", 3, {0, 1}, {2})};
        OpenNew(options);
        Fill(wal);
        const std::string main = Directory("main");
        std::vector<std::string> directories = {main, Directory("second"),
                                                Directory("third")};
        directories.resize(wanted.num_paths);
        const CopyLayout layout =
            LayoutOf(directories, wanted.sst, wanted.blob);
        ASSERT_OK(MakeCheckpoint(main, wal ? UINT64_MAX : 0, &layout,
                                 /*num_threads=*/wal ? 3 : 1));
        for (const std::string& directory : directories) {
          EXPECT_TRUE(Beside(directory).empty());
          EXPECT_FALSE(Exists(directory + "/" + CheckpointMark::Name()));
        }
        for (const std::string& name : Names(directories[1])) {
          uint64_t number = 0;
          FileType type = kTempFile;
          EXPECT_TRUE(
              ParseFileName(name, &number, &type) &&
              (type == kTableFile || type == kBlobFile || type == kDeltaFile))
              << name;
        }
        CheckLayoutCopy(main, {&layout.all, &layout.all});
        CheckOriginal(options);
      }
    }
  }
}

// Each column family has its own layout; one has none.
TEST_F(LayoutCheckpointTest, ColumnFamiliesHaveTheirLayouts) {
  const std::vector<Options> options = {
      PlainOptions(), FeatureOptions(kBlobs, "b", 3, {0, 1}, {2}),
      FeatureOptions(kInline, "c", 2, {1}, {})};
  OpenNew(options);
  Fill(/*wal=*/true);
  PutRange(2, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(2)));
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  CopyLayout layout;
  layout.column_families["cf1"] = LayoutOf({second, main}, {1, 0}, {1}).all;
  layout.column_families["default"] =
      LayoutOf({main, Directory("third")}, {}, {1}).all;
  ASSERT_OK(MakeCheckpoint(main, UINT64_MAX, &layout));
  CheckLayoutCopy(main, {&layout.column_families["default"],
                         &layout.column_families["cf1"], nullptr});
  CheckOriginal(options);
}

// With a map each file is on the path that stands for its own.
TEST_F(LayoutCheckpointTest, PathsCanBeMapped) {
  const Options options = FeatureOptions(kBlobs, "a", 3, {0, 1}, {2});
  OpenNew({options});
  FillTwoLevels();
  // The files do not follow the new layout, since there are no jobs.
  ASSERT_OK(db_->SetOptions(
      {{"level_sst_path_ids", "2"}, {"level_blob_path_ids", "0:1"}}));
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  const CopyLayout layout =
      LayoutOf({main, second}, {0}, {0}, /*path_map=*/{1, 0, 1});
  ASSERT_OK(MakeCheckpoint(main, 0, &layout));
  EXPECT_EQ(Count(main, kTableFile), CountLive(PathOf("a", 1), kTableFile));
  EXPECT_EQ(Count(second, kTableFile), CountLive(PathOf("a", 0), kTableFile));
  EXPECT_EQ(Count(main, kBlobFile), 0U);
  EXPECT_EQ(Count(second, kBlobFile), CountLive(PathOf("a", 2), kBlobFile));
  EXPECT_GE(Count(second, kBlobFile), 1U);
  // CheckLayoutCopy() compacts, which moves all files to path 0.
  CheckLayoutCopy(main, {&layout.all}, /*is_in_place=*/false);
}

// The copy has the layout of the original, and each file is where it was.
TEST_F(LayoutCheckpointTest, CopyHasTheOriginalLayoutOnOtherDirectories) {
  const Options options = FeatureOptions(kMapAndDeltas, "a", 2, {0, 1}, {0, 1});
  OpenNew({options});
  FillTwoLevels();
  ASSERT_OK(db_->Merge(WriteOptions(), KeyOf(3), "m"));
  Expect(0, KeyOf(3), ValueOf(3, 1) + ",m");
  ASSERT_OK(db_->Flush(FlushOptions()));
  ASSERT_OK(db_->WaitForCompact(WaitForCompactOptions()));
  ASSERT_OK(db_->PauseBackgroundWork());
  const std::string main = Directory("main");
  const std::vector<std::string> paths = {Directory("first"),
                                          Directory("second")};
  const CopyLayout layout = LayoutOf(paths, {0, 1}, {0, 1}, {0, 1});
  ASSERT_OK(MakeCheckpoint(main, UINT64_MAX, &layout));
  for (const FileType type : {kTableFile, kBlobFile, kDeltaFile}) {
    for (uint32_t id = 0; id < 2; ++id) {
      EXPECT_EQ(Count(paths[id], type), CountLive(PathOf("a", id), type))
          << id << " " << type;
    }
    EXPECT_EQ(Count(main, type), 0U);
  }
  ASSERT_OK(db_->ContinueBackgroundWork());
  CheckLayoutCopy(main, {&layout.all});
  CheckOriginal({options});
}

TEST_F(LayoutCheckpointTest, SortedDeltaFilesHaveAPathOfTheirOwn) {
  Options options = FeatureOptions(kDeltas, "a", 2, {0}, {});
  options.delta_sorted_path_id = 1;
  OpenNew({options});
  PutRange(0, 0, kKeys);
  FillDeltas();
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  struct Case {
    Ids sst;
    int32_t sorted;
    size_t num_in_second;
  };
  const size_t recent = CountLive(PathOf("a", 0), kDeltaFile);
  const size_t sorted = CountLive(PathOf("a", 1), kDeltaFile);
  ASSERT_GE(recent, 1U);
  ASSERT_GE(sorted, 1U);
  for (const Case& c : {Case{{0, 1}, -1, sorted}, Case{{0, 1}, 0, 0},
                        Case{{1}, 0, recent}, Case{{}, 1, sorted}}) {
    SCOPED_TRACE(c.sorted);
    Directory("main");
    Directory("second");
    CopyLayout layout = LayoutOf({main, second}, c.sst, {});
    layout.all.delta_sorted_path_id = c.sorted;
    ASSERT_OK(MakeCheckpoint(main, 0, &layout));
    EXPECT_EQ(Count(second, kDeltaFile), c.num_in_second);
    EXPECT_EQ(Count(main, kDeltaFile), recent + sorted - c.num_in_second);
    CheckLayoutCopy(main, {&layout.all});
  }
  CheckOriginal({options});
}

// A file is linked if it goes to a directory of its own device.
TEST_F(LayoutCheckpointTest, FilesAreLinkedWhereTheDeviceIsTheSame) {
  Options options = PathOptions("a", 2, {0, 1}, {0, 1});
  options.cf_paths[0].path = dbname_;
  OpenNew({options});
  FillTwoLevels();
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  fs_->AddDevice(second);
  const CopyLayout layout = LayoutOf({main, second}, {0, 1}, {0, 1}, {0, 1});
  ASSERT_OK(MakeCheckpoint(main, 0, &layout));
  CheckLinks(main, /*of_ssts=*/2, /*of_blobs=*/2);
  CheckLinks(second, /*of_ssts=*/1, /*of_blobs=*/1);
  CheckLayoutCopy(main, {&layout.all});
  CheckOriginal({options});
}

// A database in one directory can be copied into several.
TEST_F(LayoutCheckpointTest, OriginalCanBeInOneDirectory) {
  const Options options = FeatureOptions(kBlobs, "a", 0, {}, {});
  OpenNew({options});
  FillTwoLevels();
  const std::string main = Directory("main");
  CopyAndCheck(main, LayoutOf({main, Directory("second")}, {0, 1}, {0, 1}));
  CheckOriginal({options});
}

// Without paths the copy is in one directory.
TEST_F(LayoutCheckpointTest, LayoutCanBeEmpty) {
  const Options options = FeatureOptions(kBlobs, "a", 2, {0, 1}, {1});
  OpenNew({options});
  FillTwoLevels();
  CopyAndCheck(Directory("main"), CopyLayout());
}

TEST_F(LayoutCheckpointTest, CopiesBesideJobsAndNewLayouts) {
  Options options = FeatureOptions(kMapAndDeltas, "a", 3, {0, 1}, {2});
  options.disable_auto_compactions = false;
  options.level0_file_num_compaction_trigger = 2;
  options.blob_gc_space_amp_limit = 1.1;
  OpenNew({options});
  CheckCopiesBesideJobs(/*with_merges=*/true, [&](int i) {
    const std::string number = std::to_string(i);
    const std::string main = Directory("main" + number);
    std::vector<std::string> directories = {main, Directory("second" + number)};
    if (i % 2 == 0) {
      directories.push_back(Directory("third" + number));
    }
    const CopyLayout layout = LayoutOf(directories, {0, 1}, {1, 0},
                                       i % 4 == 0 ? Ids{0, 1, 2} : Ids());
    EXPECT_OK(MakeCheckpoint(main, i % 3 == 0 ? UINT64_MAX : 0, &layout,
                             /*num_threads=*/1 + i % 3));
    CheckNamesNoOther(main);
    DBOptions db_options;
    std::vector<ColumnFamilyDescriptor> families;
    ConfigOptions config;
    config.env = device_env_.get();
    EXPECT_OK(LoadLatestOptions(config, main, &db_options, &families));
    std::unique_ptr<DB> copy;
    std::vector<ColumnFamilyHandle*> handles;
    EXPECT_OK(DB::Open(db_options, main, families, &handles, &copy));
    for (ColumnFamilyHandle* handle : handles) {
      EXPECT_OK(copy->DestroyColumnFamilyHandle(handle));
    }
    return copy;
  });
}

TEST_F(LayoutCheckpointTest, WrongLayoutsAreRefused) {
  Options options = PathOptions("a", 2, {0}, {1});
  options.wal_dir = Directory("wals");
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  const auto refused = [&](const CopyLayout& layout,
                           const std::string& message) {
    CheckRefused(MakeCheckpoint(main, 0, &layout), message);
    EXPECT_FALSE(Exists(main));
    EXPECT_TRUE(Beside(main).empty());
    EXPECT_FALSE(Exists(second));
    EXPECT_TRUE(Beside(second).empty());
  };
  refused(LayoutOf({main}, {0}, {}), "cf_paths has 1 paths");
  refused(LayoutOf({main, second, "/x/a", "/x/b", "/x/c"}, {0}, {}),
          "cf_paths has 5 paths");
  refused(LayoutOf({}, {0}, {}), "no cf_paths");
  refused(LayoutOf({main, second}, {}, {}), "cf_paths without");
  refused(LayoutOf({main, ""}, {0}, {}), "is empty");
  refused(LayoutOf({main, second}, {0, 2}, {}), "level_sst_path_ids");
  refused(LayoutOf({main, second}, {}, {2}), "level_blob_path_ids");
  refused(LayoutOf({main, second}, {0}, {}, {0, 2}), "path_map");
  CopyLayout unknown;
  unknown.column_families["unknown"] = LayoutOf({main, second}, {0}, {}).all;
  refused(unknown, "unknown");

  // Directories inside of others, also of the staging directories.
  for (const std::string& other :
       {main + "/a", second + "/a", second + ".tmp/a", second + ".tmp"}) {
    refused(LayoutOf({main, second, other}, {0}, {}), "inside one another");
  }
  // Directories of the database.
  for (const std::string& other :
       {dbname_, dbname_ + "/a", dbname_.substr(0, dbname_.rfind('/')),
        PathOf("a", 0), PathOf("a", 1) + "/x/../y", options.wal_dir,
        options.wal_dir + "/a"}) {
    const CopyLayout layout = LayoutOf({main, other}, {0}, {});
    EXPECT_TRUE(MakeCheckpoint(main, 0, &layout).IsInvalidArgument()) << other;
    EXPECT_TRUE(Beside(main).empty());
  }
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());

  // A family that cannot have several paths.
  ColumnFamilyOptions none;
  none.compaction_style = kCompactionStyleNone;
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(none, "none", &handle));
  CopyLayout layout = LayoutOf({main, second}, {0}, {1});
  const Status s = MakeCheckpoint(main, 0, &layout);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_NE(s.ToString().find("none"), std::string::npos) << s.ToString();
  EXPECT_TRUE(Beside(main).empty());
  EXPECT_TRUE(Beside(second).empty());
  layout.column_families["none"] = CopyLayout::ColumnFamily();
  ASSERT_OK(MakeCheckpoint(main, 0, &layout));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
}

// The staging directory of a checkpoint is emptied, so it must not be one of
// the database's.
TEST_F(LayoutCheckpointTest, StagingDirectoryIsNotOneOfTheDatabase) {
  Options options = PathOptions("a", 2, {0}, {1});
  const std::string precious = Directory("precious") + ".tmp";
  options.cf_paths[1].path = precious;
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  const std::string second = precious.substr(0, precious.size() - 4);
  const std::string main = Directory("main");
  const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
  EXPECT_TRUE(MakeCheckpoint(main, 0, &layout).IsInvalidArgument());
  const CopyLayout as_main = LayoutOf({second, main}, {0}, {1});
  EXPECT_TRUE(MakeCheckpoint(second, 0, &as_main).IsInvalidArgument());
  ASSERT_OK(VerifyData());
  CheckOriginal({options});
}

TEST_F(LayoutCheckpointTest, DirectoriesOfOthersAreLeftAlone) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
  // A file without mark, a mark without the checkpoint's, a mark of another
  // attempt, and a file that the attempt does not know.
  for (int i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    ASSERT_OK(env_->CreateDirIfMissing(second));
    ASSERT_OK(WriteStringToFile(env_, "precious", second + "/000012.sst"));
    if (i >= 1) {
      CheckpointMark mark;
      mark.attempt = kOne;
      if (i != 3) {
        mark.files = {"000012.sst"};
      }
      ASSERT_OK(mark.Write(env_->GetFileSystem().get(), second));
    }
    if (i >= 2) {
      CheckpointMark mark;
      mark.attempt = i == 2 ? kTwo : kOne;
      const std::string staging = CheckpointStaging::Name(main, mark.attempt);
      ASSERT_OK(env_->CreateDir(staging));
      ASSERT_OK(mark.Write(env_->GetFileSystem().get(), staging));
    }
    CheckLeftAlone(main, layout, second + "/000012.sst");
  }
  // An empty directory can be replaced.
  ASSERT_OK(DestroyDir(env_, second));
  ASSERT_OK(env_->CreateDir(second));
  CopyAndCheck(main, layout);
}

// A directory that has nothing but a mark is deleted, unless the attempt of the
// mark may be running.
TEST_F(LayoutCheckpointTest, MarkAloneIsALeftover) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  FileSystem* const fs = env_->GetFileSystem().get();
  enum Case {
    kEnded,
    kReplaced,
    kOlderIsComplete,
    kRunning,
    kComplete,
    kCompleteWithoutMark,
    kWithFile,
    kDamaged,
    kNumCases
  };
  for (int c = 0; c < kNumCases; ++c) {
    SCOPED_TRACE(c);
    const std::string main = Directory("main");
    const std::string other_main = Directory("other");
    const std::string second = Directory("second");
    const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
    CheckpointMark mark;
    mark.attempt = kOne;
    mark.directories = {CheckpointStaging::Name(other_main, kOne)};
    mark.files = {"000012.sst"};
    ASSERT_OK(env_->CreateDir(second));
    ASSERT_OK(mark.Write(fs, second));
    if (c == kReplaced || c == kRunning) {
      CheckpointMark of_checkpoint;
      of_checkpoint.attempt = c == kRunning ? kOne : kTwo;
      of_checkpoint.directories = {second};
      const std::string staging =
          CheckpointStaging::Name(other_main, of_checkpoint.attempt);
      ASSERT_OK(env_->CreateDir(staging));
      ASSERT_OK(of_checkpoint.Write(fs, staging));
    } else if (c == kComplete || c == kOlderIsComplete) {
      // A crash came between the commit and the deletion of the marks.
      CheckpointMark of_checkpoint;
      of_checkpoint.attempt = c == kComplete ? kOne : kTwo;
      of_checkpoint.directories = {second};
      ASSERT_OK(env_->CreateDir(other_main));
      ASSERT_OK(of_checkpoint.Write(fs, other_main));
    } else if (c == kCompleteWithoutMark) {
      // A crash came when the complete checkpoint was opened.
      CopyLayout complete = LayoutOf({other_main, second}, {0}, {0});
      ASSERT_OK(env_->DeleteFile(second + "/" + CheckpointMark::Name()));
      ASSERT_OK(MakeCheckpoint(other_main, 0, &complete));
      ASSERT_EQ(Count(second, kTableFile) + Count(second, kBlobFile), 0);
      ASSERT_FALSE(Exists(other_main + "/" + CheckpointMark::Name()));
      ASSERT_OK(mark.Write(fs, second));
    } else if (c == kWithFile) {
      ASSERT_OK(WriteStringToFile(env_, "precious", second + "/000012.sst"));
    } else if (c == kDamaged) {
      ASSERT_OK(WriteStringToFile(env_, "precious",
                                  second + "/" + CheckpointMark::Name()));
    }
    const Status s = MakeCheckpoint(main, 0, &layout);
    if (c == kEnded || c == kReplaced || c == kOlderIsComplete) {
      ASSERT_OK(s);
      CheckLayoutCopy(main, {&layout.all});
      continue;
    }
    CheckRefused(s, "Directory exists");
    CheckRefused(s, second);
    if (c != kDamaged) {
      CheckRefused(s, "mark of another checkpoint, " +
                          CheckpointStaging::Name(other_main, kOne));
    }
    EXPECT_TRUE(Exists(second + "/" + CheckpointMark::Name()));
    EXPECT_EQ(Exists(second + "/000012.sst"), c == kWithFile);
    EXPECT_FALSE(Exists(main));
  }
}

// Power fails between any two steps, and the next attempt has other
// directories, or one alone. LOG names the directories that stay with files.
TEST_F(LayoutCheckpointTest, DirectoriesThatTheNextAttemptDoesNotHave) {
  auto logger = std::make_shared<LineLogger>();
  Options options = FeatureOptions(kBlobs, "a", 2, {0, 1}, {0, 1});
  options.info_log = logger;
  int num_left = 0;
  int steps = 0;
  for (bool has_failed = true; has_failed; ++steps) {
    SCOPED_TRACE(steps);
    ASSERT_LT(steps, 500);
    DestroyAll();
    OpenNew({options});
    FillTwoLevels();
    const std::string number = std::to_string(steps);
    const std::string main = Directory("main" + number);
    const std::string second = Directory("second" + number);
    const std::string third = Directory("third" + number);
    const CopyLayout layout = LayoutOf({second, third}, {0, 1}, {0, 1});
    fs_->PowerOffAfter(steps);
    const Status s = MakeCheckpoint(main, UINT64_MAX, &layout);
    has_failed = fs_->HasFailed();
    fs_->PowerOffAfter(-1);
    Crash();
    ASSERT_OK(Open({options}, /*create_families=*/false));
    if (Exists(main)) {
      continue;
    }
    ASSERT_FALSE(s.ok());
    const CopyLayout other =
        LayoutOf({main, Directory("fourth" + number)}, {0, 1}, {0, 1});
    const bool has_layout = steps % 2 == 0;
    ASSERT_OK(MakeCheckpoint(main, UINT64_MAX, has_layout ? &other : nullptr));
    CheckLayoutCopy(main, {has_layout ? &other.all : nullptr});
    std::vector<std::string> left = Beside(second);
    for (const std::string& directory : Beside(third)) {
      left.push_back(directory);
    }
    left.push_back(second);
    left.push_back(third);
    for (const std::string& directory : left) {
      if (Exists(directory) && (Count(directory, kTableFile) > 0 ||
                                Count(directory, kBlobFile) > 0)) {
        ++num_left;
        EXPECT_TRUE(logger->Has(
            "an attempt that did not end has left " + directory + ". This",
            "delete it"))
            << directory;
      }
    }
    // A later attempt refuses a complete directory, and says what to do.
    if (Exists(second)) {
      const CopyLayout later =
          LayoutOf({Directory("fifth" + number), second}, {0, 1}, {0, 1});
      CheckRefused(MakeCheckpoint(Directory("later"), UINT64_MAX, &later),
                   "delete the directory");
    }
  }
  EXPECT_GT(num_left, 0);
}

// A checkpoint does not delete a staging directory without its mark, even if
// the files in it have names of SST files: the directory may be a path of
// another database.
TEST_F(LayoutCheckpointTest, StagingDirectoriesOfOthersAreLeftAlone) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
  for (const std::string& staging :
       {second + ".tmp", CheckpointStaging::Name(second, kOne),
        CheckpointStaging::GoneName(second, kOne),
        CheckpointStaging::Name(main, kOne)}) {
    SCOPED_TRACE(staging);
    for (const char* const name : {"notes.txt", "000012.sst"}) {
      for (const bool has_mark : {false, true}) {
        Directory("main");
        Directory("second");
        ASSERT_OK(env_->CreateDir(staging));
        const std::string precious = staging + "/" + name;
        ASSERT_OK(WriteStringToFile(env_, "precious", precious));
        if (has_mark) {
          // That of another attempt.
          CheckpointMark mark;
          mark.attempt = kTwo;
          mark.files = {name};
          ASSERT_OK(mark.Write(env_->GetFileSystem().get(), staging));
        }
        ASSERT_OK(MakeCheckpoint(main, 0, &layout));
        EXPECT_TRUE(Exists(precious));
      }
    }
  }
  // An empty one is deleted, and one with a mark that is not complete.
  for (const std::string& staging : {CheckpointStaging::Name(second, kOne),
                                     CheckpointStaging::GoneName(second, kOne),
                                     CheckpointStaging::Name(main, kOne),
                                     CheckpointStaging::GoneName(main, kOne)}) {
    SCOPED_TRACE(staging);
    for (const bool has_mark : {false, true}) {
      Directory("main");
      Directory("second");
      ASSERT_OK(env_->CreateDir(staging));
      if (has_mark) {
        ASSERT_OK(WriteStringToFile(env_, "",
                                    staging + "/" + CheckpointMark::Name()));
      }
      ASSERT_OK(MakeCheckpoint(main, 0, &layout));
      EXPECT_FALSE(Exists(staging));
    }
  }
  CheckLayoutCopy(main, {&layout.all});
}

// Another checkpoint uses the same second directory, and is complete, or still
// running, when the first one is about to commit.
TEST_F(LayoutCheckpointTest, DirectoryOfAnotherRunningCheckpoint) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  FillTwoLevels();
  for (const bool is_complete : {false, true}) {
    SCOPED_TRACE(is_complete);
    const std::string main = Directory("main");
    const std::string other_main = Directory("other");
    const std::string second = Directory("second");
    const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
    const CopyLayout other = LayoutOf({other_main, second}, {0}, {1});
    bool is_first = true;
    SyncPoint::GetInstance()->SetCallBack(
        "LayoutCheckpoint::Commit:Begin", [&](void*) {
          if (!is_first) {
            return;
          }
          is_first = false;
          if (is_complete) {
            EXPECT_OK(MakeCheckpoint(other_main, 0, &other));
            return;
          }
          // The same files, with the mark of another attempt.
          CheckpointMark mark;
          FileSystem* const fs = env_->GetFileSystem().get();
          const std::vector<std::string> stagings = Beside(second);
          ASSERT_EQ(stagings.size(), 1U);
          EXPECT_OK(mark.Read(fs, stagings[0]));
          mark.attempt = "another";
          EXPECT_OK(mark.Write(fs, stagings[0]));
        });
    SyncPoint::GetInstance()->EnableProcessing();
    const Status s = MakeCheckpoint(main, 0, &layout);
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    EXPECT_TRUE(s.IsAborted()) << s.ToString();
    EXPECT_FALSE(is_first);
    EXPECT_FALSE(Exists(main));
    EXPECT_EQ(Exists(second), is_complete);
    EXPECT_TRUE(Beside(second).empty());
    EXPECT_TRUE(Beside(main).empty());
    if (is_complete) {
      CheckLayoutCopy(other_main, {&other.all});
    }
  }
}

// A checkpoint takes the directories of another one away, which goes on while
// the first one copies and commits. The one that lacks its directories fails,
// and does not touch the files of the other one.
TEST_F(LayoutCheckpointTest, DisplacedCheckpointTouchesNoFileOfTheOther) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  FillTwoLevels();
  const std::vector<std::string> points = {
      "LayoutCheckpoint::StagingDirectoryOf", "LayoutCheckpoint::Commit:Begin",
      "LayoutCheckpoint::Commit:Checked",
      "LayoutCheckpoint::Commit:OthersRenamed"};
  int version = 0;
  for (const std::string& point : points) {
    for (const std::string& other_point : points) {
      for (const bool same_main : {false, true}) {
        SCOPED_TRACE(point + " " + other_point + std::to_string(same_main));
        const std::string main = Directory("main");
        const std::string other_main = same_main ? main : Directory("other");
        const std::string second = Directory("second");
        const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
        const CopyLayout other = LayoutOf({other_main, second}, {0}, {1});
        Status s;
        Status other_s;
        Interleave(
            point, [&] { return MakeCheckpoint(main, 0, &layout); },
            other_point,
            [&] {
              // The copies have different contents.
              PutRange(0, 0, kKeys, ++version, /*wal=*/true);
              return MakeCheckpoint(other_main, 0, &other);
            },
            &s, &other_s);
        EXPECT_TRUE(Beside(main).empty());
        EXPECT_TRUE(Beside(other_main).empty());
        EXPECT_TRUE(Beside(second).empty());
        if (!same_main && point == points.back()) {
          // The directory of the path is complete.
          ASSERT_OK(s);
          CheckRefused(other_s, "mark of another checkpoint");
          EXPECT_FALSE(Exists(other_main));
          continue;
        }
        EXPECT_TRUE(s.IsAborted()) << s.ToString();
        ASSERT_OK(other_s);
        CheckLayoutCopy(other_main, {&other.all});
        EXPECT_EQ(Exists(main), same_main);
      }
    }
  }
}

// Neither checkpoint sees the directories of the other one when it begins. One
// is committed first, and the other one fails.
TEST_F(LayoutCheckpointTest, SlowerCheckpointIsAborted) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  FillTwoLevels();
  for (const std::string other_point :
       {"LayoutCheckpoint::StagingDirectoryOf",
        "LayoutCheckpoint::Commit:Checked",
        "LayoutCheckpoint::Commit:OthersRenamed"}) {
    for (const bool same_main : {false, true}) {
      for (const bool same_second : {false, true}) {
        SCOPED_TRACE(other_point + std::to_string(same_main) +
                     std::to_string(same_second));
        const std::string main = Directory("main");
        const std::string other_main = same_main ? main : Directory("other");
        const std::string second = Directory("second");
        const std::string other_second =
            same_second ? second : Directory("other_second");
        const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
        const CopyLayout other = LayoutOf({other_main, other_second}, {0}, {1});
        Status s;
        Status other_s;
        Interleave(
            "LayoutCheckpoint::Begin:Done",
            [&] { return MakeCheckpoint(main, 0, &layout); }, other_point,
            [&] { return MakeCheckpoint(other_main, 0, &other); }, &s,
            &other_s);
        if (!same_main && !same_second) {
          ASSERT_OK(s);
          ASSERT_OK(other_s);
          CheckLayoutCopy(main, {&layout.all});
          CheckLayoutCopy(other_main, {&other.all});
        } else if (same_second &&
                   other_point == "LayoutCheckpoint::Commit:OthersRenamed") {
          EXPECT_TRUE(s.IsAborted()) << s.ToString();
          ASSERT_OK(other_s);
          CheckLayoutCopy(other_main, {&other.all});
        } else {
          ASSERT_OK(s);
          EXPECT_TRUE(other_s.IsAborted()) << other_s.ToString();
          CheckLayoutCopy(main, {&layout.all});
          EXPECT_EQ(Exists(other_main), same_main);
          EXPECT_EQ(Exists(other_second), same_second);
        }
        for (const std::string& directory :
             {main, other_main, second, other_second}) {
          EXPECT_TRUE(Beside(directory).empty());
        }
      }
    }
  }
}

// A checkpoint is committed after another one has taken it for one that has
// ended, but before the other one deletes a directory.
TEST_F(LayoutCheckpointTest, CommittedCheckpointIsNotDeleted) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  FillTwoLevels();
  for (const std::string point : {"LayoutCheckpoint::Commit:Begin",
                                  "LayoutCheckpoint::Commit:OthersRenamed"}) {
    SCOPED_TRACE(point);
    const std::string main = Directory("main");
    const std::string second = Directory("second");
    const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
    Status s;
    Status other_s;
    const auto make = [&] { return MakeCheckpoint(main, 0, &layout); };
    Interleave(point, make, "LayoutCheckpoint::DeleteLeftovers:Checked", make,
               &s, &other_s);
    ASSERT_OK(s);
    CheckRefused(other_s, "Directory exists");
    EXPECT_TRUE(Beside(main).empty());
    EXPECT_TRUE(Beside(second).empty());
    CheckLayoutCopy(main, {&layout.all});
  }
}

// A checkpoint without a layout has RocksDB's staging directory.
TEST_F(LayoutCheckpointTest, CheckpointsWithAndWithoutLayoutOverlap) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  FillTwoLevels();
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
  const auto make = [&] { return MakeCheckpoint(main, 0, &layout); };
  const auto make_plain = [&] { return MakeCheckpoint(main); };
  Status s;
  Status other_s;
  Interleave("LayoutCheckpoint::Commit:Begin", make, "", make_plain, &s,
             &other_s);
  EXPECT_TRUE(s.IsAborted()) << s.ToString();
  ASSERT_OK(other_s);
  EXPECT_TRUE(Beside(main).empty());
  EXPECT_TRUE(Beside(second).empty());
  CheckLayoutCopy(main, {nullptr});

  Directory("main");
  Directory("second");
  Interleave("LayoutCheckpoint::StagingDirectoryOf", make_plain, "", make, &s,
             &other_s);
  EXPECT_NOK(s);
  ASSERT_OK(other_s);
  EXPECT_TRUE(Beside(main).empty());
  CheckLayoutCopy(main, {&layout.all});
}

// The directory that is to be deleted is replaced by one of another attempt.
TEST_F(LayoutCheckpointTest, DirectoryOfAnotherAttemptIsPutBack) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  FileSystem* const fs = env_->GetFileSystem().get();
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
  CheckpointMark mark;
  mark.attempt = kOne;
  for (const std::string& directory :
       {second, CheckpointStaging::Name(main, kOne)}) {
    ASSERT_OK(env_->CreateDir(directory));
    ASSERT_OK(mark.Write(fs, directory));
  }
  SyncPoint::GetInstance()->SetCallBack(
      "LayoutCheckpoint::DeleteRenamed:Checked", [&](void*) {
        ASSERT_OK(WriteStringToFile(env_, "precious", second + "/000012.sst"));
        mark.attempt = kTwo;
        ASSERT_OK(mark.Write(fs, second));
      });
  SyncPoint::GetInstance()->EnableProcessing();
  const Status s = MakeCheckpoint(main, 0, &layout);
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  EXPECT_TRUE(s.IsAborted()) << s.ToString();
  CheckLeftAlone(main, layout, second + "/000012.sst");
}

// Power fails between the renames, and then between any two steps of the
// attempt that deletes what was left.
TEST_F(LayoutCheckpointTest, SurvivesPowerLossWhileLeftoversAreDeleted) {
  const Options options = FeatureOptions(kBlobs, "a", 2, {0, 1}, {0, 1});
  bool has_begun = false;
  int steps = 0;
  for (; !has_begun; ++steps) {
    SCOPED_TRACE(steps);
    ASSERT_LT(steps, 500);
    DestroyAll();
    OpenNew({options});
    FillTwoLevels();
    const CopyLayout layout = LayoutOfThree(steps);
    const std::string main = layout.all.cf_paths[1].path;
    SyncPoint::GetInstance()->SetCallBack(
        "LayoutCheckpoint::Commit:OthersRenamed",
        [&](void*) { fs_->PowerOff(); });
    SyncPoint::GetInstance()->EnableProcessing();
    EXPECT_NOK(MakeCheckpoint(main, UINT64_MAX, &layout));
    SyncPoint::GetInstance()->ClearAllCallBacks();
    Crash();
    EXPECT_TRUE(Exists(layout.all.cf_paths[0].path));
    ASSERT_OK(Open({options}, /*create_families=*/false));
    SyncPoint::GetInstance()->SetCallBack("LayoutCheckpoint::Begin:Done",
                                          [&](void*) {
                                            has_begun = !fs_->HasFailed();
                                            fs_->PowerOff();
                                          });
    fs_->PowerOffAfter(steps);
    EXPECT_NOK(MakeCheckpoint(main, UINT64_MAX, &layout));
    fs_->PowerOffAfter(-1);
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    Crash();
    ASSERT_OK(Open({options}, /*create_families=*/false));
    EXPECT_FALSE(Exists(main));
    ASSERT_OK(MakeCheckpoint(main, UINT64_MAX, &layout));
    for (const DbPath& path : layout.all.cf_paths) {
      EXPECT_TRUE(Beside(path.path).empty());
    }
    CheckLayoutCopy(main, {&layout.all});
  }
  EXPECT_GE(steps, 10);
}

// The steps of the commit: all directories are synced, the others are renamed,
// and only when that is durable is the checkpoint's directory.
TEST_F(LayoutCheckpointTest, CommitIsTheLastStep) {
  const Options options = PathOptions("a", 2, {0, 1}, {0, 1});
  OpenNew({options});
  FillTwoLevels();
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  const std::string third = Directory("third");
  const auto parent_of = [](const std::string& directory) {
    return directory.substr(0, directory.rfind('/'));
  };
  const std::string parent = parent_of(main);
  const CopyLayout layout = LayoutOf({second, third}, {0, 1}, {0, 1});
  fs_->TakeSteps();
  ASSERT_OK(MakeCheckpoint(main, 0, &layout));
  const std::vector<std::string> steps = fs_->TakeSteps();
  const auto staging_of = [&](const std::string& directory) {
    const std::string begin = "rename ";
    const std::string end = " " + directory;
    const auto found =
        std::find_if(steps.begin(), steps.end(), [&](const std::string& step) {
          return step.starts_with(begin) && step.ends_with(end);
        });
    EXPECT_NE(found, steps.end()) << directory;
    return found == steps.end()
               ? std::string()
               : found->substr(begin.size(),
                               found->size() - begin.size() - end.size());
  };
  const auto position = [&](const std::string& step, size_t from = 0) {
    const auto found = std::find(steps.begin() + static_cast<ptrdiff_t>(from),
                                 steps.end(), step);
    EXPECT_NE(found, steps.end()) << step;
    return static_cast<size_t>(found - steps.begin());
  };
  const auto makes_file = [](const std::string& step) {
    return (step.rfind("create ", 0) == 0 || step.rfind("link ", 0) == 0) &&
           step.find(".tmp/") != std::string::npos;
  };
  size_t last_file = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (makes_file(steps[i])) {
      last_file = i;
    }
  }
  // The marks are durable before the first file: only with a mark is the next
  // attempt allowed to delete files.
  const auto first_file =
      std::find_if(steps.begin(), steps.end(), [&](const std::string& step) {
        return makes_file(step) &&
               step.find(CheckpointMark::Name()) == std::string::npos;
      });
  ASSERT_NE(first_file, steps.end());
  for (const std::string& directory : {main, second, third}) {
    const std::string staging = staging_of(directory);
    const size_t mark =
        position("create " + staging + "/" + CheckpointMark::Name());
    EXPECT_LT(position("sync " + staging, mark),
              static_cast<size_t>(first_file - steps.begin()));
  }
  const std::string staging = staging_of(main);
  const size_t commit = position("rename " + staging + " " + main);
  for (const std::string& other : {second, third}) {
    const std::string of_other = staging_of(other);
    const size_t rename = position("rename " + of_other + " " + other);
    EXPECT_LT(position("sync " + of_other, last_file), rename);
    EXPECT_LT(position("sync " + staging, last_file), rename);
    EXPECT_LT(position("sync " + parent, last_file), rename);
    EXPECT_LT(position("sync " + parent_of(other), rename), commit);
  }
  EXPECT_LT(last_file, commit);
  position("sync " + parent, commit);
}

// Power fails between any two steps. Afterwards there is a complete checkpoint,
// or none, and the next attempt makes it.
TEST_F(LayoutCheckpointTest, SurvivesPowerLossAtEachStep) {
  const Options options = FeatureOptions(kBlobs, "a", 2, {0, 1}, {0, 1});
  bool was_committed_before_the_end = false;
  int steps = 0;
  for (bool has_failed = true; has_failed; ++steps) {
    SCOPED_TRACE(steps);
    ASSERT_LT(steps, 500);
    DestroyAll();
    OpenNew({options});
    FillTwoLevels();
    const CopyLayout layout = LayoutOfThree(steps);
    const std::string main = layout.all.cf_paths[1].path;
    fs_->PowerOffAfter(steps);
    const Status s = MakeCheckpoint(main, UINT64_MAX, &layout);
    has_failed = fs_->HasFailed();
    fs_->PowerOffAfter(-1);
    EXPECT_TRUE(has_failed || s.ok()) << s.ToString();
    Crash();
    ASSERT_OK(Open({options}, /*create_families=*/false));
    if (Exists(main)) {
      was_committed_before_the_end = was_committed_before_the_end || has_failed;
    } else {
      ASSERT_FALSE(s.ok());
      ASSERT_OK(MakeCheckpoint(main, UINT64_MAX, &layout));
    }
    for (const DbPath& path : layout.all.cf_paths) {
      EXPECT_TRUE(Beside(path.path).empty());
    }
    CheckLayoutCopy(main, {&layout.all});
    for (const DbPath& path : layout.all.cf_paths) {
      EXPECT_FALSE(Exists(path.path + "/" + CheckpointMark::Name()));
    }
    ASSERT_OK(VerifyData());
  }
  // The steps behind the commit are among those that failed.
  EXPECT_TRUE(was_committed_before_the_end);
  EXPECT_GE(steps, 20);
}

// CheckpointEngine, which copies files by threads, syncs them as well in a
// checkpoint without a layout.
TEST_F(LayoutCheckpointTest, CopiesWithoutLayoutSurvivePowerLoss) {
  const Options options = FeatureOptions(kMapAndDeltas, "a", 2, {0, 1}, {1});
  OpenNew({options});
  FillTwoLevels();
  const std::string main = Directory("main");
  CheckpointEngineOptions engine_options;
  engine_options.max_background_operations = 3;
  std::unique_ptr<CheckpointEngine> engine;
  ASSERT_OK(CheckpointEngine::Open(engine_options, &engine));
  ASSERT_OK(engine->CreateCheckpoint(db_.get(), main));
  Crash();
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  CheckLayoutCopy(main, {nullptr});
}

// Any step fails. Afterwards nothing is left, and the next attempt succeeds.
TEST_F(LayoutCheckpointTest, FailedStepLeavesNothing) {
  const Options options = FeatureOptions(kBlobs, "a", 2, {0, 1}, {0, 1});
  OpenNew({options});
  FillTwoLevels();
  int steps = 0;
  for (bool has_failed = true; has_failed; ++steps) {
    SCOPED_TRACE(steps);
    ASSERT_LT(steps, 500);
    const CopyLayout layout = LayoutOfThree(steps);
    const std::string main = layout.all.cf_paths[1].path;
    fs_->FailAfter(steps);
    const Status s = MakeCheckpoint(main, UINT64_MAX, &layout);
    has_failed = fs_->HasFailed();
    fs_->FailAfter(-1);
    if (!Exists(main)) {
      ASSERT_FALSE(s.ok());
      for (const DbPath& path : layout.all.cf_paths) {
        EXPECT_FALSE(Exists(path.path)) << path.path;
        EXPECT_TRUE(Beside(path.path).empty()) << path.path;
      }
      ASSERT_OK(MakeCheckpoint(main, UINT64_MAX, &layout));
    }
    CheckLayoutCopy(main, {&layout.all});
  }
  EXPECT_GE(steps, 20);
  CheckOriginal({options});
}

// A read-only instance may know less than the OPTIONS file and the MANIFEST.
TEST_F(LayoutCheckpointTest, ReadOnlyInstanceMayHaveOtherOptions) {
  Options options = PathOptions("a", 2, {0, 1}, {0, 1});
  options.cf_paths[0].path = dbname_;
  OpenNew({options, options});
  PutRange(0, 0, kKeys);
  PutRange(1, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(1)));
  Close();
  const std::string main = Directory("main");
  const CopyLayout layout = LayoutOf({main, Directory("second")}, {1}, {0});
  {
    // Files of the other column family are missing.
    std::unique_ptr<DB> read_only;
    ASSERT_OK(DB::OpenForReadOnly(WithoutPaths(options), dbname_, &read_only));
    CheckNeedsFamily(read_only.get(), main, layout);
    // A path that the OPTIONS file alone names.
    CheckRefused(MakeCheckpointOf(read_only.get(), main,
                                  LayoutOf({main, PathOf("a", 1)}, {1}, {0})),
                 "inside one another");
    ASSERT_OK(read_only->Close());
  }
  {
    std::unique_ptr<DB> read_only;
    std::vector<ColumnFamilyHandle*> handles;
    const ColumnFamilyOptions plain = WithoutPaths(options);
    ASSERT_OK(
        DB::OpenForReadOnly(DBOptions(options), dbname_,
                            {{kDefaultColumnFamilyName, plain}, {"cf1", plain}},
                            &handles, &read_only));
    ASSERT_OK(MakeCheckpointOf(read_only.get(), main, layout));
    for (ColumnFamilyHandle* handle : handles) {
      ASSERT_OK(read_only->DestroyColumnFamilyHandle(handle));
    }
    ASSERT_OK(read_only->Close());
  }
  ASSERT_OK(Open({options, options}, /*create_families=*/false));
  CheckLayoutCopy(main, {&layout.all, &layout.all});
  ASSERT_OK(VerifyData());
}

// A read-only instance ignores an incomplete end of the MANIFEST, and so does
// its checkpoint.
TEST_F(LayoutCheckpointTest, ReadOnlyInstanceIgnoresTheEndOfTheManifest) {
  const Options options = PathOptions("a", 2, {0, 1}, {0, 1});
  for (const ManifestTail tail :
       {ManifestTail::kTornRecord, ManifestTail::kIncompleteGroup}) {
    SCOPED_TRACE(static_cast<int>(tail));
    DestroyAll();
    OpenNew({options});
    PutRange(0, 0, kKeys);
    ASSERT_OK(db_->Flush(FlushOptions()));
    Close();
    AppendToManifest(tail);
    std::unique_ptr<DB> read_only;
    ASSERT_OK(OpenReadOnly({options}, &read_only));
    std::unique_ptr<CheckpointEngine> engine;
    ASSERT_OK(CheckpointEngine::Open(CheckpointEngineOptions(), &engine));
    const std::string main = Directory("main");
    const CopyLayout layout = LayoutOf({main, Directory("second")}, {1}, {0});
    CreateCheckpointOptions create;
    create.layout = std::make_shared<CopyLayout>(layout);
    ASSERT_OK(engine->CreateCheckpoint(read_only.get(), main, nullptr, create));
    ASSERT_OK(read_only->Close());
    ASSERT_OK(Open({options}, /*create_families=*/false));
    CheckLayoutCopy(main, {&layout.all});
    ASSERT_OK(VerifyData());
  }
}

// The family that the instance does not know has no SST file.
TEST_F(LayoutCheckpointTest, ReadOnlyInstanceWithoutAFamilyOfNoTable) {
  const Options options = PathOptions("a", 2, {0, 1}, {0, 1});
  OpenNew({options, options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  Close();
  const std::string main = Directory("main");
  const CopyLayout layout = LayoutOf({main, Directory("second")}, {1}, {0});
  std::unique_ptr<DB> read_only;
  ASSERT_OK(DB::OpenForReadOnly(options, dbname_, &read_only));
  CheckNeedsFamily(read_only.get(), main, layout);
  ASSERT_OK(read_only->Close());
}

// Column families that were added, and files that moved, between the check and
// the copy.
TEST_F(LayoutCheckpointTest, ColumnFamilyAddedMeanwhile) {
  const Options options = PathOptions("a", 2, {0}, {1});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  const std::string main = Directory("main");
  const std::string second = PathOf("b", 1);
  ASSERT_OK(DestroyDir(env_, second));
  const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
  const Options added = PathOptions("b", 2, {0}, {1});
  ColumnFamilyHandle* handle = nullptr;
  SyncPoint::GetInstance()->SetCallBack(
      "LayoutCheckpoint::Begin:Done", [&](void*) {
        ASSERT_OK(db_->CreateColumnFamily(added, "new", &handle));
      });
  SyncPoint::GetInstance()->EnableProcessing();
  CheckRefused(MakeCheckpoint(main, 0, &layout), "inside one another");
  SyncPoint::GetInstance()->DisableProcessing();
  ASSERT_NE(handle, nullptr);
  EXPECT_FALSE(Exists(main));
  EXPECT_TRUE(Beside(main).empty());
  ASSERT_OK(db_->Put(WriteOptions(), handle, "k", "v"));
  ASSERT_OK(db_->Flush(FlushOptions(), handle));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
}

// The OPTIONS file is written after the MANIFEST when a column family is added
// or dropped.
TEST_F(LayoutCheckpointTest, OptionsFileMayBeBehindTheManifest) {
  const Options options = PathOptions("a", 0, {}, {});
  OpenNew({options, options});
  PutRange(1, 0, kKeys);
  const std::string main = Directory("main");
  const CopyLayout layout = LayoutOf({main, Directory("second")}, {0}, {1});
  std::string fname;
  for (const std::string& name : Names(dbname_)) {
    if (name.rfind("OPTIONS-", 0) == 0) {
      fname = dbname_ + "/" + name;
    }
  }
  std::string text;
  ASSERT_OK(ReadFileToString(env_, fname, &text));
  const size_t begin = text.find("[CFOptions \"cf1\"]");
  ASSERT_NE(begin, std::string::npos);
  std::string sections = text.substr(begin);
  for (size_t at = sections.find("\"cf1\""); at != std::string::npos;
       at = sections.find("\"cf1\"")) {
    sections.replace(at, 5, "\"gone\"");
  }
  ASSERT_OK(WriteStringToFile(env_, text.substr(0, begin), fname));
  const Status s = MakeCheckpoint(main, 0, &layout);
  EXPECT_TRUE(s.IsTryAgain()) << s.ToString();
  EXPECT_FALSE(Exists(main));
  ASSERT_OK(WriteStringToFile(env_, text + sections, fname));
  ASSERT_OK(MakeCheckpoint(main, 0, &layout));
  CheckLayoutCopy(main, {&layout.all, &layout.all});
}

// The OPTIONS file of the copy can be read with another current directory.
TEST_F(LayoutCheckpointTest, OptionsFileHasCleanPaths) {
  const Options options = PathOptions("a", 0, {}, {});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  const std::string main = Directory("main");
  const std::string second = Directory("second");
  const CopyLayout given = LayoutOf({main, second + "/x/.."}, {0}, {1});
  ASSERT_OK(MakeCheckpoint(main, 0, &given));
  const CopyLayout layout = LayoutOf({main, second}, {0}, {1});
  CheckLayoutCopy(main, {&layout.all});
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
