//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_injector_test_util.h"

#include <algorithm>
#include <utility>

#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

namespace {

bool IsInfoLog(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string name =
      slash == std::string::npos ? path : path.substr(slash + 1);
  return name == "LOG" || name.compare(0, 4, "LOG.") == 0;
}

}  // namespace

void HistoryInjector::SetCrashCallback(std::function<void()> on_crash) {
  MutexLock l(&mutex_);
  on_crash_ = std::move(on_crash);
}

void HistoryInjector::Arm(Fault fault) {
  MutexLock l(&mutex_);
  fault_ = std::move(fault);
  is_armed_ = true;
  is_crashed_ = false;
  num_candidates_ = 0;
  std::fill(std::begin(counts_), std::end(counts_), 0);
  fired_at_.clear();
}

void HistoryInjector::Disarm() {
  MutexLock l(&mutex_);
  is_armed_ = false;
  is_crashed_ = false;
}

bool HistoryInjector::IsHit(Op op) {
  mutex_.AssertHeld();
  return is_armed_ &&
         std::find(fault_.ops.begin(), fault_.ops.end(), op) !=
             fault_.ops.end() &&
         ++num_candidates_ == fault_.n;
}

IOStatus HistoryInjector::MakeError(const std::string& path) const {
  const bool has_space = fault_.effect != Effect::kNoSpace &&
                         fault_.effect != Effect::kRetryableNoSpace;
  IOStatus s = has_space ? IOStatus::IOError("injected by the sweep", path)
                         : IOStatus::NoSpace("injected by the sweep", path);
  s.SetRetryable(fault_.effect == Effect::kRetryable ||
                 fault_.effect == Effect::kRetryableNoSpace);
  return s;
}

HistoryInjector::Decision HistoryInjector::OnOperation(
    Op op, const std::string& path) {
  Decision decision;
  MutexLock l(&mutex_);
  if (is_crashed_) {
    decision.status = IOStatus::IOError("after the crash of the sweep", path);
    return decision;
  }
  if (IsInfoLog(path)) {
    return decision;
  }
  ++counts_[static_cast<size_t>(op)];
  if (!IsHit(op)) {
    return decision;
  }
  fired_at_ = std::string(HistoryFileOpName(op)).append(" ").append(path);
  if (fault_.effect == Effect::kNotDone) {
    decision.is_not_done = true;
    return decision;
  }
  decision.status = MakeError(path);
  decision.is_short = fault_.effect == Effect::kShortWrite;
  decision.is_late = fault_.effect == Effect::kLate;
  if (fault_.effect == Effect::kCrash) {
    is_crashed_ = true;
    if (on_crash_) {
      on_crash_();
    }
  }
  return decision;
}

bool HistoryInjector::has_fired() const {
  MutexLock l(&mutex_);
  return !fired_at_.empty();
}

bool HistoryInjector::is_crashed() const {
  MutexLock l(&mutex_);
  return is_crashed_;
}

std::string HistoryInjector::fired_at() const {
  MutexLock l(&mutex_);
  return fired_at_;
}

uint64_t HistoryInjector::count(Op op) const {
  MutexLock l(&mutex_);
  return counts_[static_cast<size_t>(op)];
}

}  // namespace ROCKSDB_NAMESPACE
