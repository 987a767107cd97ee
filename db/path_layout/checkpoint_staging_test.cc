//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/checkpoint_staging.h"

#include <string>
#include <vector>

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class CheckpointStagingTest : public testing::Test {
 protected:
  CheckpointStagingTest()
      : env_(Env::Default()),
        parent_(test::PerThreadDBPath("checkpoint_staging_test")) {
    EXPECT_OK(DestroyDir(env_, parent_));
    EXPECT_OK(env_->CreateDir(parent_));
  }
  ~CheckpointStagingTest() override { EXPECT_OK(DestroyDir(env_, parent_)); }

  Env* const env_;
  const std::string parent_;
};

TEST_F(CheckpointStagingTest, AttemptsDiffer) {
  const std::string one = CheckpointStaging::NewAttempt();
  const std::string other = CheckpointStaging::NewAttempt();
  EXPECT_EQ(one.size(), 16U);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, other);
}

TEST_F(CheckpointStagingTest, NamesAreThoseOfTheFormatDescription) {
  EXPECT_EQ(CheckpointStaging::Name("/hdd/copy", "29d1a2f04b7c6e15"),
            "/hdd/copy.29d1a2f04b7c6e15.tmp");
  EXPECT_EQ(CheckpointStaging::GoneName("/hdd/copy", "29d1a2f04b7c6e15"),
            "/hdd/copy.29d1a2f04b7c6e15.gone.tmp");
}

TEST_F(CheckpointStagingTest, ThoseOfTheDirectoryAreFound) {
  const std::string directory = parent_ + "/copy";
  const std::string one = "0123456789abcdef";
  const std::string two = CheckpointStaging::NewAttempt();
  const std::string gone = CheckpointStaging::GoneName(directory, one);
  const std::string name = CheckpointStaging::Name(directory, two);
  for (const std::string& made :
       {gone, name, directory, directory + ".tmp", directory + "." + one,
        directory + ".0123456789abcdeF.tmp", directory + ".0123456789abcde.tmp",
        directory + ".0123456789abcdef0.tmp", directory + one + ".tmp",
        CheckpointStaging::Name(parent_ + "/other", one),
        CheckpointStaging::Name(directory, one) + ".tmp"}) {
    ASSERT_OK(env_->CreateDir(made));
  }
  std::vector<CheckpointStaging> found(1);
  FileSystem* const fs = env_->GetFileSystem().get();
  ASSERT_OK(CheckpointStaging::Find(fs, directory, &found));
  ASSERT_EQ(found.size(), 2U);
  const bool is_first = one < two;
  const CheckpointStaging& found_gone = found[is_first ? 0 : 1];
  const CheckpointStaging& found_name = found[is_first ? 1 : 0];
  EXPECT_EQ(found_gone.name, gone);
  EXPECT_EQ(found_gone.attempt, one);
  EXPECT_EQ(found_gone.gone_name, gone);
  EXPECT_TRUE(found_gone.is_gone());
  EXPECT_EQ(found_name.name, name);
  EXPECT_EQ(found_name.attempt, two);
  EXPECT_EQ(found_name.gone_name, CheckpointStaging::GoneName(directory, two));
  EXPECT_FALSE(found_name.is_gone());
  EXPECT_NOK(CheckpointStaging::Find(fs, parent_ + "/none/copy", &found));
  EXPECT_TRUE(found.empty());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
