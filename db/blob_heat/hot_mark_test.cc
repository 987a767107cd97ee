//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of the mark of hot blob files in the MANIFEST and in memory, without a
// DB.

#include "db/blob_heat/hot_mark.h"

#include <cstdint>
#include <string>

#include "db/blob/blob_file_addition.h"
#include "db/blob/blob_file_meta.h"
#include "db/path_layout/path_id_map.h"
#include "db/version_edit.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The format is persistent: this number must never change.
constexpr uint32_t kHotHomeTag = 131;
// Set in every tag that RocksDB refuses if it does not know it.
constexpr uint32_t kForwardIncompatibleBit = 64;

BlobFileAddition Addition(uint32_t path_id, HotMark hot) {
  return BlobFileAddition(/*blob_file_number=*/40, /*total_blob_count=*/2,
                          /*total_blob_bytes=*/81, "", "", path_id,
                          /*index_bytes=*/37, /*is_collected=*/true, hot);
}

// Returns an encoded file with this value of the field.
std::string WithHotField(const Slice& value) {
  std::string bytes;
  Addition(0, HotMark()).EncodeTo(&bytes);
  bytes.pop_back();  // the end of the fields
  PutVarint32(&bytes, kHotHomeTag);
  PutLengthPrefixedSlice(&bytes, value);
  PutVarint32(&bytes, 0);
  return bytes;
}

}  // namespace

TEST(HotMarkTest, SaysWhereValuesBelong) {
  EXPECT_FALSE(HotMark().is_hot());
  EXPECT_EQ(HotMark().code(), 0);
  EXPECT_EQ(HotMark().HomeOr(2), 2);
  for (uint32_t home = 0; home <= 3; ++home) {
    const HotMark hot = HotMark::WithHome(home);
    EXPECT_TRUE(hot.is_hot());
    EXPECT_EQ(hot.home(), home);
    EXPECT_EQ(hot.HomeOr(2), home);
    EXPECT_TRUE(HotMark::FromCode(hot.code()) == hot);
    EXPECT_FALSE(hot == HotMark());
    EXPECT_TRUE(HotMark() < hot);
  }
}

TEST(HotMarkTest, IsAFieldThatOthersMaySkip) {
  static_assert((kHotHomeTag & kForwardIncompatibleBit) == 0);
  for (uint32_t home = 0; home <= 3; ++home) {
    const char value = static_cast<char>(home);
    std::string encoded;
    Addition(0, HotMark::WithHome(home)).EncodeTo(&encoded);
    EXPECT_EQ(encoded, WithHotField(Slice(&value, 1)));
    // A reused object must not keep its old mark.
    BlobFileAddition decoded = Addition(1, HotMark::WithHome(2));
    Slice input(encoded);
    ASSERT_OK(decoded.DecodeFrom(&input));
    EXPECT_TRUE(input.empty());
    EXPECT_EQ(decoded, Addition(0, HotMark::WithHome(home)));
  }
  std::string encoded;
  Addition(0, HotMark()).EncodeTo(&encoded);
  BlobFileAddition decoded = Addition(0, HotMark::WithHome(2));
  EXPECT_NE(decoded, Addition(0, HotMark()));
  Slice input(encoded);
  ASSERT_OK(decoded.DecodeFrom(&input));
  EXPECT_FALSE(decoded.hot().is_hot());
}

TEST(HotMarkTest, AnInvalidHomeIsCorruption) {
  for (const std::string& value :
       {std::string("\x04", 1), std::string("\xff", 1), std::string(),
        std::string("\x01\x00", 2)}) {
    const std::string encoded = WithHotField(value);
    BlobFileAddition decoded;
    Slice input(encoded);
    const Status s = decoded.DecodeFrom(&input);
    ASSERT_TRUE(s.IsCorruption()) << Slice(value).ToString(/*hex=*/true);
    EXPECT_NE(s.ToString().find("Invalid home of hot values"),
              std::string::npos);
  }
}

TEST(HotMarkTest, TextShowsItOnlyIfThereIsOne) {
  const BlobFileAddition cold = Addition(1, HotMark());
  const BlobFileAddition hot = Addition(1, HotMark::WithHome(3));
  EXPECT_EQ(hot.DebugString(), cold.DebugString() + " hot_home: 3");
  EXPECT_EQ(cold.DebugJSON().find("HotHome"), std::string::npos);
  EXPECT_NE(hot.DebugJSON().find("\"HotHome\": 3"), std::string::npos);
  const auto meta = [](HotMark mark) {
    return SharedBlobFileMetaData::Create(1, 2, 3, "", "", /*path_id=*/0,
                                          /*index_bytes=*/4,
                                          /*is_collected=*/true, mark);
  };
  EXPECT_EQ(meta(HotMark::WithHome(3))->DebugString(),
            meta(HotMark())->DebugString() + " hot_home: 3");
  EXPECT_TRUE(meta(HotMark::WithHome(3))->hot() == HotMark::WithHome(3));
}

TEST(HotMarkTest, CopiesOnOtherPathsHaveOtherHomes) {
  VersionEdit edit;
  edit.AddBlobFile(Addition(0, HotMark::WithHome(1)));
  PathIdMap ids;
  ids.Set(0, 2);
  ids.Set(1, 3);
  EXPECT_TRUE(edit.MapPathIds(ids));
  EXPECT_EQ(edit.GetBlobFileAdditions().front(),
            Addition(2, HotMark::WithHome(3)));
  // In one directory, the values are at home.
  EXPECT_TRUE(edit.MapPathIds(PathIdMap()));
  EXPECT_EQ(edit.GetBlobFileAdditions().front(), Addition(0, HotMark()));
  EXPECT_FALSE(edit.MapPathIds(PathIdMap()));
}

TEST(HotMarkTest, AFileMayHaveAHomeOfItsOwn) {
  const BlobFileAddition hot = Addition(0, HotMark::WithHome(1));
  for (const uint32_t path_id : {2u, 3u}) {
    VersionEdit edit;
    edit.AddBlobFile(hot);
    PathIdMap ids;
    ids.SetHotFile(hot.GetBlobFileNumber(), /*from=*/1, /*home=*/3, path_id);
    EXPECT_TRUE(edit.MapPathIds(ids));
    // On path 3, the values are at home.
    EXPECT_EQ(
        edit.GetBlobFileAdditions().front(),
        Addition(path_id, path_id == 3 ? HotMark() : HotMark::WithHome(3)));
    // The masks of SST files have the home.
    EXPECT_EQ(ids.OfMask(0b10), 0b1000);
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
