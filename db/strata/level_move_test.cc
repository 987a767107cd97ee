//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Calls that move SST files to another level without a rewrite, beside other
// jobs: CompactFiles() with allow_trivial_move.

#include <string>
#include <vector>

#include "file/sst_file_manager_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/metadata.h"
#include "rocksdb/sst_file_manager.h"
#include "test_util/strata/drop_before_edit_test_util.h"
#include "test_util/strata/strata_db_test_util.h"

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

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
