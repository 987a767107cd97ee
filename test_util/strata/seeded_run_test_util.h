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
  // The history has not ended by itself: there was a deadlock, it had more
  // steps than SeededThreads::Options::max_steps, or it took too long.
  bool has_hung = false;
  // All that is known: complaints, the number and the hash of the steps, the
  // files, what was printed, the reason of a crash. It depends on the history
  // and the seed alone.
  std::string text;
};

// Returns options that vary with the seed in all that can be chosen.
SeededThreads::Options SeededOptions(uint64_t seed);

// Returns the directory of the histories. The path is the same in each process,
// because paths have an influence on what hash tables of paths do.
std::string SeededRoot();

// If this process is one of RunSeed(), runs the history and does not return.
// Otherwise, waits for the end of other programs that use the same root.
// Returns false and prints a message if that is impossible.
// histories: by name.
// options: returns the options of the threads for a seed.
bool StartSeededTest(int argc, char** argv,
                     const std::map<std::string, SeededHistory>& histories,
                     const std::function<SeededThreads::Options(uint64_t seed)>&
                         options = SeededOptions);

// Runs a history. Its files remain until the next run.
// timeout_seconds: a run that takes longer in real time has hung.
// REQUIRES: main() has called StartSeededTest() with a history of that name
SeededRun RunSeed(const std::string& history, uint64_t seed,
                  unsigned timeout_seconds = 300);

void RemoveSeededFiles();

// Returns a line with the name, the size and the hash of the contents of each
// file below the directory, sorted.
std::string DescribeSeededFiles(const std::string& directory);

}  // namespace ROCKSDB_NAMESPACE
