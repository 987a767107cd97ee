//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Callbacks of tests at sync points. Tests and fixtures that set one call
// DisableCallBacks() before anything that a callback uses is destroyed.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

// Calls fn(arg) whenever the point is reached.
inline void EnableCallBack(const std::string& point,
                           std::function<void(void*)> fn) {
  SyncPoint::GetInstance()->SetCallBack(point, std::move(fn));
  SyncPoint::GetInstance()->EnableProcessing();
}

// Calls fn(arg) only the first time, because fn itself may reach the point. The
// result becomes true when the point is reached.
inline std::shared_ptr<std::atomic<bool>> EnableCallBackOnce(
    const std::string& point, std::function<void(void*)> fn) {
  auto reached = std::make_shared<std::atomic<bool>>(false);
  EnableCallBack(point, [reached, fn = std::move(fn)](void* arg) {
    if (!reached->exchange(true)) {
      fn(arg);
    }
  });
  return reached;
}

// Removes all callbacks and dependencies. Waits for callbacks that run.
inline void DisableCallBacks() {
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->LoadDependency({});
  SyncPoint::GetInstance()->ClearAllCallBacks();
}

}  // namespace ROCKSDB_NAMESPACE
