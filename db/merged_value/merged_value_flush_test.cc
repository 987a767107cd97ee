//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/merged_value/merged_value_flush.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "db/merged_value/merged_value_flush_iterator.h"
#include "port/stack_trace.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/strata_db_test_util.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Ref = MergedValueCache::Ref;
using Result = MergedValueCache::Result;

// Makes a list with commas. The operand "fail" fails, and "columns" makes a
// value with columns.
class ListOperator : public MergeOperator {
 public:
  const char* Name() const override { return "ListOperator"; }
  bool FullMergeV3(const MergeOperationInputV3& in,
                   MergeOperationOutputV3* out) const override {
    std::string list;
    if (const auto* value = std::get_if<Slice>(&in.existing_value)) {
      list = value->ToString();
    }
    for (const Slice& operand : in.operand_list) {
      if (operand == "fail") {
        return false;
      }
      if (operand == "columns") {
        out->new_value =
            MergeOperationOutputV3::NewColumns{{"", list}, {"c", "d"}};
        return true;
      }
      list += "," + operand.ToString();
    }
    out->new_value = list;
    return true;
  }
};

struct TestEntry {
  std::string key;
  SequenceNumber seq;
  ValueType type;
  std::string value;
};

}  // namespace

class MergedValueFlushTest : public StrataDBTestBase {
 public:
  MergedValueFlushTest() : StrataDBTestBase("merged_value_flush_test") {
    Options options = CurrentOptions();
    options.merge_operator = std::make_shared<ListOperator>();
    options.enable_merged_value_cache = true;
    options.merged_value_cache_size = size_t{4} << 20;
    DestroyAndReopen(options);
  }

  MergedValueCache* cache() { return Family()->merged_values(); }

  // rounds: number of passes of the iterator from its beginning to its end.
  void FlushAll(const std::vector<TestEntry>& entries, bool is_oldest = true,
                int rounds = 1) {
    std::vector<std::string> keys;
    std::vector<std::string> values;
    for (const TestEntry& entry : entries) {
      keys.push_back(
          InternalKey(entry.key, entry.seq, entry.type).Encode().ToString());
      values.push_back(entry.value);
    }
    MergedValueFlush flush(*Family(), is_oldest);
    Arena arena;
    ScopedArenaPtr<InternalIterator> iter(MergedValueFlushIterator::Wrap(
        &flush,
        new (arena.AllocateAligned(sizeof(VectorIterator)))
            VectorIterator(std::move(keys), std::move(values),
                           &Family()->internal_comparator()),
        &arena));
    // A flush positions the iterator once before it reads.
    iter->SeekToFirst();
    for (int round = 0; round < rounds; ++round) {
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      }
    }
    flush.Finish();
  }

  // Returns the cached value and its sequence number, or "" if a new reader
  // cannot use any.
  std::string Known(const std::string& key) {
    Ref ref;
    return cache()->Lookup(key, 1000, 0, &ref) == Result::kHit
               ? ref.value().ToString() + "@" + std::to_string(ref.seq())
               : "";
  }
};

TEST_F(MergedValueFlushTest, WrapsNothingWithoutAFlush) {
  VectorIterator iter({}, {});
  EXPECT_EQ(MergedValueFlushIterator::Wrap(nullptr, &iter, nullptr), &iter);
}

TEST_F(MergedValueFlushTest, MergesOperands) {
  ASSERT_TRUE(cache()->Insert("a", 10, 10, 0, "v"));
  ASSERT_TRUE(cache()->Insert("b", 12, 12, 0, "w"));
  ASSERT_TRUE(cache()->Insert("d", 13, 13, 0, "x"));
  FlushAll({{"a", 31, kTypeMerge, "3"},
            {"a", 30, kTypeMerge, "2"},
            {"a", 21, kTypeMerge, "1"},
            {"b", 22, kTypeMerge, "1"},
            // The cached value already includes these entries, whatever they
            // are.
            {"b", 12, kTypeValue, "w"},
            {"b", 11, kTypeDeletion, ""},
            {"c", 23, kTypeMerge, "1"},
            {"e", 24, kTypeMerge, "1"}});
  EXPECT_EQ(Known("a"), "v,1,2,3@31");
  EXPECT_EQ(Known("b"), "w,1@22");
  EXPECT_EQ(Known("c"), "");
  EXPECT_EQ(Known("d"), "x@13");
  FlushAll({{"a", 41, kTypeMerge, "4"}});
  EXPECT_EQ(Known("a"), "v,1,2,3,4@41");
  EXPECT_EQ(Known("b"), "w,1@22");
  EXPECT_EQ(Known("d"), "x@13");
  EXPECT_EQ(cache()->GetStats().carried, 3);
}

TEST_F(MergedValueFlushTest, SeekToFirstStartsOver) {
  ASSERT_TRUE(cache()->Insert("a", 10, 10, 0, "v"));
  ASSERT_TRUE(cache()->Insert("b", 10, 10, 0, "v"));
  FlushAll({{"a", 31, kTypeMerge, "2"},
            {"a", 30, kTypeMerge, "1"},
            {"b", 33, kTypeMerge, "2"},
            {"b", 32, kTypeMerge, "1"}},
           /*is_oldest=*/true, /*rounds=*/3);
  EXPECT_EQ(Known("a"), "v,1,2@31");
  EXPECT_EQ(Known("b"), "v,1,2@33");
  // The same with a single key.
  FlushAll({{"a", 41, kTypeMerge, "4"}, {"a", 40, kTypeMerge, "3"}},
           /*is_oldest=*/true, /*rounds=*/3);
  EXPECT_EQ(Known("a"), "v,1,2,3,4@41");
}

// A key whose entries were not all passed is not carried over.
TEST_F(MergedValueFlushTest, KeysPassedOnlyInPartAreNotCarriedOver) {
  for (const bool skips : {false, true}) {
    const SequenceNumber base = skips ? 200 : 100;
    for (const char* key : {"a", "b", "c"}) {
      cache()->Insert(key, base, base, 0, "v");
    }
    MergedValueFlush flush(*Family(), /*mems_are_oldest=*/true);
    Arena arena;
    std::vector<std::string> keys;
    for (const auto& [key, seq] :
         std::vector<std::pair<std::string, SequenceNumber>>{
             {"a", 3}, {"b", 5}, {"b", 4}, {"c", 7}, {"c", 6}}) {
      keys.push_back(
          InternalKey(key, base + seq, kTypeMerge).Encode().ToString());
    }
    ScopedArenaPtr<InternalIterator> iter(MergedValueFlushIterator::Wrap(
        &flush,
        new (arena.AllocateAligned(sizeof(VectorIterator)))
            VectorIterator(keys, std::vector<std::string>(keys.size(), "1"),
                           &Family()->internal_comparator()),
        &arena));
    iter->SeekToFirst();
    iter->Next();
    if (skips) {
      // Skip an operand of "b".
      iter->Seek(InternalKey("c", kMaxSequenceNumber, kTypeMerge).Encode());
      iter->Next();
      iter->Next();
      ASSERT_FALSE(iter->Valid());
    }
    flush.Finish();
    EXPECT_EQ(Known("a"), "v,1@" + std::to_string(base + 3));
    EXPECT_EQ(Known("b"), "");
    EXPECT_EQ(Known("c"), skips ? "" : "v@" + std::to_string(base));
  }
}

TEST_F(MergedValueFlushTest, KeysWithOtherEntriesAreNotCarriedOver) {
  for (const ValueType type : {kTypeValue, kTypeDeletion, kTypeSingleDeletion,
                               kTypeBlobIndex, kTypeWideColumnEntity}) {
    SCOPED_TRACE(static_cast<int>(type));
    const SequenceNumber base = 100 + SequenceNumber{type} * 10;
    for (const char* key : {"newest", "middle", "oldest"}) {
      cache()->Insert(key, base, base, 0, "v");
    }
    FlushAll({{"middle", base + 3, kTypeMerge, "2"},
              {"middle", base + 2, type, "w"},
              {"middle", base + 1, kTypeMerge, "1"},
              {"newest", base + 6, type, "w"},
              {"newest", base + 5, kTypeMerge, "2"},
              {"oldest", base + 8, kTypeMerge, "2"},
              {"oldest", base + 7, type, "w"}});
    for (const char* key : {"newest", "middle", "oldest"}) {
      EXPECT_EQ(Known(key), "") << key;
    }
  }
  EXPECT_EQ(cache()->GetStats().carried, 0);
}

TEST_F(MergedValueFlushTest, FailedMergesAndColumnsAreNotCarriedOver) {
  ASSERT_TRUE(cache()->Insert("a", 10, 10, 0, "v"));
  ASSERT_TRUE(cache()->Insert("b", 10, 10, 0, "v"));
  ASSERT_TRUE(cache()->Insert("c", 10, 10, 0, "v"));
  FlushAll({{"a", 30, kTypeMerge, "fail"},
            {"b", 31, kTypeMerge, "columns"},
            {"c", 32, kTypeMerge, "1"}});
  EXPECT_EQ(Known("a"), "");
  EXPECT_EQ(Known("b"), "");
  EXPECT_EQ(Known("c"), "v,1@32");
}

TEST_F(MergedValueFlushTest, CarriesNothingOverIfNotTheOldest) {
  ASSERT_TRUE(cache()->Insert("a", 10, 10, 0, "v"));
  FlushAll({{"a", 30, kTypeMerge, "1"}}, /*is_oldest=*/false);
  EXPECT_EQ(Known("a"), "");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
