//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE::on_disk {

// Parts of the programs of this folder, which are linked once with RocksDB and
// once with Strata.

// Ends the program with an error if a step has failed.
inline void Check(const Status& s, const char* what) {
  if (!s.ok()) {
    fprintf(stderr, "%s: %s\n", what, s.ToString().c_str());
    exit(1);
  }
}

// The same for a condition.
inline void Require(bool condition, const std::string& what) {
  if (!condition) {
    fprintf(stderr, "not true: %s\n", what.c_str());
    exit(1);
  }
}

// Random numbers that are the same with any library.
//
// Not thread-safe.
class Numbers {
 public:
  explicit Numbers(uint64_t seed = 42) : state_(seed) {}

  uint32_t Below(uint32_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state_ >> 33) % n;
  }

  std::string Bytes(size_t n) {
    std::string bytes;
    while (bytes.size() < n) {
      bytes.push_back(static_cast<char>(Below(256)));
    }
    return bytes;
  }

 private:
  uint64_t state_;
};

inline std::string Key(uint32_t n) {
  char key[24];
  snprintf(key, sizeof(key), "key%08u", n);
  return key;
}

}  // namespace ROCKSDB_NAMESPACE::on_disk
