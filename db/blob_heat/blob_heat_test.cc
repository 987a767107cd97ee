//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_heat/blob_heat.h"

#include <memory>
#include <string>

#include "monitoring/statistics_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/statistics.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class BlobHeatTest : public testing::Test {
 protected:
  static constexpr uint64_t kBudget = uint64_t{64} << 10;
  static constexpr uint64_t kBatch = kBudget / BlobHeat::kBatchesOfBudget;

  BlobHeatTest() : heat_(/*num_paths=*/2, statistics_.get()) {
    heat_.SetOnDue([this] { ++num_due_; });
  }

  static BlobFileSlotTable::Place Cold(uint32_t path_id = 1) {
    return BlobFileSlotTable::Place{path_id, HotMark()};
  }
  void Read(const std::string& key, const BlobFileSlotTable::Place& place,
            uint64_t size = 10) {
    const MapName name{MapKeyHash::Of(key, /*seed=*/301), /*seq=*/1,
                       /*birth=*/0};
    heat_.OnRead(key, name, place, size);
  }

  std::shared_ptr<Statistics> statistics_ = CreateDBStatistics();
  BlobHeat heat_;
  int num_due_ = 0;
};

TEST_F(BlobHeatTest, CountsNothingWithoutABudget) {
  EXPECT_FALSE(heat_.IsOn());
  EXPECT_EQ(heat_.MemoryUsage(), 0);
  for (int i = 0; i < 10; ++i) {
    Read("a", Cold(), kBatch);
  }
  EXPECT_EQ(heat_.queue()->Count(), 0);
  EXPECT_EQ(num_due_, 0);
}

TEST_F(BlobHeatTest, ValuesWithEnoughReadsWait) {
  heat_.Configure(kBudget, /*path_id=*/0);
  EXPECT_TRUE(heat_.IsOn());
  EXPECT_EQ(heat_.MemoryUsage(), FrequencySketch::kMinSize);
  Read("a", Cold(), kBatch);
  EXPECT_EQ(heat_.queue()->Count(), 0);
  Read("a", Cold(), kBatch);
  EXPECT_EQ(heat_.queue()->Count(), 1);
  EXPECT_EQ(num_due_, 1);
  heat_.queue()->Clear();
  heat_.SetThreshold(4);
  Read("a", Cold());
  EXPECT_EQ(heat_.queue()->Count(), 0);
  Read("a", Cold());
  EXPECT_EQ(heat_.queue()->Count(), 1);
}

TEST_F(BlobHeatTest, ValuesOnTheHotPathAreCountedButDoNotWait) {
  heat_.Configure(kBudget, /*path_id=*/0);
  const BlobFileSlotTable::Place hot{0, HotMark::WithHome(1)};
  for (int i = 0; i < 3; ++i) {
    Read("a", Cold(/*path_id=*/0));
    Read("b", hot);
  }
  EXPECT_EQ(heat_.queue()->Count(), 0);
  EXPECT_EQ(heat_.Estimate(MapKeyHash::Of("a", 301)), 3);
  EXPECT_EQ(heat_.Estimate(MapKeyHash::Of("b", 301)), 3);
  EXPECT_EQ(statistics_->getTickerCount(BLOB_MAP_HOT_READ), 3);
  // An id beyond the last path stands for that.
  heat_.Configure(kBudget, /*path_id=*/1);
  Read("a", Cold(/*path_id=*/3));
  EXPECT_EQ(heat_.queue()->Count(), 0);
  Read("a", Cold(/*path_id=*/0));
  EXPECT_EQ(heat_.queue()->Count(), 1);
}

// Their file is drained. They wait after that.
TEST_F(BlobHeatTest, HotValuesOnAnotherPathDoNotWait) {
  heat_.Configure(kBudget, /*path_id=*/0);
  const BlobFileSlotTable::Place place{1, HotMark::WithHome(0)};
  for (int i = 0; i < 3; ++i) {
    Read("a", place);
  }
  EXPECT_EQ(heat_.queue()->Count(), 0);
  EXPECT_EQ(heat_.Estimate(MapKeyHash::Of("a", 301)), 3);
}

TEST_F(BlobHeatTest, LargeValuesDoNotWait) {
  heat_.Configure(kBudget, /*path_id=*/0);
  for (int i = 0; i < 3; ++i) {
    Read("a", Cold(), kBudget / BlobHeat::kMinValuesOfBudget + 1);
    Read("b", Cold(), kBudget / BlobHeat::kMinValuesOfBudget);
  }
  EXPECT_EQ(heat_.queue()->Count(), 1);
}

TEST_F(BlobHeatTest, ATinyBudgetIsForNoValue) {
  heat_.Configure(BlobHeat::kLeastBudget - 1, /*path_id=*/0);
  for (int i = 0; i < 3; ++i) {
    Read("a", Cold(), 1);
  }
  EXPECT_EQ(heat_.queue()->Count(), 0);
  heat_.Configure(BlobHeat::kLeastBudget, /*path_id=*/0);
  Read("a", Cold(), 1);
  EXPECT_EQ(heat_.queue()->Count(), 1);
}

TEST_F(BlobHeatTest, AnotherBudgetBeginsAfresh) {
  heat_.Configure(kBudget, /*path_id=*/0);
  heat_.SetThreshold(9);
  for (int i = 0; i < 10; ++i) {
    Read("a", Cold());
  }
  EXPECT_EQ(heat_.queue()->Count(), 1);
  // The same options change nothing.
  heat_.Configure(kBudget, /*path_id=*/0);
  EXPECT_EQ(heat_.threshold(), 9);
  EXPECT_EQ(heat_.queue()->Count(), 1);

  heat_.Configure(0, /*path_id=*/0);
  EXPECT_FALSE(heat_.IsOn());
  EXPECT_EQ(heat_.Estimate(MapKeyHash::Of("a", 301)), 0);
  EXPECT_EQ(heat_.queue()->Count(), 0);

  // The sketch of this size has stayed.
  heat_.Configure(kBudget, /*path_id=*/0);
  EXPECT_EQ(heat_.threshold(), BlobHeat::kMinReads);
  EXPECT_EQ(heat_.Estimate(MapKeyHash::Of("a", 301)), 10);
  heat_.Configure(uint64_t{1} << 30, /*path_id=*/0);
  EXPECT_EQ(heat_.Estimate(MapKeyHash::Of("a", 301)), 0);
  EXPECT_EQ(
      heat_.MemoryUsage(),
      FrequencySketch::kMinSize + FrequencySketch::SizeFor(uint64_t{1} << 30));
}

TEST_F(BlobHeatTest, GivesUpWhatWaits) {
  heat_.Configure(kBudget, /*path_id=*/0);
  Read("a", Cold());
  Read("a", Cold());
  EXPECT_EQ(heat_.queue()->Count(), 1);
  heat_.SetHand(7);
  heat_.SetLacksRoom(true);
  heat_.GiveUpWaiting();
  EXPECT_EQ(heat_.queue()->Count(), 0);
  EXPECT_EQ(heat_.hand(), 0);
  EXPECT_FALSE(heat_.lacks_room());
  EXPECT_EQ(heat_.threshold(), FrequencySketch::kMaxEstimate);
}

TEST_F(BlobHeatTest, EditsStayWithinTheBudget) {
  heat_.Configure(1000, /*path_id=*/0);
  EXPECT_TRUE(heat_.Reserve(/*added=*/600, /*before=*/0, /*after=*/600));
  EXPECT_EQ(heat_.reserved(), 600);
  EXPECT_FALSE(heat_.Reserve(401, 0, 401));
  EXPECT_TRUE(heat_.Reserve(400, 0, 400));
  EXPECT_EQ(heat_.reserved(), 1000);
  heat_.EndReserve(600);
  heat_.EndReserve(400);
  EXPECT_EQ(heat_.reserved(), 0);
  // A file is replaced by one that is not larger, although the budget was
  // reduced.
  heat_.Configure(500, /*path_id=*/0);
  EXPECT_TRUE(heat_.Reserve(600, 1000, 1000));
  heat_.EndReserve(600);
  EXPECT_FALSE(heat_.Reserve(600, 1000, 1001));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
