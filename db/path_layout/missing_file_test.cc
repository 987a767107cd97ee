//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/missing_file.h"

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(MissingFileTest, FilesAreLookedForOnTheirPaths) {
  Env* const env = Env::Default();
  const std::string base = test::PerThreadDBPath("missing_file_test");
  const std::vector<DbPath> paths = {{base + "/0", 1}, {base + "/1", 1}};
  ASSERT_OK(DestroyDir(env, base));
  ASSERT_OK(env->CreateDir(base));
  for (const DbPath& path : paths) {
    ASSERT_OK(env->CreateDir(path.path));
  }
  const std::vector<ManifestFamily::File> files = {{kTableFile, 7, 0, 1},
                                                   {kBlobFile, 8, 1, 1},
                                                   {kDeltaFile, 9, 5, 1},
                                                   {kTableFile, 10, 1, 1}};
  // A path id beyond the last path stands for the last one.
  const std::vector<std::string> names = {
      base + "/0/000007.sst", base + "/1/000008.blob", base + "/1/000009.delta",
      base + "/1/000010.sst"};
  FileSystem* const fs = env->GetFileSystem().get();
  EXPECT_EQ(FirstMissingFile(fs, {}, paths), "");
  for (const std::string& name : names) {
    EXPECT_EQ(FirstMissingFile(fs, files, paths), name);
    ASSERT_OK(WriteStringToFile(env, "x", name));
  }
  EXPECT_EQ(FirstMissingFile(fs, files, paths), "");
  ASSERT_OK(env->RenameFile(names[3], base + "/1/000010.ldb"));
  EXPECT_EQ(FirstMissingFile(fs, files, paths), "");
  // Another order is another place.
  EXPECT_EQ(FirstMissingFile(fs, files, {paths[1], paths[0]}),
            base + "/1/000007.sst");
  ASSERT_OK(DestroyDir(env, base));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
