//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Opens of databases with several paths of which one is missing as a whole,
// lacks a file, or cannot be used: the error says which path it is and what is
// on it, and nothing is created in its place.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/db_test_util.h"
#include "db/path_layout/path_test_util.h"
#include "env/composite_env_wrapper.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class MissingPathTest : public DBTestBase {
 protected:
  using Fault = BrokenPathFS::Fault;

  static constexpr int kKeys = 20;

  MissingPathTest()
      : DBTestBase("missing_path_test", /*env_do_fsync=*/false),
        second_(dbname_ + "_second"),
        away_(dbname_ + "_away"),
        fs_(std::make_shared<BrokenPathFS>(env_->GetFileSystem())),
        broken_env_(NewCompositeEnv(fs_)) {
    DestroyDirectories();
  }
  ~MissingPathTest() override {
    Close();
    DestroyDirectories();
    // The env of the last options is deleted before the base class.
    last_options_ = Options();
    last_options_.env = env_;
  }
  void DestroyDirectories() {
    for (const std::string& directory :
         {second_, away_, away_ + "_2", dbname_ + "_secondary"}) {
      DestroyDir(env_, directory).PermitUncheckedError();
    }
  }

  // A kind of files that the second path has.
  struct Kind {
    const char* name;
    std::function<void(Options*)> set;
    bool has_deltas = false;
    bool has_map = false;
    // All files are on the second path, by a compaction.
    bool is_compacted = false;
  };
  static std::vector<Kind> Kinds() {
    std::vector<Kind> kinds(5);
    kinds[0].name = "SST";
    kinds[0].set = [](Options* o) { o->level_sst_path_ids = {1}; };
    kinds[1].name = "blob";
    kinds[1].set = [](Options* o) {
      o->enable_blob_files = true;
      o->level_blob_path_ids = {1};
    };
    kinds[2].name = "mapped blob";
    kinds[2].set = [](Options* o) {
      o->enable_blob_files = true;
      o->enable_blob_address_map = true;
      o->blob_gc_space_amp_limit = 0;
      o->level_blob_path_ids = {1};
    };
    kinds[2].has_map = true;
    kinds[3].name = "delta";
    kinds[3].set = [](Options* o) {
      o->enable_delta_separation = true;
      o->level_sst_path_ids = {1};
    };
    kinds[3].has_deltas = true;
    kinds[4].name = "without an option of Strata";
    kinds[4].set = [](Options* o) {
      o->db_paths = o->cf_paths;
      o->cf_paths.clear();
    };
    kinds[4].is_compacted = true;
    return kinds;
  }
  static Kind Sst() { return Kinds()[0]; }

  Options PathOptions(const Kind& kind) {
    Options options = CurrentOptions();
    options.env = broken_env_.get();
    options.cf_paths = {{dbname_, 0}, {second_, 0}};
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.disable_auto_compactions = true;
    kind.set(&options);
    return options;
  }
  static Options WithOnePath(Options options) {
    options.level_sst_path_ids.clear();
    options.level_blob_path_ids.clear();
    options.db_paths.clear();
    options.cf_paths.clear();
    return options;
  }
  Status PutNew(const Kind& kind) {
    Status s;
    for (int i = 0; i < kKeys && s.ok(); ++i) {
      s = kind.has_deltas ? Merge(Key(i), "new") : Put(Key(i), "new");
    }
    return s;
  }
  // Makes a DB with the key "old" on the first path, and keys "new" on the
  // second one.
  void Fill(const Kind& kind, Options* options) {
    fs_->Break("", Fault::kNone);
    Close();
    DestroyDirectories();
    *options = PathOptions(kind);
    DestroyAndReopen(WithOnePath(*options));
    ASSERT_OK(Put("old", "old"));
    ASSERT_OK(Flush());
    Reopen(*options);
    ASSERT_OK(PutNew(kind));
    ASSERT_OK(Flush());
    if (kind.is_compacted) {
      CompactRangeOptions compact;
      compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
      compact.target_path_id = 1;
      ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
      WaitForCompactOptions wait;
      wait.wait_for_purge = true;
      ASSERT_OK(db_->WaitForCompact(wait));
    }
    DescribeSecond();
    Close();
  }
  // Sets what_ to the part of the message that says what is on the second path.
  void DescribeSecond() {
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    uint64_t files[3] = {};
    uint64_t bytes[3] = {};
    files_.clear();
    const auto count = [&](int type, const std::string& directory,
                           const std::string& name, uint64_t size) {
      if (directory == second_) {
        ++files[type];
        bytes[type] += size;
        files_.push_back(directory + "/" + name);
      }
    };
    for (const LevelMetaData& level : metadata.levels) {
      for (const SstFileMetaData& file : level.files) {
        count(0, file.directory, file.relative_filename, file.size);
      }
    }
    for (const BlobMetaData& file : metadata.blob_files) {
      count(1, file.blob_file_path,
            BlobFileName("", file.blob_file_number).substr(1),
            file.blob_file_size);
    }
    for (const DeltaMetaData& file : metadata.delta_files) {
      count(2, file.directory, file.relative_filename, file.size);
    }
    ASSERT_FALSE(files_.empty());
    const char* const names[3] = {"SST", "blob", "delta"};
    what_ = "The MANIFEST has ";
    for (int i = 0; i < 3; ++i) {
      what_ += (i == 0   ? ""
                : i == 1 ? ", "
                         : " and ") +
               std::to_string(files[i]) + " " + names[i] +
               (files[i] == 1 ? " file (" : " files (") +
               std::to_string(bytes[i]) + " bytes)";
    }
    what_ += " there. ";
  }

  void TakeAway() { ASSERT_OK(env_->RenameFile(second_, away_)); }
  void BringBack() {
    DestroyDir(env_, second_).PermitUncheckedError();
    ASSERT_OK(env_->RenameFile(away_, second_));
  }
  bool SecondExists() { return env_->FileExists(second_).ok(); }
  std::string Log() {
    std::string text;
    EXPECT_OK(ReadFileToString(env_, dbname_ + "/LOG", &text));
    return text;
  }
  // The files of the first path that an open which fails may not change.
  std::set<std::string> Files() {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(dbname_, &names));
    std::set<std::string> result;
    for (const std::string& name : names) {
      if (name.rfind("LOG", 0) != 0) {
        result.insert(name);
      }
    }
    return result;
  }

  static void ExpectParts(const Status& s,
                          const std::vector<std::string>& parts) {
    EXPECT_NOK(s);
    for (const std::string& part : parts) {
      EXPECT_NE(s.ToString().find(part), std::string::npos)
          << s.ToString() << " lacks " << part;
    }
  }
  // Checks that the error says that the second path is missing, and why.
  void ExpectMissing(const Status& s, const std::string& problem) {
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    ExpectParts(s, {"Path id 1 of column family default is missing: the "
                    "directory " +
                        second_ + " " + problem + ". " + what_,
                    "Bring the device back", "Do not delete or move files",
                    "\"Several devices\" in docs/operations.md"});
  }
  Status OpenSecondary(Options options, std::unique_ptr<DB>* secondary) {
    options.max_open_files = -1;
    return DB::OpenAsSecondary(options, dbname_, dbname_ + "_secondary",
                               secondary);
  }

  const std::string second_;
  const std::string away_;
  std::shared_ptr<BrokenPathFS> fs_;
  std::unique_ptr<Env> broken_env_;
  // The last DescribeSecond() has set the message and the files.
  std::string what_;
  std::vector<std::string> files_;
};

// The ways to open a database for writing that change what RocksDB looks at.
TEST_F(MissingPathTest, NoDirectory) {
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.name);
    Options options;
    ASSERT_NO_FATAL_FAILURE(Fill(kind, &options));
    TakeAway();
    const std::set<std::string> files = Files();
    std::vector<std::function<void(Options*)>> ways = {
        [](Options* /*o*/) {},
        [](Options* o) { o->max_open_files = 20; },
        [](Options* o) { o->open_files_async = true; },
        [](Options* o) { o->skip_stats_update_on_db_open = true; },
        [](Options* o) { o->paranoid_checks = false; },
        [](Options* o) { o->best_efforts_recovery = true; }};
    for (size_t i = 0; i < ways.size(); ++i) {
      SCOPED_TRACE(i);
      Options way = options;
      ways[i](&way);
      if (way.open_files_async) {
        way.skip_stats_update_on_db_open = true;
      }
      ExpectMissing(TryReopen(way), "does not exist");
      EXPECT_FALSE(SecondExists());
      EXPECT_EQ(Files(), files);
      EXPECT_NE(Log().find("does not exist. " + what_), std::string::npos);

      ExpectMissing(ReadOnlyReopen(way), "does not exist");
      EXPECT_FALSE(SecondExists());
      EXPECT_EQ(Files(), files);
    }
    if (!kind.has_deltas && !kind.has_map) {
      std::unique_ptr<DB> secondary;
      ExpectMissing(OpenSecondary(options, &secondary), "does not exist");
      EXPECT_EQ(secondary, nullptr);
      EXPECT_FALSE(SecondExists());
    }
    const Status s = RepairDB(dbname_, options);
    ExpectParts(s, {second_});
    EXPECT_FALSE(SecondExists());

    BringBack();
    Reopen(options);
    EXPECT_EQ(Get("old"), "old");
    for (int i = 0; i < kKeys; ++i) {
      EXPECT_EQ(Get(Key(i)), "new");
    }
  }
}

// The device is not mounted, but its mount point is there.
TEST_F(MissingPathTest, EmptyDirectory) {
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.name);
    Options options;
    ASSERT_NO_FATAL_FAILURE(Fill(kind, &options));
    TakeAway();
    ASSERT_OK(env_->CreateDir(second_));
    const std::set<std::string> files = Files();
    ExpectMissing(TryReopen(options), "has none of its files");
    EXPECT_NE(Log().find("has none of its files. " + what_), std::string::npos);
    ExpectMissing(ReadOnlyReopen(options), "has none of its files");
    if (!kind.has_deltas && !kind.has_map) {
      std::unique_ptr<DB> secondary;
      ExpectMissing(OpenSecondary(options, &secondary),
                    "has none of its files");
    }
    EXPECT_EQ(Files(), files);
    std::vector<std::string> children;
    ASSERT_OK(env_->GetChildren(second_, &children));
    EXPECT_TRUE(children.empty());

    // As in RocksDB, the rest can be read, except where a read has to look into
    // a missing SST file first.
    Options lax = options;
    lax.paranoid_checks = false;
    ASSERT_OK(ReadOnlyReopen(lax));
    if (!kind.is_compacted && std::string(kind.name) != "SST") {
      EXPECT_EQ(Get("old"), "old");
    }
    EXPECT_NE(Get(Key(0)), "new");

    Close();
    BringBack();
    Reopen(options);
    EXPECT_EQ(Get("old"), "old");
    EXPECT_EQ(Get(Key(0)), "new");
  }
}

// The documented way to go on without a lost device.
TEST_F(MissingPathTest, BestEffortsRecoveryWithAnEmptyDirectory) {
  for (const Kind& kind : Kinds()) {
    if (kind.is_compacted) {
      continue;  // There is no older state.
    }
    SCOPED_TRACE(kind.name);
    Options options;
    ASSERT_NO_FATAL_FAILURE(Fill(kind, &options));
    TakeAway();
    ASSERT_OK(env_->CreateDir(second_));
    Options recovery = options;
    recovery.best_efforts_recovery = true;
    Reopen(recovery);
    EXPECT_EQ(Get("old"), "old");
    EXPECT_EQ(Get(Key(0)), "NOT_FOUND");
    EXPECT_NE(Log().find("has none of its files. " + what_), std::string::npos);
    EXPECT_NE(Log().find("as best_efforts_recovery is set"), std::string::npos);
    Reopen(options);
    EXPECT_EQ(Get("old"), "old");
  }
}

// An older MANIFEST may have nothing on the second path. It is no way out.
TEST_F(MissingPathTest, BestEffortsRecoveryTriesNoOlderManifest) {
  Options options = PathOptions(Sst());
  DestroyAndReopen(WithOnePath(options));
  ASSERT_OK(Put("old", "old"));
  ASSERT_OK(Flush());
  const std::string older_name =
      DescriptorFileName(dbname_, dbfull()->TEST_Current_Manifest_FileNo());
  std::string older;
  ASSERT_OK(ReadFileToString(env_, older_name, &older));
  Reopen(options);
  ASSERT_OK(Put("old", "new"));
  ASSERT_OK(Flush());
  DescribeSecond();
  Close();
  ASSERT_OK(WriteStringToFile(env_, older, older_name));
  TakeAway();
  options.best_efforts_recovery = true;
  ExpectMissing(TryReopen(options), "does not exist");
  EXPECT_FALSE(SecondExists());
  BringBack();
  Reopen(options);
  EXPECT_EQ(Get("old"), "new");
}

// With the paths in another order, a recovery would delete all files.
TEST_F(MissingPathTest, PathsInAnotherOrder) {
  Options options;
  ASSERT_NO_FATAL_FAILURE(Fill(Sst(), &options));
  std::swap(options.cf_paths[0], options.cf_paths[1]);
  for (const bool best_efforts : {false, true}) {
    options.best_efforts_recovery = best_efforts;
    ExpectParts(
        TryReopen(options),
        {"Path id 0 of column family default is missing: the directory " +
             second_ + " has none of its files, while " + dbname_ +
             ", which is another path, has ",
         "Path id 1 of column family default is missing: the directory " +
             dbname_ + " has none of its files, while " + second_});
  }
  std::swap(options.cf_paths[0], options.cf_paths[1]);
  options.best_efforts_recovery = false;
  Reopen(options);
  EXPECT_EQ(Get("old"), "old");
  EXPECT_EQ(Get(Key(0)), "new");
}

// RocksDB's error stays, with the path.
TEST_F(MissingPathTest, OneFileOfSeveral) {
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.name);
    if (kind.is_compacted) {
      continue;  // It has one file.
    }
    Options options;
    ASSERT_NO_FATAL_FAILURE(Fill(kind, &options));
    Reopen(options);
    ASSERT_OK(kind.has_deltas ? Merge("more", "more") : Put("more", "more"));
    ASSERT_OK(Flush());
    DescribeSecond();
    ASSERT_EQ(files_.size(), 2);
    Close();
    for (const std::string& name : files_) {
      ASSERT_OK(env_->RenameFile(name, name + ".away"));
      for (const bool read_only : {false, true}) {
        const Status s =
            read_only ? ReadOnlyReopen(options) : TryReopen(options);
        if (options.enable_blob_files && !kind.has_map) {
          // A read finds out.
          EXPECT_OK(s);
        } else {
          EXPECT_TRUE(s.IsCorruption()) << s.ToString();
          ExpectParts(s, {name, "(" + second_ +
                                    " is path id 1 of column family default)"});
        }
      }
      Close();
      ASSERT_OK(env_->RenameFile(name + ".away", name));
    }
    Reopen(options);
    EXPECT_EQ(Get("more"), "more");
  }
}

// A database with one path has RocksDB's errors, and its directory is created.
TEST_F(MissingPathTest, OnePath) {
  Options options = PathOptions(Sst());
  options.cf_paths.clear();
  options.db_paths = {{second_, 0}};
  options.level_sst_path_ids.clear();
  DestroyAndReopen(options);
  ASSERT_OK(Put("key", "value"));
  ASSERT_OK(Flush());
  Close();
  TakeAway();
  for (const bool best_efforts : {false, true}) {
    options.best_efforts_recovery = best_efforts;
    const Status s = ReadOnlyReopen(options);
    EXPECT_TRUE(s.IsCorruption() || best_efforts) << s.ToString();
    EXPECT_EQ(s.ToString().find("ath id"), std::string::npos) << s.ToString();
    EXPECT_FALSE(SecondExists());
  }
  options.best_efforts_recovery = false;
  const Status s = TryReopen(options);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_EQ(s.ToString().find("ath id"), std::string::npos) << s.ToString();
  EXPECT_TRUE(SecondExists());
  BringBack();
  Reopen(options);
  EXPECT_EQ(Get("key"), "value");
}

// A path without files may be missing: users append paths.
TEST_F(MissingPathTest, NewPathsAreCreated) {
  Options options = PathOptions(Sst());
  DestroyAndReopen(options);
  EXPECT_TRUE(SecondExists());
  Options appended = options;
  appended.cf_paths.emplace_back(away_, 0);
  ASSERT_OK(ReadOnlyReopen(appended));
  EXPECT_TRUE(env_->FileExists(away_).IsNotFound());
  Reopen(appended);
  EXPECT_OK(env_->FileExists(away_));
  // As in RocksDB, the file system knows them.
  EXPECT_EQ(fs_->num_registered(), 1);
  appended.level_sst_path_ids = {2};
  Reopen(appended);
  ASSERT_OK(Put("key", "value"));
  ASSERT_OK(Flush());
  Reopen(appended);
  EXPECT_EQ(Get("key"), "value");
  // The second path still has no files.
  Close();
  ASSERT_OK(DestroyDir(env_, second_));
  Reopen(appended);
  EXPECT_TRUE(SecondExists());

  // A new path is not created beside one that is missing.
  Close();
  ASSERT_OK(env_->RenameFile(away_, away_ + "_2"));
  ASSERT_OK(DestroyDir(env_, second_));
  ExpectParts(TryReopen(appended), {"Path id 2 of column family default"});
  EXPECT_FALSE(SecondExists());
  ASSERT_OK(env_->RenameFile(away_ + "_2", away_));
  Reopen(appended);
  EXPECT_EQ(Get("key"), "value");
}

TEST_F(MissingPathTest, RefusedForAnotherReason) {
  Options options = PathOptions(Sst());
  Destroy(options);
  DestroyDirectories();
  options.create_if_missing = false;
  EXPECT_TRUE(TryReopen(options).IsInvalidArgument());
  EXPECT_FALSE(SecondExists());
  ASSERT_NO_FATAL_FAILURE(Fill(Sst(), &options));
  TakeAway();
  options.error_if_exists = true;
  EXPECT_TRUE(TryReopen(options).IsInvalidArgument());
  EXPECT_FALSE(SecondExists());
  BringBack();
}

// The directory of the WALs is that of the missing path. An empty one in its
// place would hide WALs, too.
TEST_F(MissingPathTest, WalDirectoryOnTheMissingPath) {
  Options options = PathOptions(Sst());
  options.wal_dir = second_;
  options.WAL_ttl_seconds = 1;
  DestroyAndReopen(options);
  ASSERT_OK(Put("key", "flushed"));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("key", "logged"));
  DescribeSecond();
  Close();
  TakeAway();
  ExpectMissing(TryReopen(options), "does not exist");
  EXPECT_FALSE(SecondExists());
  BringBack();
  Reopen(options);
  EXPECT_EQ(Get("key"), "logged");
  Close();
  Destroy(options);
}

TEST_F(MissingPathTest, SeveralFamilies) {
  Options options = PathOptions(Sst());
  options.db_paths = options.cf_paths;
  options.cf_paths.clear();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"cold", "empty"}, options);
  for (int family = 0; family < 2; ++family) {
    ASSERT_OK(Put(family, "key", "value"));
    ASSERT_OK(Flush(family));
  }
  Close();
  TakeAway();
  const std::vector<std::string> names = {"default", "cold", "empty"};
  const Status s = TryReopenWithColumnFamilies(names, options);
  ExpectParts(s, {"Path id 1 of column family default is missing",
                  "Path id 1 of column family cold is missing"});
  EXPECT_EQ(s.ToString().find("family empty"), std::string::npos);
  EXPECT_FALSE(SecondExists());
  // A read-only instance may do without a family.
  Options others = options;
  ExpectParts(TryReopenReadOnlyWithColumnFamilies({"default"}, others),
              {"Path id 1 of column family default is missing"});
  BringBack();
  ReopenWithColumnFamilies(names, options);
  EXPECT_EQ(Get(1, "key"), "value");
}

TEST_F(MissingPathTest, DirectoriesThatCannotBeUsed) {
  Options options;
  ASSERT_NO_FATAL_FAILURE(Fill(Sst(), &options));
  const std::string path = "path id 1 of column family default";
  struct Case {
    Fault fault;
    std::vector<std::string> parts;
    bool for_reads;
  };
  const std::vector<Case> cases = {
      {Fault::kNoAccess,
       {"Path id 1 of column family default", second_,
        "exists, but cannot be listed", what_},
       true},
      {Fault::kIoError,
       {"Path id 1 of column family default", second_,
        "cannot be accessed (IO error: Unexpected error(5)", what_},
       true},
      {Fault::kNotListed, {path, second_, "cannot be listed"}, false},
      {Fault::kNotOpened, {path, second_, "Permission denied"}, false},
      {Fault::kNotCreated, {path, second_, "cannot be created"}, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(static_cast<int>(c.fault));
    fs_->Break(second_, c.fault);
    Status s = TryReopen(options);
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    ExpectParts(s, c.parts);
    EXPECT_NE(Log().find(s.ToString()), std::string::npos);
    s = ReadOnlyReopen(options);
    if (c.for_reads) {
      EXPECT_TRUE(s.IsIOError()) << s.ToString();
      ExpectParts(s, c.parts);
    } else {
      EXPECT_OK(s);
    }
    Close();
  }
  fs_->Break("", Fault::kNone);
  Reopen(options);
  EXPECT_EQ(Get(Key(0)), "new");
}

// Secondary instances ask for each file while they read the MANIFEST.
TEST_F(MissingPathTest, SecondaryOfADirectoryThatCannotBeUsed) {
  Options options;
  ASSERT_NO_FATAL_FAILURE(Fill(Sst(), &options));
  fs_->Break(second_, Fault::kIoError);
  std::unique_ptr<DB> secondary;
  ExpectParts(OpenSecondary(options, &secondary),
              {second_, "ath id 1 of column family default"});
  fs_->Break("", Fault::kNone);
  ASSERT_OK(OpenSecondary(options, &secondary));
  ASSERT_OK(secondary->Close());
}

// The WAL has entries for a path to which nothing can be written.
TEST_F(MissingPathTest, RecoveryToAReadOnlyPath) {
  Options options;
  ASSERT_NO_FATAL_FAILURE(Fill(Sst(), &options));
  Reopen(options);
  ASSERT_OK(Put("old", "newer"));
  Close();
  fs_->Break(second_, Fault::kReadOnly);
  const Status s = TryReopen(options);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  ExpectParts(s, {"Read-only file system",
                  "(" + second_ + " is path id 1 of column family default)"});
  fs_->Break("", Fault::kNone);
  Reopen(options);
  EXPECT_EQ(Get("old"), "newer");
}

// A path of a new database that cannot be created leaves no database.
TEST_F(MissingPathTest, NewDatabaseWithoutAPath) {
  const Options options = PathOptions(Sst());
  Destroy(options);
  DestroyDirectories();
  fs_->Break(second_, Fault::kNotCreated);
  const Status s = TryReopen(options);
  ExpectParts(s, {"path id 1 of column family default", second_,
                  "cannot be created", "Read-only file system"});
  EXPECT_TRUE(env_->FileExists(CurrentFileName(dbname_)).IsNotFound());
  fs_->Break("", Fault::kNone);
  Options strict = options;
  strict.error_if_exists = true;
  Reopen(strict);
  ASSERT_OK(Put("key", "value"));
}

TEST_F(MissingPathTest, AnOpenAsksOnceForEachDirectory) {
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.name);
    Options options;
    ASSERT_NO_FATAL_FAILURE(Fill(kind, &options));
    const int expected = kind.is_compacted ? 1 : 2;
    fs_->TakeNumQuestions();
    Reopen(options);
    EXPECT_EQ(fs_->TakeNumQuestions(), expected);
    Close();
    // Without several paths, RocksDB asks nothing.
    Options one = WithOnePath(options);
    one.db_paths = {{dbname_, 0}};
    DestroyAndReopen(one);
    ASSERT_OK(PutNew(kind));
    ASSERT_OK(Flush());
    fs_->TakeNumQuestions();
    Reopen(one);
    EXPECT_EQ(fs_->TakeNumQuestions(), 0);
  }
}

// The primary moves all files away from a path, and deletes them, while a
// secondary instance that has read the MANIFEST looks for them.
TEST_F(MissingPathTest, SecondaryOfAPrimaryThatLeavesThePath) {
  Options options;
  ASSERT_NO_FATAL_FAILURE(Fill(Sst(), &options));
  Reopen(options);
  bool has_moved = false;
  SyncPoint::GetInstance()->SetCallBack(
      "VersionEditHandler::CheckMissingPaths:Begin", [&](void* /*arg*/) {
        if (has_moved) {
          return;
        }
        has_moved = true;
        ASSERT_OK(db_->SetOptions({{"level_sst_path_ids", "0"}}));
        CompactRangeOptions compact;
        compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
        ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
        WaitForCompactOptions wait;
        wait.wait_for_purge = true;
        ASSERT_OK(db_->WaitForCompact(wait));
      });
  SyncPoint::GetInstance()->EnableProcessing();
  std::unique_ptr<DB> secondary;
  const Status s = OpenSecondary(options, &secondary);
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  ASSERT_TRUE(has_moved);
  for (const std::string& name : files_) {
    EXPECT_TRUE(env_->FileExists(name).IsNotFound());
  }
  ASSERT_OK(s);
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  std::string value;
  ASSERT_OK(secondary->Get(ReadOptions(), Key(0), &value));
  EXPECT_EQ(value, "new");
  ASSERT_OK(secondary->Close());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
