//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_liveness.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_meta.h"
#include "db/delta/delta_version.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

class DeltaFileLivenessTest : public testing::Test {
 protected:
  using Buckets = std::vector<DeltaFileProperties::Bucket>;
  using Numbers = std::vector<uint64_t>;

  DeltaFileProbe& Add(uint64_t number, Kind kind, Tier tier,
                      uint64_t first_epoch = 0, uint64_t last_epoch = 0) {
    DeltaFileProbe& file = files_.emplace_back();
    file.directory = "/dir";
    DeltaFileDescription& description = file.description;
    description.number = number;
    description.size = 1000;
    description.kind = kind;
    description.tier = tier;
    description.first_epoch = first_epoch;
    description.last_epoch = last_epoch == 0 ? first_epoch : last_epoch;
    description.smallest = "a";
    description.largest = "z";
    description.smallest_seq = number;
    description.largest_seq = number;
    description.num_entries = 1;
    description.raw_bytes = 10;
    file.properties.kind = kind;
    file.properties.tier = tier;
    file.properties.first_epoch = description.first_epoch;
    file.properties.last_epoch = description.last_epoch;
    return file;
  }
  void Flushed(uint64_t number, uint64_t epoch) {
    Add(number, Kind::kOperands, Tier::kFlushed, epoch);
  }
  // smallest_seq, largest_seq: of the operands in the file.
  DeltaFileProbe& FlushedSeqs(uint64_t number, SequenceNumber smallest_seq,
                              SequenceNumber largest_seq) {
    DeltaFileProbe& file =
        Add(number, Kind::kOperands, Tier::kFlushed, number - 1);
    file.description.smallest_seq = smallest_seq;
    file.description.largest_seq = largest_seq;
    return file;
  }
  // first_seq, last_seq: of what the flush has read.
  void FlushedFrom(uint64_t number, SequenceNumber first_seq,
                   SequenceNumber last_seq, SequenceNumber smallest_seq,
                   SequenceNumber largest_seq) {
    DeltaFileProbe& file = FlushedSeqs(number, smallest_seq, largest_seq);
    file.properties.first_seq = first_seq;
    file.properties.last_seq = last_seq;
  }
  void Merged(uint64_t number, uint64_t first_epoch, uint64_t last_epoch) {
    Add(number, Kind::kOperands, Tier::kMerged, first_epoch, last_epoch);
  }
  // empty: indexes of the buckets that have no operands in the file.
  DeltaFileProbe& Sorted(uint64_t number, Buckets buckets,
                         std::optional<std::string> end = std::nullopt,
                         std::vector<size_t> empty = {}) {
    DeltaFileProbe& file = Add(number, Kind::kOperands, Tier::kSorted);
    file.bucket_bytes.assign(buckets.size(), 7);
    for (size_t i : empty) {
      file.bucket_bytes[i] = 0;
    }
    file.properties.buckets = std::move(buckets);
    file.properties.end = std::move(end);
    return file;
  }
  // operands_number: the file of operands of the same job, 0 if no operands
  // were left.
  void SortedAnchors(uint64_t number, uint64_t operands_number, Buckets buckets,
                     std::optional<std::string> end = std::nullopt) {
    DeltaFileProbe& file = Sorted(number, std::move(buckets), std::move(end));
    file.description.kind = Kind::kAnchors;
    file.properties.kind = Kind::kAnchors;
    file.properties.operands_number = operands_number;
  }

  Status Resolve() {
    std::vector<const DeltaFileProbe*> files;
    for (const DeltaFileProbe& file : files_) {
      files.push_back(&file);
    }
    RandomShuffle(files.begin(), files.end(), 301);
    return DeltaFileLiveness::Resolve(files, BytewiseComparator(), &lineage_);
  }

  static Numbers NumbersOf(const std::vector<const DeltaFileProbe*>& files) {
    Numbers numbers;
    for (const DeltaFileProbe* file : files) {
      numbers.push_back(file->description.number);
    }
    EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
    return numbers;
  }

  // Returns "lower bound:floor:file" for each bucket, separated by spaces, with
  // a minus before the file if it has no operands of the bucket.
  std::string BucketText() const {
    std::string text;
    for (const DeltaBucket& bucket : lineage_.buckets) {
      text += (text.empty() ? "" : " ") + bucket.lower_bound + ":" +
              std::to_string(bucket.state.floor) + ":" +
              (bucket.state.HasOperands() ? "" : "-") +
              std::to_string(bucket.state.extent_number +
                             bucket.state.anchors_number);
      EXPECT_TRUE(bucket.state.extent_bytes == 0 ||
                  bucket.state.extent_bytes == 7);
      EXPECT_NE(bucket.state.extent_number == 0,
                bucket.state.anchors_number == 0);
    }
    return text;
  }

  // Expects these files of operands and these buckets, and checks that a
  // DeltaVersion can be made of the result.
  void Expect(const Numbers& operands, const std::string& buckets = "") {
    ASSERT_OK(Resolve());
    EXPECT_EQ(operands, NumbersOf(lineage_.operands));
    EXPECT_EQ(buckets, BucketText());
    EXPECT_EQ(files_.size(),
              lineage_.operands.size() + lineage_.anchors.size() +
                  lineage_.anchors_to_copy.size() + lineage_.superseded.size());
    if (lineage_.operands.empty()) {
      EXPECT_EQ(files_.size(), lineage_.superseded.size());
      EXPECT_TRUE(lineage_.buckets.empty());
      return;
    }
    DeltaEdit edit;
    for (const DeltaFileProbe* file : lineage_.operands) {
      edit.AddFile(file->description);
    }
    for (const DeltaFileProbe* file : lineage_.anchors) {
      edit.AddFile(file->description);
    }
    edit.SetSnapshotPiece({0, /*is_last=*/true, lineage_.buckets});
    std::shared_ptr<const DeltaVersion> version;
    ASSERT_OK(DeltaVersion::Apply(
        nullptr, edit, BytewiseComparator(),
        [](const DeltaFileDescription& file) {
          return DeltaFileMeta::Create(file, nullptr);
        },
        &version));
  }

  void ExpectRefused(uint64_t number) {
    const Status s = Resolve();
    ASSERT_TRUE(s.IsNotSupported()) << s.ToString();
    ASSERT_NE(std::string::npos,
              s.ToString().find(DeltaFileName("/dir", number)))
        << s.ToString();
  }

  std::deque<DeltaFileProbe> files_;
  DeltaFileLiveness lineage_;
};

TEST_F(DeltaFileLivenessTest, NothingIsLiveWithoutOperands) {
  Expect({});
  Add(20, Kind::kAnchors, Tier::kFlushed, 10);
  Expect({});  // without operands, anchors hide nothing
}

TEST_F(DeltaFileLivenessTest, FlushedFilesAreLive) {
  Flushed(11, 10);
  Flushed(21, 20);
  Add(22, Kind::kAnchors, Tier::kFlushed, 20);
  Expect({11, 21});
  EXPECT_EQ((Numbers{22}), NumbersOf(lineage_.anchors));
  EXPECT_TRUE(lineage_.anchors_to_copy.empty());
}

// The edit of a flush was not committed, and another flush has written the same
// memtables, alone or with later ones.
TEST_F(DeltaFileLivenessTest, RepeatedFlushCountsOnce) {
  FlushedSeqs(11, 1, 9);
  FlushedSeqs(21, 10, 30);  // not committed
  Add(22, Kind::kAnchors, Tier::kFlushed, 20);
  FlushedSeqs(31, 10, 40);
  Add(32, Kind::kAnchors, Tier::kFlushed, 30);
  FlushedSeqs(41, 41, 41);
  Expect({11, 31, 41});
  EXPECT_EQ((Numbers{21}), NumbersOf(lineage_.superseded));
  // Anchors of both are true.
  EXPECT_EQ((Numbers{22, 32}), NumbersOf(lineage_.anchors));

  // After the loss of the end of a WAL, the earlier flush has more.
  files_.clear();
  FlushedSeqs(11, 10, 40);
  FlushedSeqs(21, 10, 20);
  FlushedSeqs(31, 21, 30);
  Expect({11});
  EXPECT_EQ((Numbers{21, 31}), NumbersOf(lineage_.superseded));

  // If both have the same, the later one is it that may have been committed.
  files_.clear();
  FlushedSeqs(11, 10, 10);
  FlushedSeqs(21, 10, 10);
  Expect({21});
  // A flush is repeated more than once.
  FlushedSeqs(31, 10, 12);
  FlushedSeqs(41, 10, 12);
  Expect({41});
}

// What a flush has read decides: operands are hidden by later values, and
// combined with later operands, so those of the two files may be apart.
TEST_F(DeltaFileLivenessTest, FlushThatHasReadMoreReplacesTheOther) {
  FlushedFrom(11, 10, 20, 12, 20);
  FlushedFrom(21, 10, 40, 35, 40);
  FlushedFrom(31, 41, 50, 45, 45);
  Expect({21, 31});
  // The operands of the later flush are among those of the earlier one.
  files_.clear();
  FlushedFrom(11, 10, 20, 10, 20);
  FlushedFrom(21, 10, 40, 15, 15);
  Expect({21});
  // The earlier file is of a version without the record.
  files_.clear();
  FlushedSeqs(11, 12, 20);
  FlushedFrom(21, 10, 40, 35, 40);
  Expect({21});
}

TEST_F(DeltaFileLivenessTest, FlushThatIsRepeatedInPartIsRefused) {
  FlushedSeqs(11, 10, 20);
  FlushedSeqs(21, 20, 30);
  ExpectRefused(11);
  files_.clear();
  FlushedSeqs(11, 20, 30);
  FlushedSeqs(21, 10, 20);
  ExpectRefused(11);
  // Files that were merged are not compared.
  Merged(30, 10, 20);
  Expect({30});
}

TEST_F(DeltaFileLivenessTest, MergedFileReplacesFlushedFilesUpToItsLastEpoch) {
  Flushed(11, 10);  // obsolete, or the merge was not committed
  Add(12, Kind::kAnchors, Tier::kFlushed, 10);
  Flushed(21, 20);
  Merged(30, 10, 20);
  Add(31, Kind::kAnchors, Tier::kMerged, 10, 20);
  Flushed(41, 40);
  Add(42, Kind::kAnchors, Tier::kFlushed, 40);
  Expect({30, 41});
  EXPECT_EQ((Numbers{42}), NumbersOf(lineage_.anchors));
  EXPECT_EQ((Numbers{12, 31}), NumbersOf(lineage_.anchors_to_copy));
  EXPECT_EQ((Numbers{11, 21}), NumbersOf(lineage_.superseded));

  // The anchors of a merge that left no operands hide all operands of the
  // flushes up to epoch 50.
  Add(60, Kind::kAnchors, Tier::kMerged, 40, 50);
  Expect({30});
}

TEST_F(DeltaFileLivenessTest, RepeatedMergeReplacesTheUncommittedOne) {
  Flushed(11, 10);
  Merged(30, 10, 20);  // not committed
  Merged(40, 10, 25);
  Merged(50, 30, 35);
  Expect({40, 50});
  // A repeated merge takes in at least as many files, so a later file with
  // fewer epochs is refused.
  files_.clear();
  Merged(30, 10, 25);
  Merged(40, 10, 20);
  ExpectRefused(30);
}

TEST_F(DeltaFileLivenessTest, FirstBucketsReplaceMergedFiles) {
  Flushed(11, 10);
  Merged(12, 5, 10);
  Sorted(20, {{"", 10}, {"m", 10}});
  Flushed(31, 30);
  // The files that were merged up to epoch 10 are in the buckets.
  Expect({20, 31}, ":0:20 m:0:20");
}

TEST_F(DeltaFileLivenessTest, MergedFileIsLiveWhileAFloorIsBelowIt) {
  Merged(12, 5, 10);
  Merged(22, 15, 20);
  Sorted(13, {{"", 10}, {"m", 10}});
  Sorted(24, {{"m", 20}});
  Flushed(31, 30);
  // The bucket from "m" has taken in file 22; the other bucket sees the file.
  Expect({13, 22, 24, 31}, ":0:13 m:20:24");
  EXPECT_EQ((Numbers{12}), NumbersOf(lineage_.superseded));
}

// A floor may be the last epoch of a merged file that is gone or was never
// written, because all its operands were hidden. The floor is then that of the
// merged file before it.
TEST_F(DeltaFileLivenessTest, FloorMayLackItsMergedFile) {
  Merged(12, 5, 10);
  Sorted(13, {{"", 3}, {"m", 20}, {"t", 10}});
  Expect({12, 13}, ":0:13 m:10:13 t:10:13");
  files_.clear();
  Sorted(13, {{"", 3}, {"m", 20}, {"t", 10}});
  Expect({13}, ":0:13 m:0:13 t:0:13");
  // A floor between the epochs of a merged file is refused.
  files_.clear();
  Merged(12, 5, 12);
  Sorted(13, {{"", 3}, {"m", 10}});
  ExpectRefused(12);
}

TEST_F(DeltaFileLivenessTest, NewestFileOfEachBucketCounts) {
  Sorted(20, {{"", 10}, {"d", 10}, {"h", 10}, {"m", 10}});
  Expect({20}, ":0:20 d:0:20 h:0:20 m:0:20");
  // A job splits a bucket and leaves no operands in the next one.
  Sorted(30, {{"d", 10}, {"f", 10}, {"h", 10}}, "m", {2});
  Expect({20, 30}, ":0:20 d:0:30 f:0:30 h:0:-30 m:0:20");
  // A job joins two buckets.
  Sorted(40, {{"f", 10}}, "m");
  Expect({20, 30, 40}, ":0:20 d:0:30 f:0:40 m:0:20");
  // A job replaces the last bucket.
  Sorted(50, {{"m", 10}, {"x", 10}});
  Expect({20, 30, 40, 50}, ":0:20 d:0:30 f:0:40 m:0:50 x:0:50");
  Sorted(60, {{"", 10}}, "f");
  Expect({40, 50, 60}, ":0:60 f:0:40 m:0:50 x:0:50");
  EXPECT_EQ((Numbers{20, 30}), NumbersOf(lineage_.superseded));
  Sorted(70, {{"", 10}});
  Expect({70}, ":0:70");
}

// A file is not needed if later jobs replaced all buckets that it was for.
TEST_F(DeltaFileLivenessTest, FileWhoseBucketsWereReplacedMayBeGone) {
  Sorted(20, {{"", 10}, {"k", 10}});  // the bucket from "k" was replaced
  // File 30 split the bucket at "p". It is gone, because the next two files
  // replaced both of its buckets.
  Sorted(40, {{"p", 10}});
  Sorted(50, {{"k", 10}}, "p");
  Expect({20, 40, 50}, ":0:20 k:0:50 p:0:40");
  // With only one of the two, the other bucket of file 30 is unknown.
  files_.pop_back();
  ExpectRefused(20);
}

TEST_F(DeltaFileLivenessTest, GapBetweenBucketsIsRefused) {
  Sorted(20, {{"d", 10}});
  ExpectRefused(20);
  files_.clear();
  Sorted(20, {{"", 10}}, "d");
  ExpectRefused(20);
  files_.clear();
  Sorted(20, {{"", 10}, {"b", 10}}, "d");
  ExpectRefused(20);
  Sorted(30, {{"f", 10}});
  ExpectRefused(30);
  Sorted(40, {{"d", 10}}, "f");
  Expect({20, 30, 40}, ":0:20 b:0:20 d:0:40 f:0:30");
  Sorted(50, {});
  ExpectRefused(50);
}

// A file of anchors counts for the buckets only if its job left no operands.
TEST_F(DeltaFileLivenessTest, AnchorsWithoutOperandsReplaceBuckets) {
  Sorted(20, {{"", 10}, {"d", 10}});
  SortedAnchors(30, 20, {{"", 10}, {"d", 10}});
  Expect({20}, ":0:20 d:0:20");
  EXPECT_EQ((Numbers{30}), NumbersOf(lineage_.anchors_to_copy));
  // No operands are left from "d" on, although the floor is the same.
  SortedAnchors(40, 0, {{"d", 10}});
  Expect({20}, ":0:20 d:0:-40");
  EXPECT_EQ((Numbers{30}), NumbersOf(lineage_.anchors_to_copy));
  EXPECT_EQ((Numbers{40}), NumbersOf(lineage_.anchors));
  SortedAnchors(50, 0, {{"", 10}});
  Expect({});
}

TEST_F(DeltaFileLivenessTest, FileWithAGlobalSequenceNumberIsRefused) {
  Flushed(11, 10);
  Add(20, Kind::kAnchors, Tier::kFlushed).description.has_global_seq = true;
  ExpectRefused(20);
}

// The buckets are found after each of many random jobs, while files that the
// jobs made obsolete are deleted at once or later.
TEST_F(DeltaFileLivenessTest, FindsTheBucketsAfterRandomJobs) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    Random rnd(seed);
    files_.clear();
    uint64_t number = 10;
    Sorted(number, {{"", 10}});
    // A bucket has a lower bound, a file, and a flag that tells whether the
    // file has operands of the bucket.
    struct Bucket {
      std::string bound;
      uint64_t file;
      bool has_operands;
    };
    std::vector<Bucket> buckets = {{"", number, true}};
    for (int job = 0; job < 30; ++job) {
      const size_t first = rnd.Uniform(static_cast<int>(buckets.size()));
      const size_t count = 1 + rnd.Uniform(static_cast<int>(std::min<size_t>(
                                   buckets.size() - first, 3)));
      const size_t last = first + count;
      Buckets outputs = {{buckets[first].bound, 10}};
      std::optional<std::string> end;
      if (last < buckets.size()) {
        end = buckets[last].bound;
      }
      for (int i = rnd.Uniform(4); i > 0; --i) {
        const std::string bound = rnd.RandomString(3);
        if (bound > outputs.back().lower_bound &&
            (!end.has_value() || bound < *end)) {
          outputs.push_back({bound, 10});
        }
      }
      std::vector<size_t> empty;
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (rnd.OneIn(4)) {
          empty.push_back(i);
        }
      }
      if (empty.size() == outputs.size() && rnd.OneIn(2)) {
        SortedAnchors(++number, 0, outputs, end);
      } else {
        Sorted(++number, outputs, end, empty);
      }
      buckets.erase(buckets.begin() + first, buckets.begin() + last);
      for (size_t i = 0; i < outputs.size(); ++i) {
        buckets.insert(
            buckets.begin() + first + i,
            {outputs[i].lower_bound, number,
             std::find(empty.begin(), empty.end(), i) == empty.end()});
      }

      Numbers live;
      std::string text;
      bool has_operands = false;
      for (const Bucket& bucket : buckets) {
        live.push_back(bucket.file);
        text += (text.empty() ? "" : " ") + bucket.bound +
                ":0:" + (bucket.has_operands ? "" : "-") +
                std::to_string(bucket.file);
        has_operands |= bucket.has_operands;
      }
      std::sort(live.begin(), live.end());
      live.erase(std::unique(live.begin(), live.end()), live.end());
      for (size_t i = 0; i < files_.size();) {
        const bool is_live = std::binary_search(live.begin(), live.end(),
                                                files_[i].description.number);
        if (!is_live && rnd.OneIn(2)) {
          files_.erase(files_.begin() + i);
        } else {
          ++i;
        }
      }
      std::erase_if(live, [this](uint64_t file) {
        return std::any_of(files_.begin(), files_.end(),
                           [file](const DeltaFileProbe& found) {
                             return found.description.number == file &&
                                    found.description.kind == Kind::kAnchors;
                           });
      });
      if (has_operands) {
        Expect(live, text);
      } else {
        Expect({});
      }
      ASSERT_FALSE(HasFailure()) << "seed " << seed << " job " << job;
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
