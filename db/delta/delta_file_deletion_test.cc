//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_deletion.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_store_test_util.h"
#include "db/version_edit.h"
#include "port/stack_trace.h"
#include "test_util/strata/sync_point_test_util.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::Event;
using delta_test::Events;
using delta_test::Values;

class DeltaFileDeletionTest : public delta_test::DeltaStoreTestBase {
 protected:
  using Cover = DeltaFileDeletion::Cover;
  using Ranges = std::vector<UserKeyRangeOpt>;

  DeltaFileDeletionTest() {
    EXPECT_OK(env_->GetFileSystem()->NewDirectory(dir_, IOOptions(),
                                                  &directory_, nullptr));
  }

  static Cover CoverOf(const Ranges& ranges, bool include_end,
                       const Slice& smallest, const Slice& largest) {
    return DeltaFileDeletion::CoverOf(ranges, include_end, smallest, largest,
                                      BytewiseComparator());
  }

  std::unique_ptr<DeltaFileDeletion> Begin(const Ranges& ranges,
                                           bool include_end) {
    return DeltaFileDeletion::Begin(
        store_.get(), version_.get(), ranges, include_end,
        [this] { return ++last_number_; }, [this] { ++num_ended_; });
  }

  DeltaFileDeletion::Output Output() {
    DeltaFileDeletion::Output output;
    output.db_id = "the DB";
    output.directory = directory_.get();
    return output;
  }

  // Deletes the operands of the ranges.
  // *seq: set to the sequence number up to which operands are hidden, 0 if
  // there were none to hide.
  void Delete(const Ranges& ranges, bool include_end, SequenceNumber* seq) {
    auto deletion = Begin(ranges, include_end);
    *seq = 0;
    if (deletion == nullptr) {
      return;
    }
    ASSERT_OK(deletion->Publish(Output()));
    *seq = deletion->file().largest_seq;
    // A repair must not take the file.
    EXPECT_TRUE(deletion->file().has_global_seq);
    VersionEdit edit;
    deletion->AddTo(&edit);
    ASSERT_NE(nullptr, edit.GetDeltaEdit());
    ASSERT_TRUE(edit.HasLastSequence());
    ASSERT_EQ(*seq, edit.GetLastSequence());
    Apply(*edit.GetDeltaEdit());
    ASSERT_OK(version_->CheckConsistency());
  }

  std::unique_ptr<FSDirectory> directory_;
  int num_ended_ = 0;
};

TEST_F(DeltaFileDeletionTest, CoverIsThePartOfTheBoundsInTheRanges) {
  const OptSlice none;
  const Slice b = "b";
  const Slice d = "d";
  const Slice f = "f";
  const Slice h = "h";
  // The range includes all keys within the bounds.
  EXPECT_EQ((Cover{{"f"}, {{"b", "f"}}}),
            CoverOf({{none, none}}, false, "b", "f"));
  EXPECT_EQ((Cover{{"f"}, {{"b", "f"}}}),
            CoverOf({{none, none}}, true, "b", "f"));
  EXPECT_EQ((Cover{{"f"}, {{"b", "f"}}}), CoverOf({{"a", h}}, false, "b", "f"));
  // The limit is a key within the bounds.
  EXPECT_EQ((Cover{{}, {{"b", "d"}}}), CoverOf({{none, d}}, false, "b", "f"));
  EXPECT_EQ((Cover{{"d"}, {{"b", "d"}}}), CoverOf({{none, d}}, true, "b", "f"));
  EXPECT_EQ((Cover{{}, {{"b", "f"}}}), CoverOf({{none, f}}, false, "b", "f"));
  EXPECT_EQ((Cover{{"f"}, {{"d", "f"}}}),
            CoverOf({{d, none}}, false, "b", "f"));
  // Only one key remains, or none because the limit is excluded.
  EXPECT_EQ((Cover{{"d"}, {}}), CoverOf({{d, d}}, true, "b", "f"));
  EXPECT_EQ(Cover(), CoverOf({{d, d}}, false, "b", "f"));
  EXPECT_EQ((Cover{{"b"}, {}}), CoverOf({{none, b}}, true, "b", "f"));
  EXPECT_EQ((Cover{{"f"}, {}}), CoverOf({{f, none}}, false, "b", "f"));
  EXPECT_EQ((Cover{{"b"}, {}}), CoverOf({{none, none}}, false, "b", "b"));
  // The range is outside the bounds, or its start is above its limit.
  EXPECT_EQ(Cover(), CoverOf({{none, b}}, false, "b", "f"));
  EXPECT_EQ(Cover(), CoverOf({{none, "a"}, {h, none}}, true, "b", "f"));
  EXPECT_EQ(Cover(), CoverOf({{f, d}}, true, "b", "f"));
  // There are several ranges in any order, some of which touch or overlap.
  EXPECT_EQ((Cover{{"d", "e", "f", "g"}, {{"b", "e"}, {"f", "g"}}}),
            CoverOf({{f, f}, {d, "e"}, {f, "g"}, {none, d}, {"c", d}}, true,
                    "b", "z"));
  EXPECT_EQ(
      (Cover{{}, {{"b", "e"}, {"f", "g"}}}),
      CoverOf({{f, "g"}, {d, "e"}, {none, d}, {"c", d}}, false, "b", "z"));
}

TEST_F(DeltaFileDeletionTest, BoundsIncludeAllOperandsButNoAnchors) {
  EXPECT_FALSE(DeltaOperandBounds::Of(nullptr).has_operands);
  Flush({{Event::Type::kRangeAnchor, "a", "z", 1}});
  EXPECT_FALSE(DeltaOperandBounds::Of(version_.get()).has_operands);
  EXPECT_EQ(nullptr, Begin({{OptSlice(), OptSlice()}}, true));
  Flush({OperandOf("k", 2), OperandOf("m", 4)});
  Flush({OperandOf("f", 5),
         OperandOf("l", 6),
         {Event::Type::kAnchor, "q", "", 9}});
  Merge(2);
  Collect(0, 1, 1, {"", "l"});
  Flush({OperandOf("h", 7)});
  const DeltaOperandBounds bounds = DeltaOperandBounds::Of(version_.get());
  EXPECT_TRUE(bounds.has_operands);
  EXPECT_EQ("f", bounds.smallest);
  EXPECT_EQ("m", bounds.largest);
  EXPECT_EQ(7u, bounds.largest_seq);

  // ClipColumnFamily() uses bounds of SST files and operands.
  const auto extend = [&](const DeltaVersion* version, bool has_sst_files,
                          const std::string& smallest,
                          const std::string& largest) {
    // The file that has these keys is gone when the bounds are used.
    std::optional<std::string> first(smallest);
    std::optional<std::string> last(largest);
    Slice a = *first;
    Slice b = *last;
    DeltaClipBounds clip;
    clip.Extend(version, has_sst_files, BytewiseComparator(), &a, &b);
    first.reset();
    last.reset();
    return a.ToString() + "-" + b.ToString();
  };
  EXPECT_EQ("g-h", extend(nullptr, true, "g", "h"));
  EXPECT_EQ("-", extend(nullptr, false, "", ""));
  EXPECT_EQ("f-m", extend(version_.get(), false, "", ""));
  EXPECT_EQ("f-m", extend(version_.get(), true, "g", "h"));
  EXPECT_EQ("a-z", extend(version_.get(), true, "a", "z"));
  EXPECT_EQ("-m", extend(version_.get(), true, "", "b"));
}

TEST_F(DeltaFileDeletionTest, HidesOperandsThatAreInFiles) {
  Flush({OperandOf("a", 1), OperandOf("c", 2), OperandOf("e", 3),
         OperandOf("g", 4)});
  SequenceNumber seq = 0;
  Delete({{"b", "e"}}, /*include_end=*/false, &seq);
  ASSERT_EQ(4u, seq);
  EXPECT_EQ(1, num_ended_);
  EXPECT_EQ((Values{{1, "a@1"}}), MustRead("a", 9));
  EXPECT_EQ(Values(), MustRead("c", 9));
  EXPECT_EQ((Values{{3, "e@3"}}), MustRead("e", 9));
  Delete({{"e", "g"}}, /*include_end=*/true, &seq);
  EXPECT_EQ(Values(), MustRead("e", 9));
  EXPECT_EQ(Values(), MustRead("g", 9));
  // Operands that were in memtables have larger sequence numbers, so they are
  // not hidden when they are flushed.
  Flush({OperandOf("c", 5)});
  EXPECT_EQ((Values{{5, "c@5"}}), MustRead("c", 9));
  // The anchors hide all operands, and yet have a smaller sequence number than
  // the newest anchor: it is that of the newest operand.
  Flush({{Event::Type::kAnchor, "c", "", 6}});
  Delete({{OptSlice(), OptSlice()}}, /*include_end=*/false, &seq);
  EXPECT_EQ(5u, seq);
  for (const std::string key : {"a", "c", "e", "g"}) {
    EXPECT_EQ(Values(), MustRead(key, 9));
  }
  // According to the bounds of the files there is no operand in the range.
  Delete({{"x", OptSlice()}}, /*include_end=*/true, &seq);
  EXPECT_EQ(0u, seq);
}

// The deletion counts as a running flush until it is closed, whether or not a
// flush that began before it has ended. It is closed once.
TEST_F(DeltaFileDeletionTest, DeletionCountsAsARunningFlush) {
  Flush({OperandOf("a", 1)});
  const uint64_t flush_epoch = ++last_number_;
  store_->OnFlushBegin(flush_epoch);
  auto deletion = Begin({{OptSlice(), OptSlice()}}, true);
  ASSERT_NE(nullptr, deletion);
  ASSERT_OK(deletion->Publish(Output()));
  EXPECT_EQ(flush_epoch, store_->OldestRunningFlush());
  store_->OnFlushEnd(flush_epoch);
  // Merges must not take in files of this epoch or of later ones.
  EXPECT_EQ(flush_epoch + 1, store_->OldestRunningFlush());
  EXPECT_EQ(deletion->file().first_epoch, store_->OldestRunningFlush());
  deletion->Close();
  EXPECT_EQ(UINT64_MAX, store_->OldestRunningFlush());
  EXPECT_EQ(1, num_ended_);
  deletion.reset();
  EXPECT_EQ(1, num_ended_);
}

TEST_F(DeltaFileDeletionTest, FailedWriteLeavesNoFile) {
  Flush({OperandOf("a", 1)});
  const size_t num_files = NumFiles();
  for (const std::string point : {"DeltaFileBuilder::Open:NewWritableFile",
                                  "DeltaFileBuilder::FinishFile:BeforeSync",
                                  "DeltaFileBuilder::FinishFile:AfterClose",
                                  "DeltaFileDeletion::Publish:Synced"}) {
    SCOPED_TRACE(point);
    EnableCallBack(point, [&](void* arg) {
      if (point == "DeltaFileDeletion::Publish:Synced") {
        *static_cast<Status*>(arg) = Status::IOError("injected");
      } else {
        *static_cast<IOStatus*>(arg) = IOStatus::IOError("injected");
      }
    });
    auto deletion = Begin({{OptSlice(), OptSlice()}}, true);
    ASSERT_NE(nullptr, deletion);
    const Status s = deletion->Publish(Output());
    DisableCallBacks();
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_EQ(0u, deletion->file().number);
    EXPECT_EQ(num_files, NumFiles());
  }
  EXPECT_EQ(4, num_ended_);
  EXPECT_EQ(UINT64_MAX, store_->OldestRunningFlush());
}

TEST_F(DeltaFileDeletionTest, AbandonDeletesTheFile) {
  Flush({OperandOf("a", 1)});
  const size_t num_files = NumFiles();
  auto deletion = Begin({{OptSlice(), OptSlice()}}, true);
  ASSERT_NE(nullptr, deletion);
  ASSERT_OK(deletion->Publish(Output()));
  EXPECT_EQ(num_files + 1, NumFiles());
  deletion->Abandon();
  EXPECT_EQ(num_files, NumFiles());
  EXPECT_EQ(0u, deletion->file().number);
}

TEST_F(DeltaFileDeletionTest, HidesExactlyTheOperandsInRandomRanges) {
  std::vector<std::string> keys;
  for (char c = 'a'; c <= 'p'; ++c) {
    keys.emplace_back(1, c);
  }
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Random rnd(seed);
    ResetHistory();
    for (int step = 0; step < 25; ++step) {
      RandomStep(keys, &rnd);
    }
    if (version_ == nullptr) {
      continue;
    }
    Ranges ranges;
    for (int i = rnd.Uniform(3); i >= 0; --i) {
      const auto bound = [&]() -> OptSlice {
        return rnd.OneIn(5)
                   ? OptSlice()
                   : OptSlice(Slice(
                         keys[rnd.Uniform(static_cast<int>(keys.size()))]));
      };
      const OptSlice start = bound();
      const OptSlice limit = bound();
      ranges.emplace_back(start, limit);
    }
    const bool include_end = rnd.OneIn(2);
    std::vector<Values> before;
    for (const std::string& key : keys) {
      before.push_back(MustRead(key, kMaxSequenceNumber));
    }
    SequenceNumber seq = 0;
    Delete(ranges, include_end, &seq);
    for (size_t i = 0; i < keys.size(); ++i) {
      bool is_in = false;
      for (const UserKeyRangeOpt& range : ranges) {
        const Slice key = keys[i];
        const int to_limit =
            range.limit.has_value() ? key.compare(*range.limit) : -1;
        // A range whose start is above its limit contains no key.
        is_in = is_in ||
                ((!range.start.has_value() || key.compare(*range.start) >= 0) &&
                 (to_limit < 0 || (include_end && to_limit == 0)));
      }
      EXPECT_EQ(is_in ? Values() : before[i],
                MustRead(keys[i], kMaxSequenceNumber))
          << keys[i];
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
