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

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "test_util/strata/history_interpreter_test_util.h"
#include "test_util/strata/seeded_run_test_util.h"
#include "test_util/strata/seeded_workload_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kWorkload[] = "workload";
constexpr char kSteps[] = "steps";

SeededResult RunWorkload(uint64_t seed, const std::string& root) {
  SeededWorkload::Options options;
  options.seed = seed;
  options.threads = 2 + seed / 3 % 3;
  options.steps = 40 + seed / 5 % 4 * 40;
  SeededResult result;
  result.complaints = SeededWorkload(options, root).Run();
  result.files = DescribeSeededFiles(root);
  return result;
}

// With HistoryInterpreter, whose model checks each answer.
SeededResult RunSteps(uint64_t /*seed*/, const std::string& root) {
  HistoryInterpreter interpreter(root, /*overrides=*/{});
  SeededResult result;
  if (!interpreter.Start().ok()) {
    result.complaints = "no directory\n";
    return result;
  }
  // None of the steps prints anything if it succeeds.
  const auto run = [&](const HistoryWords& words) {
    HistoryInterpreter::Output output;
    interpreter.Run(words, "", &output);
    result.complaints += output.text;
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
    result.complaints += finding + "\n";
  }
  result.complaints += interpreter.findings().mistake().ok()
                           ? ""
                           : interpreter.findings().mistake().ToString() + "\n";
  // The interpreter removes them.
  result.files = DescribeSeededFiles(root);
  return result;
}

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST(SeededDbTest, SeedDeterminesTraceAndFiles) {
  for (const char* history : {kWorkload, kSteps}) {
    std::set<std::string> texts;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(std::string(history) + std::to_string(seed));
      const SeededRun run = RunSeed(history, seed);
      ASSERT_TRUE(run.is_right) << run.text;
      ASSERT_EQ(run.text, RunSeed(history, seed).text);
      texts.insert(run.text);
    }
    ASSERT_EQ(texts.size(), 4);
  }
  RemoveSeededFiles();
}

TEST(SeededSearchTest, SeedsAreRight) {
  const uint64_t single = NumberFrom("STRATA_SEEDED_SEED", UINT64_MAX);
  if (single != UINT64_MAX) {
    const SeededRun run = RunSeed(kWorkload, single);
    std::printf("%s", run.text.c_str());
    ASSERT_TRUE(run.is_right);
    return;
  }
  // Without a time, enough for each combination of SeededOptions() once.
  const uint64_t minutes = NumberFrom("STRATA_SEEDED_MINUTES", 0);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::minutes(minutes);
  const uint64_t first = NumberFrom("STRATA_SEEDED_FIRST", 1000);
  uint64_t seed = first;
  for (;
       minutes > 0 ? std::chrono::steady_clock::now() < end : seed < first + 32;
       ++seed) {
    const SeededRun run = RunSeed(kWorkload, seed);
    EXPECT_TRUE(run.is_right) << "STRATA_SEEDED_SEED=" << seed << " failed\n"
                              << run.text;
  }
  RemoveSeededFiles();
  std::printf("seeds %" PRIu64 " to %" PRIu64 "\n", first, seed - 1);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  if (!ROCKSDB_NAMESPACE::StartSeededTest(
          argc, argv,
          {{ROCKSDB_NAMESPACE::kWorkload, ROCKSDB_NAMESPACE::RunWorkload},
           {ROCKSDB_NAMESPACE::kSteps, ROCKSDB_NAMESPACE::RunSteps}})) {
    return 1;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
