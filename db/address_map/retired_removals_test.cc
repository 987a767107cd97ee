//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/retired_removals.h"

#include <memory>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class RetiredRemovalsTest : public testing::Test {
 protected:
  static std::unique_ptr<DeferredRemovals> ListOf(size_t num_names) {
    auto list = std::make_unique<DeferredRemovals>();
    const std::vector<MapName> names(num_names);
    list->Add(names.data(), names.size());
    return list;
  }
  // Returns the numbers of names of the lists.
  std::vector<uint64_t> Take(uint64_t oldest_version, size_t max_names) {
    std::vector<uint64_t> result;
    for (const auto& list : retired_.Take(oldest_version, max_names)) {
      result.push_back(list->Count());
    }
    return result;
  }

  RetiredRemovals retired_;
};

TEST_F(RetiredRemovalsTest, ListsWaitForTheirVersions) {
  retired_.Add(ListOf(1), /*version_number=*/10);
  retired_.Add(ListOf(2), /*version_number=*/20);
  retired_.Add(ListOf(3), /*version_number=*/10);
  ASSERT_EQ(6u, retired_.NumNames());
  ASSERT_FALSE(retired_.Has(9));
  ASSERT_TRUE(Take(9, 100).empty());
  ASSERT_TRUE(retired_.Has(10));
  ASSERT_EQ((std::vector<uint64_t>{1, 3}), Take(10, 100));
  ASSERT_FALSE(retired_.Has(19));
  ASSERT_EQ((std::vector<uint64_t>{2}), Take(20, 100));
  ASSERT_TRUE(retired_.empty());
}

TEST_F(RetiredRemovalsTest, TakesOnlyAsManyListsAsReachTheLimit) {
  for (size_t n : {5, 6, 7}) {
    retired_.Add(ListOf(n), /*version_number=*/10);
  }
  ASSERT_EQ((std::vector<uint64_t>{5, 6}), Take(10, 10));
  ASSERT_EQ((std::vector<uint64_t>{7}), Take(10, 10));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
