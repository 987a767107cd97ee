//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/blob_file_path_registry.h"

#include <atomic>
#include <thread>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class BlobFilePathRegistryTest : public testing::Test {
 protected:
  BlobFilePathRegistry registry_;
};

TEST_F(BlobFilePathRegistryTest, RemembersThatItHasKnownFiles) {
  registry_.Register(7, 0);
  EXPECT_FALSE(registry_.has_known_files());
  registry_.Register(8, 1);
  registry_.Unregister(8);
  EXPECT_EQ(registry_.size(), 0);
  EXPECT_TRUE(registry_.has_known_files());
}

TEST_F(BlobFilePathRegistryTest, UnknownFilesLieOnPathZero) {
  ASSERT_EQ(registry_.PathId(1), 0);
  registry_.Unregister(1);
  registry_.Register(1, 3);
  ASSERT_EQ(registry_.PathId(1), 3);
  ASSERT_EQ(registry_.PathId(2), 0);
  registry_.Unregister(2);
  ASSERT_EQ(registry_.PathId(1), 3);
}

TEST_F(BlobFilePathRegistryTest, PathZeroIsNotStored) {
  registry_.Register(1, 0);
  ASSERT_EQ(registry_.size(), 0);
  registry_.Register(2, 1);
  registry_.Unregister(1);
  ASSERT_EQ(registry_.size(), 1);
  ASSERT_EQ(registry_.PathId(2), 1);
}

TEST_F(BlobFilePathRegistryTest, FileIsKnownUntilItsLastUserIsGone) {
  registry_.Register(7, 2);
  registry_.Register(7, 2);
  registry_.Unregister(7);
  ASSERT_EQ(registry_.PathId(7), 2);
  registry_.Unregister(7);
  ASSERT_EQ(registry_.PathId(7), 0);
  ASSERT_EQ(registry_.size(), 0);
  registry_.Unregister(7);
  ASSERT_EQ(registry_.size(), 0);
}

// Lookups run while other files are registered and unregistered; a registered
// file must never seem unknown.
TEST_F(BlobFilePathRegistryTest, RegisteredFilesAreAlwaysKnown) {
  constexpr uint64_t kFiles = 64;
  constexpr int kRounds = 2000;
  for (uint64_t file = 1; file <= kFiles; ++file) {
    registry_.Register(file, 1 + file % 3);
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const uint64_t file = 1 + (t * 31 + round) % kFiles;
        registry_.Register(file, 1 + file % 3);
        registry_.Register(1000 + t, 1);
        wrong += registry_.PathId(1 + round % kFiles) !=
                 1 + (1 + round % kFiles) % 3;
        registry_.Unregister(1000 + t);
        registry_.Unregister(file);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ASSERT_EQ(wrong, 0);
  ASSERT_EQ(registry_.size(), kFiles);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
