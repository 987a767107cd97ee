//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/seeded_fork_test_util.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "test_util/strata/exit_child_test_util.h"

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
  const int file = memfd_create("seeded_fork", 0);
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

// The files of the child, as it sees them.
constexpr int kResult = 3;

// Sets up the files of the child.
void EnterChild(int result, int output, unsigned timeout_seconds) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (result != kResult) {
    dup2(result, kResult);
  }
  alarm(timeout_seconds);
}

// Runs `child` in a child process; it does not return.
ForkedRun Run(const std::function<void()>& child, unsigned timeout_seconds) {
  const int result = NewFile();
  const int output = NewFile();
  // What is buffered would be written twice.
  std::fflush(nullptr);
  const pid_t pid = fork();
  Require(pid >= 0, "fork");
  if (pid == 0) {
    EnterChild(result, output, timeout_seconds);
    child();
    std::abort();
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    Require(errno == EINTR, "waitpid");
  }
  ForkedRun run;
  run.is_complete = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  run.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  run.result = TakeContents(result);
  run.output = TakeContents(output);
  return run;
}

// Returns the environment of RunAgain(). The size of it has an influence on the
// addresses of the stack.
std::vector<std::string> Environment() {
  std::vector<std::string> variables = {"TZ=UTC"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    for (const char* name : {"TEST_TMPDIR=", "STRATA_", "LD_", "ASAN_OPTIONS=",
                             "UBSAN_OPTIONS=", "TSAN_OPTIONS="}) {
      if (text.starts_with(name)) {
        variables.push_back(text);
      }
    }
  }
  std::sort(variables.begin(), variables.end());
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  for (std::string& string : *strings) {
    pointers.push_back(string.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ForkedRun RunForked(const std::function<std::string()>& fn,
                    unsigned timeout_seconds) {
  return Run(
      [&fn] {
        PrintStackOnCrash();
        ReturnToParent(fn());
      },
      timeout_seconds);
}

ForkedRun RunAgain(const std::vector<std::string>& args,
                   unsigned timeout_seconds) {
  return Run(
      [&args] {
        std::vector<std::string> words = {"program"};
        words.insert(words.end(), args.begin(), args.end());
        std::vector<std::string> variables = Environment();
        close_range(kResult + 1, ~0U, 0);
        // Containers may forbid it.
        personality(ADDR_NO_RANDOMIZE);
        execve("/proc/self/exe", Pointers(&words).data(),
               Pointers(&variables).data());
        Require(false, "execve");
      },
      timeout_seconds);
}

void PrintStackOnCrash() {
  // The first call loads a library, which a signal handler must not do.
  void* frame = nullptr;
  backtrace(&frame, 1);
  for (const int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV}) {
    std::signal(signal, PrintStack);
  }
}

void ReturnToParent(const std::string& result) {
  std::fflush(nullptr);
  const ssize_t size = write(kResult, result.data(), result.size());
  ExitChild(size == static_cast<ssize_t>(result.size()) ? 0 : 1);
}

}  // namespace ROCKSDB_NAMESPACE
