//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Delta files are listed, copied, checked, deleted and repaired like other
// files of a DB. The tests make them by hand, see HandMadeDeltas.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/db_impl/compacted_db_impl.h"
#include "db/delta/delta_verifier.h"
#include "env/composite_env_wrapper.h"
#include "file/filename.h"
#include "file/sst_file_manager_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "rocksdb/experimental.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/metadata.h"
#include "rocksdb/sst_file_manager.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test_util/strata/delta_db_test_util.h"
#include "test_util/strata/line_logger_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/testutil.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A file system in which one attempt to open a delta file for reading fails.
class FailingOpenFS : public FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "FailingOpenFS"; }

  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    uint64_t number = 0;
    FileType type = kTempFile;
    if (ParseFileName(name.substr(name.rfind('/') + 1), &number, &type) &&
        type == kDeltaFile && opened++ == fails) {
      return IOStatus::IOError("Injected", name);
    }
    return FileSystemWrapper::NewRandomAccessFile(name, options, result, dbg);
  }

  // Number of attempts to open a delta file.
  size_t opened = 0;
  // Index of the attempt that fails.
  size_t fails = 0;
};

// Orders bytewise, and cannot be made by its name.
class UnregisteredComparator : public Comparator {
 public:
  const char* Name() const override { return "UnregisteredComparator"; }
  int Compare(const Slice& a, const Slice& b) const override {
    return BytewiseComparator()->Compare(a, b);
  }
  void FindShortestSeparator(std::string* /*start*/,
                             const Slice& /*limit*/) const override {}
  void FindShortSuccessor(std::string* /*key*/) const override {}
  bool CanKeysWithDifferentByteContentsBeEqual() const override {
    return false;
  }
};

// Merges nothing.
class FailingOperator : public MergeOperator {
 public:
  bool FullMergeV2(const MergeOperationInput& /*in*/,
                   MergeOperationOutput* /*out*/) const override {
    return false;
  }
  const char* Name() const override { return "FailingOperator"; }
};

}  // namespace

using delta_test::HandMadeDeltas;
using delta_test::Operand;
using delta_test::Values;

class DBDeltaLifeTest : public DeltaDBTestBase {
 protected:
  using Kind = DeltaFileDescription::Kind;
  using Tier = DeltaFileDescription::Tier;

  DBDeltaLifeTest() : DeltaDBTestBase("db_delta_life_test") {
    options_ = DeltaOptions();
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
    DestroyAndReopen(options_);
  }

  // Makes files of all kinds and tiers. Some operands are hidden, others are
  // not.
  void MakeStore() {
    HandMadeDeltas deltas = Deltas();
    deltas.Flush({{"a", 10, "1"}, {"m", 11, "1"}});
    deltas.FlushAnchors({{"a", 15}});
    deltas.Merge(2, {{"a", 10, "1"}, {"m", 11, "1"}}, {{"a", 15}});
    const uint64_t floor = LastMergedEpoch();
    deltas.Collect({{"m", 11, "1"}}, {{"", floor}, {"k", floor}}, std::nullopt);
    deltas.Flush({{"a", 20, "2"}, {"m", 21, "2"}});
    deltas.Merge(1, {{"a", 20, "2"}, {"m", 21, "2"}});
    deltas.Flush({{"a", 30, "3"}});
    deltas.FlushAnchors({}, {{"b", "c", 31}});
    RenewSuperVersion();
  }
  void ExpectStore() {
    HandMadeDeltas deltas = Deltas();
    EXPECT_EQ((Values{{30, "3"}, {20, "2"}}), deltas.Read("a"));
    EXPECT_EQ((Values{{21, "2"}, {11, "1"}}), deltas.Read("m"));
    EXPECT_EQ(Values(), deltas.Read("b"));
  }

  uint64_t LastMergedEpoch() {
    uint64_t epoch = 0;
    Deltas().State()->ForEachFile([&](const DeltaVersion::FilePtr& file) {
      if (file->description().tier == Tier::kMerged) {
        epoch = std::max(epoch, file->description().last_epoch);
      }
    });
    return epoch;
  }

  // Installs a new SuperVersion, since only the old one keeps files that are
  // not in the current Version.
  void RenewSuperVersion() {
    ASSERT_OK(Put("renew", "value"));
    ASSERT_OK(Flush());
    // The background work also purges obsolete files.
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  }

  std::vector<DeltaFileDescription> Files() {
    std::vector<DeltaFileDescription> files;
    const auto state = Deltas().State();
    if (state != nullptr) {
      state->ForEachFile([&](const DeltaVersion::FilePtr& file) {
        files.push_back(file->description());
      });
    }
    return files;
  }
  std::set<std::string> Names() {
    std::set<std::string> names;
    for (const DeltaFileDescription& file : Files()) {
      names.insert(DeltaFileName("", file.number).substr(1));
    }
    return names;
  }
  // Returns the names of delta files in a directory.
  std::set<std::string> NamesIn(const std::string& directory) {
    const std::vector<std::string> names = FilesIn(directory, kDeltaFile);
    return {names.begin(), names.end()};
  }

  static void IsCorruptionOf(const Status& s, const std::string& file) {
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    ASSERT_NE(std::string::npos, s.ToString().find(file)) << s.ToString();
  }

  void ChangeByte(const std::string& file, size_t offset) {
    std::string contents;
    ASSERT_OK(ReadFileToString(env_, file, &contents));
    ASSERT_LT(offset, contents.size());
    contents[offset] ^= 1;
    ASSERT_OK(WriteStringToFile(env_, contents, file));
  }

  // Returns the errors that `ldb verify_delta_store` would report.
  std::vector<std::string> Verify() {
    HandMadeDeltas deltas = Deltas();
    ColumnFamilyData* const cfd = deltas.cfd();
    DeltaTableFamily family(cfd->ioptions());
    const auto tables =
        NewUncachedDeltaTables(family, cfd->GetLatestMutableCFOptions());
    DeltaVerifier::Options options;
    options.num_threads = 3;
    options.checksum_factory = options_.file_checksum_gen_factory.get();
    DeltaVerifier::Result result;
    std::vector<std::string> errors;
    const auto state = deltas.State();
    DeltaVerifier::Verify(
        *tables, *state, options,
        [&](const std::string& line) { errors.push_back(line); }, &result);
    EXPECT_EQ(errors.size(), result.errors.load());
    EXPECT_EQ(state->GetTotals().num_files, result.files.load());
    return errors;
  }

  Options options_;
};

TEST_F(DBDeltaLifeTest, MetadataDescribesDeltaFiles) {
  MakeStore();
  ExpectStore();
  ColumnFamilyMetaData family;
  db_->GetColumnFamilyMetaData(&family);
  const std::vector<DeltaFileDescription> files = Files();
  ASSERT_EQ(4u, files.size());
  ASSERT_EQ(files.size(), family.delta_files.size());
  std::set<std::pair<DeltaMetaData::Kind, DeltaMetaData::Tier>> kinds;
  for (size_t i = 0; i < files.size(); ++i) {
    const DeltaFileDescription& expected = files[i];
    const DeltaMetaData& file = family.delta_files[i];
    kinds.emplace(file.kind, file.tier);
    EXPECT_EQ(expected.number, file.file_number);
    EXPECT_EQ(dbname_, file.directory);
    EXPECT_OK(env_->FileExists(file.directory + "/" + file.relative_filename));
    uint64_t size = 0;
    EXPECT_OK(env_->GetFileSize(file.directory + "/" + file.relative_filename,
                                &size));
    EXPECT_EQ(size, file.size);
    EXPECT_EQ(expected.first_epoch, file.first_epoch);
    EXPECT_EQ(expected.last_epoch, file.last_epoch);
    EXPECT_EQ(expected.smallest, file.smallestkey);
    EXPECT_EQ(expected.largest, file.largestkey);
    EXPECT_EQ(expected.smallest_seq, file.smallest_seqno);
    EXPECT_EQ(expected.largest_seq, file.largest_seqno);
    EXPECT_EQ(expected.num_entries, file.num_entries);
    EXPECT_EQ(expected.num_range_anchors, file.num_ranges);
    EXPECT_EQ(expected.file_checksum, file.file_checksum);
    EXPECT_FALSE(file.file_checksum.empty());
    EXPECT_EQ("FileChecksumCrc32c", file.file_checksum_func_name);
  }
  EXPECT_EQ(4u, kinds.size());
  EXPECT_TRUE(kinds.count(
      {DeltaMetaData::Kind::kOperands, DeltaMetaData::Tier::kSorted}));
  EXPECT_TRUE(kinds.count(
      {DeltaMetaData::Kind::kOperands, DeltaMetaData::Tier::kMerged}));
  EXPECT_TRUE(kinds.count(
      {DeltaMetaData::Kind::kOperands, DeltaMetaData::Tier::kFlushed}));
  EXPECT_TRUE(kinds.count(
      {DeltaMetaData::Kind::kAnchors, DeltaMetaData::Tier::kFlushed}));

  // The list is replaced, not appended to.
  db_->GetColumnFamilyMetaData(&family);
  EXPECT_EQ(files.size(), family.delta_files.size());
  db_->GetColumnFamilyMetaData(db_->DefaultColumnFamily(),
                               GetColumnFamilyMetaDataOptions(), &family);
  EXPECT_TRUE(family.delta_files.empty());
}

TEST_F(DBDeltaLifeTest, LiveFilesIncludeDeltaFiles) {
  MakeStore();
  std::vector<std::string> names;
  uint64_t manifest_size = 0;
  ASSERT_OK(db_->GetLiveFiles(names, &manifest_size, /*flush_memtable=*/false));
  std::set<std::string> deltas;
  for (const std::string& name : names) {
    if (Slice(name).ends_with(".delta")) {
      deltas.insert(name.substr(1));
    }
  }
  EXPECT_EQ(Names(), deltas);

  for (bool with_checksums : {false, true}) {
    LiveFilesStorageInfoOptions options;
    options.include_checksum_info = with_checksums;
    std::vector<LiveFileStorageInfo> infos;
    ASSERT_OK(db_->GetLiveFilesStorageInfo(options, &infos));
    std::map<uint64_t, LiveFileStorageInfo> by_number;
    for (const LiveFileStorageInfo& info : infos) {
      if (info.file_type == kDeltaFile) {
        EXPECT_TRUE(by_number.emplace(info.file_number, info).second);
      }
    }
    const auto files = Files();
    ASSERT_EQ(files.size(), by_number.size());
    for (const DeltaFileDescription& file : files) {
      const LiveFileStorageInfo& info = by_number.at(file.number);
      EXPECT_EQ(dbname_, info.directory);
      EXPECT_EQ(DeltaFileName(dbname_, file.number),
                info.directory + "/" + info.relative_filename);
      EXPECT_EQ(file.size, info.size);
      EXPECT_FALSE(info.trim_to_size);
      EXPECT_EQ(with_checksums ? file.file_checksum : "", info.file_checksum);
      EXPECT_EQ(with_checksums ? file.file_checksum_func_name : "",
                info.file_checksum_func_name);
    }
  }
}

// The lists of checksums have exactly the live files, also the one that is read
// from the MANIFEST, which has added files that do not exist any more.
TEST_F(DBDeltaLifeTest, ListsOfChecksumsHaveTheLiveFiles) {
  for (const bool has_checksums : {true, false}) {
    SCOPED_TRACE(has_checksums);
    if (!has_checksums) {
      options_.file_checksum_gen_factory = nullptr;
      DestroyAndReopen(options_);
    }
    MakeStore();
    std::set<uint64_t> live;
    for (const DeltaFileDescription& file : Files()) {
      live.insert(file.number);
    }
    std::vector<LiveFileMetaData> tables;
    db_->GetLiveFilesMetaData(&tables);
    for (const LiveFileMetaData& table : tables) {
      live.insert(table.file_number);
    }
    const auto check = [&](FileChecksumList* list) {
      std::vector<uint64_t> numbers;
      std::vector<std::string> checksums;
      std::vector<std::string> func_names;
      ASSERT_OK(list->GetAllFileChecksums(&numbers, &checksums, &func_names));
      EXPECT_EQ(live, std::set<uint64_t>(numbers.begin(), numbers.end()));
      for (const std::string& func_name : func_names) {
        EXPECT_EQ(
            has_checksums ? "FileChecksumCrc32c" : kUnknownFileChecksumFuncName,
            func_name);
      }
    };
    const std::unique_ptr<FileChecksumList> list(NewFileChecksumList());
    ASSERT_OK(db_->GetLiveFilesChecksumInfo(list.get()));
    check(list.get());
    Close();
    ASSERT_OK(experimental::GetFileChecksumsFromCurrentManifest(
        env_->GetFileSystem().get(), dbname_, list.get()));
    check(list.get());
  }
}

// The files of a family whose comparator is not registered cannot be made out.
// The list read from the MANIFEST has all of them.
TEST_F(DBDeltaLifeTest, ListOfChecksumsNeedsNoComparator) {
  static const UnregisteredComparator comparator;
  options_.comparator = &comparator;
  DestroyAndReopen(options_);
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  ASSERT_EQ(1u, Files().size());
  const uint64_t number = Files().front().number;
  Close();
  const std::unique_ptr<FileChecksumList> list(NewFileChecksumList());
  ASSERT_OK(experimental::GetFileChecksumsFromCurrentManifest(
      env_->GetFileSystem().get(), dbname_, list.get()));
  std::string checksum;
  std::string func_name;
  EXPECT_OK(list->SearchOneFileChecksum(number, &checksum, &func_name));
}

TEST_F(DBDeltaLifeTest, CheckpointOpensWithTheSameStore) {
  MakeStore();
  const std::string text = Deltas().Text();
  const std::string directory = dbname_ + "_checkpoint";
  ASSERT_OK(DestroyDir(env_, directory));
  {
    Checkpoint* checkpoint = nullptr;
    ASSERT_OK(Checkpoint::Create(db_.get(), &checkpoint));
    const std::unique_ptr<Checkpoint> guard(checkpoint);
    ASSERT_OK(checkpoint->CreateCheckpoint(directory));
  }
  const std::set<std::string> names = Names();
  EXPECT_EQ(names, NamesIn(directory));
  // The checkpoint does not need the source.
  Close();
  ASSERT_OK(DestroyDB(dbname_, options_));
  const std::string source = std::exchange(dbname_, directory);
  Reopen(options_);
  EXPECT_EQ(text, Deltas().Text());
  ExpectStore();
  EXPECT_OK(db_->VerifyChecksum());
  EXPECT_OK(db_->VerifyFileChecksums(ReadOptions()));
  EXPECT_EQ(names, NamesIn(directory));
  Close();
  ASSERT_OK(DestroyDB(directory, options_));
  dbname_ = source;
}

// DestroyDB() and open delete files on other paths, also those that a job had
// not named yet when the DB was closed.
TEST_F(DBDeltaLifeTest, UnnamedFilesOnOtherPathsAreDeleted) {
  const std::string other = dbname_ + "_other";
  ASSERT_OK(DestroyDir(env_, other));
  options_.cf_paths.emplace_back(other, 0);
  DestroyAndReopen(options_);
  // An open deletes such a file whether or not there are delta files.
  const std::string forgotten = TempFileName(other, Deltas().NewNumber());
  Close();
  ASSERT_OK(WriteStringToFile(env_, "operands", forgotten));
  Reopen(options_);
  dbfull()->TEST_DeleteObsoleteFiles();
  EXPECT_TRUE(env_->FileExists(forgotten).IsNotFound());
  Deltas().Flush({{"a", 10, "1"}});
  const std::string unnamed = TempFileName(other, Deltas().NewNumber());
  Close();
  ASSERT_OK(WriteStringToFile(env_, "operands", unnamed));
  Reopen(options_);
  dbfull()->TEST_DeleteObsoleteFiles();
  EXPECT_TRUE(env_->FileExists(unnamed).IsNotFound());
  EXPECT_EQ(1u, NamesIn(other).size());
  Close();
  ASSERT_OK(WriteStringToFile(env_, "operands", unnamed));
  ASSERT_OK(
      DestroyDB(dbname_, options_, {{kDefaultColumnFamilyName, options_}}));
  EXPECT_TRUE(env_->FileExists(other).IsNotFound());
  options_.cf_paths.clear();
}

TEST_F(DBDeltaLifeTest, BackupRestoresTheStore) {
  MakeStore();
  const std::string text = Deltas().Text();
  for (bool share : {true, false}) {
    const std::string directory = dbname_ + "_backup";
    ASSERT_OK(DestroyDir(env_, directory));
    BackupEngineOptions engine_options(directory);
    engine_options.share_table_files = share;
    BackupEngine* engine_ptr = nullptr;
    ASSERT_OK(BackupEngine::Open(env_, engine_options, &engine_ptr));
    std::unique_ptr<BackupEngine> engine(engine_ptr);
    ASSERT_OK(engine->CreateNewBackup(db_.get()));
    ASSERT_OK(engine->CreateNewBackup(db_.get()));
    for (BackupID id : {1, 2}) {
      ASSERT_OK(engine->VerifyBackup(id, /*verify_with_checksum=*/true));
    }
    // Shared files have the session in their names, and each is there once.
    std::vector<std::string> shared;
    env_->GetChildren(directory + "/shared_checksum", &shared)
        .PermitUncheckedError();
    size_t num_shared = 0;
    for (const std::string& name : shared) {
      if (Slice(name).ends_with(".delta")) {
        ++num_shared;
        EXPECT_NE(std::string::npos, name.find("_s")) << name;
      }
    }
    EXPECT_EQ(share ? Names().size() : 0u, num_shared);
    EXPECT_EQ(share ? 0u : Names().size(),
              NamesIn(directory + "/private/2").size());

    // A restore may also write over an existing DB.
    const std::string restored = dbname_ + "_restored";
    ASSERT_OK(DestroyDir(env_, restored));
    for (RestoreOptions::Mode mode :
         {RestoreOptions::Mode::kPurgeAllFiles,
          RestoreOptions::Mode::kVerifyChecksum,
          RestoreOptions::Mode::kKeepLatestDbSessionIdFiles}) {
      if (!share && mode == RestoreOptions::Mode::kKeepLatestDbSessionIdFiles) {
        continue;  // requires names with a session
      }
      if (mode == RestoreOptions::Mode::kVerifyChecksum) {
        // One file is damaged, and one is not part of the backup.
        const std::string file = restored + "/" + *Names().begin();
        ChangeByte(file, 20);
        ASSERT_OK(WriteStringToFile(env_, "x", DeltaFileName(restored, 9999)));
      }
      RestoreOptions restore_options;
      restore_options.mode = mode;
      ASSERT_OK(engine->RestoreDBFromLatestBackup(restored, restored,
                                                  restore_options));
      EXPECT_EQ(Names(), NamesIn(restored));
      std::unique_ptr<DB> db;
      ASSERT_OK(DB::Open(options_, restored, &db));
      EXPECT_EQ(text, HandMadeDeltas(db.get()).Text());
      EXPECT_OK(db->VerifyChecksum());
      EXPECT_OK(db->VerifyFileChecksums(ReadOptions()));
      db.reset();
    }
    ASSERT_OK(DestroyDB(restored, options_));
    engine.reset();
    ASSERT_OK(DestroyDir(env_, directory));
  }
}

// A restore keeps files that are already there, and does not copy them.
TEST_F(DBDeltaLifeTest, RestoreKeepsFilesThatAreThere) {
  MakeStore();
  const std::string directory = dbname_ + "_backup";
  ASSERT_OK(DestroyDir(env_, directory));
  BackupEngine* engine_ptr = nullptr;
  ASSERT_OK(
      BackupEngine::Open(env_, BackupEngineOptions(directory), &engine_ptr));
  std::unique_ptr<BackupEngine> engine(engine_ptr);
  ASSERT_OK(engine->CreateNewBackup(db_.get()));
  const std::string name = *Names().begin();
  const std::string restored = dbname_ + "_restored";
  ASSERT_OK(DestroyDir(env_, restored));
  ASSERT_OK(engine->RestoreDBFromLatestBackup(restored, restored));
  for (RestoreOptions::Mode mode :
       {RestoreOptions::Mode::kVerifyChecksum,
        RestoreOptions::Mode::kKeepLatestDbSessionIdFiles}) {
    // The file gets a second link. A rewritten file would have only one.
    const std::string link = restored + "_link";
    env_->DeleteFile(link).PermitUncheckedError();
    ASSERT_OK(env_->LinkFile(restored + "/" + name, link));
    RestoreOptions restore_options;
    restore_options.mode = mode;
    ASSERT_OK(
        engine->RestoreDBFromLatestBackup(restored, restored, restore_options));
    uint64_t links = 0;
    ASSERT_OK(env_->NumFileLinks(restored + "/" + name, &links));
    EXPECT_EQ(2u, links);
    ASSERT_OK(env_->DeleteFile(link));
  }
  ASSERT_OK(DestroyDB(restored, options_));
  engine.reset();
  ASSERT_OK(DestroyDir(env_, directory));
}

TEST_F(DBDeltaLifeTest, ExportRefusesDeltaFiles) {
  const std::string directory = dbname_ + "_export";
  ASSERT_OK(DestroyDir(env_, directory));
  ExportImportFilesMetaData* metadata = nullptr;
  const auto try_export = [&] {
    Checkpoint* checkpoint_ptr = nullptr;
    EXPECT_OK(Checkpoint::Create(db_.get(), &checkpoint_ptr));
    const std::unique_ptr<Checkpoint> checkpoint(checkpoint_ptr);
    return checkpoint->ExportColumnFamily(db_->DefaultColumnFamily(), directory,
                                          &metadata);
  };
  for (const bool one_file : {true, false}) {
    DestroyAndReopen(options_);
    if (one_file) {
      Deltas().Flush({{"a", 10, "1"}});
      RenewSuperVersion();
    } else {
      MakeStore();
    }
    const Status s = try_export();
    ASSERT_TRUE(s.IsNotSupported()) << s.ToString();
    EXPECT_NE(std::string::npos,
              s.ToString().find(one_file ? "1 delta files" : "4 delta files"));
    EXPECT_NE(std::string::npos, s.ToString().find("enable_delta_separation"));
    EXPECT_EQ(nullptr, metadata);
    EXPECT_TRUE(env_->FileExists(directory).IsNotFound());
    EXPECT_TRUE(env_->FileExists(directory + ".tmp").IsNotFound());
  }

  // A family without delta files can be exported and imported with the option
  // on.
  DestroyAndReopen(options_);
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(try_export());
  ColumnFamilyHandle* imported = nullptr;
  ASSERT_OK(db_->CreateColumnFamilyWithImport(
      options_, "imported", ImportColumnFamilyOptions(), *metadata, &imported));
  std::string value;
  EXPECT_OK(db_->Get(ReadOptions(), imported, "k", &value));
  EXPECT_EQ("v", value);
  EXPECT_OK(db_->DestroyColumnFamilyHandle(imported));
  delete metadata;
  ASSERT_OK(DestroyDir(env_, directory));
}

TEST_F(DBDeltaLifeTest, DestroyDBLeavesNothing) {
  const std::string other = dbname_ + "_1";
  ASSERT_OK(DestroyDir(env_, other));
  options_.cf_paths = {{dbname_, 1 << 30}, {other, 1 << 30}};
  options_.level_sst_path_ids = {0};
  DestroyAndReopen(options_);
  HandMadeDeltas deltas = Deltas();
  deltas.Flush({{"a", 10, "1"}});
  DeltaFileBuilder::Options on_other_path = deltas.BuilderOptions(
      Kind::kOperands, Tier::kFlushed, deltas.NewNumber());
  on_other_path.path_id = 1;
  DeltaEdit edit;
  edit.AddFile(deltas.WriteOperands(on_other_path, {{"b", 11, "1"}}));
  ASSERT_OK(deltas.Log(std::move(edit)));

  // Properties and live-file lists name the path of each file.
  std::map<std::string, std::string> paths;
  ASSERT_TRUE(db_->GetMapProperty(DB::Properties::kPathStats, &paths));
  EXPECT_EQ("1", paths["path0.delta-files"]);
  EXPECT_EQ("1", paths["path1.delta-files"]);
  EXPECT_EQ(std::to_string(Files()[0].size), paths["path1.delta-bytes"]);
  std::vector<LiveFileStorageInfo> infos;
  ASSERT_OK(
      db_->GetLiveFilesStorageInfo(LiveFilesStorageInfoOptions(), &infos));
  std::multiset<std::string> directories;
  for (const LiveFileStorageInfo& info : infos) {
    if (info.file_type == kDeltaFile) {
      directories.insert(info.directory);
    }
  }
  EXPECT_EQ((std::multiset<std::string>{dbname_, other}), directories);

  Reopen(options_);
  EXPECT_EQ(1u, NamesIn(dbname_).size());
  EXPECT_EQ(1u, NamesIn(other).size());
  Close();
  ASSERT_OK(DestroyDB(dbname_, options_));
  for (const std::string& directory : {dbname_, other}) {
    std::vector<std::string> children;
    env_->GetChildren(directory, &children).PermitUncheckedError();
    EXPECT_TRUE(children.empty()) << children[0];
  }
}

TEST_F(DBDeltaLifeTest, ObsoleteFilesStayWhileTheyAreUsed) {
  HandMadeDeltas deltas = Deltas();
  const std::string first = deltas.NameOf(deltas.Flush({{"a", 10, "1"}}));
  const std::string second = deltas.NameOf(deltas.Flush({{"a", 20, "2"}}));
  RenewSuperVersion();
  std::unique_ptr<Iterator> iterator(db_->NewIterator(ReadOptions()));
  ASSERT_OK(db_->DisableFileDeletions());
  deltas.Merge(2, {{"a", 20, "12"}});
  RenewSuperVersion();
  EXPECT_EQ(3u, NamesIn(dbname_).size());  // the iterator's Version has them
  ASSERT_OK(db_->EnableFileDeletions());
  EXPECT_EQ(3u, NamesIn(dbname_).size());

  ASSERT_OK(db_->DisableFileDeletions());
  iterator.reset();
  EXPECT_OK(env_->FileExists(first));
  EXPECT_OK(env_->FileExists(second));
  ASSERT_OK(db_->EnableFileDeletions());
  EXPECT_TRUE(env_->FileExists(first).IsNotFound());
  EXPECT_TRUE(env_->FileExists(second).IsNotFound());
  EXPECT_EQ(Names(), NamesIn(dbname_));
  EXPECT_EQ((Values{{20, "12"}}), deltas.Read("a"));
}

// The edit of a deletion of files was certainly not written, so its anchors are
// deleted without a scan.
TEST_F(DBDeltaLifeTest, AnchorsOfADeletionInADroppedFamilyAreDeleted) {
  CreateAndReopenWithCF({"other"}, options_);
  ASSERT_OK(Put(1, "k", "base"));
  ASSERT_OK(Flush(1));
  MoveFilesToLevel(3, 1);
  ASSERT_OK(Merge(1, "k", "1"));
  ASSERT_OK(Flush(1));
  ASSERT_OK(db_->DisableFileDeletions());
  const std::set<std::string> before = NamesIn(dbname_);
  EnableCallBack("DeltaFileDeletion::Publish:Synced", [&](void*) {
    EXPECT_EQ(before.size() + 1, NamesIn(dbname_).size());
    ASSERT_OK(db_->DropColumnFamily(handles_[1]));
  });
  RangeOpt all;
  const Status s = DeleteFilesInRanges(db_.get(), handles_[1], &all, 1);
  DisableCallBacks();
  EXPECT_TRUE(s.IsColumnFamilyDropped()) << s.ToString();
  EXPECT_EQ(before, NamesIn(dbname_));
  ASSERT_OK(db_->EnableFileDeletions());
}

// The last step that may fail before the edit is that of the address map:
// readers find the values until then, also those that ask the map alone, and
// after a failure of either feature.
TEST_F(DBDeltaLifeTest, DeletionOfFilesThatFailsHidesNoMappedValue) {
  options_.enable_blob_files = true;
  options_.enable_blob_address_map = true;
  options_.min_blob_size = 20;
  DestroyAndReopen(options_);
  const std::string base(100, 'b');
  ASSERT_OK(Put("direct", base));
  ASSERT_OK(Put("merged", base));
  ASSERT_OK(Flush());
  MoveFilesToLevel(3);
  ASSERT_OK(Merge("merged", "1"));
  ASSERT_OK(Flush());
  const auto check = [&] {
    EXPECT_EQ(base, Get("direct"));
    EXPECT_EQ(base + ",1", Get("merged"));
  };
  check();
  const std::set<std::string> before = NamesIn(dbname_);
  const auto fails_at = [&](const std::string& point) {
    SCOPED_TRACE(point);
    size_t reached = 0;
    const std::string synced = "DeltaFileDeletion::Publish:Synced";
    const auto fail = [&](void* arg) {
      ++reached;
      *static_cast<Status*>(arg) = Status::IOError("injected");
    };
    EnableCallBack(synced, [&](void* arg) {
      EXPECT_EQ(before.size() + 1, NamesIn(dbname_).size());
      check();
      if (point == synced) {
        fail(arg);
      }
    });
    if (point != synced) {
      EnableCallBack(point, fail);
    }
    RangeOpt all;
    const Status s =
        DeleteFilesInRanges(db_.get(), db_->DefaultColumnFamily(), &all, 1);
    DisableCallBacks();
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_EQ(1u, reached);
    check();
    EXPECT_EQ(before, NamesIn(dbname_));
  };
  fails_at("DeltaFileDeletion::Publish:Synced");
  fails_at("MappedFileRemoval::Publish:Status");
  RangeOpt all;
  ASSERT_OK(
      DeleteFilesInRanges(db_.get(), db_->DefaultColumnFamily(), &all, 1));
  EXPECT_EQ("NOT_FOUND", Get("direct"));
  EXPECT_EQ("NOT_FOUND", Get("merged"));
  Reopen(options_);
  EXPECT_EQ("NOT_FOUND", Get("direct"));
  EXPECT_EQ("NOT_FOUND", Get("merged"));
}

TEST_F(DBDeltaLifeTest, SstFileManagerTracksDeltaFiles) {
  std::shared_ptr<SstFileManager> manager(NewSstFileManager(env_));
  options_.sst_file_manager = manager;
  DestroyAndReopen(options_);
  const auto total = [&] {
    uint64_t bytes = 0;
    for (const auto& [name, size] : manager->GetTrackedFiles()) {
      bytes += Slice(name).ends_with(".delta") ? size : 0;
    }
    return bytes;
  };
  const auto expected = [&] {
    uint64_t bytes = 0;
    for (const DeltaFileDescription& file : Files()) {
      bytes += file.size;
    }
    return bytes;
  };
  ASSERT_EQ(0u, total());
  MakeStore();
  static_cast<SstFileManagerImpl*>(manager.get())->WaitForEmptyTrash();
  EXPECT_LT(0u, expected());
  EXPECT_EQ(expected(), total());
  EXPECT_LE(total(), manager->GetTotalSize());

  // A crash has left a file that no MANIFEST names. The manager deletes it, for
  // which it must have been told of the file.
  const uint64_t live = expected();
  Close();
  EXPECT_EQ(0u, total());
  const std::string orphan = DeltaFileName(dbname_, 1000);
  ASSERT_OK(WriteStringToFile(env_, "unfinished", orphan));
  manager.reset(NewSstFileManager(env_));
  options_.sst_file_manager = manager;
  Reopen(options_);
  static_cast<SstFileManagerImpl*>(manager.get())->WaitForEmptyTrash();
  EXPECT_EQ(live, total());
  EXPECT_TRUE(env_->FileExists(orphan).IsNotFound());
  Close();
  EXPECT_EQ(0u, total());
}

TEST_F(DBDeltaLifeTest, ChecksumsFindDamagedDeltaFiles) {
  MakeStore();
  EXPECT_OK(db_->VerifyChecksum());
  EXPECT_OK(db_->VerifyFileChecksums(ReadOptions()));
  EXPECT_EQ(std::vector<std::string>(), Verify());
  // The checks read the files even if their blocks are in memory.
  ExpectStore();
  for (const DeltaFileDescription& file : Files()) {
    const std::string name = DeltaFileName(dbname_, file.number);
    std::string before;
    ASSERT_OK(ReadFileToString(env_, name, &before));
    // One offset is in the first block, the other one in the index, filter or
    // properties.
    for (size_t offset : {size_t{1}, static_cast<size_t>(file.size) / 2}) {
      ChangeByte(name, offset);
      IsCorruptionOf(db_->VerifyFileChecksums(ReadOptions()), name);
      IsCorruptionOf(db_->VerifyChecksum(), name);
      EXPECT_FALSE(Verify().empty());
      ASSERT_OK(WriteStringToFile(env_, before, name));
    }
    ASSERT_OK(env_->DeleteFile(name));
    EXPECT_NOK(db_->VerifyChecksum());
    EXPECT_NOK(db_->VerifyFileChecksums(ReadOptions()));
    EXPECT_FALSE(Verify().empty());
    ASSERT_OK(WriteStringToFile(env_, before, name));
  }
  EXPECT_OK(db_->VerifyChecksum());
  EXPECT_OK(db_->VerifyFileChecksums(ReadOptions()));
}

// A damaged file only affects its own operands: the job that cannot read it is
// tried again, and the DB accepts writes.
TEST_F(DBDeltaLifeTest, DamagedFileIsNoBackgroundError) {
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(db_->Merge(WriteOptions(), "damaged", std::to_string(i)));
    ASSERT_OK(Flush());
    ASSERT_OK(db_->Merge(WriteOptions(), "whole", std::to_string(i)));
    ASSERT_OK(Flush());
  }
  const std::vector<DeltaFileDescription> files = Files();
  ASSERT_EQ(8u, files.size());
  uint64_t first = UINT64_MAX;
  for (const DeltaFileDescription& file : files) {
    first = std::min(first, file.number);
  }
  const std::string name = DeltaFileName(dbname_, first);
  Close();
  ChangeByte(name, 1);
  Reopen(options_);
  CompactRangeOptions compact;
  compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  for (int i = 0; i < 2; ++i) {
    IsCorruptionOf(db_->CompactRange(compact, nullptr, nullptr), name);
    EXPECT_OK(dbfull()->TEST_GetBGError());
    ASSERT_OK(db_->Merge(WriteOptions(), "whole", "x"));
    ASSERT_OK(Put("new", "value"));
    ASSERT_OK(Flush());
  }
  EXPECT_EQ("value", Get("new"));
  EXPECT_EQ("0,1,2,3,x,x", Get("whole"));
  std::string value;
  IsCorruptionOf(db_->Get(ReadOptions(), "damaged", &value), name);
}

TEST_F(DBDeltaLifeTest, OpenFailsIfADeltaFileIsMissing) {
  MakeStore();
  const std::string text = Deltas().Text();
  const std::vector<DeltaFileDescription> files = Files();
  Close();
  for (const DeltaFileDescription& file : files) {
    const std::string name = DeltaFileName(dbname_, file.number);
    std::string before;
    ASSERT_OK(ReadFileToString(env_, name, &before));
    for (int truncated = 0; truncated < 3; ++truncated) {
      if (truncated == 0) {
        ASSERT_OK(env_->DeleteFile(name));
      } else {
        ASSERT_OK(WriteStringToFile(
            env_, truncated == 1 ? before.substr(1) : before + "x", name));
      }
      IsCorruptionOf(TryReopen(options_), name);
      Options read_only = options_;
      std::unique_ptr<DB> db;
      IsCorruptionOf(DB::OpenForReadOnly(read_only, dbname_, &db), name);
      // As for SST files, paranoid_checks decides.
      Options lax = options_;
      lax.paranoid_checks = false;
      ASSERT_OK(TryReopen(lax));
      EXPECT_EQ(text, Deltas().Text());
      EXPECT_NOK(db_->VerifyChecksum());
      Close();
      ASSERT_OK(WriteStringToFile(env_, before, name));
    }
  }
  Reopen(options_);
  EXPECT_EQ(text, Deltas().Text());
  ExpectStore();
}

// Several threads check many files; the missing file with the smallest number
// is reported.
TEST_F(DBDeltaLifeTest, OpenReportsTheOldestMissingFile) {
  HandMadeDeltas deltas = Deltas();
  std::vector<std::string> names;
  for (SequenceNumber seq = 10; seq < 110; ++seq) {
    names.push_back(deltas.NameOf(deltas.Flush({{"a", seq, "1"}})));
  }
  Close();
  options_.max_file_opening_threads = 4;
  Reopen(options_);
  EXPECT_EQ(100u, Files().size());
  Close();
  // The missing file with the smallest number is reported.
  for (size_t i : {80, 50, 0}) {
    ASSERT_OK(env_->DeleteFile(names[i]));
    IsCorruptionOf(TryReopen(options_), names[i]);
  }
}

TEST_F(DBDeltaLifeTest, PropertyCountsFilesAndEntries) {
  std::map<std::string, std::string> values;
  ASSERT_TRUE(db_->GetMapProperty(DB::Properties::kDeltaStore, &values));
  EXPECT_EQ("0", values["files"]);
  EXPECT_EQ("0", values["buckets"]);
  EXPECT_EQ("0", values["oldest-epoch"]);
  MakeStore();
  ExpectStore();
  ASSERT_TRUE(db_->GetMapProperty(DB::Properties::kDeltaStore, &values));
  EXPECT_EQ("4", values["files"]);
  EXPECT_EQ("2", values["flushed-files"]);
  EXPECT_EQ("1", values["merged-files"]);
  EXPECT_EQ("1", values["sorted-files"]);
  EXPECT_EQ("1", values["anchor-files"]);
  EXPECT_EQ("4", values["operands"]);
  EXPECT_EQ("1", values["anchors"]);
  EXPECT_EQ("2", values["buckets"]);
  EXPECT_EQ("4", values["open-files"]);
  EXPECT_EQ("31", values["largest-sequence"]);
  EXPECT_NE("0", values["min-floor"]);
  EXPECT_EQ(values["min-floor"], values["max-floor"]);
  EXPECT_LT(std::stoull(values["min-floor"]),
            std::stoull(values["oldest-epoch"]));
  EXPECT_LT(std::stoull(values["oldest-epoch"]),
            std::stoull(values["newest-epoch"]));
  uint64_t bytes = 0;
  for (const DeltaFileDescription& file : Files()) {
    bytes += file.size;
  }
  EXPECT_EQ(std::to_string(bytes), values["bytes"]);
  std::string text;
  ASSERT_TRUE(db_->GetProperty(DB::Properties::kDeltaStore, &text));
  EXPECT_NE(std::string::npos, text.find("buckets: 2\n")) << text;

  options_.enable_delta_separation = false;
  Reopen(options_);
  EXPECT_TRUE(db_->GetProperty(DB::Properties::kDeltaStore, &text));
  DestroyAndReopen(options_);
  EXPECT_FALSE(db_->GetProperty(DB::Properties::kDeltaStore, &text));
  EXPECT_FALSE(db_->GetMapProperty(DB::Properties::kDeltaStore, &values));
}

// A CompactedDB would not see operands, so it refuses delta files.
TEST_F(DBDeltaLifeTest, CompactedDBRefusesDeltaFiles) {
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Flush());
  // The WAL of the flushed memtable must have been deleted.
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  Options compacted = options_;
  compacted.max_open_files = -1;
  compacted.enable_delta_separation = false;
  compacted.merge_operator = nullptr;
  std::unique_ptr<DB> db;
  EXPECT_OK(CompactedDBImpl::Open(compacted, dbname_, &db));
  db.reset();
  Deltas().Flush({{"k", 100, "d"}});
  const Status s = CompactedDBImpl::Open(compacted, dbname_, &db);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  ASSERT_OK(DB::OpenForReadOnly(compacted, dbname_, &db));
  EXPECT_EQ(1u, HandMadeDeltas(db.get()).State()->GetTotals().num_files);
}

// ---- DeltaVerifier.

TEST_F(DBDeltaLifeTest, VerifierFindsDuplicateOperands) {
  HandMadeDeltas deltas = Deltas();
  deltas.Flush({{"a", 10, "1"}, {"b", 10, "1"}});
  deltas.Flush({{"a", 20, "2"}, {"b", 20, "2"}});
  EXPECT_EQ(std::vector<std::string>(), Verify());
  // This is like a merge of the two files that has not removed them.
  deltas.Flush({{"b", 20, "12"}});
  const std::vector<std::string> errors = Verify();
  ASSERT_EQ(1u, errors.size());
  EXPECT_NE(std::string::npos, errors[0].find("0x62")) << errors[0];
}

TEST_F(DBDeltaLifeTest, VerifierChecksBuckets) {
  HandMadeDeltas deltas = Deltas();
  deltas.Flush({{"a", 10, "1"}, {"m", 10, "1"}});
  deltas.Merge(1, {{"a", 10, "1"}, {"m", 10, "1"}});
  const uint64_t floor = LastMergedEpoch();
  const auto log = [&](const DeltaFileDescription& file, uint64_t of_first,
                       const std::string& second) {
    DeltaEdit edit;
    edit.AddFile(file);
    DeltaEdit::ReplaceBuckets all;
    all.buckets = {{"", {of_first, file.number, 10, 0}},
                   {second, {floor, file.number, 10, 0}}};
    edit.AddReplaceBuckets(std::move(all));
    return deltas.Log(std::move(edit));
  };
  // The file contains everything up to `floor`, but the first bucket's floor is
  // lower.
  ASSERT_OK(
      log(deltas.WriteOperands(
              deltas.BuilderOptions(Kind::kOperands, Tier::kSorted),
              {{"a", 10, "1"}, {"m", 10, "1"}}, {{"", floor}, {"k", floor}}),
          0, "k"));
  std::vector<std::string> errors = Verify();
  ASSERT_EQ(2u, errors.size());
  EXPECT_NE(std::string::npos, errors[0].find("sees that file as well"))
      << errors[0];
  EXPECT_NE(std::string::npos, errors[1].find("0x61")) << errors[1];

  // The file was written for another bucket, and has a key outside of it.
  ASSERT_OK(log(deltas.WriteOperands(
                    deltas.BuilderOptions(Kind::kOperands, Tier::kSorted),
                    {{"a", 10, "1"}, {"m", 10, "1"}}, {{"k", floor}}, "x"),
                floor, "k"));
  errors = Verify();
  ASSERT_EQ(3u, errors.size());
  EXPECT_NE(std::string::npos, errors[0].find("outside of its buckets"))
      << errors[0];
  EXPECT_NE(std::string::npos, errors[1].find("written for others"))
      << errors[1];
  EXPECT_NE(std::string::npos, errors[2].find("written for others"))
      << errors[2];
}

// The verifier finds each difference between the MANIFEST and a file.
TEST_F(DBDeltaLifeTest, VerifierComparesDescriptions) {
  HandMadeDeltas deltas = Deltas();
  const uint64_t epoch = deltas.NewNumber();
  const auto write = [&] {
    return deltas.WriteOperands(
        deltas.BuilderOptions(Kind::kOperands, Tier::kFlushed, epoch),
        {{"b", 10, "1"}, {"c", 20, "2"}});
  };
  const std::vector<
      std::pair<const char*, std::function<void(DeltaFileDescription*)>>>
      changes = {{"keys go from",
                  [](DeltaFileDescription* file) { file->smallest = "a"; }},
                 {"keys go from",
                  [](DeltaFileDescription* file) { file->largest = "d"; }},
                 {"sequence numbers go from",
                  [](DeltaFileDescription* file) { file->smallest_seq = 9; }},
                 {"excludes",
                  [](DeltaFileDescription* file) { file->largest_seq = 19; }},
                 {"bytes of keys",
                  [](DeltaFileDescription* file) { ++file->raw_bytes; }},
                 {"number of entries",
                  [](DeltaFileDescription* file) { ++file->num_entries; }},
                 {"checksum", [](DeltaFileDescription* file) {
                    file->file_checksum = "none";
                  }}};
  for (const auto& [message, change] : changes) {
    DeltaFileDescription file = write();
    change(&file);
    DeltaEdit edit;
    edit.AddFile(file);
    ASSERT_OK(deltas.Log(std::move(edit)));
    const std::vector<std::string> errors = Verify();
    ASSERT_FALSE(errors.empty()) << message;
    EXPECT_TRUE(std::any_of(errors.begin(), errors.end(),
                            [m = message](const std::string& error) {
                              return error.find(m) != std::string::npos;
                            }))
        << message << ": " << errors[0];
    deltas.Merge(1, {});
    RenewSuperVersion();
  }
}

// ---- Repair.

// Refuses to open WALs, or to create the SST files of a directory.
class RepairFaultFS : public FileSystemWrapper {
 public:
  explicit RepairFaultFS(const std::shared_ptr<FileSystem>& base)
      : FileSystemWrapper(base) {}
  const char* Name() const override { return "RepairFaultFS"; }

  void FailWals() { fails_wals_ = true; }
  void FailTablesIn(const std::string& directory) { directory_ = directory; }
  int num_failed() const { return num_failed_; }

  IOStatus NewSequentialFile(const std::string& name,
                             const FileOptions& options,
                             std::unique_ptr<FSSequentialFile>* result,
                             IODebugContext* dbg) override {
    return fails_wals_ && name.ends_with(".log")
               ? Fail()
               : target()->NewSequentialFile(name, options, result, dbg);
  }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    return !directory_.empty() && name.starts_with(directory_) &&
                   name.ends_with(".sst")
               ? Fail()
               : target()->NewWritableFile(name, options, result, dbg);
  }

 private:
  IOStatus Fail() {
    ++num_failed_;
    return IOStatus::IOError("injected");
  }

  bool fails_wals_ = false;
  std::string directory_;
  int num_failed_ = 0;
};

class DBDeltaRepairTest : public DBDeltaLifeTest {
 protected:
  // An earlier repair may have left the directories.
  DBDeltaRepairTest() {
    EXPECT_OK(DestroyDir(env_, dbname_ + "/lost"));
    EXPECT_OK(DestroyDir(env_, PlainDirectory()));
  }
  ~DBDeltaRepairTest() override {
    Close();
    EXPECT_OK(DestroyDir(env_, PlainDirectory()));
  }

  // The path of the column family without delta files.
  std::string PlainDirectory() const { return dbname_ + "_plain"; }
  std::vector<ColumnFamilyDescriptor> PlainAndSeparated() const {
    Options plain = options_;
    plain.enable_delta_separation = false;
    plain.cf_paths = {{PlainDirectory(), 0}};
    return {{kDefaultColumnFamilyName, plain}, {"separated", options_}};
  }
  void ReopenPlainAndSeparated() {
    std::vector<std::string> names;
    std::vector<Options> options;
    for (const ColumnFamilyDescriptor& family : PlainAndSeparated()) {
      names.push_back(family.name);
      options.emplace_back(options_, family.options);
    }
    ASSERT_OK(TryReopenWithColumnFamilies(names, options));
  }
  Status RepairOn(const std::shared_ptr<FileSystem>& fs) {
    const std::unique_ptr<Env> env = NewCompositeEnv(fs);
    Options options = options_;
    options.env = env.get();
    return RepairDB(dbname_, options, PlainAndSeparated());
  }
  // Leaves a WAL with an operand of either column family, and no MANIFEST.
  void WritePlainAndSeparated() {
    CreateAndReopenWithCF({"separated"}, options_);
    ReopenPlainAndSeparated();
    // A repair knows column families by their files.
    for (const int family : {0, 1}) {
      ASSERT_OK(Put(family, "a", "flushed"));
      ASSERT_OK(Flush(family));
    }
    ASSERT_OK(Merge(0, "k", "1"));
    ASSERT_OK(Merge(1, "k", "2"));
    LoseManifest();
  }

  void RepairAndReopen() {
    ASSERT_OK(RepairDB(dbname_, options_));
    Reopen(options_);
    EXPECT_EQ(Names(), NamesIn(dbname_));
    if (!Files().empty()) {
      EXPECT_EQ(std::vector<std::string>(), Verify());
    }
  }
  // families: names, the default one first.
  void RepairAndReopenFamilies(const std::vector<std::string>& families) {
    std::vector<ColumnFamilyDescriptor> descriptors;
    for (const std::string& name : families) {
      descriptors.emplace_back(name, options_);
    }
    ASSERT_OK(RepairDB(dbname_, options_, descriptors));
    ReopenWithColumnFamilies(families, options_);
  }
  // Checks that the repair changes nothing and fails with a message about
  // `file`.
  void ExpectRefused(const DeltaFileDescription& file) {
    const Status s = RepairDB(dbname_, options_);
    ASSERT_NOK(s);
    EXPECT_NE(std::string::npos,
              s.ToString().find(DeltaFileName(dbname_, file.number)))
        << s.ToString();
    EXPECT_NE(std::string::npos, s.ToString().find("elsewhere"))
        << s.ToString();
    EXPECT_TRUE(env_->FileExists(dbname_ + "/lost").IsNotFound());
  }

  // Returns the name of an empty directory, without a file of an earlier run.
  std::string CopyName() {
    const std::string copy = dbname_ + "_copy";
    EXPECT_OK(DestroyDir(env_, copy));
    EXPECT_OK(env_->CreateDir(copy));
    return copy;
  }
  // Copies the files of the open database, as a crash would leave them.
  void CopyTo(const std::string& copy) {
    std::vector<std::string> children;
    ASSERT_OK(env_->GetChildren(dbname_, &children));
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(child, &number, &type) && type != kDBLockFile &&
          type != kInfoLogFile) {
        std::string contents;
        ASSERT_OK(ReadFileToString(env_, dbname_ + "/" + child, &contents));
        ASSERT_OK(WriteStringToFile(env_, contents, copy + "/" + child));
      }
    }
  }
};

TEST_F(DBDeltaRepairTest, RepairRebuildsTheStore) {
  MakeStore();
  const SequenceNumber last = db_->GetLatestSequenceNumber();
  LoseManifest();
  RepairAndReopen();
  ExpectStore();
  EXPECT_GE(db_->GetLatestSequenceNumber(), last);
  EXPECT_EQ("value", Get("renew"));
  // Later flushes have larger epochs.
  Deltas().Flush({{"a", 40, "4"}});
  EXPECT_EQ((Values{{40, "4"}, {30, "3"}, {20, "2"}}), Deltas().Read("a"));
  Reopen(options_);
  EXPECT_EQ((Values{{40, "4"}, {30, "3"}, {20, "2"}}), Deltas().Read("a"));
}

// Obsolete files and files of an uncommitted job are on disk during the repair.
// They do not change what readers see.
TEST_F(DBDeltaRepairTest, RepairMovesUnusedFilesToLost) {
  ASSERT_OK(db_->DisableFileDeletions());
  MakeStore();
  HandMadeDeltas deltas = Deltas();
  const uint64_t floor = LastMergedEpoch();
  // The edit of this collection is missing. The collection has left no operand
  // out.
  deltas.WriteOperands(deltas.BuilderOptions(Kind::kOperands, Tier::kSorted),
                       {{"m", 21, "2"}, {"m", 11, "1"}}, {{"k", floor}});
  EXPECT_LT(Names().size(), NamesIn(dbname_).size());
  LoseManifest();
  RepairAndReopen();
  ExpectStore();
  // The repair has moved them to the "lost" directory.
  EXPECT_LT(1u, NamesIn(dbname_ + "/lost").size());
}

// Anchors hide the same operands if a repair has to write them into other
// files.
TEST_F(DBDeltaRepairTest, AnchorsHideTheSameAfterARepair) {
  HandMadeDeltas deltas = Deltas();
  deltas.Flush({{"a", 10, "1"}, {"b", 11, "1"}, {"c", 12, "1"}});
  deltas.Merge(1, {{"a", 10, "1"}, {"b", 11, "1"}, {"c", 12, "1"}});
  const uint64_t floor = LastMergedEpoch();
  deltas.Collect({{"a", 10, "1"}, {"b", 11, "1"}, {"c", 12, "1"}},
                 {{"", floor}}, std::nullopt);
  deltas.Flush({{"a", 20, "2"}});
  deltas.FlushAnchors({{"a", 25}}, {{"b", "c", 26}});
  // One merged file has both operands and both anchors.
  deltas.Merge(2, {{"a", 20, "2"}}, {{"a", 25}, {"b", 26}});
  deltas.Flush({{"a", 30, "3"}});
  const auto expect = [&] {
    HandMadeDeltas now = Deltas();
    EXPECT_EQ((Values{{30, "3"}}), now.Read("a"));
    EXPECT_EQ(Values(), now.Read("b"));
    EXPECT_EQ((Values{{12, "1"}}), now.Read("c"));
  };
  expect();
  LoseManifest();
  RepairAndReopen();
  expect();
  // The next repair finds the rewritten files.
  LoseManifest();
  RepairAndReopen();
  expect();
}

// Files that a job has read and files that it has written have the same range
// anchors, in other pieces. A repair writes each range once.
TEST_F(DBDeltaRepairTest, RepairWritesRangeAnchorsOnce) {
  ASSERT_OK(db_->DisableFileDeletions());
  const std::vector<Operand> operands = {
      {"a", 10, "1"}, {"b", 11, "1"}, {"d", 12, "1"}, {"e", 13, "1"}};
  HandMadeDeltas deltas = Deltas();
  const uint64_t first_epoch = deltas.Flush(operands).first_epoch;
  const uint64_t last_epoch =
      deltas.FlushAnchors({}, {{"b", "e", 20}}).last_epoch;
  deltas.Merge(2, operands);
  deltas.WriteAnchors(deltas.BuilderOptions(Kind::kAnchors, Tier::kMerged,
                                            first_epoch, last_epoch),
                      {}, {{"b", "c", 20}, {"c", "e", 20}, {"d", "f", 15}});
  LoseManifest();
  RepairAndReopen();
  HandMadeDeltas now = Deltas();
  EXPECT_EQ((Values{{10, "1"}}), now.Read("a"));
  for (const std::string key : {"b", "d", "e"}) {
    EXPECT_EQ(Values(), now.Read(key)) << key;
  }
  uint64_t num_files = 0;
  for (const DeltaFileDescription& file : Files()) {
    if (file.kind == Kind::kAnchors) {
      ++num_files;
      EXPECT_EQ(4u, file.num_range_anchors);  // bc, cd, de, ef
    }
  }
  EXPECT_EQ(1u, num_files);
}

// A fold has written values, but the delta files without the folded operands
// are missing. The repair adds anchors for these values.
TEST_F(DBDeltaRepairTest, RepairAddsAnchorsForValuesOfAFold) {
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    ASSERT_OK(Put(key, "old"));
  }
  ASSERT_OK(Put("a", "1,2"));
  ASSERT_OK(Put("b", "1,2"));
  ASSERT_OK(Delete("c"));
  ASSERT_OK(Flush());
  const SequenceNumber last = db_->GetLatestSequenceNumber();
  HandMadeDeltas deltas = Deltas();
  // "a" has an operand with the very sequence number of the value, and "b" also
  // has one above the value. Nothing hides the operand of "d", and "e" has an
  // anchor.
  deltas.Flush({{"a", last - 2, "2"},
                {"a", 3, "1"},
                {"b", last + 1, "3"},
                {"b", 3, "1"},
                {"c", 4, "1"},
                {"d", last, "1"},
                {"e", 3, "0"}});
  deltas.FlushAnchors({{"e", 5}});
  LoseManifest();
  ASSERT_OK(RepairDB(dbname_, options_));
  std::string log;
  ASSERT_OK(ReadFileToString(env_, InfoLogFileName(dbname_), &log));
  EXPECT_NE(std::string::npos, log.find("of 3 keys in 1 tables"));
  Reopen(options_);
  EXPECT_EQ(Names(), NamesIn(dbname_));
  EXPECT_EQ(std::vector<std::string>(), Verify());
  const auto check = [&] {
    EXPECT_EQ("1,2", Get("a"));
    EXPECT_EQ("1,2,3", Get("b"));
    EXPECT_EQ("NOT_FOUND", Get("c"));
    EXPECT_EQ("old,1", Get("d"));
    EXPECT_EQ("old", Get("e"));
  };
  check();
  size_t num_anchors = 0;
  for (const DeltaFileDescription& file : Files()) {
    if (file.kind == Kind::kAnchors) {
      num_anchors += file.num_entries;
    }
  }
  EXPECT_EQ(4, num_anchors);  // of "a", "b" and "c", and the old one of "e"
  CompactRangeOptions all;
  all.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(db_->CompactRange(all, nullptr, nullptr));
    check();
    Reopen(options_);
    check();
  }
}

// The repair adds the anchors if several tables and files share some keys.
TEST_F(DBDeltaRepairTest, RepairAddsAnchorsAcrossTables) {
  Random rnd(301);
  const auto key_of = [](uint32_t i) {
    return "key" + std::to_string(1000 + i);
  };
  std::map<std::string, std::string> values;
  std::map<std::string, SequenceNumber> seqs;
  for (int i = 0; i < 6; ++i) {
    const uint32_t step = 1 + rnd.Uniform(20);
    for (uint32_t k = rnd.Uniform(100); k < 300; k += step) {
      const std::string key = key_of(k);
      values[key] = "v" + std::to_string(i);
      ASSERT_OK(Put(key, values[key]));
      seqs[key] = db_->GetLatestSequenceNumber();
    }
    ASSERT_OK(Flush());
  }
  // Each operand is part of a value or newer. A range anchor hides all operands
  // of some keys.
  const SequenceNumber last = db_->GetLatestSequenceNumber();
  const std::string begin = key_of(0);
  const std::string end = key_of(100);
  HandMadeDeltas deltas = Deltas();
  std::set<std::string> without_anchor;
  // The operands of the first two files are part of values; the others are
  // newer. Flushes have no sequence number in common.
  for (int i = 0; i < 5; ++i) {
    std::vector<Operand> operands;
    const uint32_t step = 1 + rnd.Uniform(20);
    for (uint32_t k = rnd.Uniform(100); k < 300; k += step) {
      const std::string key = key_of(k);
      const std::string operand = std::to_string(i);
      if (i < 2) {
        if (seqs.count(key) > 0 && (seqs[key] > last / 2) == (i == 1)) {
          operands.push_back({key, seqs[key], operand});
          if (key >= end) {
            without_anchor.insert(key);
          }
        }
        continue;
      }
      operands.push_back({key, last + 1 + i, operand});
      if (key >= end) {
        std::string& value = values[key];
        value += (value.empty() ? "" : ",") + operand;
      }
    }
    if (!operands.empty()) {
      deltas.Flush(operands);
    }
  }
  deltas.FlushAnchors({}, {{begin, end, last + 9}});
  LoseManifest();
  RepairAndReopen();
  size_t num_anchors = 0;
  for (const DeltaFileDescription& file : Files()) {
    if (file.kind == Kind::kAnchors) {
      num_anchors += file.num_entries;
    }
  }
  EXPECT_EQ(without_anchor.size(), num_anchors);
  EXPECT_LT(0u, num_anchors);
  CompactRangeOptions all;
  all.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  for (int round = 0; round < 3; ++round) {
    for (uint32_t k = 0; k < 300; ++k) {
      const std::string key = key_of(k);
      const auto value = values.find(key);
      EXPECT_EQ(value == values.end() ? "NOT_FOUND" : value->second, Get(key))
          << key;
    }
    ASSERT_OK(db_->CompactRange(all, nullptr, nullptr));
  }
}

// A repair applies operands once that a flush has merged into a value, as a
// fold would, although the WAL with the operands still exists because another
// column family needs it. There are delta files, but none has anything of the
// key.
TEST_F(DBDeltaRepairTest, RepairAppliesMergedOperandsOfAWalOnce) {
  CreateAndReopenWithCF({"other"}, options_);
  ASSERT_OK(Put(1, "a", "v"));
  ASSERT_OK(Flush(1));
  HandMadeDeltas deltas = Deltas();
  deltas.Flush({{"x", 1, "0"}});
  deltas.Merge(1, {{"x", 1, "0"}});
  deltas.Collect({{"x", 1, "0"}}, {{"", LastMergedEpoch()}}, std::nullopt);
  ASSERT_OK(Put(1, "b", "not flushed"));
  ASSERT_OK(Put("k", "base"));
  ASSERT_OK(Merge("k", "1"));
  ASSERT_OK(Flush());
  EXPECT_EQ("base,1", Get("k"));
  EXPECT_EQ(Values(), Deltas().Read("k"));
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  LoseManifest();
  ASSERT_OK(
      RepairDB(dbname_, options_,
               {{kDefaultColumnFamilyName, options_}, {"other", options_}}));
  ReopenWithColumnFamilies({"default", "other"}, options_);
  EXPECT_EQ(std::vector<std::string>(), Verify());
  EXPECT_EQ("v", Get(1, "a"));
  EXPECT_EQ("not flushed", Get(1, "b"));
  CompactRangeOptions all;
  all.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ("base,1", Get("k"));
    EXPECT_EQ("0", Get("x"));
    ASSERT_OK(db_->CompactRange(all, nullptr, nullptr));
  }
  ReopenWithColumnFamilies({"default", "other"}, options_);
  EXPECT_EQ("base,1", Get("k"));
}

// Entries of a table that the repair gives up hide no operands.
TEST_F(DBDeltaRepairTest, TableThatIsGivenUpHidesNothing) {
  Random rnd(301);
  // Each value fills a block.
  ASSERT_OK(Put("a", rnd.RandomString(10000)));
  ASSERT_OK(Put("b", rnd.RandomString(10000)));
  ASSERT_OK(Flush());
  Deltas().Flush({{"a", 1, "1"}});
  std::vector<LiveFileMetaData> tables;
  db_->GetLiveFilesMetaData(&tables);
  ASSERT_EQ(1u, tables.size());
  LoseManifest();
  ChangeByte(tables[0].directory + "/" + tables[0].relative_filename,
             tables[0].size * 3 / 4);
  RepairAndReopen();
  EXPECT_EQ("1", Get("a"));
  EXPECT_EQ("NOT_FOUND", Get("b"));
  for (const DeltaFileDescription& file : Files()) {
    EXPECT_EQ(Kind::kOperands, file.kind);
  }
}

// A repair keeps a family that only has delta files, and moves the files of a
// family that it is not told of to the "lost" directory.
TEST_F(DBDeltaRepairTest, RepairKeepsFamiliesThatItIsToldOf) {
  CreateAndReopenWithCF({"one", "two"}, options_);
  HandMadeDeltas(db_.get(), handles_[1]).Flush({{"a", 10, "1"}});
  HandMadeDeltas(db_.get(), handles_[2]).Flush({{"a", 20, "2"}});
  LoseManifest();
  ASSERT_OK(
      RepairDB(dbname_, options_,
               {{kDefaultColumnFamilyName, options_}, {"one", options_}}));
  EXPECT_EQ(1u, NamesIn(dbname_).size());
  EXPECT_EQ(1u, NamesIn(dbname_ + "/lost").size());
  ReopenWithColumnFamilies({"default", "one"}, options_);
  EXPECT_EQ((Values{{10, "1"}}),
            HandMadeDeltas(db_.get(), handles_[1]).Read("a"));
  EXPECT_EQ("none", Deltas().Text());
}

TEST_F(DBDeltaRepairTest, RepairRefusesADamagedFile) {
  MakeStore();
  const std::vector<DeltaFileDescription> files = Files();
  LoseManifest();
  for (const DeltaFileDescription& file : files) {
    const std::string name = DeltaFileName(dbname_, file.number);
    std::string before;
    ASSERT_OK(ReadFileToString(env_, name, &before));
    ChangeByte(name, 1);
    ExpectRefused(file);
    ASSERT_OK(WriteStringToFile(env_, before.substr(0, 100), name));
    ExpectRefused(file);
    ASSERT_OK(WriteStringToFile(env_, "", name));
    ExpectRefused(file);
    ASSERT_OK(WriteStringToFile(env_, before, name));
  }
  RepairAndReopen();
  ExpectStore();
}

// A repair fails if it cannot open a delta file again that it has read before,
// for example to find out which anchors are missing.
TEST_F(DBDeltaRepairTest, RepairRefusesAFileThatCannotBeOpenedAgain) {
  ASSERT_OK(Put("a", "0,1"));
  ASSERT_OK(Put("b", "0"));
  ASSERT_OK(Flush());
  const SequenceNumber last = db_->GetLatestSequenceNumber();
  // The operand of "a" is part of the value.
  Deltas().Flush({{"a", last - 1, "1"}, {"b", last + 1, "1"}});
  LoseManifest();
  const auto fs = std::make_shared<FailingOpenFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> env = NewCompositeEnv(fs);
  Options options = options_;
  options.env = env.get();
  do {
    fs->opened = 0;
    const Status s = RepairDB(dbname_, options);
    ASSERT_EQ(fs->opened <= fs->fails, s.ok()) << fs->fails << s.ToString();
  } while (fs->opened > fs->fails++);
  // The file is opened to read its properties, its contents, and the operands
  // that the table may hide.
  EXPECT_LT(3u, fs->fails);
  Reopen(options_);
  EXPECT_EQ("0,1", Get("a"));
  EXPECT_EQ("0,1", Get("b"));
}

// A repair does not choose between two files with the same number: one of them
// may be stale.
TEST_F(DBDeltaRepairTest, RepairRefusesAFileInTwoDirectories) {
  const std::string other = dbname_ + "_other";
  ASSERT_OK(DestroyDir(env_, other));
  options_.cf_paths = {{dbname_, 0}, {other, 0}};
  DestroyAndReopen(options_);
  MakeStore();
  const std::string name = DeltaFileName("", Files().front().number).substr(1);
  LoseManifest();
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, dbname_ + "/" + name, &contents));
  ASSERT_OK(WriteStringToFile(env_, contents, other + "/" + name));
  const Status s = RepairDB(dbname_, options_);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  for (const std::string& directory : {dbname_, other}) {
    EXPECT_NE(std::string::npos, s.ToString().find(directory)) << s.ToString();
  }
  ASSERT_OK(env_->DeleteFile(other + "/" + name));
  RepairAndReopen();
  ExpectStore();
  Destroy(options_);
  options_.cf_paths.clear();
}

// The repair refuses a store if no file describes some of the buckets.
TEST_F(DBDeltaRepairTest, RepairRefusesMissingBuckets) {
  MakeStore();
  const uint64_t floor = LastMergedEpoch();
  HandMadeDeltas deltas = Deltas();
  const DeltaFileDescription first =
      deltas.Collect({{"a", 20, "2"}}, {{"", floor}}, "k");
  const DeltaFileDescription second = deltas.Collect(
      {{"m", 21, "2"}, {"m", 11, "1"}}, {{"k", floor}}, std::nullopt);
  RenewSuperVersion();
  LoseManifest();
  const std::string name = DeltaFileName(dbname_, first.number);
  ASSERT_OK(env_->RenameFile(name, name + ".away"));
  ExpectRefused(second);
  ASSERT_OK(env_->RenameFile(name + ".away", name));
  RepairAndReopen();
  ExpectStore();
}

// A repair writes operands of a WAL to delta files, as in SST files they would
// be taken for older ones.
TEST_F(DBDeltaRepairTest, RepairWritesOperandsOfAWalToDeltaFiles) {
  // The first operand is flushed, but its WAL still exists.
  ASSERT_OK(Merge("flushed", "1"));
  const SequenceNumber flushed = db_->GetLatestSequenceNumber();
  HandMadeDeltas deltas = Deltas();
  deltas.Flush({{"flushed", flushed, "1"}, {"hidden", 1, "0"}});
  ASSERT_OK(Put("hidden", "base"));
  ASSERT_OK(Merge("hidden", "1"));
  ASSERT_OK(Merge("flushed", "2"));
  ASSERT_OK(Merge("new", "1"));
  const SequenceNumber last = db_->GetLatestSequenceNumber();
  LoseManifest();
  RepairAndReopen();
  HandMadeDeltas now = Deltas();
  EXPECT_EQ((Values{{last - 1, "2"}, {flushed, "1"}}), now.Read("flushed"));
  EXPECT_EQ((Values{{last, "1"}}), now.Read("new"));
  // The operand is part of a value, which hides older operands.
  EXPECT_EQ(Values(), now.Read("hidden"));
  EXPECT_GE(db_->GetLatestSequenceNumber(), last);
  Reopen(options_);
  EXPECT_EQ("1,2", Get("flushed"));
  EXPECT_EQ("base,1", Get("hidden"));
  EXPECT_EQ("1", Get("new"));
}

// The block cache has no room for the filter and index of the file that the
// repair writes for the WAL. (With a value in the WAL there would be an SST
// file as well; the repair would give that up, as in RocksDB.)
TEST_F(DBDeltaRepairTest, RepairOfAWalNeedsNoRoomInTheBlockCache) {
  ASSERT_OK(Merge("k", "1"));
  LoseManifest();
  Options options = options_;
  BlockBasedTableOptions table_options;
  table_options.block_cache = NewLRUCache(/*capacity=*/1, /*num_shard_bits=*/0,
                                          /*strict_capacity_limit=*/true);
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  ASSERT_OK(RepairDB(dbname_, options));
  Reopen(options_);
  EXPECT_EQ("1", Get("k"));
  EXPECT_EQ(std::vector<std::string>(), Verify());
}

// All operands of a column family have become values, so there are no delta
// files, while the WAL with the operands still exists. The repair applies them
// once.
TEST_F(DBDeltaRepairTest, RepairWithoutDeltaFilesAppliesOperandsOnce) {
  CreateAndReopenWithCF({"other"}, options_);
  ASSERT_OK(Put(1, "a", "v"));
  ASSERT_OK(Flush(1));
  ASSERT_OK(Put(1, "b", "not flushed"));
  ASSERT_OK(Put("k", "base"));
  ASSERT_OK(Merge("k", "1"));
  ASSERT_OK(Flush());
  EXPECT_EQ("none", Deltas().Text());
  LoseManifest();
  ASSERT_OK(
      RepairDB(dbname_, options_,
               {{kDefaultColumnFamilyName, options_}, {"other", options_}}));
  ReopenWithColumnFamilies({"default", "other"}, options_);
  EXPECT_EQ("not flushed", Get(1, "b"));
  CompactRangeOptions all;
  all.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ("base,1", Get("k"));
    ASSERT_OK(db_->CompactRange(all, nullptr, nullptr));
  }
}

// An operand became part of a value, whose sequence number is zeroed now, and
// its delta file is gone. Its WAL still exists because another column family
// needs it. Only the file of anchors, which is not deleted yet, tells the
// repair that the operand is known.
TEST_F(DBDeltaRepairTest, UnusedAnchorsTellWhichOperandsAreKnown) {
  options_.avoid_flush_during_shutdown = true;
  CreateAndReopenWithCF({"other"}, options_);
  ASSERT_OK(Put("k", "base"));
  ASSERT_OK(Flush());
  ASSERT_OK(Put(1, "a", "flushed"));
  ASSERT_OK(Flush(1));
  ASSERT_OK(Put(1, "b", "not flushed"));
  ASSERT_OK(Merge("k", "1"));
  ASSERT_OK(Flush());
  WriteOptions without_wal;
  without_wal.disableWAL = true;
  ASSERT_OK(db_->Put(without_wal, "k", "base,1"));
  ASSERT_OK(Flush());
  std::string anchors;
  std::string contents;
  for (const DeltaFileDescription& file : Files()) {
    if (file.kind == Kind::kAnchors) {
      anchors = DeltaFileName(dbname_, file.number);
      ASSERT_OK(ReadFileToString(env_, anchors, &contents));
    }
  }
  ASSERT_FALSE(contents.empty());
  ASSERT_OK(ForceCompaction());
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  ASSERT_EQ("none", Deltas().Text());
  ASSERT_EQ("base,1", Get("k"));
  LoseManifest();
  ASSERT_EQ(std::set<std::string>(), NamesIn(dbname_));
  ASSERT_OK(WriteStringToFile(env_, contents, anchors));
  ASSERT_OK(
      RepairDB(dbname_, options_,
               {{kDefaultColumnFamilyName, options_}, {"other", options_}}));
  ReopenWithColumnFamilies({"default", "other"}, options_);
  EXPECT_EQ("base,1", Get("k"));
  EXPECT_EQ("not flushed", Get(1, "b"));
}

// Operands became part of a value, whose sequence number is zeroed now. Another
// column family needs the WALs, which have the operands and the entry below
// them. The repair writes that entry with its old sequence number, so it must
// not hide what the operands have added.
TEST_F(DBDeltaRepairTest, RepairKeepsOperandsAboveABaseOfAWal) {
  enum class BaseKind {
    kPut,
    kTimedPut,
    kEntity,
    kDelete,
    kSingleDelete,
    kRangeDelete
  };
  for (const BaseKind base :
       {BaseKind::kPut, BaseKind::kTimedPut, BaseKind::kEntity,
        BaseKind::kDelete, BaseKind::kSingleDelete, BaseKind::kRangeDelete}) {
    // The memtable of the base and the operand is older than the operand's WAL.
    for (const bool earlier_wal : {false, true}) {
      for (const bool has_later_operand : {false, true}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(base)) +
                     (earlier_wal ? ", earlier WAL" : "") +
                     (has_later_operand ? ", later operand" : ""));
        DestroyAndReopen(options_);
        CreateAndReopenWithCF({"other", "third"}, options_);
        ASSERT_OK(Put(1, "a", "flushed"));
        ASSERT_OK(Flush(1));
        ASSERT_OK(Put("k", "base"));
        ASSERT_OK(Flush());
        ASSERT_OK(Put(1, "b", "not flushed"));
        if (base != BaseKind::kSingleDelete) {
          ASSERT_OK(Merge("k", "0"));
          ASSERT_OK(Flush());
        }
        switch (base) {
          case BaseKind::kPut:
            ASSERT_OK(Put("k", "base2"));
            break;
          case BaseKind::kTimedPut: {
            WriteBatch batch;
            ASSERT_OK(batch.TimedPut(db_->DefaultColumnFamily(), "k", "base2",
                                     /*write_unix_time=*/1));
            ASSERT_OK(db_->Write(WriteOptions(), &batch));
            break;
          }
          case BaseKind::kEntity:
            ASSERT_OK(db_->PutEntity(WriteOptions(), db_->DefaultColumnFamily(),
                                     "k", {{"", "base2"}, {"column", "c"}}));
            break;
          case BaseKind::kDelete:
            ASSERT_OK(Delete("k"));
            break;
          case BaseKind::kSingleDelete:
            ASSERT_OK(SingleDelete("k"));
            break;
          case BaseKind::kRangeDelete:
            ASSERT_OK(db_->DeleteRange(WriteOptions(), "j", "l"));
            break;
        }
        if (earlier_wal) {
          ASSERT_OK(Put(2, "c", "flushed"));
          ASSERT_OK(Flush(2));
        }
        ASSERT_OK(Merge("k", "1"));
        ASSERT_OK(Flush());
        if (has_later_operand) {
          ASSERT_OK(Merge("k", "2"));
          ASSERT_OK(Flush());
        }
        const std::string expected =
            std::string(base <= BaseKind::kEntity ? "base2,1" : "1") +
            (has_later_operand ? ",2" : "");
        ASSERT_EQ(expected, Get("k"));
        ASSERT_OK(dbfull()->TEST_CompactRange(0, nullptr, nullptr, nullptr,
                                              /*disallow_trivial_move=*/true));
        ASSERT_EQ(expected, Get("k"));
        LoseManifest();
        ASSERT_NO_FATAL_FAILURE(
            RepairAndReopenFamilies({"default", "other", "third"}));
        EXPECT_EQ(expected, Get("k"));
        EXPECT_EQ("not flushed", Get(1, "b"));
        if (!Files().empty()) {
          EXPECT_EQ(std::vector<std::string>(), Verify());
        }
        CompactRangeOptions all;
        all.bottommost_level_compaction = BottommostLevelCompaction::kForce;
        for (int round = 0; round < 2; ++round) {
          ASSERT_OK(db_->CompactRange(all, nullptr, nullptr));
          EXPECT_EQ(expected, Get("k"));
        }
        if (HasFailure()) {
          return;
        }
        Close();
        ASSERT_OK(DestroyDir(env_, dbname_ + "/lost"));
      }
    }
  }
}

// LOG names the keys whose operands a repair cannot merge, if it may have keys.
TEST_F(DBDeltaRepairTest, LogOfARepairHasKeysOnlyIfItMay) {
  for (const bool allowed : {false, true}) {
    SCOPED_TRACE(allowed);
    DestroyAndReopen(options_);
    CreateAndReopenWithCF({"other"}, options_);
    ASSERT_OK(Put("user:Joe", "base"));
    // The operand is in another WAL than the value.
    ASSERT_OK(Put(1, "a", "flushed"));
    ASSERT_OK(Flush(1));
    ASSERT_OK(Merge("user:Joe", "1"));
    LoseManifest();
    const auto logger = std::make_shared<LineLogger>();
    Options options = options_;
    options.merge_operator = std::make_shared<FailingOperator>();
    options.info_log = logger;
    options.allow_data_in_errors = allowed;
    ASSERT_OK(
        RepairDB(dbname_, options,
                 {{kDefaultColumnFamilyName, options}, {"other", options}}));
    EXPECT_EQ(logger->Has(" of key 757365723A4A6F65 cannot be merged"),
              allowed);
    EXPECT_EQ(logger->Has(" of key <redacted; see allow_data_in_errors> cannot "
                          "be merged"),
              !allowed);
    ASSERT_OK(DestroyDir(env_, dbname_ + "/lost"));
  }
}

// A table of a lower level may have the largest sequence number. A read that
// ended there would become durable when operands are folded.
TEST_F(DBDeltaRepairTest, RepairOrdersTablesByTheirEntries) {
  options_.disable_auto_compactions = true;
  for (const bool has_range_deletion : {false, true}) {
    SCOPED_TRACE(has_range_deletion);
    DestroyAndReopen(options_);
    // Sequence numbers are not set to zero.
    const Snapshot* const snapshot = db_->GetSnapshot();
    ASSERT_OK(Put("b", "old"));
    if (has_range_deletion) {
      ASSERT_OK(db_->DeleteRange(WriteOptions(), "a", "c"));
    }
    ASSERT_OK(Put("c", "value"));
    ASSERT_OK(Flush());
    MoveFilesToLevel(2);
    ASSERT_OK(Put("b", "new"));
    ASSERT_OK(Flush());
    MoveFilesToLevel(1);
    ASSERT_OK(Put("c", "value2"));
    ASSERT_OK(Flush());
    std::vector<LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    std::vector<std::string> inputs;
    for (const LiveFileMetaData& file : files) {
      if (file.level != 1) {
        inputs.push_back(file.relative_filename);
      }
    }
    ASSERT_EQ(2u, inputs.size());
    ASSERT_OK(db_->CompactFiles(CompactionOptions(), inputs, 2));
    ASSERT_EQ("0,1,1", FilesPerLevel());
    db_->ReleaseSnapshot(snapshot);
    ASSERT_EQ("new", Get("b"));
    LoseManifest();
    RepairAndReopen();
    ASSERT_EQ("2", FilesPerLevel());
    EXPECT_EQ("new", Get("b"));
    EXPECT_EQ("value2", Get("c"));
    ASSERT_OK(Merge("b", "1"));
    ASSERT_OK(Flush());
    EXPECT_EQ("new,1", Get("b"));
    Reopen(options_);
    EXPECT_EQ("new,1", Get("b"));
    ASSERT_OK(ForceCompaction());
    EXPECT_EQ("new,1", Get("b"));
  }
}

// Whatever WALs, SST files and delta files have of a key, a repair that finds
// all of them changes no answer.
TEST_F(DBDeltaRepairTest, RepairKeepsRandomHistories) {
  Random rnd(static_cast<uint32_t>(test::RandomSeed()));
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::string history;
    DestroyAndReopen(options_);
    CreateAndReopenWithCF({"other", "third"}, options_);
    ASSERT_OK(Put(1, "a", "flushed"));
    ASSERT_OK(Flush(1));
    ASSERT_OK(Put(1, "b", "not flushed"));  // keeps all WALs from here on
    const int num_steps = 5 + static_cast<int>(rnd.Uniform(30));
    for (int i = 0; i < num_steps; ++i) {
      const std::string key(1, static_cast<char>('a' + rnd.Uniform(3)));
      const std::string value = std::to_string(i);
      const uint32_t step = rnd.Uniform(14);
      history += " " + std::to_string(step) + key;
      if (step < 2) {
        ASSERT_OK(Put(key, value));
      } else if (step < 6) {
        ASSERT_OK(Merge(key, value));
      } else if (step == 6) {
        ASSERT_OK(Delete(key));
      } else if (step == 7) {
        ASSERT_OK(
            db_->DeleteRange(WriteOptions(), key, rnd.OneIn(2) ? "c" : "d"));
      } else if (step < 11) {
        ASSERT_OK(Flush());
      } else if (step == 11) {
        ASSERT_OK(Put(2, "c", value));
        ASSERT_OK(Flush(2));  // begins a WAL
      } else if (step == 12) {
        ASSERT_OK(dbfull()->TEST_CompactRange(0, nullptr, nullptr, nullptr,
                                              /*disallow_trivial_move=*/true));
      } else {
        ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
      }
    }
    SCOPED_TRACE(history);
    std::vector<std::string> expected;
    for (const char* key : {"a", "b", "c"}) {
      expected.push_back(Get(key));
    }
    LoseManifest();
    ASSERT_NO_FATAL_FAILURE(
        RepairAndReopenFamilies({"default", "other", "third"}));
    for (const bool compacted : {false, true}) {
      SCOPED_TRACE(compacted ? "compacted" : "repaired");
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(expected[i], Get(std::string(1, static_cast<char>('a' + i))));
      }
      ASSERT_OK(ForceCompaction());
    }
    if (HasFailure()) {
      return;
    }
    Close();
    ASSERT_OK(DestroyDir(env_, dbname_ + "/lost"));
  }
}

// A WAL that cannot be flushed now may be flushed by the next repair.
TEST_F(DBDeltaRepairTest, RepairFailsIfAWalCannotBeFlushed) {
  CreateAndReopenWithCF({"other"}, options_);
  ASSERT_OK(Put("k", "base"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("k", "1"));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("n", "v"));
  ASSERT_OK(Merge("k", "2"));
  LoseManifest();
  const std::vector<ColumnFamilyDescriptor> families = {
      {kDefaultColumnFamilyName, options_}, {"other", options_}};
  EnableCallBackOnce("DeltaFlush::Publish:BeforeFiles", [](void* arg) {
    *static_cast<Status*>(arg) = Status::IOError("injected");
  });
  const Status s = RepairDB(dbname_, options_, families);
  DisableCallBacks();
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(std::string::npos, s.ToString().find("default: a WAL cannot be"))
      << s.ToString();
  ASSERT_OK(RepairDB(dbname_, options_, families));
  ReopenWithColumnFamilies({"default", "other"}, options_);
  EXPECT_EQ("base,1,2", Get("k"));
  EXPECT_EQ("v", Get("n"));
}

// A family without delta files does not know which operands of a kept WAL an
// earlier repair has written to its tables.
TEST_F(DBDeltaRepairTest, RepairCountsOperandsOfAnotherFamilyOnce) {
  WritePlainAndSeparated();
  EnableCallBackOnce("DeltaFlush::Publish:BeforeFiles", [](void* arg) {
    *static_cast<Status*>(arg) = Status::IOError("injected");
  });
  const Status s = RepairDB(dbname_, options_, PlainAndSeparated());
  DisableCallBacks();
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  ASSERT_OK(RepairDB(dbname_, options_, PlainAndSeparated()));
  ReopenPlainAndSeparated();
  EXPECT_EQ("1", Get(0, "k"));
  EXPECT_EQ("2", Get(1, "k"));
}

// As in RocksDB, a family without delta files loses what cannot be written. The
// other one does not.
TEST_F(DBDeltaRepairTest, ErrorOfAnotherFamilyLosesNoOperands) {
  WritePlainAndSeparated();
  const auto fs = std::make_shared<RepairFaultFS>(env_->GetFileSystem());
  fs->FailTablesIn(PlainDirectory());
  ASSERT_OK(RepairOn(fs));
  EXPECT_GT(fs->num_failed(), 0);
  ReopenPlainAndSeparated();
  EXPECT_EQ("NOT_FOUND", Get(0, "k"));
  EXPECT_EQ("2", Get(1, "k"));
}

TEST_F(DBDeltaRepairTest, RepairFailsIfAWalCannotBeOpened) {
  WritePlainAndSeparated();
  const auto fs = std::make_shared<RepairFaultFS>(env_->GetFileSystem());
  fs->FailWals();
  const Status s = RepairOn(fs);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_GT(fs->num_failed(), 0);
  ASSERT_OK(RepairDB(dbname_, options_, PlainAndSeparated()));
  ReopenPlainAndSeparated();
  EXPECT_EQ("1", Get(0, "k"));
  EXPECT_EQ("2", Get(1, "k"));
}

// A flush wrote its files, but not the MANIFEST, and was repeated. The files of
// both are there when the MANIFEST is lost.
TEST_F(DBDeltaRepairTest, RepairCountsOperandsOfARepeatedFlushOnce) {
  // The entries that come before the flush is repeated.
  enum class Later { kNothing, kOperands, kValue };
  for (const Later later : {Later::kNothing, Later::kOperands, Later::kValue}) {
    SCOPED_TRACE(static_cast<int>(later));
    DestroyAndReopen(options_);
    ASSERT_OK(Merge("a", "1"));
    ASSERT_OK(Merge("k", "2"));
    ASSERT_OK(Merge("k", "3"));
    // The copy has the WAL. Its flush writes the file of the first attempt.
    const std::string copy = CopyName();
    CopyTo(copy);
    {
      std::unique_ptr<DB> db;
      ASSERT_OK(DB::Open(options_, copy, &db));
    }
    const std::vector<std::string> names = FilesIn(copy, kDeltaFile);
    ASSERT_EQ(1u, names.size());
    std::string contents;
    ASSERT_OK(ReadFileToString(env_, copy + "/" + names[0], &contents));
    for (int i = 0; i < 50; ++i) {
      Deltas().NewNumber();  // the repetition has larger numbers
    }
    std::string expected = "2,3";
    if (later == Later::kOperands) {
      ASSERT_OK(Merge("a", "4"));
      ASSERT_OK(Merge("k", "5"));
      expected = "2,3,5";
    } else if (later == Later::kValue) {
      ASSERT_OK(Put("k", "v"));
      expected = "v";
    }
    const std::string expected_a = later == Later::kOperands ? "1,4" : "1";
    ASSERT_OK(Flush());
    ASSERT_EQ(expected, Get("k"));
    LoseManifest();
    ASSERT_EQ(1u, NamesIn(dbname_).size());
    ASSERT_TRUE(env_->FileExists(dbname_ + "/" + names[0]).IsNotFound());
    ASSERT_LT(names[0], *NamesIn(dbname_).begin());
    ASSERT_OK(WriteStringToFile(env_, contents, dbname_ + "/" + names[0]));
    RepairAndReopen();
    EXPECT_EQ(1u, NamesIn(dbname_ + "/lost").count(names[0]));
    ASSERT_OK(env_->DeleteFile(dbname_ + "/lost/" + names[0]));
    for (const bool merged : {false, true}) {
      if (merged) {
        ASSERT_OK(ForceCompaction());
      }
      EXPECT_EQ(expected, Get("k"));
      EXPECT_EQ(expected_a, Get("a"));
      const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
      iter->Seek("k");
      ASSERT_TRUE(iter->Valid());
      EXPECT_EQ(expected, iter->value().ToString());
      iter->SeekToFirst();
      ASSERT_TRUE(iter->Valid());
      EXPECT_EQ(expected_a, iter->value().ToString());
    }
    ASSERT_OK(DestroyDir(env_, copy));
  }
}

// The anchors of DeleteFilesInRanges() are there before the MANIFEST says that
// the values are deleted. A repair cannot tell, and does not take them.
TEST_F(DBDeltaRepairTest, RepairRefusesAnchorsOfADeletionOfFiles) {
  ASSERT_OK(Put("k", "base"));
  ASSERT_OK(Flush());
  MoveFilesToLevel(3);
  ASSERT_OK(Merge("k", "1"));
  ASSERT_OK(Merge("k", "2"));
  ASSERT_OK(Flush());
  const std::string copy = CopyName();
  EnableCallBack("DeltaFileDeletion::Publish:Synced",
                 [&](void*) { CopyTo(copy); });
  RangeOpt all;
  ASSERT_OK(
      DeleteFilesInRanges(db_.get(), db_->DefaultColumnFamily(), &all, 1));
  DisableCallBacks();
  EXPECT_EQ("NOT_FOUND", Get("k"));
  DeltaFileDescription anchors;
  for (const DeltaFileDescription& file : Files()) {
    if (file.kind == Kind::kAnchors) {
      anchors = file;
    }
  }
  ASSERT_NE(0u, anchors.number);
  LoseManifest();
  ExpectRefused(anchors);

  // In the copy the deletion has not happened.
  delta_test::DeleteManifests(env_, copy);
  const Status s = RepairDB(copy, options_);
  const std::string name = DeltaFileName(copy, anchors.number);
  EXPECT_NE(std::string::npos, s.ToString().find(name)) << s.ToString();
  ASSERT_OK(env_->DeleteFile(name));
  ASSERT_OK(RepairDB(copy, options_));
  {
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options_, copy, &db));
    std::string value;
    ASSERT_OK(db->Get(ReadOptions(), "k", &value));
    EXPECT_EQ("base,1,2", value);
  }
  ASSERT_OK(DestroyDir(env_, copy));
}

TEST_F(DBDeltaRepairTest, RepairWorksWithoutDeltaFiles) {
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Merge("m", "1"));
  LoseManifest();
  RepairAndReopen();
  EXPECT_EQ("v", Get("k"));
  EXPECT_EQ("1", Get("m"));
  EXPECT_EQ((Values{{2, "1"}}), Deltas().Read("m"));

  options_.enable_delta_separation = false;
  DestroyAndReopen(options_);
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Merge("m", "1"));
  LoseManifest();
  RepairAndReopen();
  EXPECT_EQ("none", Deltas().Text());
  EXPECT_EQ("v", Get("k"));
  EXPECT_EQ("1", Get("m"));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  RegisterCustomObjects(argc, argv);
  return RUN_ALL_TESTS();
}
