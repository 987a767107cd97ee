//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Calls that move SST files to another level without a rewrite, beside other
// jobs: CompactFiles() with allow_trivial_move, PromoteL0(), CompactRange()
// with change_level.

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "db/compaction/compaction_picker.h"
#include "file/sst_file_manager_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/experimental.h"
#include "rocksdb/metadata.h"
#include "rocksdb/sst_file_manager.h"
#include "rocksdb/sst_file_writer.h"
#include "test_util/strata/drop_before_edit_test_util.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"

namespace ROCKSDB_NAMESPACE {

class LevelMoveTest : public StrataDBTestBase {
 public:
  LevelMoveTest() : StrataDBTestBase("level_move_test") {}

 protected:
  // No compaction begins by itself.
  Options MoveOptions() const {
    Options options = CurrentOptions();
    options.compression = kNoCompression;
    options.disable_auto_compactions = true;
    options.level_compaction_dynamic_level_bytes = false;
    options.num_levels = 7;
    return options;
  }

  // Gives the DB an SstFileManager of its own.
  void UseFileManager(Options* options) {
    options->sst_file_manager.reset(NewSstFileManager(env_));
  }
  SstFileManagerImpl* FileManager() {
    return static_cast<SstFileManagerImpl*>(
        last_options_.sst_file_manager.get());
  }

  // Opens a new DB with the column family "other", which is handles_[1] and has
  // a file in level 0.
  void OpenWithFileOfOther(const Options& options) {
    DestroyAndReopen(options);
    CreateAndReopenWithCF({"other"}, options);
    ASSERT_OK(Put(1, "a", "1"));
    ASSERT_OK(Flush(1));
  }

  // Returns the paths of the files of a level.
  std::vector<std::string> FilesOf(int level, int cf = 0) {
    ColumnFamilyMetaData meta;
    db_->GetColumnFamilyMetaData(Handle(cf), &meta);
    std::vector<std::string> files;
    for (const SstFileMetaData& file : meta.levels[level].files) {
      files.push_back(file.db_path + file.name);
    }
    return files;
  }

  // Moves the files to a level without a rewrite, where that is possible.
  Status Move(const std::vector<std::string>& files, int level, int cf = 0) {
    CompactionOptions options;
    options.allow_trivial_move = true;
    return db_->CompactFiles(options, Handle(cf), files, level);
  }

  // Opens a new DB with a file of each key in level 0.
  void OpenWithFiles(const std::vector<std::string>& keys) {
    DestroyAndReopen(MoveOptions());
    for (const std::string& key : keys) {
      ASSERT_OK(Put(key, "1"));
      ASSERT_OK(Flush());
    }
  }

  Status Promote(int level) {
    return experimental::PromoteL0(db_.get(), db_->DefaultColumnFamily(),
                                   level);
  }

  // Runs `second` beside `first`, whose edit is about to be written to the
  // MANIFEST, and which goes on when `second` has ended or has reached a sync
  // point. Returns when both have ended.
  static void RunDuringTheEdit(const std::function<void()>& first,
                               const std::function<void()>& second,
                               const std::string& point) {
    std::atomic<bool> has_ended{false};
    std::thread thread;
    const auto writes =
        EnableCallBackOnce("VersionSet::LogAndApply:WriteManifest", [&](void*) {
          const auto reached = EnableCallBackOnce(point, [](void*) {});
          thread = std::thread([&] {
            second();
            has_ended = true;
          });
          EXPECT_TRUE(WaitUntil([&] { return has_ended || reached->load(); }));
        });
    first();
    EXPECT_TRUE(writes->load());
    if (thread.joinable()) {
      thread.join();
    }
    DisableCallBacks();
  }
};

TEST_F(LevelMoveTest, MoveInADroppedFamilyDoesNotStopTheDB) {
  ASSERT_NO_FATAL_FAILURE(OpenWithFileOfOther(MoveOptions()));
  const std::vector<std::string> files = FilesOf(0, 1);
  ASSERT_OK(db_->DropColumnFamily(handles_[1]));
  EXPECT_TRUE(Move(files, 1, 1).IsColumnFamilyDropped());
  EXPECT_TRUE(db_->CompactFiles(CompactionOptions(), handles_[1], files, 1)
                  .IsColumnFamilyDropped());
  EXPECT_OK(Put(0, "b", "1"));
}

TEST_F(LevelMoveTest, MovesGiveBackTheSpaceThatTheyReserve) {
  Options options = MoveOptions();
  UseFileManager(&options);
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", std::string(10000, 'v')));
  ASSERT_OK(Flush());
  const std::vector<std::string> files = FilesOf(0);
  ASSERT_EQ(1u, files.size());
  FileManager()->SetMaxAllowedSpaceUsage(4 * FileManager()->GetTotalSize());
  for (int level = 1; level <= 4; ++level) {
    ASSERT_OK(Move(files, level));
    EXPECT_EQ(files, FilesOf(level));
    EXPECT_EQ(0u, FileManager()->GetCompactionsReservedSize());
  }
  ASSERT_OK(db_->CompactFiles(CompactionOptions(), files, 5));
  EXPECT_NE(files, FilesOf(5));
  EXPECT_EQ(0u, FileManager()->GetCompactionsReservedSize());
}

TEST_F(LevelMoveTest, FailedMoveGivesBackTheSpaceThatItReserves) {
  Options options = MoveOptions();
  UseFileManager(&options);
  ASSERT_NO_FATAL_FAILURE(OpenWithFileOfOther(options));
  const std::vector<std::string> files = FilesOf(0, 1);
  DropBeforeEdit drop(db_.get(), handles_[1],
                      "TestCompactFiles::IngestExternalFile2",
                      /*in_group=*/false);
  EXPECT_TRUE(Move(files, 1, 1).IsColumnFamilyDropped());
  EXPECT_TRUE(drop.End());
  EXPECT_EQ(0u, FileManager()->GetCompactionsReservedSize());
}

// The edit of the move is in the queue for the MANIFEST, behind that of the
// drop.
TEST_F(LevelMoveTest, FamilyThatIsDroppedDuringAMoveDoesNotStopTheDB) {
  for (const bool in_group : {false, true}) {
    SCOPED_TRACE(in_group);
    ASSERT_NO_FATAL_FAILURE(OpenWithFileOfOther(MoveOptions()));
    const std::vector<std::string> files = FilesOf(0, 1);
    DropBeforeEdit drop(db_.get(), handles_[1],
                        "TestCompactFiles::IngestExternalFile2", in_group);
    const Status s = Move(files, 1, 1);
    EXPECT_TRUE(drop.End());
    // A group gives all its edits its own status.
    EXPECT_TRUE(in_group ? s.ok() : s.IsColumnFamilyDropped()) << s.ToString();
    EXPECT_OK(Put(0, "b", "1"));
  }
}

// A compaction of the files would fail when they are on another level, which
// would stop the DB.
TEST_F(LevelMoveTest, PromotedFilesAreNotCompactedMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(OpenWithFiles({"a", "c"}));
  const std::vector<std::string> files = FilesOf(0);
  RunDuringTheEdit([&] { EXPECT_OK(Promote(2)); },
                   [&] {
                     const Status s = db_->CompactFiles(CompactionOptions(),
                                                        Handle(), files, 1);
                     EXPECT_TRUE(s.IsAborted()) << s.ToString();
                   },
                   "CompactFilesImpl:0");
  EXPECT_EQ("0,0,2", FilesPerLevel());
  EXPECT_OK(Put("b", "1"));
  EXPECT_OK(Flush());
  // The files are free again.
  EXPECT_OK(ForceCompaction());
  EXPECT_EQ("1", Get("a"));
  EXPECT_EQ("1", Get("c"));
}

TEST_F(LevelMoveTest, SecondPromotionOfTheSameFilesIsRefused) {
  ASSERT_NO_FATAL_FAILURE(OpenWithFiles({"a", "c"}));
  RunDuringTheEdit([&] { EXPECT_OK(Promote(2)); },
                   [&] {
                     const Status s = Promote(1);
                     EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
                   },
                   "VersionSet::LogAndApply:BeforeWriterWaiting");
  EXPECT_EQ("0,0,2", FilesPerLevel());
  EXPECT_OK(Put("b", "1"));
}

TEST_F(LevelMoveTest, ManualCompactionWaitsForAPromotion) {
  ASSERT_NO_FATAL_FAILURE(OpenWithFiles({"a", "c"}));
  RunDuringTheEdit(
      [&] { EXPECT_OK(Promote(2)); },
      [&] {
        EXPECT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
        EXPECT_EQ("0,0,2", FilesPerLevel());
      },
      "CompactionPicker::CompactRange:Conflict");
  EXPECT_EQ("1", Get("a"));
  EXPECT_EQ("1", Get("c"));
}

// Files that a failed promotion leaves in level 0 can be compacted.
TEST_F(LevelMoveTest, FailedPromotionFreesItsFiles) {
  ASSERT_NO_FATAL_FAILURE(OpenWithFiles({"a", "c"}));
  EnableCallBackOnce(
      "VersionSet::ProcessManifestWrites:AfterSyncManifest", [](void* arg) {
        *static_cast<IOStatus*>(arg) = IOStatus::IOError("injected");
      });
  EXPECT_TRUE(Promote(2).IsIOError());
  DisableCallBacks();
  EXPECT_EQ("2", FilesPerLevel());
  ColumnFamilyMetaData meta;
  db_->GetColumnFamilyMetaData(&meta);
  for (const SstFileMetaData& file : meta.levels[0].files) {
    EXPECT_FALSE(file.being_compacted);
  }
  EXPECT_TRUE(
      Family()->compaction_picker()->compactions_in_progress()->empty());
}

// The file is ingested into level 6, between the keys of the files of level 0.
TEST_F(LevelMoveTest, PromotionIsRefusedWhereAnotherJobWrites) {
  ASSERT_NO_FATAL_FAILURE(OpenWithFiles({"a", "c"}));
  const std::string file = dbname_ + "/ingested.sst";
  SstFileWriter writer(EnvOptions(), last_options_);
  ASSERT_OK(writer.Open(file));
  ASSERT_OK(writer.Put("b", "2"));
  ASSERT_OK(writer.Finish());
  bool was_refused = false;
  EnableCallBackOnce(
      "CompactionPicker::RegisterCompaction:Registered", [&](void*) {
        EnableCallBackOnce("VersionSet::LogAndApply:WriteManifest", [&](void*) {
          OnAnotherThread([&] {
            const Status s = Promote(6);
            EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
            EXPECT_NE(std::string::npos, s.ToString().find("in level 6"))
                << s.ToString();
            was_refused = true;
          });
        });
      });
  EXPECT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
  DisableCallBacks();
  EXPECT_TRUE(was_refused);
  EXPECT_EQ("2,0,0,0,0,0,1", FilesPerLevel());
  EXPECT_OK(Promote(5));
  EXPECT_EQ("0,0,0,0,0,2,1", FilesPerLevel());
}

// One of the two would fail when the file is not where its edit says.
TEST_F(LevelMoveTest, FilesThatAreBeingDeletedAreNotMoved) {
  ASSERT_NO_FATAL_FAILURE(OpenWithFiles({"a", "k"}));
  ASSERT_OK(Promote(1));
  CompactRangeOptions to_level2;
  to_level2.change_level = true;
  to_level2.target_level = 2;
  const Slice a("a");
  const Slice k("k");
  RunDuringTheEdit(
      [&] { EXPECT_OK(DeleteFilesInRange(db_.get(), Handle(), &a, &a)); },
      [&] {
        const Status s = db_->CompactRange(to_level2, &k, &k);
        EXPECT_TRUE(s.IsAborted()) << s.ToString();
      },
      "DBImpl::ReFitLevel:PostRegisterCompaction");
  EXPECT_EQ("0,1", FilesPerLevel());
  EXPECT_OK(db_->CompactRange(to_level2, &k, &k));
  EXPECT_EQ("0,0,1", FilesPerLevel());
  EXPECT_EQ("1", Get("k"));
}

TEST_F(LevelMoveTest, PromotionOfAnEmptyLevel) {
  DestroyAndReopen(MoveOptions());
  EXPECT_OK(Promote(1));
  EXPECT_EQ("", FilesPerLevel());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
