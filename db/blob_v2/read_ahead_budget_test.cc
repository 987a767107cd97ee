//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/read_ahead_budget.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "db/blob_v2/blob_read_group.h"
#include "db/db_test_util.h"
#include "port/stack_trace.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

class ReadAheadBudgetTest : public DBTestBase {
 protected:
  ReadAheadBudgetTest()
      : DBTestBase("read_ahead_budget_test", /*env_do_fsync=*/false) {}
};

TEST_F(ReadAheadBudgetTest, SharesTheLimitAmongScansThatHold) {
  const ReadOptions read_options;
  const ImmutableOptions ioptions;
  ReadAheadBudget budget(uint64_t{4} << 20);
  constexpr uint64_t kMost = uint64_t{1} << 30;
  ReadAheadBudget::Scan a;
  ReadAheadBudget::Scan b;
  EXPECT_EQ(budget.Share(a, kMost), uint64_t{3} << 20);
  EXPECT_EQ(budget.Share(a, 1000), 1000);
  const auto groups_of = [&](uint64_t file, int n) {
    std::vector<BlobReadGroup::Item> items(n);
    for (int i = 0; i < n; ++i) {
      items[i].file_number = file;
      items[i].offset = 1000000 * i;
      items[i].size = 100000;
    }
    std::vector<size_t> group_of;
    std::vector<size_t> index_of;
    return BlobReadGroup::Divide(std::move(items), read_options, ioptions,
                                 /*source=*/nullptr, &group_of, &index_of);
  };
  const auto first = groups_of(7, 3);
  const auto second = groups_of(8, 2);
  budget.Hold(&a, first);
  EXPECT_EQ(budget.TEST_Held(), 300000);
  EXPECT_EQ(budget.Share(a, kMost), uint64_t{3} << 20);
  EXPECT_EQ(budget.Share(b, kMost), uint64_t{3} << 19);
  budget.Hold(&b, second);
  EXPECT_EQ(budget.TEST_Held(), 500000);
  EXPECT_EQ(budget.Share(a, kMost), uint64_t{3} << 19);
  for (const auto& group : first) {
    group->LetGo();
  }
  EXPECT_EQ(budget.TEST_Held(), 200000);
  EXPECT_EQ(budget.Share(b, kMost), uint64_t{3} << 20);
  for (const auto& group : second) {
    group->LetGo();
  }
  EXPECT_EQ(budget.TEST_Held(), 0);

  // With many scans, each still has the minimum share.
  std::vector<ReadAheadBudget::Scan> scans(100);
  std::vector<std::vector<std::shared_ptr<BlobReadGroup>>> all;
  for (size_t i = 0; i < scans.size(); ++i) {
    all.push_back(groups_of(100 + i, 1));
    budget.Hold(&scans[i], all.back());
  }
  EXPECT_EQ(budget.Share(a, kMost), ReadAheadBudget::kMinShare);
  for (const auto& groups : all) {
    groups[0]->LetGo();
  }
}

// A group takes memory only from the time on when the scan itself reads it. So
// idle iterators over cached values leave the limit to others.
TEST_F(ReadAheadBudgetTest, ReadsThatAreNotHandedOverAreNotHeld) {
  EnableCallBack("ReadAheadGauge::OnRead:Micros",
                 [](void* micros) { *static_cast<uint64_t*>(micros) = 0; });
  Options options = CurrentOptions();
  options.enable_blob_files = true;
  options.min_blob_size = 100;
  options.enable_blob_address_map = true;
  options.disable_auto_compactions = true;
  options.compression = kNoCompression;
  options.write_buffer_size = 64 << 20;
  DestroyAndReopen(options);
  constexpr int kKeys = 2000;
  constexpr size_t kValueSize = 10 << 10;
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(Put(Key(i), std::string(kValueSize, 'v')));
  }
  ASSERT_OK(Flush());
  ReadAheadBudget* const budget = ReadAheadBudget::OfProcess();
  ASSERT_EQ(budget->TEST_Held(), 0);
  constexpr uint64_t kIterators = 8;
  std::vector<std::unique_ptr<Iterator>> iterators;
  for (uint64_t n = 0; n < kIterators; ++n) {
    iterators.emplace_back(db_->NewIterator(ReadOptions()));
    iterators.back()->SeekToFirst();
    for (int i = 0; i < kKeys / 2; ++i) {
      ASSERT_TRUE(iterators.back()->Valid());
      iterators.back()->Next();
    }
  }
  // The group that the scan has reached, and the one of the entry that it has
  // left.
  EXPECT_LE(budget->TEST_Held(), 2 * kIterators * BlobReadGroup::kMaxSpan);
  for (const auto& iter : iterators) {
    EXPECT_EQ(iter->value().size(), kValueSize);
    EXPECT_OK(iter->status());
  }
  iterators.clear();
  EXPECT_EQ(budget->TEST_Held(), 0);
  DisableCallBacks();
}

// Many iterators in the middle of scans hold no more than the limit together,
// and each continues at its position.
TEST_F(ReadAheadBudgetTest, ManyIteratorsStayWithinTheLimit) {
  // Reads are handed to other threads although they come from the page cache:
  // what was not read yet cannot be freed.
  EnableCallBack("ReadAheadGauge::OnRead:Micros", [](void* micros) {
    *static_cast<uint64_t*>(micros) = 1000000;
  });
  Options options = CurrentOptions();
  options.enable_blob_files = true;
  options.min_blob_size = 100;
  options.enable_blob_address_map = true;
  options.disable_auto_compactions = true;
  options.compression = kNoCompression;
  options.write_buffer_size = 64 << 20;
  DestroyAndReopen(options);
  constexpr int kKeys = 200;
  constexpr size_t kValueSize = 128 << 10;
  const auto value_of = [](int i) {
    return std::to_string(i) +
           std::string(kValueSize, static_cast<char>('a' + i % 26));
  };
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(Put(Key(i), value_of(i)));
  }
  ASSERT_OK(Flush());
  ReadAheadBudget* const budget = ReadAheadBudget::OfProcess();
  ASSERT_EQ(budget->TEST_Held(), 0);
  constexpr int kIterators = 30;
  constexpr int kFirstSteps = 40;
  std::vector<std::unique_ptr<Iterator>> iterators;
  uint64_t most = 0;
  for (int n = 0; n < kIterators; ++n) {
    iterators.emplace_back(db_->NewIterator(ReadOptions()));
    iterators.back()->SeekToFirst();
    for (int i = 0; i < kFirstSteps; ++i) {
      ASSERT_TRUE(iterators.back()->Valid());
      ASSERT_EQ(iterators.back()->value(), Slice(value_of(i)));
      iterators.back()->Next();
    }
    most = std::max(most, budget->TEST_Held());
  }
  // Without the budget, the iterators would hold 30 times 4 MB. Values that are
  // being read cannot be freed, so the limit is exceeded a little.
  EXPECT_GT(most, ReadAheadBudget::kLimit / 2);
  EXPECT_LE(most, ReadAheadBudget::kLimit + (uint64_t{8} << 20));
  // The iterators take turns, with a few steps each.
  for (int i = kFirstSteps; i < kKeys; i += 8) {
    for (const auto& iter : iterators) {
      for (int j = i; j < i + 8; ++j) {
        ASSERT_TRUE(iter->Valid());
        ASSERT_EQ(iter->key(), Slice(Key(j)));
        ASSERT_EQ(iter->value(), Slice(value_of(j)));
        iter->Next();
      }
    }
    EXPECT_LE(budget->TEST_Held(),
              ReadAheadBudget::kLimit + (uint64_t{8} << 20));
  }
  for (const auto& iter : iterators) {
    EXPECT_FALSE(iter->Valid());
    EXPECT_OK(iter->status());
  }
  iterators.clear();
  EXPECT_EQ(budget->TEST_Held(), 0);
  DisableCallBacks();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
