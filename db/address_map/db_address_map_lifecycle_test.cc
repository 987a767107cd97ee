//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Databases with enable_blob_address_map in events beside reads and writes:
// dropped and clipped column families, compactions without CompactRange(), the
// charge of memory, and an Env without threads for flushes.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/deferred_removals.h"
#include "db/address_map/spill_file.h"
#include "db/compaction/compaction.h"
#include "db/db_impl/db_impl.h"
#include "db/dbformat.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/advanced_cache.h"
#include "rocksdb/cache.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/convenience.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/table.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/write_batch.h"
#include "test_util/strata/address_map_data_test_util.h"
#include "test_util/strata/address_map_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapLifecycleTest : public AddressMapDataTestBase {
 public:
  DBAddressMapLifecycleTest()
      : AddressMapDataTestBase("db_address_map_lifecycle_test") {}

 protected:
  // Writes the values of n keys, flushes them and returns them.
  Contents FlushValues(int n) {
    Contents model;
    for (int i = 0; i < n; ++i) {
      model[Key(i)] = Value(i);
      EXPECT_OK(Put(Key(i), Value(i)));
    }
    EXPECT_OK(Flush());
    return model;
  }
};

// ---- Column families that are dropped or clipped.

TEST_F(DBAddressMapLifecycleTest, DroppedFamilyKeepsItsFilesForReaders) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  const Contents own = {{"k", Value(1)}};
  ASSERT_OK(Put(0, "k", Value(1)));
  ASSERT_OK(Flush(0));
  Contents model;
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
    Contents model;
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

// ---- Compactions without CompactRange().

TEST_F(DBAddressMapLifecycleTest, CompactFilesRenamesAndRemovesValues) {
  for (const bool newest_too : {true, false}) {
    SCOPED_TRACE(newest_too ? "all" : "the older ones");
    const Options options = MapOptions();
    DestroyAndReopen(options);
    Contents model;
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
  Contents model;
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
    Contents model;
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

// ---- Deletions of files.

// A file without live values stays on disk until the edit that drops it is
// committed. Edits of other jobs that are committed before do not release it.
TEST_F(DBAddressMapLifecycleTest, EmptyBlobFileStaysUntilItsOwnEdit) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  Contents model = FlushValues(3);
  WaitForJobs();
  ASSERT_EQ(BlobFiles().size(), 1u);
  const uint64_t number = BlobFiles()[0].blob_file_number;
  {
    // Keeps the flush from dropping the file.
    const AddressMapStore::FilePin pin(Blobs(), number);
    ASSERT_TRUE(pin.pinned());
    for (auto& [key, value] : model) {
      value = Value(100);
      ASSERT_OK(Put(key, value));
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    ASSERT_EQ(BlobFiles().size(), 2u);
  }
  const auto log = [this](VersionEdit* edit) {
    return dbfull()->GetVersionSet()->LogAndApply(
        Family(), ReadOptions(), WriteOptions(), edit, dbfull()->mutex(),
        /*dir_contains_current_file=*/nullptr);
  };
  VersionEdit drop;
  std::vector<uint64_t> dropped;
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    dropped = Blobs()->AddDrops(*Family()->current()->storage_info(), &drop);
    VersionEdit other;
    ASSERT_OK(log(&other));
  }
  ASSERT_EQ(dropped, std::vector<uint64_t>{number});
  dbfull()->TEST_DeleteObsoleteFiles();
  WaitForJobs();
  EXPECT_EQ(FilesOnDisk(kBlobFile).count(number), 1u);
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    ASSERT_OK(log(&drop));
    Blobs()->FinishDrops(dropped);
  }
  dbfull()->TEST_DeleteObsoleteFiles();
  WaitForJobs();
  EXPECT_EQ(FilesOnDisk(kBlobFile).count(number), 0u);
  Reopen(options);
  CheckData(model);
  CheckMap(3);
  CheckBlobFiles(1);
}

// A file that loses its last live value while VerifyChecksum() holds it is
// deleted when the call ends, without another event.
TEST_F(DBAddressMapLifecycleTest, FileThatAChecksumHeldIsDeletedAfterwards) {
  Options options = MapOptions();
  options.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  for (const bool whole_files : {false, true}) {
    SCOPED_TRACE(whole_files);
    DestroyAndReopen(options);
    Contents model = FlushValues(3);
    WaitForJobs();
    ASSERT_EQ(BlobFiles().size(), 1u);
    const uint64_t number = BlobFiles()[0].blob_file_number;
    const auto pinned =
        EnableCallBackOnce("AddressMapStore::FilePin:Pinned", [&](void*) {
          OnAnotherThread([&] {
            for (auto& [key, value] : model) {
              value = Value(100);
              ASSERT_OK(Put(key, value));
            }
            ASSERT_OK(Flush());
            WaitForJobs();
            EXPECT_EQ(FilesOnDisk(kBlobFile).count(number), 1u);
          });
        });
    ASSERT_OK(whole_files ? db_->VerifyFileChecksums(ReadOptions())
                          : db_->VerifyChecksum());
    DisableCallBacks();
    EXPECT_TRUE(pinned->load());
    WaitForJobs();
    EXPECT_EQ(FilesOnDisk(kBlobFile).count(number), 0u);
    CheckData(model);
    CheckMap(3);
  }
}

// Names that a compaction has dropped wait for the calls that use the Version
// before it. They are removed when the call ends, without another event.
TEST_F(DBAddressMapLifecycleTest, NamesThatACallHeldAreRemovedAfterwards) {
  const ActingFilter filter;
  Options options = MapOptions();
  options.compaction_filter = &filter;
  // A Version keeps two tables open. The others are looked up by each call.
  options.max_open_files = 20;
  std::string table;  // the path of one of these
  using Call = std::function<Status()>;
  const std::vector<std::pair<const char*, Call>> calls = {
      {"GetPropertiesOfAllTables",
       [&] {
         TablePropertiesCollection properties;
         return db_->GetPropertiesOfAllTables(&properties);
       }},
      {"GetPropertiesOfTablesInRange",
       [&] {
         const Range range("a", "z");
         TablePropertiesCollection properties;
         return db_->GetPropertiesOfTablesInRange(db_->DefaultColumnFamily(),
                                                  &range, 1, &properties);
       }},
      {"GetPropertiesOfTablesByLevel",
       [&] {
         std::vector<std::unique_ptr<TablePropertiesCollection>> properties;
         return db_->GetPropertiesOfTablesByLevel(db_->DefaultColumnFamily(),
                                                  &properties);
       }},
      {"GetPreparedFileInfoForExternalSstIngestion", [&] {
         std::shared_ptr<const PreparedFileInfo> info;
         return db_->GetPreparedFileInfoForExternalSstIngestion(table, &info);
       }}};
  const auto num_retired = [this] {
    std::map<std::string, std::string> values;
    EXPECT_TRUE(db_->GetMapProperty(DB::Properties::kBlobAddressMap, &values));
    return values["retired-removals"];
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    DestroyAndReopen(options);
    for (int i = 0; i < 4; ++i) {
      const std::string suffix = std::to_string(i);
      ASSERT_OK(Put("keep" + suffix, Value(i)));
      ASSERT_OK(Put("remove" + suffix, Value(i)));
      ASSERT_OK(Flush());
    }
    WaitForJobs();
    table.clear();
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      const auto& files = Family()->current()->storage_info()->LevelFiles(0);
      ASSERT_EQ(files.size(), 4u);
      for (const FileMetaData* const file : files) {
        if (file->fd.pinned_reader.Get() == nullptr) {
          table = TableFileName(Family()->ioptions().cf_paths,
                                file->fd.GetNumber(), file->fd.GetPathId());
        }
      }
    }
    ASSERT_FALSE(table.empty());
    const auto reached =
        EnableCallBackOnce("TableCache::FindTable:0", [&](void*) {
          OnAnotherThread([&] {
            ASSERT_OK(ForceCompaction());
            WaitForJobs();
            EXPECT_NE(num_retired(), "0");
          });
        });
    ASSERT_OK(call());
    DisableCallBacks();
    EXPECT_TRUE(reached->load());
    WaitForJobs();
    EXPECT_EQ(num_retired(), "0");
    CheckMap(4);
  }
}

// Names that wait for readers may be in a spill file, which a scan for obsolete
// files must keep.
TEST_F(DBAddressMapLifecycleTest, ScanForObsoleteFilesKeepsSpillFiles) {
  DestroyAndReopen(MapOptions());
  FlushValues(1);
  WaitForJobs();
  const DeferredRemovals::NewSpillFile create =
      Blobs()->SpillFiles(Family()->current(), dbname_);
  std::unique_ptr<SpillFile> file;
  ASSERT_OK(create(&file));
  ASSERT_EQ(FilesIn(dbname_, kTempFile).size(), 1u);
  dbfull()->TEST_DeleteObsoleteFiles();
  EXPECT_EQ(FilesIn(dbname_, kTempFile).size(), 1u);
  file.reset();
  EXPECT_EQ(FilesIn(dbname_, kTempFile).size(), 0u);
}

// Two files of a level have versions of one key, and the map has only the newer
// one. DeleteFilesInRange() must keep the newer version's file if the other one
// has to stay, here because of a lower level.
TEST_F(DBAddressMapLifecycleTest, FileStaysAboveOlderVersionsInTheNextFile) {
  Options options = MapOptions();
  options.num_levels = 4;
  DestroyAndReopen(options);
  Contents model;
  const auto put = [&](const std::string& key, int value) {
    model[key] = Value(value);
    ASSERT_OK(Put(key, model[key]));
  };
  // This file reaches beyond the deleted range.
  put("m", 1);
  put("zz", 2);
  ASSERT_OK(Flush());
  MoveFilesToLevel(3);
  put("k", 3);
  const SequenceNumber older = db_->GetLatestSequenceNumber();
  const Snapshot* const snapshot = db_->GetSnapshot();
  put("a", 4);
  put("k", 5);
  put("y", 6);
  ASSERT_OK(Flush());
  EnableCallBack("CompactionOutputs::ShouldStopBefore::manual_decision",
                 [older](void* arg) {
                   const auto& decision =
                       *static_cast<std::pair<bool*, const Slice>*>(arg);
                   *decision.first =
                       ExtractUserKey(decision.second) == "k" &&
                       GetInternalKeySeqno(decision.second) == older;
                 });
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  ASSERT_EQ(metadata.levels[0].files.size(), 1u);
  ASSERT_OK(db_->CompactFiles(CompactionOptions(),
                              {metadata.levels[0].files[0].name}, 2));
  DisableCallBacks();
  ASSERT_EQ(FilesPerLevel(), "0,0,2,1");
  db_->ReleaseSnapshot(snapshot);
  WaitForJobs();
  CheckMap(5);

  const Slice begin("a");
  const Slice end("z");
  ASSERT_OK(
      DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &begin, &end));
  EXPECT_EQ(FilesPerLevel(), "0,0,2,1");
  CheckData(model);
  CheckMap(5);
  Reopen(options);
  CheckData(model);
  CheckMap(5);
}

// ---- Images of maps.

// After a failed write of the MANIFEST the engine does not know which edits the
// MANIFEST has, so an image might be that of another state than the next open
// recovers.
TEST_F(DBAddressMapLifecycleTest, CloseAfterAnErrorWritesNoImage) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  Contents model = FlushValues(20);
  Close();
  ASSERT_EQ(FilesIn(dbname_, kTempFile).size(), 1u);
  Reopen(options);
  model[Key(0)] = Value(100);
  ASSERT_OK(Put(Key(0), Value(100)));
  env_->manifest_write_error_.store(true);
  ASSERT_NOK(Flush());
  env_->manifest_write_error_.store(false);
  Close();
  EXPECT_EQ(FilesIn(dbname_, kTempFile).size(), 0u);
  Reopen(options);
  CheckData(model);
  CheckMap(20);
}

// An image would keep names that could not be removed, or lack values that
// could not be named, over all later opens.
TEST_F(DBAddressMapLifecycleTest, InexactMapWritesNoImage) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  const Contents model = FlushValues(20);
  const std::map<std::string, std::function<void()>> causes = {
      {"none", [] {}},
      {"dropped names",
       [&] {
         auto removals = std::make_unique<DeferredRemovals>(
             /*cap=*/1, [](std::unique_ptr<SpillFile>* /*file*/) {
               return Status::NoSpace();
             });
         const MapName name{Blobs()->HashOf("other"), /*seq=*/1, /*birth=*/0};
         while (removals->complete()) {
           removals->Add(&name, 1);
         }
         Blobs()->Retire(std::move(removals),
                         Family()->current()->GetVersionNumber());
       }},
      {"refused reads",
       [&] { Blobs()->RefuseReads(Status::Corruption("test")); }}};
  for (const auto& [name, make_inexact] : causes) {
    SCOPED_TRACE(name);
    Reopen(options);
    CheckData(model);
    CheckMap(20);
    make_inexact();
    WaitForJobs();
    Close();
    EXPECT_EQ(FilesIn(dbname_, kTempFile).size(), name == "none" ? 1u : 0u);
  }
}

// The map has some of the values when the damage is found. It must not count
// these twice when it is rebuilt from the blob files.
TEST_F(DBAddressMapLifecycleTest,
       MapIsRebuiltIfItsImageIsDamagedBehindOtherBlocks) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  constexpr int kKeys = 20000;
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(Put(Key(i), "v" + std::to_string(i)));
  }
  ASSERT_OK(Flush());
  Close();
  const std::vector<std::string> images = FilesIn(dbname_, kTempFile);
  ASSERT_EQ(images.size(), 1u);
  const std::string path = dbname_ + "/" + images[0];
  uint64_t size = 0;
  ASSERT_OK(env_->GetFileSize(path, &size));
  // There are several blocks of entries. The last block is the index.
  ASSERT_GT(size, uint64_t{300} << 10);
  ASSERT_OK(
      test::CorruptFile(env_, path, static_cast<int>(size - size / 4), 1));
  Reopen(options);
  CheckMap(kKeys);
  for (const BlobMetaData& file : BlobFiles()) {
    EXPECT_EQ(file.garbage_blob_count, 0u);
  }
  for (int i = 0; i < kKeys; ++i) {
    if (i % 2 == 0) {
      ASSERT_OK(Put(Key(i), "w" + std::to_string(i)));
    }
  }
  ASSERT_OK(Flush());
  WaitForJobs();
  CheckMap(kKeys);
  for (int i = 0; i < kKeys; i += 100) {
    ASSERT_EQ(Get(Key(i)), "w" + std::to_string(i));
    ASSERT_EQ(Get(Key(i + 1)), "v" + std::to_string(i + 1));
  }
}

// The files that a recovery writes are in no Version until it ends, so a flush
// does not find the older versions that an earlier flush has written.
TEST_F(DBAddressMapLifecycleTest, OnlyTheFirstFlushOfARecoveryWritesDirect) {
  Options options = MapOptions();
  options.min_blob_size = 50;
  options.avoid_flush_during_shutdown = true;
  DestroyAndReopen(options);
  Contents model;
  model["k"] = "inline";
  ASSERT_OK(Put("k", "inline"));
  for (int i = 0; i < 1000; ++i) {
    model[Key(i)] = Value(i);
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  model["k"] = Value(1);
  ASSERT_OK(Put("k", Value(1)));
  Close();
  options.write_buffer_size = 64 << 10;
  Reopen(options);
  ASSERT_GT(NumTableFilesAtLevel(0), 1);
  EXPECT_TRUE(IsDirect(Key(0)));
  EXPECT_FALSE(IsDirect("k"));
  CheckData(model);
  Compact();
  EXPECT_TRUE(IsDirect("k"));
  CheckData(model);
}

// Without threads for flushes, flushes run on the threads of compactions, and
// so must the jobs that follow them. Close() waits for these jobs.
TEST_F(DBAddressMapLifecycleTest, MapWorksWithoutThreadsForFlushes) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  const int threads = env_->GetBackgroundThreads(Env::Priority::HIGH);
  env_->SetBackgroundThreads(0, Env::Priority::HIGH);
  Contents model;
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
