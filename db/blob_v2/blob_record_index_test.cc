//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_record_index.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "db/blob/blob_log_writer.h"
#include "db/blob_v2/blob_file_v2_test_util.h"
#include "db/dbformat.h"
#include "file/random_access_file_reader.h"
#include "file/writable_file_writer.h"
// The fuzzer is included and not linked, because the build has one source file
// per test.
#include "fuzz/strata/blob_record_index_fuzzer.cc"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"
#include "util/coding.h"
#include "util/crc32c.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using blob_v2_test::BytesFile;

namespace {

constexpr size_t kBlockSize = RecordIndexFormat::kBlockSize;

bool Contains(const Status& s, const std::string& text) {
  return s.ToString().find(text) != std::string::npos;
}

// Reads the index of a file with these bytes.
Status ReadFile(const std::string& bytes, const BlobFileLayoutV2& layout,
                Records* records, uint64_t* num_restored = nullptr,
                Status* first_damage = nullptr) {
  const auto file = OpenBytes(bytes);
  RecordIndexReader reader(file.get(), IOOptions(), layout);
  const Status s = ReadAll(&reader, records);
  if (num_restored != nullptr) {
    *num_restored = reader.NumRestoredBlocks();
  }
  if (first_damage != nullptr) {
    *first_damage = reader.FirstDamage();
  }
  return s;
}

Status ReadMemory(const Slice& index, const BlobFooterV2& footer,
                  uint64_t index_offset, Records* records) {
  RecordIndexReader reader(index, footer, index_offset, "dir/000012.blob");
  return ReadAll(&reader, records);
}

// Properties of the records of a file.
struct Style {
  int num_records;
  uint64_t seqs;   // random below this; 0: in order, 1: reverse
  int birth;       // 0: none, 1: all the same, 2: mixed, 3: in runs
  int value_size;  // random below this
};

void Fill(const Style& style, uint32_t seed, FileMaker* maker) {
  Random64 rnd(seed);
  uint64_t birth = 0;
  for (int i = 0; i < style.num_records; ++i) {
    const uint64_t seq = style.seqs == 0   ? 1000000 + i
                         : style.seqs == 1 ? 1000000 - i
                                           : rnd.Uniform(style.seqs);
    if (style.birth == 1) {
      birth = 4711;
    } else if (style.birth == 2 || (style.birth == 3 && rnd.OneIn(250))) {
      birth = rnd.OneIn(2) ? 0 : rnd.Next();
    }
    const std::string key = "key" + std::to_string(rnd.Next());
    maker->Add(key, std::string(rnd.Uniform(style.value_size), 'v'), seq, birth,
               rnd.OneIn(2));
  }
}

const std::vector<Style>& Styles() {
  static const std::vector<Style> styles = {
      {0, 1 << 20, 0, 10},      {1, uint64_t{1} << 56, 2, 10},
      {3000, 0, 0, 100},        {3000, 1, 1, 100},
      {3000, 1 << 16, 0, 2000}, {2999, uint64_t{1} << 56, 2, 20000},
      {30001, 1 << 27, 3, 300}, {20000, 1 << 20, 2, 2},
  };
  return styles;
}

}  // namespace

class BlobRecordIndexTest : public testing::Test {
 protected:
  static std::string Damaged(std::string bytes, uint64_t at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    return bytes;
  }

  static constexpr uint64_t kU32Max = std::numeric_limits<uint32_t>::max();
};

// BlobLogWriter writes the example of docs/formats.md byte for byte, and it is
// read back.
TEST_F(BlobRecordIndexTest, ExampleOfTheDocsIsCorrect) {
  const std::string name = test::PerThreadDBPath("blob_v2_example.blob");
  FileOptions file_options;
  std::unique_ptr<WritableFileWriter> writer;
  ASSERT_OK(WritableFileWriter::Create(FileSystem::Default(), name,
                                       file_options, &writer, nullptr));
  BlobLogWriter log(std::move(writer), SystemClock::Default().get(), nullptr,
                    12, /*use_fsync=*/false, /*do_flush=*/false);

  BlobHeaderV2 header;
  header.column_family_id = 3;
  header.hash_seed = 0x0123456789abcdefu;
  BlobLogHeader log_header = header.ToLogHeader();
  ASSERT_OK(log.WriteHeader(WriteOptions(), log_header));

  RecordIndexBuilder builder;
  const auto add = [&](const Slice& key, const Slice& value, SequenceNumber seq,
                       bool direct) {
    BlobRecordV2 record;
    record.seq = seq;
    record.direct = direct;
    std::string encoded;
    record.EncodeHeaderTo(key, value, &encoded);
    ASSERT_OK(builder.Add({MapKeyHash::Of(key, header.hash_seed), seq, 0},
                          record.record_size(), direct));
    uint64_t key_offset = 0;
    uint64_t value_offset = 0;
    ASSERT_OK(log.EmitPhysicalRecord(WriteOptions(), encoded, key, value,
                                     &key_offset, &value_offset));
    ASSERT_EQ(value_offset + value.size(), builder.EndOffset());
  };
  add("apple", "red", 300, /*direct=*/true);
  add("pear", "green", 299, /*direct=*/false);
  builder.Finish();
  ASSERT_OK(builder.AppendTo(IOOptions(), log.file()));
  BlobLogFooter log_footer = builder.footer().ToLogFooter();
  ASSERT_OK(log.AppendFooter(WriteOptions(), log_footer, nullptr, nullptr));

  std::string bytes;
  ASSERT_OK(ReadFileToString(Env::Default(), name, &bytes));
  // clang-format off
  const std::string expected =
      // Header.
      "378F2400" "02000000" "03000000" "00" "00"
      "EFCDAB8967452301" "01000000" "DC2A73FD"
      // First record: header, key, value.
      "05000000" "03000000" "012C010000000000" "0000000000000000"
      "E370110B" "A0D1384B" "6170706C65" "726564"
      // Second record.
      "04000000" "05000000" "002B010000000000" "0000000000000000"
      "ED012241" "5417B08A" "70656172" "677265656E"
      // Record index.
      "02" "1E" "01"
      "BAE8E9E645F228E95052693F" "D804" "51"
      "11B20DB481F862EC431F68CC" "01" "52"
      "00" "0DD12148"
      // Footer.
      "378F2400" "0200000000000000" "2500000000000000"
      "B53787CC" "00000000" "6D2A2880";
  // clang-format on
  ASSERT_EQ(Slice(bytes).ToString(/*hex=*/true), expected);

  // Read the file back.
  std::unique_ptr<RandomAccessFileReader> reader;
  ASSERT_OK(RandomAccessFileReader::Create(FileSystem::Default(), name,
                                           file_options, &reader, nullptr));
  BlobFileLayoutV2 layout;
  ASSERT_OK(
      BlobFileLayoutV2::Read(reader.get(), IOOptions(), bytes.size(), &layout));
  RecordIndexReader index(reader.get(), IOOptions(), layout);
  Records records;
  ASSERT_OK(ReadAll(&index, &records));
  ASSERT_EQ(records.size(), 2);
  ASSERT_TRUE(records[0].name.key == MapKeyHash::Of("apple", header.hash_seed));
  ASSERT_EQ(records[0].name.seq, 300);
  ASSERT_EQ(records[0].offset, 30);
  ASSERT_EQ(records[0].size, 40);
  ASSERT_TRUE(records[0].direct);
  ASSERT_TRUE(records[1].name.key == MapKeyHash::Of("pear", header.hash_seed));
  ASSERT_EQ(records[1].name.seq, 299);
  ASSERT_EQ(records[1].offset, 70);
  ASSERT_EQ(records[1].size, 41);
  ASSERT_FALSE(records[1].direct);
  ASSERT_OK(Env::Default()->DeleteFile(name));
}

TEST_F(BlobRecordIndexTest, YieldsTheRecordsThatWereAdded) {
  for (size_t i = 0; i < Styles().size(); ++i) {
    SCOPED_TRACE("style " + std::to_string(i));
    FileMaker maker;
    Fill(Styles()[i], 301, &maker);
    maker.Finish();
    ASSERT_EQ(maker.records().size(), maker.layout().footer.blob_count);
    Records found;
    uint64_t num_restored = 0;
    ASSERT_OK(ReadFile(maker.bytes(), maker.layout(), &found, &num_restored));
    ASSERT_TRUE(SameRecords(maker.records(), found));
    ASSERT_EQ(num_restored, 0);
    ASSERT_OK(ReadMemory(maker.builder().contents(), maker.layout().footer,
                         maker.index_offset(), &found));
    ASSERT_TRUE(SameRecords(maker.records(), found));
  }
}

// EncodedSize() is exact after every record, not only at the end.
TEST_F(BlobRecordIndexTest, EncodedSizeIsExact) {
  for (size_t i = 0; i < Styles().size(); ++i) {
    SCOPED_TRACE("style " + std::to_string(i));
    FileMaker maker;
    Style style = Styles()[i];
    style.num_records = std::min(style.num_records, 700);
    Fill(style, 302, &maker);
    RecordIndexBuilder builder;
    ASSERT_EQ(builder.EncodedSize(), 0);
    for (size_t n = 0; n < maker.records().size(); ++n) {
      const AddressMap::Record& record = maker.records()[n];
      ASSERT_OK(builder.Add(record.name, record.size, record.direct));
      RecordIndexBuilder complete;
      for (size_t j = 0; j <= n; ++j) {
        const AddressMap::Record& earlier = maker.records()[j];
        ASSERT_OK(complete.Add(earlier.name, earlier.size, earlier.direct));
      }
      complete.Finish();
      ASSERT_EQ(builder.EncodedSize(), complete.contents().size());
      ASSERT_EQ(complete.EncodedSize(), complete.contents().size());
      ASSERT_EQ(complete.footer().index_size, complete.contents().size());
      ASSERT_EQ(complete.footer().blob_count, n + 1);
      ASSERT_EQ(builder.EndOffset(), record.offset + record.size);
    }
  }
}

// No block has room for the first record of the next block. A damaged block can
// only be restored because of this.
TEST_F(BlobRecordIndexTest, BlocksAreFull) {
  FileMaker maker;
  Fill({5000, 1 << 27, 2, 300}, 303, &maker);
  maker.Finish();
  const std::string& contents = maker.builder().contents();
  size_t next = 0;
  for (size_t i = 0; i < contents.size(); i += kBlockSize) {
    Slice block(contents.data() + i, std::min(kBlockSize, contents.size() - i));
    uint64_t count = 0;
    uint64_t offset = 0;
    ASSERT_TRUE(GetVarint64(&block, &count));
    ASSERT_TRUE(GetVarint64(&block, &offset));
    ASSERT_EQ(offset, maker.records()[next].offset);
    // Births differ, so each record has its own.
    size_t used = VarintLength(count) + VarintLength(offset) + 1 + 4;
    SequenceNumber seq = 0;
    const auto add = [&](const AddressMap::Record& record) {
      const int64_t change = static_cast<int64_t>(record.name.seq - seq);
      used += 12 + VarintLength(i64ToZigzag(change)) +
              VarintLength(uint64_t{record.size} * 2) +
              VarintLength(record.name.birth);
      seq = record.name.seq;
    };
    for (uint64_t j = 0; j < count; ++j) {
      add(maker.records()[next++]);
    }
    if (i + kBlockSize < contents.size()) {
      ASSERT_LE(used, kBlockSize);
      add(maker.records()[next]);
      ASSERT_GT(used, kBlockSize);
    } else {
      ASSERT_EQ(used, contents.size() - i);
    }
  }
  ASSERT_EQ(next, maker.records().size());
}

TEST_F(BlobRecordIndexTest, TakesFewBytesPerRecord) {
  // The number of records is that of a flush of 64 MiB with values of 1 KiB;
  // the last case is a file of a compaction.
  const auto bytes_per_record = [](uint64_t seqs, uint64_t birth) {
    Random64 rnd(1);
    RecordIndexBuilder builder;
    constexpr uint64_t kRecords = 61000;
    for (uint64_t i = 0; i < kRecords; ++i) {
      const MapName name{{rnd.Next(), 0}, 1000000 + rnd.Uniform(seqs), birth};
      EXPECT_OK(builder.Add(name, 1072, true));
    }
    return static_cast<double>(builder.EncodedSize()) / kRecords;
  };
  EXPECT_LT(bytes_per_record(61000, 0), 17.2);
  EXPECT_LT(bytes_per_record(1 << 27, 0), 18.2);
  EXPECT_LT(bytes_per_record(1 << 27, 1234567), 18.2);
}

TEST_F(BlobRecordIndexTest, BatchesAreBounded) {
  FileMaker maker;
  Fill({20000, 1 << 16, 0, 2}, 304, &maker);
  maker.Finish();
  std::unique_ptr<BytesFile> bytes(new BytesFile(maker.bytes()));
  const BytesFile* const counter = bytes.get();
  const RandomAccessFileReader file(std::move(bytes), "f");
  RecordIndexReader reader(&file, IOOptions(), maker.layout());
  Records some;
  size_t all = 0;
  do {
    ASSERT_OK(reader.Next(&some));
    ASSERT_LE(some.size(), RecordIndexReader::kMaxRecords);
    all += some.size();
    // A batch has more than one block, except the last batch.
    ASSERT_TRUE(some.size() > 600 || all == 20000);
  } while (!some.empty());
  ASSERT_EQ(all, 20000);
  ASSERT_OK(reader.Next(&some));
  ASSERT_TRUE(some.empty());
  ASSERT_GT(maker.index_size(), 256 << 10);
  ASSERT_EQ(counter->longest_read(), 256 << 10);
}

TEST_F(BlobRecordIndexTest, RejectsRecordsBeyondTheLimits) {
  RecordIndexBuilder builder;
  const MapName name{{1, 2}, 3, 4};
  ASSERT_TRUE(builder.Add(name, 31, true).IsInvalidArgument());
  ASSERT_TRUE(builder.Add(name, kU32Max + 1, true).IsInvalidArgument());
  MapName bad = name;
  bad.seq = kMaxSequenceNumber + 1;
  ASSERT_TRUE(builder.Add(bad, 32, true).IsInvalidArgument());
  ASSERT_EQ(builder.EncodedSize(), 0);
  ASSERT_EQ(builder.NumRecords(), 0);
  ASSERT_EQ(builder.EndOffset(), 30);
  ASSERT_FALSE(builder.ShouldClose());

  ASSERT_OK(builder.Add(name, kU32Max - 30, false));
  ASSERT_EQ(builder.EndOffset(), kU32Max);
  ASSERT_FALSE(builder.ShouldClose());
  // This is the last offset at which a record may start, and the longest
  // record.
  ASSERT_OK(builder.Add(name, kU32Max, true));
  ASSERT_TRUE(builder.ShouldClose());
  ASSERT_TRUE(builder.Add(name, 32, true).IsInvalidArgument());
  ASSERT_EQ(builder.NumRecords(), 2);
  builder.Finish();
  Records records;
  ASSERT_OK(ReadMemory(builder.contents(), builder.footer(),
                       builder.EndOffset(), &records));
  ASSERT_EQ(records.size(), 2);
  ASSERT_EQ(records[1].offset, kU32Max);
  ASSERT_EQ(records[1].size, kU32Max);
}

TEST_F(BlobRecordIndexTest, ClosesWhenTheIndexIsLarge) {
  Random64 rnd(1);
  RecordIndexBuilder builder;
  while (!builder.ShouldClose()) {
    // The names compress badly, so the index reaches its limit before the
    // records reach 4 GiB.
    const MapName name{{rnd.Next(), 0}, rnd.Next() >> 8, rnd.Next()};
    ASSERT_OK(builder.Add(name, 32, true));
  }
  constexpr uint64_t kMax = RecordIndexBuilder::kMaxEncodedSize;
  ASSERT_GE(builder.EncodedSize(), kMax);
  ASSERT_LT(builder.EncodedSize(), kMax + 50);
}

// ---- Damage.

TEST_F(BlobRecordIndexTest, DamagedBlocksAreRestored) {
  for (size_t i = 1; i < Styles().size(); ++i) {
    SCOPED_TRACE("style " + std::to_string(i));
    FileMaker maker;
    Fill(Styles()[i], 305, &maker);
    maker.Finish();
    const uint64_t index_size = maker.index_size();
    const uint64_t num_blocks = (index_size + kBlockSize - 1) / kBlockSize;
    Random rnd(301);
    Records found;
    uint64_t num_restored = 0;
    Status first;

    for (uint64_t block = 0; block < num_blocks; ++block) {
      const uint64_t begin = block * kBlockSize;
      const uint64_t size = std::min<uint64_t>(kBlockSize, index_size - begin);
      const uint64_t at = begin + rnd.Uniform(static_cast<int>(size));
      ASSERT_OK(ReadFile(Damaged(maker.bytes(), maker.index_offset() + at),
                         maker.layout(), &found, &num_restored, &first));
      ASSERT_TRUE(SameRecords(maker.records(), found));
      ASSERT_EQ(num_restored, 1);
      ASSERT_TRUE(
          Contains(first, "000012.blob at offset " +
                              std::to_string(maker.index_offset() + begin) +
                              ": record index: checksum mismatch"))
          << first.ToString();
    }

    std::string bytes = maker.bytes();
    bytes.replace(maker.index_offset(), index_size, index_size, '\xff');
    ASSERT_OK(ReadFile(bytes, maker.layout(), &found, &num_restored));
    ASSERT_TRUE(SameRecords(maker.records(), found));
    ASSERT_EQ(num_restored, num_blocks);
  }
}

TEST_F(BlobRecordIndexTest, DamageInMemoryIsCorruption) {
  FileMaker maker;
  Fill({1000, 1 << 20, 2, 10}, 306, &maker);
  maker.Finish();
  const std::string& contents = maker.builder().contents();
  const BlobFooterV2& footer = maker.layout().footer;
  Records found;
  for (size_t at = 0; at < contents.size(); at += 7) {
    const Status s =
        ReadMemory(Damaged(contents, at), footer, maker.index_offset(), &found);
    ASSERT_TRUE(s.IsCorruption());
    ASSERT_TRUE(Contains(s, "000012.blob at offset ")) << s.ToString();
  }
  const Slice shorter(contents.data(), contents.size() - 1);
  ASSERT_TRUE(
      ReadMemory(shorter, footer, maker.index_offset(), &found).IsCorruption());
  ASSERT_TRUE(found.empty());
}

TEST_F(BlobRecordIndexTest, DamageOfIndexAndRecordsIsCorruption) {
  FileMaker maker;
  Fill({1000, 1 << 20, 0, 100}, 307, &maker);
  maker.Finish();
  const AddressMap::Record& record = maker.records()[100];
  const std::string bad_index = Damaged(maker.bytes(), maker.index_offset());
  Records found;

  Status s =
      ReadFile(Damaged(bad_index, record.offset + 10), maker.layout(), &found);
  ASSERT_TRUE(s.IsCorruption());
  ASSERT_TRUE(found.empty());
  ASSERT_TRUE(Contains(s, "at offset " + std::to_string(maker.index_offset()) +
                              ": record index: checksum mismatch"))
      << s.ToString();
  ASSERT_TRUE(Contains(s,
                       "cannot be restored: Blob file dir/000012.blob at "
                       "offset " +
                           std::to_string(record.offset)))
      << s.ToString();

  // The checksum of the index is the only checksum that is verified here and
  // covers the key.
  s = ReadFile(Damaged(bad_index, record.offset + 32), maker.layout(), &found);
  ASSERT_TRUE(s.IsCorruption());
  ASSERT_TRUE(Contains(s, "does not match the footer")) << s.ToString();

  // Damage in a record of another block, or in a value, does not matter.
  ASSERT_OK(ReadFile(Damaged(bad_index, maker.records()[999].offset + 10),
                     maker.layout(), &found));
  ASSERT_TRUE(SameRecords(maker.records(), found));
  ASSERT_OK(ReadFile(Damaged(bad_index, record.offset + record.size - 1),
                     maker.layout(), &found));
  ASSERT_TRUE(SameRecords(maker.records(), found));

  // The header has another seed, as if the disk had returned the header of
  // another file.
  BlobFileLayoutV2 other_seed = maker.layout();
  other_seed.header.hash_seed ^= 1;
  ASSERT_OK(ReadFile(maker.bytes(), other_seed, &found));
  ASSERT_TRUE(ReadFile(bad_index, other_seed, &found).IsCorruption());
}

// The records are intact and end where the index begins, but there are fewer or
// more of them than the damaged block has listed.
TEST_F(BlobRecordIndexTest, RestoredBlockEndsWhereItsRecordsDo) {
  constexpr size_t kRecordHeader = BlobRecordV2::kHeaderSize;
  FileMaker maker;
  FileMaker longer;
  FileMaker shorter;
  for (int i = 0; i < 60; ++i) {
    // The records of the second file are twice as long as those of the first
    // one, and those of the third one are half as long.
    constexpr size_t kSize = 200;
    const std::string key = std::to_string(1000 + i);
    maker.Add(key, std::string(kSize - kRecordHeader - 4, 'v'), 1, 0, true);
    if (i % 2 == 0) {
      longer.Add(key, std::string(2 * kSize - kRecordHeader - 4, 'v'), 1, 0,
                 true);
    }
    for (const char* half : {"a", "b"}) {
      shorter.Add(key + half, std::string(kSize / 2 - kRecordHeader - 5, 'v'),
                  1, 0, true);
    }
  }
  for (FileMaker* file : {&maker, &longer, &shorter}) {
    file->Finish();
    ASSERT_EQ(file->index_offset(), maker.index_offset());
  }
  const uint64_t index = maker.index_offset();
  for (const FileMaker* other : {&longer, &shorter}) {
    Records found;
    const Status s = ReadFile(other->bytes().substr(0, index) +
                                  Damaged(maker.bytes(), index).substr(index),
                              maker.layout(), &found);
    EXPECT_TRUE(s.IsCorruption());
    EXPECT_TRUE(Contains(s, "block does not end where its records do"))
        << s.ToString();
    EXPECT_TRUE(found.empty());
  }
}

// A block that is intact but belongs to another position or file is detected.
TEST_F(BlobRecordIndexTest, MisplacedBlocksAreDetected) {
  FileMaker maker;
  FileMaker other;
  for (int i = 0; i < 2000; ++i) {
    const std::string key = "key" + std::to_string(100000 + i);
    maker.Add(key, std::string(100, 'a'), 1, 0, true);
    other.Add("not" + key, std::string(97, 'b'), 1, 0, true);
  }
  maker.Finish();
  other.Finish();
  ASSERT_EQ(maker.index_size(), other.index_size());
  const uint64_t index = maker.index_offset();
  Records found;
  uint64_t num_restored = 0;

  std::string swapped = maker.bytes();
  swapped.replace(index + kBlockSize, kBlockSize,
                  maker.bytes().substr(index + 2 * kBlockSize, kBlockSize));
  Status first;
  ASSERT_OK(ReadFile(swapped, maker.layout(), &found, &num_restored, &first));
  ASSERT_TRUE(SameRecords(maker.records(), found));
  ASSERT_EQ(num_restored, 1);
  ASSERT_TRUE(Contains(first, "first record does not follow"))
      << first.ToString();

  std::string mixed = maker.bytes();
  mixed.replace(index + kBlockSize, kBlockSize,
                other.bytes().substr(index + kBlockSize, kBlockSize));
  const Status s = ReadFile(mixed, maker.layout(), &found);
  ASSERT_TRUE(s.IsCorruption());
  ASSERT_TRUE(Contains(s, "does not match the footer")) << s.ToString();
}

TEST_F(BlobRecordIndexTest, FooterMustMatch) {
  FileMaker maker;
  Fill({1000, 1 << 20, 0, 100}, 308, &maker);
  maker.Finish();
  Records found;
  const auto read = [&](const BlobFooterV2& footer, uint64_t index_offset) {
    return ReadMemory(maker.builder().contents(), footer, index_offset, &found);
  };
  const BlobFooterV2& right = maker.layout().footer;
  const uint64_t end = maker.index_offset();
  ASSERT_OK(read(right, end));

  BlobFooterV2 wrong = right;
  wrong.blob_count++;
  ASSERT_TRUE(Contains(read(wrong, end), "another number of records"));
  wrong.blob_count -= 2;
  ASSERT_TRUE(Contains(read(wrong, end), "another number of records"));
  wrong = right;
  wrong.index_checksum ^= 1;
  ASSERT_TRUE(Contains(read(wrong, end), "does not match the footer"));
  ASSERT_TRUE(Contains(read(right, end + 1), "does not cover all records"));
  ASSERT_TRUE(Contains(read(right, end - 1), "record outside"));
  ASSERT_TRUE(Contains(read(right, 0), "record outside"));

  // The footer has a wrong index size.
  const BlobFileLayoutV2& layout = maker.layout();
  for (const int change : {-1, 1, -4096, 4096}) {
    BlobFileLayoutV2 resized = layout;
    resized.footer.index_size += change;
    ASSERT_TRUE(ReadFile(maker.bytes(), resized, &found).IsCorruption())
        << change;
  }
  BlobFileLayoutV2 huge = layout;
  huge.footer.index_size = uint64_t{1} << 62;
  ASSERT_TRUE(ReadFile(maker.bytes(), huge, &found).IsCorruption());
}

// Blocks with correct checksums that no builder could write are rejected.
TEST_F(BlobRecordIndexTest, ImpossibleBlocksAreRejected) {
  struct Entry {
    int64_t seq_change = 5;
    uint64_t size_and_mode = 100 << 1;
  };
  struct Block {
    uint64_t count = 2;
    uint64_t offset = 30;
    char flags = 1;
    std::vector<Entry> entries = {Entry(), Entry()};
    std::vector<uint64_t> births = {0};
    std::string tail;
    uint64_t index_offset = 230;
    uint64_t blob_count = 2;
  };
  const auto read = [&](const Block& block) {
    std::string bytes;
    PutVarint64(&bytes, block.count);
    PutVarint64(&bytes, block.offset);
    bytes.push_back(block.flags);
    for (const Entry& entry : block.entries) {
      bytes.append(12, 'h');
      PutVarint64(&bytes, i64ToZigzag(entry.seq_change));
      PutVarint64(&bytes, entry.size_and_mode);
    }
    for (const uint64_t birth : block.births) {
      PutVarint64(&bytes, birth);
    }
    bytes += block.tail;
    PutFixed32(&bytes, crc32c::Mask(crc32c::Value(bytes.data(), bytes.size())));
    const char* const trailer = bytes.data() + bytes.size() - 4;
    BlobFooterV2 footer;
    footer.blob_count = block.blob_count;
    footer.index_size = bytes.size();
    footer.index_checksum = crc32c::Mask(crc32c::Value(trailer, 4));
    Records found;
    const Status s = ReadMemory(bytes, footer, block.index_offset, &found);
    EXPECT_EQ(found.size(), s.ok() ? 2 : 0);
    return s;
  };
  const auto expect = [&](const char* message, auto change) {
    Block block;
    change(&block);
    const Status s = read(block);
    EXPECT_TRUE(s.IsCorruption());
    EXPECT_TRUE(Contains(s, message)) << s.ToString() << " not " << message;
  };
  ASSERT_OK(read(Block()));
  Block two_births;
  two_births.flags = 0;
  two_births.births = {1, 2};
  ASSERT_OK(read(two_births));

  const char* const number = "impossible number of records";
  expect(number, [](Block* b) { b->count = 0; });
  expect(number, [](Block* b) { b->count = 1000; });
  expect(number, [](Block* b) { b->count = ~uint64_t{0}; });
  expect("birth missing", [](Block* b) { b->births.clear(); });
  expect("birth missing", [](Block* b) { b->flags = 0; });
  expect("entry too short", [](Block* b) {
    b->entries.pop_back();
    b->entries[0].seq_change = int64_t{1} << 50;
    b->tail.assign(11, '\0');
  });
  expect("entry too short", [](Block* b) {
    b->entries.pop_back();
    b->births.clear();
    b->tail = "123456789012\xff\xff";
  });
  const char* const unknown_data = "unknown data behind";
  expect(unknown_data, [](Block* b) { b->tail.assign(1, '\0'); });
  expect(unknown_data, [](Block* b) { b->count = 1; });
  expect("unknown flags", [](Block* b) { b->flags = 2; });
  expect("does not follow", [](Block* b) { b->offset = 29; });
  expect("does not follow", [](Block* b) { b->offset = 31; });

  const char* const seq = "impossible sequence number";
  expect(seq, [](Block* b) { b->entries[0].seq_change = -1; });
  expect(seq, [](Block* b) { b->entries[1].seq_change = -6; });
  expect(seq, [](Block* b) {
    b->entries[1].seq_change = static_cast<int64_t>(kMaxSequenceNumber) - 4;
  });
  expect(seq, [](Block* b) {
    b->entries[1].seq_change = std::numeric_limits<int64_t>::min();
  });
  expect(seq, [](Block* b) {
    b->entries[0].seq_change = static_cast<int64_t>(kMaxSequenceNumber);
    b->entries[1].seq_change = std::numeric_limits<int64_t>::max();
  });

  const char* const outside = "record outside";
  expect(outside, [](Block* b) { b->entries[1].size_and_mode = 31 << 1; });
  expect(outside, [](Block* b) { b->entries[1].size_and_mode = 0; });
  expect(outside, [](Block* b) { b->entries[1].size_and_mode = 101 << 1; });
  expect(outside, [](Block* b) { b->entries[1].size_and_mode = ~uint64_t{0}; });
  expect(outside, [](Block* b) {
    b->index_offset = ~uint64_t{0};
    b->entries[0].size_and_mode = uint64_t{1} << 33;
  });
  expect(outside, [](Block* b) {
    b->index_offset = ~uint64_t{0};
    b->entries[0].size_and_mode = uint64_t{kU32Max} << 1;
  });
  expect("does not cover",
         [](Block* b) { b->entries[1].size_and_mode = 99 << 1; });
  expect("another number", [](Block* b) { b->blob_count = 1; });
}

// The padding of every block must be zero, not only that of the last block.
TEST_F(BlobRecordIndexTest, PaddingMustBeZero) {
  FileMaker maker;
  Fill({1000, 1 << 20, 2, 100}, 309, &maker);
  maker.Finish();
  std::string contents = maker.builder().contents();
  uint32_t checksum = 0;
  bool padded = false;
  for (size_t i = 0; i < contents.size(); i += kBlockSize) {
    const size_t size = std::min(kBlockSize, contents.size() - i) - 4;
    char* const block = contents.data() + i;
    if (i == kBlockSize && block[size - 1] == 0) {
      block[size - 1] = 1;
      padded = true;
    }
    EncodeFixed32(block + size, crc32c::Mask(crc32c::Value(block, size)));
    checksum = crc32c::Extend(checksum, block + size, 4);
  }
  ASSERT_TRUE(padded);
  BlobFooterV2 footer = maker.layout().footer;
  footer.index_checksum = crc32c::Mask(checksum);
  Records found;
  const Status s = ReadMemory(contents, footer, maker.index_offset(), &found);
  ASSERT_TRUE(Contains(s, "unknown data behind")) << s.ToString();

  // In a file, wrong padding is restored like other damage.
  std::string bytes = maker.bytes();
  bytes.replace(maker.index_offset(), contents.size(), contents);
  uint64_t num_restored = 0;
  ASSERT_OK(ReadFile(bytes, maker.layout(), &found, &num_restored));
  ASSERT_TRUE(SameRecords(maker.records(), found));
  ASSERT_EQ(num_restored, 1);
}

TEST_F(BlobRecordIndexTest, IOErrorsAreNotCorruption) {
  FileMaker maker;
  Fill({40000, 1 << 20, 0, 20}, 310, &maker);
  maker.Finish();
  ASSERT_GT(maker.index_size(), 512 << 10);
  const std::string bad_index =
      Damaged(maker.bytes(), maker.index_offset() + 5000);
  for (const bool damaged : {false, true}) {
    for (const int reads : {0, 1, 2}) {
      std::unique_ptr<BytesFile> bytes(
          new BytesFile(damaged ? bad_index : maker.bytes()));
      BytesFile* const control = bytes.get();
      control->FailAfter(reads);
      const RandomAccessFileReader file(std::move(bytes), "f");
      RecordIndexReader reader(&file, IOOptions(), maker.layout());
      Records found;
      Status s = ReadAll(&reader, &found);
      ASSERT_TRUE(s.IsIOError()) << s.ToString();
      ASSERT_LT(found.size(), maker.records().size());
      // The status is final.
      control->FailAfter(-1);
      s = reader.Next(&found);
      ASSERT_TRUE(s.IsIOError());
      ASSERT_TRUE(found.empty());
    }
  }
}

// The index is read with buffered, mmap and direct reads. With mmap, the result
// is not in the buffer of the reader.
TEST_F(BlobRecordIndexTest, ReadsWithBufferedMmapAndDirectIO) {
  FileMaker maker;
  Fill({10000, 1 << 20, 2, 200}, 313, &maker);
  maker.Finish();
  const std::string name = test::PerThreadDBPath("blob_v2_modes.blob");
  const std::string bytes =
      Damaged(maker.bytes(), maker.index_offset() + 3 * kBlockSize);
  ASSERT_OK(WriteStringToFile(Env::Default(), bytes, name));
  for (const int mode : {0, 1, 2}) {
    SCOPED_TRACE("mode " + std::to_string(mode));
    FileOptions options;
    options.use_mmap_reads = mode == 1;
    options.use_direct_reads = mode == 2;
    std::unique_ptr<RandomAccessFileReader> file;
    const IOStatus opened = RandomAccessFileReader::Create(
        FileSystem::Default(), name, options, &file, nullptr);
    if (mode == 2 && !opened.ok()) {
      continue;  // tmpfs
    }
    ASSERT_OK(opened);
    BlobFileLayoutV2 layout;
    ASSERT_OK(
        BlobFileLayoutV2::Read(file.get(), IOOptions(), bytes.size(), &layout));
    RecordIndexReader reader(file.get(), IOOptions(), layout);
    Records found;
    ASSERT_OK(ReadAll(&reader, &found));
    ASSERT_TRUE(SameRecords(maker.records(), found));
    ASSERT_EQ(reader.NumRestoredBlocks(), 1);
  }
  ASSERT_OK(Env::Default()->DeleteFile(name));
}

// ---- Random input.

TEST_F(BlobRecordIndexTest, RandomInputPassesTheFuzzer) {
  Random rnd(301);
  for (int i = 0; i < 4000; ++i) {
    std::string input = rnd.RandomBinaryString(rnd.Uniform(400));
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()),
                           input.size());
  }
}

TEST_F(BlobRecordIndexTest, MutatedInputPassesTheFuzzer) {
  std::vector<std::string> corpus;
  FileMaker maker;
  Fill({20, 1 << 20, 2, 50}, 311, &maker);
  maker.Finish();
  const std::string& bytes = maker.bytes();
  corpus.push_back(std::string(1, 0) + bytes.substr(0, 30));
  corpus.push_back(std::string(1, 0) + bytes.substr(30, 32));
  corpus.push_back(std::string(1, 0) + bytes.substr(bytes.size() - 32));
  corpus.push_back(std::string(1, 0) + bytes);
  corpus.push_back(std::string(1, 3) + std::string(1, 0) +
                   bytes.substr(30, maker.index_offset() - 30));
  for (const int num_records : {20, 600}) {
    FileMaker indexed;
    Fill({num_records, 1 << 20, 2, 50}, 312, &indexed);
    indexed.Finish();
    std::string input(1, 1);
    input += std::string(2, 0);  // number of records, checksum
    input.push_back(4);          // length of the index offset
    for (int shift = 24; shift >= 0; shift -= 8) {
      input.push_back(static_cast<char>(indexed.index_offset() >> shift));
    }
    input.push_back(1);  // repair the footer
    corpus.push_back(input + indexed.builder().contents());
  }
  for (const char how : {0, 1, 3}) {
    std::string input(1, 2);
    input.push_back(80);  // 640 records
    input += std::string("\x02\x7f\x11\x01\x09\x04 abc", 9);
    input.push_back(how);
    corpus.push_back(input + std::string("\x02\x13\x57\x10", 4));
  }

  Random rnd(302);
  for (int i = 0; i < 10000; ++i) {
    std::string input = corpus[i % corpus.size()];
    for (int changes = rnd.Uniform(4); changes > 0; --changes) {
      const size_t at = 1 + rnd.Uniform(static_cast<int>(input.size()) - 1);
      input[at] = static_cast<char>(
          rnd.OneIn(2) ? rnd.Next() : input[at] ^ 1 << rnd.Uniform(8));
    }
    if (rnd.OneIn(8)) {
      input.resize(1 + rnd.Uniform(static_cast<int>(input.size())));
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()),
                           input.size());
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
