//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/checkpoint_mark.h"

#include <string>

#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class CheckpointMarkTest : public testing::Test {
 protected:
  CheckpointMarkTest()
      : fs_(FileSystem::Default().get()),
        directory_(test::PerThreadDBPath("checkpoint_mark_test")) {
    EXPECT_OK(DestroyDir(Env::Default(), directory_));
    EXPECT_OK(Env::Default()->CreateDir(directory_));
  }
  ~CheckpointMarkTest() override {
    EXPECT_OK(DestroyDir(Env::Default(), directory_));
  }
  std::string File() const { return directory_ + "/" + CheckpointMark::Name(); }

  FileSystem* const fs_;
  const std::string directory_;
};

TEST_F(CheckpointMarkTest, IsReadAsItWasWritten) {
  CheckpointMark mark;
  mark.attempt = "some text";
  for (const int num_files : {0, 2}) {
    if (num_files == 2) {
      mark.files = {"000012.sst", "000013.blob"};
      mark.directories = {"/a b", "/directory c"};
    }
    ASSERT_OK(mark.Write(fs_, directory_));
    CheckpointMark read;
    read.files = {"other"};
    read.directories = {"/other"};
    ASSERT_OK(read.Read(fs_, directory_));
    EXPECT_EQ(read.attempt, mark.attempt);
    EXPECT_EQ(read.files, mark.files);
    EXPECT_EQ(read.directories, mark.directories);
  }
}

TEST_F(CheckpointMarkTest, NameWithALineBreakIsLeftOut) {
  CheckpointMark mark;
  mark.attempt = "some text";
  mark.directories = {"/a\n000012.sst", "/b"};
  ASSERT_OK(mark.Write(fs_, directory_));
  CheckpointMark read;
  ASSERT_OK(read.Read(fs_, directory_));
  EXPECT_EQ(read.directories, std::set<std::string>{"/b"});
  EXPECT_TRUE(read.files.empty());
}

TEST_F(CheckpointMarkTest, DamageIsCorruption) {
  CheckpointMark mark;
  mark.attempt = "some text";
  mark.files = {"000012.sst"};
  mark.directories = {"/other"};
  ASSERT_OK(mark.Write(fs_, directory_));
  std::string text;
  ASSERT_OK(ReadFileToString(fs_, File(), &text));
  CheckpointMark read;
  for (size_t size = 0; size < text.size(); ++size) {
    ASSERT_OK(WriteStringToFile(fs_, text.substr(0, size), File()));
    EXPECT_TRUE(read.Read(fs_, directory_).IsCorruption()) << size;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    ASSERT_OK(WriteStringToFile(fs_, damaged, File()));
    EXPECT_TRUE(read.Read(fs_, directory_).IsCorruption()) << i;
  }
  ASSERT_OK(fs_->DeleteFile(File(), IOOptions(), nullptr));
  EXPECT_NOK(read.Read(fs_, directory_));
}

// A DB that is opened with the directory deletes the file.
TEST_F(CheckpointMarkTest, NameIsThatOfATemporaryFile) {
  uint64_t number = 0;
  FileType type = kTableFile;
  ASSERT_TRUE(ParseFileName(CheckpointMark::Name(), &number, &type));
  EXPECT_EQ(type, kTempFile);
  EXPECT_NE(number, 0U);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
