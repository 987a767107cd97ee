//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_bucket_table.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Position = DeltaBucketTable::Position;

std::string Key(uint64_t i) {
  char buffer[32];
  snprintf(buffer, sizeof(buffer), "k%012llu",
           static_cast<unsigned long long>(i));
  return buffer;
}

}  // namespace

class DeltaBucketTableTest : public testing::Test {
 protected:
  using Model = std::map<std::string, DeltaBucketState>;

  const Comparator* ucmp_ = BytewiseComparator();

  static DeltaBucketState RandomState(Random* rnd) {
    DeltaBucketState state;
    state.floor = rnd->Uniform(5);
    if (!rnd->OneIn(3)) {
      state.extent_number = 1 + rnd->Uniform(100);
      // Some buckets name a file that has nothing in them.
      state.extent_bytes = rnd->OneIn(4) ? 0 : 1 + rnd->Uniform(1 << 20);
    }
    if (rnd->OneIn(5)) {
      state.anchors_number = 1 + rnd->Uniform(100);
    }
    return state;
  }

  // Makes `count` buckets whose bounds are `step` numbers apart.
  static std::vector<DeltaBucket> MakeBuckets(size_t count, uint64_t step,
                                              Random* rnd) {
    std::vector<DeltaBucket> buckets(count);
    for (size_t i = 0; i < count; ++i) {
      buckets[i].lower_bound = i == 0 ? "" : Key(i * step);
      buckets[i].state = RandomState(rnd);
    }
    return buckets;
  }
  static Model ModelOf(const std::vector<DeltaBucket>& buckets) {
    Model model;
    for (const DeltaBucket& bucket : buckets) {
      model.emplace(bucket.lower_bound, bucket.state);
    }
    return model;
  }

  void CheckAgainst(const Model& model, const DeltaBucketTable& table) {
    ASSERT_OK(table.Check(ucmp_));
    ASSERT_EQ(model.size(), table.size());
    Position p = table.Begin();
    uint64_t min_floor = UINT64_MAX;
    uint64_t max_floor = 0;
    bool has_extent = false;
    for (const auto& [bound, state] : model) {
      ASSERT_FALSE(p == table.End());
      ASSERT_EQ(bound, table.LowerBound(p).ToString());
      ASSERT_EQ(state, table.State(p));
      min_floor = std::min(min_floor, state.floor);
      max_floor = std::max(max_floor, state.floor);
      has_extent |= state.extent_bytes != 0;
      p = table.Next(p);
    }
    ASSERT_EQ(table.End(), p);
    ASSERT_EQ(model.empty() ? 0 : min_floor, table.MinFloor());
    ASSERT_EQ(max_floor, table.MaxFloor());
    ASSERT_EQ(has_extent, table.HasExtent(table.Begin(), table.End()));
  }
};

TEST_F(DeltaBucketTableTest, EmptyTableHasNoBuckets) {
  DeltaBucketTable table;
  ASSERT_TRUE(table.empty());
  ASSERT_EQ(table.Begin(), table.End());
  ASSERT_EQ(table.End(), table.FindBound("", ucmp_));
  ASSERT_EQ(table.End(), table.FindBound("a", ucmp_));
  ASSERT_EQ(0u, table.MinFloor());
  ASSERT_EQ(0u, table.MaxFloor());
  ASSERT_FALSE(table.HasExtent(table.Begin(), table.End()));
  ASSERT_OK(table.Check(ucmp_));
  table.Freeze();
  table.Append({});
  ASSERT_TRUE(table.empty());
}

TEST_F(DeltaBucketTableTest, FindReturnsTheBucketOfAKey) {
  Random rnd(301);
  for (size_t count : {1u, 2u, 63u, 64u, 256u, 257u, 5000u}) {
    const auto buckets = MakeBuckets(count, 2, &rnd);
    DeltaBucketTable table;
    table.Append(buckets);
    CheckAgainst(ModelOf(buckets), table);
    ASSERT_EQ(table.Begin(), table.Find("", ucmp_));
    ASSERT_EQ(table.Begin(), table.Find("a", ucmp_));
    ASSERT_EQ(table.Begin(), table.FindBound("", ucmp_));
    Position p = table.Begin();
    for (size_t i = 0; i < count; ++i, p = table.Next(p)) {
      ASSERT_EQ(p, table.Find(Key(2 * i), ucmp_));
      ASSERT_EQ(p, table.Find(Key(2 * i + 1), ucmp_));
      if (i > 0) {
        ASSERT_EQ(p, table.FindBound(Key(2 * i), ucmp_));
      }
      ASSERT_EQ(table.End(), table.FindBound(Key(2 * i + 1), ucmp_));
    }
    ASSERT_EQ(table.End(), p);
    // The first bucket has no bound but the empty one, whatever its keys are.
    ASSERT_EQ(table.End(), table.FindBound("a", ucmp_));
    const Position last = table.Find("z", ucmp_);
    ASSERT_EQ(table.End(), table.Next(last));
  }
}

// With a reverse comparator the empty key is the largest one, so the bound of
// the first bucket must not be compared.
TEST_F(DeltaBucketTableTest, FindWorksWithAReverseComparator) {
  ucmp_ = ReverseBytewiseComparator();
  std::vector<DeltaBucket> buckets(1000);
  for (size_t i = 1; i < buckets.size(); ++i) {
    buckets[i].lower_bound = Key(10000 - i);
    buckets[i].state.floor = i;
  }
  DeltaBucketTable table;
  table.Append(buckets);
  ASSERT_OK(table.Check(ucmp_));
  ASSERT_EQ(table.Begin(), table.Find("z", ucmp_));
  ASSERT_EQ(999u, table.State(table.Find("", ucmp_)).floor);
  for (size_t i = 1; i < buckets.size(); ++i) {
    ASSERT_EQ(i, table.State(table.FindBound(Key(10000 - i), ucmp_)).floor);
  }
}

// Splits, merges and replacements of any size at any position leave the right
// buckets, and copies of the table stay unchanged.
TEST_F(DeltaBucketTableTest, RandomChangesMatchAModel) {
  for (int seed = 0; seed < 20; ++seed) {
    Random rnd(400 + seed);
    DeltaBucketTable table;
    Model model;
    std::vector<std::pair<DeltaBucketTable, Model>> copies;
    for (int i = 0; i < 300; ++i) {
      // The change concerns a range of buckets of the model, from `begin` to
      // `end`.
      auto begin = model.begin();
      auto end = model.end();
      if (!model.empty()) {
        const int first = rnd.Uniform(static_cast<int>(model.size()));
        int length = 1 + rnd.Uniform(rnd.OneIn(10) ? 1000 : 5);
        std::advance(begin, first);
        end = begin;
        while (length-- > 0 && end != model.end()) {
          ++end;
        }
      }
      const Position first =
          model.empty() ? table.End() : table.FindBound(begin->first, ucmp_);
      const Position last =
          end == model.end() ? table.End() : table.FindBound(end->first, ucmp_);
      if (!model.empty() && rnd.OneIn(4)) {
        uint64_t floor = 0;
        for (auto it = begin; it != end; ++it) {
          floor = std::max(floor, it->second.floor);
        }
        floor += rnd.Uniform(3);
        ASSERT_EQ(std::min_element(begin, end,
                                   [](const auto& a, const auto& b) {
                                     return a.second.floor < b.second.floor;
                                   })
                      ->second.floor,
                  table.MinFloor(first, last));
        for (auto it = begin; it != end; ++it) {
          it->second.floor = floor;
        }
        table.SetFloors(first, last, floor);
      } else {
        const std::string low = model.empty() ? "" : begin->first;
        const std::string high = end == model.end() ? "k~" : end->first;
        std::map<std::string, DeltaBucketState> added;
        added[low] = RandomState(&rnd);
        for (int n = rnd.Uniform(rnd.OneIn(10) ? 1500 : 4); n > 0; --n) {
          const std::string key = Key(rnd.Uniform(1 << 30));
          if (key > low && key < high) {
            added[key] = RandomState(&rnd);
          }
        }
        model.erase(begin, end);
        model.insert(added.begin(), added.end());
        std::vector<DeltaBucket> buckets;
        for (const auto& [bound, state] : added) {
          buckets.push_back({bound, state});
        }
        table.ReplaceRange(first, last, buckets);
      }
      ASSERT_NO_FATAL_FAILURE(CheckAgainst(model, table));
      if (rnd.OneIn(10)) {
        if (rnd.OneIn(2)) {
          table.Freeze();
        }
        copies.emplace_back(table, model);
      }
      if (rnd.OneIn(20) && !copies.empty()) {
        // Later changes start from an earlier copy.
        const size_t which = rnd.Uniform(static_cast<int>(copies.size()));
        table = copies[which].first;
        model = copies[which].second;
      }
    }
    for (const auto& [copy, copy_model] : copies) {
      ASSERT_NO_FATAL_FAILURE(CheckAgainst(copy_model, copy));
    }
  }
}

// With as many buckets as allowed, a change copies a few chunks and shares all
// others.
TEST_F(DeltaBucketTableTest, ChangeOfManyBucketsSharesMostChunks) {
  constexpr size_t kCount = 32768;
  Random rnd(301);
  auto buckets = MakeBuckets(kCount, 4, &rnd);
  DeltaBucketTable table;
  // The buckets come in pieces, as from a MANIFEST.
  for (size_t i = 0; i < kCount; i += 1000) {
    table.Append(
        {buckets.begin() + i, buckets.begin() + std::min(kCount, i + 1000)});
  }
  table.Freeze();
  Model model = ModelOf(buckets);
  CheckAgainst(model, table);
  const size_t chunks = table.TEST_NumChunks();
  ASSERT_GE(chunks, kCount / DeltaBucketTable::kMaxChunk);
  ASSERT_LE(chunks, kCount / DeltaBucketTable::kMinChunk);
  // Each bound has 13 bytes.
  ASSERT_LT(table.ApproximateMemoryUsage(), kCount * 100);
  size_t bound_bytes = 0;
  for (const DeltaBucket& bucket : buckets) {
    bound_bytes += bucket.lower_bound.size();
  }
  ASSERT_EQ(table.BoundBytes(), bound_bytes);

  for (int i = 0; i < 2000; ++i) {
    DeltaBucketTable changed = table;
    const uint64_t number = rnd.Uniform(kCount);
    const std::string bound = number == 0 ? "" : Key(4 * number);
    const Position first = changed.FindBound(bound, ucmp_);
    std::vector<DeltaBucket> list;
    list.push_back({bound, RandomState(&rnd)});
    for (uint64_t n = 1; n <= static_cast<uint64_t>(i % 4); ++n) {
      list.push_back({Key(4 * number + n), RandomState(&rnd)});
    }
    changed.ReplaceRange(first, changed.Next(first), list);
    ASSERT_EQ(kCount + list.size() - 1, changed.size());
    ASSERT_GE(changed.TEST_SharedChunks(table) + 2, chunks);
    Position p = changed.FindBound(bound, ucmp_);
    for (const DeltaBucket& bucket : list) {
      ASSERT_EQ(bucket.lower_bound, changed.LowerBound(p).ToString());
      ASSERT_EQ(bucket.state, changed.State(p));
      p = changed.Next(p);
    }
    // The same holds if two buckets are joined.
    changed = table;
    const Position last = changed.Next(first);
    if (last != changed.End()) {
      changed.ReplaceRange(first, changed.Next(last), {list[0]});
      ASSERT_EQ(kCount - 1, changed.size());
      ASSERT_GE(changed.TEST_SharedChunks(table) + 3, chunks);
    }
    changed = table;
    changed.SetFloors(first, changed.Next(first), 1000);
    ASSERT_GE(changed.TEST_SharedChunks(table) + 1, chunks);
    ASSERT_EQ(1000u, changed.MaxFloor());
  }
  CheckAgainst(model, table);
}

// A chunk that no other table shares is changed in place; a frozen or shared
// chunk is copied.
TEST_F(DeltaBucketTableTest, OnlyUnsharedChunksChangeInPlace) {
  Random rnd(301);
  DeltaBucketTable table;
  table.Append(MakeBuckets(100, 2, &rnd));
  const auto key_address = [this](const DeltaBucketTable& t) {
    return static_cast<const void*>(&t.State(t.FindBound(Key(20), ucmp_)));
  };
  const auto change = [this](DeltaBucketTable* t, uint64_t floor) {
    const Position p = t->FindBound(Key(20), ucmp_);
    t->SetFloors(p, t->Next(p), floor);
  };

  const void* const before = key_address(table);
  change(&table, 10);
  ASSERT_EQ(before, key_address(table));
  {
    const DeltaBucketTable copy = table;
    change(&table, 11);
    ASSERT_NE(before, key_address(table));
    ASSERT_EQ(before, key_address(copy));
    ASSERT_EQ(10u, copy.MaxFloor());
  }
  const void* const own = key_address(table);
  change(&table, 12);
  ASSERT_EQ(own, key_address(table));
  table.Freeze();
  change(&table, 13);
  ASSERT_NE(own, key_address(table));
  // A frozen chunk stays frozen even if no other table shares it any more.
  DeltaBucketTable copy = table;
  copy.Freeze();
  const void* const frozen = key_address(copy);
  table.Clear();
  change(&copy, 14);
  ASSERT_NE(frozen, key_address(copy));
  ASSERT_OK(copy.Check(ucmp_));
}

TEST_F(DeltaBucketTableTest, NextAndPrevFindTheNearestBucket) {
  DeltaBucketTable table;
  ASSERT_TRUE(table.NextBelow(table.Begin(), 7) == table.End());
  ASSERT_TRUE(table.NextWithExtent(table.Begin()) == table.End());

  Random rnd(303);
  for (const size_t count : {size_t{1}, size_t{2}, DeltaBucketTable::kMaxChunk,
                             5 * DeltaBucketTable::kMaxChunk + 1}) {
    // The rarer such buckets are, the more chunks have none of them.
    for (const int rarity : {1, 3, 300, 3000}) {
      std::vector<DeltaBucket> buckets(count);
      for (size_t i = 0; i < count; ++i) {
        buckets[i].lower_bound = i == 0 ? "" : Key(i);
        buckets[i].state.floor = rnd.OneIn(rarity) ? rnd.Uniform(5) : 5;
        buckets[i].state.extent_number = 1;
        buckets[i].state.extent_bytes = rnd.OneIn(rarity) ? 1 : 0;
      }
      table.Clear();
      table.Append(buckets);
      std::vector<Position> positions;
      for (Position p = table.Begin(); p != table.End(); p = table.Next(p)) {
        if (!positions.empty()) {
          ASSERT_TRUE(positions.back() == table.Prev(p));
        }
        positions.push_back(p);
      }
      ASSERT_EQ(count, positions.size());
      ASSERT_TRUE(positions.back() == table.Prev(table.End()));
      ASSERT_TRUE(table.NextBelow(table.End(), 9) == table.End());
      ASSERT_TRUE(table.NextWithExtent(table.End()) == table.End());

      const auto check = [&](auto is_wanted, auto next, auto prev) {
        Position last = table.End();
        for (size_t i = 0; i < count; ++i) {
          if (is_wanted(buckets[i].state)) {
            last = positions[i];
          }
          ASSERT_TRUE(prev(positions[i]) == last) << i;
        }
        Position first = table.End();
        for (size_t i = count; i > 0; --i) {
          if (is_wanted(buckets[i - 1].state)) {
            first = positions[i - 1];
          }
          ASSERT_TRUE(next(positions[i - 1]) == first) << i;
        }
      };
      for (uint64_t epoch = 0; epoch <= 6; ++epoch) {
        check([&](const DeltaBucketState& s) { return s.floor < epoch; },
              [&](Position p) { return table.NextBelow(p, epoch); },
              [&](Position p) { return table.PrevBelow(p, epoch); });
      }
      check([](const DeltaBucketState& s) { return s.extent_bytes != 0; },
            [&](Position p) { return table.NextWithExtent(p); },
            [&](Position p) { return table.PrevWithExtent(p); });
    }
  }
}

TEST_F(DeltaBucketTableTest, CheckFindsDisorder) {
  DeltaBucketTable table;
  table.Append({{"", {}}, {"b", {}}, {"a", {}}});
  ASSERT_TRUE(table.Check(ucmp_).IsCorruption());
  table.Clear();
  table.Append({{"", {}}, {"b", {}}, {"b", {}}});
  ASSERT_TRUE(table.Check(ucmp_).IsCorruption());
  table.Clear();
  table.Append({{"a", {}}});
  ASSERT_TRUE(table.Check(ucmp_).IsCorruption());
  table.Clear();
  table.Append({{"", {}}, {"a", {}}});
  ASSERT_OK(table.Check(ucmp_));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
