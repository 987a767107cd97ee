//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Address maps of several column families: a reader of one family does not keep
// values of others, and the cost of a release does not grow with the number of
// families.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "port/stack_trace.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

class DBMapFamiliesTest : public AddressMapDBTestBase {
 public:
  DBMapFamiliesTest() : AddressMapDBTestBase("db_map_families_test") {}

  // Family 0 is the default one, which has no map. The others have maps.
  void Open(int families_with_map) {
    options_ = CurrentOptions();
    options_.disable_auto_compactions = true;
    DestroyAndReopen(options_);
    with_map_ = MapOptions(/*min_blob_size=*/50);
    std::vector<std::string> names;
    for (int i = 1; i <= families_with_map; ++i) {
      names.push_back("family" + std::to_string(i));
    }
    CreateColumnFamilies(names, with_map_);
    handles_.insert(handles_.begin(), nullptr);
    WaitForJobs();
  }

  void Reopen() {
    std::vector<std::string> names = {kDefaultColumnFamilyName};
    std::vector<Options> options = {options_};
    for (size_t i = 1; i < handles_.size(); ++i) {
      names.push_back("family" + std::to_string(i));
      options.push_back(with_map_);
    }
    CloseFamilies();
    ASSERT_OK(TryReopenWithColumnFamilies(names, options));
    ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[0]));
    handles_[0] = nullptr;
  }

  void CloseFamilies() {
    for (ColumnFamilyHandle* handle : handles_) {
      if (handle != nullptr) {
        ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
      }
    }
    handles_.clear();
    ASSERT_OK(db_->Close());
    db_.reset();
  }

  void TearDown() override {
    if (db_ != nullptr) {
      CloseFamilies();
    }
    AddressMapDBTestBase::TearDown();
  }

  static constexpr int kKeys = 40;
  static std::string Key(int i) { return "key" + std::to_string(100 + i); }
  static std::string Value(int round) {
    return "round" + std::to_string(round) + std::string(100, 'x');
  }

  void WriteRound(int family, int round) {
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_OK(db_->Put(WriteOptions(), Handle(family), Key(i), Value(round)));
    }
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
  }

  uint64_t NumEntries(int family) {
    TablePropertiesCollection all;
    EXPECT_OK(db_->GetPropertiesOfAllTables(Handle(family), &all));
    uint64_t entries = 0;
    for (const auto& table : all) {
      entries += table.second->num_entries;
    }
    return entries;
  }

  void ExpectRound(Iterator* iter, int round) {
    int i = 0;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++i) {
      ASSERT_EQ(iter->key(), Key(i));
      ASSERT_EQ(iter->value(), Value(round));
    }
    ASSERT_OK(iter->status());
    ASSERT_EQ(i, kKeys);
  }

  std::unique_ptr<Iterator> NewIter(int family) {
    return std::unique_ptr<Iterator>(
        db_->NewIterator(ReadOptions(), Handle(family)));
  }

  Options options_;
  Options with_map_;
};

TEST_F(DBMapFamiliesTest, IteratorsKeepValuesOfTheirFamilyOnly) {
  Open(2);
  std::vector<std::unique_ptr<Iterator>> iters;
  for (int round = 0; round < 5; ++round) {
    for (int family = 0; family < 3; ++family) {
      WriteRound(family, round);
    }
    iters.push_back(NewIter(1));
  }
  for (int family = 0; family < 3; ++family) {
    Compact(family);
  }
  EXPECT_EQ(NumEntries(0), kKeys);
  EXPECT_EQ(NumEntries(2), kKeys);
  EXPECT_EQ(Blobs(2)->map()->NumEntries(), kKeys);
  EXPECT_EQ(NumEntries(1), 5 * kKeys);
  EXPECT_EQ(Blobs(1)->map()->NumEntries(), 5 * kKeys);
  for (int round = 0; round < 5; ++round) {
    ExpectRound(iters[round].get(), round);
  }
  // Each iterator releases the values that it alone has kept.
  iters.erase(iters.begin(), iters.begin() + 4);
  WaitForJobs();
  EXPECT_EQ(Blobs(1)->map()->NumEntries(), kKeys);
  ExpectRound(iters[0].get(), 4);
}

// Iterators of one NewIterators() call share a sequence number. Each family
// keeps the values that they need, before and after each iterator has its own
// implicit snapshot.
TEST_F(DBMapFamiliesTest, IteratorsOfOneCallKeepValuesOfAllTheirFamilies) {
  Open(3);
  for (int family = 0; family < 4; ++family) {
    WriteRound(family, 0);
  }
  std::vector<Iterator*> result;
  // Runs after the sequence number was taken and before the first iterator has
  // its own implicit snapshot.
  int registered = 0;
  EnableCallBack("ImplicitSnapshotRegistry::PickShard:Core", [&](void*) {
    if (++registered == 2) {
      for (int family = 1; family < 4; ++family) {
        WriteRound(family, 1);
        Compact(family);
      }
    }
  });
  ASSERT_OK(db_->NewIterators(ReadOptions(), {Handle(1), Handle(2), Handle(3)},
                              &result));
  SyncPoint::GetInstance()->DisableProcessing();
  std::vector<std::unique_ptr<Iterator>> iters;
  for (Iterator* iter : result) {
    iters.emplace_back(iter);
  }
  ASSERT_EQ(iters.size(), 3u);
  EXPECT_EQ(registered, 4);
  for (int family = 1; family < 4; ++family) {
    WriteRound(family, 2);
    Compact(family);
    ExpectRound(iters[family - 1].get(), 0);
    // No iterator sees round 1.
    EXPECT_EQ(Blobs(family)->map()->NumEntries(), 2 * kKeys) << family;
  }
  iters.clear();
  WaitForJobs();
  for (int family = 1; family < 4; ++family) {
    EXPECT_EQ(Blobs(family)->map()->NumEntries(), kKeys) << family;
  }
}

// The release of a snapshot, an iterator or a SuperVersion examines the column
// families that have waited for it, and no others.
TEST_F(DBMapFamiliesTest, ReleasesExamineOnlyFamiliesThatWait) {
  constexpr int kFamilies = 20;
  Open(kFamilies);
  for (int family = 1; family <= kFamilies; ++family) {
    WriteRound(family, 0);
  }
  WaitForJobs();
  std::atomic<int> looks{0};
  EnableCallBack("DBStrata::FindMapWork", [&](void*) { ++looks; });
  for (int i = 0; i < 10; ++i) {
    db_->ReleaseSnapshot(db_->GetSnapshot());
    NewIter(3).reset();
    std::string value;
    ASSERT_OK(db_->Get(ReadOptions(), Handle(5), Key(1), &value));
  }
  EXPECT_EQ(looks, 0);

  // Values that are overwritten while there is a snapshot wait in their family.
  const Snapshot* snapshot = db_->GetSnapshot();
  WriteRound(7, 1);
  WaitForJobs();
  ASSERT_EQ(Blobs(7)->map()->NumEntries(), 2 * kKeys);
  const Snapshot* later = db_->GetSnapshot();
  looks = 0;
  db_->ReleaseSnapshot(later);
  EXPECT_EQ(looks, 0);
  db_->ReleaseSnapshot(snapshot);
  WaitForJobs();
  EXPECT_EQ(Blobs(7)->map()->NumEntries(), kKeys);
  EXPECT_GT(looks, 0);
  EXPECT_LT(looks, 10);

  // An iterator behaves in the same way.
  std::unique_ptr<Iterator> iter = NewIter(9);
  WriteRound(9, 1);
  WaitForJobs();
  ASSERT_EQ(Blobs(9)->map()->NumEntries(), 2 * kKeys);
  looks = 0;
  db_->ReleaseSnapshot(db_->GetSnapshot());
  NewIter(9).reset();
  EXPECT_EQ(looks, 0);
  iter.reset();
  WaitForJobs();
  EXPECT_EQ(Blobs(9)->map()->NumEntries(), kKeys);
  EXPECT_LT(looks, 10);

  // So does a range deletion.
  snapshot = db_->GetSnapshot();
  ASSERT_OK(db_->DeleteRange(WriteOptions(), Handle(11), "a", "z"));
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(11)));
  WaitForJobs();
  ASSERT_EQ(Blobs(11)->map()->NumEntries(), kKeys);
  looks = 0;
  db_->ReleaseSnapshot(snapshot);
  WaitForJobs();
  EXPECT_EQ(Blobs(11)->map()->NumEntries(), 0u);
  EXPECT_LT(looks, 10);
}

// Names that a compaction has removed from the files leave the map when the old
// Versions are released.
TEST_F(DBMapFamiliesTest, ReleasedVersionsMakeRemovalsPossible) {
  Open(2);
  WriteRound(1, 0);
  std::unique_ptr<Iterator> iter = NewIter(1);
  WriteRound(1, 1);
  Compact(1);
  ExpectRound(iter.get(), 0);
  iter.reset();
  WaitForJobs();
  EXPECT_EQ(Blobs(1)->map()->NumEntries(), kKeys);
  EXPECT_EQ(Blobs(1)->NumBlockedRemovals(), 0u);
}

// An iterator can be used after its column family is dropped: it also keeps the
// registry of its implicit snapshot.
TEST_F(DBMapFamiliesTest, IteratorsOutliveTheirFamily) {
  Open(2);
  WriteRound(1, 0);
  std::unique_ptr<Iterator> iter = NewIter(1);
  WriteRound(1, 1);
  std::unique_ptr<Iterator> later = NewIter(1);
  ASSERT_OK(db_->DropColumnFamily(Handle(1)));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.erase(handles_.begin() + 1);
  ExpectRound(iter.get(), 0);
  later.reset();
  ExpectRound(iter.get(), 0);
  iter.reset();
  WaitForJobs();
}

TEST_F(DBMapFamiliesTest, SavesMapsUnlessToldNotTo) {
  Open(3);
  for (int family = 1; family <= 3; ++family) {
    WriteRound(family, 0);
  }
  std::atomic<int> loaded{0};
  EnableCallBack("AddressMapCheckpoints::Load:Loaded",
                 [&](void*) { ++loaded; });
  Reopen();
  EXPECT_EQ(loaded, 3);
  loaded = 0;
  ASSERT_OK(db_->SetOptions(Handle(2), {{"save_blob_address_map", "false"}}));
  Reopen();
  EXPECT_EQ(loaded, 2);
  loaded = 0;
  with_map_.save_blob_address_map = false;
  Reopen();
  EXPECT_EQ(loaded, 3);
  loaded = 0;
  Reopen();
  EXPECT_EQ(loaded, 0);
  for (int family = 1; family <= 3; ++family) {
    ExpectRound(NewIter(family).get(), 0);
  }
}

// The DB mutex is not held while images are written.
TEST_F(DBMapFamiliesTest, MutexIsFreeWhileMapsAreSaved) {
  Open(1);
  WriteRound(1, 0);
  int calls = 0;
  EnableCallBack("AddressMapCheckpoints::Save:Begin", [&](void*) {
    ++calls;
    port::Thread other([&] {
      dbfull()->TEST_LockMutex();
      dbfull()->TEST_UnlockMutex();
    });
    other.join();
  });
  CloseFamilies();
  EXPECT_EQ(calls, 1);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
