//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/address_map_options.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/column_family.h"
#include "db/db_test_util.h"
#include "file/file_util.h"
#include "options/cf_options.h"
#include "options/options_helper.h"
#include "options/options_parser.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "rocksdb/convenience.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/testutil.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

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

// The comparator takes upper and lower case as equal, so the map could not
// recognize a key by its bytes.
class CaselessComparator : public Comparator {
 public:
  const char* Name() const override { return "CaselessComparator"; }
  int Compare(const Slice& a, const Slice& b) const override {
    return Slice(Lower(a)).compare(Lower(b));
  }
  void FindShortestSeparator(std::string* /*start*/,
                             const Slice& /*limit*/) const override {}
  void FindShortSuccessor(std::string* /*key*/) const override {}
  bool CanKeysWithDifferentByteContentsBeEqual() const override { return true; }

 private:
  static std::string Lower(const Slice& key) {
    std::string result = key.ToString();
    for (char& c : result) {
      if (c >= 'A' && c <= 'Z') {
        c = static_cast<char>(c - 'A' + 'a');
      }
    }
    return result;
  }
};

const Comparator* Caseless() {
  static const CaselessComparator comparator{};
  return &comparator;
}

// A change of options that cannot be combined with the map, and the parts of
// the error message.
struct Refusal {
  std::string name;
  std::function<void(Options*)> change;
  Status::Code code = Status::kNotSupported;
  std::vector<std::string> parts;
};

std::vector<Refusal> Refusals() {
  const std::string with = "enable_blob_address_map cannot be combined with ";
  return {
      {"no blob files",
       [](Options* o) { o->enable_blob_files = false; },
       Status::kInvalidArgument,
       {"enable_blob_address_map needs enable_blob_files", "blob files"}},
      {"direct write",
       [](Options* o) { o->enable_blob_direct_write = true; },
       Status::kNotSupported,
       {with + "enable_blob_direct_write", "when a flush has written them"}},
      {"inplace updates",
       [](Options* o) { o->inplace_update_support = true; },
       Status::kNotSupported,
       {with + "inplace_update_support", "under its sequence number"}},
      {"mempurge",
       [](Options* o) { o->experimental_mempurge_threshold = 1; },
       Status::kNotSupported,
       {with + "experimental_mempurge_threshold", "older entries"}},
      {"FIFO",
       [](Options* o) { o->compaction_style = kCompactionStyleFIFO; },
       Status::kNotSupported,
       {with + "FIFO compaction", "drops whole files"}},
      {"ingest behind of the family",
       [](Options* o) { o->cf_allow_ingest_behind = true; },
       Status::kNotSupported,
       {with + "ingest behind", "sequence numbers"}},
      {"timestamps",
       [](Options* o) {
         o->comparator = test::BytewiseComparatorWithU64TsWrapper();
       },
       Status::kNotSupported,
       {with + "user-defined timestamps", "by its bytes"}},
      {"comparator",
       [](Options* o) { o->comparator = Caseless(); },
       Status::kNotSupported,
       {with + "a comparator for which different bytes can be equal",
        "by its bytes"}},
      {"plain table",
       [](Options* o) { o->table_factory.reset(NewPlainTableFactory()); },
       Status::kNotSupported,
       {with + "a table format other than the block-based one",
        "mapped entries"}},
      {"cuckoo table",
       [](Options* o) { o->table_factory.reset(NewCuckooTableFactory()); },
       Status::kNotSupported,
       {with + "a table format other than the block-based one",
        "mapped entries"}},
  };
}

}  // namespace

// Text.

// RocksDB could not load the OPTIONS file of a database without the map if it
// named the options.
TEST(AddressMapOptionsTextTest, DefaultsAreNotWritten) {
  const std::string text = Serialize(ColumnFamilyOptions());
  EXPECT_FALSE(Mentions(text, "address_map")) << text;
  EXPECT_FALSE(Mentions(text, "lsm_bypass")) << text;
}

TEST(AddressMapOptionsTextTest, StringRoundTripKeepsTheOptions) {
  for (const bool map : {false, true}) {
    for (const bool bypass : {false, true}) {
      ColumnFamilyOptions options;
      options.enable_blob_files = true;
      options.enable_blob_address_map = map;
      options.enable_lsm_bypass = bypass;
      const std::string text = Serialize(options);
      EXPECT_EQ(Mentions(text, "enable_blob_address_map=true;"), map) << text;
      EXPECT_EQ(Mentions(text, "enable_lsm_bypass=false;"), !bypass) << text;
      ColumnFamilyOptions parsed;
      ASSERT_OK(Parse(text, &parsed));
      EXPECT_EQ(parsed.enable_blob_address_map, map);
      EXPECT_EQ(parsed.enable_lsm_bypass, bypass);
      ASSERT_OK(RocksDBOptionsParser::VerifyCFOptions(ConfigOptions(), options,
                                                      parsed));
    }
  }
}

TEST(AddressMapOptionsTextTest, OptionsAreReadFromNamesAndValues) {
  ColumnFamilyOptions options;
  ASSERT_OK(GetColumnFamilyOptionsFromMap(
      ConfigOptions(), ColumnFamilyOptions(),
      {{"enable_blob_address_map", "true"}, {"enable_lsm_bypass", "false"}},
      &options));
  EXPECT_TRUE(options.enable_blob_address_map);
  EXPECT_FALSE(options.enable_lsm_bypass);
  // Options that are not in the list stay as in the base.
  ColumnFamilyOptions same;
  ASSERT_OK(GetColumnFamilyOptionsFromMap(
      ConfigOptions(), options, {{"write_buffer_size", "65536"}}, &same));
  EXPECT_TRUE(same.enable_blob_address_map);
  EXPECT_FALSE(same.enable_lsm_bypass);
  // The options are set back to their defaults.
  ColumnFamilyOptions off;
  ASSERT_OK(GetColumnFamilyOptionsFromMap(
      ConfigOptions(), options,
      {{"enable_blob_address_map", "false"}, {"enable_lsm_bypass", "true"}},
      &off));
  EXPECT_FALSE(off.enable_blob_address_map);
  EXPECT_TRUE(off.enable_lsm_bypass);
  // The text of the default is empty.
  ASSERT_OK(GetColumnFamilyOptionsFromMap(
      ConfigOptions(), options,
      {{"enable_blob_address_map", ""}, {"enable_lsm_bypass", ""}}, &off));
  EXPECT_FALSE(off.enable_blob_address_map);
  EXPECT_TRUE(off.enable_lsm_bypass);
}

TEST(AddressMapOptionsTextTest, ErrorsNameTheOption) {
  for (const char* name : {"enable_blob_address_map", "enable_lsm_bypass"}) {
    ColumnFamilyOptions options;
    const Status s = Parse(std::string(name) + "=perhaps", &options);
    EXPECT_TRUE(s.IsInvalidArgument()) << name << ": " << s.ToString();
    EXPECT_TRUE(Mentions(s.ToString(), name)) << s.ToString();
  }
}

TEST(AddressMapOptionsTextTest, DifferencesAreFoundAndNamed) {
  ColumnFamilyOptions one;
  one.enable_blob_address_map = true;
  ColumnFamilyOptions other = one;
  other.enable_blob_address_map = false;
  Status s = RocksDBOptionsParser::VerifyCFOptions(ConfigOptions(), one, other);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Mentions(s.ToString(), "enable_blob_address_map"))
      << s.ToString();
  other = one;
  other.enable_lsm_bypass = false;
  s = RocksDBOptionsParser::VerifyCFOptions(ConfigOptions(), one, other);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Mentions(s.ToString(), "enable_lsm_bypass")) << s.ToString();
}

TEST(AddressMapOptionsTextTest, CopiesKeepTheOptions) {
  Options options;
  options.enable_blob_address_map = true;
  options.enable_lsm_bypass = false;
  const ColumnFamilyOptions cf_options(options);
  EXPECT_TRUE(cf_options.enable_blob_address_map);
  EXPECT_FALSE(cf_options.enable_lsm_bypass);
  ColumnFamilyOptions back;
  UpdateColumnFamilyOptions(ImmutableCFOptions(cf_options), &back);
  EXPECT_TRUE(back.enable_blob_address_map);
  EXPECT_FALSE(back.enable_lsm_bypass);
}

// Validation without a DB.

TEST(AddressMapOptionsValidationTest, NothingIsRefusedWithoutTheMap) {
  for (const Refusal& refusal : Refusals()) {
    Options options;
    options.enable_blob_files = true;
    refusal.change(&options);
    ASSERT_OK(ValidateAddressMapOptions(options, options)) << refusal.name;
  }
}

// Some options are refused also without the map, for a column family that has
// values in it already.
TEST(AddressMapOptionsValidationTest, OldMappedValuesRefuseSomeOptions) {
  size_t refused = 0;
  for (const Refusal& refusal : Refusals()) {
    Options options;
    options.enable_blob_files = true;
    refusal.change(&options);
    const Status s = ValidateOptionsOfMappedValues(options, options);
    const bool expected = refusal.name == "mempurge" ||
                          refusal.name == "FIFO" ||
                          refusal.name == "timestamps" ||
                          refusal.name == "ingest behind of the family";
    EXPECT_EQ(s.IsNotSupported(), expected)
        << refusal.name << ": " << s.ToString();
    EXPECT_EQ(s.ok(), !expected) << refusal.name << ": " << s.ToString();
    refused += expected ? 1 : 0;
  }
  EXPECT_EQ(refused, 4);
}

TEST(AddressMapOptionsValidationTest, RefusalOfASecondaryNamesTheFamily) {
  ColumnFamilyOptions mapped;
  mapped.enable_blob_address_map = true;
  ASSERT_OK(ValidateAddressMapOptionsOfSecondary(
      {{"default", ColumnFamilyOptions()}, {"one", ColumnFamilyOptions()}}));
  const Status s = ValidateAddressMapOptionsOfSecondary(
      {{"default", ColumnFamilyOptions()}, {"one", mapped}});
  EXPECT_TRUE(s.IsNotSupported());
  EXPECT_TRUE(Mentions(s.ToString(), "secondary or follower")) << s.ToString();
  EXPECT_TRUE(Mentions(s.ToString(), "column family one")) << s.ToString();
}

#ifndef NDEBUG
// Variables of the environment turn the map on for tests that do not use it.
TEST(AddressMapOptionsValidationTest, EnvironmentForcesTheMap) {
  const char* const kMap = "STRATA_FORCE_ADDRESS_MAP";
  const char* const kBlobFiles = "STRATA_FORCE_BLOB_FILES";
  std::map<std::string, std::optional<std::string>> before;
  for (const char* const variable : {kMap, kBlobFiles}) {
    const char* const value = std::getenv(variable);
    before[variable] =
        value == nullptr ? std::nullopt : std::optional<std::string>(value);
    ASSERT_EQ(unsetenv(variable), 0);
  }

  ColumnFamilyOptions options;
  ForceAddressMapForTests(DBOptions(), &options);
  EXPECT_FALSE(options.enable_blob_address_map);
  EXPECT_FALSE(options.enable_blob_files);

  ASSERT_EQ(setenv(kBlobFiles, "5", /*overwrite=*/1), 0);
  ForceAddressMapForTests(DBOptions(), &options);
  EXPECT_FALSE(options.enable_blob_address_map);
  EXPECT_TRUE(options.enable_blob_files);
  EXPECT_EQ(options.min_blob_size, 5);

  // The variable of the map has priority.
  options = ColumnFamilyOptions();
  ASSERT_EQ(setenv(kMap, "7", /*overwrite=*/1), 0);
  ForceAddressMapForTests(DBOptions(), &options);
  EXPECT_TRUE(options.enable_blob_address_map);
  EXPECT_TRUE(options.enable_blob_files);
  EXPECT_EQ(options.min_blob_size, 7);
  // The options of a test are left alone if they have blob files already, or
  // cannot be combined with the map.
  ColumnFamilyOptions with_blobs;
  with_blobs.enable_blob_files = true;
  ForceAddressMapForTests(DBOptions(), &with_blobs);
  EXPECT_FALSE(with_blobs.enable_blob_address_map);
  ColumnFamilyOptions fifo;
  fifo.compaction_style = kCompactionStyleFIFO;
  ForceAddressMapForTests(DBOptions(), &fifo);
  EXPECT_FALSE(fifo.enable_blob_address_map);
  EXPECT_FALSE(fifo.enable_blob_files);

  for (const auto& [variable, value] : before) {
    ASSERT_EQ(unsetenv(variable.c_str()), 0);
    if (value.has_value()) {
      ASSERT_EQ(setenv(variable.c_str(), value->c_str(), /*overwrite=*/1), 0);
    }
  }
}
#endif  // !NDEBUG

// A DB.

class AddressMapOptionsTest : public DBTestBase {
 public:
  AddressMapOptionsTest()
      : DBTestBase("address_map_options_test", /*env_do_fsync=*/false) {}

  ~AddressMapOptionsTest() override {
    Close();
    EXPECT_OK(DestroyDir(env_, SecondaryDir()));
  }

 protected:
  std::string SecondaryDir() const { return dbname_ + "_secondary"; }

  Options PlainOptions() {
    Options options = CurrentOptions();
    options.enable_blob_files = true;
    options.min_blob_size = 0;
    options.disable_auto_compactions = true;
    // Otherwise other checks refuse some combinations before those of the map.
    options.allow_concurrent_memtable_write = false;
    options.max_open_files = -1;
    return options;
  }

  Options MapOptions() {
    Options options = PlainOptions();
    options.enable_blob_address_map = true;
    return options;
  }

  static AddressMapStore* BlobsOf(ColumnFamilyHandle* family) {
    return static_cast_with_check<ColumnFamilyHandleImpl>(family)
        ->cfd()
        ->address_map_store();
  }
  AddressMapStore* Blobs() { return BlobsOf(db_->DefaultColumnFamily()); }

  void CheckMap(uint64_t entries) {
    ASSERT_NE(Blobs(), nullptr);
    EXPECT_OK(Blobs()->map()->TEST_Check());
    EXPECT_EQ(Blobs()->map()->NumEntries(), entries);
  }

  static void CheckRefusal(const Refusal& refusal, const Status& s) {
    EXPECT_EQ(s.code(), refusal.code) << refusal.name << ": " << s.ToString();
    for (const std::string& part : refusal.parts) {
      EXPECT_TRUE(Mentions(s.ToString(), part))
          << refusal.name << ", " << part << ": " << s.ToString();
    }
  }

  // Loads the options as a tool does that knows only the directory of the DB.
  void Load(DBOptions* db_options, std::vector<ColumnFamilyDescriptor>* cfs) {
    ConfigOptions config;
    config.env = env_;
    ASSERT_OK(LoadLatestOptions(config, dbname_, db_options, cfs));
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

  std::vector<std::string> Families() {
    std::vector<std::string> names;
    EXPECT_OK(DB::ListColumnFamilies(DBOptions(MapOptions()), dbname_, &names));
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(AddressMapOptionsTest, OptionsFileHasTheOptionsOnlyIfSet) {
  DestroyAndReopen(PlainOptions());
  EXPECT_FALSE(Mentions(OptionsFile(), "address_map"));
  EXPECT_FALSE(Mentions(OptionsFile(), "lsm_bypass"));

  Options options = MapOptions();
  options.enable_lsm_bypass = false;
  Reopen(options);
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Flush());
  EXPECT_TRUE(Mentions(OptionsFile(), "enable_blob_address_map=true"));
  EXPECT_TRUE(Mentions(OptionsFile(), "enable_lsm_bypass=false"));
  // A change of another option writes a new file.
  ASSERT_OK(db_->SetOptions({{"write_buffer_size", "33554432"}}));
  EXPECT_TRUE(Mentions(OptionsFile(), "enable_blob_address_map=true"));

  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> cfs;
  Load(&db_options, &cfs);
  ASSERT_EQ(cfs.size(), 1);
  EXPECT_TRUE(cfs[0].options.enable_blob_address_map);
  EXPECT_FALSE(cfs[0].options.enable_lsm_bypass);
  ConfigOptions config;
  config.env = env_;
  ASSERT_OK(CheckOptionsCompatibility(config, dbname_, db_options, cfs));
  std::vector<ColumnFamilyDescriptor> changed = cfs;
  changed[0].options.enable_lsm_bypass = true;
  Status s = CheckOptionsCompatibility(config, dbname_, db_options, changed);
  EXPECT_NOK(s);
  EXPECT_TRUE(Mentions(s.ToString(), "enable_lsm_bypass")) << s.ToString();
  changed = cfs;
  changed[0].options.enable_blob_address_map = false;
  s = CheckOptionsCompatibility(config, dbname_, db_options, changed);
  EXPECT_NOK(s);
  EXPECT_TRUE(Mentions(s.ToString(), "enable_blob_address_map"))
      << s.ToString();

  // The loaded options open the database, with its map.
  Close();
  std::vector<ColumnFamilyHandle*> handles;
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(db_options, dbname_, cfs, &handles, &db));
  ASSERT_EQ(handles.size(), 1);
  std::string value;
  ASSERT_OK(db->Get(ReadOptions(), "k", &value));
  EXPECT_EQ(value, "v");
  ASSERT_NE(BlobsOf(handles[0]), nullptr);
  EXPECT_OK(BlobsOf(handles[0])->map()->TEST_Check());
  EXPECT_EQ(BlobsOf(handles[0])->map()->NumEntries(), 1);
  EXPECT_FALSE(BlobsOf(handles[0])->bypass());
  ASSERT_OK(db->DestroyColumnFamilyHandle(handles[0]));
  ASSERT_OK(db->Close());
  db.reset();

  // Without the map the file names none of the options, so RocksDB can load it.
  Reopen(PlainOptions());
  EXPECT_FALSE(Mentions(OptionsFile(), "address_map"));
  EXPECT_FALSE(Mentions(OptionsFile(), "lsm_bypass"));
  EXPECT_EQ(Get("k"), "v");
  CheckMap(1);
}

TEST_F(AddressMapOptionsTest, SetOptionsRefusesConflicts) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Flush());
  struct Change {
    const char* name;
    const char* value;
    Status::Code code;
    std::string part;
  };
  const std::string with = "enable_blob_address_map cannot be combined with ";
  const std::vector<Change> changes = {
      {"enable_blob_address_map", "false", Status::kInvalidArgument,
       "enable_blob_address_map"},
      {"enable_blob_address_map", "true", Status::kInvalidArgument,
       "enable_blob_address_map"},
      {"enable_lsm_bypass", "false", Status::kInvalidArgument,
       "enable_lsm_bypass"},
      {"enable_blob_files", "false", Status::kInvalidArgument,
       "enable_blob_address_map needs enable_blob_files"},
      {"experimental_mempurge_threshold", "1.0", Status::kNotSupported,
       with + "experimental_mempurge_threshold"},
  };
  for (const Change& change : changes) {
    Status s = db_->SetOptions({{change.name, change.value}});
    EXPECT_EQ(s.code(), change.code) << change.name << ": " << s.ToString();
    EXPECT_TRUE(Mentions(s.ToString(), change.part)) << s.ToString();
    // If one of two options is bad, neither is applied.
    s = db_->SetOptions(
        {{"min_blob_size", "1000"}, {change.name, change.value}});
    EXPECT_EQ(s.code(), change.code) << change.name << ": " << s.ToString();
    const Options now = db_->GetOptions();
    EXPECT_TRUE(now.enable_blob_address_map) << change.name;
    EXPECT_TRUE(now.enable_lsm_bypass) << change.name;
    EXPECT_TRUE(now.enable_blob_files) << change.name;
    EXPECT_EQ(now.experimental_mempurge_threshold, 0.0) << change.name;
    EXPECT_EQ(now.min_blob_size, 0) << change.name;
  }
  // Other options can be set, and the database still flushes.
  ASSERT_OK(db_->SetOptions({{"min_blob_size", "10"}}));
  ASSERT_OK(Put("small", "v"));
  ASSERT_OK(Put("large", std::string(20, 'v')));
  ASSERT_OK(Flush());
  CheckMap(2);
  EXPECT_EQ(Get("small"), "v");
  EXPECT_EQ(Get("large"), std::string(20, 'v'));
}

// The options with which BlobDB collects garbage are kept, and the LOG says
// what collects it instead.
TEST_F(AddressMapOptionsTest, OptionsOfCollectionsByCompactionsAreAccepted) {
  Options options = MapOptions();
  options.blob_gc_space_amp_limit = 1.5;
  DestroyAndReopen(options);
  EXPECT_FALSE(Mentions(Log(), "has no effect"));
  EXPECT_FALSE(Mentions(Log(), "have no effect"));
  ASSERT_OK(db_->SetOptions({{"enable_blob_garbage_collection", "true"}}));
  EXPECT_TRUE(db_->GetOptions().enable_blob_garbage_collection);

  options.enable_blob_garbage_collection = true;
  options.blob_garbage_collection_age_cutoff = 1.0;
  options.blob_garbage_collection_force_threshold = 0.5;
  Reopen(options);
  EXPECT_TRUE(db_->GetOptions().enable_blob_garbage_collection);
  EXPECT_TRUE(
      Mentions(Log(),
               "[default] With enable_blob_address_map, blob garbage is "
               "collected by jobs of its own, within "
               "blob_gc_space_amp_limit = 1.5"));
  EXPECT_TRUE(Mentions(OptionsFile(), "enable_blob_garbage_collection=true"));

  options.blob_gc_space_amp_limit = 0;
  Reopen(options);
  EXPECT_TRUE(Mentions(Log(),
                       "blob_gc_space_amp_limit = 0 turns the collection of "
                       "blob garbage off"));
  EXPECT_TRUE(db_->SetOptions({{"blob_garbage_collection_age_cutoff", "2"}})
                  .IsInvalidArgument());
}

TEST_F(AddressMapOptionsTest, CompactionsCollectOnlyWithoutAMap) {
  for (const bool has_map : {false, true}) {
    for (const bool is_enabled : {false, true}) {
      Options options;
      options.enable_blob_address_map = has_map;
      options.enable_blob_garbage_collection = is_enabled;
      EXPECT_EQ(is_enabled && !has_map,
                CompactionsCollectBlobGarbage(ImmutableCFOptions(options),
                                              MutableCFOptions(options)));
    }
  }
}

// An open that is refused says why, and changes nothing.
TEST_F(AddressMapOptionsTest, OpenRefusesConflicts) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("l", "w"));
  std::vector<Refusal> refusals = Refusals();
  refusals.push_back(
      {"ingest behind of the DB",
       [](Options* o) { o->allow_ingest_behind = true; },
       Status::kNotSupported,
       {"enable_blob_address_map cannot be combined with ingest behind"}});
  for (const Refusal& refusal : refusals) {
    Options options = MapOptions();
    refusal.change(&options);
    CheckRefusal(refusal, TryReopen(options));
  }
  Reopen(MapOptions());
  EXPECT_EQ(Get("k"), "v");
  EXPECT_EQ(Get("l"), "w");
  ASSERT_OK(Flush());
  CheckMap(2);
}

// The open is also refused without the map while there are values in it,
// because values would be lost or come back.
TEST_F(AddressMapOptionsTest, OpenRefusesForOldValues) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Flush());
  const std::vector<Refusal> refusals = {
      {"mempurge",
       [](Options* o) { o->experimental_mempurge_threshold = 1; },
       Status::kNotSupported,
       {"experimental_mempurge_threshold"}},
      {"FIFO",
       [](Options* o) { o->compaction_style = kCompactionStyleFIFO; },
       Status::kNotSupported,
       {"FIFO compaction"}},
      {"ingest behind of the DB",
       [](Options* o) { o->allow_ingest_behind = true; },
       Status::kNotSupported,
       {"ingest behind"}},
      {"ingest behind of the family",
       [](Options* o) { o->cf_allow_ingest_behind = true; },
       Status::kNotSupported,
       {"ingest behind"}},
  };
  for (const Refusal& refusal : refusals) {
    Options options = PlainOptions();
    refusal.change(&options);
    const Status s = TryReopen(options);
    CheckRefusal(refusal, s);
    EXPECT_TRUE(Mentions(s.ToString(), "enable_blob_address_map"))
        << s.ToString();
  }
  // The open succeeds once the values have left the map, and so does
  // SetOptions().
  Reopen(PlainOptions());
  CheckMap(1);
  const std::unordered_map<std::string, std::string> purge = {
      {"experimental_mempurge_threshold", "1.0"}};
  CheckRefusal(refusals.front(), db_->SetOptions(purge));
  EXPECT_EQ(dbfull()->GetOptions().experimental_mempurge_threshold, 0.0);
  CompactRangeOptions force;
  force.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(force, nullptr, nullptr));
  // The files of the values are deleted in the background.
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
  }
  CheckMap(0);
  EXPECT_OK(db_->SetOptions(purge));
  Options options = PlainOptions();
  options.experimental_mempurge_threshold = 1;
  Reopen(options);
  EXPECT_EQ(Blobs(), nullptr);
  EXPECT_EQ(Get("k"), "v");
}

TEST_F(AddressMapOptionsTest, CreateColumnFamilyRefusesConflicts) {
  DestroyAndReopen(PlainOptions());
  for (const Refusal& refusal : Refusals()) {
    Options options = MapOptions();
    refusal.change(&options);
    ColumnFamilyHandle* handle = nullptr;
    CheckRefusal(refusal, db_->CreateColumnFamily(options, "mapped", &handle));
    EXPECT_EQ(handle, nullptr) << refusal.name;
  }
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(MapOptions(), "mapped", &handle));
  handles_.push_back(handle);
  ASSERT_NE(BlobsOf(handle), nullptr);
  EXPECT_EQ(Blobs(), nullptr);
  ASSERT_OK(db_->Put(WriteOptions(), handle, "k", "v"));
  ASSERT_OK(db_->Flush(FlushOptions(), handle));
  EXPECT_OK(BlobsOf(handle)->map()->TEST_Check());
  EXPECT_EQ(BlobsOf(handle)->map()->NumEntries(), 1);

  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> cfs;
  Load(&db_options, &cfs);
  ASSERT_EQ(cfs.size(), 2);
  for (const ColumnFamilyDescriptor& cf : cfs) {
    EXPECT_EQ(cf.options.enable_blob_address_map, cf.name == "mapped")
        << cf.name;
  }
  Close();
  EXPECT_EQ(Families(), (std::vector<std::string>{"default", "mapped"}));

  // The options of the DB are checked as well.
  Options behind = PlainOptions();
  behind.allow_ingest_behind = true;
  DestroyAndReopen(behind);
  handle = nullptr;
  const Status s = db_->CreateColumnFamily(MapOptions(), "mapped", &handle);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_TRUE(Mentions(s.ToString(), "ingest behind")) << s.ToString();
  EXPECT_EQ(handle, nullptr);
}

TEST_F(AddressMapOptionsTest, SecondaryAndFollowerRefuse) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Flush());
  std::unique_ptr<DB> db;
  for (const bool follower : {false, true}) {
    SCOPED_TRACE(follower ? "follower" : "secondary");
    // The option is refused, and the error names the family.
    Options options = MapOptions();
    Status s = follower
                   ? DB::OpenAsFollower(options, SecondaryDir(), dbname_, &db)
                   : DB::OpenAsSecondary(options, dbname_, SecondaryDir(), &db);
    EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
    for (const char* part : {"enable_blob_address_map", "secondary or follower",
                             "column family default"}) {
      EXPECT_TRUE(Mentions(s.ToString(), part)) << s.ToString();
    }
    EXPECT_TRUE(db == nullptr);
    // If the option is off, the MANIFEST is refused. A follower cannot work
    // with the Env of these tests.
    options = PlainOptions();
    options.env = Env::Default();
    s = follower ? DB::OpenAsFollower(options, SecondaryDir(), dbname_, &db)
                 : DB::OpenAsSecondary(options, dbname_, SecondaryDir(), &db);
    EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
    // A follower of RocksDB supports no blob files at all, so its error is
    // another one.
    for (const char* part :
         {"enable_blob_address_map", "secondary and follower instances"}) {
      EXPECT_TRUE(follower || Mentions(s.ToString(), part)) << s.ToString();
    }
    EXPECT_TRUE(db == nullptr);
  }
  CheckMap(1);
  EXPECT_EQ(Get("k"), "v");
}

// The primary turns the map on while a secondary exists. The secondary cannot
// read the next files without the map, and must not show an empty database
// instead.
TEST_F(AddressMapOptionsTest, SecondaryRefusesFilesOfALaterMap) {
  DestroyAndReopen(PlainOptions());
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Flush());
  std::unique_ptr<DB> secondary;
  ASSERT_OK(
      DB::OpenAsSecondary(PlainOptions(), dbname_, SecondaryDir(), &secondary));
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  Reopen(MapOptions());
  ASSERT_OK(Put("l", "w"));
  ASSERT_OK(Flush());
  CheckMap(1);
  const Status s = secondary->TryCatchUpWithPrimary();
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_TRUE(Mentions(s.ToString(), "secondary and follower instances"))
      << s.ToString();
  std::string value;
  ASSERT_OK(secondary->Get(ReadOptions(), "k", &value));
  EXPECT_EQ(value, "v");
  EXPECT_TRUE(secondary->Get(ReadOptions(), "l", &value).IsNotFound());
  secondary.reset();
  EXPECT_EQ(Get("l"), "w");
}

TEST_F(AddressMapOptionsTest, LogHasTheOptionsOnlyIfSet) {
  DestroyAndReopen(PlainOptions());
  EXPECT_FALSE(Mentions(Log(), "Options.enable_blob_address_map"));
  EXPECT_FALSE(Mentions(Log(), "Options.enable_lsm_bypass"));
  Options options = MapOptions();
  Reopen(options);
  EXPECT_TRUE(Mentions(Log(), "Options.enable_blob_address_map: true"));
  EXPECT_TRUE(Mentions(Log(), "Options.enable_lsm_bypass: true"));
  options.enable_lsm_bypass = false;
  Reopen(options);
  EXPECT_TRUE(Mentions(Log(), "Options.enable_blob_address_map: true"));
  EXPECT_TRUE(Mentions(Log(), "Options.enable_lsm_bypass: false"));
  // The LOG says how the map was recovered.
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Flush());
  Reopen(options);
  EXPECT_TRUE(Mentions(Log(), "Address map loaded: 1 values") ||
              Mentions(Log(), "Address map rebuilt: 1 values"))
      << Log();
  CheckMap(1);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
