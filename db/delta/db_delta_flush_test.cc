//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests the contents of the delta files that flushes write, read through the
// Version. Other tests cover how reads merge them.

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/range_tombstone_fragmenter.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/listener.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test_util/strata/delta_db_test_util.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "test_util/testutil.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Counts flushes that begin and end, and flushes without an SST file.
class FlushListener : public EventListener {
 public:
  void OnFlushBegin(DB* /*db*/, const FlushJobInfo& /*info*/) override {
    ++begun;
  }
  void OnFlushCompleted(DB* db, const FlushJobInfo& info) override {
    ++flushes;
    if (db->GetEnv()->FileExists(info.file_path).IsNotFound()) {
      ++without_sst;
    }
  }
  std::atomic<int> begun{0};
  std::atomic<int> flushes{0};
  std::atomic<int> without_sst{0};
};

}  // namespace

class DBDeltaFlushTest : public DeltaDBTestBase {
 protected:
  using Kind = DeltaFileDescription::Kind;

  DBDeltaFlushTest() : DeltaDBTestBase("db_delta_flush_test") {}

  Options DeltaOptions() const {
    Options options = DeltaDBTestBase::DeltaOptions();
    // Tests call Resume() on their own.
    options.max_bgerror_resume_count = 0;
    return options;
  }
  static Options Without(Options options) {
    options.enable_delta_separation = false;
    return options;
  }

  // Returns the contents of the recent delta files: the operands and anchors of
  // each flush, the oldest flush first, with sequence numbers after "@".
  std::string Store(int cf = 0) {
    ColumnFamilyData* const cfd = Family(cf);
    SuperVersion* const sv = dbfull()->GetAndRefSuperVersion(cfd);
    const DeltaVersion* const version =
        sv->current->storage_info()->delta().get();
    std::string text;
    if (version != nullptr) {
      EXPECT_OK(version->CheckConsistency());
      // ForEachFile() visits operands before anchors.
      std::map<uint64_t, std::string> flushes;
      version->ForEachFile([&](const DeltaVersion::FilePtr& file) {
        AppendContents(*cfd->delta_store(), *file,
                       &flushes[file->description().last_epoch]);
      });
      for (const auto& [epoch, contents] : flushes) {
        text += (text.empty() ? "" : " | ") + contents;
      }
    }
    dbfull()->ReturnAndCleanupSuperVersion(cfd, sv);
    return text;
  }

  static void AppendContents(const DeltaStore& store, const DeltaFileMeta& file,
                             std::string* text) {
    const ReadOptions read_options;
    DeltaFileReader* reader = nullptr;
    ASSERT_OK(store.GetReader(read_options, file, &reader));
    const bool operands = file.description().kind == Kind::kOperands;
    const auto add = [text](const std::string& entry) {
      *text += (text->empty() ? "" : " ") + entry;
    };
    const std::unique_ptr<InternalIterator> iter(
        reader->NewIterator(read_options, TableReaderCaller::kUserIterator));
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      ParsedInternalKey key;
      ASSERT_OK(ParseInternalKey(iter->key(), &key, /*log_err_key=*/true));
      const std::string at =
          key.user_key.ToString() + "@" + std::to_string(key.sequence);
      add(operands ? "op " + at + "=" + iter->value().ToString()
                   : "anchor " + at);
    }
    ASSERT_OK(iter->status());
    const auto ranges = reader->NewRangeAnchorIterator(kMaxSequenceNumber);
    if (ranges != nullptr) {
      for (ranges->SeekToFirst(); ranges->Valid(); ranges->Next()) {
        add("range " + ranges->start_key().ToString() + "-" +
            ranges->end_key().ToString() + "@" + std::to_string(ranges->seq()));
      }
    }
  }

  // Checks that SST files have so many entries and no operand.
  void CheckSsts(uint64_t num_entries, int cf = 0) {
    TablePropertiesCollection all;
    ASSERT_OK(db_->GetPropertiesOfAllTables(Handle(cf), &all));
    uint64_t entries = 0;
    for (const auto& [name, properties] : all) {
      entries += properties->num_entries;
      EXPECT_EQ(0, properties->num_merge_operands);
    }
    EXPECT_EQ(num_entries, entries);
  }

  // Counts files after obsolete ones have been deleted.
  size_t NumFiles(FileType type) {
    DeleteObsoleteFiles();
    return FilesOnDisk(type).size();
  }

  void CheckSequence(SequenceNumber seq) {
    EXPECT_EQ(seq, db_->GetLatestSequenceNumber());
  }

  // Writes more than fits into a small memtable.
  void Fill() {
    const std::string big(20000, 'x');
    for (int i = 0; i < 12; ++i) {
      ASSERT_OK(Put("f" + std::to_string(i), big));
    }
  }
  // Makes a recovery with small memtables flush three times: an operand of "a",
  // then its base, then another operand.
  void WriteForSeveralFlushes() {
    ASSERT_OK(Merge("a", "1"));
    Fill();  // @2 to @13
    ASSERT_OK(Put("a", "2"));
    Fill();  // @15 to @26
    ASSERT_OK(Merge("a", "3"));
  }
};

TEST_F(DBDeltaFlushTest, FlushWritesOperandsAndTheirAnchors) {
  DestroyAndReopen(DeltaOptions());
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Put("b", "2"));
  ASSERT_OK(Merge("b", "3"));  // merged into the value
  ASSERT_OK(Merge("c", "4"));
  ASSERT_OK(Merge("c", "5"));  // combined with the operand
  ASSERT_OK(Delete("d"));
  ASSERT_OK(Flush());
  EXPECT_EQ("op a@1=1 op c@5=4,5", Store());
  CheckSsts(2);

  ASSERT_OK(Put("a", "7"));
  ASSERT_OK(Put("b", "8"));  // the store has no operand of it
  ASSERT_OK(Merge("c", "9"));
  ASSERT_OK(Delete("e"));
  ASSERT_OK(Flush());
  EXPECT_EQ("op a@1=1 op c@5=4,5 | op c@9=9 anchor a@7", Store());
  CheckSsts(5);

  // An anchor alone does not require another one; an operand does.
  ASSERT_OK(SingleDelete("c"));
  ASSERT_OK(Put("f", "12"));
  ASSERT_OK(Flush());
  EXPECT_EQ("op a@1=1 op c@5=4,5 | op c@9=9 anchor a@7 | anchor c@11", Store());
  EXPECT_EQ(3, Ticker(DELTA_OPERANDS_FLUSHED));
  EXPECT_EQ(2, Ticker(DELTA_ANCHORS_FLUSHED));
  EXPECT_GT(Ticker(DELTA_FLUSH_BYTES), 0);
  EXPECT_EQ(4, NumFiles(kDeltaFile));
}

TEST_F(DBDeltaFlushTest, SnapshotsKeepOperandsApart) {
  DestroyAndReopen(DeltaOptions());
  ASSERT_OK(Merge("a", "1"));
  const ManagedSnapshot first(db_.get());
  ASSERT_OK(Put("a", "2"));
  const ManagedSnapshot second(db_.get());
  ASSERT_OK(Merge("a", "3"));
  const ManagedSnapshot third(db_.get());
  ASSERT_OK(Merge("a", "4"));
  ASSERT_OK(Merge("b", "5"));
  ASSERT_OK(Flush());
  EXPECT_EQ("op a@4=4 op a@3=3 op a@1=1 op b@5=5 anchor a@2", Store());
  CheckSsts(1);
}

TEST_F(DBDeltaFlushTest, RangeDeletionsOverOperandsBecomeRangeAnchors) {
  DestroyAndReopen(DeltaOptions());
  const auto delete_range = [this](const char* begin, const char* end) {
    ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                               begin, end));
  };
  ASSERT_OK(Merge("c", "1"));
  ASSERT_OK(Merge("e", "2"));
  ASSERT_OK(Flush());
  delete_range("b", "d");  // @3
  delete_range("x", "z");  // @4
  ASSERT_OK(Flush());
  EXPECT_EQ("op c@1=1 op e@2=2 | range b-d@3", Store());
  // The second range tombstone is in the SST file only; the first is in both.
  CheckSsts(2);

  // A range tombstone hides an operand that a snapshot keeps in the same flush.
  ASSERT_OK(Merge("m", "5"));
  {
    const ManagedSnapshot snapshot(db_.get());
    delete_range("l", "n");  // @6
    ASSERT_OK(Merge("m", "7"));
    ASSERT_OK(Flush());
  }
  EXPECT_EQ("op c@1=1 op e@2=2 | range b-d@3 | op m@7=7 op m@5=5 range l-n@6",
            Store());
}

TEST_F(DBDeltaFlushTest, FlushOfOperandsAloneWritesNoSst) {
  Options options = DeltaOptions();
  const auto listener = std::make_shared<FlushListener>();
  options.listeners.push_back(listener);
  DestroyAndReopen(options);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_OK(Merge("a", std::to_string(i)));
    ASSERT_OK(Flush());
    EXPECT_EQ(0, NumTableFilesAtLevel(0));
  }
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  EXPECT_EQ(3, listener->flushes.load());
  EXPECT_EQ(3, listener->without_sst.load());
  // The WAL of the operands is gone, so only the delta files have them.
  EXPECT_EQ(1, NumFiles(kWalFile));
  EXPECT_EQ("op a@1=1 | op a@2=2 | op a@3=3", Store());
  EXPECT_EQ(30, Ticker(MEMTABLE_PAYLOAD_BYTES_AT_FLUSH));
  EXPECT_EQ(0, Ticker(MEMTABLE_GARBAGE_BYTES_AT_FLUSH));

  for (const bool separate : {true, false}) {
    options.enable_delta_separation = separate;
    Reopen(options);
    EXPECT_EQ("op a@1=1 | op a@2=2 | op a@3=3", Store());
    // Sequence numbers of operands in delta files are not used again.
    CheckSequence(3);
  }
  EXPECT_EQ(3, NumFiles(kDeltaFile));
  ASSERT_OK(Put("a", "4"));
  ASSERT_OK(Flush());
  EXPECT_EQ("op a@1=1 | op a@2=2 | op a@3=3 | anchor a@4", Store());
}

TEST_F(DBDeltaFlushTest, RecoveryFlushesOperands) {
  for (const bool optimize_manifest : {false, true}) {
    Options options = DeltaOptions();
    options.optimize_manifest_for_recovery = optimize_manifest;
    DestroyAndReopen(options);
    // The first recovery has no flush before it, the later ones do.
    ASSERT_OK(Merge("a", "1"));
    Reopen(options);
    EXPECT_EQ("op a@1=1", Store());
    CheckSequence(1);
    ASSERT_OK(Put("a", "2"));
    ASSERT_OK(Merge("b", "3"));
    ASSERT_OK(
        db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "a", "c"));
    ASSERT_OK(Merge("b", "5"));
    Reopen(options);
    // The range tombstone has removed the older value and operand of its own
    // flush.
    EXPECT_EQ("op a@1=1 | op b@5=5 range a-c@4", Store());
    CheckSequence(5);
    ASSERT_OK(Put("a", "6"));
    Reopen(options);
    EXPECT_EQ("op a@1=1 | op b@5=5 range a-c@4 | anchor a@6", Store());
    CheckSequence(6);
    Reopen(options);
    EXPECT_EQ("op a@1=1 | op b@5=5 range a-c@4 | anchor a@6", Store());
    CheckSequence(6);
    EXPECT_EQ(4, NumFiles(kDeltaFile));
  }
}

TEST_F(DBDeltaFlushTest, FlushesOfARecoverySeeEarlierOnes) {
  Options options = DeltaOptions();
  options.write_buffer_size = 8 << 20;
  DestroyAndReopen(options);
  WriteForSeveralFlushes();
  Fill();  // @28 to @39
  ASSERT_OK(
      db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "a", "b"));
  options.write_buffer_size = 64 << 10;
  Reopen(options);
  EXPECT_GE(NumTableFilesAtLevel(0), 3);
  // Each flush knows what earlier flushes of the recovery have written. Values
  // of other keys need no anchors.
  EXPECT_EQ("op a@1=1 | anchor a@14 | op a@27=3 | range a-b@40", Store());
  CheckSequence(40);
  Reopen(options);
  EXPECT_EQ("op a@1=1 | anchor a@14 | op a@27=3 | range a-b@40", Store());
}

// A later flush of a recovery finds operands of earlier ones even if the block
// cache has no room for their filter and index.
TEST_F(DBDeltaFlushTest, RecoveryNeedsNoRoomInTheBlockCache) {
  Options options = DeltaOptions();
  options.write_buffer_size = 8 << 20;
  DestroyAndReopen(options);
  WriteForSeveralFlushes();
  Options recovering = options;
  recovering.write_buffer_size = 64 << 10;
  BlockBasedTableOptions table_options;
  table_options.block_cache = NewLRUCache(/*capacity=*/1, /*num_shard_bits=*/0,
                                          /*strict_capacity_limit=*/true);
  recovering.table_factory.reset(NewBlockBasedTableFactory(table_options));
  Reopen(recovering);
  EXPECT_GE(NumTableFilesAtLevel(0), 2);
  Reopen(options);
  EXPECT_EQ("op a@1=1 | anchor a@14 | op a@27=3", Store());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  EXPECT_EQ("2,3", Get("a"));
}

// RocksDB's table reader opens without a filter if the block cache has no room
// for it. The reader of a delta file serves all later reads and flushes, so it
// reads the filter past the cache. Without the filter, a flush would take all
// keys in the range of the file for keys of the store.
TEST_F(DBDeltaFlushTest, ReadersNeedNoRoomForTheirFilterInTheBlockCache) {
  Options options = DeltaOptions();
  options.disable_auto_compactions = true;
  DestroyAndReopen(options);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_OK(Merge("key" + std::to_string(10000 + i), ""));
  }
  ASSERT_OK(Flush());
  size_t num_readers = 0;
  for (size_t capacity = 100; capacity <= (64 << 10); capacity *= 2) {
    SCOPED_TRACE(capacity);
    Options without = Without(options);
    BlockBasedTableOptions table_options;
    table_options.block_cache = NewLRUCache(capacity, /*num_shard_bits=*/0,
                                            /*strict_capacity_limit=*/true);
    without.table_factory.reset(NewBlockBasedTableFactory(table_options));
    Reopen(without);
    ASSERT_OK(Merge("key10000x", "1"));
    ASSERT_OK(Flush());
    const auto version = Family()->current()->storage_info()->delta();
    ASSERT_NE(version, nullptr);
    version->ForEachFile([&](const DeltaVersion::FilePtr& file) {
      const DeltaFileReader* const reader = file->OpenedReader();
      if (reader != nullptr) {
        ++num_readers;
        EXPECT_FALSE(reader->LacksFilter());
      }
    });
  }
  EXPECT_GT(num_readers, 0u);
  Reopen(options);
  EXPECT_EQ(Store().find("key10000x"), std::string::npos);
}

TEST_F(DBDeltaFlushTest, WithoutTheOptionOnlyStoredKeysGoToTheStore) {
  const Options options = DeltaOptions();
  DestroyAndReopen(Without(options));
  EXPECT_EQ(nullptr, Family()->delta_store());
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  EXPECT_EQ("", Store());
  EXPECT_TRUE(FilesOnDisk(kDeltaFile).empty());
  EXPECT_EQ(1, NumTableFilesAtLevel(0));
  EXPECT_EQ(0, Ticker(DELTA_OPERANDS_FLUSHED));

  // With the option on, new operands go to the store. Older ones stay in the
  // tree.
  Reopen(options);
  ASSERT_NE(nullptr, Family()->delta_store());
  ASSERT_OK(Merge("a", "2"));
  ASSERT_OK(Put("b", "3"));
  ASSERT_OK(Flush());
  EXPECT_EQ("op a@2=2", Store());

  // With the option off again, flushes still write operands to the store if it
  // has operands of the same key, since in an SST file they would be taken for
  // older ones. Other operands stay in the tree.
  Reopen(Without(options));
  ASSERT_NE(nullptr, Family()->delta_store());
  ASSERT_OK(Merge("a", "4"));
  ASSERT_OK(Put("a", "5"));
  ASSERT_OK(Merge("c", "6"));
  ASSERT_OK(Flush());
  EXPECT_EQ("op a@2=2 | anchor a@5", Store());
  // The same holds for flushes of a recovery.
  ASSERT_OK(Merge("a", "7"));
  ASSERT_OK(Merge("c", "8"));
  Reopen(Without(options));
  EXPECT_EQ("op a@2=2 | anchor a@5 | op a@7=7", Store());
  EXPECT_EQ("5,7", Get("a"));
  EXPECT_EQ("6,8", Get("c"));
}

TEST_F(DBDeltaFlushTest, NoFilesWithoutOperands) {
  DestroyAndReopen(DeltaOptions());
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(Put("a", "value"));
    ASSERT_OK(Delete("b"));
    ASSERT_OK(
        db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "c", "d"));
    ASSERT_OK(Flush());
  }
  EXPECT_EQ("", Store());
  EXPECT_TRUE(FilesOnDisk(kDeltaFile).empty());
  EXPECT_EQ(3, NumTableFilesAtLevel(0));
}

// A flush that fails after any of its steps leaves nothing in the store, and
// the next one flushes everything.
TEST_F(DBDeltaFlushTest, FlushAfterAFailedOneWritesEverything) {
  const auto fail_io = [&](void* arg) {
    *static_cast<IOStatus*>(arg) = RetryableError();
  };
  const auto fail = [&](void* arg) {
    *static_cast<Status*>(arg) = RetryableError();
  };
  const std::vector<std::pair<std::string, std::function<void(void*)>>> points =
      {{"DeltaFileBuilder::Open:NewWritableFile", fail_io},
       {"DeltaFileBuilder::FinishFile:BeforeSync", fail_io},
       {"DeltaFileBuilder::FinishFile:AfterClose", fail_io},
       {"DeltaFlush::Publish:BeforeFiles", fail},
       {"FlushJob::WriteLevel0Table:s", fail},
       {"FlushJob::Run:PostBuildTable", fail}};
  for (const auto& [point, inject] : points) {
    // The first call is for operands, the second for anchors.
    for (int at = 1; at <= 2; ++at) {
      SCOPED_TRACE(point + " " + std::to_string(at));
      DestroyAndReopen(DeltaOptions());
      ASSERT_OK(Merge("a", "1"));
      ASSERT_OK(Flush());
      ASSERT_OK(Put("a", "2"));
      ASSERT_OK(Merge("b", "3"));
      std::atomic<int> calls{0};
      EnableCallBack(point, [&, fn = inject](void* arg) {
        if (++calls == at) {
          fn(arg);
        }
      });
      const Status s = Flush();
      DisableCallBacks();
      if (calls < at) {
        ASSERT_OK(s);  // the point is passed only once
      } else {
        ASSERT_NOK(s);
        EXPECT_EQ("op a@1=1", Store());
        ASSERT_OK(dbfull()->Resume());
        ASSERT_OK(Flush());
      }
      EXPECT_EQ("op a@1=1 | op b@3=3 anchor a@2", Store());
      CheckSsts(1);
      // The files of the failed flush have been deleted.
      EXPECT_EQ(3, NumFiles(kDeltaFile));
      {
        InstrumentedMutexLock lock(dbfull()->mutex());
        EXPECT_EQ(UINT64_MAX, Family()->delta_store()->OldestRunningFlush());
      }
      Reopen(DeltaOptions());
      EXPECT_EQ("op a@1=1 | op b@3=3 anchor a@2", Store());
      CheckSequence(3);
    }
  }
}

// Without paranoid_checks a flush that fails is no background error. RocksDB
// does not try it again on its own: the next flush takes its memtables. The
// same holds with delta files, and nothing of them is left behind.
TEST_F(DBDeltaFlushTest, WithoutParanoidChecksTheNextFlushTriesAgain) {
  const auto fail_io = [](void* arg) {
    *static_cast<IOStatus*>(arg) = IOStatus::IOError("injected");
  };
  const auto fail = [](void* arg) {
    *static_cast<Status*>(arg) = Status::IOError("injected");
  };
  struct Case {
    const char* point;
    std::function<void(void*)> inject;
    bool separates;
    bool is_atomic;
    // The DB is closed after the failure. Otherwise it flushes again.
    bool reopens;
  };
  std::vector<Case> cases = {
      {"DeltaFileBuilder::Open:NewWritableFile", fail_io, true, false, false},
      {"DeltaFileBuilder::FinishFile:BeforeSync", fail_io, true, false, false},
      {"DeltaFlush::Publish:BeforeFiles", fail, true, true, false}};
  for (const bool separates : {false, true}) {
    for (const bool is_atomic : {false, true}) {
      for (const bool reopens : {false, true}) {
        cases.push_back({is_atomic ? "FlushJob::WriteLevel0Table:s"
                                   : "FlushJob::Run:PostBuildTable",
                         fail, separates, is_atomic, reopens});
      }
    }
  }
  for (const Case& c : cases) {
    SCOPED_TRACE(c.point);
    SCOPED_TRACE(c.separates);
    SCOPED_TRACE(c.is_atomic);
    SCOPED_TRACE(c.reopens);
    Options options = c.separates ? DeltaOptions() : Without(DeltaOptions());
    options.paranoid_checks = false;
    options.atomic_flush = c.is_atomic;
    // With two, Flush() would wait because of the memtable of the failed flush.
    options.max_write_buffer_number = 4;
    const auto listener = std::make_shared<FlushListener>();
    options.listeners.push_back(listener);
    DestroyAndReopen(options);
    ASSERT_OK(Merge("a", "1"));
    ASSERT_OK(Flush());
    ASSERT_OK(Put("a", "2"));
    ASSERT_OK(Merge("b", "3"));
    const std::string store = Store();
    const size_t num_tables = FilesOnDisk(kTableFile).size();
    const size_t num_deltas = FilesOnDisk(kDeltaFile).size();
    const auto has_failed = EnableCallBackOnce(c.point, c.inject);
    // A caller that waits would wait for the next flush.
    FlushOptions no_wait;
    no_wait.wait = false;
    ASSERT_OK(db_->Flush(no_wait));
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
    ASSERT_TRUE(*has_failed);
    DisableCallBacks();
    // This asks for jobs that are due.
    ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "true"}}));
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
    EXPECT_OK(dbfull()->TEST_GetBGError());
    EXPECT_EQ(2, listener->begun);
    EXPECT_EQ(1, listener->flushes);
    {
      const InstrumentedMutexLock lock(dbfull()->mutex());
      EXPECT_EQ(1, Family()->imm()->NumNotFlushed());
      if (c.separates) {
        EXPECT_EQ(UINT64_MAX, Family()->delta_store()->OldestRunningFlush());
      }
    }
    EXPECT_EQ(store, Store());
    // The files of the failed flush have been deleted.
    EXPECT_EQ(num_tables, FilesOnDisk(kTableFile).size());
    EXPECT_EQ(num_deltas, FilesOnDisk(kDeltaFile).size());
    EXPECT_EQ("2", Get("a"));
    EXPECT_EQ("3", Get("b"));
    // Writes go on.
    ASSERT_OK(Merge("c", "4"));
    if (c.reopens) {
      Reopen(options);
    } else {
      ASSERT_OK(Flush());
      // Listeners may be told of a flush after its caller has returned.
      ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
      EXPECT_EQ(3, listener->begun);
      EXPECT_EQ(2, listener->flushes);
    }
    EXPECT_EQ(c.separates ? "op a@1=1 | op b@3=3 op c@4=4 anchor a@2" : "",
              Store());
    EXPECT_EQ("2", Get("a"));
    EXPECT_EQ("3", Get("b"));
    EXPECT_EQ("4", Get("c"));
    EXPECT_EQ(c.separates ? 3 : 0, NumFiles(kDeltaFile));
    EXPECT_EQ(c.separates ? 1 : 2, NumFiles(kTableFile));
    Reopen(options);
    EXPECT_EQ("2", Get("a"));
    EXPECT_EQ("3", Get("b"));
    EXPECT_EQ("4", Get("c"));
    CheckSequence(4);
  }
}

TEST_F(DBDeltaFlushTest, FilesOfAFailedManifestWriteAreDeletedLater) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env = NewCompositeEnv(fault_fs);
  Options options = DeltaOptions();
  options.env = fault_env.get();
  DestroyAndReopen(options);
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("a", "2"));
  ASSERT_OK(Merge("b", "3"));
  EnableCallBack("VersionSet::LogAndApply:WriteManifest", [&](void*) {
    fault_fs->SetFilesystemActive(false, RetryableError());
  });
  ASSERT_NOK(Flush());
  // The MANIFEST may or may not have the edit, so the SST file and the delta
  // files with operands and anchors must stay.
  EXPECT_EQ(3, dbfull()->TEST_GetFilesToQuarantine().size());
  DisableCallBacks();
  fault_fs->SetFilesystemActive(true);
  ASSERT_OK(dbfull()->Resume());
  ASSERT_OK(Flush());
  EXPECT_EQ("op a@1=1 | op b@3=3 anchor a@2", Store());
  // They are deleted when it is known that no edit names them. Otherwise
  // RepairDB() would find them.
  EXPECT_EQ(3, NumFiles(kDeltaFile));
  LoseManifest();
  ASSERT_OK(RepairDB(dbname_, options));
  Reopen(options);
  EXPECT_EQ("2", Get("a"));
  EXPECT_EQ("3", Get("b"));
  CheckSequence(3);
  Close();
  last_options_.env = env_;
}

// The delta files of a flush that is rolled back before its edit is written do
// not wait for a full scan, which spares them while an earlier job runs.
TEST_F(DBDeltaFlushTest, FilesOfARolledBackFlushAreDeletedAtOnce) {
  for (const bool atomic : {false, true}) {
    SCOPED_TRACE(atomic);
    Options options = DeltaOptions();
    options.atomic_flush = atomic;
    options.max_bgerror_resume_count = 0;
    DestroyAndReopen(options);
    CreateAndReopenWithCF({"one"}, options);
    ASSERT_OK(Merge(0, "a", "1"));
    ASSERT_OK(Merge(1, "a", "2"));
    // In an atomic flush the second job fails, which is that of the first
    // family. The files of both are complete.
    size_t num_complete = 0;
    int calls = 0;
    EnableCallBack("FlushJob::Run:PostBuildTable", [&](void* arg) {
      if (++calls == (atomic ? 2 : 1)) {
        num_complete = FilesOnDisk(kDeltaFile).size();
        *static_cast<Status*>(arg) = RetryableError();
      }
    });
    ASSERT_OK(db_->DisableFileDeletions());  // no scan
    ASSERT_NOK(atomic ? Flush({0, 1}) : Flush(0));
    DisableCallBacks();
    EXPECT_EQ(atomic ? 2u : 1u, num_complete);
    EXPECT_TRUE(FilesOnDisk(kDeltaFile).empty());
    ASSERT_OK(db_->EnableFileDeletions());
    ASSERT_OK(dbfull()->Resume());
    ASSERT_OK(Flush({0, 1}));
    EXPECT_EQ(2u, FilesOnDisk(kDeltaFile).size());
    EXPECT_EQ("1", Get(0, "a"));
    EXPECT_EQ("2", Get(1, "a"));
    ReopenWithColumnFamilies({"default", "one"}, options);
    EXPECT_EQ("1", Get(0, "a"));
    EXPECT_EQ("2", Get(1, "a"));
  }
}

TEST_F(DBDeltaFlushTest, AtomicFlushWritesAllFamiliesOrNone) {
  Options options = DeltaOptions();
  options.atomic_flush = true;
  CreateAndReopenWithCF({"one", "two"}, options);
  ReopenWithColumnFamilies(
      {"default", "one", "two"},
      std::vector<Options>{options, options, Without(options)});
  const SequenceNumber first = db_->GetLatestSequenceNumber() + 1;
  const auto at = [first](int n) { return "@" + std::to_string(first + n); };
  ASSERT_OK(Merge(0, "a", "1"));
  ASSERT_OK(Merge(1, "a", "2"));
  ASSERT_OK(Put(2, "a", "3"));
  ASSERT_OK(Flush({0, 1, 2}));
  ASSERT_OK(Put(0, "a", "4"));
  ASSERT_OK(Merge(1, "a", "5"));
  // The file of the second family fails, so no family gets a file.
  std::atomic<int> calls{0};
  EnableCallBack("DeltaFileBuilder::FinishFile:BeforeSync", [&](void* arg) {
    if (++calls == 2) {
      *static_cast<IOStatus*>(arg) = RetryableError();
    }
  });
  ASSERT_NOK(Flush({0, 1}));
  DisableCallBacks();
  EXPECT_EQ("op a" + at(0) + "=1", Store(0));
  EXPECT_EQ("op a" + at(1) + "=2", Store(1));
  ASSERT_OK(dbfull()->Resume());
  ASSERT_OK(Flush({0, 1}));
  for (const bool reopen : {false, true}) {
    if (reopen) {
      ReopenWithColumnFamilies(
          {"default", "one", "two"},
          std::vector<Options>{options, options, Without(options)});
    }
    EXPECT_EQ("op a" + at(0) + "=1 | anchor a" + at(3), Store(0));
    EXPECT_EQ("op a" + at(1) + "=2 | op a" + at(4) + "=5", Store(1));
    EXPECT_EQ("", Store(2));
    CheckSsts(1, 0);
    CheckSsts(0, 1);
  }
  EXPECT_EQ(nullptr, Family(2)->delta_store());
}

// Flushes of a column family run one after the other. Otherwise the second one
// would ask a Version that lacks the operands of the first.
TEST_F(DBDeltaFlushTest, SecondFlushWaits) {
  Options options = DeltaOptions();
  options.max_write_buffer_number = 8;
  options.max_background_flushes = 4;
  env_->SetBackgroundThreads(4, Env::HIGH);
  DestroyAndReopen(options);
  SyncPoint::GetInstance()->LoadDependency(
      {{"DBImpl::FlushMemTableToOutputFile:AfterPickMemtables",
        "DBDeltaFlushTest::SecondFlushWaits:Picked"},
       {"FlushOrderGate::Park:Parked", "BuildTable:BeforeFinishBuildTable"}});
  SyncPoint::GetInstance()->EnableProcessing();
  FlushOptions no_wait;
  no_wait.wait = false;
  no_wait.allow_write_stall = true;
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(db_->Flush(no_wait));
  // The first flush must not take the second memtable as well.
  TEST_SYNC_POINT("DBDeltaFlushTest::SecondFlushWaits:Picked");
  ASSERT_OK(Put("a", "2"));
  ASSERT_OK(Merge("b", "3"));
  ASSERT_OK(db_->Flush(no_wait));
  ASSERT_OK(dbfull()->TEST_WaitForFlushMemTable());
  EXPECT_EQ("op a@1=1 | op b@3=3 anchor a@2", Store());
}

TEST_F(DBDeltaFlushTest, DroppedFamilyLeavesNoDeltaFiles) {
  CreateAndReopenWithCF({"one"}, DeltaOptions());
  ASSERT_OK(Merge(0, "a", "1"));
  ASSERT_OK(Merge(1, "a", "2"));
  ASSERT_OK(Put(1, "b", "3"));
  ASSERT_OK(Flush(0));
  ASSERT_OK(Flush(1));
  ASSERT_OK(Put(1, "a", "4"));
  ASSERT_OK(Flush(1));
  EXPECT_EQ(3, NumFiles(kDeltaFile));
  ASSERT_OK(db_->DropColumnFamily(handles_[1]));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.pop_back();
  EXPECT_EQ(1, NumFiles(kDeltaFile));
  ReopenWithColumnFamilies({"default"}, DeltaOptions());
  EXPECT_EQ(1, NumFiles(kDeltaFile));
  EXPECT_NE("", Store(0));
}

TEST_F(DBDeltaFlushTest, FamilyDroppedDuringItsFlushLeavesNoDeltaFiles) {
  CreateAndReopenWithCF({"one"}, DeltaOptions());
  ASSERT_OK(Merge(1, "a", "1"));
  EnableCallBack("DeltaFlush::Publish:BeforeFiles",
                 [&](void*) { ASSERT_OK(db_->DropColumnFamily(handles_[1])); });
  Flush(1).PermitUncheckedError();
  DisableCallBacks();
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.pop_back();
  EXPECT_EQ(0, NumFiles(kDeltaFile));
}

TEST_F(DBDeltaFlushTest, NewManifestsKeepTheDeltaFiles) {
  Options options = DeltaOptions();
  options.max_manifest_file_size = 1;  // begins a new one for each edit
  DestroyAndReopen(options);
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("a", "2"));
  ASSERT_OK(Flush());
  const std::string expected = "op a@1=1 | anchor a@2";
  EXPECT_EQ(expected, Store());
  for (int i = 0; i < 2; ++i) {
    Reopen(options);
    EXPECT_EQ(expected, Store());
    CheckSequence(2);
  }
}

TEST_F(DBDeltaFlushTest, ReadOnlyDBSeesDeltaFiles) {
  const Options options = DeltaOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  ASSERT_OK(ReadOnlyReopen(Without(options)));
  ASSERT_NE(nullptr, Family()->delta_store());
  EXPECT_EQ("op a@1=1", Store());
}

TEST_F(DBDeltaFlushTest, ParanoidFileChecksAcceptDeltaFiles) {
  Options options = DeltaOptions();
  options.paranoid_file_checks = true;
  DestroyAndReopen(options);
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(Merge(Key(i), "operand"));
    ASSERT_OK(Put(Key(100 + i), "value"));
  }
  ASSERT_OK(Flush());
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(Put(Key(i), "value"));
  }
  ASSERT_OK(Flush());
  EXPECT_EQ(100, Ticker(DELTA_OPERANDS_FLUSHED));
  EXPECT_EQ(100, Ticker(DELTA_ANCHORS_FLUSHED));
  CheckSsts(200);
}

// Flushes write the same deltas if values are in blob files, with and without
// an address map, and with a cache of merged values.
TEST_F(DBDeltaFlushTest, FlushWithBlobFilesWritesTheSameDeltas) {
  for (const bool with_map : {false, true}) {
    Options options = DeltaOptions();
    options.enable_blob_files = true;
    options.enable_blob_address_map = with_map;
    options.enable_merged_value_cache = true;
    DestroyAndReopen(options);
    ASSERT_OK(Merge("a", "1"));
    ASSERT_OK(Put("b", "2"));
    ASSERT_OK(Flush());
    ASSERT_OK(Put("a", "3"));
    ASSERT_OK(Merge("b", "4"));
    ASSERT_OK(Flush());
    EXPECT_EQ("op a@1=1 | op b@4=4 anchor a@3", Store());
    CheckSsts(2);
    EXPECT_EQ("3", Get("a"));
    Reopen(options);
    EXPECT_EQ("op a@1=1 | op b@4=4 anchor a@3", Store());
    EXPECT_EQ("3", Get("a"));
    CheckSequence(4);
  }
}

TEST_F(DBDeltaFlushTest, SetOptionsReachesTheStore) {
  DestroyAndReopen(DeltaOptions());
  const auto options = [this] {
    return Family()->delta_store()->tables()->settings();
  };
  EXPECT_EQ(32768, options()->options.delta_max_buckets);
  ASSERT_OK(db_->SetOptions(
      {{"delta_max_buckets", "77"}, {"delta_bucket_split_ratio", "0.4"}}));
  EXPECT_EQ(77, options()->options.delta_max_buckets);
  EXPECT_EQ(0.4, options()->options.delta_bucket_split_ratio);
  EXPECT_NOK(db_->SetOptions({{"delta_max_buckets", "3"}}));
  EXPECT_NOK(db_->SetOptions({{"delta_bucket_split_ratio", "2"}}));
  EXPECT_NOK(db_->SetOptions({{"delta_bucket_size", "4096"}}));
  EXPECT_NOK(db_->SetOptions({{"enable_delta_separation", "false"}}));
  EXPECT_EQ(77, options()->options.delta_max_buckets);
}

TEST_F(DBDeltaFlushTest, UnsupportedOptionsAreRefused) {
  const Options options = DeltaOptions();
  Options fifo = options;
  fifo.compaction_style = kCompactionStyleFIFO;
  fifo.max_open_files = -1;
  EXPECT_TRUE(TryReopen(fifo).IsNotSupported());
  Options no_operator = options;
  no_operator.merge_operator = nullptr;
  EXPECT_TRUE(TryReopen(no_operator).IsInvalidArgument());

  DestroyAndReopen(options);
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  Close();
  // With the option off, the DB still has delta files.
  EXPECT_TRUE(TryReopen(Without(fifo)).IsNotSupported());
  Options purge = Without(options);
  purge.experimental_mempurge_threshold = 0.5;
  EXPECT_TRUE(TryReopen(purge).IsNotSupported());
  // In RocksDB, timestamps that are not persisted can begin in an old database.
  Options timestamps = Without(options);
  timestamps.comparator = test::BytewiseComparatorWithU64TsWrapper();
  timestamps.persist_user_defined_timestamps = false;
  timestamps.allow_concurrent_memtable_write = false;
  EXPECT_EQ(
      "Not implemented: Merge operands in delta files "
      "(enable_delta_separation) cannot be combined with user-defined "
      "timestamps: a key has operands for each timestamp (column family "
      "default)",
      TryReopen(timestamps).ToString());

  TransactionDBOptions prepared;
  prepared.write_policy = WRITE_PREPARED;
  for (const bool separate : {true, false}) {
    Options o = separate ? options : Without(options);
    o.max_open_files = -1;
    TransactionDB* txn_db = nullptr;
    Status s = TransactionDB::Open(o, prepared, dbname_, &txn_db);
    EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
    std::unique_ptr<DB> secondary;
    s = DB::OpenAsSecondary(o, dbname_,
                            test::PerThreadDBPath("db_delta_flush_secondary"),
                            &secondary);
    EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  }
  Reopen(Without(no_operator));
  EXPECT_EQ("op a@1=1", Store());
  const Status s =
      db_->SetOptions({{"experimental_mempurge_threshold", "0.5"}});
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_EQ(0.0, dbfull()->GetOptions().experimental_mempurge_threshold);
}

// A flush that began while there were delta files adds one after the last of
// them is gone. Meanwhile an option that the DB could not be opened with is
// refused as before.
TEST_F(DBDeltaFlushTest, OptionsAreRefusedWhileAFlushMayAddADeltaFile) {
  Options options = DeltaOptions();
  options.disable_auto_compactions = true;
  DestroyAndReopen(options);
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("a", "base"));
  ASSERT_OK(Flush());
  options = Without(options);
  Reopen(options);
  ASSERT_OK(Merge("a", "2"));
  std::promise<void> begun;
  std::promise<void> go_on;
  EnableCallBackOnce("FlushJob::WriteLevel0Table", [&](void*) {
    begun.set_value();
    go_on.get_future().wait();
  });
  std::thread flusher([this] { ASSERT_OK(Flush()); });
  begun.get_future().wait();
  // All operands in delta files are hidden, so no fold waits for the flush.
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  while (!Store().empty()) {
    std::this_thread::yield();
  }
  const Status s =
      db_->SetOptions({{"experimental_mempurge_threshold", "0.5"}});
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "true"}}));
  go_on.set_value();
  flusher.join();
  DisableCallBacks();
  EXPECT_EQ("op a@3=2", Store());
  EXPECT_EQ("base,2", Get("a"));
  options.disable_auto_compactions = true;
  options.experimental_mempurge_threshold =
      dbfull()->GetOptions().experimental_mempurge_threshold;
  Reopen(options);
  EXPECT_EQ("base,2", Get("a"));
}

// A column family is inconsistent with a damaged WAL even if its later data is
// in delta files alone.
TEST_F(DBDeltaFlushTest, DamagedWalBeforeFlushedDeltasIsCorruption) {
  Options options = DeltaOptions();
  options.wal_recovery_mode = WALRecoveryMode::kPointInTimeRecovery;
  CreateAndReopenWithCF({"one"}, options);
  ReopenWithColumnFamilies({"default", "one"}, options);
  ASSERT_OK(Put(0, "a", std::string(1000, 'x')));
  ASSERT_OK(Merge(1, "a", "1"));
  ASSERT_OK(Flush(1));
  ASSERT_GE(NumFiles(kWalFile), 2u);
  const std::string oldest = dbname_ + "/" + FilesIn(dbname_, kWalFile).front();
  Close();
  ASSERT_OK(test::CorruptFile(env_, oldest, /*offset=*/100,
                              /*bytes_to_corrupt=*/20,
                              /*verify_checksum=*/false));
  const Status s = TryReopenWithColumnFamilies({"default", "one"}, options);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
