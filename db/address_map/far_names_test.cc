// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/far_names.h"

#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class FarNamesTest : public testing::Test {
 protected:
  // Returns the sequence numbers of the key's names below seq.
  std::vector<SequenceNumber> Below(const MapKeyHash& key,
                                    SequenceNumber seq) const {
    std::vector<SequenceNumber> result;
    for (const MapName& name : names_.Below(key, seq)) {
      EXPECT_TRUE(name.key == key);
      result.push_back(name.seq);
    }
    return result;
  }

  const MapKeyHash key_{1000, 5};
  FarNames names_;
};

TEST_F(FarNamesTest, HasWhatWasAddedAndNotRemoved) {
  const MapName name{key_, 7, 1};
  ASSERT_FALSE(names_.Has(name));
  names_.Add(name);
  names_.Add(MapName{key_, 7, 2});
  ASSERT_TRUE(names_.Has(name));
  ASSERT_FALSE(names_.Has(MapName{key_, 7, 3}));
  ASSERT_EQ(2u, names_.Count());
  names_.Remove(name);
  ASSERT_FALSE(names_.Has(name));
  ASSERT_EQ(1u, names_.Count());
}

TEST_F(FarNamesTest, BelowFindsTheOlderNamesOfOneKey) {
  ASSERT_TRUE(Below(key_, 100).empty());
  names_.Add(MapName{key_, 30, 0});
  names_.Add(MapName{key_, 10, 4});
  names_.Add(MapName{key_, 20, 9});
  names_.Add(MapName{MapKeyHash{1000, 4}, 11, 0});
  names_.Add(MapName{MapKeyHash{1000, 6}, 12, 0});
  names_.Add(MapName{MapKeyHash{999, 5}, 13, 0});
  ASSERT_EQ((std::vector<SequenceNumber>{10, 20}), Below(key_, 30));
  ASSERT_EQ((std::vector<SequenceNumber>{10, 20, 30}), Below(key_, 31));
  ASSERT_TRUE(Below(key_, 10).empty());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
