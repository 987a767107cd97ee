//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/seeded_run_test_util.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "file/file_util.h"
#include "rocksdb/env.h"
#include "test_util/strata/seeded_fork_test_util.h"
#include "test_util/testharness.h"
#include "util/hash.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kArgument[] = "--seeded_run";

[[noreturn]] void RunHere(const SeededHistory& history,
                          const SeededThreads::Options& options,
                          uint64_t seed) {
  PrintStackOnCrash();
  // It lives until the process ends, as its threads do.
  auto* const threads = new SeededThreads(options);
  const SeededResult result = history(seed, SeededRoot());
  char line[100];
  std::snprintf(line, sizeof(line),
                "trace %016" PRIx64 " of %" PRIu64 " steps\n",
                threads->trace().hash(), threads->trace().steps());
  ReturnToParent(result.complaints + line + result.files);
}

}  // namespace

SeededThreads::Options SeededOptions(uint64_t seed) {
  SeededThreads::Options options;
  options.schedule.seed = seed;
  options.schedule.policy = seed % 2 == 0 ? SeededSchedule::Policy::kUniform
                                          : SeededSchedule::Policy::kPriorities;
  options.schedule.switch_one_in = uint64_t{2} << (seed / 2 % 4 * 2);
  options.schedule.change_points = 1 + seed / 2 % 10;
  options.jump_one_in = seed / 16 % 2 * 1000;
  options.on_thread_start = [seed](size_t thread) {
    // It is seeded with the id of the thread, an address, otherwise.
    Random::GetTLSInstance()->Reset(
        static_cast<uint32_t>(seed * 31 + thread + 1));
  };
  options.trace_path = std::getenv("STRATA_SEEDED_TRACE");
  return options;
}

std::string SeededRoot() { return test::TmpDir() + "/seeded_run"; }

bool StartSeededTest(
    int argc, char** argv,
    const std::map<std::string, SeededHistory>& histories,
    const std::function<SeededThreads::Options(uint64_t)>& options) {
  if (argc == 4 && std::string(argv[1]) == kArgument) {
    const uint64_t seed = std::strtoull(argv[3], nullptr, 10);
    RunHere(histories.at(argv[2]), options(seed), seed);
  }
  const std::string path = test::TmpDir() + "/seeded_run.lock";
  // The lock ends with the process.
  const int lock = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) {
    std::perror(path.c_str());
    return false;
  }
  return true;
}

SeededRun RunSeed(const std::string& history, uint64_t seed,
                  unsigned timeout_seconds) {
  RemoveSeededFiles();
  char number[30];
  // The length has an influence on addresses.
  std::snprintf(number, sizeof(number), "%020" PRIu64, seed);
  const ForkedRun run = RunAgain({kArgument, history, number}, timeout_seconds);
  SeededRun result;
  // Nothing is ahead of the line about the trace.
  result.is_right = run.is_complete && run.result.starts_with("trace ");
  result.text = run.result + run.output;
  result.has_hung =
      run.signal == SIGALRM ||
      run.output.find("SeededThreads: deadlock") != std::string::npos ||
      run.output.find("SeededThreads: the run has too many steps") !=
          std::string::npos;
  if (run.signal != 0) {
    result.text += "signal " + std::to_string(run.signal) + "\n";
  }
  return result;
}

void RemoveSeededFiles() {
  const Status s = DestroyDir(Env::Default(), SeededRoot());
  if (!s.ok()) {
    std::fprintf(stderr, "%s: %s\n", SeededRoot().c_str(),
                 s.ToString().c_str());
    std::abort();
  }
}

std::string DescribeSeededFiles(const std::string& directory) {
  std::vector<std::string> names;
  Env::Default()->GetChildren(directory, &names).PermitUncheckedError();
  std::sort(names.begin(), names.end());
  std::string lines;
  for (const std::string& name : names) {
    const std::string path = std::string(directory).append("/").append(name);
    bool is_directory = false;
    Env::Default()->IsDirectory(path, &is_directory).PermitUncheckedError();
    if (is_directory) {
      lines += DescribeSeededFiles(path);
      continue;
    }
    std::string contents;
    const Status s = ReadFileToString(Env::Default(), path, &contents);
    char line[80];
    std::snprintf(line, sizeof(line), " %zu %016" PRIx64 "\n", contents.size(),
                  Hash64(contents.data(), contents.size()));
    lines.append(path).append(s.ok() ? line : " " + s.ToString() + "\n");
  }
  return lines;
}

}  // namespace ROCKSDB_NAMESPACE
