//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_sweep_report_test_util.h"

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "port/stack_trace.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The command of the running point; empty if there is none. A signal handler
// reads it, so it is no string.
char running_command[1024];

// Called by the handler of fatal signals.
void PrintRunningCommand() {
  static constexpr char kHead[] = "\nThe process crashed in this point:\n";
  const size_t size = strnlen(running_command, sizeof(running_command));
  if (size > 0) {
    // There is nothing to do if this fails.
    ssize_t ignored = write(STDERR_FILENO, kHead, sizeof(kHead) - 1);
    ignored = write(STDERR_FILENO, running_command, size);
    ignored = write(STDERR_FILENO, "\n", 1);
    (void)ignored;
  }
}

}  // namespace

void HistorySweepTotals::AddPoint(HistorySweepOutcome outcome,
                                  bool saw_errors) {
  ++points_;
  switch (outcome) {
    case HistorySweepOutcome::kNotReached:
      ++not_reached_;
      break;
    case HistorySweepOutcome::kWentOn:
      ++(saw_errors ? went_on_with_errors_ : went_on_);
      break;
    case HistorySweepOutcome::kResumed:
      ++resumed_;
      break;
    case HistorySweepOutcome::kReopened:
      ++reopened_;
      break;
    case HistorySweepOutcome::kRefused:
      ++refused_;
      break;
  }
}

std::string HistorySweepTotals::ToString() const {
  std::string text = "sweep: ";
  const auto add = [&text](uint64_t count, const char* what) {
    text.append(std::to_string(count)).append(what);
  };
  add(scripts_, " scripts, ");
  add(points_, " points: ");
  add(went_on_, " went on with right answers, ");
  add(went_on_with_errors_, " with errors, ");
  add(resumed_, " resumed, ");
  add(reopened_, " reopened, ");
  add(refused_, " refused by name, ");
  add(not_reached_, " not reached; ");
  add(findings_, " findings");
  return text;
}

HistorySweepWatch::HistorySweepWatch(uint64_t limit_seconds)
    : limit_seconds_(limit_seconds) {
  port::RegisterCrashCallback(PrintRunningCommand);
  thread_ = std::thread([this]() { Watch(); });
}

HistorySweepWatch::~HistorySweepWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void HistorySweepWatch::Begin(const std::string& command) {
  snprintf(running_command, sizeof(running_command), "%s", command.c_str());
  std::lock_guard<std::mutex> lock(mutex_);
  is_running_ = true;
  ++num_changes_;
  changed_.notify_all();
}

void HistorySweepWatch::End() {
  running_command[0] = '\0';
  std::lock_guard<std::mutex> lock(mutex_);
  is_running_ = false;
  ++num_changes_;
  changed_.notify_all();
}

void HistorySweepWatch::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!is_ending_) {
    const uint64_t seen = num_changes_;
    const auto has_changed = [&]() {
      return is_ending_ || num_changes_ != seen;
    };
    if (!is_running_) {
      changed_.wait(lock, has_changed);
    } else if (!changed_.wait_for(lock, std::chrono::seconds(limit_seconds_),
                                  has_changed)) {
      fprintf(stderr, "The point hangs: it runs for more than %d seconds.\n",
              static_cast<int>(limit_seconds_));
      abort();
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
