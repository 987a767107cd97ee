//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The fuzzer is included rather than linked, because the build makes a test
// from one source file.
#include "db/delta/delta_edit_test_util.h"
#include "fuzz/strata/delta_edit_fuzzer.cc"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class DeltaEditFuzzTest : public testing::Test {
 protected:
  static void Run(const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()),
                           input.size());
  }
};

TEST_F(DeltaEditFuzzTest, RandomBytesPass) {
  Random rnd(301);
  for (int i = 0; i < 20000; ++i) {
    std::string input = rnd.RandomBinaryString(2 + rnd.Uniform(100));
    input[0] = 0;
    input[1] = 1;
    Run(input);
  }
}

TEST_F(DeltaEditFuzzTest, DamagedEditsPass) {
  Random rnd(302);
  for (int i = 0; i < 5000; ++i) {
    std::string input(1, '\0');
    RandomDeltaEdit(&rnd).EncodeTo(&input);
    for (int n = rnd.Uniform(3); n > 0; --n) {
      input[1 + rnd.Uniform(static_cast<int>(input.size()) - 1)] =
          static_cast<char>(rnd.Uniform(256));
    }
    Run(input);
  }
}

TEST_F(DeltaEditFuzzTest, RandomRecipesPass) {
  Random rnd(303);
  for (int i = 0; i < 20000; ++i) {
    std::string input = rnd.RandomBinaryString(1 + rnd.Uniform(200));
    input[0] = 1;
    // Small numbers make more operations valid.
    if (!rnd.OneIn(4)) {
      for (size_t k = 1; k < input.size(); ++k) {
        if (!rnd.OneIn(4)) {
          input[k] = static_cast<char>(rnd.Uniform(24));
        }
      }
    }
    Run(input);
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
