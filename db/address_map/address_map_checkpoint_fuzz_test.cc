//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Not linked, but included: a test is one source file to the build.
#include "fuzz/strata/address_map_checkpoint_fuzzer.cc"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class AddressMapCheckpointFuzzTest : public testing::Test {
 protected:
  static void Run(const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()),
                           input.size());
  }
};

// Any bytes for a file.
TEST_F(AddressMapCheckpointFuzzTest, Files) {
  Random rnd(301);
  for (int i = 0; i < 2000; ++i) {
    std::string input = rnd.RandomBinaryString(1 + rnd.Uniform(600));
    input[0] = 0;
    Run(input);
  }
}

// Any contents of files whose checksums are right.
TEST_F(AddressMapCheckpointFuzzTest, Contents) {
  Random rnd(302);
  for (int i = 0; i < 5000; ++i) {
    std::string input = rnd.RandomBinaryString(1 + rnd.Uniform(600));
    input[0] = 1;
    // Small numbers mean something more often.
    if (rnd.OneIn(2)) {
      for (size_t k = 1; k < input.size(); ++k) {
        if (!rnd.OneIn(4)) {
          input[k] = static_cast<char>(rnd.Uniform(4));
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
