//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/seeded_trace_test_util.h"

#include <cinttypes>
#include <cstdlib>
#include <cstring>

#include "util/hash.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Enough to see how the threads of a deadlock got there.
constexpr size_t kLastSteps = 60;

}  // namespace

SeededTrace::SeededTrace(const std::string& path) : last_(kLastSteps) {
  if (!path.empty()) {
    file_ = std::fopen(path.c_str(), "w");
    if (file_ == nullptr) {
      std::fprintf(stderr, "%s cannot be written\n", path.c_str());
      std::abort();
    }
  }
}

SeededTrace::~SeededTrace() {
  if (file_ != nullptr) {
    std::fclose(file_);
  }
}

void SeededTrace::Add(uint64_t nanos, size_t thread, const char* op,
                      const void* object, uint64_t detail) {
  Step& step = last_[steps_ % kLastSteps];
  step.nanos = nanos;
  step.thread = thread;
  step.object = NumberOf(object);
  step.detail = detail;
  std::snprintf(step.op, sizeof(step.op), "%s", op);
  const uint64_t numbers[] = {step.nanos, step.thread, step.object,
                              step.detail};
  hash_ = Hash64(step.op, std::strlen(step.op), hash_);
  hash_ =
      Hash64(reinterpret_cast<const char*>(numbers), sizeof(numbers), hash_);
  ++steps_;
  if (file_ != nullptr) {
    std::fputs(Describe(step).c_str(), file_);
    // The process may end by a signal.
    std::fflush(file_);
  }
}

size_t SeededTrace::NumberOf(const void* object) {
  return object == nullptr
             ? 0
             : numbers_.emplace(object, numbers_.size() + 1).first->second;
}

std::string SeededTrace::LastSteps() const {
  std::string lines;
  const uint64_t first = steps_ > kLastSteps ? steps_ - kLastSteps : 0;
  for (uint64_t i = first; i < steps_; ++i) {
    lines += Describe(last_[i % kLastSteps]);
  }
  return lines;
}

std::string SeededTrace::Describe(const Step& step) {
  char line[200];
  std::snprintf(line, sizeof(line),
                "%12" PRIu64 " T%" PRIu64 " %s #%" PRIu64 " %" PRIx64 "\n",
                step.nanos, step.thread, step.op, step.object, step.detail);
  return line;
}

}  // namespace ROCKSDB_NAMESPACE
