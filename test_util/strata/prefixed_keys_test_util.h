//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

// A set of keys for tests with prefix extractors: some keys of each of some
// prefixes of fixed size.
class PrefixedKeys {
 public:
  PrefixedKeys() = delete;

  static constexpr size_t kPrefixSize = 3;
  static constexpr int kPrefixes = 10;
  static constexpr int kKeysOfPrefix = 30;

  // REQUIRES: 0 <= prefix < 100, 0 <= i < 1000
  static std::string Of(int prefix, int i) {
    char buffer[48];
    snprintf(buffer, sizeof(buffer), "k%02d_%03d", prefix, i);
    return buffer;
  }

  static std::string Random(ROCKSDB_NAMESPACE::Random* rnd) {
    const int prefix = static_cast<int>(rnd->Uniform(kPrefixes));
    return Of(prefix, static_cast<int>(rnd->Uniform(kKeysOfPrefix)));
  }
};

}  // namespace ROCKSDB_NAMESPACE
