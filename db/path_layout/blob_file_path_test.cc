//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of the path id of a blob file in the MANIFEST and in memory, without a
// DB.

#include <cstdint>
#include <string>

#include "db/blob/blob_file_addition.h"
#include "db/blob/blob_file_meta.h"
#include "db/version_edit.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The format is persistent: these numbers must never change.
constexpr uint32_t kEndTag = 0;
constexpr uint32_t kPathIdTag = 192;
// Set in every tag that RocksDB refuses if it does not know it.
constexpr uint32_t kForwardIncompatibleBit = 64;

BlobFileAddition AdditionOn(uint32_t path_id) {
  return BlobFileAddition(/*blob_file_number=*/300, /*total_blob_count=*/2,
                          /*total_blob_bytes=*/70000, "SHA1", "\x01\x02",
                          path_id);
}

// Returns the bytes that RocksDB 11.8.1 writes for AdditionOn(0), up to its
// custom fields.
std::string StockFields() {
  std::string bytes;
  PutVarint64(&bytes, 300);
  PutVarint64(&bytes, 2);
  PutVarint64(&bytes, 70000);
  PutLengthPrefixedSlice(&bytes, "SHA1");
  PutLengthPrefixedSlice(&bytes, "\x01\x02");
  return bytes;
}

std::string WithPathField(const Slice& value) {
  std::string bytes = StockFields();
  PutVarint32(&bytes, kPathIdTag);
  PutLengthPrefixedSlice(&bytes, value);
  PutVarint32(&bytes, kEndTag);
  return bytes;
}

}  // namespace

class BlobFilePathTest : public testing::Test {};

TEST_F(BlobFilePathTest, PathZeroIsEncodedAsByRocksDB) {
  std::string encoded;
  AdditionOn(0).EncodeTo(&encoded);
  std::string expected = StockFields();
  PutVarint32(&expected, kEndTag);
  ASSERT_EQ(encoded, expected);
}

TEST_F(BlobFilePathTest, RocksDBRefusesOtherPaths) {
  static_assert((kPathIdTag & kForwardIncompatibleBit) != 0);
  std::string encoded;
  AdditionOn(3).EncodeTo(&encoded);
  ASSERT_EQ(encoded, WithPathField(Slice("\x03", 1)));
}

TEST_F(BlobFilePathTest, PathIdIsDecoded) {
  for (uint32_t path_id = 0; path_id <= 3; ++path_id) {
    std::string encoded;
    AdditionOn(path_id).EncodeTo(&encoded);
    // A reused object must not keep its old path.
    BlobFileAddition decoded = AdditionOn(2);
    Slice input(encoded);
    ASSERT_OK(decoded.DecodeFrom(&input));
    ASSERT_TRUE(input.empty());
    ASSERT_EQ(decoded, AdditionOn(path_id));
    ASSERT_EQ(decoded.GetPathId(), path_id);
  }
  ASSERT_NE(AdditionOn(0), AdditionOn(1));
}

TEST_F(BlobFilePathTest, PathIdIsDecodedFromAVersionEdit) {
  VersionEdit edit;
  for (uint32_t path_id = 0; path_id <= 3; ++path_id) {
    edit.AddBlobFile(BlobFileAddition(10 + path_id, 1, 1, "", "", path_id));
  }
  std::string encoded;
  ASSERT_TRUE(edit.EncodeTo(&encoded));
  VersionEdit decoded;
  ASSERT_OK(decoded.DecodeFrom(encoded));
  ASSERT_EQ(decoded.GetBlobFileAdditions(), edit.GetBlobFileAdditions());
}

TEST_F(BlobFilePathTest, InvalidPathIsCorruption) {
  for (const std::string& value :
       {std::string("\x04", 1), std::string("\xff", 1), std::string(),
        std::string("\x01\x00", 2)}) {
    const std::string encoded = WithPathField(value);
    BlobFileAddition decoded;
    Slice input(encoded);
    const Status s = decoded.DecodeFrom(&input);
    ASSERT_TRUE(s.IsCorruption()) << Slice(value).ToString(/*hex=*/true);
    ASSERT_NE(s.ToString().find("Invalid path id"), std::string::npos);
  }
}

TEST_F(BlobFilePathTest, EveryTruncationIsCorruption) {
  std::string encoded;
  AdditionOn(1).EncodeTo(&encoded);
  for (size_t length = 0; length < encoded.size(); ++length) {
    BlobFileAddition decoded;
    Slice input(encoded.data(), length);
    ASSERT_TRUE(decoded.DecodeFrom(&input).IsCorruption()) << length;
  }
}

TEST_F(BlobFilePathTest, UnknownFieldsAreTreatedAsByRocksDB) {
  std::string ignorable = StockFields();
  PutVarint32(&ignorable, 1 << 7);
  PutLengthPrefixedSlice(&ignorable, "from the future");
  PutVarint32(&ignorable, kEndTag);
  BlobFileAddition decoded;
  Slice input(ignorable);
  ASSERT_OK(decoded.DecodeFrom(&input));
  ASSERT_EQ(decoded, AdditionOn(0));

  std::string refused = StockFields();
  PutVarint32(&refused, kPathIdTag + 1);
  PutLengthPrefixedSlice(&refused, "from the future");
  PutVarint32(&refused, kEndTag);
  input = refused;
  ASSERT_TRUE(decoded.DecodeFrom(&input).IsCorruption());
}

TEST_F(BlobFilePathTest, TextShowsThePathOnlyIfThereIsOne) {
  const auto meta_on = [](uint32_t path_id) {
    return SharedBlobFileMetaData::Create(1, 2, 3, "", "", path_id);
  };
  ASSERT_EQ(AdditionOn(0).DebugString(),
            "blob_file_number: 300 total_blob_count: 2 total_blob_bytes: 70000 "
            "checksum_method: SHA1 checksum_value: 0102");
  ASSERT_EQ(AdditionOn(2).DebugString(),
            AdditionOn(0).DebugString() + " path_id: 2");
  ASSERT_EQ(AdditionOn(0).DebugJSON().find("PathId"), std::string::npos);
  ASSERT_NE(AdditionOn(2).DebugJSON().find("\"PathId\": 2"), std::string::npos);
  ASSERT_EQ(meta_on(2)->DebugString(),
            meta_on(0)->DebugString() + " path_id: 2");
  ASSERT_EQ(meta_on(2)->GetPathId(), 2);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
