//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Files of databases with enable_blob_address_map that come from another place
// or go there: import, ingestion, checksums, backups and copies.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/blob_v2/blob_format_v2.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test_util/strata/address_map_data_test_util.h"
#include "test_util/strata/sync_point_test_util.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapCopyTest : public AddressMapDataTestBase {
 public:
  DBAddressMapCopyTest() : AddressMapDataTestBase("db_address_map_copy_test") {}
};

// ---- Import and ingestion.

TEST_F(DBAddressMapCopyTest, ImportedValuesEnterTheMapInACompaction) {
  const Options options = MapOptions();
  Options plain = CurrentOptions();
  plain.disable_auto_compactions = true;
  DestroyAndReopen(options);
  CreateColumnFamilies({"source"}, plain);
  ColumnFamilyHandle* const source = handles_[0];
  Contents model;
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
TEST_F(DBAddressMapCopyTest, IngestedValueIsReadDuringAFlush) {
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
    Contents model = {{"a", Value(1)}, {"k", Value(2)}};
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

// ---- Checksums and copies.

TEST_F(DBAddressMapCopyTest, FileChecksumsCoverWholeBlobFiles) {
  Options options = MapOptions();
  options.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  DestroyAndReopen(options);
  Contents model;
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

TEST_F(DBAddressMapCopyTest, IncrementalBackupSharesBlobFiles) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  const std::string backup_dir = OtherDir("backup");
  const std::string restored_dir = OtherDir("restored");
  std::vector<Contents> models(2);
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
TEST_F(DBAddressMapCopyTest, LiveFilesStayWhileDeletionsAreDisabled) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  Contents then;
  Contents now;
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

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
