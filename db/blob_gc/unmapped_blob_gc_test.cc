//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/unmapped_blob_gc.h"

#include <algorithm>

#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class UnmappedBlobGcTest : public testing::Test {
 protected:
  using Ssts = std::unordered_set<uint64_t>;

  static std::vector<uint64_t> Pick(
      const std::vector<UnmappedBlobGc::BlobFile>& files, double limit) {
    std::vector<uint64_t> numbers = UnmappedBlobGc::PickSsts(files, limit);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }
};

TEST_F(UnmappedBlobGcTest, OldestFirstUntilTheLimitIsKept) {
  using Numbers = std::vector<uint64_t>;
  const Ssts first{1, 2};
  const Ssts none;
  const Ssts third{3};
  const Ssts fourth{4};
  const std::vector<UnmappedBlobGc::BlobFile> files{{100, 50, &first},
                                                    {100, 50, &none},
                                                    {100, 100, &third},
                                                    {100, 60, &fourth}};
  // There are 400 bytes on disk, of which 260 are live.
  ASSERT_EQ(Numbers{}, Pick(files, 400.0 / 260));
  ASSERT_EQ((Numbers{1, 2}), Pick(files, 1.5));
  // The second blob file has no linked SST file.
  ASSERT_EQ((Numbers{1, 2}), Pick(files, 1.2));
  ASSERT_EQ((Numbers{1, 2, 3, 4}), Pick(files, 1.1));
  ASSERT_EQ((Numbers{1, 2, 3, 4}), Pick(files, 1.0));
  ASSERT_EQ(Numbers{}, Pick({}, 1.0));
  ASSERT_EQ(Numbers{}, Pick({{100, 100, &first}}, 1.0));
  ASSERT_EQ((Numbers{1, 2}), Pick({{100, 0, &first}}, 1000.0));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
