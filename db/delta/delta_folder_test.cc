//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_folder.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/blob/blob_fetcher.h"
#include "db/blob/blob_index.h"
#include "db/delta/delta_fold_commit.h"
#include "db/delta/delta_store_test_util.h"
#include "db/seqno_to_time_mapping.h"
#include "db/wide/wide_column_serialization.h"
#include "options/cf_options.h"
#include "port/stack_trace.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/wide_columns.h"
#include "util/coding.h"
#include "util/random.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using delta_test::Event;
using delta_test::Events;

// Appends operands with commas. Fails if an operand or the value is "bad".
class AppendOperator : public MergeOperator {
 public:
  bool FullMergeV2(const MergeOperationInput& in,
                   MergeOperationOutput* out) const override {
    std::string& result = out->new_value;
    result = in.existing_value != nullptr ? in.existing_value->ToString()
                                          : std::string("-");
    if (result == "bad") {
      return false;
    }
    for (const Slice& operand : in.operand_list) {
      if (operand == "bad") {
        out->op_failure_scope = scope;
        return false;
      }
      result += "," + operand.ToString();
    }
    return true;
  }
  const char* Name() const override { return "AppendOperator"; }

  OpFailureScope scope = OpFailureScope::kDefault;
};

// Finds every blob except at offset 0.
class TestFetcher : public BlobFetcher {
 public:
  using BlobFetcher::FetchBlob;
  Status FetchBlob(const Slice& user_key, const BlobIndex& index,
                   FilePrefetchBuffer* /*prefetch_buffer*/,
                   PinnableSlice* value,
                   uint64_t* /*bytes_read*/) const override {
    if (index.offset() == 0) {
      return Status::IOError("No such blob");
    }
    value->PinSelf("blob of " + user_key.ToString());
    return Status::OK();
  }
  const ReadOptions& read_options() const override { return read_options_; }

 private:
  const ReadOptions read_options_;
};

// Fails when it reaches the end.
class FailingIterator : public VectorIterator {
 public:
  using VectorIterator::VectorIterator;
  void Next() override {
    VectorIterator::Next();
    has_failed_ = has_failed_ || !Valid();
  }
  Status status() const override {
    return has_failed_ ? Status::IOError("Cannot be read") : Status::OK();
  }

 private:
  bool has_failed_ = false;
};

// Cannot be sought.
class FailingSeekIterator : public VectorIterator {
 public:
  using VectorIterator::VectorIterator;
  bool Valid() const override { return false; }
  Status status() const override { return Status::IOError("Cannot be read"); }
};

// Has a damaged entry, "c", that ends a walk. A seek of a later key is
// possible.
class DamagedIterator : public VectorIterator {
 public:
  using VectorIterator::VectorIterator;
  void Next() override {
    VectorIterator::Next();
    Check();
  }
  void Seek(const Slice& target) override {
    VectorIterator::Seek(target);
    Check();
  }
  bool Valid() const override { return !is_at_damage_ && IsIn(); }
  Status status() const override {
    return is_at_damage_ ? Status::Corruption("Damaged") : Status::OK();
  }

 private:
  bool IsIn() const { return VectorIterator::Valid(); }
  void Check() {
    is_at_damage_ = IsIn() && ExtractUserKey(VectorIterator::key()) == "c";
  }

  bool is_at_damage_ = false;
};

// Counts seeks and steps.
class CountingIterator : public VectorIterator {
 public:
  using VectorIterator::VectorIterator;
  void Next() override {
    ++nexts;
    VectorIterator::Next();
  }
  void Seek(const Slice& target) override {
    ++seeks;
    VectorIterator::Seek(target);
  }
  int nexts = 0;
  int seeks = 0;
};

}  // namespace

class DeltaFolderTest : public delta_test::DeltaStoreTestBase {
 protected:
  using Operand = DeltaFolder::Operand;

  DeltaFolderTest() : merge_operator_(std::make_shared<AppendOperator>()) {
    options_.merge_operator = merge_operator_;
    ResetStore();
    // This key is far away from the keys of the tests.
    Flush({{Event::Type::kOperand, "zz", "", 1}});
    context_.earliest_snapshot = 1000;
  }

  void TearDown() override {
    folder_.reset();
    lsm_.reset();
    DeltaStoreTestBase::TearDown();
  }

  void AddLsm(const std::string& key, SequenceNumber seq, ValueType type,
              const std::string& value = "") {
    keys_.push_back(InternalKey(key, seq, type).Encode().ToString());
    values_.push_back(value);
  }

  template <typename Iterator = VectorIterator>
  Iterator* MakeFolder() {
    folder_.reset();
    ioptions_ = std::make_unique<ImmutableOptions>(options_);
    context_.store = store_.get();
    context_.ioptions = ioptions_.get();
    auto lsm = std::make_unique<Iterator>(keys_, values_,
                                          &ioptions_->internal_comparator);
    Iterator* const result = lsm.get();
    lsm_ = std::move(lsm);
    folder_ = std::make_unique<DeltaValueFolder>(context_, version_, lsm_.get(),
                                                 &fetcher_);
    return result;
  }

  bool Fold(const std::string& key,
            const std::vector<std::pair<SequenceNumber, std::string>>& operands,
            bool hidden_from_none = true) {
    std::vector<Operand> slices(operands.begin(), operands.end());
    bool taken = false;
    EXPECT_OK(folder_->Fold(key, slices, hidden_from_none, &taken));
    return taken;
  }

  static std::string Text(const FoldedValues& values) {
    std::string text;
    for (size_t i = 0; i < values.size(); ++i) {
      ParsedInternalKey key;
      EXPECT_OK(ParseInternalKey(values.keys[i], &key, /*log_err_key=*/true));
      std::string value = values.values[i];
      if (key.type == kTypeWideColumnEntity) {
        Slice input(value);
        WideColumns columns;
        EXPECT_OK(WideColumnSerialization::DeserializeSimple(input, columns));
        std::string entity = "{";
        for (const WideColumn& column : columns) {
          entity +=
              column.name().ToString() + ":" + column.value().ToString() + ";";
        }
        value = entity + "}";
      } else {
        EXPECT_EQ(kTypeValue, key.type);
      }
      text += (i == 0 ? "" : " ") + key.user_key.ToString() + "@" +
              std::to_string(key.sequence) + "=" + value;
    }
    return text;
  }
  std::string Folded() { return Text(*folder_->values()); }

  const std::shared_ptr<AppendOperator> merge_operator_;
  TestFetcher fetcher_;
  DeltaValueFolder::Context context_;
  std::unique_ptr<ImmutableOptions> ioptions_;
  std::vector<std::string> keys_;
  std::vector<std::string> values_;
  std::unique_ptr<InternalIterator> lsm_;
  std::unique_ptr<DeltaValueFolder> folder_;
};

TEST(DeltaValueFolderTest, MaxBytesIsTheMemtableSizeWithinLimits) {
  MutableCFOptions options;
  options.write_buffer_size = size_t{32} << 20;
  EXPECT_EQ(uint64_t{32} << 20, DeltaValueFolder::MaxBytes(options));
  options.write_buffer_size = size_t{64} << 10;
  EXPECT_EQ(DeltaValueFolder::kMinBytes, DeltaValueFolder::MaxBytes(options));
  options.write_buffer_size = size_t{1} << 30;
  EXPECT_EQ(DeltaValueFolder::kMaxBytes, DeltaValueFolder::MaxBytes(options));
}

TEST_F(DeltaFolderTest, MergesOperandsWithAnyBase) {
  AddLsm("b", 3, kTypeValue, "base");
  AddLsm("c", 4, kTypeDeletion);
  AddLsm("c", 3, kTypeValue, "gone");
  AddLsm("d", 4, kTypeSingleDeletion);
  AddLsm("d", 3, kTypeValue, "gone");
  std::string packed;
  AddLsm("e", 3, kTypeValuePreferredSeqno,
         PackValueAndSeqno("timed", 2, &packed).ToString());
  std::string blob;
  BlobIndex::EncodeBlob(&blob, /*file_number=*/5, /*offset=*/7, /*size=*/10,
                        kNoCompression);
  AddLsm("f", 3, kTypeBlobIndex, blob);
  std::string entity;
  ASSERT_OK(WideColumnSerialization::Serialize(
      WideColumns{{kDefaultWideColumnName, "default"}, {"x", "1"}}, entity));
  AddLsm("g", 3, kTypeWideColumnEntity, entity);
  // The tree has operands, with and without a base. The base may have sequence
  // number 0.
  AddLsm("h", 6, kTypeMerge, "2");
  AddLsm("h", 5, kTypeMerge, "1");
  AddLsm("h", 0, kTypeValue, "base");
  AddLsm("i", 6, kTypeMerge, "2");
  AddLsm("i", 5, kTypeMerge, "1");
  MakeFolder();
  EXPECT_TRUE(Fold("a", {{20, "y"}, {10, "x"}}));
  EXPECT_TRUE(Fold("b", {{20, "y"}, {10, "x"}}));
  EXPECT_TRUE(Fold("c", {{20, "x"}}));
  EXPECT_TRUE(Fold("d", {{20, "x"}}));
  EXPECT_TRUE(Fold("e", {{20, "x"}}));
  EXPECT_TRUE(Fold("f", {{20, "x"}}));
  EXPECT_TRUE(Fold("g", {{20, "x"}}));
  EXPECT_TRUE(Fold("h", {{21, "4"}, {20, "3"}}));
  EXPECT_TRUE(Fold("i", {{20, "3"}}));
  EXPECT_EQ(
      "a@20=-,x,y b@20=base,x,y c@20=-,x d@20=-,x e@20=timed,x "
      "f@20=blob of f,x g@20={:default,x;x:1;} h@21=base,1,2,3,4 i@20=-,1,2,3",
      Folded());
  EXPECT_EQ(9, folder_->stats().keys_folded);
  EXPECT_EQ(12, folder_->stats().operands_folded);
  EXPECT_EQ(0, folder_->stats().keys_left);
}

TEST_F(DeltaFolderTest, LeavesKeysWithHiddenOrUnseenOperands) {
  context_.earliest_snapshot = 20;
  MakeFolder();
  EXPECT_TRUE(Fold("a", {{20, "x"}, {10, "x"}}));
  EXPECT_FALSE(Fold("b", {{21, "x"}, {10, "x"}}));
  // The job keeps an anchor of the key.
  EXPECT_FALSE(Fold("c", {{20, "x"}, {10, "x"}}, /*hidden_from_none=*/false));
  EXPECT_EQ("a@20=-,x,x", Folded());
  EXPECT_EQ(2, folder_->stats().keys_left);
}

TEST_F(DeltaFolderTest, LeavesKeysUnderAnchorsAboveTheFloor) {
  Flush({AnchorOf("a", 30), RangeAnchorOf("k", "m", 31)});
  // The epochs of the next flushes are above the floor.
  context_.floor = last_number_;
  Flush({AnchorOf("b", 40), AnchorOf("c", 19), AnchorOf("d", 20)});
  Flush({RangeAnchorOf("f", "h", 50)});
  MakeFolder();
  // The job has taken in this epoch, so it knows the anchor.
  EXPECT_TRUE(Fold("a", {{20, "x"}}));
  EXPECT_FALSE(Fold("b", {{20, "x"}}));
  EXPECT_TRUE(Fold("c", {{20, "x"}}));
  EXPECT_FALSE(Fold("d", {{20, "x"}}));
  EXPECT_TRUE(Fold("e", {{20, "x"}}));
  EXPECT_FALSE(Fold("f", {{20, "x"}}));
  EXPECT_FALSE(Fold("g", {{20, "x"}}));
  EXPECT_TRUE(Fold("g2", {{60, "x"}}));
  EXPECT_TRUE(Fold("h", {{20, "x"}}));
  EXPECT_TRUE(Fold("l", {{20, "x"}}));
  EXPECT_EQ("a@20=-,x c@20=-,x e@20=-,x g2@60=-,x h@20=-,x l@20=-,x", Folded());
}

TEST_F(DeltaFolderTest, LeavesKeysWithNewerEntriesInTheTree) {
  AddLsm("a", 21, kTypeValue, "newer");
  AddLsm("b", 15, kTypeValue, "between");
  AddLsm("b", 5, kTypeValue, "older");
  AddLsm("c", 5, kTypeValue, "older");
  MakeFolder();
  EXPECT_FALSE(Fold("a", {{20, "x"}}));
  EXPECT_FALSE(Fold("b", {{20, "x"}, {10, "x"}}));
  EXPECT_TRUE(Fold("c", {{20, "x"}, {10, "x"}}));
  EXPECT_EQ("c@20=older,x,x", Folded());
}

TEST_F(DeltaFolderTest, LeavesKeysWhoseMergeFails) {
  AddLsm("a", 5, kTypeValue, "bad");
  AddLsm("b", 5, kTypeValue, "good");
  std::string blob;
  BlobIndex::EncodeBlob(&blob, /*file_number=*/5, /*offset=*/0, /*size=*/10,
                        kNoCompression);
  AddLsm("d", 5, kTypeBlobIndex, blob);
  AddLsm("e", 5, kTypeBlobIndex, "not an index");
  AddLsm("f", 5, kTypeValue, "good");
  for (const auto scope : {MergeOperator::OpFailureScope::kDefault,
                           MergeOperator::OpFailureScope::kTryMerge,
                           MergeOperator::OpFailureScope::kMustMerge}) {
    merge_operator_->scope = scope;
    MakeFolder();
    EXPECT_FALSE(Fold("a", {{20, "x"}}));
    EXPECT_FALSE(Fold("b", {{20, "x"}, {10, "bad"}}));
    EXPECT_FALSE(Fold("c", {{20, "bad"}}));
    EXPECT_FALSE(Fold("d", {{20, "x"}}));
    EXPECT_FALSE(Fold("e", {{20, "x"}}));
    EXPECT_TRUE(Fold("f", {{20, "x"}}));
    EXPECT_EQ("f@20=good,x", Folded());
    EXPECT_EQ(5, folder_->stats().merges_failed);
    EXPECT_NOK(folder_->last_failure());
  }
}

TEST_F(DeltaFolderTest, FailedTreeIteratorEndsFolding) {
  AddLsm("a", 5, kTypeValue, "base");
  // The iterator fails where the base of "b" would be.
  AddLsm("b", 6, kTypeMerge, "1");
  MakeFolder<FailingIterator>();
  EXPECT_TRUE(Fold("a", {{20, "x"}}));
  EXPECT_FALSE(Fold("b", {{20, "x"}}));
  // The entries of other keys cannot be read, either.
  EXPECT_FALSE(Fold("c", {{20, "x"}}));
  EXPECT_EQ("a@20=base,x", Folded());
  EXPECT_TRUE(folder_->last_failure().IsIOError());
}

TEST_F(DeltaFolderTest, FailedSeekEndsFolding) {
  AddLsm("a", 5, kTypeValue, "base");
  MakeFolder<FailingSeekIterator>();
  EXPECT_FALSE(Fold("a", {{20, "x"}}));
  EXPECT_FALSE(Fold("b", {{20, "x"}}));
  EXPECT_EQ("", Folded());
  EXPECT_TRUE(folder_->stats().read_failed);
  EXPECT_FALSE(folder_->stats().damaged);
  EXPECT_TRUE(folder_->last_failure().IsIOError());
}

TEST_F(DeltaFolderTest, LeavesOnlyTheKeysOfADamagedBlock) {
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    AddLsm(key, 5, kTypeValue, "base");
  }
  MakeFolder<DamagedIterator>();
  EXPECT_TRUE(Fold("a", {{20, "x"}}));
  // The block may have older entries of the key before it.
  EXPECT_FALSE(Fold("b", {{20, "x"}}));
  EXPECT_FALSE(Fold("c", {{20, "x"}}));
  EXPECT_TRUE(Fold("d", {{20, "x"}}));
  EXPECT_TRUE(Fold("e", {{20, "x"}}));
  EXPECT_EQ("a@20=base,x d@20=base,x e@20=base,x", Folded());
  EXPECT_EQ(2, folder_->stats().merges_failed);
  // To try again would not help.
  EXPECT_FALSE(folder_->stats().read_failed);
  EXPECT_TRUE(folder_->stats().damaged);
  EXPECT_TRUE(folder_->last_failure().IsCorruption());
}

TEST_F(DeltaFolderTest, LeavesOnlyTheKeyOfACorruptEntry) {
  AddLsm("a", 5, kTypeValue, "base");
  std::string corrupt = "b";
  PutFixed64(&corrupt, (uint64_t{5} << 8) | 0x7e);  // no such type
  keys_.push_back(std::move(corrupt));
  values_.push_back("");
  AddLsm("c", 5, kTypeValue, "base");
  MakeFolder();
  EXPECT_TRUE(Fold("a", {{20, "x"}}));
  EXPECT_FALSE(Fold("b", {{20, "x"}}));
  EXPECT_TRUE(Fold("c", {{20, "x"}}));
  EXPECT_EQ("a@20=base,x c@20=base,x", Folded());
}

TEST_F(DeltaFolderTest, DamagedAnchorsFailTheJob) {
  Flush({AnchorOf("a", 30)});
  for (const auto& file :
       version_->RecentFiles(DeltaFileDescription::Kind::kAnchors)) {
    ASSERT_OK(env_->DeleteFile(FileName(file->description())));
  }
  MakeFolder();
  bool taken = false;
  EXPECT_NOK(folder_->Fold("a", {{20, "x"}}, true, &taken));
  EXPECT_FALSE(taken);
}

TEST_F(DeltaFolderTest, LeavesKeysWhenTheMemoryLimitIsReached) {
  context_.max_bytes = 10000;
  MakeFolder();
  int taken = 0;
  for (int i = 0; i < 100; ++i) {
    std::string key = "k" + std::to_string(1000 + i);
    const bool was_full = folder_->stats().full;
    const bool was_taken = Fold(key, {{20, std::string(1000, 'x')}});
    EXPECT_NE(was_full, was_taken);
    taken += was_taken ? 1 : 0;
  }
  EXPECT_TRUE(folder_->stats().full);
  EXPECT_GE(taken, 9);
  EXPECT_LE(taken, 10);
  EXPECT_EQ(taken, folder_->values()->size());
}

TEST_F(DeltaFolderTest, ShutdownFailsTheJob) {
  std::atomic<bool> shutting_down{false};
  context_.shutting_down = &shutting_down;
  MakeFolder();
  EXPECT_TRUE(Fold("a", {{20, "x"}}));
  shutting_down = true;
  bool taken = true;
  EXPECT_TRUE(
      folder_->Fold("b", {{20, "x"}}, true, &taken).IsShutdownInProgress());
  EXPECT_FALSE(taken);
}

TEST_F(DeltaFolderTest, LeavesKeysWithoutAMergeOperator) {
  options_.merge_operator = nullptr;
  MakeFolder();
  EXPECT_FALSE(Fold("a", {{20, "x"}}));
}

TEST_F(DeltaFolderTest, SeeksOverManyKeysThatAreNotFolded) {
  const auto key_at = [](int i) { return "k" + std::to_string(10000 + i); };
  for (int i = 0; i < 1000; ++i) {
    AddLsm(key_at(i), 5, kTypeValue, "base" + std::to_string(i));
  }
  auto* lsm = MakeFolder<CountingIterator>();
  for (int i = 0; i < 1000; i += 100) {
    EXPECT_TRUE(Fold(key_at(i), {{20, "x"}}));
  }
  EXPECT_EQ(10, lsm->seeks);
  EXPECT_LT(lsm->nexts, 200);
  lsm = MakeFolder<CountingIterator>();
  for (int i = 0; i < 1000; i += 2) {
    EXPECT_TRUE(Fold(key_at(i), {{20, "x"}}));
  }
  EXPECT_EQ(1, lsm->seeks);
  for (size_t i = 0; i < folder_->values()->size(); ++i) {
    EXPECT_EQ("base" + std::to_string(2 * i) + ",x",
              folder_->values()->values[i]);
  }
}

// The keys have random histories, and a random share of them is folded.
TEST_F(DeltaFolderTest, FoldsRandomHistories) {
  Random rnd(301);
  for (int round = 0; round < 100; ++round) {
    keys_.clear();
    values_.clear();
    std::map<std::string, std::string> expected;
    const int num_keys = 1 + static_cast<int>(rnd.Uniform(200));
    for (int i = 0; i < num_keys; ++i) {
      const std::string key = "k" + std::to_string(10000 + i);
      std::string value = "-";
      std::vector<std::pair<ValueType, std::string>> history;
      for (int h = static_cast<int>(rnd.Uniform(14)); h > 0; --h) {
        const std::string text = std::to_string(rnd.Uniform(1000));
        switch (rnd.Uniform(3)) {
          case 0:
            history.emplace_back(kTypeMerge, text);
            value += "," + text;
            break;
          case 1:
            history.emplace_back(kTypeValue, text);
            value = text;
            break;
          default:
            history.emplace_back(kTypeDeletion, "");
            value = "-";
        }
      }
      for (size_t h = 0; h < history.size(); ++h) {
        AddLsm(key, h + 1, history[h].first, history[h].second);
      }
      expected[key] = value;
    }
    MakeFolder();
    std::string text;
    const int step = 1 + static_cast<int>(rnd.Uniform(20));
    for (const auto& [key, value] : expected) {
      if (!rnd.OneIn(step)) {
        continue;
      }
      ASSERT_TRUE(Fold(key, {{31, "y"}, {30, "x"}}));
      text += (text.empty() ? "" : " ") + key + "@31=" + value + ",x,y";
    }
    ASSERT_EQ(text, Folded());
  }
}

//======== When the fold is committed

TEST_F(DeltaFolderTest, FilesAboveReturnsNewAnchorFilesAboveTheFloor) {
  Flush({AnchorOf("a", 30)});
  const auto before = version_;
  const uint64_t floor = last_number_;
  Flush({AnchorOf("b", 40)});
  Flush({{Event::Type::kOperand, "c", "", 41}});
  const auto count = [this](uint64_t above, const DeltaVersion* without) {
    return DeltaAnchorLookup::FilesAbove(*version_, above, without).size();
  };
  EXPECT_EQ(2, count(0, nullptr));
  EXPECT_EQ(1, count(floor, nullptr));
  EXPECT_EQ(1, count(0, before.get()));
  EXPECT_EQ(0, count(0, version_.get()));
  // A merged file is a new file.
  Merge(4);
  EXPECT_EQ(1, count(0, before.get()));
}

TEST_F(DeltaFolderTest, DropHiddenDropsKeysWithNewAnchors) {
  const auto before = version_;
  Flush({AnchorOf("b", 40), AnchorOf("c", 19), AnchorOf("d", 20),
         RangeAnchorOf("f", "h", 50)});
  MakeFolder();
  for (const char* key : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    // The values stand for keys that were folded before the flush.
    folder_->values()->Add(InternalKey(key, 20, kTypeValue).Encode().ToString(),
                           "v");
  }
  const DeltaAnchorLookup anchors(
      store_.get(), ucmp(), ReadOptions(),
      DeltaAnchorLookup::FilesAbove(*version_, 0, before.get()));

  const auto drop = [&](const std::vector<SequenceNumber>& snapshots,
                        std::string* text) {
    FoldedValues values = *folder_->values();
    size_t num_dropped = 0;
    Status s =
        DeltaFoldCommit::DropHidden(anchors, snapshots, &values, &num_dropped);
    if (s.ok()) {
      *text = Text(values);
      EXPECT_EQ(8 - num_dropped, values.size());
      EXPECT_EQ(values.keys.size(), values.values.size());
    }
    return s;
  };
  std::string text;
  ASSERT_OK(drop({60}, &text));
  EXPECT_EQ("a@20=v c@20=v e@20=v h@20=v", text);
  // Snapshots below all folded values make no difference.
  ASSERT_OK(drop({5, 19, 60}, &text));
  EXPECT_EQ("a@20=v c@20=v e@20=v h@20=v", text);
  ASSERT_OK(drop({50, 60}, &text));
  // A snapshot sees the values of "b" and "f", which cannot be dropped.
  EXPECT_TRUE(drop({30, 60}, &text).IsTryAgain());
  EXPECT_TRUE(drop({20, 60}, &text).IsTryAgain());
  // A snapshot sees the value of "f" only.
  EXPECT_TRUE(drop({40, 60}, &text).IsTryAgain());
  // The anchor of "f" is above the last published sequence number.
  EXPECT_TRUE(drop({45}, &text).IsTryAgain());
}

TEST_F(DeltaFolderTest, SnapshotBetweenTwoAnchorsDoesNotPreventADrop) {
  const auto before = version_;
  Flush({AnchorOf("b", 40), AnchorOf("b", 90)});
  FoldedValues values;
  values.Add(InternalKey("b", 20, kTypeValue).Encode().ToString(), "v");
  const DeltaAnchorLookup anchors(
      store_.get(), ucmp(), ReadOptions(),
      DeltaAnchorLookup::FilesAbove(*version_, 0, before.get()));
  size_t num_dropped = 0;
  FoldedValues copy = values;
  EXPECT_TRUE(
      DeltaFoldCommit::DropHidden(anchors, {39, 95}, &copy, &num_dropped)
          .IsTryAgain());
  copy = values;
  ASSERT_OK(
      DeltaFoldCommit::DropHidden(anchors, {60, 95}, &copy, &num_dropped));
  EXPECT_EQ(1, num_dropped);
  EXPECT_TRUE(copy.empty());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
