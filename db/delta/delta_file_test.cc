//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_probe.h"
#include "db/delta/delta_file_properties.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_file_test_util.h"
#include "db/delta/delta_name_fs_test_util.h"
#include "db/range_tombstone_fragmenter.h"
#include "file/random_access_file_reader.h"
#include "file/writable_file_writer.h"
#include "fuzz/strata/given_properties.h"
#include "memory/arena.h"
#include "port/port.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/sst_file_manager.h"
#include "table/format.h"
#include "table/meta_blocks.h"
#include "table/sst_file_writer_collectors.h"
#include "table/table_builder.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/testharness.h"
#include "util/coding.h"
#include "util/random.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::Anchor;
using delta_test::Operand;
using delta_test::RangeAnchor;
using delta_test::Values;

class DeltaFileTest : public delta_test::DeltaFileTestBase {
 protected:
  static std::string Key(size_t i) {
    char key[32];
    snprintf(key, sizeof(key), "key%06zu", i);
    return key;
  }

  // Returns what a reader must find of a key in a file of these operands.
  static Values Expected(const std::vector<Operand>& operands,
                         const std::string& key, SequenceNumber read_seq) {
    Values values;
    for (const Operand& operand : operands) {
      if (operand.key == key && operand.seq <= read_seq) {
        values.emplace_back(operand.seq, operand.value);
      }
    }
    return values;
  }
  static SequenceNumber Expected(const std::vector<Anchor>& anchors,
                                 const std::vector<RangeAnchor>& ranges,
                                 const std::string& key,
                                 SequenceNumber read_seq) {
    SequenceNumber newest = 0;
    for (const Anchor& anchor : anchors) {
      if (anchor.key == key && anchor.seq <= read_seq) {
        newest = std::max(newest, anchor.seq);
      }
    }
    for (const RangeAnchor& range : ranges) {
      if (range.start <= key && key < range.end && range.seq <= read_seq) {
        newest = std::max(newest, range.seq);
      }
    }
    return newest;
  }

  bool Exists(const DeltaFileDescription& description) {
    return env_->FileExists(FileName(description)).ok();
  }

  std::string Contents(const DeltaFileDescription& description) {
    std::string contents;
    EXPECT_OK(ReadFileToString(env_.get(), FileName(description), &contents));
    return contents;
  }
  void SetContents(const DeltaFileDescription& description,
                   const std::string& contents) {
    ASSERT_OK(WriteStringToFile(env_.get(), contents, FileName(description)));
  }
  // Replaces the file by a table with these keys, the values of which are all
  // the same, and these properties, and sets the description's size.
  void ReplaceByTable(const UserCollectedProperties& properties,
                      const std::vector<InternalKey>& keys,
                      const std::string& value,
                      DeltaFileDescription* description);
  BlockHandle PropertiesBlock(const DeltaFileDescription& description) {
    const ImmutableOptions ioptions(options_);
    std::unique_ptr<RandomAccessFileReader> file;
    EXPECT_OK(RandomAccessFileReader::Create(env_->GetFileSystem(),
                                             FileName(description),
                                             FileOptions(), &file, nullptr));
    BlockHandle handle;
    EXPECT_OK(FindMetaBlockInFile(
        file.get(), description.size, kBlockBasedTableMagicNumber, ioptions,
        ReadOptions(), kPropertiesBlockName, &handle));
    return handle;
  }

  // Opens the file and checks that reads return Corruption or the right result.
  // The block cache is empty, so that no result of an earlier call is used.
  // *was_noticed: set to true if an error was returned.
  void CheckDamagedOperands(const DeltaFileDescription& description,
                            const std::vector<Operand>& operands,
                            bool* was_noticed);
  void CheckDamagedAnchors(const DeltaFileDescription& description,
                           const std::vector<Anchor>& anchors,
                           const std::vector<RangeAnchor>& ranges,
                           bool* was_noticed);

  // Changes one byte at a time, in all parts of a small file, and expects that
  // each change is noticed.
  template <typename Check>
  void DamageEverywhere(const DeltaFileDescription& description,
                        const Check& check);

  static void IsNamedCorruption(const Status& s,
                                const DeltaFileDescription& description) {
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    IsNamed(s, description);
  }
  static void IsNamed(const Status& s,
                      const DeltaFileDescription& description) {
    ASSERT_NE(
        std::string::npos,
        s.ToString().find(
            DeltaFileName(std::string("x"), description.number).substr(1)))
        << s.ToString();
  }
};

TEST_F(DeltaFileTest, FileNameHasPathNumberAndType) {
  ASSERT_EQ("/a/000123.delta", DeltaFileName(std::string("/a"), 123));
  const std::vector<DbPath> paths = {{"/a", 0}, {"/b", 0}};
  ASSERT_EQ("/a/000123.delta", DeltaFileName(paths, 123, 0));
  ASSERT_EQ("/b/000123.delta", DeltaFileName(paths, 123, 1));
  ASSERT_EQ("/b/000123.delta", DeltaFileName(paths, 123, 3));
  uint64_t number = 0;
  FileType type = kTempFile;
  ASSERT_TRUE(ParseFileName("000123.delta", &number, &type));
  ASSERT_EQ(123, number);
  ASSERT_EQ(kDeltaFile, type);
  ASSERT_FALSE(ParseFileName("000123.deltas", &number, &type));
  ASSERT_FALSE(ParseFileName("archive/000123.delta", &number, &type));
  ASSERT_TRUE(FileTypeSet::All().Contains(kDeltaFile));
}

TEST_F(DeltaFileTest, ReadsTheWrittenOperands) {
  const std::vector<Operand> operands = {
      {"a", 40, "a40"}, {"a", 30, "a30"}, {"a", 7, "a7"},
      {"b", 35, "b35"}, {"d", 99, "d99"}, {"d", 1, "d1"},
  };
  const DeltaFileDescription description = WriteOperands(operands);
  ASSERT_EQ(last_number_, description.number);
  ASSERT_EQ(0, description.path_id);
  uint64_t size = 0;
  ASSERT_OK(env_->GetFileSize(FileName(description), &size));
  ASSERT_EQ(size, description.size);
  ASSERT_EQ(Kind::kOperands, description.kind);
  ASSERT_EQ(Tier::kFlushed, description.tier);
  ASSERT_EQ(7, description.first_epoch);
  ASSERT_EQ(7, description.last_epoch);
  ASSERT_EQ("a", description.smallest);
  ASSERT_EQ("d", description.largest);
  ASSERT_EQ(1, description.smallest_seq);
  ASSERT_EQ(99, description.largest_seq);
  ASSERT_EQ(6, description.num_entries);
  ASSERT_EQ(0, description.num_range_anchors);
  ASSERT_EQ(6 + 16, description.raw_bytes);
  ASSERT_FALSE(description.has_global_seq);
  ASSERT_TRUE(description.unique_id != kNullUniqueId64x2);
  ASSERT_EQ(kUnknownFileChecksum, description.file_checksum);
  ASSERT_EQ(kUnknownFileChecksumFuncName, description.file_checksum_func_name);

  const auto reader = MustOpen(description);
  ASSERT_TRUE(reader->description() == description);
  ASSERT_EQ(FileName(description), reader->file_name());
  for (const std::string key : {"", "a", "aa", "b", "c", "d", "e"}) {
    for (const SequenceNumber read_seq :
         {0, 1, 6, 7, 29, 30, 31, 35, 40, 98, 99, 100}) {
      ASSERT_EQ(Expected(operands, key, read_seq),
                MustCollect(*reader, key, read_seq))
          << key << read_seq;
    }
    ASSERT_EQ(Expected(operands, key, kMaxSequenceNumber),
              MustCollect(*reader, key));
  }
  ASSERT_TRUE(reader->MayHaveKey(ReadOptions(), "a"));
  ASSERT_TRUE(reader->MayHaveKey(ReadOptions(), "d"));
  ASSERT_FALSE(reader->MayHaveKey(ReadOptions(), "c"));
  ASSERT_EQ(nullptr, reader->NewRangeAnchorIterator(kMaxSequenceNumber));
  ASSERT_OK(reader->VerifyChecksum(ReadOptions()));
  ASSERT_GT(reader->ApproximateMemoryUsage(), 0);
  SequenceNumber seq = 0;
  ASSERT_TRUE(
      reader->NewestAnchor(ReadOptions(), "a", 100, &seq).IsInvalidArgument());

  const auto properties = reader->GetTableProperties();
  ASSERT_EQ(6, properties->num_merge_operands);
  ASSERT_EQ(3, properties->column_family_id);
  ASSERT_EQ("family", properties->column_family_name);
  ASSERT_EQ(description.number, properties->orig_file_number);
}

// CollectOperands() appends to the operands of other files.
TEST_F(DeltaFileTest, CollectOperandsAppends) {
  const auto newer = MustOpen(WriteOperands({{"a", 9, "9"}, {"a", 8, "8"}}));
  const auto other = MustOpen(WriteOperands({{"b", 7, "7"}}));
  const auto older = MustOpen(WriteOperands({{"a", 5, "5"}, {"b", 2, "2"}}));
  DeltaOperands operands;
  for (int round = 0; round < 2; ++round) {
    for (const auto& reader : {newer.get(), other.get(), older.get()}) {
      ASSERT_OK(reader->CollectOperands(ReadOptions(), "a", 8, &operands));
    }
    ASSERT_EQ(2, operands.size());
    ASSERT_EQ(8, operands[0].seq);
    ASSERT_EQ("8", operands[0].value);
    ASSERT_EQ(5, operands[1].seq);
    ASSERT_EQ("5", operands[1].value);
    operands.Clear();
    ASSERT_TRUE(operands.empty());
  }
}

TEST_F(DeltaFileTest, ReadsUnusualKeysAndValues) {
  Random rnd(301);
  const std::string zeros("\0\0", 2);
  const std::string long_key(10000, 'k');
  const std::vector<Operand> operands = {
      {"", 3, ""},
      {"", 2, rnd.RandomString(100000)},
      {zeros, 9, zeros},
      {zeros + "a", 5, ""},
      {zeros + "a", 4, ""},
      {long_key, 8, rnd.RandomString(5000)},
      {long_key, 7, rnd.RandomString(5000)},
      {long_key, 6, ""},
      {"\xff\xff", 1, rnd.RandomString(1 << 20)},
  };
  const auto reader = MustOpen(WriteOperands(operands));
  ASSERT_EQ("", reader->description().smallest);
  ASSERT_EQ("\xff\xff", reader->description().largest);
  for (const Operand& operand : operands) {
    ASSERT_TRUE(reader->MayHaveKey(ReadOptions(), operand.key));
    ASSERT_EQ(Expected(operands, operand.key, kMaxSequenceNumber),
              MustCollect(*reader, operand.key));
    ASSERT_EQ(Expected(operands, operand.key, operand.seq),
              MustCollect(*reader, operand.key, operand.seq));
  }
}

TEST_F(DeltaFileTest, ReadsManyOperandsOfOneKey) {
  constexpr SequenceNumber kNum = 50000;
  for (const bool with_cache : {true, false}) {
    table_options_.no_block_cache = !with_cache;
    ResetTableOptions();
    Reopen();
    std::vector<Operand> operands = {{"a", 7, "before"}};
    for (SequenceNumber seq = kNum; seq > 0; --seq) {
      operands.push_back({"key", seq, "value" + std::to_string(seq)});
    }
    operands.push_back({"z", 7, "after"});
    const auto reader = MustOpen(WriteOperands(operands));
    for (const SequenceNumber read_seq :
         {kNum, kNum - 1, kNum / 2, SequenceNumber{1}, SequenceNumber{0}}) {
      DeltaOperands found;
      ASSERT_OK(
          reader->CollectOperands(ReadOptions(), "key", read_seq, &found));
      ASSERT_EQ(read_seq, found.size());
      SequenceNumber expected = read_seq;
      for (const DeltaOperands::Operand& operand : found) {
        ASSERT_EQ(expected, operand.seq);
        ASSERT_EQ("value" + std::to_string(expected), operand.value);
        --expected;
      }
    }
    ASSERT_EQ((Values{{7, "before"}}), MustCollect(*reader, "a"));
    ASSERT_EQ((Values{{7, "after"}}), MustCollect(*reader, "z"));
  }
}

TEST_F(DeltaFileTest, FilterExcludesMostAbsentKeys) {
  constexpr size_t kNum = 5000;
  std::vector<Operand> operands;
  std::vector<Anchor> anchors;
  for (size_t i = 0; i < kNum; ++i) {
    operands.push_back({Key(2 * i), 100 + i, "value"});
    anchors.push_back({Key(2 * i), 100 + i});
  }
  const auto with_operands = MustOpen(WriteOperands(operands));
  // The filter does not contain the keys that a range covers.
  const auto with_anchors =
      MustOpen(WriteAnchors(anchors, {{Key(0), Key(3 * kNum), 7}}));
  for (const auto* reader : {with_operands.get(), with_anchors.get()}) {
    size_t positives = 0;
    for (size_t i = 0; i < kNum; ++i) {
      ASSERT_TRUE(reader->MayHaveKey(ReadOptions(), Key(2 * i)));
      positives += reader->MayHaveKey(ReadOptions(), Key(2 * i + 1));
    }
    ASSERT_LT(positives, kNum / 20);
  }
}

TEST_F(DeltaFileTest, FindsTheNewestVisibleAnchor) {
  const std::vector<Anchor> anchors = {{"a", 40}, {"a", 30}, {"c", 5}};
  const DeltaFileDescription description = WriteAnchors(anchors, {});
  ASSERT_EQ(Kind::kAnchors, description.kind);
  ASSERT_EQ("a", description.smallest);
  ASSERT_EQ("c", description.largest);
  ASSERT_EQ(5, description.smallest_seq);
  ASSERT_EQ(40, description.largest_seq);
  ASSERT_EQ(3, description.num_entries);
  ASSERT_EQ(0, description.num_range_anchors);
  ASSERT_EQ(3, description.raw_bytes);
  const auto reader = MustOpen(description);
  for (const std::string key : {"", "a", "b", "c", "d"}) {
    for (const SequenceNumber read_seq : {0, 4, 5, 29, 30, 39, 40, 100}) {
      ASSERT_EQ(Expected(anchors, {}, key, read_seq),
                MustFindAnchor(*reader, key, read_seq));
    }
  }
  ASSERT_EQ(nullptr, reader->NewRangeAnchorIterator(kMaxSequenceNumber));
  DeltaOperands operands;
  ASSERT_TRUE(reader->CollectOperands(ReadOptions(), "a", 100, &operands)
                  .IsInvalidArgument());
}

TEST_F(DeltaFileTest, ReadsAFileOfRangeAnchorsOnly) {
  const std::vector<RangeAnchor> ranges = {{"b", "d", 30}, {"d", "e", 10}};
  const DeltaFileDescription description = WriteAnchors({}, ranges);
  ASSERT_EQ("b", description.smallest);
  ASSERT_EQ("e", description.largest);
  ASSERT_EQ(10, description.smallest_seq);
  ASSERT_EQ(30, description.largest_seq);
  ASSERT_EQ(0, description.num_entries);
  ASSERT_EQ(2, description.num_range_anchors);
  ASSERT_EQ(4, description.raw_bytes);
  const auto reader = MustOpen(description);
  for (const std::string key : {"", "a", "b", "c", "d", "dd", "e", "f"}) {
    ASSERT_FALSE(reader->MayHaveKey(ReadOptions(), key));
    for (const SequenceNumber read_seq : {0, 9, 10, 29, 30, 100}) {
      ASSERT_EQ(Expected({}, ranges, key, read_seq),
                MustFindAnchor(*reader, key, read_seq));
    }
  }
  const ReadOptions read_options;
  std::unique_ptr<InternalIterator> iter(
      reader->NewIterator(read_options, TableReaderCaller::kUncategorized));
  iter->SeekToFirst();
  ASSERT_FALSE(iter->Valid());
  ASSERT_OK(iter->status());
  ASSERT_OK(reader->VerifyChecksum(ReadOptions()));
}

TEST_F(DeltaFileTest, BoundsIncludePointsAndRanges) {
  // The points are within the ranges, around them, and on their ends.
  DeltaFileDescription description =
      WriteAnchors({{"c", 1}}, {{"a", "x", 2}, {"b", "z", 3}, {"c", "d", 4}});
  ASSERT_EQ("a", description.smallest);
  ASSERT_EQ("z", description.largest);
  description = WriteAnchors({{"a", 1}, {"z", 1}}, {{"b", "c", 2}});
  ASSERT_EQ("a", description.smallest);
  ASSERT_EQ("z", description.largest);
  description = WriteAnchors({{"a", 1}, {"z", 1}}, {{"a", "z", 2}});
  ASSERT_EQ("a", description.smallest);
  ASSERT_EQ("z", description.largest);
}

TEST_F(DeltaFileTest, FindsTheNewestOfOverlappingRanges) {
  Random rnd(302);
  for (int round = 0; round < 100; ++round) {
    const auto key = [](size_t i) { return std::string(1, 'a' + i % 26); };
    std::vector<Anchor> anchors;
    for (size_t i = rnd.Uniform(20); i > 0; --i) {
      anchors.push_back({key(rnd.Uniform(26)), 1 + rnd.Uniform(100)});
    }
    std::vector<RangeAnchor> ranges;
    for (size_t i = 1 + rnd.Uniform(20); i > 0; --i) {
      const size_t start = rnd.Uniform(25);
      ranges.push_back(
          {key(start),
           key(start + 1 + rnd.Uniform(static_cast<int>(25 - start))),
           1 + rnd.Uniform(100)});
    }
    std::sort(
        anchors.begin(), anchors.end(), [](const Anchor& a, const Anchor& b) {
          return std::make_pair(a.key, b.seq) < std::make_pair(b.key, a.seq);
        });
    anchors.erase(std::unique(anchors.begin(), anchors.end(),
                              [](const Anchor& a, const Anchor& b) {
                                return a.key == b.key && a.seq == b.seq;
                              }),
                  anchors.end());
    std::sort(ranges.begin(), ranges.end(),
              [](const RangeAnchor& a, const RangeAnchor& b) {
                return std::make_pair(a.start, b.seq) <
                       std::make_pair(b.start, a.seq);
              });
    ranges.erase(std::unique(ranges.begin(), ranges.end(),
                             [](const RangeAnchor& a, const RangeAnchor& b) {
                               return a.start == b.start && a.seq == b.seq;
                             }),
                 ranges.end());
    const auto reader = MustOpen(WriteAnchors(anchors, ranges));
    ASSERT_EQ(ranges.size(), reader->description().num_range_anchors);
    for (size_t i = 0; i < 26; ++i) {
      for (SequenceNumber read_seq = 0; read_seq < 105; read_seq += 5) {
        ASSERT_EQ(Expected(anchors, ranges, key(i), read_seq),
                  MustFindAnchor(*reader, key(i), read_seq));
      }
    }
  }
}

TEST_F(DeltaFileTest, IteratorsReturnAllEntriesInOrder) {
  std::vector<Operand> operands;
  for (size_t i = 0; i < 1000; ++i) {
    operands.push_back({Key(i / 3), 10000 - i, "value" + std::to_string(i)});
  }
  const auto reader = MustOpen(WriteOperands(operands));
  const ReadOptions read_options;
  Arena arena;
  std::unique_ptr<InternalIterator> on_heap(
      reader->NewIterator(read_options, TableReaderCaller::kCompaction,
                          /*arena=*/nullptr,
                          /*compaction_readahead_size=*/16 << 10));
  InternalIterator* const in_arena = reader->NewIterator(
      read_options, TableReaderCaller::kUserIterator, &arena);
  for (InternalIterator* iter : {on_heap.get(), in_arena}) {
    size_t i = 0;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++i) {
      ParsedInternalKey key;
      ASSERT_OK(ParseInternalKey(iter->key(), &key, /*log_err_key=*/true));
      ASSERT_EQ(kTypeMerge, key.type);
      ASSERT_EQ(operands[i].key, key.user_key);
      ASSERT_EQ(operands[i].seq, key.sequence);
      ASSERT_EQ(operands[i].value, iter->value());
    }
    ASSERT_OK(iter->status());
    ASSERT_EQ(operands.size(), i);
  }
  in_arena->~InternalIterator();

  // The ranges are those that are visible at a sequence number.
  const auto with_ranges =
      MustOpen(WriteAnchors({}, {{"a", "c", 10}, {"b", "d", 20}}));
  const auto ranges_at = [&](SequenceNumber read_seq) {
    std::string result;
    const auto iter = with_ranges->NewRangeAnchorIterator(read_seq);
    for (iter->SeekToTopFirst(); iter->Valid(); iter->TopNext()) {
      result += iter->start_key().ToString() + iter->end_key().ToString() +
                std::to_string(iter->seq()) + " ";
    }
    return result;
  };
  ASSERT_EQ("ab10 bc20 cd20 ", ranges_at(kMaxSequenceNumber));
  ASSERT_EQ("ab10 bc10 ", ranges_at(19));
  ASSERT_EQ("", ranges_at(9));
}

TEST_F(DeltaFileTest, BuilderWithoutEntriesLeavesNoFile) {
  for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
    const auto builder = NewBuilder(kind);
    ASSERT_TRUE(builder->IsEmpty());
    ASSERT_EQ(0, builder->FileSize());
    DeltaFileDescription description;
    description.number = 99;
    ASSERT_OK(builder->Finish(&description));
    ASSERT_TRUE(description == DeltaFileDescription());
    ASSERT_TRUE(builder->Finish(&description).IsInvalidArgument());
  }
  NewBuilder(Kind::kOperands)->Abandon();
  ASSERT_EQ(0, NumFiles());
}

TEST_F(DeltaFileTest, UnsortedEntriesAreRefused) {
  DeltaFileDescription description;
  const auto fails = [&](const std::vector<Operand>& operands) {
    const auto builder = NewBuilder(Kind::kOperands);
    for (size_t i = 0; i + 1 < operands.size(); ++i) {
      EXPECT_OK(Add(operands[i], builder.get()));
    }
    EXPECT_TRUE(Add(operands.back(), builder.get()).IsCorruption());
    // The failure is kept.
    EXPECT_TRUE(Add({"zzz", 1, ""}, builder.get()).IsCorruption());
    EXPECT_TRUE(builder->Finish(&description).IsCorruption());
    EXPECT_EQ(0, description.number);
    EXPECT_TRUE(builder->io_status().ok());
  };
  fails({{"b", 5, ""}, {"a", 9, ""}});
  fails({{"a", 5, ""}, {"a", 6, ""}});
  fails({{"a", 5, ""}, {"a", 5, ""}});
  // The last key is the first one of a new block.
  fails({{"b", 5, std::string(10000, 'x')}, {"c", 5, ""}, {"a", 9, ""}});

  auto builder = NewBuilder(Kind::kAnchors);
  ASSERT_OK(builder->AddAnchor("a", 5));
  ASSERT_TRUE(builder->AddAnchor("a", 5).IsCorruption());
  ASSERT_TRUE(builder->AddRangeAnchor("a", "b", 5).IsCorruption());
  ASSERT_TRUE(builder->Finish(&description).IsCorruption());

  builder = NewBuilder(Kind::kAnchors);
  ASSERT_OK(builder->AddRangeAnchor("b", "c", 5));
  ASSERT_OK(builder->AddRangeAnchor("b", "d", 4));
  ASSERT_OK(builder->AddAnchor("a", 5));
  ASSERT_TRUE(builder->AddRangeAnchor("b", "c", 5).IsCorruption());
  ASSERT_TRUE(builder->Finish(&description).IsCorruption());

  // Jobs fragment ranges, so none of them writes a range twice, or two ranges
  // with one start and one sequence number.
  for (const std::string end : {"c", "d"}) {
    builder = NewBuilder(Kind::kAnchors);
    ASSERT_OK(builder->AddRangeAnchor("b", "c", 5));
    ASSERT_TRUE(builder->AddRangeAnchor("b", end, 5).IsCorruption());
    ASSERT_TRUE(builder->Finish(&description).IsCorruption());
  }
  ASSERT_EQ(0, NumFiles());
}

TEST_F(DeltaFileTest, InvalidCallsAndOptionsAreRefused) {
  DeltaFileDescription description;
  const InternalKey merge("a", 5, kTypeMerge);
  const InternalKey put("a", 5, kTypeValue);

  auto builder = NewBuilder(Kind::kOperands);
  ASSERT_TRUE(builder->AddAnchor("a", 5).IsInvalidArgument());
  builder = NewBuilder(Kind::kOperands);
  ASSERT_TRUE(builder->AddRangeAnchor("a", "b", 5).IsInvalidArgument());
  builder = NewBuilder(Kind::kOperands);
  ASSERT_TRUE(builder->AddOperand(put.Encode(), "").IsInvalidArgument());
  builder = NewBuilder(Kind::kOperands);
  ASSERT_TRUE(builder->AddOperand("short", "").IsCorruption());
  ASSERT_TRUE(builder->Finish(&description).IsCorruption());
  builder = NewBuilder(Kind::kOperands);
  ASSERT_TRUE(builder->SetBuckets({{"", 7}}).IsInvalidArgument());
  builder = NewBuilder(Kind::kAnchors);
  ASSERT_TRUE(builder->AddOperand(merge.Encode(), "").IsInvalidArgument());
  builder = NewBuilder(Kind::kAnchors);
  ASSERT_TRUE(builder->AddRangeAnchor("b", "b", 5).IsInvalidArgument());
  builder = NewBuilder(Kind::kAnchors);
  ASSERT_TRUE(builder->AddRangeAnchor("b", "a", 5).IsInvalidArgument());
  builder = NewBuilder(Kind::kAnchors);
  ASSERT_TRUE(
      builder->AddAnchor("a", kMaxSequenceNumber + 1).IsInvalidArgument());
  builder = NewBuilder(Kind::kOperands, Tier::kSorted);
  ASSERT_TRUE(builder->SetBuckets({{"b", 7}, {"a", 7}}).IsCorruption());
  builder = NewBuilder(Kind::kOperands, Tier::kSorted);
  ASSERT_TRUE(builder->SetBuckets({{"b", 7}}, "b").IsCorruption());
  builder = NewBuilder(Kind::kOperands, Tier::kSorted);
  ASSERT_TRUE(builder->SetBuckets({{"", 7}}, "").IsCorruption());
  builder = NewBuilder(Kind::kOperands, Tier::kSorted);
  ASSERT_TRUE(builder->SetBuckets({}, "b").IsInvalidArgument());

  builder = NewBuilder(Kind::kOperands);
  ASSERT_OK(builder->AddOperand(merge.Encode(), "1"));
  ASSERT_OK(builder->Finish(&description));
  ASSERT_TRUE(builder->AddOperand(merge.Encode(), "1").IsInvalidArgument());
  // The finished file is unchanged.
  ASSERT_EQ((Values{{5, "1"}}), MustCollect(*MustOpen(description), "a"));
  ASSERT_EQ(1, NumFiles());

  const auto refuses = [&](const DeltaFileBuilder::Options& options) {
    std::unique_ptr<DeltaFileBuilder> none;
    EXPECT_TRUE(
        DeltaFileBuilder::Create(*tables_, options, &none).IsInvalidArgument());
    EXPECT_EQ(nullptr, none);
  };
  DeltaFileBuilder::Options options = BuilderOptions(Kind::kOperands);
  options.number = 0;
  refuses(options);
  options = BuilderOptions(Kind::kOperands);
  options.first_epoch = 0;
  refuses(options);
  options.first_epoch = options.last_epoch + 1;
  refuses(options);
  options = BuilderOptions(Kind::kOperands, Tier::kSorted);
  options.last_epoch = 7;
  refuses(options);
  options = BuilderOptions(Kind::kOperands);
  options.first_epoch = options.last_epoch = 0;
  options.has_global_seq = true;
  refuses(options);
  options.kind = Kind::kAnchors;
  options.tier = Tier::kMerged;
  refuses(options);

  std::unique_ptr<DeltaFileReader> reader;
  ASSERT_TRUE(Open(DeltaFileDescription(), &reader).IsInvalidArgument());
}

TEST_F(DeltaFileTest, ComparatorWithTimestampsIsRefused) {
  options_.comparator = BytewiseComparatorWithU64Ts();
  Reopen();
  std::unique_ptr<DeltaFileBuilder> builder;
  ASSERT_TRUE(DeltaFileBuilder::Create(
                  *tables_, BuilderOptions(Kind::kOperands), &builder)
                  .IsNotSupported());
}

TEST_F(DeltaFileTest, FollowsAReverseComparator) {
  options_.comparator = ReverseBytewiseComparator();
  Reopen();
  const std::vector<Operand> operands = {
      {"c", 5, "c5"}, {"b", 7, "b7"}, {"b", 6, "b6"}, {"a", 9, "a9"}};
  const auto reader = MustOpen(WriteOperands(operands));
  ASSERT_EQ("c", reader->description().smallest);
  ASSERT_EQ("a", reader->description().largest);
  ASSERT_EQ((Values{{7, "b7"}, {6, "b6"}}), MustCollect(*reader, "b"));
  const auto anchors = MustOpen(WriteAnchors({{"b", 2}}, {{"c", "a", 5}}));
  ASSERT_EQ(5, MustFindAnchor(*anchors, "b"));
  ASSERT_EQ(0, MustFindAnchor(*anchors, "a"));
}

TEST_F(DeltaFileTest, AbandonAndTheDestructorDeleteTheFile) {
  auto builder = NewBuilder(Kind::kOperands);
  ASSERT_OK(Add({"a", 5, "1"}, builder.get()));
  ASSERT_EQ(1, NumFiles());
  builder->Abandon();
  ASSERT_EQ(0, NumFiles());
  builder->Abandon();
  DeltaFileDescription description;
  ASSERT_TRUE(builder->Finish(&description).IsInvalidArgument());

  // A finished file is deleted, as after a failed edit.
  builder = NewBuilder(Kind::kOperands);
  ASSERT_OK(Add({"a", 5, "1"}, builder.get()));
  ASSERT_OK(builder->Finish(&description));
  ASSERT_EQ(1, NumFiles());
  builder->Abandon();
  ASSERT_EQ(0, NumFiles());

  // The destructor deletes a file that was not finished.
  builder = NewBuilder(Kind::kOperands);
  ASSERT_OK(Add({"a", 5, std::string(100000, 'x')}, builder.get()));
  ASSERT_EQ(1, NumFiles());
  builder.reset();
  ASSERT_EQ(0, NumFiles());

  // The destructor keeps a finished file.
  builder = NewBuilder(Kind::kOperands);
  ASSERT_OK(Add({"a", 5, "1"}, builder.get()));
  ASSERT_OK(builder->Finish(&description));
  builder.reset();
  ASSERT_TRUE(Exists(description));
}

TEST_F(DeltaFileTest, FileSizeGrowsWhileWriting) {
  const auto builder = NewBuilder(Kind::kOperands);
  Random rnd(301);
  uint64_t raw_bytes = 0;
  uint64_t last_size = 0;
  for (size_t i = 0; i < 1000; ++i) {
    const Operand operand = {Key(i), 5, rnd.RandomString(1000)};
    ASSERT_OK(Add(operand, builder.get()));
    raw_bytes += operand.key.size() + operand.value.size();
    ASSERT_EQ(raw_bytes, builder->raw_bytes());
    ASSERT_GE(builder->FileSize(), last_size);
    last_size = builder->FileSize();
  }
  ASSERT_GT(last_size, raw_bytes - 10000);
  DeltaFileDescription description;
  ASSERT_OK(builder->Finish(&description));
  ASSERT_EQ(description.size, builder->FileSize());
  ASSERT_EQ(raw_bytes, description.raw_bytes);
  ASSERT_GE(description.size, last_size);
}

TEST_F(DeltaFileTest, CompressedFilesCanBeRead) {
  std::vector<Operand> operands;
  for (size_t i = 0; i < 2000; ++i) {
    operands.push_back({Key(i / 2), 10000 - i, std::string(200, 'a' + i % 7)});
  }
  for (const CompressionType type : GetSupportedCompressions()) {
    options_.compression = type;
    Reopen();
    const auto reader = MustOpen(WriteOperands(operands));
    if (type == kNoCompression) {
      ASSERT_GT(reader->description().size, 200 * operands.size());
    } else {
      ASSERT_LT(reader->description().size, 100 * operands.size());
    }
    for (size_t i = 0; i < 1000; i += 7) {
      ASSERT_EQ(Expected(operands, Key(i), kMaxSequenceNumber),
                MustCollect(*reader, Key(i)));
    }
    ASSERT_OK(reader->VerifyChecksum(ReadOptions()));
  }
}

TEST_F(DeltaFileTest, FileWithACompressionDictionaryCanBeRead) {
  if (!ZSTD_Supported()) {
    return;
  }
  options_.compression = kZSTD;
  options_.compression_opts.max_dict_bytes = 16 << 10;
  options_.compression_opts.zstd_max_train_bytes = 64 << 10;
  Reopen();
  Random rnd(301);
  std::vector<Operand> operands;
  for (size_t i = 0; i < 2000; ++i) {
    operands.push_back(
        {Key(i), 5, "some prefix " + rnd.HumanReadableString(50)});
  }
  const auto reader = MustOpen(WriteOperands(operands));
  for (size_t i = 0; i < 2000; i += 7) {
    ASSERT_EQ((Values{{5, operands[i].value}}), MustCollect(*reader, Key(i)));
    ASSERT_TRUE(reader->MayHaveKey(ReadOptions(), Key(i)));
  }
}

TEST_F(DeltaFileTest, DescriptionHasTheFileChecksum) {
  options_.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  Reopen();
  const DeltaFileDescription description =
      WriteOperands({{"a", 5, std::string(10000, 'x')}, {"b", 7, "1"}});
  const std::string contents = Contents(description);
  FileChecksumGenContext context;
  context.file_name = FileName(description);
  const auto generator =
      options_.file_checksum_gen_factory->CreateFileChecksumGenerator(context);
  generator->Update(contents.data(), contents.size());
  generator->Finalize();
  ASSERT_EQ(generator->GetChecksum(), description.file_checksum);
  ASSERT_EQ(generator->Name(), description.file_checksum_func_name);
  ASSERT_OK(MustOpen(description)->VerifyChecksum(ReadOptions()));
}

TEST_F(DeltaFileTest, SstFileManagerCountsTheFile) {
  options_.sst_file_manager.reset(NewSstFileManager(env_.get()));
  Reopen();
  auto builder = NewBuilder(Kind::kOperands);
  ASSERT_OK(Add({"a", 5, "1"}, builder.get()));
  ASSERT_EQ(0, options_.sst_file_manager->GetTotalSize());
  DeltaFileDescription description;
  ASSERT_OK(builder->Finish(&description));
  ASSERT_EQ(description.size, options_.sst_file_manager->GetTotalSize());
  builder->Abandon();
  ASSERT_EQ(0, options_.sst_file_manager->GetTotalSize());
}

// With publish_later the file has a temporary name until Publish().
TEST_F(DeltaFileTest, PublishGivesTheFileItsName) {
  options_.sst_file_manager.reset(NewSstFileManager(env_.get()));
  Reopen();
  for (const bool publish : {true, false}) {
    DeltaFileBuilder::Options options = BuilderOptions(Kind::kOperands);
    options.publish_later = true;
    const auto builder = NewBuilder(options);
    ASSERT_OK(Add({"a", 5, "1"}, builder.get()));
    DeltaFileDescription description;
    ASSERT_OK(builder->Finish(&description));
    ASSERT_FALSE(Exists(description));
    ASSERT_EQ(TempFileName(dir_, description.number), builder->file_name());
    ASSERT_EQ(description.size, options_.sst_file_manager->GetTotalSize());
    std::unique_ptr<DeltaFileReader> reader;
    ASSERT_NOK(Open(description, &reader));
    ASSERT_OK(DeltaFileReader::OpenAs(builder->file_name(), *tables_,
                                      ReadOptions(), description, &reader));
    ASSERT_EQ((Values{{5, "1"}}), MustCollect(*reader, "a"));
    reader.reset();
    const std::string temporary = builder->file_name();
    if (publish) {
      ASSERT_OK(builder->Publish());
      ASSERT_OK(builder->Publish());
      ASSERT_EQ(FileName(description), builder->file_name());
      ASSERT_EQ((Values{{5, "1"}}), MustCollect(*MustOpen(description), "a"));
      ASSERT_TRUE(env_->FileExists(temporary).IsNotFound());
      ASSERT_EQ(description.size, options_.sst_file_manager->GetTotalSize());
    }
    builder->Abandon();
    ASSERT_FALSE(Exists(description));
    ASSERT_TRUE(env_->FileExists(temporary).IsNotFound());
    ASSERT_EQ(0, options_.sst_file_manager->GetTotalSize());
  }
  // Without an entry there is no file to publish.
  DeltaFileBuilder::Options options = BuilderOptions(Kind::kOperands);
  options.publish_later = true;
  const auto builder = NewBuilder(options);
  DeltaFileDescription description;
  ASSERT_OK(builder->Finish(&description));
  ASSERT_OK(builder->Publish());
}

// A file system may report an error for something that it has done. Abandon()
// tells whether a file may be left, and the SstFileManager counts files that
// are left under their final name.
TEST_F(DeltaFileTest, AbandonTellsWhetherAFileMayBeLeft) {
  const auto fs =
      std::make_shared<delta_test::DeltaNameFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> env(NewCompositeEnv(fs));
  const std::shared_ptr<SstFileManager> manager(NewSstFileManager(env.get()));
  options_.env = env.get();
  options_.sst_file_manager = manager;
  Reopen();
  DeltaFileDescription description;
  const auto new_file = [&] {
    DeltaFileBuilder::Options options = BuilderOptions(Kind::kOperands);
    options.publish_later = true;
    auto builder = NewBuilder(options);
    EXPECT_OK(Add({"a", 5, "1"}, builder.get()));
    EXPECT_OK(builder->Finish(&description));
    EXPECT_EQ(description.size, manager->GetTotalSize());
    EXPECT_FALSE(builder->MayBeRenamed());
    return builder;
  };

  // A temporary file is left. It is not counted, because the full scan that
  // deletes it later does not tell the manager.
  auto builder = new_file();
  fs->keeps_temporary_files = true;
  EXPECT_FALSE(builder->Abandon());
  EXPECT_OK(env_->FileExists(builder->file_name()));
  EXPECT_EQ(0, manager->GetTotalSize());
  fs->keeps_temporary_files = false;
  EXPECT_TRUE(builder->Abandon());
  EXPECT_TRUE(env_->FileExists(builder->file_name()).IsNotFound());
  EXPECT_EQ(0, manager->GetTotalSize());

  // A file with its final name is left.
  builder = new_file();
  ASSERT_OK(builder->Publish());
  EXPECT_TRUE(builder->MayBeRenamed());
  fs->keeps_delta_files = true;
  EXPECT_FALSE(builder->Abandon());
  EXPECT_TRUE(Exists(description));
  EXPECT_EQ(description.size, manager->GetTotalSize());
  fs->keeps_delta_files = false;
  EXPECT_TRUE(builder->Abandon());
  EXPECT_FALSE(Exists(description));
  EXPECT_EQ(0, manager->GetTotalSize());

  // The file was renamed, although the file system has reported an error.
  builder = new_file();
  const std::string temporary = builder->file_name();
  fs->denies_renames = true;
  EXPECT_TRUE(builder->Publish().IsIOError());
  EXPECT_TRUE(Exists(description));
  EXPECT_TRUE(builder->MayBeRenamed());
  fs->keeps_delta_files = true;
  EXPECT_FALSE(builder->Abandon());
  EXPECT_TRUE(Exists(description));
  EXPECT_EQ(1, manager->GetTrackedFiles().count(FileName(description)));
  EXPECT_EQ(0, manager->GetTrackedFiles().count(temporary));
  fs->keeps_delta_files = false;
  EXPECT_TRUE(builder->Abandon());
  EXPECT_FALSE(Exists(description));
  EXPECT_EQ(0, manager->GetTotalSize());
  builder = new_file();
  EXPECT_TRUE(builder->Publish().IsIOError());
  EXPECT_TRUE(builder->Abandon());
  EXPECT_FALSE(Exists(description));
  EXPECT_EQ(0, manager->GetTotalSize());

  builder.reset();
  options_.env = env_.get();
  options_.sst_file_manager.reset();
  Reopen();
}

TEST_F(DeltaFileTest, FileIsOnItsPath) {
  const std::string other = dir_ + "/other";
  ASSERT_OK(env_->CreateDirIfMissing(other));
  options_.cf_paths.emplace_back(other, 0);
  Reopen();
  DeltaFileBuilder::Options options = BuilderOptions(Kind::kOperands);
  options.path_id = 1;
  const auto builder = NewBuilder(options);
  ASSERT_OK(Add({"a", 5, "1"}, builder.get()));
  DeltaFileDescription description;
  ASSERT_OK(builder->Finish(&description));
  ASSERT_EQ(1, description.path_id);
  ASSERT_EQ(DeltaFileName(other, description.number), builder->file_name());
  ASSERT_FALSE(Exists(description));  // on path 0
  ASSERT_EQ((Values{{5, "1"}}), MustCollect(*MustOpen(description), "a"));
}

TEST_F(DeltaFileTest, PropertiesHaveTheBuckets) {
  const std::vector<DeltaFileProperties::Bucket> buckets = {{"", 12},
                                                            {"m", 300}};
  const auto builder = NewBuilder(Kind::kOperands, Tier::kSorted);
  ASSERT_OK(Add({"a", 5, "1"}, builder.get()));
  ASSERT_OK(builder->SetBuckets(buckets, "x"));
  DeltaFileDescription description;
  ASSERT_OK(builder->Finish(&description));
  ASSERT_EQ(Tier::kSorted, description.tier);
  ASSERT_EQ(0, description.first_epoch);
  ASSERT_EQ(0, description.last_epoch);
  DeltaFileProperties properties;
  ASSERT_OK(DeltaFileProperties::Read(
      *MustOpen(description)->GetTableProperties(), &properties));
  ASSERT_EQ(Kind::kOperands, properties.kind);
  ASSERT_EQ(Tier::kSorted, properties.tier);
  ASSERT_TRUE(buckets == properties.buckets);
  ASSERT_EQ("x", properties.end);
}

// ---- Anchors of an ingested file.

TEST_F(DeltaFileTest, AnchorsHaveTheAssignedSequenceNumber) {
  const std::vector<std::pair<std::string, ValueType>> entries = {
      {"a", kTypeValue},
      {"c", kTypeDeletion},
      {"d", kTypeWideColumnEntity},
      {"e", kTypeSingleDeletion},
  };
  std::vector<std::string> keys;
  for (const auto& entry : entries) {
    keys.push_back(
        InternalKey(entry.first, 0, entry.second).Encode().ToString());
  }
  // This key has several entries.
  keys.push_back(InternalKey("f", 8, kTypeValue).Encode().ToString());
  keys.push_back(InternalKey("f", 7, kTypeValue).Encode().ToString());
  const InternalKeyComparator icmp(BytewiseComparator());
  VectorIterator points(keys, std::vector<std::string>(keys.size(), "value"),
                        &icmp);
  FragmentedRangeTombstoneList list(
      std::make_unique<VectorIterator>(
          std::vector<std::string>{
              InternalKey("m", 0, kTypeRangeDeletion).Encode().ToString(),
              InternalKey("n", 3, kTypeRangeDeletion).Encode().ToString()},
          std::vector<std::string>{"p", "q"}, &icmp),
      icmp);
  FragmentedRangeTombstoneIterator ranges(&list, icmp, kMaxSequenceNumber);

  DeltaFileBuilder::Options options = BuilderOptions(Kind::kAnchors);
  options.first_epoch = options.last_epoch = 0;
  DeltaFileDescription description;
  ASSERT_TRUE(DeltaFileBuilder::BuildAnchorsOf(*tables_, options, &points,
                                               &ranges, &description)
                  .IsInvalidArgument());
  options.has_global_seq = true;
  ASSERT_OK(DeltaFileBuilder::BuildAnchorsOf(*tables_, options, &points,
                                             &ranges, &description));
  ASSERT_TRUE(description.has_global_seq);
  ASSERT_EQ(5, description.num_entries);
  ASSERT_EQ(3, description.num_range_anchors);  // mn, np, pq
  ASSERT_EQ("a", description.smallest);
  ASSERT_EQ("q", description.largest);
  ASSERT_EQ(0, description.smallest_seq);
  ASSERT_EQ(0, description.largest_seq);

  for (const SequenceNumber seq :
       {SequenceNumber{40}, kMaxSequenceNumber - 1}) {
    DeltaFileBuilder::AssignGlobalSeq(seq, /*epoch=*/77, &description);
    ASSERT_EQ(77, description.first_epoch);
    ASSERT_EQ(77, description.last_epoch);
    ASSERT_EQ(seq, description.smallest_seq);
    // The block cache is empty, because blocks that a reader has put there have
    // the sequence number of that reader.
    ResetTableOptions();
    Reopen();
    const auto reader = MustOpen(description);
    for (const std::string key : {"a", "c", "d", "e", "f", "m", "n", "p"}) {
      ASSERT_EQ(seq, MustFindAnchor(*reader, key)) << key;
      ASSERT_EQ(seq, MustFindAnchor(*reader, key, seq)) << key;
      ASSERT_EQ(0, MustFindAnchor(*reader, key, seq - 1)) << key;
    }
    for (const std::string key : {"", "aa", "b", "g", "q"}) {
      ASSERT_EQ(0, MustFindAnchor(*reader, key)) << key;
    }
    const ReadOptions read_options;
    std::unique_ptr<InternalIterator> iter(
        reader->NewIterator(read_options, TableReaderCaller::kUncategorized));
    size_t num = 0;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++num) {
      ASSERT_EQ(seq, GetInternalKeySeqno(iter->key()));
      ASSERT_EQ(kTypeDeletion, ExtractValueType(iter->key()));
    }
    ASSERT_OK(iter->status());
    ASSERT_EQ(5, num);
    ASSERT_OK(reader->VerifyChecksum(ReadOptions()));
  }

  // The writer must not choose sequence numbers.
  options = BuilderOptions(Kind::kAnchors);
  options.first_epoch = options.last_epoch = 0;
  options.has_global_seq = true;
  auto builder = NewBuilder(options);
  ASSERT_TRUE(builder->AddAnchor("a", 5).IsInvalidArgument());
  builder = NewBuilder(options);
  ASSERT_TRUE(builder->AddRangeAnchor("a", "b", 5).IsInvalidArgument());
  builder = NewBuilder(options);
  ASSERT_OK(builder->AddAnchor("a", 0));
  ASSERT_TRUE(builder->AddAnchor("a", 0).IsCorruption());
  builder.reset();

  // Operands may not be ingested over operands, and leave no file.
  VectorIterator operands({InternalKey("b", 0, kTypeMerge).Encode().ToString()},
                          {"value"}, &icmp);
  ASSERT_TRUE(DeltaFileBuilder::BuildAnchorsOf(*tables_, options, &operands,
                                               /*ranges=*/nullptr, &description)
                  .IsNotSupported());
  ASSERT_EQ(0, description.number);
  ASSERT_EQ(1, NumFiles());

  // A damaged input leaves no file.
  VectorIterator damaged({"short"}, {"value"});
  ASSERT_TRUE(DeltaFileBuilder::BuildAnchorsOf(*tables_, options, &damaged,
                                               /*ranges=*/nullptr, &description)
                  .IsCorruption());
  ASSERT_EQ(1, NumFiles());
}

// ---- Reads without I/O, and by several threads.

TEST_F(DeltaFileTest, ReadWithoutIOFindsOnlyCachedBlocks) {
  std::vector<Operand> operands;
  for (SequenceNumber seq = 1000; seq > 0; --seq) {
    operands.push_back({"a", seq, std::string(100, 'x')});
  }
  const DeltaFileDescription with_operands = WriteOperands(operands);
  const DeltaFileDescription with_anchors = WriteAnchors({{"a", 7}}, {});
  ResetTableOptions();
  Reopen();
  const auto reader = MustOpen(with_operands);
  const auto anchors = MustOpen(with_anchors);
  ReadOptions memory_only;
  memory_only.read_tier = kBlockCacheTier;
  // The filter is in memory.
  ASSERT_TRUE(reader->MayHaveKey(memory_only, "a"));
  ASSERT_FALSE(reader->MayHaveKey(memory_only, "b"));

  DeltaOperands found;
  found.Add(2000, "of another file", /*pinner=*/nullptr);
  ASSERT_TRUE(
      reader->CollectOperands(memory_only, "a", 1000, &found).IsIncomplete());
  ASSERT_EQ(1, found.size());
  // The last block is in the cache, the others are not.
  ASSERT_OK(reader->CollectOperands(ReadOptions(), "a", 10, &found));
  ASSERT_EQ(11, found.size());
  ASSERT_TRUE(
      reader->CollectOperands(memory_only, "a", 1000, &found).IsIncomplete());
  ASSERT_EQ(11, found.size());
  ASSERT_EQ(std::string(100, 'x'), found[10].value);
  found.Clear();
  ASSERT_OK(reader->CollectOperands(ReadOptions(), "a", 1000, &found));
  ASSERT_OK(reader->CollectOperands(memory_only, "a", 1000, &found));
  ASSERT_EQ(2000, found.size());

  SequenceNumber seq = 0;
  ASSERT_TRUE(
      anchors->NewestAnchor(memory_only, "a", 1000, &seq).IsIncomplete());
  ASSERT_EQ(7, MustFindAnchor(*anchors, "a"));
  ASSERT_OK(anchors->NewestAnchor(memory_only, "a", 1000, &seq));
  ASSERT_EQ(7, seq);
}

TEST_F(DeltaFileTest, ThreadsShareReaders) {
  constexpr size_t kNum = 2000;
  std::vector<Operand> operands;
  std::vector<Anchor> anchors;
  for (size_t i = 0; i < kNum; ++i) {
    operands.push_back({Key(i / 4), 100000 - i, "value" + std::to_string(i)});
    if (i % 4 == 0) {
      anchors.push_back({Key(i / 4), 100000 - i - 2});
    }
  }
  const auto reader = MustOpen(WriteOperands(operands));
  const auto with_anchors =
      MustOpen(WriteAnchors(anchors, {{Key(0), Key(kNum), 7}}));
  std::vector<port::Thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random rnd(t + 1);
      for (int round = 0; round < 2000; ++round) {
        const size_t i = rnd.Uniform(kNum / 4);
        Values expected;
        for (size_t j = 4 * i; j < 4 * i + 4; ++j) {
          expected.emplace_back(operands[j].seq, operands[j].value);
        }
        ASSERT_TRUE(reader->MayHaveKey(ReadOptions(), Key(i)));
        ASSERT_EQ(expected, MustCollect(*reader, Key(i)));
        ASSERT_EQ(anchors[i].seq, MustFindAnchor(*with_anchors, Key(i)));
        ASSERT_EQ(7, MustFindAnchor(*with_anchors, Key(i), 8));
      }
    });
  }
  for (port::Thread& thread : threads) {
    thread.join();
  }
}

// ---- Damage.

void DeltaFileTest::CheckDamagedOperands(
    const DeltaFileDescription& description,
    const std::vector<Operand>& operands, bool* was_noticed) {
  ResetTableOptions();
  Reopen();
  std::unique_ptr<DeltaFileReader> reader;
  const Status s = Open(description, &reader);
  if (!s.ok()) {
    IsNamedCorruption(s, description);
    *was_noticed = true;
    return;
  }
  std::set<std::string> keys;
  for (const Operand& operand : operands) {
    keys.insert(operand.key);
  }
  for (const std::string& key : keys) {
    ASSERT_TRUE(reader->MayHaveKey(ReadOptions(), key));
    Values values;
    const Status read = Collect(*reader, key, kMaxSequenceNumber, &values);
    if (read.ok()) {
      ASSERT_EQ(Expected(operands, key, kMaxSequenceNumber), values);
    } else {
      IsNamedCorruption(read, description);
      ASSERT_TRUE(values.empty());
      *was_noticed = true;
    }
  }
  const Status verified = reader->VerifyChecksum(ReadOptions());
  if (!verified.ok()) {
    IsNamedCorruption(verified, description);
    *was_noticed = true;
  }
}

void DeltaFileTest::CheckDamagedAnchors(const DeltaFileDescription& description,
                                        const std::vector<Anchor>& anchors,
                                        const std::vector<RangeAnchor>& ranges,
                                        bool* was_noticed) {
  ResetTableOptions();
  Reopen();
  std::unique_ptr<DeltaFileReader> reader;
  const Status s = Open(description, &reader);
  if (!s.ok()) {
    IsNamedCorruption(s, description);
    *was_noticed = true;
    return;
  }
  for (const std::string key : {"", "a", "b", "c", "d", "e", "f", "g", "z"}) {
    SequenceNumber seq = 0;
    const Status read =
        reader->NewestAnchor(ReadOptions(), key, kMaxSequenceNumber, &seq);
    if (read.ok()) {
      ASSERT_EQ(Expected(anchors, ranges, key, kMaxSequenceNumber), seq);
    } else {
      IsNamedCorruption(read, description);
      *was_noticed = true;
    }
  }
  const Status verified = reader->VerifyChecksum(ReadOptions());
  if (!verified.ok()) {
    IsNamedCorruption(verified, description);
    *was_noticed = true;
  }
}

template <typename Check>
void DeltaFileTest::DamageEverywhere(const DeltaFileDescription& description,
                                     const Check& check) {
  const std::string intact = Contents(description);
  ASSERT_EQ(description.size, intact.size());
  const size_t data_size =
      MustOpen(description)->GetTableProperties()->data_size;
  [[maybe_unused]] const BlockHandle properties = PropertiesBlock(description);
  size_t not_noticed = 0;
  for (size_t i = 0; i < intact.size(); ++i) {
    // Each change opens the file again, so only some bytes are changed. A data
    // block has one checksum, so a few bytes of it are enough. More bytes are
    // changed of the blocks that are read when the file is opened, some of
    // which are used before their checksums are verified.
    const bool is_data = i < data_size;
    if (i % (is_data ? 13 : 2) != 0 && i + 64 < intact.size()) {
      continue;
    }
    for (const int change : {1 << (i / 2 % 8), 0xff}) {
      if (change == 0xff && i % 16 != 0) {
        continue;
      }
#ifndef NDEBUG
      // RocksDB parses the properties of a table before it checks their
      // checksum, because ingestion may have changed a sequence number in them.
      // The result of parsing a damaged block is discarded, but assertions fail
      // if lengths or offsets have changed. So only letters between letters are
      // changed.
      if (i >= properties.offset() &&
          i < properties.offset() + properties.size() &&
          !(isalpha(intact[i - 1]) && isalpha(intact[i]) &&
            isalpha(intact[i + 1]))) {
        continue;
      }
#endif  // !NDEBUG
      std::string damaged = intact;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      SetContents(description, damaged);
      bool was_noticed = false;
      check(&was_noticed);
      if (HasFatalFailure()) {
        FAIL() << "byte " << i << " change " << change;
      }
      not_noticed += !was_noticed;
    }
  }
  SetContents(description, intact);
  bool was_noticed = false;
  check(&was_noticed);
  ASSERT_FALSE(was_noticed);
  // All bytes are covered by a checksum.
  ASSERT_EQ(0, not_noticed);
}

TEST_F(DeltaFileTest, DamageOfOperandsIsNoticed) {
  Random rnd(301);
  std::vector<Operand> operands;
  for (size_t i = 0; i < 12; ++i) {
    operands.push_back(
        {Key(i / 2), 100 - i,
         i % 5 == 0 ? "" : rnd.RandomString(100) + std::string(500, 'x')});
  }
  for (const CompressionType type :
       {kNoCompression, GetSupportedCompressions().back()}) {
    options_.compression = type;
    Reopen();
    const DeltaFileDescription description = WriteOperands(operands);
    ASSERT_GE(MustOpen(description)->GetTableProperties()->num_data_blocks, 2);
    DamageEverywhere(description, [&](bool* was_noticed) {
      CheckDamagedOperands(description, operands, was_noticed);
    });
  }
}

TEST_F(DeltaFileTest, DamageOfAnchorsIsNoticed) {
  const std::vector<Anchor> anchors = {{"a", 40}, {"b", 30}, {"f", 20}};
  const std::vector<RangeAnchor> ranges = {{"b", "d", 35}, {"c", "g", 25}};
  const DeltaFileDescription description = WriteAnchors(anchors, ranges);
  DamageEverywhere(description, [&](bool* was_noticed) {
    CheckDamagedAnchors(description, anchors, ranges, was_noticed);
  });
}

TEST_F(DeltaFileTest, DamageWithAGlobalSequenceNumberIsNoticed) {
  DeltaFileBuilder::Options options = BuilderOptions(Kind::kAnchors);
  options.first_epoch = options.last_epoch = 0;
  options.has_global_seq = true;
  const auto builder = NewBuilder(options);
  ASSERT_OK(builder->AddAnchor("a", 0));
  ASSERT_OK(builder->AddAnchor("e", 0));
  ASSERT_OK(builder->AddRangeAnchor("b", "d", 0));
  DeltaFileDescription description;
  ASSERT_OK(builder->Finish(&description));
  DeltaFileBuilder::AssignGlobalSeq(40, 77, &description);
  DamageEverywhere(description, [&](bool* was_noticed) {
    CheckDamagedAnchors(description, {{"a", 40}, {"e", 40}}, {{"b", "d", 40}},
                        was_noticed);
  });
}

// Checksums depend on the offset of a block: a file in which two blocks of the
// same size were exchanged is corrupt.
TEST_F(DeltaFileTest, ExchangedBlocksAreNoticed) {
  std::vector<Operand> operands;
  for (size_t i = 0; i < 8; ++i) {
    operands.push_back({Key(i), 100, std::string(5000, 'a' + i)});
  }
  const DeltaFileDescription description = WriteOperands(operands);
  const std::string intact = Contents(description);
  const auto properties = MustOpen(description)->GetTableProperties();
  ASSERT_EQ(operands.size(), properties->num_data_blocks);
  ASSERT_EQ(0, properties->data_size % operands.size());
  const size_t block = properties->data_size / operands.size();
  SetContents(description, intact.substr(block, block) +
                               intact.substr(0, block) +
                               intact.substr(2 * block));
  bool was_noticed = false;
  CheckDamagedOperands(description, operands, &was_noticed);
  ASSERT_TRUE(was_noticed);
}

TEST_F(DeltaFileTest, WrongSizeIsNoticed) {
  std::vector<Operand> operands;
  for (size_t i = 0; i < 20; ++i) {
    operands.push_back({Key(i), 100, std::string(500, 'x')});
  }
  const DeltaFileDescription description = WriteOperands(operands);
  const std::string intact = Contents(description);
  std::unique_ptr<DeltaFileReader> reader;
  for (size_t size = 0; size < intact.size();
       size += size + 200 < intact.size() ? 97 : 1) {
    SetContents(description, intact.substr(0, size));
    ResetTableOptions();
    Reopen();
    IsNamedCorruption(Open(description, &reader), description);
    // The file is corrupt even if the description has the same size.
    DeltaFileDescription short_description = description;
    short_description.size = size;
    if (size != 0) {
      IsNamedCorruption(Open(short_description, &reader), description);
    }
  }
  SetContents(description, intact + "x");
  IsNamedCorruption(Open(description, &reader), description);
  DeltaFileDescription long_description = description;
  ++long_description.size;
  IsNamedCorruption(Open(long_description, &reader), description);
  ASSERT_OK(env_->DeleteFile(FileName(description)));
  ASSERT_TRUE(Open(description, &reader).IsPathNotFound() ||
              Open(description, &reader).IsIOError());
  ASSERT_EQ(nullptr, reader);
}

TEST_F(DeltaFileTest, WrongDescriptionIsRefused) {
  const DeltaFileDescription right = WriteOperands({{"a", 5, "1"}});
  const DeltaFileDescription other = WriteOperands({{"a", 5, "2"}});
  ASSERT_EQ(right.size, other.size);
  const DeltaFileDescription anchors = WriteAnchors({{"a", 5}}, {});
  std::unique_ptr<DeltaFileReader> reader;
  const auto refuses = [&](const DeltaFileDescription& description) {
    IsNamedCorruption(Open(description, &reader), description);
    ASSERT_EQ(nullptr, reader);
  };
  ASSERT_OK(Open(right, &reader));
  reader.reset();

  DeltaFileDescription wrong = right;
  ++wrong.size;
  refuses(wrong);
  wrong = right;
  --wrong.size;
  refuses(wrong);
  wrong = right;
  wrong.kind = Kind::kAnchors;
  refuses(wrong);
  wrong = anchors;
  wrong.kind = Kind::kOperands;
  refuses(wrong);
  wrong = right;
  wrong.tier = Tier::kMerged;
  refuses(wrong);
  wrong = right;
  wrong.first_epoch = 6;
  refuses(wrong);
  wrong = right;
  wrong.last_epoch = 8;
  refuses(wrong);
  wrong = right;
  ++wrong.num_entries;
  refuses(wrong);
  wrong = anchors;
  wrong.num_entries = 0;
  wrong.num_range_anchors = 1;
  refuses(wrong);
  wrong = anchors;
  wrong.has_global_seq = true;
  refuses(wrong);

  // Another file has the name of this file.
  wrong = right;
  wrong.unique_id[0] ^= 1;
  refuses(wrong);
  SetContents(right, Contents(other));
  refuses(right);
  // The unique id is only checked with verify_sst_unique_id_in_manifest.
  options_.verify_sst_unique_id_in_manifest = false;
  Reopen();
  ASSERT_EQ((Values{{5, "2"}}), MustCollect(*MustOpen(right), "a"));
}

void DeltaFileTest::ReplaceByTable(const UserCollectedProperties& properties,
                                   const std::vector<InternalKey>& keys,
                                   const std::string& value,
                                   DeltaFileDescription* description) {
  const auto settings = tables_->settings();
  const std::string name = FileName(*description);
  std::unique_ptr<FSWritableFile> file;
  ASSERT_OK(env_->GetFileSystem()->NewWritableFile(name, FileOptions(), &file,
                                                   nullptr));
  WritableFileWriter writer(std::move(file), name, FileOptions());
  InternalTblPropCollFactories factories;
  factories.push_back(
      std::make_unique<fuzz::GivenPropertiesFactory>(properties));
  const ReadOptions read_options;
  const WriteOptions write_options;
  std::unique_ptr<TableBuilder> builder(
      settings->options.table_factory->NewTableBuilder(
          TableBuilderOptions(
              settings->ioptions(), settings->options, read_options,
              write_options, settings->icmp(), &factories, kNoCompression,
              CompressionOptions(), 0, "", 0, 0, false,
              TableFileCreationReason::kMisc, 0, 0,
              BuilderOptions(description->kind).db_id,
              settings->family->db_session_id, 0, description->number),
          &writer));
  for (const InternalKey& key : keys) {
    builder->Add(key.Encode(), value);
  }
  ASSERT_OK(builder->Finish());
  ASSERT_OK(writer.Close(IOOptions()));
  description->size = builder->FileSize();
}

TEST_F(DeltaFileTest, OtherFilesAreRefused) {
  // The file is a table without the property of delta files.
  DeltaFileDescription description = WriteOperands({{"a", 5, "1"}});
  const InternalKey operand("a", 5, kTypeMerge);
  ReplaceByTable({}, {operand}, "1", &description);
  std::unique_ptr<DeltaFileReader> reader;
  const Status s = Open(description, &reader);
  IsNamedCorruption(s, description);
  ASSERT_NE(std::string::npos, s.ToString().find("strata.delta"));

  // The file is of a later version.
  ReplaceByTable({{DeltaFileProperties::kPropertyName, "\x02"}}, {operand}, "1",
                 &description);
  const Status later = Open(description, &reader);
  ASSERT_TRUE(later.IsNotSupported()) << later.ToString();
  IsNamed(later, description);

  // The file has an entry of another type beside the number of operands that
  // the MANIFEST says.
  DeltaFileProperties in_file;
  in_file.kind = Kind::kOperands;
  in_file.tier = description.tier;
  in_file.first_epoch = description.first_epoch;
  in_file.last_epoch = description.last_epoch;
  UserCollectedProperties properties;
  in_file.EncodeTo(&properties[DeltaFileProperties::kPropertyName]);
  ReplaceByTable(properties, {operand, InternalKey("b", 5, kTypeValue)}, "1",
                 &description);
  const Status more = Open(description, &reader);
  IsNamedCorruption(more, description);
  ASSERT_NE(std::string::npos, more.ToString().find("number of entries"));

  // The file is not a table.
  SetContents(description, std::string(description.size, 'x'));
  IsNamedCorruption(Open(description, &reader), description);
}

// Only flushed anchors have a global sequence number, whatever a file and its
// description say.
TEST_F(DeltaFileTest, OtherFilesWithAGlobalSequenceNumberAreRefused) {
  const auto make = [&](Kind kind, Tier tier, DeltaFileDescription* file) {
    if (kind == Kind::kOperands) {
      *file = WriteOperands({{"a", 0, ""}});
    } else {
      *file = WriteAnchors({{"a", 0}}, {});
    }
    DeltaFileProperties in_file;
    in_file.kind = kind;
    in_file.tier = tier;
    UserCollectedProperties properties;
    in_file.EncodeTo(&properties[DeltaFileProperties::kPropertyName]);
    PutFixed32(&properties[ExternalSstFilePropertyNames::kVersion], 2);
    PutFixed64(&properties[ExternalSstFilePropertyNames::kGlobalSeqno], 0);
    const ValueType type = kind == Kind::kOperands ? kTypeMerge : kTypeDeletion;
    ReplaceByTable(properties, {InternalKey("a", 0, type)}, "", file);
    file->tier = tier;
    file->has_global_seq = true;
    file->first_epoch = file->last_epoch = tier == Tier::kSorted ? 0 : 7;
    file->smallest_seq = file->largest_seq = 40;
  };
  for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
    for (const Tier tier : {Tier::kFlushed, Tier::kMerged, Tier::kSorted}) {
      SCOPED_TRACE(static_cast<int>(kind) * 10 + static_cast<int>(tier));
      DeltaFileDescription file;
      make(kind, tier, &file);
      std::unique_ptr<DeltaFileReader> reader;
      const Status s = Open(file, &reader);
      if (kind == Kind::kAnchors && tier == Tier::kFlushed) {
        ASSERT_OK(s);
      } else {
        IsNamedCorruption(s, file);
      }
    }
  }
}

// Neither a reader nor a repair, which has no MANIFEST, takes a file without
// epochs for one of a flush, or believes the epochs of a file that has a global
// sequence number.
TEST_F(DeltaFileTest, EpochsExcludeAGlobalSequenceNumber) {
  for (const bool has_epochs : {false, true}) {
    for (const bool has_global_seq : {false, true}) {
      DeltaFileDescription file = WriteAnchors({{"a", 0}}, {});
      DeltaFileProperties in_file;
      in_file.kind = Kind::kAnchors;
      in_file.first_epoch = in_file.last_epoch = has_epochs ? 7 : 0;
      UserCollectedProperties properties;
      in_file.EncodeTo(&properties[DeltaFileProperties::kPropertyName]);
      if (has_global_seq) {
        PutFixed32(&properties[ExternalSstFilePropertyNames::kVersion], 2);
        PutFixed64(&properties[ExternalSstFilePropertyNames::kGlobalSeqno], 0);
      }
      ReplaceByTable(properties, {InternalKey("a", 0, kTypeDeletion)}, "",
                     &file);
      file.has_global_seq = has_global_seq;
      file.first_epoch = file.last_epoch = in_file.first_epoch;
      file.smallest_seq = file.largest_seq = has_global_seq ? 40 : 0;
      std::unique_ptr<DeltaFileReader> reader;
      const Status opened = Open(file, &reader);
      DeltaFileProbe probe;
      const Status probed = DeltaFileProbe::Read(
          ImmutableOptions(options_), FileOptions(), dir_, file.number, &probe);
      if (has_epochs != has_global_seq) {
        ASSERT_OK(opened);
        ASSERT_OK(probed);
        ASSERT_EQ(has_global_seq, probe.description.has_global_seq);
      } else {
        IsNamedCorruption(opened, file);
        IsNamedCorruption(probed, file);
      }
    }
  }
}

// The order of buckets is that of the comparator, so a probe can check it only
// when it reads the entries.
TEST_F(DeltaFileTest, BucketsOutOfOrderAreRefused) {
  const auto builder = NewBuilder(Kind::kOperands, Tier::kSorted);
  ASSERT_OK(Add({"a", 5, "1"}, builder.get()));
  ASSERT_OK(builder->SetBuckets({{"", 12}, {"m", 300}}));
  DeltaFileDescription file;
  ASSERT_OK(builder->Finish(&file));
  const auto check = [&](const std::vector<std::string>& bounds, bool is_right,
                         const std::optional<std::string>& end = {}) {
    DeltaFileProperties in_file;
    in_file.tier = Tier::kSorted;
    for (const std::string& bound : bounds) {
      in_file.buckets.push_back({bound, 12});
    }
    in_file.end = end;
    UserCollectedProperties properties;
    in_file.EncodeTo(&properties[DeltaFileProperties::kPropertyName]);
    ResetTableOptions();
    Reopen();
    ReplaceByTable(properties, {InternalKey("a", 5, kTypeMerge)}, "1", &file);
    std::unique_ptr<DeltaFileReader> reader;
    const Status opened = Open(file, &reader);
    DeltaFileProbe probe;
    const ImmutableOptions ioptions(options_);
    ASSERT_OK(DeltaFileProbe::Read(ioptions, FileOptions(), dir_, file.number,
                                   &probe));
    const Status scanned = probe.Scan(
        *probe.NewTables(ioptions, MutableCFOptions(options_), FileOptions()));
    if (is_right) {
      ASSERT_OK(opened);
      ASSERT_OK(scanned);
    } else {
      IsNamedCorruption(opened, file);
      ASSERT_NE(std::string::npos, opened.ToString().find("out of order"));
      IsNamedCorruption(scanned, file);
    }
  };
  for (const bool is_reverse : {false, true}) {
    options_.comparator =
        is_reverse ? ReverseBytewiseComparator() : BytewiseComparator();
    ASSERT_NO_FATAL_FAILURE(check({"", "m"}, true));
    ASSERT_NO_FATAL_FAILURE(check({"", "b", "d"}, !is_reverse));
    ASSERT_NO_FATAL_FAILURE(check({"", "b"}, !is_reverse, "d"));
    ASSERT_NO_FATAL_FAILURE(check({"", "d", "b"}, is_reverse));
    ASSERT_NO_FATAL_FAILURE(check({"", "d"}, is_reverse, "b"));
  }
}

#ifndef NDEBUG
TEST_F(DeltaFileTest, FailedWriteLeavesNoFile) {
  for (const char* const where : {"DeltaFileBuilder::Open:NewWritableFile",
                                  "DeltaFileBuilder::FinishFile:BeforeSync",
                                  "DeltaFileBuilder::FinishFile:AfterClose"}) {
    EnableCallBack(where, [](void* arg) {
      IOStatus* const io_s = static_cast<IOStatus*>(arg);
      *io_s = IOStatus::IOError("no write today");
      io_s->SetRetryable(true);
    });
    const auto builder = NewBuilder(Kind::kOperands);
    const Status added = Add({"a", 5, "1"}, builder.get());
    DeltaFileDescription description;
    const Status s = builder->Finish(&description);
    ASSERT_TRUE(s.IsIOError()) << where;
    ASSERT_TRUE(added.ok() || added.IsIOError());
    ASSERT_TRUE(builder->io_status().IsIOError());
    ASSERT_TRUE(builder->io_status().GetRetryable());
    ASSERT_EQ(0, description.number);
    ASSERT_TRUE(env_->FileExists(builder->file_name()).IsNotFound());
    DisableCallBacks();
  }
}

TEST_F(DeltaFileTest, FailureOfPublishIsKept) {
  EnableCallBack("DeltaFileBuilder::Publish:BeforeRename", [](void* arg) {
    *static_cast<IOStatus*>(arg) = IOStatus::IOError("no name today");
  });
  DeltaFileBuilder::Options options = BuilderOptions(Kind::kOperands);
  options.publish_later = true;
  const auto builder = NewBuilder(options);
  ASSERT_OK(Add({"a", 5, "1"}, builder.get()));
  DeltaFileDescription description;
  ASSERT_OK(builder->Finish(&description));
  ASSERT_TRUE(builder->Publish().IsIOError());
  ASSERT_TRUE(builder->io_status().IsIOError());
  DisableCallBacks();
  ASSERT_TRUE(builder->Publish().IsIOError());
  ASSERT_FALSE(Exists(description));
  builder->Abandon();
  ASSERT_TRUE(env_->FileExists(builder->file_name()).IsNotFound());
}
#endif  // !NDEBUG

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
