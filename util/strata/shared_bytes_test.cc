//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/shared_bytes.h"

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "port/stack_trace.h"
#include "rocksdb/slice.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class SharedBytesTest : public testing::Test {
 protected:
  struct String {
    Slice bytes;
    SharedBytes::Ref ref;
    std::string expected;
  };

  String Copy(const std::string& value) {
    String result;
    char* const bytes = bytes_->Allocate(value.size(), &result.ref);
    memcpy(bytes, value.data(), value.size());
    result.bytes = Slice(bytes, value.size());
    result.expected = value;
    return result;
  }

  std::unique_ptr<SharedBytes> bytes_ = std::make_unique<SharedBytes>();
};

// AddressSanitizer sees accesses to a block that was freed, and leaks.
TEST_F(SharedBytesTest, StringsStayWhileTheyAreReferenced) {
  Random rnd(301);
  std::deque<String> strings;
  for (int i = 0; i < 5000; ++i) {
    const int size = rnd.OneIn(100) ? rnd.Uniform(3 * SharedBytes::kBlockSize)
                                    : rnd.Uniform(100);
    strings.push_back(Copy(rnd.RandomString(size)));
    while (strings.size() > 200) {
      ASSERT_EQ(strings.front().bytes, Slice(strings.front().expected));
      strings.pop_front();
    }
  }
  bytes_.reset();
  for (const String& string : strings) {
    ASSERT_EQ(string.bytes, Slice(string.expected));
  }
}

TEST_F(SharedBytesTest, CopiesAndMovedReferencesKeepTheBytes) {
  String first = Copy("first");
  SharedBytes::Ref copy = first.ref;
  SharedBytes::Ref moved = std::move(copy);
  first.ref = SharedBytes::Ref();
  bytes_.reset();
  EXPECT_EQ(first.bytes, "first");
  SharedBytes::Ref& self = moved;
  moved = self;
  EXPECT_EQ(first.bytes, "first");
}

TEST_F(SharedBytesTest, ShortStringsShareABlock) {
  const String first = Copy("first");
  const String second = Copy("second");
  EXPECT_EQ(first.bytes.data() + first.bytes.size(), second.bytes.data());
  const String large = Copy(std::string(SharedBytes::kBlockSize + 1, 'x'));
  EXPECT_EQ(large.bytes, Slice(large.expected));
  EXPECT_EQ(Copy("").bytes.size(), 0);
  const String third = Copy("third");
  EXPECT_EQ(second.bytes.data() + second.bytes.size(), third.bytes.data());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
