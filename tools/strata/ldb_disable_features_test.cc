//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_disable_features.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/blob/blob_log_format.h"
#include "db/path_layout/missing_file.h"
#include "db/path_layout/path_copy_test_util.h"
#include "db/path_layout/path_move_mark.h"
#include "db/strata/manifest_features.h"
#include "db/strata/wal_records.h"
#include "env/fs_readonly.h"
#include "file/filename.h"
#include "options/strata/options_file_copy.h"
#include "options/strata_config/options_config.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "rocksdb/ldb_tool.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/utilities/ldb_cmd.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/strata/ldb_call_test_util.h"
#include "test_util/sync_point.h"
#include "utilities/merge_operators.h"
#include "utilities/ttl/db_ttl_impl.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// An operator of an application, which ldb cannot create. It can be told to
// fail for the operand "bad".
class OwnOperator : public AssociativeMergeOperator {
 public:
  explicit OwnOperator(bool fails = false) : fails_(fails) {}
  const char* Name() const override { return "application.Own"; }
  bool Merge(const Slice& /*key*/, const Slice* existing, const Slice& value,
             std::string* result, Logger* /*logger*/) const override {
    *result = (existing == nullptr ? "" : existing->ToString() + "+") +
              value.ToString();
    return !fails_ || value != "bad";
  }

 private:
  const bool fails_;
};

// A comparator of an application.
class OwnComparator : public Comparator {
 public:
  const char* Name() const override { return "application.Comparator"; }
  int Compare(const Slice& a, const Slice& b) const override {
    return b.compare(a);
  }
  void FindShortestSeparator(std::string* /*start*/,
                             const Slice& /*limit*/) const override {}
  void FindShortSuccessor(std::string* /*key*/) const override {}
  bool CanKeysWithDifferentByteContentsBeEqual() const override {
    return false;
  }
};

// An object of an application, which ldb cannot create.
class OwnPrefix : public SliceTransform {
 public:
  static constexpr const char* kName = "application.Prefix";
  const char* Name() const override { return kName; }
  Slice Transform(const Slice& key) const override {
    return Slice(key.data(), 1);
  }
  bool InDomain(const Slice& key) const override { return !key.empty(); }
};

// A device that is almost full.
class FullFS : public FileSystemWrapper {
 public:
  explicit FullFS(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "FullFS"; }
  IOStatus GetFreeSpace(const std::string& /*path*/,
                        const IOOptions& /*options*/, uint64_t* free,
                        IODebugContext* /*dbg*/) override {
    *free = 10;
    return IOStatus::OK();
  }
};

// Makes STRATA_CONFIG name a file while the object lives.
class ConfigVariable {
 public:
  explicit ConfigVariable(const std::string& file) {
    EXPECT_EQ(0, setenv(OptionsConfig::kVariable, file.c_str(), 1));
  }
  ~ConfigVariable() { EXPECT_EQ(0, unsetenv(OptionsConfig::kVariable)); }
};

}  // namespace

class LdbDisableFeaturesTest : public PathCopyTestBase {
 public:
  LdbDisableFeaturesTest() : PathCopyTestBase("ldb_disable_features_test") {
    ldb_options_.env = device_env_.get();
  }

  // Returns the exit code, and stores what the command prints in output_.
  int RunOn(const std::string& dbname, const std::vector<std::string>& args) {
    std::vector<std::string> all = {"--db=" + dbname, "disable_features"};
    all.insert(all.end(), args.begin(), args.end());
    return RunLdb(all, ldb_options_, &output_);
  }
  int Run(const std::vector<std::string>& args = {}) {
    return RunOn(dbname_, args);
  }

  bool Printed(const std::string& text) {
    return output_.find(text) != std::string::npos;
  }

  // Returns options of three families that use all features which leave
  // something on disk and do not need a mapped file.
  std::vector<Options> AllFeatures() {
    std::vector<Options> options = {
        FeatureOptions(kMapAndDeltas, "a", 2, {0, 1}, {1}),
        FeatureOptions(kBlobs, "b", 2, {0, 1}, {1}), PlainOptions()};
    options[0].delta_sorted_path_id = 1;
    options[0].path_prices = {2, 1};
    options[0].blob_hot_bytes = 1 << 20;
    options[0].enable_merged_value_cache = true;
    options[0].max_write_groups_per_leader = 8;
    return options;
  }

  static std::vector<Options> Off(std::vector<Options> options) {
    for (Options& one : options) {
      FeatureSet::All().ResetOptions(
          static_cast<StrataColumnFamilyOptions*>(&one));
      FeatureSet::All().ResetOptions(static_cast<StrataDBOptions*>(&one));
    }
    return options;
  }

  // Makes a database, with entries in the WAL, and closes it.
  void Make(const std::vector<Options>& options) {
    DestroyAll();
    options_ = options;
    OpenNew(options_);
    Fill(/*wal=*/true);
    Close();
  }

  // Returns the newest OPTIONS file, with directory, and its text.
  std::pair<std::string, std::string> OptionsFile() {
    std::string name;
    std::string text;
    EXPECT_OK(GetLatestOptionsFileName(dbname_, env_, &name));
    EXPECT_OK(ReadFileToString(env_, dbname_ + "/" + name, &text));
    return {dbname_ + "/" + name, text};
  }

  static std::string WithoutOwnOptions(const std::string& text) {
    return OptionsFileCopy::WithoutOwnOptions(
        text, [](const std::string&) { return true; });
  }

  // Makes the callback run the first time that the command is at this point.
  static void AtFirst(const char* point,
                      const std::function<void()>& callback) {
    SyncPoint::GetInstance()->SetCallBack(
        point, [callback, done = false](void*) mutable {
          if (!done) {
            done = true;
            callback();
          }
        });
    SyncPoint::GetInstance()->EnableProcessing();
  }
  static void ClearSyncPoints() {
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
  }

  // Replaces the first text in the newest OPTIONS file by the second one.
  void EditOptionsFile(const std::string& from, const std::string& to) {
    auto [name, text] = OptionsFile();
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    ASSERT_OK(WriteStringToFile(env_, text.replace(at, from.size(), to), name));
  }

  // Returns the names and contents of all files but LOG.
  std::map<std::string, std::string> Snapshot(
      const std::vector<Options>& options) {
    std::map<std::string, std::string> files;
    for (const std::string& directory : DirectoriesOf(options)) {
      for (const std::string& name : Names(directory)) {
        bool is_directory = false;
        if (name.rfind("LOG", 0) != 0 &&
            env_->IsDirectory(directory + "/" + name, &is_directory).ok() &&
            !is_directory) {
          std::string& contents = files[directory + "/" + name];
          EXPECT_OK(ReadFileToString(env_, directory + "/" + name, &contents));
        }
      }
    }
    return files;
  }

  std::set<std::string> DirectoriesOf(const std::vector<Options>& options) {
    std::set<std::string> directories = {dbname_};
    for (const Options& one : options) {
      for (const DbPath& path : one.cf_paths) {
        directories.insert(path.path);
      }
    }
    return directories;
  }

  // Returns what the MANIFEST has of the default column family.
  ManifestFeatures::Family DefaultFamily() {
    ManifestFeatures manifest;
    EXPECT_OK(manifest.ReadRecords(fs_.get(), dbname_));
    EXPECT_OK(manifest.ReadFamilies(
        fs_.get(), [](const std::string&) { return BytewiseComparator(); }));
    return manifest.families().empty() ? ManifestFeatures::Family()
                                       : manifest.families()[0];
  }

  // Checks that no file is one that RocksDB does not know or cannot read.
  void CheckFiles() {
    ManifestFeatures manifest;
    ASSERT_OK(manifest.ReadRecords(fs_.get(), dbname_));
    EXPECT_EQ(manifest.records().ToString(), "");
    const std::string options_text = OptionsFile().second;
    EXPECT_EQ(options_text.find("# strata:"), std::string::npos)
        << options_text;
    for (const std::string& directory : DirectoriesOf(options_)) {
      for (const std::string& name : Names(directory)) {
        uint64_t number = 0;
        FileType type = kInfoLogFile;
        if (!ParseFileName(name, &number, &type)) {
          continue;
        }
        EXPECT_NE(type, kDeltaFile) << name;
        EXPECT_NE(type, kTempFile) << name;
        EXPECT_NE(type, kWalBufferFile) << name;
        if (type == kBlobFile) {
          std::string contents;
          ASSERT_OK(ReadFileToString(env_, directory + "/" + name, &contents));
          BlobLogHeader header;
          EXPECT_OK(header.DecodeFrom(
              Slice(contents.data(),
                    std::min(contents.size(), BlobLogHeader::kSize))));
        }
      }
    }
  }

  // Checks that the database has its contents, and nothing of Strata's, and
  // that it can be written to.
  void CheckConverted() {
    CheckFiles();
    const std::vector<Options> off = Off(options_);
    ASSERT_OK(Open(off, /*create_families=*/false));
    ASSERT_OK(VerifyData());
    ASSERT_OK(db_->VerifyChecksum());
    for (size_t i = 0; i < off.size(); ++i) {
      const int family = static_cast<int>(i);
      if (!off[i].cf_paths.empty()) {
        const std::set<uint32_t> ids = BlobPathIds(family, off[i]);
        EXPECT_TRUE(ids.empty() || ids == std::set<uint32_t>{0}) << i;
      }
      PutRange(family, 0, 5, /*version=*/7);
      ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
      ASSERT_OK(db_->CompactRange(CompactRangeOptions(), Handle(family),
                                  nullptr, nullptr));
    }
    ASSERT_OK(VerifyData());
    Close();
  }

  // Opens the database by its OPTIONS file.
  Status OpenStored() {
    Close();
    DBOptions db_options;
    std::vector<ColumnFamilyDescriptor> families;
    ConfigOptions config;
    config.env = device_env_.get();
    const Status s = LoadLatestOptions(config, dbname_, &db_options, &families);
    if (!s.ok()) {
      return s;
    }
    db_options.env = device_env_.get();
    return DB::Open(db_options, dbname_, families, &handles_, &db_);
  }

  std::vector<Options> options_;
  Options ldb_options_;
  std::string output_;
};

TEST_F(LdbDisableFeaturesTest, AllFeaturesGo) {
  Make(AllFeatures());
  const auto before = Snapshot(options_);
  ASSERT_EQ(0, Run({"--dry_run"})) << output_;
  for (const char* const text :
       {"[default] map: ", " with names of values, ", " of format version 2",
        "[default] deltas: ", "[cf1] layouts: ",
        "[default] map: option enable_blob_address_map=true",
        "[default] merged_values: option enable_merged_value_cache=true",
        "write_groups: option max_write_groups_per_leader=8",
        "The MANIFEST has records that RocksDB refuses, of map, deltas, "
        "layouts",
        "[default] to do: all SST files are rewritten",
        "[cf1] to do: files are moved", "[default] needs up to ",
        "Dry run: nothing was changed"}) {
    EXPECT_TRUE(Printed(text)) << text << "\n" << output_;
  }
  EXPECT_FALSE(Printed("[cf2]")) << output_;
  EXPECT_EQ(Snapshot(options_), before);

  ASSERT_EQ(0, Run({"--threads=2"})) << output_;
  for (const char* const text :
       {"[default] done", "[cf1] done", " bytes written, of about ",
        "Checked: the MANIFEST", "OK: RocksDB 11.8.1 opens the database",
        "[default] The OPTIONS file does not keep the paths",
        "[default] enable_blob_garbage_collection is off"}) {
    EXPECT_TRUE(Printed(text)) << text << "\n" << output_;
  }
  EXPECT_TRUE(Printed("cf_paths=" + PathOf("b", 0) + ":")) << output_;
  EXPECT_FALSE(Printed("remains")) << output_;
  CheckFiles();

  // There is nothing to do for a second run.
  const auto after = Snapshot(options_);
  ASSERT_EQ(0, Run()) << output_;
  EXPECT_TRUE(Printed("Nothing to do")) << output_;
  EXPECT_TRUE(Printed("OK: RocksDB 11.8.1 opens the database")) << output_;
  EXPECT_EQ(Snapshot(options_), after);
  CheckConverted();
}

// Each feature alone, in two families.
TEST_F(LdbDisableFeaturesTest, EachFeatureGoes) {
  const std::vector<std::pair<Options, std::string>> cases = {
      {FeatureOptions(kMap, "a", 0, {}, {}), "map"},
      {FeatureOptions(kMap, "a", 2, {0}, {0}), "map"},
      {FeatureOptions(kDeltas, "a", 0, {}, {}), "deltas"},
      {FeatureOptions(kMapAndDeltas, "a", 0, {}, {}), "deltas"},
      {FeatureOptions(kBlobs, "a", 2, {1, 0}, {1, 0}), "layouts"},
      {FeatureOptions(kBlobs, "a", 2, {}, {1}), "layouts"},
      {FeatureOptions(kDeltas, "a", 2, {1}, {}), "deltas"}};
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    Make({cases[i].first, cases[i].first});
    ASSERT_EQ(0, Run()) << output_;
    for (const char* const family : {"[default] ", "[cf1] "}) {
      EXPECT_TRUE(Printed(family + cases[i].second + ": ")) << output_;
      EXPECT_TRUE(Printed(std::string(family) + "done")) << output_;
    }
    EXPECT_TRUE(Printed("OK: RocksDB 11.8.1 opens the database")) << output_;
    CheckConverted();
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_F(LdbDisableFeaturesTest, UniversalCompaction) {
  for (const int num_levels : {1, 4}) {
    SCOPED_TRACE(num_levels);
    std::vector<Options> options = {
        FeatureOptions(kMapAndDeltas, "a", 0, {}, {}),
        FeatureOptions(kMap, "a", 0, {}, {})};
    for (Options& one : options) {
      one.compaction_style = kCompactionStyleUniversal;
      one.num_levels = num_levels;
    }
    Make(options);
    ASSERT_EQ(0, Run()) << output_;
    CheckConverted();
  }
}

// Features without data: the database is not even opened.
TEST_F(LdbDisableFeaturesTest, OptionsGoAlone) {
  std::vector<Options> options = {PlainOptions(), PlainOptions()};
  options[0].max_write_groups_per_leader = 8;
  options[1].enable_merged_value_cache = true;
  options[1].merged_value_cache_size = 1 << 20;
  Make(options);
  const auto [file, text] = OptionsFile();
  const std::string manifest = CurrentManifest();
  ASSERT_EQ(0, Run({"--dry_run"})) << output_;
  EXPECT_TRUE(
      Printed("To do: take the options of merged_values, write_groups "
              "out of the OPTIONS file"))
      << output_;
  EXPECT_FALSE(Printed("open and close")) << output_;
  ASSERT_EQ(0, Run()) << output_;
  EXPECT_EQ(CurrentManifest(), manifest);
  EXPECT_EQ(OptionsFile().first, file);
  const std::string after = OptionsFile().second;
  EXPECT_NE(text.find("# strata: merged_value_cache_size"), std::string::npos);
  EXPECT_EQ(after.find("# strata:"), std::string::npos) << after;
  EXPECT_NE(after.find("create_if_missing=true"), std::string::npos) << after;
  CheckConverted();
}

TEST_F(LdbDisableFeaturesTest, ADatabaseOfRocksDBIsLeftAlone) {
  Make({PlainOptions(), PlainOptions()});
  const auto before = Snapshot(options_);
  ASSERT_EQ(0, Run()) << output_;
  EXPECT_TRUE(Printed("Nothing to do")) << output_;
  EXPECT_EQ(Snapshot(options_), before);
  CheckConverted();
}

// Options of RocksDB's are as they were, also those that ldb sets for itself.
TEST_F(LdbDisableFeaturesTest, OtherOptionsStay) {
  std::vector<Options> options = {FeatureOptions(kMap, "a", 0, {}, {}),
                                  FeatureOptions(kMap, "a", 0, {}, {})};
  options[0].reuse_manifest_on_open = true;
  options[0].max_background_jobs = 1;
  options[0].enable_blob_garbage_collection = false;
  options[1].blob_compression_type = kNoCompression;
  Make(options);
  const std::string own = "\n  # strata: enable_blob_address_map=true";
  std::string expected = OptionsFile().second;
  size_t num_lines = 0;
  for (size_t at = expected.find(own); at != std::string::npos;
       at = expected.find(own)) {
    expected.erase(at, own.size());
    ++num_lines;
  }
  ASSERT_EQ(num_lines, 2u);
  ASSERT_EQ(0, Run({"--threads=3"})) << output_;
  EXPECT_EQ(OptionsFile().second, expected);
  options_[0].reuse_manifest_on_open = false;
  CheckConverted();
}

// TransactionDB::Open() changes options of column families.
TEST_F(LdbDisableFeaturesTest, TransactionDatabase) {
  for (const char* const policy : {"0", "1", "2"}) {
    SCOPED_TRACE(policy);
    Options map = FeatureOptions(kMap, "a", 0, {}, {});
    map.disable_auto_compactions = false;
    map.prefix_extractor = std::make_shared<OwnPrefix>();
    // Other policies do not work with it.
    map.enable_lsm_bypass = policy == std::string("0");
    Make({map, PlainOptions()});
    const std::string text = WithoutOwnOptions(OptionsFile().second);
    for (const char* const part :
         {OwnPrefix::kName, "disable_auto_compactions=false",
          "disable_auto_compactions=true",
          "max_write_buffer_size_to_maintain=0", "allow_2pc=false"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
    ASSERT_EQ(0,
              Run({"--use_txn", std::string("--txn_write_policy=") + policy}))
        << output_;
    EXPECT_EQ(OptionsFile().second, text);
    CheckConverted();
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_F(LdbDisableFeaturesTest, SomeFeaturesStay) {
  Make(AllFeatures());
  ASSERT_EQ(0, Run({"--features=deltas,write_groups"})) << output_;
  EXPECT_TRUE(Printed("it is to stay")) << output_;
  EXPECT_TRUE(
      Printed("OK: nothing is left of deltas, write_groups. The "
              "database still has map, layouts, merged_values"))
      << output_;
  std::string text = OptionsFile().second;
  EXPECT_EQ(text.find("# strata: delta_"), std::string::npos) << text;
  EXPECT_EQ(text.find("enable_delta_separation"), std::string::npos) << text;
  EXPECT_NE(text.find("enable_blob_address_map=true"), std::string::npos);
  EXPECT_NE(text.find("# strata: cf_paths="), std::string::npos);
  for (Options& one : options_) {
    one.enable_delta_separation = false;
    one.delta_sorted_path_id = -1;
    one.max_write_groups_per_leader = 1;
  }
  ASSERT_OK(Open(options_, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  Close();

  ASSERT_EQ(0, Run({"--features=layouts"})) << output_;
  EXPECT_TRUE(
      Printed("OK: nothing is left of layouts. The database still has "
              "map, merged_values"))
      << output_;
  text = OptionsFile().second;
  EXPECT_EQ(text.find("path_ids"), std::string::npos) << text;
  EXPECT_EQ(text.find("# strata: cf_paths"), std::string::npos) << text;
  for (Options& one : options_) {
    FeatureSet(FeatureSet::kLayouts)
        .ResetOptions(static_cast<StrataColumnFamilyOptions*>(&one));
  }
  ASSERT_OK(Open(options_, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  EXPECT_EQ(BlobPathIds(0, options_[0]), std::set<uint32_t>{0});
}

TEST_F(LdbDisableFeaturesTest, PathsThatTheOptionsFileDoesNotHave) {
  std::vector<Options> options = {FeatureOptions(kMap, "a", 2, {1}, {0}),
                                  FeatureOptions(kMap, "a", 2, {1}, {0})};
  Make(options);
  ASSERT_EQ(0, Run({"--features=layouts"})) << output_;
  // The files are not found.
  EXPECT_NE(0, Run({"--features=map"})) << output_;
  ASSERT_EQ(0, Run({"--features=map",
                    "--cf_paths=" + PathOf("a", 0) + "," + PathOf("a", 1)}))
      << output_;
  CheckConverted();
}

// With best_efforts_recovery an open drops what it does not find.
TEST_F(LdbDisableFeaturesTest, FilesThatAreNotFound) {
  Make({FeatureOptions(kMap, "a", 1, {}, {}), PlainOptions()});
  EditOptionsFile("best_efforts_recovery=false", "best_efforts_recovery=true");
  const auto before = Snapshot(options_);
  for (const char* const flag : {"--dry_run=false", "--dry_run"}) {
    ASSERT_EQ(1, Run({flag})) << output_;
    EXPECT_TRUE(Printed("is a file of column family \"default\"")) << output_;
    EXPECT_TRUE(Printed("NotFound: " + dbname_ + "/")) << output_;
    EXPECT_TRUE(Printed("pass them as --cf_paths")) << output_;
  }
  EXPECT_EQ(Snapshot(options_), before);
  ASSERT_EQ(0, Run({"--cf_paths=" + PathOf("a", 0)})) << output_;
  EXPECT_NE(OptionsFile().second.find("best_efforts_recovery=true"),
            std::string::npos);
  CheckConverted();
}

// With best_efforts_recovery no open replays WALs. The command must not bring
// back what the program has not seen any more.
TEST_F(LdbDisableFeaturesTest, WalsOfBestEffortsRecovery) {
  Make({FeatureOptions(kMap, "a", 0, {}, {}), PlainOptions()});
  for (Options& one : options_) {
    one.best_efforts_recovery = true;
    one.avoid_flush_during_shutdown = true;
  }
  std::string value;
  ASSERT_OK(Open(options_, /*create_families=*/false));
  WriteOptions synced;
  synced.sync = true;
  ASSERT_OK(db_->Put(synced, Handle(0), "x", "v"));
  ASSERT_OK(Open(options_, /*create_families=*/false));
  EXPECT_TRUE(db_->Get(ReadOptions(), Handle(0), "x", &value).IsNotFound());
  Close();
  const auto before = Snapshot(options_);
  for (const char* const flag : {"--dry_run=false", "--dry_run"}) {
    ASSERT_EQ(1, Run({flag})) << output_;
    EXPECT_TRUE(Printed("has best_efforts_recovery")) << output_;
    EXPECT_TRUE(Printed("Put or delete a key with the program")) << output_;
  }
  EXPECT_EQ(Snapshot(options_), before);
  // As the message says. The old WAL may stay.
  ASSERT_OK(Open(options_, /*create_families=*/false));
  ASSERT_OK(db_->Delete(synced, Handle(1), "none"));
  for (ColumnFamilyHandle* handle : handles_) {
    ASSERT_OK(db_->Flush(FlushOptions(), handle));
  }
  Close();
  ASSERT_EQ(0, Run()) << output_;
  EXPECT_NE(OptionsFile().second.find("best_efforts_recovery=true"),
            std::string::npos);
  for (Options& one : options_) {
    one.best_efforts_recovery = false;
  }
  ASSERT_OK(Open(Off(options_), /*create_families=*/false));
  EXPECT_TRUE(db_->Get(ReadOptions(), Handle(0), "x", &value).IsNotFound());
  Close();
  CheckConverted();
}

// --cf_paths are those of one family alone. The OPTIONS file does not tell.
TEST_F(LdbDisableFeaturesTest, PathsOfOneFamily) {
  Make({FeatureOptions(kMap, "a", 2, {1}, {0}),
        FeatureOptions(kMap, "plain", 0, {}, {})});
  ASSERT_EQ(0, Run({"--features=layouts"})) << output_;
  ASSERT_EQ(0, Run({"--features=map",
                    "--cf_paths=" + PathOf("a", 0) + "," + PathOf("a", 1)}))
      << output_;
  EXPECT_TRUE(Printed("[cf1] The column family is not on the paths"))
      << output_;
  EXPECT_FALSE(Printed("[default] The column family is not on the paths"))
      << output_;
  CheckConverted();
}

// Nothing tells whether --cf_paths are those of a family without files.
TEST_F(LdbDisableFeaturesTest, PathsOfAFamilyWithoutFiles) {
  options_ = {FeatureOptions(kMap, "a", 1, {}, {}), PlainOptions(),
              PlainOptions()};
  options_[0].avoid_flush_during_shutdown = true;
  OpenNew(options_);
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  PutRange(1, 0, 5, 0, /*wal=*/true);
  Close();
  const auto before = Snapshot(options_);
  const std::string flag = "--cf_paths=" + PathOf("a", 0);
  for (const char* const dry_run : {"--dry_run=false", "--dry_run"}) {
    ASSERT_EQ(1, Run({flag, dry_run})) << output_;
    EXPECT_TRUE(Printed("[cf1], [cf2]: has no files, so nothing tells"))
        << output_;
  }
  EXPECT_EQ(Snapshot(options_), before);
  // The open flushes what the WAL has.
  ASSERT_OK(Open(options_, /*create_families=*/false));
  Close();
  ASSERT_EQ(0, Run({flag})) << output_;
  EXPECT_TRUE(Printed("[cf1] The column family is not on the paths"))
      << output_;
  EXPECT_FALSE(Printed("[cf2] The column family is not on the paths"))
      << output_;
  CheckConverted();
}

// Recycled WALs stay with their records, also when the database is closed.
TEST_F(LdbDisableFeaturesTest, WalsThatNoOpenReplays) {
  options_ = {FeatureOptions(kMap, "a", 1, {}, {}), PlainOptions(),
              PlainOptions()};
  for (Options& one : options_) {
    one.recycle_log_file_num = 2;
    one.wal_recovery_mode = WALRecoveryMode::kPointInTimeRecovery;
    one.avoid_flush_during_shutdown = true;
  }
  OpenNew(options_);
  for (int version = 0; version < 4; ++version) {
    for (int family = 0; family < 2; ++family) {
      PutRange(family, 0, kKeys, version, /*wal=*/true);
      ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
    }
  }
  Close();
  bool found = false;
  ASSERT_OK(FindWalRecord(fs_.get(), dbname_, /*min_number=*/0, &found));
  ASSERT_TRUE(found);
  ASSERT_EQ(0, Run({"--cf_paths=" + PathOf("a", 0)})) << output_;
  EXPECT_TRUE(Printed("[cf1] The column family is not on the paths"))
      << output_;
  // It writes without WAL.
  for (Options& one : options_) {
    one.recycle_log_file_num = 0;
  }
  CheckConverted();
}

// The options of the session have no layout, so that --cf_paths would be for
// all families.
TEST_F(LdbDisableFeaturesTest, PathOfOneFamilyWithALayout) {
  Make({FeatureOptions(kMap, "a", 1, {0}, {0}), PlainOptions()});
  ASSERT_EQ(0, Run({"--cf_paths=" + PathOf("a", 0)})) << output_;
  CheckConverted();
}

// Sorted delta files on a path that the OPTIONS file does not keep.
TEST_F(LdbDisableFeaturesTest, DeltaFilesOnOtherPaths) {
  options_ = {FeatureOptions(kDeltas, "a", 2, {0}, {}), PlainOptions()};
  options_[0].delta_sorted_path_id = 1;
  OpenNew(options_);
  FillDeltas();
  Close();
  EXPECT_GT(DefaultFamily().distant_deltas.files, 0u);
  ASSERT_EQ(0, Run({"--features=layouts"})) << output_;
  EXPECT_TRUE(Printed("[default] to do: files are moved")) << output_;
  EXPECT_TRUE(
      Printed("have them: cf_paths=" + PathOf("a", 0) + ":1073741824\n"))
      << output_;
  EXPECT_EQ(DefaultFamily().distant_deltas.files, 0u);
  EXPECT_GT(DefaultFamily().deltas.files, 0u);
  EXPECT_EQ(Count(PathOf("a", 1), kDeltaFile), 0u);
  options_[0].cf_paths.pop_back();
  options_[0].level_sst_path_ids.clear();
  options_[0].delta_sorted_path_id = -1;
  ASSERT_OK(Open(options_, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// Options that name paths go, but the paths stay.
TEST_F(LdbDisableFeaturesTest, PathsThatStayAreNamed) {
  std::vector<Options> options = {FeatureOptions(kMap, "a", 2, {}, {}),
                                  PlainOptions()};
  options[0].blob_hot_bytes = 1 << 20;
  options[0].blob_hot_path_id = 1;
  Make(options);
  ASSERT_EQ(0, Run({"--features=map"})) << output_;
  EXPECT_TRUE(Printed("[default] RocksDB does not read the paths")) << output_;
  EXPECT_FALSE(Printed("[cf1] RocksDB does not read the paths")) << output_;
  // The next open writes the paths to its own OPTIONS file.
  for (int i = 0; i < 3; ++i) {
    const std::string text = OptionsFile().second;
    EXPECT_NE(text.find("# strata: level_blob_path_ids=0"), std::string::npos)
        << text;
    EXPECT_NE(text.find("# strata: cf_paths="), std::string::npos) << text;
    EXPECT_EQ(text.find("blob_hot_bytes"), std::string::npos) << text;
    ASSERT_OK(OpenStored());
    ASSERT_OK(VerifyData());
    Close();
  }
  ASSERT_EQ(0, Run()) << output_;
  CheckConverted();
}

// Without its WALs the database would lose acknowledged writes.
TEST_F(LdbDisableFeaturesTest, WalDirThatDoesNotExist) {
  std::vector<Options> options = {FeatureOptions(kMapAndDeltas, "a", 0, {}, {}),
                                  PlainOptions()};
  const std::string wal_dir = PathOf("w", 0);
  for (Options& one : options) {
    one.wal_dir = wal_dir;
    one.avoid_flush_during_shutdown = true;
  }
  Make(options);
  ASSERT_GT(Count(wal_dir, kWalFile), 0u);
  const auto before = Snapshot(options_);
  const std::string hidden = PathOf("w", 1);
  ASSERT_OK(env_->RenameFile(wal_dir, hidden));
  for (const char* const flag : {"--dry_run=false", "--dry_run"}) {
    ASSERT_EQ(1, Run({flag})) << output_;
    EXPECT_TRUE(Printed(wal_dir + ": is the wal_dir in OPTIONS-")) << output_;
    EXPECT_TRUE(Printed("Run the command where the directory exists"))
        << output_;
  }
  EXPECT_EQ(Snapshot(options_), before);
  ASSERT_OK(env_->RenameFile(hidden, wal_dir));
  ASSERT_EQ(0, Run()) << output_;
  CheckConverted();
}

// WALs in the directory of the database are no sign that those of wal_dir are
// there: older ones stay when wal_dir is set. Where the program passes wal_dir,
// it would not find what the command leaves in the WALs of another directory.
TEST_F(LdbDisableFeaturesTest, WalsInTheDirectoryOfTheDatabase) {
  Options cached = PlainOptions();
  cached.enable_merged_value_cache = true;
  Options map = FeatureOptions(kMap, "a", 0, {}, {});
  map.avoid_flush_during_recovery = true;
  for (const Options& first : {map, cached}) {
    SCOPED_TRACE(first.enable_blob_address_map);
    Make({first, PlainOptions()});
    const std::string wal_dir = PathOf("w", 0);
    for (Options& one : options_) {
      one.wal_dir = wal_dir;
      one.avoid_flush_during_shutdown = true;
    }
    ASSERT_OK(Open(options_, /*create_families=*/false));
    Fill(/*wal=*/true);
    Close();
    ASSERT_GT(Count(wal_dir, kWalFile), 0u);
    ASSERT_GT(Count(dbname_, kWalFile), 0u);
    const std::string hidden = PathOf("w", 1);
    ASSERT_OK(env_->RenameFile(wal_dir, hidden));
    auto before = Snapshot(options_);
    ASSERT_EQ(1, Run()) << output_;
    EXPECT_TRUE(Printed(wal_dir + ": is the wal_dir in OPTIONS-")) << output_;
    EXPECT_EQ(Snapshot(options_), before);
    std::vector<std::string> wals;
    for (const std::string& name : Names(hidden)) {
      uint64_t number = 0;
      FileType type = kInfoLogFile;
      if (ParseFileName(name, &number, &type) && type == kWalFile) {
        wals.push_back(name);
        ASSERT_OK(env_->RenameFile(hidden + "/" + name, dbname_ + "/" + name));
      }
    }
    before = Snapshot(options_);
    ASSERT_EQ(1, Run()) << output_;
    EXPECT_TRUE(Printed("open and close the database with the program first"))
        << output_;
    EXPECT_EQ(Snapshot(options_), before);
    ASSERT_OK(env_->RenameFile(hidden, wal_dir));
    for (const std::string& name : wals) {
      ASSERT_OK(env_->RenameFile(dbname_ + "/" + name, wal_dir + "/" + name));
    }
    ASSERT_EQ(0, Run()) << output_;
    CheckConverted();
    if (HasFatalFailure()) {
      return;
    }
  }
}

// Every open applies the file of STRATA_CONFIG, also that of the conversion.
TEST_F(LdbDisableFeaturesTest, ConfigThatTurnsAFeatureOn) {
  Make({FeatureOptions(kMap, "a", 0, {}, {}), PlainOptions()});
  const auto before = Snapshot(options_);
  const std::string file = dbname_ + "_config.ini";
  const ConfigVariable variable(file);
  const std::pair<const char*, const char*> cases[] = {
      {"[CFOptions \"*\" \"cf1\"]\nenable_blob_address_map = true\n",
       "sets enable_blob_address_map, an option of map"},
      {"[CFOptions \"*\" \"*\"]\nenable_delta_separation = true\n",
       "sets enable_delta_separation, an option of deltas"},
      {"[DBOptions \"*\"]\nmax_write_groups_per_leader = 8\n",
       "sets max_write_groups_per_leader, an option of write_groups"}};
  for (const auto& [text, error] : cases) {
    ASSERT_OK(WriteStringToFile(env_, text, file));
    for (const char* const flag : {"--dry_run=false", "--dry_run"}) {
      ASSERT_EQ(1, Run({flag})) << text << output_;
      EXPECT_TRUE(Printed(std::string("The file of STRATA_CONFIG: ") + error))
          << output_;
    }
  }
  EXPECT_EQ(Snapshot(options_), before);
  // The last one is about a feature that is to stay.
  ASSERT_EQ(0, Run({"--features=map"})) << output_;
  // A file that turns a feature off is allowed.
  ASSERT_OK(WriteStringToFile(
      env_, "[CFOptions \"*\" \"*\"]\nenable_blob_address_map = false\n",
      file));
  ASSERT_EQ(0, Run()) << output_;
  CheckConverted();
  ASSERT_OK(env_->DeleteFile(file));
}

TEST_F(LdbDisableFeaturesTest, AllFilesOnTheFirstPath) {
  Make(AllFeatures());
  ASSERT_EQ(0, Run({"--into_first_path"})) << output_;
  EXPECT_FALSE(Printed("To have all files on the first path")) << output_;
  for (const char* const prefix : {"a", "b"}) {
    EXPECT_TRUE(Names(PathOf(prefix, 1)).empty()) << prefix;
  }
  for (Options& one : options_) {
    if (one.cf_paths.size() > 1) {
      one.cf_paths.pop_back();
    }
  }
  CheckConverted();
}

// One path is given up by hand; the MANIFEST has its path id.
TEST_F(LdbDisableFeaturesTest, ALastPathThatWasGivenUp) {
  Make({FeatureOptions(kBlobs, "a", 2, {0}, {1}),
        FeatureOptions(kBlobs, "a", 2, {0}, {1})});
  for (const std::string& name : Names(PathOf("a", 1))) {
    ASSERT_OK(env_->RenameFile(PathOf("a", 1) + "/" + name,
                               PathOf("a", 0) + "/" + name));
  }
  for (Options& one : options_) {
    one.cf_paths.pop_back();
    one.level_blob_path_ids.clear();
    one.level_sst_path_ids.clear();
  }
  ASSERT_OK(Open(options_, /*create_families=*/false));
  Close();
  ASSERT_EQ(0, Run({"--cf_paths=" + PathOf("a", 0)})) << output_;
  EXPECT_TRUE(Printed("all SST files are rewritten")) << output_;
  EXPECT_TRUE(Printed("cf_paths=" + PathOf("a", 0))) << output_;
  CheckConverted();
}

// Without the operator of the application, operands in delta files cannot
// become values. Operands in SST files stay as they are.
TEST_F(LdbDisableFeaturesTest, UnknownMergeOperator) {
  for (const Feature feature : {kMap, kMapAndDeltas}) {
    SCOPED_TRACE(feature);
    DestroyAll();
    options_ = {FeatureOptions(feature, "a", 0, {}, {}), PlainOptions()};
    options_[0].merge_operator = std::make_shared<OwnOperator>();
    OpenNew(options_);
    for (const char* const operand : {"1", "2"}) {
      ASSERT_OK(db_->Merge(WriteOptions(), Handle(0), "key", operand));
      ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
    }
    PutRange(0, 0, kKeys);
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
    Expect(0, "key", "1+2");
    Close();
    ldb_options_.merge_operator = nullptr;
    const auto before = Snapshot(options_);
    if (feature == kMapAndDeltas) {
      ASSERT_EQ(1, Run()) << output_;
      EXPECT_TRUE(Printed("[default]: has merge operands in delta files"))
          << output_;
      EXPECT_TRUE(Printed("\"application.Own\"")) << output_;
      EXPECT_TRUE(Printed("passes it to LDBTool::Run()")) << output_;
      EXPECT_EQ(Snapshot(options_), before);
      ASSERT_EQ(1, Run({"--dry_run"})) << output_;
      EXPECT_EQ(Snapshot(options_), before);
      ldb_options_.merge_operator = std::make_shared<OwnOperator>();
    }
    ASSERT_EQ(0, Run()) << output_;
    CheckConverted();
  }
}

// No open of a DBWithTTL in this process has made its operator known.
TEST_F(LdbDisableFeaturesTest, MergeOperatorOfADatabaseWithTtl) {
  const std::string time(DBWithTTLImpl::kTSLength, '\1');
  const auto with_ttl = [&](const std::shared_ptr<MergeOperator>& contained) {
    return std::make_shared<TtlMergeOperator>(contained,
                                              env_->GetSystemClock().get());
  };
  for (const bool is_known : {true, false}) {
    DestroyAll();
    options_ = {FeatureOptions(kDeltas, "a", 0, {}, {}), PlainOptions()};
    options_[0].merge_operator =
        is_known ? with_ttl(MergeOperators::CreateStringAppendOperator())
                 : with_ttl(std::make_shared<OwnOperator>());
    OpenNew(options_);
    for (const char* const operand : {"1", "2"}) {
      ASSERT_OK(db_->Merge(WriteOptions(), Handle(0), "key", operand + time));
      ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
    }
    Close();
    EXPECT_EQ(is_known ? 0 : 1, Run()) << output_;
    if (!is_known) {
      EXPECT_TRUE(Printed("\"TtlMergeOperator\"")) << output_;
      continue;
    }
    CheckConverted();
    ASSERT_OK(Open(Off(options_), /*create_families=*/false));
    std::string value;
    ASSERT_OK(db_->Get(ReadOptions(), Handle(0), "key", &value));
    EXPECT_EQ(value.substr(0, value.size() - time.size()), "1,2");
  }
}

// An operand whose merge fails stays, and is named.
TEST_F(LdbDisableFeaturesTest, OperandsThatCannotBeMerged) {
  options_ = {FeatureOptions(kDeltas, "a", 0, {}, {}), PlainOptions()};
  options_[0].merge_operator = std::make_shared<OwnOperator>();
  options_[0].prefix_extractor = std::make_shared<OwnPrefix>();
  OpenNew(options_);
  PutRange(0, 0, kKeys);
  for (const char* const key : {"bad", "good"}) {
    ASSERT_OK(db_->Merge(WriteOptions(), Handle(0), key, key));
    Expect(0, key, key);
  }
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  Close();
  const std::string text = WithoutOwnOptions(OptionsFile().second);
  EXPECT_NE(text.find(OwnPrefix::kName), std::string::npos) << text;
  ldb_options_.merge_operator = std::make_shared<OwnOperator>(/*fails=*/true);
  for (int i = 0; i < 2; ++i) {
    const std::string file = OptionsFile().first;
    ASSERT_EQ(1, Run()) << output_;
    EXPECT_FALSE(Printed("OK: ")) << output_;
    EXPECT_NE(OptionsFile().first, file);
    EXPECT_EQ(WithoutOwnOptions(OptionsFile().second), text);
  }
  ldb_options_.merge_operator = std::make_shared<OwnOperator>();
  ASSERT_EQ(0, Run()) << output_;
  EXPECT_EQ(OptionsFile().second, text);
  CheckConverted();
}

TEST_F(LdbDisableFeaturesTest, UnknownComparator) {
  static const OwnComparator comparator;
  std::vector<Options> options = {FeatureOptions(kMap, "a", 0, {}, {}),
                                  FeatureOptions(kMap, "a", 0, {}, {})};
  options[1].comparator = &comparator;
  Make(options);
  const auto before = Snapshot(options_);
  for (const char* const flag : {"--dry_run=false", "--dry_run"}) {
    ASSERT_EQ(1, Run({flag})) << output_;
    EXPECT_TRUE(Printed("[cf1]: has the comparator \"application.Comparator\""))
        << output_;
    EXPECT_TRUE(Printed("passes it to LDBTool::Run()")) << output_;
  }
  EXPECT_EQ(Snapshot(options_), before);
  ldb_options_.comparator = &comparator;
  ASSERT_EQ(0, Run()) << output_;
  CheckConverted();
}

// The power fails at some of the steps. Strata opens the database by its
// OPTIONS file then, and another run finishes the work.
TEST_F(LdbDisableFeaturesTest, CrashAtAnyStep) {
  constexpr int kStride = 11;
  int runs = 0;
  for (int steps = 0;; steps += kStride, ++runs) {
    SCOPED_TRACE(steps);
    ASSERT_LT(steps, 5000);
    Make(AllFeatures());
    ASSERT_FALSE(HasFatalFailure());
    fs_->PowerOffAfter(steps);
    const int result = Run();
    const bool has_failed = fs_->HasFailed();
    fs_->PowerOffAfter(-1);
    EXPECT_EQ(result == 0, !has_failed) << output_;
    if (!has_failed) {
      break;
    }
    fs_->PowerOff();
    ASSERT_OK(fs_->PowerOn());
    if (runs % 2 == 0) {
      ASSERT_OK(OpenStored());
      ASSERT_OK(VerifyData());
      Close();
    }
    ASSERT_EQ(0, Run()) << output_;
    CheckConverted();
    if (HasFatalFailure()) {
      return;
    }
  }
  EXPECT_GE(runs, 5);
  CheckConverted();
}

// The process is killed after an open, when all data was converted, and before
// the new MANIFEST and the new OPTIONS file. No option of RocksDB's is lost.
TEST_F(LdbDisableFeaturesTest, CrashBetweenTheSteps) {
  for (const char* const point :
       {"DisableFeaturesCommand::Convert:Opened", "FeatureRemoval::Run:Done",
        "DisableFeaturesCommand::Convert:BeforeClose",
        "DisableFeaturesCommand::ReplaceOptionsFile:BeforeReplace"}) {
    SCOPED_TRACE(point);
    std::vector<Options> options = AllFeatures();
    options[0].prefix_extractor = std::make_shared<OwnPrefix>();
    Make(options);
    const std::string text = WithoutOwnOptions(OptionsFile().second);
    EXPECT_NE(text.find(OwnPrefix::kName), std::string::npos) << text;
    SyncPoint::GetInstance()->SetCallBack(point,
                                          [&](void*) { fs_->PowerOff(); });
    SyncPoint::GetInstance()->EnableProcessing();
    EXPECT_EQ(1, Run()) << output_;
    ClearSyncPoints();
    ASSERT_OK(fs_->PowerOn());
    EXPECT_EQ(WithoutOwnOptions(OptionsFile().second), text);
    // This open writes an OPTIONS file without the object, too.
    const auto [name, stored] = OptionsFile();
    ASSERT_OK(OpenStored());
    ASSERT_OK(VerifyData());
    Close();
    ASSERT_OK(WriteStringToFile(env_, stored, OptionsFile().first));
    ASSERT_EQ(0, Run()) << output_;
    EXPECT_EQ(OptionsFile().second, text);
    CheckConverted();
    if (HasFatalFailure()) {
      return;
    }
  }
}

// Another process opens the database when the command does not have the LOCK.
// It changes an option, which must not be lost.
TEST_F(LdbDisableFeaturesTest, OpenedByAnotherProcess) {
  for (const char* const point : {"DisableFeaturesCommand::Run:Unlocked",
                                  "DisableFeaturesCommand::Convert:BeforeOpen",
                                  "DisableFeaturesCommand::Run:BeforeLock"}) {
    SCOPED_TRACE(point);
    Make(AllFeatures());
    std::string text;
    AtFirst(point, [&] {
      ASSERT_OK(Open(options_, /*create_families=*/false));
      ASSERT_OK(db_->SetOptions(Handle(0), {{"write_buffer_size", "1234567"}}));
      Close();
      text = OptionsFile().second;
    });
    EXPECT_EQ(1, Run()) << output_;
    ClearSyncPoints();
    EXPECT_TRUE(Printed(dbname_ + ": was opened by another process meanwhile"))
        << output_;
    EXPECT_NE(text.find("write_buffer_size=1234567"), std::string::npos);
    EXPECT_EQ(OptionsFile().second, text);
    ASSERT_OK(OpenStored());
    ASSERT_OK(VerifyData());
    Close();
    ASSERT_EQ(0, Run()) << output_;
    EXPECT_NE(OptionsFile().second.find("write_buffer_size=1234567"),
              std::string::npos);
    CheckConverted();
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_F(LdbDisableFeaturesTest, ReadOnlyDirectory) {
  Make(AllFeatures());
  const auto before = Snapshot(options_);
  const std::unique_ptr<Env> env =
      NewCompositeEnv(std::make_shared<ReadOnlyFileSystem>(fs_));
  ldb_options_.env = env.get();
  ASSERT_EQ(0, Run({"--dry_run"})) << output_;
  EXPECT_TRUE(Printed("[default] to do: ")) << output_;
  ASSERT_EQ(1, Run()) << output_;
  EXPECT_TRUE(Printed(dbname_ + " must be writable")) << output_;
  EXPECT_EQ(Snapshot(options_), before);
}

TEST_F(LdbDisableFeaturesTest, NoSpace) {
  Make(AllFeatures());
  const auto before = Snapshot(options_);
  const std::unique_ptr<Env> env =
      NewCompositeEnv(std::make_shared<FullFS>(fs_));
  ldb_options_.env = env.get();
  for (const char* const flag : {"--dry_run=false", "--dry_run"}) {
    ASSERT_EQ(1, Run({flag})) << output_;
    EXPECT_TRUE(Printed("has 10 free bytes, needed are ")) << output_;
    EXPECT_TRUE(Printed("for column family default")) << output_;
    EXPECT_TRUE(Printed("free there are 10")) << output_;
  }
  EXPECT_EQ(Snapshot(options_), before);
  ASSERT_EQ(0, Run({"--check_space=false"})) << output_;
  CheckConverted();
}

TEST_F(LdbDisableFeaturesTest, OpenDatabase) {
  Make(AllFeatures());
  ASSERT_OK(Open(options_, /*create_families=*/false));
  ASSERT_EQ(1, Run()) << output_;
  EXPECT_TRUE(Printed("the database must not be open")) << output_;
  // A dry run is possible.
  ASSERT_EQ(0, Run({"--dry_run"})) << output_;
  ASSERT_OK(VerifyData());
}

// A job of an open database deletes files that the MANIFEST had when a dry run
// read it.
TEST_F(LdbDisableFeaturesTest, DryRunBesideACompaction) {
  Make(AllFeatures());
  ASSERT_OK(Open(options_, /*create_families=*/false));
  size_t num_deleted = 0;
  AtFirst("DisableFeaturesCommand::Run:BeforeCheckFiles", [&] {
    const std::vector<ManifestFamily::File> files = DefaultFamily().files;
    CompactRangeOptions compact;
    compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(compact, Handle(0), nullptr, nullptr));
    WaitForCompactOptions wait;
    wait.wait_for_purge = true;
    ASSERT_OK(db_->WaitForCompact(wait));
    for (const ManifestFamily::File& file : files) {
      num_deleted +=
          FirstMissingFile(fs_.get(), {file}, options_[0].cf_paths).empty() ? 0
                                                                            : 1;
    }
  });
  ASSERT_EQ(0, Run({"--dry_run"})) << output_;
  ClearSyncPoints();
  EXPECT_GT(num_deleted, 0u);
  EXPECT_TRUE(Printed("Dry run: nothing was changed")) << output_;
  ASSERT_OK(VerifyData());
}

TEST_F(LdbDisableFeaturesTest, UnfinishedMove) {
  Make(AllFeatures());
  ASSERT_OK(
      WriteStringToFile(env_, "text", dbname_ + "/" + PathMoveMark::Name()));
  ASSERT_EQ(1, Run()) << output_;
  EXPECT_TRUE(Printed("a move of paths is unfinished")) << output_;
  ASSERT_OK(env_->DeleteFile(dbname_ + "/" + PathMoveMark::Name()));
  ASSERT_EQ(0, Run()) << output_;
}

// A copy of the files of an open database is what a killed process leaves.
TEST_F(LdbDisableFeaturesTest, WalBufferOfAKilledProcess) {
  options_ = {FeatureOptions(kMapAndDeltas, "a", 0, {}, {}), PlainOptions()};
  for (Options& one : options_) {
    // The other file system does not map files.
    one.env = env_;
    one.wal_mmap_buffer_size = 65536;
  }
  ldb_options_.env = env_;
  OpenNew(options_);
  PutRange(0, 0, kKeys, 0, /*wal=*/true);
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(db_->Merge(WriteOptions(), Handle(0), KeyOf(i), "m"));
    ASSERT_OK(db_->Put(WriteOptions(), Handle(1), KeyOf(i), "v"));
  }
  const std::string copy = Directory("killed");
  ASSERT_OK(env_->CreateDir(copy));
  ASSERT_OK(db_->PauseBackgroundWork());
  for (const std::string& name : Names(dbname_)) {
    bool is_directory = false;
    ASSERT_OK(env_->IsDirectory(dbname_ + "/" + name, &is_directory));
    if (is_directory || name == "LOCK" || name.rfind("LOG", 0) == 0) {
      continue;
    }
    std::string contents;
    ASSERT_OK(ReadFileToString(env_, dbname_ + "/" + name, &contents));
    ASSERT_OK(WriteStringToFile(env_, contents, copy + "/" + name));
  }
  ASSERT_EQ(Count(copy, kWalBufferFile), 1u);
  ASSERT_OK(db_->ContinueBackgroundWork());
  Close();

  ASSERT_EQ(0, RunOn(copy, {})) << output_;
  EXPECT_TRUE(Printed("wal_buffer: option wal_mmap_buffer_size=65536"))
      << output_;
  EXPECT_TRUE(Printed("OK: RocksDB 11.8.1 opens the database")) << output_;
  EXPECT_EQ(Count(copy, kWalBufferFile), 0u);
  EXPECT_EQ(Count(copy, kDeltaFile), 0u);
  ManifestFeatures manifest;
  ASSERT_OK(manifest.ReadRecords(env_->GetFileSystem().get(), copy));
  EXPECT_EQ(manifest.records().ToString(), "");
  const std::vector<Options> off = Off(options_);
  std::unique_ptr<DB> db;
  std::vector<ColumnFamilyHandle*> handles;
  ASSERT_OK(DB::Open(off[0], copy,
                     {{kDefaultColumnFamilyName, off[0]}, {"cf1", off[1]}},
                     &handles, &db));
  for (int i = 0; i < kKeys; ++i) {
    std::string value;
    ASSERT_OK(db->Get(ReadOptions(), handles[0], KeyOf(i), &value));
    EXPECT_EQ(value, ValueOf(i, 0) + (i < 10 ? ",m" : ""));
    if (i < 10) {
      ASSERT_OK(db->Get(ReadOptions(), handles[1], KeyOf(i), &value));
      EXPECT_EQ(value, "v");
    }
  }
  for (ColumnFamilyHandle* handle : handles) {
    ASSERT_OK(db->DestroyColumnFamilyHandle(handle));
  }
}

TEST_F(LdbDisableFeaturesTest, WrongFlagsAreRefused) {
  Make({PlainOptions(), PlainOptions()});
  const auto before = Snapshot(options_);
  const std::pair<const char*, const char*> cases[] = {
      {"--features=maps", "'maps' is no feature"},
      {"--features", "is no feature"},
      {"--dry_run=maybe", "neither true nor false"},
      {"--threads=0", "must be at least 1"},
      {"--threads=x", "threads has an invalid value"},
      {"--try_load_options=false", "needs --try_load_options"},
      {"more", "takes no parameters"}};
  for (const auto& [flag, error] : cases) {
    ASSERT_EQ(1, Run({flag})) << flag;
    EXPECT_TRUE(Printed(error)) << flag << ": " << output_;
  }
  ASSERT_EQ(1, Run({"--features=map", "--into_first_path"}));
  EXPECT_TRUE(Printed("needs the feature layouts")) << output_;
  // The options are the database's own.
  ASSERT_EQ(1, Run({"--compression_type=zstd"})) << output_;
  EXPECT_TRUE(Printed("Invalid command-line option")) << output_;
  EXPECT_EQ(Snapshot(options_), before);
  EXPECT_EQ(1, RunOn(dbname_ + "_none", {}));
  EXPECT_TRUE(Printed("is no database")) << output_;
  EXPECT_TRUE(env_->FileExists(dbname_ + "_none").IsNotFound());
  for (const std::string& name : Names(dbname_)) {
    if (name.rfind("OPTIONS-", 0) == 0) {
      ASSERT_OK(env_->DeleteFile(dbname_ + "/" + name));
    }
  }
  ASSERT_EQ(1, Run()) << output_;
  EXPECT_TRUE(Printed("no readable OPTIONS file")) << output_;
}

TEST_F(LdbDisableFeaturesTest, HelpNamesTheCommand) {
  std::string help;
  DisableFeaturesCommand::Help(help);
  EXPECT_NE(help.find("disable_features [--features="), std::string::npos)
      << help;
  EXPECT_NE(help.find("map,deltas,layouts,wal_buffer"), std::string::npos);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
