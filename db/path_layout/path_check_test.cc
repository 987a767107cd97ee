//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of an open after a path was removed from cf_paths: the error says what
// to do, and doing it works. The same for best-efforts recovery and secondary
// instances, which must not take the files of that path for lost.

#include "db/path_layout/path_check.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/db_test_util.h"
#include "db/log_writer.h"
#include "db/version_edit.h"
#include "file/filename.h"
#include "file/writable_file_writer.h"
#include "port/stack_trace.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Runs compactions in this process as another process would, which has the
// OPTIONS file alone: it does not name the paths of a database without a
// layout.
class Worker : public CompactionService {
 public:
  explicit Worker(std::string dbname) : dbname_(std::move(dbname)) {}
  const char* Name() const override { return "Worker"; }
  CompactionServiceScheduleResponse Schedule(
      const CompactionServiceJobInfo& /*info*/,
      const std::string& input) override {
    input_ = input;
    return CompactionServiceScheduleResponse(
        "job", CompactionServiceJobStatus::kSuccess);
  }
  CompactionServiceJobStatus Wait(const std::string& /*job_id*/,
                                  std::string* result) override {
    const Options options;
    CompactionServiceOptionsOverride overrides;
    overrides.env = options.env;
    overrides.table_factory = options.table_factory;
    overrides.merge_operator = MergeOperators::CreateStringAppendOperator();
    status = DB::OpenAndCompact(OpenAndCompactOptions(), dbname_,
                                dbname_ + "/worker", input_, result, overrides);
    ++num_jobs;
    return status.ok() ? CompactionServiceJobStatus::kSuccess
                       : CompactionServiceJobStatus::kFailure;
  }

  // The result of the last job.
  Status status;
  int num_jobs = 0;

 private:
  const std::string dbname_;
  std::string input_;
};

}  // namespace

class PathCheckTest : public DBTestBase {
 protected:
  static constexpr int kKeys = 50;

  PathCheckTest() : DBTestBase("path_check_test", /*env_do_fsync=*/false) {
    second_ = dbname_ + "_second";
    third_ = dbname_ + "_third";
  }
  ~PathCheckTest() override {
    Close();
    DestroyDir(env_, second_).PermitUncheckedError();
    DestroyDir(env_, third_).PermitUncheckedError();
    DestroyDir(env_, dbname_ + "_secondary").PermitUncheckedError();
  }

  Options PathOptions(int num_paths, uint32_t layout, bool deltas) {
    Options options = CurrentOptions();
    options.cf_paths = {{dbname_, 0}};
    if (num_paths == 2) {
      options.cf_paths.emplace_back(second_, 0);
    }
    options.level_sst_path_ids = {layout};
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.enable_delta_separation = deltas;
    options.disable_auto_compactions = true;
    return options;
  }

  void MergeAll(const std::string& operand) {
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_OK(Merge(Key(i), operand));
    }
    ASSERT_OK(Flush());
  }
  void CheckAll(const std::string& value) {
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_EQ(Get(Key(i)), value);
    }
  }
  void CompactAll() {
    CompactRangeOptions options;
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
    WaitForCompactOptions wait;
    wait.wait_for_purge = true;
    ASSERT_OK(db_->WaitForCompact(wait));
  }
  size_t NumFilesOnSecond(FileType wanted) {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(second_, &names));
    size_t n = 0;
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type;
      n += ParseFileName(name, &number, &type) && type == wanted ? 1 : 0;
    }
    return n;
  }

  // Appends records to a MANIFEST that is not in use.
  void AppendToManifest(const std::string& name,
                        const std::vector<const VersionEdit*>& edits) {
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
    for (const VersionEdit* edit : edits) {
      std::string record;
      ASSERT_TRUE(edit->EncodeTo(&record, /*ts_sz=*/0));
      ASSERT_OK(writer.AddRecord(WriteOptions(), record));
    }
    ASSERT_OK(writer.Close(WriteOptions()));
  }

  // Returns the names of the files of both paths that an open may not change.
  std::set<std::string> Files() {
    std::set<std::string> result;
    for (const std::string& directory : {dbname_, second_}) {
      std::vector<std::string> names;
      EXPECT_OK(env_->GetChildren(directory, &names));
      for (const std::string& name : names) {
        if (name.rfind("LOG", 0) != 0) {
          result.insert(directory + "/" + name);
        }
      }
    }
    return result;
  }
  // Checks that the status says which path of which family is missing.
  static void ExpectRefused(const Status& s) {
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    for (const char* part : {"path id 1", "column family default",
                             "Open the database with the paths that it had"}) {
      EXPECT_NE(s.ToString().find(part), std::string::npos) << s.ToString();
    }
  }

  // A way to get files onto the second path.
  struct Placement {
    const char* name;
    std::function<void(Options*)> set;
    bool has_layout = true;
  };
  static std::vector<Placement> Placements() {
    return {{"SST", [](Options* o) { o->level_sst_path_ids = {1}; }},
            {"blob",
             [](Options* o) {
               o->enable_blob_files = true;
               o->level_blob_path_ids = {1};
             }},
            {"mapped blob",
             [](Options* o) {
               o->enable_blob_files = true;
               o->enable_blob_address_map = true;
               o->level_blob_path_ids = {1};
             }},
            {"sorted deltas",
             [](Options* o) {
               o->enable_delta_separation = true;
               o->delta_sorted_path_id = 1;
             }},
            {"without an option of Strata",
             [](Options* o) {
               o->db_paths = o->cf_paths;
               o->cf_paths.clear();
             },
             /*has_layout=*/false}};
  }
  // Returns the same options with the first path alone.
  static Options WithOnePath(Options options) {
    options.level_sst_path_ids.clear();
    options.level_blob_path_ids.clear();
    options.delta_sorted_path_id = -1;
    options.db_paths.clear();
    options.cf_paths.clear();
    return options;
  }
  // Makes a DB whose older state is on the first path, and whose newer one is
  // on the second, too.
  void Fill(const Placement& placement, Options* options) {
    *options = PathOptions(2, 0, /*deltas=*/false);
    options->level_sst_path_ids.clear();
    placement.set(options);
    DestroyAndReopen(WithOnePath(*options));
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_OK(Put(Key(i), "old"));
    }
    ASSERT_OK(Flush());
    Reopen(*options);
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_OK(Put(Key(i), "new"));
    }
    ASSERT_OK(Flush());
    MergeAll("x");
    CompactRangeOptions compact;
    compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    compact.target_path_id = placement.has_layout ? 0 : 1;
    ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
    WaitForCompactOptions wait;
    wait.wait_for_purge = true;
    ASSERT_OK(db_->WaitForCompact(wait));
    size_t on_second = 0;
    for (const FileType type : {kTableFile, kBlobFile, kDeltaFile}) {
      on_second += NumFilesOnSecond(type);
    }
    ASSERT_GT(on_second, 0);
  }
  Status OpenSecondary(const Options& options, std::unique_ptr<DB>* secondary) {
    Options of_secondary = options;
    of_secondary.max_open_files = -1;
    return DB::OpenAsSecondary(of_secondary, dbname_, dbname_ + "_secondary",
                               secondary);
  }
  void CheckAllOf(DB* db, const std::string& value) {
    for (int i = 0; i < kKeys; ++i) {
      std::string found;
      ASSERT_OK(db->Get(ReadOptions(), Key(i), &found));
      ASSERT_EQ(found, value);
    }
  }

  std::string second_;
  std::string third_;
};

TEST_F(PathCheckTest, DeltaFilesLeaveARemovedPath) {
  DestroyAndReopen(PathOptions(2, 1, /*deltas=*/true));
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(Put(Key(i), "base"));
  }
  ASSERT_OK(Flush());
  MergeAll("x");
  MergeAll("y");
  CompactAll();  // the operands are collected into buckets
  ASSERT_GT(NumFilesOnSecond(kDeltaFile), 0);
  const Status s = TryReopen(PathOptions(1, 0, /*deltas=*/true));
  ASSERT_TRUE(s.IsInvalidArgument()) << s.ToString();
  for (const char* part :
       {"path id 1", "delta_sorted_path_id", "CompactRange() of all keys",
        "kForce", "move the files"}) {
    EXPECT_NE(s.ToString().find(part), std::string::npos) << s.ToString();
  }

  // Follow the instructions of the message.
  Reopen(PathOptions(2, 0, /*deltas=*/true));
  CheckAll("base,x,y");
  CompactAll();
  EXPECT_EQ(NumFilesOnSecond(kTableFile), 0);
  EXPECT_EQ(NumFilesOnSecond(kDeltaFile), 0);
  Reopen(PathOptions(1, 0, /*deltas=*/true));
  CheckAll("base,x,y");
  MergeAll("w");
  CheckAll("base,x,y,w");
  // The database has left the id, so it may stand for another path.
  Reopen(PathOptions(2, 0, /*deltas=*/true));
  CheckAll("base,x,y,w");
}

// SST files have left the path, but delta_sorted_path_id still names it.
TEST_F(PathCheckTest, SortedDeltaFilesStayWhereTheirOptionSays) {
  DestroyAndReopen(PathOptions(2, 0, /*deltas=*/true));
  MergeAll("x");
  ASSERT_OK(dbfull()->SetOptions({{"delta_sorted_path_id", "1"}}));
  CompactAll();
  ASSERT_GT(NumFilesOnSecond(kDeltaFile), 0);
  const Status s = TryReopen(PathOptions(1, 0, /*deltas=*/true));
  ASSERT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find("delta file #"), std::string::npos)
      << s.ToString();
  Reopen(PathOptions(2, 0, /*deltas=*/true));
  CompactAll();
  EXPECT_EQ(NumFilesOnSecond(kDeltaFile), 0);
  Reopen(PathOptions(1, 0, /*deltas=*/true));
  CheckAll("x");
}

// A drain leaves the path, too.
TEST_F(PathCheckTest, DeltaFilesOnARemovedPathCanBeDrained) {
  DestroyAndReopen(PathOptions(2, 1, /*deltas=*/true));
  MergeAll("x");
  CompactAll();
  ASSERT_GT(NumFilesOnSecond(kDeltaFile), 0);
  Reopen(PathOptions(2, 0, /*deltas=*/false));
  CheckAll("x");
  CompactAll();
  EXPECT_EQ(NumFilesOnSecond(kDeltaFile), 0);
  Reopen(PathOptions(1, 0, /*deltas=*/false));
  CheckAll("x");
}

// An open also works if the files were moved to the last remaining path.
TEST_F(PathCheckTest, FilesOfARemovedPathCanBeMoved) {
  DestroyAndReopen(PathOptions(2, 1, /*deltas=*/true));
  MergeAll("x");
  MergeAll("y");
  Close();
  const Status s = TryReopen(PathOptions(1, 0, /*deltas=*/true));
  ASSERT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find("move the files of that path into " + dbname_),
            std::string::npos)
      << s.ToString();
  std::vector<std::string> names;
  ASSERT_OK(env_->GetChildren(second_, &names));
  for (const std::string& name : names) {
    uint64_t number = 0;
    FileType type;
    if (ParseFileName(name, &number, &type)) {
      ASSERT_OK(env_->RenameFile(second_ + "/" + name, dbname_ + "/" + name));
    }
  }
  Reopen(PathOptions(1, 0, /*deltas=*/true));
  CheckAll("x,y");
  ASSERT_OK(db_->VerifyChecksum());
  CompactAll();
  CheckAll("x,y");
}

// The MANIFEST that an open reads still has the records of blob files that were
// on a removed path. No version has these files any more, so they are not
// looked for.
TEST_F(PathCheckTest, BlobFilesWithoutLiveValuesMayBeMissing) {
  for (int c = 0; c < 8; ++c) {
    SCOPED_TRACE(c);
    const bool is_mapped = (c & 1) != 0;
    const bool keeps_values = (c & 2) != 0;
    const bool best_efforts = (c & 4) != 0;
    const auto blob_options = [&](int num_paths) {
      Options options = PathOptions(num_paths, 0, /*deltas=*/false);
      options.enable_blob_files = true;
      options.enable_blob_address_map = is_mapped;
      return options;
    };
    Options options = blob_options(2);
    options.level_blob_path_ids = {1};
    DestroyAndReopen(options);
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_OK(Put(Key(i), "value"));
    }
    ASSERT_OK(Flush());
    ASSERT_EQ(NumFilesOnSecond(kBlobFile), 1);
    for (int i = 0; i < kKeys && !keeps_values; ++i) {
      ASSERT_OK(Delete(Key(i)));
    }
    ASSERT_OK(dbfull()->SetOptions({{"level_blob_path_ids", ""}}));
    CompactAll();
    ASSERT_EQ(NumFilesOnSecond(kBlobFile), 0);
    Options one_path = blob_options(1);
    one_path.best_efforts_recovery = best_efforts;
    Reopen(one_path);
    CheckAll(keeps_values ? "value" : "NOT_FOUND");
    ASSERT_OK(db_->VerifyChecksum());
  }
}

TEST_F(PathCheckTest, BestEffortsRecoveryNeedsAllPaths) {
  for (const Placement& placement : Placements()) {
    SCOPED_TRACE(placement.name);
    Options options;
    ASSERT_NO_FATAL_FAILURE(Fill(placement, &options));
    Close();
    const std::set<std::string> files = Files();
    for (const bool paranoid_checks : {true, false}) {
      Options with_one = WithOnePath(options);
      with_one.best_efforts_recovery = true;
      with_one.paranoid_checks = paranoid_checks;
      const Status s = TryReopen(with_one);
      ExpectRefused(s);
      EXPECT_NE(s.ToString().find("an empty directory in its place"),
                std::string::npos)
          << s.ToString();
      EXPECT_EQ(Files(), files);
      ExpectRefused(ReadOnlyReopen(with_one));
      EXPECT_EQ(Files(), files);
    }
    options.best_efforts_recovery = true;
    Reopen(options);
    CheckAll("new,x");
    Close();
    options.best_efforts_recovery = false;
    Reopen(options);
    CheckAll("new,x");
  }
}

// A layout that names a path which the list does not have is refused, too.
TEST_F(PathCheckTest, BestEffortsRecoveryChecksTheLayout) {
  DestroyAndReopen(PathOptions(2, 1, /*deltas=*/false));
  ASSERT_OK(Put("key", "value"));
  ASSERT_OK(Flush());
  Close();
  const std::set<std::string> files = Files();
  Options options = PathOptions(1, 1, /*deltas=*/false);
  options.best_efforts_recovery = true;
  const Status s = TryReopen(options);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find("level_sst_path_ids"), std::string::npos)
      << s.ToString();
  EXPECT_EQ(Files(), files);
}

// An older MANIFEST may have nothing on the second path. It is no way out.
TEST_F(PathCheckTest, BestEffortsRecoveryTriesNoOlderManifest) {
  DestroyAndReopen(PathOptions(1, 0, /*deltas=*/false));
  ASSERT_OK(Put("key", "old"));
  ASSERT_OK(Flush());
  const std::string older_name =
      DescriptorFileName(dbname_, dbfull()->TEST_Current_Manifest_FileNo());
  std::string older;
  ASSERT_OK(ReadFileToString(env_, older_name, &older));
  Reopen(PathOptions(2, 1, /*deltas=*/false));
  ASSERT_OK(Put("key", "new"));
  ASSERT_OK(Flush());
  Close();
  ASSERT_OK(WriteStringToFile(env_, older, older_name));
  Options options = PathOptions(1, 0, /*deltas=*/false);
  options.best_efforts_recovery = true;
  ExpectRefused(TryReopen(options));
  options = PathOptions(2, 1, /*deltas=*/false);
  options.best_efforts_recovery = true;
  Reopen(options);
  EXPECT_EQ(Get("key"), "new");
}

// The way that the message names, for a path that is lost.
TEST_F(PathCheckTest, BestEffortsRecoveryWithAnEmptyDirectory) {
  DestroyAndReopen(PathOptions(2, 0, /*deltas=*/false));
  ASSERT_OK(Put("key", "old"));
  ASSERT_OK(Flush());
  Options options = PathOptions(2, 1, /*deltas=*/false);
  Reopen(options);
  ASSERT_OK(Put("key", "new"));
  ASSERT_OK(Flush());
  Close();
  options.cf_paths[1].path = third_;
  options.best_efforts_recovery = true;
  // A directory that does not exist may be one that is not mounted.
  const Status s = TryReopen(options);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_TRUE(env_->FileExists(third_).IsNotFound());
  ASSERT_OK(env_->CreateDir(third_));
  Reopen(options);
  EXPECT_EQ(Get("key"), "old");
}

// A file that is gone from a path of the list is no reason to refuse.
TEST_F(PathCheckTest, BestEffortsRecoveryAcceptsFilesThatAreGone) {
  Options options = PathOptions(2, 1, /*deltas=*/false);
  options.best_efforts_recovery = true;
  DestroyAndReopen(options);
  ASSERT_OK(Put("key", "old"));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("key", "new"));
  ASSERT_OK(Flush());
  std::vector<LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  ASSERT_EQ(files.size(), 2);
  const LiveFileMetaData& newer =
      files[files[0].file_number > files[1].file_number ? 0 : 1];
  const std::string name = newer.directory + "/" + newer.relative_filename;
  Close();
  ASSERT_OK(env_->DeleteFile(name));
  Reopen(options);
  EXPECT_EQ(Get("key"), "old");
}

// A lost file of a listed path does not bring back the files of a path that was
// given up. But as long as the state needs a file there, the path is needed.
TEST_F(PathCheckTest, BestEffortsRecoveryWithoutAPathAndAFlushedFile) {
  for (const bool is_given_up : {false, true}) {
    SCOPED_TRACE(is_given_up);
    Close();
    DestroyDir(env_, second_).PermitUncheckedError();
    DestroyAndReopen(PathOptions(2, 1, /*deltas=*/false));
    MergeAll("x");
    CompactAll();
    ASSERT_EQ(NumFilesOnSecond(kTableFile), 1);
    std::vector<LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    ASSERT_EQ(files.size(), 1);
    const LiveFileMetaData on_second = files[0];
    ASSERT_GT(on_second.level, 0);
    ASSERT_OK(dbfull()->SetOptions({{"level_sst_path_ids", "0"}}));
    MergeAll("y");
    if (is_given_up) {
      ASSERT_OK(db_->CompactFiles(
          CompactionOptions(),
          {on_second.directory + "/" + on_second.relative_filename},
          std::min(on_second.level + 1, 6)));
      WaitForCompactOptions wait;
      wait.wait_for_purge = true;
      ASSERT_OK(db_->WaitForCompact(wait));
      ASSERT_EQ(NumFilesOnSecond(kTableFile), 0);
    }
    CheckAll("x,y");
    db_->GetLiveFilesMetaData(&files);
    std::string flushed;
    for (const LiveFileMetaData& file : files) {
      if (file.level == 0) {
        flushed = file.directory + "/" + file.relative_filename;
      }
    }
    Close();
    ASSERT_OK(env_->DeleteFile(flushed));
    Options options = PathOptions(1, 0, /*deltas=*/false);
    options.best_efforts_recovery = true;
    if (is_given_up) {
      Reopen(options);
    } else {
      ExpectRefused(TryReopen(options));
      options = PathOptions(2, 0, /*deltas=*/false);
      options.best_efforts_recovery = true;
      Reopen(options);
    }
    CheckAll("x");
  }
}

// The MANIFEST has records of files on a path that was given up, or the files
// were moved to the last path: nothing is missing.
TEST_F(PathCheckTest, BestEffortsRecoveryWithoutAPathThatWasGivenUp) {
  for (const bool is_compacted : {false, true}) {
    SCOPED_TRACE(is_compacted);
    DestroyAndReopen(PathOptions(2, 1, /*deltas=*/false));
    MergeAll("x");
    MergeAll("y");
    if (is_compacted) {
      ASSERT_OK(dbfull()->SetOptions({{"level_sst_path_ids", "0"}}));
      CompactAll();
      ASSERT_EQ(NumFilesOnSecond(kTableFile), 0);
    }
    Close();
    std::vector<std::string> names;
    ASSERT_OK(env_->GetChildren(second_, &names));
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type;
      if (ParseFileName(name, &number, &type)) {
        ASSERT_OK(env_->RenameFile(second_ + "/" + name, dbname_ + "/" + name));
      }
    }
    Options options = PathOptions(1, 0, /*deltas=*/false);
    options.best_efforts_recovery = true;
    Reopen(options);
    CheckAll("x,y");
  }
}

// An atomic group takes the file of the second path away. It takes effect only
// if the files of all its edits are there, also those of another family.
TEST_F(PathCheckTest, BestEffortsRecoveryOfAtomicGroups) {
  enum Case { kComplete, kLacksOwnFile, kLacksFileOfOther, kNumCases };
  for (int c = 0; c < kNumCases; ++c) {
    SCOPED_TRACE(c);
    Close();
    DestroyDir(env_, second_).PermitUncheckedError();
    Options options = PathOptions(2, 0, /*deltas=*/false);
    DestroyAndReopen(options);
    CreateAndReopenWithCF({"other"}, options);
    for (int family = 0; family < 2; ++family) {
      ASSERT_OK(Put(family, "key", "old"));
      ASSERT_OK(Flush(family));
    }
    ASSERT_OK(db_->SetOptions(handles_[0], {{"level_sst_path_ids", "1"}}));
    ASSERT_OK(Put(0, "key", "new"));
    ASSERT_OK(Flush(0));
    ASSERT_EQ(NumFilesOnSecond(kTableFile), 1);
    std::vector<LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    uint64_t on_second = 0;
    for (const LiveFileMetaData& file : files) {
      on_second = std::max(on_second, file.file_number);
    }
    const std::string manifest =
        DescriptorFileName(dbname_, dbfull()->TEST_Current_Manifest_FileNo());
    Close();

    VersionEdit removal;
    removal.SetColumnFamily(0);
    removal.DeleteFile(0, on_second);
    removal.MarkAtomicGroup(1);
    VersionEdit addition;
    addition.SetColumnFamily(c == kLacksFileOfOther ? 1 : 0);
    if (c != kComplete) {
      FileMetaData lost;
      lost.fd = FileDescriptor(900, /*path_id=*/0, /*file_size=*/1000,
                               /*smallest_seqno=*/1, /*largest_seqno=*/9);
      lost.smallest = InternalKey("a", 9, kTypeValue);
      lost.largest = InternalKey("z", 1, kTypeValue);
      lost.epoch_number = 900;
      addition.AddFile(0, lost);
    }
    addition.MarkAtomicGroup(0);
    AppendToManifest(manifest, {&removal, &addition});

    const std::vector<std::string> families = {"default", "other"};
    Options one_path = PathOptions(1, 0, /*deltas=*/false);
    one_path.best_efforts_recovery = true;
    if (c == kComplete) {
      ASSERT_OK(TryReopenWithColumnFamilies(families, one_path));
      EXPECT_EQ(Get(0, "key"), "old");
      EXPECT_EQ(Get(1, "key"), "old");
      continue;
    }
    ExpectRefused(TryReopenWithColumnFamilies(families, one_path));
    options.best_efforts_recovery = true;
    ASSERT_OK(TryReopenWithColumnFamilies(families, options));
    EXPECT_EQ(Get(0, "key"), "new");
    EXPECT_EQ(Get(1, "key"), "old");
  }
}

TEST_F(PathCheckTest, SecondaryNeedsAllPaths) {
  for (const Placement& placement : Placements()) {
    SCOPED_TRACE(placement.name);
    Options options;
    ASSERT_NO_FATAL_FAILURE(Fill(placement, &options));
    if (options.enable_blob_address_map || options.enable_delta_separation) {
      continue;  // refused for another reason
    }
    std::unique_ptr<DB> secondary;
    for (const bool paranoid_checks : {true, false}) {
      Options with_one = WithOnePath(options);
      with_one.paranoid_checks = paranoid_checks;
      ExpectRefused(OpenSecondary(with_one, &secondary));
      EXPECT_TRUE(secondary == nullptr);
    }
    ASSERT_OK(OpenSecondary(options, &secondary));
    CheckAllOf(secondary.get(), "new,x");
    ASSERT_OK(secondary->Close());
    CheckAll("new,x");
  }
}

TEST_F(PathCheckTest, SecondaryNoticesANewPathOfThePrimary) {
  DestroyAndReopen(PathOptions(1, 0, /*deltas=*/false));
  MergeAll("x");
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(PathOptions(1, 0, /*deltas=*/false), &secondary));
  CheckAllOf(secondary.get(), "x");

  // A path alone changes nothing.
  Reopen(PathOptions(2, 1, /*deltas=*/false));
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  CheckAllOf(secondary.get(), "x");
  MergeAll("y");
  for (int i = 0; i < 2; ++i) {
    ExpectRefused(secondary->TryCatchUpWithPrimary());
    CheckAllOf(secondary.get(), "x");
  }
  // So it is for the next files and the next MANIFEST.
  MergeAll("z");
  ExpectRefused(secondary->TryCatchUpWithPrimary());
  Reopen(PathOptions(2, 1, /*deltas=*/false));
  ExpectRefused(secondary->TryCatchUpWithPrimary());
  CheckAllOf(secondary.get(), "x");

  // A secondary with both paths sees all.
  ASSERT_OK(secondary->Close());
  ASSERT_OK(OpenSecondary(PathOptions(2, 0, /*deltas=*/false), &secondary));
  CheckAllOf(secondary.get(), "x,y,z");
  ASSERT_OK(secondary->Close());
}

TEST_F(PathCheckTest, SecondaryGoesOnWhenThePrimaryHasLeftThePath) {
  DestroyAndReopen(PathOptions(1, 0, /*deltas=*/false));
  MergeAll("x");
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(PathOptions(1, 0, /*deltas=*/false), &secondary));
  Reopen(PathOptions(2, 1, /*deltas=*/false));
  MergeAll("y");
  ExpectRefused(secondary->TryCatchUpWithPrimary());
  ASSERT_OK(dbfull()->SetOptions({{"level_sst_path_ids", "0"}}));
  CompactAll();
  ASSERT_EQ(NumFilesOnSecond(kTableFile), 0);
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  CheckAllOf(secondary.get(), "x,y");
  ASSERT_OK(secondary->Close());
}

// The MANIFEST has a blob file of a path that was left, with a higher number
// than one that is in use.
TEST_F(PathCheckTest, SecondaryWithoutABlobPathThatWasLeft) {
  const auto blob_options = [&](int num_paths) {
    Options options = PathOptions(num_paths, 0, /*deltas=*/false);
    options.enable_blob_files = true;
    return options;
  };
  Options options = blob_options(2);
  options.level_blob_path_ids = {0};
  DestroyAndReopen(options);
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(Put(Key(i), "value"));
  }
  ASSERT_OK(Flush());
  ASSERT_OK(dbfull()->SetOptions({{"level_blob_path_ids", "1"}}));
  ASSERT_OK(Put("z", "value"));
  ASSERT_OK(Flush());
  ASSERT_EQ(NumFilesOnSecond(kBlobFile), 1);
  std::unique_ptr<DB> secondary;
  ExpectRefused(OpenSecondary(blob_options(1), &secondary));
  ASSERT_OK(dbfull()->SetOptions({{"level_blob_path_ids", "0"}}));
  ASSERT_OK(Delete("z"));
  CompactAll();
  ASSERT_EQ(NumFilesOnSecond(kBlobFile), 0);
  ASSERT_OK(OpenSecondary(blob_options(1), &secondary));
  CheckAllOf(secondary.get(), "value");
  ASSERT_OK(secondary->Close());
}

// A worker checks the paths of the family that it compacts. It also opens the
// default one, which may have files on a path that the worker does not know.
TEST_F(PathCheckTest, WorkerNeedsThePathsOfTheFamilyThatItCompacts) {
  Options options = PathOptions(2, 0, /*deltas=*/false);
  options.level_sst_path_ids.clear();
  options.db_paths = options.cf_paths;
  options.cf_paths.clear();
  const auto worker = std::make_shared<Worker>(dbname_);
  options.compaction_service = worker;
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"foo"}, options);
  CompactRangeOptions to_second;
  to_second.target_path_id = 1;
  to_second.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  for (int i = 0; i < 2; ++i) {
    for (int family = 0; family < 2; ++family) {
      ASSERT_OK(Put(family, "a", "value" + std::to_string(i)));
      ASSERT_OK(Put(family, "z", "value" + std::to_string(i)));
      ASSERT_OK(Flush(family));
    }
  }
  // Run here, as the worker knows one directory.
  options.compaction_service = nullptr;
  ReopenWithColumnFamilies({"default", "foo"}, options);
  ASSERT_OK(db_->CompactRange(to_second, handles_[0], nullptr, nullptr));
  ASSERT_EQ(NumFilesOnSecond(kTableFile), 1);
  options.compaction_service = worker;
  ReopenWithColumnFamilies({"default", "foo"}, options);

  const CompactRangeOptions compact;
  ASSERT_OK(db_->CompactRange(compact, handles_[1], nullptr, nullptr));
  ASSERT_GT(worker->num_jobs, 0);
  ASSERT_OK(worker->status);
  EXPECT_EQ(Get(1, "a"), "value1");
  EXPECT_EQ(NumTableFilesAtLevel(0, 1), 0);

  // Its own family is checked.
  ASSERT_OK(Put("a", "value2"));
  ASSERT_OK(Flush());
  EXPECT_NOK(db_->CompactRange(compact, handles_[0], nullptr, nullptr));
  ExpectRefused(worker->status);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
