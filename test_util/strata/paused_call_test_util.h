//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "rocksdb/db.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// Calls fn in a thread that has paused the background work of the DB. fn must
// return before the pause ends. If it does not within kTestPatience, the test
// fails and the pause ends.
inline void CallDuringAPause(DB* db, const std::function<void()>& fn) {
  std::atomic<bool> is_done{false};
  std::thread thread([&] {
    EXPECT_OK(db->PauseBackgroundWork());
    fn();
    is_done = true;
  });
  EXPECT_TRUE(WaitUntil([&] { return is_done.load(); }))
      << "the call waits for the end of the pause";
  EXPECT_OK(db->ContinueBackgroundWork());
  thread.join();
}

}  // namespace ROCKSDB_NAMESPACE
