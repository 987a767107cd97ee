//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// A short history of a DB that several threads write at once while background
// jobs flush, compact, collect and fold. Each thread writes keys of its own, so
// it knows what every read of these must return, at any moment and at any
// snapshot. All steps are chosen by the seed.
//
// Not thread-safe: Run() starts the threads itself.
class SeededWorkload {
 public:
  struct Options {
    uint64_t seed = 0;
    size_t threads = 3;
    size_t steps = 60;  // of each thread
  };

  // root: a directory that does not exist; Run() creates the DB in it.
  SeededWorkload(const Options& options, std::string root);
  ~SeededWorkload();
  SeededWorkload(const SeededWorkload&) = delete;
  SeededWorkload& operator=(const SeededWorkload&) = delete;

  // Runs the history and closes the DB. Returns what was wrong, as lines; empty
  // if nothing was.
  std::string Run();

 private:
  class Writer;
  using Contents = std::map<std::string, std::string>;

  Status Open();
  void Expect(bool condition, const std::string& what);
  void ExpectOk(const Status& s, const std::string& what);
  void CheckAll(const Contents& expected, const std::string& when);

  const Options options_;
  const std::string root_;
  std::unique_ptr<DB> db_;
  std::string complaints_;  // changed by the thread that has the baton
};

}  // namespace ROCKSDB_NAMESPACE
