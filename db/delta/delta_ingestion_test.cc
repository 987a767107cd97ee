//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_ingestion.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_store_test_util.h"
#include "db/range_tombstone_fragmenter.h"
#include "file/sst_file_manager_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/sst_file_manager.h"
#include "test_util/strata/sync_point_test_util.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::Event;
using delta_test::Values;

class DeltaIngestionTest : public delta_test::DeltaStoreTestBase {
 protected:
  DeltaIngestionTest() : icmp_(BytewiseComparator()) {}

  DeltaFileBuilder::Options AnchorOptions() {
    DeltaFileBuilder::Options options = BuilderOptions(Kind::kAnchors);
    options.first_epoch = options.last_epoch = 0;
    options.has_global_seq = true;
    return options;
  }

  struct Entry {
    std::string key;
    ValueType type = kTypeValue;
  };
  using Range = std::pair<std::string, std::string>;

  // Writes the anchors of an SST file with these entries and range deletions.
  Status WriteAnchors(const std::vector<Entry>& entries,
                      const std::vector<Range>& ranges,
                      IngestedDeltaAnchors* anchors) {
    std::vector<std::string> keys;
    for (const Entry& entry : entries) {
      keys.push_back(InternalKey(entry.key, 0, entry.type).Encode().ToString());
    }
    VectorIterator points(keys, std::vector<std::string>(keys.size(), "value"),
                          &icmp_);
    std::vector<std::string> starts;
    std::vector<std::string> ends;
    for (const Range& range : ranges) {
      starts.push_back(
          InternalKey(range.first, 0, kTypeRangeDeletion).Encode().ToString());
      ends.push_back(range.second);
    }
    FragmentedRangeTombstoneList list(
        std::make_unique<VectorIterator>(starts, ends, &icmp_), icmp_);
    FragmentedRangeTombstoneIterator range_iter(&list, icmp_,
                                                kMaxSequenceNumber);
    return DeltaIngestion::WriteAnchors(
        *store_->tables(), AnchorOptions(), &points,
        ranges.empty() ? nullptr : &range_iter, anchors);
  }

  bool IsOverOperands(const Slice& smallest, const Slice& largest) {
    DeltaIngestion::Source source;
    source.name = "file";
    source.smallest = smallest;
    source.largest = largest;
    bool result = false;
    EXPECT_OK(DeltaIngestion::Check(version_.get(), source, &result));
    return result;
  }

  const InternalKeyComparator icmp_;
};

TEST_F(DeltaIngestionTest, CheckFindsOperandsInTheRangeOfAFile) {
  EXPECT_FALSE(IsOverOperands("a", "z"));  // there are no delta files
  Flush({OperandOf("d", 1),
         OperandOf("m", 2),
         {Event::Type::kAnchor, "x", "", 3},
         {Event::Type::kRangeAnchor, "v", "w", 4}});
  EXPECT_TRUE(IsOverOperands("a", "z"));
  EXPECT_TRUE(IsOverOperands("m", "z"));
  EXPECT_TRUE(IsOverOperands("a", "d"));
  EXPECT_TRUE(IsOverOperands("f", "h"));  // between the keys of a file
  EXPECT_FALSE(IsOverOperands("a", "c"));
  // Anchors do not count as operands.
  EXPECT_FALSE(IsOverOperands("n", "z"));

  // One of the three buckets has no operands.
  Merge(1);
  Collect(0, 1, 1, {"", "e", "k"});
  EXPECT_TRUE(IsOverOperands("a", "d"));
  EXPECT_FALSE(IsOverOperands("f", "h"));
  EXPECT_TRUE(IsOverOperands("f", "k"));
}

TEST_F(DeltaIngestionTest, FileThatCannotLieOverOperandsIsRefused) {
  Flush({OperandOf("d", 1), OperandOf("f", 2)});
  DeltaIngestion::Source source;
  source.name = "/some/file.sst";
  const auto check = [&](const std::function<void()>& change,
                         const std::string& why, bool is_invalid) {
    source.smallest = "e";
    source.largest = "g";
    source.num_operands = 0;
    source.keeps_seqs = false;
    source.may_have_seq = true;
    change();
    bool over_operands = false;
    Status s = DeltaIngestion::Check(version_.get(), source, &over_operands);
    EXPECT_TRUE(is_invalid ? s.IsInvalidArgument() : s.IsNotSupported())
        << s.ToString();
    EXPECT_TRUE(over_operands);
    for (const std::string& part :
         {std::string("/some/file.sst"), std::string("enable_delta_separation"),
          why}) {
      EXPECT_NE(std::string::npos, s.ToString().find(part)) << s.ToString();
    }
    // The file may be ingested where there are no operands.
    source.smallest = "g";
    EXPECT_OK(DeltaIngestion::Check(version_.get(), source, &over_operands));
    EXPECT_FALSE(over_operands);
    EXPECT_OK(DeltaIngestion::Check(nullptr, source, &over_operands));
    EXPECT_FALSE(over_operands);
  };
  EXPECT_TRUE(DeltaIngestion::NeedsAnchors(source));
  check([&] { source.num_operands = 1; }, "merge operands itself", false);
  EXPECT_FALSE(DeltaIngestion::NeedsAnchors(source));
  check([&] { source.keeps_seqs = true; }, "allow_db_generated_files", false);
  EXPECT_FALSE(DeltaIngestion::NeedsAnchors(source));
  check([&] { source.may_have_seq = false; }, "allow_global_seqno", true);
  EXPECT_TRUE(DeltaIngestion::NeedsAnchors(source));

  EXPECT_OK(DeltaIngestion::CheckReplaceRange(nullptr));
  const Status s = DeltaIngestion::CheckReplaceRange(store_.get());
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_NE(std::string::npos, s.ToString().find("atomic_replace_range"));
}

TEST_F(DeltaIngestionTest, AnchorsHideOlderOperands) {
  Flush({OperandOf("b", 1), OperandOf("c", 2), OperandOf("e", 3),
         OperandOf("g", 4)});
  IngestedDeltaAnchors anchors;
  ASSERT_OK(
      WriteAnchors({{"b"}, {"d", kTypeDeletion}}, {{"e", "f"}}, &anchors));
  EXPECT_NE(0u, anchors.file.number);
  EXPECT_FALSE(anchors.are_needed);
  EXPECT_TRUE(anchors.file.has_global_seq);
  EXPECT_EQ(2u, anchors.file.num_entries);
  EXPECT_EQ(1u, anchors.file.num_range_anchors);
  // These operands are flushed after the anchors were written, and before they
  // are committed.
  Flush({OperandOf("b", 5), OperandOf("d", 6)});
  DeltaFileBuilder::AssignGlobalSeq(/*seq=*/7, /*epoch=*/++last_number_,
                                    &anchors.file);
  DeltaEdit edit;
  edit.AddFile(anchors.file);
  Apply(edit);
  EXPECT_EQ(Values(), MustRead("b", 7));
  EXPECT_EQ((Values{{5, "b@5"}, {1, "b@1"}}), MustRead("b", 6));
  EXPECT_EQ((Values{{2, "c@2"}}), MustRead("c", 7));
  EXPECT_EQ(Values(), MustRead("d", 7));
  EXPECT_EQ(Values(), MustRead("e", 7));
  EXPECT_EQ((Values{{3, "e@3"}}), MustRead("e", 6));
  EXPECT_EQ((Values{{4, "g@4"}}), MustRead("g", 7));
  Flush({OperandOf("b", 8)});
  EXPECT_EQ((Values{{8, "b@8"}}), MustRead("b", 8));
}

TEST_F(DeltaIngestionTest, OperandsAreRefused) {
  IngestedDeltaAnchors anchors;
  for (const bool has_base : {false, true}) {
    const Status s =
        has_base ? WriteAnchors({{"a"}, {"b", kTypeMerge}}, {}, &anchors)
                 : WriteAnchors({{"a", kTypeMerge}}, {}, &anchors);
    EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
    EXPECT_FALSE(anchors.are_written);
    EXPECT_EQ(0u, anchors.file.number);
    EXPECT_EQ(0u, NumFiles());
  }
}

// No file is written, and the ingestion does not look for anchors again.
TEST_F(DeltaIngestionTest, NoEntriesNeedNoAnchors) {
  IngestedDeltaAnchors anchors;
  ASSERT_OK(WriteAnchors({}, {}, &anchors));
  EXPECT_TRUE(anchors.are_written);
  EXPECT_EQ(0u, anchors.file.number);
  EXPECT_EQ(0u, NumFiles());
  ASSERT_OK(WriteAnchors({{"a"}}, {}, &anchors));
  EXPECT_TRUE(anchors.are_written);
  EXPECT_NE(0u, anchors.file.number);
}

TEST_F(DeltaIngestionTest, DeleteRemovesTheFileAndItsSize) {
  auto* const manager = NewSstFileManager(env_.get());
  options_.sst_file_manager.reset(manager);
  ResetStore();
  IngestedDeltaAnchors anchors;
  // There is no file yet.
  DeltaIngestion::Delete(env_->GetFileSystem().get(), manager,
                         /*info_log=*/nullptr, &anchors);
  ASSERT_OK(WriteAnchors({{"a"}}, {}, &anchors));
  EXPECT_OK(env_->FileExists(anchors.file_name));
  EXPECT_EQ(anchors.file.size, manager->GetTotalSize());
  const IngestedDeltaAnchors copy = anchors;
  DeltaIngestion::Delete(env_->GetFileSystem().get(), manager,
                         /*info_log=*/nullptr, &anchors);
  EXPECT_EQ(0u, anchors.file.number);
  EXPECT_EQ(0u, NumFiles());
  EXPECT_EQ(0u, manager->GetTotalSize());
  // The file is already gone.
  anchors = copy;
  DeltaIngestion::Delete(env_->GetFileSystem().get(),
                         /*sst_file_manager=*/nullptr, /*info_log=*/nullptr,
                         &anchors);
  EXPECT_EQ(0u, anchors.file.number);
}

TEST_F(DeltaIngestionTest, FailedWriteLeavesNoFile) {
  const auto fail_io = [](void* arg) {
    *static_cast<IOStatus*>(arg) = IOStatus::IOError("injected");
  };
  const std::vector<std::pair<std::string, std::function<void(void*)>>> points =
      {{"DeltaFileBuilder::Open:NewWritableFile", fail_io},
       {"DeltaFileBuilder::FinishFile:BeforeSync", fail_io},
       {"DeltaFileBuilder::FinishFile:AfterClose", fail_io},
       {"DeltaIngestion::WriteAnchors:Opened", [](void* arg) {
          *static_cast<Status*>(arg) = Status::Corruption("injected");
        }}};
  for (const auto& [point, inject] : points) {
    SCOPED_TRACE(point);
    EnableCallBack(point, inject);
    IngestedDeltaAnchors anchors;
    const Status s = WriteAnchors({{"a"}}, {{"b", "c"}}, &anchors);
    DisableCallBacks();
    EXPECT_NE(std::string::npos, s.ToString().find("injected")) << s.ToString();
    EXPECT_EQ(0u, anchors.file.number);
    EXPECT_EQ(0u, NumFiles());
  }
  // A damaged input leaves no file.
  VectorIterator damaged({"short"}, {"value"});
  IngestedDeltaAnchors anchors;
  EXPECT_TRUE(DeltaIngestion::WriteAnchors(*store_->tables(), AnchorOptions(),
                                           &damaged, /*ranges=*/nullptr,
                                           &anchors)
                  .IsCorruption());
  EXPECT_EQ(0u, NumFiles());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
