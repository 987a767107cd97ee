//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The fuzzer is included and not linked, because the build takes a test from
// one source file.
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

// A file of arbitrary bytes is refused, or loads as a sound map.
TEST_F(AddressMapCheckpointFuzzTest, ArbitraryFilesAreRefusedOrSound) {
  Random rnd(301);
  for (int i = 0; i < 2000; ++i) {
    std::string input = rnd.RandomBinaryString(1 + rnd.Uniform(600));
    input[0] = 0;
    Run(input);
  }
}

// Blocks of arbitrary bytes with valid checksums are refused, or load as a
// sound map.
TEST_F(AddressMapCheckpointFuzzTest, ArbitraryContentsAreRefusedOrSound) {
  Random rnd(302);
  for (int i = 0; i < 5000; ++i) {
    std::string input = rnd.RandomBinaryString(1 + rnd.Uniform(600));
    input[0] = 1;
    // Small numbers are more often valid.
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
