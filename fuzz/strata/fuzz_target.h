//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fuzz/strata/fuzz_input.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {
namespace fuzz {

// A fuzz target: the function that a fuzzer calls with its inputs.
//
// STRATA_FUZZ_TARGET(name, run) makes `run`, a void(FuzzInput*), the target
// `name` of its source file, which is called <name>_fuzzer.cc. libFuzzer wants
// one program for each target and one function name for all of them.
// fuzz_corpus_test has all targets in one program, and finds them in a list.
struct FuzzTarget {
  const char* name = nullptr;
  void (*run)(FuzzInput*) = nullptr;
};

// The targets of this program. Static initializers add them, so main() finds
// all of them. The list is not destroyed, since other static objects may be
// destroyed later.
inline std::vector<FuzzTarget>& FuzzTargets() {
  static auto* const targets = new std::vector<FuzzTarget>;
  return *targets;
}

inline bool AddFuzzTarget(const char* name, void (*run)(FuzzInput*)) {
  FuzzTargets().push_back({name, run});
  return true;
}

}  // namespace fuzz
}  // namespace ROCKSDB_NAMESPACE

#ifdef STRATA_FUZZ_CORPUS_TEST
#define STRATA_FUZZ_TARGET(name, run)           \
  [[maybe_unused]] static const bool kIsAdded = \
      ROCKSDB_NAMESPACE::fuzz::AddFuzzTarget(#name, run);
#else
#define STRATA_FUZZ_TARGET(name, run)                                       \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { \
    ROCKSDB_NAMESPACE::fuzz::FuzzInput input(data, size);                   \
    run(&input);                                                            \
    return 0;                                                               \
  }
#endif  // STRATA_FUZZ_CORPUS_TEST
