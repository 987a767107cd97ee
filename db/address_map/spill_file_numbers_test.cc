//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/spill_file_numbers.h"

#include <memory>
#include <string>

#include "file/filename.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class SpillFileNumbersTest : public testing::Test {
 protected:
  bool Has(uint64_t number) const {
    UnorderedSet<uint64_t> all;
    numbers_.AddTo(&all);
    return all.count(number) > 0;
  }

  SpillFileNumbers numbers_;
};

TEST_F(SpillFileNumbersTest, NumberIsThereAsLongAsItsFile) {
  const std::string directory = test::PerThreadDBPath("spill_file_numbers");
  FileSystem* const fs = FileSystem::Default().get();
  ASSERT_OK(fs->CreateDirIfMissing(directory, IOOptions(), nullptr));
  std::unique_ptr<SpillFile> file;
  std::unique_ptr<SpillFile> other;
  ASSERT_OK(numbers_.Create(fs, directory, 7, &file));
  ASSERT_OK(numbers_.Create(fs, directory, 8, &other));
  const std::string path = TempFileName(directory, 7);
  ASSERT_OK(fs->FileExists(path, IOOptions(), nullptr));
  ASSERT_TRUE(Has(7));
  ASSERT_FALSE(Has(9));
  file.reset();
  ASSERT_TRUE(fs->FileExists(path, IOOptions(), nullptr).IsNotFound());
  ASSERT_FALSE(Has(7));
  ASSERT_TRUE(Has(8));
}

TEST_F(SpillFileNumbersTest, NumberIsGoneIfItsFileCannotBeCreated) {
  const std::string directory =
      test::PerThreadDBPath("spill_file_numbers_missing");
  std::unique_ptr<SpillFile> file;
  ASSERT_NOK(numbers_.Create(FileSystem::Default().get(), directory, 7, &file));
  file.reset();
  ASSERT_FALSE(Has(7));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
