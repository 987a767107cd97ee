//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The order in which a lookup asks its sources, and lookups that start again,
// with all sets of features.

#include "db/strata/point_read.h"

#include <algorithm>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/delta/delta_operands.h"
#include "db/lookup_key.h"
#include "db/merge_context.h"
#include "db/pinned_iterators_manager.h"
#include "db/strata/point_read_batch.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

// Parameters: an address map, delta files, a merged-value cache.
class PointReadTest
    : public StrataDBTestBase,
      public testing::WithParamInterface<std::tuple<bool, bool, bool>> {
 public:
  PointReadTest() : StrataDBTestBase("point_read_test") {}

  bool HasMap() const { return std::get<0>(GetParam()); }
  bool HasDeltas() const { return std::get<1>(GetParam()); }
  bool HasCache() const { return std::get<2>(GetParam()); }

  Options FeatureOptions() {
    Options options = CurrentOptions();
    options.disable_auto_compactions = true;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.statistics = CreateDBStatistics();
    options.enable_blob_files = HasMap();
    options.enable_blob_address_map = HasMap();
    options.min_blob_size = 0;
    options.enable_delta_separation = HasDeltas();
    options.enable_merged_value_cache = HasCache();
    if (HasCache()) {
      options.merged_value_cache_size = 1 << 20;
    }
    return options;
  }

  // A base value, two operands in files, and, if asked for, one in the
  // memtable.
  void WriteHistory(const std::string& key, bool in_memtable) {
    ASSERT_OK(Put(key, "base"));
    ASSERT_OK(Flush());
    ASSERT_OK(Merge(key, "a"));
    ASSERT_OK(Flush());
    ASSERT_OK(Merge(key, "b"));
    ASSERT_OK(Flush());
    if (in_memtable) {
      ASSERT_OK(Merge(key, "c"));
    }
  }

  std::string MultiGetOne(const std::string& key) {
    const Slice slice(key);
    PinnableSlice value;
    Status s;
    db_->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), 1, &slice, &value,
                  &s);
    return s.ok() ? value.ToString() : s.ToString();
  }

  std::string Operands(const std::string& key) {
    GetMergeOperandsOptions options;
    options.expected_max_number_of_operands = 8;
    std::vector<PinnableSlice> operands(8);
    int n = 0;
    const Status s =
        db_->GetMergeOperands(ReadOptions(), db_->DefaultColumnFamily(), key,
                              operands.data(), &options, &n);
    if (!s.ok()) {
      return s.ToString();
    }
    std::string all;
    for (int i = 0; i < n; ++i) {
      all += (i > 0 ? " " : "") + operands[static_cast<size_t>(i)].ToString();
    }
    return all;
  }
};

INSTANTIATE_TEST_CASE_P(Features, PointReadTest,
                        testing::Combine(testing::Bool(), testing::Bool(),
                                         testing::Bool()));

// Operands of all places are applied to the value that the map or an SST file
// has, in their order.
TEST_P(PointReadTest, OperandsOfAllPlacesAreAppliedInOrder) {
  DestroyAndReopen(FeatureOptions());
  WriteHistory("in files", /*in_memtable=*/false);
  WriteHistory("in memtable, too", /*in_memtable=*/true);
  // The second round finds what the first has put into the cache.
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Get("in files"), "base,a,b");
    EXPECT_EQ(MultiGetOne("in files"), "base,a,b");
    EXPECT_EQ(Operands("in files"), "base a b");
    EXPECT_EQ(Get("in memtable, too"), "base,a,b,c");
    EXPECT_EQ(MultiGetOne("in memtable, too"), "base,a,b,c");
    EXPECT_EQ(Operands("in memtable, too"), "base a b c");
    EXPECT_EQ(Get("absent"), "NOT_FOUND");
  }
  EXPECT_EQ(HasCache(),
            TestGetTickerCount(last_options_, MERGED_VALUE_CACHE_HIT) > 0);
}

// A column family needs PointReads exactly if it has one of the features.
TEST_P(PointReadTest, IsNeededWithAnyFeature) {
  DestroyAndReopen(FeatureOptions());
  EXPECT_EQ(PointRead::IsNeeded(*Family()),
            HasMap() || HasDeltas() || HasCache());
}

// Version::Get() of a caller without a PointRead finds the operands of delta
// files, and leaves no pointer to its own PointRead behind.
TEST_P(PointReadTest, VersionGetNeedsNoPointReadForDeltas) {
  if (HasMap()) {
    ROCKSDB_GTEST_SKIP("A lookup in a map needs a PointRead of its caller");
    return;
  }
  DestroyAndReopen(FeatureOptions());
  WriteHistory("k", /*in_memtable=*/false);
  SuperVersion* const sv = Family()->GetReferencedSuperVersion(dbfull());
  const LookupKey key("k", db_->GetLatestSequenceNumber());
  MergeContext merge_context;
  SequenceNumber covering = 0;
  PinnedIteratorsManager pinned;
  PinnableSlice value;
  Status s;
  sv->current->Get(ReadOptions(), key, &value, /*columns=*/nullptr,
                   /*timestamp=*/nullptr, &s, &merge_context, &covering,
                   &pinned);
  EXPECT_OK(s);
  EXPECT_EQ(value, "base,a,b");
  EXPECT_EQ(merge_context.point_read, nullptr);
  dbfull()->CleanupSuperVersion(sv);
}

// A Get() that starts again, because a flush has changed the map, is right, and
// statistics and callers see one Get().
TEST_P(PointReadTest, RestartedGetCountsOnce) {
  if (!HasMap()) {
    ROCKSDB_GTEST_SKIP("Only a map makes a lookup start again");
    return;
  }
  DestroyAndReopen(FeatureOptions());
  WriteHistory("k", /*in_memtable=*/false);
  ASSERT_OK(last_options_.statistics->Reset());
  int restarts = 0;
  EnableCallBack("MapPointRead::TakeDirect", [&](void*) {
    if (++restarts <= 5) {
      std::thread([&] {
        ASSERT_OK(Put("k", "new" + std::to_string(restarts)));
        ASSERT_OK(Flush());
        ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
      }).join();
    }
  });
  const std::string got = Get("k");
  DisableCallBacks();
  EXPECT_TRUE(got == "base,a,b" || got.substr(0, 3) == "new") << got;
  EXPECT_GT(TestGetTickerCount(last_options_, BLOB_MAP_READ_RESTART), 0);
  EXPECT_EQ(TestGetTickerCount(last_options_, NUMBER_KEYS_READ), 1);
  HistogramData latency;
  last_options_.statistics->histogramData(DB_GET, &latency);
  EXPECT_EQ(latency.count, 1);
  EXPECT_EQ(Get("k"), "new" + std::to_string(std::min(restarts, 5)));
}

// The keys of a batch get their PointReads by column family, and keep no
// pointer to them when the batch is over.
TEST_P(PointReadTest, BatchCoversFamiliesWithAndWithoutFeatures) {
  DestroyAndReopen(FeatureOptions());
  Options plain = CurrentOptions();
  plain.merge_operator = MergeOperators::CreateStringAppendOperator();
  ColumnFamilyHandle* other = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(plain, "plain", &other));
  WriteHistory("k", /*in_memtable=*/true);
  ASSERT_OK(db_->Put(WriteOptions(), other, "k", "plain"));
  ASSERT_OK(db_->Flush(FlushOptions(), other));

  const std::vector<ColumnFamilyHandle*> families = {
      db_->DefaultColumnFamily(), other, other, db_->DefaultColumnFamily()};
  const std::vector<Slice> keys = {"k", "k", "absent", "absent"};
  std::vector<std::string> values;
  const std::vector<Status> statuses =
      db_->MultiGet(ReadOptions(), families, keys, &values);
  EXPECT_OK(statuses[0]);
  EXPECT_EQ(values[0], "base,a,b,c");
  EXPECT_OK(statuses[1]);
  EXPECT_EQ(values[1], "plain");
  EXPECT_TRUE(statuses[2].IsNotFound());
  EXPECT_TRUE(statuses[3].IsNotFound());

  PinnableSlice value;
  Status s;
  const Slice key("k");
  KeyContext featured(db_->DefaultColumnFamily(), key, &value,
                      /*cols=*/nullptr, /*ts=*/nullptr, &s);
  KeyContext featureless(other, key, &value, /*cols=*/nullptr, /*ts=*/nullptr,
                         &s);
  PointReadBatch::Keys contexts;
  contexts.push_back(&featured);
  contexts.push_back(&featureless);
  const ReadOptions read_options;
  {
    PointReadBatch batch(read_options, /*registry=*/nullptr, contexts);
    EXPECT_EQ(batch.active(), PointRead::IsNeeded(*Family()));
    batch.Begin([this] { return db_->GetLatestSequenceNumber(); });
    SuperVersion* const sv = Family()->GetReferencedSuperVersion(dbfull());
    batch.Attach(0, 1, sv, db_->GetLatestSequenceNumber(),
                 /*callback=*/nullptr);
    EXPECT_EQ(featured.merge_context.point_read != nullptr, batch.active());
    EXPECT_EQ(featureless.merge_context.point_read, nullptr);
    EXPECT_FALSE(batch.Again(Status::OK()));
    dbfull()->CleanupSuperVersion(sv);
  }
  EXPECT_EQ(featured.merge_context.point_read, nullptr);
  delete other;
}

// The PointRead of a lookup in one delta file takes the operands with their
// sequence numbers.
TEST(PointReadOfDeltaFileTest, TakesOperands) {
  DeltaOperands operands;
  PointRead collecting(&operands);
  EXPECT_TRUE(collecting.TakesOperand(7, "x", /*pinner=*/nullptr));
  ASSERT_EQ(operands.size(), 1);
  EXPECT_EQ(operands[0].seq, 7);
  EXPECT_EQ(operands[0].value, "x");
  EXPECT_FALSE(collecting.NeedsSequence());
  EXPECT_FALSE(collecting.NeedsRestart());

  PointRead plain(/*operands=*/nullptr);
  EXPECT_FALSE(plain.TakesOperand(7, "x", /*pinner=*/nullptr));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
