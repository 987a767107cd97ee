//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/undeleted_files.h"

#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using Names = std::vector<std::string>;

TEST(UndeletedFilesTest, FilesWaitForTheirDirectory) {
  UndeletedFiles files;
  EXPECT_EQ(files.Directories(), Names{});
  EXPECT_EQ(files.Take("/a"), Names{});
  EXPECT_TRUE(files.Add("/a", "000012.sst"));
  EXPECT_TRUE(files.Add("/a", "000012.sst"));
  EXPECT_TRUE(files.Add("/a", "000013.blob"));
  EXPECT_TRUE(files.Add("/b", "000014.sst"));
  EXPECT_EQ(files.Directories(), (Names{"/a", "/b"}));

  EXPECT_EQ(files.Take("/a"), (Names{"000012.sst", "000013.blob"}));
  EXPECT_EQ(files.Directories(), Names{"/b"});
  EXPECT_EQ(files.Take("/a"), Names{});
  EXPECT_EQ(files.Take("/b"), Names{"000014.sst"});
  EXPECT_EQ(files.Directories(), Names{});
}

TEST(UndeletedFilesTest, AFileIsTriedOnceWhileItsDirectoryWorks) {
  UndeletedFiles files;
  EXPECT_TRUE(files.Add("/a", "000012.sst"));
  EXPECT_EQ(files.Take("/a"), Names{"000012.sst"});
  EXPECT_FALSE(files.Add("/a", "000012.sst"));
  EXPECT_EQ(files.Directories(), Names{});
  // Another file, and one of that name in another directory.
  EXPECT_TRUE(files.Add("/a", "000013.sst"));
  EXPECT_TRUE(files.Add("/b", "000012.sst"));
  EXPECT_EQ(files.Take("/a"), Names{"000013.sst"});

  files.NoteFault("/a");
  files.NoteFault("/c");
  EXPECT_EQ(files.Directories(), (Names{"/a", "/b"}));
  EXPECT_TRUE(files.Add("/a", "000012.sst"));
  EXPECT_EQ(files.Take("/a"), (Names{"000012.sst", "000013.sst"}));
  EXPECT_FALSE(files.Add("/a", "000012.sst"));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
