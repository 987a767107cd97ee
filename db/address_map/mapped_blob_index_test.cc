//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_blob_index.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "db/blob/blob_index.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Mode = MappedBlobIndex::Mode;

MappedBlobIndex IndexOf(Mode mode, uint64_t birth) {
  MappedBlobIndex index;
  index.mode = mode;
  index.birth = birth;
  return index;
}

std::string Encoded(Mode mode, uint64_t birth) {
  std::string bytes = "old content";
  IndexOf(mode, birth).EncodeTo(&bytes);
  return bytes;
}

// Checks that the bytes are exactly the encoding of the decoded index, or that
// decoding fails and leaves the index unchanged.
void CheckStrict(const std::string& bytes) {
  MappedBlobIndex index = IndexOf(Mode::kVersioned, 4711);
  const Status s = index.DecodeFrom(bytes);
  if (s.ok()) {
    ASSERT_TRUE(MappedBlobIndex::IsMapped(bytes));
    ASSERT_EQ(bytes, Encoded(index.mode, index.birth));
  } else {
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    ASSERT_EQ(Mode::kVersioned, index.mode);
    ASSERT_EQ(4711u, index.birth);
  }
}

}  // namespace

TEST(MappedBlobIndexTest, EncodingHasTheDocumentedBytes) {
  ASSERT_EQ(std::string("\x10\x00", 2), Encoded(Mode::kDirect, 0));
  ASSERT_EQ(std::string("\x11\xac\x02", 3), Encoded(Mode::kVersioned, 300));
}

TEST(MappedBlobIndexTest, EveryIndexSurvivesARoundTrip) {
  for (const Mode mode : {Mode::kDirect, Mode::kVersioned}) {
    std::vector<uint64_t> births{0, 1, 127, 128,
                                 std::numeric_limits<uint64_t>::max()};
    for (int shift = 0; shift < 64; ++shift) {
      births.push_back(uint64_t{1} << shift);
    }
    for (const uint64_t birth : births) {
      MappedBlobIndex index;
      ASSERT_OK(index.DecodeFrom(Encoded(mode, birth)));
      ASSERT_EQ(mode, index.mode);
      ASSERT_EQ(birth, index.birth);
    }
  }
}

TEST(MappedBlobIndexTest, ForeignBlobIndexesAreNotMapped) {
  std::string bytes;
  BlobIndex::EncodeBlob(&bytes, 16, 17, 18, kNoCompression);
  ASSERT_FALSE(MappedBlobIndex::IsMapped(bytes));
  BlobIndex::EncodeInlinedTTL(&bytes, 16, "value");
  ASSERT_FALSE(MappedBlobIndex::IsMapped(bytes));
  BlobIndex::EncodeBlobTTL(&bytes, 16, 17, 18, 19, kNoCompression);
  ASSERT_FALSE(MappedBlobIndex::IsMapped(bytes));
  ASSERT_FALSE(MappedBlobIndex::IsMapped(Slice()));
  ASSERT_TRUE(MappedBlobIndex::IsMapped(Encoded(Mode::kDirect, 1)));
}

TEST(MappedBlobIndexTest, MalformedIndexesAreCorruption) {
  MappedBlobIndex index;
  ASSERT_TRUE(index.DecodeFrom(Slice()).IsCorruption());
  ASSERT_TRUE(index.DecodeFrom(Slice("\x12\x00", 2)).IsCorruption());
  ASSERT_TRUE(index.DecodeFrom(Slice("\x10", 1)).IsCorruption());
  ASSERT_TRUE(index.DecodeFrom(Slice("\x10\x80", 2)).IsCorruption());
  ASSERT_TRUE(index.DecodeFrom(Slice("\x10\x00\x00", 3)).IsCorruption());
  ASSERT_TRUE(index.DecodeFrom(Slice("\x10\x81\x00", 3)).IsCorruption());
}

TEST(MappedBlobIndexTest, ShortStringsDecodeStrictly) {
  for (int length = 0; length <= 3; ++length) {
    // The third byte matters only if the second one has the continuation bit,
    // so a few values suffice.
    for (int bytes = 0; bytes < 1 << (8 * std::min(length, 2)); ++bytes) {
      for (const int last : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
        std::string s{static_cast<char>(bytes), static_cast<char>(bytes >> 8),
                      static_cast<char>(last)};
        s.resize(length);
        CheckStrict(s);
        if (length < 3) {
          break;  // there is no third byte
        }
      }
    }
  }
}

TEST(MappedBlobIndexTest, DamagedEncodingsDecodeStrictly) {
  Random64 rnd(301);
  for (int i = 0; i < 200000; ++i) {
    std::string bytes = Encoded(rnd.OneIn(2) ? Mode::kDirect : Mode::kVersioned,
                                rnd.Next() >> rnd.Uniform(64));
    for (uint64_t n = 1 + rnd.Uniform(3); n > 0; --n) {
      if (rnd.OneIn(3)) {
        bytes.resize(rnd.Uniform(13), static_cast<char>(rnd.Next()));
      } else if (!bytes.empty()) {
        bytes[rnd.Uniform(bytes.size())] = static_cast<char>(rnd.Next());
      }
    }
    CheckStrict(bytes);
  }
}

TEST(MappedBlobIndexTest, DebugStringShowsModeAndBirth) {
  ASSERT_EQ("[mapped blob] mode:direct birth:0",
            IndexOf(Mode::kDirect, 0).DebugString());
  ASSERT_EQ("[mapped blob] mode:versioned birth:77",
            IndexOf(Mode::kVersioned, 77).DebugString());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
