//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// A thread of the library that a test holds at a sync point.

#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// Holds the first thread that reaches a sync point until Release(), but not
// longer than kTestPatience. The destructor releases it, and removes all
// callbacks.
class HeldPoint {
 public:
  explicit HeldPoint(const std::string& point)
      : released_(std::make_shared<std::atomic<bool>>(false)),
        reached_(EnableCallBackOnce(point, [released = released_](void*) {
          EXPECT_TRUE(WaitUntil([&] { return released->load(); }))
              << "the thread is not released";
        })) {}
  ~HeldPoint() {
    Release();
    DisableCallBacks();
  }
  HeldPoint(const HeldPoint&) = delete;
  HeldPoint& operator=(const HeldPoint&) = delete;

  // Returns false if no thread reaches the point within kTestPatience.
  bool WaitUntilReached() const {
    return WaitUntil([this] { return reached_->load(); });
  }
  void Release() { released_->store(true); }

 private:
  const std::shared_ptr<std::atomic<bool>> released_;
  const std::shared_ptr<std::atomic<bool>> reached_;
};

}  // namespace ROCKSDB_NAMESPACE
