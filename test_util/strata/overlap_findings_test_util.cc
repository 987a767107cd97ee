//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_findings_test_util.h"

#include <cstdio>

namespace ROCKSDB_NAMESPACE {

void OverlapFindings::Report(const std::string& text) {
  std::lock_guard<std::mutex> lock(mutex_);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_)
          .count();
  ++count_;
  if (findings_.empty()) {
    first_seconds_ = seconds;
  }
  if (findings_.size() < max_findings_) {
    char time[32];
    snprintf(time, sizeof(time), "%.3f s: ", seconds);
    findings_.push_back(time + text);
    fprintf(stderr, "%s\n", findings_.back().c_str());
  }
  if (findings_.size() >= max_findings_) {
    is_full_ = true;
  }
}

void OverlapFindings::Must(const Status& s, const std::string& what) {
  if (!s.ok()) {
    Report("ERROR " + what + ": " + s.ToString());
  }
}

std::vector<std::string> OverlapFindings::All() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return findings_;
}

double OverlapFindings::FirstSeconds() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return first_seconds_;
}

}  // namespace ROCKSDB_NAMESPACE
