//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/forked_run_test_util.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace ROCKSDB_NAMESPACE {

namespace {

void Require(bool condition, const char* what) {
  if (!condition) {
    std::perror(what);
    std::abort();
  }
}

// A file in memory.
int NewFile() {
  const int file = memfd_create("forked_run", 0);
  Require(file >= 0, "memfd_create");
  return file;
}

std::string TakeContents(int file) {
  std::string contents(static_cast<size_t>(lseek(file, 0, SEEK_END)), '\0');
  const ssize_t size = pread(file, contents.data(), contents.size(), 0);
  Require(size == static_cast<ssize_t>(contents.size()), "pread");
  close(file);
  return contents;
}

void PrintStack(int signal) {
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

[[noreturn]] void RunChild(const std::function<std::string()>& fn,
                           unsigned timeout_seconds, int result, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  // The first call loads a library, which a signal handler must not do.
  void* frame = nullptr;
  backtrace(&frame, 1);
  for (const int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV}) {
    std::signal(signal, PrintStack);
  }
  alarm(timeout_seconds);
  const std::string text = fn();
  std::fflush(nullptr);
  const ssize_t size = write(result, text.data(), text.size());
  _exit(size == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

}  // namespace

ForkedRun RunForked(const std::function<std::string()>& fn,
                    unsigned timeout_seconds) {
  const int result = NewFile();
  const int output = NewFile();
  // What is buffered would be written twice.
  std::fflush(nullptr);
  const pid_t child = fork();
  Require(child >= 0, "fork");
  if (child == 0) {
    RunChild(fn, timeout_seconds, result, output);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    Require(errno == EINTR, "waitpid");
  }
  ForkedRun run;
  run.is_complete = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  run.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  run.result = TakeContents(result);
  run.output = TakeContents(output);
  return run;
}

}  // namespace ROCKSDB_NAMESPACE
