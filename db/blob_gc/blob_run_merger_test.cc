//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_run_merger.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class BlobRunMergerTest : public testing::Test {
 protected:
  using File = BlobRunMerger::File;
  using Runs = std::vector<std::vector<uint64_t>>;

  static std::string KeyOf(int key) {
    std::string result = std::to_string(key);
    return std::string(6 - result.size(), '0') + result;
  }
  static File MakeFile(uint64_t number, int smallest, int largest,
                       uint64_t size = 100, uint32_t path_id = 0) {
    File file;
    file.number = number;
    file.size = file.size_on_disk = size;
    file.path_id = path_id;
    file.bounds.smallest = {KeyOf(smallest), 5};
    file.bounds.largest = {KeyOf(largest), 5};
    return file;
  }
  static BlobRunMerger::Limits LimitsOf(size_t max_runs, size_t max_merged,
                                        uint64_t max_open_bytes = uint64_t{1}
                                                                  << 40) {
    BlobRunMerger::Limits limits;
    limits.max_runs = max_runs;
    limits.max_merged = max_merged;
    limits.max_open_bytes = max_open_bytes;
    return limits;
  }
  const Comparator* const comparator_ = BytewiseComparator();
};

TEST_F(BlobRunMergerTest, PicksNothingWithinTheLimit) {
  BlobRunMerger none(comparator_, {});
  EXPECT_EQ(0u, none.NumRuns(0));
  EXPECT_TRUE(none.PickMerge(LimitsOf(1, 8)).runs.empty());

  BlobRunMerger one(comparator_, {MakeFile(3, 20, 29), MakeFile(1, 0, 9),
                                  MakeFile(2, 10, 19)});
  EXPECT_EQ(1u, one.NumRuns(0));
  EXPECT_TRUE(one.PickMerge(LimitsOf(1, 8)).runs.empty());

  BlobRunMerger two(comparator_, {MakeFile(1, 0, 9), MakeFile(2, 5, 19)});
  EXPECT_EQ(2u, two.NumRuns(0));
  EXPECT_TRUE(two.PickMerge(LimitsOf(2, 8)).runs.empty());
}

TEST_F(BlobRunMergerTest, RunsAreInKeyOrder) {
  BlobRunMerger runs(comparator_, {MakeFile(5, 50, 60), MakeFile(1, 0, 100),
                                   MakeFile(7, 10, 20), MakeFile(9, 61, 99)});
  ASSERT_EQ(2u, runs.NumRuns(0));
  const BlobRunMerger::Merge merge = runs.PickMerge(LimitsOf(1, 8));
  // The smaller run comes first.
  EXPECT_EQ((Runs{{1}, {7, 5, 9}}), merge.runs);
  EXPECT_EQ(0u, runs.NumRuns(0));
}

// Two files that share a key are one run if the first file ends with newer
// versions of the key than the second begins with.
TEST_F(BlobRunMergerTest, RunMayDivideTheVersionsOfAKey) {
  File newer = MakeFile(9, 0, 10);
  newer.bounds.largest.seq = 7;
  File older = MakeFile(1, 10, 20);
  older.bounds.smallest.seq = 6;
  EXPECT_EQ(1u, BlobRunMerger(comparator_, {older, newer}).NumRuns(0));
  // Both files have the same version, because it was copied.
  older.bounds.smallest.seq = 7;
  EXPECT_EQ(1u, BlobRunMerger(comparator_, {older, newer}).NumRuns(0));
  older.bounds.smallest.seq = 8;
  EXPECT_EQ(2u, BlobRunMerger(comparator_, {older, newer}).NumRuns(0));
}

TEST_F(BlobRunMergerTest, RunsFollowTheComparator) {
  File low = MakeFile(1, 0, 9);
  File high = MakeFile(2, 10, 19);
  std::swap(low.bounds.smallest, low.bounds.largest);
  std::swap(high.bounds.smallest, high.bounds.largest);
  BlobRunMerger runs(ReverseBytewiseComparator(),
                     {low, high, MakeFile(3, 15, 5)});
  ASSERT_EQ(2u, runs.NumRuns(0));
  EXPECT_EQ((Runs{{3}, {2, 1}}), runs.PickMerge(LimitsOf(1, 2)).runs);
}

// The number of runs is the maximum number of files that contain one key.
TEST_F(BlobRunMergerTest, MakesTheFewestRuns) {
  Random rnd(301);
  for (int round = 0; round < 200; ++round) {
    std::vector<File> files;
    std::map<int, int> depth;  // change of the number of files at a position
    const int n = 1 + static_cast<int>(rnd.Uniform(60));
    for (int i = 0; i < n; ++i) {
      const int smallest = static_cast<int>(rnd.Uniform(1000));
      const int largest = smallest + static_cast<int>(rnd.Uniform(200));
      File file = MakeFile(static_cast<uint64_t>(i) + 1, smallest, largest);
      // No file begins exactly where another one ends.
      file.bounds.smallest.seq = 9;
      files.push_back(file);
      ++depth[smallest * 2];
      --depth[largest * 2 + 1];
    }
    int most = 0;
    int now = 0;
    for (const auto& change : depth) {
      now += change.second;
      most = std::max(most, now);
    }
    BlobRunMerger runs(comparator_, files);
    ASSERT_EQ(static_cast<size_t>(most), runs.NumRuns(0));
    std::set<uint64_t> seen;
    if (most > 1) {
      for (const auto& run : runs.PickMerge(LimitsOf(1, 1000)).runs) {
        std::string last;
        for (const uint64_t number : run) {
          const File& file = files[number - 1];
          ASSERT_LT(last, file.bounds.smallest.user_key);
          last = file.bounds.largest.user_key;
          ASSERT_TRUE(seen.insert(number).second);
        }
      }
      ASSERT_EQ(static_cast<size_t>(n), seen.size());
    }
  }
}

TEST_F(BlobRunMergerTest, MergesTheFewestAndSmallestRuns) {
  std::vector<File> files;
  for (int i = 0; i < 10; ++i) {
    files.push_back(MakeFile(static_cast<uint64_t>(i) + 1, 0, 100,
                             static_cast<uint64_t>(1000 - 100 * i)));
  }
  BlobRunMerger runs(comparator_, files);
  EXPECT_EQ((Runs{{10}, {9}, {8}}), runs.PickMerge(LimitsOf(8, 64)).runs);
  runs.AddMerged(0, {20}, 600, 600);
  EXPECT_EQ(8u, runs.NumRuns(0));
  EXPECT_TRUE(runs.PickMerge(LimitsOf(8, 64)).runs.empty());
}

// The first merge has fewer runs, so that all following merges have the maximum
// number and little is written.
TEST_F(BlobRunMergerTest, WritesAsLittleAsPossible) {
  for (const size_t n : {2, 7, 8, 9, 15, 50, 64, 65, 500}) {
    std::vector<File> files;
    for (size_t i = 0; i < n; ++i) {
      files.push_back(MakeFile(i + 1, 0, 100));
    }
    BlobRunMerger runs(comparator_, files);
    std::map<uint64_t, uint64_t> sizes;
    for (const File& file : files) {
      sizes[file.number] = file.size;
    }
    uint64_t next = 1000;
    uint64_t written = 0;
    size_t merges = 0;
    for (;;) {
      const BlobRunMerger::Merge merge = runs.PickMerge(LimitsOf(1, 8));
      if (merge.runs.empty()) {
        break;
      }
      ASSERT_LE(merge.runs.size(), 8u);
      ASSERT_GE(merge.runs.size(), 2u);
      uint64_t size = 0;
      for (const auto& run : merge.runs) {
        for (const uint64_t number : run) {
          size += sizes[number];
          sizes.erase(number);
        }
      }
      sizes[next] = size;
      runs.AddMerged(0, {next++}, size, size);
      written += size;
      ++merges;
    }
    EXPECT_EQ(1u, sizes.size());
    EXPECT_EQ(n * 100, sizes.begin()->second);
    EXPECT_EQ((n - 2) / 7 + 1, merges) << n;
    // The merges form a tree with eight children per node.
    size_t levels = 1;
    for (size_t m = 8; m < n; m *= 8) {
      ++levels;
    }
    EXPECT_LE(written, n * 100 * levels) << n;
    if (n > 8) {
      EXPECT_GT(written, n * 100 * (levels - 1));
    }
  }
}

TEST_F(BlobRunMergerTest, LimitsTheBytesOfOpenFiles) {
  std::vector<File> files;
  for (uint64_t i = 1; i <= 10; ++i) {
    files.push_back(MakeFile(i, 0, 100));
  }
  BlobRunMerger runs(comparator_, files);
  EXPECT_EQ((Runs{{1}, {2}, {3}, {4}, {5}}),
            runs.PickMerge(LimitsOf(1, 64, 500)).runs);
  // Only one file of a run is open at a time.
  runs.AddMerged(0, {11, 12, 13, 14, 15}, 500, 100);
  EXPECT_EQ((Runs{{6}, {7}, {8}, {9}, {10}}),
            runs.PickMerge(LimitsOf(1, 64, 500)).runs);
  runs.AddMerged(0, {16, 17, 18}, 500, 100);
  // Two runs are always merged.
  EXPECT_EQ((Runs{{11, 12, 13, 14, 15}, {16, 17, 18}}),
            runs.PickMerge(LimitsOf(1, 64, 1)).runs);
}

// A file continues the run that ends last before it.
TEST_F(BlobRunMergerTest, FileContinuesTheNearestRun) {
  BlobRunMerger runs(
      comparator_, {MakeFile(1, 0, 10), MakeFile(2, 5, 40), MakeFile(3, 50, 60),
                    MakeFile(4, 55, 90, 1000)});
  ASSERT_EQ(2u, runs.NumRuns(0));
  EXPECT_EQ((Runs{{2, 3}, {1, 4}}), runs.PickMerge(LimitsOf(1, 8)).runs);
}

TEST_F(BlobRunMergerTest, PicksRunsWithMuchGarbage) {
  std::vector<File> files = {MakeFile(1, 0, 10), MakeFile(2, 11, 20),
                             MakeFile(3, 15, 20)};
  files[1].size_on_disk = 150;
  files[2].size_on_disk = 120;
  BlobRunMerger runs(comparator_, files);
  EXPECT_TRUE(runs.PickGarbage(1.25).runs.empty());
  EXPECT_EQ(2u, runs.NumRuns(0));
  // A run is picked as a whole.
  BlobRunMerger::Merge merge = runs.PickGarbage(1.24);
  EXPECT_EQ((Runs{{1, 2}}), merge.runs);
  EXPECT_EQ(0u, merge.path_id);
  EXPECT_TRUE(runs.PickGarbage(1.24).runs.empty());
  runs.AddMerged(0, {9}, 200, 200);
  EXPECT_EQ((Runs{{3}}), runs.PickGarbage(1.0).runs);
  EXPECT_TRUE(runs.PickGarbage(1.0).runs.empty());
}

TEST_F(BlobRunMergerTest, MergesEachPathAlone) {
  BlobRunMerger runs(comparator_, {MakeFile(1, 0, 9), MakeFile(2, 0, 9, 100, 1),
                                   MakeFile(3, 5, 9, 100, 1)});
  EXPECT_EQ(1u, runs.NumRuns(0));
  EXPECT_EQ(2u, runs.NumRuns(1));
  const BlobRunMerger::Merge merge = runs.PickMerge(LimitsOf(1, 8));
  EXPECT_EQ(1u, merge.path_id);
  EXPECT_EQ((Runs{{2}, {3}}), merge.runs);
  runs.AddMerged(1, {4}, 200, 200);
  EXPECT_EQ(1u, runs.NumRuns(1));
  // The merged run had no live values.
  runs.AddMerged(1, {}, 0, 0);
  EXPECT_EQ(1u, runs.NumRuns(1));
  EXPECT_TRUE(runs.PickMerge(LimitsOf(1, 8)).runs.empty());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
