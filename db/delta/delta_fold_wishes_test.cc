//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_fold_wishes.h"

#include <cstdio>
#include <set>
#include <string>

#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class DeltaFoldWishesTest : public testing::Test {
 protected:
  using KeyRange = DeltaFoldWishes::KeyRange;

  static std::string KeyOf(size_t i) {
    char key[16];
    snprintf(key, sizeof(key), "%06zu", i);
    return key;
  }

  bool Has(const std::string& key) { return wishes_.Contains(key, ucmp_); }
  bool Overlaps(const KeyRange& range) {
    return wishes_.Overlaps(range, ucmp_);
  }
  void Remove(const KeyRange& range) { wishes_.Remove(range, ucmp_); }

  const Comparator* const ucmp_ = BytewiseComparator();
  DeltaFoldWishes wishes_;
};

TEST_F(DeltaFoldWishesTest, ContainsExactlyTheAddedKeys) {
  EXPECT_TRUE(wishes_.empty());
  EXPECT_FALSE(Has("a"));
  EXPECT_FALSE(Overlaps({}));
  for (const char* key : {"b", "d", "c", "b"}) {
    wishes_.Add(key, ucmp_);
  }
  EXPECT_FALSE(wishes_.empty());
  EXPECT_TRUE(Has("b") && Has("c") && Has("d"));
  EXPECT_FALSE(Has("a") || Has("bb") || Has("e"));
  EXPECT_TRUE(Overlaps({}));
  EXPECT_TRUE(Overlaps({"d", std::nullopt}));
  EXPECT_FALSE(Overlaps({"dd", std::nullopt}));
  EXPECT_FALSE(Overlaps({"", "b"}));
  EXPECT_TRUE(Overlaps({"", "bb"}));
  EXPECT_FALSE(Overlaps({"bb", "c"}));
  Remove({"b", "d"});
  EXPECT_TRUE(Has("d"));
  EXPECT_FALSE(Has("b") || Has("c"));
  Remove({});
  EXPECT_TRUE(wishes_.empty());
}

TEST_F(DeltaFoldWishesTest, RemoveSplitsRanges) {
  wishes_.AddAll();
  EXPECT_TRUE(Has("") && Has("a"));
  EXPECT_TRUE(Overlaps({"x", "y"}));
  Remove({"c", "e"});
  EXPECT_TRUE(Has("b") && Has("e"));
  EXPECT_FALSE(Has("c") || Has("d"));
  EXPECT_FALSE(Overlaps({"c", "e"}));
  EXPECT_TRUE(Overlaps({"c", "ee"}));
  Remove({"d", std::nullopt});
  EXPECT_FALSE(Has("e"));
  Remove({"", "b"});
  EXPECT_FALSE(Has("a"));
  EXPECT_TRUE(Has("b"));
  Remove({"b", "c"});
  EXPECT_TRUE(wishes_.empty());
}

// Beyond kMaxKeys the keys become a range, so that memory is limited and no key
// is lost.
TEST_F(DeltaFoldWishesTest, ManyKeysBecomeARange) {
  const size_t num = 3 * DeltaFoldWishes::kMaxKeys;
  for (size_t i = 0; i < num; ++i) {
    wishes_.Add(KeyOf((i * 7919) % num), ucmp_);
  }
  for (size_t i = 0; i < num; ++i) {
    ASSERT_TRUE(Has(KeyOf(i)));
  }
  Remove({KeyOf(0), KeyOf(num - 1)});
  EXPECT_TRUE(Has(KeyOf(num - 1)));
  EXPECT_FALSE(Has(KeyOf(num / 2)));
  Remove({KeyOf(num - 1), std::nullopt});
  EXPECT_TRUE(wishes_.empty());
}

// The size of the keys counts, too, so that few long keys become a range.
TEST_F(DeltaFoldWishesTest, LongKeysBecomeARange) {
  const auto long_key = [](size_t i) {
    return KeyOf(i) + std::string(DeltaFoldWishes::kMaxKeyBytes / 4, 'k');
  };
  for (size_t i = 0; i < 3; ++i) {
    wishes_.Add(long_key(i), ucmp_);
  }
  EXPECT_FALSE(Has(KeyOf(1)));
  Remove({KeyOf(1), KeyOf(2)});
  wishes_.Add(long_key(3), ucmp_);
  EXPECT_FALSE(Has(KeyOf(1)) || Has(long_key(1)));
  wishes_.Add(long_key(4), ucmp_);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(Has(long_key(i))) << i;
  }
  EXPECT_TRUE(Has(KeyOf(1)));
  EXPECT_FALSE(Has(KeyOf(0)) || Has(KeyOf(5)));
  // The keys that are stored individually are counted from there on.
  wishes_.Add(long_key(6), ucmp_);
  EXPECT_FALSE(Has(KeyOf(6)));

  DeltaFoldWishes united;
  DeltaFoldWishes other;
  for (size_t i = 0; i < 2; ++i) {
    united.Add(long_key(i), ucmp_);
    other.Add(long_key(i + 2), ucmp_);
  }
  united.AddAllOf(other, ucmp_);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(united.Contains(long_key(i), ucmp_)) << i;
  }
  EXPECT_TRUE(united.Contains(KeyOf(2), ucmp_));

  DeltaFoldWishes huge;
  const std::string key(DeltaFoldWishes::kMaxKeyBytes + 1, 'h');
  huge.Add(key, ucmp_);
  EXPECT_TRUE(huge.Contains(key, ucmp_));
  EXPECT_FALSE(huge.Contains("h", ucmp_) || huge.Contains("hi", ucmp_));
  huge.Add("i", ucmp_);
  EXPECT_TRUE(huge.Contains(key, ucmp_) && huge.Contains("i", ucmp_));
  EXPECT_TRUE(huge.Contains("hi", ucmp_));
  EXPECT_FALSE(huge.Contains("h", ucmp_));
}

// The empty key is the last one in reverse order, but a range without a begin
// stays one when others are united with it.
TEST_F(DeltaFoldWishesTest, UnitedRangeStaysWithoutABegin) {
  const Comparator* const reverse = ReverseBytewiseComparator();
  wishes_.AddRange({"", "x"});
  wishes_.AddRange({"c", "b"});
  for (size_t i = DeltaFoldWishes::kMaxKeys + 1; i > 0; --i) {
    wishes_.Add("k" + KeyOf(i), reverse);
  }
  EXPECT_TRUE(wishes_.Contains("z", reverse));
  EXPECT_TRUE(wishes_.Contains("k" + KeyOf(1), reverse));
  EXPECT_TRUE(wishes_.Contains("bb", reverse));
  EXPECT_FALSE(wishes_.Contains("b", reverse));
}

TEST_F(DeltaFoldWishesTest, RandomWishesMatchASet) {
  Random rnd(301);
  std::set<std::string> model;
  for (int i = 0; i < 3000; ++i) {
    const std::string a = KeyOf(rnd.Uniform(50));
    const std::string b = KeyOf(rnd.Uniform(50));
    if (rnd.OneIn(3)) {
      Remove({a, b});
      model.erase(model.lower_bound(a),
                  a < b ? model.lower_bound(b) : model.lower_bound(a));
    } else if (rnd.OneIn(2)) {
      DeltaFoldWishes other;
      other.Add(a, ucmp_);
      other.Add(b, ucmp_);
      wishes_.AddAllOf(other, ucmp_);
      model.insert({a, b});
    } else {
      wishes_.Add(a, ucmp_);
      model.insert(a);
    }
    ASSERT_EQ(model.count(b) > 0, Has(b));
    if (a < b) {
      ASSERT_EQ(model.lower_bound(a) != model.lower_bound(b), Overlaps({a, b}));
    }
    ASSERT_EQ(model.empty(), wishes_.empty());
  }
}

TEST_F(DeltaFoldWishesTest, TakeReturnsAndRemovesAllHolds) {
  DeltaHolds holds;
  EXPECT_TRUE(holds.Take().empty());
  wishes_.Add("a", ucmp_);
  holds.Add(wishes_, ucmp_);
  DeltaFoldWishes other;
  other.Add("b", ucmp_);
  holds.Add(other, ucmp_);
  const DeltaFoldWishes taken = holds.Take();
  EXPECT_TRUE(taken.Contains("a", ucmp_) && taken.Contains("b", ucmp_));
  EXPECT_TRUE(holds.Take().empty());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
