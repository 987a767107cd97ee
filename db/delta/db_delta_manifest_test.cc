//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests how delta edits pass through a DB's MANIFEST, and when their files are
// deleted. The files are made up, and their contents are never read, unless a
// test says otherwise.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/delta/delta_edit_test_util.h"
#include "db/delta/delta_version.h"
#include "db/log_writer.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "file/writable_file_writer.h"
#include "port/stack_trace.h"
#include "test_util/strata/secondary_db_test_util.h"
#include "test_util/strata/strata_db_test_util.h"
#include "util/coding.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class DBDeltaManifestTest : public StrataDBTestBase {
 protected:
  DBDeltaManifestTest() : StrataDBTestBase("db_delta_manifest_test") {
    // The files are not real, so no job may read them.
    options_.disable_auto_compactions = true;
  }

  uint64_t NewNumber() { return dbfull()->GetVersionSet()->NewFileNumber(); }

  std::string NameOf(uint64_t number) const {
    return DeltaFileName(dbname_, number);
  }
  bool Exists(uint64_t number) { return env_->FileExists(NameOf(number)).ok(); }

  // Makes a description and writes a file for it.
  DeltaFileDescription NewFile(DeltaTier tier, uint64_t epoch = 0) {
    DeltaFileDescription file =
        MakeDeltaFile(NewNumber(), DeltaKind::kOperands, tier, epoch);
    EXPECT_OK(WriteStringToFile(env_, std::string(file.size, 'x'),
                                NameOf(file.number)));
    return file;
  }

  Status Log(DeltaEdit delta_edit, ColumnFamilyHandle* handle = nullptr) {
    ColumnFamilyData* const cfd =
        FamilyOf(handle == nullptr ? db_->DefaultColumnFamily() : handle);
    VersionEdit edit;
    edit.SetColumnFamily(cfd->GetID());
    edit.SetDeltaEdit(std::move(delta_edit));
    InstrumentedMutexLock lock(dbfull()->mutex());
    return dbfull()->GetVersionSet()->LogAndApply(
        cfd, ReadOptions(), WriteOptions(), &edit, dbfull()->mutex(),
        /*dir_contains_current_file=*/nullptr);
  }

  // Commits a flush that leaves one file of operands, and returns its number.
  uint64_t LogFlush(ColumnFamilyHandle* handle = nullptr) {
    const DeltaFileDescription file = NewFile(DeltaTier::kFlushed, NewNumber());
    DeltaEdit edit;
    edit.AddFile(file);
    EXPECT_OK(Log(std::move(edit), handle));
    return file.number;
  }

  // Commits a merge that removes all flushed files and leaves none.
  Status LogMergeToNothing(uint32_t num_files) {
    DeltaEdit edit;
    edit.SetMergeRecent({NewNumber(), num_files});
    return Log(std::move(edit));
  }

  // Closes the DB and appends a delta edit to its MANIFEST that has only a
  // field of a later version, with a tag that may be skipped.
  void AppendSkippedEditAndClose() {
    const std::string name = DescriptorFileName(
        dbname_, dbfull()->GetVersionSet()->manifest_file_number());
    Close();
    uint64_t size = 0;
    ASSERT_OK(env_->GetFileSize(name, &size));
    std::unique_ptr<FSWritableFile> file;
    ASSERT_OK(env_->GetFileSystem()->ReopenWritableFile(name, FileOptions(),
                                                        &file, nullptr));
    log::Writer writer(std::make_unique<WritableFileWriter>(
                           std::move(file), name, FileOptions()),
                       /*log_number=*/0, /*recycle_log_files=*/false,
                       /*manual_flush=*/false, kNoCompression,
                       /*track_and_verify_wals=*/false,
                       /*initial_block_offset=*/size % log::kBlockSize);
    std::string record;
    PutVarint32(&record, kDeltaStore);
    PutLengthPrefixedSlice(&record, Slice("\x01\x41\x01\x00", 4));
    ASSERT_OK(writer.AddRecord(WriteOptions(), record));
    ASSERT_OK(writer.Close(WriteOptions()));
  }

  // Installs a new SuperVersion, since only the old one keeps files that are
  // not in the current Version.
  void RenewSuperVersion() {
    ASSERT_OK(Put("key", "value"));
    ASSERT_OK(Flush());
  }

  std::shared_ptr<const DeltaVersion> State() {
    InstrumentedMutexLock lock(dbfull()->mutex());
    return FamilyOf(db_->DefaultColumnFamily())
        ->current()
        ->storage_info()
        ->delta();
  }
  std::string Text() {
    const auto state = State();
    std::string text = state == nullptr ? "none" : state->DebugString(true);
    return text;
  }

  Options options_ = CurrentOptions();
};

TEST_F(DBDeltaManifestTest, ReopeningKeepsTheState) {
  ASSERT_EQ("none", Text());
  const uint64_t first = LogFlush();
  const uint64_t second = LogFlush();
  const std::string before = Text();
  ASSERT_NE("none", before);
  const SequenceNumber largest = State()->LargestSequence();
  for (int i = 0; i < 3; ++i) {
    // The first reopening reads edits, the later ones a snapshot of the state.
    Reopen(options_);
    ASSERT_EQ(before, Text());
    ASSERT_GE(db_->GetLatestSequenceNumber(), largest);
    ASSERT_TRUE(Exists(first));
    ASSERT_TRUE(Exists(second));
  }
  // New writes must not reuse the sequence numbers of operands in delta files.
  ASSERT_OK(Put("k", "v"));
  ASSERT_GT(db_->GetLatestSequenceNumber(), largest);
}

// A state that is too large for one record of the MANIFEST survives a
// reopening.
TEST_F(DBDeltaManifestTest, LargeStateSurvivesAReopening) {
  constexpr size_t kCount = 20000;
  LogFlush();
  DeltaEdit edit;
  const DeltaFileDescription extents = NewFile(DeltaTier::kSorted);
  edit.AddFile(extents);
  DeltaEdit::ReplaceBuckets all;
  for (size_t i = 0; i < kCount; ++i) {
    char key[16];
    snprintf(key, sizeof(key), "%08d", static_cast<int>(i));
    all.buckets.push_back({i == 0 ? "" : key, {0, extents.number, 10, 0}});
  }
  edit.AddReplaceBuckets(std::move(all));
  ASSERT_OK(Log(std::move(edit)));
  const std::string before = Text();
  for (int i = 0; i < 2; ++i) {
    Reopen(options_);
    ASSERT_EQ(kCount, State()->Buckets().size());
    ASSERT_EQ(before, Text());
  }
}

TEST_F(DBDeltaManifestTest, ObsoleteFileStaysWhileAnIteratorUsesIt) {
  const uint64_t number = LogFlush();
  RenewSuperVersion();
  ASSERT_TRUE(Exists(number));
  std::unique_ptr<Iterator> iterator(db_->NewIterator(ReadOptions()));
  ASSERT_OK(LogMergeToNothing(1));
  ASSERT_EQ(nullptr, State());
  RenewSuperVersion();
  // The iterator's Version still has the file.
  ASSERT_TRUE(Exists(number));
  iterator.reset();
  ASSERT_FALSE(Exists(number));
  Reopen(options_);
  ASSERT_EQ("none", Text());
}

TEST_F(DBDeltaManifestTest, OpenDeletesFilesOfNoVersion) {
  const uint64_t live = LogFlush();
  // A crash leaves such a file.
  const uint64_t orphan = NewFile(DeltaTier::kFlushed, NewNumber()).number;
  Reopen(options_);
  ASSERT_TRUE(Exists(live));
  ASSERT_FALSE(Exists(orphan));
}

TEST_F(DBDeltaManifestTest, DroppedFamilyLosesItsFiles) {
  CreateColumnFamilies({"other"}, options_);
  ReopenWithColumnFamilies({"default", "other"}, options_);
  const uint64_t kept = LogFlush();
  const uint64_t dropped = LogFlush(handles_[1]);
  ReopenWithColumnFamilies({"default", "other"}, options_);
  ASSERT_TRUE(Exists(kept));
  ASSERT_TRUE(Exists(dropped));
  ASSERT_OK(db_->DropColumnFamily(handles_[1]));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.resize(1);
  ASSERT_TRUE(Exists(kept));
  ASSERT_FALSE(Exists(dropped));
}

TEST_F(DBDeltaManifestTest, RefusedEditChangesNothing) {
  const uint64_t number = LogFlush();
  const std::string before = Text();
  // The merge names more files than there are.
  ASSERT_TRUE(LogMergeToNothing(2).IsCorruption());
  ASSERT_EQ(before, Text());
  RenewSuperVersion();
  ASSERT_TRUE(Exists(number));
  // Later edits succeed.
  LogFlush();
  const std::string after = Text();
  ASSERT_NE(before, after);
  Reopen(options_);
  ASSERT_EQ(after, Text());
}

// A later version may write a delta edit that this one has to skip as a whole.
// An open skips it and keeps the state, also without delta files.
TEST_F(DBDeltaManifestTest, OpenSkipsADeltaEditOfUnknownFields) {
  for (const bool has_files : {false, true}) {
    if (has_files) {
      LogFlush();
    }
    const std::string before = Text();
    ASSERT_NO_FATAL_FAILURE(AppendSkippedEditAndClose());
    Reopen(options_);
    ASSERT_EQ(before, Text());
  }
}

TEST_F(DBDeltaManifestTest, SecondaryRefusesDeltaFiles) {
  LogFlush();
  Close();
  options_.max_open_files = -1;
  std::unique_ptr<DB> secondary;
  const std::string path = test::PerThreadDBPath("secondary");
  Status s = DB::OpenAsSecondary(options_, dbname_, path, &secondary);
  ASSERT_TRUE(s.IsNotSupported()) << s.ToString();
}

// A secondary instance is refused by each MANIFEST with delta files, also if
// they are in an atomic group, and goes on with the first MANIFEST without. The
// files are those of flushes.
TEST_F(DBDeltaManifestTest, SecondaryGoesOnAfterTheLastDeltaFile) {
  const std::vector<std::string> names = {kDefaultColumnFamilyName, "other"};
  Options plain = options_;
  plain.merge_operator = MergeOperators::CreateStringAppendOperator();
  plain.atomic_flush = true;
  Options separate = plain;
  separate.enable_delta_separation = true;
  const auto flush_both = [this](const std::string& operand) {
    ASSERT_OK(Merge(0, "key", operand));
    ASSERT_OK(Merge(1, "key", operand));
    ASSERT_OK(Flush(std::vector<int>{0, 1}));
  };
  DestroyAndReopen(plain);
  CreateAndReopenWithCF({names[1]}, plain);
  ASSERT_NO_FATAL_FAILURE(flush_both("a"));
  SecondaryDB secondary(dbname_);
  ASSERT_OK(secondary.Open(plain, names));

  ReopenWithColumnFamilies(names, separate);
  for (const char* operand : {"b", "c"}) {
    ASSERT_NO_FATAL_FAILURE(flush_both(operand));
    const Status s = secondary.CatchUp();
    ASSERT_TRUE(s.IsNotSupported()) << s.ToString();
    EXPECT_EQ(secondary.Get(0, "key"), "a");
    EXPECT_EQ(secondary.Get(1, "key"), "a");
  }

  ReopenWithColumnFamilies(names, plain);
  ASSERT_OK(ForceCompaction(0));
  ASSERT_OK(ForceCompaction(1));
  WaitForCompactOptions wait;
  wait.wait_for_purge = true;
  ASSERT_OK(db_->WaitForCompact(wait));
  ReopenWithColumnFamilies(names, plain);
  ASSERT_OK(secondary.CatchUp());
  EXPECT_EQ(secondary.Get(0, "key"), "a,b,c");
  EXPECT_EQ(secondary.Get(1, "key"), "a,b,c");
}

// A family that was dropped before the refusal, and whose handle is gone, is
// not touched by the attempt that goes on.
TEST_F(DBDeltaManifestTest, SecondaryForgetsAFamilyDroppedBeforeARefusal) {
  const std::vector<std::string> names = {kDefaultColumnFamilyName, "other"};
  Options plain = options_;
  plain.merge_operator = MergeOperators::CreateStringAppendOperator();
  Options separate = plain;
  separate.enable_delta_separation = true;
  DestroyAndReopen(plain);
  CreateAndReopenWithCF({names[1]}, plain);
  for (int family = 0; family < 2; ++family) {
    ASSERT_OK(Merge(family, "key", "a"));
    ASSERT_OK(Flush(family));
  }
  ReopenWithColumnFamilies(names, std::vector<Options>{separate, plain});
  SecondaryDB secondary(dbname_);
  ASSERT_OK(secondary.Open(plain, names));

  ASSERT_OK(Merge(1, "key", "b"));
  ASSERT_OK(Flush(1));
  ASSERT_OK(db_->DropColumnFamily(handles_[1]));
  ASSERT_OK(Merge(0, "key", "b"));
  ASSERT_OK(Flush(0));
  const Status s = secondary.CatchUp();
  ASSERT_TRUE(s.IsNotSupported()) << s.ToString();
  secondary.DestroyHandle(1);

  Reopen(plain);
  ASSERT_OK(ForceCompaction(0));
  WaitForCompactOptions wait;
  wait.wait_for_purge = true;
  ASSERT_OK(db_->WaitForCompact(wait));
  Reopen(plain);
  ASSERT_OK(secondary.CatchUp());
  EXPECT_EQ(secondary.Get(0, "key"), "a,b");
}

// Best-efforts recovery goes back to the last state whose files all exist.
TEST_F(DBDeltaManifestTest, BestEffortsRecoveryDropsStatesWithMissingFiles) {
  const uint64_t first = LogFlush();
  Reopen(options_);
  const std::string before = Text();
  for (bool truncated : {false, true}) {
    const uint64_t second = LogFlush();
    ASSERT_NE(before, Text());
    Close();
    if (truncated) {
      ASSERT_OK(WriteStringToFile(env_, "x", NameOf(second)));
    } else {
      ASSERT_OK(env_->DeleteFile(NameOf(second)));
    }
    options_.best_efforts_recovery = true;
    Reopen(options_);
    ASSERT_EQ(before, Text());
    ASSERT_TRUE(Exists(first));
    options_.best_efforts_recovery = false;
    Reopen(options_);
    ASSERT_EQ(before, Text());
  }
}

TEST_F(DBDeltaManifestTest, ChecksumListIncludesDeltaFiles) {
  DeltaFileDescription file = NewFile(DeltaTier::kFlushed, NewNumber());
  file.file_checksum = "sum";
  file.file_checksum_func_name = "function";
  DeltaEdit edit;
  edit.AddFile(file);
  ASSERT_OK(Log(std::move(edit)));
  std::unique_ptr<FileChecksumList> list(NewFileChecksumList());
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    ASSERT_OK(dbfull()->GetVersionSet()->GetLiveFilesChecksumInfo(list.get()));
  }
  std::string checksum;
  std::string function;
  ASSERT_OK(list->SearchOneFileChecksum(file.number, &checksum, &function));
  ASSERT_EQ("sum", checksum);
  ASSERT_EQ("function", function);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  RegisterCustomObjects(argc, argv);
  return RUN_ALL_TESTS();
}
