//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_format_v2.h"

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "db/blob/blob_file_addition.h"
#include "db/blob/blob_file_reader.h"
#include "db/blob_v2/blob_file_v2_test_util.h"
#include "db/dbformat.h"
#include "env/mock_env.h"
#include "options/cf_options.h"
#include "port/stack_trace.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/testharness.h"
#include "util/coding.h"
#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {

using blob_v2_test::BytesFile;
using blob_v2_test::FileMaker;
using blob_v2_test::OpenBytes;

namespace {

// Replaces the bytes at `at` and updates the checksum at `crc_at`, which covers
// all bytes before it.
std::string Changed(std::string bytes, size_t at, const std::string& change,
                    size_t crc_at) {
  bytes.replace(at, change.size(), change);
  EncodeFixed32(bytes.data() + crc_at,
                crc32c::Mask(crc32c::Value(bytes.data(), crc_at)));
  return bytes;
}

void ForEachBitFlip(const std::string& bytes, size_t end,
                    const std::function<void(const std::string&)>& fn) {
  for (size_t bit = 0; bit < 8 * end; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    SCOPED_TRACE("bit " + std::to_string(bit));
    fn(flipped);
  }
}

}  // namespace

class BlobFormatV2Test : public testing::Test {
 protected:
  static std::string Header() {
    BlobHeaderV2 header;
    header.column_family_id = 77;
    header.compression = kZSTD;
    header.hash_seed = 0xfedcba9876543210u;
    std::string bytes = "replaced";
    header.EncodeTo(&bytes);
    return bytes;
  }
  static std::string RecordHeader(bool direct = true) {
    BlobRecordV2 record;
    record.seq = kMaxSequenceNumber;
    record.birth = 1234567890123;
    record.direct = direct;
    std::string bytes = "replaced";
    record.EncodeHeaderTo("key", "value", &bytes);
    return bytes;
  }
  static std::string Footer() {
    BlobFooterV2 footer;
    footer.blob_count = 1234567890123;
    footer.index_size = 2345678901234;
    footer.index_checksum = 0xfedcba98u;
    std::string bytes = "replaced";
    footer.EncodeTo(&bytes);
    return bytes;
  }
  static Status ReadLayout(const std::string& bytes, uint64_t file_size) {
    BlobFileLayoutV2 layout;
    return BlobFileLayoutV2::Read(OpenBytes(bytes).get(), IOOptions(),
                                  file_size, &layout);
  }
};

TEST_F(BlobFormatV2Test, HeaderIsDecodedAndDamageIsDetected) {
  const std::string bytes = Header();
  ASSERT_EQ(bytes.size(), BlobLogHeader::kSize);
  ASSERT_TRUE(IsBlobFileV2(bytes));
  BlobHeaderV2 header;
  ASSERT_OK(header.DecodeFrom(bytes));
  ASSERT_EQ(header.column_family_id, 77);
  ASSERT_EQ(header.compression, kZSTD);
  ASSERT_EQ(header.hash_seed, 0xfedcba9876543210u);

  ForEachBitFlip(bytes, bytes.size(), [](const std::string& flipped) {
    BlobHeaderV2 decoded;
    ASSERT_TRUE(decoded.DecodeFrom(flipped).IsCorruption());
  });
  ASSERT_TRUE(header.DecodeFrom(bytes + "x").IsCorruption());
  ASSERT_TRUE(header.DecodeFrom(bytes.substr(1)).IsCorruption());
  ASSERT_TRUE(header.DecodeFrom(Slice()).IsCorruption());
  ASSERT_TRUE(header.DecodeFrom(Changed(bytes, 12, "\x01", 26)).IsCorruption());
  // A later format version is reported as not supported, not as damage.
  ASSERT_TRUE(
      header.DecodeFrom(Changed(bytes, 22, "\x02", 26)).IsNotSupported());
}

TEST_F(BlobFormatV2Test, VersionIsTellableFromTheMagicNumber) {
  const std::string bytes = Header();
  ASSERT_TRUE(IsBlobFileV2(bytes.substr(0, 8)));
  ASSERT_FALSE(IsBlobFileV2(bytes.substr(0, 7)));
  ASSERT_FALSE(IsBlobFileV2(Slice()));
  ForEachBitFlip(bytes, 8, [](const std::string& flipped) {
    ASSERT_FALSE(IsBlobFileV2(flipped));
  });

  std::string v1;
  BlobLogHeader(1, kNoCompression, false, ExpirationRange()).EncodeTo(&v1);
  ASSERT_FALSE(IsBlobFileV2(v1));
  BlobHeaderV2 header;
  ASSERT_TRUE(header.DecodeFrom(v1).IsCorruption());
}

TEST_F(BlobFormatV2Test, VersionOfAnUnfinishedFileIsTold) {
  Env* const env = Env::Default();
  FileSystem* const fs = env->GetFileSystem().get();
  const std::string fname = test::PerThreadDBPath("blob_format_v2_test_file");
  const auto starts_as_v2 = [&](const std::string& contents) {
    EXPECT_OK(WriteStringToFile(env, contents, fname));
    FileOptions options;
    options.use_direct_reads = true;
    return StartsAsBlobFileV2(fs, fname, options, IOOptions());
  };
  std::string header;
  BlobHeaderV2().EncodeTo(&header);
  EXPECT_TRUE(starts_as_v2(header));
  EXPECT_TRUE(starts_as_v2(header + std::string(1000, 'r')));
  EXPECT_TRUE(starts_as_v2(header.substr(0, 8)));
  EXPECT_FALSE(starts_as_v2(header.substr(0, 7)));
  EXPECT_FALSE(starts_as_v2(""));
  std::string version1;
  BlobLogHeader().EncodeTo(&version1);
  EXPECT_FALSE(starts_as_v2(version1));
  EXPECT_OK(env->DeleteFile(fname));
  EXPECT_FALSE(StartsAsBlobFileV2(fs, fname, FileOptions(), IOOptions()));
}

TEST_F(BlobFormatV2Test, FileWithoutAHeaderIsTold) {
  Env* const env = Env::Default();
  FileSystem* const fs = env->GetFileSystem().get();
  const std::string fname = test::PerThreadDBPath("blob_format_v2_test_file");
  const auto starts_as_none = [&](const std::string& contents) {
    EXPECT_OK(WriteStringToFile(env, contents, fname));
    FileOptions options;
    options.use_direct_reads = true;
    return StartsAsNoBlobFile(fs, fname, options, IOOptions());
  };
  EXPECT_TRUE(starts_as_none(""));
  EXPECT_TRUE(starts_as_none(std::string(4096, '\0')));
  for (const bool is_mapped : {false, true}) {
    std::string header;
    if (is_mapped) {
      BlobHeaderV2().EncodeTo(&header);
    } else {
      BlobLogHeader().EncodeTo(&header);
    }
    EXPECT_FALSE(starts_as_none(header));
    EXPECT_FALSE(starts_as_none(header + std::string(1000, 'r')));
    EXPECT_FALSE(starts_as_none(header.substr(0, 4)));
    EXPECT_TRUE(starts_as_none(header.substr(0, 3)));
    EXPECT_TRUE(starts_as_none("x" + header));
  }
  // A file that cannot be read may have a header.
  EXPECT_OK(env->DeleteFile(fname));
  EXPECT_FALSE(StartsAsNoBlobFile(fs, fname, FileOptions(), IOOptions()));
}

TEST_F(BlobFormatV2Test, RecordHeaderIsDecodedAndDamageIsDetected) {
  const std::string bytes = RecordHeader();
  ASSERT_EQ(bytes.size(), BlobLogRecord::kHeaderSize);
  BlobRecordV2 record;
  ASSERT_OK(record.DecodeHeaderFrom(bytes));
  ASSERT_EQ(record.key_size, 3);
  ASSERT_EQ(record.value_size, 5);
  ASSERT_EQ(record.record_size(), 40);
  ASSERT_EQ(record.seq, kMaxSequenceNumber);
  ASSERT_EQ(record.birth, 1234567890123);
  ASSERT_TRUE(record.direct);
  ASSERT_OK(record.CheckBlob("key", "value"));
  ASSERT_TRUE(record.CheckBlob("kez", "value").IsCorruption());
  ASSERT_TRUE(record.CheckBlob("key", "valuf").IsCorruption());
  ASSERT_OK(record.DecodeHeaderFrom(RecordHeader(/*direct=*/false)));
  ASSERT_FALSE(record.direct);
  ASSERT_EQ(record.seq, kMaxSequenceNumber);

  // The last four bytes are the checksum of the blob.
  ForEachBitFlip(bytes, 28, [](const std::string& flipped) {
    BlobRecordV2 decoded;
    ASSERT_TRUE(decoded.DecodeHeaderFrom(flipped).IsCorruption());
  });
  ASSERT_TRUE(record.DecodeHeaderFrom(bytes + "x").IsCorruption());
  ASSERT_TRUE(record.DecodeHeaderFrom(bytes.substr(1)).IsCorruption());
  ASSERT_TRUE(
      record.DecodeHeaderFrom(Changed(bytes, 8, "\x02", 24)).IsCorruption());
}

TEST_F(BlobFormatV2Test, RecordSizeHasALimit) {
  BlobRecordV2 record;
  std::string key_size;
  PutFixed32(&key_size, 16);
  std::string value_size;
  PutFixed32(&value_size, std::numeric_limits<uint32_t>::max() - 48);
  const std::string bytes = RecordHeader();
  const std::string largest = Changed(bytes, 0, key_size + value_size, 24);
  ASSERT_OK(record.DecodeHeaderFrom(largest));
  ASSERT_EQ(record.record_size(), kMaxBlobRecordSize);
  const std::string too_large = Changed(largest, 0, "\x11", 24);
  ASSERT_TRUE(record.DecodeHeaderFrom(too_large).IsCorruption());
}

TEST_F(BlobFormatV2Test, FooterIsDecodedAndDamageIsDetected) {
  const std::string bytes = Footer();
  ASSERT_EQ(bytes.size(), BlobLogFooter::kSize);
  BlobFooterV2 footer;
  ASSERT_OK(footer.DecodeFrom(bytes));
  ASSERT_EQ(footer.blob_count, 1234567890123);
  ASSERT_EQ(footer.index_size, 2345678901234);
  ASSERT_EQ(footer.index_checksum, 0xfedcba98u);

  // Code that only checks that there is a footer, and reads the number of
  // blobs, need not know the version.
  BlobLogFooter log;
  ASSERT_OK(log.DecodeFrom(bytes));
  ASSERT_EQ(log.blob_count, footer.blob_count);

  ForEachBitFlip(bytes, bytes.size(), [](const std::string& flipped) {
    BlobFooterV2 decoded;
    ASSERT_TRUE(decoded.DecodeFrom(flipped).IsCorruption());
  });
  ASSERT_TRUE(footer.DecodeFrom(bytes.substr(1)).IsCorruption());
  for (size_t reserved = 24; reserved < 28; ++reserved) {
    ASSERT_TRUE(
        footer.DecodeFrom(Changed(bytes, reserved, "\x01", 28)).IsCorruption());
  }
}

TEST_F(BlobFormatV2Test, LayoutIsReadAndErrorsNameTheFile) {
  FileMaker maker(55);
  for (int i = 0; i < 10; ++i) {
    maker.Add("key" + std::to_string(i), std::string(100, 'v'), i, 0, true);
  }
  maker.Finish();
  const std::string& bytes = maker.bytes();
  BlobFileLayoutV2 layout;
  ASSERT_OK(BlobFileLayoutV2::Read(OpenBytes(bytes).get(), IOOptions(),
                                   bytes.size(), &layout));
  ASSERT_EQ(layout.header.hash_seed, 55);
  ASSERT_EQ(layout.footer.blob_count, 10);
  ASSERT_EQ(layout.index_offset, maker.index_offset());

  const Status cut = ReadLayout(bytes, bytes.size() - 1);
  ASSERT_TRUE(cut.IsCorruption());
  ASSERT_NE(cut.ToString().find("000012.blob at offset " +
                                std::to_string(bytes.size() - 33)),
            std::string::npos)
      << cut.ToString();
  for (const size_t size : {0, 61}) {
    ASSERT_TRUE(ReadLayout(bytes.substr(0, size), size).IsCorruption());
  }
  // The file is shorter than the given file size.
  ASSERT_TRUE(ReadLayout(bytes.substr(0, bytes.size() - 1), bytes.size())
                  .IsCorruption());

  std::string later = bytes;
  later.replace(0, 30, Changed(bytes.substr(0, 30), 22, "\x02", 26));
  const Status not_supported = ReadLayout(later, later.size());
  ASSERT_TRUE(not_supported.IsNotSupported());
  ASSERT_NE(not_supported.ToString().find("000012.blob"), std::string::npos);

  std::unique_ptr<BytesFile> failing(new BytesFile(bytes));
  failing->FailAfter(1);
  const RandomAccessFileReader reader(std::move(failing), "dir/000012.blob");
  ASSERT_TRUE(
      BlobFileLayoutV2::Read(&reader, IOOptions(), bytes.size(), &layout)
          .IsIOError());
}

TEST_F(BlobFormatV2Test, NamesTheFileOfAStatus) {
  const auto name = [](const Status& s) {
    return NameBlobFile(s, "dir/000012.blob", /*offset=*/345).ToString();
  };
  EXPECT_EQ("OK", name(Status::OK()));
  EXPECT_EQ("Corruption: Blob file dir/000012.blob at offset 345: footer: why",
            name(Status::Corruption("footer", "why")));
  EXPECT_EQ("Corruption: Blob file dir/000012.blob at offset 345: damaged",
            name(Status::Corruption()));
  EXPECT_EQ("Not implemented: Blob file dir/000012.blob: header: why",
            name(Status::NotSupported("header", "why")));
  EXPECT_EQ("IO error: No space", name(Status::IOError("No space")));
}

// Readers of values say in which file and part of it the damage is, also if the
// damage makes a file one of version 1.
TEST_F(BlobFormatV2Test, ReadersNameDamagedHeadersAndFooters) {
  FileMaker maker;
  maker.Add("key", "value", 1, 0, true);
  maker.Finish();
  const std::unique_ptr<Env> env(MockEnv::Create(Env::Default()));
  ASSERT_OK(env->CreateDirIfMissing("/dir"));
  Options options;
  options.env = env.get();
  options.cf_paths.emplace_back("/dir", 0);
  const ImmutableOptions ioptions(options);
  const auto open = [&](const std::string& bytes, uint32_t column_family_id) {
    EXPECT_OK(WriteStringToFile(env.get(), bytes, "/dir/000012.blob"));
    std::unique_ptr<BlobFileReader> reader;
    return BlobFileReader::Create(ioptions, ReadOptions(), FileOptions(),
                                  column_family_id,
                                  /*blob_file_read_hist=*/nullptr,
                                  /*blob_file_number=*/12,
                                  /*io_tracer=*/nullptr, &reader);
  };
  const auto expect_corruption_at = [](uint64_t offset, const Status& s) {
    EXPECT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_NE(std::string::npos,
              s.ToString().find("/dir/000012.blob at offset " +
                                std::to_string(offset) + ":"))
        << s.ToString();
  };
  const std::string& bytes = maker.bytes();
  ASSERT_OK(open(bytes, /*column_family_id=*/0));
  expect_corruption_at(0, open(bytes, /*column_family_id=*/1));
  for (size_t at = 0; at < BlobHeaderV2::kSize; ++at) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    expect_corruption_at(0, open(damaged, 0));
  }
  const size_t footer = bytes.size() - BlobFooterV2::kSize;
  for (size_t at = footer; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    expect_corruption_at(footer, open(damaged, 0));
  }
  const Status later =
      open(Changed(bytes.substr(0, 30), 22, "\x02", 26) + bytes.substr(30), 0);
  EXPECT_TRUE(later.IsNotSupported()) << later.ToString();
  EXPECT_NE(std::string::npos, later.ToString().find("/dir/000012.blob"))
      << later.ToString();
}

TEST_F(BlobFormatV2Test, LayoutDoesNotTrustTheFooter) {
  FileMaker maker;
  maker.Add("key", "value", 1, 0, true);
  maker.Finish();
  const std::string& bytes = maker.bytes();
  const auto with_footer = [&](uint64_t count, uint64_t index_size) {
    BlobFooterV2 footer = maker.layout().footer;
    footer.blob_count = count;
    footer.index_size = index_size;
    std::string encoded;
    footer.EncodeTo(&encoded);
    return ReadLayout(bytes.substr(0, bytes.size() - 32) + encoded,
                      bytes.size());
  };
  const uint64_t size = maker.index_size();
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  ASSERT_OK(with_footer(1, size));
  ASSERT_TRUE(with_footer(2, size).IsCorruption());
  ASSERT_TRUE(with_footer(kHuge, size).IsCorruption());
  ASSERT_OK(with_footer(0, size + 40));
  ASSERT_TRUE(with_footer(0, size + 41).IsCorruption());
  ASSERT_TRUE(with_footer(1, kHuge).IsCorruption());
  ASSERT_TRUE(with_footer(0, kHuge).IsCorruption());
}

TEST_F(BlobFormatV2Test, ManifestFieldIsDecodedAndDamageIsDetected) {
  for (const uint64_t size :
       {uint64_t{1}, uint64_t{300}, std::numeric_limits<uint64_t>::max()}) {
    std::string field;
    PutBlobIndexSizeField(&field, size);
    Slice rest(field);
    uint32_t tag = 0;
    Slice value;
    ASSERT_TRUE(GetVarint32(&rest, &tag));
    ASSERT_EQ(tag, 193);
    ASSERT_TRUE(GetLengthPrefixedSlice(&rest, &value));
    ASSERT_TRUE(rest.empty());
    uint64_t decoded = 0;
    ASSERT_OK(DecodeBlobIndexSizeField(value, &decoded));
    ASSERT_EQ(decoded, size);
    value.remove_suffix(1);
    ASSERT_TRUE(DecodeBlobIndexSizeField(value, &decoded).IsCorruption());
  }
  uint64_t decoded = 0;
  ASSERT_TRUE(DecodeBlobIndexSizeField(Slice(), &decoded).IsCorruption());
  ASSERT_TRUE(
      DecodeBlobIndexSizeField(Slice("\0", 1), &decoded).IsCorruption());
  ASSERT_TRUE(DecodeBlobIndexSizeField("\x01\x01", &decoded).IsCorruption());
}

// The bytes are the example of docs/formats.md.
TEST_F(BlobFormatV2Test, ManifestExampleOfTheDocsIsCorrect) {
  EnableCallBack("BlobFileAddition::EncodeTo::CustomFields", [](void* arg) {
    PutBlobIndexSizeField(static_cast<std::string*>(arg), 37);
  });
  std::string encoded;
  BlobFileAddition(12, 2, 81, "", "").EncodeTo(&encoded);
  DisableCallBacks();
  ASSERT_EQ(Slice(encoded).ToString(/*hex=*/true), "0C02510000C101012500");

  // RocksDB does not know the field and must refuse to open the database.
  ASSERT_NE(kBlobIndexSizeField & 64, 0);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
