//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The interleaving of the threads of a DB, with all its background jobs, is a
// function of a seed; see SeededThreads. As a test this runs some seeds. It is
// also a program that searches for races:
//
//   STRATA_SEEDED_MINUTES=60   run seeds for this time (SeededSearchTest)
//   STRATA_SEEDED_FIRST=N      the first of these seeds
//   STRATA_SEEDED_SEED=N       run this seed alone, and keep its files
//   STRATA_SEEDED_TRACE=FILE   write all its steps into the file
//
// A seed that fails is printed.

#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>

#include "file/file_util.h"
#include "rocksdb/env.h"
#include "test_util/strata/forked_run_test_util.h"
#include "test_util/strata/history_interpreter_test_util.h"
#include "test_util/strata/seeded_schedule_test_util.h"
#include "test_util/strata/seeded_threads_test_util.h"
#include "test_util/strata/seeded_workload_test_util.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The path is the same in each process, because paths have an influence on what
// hash tables of paths do.
std::string DbRoot() { return test::TmpDir() + "/seeded_threads"; }

// Varies all that can be chosen.
SeededThreads::Options OptionsOfSeed(uint64_t seed) {
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

// The histories. Each returns what was wrong, and maybe more.

std::string RunWorkload(uint64_t seed) {
  SeededWorkload::Options options;
  options.seed = seed;
  return SeededWorkload(options, DbRoot()).Run();
}

// With HistoryInterpreter, whose model checks each answer.
std::string RunSteps(uint64_t /*seed*/) {
  HistoryInterpreter interpreter(DbRoot(), /*overrides=*/{});
  std::string text = interpreter.Start().ok() ? "" : "no directory\n";
  const auto run = [&](const HistoryWords& words) {
    HistoryInterpreter::Output output;
    interpreter.Run(words, "", &output);
    text += output.text;
  };
  run({"open", "blobs=20", "enable_blob_address_map=true",
       "blob_gc_space_amp_limit=1.01", "blob_file_size=512",
       "enable_delta_separation=true", "disable_auto_compactions=false",
       "level0_file_num_compaction_trigger=2"});
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i % 5);
    run({"put", "a" + n, "@100:" + std::to_string(i)});
    run({"merge", "b" + n, "m" + std::to_string(i)});
    run({"flush"});
  }
  run({"verify"});
  run({"close"});
  for (const std::string& finding : interpreter.findings().disagreements()) {
    text += finding + "\n";
  }
  // The interpreter removes them.
  return text.empty() ? SeededWorkload::DescribeFiles(DbRoot()) : text;
}

// Runs a history of this seed as thread 0 of SeededThreads. The result is what
// the history returns, below that a line about the trace, and lines about the
// files that are left.
std::string RunHistory(uint64_t seed, std::string (*history)(uint64_t)) {
  // The threads of Env::Default() do not end, so this lives until the process
  // ends.
  auto* const threads = new SeededThreads(OptionsOfSeed(seed));
  std::string result = history(seed);
  char line[100];
  std::snprintf(line, sizeof(line),
                "trace %016" PRIx64 " of %" PRIu64 " steps\n",
                threads->trace().hash(), threads->trace().steps());
  return result + line + SeededWorkload::DescribeFiles(DbRoot());
}

void RemoveRoot() { ASSERT_OK(DestroyDir(Env::Default(), DbRoot())); }

// name: of the history, see main().
ForkedRun RunInChild(const std::string& name, uint64_t seed) {
  RemoveRoot();
  char number[30];
  // The length has an influence on addresses.
  std::snprintf(number, sizeof(number), "%020" PRIu64, seed);
  return RunAgain({name, number});
}

std::string Failure(uint64_t seed, const ForkedRun& run) {
  return "STRATA_SEEDED_SEED=" + std::to_string(seed) + " failed, signal " +
         std::to_string(run.signal) + "\n" + run.output + run.result;
}

// Nothing is ahead of the line about the trace.
bool IsRight(const ForkedRun& run) {
  return run.is_complete && run.result.starts_with("trace ");
}

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST(SeededDbTest, SeedDeterminesTraceAndFiles) {
  for (const char* history : {"--workload", "--steps"}) {
    std::set<std::string> results;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const ForkedRun first = RunInChild(history, seed);
      ASSERT_TRUE(first.is_complete) << Failure(seed, first);
      const ForkedRun second = RunInChild(history, seed);
      ASSERT_EQ(first.result, second.result) << seed;
      results.insert(first.result);
    }
    ASSERT_EQ(results.size(), 4);
  }
  RemoveRoot();
}

TEST(SeededSearchTest, SeedsAreRight) {
  const uint64_t single = NumberFrom("STRATA_SEEDED_SEED", UINT64_MAX);
  if (single != UINT64_MAX) {
    const ForkedRun run = RunInChild("--workload", single);
    std::printf("%s%s", run.output.c_str(), run.result.c_str());
    ASSERT_TRUE(IsRight(run)) << Failure(single, run);
    return;
  }
  // Without a time, enough for each combination of OptionsOfSeed() once.
  const uint64_t minutes = NumberFrom("STRATA_SEEDED_MINUTES", 0);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::minutes(minutes);
  const uint64_t first = NumberFrom("STRATA_SEEDED_FIRST", 1000);
  uint64_t seed = first;
  for (;
       minutes > 0 ? std::chrono::steady_clock::now() < end : seed < first + 32;
       ++seed) {
    const ForkedRun run = RunInChild("--workload", seed);
    EXPECT_TRUE(IsRight(run)) << Failure(seed, run);
  }
  RemoveRoot();
  std::printf("seeds %" PRIu64 " to %" PRIu64 "\n", first, seed - 1);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  using namespace ROCKSDB_NAMESPACE;
  if (argc == 3) {
    const std::string name = argv[1];
    if (name == "--workload" || name == "--steps") {
      PrintStackOnCrash();
      ReturnToParent(RunHistory(std::strtoull(argv[2], nullptr, 10),
                                name == "--steps" ? RunSteps : RunWorkload));
    }
  }
  ::testing::InitGoogleTest(&argc, argv);
  // Two programs at once would use the same directory.
  const std::string path = test::TmpDir() + "/seeded_threads.lock";
  const int lock = open(path.c_str(), O_CREAT | O_RDWR, 0644);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) {
    std::perror(path.c_str());
    return 1;
  }
  return RUN_ALL_TESTS();
}
