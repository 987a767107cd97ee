//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/directory_names.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

TEST(DirectoryNamesTest, OneDirectoryHasOneName) {
  for (const char* const name : {"/a/b", "/a/b/", "//a///b", "/a/./b/.",
                                 "/a/c/../b", "/../a/b", "/x/../../a/b"}) {
    EXPECT_EQ(CleanDirectoryName(nullptr, name), "/a/b") << name;
  }
  for (const char* const name : {"a/b", "./a/b/", "a/c/../b"}) {
    EXPECT_EQ(CleanDirectoryName(nullptr, name), "a/b") << name;
  }
  EXPECT_EQ(CleanDirectoryName(nullptr, "/"), "/");
  EXPECT_EQ(CleanDirectoryName(nullptr, "///.."), "/");
  EXPECT_EQ(CleanDirectoryName(nullptr, "."), ".");
  EXPECT_EQ(CleanDirectoryName(nullptr, "a/.."), ".");
  EXPECT_EQ(CleanDirectoryName(nullptr, "../a"), "../a");
  EXPECT_EQ(CleanDirectoryName(nullptr, "../../a"), "../../a");
  // Dots are a part of these names.
  EXPECT_EQ(CleanDirectoryName(nullptr, "/a/...b/.c"), "/a/...b/.c");
}

TEST(DirectoryNamesTest, RelativeNamesBecomeAbsolute) {
  FileSystem* const fs = FileSystem::Default().get();
  const std::string here = CleanDirectoryName(fs, ".");
  EXPECT_EQ(here[0], '/');
  EXPECT_EQ(CleanDirectoryName(fs, "./a/../b/"),
            here == "/" ? "/b" : here + "/b");
  EXPECT_EQ(CleanDirectoryName(fs, "/a/"), "/a");
}

TEST(DirectoryNamesTest, SameDirectory) {
  FileSystem* const fs = FileSystem::Default().get();
  const std::string directory = test::PerThreadDBPath("directory_names_test");
  const std::string link = directory + "_link";
  ASSERT_OK(DestroyDir(Env::Default(), directory));
  ASSERT_OK(Env::Default()->CreateDir(directory));
  ASSERT_TRUE(unlink(link.c_str()) == 0 || errno == ENOENT);
  ASSERT_EQ(symlink(directory.c_str(), link.c_str()), 0);
  EXPECT_TRUE(IsSameDirectory(fs, directory, directory + "/./"));
  EXPECT_TRUE(IsSameDirectory(fs, directory, link));
  EXPECT_FALSE(IsSameDirectory(fs, directory, directory + "/.."));
  EXPECT_FALSE(IsSameDirectory(fs, directory, directory + "/missing"));
  EXPECT_TRUE(
      IsSameDirectory(fs, directory + "/missing", directory + "//missing"));
  ASSERT_EQ(unlink(link.c_str()), 0);
  ASSERT_OK(DestroyDir(Env::Default(), directory));
}

TEST(DirectoryNamesTest, Overlap) {
  EXPECT_TRUE(DirectoriesOverlap("/a", "/a"));
  EXPECT_TRUE(DirectoriesOverlap("/a", "/a/b/c"));
  EXPECT_TRUE(DirectoriesOverlap("/a/b/c", "/a"));
  EXPECT_TRUE(DirectoriesOverlap("/", "/a"));
  EXPECT_FALSE(DirectoriesOverlap("/a", "/ab"));
  EXPECT_FALSE(DirectoriesOverlap("/a", "/a.tmp"));
  EXPECT_FALSE(DirectoriesOverlap("/a/b", "/a/c"));
}

TEST(DirectoryNamesTest, NotAmongOthers) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(DirectoriesNotAmong(nullptr, {"/a", "/b/", "/c/../d", "//b"},
                                {"/d/", "/a/b"}),
            (Names{"/a", "/b/"}));
  EXPECT_EQ(DirectoriesNotAmong(nullptr, {"/a/."}, {"/a"}), Names());
  EXPECT_EQ(DirectoriesNotAmong(nullptr, {}, {"/a"}), Names());
  EXPECT_EQ(DirectoriesNotAmong(nullptr, {"/a"}, {}), Names{"/a"});
}

TEST(DirectoryNamesTest, Parent) {
  EXPECT_EQ(ParentDirectory("/a/b"), "/a");
  EXPECT_EQ(ParentDirectory("/a"), "/");
  EXPECT_EQ(ParentDirectory("a"), ".");
  EXPECT_EQ(ParentDirectory("a/b"), "a");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
