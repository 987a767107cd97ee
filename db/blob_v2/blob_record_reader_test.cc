//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_record_reader.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "db/address_map/mapped_record_name.h"
#include "db/blob_v2/blob_format_v2.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class BlobRecordReaderTest : public testing::Test {
 protected:
  static constexpr SequenceNumber kSeq = 77;
  static constexpr uint64_t kBirth = 12;

  static std::string NameOf(const std::string& key, SequenceNumber seq = kSeq,
                            uint64_t birth = kBirth) {
    std::string name;
    MappedRecordName::Encode(key, seq, birth, &name);
    return name;
  }

  // Returns the bytes of a record.
  static std::string Encode(const std::string& key, const std::string& value) {
    BlobRecordV2 record;
    record.seq = kSeq;
    record.birth = kBirth;
    std::string encoded;
    record.EncodeHeaderTo(key, value, &encoded);
    return encoded + key + value;
  }

  static bool Contains(const Status& s, const std::string& text) {
    return s.ToString().find(text) != std::string::npos;
  }
};

TEST_F(BlobRecordReaderTest, HeaderMustHaveTheColumnFamily) {
  BlobHeaderV2 header;
  header.column_family_id = 3;
  header.compression = kZSTD;
  std::string encoded;
  header.EncodeTo(&encoded);
  CompressionType compression = kNoCompression;
  ASSERT_OK(BlobRecordReader::ReadHeader(encoded, 3, &compression));
  EXPECT_EQ(compression, kZSTD);
  EXPECT_TRUE(
      BlobRecordReader::ReadHeader(encoded, 4, &compression).IsCorruption());
  encoded[20] ^= 1;
  EXPECT_TRUE(
      BlobRecordReader::ReadHeader(encoded, 3, &compression).IsCorruption());
}

// Offsets behind the last record are invalid, although the file has the record
// index there.
TEST_F(BlobRecordReaderTest, FooterTakesTheRecordIndexOffTheFile) {
  constexpr uint64_t kEnds = BlobHeaderV2::kSize + BlobFooterV2::kSize;
  BlobFooterV2 footer;
  footer.blob_count = 5;
  footer.index_size = 100;
  std::string encoded;
  footer.EncodeTo(&encoded);
  uint64_t file_size = 1000;
  ASSERT_OK(BlobRecordReader::ReadFooter(encoded, &file_size));
  EXPECT_EQ(file_size, 900u);
  file_size = kEnds + 100;  // no records
  ASSERT_OK(BlobRecordReader::ReadFooter(encoded, &file_size));
  EXPECT_EQ(file_size, kEnds);
  file_size = kEnds + 99;
  const Status s = BlobRecordReader::ReadFooter(encoded, &file_size);
  EXPECT_TRUE(s.IsCorruption() && Contains(s, "larger than the file"))
      << s.ToString();
  encoded[10] ^= 1;
  file_size = 1000;
  EXPECT_TRUE(BlobRecordReader::ReadFooter(encoded, &file_size).IsCorruption());
}

TEST_F(BlobRecordReaderTest, KeySizeIsThatOfTheUserKey) {
  EXPECT_EQ(BlobRecordReader::KeySize(NameOf("")), 0u);
  EXPECT_EQ(BlobRecordReader::KeySize(NameOf("key")), 3u);
  EXPECT_EQ(BlobRecordReader::KeySize("short"), 0u);
}

// Each part of the name is compared by itself: here, the record has all other
// parts.
TEST_F(BlobRecordReaderTest, RecordMustHaveTheNameAndTheSize) {
  const std::string record = Encode("key", "value");
  const auto verify = [&](const std::string& name, uint64_t value_size = 5) {
    return BlobRecordReader::Verify(record, name, value_size,
                                    /*verify_value=*/true);
  };
  ASSERT_OK(verify(NameOf("key")));
  for (const Status& s :
       {verify(NameOf("kez")), verify(NameOf("key", kSeq + 1)),
        verify(NameOf("key", kSeq - 1)), verify(NameOf("key", kSeq, 0)),
        verify(NameOf("key", kSeq, kBirth + 1)), verify(NameOf("ke")),
        verify(NameOf("keyv")), verify(NameOf("key"), 4),
        verify(NameOf("key"), 6)}) {
    EXPECT_TRUE(s.IsCorruption() && Contains(s, "is not the requested one"))
        << s.ToString();
  }
  EXPECT_TRUE(Contains(verify("short"), "name of the requested record"));
}

// The bytes of an older blob file are those of values without records. No byte
// behind them is read, which AddressSanitizer would find.
TEST_F(BlobRecordReaderTest, ShortRecordIsCorruption) {
  const std::string record = Encode("key", "value");
  for (size_t size = 0; size < record.size(); ++size) {
    const std::unique_ptr<char[]> bytes(new char[size]);
    std::copy_n(record.data(), size, bytes.get());
    EXPECT_TRUE(BlobRecordReader::Verify(Slice(bytes.get(), size),
                                         NameOf("key"), 5,
                                         /*verify_value=*/false)
                    .IsCorruption())
        << size;
  }
}

TEST_F(BlobRecordReaderTest, ChecksumOfTheValueIsComparedOnRequest) {
  const std::string record = Encode("key", "value");
  // The header ends with the checksum of key and value, which its own checksum
  // does not cover.
  constexpr size_t kKey = BlobRecordV2::kHeaderSize;
  for (size_t at = 0; at < record.size(); ++at) {
    SCOPED_TRACE(at);
    std::string damaged = record;
    damaged[at] ^= 1;
    EXPECT_TRUE(BlobRecordReader::Verify(damaged, NameOf("key"), 5,
                                         /*verify_value=*/true)
                    .IsCorruption());
    const Status s = BlobRecordReader::Verify(damaged, NameOf("key"), 5,
                                              /*verify_value=*/false);
    const bool is_in_key = at >= kKey && at < kKey + 3;
    EXPECT_EQ(s.ok(), at >= kKey - sizeof(uint32_t) && !is_in_key)
        << s.ToString();
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
