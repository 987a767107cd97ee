//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/merged_value/merged_value_cache.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/slice.h"
#include "test_util/strata/cache_reservation_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/testharness.h"
#include "util/defer.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Ref = MergedValueCache::Ref;
using Result = MergedValueCache::Result;

std::string KeyOf(int i) { return "key" + std::to_string(i); }
std::string ValueOf(int i, SequenceNumber seq) {
  return KeyOf(i) + "@" + std::to_string(seq) + std::string(100, 'v');
}

constexpr size_t kCapacity = size_t{8} << 20;

}  // namespace

class MergedValueCacheTest : public testing::Test {
 public:
  void Flush(const std::string& key, SequenceNumber seq) {
    MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/false);
    Ref known;
    EXPECT_FALSE(flush.OnKey(key, seq, &known));
    flush.Finish(/*has_shown_all=*/true);
  }
  void FlushRangeDeletion(SequenceNumber seq) {
    MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
    flush.OnRangeDeletion(seq);
    flush.Finish(/*has_shown_all=*/true);
  }
  Result Look(const std::string& key, SequenceNumber read_seq,
              uint64_t generation = 0) {
    Ref ref;
    const Result result = cache_.Lookup(key, read_seq, generation, &ref);
    EXPECT_EQ(ref.found(), result == Result::kHit);
    return result;
  }

  MergedValueCache cache_{kCapacity, nullptr};
};

TEST_F(MergedValueCacheTest, YieldsTheInsertedValue) {
  EXPECT_EQ(Look("a", 100), Result::kMiss);
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 0, "value of a"));
  Ref ref;
  ASSERT_EQ(cache_.Lookup("a", 100, 0, &ref), Result::kHit);
  EXPECT_EQ(ref.value(), "value of a");
  EXPECT_EQ(ref.seq(), 10);
  EXPECT_EQ(ref.frontier(), 20);
  EXPECT_EQ(Look("b", 100), Result::kMiss);
  EXPECT_EQ(Look("", 100), Result::kMiss);
  ASSERT_TRUE(cache_.Insert("", 10, 20, 0, ""));
  ASSERT_EQ(cache_.Lookup("", 100, 0, &ref), Result::kHit);
  EXPECT_EQ(ref.value(), "");
}

TEST_F(MergedValueCacheTest, ReadersBelowTheValueDoNotUseIt) {
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 0, "v"));
  EXPECT_EQ(Look("a", 9), Result::kStale);
  EXPECT_EQ(Look("a", 10), Result::kHit);
}

TEST_F(MergedValueCacheTest, ValuesOfOtherGenerationsAreNotUsed) {
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 5, "v"));
  EXPECT_EQ(Look("a", 100, 4), Result::kStale);
  EXPECT_EQ(Look("a", 100, 5), Result::kHit);
  EXPECT_EQ(Look("a", 100, 6), Result::kStale);
  // The reader of the newer generation has removed the entry.
  EXPECT_EQ(Look("a", 100, 5), Result::kMiss);
}

TEST_F(MergedValueCacheTest, FlushedKeyInvalidatesOlderFrontiers) {
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 0, "v"));
  Flush("a", 20);
  EXPECT_EQ(Look("a", 100), Result::kHit);
  Flush("a", 21);
  EXPECT_EQ(Look("a", 100), Result::kStale);
  EXPECT_EQ(Look("a", 100), Result::kMiss);
  // A slow reader inserts what it saw before the flush.
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 0, "v"));
  EXPECT_EQ(Look("a", 100), Result::kStale);
  // A reader that has seen what was flushed inserts its value.
  ASSERT_TRUE(cache_.Insert("a", 10, 21, 0, "v"));
  EXPECT_EQ(Look("a", 100), Result::kHit);
  ASSERT_TRUE(cache_.Insert("a", 30, 25, 0, "w"));
  Flush("a", 30);
  EXPECT_EQ(Look("a", 100), Result::kHit);
  // A flush with a smaller number does not lower the number of the stripe.
  Flush("a", 5);
  ASSERT_TRUE(cache_.Insert("b", 40, 40, 0, "w"));
  Flush("a", 31);
  EXPECT_EQ(Look("a", 100), Result::kStale);
}

TEST_F(MergedValueCacheTest, FlushedKeyInvalidatesOnlyItsStripe) {
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 0, "v"));
  int in_stripe = -1;
  for (int i = 0; i < 100; ++i) {
    if (cache_.TEST_StripeOf(KeyOf(i)) != cache_.TEST_StripeOf("a")) {
      Flush(KeyOf(i), 50);
    }
  }
  EXPECT_EQ(Look("a", 100), Result::kHit);
  for (int i = 100; in_stripe < 0; ++i) {
    if (cache_.TEST_StripeOf(KeyOf(i)) == cache_.TEST_StripeOf("a")) {
      in_stripe = i;
    }
  }
  Flush(KeyOf(in_stripe), 50);
  EXPECT_EQ(Look("a", 100), Result::kStale);
}

TEST_F(MergedValueCacheTest, FlushedRangeDeletionInvalidatesAllOlderFrontiers) {
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 0, "v"));
  ASSERT_TRUE(cache_.Insert("b", 10, 30, 0, "v"));
  FlushRangeDeletion(20);
  EXPECT_EQ(Look("a", 100), Result::kHit);
  FlushRangeDeletion(25);
  EXPECT_EQ(Look("a", 100), Result::kStale);
  EXPECT_EQ(Look("b", 100), Result::kHit);
}

TEST_F(MergedValueCacheTest, ExtendedFrontierNeverShrinks) {
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 0, "v"));
  Ref ref;
  ASSERT_EQ(cache_.Lookup("a", 100, 0, &ref), Result::kHit);
  ref.ExtendFrontier(50);
  EXPECT_EQ(ref.frontier(), 50);
  ref.ExtendFrontier(40);
  EXPECT_EQ(ref.frontier(), 50);
  Flush("a", 50);
  EXPECT_EQ(Look("a", 100), Result::kHit);
}

TEST_F(MergedValueCacheTest, NewerGenerationThenLargerNumberStays) {
  Ref ref;
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 1, "v"));
  EXPECT_FALSE(cache_.Insert("a", 9, 90, 1, "older"));
  EXPECT_FALSE(cache_.Insert("a", 50, 90, 0, "of an older generation"));
  ASSERT_EQ(cache_.Lookup("a", 100, 1, &ref), Result::kHit);
  EXPECT_EQ(ref.value(), "v");
  EXPECT_EQ(ref.frontier(), 20);
  // Inserting the same value again with a larger frontier only raises the
  // frontier.
  EXPECT_FALSE(cache_.Insert("a", 10, 30, 1, "v"));
  EXPECT_EQ(ref.frontier(), 30);
  EXPECT_FALSE(cache_.Insert("a", 10, 25, 1, "v"));
  EXPECT_EQ(ref.frontier(), 30);
  ASSERT_TRUE(cache_.Insert("a", 11, 5, 1, "newer"));
  EXPECT_EQ(ref.value(), "v");  // the reference keeps the old value
  ASSERT_EQ(cache_.Lookup("a", 100, 1, &ref), Result::kHit);
  EXPECT_EQ(ref.value(), "newer");
  ASSERT_TRUE(cache_.Insert("a", 2, 5, 2, "of a newer generation"));
  ASSERT_EQ(cache_.Lookup("a", 100, 2, &ref), Result::kHit);
  EXPECT_EQ(ref.value(), "of a newer generation");
  EXPECT_EQ(cache_.GetStats().entries, 1);
}

TEST_F(MergedValueCacheTest, NeverExceedsItsCapacity) {
  constexpr int kKeys = 20000;
  const std::string value(1000, 'v');
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(cache_.Insert(KeyOf(i), 10, 10, 0, value));
    // This entry is always in use.
    ASSERT_TRUE(i == 0 || Look(KeyOf(0), 100) == Result::kHit) << i;
    ASSERT_LE(cache_.GetStats().bytes, kCapacity);
  }
  MergedValueCache::Stats stats = cache_.GetStats();
  EXPECT_EQ(stats.entries + stats.evicted, kKeys);
  EXPECT_GT(stats.bytes, kCapacity / 10 * 9);
  EXPECT_GT(stats.entries, kCapacity / 1300);
  uint64_t found = 0;
  for (int i = 0; i < kKeys; ++i) {
    found += Look(KeyOf(i), 100) == Result::kHit ? 1 : 0;
  }
  EXPECT_EQ(found, stats.entries);
  cache_.SetCapacity(kCapacity / 4);
  stats = cache_.GetStats();
  EXPECT_LE(stats.bytes, kCapacity / 4);
  EXPECT_GT(stats.bytes, kCapacity / 4 / 10 * 8);
  cache_.SetCapacity(0);
  EXPECT_EQ(cache_.GetStats().entries, 0);
  EXPECT_EQ(cache_.GetStats().bytes, 0);
  EXPECT_FALSE(cache_.Insert("a", 10, 10, 0, "v"));
  cache_.SetCapacity(kCapacity);
  EXPECT_TRUE(cache_.Insert("a", 10, 10, 0, "v"));
}

// Many keys that are read once do not displace those that are read again, even
// if some time passes between their reads.
TEST_F(MergedValueCacheTest, KeysReadOnceAreEvictedFirst) {
  constexpr int kOften = static_cast<int>(kCapacity / 2 / 1100);
  constexpr int kOnce = 20 * kOften;
  const std::string value(1000, 'v');
  Random rnd(7);
  uint64_t misses = 0;
  for (int i = 0; i < kOnce; ++i) {
    const int often = static_cast<int>(rnd.Uniform(kOften));
    if (Look(KeyOf(often), 100) != Result::kHit) {
      misses += i > kOnce / 2 ? 1 : 0;
      ASSERT_TRUE(cache_.Insert(KeyOf(often), 10, 10, 0, value));
    }
    ASSERT_TRUE(cache_.Insert(KeyOf(kOften + i), 10, 10, 0, value));
  }
  EXPECT_LT(misses, kOnce / 2 / 20);
}

// A value may take the whole capacity; other values are evicted for it.
TEST_F(MergedValueCacheTest, LargeValueMayTakeTheWholeCapacity) {
  const std::string small(1000, 'v');
  const int kSmall = 2 * kCapacity / 1000;
  const auto fill = [&] {
    for (int i = 0; i < kSmall; ++i) {
      ASSERT_TRUE(cache_.Insert(KeyOf(i), 10, 10, 0, small));
    }
  };
  fill();
  EXPECT_EQ(0, cache_.GetStats().large);
  for (const size_t part : {16, 4, 2}) {
    const std::string value(kCapacity / part, 'l');
    const std::string key = "large" + std::to_string(part);
    ASSERT_TRUE(cache_.Insert(key, 10, 10, 0, value));
    Ref ref;
    ASSERT_EQ(cache_.Lookup(key, 100, 0, &ref), Result::kHit);
    EXPECT_TRUE(ref.value() == value);
    EXPECT_LE(cache_.GetStats().bytes, kCapacity);
    // Small values use the rest.
    fill();
    EXPECT_EQ(cache_.Lookup(key, 100, 0, &ref), Result::kHit);
    EXPECT_LE(cache_.GetStats().bytes, kCapacity);
    EXPECT_GE(cache_.GetStats().entries, kCapacity / 3 / 1200);
  }
  // All large values together may use half of the capacity, so only one of
  // these is left.
  EXPECT_EQ(1, cache_.GetStats().large);
  const std::string whole(kCapacity - 1000, 'w');
  ASSERT_TRUE(cache_.Insert("whole", 10, 10, 0, whole));
  EXPECT_EQ(Look("whole", 100), Result::kHit);
  EXPECT_EQ(Look("large2", 100), Result::kMiss);
  EXPECT_LE(cache_.GetStats().bytes, kCapacity);
  // A newer large value replaces it, and so does a small value.
  ASSERT_TRUE(cache_.Insert("whole", 11, 11, 0, whole));
  EXPECT_EQ(1, cache_.GetStats().large);
  EXPECT_LE(cache_.GetStats().bytes, kCapacity);
  ASSERT_TRUE(cache_.Insert("whole", 12, 12, 0, small));
  EXPECT_EQ(Look("whole", 100), Result::kHit);
  EXPECT_EQ(0, cache_.GetStats().large);
  fill();
  EXPECT_GE(cache_.GetStats().bytes, kCapacity / 4 * 3);

  // A value that is too large is counted, and a warning is due less and less
  // often.
  const std::string too_large(kCapacity, 't');
  int told = 0;
  for (int i = 0; i < 10; ++i) {
    ASSERT_FALSE(cache_.Insert("too large", 10, 10, 0, too_large));
    told += cache_.NoteRefused("too large", too_large) ? 1 : 0;
  }
  EXPECT_EQ(10, cache_.GetStats().too_large);
  EXPECT_EQ(4, told);
  EXPECT_FALSE(cache_.NoteRefused("small", small));
  cache_.SetCapacity(0);
  EXPECT_EQ(0, cache_.GetStats().entries);
}

// Large values that are used are not evicted.
TEST_F(MergedValueCacheTest, UsedLargeValuesStay) {
  const std::string value(kCapacity / 20, 'l');
  ASSERT_TRUE(cache_.Insert("used", 10, 10, 0, value));
  int misses = 0;
  for (int i = 0; i < 200; ++i) {
    misses += Look("used", 100) != Result::kHit ? 1 : 0;
    ASSERT_TRUE(cache_.Insert(KeyOf(i), 10, 10, 0, value));
    ASSERT_EQ(Look(KeyOf(i), 100), Result::kHit);
    ASSERT_LE(cache_.GetStats().bytes, kCapacity / 2 + value.size());
  }
  EXPECT_EQ(0, misses);
  EXPECT_GE(cache_.GetStats().large, 8);
}

TEST_F(MergedValueCacheTest, ValueOutlivesTheCache) {
  Ref ref;
  {
    MergedValueCache cache(kCapacity, nullptr);
    ASSERT_TRUE(cache.Insert("a", 10, 10, 0, "value of a"));
    ASSERT_EQ(cache.Lookup("a", 100, 0, &ref), Result::kHit);
  }
  EXPECT_EQ(ref.value(), "value of a");
  ref.Reset();
  EXPECT_FALSE(ref.found());
}

TEST_F(MergedValueCacheTest, ChargesTheBlockCacheInSteps) {
  const auto room = std::make_shared<Room>(size_t{100} << 20);
  {
    MergedValueCache cache(kCapacity, room);
    EXPECT_EQ(room->charged, 0);
    const std::string value(1000, 'v');
    ASSERT_TRUE(cache.Insert(KeyOf(0), 10, 10, 0, value));
    const size_t empty = room->charged;  // charge of the stripes
    EXPECT_GT(empty, value.size());
    for (int i = 1; i < 20000; ++i) {
      ASSERT_TRUE(cache.Insert(KeyOf(i), 10, 10, 0, value));
      ASSERT_GE(room->charged, cache.GetStats().bytes);
    }
    EXPECT_LE(room->charged, empty + kCapacity + (size_t{512} << 10));
    EXPECT_EQ(room->charged, cache.GetStats().charged);
    // The charge changes in steps and not with every entry.
    EXPECT_LT(room->updates, 50);
    cache.SetCapacity(0);
    EXPECT_LE(room->charged, empty + (size_t{256} << 10));
  }
  EXPECT_EQ(room->charged, 0);
}

TEST_F(MergedValueCacheTest, InsertsNothingWithoutRoom) {
  const auto room = std::make_shared<Room>(0);
  MergedValueCache cache(kCapacity, room);
  const std::string value(1000, 'v');
  for (int i = 0; i < 5000; ++i) {
    ASSERT_FALSE(cache.Insert(KeyOf(i), 10, 10, 0, value));
  }
  EXPECT_EQ(cache.GetStats().entries, 0);
  EXPECT_EQ(room->charged, 0);
  // The block cache is not asked at every insertion.
  EXPECT_LT(room->updates, 30);
  // The stripes could not be charged, so they do not exist, and flushes work
  // without them.
  EXPECT_FALSE(cache.TEST_HasStripes());
  cache.SetCapacity(kCapacity / 2);
  EXPECT_EQ(room->charged, 0);
  room->room = size_t{100} << 20;
  int inserted = 0;
  for (int i = 0; i < 5000; ++i) {
    inserted += cache.Insert(KeyOf(i), 10, 10, 0, value) ? 1 : 0;
  }
  EXPECT_GT(inserted, 3000);
  EXPECT_TRUE(cache.TEST_HasStripes());
  EXPECT_GE(room->charged, cache.GetStats().bytes);
}

TEST_F(MergedValueCacheTest, ReplacesValuesWithLittleRoom) {
  const auto room = std::make_shared<Room>(size_t{2} << 20);
  MergedValueCache cache(kCapacity, room);
  const std::string value(1000, 'v');
  int found = 0;
  for (int i = 0; i < 20000; ++i) {
    cache.Insert(KeyOf(i), 10, 10, 0, value);
    Ref ref;
    found += cache.Lookup(KeyOf(i), 100, 0, &ref) == Result::kHit ? 1 : 0;
    ref.Reset();
    ASSERT_LE(cache.GetStats().bytes, room->charged);
  }
  EXPECT_LE(room->charged, room->room);
  // New values replace old ones within the room that there is.
  EXPECT_GT(found, 15000);
  EXPECT_GT(cache.GetStats().evicted, 10000);
  EXPECT_GT(cache.GetStats().bytes, size_t{1} << 20);
  EXPECT_LT(room->updates, 100);
  // The block cache has more room later.
  room->room = size_t{100} << 20;
  for (int i = 20000; i < 40000; ++i) {
    cache.Insert(KeyOf(i), 10, 10, 0, value);
  }
  EXPECT_GT(cache.GetStats().bytes, kCapacity / 10 * 9);
  EXPECT_LE(cache.GetStats().bytes, kCapacity);
}

// A flush that began before the first insertion has no stripes, so it
// invalidates all values that lack what it has flushed.
TEST_F(MergedValueCacheTest, FlushBesideTheFirstInsertionsInvalidatesThem) {
  Flush("a", 10);
  EXPECT_FALSE(cache_.TEST_HasStripes());
  EXPECT_EQ(Look("a", 100), Result::kMiss);
  for (const bool holds_oldest : {false, true}) {
    MergedValueCache cache(kCapacity, nullptr);
    const auto look = [&cache](const std::string& key) {
      Ref ref;
      return cache.Lookup(key, 100, 0, &ref);
    };
    {
      MergedValueCache::Flush flush(&cache, holds_oldest);
      Ref known;
      ASSERT_FALSE(flush.OnKey("a", 15, &known));
      // The first three values come from readers that have not seen the flushed
      // entries; the last one comes from a reader that has.
      ASSERT_TRUE(cache.Insert("a", 5, 8, 0, "v"));
      ASSERT_TRUE(cache.Insert("b", 5, 8, 0, "v"));
      ASSERT_TRUE(cache.Insert("c", 5, 8, 0, "v"));
      ASSERT_TRUE(cache.Insert("d", 5, 20, 0, "v"));
      ASSERT_FALSE(flush.OnKey("b", 20, &known));
      flush.Finish(/*has_shown_all=*/true);
    }
    EXPECT_EQ(look("a"), Result::kStale);
    EXPECT_EQ(look("b"), Result::kStale);
    // The flush cannot know that it has no entry of "c".
    EXPECT_EQ(look("c"), Result::kStale);
    EXPECT_EQ(look("d"), Result::kHit);
    // The next flush has stripes and invalidates only its own keys.
    MergedValueCache::Flush flush(&cache, /*holds_oldest=*/true);
    Ref known;
    ASSERT_FALSE(flush.OnKey("a", 30, &known));
    flush.Finish(/*has_shown_all=*/true);
    EXPECT_EQ(look("d"), Result::kHit);
    ASSERT_TRUE(cache.Insert("a", 29, 29, 0, "v"));
    EXPECT_EQ(look("a"), Result::kStale);
  }
}

// Lookups after random insertions and flushes agree with a model of the rules.
TEST_F(MergedValueCacheTest, RandomHistoryAgreesWithTheRules) {
  struct Inserted {
    SequenceNumber seq;
    SequenceNumber frontier;
    uint64_t generation;
  };
  Random rnd(301);
  constexpr int kKeys = 30;
  std::map<int, Inserted> model;
  std::map<size_t, SequenceNumber> stripes;
  SequenceNumber ranges = 0;
  uint64_t hits = 0;
  for (int step = 0; step < 200000; ++step) {
    const int key = static_cast<int>(rnd.Uniform(kKeys));
    const SequenceNumber now = 1 + static_cast<SequenceNumber>(step) / 20;
    const uint64_t generation = static_cast<uint64_t>(step) / 20000;
    const auto near = [&](SequenceNumber distance) {
      const SequenceNumber back = rnd.Uniform(static_cast<int>(distance));
      return now > back ? now - back : 1;
    };
    switch (rnd.Uniform(8)) {
      case 0:
      case 1:
      case 2: {
        const Inserted entry{
            near(50), near(30),
            generation - std::min<uint64_t>(generation, rnd.Uniform(2))};
        const auto old = model.find(key);
        const bool expected = old == model.end() ||
                              entry.generation > old->second.generation ||
                              (entry.generation == old->second.generation &&
                               entry.seq > old->second.seq);
        ASSERT_EQ(cache_.Insert(KeyOf(key), entry.seq, entry.frontier,
                                entry.generation, ValueOf(key, entry.seq)),
                  expected);
        if (expected) {
          model[key] = entry;
        } else if (entry.generation == old->second.generation &&
                   entry.seq == old->second.seq) {
          old->second.frontier = std::max(old->second.frontier, entry.frontier);
        }
        break;
      }
      case 3: {
        if (rnd.OneIn(10)) {
          const bool has_stripes = cache_.TEST_HasStripes();
          MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/false);
          Ref known;
          for (int i = 0; i < 3; ++i) {
            const int other = static_cast<int>(rnd.Uniform(kKeys));
            const SequenceNumber seq = near(100);
            ASSERT_FALSE(flush.OnKey(KeyOf(other), seq, &known));
            SequenceNumber* const stripe =
                &stripes[cache_.TEST_StripeOf(KeyOf(other))];
            *stripe = std::max(*stripe, seq);
            if (!has_stripes) {
              ranges = std::max(ranges, seq);
            }
          }
          if (rnd.OneIn(20)) {
            const SequenceNumber seq = near(100);
            flush.OnRangeDeletion(seq);
            ranges = std::max(ranges, seq);
          }
          flush.Finish(/*has_shown_all=*/true);
        }
        break;
      }
      default: {
        const SequenceNumber read_seq = near(60);
        const uint64_t of =
            generation - std::min<uint64_t>(generation, rnd.Uniform(2));
        Ref ref;
        const Result result = cache_.Lookup(KeyOf(key), read_seq, of, &ref);
        const auto found = model.find(key);
        if (found == model.end()) {
          ASSERT_EQ(result, Result::kMiss);
          break;
        }
        const Inserted& entry = found->second;
        const SequenceNumber flushed =
            std::max(ranges, stripes[cache_.TEST_StripeOf(KeyOf(key))]);
        const bool is_dead = std::max(entry.seq, entry.frontier) < flushed ||
                             entry.generation < of;
        const bool is_usable =
            !is_dead && entry.seq <= read_seq && entry.generation == of;
        ASSERT_EQ(result, is_usable ? Result::kHit : Result::kStale);
        if (is_usable) {
          ++hits;
          ASSERT_EQ(ref.value(), ValueOf(key, entry.seq));
          if (rnd.OneIn(4)) {
            const SequenceNumber frontier = near(10);
            ref.ExtendFrontier(frontier);
            found->second.frontier = std::max(entry.frontier, frontier);
          }
        } else if (is_dead) {
          model.erase(found);
        }
      }
    }
    ASSERT_EQ(cache_.GetStats().entries, model.size());
  }
  EXPECT_GT(hits, 5000);
}

// A flush replaces the known value of a key by one that includes the flushed
// operands.
TEST_F(MergedValueCacheTest, FlushCarriesAValueOver) {
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 3, "v"));
  MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
  Ref known;
  EXPECT_FALSE(flush.OnKey("unknown", 25, &known));
  ASSERT_TRUE(flush.OnKey("a", 30, &known));
  EXPECT_EQ(known.seq(), 10);
  EXPECT_EQ(known.value(), "v");
  // Readers can still use the old value.
  EXPECT_EQ(Look("a", 100, 3), Result::kHit);
  ASSERT_TRUE(flush.Carry(known, 30, "w"));
  EXPECT_EQ(Look("a", 29, 3), Result::kStale);
  EXPECT_EQ(Look("a", 30, 3), Result::kHit);
  EXPECT_FALSE(flush.OnKey("b", 40, &known));
  flush.Finish(/*has_shown_all=*/true);
  Ref ref;
  ASSERT_EQ(cache_.Lookup("a", 100, 3, &ref), Result::kHit);
  EXPECT_EQ(ref.value(), "w");
  EXPECT_EQ(ref.seq(), 30);
  EXPECT_EQ(cache_.GetStats().entries, 1);
  EXPECT_EQ(cache_.GetStats().carried, 1);
  // The frontier was not extended beyond 40.
  Flush("a", 41);
  EXPECT_EQ(Look("a", 100, 3), Result::kStale);
}

// A flush without range deletions that holds the oldest memtable extends the
// frontiers of keys that it does not have, even if it has other keys of their
// stripe.
TEST_F(MergedValueCacheTest, FlushExtendsFrontiersOfOtherKeysOfTheStripe) {
  std::vector<std::string> keys;
  for (int i = 0; keys.size() < 3; ++i) {
    if (keys.empty() ||
        cache_.TEST_StripeOf(KeyOf(i)) == cache_.TEST_StripeOf(keys.front())) {
      keys.push_back(KeyOf(i));
    }
  }
  for (const bool holds_oldest : {true, false}) {
    for (const bool has_ranges : {false, true}) {
      const SequenceNumber base =
          1000 * (holds_oldest ? 1 : 2) + (has_ranges ? 500 : 0);
      ASSERT_TRUE(cache_.Insert(keys[0], base + 1, base + 1, 0, "v"));
      ASSERT_TRUE(cache_.Insert(keys[1], base + 2, base + 3, 0, "v"));
      ASSERT_TRUE(cache_.Insert(keys[2], base + 50, base + 3, 0, "v"));
      MergedValueCache::Flush flush(&cache_, holds_oldest);
      if (has_ranges) {
        flush.OnRangeDeletion(base + 1);
      }
      Ref known;
      EXPECT_EQ(flush.OnKey(keys[1], base + 10, &known),
                holds_oldest && !has_ranges);
      // The value already includes all flushed entries of this key.
      EXPECT_FALSE(flush.OnKey(keys[2], base + 20, &known));
      flush.Finish(/*has_shown_all=*/true);
      EXPECT_EQ(Look(keys[0], base + 100),
                holds_oldest && !has_ranges ? Result::kHit : Result::kStale);
      EXPECT_EQ(Look(keys[1], base + 100), Result::kStale);
      EXPECT_EQ(Look(keys[2], base + 100), Result::kHit);
      if (holds_oldest && !has_ranges) {
        Ref ref;
        ASSERT_EQ(cache_.Lookup(keys[0], base + 100, 0, &ref), Result::kHit);
        EXPECT_EQ(ref.frontier(), base + 20);
      }
    }
  }
}

// A flush extends no frontier of a value that an earlier flush has made
// outdated.
TEST_F(MergedValueCacheTest, OutdatedFrontiersAreNotExtended) {
  const std::string a = KeyOf(0);
  std::string b;
  for (int i = 1; b.empty(); ++i) {
    if (cache_.TEST_StripeOf(KeyOf(i)) == cache_.TEST_StripeOf(a)) {
      b = KeyOf(i);
    }
  }
  for (const bool holds_oldest : {true, false}) {
    SCOPED_TRACE(holds_oldest);
    const SequenceNumber base = holds_oldest ? 1000 : 2000;
    ASSERT_TRUE(cache_.Insert(a, base + 10, base + 10, 0, "v"));
    {
      MergedValueCache::Flush flush(&cache_, holds_oldest);
      Ref known;
      EXPECT_EQ(flush.OnKey(a, base + 20, &known), holds_oldest);
      flush.Finish(/*has_shown_all=*/true);
    }
    MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
    Ref known;
    EXPECT_FALSE(flush.OnKey(b, base + 30, &known));
    flush.Finish(/*has_shown_all=*/true);
    EXPECT_EQ(Look(a, base + 100), Result::kStale);
  }
}

#ifndef NDEBUG
// A flush that begins while a thread inserts a value waits for it, so that it
// knows the value when it comes to its key.
TEST_F(MergedValueCacheTest, FlushWaitsForInsertionsWhenItBegins) {
  ASSERT_TRUE(cache_.Insert("makes the stripes", 1, 1, 0, "v"));
  for (int round = 0; round < 20; ++round) {
    const std::string key = KeyOf(round);
    StoppableThreads flusher;
    std::atomic<bool> begins{false};
    std::atomic<bool> has_passed_key{false};
    EnableCallBackOnce("MergedValueCache::Admits:Numbered", [&](void*) {
      flusher.Start([&] {
        begins = true;
        MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
        Ref known;
        flush.OnKey(key, 30, &known);
        has_passed_key = true;
        flush.Finish(/*has_shown_all=*/true);
      });
      EXPECT_TRUE(WaitUntil([&] { return begins.load(); }));
      // The flush has many chances to go on. It waits for the insertion.
      for (int i = 0; i < 1000 && !has_passed_key; ++i) {
        std::this_thread::yield();
      }
    });
    ASSERT_TRUE(cache_.Insert(key, 10, 20, 0, "v"));
    flusher.Stop();
    DisableCallBacks();
    EXPECT_EQ(Look(key, 100), Result::kStale);
  }
}
#endif  // NDEBUG

// A value that is inserted during a flush and does not include what the flush
// writes is not used afterwards.
TEST_F(MergedValueCacheTest, ValueInsertedDuringAFlushIsChecked) {
  MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
  Ref known;
  EXPECT_FALSE(flush.OnKey("a", 30, &known));
  // The first value comes from a reader of an old snapshot, the second from a
  // reader that has seen all entries.
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 0, "v"));
  ASSERT_TRUE(cache_.Insert("b", 10, 30, 0, "v"));
  EXPECT_FALSE(flush.OnKey("a", 30, &known));
  EXPECT_FALSE(flush.OnKey("b", 30, &known));
  flush.Finish(/*has_shown_all=*/true);
  EXPECT_EQ(Look("a", 100), Result::kStale);
  EXPECT_EQ(Look("b", 100), Result::kHit);
}

TEST_F(MergedValueCacheTest, OutdatedReplacedOrLargeValuesAreNotCarriedOver) {
  // A flush of newer entries came first.
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 0, "v"));
  Flush("a", 25);
  Ref known;
  {
    MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
    EXPECT_FALSE(flush.OnKey("a", 30, &known));
    flush.Finish(/*has_shown_all=*/true);
    EXPECT_EQ(Look("a", 100), Result::kStale);
  }
  // A reader has inserted a newer value meanwhile.
  ASSERT_TRUE(cache_.Insert("a", 30, 30, 0, "v"));
  {
    MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
    ASSERT_TRUE(flush.OnKey("a", 40, &known));
    ASSERT_TRUE(cache_.Insert("a", 41, 41, 0, "newer"));
    EXPECT_FALSE(flush.Carry(known, 40, "w"));
    flush.Finish(/*has_shown_all=*/true);
    Ref ref;
    ASSERT_EQ(cache_.Lookup("a", 100, 0, &ref), Result::kHit);
    EXPECT_EQ(ref.value(), "newer");
  }
  // The value was evicted meanwhile.
  {
    MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
    ASSERT_TRUE(flush.OnKey("a", 50, &known));
    cache_.SetCapacity(0);
    cache_.SetCapacity(kCapacity);
    EXPECT_FALSE(flush.Carry(known, 50, "w"));
    flush.Finish(/*has_shown_all=*/true);
    EXPECT_EQ(Look("a", 100), Result::kMiss);
  }
  // The new value is too large.
  ASSERT_TRUE(cache_.Insert("a", 60, 60, 0, "v"));
  {
    MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
    ASSERT_TRUE(flush.OnKey("a", 70, &known));
    EXPECT_FALSE(flush.Carry(known, 70, std::string(kCapacity, 'w')));
    flush.Finish(/*has_shown_all=*/true);
    EXPECT_EQ(Look("a", 100), Result::kStale);
  }
  EXPECT_EQ(cache_.GetStats().carried, 0);
}

// A flush that was not passed all entries only knows about the keys that it was
// passed.
TEST_F(MergedValueCacheTest, FlushOfUnknownExtentKeepsOnlyItsKeys) {
  const std::string a = KeyOf(0);
  std::string b;
  for (int i = 1; b.empty(); ++i) {
    if (cache_.TEST_StripeOf(KeyOf(i)) == cache_.TEST_StripeOf(a)) {
      b = KeyOf(i);
    }
  }
  ASSERT_TRUE(cache_.Insert(a, 10, 20, 0, "v"));
  ASSERT_TRUE(cache_.Insert(b, 10, 20, 0, "v"));
  MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
  Ref known;
  ASSERT_TRUE(flush.OnKey(a, 30, &known));
  ASSERT_TRUE(flush.Carry(known, 30, "w"));
  flush.Finish(/*has_shown_all=*/false);
  EXPECT_EQ(Look(a, 100), Result::kHit);
  EXPECT_EQ(Look(b, 100), Result::kStale);
}

// A value that is not read is carried over by a limited number of flushes, even
// if there is room.
TEST_F(MergedValueCacheTest, UnreadValueIsNotCarriedOverForever) {
  ASSERT_TRUE(cache_.Insert("read", 1, 1, 0, "v"));
  ASSERT_TRUE(cache_.Insert("unread", 1, 1, 0, "v"));
  uint64_t carried = 0;
  for (SequenceNumber now = 2; now < 200; ++now) {
    MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
    Ref known;
    ASSERT_TRUE(flush.OnKey("read", now, &known));
    ASSERT_TRUE(flush.Carry(known, now, "v"));
    if (flush.OnKey("unread", now, &known) && flush.Carry(known, now, "v")) {
      ++carried;
    }
    known.Reset();
    flush.Finish(/*has_shown_all=*/true);
    if (now % 50 == 0) {
      EXPECT_EQ(Look("read", 1000), Result::kHit);
    }
  }
  EXPECT_EQ(Look("read", 1000), Result::kHit);
  EXPECT_EQ(Look("unread", 1000), Result::kStale);
  EXPECT_GT(carried, 50);
  EXPECT_LT(carried, 80);
}

// The cache works with many more entries than its initial capacity suggests.
TEST_F(MergedValueCacheTest, CapacityCanGrowManifold) {
  MergedValueCache cache(size_t{1} << 20, nullptr);
  cache.SetCapacity(size_t{64} << 20);
  constexpr int kKeys = 100000;
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(cache.Insert(KeyOf(i), 10, 10, 0, KeyOf(i)));
  }
  EXPECT_EQ(cache.GetStats().entries, kKeys);
  MergedValueCache::Flush flush(&cache, /*holds_oldest=*/true);
  Ref known;
  ASSERT_TRUE(flush.OnKey(KeyOf(1), 20, &known));
  ASSERT_TRUE(flush.Carry(known, 20, KeyOf(1)));
  for (int i = 2; i < kKeys; i += 2) {
    ASSERT_TRUE(flush.OnKey(KeyOf(i), 30, &known));
  }
  known.Reset();
  flush.Finish(/*has_shown_all=*/true);
  for (int i = 0; i < kKeys; ++i) {
    Ref ref;
    const Result result = cache.Lookup(KeyOf(i), 100, 0, &ref);
    ASSERT_EQ(result, i > 0 && i % 2 == 0 ? Result::kStale : Result::kHit) << i;
    if (ref.found()) {
      ASSERT_EQ(ref.value(), KeyOf(i));
    }
  }
  cache.SetCapacity(0);
  EXPECT_EQ(cache.GetStats().entries, 0);
}

// A flush that fails is repeated, perhaps with more entries, and the values
// stay correct.
TEST_F(MergedValueCacheTest, FailedFlushCanBeRepeated) {
  ASSERT_TRUE(cache_.Insert("a", 10, 20, 0, "v"));
  ASSERT_TRUE(cache_.Insert("b", 10, 20, 0, "v"));
  Ref known;
  {
    MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
    ASSERT_TRUE(flush.OnKey("a", 30, &known));
    ASSERT_TRUE(flush.Carry(known, 30, "w"));
    ASSERT_TRUE(flush.OnKey("b", 31, &known));
  }
  EXPECT_EQ(Look("a", 100), Result::kHit);
  EXPECT_EQ(Look("b", 100), Result::kHit);
  MergedValueCache::Flush flush(&cache_, /*holds_oldest=*/true);
  EXPECT_FALSE(flush.OnKey("a", 30, &known));
  ASSERT_TRUE(flush.OnKey("b", 35, &known));
  ASSERT_TRUE(flush.Carry(known, 35, "w"));
  flush.Finish(/*has_shown_all=*/true);
  for (const char* key : {"a", "b"}) {
    Ref ref;
    ASSERT_EQ(cache_.Lookup(key, 100, 0, &ref), Result::kHit);
    EXPECT_EQ(ref.value(), "w");
    EXPECT_EQ(ref.frontier(), 35);
  }
}

// Keys that are only written are evicted before those that are read.
TEST_F(MergedValueCacheTest, WrittenButUnreadKeysAreEvicted) {
  MergedValueCache cache(size_t{1} << 20, nullptr);
  constexpr int kKeys = 1000;
  SequenceNumber now = 1;
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(cache.Insert(KeyOf(i), now, now, 0, ValueOf(i, now)));
  }
  Ref ref;
  for (int round = 0; round < 100; ++round) {
    ++now;
    MergedValueCache::Flush flush(&cache, /*holds_oldest=*/true);
    for (int i = 0; i < kKeys; ++i) {
      Ref known;
      if (flush.OnKey(KeyOf(i), now, &known)) {
        flush.Carry(known, now, ValueOf(i, now));
      }
    }
    flush.Finish(/*has_shown_all=*/true);
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(cache.Lookup(KeyOf(i), now, 0, &ref), Result::kHit) << i;
      const int other = kKeys * (round + 1) + i;
      cache.Insert(KeyOf(other), now, now, 0, ValueOf(other, now));
    }
  }
  int left = 0;
  for (int i = 100; i < kKeys; ++i) {
    left += cache.Lookup(KeyOf(i), now, 0, &ref) == Result::kHit ? 1 : 0;
  }
  EXPECT_LT(left, kKeys / 10);
}

// Readers of a key never see a value of another key, nor one that a flush had
// invalidated before they began.
TEST_F(MergedValueCacheTest, ConcurrentReadersSeeNoOutdatedValue) {
  constexpr int kKeys = 200;
  MergedValueCache cache(size_t{1} << 20, nullptr);
  // For each key, the sequence number up to which everything is flushed.
  std::vector<std::atomic<SequenceNumber>> flushed(kKeys);
  std::atomic<SequenceNumber> last{1};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> hits{0};
  std::vector<std::thread> threads;
  const Defer end_readers([&] {
    stop = true;
    for (std::thread& thread : threads) {
      thread.join();
    }
  });
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      // A reader returns early if it has found an error.
      const Defer end_test([&] { stop = true; });
      Random rnd(1000 + static_cast<uint32_t>(t));
      while (!stop) {
        const int i = static_cast<int>(rnd.Skewed(7)) % kKeys;
        const SequenceNumber seen = flushed[static_cast<size_t>(i)];
        const SequenceNumber now = last;
        Ref ref;
        if (cache.Lookup(KeyOf(i), now, 0, &ref) == Result::kHit) {
          ++hits;
          ASSERT_EQ(ref.value(), ValueOf(i, ref.seq()));
          ASSERT_LE(ref.seq(), now);
          ASSERT_GE(std::max(ref.seq(), ref.frontier()), seen);
        } else {
          const SequenceNumber seq = std::max(seen, SequenceNumber{1});
          cache.Insert(KeyOf(i), seq, now, 0, ValueOf(i, seq));
        }
      }
    });
  }
  Random rnd(77);
  uint64_t carried = 0;
  // The readers may begin late. If they do, there are more rounds, so that hits
  // and flushes overlap.
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int round = 0;
       !stop && (round < 3000 || hits <= 100 || carried <= 100) &&
       std::chrono::steady_clock::now() < deadline;
       ++round) {
    const SequenceNumber now = ++last;
    // Every other flush carries values over.
    MergedValueCache::Flush flush(&cache, /*holds_oldest=*/round % 2 == 0);
    std::set<int> keys;
    for (int i = 0; i < 5; ++i) {
      keys.insert(static_cast<int>(rnd.Uniform(kKeys)));
    }
    for (const int key : keys) {
      Ref known;
      if (flush.OnKey(KeyOf(key), now, &known)) {
        ASSERT_EQ(known.value(), ValueOf(key, known.seq()));
        carried += flush.Carry(known, now, ValueOf(key, now)) ? 1 : 0;
      }
    }
    flush.Finish(/*has_shown_all=*/true);
    for (const int key : keys) {
      flushed[static_cast<size_t>(key)] = now;
    }
    if (round % 100 == 0) {
      cache.SetCapacity(round % 200 == 0 ? size_t{1} << 20 : size_t{1} << 18);
    }
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  threads.clear();
  EXPECT_GT(hits, 100);
  EXPECT_GT(carried, 100);
  EXPECT_EQ(cache.GetStats().carried, carried);
  EXPECT_LE(cache.GetStats().bytes, size_t{1} << 20);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
