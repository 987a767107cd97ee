//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/clock_table.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/slice.h"
#include "test_util/strata/cache_reservation_test_util.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// An entry whose payload is a text.
struct TextEntry : public ClockTable::Entry {
  uint64_t version = 0;
  size_t text_size = 0;

  char* text_data() { return reinterpret_cast<char*>(this + 1); }
  Slice text() { return Slice(text_data(), text_size); }
};

bool KeepsNewer(const ClockTable::Entry& old_entry,
                const ClockTable::Entry& new_entry) {
  return static_cast<const TextEntry&>(old_entry).version >=
         static_cast<const TextEntry&>(new_entry).version;
}

constexpr size_t kCapacity = size_t{8} << 20;

std::string KeyOf(uint64_t i) { return "key" + std::to_string(i); }

}  // namespace

class ClockTableTest : public testing::Test {
 protected:
  void Reset(size_t capacity, std::shared_ptr<Room> room = nullptr) {
    table_ = std::make_unique<ClockTable>(capacity, /*max_share=*/512,
                                          &KeepsNewer, room);
  }

  bool Insert(const std::string& key, const std::string& text,
              uint64_t version = 1) {
    if (!table_->Fits<TextEntry>(key, text.size())) {
      return false;
    }
    auto* const entry = table_->New<TextEntry>(key, text.size());
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
      ClockTable::MarkUsed(entry);
    }
    const std::string text = entry->text().ToString();
    entry->Unref();
    return text;
  }
  uint64_t NumEntries() { return table_->GetStats().entries; }

  std::unique_ptr<ClockTable> table_;
};

TEST_F(ClockTableTest, FindsByWholeKey) {
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

TEST_F(ClockTableTest, NewerEntryReplacesAnOlderOne) {
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

TEST_F(ClockTableTest, GrowsAndCounts) {
  Reset(kCapacity);
  const uint64_t kNum = 20000;
  for (uint64_t i = 0; i < kNum; ++i) {
    ASSERT_TRUE(Insert(KeyOf(i), std::to_string(i)));
  }
  const ClockTable::Stats stats = table_->GetStats();
  ASSERT_EQ(kNum, stats.entries);
  ASSERT_EQ(0, stats.evicted);
  ASSERT_GE(stats.bytes, kNum * sizeof(TextEntry));
  ASSERT_LE(stats.bytes, kCapacity);
  for (uint64_t i = 0; i < kNum; ++i) {
    ASSERT_EQ(std::to_string(i), Find(KeyOf(i)));
  }
  ASSERT_EQ("none", Find(KeyOf(kNum)));
}

TEST_F(ClockTableTest, UsedEntriesStay) {
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
  const ClockTable::Stats stats = table_->GetStats();
  ASSERT_LE(stats.bytes, size_t{1} << 20);
  ASSERT_GE(stats.bytes, size_t{800} << 10);
  ASSERT_EQ(50000 - stats.entries, stats.evicted);
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_NE("none", Find(KeyOf(i)));
    ASSERT_EQ("none", Find(KeyOf(100 + i)));
  }
}

TEST_F(ClockTableTest, TooLargeEntriesAreRefused) {
  Reset(size_t{1} << 20);
  ASSERT_TRUE(Insert("a", std::string(1900, 'x')));
  ASSERT_FALSE(Insert("b", std::string(2048, 'x')));
  ASSERT_FALSE(Insert(std::string(2048, 'c'), ""));
  // The old entry is still there.
  ASSERT_FALSE(Insert("a", std::string(2048, 'y'), 2));
  ASSERT_EQ(std::string(1900, 'x'), Find("a"));
}

TEST_F(ClockTableTest, LowerCapacityEvictsEntries) {
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

TEST_F(ClockTableTest, HeldEntryOutlivesTheTable) {
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

TEST_F(ClockTableTest, FullCacheMakesTheTableEvict) {
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

TEST_F(ClockTableTest, NothingIsInsertedWithoutRoom) {
  auto room = std::make_shared<Room>(0);
  Reset(kCapacity, room);
  for (uint64_t i = 0; i < 5000; ++i) {
    ASSERT_FALSE(Insert(KeyOf(i), "x"));
  }
  ASSERT_EQ(0, NumEntries());
  ASSERT_EQ(0, table_->GetStats().bytes);
}

TEST_F(ClockTableTest, ThreadsFindTextsOfTheirKeys) {
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
