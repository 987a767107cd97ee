//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <string>

#include "db/version_edit.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

TEST(VersionEditWalBufferTest, EncodedAsDocumented) {
  VersionEdit edit;
  EXPECT_FALSE(edit.HasWalBuffer());
  std::string without;
  ASSERT_TRUE(edit.EncodeTo(&without));
  EXPECT_EQ(without, "");
  edit.MarkWalBuffer();
  std::string encoded;
  ASSERT_TRUE(edit.EncodeTo(&encoded));
  EXPECT_EQ(encoded, std::string("\x82\x20\x01\x01", 4));
  VersionEdit decoded;
  ASSERT_OK(decoded.DecodeFrom(encoded));
  EXPECT_TRUE(decoded.HasWalBuffer());
  EXPECT_NE(decoded.DebugString().find("WalBuffer: 1"), std::string::npos);
  EXPECT_NE(decoded.DebugJSON(0).find("\"WalBuffer\": 1"), std::string::npos)
      << decoded.DebugJSON(0);
}

// RocksDB ignores unknown tags with this bit, and refuses all other unknown
// tags.
TEST(VersionEditWalBufferTest, TagIsNotIgnorable) {
  EXPECT_EQ(kWalBuffer & kTagSafeIgnoreMask, 0u);
  std::string encoded;
  PutVarint32(&encoded, (1 << 12) | 255);
  PutLengthPrefixedSlice(&encoded, "x");
  EXPECT_TRUE(VersionEdit().DecodeFrom(encoded).IsCorruption());
}

TEST(VersionEditWalBufferTest, DamagedMarkIsRefused) {
  const auto decode = [](const Slice& value, bool whole) {
    std::string encoded;
    PutVarint32(&encoded, kWalBuffer);
    PutLengthPrefixedSlice(&encoded, value);
    if (!whole) {
      encoded.pop_back();
    }
    VersionEdit edit;
    const Status s = edit.DecodeFrom(encoded);
    EXPECT_EQ(edit.HasWalBuffer(), s.ok());
    return s;
  };
  EXPECT_OK(decode("\x01", true));
  EXPECT_TRUE(decode("\x01", false).IsCorruption());
  EXPECT_TRUE(decode("", true).IsCorruption());
  EXPECT_TRUE(decode("\x02", true).IsNotSupported());
  EXPECT_TRUE(decode("\x01\x01", true).IsNotSupported());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
