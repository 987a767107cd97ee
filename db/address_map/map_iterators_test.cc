//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// MapIterators: the values that its iterators refer to, also while they are
// pinned, kept or read ahead, and the moment that iterators of several column
// families show.

#include "db/address_map/map_iterators.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/map_value_iterator.h"
#include "db/db_impl/db_impl.h"
#include "db/pinned_iterators_manager.h"
#include "memory/arena.h"
#include "port/stack_trace.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/write_batch.h"
#include "test_util/strata/map_iterator_walk_test_util.h"
#include "test_util/strata/map_iterator_writer_test_util.h"
#include "test_util/strata/sync_point_test_util.h"

// The file system calls this before it reads asynchronously.
extern "C" bool RocksDbIOUringEnable() { return true; }

namespace ROCKSDB_NAMESPACE {

class MapIteratorsTest : public MapIteratorWalkTestBase {
 public:
  MapIteratorsTest() : MapIteratorWalkTestBase("map_iterators_test") {}
};

// ---- Values.

// The internal representation of a mapped value begins with a special byte.
// Inline values and operands may begin with the same byte.
TEST_F(MapIteratorsTest, ValuesMayBeginWithAnyByte) {
  constexpr int kBytes = 256;
  DestroyAndReopen(MapOptions());
  std::vector<std::string> values;
  for (int i = 0; i < kBytes; ++i) {
    const std::string small = static_cast<char>(i) + std::string(23, 'v');
    values.push_back(i % 2 == 0 ? Value(i) : small);
    ASSERT_OK(Put(Key(i), values[i]));
  }
  ASSERT_OK(Flush());
  for (const bool in_files : {false, true}) {
    SCOPED_TRACE(in_files);
    for (int i = 0; i < kBytes; ++i) {
      if (i % 4 < 3) {
        const std::string operand = static_cast<char>(i) + std::string(23, 'o');
        ASSERT_OK(Merge(Key(i), operand));
        values[i] += "," + operand;
      }
    }
    if (in_files) {
      ASSERT_OK(Flush());
    }
    std::string forward;
    std::string backward;
    for (int i = 0; i < kBytes; ++i) {
      const std::string entry = Key(i) + "=" + values[i] + ";";
      forward += entry;
      backward.insert(0, entry);
    }
    for (const int count : {-1, 0, 8}) {
      SCOPED_TRACE(count);
      ReadOptions read_options;
      read_options.blob_prefetch_count = count;
      const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      EXPECT_EQ(Scan(iter.get()), forward);
      EXPECT_EQ(Scan(iter.get(), /*reverse=*/true), backward);
    }
  }
}

// The prefetch queue copies values while DBIter has pinned others for a merge.
// A copy must not refer to data that is released later.
TEST_F(MapIteratorsTest, CopyOutlivesPinnedData) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(2);
  for (const bool is_kept : {false, true}) {
    SCOPED_TRACE(is_kept);
    ReadOptions read_options;
    read_options.blob_prefetch_count = 0;
    read_options.ignore_range_deletions = is_kept;
    Arena arena;
    ScopedArenaPtr<InternalIterator> iter(NewMapIterator(read_options, &arena));
    PinnedIteratorsManager pinned_iters_mgr;
    iter->SetPinnedItersMgr(&pinned_iters_mgr);
    iter->SeekToFirst();
    ASSERT_TRUE(iter->Valid());
    pinned_iters_mgr.StartPinning();
    const std::string key = iter->user_key().ToString();
    const std::string copy = iter->value().ToString();
    ASSERT_TRUE(BoundBlobIndex::IsBound(copy));
    EXPECT_EQ(static_cast<MapValueIterator*>(iter.get())->TakeKept().found,
              is_kept);
    iter->Next();
    ASSERT_TRUE(iter->Valid());
    ASSERT_NE(iter->user_key(), key);
    pinned_iters_mgr.ReleasePinnedData();
    PinnableSlice value;
    ASSERT_OK(MapIterators::Fetch(iter.get(), key, copy, &value));
    EXPECT_EQ(value, Get(key));
    iter->SetPinnedItersMgr(nullptr);
  }
}

// A caller may have the pinned data released while the iterator stays where it
// is, and ask for the value once more.
TEST_F(MapIteratorsTest, ValueIsValidAfterItsPinnedCopyIsReleased) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(2);
  for (const bool is_kept : {false, true}) {
    for (const bool pin_again : {false, true}) {
      SCOPED_TRACE(2 * is_kept + pin_again);
      ReadOptions read_options;
      read_options.blob_prefetch_count = 0;
      read_options.ignore_range_deletions = is_kept;
      Arena arena;
      PinnedIteratorsManager pinned_iters_mgr;
      ScopedArenaPtr<InternalIterator> iter(
          NewMapIterator(read_options, &arena));
      iter->SetPinnedItersMgr(&pinned_iters_mgr);
      iter->SeekToFirst();
      ASSERT_TRUE(iter->Valid());
      pinned_iters_mgr.StartPinning();
      const std::string copy = iter->value().ToString();
      ASSERT_TRUE(iter->IsValuePinned());
      pinned_iters_mgr.ReleasePinnedData();
      if (pin_again) {
        pinned_iters_mgr.StartPinning();
      }
      EXPECT_EQ(iter->value(), copy);
      EXPECT_EQ(iter->IsValuePinned(), pin_again);
      PinnableSlice value;
      ASSERT_OK(MapIterators::Fetch(iter.get(), iter->user_key(), iter->value(),
                                    &value));
      EXPECT_EQ(value, Get(iter->user_key().ToString()));
      iter->Next();  // leaves a kept entry to its pinned value, if it has one
      iter->SetPinnedItersMgr(nullptr);
    }
  }
}

// An entry that is kept for a pinned value is found by its name when the
// iterator has left it, and when it stands on another kept entry.
TEST_F(MapIteratorsTest, KeptEntriesAreFoundByNameWhileTheyArePinned) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(3);
  ReadOptions read_options;
  read_options.blob_prefetch_count = 0;
  read_options.ignore_range_deletions = true;
  Arena arena;
  PinnedIteratorsManager pinned_iters_mgr;
  std::map<std::string, std::string> model;
  std::vector<std::pair<std::string, Slice>> pinned;
  {
    ScopedArenaPtr<InternalIterator> iter(NewMapIterator(read_options, &arena));
    iter->SetPinnedItersMgr(&pinned_iters_mgr);
    pinned_iters_mgr.StartPinning();
    for (int pass = 0; pass < 2; ++pass) {  // one entry is pinned twice
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        const std::string key = iter->user_key().ToString();
        model[key] = Get(key);
        pinned.emplace_back(key, iter->value());
        ASSERT_TRUE(iter->IsValuePinned());
      }
    }
    ASSERT_EQ(model.size(), 3u);
    // Now the map has no entry of these keys, but the files are kept.
    for (const auto& [key, value] : model) {
      ASSERT_OK(Delete(key));
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    for (const auto& [key, value] : model) {
      ASSERT_FALSE(
          Blobs()->map()->FindDirect(Blobs()->HashOf(key), false).found);
    }
    iter->SeekToFirst();
    for (const auto& [key, bound] : pinned) {
      PinnableSlice value;
      ASSERT_OK(MapIterators::Fetch(iter.get(), key, bound, &value));
      EXPECT_EQ(value, model[key]);
    }
    // Once released, an entry is not found any more.
    const std::string copy = pinned.front().second.ToString();
    iter->SeekToLast();
    pinned_iters_mgr.ReleasePinnedData();
    PinnableSlice value;
    EXPECT_TRUE(
        MapIterators::Fetch(iter.get(), pinned.front().first, copy, &value)
            .IsCorruption());
    pinned_iters_mgr.StartPinning();
    iter->SeekToFirst();
    iter->SetPinnedItersMgr(nullptr);
  }
  // Pinned data may be released after the iterator.
  pinned_iters_mgr.ReleasePinnedData();
}

// Which values are read ahead is a guess. An entry that the guess leaves out is
// kept, too, as DBIter may come to it: with write-prepared transactions, if the
// newer entry is not committed.
TEST_F(MapIteratorsTest, EntriesThatAreNotReadAheadAreKept) {
  DestroyAndReopen(MapOptions());
  const Snapshot* const snapshot = db_->GetSnapshot();
  std::map<std::pair<std::string, SequenceNumber>, std::string> model;
  std::vector<const Snapshot*> snapshots;
  for (int version = 0; version < 2; ++version) {
    for (int i = 0; i < 10; ++i) {
      ASSERT_OK(Put(Key(i), Value(100 * version + i)));
      model[{Key(i), db_->GetLatestSequenceNumber()}] =
          Value(100 * version + i);
    }
    snapshots.push_back(db_->GetSnapshot());
    ASSERT_OK(Flush());
  }
  ReadOptions read_options;
  read_options.blob_prefetch_count = 64;
  read_options.ignore_range_deletions = true;
  Arena arena;
  ScopedArenaPtr<InternalIterator> iter(NewMapIterator(read_options, &arena));
  iter->SeekToFirst();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(iter->Valid());
    iter->Next();  // the queue is filled
  }
  // Frees the values while they are in the queue.
  for (const Snapshot* const s : snapshots) {
    db_->ReleaseSnapshot(s);
  }
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(db_->DeleteRange(WriteOptions(), Key(0), Key(10)));
  ASSERT_OK(Flush());
  ASSERT_OK(ForceCompaction());
  WaitForJobs();
  int old_versions = 0;
  for (; iter->Valid(); iter->Next()) {
    ParsedInternalKey key;
    ASSERT_OK(ParseInternalKey(iter->key(), &key, /*log_err_key=*/false));
    if (key.type != kTypeBlobIndex) {
      continue;
    }
    PinnableSlice value;
    ASSERT_OK(
        MapIterators::Fetch(iter.get(), key.user_key, iter->value(), &value));
    const std::string name = key.user_key.ToString();
    EXPECT_EQ(value, (model[{name, key.sequence}]));
    old_versions += value == Value(IdFromKey(name)) ? 1 : 0;
  }
  ASSERT_OK(iter->status());
  EXPECT_GE(old_versions, 1);
}

// Without an iterator that replaces it, a bound index is corrupt.
TEST_F(MapIteratorsTest, BoundIndexOfAnotherIteratorIsCorruption) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(1);
  Arena arena;
  ReadOptions read_options;
  ScopedArenaPtr<InternalIterator> iter(
      dbfull()->NewInternalIterator(read_options, &arena, kMaxSequenceNumber));
  PinnableSlice value;
  EXPECT_TRUE(MapIterators::Fetch(iter.get(), "k",
                                  std::string("\x12\1\0\0\0\0\0\0\0\x10\1", 11),
                                  &value)
                  .IsCorruption());
}

// A prefetched value is handed out once. Asked for again, it is read.
TEST_F(MapIteratorsTest, PrefetchedValueIsReadAgainIfAskedTwice) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(20);
  ReadOptions read_options;
  read_options.blob_prefetch_count = 8;
  Arena arena;
  ScopedArenaPtr<InternalIterator> iter(NewMapIterator(read_options, &arena));
  int count = 0;
  std::string previous_key;
  std::string previous;
  for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++count) {
    const std::string key = iter->user_key().ToString();
    const std::string expected = Get(key);
    for (int i = 0; i < 2; ++i) {
      PinnableSlice value;
      ASSERT_OK(MapIterators::Fetch(iter.get(), key, iter->value(), &value));
      EXPECT_EQ(value, expected);
    }
    // A value of another key is never taken for it. (No record has that name.)
    PinnableSlice no_value;
    EXPECT_TRUE(
        MapIterators::Fetch(iter.get(), key + "x", iter->value(), &no_value)
            .IsCorruption());
    if (count > 0) {
      PinnableSlice value;
      ASSERT_OK(
          MapIterators::Fetch(iter.get(), previous_key, previous, &value));
      EXPECT_EQ(value, Get(previous_key));
    }
    previous_key = key;
    previous = iter->value().ToString();
  }
  ASSERT_OK(iter->status());
  EXPECT_EQ(count, 20);
  EXPECT_GT(Ticker(BLOB_MAP_PREFETCH_READ), 0u);
}

// ---- Several column families.

// Iterators of one call over a family with a map and one without are of one
// moment, and so is a coalescing iterator over both.
TEST_F(MapIteratorsTest, FamiliesWithAndWithoutMapMatchTheModel) {
  for (const size_t prefetch : {size_t{0}, size_t{7}, kAuto}) {
    for (const bool unprepared : {false, true}) {
      SCOPED_TRACE("prefetch " + std::to_string(prefetch) +
                   (unprepared ? " unprepared" : ""));
      const Options mapped = SmallFiles();
      Options plain = mapped;
      plain.enable_blob_address_map = false;
      DestroyAndReopen(plain);
      CreateColumnFamilies({"plain"}, plain);
      ReopenWithColumnFamilies({kDefaultColumnFamilyName, "plain"},
                               std::vector<Options>{mapped, plain});
      ASSERT_FALSE(HasFatalFailure());
      RandomWriter first(db_.get(), handles_[0], 21, /*range_deletions=*/true);
      RandomWriter second(db_.get(), handles_[1], 22, /*range_deletions=*/true);
      ReadOptions read_options;
      read_options.blob_prefetch_count = prefetch;
      read_options.allow_unprepared_value = unprepared;
      for (int round = 0; round < 8; ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        first.WriteMany(40);
        second.WriteMany(40);
        RunJob(&rnd_, handles_[rnd_.Uniform(2)]);
        ASSERT_FALSE(HasFatalFailure());

        std::vector<Cursor> cursors(4);
        for (Cursor& cursor : cursors) {
          cursor.read_options = read_options;
        }
        std::vector<Iterator*> iterators;
        ASSERT_OK(db_->NewIterators(read_options, {handles_[0], handles_[1]},
                                    &iterators));
        ASSERT_EQ(iterators.size(), 2);
        cursors[0].iter.reset(iterators[0]);
        cursors[0].Expect(first.Copy());
        cursors[1].iter.reset(iterators[1]);
        cursors[1].Expect(second.Copy());
        // The later family hides the earlier one.
        Contents second_hides = second.model();
        second_hides.insert(first.model().begin(), first.model().end());
        cursors[2].iter = db_->NewCoalescingIterator(
            read_options, {handles_[0], handles_[1]});
        cursors[2].Expect(std::make_shared<const Contents>(second_hides));
        Contents first_hides = first.model();
        first_hides.insert(second.model().begin(), second.model().end());
        cursors[3].iter = db_->NewCoalescingIterator(
            read_options, {handles_[1], handles_[0]});
        cursors[3].Expect(std::make_shared<const Contents>(first_hides));

        for (size_t i = 0; i < cursors.size(); ++i) {
          SCOPED_TRACE("iterator " + std::to_string(i));
          Walk(&cursors[i], /*moves=*/12, /*forward_only=*/false, [&] {
            first.WriteMany(5);
            second.WriteMany(5);
            RunJob(&rnd_, handles_[rnd_.Uniform(2)]);
          });
          ASSERT_FALSE(HasFatalFailure());
        }
      }
      EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ) > 0,
                prefetch > 0 && !unprepared);
    }
  }
}

// Both families are overwritten and flushed after the SuperVersion of one was
// taken and before that of the other. Jobs of the family without a map must
// also keep the data that the iterators see.
TEST_F(MapIteratorsTest, IteratorsOfTwoFamiliesAreOfOneMoment) {
  for (const bool mapped_first : {false, true}) {
    SCOPED_TRACE(mapped_first);
    const Options mapped = MapOptions();
    Options plain = mapped;
    plain.enable_blob_address_map = false;
    DestroyAndReopen(plain);
    CreateColumnFamilies({"plain"}, plain);
    ReopenWithColumnFamilies({kDefaultColumnFamilyName, "plain"},
                             std::vector<Options>{mapped, plain});
    ASSERT_FALSE(HasFatalFailure());
    const auto write = [&](int version) {
      WriteBatch batch;
      for (const char* key : {"a", "b", "c", "d"}) {
        ASSERT_OK(batch.Put(handles_[0], key, Value(version)));
        ASSERT_OK(batch.Put(handles_[1], key, Value(version)));
      }
      ASSERT_OK(db_->Write(WriteOptions(), &batch));
      for (ColumnFamilyHandle* family : handles_) {
        ASSERT_OK(db_->Flush(FlushOptions(), family));
      }
    };
    write(1);
    const auto done =
        EnableCallBackOnce("DBImpl::MultiCFSnapshot::AfterRefSV", [&](void*) {
          write(2);
          ASSERT_OK(ForceCompaction(0));
          ASSERT_OK(ForceCompaction(1));
          WaitForJobs();
        });
    std::vector<ColumnFamilyHandle*> families = handles_;
    if (!mapped_first) {
      std::swap(families[0], families[1]);
    }
    std::vector<Iterator*> raw;
    ASSERT_OK(db_->NewIterators(ReadOptions(), families, &raw));
    DisableCallBacks();
    EXPECT_TRUE(done->load());
    std::vector<std::unique_ptr<Iterator>> iterators;
    for (Iterator* iter : raw) {
      iterators.emplace_back(iter);
    }
    ASSERT_EQ(iterators.size(), 2);
    std::string of_version[3];
    for (const int version : {1, 2}) {
      for (const char* key : {"a", "b", "c", "d"}) {
        of_version[version] += std::string(key) + "=" + Value(version) + ";";
      }
    }
    const std::string found = Scan(iterators[0].get());
    EXPECT_TRUE(found == of_version[1] || found == of_version[2]) << found;
    EXPECT_EQ(Scan(iterators[1].get()), found);
    EXPECT_EQ(Scan(iterators[0].get(), true), Scan(iterators[1].get(), true));
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
