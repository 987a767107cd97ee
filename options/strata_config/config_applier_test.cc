//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_applier.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "options/strata_config/option_texts.h"
#include "port/stack_trace.h"
#include "rocksdb/advanced_cache.h"
#include "rocksdb/advanced_compression.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/listener.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/rate_limiter.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_partitioner.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/object_registry.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const BlockBasedTableOptions& TableOptionsOf(
    const ColumnFamilyOptions& options) {
  return *options.table_factory->GetOptions<BlockBasedTableOptions>();
}

class KeepAllFilter : public CompactionFilter {
 public:
  const char* Name() const override { return "KeepAllFilter"; }
};

}  // namespace

class ConfigApplierTest : public testing::Test {
 protected:
  // Begins with another file, for the database /data/db.
  void Use(const std::string& text) {
    applier_.reset();
    ASSERT_OK(ConfigFile::Parse("/c.ini", text, &file_));
    applier_ =
        std::make_unique<ConfigApplier>(&file_, Env::Default(), "/data/db");
    changes_.clear();
  }

  void ExpectError(const Status& s, const std::vector<std::string>& parts) {
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    for (const std::string& part : parts) {
      EXPECT_TRUE(Has(s.ToString(), part)) << s.ToString() << " lacks " << part;
    }
  }

  // Applies the line to a column family, which refuses it.
  void ExpectFamilyError(const std::string& line,
                         const std::vector<std::string>& parts) {
    Use("[CFOptions \"*\" \"*\"]\n" + line);
    const OptionTexts before = TextsOf(family_);
    ExpectError(applier_->Apply("default", &family_, &changes_), parts);
    EXPECT_TRUE(before == TextsOf(family_));
    EXPECT_TRUE(changes_.empty());
  }

  // Returns the texts of all changes.
  std::vector<std::string> Texts() const {
    std::vector<std::string> result;
    for (const ConfigChange& change : changes_) {
      result.push_back(change.ToString(file_));
    }
    return result;
  }

  ConfigFile file_;
  std::unique_ptr<ConfigApplier> applier_;
  std::vector<ConfigChange> changes_;
  DBOptions db_;
  ColumnFamilyOptions family_;
};

TEST_F(ConfigApplierTest, LinesOfMatchingSectionsAreApplied) {
  Use("[DBOptions \"/data/*\"]\n"
      "max_background_jobs = 7\n"
      "wal_mmap_buffer_size = 64k\n"
      "[DBOptions \"/other\"]\n"
      "max_open_files = 9\n"
      "[CFOptions \"/data/db\" \"d*\"]\n"
      "enable_merged_value_cache = true\n"
      "level_sst_path_ids = 0:1\n"
      "[CFOptions \"/data/db\" \"x\"]\n"
      "min_blob_size = 5\n");
  ASSERT_OK(applier_->CheckAll());
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  EXPECT_EQ(7, db_.max_background_jobs);
  EXPECT_EQ(65536U, db_.wal_mmap_buffer_size);
  EXPECT_EQ(DBOptions().max_open_files, db_.max_open_files);
  EXPECT_EQ(
      (std::vector<std::string>{"max_background_jobs: 2 -> 7 (/c.ini:2)",
                                "wal_mmap_buffer_size: 0 -> 65536 (/c.ini:3)"}),
      Texts());
  changes_.clear();
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_TRUE(family_.enable_merged_value_cache);
  EXPECT_EQ((std::vector<uint32_t>{0, 1}), family_.level_sst_path_ids);
  EXPECT_EQ((std::vector<std::string>{
                "[default] enable_merged_value_cache: false -> true (/c.ini:7)",
                "[default] level_sst_path_ids: (empty) -> 0:1 (/c.ini:8)"}),
            Texts());
  EXPECT_EQ((std::set<size_t>{1, 6}), applier_->used_sections());
  changes_.clear();
  ColumnFamilyOptions none;
  ASSERT_OK(applier_->Apply("y", &none, &changes_));
  EXPECT_TRUE(changes_.empty());
}

TEST_F(ConfigApplierTest, LaterLinesWin) {
  Use("[CFOptions \"/data/db\" \"default\"]\n"
      "min_blob_size = 1\n"
      "[CFOptions \"*\" \"*\"]\n"
      "min_blob_size = 2\n"
      "[CFOptions \"*\" \"other\"]\n"
      "min_blob_size = 3\n");
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_EQ(2U, family_.min_blob_size);
  EXPECT_EQ(
      (std::vector<std::string>{"[default] min_blob_size: 0 -> 1 (/c.ini:2)",
                                "[default] min_blob_size: 1 -> 2 (/c.ini:4)"}),
      Texts());
}

TEST_F(ConfigApplierTest, ASecondTimeChangesNothing) {
  Use("[DBOptions \"*\"]\n"
      "db_paths = /data/{db}:10g, /slow/{db}\n"
      "max_open_files = 100\n"
      "rate_limiter_bytes_per_sec = 1m\n"
      "db_log_dir = /log\n"
      "[CFOptions \"*\" \"*\"]\n"
      "cf_paths = /a/{db},/b/{db}\n"
      "level_blob_path_ids = 1\n"
      "blob_gc_space_amp_limit = 1.3\n"
      "merge_operator = stringappend\n"
      "block_based_table_factory = {block_size=8k;block_cache=1m}\n"
      "compression_opts = {level=3}\n"
      "compression = kNoCompression\n");
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  const OptionTexts db_texts = TextsOf(db_);
  const OptionTexts family_texts = TextsOf(family_);
  changes_.clear();
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_TRUE(db_texts == TextsOf(db_));
  EXPECT_TRUE(family_texts == TextsOf(family_));
  ASSERT_EQ(11U, changes_.size());
  for (const ConfigChange& change : changes_) {
    EXPECT_FALSE(change.has_effect()) << change.ToString(file_);
    EXPECT_TRUE(Has(change.ToString(file_), "already"));
  }
  EXPECT_EQ("max_open_files is 100 already (/c.ini:3)", Texts()[1]);
}

TEST_F(ConfigApplierTest, PathsOfTheDatabase) {
  Use("[DBOptions \"*\"]\n"
      "db_paths = /fast/{db}:10g, /slow/{db}\n"
      "[CFOptions \"*\" \"*\"]\n"
      "cf_paths = /fast/x/{db}, {dir}\n");
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  ASSERT_EQ(2U, db_.db_paths.size());
  EXPECT_EQ("/fast/data%2Fdb", db_.db_paths[0].path);
  EXPECT_EQ(uint64_t{10} << 30, db_.db_paths[0].target_size);
  EXPECT_EQ("/slow/data%2Fdb", db_.db_paths[1].path);
  EXPECT_EQ("db_paths", changes_[0].option);
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  ASSERT_EQ(2U, family_.cf_paths.size());
  EXPECT_EQ("/fast/x/data%2Fdb", family_.cf_paths[0].path);
  EXPECT_EQ("/data/db", family_.cf_paths[1].path);
  // No paths are a list, too.
  Use("[DBOptions \"*\"]\ndb_paths =\n");
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  EXPECT_TRUE(db_.db_paths.empty());
}

TEST_F(ConfigApplierTest, TableOptionsKeepWhatTheProgramHas) {
  BlockBasedTableOptions table;
  table.block_cache = NewLRUCache(1 << 20);
  table.filter_policy.reset(NewBloomFilterPolicy(10));
  family_.table_factory.reset(NewBlockBasedTableFactory(table));
  const std::shared_ptr<TableFactory> given = family_.table_factory;
  Use("[CFOptions \"*\" \"*\"]\n"
      "block_based_table_factory = {block_size=16k}\n");
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_EQ(16384U, TableOptionsOf(family_).block_size);
  EXPECT_EQ(table.block_cache, TableOptionsOf(family_).block_cache);
  EXPECT_EQ(table.filter_policy, TableOptionsOf(family_).filter_policy);
  EXPECT_EQ((std::vector<std::string>{
                "[default] table_factory.block_size: 4096 -> 16384 "
                "(/c.ini:2)"}),
            Texts());
  // The program may use its factory for other databases.
  EXPECT_NE(given, family_.table_factory);
  EXPECT_EQ(4096U, given->GetOptions<BlockBasedTableOptions>()->block_size);
}

// The parser makes a table factory, but does not prepare it.
TEST_F(ConfigApplierTest, TableFactoriesArePrepared) {
  Use("[CFOptions \"*\" \"*\"]\n"
      "block_based_table_factory = {no_block_cache=true}\n"
      "[CFOptions \"*\" \"cached\"]\n"
      "block_based_table_factory = {no_block_cache=false}\n");
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_TRUE(TableOptionsOf(family_).no_block_cache);
  EXPECT_TRUE(TableOptionsOf(family_).block_cache == nullptr);
  ColumnFamilyOptions cached;
  ASSERT_OK(applier_->Apply("cached", &cached, &changes_));
  EXPECT_TRUE(TableOptionsOf(cached).block_cache != nullptr);
}

TEST_F(ConfigApplierTest, FamiliesShareTheCachesOfALine) {
  Use("[CFOptions \"*\" \"*\"]\n"
      "block_based_table_factory = {block_cache=4m}\n"
      "blob_cache = 2m\n"
      "[CFOptions \"*\" \"z\"]\n"
      "block_based_table_factory = {block_cache=1m}\n");
  ColumnFamilyOptions other;
  ColumnFamilyOptions own;
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  ASSERT_OK(applier_->Apply("y", &other, &changes_));
  ASSERT_OK(applier_->Apply("z", &own, &changes_));
  const auto& cache = TableOptionsOf(family_).block_cache;
  ASSERT_TRUE(cache != nullptr);
  EXPECT_EQ(size_t{4} << 20, cache->GetCapacity());
  EXPECT_EQ(cache, TableOptionsOf(other).block_cache);
  EXPECT_EQ(size_t{1} << 20, TableOptionsOf(own).block_cache->GetCapacity());
  ASSERT_TRUE(family_.blob_cache != nullptr);
  EXPECT_EQ(family_.blob_cache, other.blob_cache);
  EXPECT_EQ(family_.blob_cache, own.blob_cache);
}

TEST_F(ConfigApplierTest, UnknownFamilyHasTheOptionsOfAll) {
  Use("[CFOptions \"*\" \"*\"]\nmin_blob_size = 1\n"
      "[CFOptions \"*\" \"d*\"]\nblob_file_size = 1\n"
      "[CFOptions \"/x\" \"*\"]\nmin_blob_size = 2\n");
  ASSERT_OK(applier_->ApplyToUnknownFamily(&family_, &changes_));
  EXPECT_EQ(1U, family_.min_blob_size);
  EXPECT_EQ(ColumnFamilyOptions().blob_file_size, family_.blob_file_size);
}

TEST_F(ConfigApplierTest, ErrorsNameTheLine) {
  ExpectFamilyError("no_such_option = 1", {"/c.ini:2: no_such_option=1: "});
  ExpectFamilyError("min_blob_size = x", {"/c.ini:2: min_blob_size=x: "});
  ExpectFamilyError("compression = kNone", {"/c.ini:2: compression=kNone: "});
  ExpectFamilyError("merge_operator = no_such",
                    {"/c.ini:2: merge_operator=no_such: "});
  ExpectFamilyError("block_based_table_factory = {block_size=}",
                    {"/c.ini:2: block_based_table_factory={block_size=}: "});
  ExpectFamilyError("block_based_table_factory = {no_such=1}",
                    {"/c.ini:2: block_based_table_factory={no_such=1}: "});
  ExpectFamilyError("block_based_table_factory = {filter_policy=no_such}",
                    {"/c.ini:2: block_based_table_factory="});
  ExpectFamilyError("level_sst_path_ids = a",
                    {"/c.ini:2: level_sst_path_ids=a: "});
  ExpectFamilyError("table_factory =", {"/c.ini:2: table_factory=: "});
  ExpectFamilyError("comparator =", {"/c.ini:2: comparator=: "});
  // The lines before the wrong one have no effect.
  ExpectFamilyError("min_blob_size = 1\nmin_blob_size_ = 1", {"/c.ini:3"});

  Use("[DBOptions \"*\"]\nmax_open_files = \n");
  ExpectError(applier_->Apply(&db_, &changes_), {"/c.ini:2: max_open_files"});
}

// Whatever database they are for.
TEST_F(ConfigApplierTest, AllLinesAreChecked) {
  Use("[DBOptions \"/other\"]\n\nmax_open_file = 1\n");
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  ExpectError(applier_->CheckAll(), {"/c.ini:3: max_open_file=1: "});
  Use("[CFOptions \"/other\" \"x\"]\nmin_blob_size = 1\nttl = x\n");
  ExpectError(applier_->CheckAll(), {"/c.ini:3: ttl=x: "});
  // No program can do without one.
  Use("[CFOptions \"/other\" \"x\"]\ncomparator =\n");
  ExpectError(applier_->CheckAll(), {"/c.ini:2: comparator=: "});
  // An object may be one of another program, and so may a table factory.
  Use("[CFOptions \"/other\" \"x\"]\nmerge_operator = no_such\n"
      "[CFOptions \"/other\" \"x\"]\nplain_table_factory = {user_key_len=8}\n"
      "[CFOptions \"/other\" \"x\"]\ntable_factory = PlainTable\n"
      "plain_table_factory = {user_key_len=8}\n"
      "[DBOptions \"/other\"]\ndb_paths = /x\n");
  EXPECT_OK(applier_->CheckAll());
}

TEST_F(ConfigApplierTest, OptionsInTheOtherKindOfSection) {
  Use("[DBOptions \"*\"]\nmin_blob_size = 1\n");
  ExpectError(applier_->CheckAll(), {"/c.ini:2", "section [CFOptions]"});
  Use("[CFOptions \"*\" \"*\"]\nmax_open_files = 1\n");
  ExpectError(applier_->CheckAll(), {"/c.ini:2", "section [DBOptions]"});
  Use("[CFOptions \"/a\" \"*\"]\ndb_paths = /x\n");
  ExpectError(applier_->CheckAll(), {"/c.ini:2", "section [DBOptions]"});
  Use("[DBOptions \"/a\"]\ncf_paths = /x\n");
  ExpectError(applier_->CheckAll(), {"/c.ini:2", "section [CFOptions]"});
}

// The meaning of keys and values is the program's.
TEST_F(ConfigApplierTest, ObjectsOfTheProgramStay) {
  ExpectFamilyError("comparator = rocksdb.ReverseBytewiseComparator",
                    {"/c.ini:2: comparator=", "comparator would replace",
                     "leveldb.BytewiseComparator"});
  family_.merge_operator = MergeOperators::CreateStringAppendOperator(',');
  ExpectFamilyError("merge_operator = uint64add",
                    {"/c.ini:2: merge_operator", "would replace"});
  ExpectFamilyError("merge_operator = {id=stringappend;delimiter=x}",
                    {"/c.ini:2: merge_operator", "would replace"});
  ExpectFamilyError("merge_operator =", {"would replace"});
  const std::shared_ptr<MergeOperator> given = family_.merge_operator;
  Use("[CFOptions \"*\" \"*\"]\n"
      "merge_operator = {id=stringappend;delimiter=,}\n"
      "comparator = leveldb.BytewiseComparator\n");
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_EQ(given, family_.merge_operator);
  EXPECT_EQ(BytewiseComparator(), family_.comparator);

  const KeepAllFilter filter;
  family_.compaction_filter = &filter;
  ExpectFamilyError("compaction_filter =", {"would replace", "KeepAllFilter"});

  family_.prefix_extractor.reset(NewFixedPrefixTransform(4));
  ExpectFamilyError("prefix_extractor = fixed:8",
                    {"prefix_extractor would replace"});
  ExpectFamilyError("prefix_extractor = nullptr",
                    {"prefix_extractor would replace"});
  family_.sst_partitioner_factory = NewSstPartitionerFixedPrefixFactory(4);
  ExpectFamilyError("sst_partitioner_factory = nullptr",
                    {"sst_partitioner_factory would replace"});
  family_.compression_manager = GetBuiltinV2CompressionManager();
  ExpectFamilyError("compression_manager = nullptr",
                    {"compression_manager would replace"});
}

// Only the last line of an option counts, so that one section can be for all
// databases, and a later one for some of them.
TEST_F(ConfigApplierTest, LaterLinesWinForObjects) {
  Use("[CFOptions \"*\" \"*\"]\n"
      "merge_operator = uint64add\n"
      "compaction_style = kCompactionStyleFIFO\n"
      "[CFOptions \"/data/db\" \"*\"]\n"
      "merge_operator = stringappend\n"
      "compaction_style = kCompactionStyleUniversal\n"
      "[DBOptions \"*\"]\nfile_checksum_gen_factory = nullptr\n"
      "[DBOptions \"/data/*\"]\n"
      "file_checksum_gen_factory = FileChecksumGenCrc32cFactory\n");
  db_.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  const std::shared_ptr<FileChecksumGenFactory> given =
      db_.file_checksum_gen_factory;
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(applier_->Apply("default", &family_, &changes_)) << i;
    ASSERT_TRUE(family_.merge_operator != nullptr);
    EXPECT_TRUE(Has(family_.merge_operator->Name(), "StringAppend"));
    EXPECT_EQ(kCompactionStyleUniversal, family_.compaction_style);
    ASSERT_OK(applier_->Apply(&db_, &changes_)) << i;
    EXPECT_EQ(given, db_.file_checksum_gen_factory);
  }
  // The last line that names the object is to blame.
  family_.merge_operator = MergeOperators::CreateUInt64AddOperator();
  ExpectFamilyError(
      "merge_operator = max\nmin_blob_size = 1\n"
      "[CFOptions \"*\" \"d*\"]\nmerge_operator = stringappend\n"
      "blob_file_size = 1m\n",
      {"/c.ini:5: merge_operator=stringappend: ", "would replace"});
}

// PrepareWrap() of a transaction database sets them before the open.
TEST_F(ConfigApplierTest, ValuesThatTransactionsNeedStay) {
  Use("[DBOptions \"*\"]\nallow_2pc = true\nmax_open_files = 100\n"
      "[DBOptions \"/data/*\"]\nallow_2pc = false\n"
      "[CFOptions \"*\" \"*\"]\n"
      "disable_auto_compactions = false\n"
      "min_blob_size = 1\n"
      "max_write_buffer_size_to_maintain = 0\n");
  db_.allow_2pc = true;
  family_.disable_auto_compactions = true;
  family_.max_write_buffer_size_to_maintain = -1;
  for (int i = 0; i < 2; ++i) {
    changes_.clear();
    ASSERT_OK(applier_->Apply(&db_, &changes_));
    EXPECT_TRUE(db_.allow_2pc);
    EXPECT_EQ(100, db_.max_open_files);
    ASSERT_EQ(2U, changes_.size());
    EXPECT_EQ("allow_2pc stays true, as the program needs it (/c.ini:5)",
              Texts()[1]);
    changes_.clear();
    ASSERT_OK(applier_->Apply("default", &family_, &changes_));
    EXPECT_TRUE(family_.disable_auto_compactions);
    EXPECT_EQ(-1, family_.max_write_buffer_size_to_maintain);
    EXPECT_EQ(1U, family_.min_blob_size);
    ASSERT_EQ(3U, changes_.size());
    EXPECT_EQ(
        "[default] disable_auto_compactions stays true, as the program needs "
        "it (/c.ini:7)",
        Texts()[0]);
    EXPECT_EQ(
        "[default] max_write_buffer_size_to_maintain stays -1, as the program "
        "needs it (/c.ini:9)",
        Texts()[2]);
  }
  // What the program has not set can be set.
  db_ = DBOptions();
  family_ = ColumnFamilyOptions();
  Use("[DBOptions \"*\"]\nallow_2pc = true\n"
      "[CFOptions \"*\" \"*\"]\n"
      "disable_auto_compactions = true\n"
      "max_write_buffer_size_to_maintain = 7\n");
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  EXPECT_TRUE(db_.allow_2pc);
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_TRUE(family_.disable_auto_compactions);
  EXPECT_EQ(7, family_.max_write_buffer_size_to_maintain);
}

// An OPTIONS file has a number for the history, by an earlier line or by an
// open that has replaced -1.
TEST_F(ConfigApplierTest, ValuesOfAnOptionsFileCanBeChanged) {
  const std::string lines =
      "[CFOptions \"*\" \"*\"]\n"
      "disable_auto_compactions = false\n"
      "max_write_buffer_size_to_maintain = 5\n";
  Use(lines);
  family_.disable_auto_compactions = true;
  family_.max_write_buffer_size_to_maintain = 7;
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_FALSE(family_.disable_auto_compactions);
  EXPECT_EQ(5, family_.max_write_buffer_size_to_maintain);
  // PrepareWrap() leaves a number as it is. Compactions before WrapDB() could
  // drop what a prepared transaction needs.
  Use(lines);
  db_.allow_2pc = true;
  family_.disable_auto_compactions = true;
  family_.max_write_buffer_size_to_maintain = 7;
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_TRUE(family_.disable_auto_compactions);
  EXPECT_EQ(5, family_.max_write_buffer_size_to_maintain);
}

TEST_F(ConfigApplierTest, DataIsKept) {
  const std::string line = "compaction_style = kCompactionStyleFIFO";
  ExpectFamilyError(line, {"/c.ini:2: compaction_style", "FIFO"});
  family_.compaction_style = kCompactionStyleFIFO;
  // It is the choice of the program.
  Use("[CFOptions \"*\" \"*\"]\n" + line);
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
}

TEST_F(ConfigApplierTest, DataOfFIFOCompactionIsKept) {
  // No other style looks at the limits.
  Use("[CFOptions \"*\" \"*\"]\n"
      "compaction_options_fifo = {max_table_files_size=1}\nttl = 1\n");
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  family_ = ColumnFamilyOptions();
  family_.compaction_style = kCompactionStyleFIFO;
  family_.compaction_options_fifo.max_table_files_size = 1000;
  ExpectFamilyError("compaction_options_fifo = {max_table_files_size=999}",
                    {"/c.ini:2: compaction_options_fifo=", "delete",
                     "the newest OPTIONS file"});
  ExpectFamilyError("compaction_options_fifo = 999",
                    {"/c.ini:2: compaction_options_fifo=", "delete"});
  ExpectFamilyError("compaction_options_fifo = {max_data_files_size=9000}",
                    {"/c.ini:2: compaction_options_fifo=", "delete"});
  // The default is 30 days.
  ExpectFamilyError("ttl = 2591999",
                    {"/c.ini:2: ttl=", "delete", "the newest OPTIONS file"});
  Use("[CFOptions \"*\" \"*\"]\nttl = 0\n"
      "compaction_options_fifo = {max_table_files_size=1001;"
      "allow_compaction=true}\n");
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_EQ(1001U, family_.compaction_options_fifo.max_table_files_size);
  EXPECT_EQ(0U, family_.ttl);
  ExpectFamilyError("ttl = 9999999999", {"/c.ini:2: ttl=", "delete"});
  family_.ttl = 10;
  Use("[CFOptions \"*\" \"*\"]\nttl = 11\n");
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_EQ(11U, family_.ttl);
  family_.compaction_options_fifo.max_data_files_size = 5000;
  ExpectFamilyError("compaction_options_fifo = {max_data_files_size=4999}",
                    {"/c.ini:2: compaction_options_fifo=", "delete"});
  ExpectFamilyError("compaction_options_fifo = {max_data_files_size=0}",
                    {"/c.ini:2: compaction_options_fifo=", "delete"});
}

// Values by which a database would lose writes are the choice of the program.
TEST_F(ConfigApplierTest, WritesAreKept) {
  const auto refused = [this](const std::string& line) {
    Use("[DBOptions \"*\"]\n" + line);
    const OptionTexts before = TextsOf(db_);
    ExpectError(applier_->Apply(&db_, &changes_),
                {"/c.ini:2: " + line, "only the program can choose"});
    EXPECT_TRUE(before == TextsOf(db_)) << line;
  };
  db_.atomic_flush = true;
  db_.allow_2pc = true;
  for (const char* line :
       {"avoid_flush_during_shutdown=true", "manual_wal_flush=true",
        "wal_recovery_mode=kSkipAnyCorruptedRecords",
        "wal_recovery_mode=kTolerateCorruptedTailRecords",
        "paranoid_checks=false", "atomic_flush=false",
        "unordered_write=true"}) {
    refused(line);
  }
  for (const char* line : {"paranoid_checks=false", "atomic_flush=false",
                           "unordered_write=true"}) {
    Use(std::string("[DBOptions \"*\"]\n") + line);
    ExpectError(applier_->Apply(&db_, &changes_), {"the newest OPTIONS file"});
  }
  db_.wal_recovery_mode = WALRecoveryMode::kTolerateCorruptedTailRecords;
  refused("wal_recovery_mode=kPointInTimeRecovery");
  // An earlier line may have set it.
  db_.wal_recovery_mode = WALRecoveryMode::kAbsoluteConsistency;
  refused("wal_recovery_mode=kTolerateCorruptedTailRecords");
  Use("[DBOptions \"*\"]\nwal_recovery_mode=kPointInTimeRecovery\n");
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  EXPECT_EQ(WALRecoveryMode::kPointInTimeRecovery, db_.wal_recovery_mode);
  Use("[DBOptions \"*\"]\nwal_recovery_mode=kAbsoluteConsistency\n"
      "atomic_flush=true\nmanual_wal_flush=false\n");
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  EXPECT_EQ(WALRecoveryMode::kAbsoluteConsistency, db_.wal_recovery_mode);
  // Lines may name what the program has chosen.
  db_ = DBOptions();
  db_.avoid_flush_during_shutdown = true;
  db_.manual_wal_flush = true;
  db_.wal_recovery_mode = WALRecoveryMode::kSkipAnyCorruptedRecords;
  db_.paranoid_checks = false;
  Use("[DBOptions \"*\"]\navoid_flush_during_shutdown=true\n"
      "manual_wal_flush=true\nparanoid_checks=false\natomic_flush=false\n"
      "wal_recovery_mode=kSkipAnyCorruptedRecords\nunordered_write=true\n");
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  EXPECT_TRUE(db_.unordered_write);
}

TEST_F(ConfigApplierTest, DataIsNotHidden) {
  static KeepAllFilter filter;
  static std::once_flag is_registered;
  std::call_once(is_registered, [] {
    ObjectLibrary::Default()->AddFactory<CompactionFilter>(
        filter.Name(),
        [](const std::string& /*uri*/,
           std::unique_ptr<CompactionFilter>* /*guard*/,
           std::string* /*error*/) -> CompactionFilter* { return &filter; });
  });
  ExpectFamilyError("prefix_extractor = fixed:4",
                    {"/c.ini:2: prefix_extractor=", "total_order_seek"});
  ExpectFamilyError("compaction_filter = KeepAllFilter",
                    {"/c.ini:2: compaction_filter=", "can delete"});
  ExpectFamilyError("inplace_update_support = true",
                    {"/c.ini:2: inplace_update_support=", "snapshots"});
  ExpectFamilyError("enable_blob_direct_write = true",
                    {"/c.ini:2: enable_blob_direct_write=", "WAL"});
  ExpectFamilyError(
      "persist_user_defined_timestamps = false",
      {"/c.ini:2: persist_user_defined_timestamps=", "older versions"});
  family_.compaction_filter = &filter;
  family_.prefix_extractor.reset(NewFixedPrefixTransform(4));
  family_.inplace_update_support = true;
  family_.enable_blob_direct_write = true;
  family_.persist_user_defined_timestamps = false;
  const std::shared_ptr<const SliceTransform> given = family_.prefix_extractor;
  Use("[CFOptions \"*\" \"*\"]\nprefix_extractor = fixed:4\n"
      "compaction_filter = KeepAllFilter\ninplace_update_support = true\n"
      "enable_blob_direct_write = true\n"
      "persist_user_defined_timestamps = false\n");
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  EXPECT_EQ(given, family_.prefix_extractor);
  EXPECT_EQ(&filter, family_.compaction_filter);
}

// An open gives it options that no line changes.
TEST_F(ConfigApplierTest, FamilyOfStatisticsHasNoLines) {
  Use("[CFOptions \"*\" \"*\"]\nmin_blob_size = 1\n");
  ASSERT_OK(
      applier_->Apply(kPersistentStatsColumnFamilyName, &family_, &changes_));
  EXPECT_EQ(0U, family_.min_blob_size);
  EXPECT_TRUE(changes_.empty());
}

TEST_F(ConfigApplierTest, ObjectsOfTheDatabaseStay) {
  db_.statistics = CreateDBStatistics();
  const std::shared_ptr<Statistics> given = db_.statistics;
  db_.listeners.push_back(std::make_shared<EventListener>());
  Use("[DBOptions \"*\"]\nstatistics = nullptr\n");
  ExpectError(applier_->Apply(&db_, &changes_), {"would replace"});
  db_.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  Use("[DBOptions \"*\"]\nfile_checksum_gen_factory = nullptr\n");
  ExpectError(applier_->Apply(&db_, &changes_), {"would replace"});
  Use("[DBOptions \"*\"]\nlisteners =\n");
  ExpectError(applier_->Apply(&db_, &changes_), {"would replace"});
  Use("[DBOptions \"*\"]\nmax_open_files = 100\n");
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  EXPECT_EQ(given, db_.statistics);
  EXPECT_EQ(1U, db_.listeners.size());
}

// What the parser of option strings does not know is not lost.
TEST_F(ConfigApplierTest, OtherOptionsStay) {
  db_.rate_limiter.reset(NewGenericRateLimiter(1 << 20));
  db_.row_cache = NewLRUCache(1 << 20);
  db_.db_paths = {{"/x", 5}};
  db_.info_log_level = InfoLogLevel::WARN_LEVEL;
  const DBOptions given = db_;
  Use("[DBOptions \"*\"]\nmax_open_files = 100\n");
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  EXPECT_EQ(given.rate_limiter, db_.rate_limiter);
  EXPECT_EQ(given.row_cache, db_.row_cache);
  ASSERT_EQ(1U, db_.db_paths.size());
  EXPECT_EQ("/x", db_.db_paths[0].path);
  EXPECT_EQ(given.info_log_level, db_.info_log_level);
  EXPECT_EQ(given.env, db_.env);
  // No option but the one of the line has changed.
  ASSERT_EQ(1U, changes_.size());

  family_.cf_paths = {{"/x", 5}};
  family_.memtable_factory.reset(NewHashSkipListRepFactory());
  const ColumnFamilyOptions given_family = family_;
  Use("[CFOptions \"*\" \"*\"]\nenable_blob_files = true\n");
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  ASSERT_EQ(1U, family_.cf_paths.size());
  EXPECT_EQ(given_family.memtable_factory, family_.memtable_factory);
  EXPECT_EQ(given_family.table_factory, family_.table_factory);
  ASSERT_EQ(1U, changes_.size());
}

TEST_F(ConfigApplierTest, OnlyDirectoriesCanBeApplied) {
  Use("[CFOptions \"*\" \"*\"]\n"
      "merge_operator = no_such\n"
      "comparator = rocksdb.ReverseBytewiseComparator\n"
      "plain_table_factory = {user_key_len=8}\n"
      "compaction_style = kCompactionStyleFIFO\n"
      "cf_paths = /a/{db}\n"
      "min_blob_size = 1\n"
      "[DBOptions \"*\"]\n"
      "max_open_files = 100\n"
      "db_paths = /b/{db}\n"
      "db_log_dir = /log\n");
  applier_->ApplyOnlyDirectories();
  ASSERT_OK(applier_->Apply("default", &family_, &changes_));
  ASSERT_EQ(1U, family_.cf_paths.size());
  EXPECT_EQ("/a/data%2Fdb", family_.cf_paths[0].path);
  EXPECT_EQ(0U, family_.min_blob_size);
  ASSERT_OK(applier_->Apply(&db_, &changes_));
  ASSERT_EQ(1U, db_.db_paths.size());
  EXPECT_EQ("/log", db_.db_log_dir);
  EXPECT_EQ(-1, db_.max_open_files);
  EXPECT_EQ(3U, changes_.size());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
