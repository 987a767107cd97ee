//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Programs that know nothing of Strata open databases while STRATA_CONFIG names
// a file: each way of opening one obeys the file, or refuses it.

#include "options/strata_config/options_config.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "db/path_layout/directory_names.h"
#include "file/file_util.h"
#include "options/strata_config/config_path.h"
#include "options/strata_config/option_texts.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/db_ttl.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/options_util.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class OptionsConfigTest : public testing::Test {
 protected:
  OptionsConfigTest()
      : dir_(CleanDirectoryName(
            /*fs=*/nullptr, test::PerThreadDBPath("options_config_test"))),
        name_(dir_ + "/db"),
        file_(dir_ + "/c.ini"),
        env_(Env::Default()) {
    Unset();
    EXPECT_OK(DestroyDir(env_, dir_));
    EXPECT_OK(env_->CreateDirIfMissing(dir_));
    EXPECT_OK(env_->CreateDirIfMissing(dir_ + "/fast"));
    EXPECT_OK(env_->CreateDirIfMissing(dir_ + "/slow"));
    EXPECT_OK(env_->CreateDirIfMissing(dir_ + "/slow/two"));
    options_.create_if_missing = true;
  }
  ~OptionsConfigTest() override {
    db_.reset();
    Unset();
    EXPECT_OK(DestroyDir(env_, dir_));
  }

  static void Unset() { EXPECT_EQ(0, unsetenv(OptionsConfig::kVariable)); }
  static void Set(const std::string& value) {
    EXPECT_EQ(0, setenv(OptionsConfig::kVariable, value.c_str(), 1));
  }
  // Writes the file, and sets the variable.
  void Configure(const std::string& text) {
    ASSERT_OK(WriteStringToFile(env_, text, file_));
    Set(file_);
  }
  // The header of a section for the default column family of all databases.
  static std::string Family() { return "[CFOptions \"*\" \"default\"]\n"; }

  // The program: it passes options_ and no column families.
  Status Open() {
    db_.reset();
    return DB::Open(options_, name_, &db_);
  }
  std::string Get(const std::string& key) {
    std::string value;
    const Status s = db_->Get(ReadOptions(), key, &value);
    return s.ok() ? value : s.ToString();
  }
  std::string Log() const {
    LogFlush(db_->GetDBOptions().info_log);
    std::string text;
    EXPECT_OK(ReadFileToString(env_, name_ + "/LOG", &text));
    return text;
  }
  bool LogHas(const std::string& part) const { return Has(Log(), part); }
  static bool Has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  // Returns the number of files with the ending in the directory.
  int NumFiles(const std::string& directory, const std::string& ending) const {
    std::vector<std::string> names;
    if (!env_->GetChildren(directory, &names).ok()) {
      return 0;
    }
    return static_cast<int>(
        std::count_if(names.begin(), names.end(), [&](const std::string& name) {
          return Slice(name).ends_with(ending);
        }));
  }
  // The directory that stands for the database on a device.
  std::string DirectoryOn(const std::string& device) const {
    return dir_ + "/" + device + "/" + ConfigPath::NameOf(name_);
  }

  // Checks that each way of opening the database is refused by the error.
  void ExpectRefused(const std::vector<std::string>& parts) {
    const std::vector<ColumnFamilyDescriptor> families = {
        {kDefaultColumnFamilyName, options_}};
    std::vector<ColumnFamilyHandle*> handles;
    std::unique_ptr<DB> db;
    TransactionDB* transaction_db = nullptr;
    OptimisticTransactionDB* optimistic_db = nullptr;
    DBWithTTL* ttl_db = nullptr;
    const std::vector<std::function<Status()>> opens = {
        [&] { return DB::Open(options_, name_, &db); },
        [&] { return DB::Open(options_, name_, families, &handles, &db); },
        [&] { return DB::OpenForReadOnly(options_, name_, &db); },
        [&] {
          return DB::OpenForReadOnly(options_, name_, families, &handles, &db);
        },
        [&] {
          return DB::OpenAsSecondary(options_, name_, dir_ + "/second", &db);
        },
        [&] {
          return DB::OpenAsFollower(options_, name_, dir_ + "/leader", &db);
        },
        [&] {
          return DB::OpenAndTrimHistory(options_, name_, families, &handles,
                                        &db, "");
        },
        [&] {
          return TransactionDB::Open(options_, TransactionDBOptions(), name_,
                                     &transaction_db);
        },
        [&] {
          return OptimisticTransactionDB::Open(options_, name_, &optimistic_db);
        },
        [&] { return DBWithTTL::Open(options_, name_, &ttl_db); },
        [&] { return RepairDB(name_, options_); },
        [&] { return RepairDB(name_, options_, families); },
        [&] {
          return RepairDB(name_, options_, families, ColumnFamilyOptions());
        },
        [&] { return DestroyDB(name_, options_); }};
    for (size_t i = 0; i < opens.size(); ++i) {
      const Status s = opens[i]();
      EXPECT_TRUE(s.IsInvalidArgument()) << i << " " << s.ToString();
      for (const std::string& part : parts) {
        EXPECT_TRUE(Has(s.ToString(), part))
            << i << " " << s.ToString() << " lacks " << part;
      }
    }
  }

  const std::string dir_;
  const std::string name_;
  const std::string file_;
  Env* const env_;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(OptionsConfigTest, FeaturesAreTurnedOn) {
  options_.merge_operator = MergeOperators::CreateStringAppendOperator();
  Configure("[DBOptions \"" + dir_ + "/*\"]\n" +
            "max_write_groups_per_leader = 8\n"
            "wal_mmap_buffer_size = 64k\n" +
            Family() + "cf_paths = " + dir_ + "/fast/{db}," + dir_ +
            "/slow/{db}\n"
            "level_sst_path_ids = 0\n"
            "level_blob_path_ids = 1\n"
            "enable_blob_files = true\n"
            "min_blob_size = 100\n"
            "enable_blob_address_map = true\n"
            "enable_delta_separation = true\n"
            "enable_merged_value_cache = true\n"
            "merged_value_cache_size = 1m\n");
  ASSERT_OK(Open());
  EXPECT_GT(NumFiles(name_, "WALBUFFER"), 0);
  ASSERT_OK(db_->Put(WriteOptions(), "large", std::string(1000, 'v')));
  ASSERT_OK(db_->Put(WriteOptions(), "small", "v"));
  ASSERT_OK(db_->Merge(WriteOptions(), "merged", "1"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  ASSERT_OK(db_->Merge(WriteOptions(), "merged", "2"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  EXPECT_EQ(std::string(1000, 'v'), Get("large"));
  EXPECT_EQ("v", Get("small"));
  EXPECT_EQ("1,2", Get("merged"));
  EXPECT_EQ(1, NumFiles(DirectoryOn("slow"), ".blob"));
  EXPECT_GT(NumFiles(DirectoryOn("fast"), ".sst"), 0);
  EXPECT_GT(NumFiles(DirectoryOn("fast"), ".delta"), 0);
  EXPECT_EQ(0, NumFiles(name_, ".sst"));
  for (const char* property :
       {"rocksdb.blob-address-map", "rocksdb.delta-store",
        "rocksdb.merged-value-cache"}) {
    std::string value;
    EXPECT_TRUE(db_->GetProperty(property, &value)) << property;
  }
  EXPECT_EQ(8U, db_->GetOptions().max_write_groups_per_leader);
  EXPECT_TRUE(LogHas("STRATA_CONFIG: " + file_ +
                     ": 2 of 2 sections match the database " + name_));
  EXPECT_TRUE(LogHas("STRATA_CONFIG: max_write_groups_per_leader: 1 -> 8 (" +
                     file_ + ":2)"));
  EXPECT_TRUE(
      LogHas("STRATA_CONFIG: [default] enable_blob_address_map: false -> true "
             "(" +
             file_ + ":10)"));

  // The options in effect are those of the OPTIONS file, and a program that
  // loads it gets the same with the file of the variable.
  const Options first = db_->GetOptions();
  db_.reset();
  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> families;
  ASSERT_OK(LoadLatestOptions(ConfigOptions(), name_, &db_options, &families));
  ASSERT_EQ(1U, families.size());
  EXPECT_TRUE(families[0].options.enable_blob_address_map);
  std::vector<ColumnFamilyHandle*> handles;
  ASSERT_OK(DB::Open(db_options, name_, families, &handles, &db_));
  EXPECT_TRUE(
      TextsOf(static_cast<const ColumnFamilyOptions&>(first)) ==
      TextsOf(static_cast<const ColumnFamilyOptions&>(db_->GetOptions())));
  EXPECT_TRUE(
      LogHas("STRATA_CONFIG: [default] enable_blob_address_map is true "
             "already"));
  EXPECT_EQ("1,2", Get("merged"));
  for (ColumnFamilyHandle* handle : handles) {
    ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  }

  // The paths belong to what is destroyed.
  db_.reset();
  ASSERT_OK(DestroyDB(name_, Options()));
  for (const std::string& directory :
       {name_, DirectoryOn("fast"), DirectoryOn("slow")}) {
    EXPECT_TRUE(env_->FileExists(directory).IsNotFound()) << directory;
  }
}

TEST_F(OptionsConfigTest, NothingHappensWithoutTheVariable) {
  ASSERT_OK(Open());
  EXPECT_FALSE(LogHas(OptionsConfig::kVariable));
  Set("");
  ASSERT_OK(Open());
  EXPECT_FALSE(LogHas(OptionsConfig::kVariable));
}

#ifndef NDEBUG
TEST_F(OptionsConfigTest, ProgramWithMoreRightsThanItsCallerIgnoresTheFile) {
  Set(dir_ + "/none");
  SyncPoint::GetInstance()->SetCallBack(
      "SecureGetenv:HasMoreRightsThanItsCaller",
      [](void* arg) { *static_cast<bool*>(arg) = true; });
  SyncPoint::GetInstance()->EnableProcessing();
  EXPECT_OK(Open());
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
}
#endif

TEST_F(OptionsConfigTest, SectionsThatDoNotMatchAreLogged) {
  Configure("[DBOptions \"/other\"]\nmax_open_files = 9\n" + Family() +
            "min_blob_size = 5\n"
            "[CFOptions \"" +
            name_ + "\" \"late\"]\nmin_blob_size = 6\n");
  ASSERT_OK(Open());
  EXPECT_EQ(5U, db_->GetOptions().min_blob_size);
  EXPECT_EQ(-1, db_->GetOptions().max_open_files);
  EXPECT_TRUE(LogHas(
      "1 of 3 sections match the database " + name_ +
      ". Those of these lines match neither it nor a column family of this "
      "open: 1, 5"));
}

TEST_F(OptionsConfigTest, WrongFilesAreRefused) {
  Set(dir_ + "/none");
  ExpectRefused({"STRATA_CONFIG: " + dir_ + "/none: the file cannot be read"});
  Set(dir_);
  ExpectRefused({"STRATA_CONFIG: " + dir_ + ": the file cannot be read"});
  Configure("\n[DBOptions]\n");
  ExpectRefused({"STRATA_CONFIG: " + file_ + ":2: "});
  Configure("[DBOptions \"*\"]\nno_such = 1\n");
  ExpectRefused({"STRATA_CONFIG: " + file_ + ":2: no_such=1"});
  Configure("[CFOptions \"/other\" \"*\"]\n\nttl = x\n");
  ExpectRefused({"STRATA_CONFIG: " + file_ + ":3: ttl=x"});
  Configure(Family() + "merge_operator = no_such\n");
  // Destroying a database needs no objects, as another test shows.
  std::unique_ptr<DB> db;
  EXPECT_TRUE(DB::Open(options_, name_, &db).IsInvalidArgument());
  EXPECT_TRUE(RepairDB(name_, options_).IsInvalidArgument());
  // Nothing was made.
  EXPECT_TRUE(env_->FileExists(name_).IsNotFound());
}

TEST_F(OptionsConfigTest, CombinationsThatAreRefusedNameTheLine) {
  Configure(Family() + "\nenable_delta_separation = true\n");
  Status s = Open();
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(),
                  "STRATA_CONFIG has changed [default] "
                  "enable_delta_separation: false -> true (" +
                      file_ + ":3)"))
      << s.ToString();
  // The error of RocksDB is NotSupported, and has only a part of the options.
  Configure(
      "[DBOptions \"*\"]\nallow_mmap_reads = true\nuse_direct_reads = true\n");
  s = Open();
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_TRUE(
      Has(s.ToString(), "allow_mmap_reads: false -> true (" + file_ + ":2)"))
      << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":3")) << s.ToString();
  Configure("[DBOptions \"*\"]\nunordered_write = true\n");
  TransactionDB* transaction_db = nullptr;
  s = TransactionDB::Open(options_, TransactionDBOptions(), name_,
                          &transaction_db);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":2")) << s.ToString();
  // The code is that of RocksDB also if the lines have nothing to do with it.
  Configure(Family() + "min_blob_size = 7\n");
  options_.unordered_write = true;
  s = TransactionDB::Open(options_, TransactionDBOptions(), name_,
                          &transaction_db);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
}

// Each LOG file begins with the headers of all.
TEST_F(OptionsConfigTest, ChangesAreNoHeaders) {
  class CountingLogger : public Logger {
   public:
    using Logger::Logv;
    void Logv(const char* /*format*/, va_list /*ap*/) override {}
    void LogHeader(const char* format, va_list ap) override {
      char text[4096];
      vsnprintf(text, sizeof(text), format, ap);
      if (Has(text, OptionsConfig::kVariable)) {
        ++num_headers;
      }
    }
    std::atomic<int> num_headers{0};
  };
  const auto logger = std::make_shared<CountingLogger>();
  options_.info_log = logger;
  Configure("[CFOptions \"*\" \"*\"]\nmin_blob_size = 7\n");
  ASSERT_OK(Open());
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(ColumnFamilyOptions(), "x", &handle));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  EXPECT_EQ(1, logger->num_headers.load());
  db_.reset();
  options_.info_log.reset();
}

// With it a seek would skip files by their filters, and so keys with other
// prefixes.
TEST_F(OptionsConfigTest, PrefixExtractorIsRefused) {
  Configure(Family() +
            "prefix_extractor = fixed:1\n"
            "block_based_table_factory = {filter_policy=bloomfilter:10}\n");
  const Status s = Open();
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":2: prefix_extractor"))
      << s.ToString();
}

TEST_F(OptionsConfigTest, WritesWithoutAWALAreKept) {
  Configure("[DBOptions \"*\"]\navoid_flush_during_shutdown = true\n");
  const Status s = Open();
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":2: avoid_flush_during_shutdown"))
      << s.ToString();
  Configure("[DBOptions \"*\"]\nmax_open_files = 100\n");
  ASSERT_OK(Open());
  WriteOptions without_wal;
  without_wal.disableWAL = true;
  ASSERT_OK(db_->Put(without_wal, "k", "v"));
  ASSERT_OK(Open());
  EXPECT_EQ("v", Get("k"));
}

TEST_F(OptionsConfigTest, ReadersObeyTheFile) {
  ASSERT_OK(Open());
  ASSERT_OK(db_->Put(WriteOptions(), "k", "v"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  db_.reset();
  Configure(Family() + "min_blob_size = 7\n");
  const std::vector<ColumnFamilyDescriptor> families = {
      {kDefaultColumnFamilyName, options_}};
  std::vector<ColumnFamilyHandle*> handles;
  // Fully compacted databases have a class of their own.
  ASSERT_OK(DB::OpenForReadOnly(options_, name_, &db_));
  EXPECT_EQ(7U, db_->GetOptions().min_blob_size);
  EXPECT_EQ("v", Get("k"));
  options_.max_open_files = 100;
  ASSERT_OK(DB::OpenForReadOnly(options_, name_, &db_));
  EXPECT_EQ(7U, db_->GetOptions().min_blob_size);
  options_.max_open_files = -1;
  ASSERT_OK(DB::OpenForReadOnly(options_, name_, families, &handles, &db_));
  EXPECT_EQ(7U, db_->GetOptions().min_blob_size);
  for (ColumnFamilyHandle* handle : handles) {
    ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  }
  ASSERT_OK(DB::OpenAsSecondary(options_, name_, dir_ + "/secondary", &db_));
  EXPECT_EQ(7U, db_->GetOptions().min_blob_size);
  EXPECT_EQ("v", Get("k"));
  db_.reset();
  // A secondary cannot have a map, also if a line turns it on.
  Configure(Family() +
            "enable_blob_files = true\nenable_blob_address_map = true\n");
  const Status s =
      DB::OpenAsSecondary(options_, name_, dir_ + "/secondary", &db_);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":3")) << s.ToString();
}

TEST_F(OptionsConfigTest, TransactionsKeepWhatTheyNeed) {
  Configure("[DBOptions \"*\"]\nallow_2pc = false\nmax_open_files = 100\n" +
            Family() + "disable_auto_compactions = true\nmin_blob_size = 7\n");
  TransactionDB* transaction_db = nullptr;
  ASSERT_OK(TransactionDB::Open(options_, TransactionDBOptions(), name_,
                                &transaction_db));
  EXPECT_TRUE(transaction_db->GetDBOptions().allow_2pc);
  EXPECT_EQ(100, transaction_db->GetDBOptions().max_open_files);
  EXPECT_TRUE(transaction_db->GetOptions().disable_auto_compactions);
  EXPECT_EQ(7U, transaction_db->GetOptions().min_blob_size);
  std::unique_ptr<Transaction> transaction(
      transaction_db->BeginTransaction(WriteOptions()));
  ASSERT_OK(transaction->Put("k", "v"));
  ASSERT_OK(transaction->SetName("x"));
  ASSERT_OK(transaction->Prepare());
  ASSERT_OK(transaction->Commit());
  transaction.reset();
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_OK(transaction_db->CreateColumnFamily(ColumnFamilyOptions(), "other",
                                               &handle));
  ASSERT_OK(transaction_db->DropColumnFamily(handle));
  ASSERT_OK(transaction_db->DestroyColumnFamilyHandle(handle));
  // A DB without 2PC does not recover a WAL with prepared transactions.
  ASSERT_OK(transaction_db->Flush(FlushOptions()));
  delete transaction_db;

  OptimisticTransactionDB* optimistic_db = nullptr;
  ASSERT_OK(OptimisticTransactionDB::Open(options_, name_, &optimistic_db));
  EXPECT_EQ(7U, optimistic_db->GetOptions().min_blob_size);
  delete optimistic_db;
}

// A program that opens the database itself prepares its options before the file
// is applied.
TEST_F(OptionsConfigTest, PreparedTransactionsKeepWhatTheyNeed) {
  Configure("[DBOptions \"*\"]\nallow_2pc = false\n" + Family() +
            "disable_auto_compactions = false\n"
            "max_write_buffer_size_to_maintain = 0\n");
  DBOptions db_options(options_);
  std::vector<ColumnFamilyDescriptor> families = {
      {kDefaultColumnFamilyName, options_}};
  std::vector<size_t> compaction_enabled;
  TransactionDB::PrepareWrap(&db_options, &families, &compaction_enabled);
  std::vector<ColumnFamilyHandle*> handles;
  ASSERT_OK(DB::Open(db_options, name_, families, &handles, &db_));
  EXPECT_TRUE(
      LogHas("STRATA_CONFIG: allow_2pc stays true, as the program "
             "needs it (" +
             file_ + ":2)"));
  EXPECT_TRUE(db_->GetOptions().disable_auto_compactions);
  // The program has given -1, which an open replaces by the size of all
  // memtables.
  EXPECT_GT(db_->GetOptions().max_write_buffer_size_to_maintain, 0);
  TransactionDB* transaction_db = nullptr;
  ASSERT_OK(TransactionDB::WrapDB(db_.release(), TransactionDBOptions(),
                                  compaction_enabled, handles,
                                  &transaction_db));
  EXPECT_TRUE(transaction_db->GetDBOptions().allow_2pc);
  EXPECT_FALSE(transaction_db->GetOptions().disable_auto_compactions);
  std::unique_ptr<Transaction> transaction(
      transaction_db->BeginTransaction(WriteOptions()));
  ASSERT_OK(transaction->Put("k", "v"));
  ASSERT_OK(transaction->SetName("x"));
  ASSERT_OK(transaction->Prepare());
  ASSERT_OK(transaction->Commit());
  transaction.reset();
  for (ColumnFamilyHandle* handle : handles) {
    ASSERT_OK(transaction_db->DestroyColumnFamilyHandle(handle));
  }
  delete transaction_db;

  OptimisticTransactionDB* optimistic_db = nullptr;
  // A DB without 2PC does not recover a WAL with prepared transactions.
  ASSERT_OK(DestroyDB(name_, options_));
  ASSERT_OK(OptimisticTransactionDB::Open(options_, name_, &optimistic_db));
  EXPECT_GT(optimistic_db->GetOptions().max_write_buffer_size_to_maintain, 0);
  delete optimistic_db;
}

// A program that loads the OPTIONS file gives what earlier lines have set.
TEST_F(OptionsConfigTest, LinesCanBeChangedForLoadedOptions) {
  const auto reopen = [&](const std::string& lines) {
    db_.reset();
    Configure("[DBOptions \"*\"]\n" + lines);
    DBOptions db_options;
    std::vector<ColumnFamilyDescriptor> families;
    EXPECT_OK(
        LoadLatestOptions(ConfigOptions(), name_, &db_options, &families));
    std::vector<ColumnFamilyHandle*> handles;
    const Status s = DB::Open(db_options, name_, families, &handles, &db_);
    for (ColumnFamilyHandle* handle : handles) {
      EXPECT_OK(db_->DestroyColumnFamilyHandle(handle));
    }
    return s;
  };
  Configure(
      "[DBOptions \"*\"]\n"
      "wal_recovery_mode = kAbsoluteConsistency\natomic_flush = true\n" +
      Family() +
      "disable_auto_compactions = true\n"
      "max_write_buffer_size_to_maintain = 7m\n");
  ASSERT_OK(Open());
  EXPECT_TRUE(db_->GetOptions().disable_auto_compactions);
  const std::string changed = "wal_recovery_mode = kPointInTimeRecovery\n" +
                              Family() +
                              "disable_auto_compactions = false\n"
                              "max_write_buffer_size_to_maintain = 0\n";
  ASSERT_OK(reopen(changed));
  EXPECT_EQ(WALRecoveryMode::kPointInTimeRecovery,
            db_->GetDBOptions().wal_recovery_mode);
  EXPECT_FALSE(db_->GetOptions().disable_auto_compactions);
  EXPECT_EQ(0, db_->GetOptions().max_write_buffer_size_to_maintain);
  // The program could have chosen it, too.
  EXPECT_TRUE(db_->GetDBOptions().atomic_flush);
  const std::string weaker = "atomic_flush = false\n" + changed;
  const Status s = reopen(weaker);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":2: atomic_flush")) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), "the newest OPTIONS file")) << s.ToString();
  std::string newest;
  ASSERT_OK(GetLatestOptionsFileName(name_, env_, &newest));
  std::string text;
  ASSERT_OK(ReadFileToString(env_, name_ + "/" + newest, &text));
  const std::string set = "atomic_flush=true";
  ASSERT_TRUE(Has(text, set));
  text.replace(text.find(set), set.size(), "atomic_flush=false");
  ASSERT_OK(WriteStringToFile(env_, text, name_ + "/" + newest));
  ASSERT_OK(reopen(weaker));
  EXPECT_FALSE(db_->GetDBOptions().atomic_flush);
}

TEST_F(OptionsConfigTest, ExpiryKeepsItsObjects) {
  options_.merge_operator = MergeOperators::CreateStringAppendOperator();
  Configure(Family() + "min_blob_size = 7\n");
  DBWithTTL* ttl_db = nullptr;
  ASSERT_OK(DBWithTTL::Open(options_, name_, &ttl_db, /*ttl=*/1000));
  EXPECT_EQ(7U, ttl_db->GetOptions().min_blob_size);
  delete ttl_db;
  // Its merge operator wraps that of the program.
  Configure(Family() + "merge_operator = stringappend\n");
  const Status s = DBWithTTL::Open(options_, name_, &ttl_db, /*ttl=*/1000);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":2: merge_operator")) << s.ToString();
}

// They get the options of the file that the open has read.
TEST_F(OptionsConfigTest, LaterColumnFamiliesObeyTheFile) {
  Configure(
      "[CFOptions \"*\" \"late*\"]\nmin_blob_size = 7\n"
      "block_based_table_factory = {block_cache=3m}\n"
      "[CFOptions \"*\" \"bad\"]\nenable_delta_separation = true\n");
  ASSERT_OK(Open());
  ASSERT_OK(env_->DeleteFile(file_));
  Unset();
  std::vector<ColumnFamilyHandle*> handles(1);
  ASSERT_OK(
      db_->CreateColumnFamily(ColumnFamilyOptions(), "late", &handles[0]));
  EXPECT_TRUE(
      LogHas("STRATA_CONFIG: [late] min_blob_size: 0 -> 7 (" + file_ + ":2)"));
  std::vector<ColumnFamilyHandle*> more;
  ASSERT_OK(
      db_->CreateColumnFamilies(ColumnFamilyOptions(), {"late_2"}, &more));
  handles.insert(handles.end(), more.begin(), more.end());
  ASSERT_OK(
      db_->CreateColumnFamilies({{"late_3", ColumnFamilyOptions()}}, &more));
  handles.insert(handles.end(), more.begin(), more.end());

  ASSERT_OK(db_->Put(WriteOptions(), handles[0], "k", "v"));
  Checkpoint* checkpoint = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &checkpoint));
  ExportImportFilesMetaData* exported = nullptr;
  ASSERT_OK(
      checkpoint->ExportColumnFamily(handles[0], dir_ + "/export", &exported));
  delete checkpoint;
  handles.push_back(nullptr);
  ASSERT_OK(db_->CreateColumnFamilyWithImport(ColumnFamilyOptions(), "late_4",
                                              ImportColumnFamilyOptions(),
                                              *exported, &handles.back()));
  delete exported;

  const auto cache_of = [&](ColumnFamilyHandle* handle) {
    return db_->GetOptions(handle)
        .table_factory->GetOptions<BlockBasedTableOptions>()
        ->block_cache;
  };
  for (ColumnFamilyHandle* handle : handles) {
    EXPECT_EQ(7U, db_->GetOptions(handle).min_blob_size) << handle->GetName();
    EXPECT_TRUE(cache_of(handle) == cache_of(handles[0]));
  }
  EXPECT_EQ(0U, db_->GetOptions().min_blob_size);

  ColumnFamilyHandle* handle = nullptr;
  const Status s =
      db_->CreateColumnFamily(ColumnFamilyOptions(), "bad", &handle);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":5")) << s.ToString();
  // LOG has what was done only.
  EXPECT_FALSE(LogHas("[bad]"));
  ASSERT_OK(db_->CreateColumnFamily(ColumnFamilyOptions(), "other", &handle));
  EXPECT_EQ(0U, db_->GetOptions(handle).min_blob_size);
  handles.push_back(handle);
  for (ColumnFamilyHandle* each : handles) {
    ASSERT_OK(db_->DestroyColumnFamilyHandle(each));
  }
}

TEST_F(OptionsConfigTest, MissingFamiliesAreCreatedWithTheFile) {
  Configure("[CFOptions \"*\" \"new\"]\nmin_blob_size = 7\n");
  options_.create_missing_column_families = true;
  std::vector<ColumnFamilyHandle*> handles;
  ASSERT_OK(DB::Open(options_, name_,
                     {{kDefaultColumnFamilyName, options_}, {"new", options_}},
                     &handles, &db_));
  EXPECT_EQ(7U, db_->GetOptions(handles[1]).min_blob_size);
  EXPECT_EQ(0U, db_->GetOptions(handles[0]).min_blob_size);
  for (ColumnFamilyHandle* handle : handles) {
    ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  }
}

// Without the file the open says that paths are missing, and loses nothing.
TEST_F(OptionsConfigTest, TheWayBackNeedsThePaths) {
  const std::string text = "[CFOptions \"" + name_ + "\" \"default\"]\n" +
                           "cf_paths = " + name_ + "," + dir_ +
                           "/slow/{db}\n"
                           "level_sst_path_ids = 1\n";
  Configure(text);
  ASSERT_OK(Open());
  ASSERT_OK(db_->Put(WriteOptions(), "k", "v"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  EXPECT_EQ(1, NumFiles(DirectoryOn("slow"), ".sst"));
  Unset();
  const Status s = Open();
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), "a file of STRATA_CONFIG")) << s.ToString();
  // A repair with the file finds the files.
  Configure(text);
  ASSERT_OK(RepairDB(name_, options_));
  ASSERT_OK(Open());
  EXPECT_EQ("v", Get("k"));
  // The layout is given up while the paths are there.
  Configure("[CFOptions \"" + name_ + "\" \"default\"]\n" +
            "cf_paths = " + name_ + "," + dir_ +
            "/slow/{db}\n"
            "level_sst_path_ids = 0\n");
  ASSERT_OK(Open());
  CompactRangeOptions compact;
  compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
  ASSERT_OK(Open());
  Unset();
  ASSERT_OK(Open());
  EXPECT_EQ("v", Get("k"));
}

// All column families that the MANIFEST names, by the paths of the file.
TEST_F(OptionsConfigTest, RepairAndDestroyKnowAllFamilies) {
  const std::string paths = "cf_paths = " + dir_ + "/fast/{db}," + dir_;
  Configure(Family() + paths + "/slow/{db}\nlevel_sst_path_ids = 1\n" +
            "[CFOptions \"*\" \"two\"]\n" + paths +
            "/slow/two/{db}\nlevel_sst_path_ids = 1\n");
  ASSERT_OK(Open());
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(ColumnFamilyOptions(), "two", &handle));
  ASSERT_OK(db_->Put(WriteOptions(), handle, "k", "two"));
  ASSERT_OK(db_->Put(WriteOptions(), "k", "one"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  ASSERT_OK(db_->Flush(FlushOptions(), handle));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  db_.reset();
  EXPECT_EQ(1, NumFiles(DirectoryOn("slow"), ".sst"));
  EXPECT_EQ(1, NumFiles(DirectoryOn("slow/two"), ".sst"));
  ASSERT_OK(RepairDB(name_, options_));
  std::vector<ColumnFamilyHandle*> handles;
  ASSERT_OK(DB::Open(options_, name_,
                     {{kDefaultColumnFamilyName, options_}, {"two", options_}},
                     &handles, &db_));
  EXPECT_EQ("one", Get("k"));
  std::string value;
  ASSERT_OK(db_->Get(ReadOptions(), handles[1], "k", &value));
  EXPECT_EQ("two", value);
  for (ColumnFamilyHandle* each : handles) {
    ASSERT_OK(db_->DestroyColumnFamilyHandle(each));
  }
  db_.reset();
  ASSERT_OK(DestroyDB(name_, options_));
  // The repair has left a folder "lost" in the directory of the database.
  for (const std::string& directory :
       {DirectoryOn("fast"), DirectoryOn("slow"), DirectoryOn("slow/two")}) {
    EXPECT_TRUE(env_->FileExists(directory).IsNotFound()) << directory;
  }
}

// The name of a database is a part of its paths.
TEST_F(OptionsConfigTest, FilesOfARenamedDatabaseStay) {
  Configure(Family() + "cf_paths = " + dir_ + "/fast/{db}\n" +
            "[CFOptions \"*\" \"late\"]\n" + "cf_paths = " + dir_ +
            "/slow/{db}\n");
  ASSERT_OK(Open());
  ASSERT_OK(db_->Put(WriteOptions(), "k", "v"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  db_.reset();
  ASSERT_EQ(1, NumFiles(DirectoryOn("fast"), ".sst"));
  const std::string old_name = name_ + ".old";
  ASSERT_OK(env_->RenameFile(name_, old_name));
  Status s = Open();
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":2: cf_paths")) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), "left by another database")) << s.ToString();
  EXPECT_EQ(1, NumFiles(DirectoryOn("fast"), ".sst"));
  EXPECT_TRUE(env_->FileExists(name_).IsNotFound());
  // The path of a family that would be created later.
  ASSERT_OK(env_->RenameFile(DirectoryOn("fast"), DirectoryOn("slow")));
  s = Open();
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":4: cf_paths")) << s.ToString();
  // An open that creates nothing fails as it does without the file.
  options_.create_if_missing = false;
  s = Open();
  EXPECT_FALSE(s.ok());
  EXPECT_FALSE(Has(s.ToString(), "left by another database")) << s.ToString();
  options_.create_if_missing = true;

  // The path is renamed along.
  ASSERT_OK(env_->RenameFile(DirectoryOn("slow"),
                             dir_ + "/fast/" + ConfigPath::NameOf(old_name)));
  ASSERT_OK(Open());
  EXPECT_EQ("NotFound: ", Get("k"));
  db_.reset();
  ASSERT_OK(DB::Open(options_, old_name, &db_));
  EXPECT_EQ("v", Get("k"));
}

// A copy has all files in its own directory, which is path 0.
TEST_F(OptionsConfigTest, CopiesAreOpened) {
  // No compaction moves the files from before the paths.
  options_.disable_auto_compactions = true;
  ASSERT_OK(Open());
  ASSERT_OK(db_->Put(WriteOptions(), "old", "v"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  Configure("[CFOptions \"" + dir_ + "/*\" \"default\"]\n" +
            "cf_paths = {dir}," + dir_ +
            "/slow/{db}\n"
            "level_sst_path_ids = 1\n");
  // So has a database from before the file.
  ASSERT_OK(Open());
  EXPECT_EQ("v", Get("old"));
  ASSERT_OK(db_->Put(WriteOptions(), "new", "v"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  EXPECT_EQ(1, NumFiles(name_, ".sst"));
  EXPECT_EQ(1, NumFiles(DirectoryOn("slow"), ".sst"));
  Checkpoint* checkpoint = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &checkpoint));
  ASSERT_OK(checkpoint->CreateCheckpoint(dir_ + "/checkpoint"));
  delete checkpoint;
  std::unique_ptr<BackupEngine> backups;
  BackupEngine* engine = nullptr;
  ASSERT_OK(
      BackupEngine::Open(env_, BackupEngineOptions(dir_ + "/backup"), &engine));
  backups.reset(engine);
  ASSERT_OK(backups->CreateNewBackup(db_.get()));
  ASSERT_OK(backups->RestoreDBFromLatestBackup(dir_ + "/restored",
                                               dir_ + "/restored"));
  backups.reset();
  for (const std::string name : {"/checkpoint", "/restored"}) {
    const std::string copy = dir_ + name;
    ASSERT_OK(DB::OpenForReadOnly(options_, copy, &db_)) << name;
    EXPECT_EQ("v", Get("old"));
    EXPECT_EQ("v", Get("new"));
    db_.reset();
    ASSERT_OK(DB::Open(options_, copy, &db_)) << name;
    EXPECT_EQ("v", Get("old"));
    EXPECT_EQ("v", Get("new"));
    ASSERT_OK(db_->Put(WriteOptions(), "k", "v"));
    ASSERT_OK(db_->Flush(FlushOptions()));
    EXPECT_EQ(1, NumFiles(dir_ + "/slow/" + ConfigPath::NameOf(copy), ".sst"));
    EXPECT_EQ(2, NumFiles(copy, ".sst"));
    db_.reset();
    ASSERT_OK(DestroyDB(copy, options_));
    EXPECT_TRUE(env_->FileExists(copy).IsNotFound());
  }
  // The original has what it had.
  ASSERT_OK(Open());
  EXPECT_EQ("v", Get("old"));
  EXPECT_EQ("v", Get("new"));
}

TEST_F(OptionsConfigTest, FamiliesAreFoundWithoutAManifest) {
  const auto configure = [this](const std::string& pattern) {
    const std::string paths = "cf_paths = " + dir_ + "/fast/{db}," + dir_;
    Configure(Family() + paths + "/slow/{db}\nlevel_sst_path_ids = 1\n" +
              "[CFOptions \"*\" \"" + pattern + "\"]\n" + paths +
              "/slow/two/{db}\nlevel_sst_path_ids = 1\n");
  };
  const auto lose_manifest = [this] {
    std::vector<std::string> names;
    ASSERT_OK(env_->GetChildren(name_, &names));
    for (const std::string& name : names) {
      if (name == "CURRENT" || Slice(name).starts_with("MANIFEST-")) {
        ASSERT_OK(env_->DeleteFile(name_ + "/" + name));
      }
    }
  };
  configure("two");
  ASSERT_OK(Open());
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(ColumnFamilyOptions(), "two", &handle));
  ASSERT_OK(db_->Put(WriteOptions(), handle, "k", "two"));
  ASSERT_OK(db_->Flush(FlushOptions(), handle));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  db_.reset();
  ASSERT_EQ(1, NumFiles(DirectoryOn("slow/two"), ".sst"));
  lose_manifest();
  // Nothing says which families the pattern means.
  configure("t*");
  const Status s = RepairDB(name_, options_);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":5: cf_paths")) << s.ToString();
  configure("two");
  ASSERT_OK(RepairDB(name_, options_));
  std::vector<ColumnFamilyHandle*> handles;
  ASSERT_OK(DB::Open(options_, name_,
                     {{kDefaultColumnFamilyName, options_}, {"two", options_}},
                     &handles, &db_));
  std::string value;
  ASSERT_OK(db_->Get(ReadOptions(), handles[1], "k", &value));
  EXPECT_EQ("two", value);
  for (ColumnFamilyHandle* each : handles) {
    ASSERT_OK(db_->DestroyColumnFamilyHandle(each));
  }
  db_.reset();
  lose_manifest();
  // It deletes what is on the paths, whatever families these belong to.
  configure("t*");
  ASSERT_OK(DestroyDB(name_, options_));
  EXPECT_TRUE(env_->FileExists(DirectoryOn("slow/two")).IsNotFound());
}

// The MANIFEST does not name it any more, and its files are on paths that no
// other family has.
TEST_F(OptionsConfigTest, DestroyDeletesFilesOfDroppedFamilies) {
  Configure("[CFOptions \"*\" \"two\"]\n" + std::string("cf_paths = ") + dir_ +
            "/slow/{db}\n" + "[CFOptions \"*\" \"t*e\"]\n" +
            "cf_paths = " + dir_ + "/fast/{db}\n");
  ASSERT_OK(Open());
  for (const std::string name : {"two", "three"}) {
    ColumnFamilyHandle* handle = nullptr;
    ASSERT_OK(db_->CreateColumnFamily(ColumnFamilyOptions(), name, &handle));
    ASSERT_OK(db_->DropColumnFamily(handle));
    ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  }
  db_.reset();
  // As if a handle had been open, with DisableFileDeletions().
  for (const std::string device : {"fast", "slow"}) {
    ASSERT_OK(env_->CreateDirIfMissing(DirectoryOn(device)));
    ASSERT_OK(WriteStringToFile(env_, "", DirectoryOn(device) + "/000099.sst"));
  }
  ASSERT_OK(DestroyDB(name_, options_));
  EXPECT_TRUE(env_->FileExists(DirectoryOn("fast")).IsNotFound());
  EXPECT_TRUE(env_->FileExists(DirectoryOn("slow")).IsNotFound());
  // An open that creates the database refuses directories with files.
  ASSERT_OK(Open());
}

// A caller does not pass what the program had, and which the lines name.
TEST_F(OptionsConfigTest, DestroyNeedsNoObjects) {
  options_.comparator = ReverseBytewiseComparator();
  options_.merge_operator = MergeOperators::CreateStringAppendOperator();
  options_.compaction_style = kCompactionStyleFIFO;
  const std::string lines = Family() +
                            "comparator = rocksdb.ReverseBytewiseComparator\n"
                            "merge_operator = stringappend\n"
                            "compaction_style = kCompactionStyleFIFO\n"
                            "cf_paths = " +
                            dir_ + "/slow/{db}\n";
  Configure(lines);
  ASSERT_OK(Open());
  ASSERT_OK(db_->Put(WriteOptions(), "k", "v"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  EXPECT_EQ(1, NumFiles(DirectoryOn("slow"), ".sst"));
  db_.reset();
  Configure(lines + "plain_table_factory = {user_key_len=8}\n");
  ASSERT_OK(DestroyDB(name_, Options()));
  EXPECT_TRUE(env_->FileExists(DirectoryOn("slow")).IsNotFound());
  EXPECT_TRUE(env_->FileExists(name_).IsNotFound());
}

// The hidden family has the options that RocksDB opens it with.
TEST_F(OptionsConfigTest, RepairKnowsTheFamilyOfStatistics) {
  options_.persist_stats_to_disk = true;
  Configure("[CFOptions \"*\" \"*\"]\ncf_paths = " + dir_ + "/fast/{db}," +
            dir_ + "/slow/{db}\nlevel_sst_path_ids = 1\n");
  ASSERT_OK(Open());
  ASSERT_OK(db_->Put(WriteOptions(), "k", "v"));
  // The recovery flushes both families.
  ASSERT_OK(Open());
  EXPECT_GT(NumFiles(name_, ".sst"), 0);
  EXPECT_GT(NumFiles(DirectoryOn("slow"), ".sst"), 0);
  db_.reset();
  ASSERT_OK(RepairDB(name_, options_));
  ASSERT_OK(Open());
  EXPECT_EQ("v", Get("k"));
  EXPECT_FALSE(LogHas("[" + kPersistentStatsColumnFamilyName + "] cf_paths"));
}

TEST_F(OptionsConfigTest, PathThatIsADatabaseIsRefused) {
  ASSERT_OK(Open());
  ASSERT_OK(db_->Put(WriteOptions(), "k", "v"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  db_.reset();
  Configure("[DBOptions \"" + dir_ + "/other\"]\ndb_paths = " + name_ + "\n");
  std::unique_ptr<DB> other;
  const Status s = DB::Open(options_, dir_ + "/other", &other);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), file_ + ":2: db_paths")) << s.ToString();
  EXPECT_TRUE(DestroyDB(dir_ + "/other", options_).IsInvalidArgument());
  ASSERT_OK(Open());
  EXPECT_EQ("v", Get("k"));
}

// No section matches the directory, and its files are those of a database
// elsewhere.
TEST_F(OptionsConfigTest, DirectoryThatIsAPathIsRefused) {
  const std::string path = dir_ + "/slow/x";
  Configure("[CFOptions \"" + name_ + "\" \"*\"]\n" + "cf_paths = {dir}," +
            path + "\nlevel_sst_path_ids = 1\n");
  ASSERT_OK(Open());
  ASSERT_OK(db_->Put(WriteOptions(), "k", "v"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  db_.reset();
  ASSERT_EQ(1, NumFiles(path, ".sst"));
  const std::vector<ColumnFamilyDescriptor> families = {
      {kDefaultColumnFamilyName, options_}};
  for (const Status& s :
       {DB::Open(options_, path, &db_), RepairDB(path, options_),
        RepairDB(path, options_, families),
        RepairDB(path, options_, families, ColumnFamilyOptions()),
        DestroyDB(path, options_), DestroyDB(path, options_, families)}) {
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_TRUE(Has(s.ToString(), "STRATA_CONFIG: " + file_ +
                                      ":2: cf_paths: \"" + path + "\""))
        << s.ToString();
    EXPECT_TRUE(Has(s.ToString(), "a path of " + name_ + ".")) << s.ToString();
  }
  EXPECT_EQ(1, NumFiles(path, ".sst"));
  ASSERT_OK(Open());
  EXPECT_EQ("v", Get("k"));
}

// A line of a pattern has made the directory of a database a path, and CURRENT
// is not there yet.
TEST_F(OptionsConfigTest, DestroyKeepsDirectoriesWithSections) {
  const std::string other = DirectoryOn("slow");
  Configure(Family() + "cf_paths = {dir}," + dir_ + "/slow/{db}\n" +
            "[CFOptions \"" + other + "\" \"*\"]\nmin_blob_size = 7\n");
  ASSERT_OK(env_->CreateDirIfMissing(other));
  ASSERT_OK(WriteStringToFile(env_, "", other + "/000009.sst"));
  const std::vector<ColumnFamilyDescriptor> families = {
      {kDefaultColumnFamilyName, options_}};
  for (const Status& s : {DestroyDB(name_, options_),
                          DestroyDB(name_, options_, families), Open()}) {
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_TRUE(Has(s.ToString(), "STRATA_CONFIG: " + file_ + ":3: \"" + other +
                                      "\", which " + name_))
        << s.ToString();
  }
  EXPECT_EQ(1, NumFiles(other, ".sst"));
}

// The OPTIONS file of a database has the paths that lines gave it.
TEST_F(OptionsConfigTest, PathsOfAnotherDatabaseAreRefused) {
  Configure("[CFOptions \"" + name_ + "*\" \"default\"]\n" +
            "cf_paths = {dir}," + dir_ +
            "/slow/{db}\n"
            "level_sst_path_ids = 1\n");
  ASSERT_OK(Open());
  ASSERT_OK(db_->Put(WriteOptions(), "k", "v"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  db_.reset();
  ASSERT_EQ(1, NumFiles(DirectoryOn("slow"), ".sst"));
  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> families;
  ASSERT_OK(LoadLatestOptions(ConfigOptions(), name_, &db_options, &families));
  ASSERT_EQ(1U, families.size());
  db_options.create_if_missing = true;
  // No section matches it.
  const std::string other = dir_ + "/other";
  std::vector<ColumnFamilyHandle*> handles;
  // Each call names the path.
  const auto expect_refused = [&](const std::string& path) {
    const Options options(db_options, families[0].options);
    for (const Status& s :
         {DB::Open(db_options, other, families, &handles, &db_),
          DB::OpenForReadOnly(db_options, other, families, &handles, &db_),
          RepairDB(other, options), DestroyDB(other, options),
          DestroyDB(other, options, families)}) {
      EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
      EXPECT_TRUE(Has(s.ToString(), "STRATA_CONFIG: " + file_ +
                                        ":2: cf_paths: \"" + path +
                                        "\", which " + other +
                                        " has in cf_paths now, is by this line "
                                        "a path of " +
                                        name_ + "."))
          << s.ToString();
    }
  };
  // {dir} is a path, too.
  expect_refused(name_);
  families[0].options.cf_paths.erase(families[0].options.cf_paths.begin());
  families[0].options.level_sst_path_ids = {0};
  expect_refused(DirectoryOn("slow"));
  ASSERT_OK(DB::Open(Options(options_), other, &db_));
  ColumnFamilyHandle* handle = nullptr;
  const Status s =
      db_->CreateColumnFamily(families[0].options, "late", &handle);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_EQ(1, NumFiles(DirectoryOn("slow"), ".sst"));
  // In another database with lines, these replace the paths.
  const std::string second = name_ + "2";
  ASSERT_OK(DB::Open(db_options, second, families, &handles, &db_));
  for (ColumnFamilyHandle* each : handles) {
    ASSERT_OK(db_->DestroyColumnFamilyHandle(each));
  }
  ASSERT_OK(Open());
  EXPECT_EQ("v", Get("k"));
}

// Two databases of a program share the objects in its options.
TEST_F(OptionsConfigTest, DatabasesAreOpenedAtTheSameTime) {
  Configure(
      "[CFOptions \"*\" \"*\"]\n"
      "block_based_table_factory = {block_size=8k;block_cache=1m}\n"
      "min_blob_size = 7\n");
  const auto open = [this](const std::string& name) {
    std::unique_ptr<DB> db;
    EXPECT_OK(DB::Open(options_, name, &db));
    EXPECT_EQ(7U, db->GetOptions().min_blob_size);
  };
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(open, dir_ + "/db" + std::to_string(i));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(
      4096U,
      options_.table_factory->GetOptions<BlockBasedTableOptions>()->block_size);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
