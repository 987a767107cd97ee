//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/seeded_trace_test_util.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "util/hash.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Enough to see how the threads of a deadlock got there.
constexpr size_t kLastSteps = 60;

// Four numbers of 20 digits, the operation, and some signs.
constexpr size_t kMaxLine = 160;

// Above the numbers of files that a test opens.
constexpr int kFirstFile = 500;

}  // namespace

SeededTrace::SeededTrace(const char* path) : last_(kLastSteps) {
  if (path != nullptr) {
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    // The numbers of other files stay the same, because they are in the trace.
    file_ = fcntl(file, F_DUPFD, kFirstFile);
    if (file_ < 0) {
      std::perror(path);
      std::abort();
    }
    close(file);
  }
}

SeededTrace::~SeededTrace() {
  if (file_ >= 0) {
    close(file_);
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
  if (file_ >= 0) {
    // A buffer would be lost when the process ends by a signal. The number is
    // that of the call: write() would be a step itself.
    char line[kMaxLine];
    syscall(SYS_write, file_, line, Describe(step, line, sizeof(line)));
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
    char line[kMaxLine];
    lines.append(line, Describe(last_[i % kLastSteps], line, sizeof(line)));
  }
  return lines;
}

size_t SeededTrace::Describe(const Step& step, char* line, size_t size) {
  const int length = std::snprintf(
      line, size, "%12" PRIu64 " T%" PRIu64 " %s #%" PRIu64 " %" PRIx64 "\n",
      step.nanos, step.thread, step.op, step.object, step.detail);
  return static_cast<size_t>(length);
}

}  // namespace ROCKSDB_NAMESPACE
