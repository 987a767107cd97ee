//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests the rules of the delta cache one by one, and its use by DeltaRead on
// stores without a DB. Tests with a DB are in db_delta_cache_test.cc.

#include "db/delta/delta_cache.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_read.h"
#include "db/delta/delta_store_test_util.h"
#include "monitoring/statistics_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/statistics.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::Event;
using delta_test::Events;
using delta_test::Values;
using Ref = DeltaCache::Ref;
using View = DeltaCache::View;

class DeltaCacheTest : public testing::Test {
 protected:
  static constexpr size_t kCapacity = size_t{4} << 20;

  // An operand of a list, with the last epoch of its file.
  struct Item {
    SequenceNumber seq;
    uint64_t epoch;
    std::string value;

    bool operator==(const Item&) const = default;
  };
  using Items = std::vector<Item>;

  static View ViewOf(SequenceNumber read_seq, uint64_t horizon,
                     uint64_t floor = 0, uint64_t bucket = 0,
                     uint64_t generation = 0) {
    View view;
    view.read_seq = read_seq;
    view.generation = generation;
    view.horizon = horizon;
    view.floor = floor;
    view.bucket = bucket;
    return view;
  }

  void Insert(const std::string& key, const View& view, SequenceNumber anchor,
              const Items& items) {
    DeltaOperands operands;
    for (const Item& item : items) {
      operands.Add(item.seq, item.value, /*pinner=*/nullptr);
      operands.SetEpoch(operands.size() - 1, item.epoch);
    }
    cache_.Insert(key, view, anchor, operands, operands.size());
  }
  static Items ItemsOf(const Ref& ref) {
    Items items;
    for (size_t i = 0; ref.found() && i < ref.size(); ++i) {
      const DeltaOperands::Operand operand = ref[i];
      items.push_back({operand.seq, operand.epoch, operand.value.ToString()});
    }
    return items;
  }
  bool Finds(const View& view) { return cache_.Lookup("k", view).found(); }
  uint64_t Ticker(Tickers ticker) const {
    return statistics_->getTickerCount(ticker);
  }

  const Items kItems = {{30, 20, "newest"}, {20, 20, ""}, {10, 0, "oldest"}};
  const std::shared_ptr<Statistics> statistics_ = CreateDBStatistics();
  DeltaCache cache_{kCapacity, nullptr, statistics_.get()};
};

TEST_F(DeltaCacheTest, LookupReturnsTheInsertedEntry) {
  ASSERT_FALSE(Finds(ViewOf(100, 50)));
  ASSERT_EQ(1, Ticker(DELTA_CACHE_MISS));
  Insert("k", ViewOf(40, 20), /*anchor=*/5, kItems);
  ASSERT_EQ(1, Ticker(DELTA_CACHE_ADD));
  const Ref ref = cache_.Lookup("k", ViewOf(100, 50));
  ASSERT_TRUE(ref.found());
  ASSERT_EQ(1, Ticker(DELTA_CACHE_HIT));
  ASSERT_EQ(20, ref.epoch());
  ASSERT_EQ(5, ref.anchor());
  ASSERT_EQ(kItems, ItemsOf(ref));
  ASSERT_FALSE(cache_.Lookup("k2", ViewOf(100, 50)).found());
  ASSERT_FALSE(cache_.Lookup("", ViewOf(100, 50)).found());
}

// Insert() keeps the first `count` operands, which the anchor does not hide.
TEST_F(DeltaCacheTest, InsertKeepsTheFirstOperands) {
  DeltaOperands operands;
  for (SequenceNumber seq : {30, 20, 10}) {
    operands.Add(seq, std::to_string(seq), /*pinner=*/nullptr);
  }
  cache_.Insert("k", ViewOf(40, 20), /*anchor=*/15, operands, 2);
  ASSERT_EQ((Items{{30, 0, "30"}, {20, 0, "20"}}),
            ItemsOf(cache_.Lookup("k", ViewOf(40, 20))));
}

TEST_F(DeltaCacheTest, ReaderBelowTheNewestOperandMisses) {
  Insert("k", ViewOf(40, 20), /*anchor=*/5, kItems);
  ASSERT_FALSE(Finds(ViewOf(29, 20)));
  ASSERT_TRUE(Finds(ViewOf(30, 20)));
}

TEST_F(DeltaCacheTest, ReaderOfAnotherGenerationMisses) {
  Insert("k", ViewOf(40, 20, 0, 0, /*generation=*/7), 5, kItems);
  ASSERT_FALSE(Finds(ViewOf(100, 50, 0, 0, 6)));
  ASSERT_FALSE(Finds(ViewOf(100, 50, 0, 0, 8)));
  ASSERT_TRUE(Finds(ViewOf(100, 50, 0, 0, 7)));
}

// A Version with a lower horizon lacks a flush whose operands are in the list.
TEST_F(DeltaCacheTest, ReaderWithALowerHorizonMisses) {
  Insert("k", ViewOf(40, 20), 5, kItems);
  ASSERT_FALSE(Finds(ViewOf(100, 19)));
  ASSERT_TRUE(Finds(ViewOf(100, 20)));
}

// The bucket has taken in epochs that the list does not cover.
TEST_F(DeltaCacheTest, ReaderWithAFloorAboveTheEpochMisses) {
  Insert("k", ViewOf(40, 20), 5, kItems);
  ASSERT_TRUE(Finds(ViewOf(100, 50, 20, /*bucket=*/40)));
  ASSERT_FALSE(Finds(ViewOf(100, 50, 21, 40)));
  // The same extent makes no difference.
  Insert("k", ViewOf(40, 20, 15, 40), 5, kItems);
  ASSERT_FALSE(Finds(ViewOf(100, 50, 21, 40)));
}

TEST_F(DeltaCacheTest, FoldInvalidatesOlderEntriesOfChangedExtents) {
  // These entries are from before the fold: one is from a reader without
  // buckets, two are of different buckets.
  Insert("k", ViewOf(40, 20, 0, 0), 5, kItems);
  Insert("l", ViewOf(40, 20, 10, 11), 5, kItems);
  Insert("m", ViewOf(40, 20, 10, 12), 5, kItems);
  cache_.OnFold(25);
  cache_.OnFold(24);  // does not lower the fold epoch
  ASSERT_FALSE(Finds(ViewOf(100, 50, 0, 0)));
  ASSERT_FALSE(Finds(ViewOf(100, 50, 20, 22)));
  // The extent of "l" is unchanged.
  ASSERT_TRUE(cache_.Lookup("l", ViewOf(100, 50, 10, 11)).found());
  ASSERT_FALSE(cache_.Lookup("l", ViewOf(100, 50, 10, 22)).found());
  {
    const Ref ref = cache_.Lookup("m", ViewOf(100, 30, 10, 12));
    ASSERT_TRUE(ref.found());
    // The extent is unchanged, and the reader found nothing newer. The entry is
    // raised to epoch 30, which is not below the fold epoch.
    ref.Confirm(ViewOf(100, 30, 10, 12));
  }
  ASSERT_TRUE(cache_.Lookup("m", ViewOf(100, 50, 20, 33)).found());
  ASSERT_FALSE(cache_.Lookup("m", ViewOf(100, 50, 31, 33)).found());
  // An entry that no reader could use is not inserted.
  Insert("n", ViewOf(40, 24, 0, 0), 5, kItems);
  ASSERT_EQ(3, cache_.GetStats().entries);
  // This entry is from after the fold, before the next flush.
  Insert("k", ViewOf(40, 20, 20, 23), 5, {{35, 20, "new"}});
  ASSERT_TRUE(Finds(ViewOf(100, 50, 20, 23)));
  // Readers that hold a Version from before the fold miss.
  ASSERT_FALSE(Finds(ViewOf(100, 20, 10, 11)));
  ASSERT_FALSE(Finds(ViewOf(100, 20, 0, 0)));
  // This entry is from after a later flush.
  Insert("k", ViewOf(60, 26, 20, 23), 5, {{50, 26, "new"}});
  ASSERT_TRUE(Finds(ViewOf(100, 50, 20, 44)));
  ASSERT_FALSE(Finds(ViewOf(100, 20, 10, 11)));
}

TEST_F(DeltaCacheTest, ConfirmRaisesEpochAndBucket) {
  Insert("k", ViewOf(40, 20, 0, 0), 5, kItems);
  const Ref held = cache_.Lookup("k", ViewOf(100, 20));
  {
    const Ref ref = cache_.Lookup("k", ViewOf(100, 50, 20, 30));
    ASSERT_TRUE(ref.found());
    ref.Confirm(ViewOf(100, 50, 20, 30));
  }
  ASSERT_TRUE(Finds(ViewOf(100, 50, 50, 30)));
  ASSERT_FALSE(Finds(ViewOf(100, 49, 20, 30)));
  // A Ref keeps the epoch that it was looked up with.
  ASSERT_EQ(20, held.epoch());
  ASSERT_EQ(50, cache_.Lookup("k", ViewOf(100, 60, 20, 30)).epoch());
  // The view of an older reader does not lower the epoch.
  held.Confirm(ViewOf(100, 20, 0, 0));
  ASSERT_EQ(50, cache_.Lookup("k", ViewOf(100, 60, 20, 30)).epoch());
}

TEST_F(DeltaCacheTest, InsertKeepsTheNewerEntry) {
  const auto newest = [&](const View& view) {
    const Items items = ItemsOf(cache_.Lookup("k", view));
    return items.empty() ? "none" : items.front().value;
  };
  Insert("k", ViewOf(40, 20, 0, 0, 1), 0, {{30, 20, "a"}});
  Insert("k", ViewOf(40, 19, 0, 0, 1), 0, {{30, 19, "b"}});
  ASSERT_EQ("a", newest(ViewOf(50, 20, 0, 0, 1)));
  Insert("k", ViewOf(40, 20, 0, 0, 1), 0, {{30, 20, "c"}});
  ASSERT_EQ("a", newest(ViewOf(50, 20, 0, 0, 1)));
  Insert("k", ViewOf(40, 20, 0, 5, 1), 0, {{30, 20, "d"}});
  ASSERT_EQ("d", newest(ViewOf(50, 20, 0, 0, 1)));
  Insert("k", ViewOf(40, 21, 0, 0, 1), 0, {{30, 20, "e"}});
  ASSERT_EQ("e", newest(ViewOf(50, 21, 0, 0, 1)));
  Insert("k", ViewOf(40, 50, 0, 0, 0), 0, {{30, 20, "f"}});
  ASSERT_EQ("e", newest(ViewOf(50, 50, 0, 0, 1)));
  Insert("k", ViewOf(40, 3, 0, 0, 2), 0, {{30, 3, "g"}});
  ASSERT_EQ("g", newest(ViewOf(50, 50, 0, 0, 2)));
}

TEST_F(DeltaCacheTest, PinnedValueOutlivesItsEntry) {
  Insert("k", ViewOf(40, 20), 5, kItems);
  Cleanable pins;
  Slice value;
  {
    const Ref ref = cache_.Lookup("k", ViewOf(40, 20));
    ASSERT_TRUE(ref.found());
    value = ref[0].value;
    ref.PinTo(&pins);
  }
  cache_.SetCapacity(0);
  ASSERT_FALSE(cache_.is_on());
  ASSERT_FALSE(Finds(ViewOf(40, 20)));
  ASSERT_EQ("newest", value);
  Ref a;
  cache_.SetCapacity(kCapacity);
  Insert("k", ViewOf(40, 20), 5, kItems);
  a = cache_.Lookup("k", ViewOf(40, 20));
  Ref b = std::move(a);
  ASSERT_FALSE(a.found());
  ASSERT_EQ(kItems, ItemsOf(b));
}

TEST_F(DeltaCacheTest, InsertLimitsBytesNotTheNumberOfOperands) {
  // The entry needs more than a 512th of the capacity.
  Insert("k", ViewOf(40, 20), 0, {{30, 20, std::string(9000, 'x')}});
  ASSERT_EQ(0, cache_.GetStats().entries);
  Items items;
  for (SequenceNumber seq = 200; seq > 0; --seq) {
    items.push_back({seq, seq / 10, std::to_string(seq)});
  }
  Insert("k", ViewOf(300, 50), 0, items);
  ASSERT_EQ(items, ItemsOf(cache_.Lookup("k", ViewOf(300, 50))));
}

//======== Readers

// Provides stores whose readers use a cache, and readers of Versions that are
// no longer current.
class DeltaCacheReadTest : public delta_test::DeltaStoreTestBase {
 protected:
  struct Past {
    std::shared_ptr<const DeltaVersion> version;
    Events events;
    SequenceNumber last_seq = 0;
  };

  DeltaCacheReadTest() {
    options_.enable_delta_separation = true;
    options_.delta_cache_size = size_t{1} << 20;
    options_.statistics = statistics_;
    ResetHistory();
  }
  void TearDown() override {
    past_.clear();
    DeltaStoreTestBase::TearDown();
  }

  Past Now() const { return {version_, events_, last_seq_}; }

  Values ReadOf(const Past& past, const std::string& key,
                SequenceNumber read_seq,
                const ReadOptions& read_options = ReadOptions()) {
    Values values;
    const LookupKey lookup_key(key, read_seq);
    DeltaRead read(*past.version, *store_, read_options, lookup_key,
                   /*generation=*/0);
    DeltaRead::Operand operand;
    Status s;
    while (read.Next(/*above=*/0, &operand, &s)) {
      values.emplace_back(operand.seq, operand.value.ToString());
    }
    EXPECT_OK(s);
    return values;
  }
  Values Reads(const std::string& key, SequenceNumber read_seq,
               const ReadOptions& read_options = ReadOptions()) {
    return ReadOf(Now(), key, read_seq, read_options);
  }
  void CheckOf(const Past& past, const std::string& key,
               SequenceNumber read_seq) {
    ASSERT_EQ(delta_test::VisibleOperands(past.events, key, read_seq),
              ReadOf(past, key, read_seq))
        << key << " at " << read_seq;
  }

  static Event OperandOf(const std::string& key, SequenceNumber seq) {
    return {Event::Type::kOperand, key, "", seq};
  }
  static Event AnchorOf(const std::string& key, SequenceNumber seq) {
    return {Event::Type::kAnchor, key, "", seq};
  }
  uint64_t Hits() const { return Ticker(DELTA_CACHE_HIT); }
  uint64_t Misses() const { return Ticker(DELTA_CACHE_MISS); }
  uint64_t Adds() const { return Ticker(DELTA_CACHE_ADD); }
  uint64_t Ticker(Tickers ticker) const {
    return statistics_->getTickerCount(ticker);
  }

  const std::shared_ptr<Statistics> statistics_ = CreateDBStatistics();
  std::vector<Past> past_;
};

TEST_F(DeltaCacheReadTest, HitReadsNoCoveredFiles) {
  Flush({OperandOf("k", 10), OperandOf("l", 11)});
  Flush({OperandOf("k", 20)});
  ASSERT_EQ((Values{{20, "k@20"}, {10, "k@10"}}), Reads("k", 100));
  ASSERT_EQ(1, Misses());
  ASSERT_EQ(1, Adds());
  const auto blocks_read = [this] {
    return Ticker(BLOCK_CACHE_DATA_HIT) + Ticker(BLOCK_CACHE_DATA_MISS);
  };
  const uint64_t before = blocks_read();
  ASSERT_GT(before, 0);
  ASSERT_EQ((Values{{20, "k@20"}, {10, "k@10"}}), Reads("k", 100));
  ASSERT_EQ(1, Hits());
  ASSERT_EQ(before, blocks_read());
  // No filter reports this key, so the cache is not asked.
  ASSERT_EQ(Values(), Reads("kk", 100));
  ASSERT_EQ(1, Hits());
  ASSERT_EQ(1, Misses());
}

TEST_F(DeltaCacheReadTest, HitReadsNewerFiles) {
  Flush({OperandOf("k", 10)});
  ASSERT_EQ((Values{{10, "k@10"}}), Reads("k", 100));
  Flush({OperandOf("l", 20)});
  ASSERT_EQ((Values{{10, "k@10"}}), Reads("k", 100));
  ASSERT_EQ(1, Hits());
  ASSERT_EQ(1, Adds());
  Flush({OperandOf("k", 30)});
  ASSERT_EQ((Values{{30, "k@30"}, {10, "k@10"}}), Reads("k", 100));
  ASSERT_EQ(2, Hits());
  ASSERT_EQ(2, Adds());
  Flush({AnchorOf("k", 40)});
  // The anchor hides the whole list, so there is nothing to insert.
  ASSERT_EQ(Values(), Reads("k", 100));
  ASSERT_EQ(3, Hits());
  ASSERT_EQ(2, Adds());
  Flush({OperandOf("k", 50)});
  ASSERT_EQ((Values{{50, "k@50"}}), Reads("k", 100));
  ASSERT_EQ(3, Adds());
  ASSERT_EQ((Values{{50, "k@50"}}), Reads("k", 100));
  ASSERT_EQ(5, Hits());
  ASSERT_EQ(1, Misses());
  // A reader from before the anchor cannot use the entry, and does not replace
  // it.
  ASSERT_EQ((Values{{30, "k@30"}, {10, "k@10"}}), Reads("k", 39));
  ASSERT_EQ(2, Misses());
  ASSERT_EQ(3, Adds());
}

TEST_F(DeltaCacheReadTest, OnlyCompleteReadsFillTheCache) {
  Flush({OperandOf("k", 10), OperandOf("l", 11)});
  Flush({OperandOf("k", 20)});
  // A reader that does not see all operands of the key fills nothing.
  ASSERT_EQ((Values{{10, "k@10"}}), Reads("k", 19));
  ASSERT_EQ(0, Adds());
  // A reader with fill_cache = false fills nothing.
  ReadOptions read_options;
  read_options.fill_cache = false;
  ASSERT_EQ((Values{{20, "k@20"}, {10, "k@10"}}),
            Reads("k", 100, read_options));
  ASSERT_EQ(0, Adds());
  // A read that stops before the end fills nothing.
  {
    const LookupKey key("k", 100);
    read_options = ReadOptions();
    DeltaRead read(*version_, *store_, read_options, key, /*generation=*/0);
    DeltaRead::Operand operand;
    Status s;
    ASSERT_TRUE(read.Next(/*above=*/15, &operand, &s));
    ASSERT_FALSE(read.Next(/*above=*/15, &operand, &s));
    ASSERT_OK(s);
  }
  ASSERT_EQ(0, Adds());
  ASSERT_EQ((Values{{20, "k@20"}, {10, "k@10"}}), Reads("k", 20));
  ASSERT_EQ(1, Adds());
  // A reader that may neither fill the cache nor do I/O uses the entry.
  read_options.fill_cache = false;
  read_options.read_tier = kBlockCacheTier;
  ASSERT_EQ((Values{{20, "k@20"}, {10, "k@10"}}),
            Reads("k", 100, read_options));
  ASSERT_EQ(1, Hits());
}

// A read is complete when an anchor hides all files that are left. It fills the
// cache without reading these files.
TEST_F(DeltaCacheReadTest, ReadThatEndsAtAnAnchorFillsTheCache) {
  Flush({OperandOf("k", 10)});
  Flush({AnchorOf("k", 20), OperandOf("k", 21)});
  Flush({OperandOf("l", 30)});
  // A reader that opened the oldest file would fail.
  const auto& files = version_->RecentFiles(Kind::kOperands);
  ASSERT_OK(env_->DeleteFile(FileName(files.back()->description())));
  ASSERT_EQ((Values{{21, "k@21"}}), Reads("k", 100));
  ASSERT_EQ(1, Adds());
  ASSERT_EQ((Values{{21, "k@21"}}), Reads("k", 100));
  ASSERT_EQ(1, Hits());
  // The entry has the anchor as well.
  View view;
  view.read_seq = 100;
  view.horizon = files.front()->description().last_epoch;
  const Ref ref = store_->cache()->Lookup("k", view);
  ASSERT_TRUE(ref.found());
  ASSERT_EQ(20, ref.anchor());
  ASSERT_EQ(1, ref.size());
}

// A merged file may have operands of epochs on both sides of the entry's epoch.
// All of them are read from the file; the list gives only operands of older
// files.
TEST_F(DeltaCacheReadTest, OperandsOfAMergedFileAcrossTheEpochCountOnce) {
  Flush({OperandOf("k", 10)});
  Merge(1);
  Flush({OperandOf("k", 20)});
  ASSERT_EQ((Values{{20, "k@20"}, {10, "k@10"}}), Reads("k", 100));
  Flush({OperandOf("k", 30)});
  Merge(2);
  const Values all = {{30, "k@30"}, {20, "k@20"}, {10, "k@10"}};
  ASSERT_EQ(all, Reads("k", 100));
  ASSERT_EQ(1, Hits());
  ASSERT_EQ(2, Adds());
  ASSERT_EQ(all, Reads("k", 100));
  // The bucket takes in only operands that are in the list, so the entry stays
  // usable.
  Collect(0, 1, 2, {"", "k"});
  ASSERT_EQ(all, Reads("k", 100));
  ASSERT_EQ(3, Hits());
  ASSERT_EQ(2, Adds());
  // The bucket takes in an epoch above that of the entry, so the entry cannot
  // be used.
  Flush({OperandOf("l", 40)});
  Merge(1);
  Collect(1, 2, 1, {"k"});
  ASSERT_EQ(all, Reads("k", 100));
  ASSERT_EQ(3, Hits());
  ASSERT_EQ(2, Misses());
  ASSERT_EQ(3, Adds());
  ASSERT_EQ(all, Reads("k", 100));
  ASSERT_EQ(4, Hits());
}

TEST_F(DeltaCacheReadTest, FoldInvalidatesEntriesOfOlderEpochs) {
  Flush({OperandOf("k", 10)});
  ASSERT_EQ((Values{{10, "k@10"}}), Reads("k", 100));
  store_->OnFold(UINT64_MAX);
  ASSERT_EQ((Values{{10, "k@10"}}), Reads("k", 100));
  ASSERT_EQ(0, Hits());
  ASSERT_EQ(2, Misses());
}

TEST_F(DeltaCacheReadTest, UpdateSetsTheCapacity) {
  Flush({OperandOf("k", 10)});
  Reads("k", 100);
  ASSERT_NE(nullptr, store_->cache());
  ASSERT_EQ(1, store_->cache()->GetStats().entries);
  MutableCFOptions options(options_);
  options.delta_cache_size = 0;
  store_->Update(options);
  ASSERT_EQ(nullptr, store_->cache());
  store_->TrimCache();
  ASSERT_EQ((Values{{10, "k@10"}}), Reads("k", 100));
  ASSERT_EQ(0, Hits());
  options.delta_cache_size = 200000;
  store_->Update(options);
  ASSERT_EQ(200000, store_->cache()->capacity());
  Reads("k", 100);
  ASSERT_EQ((Values{{10, "k@10"}}), Reads("k", 100));
  ASSERT_EQ(1, Hits());
}

TEST_F(DeltaCacheReadTest, NoCacheWithoutSeparation) {
  options_.enable_delta_separation = false;
  ResetStore();
  ASSERT_EQ(nullptr, store_->cache());
  store_->OnFold(5);
  store_->Update(MutableCFOptions(options_));
}

// Readers of the current Version and of older ones, at any sequence numbers and
// in any order, find the operands that they see.
TEST_F(DeltaCacheReadTest, ReadsOfRandomHistoriesFindTheVisibleOperands) {
  std::vector<std::string> keys;
  for (int i = 0; i < 12; ++i) {
    keys.push_back("key" + std::to_string(100 + i));
  }
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random rnd(seed);
    past_.clear();
    ResetHistory();
    for (int step = 0; step < 60; ++step) {
      RandomStep(keys, &rnd);
      ASSERT_OK(version_->CheckConsistency());
      if (rnd.OneIn(3)) {
        if (past_.size() > 4) {
          past_.erase(past_.begin() +
                      rnd.Uniform(static_cast<int>(past_.size())));
        }
        past_.push_back(Now());
      }
      for (int i = 0; i < 40; ++i) {
        const std::string& key =
            keys[rnd.Uniform(static_cast<int>(keys.size()))];
        const bool is_now = past_.empty() || !rnd.OneIn(4);
        const Past& past =
            is_now ? Now() : past_[rnd.Uniform(static_cast<int>(past_.size()))];
        // Most readers see everything that their Version has.
        const SequenceNumber read_seq =
            rnd.OneIn(3) ? rnd.Uniform(static_cast<int>(past.last_seq) + 2)
                         : last_seq_ - rnd.Uniform(static_cast<int>(
                                           last_seq_ - past.last_seq + 1));
        CheckOf(past, key, read_seq);
        if (HasFailure()) {
          return;
        }
      }
    }
  }
  // The cache was filled and used.
  ASSERT_GT(Hits(), Misses());
  ASSERT_GT(Adds(), 1000);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
