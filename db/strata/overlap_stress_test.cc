//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Jobs, writes and reads that overtake each other never give a wrong answer,
// see RunOverlapStress(). As a test this runs for some seconds with each set of
// options. With --seconds it is a program that runs for the given time:
//
//   overlap_stress_test --seconds=600 [--seed=1] [--map=0|1] [--bypass=0|1]
//     [--delta=0|1] [--merged_values=0|1] [--filter=0|1] [--merges=0|1]
//     [--range_deletions=0|1] [--pauses=0|1] [--keys=N] [--writers=N]
//     [--readers=N] [--max_findings=N] [--db=DIR] [--slice=SECONDS]
//
// The time is spent in runs of --slice seconds, with seeds that count up. If
// --map, --bypass, --delta, --merged_values, --filter, --merges or
// --range_deletions is not given, its value changes from run to run. The exit
// code is 1 if an answer was wrong or there was an error.

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/strata/overlap_stress_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns all sets of options, beginning with those that have most features.
std::vector<OverlapStressOptions> OptionSets() {
  std::vector<OverlapStressOptions> sets;
  for (const int map : {2, 1, 0}) {
    for (const bool delta : {false, true}) {
      for (const bool merged_values : {false, true}) {
        OverlapStressOptions options;
        options.address_map = map > 0;
        options.lsm_bypass = map > 1;
        options.delta_separation = delta;
        options.merged_values = merged_values;
        sets.push_back(options);
      }
    }
  }
  return sets;
}

void Print(const OverlapStressOptions& options,
           const OverlapStressResult& result, double began) {
  printf("%s: %" PRIu64 " writes, %" PRIu64 " point reads, %" PRIu64
         " views, %" PRIu64 " jobs, %" PRIu64 " pauses, %" PRIu64
         " restarts, %" PRIu64 " renamed, %" PRIu64 " swept, %" PRIu64
         " folded: %zu findings",
         options.Arguments().c_str(), result.writes, result.reads, result.views,
         result.jobs, result.pauses, result.restarts, result.renamed,
         result.swept, result.folded, result.findings.size());
  if (!result.findings.empty()) {
    printf(", the first after %.1f s (%.1f s in all)",
           result.first_finding_seconds, began + result.first_finding_seconds);
  }
  printf("\n");
  fflush(stdout);
}

class OverlapStressTest : public testing::TestWithParam<OverlapStressOptions> {
};

TEST_P(OverlapStressTest, AnswersMatchTheModel) {
  OverlapStressOptions options = GetParam();
  options.path = test::PerThreadDBPath("overlap_stress_test");
  options.seconds = 3;
  options.compaction_filter = options.merged_values;
  const OverlapStressResult result = RunOverlapStress(options);
  for (const std::string& finding : result.findings) {
    ADD_FAILURE() << options.Arguments() << ": " << finding;
  }
  ASSERT_GT(result.writes, 0);
  ASSERT_GT(result.reads, 0);
}

std::string TestName(const testing::TestParamInfo<OverlapStressOptions>& info) {
  const OverlapStressOptions& options = info.param;
  return std::string(options.address_map
                         ? (options.lsm_bypass ? "Bypass" : "Map")
                         : "Plain") +
         (options.delta_separation ? "Deltas" : "") +
         (options.merged_values ? "MergedValues" : "");
}

INSTANTIATE_TEST_CASE_P(Sets, OverlapStressTest,
                        testing::ValuesIn(OptionSets()), TestName);

// Returns the values of the flags of the form --name=value.
std::map<std::string, std::string> ParseFlags(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i < argc; ++i) {
    const char* equals = std::strchr(argv[i], '=');
    if (std::strncmp(argv[i], "--", 2) == 0 && equals != nullptr) {
      const char* const name = argv[i] + 2;
      flags[std::string(name, static_cast<size_t>(equals - name))] = equals + 1;
    }
  }
  return flags;
}

int RunProgram(const std::map<std::string, std::string>& flags) {
  const auto number = [&flags](const char* name, double otherwise) {
    const auto it = flags.find(name);
    return it == flags.end() ? otherwise : std::atof(it->second.c_str());
  };
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  };
  const double total = number("seconds", 0);
  const double slice = number("slice", 30);
  const auto db = flags.find("db");
  const std::vector<OverlapStressOptions> sets = OptionSets();
  size_t num_bad = 0;
  for (uint64_t i = 0; seconds() < total; ++i) {
    OverlapStressOptions options = sets[i % sets.size()];
    options.path = db == flags.end() ? test::PerThreadDBPath("overlap_stress")
                                     : db->second;
    options.seed = static_cast<uint64_t>(number("seed", 1)) + i;
    options.seconds = std::min(slice, total - seconds());
    options.address_map = number("map", options.address_map) != 0;
    options.lsm_bypass = number("bypass", options.lsm_bypass) != 0;
    options.delta_separation = number("delta", options.delta_separation) != 0;
    options.merged_values = number("merged_values", options.merged_values) != 0;
    options.compaction_filter =
        number("filter", static_cast<double>(options.seed / 2 % 2)) != 0;
    options.merges =
        number("merges", static_cast<double>(options.seed % 8 != 6)) != 0;
    options.range_deletions =
        number("range_deletions", static_cast<double>(options.seed % 4 != 2)) !=
        0;
    options.pauses = number("pauses", 1) != 0;
    options.keys = static_cast<uint32_t>(number("keys", options.keys));
    options.writers = static_cast<uint32_t>(number("writers", options.writers));
    options.readers = static_cast<uint32_t>(number("readers", options.readers));
    options.max_findings = static_cast<size_t>(
        number("max_findings", static_cast<double>(options.max_findings)));
    const double began = seconds();
    const OverlapStressResult result = RunOverlapStress(options);
    Print(options, result, began);
    num_bad += result.findings.empty() ? 0 : 1;
  }
  printf("%.0f s, runs with findings: %zu\n", seconds(), num_bad);
  return num_bad == 0 ? 0 : 1;
}

}  // namespace

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  const auto flags = ROCKSDB_NAMESPACE::ParseFlags(argc, argv);
  if (flags.count("seconds") > 0) {
    return ROCKSDB_NAMESPACE::RunProgram(flags);
  }
  return RUN_ALL_TESTS();
}
