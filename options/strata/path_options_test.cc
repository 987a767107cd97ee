//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/path_options.h"

#include <limits>
#include <memory>

#include "db/db_test_util.h"
#include "file/filename.h"
#include "options/cf_options.h"
#include "options/options_parser.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/utilities/cf_paths.h"
#include "rocksdb/utilities/options_util.h"
#include "util/strata/path_list.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

class NoCompactionService : public CompactionService {
 public:
  const char* Name() const override { return "NoCompactionService"; }
};

bool Mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string Serialize(const ColumnFamilyOptions& options) {
  std::string text;
  EXPECT_OK(GetStringFromColumnFamilyOptions(ConfigOptions(), options, &text));
  return text;
}

Status Parse(const std::string& text, ColumnFamilyOptions* options,
             const ColumnFamilyOptions& base = ColumnFamilyOptions()) {
  ConfigOptions config;
  config.ignore_unknown_options = false;
  return GetColumnFamilyOptionsFromString(config, base, text, options);
}

}  // namespace

// Text.

TEST(PathOptionsTextTest, DefaultsAreNotWritten) {
  ColumnFamilyOptions options;
  options.cf_paths = {{"/a", 1}, {"/b", 2}};
  const std::string text = Serialize(options);
  EXPECT_FALSE(Mentions(text, "path"))
      << "RocksDB could not load this: " << text;
}

TEST(PathOptionsTextTest, StringRoundTripKeepsTheOptions) {
  ColumnFamilyOptions options;
  options.cf_paths = {{"/fast", 1 << 20}, {"/a;b={c},d:e#f \\g", kNoLimit}};
  options.level_sst_path_ids = {0, 1};
  options.level_blob_path_ids = {1};
  const std::string text = Serialize(options);

  ColumnFamilyOptions parsed;
  ASSERT_OK(Parse(text, &parsed));
  EXPECT_EQ(parsed.level_sst_path_ids, options.level_sst_path_ids);
  EXPECT_EQ(parsed.level_blob_path_ids, options.level_blob_path_ids);
  ASSERT_EQ(parsed.cf_paths.size(), 2);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(parsed.cf_paths[i].path, options.cf_paths[i].path);
    EXPECT_EQ(parsed.cf_paths[i].target_size, options.cf_paths[i].target_size);
  }
  ASSERT_OK(
      RocksDBOptionsParser::VerifyCFOptions(ConfigOptions(), options, parsed));
}

TEST(PathOptionsTextTest, PathsAreWrittenWithEitherLayout) {
  ColumnFamilyOptions options;
  options.cf_paths = {{"/a", 1}, {"/b", 2}};
  options.level_blob_path_ids = {0, 1};
  const std::string text = Serialize(options);
  EXPECT_TRUE(Mentions(text, "level_blob_path_ids=0:1;")) << text;
  EXPECT_TRUE(Mentions(text, "cf_paths=/a:1,/b:2;")) << text;
  EXPECT_FALSE(Mentions(text, "level_sst_path_ids")) << text;

  // A single path is not written, since the program that loads the file knows
  // it.
  options.cf_paths.resize(1);
  options.level_blob_path_ids = {0};
  EXPECT_FALSE(Mentions(Serialize(options), "cf_paths"));
}

TEST(PathOptionsTextTest, PathsAreWrittenWithThePathOfSortedDeltas) {
  ColumnFamilyOptions options;
  options.cf_paths = {{"/a", 1}, {"/b", 2}};
  options.delta_sorted_path_id = 0;
  const std::string text = Serialize(options);
  EXPECT_TRUE(Mentions(text, "delta_sorted_path_id=0;")) << text;
  EXPECT_TRUE(Mentions(text, "cf_paths=/a:1,/b:2;")) << text;
  ColumnFamilyOptions parsed;
  ASSERT_OK(Parse(text, &parsed));
  EXPECT_EQ(parsed.delta_sorted_path_id, 0);
  EXPECT_EQ(parsed.cf_paths.size(), 2);
  ASSERT_OK(Parse("delta_sorted_path_id=-1", &parsed, options));
  EXPECT_EQ(parsed.delta_sorted_path_id, -1);
  EXPECT_FALSE(Mentions(Serialize(parsed), "path"));
}

TEST(PathOptionsTextTest, ListsAreReadInAllForms) {
  ColumnFamilyOptions options;
  ASSERT_OK(
      Parse("level_sst_path_ids=0:1:2;level_blob_path_ids={0,1};"
            "cf_paths=/a,/b:2g",
            &options));
  EXPECT_EQ(options.level_sst_path_ids, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(options.level_blob_path_ids, (std::vector<uint32_t>{0, 1}));
  ASSERT_EQ(options.cf_paths.size(), 2);
  EXPECT_EQ(options.cf_paths[0].target_size, kNoLimit);
  EXPECT_EQ(options.cf_paths[1].target_size, 2ull << 30);

  // Options that are not in the text stay as in the base.
  ColumnFamilyOptions same;
  ASSERT_OK(Parse("write_buffer_size=65536", &same, options));
  EXPECT_EQ(same.level_sst_path_ids, options.level_sst_path_ids);
  EXPECT_EQ(same.cf_paths.size(), 2);

  ColumnFamilyOptions cleared;
  ASSERT_OK(
      Parse("level_sst_path_ids=;level_blob_path_ids={}", &cleared, options));
  EXPECT_TRUE(cleared.level_sst_path_ids.empty());
  EXPECT_TRUE(cleared.level_blob_path_ids.empty());
}

TEST(PathOptionsTextTest, ErrorsNameTheOption) {
  for (const char* name :
       {"level_sst_path_ids", "level_blob_path_ids", "cf_paths"}) {
    ColumnFamilyOptions options;
    const Status s = Parse(std::string(name) + "=1:x", &options);
    EXPECT_TRUE(s.IsInvalidArgument()) << name << ": " << s.ToString();
    EXPECT_TRUE(Mentions(s.ToString(), name)) << s.ToString();
  }
}

TEST(PathOptionsTextTest, ComparisonChecksLayoutsButNotDirectories) {
  ColumnFamilyOptions one;
  one.cf_paths = {{"/a", 1}, {"/b", 2}};
  one.level_sst_path_ids = {0, 1};
  ColumnFamilyOptions moved = one;
  moved.cf_paths[1].path = "/elsewhere";
  ASSERT_OK(RocksDBOptionsParser::VerifyCFOptions(ConfigOptions(), one, moved));

  ColumnFamilyOptions other = one;
  other.level_sst_path_ids = {0};
  const Status s =
      RocksDBOptionsParser::VerifyCFOptions(ConfigOptions(), one, other);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Mentions(s.ToString(), "level_sst_path_ids")) << s.ToString();
  EXPECT_FALSE(MutableCFOptions(one) == MutableCFOptions(other));
  EXPECT_TRUE(MutableCFOptions(one) == MutableCFOptions(moved));
}

TEST(PathOptionsTextTest, CopiesKeepTheLayout) {
  Options options;
  options.level_sst_path_ids = {0, 1};
  options.level_blob_path_ids = {1};
  const ColumnFamilyOptions cf_options(options);
  EXPECT_EQ(cf_options.level_sst_path_ids, options.level_sst_path_ids);
  EXPECT_EQ(cf_options.level_blob_path_ids, options.level_blob_path_ids);

  ColumnFamilyOptions back;
  UpdateColumnFamilyOptions(MutableCFOptions(cf_options), &back);
  EXPECT_EQ(back.level_sst_path_ids, options.level_sst_path_ids);
  EXPECT_EQ(back.level_blob_path_ids, options.level_blob_path_ids);
}

TEST(PathOptionsTextTest, OtherPathsKeepPricesOnlyIfTheirNumberIsTheSame) {
  ColumnFamilyOptions options;
  options.cf_paths = {{"/a", 1}, {"/b", 2}};
  options.path_prices = {0.25, 0.02};
  std::vector<ColumnFamilyDescriptor> families = {{"one", options}};
  ASSERT_OK(OverrideCfPaths({{"/x", 1}, {"/y", 2}}, &families));
  EXPECT_EQ(families[0].options.cf_paths[0].path, "/x");
  EXPECT_EQ(families[0].options.path_prices, options.path_prices);
  ASSERT_OK(OverrideCfPaths({{"/x", 1}}, &families));
  EXPECT_EQ(families[0].options.cf_paths.size(), 1);
  EXPECT_TRUE(families[0].options.path_prices.empty());
}

TEST(PathOptionsTextTest, PathsAreWrittenWithTheBudgetOfHotValues) {
  ColumnFamilyOptions options;
  options.cf_paths = {{"/a", 1}, {"/b", 2}};
  options.blob_hot_path_id = 1;
  EXPECT_FALSE(Mentions(Serialize(options), "cf_paths"));
  options.blob_hot_bytes = 1000;
  EXPECT_TRUE(Mentions(Serialize(options), "cf_paths=/a:1,/b:2;"))
      << Serialize(options);
}

TEST(PathOptionsTextTest, OtherPathsHaveHotValuesOnlyIfTheyHaveTheirPath) {
  ColumnFamilyOptions options;
  options.cf_paths = {{"/a", 1}, {"/b", 2}, {"/c", 3}};
  options.blob_hot_bytes = 1000;
  options.blob_hot_path_id = 1;
  std::vector<ColumnFamilyDescriptor> families = {{"one", options}};
  ASSERT_OK(OverrideCfPaths({{"/x", 1}, {"/y", 2}}, &families));
  EXPECT_EQ(families[0].options.blob_hot_bytes, 1000);
  ASSERT_OK(OverrideCfPaths({{"/x", 1}}, &families));
  EXPECT_EQ(families[0].options.blob_hot_bytes, 0);
  families[0].options = options;
  families[0].options.blob_hot_path_id = 2;
  ASSERT_OK(OverrideCfPaths({{"/x", 1}, {"/y", 2}}, &families));
  EXPECT_EQ(families[0].options.blob_hot_bytes, 0);
}

// Validation without a DB.

TEST(PathOptionsValidationTest, HotValuesNeedAPathOfTheirOwn) {
  DBOptions db_options;
  ColumnFamilyOptions cf_options;
  cf_options.blob_hot_path_id = 1;
  EXPECT_OK(ValidatePathOptions(db_options, cf_options));
  cf_options.blob_hot_bytes = 1;
  Status s = ValidatePathOptions(db_options, cf_options);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Mentions(s.ToString(), "blob_hot_bytes needs a path"))
      << s.ToString();
  EXPECT_TRUE(Mentions(s.ToString(), "but cf_paths (or db_paths) has 1 path"))
      << s.ToString();
  cf_options.cf_paths = {{"/a", 1}, {"/b", 2}};
  EXPECT_OK(ValidatePathOptions(db_options, cf_options));
  cf_options.blob_hot_path_id = 2;
  s = ValidatePathOptions(db_options, cf_options);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Mentions(s.ToString(),
                       "blob_hot_path_id: path id 2 names no path: cf_paths "
                       "(or db_paths) has 2"))
      << s.ToString();
}

TEST(PathOptionsValidationTest, PricesAreForThePathsOfTheFamilyOrTheDB) {
  DBOptions db_options;
  ColumnFamilyOptions cf_options;
  const auto error = [&]() {
    return ValidatePathOptions(db_options, cf_options);
  };
  cf_options.path_prices = {1};
  EXPECT_OK(error());
  cf_options.path_prices = {1, 2};
  EXPECT_TRUE(error().IsInvalidArgument());
  db_options.db_paths.resize(2);
  EXPECT_OK(error());
  cf_options.cf_paths.resize(3);
  EXPECT_TRUE(error().IsInvalidArgument());
  EXPECT_TRUE(Mentions(error().ToString(), "path_prices"))
      << error().ToString();
  // They are no layout.
  cf_options.path_prices = {1, 2, 3};
  cf_options.compaction_style = kCompactionStyleFIFO;
  db_options.compaction_service = std::make_shared<NoCompactionService>();
  EXPECT_OK(error());
}

TEST(PathOptionsValidationTest, InvalidLayoutsAreRefused) {
  DBOptions db_options;
  ColumnFamilyOptions cf_options;
  cf_options.cf_paths.resize(5);
  const auto error = [&]() {
    return ValidatePathOptions(db_options, cf_options);
  };
  // Without a layout only the number of paths is limited.
  cf_options.compaction_style = kCompactionStyleFIFO;
  db_options.compaction_service = std::make_shared<NoCompactionService>();
  EXPECT_TRUE(error().IsNotSupported());
  EXPECT_TRUE(Mentions(error().ToString(), "cf_paths has 5"));
  EXPECT_TRUE(Mentions(error().ToString(), "at most 4"));
  cf_options.cf_paths.resize(4);
  ASSERT_OK(error());
  cf_options.cf_paths.resize(5);

  cf_options.level_blob_path_ids = {0};
  EXPECT_TRUE(error().IsNotSupported());
  EXPECT_TRUE(Mentions(error().ToString(), "level_blob_path_ids"));
  EXPECT_TRUE(Mentions(error().ToString(), "FIFO"));

  cf_options.compaction_style = kCompactionStyleLevel;
  EXPECT_TRUE(error().IsNotSupported());
  EXPECT_TRUE(Mentions(error().ToString(), "compaction_service"));

  db_options.compaction_service.reset();
  EXPECT_TRUE(error().IsInvalidArgument());
  EXPECT_TRUE(Mentions(error().ToString(), "at most 4 paths"));
  EXPECT_TRUE(Mentions(error().ToString(), "cf_paths has 5"));

  cf_options.cf_paths.resize(4);
  for (const CompactionStyle style :
       {kCompactionStyleLevel, kCompactionStyleUniversal,
        kCompactionStyleNone}) {
    cf_options.compaction_style = style;
    ASSERT_OK(error());
  }

  cf_options.level_blob_path_ids = {0, 3, 4};
  EXPECT_TRUE(error().IsInvalidArgument());
  for (const char* part : {"level_blob_path_ids", "path id 4", "level 2"}) {
    EXPECT_TRUE(Mentions(error().ToString(), part)) << error().ToString();
  }

  cf_options.level_blob_path_ids = {0, 3};
  cf_options.cf_paths.resize(2);
  for (const char* part : {"level_blob_path_ids", "path id 3", "level 1"}) {
    EXPECT_TRUE(Mentions(error().ToString(), part)) << error().ToString();
  }
}

TEST(PathOptionsValidationTest, InvalidPathsOfSortedDeltasAreRefused) {
  DBOptions db_options;
  ColumnFamilyOptions cf_options;
  const auto error = [&]() {
    return ValidatePathOptions(db_options, cf_options);
  };
  cf_options.delta_sorted_path_id = 0;
  ASSERT_OK(error());
  cf_options.delta_sorted_path_id = 1;
  EXPECT_TRUE(error().IsInvalidArgument());
  for (const char* part : {"delta_sorted_path_id", "path id 1 names no path"}) {
    EXPECT_TRUE(Mentions(error().ToString(), part)) << error().ToString();
  }
  cf_options.cf_paths.resize(2);
  ASSERT_OK(error());
  cf_options.cf_paths.resize(5);
  EXPECT_TRUE(error().IsInvalidArgument());
  EXPECT_TRUE(Mentions(error().ToString(),
                       "delta_sorted_path_id supports at most 4 paths"))
      << error().ToString();
  cf_options.cf_paths.clear();
  db_options.db_paths = {{"/a", 1}, {"/b", 2}};
  ASSERT_OK(error());
  // It is no layout of files that compactions write.
  db_options.compaction_service = std::make_shared<NoCompactionService>();
  ASSERT_OK(error());
}

TEST(PathOptionsValidationTest, DbPathsStandInForCfPaths) {
  DBOptions db_options;
  ColumnFamilyOptions cf_options;
  cf_options.level_sst_path_ids = {0};
  ASSERT_OK(ValidatePathOptions(db_options, cf_options));
  cf_options.level_sst_path_ids = {0, 1};
  EXPECT_TRUE(ValidatePathOptions(db_options, cf_options).IsInvalidArgument());
  db_options.db_paths = {{"/a", 1}, {"/b", 2}};
  ASSERT_OK(ValidatePathOptions(db_options, cf_options));
  cf_options.level_sst_path_ids = {0, 2};
  const Status s = ValidatePathOptions(db_options, cf_options);
  EXPECT_TRUE(Mentions(s.ToString(), "cf_paths (or db_paths) has 2"))
      << s.ToString();
  cf_options.level_sst_path_ids = {0, 1};
  cf_options.cf_paths = {{"/a", 1}};
  EXPECT_TRUE(ValidatePathOptions(db_options, cf_options).IsInvalidArgument());
}

TEST(PathOptionsValidationTest, OverrideCfPathsChangesFamiliesWithALayout) {
  ColumnFamilyOptions plain;
  plain.cf_paths = {{"/old0", 1}, {"/old1", 2}};
  ColumnFamilyOptions tiered = plain;
  tiered.level_sst_path_ids = {0, 1};
  std::vector<ColumnFamilyDescriptor> cfs{{"default", plain}, {"one", tiered}};

  Status s = OverrideCfPaths({{"/new", 1}}, &cfs);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Mentions(s.ToString(), "one")) << s.ToString();
  EXPECT_EQ(cfs[1].options.cf_paths[1].path, "/old1");

  ASSERT_OK(OverrideCfPaths({{"/new0", 1}, {"/new1", 2}}, &cfs));
  EXPECT_EQ(cfs[0].options.cf_paths[1].path, "/old1");
  EXPECT_EQ(cfs[1].options.cf_paths[1].path, "/new1");

  cfs[0].options.delta_sorted_path_id = 1;
  s = OverrideCfPaths({{"/new", 1}}, &cfs);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  ASSERT_OK(OverrideCfPaths({{"/new0", 1}, {"/new1", 2}}, &cfs));
  EXPECT_EQ(cfs[0].options.cf_paths[1].path, "/new1");
}

// A DB.

class PathOptionsTest : public DBTestBase {
 public:
  PathOptionsTest() : DBTestBase("path_options_test", /*env_do_fsync=*/false) {}

  ~PathOptionsTest() override {
    Close();
    for (int i = 0; i < kPaths; ++i) {
      EXPECT_OK(DestroyDir(env_, Dir(i)));
    }
  }

 protected:
  static constexpr int kPaths = 5;

  std::string Dir(int i) const { return dbname_ + "_p" + std::to_string(i); }

  Options WithPaths(int num_paths) {
    Options options = CurrentOptions();
    options.create_if_missing = true;
    options.disable_auto_compactions = true;
    for (int i = 0; i < num_paths; ++i) {
      options.cf_paths.emplace_back(Dir(i), kNoLimit);
    }
    return options;
  }

  // Returns the options that a tool loads that knows only the directory of the
  // DB.
  ColumnFamilyOptions LoadedOptions(const std::string& cf_name) {
    DBOptions db_options;
    std::vector<ColumnFamilyDescriptor> cf_descs;
    ConfigOptions config;
    config.env = env_;
    EXPECT_OK(LoadLatestOptions(config, dbname_, &db_options, &cf_descs));
    for (const auto& cf : cf_descs) {
      if (cf.name == cf_name) {
        return cf.options;
      }
    }
    ADD_FAILURE() << "no column family " << cf_name;
    return ColumnFamilyOptions();
  }

  std::string OptionsFile() {
    std::string name;
    EXPECT_OK(GetLatestOptionsFileName(dbname_, env_, &name));
    std::string text;
    EXPECT_OK(ReadFileToString(env_, dbname_ + "/" + name, &text));
    return text;
  }

  std::string Log() {
    std::string text;
    EXPECT_OK(ReadFileToString(env_, dbname_ + "/LOG", &text));
    return text;
  }

  size_t CountFiles(const std::string& dir, FileType type) {
    std::vector<std::string> names;
    env_->GetChildren(dir, &names).PermitUncheckedError();
    size_t count = 0;
    for (const auto& name : names) {
      uint64_t number;
      FileType found;
      if (ParseFileName(name, &number, &found) && found == type) {
        ++count;
      }
    }
    return count;
  }
};

TEST_F(PathOptionsTest, OpenRefusesInvalidLayouts) {
  Options options = WithPaths(2);
  options.level_sst_path_ids = {0, 2};
  Status s = TryReopen(options);
  EXPECT_TRUE(s.IsInvalidArgument());
  for (const char* part : {"level_sst_path_ids", "path id 2", "level 1"}) {
    EXPECT_TRUE(Mentions(s.ToString(), part)) << s.ToString();
  }
  options.level_sst_path_ids = {0, 1};
  options.compaction_service = std::make_shared<NoCompactionService>();
  s = TryReopen(options);
  EXPECT_TRUE(s.IsNotSupported());
  EXPECT_TRUE(Mentions(s.ToString(), "compaction_service")) << s.ToString();
  options.compaction_service.reset();
  ASSERT_OK(TryReopen(options));
}

// RocksDB opens such a DB. The first compaction that fills the fifth path
// fails: it writes its file there and looks for it on the first path.
TEST_F(PathOptionsTest, MoreThanFourPathsAreRefusedWithoutALayout) {
  Status s = TryReopen(WithPaths(5));
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_TRUE(Mentions(s.ToString(), "cf_paths has 5")) << s.ToString();
  ASSERT_OK(TryReopen(WithPaths(4)));
  ColumnFamilyHandle* handle = nullptr;
  s = db_->CreateColumnFamily(WithPaths(5), "five", &handle);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_EQ(handle, nullptr);
  ASSERT_OK(TryReopen(WithPaths(4)));
}

TEST_F(PathOptionsTest, CreateColumnFamilyRefusesInvalidLayouts) {
  DestroyAndReopen(WithPaths(1));
  ColumnFamilyOptions cf_options(WithPaths(2));
  cf_options.level_blob_path_ids = {2};
  ColumnFamilyHandle* handle = nullptr;
  const Status s = db_->CreateColumnFamily(cf_options, "tiered", &handle);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Mentions(s.ToString(), "level_blob_path_ids")) << s.ToString();
  EXPECT_EQ(handle, nullptr);

  cf_options.level_blob_path_ids = {1};
  ASSERT_OK(db_->CreateColumnFamily(cf_options, "tiered", &handle));
  handles_.push_back(handle);
  EXPECT_EQ(LoadedOptions("tiered").cf_paths.size(), 2);
  EXPECT_TRUE(LoadedOptions("default").cf_paths.empty());
}

TEST_F(PathOptionsTest, SetOptionsChecksAppliesAndPersists) {
  DestroyAndReopen(WithPaths(2));
  ASSERT_FALSE(Mentions(OptionsFile(), "path"));

  Status s = db_->SetOptions({{"level_sst_path_ids", "0:0:2"}});
  EXPECT_TRUE(s.IsInvalidArgument());
  for (const char* part : {"level_sst_path_ids", "path id 2", "level 2"}) {
    EXPECT_TRUE(Mentions(s.ToString(), part)) << s.ToString();
  }
  EXPECT_TRUE(db_->GetOptions().level_sst_path_ids.empty());
  EXPECT_TRUE(
      db_->SetOptions({{"cf_paths", "/elsewhere"}}).IsInvalidArgument());

  // If one of two options is bad, neither is applied.
  s = db_->SetOptions(
      {{"level_sst_path_ids", "0:1"}, {"level_blob_path_ids", "4"}});
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(db_->GetOptions().level_sst_path_ids.empty());

  ASSERT_OK(db_->SetOptions(
      {{"level_sst_path_ids", "1,0"}, {"level_blob_path_ids", "1"}}));
  EXPECT_EQ(db_->GetOptions().level_sst_path_ids,
            (std::vector<uint32_t>{1, 0}));
  const ColumnFamilyOptions loaded = LoadedOptions("default");
  EXPECT_EQ(loaded.level_sst_path_ids, (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(loaded.level_blob_path_ids, std::vector<uint32_t>{1});
  ASSERT_EQ(loaded.cf_paths.size(), 2);
  EXPECT_EQ(loaded.cf_paths[1].path, Dir(1));
  EXPECT_TRUE(Mentions(Log(), "level_sst_path_ids: 1:0"));

  // Without a layout the file is one that RocksDB writes and reads.
  ASSERT_OK(db_->SetOptions(
      {{"level_sst_path_ids", ""}, {"level_blob_path_ids", "{}"}}));
  EXPECT_TRUE(db_->GetOptions().level_sst_path_ids.empty());
  EXPECT_TRUE(db_->GetOptions().level_blob_path_ids.empty());
  EXPECT_FALSE(Mentions(OptionsFile(), "path"));
}

TEST_F(PathOptionsTest, ThePathOfSortedDeltasIsCheckedAndStored) {
  DestroyAndReopen(WithPaths(2));
  Status s = db_->SetOptions({{"delta_sorted_path_id", "2"}});
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Mentions(s.ToString(), "delta_sorted_path_id: path id 2"))
      << s.ToString();
  s = db_->SetOptions({{"delta_sorted_path_id", "-2"}});
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_EQ(db_->GetOptions().delta_sorted_path_id, -1);
  EXPECT_FALSE(Mentions(OptionsFile(), "path"));

  ASSERT_OK(db_->SetOptions({{"delta_sorted_path_id", "1"}}));
  const ColumnFamilyOptions loaded = LoadedOptions("default");
  EXPECT_EQ(loaded.delta_sorted_path_id, 1);
  ASSERT_EQ(loaded.cf_paths.size(), 2);
  EXPECT_EQ(loaded.cf_paths[1].path, Dir(1));
  EXPECT_TRUE(Mentions(Log(), "delta_sorted_path_id: 1"));

  ASSERT_OK(db_->SetOptions({{"delta_sorted_path_id", "-1"}}));
  EXPECT_FALSE(Mentions(OptionsFile(), "path"));
  Options options = WithPaths(2);
  options.delta_sorted_path_id = 2;
  EXPECT_TRUE(TryReopen(options).IsInvalidArgument());
}

TEST_F(PathOptionsTest, LoadedOptionsOpenTheDb) {
  Options options = WithPaths(2);
  options.enable_blob_files = true;
  options.min_blob_size = 0;
  options.level_sst_path_ids = {1};
  options.level_blob_path_ids = {0};
  DestroyAndReopen(options);
  ASSERT_OK(Put("key", "value"));
  ASSERT_OK(Flush());
  EXPECT_EQ(CountFiles(Dir(1), kTableFile), 1);
  Close();

  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> cf_descs;
  ConfigOptions config;
  config.env = env_;
  ASSERT_OK(LoadLatestOptions(config, dbname_, &db_options, &cf_descs));
  ASSERT_OK(CheckOptionsCompatibility(config, dbname_, db_options, cf_descs));
  const auto check = [&](bool read_only) {
    std::vector<ColumnFamilyHandle*> handles;
    std::unique_ptr<DB> db;
    ASSERT_OK(
        read_only
            ? DB::OpenForReadOnly(db_options, dbname_, cf_descs, &handles, &db)
            : DB::Open(db_options, dbname_, cf_descs, &handles, &db));
    std::string value;
    ASSERT_OK(db->Get(ReadOptions(), "key", &value));
    EXPECT_EQ(value, "value");
    for (auto* handle : handles) {
      ASSERT_OK(db->DestroyColumnFamilyHandle(handle));
    }
    ASSERT_OK(db->Close());
  };
  check(/*read_only=*/true);
  check(/*read_only=*/false);

  // The DB moves: one of its directories gets another name.
  ASSERT_OK(env_->RenameFile(Dir(1), Dir(2)));
  ASSERT_OK(
      OverrideCfPaths({{Dir(0), kNoLimit}, {Dir(2), kNoLimit}}, &cf_descs));
  ASSERT_OK(CheckOptionsCompatibility(config, dbname_, db_options, cf_descs));
  check(/*read_only=*/true);
  check(/*read_only=*/false);
  EXPECT_EQ(LoadedOptions("default").cf_paths[1].path, Dir(2));
}

TEST_F(PathOptionsTest, ReadOnlyAndSecondaryRefuseBadIds) {
  Options options = WithPaths(3);
  options.enable_blob_files = true;
  options.min_blob_size = 0;
  options.level_sst_path_ids = {1};
  options.level_blob_path_ids = {2};
  DestroyAndReopen(options);
  ASSERT_OK(Put("key", "value"));
  ASSERT_OK(Flush());
  ASSERT_EQ(CountFiles(Dir(1), kTableFile), 1);
  ASSERT_EQ(CountFiles(Dir(2), kBlobFile), 1);

  std::unique_ptr<DB> db;
  std::string value;
  options.max_open_files = -1;
  ASSERT_OK(DB::OpenAsSecondary(options, dbname_, dbname_ + "_secondary", &db));
  ASSERT_OK(db->Get(ReadOptions(), "key", &value));
  db.reset();
  Close();
  // With -1 the open would choose CompactedDBImpl, which cannot read blobs.
  options.max_open_files = 100;
  ASSERT_OK(DB::OpenForReadOnly(options, dbname_, &db));
  ASSERT_OK(db->Get(ReadOptions(), "key", &value));
  db.reset();

  // The user has forgotten the paths.
  options.cf_paths.clear();
  for (const Status& s :
       {DB::OpenForReadOnly(options, dbname_, &db),
        DB::OpenAsSecondary(options, dbname_, dbname_ + "_secondary", &db)}) {
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_TRUE(Mentions(s.ToString(), "level_sst_path_ids"));
  }
  options.cf_paths = {{Dir(0), 1}, {Dir(1), 1}, {Dir(2), 1}};
  const Status s =
      DB::OpenAsFollower(options, dbname_ + "_follower", dbname_, &db);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_OK(DestroyDir(env_, dbname_ + "_secondary"));
}

TEST_F(PathOptionsTest, SstLayoutKeepsDynamicLevelBytes) {
  Options options = WithPaths(3);
  options.level_compaction_dynamic_level_bytes = true;
  options.num_levels = 7;
  // Without an SST layout the rule of RocksDB applies.
  options.level_blob_path_ids = {1};
  DestroyAndReopen(options);
  EXPECT_FALSE(db_->GetOptions().level_compaction_dynamic_level_bytes);
  EXPECT_FALSE(Mentions(Log(), "leaves the levels between them empty"));

  options.level_blob_path_ids.clear();
  options.level_sst_path_ids = {0, 1, 1, 2};
  Reopen(options);
  EXPECT_TRUE(db_->GetOptions().level_compaction_dynamic_level_bytes);
  EXPECT_TRUE(Mentions(Log(), "level_sst_path_ids: level_compaction_dynamic"));
  EXPECT_TRUE(Mentions(Log(), "into level 6 (path 2)"));
  EXPECT_TRUE(Mentions(Log(), "of levels: 1 (path 1), 2 (path 1)\n"));

  // There is no warning if skipped levels and base level are on one path.
  options.level_sst_path_ids = {0, 1};
  Reopen(options);
  EXPECT_TRUE(db_->GetOptions().level_compaction_dynamic_level_bytes);
  EXPECT_FALSE(Mentions(Log(), "leaves the levels between them empty"));

  options.level_compaction_dynamic_level_bytes = false;
  options.level_sst_path_ids = {0, 1, 1, 2};
  Reopen(options);
  EXPECT_FALSE(Mentions(Log(), "leaves the levels between them empty"));
}

TEST_F(PathOptionsTest, LogNamesPathsOnlyWithALayout) {
  DestroyAndReopen(WithPaths(2));
  EXPECT_FALSE(Mentions(Log(), "_path_ids"));
  EXPECT_FALSE(Mentions(Log(), "cf_paths:"));
  Options options = WithPaths(2);
  options.level_blob_path_ids = {0, 1};
  Reopen(options);
  EXPECT_TRUE(Mentions(Log(), "Options.level_blob_path_ids: 0:1"));
  EXPECT_TRUE(Mentions(Log(), "Options.cf_paths: "));
  EXPECT_FALSE(Mentions(Log(), "level_sst_path_ids"));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
