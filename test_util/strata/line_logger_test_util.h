//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Keeps the lines of LOG in memory, so that they do not go to the device of the
// DB.
//
// Thread-safe.
class LineLogger : public Logger {
 public:
  LineLogger() : Logger(InfoLogLevel::INFO_LEVEL) {}

  using Logger::Logv;
  void Logv(const char* format, va_list ap) override {
    char line[4096];
    vsnprintf(line, sizeof(line), format, ap);
    const std::lock_guard<std::mutex> lock(mutex_);
    lines_.emplace_back(line);
  }

  // Returns the number of lines with both texts, the second one behind the
  // first one.
  size_t Count(const std::string& first, const std::string& second = "") {
    size_t count = 0;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string& line : lines_) {
      const size_t begin = line.find(first);
      if (begin != std::string::npos &&
          line.find(second, begin) != std::string::npos) {
        ++count;
      }
    }
    return count;
  }
  bool Has(const std::string& first, const std::string& second = "") {
    return Count(first, second) > 0;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by mutex_
};

}  // namespace ROCKSDB_NAMESPACE
