//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_merge_job.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_properties.h"
#include "db/delta/delta_merge_pass_test_util.h"
#include "db/delta/delta_store_test_util.h"
#include "port/stack_trace.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::Event;
using delta_test::Events;
using delta_test::JoinOperator;
using delta_test::Values;
using Type = Event::Type;

namespace {

// Drops the operands of keys that begin with "drop".
class DropFilter : public CompactionFilter {
 public:
  Decision FilterV2(int, const Slice& key, ValueType, const Slice&,
                    std::string*, std::string*) const override {
    return key.starts_with("drop") ? Decision::kRemove : Decision::kKeep;
  }
  const char* Name() const override { return "DropFilter"; }
};

}  // namespace

class DeltaMergeJobTest : public delta_test::DeltaStoreTestBase {
 protected:
  DeltaMergeJobTest() {
    options_.merge_operator =
        std::make_shared<JoinOperator>(JoinOperator::Mode::kJoin);
    ioptions_ = std::make_unique<ImmutableOptions>(options_);
    ResetHistory();
  }

  // Returns a job that merges all flushed files.
  std::unique_ptr<DeltaMergeJob> NewJob(
      const std::vector<SequenceNumber>& snapshots = {}) {
    DeltaMergeJob::Context context;
    context.pass.store = store_.get();
    context.pass.ioptions = ioptions_.get();
    context.pass.moptions = &moptions_;
    context.pass.snapshots = snapshots;
    context.pass.earliest_snapshot =
        snapshots.empty() ? kMaxSequenceNumber : snapshots.front();
    context.pass.latest_listed_snapshot = 0;
    context.pass.filter = filter_;
    context.pass.check = [this] { return check_; };
    context.pass.env = env_.get();
    context.output = BuilderOptions(Kind::kOperands, Tier::kMerged);
    context.new_file_number = [this] { return ++last_number_; };
    context.checks.entries = verify_contents_;
    std::vector<DeltaVersion::FilePtr> inputs;
    for (Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      for (const DeltaVersion::FilePtr& file : version_->RecentFiles(kind)) {
        if (file->description().tier == Tier::kFlushed) {
          inputs.push_back(file);
        }
      }
    }
    return std::make_unique<DeltaMergeJob>(std::move(context),
                                           std::move(inputs));
  }

  // Merges all flushed files, applies the edit and returns the merged files.
  std::vector<DeltaFileDescription> MergeFlushed(
      const std::vector<SequenceNumber>& snapshots = {}) {
    const auto job = NewJob(snapshots);
    EXPECT_OK(job->Run());
    DeltaEdit edit;
    job->AddTo(&edit);
    EXPECT_OK(edit.Validate());
    Apply(edit);
    EXPECT_OK(version_->CheckConsistency());
    return job->files();
  }

  // Joins the values as a reader merges them, the oldest first.
  static std::string Join(const Values& values) {
    std::string joined;
    for (auto value = values.rbegin(); value != values.rend(); ++value) {
      joined += (joined.empty() ? "" : ",") + value->second;
    }
    return joined;
  }
  std::string ReadAll(const std::string& key, SequenceNumber seq) {
    return Join(MustRead(key, seq));
  }

  // Returns the operands and anchors of the files, separated by spaces.
  std::string Contents(const std::vector<DeltaFileDescription>& files) {
    std::string text;
    for (const DeltaFileDescription& file : files) {
      const auto reader = MustOpen(file);
      const ReadOptions read_options;
      const std::unique_ptr<InternalIterator> iter(
          reader->NewIterator(read_options, TableReaderCaller::kUserIterator));
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        text += text.empty() ? "" : " ";
        text += file.kind == Kind::kOperands
                    ? iter->value().ToString()
                    : "anchor " + iter->user_key().ToString() + "@" +
                          std::to_string(GetInternalKeySeqno(iter->key()));
      }
      EXPECT_OK(iter->status());
      const auto ranges = reader->NewRangeAnchorIterator(kMaxSequenceNumber);
      if (ranges != nullptr) {
        for (ranges->SeekToFirst(); ranges->Valid(); ranges->Next()) {
          text += " range " + ranges->start_key().ToString() + "-" +
                  ranges->end_key().ToString() + "@" +
                  std::to_string(ranges->seq());
        }
      }
    }
    return text;
  }

  DeltaFileProperties Properties(const DeltaFileDescription& file) {
    DeltaFileProperties properties;
    EXPECT_OK(DeltaFileProperties::Read(*MustOpen(file)->GetTableProperties(),
                                        &properties));
    return properties;
  }

  std::unique_ptr<ImmutableOptions> ioptions_;
  MutableCFOptions moptions_;
  const CompactionFilter* filter_ = nullptr;
  Status check_;
  bool verify_contents_ = false;
};

TEST_F(DeltaMergeJobTest, MergesIntoOneFileOfEachKind) {
  verify_contents_ = true;
  Flush({OperandOf("a", 1), OperandOf("b", 2)});
  Flush({OperandOf("a", 3), AnchorOf("b", 4), RangeAnchorOf("c", "e", 5)});
  Flush({OperandOf("b", 6)});
  const uint64_t first =
      version_->RecentFiles(Kind::kOperands).back()->description().first_epoch;
  const uint64_t last =
      version_->RecentFiles(Kind::kOperands).front()->description().last_epoch;
  const std::vector<DeltaFileDescription> files = MergeFlushed();
  ASSERT_EQ(2, files.size());
  EXPECT_EQ("a@1,a@3 b@6 anchor b@4 range c-e@5", Contents(files));
  EXPECT_EQ(Kind::kOperands, files[0].kind);
  EXPECT_EQ(Kind::kAnchors, files[1].kind);
  for (const DeltaFileDescription& file : files) {
    EXPECT_EQ(Tier::kMerged, file.tier);
    EXPECT_EQ(first, file.first_epoch);
    EXPECT_EQ(last, file.last_epoch);
  }
  EXPECT_EQ(files[0].number, Properties(files[1]).operands_number);
  EXPECT_EQ(2, version_->GetTotals().num_files);
  EXPECT_EQ("a@1,a@3", ReadAll("a", kMaxSequenceNumber));
  EXPECT_EQ("b@6", ReadAll("b", kMaxSequenceNumber));
}

TEST_F(DeltaMergeJobTest, EntriesOfOneKindLeaveOneFile) {
  Flush({OperandOf("a", 1)});
  Flush({OperandOf("b", 2)});
  EXPECT_EQ("a@1 b@2", Contents(MergeFlushed()));
  Flush({AnchorOf("a", 3)});
  Flush({AnchorOf("a", 4), AnchorOf("b", 5)});
  const std::vector<DeltaFileDescription> files = MergeFlushed();
  EXPECT_EQ("anchor a@4 anchor b@5", Contents(files));
  ASSERT_EQ(1, files.size());
  EXPECT_EQ(0, Properties(files[0]).operands_number);
  EXPECT_EQ("", ReadAll("a", kMaxSequenceNumber));
}

TEST_F(DeltaMergeJobTest, DropsHiddenOperands) {
  verify_contents_ = true;
  Flush({OperandOf("a", 1), OperandOf("b", 2)});
  Flush({AnchorOf("a", 3), AnchorOf("b", 4)});
  const std::vector<DeltaFileDescription> files = MergeFlushed();
  ASSERT_EQ(1, files.size());
  EXPECT_EQ("anchor a@3 anchor b@4", Contents(files));
  EXPECT_EQ(0, Properties(files[0]).operands_number);
}

// If no entry is left, the job writes a file that shows a repair which flushes
// were merged.
TEST_F(DeltaMergeJobTest, MergeWithoutResultLeavesAFile) {
  verify_contents_ = true;
  const DropFilter filter;
  filter_ = &filter;
  Flush({OperandOf("drop1", 1)});
  Flush({OperandOf("drop2", 2)});
  const auto job = NewJob();
  ASSERT_OK(job->Run());
  EXPECT_TRUE(job->stats().filter_changed);
  EXPECT_EQ(2, job->stats().operands_filtered);
  DeltaEdit edit;
  job->AddTo(&edit);
  Apply(edit);
  ASSERT_EQ(1, job->files().size());
  EXPECT_EQ(Kind::kAnchors, job->files()[0].kind);
  EXPECT_EQ(0, Properties(job->files()[0]).operands_number);
  EXPECT_EQ(0, job->files()[0].largest_seq);
  EXPECT_EQ("", ReadAll("drop1", kMaxSequenceNumber));
  // The file hides no operands.
  filter_ = nullptr;
  Flush({OperandOf("drop1", 3), OperandOf("drop2", 4)});
  EXPECT_EQ("drop1@3", ReadAll("drop1", kMaxSequenceNumber));
  EXPECT_EQ("drop2@4", ReadAll("drop2", kMaxSequenceNumber));
}

TEST_F(DeltaMergeJobTest, SnapshotsSeeTheSameAfterAMerge) {
  Flush({OperandOf("a", 1), OperandOf("a", 2)});
  Flush({AnchorOf("a", 4), OperandOf("a", 5), OperandOf("a", 6)});
  Flush({OperandOf("a", 8), AnchorOf("a", 9)});
  MergeFlushed({3, 5, 9});
  EXPECT_EQ("a@1,a@2", ReadAll("a", 3));
  EXPECT_EQ("a@5", ReadAll("a", 5));
  EXPECT_EQ("", ReadAll("a", 9));
  EXPECT_EQ("", ReadAll("a", kMaxSequenceNumber));
}

// Readers at snapshots, and later readers, see the same after merges of random
// flushes.
TEST_F(DeltaMergeJobTest, ReadersSeeTheSameAfterRandomMerges) {
  const std::vector<std::string> keys = {"a", "ab", "b", "c", "d", "e", "f"};
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random rnd(301 + seed);
    ResetHistory();
    verify_contents_ = rnd.OneIn(2);
    for (int round = 0; round < 4; ++round) {
      std::vector<SequenceNumber> snapshots;
      for (int flush = 1 + rnd.Uniform(5); flush > 0; --flush) {
        Events events;
        for (int i = 1 + rnd.Uniform(10); i > 0; --i) {
          Event event;
          event.key = keys[rnd.Uniform(static_cast<int>(keys.size()))];
          event.seq = ++last_seq_;
          if (rnd.OneIn(5)) {
            event.type = Type::kAnchor;
          } else if (rnd.OneIn(8)) {
            event.type = Type::kRangeAnchor;
            event.end = event.key + "c";
          }
          events.push_back(std::move(event));
          if (rnd.OneIn(8)) {
            snapshots.push_back(last_seq_);
          }
        }
        Flush(events);
      }
      if (snapshots.empty() || snapshots.back() < last_seq_) {
        snapshots.push_back(last_seq_);  // the newest published one
      }
      MergeFlushed(snapshots);
      std::vector<SequenceNumber> read_seqs = snapshots;
      read_seqs.push_back(kMaxSequenceNumber);
      for (const std::string& key : keys) {
        for (SequenceNumber seq : read_seqs) {
          ASSERT_EQ(Join(Expected(key, seq)), ReadAll(key, seq))
              << key << " at " << seq;
        }
      }
    }
  }
}

TEST_F(DeltaMergeJobTest, FailedJobLeavesNoFiles) {
  Flush({OperandOf("a", 1), OperandOf("b", 2)});
  Flush({OperandOf("a", 3), AnchorOf("b", 4)});
  const size_t num_files = NumFiles();

  // The job fails while it runs.
  check_ = Status::ShutdownInProgress();
  auto job = NewJob();
  EXPECT_TRUE(job->Run().IsShutdownInProgress());
  job.reset();
  EXPECT_EQ(num_files, NumFiles());
  check_ = Status::OK();

  // The job fails after all entries were merged, and at the end of each file.
  EnableCallBack("DeltaMergeJob::Run:Merged", [](void* arg) {
    *static_cast<Status*>(arg) = Status::Aborted("test");
  });
  job = NewJob();
  EXPECT_TRUE(job->Run().IsAborted());
  EXPECT_TRUE(job->files().empty());
  job.reset();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  EXPECT_EQ(num_files, NumFiles());
  for (const char* point : {"DeltaFileBuilder::FinishFile:BeforeSync",
                            "DeltaFileBuilder::FinishFile:AfterClose"}) {
    for (int which = 0; which < 2; ++which) {
      SCOPED_TRACE(point + std::to_string(which));
      int calls = 0;
      SyncPoint::GetInstance()->SetCallBack(point, [&](void* arg) {
        if (calls++ == which) {
          *static_cast<IOStatus*>(arg) = IOStatus::IOError("test");
        }
      });
      job = NewJob();
      EXPECT_TRUE(job->Run().IsIOError());
      EXPECT_TRUE(job->io_status().IsIOError());
      job.reset();
      SyncPoint::GetInstance()->ClearAllCallBacks();
      EXPECT_EQ(num_files, NumFiles());
    }
  }
  SyncPoint::GetInstance()->DisableProcessing();

  // A successful job is abandoned.
  job = NewJob();
  ASSERT_OK(job->Run());
  EXPECT_EQ(2, job->files().size());
  EXPECT_GT(job->bytes_read(), 0);
  EXPECT_GT(job->bytes_written(), 0);
  EXPECT_EQ(num_files + 2, NumFiles());
  job->Abandon();
  EXPECT_EQ(num_files, NumFiles());
  EXPECT_TRUE(job->files().empty());

  // The merge can be repeated.
  EXPECT_EQ("a@1,a@3 anchor b@4", Contents(MergeFlushed()));
}

// The job fails if an output cannot be opened.
TEST_F(DeltaMergeJobTest, OutputThatCannotBeOpenedFailsTheJob) {
  Flush({OperandOf("a", 1)});
  Flush({OperandOf("a", 2)});
  const size_t num_files = NumFiles();
  auto job = NewJob();
  EnableCallBack("DeltaMergeJob::Finish:Verify", [&](void*) {
    ASSERT_OK(WriteStringToFile(env_.get(), "short",
                                DeltaFileName(dir_, last_number_)));
    EXPECT_EQ(num_files + 1, NumFiles());
  });
  const Status s = job->Run();
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  job.reset();
  EXPECT_EQ(num_files, NumFiles());
}

TEST_F(DeltaMergeJobTest, MissingInputFailsTheJob) {
  Flush({OperandOf("a", 1)});
  Flush({OperandOf("a", 2)});
  ASSERT_OK(env_->DeleteFile(
      FileName(version_->RecentFiles(Kind::kOperands).front()->description())));
  auto job = NewJob();
  EXPECT_NOK(job->Run());
  job.reset();
  EXPECT_EQ(1, NumFiles());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
