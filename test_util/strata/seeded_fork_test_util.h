//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// What a function did in a process of its own.
struct ForkedRun {
  // The function returned.
  bool is_complete = false;
  // What it returned.
  std::string result;
  // What it wrote to stdout and stderr, and the stack of a crash.
  std::string output;
  // The signal that ended the process; 0 if there was none.
  int signal = 0;
};

// Runs fn in a child of this process. The child ends without destructors and
// exit handlers, and with all its threads, when fn returns.
//
// timeout_seconds: the child is killed by SIGALRM after this time, which is the
// symptom of a thread that waits for something that SeededThreads does not
// know. It is far above the time that a run takes.
// REQUIRES: the process has no other thread
ForkedRun RunForked(const std::function<std::string()>& fn,
                    unsigned timeout_seconds = 300);

// The same for this program, started again with these arguments. It calls
// ReturnToParent(). It begins in a state that does not depend on the caller:
// at fixed addresses, if the system permits that, with no other open files, and
// with only those environment variables that its libraries and tests know.
ForkedRun RunAgain(const std::vector<std::string>& args,
                   unsigned timeout_seconds = 300);

// Makes a crash print its stack. A program that RunAgain() has started calls
// this first.
void PrintStackOnCrash();

// Ends a program that RunAgain() has started, as at the end of RunForked().
[[noreturn]] void ReturnToParent(const std::string& result);

}  // namespace ROCKSDB_NAMESPACE
