//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>

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
// exit handlers, and with all its threads, when fn returns. It begins in the
// state of the caller, so several runs begin in the same state, at the same
// addresses, if the caller does nothing else in between that changes memory.
//
// timeout_seconds: the child is killed by SIGALRM after this time, which is the
// symptom of a thread that waits for something that SeededThreads does not
// know. It is far above the time that a run takes.
// REQUIRES: the process has no other thread
ForkedRun RunForked(const std::function<std::string()>& fn,
                    unsigned timeout_seconds = 300);

}  // namespace ROCKSDB_NAMESPACE
