//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_record_walker.h"

#include <string>
#include <vector>

#include "db/blob_v2/blob_file_v2_test_util.h"
#include "db/blob_v2/blob_format_v2.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using blob_v2_test::BytesFile;
using blob_v2_test::FileMaker;
using blob_v2_test::OpenBytes;
using blob_v2_test::SameRecord;

class BlobRecordWalkerTest : public testing::Test {
 protected:
  // Reads the records of `bytes` between the offsets.
  static Status Walk(const std::string& bytes, uint64_t offset, uint64_t end,
                     std::vector<AddressMap::Record>* records,
                     uint64_t seed = 1234) {
    const auto file = OpenBytes(bytes);
    BlobRecordWalker walker(file.get(), IOOptions(), seed, offset, end);
    records->clear();
    while (!walker.AtEnd()) {
      AddressMap::Record record;
      const Status s = walker.Next(&record);
      if (!s.ok()) {
        return s;
      }
      records->push_back(record);
    }
    return Status::OK();
  }
};

TEST_F(BlobRecordWalkerTest, FindsAllRecords) {
  Random rnd(301);
  FileMaker maker;
  std::vector<std::string> keys;
  for (int i = 0; i < 500; ++i) {
    // Some keys and values are longer than the walker's buffer.
    const int key_size = rnd.OneIn(50) ? rnd.Uniform(80000) : rnd.Uniform(40);
    const int value_size =
        rnd.OneIn(20) ? rnd.Uniform(100000) : rnd.Uniform(2000);
    keys.push_back(rnd.RandomBinaryString(key_size));
    maker.Add(keys.back(), rnd.RandomBinaryString(value_size), rnd.Next(),
              rnd.OneIn(2) ? 0 : rnd.Next(), rnd.OneIn(2));
  }
  maker.Finish();

  const auto file = OpenBytes(maker.bytes());
  // Start at the first record and at several other ones.
  for (size_t first = 0; first < keys.size(); first += 1 + first * 3) {
    BlobRecordWalker walker(file.get(), IOOptions(), 1234,
                            maker.records()[first].offset,
                            maker.index_offset());
    for (size_t i = first; i < keys.size(); ++i) {
      ASSERT_FALSE(walker.AtEnd());
      AddressMap::Record record;
      ASSERT_OK(walker.Next(&record));
      ASSERT_TRUE(SameRecord(record, maker.records()[i])) << i;
      ASSERT_EQ(walker.key(), keys[i]);
    }
    ASSERT_TRUE(walker.AtEnd());
  }
}

TEST_F(BlobRecordWalkerTest, HashesWithTheGivenSeed) {
  FileMaker maker(1);
  maker.Add("key", "value", 7, 3, false);
  maker.Finish();
  std::vector<AddressMap::Record> records;
  ASSERT_OK(Walk(maker.bytes(), 30, maker.index_offset(), &records, 2));
  ASSERT_EQ(records.size(), 1);
  ASSERT_TRUE(records[0].name.key == MapKeyHash::Of("key", 2));
  ASSERT_FALSE(records[0].name.key == maker.records()[0].name.key);
}

TEST_F(BlobRecordWalkerTest, DoesNotReadLongValues) {
  FileMaker maker;
  maker.Add("a", std::string(1 << 20, 'x'), 2, 0, true);
  maker.Add("b", std::string(1 << 20, 'y'), 1, 0, true);
  maker.Finish();
  std::unique_ptr<BytesFile> bytes(new BytesFile(maker.bytes()));
  const BytesFile* const counter = bytes.get();
  const RandomAccessFileReader file(std::move(bytes), "f");
  BlobRecordWalker walker(&file, IOOptions(), 1234, 30, maker.index_offset());
  AddressMap::Record record;
  ASSERT_OK(walker.Next(&record));
  ASSERT_OK(walker.Next(&record));
  ASSERT_TRUE(walker.AtEnd());
  ASSERT_LE(counter->longest_read(), 32 << 10);
}

TEST_F(BlobRecordWalkerTest, DamagedHeadersAndCutFilesAreCorruption) {
  FileMaker maker;
  for (int i = 0; i < 3; ++i) {
    maker.Add("key", std::string(50, 'v'), i, 0, true);
  }
  maker.Finish();
  const uint64_t end = maker.index_offset();
  const uint64_t third = maker.records()[2].offset;
  std::vector<AddressMap::Record> records;

  std::string damaged = maker.bytes();
  damaged[third + 9] ^= 4;
  Status s = Walk(damaged, 30, end, &records);
  ASSERT_TRUE(s.IsCorruption());
  ASSERT_EQ(records.size(), 2);
  ASSERT_NE(
      s.ToString().find("dir/000012.blob at offset " + std::to_string(third) +
                        ": record header: checksum mismatch"),
      std::string::npos)
      << s.ToString();

  // The end lies between records, in a header, in a key or in a value.
  for (uint64_t cut = third; cut < end; ++cut) {
    s = Walk(maker.bytes(), 30, cut, &records);
    ASSERT_EQ(records.size(), 2);
    ASSERT_EQ(s.IsCorruption(), cut > third) << cut;
    // The file ends at `cut`, but the caller passes the old end.
    s = Walk(maker.bytes().substr(0, cut), 30, end, &records);
    ASSERT_TRUE(s.IsCorruption()) << cut;
  }
  ASSERT_TRUE(Walk(maker.bytes(), 31, end, &records).IsCorruption());
  ASSERT_TRUE(Walk(maker.bytes(), end + 1, end, &records).IsCorruption());
}

// If an intact header says that the key exceeds the end of the records, the
// walker reports this instead of allocating memory for the key.
TEST_F(BlobRecordWalkerTest, HugeKeyIsNotAllocated) {
  FileMaker maker;
  maker.Add(std::string(200, 'k'), "v", 1, 0, true);
  maker.Finish();
  std::vector<AddressMap::Record> records;
  const Status s = Walk(maker.bytes(), 30, 30 + 32 + 200, &records);
  ASSERT_TRUE(s.IsCorruption());
  ASSERT_NE(s.ToString().find("record exceeds"), std::string::npos)
      << s.ToString();
}

TEST_F(BlobRecordWalkerTest, NoRecordStartsAbove4GiB) {
  const std::string bytes(100, '\0');
  std::vector<AddressMap::Record> records;
  const uint64_t offset = uint64_t{1} << 32;
  const Status s = Walk(bytes, offset, offset + 100, &records);
  ASSERT_TRUE(s.IsCorruption());
  ASSERT_NE(s.ToString().find("4 GiB"), std::string::npos) << s.ToString();
}

TEST_F(BlobRecordWalkerTest, GoesOnAfterAnIOError) {
  Random rnd(302);
  FileMaker maker;
  for (int i = 0; i < 300; ++i) {
    maker.Add(rnd.RandomBinaryString(rnd.Uniform(5000)),
              rnd.RandomBinaryString(rnd.Uniform(5000)), rnd.Next(), 0, true);
  }
  maker.Finish();
  std::unique_ptr<BytesFile> bytes(new BytesFile(maker.bytes()));
  BytesFile* const control = bytes.get();
  const RandomAccessFileReader file(std::move(bytes), "f");
  BlobRecordWalker walker(&file, IOOptions(), 1234, 30, maker.index_offset());
  int errors = 0;
  for (const AddressMap::Record& expected : maker.records()) {
    AddressMap::Record record;
    control->FailAfter(0);
    Status s = walker.Next(&record);
    if (!s.ok()) {
      ASSERT_TRUE(s.IsIOError());
      ++errors;
      control->FailAfter(rnd.Uniform(2));
      s = walker.Next(&record);
    }
    if (!s.ok()) {
      control->FailAfter(-1);
      s = walker.Next(&record);
    }
    ASSERT_OK(s);
    ASSERT_TRUE(SameRecord(record, expected));
  }
  ASSERT_TRUE(walker.AtEnd());
  ASSERT_GT(errors, 10);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
