//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/path_probe.h"

#include <memory>
#include <string>
#include <vector>

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/strata/failing_devices_fs_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using Fault = FailingDevicesFS::Fault;

class PathProbeTest : public testing::Test {
 protected:
  PathProbeTest()
      : directory_(test::PerThreadDBPath("path_probe_test")),
        fs_(FileSystem::Default()) {
    EXPECT_OK(DestroyDir(Env::Default(), directory_));
    EXPECT_OK(Env::Default()->CreateDir(directory_));
  }
  ~PathProbeTest() override {
    EXPECT_OK(DestroyDir(Env::Default(), directory_));
  }

  size_t NumFiles() {
    std::vector<std::string> names;
    EXPECT_OK(Env::Default()->GetChildren(directory_, &names));
    return names.size();
  }

  const std::string directory_;
  FailingDevicesFS fs_;
};

TEST_F(PathProbeTest, LeavesNothing) {
  ASSERT_OK(PathProbe::Run(&fs_, directory_, 12));
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(PathProbeTest, FindsEachFault) {
  for (const Fault fault : {Fault::kReadOnly, Fault::kLost, Fault::kMissing}) {
    fs_.SetFault(directory_, fault);
    const IOStatus s = PathProbe::Run(&fs_, directory_, 12);
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_NE(s.ToString().find(directory_ + "/000012.dbtmp"),
              std::string::npos)
        << s.ToString();
    EXPECT_EQ(NumFiles(), 0);
  }
  fs_.SetFault(directory_, Fault::kNone);
  ASSERT_OK(PathProbe::Run(&fs_, directory_, 12));
}

TEST_F(PathProbeTest, FindsThatTheDirectoryIsNotThere) {
  ASSERT_OK(DestroyDir(Env::Default(), directory_));
  EXPECT_TRUE(PathProbe::Run(&fs_, directory_, 12).IsPathNotFound());
}

// A search for obsolete files may delete the file.
TEST_F(PathProbeTest, AllowsAnotherThreadToDeleteTheFile) {
  class DeletingFS : public FileSystemWrapper {
   public:
    DeletingFS() : FileSystemWrapper(FileSystem::Default()) {}
    const char* Name() const override { return "DeletingFS"; }
    IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                          std::unique_ptr<FSDirectory>* result,
                          IODebugContext* dbg) override {
      EXPECT_OK(target()->DeleteFile(name + "/000012.dbtmp", options, dbg));
      return target()->NewDirectory(name, options, result, dbg);
    }
  };
  DeletingFS fs;
  ASSERT_OK(PathProbe::Run(&fs, directory_, 12));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
