//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/crc32c_x86.h"

#include <cstdint>
#include <string>

#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/crc32c.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The definition, bit by bit.
uint32_t Reference(uint32_t crc, const std::string& data) {
  uint32_t state = ~crc;
  for (const char byte : data) {
    state ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      state = (state >> 1) ^ (state % 2 == 1 ? 0x82f63b78u : 0);
    }
  }
  return ~state;
}

}  // namespace

// RFC 3720, B.4
TEST(Crc32cX86Test, StandardVectors) {
  std::string ascending;
  for (char byte = 0; byte < 32; ++byte) {
    ascending.push_back(byte);
  }
  const std::string descending(ascending.rbegin(), ascending.rend());
  const struct {
    std::string data;
    uint32_t crc;
  } vectors[] = {{std::string(32, '\0'), 0x8a9136aau},
                 {std::string(32, '\xff'), 0x62a8ab43u},
                 {ascending, 0x46dd794eu},
                 {descending, 0x113fdb5cu},
                 {"", 0}};
  for (const auto& [data, crc] : vectors) {
    EXPECT_EQ(Reference(0, data), crc);
    EXPECT_EQ(crc32c::Value(data.data(), data.size()), crc);
    if (const Crc32cX86::Extend extend = Crc32cX86::Find()) {
      EXPECT_EQ(extend(0, data.data(), data.size()), crc);
    }
  }
}

// Each size and alignment, and data that comes in two parts.
TEST(Crc32cX86Test, EqualsTheDefinition) {
  Random rnd(301);
  const Crc32cX86::Extend extend = Crc32cX86::Find();
  const std::string all = rnd.RandomBinaryString(600);
  for (size_t begin = 0; begin < 16; ++begin) {
    for (size_t size = 0; begin + size <= all.size();
         size += size < 40 ? 1 : 37) {
      const std::string data = all.substr(begin, size);
      const uint32_t before = rnd.Next();
      const uint32_t crc = Reference(before, data);
      ASSERT_EQ(crc32c::Extend(before, all.data() + begin, size), crc);
      if (extend != nullptr) {
        ASSERT_EQ(extend(before, all.data() + begin, size), crc);
        const size_t half = size / 2;
        ASSERT_EQ(extend(extend(before, all.data() + begin, half),
                         all.data() + begin + half, size - half),
                  crc);
      }
    }
  }
}

// LOG says what is used.
TEST(Crc32cX86Test, SupportIsTold) {
  const bool is_fast =
      crc32c::IsFastCrc32Supported().find("Not supported") == std::string::npos;
  if (Crc32cX86::Find() != nullptr) {
    EXPECT_TRUE(is_fast);
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
