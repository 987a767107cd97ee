//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/bound_blob_index.h"

#include <cstdint>
#include <limits>
#include <string>

#include "db/address_map/mapped_blob_index.h"
#include "db/blob/blob_index.h"
#include "db/dbformat.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string Mapped(MappedBlobIndex::Mode mode, uint64_t birth) {
  MappedBlobIndex index;
  index.mode = mode;
  index.birth = birth;
  std::string mapped;
  index.EncodeTo(&mapped);
  return mapped;
}

std::string Bound(SequenceNumber sequence, const std::string& mapped) {
  char buffer[BoundBlobIndex::kMaxSize];
  return std::string(buffer, BoundBlobIndex::Encode(sequence, mapped, buffer));
}

}  // namespace

TEST(BoundBlobIndexTest, EncodingHasTheDocumentedBytes) {
  EXPECT_EQ(Bound(0x0102, Mapped(MappedBlobIndex::Mode::kVersioned, 300)),
            std::string("\x12\x02\x01\0\0\0\0\0\0\x11\xac\x02", 12));
}

TEST(BoundBlobIndexTest, EveryNameSurvivesARoundTrip) {
  for (const auto mode :
       {MappedBlobIndex::Mode::kDirect, MappedBlobIndex::Mode::kVersioned}) {
    for (const uint64_t birth :
         {uint64_t{0}, uint64_t{1}, std::numeric_limits<uint64_t>::max()}) {
      for (const SequenceNumber sequence :
           {SequenceNumber{0}, SequenceNumber{77}, kMaxSequenceNumber}) {
        const std::string bytes = Bound(sequence, Mapped(mode, birth));
        ASSERT_TRUE(BoundBlobIndex::IsBound(bytes));
        EXPECT_FALSE(MappedBlobIndex::IsMapped(bytes));
        BlobIndex index;
        ASSERT_OK(BoundBlobIndex::Decode(bytes, &index));
        EXPECT_EQ(index.sequence(), sequence);
        EXPECT_EQ(index.mapped().birth, birth);
        EXPECT_EQ(index.mapped().mode, mode);
      }
    }
  }
}

// The copy of a corrupt index is cut to the size of the buffer, and must not
// become a valid index by that.
TEST(BoundBlobIndexTest, CorruptIndexStaysCorrupt) {
  const std::string longest = Mapped(MappedBlobIndex::Mode::kDirect,
                                     std::numeric_limits<uint64_t>::max());
  for (const std::string& mapped :
       {longest + "x", longest + std::string(1000, '\0'),
        longest.substr(0, longest.size() - 1), std::string(1, '\x10')}) {
    BlobIndex index;
    EXPECT_TRUE(
        BoundBlobIndex::Decode(Bound(7, mapped), &index).IsCorruption());
  }
}

TEST(BoundBlobIndexTest, OtherReadersReportABoundIndexAsCorrupt) {
  const std::string bytes =
      Bound(7, Mapped(MappedBlobIndex::Mode::kDirect, 300));
  BlobIndex index;
  EXPECT_TRUE(index.DecodeFrom(bytes).IsCorruption());
  MappedBlobIndex mapped;
  EXPECT_TRUE(mapped.DecodeFrom(bytes).IsCorruption());
}

TEST(BoundBlobIndexTest, APrefixIsNotABoundIndex) {
  EXPECT_FALSE(BoundBlobIndex::IsBound(Slice()));
  EXPECT_FALSE(
      BoundBlobIndex::IsBound(std::string(BoundBlobIndex::kPrefix, '\x12')));
  EXPECT_FALSE(BoundBlobIndex::IsBound(std::string(20, '\x11')));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
