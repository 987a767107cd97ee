//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_store_iterator.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_store_test_util.h"
#include "db/pinned_iterators_manager.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/table.h"
#include "test_util/strata/overwriting_allocator_test_util.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::Event;
using delta_test::Events;
using delta_test::Values;

class DeltaStoreIteratorTest : public delta_test::DeltaStoreTestBase {
 protected:
  struct Entry {
    std::string internal_key;
    std::string value;

    bool operator==(const Entry&) const = default;
  };
  using Entries = std::vector<Entry>;

  static std::string Encode(const std::string& key, SequenceNumber seq,
                            ValueType type) {
    return InternalKey(key, seq, type).Encode().ToString();
  }
  static std::string UserKey(const Entry& entry) {
    return ExtractUserKey(entry.internal_key).ToString();
  }

  // Returns the entries of all keys that a reader at read_seq sees, in order.
  Entries ExpectedEntries(SequenceNumber read_seq) const {
    std::set<std::string> keys;
    for (const Event& event : events_) {
      if (event.type == Event::Type::kOperand) {
        keys.insert(event.key);
      }
    }
    Entries entries;
    for (const std::string& key : keys) {
      for (const auto& [seq, value] : Expected(key, read_seq)) {
        entries.push_back({Encode(key, seq, kTypeMerge), value});
      }
    }
    return entries;
  }

  std::unique_ptr<InternalIterator> NewIter(
      SequenceNumber read_seq,
      const ReadOptions& read_options = ReadOptions()) {
    return std::make_unique<DeltaStoreIterator>(*version_, *store_, icmp_,
                                                read_options, read_seq);
  }

  static Entry Current(const InternalIterator& iter) {
    return {iter.key().ToString(), iter.value().ToString()};
  }
  // Checks that the iterator is at entry i, or not valid if there is no such
  // entry.
  static void CheckAt(const InternalIterator& iter, const Entries& entries,
                      size_t i) {
    ASSERT_OK(iter.status());
    ASSERT_EQ(i < entries.size(), iter.Valid());
    if (iter.Valid()) {
      ASSERT_TRUE(entries[i] == Current(iter))
          << iter.key().ToString(/*hex=*/true);
    }
  }

  static Entries Forward(InternalIterator* iter) {
    Entries entries;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      entries.push_back(Current(*iter));
    }
    EXPECT_OK(iter->status());
    return entries;
  }
  // Iterates backward, and returns the entries in ascending order.
  static Entries Backward(InternalIterator* iter) {
    Entries entries;
    for (iter->SeekToLast(); iter->Valid(); iter->Prev()) {
      entries.push_back(Current(*iter));
    }
    EXPECT_OK(iter->status());
    std::reverse(entries.begin(), entries.end());
    return entries;
  }
  void CheckBothWays(InternalIterator* iter, SequenceNumber read_seq) {
    const Entries expected = ExpectedEntries(read_seq);
    ASSERT_TRUE(expected == Forward(iter)) << read_seq;
    ASSERT_TRUE(expected == Backward(iter)) << read_seq;
  }

  // Checks random seeks, each followed by some steps in both directions.
  void CheckSeeks(InternalIterator* iter, SequenceNumber read_seq,
                  const std::vector<std::string>& keys, int num, Random* rnd) {
    const Entries expected = ExpectedEntries(read_seq);
    const auto lower_bound = [&](const std::string& target) {
      return static_cast<size_t>(
          std::lower_bound(expected.begin(), expected.end(), target,
                           [&](const Entry& entry, const std::string& t) {
                             return icmp_.Compare(Slice(entry.internal_key),
                                                  Slice(t)) < 0;
                           }) -
          expected.begin());
    };
    for (; num > 0; --num) {
      std::string key = keys[rnd->Uniform(static_cast<int>(keys.size()))];
      if (rnd->OneIn(5)) {
        key += "x";
      } else if (rnd->OneIn(20)) {
        key = rnd->OneIn(2) ? "" : "~";
      }
      const SequenceNumber seq =
          rnd->OneIn(3) ? kMaxSequenceNumber
                        : rnd->Uniform(static_cast<int>(last_seq_) + 2);
      const ValueType types[] = {kValueTypeForSeek, kTypeMerge, kTypeDeletion};
      const std::string target = Encode(key, seq, types[rnd->Uniform(3)]);
      size_t i = lower_bound(target);
      if (rnd->OneIn(2)) {
        iter->Seek(target);
      } else {
        iter->SeekForPrev(target);
        // The target itself may be an entry. SIZE_MAX is the end before the
        // first entry.
        if (i == expected.size() || expected[i].internal_key != target) {
          --i;
        }
      }
      CheckAt(*iter, expected, i);
      for (int steps = rnd->Uniform(8); steps > 0 && iter->Valid(); --steps) {
        if (rnd->OneIn(2)) {
          iter->Next();
          ++i;
        } else {
          iter->Prev();
          --i;
        }
        CheckAt(*iter, expected, i);
      }
      if (HasFailure()) {
        return;
      }
    }
  }

  static std::vector<std::string> SomeKeys(int num) {
    std::vector<std::string> keys;
    for (int i = 0; i < num; ++i) {
      keys.push_back("key" + std::to_string(1000 + i));
    }
    return keys;
  }

  const InternalKeyComparator icmp_{BytewiseComparator()};
};

TEST_F(DeltaStoreIteratorTest, ReturnsVisibleOperandsAtEverySequenceNumber) {
  const std::vector<std::string> keys = SomeKeys(8);
  for (uint32_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random rnd(seed);
    ResetHistory();
    for (int step = 0; step < 25; ++step) {
      RandomStep(keys, &rnd);
    }
    for (SequenceNumber read_seq = 0; read_seq <= last_seq_ + 1; ++read_seq) {
      const auto iter = NewIter(read_seq);
      CheckBothWays(iter.get(), read_seq);
      CheckSeeks(iter.get(), read_seq, keys, /*num=*/10, &rnd);
      // Point reads find the same entries.
      Entries entries;
      for (const std::string& key : keys) {
        for (const auto& [seq, value] : MustRead(key, read_seq)) {
          entries.push_back({Encode(key, seq, kTypeMerge), value});
        }
      }
      ASSERT_TRUE(entries == Forward(iter.get()));
      if (HasFailure()) {
        return;
      }
    }
  }
}

TEST_F(DeltaStoreIteratorTest, ReturnsVisibleOperandsOfRandomHistories) {
  const std::vector<std::string> keys = SomeKeys(60);
  for (uint32_t seed = 101; seed <= 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random rnd(seed);
    ResetHistory();
    for (int step = 0; step < 60; ++step) {
      RandomStep(keys, &rnd);
      if (rnd.OneIn(3)) {
        const SequenceNumber read_seq =
            rnd.OneIn(2) ? kMaxSequenceNumber
                         : rnd.Uniform(static_cast<int>(last_seq_) + 2);
        const auto iter = NewIter(read_seq);
        CheckBothWays(iter.get(), read_seq);
        CheckSeeks(iter.get(), read_seq, keys, /*num=*/50, &rnd);
        if (HasFailure()) {
          return;
        }
      }
    }
  }
}

// Iterator::Refresh() changes the sequence number in this way.
TEST_F(DeltaStoreIteratorTest, SequenceNumberCanBeChanged) {
  const std::vector<std::string> keys = SomeKeys(8);
  Random rnd(7);
  for (int step = 0; step < 40; ++step) {
    RandomStep(keys, &rnd);
  }
  const auto iter = NewIter(last_seq_);
  for (int round = 0; round < 100; ++round) {
    const SequenceNumber read_seq =
        rnd.Uniform(static_cast<int>(last_seq_) + 2);
    iter->SetRangeDelReadSeqno(read_seq);
    CheckSeeks(iter.get(), read_seq, keys, /*num=*/2, &rnd);
    CheckBothWays(iter.get(), read_seq);
    if (HasFailure()) {
      return;
    }
  }
}

// A new sequence number also applies to the key at which the iterator stands.
TEST_F(DeltaStoreIteratorTest, AnchorsAreFoundAgainForANewSequenceNumber) {
  Flush({{Event::Type::kOperand, "k", "", 10}});
  Flush({{Event::Type::kAnchor, "k", "", 20}});
  const auto iter = NewIter(15);
  const std::string target = Encode("k", kMaxSequenceNumber, kValueTypeForSeek);
  for (int round = 0; round < 2; ++round) {
    iter->Seek(target);
    ASSERT_TRUE(iter->Valid());
    iter->SetRangeDelReadSeqno(25);
    iter->Seek(target);
    ASSERT_FALSE(iter->Valid());
    ASSERT_OK(iter->status());
    iter->SetRangeDelReadSeqno(15);
  }
}

// On either side of the visible operands there are more invisible ones than the
// iterator steps over one by one.
TEST_F(DeltaStoreIteratorTest, SkipsManyInvisibleOperands) {
  constexpr SequenceNumber kNum = 100;
  for (const bool is_range : {false, true}) {
    ResetHistory();
    Events operands;
    for (SequenceNumber seq = 3; seq < 9 * kNum; seq += 3) {
      operands.push_back({Event::Type::kOperand, "a", "", seq});
      operands.push_back({Event::Type::kOperand, "k", "", seq + 1});
      operands.push_back({Event::Type::kOperand, "z", "", seq + 2});
    }
    last_seq_ = 9 * kNum;
    Flush(operands);
    if (is_range) {
      Flush({{Event::Type::kRangeAnchor, "a", "zz", 3 * kNum}});
    } else {
      Flush({{Event::Type::kAnchor, "a", "", 3 * kNum},
             {Event::Type::kAnchor, "k", "", 3 * kNum + 1},
             {Event::Type::kAnchor, "z", "", 3 * kNum + 2}});
    }
    Random rnd(8);
    for (const SequenceNumber read_seq :
         {2 * kNum, 3 * kNum, 3 * kNum + 20, 6 * kNum, 9 * kNum}) {
      const auto iter = NewIter(read_seq);
      CheckBothWays(iter.get(), read_seq);
      CheckSeeks(iter.get(), read_seq, {"a", "k", "z"}, /*num=*/100, &rnd);
    }
  }
}

TEST_F(DeltaStoreIteratorTest, ReturnsAllEntriesWithinBounds) {
  const std::vector<std::string> keys = SomeKeys(30);
  Random rnd(9);
  for (int step = 0; step < 60; ++step) {
    RandomStep(keys, &rnd);
  }
  for (int round = 0; round < 200; ++round) {
    const std::string lower = keys[rnd.Uniform(30)];
    const std::string upper = keys[rnd.Uniform(30)] + (rnd.OneIn(2) ? "x" : "");
    const Slice lower_slice(lower);
    const Slice upper_slice(upper);
    ReadOptions read_options;
    read_options.iterate_lower_bound = &lower_slice;
    read_options.iterate_upper_bound = &upper_slice;
    const SequenceNumber read_seq =
        rnd.Uniform(static_cast<int>(last_seq_) + 2);
    const auto iter = NewIter(read_seq, read_options);
    Entries expected;
    for (const Entry& entry : ExpectedEntries(read_seq)) {
      if (UserKey(entry) >= lower && UserKey(entry) < upper) {
        expected.push_back(entry);
      }
    }
    // Entries outside the bounds may be returned or left out.
    Entries found;
    for (iter->Seek(Encode(lower, kMaxSequenceNumber, kValueTypeForSeek));
         iter->Valid() && UserKey(Current(*iter)) < upper; iter->Next()) {
      found.push_back(Current(*iter));
    }
    ASSERT_OK(iter->status());
    ASSERT_TRUE(expected == found);
    found.clear();
    for (iter->SeekForPrev(Encode(upper, kMaxSequenceNumber, kTypeDeletion));
         iter->Valid() && UserKey(Current(*iter)) >= lower; iter->Prev()) {
      if (UserKey(Current(*iter)) < upper) {
        found.push_back(Current(*iter));
      }
    }
    ASSERT_OK(iter->status());
    std::reverse(found.begin(), found.end());
    ASSERT_TRUE(expected == found);
  }
}

// Pinned values stay valid when the iterator moves to other blocks and files.
TEST_F(DeltaStoreIteratorTest, PinnedValuesStayValid) {
  // The cache keeps no block that is not in use, and frees it at once.
  const auto allocator = std::make_shared<OverwritingAllocator>();
  BlockBasedTableOptions table_options;
  table_options.block_size = 128;
  table_options.block_cache = NewLRUCache(/*capacity=*/1, /*num_shard_bits=*/0,
                                          /*strict_capacity_limit=*/false,
                                          /*high_pri_pool_ratio=*/0, allocator);
  options_.table_factory.reset(NewBlockBasedTableFactory(table_options));
  Reopen();
  ResetHistory();
  const std::vector<std::string> keys = SomeKeys(50);
  Random rnd(10);
  for (int step = 0; step < 60; ++step) {
    RandomStep(keys, &rnd);
  }
  const Entries expected = ExpectedEntries(last_seq_);
  ASSERT_FALSE(expected.empty());
  const auto iter = NewIter(last_seq_);
  PinnedIteratorsManager pins;
  iter->SetPinnedItersMgr(&pins);
  iter->SeekToFirst();
  ASSERT_TRUE(iter->Valid());
  ASSERT_FALSE(iter->IsValuePinned());
  pins.StartPinning();
  std::vector<Slice> values;
  for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
    ASSERT_TRUE(iter->IsValuePinned());
    values.push_back(iter->value());
  }
  for (iter->SeekToLast(); iter->Valid(); iter->Prev()) {
    ASSERT_TRUE(iter->IsValuePinned());
    values.push_back(iter->value());
  }
  ASSERT_EQ(2 * expected.size(), values.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].value, values[i].ToString());
    ASSERT_EQ(expected[i].value, values[values.size() - 1 - i].ToString());
  }
  const size_t num_freed = allocator->NumFreed();
  pins.ReleasePinnedData();
  EXPECT_LT(num_freed, allocator->NumFreed());
  // The iterator is destroyed while data is pinned.
  pins.StartPinning();
  iter->SeekToFirst();
  ASSERT_TRUE(iter->Valid());
}

TEST_F(DeltaStoreIteratorTest, IterationWithoutIOIsIncomplete) {
  Flush({{Event::Type::kOperand, "a", "", 10},
         {Event::Type::kOperand, "b", "", 11}});
  Flush({{Event::Type::kAnchor, "b", "", 20}});
  ReadOptions memory_only;
  memory_only.read_tier = kBlockCacheTier;
  const auto iter = NewIter(100, memory_only);
  for (int round = 0; round < 2; ++round) {
    iter->SeekToFirst();
    ASSERT_FALSE(iter->Valid());
    ASSERT_TRUE(iter->status().IsIncomplete()) << iter->status().ToString();
    iter->SeekToLast();
    ASSERT_FALSE(iter->Valid());
    ASSERT_TRUE(iter->status().IsIncomplete());
  }
  // The file of operands and its block are in memory now. The anchor file does
  // not have key "a".
  ASSERT_EQ((Values{{10, "a@10"}}), MustRead("a", 100));
  iter->SeekToFirst();
  ASSERT_TRUE(iter->Valid());
  // The anchor file is not in memory.
  iter->Next();
  ASSERT_FALSE(iter->Valid());
  ASSERT_TRUE(iter->status().IsIncomplete());
  ASSERT_EQ(Values(), MustRead("b", 100));
  iter->Seek(Encode("a", kMaxSequenceNumber, kValueTypeForSeek));
  ASSERT_TRUE(iter->Valid());
  iter->Next();
  ASSERT_FALSE(iter->Valid());
  ASSERT_OK(iter->status());
}

TEST_F(DeltaStoreIteratorTest, MissingFileFailsOnlySeeksThatNeedIt) {
  Flush({{Event::Type::kOperand, "a", "", 10}});
  Flush({{Event::Type::kOperand, "b", "", 20}});
  ASSERT_OK(env_->DeleteFile(
      FileName(version_->RecentFiles(Kind::kOperands).front()->description())));
  const auto iter = NewIter(100);
  iter->SeekToFirst();
  ASSERT_FALSE(iter->Valid());
  ASSERT_NOK(iter->status());
  // A seek beyond the range of the file does not need it.
  iter->Seek(Encode("c", kMaxSequenceNumber, kValueTypeForSeek));
  ASSERT_FALSE(iter->Valid());
  ASSERT_OK(iter->status());
}

// There are thousands of buckets, most of which see no operand.
TEST_F(DeltaStoreIteratorTest, IteratesOverSparseBuckets) {
  constexpr int kNumBuckets = 3000;
  const std::vector<std::string> keys = SomeKeys(kNumBuckets);
  Random rnd(11);
  Events events;
  for (int i = 0; i < kNumBuckets; i += 1 + rnd.Uniform(200)) {
    events.push_back({Event::Type::kOperand, keys[i], "", ++last_seq_});
  }
  Flush(events);
  events.clear();
  for (int i = 0; i < kNumBuckets; i += 1 + rnd.Uniform(20)) {
    events.push_back({Event::Type::kOperand, keys[i], "", ++last_seq_});
  }
  Flush(events);
  Merge(1);
  std::vector<std::string> bounds = keys;
  bounds.insert(bounds.begin(), "");
  Collect(0, 1, 1, bounds);
  Merge(1);
  // Some buckets have taken in the merged file.
  for (size_t i = 0; i + 100 < kNumBuckets; i += 300) {
    std::vector<std::string> same(bounds.begin() + i, bounds.begin() + i + 100);
    Collect(i, i + 100, 1, same);
  }
  for (const SequenceNumber read_seq : {last_seq_ / 2, last_seq_}) {
    const auto iter = NewIter(read_seq);
    CheckBothWays(iter.get(), read_seq);
    CheckSeeks(iter.get(), read_seq, keys, /*num=*/200, &rnd);
  }
}

TEST_F(DeltaStoreIteratorTest, StoreWithoutOperandsHasNoEntries) {
  Flush({{Event::Type::kAnchor, "a", "", 10},
         {Event::Type::kRangeAnchor, "a", "z", 11}});
  const auto iter = NewIter(100);
  CheckBothWays(iter.get(), 100);
  iter->Seek(Encode("a", 100, kValueTypeForSeek));
  ASSERT_FALSE(iter->Valid());
  iter->SeekForPrev(Encode("z", 100, kValueTypeForSeek));
  ASSERT_FALSE(iter->Valid());
  ASSERT_OK(iter->status());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
