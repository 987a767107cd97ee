//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Repair, and recovery after losses, of databases with enable_blob_address_map.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob_v2/blob_format_v2.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "test_util/strata/address_map_data_test_util.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapRepairTest : public AddressMapDataTestBase {
 public:
  DBAddressMapRepairTest()
      : AddressMapDataTestBase("db_address_map_repair_test") {}

 protected:
  void LoseManifest() {
    DeleteFilesIn(dbname_, kDescriptorFile);
    DeleteImages();
  }
};

// ---- Repair.

TEST_F(DBAddressMapRepairTest, RepairRestoresTheMapsOfBothFamilies) {
  const Options options = MapOptions();
  const std::vector<std::string> names = {kDefaultColumnFamilyName, "other"};
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  std::vector<Contents> models(2);
  for (int cf : {0, 1}) {
    Contents& model = models[cf];
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
TEST_F(DBAddressMapRepairTest, RepairReadsFilesWithAnotherHashSeed) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  Contents model;
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
TEST_F(DBAddressMapRepairTest, RepairReportsATruncatedBlobFile) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  Contents model;
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
  options.allow_data_in_errors = true;
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

// ---- Recovery after losses.

// If a file is lost, best_efforts_recovery goes back to the state before the
// database had that file, whatever the image of the map contains.
TEST_F(DBAddressMapRepairTest, BestEffortsRecoveryGoesBackBeforeALoss) {
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
    std::vector<Contents> history(1);
    uint64_t manifest_size = 0;  // size before the last flush
    for (int round = 0; round < 3; ++round) {
      WaitForJobs();
      ASSERT_OK(env_->GetFileSize(
          dbname_ + "/" + FilesIn(dbname_, kDescriptorFile).back(),
          &manifest_size));
      Contents model = history.back();
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
    Contents model = history[expected];
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
TEST_F(DBAddressMapRepairTest, BestEffortsRecoveryNeedsNoDroppedFile) {
  for (const bool lost : {false, true}) {
    SCOPED_TRACE(lost);
    Options options = MapOptions();
    DestroyAndReopen(options);
    Contents model;
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

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
