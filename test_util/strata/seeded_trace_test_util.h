//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// What the threads of SeededThreads did, step for step: a hash of all steps,
// the text of the last ones, and, on request, a file with the text of all, for
// a comparison of two runs line by line.
//
// Invariant: two runs that take the same steps have the same trace. Objects are
// therefore not known by their addresses but by numbers, in the order in which
// the objects first appear.
//
// Not thread-safe.
class SeededTrace {
 public:
  // path: of a file that gets all steps; nullptr if there is none. It has no
  // influence on the steps: no memory is allocated for it.
  explicit SeededTrace(const char* path);
  ~SeededTrace();
  SeededTrace(const SeededTrace&) = delete;
  SeededTrace& operator=(const SeededTrace&) = delete;

  // op: a string of C.
  // object: an address, or nullptr.
  void Add(uint64_t nanos, size_t thread, const char* op, const void* object,
           uint64_t detail);

  // Returns the number of the object; 0 for nullptr.
  size_t NumberOf(const void* object);

  uint64_t steps() const { return steps_; }
  uint64_t hash() const { return hash_; }
  // Lines, the last step at the end.
  std::string LastSteps() const;

 private:
  struct Step {
    uint64_t nanos = 0;
    uint64_t thread = 0;
    uint64_t object = 0;
    uint64_t detail = 0;
    char op[64] = "";  // a long one is cut off
  };

  // Writes a line. Returns its length.
  static size_t Describe(const Step& step, char* line, size_t size);

  std::unordered_map<const void*, size_t> numbers_;
  std::vector<Step> last_;  // a ring; the next step is at steps_ modulo size
  uint64_t steps_ = 0;
  uint64_t hash_ = 0;
  int file_ = -1;
};

}  // namespace ROCKSDB_NAMESPACE
