//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Runs of histories of a DB whose threads are those of SeededThreads, each in a
// process of its own, because background threads of Env::Default() do not end.
// The main() of a test calls StartSeededTest() first.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/seeded_threads_test_util.h"

namespace ROCKSDB_NAMESPACE {

struct SeededResult {
  // What was wrong, as lines; empty if nothing was.
  std::string complaints;
  // DescribeSeededFiles() of what the history wrote.
  std::string files;
};

// root: a directory that does not exist yet.
using SeededHistory =
    std::function<SeededResult(uint64_t seed, const std::string& root)>;

struct SeededRun {
  // The history has ended and was right.
  bool is_right = false;
  // All that is known: complaints, the number and the hash of the steps, the
  // files, what was printed, the reason of a crash. It depends on the history
  // and the seed alone.
  std::string text;
};

// Returns options that vary with the seed in all that can be chosen.
SeededThreads::Options SeededOptions(uint64_t seed);

// If this process is one of RunSeed(), runs the history and does not return.
// Otherwise, waits for the end of other programs that use the same root.
// Returns false and prints a message if that is impossible.
// histories: by name.
bool StartSeededTest(int argc, char** argv,
                     const std::map<std::string, SeededHistory>& histories);

// Runs a history. Its files remain until the next run.
// REQUIRES: main() has called StartSeededTest() with a history of that name
SeededRun RunSeed(const std::string& history, uint64_t seed);

void RemoveSeededFiles();

// Returns a line with the name, the size and the hash of the contents of each
// file below the directory, sorted.
std::string DescribeSeededFiles(const std::string& directory);

}  // namespace ROCKSDB_NAMESPACE
