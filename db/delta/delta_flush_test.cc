//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_flush.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/compaction/compaction_iteration_stats.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_maker.h"
#include "db/delta/delta_file_test_util.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/version_edit.h"
#include "port/stack_trace.h"
#include "rocksdb/statistics.h"
#include "test_util/strata/sync_point_test_util.h"

namespace ROCKSDB_NAMESPACE {

class DeltaFlushTest : public delta_test::DeltaFileTestBase {
 protected:
  struct Entry {
    std::string key;
    SequenceNumber seq;
    ValueType type;
    std::string value;
  };

  static constexpr uint64_t kEpoch = 20;

  DeltaFlushTest() {
    options_.statistics = CreateDBStatistics();
    Reopen();
    store_ =
        std::make_unique<DeltaStore>(TableFamily(), MutableCFOptions(options_));
  }

  // Adds a file with operands of these keys to the store.
  void SetBase(const std::vector<std::string>& keys) {
    const auto builder = NewBuilder(Kind::kOperands);
    for (const std::string& key : keys) {
      ASSERT_OK(DeltaFileTestBase::Add({key, 2, "old"}, builder.get()));
    }
    DeltaFileDescription description;
    ASSERT_OK(builder->Finish(&description));
    DeltaEdit edit;
    edit.AddFile(description);
    ASSERT_OK(DeltaVersion::Apply(
        base_, edit, BytewiseComparator(),
        MakeDeltaFiles(/*version_set=*/nullptr, /*ioptions=*/nullptr,
                       /*cfd=*/nullptr),
        &base_));
  }

  std::unique_ptr<DeltaFlush> NewFlush(
      std::vector<std::shared_ptr<DeltaFileReader>> earlier = {}) {
    DeltaFlush::Job job;
    job.store = store_.get();
    job.base = base_.get();
    job.earlier = std::move(earlier);
    job.keeps_readers = keeps_readers_;
    job.old_keys_only = old_keys_only_;
    job.epoch = kEpoch;
    job.first_seq = first_seq_;
    job.new_file_number = [this] { return ++last_number_; };
    return std::make_unique<DeltaFlush>(std::move(job));
  }
  void Start(DeltaFlush* flush) {
    DeltaFlush::Output output;
    output.db_id = "the DB";
    output.verify_contents = verify_contents_;
    flush->Start(std::move(output));
  }

  // Adds the entries as BuildTable() does.
  // in_sst: the keys of entries that were not taken are appended.
  Status Feed(const std::vector<Entry>& entries,
              const std::vector<RangeTombstone>& ranges, DeltaFlush* flush,
              std::string* in_sst = nullptr) {
    Start(flush);
    Status s;
    for (const Entry& entry : entries) {
      const ParsedInternalKey key(entry.key, entry.seq, entry.type);
      const InternalKey internal_key(entry.key, entry.seq, entry.type);
      bool taken = false;
      s = flush->Add(key, internal_key.Encode(), entry.value, &taken);
      if (!s.ok()) {
        return s;
      }
      EXPECT_TRUE(entry.type == kTypeMerge || !taken);
      EXPECT_TRUE(entry.type != kTypeMerge || taken || old_keys_only_);
      if (!taken && in_sst != nullptr) {
        in_sst->append(entry.key);
      }
    }
    for (const RangeTombstone& range : ranges) {
      s = flush->AddRange(range);
      if (!s.ok()) {
        return s;
      }
    }
    return flush->Publish();
  }

  // Returns the entries in the files of the edit, with "@" before a sequence
  // number.
  std::string Text(const VersionEdit& edit) {
    std::string text;
    if (edit.GetDeltaEdit() == nullptr) {
      return text;
    }
    for (const DeltaFileDescription& file : edit.GetDeltaEdit()->files()) {
      EXPECT_EQ(file.tier, Tier::kFlushed);
      EXPECT_EQ(file.last_epoch, kEpoch);
      const bool operands = file.kind == Kind::kOperands;
      const auto reader = MustOpen(file);
      const ReadOptions read_options;
      const std::unique_ptr<InternalIterator> iter(
          reader->NewIterator(read_options, TableReaderCaller::kUserIterator));
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        ParsedInternalKey key;
        EXPECT_OK(ParseInternalKey(iter->key(), &key, /*log_err_key=*/true));
        EXPECT_EQ(key.type, operands ? kTypeMerge : kTypeDeletion);
        text += operands ? "op " : "anchor ";
        text += key.user_key.ToString() + "@" + std::to_string(key.sequence);
        text += operands ? "=" + iter->value().ToString() + " " : " ";
      }
      EXPECT_OK(iter->status());
      const auto ranges = reader->NewRangeAnchorIterator(kMaxSequenceNumber);
      if (ranges != nullptr) {
        for (ranges->SeekToFirst(); ranges->Valid(); ranges->Next()) {
          text += "range " + ranges->start_key().ToString() + "-" +
                  ranges->end_key().ToString() + "@" +
                  std::to_string(ranges->seq()) + " ";
        }
      }
    }
    return text;
  }

  // Runs a flush and returns the entries in its files.
  std::string Flush(const std::vector<Entry>& entries,
                    const std::vector<RangeTombstone>& ranges = {}) {
    const auto flush = NewFlush();
    EXPECT_OK(Feed(entries, ranges, flush.get()));
    VersionEdit edit;
    flush->AddTo(&edit);
    EXPECT_EQ(flush->HasFiles(), edit.GetDeltaEdit() != nullptr);
    return Text(edit);
  }

  uint64_t Ticker(Tickers ticker) {
    return options_.statistics->getTickerCount(ticker);
  }

  std::unique_ptr<DeltaStore> store_;
  std::shared_ptr<const DeltaVersion> base_;
  bool verify_contents_ = false;
  bool keeps_readers_ = false;
  bool old_keys_only_ = false;
  SequenceNumber first_seq_ = 0;
};

TEST_F(DeltaFlushTest, FlushWithoutOperandsWritesNoFile) {
  EXPECT_EQ("", Flush({}));
  EXPECT_EQ("", Flush({{"a", 3, kTypeValue, "v"},
                       {"a", 2, kTypeDeletion, ""},
                       {"b", 9, kTypeBlobIndex, "blob"}},
                      {RangeTombstone("c", "e", 4)}));
  EXPECT_EQ(0, NumFiles());
  const auto flush = NewFlush();
  ASSERT_OK(Feed({{"a", 3, kTypeValue, "v"}}, {}, flush.get()));
  EXPECT_FALSE(flush->HasFiles());
  EXPECT_EQ(0, flush->bytes_written());
  EXPECT_EQ(0, flush->operand_bytes());
  EXPECT_TRUE(flush->readers().empty());
}

TEST_F(DeltaFlushTest, OperandsGoToADeltaFile) {
  const auto flush = NewFlush();
  std::string in_sst;
  ASSERT_OK(Feed({{"a", 7, kTypeMerge, "x"},
                  {"a", 4, kTypeMerge, ""},
                  {"b", 6, kTypeValue, "v"},
                  {"c", 5, kTypeMerge, "y"},
                  {"d", 3, kTypeWideColumnEntity, "e"}},
                 {}, flush.get(), &in_sst));
  EXPECT_EQ("bd", in_sst);
  EXPECT_TRUE(flush->HasFiles());
  VersionEdit edit;
  flush->AddTo(&edit);
  EXPECT_EQ("op a@7=x op a@4= op c@5=y ", Text(edit));
  ASSERT_TRUE(edit.HasLastSequence());
  EXPECT_EQ(7, edit.GetLastSequence());
  EXPECT_EQ(1, edit.NumEntries());
  const DeltaFileDescription& file = edit.GetDeltaEdit()->files().front();
  EXPECT_EQ(file.size, flush->bytes_written());
  EXPECT_NE(file.number, kEpoch);
  // The size includes internal keys.
  EXPECT_EQ(3 * 9 + 2, flush->operand_bytes());
  EXPECT_TRUE(flush->readers().empty());
  EXPECT_EQ(3, Ticker(DELTA_OPERANDS_FLUSHED));
  EXPECT_EQ(0, Ticker(DELTA_ANCHORS_FLUSHED));
  EXPECT_EQ(file.size, Ticker(DELTA_FLUSH_BYTES));
}

// The file says which sequence numbers the flush has read, also those of
// entries that are combined or hidden, or that are in the SST file.
TEST_F(DeltaFlushTest, FileOfOperandsRecordsWhatTheFlushHasRead) {
  const auto expect = [&](SequenceNumber first, SequenceNumber last) {
    const auto flush = NewFlush();
    ASSERT_OK(Feed({{"a", 5, kTypeMerge, "x"}, {"b", 7, kTypeValue, "v"}},
                   {RangeTombstone("c", "e", 9)}, flush.get()));
    ASSERT_EQ(1u, flush->files().size());
    const auto reader = MustOpen(flush->files().front());
    DeltaFileProperties properties;
    ASSERT_OK(
        DeltaFileProperties::Read(*reader->GetTableProperties(), &properties));
    EXPECT_EQ(first, properties.first_seq);
    EXPECT_EQ(last, properties.last_seq);
  };
  first_seq_ = 3;
  expect(3, 9);
  first_seq_ = 0;
  expect(0, 0);
}

TEST_F(DeltaFlushTest, BaseOverOperandsOfTheSameFlushHasAnAnchor) {
  // A flush keeps older entries if a snapshot needs them.
  EXPECT_EQ("op a@9=x op a@5=y anchor a@8 ",
            Flush({{"a", 9, kTypeMerge, "x"},
                   {"a", 8, kTypeValue, "v"},
                   {"a", 5, kTypeMerge, "y"},
                   {"a", 3, kTypeValue, "w"},
                   {"b", 7, kTypeValue, "v"}}));
  EXPECT_EQ("op a@2=x anchor a@8 anchor a@6 ",
            Flush({{"a", 8, kTypeSingleDeletion, ""},
                   {"a", 6, kTypeDeletion, ""},
                   {"a", 2, kTypeMerge, "x"}}));
  // The anchor is of the last key, which follows a key with operands.
  EXPECT_EQ("op a@9=x op b@2=y anchor b@4 ",
            Flush({{"a", 9, kTypeMerge, "x"},
                   {"b", 4, kTypeValue, "v"},
                   {"b", 2, kTypeMerge, "y"}}));
}

TEST_F(DeltaFlushTest, BaseOverOperandsOfTheStoreHasAnAnchor) {
  SetBase({"a", "c", "e"});
  EXPECT_EQ("anchor a@8 anchor a@5 anchor c@9 anchor e@7 ",
            Flush({{"a", 8, kTypeValue, "v"},
                   {"a", 5, kTypeDeletion, ""},
                   {"b0", 4, kTypeValue, "v"},
                   {"c", 9, kTypeValuePreferredSeqno, "timed"},
                   {"e", 7, kTypeValue, "v"},
                   {"g", 6, kTypeValue, "v"}}));
  // An operand above a base does not replace the anchor of the base.
  EXPECT_EQ("op c@9=x anchor c@8 ",
            Flush({{"c", 9, kTypeMerge, "x"}, {"c", 8, kTypeValue, "v"}}));
  EXPECT_EQ("op c@9=x ", Flush({{"c", 9, kTypeMerge, "x"}}));
  EXPECT_GT(Ticker(DELTA_ANCHORS_FLUSHED), 0);
}

TEST_F(DeltaFlushTest, RangeDeletionOverOperandsOfTheSameFlushHasAnAnchor) {
  // Only ranges that have an older operand of the flush in them are anchors.
  EXPECT_EQ("op c@4=x range c-d@6 range c-d@5 ",
            Flush({{"c", 4, kTypeMerge, "x"}},
                  {RangeTombstone("a", "c", 6), RangeTombstone("c", "d", 6),
                   RangeTombstone("c", "d", 5), RangeTombstone("c", "d", 3),
                   RangeTombstone("d", "f", 6)}));
}

TEST_F(DeltaFlushTest, RangeDeletionOverOperandsOfTheStoreHasAnAnchor) {
  SetBase({"c", "e"});
  EXPECT_EQ("range a-c@6 range d-f@7 ",
            Flush({}, {RangeTombstone("a", "c", 6), RangeTombstone("d", "f", 7),
                       RangeTombstone("f", "h", 8)}));
  EXPECT_EQ("anchor c@9 range b-d@5 ",
            Flush({{"c", 9, kTypeValue, "v"}}, {RangeTombstone("b", "d", 5)}));
}

TEST_F(DeltaFlushTest, BaseOverOperandsOfAnEarlierFlushOfARecoveryHasAnAnchor) {
  keeps_readers_ = true;
  const auto first = NewFlush();
  ASSERT_OK(Feed({{"a", 4, kTypeMerge, "x"}}, {}, first.get()));
  ASSERT_EQ(1u, first->readers().size());
  EXPECT_TRUE(first->readers()[0]->MayHaveKey(ReadOptions(), "a"));
  const auto second = NewFlush(first->readers());
  ASSERT_OK(Feed({{"a", 9, kTypeValue, "v"}, {"b", 8, kTypeValue, "v"}},
                 {RangeTombstone("a", "b", 7), RangeTombstone("c", "d", 6)},
                 second.get()));
  // A recovery puts both flushes into one edit.
  VersionEdit edit;
  first->AddTo(&edit);
  second->AddTo(&edit);
  EXPECT_EQ("op a@4=x anchor a@9 range a-b@7 ", Text(edit));
  EXPECT_EQ(9, edit.GetLastSequence());
}

// A column family that no longer separates deltas takes only operands of keys
// that may have operands in the store.
TEST_F(DeltaFlushTest, OldKeysOnlyTakesOperandsOfKeysInTheStore) {
  SetBase({"b", "d"});
  old_keys_only_ = true;
  const auto flush = NewFlush();
  std::string in_sst;
  ASSERT_OK(Feed({{"a", 9, kTypeMerge, "x"},
                  {"a", 8, kTypeValue, "v"},
                  {"a", 7, kTypeMerge, "x"},
                  {"b", 9, kTypeMerge, "x"},
                  {"b", 8, kTypeValue, "v"},
                  {"b", 7, kTypeMerge, "y"},
                  {"c", 9, kTypeMerge, "x"},
                  {"c", 8, kTypeMerge, "x"}},
                 {}, flush.get(), &in_sst));
  EXPECT_EQ("aaabcc", in_sst);
  VersionEdit edit;
  flush->AddTo(&edit);
  EXPECT_EQ("op b@9=x op b@7=y anchor b@8 ", Text(edit));
}

TEST_F(DeltaFlushTest, CountsAsRunningUntilItsEnd) {
  EXPECT_EQ(UINT64_MAX, store_->OldestRunningFlush());
  auto flush = NewFlush();
  EXPECT_EQ(kEpoch, store_->OldestRunningFlush());
  ASSERT_OK(Feed({{"a", 4, kTypeMerge, "x"}}, {}, flush.get()));
  EXPECT_EQ(kEpoch, store_->OldestRunningFlush());
  flush.reset();
  EXPECT_EQ(UINT64_MAX, store_->OldestRunningFlush());
  // A flush that is given up before Start() leaves no file.
  flush = NewFlush();
  VersionEdit edit;
  flush->AddTo(&edit);
  EXPECT_EQ("", Text(edit));
}

TEST_F(DeltaFlushTest, FailedFlushLeavesNoFile) {
  const size_t before = NumFiles();
  const std::vector<Entry> entries = {{"a", 9, kTypeMerge, "x"},
                                      {"a", 8, kTypeValue, "v"},
                                      {"a", 4, kTypeMerge, "y"},
                                      {"b", 3, kTypeMerge, "z"}};
  // At the first point the file was already created.
  for (const std::string point : {"DeltaFileBuilder::Open:NewWritableFile",
                                  "DeltaFileBuilder::FinishFile:BeforeSync",
                                  "DeltaFileBuilder::FinishFile:AfterClose"}) {
    // The file of operands fails, then the file of anchors.
    for (int file = 1; file <= 2; ++file) {
      SCOPED_TRACE(point + " " + std::to_string(file));
      int calls = 0;
      EnableCallBack(point, [&](void* arg) {
        if (++calls == file) {
          *static_cast<IOStatus*>(arg) = IOStatus::IOError("injected");
        }
      });
      const auto flush = NewFlush();
      const Status s = Feed(entries, {}, flush.get());
      DisableCallBacks();
      EXPECT_TRUE(s.IsIOError()) << s.ToString();
      EXPECT_EQ(file, calls);
      flush->Abandon();
      EXPECT_FALSE(flush->HasFiles());
      EXPECT_EQ(before, NumFiles());
    }
  }
  // Another part of the flush has failed.
  const auto flush = NewFlush();
  ASSERT_OK(Feed(entries, {}, flush.get()));
  EXPECT_EQ(before + 2, NumFiles());
  flush->Abandon();
  EXPECT_EQ(before, NumFiles());
  EXPECT_EQ(0, flush->bytes_written());
}

TEST_F(DeltaFlushTest, VerifyContentsNoticesADamagedFile) {
  const std::vector<Entry> entries = {{"a", 9, kTypeMerge, "x"},
                                      {"b", 8, kTypeValue, "v"},
                                      {"b", 4, kTypeMerge, "y"}};
  verify_contents_ = true;
  EXPECT_EQ("op a@9=x op b@4=y anchor b@8 ", Flush(entries));
  // A byte of the first block is changed.
  uint64_t number = 0;
  EnableCallBack("DeltaFlush::FinishFile:Verify", [&](void*) {
    const std::string name = DeltaFileName(dir_, last_number_);
    std::string contents;
    ASSERT_OK(ReadFileToString(env_.get(), name, &contents));
    contents[2] ^= 1;
    ASSERT_OK(WriteStringToFile(env_.get(), contents, name));
    number = last_number_;
  });
  const std::vector<Entry> operands = {entries[0]};
  auto flush = NewFlush();
  Status s = Feed(operands, {}, flush.get());
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(number, 0);
  flush->Abandon();
  // Without verify_contents the damage is not noticed.
  verify_contents_ = false;
  flush = NewFlush();
  EXPECT_OK(Feed(operands, {}, flush.get()));
}

TEST_F(DeltaFlushTest, FileThatCannotBeOpenedFailsTheFlush) {
  // This is checked even without paranoid_file_checks.
  EnableCallBack("DeltaFlush::FinishFile:Verify", [&](void*) {
    ASSERT_OK(WriteStringToFile(env_.get(), "short",
                                DeltaFileName(dir_, last_number_)));
  });
  const auto flush = NewFlush();
  const Status s = Feed({{"a", 9, kTypeMerge, "x"}}, {}, flush.get());
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  flush->Abandon();
}

TEST_F(DeltaFlushTest, CountPayloadCountsOtherInputAsGarbage) {
  const auto flush = NewFlush();
  ASSERT_OK(Feed({{"a", 9, kTypeMerge, "x"}}, {}, flush.get()));
  CompactionIterationStats stats;
  stats.total_input_raw_key_bytes = 27;
  stats.total_input_raw_value_bytes = 3;
  uint64_t payload = 0;
  uint64_t garbage = 0;
  flush->CountPayload(stats, &payload, &garbage);
  EXPECT_EQ(30, payload);
  EXPECT_EQ(20, garbage);
  flush->CountPayload(stats, nullptr, nullptr);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
