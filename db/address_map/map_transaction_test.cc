//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_transaction.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob_v2/blob_file_v2_test_util.h"
#include "db/db_impl/db_impl.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"

namespace ROCKSDB_NAMESPACE {

class MapTransactionTest : public AddressMapDBTestBase {
 protected:
  MapTransactionTest() : AddressMapDBTestBase("map_transaction_test") {}
  ~MapTransactionTest() override { DisableCallBacks(); }

  // Returns a file with one value.
  MappedBlobFile FileOf(const std::string& key, SequenceNumber seq) {
    blob_v2_test::FileMaker maker(Blobs()->hash_seed());
    maker.Add(key, Value(1), seq, /*birth=*/0, /*direct=*/true);
    EXPECT_OK(maker.status());
    maker.Finish();
    MappedBlobFile file;
    file.number = dbfull()->GetVersionSet()->NewFileNumber();
    file.size = maker.bytes().size();
    file.footer = maker.layout().footer;
    file.index = maker.bytes().substr(maker.index_offset(), maker.index_size());
    EXPECT_OK(WriteStringToFile(env_, maker.bytes(), NameOf(file)));
    return file;
  }
  std::string NameOf(const MappedBlobFile& file) const {
    return BlobFileName(dbname_, file.number);
  }

  // Makes a transaction whose edit is never committed.
  std::unique_ptr<MapTransaction> Begin() {
    InstrumentedMutexLock lock(dbfull()->mutex());
    return std::make_unique<MapTransaction>(
        Blobs(), /*sst_number=*/uint64_t{1} << 40, /*when_present=*/true,
        Env::IOActivity::kUnknown);
  }
  void Undo(std::unique_ptr<MapTransaction>&& transaction) {
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      transaction->Close();
      EXPECT_FALSE(transaction->committed());
    }
    transaction->Settle(/*keep_superseded=*/false);
    InstrumentedMutexLock lock(dbfull()->mutex());
    transaction.reset();
  }

  // Sets the limit of the memory of the indexes of a job.
  static void LimitIndexes(size_t bytes) {
    EnableCallBack("MapTransaction::LimitIndex", [bytes](void* limit) {
      *static_cast<size_t*>(limit) = bytes;
    });
  }

  bool Has(const std::string& key, SequenceNumber seq) {
    return Blobs()
        ->map()
        ->FindByName(MapName{Blobs()->HashOf(key), seq, /*birth=*/0},
                     /*pin=*/false)
        .found;
  }
};

// If the values of one of several files cannot be inserted, Publish() returns
// the error and inserts nothing more. Settle() then removes the values that
// Publish() has inserted.
TEST_F(MapTransactionTest, FailedInsertionEndsThePublication) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("a", Value(0)));
  ASSERT_OK(Flush());
  WaitForJobs();
  std::vector<MappedBlobFile> files;
  files.push_back(FileOf("a", 1000));
  files.push_back(FileOf("b", 1001));
  files.back().index[files.back().index.size() / 2] ^= 1;
  const std::string damaged = std::to_string(files.back().number);
  files.push_back(FileOf("c", 1002));

  InstrumentedMutex* const mutex = dbfull()->mutex();
  mutex->Lock();
  auto transaction = std::make_unique<MapTransaction>(
      Blobs(), /*sst_number=*/uint64_t{1} << 40, /*when_present=*/true,
      Env::IOActivity::kUnknown);
  mutex->Unlock();
  const Status s = transaction->Publish(std::move(files));
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find(damaged), std::string::npos) << s.ToString();
  EXPECT_TRUE(Has("a", 1000));
  EXPECT_FALSE(Has("c", 1002));
  CheckMap(2);
  mutex->Lock();
  transaction->Close();
  EXPECT_FALSE(transaction->committed());
  mutex->Unlock();
  transaction->Settle(/*keep_superseded=*/false);
  mutex->Lock();
  transaction.reset();
  mutex->Unlock();
  EXPECT_FALSE(Has("a", 1000));
  CheckMap(1);
  EXPECT_EQ(Get("a"), Value(0));
}

TEST_F(MapTransactionTest, IndexesBeyondTheLimitAreReadFromTheFiles) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("a", Value(0)));
  ASSERT_OK(Flush());
  WaitForJobs();
  // Settle() then reads the files, or finds that they are gone.
  for (const bool gone : {false, true}) {
    SCOPED_TRACE(gone);
    std::vector<MappedBlobFile> files;
    for (const char* const key : {"a", "b", "c"}) {
      files.push_back(FileOf(key, 1000));
    }
    LimitIndexes(files[0].index.size() + files[1].index.size() - 1);
    std::unique_ptr<MapTransaction> transaction = Begin();
    std::vector<std::string> names;
    for (MappedBlobFile& file : files) {
      transaction->LimitIndex(&file);
      names.push_back(NameOf(file));
    }
    EXPECT_TRUE(files[0].has_index());
    EXPECT_TRUE(files[1].index.empty() && !files[1].has_index());
    EXPECT_TRUE(files[2].index.empty() && !files[2].has_index());
    EXPECT_OK(transaction->Publish(std::move(files)));
    for (const char* const key : {"a", "b", "c"}) {
      EXPECT_TRUE(Has(key, 1000));
    }
    CheckMap(4);
    for (const std::string& name : names) {
      if (gone) {
        EXPECT_OK(env_->DeleteFile(name));
      }
    }
    Undo(std::move(transaction));
    CheckMap(1);
    EXPECT_EQ(Get("a"), Value(0));
    EXPECT_TRUE(Blobs()->IsExact());
  }
}

TEST_F(MapTransactionTest, UnreadableIndexFailsThePublication) {
  DestroyAndReopen(MapOptions());
  LimitIndexes(0);
  std::vector<MappedBlobFile> files;
  files.push_back(FileOf("a", 1000));
  files.push_back(FileOf("b", 1000));
  std::unique_ptr<MapTransaction> transaction = Begin();
  for (MappedBlobFile& file : files) {
    transaction->LimitIndex(&file);
  }
  EXPECT_OK(env_->DeleteFile(NameOf(files[1])));
  EXPECT_NOK(transaction->Publish(std::move(files)));
  EXPECT_TRUE(Has("a", 1000));
  Undo(std::move(transaction));
  CheckMap(0);
}

// A compaction with many blob files reads their indexes from them. If a read
// fails before the edit is committed, the compaction fails. If a read fails
// later, the compaction walks the whole map instead.
TEST_F(MapTransactionTest, CompactionReadsIndexesOfItsFiles) {
  constexpr int kKeys = 200;
  enum class Fails { kNever, kAlways, kInSettle };
  for (const Fails fails : {Fails::kNever, Fails::kAlways, Fails::kInSettle}) {
    SCOPED_TRACE(static_cast<int>(fails));
    Options options = MapOptions(/*min_blob_size=*/1000);
    options.blob_file_size = 4 << 10;
    DestroyAndReopen(options);
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_OK(Put(Key(i), Value(i)));
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    CheckMap(0);
    ASSERT_OK(dbfull()->SetOptions({{"min_blob_size", "32"}}));
    std::atomic<bool> is_settling{false};
    std::atomic<size_t> reads{0};
    EnableCallBack("MapTransaction::Settle",
                   [&](void*) { is_settling = true; });
    EnableCallBack("MapTransaction::ForEachBatch:Opened", [&](void* status) {
      ++reads;
      if (fails == Fails::kAlways ||
          (fails == Fails::kInSettle && is_settling.load())) {
        *static_cast<Status*>(status) = Status::IOError("injected");
      }
    });
    LimitIndexes(0);
    const Status s = ForceCompaction();
    const Status error = WaitForMapJobs(db_.get());
    DisableCallBacks();
    EXPECT_EQ(error.ok(), s.ok()) << error.ToString();
    if (fails == Fails::kAlways) {
      EXPECT_TRUE(s.IsIOError()) << s.ToString();
      CheckMap(0);
      EXPECT_EQ(Get(Key(7)), Value(7));
      options.min_blob_size = 32;
      Reopen(options);
      ASSERT_OK(ForceCompaction());
    } else {
      ASSERT_OK(s);
      const size_t files = BlobFiles().size();
      EXPECT_GT(files, 3u);
      EXPECT_EQ(reads.load(), 2 * files);
      EXPECT_EQ(Blobs()->IsExact(), fails == Fails::kNever);
    }
    CheckMap(kKeys);
    Reopen(options);
    CheckMap(kKeys);
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_EQ(Get(Key(i)), Value(i));
    }
  }
}

// The end of a flush removes what its values supersede, also if the indexes of
// its files cannot be read any more.
TEST_F(MapTransactionTest, FlushWhoseIndexIsUnreadableRemovesOldValues) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(0)));
  ASSERT_OK(Put("l", Value(1)));
  ASSERT_OK(Flush());
  WaitForJobs();
  CheckMap(2);
  LimitIndexes(0);
  std::atomic<bool> is_settling{false};
  EnableCallBack("MapTransaction::Settle", [&](void*) { is_settling = true; });
  EnableCallBack("MapTransaction::ForEachBatch:Opened", [&](void* status) {
    if (is_settling.load()) {
      *static_cast<Status*>(status) = Status::IOError("injected");
    }
  });
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  WaitForJobs();
  DisableCallBacks();
  EXPECT_TRUE(is_settling.load());
  CheckMap(2);
  EXPECT_TRUE(IsDirect("k"));
  EXPECT_FALSE(Blobs()->IsExact());
  EXPECT_EQ(Get("k"), Value(2));
  EXPECT_EQ(Get("l"), Value(1));
  Reopen(options);
  CheckMap(2);
  EXPECT_EQ(Get("k"), Value(2));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
