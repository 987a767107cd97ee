//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>

#include "db/address_map/map_memory_account.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// Has room for `limit` bytes of a map. Thread-safe, except for changes of the
// limit.
class TestMapCharge : public MapMemoryCharge {
 public:
  Status SetCharged(size_t total) override {
    EXPECT_EQ(0u, total % MapMemoryAccount::kStep);
    ++calls;
    if (total > limit) {
      return Status::MemoryLimit("Test");
    }
    charged = total;
    return Status::OK();
  }

  size_t limit = ~size_t{0};
  std::atomic<size_t> charged{0};
  std::atomic<int> calls{0};
};

}  // namespace ROCKSDB_NAMESPACE
