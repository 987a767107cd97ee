//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/sieve_table.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/slice.h"
#include "test_util/strata/cache_reservation_test_util.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// An entry whose payload is a text.
struct TextEntry : public SieveTable::Entry {
  uint64_t version = 0;
  size_t text_size = 0;

  char* text_data() { return reinterpret_cast<char*>(this + 1); }
  Slice text() { return Slice(text_data(), text_size); }
};

// Admits newer versions, and counts what it is told of.
class KeepsNewer : public SieveTable::Policy {
 public:
  bool Admits(SieveTable::Entry* old, SieveTable::Entry* entry) override {
    return old == nullptr || static_cast<TextEntry*>(old)->version <
                                 static_cast<TextEntry*>(entry)->version;
  }
  void OnAdd(const SieveTable::Entry& entry) override {
    bytes += entry.size();
    ++entries;
  }
  void OnRemove(const SieveTable::Entry& entry) override {
    bytes -= entry.size();
    --entries;
  }

  std::atomic<uint64_t> entries{0};
  std::atomic<uint64_t> bytes{0};
};

constexpr size_t kCapacity = size_t{8} << 20;

std::string KeyOf(uint64_t i) { return "key" + std::to_string(i); }

}  // namespace

class SieveTableTest : public testing::Test {
 protected:
  void Reset(size_t capacity, std::shared_ptr<Room> room = nullptr,
             size_t num_shards = SieveTable::kMaxShards,
             SieveTable::LargeEntries large_entries =
                 SieveTable::LargeEntries::kRefused) {
    table_.reset();
    policy_.entries = 0;
    policy_.bytes = 0;
    table_ = std::make_unique<SieveTable>(&policy_, capacity, num_shards,
                                          large_entries, room);
  }
  // Makes a table whose large entries share memory.
  void ResetForLarge(size_t capacity, size_t num_shards = 16) {
    Reset(capacity, nullptr, num_shards,
          SieveTable::LargeEntries::kShareMemory);
  }

  bool Insert(const std::string& key, const std::string& text,
              uint64_t version = 1) {
    auto* const entry =
        table_->New<TextEntry>(key, table_->HashOf(key), text.size());
    if (entry == nullptr) {
      return false;
    }
    entry->version = version;
    entry->text_size = text.size();
    memcpy(entry->text_data(), text.data(), text.size());
    return table_->Insert(entry);
  }
  // Returns "none" if there is no entry.
  std::string Find(const std::string& key, bool mark = true) {
    auto* const entry = static_cast<TextEntry*>(table_->Find(key));
    if (entry == nullptr) {
      return "none";
    }
    EXPECT_EQ(key, entry->key());
    if (mark) {
      SieveTable::MarkUsed(entry);
    }
    const std::string text = entry->text().ToString();
    entry->Unref();
    return text;
  }
  uint64_t NumEntries() { return table_->GetStats().entries; }

  // Adds new entries until each of the old ones that were not used has been
  // evicted.
  void PassTheHand() {
    static uint64_t next = 1000000;
    for (const uint64_t end = next + 2 * table_->capacity() / 100; next < end;
         ++next) {
      ASSERT_TRUE(Insert(KeyOf(next), std::string(100, 'x')));
    }
  }

  KeepsNewer policy_;
  std::unique_ptr<SieveTable> table_;
};

TEST_F(SieveTableTest, FindsByWholeKey) {
  Reset(kCapacity);
  ASSERT_EQ("none", Find("a"));
  ASSERT_TRUE(Insert("a", "text of a"));
  ASSERT_TRUE(Insert("ab", ""));
  ASSERT_TRUE(Insert("", "text of the empty key"));
  ASSERT_TRUE(Insert(std::string("a\0b", 3), "with a zero"));
  ASSERT_EQ("text of a", Find("a"));
  ASSERT_EQ("", Find("ab"));
  ASSERT_EQ("text of the empty key", Find(""));
  ASSERT_EQ("with a zero", Find(std::string("a\0b", 3)));
  ASSERT_EQ("none", Find("abc"));
  ASSERT_EQ(4, NumEntries());
}

TEST_F(SieveTableTest, NewerEntryReplacesAnOlderOne) {
  Reset(kCapacity);
  ASSERT_TRUE(Insert("a", "2", 2));
  ASSERT_FALSE(Insert("a", "1", 1));
  ASSERT_EQ("2", Find("a"));
  ASSERT_FALSE(Insert("a", "other 2", 2));
  ASSERT_EQ("2", Find("a"));
  ASSERT_TRUE(Insert("a", "3", 3));
  ASSERT_EQ("3", Find("a"));
  ASSERT_EQ(1, NumEntries());
}

TEST_F(SieveTableTest, GrowsAndCounts) {
  Reset(kCapacity);
  const uint64_t kNum = 20000;
  for (uint64_t i = 0; i < kNum; ++i) {
    ASSERT_TRUE(Insert(KeyOf(i), std::to_string(i)));
  }
  const SieveTable::Stats stats = table_->GetStats();
  ASSERT_EQ(kNum, stats.entries);
  ASSERT_EQ(0, stats.evicted);
  ASSERT_GE(stats.bytes, kNum * sizeof(TextEntry));
  ASSERT_LE(stats.bytes, kCapacity);
  for (uint64_t i = 0; i < kNum; ++i) {
    ASSERT_EQ(std::to_string(i), Find(KeyOf(i)));
  }
  ASSERT_EQ("none", Find(KeyOf(kNum)));
}

TEST_F(SieveTableTest, UsedEntriesStay) {
  Reset(size_t{1} << 20);
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Insert(KeyOf(i), std::string(100, 'x')));
  }
  for (uint64_t i = 1000; i < 50000; ++i) {
    ASSERT_TRUE(Insert(KeyOf(i), std::string(100, 'x')));
    ASSERT_NE("none", Find(KeyOf(i % 100)));
    // These entries are found, but not marked as used.
    Find(KeyOf(100 + i % 100), /*mark=*/false);
  }
  const SieveTable::Stats stats = table_->GetStats();
  ASSERT_LE(stats.bytes, size_t{1} << 20);
  ASSERT_GE(stats.bytes, size_t{800} << 10);
  ASSERT_EQ(50000 - stats.entries, stats.evicted);
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_NE("none", Find(KeyOf(i)));
    ASSERT_EQ("none", Find(KeyOf(100 + i)));
  }
}

// Entries that are used once do not displace those that are used again, even if
// some time passes between their uses.
TEST_F(SieveTableTest, EntriesUsedOnceLeaveFirst) {
  Reset(kCapacity);
  const std::string text(1000, 'x');
  const uint64_t kOften = kCapacity / 2 / 1100;
  const uint64_t kOnce = 20 * kOften;
  Random rnd(7);
  uint64_t misses = 0;
  for (uint64_t i = 0; i < kOnce; ++i) {
    const std::string often = KeyOf(rnd.Uniform(static_cast<int>(kOften)));
    if (Find(often) == "none") {
      misses += i > kOnce / 2 ? 1 : 0;
      ASSERT_TRUE(Insert(often, text));
    }
    ASSERT_TRUE(Insert(KeyOf(kOften + i), text));
  }
  ASSERT_LT(misses, kOnce / 2 / 20);
}

// An entry that replaces a used one is not evicted first.
TEST_F(SieveTableTest, NewEntryCountsAsUsedIfTheOldOneDoes) {
  Reset(size_t{1} << 20, nullptr, /*num_shards=*/1);
  ASSERT_TRUE(Insert("used", "1", 1));
  ASSERT_TRUE(Insert("unused", "1", 1));
  Find("used");
  ASSERT_TRUE(Insert("used", "2", 2));
  ASSERT_TRUE(Insert("unused", "2", 2));
  PassTheHand();
  ASSERT_EQ("2", Find("used", /*mark=*/false));
  ASSERT_EQ("none", Find("unused"));
}

// The bits of `uses` that belong to the table's user survive the hand.
TEST_F(SieveTableTest, HandClearsOnlyItsOwnBit) {
  Reset(size_t{1} << 20, nullptr, /*num_shards=*/1);
  ASSERT_TRUE(Insert("a", "text"));
  SieveTable::Entry* const entry = table_->Find("a");
  ASSERT_EQ(0, entry->uses.load());
  SieveTable::MarkUsed(entry, 4);
  ASSERT_EQ(SieveTable::Entry::kUsed | 4, entry->uses.load());
  PassTheHand();
  ASSERT_EQ("text", Find("a", /*mark=*/false));
  ASSERT_EQ(4, entry->uses.load());
  entry->Unref();
}

TEST_F(SieveTableTest, PolicyKnowsEachEntry) {
  const auto room = std::make_shared<Room>(size_t{1} << 20);
  Reset(kCapacity, room, /*num_shards=*/8,
        SieveTable::LargeEntries::kShareMemory);
  Random rnd(11);
  const auto check = [this] {
    const SieveTable::Stats stats = table_->GetStats();
    ASSERT_EQ(stats.entries, policy_.entries);
    ASSERT_EQ(stats.bytes, policy_.bytes);
  };
  for (uint64_t i = 0; i < 20000; ++i) {
    const int size = rnd.OneIn(50) ? 100000 : 200;
    Insert(KeyOf(rnd.Skewed(12)), std::string(rnd.Uniform(size), 'x'), i / 100);
    if (i % 1000 == 0) {
      check();
    }
  }
  ASSERT_GT(table_->GetStats().evicted, 0);
  table_->SetCapacity(kCapacity / 64);
  check();
  table_->SetCapacity(0);
  ASSERT_EQ(0, policy_.entries);
  ASSERT_EQ(0, policy_.bytes);
}

// Readers of a shard do not wait until all of it is freed.
TEST_F(SieveTableTest, TrimReleasesTheMutexOfAShard) {
  constexpr uint64_t kEntries = 5000;
  Reset(kCapacity, nullptr, /*num_shards=*/1);
  for (uint64_t i = 0; i < kEntries; ++i) {
    ASSERT_TRUE(Insert(KeyOf(i), "text"));
  }
  ASSERT_EQ(kEntries, NumEntries());
  std::atomic<uint64_t> holds{0};
  SyncPoint::GetInstance()->SetCallBack("SieveTable::MakeRoomForLarge:Shard",
                                        [&](void*) { ++holds; });
  SyncPoint::GetInstance()->EnableProcessing();
  table_->LimitCapacity(0);
  EXPECT_EQ(kEntries, NumEntries());
  table_->Trim();
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  EXPECT_EQ(0, NumEntries());
  EXPECT_GE(holds, 5);
}

// A large entry may take the whole capacity; others are evicted for it.
TEST_F(SieveTableTest, LargeEntriesShareMemory) {
  ResetForLarge(kCapacity);
  const std::string small(1000, 's');
  const auto fill = [&] {
    for (uint64_t i = 0; i < 2 * kCapacity / 1000; ++i) {
      ASSERT_TRUE(Insert(KeyOf(i), small));
      Find(KeyOf(i));
    }
  };
  for (uint64_t i = 0; i < 2 * kCapacity / 1000; ++i) {
    ASSERT_TRUE(Insert(KeyOf(i), small));
  }
  ASSERT_EQ(0, table_->GetStats().large);
  ASSERT_TRUE(Insert("half", std::string(kCapacity / 2 - 1000, 'h')));
  ASSERT_EQ(1, table_->GetStats().large);
  ASSERT_LE(table_->GetStats().bytes, kCapacity);
  ASSERT_GT(table_->GetStats().bytes, kCapacity / 10 * 9);
  // Another one of that size takes the place of the first.
  ASSERT_TRUE(Insert("other half", std::string(kCapacity / 2 - 1000, 'h')));
  ASSERT_EQ(1, table_->GetStats().large);
  ASSERT_EQ("none", Find("half"));
  const std::string whole(kCapacity - 1000, 'w');
  ASSERT_TRUE(Insert("whole", whole));
  ASSERT_EQ(1, NumEntries());
  ASSERT_EQ(whole, Find("whole"));
  ASSERT_FALSE(Insert("larger", std::string(kCapacity, 'l')));
  ASSERT_EQ(whole, Find("whole"));
  // A small entry that replaces the large one gives the others their memory.
  ASSERT_TRUE(Insert("whole", small, 2));
  ASSERT_EQ(0, table_->GetStats().large);
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_GT(table_->GetStats().bytes, kCapacity / 10 * 9);
  ASSERT_LE(table_->GetStats().bytes, kCapacity);
  table_->SetCapacity(0);
  ASSERT_EQ(0, NumEntries());
}

// The hand of large entries spares those that are used.
TEST_F(SieveTableTest, UsedLargeEntriesStay) {
  ResetForLarge(kCapacity, /*num_shards=*/1);
  const std::string text(kCapacity / 7, 'l');
  ASSERT_TRUE(Insert("unused", text));
  ASSERT_TRUE(Insert("used", text));
  for (uint64_t i = 0; i < 50; ++i) {
    ASSERT_NE("none", Find("used")) << i;
    ASSERT_TRUE(Insert(KeyOf(i), text));
    ASSERT_NE("none", Find(KeyOf(i), /*mark=*/false)) << i;
    ASSERT_LE(table_->GetStats().bytes, kCapacity / 2);
  }
  ASSERT_EQ("none", Find("unused"));
  ASSERT_EQ(3, table_->GetStats().large);
}

// The entries of a shard can be visited by bits of their hashes, however many
// chains the shard has.
TEST_F(SieveTableTest, LockedShardVisitsEntriesByHash) {
  constexpr uint64_t kMask = 63;
  for (const uint64_t num : {0, 1, 10, 100, 10000}) {
    SCOPED_TRACE(num);
    Reset(kCapacity, nullptr, /*num_shards=*/4);
    std::map<std::pair<size_t, uint64_t>, std::set<std::string>> expected;
    for (uint64_t i = 0; i < num; ++i) {
      ASSERT_TRUE(Insert(KeyOf(i), "x"));
      const uint64_t hash = table_->HashOf(KeyOf(i));
      ASSERT_LT(table_->ShardOf(hash), table_->num_shards());
      expected[{table_->ShardOf(hash), hash & kMask}].insert(KeyOf(i));
    }
    for (size_t index = 0; index < table_->num_shards(); ++index) {
      const SieveTable::LockedShard shard(table_.get(), index);
      for (uint64_t bits = 0; bits <= kMask; ++bits) {
        std::set<std::string> found;
        // Other bits than those of the mask do not count.
        shard.ForEach(bits + 64 * bits, kMask, [&](SieveTable::Entry* entry) {
          ASSERT_TRUE(found.insert(entry->key().ToString()).second);
        });
        ASSERT_EQ((expected[{index, bits}]), found);
      }
    }
  }
}

TEST_F(SieveTableTest, LockedShardFindsAndRemoves) {
  for (const size_t num_shards : {1, 2, 64}) {
    Reset(kCapacity, nullptr, num_shards);
    ASSERT_TRUE(Insert("a", "text of a"));
    ASSERT_TRUE(Insert("b", "text of b"));
    const uint64_t hash = table_->HashOf("a");
    {
      SieveTable::LockedShard shard(table_.get(), table_->ShardOf(hash));
      SieveTable::Entry* const entry = shard.Find("a", hash);
      ASSERT_NE(nullptr, entry);
      ASSERT_EQ(1, entry->refs.load());
      shard.Remove(entry);
      ASSERT_EQ(nullptr, shard.Find("a", hash));
    }
    ASSERT_EQ("none", Find("a"));
    ASSERT_EQ("text of b", Find("b"));
    ASSERT_EQ(1, NumEntries());
    ASSERT_EQ(0, table_->GetStats().evicted);
  }
}

TEST_F(SieveTableTest, ChargesOtherMemoryOfTheUser) {
  const auto room = std::make_shared<Room>(size_t{1} << 20);
  Reset(kCapacity, room);
  ASSERT_FALSE(table_->ChargeOther(size_t{2} << 20));
  ASSERT_EQ(0, room->charged);
  // The block cache is not asked at once.
  const uint64_t updates = room->updates;
  ASSERT_FALSE(table_->ChargeOther(size_t{512} << 10));
  ASSERT_EQ(updates, room->updates);
  for (uint64_t i = 0; i < 2000; ++i) {
    Insert(KeyOf(i), "x");
  }
  table_->SetCapacity(0);
  table_->SetCapacity(kCapacity);
  ASSERT_EQ(0, room->charged);
  ASSERT_TRUE(table_->ChargeOther(size_t{512} << 10));
  ASSERT_EQ(size_t{512} << 10, room->charged);
  for (uint64_t i = 0; i < 20000; ++i) {
    Insert(KeyOf(i), std::string(100, 'x'));
    ASSERT_LE(table_->GetStats().bytes + (size_t{512} << 10), room->charged);
  }
  ASSERT_GT(table_->GetStats().bytes, size_t{256} << 10);
  table_->SetCapacity(0);
  ASSERT_EQ(size_t{512} << 10, room->charged);
  table_.reset();
  ASSERT_EQ(0, room->charged);
}

TEST_F(SieveTableTest, TooLargeEntriesAreRefused) {
  Reset(size_t{1} << 20);
  ASSERT_TRUE(Insert("a", std::string(1900, 'x')));
  ASSERT_FALSE(Insert("b", std::string(2048, 'x')));
  ASSERT_TRUE(table_->Fits<TextEntry>("b", 1900));
  ASSERT_FALSE(table_->Fits<TextEntry>("b", 2048));
  ASSERT_FALSE(Insert(std::string(2048, 'c'), ""));
  // The old entry is still there.
  ASSERT_FALSE(Insert("a", std::string(2048, 'y'), 2));
  ASSERT_EQ(std::string(1900, 'x'), Find("a"));
}

TEST_F(SieveTableTest, LowerCapacityEvictsEntries) {
  auto room = std::make_shared<Room>(size_t{100} << 20);
  Reset(kCapacity, room);
  for (uint64_t i = 0; i < 20000; ++i) {
    ASSERT_TRUE(Insert(KeyOf(i), std::string(100, 'x')));
  }
  const uint64_t before = NumEntries();
  ASSERT_EQ(20000, before);
  ASSERT_GE(room->charged, table_->GetStats().bytes);
  table_->SetCapacity(kCapacity / 8);
  ASSERT_LE(table_->GetStats().bytes, kCapacity / 8);
  ASSERT_GE(table_->GetStats().bytes, kCapacity / 10);
  ASSERT_LE(room->charged, kCapacity / 8 + (size_t{512} << 10));
  ASSERT_EQ(room->charged, table_->GetStats().charged);
  table_->SetCapacity(0);
  ASSERT_EQ(0, NumEntries());
  ASSERT_EQ(0, room->charged);
  ASSERT_FALSE(Insert("a", "x"));
  ASSERT_EQ("none", Find("a"));
  table_->SetCapacity(kCapacity);
  ASSERT_TRUE(Insert("a", "x"));
  ASSERT_EQ("x", Find("a"));
}

TEST_F(SieveTableTest, HeldEntryOutlivesTheTable) {
  Reset(kCapacity);
  ASSERT_TRUE(Insert("a", "text"));
  auto* const entry = static_cast<TextEntry*>(table_->Find("a"));
  ASSERT_NE(nullptr, entry);
  ASSERT_TRUE(Insert("a", "newer", 2));
  table_->SetCapacity(0);
  ASSERT_EQ("text", entry->text());
  table_.reset();
  ASSERT_EQ("text", entry->text());
  ASSERT_EQ("a", entry->key());
  entry->Unref();
}

TEST_F(SieveTableTest, FullCacheMakesTheTableEvict) {
  auto room = std::make_shared<Room>(size_t{2} << 20);
  Reset(kCapacity, room);
  uint64_t kept = 0;
  for (uint64_t i = 0; i < 100000; ++i) {
    kept += Insert(KeyOf(i), std::string(100, 'x'));
    ASSERT_LE(table_->GetStats().bytes, room->room);
  }
  // The table continues with the memory that it has.
  ASSERT_GT(kept, 90000);
  ASSERT_GE(table_->GetStats().bytes, size_t{3} << 19);
  ASSERT_LE(room->charged, room->room);
  // It does not ask for memory at each insertion.
  ASSERT_LT(room->updates, 500);

  room->room = size_t{4} << 20;
  for (uint64_t i = 0; i < 100000; ++i) {
    Insert(KeyOf(i), std::string(100, 'x'), 2);
  }
  ASSERT_GE(table_->GetStats().bytes, size_t{3} << 20);
  ASSERT_LE(table_->GetStats().bytes, room->room);
  table_.reset();
  ASSERT_EQ(0, room->charged);
}

TEST_F(SieveTableTest, NothingIsInsertedWithoutRoom) {
  auto room = std::make_shared<Room>(0);
  Reset(kCapacity, room);
  for (uint64_t i = 0; i < 5000; ++i) {
    ASSERT_FALSE(Insert(KeyOf(i), "x"));
  }
  ASSERT_EQ(0, NumEntries());
  ASSERT_EQ(0, table_->GetStats().bytes);
  ASSERT_LT(room->updates, 30);
  // The block cache has room later, and is asked again.
  room->room = size_t{1} << 20;
  uint64_t kept = 0;
  for (uint64_t i = 0; i < 5000; ++i) {
    kept += Insert(KeyOf(i), "x");
  }
  ASSERT_GT(kept, 3000);
  ASSERT_GE(room->charged, table_->GetStats().bytes);
}

TEST_F(SieveTableTest, ThreadsFindTextsOfTheirKeys) {
  auto room = std::make_shared<Room>(size_t{3} << 19);
  Reset(size_t{2} << 20, room);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random rnd(t + 1);
      while (!is_over) {
        const uint64_t i = rnd.Skewed(14);
        const std::string key = KeyOf(i);
        const std::string text = Find(key);
        if (text != "none") {
          ASSERT_EQ(key, text.substr(0, key.size()));
        }
        Insert(key, key + std::string(rnd.Uniform(300), 'x'), rnd.Next());
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    table_->SetCapacity(i % 5 == 4 ? 0 : size_t{1} << (16 + i % 6));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  is_over = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  table_->SetCapacity(size_t{1} << 18);
  ASSERT_LE(table_->GetStats().bytes, size_t{1} << 18);
  table_->SetCapacity(0);
  ASSERT_EQ(0, table_->GetStats().bytes);
  ASSERT_EQ(0, NumEntries());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
