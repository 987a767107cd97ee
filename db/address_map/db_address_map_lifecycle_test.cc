//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Databases with enable_blob_address_map in events beside reads and writes:
// repair, recovery after losses, dropped column families, transactions, import,
// copies, other kinds of compactions, and caches. They have a Bloom filter, so
// that bypass filters are built and used.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/blob_v2/blob_format_v2.h"
#include "db/compaction/compaction.h"
#include "db/db_impl/db_impl.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/advanced_cache.h"
#include "rocksdb/convenience.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/utilities/write_batch_with_index.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "util/cast_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

bool Mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

class DBAddressMapLifecycleTest : public AddressMapDBTestBase {
 public:
  using Model = Contents;

  DBAddressMapLifecycleTest()
      : AddressMapDBTestBase("db_address_map_lifecycle_test") {}

  ~DBAddressMapLifecycleTest() override {
    Close();
    for (const std::string& dir : other_dirs_) {
      EXPECT_OK(DestroyDir(env_, dir));
    }
  }

 protected:
  Options MapOptions() {
    Options options = AddressMapDBTestBase::MapOptions();
    BlockBasedTableOptions table_options;
    table_options.filter_policy.reset(NewBloomFilterPolicy(10));
    options.table_factory.reset(NewBlockBasedTableFactory(table_options));
    return options;
  }

  // ---- The database.

  // Also accepts a database with transactions.
  static DBImpl* ImplOf(DB* db) {
    return static_cast_with_check<DBImpl>(db->GetRootDB());
  }

  // ---- Contents.

  static std::string GetFrom(DB* db, ColumnFamilyHandle* family,
                             const std::string& key,
                             const Snapshot* snapshot = nullptr) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    std::string value;
    const Status s = db->Get(read_options, family, key, &value);
    if (s.ok()) {
      return value;
    }
    return s.IsNotFound() ? "NOT_FOUND" : s.ToString();
  }

  static std::string Text(const Model& model, bool reverse = false) {
    std::string result;
    for (const auto& [key, value] : model) {
      const std::string entry = key + "=" + value + ";";
      result = reverse ? entry + result : result + entry;
    }
    return result;
  }

  // Checks with all kinds of reads that the column family has exactly the data
  // of the model.
  static void CheckData(DB* db, ColumnFamilyHandle* family,
                        const Model& model) {
    for (const auto& [key, value] : model) {
      EXPECT_EQ(GetFrom(db, family, key), value) << key;
    }
    EXPECT_EQ(GetFrom(db, family, "zzz"), "NOT_FOUND");
    const std::unique_ptr<Iterator> iter(
        db->NewIterator(ReadOptions(), family));
    EXPECT_EQ(Scan(iter.get()), Text(model));
    EXPECT_EQ(Scan(iter.get(), /*reverse=*/true), Text(model, true));
  }
  void CheckData(const Model& model) { CheckData(db_.get(), Handle(), model); }

  // ---- Files.

  // Checks that the directory has the given number of blob files, and that the
  // MANIFEST names all of them.
  void CheckBlobFiles(size_t count) {
    EXPECT_EQ(BlobFiles().size(), count);
    EXPECT_EQ(FilesIn(dbname_, kBlobFile).size(), count);
  }

  // Returns a directory that does not exist, and that is deleted after the
  // test.
  std::string OtherDir(const std::string& name) {
    const std::string dir = dbname_ + "_" + name;
    other_dirs_.insert(dir);
    EXPECT_OK(DestroyDir(env_, dir));
    return dir;
  }

  void CopyTo(const std::string& from, const std::string& to) {
    std::string contents;
    ASSERT_OK(ReadFileToString(env_, from, &contents));
    ASSERT_OK(WriteStringToFile(env_, contents, to, /*should_sync=*/true));
  }

  // Copies the files that a crash would leave at this moment if no data were
  // lost. The database is open.
  void CopyDB(const std::string& to) {
    WaitForJobs();
    ASSERT_OK(env_->CreateDirIfMissing(to));
    std::vector<std::string> names;
    ASSERT_OK(env_->GetChildren(dbname_, &names));
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type = kInfoLogFile;
      if (ParseFileName(name, &number, &type) && type != kInfoLogFile &&
          type != kDBLockFile) {
        CopyTo(dbname_ + "/" + name, to + "/" + name);
      }
    }
  }

  void DeleteFilesIn(const std::string& dir, FileType type) {
    for (const std::string& name : FilesIn(dir, type)) {
      ASSERT_OK(env_->DeleteFile(dir + "/" + name));
    }
  }
  // Deletes the images, so that the next open builds the map from the files.
  void DeleteImages() { DeleteFilesIn(dbname_, kTempFile); }
  void LoseManifest() {
    DeleteFilesIn(dbname_, kDescriptorFile);
    DeleteImages();
  }

  // Writes a table of ordinary values with SstFileWriter.
  std::string WriteTable(const std::string& name, const Model& rows) {
    const std::string dir = dbname_ + "_external";
    other_dirs_.insert(dir);
    EXPECT_OK(env_->CreateDirIfMissing(dir));
    const std::string path = dir + "/" + name;
    const Options options = CurrentOptions();
    SstFileWriter writer(EnvOptions(), options);
    EXPECT_OK(writer.Open(path));
    for (const auto& [key, value] : rows) {
      EXPECT_OK(writer.Put(key, value));
    }
    EXPECT_OK(writer.Finish());
    return path;
  }

  // ---- Transactions.

  static TransactionDB* OpenTransactions(
      const Options& options, const TransactionDBOptions& txn_db_options,
      const std::string& dir, std::unique_ptr<DB>* db) {
    TransactionDB* raw = nullptr;
    EXPECT_OK(TransactionDB::Open(options, txn_db_options, dir, &raw));
    db->reset(raw);
    return raw;
  }

  // Makes writes until conflicts must be searched for in the files. With
  // max_write_buffer_size_to_maintain = 1, the second write trims the history.
  void ForgetHistory() {
    MemTableList* const imm = Family()->imm();
    for (int i = 0; i < 10 && imm->HasHistory(); ++i) {
      ASSERT_OK(db_->Put(WriteOptions(), "history" + std::to_string(i), "x"));
    }
    ASSERT_FALSE(imm->HasHistory());
  }

 private:
  std::set<std::string> other_dirs_;
};

// ---- Repair.

TEST_F(DBAddressMapLifecycleTest, RepairRestoresTheMapsOfBothFamilies) {
  const Options options = MapOptions();
  const std::vector<std::string> names = {kDefaultColumnFamilyName, "other"};
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  std::vector<Model> models(2);
  for (int cf : {0, 1}) {
    Model& model = models[cf];
    const auto put = [&](const std::string& key, int value) {
      model[key] = Value(value + 10000 * cf);
      ASSERT_OK(Put(cf, key, model[key]));
    };
    for (int i = 0; i < 30; ++i) {
      put(Key(i), i);
    }
    ASSERT_OK(Flush(cf));
    // Older values and tombstones are in other files, or were compacted away.
    for (int i = 0; i < 10; ++i) {
      put(Key(i), 1000 + i);
    }
    for (int i = 10; i < 15; ++i) {
      model.erase(Key(i));
      ASSERT_OK(Delete(cf, Key(i)));
    }
    ASSERT_OK(Flush(cf));
    if (cf == 1) {
      Compact(db_.get(), handles_[1]);
    }
    model[Key(20)] += ",m";
    ASSERT_OK(Merge(cf, Key(20), "m"));
    ASSERT_OK(Flush(cf));
  }
  for (int cf : {0, 1}) {
    // These values are only in the WAL, and repair writes them to ordinary SST
    // files.
    for (const std::string& key : {Key(25), std::string("wal")}) {
      models[cf][key] = Value(5000 + cf);
      ASSERT_OK(Put(cf, key, Value(5000 + cf)));
    }
  }
  Close();
  LoseManifest();
  ASSERT_OK(RepairDB(dbname_, DBOptions(options),
                     {{names[0], options}, {names[1], options}}));
  ReopenWithColumnFamilies(names, options);
  for (int cf : {0, 1}) {
    SCOPED_TRACE(names[cf]);
    CheckData(db_.get(), handles_[cf], models[cf]);
    // The map has all keys whose newest value is in a blob file.
    CheckMap(handles_[cf], models[cf].size() - 2);
  }
  // The repaired database can be used, and the values of the WAL enter the map.
  for (int cf : {0, 1}) {
    SCOPED_TRACE(names[cf]);
    models[cf][Key(0)] = Value(7000);
    ASSERT_OK(Put(cf, Key(0), Value(7000)));
    ASSERT_OK(Flush(cf));
    // The result of a merge becomes direct only in the second compaction,
    // because its base was direct.
    Compact(db_.get(), handles_[cf]);
    Compact(db_.get(), handles_[cf]);
    CheckData(db_.get(), handles_[cf], models[cf]);
    CheckMap(handles_[cf], models[cf].size());
    for (const auto& entry : models[cf]) {
      EXPECT_TRUE(IsDirect(handles_[cf], entry.first)) << entry.first;
    }
  }
  EXPECT_EQ(FilesIn(dbname_, kBlobFile).size(),
            BlobFiles(0).size() + BlobFiles(1).size());
  for (const bool image : {true, false}) {
    SCOPED_TRACE(image);
    Close();
    if (!image) {
      DeleteImages();
    }
    ReopenWithColumnFamilies(names, options);
    for (int cf : {0, 1}) {
      CheckData(db_.get(), handles_[cf], models[cf]);
      CheckMap(handles_[cf], models[cf].size());
    }
  }
}

// The files are of two databases with different hash seeds. The record indexes
// of one of them cannot be used, so its records are read instead.
TEST_F(DBAddressMapLifecycleTest, RepairReadsFilesWithAnotherHashSeed) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  Model model;
  for (int i = 0; i < 20; ++i) {
    model["a" + Key(i)] = Value(i);
    ASSERT_OK(Put("a" + Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  const uint64_t seed = BlobsOf(Handle())->hash_seed();

  const std::string other = OtherDir("other_seed");
  {
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options, other, &db));
    // Files of one database have no sequence numbers in common.
    for (int i = 0; i < 50; ++i) {
      ASSERT_OK(db->Put(WriteOptions(), "z", "x"));
      ASSERT_OK(db->Delete(WriteOptions(), "z"));
    }
    for (int i = 0; i < 20; ++i) {
      model["b" + Key(i)] = Value(100 + i);
      ASSERT_OK(db->Put(WriteOptions(), "b" + Key(i), Value(100 + i)));
    }
    ASSERT_OK(db->Flush(FlushOptions()));
    ASSERT_NE(BlobsOf(db->DefaultColumnFamily())->hash_seed(), seed);
  }
  Close();
  for (const FileType type : {kTableFile, kBlobFile}) {
    const std::vector<std::string> names = FilesIn(other, type);
    ASSERT_EQ(names.size(), 1);
    uint64_t number = 0;
    FileType parsed = kInfoLogFile;
    ASSERT_TRUE(ParseFileName(names[0], &number, &parsed));
    CopyTo(other + "/" + names[0],
           type == kTableFile ? MakeTableFileName(dbname_, number + 1000)
                              : BlobFileName(dbname_, number + 1000));
  }
  LoseManifest();
  ASSERT_OK(RepairDB(dbname_, options));

  Reopen(options);
  // The seed is that of the first file, and all keys are in the map under it.
  EXPECT_EQ(BlobsOf(Handle())->hash_seed(), seed);
  CheckData(model);
  CheckMap(40);
  // Values with either seed are overwritten by new ones.
  for (int i = 0; i < 20; i += 2) {
    for (const char* prefix : {"a", "b"}) {
      model[prefix + Key(i)] = Value(500 + i);
      ASSERT_OK(Put(prefix + Key(i), Value(500 + i)));
    }
  }
  ASSERT_OK(Flush());
  Compact();
  CheckData(model);
  CheckMap(40);
  CheckBlobFiles(3);
  for (const bool image : {true, false}) {
    SCOPED_TRACE(image);
    Close();
    if (!image) {
      DeleteImages();
    }
    Reopen(options);
    CheckData(model);
    CheckMap(40);
  }
  // The last values of a file are overwritten, and the file is deleted.
  for (int i = 1; i < 20; i += 2) {
    model["b" + Key(i)] = Value(600 + i);
    ASSERT_OK(Put("b" + Key(i), Value(600 + i)));
  }
  ASSERT_OK(Flush());
  Compact();
  CheckData(model);
  CheckMap(40);
  CheckBlobFiles(3);
}

// The end of a blob file is missing, and there are keys of its values. Either
// the repair or the next open reports this, and no file is deleted. Files that
// the repair cannot use are in its folder "lost".
TEST_F(DBAddressMapLifecycleTest, RepairReportsATruncatedBlobFile) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  Model model;
  for (int i = 0; i < 20; ++i) {
    model[Key(i)] = Value(i);
    ASSERT_OK(Put(Key(i), Value(i)));
    if (i % 10 == 9) {
      ASSERT_OK(Flush());
    }
  }
  Close();
  LoseManifest();
  const std::vector<std::string> blob_files = FilesIn(dbname_, kBlobFile);
  ASSERT_EQ(blob_files.size(), 2);
  const std::string path = dbname_ + "/" + blob_files[1];
  std::string whole;
  ASSERT_OK(ReadFileToString(env_, path, &whole));
  for (const size_t missing :
       {size_t{1}, BlobFooterV2::kSize, whole.size() / 2, whole.size() - 10}) {
    SCOPED_TRACE(missing);
    ASSERT_OK(WriteStringToFile(env_, whole.substr(0, whole.size() - missing),
                                path, /*should_sync=*/true));
    Status s = RepairDB(dbname_, options);
    if (s.ok()) {
      s = TryReopen(options);
      EXPECT_TRUE(Mentions(s.ToString(), Slice(Key(10)).ToString(/*hex=*/true)))
          << s.ToString();
    } else {
      EXPECT_TRUE(Mentions(s.ToString(), blob_files[1])) << s.ToString();
    }
    EXPECT_TRUE(s.IsCorruption()) << s.ToString();
    for (const std::string& file : blob_files) {
      EXPECT_TRUE(env_->FileExists(dbname_ + "/" + file).ok() ||
                  env_->FileExists(dbname_ + "/lost/" + file).ok())
          << file;
    }
  }
  ASSERT_OK(WriteStringToFile(env_, whole, path, /*should_sync=*/true));
  ASSERT_OK(RepairDB(dbname_, options));
  Reopen(options);
  CheckData(model);
  CheckMap(20);
  CheckBlobFiles(2);
}

// ---- Column families that are dropped or clipped.

TEST_F(DBAddressMapLifecycleTest, DroppedFamilyKeepsItsFilesForReaders) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  const Model own = {{"k", Value(1)}};
  ASSERT_OK(Put(0, "k", Value(1)));
  ASSERT_OK(Flush(0));
  Model model;
  for (int i = 0; i < 20; ++i) {
    model[Key(i)] = Value(i);
    ASSERT_OK(Put(1, Key(i), Value(i)));
  }
  ASSERT_OK(Flush(1));
  for (int i = 0; i < 20; i += 2) {
    model[Key(i)] = Value(100 + i);
    ASSERT_OK(Put(1, Key(i), Value(100 + i)));
  }
  ASSERT_OK(Flush(1));
  WaitForJobs();
  CheckMap(handles_[1], 20);
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions(), handles_[1]));

  ASSERT_OK(db_->DropColumnFamily(handles_[1]));
  // A handle and an iterator are left. A search for obsolete files must not
  // find their files.
  dbfull()->TEST_DeleteObsoleteFiles();
  EXPECT_EQ(FilesIn(dbname_, kBlobFile).size(), 3);
  CheckData(db_.get(), handles_[1], model);
  EXPECT_EQ(Scan(iter.get()), Text(model));

  // After a crash at this moment the next open must delete the files.
  const std::string copy = OtherDir("crash");
  CopyDB(copy);

  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.pop_back();
  dbfull()->TEST_DeleteObsoleteFiles();
  EXPECT_EQ(FilesIn(dbname_, kBlobFile).size(), 3);
  EXPECT_EQ(Scan(iter.get()), Text(model));
  EXPECT_EQ(Scan(iter.get(), /*reverse=*/true), Text(model, true));
  iter.reset();
  // As in RocksDB, the end of the last reader does not search for obsolete
  // files.
  dbfull()->TEST_DeleteObsoleteFiles();
  WaitForJobs();
  CheckBlobFiles(1);
  EXPECT_EQ(FilesIn(dbname_, kTableFile).size(), 1);
  CheckData(own);
  CheckMap(1);

  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, copy, &db));
  WaitForJobs(db.get());
  EXPECT_EQ(FilesIn(copy, kBlobFile).size(), 1);
  EXPECT_EQ(FilesIn(copy, kTableFile).size(), 1);
  CheckData(db.get(), db->DefaultColumnFamily(), own);
  CheckMap(db->DefaultColumnFamily(), 1);
}

// The files of a dropped column family are deleted even if no other family has
// a map, so that after the crash no family of the DB knows of these files.
TEST_F(DBAddressMapLifecycleTest, DropOfTheOnlyFamilyWithAMapDeletesItsFiles) {
  const Options options = MapOptions();
  Options plain = options;
  plain.enable_blob_address_map = false;
  DestroyAndReopen(plain);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  ColumnFamilyHandle* mapped = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(options, "mapped", &mapped));
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(db_->Put(WriteOptions(), mapped, Key(i), Value(i)));
  }
  ASSERT_OK(db_->Flush(FlushOptions(), mapped));
  CheckMap(mapped, 10);
  ASSERT_OK(db_->DropColumnFamily(mapped));
  const std::string copy = OtherDir("crash");
  CopyDB(copy);
  EXPECT_EQ(FilesIn(copy, kBlobFile).size(), 2);
  ASSERT_OK(db_->DestroyColumnFamilyHandle(mapped));
  WaitForJobs();
  CheckBlobFiles(1);
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(plain, copy, &db));
  WaitForJobs(db.get());
  EXPECT_EQ(FilesIn(copy, kBlobFile).size(), 1);
  EXPECT_EQ(GetFrom(db.get(), db->DefaultColumnFamily(), "k"), Value(1));
  EXPECT_EQ(BlobsOf(db->DefaultColumnFamily()), nullptr);
}

TEST_F(DBAddressMapLifecycleTest, ClippedFamilyKeepsTheValuesOfItsRange) {
  for (const bool with_iterator : {false, true}) {
    SCOPED_TRACE(with_iterator);
    Options options = MapOptions();
    options.num_levels = 4;
    DestroyAndReopen(options);
    Model model;
    // Each file has three keys and is at the bottom. Begin and end of the
    // clipped range each lie within a file.
    for (int i = 0; i < 21; ++i) {
      model[Key(i)] = Value(i);
      ASSERT_OK(Put(Key(i), Value(i)));
      if (i % 3 == 2) {
        ASSERT_OK(Flush());
      }
    }
    MoveFilesToLevel(2);
    ASSERT_EQ(FilesPerLevel(), "0,0,7");
    // One file above them covers the whole range.
    for (int i : {1, 10, 19}) {
      model[Key(i)] = Value(100 + i);
      ASSERT_OK(Put(Key(i), Value(100 + i)));
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    CheckMap(21);
    std::unique_ptr<Iterator> old(
        with_iterator ? db_->NewIterator(ReadOptions()) : nullptr);
    const std::string before = Text(model);
    ASSERT_OK(db_->ClipColumnFamily(Handle(), Key(7), Key(13)));
    model.erase(model.begin(), model.lower_bound(Key(7)));
    model.erase(model.lower_bound(Key(13)), model.end());
    ASSERT_EQ(model.size(), 6);
    CheckData(model);
    if (with_iterator) {
      EXPECT_EQ(Scan(old.get()), before);
      old.reset();
      Compact();
    }
    WaitForJobs();
    CheckData(model);
    CheckMap(6);
    // The blob files of keys 6 to 8, 9 to 11 and 12 to 14, and of the file
    // above.
    CheckBlobFiles(4);
    Reopen(options);
    CheckData(model);
    CheckMap(6);
  }
}

// ---- Transactions.

TEST_F(DBAddressMapLifecycleTest, OptimisticTransactionsDetectConflicts) {
  for (const bool history : {true, false}) {
    SCOPED_TRACE(history ? "with history" : "without");
    Options options = MapOptions();
    options.max_write_buffer_size_to_maintain = history ? 0 : 1;
    Destroy(options);
    OptimisticTransactionDB* txn_db = nullptr;
    ASSERT_OK(OptimisticTransactionDB::Open(options, dbname_, &txn_db));
    db_.reset(txn_db);
    ASSERT_OK(db_->Put(WriteOptions(), "k", Value(1)));
    ASSERT_OK(db_->Put(WriteOptions(), "l", Value(1)));
    ASSERT_OK(db_->Flush(FlushOptions()));
    EXPECT_TRUE(IsDirect("k"));
    std::string value;
    std::unique_ptr<Transaction> txn(txn_db->BeginTransaction(WriteOptions()));

    // No other writer changes the keys that the transaction has read.
    ASSERT_OK(txn->GetForUpdate(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(1));
    ASSERT_OK(txn->Put("k", Value(2)));
    ASSERT_OK(txn->Get(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(2));
    ASSERT_OK(db_->Put(WriteOptions(), "m", Value(1)));
    EXPECT_EQ(Get("k"), Value(1));
    ASSERT_OK(txn->Commit());
    EXPECT_EQ(Get("k"), Value(2));
    ASSERT_OK(db_->Flush(FlushOptions()));

    // Another writer changes the key, and the value is flushed, so that it is
    // in the map before the commit.
    txn.reset(txn_db->BeginTransaction(WriteOptions()));
    ASSERT_OK(txn->GetForUpdate(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(2));
    ASSERT_OK(txn->Put("m", Value(5)));
    ASSERT_OK(db_->Put(WriteOptions(), "k", Value(3)));
    ASSERT_OK(db_->Flush(FlushOptions()));
    if (!history) {
      ForgetHistory();
    }
    Status s = txn->Commit();
    EXPECT_TRUE(history ? s.IsBusy() : s.IsTryAgain()) << s.ToString();
    EXPECT_EQ(Get("k"), Value(3));
    EXPECT_EQ(Get("m"), Value(1));

    // Another writer deletes the key.
    txn.reset(txn_db->BeginTransaction(WriteOptions()));
    ASSERT_OK(txn->GetForUpdate(ReadOptions(), "l", &value));
    EXPECT_EQ(value, Value(1));
    ASSERT_OK(txn->Put("l", Value(5)));
    ASSERT_OK(db_->Delete(WriteOptions(), "l"));
    ASSERT_OK(db_->Flush(FlushOptions()));
    if (!history) {
      ForgetHistory();
    }
    s = txn->Commit();
    EXPECT_TRUE(history ? s.IsBusy() : s.IsTryAgain()) << s.ToString();
    EXPECT_EQ(Get("l"), "NOT_FOUND");

    // At its snapshot the transaction reads values that were overwritten since.
    OptimisticTransactionOptions at_snapshot;
    at_snapshot.set_snapshot = true;
    txn.reset(txn_db->BeginTransaction(WriteOptions(), at_snapshot));
    ASSERT_OK(db_->Put(WriteOptions(), "k", Value(4)));
    ASSERT_OK(db_->Flush(FlushOptions()));
    ReadOptions read_options;
    read_options.snapshot = txn->GetSnapshot();
    ASSERT_OK(txn->Get(read_options, "k", &value));
    EXPECT_EQ(value, Value(3));
    ASSERT_OK(txn->Get(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(4));
    ASSERT_OK(txn->Put("k", Value(5)));
    EXPECT_NOK(txn->Commit());
    txn.reset();

    Model model = {{"k", Value(4)}, {"m", Value(1)}};
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    for (iter->Seek("history"); iter->Valid(); iter->Next()) {
      if (iter->key().starts_with("history")) {
        model[iter->key().ToString()] = iter->value().ToString();
      }
    }
    iter.reset();
    ASSERT_OK(db_->Flush(FlushOptions()));
    Compact();
    CheckData(model);
    CheckMap(model.size());
    Close();
  }
}

// Conflicts are detected when only the files have the conflicting entry.
TEST_F(DBAddressMapLifecycleTest, ConflictsAreDetectedInFiles) {
  Options options = MapOptions();
  options.max_write_buffer_size_to_maintain = 1;
  Destroy(options);
  TransactionDB* const txn_db =
      OpenTransactions(options, TransactionDBOptions(), dbname_, &db_);
  ASSERT_NE(txn_db, nullptr);
  enum class Conflict { kNone, kPut, kDelete, kSingleDelete, kMerge };
  int round = 0;
  for (const Conflict conflict :
       {Conflict::kNone, Conflict::kPut, Conflict::kDelete,
        Conflict::kSingleDelete, Conflict::kMerge}) {
    for (const bool compacted : {false, true}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(conflict)) +
                   (compacted ? ", compacted" : ""));
      const std::string key = "k" + std::to_string(++round);
      ASSERT_OK(db_->Put(WriteOptions(), key, "a"));
      ASSERT_OK(db_->Flush(FlushOptions()));
      if (round == 1) {  // for later keys a Bloom filter may match wrongly
        EXPECT_TRUE(IsDirect(key));
      }
      const std::unique_ptr<Transaction> txn(
          txn_db->BeginTransaction(WriteOptions()));
      txn->SetSnapshot();
      std::string expected = "a";
      switch (conflict) {
        case Conflict::kNone:
          break;
        case Conflict::kPut:
          ASSERT_OK(db_->Put(WriteOptions(), key, "b"));
          expected = "b";
          break;
        case Conflict::kDelete:
          ASSERT_OK(db_->Delete(WriteOptions(), key));
          expected = "NOT_FOUND";
          break;
        case Conflict::kSingleDelete:
          ASSERT_OK(db_->SingleDelete(WriteOptions(), key));
          expected = "NOT_FOUND";
          break;
        case Conflict::kMerge:
          ASSERT_OK(db_->Merge(WriteOptions(), key, "b"));
          expected = "a,b";
          break;
      }
      ASSERT_OK(db_->Put(WriteOptions(), "other", "x"));
      ASSERT_OK(db_->Flush(FlushOptions()));
      if (compacted) {
        Compact();
      }
      ForgetHistory();
      std::string value;
      Status s = txn->GetForUpdate(ReadOptions(), key, &value);
      EXPECT_EQ(s.IsBusy(), conflict != Conflict::kNone) << s.ToString();
      if (conflict == Conflict::kNone) {
        ASSERT_OK(s);
        EXPECT_EQ(value, "a");
      }
      s = txn->Put(key, "c");
      EXPECT_EQ(s.IsBusy(), conflict != Conflict::kNone) << s.ToString();
      // This key never existed.
      s = txn->GetForUpdate(ReadOptions(), "absent", &value);
      EXPECT_TRUE(s.IsNotFound()) << s.ToString();
      ASSERT_OK(txn->Rollback());
      EXPECT_EQ(Get(key), expected);
    }
  }
  ASSERT_OK(db_->Flush(FlushOptions()));
  Compact();
  // The map has two keys of each kind except for deleted ones, and the other
  // keys.
  size_t others = 0;
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
    others += iter->key().starts_with("k") ? 0 : 1;
  }
  ASSERT_OK(iter->status());
  iter.reset();
  EXPECT_GT(others, 1);
  CheckMap(6 + others);
}

// Two-phase commit works with each write policy, with flushes of uncommitted
// data, and with crashes while a transaction is prepared.
TEST_F(DBAddressMapLifecycleTest, PreparedTransactionsSurviveCrashes) {
  struct Mode {
    const char* name;
    TxnDBWritePolicy policy;
    bool two_write_queues;
    bool unordered_write;
  };
  for (const Mode& mode : std::vector<Mode>{
           {"committed", WRITE_COMMITTED, false, false},
           {"committed, two queues", WRITE_COMMITTED, true, false},
           {"prepared", WRITE_PREPARED, false, false},
           {"prepared, two queues", WRITE_PREPARED, true, false},
           {"prepared, unordered", WRITE_PREPARED, true, true},
           {"unprepared", WRITE_UNPREPARED, false, false},
           {"unprepared, two queues", WRITE_UNPREPARED, true, false}}) {
    SCOPED_TRACE(mode.name);
    Options options = MapOptions();
    options.two_write_queues = mode.two_write_queues;
    options.unordered_write = mode.unordered_write;
    TransactionDBOptions txn_db_options;
    txn_db_options.write_policy = mode.policy;
    TransactionOptions txn_options;
    // With write-unprepared, each write goes to the database before the next
    // one.
    txn_options.write_batch_flush_threshold = 1;
    const bool committed = mode.policy == WRITE_COMMITTED;
    Destroy(options);
    TransactionDB* const txn_db =
        OpenTransactions(options, txn_db_options, dbname_, &db_);
    ASSERT_NE(txn_db, nullptr);

    ASSERT_OK(db_->Put(WriteOptions(), "k", Value(1)));
    ASSERT_OK(db_->Put(WriteOptions(), "l", Value(1)));
    ASSERT_OK(db_->Flush(FlushOptions()));
    // If sequence numbers do not determine what is visible, no value is direct.
    EXPECT_EQ(IsDirect("k"), committed);

    std::unique_ptr<Transaction> txn(
        txn_db->BeginTransaction(WriteOptions(), txn_options));
    ASSERT_OK(txn->SetName("one"));
    std::string value;
    ASSERT_OK(txn->GetForUpdate(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(1));
    {
      TransactionOptions impatient = txn_options;
      impatient.lock_timeout = 0;
      const std::unique_ptr<Transaction> late(
          txn_db->BeginTransaction(WriteOptions(), impatient));
      ASSERT_OK(late->SetName("late"));
      const Status s = late->GetForUpdate(ReadOptions(), "k", &value);
      EXPECT_TRUE(s.IsTimedOut()) << s.ToString();
    }
    ASSERT_OK(txn->Put("k", Value(2)));
    ASSERT_OK(txn->Put("m", Value(2)));
    ASSERT_OK(db_->Flush(FlushOptions()));
    const Model before = {{"k", Value(1)}, {"l", Value(1)}};
    CheckData(before);
    ASSERT_OK(txn->Get(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(2));
    ASSERT_OK(txn->Prepare());
    ASSERT_OK(db_->Put(WriteOptions(), "n", Value(5)));
    const std::string unflushed = OtherDir("unflushed");
    CopyDB(unflushed);
    ASSERT_OK(db_->Flush(FlushOptions()));
    const std::string flushed = OtherDir("flushed");
    CopyDB(flushed);
    Model model = before;
    model["n"] = Value(5);
    CheckData(model);

    const Snapshot* const snapshot = db_->GetSnapshot();
    ASSERT_OK(txn->Commit());
    model["k"] = Value(2);
    model["m"] = Value(2);
    for (int step = 0; step < 3; ++step) {
      CheckData(model);
      EXPECT_EQ(Get("k", snapshot), Value(1));
      EXPECT_EQ(Get("m", snapshot), "NOT_FOUND");
      if (step == 0) {
        ASSERT_OK(db_->Flush(FlushOptions()));
      } else if (step == 1) {
        Compact();
      }
    }
    db_->ReleaseSnapshot(snapshot);

    // Data that is rolled back was flushed before.
    txn.reset(txn_db->BeginTransaction(WriteOptions(), txn_options));
    ASSERT_OK(txn->SetName("two"));
    ASSERT_OK(txn->Put("k", Value(3)));
    ASSERT_OK(txn->Delete("l"));
    ASSERT_OK(txn->Put("o", Value(3)));
    ASSERT_OK(txn->Prepare());
    ASSERT_OK(db_->Flush(FlushOptions()));
    CheckData(model);
    ASSERT_OK(txn->Rollback());
    CheckData(model);
    txn.reset();
    ASSERT_OK(db_->Flush(FlushOptions()));
    Compact();
    CheckData(model);
    CheckMap(4);
    EXPECT_EQ(IsDirect("k"), committed);
    EXPECT_EQ(IsDirect("l"), committed);
    Close();

    // Opens the copies of the crashes. In one of them the transaction is
    // committed, in the other one it is rolled back.
    for (const bool commit : {true, false}) {
      SCOPED_TRACE(commit ? "unflushed" : "flushed");
      std::unique_ptr<DB> db;
      TransactionDB* const recovered = OpenTransactions(
          options, txn_db_options, commit ? unflushed : flushed, &db);
      ASSERT_NE(recovered, nullptr);
      ColumnFamilyHandle* const family = db->DefaultColumnFamily();
      Model expected = before;
      expected["n"] = Value(5);
      CheckData(db.get(), family, expected);
      std::unique_ptr<Transaction> again(
          recovered->GetTransactionByName("one"));
      ASSERT_NE(again.get(), nullptr);
      if (commit) {
        ASSERT_OK(again->Commit());
        expected["k"] = Value(2);
        expected["m"] = Value(2);
      } else {
        ASSERT_OK(again->Rollback());
      }
      again.reset();
      CheckData(db.get(), family, expected);
      ASSERT_OK(db->Flush(FlushOptions()));
      Compact(db.get(), family);
      CheckData(db.get(), family, expected);
      CheckMap(family, expected.size());
    }
  }
}

// With write-prepared and write-unprepared transactions a tailing iterator
// reads at the moment when it was made, because their NewIterator() ignores
// ReadOptions::tailing. RocksDB without a map behaves in the same way.
TEST_F(DBAddressMapLifecycleTest, WritePreparedTailingIteratorsDoNotFollow) {
  for (const bool with_map : {false, true}) {
    for (const TxnDBWritePolicy policy :
         {WRITE_COMMITTED, WRITE_PREPARED, WRITE_UNPREPARED}) {
      SCOPED_TRACE(testing::Message() << with_map << ' ' << policy);
      Options options = MapOptions();
      options.enable_blob_address_map = with_map;
      // As in RocksDB, a tailing iterator without a map cannot read blob files
      // that are newer than the iterator: "Invalid blob file number".
      options.enable_blob_files = with_map;
      TransactionDBOptions txn_db_options;
      txn_db_options.write_policy = policy;
      Destroy(options);
      ASSERT_NE(OpenTransactions(options, txn_db_options, dbname_, &db_),
                nullptr);
      ASSERT_OK(db_->Put(WriteOptions(), "k", Value(1)));
      ReadOptions tailing;
      tailing.tailing = true;
      std::unique_ptr<Iterator> iter(db_->NewIterator(tailing));
      ASSERT_OK(db_->Put(WriteOptions(), "k", Value(2)));
      ASSERT_OK(db_->Put(WriteOptions(), "l", Value(2)));
      for (const bool flushed : {false, true}) {
        if (flushed) {
          ASSERT_OK(db_->Flush(FlushOptions()));
        }
        const bool follows = policy == WRITE_COMMITTED;
        iter->Seek("k");
        ASSERT_TRUE(iter->Valid());
        EXPECT_EQ(iter->value(), Value(follows ? 2 : 1));
        iter->Next();
        EXPECT_EQ(iter->Valid(), follows);
        EXPECT_OK(iter->status());
      }
      iter.reset();
      Close();
    }
  }
}

// A write-unprepared transaction that is prepared and not yet committed reads
// its own operands twice: they are already in the database and still in the
// transaction's batch. RocksDB without a map behaves in the same way.
TEST_F(DBAddressMapLifecycleTest, WriteUnpreparedReadsItsOwnOperandsTwice) {
  for (const bool with_map : {false, true}) {
    for (const TxnDBWritePolicy policy :
         {WRITE_COMMITTED, WRITE_PREPARED, WRITE_UNPREPARED}) {
      SCOPED_TRACE(testing::Message() << with_map << ' ' << policy);
      Options options = MapOptions();
      options.enable_blob_address_map = with_map;
      options.merge_operator = MergeOperators::CreateStringAppendOperator();
      TransactionDBOptions txn_db_options;
      txn_db_options.write_policy = policy;
      Destroy(options);
      TransactionDB* const txn_db =
          OpenTransactions(options, txn_db_options, dbname_, &db_);
      ASSERT_NE(txn_db, nullptr);
      ASSERT_OK(db_->Put(WriteOptions(), "k", Value(1)));
      ASSERT_OK(db_->Flush(FlushOptions()));
      std::unique_ptr<Transaction> txn(
          txn_db->BeginTransaction(WriteOptions()));
      ASSERT_OK(txn->SetName("t"));
      ASSERT_OK(txn->Merge("k", "a"));
      const auto read = [&] {
        const Slice key("k");
        PinnableSlice value;
        Status s;
        txn->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), 1, &key,
                      &value, &s);
        EXPECT_OK(s);
        std::string by_get;
        EXPECT_OK(txn->Get(ReadOptions(), "k", &by_get));
        EXPECT_EQ(value, by_get);
        return by_get;
      };
      const std::string right = Value(1) + ",a";
      EXPECT_EQ(read(), right);
      ASSERT_OK(txn->Prepare());
      EXPECT_EQ(read(), policy == WRITE_UNPREPARED ? right + ",a" : right);
      EXPECT_EQ(Get("k"), Value(1));
      ASSERT_OK(txn->Commit());
      EXPECT_EQ(Get("k"), right);
      txn.reset();
      Close();
    }
  }
}

// At the commit of a transaction its batch becomes a memtable of its own, which
// is flushed before its entries are published. Until then readers must see the
// old values.
TEST_F(DBAddressMapLifecycleTest, CommitPastTheMemtableIsNotVisibleEarly) {
  for (const bool two_write_queues : {false, true}) {
    for (const bool with_snapshot : {false, true}) {
      SCOPED_TRACE(std::string(two_write_queues ? "two queues" : "one queue") +
                   (with_snapshot ? ", snapshot" : ""));
      Options options = MapOptions();
      options.two_write_queues = two_write_queues;
      options.max_write_buffer_number = 8;
      Destroy(options);
      TransactionDB* const txn_db =
          OpenTransactions(options, TransactionDBOptions(), dbname_, &db_);
      ASSERT_NE(txn_db, nullptr);
      ASSERT_OK(db_->Put(WriteOptions(), "k", Value(1)));
      ASSERT_OK(db_->Put(WriteOptions(), "l", Value(1)));
      ASSERT_OK(db_->Flush(FlushOptions()));
      EXPECT_TRUE(IsDirect("k"));
      const Snapshot* const snapshot =
          with_snapshot ? db_->GetSnapshot() : nullptr;
      TransactionOptions txn_options;
      txn_options.commit_bypass_memtable = true;
      std::unique_ptr<Transaction> txn(
          txn_db->BeginTransaction(WriteOptions(), txn_options));
      ASSERT_OK(txn->SetName("bypass"));
      ASSERT_OK(txn->Put("k", Value(2)));
      ASSERT_OK(txn->Delete("l"));
      ASSERT_OK(txn->Put("m", Value(2)));
      ASSERT_OK(txn->Prepare());
      const auto done = EnableCallBackOnce(
          "DBImpl::WriteImpl:AfterWBWIIngestBeforeSetLastSequence:pause",
          [&](void*) {
            EXPECT_OK(ImplOf(db_.get())->TEST_WaitForFlushMemTable());
            EXPECT_EQ(Get("k"), Value(1));
            EXPECT_EQ(Get("l"), Value(1));
            EXPECT_EQ(Get("m"), "NOT_FOUND");
          });
      ASSERT_OK(txn->Commit());
      DisableCallBacks();
      EXPECT_TRUE(*done);
      txn.reset();
      const Model model = {{"k", Value(2)}, {"m", Value(2)}};
      CheckData(model);
      if (with_snapshot) {
        EXPECT_EQ(Get("k", snapshot), Value(1));
        EXPECT_EQ(Get("l", snapshot), Value(1));
        EXPECT_EQ(Get("m", snapshot), "NOT_FOUND");
        db_->ReleaseSnapshot(snapshot);
      }
      ASSERT_OK(db_->Flush(FlushOptions()));
      Compact();
      CheckData(model);
      CheckMap(2);
      EXPECT_TRUE(IsDirect("k"));
      Close();
    }
  }
}

// IngestWriteBatchWithIndex() makes a batch a memtable of its own. Its entries
// overwrite mapped values.
TEST_F(DBAddressMapLifecycleTest, IngestedBatchOverwritesMappedValues) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  Model model = {{"k", Value(1)}, {"l", Value(1)}, {"n", "a"}};
  for (const auto& [key, value] : model) {
    ASSERT_OK(Put(key, value));
  }
  ASSERT_OK(Flush());
  const Snapshot* const snapshot = db_->GetSnapshot();
  const auto batch = std::make_shared<WriteBatchWithIndex>(
      options.comparator, 0, /*overwrite_key=*/true);
  ASSERT_OK(batch->Put("k", Value(2)));
  ASSERT_OK(batch->Delete("l"));
  ASSERT_OK(batch->Put("m", Value(2)));
  ASSERT_OK(batch->Merge("n", "b"));
  WriteOptions no_wal;
  no_wal.disableWAL = true;
  ASSERT_OK(db_->IngestWriteBatchWithIndex(no_wal, batch));
  model = {{"k", Value(2)}, {"m", Value(2)}, {"n", "a,b"}};
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    CheckData(model);
    EXPECT_EQ(Get("k", snapshot), Value(1));
    EXPECT_EQ(Get("l", snapshot), Value(1));
    EXPECT_EQ(Get("m", snapshot), "NOT_FOUND");
    EXPECT_EQ(Get("n", snapshot), "a");
    if (step == 0) {
      ASSERT_OK(Flush());
      WaitForJobs();
    } else if (step == 1) {
      Compact();
    }
  }
  db_->ReleaseSnapshot(snapshot);
  Compact();
  CheckData(model);
  CheckMap(3);
  CheckBlobFiles(BlobFiles().size());
  Reopen(options);
  CheckData(model);
  CheckMap(3);
}

// A batch with an index is read over direct values, over old values at a
// snapshot, and over versioned values.
TEST_F(DBAddressMapLifecycleTest, BatchWithIndexIsReadOverMappedValues) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  Model now;
  for (int i = 0; i < 6; ++i) {
    now[Key(i)] = Value(i);
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  Model then = now;
  WriteBatchWithIndex batch(BytewiseComparator(), 0, /*overwrite_key=*/true);
  ASSERT_OK(batch.Put(Key(1), Value(11)));
  ASSERT_OK(batch.Delete(Key(2)));
  ASSERT_OK(batch.Merge(Key(3), "m"));
  ASSERT_OK(batch.Put("new", "n"));
  // Returns the model as a reader sees it through the batch.
  const auto through = [](Model model) {
    model[Key(1)] = Value(11);
    model.erase(Key(2));
    model[Key(3)] += ",m";
    model["new"] = "n";
    return model;
  };
  const auto check = [&](const Model& base, const Snapshot* snapshot) {
    const Model model = through(base);
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    std::vector<std::string> names;
    for (int i = 0; i < 6; ++i) {
      names.push_back(Key(i));
    }
    names.push_back("absent");
    names.push_back("new");
    std::sort(names.begin(), names.end());
    const std::vector<Slice> keys(names.begin(), names.end());
    std::vector<PinnableSlice> values(keys.size());
    std::vector<Status> statuses(keys.size());
    batch.MultiGetFromBatchAndDB(db_.get(), read_options, Handle(), keys.size(),
                                 keys.data(), values.data(), statuses.data(),
                                 /*sorted_input=*/true);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto found = model.find(names[i]);
      std::string value;
      const Status s =
          batch.GetFromBatchAndDB(db_.get(), read_options, keys[i], &value);
      if (found == model.end()) {
        EXPECT_TRUE(s.IsNotFound()) << names[i] << ": " << s.ToString();
        EXPECT_TRUE(statuses[i].IsNotFound())
            << names[i] << ": " << statuses[i].ToString();
      } else {
        ASSERT_OK(s);
        EXPECT_EQ(value, found->second) << names[i];
        ASSERT_OK(statuses[i]);
        EXPECT_EQ(values[i].ToString(), found->second) << names[i];
      }
    }
    const std::unique_ptr<Iterator> iter(
        batch.NewIteratorWithBase(Handle(), db_->NewIterator(read_options)));
    EXPECT_EQ(Scan(iter.get()), Text(model));
    EXPECT_EQ(Scan(iter.get(), /*reverse=*/true), Text(model, true));
    iter->Seek(Key(2));
    ASSERT_TRUE(iter->Valid());
    EXPECT_EQ(iter->key(), Key(3));
    EXPECT_EQ(iter->value(), model.at(Key(3)));
  };
  check(now, nullptr);
  const Snapshot* const snapshot = db_->GetSnapshot();
  for (int i : {0, 3}) {
    now[Key(i)] = Value(100 + i);
    ASSERT_OK(Put(Key(i), Value(100 + i)));
  }
  now.erase(Key(5));
  ASSERT_OK(Delete(Key(5)));
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    check(now, nullptr);
    check(then, snapshot);
    if (step == 0) {
      ASSERT_OK(Flush());
    } else if (step == 1) {
      Compact();
    }
  }
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(db_->Write(WriteOptions(), batch.GetWriteBatch()));
  CheckData(through(now));
  ASSERT_OK(Flush());
  Compact();
  CheckData(through(now));
  CheckMap(through(now).size());
}

// ---- Recovery after losses.

// If a file is lost, best_efforts_recovery goes back to the state before the
// database had that file, whatever the image of the map contains.
TEST_F(DBAddressMapLifecycleTest, BestEffortsRecoveryGoesBackBeforeALoss) {
  enum class Loss {
    kNewestTable,
    kNewestBlobFile,
    kSecondBlobFile,
    kOldestTable,
    kManifestTail,
    kCompactedTable,
  };
  for (const Loss loss :
       {Loss::kNewestTable, Loss::kNewestBlobFile, Loss::kSecondBlobFile,
        Loss::kOldestTable, Loss::kManifestTail, Loss::kCompactedTable}) {
    SCOPED_TRACE(static_cast<int>(loss));
    Options options = MapOptions();
    DestroyAndReopen(options);
    // The contents of the database after each flush.
    std::vector<Model> history(1);
    uint64_t manifest_size = 0;  // size before the last flush
    for (int round = 0; round < 3; ++round) {
      WaitForJobs();
      ASSERT_OK(env_->GetFileSize(
          dbname_ + "/" + FilesIn(dbname_, kDescriptorFile).back(),
          &manifest_size));
      Model model = history.back();
      // Four of these keys are also in the previous flush, so its file stays.
      for (int i = 6 * round; i < 6 * round + 10; ++i) {
        model[Key(i)] = Value(100 * round + i);
        ASSERT_OK(Put(Key(i), Value(100 * round + i)));
      }
      if (round > 0) {
        model.erase(Key(6 * round - 1));
        ASSERT_OK(Delete(Key(6 * round - 1)));
        model[Key(6 * round - 2)] += ",m";
        ASSERT_OK(Merge(Key(6 * round - 2), "m"));
      }
      ASSERT_OK(Flush());
      history.push_back(model);
    }
    WaitForJobs();
    std::vector<std::string> tables = FilesIn(dbname_, kTableFile);
    const std::vector<std::string> blob_files = FilesIn(dbname_, kBlobFile);
    ASSERT_EQ(tables.size(), 3);
    ASSERT_EQ(blob_files.size(), 3);
    CheckData(history[3]);
    if (loss == Loss::kCompactedTable) {
      // The input files and the values that the compaction has removed from the
      // map still exist.
      ASSERT_OK(db_->DisableFileDeletions());
      ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
      WaitForJobs();
      CheckData(history[3]);
      tables = FilesIn(dbname_, kTableFile);
      ASSERT_EQ(tables.size(), 4);
    }
    Close();

    size_t expected = 2;
    std::string lost;
    switch (loss) {
      case Loss::kNewestTable:
        lost = tables.back();
        break;
      case Loss::kNewestBlobFile:
        lost = blob_files.back();
        break;
      case Loss::kSecondBlobFile:
        lost = blob_files[1];
        expected = 1;
        break;
      case Loss::kOldestTable:
        lost = tables[0];
        expected = 0;
        break;
      case Loss::kManifestTail:
        break;
      case Loss::kCompactedTable:
        lost = tables.back();
        expected = 3;
        break;
    }
    if (!lost.empty()) {
      ASSERT_OK(env_->DeleteFile(dbname_ + "/" + lost));
    } else {
      const std::string manifest =
          dbname_ + "/" + FilesIn(dbname_, kDescriptorFile).back();
      std::string contents;
      ASSERT_OK(ReadFileToString(env_, manifest, &contents));
      ASSERT_GT(contents.size(), manifest_size + 20);
      contents.resize(manifest_size + 20);
      ASSERT_OK(
          WriteStringToFile(env_, contents, manifest, /*should_sync=*/true));
    }

    options.best_efforts_recovery = true;
    Reopen(options);
    Model model = history[expected];
    CheckData(model);
    {
      SCOPED_TRACE("recovered");
      CheckMap(model.size());
    }

    // Afterwards the database can be used as any other.
    options.best_efforts_recovery = false;
    for (int i = 0; i < 20; i += 3) {
      model[Key(i)] = Value(1000 + i);
      ASSERT_OK(Put(Key(i), Value(1000 + i)));
    }
    ASSERT_OK(Flush());
    Compact();
    CheckData(model);
    {
      SCOPED_TRACE("compacted");
      CheckMap(model.size());
    }
    CheckBlobFiles(BlobFiles().size());
    Reopen(options);
    CheckData(model);
    CheckMap(model.size());
  }
}

// A blob file that a later flush has emptied is deleted from the disk. Recovery
// does not need it unless that flush is lost; then it goes back to the state
// before the deleted file, too.
TEST_F(DBAddressMapLifecycleTest, BestEffortsRecoveryNeedsNoDroppedFile) {
  for (const bool lost : {false, true}) {
    SCOPED_TRACE(lost);
    Options options = MapOptions();
    DestroyAndReopen(options);
    Model model;
    for (int i = 0; i < 10; ++i) {
      model["a" + Key(i)] = Value(i);
      ASSERT_OK(Put("a" + Key(i), Value(i)));
    }
    ASSERT_OK(Flush());
    for (int i = 0; i < 10; ++i) {
      ASSERT_OK(Put("b" + Key(i), Value(i)));
    }
    ASSERT_OK(Flush());
    for (int i = 0; i < 10; ++i) {
      if (!lost) {
        model["b" + Key(i)] = Value(100 + i);
      }
      ASSERT_OK(Put("b" + Key(i), Value(100 + i)));
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    CheckBlobFiles(2);
    CheckMap(20);
    const std::vector<std::string> tables = FilesIn(dbname_, kTableFile);
    ASSERT_EQ(tables.size(), 3);
    Close();
    if (lost) {
      ASSERT_OK(env_->DeleteFile(dbname_ + "/" + tables[2]));
    }
    options.best_efforts_recovery = true;
    Reopen(options);
    CheckData(model);
    CheckMap(model.size());
    CheckBlobFiles(lost ? 1 : 2);
  }
}

// ---- Other lookups of direct values.

TEST_F(DBAddressMapLifecycleTest, OtherLookupsFindDirectValues) {
  Options options = MapOptions();
  options.blob_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  ASSERT_TRUE(IsDirect("k"));

  // KeyMayExist() makes no reads, so it returns the value only if it is cached.
  std::string value;
  bool found = true;
  EXPECT_TRUE(db_->KeyMayExist(ReadOptions(), "k", &value, &found));
  EXPECT_FALSE(found);
  EXPECT_FALSE(db_->KeyMayExist(ReadOptions(), "absent", &value, &found));
  EXPECT_EQ(Get("k"), Value(1));
  EXPECT_TRUE(db_->KeyMayExist(ReadOptions(), "k", &value, &found));
  EXPECT_TRUE(found);
  EXPECT_EQ(value, Value(1));

  const auto entity = [&](const Snapshot* snapshot) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    PinnableWideColumns columns;
    const Status s = db_->GetEntity(read_options, Handle(), "k", &columns);
    if (!s.ok()) {
      return s.IsNotFound() ? std::string("NOT_FOUND") : s.ToString();
    }
    EXPECT_EQ(columns.columns().size(), 1);
    EXPECT_EQ(columns.columns()[0].name(), kDefaultWideColumnName);
    return columns.columns()[0].value().ToString();
  };
  const auto operands = [&](const Snapshot* snapshot) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    GetMergeOperandsOptions operands_options;
    operands_options.expected_max_number_of_operands = 5;
    std::vector<PinnableSlice> slices(5);
    int n = 0;
    std::vector<std::string> result;
    const Status s = db_->GetMergeOperands(
        read_options, Handle(), "k", slices.data(), &operands_options, &n);
    if (!s.ok()) {
      return std::vector<std::string>{s.IsNotFound() ? "NOT_FOUND"
                                                     : s.ToString()};
    }
    for (int i = 0; i < n; ++i) {
      result.push_back(slices[i].ToString());
    }
    return result;
  };
  using Strings = std::vector<std::string>;
  EXPECT_EQ(entity(nullptr), Value(1));
  EXPECT_EQ(operands(nullptr), Strings{Value(1)});

  // Reads at a snapshot when there is a newer value.
  const Snapshot* const first = db_->GetSnapshot();
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  ReadOptions at_first;
  at_first.snapshot = first;
  EXPECT_TRUE(db_->KeyMayExist(at_first, "k", &value, &found));
  if (found) {
    EXPECT_EQ(value, Value(1));
  }
  EXPECT_EQ(entity(first), Value(1));
  EXPECT_EQ(entity(nullptr), Value(2));
  EXPECT_EQ(operands(first), Strings{Value(1)});
  EXPECT_EQ(operands(nullptr), Strings{Value(2)});

  // The values are below operands.
  const Snapshot* const second = db_->GetSnapshot();
  for (const char* operand : {"a", "b"}) {
    ASSERT_OK(Merge("k", operand));
    ASSERT_OK(Flush());
  }
  EXPECT_EQ(entity(nullptr), Value(2) + ",a,b");
  EXPECT_EQ(operands(nullptr), (Strings{Value(2), "a", "b"}));
  EXPECT_EQ(operands(second), Strings{Value(2)});
  EXPECT_EQ(operands(first), Strings{Value(1)});

  // With too few slots, only the number of operands is returned.
  GetMergeOperandsOptions few;
  few.expected_max_number_of_operands = 2;
  std::vector<PinnableSlice> slices(3);
  int n = 0;
  EXPECT_TRUE(db_->GetMergeOperands(ReadOptions(), Handle(), "k", slices.data(),
                                    &few, &n)
                  .IsIncomplete());
  EXPECT_EQ(n, 3);

  // A callback decides whether the search ends. It is called for operands,
  // newest first, and not for the base.
  for (const bool go_on : {false, true}) {
    Strings seen;
    GetMergeOperandsOptions counting;
    counting.expected_max_number_of_operands = 3;
    counting.continue_cb = [&](Slice operand) {
      seen.push_back(operand.ToString());
      return go_on;
    };
    ASSERT_OK(db_->GetMergeOperands(ReadOptions(), Handle(), "k", slices.data(),
                                    &counting, &n));
    EXPECT_EQ(seen, go_on ? (Strings{"b", "a"}) : Strings{"b"});
    ASSERT_EQ(n, go_on ? 3 : 1);
    EXPECT_EQ(slices[n - 1], "b");
    if (go_on) {
      EXPECT_EQ(slices[0], Value(2));
    }
  }

  slices.clear();  // the slices may hold a Version
  db_->ReleaseSnapshot(first);
  db_->ReleaseSnapshot(second);
  Compact();
  EXPECT_EQ(entity(nullptr), Value(2) + ",a,b");
  EXPECT_EQ(operands(nullptr), Strings{Value(2) + ",a,b"});
  CheckMap(1);
  ASSERT_OK(Delete("k"));
  ASSERT_OK(Flush());
  EXPECT_EQ(entity(nullptr), "NOT_FOUND");
  EXPECT_EQ(operands(nullptr), Strings{"NOT_FOUND"});
  Compact();
  CheckMap(0);
}

// A flush replaces the base while the operands are collected one by one. The
// callback is called only once for each operand.
TEST_F(DBAddressMapLifecycleTest, OperandsAreCollectedOnceBesideAFlush) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("k", "a"));
  ASSERT_OK(Flush());
  const auto done = EnableCallBackOnce("MapPointRead::TakeDirect", [&](void*) {
    OnAnotherThread([&] {
      EXPECT_OK(Put("k", Value(2)));
      EXPECT_OK(Flush());
      WaitForJobs();
    });
  });
  int calls = 0;
  GetMergeOperandsOptions counting;
  counting.expected_max_number_of_operands = 3;
  counting.continue_cb = [&](Slice) {
    ++calls;
    return true;
  };
  std::vector<PinnableSlice> slices(3);
  int n = 0;
  ASSERT_OK(db_->GetMergeOperands(ReadOptions(), Handle(), "k", slices.data(),
                                  &counting, &n));
  DisableCallBacks();
  EXPECT_TRUE(*done);
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(n, 2);
  EXPECT_EQ(slices[0], Value(1));
  EXPECT_EQ(slices[1], "a");
  slices.clear();
  EXPECT_EQ(Get("k"), Value(2));
  Compact();
  CheckMap(1);
}

// ---- The row cache.

TEST_F(DBAddressMapLifecycleTest, RowCacheKeepsFamiliesApart) {
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  for (int cf : {0, 1}) {
    ASSERT_OK(Put(cf, "k", Value(cf)));
    ASSERT_OK(Flush(cf));
  }
  for (int round = 0; round < 2; ++round) {
    for (int cf : {0, 1}) {
      EXPECT_EQ(Get(cf, "k"), Value(cf));
    }
  }
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 2);
  // A new value or a tombstone in one family does not affect the other one.
  ASSERT_OK(Put(0, "k", Value(10)));
  ASSERT_OK(Flush(0));
  EXPECT_EQ(Get(0, "k"), Value(10));
  EXPECT_EQ(Get(1, "k"), Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 4);
  ASSERT_OK(Delete(0, "k"));
  ASSERT_OK(Flush(0));
  EXPECT_EQ(Get(0, "k"), "NOT_FOUND");
  EXPECT_EQ(Get(1, "k"), Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 5);
  Compact(db_.get(), handles_[0]);
  CheckMap(handles_[0], 0);
  CheckMap(handles_[1], 1);
}

// A compaction filter changes a value without changing its key and sequence
// number. The cache does not serve the old value.
TEST_F(DBAddressMapLifecycleTest, RowCacheDoesNotServeFilteredValues) {
  ActingFilter filter;
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  for (const char* key : {"change", "keep", "remove"}) {
    ASSERT_OK(Put(key, Value(1)));
  }
  ASSERT_OK(Flush());
  for (int round = 0; round < 2; ++round) {
    for (const char* key : {"change", "keep", "remove"}) {
      EXPECT_EQ(Get(key), Value(1));
    }
  }
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 3);
  Compact();
  EXPECT_EQ(Get("remove"), "NOT_FOUND");
  EXPECT_EQ(Get("keep"), Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 4);
  EXPECT_EQ(Get("change"), "changed " + Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 4);
  EXPECT_EQ(Get("change"), "changed " + Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 5);
  Compact();
  EXPECT_EQ(Get("change"), "changed " + Value(1));
  CheckMap(2);
  Close();
}

// DeleteRange() is refused if there is a row cache. But a row cache can be
// added to a database with range tombstones.
TEST_F(DBAddressMapLifecycleTest, RowCacheDoesNotServeRangeDeletedValues) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_OK(Put(key, Value(1)));
  }
  ASSERT_OK(Flush());
  // The range tombstone is in an ingested file and not in a flush, so the
  // values stay in the map until a compaction.
  const std::string file = dbname_ + "/deletes.sst";
  SstFileWriter writer(EnvOptions(), options);
  ASSERT_OK(writer.Open(file));
  ASSERT_OK(writer.DeleteRange("a", "c"));
  ASSERT_OK(writer.Finish());
  ASSERT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
  options.row_cache = NewLRUCache(1 << 20);
  Reopen(options);
  const Status s = db_->DeleteRange(WriteOptions(), Handle(), "c", "d");
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  // The cache may have a value that a tombstone hides, because the map still
  // has it, too.
  ReadOptions undeleted;
  undeleted.ignore_range_deletions = true;
  std::string value;
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(db_->Get(undeleted, "a", &value));
    EXPECT_EQ(value, Value(1));
  }
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 1);
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(Get("a"), "NOT_FOUND");
      EXPECT_EQ(Get("b"), "NOT_FOUND");
      EXPECT_EQ(Get("c"), Value(1));
      EXPECT_EQ(MultiGet({"a", "b", "c"}),
                (std::vector<std::string>{"NOT_FOUND", "NOT_FOUND", Value(1)}));
    }
    if (step == 0) {
      Compact();
    } else if (step == 1) {
      Reopen(options);
    }
  }
  CheckMap(1);
  ASSERT_OK(Put("a", Value(2)));
  ASSERT_OK(Flush());
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Get("a"), Value(2));
  }
  CheckMap(2);
}

TEST_F(DBAddressMapLifecycleTest, RowCacheDoesNotHideIngestedValues) {
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  for (const char* key : {"k", "l"}) {
    ASSERT_OK(Put(key, Value(1)));
  }
  ASSERT_OK(Flush());
  for (const char* key : {"k", "l"}) {
    EXPECT_EQ(Get(key), Value(1));
  }
  const std::string file = WriteTable("over_cached", {{"k", Value(2)}});
  ASSERT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
  const Model model = {{"k", Value(2)}, {"l", Value(1)}};
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(Get("k"), Value(2));
      EXPECT_EQ(Get("l"), Value(1));
      EXPECT_EQ(MultiGet({"k", "l"}),
                (std::vector<std::string>{Value(2), Value(1)}));
    }
    CheckData(model);
    if (step == 0) {
      Compact();
      CheckMap(2);
    } else if (step == 1) {
      Reopen(options);
    }
  }
  CheckMap(2);
}

// The cache lives longer than the map. Its values are not used for the next
// map, whose keys have the same sequence numbers.
TEST_F(DBAddressMapLifecycleTest, RowCacheDoesNotServeValuesOfAnotherMap) {
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  uint64_t hits = 0;
  for (int db_number = 0; db_number < 2; ++db_number) {
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", Value(db_number)));
    ASSERT_OK(Flush());
    for (int open = 0; open < 2; ++open) {
      SCOPED_TRACE(std::to_string(db_number) + ", " + std::to_string(open));
      EXPECT_EQ(Get("k"), Value(db_number));
      EXPECT_EQ(Ticker(ROW_CACHE_HIT), hits);
      EXPECT_EQ(Get("k"), Value(db_number));
      EXPECT_EQ(Ticker(ROW_CACHE_HIT), ++hits);
      Reopen(options);
    }
  }
  // Two databases use the cache at the same time.
  const std::string other = OtherDir("other");
  {
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options, other, &db));
    ASSERT_OK(db->Put(WriteOptions(), "k", Value(7)));
    ASSERT_OK(db->Flush(FlushOptions()));
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(GetFrom(db.get(), db->DefaultColumnFamily(), "k"), Value(7));
      EXPECT_EQ(Get("k"), Value(1));
    }
    EXPECT_EQ(Ticker(ROW_CACHE_HIT), hits + 4);
    CheckMap(db->DefaultColumnFamily(), 1);
  }
  CheckMap(1);
}

TEST_F(DBAddressMapLifecycleTest, RowCacheRespectsFillCacheAndPins) {
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  // Reads without fill_cache do not fill the cache.
  ReadOptions no_fill;
  no_fill.fill_cache = false;
  std::string value;
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(db_->Get(no_fill, "k", &value));
    EXPECT_EQ(value, Value(1));
  }
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 0);
  EXPECT_EQ(Get("k"), Value(1));
  // A pinned value stays when its key is deleted.
  PinnableSlice pinned;
  ASSERT_OK(db_->Get(ReadOptions(), Handle(), "k", &pinned));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 1);
  ASSERT_OK(Delete("k"));
  ASSERT_OK(Flush());
  WaitForJobs();
  EXPECT_EQ(Get("k"), "NOT_FOUND");
  EXPECT_EQ(pinned, Value(1));
  pinned.Reset();
  CheckMap(0);
  CheckBlobFiles(0);
}

// ---- Files from other places.

TEST_F(DBAddressMapLifecycleTest, ImportedValuesEnterTheMapInACompaction) {
  const Options options = MapOptions();
  Options plain = CurrentOptions();
  plain.disable_auto_compactions = true;
  DestroyAndReopen(options);
  CreateColumnFamilies({"source"}, plain);
  ColumnFamilyHandle* const source = handles_[0];
  Model model;
  for (int i = 0; i < 20; ++i) {
    model[Key(i)] = Value(i);
    ASSERT_OK(db_->Put(WriteOptions(), source, Key(i), Value(i)));
  }
  ASSERT_OK(db_->Flush(FlushOptions(), source));
  for (int i = 0; i < 20; i += 2) {
    model[Key(i)] = Value(100 + i);
    ASSERT_OK(db_->Put(WriteOptions(), source, Key(i), Value(100 + i)));
  }
  model.erase(Key(7));
  ASSERT_OK(db_->Delete(WriteOptions(), source, Key(7)));
  Checkpoint* raw_checkpoint = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &raw_checkpoint));
  const std::unique_ptr<Checkpoint> checkpoint(raw_checkpoint);
  ExportImportFilesMetaData* raw_metadata = nullptr;
  ASSERT_OK(checkpoint->ExportColumnFamily(source, OtherDir("export"),
                                           &raw_metadata));
  const std::unique_ptr<ExportImportFilesMetaData> metadata(raw_metadata);
  ASSERT_EQ(metadata->files.size(), 2);

  // The imported values are in the SST files and not in the map until a
  // compaction.
  ColumnFamilyHandle* imported = nullptr;
  ASSERT_OK(db_->CreateColumnFamilyWithImport(
      options, "imported", ImportColumnFamilyOptions(), *metadata, &imported));
  handles_.push_back(imported);
  CheckData(db_.get(), imported, model);
  CheckMap(imported, 0);
  // Newer values are in the map, above the imported ones.
  model[Key(0)] = Value(200);
  ASSERT_OK(db_->Put(WriteOptions(), imported, Key(0), Value(200)));
  model.erase(Key(1));
  ASSERT_OK(db_->Delete(WriteOptions(), imported, Key(1)));
  model["new"] = Value(201);
  ASSERT_OK(db_->Put(WriteOptions(), imported, "new", Value(201)));
  ASSERT_OK(db_->Flush(FlushOptions(), imported));
  CheckData(db_.get(), imported, model);
  CheckMap(imported, 2);
  Compact(db_.get(), imported);
  CheckData(db_.get(), imported, model);
  CheckMap(imported, model.size());
  for (const auto& entry : model) {
    EXPECT_TRUE(IsDirect(imported, entry.first)) << entry.first;
  }

  // Its own files cannot be exported, because their values would not be
  // exported.
  raw_metadata = nullptr;
  Status s = checkpoint->ExportColumnFamily(imported, OtherDir("refused"),
                                            &raw_metadata);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_TRUE(Mentions(s.ToString(), "enable_blob_address_map"))
      << s.ToString();
  std::vector<LiveFileMetaData> live;
  db_->GetLiveFilesMetaData(&live);
  ExportImportFilesMetaData forged;
  forged.db_comparator_name = imported->GetComparator()->Name();
  for (const LiveFileMetaData& file : live) {
    if (file.column_family_name == "imported") {
      forged.files.push_back(file);
    }
  }
  ASSERT_EQ(forged.files.size(), 1);
  ColumnFamilyHandle* refused = nullptr;
  s = db_->CreateColumnFamilyWithImport(
      options, "refused", ImportColumnFamilyOptions(), forged, &refused);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_TRUE(Mentions(s.ToString(), "address map of another column family"))
      << s.ToString();
  EXPECT_EQ(refused, nullptr);
  const std::string stolen = WriteTable("stolen.sst", {{"x", "y"}});
  CopyTo(forged.files[0].db_path + forged.files[0].name, stolen);
  IngestExternalFileOptions db_generated;
  db_generated.allow_db_generated_files = true;
  s = db_->IngestExternalFile(source, {stolen}, db_generated);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_TRUE(Mentions(s.ToString(), "address map of another column family"))
      << s.ToString();

  ReopenWithColumnFamilies({kDefaultColumnFamilyName, "source", "imported"},
                           {options, plain, options});
  CheckData(db_.get(), handles_[2], model);
  CheckMap(handles_[2], model.size());
}

// A file that overwrites a direct value is ingested at each step of a flush of
// other keys. Reads find the ingested value.
TEST_F(DBAddressMapLifecycleTest, IngestedValueIsReadDuringAFlush) {
  for (const char* point :
       {"FlushMapping::Publish", "MapTransaction::Publish:Inserted",
        "FlushMapping::Settle"}) {
    SCOPED_TRACE(point);
    const Options options = MapOptions();
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", Value(1)));
    ASSERT_OK(Flush());
    ASSERT_TRUE(IsDirect("k"));
    const std::string file = WriteTable("during_flush", {{"k", Value(2)}});
    ASSERT_OK(Put("a", Value(1)));
    const auto done = EnableCallBackOnce(point, [&](void*) {
      EXPECT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
      EXPECT_EQ(Get("k"), Value(2));
      EXPECT_EQ(Get("a"), Value(1));
    });
    ASSERT_OK(Flush());
    WaitForJobs();
    DisableCallBacks();
    EXPECT_TRUE(*done);
    Model model = {{"a", Value(1)}, {"k", Value(2)}};
    CheckData(model);
    // The next value of k is above the ingested one.
    model["k"] = Value(3);
    ASSERT_OK(Put("k", Value(3)));
    ASSERT_OK(Flush());
    CheckData(model);
    Compact();
    CheckData(model);
    CheckMap(2);
    EXPECT_TRUE(IsDirect("a"));
    EXPECT_TRUE(IsDirect("k"));
    Reopen(options);
    CheckData(model);
    CheckMap(2);
  }
}

// ---- Memory.

TEST_F(DBAddressMapLifecycleTest, MemoryIsChargedToTheBlockCache) {
  constexpr int kKeys = 20000;
  constexpr uint64_t kStep = 256 << 10;
  constexpr CacheEntryRole kRole = CacheEntryRole::kBlobAddressMap;
  for (const bool charged : {true, false}) {
    SCOPED_TRACE(charged ? "charged" : "not charged");
    const std::shared_ptr<Cache> cache = NewLRUCache(8 << 20);
    const auto charge = [&cache] {
      uint64_t total = 0;
      cache->ApplyToAllEntries(
          [&total](const Slice& /*key*/, Cache::ObjectPtr /*value*/,
                   size_t entry_charge, const Cache::CacheItemHelper* helper) {
            if (helper != nullptr && helper->role == kRole) {
              total += entry_charge;
            }
          },
          {});
      return total;
    };
    Options options = MapOptions();
    BlockBasedTableOptions table_options;
    table_options.block_cache = cache;
    if (!charged) {
      table_options.cache_usage_options.options_overrides[kRole].charged =
          CacheEntryRoleOptions::Decision::kDisabled;
    }
    options.table_factory.reset(NewBlockBasedTableFactory(table_options));
    // These jobs would examine the cache, too, and the property would return
    // their results for a while.
    options.stats_dump_period_sec = 0;
    options.stats_persist_period_sec = 0;
    DestroyAndReopen(options);
    WriteBatch batch;
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_OK(batch.Put(Key(i), "value"));
    }
    ASSERT_OK(db_->Write(WriteOptions(), &batch));
    ASSERT_OK(Flush());
    WaitForJobs();
    CheckMap(kKeys);
    uint64_t memory = 0;
    ASSERT_TRUE(
        db_->GetIntProperty(DB::Properties::kBlobAddressMapMemory, &memory));
    EXPECT_GT(memory, uint64_t{kKeys} * 20);
    const uint64_t expected =
        charged ? (memory + kStep - 1) / kStep * kStep : 0;
    EXPECT_EQ(charge(), expected);
    std::map<std::string, std::string> stats;
    ASSERT_TRUE(
        db_->GetMapProperty(DB::Properties::kBlockCacheEntryStats, &stats));
    EXPECT_EQ(stats[BlockCacheEntryStatsMapKeys::UsedBytes(kRole)],
              std::to_string(expected));
    Close();
    EXPECT_EQ(charge(), 0);
    // The memory is charged, too, when an open loads the map.
    Reopen(options);
    CheckMap(kKeys);
    EXPECT_EQ(charge() > 0, charged);
    Close();
    EXPECT_EQ(charge(), 0);
  }
}

// ---- Checksums and copies.

TEST_F(DBAddressMapLifecycleTest, FileChecksumsCoverWholeBlobFiles) {
  Options options = MapOptions();
  options.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  DestroyAndReopen(options);
  Model model;
  for (int i = 0; i < 20; ++i) {
    model[Key(i)] = Value(i);
    ASSERT_OK(Put(Key(i), Value(i)));
    if (i % 10 == 9) {
      ASSERT_OK(Flush());
    }
  }
  ASSERT_OK(db_->VerifyFileChecksums(ReadOptions()));
  ASSERT_OK(db_->VerifyChecksum());
  const std::unique_ptr<FileChecksumList> list(NewFileChecksumList());
  ASSERT_OK(db_->GetLiveFilesChecksumInfo(list.get()));
  EXPECT_EQ(list->size(), 4);

  // The checksum covers the whole file: records, record index and footer.
  const std::string name = FilesIn(dbname_, kBlobFile)[0];
  const std::string path = dbname_ + "/" + name;
  std::string whole;
  ASSERT_OK(ReadFileToString(env_, path, &whole));
  const size_t index = whole.size() - BlobFooterV2::kSize - 1;
  for (const size_t at :
       {size_t{BlobHeaderV2::kSize + 5}, index, whole.size() - 1}) {
    SCOPED_TRACE(at);
    std::string damaged = whole;
    damaged[at] ^= 1;
    ASSERT_OK(WriteStringToFile(env_, damaged, path, /*should_sync=*/true));
    const Status s = db_->VerifyFileChecksums(ReadOptions());
    EXPECT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_TRUE(Mentions(s.ToString(), name)) << s.ToString();
  }
  ASSERT_OK(WriteStringToFile(env_, whole, path, /*should_sync=*/true));
  ASSERT_OK(db_->VerifyFileChecksums(ReadOptions()));

  // A dropped file is not verified, even if an old Version has it.
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  const std::string before = Scan(iter.get());
  for (int i = 0; i < 20; ++i) {
    model[Key(i)] = Value(100 + i);
    ASSERT_OK(Put(Key(i), Value(100 + i)));
  }
  ASSERT_OK(Flush());
  ASSERT_OK(db_->VerifyFileChecksums(ReadOptions()));
  EXPECT_EQ(Scan(iter.get()), before);
  iter.reset();
  Compact();
  ASSERT_OK(db_->VerifyFileChecksums(ReadOptions()));
  Reopen(options);
  ASSERT_OK(db_->VerifyFileChecksums(ReadOptions()));
  CheckData(model);
  CheckMap(20);
  CheckBlobFiles(1);
}

TEST_F(DBAddressMapLifecycleTest, IncrementalBackupSharesBlobFiles) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  const std::string backup_dir = OtherDir("backup");
  const std::string restored_dir = OtherDir("restored");
  std::vector<Model> models(2);
  for (int i = 0; i < 20; ++i) {
    models[0][Key(i)] = Value(i);
    ASSERT_OK(Put(Key(i), Value(i)));
    if (i % 10 == 9) {
      ASSERT_OK(Flush());
    }
  }
  BackupEngine* raw_engine = nullptr;
  ASSERT_OK(
      BackupEngine::Open(env_, BackupEngineOptions(backup_dir), &raw_engine));
  const std::unique_ptr<BackupEngine> engine(raw_engine);
  const auto shared_blob_files = [&] {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(backup_dir + "/shared_checksum", &names));
    return std::count_if(
        names.begin(), names.end(),
        [](const std::string& name) { return Slice(name).ends_with(".blob"); });
  };
  ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  EXPECT_EQ(shared_blob_files(), 2);
  // One of the two files is emptied and deleted, and the other one stays.
  models[1] = models[0];
  for (int i = 0; i < 10; ++i) {
    models[1][Key(i)] = Value(100 + i);
    ASSERT_OK(Put(Key(i), Value(100 + i)));
  }
  ASSERT_OK(Flush());
  WaitForJobs();
  CheckBlobFiles(2);
  ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  EXPECT_EQ(shared_blob_files(), 3);
  const auto check = [&](BackupID id) {
    SCOPED_TRACE(id);
    ASSERT_OK(engine->VerifyBackup(id, /*verify_with_checksum=*/true));
    ASSERT_OK(DestroyDir(env_, restored_dir));
    ASSERT_OK(engine->RestoreDBFromBackup(id, restored_dir, restored_dir));
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options, restored_dir, &db));
    CheckData(db.get(), db->DefaultColumnFamily(), models[id - 1]);
    CheckMap(db->DefaultColumnFamily(), 20);
  };
  check(1);
  check(2);
  // The first backup is deleted with the files that only it has.
  ASSERT_OK(engine->PurgeOldBackups(1));
  EXPECT_EQ(shared_blob_files(), 2);
  check(2);
  CheckData(models[1]);
  CheckMap(20);
}

// The files in a list of live files stay on disk while file deletions are
// disabled, even if their values are overwritten meanwhile.
TEST_F(DBAddressMapLifecycleTest, LiveFilesStayWhileDeletionsAreDisabled) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  Model then;
  Model now;
  for (int i = 0; i < 10; ++i) {
    then[Key(i)] = Value(i);
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(db_->DisableFileDeletions());
  ASSERT_OK(db_->DisableFileDeletions());
  std::vector<std::string> files;
  uint64_t manifest_size = 0;
  ASSERT_OK(db_->GetLiveFiles(files, &manifest_size, /*flush_memtable=*/true));
  for (int i = 0; i < 10; ++i) {
    now[Key(i)] = Value(100 + i);
    ASSERT_OK(Put(Key(i), Value(100 + i)));
  }
  // Makes another list when the flush is committed and has not dropped any file
  // yet.
  std::vector<std::string> during;
  uint64_t manifest_size_then = 0;
  EnableCallBack("FlushMapping::Settle", [&](void*) {
    EXPECT_OK(db_->GetLiveFiles(during, &manifest_size_then,
                                /*flush_memtable=*/false));
  });
  ASSERT_OK(Flush());
  WaitForJobs();
  DisableCallBacks();
  const auto blob_files = std::count_if(
      during.begin(), during.end(),
      [](const std::string& name) { return Slice(name).ends_with(".blob"); });
  EXPECT_EQ(blob_files, 2);
  for (const std::string& file : during) {
    EXPECT_OK(env_->FileExists(dbname_ + file)) << file;
  }
  CheckData(now);
  EXPECT_EQ(BlobFiles().size(), 1);
  EXPECT_EQ(FilesIn(dbname_, kBlobFile).size(), 2);

  const std::string copy = OtherDir("copy");
  ASSERT_OK(env_->CreateDirIfMissing(copy));
  for (const std::string& file : files) {
    std::string contents;
    ASSERT_OK(ReadFileToString(env_, dbname_ + file, &contents));
    if (Mentions(file, "MANIFEST")) {
      contents.resize(manifest_size);
    }
    ASSERT_OK(
        WriteStringToFile(env_, contents, copy + file, /*should_sync=*/true));
  }
  {
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options, copy, &db));
    CheckData(db.get(), db->DefaultColumnFamily(), then);
    CheckMap(db->DefaultColumnFamily(), 10);
  }

  // File deletions are enabled by the last of the calls.
  ASSERT_OK(db_->EnableFileDeletions());
  WaitForJobs();
  EXPECT_EQ(FilesIn(dbname_, kBlobFile).size(), 2);
  ASSERT_OK(db_->EnableFileDeletions());
  WaitForJobs();
  CheckBlobFiles(1);
  CheckData(now);
  CheckMap(10);
  Reopen(options);
  CheckData(now);
  CheckMap(10);
}

// ---- Compactions without CompactRange().

TEST_F(DBAddressMapLifecycleTest, CompactFilesRenamesAndRemovesValues) {
  for (const bool newest_too : {true, false}) {
    SCOPED_TRACE(newest_too ? "all" : "the older ones");
    const Options options = MapOptions();
    DestroyAndReopen(options);
    Model model;
    for (int i = 0; i < 10; ++i) {
      model[Key(i)] = Value(i);
      ASSERT_OK(Put(Key(i), Value(i)));
    }
    ASSERT_OK(Flush());
    const Snapshot* const snapshot = db_->GetSnapshot();
    for (int i = 0; i < 10; i += 2) {
      model[Key(i)] = Value(100 + i);
      ASSERT_OK(Put(Key(i), Value(100 + i)));
    }
    ASSERT_OK(Flush());
    db_->ReleaseSnapshot(snapshot);
    for (int i : {0, 5}) {
      model.erase(Key(i));
      ASSERT_OK(Delete(Key(i)));
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    CheckData(model);
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    std::vector<std::string> inputs;
    for (const SstFileMetaData& file : metadata.levels[0].files) {
      inputs.push_back(file.name);  // newest first
    }
    ASSERT_EQ(inputs.size(), 3);
    if (!newest_too) {
      inputs.erase(inputs.begin());
    }
    ASSERT_OK(db_->CompactFiles(CompactionOptions(), inputs, 2));
    WaitForJobs();
    EXPECT_EQ(FilesPerLevel(), newest_too ? "0,0,1" : "1,0,1");
    CheckData(model);
    if (newest_too) {
      EXPECT_EQ(Ticker(BLOB_MAP_RENAMED), 4);
    } else {
      Compact();
      CheckData(model);
    }
    CheckMap(8);
    for (const auto& entry : model) {
      EXPECT_TRUE(IsDirect(entry.first)) << entry.first;
    }
    CheckBlobFiles(2);
    Reopen(options);
    CheckData(model);
    CheckMap(8);
  }
}

// A file in level 0 is rewritten because of its age, and its values are
// filtered. The clock is a mock.
TEST_F(DBAddressMapLifecycleTest, PeriodicCompactionFiltersMappedValues) {
  ActingFilter filter;
  env_->SetMockSleep();
  Options options = MapOptions();
  options.disable_auto_compactions = false;
  options.compaction_filter = &filter;
  options.periodic_compaction_seconds = 48 * 60 * 60;
  options.max_open_files = -1;
  DestroyAndReopen(options);
  std::atomic<int> periodic{0};
  EnableCallBack(
      "LevelCompactionPicker::PickCompaction:Return", [&](void* arg) {
        const auto* const compaction = static_cast<Compaction*>(arg);
        periodic +=
            compaction != nullptr && compaction->compaction_reason() ==
                                         CompactionReason::kPeriodicCompaction
                ? 1
                : 0;
      });
  Model model;
  for (int i = 0; i < 10; ++i) {
    for (const char* prefix : {"change", "keep", "remove"}) {
      ASSERT_OK(Put(prefix + Key(i), Value(i)));
      model[prefix + Key(i)] = Value(i);
    }
  }
  ASSERT_OK(Flush());
  for (int i = 10; i < 20; ++i) {
    ASSERT_OK(Put("keep" + Key(i), Value(i)));
    model["keep" + Key(i)] = Value(i);
  }
  ASSERT_OK(Flush());
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(periodic, 0);
  CheckData(model);
  CheckMap(40);

  env_->MockSleepForSeconds(50 * 60 * 60);
  model["a"] = "new";
  ASSERT_OK(Put("a", "new"));
  ASSERT_OK(Flush());
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  WaitForJobs();
  EXPECT_GE(periodic, 1);
  for (int i = 0; i < 10; ++i) {
    model["change" + Key(i)] = "changed " + Value(i);
    model.erase("remove" + Key(i));
  }
  CheckData(model);
  DisableCallBacks();
  Compact();
  CheckData(model);
  CheckMap(31);
  Reopen(options);
  CheckData(model);
  CheckMap(31);
  Close();
}

// The blob file of SST files that have moved to another level unchanged is
// dropped when it has become empty.
TEST_F(DBAddressMapLifecycleTest, EmptyBlobFileIsDroppedAfterATrivialMove) {
  for (const bool with_iterator : {false, true}) {
    SCOPED_TRACE(with_iterator);
    Options options = MapOptions();
    options.num_levels = 4;
    DestroyAndReopen(options);
    std::atomic<int> moves{0};
    EnableCallBack("DBImpl::BackgroundCompaction:TrivialMove",
                   [&](void*) { ++moves; });
    Model model;
    for (int i = 0; i < 20; ++i) {
      model[Key(i)] = Value(i);
      ASSERT_OK(Put(Key(i), Value(i)));
    }
    ASSERT_OK(Flush());
    const std::vector<std::string> tables = FilesIn(dbname_, kTableFile);
    MoveFilesToLevel(3);
    DisableCallBacks();
    EXPECT_EQ(moves, 3);
    ASSERT_EQ(FilesPerLevel(), "0,0,0,1");
    EXPECT_EQ(FilesIn(dbname_, kTableFile), tables);
    CheckData(model);
    CheckMap(20);
    CheckBlobFiles(1);
    const std::vector<std::string> old_file = FilesIn(dbname_, kBlobFile);

    std::unique_ptr<Iterator> iter(
        with_iterator ? db_->NewIterator(ReadOptions()) : nullptr);
    const std::string before = Text(model);
    for (int i = 0; i < 20; ++i) {
      model[Key(i)] = Value(100 + i);
      ASSERT_OK(Put(Key(i), Value(100 + i)));
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    CheckData(model);
    if (with_iterator) {
      CheckBlobFiles(2);
      EXPECT_EQ(Scan(iter.get()), before);
      iter.reset();
      Compact();
    } else {
      EXPECT_EQ(FilesPerLevel(), "1,0,0,1");
    }
    CheckData(model);
    CheckMap(20);
    CheckBlobFiles(1);
    EXPECT_NE(FilesIn(dbname_, kBlobFile), old_file);
    for (const bool image : {true, false}) {
      SCOPED_TRACE(image);
      Close();
      if (!image) {
        DeleteImages();
      }
      Reopen(options);
      CheckData(model);
      CheckMap(20);
    }
    MoveFilesToLevel(3);
    WaitForJobs();
    CheckData(model);
    CheckMap(20);
    CheckBlobFiles(1);
  }
}

// Without threads for flushes, flushes run on the threads of compactions, and
// so must the jobs that follow them. Close() waits for these jobs.
TEST_F(DBAddressMapLifecycleTest, MapWorksWithoutThreadsForFlushes) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  const int threads = env_->GetBackgroundThreads(Env::Priority::HIGH);
  env_->SetBackgroundThreads(0, Env::Priority::HIGH);
  Model model;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) {
      model[Key(i)] = Value(100 * round + i);
      ASSERT_OK(Put(Key(i), model[Key(i)]));
    }
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    ASSERT_OK(Flush());
  }
  Compact();
  CheckData(model);
  CheckMap(20);
  CheckBlobFiles(1);
  Close();
  env_->SetBackgroundThreads(threads, Env::Priority::HIGH);
  Reopen(options);
  CheckData(model);
  CheckMap(20);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
